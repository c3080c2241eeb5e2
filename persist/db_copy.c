/* persist/db_copy.c - a copy of the image while it is being folded into.
 *
 * LMDB copies one snapshot, page by page, leaving out free ones. A reader is held as long, so that the
 * map stays where it is. The stamp is read from the copy itself: it says what the copy holds.
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

static int sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? db_errno("sync", path) : NOH_OK;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int copy_pages(struct db *db, const char *path)
{
	struct reader *r;
	int rc = reader_take(db, &r);

	if (rc != NOH_OK)
		return rc;
	rc = mdb_env_copy2(db->fixed.env, path, MDB_CP_COMPACT);
	reader_give(r);
	if (rc == ENOSPC || rc == EIO)
		return error_set(rc == ENOSPC ? NOH_ENOSPC : NOH_EDISK, "writing %s/data.mdb: %s", path,
				 mdb_strerror(rc));
	return db_error(db, rc, "copying");
}

/* Without a lock file: nobody else knows of it yet. */
static int stamp_of_copy(struct db *db, const char *path, struct meta_stamp *stamp)
{
	struct db *copy = mem_aligned(CACHE_LINE, sizeof *copy);
	MDB_txn *txn = NULL;
	int rc;

	if (!copy)
		return error_set(NOH_ENOMEM, "copying %s: out of memory", db->fixed.file);
	snprintf(copy->fixed.file, sizeof copy->fixed.file, "%s/data.mdb", path);
	rc = mdb_env_create(&copy->fixed.env);
	if (rc == MDB_SUCCESS)
		rc = mdb_env_set_maxdbs(copy->fixed.env, TABLES);
	if (rc == MDB_SUCCESS)
		rc = mdb_env_open(copy->fixed.env, path, MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0640);
	if (rc == MDB_SUCCESS)
		rc = mdb_txn_begin(copy->fixed.env, NULL, MDB_RDONLY, &txn);
	if (rc == MDB_SUCCESS)
		rc = mdb_dbi_open(txn, table_name(TABLE_META), 0, &copy->fixed.tables[TABLE_META]);
	rc = rc == MDB_SUCCESS ? db_read_stamp(copy, txn, stamp) : db_error(copy, rc, "reading");
	if (txn)
		mdb_txn_abort(txn);
	if (copy->fixed.env)
		mdb_env_close(copy->fixed.env);
	mem_free(copy, sizeof *copy);
	return rc;
}

int db_copy(struct db *db, const char *dir, uint64_t *frame, uint64_t *epoch)
{
	char path[4096 + 16], file[4096 + 32];
	struct meta_stamp stamp = { .frame = 0 };

	if (strlen(dir) > 4000)
		return error_set(NOH_EDISK, "the path of the copy is too long");
	snprintf(path, sizeof path, "%s/image", dir);
	snprintf(file, sizeof file, "%s/data.mdb", path);
	if (mkdir(path, 0750) != 0)
		return db_errno("mkdir", path);
	int rc = copy_pages(db, path);

	if (rc == NOH_OK)
		rc = sync_path(file);
	if (rc == NOH_OK)
		rc = sync_path(path);
	if (rc == NOH_OK)
		rc = sync_path(dir);
	if (rc == NOH_OK)
		rc = stamp_of_copy(db, path, &stamp);
	if (rc != NOH_OK) {
		unlink(file);            /* half a copy is none; why() still says why */
		rmdir(path);
	}
	*frame = stamp.frame;
	*epoch = stamp.epoch;
	return rc;
}
