/* sched/turn_record.h - what stands in the record of a turn (durable.c decides when, and where to).
 *
 * Owns     nothing but the worker's list of receivers.   Threads  the worker that runs the actor.
 */
#ifndef NOH_SCHED_TURN_RECORD_H
#define NOH_SCHED_TURN_RECORD_H

#include "core/record.h"
#include "sched/durable.h"

struct sink { uint8_t *at; size_t size; };       /* at NULL: only count */

/* Decided once: a receiver may go at any moment. False: no memory. */
bool turn_record_receivers(struct worker *w);

/* It is about one message from outside, has at most changed its state and answered: nothing else can be in its record. Of
 * that: how long the part is (0: the state is as it was), and the part. */
bool turn_record_is_simple(const struct noh_turn *t);
size_t turn_record_state_size(const struct noh_turn *t, const struct cell *c);
void turn_record_state(struct sink *k, const struct noh_turn *t, struct cell *c);

/* All parts. key: of a step whose key is kept with this actor; else NULL. */
void turn_record_put(struct sink *k, struct noh_turn *t, struct cell *c, uint64_t tag, uint64_t seq,
		     const struct durable_key *key);

/* What its head says of the parts. */
uint8_t turn_record_flags(const struct noh_turn *t);
void turn_record_order(struct noh_turn *t, uint8_t *record);

/* Name the messages: what was put into the record goes out in an envelope. False: no memory. */
bool turn_record_wrap(struct worker *w, struct cell *c, uint64_t seq);

/* For messages that end without an effect. */
void turn_record_consumed(struct sink *k, const struct envelope *env);
void turn_record_timers(struct sink *k, const struct noh_turn *t, const struct ext *x);
struct vitals;
void turn_record_vitals(struct sink *k, const struct vitals *v);
void turn_record_first(struct sink *k, struct worker *w, struct cell *c);    /* its state, if that is stored nowhere yet */
void turn_record_dead(struct sink *k, struct worker *w, struct cell *c, const noh_msg *m, const char *reason);
bool turn_record_fired(const struct noh_turn *t);        /* by a schedule: used up with this turn */

#endif
