/* net/option.c - the server's options: their defaults, and those that change while it runs.
 *
 * Each worker has its own copy, so reading one costs nothing. A change is told to every worker as a late
 * message, and is in force there when that is read.
 */
#include "net/net.h"

#include "net/command.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static void set_default(uint32_t *value, uint32_t otherwise)
{
	if (*value == 0)
		*value = otherwise;
}

void option_defaults(noh_listen_options *o)
{
	if (!o->bind)
		o->bind = "127.0.0.1";
	if (!o->resp_port)
		o->resp_port = 7411;
	set_default(&o->max_connections, 10000);
	set_default(&o->max_args, 65536);
	set_default(&o->max_arg_bytes, 1u << 20);
	set_default(&o->max_command_bytes, 16u << 20);
	set_default(&o->max_inline_bytes, 64u << 10);
	set_default(&o->max_pipeline, 4096);
	set_default(&o->max_output_bytes, 16u << 20);
	set_default(&o->max_subscriptions, 10000);
	set_default(&o->max_subscriber_bytes, 8u << 20);
	set_default(&o->timeout_ms, 30000);
	set_default(&o->call_ms, 30000);
	set_default(&o->stop_ms, 1000);
	set_default(&o->http_max_header_bytes, 16u << 10);
	set_default(&o->http_max_headers, 100);
	set_default(&o->http_max_body_bytes, 2u << 20);
	set_default(&o->http_header_ms, 10000);
	set_default(&o->http_body_ms, 20000);
	set_default(&o->http_min_rate, 1024);
	set_default(&o->http_idle_ms, 60000);
	set_default(&o->auth_failures, 30);
}

void option_limits(struct net *n)
{
	n->limits = (struct resp_limits){ n->o.max_args, n->o.max_arg_bytes, n->o.max_command_bytes,
					  n->o.max_inline_bytes };
	n->http_limits = (struct http_limits){ n->o.http_max_header_bytes, n->o.http_max_headers,
					       n->o.http_max_body_bytes };
	n->strict = (struct resp_limits){ 10, 16384, 65536, 16384 };
}

static const struct { const char *name; size_t at; } changeable[] = {
	{ "maxclients", offsetof(noh_listen_options, max_connections) },
	{ "proto-max-bulk-len", offsetof(noh_listen_options, max_arg_bytes) },
	{ "timeout", offsetof(noh_listen_options, idle_ms) },
	{ "noh-auth-failures", offsetof(noh_listen_options, auth_failures) },
	{ "noh-call-ms", offsetof(noh_listen_options, call_ms) },
	{ "noh-client-timeout-ms", offsetof(noh_listen_options, timeout_ms) },
	{ "noh-http-body-ms", offsetof(noh_listen_options, http_body_ms) },
	{ "noh-http-header-ms", offsetof(noh_listen_options, http_header_ms) },
	{ "noh-http-idle-ms", offsetof(noh_listen_options, http_idle_ms) },
	{ "noh-http-max-body-bytes", offsetof(noh_listen_options, http_max_body_bytes) },
	{ "noh-http-max-header-bytes", offsetof(noh_listen_options, http_max_header_bytes) },
	{ "noh-http-max-headers", offsetof(noh_listen_options, http_max_headers) },
	{ "noh-http-min-rate", offsetof(noh_listen_options, http_min_rate) },
	{ "noh-max-address-connections", offsetof(noh_listen_options, max_address_connections) },
	{ "noh-max-args", offsetof(noh_listen_options, max_args) },
	{ "noh-max-command-bytes", offsetof(noh_listen_options, max_command_bytes) },
	{ "noh-max-inline-bytes", offsetof(noh_listen_options, max_inline_bytes) },
	{ "noh-max-output-bytes", offsetof(noh_listen_options, max_output_bytes) },
	{ "noh-max-pipeline", offsetof(noh_listen_options, max_pipeline) },
	{ "noh-max-subscriber-bytes", offsetof(noh_listen_options, max_subscriber_bytes) },
	{ "noh-max-subscriptions", offsetof(noh_listen_options, max_subscriptions) },
	{ "noh-stop-ms", offsetof(noh_listen_options, stop_ms) },
	{ "noh-trace-sample", offsetof(noh_listen_options, trace_sample) },
};
enum { CHANGEABLE = sizeof changeable / sizeof changeable[0] };
static_assert(CHANGEABLE <= OPTIONS_MAX, "server.changed_at has a place for each");

static uint32_t value_of(const noh_listen_options *o, uint32_t which)
{
	uint32_t value;

	memcpy(&value, (const char *)o + changeable[which].at, sizeof value);
	return value;
}

static void set_option(struct net *n, uint32_t which, uint32_t value)
{
	memcpy((char *)&n->o + changeable[which].at, &value, sizeof value);
	option_defaults(&n->o);          /* 0 means the default here as well */
	option_limits(n);
	net_trace_every(n, n->o.trace_sample);
	n->sweep_ms = 0;
}

/* fresh has its defaults. */
void option_compare(struct server *s, const noh_listen_options *fresh, uint32_t change)
{
	for (uint32_t i = 0; i < CHANGEABLE; i++) {
		uint32_t value = value_of(fresh, i);

		if (value == value_of(&s->o, i))
			continue;
		memcpy((char *)&s->o + changeable[i].at, &value, sizeof value);
		s->changed_at[i] = change;
	}
	s->o.info = fresh->info;
}

void option_take(struct net *n, uint32_t since)
{
	for (uint32_t i = 0; i < CHANGEABLE; i++)
		if ((int32_t)(n->server->changed_at[i] - since) > 0)
			set_option(n, i, value_of(&n->server->o, i));
	n->o.info = n->server->o.info;
}

static void reset_stats(struct net *n)
{
	struct net_counts *c = &n->shown.counts;

	for (uint32_t i = 0; i < command_total(); i++)
		store_relaxed(&n->calls[i], 0);
	for (uint32_t i = 0; i < http_route_total(n->server->routes); i++)
		store_relaxed(&n->http_calls[i], 0);
	store_relaxed(&c->commands, 0);
	store_relaxed(&c->errors, 0);
	store_relaxed(&c->refused, 0);
	store_relaxed(&c->refused_address, 0);
	store_relaxed(&c->logins_failed, 0);
	store_relaxed(&c->logins_held, 0);
	store_relaxed(&c->closed_slow, 0);
	store_relaxed(&c->bytes_in, 0);
	store_relaxed(&c->bytes_out, 0);
	store_relaxed(&c->pushed, 0);
	store_relaxed(&n->pushes_dropped, 0);
}

void option_late(struct net *n, const struct late *l)
{
	switch (l->status & 0xff) {
	case LATE_KILL:
		roll_kill(n, l->due);
		break;
	case LATE_OPTION:
		set_option(n, (uint32_t)l->status >> 8, (uint32_t)l->due);
		break;
	case LATE_RESET:
		reset_stats(n);
		break;
	case LATE_EVENT:
		pubsub_late(n, l);
		break;
	case LATE_FEED:
		feed_late(n, l);
		break;
	}
}

static void tell_others(struct net *self, int what, uint64_t value)
{
	for (uint32_t i = 0; i < self->server->workers; i++) {
		struct net *n = load_acquire(&self->server->nets[i]);

		if (n && n != self && net_answer_late(n, 0, value, what, NULL, 0))
			net_wake(n);
	}
}

bool net_set_option(struct net *n, const char *name, uint64_t value)
{
	for (uint32_t i = 0; i < CHANGEABLE; i++) {
		if (strcmp(name, changeable[i].name) != 0)
			continue;
		if (value > UINT32_MAX)
			return false;
		set_option(n, i, (uint32_t)value);
		tell_others(n, LATE_OPTION | (int)(i << 8), value);
		return true;
	}
	return false;
}

void net_reset_stats(struct net *n)
{
	reset_stats(n);
	tell_others(n, LATE_RESET, 0);
}
