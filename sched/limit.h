/* sched/limit.h - how much of a type may happen: messages a second, of all its actors and of each; turns at once (MB-11).
 *
 * A type without limits pays nothing: it is told from others by words that its messages look at anyway (type.guarded, odd,
 * short_capacity). One with limits pays here:
 *
 *   wait      a message that has no token stays where it is. Its actor reserves the next one, rests (PARKED) and is woken by
 *             its worker's wheel when the token is there: one timer for each actor that rests, at its own instant. Nobody
 *             tries again and again, and those who came first go first.
 *   refuse    the send has to bring the token, or it is NOH_ERATE.
 *   turns     who serves an actor of the type holds one of its places. If there is none, the actor waits in the type's queue
 *             (BUSY, so in one place as ever), and who leaves hands his place on to the first of them.
 *
 * A token is for a message that was sent: what is refused after it was admitted (a full mailbox, no memory) gives it back. A
 * turn that is undone has used its own, and those of the messages it had sent: it ran, and the next try is one more.
 *
 * A step (step.h) has tokens like any message, all of them before it begins. But it takes no places: it could wait for one
 * only while it holds other actors, perhaps those who have the places. Its turns run one after the other on one worker, so
 * of a type with places at most one turn for each worker comes on top.
 *
 * Shares: the type's bucket is one word for all workers, so each takes what comes in about a millisecond at a time and deals
 * it out by itself. A slow rate has shares of one token; then there are few messages.
 *
 * Owns     the type's bucket and queue; the buckets of actors are beside the cells (sched.buckets), by number.
 * Threads  limit_admit, limit_set: any; what has a worker: the one that runs the actor.
 */
#ifndef NOH_SCHED_LIMIT_H
#define NOH_SCHED_LIMIT_H

#include "core/bucket.h"
#include "noh.h"

#include <stdalign.h>

enum {                                 /* type.limits                                                   */
	LIMIT_WAIT = 1, LIMIT_REFUSE = 2, LIMIT_TURNS = 4,
	LIMIT_EVER = 8                 /* it has some, or had: somebody may rest by them still          */
};

struct limit {
	alignas(CACHE_LINE) struct {             /* by limit_set; all read it */
		atomic_u64 step_ns, span_ns;             /* of the type; step 0: no limit */
		atomic_u64 actor_step_ns, actor_span_ns; /* of each actor                 */
		atomic_u32 share;                        /* tokens that a port takes at once */
		atomic_u32 turns;                        /* at once; 0: no limit             */
		atomic_u32 version;                      /* counts changes                   */
	} set;
	alignas(CACHE_LINE) struct { atomic_u64 full_ns; } bucket;
	alignas(CACHE_LINE) struct {
		atomic_u32 lock;                         /* held for a few instructions      */
		uint32_t   taken;                        /* guarded by lock, as are the next: places */
		uint32_t   first, last;                  /* who waits: cells, by mailbox.link */
		atomic_u32 waiting;                      /* how many; shown                  */
	} places;
};

struct sched;
struct type;
struct port;
struct worker;
struct cell;
struct sysmsg;
struct effect;

/* What ext keeps of it. */
struct limit_rest {
	uint64_t until_ns;             /* it rests; 0: it does not                                      */
	uint32_t tokens;               /* it has so many, and has not used them                         */
	uint32_t reserved;             /* and will have so many when it is woken                        */
	uint32_t serial, version;      /* of the rest at hand: a timer of an older one is too late      */
	bool     has_place;            /* one was handed on to it                                       */
};

int  limit_check(const char *type, const noh_limits *limits);    /* NOH_EINVAL, with a sentence      */
int  limit_set(struct sched *s, struct type *t, const noh_limits *limits);   /* NOH_ENOMEM        */

/* Refuse: a token for one message to c, or NOH_ERATE with a sentence. */
int  limit_admit(struct port *p, struct cell *c, struct type *t);
void limit_unadmit(struct port *p, struct cell *c, struct type *t);      /* it was not sent after all */

/* True: what comes next has no token, and c has to rest until it is woken: limit_park. */
bool limit_holds(struct worker *w, struct cell *c, bool in_hand);
bool limit_park(struct worker *w, struct cell *c, struct effect **in_hand);      /* true: not ours any more */
void limit_woken(struct worker *w, struct cell *c, const struct sysmsg *n);
void limit_used(struct cell *c, uint32_t n);                             /* messages were handled     */
uint32_t limit_left(struct cell *c);                                     /* so many may be            */

/* A place for c. False: none is free, and c waits for one: it is not ours any more. try: without waiting. */
bool limit_try_place(struct cell *c, struct type *t);
bool limit_wait_place(struct worker *w, struct cell *c, struct type *t);
void limit_leave_place(struct port *p, struct type *t);

#endif
