/* sched/supervise.h - what becomes of an actor that fails: back-off, restart, and in the end somebody's decision.
 *
 * All of it is off the path of a message: a turn that failed, a timer, the system lane. An actor that is down rests like one
 * that waits for room (CELL_BLOCKED, vitals.down), so its mailbox fills and pushes back as usual. One that is given up is
 * stored and then thrown out like one that could not be activated (CELL_BROKEN): what waits is refused. Its vitals
 * stay in the table, and let nobody activate it until it may come back.
 *
 * The back-off of one child needs no turn of its parent: the parent's type says what its policy is. The parent hears of it
 * only for siblings and for escalation (kin.h).
 *
 * Owns     nothing: vitals are the table's.   Threads  the worker that runs the actor.
 */
#ifndef NOH_SCHED_SUPERVISE_H
#define NOH_SCHED_SUPERVISE_H

#include "sched/vitals.h"
#include "sched/turn_record.h"

#define MSG_TRY (1u << 16)                 /* in noh_msg.flags: how often it has failed; up to 255 times */
#define SUPERVISE_CRASHED "the process ended in the middle of its turn"
#define TREE_DEPTH_MAX 64                  /* escalation goes no higher: a circle of parents would never end */

/* The turn failed. Undone; NOH_FULL: its message is to be kept in front and run again; else rc: it was answered. */
int supervise_turn_failed(struct worker *w, struct cell *c, int rc);

/* on_activate did. True: it is down, or given up; false: as if it were not supervised. */
bool supervise_activation_failed(struct worker *w, struct cell *c, int rc);

/* It is loaded: may it be activated? False: it was given up, and what waits is refused. */
bool supervise_admits(struct worker *w, struct cell *c);

/* Around the hook of a type with a deadline. */
static inline void supervise_hook_begins(struct worker *w, const struct type *t)
{
	if (t->sup.turn_deadline_ms)
		w->mine.turn.hook_ns = clock_now_ns(&w->fixed.sched->clock);
}
int supervise_hook_ended(struct worker *w, int rc);      /* rc, or it took too long */

/* Not because of a turn of its own: the parent of one that escalates. hops: so many levels. */
void supervise_failed(struct worker *w, struct cell *c, const char *reason, uint32_t hops);

static inline bool supervise_is_down(const struct cell *c)
{
	return c->ext && c->ext->vitals && c->ext->vitals->down;
}
/* It was told that it is down, or being restarted, and nothing more will be: it leaves memory. */
static inline bool supervise_left_down(const struct cell *c)
{
	return c->ext && c->ext->vitals && c->ext->vitals->told && c->ext->vitals->of.health < NOH_DEGRADED;
}
void supervise_go_down(struct worker *w, struct cell *c, struct vitals *v, uint64_t delay_ms);
void supervise_restart(struct worker *w, struct cell *c);        /* now, on_activate and all; down or not */

/* The system lane. */
void supervise_sys(struct worker *w, struct cell *c, struct sysmsg *n);
void supervise_leaves(struct worker *w, struct cell *c, bool forced);    /* somebody wants it to deactivate */

/* A message for one that is given up: answered, set aside or dropped, and counted; or it is back because of this message,
 * which has been kept. */
enum refused { REFUSED_NOT, REFUSED_DONE };
enum refused supervise_refuse(struct worker *w, struct cell *c, const struct msg *m);
#define SUPERVISE_SENTENCE 512
size_t supervise_sentence(struct worker *w, struct cell *c, char out[SUPERVISE_SENTENCE]);       /* why not, and what to do; its length */
int  supervise_code(struct worker *w, struct cell *c);           /* what a caller is told; NOH_EFAILED: not given up */

void supervise_stopped(struct worker *w, struct cell *c, enum gone why);       /* it leaves memory */
void supervise_commit(struct worker *w);                         /* what a turn said about its actor */
void supervise_forgive(struct worker *w, struct vitals *v, bool streak);   /* its failures so far; streak: the back-off as well */
void supervise_gauge(struct port *p, struct vitals *v);          /* its health has changed */
void supervise_note(struct worker *w, struct cell *c);           /* its vitals, into a record */

/* ── between supervise.c and given_up.c ── */
void supervise_set_health(struct worker *w, struct vitals *v, noh_health health, uint64_t until_ms);
void supervise_come_up(struct worker *w, struct cell *c, struct vitals *v);      /* it is not down any more */
void supervise_count_restart(struct worker *w, struct vitals *v);
bool supervise_count(struct worker *w, struct cell *c, struct vitals *v, const noh_supervision *p, const char *reason);   /* a failure; true: too often */
/* As an event, from the state it was last told to be in; its reason is that of its last failure. kind: enum notice_kind. */
void supervise_tell(struct worker *w, struct cell *c, const struct vitals *v, int kind, const char *to);
int  supervise_policy(struct worker *w, const struct vitals *v, uint32_t hops);  /* NOH_THEN_... */
bool supervise_back_off(struct worker *w, struct cell *c, struct vitals *v, bool too_often, uint32_t hops);   /* false: given up */
void given_up_mark(struct worker *w, struct cell *c, struct vitals *v, int then);      /* whoever looks sees it so */
void given_up_retire(struct worker *w, struct cell *c, struct vitals *v);              /* and it leaves memory */

#endif
