/* box/copy.c - backup and restore.
 *
 * A backup beside a running box needs no help from it. First the journal is copied, then the image:
 * LMDB's snapshot is taken after the last segment was read. A frame that was on disk when we began is in
 * the copied journal, or its segment was recycled meanwhile; but only what is folded is recycled, and
 * then the later snapshot has it. So image and journal together hold everything that was answered
 * before, and what they hold ends at one frame: one instant.
 *
 * Segments are read from the back to the front, the newest first: of two frames the later one is read
 * earlier, so whatever a copied frame says was on disk is read after it, and is there. (Within one read
 * of a chunk that may go wrong; the copy is checked by the journal's own rules, and made again.)
 */
#include "box/box.h"
#include "box/care.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 5

static int ignore(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		  const uint8_t *parts, const uint8_t *parts_end)
{
	(void)arg, (void)frame, (void)epoch, (void)head, (void)parts, (void)parts_end;
	return NOH_OK;
}

/* ── where it goes ── */

/* `path`.partial, made. Half a copy never has the name of a whole one. */
static int make_partial(char *partial, const char *path)
{
	struct stat st;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len + sizeof ".partial" > 4000)
		return error_set(NOH_EINVAL, "the path %.60s... is too long", path);
	snprintf(partial, PATH_MAX, "%.*s.partial", (int)len, path);
	if (lstat(partial, &st) == 0)
		return error_set(NOH_EEXISTS, "%s is there, of a copy that was interrupted or still goes on; if "
				 "it does not, remove it", partial);
	return files_make_dir(partial);
}

static int finish(const char *partial, const char *path)
{
	int rc = files_sync_dir(partial);

	if (rc == NOH_OK && rename(partial, path) != 0)
		rc = files_error("rename", partial);
	return rc == NOH_OK ? files_sync_parent(path) : rc;
}

static int copy_named(const char *from, const char *to, const char *name, bool backwards)
{
	char source[PATH_MAX], target[PATH_MAX];
	int rc = files_path(source, from, name);

	if (rc == NOH_OK)
		rc = files_path(target, to, name);
	return rc == NOH_OK ? files_copy(source, target, backwards) : rc;
}

static int must_be_there(int rc, const char *dir, const char *name)
{
	return rc == NOH_END ? error_set(NOH_ECORRUPT, "%s/%s is missing", dir, name) : rc;
}

static int copy_segments(struct care *c, const char *to)
{
	struct segment_list list;
	char folder[PATH_MAX];
	int rc = files_path(folder, to, JOURNAL_DIR);

	if (rc == NOH_OK)
		rc = files_make_dir(folder);
	if (rc != NOH_OK)
		return rc;
	rc = segment_list(c->disk, &list);
	for (size_t i = list.count; rc == NOH_OK && i-- > 0; ) {
		rc = copy_named(c->dir.path, to, segment_name(list.at[i].number, "seg").text, true);
		if (rc == NOH_END)
			rc = NOH_OK;                     /* recycled: its frames are in the image */
	}
	segment_list_free(&list);
	return rc == NOH_OK ? files_sync_dir(folder) : rc;
}

/* ── what of it is needed ── */

static int drop_segment(struct care *copy, uint64_t number)
{
	return disk_remove(copy->disk, segment_name(number, "seg").text);
}

/* Keep the segment that frame s + 1 is in or would be in, and what comes after it. One that was recycled
 * while we read it is no segment any more: it and all before it are folded. */
static int drop_folded(struct care *copy, uint64_t s)
{
	struct segment_list list;
	bool folded = false;
	int rc = segment_list(copy->disk, &list);

	for (size_t i = list.count; rc == NOH_OK && i-- > 0; ) {
		struct care_first first = { 0 };

		if (!folded && care_segment(copy, &list.at[i], &first) != NOH_OK)
			folded = true;
		if (folded)
			rc = drop_segment(copy, list.at[i].number);
		else if (first.frame == 0)       /* the one before may say that it is there: its head is enough */
			rc = segment_make_empty(copy->disk, copy->dir.id, list.at[i].number, list.at[i].epoch, 0);
		folded |= first.frame != 0 && first.frame <= s + 1;
	}
	segment_list_free(&list);
	return rc;
}

/* The image may be newer than all of the copied journal: then that is of no use, and an empty one goes on. */
static int drop_all_older(struct care *copy, uint64_t s, uint64_t epoch)
{
	struct journal_end end = { 0 };
	struct segment_list list;
	uint64_t oldest, damaged, last;
	int rc = care_oldest(copy, &oldest, &damaged);

	if (rc == NOH_OK && oldest)
		rc = journal_recover(copy->disk, copy->dir.id, oldest - 1, ignore, NULL, &end);
	if (rc != NOH_OK || (oldest && end.frame >= s))
		return rc;
	rc = segment_list(copy->disk, &list);
	last = list.count ? list.at[list.count - 1].number : 0;
	if (end.epoch > epoch)
		epoch = end.epoch;
	if (rc == NOH_OK)
		rc = segment_make_empty(copy->disk, copy->dir.id, last + 1, epoch + 1, s + 1);
	for (size_t i = 0; rc == NOH_OK && i < list.count; i++)
		rc = drop_segment(copy, list.at[i].number);
	segment_list_free(&list);
	return rc;
}

/* Frames from s + 1 on without a gap, up to what was there when we began. */
static int check_copy(struct care *copy, uint64_t s, uint64_t epoch, uint64_t least, noh_copied *copied)
{
	struct journal_end end;
	int rc = drop_folded(copy, s);

	if (rc == NOH_OK)
		rc = drop_all_older(copy, s, epoch);
	if (rc == NOH_OK)
		rc = journal_recover(copy->disk, copy->dir.id, s, ignore, NULL, &end);
	if (rc == NOH_OK)
		rc = disk_sync_dir(copy->disk, JOURNAL_DIR);
	if (rc != NOH_OK)
		return rc;
	if (end.frame < least)
		return error_set(NOH_ECORRUPT, "%s: the copied journal ends with frame %llu, there were %llu",
				 copy->dir.path, (unsigned long long)end.frame, (unsigned long long)least);
	copied->frame = end.frame;
	copied->tail = end.frame - s;
	return NOH_OK;
}

static void measure(const char *dir, uint64_t *image, uint64_t *journal)
{
	char path[PATH_MAX];

	if (files_path(path, dir, "image") == NOH_OK)
		*image = files_bytes(path, "data.mdb", NULL);
	if (files_path(path, dir, JOURNAL_DIR) == NOH_OK)
		*journal = files_bytes(path, ".seg", NULL);
}

/* ── backup ── */

static int backup_into(struct care *c, const char *partial, noh_copied *copied)
{
	struct care_walk walk = { .each = ignore };
	struct care copy = { .dir = c->dir };
	struct journal_end end;
	uint64_t s, epoch;
	int rc = care_walk(c, &walk, &end);      /* also: what is damaged is not backed up */

	if (rc == NOH_OK)
		rc = must_be_there(copy_named(c->dir.path, partial, "noh.dir", false), c->dir.path, "noh.dir");
	if (rc == NOH_OK)
		rc = copy_segments(c, partial);
	if (rc == NOH_OK)
		rc = db_copy(c->db, partial, &s, &epoch);
	if (rc != NOH_OK)
		return rc;
	copied->actors = db_images(c->db);
	snprintf(copy.dir.path, sizeof copy.dir.path, "%s", partial);
	rc = disk_real_open(&copy.disk, partial, DISK_PLAIN);
	if (rc == NOH_OK)
		rc = check_copy(&copy, s, epoch, end.frame, copied);
	disk_end(copy.disk);
	measure(partial, &copied->image_bytes, &copied->journal_bytes);
	return rc;
}

static int backup(struct care *c, const char *dest, noh_copied *copied)
{
	char partial[PATH_MAX], why[512];
	noh_copied local;
	struct stat st;
	int rc = NOH_OK;

	if (!dest || !*dest)
		return error_set(NOH_EINVAL, "a backup needs a name");
	if (lstat(dest, &st) == 0)
		return error_set(NOH_EEXISTS, "%s is there already; choose a new name for the backup", dest);
	for (int i = 0; i < ATTEMPTS; i++) {
		local = (noh_copied){ 0 };
		rc = make_partial(partial, dest);
		if (rc != NOH_OK)
			return rc;
		rc = backup_into(c, partial, &local);
		if (rc == NOH_OK)
			rc = finish(partial, dest);
		if (rc == NOH_OK)
			break;
		snprintf(why, sizeof why, "%s", noh_why());
		files_remove(partial);
		(void)error_set(rc, "%s", why);
		if (rc != NOH_ECORRUPT || !care_is_running(c->dir.path))
			break;
	}
	if (copied)
		*copied = local;
	return rc;
}

int noh_backup_dir(const char *dir, const char *dest, noh_copied *copied)
{
	struct care c;
	int rc = care_whole(&c, dir);

	if (rc != NOH_OK)
		return rc;
	rc = backup(&c, dest, copied);
	care_close(&c);
	return rc;
}

int noh_backup(noh_box *box, const char *dest)
{
	struct care c = { .dir = box->disk.dir, .db = box->disk.db, .running = true };
	int rc;

	if (sched_in_turn())
		return error_set(NOH_EINTURN, "noh_backup blocks: not inside a turn");
	if (!c.db)
		return error_set(NOH_EINVAL, "noh_backup: this box has no data directory");
	rc = disk_real_open(&c.disk, c.dir.path, DISK_PLAIN);
	if (rc == NOH_OK)
		rc = backup(&c, dest, NULL);
	disk_end(c.disk);
	return rc;
}

/* ── restore ── */

struct first_finding { noh_progress_fn *progress; void *user; char text[400]; };

static void keep_first(void *arg, const char *what)
{
	struct first_finding *f = arg;

	if (!f->text[0])
		snprintf(f->text, sizeof f->text, "%s", what);
}

static void pass_progress(void *arg, const char *what, uint64_t done, uint64_t all)
{
	struct first_finding *f = arg;

	if (f->progress)
		f->progress(f->user, what, done, all);
}

static int check_target(const char *dir)
{
	struct stat st;

	if (!dir || !*dir)
		return error_set(NOH_EINVAL, "restore needs the name of a directory");
	if (lstat(dir, &st) == 0 && (!S_ISDIR(st.st_mode) || !files_is_empty(dir)))
		return error_set(NOH_EEXISTS, "%s is there and not empty; nothing is overwritten: choose a new "
				 "name, or move it away", dir);
	return NOH_OK;
}

static int restore_into(struct care *c, const char *partial, noh_copied *copied)
{
	char folder[PATH_MAX];
	uint64_t stamp, epoch;
	struct journal_end end;
	int rc = must_be_there(copy_named(c->dir.path, partial, "noh.dir", false), c->dir.path, "noh.dir");

	if (rc == NOH_OK)
		rc = files_path(folder, partial, "image");
	if (rc == NOH_OK)
		rc = files_make_dir(folder);
	if (rc == NOH_OK)
		rc = must_be_there(copy_named(c->dir.path, partial, "image/data.mdb", false), c->dir.path,
				   "image/data.mdb");
	if (rc == NOH_OK)
		rc = files_sync_dir(folder);
	if (rc == NOH_OK)
		rc = copy_segments(c, partial);
	if (rc != NOH_OK)
		return rc;
	db_stamp(c->db, &stamp, &epoch);
	rc = journal_recover(c->disk, c->dir.id, stamp, ignore, NULL, &end);
	copied->actors = db_images(c->db);
	copied->frame = end.frame;
	copied->tail = end.frame - stamp;
	measure(partial, &copied->image_bytes, &copied->journal_bytes);
	return rc;
}

static int restore_checked(const char *backup_dir, const char *dir, noh_copied *copied)
{
	char partial[PATH_MAX], why[512];
	struct care c;
	int rc = care_look(&c, backup_dir);

	if (rc == NOH_OK && c.running)
		rc = error_set(NOH_EINUSE, "%s is in use: it is no backup; make one of it with noh backup",
			       backup_dir);
	if (rc == NOH_OK)
		rc = make_partial(partial, dir);
	if (rc == NOH_OK) {
		rc = restore_into(&c, partial, copied);
		if (rc == NOH_OK)
			rc = finish(partial, dir);
		if (rc != NOH_OK) {
			snprintf(why, sizeof why, "%s", noh_why());
			files_remove(partial);
			(void)error_set(rc, "%s", why);
		}
	}
	care_close(&c);
	return rc;
}

int noh_restore(const char *backup_dir, const char *dir, noh_progress_fn *progress, void *user,
		noh_copied *copied)
{
	struct first_finding first = { .progress = progress, .user = user };
	noh_copied local = { 0 };
	noh_verified verified;
	int rc = check_target(dir);

	if (rc == NOH_OK)
		rc = noh_verify(backup_dir, keep_first, pass_progress, &first, &verified);
	if (rc == NOH_ECORRUPT && first.text[0])
		(void)error_set(rc, "the backup %s is damaged: %s; nothing was restored", backup_dir, first.text);
	if (rc == NOH_OK)
		rc = restore_checked(backup_dir, dir, &local);
	if (copied)
		*copied = local;
	return rc;
}
