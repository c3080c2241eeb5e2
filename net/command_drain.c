/* net/command_drain.c - DRAIN: the server finishes what it has, and ends. */
#include "net/command.h"
#include "net/session.h"

enum { DEADLINE_MS = 30000, DEADLINE_MOST_MS = 86400000 };

static void tell_status(struct call *c)
{
	struct out *o = call_out(c);
	noh_drain_state state;

	if (noh_get_drain(call_box(c), &state) != NOH_OK) {
		out_status(o, NOH_ESTOPPED);
		return;
	}
	out_map(o, 4);
	out_text(o, "draining");
	out_bool(o, state.draining);
	out_text(o, "actors");
	out_int(o, (int64_t)state.actors);
	out_text(o, "messages");
	out_int(o, (int64_t)state.messages);
	out_text(o, "left_ms");
	out_int(o, state.left_ms);
}

static void format(struct out *o, const struct reply_part *part, uint32_t n, struct tag tag)
{
	(void)n, (void)tag;
	if (part->status == NOH_OK)
		out_simple(o, "OK");
	else if (part->status == NOH_REFUSED)
		out_error(o, "-DRAINTIMEOUT %.*s", (int)(part->len < 400 ? part->len : 400), (const char *)part->body);
	else
		out_part_status(o, part);
}

void cmd_drain(struct call *c)
{
	uint64_t deadline = DEADLINE_MS;
	bool waits = true;

	if (c->argc == 2 && arg_is(&c->argv[1], "status")) {
		tell_status(c);
		return;
	}
	for (uint32_t i = 1; i < c->argc; i++) {
		if (arg_is(&c->argv[i], "nowait")) {
			waits = false;
		} else if (arg_is(&c->argv[i], "deadline") && i + 1 < c->argc) {
			if (!arg_uint(&c->argv[++i], &deadline) || deadline < 1 || deadline > DEADLINE_MOST_MS) {
				out_error(call_out(c), "DEADLINE is 1 to %d milliseconds", DEADLINE_MOST_MS);
				return;
			}
		} else {
			out_syntax_error(call_out(c));
			return;
		}
	}
	call_audit(c, "drain", NULL, NULL);
	if (!net_options(c->net)->may_shutdown ||
	    !call_drain(c, (uint32_t)deadline, waits ? format : NULL, (struct tag){ 0 }))
		out_error(call_out(c), "this server does not end by command; send it SIGTERM");
	else if (!waits)
		out_simple(call_out(c), "OK");
}
