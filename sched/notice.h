/* sched/notice.h - events on their way to the log: what the box tells of its actors, and what actors tell.
 *
 * An actor's event is part of its turn. Of a turn with a record it is a part of that record (turn_record.c); any other
 * event is pushed on a stack that all threads share, and whoever finds nobody at it passes all of them on, in the order
 * pushed: into the box's log, or into a record of their own.
 *
 * Owns     events that wait to be passed on; those of a turn until it ends.
 * Threads  notice, notice_of, notice_pass: any. The others: the worker whose turn it is.
 * Never    blocks. If too many wait the box's own are left out, and counted (sched_events.lost).
 */
#ifndef NOH_SCHED_NOTICE_H
#define NOH_SCHED_NOTICE_H

#include "sched/sched.h"

enum notice_kind {
	NOTICE_ACTIVATED, NOTICE_DEACTIVATED, NOTICE_FAILED, NOTICE_RESTARTED, NOTICE_ESCALATED, NOTICE_DEGRADED,
	NOTICE_QUARANTINED, NOTICE_RESUMED, NOTICE_STOPPED, NOTICE_DROPPED, NOTICE_DEAD_LETTER, NOTICE_DRAIN,
	NOTICE_CONFIG, NOTICE_ADMIN, NOTICE_KINDS
};
const char *notice_name(enum notice_kind kind);          /* "dead_letter" */

/* The box tells something of an actor; cell NULL: of itself. from, to: states, up to 63 bytes; reason: for people; each
 * may be NULL. Whether it is told at all is events_detail's to say. */
void notice(struct port *p, struct cell *c, enum notice_kind kind, const char *from, const char *to, const char *reason,
	    uint64_t revision);

/* The states of an actor's next event: an event begins where the last one ended. Returns what it was in, and keeps `to`. */
const char *notice_moves(struct cell *c, const char *to);

/* The same of somebody without a cell: an address, or a type's name; data: a JSON object, or NULL. */
void notice_of(struct sched *s, const char *actor, enum notice_kind kind, const noh_emit_options *what);

/* Pass on what waits, unless somebody is at it. */
void notice_pass(struct sched *s);

/* The durable epoch has moved, so there may be room again: those that found none. */
static inline void notice_again(struct sched *s)
{
	if (__builtin_expect(relay_any_late(&s->events.relay), 0))
		notice_pass(s);
}

/* Is it told that actors of this type come and go? Asked before anything is made ready for it. */
static inline bool notice_wanted(struct sched *s, const struct type *t)
{
	uint32_t detail = load_relaxed(&s->events.detail);

	return __builtin_expect(detail == NOH_EVENTS_ALL || (t->tells && detail == NOH_EVENTS_DEFAULT), 0);
}

/* A turn (or an activation: kind UINT32_MAX) of a type without supervision has failed. Of one type so many a second are told
 * one by one, the others as a sum. */
#define NOTICE_FAILURES 10
void notice_failed(struct worker *w, struct cell *c, uint32_t kind, int status, const char *reason);

void notice_came(struct port *p, struct cell *c);                /* notice_wanted was asked */
void notice_went(struct port *p, struct cell *c, enum gone why);

/* notice_sums.c - what happens too often to be told one by one: how often, by type, once a second. */
struct notice_sums;
struct notice_sums *notice_sums_open(struct sched *s);           /* NULL: no memory, and NULL is fine below */
void notice_sums_tell(struct notice_sums *n, struct sched *s, bool now);
void notice_sums_close(struct notice_sums *n, struct sched *s);

/* For turns: turn.c. */
void notice_commit(struct worker *w);
void notice_undo(struct worker *w);
uint64_t notice_order(struct sched *s);  /* of what is told now, before anybody hears of it */

struct event_node {
	struct event_node *next;
	uint64_t           order;
	uint32_t           len;          /* of the event: so many bytes more                        */
	uint32_t           zero;
	_Alignas(8) uint8_t event[];
};

void notice_open(struct sched *s);       /* the seed and the journal are known */
void notice_close(struct sched *s);      /* no thread runs */

#endif
