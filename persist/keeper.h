/* persist/keeper.h - folds durable frames into LMDB, large batches at a time.
 *
 * Owns     nothing but its plan: when to fold, and how far.
 * Threads  one: keeper_step by a thread of its own, by the simulator, by a test.
 * Blocks   keeper_step does (reads segments, LMDB sync).
 */
#ifndef NOH_PERSIST_KEEPER_H
#define NOH_PERSIST_KEEPER_H

#include "core/clock.h"
#include "persist/db.h"
#include "persist/eventlog.h"
#include "persist/journal.h"
#include "persist/store.h"

struct keeper {
	struct journal *journal;
	struct db      *db;
	struct store   *store;       /* a disk store: told what is folded                        */
	struct eventlog *events;     /* what is folded need not be in memory any more; NULL: nothing is */
	uint64_t        fold_bytes;  /* fold when so much waits, or up to half as much again; 0: 96 MiB */
	uint64_t        fold_ms;     /* or when the oldest has waited so long; 0: 60 000         */
	struct clock    clock;
	uint64_t      (*wall_ms)(void *arg);
	void           *wall_arg;
	uint64_t        oldest_ns;   /* mine: since when something waits; 0: nothing             */
	struct {                     /* mine: how fast it comes, and how fast it goes            */
		uint64_t at_ns, bytes, frame;    /* as last looked at                            */
		uint64_t quiet_ns;               /* since when no frame came                     */
		uint64_t busy_ns;                /* when much came last                          */
		uint64_t comes, goes;            /* bytes a second; 0: not known                 */
		uint64_t nap_ns;                 /* until it is worth looking again              */
	} pace;
	atomic_u32      asked;       /* somebody wants everything folded now                     */
	atomic_u32      event;       /* sleeps on it                                             */
	bool            no_space;    /* the last fold found the disk full                        */
	atomic_u32      folding;     /* a fold is under way                                      */
	uint64_t        retry_ns;    /* mine: after a fold that found no room or memory; 0: now   */
	uint64_t        expire_ns;   /* mine: the same of old events                             */
	uint64_t        most;        /* mine: so many bytes in one fold; less where memory is short */
	bool            trims;       /* mine: memory of the last fold is still there             */
	uint64_t        told;        /* mine: the epoch the store was told last                  */
	atomic_u64      memory;      /* a fold may take so many bytes; 0: as many as it needs    */
	uint64_t        first_to;    /* a fold ends here, so that what is in the image then can be
					counted: the last frame of the run before; 0: need not    */
};

/* Fold if it is time; also lets the journal preallocate. 1: did something, 0: nothing to do,
 * NOH_EDISK, NOH_ECORRUPT: for good. */
int  keeper_step(struct keeper *k);
int  keeper_fold_all(struct keeper *k);          /* up to the durable frame, now                */
void keeper_ask(struct keeper *k);               /* any thread: fold soon (memory is short)     */
void keeper_sleep(struct keeper *k, uint64_t timeout_ns);
uint64_t keeper_nap_ns(const struct keeper *k);   /* after a step: until it is worth another one  */
void keeper_wake(struct keeper *k);

#endif
