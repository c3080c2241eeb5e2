/* sched/poison.h - a note of what is run, before it is run; and messages that must not be run again.
 *
 * Owns     nothing.   Threads  the worker that runs the actor.
 */
#ifndef NOH_SCHED_POISON_H
#define NOH_SCHED_POISON_H

#include "sched/durable.h"

void poison_note_slowly(struct worker *w, struct cell *c, const noh_msg *msgs, uint32_t n);
bool poison_hit(struct worker *w, struct cell *c, const noh_msg *m);   /* then it was set aside */
void poison_survived(struct worker *w);     /* the hook has returned: it was not the message */
bool poison_suspects(struct sched *s, struct cell *c);                 /* run its messages one by one */
bool poison_blames(struct sched *s, struct cell *c);   /* the process ended in its turn, and nobody has said so yet */

/* Around every hook. */
static inline void poison_note(struct worker *w, struct cell *c, const noh_msg *msgs, uint32_t n)
{
	if (__builtin_expect(w->fixed.sched->notes != NULL, 0))
		poison_note_slowly(w, c, msgs, n);
}
static inline void poison_done(struct worker *w)
{
	if (__builtin_expect(w->fixed.sched->notes != NULL, 0)) {
		store_relaxed(&w->fixed.sched->notes[w->fixed.index].busy, 0);
		if (w->fixed.sched->crashes)
			poison_survived(w);
	}
}

/* Before a message is run: was it running when the process ended, too often? */
static inline bool poison_refused(struct worker *w, struct cell *c, const noh_msg *m)
{
	return __builtin_expect(w->fixed.sched->crashes != NULL, 0) && poison_hit(w, c, m);
}

#endif
