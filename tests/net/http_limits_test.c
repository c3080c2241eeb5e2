/* tests/net/http_limits_test.c - clients of HTTP that are slow, many, large, or there when the server stops: each meets its
 * limit, and costs nobody else anything. On both io backends. */
#include "tests/net/http_kit.h"

#define L "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" L "\r\n"

static uint64_t since_ms(uint64_t *before)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	if (*before == 0)
		*before = now;
	return now - *before;
}

/* ── too slow ── */

static void a_header_that_does_not_come_is_answered_408(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int slow, silent, good;

		HTTP(&h, 1, .io = io, .http_header_ms = 200);
		slow = dial(&h.w);
		silent = dial(&h.w);
		good = dial(&h.w);
		(void)say(slow, "GET /healthz HTTP/1.1\r\nHost: loc");
		(void)say(good, GET("/healthz"));
		EXPECT_RESPONSE(good, 200, "ok");
		EXPECT_RESPONSE(slow, 408, "the header did not come within 200 ms");
		EXPECT(hears_the_end(slow));
		EXPECT(hears_the_end(silent));           /* who never said anything is told nothing */
		(void)say(good, GET("/healthz"));        /* between two requests there is more time */
		EXPECT_RESPONSE(good, 200, "ok");
		EXPECT_EQ(wire_number(&h.w, CLOSED_SLOW), 1);
		(void)close(slow);
		(void)close(silent);
		(void)close(good);
		wire_end(&h.w);
	}
}

/* Bytes that keep coming do not help: it is the whole that has a time. */
static void a_header_that_comes_a_byte_at_a_time_is_answered_408(void)
{
	struct http_wire h;
	struct pollfd p;
	int fd;

	HTTP(&h, 1, .http_header_ms = 300);
	fd = dial(&h.w);
	p = (struct pollfd){ fd, POLLIN, 0 };
	(void)say(fd, "GET /healthz HTTP/1.1\r\n" L "X: ");
	for (int i = 0; i < 500 && poll(&p, 1, 20) == 0; i++)
		(void)say(fd, "x");
	EXPECT_RESPONSE(fd, 408, "request_timeout");
	EXPECT(hears_the_end(fd));
	(void)close(fd);
	wire_end(&h.w);
}

static void a_body_that_stops_is_answered_408_and_one_that_keeps_its_rate_is_not(void)
{
	FOR_IO(io) {
		struct http_wire h;
		struct pollfd p;
		uint64_t began = 0;
		int slow, steady;

		HTTP(&h, 1, .io = io, .http_body_ms = 200, .http_min_rate = 1000);
		slow = dial(&h.w);
		steady = dial(&h.w);
		(void)say(slow, "POST /echo HTTP/1.1\r\n" L JSON "Content-Length: 1000\r\n\r\n{");
		(void)say(steady, "POST /echo HTTP/1.1\r\n" L JSON "Transfer-Encoding: chunked\r\n\r\n");
		p = (struct pollfd){ steady, POLLIN, 0 };
		while (since_ms(&began) < 800 && poll(&p, 1, 20) == 0)
			(void)say(steady, "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n");
		(void)say(steady, "0\r\n\r\n");
		EXPECT_RESPONSE(steady, 200, "0123456789");
		EXPECT_RESPONSE(slow, 408, "the body did not come within 200 ms");
		EXPECT(hears_the_end(slow));
		(void)close(slow);
		(void)close(steady);
		wire_end(&h.w);
	}
}

static void a_connection_without_a_request_is_closed_after_a_while(void)
{
	FOR_IO(io) {
		struct http_wire h;
		uint64_t began = 0;
		int fd;

		HTTP(&h, 1, .io = io, .http_idle_ms = 300);
		fd = dial(&h.w);
		(void)say(fd, GET("/healthz"));
		EXPECT_RESPONSE(fd, 200, "ok");
		(void)since_ms(&began);
		EXPECT(hears_the_end(fd));
		EXPECT(since_ms(&began) >= 250);
		EXPECT_EQ(wire_number(&h.w, CLOSED_SLOW), 0);
		(void)close(fd);
		wire_end(&h.w);
	}
}

static void who_waits_for_an_answer_is_not_idle(void)
{
	struct http_wire h;
	struct pollfd p;
	int fd;

	HTTP(&h, 1, .http_idle_ms = 200, .http_header_ms = 200, .http_body_ms = 200);
	fd = dial(&h.w);
	(void)say(fd, "POST /later HTTP/1.1\r\n" L "\r\n");
	EXPECT(keeps(&h.w, "later:http", "1"));
	p = (struct pollfd){ fd, POLLIN, 0 };
	EXPECT_EQ(poll(&p, 1, 700), 0);
	let_go(&h.w, "later:http");
	EXPECT_RESPONSE(fd, 200, "4 bytes");
	(void)close(fd);
	wire_end(&h.w);
}

static void who_takes_nothing_is_not_read_further_and_closed(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd, good, small = 4096;

		HTTP(&h, 1, .io = io, .timeout_ms = 300, .max_output_bytes = 65536);
		good = dial(&h.w);
		fd = dial(&h.w);
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
		for (int i = 0; i < 200; i++)                    /* 60 MB of answers: never taken, so never made */
			(void)say(fd, GET("/big"));
		(void)say(good, GET("/healthz"));
		EXPECT_RESPONSE(good, 200, "ok");
		EXPECT(comes_to(&h.w, CONNECTIONS, 1));
		EXPECT_EQ(wire_number(&h.w, CLOSED_SLOW), 1);
		EXPECT(wire_number(&h.w, COMMANDS) < 50);
		(void)close(fd);
		(void)close(good);
		wire_end(&h.w);
	}
}

/* Refused for its next request, it goes on to talk: that buys no time. */
static void who_talks_on_and_takes_nothing_is_closed(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd, small = 4096;

		HTTP(&h, 1, .io = io, .timeout_ms = 300, .http_header_ms = 200);
		fd = dial(&h.w);
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
		for (int i = 0; i < 40; i++)
			(void)say(fd, GET("/big"));
		EXPECT(comes_to(&h.w, COMMANDS, 40));
		for (int i = 0; i < 500 && wire_number(&h.w, CONNECTIONS); i++) {
			(void)send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			(void)poll(NULL, 0, 20);
		}
		EXPECT_EQ(wire_number(&h.w, CONNECTIONS), 0);    /* while it talked, not when it stopped */
		EXPECT(wire_number(&h.w, CLOSED_SLOW) >= 1);
		(void)close(fd);
		wire_end(&h.w);
	}
}

/* ── too many, too much ── */

static void one_client_too_many_is_told_so_but_for_the_unix_socket(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd[2], more;

		HTTP(&h, 2, .io = io, .max_connections = 2);
		for (int i = 0; i < 2; i++) {
			fd[i] = dial(&h.w);
			(void)say(fd[i], GET("/healthz"));
			EXPECT_RESPONSE(fd[i], 200, "ok");
		}
		more = dial(&h.w);
		EXPECT_RESPONSE(more, 503, "");
		EXPECT(hears_the_end(more));
		(void)close(more);
		h.w.local = true;
		EXPECT_ONCE(&h.w, GET("/healthz"), 200, "ok");
		(void)close(fd[0]);
		(void)close(fd[1]);
		wire_end(&h.w);
	}
}

static void limits_are_those_that_were_set(void)
{
	struct http_wire h;
	char head[3000];
	int len = snprintf(head, sizeof head, "GET /healthz HTTP/1.1\r\n" L);

	HTTP(&h, 1, .http_max_header_bytes = 1024, .http_max_headers = 9, .http_max_body_bytes = 5);
	EXPECT_ONCE(&h.w, "POST /echo HTTP/1.1\r\n" L JSON "Content-Length: 5\r\n\r\n12345", 200, "12345");
	EXPECT_ONCE(&h.w, "POST /echo HTTP/1.1\r\n" L JSON "Content-Length: 6\r\n\r\n123456", 413, "too_large");
	EXPECT_ONCE(&h.w, "POST /echo HTTP/1.1\r\n" L JSON "Transfer-Encoding: chunked\r\n\r\n3\r\n123\r\n3\r\n", 413, "too_large");
	for (int i = 0; i < 9; i++)
		len += snprintf(head + len, sizeof head - (size_t)len, "X: y\r\n");
	snprintf(head + len, sizeof head - (size_t)len, "\r\n");
	EXPECT_ONCE(&h.w, head, 431, "too_many_fields");
	snprintf(head, sizeof head, "GET /healthz HTTP/1.1\r\n" L "X: %01500d\r\n\r\n", 0);
	EXPECT_ONCE(&h.w, head, 431, "fields_too_large");
	snprintf(head, sizeof head, "GET /%01500d HTTP/1.1\r\n" L "\r\n", 0);
	EXPECT_ONCE(&h.w, head, 414, "uri_too_long");
	wire_end(&h.w);
}

static void a_pipeline_has_a_limit(void)
{
	FOR_IO(io) {
		struct http_wire h;
		int fd;

		HTTP(&h, 1, .io = io, .max_pipeline = 4);
		fd = dial(&h.w);
		for (int i = 0; i < 20; i++)
			(void)say(fd, "POST /later HTTP/1.1\r\n" L "\r\n");
		for (int i = 0; i < 5; i++) {
			EXPECT(keeps(&h.w, "later:http", "4"));
			let_go(&h.w, "later:http");
			for (int k = 0; k < 4; k++)
				EXPECT_RESPONSE(fd, 200, "4 bytes");
		}
		(void)close(fd);
		wire_end(&h.w);
	}
}

/* ── the end ── */

static void *stop_box(void *arg)
{
	struct http_wire *h = arg;

	EXPECT_EQ(noh_stop(h->w.box, 10000), NOH_OK);
	return NULL;
}

static bool is_stopping(void *arg)
{
	struct http_wire *h = arg;

	return load_relaxed(&h->w.box->server->stopping);
}

static void while_it_stops_a_request_is_answered_503_and_closed(void)
{
	FOR_IO(io) {
		struct http_wire h;
		struct response r;
		pthread_t stopper;
		int busy, kept;

		HTTP(&h, 2, .io = io);
		busy = dial(&h.w);
		kept = dial(&h.w);
		(void)say(kept, GET("/readyz"));
		EXPECT_RESPONSE(kept, 200, "ready");
		(void)say(busy, "POST /later HTTP/1.1\r\n" L "\r\n");    /* holds the stop back */
		EXPECT(keeps(&h.w, "later:http", "1"));
		pthread_create(&stopper, NULL, stop_box, &h);
		EXPECT(test_wait_until(is_stopping, &h, SOON));
		(void)say(kept, GET("/readyz"));
		EXPECT(hear_response(kept, &r, false) && r.status == 503);
		EXPECT(strstr(r.head, "\r\nConnection: close\r\n") && strstr(r.head, "\r\nRetry-After: 1\r\n"));
		EXPECT(strstr(r.body, "\"code\":\"stopping\""));
		EXPECT(hears_the_end(kept));
		vanish(busy);
		pthread_join(stopper, NULL);
		(void)close(kept);
		noh_close(h.w.box);
		EXPECT(access(h.w.path, F_OK) != 0);
	}
}

static void requests_are_counted_by_route(void)
{
	struct http_wire h;
	int fd;

	HTTP(&h, 2, .io = NOH_IO_AUTO);
	for (int i = 0; i < 4; i++) {
		fd = dial(&h.w);
		(void)say(fd, GET("/healthz") GET("/nowhere") GET("/user") GET("/healthz"));
		for (int k = 0; k < 4; k++)
			EXPECT_RESPONSE(fd, k == 1 ? 404 : 200, "");
		(void)close(fd);
	}
	EXPECT_EQ(net_http_calls(load_acquire(&h.w.box->server->nets[0]), 0), 8);
	EXPECT_EQ(net_http_calls(load_acquire(&h.w.box->server->nets[0]), 1), 0);
	EXPECT_EQ(net_http_calls(load_acquire(&h.w.box->server->nets[0]), 7), 4);
	EXPECT_EQ(net_stats(&h.w).commands, 16);
	EXPECT_EQ(net_stats(&h.w).errors, 4);
	wire_end(&h.w);
}

TEST_MAIN(
	TEST(a_header_that_does_not_come_is_answered_408),
	TEST(a_header_that_comes_a_byte_at_a_time_is_answered_408),
	TEST(a_body_that_stops_is_answered_408_and_one_that_keeps_its_rate_is_not),
	TEST(a_connection_without_a_request_is_closed_after_a_while),
	TEST(who_waits_for_an_answer_is_not_idle),
	TEST(who_takes_nothing_is_not_read_further_and_closed),
	TEST(who_talks_on_and_takes_nothing_is_closed),
	TEST(one_client_too_many_is_told_so_but_for_the_unix_socket),
	TEST(limits_are_those_that_were_set),
	TEST(a_pipeline_has_a_limit, "P11"),
	TEST(while_it_stops_a_request_is_answered_503_and_closed),
	TEST(requests_are_counted_by_route))
