/* sched/wheel.h - pending timers, millisecond by millisecond.
 *
 * An entry is two words of the caller's (a, b) and the millisecond they are due. Adding, cancelling
 * and firing cost the same however many wait. See wheel.c for the geometry.
 *
 * Owns     the entries, in chunks that never move.
 * Threads  one at a time: the caller guards the wheel.
 * Never    fires early; loops over empty time; does more than it was allowed to in one call.
 */
#ifndef NOH_SCHED_WHEEL_H
#define NOH_SCHED_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_LEVELS 8
#define WHEEL_SLOTS 256

struct wheel_entry;
struct wheel_slot;

struct wheel {
	uint64_t             tick;       /* all that was due before it has fired          */
	uint64_t             count;      /* pending entries                               */
	uint64_t             bytes;
	struct wheel_slot   *slots;      /* WHEEL_LEVELS * WHEEL_SLOTS lists              */
	struct wheel_entry **chunks;
	uint32_t             chunk_count, chunk_room;
	uint32_t             fresh;      /* the first id that was never used              */
	uint32_t             free;       /* used before, linked by next; 0: none          */
	uint32_t             moving;     /* the level whose slot at tick is being emptied */
	uint32_t             levels;     /* bit L: level L is not empty                   */
	uint64_t             occupied[WHEEL_LEVELS][WHEEL_SLOTS / 64];
};

typedef void wheel_fire_fn(void *ctx, uint64_t a, uint64_t b, uint64_t due_ms);

bool wheel_init(struct wheel *w, uint64_t now_ms);      /* false: out of memory */
void wheel_free(struct wheel *w);                       /* what is pending never fires */

/* The id of the new entry, or 0 when out of memory. What is due already fires at the next advance.
 * An id is used again once its entry has fired or was cancelled. */
uint32_t wheel_add(struct wheel *w, uint64_t due_ms, uint64_t a, uint64_t b);

/* True if an entry with this id and these words was pending; it will not fire. */
bool wheel_cancel(struct wheel *w, uint32_t id, uint64_t a, uint64_t b);

/* Fire what is due at now_ms or before, in order of time (what was added late fires at once, among
 * the others). One unit of work is one entry fired, or moved nearer. After max_work units it stops,
 * and goes on at the next call. Returns the units done: less than max_work means that nothing is
 * left to do at now_ms. fire may add and cancel; what it adds for now_ms or before fires in the
 * same call, if max_work allows. A now_ms before that of an earlier call does nothing. */
uint32_t wheel_advance(struct wheel *w, uint64_t now_ms, uint32_t max_work, wheel_fire_fn *fire,
		       void *ctx);

/* Before this time wheel_advance has nothing to do; at it, it fires something or moves something
 * nearer (at most once per level for one entry). UINT64_MAX: nothing pending. */
uint64_t wheel_next_ms(const struct wheel *w);

static inline uint64_t wheel_count(const struct wheel *w)
{
	return w->count;
}

static inline uint64_t wheel_bytes(const struct wheel *w)
{
	return w->bytes;
}

#endif
