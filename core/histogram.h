/* core/histogram.h - how often something took how long, or was how large: counts in fixed buckets.
 *
 * Owns     its counts. What the buckets mean is a scale, the same for all histograms of one metric.
 * Threads  one writer at a time; anyone reads at any time, and sees each count as it is or was.
 * Never    allocates, blocks, or does more than look through some twenty numbers.
 */
#ifndef NOH_CORE_HISTOGRAM_H
#define NOH_CORE_HISTOGRAM_H

#include "core/atomic.h"

#define HISTOGRAM_BOUNDS 24

/* bounds[i]: the largest value of bucket i; what is larger than all of them is in the bucket behind. */
struct histogram_scale {
	uint32_t count;
	bool     seconds;              /* values are nanoseconds; else plain numbers */
	uint64_t bounds[HISTOGRAM_BOUNDS];
};
extern const struct histogram_scale histogram_latency;   /* 50 us to 30 s                        */
extern const struct histogram_scale histogram_fine;      /* 500 ns to 30 s: turns are short      */
extern const struct histogram_scale histogram_batch;     /* 1 to 64: messages of one turn        */
extern const struct histogram_scale histogram_group;     /* 1 to 64 Ki: records of one commit    */

struct histogram {
	atomic_u64 buckets[HISTOGRAM_BOUNDS + 1];
	atomic_u64 sum;
};

void histogram_add(struct histogram *h, const struct histogram_scale *scale, uint64_t value);

/* Several writers' together, for who reads. */
struct histogram_sum {
	uint64_t buckets[HISTOGRAM_BOUNDS + 1];
	uint64_t sum, count;
};
void histogram_collect(struct histogram_sum *into, struct histogram *from);

#endif
