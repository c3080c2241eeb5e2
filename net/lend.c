/* net/lend.c - sending to the connections of a worker that sleeps. Whose they are at the moment: lease.h.
 *
 * Order of messages: what was handed over to the worker before (its late list) goes first, so nothing is sent past
 * it; and a message that its worker took is in the output of a connection, which then is not quiet, or sent.
 *
 * Sleeping: a socket that does not take all of a message leaves work behind for its worker, which is woken.
 */
#include "net/lend.h"

#include "net/lease.h"

#include <errno.h>
#include <sched.h>
#include <sys/socket.h>

#define SPINS 1024
#define LEND_BYTES 16384               /* of a message: a longer one waits for its own worker */

void lend_open(struct net *n)
{
	lease_offer(&n->lease);
}

void lend_close(struct net *n)
{
	for (uint32_t tries = 1; !lease_back(&n->lease); tries++)
		if (tries % SPINS == 0)
			sched_yield();           /* who has it was put aside */
		else
			cpu_relax();
}

/* Nothing of it is under way, or waits to be. */
static bool is_quiet(const struct conn *c)
{
	return !(c->flags & (CONN_DEAD | CONN_DIRTY | CONN_GATED)) && !c->first && c->out.len == 0 && !c->out.failed &&
	       c->flying.len == 0 && !c->socket.sending;
}

static bool all_quiet(struct net *n, const struct listeners *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (i + 8 < l->n)
			__builtin_prefetch(n->conns[l->list[i + 8].conn]);
		if (!is_quiet(n->conns[l->list[i].conn]))
			return false;
	}
	return true;
}

/* ── one message ── */

/* The text twice: as RESP2 and as RESP3 have it. */
bool lend_begin(struct net *here, const struct out *text, const struct event *e)
{
	struct lending *x = &here->lending;

	if (x->waiting || text->len > LEND_BYTES || e->due > load_acquire(here->server->door.durable))
		return false;
	x->text.len = 0;
	out_bytes(&x->text, text->bytes, text->len);
	out_bytes(&x->text, text->bytes, text->len);
	if (x->text.failed) {
		lend_free(here);
		return false;
	}
	x->len = text->len;
	x->text.bytes[0] = '*';
	x->text.bytes[x->len] = '>';
	x->count = x->nets = 0;
	x->waiting = 1;                          /* until the end: sockets may answer at once */
	return true;
}

static void send_to(struct net *here, struct net *n, struct conn *c)
{
	struct lending *x = &here->lending;
	uint32_t i = x->count++;

	x->to[i].net = n;
	x->to[i].conn = c->socket.number;
	x->waiting++;
	here->io->ops->lend(here->io, c->socket.fd, x->text.bytes + (c->session.proto == 3 ? x->len : 0), x->len, i);
}

bool lend_push(struct net *here, struct net *n, struct topic *topic)
{
	struct lending *x = &here->lending;
	struct listeners *l;

	if (!lease_take(&n->lease))
		return false;
	l = topic_local(topic, n->worker);
	if (load_acquire(&n->late) || !l || l->n > LEND_MOST - x->count || !all_quiet(n, l)) {
		lease_return(&n->lease);
		return false;
	}
	x->lent[x->nets].net = n;
	x->lent[x->nets++].rest = false;
	for (uint32_t i = 0; i < l->n; i++)
		send_to(here, n, n->conns[l->list[i].conn]);
	count_one(&n->shown.counts.pushed, l->n);
	return true;
}

/* The rest of a message that its socket had no room for is its own worker's. */
static void leave_rest(struct net *here, struct net *n, struct conn *c, const char *rest, size_t len)
{
	struct lending *x = &here->lending;

	out_bytes(&c->out, rest, len);
	if (c->out.failed) {                     /* half of a message cannot be left so */
		c->out.failed = false;
		(void)shutdown(c->socket.fd, SHUT_RDWR);
		return;
	}
	conn_wrote(n, c, 0);
	for (uint32_t i = 0; i < x->nets; i++)
		x->lent[i].rest |= x->lent[i].net == n;
}

/* All is sent: theirs again. */
static void one_less(struct net *here)
{
	const struct net_door *door = &here->server->door;
	struct lending *x = &here->lending;

	if (--x->waiting)
		return;
	for (uint32_t i = 0; i < x->nets; i++) {
		lease_return(&x->lent[i].net->lease);
		if (x->lent[i].rest)
			door->wake(door->box, x->lent[i].net->worker);
	}
}

void lend_end(struct net *here)
{
	if (here->lending.count)
		here->io->ops->lend_now(here->io);
	one_less(here);
}

void lend_sent(struct net *here, uint32_t index, int result)
{
	struct lending *x = &here->lending;
	struct net *n = x->to[index].net;
	struct conn *c = n->conns[x->to[index].conn];
	bool full = result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM || result == -EINTR;
	size_t sent = result > 0 ? (size_t)result : 0;

	count_one(&n->shown.counts.bytes_out, sent);
	if (sent < x->len && (result >= 0 || full))      /* one that is broken tells its worker so by itself */
		leave_rest(here, n, c, x->text.bytes + (c->session.proto == 3 ? x->len : 0) + sent, x->len - sent);
	one_less(here);
}

void lend_finish(struct net *here)
{
	while (here->lending.waiting)
		net_submit(here);
}

void lend_free(struct net *here)
{
	out_close(&here->lending.text);
	here->lending.text.failed = false;
}
