/* sched/spread.h - when a second worker helps, and when it only gets in the way.
 *
 * Actors that talk to each other run several times faster on one core than on two, because their
 * cells, rings and queues stay in its cache; actors that do not, run twice as fast on two. Nobody
 * can tell which from the outside, so workers try and measure (docs/notes/spread.md):
 *
 *   offer   a worker that has been busy for a while with more than one actor wakes one sleeper
 *   trial   the sleeper takes half and both run for a moment. If the two together did not clearly
 *           more messages than the one did alone, the sleeper gives everything back and sleeps, and
 *           the next offer comes twice as late
 *   recheck a helper that stays gives back and rests for a moment now and then: the load may have
 *           changed
 *
 * Work of a stuck worker is taken over at once, without trial.
 *
 * What comes from outside, from threads that are no workers, goes to the worker that leads, the first that woke, and to
 * helpers as their home: not to whoever happens to be awake, for it would never sleep again and nobody would ask whether
 * it helps.
 *
 * Owns     the numbers of the trial. Threads: the worker itself, except `shared` (the partner).
 */
#ifndef NOH_SCHED_SPREAD_H
#define NOH_SCHED_SPREAD_H

#include "core/atomic.h"

#include <stdbool.h>

struct worker;

#define SPREAD_WINDOWS 4
enum spread_phase { SPREAD_ALONE, SPREAD_TRIAL, SPREAD_JOINED, SPREAD_RECHECK };

struct spread {
	/* my own speed, in messages per millisecond: the best of the last windows of unbroken work */
	uint64_t window_ns, window_messages, speeds[SPREAD_WINDOWS], speed;
	uint32_t windows;
	/* my offers */
	uint64_t next_offer_ns, backoff_ns;
	/* me as a helper */
	enum spread_phase phase;
	uint32_t partner;
	uint32_t trial_windows, naps;
	uint64_t since_ns, my_messages, partner_messages, speed_before;
	uint64_t recheck_ns, recheck_every_ns;
	uint64_t seen_verdicts;
};

struct spread_shared {
	atomic_u64 offer;           /* partner + 1 in the low 16 bits, its speed above; 0: none */
	atomic_u64 verdicts;        /* low bit: who helps me helped, at its last recheck; counts what was told */
	atomic_u64 speed;           /* as mine.speed, for helpers; 0: it slept since            */
	atomic_u32 helps;           /* it is on trial or stays: a part of what comes from outside is for it */
};

void spread_restart(struct worker *w);              /* it slept: forget the window             */
void spread_measure(struct worker *w);              /* once per pass, while busy               */
void spread_offer(struct worker *w);                /* once per pass, while busy               */
void spread_woke(struct worker *w);                 /* to help, then it takes half, or to work */
void spread_lead(struct worker *w);                 /* while busy: if nobody leads, it does    */
bool spread_verdict(struct worker *w);              /* once per pass: true: gave all back      */
bool spread_may_steal(struct worker *w);
uint64_t spread_nap_ns(struct worker *w);           /* how long to sleep in a recheck; or max  */
void spread_slept(struct worker *w);                /* it is about to sleep for lack of work   */
uint32_t spread_steal(struct worker *w, struct worker *from);

#endif
