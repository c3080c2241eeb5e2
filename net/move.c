#include "net/move.h"

#include "core/mem.h"

static bool is_quiet(const struct conn *c)
{
	return !(c->flags & ~(uint32_t)(CONN_LOCAL | CONN_HTTP | CONN_NOTED)) && !c->first && !c->steps && !c->alone && !c->held &&
	       !c->out.len && !c->flying.len && !c->socket.sending && !c->socket.paused && !c->in_len && !c->partial_ms &&
	       !c->subs && !c->feed;
}

/* NULL: it stays; also where that worker has no network. */
static struct net *destination(struct net *n, const struct conn *c)
{
	return n->width && move_is_due(n, c) ? load_acquire(&n->server->nets[move_target(n, c)]) : NULL;
}

void move_note(struct net *n, struct conn *c)
{
	if (!destination(n, c) || !is_quiet(c) || (c->flags & CONN_NOTED) || c->socket.leaving)
		return;
	c->flags |= CONN_NOTED;
	c->next_noted = n->noted;
	n->noted = c;
}

void move_noted(struct net *n)
{
	while (n->noted) {
		struct conn *c = n->noted;

		n->noted = c->next_noted;
		c->flags &= ~(uint32_t)CONN_NOTED;
		if (is_quiet(c))
			n->io->ops->leave(n->io, &c->socket);
	}
}

static struct mover *mover_of(struct late *l)
{
	return (struct mover *)(void *)l->body;
}

static struct late *make_late(struct net *n, struct conn *c)
{
	struct late *l = mem_alloc(sizeof *l + sizeof(struct mover));

	if (!l)
		return NULL;
	*l = (struct late){ .status = LATE_MOVE, .len = sizeof(struct mover), .count = UINT32_MAX };
	*mover_of(l) = (struct mover){ .conn = c, .next = n->server->moving, .changes = n->changes };
	return l;
}

bool move_left(struct net *n, struct conn *c)
{
	struct server *s = n->server;
	struct net *to = destination(n, c);
	struct late *l = NULL;

	if (!to || !is_quiet(c) || n->unlistened || pthread_mutex_trylock(&s->moves) != 0)
		return false;
	l = make_late(n, c);
	if (l) {
		s->moving = mover_of(l);
		conn_leave(n, c);
	}
	pthread_mutex_unlock(&s->moves);
	if (l && net_push_late(to, l))
		s->door.wake(s->door.box, to->worker);
	return l != NULL;
}

static void unlist(struct server *s, const struct mover *m)
{
	struct mover **at = &s->moving;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

/* The worker it comes from may have looked at the clock later than this one. */
static void set_back(uint64_t *ms, uint64_t now_ms)
{
	if (*ms > now_ms)
		*ms = now_ms;
}

void move_arrives(struct net *n, struct late *l)
{
	struct server *s = n->server;
	struct mover m;
	bool entered;

	if (pthread_mutex_trylock(&s->moves) != 0) {
		(void)net_push_late(n, l);               /* in the next pass */
		return;
	}
	unlist(s, mover_of(l));
	m = *mover_of(l);
	entered = conn_enter(n, m.conn);
	pthread_mutex_unlock(&s->moves);
	mem_free(l, sizeof *l + l->len);
	if (!entered) {
		conn_lost(n, m.conn);
		return;
	}
	count_one(&n->shown.moved, 1);
	set_back(&m.conn->active_ms, n->now_ms);
	set_back(&m.conn->took_ms, n->now_ms);
	conn_begin(n, m.conn);
	if (m.killed)
		conn_end(n, m.conn);
	else if (m.changes != n->changes)
		change_check(n, m.conn);
	if (n->unlistened)
		n->sweep_ms = 0;                         /* it stops: nobody has told this one yet */
}

void move_lost(struct net *n, struct late *l)
{
	unlist(n->server, mover_of(l));
	conn_lost(n, mover_of(l)->conn);
	mem_free(l, sizeof *l + l->len);
}
