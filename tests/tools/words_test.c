/* tests/tools/words_test.c - the table of verbs: every row is complete, and words are read by it. */
#include "tests/lib/test.h"
#include "tools/words.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is said on stderr while this runs, in `said`. */
static char said[4096];
static int  kept_stderr;
static FILE *catcher;

static void hush(void)
{
	fflush(stderr);
	kept_stderr = dup(2);
	catcher = tmpfile();
	dup2(fileno(catcher), 2);
}

static void unhush(void)
{
	size_t n;

	fflush(stderr);
	dup2(kept_stderr, 2);
	close(kept_stderr);
	rewind(catcher);
	n = fread(said, 1, sizeof said - 1, catcher);
	said[n] = 0;
	fclose(catcher);
}

static struct words w;
static int code;

static bool reads(const char *line)
{
	static char text[1024];
	char *argv[32], *rest = text;
	int argc = 0;

	snprintf(text, sizeof text, "%s", line);
	while ((argv[argc] = strtok_r(rest, " ", &rest)) != NULL)
		argc++;
	hush();
	bool good = words_read(&w, argv[0], argc, argv, &code);

	unhush();
	return good;
}

static void every_verb_tells_how_it_is_used(void)
{
	for (const struct verb *v = verbs; v->name; v++) {
		bool good = v->about && *v->about && v->main && v->words && v->text && *v->text && v->examples &&
			    strncmp(v->examples, "  noh ", 6) == 0;

		for (const struct verb_option *o = v->options; o && o->name; o++)
			good = good && o->help && *o->help && o->name[0] != '-';
		for (const struct verb_action *a = v->actions; a && a->name; a++)
			good = good && a->about && *a->about && a->words;
		for (const struct verb *u = verbs; u != v; u++)
			good = good && strcmp(u->name, v->name) != 0;
		if (!EXPECT(good))
			fprintf(stderr, "the row of %s is not complete\n", v->name);
	}
	EXPECT(verb_find("invoke") && !verb_find("invok"));
	EXPECT(strcmp(verb_nearest("invok"), "invoke") == 0);
}

static void options_and_words_may_stand_in_any_order(void)
{
	EXPECT(reads("list --limit 7 --json --type=counter"));
	EXPECT(strcmp(words_text(&w, "type"), "counter") == 0);
	EXPECT(words_flag(&w, "json") && !words_flag(&w, "all"));
	uint64_t n = 100;

	EXPECT(words_number(&w, "limit", 1, 10, &n) && n == 7);
	words_free(&w);
	EXPECT(reads("invoke counter:a --idem k incr by=5"));
	EXPECT(w.count == 3 && strcmp(w.plain[2], "by=5") == 0 && strcmp(words_text(&w, "idem"), "k") == 0);
	words_free(&w);
	EXPECT(reads("invoke counter:a incr -- --by=5"));
	EXPECT(w.count == 3 && strcmp(w.plain[2], "--by=5") == 0);
	words_free(&w);
	EXPECT(reads("dead redrive 1-1 2-2"));
	EXPECT(strcmp(w.action, "redrive") == 0 && w.count == 2);
	words_free(&w);
}

static void what_is_wrong_is_said_with_what_was_meant(void)
{
	EXPECT(!reads("list --jsn") && code == CLI_USAGE && strstr(said, "did you mean --json"));
	EXPECT(!reads("list --limit") && code == CLI_USAGE && strstr(said, "needs a value"));
	EXPECT(!reads("list --json=yes") && code == CLI_USAGE && strstr(said, "takes no value"));
	EXPECT(!reads("dead lst") && code == CLI_USAGE && strstr(said, "did you mean noh dead list"));
	EXPECT(!reads("dead") && code == CLI_USAGE && strstr(said, "list, show, redrive, purge"));
	EXPECT(!reads("list --type a --xyzzy b") && strstr(said, "noh list --help"));
	EXPECT(reads("list --limit many"));
	hush();
	uint64_t n = 0;
	bool number = words_number(&w, "limit", 1, 10, &n);

	unhush();
	EXPECT(!number && strstr(said, "from 1 to 10"));
	words_free(&w);
}

static void a_time_has_a_unit(void)
{
	uint64_t ms = 5;

	EXPECT(reads("status counter:a --timeout 2s") && words_duration(&w, "timeout", 1, 10000, &ms) && ms == 2000);
	words_free(&w);
	EXPECT(reads("status counter:a --timeout 2"));
	hush();
	bool good = words_duration(&w, "timeout", 1, 10000, &ms);

	unhush();
	EXPECT(!good && strstr(said, "--timeout 2"));
	words_free(&w);
}

TEST_MAIN(
	TEST(every_verb_tells_how_it_is_used),
	TEST(options_and_words_may_stand_in_any_order),
	TEST(what_is_wrong_is_said_with_what_was_meant),
	TEST(a_time_has_a_unit))
