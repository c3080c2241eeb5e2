/* net/request.c - requests on their way to actors: in batches; held while an actor has no room.
 *
 * What a command asks for is noted with its address, and delivered with the others of the pass: before the bytes it
 * points to go. A connection whose request is refused for now is not read further, and what came behind it waits
 * with it, so that nothing overtakes.
 */
#include "net/hand.h"

#include "core/mem.h"

#include <string.h>

struct held {
	struct held   *next;
	size_t         bytes;
	uint64_t       until_ms;
	struct arrival a;
	char           copy[];
};

/* ── delivering ── */

static void *held_copy(char **at, const void *bytes, size_t len)
{
	void *to = *at;

	if (len)
		memcpy(to, bytes, len);
	*at += (len + 7) & ~(size_t)7;
	return to;
}

/* Not now: its connection is not read further until this and what came after it have gone in. */
static void hold(struct net *n, struct conn *c, const struct arrival *a)
{
	size_t state = a->trace ? (a->trace->state_len + 7) & ~(size_t)7 : 0, tail = a->trace ? sizeof *a->trace : 0;
	size_t bytes = sizeof(struct held) + a->address_len + a->len + a->key_len + 24 + state + tail;
	struct held *h = mem_alloc(bytes);
	char *at;

	if (!h) {
		net_answer(n, a->token, 0, NOH_ENOMEM, NULL, 0);
		return;
	}
	at = h->copy;
	h->next = NULL;
	h->bytes = bytes;
	h->a = *a;
	h->a.found = NULL;                       /* he may be gone by then */
	h->a.body = held_copy(&at, a->body, a->len);
	h->a.address = held_copy(&at, a->address, a->address_len);
	h->a.key = a->key ? held_copy(&at, a->key, a->key_len) : NULL;
	if (a->trace)
		h->a.trace = (void *)((char *)held_copy(&at, trace_state(a->trace), state + tail) + state);
	h->until_ms = n->slots[a->slot].until_ms;
	if (!(c->flags & CONN_STALLED)) {
		c->flags |= CONN_STALLED;
		c->held_end = &c->held;
		n->stalled++;
	}
	*c->held_end = h;
	c->held_end = &h->next;
}

static bool not_now(const struct arrival *a, int rc)
{
	return (rc == NOH_FULL && !a->final) || rc == NOH_ENOMEM;
}

/* ACK memory and none: nobody waits for the turn. */
static bool sent_only(const struct asked *s, const struct arrival *a)
{
	return a->op == REQUEST_SEND && s->at_once;
}

static int deliver(struct net *n, struct arrival *a)
{
	uint64_t token = a->token;
	int rc;

	if (sent_only(&n->slots[a->slot], a))
		a->token = 0;
	rc = n->server->door.deliver(n->server->door.box, n->worker, a);
	if (a->token != token) {
		a->token = token;
		if (rc == NOH_OK)
			net_answer(n, token, 0, NOH_OK, NULL, 0);
	}
	return rc;
}

void request_refuse(struct net *n, uint64_t token, int rc)
{
	const char *why = rc < 0 ? noh_why() : "";

	net_answer(n, token, 0, rc, why, strlen(why));
}

static void deliver_or_hold(struct net *n, struct arrival *a)
{
	struct asked *s = &n->slots[a->slot];
	struct conn *c = NULL;
	int rc;

	if (__builtin_expect(n->stalled != 0, 0)) {
		c = conn_at(n, s->conn, s->conn_gen);
		if (c && (c->flags & CONN_STALLED)) {
			hold(n, c, a);
			return;
		}
	}
	rc = deliver(n, a);
	if (__builtin_expect(rc == NOH_OK, 1))
		return;
	c = not_now(a, rc) ? conn_at(n, s->conn, s->conn_gen) : NULL;
	if (c)
		hold(n, c, a);
	else
		request_refuse(n, a->token, rc);
}

static void prepare(struct net *n, uint32_t from, uint32_t count)
{
	const struct net_door *door = &n->server->door;
	bool behind = count - from > PREPARED;

	door->prepare(door->box, n->worker, n->arrivals + from, behind ? PREPARED : count - from, behind);
}

void request_deliver(struct net *n)
{
	uint32_t count = n->arrival_count;

	if (!count)
		return;
	if (__builtin_expect(n->handing_count != 0, 0))
		hand_now(n);                     /* a turn may take its time */
	for (uint32_t i = 0; i < count; i++) {
		if (i % PREPARED == 0)
			prepare(n, i, count);
		if (__builtin_expect(n->arrivals[i].slot == n->timed.slot, 0) && n->arrivals[i].op == REQUEST_CALL)
			n->timed.type = n->arrivals[i].type;
		deliver_or_hold(n, &n->arrivals[i]);
	}
	n->arrival_count = 0;
	n->bytes_used = 0;
}

static void drop_held(struct conn *c)
{
	struct held *h = c->held;

	c->held = h->next;
	mem_free(h, h->bytes);
}

static void unstall(struct net *n, struct conn *c)
{
	c->flags &= ~(uint32_t)CONN_STALLED;
	c->held = NULL;
	n->stalled--;
}

uint32_t request_retry(struct net *n, struct conn *c)
{
	uint32_t done = 0;

	while (c->held) {                        /* not in the list while it is delivered: that may end its connection */
		struct held *h = c->held;
		int rc;

		c->held = h->next;
		rc = slot_of(n, h->a.token) ? deliver(n, &h->a) : NOH_ETIMEOUT;
		if (!(c->flags & CONN_DEAD) && not_now(&h->a, rc) && n->now_ms < h->until_ms) {
			h->next = c->held;
			c->held = h;
			if (!h->next)
				c->held_end = &h->next;
			return done;
		}
		if (rc != NOH_OK)
			request_refuse(n, h->a.token, rc);
		mem_free(h, h->bytes);
		if (c->flags & CONN_DEAD)
			return done;             /* request_abandon did the rest */
		if (!c->held)
			c->held_end = &c->held;
		done++;
	}
	unstall(n, c);
	return done + 1;
}

void request_abandon(struct net *n, struct conn *c)
{
	while (c->held) {
		uint64_t token = c->held->a.token;

		drop_held(c);
		net_answer(n, token, 0, NOH_EGONE, NULL, 0);
	}
	unstall(n, c);
}

/* ── arriving ── */

const char request_prefixes[][PREFIX_ROOM] = { "", "counter:", "inventory:" };
static const uint8_t type_name_len[] = { 0, 8, 10 };

static bool is_id(const struct request *r)
{
	return r->id_len > 0 && type_name_len[r->type] + r->id_len <= 255 && r->id_len <= 255 &&
	       !memchr(r->id, 0, r->id_len);
}

static char *put(struct net *n, const void *bytes, uint32_t len)
{
	char *at = (char *)n->bytes + n->bytes_used;

	n->bytes_used += (len + 7u) & ~7u;
	if (len)
		memcpy(at, bytes, len);
	return at;
}

void request_arrive(struct net *n, const struct request *r, uint32_t number)
{
	uint32_t small = r->len <= ARRIVAL_SMALL ? r->len : 0, name = type_name_len[r->type];
	struct arrival *a;

	if (!is_id(r)) {
		net_answer(n, slot_token(n, number), 0, NOH_EADDRESS, NULL, 0);
		return;
	}
	if (n->arrival_count == ARRIVALS || n->bytes_used + 255 + r->key_len + small + 24 + TRACE_BYTES > ARRIVAL_BYTES)
		request_deliver(n);
	a = &n->arrivals[n->arrival_count++];
	a->body = small ? put(n, r->body, small) : r->body;
	a->key = r->key ? put(n, r->key, r->key_len) : NULL;
	a->address = (char *)n->bytes + n->bytes_used;
	memcpy((char *)n->bytes + n->bytes_used, request_prefixes[r->type], PREFIX_ROOM);      /* whole: no loop */
	memcpy((char *)n->bytes + n->bytes_used + name, r->id, r->id_len);
	n->bytes_used += (name + r->id_len + 7u) & ~7u;
	a->address_len = name + r->id_len;
	a->token = slot_token(n, number);
	a->slot = number;
	a->type = a->found = NULL;
	a->len = r->len;
	a->key_len = r->key_len;
	a->kind = r->kind;
	a->op = (uint8_t)r->op;
	a->named = (uint8_t)r->type;
	a->final = false;
	a->trace = NULL;
	if (__builtin_expect(r->trace || (n->traces.every && --n->traces.until_next == 0), 0))
		a->trace = net_trace(n, r, number);
	if (small < r->len)
		request_deliver(n);
}
