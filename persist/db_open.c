/* persist/db_open.c - finding, making and checking the image's file.
 *
 * A new image is made as DIR/image.new and renamed when it is whole, so that a DIR/image that is not
 * whole is damage, never an interrupted start. Before LMDB maps a file its head is read with plain
 * calls: a file shorter than its head says would be SIGBUS later on.
 */
#include "persist/db_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_MAP ((uint64_t)1 << 30)
#define IDEM_MS ((uint64_t)24 * 3600 * 1000)
#define IDEM_BYTES ((uint64_t)1 << 30)
#define SHED_BYTES ((uint64_t)8 << 20)   /* less of LMDB's memory is not worth it */
#define AGAIN 200                /* tries to open again what was open, and the time between them */
#define AGAIN_US 20000
#define LOOKS 20                 /* beside a running box the head may change while we read it */

/* The first two pages of an LMDB 0.9 file each hold this, 16 bytes in; the newer txnid counts. */
struct lmdb_table { uint32_t pad; uint16_t flags, depth; uint64_t branch, leaf, overflow, rows, root; };
struct lmdb_head {
	uint32_t magic, version;
	uint64_t address, map_bytes;
	struct lmdb_table tables[2];     /* free pages (pad: the page size), main */
	uint64_t last_page, txnid;
};
#define LMDB_MAGIC 0xBEEFC0DEu
#define LMDB_HEAD_AT 16

static bool head_fits(const struct lmdb_head *h)
{
	uint64_t page = h->tables[0].pad;

	return h->magic == LMDB_MAGIC && page >= 512 && page <= 65536 && (page & (page - 1)) == 0 &&
	       h->last_page < UINT64_MAX / 65536 - 1;
}

/* Only of the one that counts: after a failed write LMDB leaves a mixture in the other, on purpose. */
static bool roots_fit(const struct lmdb_head *h)
{
	return (h->tables[1].root == UINT64_MAX || h->tables[1].root <= h->last_page) &&
	       (h->tables[0].root == UINT64_MAX || h->tables[0].root <= h->last_page);
}

static int look_once(const char *file, int fd, uint64_t *map_bytes)
{
	struct lmdb_head a, b, *newer;
	struct stat s;

	if (pread(fd, &a, sizeof a, LMDB_HEAD_AT) != (ssize_t)sizeof a || !head_fits(&a) ||
	    pread(fd, &b, sizeof b, (off_t)a.tables[0].pad + LMDB_HEAD_AT) != (ssize_t)sizeof b ||
	    !head_fits(&b) || a.tables[0].pad != b.tables[0].pad)
		return error_set(NOH_ECORRUPT, "%s: its first pages are damaged or missing; restore a "
				 "backup", file);
	if (a.version != 1)
		return error_set(NOH_EVERSION, "%s: LMDB format %u, this program reads 1", file,
				 a.version);
	newer = a.txnid > b.txnid ? &a : &b;
	if (!roots_fit(newer))
		return error_set(NOH_ECORRUPT, "%s: its head names pages that it has not; restore a backup", file);
	/* Even transactions write the first page, odd ones the second, one after the other. */
	if (newer->txnid - (newer == &a ? b : a).txnid > 1 ||
	    (a.txnid != b.txnid && (newer->txnid & 1) != (newer == &b)))
		return error_set(NOH_ECORRUPT, "%s: its two heads do not follow each other; restore a "
				 "backup", file);
	uint64_t bytes = (newer->last_page + 1) * newer->tables[0].pad;

	if (fstat(fd, &s) != 0)
		return db_errno("stat", file);
	if ((uint64_t)s.st_size < bytes)
		return error_set(NOH_ECORRUPT, "%s: cut short: %lld bytes, it had %llu; restore a backup",
				 file, (long long)s.st_size, (unsigned long long)bytes);
	*map_bytes = newer->map_bytes;
	return NOH_OK;
}

int db_look(const char *file, bool read_only, uint64_t *map_bytes)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc = NOH_OK;

	*map_bytes = 0;
	if (fd < 0)
		return errno == ENOENT ? error_set(NOH_ECORRUPT, "%s is missing; restore a backup", file)
				       : db_errno("open", file);
	for (int i = 0; i < (read_only ? LOOKS : 1); i++) {
		rc = look_once(file, fd, map_bytes);
		if (rc == NOH_OK)
			break;
		if (read_only)
			usleep(1000);
	}
	close(fd);
	return rc;
}

static int sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? db_errno("sync", path) : NOH_OK;

	if (fd >= 0)
		close(fd);
	return rc;
}

/* ── the environment ── */

static int env_open(struct db *db, const char *path, uint64_t map_bytes)
{
	unsigned flags = MDB_NOTLS | (db->fixed.read_only ? MDB_RDONLY : 0);
	MDB_stat stat;
	int dead, rc = mdb_env_create(&db->fixed.env);

	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "opening");
	mdb_env_set_maxdbs(db->fixed.env, TABLES);
	mdb_env_set_maxreaders(db->fixed.env, 4 * READERS);      /* room for tools beside us */
	mdb_env_set_mapsize(db->fixed.env, map_bytes);
	rc = mdb_env_open(db->fixed.env, path, flags, 0640);
	if (rc == MDB_SUCCESS)
		rc = mdb_reader_check(db->fixed.env, &dead);     /* of processes that crashed */
	if (rc == MDB_SUCCESS)
		rc = mdb_env_stat(db->fixed.env, &stat);
	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "opening");
	db->fixed.page = stat.ms_psize;
	if (mdb_env_get_maxkeysize(db->fixed.env) < VALUE_KEY_MAX)
		return error_set(NOH_EVERSION, "this LMDB was built for keys below %d bytes",
				 VALUE_KEY_MAX);
	return NOH_OK;
}

static int table_missing(const struct db *db, enum table t)
{
	return error_set(NOH_ECORRUPT, "%s: table %s is missing; restore a backup", db->fixed.file, table_name(t));
}

static int tables_open(struct db *db, MDB_txn *txn, unsigned flags)
{
	for (enum table t = 0; t < TABLES; t++) {
		int rc = mdb_dbi_open(txn, table_name(t), flags, &db->fixed.tables[t]);

		if (rc == MDB_NOTFOUND && t == TABLE_EVENTS && db->fixed.read_only) {
			db->fixed.no_events = true;      /* format 1 has none; of which it is comes later */
			continue;
		}
		if (rc == MDB_NOTFOUND)
			return table_missing(db, t);
		if (rc != MDB_SUCCESS)
			return db_error(db, rc, "opening");
	}
	return NOH_OK;
}

static int meta_put(struct db *db, MDB_txn *txn, const char *name, const void *data, size_t len)
{
	uint8_t row[sizeof(struct value_head) + sizeof(struct meta_stamp)];
	MDB_val key = { strlen(name), (void *)(uintptr_t)name };
	MDB_val val = { sizeof(struct value_head) + len, row };

	memcpy(row + sizeof(struct value_head), data, len);
	value_seal(TABLE_META, key.mv_data, key.mv_size, row, val.mv_size, 0);
	return db_error(db, mdb_put(txn, db->fixed.tables[TABLE_META], &key, &val, 0), "writing");
}

static uint64_t first_map(const struct db_options *o)
{
	return o->map_bytes ? o->map_bytes : FIRST_MAP;
}

/* All tables, empty, in DIR/image.new; closed again. */
static int fill_new(struct db *db, const char *path, const struct db_options *o)
{
	struct meta_format format = { .format = IMAGE_FORMAT, .dir_id = o->dir_id };
	struct meta_stamp stamp = { .frame = 0 };
	MDB_txn *txn;
	int rc = env_open(db, path, first_map(o));

	if (rc == NOH_OK)
		rc = db_error(db, mdb_txn_begin(db->fixed.env, NULL, 0, &txn), "writing");
	if (rc != NOH_OK)
		return rc;
	rc = tables_open(db, txn, MDB_CREATE);
	if (rc == NOH_OK)
		rc = meta_put(db, txn, "format", &format, sizeof format);
	if (rc == NOH_OK)
		rc = meta_put(db, txn, "stamp", &stamp, sizeof stamp);
	if (rc != NOH_OK) {
		mdb_txn_abort(txn);
		return rc;
	}
	rc = mdb_txn_commit(txn);
	if (rc != MDB_SUCCESS && db_disk_full(db))
		rc = ENOSPC;
	return db_error(db, rc, "writing");
}

static int make_new(struct db *db, const struct db_options *o, const char *path)
{
	char fresh[4096 + 32], file[4096 + 64];

	snprintf(fresh, sizeof fresh, "%s/image.new", o->dir);
	if (mkdir(fresh, 0750) != 0 && errno != EEXIST)
		return db_errno("mkdir", fresh);
	snprintf(file, sizeof file, "%s/data.mdb", fresh);      /* of a start that was interrupted */
	unlink(file);
	snprintf(file, sizeof file, "%s/lock.mdb", fresh);
	unlink(file);
	int rc = fill_new(db, fresh, o);

	if (db->fixed.env)
		mdb_env_close(db->fixed.env);
	db->fixed.env = NULL;
	if (rc == NOH_OK)
		rc = sync_dir(fresh);
	if (rc == NOH_OK && rename(fresh, path) != 0)
		rc = db_errno("rename", fresh);
	return rc == NOH_OK ? sync_dir(o->dir) : rc;
}

static int check_format(struct db *db, MDB_txn *txn, uint64_t dir_id, struct meta_format *out)
{
	static const char name[] = "format";
	MDB_val key = { sizeof name - 1, (void *)(uintptr_t)name }, val;
	struct meta_format format;
	struct value_row row;
	int rc = mdb_get(txn, db->fixed.tables[TABLE_META], &key, &val);

	if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
		return db_error(db, rc, "opening");
	if (rc == MDB_NOTFOUND ||
	    !value_row(TABLE_META, name, sizeof name - 1, val.mv_data, val.mv_size, &row) ||
	    row.rest_len < sizeof format)
		return db_damaged(db, TABLE_META, name, sizeof name - 1);
	memcpy(&format, row.rest, sizeof format);
	if (format.format < 1 || format.format > IMAGE_FORMAT)
		return error_set(NOH_EVERSION, "%s: format %u, this program reads up to %d; use the version "
				 "that wrote it", db->fixed.file, format.format, IMAGE_FORMAT);
	if (format.dir_id != dir_id)
		return error_set(NOH_ECORRUPT, "%s belongs to data directory %016llx, this is %016llx; "
				 "files of two directories were mixed", db->fixed.file,
				 (unsigned long long)format.dir_id, (unsigned long long)dir_id);
	*out = format;
	return NOH_OK;
}

/* Of format 1: it gets the table it has not, and a number that older programs refuse, at once. */
static int upgrade(struct db *db, uint64_t dir_id)
{
	struct meta_format format = { .format = 0 };
	MDB_txn *txn;
	int rc = db_error(db, mdb_txn_begin(db->fixed.env, NULL, 0, &txn), "opening");

	if (rc != NOH_OK)
		return rc;
	rc = mdb_dbi_open(txn, table_name(TABLE_META), 0, &db->fixed.tables[TABLE_META]);
	rc = rc == MDB_NOTFOUND ? NOH_OK : rc != MDB_SUCCESS ? db_error(db, rc, "opening") :
	     check_format(db, txn, dir_id, &format);         /* what is missing is told by who reads it */
	if (rc != NOH_OK || format.format != 1) {
		mdb_txn_abort(txn);
		return rc;
	}
	format.format = IMAGE_FORMAT;
	rc = db_error(db, mdb_dbi_open(txn, table_name(TABLE_EVENTS), MDB_CREATE, &db->fixed.tables[TABLE_EVENTS]), "writing");
	if (rc == NOH_OK)
		rc = meta_put(db, txn, "format", &format, sizeof format);
	if (rc != NOH_OK) {
		mdb_txn_abort(txn);
		return rc;
	}
	return db_error(db, mdb_txn_commit(txn), "writing");
}

/* Tables, format and stamp of what is there. */
static int read_meta(struct db *db, uint64_t dir_id)
{
	struct meta_stamp stamp;
	struct meta_format format;
	uint64_t rows[TABLES];
	MDB_txn *txn;
	int rc = db_error(db, mdb_txn_begin(db->fixed.env, NULL, MDB_RDONLY, &txn), "opening");

	if (rc != NOH_OK)
		return rc;
	rc = tables_open(db, txn, 0);
	if (rc == NOH_OK)
		rc = check_format(db, txn, dir_id, &format);
	if (rc == NOH_OK && db->fixed.no_events && format.format != 1)
		rc = table_missing(db, TABLE_EVENTS);
	if (rc == NOH_OK)
		rc = db_read_stamp(db, txn, &stamp);
	if (rc == NOH_OK && !db_count(db, txn, rows))
		rc = db_error(db, MDB_CORRUPTED, "opening");
	if (rc != NOH_OK) {
		mdb_txn_abort(txn);
		return rc;
	}
	store_relaxed(&db->shown.unwell, db_count_unwell(db, txn));
	db_show(db, &stamp, rows, 0);
	return db_error(db, mdb_txn_commit(txn), "opening");     /* keeps the table handles */
}

static int open_in(struct db *db, const struct db_options *o)
{
	char path[4096 + 16];
	struct stat s;
	uint64_t map_bytes;
	int rc = NOH_OK;

	snprintf(path, sizeof path, "%s/image", o->dir);
	snprintf(db->fixed.file, sizeof db->fixed.file, "%s/data.mdb", path);
	if (stat(path, &s) != 0) {
		if (errno != ENOENT)
			return db_errno("open", path);
		if (o->read_only || o->must_exist)
			return error_set(NOH_ECORRUPT, "%s is missing; put it back, or restore a backup of the whole "
					 "directory (noh restore)", path);
		rc = make_new(db, o, path);
	} else if (!o->read_only) {
		rc = sync_dir(o->dir);           /* who made it may have ended before he did */
	}
	if (rc == NOH_OK)
		rc = db_look(db->fixed.file, o->read_only, &map_bytes);
	if (rc != NOH_OK)
		return rc;
	if (map_bytes < first_map(o))
		map_bytes = first_map(o);
	rc = env_open(db, path, o->read_only ? 0 : map_bytes);
	if (rc == NOH_OK && !o->read_only)
		rc = upgrade(db, o->dir_id);
	if (rc == NOH_OK)
		rc = read_meta(db, o->dir_id);
	if (rc == NOH_OK && !o->read_only) {
		db->fixed.fd = open(db->fixed.file, O_RDWR | O_CLOEXEC);
		if (db->fixed.fd < 0)
			rc = db_errno("open", db->fixed.file);
		else if (fdatasync(db->fixed.fd) != 0)   /* a killed process may have left it in the page cache */
			rc = db_errno("sync", db->fixed.file);
	}
	return rc;
}

/* ── the memory that LMDB keeps ── */

static int open_again(struct db *db, const char *path, uint64_t map_bytes)
{
	MDB_txn *txn;
	int rc = env_open(db, path, map_bytes);

	if (rc == NOH_OK)
		rc = db_error(db, mdb_txn_begin(db->fixed.env, NULL, MDB_RDONLY, &txn), "opening");
	if (rc == NOH_OK) {
		rc = tables_open(db, txn, 0);
		if (rc != NOH_OK)
			mdb_txn_abort(txn);
		else
			rc = db_error(db, mdb_txn_commit(txn), "opening");
	}
	if (rc != NOH_OK && db->fixed.env) {
		mdb_env_close(db->fixed.env);
		db->fixed.env = NULL;
	}
	return rc;
}

int db_shed(struct db *db)
{
	char path[sizeof db->fixed.file];
	MDB_envinfo info;
	int rc;

	if (db->folding.pages < SHED_BYTES)
		return 0;
	if (!db_shut(db))
		return 0;                        /* somebody reads: the next time */
	snprintf(path, sizeof path, "%s", db->fixed.file);
	*strrchr(path, '/') = 0;
	mdb_env_info(db->fixed.env, &info);
	readers_end(db);
	mdb_env_close(db->fixed.env);
	db->fixed.env = NULL;
	db->folding.pages = 0;
	for (int i = 0; (rc = open_again(db, path, info.me_mapsize)) != NOH_OK && i < AGAIN; i++)
		usleep(AGAIN_US);                /* no file or no memory to be had, for a moment */
	if (rc != NOH_OK)
		return rc;                       /* and the gate stays shut */
	db_unshut(db);
	return 1;
}

int db_open(struct db **out, const struct db_options *o)
{
	struct db *db;

	*out = NULL;
	if (strlen(o->dir) > 4000)
		return error_set(NOH_EDISK, "the path of the data directory is too long");
	db = mem_aligned(CACHE_LINE, sizeof *db);
	if (!db)
		return error_set(NOH_ENOMEM, "opening %s/image: out of memory", o->dir);
	db->fixed.fd = -1;
	db->fixed.read_only = o->read_only;
	db->fixed.idem_ms = o->idem_ms ? o->idem_ms : IDEM_MS;
	db->fixed.idem_bytes = o->idem_bytes ? o->idem_bytes : IDEM_BYTES;
	db_keep_events(db, o->event_bytes, o->event_ms);
	int rc = open_in(db, o);

	if (rc != NOH_OK) {
		db_close(db);
		return rc;
	}
	*out = db;
	return NOH_OK;
}
