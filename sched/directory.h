/* sched/directory.h - from an address to its cell.
 *
 * Owns     4096 small tables of {part of the hash, cell number}, one per partition of the hash
 *          ring; each belongs to its partition's home core, as a hint. A table grows alone, so
 *          growth never pauses anybody for long.
 * Threads  directory_find: any, inside an epoch section, without a lock. insert, remove: any, by
 *          taking the table's writer word for one operation.
 * Never    waits for a particular thread's turn to come; a writer holds its word for one operation.
 */
#ifndef NOH_SCHED_DIRECTORY_H
#define NOH_SCHED_DIRECTORY_H

#include "core/atomic.h"
#include "core/ring_hash.h"

#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <ck_epoch.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

struct directory_array {
	ck_epoch_entry_t retired;
	uint64_t         mask;
	atomic_u64       entries[];     /* tag 32 | cell 32; 0: free; 1: was removed */
};

struct directory_table {
	atomic_u64 array;               /* where, and log2 of the entries in the low 6 bits: a walk
					   needs no look at the array's head                    */
	atomic_u32 writer;
	atomic_u32 changes;             /* inserts and replaces so far                       */
	uint32_t   used, live;          /* the writer's: used counts removed ones, too */
};

struct directory {
	struct directory_table *tables;
	atomic_u64              bytes;
};

bool directory_open(struct directory *d);
void directory_close(struct directory *d);

/* Walk the cells that may be the one: for (it = 0; (n = directory_next(d, hash, &it)); ) compare. */
struct directory_walk { struct directory_array *array; uint64_t mask, at, left; };
void directory_walk(struct directory *d, uint64_t hash, struct directory_walk *w);
uint32_t directory_next(struct directory_walk *w, uint64_t hash);

/* If it says the same under the lock as before a walk, the walk still holds: nobody came in between. */
static inline uint32_t directory_changes(struct directory *d, uint64_t hash)
{
	return load_acquire(&d->tables[ring_hash_partition(hash)].changes);
}

/* For writers: lock, walk and decide, then insert/replace/remove, unlock. */
struct directory_table *directory_lock(struct directory *d, uint64_t hash);
void directory_unlock(struct directory_table *t);
bool directory_insert(struct directory *d, struct directory_table *t, uint64_t hash,
		      uint32_t cell, ck_epoch_record_t *epoch);     /* false: no memory */
void directory_replace(struct directory_table *t, uint64_t hash, uint32_t old, uint32_t cell);
bool directory_remove(struct directory_table *t, uint64_t hash, uint32_t cell);

/* Epoch sections: what was reachable inside one is not freed before it ends. defer: call fn after
 * every section that is open now. poll: do so where it is time, on the record's own thread. */
typedef void epoch_fn(ck_epoch_entry_t *e);
void epoch_enter(ck_epoch_record_t *r);
void epoch_leave(ck_epoch_record_t *r);
void epoch_defer(ck_epoch_record_t *r, ck_epoch_entry_t *e, epoch_fn *fn);
void epoch_poll(ck_epoch_record_t *r);
void epoch_synchronize_all(ck_epoch_record_t *r);   /* ... and do all that was deferred */

#endif
