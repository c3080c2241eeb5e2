/* net/http_metrics.c - GET /metrics: every number of the box, as Prometheus reads it.
 *
 * Who may: through the Unix socket, and where only this machine can reach the server, anybody; elsewhere a user, if
 * there are users. The numbers tell of no actor, but of the business: how much of what.
 * They are told at once, on disk or not: an operator whose disk hangs must be able to see that.
 */
#include "net/http.h"

#include "net/net.h"

#include <string.h>
#include <strings.h>

static bool may_look(struct call *c, const struct http_request *q)
{
	return q->local || c->net->server->loopback || call_session(c)->role != SESSION_NOBODY;
}

/* "q=0.5" behind a media type, in thousandths; 1000 if nothing is said. */
static uint32_t quality(const char *at, const char *end)
{
	uint32_t unit = 1000, sum = 0;

	for (; at + 2 < end; at++)
		if ((at[-1] == ';' || at[-1] == ' ') && (*at | 32) == 'q' && at[1] == '=')
			break;
	if (at + 2 >= end)
		return 1000;
	for (at += 2; at < end && unit; at++) {
		if (*at >= '0' && *at <= '9') {
			sum += (uint32_t)(*at - '0') * unit;
			unit /= 10;
		} else if (*at != '.') {
			break;
		}
	}
	return sum;
}

/* How much a type is wanted, of a list as Accept has it; 0: not at all, or it is not in it. */
static uint32_t wanted(const struct arg *accept, const char *type, uint32_t len)
{
	const char *at = accept->at, *end = at + accept->len;
	uint32_t most = 0;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;

		while (at < stop && (*at == ' ' || *at == '\t'))
			at++;
		if ((size_t)(stop - at) >= len && strncasecmp(at, type, len) == 0 &&
		    (at + len == stop || at[len] == ';' || at[len] == ' ')) {
			uint32_t q = at + len == stop ? 1000 : quality(at + len + 1, stop);

			most = q > most ? q : most;
		}
		at = comma ? comma + 1 : end;
	}
	return most;
}
#define WANTED(accept, type) wanted((accept), (type), sizeof (type) - 1)

static int add(void *user, const char *text, size_t len)
{
	struct out *o = user;

	out_bytes(o, text, len);
	return o->failed ? NOH_ENOMEM : NOH_OK;
}

void http_metrics(struct call *c, const struct http_request *q)
{
	uint32_t open = WANTED(&q->accept, "application/openmetrics-text");
	bool as_open = open && open >= WANTED(&q->accept, "text/plain");
	struct out text = { .bytes = NULL };

	if (!may_look(c, q)) {
		http_problem(call_out(c), 401, "no_token", "WWW-Authenticate: Bearer realm=\"noh\"\r\n",
			     "from another machine /metrics needs a user: Authorization: Bearer TOKEN (noh user add gives one)");
		return;
	}
	if (noh_metrics(call_box(c), as_open ? NOH_OPENMETRICS : NOH_PROMETHEUS, add, &text) != NOH_OK)
		http_problem(call_out(c), 503, "out_of_memory", "Retry-After: 1\r\n", "no memory for the metrics");
	else
		http_reply(call_out(c), 200, as_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
						     : "text/plain; version=0.0.4; charset=utf-8", "", text.bytes, text.len);
	out_close(&text);
}
