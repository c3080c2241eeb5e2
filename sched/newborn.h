/* sched/newborn.h - cells that a turn makes for new addresses, entered at its end.
 *
 * Owns     the worker's list of them, each with the effect that is its first message. Until
 *          newborn_enter nobody else can see them.
 * Threads  the worker that runs the turn.
 */
#ifndef NOH_SCHED_NEWBORN_H
#define NOH_SCHED_NEWBORN_H

#include "sched/birth.h"
#include "sched/turn.h"

/* The last address a turn wrote to was new, so this one probably is; of a type that accepts a message
 * without a look into the mailbox. */
static inline bool newborn_expected(const struct worker *w, const struct type *t)
{
	return w->mine.expects_new && t->pub.full_mode != NOH_DROP_NEWEST;
}

/* Send to an address that is probably new. */
int newborn_tell(noh_turn *t, const struct named *who, uint32_t kind, const void *body, size_t len);

/* All of them become real, or none; where somebody was there already, he gets the messages instead.
 * NOH_OK; NOH_ENOMEM: the turn has to be undone. */
int newborn_enter(struct worker *w);
void newborn_publish(struct worker *w);         /* after that: their messages, and all others */
void newborn_forget(struct worker *w);          /* the turn is undone */

#endif
