/* persist/db_in.h - the image from the inside: for db*.c and fold*.c alone.
 *
 * Owns     the environment, the table handles, the pool of read transactions.
 * Threads  reader_take, reader_give: any. db_grow, db_make_room: whoever folds.
 */
#ifndef NOH_PERSIST_DB_IN_H
#define NOH_PERSIST_DB_IN_H

#include "core/atomic.h"
#include "persist/blocks.h"
#include "persist/db.h"
#include "persist/value.h"

#include <lmdb.h>

#define COMMITS 64               /* whose time is remembered: to tell how old a snapshot is           */
#define READERS 64               /* read transactions at one time; a thread too many waits for one */

struct reader {
	_Alignas(CACHE_LINE) atomic_u32 busy;
	MDB_txn    *txn;                 /* guarded by busy, as is all below; NULL: never used */
	MDB_cursor *cursors[TABLES];
};

struct db {
	struct {
		MDB_env *env;
		MDB_dbi  tables[TABLES];
		char     file[4096 + 32];    /* DIR/image/data.mdb, for sentences and for room */
		int      fd;                 /* of it; -1: read only */
		uint32_t page;
		bool     read_only;
		bool     no_events;          /* it is of format 1, and open to look only */
		uint64_t idem_ms, idem_bytes;
	} fixed;
	struct { atomic_u64 bytes, ms; } events;             /* how many are kept, and how long */
	_Alignas(CACHE_LINE) struct {
		atomic_u64 rows;             /* images and pending messages at the last commit */
		atomic_u64 images;
		atomic_u64 frame, epoch;     /* the stamp */
		atomic_u64 tables[TABLES];   /* rows                                             */
		atomic_u64 unwell;           /* rows of TABLE_TIMERS that are none               */
		atomic_u64 idem_bytes, idem_dropped, folds, folded_records, used_bytes, map_bytes;
		atomic_u64 event_seq, event_bytes, event_oldest_ms;
		atomic_u64 last_txn;
		struct { atomic_u64 txn, at_ms; } commits[COMMITS];      /* the last ones; by number */
	} shown;
	_Alignas(CACHE_LINE) struct { atomic_u32 gate; } shared;    /* 1: the map moves, no new reader */
	struct reader readers[READERS];
	struct {                             /* whose thread folds: from one fold to the next */
		struct blocks blocks;
		size_t        records, messages;     /* room for so many was needed last time */
		uint64_t      pages;                 /* bytes of pages LMDB keeps, about: the most one commit changed */
	} folding;
};

static inline bool db_has_table(const struct db *db, enum table t)
{
	return t != TABLE_EVENTS || !db->fixed.no_events;
}

/* A snapshot at least as new as the last commit; give it back soon. NOH_OK or an error. */
int  reader_take(struct db *db, struct reader **r);
void reader_give(struct reader *r);
/* The environment is there until the reader is left, without a snapshot. NULL: not now, it moves. */
struct reader *reader_enter(struct db *db);
void reader_leave(struct reader *r);
/* Every reader, while the gate is shut or nobody is left: what it holds of the environment goes. */
void readers_end(struct db *db);
/* No reader comes in, and none is in: false if one is, and they may come. */
bool db_shut(struct db *db);
void db_unshut(struct db *db);
/* This table's cursor in the snapshot. NULL: out of memory. */
MDB_cursor *reader_cursor(struct db *db, struct reader *r, enum table t);

/* Make the map at least `bytes`; waits until no reader is in it. */
int db_grow(struct db *db, uint64_t bytes);
/* Before a fold that writes about so many pages: map and file are long enough. NOH_ENOSPC. */
int db_make_room(struct db *db, uint64_t pages);
/* After a commit: the file is as long as its own head says, so that a short one is damage. */
int db_keep_length(struct db *db);

/* LMDB's code in our words. */
int db_error(struct db *db, int rc, const char *doing);
int db_errno(const char *doing, const char *path);       /* a system call's */
int db_damaged(struct db *db, enum table t, const void *key, size_t len);
/* Is the leaf page in which this key lies, in the map, all that it was? One that lost rows is not. */
bool db_leaf_is_whole(const struct db *db, const void *key);
/* statvfs says that there is no room to speak of. */
bool db_disk_full(struct db *db);
/* What the meta table says; NOH_ECORRUPT. */
int db_read_stamp(struct db *db, MDB_txn *txn, struct meta_stamp *stamp);
/* For who looks without a snapshot: rows of each table in a transaction; and, once that is committed, all of it.
 * at_ms 0: when is not known. */
bool db_count(struct db *db, MDB_txn *txn, uint64_t *rows);
/* Rows of actors that are not healthy, behind the timers: as many as can be read. And of so many rows those that are timers. */
uint64_t db_count_unwell(struct db *db, MDB_txn *txn);
uint64_t db_timer_rows(struct db *db, uint64_t rows);
void db_show(struct db *db, const struct meta_stamp *stamp, const uint64_t *rows, uint64_t at_ms);

/* The head of an LMDB file, read without mapping it: NOH_OK with the size of its map, NOH_ECORRUPT if
 * it is missing, damaged or cut short, NOH_EVERSION. */
int db_look(const char *file, bool read_only, uint64_t *map_bytes);

#endif
