/* persist/recover.c - what a crash left of the journal. */
#include "persist/walk.h"

#include "core/error.h"

#include <inttypes.h>

static int look_at_heads(struct walk *w)
{
	for (size_t i = 0; i < w->segments.count; i++) {
		int rc = segment_look(w->disk, w->dir_id, &w->segments.at[i]);

		if (rc != NOH_OK)
			return rc == NOH_END ? error_set(NOH_EDISK, "a segment went away") : rc;
		if (w->segments.at[i].epoch > w->top_epoch)
			w->top_epoch = w->segments.at[i].epoch;
	}
	return NOH_OK;
}

int journal_must_be_there(struct disk *disk, const char *dir)
{
	struct segment_list list;
	int rc = segment_list(disk, &list);

	if (rc == NOH_OK && list.count == 0)
		rc = error_set(NOH_ECORRUPT, "%s/" JOURNAL_DIR " is missing or has no segment, and with it what was "
			       "answered since the image was last written; put it back, or restore a backup of the "
			       "whole directory (noh restore)", dir);
	segment_list_free(&list);
	return rc;
}

/* What the image has was on disk here before. */
static int reaches(const struct walk *w, uint64_t after)
{
	if (w->group >= after)
		return NOH_OK;
	return error_set(NOH_ECORRUPT, "the journal ends with frame %" PRIu64 ", but the image has frame %" PRIu64 ": the "
			 "journal's end is missing; restore the directory from a backup", w->group, after);
}

static int sync_segment(struct disk *disk, uint64_t number)
{
	struct disk_file *file;
	int rc = disk_open(disk, segment_name(number, "seg").text, DISK_WRITE, &file);

	if (rc != NOH_OK)
		return rc;
	rc = disk_sync(disk, file);
	disk_close(disk, file);
	return rc;
}

int journal_settle(struct disk *disk)
{
	struct segment_list list;
	int rc = segment_list(disk, &list);

	for (size_t i = 0; rc == NOH_OK && i < list.count; i++)
		rc = sync_segment(disk, list.at[i].number);
	if (rc == NOH_OK && list.count)
		rc = disk_sync_dir(disk, "");            /* the name of the folder, too */
	segment_list_free(&list);
	return rc == NOH_END ? error_set(NOH_EDISK, "a segment went away") : rc;
}

static int walk_all(struct disk *disk, uint64_t dir_id, bool beside, uint64_t after, journal_each_fn *each,
		    void *arg, struct journal_end *end)
{
	struct walk w;
	int rc;

	*end = (struct journal_end){ .frame = after };
	walk_open(&w, disk, dir_id);
	w.beside = beside;
	rc = segment_list(disk, &w.segments);
	if (rc == NOH_OK)
		rc = look_at_heads(&w);
	if (rc == NOH_OK)
		rc = walk_start(&w, after);
	while (rc == NOH_OK)
		rc = walk_next(&w, each, arg);
	if (rc == NOH_END && !w.stopped) {
		if (w.group > after)
			end->frame = w.group;
		end->epoch = w.top_epoch;
		end->segment = w.segments.count ? w.segments.at[w.segments.count - 1].number : 0;
		end->cut_bytes = w.cut;
		end->bytes = w.bytes;
		rc = reaches(&w, after);
	}
	walk_close(&w);
	return rc;
}

int journal_recover(struct disk *disk, uint64_t dir_id, uint64_t after, journal_each_fn *each,
		    void *arg, struct journal_end *end)
{
	return walk_all(disk, dir_id, false, after, each, arg, end);
}

int journal_look_beside(struct disk *disk, uint64_t dir_id, uint64_t after, journal_each_fn *each,
			void *arg, struct journal_end *end)
{
	return walk_all(disk, dir_id, true, after, each, arg, end);
}
