/* persist/db.h - the durable image in LMDB: what all frames up to a stamp add up to.
 *
 * Tables (no DUPSORT; LMDB has no checksums, so every value carries one over key and value, and its
 * sequence):
 *     images    address                              -> sequence, STATE and TIMERS parts
 *     entries   address NUL key                      -> sequence, value
 *     pending   receiver NUL sender seq index        -> an EMITTED part: sent, not consumed
 *     idem      address NUL key                      -> an IDEM part
 *     idem_age  at_ms, number                        -> which idem entry (oldest first)
 *     timers    due_ms, address                      -> nothing: a hint (numbers big-endian here)
 *     types     type NUL version schema              -> how many images
 *     dead      at_ms, number                        -> a DEAD part and the receiver
 *     events    number                               -> an EVENT part
 *     meta      stamp, format, id, counts
 *
 * Owns     the LMDB environment. Images handed out are the caller's: mem_free(image, len).
 * Threads  fold_*: the keeper, one at a time. Everything else: any, at once.
 * Blocks   fold_commit (syncs), db_copy; a load may fault pages in.
 * Never    MDB_NOSYNC. Map growth happens between folds, behind readers' backs but never under them.
 */
#ifndef NOH_PERSIST_DB_H
#define NOH_PERSIST_DB_H

#include "core/names.h"
#include "core/record.h"

struct db;
struct fold;

struct db_options {
	const char *dir;             /* the data directory: DIR/image is made if need be          */
	uint64_t    dir_id;
	bool        read_only;       /* beside a running box                                      */
	bool        must_exist;      /* it was made before: if it is missing, it is lost          */
	uint64_t    map_bytes;       /* at first; grows by itself; 0: 1 GiB                       */
	uint64_t    idem_ms;         /* how long idempotency keys are kept; 0: 24 h               */
	uint64_t    idem_bytes;      /* and how many bytes of them; 0: 1 GiB                      */
	uint64_t    event_ms;        /* how long events are kept; 0: 7 days                       */
	uint64_t    event_bytes;     /* and how many bytes of them; 0: 256 MiB                    */
};

/* NOH_OK, NOH_EDISK, NOH_ECORRUPT (truncated, bad meta: names the file), NOH_EVERSION, NOH_ENOMEM. */
int  db_open(struct db **db, const struct db_options *o);
void db_close(struct db *db);                              /* NULL is fine */
void db_stamp(struct db *db, uint64_t *frame, uint64_t *epoch);   /* what it holds, synced */

/* ── folding ── */
int  fold_begin(struct db *db, struct fold **f);
/* LMDB keeps every page a transaction changes in memory until it commits, and that memory for the next one: at
 * most so many bytes of pages. The rest is told at the end of the fold: how many it changed, and, if they were too
 * many, how many of its records fitted, in 256ths. Lives as long as the fold. */
struct fold_pages { uint64_t most, changed; uint32_t fitted; };
void fold_limit(struct fold *f, struct fold_pages *pages);
/* A journal_each_fn: arg is the fold. Keeps copies; sorts and collapses at commit. */
int  fold_record(void *f, uint64_t frame, uint64_t epoch, const struct record_head *head,
		 const uint8_t *parts, const uint8_t *parts_end);
/* All of it and the stamp in one synced transaction (a full map grows and it is tried again). Applies
 * by sequence: an image or entry in LMDB with a higher one stays. Consumed messages are deleted, a
 * pair inside one fold never written. Old idempotency keys go, oldest first. Frees f in any case.
 * NOH_OK, NOH_EDISK (final), NOH_ENOSPC (no room: the journal has to keep it), NOH_ENOMEM,
 * NOH_ECORRUPT (a row it would change does not fit its sum: nothing was written), NOH_FULL (more pages than
 * fold_limit allows: nothing was written). */
int  fold_commit(struct fold *f, uint64_t frame, uint64_t epoch, uint64_t now_ms);
void fold_abort(struct fold *f);
/* What folds keep in memory for the next one is not needed for a while. */
void fold_trim(struct db *db);
/* Nor is what LMDB keeps of the pages they changed. It gives them back only when it is closed, so it is, and opened again; who
 * wants to read waits for a part of a millisecond, and meets its pages anew. By whoever folds. 1: done, 0: it was
 * little, or somebody was reading; or an error, for good. */
int db_shed(struct db *db);

/* ── reading: each from a snapshot at least as new as the last commit ── */

struct db_loaded { void *image; size_t len; uint64_t seq; };

/* Everything of one actor as parts: STATE, TIMERS, PUTs in key order, then its pending messages with
 * tag < before_tag (EMITTED, in the order of each sender; key: the receiver). NOH_END: nothing is
 * stored. NOH_ECORRUPT: a checksum or key does not match. */
int  db_load(struct db *db, const char *address, size_t len, uint64_t before_tag,
	     struct db_loaded *out);
/* An image or a pending message of any tag. True as well if that cannot be told: then load says why. */
bool db_has(struct db *db, const char *address, size_t len);
bool db_empty(struct db *db);                              /* cheap: no image and nothing pending */
uint64_t db_images(struct db *db);                         /* cheap: as of the last commit */
/* The IDEM part (struct part_idem and the answer) of a key. NOH_END: unknown. */
int  db_idem(struct db *db, const char *address, size_t len, const void *key, size_t key_len,
	     void **part, size_t *part_len);

/* Walks: each() returning non-zero ends them. `after` may be NULL; it is where to go on. No snapshot is
 * held while each() runs, so it may load; what is folded meanwhile is seen or not. */
typedef int db_address_fn(void *arg, const char *address, size_t len);
int db_addresses(struct db *db, const char *after, size_t after_len, db_address_fn *each, void *arg);
int db_receivers(struct db *db, const char *after, size_t after_len, uint64_t before_tag,
		 db_address_fn *each, void *arg);                 /* who has pending messages */
typedef int db_timer_fn(void *arg, uint64_t due_ms, const char *address, size_t len);
int db_timers(struct db *db, uint64_t from_ms, uint64_t to_ms, db_timer_fn *each, void *arg);
/* The same from behind one of its rows on, without end. address: of that row, or NULL: all of that time. */
int db_timers_after(struct db *db, uint64_t due_ms, const char *address, size_t len, db_timer_fn *each, void *arg);
/* Whoever is not healthy, and no timer: by address. */
int db_unwell(struct db *db, db_timer_fn *each, void *arg);
/* Each timer of one actor, as its image has them. NOH_END: it has no image. */
typedef int db_timer_of_fn(void *arg, const struct part_timer *timer);
int db_timers_of(struct db *db, const char *address, size_t len, db_timer_of_fn *each, void *arg);
typedef int db_type_fn(void *arg, const char *type, uint32_t version, uint64_t schema,
		       uint64_t images);
int db_types(struct db *db, db_type_fn *each, void *arg);
typedef int db_dead_fn(void *arg, uint64_t at_ms, uint64_t number, const char *receiver, size_t len,
		       const struct part_dead *dead, const void *rest, size_t rest_len);
/* From this row on, oldest first; 0, 0: all. */
int db_dead(struct db *db, uint64_t from_ms, uint64_t from_number, db_dead_fn *each, void *arg);

/* Events by number, from `first` on: as many as fit into `room` bytes, but one at least, copied one after the other as
 * {number, length, event padded to 8}. NOH_OK with *used 0: there is none above. NOH_ETOOOLD: `first` is gone; *oldest is
 * what there is (0: nothing). NOH_ENOMEM: room is too small, *used says how much is needed; or as it says. */
struct db_event { uint64_t seq, len; };
int db_events(struct db *db, uint64_t first, uint8_t *room, size_t size, size_t *used, uint64_t *oldest);
int db_events_oldest(struct db *db, uint64_t *seq);         /* the first row's number; 0: there is none */
uint64_t db_events_newest(struct db *db);                  /* the last that was folded, there or not */
uint64_t db_events_gone(struct db *db);                    /* the last that was folded and is not there any more */
void db_keep_events(struct db *db, uint64_t bytes, uint64_t ms);         /* from now on; 0: as in db_options */
bool db_events_expire(struct db *db, uint64_t now_ms);      /* is there one to go? Waits for nothing */
/* Those that are too old or too many go, without a fold. NOH_OK, or as fold_commit. By whoever folds. */
int db_expire_events(struct db *db, uint64_t now_ms);

/* For scans: up to `most` addresses that begin with prefix, in the order of their bytes, above `after`
 * (NULL: from the first one). *end: there are no more. */
int db_rows(struct db *db, const char *prefix, size_t prefix_len, const char *after, size_t after_len,
	    uint32_t most, struct names *out, bool *end);
/* NAME_STORED to those from the first-th on that are NAME_THERE and NAME_DURABLE and have an image. That
 * one is not there is not proven here: who is damaged is told twice then, or not stored. */
int db_mark_stored(struct db *db, struct names *n, uint32_t first);
/* The frame of the last commit. If it is the same before and after something, there was none in between. */
uint64_t db_commits(struct db *db);

struct db_stats {
	uint64_t images, entries, pending, idem, idem_bytes, timers, dead;
	uint64_t idem_dropped;       /* keys that went before their time: over idem_bytes        */
	uint64_t map_bytes, used_bytes, folds, folded_records;
	uint64_t events, event_bytes, event_seq;   /* event_seq: the last that was folded        */
	uint64_t event_oldest_ms;    /* when the first was told; 0: there is none                */
};
void db_get_stats(struct db *db, struct db_stats *stats);
/* The same as the last commit of this process left it: takes no snapshot, waits for nothing. */
void db_shown_stats(struct db *db, struct db_stats *stats);
/* For how long the oldest snapshot that anybody holds, in this process or another, has kept pages from being used
 * again: since the first commit after it. 0: nobody holds an old one. now_ms: as in fold_commit. */
uint64_t db_oldest_reader_ms(struct db *db, uint64_t now_ms);
uint64_t db_room_left(struct db *db);                      /* bytes of its file system; UINT64_MAX: not known */

/* Check every value of every table and that they agree (types count images, timers match images, keys
 * match ages). problem() is told each finding; returns how many (below 0: could not look).
 * progress(done, all) now and then. Holds one snapshot: a fold that has to grow the map waits. */
typedef void db_problem_fn(void *arg, const char *what);
typedef void db_progress_fn(void *arg, uint64_t done, uint64_t all);
int64_t db_verify(struct db *db, db_problem_fn *problem, db_progress_fn *progress, void *arg);

/* A consistent copy into `dir`/image (made; must not exist), compacted. *frame, *epoch: its stamp. */
int db_copy(struct db *db, const char *dir, uint64_t *frame, uint64_t *epoch);

#endif
