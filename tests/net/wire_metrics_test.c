/* tests/net/wire_metrics_test.c - what clients did is what the metrics say; and who may read them. */
#include "tests/box/metrics_kit.h"
#include "tests/net/wire_kit.h"

#include <openssl/sha.h>

/* One request, and all that comes back; its connection ends with it. */
static const char *fetch(int port, const char *head)
{
	static char page[1 << 18];
	struct wire at = { .port = port };
	int fd = dial(&at);
	size_t got = 0;

	EXPECT(say(fd, head) && say(fd, "\r\n\r\n"));
	for (ssize_t n; got + 1 < sizeof page && (n = take(fd, page + got, sizeof page - 1 - got)) > 0; )
		got += (size_t)n;
	page[got] = 0;
	(void)close(fd);
	return page;
}

static bool starts(const char *page, const char *with)
{
	return strncmp(page, with, strlen(with)) == 0;
}

static bool is_alone(void *w)
{
	scrape(((struct wire *)w)->box);
	return said("noh_connections{protocol=\"http\"}") == 0 && said("noh_connections{protocol=\"resp\"}") == 1;
}

static void requests_are_counted_by_protocol_and_operation(void)
{
	struct wire w;

	FOR_IO(io) {
		int http = free_port();

		WIRE_ON_DISK(&w, 2, .io = io, .http_port = http);
		int fd = dial(&w);

		for (int i = 0; i < 5; i++)
			EXPECT_ASK(fd, "INCR k", ":");
		EXPECT_ASK(fd, "INCRBY k 3 IDEM once", ":8");
		EXPECT_ASK(fd, "INCRBY k 3 IDEM once", ":8");
		EXPECT_ASK(fd, "MSET a 1 b 2 IDEM twice", "+OK");
		EXPECT_ASK(fd, "MSET a 1 b 2 IDEM twice", "+OK");
		EXPECT_ASK(fd, "NOSUCH", "-ERR");
		EXPECT(starts(fetch(http, "GET /healthz HTTP/1.0"), "HTTP/1.1 200 "));
		EXPECT(test_wait_until(is_alone, &w, SOON));
		EXPECT_EQ(said("noh_requests_total{protocol=\"resp\",op=\"incr\"}"), 5);
		EXPECT_EQ(said("noh_requests_total{protocol=\"resp\",op=\"incrby\"}"), 2);
		EXPECT_EQ(said("noh_requests_total{protocol=\"resp\",op=\"get\"}"), -1);         /* nobody did */
		EXPECT_EQ(said("noh_requests_total{protocol=\"http\",op=\"healthz\"}"), 1);
		EXPECT_EQ(said("noh_idempotent_replays_total{protocol=\"resp\"}"), 2);
		EXPECT_EQ(said("noh_idempotent_replays_total{protocol=\"library\"}"), 0);
		EXPECT_EQ(said("noh_request_errors_total"), 1);
		EXPECT_EQ(said("noh_connections_accepted_total"), 2);
		EXPECT(said("noh_network_bytes_total{direction=\"in\"}") > 100);
		EXPECT(said("noh_network_bytes_total{direction=\"out\"}") > 50);
		EXPECT_EQ(said("noh_io_errors_total{op=\"receive\"}"), 0);
		/* Of a client that waits for each answer nearly all are measured, and the first for sure. */
		double measured = said("noh_request_duration_seconds_count{protocol=\"resp\",op=\"incr\"}");

		EXPECT(measured >= 1 && measured <= 5);
		EXPECT(said("noh_request_duration_seconds_sum{protocol=\"resp\",op=\"incr\"}") > 0);
		EXPECT(said("noh_invoke_duration_seconds_count{type=\"counter\"}") >= measured);
		(void)close(fd);
		wire_end(&w);
	}
}

/* Its client is gone before the answer comes; the next one must be measured all the same. */
static bool is_measured(void *arg)
{
	struct wire *w = arg;
	int fd = dial(w);

	EXPECT_ASK(fd, "PING", "+PONG");
	(void)close(fd);
	scrape(w->box);
	return said("noh_request_duration_seconds_count{protocol=\"resp\",op=\"ping\"}") >= 1;
}

static void a_client_that_vanishes_leaves_no_watch_running(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .call_ms = 300);
		int fd = dial(&w);

		EXPECT(say(fd, "ACTOR.INVOKE later:a 0 ''\r\n"));
		EXPECT(comes_to(&w, COMMANDS, 1));
		vanish(fd);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		EXPECT(test_wait_until(is_measured, &w, SOON));
		wire_end(&w);
	}
}

static void the_text_is_served(void)
{
	struct wire w;
	int http = free_port();
	const char *page;

	WIRE(&w, 2, .http_port = http);
	page = fetch(http, "GET /metrics HTTP/1.0");
	EXPECT(starts(page, "HTTP/1.1 200 "));
	EXPECT(strstr(page, "text/plain; version=0.0.4; charset=utf-8\r\n") != NULL);
	EXPECT(strstr(page, "\n# TYPE noh_actors_active gauge\nnoh_actors_active{type=\"counter\"} 0\n") != NULL);
	page = fetch(http, "GET /metrics HTTP/1.0\r\nAccept: text/plain;q=0.3, application/openmetrics-text; version=1.0.0;q=0.7");
	EXPECT(strstr(page, "application/openmetrics-text; version=1.0.0; charset=utf-8\r\n") != NULL);
	EXPECT(strcmp(page + strlen(page) - 6, "# EOF\n") == 0);
	page = fetch(http, "GET /metrics HTTP/1.0\r\nAccept: text/plain, application/openmetrics-text;q=0.7");
	EXPECT(strstr(page, "# EOF") == NULL);
	page = fetch(http, "GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;q=0.000");
	EXPECT(strstr(page, "# EOF") == NULL);
	page = fetch(http, "GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-texts, ,;q=, q=1;=");
	EXPECT(strstr(page, "# EOF") == NULL);
	page = fetch(http, "HEAD /metrics HTTP/1.0");
	EXPECT(starts(page, "HTTP/1.1 200 ") && strcmp(page + strlen(page) - 4, "\r\n\r\n") == 0);
	EXPECT(starts(fetch(http, "POST /metrics HTTP/1.0"), "HTTP/1.1 405 "));
	wire_end(&w);
}

static void from_another_machine_it_takes_a_user(void)
{
	struct wire w;
	noh_account ann = { .name = "ann", .role = NOH_USER };
	int http = free_port();

	(void)SHA256((const unsigned char *)"secret", 6, ann.token);
	WIRE(&w, 1, .http_port = http, .bind = "0.0.0.0");       /* reached by any machine */
	EXPECT(starts(fetch(http, "GET /metrics HTTP/1.0"), "HTTP/1.1 200 "));   /* nobody has an account */
	EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
	EXPECT(starts(fetch(http, "GET /metrics HTTP/1.0"), "HTTP/1.1 401 "));
	EXPECT(strstr(fetch(http, "GET /metrics HTTP/1.0"), "WWW-Authenticate: Bearer") != NULL);
	EXPECT(starts(fetch(http, "GET /metrics HTTP/1.0\r\nAuthorization: Bearer wrong"), "HTTP/1.1 401 "));
	EXPECT(starts(fetch(http, "GET /metrics HTTP/1.0\r\nAuthorization: Bearer secret"), "HTTP/1.1 200 "));
	wire_end(&w);
	http = free_port();
	WIRE(&w, 1, .http_port = http);                          /* by this one alone */
	EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
	EXPECT(starts(fetch(http, "GET /metrics HTTP/1.0"), "HTTP/1.1 200 "));
	wire_end(&w);
}

static void info_tells_the_same(void)
{
	struct wire w;
	char text[8192];

	WIRE_ON_DISK(&w, 1, .max_pipeline = 100);
	int fd = dial(&w);

	EXPECT_ASK(fd, "INCR k", ":1");
	EXPECT_ASK(fd, "INCRBY k 3 IDEM once", ":4");
	EXPECT_ASK(fd, "INCRBY k 3 IDEM once", ":4");
	(void)say(fd, "INFO types noh\r\nQUIT\r\n");
	hear(fd, text, sizeof text - 1);
	EXPECT(strstr(text, "\ntype_counter:active=1,stored=1,accepted=3,processed=3,failed=0,refused=0,dropped=0,coalesced=0,"
			    "waiting=0,restarts=0,quarantined=0,replays=1,refused_rate=0,rests=0,resting=0,waiting_turn=0\r\n") != NULL);
	EXPECT(strstr(text, "\nstore_bytes:") != NULL && strstr(text, "\ndurable_lag_us:0\r\n") != NULL);
	(void)close(fd);
	wire_end(&w);
}

TEST_MAIN(
	TEST(requests_are_counted_by_protocol_and_operation),
	TEST(a_client_that_vanishes_leaves_no_watch_running),
	TEST(the_text_is_served),
	TEST(from_another_machine_it_takes_a_user),
	TEST(info_tells_the_same))
