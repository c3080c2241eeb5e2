/* sched/hands.h - messages in hand: actors claimed with the one message they were claimed for.
 *
 * When a turn writes to many idle actors (a fan-out), each is claimed at commit and waits here with
 * its message for its turn, a few microseconds: no ring is attached for it and no run queue entry
 * made. What is sent to it meanwhile finds it BUSY and queues in its mailbox, behind (P3).
 *
 * Owns     up to HANDS entries, first in, first out.
 * Threads  put: the owner.  take: the owner; the entry stays readable until his next take.
 *          steal: any (helpers of a stuck worker, thieves): copies before it takes.
 * Never    blocks, allocates.
 *
 * A -> B  an entry is written before the tail that covers it.
 * C -> D  whoever takes [h, h+n) has read those entries before he moves head. The owner writes only
 *         over places before the one he works from, which he took (D) after they were taken.
 */
#ifndef NOH_SCHED_HANDS_H
#define NOH_SCHED_HANDS_H

#include "core/atomic.h"
#include "mailbox/ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

/* One thing a turn does to others; takes effect at the turn's end. One line each:
 *     cell != 0, len <= max_message   a message for that cell
 *     cell != 0, len == FX_SPAWN      activate it; msg.reply is the parent
 *     cell == 0                       an answer: `gen` is its status, msg.reply what it answers */
#define FX_SPAWN UINT32_MAX
struct effect {
	uint32_t   cell, gen;
	struct msg msg;
};
static_assert(sizeof(struct effect) == CACHE_LINE, "an effect is one line");

#ifndef HANDS
#define HANDS 256
#endif

struct hands {
	struct { uint64_t from; } mine;          /* the place the owner works from, or worked last */
	alignas(CACHE_LINE) struct { atomic_u64 tail; } shown;
	alignas(CACHE_LINE) struct { atomic_u64 head; } shared;
	alignas(CACHE_LINE) struct { atomic_u64 words[sizeof(struct effect) / 8]; } entries[HANDS];
};

static inline uint64_t hands_length(struct hands *h)
{
	uint64_t head = load_acquire(&h->shared.head), tail = load_acquire(&h->shown.tail);

	return tail > head ? tail - head : 0;
}

/* Counted from the place the owner works from: thieves may have moved head far beyond it. */
static inline bool hands_room(struct hands *h)
{
	return load_relaxed(&h->shown.tail) - h->mine.from < HANDS;
}

static inline uint32_t hands_left(struct hands *h)
{
	return (uint32_t)(HANDS - (load_relaxed(&h->shown.tail) - h->mine.from));
}

/* The owner's: enough to go on with them before anything else. */
static inline bool hands_many(struct hands *h)
{
	return load_relaxed(&h->shown.tail) - load_relaxed(&h->shared.head) >= (HANDS + 7) / 8;
}

/* The owner works from none of them: before he fills an empty one with what he stole. */
static inline void hands_rest(struct hands *h)
{
	h->mine.from = load_acquire(&h->shared.head);                              /* D */
}

/* hands_room said yes. Word by word: a thief that comes too late may read it as it is written. */
static inline void hands_put(struct hands *h, const struct effect *e)
{
	uint64_t tail = load_relaxed(&h->shown.tail), word;
	atomic_u64 *to = h->entries[tail % HANDS].words;

#pragma GCC unroll 8
	for (unsigned i = 0; i < sizeof *e / 8; i++) {
		memcpy(&word, (const char *)e + i * 8, 8);
		store_relaxed(&to[i], word);
	}
	store_release(&h->shown.tail, tail + 1);                                   /* A */
}

/* The owner's next; valid until he takes again. */
static inline struct effect *hands_take(struct hands *h)
{
	uint64_t head = load_acquire(&h->shared.head);                             /* D */

	while (head < load_relaxed(&h->shown.tail))
		if (cas_acq_rel(&h->shared.head, &head, head + 1)) {               /* C, D */
			h->mine.from = head;
			return (struct effect *)(void *)&h->entries[head % HANDS];
		}
	h->mine.from = head;
	return NULL;
}

/* The same where nobody can steal: in a box of one worker. */
static inline struct effect *hands_take_alone(struct hands *h)
{
	uint64_t head = load_relaxed(&h->shared.head);

	h->mine.from = head;
	if (head >= load_relaxed(&h->shown.tail))
		return NULL;
	store_release(&h->shared.head, head + 1);
	return (struct effect *)(void *)&h->entries[head % HANDS];
}

/* Up to half of them, at most max, copied to out. */
static inline uint32_t hands_steal(struct hands *h, struct effect *out, uint32_t max)
{
	uint64_t head = load_acquire(&h->shared.head);

	for (;;) {
		uint64_t tail = load_acquire(&h->shown.tail), words[sizeof *out / 8];   /* B */
		uint64_t half = tail > head ? (tail - head + 1) / 2 : 0;
		uint32_t n = half < max ? (uint32_t)half : max;

		for (uint32_t i = 0; i < n; i++) {
			for (unsigned k = 0; k < sizeof *out / 8; k++)
				words[k] = load_relaxed(&h->entries[(head + i) % HANDS].words[k]);
			memcpy(&out[i], words, sizeof words);
		}
		if (n == 0 || cas_acq_rel(&h->shared.head, &head, head + n))       /* C */
			return n;
	}
}

#endif
