/* net/http.h - one HTTP request, from its route to its response.
 *
 * A handler looks at the request and does one of these, exactly once, as a command's function does (net/call.h):
 *   - writes the response into call_out(c) with http_reply or http_problem
 *   - call_actors or call_step; their `format` writes it, with the same two, when the actors have answered
 * Before it runs, the transport (net/http_conn.c) has read the whole body and checked framing, limits, Host and Origin,
 * who asks (role), the method and the content type: a handler parses the body, and answers.
 * It may set c->later after `if (!call_alone(c))`: then it is called again, with the same request, when whatever
 * this connection asked before is answered.
 *
 * Owns     nothing: texts of the request are the connection's, and valid until the handler returns.
 * Threads  the worker of the connection.
 */
#ifndef NOH_NET_HTTP_H
#define NOH_NET_HTTP_H

#include "net/call.h"

struct http_request {                    /* len 0: not given                                                   */
	struct arg method, path, query;  /* path: percent-decoded, checked, begins with '/'; query: raw, behind '?' */
	struct arg body;                 /* whole (chunks joined)                                              */
	struct arg host, origin, authorization, content_type, accept, traceparent, tracestate, last_event_id;
	struct arg idempotency_key;      /* at NULL: not given; an empty one is wrong                          */
	bool local;                      /* through the Unix socket                                            */
};
typedef void http_fn(struct call *c, const struct http_request *q);

struct http_route {
	const char *path;                /* exact: "/actor/send"                                               */
	const char *methods;             /* "GET HEAD" or "POST": others get 405 with Allow                    */
	int         role;                /* SESSION_NOBODY: anybody; NOH_USER, NOH_DEVELOPER, NOH_ADMIN        */
	bool        json;                /* the body must be application/json: else 415                        */
	http_fn    *run;
	const char *op;                  /* operation id: for metrics, logs and /openapi.json                  */
};

/* net/http_routes.c: ended by path NULL. */
extern const struct http_route http_routes[];
uint32_t http_route_total(const struct http_route *routes);
bool http_route_is(const struct http_route *r, const char *path, uint32_t len);
const struct http_route *http_route_find(const struct http_route *routes, const char *path, uint32_t len);   /* NULL: none */

/* struct out.proto of an HTTP connection: what the response must know of its request. */
enum { HTTP_PROTO = 0x80, HTTP_HEAD = 1, HTTP_CLOSE = 2, HTTP_1_0 = 4 };

/* A whole response. headers: further lines, each ended by \r\n, or "". Content-Length, Date, Connection and security
 * headers are added (Cache-Control and Content-Security-Policy only if `headers` does not bring its own).
 * content_type NULL: no body, and no type of it. */
void http_reply(struct out *o, int status, const char *content_type, const char *headers, const void *body, size_t len);

/* The head of one that goes on until the connection ends: proto says HTTP_CLOSE. */
void http_stream(struct out *o, const char *content_type, const char *headers);

/* application/problem+json (RFC 9457): {"type":"about:blank","title":...,"status":...,"detail":...,"code":...}.
 * code: stable, of the kind "not_found". The sentence is escaped, and cut at HTTP_DETAIL_MAX bytes. */
enum { HTTP_DETAIL_MAX = 400 };
void http_problem(struct out *o, int status, const char *code, const char *headers, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

const char *http_status_text(int status);

/* What the clock says, for Date: once a pass. */
void http_clock(uint64_t wall_ms);

/* Requests that reached the route with this number in http_routes, of all workers. */
uint64_t net_http_calls(struct net *n, uint32_t index);

/* ── handlers: net/http_health.c ── */
http_fn http_healthz, http_readyz;

/* ── net/http_metrics.c ── */
http_fn http_metrics;

/* ── net/http_config.c ── */
http_fn http_config_reload;

/* ── net/http_trace.c ── */
http_fn http_trace;

/* ── net/http_events.c ── */
http_fn http_events;

#endif
