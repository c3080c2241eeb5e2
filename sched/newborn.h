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

/* tell.c - to who has that address in memory (NOH_EGONE: nobody); to who has it or is made for it at once; and has this
 * turn written to it before in one of these ways, as far as is known? */
int  tell_known(noh_turn *t, const struct named *who, const char *address, uint32_t kind, const void *body, size_t len);
int  tell_resolved(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len);
bool tell_wrote_to(noh_turn *t, uint64_t hash);

/* All of them become real, or none; where somebody was there already, he gets the messages instead.
 * NOH_OK; NOH_ENOMEM: the turn has to be undone. */
int newborn_enter(struct worker *w);
void newborn_publish(struct worker *w);         /* after that: their messages, and all others */
void newborn_forget(struct worker *w);          /* the turn is undone */

#endif
