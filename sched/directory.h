/* sched/directory.h - from an address to its cell.
 *
 * Owns     4096 small tables of {part of the hash, cell number}, one per partition of the hash
 *          ring; each belongs to its partition's home core, as a hint. A table grows alone, so
 *          growth never pauses anybody for long.
 * Threads  directory_next: any, inside an epoch section, without a lock. insert, remove: any, by
 *          taking the table's writer word for one operation.
 * Never    waits for a particular thread's turn to come; a writer holds its word for one operation.
 */
#ifndef NOH_SCHED_DIRECTORY_H
#define NOH_SCHED_DIRECTORY_H

#include "core/atomic.h"
#include "core/buddy.h"
#include "core/epoch.h"
#include "core/ring_hash.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

/* An array is a power of two of entries: tag 32 | cell 32; 0: free; 1: was removed. Its memory is a
 * block of `arrays`, so all of them stand close together on huge pages. */
struct directory_table {
	alignas(32) atomic_u64 array;   /* where, and log2 of the entries in the low 6 bits          */
	atomic_u32 writer;
	atomic_u32 changes;             /* inserts and replaces so far                       */
	uint32_t   left, live;          /* the writer's: places that may be filled before it grows, and who is there */
};

struct directory {
	struct directory_table *tables;
	struct buddy            arrays;
	atomic_u64              bytes;           /* of the arrays, but for each table's first */
};

bool directory_open(struct directory *d, uint64_t most);    /* about so many cells */
void directory_close(struct directory *d);

#define DIRECTORY_TAG UINT64_C(0xffffffff00000000)
#define DIRECTORY_REMOVED UINT64_C(1)
#define DIRECTORY_LINE 8                /* entries of one cache line */

static inline uint64_t directory_tag(uint64_t hash)
{
	return (hash << RING_HASH_BITS) & DIRECTORY_TAG;
}

static inline atomic_u64 *directory_entries(uint64_t word)
{
	return (atomic_u64 *)(uintptr_t)(word & ~UINT64_C(63));
}

static inline uint64_t directory_mask(uint64_t word)
{
	return (UINT64_C(1) << (word & 63)) - 1;
}

/* Where the i-th try for a tag goes: round its line first, then to the next line. So a look-up
 * touches one line, but for the few whose line is full. */
static inline uint64_t directory_place(uint64_t tag, uint64_t i, uint64_t mask)
{
	uint64_t at = tag >> 32, in_line = DIRECTORY_LINE - 1;

	return ((at & ~in_line) + (i & ~in_line) + ((at + i) & in_line)) & mask;
}

/* Bring what a look-up or an insert will touch: first the table's line, some time later the entry's.
 * For a hint no epoch section is needed. */
static inline void directory_fetch_table(struct directory *d, uint64_t hash)
{
	__builtin_prefetch(&d->tables[ring_hash_partition(hash)], 1);
}

static inline void directory_fetch(struct directory *d, uint64_t hash)
{
	uint64_t word = load_relaxed(&d->tables[ring_hash_partition(hash)].array);
	uint64_t place = (directory_tag(hash) >> 32) & directory_mask(word);

	/* A number, not a pointer: there may be no entries yet. */
	__builtin_prefetch((const void *)((uintptr_t)directory_entries(word) + place * sizeof(atomic_u64)), 1);
}

/* Walk the cells that may be the one: directory_walk, then while ((n = directory_next())) compare. */
struct directory_walk { atomic_u64 *entries; uint64_t tag, mask, tried; };

static inline void directory_walk(struct directory *d, uint64_t hash, struct directory_walk *w)
{
	uint64_t word = load_acquire(&d->tables[ring_hash_partition(hash)].array); /* D */

	w->entries = directory_entries(word);
	w->tag = directory_tag(hash);
	w->mask = directory_mask(word);
	w->tried = 0;
}

static inline uint32_t directory_next(struct directory_walk *w)
{
	while (w->entries && w->tried <= w->mask) {
		uint64_t e = load_acquire(&w->entries[directory_place(w->tag, w->tried++, w->mask)]); /* B */

		if (e == 0)
			break;
		if (e != DIRECTORY_REMOVED && (e & DIRECTORY_TAG) == w->tag)
			return (uint32_t)e;
	}
	return 0;
}

/* If it says the same under the lock as before a walk, the walk still holds: nobody came in between. */
static inline uint32_t directory_changes(struct directory *d, uint64_t hash)
{
	return load_acquire(&d->tables[ring_hash_partition(hash)].changes);
}

/* For writers: lock, walk and decide, then insert/replace/remove, unlock. */
void directory_lock_busy(struct directory_table *t);

static inline struct directory_table *directory_lock(struct directory *d, uint64_t hash)
{
	struct directory_table *t = &d->tables[ring_hash_partition(hash)];
	uint32_t none = 0;

	if (__builtin_expect(!cas_acquire(&t->writer, &none, 1), 0))
		directory_lock_busy(t);
	return t;
}

static inline void directory_unlock(struct directory_table *t)
{
	store_release(&t->writer, 0);
}

bool directory_insert(struct directory *d, struct directory_table *t, uint64_t hash,
		      uint32_t cell, ck_epoch_record_t *epoch);     /* false: no memory */
void directory_replace(struct directory_table *t, uint64_t hash, uint32_t old, uint32_t cell);
bool directory_remove(struct directory_table *t, uint64_t hash, uint32_t cell);

/* Insert if a walk would find nothing at all to compare, and there is room. False: walk, and insert. */
static inline bool directory_insert_new(struct directory_table *t, uint64_t hash, uint32_t cell)
{
	uint64_t    word = load_relaxed(&t->array), tag = directory_tag(hash), mask = directory_mask(word);
	atomic_u64 *entries = directory_entries(word);

	if (__builtin_expect(t->left == 0, 0))
		return false;
	atomic_u64 *at = &entries[(tag >> 32) & mask];

	for (uint64_t i = 1, e; (e = load_relaxed(at)) != 0; i++) {
		if ((e ^ tag) <= UINT32_MAX)
			return false;
		at = &entries[directory_place(tag, i, mask)];
	}
	store_release(at, tag | cell);                                             /* A */
	store_release(&t->changes, load_relaxed(&t->changes) + 1);
	t->left--;
	t->live++;
	return true;
}

#endif
