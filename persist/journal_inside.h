/* persist/journal_inside.h - what journal.c (the journaller), journal_push.c (who writes) and journal_keep.c (the keeper) share. */
#ifndef NOH_PERSIST_JOURNAL_INSIDE_H
#define NOH_PERSIST_JOURNAL_INSIDE_H

#include "core/futex.h"
#include "persist/eventlog.h"
#include "persist/gather.h"
#include "persist/journal.h"
#include "persist/walk.h"

#include <pthread.h>

/* Made and let go by the keeper; written to by the journaller between `next` and its last frame. */
struct segment {
	struct segment_info info;
	struct disk_file   *file;        /* NULL: of an earlier run                              */
	struct segment     *newer;       /* the keeper's list                                    */
	atomic_u64          last;        /* frame; 0: not full yet                               */
	atomic_u64          end_pos;     /* bytes of all frames up to its last one               */
};

/* A frame on its way. */
struct flight {
	uint8_t *buf;
	uint64_t frame, epoch, bytes;    /* epoch: durable with it, if it is the last of its group */
	uint64_t began_ns, records;      /* of its group                                         */
	uint64_t event;                  /* the last one told up to here                         */
	bool     last, ended;
};

struct journal {
	struct gather gather;
	alignas(CACHE_LINE) struct {
		struct disk *disk;
		const struct clock *clock;
		uint64_t     dir_id, segment_bytes, limit;
		uint32_t     rings;
		uint64_t     need;       /* what the rings may still bring, as frames            */
		uint64_t     old_last;   /* the last frame of earlier runs                       */
		void       (*on_durable)(void *arg, uint64_t epoch);
		void        *arg;
		struct eventlog *events;
	} fixed;
	alignas(CACHE_LINE) struct { atomic_u64 epoch; } durable;
	alignas(CACHE_LINE) struct { atomic_u32 word; } role;     /* 0 free, 1 taken, 2 and awaited */
	alignas(CACHE_LINE) struct { atomic_u32 count, event; } waiting;          /* journal_wait  */
	alignas(CACHE_LINE) struct {                                             /* the journaller */
		atomic_u32 closed;       /* no next segment, and the rest of this one is spoken for */
		atomic_u32 failed;
		atomic_u64 used, pos, durable_frame, durable_pos;
		atomic_u64 frames, records, bytes, epochs, full_waits;
		atomic_u64 oldest_ns;    /* when the first group under way began; 0: none is     */
		atomic_u64 stuck_ns;     /* since when there is no room for the next; 0: there is */
		struct histogram commit, group;
	} shown;
	alignas(CACHE_LINE) struct {                                             /* the keeper    */
		atomic_ptr next;         /* the segment after this one; taken by the journaller  */
		atomic_u32 wanted;       /* it is time to make it: who does sleeps on this       */
		pthread_mutex_t lock;    /* the list of segments: keeper and who makes segments  */
		atomic_u32 no_space;
		atomic_u64 folded_pos, segments;
	} kept;
	alignas(CACHE_LINE) struct {                                             /* the journaller */
		struct segment *segment;
		uint64_t        used;            /* of its bytes                                 */
		uint64_t        frame, sum;      /* the last one built                           */
		uint64_t        pos;             /* bytes of all frames so far                   */
		uint64_t        written, written_pos;   /* on disk, without a gap                */
		struct flight  *flight;
		uint64_t        flights, first, after;  /* those under way: first to after - 1   */
		bool            open;            /* a group is being written:                    */
		bool            begun;           /*   its first frame is built                   */
		uint64_t        epoch, copied;   /*   of the record at hand                      */
		uint64_t        began_ns, records;
		uint64_t        held, holders;   /*   bytes in the rings when it began, and in how many of them */
		uint64_t        last_records;    /* of the group that ended last                 */
		uint64_t        commit_ns, mean_records;  /* in the mean, of groups; records in 256ths */
		uint64_t       *limit;
		uint32_t        ring;
		bool            trailing, shut;
		char            why[256];
	} mine;
	alignas(CACHE_LINE) struct {                                             /* the keeper    */
		struct segment *oldest, *newest;
		struct walk     walk;
		bool            walking;
		uint64_t        folded;          /* frame                                        */
		uint64_t        used_then;       /* of the segment, when the next one was last added to */
		uint64_t        mark, mark_pos;  /* a frame whose place in bytes is known        */
		uint64_t        reached, reached_pos;   /* where the last read from there ended; folded or not */
	} keeper;
};

/* Bytes of a segment where the options do not say. */
extern const uint64_t journal_usual_segment;

#endif
