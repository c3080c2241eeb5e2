/* net/roll.c - who is connected, as CLIENT LIST and CLIENT KILL see it from any worker.
 *
 * Each worker keeps a copy of what may be told of its connections, under a lock of its own that nobody takes
 * on the way of a message: connections take it when they come, go, or change their name.
 */
#include "net/move.h"

#include "core/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void address_text(int fd, bool peer, const char *path, char *text, size_t size)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof at;
	char ip[INET6_ADDRSTRLEN] = "";
	int rc = peer ? getpeername(fd, (struct sockaddr *)&at, &len) : getsockname(fd, (struct sockaddr *)&at, &len);

	if (rc == 0 && at.ss_family == AF_INET) {
		struct sockaddr_in *four = (struct sockaddr_in *)(void *)&at;

		inet_ntop(AF_INET, &four->sin_addr, ip, sizeof ip);
		snprintf(text, size, "%s:%u", ip, ntohs(four->sin_port));
	} else if (rc == 0 && at.ss_family == AF_INET6) {
		struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&at;

		inet_ntop(AF_INET6, &six->sin6_addr, ip, sizeof ip);
		snprintf(text, size, "[%s]:%u", ip, ntohs(six->sin6_port));
	} else {
		snprintf(text, size, "%s:0", path ? path : "");
	}
}

static void describe(struct conn *c, struct client *client)
{
	struct net *n = c->net;

	session_describe(&c->session, client);
	if (c->flags & CONN_HTTP) {
		client->command = "http";
		client->proto = 0;
	}
	client->fd = c->socket.fd;
	memcpy(client->addr, c->shown->addr, sizeof client->addr);
	memcpy(client->local, c->shown->local, sizeof client->local);
	client->active_ms = n->wall_ms - (n->now_ms - c->active_ms);
	client->in_bytes = c->in_len;
	client->out_bytes = (uint32_t)(c->out.len + c->flying.len - c->flown);
}

void net_client(struct conn *c, struct client *client)
{
	describe(c, client);
}

void net_client_changed(struct conn *c)
{
	struct net *n = c->net;
	struct client fresh;

	describe(c, &fresh);
	if (!fresh.addr[0]) {
		const noh_listen_options *o = &n->server->o;
		const char *path = !(c->flags & CONN_LOCAL) ? NULL : c->flags & CONN_HTTP ? o->http_unix_path : o->unix_path;

		address_text(c->socket.fd, true, path, fresh.addr, sizeof fresh.addr);
		address_text(c->socket.fd, false, path, fresh.local, sizeof fresh.local);
	}
	pthread_mutex_lock(&n->roll);
	*c->shown = fresh;
	pthread_mutex_unlock(&n->roll);
}

void net_each_client(struct net *self, client_fn *each, void *user)
{
	bool more = true;

	pthread_mutex_lock(&self->server->moves);        /* nobody goes over meanwhile: each is told of once */
	for (const struct mover *m = self->server->moving; more && m; m = m->next)
		more = each(user, m->conn->shown);
	for (uint32_t w = 0; more && w < self->server->workers; w++) {
		struct net *n = load_acquire(&self->server->nets[w]);

		if (!n)
			continue;
		pthread_mutex_lock(&n->roll);
		for (uint32_t i = 0; more && i < n->conn_room; i++) {
			struct client client;

			if (!n->conns[i])
				continue;
			if (n == self)
				net_client(n->conns[i], &client);
			else
				client = *n->conns[i]->shown;
			more = each(user, &client);
		}
		pthread_mutex_unlock(&n->roll);
	}
	pthread_mutex_unlock(&self->server->moves);
}

static bool kill_moving(struct server *s, uint64_t id)
{
	for (struct mover *m = s->moving; m; m = m->next)
		if (m->conn->shown->id == id)
			return m->killed = true;
	return false;
}

static bool kill_settled(struct net *self, uint64_t id)
{
	for (uint32_t w = 0; w < self->server->workers; w++) {
		struct net *n = load_acquire(&self->server->nets[w]);
		bool found = false;

		if (!n)
			continue;
		pthread_mutex_lock(&n->roll);
		for (uint32_t i = 0; !found && i < n->conn_room; i++)
			found = n->conns[i] && n->conns[i]->shown->id == id;
		pthread_mutex_unlock(&n->roll);
		if (!found)
			continue;
		if (net_answer_late(n, 0, id, 0, NULL, 0) && n != self)
			net_wake(n);
		return true;
	}
	return false;
}

bool net_kill_client(struct net *self, uint64_t id)
{
	bool found;

	pthread_mutex_lock(&self->server->moves);
	found = kill_moving(self->server, id) || kill_settled(self, id);
	pthread_mutex_unlock(&self->server->moves);
	return found;
}

/* A late answer without a token: somebody wants this client gone. It may have gone over to another worker since. */
void roll_kill(struct net *n, uint64_t id)
{
	for (uint32_t i = 0; i < n->conn_room; i++)
		if (n->conns[i] && n->conns[i]->session.id == id) {
			conn_end(n, n->conns[i]);
			return;
		}
	(void)net_kill_client(n, id);
}
