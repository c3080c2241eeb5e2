/* net/conn_out.c - a connection's replies: written, held until they are on disk, sent.
 *
 * Output is one run of bytes. What is before `released` may leave; each mark says up to where the next
 * stretch goes and which epoch it waits for. A reply never overtakes the one before it, so a mark waits for
 * at least as much as those before it.
 */
#include "net/move.h"

#include "core/mem.h"

#include <string.h>

#define KEPT_BYTES 4096            /* a larger buffer is given back when it is empty */
#define STRICT_BYTES 16384         /* not taken by a client that has not said who it is */
#define PIECE_BYTES 65536          /* sent at once: whoever takes that much within timeout_ms is not too slow */

bool conn_output_full(const struct net *n, const struct conn *c)
{
	size_t held = c->out.len + c->flying.len - c->flown + c->queued;

	return held >= (c->session.role == SESSION_NOBODY ? STRICT_BYTES : n->o.max_output_bytes);
}

static void set_dirty(struct net *n, struct conn *c)
{
	if (c->flags & CONN_DIRTY)
		return;
	c->flags |= CONN_DIRTY;
	n->dirty[n->dirty_count++] = c->socket.number;
}

static bool add_mark(struct conn *c, uint64_t due)
{
	if (c->mark_count && c->marks[c->mark_count - 1].due >= due) {
		c->marks[c->mark_count - 1].end = c->out.len;
		return true;
	}
	if (c->mark_count == c->mark_room) {
		uint32_t room = c->mark_room ? c->mark_room * 2 : 4;
		struct mark *list = mem_alloc(room * sizeof *list);

		if (!list)
			return false;
		if (c->mark_count)
			memcpy(list, c->marks, c->mark_count * sizeof *list);
		mem_free(c->marks, c->mark_room * sizeof *list);
		c->marks = list;
		c->mark_room = room;
	}
	c->marks[c->mark_count++] = (struct mark){ c->out.len, due };
	return true;
}

static void set_gated(struct net *n, struct conn *c)
{
	if (c->marks[0].due < load_relaxed(n->awaits))
		store_seq_cst(n->awaits, c->marks[0].due);
	if (c->flags & CONN_GATED)
		return;
	c->flags |= CONN_GATED;
	n->gated[n->gated_count++] = c->socket.number;
}

void conn_wrote(struct net *n, struct conn *c, uint64_t due)
{
	if (c->flags & CONN_DEAD)
		return;
	if (c->out.failed) {
		conn_end(n, c);
	} else if (c->mark_count == 0 && due <= load_acquire(n->server->door.durable)) {
		c->released = c->out.len;
		set_dirty(n, c);
	} else if (add_mark(c, due)) {
		set_gated(n, c);
	} else {
		conn_end(n, c);                  /* it cannot be held back, so it is not said */
	}
}

void conn_unwrite(struct conn *c, size_t len)
{
	if (c->out.len <= len)
		return;
	c->out.len = len;
	if (c->released > len)
		c->released = len;
	for (uint32_t i = 0; i < c->mark_count; i++)
		if (c->marks[i].end > len)
			c->marks[i].end = len;
}

/* Who has something to send is sent to in the order of set_dirty. */
void conn_goes_first(struct net *n, struct conn *c)
{
	if (!(c->flags & CONN_DEAD))
		set_dirty(n, c);
}

/* No send will end, so nobody would tell it to go on: the next flush does. */
void conn_was_silent(struct net *n, struct conn *c)
{
	if (!(c->flags & CONN_DEAD))
		set_dirty(n, c);
}

/* True: some of it waits for more. */
static bool release(struct net *n, struct conn *c, uint64_t durable)
{
	uint32_t k = 0;

	while (k < c->mark_count && c->marks[k].due <= durable)
		c->released = c->marks[k++].end;
	if (k) {
		c->mark_count -= k;
		memmove(c->marks, c->marks + k, c->mark_count * sizeof *c->marks);
		set_dirty(n, c);
	}
	return c->mark_count != 0;
}

uint32_t conn_release_gated(struct net *n)
{
	uint64_t durable = load_acquire(n->server->door.durable), first = UINT64_MAX;
	uint32_t kept = 0, all = n->gated_count;

	if (load_relaxed(n->awaits) > durable)
		return 0;
	for (uint32_t i = 0; i < all; i++) {
		struct conn *c = n->conns[n->gated[i]];

		if (!c || !(c->flags & CONN_GATED))
			continue;
		if (release(n, c, durable)) {
			n->gated[kept++] = c->socket.number;
			first = c->marks[0].due < first ? c->marks[0].due : first;
		} else {
			c->flags &= ~(uint32_t)CONN_GATED;
		}
	}
	n->gated_count = kept;
	store_seq_cst(n->awaits, first);
	return all;
}

/* All of the output may leave: the two buffers change places. Else a copy of what may. */
static void take_off(struct conn *c)
{
	if (c->released == c->out.len) {
		struct out empty = c->flying;

		c->flying = c->out;
		c->out = empty;
		c->out.len = 0;
	} else {
		c->flying.len = 0;
		out_bytes(&c->flying, c->out.bytes, c->released);
		if (c->flying.failed)
			return;
		c->out.len -= c->released;
		memmove(c->out.bytes, c->out.bytes + c->released, c->out.len);
		for (uint32_t i = 0; i < c->mark_count; i++)
			c->marks[i].end -= c->released;
	}
	c->released = 0;
}

static void send_piece(struct net *n, struct conn *c)
{
	size_t rest = c->flying.len - c->flown;

	c->piece = rest < PIECE_BYTES ? rest : PIECE_BYTES;
	c->took_ms = n->now_ms;
	n->sending++;
	n->io->ops->send(n->io, &c->socket, c->flying.bytes + c->flown, c->piece);
}

static void flush(struct net *n, struct conn *c)
{
	if ((c->flags & CONN_DEAD) || c->socket.sending)
		return;
	if (c->released == 0) {
		conn_may_go_on(n, c);
		return;
	}
	take_off(c);
	if (c->flying.failed) {
		conn_end(n, c);
		return;
	}
	count_one(&n->shown.counts.bytes_out, c->flying.len);
	c->flown = 0;
	send_piece(n, c);
}

#define FLUSH_ROUND 512

uint32_t conn_flush_dirty(struct net *n)
{
	uint32_t all = n->dirty_count < FLUSH_ROUND ? n->dirty_count : FLUSH_ROUND;

	for (uint32_t i = 0; i < all; i++) {
		struct conn *c = n->conns[n->dirty[i]];

		if (c && (c->flags & CONN_DIRTY)) {
			c->flags &= ~(uint32_t)CONN_DIRTY;
			flush(n, c);
		}
	}
	n->dirty_count -= all;
	memmove(n->dirty, n->dirty + all, n->dirty_count * sizeof *n->dirty);
	return all;
}

static void trim(struct out *o)
{
	if (o->room > KEPT_BYTES && o->len == 0)
		out_close(o);
}

void conn_sent(struct net *n, struct conn *c, bool ok)
{
	n->sending--;
	c->took_ms = n->now_ms;
	c->flown += c->piece;
	if (!ok) {
		conn_end(n, c);
		return;
	}
	if (__builtin_expect(c->feed != NULL, 0))
		feed_taken(c);
	if (c->flown < c->flying.len && !(c->flags & CONN_DEAD)) {
		send_piece(n, c);
		return;
	}
	c->flying.len = c->flown = 0;
	trim(&c->flying);
	trim(&c->out);
	if (c->released)
		set_dirty(n, c);
	conn_may_go_on(n, c);
	if (n->width && move_is_due(n, c))
		move_note(n, c);
}
