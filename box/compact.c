/* box/compact.c - the journal folded, the image written anew.
 *
 * In this order: fold (a synced transaction), copy the image to DIR/compact.new, put the copy in the
 * place of the image by one rename, begin an empty segment, remove the others, the oldest first. Whatever is interrupted, the
 * directory is whole: what the image holds is a superset of what the missing segments held.
 *
 * LMDB's table of readers goes with the old file: a tool that still reads that one keeps its table, and
 * the next to open the new file makes a new one.
 */
#include "box/care.h"

#include "core/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long keys and events are kept is for the box to say: none goes because of us. */
static int open_to_fold(struct care *c)
{
	return db_open(&c->db, &(struct db_options){ .dir = c->dir.path, .dir_id = c->dir.id, .must_exist = true,
						     .idem_ms = INT64_MAX, .idem_bytes = INT64_MAX,
						     .event_ms = INT64_MAX, .event_bytes = INT64_MAX });
}

/* What box_disk_open does as well: the tail goes into the image. */
static int fold_tail(struct care *c, struct journal_end *end)
{
	uint64_t stamp, epoch;
	struct clock clock;
	struct fold *f;
	int rc;

	clock_real(&clock);
	db_stamp(c->db, &stamp, &epoch);
	rc = fold_begin(c->db, &f);
	if (rc != NOH_OK)
		return rc;
	rc = journal_must_be_there(c->disk, c->dir.path);
	if (rc == NOH_OK)
		rc = care_named(journal_recover(c->disk, c->dir.id, stamp, fold_record, f, end), c->dir.path);
	if (rc == NOH_OK && end->frame > stamp)
		rc = journal_settle(c->disk);
	if (rc != NOH_OK || end->frame <= stamp) {
		fold_abort(f);
		return rc;
	}
	return fold_commit(f, end->frame, end->epoch > epoch ? end->epoch : epoch, clock_wall_ms(&clock));
}

static int swap(struct care *c, const char *fresh)
{
	char image[PATH_MAX], from[PATH_MAX], to[PATH_MAX], lock[PATH_MAX];
	int rc = files_path(image, c->dir.path, "image");

	if (rc == NOH_OK)
		rc = files_path(from, fresh, "image/data.mdb");
	if (rc == NOH_OK)
		rc = files_path(to, image, "data.mdb");
	if (rc == NOH_OK)
		rc = files_path(lock, image, "lock.mdb");
	if (rc != NOH_OK)
		return rc;
	if (unlink(lock) != 0 && errno != ENOENT)
		return files_error("remove", lock);
	if (rename(from, to) != 0)
		return files_error("rename", from);
	return files_sync_dir(image);
}

/* All they hold is in the image. One without frames takes their place: where none is, the journal is lost. */
static int drop_segments(struct care *c, const struct journal_end *end, uint64_t stamp, uint64_t epoch)
{
	struct segment_list list;
	int rc = segment_list(c->disk, &list);

	if (end->epoch > epoch)
		epoch = end->epoch;
	if (rc == NOH_OK)
		rc = segment_make_empty(c->disk, c->dir.id, end->segment + 1, epoch + 1, stamp + 1);
	for (size_t i = 0; rc == NOH_OK && i < list.count; i++)
		rc = disk_remove(c->disk, segment_name(list.at[i].number, "seg").text);
	segment_list_free(&list);
	if (rc == NOH_OK)
		rc = segment_remove_unfinished(c->disk);
	return rc == NOH_OK ? disk_sync_dir(c->disk, JOURNAL_DIR) : rc;
}

static int rewrite(struct care *c, const struct journal_end *end, noh_copied *copied)
{
	char fresh[PATH_MAX], why[512];
	uint64_t stamp, epoch;
	int rc = files_path(fresh, c->dir.path, "compact.new");

	if (rc != NOH_OK)
		return rc;
	files_remove(fresh);                     /* of one that was interrupted; ours: we hold the lock */
	rc = files_make_dir(fresh);
	if (rc == NOH_OK)
		rc = db_copy(c->db, fresh, &stamp, &epoch);
	copied->actors = db_images(c->db);
	db_close(c->db);
	c->db = NULL;
	if (rc == NOH_OK)
		rc = swap(c, fresh);
	snprintf(why, sizeof why, "%s", noh_why());
	files_remove(fresh);
	if (rc != NOH_OK)
		return error_set(rc, "%s", why);
	copied->frame = stamp;
	return drop_segments(c, end, stamp, epoch);
}

static void measure(struct care *c, uint64_t *image, uint64_t *journal)
{
	char path[PATH_MAX];

	if (files_path(path, c->dir.path, "image") == NOH_OK)
		*image = files_bytes(path, "data.mdb", NULL);
	if (files_path(path, c->dir.path, JOURNAL_DIR) == NOH_OK)
		*journal = files_bytes(path, ".seg", NULL);
}

int noh_compact(const char *dir, noh_copied *copied)
{
	struct journal_end end = { 0 };
	noh_copied local = { 0 };
	struct care c;
	int rc = care_open(&c, dir);             /* says it if there is none, and changes nothing */
	struct datadir owner = { .lock = -1 };

	if (rc == NOH_OK)
		rc = datadir_open(&owner, dir, 0, 0);
	if (rc == NOH_OK)
		measure(&c, &local.image_before, &local.journal_before);
	if (rc == NOH_OK)
		rc = care_pages(&c);
	if (rc == NOH_OK)
		rc = open_to_fold(&c);
	if (rc == NOH_OK)
		rc = fold_tail(&c, &end);
	if (rc == NOH_OK)
		rc = rewrite(&c, &end, &local);
	if (rc == NOH_OK)
		measure(&c, &local.image_bytes, &local.journal_bytes);
	care_close(&c);
	datadir_close(&owner);
	if (copied)
		*copied = local;
	return rc;
}
