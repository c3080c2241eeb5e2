/* persist/segment.h - segment files: names, heads, making them.
 *
 * A segment gets its name only when it is complete: it is filled and headed as NNNNNNNN.new, synced,
 * renamed to NNNNNNNN.seg, and the directory is synced. So a .seg with a bad head is damaged, and a
 * .new is nothing.
 *
 * Owns     nothing.   Threads  one.   Blocks  all of it: file calls and syncs.
 */
#ifndef NOH_PERSIST_SEGMENT_H
#define NOH_PERSIST_SEGMENT_H

#include "persist/disk.h"
#include "persist/frame.h"

#define JOURNAL_DIR "journal"

struct segment_info { uint64_t number, epoch, first, bytes, sum; };

struct segment_list {
	struct segment_info *at;
	size_t               count, room;
	bool                 no_memory;
};

/* Room for "journal/NNNNNNNN.seg", whatever the number. */
struct segment_name { char text[48]; };
struct segment_name segment_name(uint64_t number, const char *ending);

/* All .seg files in order of their numbers; only the numbers are set. segment_list_free in any case. */
int  segment_list(struct disk *d, struct segment_list *list);
int  segment_list_add(struct segment_list *list, const struct segment_info *info);
void segment_list_free(struct segment_list *list);

/* Read and check the head of info->number. NOH_ECORRUPT, NOH_EVERSION, NOH_EDISK, NOH_END: no file. */
int segment_look(struct disk *d, uint64_t dir_id, struct segment_info *info);

/* A new segment, synced and named, opened for disk_submit; out of segment `recycle` if that is not 0
 * (same size; it is gone then). Sets info->sum. NOH_ENOSPC: nothing is left of it. */
int segment_make(struct disk *d, uint64_t dir_id, struct segment_info *info, uint64_t recycle,
		 struct disk_file **file);
/* A head and no room for frames: a journal that says where the next run goes on, and nothing more. */
int segment_make_empty(struct disk *d, uint64_t dir_id, uint64_t number, uint64_t epoch, uint64_t first);
int segment_remove_unfinished(struct disk *d);           /* every .new */

#endif
