/* sched/runq.h - a worker's run queue: one pushes, everybody may take.
 *
 * Owns     the order of the runnable actors, by cell number: first in, first out, for the owner as
 *          well as for thieves. An owner that took the newest first would run an actor that used up
 *          its budget again at once, and nobody else ever (docs/decisions/0001-fifo-run-queue.md).
 *          The "actor just woken" runs before the queue is asked at all: hand-off, sched/turn.c.
 * Threads  runq_push, runq_peek: the owner.  runq_take, runq_steal, runq_length: any.
 * Never    blocks. Grows by allocation; old arrays stay until the end, because a slow thief may
 *          still read them (together they are smaller than the newest).
 */
#ifndef NOH_SCHED_RUNQ_H
#define NOH_SCHED_RUNQ_H

#include "core/atomic.h"

#include <stdalign.h>
#include <stdbool.h>

struct runq_array {
	struct runq_array *older;
	uint64_t           mask;
	atomic_u32         items[];
};

struct runq {
	alignas(CACHE_LINE) struct {
		atomic_u64 bottom;
		atomic_ptr array;
	} shown;
	alignas(CACHE_LINE) struct { atomic_u64 top; } shared;
};

bool runq_open(struct runq *q, uint32_t slots);
void runq_close(struct runq *q);
bool runq_push(struct runq *q, uint32_t item);            /* false: no memory to grow */
uint32_t runq_take(struct runq *q);                       /* 0: empty, or lost a race */

/* The same where nobody can steal: in a box of one worker. */
static inline uint32_t runq_take_alone(struct runq *q)
{
	uint64_t top = load_relaxed(&q->shared.top);
	struct runq_array *a = (struct runq_array *)load_relaxed(&q->shown.array);

	if (top >= load_relaxed(&q->shown.bottom))
		return 0;
	store_relaxed(&q->shared.top, top + 1);
	return load_relaxed(&a->items[top & a->mask]);
}

/* Move up to half of `from` (at most max) to out[]; one CAS. */
uint32_t runq_steal(struct runq *from, uint32_t *out, uint32_t max);

/* The item `ahead` places behind the next one, or 0. A guess, for prefetching. */
uint32_t runq_peek(struct runq *q, uint32_t ahead);

static inline uint64_t runq_length(struct runq *q)
{
	uint64_t top = load_acquire(&q->shared.top), bottom = load_acquire(&q->shown.bottom);

	return bottom > top ? bottom - top : 0;
}

#endif
