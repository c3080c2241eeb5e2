/* sched/log.c - lines of the log: which are wanted, and what is known about each.
 *
 * A line below its level costs a comparison. What is wanted goes to the box's owner; without one to stderr, if that
 * takes it at once: nobody waits for a log.
 */
#include "sched/trace.h"

#include "core/log_text.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool wanted(struct sched *s, struct type *t, int level)
{
	uint32_t own = t ? load_relaxed(&t->log_level) : 0;

	return level >= (int)(own ? own - 1 : load_relaxed(&s->log_level));
}

/* A pipe that has room for a page takes a line whole, unless somebody else is faster. */
static void to_stderr(const noh_log_line *line)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[LOG_LINE_MAX] = "noh: ";
	size_t n = 5;

	n += log_escape(text + n, 600, line->actor, false);
	if (*line->actor) {
		memcpy(text + n, ": ", 2);
		n += 2;
	}
	n += log_escape(text + n, sizeof text - n - 1, line->msg, false);
	text[n++] = '\n';
	if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT))
		(void)!write(STDERR_FILENO, text, n);
}

static void emit(struct sched *s, const noh_log_line *line)
{
	if (s->log_line)
		s->log_line(s->log_user, line);
	else if (s->log)
		s->log(s->log_user, line->level, line->actor, line->msg);
	else
		to_stderr(line);
}

static struct type *type_of(struct sched *s, const char *actor)
{
	const char *colon = strchr(actor, ':');

	return colon ? sched_find_type(s, actor, (size_t)(colon - actor)) : NULL;
}

void sched_logf(struct sched *s, int level, const char *actor, const char *format, ...)
{
	struct type *t = type_of(s, actor);
	struct worker *w = sched_self();
	char text[1024];
	va_list args;

	if (!wanted(s, t, level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	emit(s, &(noh_log_line){ .level = level, .msg = text, .actor = actor, .type = t ? t->name : "", .msg_id = "",
				 .trace_id = "", .span_id = "",
				 .shard = w && w->fixed.sched == s ? (int)w->fixed.index : -1 });
}

void sched_log_always(struct sched *s, const char *actor, const char *text)
{
	struct type *t = type_of(s, actor);
	struct worker *w = sched_self();

	emit(s, &(noh_log_line){ .level = NOH_INFO, .msg = text, .actor = actor, .type = t ? t->name : "", .msg_id = "",
				 .trace_id = "", .span_id = "",
				 .shard = w && w->fixed.sched == s ? (int)w->fixed.index : -1 });
}

/* Its name: the sender's hash, the sender's turn, and which of that turn's messages it is. */
static void write_msg_id(const noh_turn *t, char *out, size_t size)
{
	const struct envelope *env = t->msg_count == 1 ? msg_envelope(&t->msgs[0]) : NULL;

	out[0] = 0;
	if (env && env->seq)
		snprintf(out, size, "%016llx-%llx-%u", (unsigned long long)env->sender, (unsigned long long)env->seq,
			 env->index);
}

static void say(noh_turn *t, int level, const char *text)
{
	char msg_id[64], trace_id[33] = "", span_id[17] = "";

	write_msg_id(t, msg_id, sizeof msg_id);
	if (t->so_far.flags & TURN_TRACED) {
		trace_write_id(t->trace->at.hi, t->trace->at.lo, trace_id);
		trace_write_span(t->trace->at.span, span_id);
	}
	emit(t->sched, &(noh_log_line){ .level = level, .msg = text, .actor = noh_address(t), .type = t->type->name,
					.msg_id = msg_id, .trace_id = trace_id, .span_id = span_id,
					.shard = t->worker ? (int)t->worker->fixed.index : -1 });
}

static void say_args(noh_turn *t, int level, const char *format, va_list args)
{
	char text[1024];

	if (!wanted(t->sched, t->type, level))
		return;
	vsnprintf(text, sizeof text, format, args);
	say(t, level, text);
}

void turn_logf(noh_turn *t, int level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_args(t, level, format, args);
	va_end(args);
}

void noh_log(noh_turn *t, int level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_args(t, level, format, args);
	va_end(args);
}
