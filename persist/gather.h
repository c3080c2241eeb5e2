/* persist/gather.h - epochs and rings: how records get from the workers to the journaller.
 *
 *     ring    entry | entry | skip to the end | entry | ...
 *     entry   struct gather_entry | the record, or struct gather_large: where it is
 *
 * Owns     the rings' bytes, and large records from reserve until the journaller frees them.
 * Threads  reserve, push, unreserve, room: the ring's owner.  begin, peek, release, announce, sleep,
 *          rest: the journaller.  epoch, wake: any.  enough: the ring's owner.
 * Never    makes a pusher wait; a wake-up is a system call only if the journaller sleeps.
 *
 * Nothing here knows of files: this is the part that tests/interleave runs in every order.
 */
#ifndef NOH_PERSIST_GATHER_H
#define NOH_PERSIST_GATHER_H

#include "core/atomic.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATHER_INLINE 16384          /* JOURNAL_INLINE: a bigger record is an allocation */

enum gather_kind { GATHER_RECORD = 1, GATHER_LARGE, GATHER_SKIP };

struct gather_entry { uint32_t size, kind; };            /* size: of what follows       */
struct gather_large { uint8_t *record; uint64_t size; };

struct gather_ring {
	alignas(CACHE_LINE) struct { uint8_t *bytes; uint64_t size; } fixed;
	alignas(CACHE_LINE) struct { atomic_u64 tail; } shown;     /* by the pusher: whole up to here  */
	alignas(CACHE_LINE) struct { atomic_u64 head; } shared;    /* by the journaller: free up to here */
	alignas(CACHE_LINE) struct { uint64_t at, tail, head; } mine;     /* the pusher's; head: as last seen */
};

struct gather {
	alignas(CACHE_LINE) struct { struct gather_ring *ring; uint32_t rings; } fixed;
	alignas(CACHE_LINE) struct { atomic_u64 epoch; } shown;    /* by the journaller                */
	alignas(CACHE_LINE) struct {                               /* set by the journaller, cleared by any */
		atomic_u32 asleep;
		atomic_u32 wanted;       /* it rests until a ring holds so many bytes; 0: it does not */
	} shared;
	alignas(CACHE_LINE) struct { atomic_u64 bytes; } large;    /* reserved or pushed, not yet freed */
};

/* A record as the journaller finds it. */
struct gather_item {
	const uint8_t *record;
	uint64_t       size;
	uint8_t       *large;        /* the allocation, if it is one                              */
	uint64_t       next;         /* the head once it is taken                                 */
};

/* ring_bytes, last_bytes (of the last one): powers of two. */
bool gather_open(struct gather *g, uint32_t rings, uint64_t ring_bytes, uint64_t last_bytes, uint64_t epoch);
void gather_close(struct gather *g);                     /* frees large records left in the rings */

/* ── the pusher ── */
bool     gather_room(struct gather_ring *r, size_t size);        /* for one record of that size */
uint8_t *gather_reserve(struct gather *g, struct gather_ring *r, size_t size);
void     gather_push(struct gather_ring *r);
void     gather_unreserve(struct gather *g, struct gather_ring *r);
uint64_t gather_epoch(struct gather *g);

/* ── the journaller ── */

/* Ends an epoch and returns it: limit[i] is how far ring i may hold records of it. */
uint64_t gather_begin(struct gather *g, uint64_t *limit);
bool     gather_waiting(struct gather *g);               /* does any ring hold anything?          */
/* The record at `head`, if there is one below limit with a tag up to epoch. */
bool     gather_peek(struct gather_ring *r, uint64_t head, uint64_t limit, uint64_t epoch,
		     struct gather_item *item);
void     gather_release(struct gather *g, struct gather_ring *r, const struct gather_item *item);

/* To sleep: announce, gather_begin and collect once more, and only if that was empty, sleep. */
void gather_announce(struct gather *g);
void gather_cancel(struct gather *g);
void gather_sleep(struct gather *g, uint64_t timeout_ns);
void gather_wake(struct gather *g);                      /* after a push and its gather_epoch     */

/* To rest: until a ring holds so many bytes (not 0), or the time is over. Who looks too early is not looked for: then it
 * is the time that ends it. */
uint64_t gather_held(struct gather_ring *r);             /* bytes                                 */
void gather_rest(struct gather *g, uint32_t bytes, uint64_t timeout_ns);
void gather_enough(struct gather *g, struct gather_ring *r);     /* after pushes to it: ends the rest, if they are enough */

#endif
