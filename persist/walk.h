/* persist/walk.h - reads the journal's frames in order, for recovery and for the keeper.
 *
 * Owns     a window onto the segments and the group being put together.
 * Threads  one.
 * Blocks   reads files.
 * Never    writes; never gives out a record of a frame that was not checked.
 *
 * Torn or corrupt (DESIGN.md 6): where frame k should be and is not, look at every block behind it,
 * in the segments of this run. If a frame there says that k was on disk when it was submitted, k was
 * acknowledged and is lost: corrupt. Otherwise k never was: the run ends before it. The head of the
 * next run says where its recovery made the cut, and has to agree.
 *
 * Beside a box that writes, a read may find the place of k still empty and a block behind it already
 * written. So k is looked for once more before it is called lost: if it was on disk when the later frame
 * was submitted, it is there now, and the walk goes on with it.
 */
#ifndef NOH_PERSIST_WALK_H
#define NOH_PERSIST_WALK_H

#include "persist/journal.h"
#include "persist/segment.h"

struct walk {
	struct disk        *disk;
	uint64_t            dir_id;
	struct segment_list segments;
	bool                live;        /* what is missing is corrupt: the caller knows it is there */
	bool                beside;      /* a box writes on: what is missing may have come since it was looked for */
	size_t              at;          /* which segment                                         */
	uint64_t            off;         /* where in it the next frame begins                     */
	uint64_t            last;        /* the last frame taken                                  */
	uint64_t            group;       /* the last one that ended a group                       */
	uint64_t            after;       /* up to here nobody is told                             */
	uint64_t            sum;         /* of the last one                                       */
	bool                sum_known;
	bool                goes_on;     /* it says that the next segment is there                */
	bool                stopped;     /* each() did not want more                              */
	uint64_t            epoch;       /* of the last group                                     */
	uint64_t            top_epoch;   /* highest seen anywhere                                 */
	uint64_t            bytes;       /* of the frames above `after`                           */
	uint64_t            group_bytes; /* of the group being put together                       */
	uint64_t            cut;         /* bytes of what was cut at the end of the last run      */

	struct disk_file   *file;
	uint64_t            file_number; /* which segment it is                                   */
	uint8_t            *window;
	uint64_t            window_off;
	size_t              window_len, window_room;
	uint8_t            *pieces;      /* of a group of several frames                          */
	size_t              pieces_len, pieces_room;
};

void walk_open(struct walk *w, struct disk *disk, uint64_t dir_id);
void walk_close(struct walk *w);
/* To the frame after `after`, whose heads are in w->segments. NOH_ECORRUPT: frames are missing. */
int  walk_start(struct walk *w, uint64_t after);
/* Give each() the next group. NOH_END: there is none. */
int  walk_next(struct walk *w, journal_each_fn *each, void *arg);
/* Forget what was read: the files have changed since. */
void walk_refresh(struct walk *w);
/* The first `count` segments are gone. */
void walk_drop(struct walk *w, size_t count);

#endif
