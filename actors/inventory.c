/* actors/inventory.c - an article: what is there, what of it is promised, what was sold.
 *
 * Each message is decided on the books as they are at this instant: a hold past its time counts for nothing,
 * whether or not the timer has come to it (it can be neither committed nor released, and a message that
 * changes the books first takes back what it held). Books, holds and the timer are in holds.c.
 *
 * Owns     nothing beside its state.
 * Never    changes anything before it has decided; ends a turn with books that do not balance.
 */
#include "actors/answer.h"
#include "actors/holds.h"
#include "actors/json_types.h"

#include <string.h>

_Static_assert(sizeof(noh_inventory_reserve) <= 40, "travels in its mailbox slot");
_Static_assert(sizeof(noh_inventory_reserved) <= 40, "and so does its answer");

/* ── answers ── */

/* A SKU nobody has heard of leaves nothing behind. */
static int refuse_and_go(noh_turn *turn, const void *body, size_t len)
{
	const struct books *b = noh_look(turn);
	int rc = refuse(turn, body, len);

	return rc == NOH_OK && b->next_hold == 0 ? noh_erase(turn) : rc;
}

static int answer_and_go(noh_turn *turn, const void *body, size_t len)
{
	const struct books *b = noh_look(turn);
	int rc = answer(turn, body, len);

	return rc == NOH_OK && b->next_hold == 0 ? noh_stop_self(turn) : rc;
}

static noh_inventory_stock stock_of(uint32_t outcome, const struct books *b, struct overdue over)
{
	return (noh_inventory_stock){ .outcome = outcome, .holds = (uint32_t)(b->holds - over.holds),
				      .on_hand = b->on_hand, .reserved = b->reserved - over.n,
				      .available = b->available + over.n, .sold = b->sold,
				      .restocked = b->restocked, .adjusted = b->adjusted };
}

/* What a message that deals with amounts needs to decide. */
struct scene {
	struct books   books;
	struct overdue over;
	int64_t        now;
};

static int look(noh_turn *turn, struct scene *s)
{
	s->books = *(const struct books *)noh_look(turn);
	s->now = (int64_t)noh_wall_ms(turn);
	return holds_overdue(turn, &s->books, s->now, &s->over);
}

/* ── the messages ── */

/* Decided: the goods come in, or were counted. by is the change of what is on hand. */
static int change_stock(noh_turn *turn, struct scene *s, int64_t by)
{
	struct books *b = &s->books;
	noh_inventory_stock a;
	int rc = holds_end_overdue(turn, b, s->now, s->over.holds);

	if (rc != NOH_OK)
		return rc;
	b->on_hand += by;
	b->available += by;
	if (b->next_hold == 0)
		b->next_hold = 1;
	rc = books_close(turn, b);
	if (rc != NOH_OK)
		return rc;
	a = stock_of(NOH_INVENTORY_OK, b, (struct overdue){ 0 });
	return answer(turn, &a, sizeof a);
}

static int restock(noh_turn *turn, const noh_msg *msg)
{
	noh_inventory_stock a;
	struct scene s;
	int64_t n, all;
	int rc = look(turn, &s);

	if (msg->len != sizeof n)
		return malformed(turn, "inventory RESTOCK", msg);
	if (rc != NOH_OK)
		return rc;
	memcpy(&n, msg->body, sizeof n);
	a = stock_of(NOH_INVENTORY_OK, &s.books, s.over);
	if (n <= 0)
		a.outcome = NOH_INVENTORY_BAD_AMOUNT;
	else if (__builtin_add_overflow(s.books.restocked, n, &all) ||
		 __builtin_add_overflow(s.books.on_hand + s.books.sold, n, &all))
		a.outcome = NOH_INVENTORY_OVERFLOW;
	if (a.outcome != NOH_INVENTORY_OK)
		return refuse_and_go(turn, &a, sizeof a);
	s.books.restocked += n;
	return change_stock(turn, &s, n);
}

static int set(noh_turn *turn, const noh_msg *msg)
{
	noh_inventory_stock a;
	struct scene s;
	int64_t n, by, all;
	int rc = look(turn, &s);

	if (msg->len != sizeof n)
		return malformed(turn, "inventory SET", msg);
	if (rc != NOH_OK)
		return rc;
	memcpy(&n, msg->body, sizeof n);
	a = stock_of(NOH_INVENTORY_OK, &s.books, s.over);
	by = n < 0 ? 0 : n - s.books.on_hand;
	if (n < 0)
		a.outcome = NOH_INVENTORY_BAD_AMOUNT;
	else if (n < a.reserved)
		a.outcome = NOH_INVENTORY_BELOW_RESERVED;
	else if (__builtin_add_overflow(s.books.adjusted, by, &all) || __builtin_add_overflow(n, s.books.sold, &all))
		a.outcome = NOH_INVENTORY_OVERFLOW;
	if (a.outcome != NOH_INVENTORY_OK)
		return refuse_and_go(turn, &a, sizeof a);
	s.books.adjusted += by;
	return change_stock(turn, &s, by);
}

static bool read_reserve(const noh_msg *msg, noh_inventory_reserve *m)
{
	*m = (noh_inventory_reserve){ 0 };
	if (msg->len != sizeof m->n && msg->len != sizeof *m)
		return false;
	memcpy(m, msg->body, msg->len);
	return m->ttl_ms >= 0 && m->ttl_ms <= NOH_INVENTORY_TTL_MAX;
}

/* Decided: there are enough. */
static int take(noh_turn *turn, struct scene *s, const noh_inventory_reserve *m, noh_inventory_reserved *a)
{
	int rc = holds_end_overdue(turn, &s->books, s->now, s->over.holds);

	a->expires = m->ttl_ms ? s->now + m->ttl_ms : NEVER;
	if (rc == NOH_OK)
		rc = holds_take(turn, &s->books, (struct open_hold){ m->n, a->expires }, s->now, &a->reservation);
	a->available = s->books.available;
	if (rc == NOH_OK)
		rc = books_close(turn, &s->books);
	return rc == NOH_OK ? answer(turn, a, sizeof *a) : rc;
}

static int reserve(noh_turn *turn, const noh_msg *msg)
{
	noh_inventory_reserved a = { .outcome = NOH_INVENTORY_OK };
	noh_inventory_reserve m;
	struct scene s;
	int rc;

	if (!read_reserve(msg, &m))
		return malformed(turn, "inventory RESERVE", msg);
	rc = look(turn, &s);
	if (rc != NOH_OK)
		return rc;
	a.available = s.books.available + s.over.n;
	if (m.n <= 0)
		a.outcome = NOH_INVENTORY_BAD_AMOUNT;
	else if (s.books.next_hold == 0)
		a.outcome = NOH_INVENTORY_NO_SKU;
	else if (m.n > a.available)
		a.outcome = NOH_INVENTORY_SHORT;
	else if (s.books.holds - s.over.holds >= NOH_INVENTORY_HOLDS_MAX)
		a.outcome = NOH_INVENTORY_TOO_MANY;
	if (a.outcome != NOH_INVENTORY_OK)
		return refuse_and_go(turn, &a, sizeof a);
	return take(turn, &s, &m, &a);
}

/* Not open any more, or never was. how: what is asked for, and OK if that is what became of it. */
static int tell_end(noh_turn *turn, const struct books *b, uint64_t how, noh_inventory_ended *a)
{
	struct ended_hold ended;
	int rc;

	if (b->next_hold == 0)
		a->outcome = NOH_INVENTORY_NO_SKU;
	else if (a->reservation == 0 || a->reservation >= b->next_hold)
		a->outcome = NOH_INVENTORY_NO_HOLD;
	if (a->outcome != NOH_INVENTORY_OK)
		return refuse_and_go(turn, a, sizeof *a);
	rc = holds_find_ended(turn, a->reservation, &ended);
	if (rc < 0)
		return rc;
	a->n = rc == NOH_OK ? ended.n : 0;
	if (rc == NOH_OK && ended.how == how)
		return answer(turn, a, sizeof *a);
	a->outcome = rc == NOH_OK ? (uint32_t)ended.how : NOH_INVENTORY_FORGOTTEN;
	return refuse(turn, a, sizeof *a);
}

static int end(noh_turn *turn, const noh_msg *msg, uint64_t how, const char *name)
{
	struct books b = *(const struct books *)noh_look(turn);
	noh_inventory_ended a = { .outcome = NOH_INVENTORY_OK };
	struct open_hold h;
	int64_t now;
	int rc;

	if (msg->len != sizeof a.reservation)
		return malformed(turn, name, msg);
	memcpy(&a.reservation, msg->body, sizeof a.reservation);
	rc = a.reservation < b.next_hold ? holds_find(turn, a.reservation, &h) : NOH_END;
	if (rc == NOH_END)
		return tell_end(turn, &b, how, &a);
	if (rc != NOH_OK)
		return rc;
	a.n = h.n;
	now = (int64_t)noh_wall_ms(turn);
	if (h.expires != NEVER && h.expires <= now) {
		a.outcome = NOH_INVENTORY_EXPIRED;
		return refuse(turn, &a, sizeof a);
	}
	rc = holds_end(turn, &b, a.reservation, h, how, now);
	if (rc == NOH_OK)
		rc = books_close(turn, &b);
	return rc == NOH_OK ? answer(turn, &a, sizeof a) : rc;
}

static int get(noh_turn *turn, const noh_msg *msg)
{
	noh_inventory_stock a;
	struct scene s;
	int rc = look(turn, &s);

	if (msg->len != 0)
		return malformed(turn, "inventory GET", msg);
	if (rc != NOH_OK)
		return rc;
	a = stock_of(s.books.next_hold ? NOH_INVENTORY_OK : NOH_INVENTORY_NO_SKU, &s.books, s.over);
	return answer_and_go(turn, &a, sizeof a);
}

static int holds(noh_turn *turn, const noh_msg *msg)
{
	struct { noh_inventory_holds head; noh_inventory_hold list[NOH_INVENTORY_PAGE_MAX]; } a;
	const struct books *b = noh_look(turn);
	noh_inventory_page m;
	int rc = NOH_OK;

	if (msg->len != sizeof m)
		return malformed(turn, "inventory HOLDS", msg);
	memcpy(&m, msg->body, sizeof m);
	if (m.reserved != 0 || m.limit > NOH_INVENTORY_PAGE_MAX)
		return malformed(turn, "inventory HOLDS", msg);
	a.head = (noh_inventory_holds){ .outcome = b->next_hold ? NOH_INVENTORY_OK : NOH_INVENTORY_NO_SKU };
	if (m.cursor < b->next_hold)
		rc = holds_list(turn, m.cursor, m.limit ? m.limit : 100, &a.head, a.list);
	return rc == NOH_OK ? answer_and_go(turn, &a, sizeof a.head + a.head.count * sizeof a.list[0]) : rc;
}

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	switch (msg->kind) {
	case NOH_INVENTORY_RESTOCK: return restock(turn, msg);
	case NOH_INVENTORY_RESERVE: return reserve(turn, msg);
	case NOH_INVENTORY_COMMIT: return end(turn, msg, NOH_INVENTORY_COMMITTED, "inventory COMMIT");
	case NOH_INVENTORY_RELEASE: return end(turn, msg, NOH_INVENTORY_RELEASED, "inventory RELEASE");
	case NOH_INVENTORY_GET: return get(turn, msg);
	case NOH_INVENTORY_HOLDS: return holds(turn, msg);
	case NOH_INVENTORY_SET: return set(turn, msg);
	case NOH_INVENTORY_EXPIRE: return holds_wake(turn);
	}
	return noh_fail(turn, "an inventory has no message of kind %u", msg->kind);
}

static const noh_kind kinds[NOH_INVENTORY_KINDS] = {
	[NOH_INVENTORY_RESTOCK] = { .name = "restock" },
	[NOH_INVENTORY_RESERVE] = { .name = "reserve" },
	[NOH_INVENTORY_COMMIT] = { .name = "commit" },
	[NOH_INVENTORY_RELEASE] = { .name = "release" },
	[NOH_INVENTORY_GET] = { .name = "get" },
	[NOH_INVENTORY_HOLDS] = { .name = "holds" },
	[NOH_INVENTORY_SET] = { .name = "set" },
	[NOH_INVENTORY_EXPIRE] = { .name = "expire", .flags = NOH_KIND_TIMER },
};

/* C-01: what is full makes its senders wait; nothing that was accepted is dropped. */
static const noh_type type = {
	.name = "inventory",
	.state_size = sizeof(struct books),
	.mailbox_capacity = 4096,
	.full_mode = NOH_BLOCK,
	.idle_timeout_ms = 300000,
	.kinds = kinds,
	.kind_count = NOH_INVENTORY_KINDS,
	.on_message = on_message,
	.version = 1,
	.schema = 1,
	.from_json = inventory_from_json,
	.to_json = inventory_to_json,
};

const noh_type *noh_inventory_type(void)
{
	return &type;
}
