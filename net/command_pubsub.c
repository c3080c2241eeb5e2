/* net/command_pubsub.c - SUBSCRIBE, PUBLISH and their like. */
#include "net/command.h"

#include "core/glob.h"
#include "net/session.h"

static bool name_ok(struct call *c, const char *what, const struct arg *name)
{
	if (name->len <= NOH_CHANNEL_MAX)
		return true;
	out_error(call_out(c), "a %s has at most %d bytes, this one has %u", what, NOH_CHANNEL_MAX, name->len);
	return false;
}

/* All of them, or none: the names and the limit are looked at first. */
static void subscribe(struct call *c, bool pattern)
{
	struct session *s = call_session(c);
	uint32_t most = net_options(c->net)->max_subscriptions, have = s->channels + s->patterns;

	for (uint32_t i = 1; i < c->argc; i++)
		if (!name_ok(c, pattern ? "pattern" : "channel's name", &c->argv[i]))
			return;
	if (c->argc - 1 > most || have > most - (c->argc - 1)) {
		out_error(call_out(c), "too many subscriptions: a connection can have %u, this one has %u and asks for %u "
			  "more; unsubscribe, or use another connection", most, have, c->argc - 1);
		return;
	}
	for (uint32_t i = 1; i < c->argc; i++)
		if (!net_subscribe(c, pattern, &c->argv[i])) {
			out_error(call_out(c), "-OOM no memory for another subscription");
			break;
		}
	net_client_changed(c->conn);
}

void cmd_subscribe(struct call *c)
{
	subscribe(c, false);
}

void cmd_psubscribe(struct call *c)
{
	subscribe(c, true);
}

static void unsubscribe(struct call *c, bool pattern)
{
	if (c->argc == 1)
		net_unsubscribe(c, pattern, NULL);
	for (uint32_t i = 1; i < c->argc; i++)
		net_unsubscribe(c, pattern, &c->argv[i]);
	net_client_changed(c->conn);
}

void cmd_unsubscribe(struct call *c)
{
	unsubscribe(c, false);
}

void cmd_punsubscribe(struct call *c)
{
	unsubscribe(c, true);
}

static void format_published(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	if (!out_failed(o, parts, n, 0))
		out_int(o, (int64_t)tag.a + 1);
}

void cmd_publish(struct call *c)
{
	char room[NOH_CHANNEL_MAX];
	struct request r = { .op = REQUEST_SEND, .type = TYPE_IN_ADDRESS, .body = c->argv[2].at, .len = c->argv[2].len };
	uint64_t heard;

	if (!name_ok(c, "channel's name", &c->argv[1]))
		return;
	if (net_draining(c->net)) {
		out_status(call_out(c), NOH_ESTOPPED);
		return;
	}
	heard = net_publish(c, &c->argv[1], &c->argv[2]);
	if (net_personal(c, &c->argv[1], room, &r))
		call_actors(c, &r, 1, format_published, (struct tag){ .a = heard });
	else
		out_int(call_out(c), (int64_t)heard);
}

/* ── who listens ──────────────────────────────────────────────────────────────────────────────── */
struct listing {
	const struct arg *pattern;         /* NULL: all of them */
	struct out        names;
	size_t            n;
};

static bool list_channel(void *user, const char *name, uint32_t len)
{
	struct listing *l = user;

	if (l->pattern && !glob_match(l->pattern->at, l->pattern->len, name, len))
		return true;
	out_bulk(&l->names, name, len);
	l->n++;
	return !l->names.failed;
}

void cmd_pubsub_channels(struct call *c)
{
	struct listing l = { .pattern = c->argc > 2 ? &c->argv[2] : NULL };
	struct out *o = call_out(c);

	if (c->argc > 3) {
		out_arity_error(o, c->command);
		return;
	}
	if (l.pattern && !call_pattern(c, l.pattern))
		return;
	net_each_channel(c->net, list_channel, &l);
	if (l.names.failed) {
		out_error(o, "-OOM no memory for a list of %zu channels", l.n);
	} else {
		out_array(o, l.n);
		out_bytes(o, l.names.bytes, l.names.len);
	}
	out_close(&l.names);
}

void cmd_pubsub_numsub(struct call *c)
{
	struct out *o = call_out(c);

	out_array(o, (c->argc - 2) * (size_t)2);
	for (uint32_t i = 2; i < c->argc; i++) {
		out_bulk(o, c->argv[i].at, c->argv[i].len);
		out_int(o, (int64_t)net_listeners(c->net, &c->argv[i]));
	}
}

void cmd_pubsub_numpat(struct call *c)
{
	out_int(call_out(c), (int64_t)net_topics(c->net, true));
}

void cmd_pubsub_help(struct call *c)
{
	out_help(call_out(c), c->command);
}
