/* tools/verbs_print.c - the table in words: overview, help, manual page. */
#include "noh.h"
#include "tools/cli.h"
#include "tools/settings.h"
#include "tools/words.h"

#include <string.h>

static const char usual_exits[] = "0 fine, 1 failure, 2 wrong usage, 3 not found, 4 no answer in time, 75 try again later";

void verbs_overview(void)
{
	printf("noh %s - counters, inventory and actors of your own: on all cores, on disk when answered\n\n"
	       "usage: noh VERB [options]          noh VERB --help says all about one\n", noh_version());
	for (const struct verb *v = verbs; v->name; v++) {
		if (v->group)
			printf("\n%s\n", v->group);
		printf("  %-10s %s\n", v->name, v->about);
	}
	printf("\nTry it\n"
	       "  noh serve                                          in one terminal; in another:\n"
	       "  noh invoke counter:hits incr by=1                  or redis-cli -p 7411 INCR hits\n"
	       "  noh invoke inventory:shoes restock n=10            then reserve and commit, or with curl: noh invoke --help\n"
	       "  noh demo                                           watch it work\n"
	       "  cc app.c $(pkg-config --cflags --libs noh)         your own: noh.h, examples/\n");
}

/* ── help of one verb ── */

static void usage(FILE *to, const struct verb *v, const char *first, const char *next)
{
	const char *before = first;

	for (const struct verb_action *a = v->actions; a && a->name; a++) {
		fprintf(to, "%snoh %s %s%s%s\n", before, v->name, a->name, *a->words ? " " : "", a->words);
		before = next;
	}
	if (!v->actions)
		fprintf(to, "%snoh %s%s%s\n", before, v->name, *v->words ? " " : "", v->words);
}

static void print_options(const struct verb_option *list)
{
	for (; list && list->name; list++) {
		char left[64];

		snprintf(left, sizeof left, "--%s%s%s", list->name, list->value ? " " : "", list->value ? list->value : "");
		printf("  %-18s %s\n", left, list->help);
	}
}

int verb_help(const char *name)
{
	const struct verb *v = verb_find(name);
	bool asks = v->about[strlen(v->about) - 1] == '?';

	usage(stdout, v, "usage: ", "       ");
	printf("\n%s: %s%s\n\n%s\n", v->name, v->about, asks ? "" : ".", v->text);
	if (v->actions)
		putchar('\n');
	for (const struct verb_action *a = v->actions; a && a->name; a++)
		printf("  %-10s %s\n", a->name, a->about);
	if (v->options) {
		printf("\nOptions\n");
		print_options(v->options);
	}
	if (v->remote) {
		printf("\nWhich server, and how\n");
		print_options(verbs_remote);
	}
	printf("\nExamples\n%s\n", v->examples);
	if (v->more)
		v->more();
	printf("\nExit code: %s.\n", v->exits ? v->exits : usual_exits);
	return CLI_FINE;
}

/* ── noh(1) ── */

/* Text for troff: a backslash is an escape, and so is a dot or quote that begins a line. */
static void roff(const char *text)
{
	bool begins = true;

	for (; *text; text++) {
		if (begins && (*text == '.' || *text == '\''))
			printf("\\&");
		if (*text == '\\')
			printf("\\e");
		else if (*text == '-')
			printf("\\-");
		else
			putchar(*text);
		begins = *text == '\n';
	}
}

static void roff_options(const struct verb_option *list)
{
	for (; list && list->name; list++) {
		printf(".TP\n\\fB\\-\\-");
		roff(list->name);
		printf("\\fR");
		if (list->value) {
			printf(" \\fI");
			roff(list->value);
			printf("\\fR");
		}
		putchar('\n');
		roff(list->help);
		putchar('\n');
	}
}

static void roff_verb(const struct verb *v)
{
	printf(".SS \"noh %s\"\n", v->name);
	roff(v->about);
	printf(".\n.PP\n.nf\n");
	for (const struct verb_action *a = v->actions; a && a->name; a++) {
		printf("\\fBnoh %s %s\\fR ", v->name, a->name);
		roff(a->words);
		printf("  (");
		roff(a->about);
		printf(")\n");
	}
	if (!v->actions) {
		printf("\\fBnoh %s\\fR ", v->name);
		roff(v->words);
		putchar('\n');
	}
	printf("\n");
	roff(v->text);
	printf("\n.fi\n");
	roff_options(v->options);
	if (v->remote)
		printf(".PP\nAlso takes the options of WHICH SERVER.\n");
	if (v->settings)
		printf(".PP\nAlso takes every setting as an option; see SETTINGS.\n");
	printf(".PP\nExamples:\n.PP\n.nf\n");
	roff(v->examples);
	printf("\n.fi\n.PP\nExit code: ");
	roff(v->exits ? v->exits : usual_exits);
	printf(".\n");
}

void verbs_man(void)
{
	printf(".TH NOH 1 \"\" \"noh %s\" \"User Commands\"\n"
	       ".SH NAME\nnoh \\- counters, inventory and actors of your own: on all cores, on disk when answered\n"
	       ".SH SYNOPSIS\n\\fBnoh\\fR \\fIVERB\\fR [\\fIoptions\\fR]\n.SH VERBS\n", noh_version());
	for (const struct verb *v = verbs; v->name; v++)
		roff_verb(v);
	printf(".SH \"WHICH SERVER\"\nVerbs that ask a running server find it by its Unix socket, or by a URL.\n");
	roff_options(verbs_remote);
	printf(".SH SETTINGS\nFlag, environment and key of the configuration file are one setting; the strongest of default, "
	       "file, environment and flag counts.\n");
	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];
		char name[96];

		settings_env_name(i, name, sizeof name);
		printf(".TP\n\\fB%s.%s\\fR", t->section, t->key);
		if (t->flag) {
			printf(", \\fB\\-\\-");
			roff(t->flag);
			printf("\\fR");
		}
		printf(", %s\n", name);
		roff(t->help);
		printf("%s%s%s\n", *t->preset ? " Default: " : "", t->preset, *t->preset ? "." : "");
	}
	printf(".SH \"EXIT STATUS\"\n");
	roff(usual_exits);
	printf(".\n.SH FILES\n.TP\n%s\nread if it is there and no other is named\n"
	       ".SH \"SEE ALSO\"\nredis\\-cli(1), curl(1)\n", SETTINGS_USUAL_FILE);
}

/* ── the verbs about verbs ── */

static int unknown_verb(const char *name)
{
	const char *near = verb_nearest(name);

	if (near)
		fprintf(stderr, "noh: there is no verb \"%.60s\"; did you mean noh %s?\n", name, near);
	else
		fprintf(stderr, "noh: there is no verb \"%.60s\"; \"noh help\" lists them\n", name);
	return CLI_USAGE;
}

int help_main(int argc, char **argv)
{
	struct words w;
	int code;

	if (!words_read(&w, "help", argc, argv, &code))
		return code;
	if (words_flag(&w, "man"))
		verbs_man();
	else if (w.count == 0)
		verbs_overview();
	else if (verb_find(w.plain[0]))
		code = verb_help(w.plain[0]);
	else
		code = unknown_verb(w.plain[0]);
	if (words_flag(&w, "man") || w.count == 0)
		code = CLI_FINE;
	words_free(&w);
	return code;
}

int version_main(int argc, char **argv)
{
	struct words w;
	int code;

	if (!words_read(&w, "version", argc, argv, &code))
		return code;
	code = words_count(&w, 0, 0, "") ? CLI_FINE : CLI_USAGE;
	if (code == CLI_FINE && words_flag(&w, "json"))
		printf("{\"version\": \"%s\", \"header\": \"%s\"}\n", noh_version(), NOH_VERSION);
	else if (code == CLI_FINE)
		printf("noh %s\n", noh_version());
	words_free(&w);
	return code;
}

/* bench has sizes and lists of its own to tell. */
static bool asks_for_help(const struct verb *v, int argc, char **argv)
{
	for (int i = 2; i < argc && strcmp(v->name, "bench") != 0 && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

int verbs_run(int argc, char **argv)
{
	const struct verb *v = verb_find(argv[1]);

	if (!v)
		return unknown_verb(argv[1]);
	return asks_for_help(v, argc, argv) ? verb_help(v->name) : v->main(argc - 1, argv + 1);
}
