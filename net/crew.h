/* net/crew.h - on how many workers the connections are.
 *
 * The kernel gives every worker its share of those that come. Where clients say one command at a time, most of the work
 * is the kernel's, for a few bytes each: then fewer workers that find more at every look need less of the machine, and
 * where the clients are on it, too, they get what is left over. Where they say many at once, or come from elsewhere in
 * numbers, more workers do more. Nobody can tell from the outside, so it is tried and measured, as sched/spread.h does
 * with actors (docs/notes/crew.md): for a moment on half as many workers, or on twice as many; whichever did more stays,
 * and the next trial comes twice as late.
 *
 * Owns     the numbers of the trial.
 * Threads  crew_look: any worker, one at a time.  width: read by all.
 */
#ifndef NOH_NET_CREW_H
#define NOH_NET_CREW_H

#include "core/atomic.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

struct server;

/* What happened in a window. */
struct crew_seen {
	uint64_t rate;                     /* commands in a second                                  */
	uint32_t batch;                    /* commands that came together                           */
	bool     rested;                   /* those that have the connections slept a part of it    */
	bool     several;                  /* more than one worker had something to do              */
};

enum crew_phase { CREW_RESTS, CREW_SETTLES, CREW_TRIES };

struct crew_trial {
	enum crew_phase phase;
	uint32_t          workers;         /* there are                                             */
	uint32_t          width, before;   /* tried; of before the trial                            */
	uint64_t          rate;            /* of before it                                          */
	uint64_t          known_rate;      /* when a trial last ended; 0: none did                  */
	bool              known_batches, tried_wider;
	uint64_t          next_ms, pause_ms, ended_ms;
};

struct crew {
	alignas(CACHE_LINE) atomic_u32 width;      /* the first so many have them; 0: as they came   */
	atomic_u64          look_ms;
	pthread_mutex_t     lock;                  /* of what follows                                */
	struct crew_trial trial;
	struct crew_counts { uint64_t commands, received, asleep_ns; } *was;      /* by worker, at the last look */
	uint64_t            at_ms;
};

bool crew_open(struct crew *k, uint32_t workers);  /* false: no memory                       */
void crew_close(struct crew *k);
void crew_look(struct server *s, uint64_t now_ms);   /* look_ms has come                       */

/* A window is over: on how many workers from now on? */
uint32_t crew_decide(struct crew_trial *t, const struct crew_seen *seen, uint64_t now_ms);

#endif
