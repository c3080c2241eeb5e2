/* actors/inventory_json.c - the messages of an article as JSON: docs/http.md lists them. */
#include "actors/json_types.h"

/* ── messages ── */

static const noh_json_field amount_fields[] = {
	{ .name = "n", .type = NOH_JSON_INT, .required = true, .least = INT64_MIN, .most = INT64_MAX } };

static const noh_json_field hold_fields[] = {
	{ .name = "reservation", .type = NOH_JSON_INT, .required = true, .least = 1, .most = INT64_MAX } };

/* An amount, or the number of a hold: what is wrong with it the article says itself. */
static int number(noh_json_message *m, const noh_json_got *got)
{
	return json_body(m, &got[0].n, sizeof got[0].n);
}

enum { N, TTL, RESERVE_FIELDS };
static const noh_json_field reserve_fields[RESERVE_FIELDS] = {
	[N] = { .name = "n", .type = NOH_JSON_INT, .least = INT64_MIN, .most = INT64_MAX, .preset = 1 },
	[TTL] = { .name = "ttl_ms", .type = NOH_JSON_INT, .least = 1, .most = NOH_INVENTORY_TTL_MAX },
};

/* The same bytes as INV.RESERVE's, so that an idempotency key used there counts here. */
static int reserve(noh_json_message *m, const noh_json_got *got)
{
	noh_inventory_reserve b = { got[N].n, got[TTL].n };

	return json_body(m, &b, got[TTL].given ? sizeof b : sizeof b.n);
}

enum { CURSOR, LIMIT, HOLDS_FIELDS };
static const noh_json_field holds_fields[HOLDS_FIELDS] = {
	[CURSOR] = { .name = "cursor", .type = NOH_JSON_INT, .least = 0, .most = INT64_MAX },
	[LIMIT] = { .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = NOH_INVENTORY_PAGE_MAX, .preset = 100 },
};

static int holds(noh_json_message *m, const noh_json_got *got)
{
	noh_inventory_page b = { .cursor = (uint64_t)got[CURSOR].n, .limit = (uint32_t)got[LIMIT].n };

	return json_body(m, &b, sizeof b);
}

static const struct json_form forms[] = {
	{ "restock", NOH_INVENTORY_RESTOCK, amount_fields, 1, number },
	{ "reserve", NOH_INVENTORY_RESERVE, reserve_fields, RESERVE_FIELDS, reserve },
	{ "commit", NOH_INVENTORY_COMMIT, hold_fields, 1, number },
	{ "release", NOH_INVENTORY_RELEASE, hold_fields, 1, number },
	{ "get", NOH_INVENTORY_GET, NULL, 0, NULL },
	{ "holds", NOH_INVENTORY_HOLDS, holds_fields, HOLDS_FIELDS, holds },
	{ "set", NOH_INVENTORY_SET, amount_fields, 1, number },
};

int inventory_from_json(void *user, noh_json_message *m)
{
	(void)user;
	return json_form_read(forms, sizeof forms / sizeof forms[0], m);
}

/* ── answers ── */

static const char *const outcomes[] = {
	[NOH_INVENTORY_OK] = "ok", [NOH_INVENTORY_NO_SKU] = "no_sku", [NOH_INVENTORY_SHORT] = "out_of_stock",
	[NOH_INVENTORY_NO_HOLD] = "no_hold", [NOH_INVENTORY_COMMITTED] = "committed",
	[NOH_INVENTORY_RELEASED] = "released", [NOH_INVENTORY_EXPIRED] = "expired",
	[NOH_INVENTORY_FORGOTTEN] = "forgotten", [NOH_INVENTORY_BAD_AMOUNT] = "bad_amount",
	[NOH_INVENTORY_OVERFLOW] = "overflow", [NOH_INVENTORY_BELOW_RESERVED] = "below_reserved",
	[NOH_INVENTORY_TOO_MANY] = "too_many_holds" };

static noh_json_out begin(noh_json_reply *r, uint32_t outcome)
{
	return json_outcome(r, outcomes, sizeof outcomes / sizeof outcomes[0], outcome);
}

static void put_expires(noh_json_out *o, int64_t expires)
{
	if (expires < 0)
		noh_json_put_null(o, "expires_at");
	else
		noh_json_put_time(o, "expires_at", expires);
}

static int stock_to_json(noh_json_reply *r)
{
	const noh_inventory_stock *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	noh_json_put_int(&o, "on_hand", a->on_hand);
	noh_json_put_int(&o, "reserved", a->reserved);
	noh_json_put_int(&o, "available", a->available);
	noh_json_put_int(&o, "sold", a->sold);
	noh_json_put_uint(&o, "holds", a->holds);
	noh_json_put_int(&o, "restocked", a->restocked);
	noh_json_put_int(&o, "adjusted", a->adjusted);
	return json_end(r, &o);
}

static int reserved_to_json(noh_json_reply *r)
{
	const noh_inventory_reserved *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	if (a->outcome == NOH_INVENTORY_OK) {
		noh_json_put_uint(&o, "reservation", a->reservation);
		put_expires(&o, a->expires);
	}
	noh_json_put_int(&o, "available", a->available);
	return json_end(r, &o);
}

static int ended_to_json(noh_json_reply *r)
{
	const noh_inventory_ended *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	noh_json_put_uint(&o, "reservation", a->reservation);
	noh_json_put_int(&o, "n", a->n);
	return json_end(r, &o);
}

static int holds_to_json(noh_json_reply *r)
{
	const noh_inventory_holds *a = r->body;
	const noh_inventory_hold *list = (const noh_inventory_hold *)(a + 1);
	noh_json_out o;

	if (r->len < sizeof *a || r->len != sizeof *a + a->count * sizeof *list)
		return NOH_EINVAL;
	o = begin(r, a->outcome);
	noh_json_open(&o, "holds", '[');
	for (uint32_t i = 0; i < a->count; i++) {
		noh_json_open(&o, NULL, '{');
		noh_json_put_uint(&o, "reservation", list[i].reservation);
		noh_json_put_int(&o, "n", list[i].n);
		put_expires(&o, list[i].expires);
		noh_json_close(&o, '}');
	}
	noh_json_close(&o, ']');
	if (a->cursor)
		noh_json_put_uint(&o, "next_cursor", a->cursor);
	else
		noh_json_put_null(&o, "next_cursor");
	return json_end(r, &o);
}

int inventory_to_json(void *user, noh_json_reply *r)
{
	(void)user;
	switch (r->kind) {
	case NOH_INVENTORY_RESTOCK:
	case NOH_INVENTORY_SET:
	case NOH_INVENTORY_GET: return stock_to_json(r);
	case NOH_INVENTORY_RESERVE: return reserved_to_json(r);
	case NOH_INVENTORY_COMMIT:
	case NOH_INVENTORY_RELEASE: return ended_to_json(r);
	case NOH_INVENTORY_HOLDS: return holds_to_json(r);
	}
	return NOH_EKIND;
}
