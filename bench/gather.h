/* bench/gather.h - the actor that knows when all is done, and the thread that waits for it.
 *
 * Others tell "gather:1" GATHER_ADD with one to four int64_t, which it sums column by column. An
 * outsider calls it with GATHER_WAIT and a number of reports to wait for; the call is answered
 * (a promise kept over many turns) once that many have come, and the sums start over.
 *
 * Owns     the sums.
 * Threads  gather_wait: outside of turns.
 */
#ifndef NOH_BENCH_GATHER_H
#define NOH_BENCH_GATHER_H

#include "noh.h"

enum { GATHER_WAIT, GATHER_ADD };
enum { GATHER_COLUMNS = 4 };

struct gathered {
	uint64_t reports;                    /* how many came; more than waited for is a bug */
	int64_t  sums[GATHER_COLUMNS];
};

#define GATHER_ADDRESS "gather:1"

noh_type gather_type(void);
int gather_add(noh_turn *turn, noh_actor gather, int64_t value);     /* from another actor's turn */
int gather_wait(noh_box *box, uint64_t reports, uint32_t timeout_ms, struct gathered *all);

#endif
