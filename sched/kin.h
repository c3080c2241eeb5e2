/* sched/kin.h - parents and children: who was spawned by whom, in which order; restarting several; escalation.
 *
 * A parent keeps its children as entries of its key-value part, under keys that are the box's own: so a spawn is part of
 * its turn (P4), and costs a record its one entry, however many there are. A child has its parent's address in its vitals.
 *
 * Restarting several: whoever fails under NOH_ONE_FOR_ALL or NOH_REST_FOR_ONE tells its parent, which puts the siblings
 * down; when the back-off is over it tells it again, and the parent restarts them one after the other, each when the one before has
 * said that it is done (a round). Nothing hangs on an answer: whoever is down has a timer of its own.
 *
 * Owns     a parent's round.   Threads  the worker that runs the actor.
 */
#ifndef NOH_SCHED_KIN_H
#define NOH_SCHED_KIN_H

#include "sched/supervise.h"

/* Keys of the key-value part that begin like this are the box's. */
#define KIN_KEY "\0noh"
#define KIN_KEY_LEN 5                      /* with the NUL behind it */
static inline bool kin_key(const void *key, size_t len)
{
	return len >= KIN_KEY_LEN && *(const char *)key == 0 && memcmp(key, KIN_KEY, KIN_KEY_LEN) == 0;
}
const struct kv_node *kin_skip(const struct kv *kv);     /* the first entry behind them */

/* A parent's children in the order spawned; pointers into its entries. False: no memory. */
struct child { uint64_t order; const char *address; size_t len; };
struct children { struct child *list; uint32_t count, room; };
bool kin_children(struct cell *c, struct children *out);
void kin_children_free(struct children *k);

/* Of the type of its parent; NULL: it has none that is supervised. */
const noh_supervision *kin_policy(struct sched *s, const struct vitals *v);

void kin_failed(struct worker *w, struct cell *c, struct vitals *v);     /* it is down: so are its siblings, if that is the strategy */
bool kin_waits_for_parent(struct worker *w, struct cell *c, struct vitals *v);   /* its back-off is over: the parent restarts it, and others */
void kin_escalate(struct worker *w, struct cell *c, struct vitals *v, uint32_t hops);
void kin_restarted(struct worker *w, struct cell *c, struct vitals *v);
void kin_quarantine_type(struct worker *w, struct cell *c);
void kin_adopted(struct worker *w, struct cell *c, const struct sysmsg *n);      /* SYS_SPAWN: it has a parent now */
void kin_sys(struct worker *w, struct cell *c, struct sysmsg *n);
void kin_round_free(struct vitals *v);
void kin_lost(struct port *p, struct sysmsg *n);         /* a child that was to be restarted is gone: the next one */

/* The effect of noh_spawn, as a message of the system lane: order and the parent's address. */
struct spawn { uint64_t order; char parent[ADDRESS_MAX + 1]; };
int  kin_adopt(noh_turn *t, const char *address, uint64_t *order);       /* a place among the children, with this turn */
bool kin_publish_spawn(struct port *p, struct effect *e);        /* false: no memory; the parent is BUSY, and in this worker's hands */

#endif
