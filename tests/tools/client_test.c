/* tests/tools/client_test.c - the command line's HTTP client: which server a URL means, what counts as an answer, and how
 * each way of not getting one is told. The other side is a thread that says what it was told to say. */
#include "tests/lib/test.h"
#include "tools/cli.h"
#include "tools/client.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ── which server ── */

static void a_url_is_taken_apart(void)
{
	static const struct { const char *url, *host, *port; } good[] = {
		{ "http://localhost:5012", "localhost", "5012" }, { "http://10.0.0.1", "10.0.0.1", "5012" },
		{ "http://[::1]:80/", "::1", "80" }, { "HTTP://a.b:65535", "a.b", "65535" },
	};
	static const char *const bad[] = { "localhost:5012", "https://x:1", "http://", "http://:5012", "http://a:0", "http://a:65536",
					   "http://a:b", "http://a:1/path", "http://u@h:1", "http://[::1", "http://[::1]x",
					   "http://a b:1", "http://a:123456789", "ftp://a" };
	struct client c;
	char why[256];

	for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
		EXPECT(client_set_url(&c, good[i].url, why, sizeof why));
		EXPECT(strcmp(c.host, good[i].host) == 0 && strcmp(c.port, good[i].port) == 0);
	}
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (!EXPECT(!client_set_url(&c, bad[i], why, sizeof why)))
			fprintf(stderr, "%s was taken for a URL\n", bad[i]);
	EXPECT(!client_set_url(&c, "https://x:1", why, sizeof why) && strstr(why, "TLS"));
}

static void a_token_cannot_carry_a_header(void)
{
	struct client c = { .timeout_ms = 1 };
	char longer[CLIENT_TOKEN_MAX + 2];

	EXPECT(client_set_token(&c, "abc.DEF-123"));
	EXPECT(!client_set_token(&c, "abc\r\nX: y"));
	EXPECT(!client_set_token(&c, "two words"));
	EXPECT(!client_set_token(&c, ""));
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	EXPECT(!client_set_token(&c, longer));
}

/* ── what counts as an answer ── */

static int head(const char *text, struct client_reply *r, size_t *len)
{
	char why[256];

	memset(r, 0, sizeof *r);
	return client_read_head(text, strlen(text), r, len, why, sizeof why);
}

static void an_answer_has_one_length(void)
{
	struct client_reply r;
	size_t len;

	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nRetry-After: 3\r\n\r\n", &r, &len), 55);
	EXPECT(r.status == 200 && len == 12 && r.retry_after == 3);
	EXPECT(head("HTTP/1.1 204 No Content\r\n\r\n", &r, &len) > 0);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nContent-Le", &r, &len), 0);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\n\r\n", &r, &len), -1);                          /* none */
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("HTTP/1.1 200 OK\r\nBad Name: 1\r\nContent-Length: 1\r\n\r\n", &r, &len), -1);
	EXPECT_EQ(head("-ERR unknown command", &r, &len), -1);                             /* RESP */
}

/* ── a server that says what it is told to ── */

struct fake {
	int         fd;
	uint16_t    port;
	const char *says;                  /* NULL: takes the request and is silent                */
	char        asked[4096];
	pthread_t   thread;
};

static void *serve_once(void *arg)
{
	struct fake *f = arg;
	int fd = accept(f->fd, NULL, NULL);
	size_t len = 0;
	ssize_t n;

	while (len < sizeof f->asked - 1 && (n = read(fd, f->asked + len, sizeof f->asked - 1 - len)) > 0) {
		const char *body = strstr(f->asked, "\r\n\r\n");

		f->asked[len += (size_t)n] = 0;
		body = strstr(f->asked, "\r\n\r\n");
		const char *length = strstr(f->asked, "Content-Length: ");

		if (body && length && strlen(body + 4) >= (size_t)atol(length + 16))
			break;
	}
	if (f->says && strlen(f->says))
		(void)!write(fd, f->says, strlen(f->says));
	if (!f->says)
		(void)!read(fd, &n, 1);          /* until the client gives up */
	close(fd);
	return NULL;
}

static void fake_start(struct fake *f, const char *says)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof at;

	memset(f, 0, sizeof *f);
	f->says = says;
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT(bind(f->fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(f->fd, 1) == 0);
	EXPECT(getsockname(f->fd, (struct sockaddr *)&at, &size) == 0);
	f->port = ntohs(at.sin_port);
	EXPECT(pthread_create(&f->thread, NULL, serve_once, f) == 0);
}

static void fake_end(struct fake *f)
{
	pthread_join(f->thread, NULL);
	close(f->fd);
}

static enum client_result call(struct fake *f, const char *says, struct client_reply *r, char *why, size_t size)
{
	struct client c = { .timeout_ms = says ? 5000 : 200 };
	enum client_result result;
	char url[64];

	fake_start(f, says);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", f->port);
	EXPECT(client_set_url(&c, url, why, size) && client_set_token(&c, "sesame"));
	result = client_call(&c, "POST", "/actor/send", "X-A: b\r\n", "{\"a\":1}", 7, r, why, size);
	fake_end(f);
	return result;
}

static void what_is_asked_arrives_whole(void)
{
	struct fake f;
	struct client_reply r;
	char why[512];

	EXPECT_EQ(call(&f, "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", &r, why,
		       sizeof why), CLIENT_OK);
	EXPECT(r.status == 202 && r.len == 2 && strcmp(r.body, "{}") == 0);
	EXPECT(strncmp(f.asked, "POST /actor/send HTTP/1.1\r\nHost: 127.0.0.1:", 43) == 0);
	EXPECT(strstr(f.asked, "Authorization: Bearer sesame\r\n") && strstr(f.asked, "X-A: b\r\n"));
	EXPECT(strstr(f.asked, "Content-Type: application/json\r\n") && strstr(f.asked, "\r\n\r\n{\"a\":1}"));
	client_reply_free(&r);
	EXPECT_EQ(call(&f, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", &r, why, sizeof why),
		  CLIENT_OK);
	EXPECT(r.status == 200 && strcmp(r.body, "x") == 0);
	client_reply_free(&r);
}

static void each_way_of_no_answer_is_told_apart(void)
{
	struct fake f;
	struct client_reply r;
	struct client c = { .timeout_ms = 1000 };
	char why[512];

	EXPECT_EQ(call(&f, "", &r, why, sizeof why), CLIENT_BROKEN);
	EXPECT(strstr(why, "without an answer"));
	EXPECT_EQ(call(&f, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", &r, why, sizeof why), CLIENT_BROKEN);
	EXPECT(strstr(why, "in the middle"));
	EXPECT_EQ(call(&f, "-ERR Protocol error\r\n", &r, why, sizeof why), CLIENT_BROKEN);
	EXPECT(strstr(why, "HTTP port"));
	EXPECT_EQ(call(&f, NULL, &r, why, sizeof why), CLIENT_TIMED_OUT);
	EXPECT(strstr(why, "may still take effect"));
	EXPECT(client_set_unix(&c, "/nonexistent/noh.sock", why, sizeof why));
	EXPECT_EQ(client_call(&c, "GET", "/", "", NULL, 0, &r, why, sizeof why), CLIENT_UNREACHABLE);
	EXPECT(strstr(why, "noh serve"));
}

static void headers_without_end_are_cut_off(void)
{
	struct fake f;
	struct client_reply r;
	char why[512], *flood = malloc(CLIENT_HEAD_MAX + 8192);

	memset(flood, 'a', CLIENT_HEAD_MAX + 8191);
	flood[CLIENT_HEAD_MAX + 8191] = 0;
	memcpy(flood, "HTTP/1.1 200 OK\r\nX: ", 20);
	EXPECT_EQ(call(&f, flood, &r, why, sizeof why), CLIENT_BROKEN);
	EXPECT(strstr(why, "headers"));
	free(flood);
}

/* ── two at once ── */

struct asker {
	struct client       c;
	struct client_reply reply;
	enum client_result  result;
	char                why[512];
};

static void *ask_it(void *arg)
{
	struct asker *a = arg;

	a->result = client_call(&a->c, "GET", "/", "", NULL, 0, &a->reply, a->why, sizeof a->why);
	return NULL;
}

static bool was_read(void *fd)
{
	int left = 1;

	return ioctl(*(int *)fd, SIOCOUTQ, &left) == 0 && left == 0;
}

static void two_threads_may_ask_at_once(void)
{
	static const char first[] = "HTTP/1.1 202 Accepted\r\nContent-Le", rest[] = "ngth: 3\r\n\r\nabc";
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct asker a = { .c.timeout_ms = 10000 };
	struct client_reply r;
	struct fake f;
	char why[512], asked[1024];
	pthread_t thread;
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	snprintf(at.sun_path, sizeof at.sun_path, "/tmp/noh-client-%d.sock", (int)getpid());
	EXPECT(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
	EXPECT(client_set_unix(&a.c, at.sun_path, why, sizeof why));
	EXPECT(pthread_create(&thread, NULL, ask_it, &a) == 0);
	fd = accept(listener, NULL, NULL);
	EXPECT(read(fd, asked, sizeof asked) > 0);
	EXPECT(write(fd, first, sizeof first - 1) == (ssize_t)sizeof first - 1);
	EXPECT(test_wait_until(was_read, &fd, 10000));           /* it has half of its answer, and waits for the rest */
	EXPECT_EQ(call(&f, "HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nanother one's", &r, why, sizeof why), CLIENT_OK);
	client_reply_free(&r);
	EXPECT(write(fd, rest, sizeof rest - 1) == (ssize_t)sizeof rest - 1);
	close(fd);
	pthread_join(thread, NULL);
	if (EXPECT_EQ(a.result, CLIENT_OK))
		EXPECT(a.reply.status == 202 && strcmp(a.reply.body, "abc") == 0);
	client_reply_free(&a.reply);
	close(listener);
	unlink(at.sun_path);
}

/* ── a stream of events ── */

static void events_are_read_however_they_are_cut(void)
{
	static const char stream[] = "retry: 1000\n\n:\n\nid: 7\ndata: {\"seq\":7}\n\nevent: cut\ndata: {\"cursor\":7}\n\n";
	struct client_event e;
	char bytes[sizeof stream];

	memcpy(bytes, stream, sizeof stream);
	EXPECT_EQ(client_read_event(bytes, 13, &e), 13);
	EXPECT_EQ(e.len, 0);
	EXPECT_EQ(client_read_event(bytes + 13, sizeof stream - 14, &e), 3);
	for (size_t cut = 0; cut < 23; cut++)
		EXPECT_EQ(client_read_event(bytes + 16, cut, &e), 0);
	EXPECT_EQ(client_read_event(bytes + 16, sizeof stream - 17, &e), 23);
	EXPECT(strcmp(e.name, "message") == 0 && strcmp(e.id, "7") == 0 && strcmp(e.data, "{\"seq\":7}") == 0);
	EXPECT(client_read_event(bytes + 39, sizeof stream - 40, &e) > 0);
	EXPECT(strcmp(e.name, "cut") == 0 && e.id[0] == 0 && strcmp(e.data, "{\"cursor\":7}") == 0);
}

static void what_is_no_event_is_refused(void)
{
	static const char *const bad[] = { "hello\n\n", "data {}\n\n", "data: {}\r\n\n", "HTTP/1.1 200 OK\n\n" };
	struct client_event e;
	char bytes[64];

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		strcpy(bytes, bad[i]);
		EXPECT_EQ(client_read_event(bytes, strlen(bytes), &e), -1);
	}
	EXPECT_EQ(client_read_event(memcpy(bytes, "data: \0\n\n", 9), 9, &e), -1);
}

static enum client_result open_stream(struct fake *f, const char *says, struct client_stream *s, struct client_reply *r, char *why)
{
	struct client c = { .timeout_ms = 5000 };
	char url[64];

	fake_start(f, says);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", f->port);
	EXPECT(client_set_url(&c, url, why, 512));
	return client_stream_open(&c, "/events", s, r, why, 512);
}

static void a_stream_is_told_from_an_answer(void)
{
	struct client_stream s;
	struct client_reply r;
	struct client_event e;
	struct fake f;
	char why[512];

	EXPECT_EQ(open_stream(&f, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: a\n\n:\n\nid: 2\ndata: b\n\nid: 3\ndat",
			      &s, &r, why), CLIENT_OK);
	EXPECT(s.fd >= 0 && strstr(f.asked, "GET /events HTTP/1.1\r\n"));
	EXPECT(client_stream_next(&s, &e, cli_now_ns() + UINT64_C(5000000000), why, sizeof why) == NEXT_EVENT && strcmp(e.id, "1") == 0);
	EXPECT(client_stream_next(&s, &e, cli_now_ns() + UINT64_C(5000000000), why, sizeof why) == NEXT_EVENT && strcmp(e.data, "b") == 0);
	EXPECT_EQ(client_stream_next(&s, &e, cli_now_ns() + UINT64_C(5000000000), why, sizeof why), NEXT_ENDED);     /* half of one is none */
	client_stream_close(&s);
	fake_end(&f);

	EXPECT_EQ(open_stream(&f, "HTTP/1.1 410 Gone\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}", &s, &r, why),
		  CLIENT_OK);
	EXPECT(s.fd == -1 && r.status == 410 && strcmp(r.body, "{}") == 0);
	client_reply_free(&r);
	fake_end(&f);
	/* Where an answer is expected a stream is none. */
	EXPECT_EQ(call(&f, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\n", &r, why, sizeof why), CLIENT_BROKEN);
	EXPECT(strstr(why, "a stream"));
}

TEST_MAIN(
	TEST(a_url_is_taken_apart),
	TEST(a_token_cannot_carry_a_header),
	TEST(an_answer_has_one_length),
	TEST(what_is_asked_arrives_whole),
	TEST(each_way_of_no_answer_is_told_apart),
	TEST(headers_without_end_are_cut_off),
	TEST(two_threads_may_ask_at_once),
	TEST(events_are_read_however_they_are_cut),
	TEST(what_is_no_event_is_refused),
	TEST(a_stream_is_told_from_an_answer))
