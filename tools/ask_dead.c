/* tools/ask_dead.c - noh dead list, show, redrive, purge: messages that were set aside. */
#include "tools/ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ── list, show ── */

static json_t *page(const struct words *w)
{
	json_t *body = ask_page(w);

	if (body && words_flag(w, "actor"))
		json_object_set_new(body, "actor_address", json_string(words_text(w, "actor")));
	return body;
}

static int list(const struct client *c, const struct words *w)
{
	char id[64], at[64], address[300], kind[80], reason[300];
	json_t *answer = NULL, *body = words_count(w, 0, 0, "") ? page(w) : NULL, *d;
	size_t i;

	if (!body)
		return CLI_USAGE;
	int code = ask(c, w, "/admin/dead/list", "", body, &answer);

	if (answer && !ask_printed(w)) {
		if (json_array_size(json_object_get(answer, "dead")) == 0)
			printf("none\n");
		else
			printf("%-22s %-25s %-30s %-12s %9s  %s\n", "ID", "SET ASIDE", "ACTOR", "KIND", "BYTES", "WHY");
		json_array_foreach(json_object_get(answer, "dead"), i, d)
			printf("%-22s %-25s %-30s %-12s %9lld  %s\n", ask_shown(id, sizeof id, ask_text(d, "id")),
			       ask_shown(at, sizeof at, ask_text(d, "at")), ask_shown(address, sizeof address, ask_text(d, "actor_address")),
			       ask_shown(kind, sizeof kind, ask_text(d, "message_type")), ask_number(d, "size"),
			       ask_shown(reason, sizeof reason, ask_text(d, "reason")));
		ask_more(w, answer);
	}
	json_decref(answer);
	return code;
}

static int show(const struct client *c, const struct words *w)
{
	static const char *const fields[][2] = { { "id", "id" }, { "set aside", "at" }, { "actor", "actor_address" },
						 { "kind", "message_type" }, { "why", "reason" }, { "text", "body_text" },
						 { "base64", "body_base64" } };
	json_t *answer = NULL;
	char text[4096];

	if (!words_count(w, 1, 1, "the message's id is"))
		return CLI_USAGE;
	int code = ask(c, w, "/admin/dead/show", "", json_pack("{ss}", "id", w->plain[0]), &answer);

	if (answer && !ask_printed(w)) {
		for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++)
			if (*ask_text(answer, fields[i][1]))
				printf("%-10s %s\n", fields[i][0], ask_shown(text, sizeof text, ask_text(answer, fields[i][1])));
		printf("%-10s %lld\n", "bytes", ask_number(answer, "size"));
	}
	json_decref(answer);
	return code;
}

/* ── redrive, purge ── */

static int one(const struct client *c, const struct words *w, const char *path, const char *id)
{
	json_t *answer = NULL;
	int code = ask(c, w, path, "", json_pack("{ss}", "id", id), &answer);

	json_decref(answer);
	return code;
}

static void progress(const struct words *w, uint64_t done, bool last)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, last ? "\r\033[K" : "\r\033[Knoh %s: %llu done", w->full, (unsigned long long)done);
	fflush(stderr);
}

/* Page after page from the beginning: those that are done are not there any more. What fails stays, so the next page
 * begins behind it. */
static int all(const struct client *c, const struct words *w, const char *path, uint64_t *done)
{
	json_t *body = page(w), *answer = NULL, *d;
	int worst = CLI_FINE;
	size_t i;

	while (body) {
		struct words quiet = *w;
		int code;

		quiet.given_count = 0;                   /* its pages are not the answer to --json */
		code = ask(c, &quiet, "/admin/dead/list", "", body, &answer);
		body = NULL;
		if (code != CLI_FINE)
			return code;
		json_array_foreach(json_object_get(answer, "dead"), i, d) {
			code = one(c, w, path, ask_text(d, "id"));
			*done += code == CLI_FINE;
			progress(w, *done, false);
			if (code != CLI_FINE && code != CLI_NOT_FOUND)
				worst = code;
		}
		if (*ask_text(answer, "next_cursor") && (body = page(w)) != NULL)
			json_object_set(body, "cursor", json_object_get(answer, "next_cursor"));
		json_decref(answer);
		if (worst == CLI_TEMPORARY || worst == CLI_TIMEOUT) {
			json_decref(body);
			break;
		}
	}
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
		int code = one(c, w, path, w->plain[i]);

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
