/* net/call.c - what a command may do: call.h, session.h. */
#include "net/net.h"

#include "core/mem.h"

#include <string.h>

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

int call_vitals(struct call *c, const char *address, noh_vitals *vitals)
{
	uint64_t due = 0;
	int rc = c->net->server->door.vitals(call_box(c), address, vitals, &due);

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
		request_arrive(n, requests, whole);
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
		request_arrive(n, &requests[i], part);
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
		request_refuse(n, token, rc);
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
		request_refuse(n, slot_token(n, number), rc);
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
		request_refuse(n, slot_token(n, number), rc);
}
