/* net/conn_time.c - clients that take too long: to say something, to take something, or to say anything at all. */
#include "net/net.h"

#define DRAIN_MS 2000              /* to hear out who was refused in the middle of its words */
#define GRACE_MS 250               /* while it stops: what clients of HTTP say meanwhile is answered */

/* A client of HTTP that says more and takes nothing is no better than one that says nothing; what it has to say has times
 * of its own (http_is_late). */
static bool too_slow(const struct net *n, const struct conn *c)
{
	bool http = c->flags & CONN_HTTP;
	uint64_t patience = n->o.timeout_ms;

	return (c->partial_ms && !http && n->now_ms - c->partial_ms > patience) ||
	       (c->socket.sending && n->now_ms - c->took_ms > patience && (http || n->now_ms - c->active_ms > patience));
}

/* While the box stops: all that it asked is answered, and it takes none of it. */
static bool is_deaf(const struct net *n, const struct conn *c)
{
	uint64_t since = c->took_ms > n->stop_ms ? c->took_ms : n->stop_ms;

	return n->unlistened && c->socket.sending && !c->first && n->now_ms - since > n->o.stop_ms;
}

static uint64_t idle_ms(const struct net *n, const struct conn *c)
{
	if (!(c->flags & CONN_HTTP))
		return n->o.idle_ms;
	if (c->partial_ms)
		return 0;
	return c->http.spoken ? n->o.http_idle_ms : n->o.http_header_ms;
}

/* Nothing was said by either side for so long; who waits for an answer, or for events, is not idle. */
static bool is_idle(const struct net *n, const struct conn *c)
{
	uint64_t last = c->took_ms > c->active_ms ? c->took_ms : c->active_ms, patience = idle_ms(n, c);

	return patience && !c->first && !c->out.len && !c->socket.sending && !c->subs && !c->feed &&
	       n->now_ms - last > patience;
}

static void time_out(struct net *n, struct conn *c)
{
	if (c->flags & CONN_DRAINING) {
		if (n->now_ms - c->partial_ms > (n->unlistened ? GRACE_MS : DRAIN_MS))
			conn_end(n, c);
	} else if (too_slow(n, c) || is_deaf(n, c)) {
		count_one(&n->shown.counts.closed_slow, 1);
		conn_end(n, c);
	} else if ((c->flags & CONN_HTTP) && http_is_late(n, c)) {
		count_one(&n->shown.counts.closed_slow, 1);
		http_too_late(n, c);
	} else if (conn_is_done(c)) {
		conn_finish(n, c);
	} else if (is_idle(n, c)) {
		conn_end(n, c);
	}
}

void conn_sweep(struct net *n)
{
	bool stopping = load_relaxed(&n->server->stopping);

	n->sweep_ms = UINT64_MAX;
	slot_expire_orphans(n);
	if (n->starved) {
		n->starved = false;
		n->io->ops->relisten(n->io);
	}
	for (uint32_t i = 0; i < n->conn_room; i++) {
		struct conn *c = n->conns[i];

		if (!c || (c->flags & CONN_DEAD))
			continue;
		slot_expire(n, c);
		/* What a client of HTTP says in a moment like this is answered: by 503. */
		if (stopping && (!(c->flags & CONN_HTTP) || n->now_ms - n->stop_ms > GRACE_MS))
			c->flags |= CONN_ENDING;
		time_out(n, c);
	}
}
