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
#include "net/command.h"
#include "net/rest.h"

#include <inttypes.h>
#include <string.h>

#define STREAM_MS 2147000000u              /* the reader answers, whatever comes */

/* Where it begins; whether that is still kept the reader will find. False: the problem is written. */
static bool begin_at(struct call *c, const struct http_request *q, const struct query_got *got, struct feed_wish *w)
{
	bool asked = q->last_event_id.len > 0;
	uint64_t newest = 0;

	(void)noh_events_bounds(call_box(c), NULL, &newest);
	if (asked && !arg_uint(&q->last_event_id, &w->cursor)) {
		http_problem(call_out(c), 400, "bad_cursor", "", "Last-Event-ID is the number of an event, as its id said");
		return false;
	}
	if (!asked && got[EVENTS_LAST].given && got[EVENTS_CURSOR].given) {
		http_problem(call_out(c), 400, "bad_query", "", "\"last\" and \"cursor\" both say where to begin: give one of them");
		return false;
	}
	w->last = UINT32_MAX;
	if (!asked && got[EVENTS_LAST].given)
		w->last = (uint32_t)got[EVENTS_LAST].n;
	else if (!asked && got[EVENTS_CURSOR].given)
		w->cursor = (uint64_t)got[EVENTS_CURSOR].n;
	else if (!asked)
		w->cursor = got[EVENTS_SINCE].given ? 0 : newest;
	if (w->cursor <= newest)
		return true;
	http_problem(call_out(c), 400, "bad_cursor", "", "the newest event has the number %" PRIu64 ": %" PRIu64 " is of another "
		     "server or data directory; begin with cursor=0, or with last=10", newest, w->cursor);
	return false;
}

static bool read_wish(struct call *c, const struct http_request *q, struct feed_wish *w)
{
	struct query_got got[QUERY_FIELDS_MAX];

	memset(w, 0, sizeof *w);
	w->stream = true;
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

static void format_head(struct out *o, const struct reply_part *part, uint32_t n, struct tag tag)
{
	static const char hello[] = "retry: 1000\n\n";

	(void)n, (void)tag;
	o->proto |= HTTP_CLOSE;                  /* in any case: nothing else is said on this connection */
	if (part->status != NOH_OK) {
		rest_problem(o, part, NULL, NULL);
		return;
	}
	http_stream(o, "text/event-stream", "X-Accel-Buffering: no\r\n");
	out_bytes(o, hello, sizeof hello - 1);
}

void http_events(struct call *c, const struct http_request *q)
{
	struct net *n = c->net;
	struct conn *conn = c->conn;
	uint32_t number;
	struct feed_wish w;
	int rc;

	c->later = !call_alone(c);
	if (c->later || !read_wish(c, q, &w))
		return;
	number = request_slot(c, STREAM_MS, format_head, (struct tag){ 0, 0 });
	if (!number)
		return;
	rc = feed_open(n, conn, slot_token(n, number), &w, &conn->feed);
	if (conn->feed) {
		conn->flags |= CONN_FEED;
		n->streams++;
	}
	if (rc == NOH_OK)
		return;
	call_session(c)->closing = true;
	net_answer(n, slot_token(n, number), 0, rc, noh_why(), strlen(noh_why()));
}
