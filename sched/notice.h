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
	NOTICE_CONFIG, NOTICE_KINDS
};
const char *notice_name(enum notice_kind kind);          /* "dead_letter" */

/* The box tells something of an actor; cell NULL: of itself. from, to: states, up to 63 bytes; reason: for people; each
 * may be NULL. Whether it is told at all is events_detail's to say. */
void notice(struct port *p, struct cell *c, enum notice_kind kind, const char *from, const char *to, const char *reason,
	    uint64_t revision);

/* The same of somebody without a cell: an address, or a type's name; data: a JSON object, or NULL. */
void notice_of(struct sched *s, const char *actor, enum notice_kind kind, const noh_emit_options *what);

/* Pass on what waits, unless somebody is at it. */
void notice_pass(struct sched *s);

/* Coming and going of every actor: asked before anything is made ready for it. */
static inline bool notice_wanted(struct sched *s, const struct type *t)
{
	(void)t;
	return __builtin_expect(load_relaxed(&s->events.detail) == NOH_EVENTS_ALL, 0);
}

/* For turns: turn.c. */
void notice_commit(struct worker *w);
void notice_undo(struct worker *w);

struct event_node {
	struct event_node *next;
	uint32_t           len;          /* of the event; then the node has so many bytes more      */
	uint32_t           zero;
	_Alignas(8) uint8_t event[];
};

void notice_close(struct sched *s);      /* no thread runs */

#endif
