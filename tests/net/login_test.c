/* tests/net/login_test.c - who guesses at passwords, and who comes from one address again and again: over real sockets,
 * from addresses of this machine's own (127.0.0.2 and its like). */
#include "tests/net/http_kit.h"

#include <openssl/sha.h>

#define L "Host: localhost\r\n"

static noh_account account(const char *name, int role, const char *secret)
{
	noh_account a = { .name = name, .role = role };

	SHA256((const uint8_t *)secret, strlen(secret), a.token);
	return a;
}

/* As dial, from 127.0.0.N. */
static int dial_from(struct wire *w, unsigned n)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)w->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 + n) };
	struct timeval patience = { .tv_sec = SOON / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	EXPECT_EQ(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	EXPECT(connects(fd, &to, sizeof to));
	return fd;
}

static void guessing_is_slow_from_one_address_and_nobody_else_waits(void)
{
	FOR_IO(io) {
		const noh_account ann = account("ann", NOH_USER, "secret");
		struct wire w;
		char line[300];
		int fd[3];

		WIRE(&w, 2, .io = io, .auth_failures = 5);
		EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
		for (int i = 0; i < 3; i++)              /* more connections do not help */
			fd[i] = dial_from(&w, 2);
		for (int i = 0; i < 5; i++)
			EXPECT_ASK(fd[i % 3], i % 2 ? "HELLO 3 AUTH ann wrong" : "AUTH ann wrong", "-WRONGPASS invalid");
		EXPECT_ASK(fd[0], "AUTH ann wrong", "-WRONGPASS too many failed logins from your address");
		EXPECT_ASK(fd[1], "AUTH ann secret", "-WRONGPASS too many failed logins from your address");
		EXPECT_ASK(fd[2], "HELLO 3 AUTH ann secret", "-WRONGPASS too many");
		EXPECT_ASK(fd[2], "PING", "-NOAUTH");
		EXPECT_EQ(net_stats(&w).logins_failed, 5);
		EXPECT_EQ(net_stats(&w).logins_held, 3);
		EXPECT(logged("too many failed logins from 127.0.0.2"));
		EXPECT(!logged("wrong"));                /* what was tried is nobody's business */
		(void)close(fd[0]);
		fd[0] = dial_from(&w, 2);                /* nor does another one */
		(void)say(fd[0], "AUTH ann secret\r\n");
		EXPECT(strstr(hear_line(fd[0], line, sizeof line), "try again in 1"));
		(void)close(fd[0]);
		fd[0] = dial_from(&w, 3);
		EXPECT_ASK(fd[0], "AUTH ann secret", "+OK");
		w.local = true;                          /* its file is its owner's alone */
		(void)close(fd[1]);
		fd[1] = dial(&w);
		for (int i = 0; i < 20; i++)
			EXPECT_ASK(fd[1], "AUTH ann wrong", "-WRONGPASS invalid");
		EXPECT_ASK(fd[1], "AUTH ann secret", "+OK");
		for (int i = 0; i < 3; i++)
			(void)close(fd[i]);
		wire_end(&w);
	}
}

/* As many as anybody likes: the server stays as large as it is, and looks at no more than it says. */
static void ten_thousand_guesses_cost_nothing(void)
{
	const noh_account ann = account("ann", NOH_USER, "secret");
	enum { EACH = 100 };
	static char many[EACH * 20 + 1], line[300];
	struct wire w;
	uint64_t tries = test_size(10000, 1000);
	int fd;

	for (int i = 0; i < EACH; i++)
		strcat(many, "AUTH ann guess\r\n");
	WIRE(&w, 1, .auth_failures = 30);
	EXPECT_EQ(noh_set_accounts(w.box, &ann, 1), NOH_OK);
	fd = dial_from(&w, 2);
	for (uint64_t i = 0; i < tries; i += EACH) {
		(void)say(fd, many);
		for (int k = 0; k < EACH; k++)
			EXPECT(strncmp(hear_line(fd, line, sizeof line), "-WRONGPASS", 10) == 0);
	}
	EXPECT_EQ(net_stats(&w).logins_failed + net_stats(&w).logins_held, tries);
	EXPECT(net_stats(&w).logins_failed >= 30);
	EXPECT(net_stats(&w).logins_failed < 30 + SOON / 2000);  /* one in two seconds */
	(void)close(fd);
	wire_end(&w);
}

#define BEARER(token) "GET /user HTTP/1.1\r\n" L "Authorization: Bearer " token "\r\n\r\n"

static void so_is_guessing_by_http(void)
{
	FOR_IO(io) {
		const noh_account ann = account("ann", NOH_USER, "secret");
		struct http_wire h;
		struct response r;
		int fd;

		HTTP(&h, 2, .io = io, .auth_failures = 2);
		EXPECT_EQ(noh_set_accounts(h.w.box, &ann, 1), NOH_OK);
		fd = dial_from(&h.w, 2);
		for (int i = 0; i < 2; i++) {
			(void)say(fd, BEARER("wrong"));
			EXPECT_RESPONSE(fd, 401, "bad_token");
		}
		(void)say(fd, BEARER("secret"));
		EXPECT(hear_response(fd, &r, false) && r.status == 429);
		EXPECT(strstr(r.head, "\r\nRetry-After: 30\r\n") || strstr(r.head, "\r\nRetry-After: 29\r\n"));
		EXPECT(strstr(r.body, "too_many_failures"));
		(void)say(fd, "GET /healthz HTTP/1.1\r\n" L "Authorization: Bearer secret\r\n\r\n");
		EXPECT_RESPONSE(fd, 200, "ok");          /* it asks for nothing that needs a name */
		(void)say(fd, "GET /user HTTP/1.1\r\n" L "\r\n");
		EXPECT_RESPONSE(fd, 401, "no_token");
		(void)close(fd);
		EXPECT_ONCE(&h.w, BEARER("secret"), 200, "ann");         /* from another address */
		wire_end(&h.w);
	}
}

/* One that ends is no longer shown a moment before its address may have another. */
struct caller { struct wire *w; int fd; };

static bool is_let_in(void *arg)
{
	struct caller *c = arg;
	char heard;

	c->fd = dial_from(c->w, 2);
	(void)say(c->fd, "PING\r\n");
	if (take(c->fd, &heard, 1) == 1 && heard == '+')
		return true;
	(void)close(c->fd);
	return false;
}

static void an_address_gets_no_more_connections_than_it_may_have(void)
{
	FOR_IO(io) {
		struct wire w;
		int fd[3], more;

		WIRE(&w, 2, .io = io, .max_address_connections = 2);
		for (int i = 0; i < 2; i++) {
			fd[i] = dial_from(&w, 2);
			EXPECT_ASK(fd[i], "PING", "+PONG");
		}
		more = dial_from(&w, 2);
		EXPECT_HEARS(more, "-ERR max number of clients from your address reached\r\n");
		EXPECT(hears_the_end(more));
		(void)close(more);
		fd[2] = dial_from(&w, 3);
		EXPECT_ASK(fd[2], "PING", "+PONG");
		w.local = true;
		more = dial(&w);
		EXPECT_ASK(more, "PING", "+PONG");
		EXPECT_EQ(net_stats(&w).refused, 1);
		EXPECT_EQ(net_stats(&w).refused_address, 1);
		(void)close(fd[0]);
		EXPECT(comes_to(&w, CONNECTIONS, 3));

		struct caller again = { &w, -1 };

		EXPECT(test_wait_until(is_let_in, &again, SOON));
		fd[0] = again.fd;
		EXPECT_ASK(more, "CONFIG SET noh-max-address-connections 3", "+OK");
		(void)close(more);
		w.local = false;
		more = dial_from(&w, 2);
		EXPECT_ASK(more, "PING", "+PONG");
		(void)close(more);
		for (int i = 0; i < 3; i++)
			(void)close(fd[i]);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

TEST_MAIN(TEST(guessing_is_slow_from_one_address_and_nobody_else_waits),
	  TEST(ten_thousand_guesses_cost_nothing),
	  TEST(so_is_guessing_by_http),
	  TEST(an_address_gets_no_more_connections_than_it_may_have))
