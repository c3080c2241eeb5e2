/* tools/ask_wait.c - noh wait: until an actor is as wanted, or the time is up.
 *
 * It looks at the actor, and if that is not what is wanted follows its events from there: each is a reason to look again.
 * Not everything is an event (a mailbox that empties, an actor that goes to sleep), so it looks once a second anyway.
 */
#include "tools/ask.h"
#include "tools/predicate.h"

#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

struct waiting {
	const struct words  *w;
	struct client        c;
	const char          *actor;
	struct predicate     wanted;
	uint64_t             until_ns;
	struct client_stream stream;
	long long            cursor;
	bool                 met;          /* the server was there once: then it may be away for a while */
	char                 seen[300];    /* how it was when last looked at */
};

/* ── looking ── */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void collect(noh_json a, struct predicate_facts *f, char texts[5][320])
{
	static const struct { enum predicate_field field; const char *name; } names[] = {
		{ FACT_STATE, "state" }, { FACT_HEALTH, "health" }, { FACT_PARENT, "parent" }, { FACT_ERROR, "reconcile_error" },
		{ FACT_FAILURE, "last_failure" } };
	static const struct { enum predicate_field field; const char *name; } numbers[] = {
		{ FACT_REVISION, "observed_revision" }, { FACT_DESIRED, "desired_revision" }, { FACT_RESTARTS, "restarts" },
		{ FACT_MAILBOX, "mailbox_size" }, { FACT_CHILDREN, "children" } };

	memset(f, 0, sizeof *f);
	for (unsigned i = 0; i < 5; i++) {
		f->text[names[i].field] = ask_text(a, names[i].name, texts[i], 320);
		f->number[numbers[i].field] = (uint64_t)ask_number(a, numbers[i].name);
	}
	f->text[FACT_EVENT] = "";
	f->text[FACT_EXISTS] = ask_bool(a, "exists") ? "true" : "false";
}

/* Is it as wanted? Below zero: not yet; else the exit code. */
static int judge(struct waiting *x, const struct client_reply *r)
{
	struct predicate_facts facts;
	char texts[5][320];
	noh_json a;

	if (noh_json_check(r->body, r->len, &a) != NOH_OK || noh_json_type_of(a) != NOH_JSON_OBJECT)
		return words_failed(x->w, CLI_FAILED, "%s answers with something that is no JSON object: is it a noh server?", x->c.where);
	collect(a, &facts, texts);
	if (x->cursor < 0)
		x->cursor = ask_number(a, "cursor");
	snprintf(x->seen, sizeof x->seen, "state %s, revision %llu of %llu, %llu restarts, %llu messages waiting", facts.text[FACT_STATE],
		 (unsigned long long)facts.number[FACT_REVISION], (unsigned long long)facts.number[FACT_DESIRED],
		 (unsigned long long)facts.number[FACT_RESTARTS], (unsigned long long)facts.number[FACT_MAILBOX]);
	if (!predicate_holds(&x->wanted, &facts))
		return -1;
	if (words_flag(x->w, "json"))
		printf("%.*s\n", (int)a.len, a.at);
	else
		printf("%s: %s\n", x->actor, x->seen);
	return CLI_FINE;
}

static int look(struct waiting *x)
{
	struct client c = x->c;
	struct client_reply r;
	char path[ASK_PATH] = "/actor/describe?events=0", why[600];
	uint64_t now = cli_now_ns();
	int code;

	if (!ask_query(x->w, path, "actor", x->actor))
		return CLI_USAGE;
	c.timeout_ms = least(10000, now < x->until_ns ? (x->until_ns - now) / 1000000 + 1 : 1);
	enum client_result result = client_call(&c, "GET", path, "", NULL, 0, &r, why, sizeof why);

	if (result != CLIENT_OK)
		return x->met ? -1 : words_failed(x->w, ask_result(result), "%s", why);
	x->met = true;
	if (r.status == 503)
		code = -1;                       /* it stops or has too much to do: later */
	else
		code = r.status == 200 ? judge(x, &r) : ask_refused(&x->c, x->w, &r);
	client_reply_free(&r);
	return code;
}

/* ── waiting ── */

/* Follows its events; without them it looks once a second. */
static void listen_to_it(struct waiting *x)
{
	struct client_reply r;
	char path[ASK_PATH] = "/events", number[32], why[600];
	struct client c = x->c;

	if (x->stream.fd >= 0 || x->cursor < 0)
		return;
	c.timeout_ms = 2000;
	snprintf(number, sizeof number, "%lld", x->cursor);
	if (!ask_query(x->w, path, "actor", x->actor) || !ask_query(x->w, path, "cursor", number))
		return;
	if (client_stream_open(&c, path, &x->stream, &r, why, sizeof why) != CLIENT_OK)
		return;
	if (r.status == 410 || r.status == 400)
		x->cursor = -1;                  /* gone, or of another data directory: from the next look on */
	client_reply_free(&r);
}

static void note(struct waiting *x, const struct client_event *e)
{
	noh_json event;
	char kind[80];

	if (noh_json_check(e->data, e->len, &event) != NOH_OK || strcmp(e->name, "message") != 0)
		return;
	x->cursor = ask_number(event, "seq");
	predicate_event(&x->wanted, ask_text(event, "kind", kind, sizeof kind));
}

/* Until something happens to it, a second at most; and all that has happened by then. */
static void wait_a_while(struct waiting *x)
{
	uint64_t until = least(cli_now_ns() + SECOND, x->until_ns);
	struct client_event e;
	char why[256];
	enum client_next next;

	if (x->stream.fd < 0) {
		uint64_t now = cli_now_ns();

		cli_sleep_ns(now < until ? until - now : 0);
		return;
	}
	next = client_stream_next(&x->stream, &e, until, why, sizeof why);
	while (next == NEXT_EVENT) {
		note(x, &e);
		next = client_stream_next(&x->stream, &e, 0, why, sizeof why);
	}
	if (next == NEXT_TIMED_OUT)
		return;
	client_stream_close(&x->stream);
	cli_sleep_ns(SECOND / 10);
}

static int wait_for_it(struct waiting *x)
{
	int code = look(x);

	while (code < 0) {
		if (cli_now_ns() >= x->until_ns)
			return words_failed(x->w, CLI_TIMEOUT, "%s is not so in time: %s", x->actor, *x->seen ? x->seen : "the server is away");
		listen_to_it(x);
		wait_a_while(x);
		code = look(x);
	}
	return code;
}

static bool read_words(struct waiting *x)
{
	const struct words *w = x->w;
	const char *text = words_text(w, "for");
	char why[300];
	size_t at;

	x->actor = words_text(w, "actor");
	if (!words_count(w, 0, x->actor ? 0 : 1, ""))
		return false;
	if (!x->actor && w->count)
		x->actor = w->plain[0];
	if (!x->actor || !text) {
		words_wrong(w, "%s: noh wait --actor TYPE:ID --for 'state=active and revision>=3'", x->actor ? "for what?" : "for whom?");
		return false;
	}
	if (predicate_read(&x->wanted, text, &at, why, sizeof why))
		return true;
	words_wrong(w, "--for, at %zu: %s\n  %s\n  %*s^", at + 1, why, text, (int)at, "");
	return false;
}

int wait_main(int argc, char **argv)
{
	struct waiting x = { .cursor = -1, .stream.fd = -1 };
	struct words w;
	int code;

	if (!words_read(&w, "wait", argc, argv, &code))
		return code;
	x.w = &w;
	if (ask_open(&x.c, &w, &code)) {
		x.until_ns = cli_now_ns() + x.c.timeout_ms * 1000000u;
		code = read_words(&x) ? wait_for_it(&x) : CLI_USAGE;
	}
	client_stream_close(&x.stream);
	words_free(&w);
	return code;
}
