/* sched/step_word.h - whose a step is (step.h): one word, changed by its flow and by who tells its caller.
 *
 *     OWNED     somebody works on it: takes actors, or runs their turns
 *     EXPIRED   the same, and its caller has been told that it is over: whoever works on it gives up
 *     WAITS     its token is with an actor, whose runner goes on with it
 *     OVER      the same, and its caller has been told: the actors were let go, whoever finds the token drops it
 *     ENDED     it has run, or given up
 *
 * Owns     nothing.
 * Threads  wait, expired, end: whoever owns the step.  take: whoever found its token.  cancel: any, once.
 *
 * A -> B  whoever lets it wait hands on what it holds: to the one who takes it, or to the one who cancels it. With
 *         A or B relaxed he would not see all of it. Which of the two it is, the word decides, once.
 */
#ifndef NOH_SCHED_STEP_WORD_H
#define NOH_SCHED_STEP_WORD_H

#include "core/atomic.h"

#include <stdbool.h>

enum { STEP_OWNED, STEP_EXPIRED, STEP_WAITS, STEP_OVER, STEP_ENDED };

/* OWNED -> WAITS. False: it has expired. */
static inline bool step_word_wait(atomic_u32 *word)
{
	uint32_t owned = STEP_OWNED;

	return cas_release(word, &owned, (uint32_t)STEP_WAITS);                    /* A */
}

/* WAITS -> OWNED. False: it is over, and was only waiting to be found. */
static inline bool step_word_take(atomic_u32 *word)
{
	uint32_t waits = STEP_WAITS;

	return cas_acquire(word, &waits, (uint32_t)STEP_OWNED);                    /* B */
}

/* True: it waited, and what it holds is for the caller to let go. */
static inline bool step_word_cancel(atomic_u32 *word)
{
	uint32_t now = load_relaxed(word);

	while (now == STEP_WAITS || now == STEP_OWNED) {
		uint32_t was = now;

		if (cas_acquire(word, &now, (uint32_t)(was == STEP_WAITS ? STEP_OVER : STEP_EXPIRED)))   /* B */
			return was == STEP_WAITS;
	}
	return false;
}

static inline bool step_word_expired(atomic_u32 *word)
{
	return load_relaxed(word) == STEP_EXPIRED;
}

static inline bool step_word_over(atomic_u32 *word)
{
	return load_relaxed(word) == STEP_OVER;
}

static inline void step_word_end(atomic_u32 *word)
{
	store_relaxed(word, STEP_ENDED);
}

#endif
