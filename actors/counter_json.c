/* actors/counter_json.c - the messages of a counter as JSON: docs/http.md lists them. */
#include "actors/json_types.h"

#define ANY_INT .type = NOH_JSON_INT, .least = INT64_MIN, .most = INT64_MAX
#define TTL_FIELD { .name = "ttl_ms", .type = NOH_JSON_INT, .least = 1, .most = NOH_COUNTER_IN_MAX }
#define AT_FIELD { .name = "expires_at", .type = NOH_JSON_TIME }

/* ── incr, decr ── */

enum { BY, LOW, HIGH, SATURATE, ADD_TTL, ADD_AT, ADD_PERSIST, ADD_IF, ADD_FIELDS };
static const noh_json_field add_fields[ADD_FIELDS] = {
	[BY] = { .name = "by", ANY_INT, .preset = 1 },
	[LOW] = { .name = "low", ANY_INT, .preset = INT64_MIN },
	[HIGH] = { .name = "high", ANY_INT, .preset = INT64_MAX },
	[SATURATE] = { .name = "saturate", .type = NOH_JSON_BOOL },
	[ADD_TTL] = TTL_FIELD,
	[ADD_AT] = AT_FIELD,
	[ADD_PERSIST] = { .name = "persist", .type = NOH_JSON_BOOL },
	[ADD_IF] = { .name = "if", .type = NOH_JSON_STRING },
};

/* At most one of ttl_ms, expires_at and persist. */
static int read_times(noh_json_message *m, const noh_json_got *ttl, const noh_json_got *at, bool persist, uint32_t *flags,
		      int64_t *time)
{
	if (ttl->given + at->given + persist > 1)
		return json_says(m, "\"ttl_ms\", \"expires_at\" and \"persist\" exclude each other");
	*flags = ttl->given ? NOH_COUNTER_IN : at->given ? NOH_COUNTER_AT : persist ? NOH_COUNTER_PERSIST : 0;
	*time = ttl->given ? ttl->n : at->given ? at->n : 0;
	return NOH_OK;
}

static int add(noh_json_message *m, const noh_json_got *got, int64_t by)
{
	noh_counter_add b = { .by = by, .low = got[LOW].n, .high = got[HIGH].n };
	int rc = read_times(m, &got[ADD_TTL], &got[ADD_AT], got[ADD_PERSIST].n, &b.flags, &b.time);

	if (rc != NOH_OK)
		return rc;
	if (b.low > b.high)
		return json_says(m, "\"low\" is above \"high\"");
	if (got[ADD_IF].given && !noh_json_is(got[ADD_IF].value, "no_expiry"))
		return json_says(m, "\"if\" can only be \"no_expiry\" here");
	if (got[ADD_IF].given && !(b.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT)))
		return json_says(m, "\"if\" needs \"ttl_ms\" or \"expires_at\"");
	b.flags |= (got[ADD_IF].given ? NOH_COUNTER_IF_NO_TIME : 0u) | (got[SATURATE].n ? NOH_COUNTER_SATURATE : 0u);
	if (!b.flags && b.low == INT64_MIN && b.high == INT64_MAX)
		return json_body(m, &b.by, sizeof b.by);         /* many of them are one record */
	return json_body(m, &b, sizeof b);
}

static int incr(noh_json_message *m, const noh_json_got *got)
{
	return add(m, got, got[BY].n);
}

static int decr(noh_json_message *m, const noh_json_got *got)
{
	if (got[BY].n == INT64_MIN)
		return json_says(m, "\"by\" cannot be negated within 64 bits");
	return add(m, got, -got[BY].n);
}

/* ── set, expire ── */

enum { VALUE, SET_TTL, SET_AT, SET_KEEP, SET_IF, SET_FIELDS };
static const noh_json_field set_fields[SET_FIELDS] = {
	[VALUE] = { .name = "value", ANY_INT, .required = true },
	[SET_TTL] = TTL_FIELD,
	[SET_AT] = AT_FIELD,
	[SET_KEEP] = { .name = "keep_expiry", .type = NOH_JSON_BOOL },
	[SET_IF] = { .name = "if", .type = NOH_JSON_STRING },
};

/* A word, and the flag it is. */
struct word { const char *word; uint32_t flag; };

static int read_if(noh_json_message *m, const noh_json_got *got, const struct word *words, size_t n, uint32_t *flags)
{
	for (size_t i = 0; got->given && i < n; i++)
		if (noh_json_is(got->value, words[i].word)) {
			*flags |= words[i].flag;
			return NOH_OK;
		}
	return got->given ? json_says(m, n == 2 ? "\"if\" must be \"absent\" or \"present\"" :
				      "\"if\" must be \"no_expiry\", \"expiry\", \"later\" or \"earlier\"") : NOH_OK;
}

static int set(noh_json_message *m, const noh_json_got *got)
{
	static const struct word words[] = { { "absent", NOH_COUNTER_IF_NONE }, { "present", NOH_COUNTER_IF_THERE } };
	noh_counter_set b = { .value = got[VALUE].n };
	int rc = read_times(m, &got[SET_TTL], &got[SET_AT], false, &b.flags, &b.time);

	if (rc == NOH_OK)
		rc = read_if(m, &got[SET_IF], words, 2, &b.flags);
	if (rc != NOH_OK)
		return rc;
	if (got[SET_KEEP].n && (b.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT)))
		return json_says(m, "\"keep_expiry\" and a new expiry exclude each other");
	b.flags |= got[SET_KEEP].n ? NOH_COUNTER_KEEP : 0u;
	return json_body(m, &b, b.flags ? sizeof b : sizeof b.value);
}

enum { EXPIRE_TTL, EXPIRE_AT, EXPIRE_PERSIST, EXPIRE_IF, EXPIRE_FIELDS };
static const noh_json_field expire_fields[EXPIRE_FIELDS] = {
	[EXPIRE_TTL] = { .name = "ttl_ms", .type = NOH_JSON_INT, .least = -NOH_COUNTER_TIME_MAX,
			 .most = NOH_COUNTER_IN_MAX },
	[EXPIRE_AT] = AT_FIELD,
	[EXPIRE_PERSIST] = { .name = "persist", .type = NOH_JSON_BOOL },
	[EXPIRE_IF] = { .name = "if", .type = NOH_JSON_STRING },
};

static int expire(noh_json_message *m, const noh_json_got *got)
{
	static const struct word words[] = { { "no_expiry", NOH_COUNTER_IF_NO_TIME }, { "expiry", NOH_COUNTER_IF_TIME },
					     { "later", NOH_COUNTER_IF_LATER }, { "earlier", NOH_COUNTER_IF_EARLIER } };
	noh_counter_expire b = { 0 };
	int rc = read_times(m, &got[EXPIRE_TTL], &got[EXPIRE_AT], got[EXPIRE_PERSIST].n, &b.flags, &b.time);

	if (rc == NOH_OK && !b.flags)
		return json_says(m, "one of \"ttl_ms\", \"expires_at\" and \"persist\" is needed");
	if (rc == NOH_OK && got[EXPIRE_IF].given && (b.flags & NOH_COUNTER_PERSIST))
		return json_says(m, "\"if\" does not go with \"persist\"");
	if (rc == NOH_OK)
		rc = read_if(m, &got[EXPIRE_IF], words, 4, &b.flags);
	return rc == NOH_OK ? json_body(m, &b, sizeof b) : rc;
}

static const struct json_form forms[] = {
	{ "get", NOH_COUNTER_GET, NULL, 0, NULL },
	{ "incr", NOH_COUNTER_ADD, add_fields, ADD_FIELDS, incr },
	{ "add", NOH_COUNTER_ADD, add_fields, ADD_FIELDS, incr },
	{ "decr", NOH_COUNTER_ADD, add_fields, ADD_FIELDS, decr },
	{ "set", NOH_COUNTER_SET, set_fields, SET_FIELDS, set },
	{ "delete", NOH_COUNTER_DELETE, NULL, 0, NULL },
	{ "expire", NOH_COUNTER_EXPIRE, expire_fields, EXPIRE_FIELDS, expire },
	{ "ttl", NOH_COUNTER_TTL, NULL, 0, NULL },
};

int counter_from_json(void *user, noh_json_message *m)
{
	(void)user;
	return json_form_read(forms, sizeof forms / sizeof forms[0], m);
}

/* ── answers ── */

static const char *const outcomes[] = {
	[NOH_COUNTER_OK] = "ok", [NOH_COUNTER_NONE] = "not_found", [NOH_COUNTER_UNCHANGED] = "unchanged",
	[NOH_COUNTER_OUT_OF_BOUNDS] = "out_of_bounds", [NOH_COUNTER_OVERFLOW] = "overflow" };

static noh_json_out begin(noh_json_reply *r, uint32_t outcome)
{
	return json_outcome(r, outcomes, sizeof outcomes / sizeof outcomes[0], outcome);
}

static int value_to_json(noh_json_reply *r, const char *name)
{
	const noh_counter_value *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	if (a->existed)
		noh_json_put_int(&o, name, a->value);
	else
		noh_json_put_null(&o, name);
	return json_end(r, &o);
}

static int added_to_json(noh_json_reply *r)
{
	const noh_counter_added *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	noh_json_put_int(&o, "value", a->value);
	noh_json_put_int(&o, "applied", a->applied);
	return json_end(r, &o);
}

static int times_to_json(noh_json_reply *r)
{
	const noh_counter_times *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	if (a->left < 0) {               /* it stays, or is not there */
		noh_json_put_null(&o, "ttl_ms");
		noh_json_put_null(&o, "expires_at");
	} else {
		noh_json_put_int(&o, "ttl_ms", a->left);
		noh_json_put_time(&o, "expires_at", a->at);
	}
	return json_end(r, &o);
}

int counter_to_json(void *user, noh_json_reply *r)
{
	(void)user;
	switch (r->kind) {
	case NOH_COUNTER_GET:
	case NOH_COUNTER_DELETE: return value_to_json(r, "value");
	case NOH_COUNTER_SET: return value_to_json(r, "previous");
	case NOH_COUNTER_ADD: return added_to_json(r);
	case NOH_COUNTER_EXPIRE:
	case NOH_COUNTER_TTL: return times_to_json(r);
	}
	return NOH_EKIND;
}
