/* core/bucket.h - a token bucket in one word.
 *
 * The word is the instant at which the bucket will be full again if nobody takes any more. A token costs `step`, a full
 * bucket is `span` ahead of now: so nothing has to be filled, there is no timer, and a bucket that nobody has used for a
 * while is as good as a new one, 0. Tokens that are not there yet can be reserved: who does is told when they will be, and
 * those who come later get later ones. First come, first served, without a queue.
 *
 * Owns     nothing.   Threads  any: one compare-and-swap each.   Never  blocks, gives more than span + elapsed time allow.
 */
#ifndef NOH_CORE_BUCKET_H
#define NOH_CORE_BUCKET_H

#include "core/atomic.h"

struct rate {
	uint64_t step_ns;              /* from one token to the next; 0: no limit */
	uint64_t span_ns;              /* that a full bucket is worth             */
};

/* Up to want of the tokens that are there now; how many it were. Relaxed: a token guards no memory. */
static inline uint32_t bucket_take(atomic_u64 *full_ns, uint64_t now_ns, struct rate rate, uint32_t want)
{
	uint64_t was = load_relaxed(full_ns);

	for (;;) {
		uint64_t from = was > now_ns ? was : now_ns, left = now_ns + rate.span_ns, n;

		if (from + rate.step_ns > left)
			return 0;
		n = (left - from) / rate.step_ns;
		n = n < want ? n : want;
		if (n == 0 || cas_relaxed(full_ns, &was, from + n * rate.step_ns))
			return (uint32_t)n;
	}
}

/* n tokens as soon as there are so many; returns when that is (now_ns: they are there). */
static inline uint64_t bucket_reserve(atomic_u64 *full_ns, uint64_t now_ns, struct rate rate, uint32_t n)
{
	uint64_t was = load_relaxed(full_ns), then;

	do {
		then = (was > now_ns ? was : now_ns) + n * rate.step_ns;
	} while (!cas_relaxed(full_ns, &was, then));
	return then > now_ns + rate.span_ns ? then - rate.span_ns : now_ns;
}

/* Tokens that were not needed. Never more than full: now_ns bounds it from below. */
static inline void bucket_give(atomic_u64 *full_ns, uint64_t now_ns, struct rate rate, uint32_t n)
{
	uint64_t was = load_relaxed(full_ns), then;

	do {
		if (was <= now_ns)
			return;
		then = was - now_ns > n * rate.step_ns ? was - n * rate.step_ns : now_ns;
	} while (!cas_relaxed(full_ns, &was, then));
}

/* How long until there is one. */
static inline uint64_t bucket_wait_ns(atomic_u64 *full_ns, uint64_t now_ns, struct rate rate)
{
	uint64_t then = load_relaxed(full_ns) + rate.step_ns, left = now_ns + rate.span_ns;

	return then > left ? then - left : 0;
}

#endif
