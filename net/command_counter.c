/* net/command_counter.c - counters: a plain key k is the actor counter:k.
 *
 * Every write takes IDEM key as its last option. Where any number of keys or pairs may follow (DEL, MSET) a
 * last-but-one argument IDEM is that option, never a key.
 */
#include "net/command_counter.h"

#include <string.h>

/* ── answers ──────────────────────────────────────────────────────────────────────────────────── */
static void format_added(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_counter_added *added = parts[0].body;

	(void)tag;
	if (out_failed(o, parts, n, sizeof *added))
		return;
	if (__builtin_expect(added->outcome == NOH_COUNTER_OK, 1))
		out_int(o, added->value);
	else
		out_error(o, "increment or decrement would overflow");
}

static void out_value(struct out *o, const noh_counter_value *v)
{
	if (v->existed)
		out_bulk_int(o, v->value);
	else
		out_nil(o);
}

static void format_value(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	(void)tag;
	if (!out_failed(o, parts, n, sizeof(noh_counter_value)))
		out_value(o, parts[0].body);
}

static void format_values(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	(void)tag;
	if (out_failed(o, parts, n, sizeof(noh_counter_value)))
		return;
	out_array(o, n);
	for (uint32_t i = 0; i < n; i++)
		out_value(o, parts[i].body);
}

enum { SET_OK, SET_OLD, SET_NUMBER };         /* tag.a: how SET and its kin answer */

static void format_set(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_counter_value *v = parts[0].body;

	if (out_failed(o, parts, n, sizeof *v))
		return;
	if (tag.a == SET_OLD)
		out_value(o, v);
	else if (tag.a == SET_NUMBER)
		out_int(o, v->outcome == NOH_COUNTER_OK);
	else if (v->outcome == NOH_COUNTER_OK)
		out_simple(o, "OK");
	else
		out_nil(o);
}

/* ── INCR and its kin ─────────────────────────────────────────────────────────────────────────── */
bool call_trailing_idem(struct call *c, uint32_t at, struct arg *key)
{
	key->len = 0;
	if (__builtin_expect(c->argc == at, 1))
		return true;
	if (c->argc == at + 2 && arg_is(&c->argv[at], "idem"))
		return call_idem(c, at, key);
	out_arity_error(call_out(c), c->command);
	return false;
}

static void add(struct call *c, int64_t by, uint32_t option)
{
	struct arg key;

	if (call_trailing_idem(c, option, &key))
		call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_ADD, &by, sizeof by, &key, format_added,
			 (struct tag){ 0, 0 });
}

void cmd_incr(struct call *c)
{
	add(c, 1, 2);
}

void cmd_decr(struct call *c)
{
	add(c, -1, 2);
}

void cmd_incrby(struct call *c)
{
	int64_t by;

	if (arg_int(&c->argv[2], &by))
		add(c, by, 3);
	else
		out_not_int(call_out(c));
}

void cmd_decrby(struct call *c)
{
	int64_t by;

	if (!arg_int(&c->argv[2], &by))
		out_not_int(call_out(c));
	else if (by == INT64_MIN)
		out_error(call_out(c), "decrement would overflow");
	else
		add(c, -by, 3);
}

/* ── times as options: EX, PX, EXAT, PXAT ─────────────────────────────────────────────────────── */
bool read_time(struct call *c, const struct arg *a, bool seconds, uint32_t how, int64_t least, int64_t *time)
{
	int64_t n, most = how == NOH_COUNTER_IN ? NOH_COUNTER_IN_MAX : NOH_COUNTER_TIME_MAX;

	if (!arg_int(a, &n)) {
		out_not_int(call_out(c));
		return false;
	}
	if (n < least || __builtin_mul_overflow(n, seconds ? 1000 : 1, &n) || n > most) {
		out_error(call_out(c), "invalid expire time in '%s' command", c->command->name);
		return false;
	}
	*time = n > -NOH_COUNTER_TIME_MAX ? n : -NOH_COUNTER_TIME_MAX;    /* what is over is over, however long */
	return true;
}

/* Is argv[*at] one of them? Then it and its number are taken. 1: yes, 0: no, -1: wrong, the error is written. */
static int time_option(struct call *c, uint32_t *at, uint32_t *flags, int64_t *time)
{
	static const struct { const char *word; bool seconds; uint32_t flag; } words[] = {
		{ "ex", true, NOH_COUNTER_IN }, { "px", false, NOH_COUNTER_IN },
		{ "exat", true, NOH_COUNTER_AT }, { "pxat", false, NOH_COUNTER_AT },
	};

	for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (!arg_is(&c->argv[*at], words[i].word))
			continue;
		if (*at + 1 == c->argc ||
		    (*flags & (NOH_COUNTER_IN | NOH_COUNTER_AT | NOH_COUNTER_KEEP | NOH_COUNTER_PERSIST))) {
			out_syntax_error(call_out(c));
			return -1;
		}
		*flags |= words[i].flag;
		return read_time(c, &c->argv[++*at], words[i].seconds, words[i].flag, 1, time) ? 1 : -1;
	}
	return 0;
}

/* ── INCREX ───────────────────────────────────────────────────────────────────────────────────── */
static void format_increx(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_counter_added *added = parts[0].body;

	if (out_failed(o, parts, n, sizeof *added))
		return;
	if (added->outcome == NOH_COUNTER_OVERFLOW && tag.a) {
		out_error(o, "increment or decrement would overflow");   /* up to the bound, and too far to tell */
		return;
	}
	out_array(o, 2);
	out_int(o, added->value);
	out_int(o, added->applied);
}

enum { SEEN_BY = 1, SEEN_LOW = 2, SEEN_HIGH = 4, SEEN_ENX = 8 };

/* One option of INCREX at argv[*at]; false: the error is written. */
static bool increx_option(struct call *c, uint32_t *at, noh_counter_add *add_, uint32_t *seen, struct arg *key)
{
	static const struct { const char *word; uint32_t bit; } numbers[] = {
		{ "byint", SEEN_BY }, { "lbound", SEEN_LOW }, { "ubound", SEEN_HIGH } };
	int64_t *const fields[] = { &add_->by, &add_->low, &add_->high };
	const struct arg *a = &c->argv[*at];
	int time = time_option(c, at, &add_->flags, &add_->time);

	if (time != 0)
		return time > 0;
	for (uint32_t i = 0; i < 3; i++) {
		if (!arg_is(a, numbers[i].word) || (*seen & numbers[i].bit) || *at + 1 == c->argc)
			continue;
		*seen |= numbers[i].bit;
		if (arg_int(&c->argv[++*at], fields[i]))
			return true;
		out_not_int(call_out(c));
		return false;
	}
	if (arg_is(a, "byfloat")) {
		out_error(call_out(c), "BYFLOAT is not supported: a counter is a 64-bit integer");
		return false;
	}
	if (arg_is(a, "idem") && key->len == 0)
		return call_idem(c, (*at)++, key);
	if (arg_is(a, "saturate") && !(add_->flags & NOH_COUNTER_SATURATE)) {
		add_->flags |= NOH_COUNTER_SATURATE;
		return true;
	}
	if (arg_is(a, "enx") && !(*seen & SEEN_ENX)) {
		*seen |= SEEN_ENX;
		return true;
	}
	if (arg_is(a, "persist") && !(add_->flags & (NOH_COUNTER_IN | NOH_COUNTER_AT | NOH_COUNTER_PERSIST))) {
		add_->flags |= NOH_COUNTER_PERSIST;
		return true;
	}
	out_syntax_error(call_out(c));
	return false;
}

void cmd_increx(struct call *c)
{
	noh_counter_add body = { .by = 1, .low = INT64_MIN, .high = INT64_MAX };
	struct arg key = { NULL, 0 };
	uint32_t seen = 0;

	for (uint32_t i = 2; i < c->argc; i++)
		if (!increx_option(c, &i, &body, &seen, &key))
			return;
	if (seen & SEEN_ENX) {
		if (!(body.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT))) {
			out_error(call_out(c), "ENX needs one of EX, PX, EXAT and PXAT");
			return;
		}
		body.flags |= NOH_COUNTER_IF_NO_TIME;
	}
	if (body.low > body.high) {
		out_error(call_out(c), "LBOUND is above UBOUND");
		return;
	}
	call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_ADD, &body, sizeof body, &key, format_increx,
		 (struct tag){ body.flags & NOH_COUNTER_SATURATE, 0 });
}

/* ── GET, SET and their kin ───────────────────────────────────────────────────────────────────── */
void cmd_get(struct call *c)
{
	call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_GET, NULL, 0, NULL, format_value, (struct tag){ 0, 0 });
}

void cmd_getdel(struct call *c)
{
	struct arg key;

	if (call_trailing_idem(c, 2, &key))
		call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_DELETE, NULL, 0, &key, format_value,
			 (struct tag){ 0, 0 });
}

static bool read_value(struct call *c, const struct arg *a, int64_t *value)
{
	if (arg_int(a, value))
		return true;
	out_error(call_out(c), "value is not an integer or out of range: a key holds a 64-bit integer here");
	return false;
}

static void set(struct call *c, const noh_counter_set *body, const struct arg *key, uint64_t how)
{
	/* Without time and condition the number alone is the message: it is the common case, and the shorter. */
	bool plain = body->flags == 0;

	call_one(c, TYPE_COUNTER, &c->argv[1], NOH_COUNTER_SET, plain ? (const void *)&body->value : body,
		 plain ? sizeof body->value : sizeof *body, key, format_set, (struct tag){ how, 0 });
}

/* One option of SET at argv[*at]; false: the error is written. */
static bool set_option(struct call *c, uint32_t *at, noh_counter_set *body, uint64_t *how, struct arg *key)
{
	const struct arg *a = &c->argv[*at];
	int time = time_option(c, at, &body->flags, &body->time);

	if (time != 0)
		return time > 0;
	if (arg_is(a, "nx") && !(body->flags & NOH_COUNTER_IF_THERE)) {
		body->flags |= NOH_COUNTER_IF_NONE;
	} else if (arg_is(a, "xx") && !(body->flags & NOH_COUNTER_IF_NONE)) {
		body->flags |= NOH_COUNTER_IF_THERE;
	} else if (arg_is(a, "keepttl") && !(body->flags & (NOH_COUNTER_IN | NOH_COUNTER_AT))) {
		body->flags |= NOH_COUNTER_KEEP;
	} else if (arg_is(a, "get")) {
		*how = SET_OLD;
	} else if (arg_is(a, "idem") && key->len == 0) {
		return call_idem(c, (*at)++, key);
	} else {
		out_syntax_error(call_out(c));
		return false;
	}
	return true;
}

void cmd_set(struct call *c)
{
	noh_counter_set body = { 0 };
	struct arg key = { NULL, 0 };
	uint64_t how = SET_OK;

	for (uint32_t i = 3; i < c->argc; i++)
		if (!set_option(c, &i, &body, &how, &key))
			return;
	if (read_value(c, &c->argv[2], &body.value))
		set(c, &body, &key, how);
}

/* key value [IDEM idem] */
static void set_plainly(struct call *c, uint32_t flags, uint64_t how)
{
	noh_counter_set body = { .flags = flags };
	struct arg key;

	if (call_trailing_idem(c, 3, &key) && read_value(c, &c->argv[2], &body.value))
		set(c, &body, &key, how);
}

void cmd_setnx(struct call *c)
{
	set_plainly(c, NOH_COUNTER_IF_NONE, SET_NUMBER);
}

void cmd_getset(struct call *c)
{
	set_plainly(c, 0, SET_OLD);
}

/* key time value [IDEM idem] */
static void set_for_a_while(struct call *c, bool seconds)
{
	noh_counter_set body = { .flags = NOH_COUNTER_IN };
	struct arg key;

	if (call_trailing_idem(c, 4, &key) && read_time(c, &c->argv[2], seconds, NOH_COUNTER_IN, 1, &body.time) &&
	    read_value(c, &c->argv[3], &body.value))
		set(c, &body, &key, SET_OK);
}

void cmd_setex(struct call *c)
{
	set_for_a_while(c, true);
}

void cmd_psetex(struct call *c)
{
	set_for_a_while(c, false);
}

/* ── several keys ─────────────────────────────────────────────────────────────────────────────── */
void call_keys(struct call *c, uint32_t kind, uint32_t n, const struct arg *key, format_fn *format)
{
	struct request inside[REQUESTS_INSIDE], *requests = requests_open(c, n, inside);

	if (requests == NULL)
		return;
	for (uint32_t i = 0; i < n; i++)
		requests[i] = (struct request){ .op = REQUEST_CALL, .type = TYPE_COUNTER, .id = c->argv[1 + i].at,
						.id_len = c->argv[1 + i].len, .kind = kind,
						.key = key && key->len ? key->at : NULL, .key_len = key ? key->len : 0 };
	call_actors(c, requests, n, format, (struct tag){ 0, 0 });
	requests_close(requests, n, inside);
}

int page_option(struct call *c, uint32_t *at, uint64_t *cursor, uint64_t *limit, uint64_t most)
{
	bool is_cursor = arg_is(&c->argv[*at], "cursor");

	if (!is_cursor && !arg_is(&c->argv[*at], "limit"))
		return 0;
	if (*at + 1 == c->argc) {
		out_syntax_error(call_out(c));
		return -1;
	}
	const struct arg *value = &c->argv[*at + 1];

	*at += 2;
	if (is_cursor && arg_uint(value, cursor))
		return 1;
	if (!is_cursor && arg_uint(value, limit) && *limit >= 1 && *limit <= most)
		return 1;
	if (is_cursor)
		out_error(call_out(c), "invalid cursor");
	else
		out_error(call_out(c), "LIMIT must be 1 to %u", (unsigned)most);
	return -1;
}

bool read_page(struct call *c, uint32_t at, uint64_t *cursor, uint64_t *limit, uint64_t most)
{
	*cursor = *limit = 0;
	while (at < c->argc) {
		int taken = page_option(c, &at, cursor, limit, most);

		if (taken == 0)
			out_syntax_error(call_out(c));
		if (taken != 1)
			return false;
	}
	return true;
}

void cmd_mget(struct call *c)
{
	call_keys(c, NOH_COUNTER_GET, c->argc - 1, NULL, format_values);
}

static void format_mset(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	(void)tag;
	if (!out_failed(o, parts, n, sizeof(noh_counter_value)))
		out_simple(o, "OK");
}

bool step_too_big(struct call *c, uint32_t n)
{
	if (n > NOH_STEP_PARTS)
		out_error(call_out(c), "-TOOBIG %u at one instant: at most %u in one command", n, NOH_STEP_PARTS);
	return n > NOH_STEP_PARTS;
}

bool call_last_idem(struct call *c, uint32_t *argc, struct arg *key)
{
	*argc = c->argc;
	key->len = 0;
	if (c->argc < 4 || !arg_is(&c->argv[c->argc - 2], "idem"))
		return true;
	*argc = c->argc - 2;
	return call_idem(c, c->argc - 2, key);
}

void cmd_mset(struct call *c)
{
	struct roster roster;
	struct arg key;
	uint32_t argc, n = 0;

	if (!call_last_idem(c, &argc, &key))
		return;
	if (argc % 2 == 0) {
		out_arity_error(call_out(c), c->command);
		return;
	}
	uint32_t pairs = (argc - 1) / 2;

	if (!roster_open(c, &roster, pairs))
		return;
	for (uint32_t i = 0; i < pairs; i++) {
		const struct arg *k = &c->argv[1 + 2 * i];
		int64_t value;

		if (!read_value(c, k + 1, &value)) {
			roster_close(&roster);
			return;
		}
		uint32_t at = roster_add(&roster, k);           /* of a key named twice the last value counts */

		if (at == n)
			n++;
		roster.bodies[at].value = value;
		roster.requests[at] = (struct request){ .op = REQUEST_CALL, .type = TYPE_COUNTER, .id = k->at,
						       .id_len = k->len, .kind = NOH_COUNTER_SET,
						       .body = &roster.bodies[at].value, .len = sizeof value };
	}
	if (key.len) {
		roster.requests[0].key = key.at;
		roster.requests[0].key_len = key.len;
	}
	if (!step_too_big(c, n))
		call_step(c, roster.requests, n, format_mset, (struct tag){ 0, 0 });
	roster_close(&roster);
}
