/* tests/net/http_test.c - HTTP over real sockets: order, who may, what is refused and how it goes on. Both io backends. */
#include "tests/net/http_kit.h"

#include <openssl/sha.h>

#define L "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" L "\r\n"

/* ── requests and responses ── */

static void a_request_is_answered_and_the_connection_goes_on(void)
{
	FOR_IO(io) {
		struct http_wire h;
		struct response r;

		HTTP(&h, 2, .io = io);
		for (int way = 0; way < 2; way++) {
			h.w.local = way;
			int fd = dial(&h.w);

			(void)say(fd, GET("/healthz"));
			EXPECT_RESPONSE(fd, 200, "{\"status\":\"ok\"}\n");
			(void)say(fd, GET("/readyz?x=y"));
			EXPECT_RESPONSE(fd, 200, "{\"status\":\"ready\"}\n");
			(void)say(fd, "POST /echo HTTP/1.1\r\n" L JSON "Content-Length: 9\r\n\r\n{\"a\":[1]}");
			EXPECT_RESPONSE(fd, 200, "{\"a\":[1]}");
			(void)say(fd, "HEAD /healthz HTTP/1.1\r\n" L "\r\n" GET("/healthz"));
			EXPECT(hear_response(fd, &r, true) && r.status == 200 && r.len == 16);
			EXPECT_RESPONSE(fd, 200, "ok");          /* nothing of a body came before it */
			(void)close(fd);
		}
		wire_end(&h.w);
	}
}

static void every_response_has_what_keeps_browsers_out(void)
{
	struct http_wire h;
	struct response r;
	int fd;

	HTTP(&h, 1, .io = NOH_IO_AUTO);
	fd = dial(&h.w);
	(void)say(fd, GET("/user") GET("/nowhere"));
	for (int i = 0; i < 2; i++) {
		EXPECT(hear_response(fd, &r, false));
		EXPECT(strstr(r.head, "\r\nDate: ") && strstr(r.head, " GMT\r\n"));
		EXPECT(strstr(r.head, "\r\nX-Content-Type-Options: nosniff\r\n"));
		EXPECT(strstr(r.head, "\r\nCache-Control: no-store\r\n"));
		EXPECT(strstr(r.head, "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"));
		EXPECT(!strstr(r.head, "Access-Control"));
		EXPECT(!strstr(r.head, "Connection:"));
		EXPECT(i == 1 || strstr(r.head, "\r\nX-Own: yes\r\n"));
	}
	EXPECT(strstr(r.head, "\r\nContent-Type: application/problem+json\r\n"));
	EXPECT(test_text(r.body, "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":\"there is no /nowhere "
			 "here; /openapi.json tells what there is\",\"code\":\"not_found\"}\n", __FILE__, __LINE__));
	(void)close(fd);
	wire_end(&h.w);
}

static void responses_come_in_the_order_of_the_requests(void)
{
	FOR_IO(io) {
		struct http_wire h;
		struct response r;
		int fd;

		HTTP(&h, 2, .io = io);
		fd = dial(&h.w);
		(void)say(fd, "POST /later HTTP/1.1\r\n" L "\r\n" "HEAD /healthz HTTP/1.1\r\n" L "\r\n" GET("/nowhere")
			      "POST /later HTTP/1.1\r\n" L "\r\n" "GET /healthz HTTP/1.1\r\n" L "Connection: close\r\n\r\n");
		EXPECT(keeps(&h.w, "later:http", "2"));
		let_go(&h.w, "later:http");
		EXPECT_RESPONSE(fd, 200, "4 bytes");
		EXPECT(hear_response(fd, &r, true) && r.status == 200);
		EXPECT(!strstr(r.head, "Connection: close"));
		EXPECT_RESPONSE(fd, 404, "not_found");
		EXPECT_RESPONSE(fd, 200, "4 bytes");
		EXPECT(hear_response(fd, &r, false) && strstr(r.head, "Connection: close\r\n"));
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		wire_end(&h.w);
	}
}

static void a_request_that_wants_to_be_alone_waits_for_those_before_it(void)
{
	struct http_wire h;
	int fd;

	HTTP(&h, 2, .io = NOH_IO_AUTO);
	fd = dial(&h.w);
	(void)say(fd, "POST /later HTTP/1.1\r\n" L "\r\n" "POST /alone HTTP/1.1\r\n" L JSON
		      "Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n1\r\n \r\n0\r\n\r\n" GET("/healthz"));
	EXPECT(keeps(&h.w, "later:http", "1"));
	let_go(&h.w, "later:http");
	EXPECT_RESPONSE(fd, 200, "4 bytes");
	EXPECT_RESPONSE(fd, 200, "[] ");
	EXPECT_RESPONSE(fd, 200, "ok");
	(void)close(fd);
	wire_end(&h.w);
}

static void an_answer_leaves_when_it_is_on_disk(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd;

		http_wire_open(&h, (noh_options){ .workers = 2, .dir = "" }, (noh_listen_options){ .io = io });
		fd = dial(&h.w);
		for (int i = 0; i < 20; i++)
			(void)say(fd, "POST /incr HTTP/1.1\r\n" L "Content-Length: 4\r\n\r\nhits");
		for (int i = 0; i < 20; i++)
			EXPECT_RESPONSE(fd, 200, "24 bytes");
		(void)close(fd);
		wire_end(&h.w);
	}
}

static void old_clients_are_closed_unless_they_ask_to_be_kept(void)
{
	struct http_wire h;
	struct response r;
	int fd;

	HTTP(&h, 1, .io = NOH_IO_AUTO);
	fd = dial(&h.w);
	(void)say(fd, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	EXPECT(hear_response(fd, &r, false) && strstr(r.head, "\r\nConnection: keep-alive\r\n"));
	(void)say(fd, "GET /healthz HTTP/1.0\r\n\r\n");
	EXPECT(hear_response(fd, &r, false) && strstr(r.head, "\r\nConnection: close\r\n"));
	EXPECT(hears_the_end(fd));
	(void)close(fd);
	wire_end(&h.w);
}

static void half_a_connection_is_answered_to_the_end(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd;

		HTTP(&h, 2, .io = io);
		fd = dial(&h.w);
		(void)say(fd, "POST /later HTTP/1.1\r\n" L "\r\n" GET("/big") "GET /heal");
		(void)shutdown(fd, SHUT_WR);
		EXPECT(keeps(&h.w, "later:http", "1"));
		let_go(&h.w, "later:http");
		EXPECT_RESPONSE(fd, 200, "4 bytes");
		EXPECT_RESPONSE(fd, 200, "xxx");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		wire_end(&h.w);
	}
}

/* ── pieces ── */

/* All that a client hears until the end, without the dates. */
static size_t hear_all(int fd, char *to, size_t size)
{
	size_t got = hear(fd, to, size - 1), len = 0;

	for (size_t i = 0; i < got; ) {
		const char *lf = memchr(to + i, '\n', got - i);
		size_t line = lf ? (size_t)(lf + 1 - to) - i : got - i;

		if (strncmp(to + i, "Date: ", 6) != 0) {
			memmove(to + len, to + i, line);
			len += line;
		}
		i += line;
	}
	to[len] = 0;
	return len;
}

static void however_a_client_cuts_its_bytes_it_hears_the_same(void)
{
	static const char text[] =
		GET("/healthz")
		"POST /echo HTTP/1.1\r\n" L JSON "Content-Length: 2\r\n\r\n{}"
		"POST /nowhere HTTP/1.1\r\n" L "Content-Length: 3\r\n\r\nabc"
		"POST /echo HTTP/1.1\r\n" L JSON "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\n[1\r\n1\r\n]\r\n0\r\nT: x\r\n\r\n"
		"HEAD /readyz HTTP/1.1\r\n" L "\r\n"
		"POST /echo HTTP/1.1\r\n" L "Content-Length: 1\r\nContent-Length: 1\r\n\r\n1" GET("/healthz");

	FOR_IO(io) {
		static char one[8192], cut[8192];
		struct http_wire h;
		uint64_t before;

		HTTP(&h, 2, .io = io);
		h.w.local = true;
		for (size_t i = 0; i < sizeof text - 1; i++) {
			int fd = dial(&h.w);

			before = wire_number(&h.w, BYTES_IN);
			(void)say_bytes(fd, text, i);
			EXPECT(comes_to(&h.w, BYTES_IN, before + i));
			(void)say_bytes(fd, text + i, sizeof text - 1 - i);
			(void)hear_all(fd, i ? cut : one, sizeof one);
			if (i && strcmp(one, cut) != 0) {
				test_failed(__FILE__, __LINE__, "cut at %zu: \"%s\" instead of \"%s\"", i, cut, one);
				break;
			}
			(void)close(fd);
		}
		EXPECT(strstr(one, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
		EXPECT(strstr(one, "[1]") && strstr(one, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"));
		wire_end(&h.w);
	}
}

/* ── who may ── */

static noh_account account(const char *name, int role, const char *secret)
{
	noh_account a = { .name = name, .role = role };

	SHA256((const uint8_t *)secret, strlen(secret), a.token);
	return a;
}

static void a_token_says_who_asks_and_what_that_may(void)
{
	FOR_IO(io) {
		const noh_account list[] = { account("ann", NOH_USER, "secret"), account("root", NOH_ADMIN, "r") };
		struct http_wire h;
		struct response r;
		int fd;

		HTTP(&h, 2, .io = io);
		EXPECT_EQ(noh_set_accounts(h.w.box, list, 2), NOH_OK);
		EXPECT_ONCE(&h.w, GET("/healthz"), 200, "ok");
		fd = dial(&h.w);
		(void)say(fd, GET("/user"));
		EXPECT(hear_response(fd, &r, false) && r.status == 401);
		EXPECT(strstr(r.head, "\r\nWWW-Authenticate: Bearer realm=\"noh\"\r\n") && strstr(r.body, "no_token"));
		(void)say(fd, "GET /user HTTP/1.1\r\n" L "Authorization: bearer  secret\r\n\r\n");
		EXPECT_RESPONSE(fd, 200, "ann");
		(void)say(fd, "GET /admin HTTP/1.1\r\n" L "Authorization: Bearer secret\r\n\r\n");
		EXPECT_RESPONSE(fd, 403, "needs the role admin, and ann has the role user");
		(void)say(fd, "GET /admin HTTP/1.1\r\n" L "Authorization: Bearer r\r\n\r\n");
		EXPECT_RESPONSE(fd, 200, "root");
		(void)say(fd, GET("/user"));                     /* each request says it anew */
		EXPECT_RESPONSE(fd, 401, "no_token");
		(void)say(fd, "GET /user HTTP/1.1\r\n" L "Authorization: Bearer wrong\r\n\r\n");
		EXPECT(hear_response(fd, &r, false) && r.status == 401 && strstr(r.head, "error=\"invalid_token\"\r\n"));
		(void)say(fd, "GET /user HTTP/1.1\r\n" L "Authorization: Basic secret\r\n\r\n");
		EXPECT_RESPONSE(fd, 401, "bad_token");
		(void)say(fd, "GET /user HTTP/1.1\r\n" L "Authorization: Bearer \r\n\r\n");
		EXPECT_RESPONSE(fd, 401, "bad_token");
		(void)close(fd);
		h.w.local = true;                                /* its file is its owner's alone */
		EXPECT_ONCE(&h.w, GET("/admin"), 200, "default");
		EXPECT_ONCE(&h.w, "GET /admin HTTP/1.1\r\n" L "Authorization: Bearer secret\r\n\r\n", 403, "ann");
		wire_end(&h.w);
	}
}

static void names_that_are_not_this_machine_are_refused(void)
{
	struct http_wire h;

	HTTP(&h, 1, .io = NOH_IO_AUTO);
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: localhost:5012\r\n\r\n", 200, "ok");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n", 200, "ok");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 200, "ok");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, "ok");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: rebound.example:5012\r\n\r\n", 421, "rebound.example");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: localhost.example\r\n\r\n", 421, "wrong_host");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n", 400, "bad_host");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: localhost:5x\r\n\r\n", 400, "bad_host");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: [::1]x\r\n\r\n", 400, "bad_host");
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: localhost@evil\r\n\r\n", 400, "bad_host");
	h.w.local = true;
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/1.1\r\nHost: whatever\r\n\r\n", 200, "ok");
	wire_end(&h.w);
}

static void pages_of_other_origins_are_refused(void)
{
	struct http_wire h;
	struct response r;
	int fd;

	HTTP(&h, 1, .io = NOH_IO_AUTO);
	EXPECT_ONCE(&h.w, "GET /user HTTP/1.1\r\n" L "Origin: http://localhost\r\n\r\n", 200, "");
	EXPECT_ONCE(&h.w, "GET /user HTTP/1.1\r\nHost: localhost:99\r\nOrigin: http://localhost:99\r\n\r\n", 200, "");
	EXPECT_ONCE(&h.w, "GET /user HTTP/1.1\r\nHost: localhost:99\r\nOrigin: http://localhost:98\r\n\r\n", 403, "foreign_origin");
	EXPECT_ONCE(&h.w, "GET /user HTTP/1.1\r\n" L "Origin: http://evil.example\r\n\r\n", 403, "foreign_origin");
	EXPECT_ONCE(&h.w, "GET /user HTTP/1.1\r\n" L "Origin: null\r\n\r\n", 403, "foreign_origin");
	EXPECT_ONCE(&h.w, "GET /user HTTP/1.1\r\n" L "Origin:\r\n\r\n", 403, "foreign_origin");
	EXPECT_ONCE(&h.w, "POST /echo HTTP/1.1\r\n" L "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, "not_json");
	fd = dial(&h.w);                                         /* what a browser asks before it sends JSON */
	(void)say(fd, "OPTIONS /echo HTTP/1.1\r\n" L "Access-Control-Request-Method: POST\r\n\r\n");
	EXPECT(hear_response(fd, &r, false) && r.status == 405 && !strstr(r.head, "Access-Control"));
	(void)close(fd);
	wire_end(&h.w);
}

/* ── refusals ── */

static void what_cannot_be_is_refused_by_its_own_status(void)
{
	struct http_wire h;
	struct response r;
	int fd;

	HTTP(&h, 1, .io = NOH_IO_AUTO);
	fd = dial(&h.w);
	(void)say(fd, "DELETE /healthz HTTP/1.1\r\n" L "\r\n");
	EXPECT(hear_response(fd, &r, false) && r.status == 405 && strstr(r.head, "\r\nAllow: GET, HEAD\r\n"));
	(void)say(fd, "BREW /healthz HTTP/1.1\r\n" L "\r\n");
	EXPECT_RESPONSE(fd, 501, "BREW");
	(void)say(fd, GET("/Healthz") GET("/healthz/") GET("//healthz") GET("/") GET("/..%2fhealthz"));
	for (int i = 0; i < 5; i++)
		EXPECT_RESPONSE(fd, 404, "not_found");
	(void)say(fd, "POST /echo HTTP/1.1\r\n" L JSON "\r\n");
	EXPECT_RESPONSE(fd, 411, "length_required");
	(void)say(fd, "POST /echo HTTP/1.1\r\n" L "Content-Length: 2\r\n\r\n{}");
	EXPECT_RESPONSE(fd, 415, "not_json");
	(void)say(fd, "POST /echo HTTP/1.1\r\n" L "Content-Type: application/jsonx\r\nContent-Length: 2\r\n\r\n{}");
	EXPECT_RESPONSE(fd, 415, "not_json");
	(void)say(fd, "POST /echo HTTP/1.1\r\n" L "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}");
	EXPECT_RESPONSE(fd, 200, "{}");
	(void)say(fd, "POST /echo HTTP/1.1\r\n" L JSON "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}");
	EXPECT_RESPONSE(fd, 415, "content_encoding");
	(void)say(fd, GET("/%3Cscript%3E%22"));                  /* what a client says is shown as text */
	EXPECT_RESPONSE(fd, 404, "<script>\\\"");
	(void)close(fd);
	EXPECT_ONCE(&h.w, "GET /healthz HTTP/2.0\r\n" L "\r\n", 505, "http_version");
	EXPECT_ONCE(&h.w, "POST /echo HTTP/1.1\r\n" L "Expect: magic\r\n\r\n", 417, "expectation");
	EXPECT_ONCE(&h.w, "*1\r\n$4\r\nPING\r\n", 400, "bad_request");
	EXPECT_EQ(wire_number(&h.w, COMMANDS), 16);
	wire_end(&h.w);
}

static void nothing_behind_a_request_that_makes_no_sense_is_run(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd;

		HTTP(&h, 2, .io = io);
		fd = dial(&h.w);
		(void)say(fd, GET("/healthz") "POST /incr HTTP/1.1\r\n" L "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
			      "POST /incr HTTP/1.1\r\n" L "Content-Length: 1\r\n\r\nx");
		EXPECT_RESPONSE(fd, 200, "ok");
		EXPECT_RESPONSE(fd, 400, "bad_request");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		EXPECT_EQ(wire_number(&h.w, COMMANDS), 2);
		wire_end(&h.w);
	}
}

static void a_body_that_was_refused_is_passed_over(void)
{
	FOR_IO(io) {
		static char body[500000];
		struct http_wire h;
		char head[200];
		int fd;

		HTTP(&h, 1, .io = io, .http_max_body_bytes = sizeof body);
		memset(body, 'x', sizeof body);
		snprintf(head, sizeof head, "POST /nowhere HTTP/1.1\r\n" L "Content-Length: %zu\r\n\r\n", sizeof body);
		fd = dial(&h.w);
		(void)say(fd, head);
		(void)say_bytes(fd, body, sizeof body);
		(void)say(fd, "GET /healthz HTTP/1.1\r\n" L "Content-Length: 7\r\n\r\nuseless" GET("/readyz"));
		EXPECT_RESPONSE(fd, 404, "not_found");
		EXPECT_RESPONSE(fd, 200, "ok");
		EXPECT_RESPONSE(fd, 200, "ready");
		(void)close(fd);
		wire_end(&h.w);
	}
}

/* A socket closed with bytes unread resets the connection, and the answer may be lost with it. */
static void who_is_refused_in_the_middle_of_its_words_hears_why(void)
{
	FOR_IO(io) {
		static char body[4 << 20];
		struct http_wire h;
		int fd;

		HTTP(&h, 2, .io = io, .http_max_body_bytes = 1000);
		for (int i = 0; i < 10; i++) {
			fd = dial(&h.w);
			(void)say(fd, "POST /echo HTTP/1.1\r\n" L JSON "Content-Length: 4194304\r\n\r\n");
			(void)say_bytes(fd, body, sizeof body);
			EXPECT_RESPONSE(fd, 413, "too_large");
			EXPECT(hears_the_end(fd));
			(void)close(fd);
		}
		EXPECT(comes_to(&h.w, CONNECTIONS, 0));
		wire_end(&h.w);
	}
}

static void a_body_is_sent_when_it_is_asked_for(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd;

		HTTP(&h, 1, .io = io, .http_max_body_bytes = 1000);
		fd = dial(&h.w);
		(void)say(fd, "POST /later HTTP/1.1\r\n" L "\r\n");      /* the invitation stands in its place */
		(void)say(fd, "POST /echo HTTP/1.1\r\n" L JSON "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
		EXPECT(keeps(&h.w, "later:http", "1"));
		let_go(&h.w, "later:http");
		EXPECT_RESPONSE(fd, 200, "4 bytes");
		EXPECT_HEARS(fd, "HTTP/1.1 100 Continue\r\n\r\n");
		(void)say(fd, "{}");
		EXPECT_RESPONSE(fd, 200, "{}");
		(void)close(fd);
		fd = dial(&h.w);                                 /* refused: the body may come or not, so that is the end */
		(void)say(fd, "POST /nowhere HTTP/1.1\r\n" L "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
		EXPECT_RESPONSE(fd, 404, "not_found");
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		EXPECT_ONCE(&h.w, "POST /echo HTTP/1.1\r\n" L JSON "Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n", 413, "too_large");
		wire_end(&h.w);
	}
}

TEST_MAIN(
	TEST(a_request_is_answered_and_the_connection_goes_on, "RT-25"),
	TEST(every_response_has_what_keeps_browsers_out),
	TEST(responses_come_in_the_order_of_the_requests),
	TEST(a_request_that_wants_to_be_alone_waits_for_those_before_it),
	TEST(an_answer_leaves_when_it_is_on_disk, "P5"),
	TEST(old_clients_are_closed_unless_they_ask_to_be_kept),
	TEST(half_a_connection_is_answered_to_the_end),
	TEST(however_a_client_cuts_its_bytes_it_hears_the_same),
	TEST(a_token_says_who_asks_and_what_that_may),
	TEST(names_that_are_not_this_machine_are_refused),
	TEST(pages_of_other_origins_are_refused),
	TEST(what_cannot_be_is_refused_by_its_own_status),
	TEST(nothing_behind_a_request_that_makes_no_sense_is_run),
	TEST(a_body_that_was_refused_is_passed_over),
	TEST(who_is_refused_in_the_middle_of_its_words_hears_why),
	TEST(a_body_is_sent_when_it_is_asked_for))
