#include "persist/segment.h"

#include "core/error.h"
#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct segment_name segment_name(uint64_t number, const char *ending)
{
	struct segment_name name;

	snprintf(name.text, sizeof name.text, JOURNAL_DIR "/%08" PRIu64 ".%s", number, ending);
	return name;
}

/* ── what is there ── */

int segment_list_add(struct segment_list *list, const struct segment_info *info)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		struct segment_info *at = mem_alloc(room * sizeof *at);

		if (!at)
			return error_set(NOH_ENOMEM, "no memory for a list of segments");
		if (list->count)
			memcpy(at, list->at, list->count * sizeof *at);
		mem_free(list->at, list->room * sizeof *list->at);
		list->at = at;
		list->room = room;
	}
	list->at[list->count++] = *info;
	return NOH_OK;
}

void segment_list_free(struct segment_list *list)
{
	mem_free(list->at, list->room * sizeof *list->at);
	*list = (struct segment_list){ 0 };
}

/* True if it is a number with that ending, as segment_name writes it. */
static bool is_segment(const char *name, const char *ending, uint64_t *number)
{
	struct segment_name same;
	char *end;

	*number = strtoull(name, &end, 10);
	same = segment_name(*number, ending);
	return end != name && *number > 0 && strcmp(same.text + sizeof JOURNAL_DIR, name) == 0;
}

static void list_one(void *arg, const char *name)
{
	struct segment_list *list = arg;
	struct segment_info info = { 0 };

	if (is_segment(name, "seg", &info.number) && segment_list_add(list, &info) != NOH_OK)
		list->no_memory = true;
}

static void list_unfinished(void *arg, const char *name)
{
	struct segment_list *list = arg;
	struct segment_info info = { 0 };

	if (is_segment(name, "new", &info.number) && segment_list_add(list, &info) != NOH_OK)
		list->no_memory = true;
}

static int by_number(const void *a, const void *b)
{
	const struct segment_info *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

int segment_list(struct disk *d, struct segment_list *list)
{
	*list = (struct segment_list){ 0 };
	int rc = disk_list(d, JOURNAL_DIR, list_one, list);

	if (rc == NOH_OK && list->no_memory)
		rc = NOH_ENOMEM;
	if (list->count)
		qsort(list->at, list->count, sizeof *list->at, by_number);
	return rc;
}

int segment_remove_unfinished(struct disk *d)
{
	struct segment_list list = { 0 };
	int rc = disk_list(d, JOURNAL_DIR, list_unfinished, &list);

	for (size_t i = 0; rc == NOH_OK && i < list.count; i++)
		rc = disk_remove(d, segment_name(list.at[i].number, "new").text);
	segment_list_free(&list);
	return rc == NOH_END ? NOH_OK : rc;
}

/* ── heads ── */

static int check_head(uint64_t dir_id, struct segment_info *info, const struct segment_head *h,
		      uint64_t size, const char *name)
{
	if (h->magic != SEGMENT_MAGIC || h->sum != segment_sum(h) || h->number != info->number)
		return error_set(NOH_ECORRUPT, "%s is damaged at offset 0: its head is not that of "
				 "segment %" PRIu64 "; restore the directory from a backup", name,
				 info->number);
	if (h->format != FRAME_FORMAT)
		return error_set(NOH_EVERSION, "%s has journal format %u, this program reads %u; "
				 "use the version that wrote it", name, h->format, FRAME_FORMAT);
	if (h->dir_id != dir_id)
		return error_set(NOH_ECORRUPT, "%s belongs to another data directory (%016" PRIx64
				 ", this one is %016" PRIx64 "); put the right file there", name,
				 h->dir_id, dir_id);
	if (size < h->bytes)
		return error_set(NOH_ECORRUPT, "%s is damaged: cut off at offset %" PRIu64 " of "
				 "%" PRIu64 "; restore the directory from a backup", name, size, h->bytes);
	info->epoch = h->epoch;
	info->first = h->first;
	info->bytes = h->bytes;
	info->sum = h->sum;
	return NOH_OK;
}

int segment_look(struct disk *d, uint64_t dir_id, struct segment_info *info)
{
	struct segment_name name = segment_name(info->number, "seg");
	struct segment_head head = { 0 };
	struct disk_file *f;
	uint64_t size;
	size_t got;
	int rc = disk_open(d, name.text, 0, &f);

	if (rc != NOH_OK)
		return rc;
	rc = disk_size(d, f, &size);
	if (rc == NOH_OK)
		rc = disk_read(d, f, &head, sizeof head, 0, &got);
	disk_close(d, f);
	return rc == NOH_OK ? check_head(dir_id, info, &head, size, name.text) : rc;
}

static int write_head(struct disk *d, uint64_t dir_id, struct segment_info *info, struct disk_file *f)
{
	uint8_t *block = mem_aligned(DISK_BLOCK, DISK_BLOCK);
	struct segment_head h = { .magic = SEGMENT_MAGIC, .format = FRAME_FORMAT, .dir_id = dir_id,
				  .number = info->number, .epoch = info->epoch,
				  .first = info->first, .bytes = info->bytes };

	if (!block)
		return error_set(NOH_ENOMEM, "no memory for the head of a segment");
	h.sum = info->sum = segment_sum(&h);
	memcpy(block, &h, sizeof h);
	int rc = disk_write(d, f, block, DISK_BLOCK, 0);

	mem_free(block, DISK_BLOCK);
	return rc == NOH_OK ? disk_sync(d, f) : rc;
}

/* ── making one ── */

/* The old name has to be gone for good before the head changes: a crash must not leave a segment of
 * one number with the head of another. */
static int begin_recycled(struct disk *d, const char *from, const char *name, struct disk_file **f)
{
	int rc = disk_rename(d, from, name);

	if (rc == NOH_OK)
		rc = disk_sync_dir(d, JOURNAL_DIR);
	return rc == NOH_OK ? disk_open(d, name, DISK_WRITE, f) : rc;
}

static int begin_new(struct disk *d, const char *name, uint64_t bytes, struct disk_file **f)
{
	int rc = disk_remove(d, name);

	if (rc == NOH_OK || rc == NOH_END)
		rc = disk_open(d, name, DISK_WRITE | DISK_CREATE, f);
	if (rc != NOH_OK)
		return rc;
	rc = disk_fill(d, *f, bytes);
	if (rc != NOH_OK)
		disk_close(d, *f);
	return rc;
}

int segment_make(struct disk *d, uint64_t dir_id, struct segment_info *info, uint64_t recycle,
		 struct disk_file **file)
{
	struct segment_name name = segment_name(info->number, "seg");
	struct segment_name unfinished = segment_name(info->number, "new");
	struct disk_file *f;
	int rc = recycle ? begin_recycled(d, segment_name(recycle, "seg").text, unfinished.text, &f) :
			   begin_new(d, unfinished.text, info->bytes, &f);

	if (rc == NOH_OK) {
		rc = write_head(d, dir_id, info, f);
		disk_close(d, f);
	}
	if (rc == NOH_OK)
		rc = disk_rename(d, unfinished.text, name.text);
	if (rc == NOH_OK)
		rc = disk_sync_dir(d, JOURNAL_DIR);
	if (rc == NOH_OK)
		rc = disk_open(d, name.text, DISK_WRITE | DISK_DURABLE, file);
	if (rc == NOH_ENOSPC)
		(void)disk_remove(d, unfinished.text);     /* best effort: open removes it, too */
	return rc == NOH_END ? NOH_EDISK : rc;
}

int segment_make_empty(struct disk *d, uint64_t dir_id, uint64_t number, uint64_t epoch, uint64_t first)
{
	struct segment_info info = { .number = number, .epoch = epoch, .first = first, .bytes = DISK_BLOCK };
	struct disk_file *f;
	int rc = segment_make(d, dir_id, &info, 0, &f);

	if (rc == NOH_OK)
		disk_close(d, f);
	return rc;
}
