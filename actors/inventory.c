/* actors/inventory.c - an article's books: what is there, what of it is promised, what was sold.
 *
 * The books are the state. Holds are in the key-value part, so that a turn writes what it changes and costs the
 * same with ten open holds as with a hundred thousand:
 *
 *	h  hold            an open hold: how many, until when
 *	e  time  hold      the open holds that have a time, in the order of their times
 *	d  hold            one that has ended: how many, how
 *	l  number          the ended ones in the order they ended: which, when
 *
 * (numbers are big-endian, so that their order is that of the keys, and of 7 bytes, so that most keys are of 8:
 * those are compared as one number). One schedule is armed for the earliest of
 * both: the next hold that is past its time, and the oldest that need not be remembered any longer. It works in
 * slices. What it has not come to yet is seen by every message all the same: a hold past its time can be neither
 * committed nor released, and a message that changes the books first takes back what it holds.
 *
 * Owns     the books, the entries, one schedule.
 * Never    changes anything before it has decided; ends a turn with books that do not balance.
 */
#include "actors/answer.h"

#include <string.h>

#define NEVER    (-1)
#define SLICE    128                                 /* holds ended or forgotten in one turn, at most */
#define LATE_MS  10000
#define YEAR_MS  (INT64_C(365) * 24 * 3600 * 1000)   /* a schedule reaches a little further */

struct books {
	int64_t  on_hand, reserved, available, sold, restocked, adjusted;
	uint64_t next_hold;          /* its number; 0: there is no such SKU             */
	uint64_t first_ended;        /* numbers of the list of the ended: from here ... */
	uint64_t next_ended;         /* ... up to here                                  */
	int64_t  wakes;              /* no hold is past its time, and none to be forgotten, before; 0: none is */
	uint64_t holds;              /* open */
};

struct open_hold { int64_t n, expires; };            /* expires: NEVER, or the instant */
struct ended_hold { int64_t n; uint64_t how; };      /* how: NOH_INVENTORY_COMMITTED, RELEASED, EXPIRED */
struct ended_entry { uint64_t hold; int64_t at; };

_Static_assert(sizeof(noh_inventory_reserve) <= 40, "travels in its mailbox slot");
_Static_assert(sizeof(noh_inventory_reserved) <= 40, "and so does its answer");

/* ── entries ── */

#define NUMBER 7                 /* bytes: no SKU gives 2^56 numbers, and no clock shows 2^56 milliseconds */

struct key {
	uint8_t bytes[1 + 2 * NUMBER];
	uint8_t len;
};

static void put_number(uint8_t *to, uint64_t n)
{
	for (int i = NUMBER; i--; n >>= 8)
		to[i] = (uint8_t)n;
}

static uint64_t get_number(const uint8_t *from)
{
	uint64_t n = 0;

	for (int i = 0; i < NUMBER; i++)
		n = n << 8 | from[i];
	return n;
}

static struct key key_of(char kind, uint64_t n)
{
	struct key k = { .len = 1 + NUMBER };

	k.bytes[0] = (uint8_t)kind;
	put_number(k.bytes + 1, n);
	return k;
}

static struct key time_key(int64_t time, uint64_t hold)
{
	struct key k = { .len = 1 + 2 * NUMBER };

	k.bytes[0] = 'e';
	put_number(k.bytes + 1, (uint64_t)time);
	put_number(k.bytes + 1 + NUMBER, hold);
	return k;
}

static int put(noh_turn *turn, struct key k, const void *value, size_t len)
{
	return noh_kv_put(turn, k.bytes, k.len, value, len);
}

static int lost(noh_turn *turn)
{
	return noh_fail(turn, "an entry of its holds is missing or damaged: nothing is changed");
}

static int drop(noh_turn *turn, struct key k)
{
	int rc = noh_kv_delete(turn, k.bytes, k.len);

	return rc == NOH_END ? lost(turn) : rc;
}

/* NOH_OK, NOH_END, or what is wrong. */
static int get_entry(noh_turn *turn, struct key k, void *value, size_t size)
{
	const void *at;
	size_t len;
	int rc = noh_kv_get(turn, k.bytes, k.len, &at, &len);

	if (rc != NOH_OK)
		return rc;
	if (len != size)
		return lost(turn);
	memcpy(value, at, size);
	return NOH_OK;
}

/* The open hold with the next time after k. False: there is none. */
static bool next_time(noh_turn *turn, struct key *k, int64_t *time, uint64_t *hold)
{
	const void *at = k->bytes, *value;
	size_t len = k->len, value_len;

	if (noh_kv_next(turn, &at, &len, &value, &value_len) != NOH_OK || len != 1 + 2 * NUMBER ||
	    *(const uint8_t *)at != 'e')
		return false;
	memcpy(k->bytes, at, len);
	k->len = (uint8_t)len;
	*time = (int64_t)get_number(k->bytes + 1);
	*hold = get_number(k->bytes + 1 + NUMBER);
	return true;
}

static const struct key before_times = { .bytes = { 'e' }, .len = 1 };

/* ── the books ── */

static bool balanced(const struct books *b)
{
	return b->on_hand >= 0 && b->reserved >= 0 && b->available >= 0 && b->sold >= 0 && b->restocked >= 0 &&
	       b->available <= b->on_hand && b->on_hand - b->available == b->reserved &&
	       (uint64_t)b->restocked + (uint64_t)b->adjusted == (uint64_t)b->on_hand + (uint64_t)b->sold;
}

/* The last step of every turn that changed the books. */
static int close_books(noh_turn *turn, const struct books *b)
{
	struct books *state;

	if (!balanced(b))
		return noh_fail(turn, "the books do not balance: on hand %lld, reserved %lld, available %lld, sold "
				"%lld, restocked %lld, adjusted %lld; nothing is changed", (long long)b->on_hand,
				(long long)b->reserved, (long long)b->available, (long long)b->sold,
				(long long)b->restocked, (long long)b->adjusted);
	state = noh_state(turn);
	*state = *b;
	return NOH_OK;
}

/* One that should have come long ago will not: its turn failed, for want of memory say. */
static int wake_at(noh_turn *turn, struct books *b, int64_t time, int64_t now)
{
	bool armed = b->wakes && b->wakes > now - LATE_MS;
	int64_t left;

	if (armed && b->wakes <= time)
		return NOH_OK;
	if (b->wakes && b->wakes < time)
		time = b->wakes;
	left = time > now ? time - now : 0;
	b->wakes = now + left;
	return noh_schedule_once(turn, NOH_INVENTORY_EXPIRE, (uint64_t)(left < YEAR_MS ? left : YEAR_MS));
}

static int forget_oldest(noh_turn *turn, struct books *b)
{
	struct ended_entry old;
	int rc = get_entry(turn, key_of('l', b->first_ended), &old, sizeof old);

	if (rc == NOH_OK)
		rc = drop(turn, key_of('l', b->first_ended));
	if (rc == NOH_OK)
		rc = drop(turn, key_of('d', old.hold));
	if (rc == NOH_OK)
		b->first_ended++;
	return rc == NOH_END ? lost(turn) : rc;
}

/* From open to ended; what becomes of the goods is the caller's. */
static int end_hold(noh_turn *turn, struct books *b, uint64_t hold, struct open_hold h, uint64_t how, int64_t now)
{
	struct ended_entry entry = { hold, now };
	struct ended_hold ended = { h.n, how };
	int rc = drop(turn, key_of('h', hold));

	if (rc == NOH_OK && h.expires != NEVER)
		rc = drop(turn, time_key(h.expires, hold));
	if (rc == NOH_OK)
		rc = put(turn, key_of('d', hold), &ended, sizeof ended);
	if (rc == NOH_OK)
		rc = put(turn, key_of('l', b->next_ended), &entry, sizeof entry);
	if (rc != NOH_OK)
		return rc;
	b->holds--;
	b->reserved -= h.n;
	if (how == NOH_INVENTORY_COMMITTED) {
		b->on_hand -= h.n;
		b->sold += h.n;
	} else {
		b->available += h.n;
	}
	if (++b->next_ended - b->first_ended > NOH_INVENTORY_KEPT) {
		rc = forget_oldest(turn, b);
		if (rc != NOH_OK)
			return rc;
	}
	return wake_at(turn, b, now + NOH_INVENTORY_KEPT_MS, now);
}

/* ── past their time ── */

struct overdue { int64_t n; uint32_t holds; };

/* What the timer has not come to yet: a slice of it at most. */
static int look_overdue(noh_turn *turn, const struct books *b, int64_t now, struct overdue *out)
{
	struct key k = before_times;
	struct open_hold h;
	uint64_t hold;
	int64_t time;

	*out = (struct overdue){ 0 };
	if (b->wakes == 0 || b->wakes > now)
		return NOH_OK;
	while (out->holds < SLICE && next_time(turn, &k, &time, &hold) && time <= now) {
		int rc = get_entry(turn, key_of('h', hold), &h, sizeof h);

		if (rc != NOH_OK)
			return rc == NOH_END ? lost(turn) : rc;
		out->n += h.n;
		out->holds++;
	}
	return NOH_OK;
}

static int end_overdue(noh_turn *turn, struct books *b, int64_t now, uint32_t count)
{
	for (; count; count--) {
		struct key k = before_times;
		struct open_hold h;
		uint64_t hold;
		int64_t time;
		int rc;

		if (!next_time(turn, &k, &time, &hold) || time > now)
			return NOH_OK;
		rc = get_entry(turn, key_of('h', hold), &h, sizeof h);
		if (rc == NOH_OK)
			rc = end_hold(turn, b, hold, h, NOH_INVENTORY_EXPIRED, now);
		if (rc != NOH_OK)
			return rc == NOH_END ? lost(turn) : rc;
	}
	return NOH_OK;
}

static int forget_old(noh_turn *turn, struct books *b, int64_t now)
{
	for (uint32_t i = 0; i < SLICE && b->first_ended < b->next_ended; i++) {
		struct ended_entry old;
		int rc = get_entry(turn, key_of('l', b->first_ended), &old, sizeof old);

		if (rc == NOH_OK && old.at + NOH_INVENTORY_KEPT_MS > now)
			return NOH_OK;
		rc = rc == NOH_OK ? forget_oldest(turn, b) : rc;
		if (rc != NOH_OK)
			return rc == NOH_END ? lost(turn) : rc;
	}
	return NOH_OK;
}

/* The timer is used up: arm it for whatever comes next. */
static int wake_for_next(noh_turn *turn, struct books *b, int64_t now)
{
	struct key k = before_times;
	struct ended_entry old;
	uint64_t hold;
	int64_t time;
	int rc = NOH_OK;

	b->wakes = 0;
	if (next_time(turn, &k, &time, &hold))
		rc = wake_at(turn, b, time, now);
	if (rc != NOH_OK || b->first_ended == b->next_ended)
		return rc;
	rc = get_entry(turn, key_of('l', b->first_ended), &old, sizeof old);
	return rc == NOH_OK ? wake_at(turn, b, old.at + NOH_INVENTORY_KEPT_MS, now) : rc == NOH_END ? lost(turn) : rc;
}

static int expire(noh_turn *turn)
{
	struct books b = *(const struct books *)noh_look(turn);
	int64_t now = (int64_t)noh_wall_ms(turn);
	int rc;

	if (b.next_hold == 0)
		return NOH_OK;
	rc = end_overdue(turn, &b, now, SLICE);
	if (rc == NOH_OK)
		rc = forget_old(turn, &b, now);
	if (rc == NOH_OK)
		rc = wake_for_next(turn, &b, now);
	return rc == NOH_OK ? close_books(turn, &b) : rc;
}

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
	return look_overdue(turn, &s->books, s->now, &s->over);
}

/* ── the messages ── */

/* Decided: the goods come in, or were counted. by is the change of what is on hand. */
static int change_stock(noh_turn *turn, struct scene *s, int64_t by)
{
	struct books *b = &s->books;
	noh_inventory_stock a;
	int rc = end_overdue(turn, b, s->now, s->over.holds);

	if (rc != NOH_OK)
		return rc;
	b->on_hand += by;
	b->available += by;
	if (b->next_hold == 0)
		b->next_hold = 1;
	rc = close_books(turn, b);
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
static int take_hold(noh_turn *turn, struct scene *s, const noh_inventory_reserve *m, noh_inventory_reserved *a)
{
	struct open_hold h = { .n = m->n, .expires = m->ttl_ms ? s->now + m->ttl_ms : NEVER };
	struct books *b = &s->books;
	uint64_t hold = b->next_hold;
	int rc = end_overdue(turn, b, s->now, s->over.holds);

	if (rc == NOH_OK)
		rc = put(turn, key_of('h', hold), &h, sizeof h);
	if (rc == NOH_OK && h.expires != NEVER)
		rc = put(turn, time_key(h.expires, hold), NULL, 0);
	if (rc == NOH_OK && h.expires != NEVER)
		rc = wake_at(turn, b, h.expires, s->now);
	if (rc != NOH_OK)
		return rc;
	b->next_hold++;
	b->holds++;
	b->available -= h.n;
	b->reserved += h.n;
	a->reservation = hold;
	a->available = b->available;
	a->expires = h.expires;
	rc = close_books(turn, b);
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
	return take_hold(turn, &s, &m, &a);
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
	rc = get_entry(turn, key_of('d', a->reservation), &ended, sizeof ended);
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
	rc = a.reservation < b.next_hold ? get_entry(turn, key_of('h', a.reservation), &h, sizeof h) : NOH_END;
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
	rc = end_hold(turn, &b, a.reservation, h, how, now);
	if (rc == NOH_OK)
		rc = close_books(turn, &b);
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

/* One page: looks at no more entries than it may list, so there may be fewer in it. */
static int list_holds(noh_turn *turn, uint64_t cursor, uint32_t limit, noh_inventory_holds *head,
		      noh_inventory_hold *list)
{
	int64_t now = (int64_t)noh_wall_ms(turn);
	struct key k = key_of('h', cursor);
	const void *at = k.bytes, *value;
	size_t len = k.len, value_len;
	struct open_hold h;

	for (uint32_t i = 0; noh_kv_next(turn, &at, &len, &value, &value_len) == NOH_OK &&
			     *(const uint8_t *)at == 'h'; i++) {
		if (len != k.len || value_len != sizeof h)
			return lost(turn);
		if (i == limit) {
			head->cursor = cursor;
			break;
		}
		memcpy(&h, value, sizeof h);
		cursor = get_number((const uint8_t *)at + 1);
		if (h.expires == NEVER || h.expires > now)
			list[head->count++] = (noh_inventory_hold){ cursor, h.n, h.expires };
	}
	return NOH_OK;
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
		rc = list_holds(turn, m.cursor, m.limit ? m.limit : 100, &a.head, a.list);
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
	case NOH_INVENTORY_EXPIRE: return expire(turn);
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
};

const noh_type *noh_inventory_type(void)
{
	return &type;
}
