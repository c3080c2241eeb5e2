/* net/http_conn.c - a connection's HTTP requests, run one after another.
 *
 * A request is looked at twice: when its head is there it is let in or refused, so that nobody makes us keep a body
 * that will not be used; when all of it is there its handler runs. Responses go the way of RESP's replies: the same
 * slots, the same order, the same wait for the disk.
 */
#include "net/net.h"

#include "net/command.h"

#include <string.h>

static bool is_head(const struct http_reader *r, const char *bytes)
{
	return r->method.len == 4 && memcmp(bytes + r->method.at, "HEAD", 4) == 0;
}

/* What the response must know; recorded with the slot if it comes later. */
static uint8_t proto_of(const struct http_reader *r, const char *bytes)
{
	return (uint8_t)(HTTP_PROTO | (is_head(r, bytes) ? HTTP_HEAD : 0) | (r->close ? HTTP_CLOSE : 0) |
			 (r->http_1_0 ? HTTP_1_0 : 0));
}

/* at is NULL if there was none: an empty one is something else. */
static struct arg optional_text(const struct http_reader *r, int field, const char *bytes)
{
	return r->seen >> field & 1 ? http_text(&r->field[field], bytes) : (struct arg){ NULL, 0 };
}

static void read_request(const struct conn *c, const char *bytes, struct http_request *q)
{
	const struct http_reader *r = &c->http.reader;

	*q = (struct http_request){
		.method = http_text(&r->method, bytes),
		.path = http_text(&r->path, bytes),
		.query = http_text(&r->query, bytes),
		.body = http_text(&r->body, bytes),
		.host = http_text(&r->field[FIELD_HOST], bytes),
		.origin = http_text(&r->field[FIELD_ORIGIN], bytes),
		.authorization = http_text(&r->field[FIELD_AUTHORIZATION], bytes),
		.content_type = http_text(&r->field[FIELD_CONTENT_TYPE], bytes),
		.accept = http_text(&r->field[FIELD_ACCEPT], bytes),
		.last_event_id = http_text(&r->field[FIELD_LAST_EVENT_ID], bytes),
		.idempotency_key = optional_text(r, FIELD_IDEMPOTENCY_KEY, bytes),
		.traceparent = http_text(&r->field[FIELD_TRACEPARENT], bytes),
		.tracestate = http_text(&r->field[FIELD_TRACESTATE], bytes),
		.local = c->flags & CONN_LOCAL,
	};
}

/* What was just answered is the last: in the middle of its words the client is heard out. */
static void end_after(struct conn *c, bool unread)
{
	c->session.closing = true;
	if (unread)
		c->flags |= CONN_LINGER;
}

/* Behind the answers that are still to come, as everything else. */
static void go_on(struct net *n, struct conn *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct call call = { .net = n, .conn = c };

	conn_before(n, c);
	out_bytes(call_out(&call), text, sizeof text - 1);
	conn_after(n, c);
}

/* Who is refused with "Expect: 100-continue" may send its body or not: where the next request would begin is not clear,
 * so there is none. Any other body is passed over. */
static void on_head(struct net *n, struct conn *c, const char *bytes, const struct http_request *q)
{
	struct http_reader *r = &c->http.reader;
	struct call call = { .net = n, .conn = c, .now_ms = n->wall_ms };

	c->http.spoken = true;
	c->http.body_ms = n->now_ms;
	c->http.answered = false;
	c->session.proto = proto_of(r, bytes);
	if (r->expects || load_relaxed(&n->server->stopping))
		c->session.proto |= HTTP_CLOSE;          /* if it is refused */
	conn_before(n, c);
	if (!http_admit(&call, q)) {
		count_one(&n->shown.counts.commands, 1);
		c->http.answered = true;
		http_drop_body(r);
		if (c->session.proto & HTTP_CLOSE)
			end_after(c, r->has_body);
		conn_after(n, c);
		return;
	}
	c->session.proto = proto_of(r, bytes);
	if (q->method.at[0] == 'G' || q->method.at[0] == 'H')
		http_drop_body(r);                       /* of GET and HEAD: it means nothing */
	if (r->expects)
		go_on(n, c);
}

/* False: it has to wait until those before it are answered, and was not run. */
static bool on_request(struct net *n, struct conn *c, const struct http_request *q)
{
	struct call call = { .net = n, .conn = c, .now_ms = n->wall_ms };

	if (c->http.answered)
		return true;
	conn_before(n, c);
	c->http.route->run(&call, q);
	c->alone = call.later;
	if (call.later) {
		n->muting = false;
		return false;
	}
	count_one(&n->shown.counts.commands, 1);
	count_one(&n->http_calls[c->http.route - n->server->routes], 1);
	if (c->http.reader.close && !c->feed)
		end_after(c, false);
	conn_after(n, c);
	if (__builtin_expect(n->timed.armed, 0))
		took_begin(n, c, command_total() + (uint32_t)(c->http.route - n->server->routes));
	return true;
}

static void on_bad(struct net *n, struct conn *c, const char *bytes)
{
	const struct http_reader *r = &c->http.reader;
	struct call call = { .net = n, .conn = c };

	conn_before(n, c);
	if (!c->http.answered) {
		c->session.proto = proto_of(r, bytes) | HTTP_CLOSE;
		http_problem(call_out(&call), r->status, r->code, "", "%s", r->why);
		count_one(&n->shown.counts.commands, 1);
	}
	end_after(c, true);
	conn_after(n, c);
}

size_t http_run(struct net *n, struct conn *c, char *bytes, size_t *len, bool *cut)
{
	struct http_reader *r = &c->http.reader;
	struct http_request q;
	bool known = false;              /* q is of the head that was read last: it came in this call, so its bytes are in place */
	size_t used = 0;

	*cut = false;
	if (!c->partial_ms)
		c->http.body_ms = n->now_ms;     /* it was we who waited, in the middle of a body or before it */
	while (used < *len && conn_may_run(n, c)) {
		size_t rest = *len - used;

		switch (http_read(r, bytes + used, &rest, &n->http_limits)) {
		case HTTP_HEAD_READ:
			read_request(c, bytes + used, &q);
			known = true;
			on_head(n, c, bytes + used, &q);
			break;
		case HTTP_REQUEST:
			if (!known)
				read_request(c, bytes + used, &q);
			q.body = http_text(&r->body, bytes + used);
			known = false;
			if (!on_request(n, c, &q)) {
				*cut = true;
				return used;
			}
			used += http_next(r);
			c->http.answered = false;
			break;
		case HTTP_MORE:
			*len = used + rest;
			return used;
		case HTTP_BAD:
			on_bad(n, c, bytes + used);
			break;
		}
	}
	if (c->flags & (CONN_ENDING | CONN_FEED))
		used = *len;                     /* nobody will look at the rest */
	*cut = used < *len;
	return used;
}

/* ── time-outs ── */

bool http_is_late(const struct net *n, const struct conn *c)
{
	const struct http_reader *r = &c->http.reader;

	if (!c->partial_ms || (c->flags & (CONN_ENDING | CONN_DRAINING)))
		return false;
	if (!r->body.at)
		return n->now_ms - c->partial_ms > n->o.http_header_ms;
	return n->now_ms - c->http.body_ms > n->o.http_body_ms + r->body_bytes * 1000 / n->o.http_min_rate;
}

void http_too_late(struct net *n, struct conn *c)
{
	struct call call = { .net = n, .conn = c };
	bool head = !c->http.reader.body.at;

	conn_before(n, c);
	if (!c->http.answered) {
		c->session.proto = HTTP_PROTO | HTTP_CLOSE;
		http_problem(call_out(&call), 408, "request_timeout", "", "the %s did not come within %u ms%s",
			     head ? "header" : "body", head ? n->o.http_header_ms : n->o.http_body_ms,
			     head ? "" : ", and not fast enough to be given longer");
	}
	end_after(c, true);
	conn_after(n, c);
	conn_may_go_on(n, c);
}
