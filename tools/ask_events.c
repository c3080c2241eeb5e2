/* tools/ask_events.c - noh events tail: what happens on a server, as it happens. */
#include "tools/ask.h"

#include <string.h>
#include <time.h>

#define AGAIN_NS UINT64_C(3600000000000)   /* poll(2) counts in int */

/* ── one event ── */

void ask_print_event(noh_json e)
{
	char at[64], kind[80], actor[300], from[80], to[80], reason[600];
	noh_json data = ask_member(e, "data");
	long long revision = ask_number(e, "revision");

	ask_text(e, "at", at, sizeof at);
	ask_text(e, "kind", kind, sizeof kind);
	ask_text(e, "actor", actor, sizeof actor);
	ask_text(e, "from", from, sizeof from);
	ask_text(e, "to", to, sizeof to);
	ask_text(e, "reason", reason, sizeof reason);
	printf("%8lld  %s  %-12s  %-28s", ask_number(e, "seq"), at, kind, *actor ? actor : "-");
	if (*from || *to)
		printf("  %s -> %s", *from ? from : "-", *to ? to : "-");
	if (revision)
		printf("  revision %lld", revision);
	if (*reason)
		printf("  %s", reason);
	if (data.len && noh_json_type_of(data) == NOH_JSON_OBJECT)
		printf("  %.*s", (int)(data.len < 400 ? data.len : 400), data.at);
	putchar('\n');
}

/* ── the stream ── */

struct tail {
	const struct words  *w;
	const struct client *c;
	struct client_stream stream;
	long long            cursor;       /* of the last one told; -1: none was */
};

/* Where it begins, if it was told before: behind that. */
static bool path_of(const struct tail *t, char path[ASK_PATH])
{
	static const char *const options[] = { "actor", "type", "kind" };
	const struct words *w = t->w;
	char number[32];

	snprintf(path, ASK_PATH, "/events");
	for (unsigned i = 0; i < 3; i++)
		if (!ask_query(w, path, options[i], words_text(w, options[i])))
			return false;
	if (words_flag(w, "no-follow") && !ask_query(w, path, "follow", "false"))
		return false;
	if (t->cursor >= 0) {
		snprintf(number, sizeof number, "%lld", t->cursor);
		return ask_query(w, path, "cursor", number);
	}
	if (words_text(w, "since")) {
		const char *since = words_text(w, "since");
		uint64_t ms = 0;

		if (!strchr(since, '-') && !words_duration(w, "since", 1, UINT64_C(366) * 86400000, &ms))
			return false;
		if (ms) {
			snprintf(number, sizeof number, "%lld", (long long)time(NULL) * 1000 - (long long)ms);
			since = number;
		}
		if (!ask_query(w, path, "since", since))
			return false;
	}
	if (words_text(w, "cursor"))
		return ask_query(w, path, "cursor", words_text(w, "cursor"));
	if (words_text(w, "last") || !words_text(w, "since"))
		return ask_query(w, path, "last", words_text(w, "last") ? words_text(w, "last") : "10");
	return true;
}

/* Below zero: there is a stream; else the exit code. */
static int open_stream(struct tail *t)
{
	struct client_reply r;
	char path[ASK_PATH], why[600];
	int code;

	if (!path_of(t, path))
		return CLI_USAGE;
	enum client_result result = client_stream_open(t->c, path, &t->stream, &r, why, sizeof why);

	if (result != CLIENT_OK)
		return words_failed(t->w, ask_result(result), "%s", why);
	if (t->stream.fd >= 0)
		return -1;
	code = ask_refused(t->c, t->w, &r);
	client_reply_free(&r);
	return code;
}

static int ended(const struct tail *t, const char *reason)
{
	if (t->cursor < 0)
		return words_failed(t->w, CLI_TEMPORARY, "%s", reason);
	return words_failed(t->w, CLI_TEMPORARY, "%s; go on with --cursor %lld", reason, t->cursor);
}

/* Its last words: below zero: go on. */
static int last_words(struct tail *t, const struct client_event *e)
{
	noh_json data;
	char reason[600] = "";

	if (noh_json_check(e->data, e->len, &data) != NOH_OK)
		return words_failed(t->w, CLI_FAILED, "%s says something that is no JSON: is it a noh server?", t->c->where);
	ask_text(data, "reason", reason, sizeof reason);
	t->cursor = ask_number(data, "cursor");
	if (strcmp(e->name, "cut") == 0)
		return -1;
	if (strcmp(e->name, "end") == 0 && words_flag(t->w, "no-follow"))
		return CLI_FINE;
	if (strcmp(e->name, "gone") == 0)
		return words_failed(t->w, CLI_FAILED, "%s", reason);
	return ended(t, reason);
}

static int tell(struct tail *t, const struct client_event *e)
{
	noh_json event;

	if (strcmp(e->name, "message") != 0)
		return last_words(t, e);
	if (noh_json_check(e->data, e->len, &event) != NOH_OK)
		return words_failed(t->w, CLI_FAILED, "%s says something that is no JSON: is it a noh server?", t->c->where);
	t->cursor = ask_number(event, "seq");
	if (words_flag(t->w, "json"))
		printf("%s\n", e->data);
	else
		ask_print_event(event);
	return fflush(stdout) == 0 ? -1 : CLI_FAILED;           /* nobody reads it any more */
}

static int follow(struct tail *t)
{
	struct client_event e;
	char why[256];
	int code = -1;

	while (code < 0) {
		switch (client_stream_next(&t->stream, &e, cli_now_ns() + AGAIN_NS, why, sizeof why)) {
		case NEXT_EVENT:
			code = tell(t, &e);
			if (code < 0 && strcmp(e.name, "cut") == 0) {    /* we were too slow: from where we were */
				client_stream_close(&t->stream);
				code = open_stream(t);
			}
			break;
		case NEXT_TIMED_OUT:
			break;
		case NEXT_ENDED:
			code = ended(t, "the server has ended the stream");
			break;
		case NEXT_BROKEN:
			code = words_failed(t->w, CLI_FAILED, "%s: %s", t->c->where, why);
			break;
		}
	}
	return code;
}

static bool words_fit(const struct words *w)
{
	uint64_t n = 0;

	if (words_text(w, "cursor") && (words_text(w, "last") || words_text(w, "since"))) {
		words_wrong(w, "--cursor says where to begin: neither --last nor --since besides");
		return false;
	}
	return words_count(w, 0, 0, "") && words_number(w, "last", 0, 1000, &n) && words_number(w, "cursor", 0, INT64_MAX, &n);
}

int events_main(int argc, char **argv)
{
	static char last[] = "--last";
	struct tail t = { .cursor = -1, .stream.fd = -1 };
	struct words w;
	struct client c;
	int code;

	for (int i = 1; i < argc; i++)           /* as tail(1) calls it */
		if (strcmp(argv[i], "-n") == 0)
			argv[i] = last;
	if (!words_read(&w, "events", argc, argv, &code))
		return code;
	t.w = &w;
	t.c = &c;
	if (ask_open(&c, &w, &code)) {
		code = words_fit(&w) ? open_stream(&t) : CLI_USAGE;
		if (code < 0)
			code = follow(&t);
	}
	client_stream_close(&t.stream);
	words_free(&w);
	return code;
}
