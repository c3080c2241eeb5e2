/* net/command_inventory.c - inventory: an article (SKU) s is the actor inventory:s.
 *
 * What the article refuses is an error whose first word stays (docs/commands.md): with an idempotency key a
 * retry gets the same one.
 */
#include "net/command_counter.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* ── what stood in the way ────────────────────────────────────────────────────────────────────── */
struct refusal {
	uint32_t    outcome;
	const char *article;       /* of several; NULL: there is one             */
	int64_t     there;         /* available, or reserved                     */
};

enum { ARTICLE_SHOWN = 64 };       /* so much of its name, what cannot be printed as '?' */

static void refuse(struct out *o, const struct refusal *r)
{
	char which[ARTICLE_SHOWN + 16] = "";

	if (r->article)
		snprintf(which, sizeof which, "article '%s': ", r->article);
	switch (r->outcome) {
	case NOH_INVENTORY_NO_SKU:
		out_error(o, "-NOSKU %sthere is no such article; INV.RESTOCK or INV.SET makes it known", which);
		break;
	case NOH_INVENTORY_SHORT:
		out_error(o, "-OUTOFSTOCK %sonly %" PRId64 " available; nothing was reserved", which, r->there);
		break;
	case NOH_INVENTORY_NO_HOLD:
		out_error(o, "-NOHOLD the article never gave this reservation");
		break;
	case NOH_INVENTORY_COMMITTED:
		out_error(o, "-COMMITTED the reservation was committed; what is sold cannot be released");
		break;
	case NOH_INVENTORY_RELEASED:
		out_error(o, "-RELEASED the reservation was released; reserve again");
		break;
	case NOH_INVENTORY_EXPIRED:
		out_error(o, "-EXPIRED the reservation's time was over; reserve again");
		break;
	case NOH_INVENTORY_FORGOTTEN:
		out_error(o, "-FORGOTTEN the reservation ended so long ago that it is not known how");
		break;
	case NOH_INVENTORY_BAD_AMOUNT:
		out_error(o, "-BADAMOUNT %sthe amount must be above 0 (INV.SET: 0 or above)", which);
		break;
	case NOH_INVENTORY_OVERFLOW:
		out_error(o, "-OVERFLOW more than 63 bits can count; nothing was changed");
		break;
	case NOH_INVENTORY_BELOW_RESERVED:
		out_error(o, "-BELOWRESERVED %" PRId64 " are reserved; release some first, or count again", r->there);
		break;
	default:
		out_error(o, "-FAILED the article gave outcome %u", r->outcome);
	}
}

static bool read_amount(struct call *c, const struct arg *a, int64_t least, const char *article, int64_t *n)
{
	if (!arg_int(a, n)) {
		out_not_int(call_out(c));
		return false;
	}
	if (*n < least) {
		refuse(call_out(c), &(struct refusal){ .outcome = NOH_INVENTORY_BAD_AMOUNT, .article = article });
		return false;
	}
	return true;
}

/* ── stock ────────────────────────────────────────────────────────────────────────────────────── */
static void format_stocked(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_inventory_stock *s = parts[0].body;

	(void)tag;
	if (out_failed(o, parts, n, sizeof *s))
		return;
	if (s->outcome == NOH_INVENTORY_OK)
		out_int(o, s->available);
	else
		refuse(o, &(struct refusal){ .outcome = s->outcome, .there = s->reserved });
}

static void stock(struct call *c, uint32_t kind, int64_t least)
{
	struct arg key;
	int64_t n;

	if (call_trailing_idem(c, 3, &key) && read_amount(c, &c->argv[2], least, NULL, &n))
		call_one(c, TYPE_INVENTORY, &c->argv[1], kind, &n, sizeof n, &key, format_stocked, (struct tag){ 0, 0 });
}

void cmd_inv_restock(struct call *c)
{
	stock(c, NOH_INVENTORY_RESTOCK, 1);
}

void cmd_inv_set(struct call *c)
{
	stock(c, NOH_INVENTORY_SET, 0);
}

static void format_stock(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_inventory_stock *s = parts[0].body;

	(void)tag;
	if (out_failed(o, parts, n, sizeof *s))
		return;
	if (s->outcome != NOH_INVENTORY_OK) {
		refuse(o, &(struct refusal){ .outcome = s->outcome });
		return;
	}
	out_map(o, 7);
	out_text(o, "on_hand"), out_int(o, s->on_hand);
	out_text(o, "reserved"), out_int(o, s->reserved);
	out_text(o, "available"), out_int(o, s->available);
	out_text(o, "sold"), out_int(o, s->sold);
	out_text(o, "holds"), out_int(o, s->holds);
	out_text(o, "restocked"), out_int(o, s->restocked);
	out_text(o, "adjusted"), out_int(o, s->adjusted);
}

void cmd_inv_get(struct call *c)
{
	call_one(c, TYPE_INVENTORY, &c->argv[1], NOH_INVENTORY_GET, NULL, 0, NULL, format_stock, (struct tag){ 0, 0 });
}

/* ── reserve ──────────────────────────────────────────────────────────────────────────────────── */
static void out_reserved(struct out *o, const noh_inventory_reserved *r)
{
	out_array(o, 2);
	out_int(o, (int64_t)r->reservation);
	out_int(o, r->available);
}

static void format_reserved(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_inventory_reserved *r = parts[0].body;

	(void)tag;
	if (out_failed(o, parts, n, sizeof *r))
		return;
	if (__builtin_expect(r->outcome == NOH_INVENTORY_OK, 1))
		out_reserved(o, r);
	else
		refuse(o, &(struct refusal){ .outcome = r->outcome, .there = r->available });
}

/* TTL and IDEM at argv[*at], taken with their values: 1; neither of them: 0; wrong, the error is written: -1. */
static int hold_option(struct call *c, uint32_t *at, int64_t *ttl_ms, struct arg *key)
{
	const struct arg *a = &c->argv[*at];

	if (arg_is(a, "idem") && key->len == 0) {
		if (!call_idem(c, *at, key))
			return -1;
		*at += 2;
		return 1;
	}
	if (!arg_is(a, "ttl") || *ttl_ms != 0)
		return 0;
	if (*at + 1 >= c->argc) {
		out_syntax_error(call_out(c));
		return -1;
	}
	int64_t seconds;

	if (!arg_int(a + 1, &seconds) || seconds < 1 || seconds > NOH_INVENTORY_TTL_MAX / 1000) {
		out_error(call_out(c), "TTL must be a number of seconds, 1 to %" PRId64,
			  (int64_t)(NOH_INVENTORY_TTL_MAX / 1000));
		return -1;
	}
	*ttl_ms = seconds * 1000;
	*at += 2;
	return 1;
}

void cmd_inv_reserve(struct call *c)
{
	noh_inventory_reserve body = { 0 };
	struct arg key = { NULL, 0 };

	for (uint32_t i = 3; i < c->argc; ) {
		int taken = hold_option(c, &i, &body.ttl_ms, &key);

		if (taken == 0)
			out_syntax_error(call_out(c));
		if (taken != 1)
			return;
	}
	if (!read_amount(c, &c->argv[2], 1, NULL, &body.n))
		return;
	bool plain = body.ttl_ms == 0;

	call_one(c, TYPE_INVENTORY, &c->argv[1], NOH_INVENTORY_RESERVE, plain ? (const void *)&body.n : &body,
		 plain ? sizeof body.n : sizeof body, &key, format_reserved, (struct tag){ 0, 0 });
}

/* All of them were reserved, or none: then the one that stood in the way says why. */
static void format_reserved_all(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const char (*names)[ARTICLE_SHOWN] = (void *)(uintptr_t)tag.a;
	const noh_inventory_reserved *r;

	for (uint32_t i = 0; i < n; i++) {
		r = parts[i].body;
		if ((parts[i].status != NOH_OK && parts[i].status != NOH_REFUSED) || parts[i].len < sizeof *r ||
		    r->outcome == NOH_INVENTORY_OK)
			continue;
		refuse(o, &(struct refusal){ r->outcome, names[i], r->available });
		return;
	}
	if (out_failed(o, parts, n, sizeof *r))
		return;
	out_array(o, n);
	for (uint32_t i = 0; i < n; i++)
		out_reserved(o, parts[i].body);
}

/* The pairs from argv[at] on; names: of each of them, as it is shown. False: the error is written. */
static bool read_articles(struct call *c, uint32_t at, struct roster *roster, int64_t ttl_ms, char (*names)[ARTICLE_SHOWN])
{
	uint32_t pairs = (c->argc - at) / 2;

	for (uint32_t i = 0; i < pairs; i++) {
		const struct arg *sku = &c->argv[at + 2 * i];
		noh_inventory_reserve *body = &roster->bodies[i].reserve;

		body->ttl_ms = ttl_ms;
		arg_show(sku, names[i], sizeof names[i]);
		if (!read_amount(c, sku + 1, 1, names[i], &body->n))
			return false;
		if (roster_add(roster, sku) != i) {
			out_error(call_out(c), "article '%s' is named twice; add the amounts", names[i]);
			return false;
		}
		roster->requests[i] = (struct request){ .op = REQUEST_CALL, .type = TYPE_INVENTORY, .id = sku->at,
						       .id_len = sku->len, .kind = NOH_INVENTORY_RESERVE,
						       .body = body, .len = sizeof *body };
	}
	return true;
}

static void reserve_all(struct call *c, uint32_t at, uint32_t pairs, int64_t ttl_ms, const struct arg *key)
{
	size_t bytes = pairs * (size_t)ARTICLE_SHOWN;
	struct roster roster;
	char (*names)[ARTICLE_SHOWN];

	if (!roster_open(c, &roster, pairs))
		return;
	names = mem_alloc(bytes);
	if (names == NULL) {
		out_status(call_out(c), NOH_ENOMEM);
	} else if (read_articles(c, at, &roster, ttl_ms, names)) {
		roster.requests[0].note = names;
		roster.requests[0].note_len = (uint32_t)bytes;
		if (key->len) {
			roster.requests[0].key = key->at;
			roster.requests[0].key_len = key->len;
		}
		call_step(c, roster.requests, pairs, format_reserved_all, (struct tag){ 0, 0 });
	}
	mem_free(names, bytes);
	roster_close(&roster);
}

void cmd_inv_reserveall(struct call *c)
{
	struct arg key = { NULL, 0 };
	int64_t ttl_ms = 0;
	uint32_t at = 1;
	int taken = 1;

	while (taken == 1 && at < c->argc)
		taken = hold_option(c, &at, &ttl_ms, &key);
	if (taken < 0)
		return;
	uint32_t pairs = (c->argc - at) / 2;

	if (pairs == 0 || (c->argc - at) % 2 != 0) {
		out_arity_error(call_out(c), c->command);
		return;
	}
	if (!step_too_big(c, pairs))
		reserve_all(c, at, pairs, ttl_ms, &key);
}

/* ── commit, release ──────────────────────────────────────────────────────────────────────────── */
static void format_ended(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_inventory_ended *e = parts[0].body;

	(void)tag;
	if (out_failed(o, parts, n, sizeof *e))
		return;
	if (__builtin_expect(e->outcome == NOH_INVENTORY_OK, 1))
		out_int(o, e->n);
	else
		refuse(o, &(struct refusal){ .outcome = e->outcome });
}

static void end(struct call *c, uint32_t kind)
{
	struct arg key;
	uint64_t reservation;

	if (!call_trailing_idem(c, 3, &key))
		return;
	if (arg_uint(&c->argv[2], &reservation))
		call_one(c, TYPE_INVENTORY, &c->argv[1], kind, &reservation, sizeof reservation, &key, format_ended,
			 (struct tag){ 0, 0 });
	else
		out_error(call_out(c), "a reservation is the number that INV.RESERVE answered");
}

void cmd_inv_commit(struct call *c)
{
	end(c, NOH_INVENTORY_COMMIT);
}

void cmd_inv_release(struct call *c)
{
	end(c, NOH_INVENTORY_RELEASE);
}

/* ── holds ────────────────────────────────────────────────────────────────────────────────────── */
static void format_holds(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_inventory_holds *h = parts[0].body;
	const noh_inventory_hold *hold;

	(void)tag;
	if (out_failed(o, parts, n, sizeof *h))
		return;
	if (h->outcome != NOH_INVENTORY_OK) {
		refuse(o, &(struct refusal){ .outcome = h->outcome });
		return;
	}
	if (out_failed(o, parts, n, (uint32_t)(sizeof *h + h->count * sizeof *hold)))
		return;
	hold = (const noh_inventory_hold *)(h + 1);
	out_array(o, 2);
	out_cursor(o, h->cursor);
	out_array(o, h->count);
	for (uint32_t i = 0; i < h->count; i++) {
		out_array(o, 3);
		out_int(o, (int64_t)hold[i].reservation);
		out_int(o, hold[i].n);
		out_int(o, hold[i].expires);
	}
}

void cmd_inv_holds(struct call *c)
{
	noh_inventory_page page = { 0 };
	uint64_t cursor, limit;

	if (!read_page(c, 2, &cursor, &limit, NOH_INVENTORY_PAGE_MAX))
		return;
	page.cursor = cursor;
	page.limit = (uint32_t)limit;
	call_one(c, TYPE_INVENTORY, &c->argv[1], NOH_INVENTORY_HOLDS, &page, sizeof page, NULL, format_holds,
		 (struct tag){ 0, 0 });
}
