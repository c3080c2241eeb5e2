/* net/command_events.c - EVENTS.READ, and how actors are: ACTOR.DESCRIBE, ACTOR.TREE, ACTOR.RESUME, QUARANTINE.LIST. */
#include "net/command.h"

#include "core/error.h"
#include "net/feed.h"
#include "net/session.h"
#include "net/tell.h"

#include <string.h>

enum { READ_USUAL = 100, READ_MOST = 1000, BLOCK_MOST_MS = 86400000 };
#define BLOCK_FOREVER_MS 2147000000u       /* 24 days: BLOCK 0 */

/* ── EVENTS.READ ──────────────────────────────────────────────────────────────────────────────── */

/* A text of 1 to most bytes, without a NUL, once. */
static bool take_text(struct call *c, const struct arg *a, char *to, size_t most, const char *what)
{
	if (*to == 0 && a->len >= 1 && a->len <= most && !memchr(a->at, 0, a->len)) {
		memcpy(to, a->at, a->len);
		to[a->len] = 0;
		return true;
	}
	out_error(call_out(c), "%s must be 1 to %zu bytes without a NUL, and be there once", what, most);
	return false;
}

static bool take_address(struct call *c, const struct arg *a, char to[ADDRESS_MAX + 1])
{
	struct address address;

	if (address_parse(&address, a->at, a->len) != NOH_OK) {
		out_error(call_out(c), "-BADADDRESS %s", noh_why());
		return false;
	}
	memcpy(to, a->at, a->len);
	to[a->len] = 0;
	to[address.type_len] = ':';              /* it may have been a slash */
	return true;
}

static bool take_number(struct call *c, const struct arg *a, uint64_t least, uint64_t most, const char *what, uint64_t *n)
{
	if (arg_uint(a, n) && *n >= least && *n <= most)
		return true;
	out_error(call_out(c), "%s must be a number from %llu to %llu", what, (unsigned long long)least, (unsigned long long)most);
	return false;
}

/* $: behind the newest there is now. */
static bool take_cursor(struct call *c, const struct arg *a, uint64_t *cursor)
{
	if (a->len != 1 || a->at[0] != '$')
		return take_number(c, a, 0, INT64_MAX, "CURSOR (or $, behind the newest)", cursor);
	int rc = noh_events_bounds(call_box(c), NULL, cursor);

	if (rc != NOH_OK)
		out_status(call_out(c), rc);
	return rc == NOH_OK;
}

static bool read_option(struct call *c, const struct arg *a, struct feed_wish *w)
{
	uint64_t n;

	if (arg_is(a, "cursor"))
		return take_cursor(c, a + 1, &w->cursor);
	if (arg_is(a, "actor"))
		return take_address(c, a + 1, w->actor);
	if (arg_is(a, "type"))
		return take_text(c, a + 1, w->type, TYPE_NAME_MAX, "TYPE");
	if (arg_is(a, "kind"))
		return take_text(c, a + 1, w->kind, NOH_EVENT_KIND, "KIND");
	if (arg_is(a, "since"))
		return take_number(c, a + 1, 0, INT64_MAX, "SINCE", &w->since_ms);
	if (arg_is(a, "count")) {
		if (!take_number(c, a + 1, 1, READ_MOST, "COUNT", &n))
			return false;
		w->limit = (uint32_t)n;
		return true;
	}
	if (arg_is(a, "block")) {
		if (!take_number(c, a + 1, 0, BLOCK_MOST_MS, "BLOCK", &n))
			return false;
		w->block_ms = n ? (uint32_t)n : BLOCK_FOREVER_MS;
		return true;
	}
	out_syntax_error(call_out(c));
	return false;
}

static void format_events(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	struct feed_answer head;

	(void)tag;
	if (out_failed(o, parts, n, sizeof head))
		return;
	memcpy(&head, parts[0].body, sizeof head);
	out_array(o, 2);
	out_int(o, (int64_t)head.cursor);
	out_array(o, head.count);
	out_bytes(o, (const char *)parts[0].body + sizeof head, parts[0].len - sizeof head);
}

void cmd_events_read(struct call *c)
{
	struct feed_wish w = { .limit = READ_USUAL, .last = UINT32_MAX, .proto = call_session(c)->proto };

	for (uint32_t i = 1; i < c->argc; i += 2) {
		if (i + 1 == c->argc) {
			out_syntax_error(call_out(c));
			return;
		}
		if (!read_option(c, &c->argv[i], &w))
			return;
	}
	call_events(c, &w, format_events, (struct tag){ 0, 0 });
}

/* ── how actors are ───────────────────────────────────────────────────────────────────────────── */

static void format_told(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	(void)tag;
	if (parts[0].status == NOH_END)
		out_error(o, "-NOACTOR there is nothing to resume: it is healthy, or nothing is known of it");
	else if (out_failed(o, parts, n, 0))
		return;
	else if (parts[0].len)
		out_bytes(o, parts[0].body, parts[0].len);
	else
		out_simple(o, "OK");
}

static void tell(struct call *c, errand_fn *run, struct tell_wish *w)
{
	w->proto = call_session(c)->proto;
	call_errand(c, run, w, sizeof *w, 2 * TELL_MS, format_told, (struct tag){ 0, 0 });
}

/* "word n" at argv[at], or nothing. */
static bool take_limit(struct call *c, uint32_t at, const char *word, uint64_t least, uint64_t most, uint32_t *limit)
{
	uint64_t n = *limit;

	if (at == c->argc)
		return true;
	if (at + 2 != c->argc || !arg_is(&c->argv[at], word)) {
		out_syntax_error(call_out(c));
		return false;
	}
	if (!take_number(c, &c->argv[at + 1], least, most, word, &n))
		return false;
	*limit = (uint32_t)n;
	return true;
}

/* An address, or the name of a type. */
static bool take_whom(struct call *c, const struct arg *a, char to[ADDRESS_MAX + 1])
{
	if (memchr(a->at, ':', a->len) || memchr(a->at, '/', a->len))
		return take_address(c, a, to);
	to[0] = 0;
	if (!take_text(c, a, to, TYPE_NAME_MAX, "a type"))
		return false;
	if (noh_find_type(call_box(c), to))
		return true;
	out_status(call_out(c), NOH_ENOTYPE);
	return false;
}

void cmd_actor_describe(struct call *c)
{
	struct tell_wish w = { .limit = TELL_EVENTS };

	if (take_address(c, &c->argv[1], w.whom) && take_limit(c, 2, "events", 0, TELL_EVENTS_MOST, &w.limit))
		tell(c, tell_actor, &w);
}

void cmd_actor_tree(struct call *c)
{
	struct tell_wish w = { .limit = TELL_TREE };
	bool rooted = c->argc > 1 && !arg_is(&c->argv[1], "limit");

	if (rooted && !take_address(c, &c->argv[1], w.whom))
		return;
	if (take_limit(c, rooted ? 2 : 1, "limit", 1, TELL_TREE_MOST, &w.limit))
		tell(c, tell_tree, &w);
}

void cmd_quarantine_list(struct call *c)
{
	struct tell_wish w = { .limit = TELL_LIST };
	bool typed = c->argc > 2 && arg_is(&c->argv[1], "type");

	if (typed && !take_whom(c, &c->argv[2], w.whom))
		return;
	if (take_limit(c, typed ? 3 : 1, "limit", 1, TELL_LIST_MOST, &w.limit))
		tell(c, tell_quarantine, &w);
}

void cmd_actor_resume(struct call *c)
{
	struct tell_wish w = { .limit = 0 };

	if (!take_whom(c, &c->argv[1], w.whom))
		return;
	call_audit(c, "quarantine resume", w.whom, NULL);
	tell(c, tell_resume, &w);
}
