/* tests/interleave/world.h - what a case is, for both backends.
 *
 * A case is a few threads that run the product's own functions, from a fresh world, over and over,
 * each time in another order. It is plain C that is also C++: the same text runs under the
 * depth-first scheduler (dfs.c) and under Relacy (relacy.cpp).
 *
 * setup and finish run alone, before and after the threads. watch runs between any two steps and
 * sees the newest values (PEEK). Bookkeeping of a case is plain memory that `setup` resets: threads
 * never run at the same time, so it needs no care, and it adds no steps.
 */
#ifndef NOH_TESTS_WORLD_H
#define NOH_TESTS_WORLD_H

#include "core/slab.h"
#include "mailbox/inbox.h"
#include "mailbox/mailbox.h"
#include "net/lease.h"
#include "persist/gather.h"
#include "sched/park.h"
#include "sched/relay.h"
#include "sched/step_word.h"
#ifndef __cplusplus
#include "sched/hands.h"       /* its entries are read in place: not for Relacy's atomics */
#endif
#include "sched/runq.h"

#include <string.h>

#define THREADS_MAX 3
#define NODES_MAX 6

/* A thing of the slab case: what its owner wrote is plain memory. */
struct thing {
	atomic_u32 link;
	PLAIN(uint32_t) owner;
};

/* All that any case shares between its threads. Zero (and no more) at the beginning of setup. */
struct world {
	struct mailbox    box[2];
	PLAIN(uint32_t)   state[2];         /* the actors': plain memory of whoever runs them */
	struct rings      rings;
	struct ring_cache ring_cache[THREADS_MAX];
	struct slab       slab;
	struct slab_cache slab_cache[THREADS_MAX];
	struct runq       runq;
#ifndef __cplusplus
	struct hands      hands;
#endif
	struct inbox      inbox;
	struct park       park;
	struct sysmsg     node[NODES_MAX];
	atomic_u32        flag[4];
	struct gather     gather;
	struct gather_ring gather_ring[2];
	uint8_t           gather_bytes[2][64];
	PLAIN(uint32_t)   gather_mark[2][2];
	atomic_u64        durable;
	atomic_u32        step;
	PLAIN(uint32_t)   held;             /* by the step */
	atomic_u32        lease;
	PLAIN(uint32_t)   sent;             /* of whoever has the lease */
	struct relay      relay;
	PLAIN(uint32_t)   relay_waits, relay_went;  /* of whoever holds the relay */
};
extern struct world *w;

struct a_case {
	const char *name;
	int         threads;
	void      (*setup)(void);
	void      (*run)(int thread);
	void      (*finish)(void);
	void      (*watch)(void);
	unsigned    bound, full_bound;   /* preemptions to try in all ways: quick, full */
};
extern const struct a_case mailbox_cases[], lane_cases[], sched_cases[], journal_cases[];

/* Provided by the backend. */
#define CHECK(claim) ((claim) ? (void)0 : check_failed(#claim, __FILE__, __LINE__))
void check_failed(const char *claim, const char *file, int line);
void pause_here(void);             /* nothing to do until another thread has written something */
void rings_construct(struct rings *rs, uint32_t class_no, uint32_t numbers);
void things_construct(struct slab *s, uint32_t numbers);

/* How old a ring gets before a busy mailbox changes it: mailbox.c's RING_LIFE. */
extern uint64_t ring_life;

#endif
