/* tests/interleave/common.h - senders, a runner and their bookkeeping, for the mailbox cases. */
#ifndef NOH_TESTS_COMMON_H
#define NOH_TESTS_COMMON_H

#include "tests/interleave/world.h"

#define CLASSES_USED 3                  /* rings of 1, 2 and 4 slots */
#define RINGS_EACH 2                    /* of each, for each thread; more from the slab */
#define RINGS_ALL 9                     /* of each there are         */

/* What happened in this run. */
static struct {
	uint32_t capacity, gen[2];
	bool     shared, in_place, cursor;
	int      runners[2];            /* of the mailbox: 0 or 1                        */
	uint32_t sent[2][THREADS_MAX];  /* to a mailbox by a sender, refused ones too    */
	uint32_t last[2][THREADS_MAX];  /* newest of them that was handled               */
	uint32_t accepted, handled, dropped, refused, wakes, idles, kills;
	uint64_t deepest;               /* most messages that waited at once             */
	uint32_t node_seen[NODES_MAX], node_back[NODES_MAX], waiter_woken[NODES_MAX];
	uint64_t seen_full[THREADS_MAX];/* deepest since the sender's last call began    */
} b;

static inline struct mailroom room_of(int t)
{
	struct mailroom room = { &w->rings, &w->ring_cache[t] };

	return room;
}

static inline void open_rings(int threads)
{
	memset(&b, 0, sizeof b);
	b.capacity = UINT32_MAX;
	CHECK(rings_open(&w->rings, 1u << 20));
	for (uint32_t c = 0; c < CLASSES_USED; c++) {
		uint32_t n = 1;

		rings_construct(&w->rings, c, RINGS_ALL);
		for (uint32_t i = 1; i <= RINGS_ALL; i++) {
			/* Of an earlier use, and near to the next: who reads it by mistake finds a slot
			 * that looks right. */
			struct ring *r = (struct ring *)slab_at(&w->rings.slab[c], i);

			store_relaxed(&r->start, 3);
		}
		for (int t = 0; t < threads; t++)
			for (int i = 0; i < RINGS_EACH; i++)
				slab_give(&w->rings.slab[c], &w->ring_cache[t].cache[c], n++);
		store_relaxed(&w->rings.slab[c].shared.fresh, n);
	}
}

static inline void born(int box)
{
	w->state[box] = 0;
	mailbox_born(&w->box[box], MB_IDLE);
	b.gen[box] = PEEK(w->box[box].gen);
}

/* A ring at rest goes on where it stopped, and every slot is free. */
static inline void expect_ready(uint32_t class_no, uint32_t number)
{
	struct ring *r = (struct ring *)slab_at(&w->rings.slab[class_no], number);
	uint32_t     log2 = ring_slots_log2(class_no);

	for (uint64_t i = 0; i < UINT64_C(1) << log2; i++) {
		uint64_t pos = PEEK(r->next) + i;

		CHECK(PEEK(r->slots[pos & ((UINT64_C(1) << log2) - 1)].val) == 2 * (pos >> log2));
	}
}

/* Every ring rests: none was lost, none is in two places. */
static inline void expect_all_rings_home(int threads)
{
	for (uint32_t c = 0; c < CLASSES_USED; c++) {
		struct slab *slab = &w->rings.slab[c];
		uint32_t     seen = 0, all = PEEK(slab->shared.fresh) - 1;
		uint32_t     next = (uint32_t)PEEK(slab->shared.free);

		for (int t = 0; t < threads; t++) {
			struct slab_cache *cache = &w->ring_cache[t].cache[c];

			for (uint32_t i = 0; i < cache->count; i++) {
				CHECK(!(seen >> cache->items[i] & 1));
				seen |= 1u << cache->items[i];
			}
		}
		for (uint32_t i = 0; next && i <= all; i++) {
			struct ring *r = (struct ring *)slab_at(slab, next);

			CHECK(!(seen >> next & 1));
			seen |= 1u << next;
			next = PEEK(r->link);
		}
		CHECK(seen == ((1u << all) - 1) << 1);
		for (uint32_t n = 1; n <= all; n++)
			expect_ready(c, n);
	}
}

static inline void expect_idle(int box)
{
	uint64_t word = PEEK(w->box[box].word);

	CHECK(mb_state(word) == MB_IDLE);
	CHECK(!(word & (MB_RING_MASK | MB_SYS | MB_WAIT)));
	CHECK(mb_tail(word) == mb_tail(PEEK(w->box[box].head)));
	CHECK(mb_ring(PEEK(w->box[box].head)) == 0);
	CHECK(PEEK(w->box[box].sys) == NULL);
	CHECK(PEEK(w->box[box].waiters) == NULL);
}

/* ── messages: who sent it, its number, and a body that fits both ──────────────────────────────── */
static inline struct msg message(uint32_t gen, int sender, uint32_t number)
{
	struct msg m;

	memset(&m, 0, sizeof m);
	m.kind = (uint32_t)sender;
	m.len = number;
	m.reply = gen;
	memset(m.body.bytes, (int)(16 * number + (uint32_t)sender + 1), sizeof m.body.bytes);
	return m;
}

static inline void expect_sound(int box, uint32_t gen, const struct msg *m)
{
	struct msg like;

	CHECK(m->kind < THREADS_MAX);
	CHECK(m->len >= 1 && m->len <= b.sent[box][m->kind]);
	CHECK(m->reply == gen);                  /* meant for this actor, not for the cell's last */
	like = message(gen, (int)m->kind, m->len);
	CHECK(memcmp(&like, m, sizeof like) == 0);
}

static inline void take_note(int box, uint32_t gen, struct slot *slot, bool handled)
{
	struct msg m = slot->msg;

	expect_sound(box, gen, &m);
	if (handled) {
		if (b.dropped + b.refused == 0 && !b.shared)
			CHECK(m.len == b.last[box][m.kind] + 1);
		CHECK(m.len > b.last[box][m.kind]);
		b.last[box][m.kind] = m.len;
		b.handled++;
	} else {
		b.dropped++;
	}
	mailbox_release(slot);
}

/* ── the runner ────────────────────────────────────────────────────────────────────────────────── */
static inline uint32_t node_index(const struct sysmsg *node) { return (uint32_t)(node - w->node); }

static inline void wake_waiters(struct sysmsg *list)
{
	while (list) {
		struct sysmsg *next = list->next;

		b.waiter_woken[node_index(list)]++;
		store_release(&w->flag[node_index(list)], 1);
		list = next;
	}
}

static inline void handle_nodes(struct sysmsg *list, uint32_t gen)
{
	while (list) {
		struct sysmsg *next = list->next;

		if (list->gen == gen)
			b.node_seen[node_index(list)]++;
		else
			b.node_back[node_index(list)]++;
		list = next;
	}
}

static inline void enter(int box)
{
	CHECK(b.runners[box] == 0);
	b.runners[box] = 1;
	w->state[box] = w->state[box] + 1;
}

static inline void leave(int box) { b.runners[box] = 0; }

/* How many wait. Only where head does not lag behind a detach (not with drop_oldest). */
static inline uint64_t waiting(int box)
{
	uint64_t word = PEEK(w->box[box].word);

	if (!mb_ring(word))
		return 0;
	return (uint64_t)mb_distance(mb_tail(word), mb_tail(PEEK(w->box[box].head)));
}

/* Everything that waits, until nothing does: then BUSY with nothing to do. */
static inline void drain(int t, int box)
{
	struct mailroom room = room_of(t);
	struct slot    *slot;

	for (;;) {
		enum mb_take got;

		handle_nodes(mailbox_sys_take(&w->box[box]), b.gen[box]);
		if (waiting(box) <= b.capacity / 2)
			wake_waiters(mailbox_take_waiters(&w->box[box]));
		struct mb_cursor cur;

		got = b.cursor ? mailbox_look(&w->box[box], &room, &cur)
			       : mailbox_take(&w->box[box], &room, b.shared, &slot);
		if (got == MB_EMPTY)
			return;
		if (got != MB_TAKEN) {
			pause_here();
			continue;
		}
		if (!b.cursor)
			take_note(box, b.gen[box], slot, true);
		else
			while (mailbox_take_next(&w->box[box], &cur, &slot))
				take_note(box, b.gen[box], slot, true);
	}
}

static inline void run_actor(int t, int box)
{
	struct mailroom room = room_of(t);

	enter(box);
	for (;;) {
		drain(t, box);
		leave(box);
		if ((b.in_place && mailbox_idle_in_place(&w->box[box])) ||
		    mailbox_idle(&w->box[box], &room, b.shared))
			break;
		enter(box);
	}
	b.idles++;
}

/* ── the sender ────────────────────────────────────────────────────────────────────────────────── */
static inline enum mb_push send_to(int t, int box, uint32_t gen)
{
	struct mailroom room = room_of(t);
	struct msg      m = message(gen, t, ++b.sent[box][t]);
	enum mb_push    got;

	for (;;) {
		struct slot *slot;

		b.seen_full[t] = 0;
		got = mailbox_push(&w->box[box], &room, gen, b.capacity, &m);
		if (got != MB_FULL || !b.shared)
			break;
		switch (mailbox_drop(&w->box[box], &room, gen, &slot)) {
		case MB_TAKEN: take_note(box, gen, slot, false); break;
		case MB_UNPUBLISHED: pause_here(); break;
		case MB_EMPTY: break;
		}
	}
	if (got == MB_PUSHED || got == MB_PUSHED_WAKE)
		b.accepted++;
	if (got == MB_PUSHED_WAKE)
		b.wakes++;
	if (got == MB_FULL)
		b.refused++;
	return got;
}

/* Two messages, with one claim where they fit. */
static inline void send_run(int t, int box)
{
	struct mailroom room = room_of(t);
	struct msg      m[2];
	const struct msg *run[2] = { &m[0], &m[1] };
	uint32_t        in = 0;

	for (int i = 0; i < 2; i++)
		m[i] = message(b.gen[box], t, ++b.sent[box][t]);
	while (in < 2) {
		uint32_t     n = 2 - in;
		enum mb_push got = mailbox_push_run(&w->box[box], &room, b.gen[box], &run[in], &n);

		CHECK(got == MB_PUSHED || got == MB_PUSHED_WAKE);
		CHECK(n >= 1 && n <= 2 - in);
		in += n;
		b.accepted += n;
		if (got == MB_PUSHED_WAKE) {
			b.wakes++;
			run_actor(t, box);
		}
	}
}

static inline void send_and_run(int t, int box)
{
	if (send_to(t, box, b.gen[box]) == MB_PUSHED_WAKE)
		run_actor(t, box);
}

#endif
