/* sched/cell.h - the record of an active actor: one cache line, and a body beside it.
 *
 * Owns     the layout. The line is what senders and the runner meet at (the mailbox is its first
 *          half); the body holds what only the runner writes: the state, and the id that finds it.
 * Threads  mailbox: see mailbox.h.  mine: whoever runs the actor (it is BUSY, and that is you).
 *          shown: the runner writes, others read.  The id part of the body never changes between
 *          birth and death; readers hold an epoch section.
 */
#ifndef NOH_SCHED_CELL_H
#define NOH_SCHED_CELL_H

#include "core/address.h"
#include "mailbox/mailbox.h"
#include "noh.h"
#include "sched/kv.h"
#include "sched/limit.h"

#include <assert.h>

struct body {
	atomic_u64 hash;     /* atomic for the slab's sake: its link is here while the body is free */
	uint8_t  data[];     /* [due 8, sequence 8] [handled 8] [version 8] state (rounded up to 8), id length 1, id, NUL */
};

struct cell {
	struct mailbox mailbox;
	atomic_u32     last_active;  /* shown: tenths of a second on the box's clock   */
	atomic_u16     type;         /* shown                                          */
	atomic_u8      life;         /* shown: noh_life, and LIFE_... beside it        */
	uint8_t        flags;        /* mine: CELL_...                                 */
	_Atomic(struct body *) body; /* the id part is shown, the rest mine            */
	_Atomic(struct ext *) ext;   /* mine: what few actors have; NULL: none of it. (Where it is is shown: a hint) */
};
static_assert(sizeof(struct cell) == CACHE_LINE, "an idle actor is one line and a small body");

enum {
	CELL_STOP = 1,        /* deactivate as soon as nothing waits              */
	CELL_EXTRA = 2,       /* ext has something to do: redo, room_queue, joins, forced */
	CELL_DIRTY = 4,       /* differs from what is stored                      */
	CELL_BLOCKED = 8,     /* rests until a mailbox it filled is at half       */
	CELL_WAITING = 16,    /* serves nothing but the answer it waits for       */
	CELL_BROKEN = 32,     /* on_activate failed: what waits fails, then it goes */
	CELL_LOADED = 64,     /* what is stored is in memory                      */
	CELL_READY = 128,     /* active, and not late                             */
};

/* Does it exist? To be asked, stored or counted an actor has to have done something that is kept. */
enum {
	LIFE_HELD = 16,       /* a step is changing this one and others (step.h): what looks beside the
				 mailbox must not see some before and others after it               */
	LIFE_OF = 3,          /* noh_life                                         */
	LIFE_EVICTED = 4,     /* told to go because memory is short               */
	LIFE_LATE = 8,        /* what it has sent is not delivered yet: it runs nothing (late.h) */
	LIFE_REBORN = 32,     /* it was erased, and that may not be folded yet    */
	LIFE_KNOWN = 64,      /* what is stored was loaded: LIFE_THERE counts     */
	LIFE_THERE = 128,     /* it exists                                        */
};

/* A message that has to be handled again, or was taken and could not be handled yet. */
struct redo {
	struct redo *next;
	struct msg   msg;
	uint32_t     flags;       /* NOH_MSG_...; and for answers: */
	int32_t      status;
	uint64_t     ask;
};

struct schedule {
	uint64_t due_ms, period_ms, serial;
	uint32_t kind;
	uint32_t entry;           /* in the wheel of .worker; a hint */
	uint32_t worker;
};

struct ext {
	struct kv        kv;
	struct schedule *schedules;
	uint32_t         schedule_count, schedule_room;
	uint64_t         next_serial;
	uint64_t         hint_ms;         /* a wheel has a hint by address for then; 0: none */
	uint64_t         waits_for;       /* token of the ask it waits for (CELL_WAITING) */
	uint32_t         rests_on;        /* cell it is blocked on or waits for           */
	noh_actor        parent;
	struct redo     *redo, **redo_end;
	struct vitals   *vitals;          /* vitals.h: the table's; NULL: nothing is known */
	struct timer_trace *traced;       /* trace.h: of schedules that traced turns have set; not stored */
	struct subscription *subscriptions;        /* events.h; not stored                 */
	uint32_t         subscription_count;
	struct sysmsg   *goodbyes;        /* deactivate requests to answer at the end     */
	struct sysmsg   *room_queue, **room_end;   /* who rests until there is room here  */
	uint32_t         room_batch;      /* how many of them to wake at a time           */
	struct sysmsg   *joins, **joins_end;       /* steps that wait until it gets to them (step.h) */
	uint64_t         weight;          /* bytes of it that are counted                 */
	struct limit_rest limit;          /* of a type with limits                        */
	bool             room_woken;      /* since the mailbox was last above half        */
	bool             forced;          /* deactivate: what waits is dropped            */
	bool             erased;          /* nothing is kept, unless it has changed since  */
	bool             restarting;      /* it was active, and failed (supervise.h)       */
};

static inline noh_life cell_life(struct cell *c)
{
	return (noh_life)(load_relaxed(&c->life) & LIFE_OF);
}
/* release: who sees it active sees the state it is active with. */
static inline void cell_set_life(struct cell *c, noh_life life)
{
	store_release(&c->life, (uint8_t)((load_relaxed(&c->life) & ~(unsigned)LIFE_OF) | life));
}
/* Whether it exists, and nothing of before. release: whoever sees that knows when it is durable, too. */
static inline void cell_set_known(struct cell *c, bool there, bool reborn)
{
	store_release(&c->life, (uint8_t)((load_relaxed(&c->life) & (LIFE_OF | LIFE_HELD | LIFE_EVICTED | LIFE_LATE)) |
					  LIFE_KNOWN |
					  (there ? LIFE_THERE : 0) | (reborn ? LIFE_REBORN : 0)));
}
static inline void cell_set_evicted(struct cell *c, bool evicted)
{
	store_release(&c->life, (uint8_t)((load_relaxed(&c->life) & ~(unsigned)LIFE_EVICTED) |
					  (evicted ? LIFE_EVICTED : 0)));
}
static inline void cell_set_held(struct cell *c, bool held)
{
	store_release(&c->life, (uint8_t)((load_relaxed(&c->life) & ~(unsigned)LIFE_HELD) | (held ? LIFE_HELD : 0)));
}

static inline void cell_set_late(struct cell *c, bool late)
{
	store_release(&c->life, (uint8_t)((load_relaxed(&c->life) & ~(unsigned)LIFE_LATE) | (late ? LIFE_LATE : 0)));
}
static inline bool cell_late(struct cell *c)
{
	return (load_relaxed(&c->life) & LIFE_LATE) != 0;
}

/* Active, and nothing special about it: the short way through serve.c. */
static inline bool cell_plain(const struct cell *c)
{
	return (c->flags | CELL_DIRTY) == (CELL_READY | CELL_LOADED | CELL_DIRTY);
}

/* Active, and not resting or about to go; it may have something extra to do (others that rest until there is room
 * here, for one, and then it is busy). */
static inline bool cell_ready(const struct cell *c)
{
	return (c->flags | CELL_DIRTY | CELL_EXTRA) == (CELL_READY | CELL_LOADED | CELL_DIRTY | CELL_EXTRA);
}

static inline noh_actor ref_make(uint32_t number, uint32_t gen)
{
	return (noh_actor){ (uint64_t)gen << 32 | number };
}
static inline uint32_t ref_number(noh_actor a) { return (uint32_t)a.bits; }
static inline uint32_t ref_gen(noh_actor a) { return (uint32_t)(a.bits >> 32); }

#endif
