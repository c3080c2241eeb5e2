/* box/box.h - where the stages meet: a box is a scheduler, a storage, and threads.
 *
 * Owns     all of it, from noh_open to noh_close.
 * Threads  noh.h says it per function.
 */
#ifndef NOH_BOX_BOX_H
#define NOH_BOX_BOX_H

#include "persist/store.h"
#include "sched/sched.h"

#include <pthread.h>

enum box_phase { BOX_OPEN, BOX_RUNNING, BOX_STOPPED };

struct noh_box {
	struct sched   sched;
	struct store  *store;
	pthread_t     *threads;          /* workers, then the watchdog */
	uint32_t       thread_count;
	bool           unpinned;
	bool           stepped;          /* tests: no threads, sched_pass by hand */
	atomic_u32     phase;            /* enum box_phase */
};

/* For tests and the simulator: everything of noh_start but the threads; the caller runs
 * sched_pass(&box->sched.workers[i]) himself, with sched_set_self around it. */
int box_start_stepped(noh_box *box);

#endif
