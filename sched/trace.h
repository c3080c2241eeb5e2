/* sched/trace.h - the trace of a message: with it into the turn, and onward with whatever the turn sends.
 *
 * A trace stands behind the body in the message's envelope, so messages without one pay nothing: those short of
 * an envelope are told apart where that is looked at anyway. Each message a traced turn sends is a hop of its own,
 * with a new span id; it is wrapped when the turn is committed. So is what it publishes, for each actor that listens, and
 * the message of a schedule it sets, unless that repeats, or was set by a timer's turn: an actor that sets its next timer
 * in each would never come to the end of the trace. Steps over several actors are not traced. Traces live in memory: a
 * message that is delivered again after a crash, and a schedule that was stored meanwhile, have none.
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

/* The same with one more hop of the trace `from`. */
bool trace_send_on(struct worker *w, struct msg *m, const struct trace_tail *from, uint64_t now_ns);

/* A schedule of x was set by this turn, which is traced; it is gone; it has fired: its trace, if it has one, goes into the
 * message. Without memory it goes on without. */
void trace_timer_set(struct worker *w, struct ext *x, uint64_t serial);
void trace_timer_drop(struct ext *x, uint64_t serial);
void trace_timer_fired(struct worker *w, struct ext *x, uint64_t serial, struct msg *m);
void trace_timers_drop(struct ext *x);             /* all of them */

void trace_turn_begins(struct worker *w);          /* its messages are known, its hook was not called yet */
void trace_commit(struct worker *w);               /* all went well: remember it, wrap what it sends      */
void trace_failed(struct worker *w, int rc);

/* An answer without a body (none was given, or why there is none) to who asked in a traced message. False: he is
 * not an actor, or there is no memory for it: answer him as anybody. */
bool trace_answer(struct worker *w, const noh_msg *m, int status);

/* The gate lets it out: on disk, and its caller is answered. body is what trace_commit gave to it. */
void trace_on_disk(struct port *p, const void *body);

#endif
