/* bench/hist.h - latencies by power of two, 64 steps in each: within 1.6 %, 19 KiB, no allocation.
 *
 * Owns     the counts.
 * Threads  one writer; hist_merge when the writer is done.
 */
#ifndef NOH_BENCH_HIST_H
#define NOH_BENCH_HIST_H

#include <stdint.h>

enum { HIST_BITS = 6, HIST_STEPS = 1 << HIST_BITS, HIST_POWERS = 36 };   /* up to 2^41 ns: 36 min */

struct hist {
	uint64_t count, most;
	uint64_t steps[(HIST_POWERS + 1) * HIST_STEPS];
};

void     hist_add(struct hist *h, uint64_t ns);
void     hist_add_many(struct hist *h, uint64_t ns, uint64_t times);
void     hist_merge(struct hist *into, const struct hist *from);
uint64_t hist_at(const struct hist *h, double share);   /* 0.99 -> p99, in ns; 0 if empty */

#endif
