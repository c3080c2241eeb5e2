/* sched/writer.h - which worker's lone writes to the journal end soonest.
 *
 * A disk's interrupts go to one core. A worker that waits for its write there, with nothing else for that core to do, waits
 * for the core to wake up, too: on a virtual machine half as long again as on another core (docs/decisions/0005). So workers
 * that write alone keep a mean of how long it took, and where all of them sleep a message wakes the quickest.
 *
 * Owns     nothing. The quickest one's mean and number stand in one word, so the two always belong together.
 * Threads  writer_note: the worker.  writer_ask: any. All of it is a hint: who comes between two of its steps does no harm.
 */
#ifndef NOH_SCHED_WRITER_H
#define NOH_SCHED_WRITER_H

#include "core/atomic.h"

#include <stdbool.h>

enum { WRITER_SAMPLES = 8 };             /* before a mean says anything */

struct lone_writer { uint64_t mean_ns; uint32_t count; };
struct lone_writers { atomic_u64 best; atomic_u32 asked; };

static inline uint64_t writer_word(uint32_t index, uint64_t mean_ns)
{
	return mean_ns << 16 | (index + 1);
}

/* Quicker by a fifth: less is noise, and the hint would wander. */
static inline void writer_note(struct lone_writers *all, struct lone_writer *mine, uint32_t index, uint64_t took_ns)
{
	uint64_t is = load_relaxed(&all->best);

	took_ns = took_ns < UINT64_C(1) << 40 ? took_ns : UINT64_C(1) << 40;
	mine->mean_ns = mine->count ? (mine->mean_ns * 7 + took_ns) / 8 : took_ns;
	mine->count += mine->count < WRITER_SAMPLES;
	if (mine->count < WRITER_SAMPLES || index >= 0xffff)
		return;
	if (is == 0 || (is & 0xffff) == index + 1 || mine->mean_ns * 5 < (is >> 16) * 4)
		store_relaxed(&all->best, writer_word(index, mine->mean_ns));
}

/* Whom to wake, plus 1; 0: nobody knows. Every sixteenth time another one, in turn, so that all the means stay true;
 * in the beginning oftener, so that they soon are. */
static inline uint32_t writer_ask(struct lone_writers *all, uint32_t workers)
{
	uint64_t best = load_relaxed(&all->best) & 0xffff;
	uint32_t n, every;

	if (best == 0)
		return 0;
	n = load_relaxed(&all->asked) + 1;
	store_relaxed(&all->asked, n);
	every = n < 128 ? 4 : 16;
	return n % every ? (uint32_t)best : n / every % workers + 1;
}

#endif
