/* mailbox/mailbox.c - ordering.  The word is the hinge; every change of it is an RMW, so its
 * modification order alone decides who runs and who wakes (no store-buffering pattern anywhere).
 *
 * A -> B  a sender reads the word, then the ring's head and slot, then claims by CAS. The ring is
 *         set up before the CAS that published it (C, release); B is its acquire partner.
 * C       attach and grow: slot, ring head and message become visible with the word itself.
 * D -> E  publishes a message into a claimed slot. With D relaxed the taker may read last lap's.
 * F -> G  gives the slot back. With F relaxed its next writer may overwrite the message being read.
 * H -> I  the runner's head: a sender that sees it may count on the room (G says whether the slot
 *         itself is free). With `shared` it is a CAS: a dropping sender and the runner take turns.
 * J       idle/park/kill: fails if anything (claim, SYS, WAIT) touched the word since it was read,
 *         so "a message waits" and "nobody runs the actor" never hold together.
 * K -> L  system lane: push the node, then touch the word (K, always a write); the runner clears
 *         SYS (L) and then takes the list. K before L: the list has the node. K after L: SYS is set
 *         again and J fails.
 * A runner that meets a claimed but unpublished slot stays BUSY and looks again later, so a
 * publishing sender need not look at the word a second time.
 */
#include "mailbox/mailbox.h"

#include "core/must.h"

#include <stddef.h>

struct place {
	struct slot *slot;
	uint64_t     free_val;
	uint64_t     age;               /* positions the ring has given to this mailbox */
};

/* A mailbox that is never empty keeps its ring for ever, but tails are compared within 33 bits: it
 * changes to a fresh ring before the distance to `start` gets near that. */
#ifndef RING_LIFE
#define RING_LIFE (UINT64_C(1) << 31)
#endif

#define RUN_MOST 256u                   /* messages that go in together */

static inline void locate(const struct rings *rs, uint32_t id, uint64_t tail, struct place *p)
{
	struct ring *r = ring_at(rs, id);
	uint32_t     log2 = ring_slots_log2(ring_class(id));
	uint64_t     start = load_relaxed(&r->start), base = load_relaxed(&r->base);
	uint64_t     age = (tail - start) & MB_TAIL_MASK, pos = base + age;

	p->slot = &r->slots[pos & ((UINT64_C(1) << log2) - 1)];
	p->free_val = (pos >> log2) * 2;
	p->age = age;
}

/* A walk along the slots of a ring: where it is, and what val says there when the slot is free. */
struct walk { struct slot *slot, *first, *end; uint64_t free_val; };

static inline struct walk walk_from(struct ring *r, uint32_t class_no, uint64_t pos)
{
	uint32_t log2 = ring_slots_log2(class_no);
	uint64_t slots = UINT64_C(1) << log2;

	return (struct walk){ r->slots + (pos & (slots - 1)), r->slots, r->slots + slots, (pos >> log2) * 2 };
}

static inline void walk_on(struct walk *at)
{
	if (__builtin_expect(++at->slot == at->end, 0)) {
		at->slot = at->first;
		at->free_val += 2;
	}
}

/* Slots that are not free any more, though nobody has seen them: n of them. */
static void unprepare(struct walk at, uint32_t n)
{
	for (; n; n--, walk_on(&at))
		store_relaxed(&at.slot->val, at.free_val);
}

/* Set up ring id for a mailbox whose tail is `tail`, with msgs in its first slots. */
static bool prepare(const struct rings *rs, uint32_t id, uint32_t prev, uint64_t tail,
		    const struct msg *const *msgs, uint32_t n)
{
	struct ring *r = ring_at(rs, id);
	uint64_t     base = load_relaxed(&r->next);
	struct walk  first = walk_from(r, ring_class(id), base), at = first;

	store_relaxed(&r->start, tail);
	store_relaxed(&r->base, base);
	store_relaxed(&r->prev, prev);
	for (uint32_t i = 0; i < n; i++, walk_on(&at)) {
		if (load_acquire(&at.slot->val) != at.free_val) {        /* a late dropper still reads it */
			unprepare(first, i);
			return false;
		}
		at.slot->msg = *msgs[i];
		store_relaxed(&at.slot->val, at.free_val + 1);                     /* C */
	}
	return true;
}

/* A ring of class_no or above that is ready to write: one that a late dropper still reads goes
 * back to the end of the line. */
static uint32_t take_prepared(const struct mailroom *room, uint32_t class_no, uint32_t prev,
			      uint64_t tail, const struct msg *const *msgs, uint32_t n)
{
	for (; class_no < RING_CLASSES; class_no++) {
		uint32_t id = ring_take(room->rings, room->cache, class_no);

		if (!id)
			return 0;
		if (prepare(room->rings, id, prev, tail, msgs, n))
			return id;
		ring_give(room->rings, room->cache, id);
	}
	return 0;
}

/* No ring, or a full or old one: a fresh ring with the messages in it. MB_FULL: the word has changed,
 * and is read again. */
static enum mb_push bring(struct mailbox *m, const struct mailroom *room, uint64_t *word,
			  uint32_t class_no, const struct msg *const *msgs, uint32_t n)
{
	uint64_t was = *word, tail = mb_tail(was);
	uint32_t next = take_prepared(room, class_no, mb_ring(was), tail, msgs, n);
	unsigned state = mb_state(was) == MB_IDLE ? MB_BUSY : mb_state(was);

	if (!next)
		return MB_NOMEM;
	if (cas_acq_rel(&m->word, word, mb_word(state, next, tail + n) | (was & (MB_SYS | MB_WAIT)))) /* C */
		return mb_state(was) == MB_IDLE ? MB_PUSHED_WAKE : MB_PUSHED;
	struct ring *r = ring_at(room->rings, next);

	unprepare(walk_from(r, ring_class(next), load_relaxed(&r->base)), n);
	ring_give(room->rings, room->cache, next);
	return MB_FULL;
}

enum mb_push mailbox_push(struct mailbox *m, const struct mailroom *room, uint32_t gen,
			  uint32_t capacity, const struct msg *msg)
{
	uint64_t word = load_acquire(&m->word);                                    /* A */

	for (;;) {
		uint32_t ring = mb_ring(word);
		uint64_t tail = mb_tail(word);
		uint32_t class_no = 0;
		struct place p;

		if (load_acquire(&m->gen) != gen || mb_state(word) == MB_DEAD)
			return MB_GONE;
		if (ring) {
			/* Without a ring it is empty, whatever a detach has done to head so far. */
			if (mb_distance(tail, mb_tail(load_acquire(&m->head))) >= (int64_t)capacity) /* I */
				return MB_FULL;
			locate(room->rings, ring, tail, &p);
			uint64_t val = load_acquire(&p.slot->val);                 /* G */

			if (val == p.free_val && p.age < RING_LIFE) {
				must_debug(mb_state(word) != MB_IDLE);
				if (!cas_acq_rel(&m->word, &word, mb_next(word)))  /* B */
					continue;
				p.slot->msg = *msg;
				store_release(&p.slot->val, p.free_val + 1);       /* D */
				return MB_PUSHED;
			}
			uint64_t now = load_acquire(&m->word);
			if (now != word) {
				word = now;
				continue;
			}
			class_no = ring_class(ring) + (p.age < RING_LIFE);
		}
		enum mb_push brought = bring(m, room, &word, class_no, &msg, 1);

		if (brought != MB_FULL)
			return brought;
	}
}

/* The ring of the word has k free slots from tail on, seen before the one CAS that claims them; as the word
 * did not change in between, nobody else can have claimed any of them. 0: none, or the word has changed. */
static uint32_t push_side_by_side(struct mailbox *m, const struct mailroom *room, uint64_t *word,
				  const struct msg *const *msgs, uint32_t n)
{
	uint32_t     id = mb_ring(*word), k = 0;
	struct ring *r = ring_at(room->rings, id);
	uint64_t     age = (mb_tail(*word) - load_relaxed(&r->start)) & MB_TAIL_MASK;
	struct walk  first = walk_from(r, ring_class(id), load_relaxed(&r->base) + age), at = first;

	if (age >= RING_LIFE - n)
		return 0;
	for (; k < n && load_acquire(&at.slot->val) == at.free_val; k++)           /* G */
		walk_on(&at);
	uint64_t to = (*word & ~MB_TAIL_MASK) | ((*word + k) & MB_TAIL_MASK);

	if (k == 0 || !cas_acq_rel(&m->word, word, to))                            /* B */
		return 0;
	at = first;
	for (uint32_t i = 0; i < k; i++, walk_on(&at)) {
		at.slot->msg = *msgs[i];
		store_release(&at.slot->val, at.free_val + 1);                     /* D */
	}
	return k;
}

enum mb_push mailbox_push_run(struct mailbox *m, const struct mailroom *room, uint32_t gen,
			      const struct msg *const *msgs, uint32_t *n)
{
	uint64_t word = load_acquire(&m->word);                                    /* A */
	uint32_t class_no = 0, most = *n < RUN_MOST ? *n : RUN_MOST, k;

	if (most > 1 && load_acquire(&m->gen) == gen && mb_state(word) != MB_DEAD) {
		if (mb_ring(word)) {
			k = push_side_by_side(m, room, &word, msgs, most);
			if (k) {
				*n = k;
				return MB_PUSHED;
			}
		} else {
			while (class_no + 1 < RING_CLASSES && 1u << ring_slots_log2(class_no) < most)
				class_no++;
			enum mb_push brought = bring(m, room, &word, class_no, msgs, most);

			if (brought == MB_PUSHED_WAKE || brought == MB_PUSHED) {
				*n = most;
				return brought;
			}
		}
	}
	*n = 1;
	return mailbox_push(m, room, gen, UINT32_MAX, msgs[0]);
}

/* The ring in the chain of `word` that holds position n, or 0. */
static uint32_t ring_of(const struct rings *rs, uint64_t word, uint64_t n)
{
	uint32_t id = mb_ring(word);

	for (int hops = 0; id && hops < RING_CLASSES; hops++) {
		struct ring *r = ring_at(rs, id);

		if (mb_distance(n, load_relaxed(&r->start)) >= 0)
			return id;
		id = load_relaxed(&r->prev);
	}
	return 0;
}

/* The old ring has been read to its end: rest it where its next user goes on. */
static void retire(const struct mailroom *room, uint32_t id, uint64_t n)
{
	struct ring *r = ring_at(room->rings, id);

	store_relaxed(&r->next, load_relaxed(&r->base) + ((n - load_relaxed(&r->start)) & MB_TAIL_MASK));
	ring_give(room->rings, room->cache, id);
}

void mailbox_fetch_slot(const struct mailbox *m, const struct rings *rs)
{
	uint32_t ring = mb_ring(load_relaxed(&m->word));
	struct place p;

	if (ring == 0)
		return;
	locate(rs, ring, mb_tail(load_relaxed(&m->head)), &p);
	__builtin_prefetch(p.slot, 1);
}

/* slot NULL: only look. gen: what a sender checks, after each look at head. No value of a shared head comes back, not even
 * for the cell's next actor, so if his CAS succeeds it was the mailbox he meant. */
static inline enum mb_take take(struct mailbox *m, const struct mailroom *room, bool shared,
				const uint32_t *gen, struct slot **slot)
{
	uint64_t head = load_acquire(&m->head);

	for (;;) {
		uint64_t n = mb_tail(head), word;
		uint32_t ring = mb_ring(head), at;
		struct place p;

		if (gen && load_acquire(&m->gen) != *gen)
			return MB_EMPTY;
		if (!shared && mb_tail(load_relaxed(&m->word)) == n)     /* beside head: an empty ring is not looked at */
			return MB_EMPTY;
		if (ring) {
			locate(room->rings, ring, n, &p);
			if (load_acquire(&p.slot->val) == p.free_val + 1) {        /* E */
				uint64_t to = mb_word(0, ring, n + 1);

				if (!slot)
					return MB_TAKEN;
				if (!shared)
					store_release(&m->head, to);               /* H */
				else if (!cas_acq_rel(&m->head, &head, to))        /* H */
					continue;
				*slot = p.slot;
				return MB_TAKEN;
			}
		}
		word = load_acquire(&m->word);
		if (mb_ring(word) == 0 || mb_tail(word) == n)
			return MB_EMPTY;
		at = ring_of(room->rings, word, n);
		if (at == ring || at == 0)
			return MB_UNPUBLISHED;
		uint64_t to = mb_word(0, at, n);
		if (!shared)
			store_release(&m->head, to);
		else if (!cas_acq_rel(&m->head, &head, to))
			continue;
		if (ring)
			retire(room, ring, n);
		head = to;
	}
}

enum mb_take mailbox_take(struct mailbox *m, const struct mailroom *room, bool shared,
			  struct slot **slot)
{
	return take(m, room, shared, NULL, slot);
}

enum mb_take mailbox_drop(struct mailbox *m, const struct mailroom *room, uint32_t gen,
			  struct slot **slot)
{
	return take(m, room, true, &gen, slot);
}

void mailbox_cursor(struct mailbox *m, const struct mailroom *room, struct mb_cursor *cur)
{
	uint64_t     head = load_relaxed(&m->head);
	struct ring *r = ring_at(room->rings, mb_ring(head));
	struct walk  at = walk_from(r, ring_class(mb_ring(head)), load_relaxed(&r->base) +
				    ((mb_tail(head) - load_relaxed(&r->start)) & MB_TAIL_MASK));

	*cur = (struct mb_cursor){ .slot = at.slot, .first = at.first, .end = at.end, .full = at.free_val + 1,
				   .id = mb_ring(head) };
}

enum mb_take mailbox_look(struct mailbox *m, const struct mailroom *room, struct mb_cursor *cur)
{
	enum mb_take got = take(m, room, false, NULL, NULL);

	cur->id = 0;
	if (got == MB_TAKEN)
		mailbox_cursor(m, room, cur);
	return got;
}

/* BUSY, all taken, head shared: let the ring go, stay BUSY. A sender may claim between any two lines:
 * he sees either the old ring (the CAS fails) or none (he brings his own). A dropper that waits for
 * head to follow gets MB_UNPUBLISHED. The step of tail makes every value of head new. */
static bool detach(struct mailbox *m, const struct mailroom *room, uint64_t *word)
{
	uint32_t ring = mb_ring(*word);
	uint64_t tail = mb_tail(*word);
	uint64_t to = mb_word(MB_BUSY, 0, tail + 1) | (*word & (MB_SYS | MB_WAIT));

	if (tail != mb_tail(load_relaxed(&m->head)) || !cas_acq_rel(&m->word, word, to))
		return false;
	store_release(&m->head, mb_word(0, 0, tail + 1));
	retire(room, ring, tail);
	*word = to;
	return true;
}

bool mailbox_idle(struct mailbox *m, const struct mailroom *room, bool shared)
{
	uint64_t word = load_acquire(&m->word);
	uint64_t head, tail = mb_tail(word);

	must_debug(mb_state(word) == MB_BUSY);
	if (word & (MB_SYS | MB_WAIT))
		return false;
	if (mb_ring(word) && shared && !detach(m, room, &word))
		return false;
	if (!mb_ring(word))
		return cas_acq_rel(&m->word, &word, mb_with_state(word, MB_IDLE)); /* J */
	/* Nobody but the runner writes head: move it first and save a CAS. Its tail stays, as senders
	 * count with it, and so does the word's: the next ring begins with a claim. */
	head = load_relaxed(&m->head);
	if (tail != mb_tail(head))
		return false;
	store_release(&m->head, mb_word(0, 0, tail));
	if (!cas_acq_rel(&m->word, &word, mb_word(MB_IDLE, 0, tail))) {            /* J */
		store_release(&m->head, head);
		return false;
	}
	retire(room, mb_ring(head), tail);
	return true;
}

bool mailbox_kill(struct mailbox *m, const struct mailroom *room)
{
	uint64_t word = load_acquire(&m->word);
	uint64_t tail = mb_tail(word);
	uint32_t ring = mb_ring(word);

	must(mb_state(word) == MB_BUSY);
	if (word & (MB_SYS | MB_WAIT))
		return false;
	if (ring && tail != mb_tail(load_relaxed(&m->head)))
		return false;
	if (!cas_acq_rel(&m->word, &word, mb_word(MB_DEAD, 0, tail + 1)))          /* J */
		return false;
	if (ring) {
		store_release(&m->head, mb_word(0, 0, tail + 1));   /* before the ring has another user */
		retire(room, ring, tail);
	}
	store_release(&m->gen, load_relaxed(&m->gen) + 1);
	return true;
}

bool mailbox_park(struct mailbox *m)
{
	uint64_t word = load_acquire(&m->word);

	do {
		must_debug(mb_state(word) == MB_BUSY);
		if (word & MB_SYS)
			return false;
	} while (!cas_seq_cst(&m->word, &word, mb_with_state(word, MB_PARKED)));   /* J */
	return true;
}

bool mailbox_wake(struct mailbox *m)
{
	uint64_t word = load_acquire(&m->word);

	while (mb_state(word) == MB_PARKED)
		if (cas_acq_rel(&m->word, &word, mb_with_state(word, MB_BUSY)))
			return true;
	return false;
}

static struct sysmsg *reversed(struct sysmsg *top)
{
	struct sysmsg *oldest = NULL;

	while (top) {
		struct sysmsg *next = top->next;

		top->next = oldest;
		oldest = top;
		top = next;
	}
	return oldest;
}

struct sysmsg *mailbox_sys_take(struct mailbox *m)
{
	uint64_t word = load_acquire(&m->word);

	do {
		if (!(word & MB_SYS))
			return NULL;
	} while (!cas_acq_rel(&m->word, &word, word & ~MB_SYS));                   /* L */
	return reversed((struct sysmsg *)swap_acq_rel(&m->sys, NULL));
}

/* Relaxed: only the runner takes from the lane, so whatever makes somebody the next one shows him this, too. */
void mailbox_sys_put_back(struct mailbox *m, struct sysmsg *list)
{
	struct sysmsg *stack = reversed(list), *newer, *last;
	uint64_t       word = load_relaxed(&m->word);
	void          *none = NULL;

	while (!cas_relaxed(&m->sys, &none, (void *)stack)) {
		none = NULL;
		newer = last = (struct sysmsg *)swap_acquire(&m->sys, NULL);
		while (last->next)
			last = last->next;
		last->next = stack;
		stack = newer;
	}
	while (!cas_relaxed(&m->word, &word, word | MB_SYS))
		;
}

struct sysmsg *mailbox_take_waiters(struct mailbox *m)
{
	uint64_t word = load_acquire(&m->word);

	do {
		if (!(word & MB_WAIT))
			return NULL;
	} while (!cas_acq_rel(&m->word, &word, word & ~MB_WAIT));                  /* L */
	return reversed((struct sysmsg *)swap_acq_rel(&m->waiters, NULL));
}

static void stack_push(atomic_ptr *stack, struct sysmsg *msg)
{
	void *top = load_relaxed(stack);

	do {
		msg->next = (struct sysmsg *)top;
	} while (!cas_acq_rel(stack, &top, (void *)msg));
}

/* The cell died under a message of generation gen. What lies in the lane is as dead, unless the cell
 * was given to its next actor since and somebody sent to that one: his message goes in again. */
static bool empty_dead_lane(struct mailbox *m, uint32_t gen, struct sysmsg **undeliverable)
{
	struct sysmsg *list = reversed((struct sysmsg *)swap_acq_rel(&m->sys, NULL)), *last = NULL;
	bool           wake = false;

	while (list) {
		struct sysmsg *msg = list, *dead = msg;

		list = msg->next;
		msg->next = NULL;
		if (msg->gen != gen && mailbox_sys_push(m, msg->gen, msg, &dead))
			wake = true;
		if (last)
			last->next = dead;
		else
			*undeliverable = dead;
		for (; dead; dead = dead->next)
			last = dead;
	}
	return wake;
}

bool mailbox_sys_push(struct mailbox *m, uint32_t gen, struct sysmsg *msg,
		      struct sysmsg **undeliverable)
{
	uint64_t word;

	*undeliverable = NULL;
	msg->gen = gen;
	msg->next = NULL;
	if (load_acquire(&m->gen) != gen) {
		*undeliverable = msg;
		return false;
	}
	stack_push(&m->sys, msg);
	word = load_acquire(&m->word);
	for (;;) {
		unsigned state = mb_state(word);
		bool     wake = state == MB_IDLE || state == MB_PARKED;
		uint64_t to = (wake ? mb_with_state(word, MB_BUSY) : word) | MB_SYS;

		if (state == MB_DEAD)
			return empty_dead_lane(m, gen, undeliverable);
		if (cas_acq_rel(&m->word, &word, to))                              /* K */
			return wake;
	}
}

bool mailbox_flag_room(struct mailbox *m)
{
	uint64_t word = load_acquire(&m->word);

	do {
		if (mb_state(word) != MB_BUSY && mb_state(word) != MB_PARKED)
			return false;
	} while (!cas_acq_rel(&m->word, &word, word | MB_WAIT));                   /* K */
	return true;
}

struct sysmsg *mailbox_ask_room(struct mailbox *m, struct sysmsg *w)
{
	stack_push(&m->waiters, w);
	if (mailbox_flag_room(m))
		return NULL;
	return reversed((struct sysmsg *)swap_acq_rel(&m->waiters, NULL));
}
