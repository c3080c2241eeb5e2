/* sched/relay.h - what many leave on a stack, and one at a time passes on (notice.h): nobody waits, nothing stays behind.
 *
 * Owns     nothing.   Threads  push, hold, any_late: any.  The others: whoever holds it.
 *
 *     pusher   pushes (A), tries to hold (B)                   holder   lets go (C), looks for more (D)
 *
 * A, B against C, D is store buffering: all four are seq_cst, so either the pusher gets hold of it, or the holder sees what
 * was pushed and comes back for it.
 *
 * What finds no room where it is to go is late. Room comes with progress, a number that somebody else counts up after he has
 * made room: then he looks whether anything is late (F), and if so he tries to hold, too.
 *
 *     holder   says that some are late (E), looks at the progress (G), and only then tries for the last time
 *              lets go (C), looks at the progress again (H)
 *
 * E, G against his progress and F: either he sees that some are late, or the last try finds his room. C, H against his
 * progress and B: either he gets hold of it, or the holder sees that there was progress since the last try, and comes back.
 */
#ifndef NOH_SCHED_RELAY_H
#define NOH_SCHED_RELAY_H

#include "core/atomic.h"

#include <stdbool.h>
#include <stddef.h>

struct relay {
	atomic_ptr pushed;             /* newest first                       */
	atomic_u32 held;               /* by whoever passes them on          */
	atomic_u32 late;               /* some found no room                 */
};

static inline void *relay_top(struct relay *r)
{
	return load_relaxed(&r->pushed);
}

/* top is what `newest` and those with it stand on. False: it is another one by now, and in *top. */
static inline bool relay_push(struct relay *r, void **top, void *newest)
{
	return cas_seq_cst(&r->pushed, top, newest);                               /* A */
}

static inline bool relay_hold(struct relay *r)
{
	return swap_seq_cst(&r->held, 1u) == 0;                                    /* B */
}

static inline void *relay_take(struct relay *r)
{
	return swap_acquire(&r->pushed, (void *)NULL);
}

/* Returns how far the progress is: what finds no room after this waits for more of it. */
static inline uint64_t relay_some_late(struct relay *r, atomic_u64 *progress)
{
	store_seq_cst(&r->late, 1u);                                               /* E */
	return load_seq_cst(progress);                                             /* G */
}

static inline void relay_none_late(struct relay *r)
{
	store_relaxed(&r->late, 0u);
}

/* late: some are, and `seen` was the progress then. True: there is more to do, for whoever holds it next. */
static inline bool relay_let_go(struct relay *r, bool late, atomic_u64 *progress, uint64_t seen)
{
	store_seq_cst(&r->held, 0u);                                               /* C */
	return load_seq_cst(&r->pushed) != NULL ||                                 /* D */
	       (late && load_seq_cst(progress) != seen);                           /* H */
}

/* After there was progress. */
static inline bool relay_any_late(struct relay *r)
{
	return load_seq_cst(&r->late) != 0;                                        /* F */
}

#endif
