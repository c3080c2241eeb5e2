/* net/conn_resp.c - a connection's commands, run one after another; and where the reply of any request goes. */
#include "net/net.h"

#include "core/mem.h"
#include "net/command.h"

#define ARGS_ON_STACK 32

static const struct arg *arguments(struct net *n, struct conn *c, const char *bytes, struct arg *few)
{
	struct arg *argv = few;
	uint32_t argc = c->reader.argc;

	if (argc > ARGS_ON_STACK) {
		if (argc > n->argv_room) {
			struct arg *list = mem_alloc(argc * sizeof *list);

			if (!list)
				return NULL;
			mem_free(n->argv, n->argv_room * sizeof *list);
			n->argv = list;
			n->argv_room = argc;
		}
		argv = n->argv;
	}
	for (uint32_t i = 0; i < argc; i++)
		argv[i] = resp_arg(&c->reader, bytes, i);
	return argv;
}

/* Where a command's reply goes is settled before it runs: behind those that wait, or straight out. What is written
 * from here on is its own. */
void conn_reply_from(struct net *n, struct conn *c)
{
	n->reply_from = c->out.len;
	n->first_before = c->first;
	n->last_before = c->last;
}

void conn_before(struct net *n, struct conn *c)
{
	n->scratch.len = 0;
	n->reply_due = 0;
	n->muting = c->session.reply == REPLY_OFF || c->session.reply == REPLY_SKIP;
	conn_reply_from(n, c);
}

/* A reply was written into the connection, into scratch, or will come by a slot. A muted one that comes by a slot is
 * left out there; what came out meanwhile for commands before it stays. */
void conn_after(struct net *n, struct conn *c)
{
	size_t out_before = n->reply_from;

	n->muting = false;
	if (c->session.reply != REPLY_ON && session_mutes(&c->session)) {
		if (!n->first_before)
			conn_unwrite(c, out_before);
		n->scratch.len = 0;
	}
	if (n->scratch.len || n->scratch.failed) {
		if (n->scratch.failed || !slot_text(n, c))
			conn_end(n, c);
	} else if ((c->out.len > out_before || c->out.failed) && !c->first && c->last == n->last_before) {
		if (out_is_error(&c->out, out_before))
			count_one(&n->shown.counts.errors, 1);
		conn_wrote(n, c, n->reply_due);
	}
	if (c->session.closing)
		c->flags |= CONN_ENDING;
}

/* False: it has to wait until those before it are answered, and was not run. */
static bool command(struct net *n, struct conn *c, const char *bytes)
{
	struct arg few[ARGS_ON_STACK];
	struct call call = { .net = n, .conn = c, .argc = c->reader.argc, .now_ms = n->wall_ms };

	conn_before(n, c);
	call.argv = arguments(n, c, bytes, few);
	n->running = c;
	if (call.argv)
		command_run(&call);
	else
		out_error(call_out(&call), "-OOM no memory for a command of %u arguments", call.argc);
	c->alone = call.later;
	if (call.later) {
		n->muting = false;
		n->running = NULL;
		return false;
	}
	count_one(&n->shown.counts.commands, 1);
	conn_after(n, c);
	if (__builtin_expect(n->timed.armed, 0) && call.command)
		took_begin(n, c, command_index(call.command));
	if (__builtin_expect(n->own.len || n->own.failed, 0))
		pubsub_settle(n);
	else
		n->running = NULL;
	return true;
}

static void protocol_error(struct net *n, struct conn *c)
{
	struct call call = { .net = n, .conn = c };

	conn_before(n, c);
	out_error(call_out(&call), "%s", c->reader.why);
	c->session.closing = true;
	conn_after(n, c);
}

size_t resp_run(struct net *n, struct conn *c, char *bytes, size_t len, bool *cut)
{
	size_t used = 0;

	*cut = false;
	while (used < len && conn_may_run(n, c)) {
		const struct resp_limits *limits = c->session.role == SESSION_NOBODY ? &n->strict
										      : &n->limits;

		/* One that had to wait was read already; its arguments may not be read twice. */
		switch (c->alone ? RESP_COMMAND : resp_read(&c->reader, bytes + used, len - used, limits)) {
		case RESP_COMMAND:
			n->more_input = c->reader.at < len - used;
			if (!command(n, c, bytes + used)) {
				*cut = true;
				return used;
			}
			used += resp_next(&c->reader);
			break;
		case RESP_NOTHING:
			used += resp_next(&c->reader);
			break;
		case RESP_MORE:
			return used;
		case RESP_BAD:
			protocol_error(n, c);
			return len;
		}
	}
	*cut = used < len;
	return used;
}
