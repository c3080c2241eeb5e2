/* net/net.c - the stages of a worker's pass, and where it sleeps. */
#include "net/hand.h"
#include "net/lend.h"
#include "net/move.h"

#include "core/mem.h"
#include "net/command.h"

#include <string.h>

#define SWEEP_MS 100
#define IDLE_SWEEP_MS 1000         /* when nobody is there but idle clients of HTTP */
#define RETRY_MS 1

static struct io *io_new(struct server *s, struct net *n)
{
	return s->uring ? io_uring_new(&conn_handlers, n) : io_epoll_new(&conn_handlers, n);
}

static bool listen_to(struct net *n, const struct entrance *l, uint32_t kind)
{
	int fd = l->tcp ? l->tcp[n->worker] : -1;

	return (fd < 0 || n->io->ops->listen(n->io, fd, kind)) &&
	       (l->local < 0 || n->io->ops->listen(n->io, l->local, kind | IO_LOCAL));
}

static bool listen_all(struct server *s, struct net *n)
{
	return listen_to(n, &s->resp, 0) && listen_to(n, &s->http, IO_HTTP);
}

bool net_open(struct server *s, uint32_t worker)
{
	struct net *n = mem_aligned(CACHE_LINE, sizeof *n);

	if (!n)
		return false;
	n->server = s;
	n->worker = worker;
	change_open(n);
	pthread_mutex_init(&n->roll, NULL);
	n->awaits = s->door.awaits(s->door.box, worker);
	n->epoch = s->door.epoch(s->door.box, worker);
	n->traces.spans = s->door.spans(s->door.box, worker);
	net_trace_every(n, n->o.trace_sample);
	store_relaxed(n->awaits, UINT64_MAX);
	store_relaxed(&n->shown.idle, 1);
	n->now_ms = s->door.now_ns(s->door.box) / 1000000u;
	n->sweep_ms = UINT64_MAX;
	n->calls = mem_zalloc(command_total() * sizeof *n->calls);
	n->http_calls = mem_zalloc((http_route_total(s->routes) + 1) * sizeof *n->http_calls);
	n->io = n->calls && n->http_calls && took_open(n) && slots_open(n) && conns_open(n) ? io_new(s, n) : NULL;
	if (!n->io || !listen_all(s, n)) {
		net_close(n);
		return false;
	}
	n->wall_ms = s->door.wall_ms(s->door.box);
	uint64_t never = 0;

	(void)cas_relaxed(&s->started_ms, &never, n->wall_ms);
	store_release(&s->nets[worker], n);
	return true;
}

void net_close(struct net *n)
{
	if (n->io)
		n->io->ops->close(n->io);
	n->epoch = NULL;                 /* no thread runs any more */
	conns_close(n);
	slots_close(n);
	for (struct late *l = load_relaxed(&n->late), *next; l; l = next) {
		next = l->next;
		if (l->token == 0 && l->status == LATE_MOVE)
			move_lost(n, l);
		else
			mem_free(l, sizeof *l + l->len);
	}
	out_close(&n->scratch);
	out_close(&n->own);
	out_close(&n->event);
	out_close(&n->matched);
	lend_free(n);
	mem_free(n->argv, n->argv_room * sizeof *n->argv);
	mem_free(n->calls, command_total() * sizeof *n->calls);
	mem_free(n->http_calls, (http_route_total(n->server->routes) + 1) * sizeof *n->http_calls);
	took_close(n);
	pthread_mutex_destroy(&n->roll);
	mem_free(n, sizeof *n);
}

static uint32_t retry_stalled(struct net *n)
{
	uint32_t done = 0;

	if (n->now_ms < n->retry_ms)
		return 0;
	n->retry_ms = n->now_ms + RETRY_MS;
	for (uint32_t i = 0; n->stalled && i < n->conn_room; i++) {
		struct conn *c = n->conns[i];

		if (!c || !(c->flags & CONN_STALLED))
			continue;
		done += request_retry(n, c);
		if (!(c->flags & CONN_STALLED))
			conn_may_go_on(n, c);
	}
	return done;
}

static void stop_if_told(struct net *n)
{
	if (load_relaxed(&n->server->stopping) && !n->unlistened) {
		n->unlistened = true;
		n->stop_ms = n->now_ms;
		n->io->ops->unlisten(n->io);
		conn_sweep(n);                   /* no further command of anybody */
	}
}

uint32_t net_read(struct net *n)
{
	const struct net_door *door = &n->server->door;
	uint32_t work;

	took_pass(n, door->now_ns(door->box));
	n->now_ms = n->now_ns / 1000000u;
	n->wall_ms = door->wall_ms(door->box);
	if (n->http_conns)
		http_clock(n->wall_ms);
	stop_if_told(n);
	n->width = load_relaxed(&n->server->crew.width);
	if (n->now_ms >= load_relaxed(&n->server->crew.look_ms))
		crew_look(n->server, n->now_ms);
	if (__builtin_expect(load_relaxed(&n->server->changes) != n->changes, 0))
		change_take(n);
	work = slot_take_late(n);
	if (n->backlog_count)
		work += conn_run_backlog(n);
	work += n->io->ops->poll(n->io);
	request_deliver(n);
	if (n->handing_count)
		hand_now(n);
	if (__builtin_expect(n->stalled != 0, 0)) {
		if (n->now_ms >= n->sweep_ms)    /* a last try: what never went in was refused, it did not time out */
			n->retry_ms = 0;
		work += retry_stalled(n);
	}
	if (n->now_ms >= n->sweep_ms)
		conn_sweep(n);
	return work;
}

/* A look at time-outs is needed as long as anybody waits for anything, or somebody may be idle too long. */
static void plan_sweep(struct net *n, bool idle)
{
	uint64_t at = n->now_ms + SWEEP_MS;

	if (idle && !(n->o.idle_ms && load_relaxed(&n->shown.connections)))
		at = n->http_conns > n->streams ? n->now_ms + IDLE_SWEEP_MS : UINT64_MAX;
	if (at < n->sweep_ms)
		n->sweep_ms = at;
}

uint32_t net_write(struct net *n)
{
	uint32_t work = conn_release_gated(n) ? 1 : 0;
	bool idle;

	if (n->timed.due != UINT64_MAX)
		took_durable(n);
	if (n->dirty_count)
		work += conn_flush_dirty(n);
	if (n->lending.waiting)
		lend_finish(n);
	if (__builtin_expect(n->traces.count != 0, 0))
		net_trace_left(n);
	if (__builtin_expect(n->noted != NULL, 0))
		move_noted(n);
	if (n->dead)
		conn_bury(n);
	idle = n->gated_count == 0 && n->dirty_count == 0 && n->partial == 0 && n->sending == 0;
	store_relaxed(&n->shown.idle, idle && n->slots_waiting == n->orphans);
	/* Who waits for events has a time of its own: slot_expire. */
	plan_sweep(n, idle && n->slots_waiting == n->orphans + n->readers && !n->unlistened && !n->starved);
	return work;
}

void net_submit(struct net *n)
{
	(void)n->io->ops->poll(n->io);
	request_deliver(n);
	if (n->handing_count)
		hand_now(n);
}

bool net_pending(struct net *n)
{
	return load_seq_cst(&n->late) || n->backlog_count || n->dirty_count || n->dead ||
	       load_relaxed(n->awaits) <= load_seq_cst(n->server->door.durable) ||
	       (load_relaxed(&n->server->stopping) && !n->unlistened) ||
	       load_seq_cst(&n->server->changes) != n->changes;
}

bool net_ready(struct net *n)
{
	return n->io->ops->ready(n->io) || net_pending(n);
}

void net_wait(struct net *n, uint64_t timeout_ns)
{
	uint64_t now = n->server->door.now_ns(n->server->door.box), until = n->sweep_ms;

	if (n->stalled && n->retry_ms < until)
		until = n->retry_ms;
	if (until != UINT64_MAX) {
		uint64_t ns = until * 1000000u > now ? until * 1000000u - now : 0;

		timeout_ns = ns < timeout_ns ? ns : timeout_ns;
	}
	lend_open(n);
	n->io->ops->wait(n->io, timeout_ns);
	lend_close(n);
	count_one(&n->shown.asleep_ns, n->server->door.now_ns(n->server->door.box) - now);
}

void net_wake(struct net *n)
{
	io_wake(n->io);
}
