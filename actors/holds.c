/* actors/holds.c - entries, books, and the timer that goes through them. */
#include "actors/holds.h"

#include <string.h>

#define SLICE    128                                 /* holds ended or forgotten in one turn, at most */
#define LATE_MS  10000

struct ended_entry { uint64_t hold; int64_t at; };

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

int books_close(noh_turn *turn, const struct books *b)
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
	return noh_schedule_once(turn, NOH_INVENTORY_EXPIRE,
				 (uint64_t)(left < (int64_t)NOH_SCHEDULE_MAX_MS ? left : (int64_t)NOH_SCHEDULE_MAX_MS));
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

int holds_end(noh_turn *turn, struct books *b, uint64_t hold, struct open_hold h, uint64_t how, int64_t now)
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

int holds_overdue(noh_turn *turn, const struct books *b, int64_t now, struct overdue *out)
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

int holds_end_overdue(noh_turn *turn, struct books *b, int64_t now, uint32_t count)
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
			rc = holds_end(turn, b, hold, h, NOH_INVENTORY_EXPIRED, now);
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
	if (rc == NOH_OK)
		return wake_at(turn, b, old.at + NOH_INVENTORY_KEPT_MS, now);
	return rc == NOH_END ? lost(turn) : rc;
}

int holds_wake(noh_turn *turn)
{
	struct books b = *(const struct books *)noh_look(turn);
	int64_t now = (int64_t)noh_wall_ms(turn);
	int rc;

	if (b.next_hold == 0)
		return NOH_OK;
	rc = holds_end_overdue(turn, &b, now, SLICE);
	if (rc == NOH_OK)
		rc = forget_old(turn, &b, now);
	if (rc == NOH_OK)
		rc = wake_for_next(turn, &b, now);
	return rc == NOH_OK ? books_close(turn, &b) : rc;
}

/* ── opening, finding, listing ── */

int holds_find(noh_turn *turn, uint64_t hold, struct open_hold *h)
{
	return get_entry(turn, key_of('h', hold), h, sizeof *h);
}

int holds_find_ended(noh_turn *turn, uint64_t hold, struct ended_hold *h)
{
	return get_entry(turn, key_of('d', hold), h, sizeof *h);
}

int holds_take(noh_turn *turn, struct books *b, struct open_hold h, int64_t now, uint64_t *hold)
{
	int rc = put(turn, key_of('h', b->next_hold), &h, sizeof h);

	if (rc == NOH_OK && h.expires != NEVER)
		rc = put(turn, time_key(h.expires, b->next_hold), NULL, 0);
	if (rc == NOH_OK && h.expires != NEVER)
		rc = wake_at(turn, b, h.expires, now);
	if (rc != NOH_OK)
		return rc;
	*hold = b->next_hold++;
	b->holds++;
	b->available -= h.n;
	b->reserved += h.n;
	return NOH_OK;
}

int holds_list(noh_turn *turn, uint64_t cursor, uint32_t limit, noh_inventory_holds *head,
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
