/* actors/reconcile.h - what the files of the reconciliation kit share.
 *
 * Owns     the layout of a reconciler's state: struct kit, own, spec, snapshot, each aligned to 8.
 * Threads  the turn's.
 * Never    fails a turn for what somebody outside said: a failed turn is a matter for the supervisor, and nobody
 *          outside shall be able to have an actor restarted.
 *
 * One timer serves all: `wakes` is the earliest of the four times below. All are wall-clock times of the box, so they
 * mean the same after a restart.
 */
#ifndef NOH_ACTORS_RECONCILE_H
#define NOH_ACTORS_RECONCILE_H

#include "noh_reconcile.h"

#include <string.h>

#define KIT_LAYOUT 1                     /* of struct kit: part of the schema */

struct kit {
	uint64_t   revision, applied;
	uint64_t   sequence;             /* of the last snapshot                                    */
	uint64_t   passes, actions, failed;
	uint64_t   due_pass;             /* settled, or backed off                                  */
	uint64_t   due_action;           /* the one under way has no answer by then                 */
	uint64_t   due_tick, due_drain;
	uint64_t   wakes;                /* what the timer is set to; 0: it is not                  */
	uint64_t   ask;                  /* of the action under way, if it is one                   */
	uint64_t   waiter;               /* number of the last one                                  */
	noh_action action;               /* under way, or being begun                               */
	noh_retry  retry;
	uint32_t   phase, goal;
	uint32_t   waiters;
	uint32_t   desired_len, observed_len;
	uint8_t    under_way;
	uint8_t    beginning;            /* inside apply or observe                                 */
	uint8_t    changed;              /* the observation, since the last action began            */
	uint8_t    counted;              /* this pass is in passes                                  */
	char       error[NOH_RECONCILE_ERROR];
};

_Static_assert(sizeof(struct kit) % 8 == 0, "what follows is aligned");

/* observe(): before a pass, or to see what an action has come to. */
enum { LOOK_FIRST, LOOK_AFTER };

static inline const noh_reconciler *reconciler(noh_turn *turn)
{
	return noh_user(turn);
}

static inline uint32_t spec_max(const noh_reconciler *how)
{
	return how->spec_max ? how->spec_max : 256u;
}

static inline uint32_t observed_max(const noh_reconciler *how)
{
	return how->observed_max ? how->observed_max : 256u;
}

static inline uint32_t spec_room(const noh_reconciler *how)
{
	return (spec_max(how) + 7u) & ~7u;
}

static inline uint32_t observed_room(const noh_reconciler *how)
{
	return (observed_max(how) + 7u) & ~7u;
}

/* It looks after its thing: nothing has failed, and it has not stopped. */
static inline bool at_work(const struct kit *k)
{
	return k->phase == NOH_PHASE_CONVERGING || k->phase == NOH_PHASE_ACTIVE || k->phase == NOH_PHASE_DRAINING ||
	       k->phase == NOH_PHASE_STOPPING;
}

static inline uint32_t own_room(const noh_reconciler *how)
{
	return (how->own_size + 7u) & ~7u;
}

static inline uint8_t *spec_of(const noh_reconciler *how, const struct kit *k)
{
	return (uint8_t *)(uintptr_t)(k + 1) + own_room(how);
}

static inline uint8_t *observed_of(const noh_reconciler *how, const struct kit *k)
{
	return spec_of(how, k) + spec_room(how);
}

/* reconcile_type.c: what a callback is shown, as it is now. */
void reconcile_show(noh_turn *turn, noh_reconcile *now);

/* reconcile.c */
int reconcile_message(noh_turn *turn, const noh_msg *msg);

/* reconcile_text.c: text from outside, for people: UTF-8 without what a terminal would obey or a reader be misled by, each
 * such character a '?'; cut to room, with a NUL. */
void clean_text(char *to, size_t room, const uint8_t *text, size_t len);

/* backoff.c: the next random number of this actor. */
uint64_t retry_random(noh_turn *turn, noh_retry *retry);

/* reconcile_phase.c */
int reconcile_enter(noh_turn *turn, noh_reconcile *now, noh_phase to, const char *reason);
int reconcile_event(noh_turn *turn, noh_reconcile *now, const char *kind, const char *to, const char *reason);
uint64_t reconcile_due(const struct kit *k);                   /* when its timer should come; 0: never  */
int reconcile_close(noh_turn *turn, noh_reconcile *now);       /* the end of every turn: sets its timer */
int reconcile_wait(noh_turn *turn, noh_reconcile *now, const noh_msg *msg, uint64_t revision);
int reconcile_forget_waiters(noh_turn *turn, struct kit *k);
void reconcile_state(const struct kit *k, noh_reconcile_state *state);

/* reconcile_pass.c */
int reconcile_begin(noh_turn *turn, noh_reconcile *now, bool look);      /* a pass                     */
int reconcile_look(noh_turn *turn, noh_reconcile *now);        /* is it there already? does nothing  */
int reconcile_ended(noh_turn *turn, noh_reconcile *now, const noh_msg *answer);  /* the action under way  */
int reconcile_late(noh_turn *turn, noh_reconcile *now);        /* it has no answer in time           */
noh_phase reconcile_working(const struct kit *k);

/* reconcile_json.c */
int reconcile_from_json(void *how, noh_json_message *m);
int reconcile_to_json(void *how, noh_json_reply *r);

#endif
