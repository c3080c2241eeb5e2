/* sched/watch.h - being told when another actor fails, is given up, or stops.
 *
 * Whom a turn watches is noted, and done when it ends (P4). Watchers stand in the vitals of the one they watch, by address; a
 * watcher that has gone to storage is left out when its turn comes. What they are told is not recorded.
 *
 * Owns     the watchers.   Threads  the worker that runs the actor.
 */
#ifndef NOH_SCHED_WATCH_H
#define NOH_SCHED_WATCH_H

#include "sched/vitals.h"

#define WATCHERS_MAX 1024

void watch_commit(struct worker *w);

/* To all that watch it. status: of its failure, or NOH_OK. */
void watch_tell(struct worker *w, const struct vitals *v, int status, bool stopped);
/* To all that watched one that has left the directory: whoever has its address now may have taken its vitals along. */
void watch_tell_left(struct worker *w, struct cell *c);

#endif
