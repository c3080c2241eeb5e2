/* net/took.c - how long requests take, from the pass that read them until their reply may leave: samples.
 *
 * One request of a worker at a time, and at most one a pass: the first. So it costs one look at the clock a pass, and
 * of a server with little to do every request is measured. Its way is followed: it waits in a slot (or was answered at
 * once), is written, waits for the disk, and may leave.
 */
#include "net/net.h"

#include "core/mem.h"
#include "net/command.h"

#define NOT_WRITTEN UINT64_MAX

bool took_open(struct net *n)
{
	n->took = mem_zalloc(took_total(n->server) * sizeof *n->took);
	n->timed.due = NOT_WRITTEN;
	return n->took != NULL;
}

void took_close(struct net *n)
{
	mem_free(n->took, took_total(n->server) * sizeof *n->took);
}

uint32_t took_total(const struct server *s)
{
	return command_total() + http_route_total(s->routes);
}

void took_pass(struct net *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	n->timed.armed = n->timed.into == NULL;
}

static void end(struct net *n)
{
	const struct net_door *door = &n->server->door;
	uint64_t ns = door->now_ns(door->box) - n->timed.since_ns;

	histogram_add(n->timed.into, &histogram_latency, ns);
	if (n->timed.type)
		door->answered(door->box, n->worker, n->timed.type, ns);
	n->timed.into = NULL;
	n->timed.due = NOT_WRITTEN;
}

void took_written(struct net *n, struct conn *c)
{
	n->timed.slot = 0;
	n->timed.due = c->mark_count ? c->marks[c->mark_count - 1].due : 0;
	if (n->timed.due == 0)
		end(n);
}

void took_begin(struct net *n, struct conn *c, uint32_t what)
{
	n->timed.armed = false;
	n->timed.into = &n->took[what];
	n->timed.since_ns = n->now_ns;
	n->timed.type = NULL;
	if (c->last && c->last != n->last_before)
		n->timed.slot = c->last;
	else
		took_written(n, c);
}

void took_lost(struct net *n)
{
	n->timed.slot = 0;
	n->timed.into = NULL;
}

void took_durable(struct net *n)
{
	if (n->timed.due <= load_acquire(n->server->door.durable))
		end(n);
}

void server_took(struct server *s, uint32_t what, struct histogram_sum *sum)
{
	for (uint32_t i = 0; i < s->workers; i++) {
		struct net *n = load_acquire(&s->nets[i]);

		if (n)
			histogram_collect(sum, &n->took[what]);
	}
}

uint64_t server_calls(struct server *s, uint32_t what)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->workers; i++) {
		struct net *n = load_acquire(&s->nets[i]);

		if (n)
			sum += load_relaxed(what < command_total() ? &n->calls[what] : &n->http_calls[what - command_total()]);
	}
	return sum;
}
