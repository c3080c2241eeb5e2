/* tools/ask_dead.c - noh dead list, show, redrive, purge: messages that were set aside. */
#include "tools/ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ── list, show ── */

/* cursor NULL: as the words say. */
static bool page(struct ask_body *b, const struct words *w, const char *cursor)
{
	ask_begin(b);
	if (cursor) {
		noh_json_put_uint(&b->out, "limit", 100);
		ask_put(b, "cursor", *cursor ? cursor : NULL);
	} else if (!ask_page(b, w)) {
		return false;
	}
	ask_put(b, "actor_address", words_text(w, "actor"));
	return ask_end(b, w) != NULL;
}

static void show_list(const struct words *w, noh_json answer)
{
	noh_json dead = ask_member(answer, "dead"), d;
	noh_json_walk walk = { NULL };
	char id[64], at[64], address[300], kind[80], reason[300];

	if (ask_items(dead) == 0) {
		printf("none\n");
		return;
	}
	printf("%-22s %-25s %-30s %-12s %9s  %s\n", "ID", "SET ASIDE", "ACTOR", "KIND", "BYTES", "WHY");
	while (dead.len && noh_json_next(dead, &walk, NULL, &d)) {
		ask_text(d, "id", id, sizeof id);
		ask_text(d, "at", at, sizeof at);
		ask_text(d, "actor_address", address, sizeof address);
		if (!*ask_text(d, "message_type", kind, sizeof kind))
			snprintf(kind, sizeof kind, "%lld", ask_number(d, "kind"));
		printf("%-22s %-25s %-30s %-12s %9lld  %s\n", id, at, address, kind, ask_number(d, "size"),
		       ask_text(d, "reason", reason, sizeof reason));
	}
	ask_more(w, answer);
}

static int list(const struct client *c, const struct words *w)
{
	struct answer a = { .text = NULL };
	struct ask_body b;

	if (!words_count(w, 0, 0, "") || !page(&b, w, NULL))
		return CLI_USAGE;
	int code = ask(c, w, "/admin/dead/list", "", b.text, &a);

	if (a.text && !ask_printed(w))
		show_list(w, a.json);
	answer_free(&a);
	return code;
}

static int one(const struct client *c, const struct words *w, const char *path, const char *id, struct answer *a)
{
	struct ask_body b;

	ask_begin(&b);
	ask_put(&b, "id", id);
	return ask_end(&b, w) ? ask(c, w, path, "", b.text, a) : CLI_USAGE;
}

static int show(const struct client *c, const struct words *w)
{
	static const char *const fields[][2] = { { "id", "id" }, { "set aside", "at" }, { "actor", "actor_address" },
						 { "kind", "message_type" }, { "why", "reason" }, { "base64", "body_base64" } };
	struct answer a = { .text = NULL };
	static char text[1 << 21];

	if (!words_count(w, 1, 1, "the message's id is"))
		return CLI_USAGE;
	int code = one(c, w, "/admin/dead/show", w->plain[0], &a);

	if (a.text && !ask_printed(w)) {
		for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++)
			if (*ask_text(a.json, fields[i][1], text, sizeof text))
				printf("%-10s %s\n", fields[i][0], text);
		printf("%-10s %lld\n", "bytes", ask_number(a.json, "size"));
	}
	answer_free(&a);
	return code;
}

/* ── redrive, purge ── */

static void progress(const struct words *w, uint64_t done, bool last)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, last ? "\r\033[K" : "\r\033[Knoh %s: %llu done", w->full, (unsigned long long)done);
	fflush(stderr);
}

static int change_one(const struct client *c, const struct words *w, const char *path, const char *id)
{
	struct answer a = { .text = NULL };
	int code = one(c, w, path, id, &a);

	answer_free(&a);
	return code;
}

/* A page of ids; *cursor: where to go on, "" at the end. */
static int change_page(const struct client *c, const struct words *w, const char *path, char *cursor, uint64_t *done)
{
	struct words quiet = *w;
	struct answer a = { .text = NULL };
	noh_json_walk walk = { NULL };
	noh_json dead, d;
	struct ask_body b;
	char id[64];
	int code, worst = CLI_FINE;

	if (!page(&b, w, cursor))
		return CLI_USAGE;
	quiet.given_count = 0;                   /* its pages are not the answer to --json */
	code = ask(c, &quiet, "/admin/dead/list", "", b.text, &a);
	if (code != CLI_FINE)
		return code;
	dead = ask_member(a.json, "dead");
	while (dead.len && noh_json_next(dead, &walk, NULL, &d)) {
		code = change_one(c, w, path, ask_text(d, "id", id, sizeof id));
		*done += code == CLI_FINE;
		progress(w, *done, false);
		if (code != CLI_FINE && code != CLI_NOT_FOUND)
			worst = code;
	}
	ask_text(a.json, "next_cursor", cursor, NOH_CURSOR);
	answer_free(&a);
	return worst;
}

/* What fails stays, and is passed over; a server that is not there ends it. */
static int all(const struct client *c, const struct words *w, const char *path, uint64_t *done)
{
	char cursor[NOH_CURSOR] = "";
	int worst = CLI_FINE, code;

	do {
		code = change_page(c, w, path, cursor, done);
		worst = code > worst ? code : worst;
	} while (*cursor && code != CLI_TEMPORARY && code != CLI_TIMEOUT);
	return worst;
}

static bool sure(const struct words *w)
{
	char line[16] = "";

	if (strcmp(w->action, "purge") != 0 || words_flag(w, "yes"))
		return true;
	if (!isatty(STDIN_FILENO)) {
		words_wrong(w, "--all forgets every one of them for good: say --yes as well");
		return false;
	}
	fprintf(stderr, "Forget them all for good? [y/N] ");
	return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static int change(const struct client *c, const struct words *w, const char *path, const char *done_word)
{
	uint64_t done = 0;
	int worst = CLI_FINE;

	if (!words_flag(w, "all") && w->count == 0)
		return words_wrong(w, "which? ids of noh dead list, or --all");
	if (words_flag(w, "all") && w->count)
		return words_wrong(w, "ids or --all, not both");
	if (words_flag(w, "all")) {
		if (!sure(w))
			return CLI_USAGE;
		worst = all(c, w, path, &done);
	}
	for (unsigned i = 0; i < w->count; i++) {
		int code = change_one(c, w, path, w->plain[i]);

		done += code == CLI_FINE;
		worst = code > worst ? code : worst;
		if (w->count > 10)
			progress(w, done, false);
	}
	progress(w, done, true);
	if (!words_flag(w, "json"))
		printf("%llu %s\n", (unsigned long long)done, done_word);
	return worst;
}

int dead_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	int code;

	if (!words_read(&w, "dead", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code)) {
		if (strcmp(w.action, "list") == 0)
			code = list(&c, &w);
		else if (strcmp(w.action, "show") == 0)
			code = show(&c, &w);
		else if (strcmp(w.action, "redrive") == 0)
			code = change(&c, &w, "/admin/dead/redrive", "redriven");
		else
			code = change(&c, &w, "/admin/dead/purge", "purged");
	}
	words_free(&w);
	return code;
}
