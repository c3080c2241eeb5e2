/* tests/net/wire_limits_test.c - clients that ask for too much, too slowly or without listening: each meets its limit,
 * and costs nobody else anything. On both io backends. */
#include "tests/net/wire_kit.h"

static uint64_t anonymous_kb(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kb = 0;
	char line[200];

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %llu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* ── how many ── */

static void one_client_too_many_is_told_so(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .max_connections = 3);
		int fd[3], more;

		for (int i = 0; i < 3; i++) {
			fd[i] = dial(&w);
			EXPECT_ASK(fd[i], "PING", "+PONG");
		}
		more = dial(&w);
		EXPECT_HEARS(more, "-ERR max number of clients reached\r\n");
		EXPECT(hears_the_end(more));
		(void)close(more);
		(void)close(fd[1]);
		EXPECT(comes_to(&w, CONNECTIONS, 2));
		fd[1] = dial(&w);
		EXPECT_ASK(fd[1], "PING", "+PONG");
		EXPECT_EQ(net_stats(&w).refused, 1);
		EXPECT_EQ(net_stats(&w).accepted, 4);
		for (int i = 0; i < 3; i++)
			(void)close(fd[i]);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── how much, in one command ── */

static void too_much(struct wire *w, const char *bytes, const char *said)
{
	int fd = dial(w);
	char line[300];

	(void)say(fd, bytes);
	hear_line(fd, line, sizeof line);
	test_text(line, said, bytes, 0);
	EXPECT(hears_the_end(fd));
	(void)close(fd);
}

static void commands_over_the_limits_are_refused(void)
{
	static char line[3000];
	struct wire w;

	memset(line, 'x', sizeof line - 1);
	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .max_args = 5, .max_arg_bytes = 100, .max_command_bytes = 220, .max_inline_bytes = 2000);
		too_much(&w, "*6\r\n", "-ERR Protocol error: invalid multibulk length");
		too_much(&w, "*2\r\n$4\r\nECHO\r\n$101\r\n", "-ERR Protocol error: invalid bulk length");
		too_much(&w, line, "-ERR Protocol error: too big inline request");

		int fd = dial(&w);

		snprintf(line, sizeof line, "*4\r\n$6\r\nEXISTS\r\n");
		for (int i = 0; i < 3; i++)
			snprintf(line + strlen(line), 200, "$90\r\n%090d\r\n", i);
		(void)say(fd, line);
		hear_line(fd, line, sizeof line);
		EXPECT(strncmp(line, "-ERR Protocol error", 19) == 0);
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		memset(line, 'x', sizeof line - 1);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* What is announced and never comes takes no memory. */
static void announced_bytes_are_not_allocated(void)
{
	static const char *const announced[] = { "*2\r\n$4\r\nECHO\r\n$500000000\r\nabc", "*1000000\r\n$3\r\nDEL\r\n$1\r\na" };
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .max_arg_bytes = 512u << 20, .max_command_bytes = 1u << 30, .max_args = 1000000);
		int fd[40];
		uint64_t before, after;

		for (int i = 0; i < 40; i++)
			fd[i] = dial(&w);
		EXPECT(comes_to(&w, CONNECTIONS, 40));
		before = anonymous_kb();
		for (int i = 0; i < 40; i++)
			(void)say(fd[i], announced[i % 2]);
		EXPECT(comes_to(&w, BYTES_IN, 20 * (strlen(announced[0]) + strlen(announced[1]))));
		after = anonymous_kb();
#ifndef NOH_SANITIZED
		EXPECT(after < before + 1024);
#endif
		(void)before, (void)after;
		for (int i = 0; i < 40; i++)
			(void)close(fd[i]);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── how slowly ── */

static void a_byte_now_and_then_is_cut_off(void)
{
	static const char command[] = "*2\r\n$4\r\nECHO\r\n$100\r\n01234567890123456789012345678901234567890123456789";
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .timeout_ms = 200);
		int fd = dial(&w), other = dial(&w);
		uint64_t began = now_us();
		size_t i = 0;

		while (i < sizeof command - 1 && say_bytes(fd, command + i, 1) && wire_number(&w, CLOSED_SLOW) == 0) {
			EXPECT_ASK(other, "PING", "+PONG");
			nap_us(20000);
			i++;
		}
		EXPECT(i < sizeof command - 1);
		EXPECT(now_us() - began > 150000);       /* not sooner than it was told */
		EXPECT(hears_the_end(fd));
		EXPECT(comes_to(&w, CONNECTIONS, 1));
		EXPECT_ASK(other, "PING", "+PONG");      /* idle ones stay */
		EXPECT_EQ(net_stats(&w).closed_slow, 1);
		(void)close(fd);
		(void)close(other);
		wire_end(&w);
	}
}

static void who_says_nothing_for_long_is_closed_if_so_wished(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .idle_ms = 300);
		int fd = dial(&w), waiting = dial(&w);
		uint64_t began;

		(void)say(waiting, "ACTOR.INVOKE later:a 0 ''\r\n");
		EXPECT(keeps(&w, "later:a", "1"));
		for (int i = 0; i < 10; i++) {
			nap_us(50000);
			EXPECT_ASK(fd, "PING", "+PONG");
		}
		began = now_us();
		EXPECT(hears_the_end(fd));
		EXPECT(now_us() - began > 200000);
		EXPECT(comes_to(&w, CONNECTIONS, 1));    /* who waits for an answer is not idle */
		let_go(&w, "later:a");
		EXPECT_HEARS(waiting, "$4\r\nlate\r\n");
		EXPECT(hears_the_end(waiting));
		EXPECT_EQ(net_stats(&w).closed_slow, 0);
		(void)close(fd);
		(void)close(waiting);
		wire_end(&w);
	}
}

/* ── who does not listen ── */

static size_t flood(int fd, size_t most)
{
	static char request[1100];
	size_t sent = 0;

	snprintf(request, sizeof request, "ECHO %01000d\r\n", 7);
	while (sent < most) {
		ssize_t n = send(fd, request + sent % 1007, 1007 - sent % 1007, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0) {
			struct pollfd p = { fd, POLLOUT, 0 };

			if (errno != EAGAIN && errno != EINTR)
				break;
			if (poll(&p, 1, 500) == 0)
				break;           /* not read any more */
			continue;
		}
		sent += (size_t)n;
	}
	return sent;
}

static long field_of(const char *list, const char *name)
{
	const char *at = strstr(list, name);

	return at ? atol(at + strlen(name)) : -1;
}

static void a_client_that_never_reads_is_paused_then_cut_off(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .max_output_bytes = 100000, .timeout_ms = 2000);
		int fd = dial(&w), other = dial(&w);
		size_t sent = flood(fd, 64u << 20);
		char line[1000];

		EXPECT(sent < 60u << 20);                /* back-pressure: it is not read further */
		EXPECT_ASK(other, "PING", "+PONG");
		(void)say(other, "CLIENT LIST\r\n");
		hear_line(other, line, sizeof line);
		hear_line(other, line, sizeof line);     /* the first to come is the first of the list */
		EXPECT(field_of(line, " obl=") > 0 && field_of(line, " obl=") < 200000);
		EXPECT(field_of(line, " qbuf=") < 5 << 20);      /* what the ring had received already */
		EXPECT(comes_to(&w, CLOSED_SLOW, 1));
		EXPECT(comes_to(&w, CONNECTIONS, 1));
		EXPECT(hears_the_end(fd));
		(void)close(fd);
		(void)close(other);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* As long as it takes some, it may take its time. */
static void a_client_that_reads_slowly_gets_everything(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io, .timeout_ms = 1000, .max_output_bytes = 8u << 20);
		int fd = dial(&w), small = 131072;
		size_t heard = 0, naps = 0, want = 1000 * 8009;
		static char request[9000], bytes[100000];

		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
		snprintf(request, sizeof request, "ECHO %08000d\r\n", 7);
		for (int i = 0; i < 1000; i++)
			(void)say(fd, request);
		while (heard < want) {
			ssize_t n = take(fd, bytes, sizeof bytes);

			if (n <= 0)
				break;
			heard += (size_t)n;
			if (heard / 100000 > naps) {
				naps = heard / 100000;
				nap_us(30000);
			}
		}
		EXPECT_EQ(heard, want);
		EXPECT_EQ(net_stats(&w).closed_slow, 0);
		(void)close(fd);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

/* ── who waits ── */

static void a_call_that_is_not_answered_in_time_is_timeout(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .call_ms = 300);
		int fd = dial(&w);
		uint64_t began = now_us();

		(void)say(fd, "ACTOR.INVOKE later:a 0 ''\r\nINCR k\r\nACTOR.INVOKE later:a 0 '' TIMEOUT 50\r\nINCR k\r\n");
		EXPECT_ASK(fd, "PING", "-TIMEOUT");
		EXPECT(now_us() - began > 290000);
		EXPECT_HEARS(fd, ":1\r\n");
		EXPECT_ASK(fd, "PING", "-TIMEOUT");
		EXPECT_HEARS(fd, ":2\r\n+PONG\r\n+PONG\r\n");
		let_go(&w, "later:a");                   /* too late: nobody gets it, and nobody else does */
		EXPECT_ASK(fd, "INCR k", ":3");
		EXPECT_ASK(fd, "PING", "+PONG");
		EXPECT_EQ(net_stats(&w).errors, 2);
		(void)close(fd);
		wire_end(&w);
	}
}

static void jam(struct wire *w, int fd, const char *address)
{
	char ask[100];

	snprintf(ask, sizeof ask, "ACTOR.SEND %s 1 '' ACK memory", address);
	EXPECT_ASK(fd, ask, "+OK");
	EXPECT(keeps(w, "later:jam", "1"));
}

static void a_full_mailbox_is_said_so(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		int fd = dial(&w), other = dial(&w);

		jam(&w, fd, "jam:x");
		for (int i = 0; i < 6; i++)
			(void)say(fd, "ACTOR.INVOKE jam:x 0 ''\r\n");
		(void)say(fd, "INCR k\r\n");
		EXPECT(gets_to_hold(w.box, "jam:x", 4));
		EXPECT_ASK(other, "ACTOR.INVOKE jam:x 0 ''", "-MAILBOXFULL");
		EXPECT_ASK(other, "ACTOR.SEND jam:x 0 ''", "-MAILBOXFULL");
		EXPECT_ASK(other, "GET k", "$1");        /* nobody else waits for it */
		EXPECT_HEARS(other, "1\r\n");
		let_go(&w, "later:jam");
		EXPECT_HEARS(fd, "$5\r\nnoted\r\n$5\r\nnoted\r\n$5\r\nnoted\r\n$5\r\nnoted\r\n");
		EXPECT_ASK(fd, "PING", "-MAILBOXFULL");
		EXPECT_ASK(fd, "PING", "-MAILBOXFULL");
		EXPECT_HEARS(fd, ":1\r\n+PONG\r\n+PONG\r\n");
		EXPECT_EQ(stats_of(w.box, "jam").refused, 4);
		(void)close(fd);
		(void)close(other);
		wire_end(&w);
	}
}

static void a_mailbox_that_blocks_holds_its_client_until_there_is_room(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io);
		int fd = dial(&w), other = dial(&w);

		jam(&w, fd, "queue:x");
		for (int i = 0; i < 50; i++)
			(void)say(fd, "ACTOR.INVOKE queue:x 0 ''\r\n");
		(void)say(fd, "INCR k\r\n");
		EXPECT(gets_to_hold(w.box, "queue:x", 4));
		EXPECT_ASK(other, "EXISTS k", ":0");     /* what is behind it in the pipeline waits, */
		EXPECT_ASK(other, "INCR j", ":1");       /* nobody else */
		let_go(&w, "later:jam");
		for (int i = 0; i < 50; i++)
			EXPECT_HEARS(fd, "$5\r\nnoted\r\n");
		EXPECT_HEARS(fd, ":1\r\n");
		(void)close(fd);
		(void)close(other);
		EXPECT(comes_to(&w, CONNECTIONS, 0));
		wire_end(&w);
	}
}

static void a_mailbox_that_blocks_for_too_long_is_an_error(void)
{
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 2, .io = io, .call_ms = 300);
		int fd = dial(&w);
		char line[300];

		jam(&w, fd, "queue:x");
		for (int i = 0; i < 6; i++)
			(void)say(fd, "ACTOR.INVOKE queue:x 0 ''\r\n");
		(void)say(fd, "INCR k\r\n");
		for (int i = 0; i < 6; i++) {
			hear_line(fd, line, sizeof line);
			EXPECT(strncmp(line, "-TIMEOUT", 8) == 0 || strncmp(line, "-MAILBOXFULL", 12) == 0);
		}
		EXPECT_HEARS(fd, ":1\r\n");
		let_go(&w, "later:jam");
		EXPECT_ASK(fd, "ACTOR.INVOKE queue:x 0 ''", "$5");
		EXPECT_HEARS(fd, "noted\r\n");
		(void)close(fd);
		wire_end(&w);
	}
}

/* ── more actors than fit ── */

static void a_small_memory_serves_more_actors_than_fit(void)
{
	struct wire w;
	static char request[100 * 40];
	const int many = (int)test_size(30000, 10000);

	FOR_IO(io) {
		wire_open(&w, (noh_options){ .workers = 2, .dir = "", .memory_budget = 2u << 20, .max_actors = (uint32_t)many },
			  (noh_listen_options){ .io = io });
		int fd = dial(&w);
		char got[12];

		for (int round = 1; round <= 2; round++) {
			for (int i = 0; i < many; i += 100) {
				size_t n = 0;

				for (int k = i; k < i + 100; k++)
					n += (size_t)sprintf(request + n, "INCR many-%d\r\n", k);
				(void)say_bytes(fd, request, n);
				for (int k = 0; k < 100; k++) {
					hear(fd, got, 4);
					if (!EXPECT(got[0] == ':' && got[1] == '0' + round)) {
						(void)hear_line(fd, request, sizeof request);
						printf("  key %d: %s%s\n", i + k, got, request);
						i = many;
						break;
					}
				}
			}
		}
		EXPECT(stats(w.box).evictions > (uint64_t)many / 2);
		EXPECT(stats(w.box).actor_bytes < 3u << 20);
		(void)close(fd);
		wire_end(&w);
	}
}

TEST_MAIN(
	TEST(one_client_too_many_is_told_so, "P11"),
	TEST(commands_over_the_limits_are_refused, "P11"),
	TEST(announced_bytes_are_not_allocated, "P11"),
	TEST(a_byte_now_and_then_is_cut_off, "P11"),
	TEST(who_says_nothing_for_long_is_closed_if_so_wished),
	TEST(a_client_that_never_reads_is_paused_then_cut_off, "P11"),
	TEST(a_client_that_reads_slowly_gets_everything),
	TEST(a_call_that_is_not_answered_in_time_is_timeout, "P8"),
	TEST(a_full_mailbox_is_said_so, "P8 P11"),
	TEST(a_mailbox_that_blocks_holds_its_client_until_there_is_room),
	TEST(a_mailbox_that_blocks_for_too_long_is_an_error),
	TEST(a_small_memory_serves_more_actors_than_fit))
