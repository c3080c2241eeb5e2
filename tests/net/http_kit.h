/* tests/net/http_kit.h - a box that listens for HTTP, with routes of the test beside the server's own kind, and clients
 * that are plain sockets: wire_kit.h gives the rest.
 *
 * Routes: POST /echo gives its JSON back; POST /later answers when later:http is told to; POST /incr adds one to the
 * counter named by its body, and is answered when that is on disk; GET /big is a large page; roles: /user, /admin.
 */
#ifndef NOH_TESTS_NET_HTTP_KIT_H
#define NOH_TESTS_NET_HTTP_KIT_H

#include "box/box.h"
#include "net/net.h"
#include "tests/net/wire_kit.h"

/* ── the routes ── */

static inline void run_echo(struct call *c, const struct http_request *q)
{
	http_reply(call_out(c), 200, "application/json", "", q->body.at, q->body.len);
}

static inline void run_name(struct call *c, const struct http_request *q)
{
	(void)q;
	http_reply(call_out(c), 200, "text/plain", "X-Own: yes\r\n", call_session(c)->user, strlen(call_session(c)->user));
}

static inline void run_big(struct call *c, const struct http_request *q)
{
	enum { SIZE = 300000 };
	char *page = malloc(SIZE);

	(void)q;
	memset(page, 'x', SIZE);
	http_reply(call_out(c), 200, "text/plain", "", page, SIZE);
	free(page);
}

static inline void write_answer(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	char body[64];

	(void)n;
	(void)tag;
	if (parts[0].status != NOH_OK) {
		http_problem(o, 504, "timeout", "", "status %d", parts[0].status);
		return;
	}
	http_reply(o, 200, "text/plain", "", body, (size_t)snprintf(body, sizeof body, "%u bytes", parts[0].len));
}

static inline void run_later(struct call *c, const struct http_request *q)
{
	struct request r = { .op = REQUEST_CALL, .id = "later:http", .id_len = 10, .kind = LATER_WAIT, .timeout_ms = 30000 };

	(void)q;
	call_actors(c, &r, 1, write_answer, (struct tag){ 0, 0 });
}

static inline void run_incr(struct call *c, const struct http_request *q)
{
	const int64_t one = 1;
	struct request r = { .op = REQUEST_CALL, .type = TYPE_COUNTER, .id = q->body.at, .id_len = q->body.len,
			     .kind = NOH_COUNTER_ADD, .body = &one, .len = sizeof one };

	call_actors(c, &r, 1, write_answer, (struct tag){ 0, 0 });
}

/* Looks at what those before it did, so it waits for them. */
static inline void run_alone(struct call *c, const struct http_request *q)
{
	if (!call_alone(c)) {
		c->later = true;
		return;
	}
	run_echo(c, q);
}

static const struct http_route kit_routes[] = {
	{ "/healthz", "GET HEAD", SESSION_NOBODY, false, http_healthz, "healthz" },
	{ "/readyz", "GET HEAD", SESSION_NOBODY, false, http_readyz, "readyz" },
	{ "/echo", "POST", SESSION_NOBODY, true, run_echo, "echo" },
	{ "/alone", "POST", SESSION_NOBODY, true, run_alone, "alone" },
	{ "/later", "POST", SESSION_NOBODY, false, run_later, "later" },
	{ "/incr", "POST", SESSION_NOBODY, false, run_incr, "incr" },
	{ "/big", "GET", SESSION_NOBODY, false, run_big, "big" },
	{ "/user", "GET POST", NOH_USER, false, run_name, "user" },
	{ "/admin", "GET", NOH_ADMIN, false, run_name, "admin" },
	{ .path = NULL },
};

/* ── the server ── */

/* HTTP on w->port, or on the Unix socket if w->local; RESP through w->resp. */
struct http_wire {
	struct wire w;
	char        resp[108];
};

static inline int http_listen(struct http_wire *h, noh_listen_options l)
{
	int rc = NOH_ESYSTEM;

	l.resp_port = -1;
	l.unix_path = h->resp;
	l.http_unix_path = h->w.path;
	for (int tries = 0; tries < 5 && rc == NOH_ESYSTEM; tries++) {
		h->w.port = l.http_port = free_port();
		rc = noh_listen(h->w.box, &l);
	}
	return rc;
}

static inline void http_wire_open(struct http_wire *h, noh_options o, noh_listen_options l)
{
	h->w.dir[0] = 0;
	h->w.local = false;
	wire_socket_path(h->w.path);
	wire_socket_path(h->resp);
	o.log = kit_log;
	o.unpinned = true;
	o.max_actors = 100000;
	if (o.dir)
		o.dir = fresh_dir(h->w.dir, sizeof h->w.dir);
	h->w.box = kit_open(&o, TYPES(noh_counter_type(), noh_inventory_type(), &later_type, &jam_type, &queue_type));
	if (!EXPECT_EQ(http_listen(h, l), NOH_OK))
		printf("  %s\n", noh_why());
	h->w.box->server->routes = kit_routes;
	EXPECT_EQ(noh_start(h->w.box), NOH_OK);
}
#define HTTP(h, n, ...) http_wire_open((h), (noh_options){ .workers = (n) }, (noh_listen_options){ __VA_ARGS__ })

/* ── clients ── */

struct response {
	int    status;
	size_t len;                        /* Content-Length; of HEAD as well */
	char   head[4096];
	char   body[4096];                 /* its beginning                   */
};

/* False: an end before all of it was there. head_only: the request was HEAD. */
static inline bool hear_response(int fd, struct response *r, bool head_only)
{
	size_t got = 0;
	const char *length;
	char byte;

	memset(r, 0, sizeof *r);
	while (!strstr(r->head, "\r\n\r\n")) {
		if (got + 1 == sizeof r->head || take(fd, r->head + got, 1) != 1)
			return false;
		got++;
	}
	(void)sscanf(r->head, "HTTP/1.1 %d", &r->status);
	length = strstr(r->head, "Content-Length: ");
	r->len = length ? strtoul(length + 16, NULL, 10) : 0;
	for (size_t i = 0; !head_only && i < r->len; i++) {
		if (take(fd, i < sizeof r->body - 1 ? r->body + i : &byte, 1) != 1)
			return false;
	}
	return true;
}

static inline bool test_response(int fd, int status, const char *body_part, const char *file, int line)
{
	struct response r;

	if (!hear_response(fd, &r, false)) {
		test_failed(file, line, "expected %d, got an end: \"%.200s\"", status, r.head);
		return false;
	}
	if (r.status == status && strstr(r.body, body_part))
		return true;
	test_failed(file, line, "expected %d with \"%s\", got \"%.300s%.300s\"", status, body_part, r.head, r.body);
	return false;
}
#define EXPECT_RESPONSE(fd, status, part) test_response((fd), (status), (part), __FILE__, __LINE__)

/* A connection of its own, one request, one response; closed by whom it may. */
static inline bool test_once(struct wire *w, const char *request, int status, const char *part, const char *file, int line)
{
	int fd = dial(w);
	bool ok;

	(void)say(fd, request);
	ok = test_response(fd, status, part, file, line);
	(void)close(fd);
	return ok;
}
#define EXPECT_ONCE(w, request, status, part) test_once((w), (request), (status), (part), __FILE__, __LINE__)

#endif
