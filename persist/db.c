/* persist/db.c - opening the image, its readers, its growth.
 *
 * A reader is a read transaction that is reset and renewed, so a look costs no system call and no
 * lock. Whoever wants one claims a busy word, beginning with the one this thread had last.
 *
 * A -> C, D -> B  the gate. A reader announces itself (A) and then looks at the gate (B); the one that
 *         moves the map, or opens the file again (db_shed), shuts the gate (D) and then looks for readers (C). All four seq_cst: one of
 *         the two sees the other. With less both may pass, and the map moves under a reader.
 * E -> C  a reader is out of the map before the map moves.
 * F -> B, F -> G  the map has moved before a reader enters it.
 */
#include "persist/db_in.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/must.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SHUT_TRIES 1000          /* for a reader to leave, then it is one that stays: a copy, a check */
#define LITTLE_ROOM ((uint64_t)1 << 20)

/* Where this thread looks first. A hint: any value is right, in any box. */
static _Thread_local uint32_t last_reader;

/* ── words for errors ── */

int db_error(struct db *db, int rc, const char *doing)
{
	const char *file = db->fixed.file;

	switch (rc) {
	case MDB_SUCCESS:
		return NOH_OK;
	case ENOMEM:
		return error_set(NOH_ENOMEM, "%s %s: out of memory", doing, file);
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID:
	case MDB_INCOMPATIBLE:
	case MDB_BAD_TXN:
		return error_set(NOH_ECORRUPT, "%s %s: damaged (%s); restore a backup", doing, file,
				 mdb_strerror(rc));
	case MDB_VERSION_MISMATCH:
		return error_set(NOH_EVERSION, "%s %s: written by another version of LMDB", doing, file);
	case ENOSPC:
		return error_set(NOH_ENOSPC, "%s %s: the disk is full; make room", doing, file);
	default:
		return error_set(NOH_EDISK, "%s %s: %s", doing, file, mdb_strerror(rc));
	}
}

int db_errno(const char *doing, const char *path)
{
	return error_set(errno == ENOSPC || errno == EDQUOT ? NOH_ENOSPC : NOH_EDISK, "%s %s: %s", doing,
			 path, strerror(errno));
}

int db_damaged(struct db *db, enum table t, const void *key, size_t len)
{
	char text[64];
	size_t n = 0;

	for (; n < len && n < sizeof text - 1; n++) {
		char c = ((const char *)key)[n];
		text[n] = c >= ' ' && c < 127 ? c : '.';
	}
	text[n] = 0;
	return error_set(NOH_ECORRUPT, "%s: table %s, \"%s\": the checksum or the key does not match; "
			 "restore a backup", db->fixed.file, table_name(t), text);
}

uint64_t db_room_left(struct db *db)
{
	struct statvfs s;

	return statvfs(db->fixed.file, &s) == 0 ? (uint64_t)s.f_bavail * s.f_frsize : UINT64_MAX;
}

bool db_disk_full(struct db *db)
{
	return db_room_left(db) < LITTLE_ROOM;
}

/* ── readers ── */

static struct reader *claim(struct db *db)
{
	for (;; sched_yield()) {
		for (uint32_t i = 0; i < READERS; i++) {
			uint32_t at = (last_reader + i) % READERS;
			uint32_t idle = 0;

			if (load_relaxed(&db->readers[at].busy) == 0 &&
			    cas_seq_cst(&db->readers[at].busy, &idle, 1)) {         /* A */
				last_reader = at;
				return &db->readers[at];
			}
		}
	}
}

static void pass_gate(struct db *db)
{
	while (load_acquire(&db->shared.gate) != 0)                                 /* G */
		sched_yield();
}

struct reader *reader_enter(struct db *db)
{
	struct reader *r = claim(db);

	if (load_seq_cst(&db->shared.gate) == 0)                                    /* B */
		return r;
	reader_leave(r);
	return NULL;
}

void reader_leave(struct reader *r)
{
	store_release(&r->busy, 0);                                                 /* E */
}

/* Another process made the file larger than our map. */
static int follow_growth(struct db *db)
{
	return db_grow(db, 0);
}

int reader_take(struct db *db, struct reader **out)
{
	for (;;) {
		struct reader *r = reader_enter(db);

		if (!r) {
			pass_gate(db);
			continue;
		}
		int rc = r->txn ? mdb_txn_renew(r->txn)
				: mdb_txn_begin(db->fixed.env, NULL, MDB_RDONLY, &r->txn);
		if (rc == MDB_SUCCESS) {
			*out = r;
			return NOH_OK;
		}
		reader_leave(r);
		if (rc != MDB_MAP_RESIZED)
			return db_error(db, rc, "reading");
		rc = follow_growth(db);
		if (rc != NOH_OK)
			return rc;
	}
}

void reader_give(struct reader *r)
{
	mdb_txn_reset(r->txn);
	reader_leave(r);
}

MDB_cursor *reader_cursor(struct db *db, struct reader *r, enum table t)
{
	MDB_cursor **c = &r->cursors[t];
	int rc = *c ? mdb_cursor_renew(r->txn, *c)
		    : mdb_cursor_open(r->txn, db->fixed.tables[t], c);

	return rc == MDB_SUCCESS ? *c : NULL;
}

void readers_end(struct db *db)
{
	for (uint32_t i = 0; i < READERS; i++) {
		struct reader *r = &db->readers[i];

		for (enum table t = 0; t < TABLES; t++) {
			if (r->cursors[t])
				mdb_cursor_close(r->cursors[t]);
			r->cursors[t] = NULL;
		}
		if (r->txn)
			mdb_txn_abort(r->txn);
		r->txn = NULL;
	}
}

/* ── growth and room ── */

bool db_shut(struct db *db)
{
	uint32_t open = 0;

	if (!cas_seq_cst(&db->shared.gate, &open, 1))                               /* D */
		return false;
	for (uint32_t i = 0, tries = 0; i < READERS; tries++) {
		if (load_seq_cst(&db->readers[i].busy) == 0) {                      /* C */
			i++;
		} else if (tries < SHUT_TRIES) {
			sched_yield();           /* most are gone in a moment */
		} else {
			db_unshut(db);
			return false;
		}
	}
	return true;
}

void db_unshut(struct db *db)
{
	store_release(&db->shared.gate, 0);                                         /* F */
}

int db_grow(struct db *db, uint64_t bytes)
{
	uint32_t open = 0;

	if (!cas_seq_cst(&db->shared.gate, &open, 1)) {                             /* D */
		pass_gate(db);                   /* another thread of a reading process is at it */
		return NOH_OK;
	}
	for (uint32_t i = 0; i < READERS; i++)
		while (load_seq_cst(&db->readers[i].busy) != 0)                     /* C */
			sched_yield();
	int rc = mdb_env_set_mapsize(db->fixed.env, bytes);

	db_unshut(db);
	return db_error(db, rc, "growing the map of");
}

/* Pages that the next transaction may use again: freed by transactions nobody looks at any more. */
static int free_pages(struct db *db, struct reader *r, uint64_t *pages)
{
	MDB_cursor *c;
	MDB_val key, val;
	uint64_t newest = mdb_txn_id(r->txn);
	int rc = mdb_cursor_open(r->txn, 0, &c);

	*pages = 0;
	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "reading");
	while ((rc = mdb_cursor_get(c, &key, &val, MDB_NEXT)) == MDB_SUCCESS) {
		uint64_t id, count;

		if (key.mv_size != sizeof id || val.mv_size < sizeof count)
			break;
		memcpy(&id, key.mv_data, sizeof id);
		memcpy(&count, val.mv_data, sizeof count);
		if (id < newest)
			*pages += count;
	}
	mdb_cursor_close(c);
	return rc == MDB_NOTFOUND ? NOH_OK : db_error(db, MDB_CORRUPTED, "reading");
}

static int needs_room(struct db *db, uint64_t bytes)
{
	return error_set(NOH_ENOSPC, "%s needs %llu MiB more for the next fold and the disk is full; "
			 "make room: a running box goes on by itself", db->fixed.file,
			 (unsigned long long)(bytes >> 20) + 1);
}

static int file_at_least(struct db *db, uint64_t bytes)
{
	struct stat s;

	if (fstat(db->fixed.fd, &s) != 0)
		return db_errno("stat", db->fixed.file);
	if ((uint64_t)s.st_size >= bytes)
		return NOH_OK;
	uint64_t more = bytes - (uint64_t)s.st_size;

	if (fallocate(db->fixed.fd, 0, s.st_size, (off_t)more) == 0)
		return NOH_OK;
	int why = errno;

	if (why == ENOSPC || why == EDQUOT) {
		if (ftruncate(db->fixed.fd, s.st_size) != 0)     /* what it got: back */
			return db_errno("truncate", db->fixed.file);
		return needs_room(db, more);
	}
	if (why != EOPNOTSUPP)
		return db_errno("fallocate", db->fixed.file);
	if (db_room_left(db) < more)
		return needs_room(db, more);
	return ftruncate(db->fixed.fd, (off_t)bytes) == 0 ? NOH_OK
							  : db_errno("truncate", db->fixed.file);
}

int db_make_room(struct db *db, uint64_t pages)
{
	struct reader *r;
	MDB_envinfo info;
	uint64_t again;
	int rc = reader_take(db, &r);

	if (rc != NOH_OK)
		return rc;
	rc = free_pages(db, r, &again);
	mdb_env_info(db->fixed.env, &info);
	reader_give(r);
	if (rc != NOH_OK)
		return rc;
	uint64_t more = pages > again ? pages - again : 0;
	uint64_t bytes = (info.me_last_pgno + 1 + more) * db->fixed.page;
	uint64_t map = info.me_mapsize;

	while (map < bytes + bytes / 8)
		map *= 2;
	if (map != info.me_mapsize)
		rc = db_grow(db, map);
	return rc == NOH_OK ? file_at_least(db, bytes) : rc;
}

int db_keep_length(struct db *db)
{
	MDB_envinfo info;
	struct stat s;

	/* The one that folds is the one that grows: the map stays where it is. */
	mdb_env_info(db->fixed.env, &info);
	uint64_t bytes = ((uint64_t)info.me_last_pgno + 1) * db->fixed.page;

	if (fstat(db->fixed.fd, &s) == 0 && (uint64_t)s.st_size < bytes &&
	    ftruncate(db->fixed.fd, (off_t)bytes) != 0)
		return db_errno("truncate", db->fixed.file);
	return NOH_OK;
}

/* ── what the meta table says ── */

int db_read_stamp(struct db *db, MDB_txn *txn, struct meta_stamp *stamp)
{
	static const char name[] = "stamp";
	MDB_val key = { sizeof name - 1, (void *)(uintptr_t)name }, val;
	struct value_row row;
	int rc = mdb_get(txn, db->fixed.tables[TABLE_META], &key, &val);

	if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
		return db_error(db, rc, "reading");
	if (rc == MDB_NOTFOUND ||
	    !value_row(TABLE_META, name, sizeof name - 1, val.mv_data, val.mv_size, &row) ||
	    (row.rest_len != sizeof *stamp && row.rest_len != offsetof(struct meta_stamp, event_seq)))
		return db_damaged(db, TABLE_META, name, sizeof name - 1);
	*stamp = (struct meta_stamp){ .frame = 0 };
	memcpy(stamp, row.rest, row.rest_len);
	return NOH_OK;
}

void db_stamp(struct db *db, uint64_t *frame, uint64_t *epoch)
{
	struct meta_stamp stamp = { .frame = load_relaxed(&db->shown.frame),
				    .epoch = load_relaxed(&db->shown.epoch) };
	struct reader *r;

	if (reader_take(db, &r) == NOH_OK) {
		struct meta_stamp now;

		if (db_read_stamp(db, r->txn, &now) == NOH_OK)
			stamp = now;
		reader_give(r);
	}
	*frame = stamp.frame;
	*epoch = stamp.epoch;
}

bool db_empty(struct db *db)
{
	return !db->fixed.read_only && load_acquire(&db->shown.rows) == 0;
}

uint64_t db_images(struct db *db)
{
	return load_relaxed(&db->shown.images);
}

void db_get_stats(struct db *db, struct db_stats *stats)
{
	uint64_t rows[TABLES] = {0};
	struct meta_stamp stamp = {0};
	struct reader *r;
	MDB_envinfo info = {0};

	if (reader_take(db, &r) == NOH_OK) {
		(void)db_count(db, r->txn, rows);
		mdb_env_info(db->fixed.env, &info);
		(void)db_read_stamp(db, r->txn, &stamp);
		reader_give(r);
	}
	*stats = (struct db_stats){
		.images = rows[TABLE_IMAGES], .entries = rows[TABLE_ENTRIES],
		.pending = rows[TABLE_PENDING], .idem = rows[TABLE_IDEM],
		.idem_bytes = stamp.idem_bytes, .idem_dropped = stamp.idem_dropped,
		.timers = db_timer_rows(db, rows[TABLE_TIMERS]), .dead = rows[TABLE_DEAD],
		.events = rows[TABLE_EVENTS], .event_bytes = stamp.event_bytes, .event_seq = stamp.event_seq,
		.event_oldest_ms = stamp.event_oldest_ms,
		.map_bytes = info.me_mapsize,
		.used_bytes = ((uint64_t)info.me_last_pgno + 1) * db->fixed.page,
		.folds = stamp.folds, .folded_records = stamp.records,
	};
}

void db_close(struct db *db)
{
	if (!db)
		return;
	fold_trim(db);
	for (uint32_t i = 0; i < READERS; i++)
		must(load_acquire(&db->readers[i].busy) == 0);
	readers_end(db);
	if (db->fixed.env)
		mdb_env_close(db->fixed.env);
	if (db->fixed.fd >= 0)
		close(db->fixed.fd);
	mem_free(db, sizeof *db);
}
