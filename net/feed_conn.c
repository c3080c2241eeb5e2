/* net/feed_conn.c - readers of events, on the worker of their connection. */
#include "net/feed_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <string.h>

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static struct feed *make(struct net *n, struct conn *c, uint64_t token, const struct feed_wish *wish)
{
	struct feed *x = mem_aligned(CACHE_LINE, sizeof *x);

	if (!x)
		return NULL;
	x->wish = *wish;
	x->wish.patience_ms = n->o.timeout_ms / 2;       /* as it is now: a later change is for later readers */
	if (c->flags & CONN_EOF)
		x->wish.block_ms = 0;
	x->filter = (noh_events_filter){ .actor = text_or_null(x->wish.actor), .type = text_or_null(x->wish.type),
					 .kind = text_or_null(x->wish.kind), .since_ms = wish->since_ms };
	x->id = add_relaxed(&n->server->feeds->next_id, 1) + 1;
	x->token = token;
	x->worker = n->worker;
	x->conn = c->socket.number;
	x->conn_gen = c->socket.gen;
	x->mine.cursor = wish->cursor;
	return x;
}

/* Who comes when the thread has gone finds it over: behind the push it is loaded again, so either the thread sees him in
 * its goodbye or he sees that. */
int feed_open(struct net *n, struct conn *c, uint64_t token, const struct feed_wish *wish, struct feed **feed)
{
	struct feeds *f = n->server->feeds;
	struct feed *x = NULL;
	void *top;

	*feed = NULL;
	if (load_seq_cst(&f->over))
		return error_set(NOH_ESTOPPED, "the server is stopping: events can be read when it is back");
	/* A reader whose client is gone is there for a moment longer. */
	if (add_seq_cst(&f->count, 1) < 2 * n->o.max_connections)
		x = make(n, c, token, wish);
	if (!x) {
		sub_relaxed(&f->count, 1);
		return error_set(NOH_ENOMEM, "no memory for another reader of events, or too many of them; try again later");
	}
	top = load_relaxed(&f->arrived);
	do {
		x->next = top;
	} while (!cas_seq_cst(&f->arrived, &top, x));
	feeds_ring(f);
	*feed = x;
	return load_seq_cst(&f->over) ? error_set(NOH_ESTOPPED, "the server is stopping") : NOH_OK;
}

void feed_leave(struct net *n, struct feed *x)
{
	store_release(&x->gone, 1);
	feeds_ring(n->server->feeds);
}

void feed_hurry(struct net *n, struct conn *c)
{
	for (uint32_t number = c->first; number; number = n->slots[number].next) {
		struct feed *x = n->slots[number].feed;

		if (!x || load_relaxed(&x->hurry))
			continue;
		store_release(&x->hurry, 1);
		feeds_ring(n->server->feeds);
	}
}

void feed_taken(struct conn *c)
{
	struct feed *x = c->feed;
	uint64_t held = c->out.len + c->flying.len - c->flown;

	if (held > x->received)
		held = x->received;              /* the head of the response is not counted */
	store_seq_cst(&x->taken, x->received - held);
	if (held <= FEED_WINDOW / 2 && load_seq_cst(&x->starved)) {
		store_seq_cst(&x->starved, 0);
		feeds_ring(c->net->server->feeds);
	}
}

void feed_late(struct net *n, const struct late *l)
{
	struct conn *c = conn_at(n, l->count, (uint16_t)((uint32_t)l->status >> FEED_GEN_SHIFT));

	if (!c || !c->feed || c->feed->id != l->due)
		return;
	if (c->first) {                          /* there was no memory to tell it that it begins */
		conn_end(n, c);
		return;
	}
	out_bytes(&c->out, l->body, l->len);
	c->feed->received += l->len;
	if ((uint32_t)l->status & FEED_ENDS)
		c->flags |= CONN_ENDING;
	if ((uint32_t)l->status & FEED_SLOW)
		count_one(&n->shown.counts.closed_slow, 1);
	conn_wrote(n, c, 0);                     /* events are shown when they are on disk */
	conn_may_go_on(n, c);
}
