/* sched/events.h - channels, as actors know them: publishing, listening, the personal channel.
 *
 * What a turn publishes and listens to is noted, and done when it ends (P4). An event is delivered to whoever
 * sits at the topic then (core/topics.h): into the mailboxes of active actors here, to connections by the
 * network. Nothing of it is recorded: across a crash an event arrives once or not at all.
 *
 * Owns     an actor's subscriptions, from its activation to its deactivation.
 * Threads  the worker that runs the actor; events_publish, events_personal: any, with a port.
 */
#ifndef NOH_SCHED_EVENTS_H
#define NOH_SCHED_EVENTS_H

#include "sched/sched.h"

#define EVENTS_TOPICS_MAX 1024         /* channels of an actor */

/* Everything noh_publish needs to know of a channel's name. */
int events_check(const char *channel, size_t len);             /* NOH_OK, or NOH_EINVAL with a sentence */

/* To all that listen; returns how many that were. */
uint64_t events_publish(struct port *p, const struct event *e);

/* Is it the personal channel of an actor of a type that has such? Then whose, and the kind. */
bool events_personal(struct sched *s, const char *channel, size_t len, char address[ADDRESS_MAX + 1],
		     size_t *address_len, uint32_t *kind);

/* For turns and lives: turn.c, life.c. */
void events_commit(struct worker *w);
void events_undo(struct worker *w);
int  events_join(struct worker *w, struct cell *c, const struct type *t);    /* what its type listens to */
void events_drop(struct port *p, struct cell *c);

static inline void events_leave(struct port *p, struct cell *c)
{
	if (__builtin_expect(c->ext && c->ext->subscriptions, 0))
		events_drop(p, c);
}

#endif
