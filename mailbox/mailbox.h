/* mailbox/mailbox.h - where an actor's messages wait, and who may run the actor.
 *
 * Owns     the order of the messages and the right to run. One 64-bit word says both:
 *
 *              state 3 | WAIT 1 | SYS 1 | ring 26 | tail 33
 *
 *          Whoever changes the word from IDLE or PARKED to BUSY must put the actor on a run queue
 *          (or run it); as long as it is BUSY exactly one queue entry or worker stands for it.
 * Threads  push, claim, wake, sys_push, ask_room: any.   take, idle, park, kill: the runner of the
 *          actor only. With `shared`, senders take as well, to make room: mailbox_drop, drop_oldest.
 * Never    blocks, calls back. Allocates only rings, from the caller's cache.
 *
 * An actor that is idle owns no ring. tail grows by one with each claimed slot, and a ring comes with
 * a claim, so no value of the word comes back that had a ring in it; tail grows once more with birth
 * and death, so none comes back for the cell's next actor (docs/notes/mailbox.md).
 */
#ifndef NOH_MAILBOX_MAILBOX_H
#define NOH_MAILBOX_MAILBOX_H

#include "core/must.h"
#include "mailbox/ring.h"

enum { MB_DEAD = 0, MB_IDLE = 1, MB_BUSY = 2, MB_PARKED = 3 };

struct mailbox {
	atomic_u64 word;
	atomic_u64 head;        /* ring 26 | head 33: the oldest message not started */
	atomic_ptr sys;         /* system lane: a stack of struct sysmsg             */
	atomic_ptr waiters;     /* who rests until there is room: a stack, too       */
	atomic_u32 gen;         /* changes whenever the cell is given to another actor */
	atomic_u32 link;        /* run-queue overflow, inbox, slab: one at a time    */
};

#define MB_TAIL_BITS 33
#define MB_TAIL_MASK ((UINT64_C(1) << MB_TAIL_BITS) - 1)
#define MB_RING_MASK (((UINT64_C(1) << RING_ID_BITS) - 1) << MB_TAIL_BITS)
#define MB_SYS (UINT64_C(1) << 59)
#define MB_WAIT (UINT64_C(1) << 60)
#define MB_STATE_SHIFT 61

static inline uint64_t mb_word(unsigned state, uint32_t ring, uint64_t tail)
{
	return (uint64_t)state << MB_STATE_SHIFT | (uint64_t)ring << MB_TAIL_BITS |
	       (tail & MB_TAIL_MASK);
}
static inline unsigned mb_state(uint64_t word) { return (unsigned)(word >> MB_STATE_SHIFT); }
static inline uint64_t mb_tail(uint64_t word) { return word & MB_TAIL_MASK; }
static inline uint32_t mb_ring(uint64_t word)
{
	return (uint32_t)((word & MB_RING_MASK) >> MB_TAIL_BITS);
}
static inline uint64_t mb_next(uint64_t word)     /* one more claimed */
{
	word++;
	if (__builtin_expect(word << (64 - MB_TAIL_BITS) == 0, 0))
		word -= UINT64_C(1) << MB_TAIL_BITS;     /* tail wraps round by itself */
	return word;
}
static inline uint64_t mb_with_state(uint64_t word, unsigned state)
{
	return (word & ~(UINT64_C(7) << MB_STATE_SHIFT)) | (uint64_t)state << MB_STATE_SHIFT;
}
/* a - b for tails, as a signed distance */
static inline int64_t mb_distance(uint64_t a, uint64_t b)
{
	return (int64_t)((a - b) << (64 - MB_TAIL_BITS)) >> (64 - MB_TAIL_BITS);
}

/* A message of the system lane: takes no room, overtakes ordinary ones, is never dropped. */
#define SYS_INLINE 24
struct sysmsg {
	struct sysmsg *next;
	uint32_t       gen;         /* of the cell it is meant for                  */
	uint32_t       op;          /* what it is: the scheduler's business         */
	uint32_t       kind;
	uint32_t       len;
	uint64_t       token;       /* ask, timer serial, waiter, parent: by op     */
	int32_t        status;
	uint32_t       number;      /* the slab's                                   */
	union {
		uint8_t bytes[SYS_INLINE];
		void   *big;
	} body;
};

struct mailroom {                   /* what push and take work with: the caller's */
	struct rings      *rings;
	struct ring_cache *cache;
};

enum mb_push { MB_PUSHED, MB_PUSHED_WAKE, MB_FULL, MB_GONE, MB_NOMEM };

/* Put msg in. Refused with MB_FULL when `capacity` messages wait (UINT32_MAX: never). MB_GONE if
 * the cell is not of generation gen any more. On MB_PUSHED_WAKE the actor is now BUSY and the
 * caller must see to it that it runs. On refusal msg stays the caller's. */
enum mb_push mailbox_push(struct mailbox *m, const struct mailroom *room, uint32_t gen,
			  uint32_t capacity, const struct msg *msg);

/* Up to *n messages of one sender with one claim, or with one ring that has room for them; *n is how
 * many went in, at least one unless refused. No capacity: the caller has looked. Not for mailboxes whose
 * head is shared. */
enum mb_push mailbox_push_run(struct mailbox *m, const struct mailroom *room, uint32_t gen,
			      const struct msg *const *msgs, uint32_t *n);

/* IDLE with nothing waiting -> BUSY: the caller runs it at once (turn in place). */
static inline bool mailbox_claim(struct mailbox *m, uint32_t gen)
{
	uint64_t word = load_acquire(&m->word);

	if (word >> MB_TAIL_BITS != (uint64_t)MB_IDLE << (MB_STATE_SHIFT - MB_TAIL_BITS) ||
	    load_acquire(&m->gen) != gen)
		return false;
	return cas_acq_rel(&m->word, &word,
			   word ^ (uint64_t)(MB_IDLE ^ MB_BUSY) << MB_STATE_SHIFT);
}

enum mb_take { MB_TAKEN, MB_EMPTY, MB_UNPUBLISHED };

/* Take the oldest message. It stays in its slot; mailbox_release gives the slot back. */
enum mb_take mailbox_take(struct mailbox *m, const struct mailroom *room, bool shared,
			  struct slot **slot);

/* Will be taken soon: the ring's head first, and when that is there, the slot. Hints: what they read may be over. */
static inline void mailbox_fetch_ring(const struct mailbox *m, const struct rings *rs)
{
	__builtin_prefetch(ring_at(rs, mb_ring(load_relaxed(&m->word))));
}
void mailbox_fetch_slot(const struct mailbox *m, const struct rings *rs);

static inline void mailbox_release(struct slot *slot)
{
	store_release(&slot->val, load_relaxed(&slot->val) + 1);                   /* F */
}

/* The short way to the next message of the same ring, after mailbox_take without `shared`. A cursor
 * is good until the runner calls anything else that takes, idles or parks. ready: false: ask mailbox_take; true:
 * cur->slot has a message, and step takes it. */
struct mb_cursor {
	struct slot *slot, *first, *end;
	uint64_t     full;              /* val of a slot of this lap with a message in it */
	uint32_t     id;
};
void mailbox_cursor(struct mailbox *m, const struct mailroom *room, struct mb_cursor *cur);

/* A cursor to begin with; MB_TAKEN: it stands at a message, which is still to be taken. Not with `shared`. */
enum mb_take mailbox_look(struct mailbox *m, const struct mailroom *room, struct mb_cursor *cur);

static inline bool mailbox_ready(const struct mb_cursor *cur)
{
	return load_acquire(&cur->slot->val) == cur->full;                         /* E */
}

static inline void mailbox_step(struct mailbox *m, struct mb_cursor *cur)
{
	store_release(&m->head, mb_next(load_relaxed(&m->head)));                  /* H */
	if (__builtin_expect(++cur->slot == cur->end, 0)) {
		cur->slot = cur->first;
		cur->full += 2;
	}
}

/* Most mailboxes have one message: the word says so, where the next slot would have to come from memory. */
static inline bool mailbox_take_next(struct mailbox *m, struct mb_cursor *cur, struct slot **slot)
{
	if (mb_tail(load_relaxed(&m->word)) == mb_tail(load_relaxed(&m->head)) || !mailbox_ready(cur))
		return false;
	*slot = cur->slot;
	mailbox_step(m, cur);
	return true;
}

/* The same by a sender that was refused with MB_FULL (drop_oldest; the runner takes with `shared`).
 * MB_EMPTY also if the cell is not of generation gen any more. Unless MB_TAKEN: push again. */
enum mb_take mailbox_drop(struct mailbox *m, const struct mailroom *room, uint32_t gen,
			  struct slot **slot);

/* BUSY and empty -> IDLE (or PARKED) without ring. False if something came meanwhile. */
bool mailbox_idle(struct mailbox *m, const struct mailroom *room, bool shared);

/* BUSY, no ring, nothing flagged. */
static inline bool mb_in_place(uint64_t word)
{
	return word >> MB_TAIL_BITS == (uint64_t)MB_BUSY << (MB_STATE_SHIFT - MB_TAIL_BITS);
}

/* The same where no ring was ever attached and nothing is flagged: the end of a turn in place. */
static inline bool mailbox_idle_in_place(struct mailbox *m)
{
	uint64_t word = load_relaxed(&m->word);

	return mb_in_place(word) &&
	       cas_acq_rel(&m->word, &word,
			   word ^ (uint64_t)(MB_IDLE ^ MB_BUSY) << MB_STATE_SHIFT);   /* J */
}

/* BUSY -> PARKED: only the system lane or mailbox_wake get it going again. False (and still BUSY)
 * if something waits in the system lane. */
bool mailbox_park(struct mailbox *m);
bool mailbox_wake(struct mailbox *m);      /* PARKED -> BUSY: the caller must run it */

/* System lane. push: true if the actor is now BUSY and the caller must see to it that it runs. If the
 * cell died, *undeliverable gets a list the caller must dispose of (msg, maybe others' to the dead;
 * both may happen at once when the cell has a new actor already). take:
 * oldest first, NULL if none; a message with another gen was meant for the cell's last actor. */
bool mailbox_sys_push(struct mailbox *m, uint32_t gen, struct sysmsg *msg,
		      struct sysmsg **undeliverable);
struct sysmsg *mailbox_sys_take(struct mailbox *m);
/* By the runner: what he took and cannot serve now, oldest first. It stays in front of what came since. */
void mailbox_sys_put_back(struct mailbox *m, struct sysmsg *list);

/* Waiting for room. ask_room queues w and flags the mailbox; if nobody runs it (so there is room)
 * it returns the waiters instead, and the caller wakes them, himself among them. take_waiters: by
 * the runner, once at most half of the capacity waits. */
struct sysmsg *mailbox_ask_room(struct mailbox *m, struct sysmsg *w);
bool mailbox_flag_room(struct mailbox *m);      /* only the flag; false: nobody runs it */
struct sysmsg *mailbox_take_waiters(struct mailbox *m);

/* Birth and death of the actor in this cell; by the one who owns it. born: DEAD -> IDLE, or BUSY if
 * the caller runs it. kill: BUSY and empty -> DEAD, and gen moves on; false if something came
 * meanwhile. */
static inline void mailbox_born(struct mailbox *m, unsigned state)
{
	uint64_t word = load_relaxed(&m->word), tail = mb_tail(word) + 1;

	must(mb_state(word) == MB_DEAD);
	store_release(&m->head, mb_word(0, 0, tail));      /* a late dropper that sees it sees gen */
	store_release(&m->word, mb_word(state, 0, tail));
}

bool mailbox_kill(struct mailbox *m, const struct mailroom *room);

/* Messages that wait, at least; exact if nobody sends or takes. */
static inline uint32_t mailbox_depth(struct mailbox *m)
{
	uint64_t w = load_acquire(&m->word);
	int64_t  d = mb_distance(mb_tail(w), mb_tail(load_acquire(&m->head)));

	return d > 0 ? (uint32_t)d : 0;
}

#endif
