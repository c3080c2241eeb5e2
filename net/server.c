/* net/server.c - what the workers of a listening box share: limits, accounts, who is connected. */
#include "net/net.h"

#include "core/error.h"
#include "core/mem.h"
#include "net/command.h"

#include <stdio.h>
#include <string.h>

/* ── options ── */

static int check_options(const noh_listen_options *o)
{
	if (o->resp_port < -1 || o->resp_port > 65535 || o->http_port < 0 || o->http_port > 65535)
		return error_set(NOH_EINVAL, "port %d: ports go from 1 to 65535",
				 o->http_port < 0 || o->http_port > 65535 ? o->http_port : o->resp_port);
	if (o->resp_port == -1 && !o->unix_path && !o->http_port && !o->http_unix_path && !o->resp_fd && !o->http_fd)
		return error_set(NOH_EINVAL, "noh_listen: neither a port nor a Unix socket");
	if (o->io < NOH_IO_AUTO || o->io > NOH_IO_EPOLL)
		return error_set(NOH_EINVAL, "io %d is none of the three", o->io);
	if (o->durability != NOH_DISK && o->durability != NOH_MEMORY)
		return error_set(NOH_EINVAL, "durability %d is none of NOH_DISK and NOH_MEMORY", o->durability);
	return NOH_OK;
}

/* ── opening ── */

static int choose_io(struct server *s)
{
	const char *missing = s->o.io == NOH_IO_EPOLL ? "" : io_uring_missing();

	if (missing && s->o.io == NOH_IO_URING)
		return error_set(NOH_ESYSTEM, "io_uring cannot be used: %s", missing);
	s->uring = missing == NULL;
	s->io_name = s->uring ? "io_uring" : "epoll";
	if (missing && *missing)
		s->door.log(s->door.box, NOH_WARN, missing);
	return NOH_OK;
}

static bool copy_text(const char **text)
{
	size_t len = *text ? strlen(*text) + 1 : 0;
	char *copy = len ? mem_alloc(len) : NULL;

	if (len && !copy)
		return false;
	if (len)
		memcpy(copy, *text, len);
	*text = copy;
	return true;
}

int server_open(struct server **out, const noh_listen_options *o, uint32_t workers, const struct net_door *door)
{
	static const noh_listen_options none;
	struct server *s;
	int rc = check_options(o ? o : &none);

	*out = NULL;
	if (rc != NOH_OK)
		return rc;
	s = mem_aligned(CACHE_LINE, sizeof *s);
	if (!s)
		return error_set(NOH_ENOMEM, "no memory for a server");
	s->door = *door;
	s->routes = http_routes;
	s->workers = workers;
	pthread_mutex_init(&s->change_lock, NULL);
	pthread_cond_init(&s->change_seen, NULL);
	s->resp.local = s->http.local = -1;
	s->o = o ? *o : none;
	option_defaults(&s->o);
	s->nets = mem_zalloc(workers * sizeof *s->nets);
	if (!crew_open(&s->crew, workers) || !s->nets || !copy_text(&s->o.bind) || !copy_text(&s->o.unix_path) || !copy_text(&s->o.http_unix_path))
		rc = error_set(NOH_ENOMEM, "no memory for a server");
	(void)running_open(&s->running);         /* without them nothing is watched */
	(void)sources_open(&s->sources);
	pthread_mutex_init(&s->moves, NULL);
	if (rc == NOH_OK)
		rc = feeds_open(s);
	if (rc == NOH_OK)
		rc = choose_io(s);
	if (rc == NOH_OK)
		rc = listen_open(s);
	if (rc != NOH_OK) {
		server_close(s);
		return rc;
	}
	*out = s;
	return NOH_OK;
}

static void free_accounts(struct accounts *a)
{
	mem_free(a, sizeof *a + a->count * sizeof a->list[0]);
}

void server_close(struct server *s)
{
	struct accounts *a = load_relaxed(&s->accounts);

	for (uint32_t i = 0; s->nets && i < s->workers; i++)
		if (s->nets[i])
			net_close(s->nets[i]);
	listen_close(s);
	while (a) {
		struct accounts *older = a->older;

		free_accounts(a);
		a = older;
	}
	pthread_cond_destroy(&s->change_seen);
	pthread_mutex_destroy(&s->change_lock);
	pthread_mutex_destroy(&s->moves);
	crew_close(&s->crew);
	mem_free(s->nets, s->workers * sizeof *s->nets);
	mem_free((void *)(uintptr_t)s->o.bind, 0);
	mem_free((void *)(uintptr_t)s->o.unix_path, 0);
	mem_free((void *)(uintptr_t)s->o.http_unix_path, 0);
	running_close(&s->running);
	feeds_close(s);
	sources_close(&s->sources);
	mem_free(s, sizeof *s);
}

void server_drain(struct server *s)
{
	store_seq_cst(&s->draining, 1);
}

bool net_draining(struct net *n)
{
	return load_relaxed(&n->server->draining);
}

void server_stop(struct server *s)
{
	store_seq_cst(&s->stopping, 1);
}

bool server_idle(struct server *s)
{
	for (uint32_t i = 0; i < s->workers; i++) {
		struct net *n = load_acquire(&s->nets[i]);

		if (n && (!load_relaxed(&n->shown.idle) || load_relaxed(&n->shown.connections)))
			return false;
	}
	return true;
}

/* ── accounts ── */

/* A worker looks at accounts within a command, and goes by a change between two. */
static void drop_old_accounts(struct server *s, struct accounts *now)
{
	for (struct accounts **at = &now->older; *at; ) {
		struct accounts *old = *at;

		if (server_all_saw(s, old->until)) {
			*at = old->older;
			free_accounts(old);
		} else {
			at = &old->older;
		}
	}
}

int server_set_accounts(struct server *s, const noh_account *list, size_t count)
{
	struct accounts *a = mem_alloc(sizeof *a + count * sizeof a->list[0]);

	if (!a)
		return error_set(NOH_ENOMEM, "no memory for %zu accounts", count);
	for (size_t i = 0; i < count; i++) {
		size_t len = list[i].name ? strlen(list[i].name) : 0;

		if (len == 0 || len > SESSION_NAME_MAX || list[i].role < NOH_USER || list[i].role > NOH_ADMIN) {
			mem_free(a, sizeof *a + count * sizeof a->list[0]);
			return error_set(NOH_EINVAL, "account %zu: a name has 1 to %d bytes, a role is one of the three",
					 i, SESSION_NAME_MAX);
		}
		memcpy(a->list[i].name, list[i].name, len + 1);
		a->list[i].role = list[i].role;
		memcpy(a->list[i].token, list[i].token, sizeof a->list[i].token);
	}
	a->count = count;
	a->older = load_relaxed(&s->accounts);
	store_release(&s->accounts, a);
	uint32_t change = server_changed(s);

	if (a->older)
		a->older->until = change;
	drop_old_accounts(s, a);
	return NOH_OK;
}

bool server_is_guarded(struct server *s)
{
	const struct accounts *a = load_acquire(&s->accounts);

	return a && a->count;
}

/* Never 0. */
uint64_t account_mark(const uint8_t token[32])
{
	uint64_t mark;

	memcpy(&mark, token, sizeof mark);
	return mark | 1;
}

/* ── what commands ask of the server: session.h ── */

struct session *call_session(struct call *c)
{
	return &c->conn->session;
}

void call_audit(struct call *c, const char *call, const char *actor, const char *target)
{
	(void)noh_tell_admin(call_box(c), &(noh_admin_call){ .who = c->conn->session.user, .call = call, .actor = actor,
							     .target = target, .from = c->conn->shown->addr });
}

const noh_listen_options *net_options(struct net *n)
{
	return &n->o;
}

uint64_t net_started_ms(struct net *n)
{
	return load_relaxed(&n->server->started_ms);
}

uint64_t net_command_calls(struct net *n, uint32_t index)
{
	return server_calls(n->server, index);
}

uint64_t net_http_calls(struct net *n, uint32_t index)
{
	return server_calls(n->server, command_total() + index);
}

void net_shutdown(struct net *n)
{
	if (n->server->o.on_shutdown)
		n->server->o.on_shutdown(n->server->o.user);
}

#define SUM(field) do { uint64_t x = 0;                                                            \
	for (uint32_t i_ = 0; i_ < s->workers; i_++) {                                              \
		struct net *n_ = load_acquire(&s->nets[i_]);                                        \
		x += n_ ? load_relaxed(&n_->shown.counts.field) : 0; }                              \
	stats->field = x; } while (0)

void server_stats(struct server *s, noh_net_stats *stats)
{
	memset(stats, 0, sizeof *stats);
	stats->io = s->io_name;
	stats->connections = load_relaxed(&s->connections);
	SUM(accepted);
	SUM(refused);
	SUM(refused_address);
	SUM(logins_failed);
	SUM(logins_held);
	SUM(closed_slow);
	SUM(commands);
	SUM(errors);
	SUM(bytes_in);
	SUM(bytes_out);
	SUM(pushed);
	for (uint32_t i = 0; i < s->workers; i++) {
		struct net *n = load_acquire(&s->nets[i]);

		stats->pushes_dropped += n ? load_relaxed(&n->pushes_dropped) : 0;
	}
}
