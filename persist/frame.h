/* persist/frame.h - the journal's bytes on disk.
 *
 *     segment   struct segment_head, padded to DISK_BLOCK | frame | frame | ...
 *     frame     struct frame_head | bytes of records | zeros up to a multiple of DISK_BLOCK
 *
 * What one epoch collected is a group: one frame, or several if it does not fit into one (a record may
 * go across the border). FRAME_FIRST and FRAME_LAST are its ends; a group without its last frame never
 * happened. Frames are numbered without gaps over all segments and runs, and each carries the checksum
 * of the one before it; the first of a run carries that of its segment's head.
 *
 * A frame names its directory, its segment and the segment's epoch: what is left in a recycled segment,
 * or in a file of another directory, is not taken for new.
 */
#ifndef NOH_PERSIST_FRAME_H
#define NOH_PERSIST_FRAME_H

#include "persist/disk.h"

#include <assert.h>
#include <stddef.h>
#include <xxhash.h>

#define FRAME_MAGIC   UINT32_C(0x4d52464e)            /* NFRM */
#define SEGMENT_MAGIC UINT64_C(0x31474553686f6e00)
#define FRAME_FORMAT  1
#define FRAME_MAX     (1u << 20)                      /* head and padding included */

/* FRAME_GOES_ON: the last of its segment; the next segment was there, with its name on disk, before this was written. If it is
 * not there now somebody took it away. (Where there was no room for one, the frame does not say so.) */
enum { FRAME_FIRST = 1, FRAME_LAST = 2, FRAME_GOES_ON = 4 };

struct frame_head {
	uint32_t magic;
	uint16_t format, flags;
	uint64_t dir_id, segment, segment_epoch;
	uint64_t number;
	uint64_t epoch;          /* of the box: records in it have tags up to this          */
	uint64_t durable;        /* all frames up to this one were on disk when it was submitted */
	uint32_t bytes;          /* of records                                              */
	uint32_t zero;
	uint64_t before;         /* the checksum of the frame before it                     */
	uint64_t sum;            /* of everything else, padding included                    */
};

struct segment_head {
	uint64_t magic;
	uint32_t format, zero;
	uint64_t dir_id, number;
	uint64_t epoch;          /* the box's first in this run: all segments of a run have the same */
	uint64_t first;          /* a run begins here, with this frame: what was above it is cut; or 0 */
	uint64_t bytes;          /* of the file                                             */
	uint64_t sum;
};

static_assert(sizeof(struct frame_head) == 80, "the format says so");
static_assert(sizeof(struct segment_head) == 64, "the format says so");

static inline size_t frame_size(size_t bytes)
{
	return (sizeof(struct frame_head) + bytes + DISK_BLOCK - 1) & ~(size_t)(DISK_BLOCK - 1);
}

static inline uint64_t frame_sum(const struct frame_head *h)
{
	uint64_t seed = XXH3_64bits(h, offsetof(struct frame_head, sum));

	return XXH3_64bits_withSeed(h + 1, frame_size(h->bytes) - sizeof *h, seed);
}

static inline uint64_t segment_sum(const struct segment_head *h)
{
	return XXH3_64bits(h, offsetof(struct segment_head, sum));
}

#endif
