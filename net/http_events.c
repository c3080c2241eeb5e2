/* net/http_events.c - GET /events: events as they come, as server-sent events.
 *
 * The connection becomes a stream: a reader of feed.h gives it what it writes. It ends when the client does, or with a last
 * event that says why and where to go on:
 *     event: cut     the client took nothing for too long
 *     event: gone    what comes next is not kept any more
 *     event: end     the server stops; or this was all (follow=false)
 * Every event has its number as id, so a browser goes on by itself (Last-Event-ID).
 */
#include "net/net.h"

#include "core/error.h"
#include "net/rest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool digits(const struct arg *a, uint64_t *n)
{
	*n = 0;
	for (uint32_t i = 0; i < a->len; i++) {
		if (a->at[i] < '0' || a->at[i] > '9' || *n > (INT64_MAX - 9) / 10)
			return false;
		*n = *n * 10 + (uint64_t)(a->at[i] - '0');
	}
	return a->len > 0;
}

/* Where it begins. False: the problem is written. */
static bool begin_at(struct call *c, const struct http_request *q, const struct query_got *got, struct feed_wish *w)
{
	uint64_t oldest = 0, newest = 0;
	bool asked = q->last_event_id.len > 0;

	(void)noh_events_bounds(call_box(c), &oldest, &newest);
	if (asked && !digits(&q->last_event_id, &w->cursor)) {
		http_problem(call_out(c), 400, "bad_cursor", "", "Last-Event-ID is the number of an event, as its id said");
		return false;
	}
	w->last = UINT32_MAX;
	if (!asked && got[EVENTS_LAST].given) {
		w->last = (uint32_t)got[EVENTS_LAST].n;
		return true;
	}
	if (!asked && !got[EVENTS_CURSOR].given) {
		w->cursor = got[EVENTS_SINCE].given ? 0 : newest;
		return true;
	}
	if (!asked)
		w->cursor = (uint64_t)got[EVENTS_CURSOR].n;
	if (w->cursor > newest) {
		http_problem(call_out(c), 400, "bad_cursor", "", "the newest event has the number %" PRIu64 ": %" PRIu64 " is of another "
			     "server or data directory; begin with cursor=0, or with last=10", newest, w->cursor);
		return false;
	}
	if (w->cursor == 0 || w->cursor + 1 >= oldest)
		return true;
	http_problem(call_out(c), 410, "too_old", "", "events behind %" PRIu64 " are gone: the oldest there is has the number %" PRIu64
		     "; go on with cursor=%" PRIu64 ", and what was in between is missing", w->cursor, oldest, oldest - 1);
	return false;
}

static bool read_wish(struct call *c, const struct http_request *q, struct feed_wish *w)
{
	struct query_got got[QUERY_FIELDS_MAX];

	memset(w, 0, sizeof *w);
	if (!rest_query(c, q, QUERY_EVENTS, got))
		return false;
	if (got[EVENTS_ACTOR].given && !rest_query_actor(c, &got[EVENTS_ACTOR], w->actor))
		return false;
	memcpy(w->type, got[EVENTS_TYPE].text, got[EVENTS_TYPE].given ? (size_t)got[EVENTS_TYPE].len + 1 : 0);
	memcpy(w->kind, got[EVENTS_KIND].text, got[EVENTS_KIND].given ? (size_t)got[EVENTS_KIND].len + 1 : 0);
	w->since_ms = got[EVENTS_SINCE].given ? (uint64_t)got[EVENTS_SINCE].n : 0;
	w->once = !got[EVENTS_FOLLOW].n;
	return begin_at(c, q, got, w);
}

void http_events(struct call *c, const struct http_request *q)
{
	static const char hello[] = "retry: 1000\n\n";
	struct conn *conn = c->conn;
	struct feed *feed;
	struct feed_wish w;
	int rc;

	c->later = !call_alone(c);               /* nothing is said on this connection but events, from here on */
	if (c->later || !read_wish(c, q, &w))
		return;
	rc = feed_open(c->net, conn, 0, &w, &feed);
	if (rc != NOH_OK) {
		if (feed)
			feed_leave(c->net, feed);
		rest_problem_of(call_out(c), rc);
		return;
	}
	conn->feed = feed;
	conn->flags |= CONN_FEED;
	c->net->streams++;
	http_stream(call_out(c), "text/event-stream", "X-Accel-Buffering: no\r\n");
	out_bytes(call_out(c), hello, sizeof hello - 1);
}
