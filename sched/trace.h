/* sched/trace.h - the trace of a message: with it into the turn, and onward with whatever the turn sends.
 *
 * A trace stands behind the body in the message's envelope, so messages without one pay nothing: those short of
 * an envelope are told apart where that is looked at anyway. Each message a traced turn sends is a hop of its own,
 * with a new span id; it is wrapped when the turn is committed. What a turn publishes on channels is not traced, nor
 * are schedules and steps over several actors. Traces live in memory: a message that is delivered again after a
 * crash has none.
 *
 * Owns     nothing: a trace is its message's, the ring of spans its worker's.
 * Threads  the worker that runs the actor; trace_attach: any.
 */
#ifndef NOH_SCHED_TRACE_H
#define NOH_SCHED_TRACE_H

#include "sched/durable.h"

/* NULL: it is not traced. */
static inline const struct trace_tail *msg_trace(const noh_msg *m)
{
	const struct envelope *env = msg_envelope(m);

	if (!env || !(env->flags & ENVELOPE_TRACED))
		return NULL;
	return (const struct trace_tail *)(const void *)((const char *)env + env->bytes - sizeof(struct trace_tail));
}

/* Give a message a trace: its body moves into an envelope, or into a larger one. False: no memory, and the message
 * is as it was. */
bool trace_attach(struct msg *m, const struct trace_tail *tail, const char *state);

void trace_turn_begins(struct worker *w);          /* its messages are known, its hook was not called yet */
void trace_commit(struct worker *w);               /* all went well: remember it, wrap what it sends      */
void trace_failed(struct worker *w, int rc);

/* An answer without a body (none was given, or why there is none) to who asked in a traced message. False: he is
 * not an actor, or there is no memory for it: answer him as anybody. */
bool trace_answer(struct worker *w, const noh_msg *m, int status);

/* The gate lets it out: on disk, and its caller is answered. body is what trace_commit gave to it. */
void trace_on_disk(struct port *p, const void *body);

#endif
