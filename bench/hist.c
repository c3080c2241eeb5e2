/* bench/hist.c - a value's step is its highest seven bits: the power of two says which row, the six
 * bits below the highest say which step of it. Values under 64 have a step of their own. */
#include "bench/hist.h"

static unsigned step_of(uint64_t ns)
{
	if (ns < HIST_STEPS)
		return (unsigned)ns;
	unsigned power = 63u - (unsigned)__builtin_clzll(ns) - HIST_BITS;   /* 0 for 64..127 */

	if (power >= HIST_POWERS)
		return HIST_POWERS * HIST_STEPS + HIST_STEPS - 1;
	return (power + 1) * HIST_STEPS + (unsigned)((ns >> power) & (HIST_STEPS - 1));
}

/* The largest value that falls into a step. */
static uint64_t top_of(unsigned step)
{
	if (step < HIST_STEPS)
		return step;
	unsigned power = step / HIST_STEPS - 1;

	return ((uint64_t)(HIST_STEPS + step % HIST_STEPS + 1) << power) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
	hist_add_many(h, ns, 1);
}

void hist_add_many(struct hist *h, uint64_t ns, uint64_t times)
{
	h->steps[step_of(ns)] += times;
	h->count += times;
	if (ns > h->most)
		h->most = ns;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	for (unsigned i = 0; i < sizeof from->steps / sizeof from->steps[0]; i++)
		into->steps[i] += from->steps[i];
	into->count += from->count;
	if (from->most > into->most)
		into->most = from->most;
}

uint64_t hist_at(const struct hist *h, double share)
{
	uint64_t want = (uint64_t)((double)h->count * share), seen = 0;

	for (unsigned i = 0; i < sizeof h->steps / sizeof h->steps[0]; i++) {
		seen += h->steps[i];
		if (seen > want)
			return top_of(i) < h->most ? top_of(i) : h->most;
	}
	return h->most;
}
