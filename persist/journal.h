/* persist/journal.h - one sequential log for the box: group commit by epochs.
 *
 * Workers push records (record.h) into a ring each; the journaller (journal_step, by whatever thread)
 * advances the epoch, collects every ring, and writes one checksummed frame; while it is on its way
 * the next one gathers. Frames are closed under cause and effect (P6); the argument is in
 * docs/notes/journal.md and checked by tests/interleave.
 *
 *     tag = journal_epoch(j); at = journal_reserve(j, ring, size); ... write the record ...
 *     journal_push(j, ring); due = journal_epoch(j);
 *     Once journal_durable(j) >= due, the record is on disk, and so is all it depends on.
 *
 * Files    journal/NNNNNNNN.seg: segments, preallocated, zero-filled, synced before use; a head block
 *          with format version, data directory id and segment epoch; then frames. Old segments below
 *          the folded frame are recycled (journal_folded).
 * Owns     the rings, the segments, the frame buffers.
 * Threads  reserve, push, room: the ring's owner.  step, idle, wait: the journaller, one at a time.
 *          epoch, durable, wake: any.  folded, read: the keeper.
 * Never    acknowledges after a failed write: journal_step returns NOH_EDISK from then on, and
 *          durable stands still.
 */
#ifndef NOH_PERSIST_JOURNAL_H
#define NOH_PERSIST_JOURNAL_H

#include "core/atomic.h"
#include "core/clock.h"
#include "core/histogram.h"
#include "persist/disk.h"
#include "core/record.h"

#define JOURNAL_INLINE 16384     /* a record up to this size fits the ring if journal_room says so */

struct journal;
struct eventlog;

struct journal_options {
	struct disk *disk;
	uint64_t     dir_id;         /* of the data directory                                    */
	uint32_t     rings;          /* one per pushing thread                                   */
	uint32_t     ring_bytes;     /* each; a power of two; 0: 4 MiB                           */
	bool         small_last;     /* the last one takes little: a quarter of a MiB at most    */
	struct eventlog *events;     /* what is told by records goes there when it is on disk; NULL: nowhere */
	uint64_t     segment_bytes;  /* 0: 32 MiB                                                */
	uint64_t     limit_bytes;    /* of all segments not folded yet; 0: 256 MiB               */
	const struct clock *clock;   /* for durations; NULL: none are taken                      */
	void       (*on_durable)(void *arg, uint64_t epoch);   /* by the journaller, after publishing */
	void        *arg;
};

/* Where the recovered part ends: what the next start must be above. */
struct journal_end {
	uint64_t frame;              /* the last whole frame's number, but at least `after`      */
	uint64_t epoch;              /* the highest epoch in any frame or segment head           */
	uint64_t segment;            /* the highest segment number in use                        */
	uint64_t cut_bytes;          /* of a torn tail                                           */
	uint64_t bytes;              /* read in all                                              */
};

/* Since the first start there is always a segment. NOH_ECORRUPT, with the directory's name: there is none. */
int journal_must_be_there(struct disk *disk, const char *dir);

/* Walk all frames after number `after`, in order, and call each() for every record of every frame
 * that is whole. Tells a torn tail (cut: fine, reported in *end) from corruption (NOH_ECORRUPT, with
 * file and offset) by the rule of DESIGN.md 6. Changes nothing on disk. If each() returns anything
 * but NOH_OK, that is the result. frame and epoch are of the frame the record stands in. */
typedef int journal_each_fn(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
			    const uint8_t *parts, const uint8_t *parts_end);
int journal_recover(struct disk *disk, uint64_t dir_id, uint64_t after, journal_each_fn *each,
		    void *arg, struct journal_end *end);

/* The same beside a box that may be writing (walk.h): to somewhere at or behind what was on disk when it began. A segment
 * that the box lets go of meanwhile looks like damage: try again. */
int journal_look_beside(struct disk *disk, uint64_t dir_id, uint64_t after, journal_each_fn *each,
			void *arg, struct journal_end *end);

/* What recovery has read may be in a cache only, if the last run ended with it under way. Makes it durable: before anything
 * is built on it, or written to the image, which must never have a frame that the journal may lose (journal_open does so). */
int journal_settle(struct disk *disk);

/* After recovery: opens a new segment above `end`, never appends to an old one. Old segments stay
 * until journal_folded lets them go. Epochs begin at end->epoch + 1. */
int journal_open(struct journal **j, const struct journal_options *o, const struct journal_end *end);
void journal_close(struct journal *j);     /* everything submitted must have been reaped; NULL is fine */

/* ── pushing ── */

/* Room for one record of JOURNAL_INLINE bytes, or for any record that goes around the ring. Asked
 * before user code runs; false: do not run. Then journal_step makes room, and on_durable tells. */
bool journal_room(struct journal *j, uint32_t ring);

/* The disk is full: journal_room is false until there is space again, and what needs no record goes on. */
bool journal_no_space(struct journal *j);

/* `size` (a multiple of 8) bytes to write a record to, exactly so long, aligned to 8 (or several records with
 * one tag, side by side: they are on disk together or not at all); above JOURNAL_INLINE it is an
 * allocation that the ring points to (NULL: no memory). Several reserves may come before one push. */
uint8_t *journal_reserve(struct journal *j, uint32_t ring, size_t size);
void journal_push(struct journal *j, uint32_t ring);         /* all reserved: visible at once    */
void journal_unreserve(struct journal *j, uint32_t ring);    /* all reserved since the push: undone */
uint64_t journal_epoch(struct journal *j);                   /* seq_cst                          */
uint64_t journal_durable(struct journal *j);                 /* acquire                          */
void journal_wake(struct journal *j);        /* after a push: the journaller, if it sleeps       */
void journal_pushed(struct journal *j, uint32_t ring);       /* the same; and if it rests, and that is enough */
/* Blocks until durable >= epoch, or the journal failed (NOH_EDISK), or `timeout_ns` passed. */
int journal_wait(struct journal *j, uint64_t epoch, uint64_t timeout_ns);

/* ── the journaller ──
 * Whoever has the role: a thread of its own, which waits for it, or a worker with nothing better to do,
 * which takes it if nobody has it: then one call's record is written without waking anybody. */
bool journal_take(struct journal *j);
void journal_take_wait(struct journal *j);   /* blocks */
void journal_give(struct journal *j);        /* who could not take it wakes the thread (journal_wake) */
enum journal_did { JOURNAL_IDLE, JOURNAL_BUSY, JOURNAL_FULL };   /* FULL: waits for the keeper or space */

/* One round: reap what ended, publish, collect, submit. With `wait`, blocks in the disk if the next
 * thing to happen is the end of a write. JOURNAL_... or NOH_EDISK (below zero), for good. */
int journal_step(struct journal *j, bool wait);
/* For a worker that has pushed and takes the role: writes what there is, each frame by a call that blocks
 * until it is there (for one caller 50 us sooner than a write that is waited for in a ring). Ends an epoch
 * even if nothing was pushed: its record may have been collected before it knew when it is due. */
int journal_step_here(struct journal *j);
/* After a round that was JOURNAL_BUSY: for how long records should gather before the next one begins; 0: not at all. Asked with
 * the role, waited without it. */
uint64_t journal_pause_ns(const struct journal *j);
/* Gives the role, and waits: for half of those who write, at most so long. */
void journal_rest(struct journal *j, uint64_t timeout_ns);
/* Many write, each of them little: to end a group sooner is not worth stopping a worker, who is about to add to the next. A few
 * are not made to wait, and large groups have more who wait for their end. `did`: so it was until now. Asked with the role. */
bool journal_can_wait(const struct journal *j, bool did);
/* Gives the role, and blocks until a push or journal_wake; at most timeout_ns. */
void journal_sleep(struct journal *j, uint64_t timeout_ns);
void journal_loop(struct journal *j, atomic_u32 *stop);      /* step and sleep until *stop, then drain */

/* ── the keeper ── */

/* Walk the records of frames above `after` up to the durable frame, at most about `most` bytes, from
 * the segments on disk, checking every checksum. *upto and *epoch: the last frame walked. NOH_OK,
 * NOH_END: nothing new; NOH_ECORRUPT, NOH_EDISK. */
int journal_read(struct journal *j, uint64_t after, uint64_t most, journal_each_fn *each, void *arg,
		 uint64_t *upto, uint64_t *epoch);
/* The same, and not beyond frame `last`. */
int journal_read_to(struct journal *j, uint64_t after, uint64_t last, uint64_t most, journal_each_fn *each,
		    void *arg, uint64_t *upto, uint64_t *epoch);
/* Everything up to this frame is in LMDB, synced: segments wholly below are recycled. Also does what
 * journal_prepare does. On a full disk NOH_OK, with no_space in the numbers; it may be tried again. */
int journal_folded(struct journal *j, uint64_t frame);

/* Makes the next segment when the current one is half full, so that the journaller never has to. A fold may
 * take longer than the journal takes to fill the rest: so by a thread of its own, beside the keeper. */
int journal_prepare(struct journal *j);
void journal_prepare_sleep(struct journal *j, uint64_t timeout_ns);      /* until it is time, or woken */
void journal_prepare_wake(struct journal *j);

struct journal_stats {
	uint64_t frames, records, bytes, epochs, segments, unfolded_bytes;
	uint64_t full_waits;         /* rounds in which JOURNAL_FULL                              */
	uint64_t durable_frame, durable_epoch;
	bool     no_space;           /* the next segment could not be made: read only            */
	uint64_t segment_bytes;      /* what the next one needs                                  */
	uint64_t kept_bytes;         /* of all segments on disk                                  */
	uint64_t lag_ns;             /* the oldest record that is not on disk is about so old    */
	bool     failed;
};
void journal_get_stats(struct journal *j, struct journal_stats *stats);
/* Of all groups so far: from their collection until they were on disk; how many records they had. */
void journal_get_histograms(struct journal *j, struct histogram_sum *commit, struct histogram_sum *records);

#endif
