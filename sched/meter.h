/* sched/meter.h - durations and depths, measured by the workers without anybody noticing.
 *
 * A time stamp per message would cost more than some messages do, so durations are samples:
 *   turns     the first one of every pass (of a quiet box: all of them), and about one in SAMPLE_EVERY
 *             behind it, at random distances, so that actors which take turns all get their share
 *   waiting   one message of a type at a time carries a probe: who puts every QUEUED_EVERYth message
 *             into a mailbox notes which one and when (unless another one is under way); who takes it
 *             out looks at the clock
 * A batch and the lateness of a timer cost no clock reading of their own: all of them are counted.
 *
 * Owns     what a port has measured of each type; made when there is something to measure.
 * Threads  the port's owner writes; anyone reads, relaxed.
 */
#ifndef NOH_SCHED_METER_H
#define NOH_SCHED_METER_H

#include "core/histogram.h"
#include "sched/turn.h"

#define SAMPLE_EVERY 512
#define QUEUED_EVERY 16            /* a power of two */

/* The deepest mailbox that was seen lately: in this window of time, and in the one before. */
#define DEPTH_WINDOW_MS 10000
struct meter_depth { atomic_u64 since_ms, now, before; };

struct meter {
	struct histogram   turn, wait, invoke, batch;
	struct meter_depth depth;
};

struct meter *meter_of(struct port *p, const struct type *t);      /* NULL: no memory */
void meter_free(struct port *p, uint32_t types);
uint64_t meter_depth(struct meter *m, uint64_t now_ms);            /* 0: none lately */

int  meter_hook_timed(struct worker *w, const noh_msg *m);
void meter_turn(struct worker *w, uint64_t from_ns);
void meter_queued(struct port *p, struct cell *c, struct type *t);
void meter_full(struct port *p, struct type *t);                   /* somebody was refused, or dropped */
void meter_taken(struct worker *w, struct cell *c, struct type *t, uint32_t n);
void meter_invoke(struct port *p, struct type *t, uint64_t ns);
void meter_batch(struct worker *w, struct type *t, uint32_t n);

/* The hook of a turn over one message. */
static ALWAYS_INLINE int meter_hook(struct worker *w, struct type *ty, const noh_msg *m)
{
	if (__builtin_expect(load_relaxed(&w->shown.counts.turns) >= w->mine.sample_at, 0))
		return meter_hook_timed(w, m);
	return ty->single(&w->mine.turn, m);
}

/* Of `left` messages in a row, how many are to be left for others so that the next one to measure is the first of them;
 * 1 at least. So what is in between need not ask. */
static inline uint32_t meter_stretch(struct worker *w, uint32_t left)
{
	uint64_t turns = load_relaxed(&w->shown.counts.turns), at = w->mine.sample_at;
	uint64_t most = at > turns ? at - turns - 1 : 0;

	return most + 1 < left ? left - (uint32_t)most : 1;
}

/* Around any other hook: when it began; 0: this one is not measured. */
static inline uint64_t meter_begin(struct worker *w)
{
	return load_relaxed(&w->shown.counts.turns) >= w->mine.sample_at ? clock_now_ns(&w->fixed.sched->clock) : 0;
}
static inline void meter_end(struct worker *w, uint64_t from_ns)
{
	if (from_ns)
		meter_turn(w, from_ns);
}

/* n more went into the mailbox of c. */
static ALWAYS_INLINE void meter_accepted(struct port *p, struct cell *c, struct type *t, uint32_t n)
{
	atomic_u64 *accepted = &p->types[t->index].accepted;
	uint64_t before = load_relaxed(accepted);

	store_relaxed(accepted, before + n);
	if (__builtin_expect(before % QUEUED_EVERY + n >= QUEUED_EVERY || before == 0, 0))
		meter_queued(p, c, t);
}

/* n were taken out of it, together. */
static ALWAYS_INLINE void meter_took(struct worker *w, struct cell *c, struct type *t, uint32_t n)
{
	if (__builtin_expect(load_relaxed(&t->probe.cell) == c, 0))
		meter_taken(w, c, t, n);
}

#endif
