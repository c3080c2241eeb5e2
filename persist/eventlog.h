/* persist/eventlog.h - the newest part of the event log, in memory: what is not in the image yet.
 *
 *     chunk ─► chunk ─► chunk        events in order, numbered without gaps; a chunk knows its first one's number
 *     oldest            newest
 *
 * Appended in order by one thread at a time, shown a while later (when they are on disk), dropped from the old end (when
 * they are in the image, or too many or too old). A box without a data directory has nothing else.
 *
 * Owns     the chunks; one that is dropped while it is being read goes when its reader is done.
 * Threads  eventlog_append, _show: one at a time. The others: any.
 * Blocks   on a lock held for a few instructions; eventlog_wait.
 */
#ifndef NOH_PERSIST_EVENTLOG_H
#define NOH_PERSIST_EVENTLOG_H

#include "core/atomic.h"
#include "core/event.h"

#include <pthread.h>

struct eventlog_chunk;

struct eventlog {
	struct {
		void (*on_more)(void *arg);      /* whoever is listening may look: after eventlog_show     */
		void  *arg;
	} fixed;
	_Alignas(CACHE_LINE) struct {
		atomic_u64 newest;               /* up to this one they may be read                        */
		atomic_u32 event;                /* counts its steps; who waits sleeps on it               */
		atomic_u64 bytes;                /* of memory                                              */
		atomic_u64 appended;
		atomic_u64 gone;                 /* those up to this one may not be read any more          */
	} shown;
	_Alignas(CACHE_LINE) atomic_u32 waiters;
	atomic_u32 listeners;                    /* on_more is wanted                                      */
	atomic_u32 stopped;
	pthread_mutex_t lock;                    /* of the list, and of who reads a chunk                  */
	struct eventlog_chunk *oldest_chunk, *newest_chunk;
	struct {                                 /* the appender's: events of a group, to be put in order   */
		struct eventlog_staged *list;
		uint32_t count, room;
		uint8_t *bytes;
		size_t   used, size;
		uint64_t lost;                   /* for want of memory */
	} stage;
};

void eventlog_open(struct eventlog *l, uint64_t newest);         /* in zeroed memory; what is before is elsewhere */
void eventlog_close(struct eventlog *l);
/* Before anything is appended: the numbers begin behind this one. */
void eventlog_begin(struct eventlog *l, uint64_t newest);

/* The next one. False: no memory; then all there was is gone from here, and so is this one. */
bool eventlog_append(struct eventlog *l, const void *event, size_t len);
/* For what is in the journal: all events of a record, then, when its group is complete, all of the group into the log,
 * by their order. Without memory they are counted, and can be read when they are folded. */
void eventlog_stage(struct eventlog *l, const struct record_head *head, const uint8_t *parts, const uint8_t *parts_end);
void eventlog_settle(struct eventlog *l);
uint64_t eventlog_appended(struct eventlog *l);                  /* the last one's number */
void eventlog_show(struct eventlog *l, uint64_t newest);
void eventlog_stop(struct eventlog *l);                          /* nobody waits any more */

uint64_t eventlog_newest(struct eventlog *l);                    /* shown; 0: never one */
uint64_t eventlog_oldest(struct eventlog *l);                    /* in memory; newest + 1: none is */
uint64_t eventlog_oldest_ms(struct eventlog *l);                 /* when that was told; 0: none is */
uint64_t eventlog_bytes(struct eventlog *l);

/* Those up to this number: chunk by chunk, so some of them stay. */
void eventlog_drop(struct eventlog *l, uint64_t upto);
/* Those up to this number are too old, here as well. */
void eventlog_cut(struct eventlog *l, uint64_t upto);
/* At most so many bytes, and none told before that. Returns how many events went. */
uint64_t eventlog_trim(struct eventlog *l, uint64_t bytes, uint64_t before_ms);
/* None told before that can be read any more, not even of the newest chunk, which stays. Any thread; not where
 * eventlog_cut is used. */
void eventlog_age(struct eventlog *l, uint64_t before_ms);

/* From number `first` on (it must be there), until each() returns anything but 0: that is the result. 0: there was no
 * further one. NOH_ETOOOLD: it is not here (any more). */
typedef int eventlog_fn(void *arg, uint64_t seq, const void *event, size_t len);
int eventlog_read(struct eventlog *l, uint64_t first, eventlog_fn *each, void *arg);

/* Until there is one above. NOH_OK, NOH_ETIMEOUT, NOH_ESTOPPED. */
int eventlog_wait(struct eventlog *l, uint64_t cursor, uint64_t timeout_ns);

#endif
