/* net/conn.c - connections: from accept to end, and their commands in between.
 *
 * A command is run straight from the buffer it was received in, where it is there whole; else the rest waits
 * in the connection's own. A connection is not read further while it has too many commands unanswered, too
 * much output not taken, or a request that its actor has no room for: the client feels it, nobody else does.
 */
#include "net/lend.h"
#include "net/move.h"

#include "core/mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPARE_CONNECTIONS 32

static struct conn *conn_of(struct io_socket *s)
{
	return (struct conn *)(void *)((char *)s - offsetof(struct conn, socket));
}

struct conn *conn_at(struct net *n, uint32_t number, uint16_t gen)
{
	struct conn *c = number < n->conn_room ? n->conns[number] : NULL;

	return c && c->socket.gen == gen && !(c->flags & CONN_DEAD) ? c : NULL;
}

/* ── coming and going ── */

static bool grow(struct net *n)
{
	uint32_t room = n->conn_room ? n->conn_room * 2 : 64;
	size_t each = sizeof *n->conns + 4 * sizeof(uint32_t) + sizeof *n->gens;
	char *block = mem_zalloc(room * each), *at = block;
	struct conn **conns = (struct conn **)(void *)block;
	uint32_t *lists[4];

	if (!block)
		return false;
	at += room * sizeof *conns;
	for (int i = 0; i < 4; i++, at += room * sizeof(uint32_t))
		lists[i] = (uint32_t *)(void *)at;
	if (n->conn_room) {
		memcpy(conns, n->conns, n->conn_room * sizeof *conns);
		memcpy(lists[0], n->dirty, n->dirty_count * sizeof(uint32_t));
		memcpy(lists[1], n->gated, n->gated_count * sizeof(uint32_t));
		memcpy(lists[2], n->backlog, n->backlog_count * sizeof(uint32_t));
		memcpy(lists[3], n->free, n->free_count * sizeof(uint32_t));
		memcpy(at, n->gens, n->conn_room * sizeof *n->gens);
	}
	pthread_mutex_lock(&n->roll);            /* who lists clients looks at conns */
	mem_free(n->conns, n->conn_room * each);
	n->conns = conns;
	n->dirty = lists[0];
	n->gated = lists[1];
	n->backlog = lists[2];
	n->free = lists[3];
	n->gens = (uint16_t *)(void *)at;
	for (uint32_t i = room; i-- > n->conn_room; )
		n->free[n->free_count++] = i;
	n->conn_room = room;
	pthread_mutex_unlock(&n->roll);
	return true;
}

bool conns_open(struct net *n)
{
	return grow(n);
}

static void refuse(struct net *n, int fd, uint32_t kind, const char *why)
{
	static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
				   "Content-Length: 0\r\n\r\n";

	if (kind & IO_HTTP)
		why = busy;
	count_one(&n->shown.counts.refused, 1);
	(void)!send(fd, why, strlen(why), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd);
}

static void open_http(struct conn *c)
{
	c->flags |= CONN_HTTP;
	c->session.proto = HTTP_PROTO;
	c->http = (struct http_conn){ .spoken = false };
	http_open(&c->http.reader);
}

bool conn_enter(struct net *n, struct conn *c)
{
	if (!n->free_count && !grow(n))
		return false;
	c->net = n;
	c->socket.number = n->free[--n->free_count];
	c->socket.gen = n->gens[c->socket.number];
	c->session.calls = n->calls;
	if (c->flags & CONN_HTTP) {
		n->http_conns++;
		count_one(&n->shown.http, 1);
		http_clock(n->wall_ms);
	}
	count_one(&n->shown.connections, 1);
	pthread_mutex_lock(&n->roll);
	n->conns[c->socket.number] = c;
	pthread_mutex_unlock(&n->roll);
	return true;
}

void conn_leave(struct net *n, struct conn *c)
{
	uint32_t number = c->socket.number;

	pthread_mutex_lock(&n->roll);
	n->conns[number] = NULL;
	pthread_mutex_unlock(&n->roll);
	n->gens[number]++;
	n->free[n->free_count++] = number;
	if (c->flags & CONN_HTTP) {
		n->http_conns--;
		count_one(&n->shown.http, UINT64_MAX);
	}
	count_one(&n->shown.connections, UINT64_MAX);
}

static void free_conn(struct conn *c)
{
	out_close(&c->out);
	out_close(&c->flying);
	if (!(c->flags & CONN_HTTP))
		resp_close(&c->reader);
	mem_free(c->marks, c->mark_room * sizeof *c->marks);
	mem_free(c->in, c->in_room);
	mem_free(c->shown, sizeof *c->shown);
	mem_free(c, sizeof *c);
}

void conn_lost(struct net *n, struct conn *c)
{
	(void)close(c->socket.fd);
	source_leave(&n->server->sources, c->source, n->now_ms);
	free_conn(c);
	count_one(&n->shown.counts.closed, 1);
	sub_relaxed(&n->server->connections, 1);
}

static struct conn *make(struct net *n, int fd, uint32_t kind)
{
	struct server *s = n->server;
	struct conn *c = mem_zalloc(sizeof *c);
	struct client *shown = mem_zalloc(sizeof *shown);

	if (!c || !shown) {
		mem_free(c, sizeof *c);
		mem_free(shown, sizeof *shown);
		return NULL;
	}
	c->socket.fd = fd;
	c->flags = kind & IO_LOCAL ? CONN_LOCAL : 0;
	c->active_ms = c->took_ms = n->now_ms;
	c->shown = shown;
	session_open(&c->session, add_relaxed(&s->next_id, 1) + 1,
		     server_is_guarded(s) ? SESSION_NOBODY : NOH_ADMIN, n->wall_ms);
	if (kind & IO_HTTP)
		open_http(c);
	else
		resp_open(&c->reader);
	if (!conn_enter(n, c)) {
		free_conn(c);
		return NULL;
	}
	net_client_changed(c);
	return c;
}

static void on_released(void *user, struct io_socket *s)
{
	struct net *n = user;
	struct conn *c = conn_of(s);

	c->next_dead = n->dead;
	n->dead = c;
}

void conn_begin(struct net *n, struct conn *c)
{
	if (n->io->ops->begin(n->io, &c->socket))
		return;
	c->flags |= CONN_DEAD;           /* no memory: it was never begun, so there is nothing to end */
	c->socket.closing = c->socket.released = true;
	on_released(n, &c->socket);
}

/* False: too many come from there. */
static bool watch(struct net *n, int fd, uint32_t kind, struct source **from)
{
	uint8_t address[SOURCE_ADDRESS];
	bool full = false;

	*from = NULL;
	if (!(kind & IO_LOCAL) && source_address(fd, address))
		*from = source_enter(&n->server->sources, address, n->o.max_address_connections, n->now_ms, &full);
	return !full;
}

static void on_accepted(void *user, int fd, uint32_t kind)
{
	struct net *n = user;
	struct server *s = n->server;
	struct source *from;
	struct conn *c;
	int one = 1;

	if (load_relaxed(&s->stopping)) {
		refuse(n, fd, kind, "-ERR the server is stopping\r\n");
		return;
	}
	/* Whoever cares for the server gets in by the Unix socket when all others are too many. */
	if (add_relaxed(&s->connections, 1) >= n->o.max_connections + (kind & IO_LOCAL ? SPARE_CONNECTIONS : 0)) {
		sub_relaxed(&s->connections, 1);
		refuse(n, fd, kind, "-ERR max number of clients reached\r\n");
		return;
	}
	if (!watch(n, fd, kind, &from)) {
		sub_relaxed(&s->connections, 1);
		count_one(&n->shown.counts.refused_address, 1);
		refuse(n, fd, kind, "-ERR max number of clients from your address reached\r\n");
		return;
	}
	if (!(kind & IO_LOCAL))
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	c = make(n, fd, kind);
	if (!c) {
		source_leave(&s->sources, from, n->now_ms);
		sub_relaxed(&s->connections, 1);
		refuse(n, fd, kind, "-OOM no memory for another client\r\n");
		return;
	}
	c->source = from;
	count_one(&n->shown.counts.accepted, 1);
	conn_begin(n, c);
}

void conn_end(struct net *n, struct conn *c)
{
	if (c->flags & CONN_DEAD)
		return;
	c->flags |= CONN_DEAD;           /* first: answers to what it asked find nobody */
	slot_abandon(n, c);
	n->io->ops->end(n->io, &c->socket);
}

static void forget(uint32_t *list, uint32_t *count, uint32_t number)
{
	for (uint32_t i = 0; i < *count; i++)
		if (list[i] == number) {
			memmove(list + i, list + i + 1, (*count - i - 1) * sizeof *list);
			(*count)--;
			return;
		}
}

static void bury(struct net *n, struct conn *c)
{
	uint32_t number = c->socket.number;

	n->partial -= c->partial_ms != 0;
	if (c->subs)
		pubsub_forget(n, c);
	if (c->feed) {
		feed_leave(n, c->feed);
		n->streams--;
	}
	if (c->flags & CONN_DIRTY)
		forget(n->dirty, &n->dirty_count, number);
	if (c->flags & CONN_GATED)
		forget(n->gated, &n->gated_count, number);
	if (c->flags & CONN_BACKLOG)
		forget(n->backlog, &n->backlog_count, number);
	conn_leave(n, c);
	conn_lost(n, c);
}

void conn_bury(struct net *n)
{
	while (n->dead) {
		struct conn *c = n->dead;

		n->dead = c->next_dead;
		bury(n, c);
	}
}

void conns_close(struct net *n)
{
	for (uint32_t i = 0; i < n->conn_room; i++)
		if (n->conns[i])
			bury(n, n->conns[i]);
	mem_free(n->conns, 0);
}

/* ── commands ── */

bool conn_is_done(const struct conn *c)
{
	if (c->first || c->out.len || c->socket.sending || (c->flags & (CONN_STALLED | CONN_BACKLOG | CONN_DEAD)))
		return false;
	if (c->flags & CONN_ENDING)
		return true;
	return (c->flags & CONN_EOF) && !(c->in_len && c->socket.paused);        /* paused: not all of it was run */
}

static void set_partial(struct net *n, struct conn *c, uint64_t since_ms)
{
	n->partial += (uint32_t)(since_ms != 0) - (uint32_t)(c->partial_ms != 0);
	c->partial_ms = since_ms;
}

/* All was said. A socket that is closed with bytes unread is reset, and the client may never see why: so one that was
 * refused in the middle of its words is told that this is the end, and heard out. */
void conn_finish(struct net *n, struct conn *c)
{
	if ((c->flags & (CONN_LINGER | CONN_EOF)) != CONN_LINGER) {
		conn_end(n, c);
		return;
	}
	if (c->flags & CONN_DRAINING)
		return;
	c->flags |= CONN_DRAINING;
	(void)shutdown(c->socket.fd, SHUT_WR);
	set_partial(n, c, n->now_ms);
	if (c->socket.paused)
		n->io->ops->resume(n->io, &c->socket);
}

void conn_may_go_on(struct net *n, struct conn *c)
{
	if (conn_is_done(c)) {
		conn_finish(n, c);
		return;
	}
	if (c->socket.paused && !(c->flags & CONN_BACKLOG) && conn_may_run(n, c)) {
		c->flags |= CONN_BACKLOG;
		n->backlog[n->backlog_count++] = c->socket.number;
	}
}

/* Runs what is whole; returns how many bytes that took, *len: of how many that are still needed. cut: it stopped because
 * it may not go on for now. */
static size_t run(struct net *n, struct conn *c, char *bytes, size_t *len, bool *cut)
{
	return c->flags & CONN_HTTP ? http_run(n, c, bytes, len, cut) : resp_run(n, c, bytes, *len, cut);
}

static bool keep_input(struct conn *c, const char *bytes, size_t len)
{
	size_t need = c->in_len + len, room = c->in_room ? c->in_room : 512;
	char *in;

	if (need > c->in_room) {
		while (room < need)
			room *= 2;
		in = room > UINT32_MAX / 2 ? NULL : mem_alloc(room);
		if (!in)
			return false;
		if (c->in_len)
			memcpy(in, c->in, c->in_len);
		mem_free(c->in, c->in_room);
		c->in = in;
		c->in_room = (uint32_t)room;
	}
	memcpy(c->in + c->in_len, bytes, len);
	c->in_len += (uint32_t)len;
	return true;
}

static void drop_input(struct conn *c, size_t used)
{
	c->in_len -= (uint32_t)used;
	if (c->in_len) {
		if (used)
			memmove(c->in, c->in + used, c->in_len);
	} else {
		mem_free(c->in, c->in_room);
		c->in = NULL;
		c->in_room = 0;
	}
}

/* Of a socket that is not read the end is not seen either: so nothing of it may wait for events while it is paused. */
static void stop_reading(struct net *n, struct conn *c)
{
	if (n->readers)
		feed_hurry(n, c);
	if (!c->socket.paused)
		n->io->ops->pause(n->io, &c->socket);
}

/* Whether to go on reading, and since when a command is incomplete. */
static void after_run(struct net *n, struct conn *c)
{
	if (c->flags & (CONN_DEAD | CONN_DRAINING))
		return;
	if (!conn_may_run(n, c) && !(c->flags & (CONN_LINGER | CONN_FEED)))
		stop_reading(n, c);
	if (c->in_len == 0 || c->socket.paused)  /* paused: it is we who wait */
		set_partial(n, c, 0);
	else if (!c->partial_ms)
		set_partial(n, c, n->now_ms);
	if (conn_is_done(c))
		conn_finish(n, c);
}

void conn_run(struct net *n, struct conn *c)
{
	size_t used = 0, before;
	bool cut = true;

	request_deliver(n);                         /* requests may point into the input that is about to move */
	if (c->in_len) {
		do {                             /* delivered, they may be answered already: then there is room for more */
			size_t rest = c->in_len - used;

			before = used;
			used += run(n, c, c->in + used, &rest, &cut);
			c->in_len = (uint32_t)(before + rest);
			request_deliver(n);
		} while (cut && used > before && conn_may_run(n, c));
		drop_input(c, used);
		if (used)
			set_partial(n, c, 0);
	}
	after_run(n, c);
}

uint32_t conn_run_backlog(struct net *n)
{
	uint32_t all = n->backlog_count;

	for (uint32_t i = 0; i < all; i++) {
		struct conn *c = n->conns[n->backlog[i]];

		if (!c || !(c->flags & CONN_BACKLOG))
			continue;
		c->flags &= ~(uint32_t)CONN_BACKLOG;
		if (c->flags & CONN_DEAD)
			continue;
		conn_run(n, c);
		if (!(c->flags & CONN_DEAD) && c->socket.paused && conn_may_run(n, c)) {
			n->io->ops->resume(n->io, &c->socket);
			if (conn_is_done(c))
				conn_finish(n, c);
		}
	}
	n->backlog_count -= all;
	memmove(n->backlog, n->backlog + all, n->backlog_count * sizeof *n->backlog);
	return all;
}

/* ── what the sockets say ── */

static struct io_socket *find(void *user, uint32_t number, uint16_t gen)
{
	struct net *n = user;
	struct conn *c = number < n->conn_room ? n->conns[number] : NULL;

	return c && c->socket.gen == gen ? &c->socket : NULL;
}

static void on_received(void *user, struct io_socket *s, char *bytes, size_t len)
{
	struct net *n = user;
	struct conn *c = conn_of(s);
	size_t used = 0;
	bool cut;

	count_one(&n->shown.counts.bytes_in, len);
	count_one(&n->shown.received, 1);
	c->active_ms = n->now_ms;
	if (__builtin_expect(c->flags & (CONN_LINGER | CONN_FEED), 0))
		return;
	if (c->in_len || !conn_may_run(n, c)) {
		request_deliver(n);
		if (!keep_input(c, bytes, len)) {
			conn_end(n, c);
			return;
		}
		if (conn_may_run(n, c)) {
			conn_run(n, c);
			return;
		}
	} else {
		used = run(n, c, bytes, &len, &cut);
		if (used < len && !(c->flags & CONN_DEAD) && !keep_input(c, bytes + used, len - used)) {
			conn_end(n, c);
			return;
		}
	}
	after_run(n, c);
}

static void on_ended(void *user, struct io_socket *s, int error)
{
	struct net *n = user;
	struct conn *c = conn_of(s);

	if (error) {
		conn_end(n, c);
		return;
	}
	c->flags |= CONN_EOF;
	if (n->readers)
		feed_hurry(n, c);
	conn_may_go_on(n, c);
}

static void on_sent(void *user, struct io_socket *s, bool ok)
{
	conn_sent(user, conn_of(s), ok);
}

static void on_settle(void *user)
{
	request_deliver(user);
}

static void on_lent(void *user, uint32_t index, int result)
{
	lend_sent(user, index, result);
}

static void on_starved(void *user)
{
	((struct net *)user)->starved = true;
}

static bool on_left(void *user, struct io_socket *s)
{
	return move_left(user, conn_of(s));
}

const struct io_handlers conn_handlers = {
	on_accepted, find, on_received, on_ended, on_sent, on_released, on_settle, on_lent, on_starved, on_left,
};
