/* net/change.c - options and accounts that the program changes while it listens.
 *
 * A change is put down, counted, and every worker is woken. A worker that sees the count has grown takes over what
 * is new between two commands: no command sees half of it. The count stands beside the flag to stop, which is
 * loaded once a pass anyway.
 */
#include "net/net.h"

#include "core/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 1

/* ── the program's side ── */

static void wake_all(struct server *s)
{
	for (uint32_t i = 0; i < s->workers; i++)
		if (load_acquire(&s->nets[i]))
			s->door.wake(s->door.box, i);
}

uint32_t server_changed(struct server *s)
{
	uint32_t change = add_seq_cst(&s->changes, 1) + 1;

	wake_all(s);
	return change;
}

/* Acquire, and release where it is written: what a worker looked at before, it has looked at. */
bool server_all_saw(struct server *s, uint32_t change)
{
	for (uint32_t i = 0; i < s->workers; i++) {
		struct net *n = load_acquire(&s->nets[i]);

		if (n && (int32_t)(load_acquire(&n->shown.changes) - change) < 0)
			return false;
	}
	return true;
}

/* The old info may be looked at until the last worker goes by the new one: so the caller waits. */
int server_set_options(struct server *s, const noh_listen_options *o)
{
	noh_listen_options fresh = *o;
	struct timespec until;
	uint32_t change;
	int rc = 0;

	option_defaults(&fresh);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&s->change_lock);
	change = server_changed(s);              /* who sees it already waits for the lock */
	option_compare(s, &fresh, change);
	while (!server_all_saw(s, change) && rc == 0)
		rc = pthread_cond_timedwait(&s->change_seen, &s->change_lock, &until);
	pthread_mutex_unlock(&s->change_lock);
	if (rc == 0)
		return NOH_OK;
	return error_set(NOH_ETIMEOUT, "a worker is in a long turn: it goes by the old settings until that ends");
}

/* ── a worker's side ── */

static bool find_account(const struct accounts *a, const struct session *s, int *role)
{
	for (size_t i = 0; a && i < a->count; i++) {
		if (strcmp(a->list[i].name, s->user) != 0 || account_mark(a->list[i].token) != s->account)
			continue;
		*role = a->list[i].role;
		return true;
	}
	return false;
}

static bool has_name(const struct accounts *a, const char *name)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->list[i].name, name) == 0)
			return true;
	return false;
}

/* False: it may not be here any more. */
static bool check_account(const struct accounts *a, struct conn *c)
{
	struct session *s = &c->session;
	bool guarded = a && a->count;
	int role = s->role;

	if (c->feed)                                     /* the one request it will ever be */
		return !guarded || (s->account ? find_account(a, s, &role) && role >= c->http.route->role
					       : (c->flags & CONN_LOCAL) != 0);
	if (c->flags & CONN_HTTP)                        /* each request says anew who asks, and is looked at then */
		return !guarded || strcmp(s->user, "default") == 0 || has_name(a, s->user);
	s->first_role = guarded ? SESSION_NOBODY : NOH_ADMIN;
	if (s->account) {
		if (!find_account(a, s, &role))
			return false;
	} else if (guarded) {
		return s->role == SESSION_NOBODY;        /* it might do all, since there was nobody to be */
	} else {
		role = NOH_ADMIN;
	}
	if (role != s->role) {
		s->role = (int8_t)role;
		net_client_changed(c);
	}
	return true;
}

static void check_accounts(struct net *n)
{
	const struct accounts *a = load_acquire(&n->server->accounts);
	uint32_t cut = 0;
	char line[96];

	for (uint32_t i = 0; i < n->conn_room; i++) {
		struct conn *c = n->conns[i];

		if (!c || (c->flags & CONN_DEAD) || check_account(a, c))
			continue;
		conn_end(n, c);
		cut++;
	}
	if (cut == 0)
		return;
	snprintf(line, sizeof line, "connections closed, their accounts are gone or have other tokens: %u", cut);
	n->server->door.log(n->server->door.box, NOH_INFO, line);
}

void change_check(struct net *n, struct conn *c)
{
	if (!check_account(load_acquire(&n->server->accounts), c))
		conn_end(n, c);
}

void change_take(struct net *n)
{
	struct server *s = n->server;

	pthread_mutex_lock(&s->change_lock);
	uint32_t now = load_seq_cst(&s->changes), since = n->changes;

	option_take(n, since);
	n->changes = now;
	store_release(&n->shown.changes, now);
	pthread_cond_signal(&s->change_seen);
	pthread_mutex_unlock(&s->change_lock);
	check_accounts(n);
}

void change_open(struct net *n)
{
	struct server *s = n->server;

	pthread_mutex_lock(&s->change_lock);
	n->o = s->o;
	n->changes = load_seq_cst(&s->changes);
	store_relaxed(&n->shown.changes, n->changes);
	pthread_mutex_unlock(&s->change_lock);
	option_limits(n);
}
