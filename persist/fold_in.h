/* persist/fold_in.h - a fold from the inside: gathered by fold.c, written by fold_write.c.
 *
 * Owns     copies of the records, references to them, the write transaction while there is one.
 * Threads  the one that folds.
 */
#ifndef NOH_PERSIST_FOLD_IN_H
#define NOH_PERSIST_FOLD_IN_H

#include "persist/db_in.h"
#include "persist/refs.h"

struct fold_chunk {
	struct fold_chunk *next;
	size_t             used, room;
	_Alignas(8) uint8_t bytes[];
};

/* How many images came (+) and went (-) of a type's version. */
struct fold_type {
	uint8_t key[VALUE_KEY_MAX];
	size_t  len;
	int64_t more;
};

/* A record without its head: its address, padded to 8, and its parts. */
struct kept_record {
	uint32_t parts_at, parts_len;
	uint8_t  bytes[];
};

/* What is remembered of a record, so that it need not be looked at again. */
enum {
	NOTE_STATE = 1,                  /* it has one */
	NOTE_PLAIN = 2,                  /* it has nothing else: a later one of the same actor with a state outdoes it */
	NOTE_GONE = 4,
};

/* An event: its group, its place there. */
struct fold_event { uint64_t frame, order, nth; const uint8_t *event; size_t len; };

struct fold {
	struct db         *db;
	uint64_t           stamped;      /* frames up to here are in the image already */
	struct fold_chunk *chunks;
	struct refs        records;      /* by address; note: NOTE_... */
	struct refs        pending;      /* by pending key; at: the EMITTED part, NULL: consumed */
	uint64_t           count, bytes, rows;
	struct fold_event *events;       /* in the order read; sorted when written */
	size_t             event_count, event_room;
	uint64_t           event_bytes;

	/* while writing; made anew for each try */
	MDB_txn           *txn;
	MDB_cursor        *cursors[TABLES];
	struct refs        entries;      /* of one actor */
	struct refs        timers;       /* by timer key; at: put, NULL: delete */
	struct fold_type  *types;
	size_t             type_count, type_room, last_type;
	uint8_t           *kept;         /* parts of the old image that stay */
	size_t             kept_room;
	int64_t            unwell;       /* rows of actors that are not healthy: more (+), fewer (-) */
	struct meta_stamp  stamp;
	int                failed;       /* with FOLD_FAILED: what is to be returned */
	struct fold_pages *limit;        /* NULL: none */
	const uint8_t     *page[TABLES]; /* where the last row of each was written */
	uint64_t           changed;      /* bytes of pages, as far as rows show them */
	const uint8_t     *map;          /* where the file is in memory; pages elsewhere are the transaction's own */
	size_t             map_bytes;
	const uint8_t     *whole[TABLES]; /* the leaf that was looked at last */
	struct { const void *key; size_t len; } found[TABLES];   /* by fold_get: the row in its leaf */
};

/* `len` bytes that live as long as the fold, aligned to 8. NULL: no memory. */
uint8_t *fold_keep(struct fold *f, size_t len);
/* The part whose head is here, in bytes that were checked. */
struct part fold_part(const uint8_t *at);

/* All of it into the open transaction; 0, an LMDB code (MDB_MAP_FULL), or FOLD_FAILED with our own
 * code in *failed and its sentence set. */
#define FOLD_FAILED 1
int fold_write(struct fold *f, uint64_t frame, uint64_t epoch, uint64_t now_ms, int *failed);

/* fold_side.c: what a record brings besides the actor itself. Results as above. */
int fold_find_map(struct fold *f);       /* before anything is written */
int fold_put(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, uint8_t **value);
/* The same for a row that is there, and on which the cursor stands: fold_get was the last that moved it. */
int fold_replace(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, uint8_t **value);
int fold_get(struct fold *f, enum table t, const void *key, size_t len, struct value_row *row);
int fold_delete(struct fold *f, enum table t, const void *key, size_t len);
int fold_damaged(struct fold *f, enum table t, const void *key, size_t len);
int fold_nomem(struct fold *f);
int fold_idem(struct fold *f, const char *address, size_t len, const struct part *p, uint64_t seq);
int fold_dead(struct fold *f, const struct part *p, uint64_t seq);
int fold_undead(struct fold *f, const struct part *p);
int fold_expire(struct fold *f, uint64_t now_ms);
int fold_pending(struct fold *f);
int fold_timers(struct fold *f);
int fold_type(struct fold *f, const char *address, size_t len, uint32_t version, uint64_t schema,
	      int64_t more);
int fold_types(struct fold *f);
int fold_stamp(struct fold *f);
/* As fold_put, of a key above all others. */
int fold_append(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, uint8_t **value);

/* fold_events.c: the event log. */
bool fold_note_event(struct fold *f, uint64_t frame, uint64_t order, const struct part *p);   /* false: no memory */
int fold_events(struct fold *f, uint64_t now_ms);

#endif
