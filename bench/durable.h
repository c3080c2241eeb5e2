/* bench/durable.h - what the benchmarks of durable boxes share.
 *
 * Owns     nothing.   Threads  the benchmark's main thread.
 */
#ifndef NOH_BENCH_DURABLE_H
#define NOH_BENCH_DURABLE_H

#include "bench/bench.h"

const char *durable_dir(struct bench_run *r, char *room, size_t size);    /* a new, empty one */
void durable_remove(const char *dir);
void durable_done(struct bench_run *r, const char *dir);                  /* removed, at once or at the end of a smoke run */
noh_type durable_counter(void);
void durable_open(struct bench_run *r, const char *dir, noh_type type);   /* r->box; NULL: in memory */

/* n calls to counters, 65536 under way, uniformly or in order; kind 0 adds one, 1 reads. Calls/s. */
double durable_calls(struct bench_run *r, uint64_t n, uint64_t actors, bool in_order, uint32_t kind);

#endif
