/* net/request.c - requests on their way to actors: in batches; held while an actor has no room.
 *
 * What a command asks for is noted with its address, and delivered with the others of the pass: before the bytes it
 * points to go. A connection whose request is refused for now is not read further, and what came behind it waits
 * with it, so that nothing overtakes.
 */
#include "net/net.h"

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

/* It was not even sent: the sentence says why. */
static void refuse(struct net *n, uint64_t token, int rc)
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
		refuse(n, a->token, rc);
}

void request_deliver(struct net *n)
{
	uint32_t count = n->arrival_count;

	if (!count)
		return;
	n->server->door.prepare(n->server->door.box, n->worker, n->arrivals, count);
	for (uint32_t i = 0; i < count; i++) {
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
			refuse(n, h->a.token, rc);
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

/* ── what a command may do: call.h ── */

struct out *call_out(struct call *c)
{
	struct out *o = c->conn->first ? &c->net->scratch : &c->conn->out;

	if (o == &c->net->scratch)
		o->len = 0;
	o->proto = c->conn->session.proto;
	o->replayed = false;
	return o;
}

noh_box *call_box(struct call *c)
{
	return c->net->server->door.box;
}

static int told(struct call *c, int rc, uint64_t due)
{
	if (due > c->net->reply_due)
		c->net->reply_due = due;
	return rc;
}

bool call_alone(struct call *c)
{
	request_deliver(c->net);
	conn_reply_from(c->net, c->conn);
	return c->conn->first == 0 && !(c->conn->flags & (CONN_STALLED | CONN_DEAD));
}

int call_type_stats(struct call *c, const char *type, noh_type_stats *stats)
{
	int rc = noh_get_type_stats(call_box(c), type, stats);

	return told(c, rc, c->net->server->door.known(call_box(c)));
}

int call_status(struct call *c, const char *address, noh_status *status)
{
	uint64_t due = 0;
	int rc = c->net->server->door.status(call_box(c), address, status, &due);

	return told(c, rc, due);
}

int call_list(struct call *c, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count)
{
	uint64_t due = 0;
	int rc = c->net->server->door.list(call_box(c), type, cursor, entries, count, &due);

	return told(c, rc, due);
}

int call_scan(struct call *c, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user)
{
	uint64_t due = 0;
	int rc = c->net->server->door.scan(call_box(c), type, cursor, limit, each, user, &due);

	return told(c, rc, due);
}

static uint64_t until(struct net *n, uint32_t timeout_ms)
{
	uint64_t ms = n->now_ms + (timeout_ms ? timeout_ms : n->o.call_ms);

	if (timeout_ms && ms < n->sweep_ms)
		n->sweep_ms = ms;
	return ms;
}

static bool take_note(struct asked *s, const struct request *r)
{
	s->note = mem_alloc(r->note_len);
	s->note_len = r->note_len;
	if (!s->note)
		return false;
	memcpy(s->note, r->note, r->note_len);
	s->tag.a = (uint64_t)(uintptr_t)s->note;
	return true;
}

static uint32_t new_slot(struct call *c, const struct request *r, uint32_t parts, format_fn *format,
			 struct tag tag)
{
	struct net *n = c->net;
	uint32_t number = slot_take(n, c->conn);
	struct asked *s = &n->slots[number];

	if (!number)
		return 0;
	s->format = format;
	s->tag = tag;
	s->parts = parts;
	s->missing = parts;
	s->one = (struct reply_part){ 0 };
	s->u.many = NULL;
	s->until_ms = until(n, r ? r->timeout_ms : 0);
	s->at_once = r && (r->durability == NOH_MEMORY || n->o.durability == NOH_MEMORY);
	if (r && r->note && !take_note(s, r)) {
		s->parts = 0;
		s->format = NULL;
		slot_give(n, number);
		return 0;
	}
	if (parts != 1) {
		s->u.many = mem_zalloc(parts * sizeof *s->u.many);
		if (!s->u.many && parts) {
			s->parts = 0;
			s->format = NULL;
			slot_give(n, number);
			return 0;
		}
	}
	return number;
}

const char *const request_prefixes[] = { "", "counter:", "inventory:" };
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

/* What the command has on its stack or in its arguments is copied, but for large bodies: those are delivered
 * before it returns. */
static void arrive(struct net *n, const struct request *r, uint32_t number)
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
	memcpy((char *)n->bytes + n->bytes_used, request_prefixes[r->type], name);
	memcpy((char *)n->bytes + n->bytes_used + name, r->id, r->id_len);
	n->bytes_used += (name + r->id_len + 7u) & ~7u;
	a->address_len = name + r->id_len;
	a->token = slot_token(n, number);
	a->slot = number;
	a->type = NULL;
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

static void no_memory(struct call *c)
{
	if (c->conn->flags & CONN_HTTP) {
		http_problem(call_out(c), 503, "out_of_memory", "Retry-After: 1\r\n", "no memory for another request");
		return;
	}
	out_error(call_out(c), "-OOM no memory for another command");
}

void call_actors(struct call *c, const struct request *requests, uint32_t count, format_fn *format, struct tag tag)
{
	struct net *n = c->net;
	uint32_t whole = new_slot(c, count ? requests : NULL, count, format, tag);

	if (!whole) {
		running_end(&n->server->running, count ? requests->running : 0);
		no_memory(c);
		return;
	}
	n->slots[whole].running = count ? requests->running : 0;
	slot_enqueue(n, c->conn, whole);
	if (count == 0) {
		slot_ready(n, whole);
		return;
	}
	if (count == 1) {
		arrive(n, requests, whole);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = slot_take(n, c->conn);
		struct asked *s = &n->slots[part];

		if (!part) {
			n->slots[whole].u.many[i].status = NOH_ENOMEM;
			if (--n->slots[whole].missing == 0)
				slot_ready(n, whole);
			continue;
		}
		s->parent = whole;
		s->parent_gen = n->slots[whole].gen;
		s->index = i;
		s->parts = 1;
		s->one = (struct reply_part){ 0 };
		s->format = format;
		s->at_once = n->slots[whole].at_once;
		s->until_ms = n->slots[whole].until_ms;  /* if it has to be held */
		arrive(n, &requests[i], part);
	}
}

uint32_t request_slot(struct call *c, uint32_t timeout_ms, format_fn *format, struct tag tag)
{
	uint32_t number = new_slot(c, &(struct request){ .timeout_ms = timeout_ms }, 1, format, tag);

	if (number)
		slot_enqueue(c->net, c->conn, number);
	else
		no_memory(c);
	return number;
}

bool call_reload(struct call *c, format_fn *format, struct tag tag)
{
	const noh_listen_options *o = &c->net->server->o;
	uint32_t number;

	if (!o->on_reload)
		return false;
	number = request_slot(c, 60000, format, tag);
	if (number)
		o->on_reload(o->user, slot_token(c->net, number));
	return true;
}

bool call_drain(struct call *c, uint32_t deadline_ms, format_fn *format, struct tag tag)
{
	enum { SLACK_MS = 30000 };               /* the program tells when it is over */
	const noh_listen_options *o = &c->net->server->o;
	uint32_t number = 0;

	if (!o->on_drain)
		return false;
	if (format) {
		number = request_slot(c, deadline_ms + SLACK_MS, format, tag);
		if (!number)
			return true;
	}
	o->on_drain(o->user, number ? slot_token(c->net, number) : 0, deadline_ms);
	return true;
}

/* What was asked before goes first, also to the same actors. */
void call_step(struct call *c, const struct request *requests, uint32_t count, format_fn *format, struct tag tag)
{
	struct net *n = c->net;
	uint32_t whole;
	uint64_t token;
	int rc;

	request_deliver(n);
	conn_reply_from(n, c->conn);
	whole = new_slot(c, requests, count, format, tag);
	if (!whole) {
		no_memory(c);
		return;
	}
	slot_enqueue(n, c->conn, whole);
	token = slot_token(n, whole);
	n->slots[whole].step = true;
	n->slots[whole].until_ms += 1000;        /* the step's own deadline comes first */
	c->conn->steps++;
	rc = n->server->door.step(n->server->door.box, n->worker, requests, count,
				  requests->timeout_ms ? requests->timeout_ms : n->o.call_ms, token);
	if (rc != NOH_OK)
		refuse(n, token, rc);
}

/* The answer waits a little longer than the errand may take: its own word on a time-out comes first. */
void call_errand(struct call *c, errand_fn *run, const void *args, uint32_t len, uint32_t timeout_ms, format_fn *format,
		 struct tag tag)
{
	struct net *n = c->net;
	uint32_t number = request_slot(c, timeout_ms + 1000, format, tag);
	int rc;

	if (!number)
		return;
	rc = n->server->door.errand(n->server->door.box, run, args, len, slot_token(n, number));
	if (rc != NOH_OK)
		refuse(n, slot_token(n, number), rc);
}

/* The same: the reader's own time is up before its slot's. */
void call_events(struct call *c, const struct feed_wish *wish, format_fn *format, struct tag tag)
{
	struct net *n = c->net;
	uint32_t number = request_slot(c, wish->block_ms + 5000, format, tag);
	int rc;

	if (!number)
		return;
	rc = feed_open(n, c->conn, slot_token(n, number), wish, &n->slots[number].feed);
	n->readers += n->slots[number].feed != NULL;
	if (rc != NOH_OK)
		refuse(n, slot_token(n, number), rc);
}
