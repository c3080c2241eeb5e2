/* net/command_keys.c - keys as such: are they there, and for how long. */
#include "net/command_counter.h"

static void format_count(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	int64_t there = 0;

	(void)tag;
	if (out_failed(o, parts, n, sizeof(noh_counter_value)))
		return;
	for (uint32_t i = 0; i < n; i++)
		there += ((const noh_counter_value *)parts[i].body)->existed != 0;
	out_int(o, there);
}

void cmd_exists(struct call *c)
{
	call_keys(c, NOH_COUNTER_GET, c->argc - 1, NULL, format_count);
}

/* With an idempotency key a second message to the same counter would be taken for a retry of the first, and
 * counted: so each is asked once. */
static void delete_once(struct call *c, uint32_t n, const struct arg *key)
{
	struct roster roster;

	if (!roster_open(c, &roster, n))
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct arg *k = &c->argv[1 + i];
		uint32_t at = roster_add(&roster, k);

		roster.requests[at] = (struct request){ .op = REQUEST_CALL, .type = TYPE_COUNTER, .id = k->at,
						       .id_len = k->len, .kind = NOH_COUNTER_DELETE, .key = key->at,
						       .key_len = key->len };
	}
	call_actors(c, roster.requests, roster.count, format_count, (struct tag){ 0, 0 });
	roster_close(&roster);
}

void cmd_del(struct call *c)
{
	struct arg key;
	uint32_t argc;

	if (!call_last_idem(c, &argc, &key))
		return;
	if (key.len)
		delete_once(c, argc - 1, &key);
	else
		call_keys(c, NOH_COUNTER_DELETE, argc - 1, NULL, format_count);
}

static void format_type(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_counter_value *v = parts[0].body;

	(void)tag;
	if (!out_failed(o, parts, n, sizeof *v))
		out_simple(o, v->existed ? "string" : "none");
}

void cmd_type(struct call *c)
{
	call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_GET, NULL, 0, NULL, format_type, (struct tag){ 0, 0 });
}

/* ── how long does it stay ────────────────────────────────────────────────────────────────────── */
enum { LEFT_SECONDS, LEFT_MS, AT_SECONDS, AT_MS };

static void format_times(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_counter_times *t = parts[0].body;

	if (out_failed(o, parts, n, sizeof *t))
		return;
	int64_t ms = tag.a == LEFT_SECONDS || tag.a == LEFT_MS ? t->left : t->at;

	if (ms >= 0 && (tag.a == LEFT_SECONDS || tag.a == AT_SECONDS))
		ms = (ms + 500) / 1000;               /* to the nearest, as Redis does */
	out_int(o, ms);
}

static void times(struct call *c, uint64_t how)
{
	call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_TTL, NULL, 0, NULL, format_times, (struct tag){ how, 0 });
}

void cmd_ttl(struct call *c)
{
	times(c, LEFT_SECONDS);
}

void cmd_pttl(struct call *c)
{
	times(c, LEFT_MS);
}

void cmd_expiretime(struct call *c)
{
	times(c, AT_SECONDS);
}

void cmd_pexpiretime(struct call *c)
{
	times(c, AT_MS);
}

/* ── let it go away, or stay ──────────────────────────────────────────────────────────────────── */
static void format_expired(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_counter_times *t = parts[0].body;

	(void)tag;
	if (!out_failed(o, parts, n, sizeof *t))
		out_int(o, t->outcome == NOH_COUNTER_OK);
}

static bool expire_option(struct call *c, uint32_t *at, uint32_t *flags, struct arg *key)
{
	static const struct { const char *word; uint32_t flag; } words[] = {
		{ "nx", NOH_COUNTER_IF_NO_TIME }, { "xx", NOH_COUNTER_IF_TIME },
		{ "gt", NOH_COUNTER_IF_LATER }, { "lt", NOH_COUNTER_IF_EARLIER } };
	const struct arg *a = &c->argv[*at];
	char text[64];

	for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (arg_is(a, words[i].word)) {
			*flags |= words[i].flag;
			return true;
		}
	if (arg_is(a, "idem") && key->len == 0)
		return call_idem(c, (*at)++, key);
	arg_show(a, text, sizeof text);
	out_error(call_out(c), "Unsupported option %s", text);
	return false;
}

static void expire(struct call *c, uint32_t how, bool seconds)
{
	noh_counter_expire body = { .flags = how };
	struct arg key = { NULL, 0 };
	const uint32_t others = NOH_COUNTER_IF_TIME | NOH_COUNTER_IF_LATER | NOH_COUNTER_IF_EARLIER;

	for (uint32_t i = 3; i < c->argc; i++)
		if (!expire_option(c, &i, &body.flags, &key))
			return;
	if ((body.flags & NOH_COUNTER_IF_NO_TIME) && (body.flags & others)) {
		out_error(call_out(c), "NX and XX, GT or LT options at the same time are not compatible");
		return;
	}
	if ((body.flags & NOH_COUNTER_IF_LATER) && (body.flags & NOH_COUNTER_IF_EARLIER)) {
		out_error(call_out(c), "GT and LT options at the same time are not compatible");
		return;
	}
	if (read_time(c, &c->argv[2], seconds, how, INT64_MIN, &body.time))
		call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_EXPIRE, &body, sizeof body, &key, format_expired,
			 (struct tag){ 0, 0 });
}

void cmd_expire(struct call *c)
{
	expire(c, NOH_COUNTER_IN, true);
}

void cmd_pexpire(struct call *c)
{
	expire(c, NOH_COUNTER_IN, false);
}

void cmd_expireat(struct call *c)
{
	expire(c, NOH_COUNTER_AT, true);
}

void cmd_pexpireat(struct call *c)
{
	expire(c, NOH_COUNTER_AT, false);
}

void cmd_persist(struct call *c)
{
	noh_counter_expire body = { .flags = NOH_COUNTER_PERSIST };
	struct arg key;

	if (call_trailing_idem(c, 2, &key))
		call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_EXPIRE, &body, sizeof body, &key, format_expired,
			 (struct tag){ 0, 0 });
}
