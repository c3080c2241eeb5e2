/* sched/park.h - sleeping and waking without losing a wake-up.
 *
 * Owns     one word per sleeper. The sleeper says "I am about to sleep" (park_announce), looks for
 *          work once more, and only then sleeps (park_sleep). A waker puts the work down first and
 *          then looks whether somebody sleeps (park_wake).
 * Threads  announce, cancel, sleep: the sleeper.  park_wake, park_asleep: any.
 * Blocks   park_sleep only.
 */
#ifndef NOH_SCHED_PARK_H
#define NOH_SCHED_PARK_H

#include "core/atomic.h"
#include "core/futex.h"

#include <stdbool.h>

struct park {
	atomic_u32 asleep;
	atomic_u32 event;        /* an eventfd + 1: it sleeps in the network, and is woken by this; 0: no */
};

/* The two seq_cst operations here and those on the work itself (inbox push, inbox look) are in one
 * total order: either the waker sees `asleep`, or the sleeper sees the work. */
static inline void park_announce(struct park *p)
{
	(void)swap_seq_cst(&p->asleep, 1);
}

static inline void park_cancel(struct park *p)
{
	store_relaxed(&p->asleep, 0);
}

static inline bool park_asleep(struct park *p)
{
	return load_seq_cst(&p->asleep) != 0;
}

void park_awake(struct park *p);                         /* slept elsewhere, by `event` */
void park_sleep(struct park *p, uint64_t timeout_ns);   /* UINT64_MAX: until woken */
bool park_wake(struct park *p);                          /* true: it slept */

#endif
