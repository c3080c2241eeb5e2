/* tests/net/wire_crowd_test.c - many clients at the same moment, and what their connections are like. */
#include "tests/net/wire_kit.h"

enum { CLIENTS = 120, EACH = 1000 };             /* together far more bytes than there are buffers in turn */

static size_t add_text(char *to, size_t at, size_t size, const char *how, ...)
{
	va_list more;
	int n;

	va_start(more, how);
	n = vsnprintf(to + at, size - at, how, more);
	va_end(more);
	return at + (size_t)n;
}

static bool hears_lines(int fd, uint32_t lines)
{
	char bytes[4096];
	ssize_t n;

	while (lines && (n = take(fd, bytes, sizeof bytes)) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines -= bytes[i] == '\n';
	return lines == 0;
}

static void speak_all_at_once(struct wire *w, const char *words, size_t len)
{
	int fds[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		fds[i] = dial(w);
	EXPECT(comes_to(w, CONNECTIONS, CLIENTS));
	for (int i = 0; i < CLIENTS; i++)
		EXPECT(say_bytes(fds[i], words, len));
	for (int i = 0; i < CLIENTS; i++)
		EXPECT(hears_lines(fds[i], EACH));
	for (int i = 0; i < CLIENTS; i++)
		(void)close(fds[i]);
	EXPECT(comes_to(w, CONNECTIONS, 0));
}

static void clients_that_speak_at_once_are_all_answered(void)
{
	static const char word[] = "INCR crowd\r\n";
	static char words[EACH * (sizeof word - 1)];
	struct wire w;

	for (size_t i = 0; i < EACH; i++)
		memcpy(words + i * (sizeof word - 1), word, sizeof word - 1);
	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		for (int round = 0; round < 2; round++)
			speak_all_at_once(&w, words, sizeof words);
		int fd = dial(&w);

		EXPECT_ASK(fd, "DECR crowd", ":239999");         /* 2 * CLIENTS * EACH - 1 */
		(void)close(fd);
		wire_end(&w);
	}
}

static int port_of(int (*ask)(int, struct sockaddr *, socklen_t *), int fd)
{
	struct sockaddr_in at = { 0 };
	socklen_t len = sizeof at;

	return ask(fd, (struct sockaddr *)&at, &len) == 0 && at.sin_family == AF_INET ? ntohs(at.sin_port) : -1;
}

/* The server's end of this client's connection: both are descriptors of this process. */
static int other_end(int fd)
{
	int port = port_of(getsockname, fd);

	for (int other = 3; other < 1024; other++)
		if (other != fd && port_of(getpeername, other) == port)
			return other;
	return -1;
}

static void connections_of_this_machine_are_not_paced(void)
{
	char how[16] = "";
	socklen_t len = sizeof how;
	struct wire w;

	FOR_IO(io) {
		WIRE(&w, 1, .io = io);
		int fd = dial(&w);

		EXPECT_ASK(fd, "PING", "+PONG");
		EXPECT(getsockopt(other_end(fd), IPPROTO_TCP, TCP_CONGESTION, how, &len) == 0);
		EXPECT(strncmp(how, "reno", sizeof how) == 0);
		(void)close(fd);
		wire_end(&w);
	}
}

/* ── actors that go while requests for them are on their way ── */

enum { TIMES = 60 };                             /* several times what is prepared together */

/* The lines that are numbers, one after the other: 1, 2, 3 ... */
static int hears_numbers(int fd, int lines)
{
	char line[200];
	int last = 0;

	while (lines--) {
		hear_line(fd, line, sizeof line);
		if (line[0] != ':')
			continue;
		if (atoi(line + 1) != last + 1)
			break;
		last++;
	}
	return last;
}

static void requests_in_one_breath_find_an_actor_that_goes_and_comes_back_in_between(void)
{
	static char words[TIMES * 80];
	struct wire w;
	size_t len = 0;

	for (int i = 0; i < TIMES; i++)
		len = add_text(words, len, sizeof words, "INCR k\r\nACTOR.DEACTIVATE counter:k\r\nGET other%d\r\n", i % 5);
	FOR_IO(io) {
		WIRE_ON_DISK(&w, 2, .io = io);
		int fd = dial(&w);

		EXPECT(say_bytes(fd, words, len));
		EXPECT_EQ(hears_numbers(fd, 3 * TIMES), TIMES);
		EXPECT_ASK(fd, "GET k", "$2");
		(void)close(fd);
		wire_end(&w);
	}
}

/* ── messages of one client for those of several workers ── */

enum { LISTENERS = 12, MESSAGES = 200 };         /* so many that no worker is without one */

/* All but the last in one breath, with turns in between; the last one alone. */
static void publish_some(int fd, int first)
{
	static char words[MESSAGES * 40];
	size_t len = 0;

	for (int i = first; i < first + MESSAGES - 1; i++)
		len = add_text(words, len, sizeof words, i % 7 ? "PUBLISH n %06d\r\n" : "INCR k\r\nPUBLISH n %06d\r\n", i);
	EXPECT(say_bytes(fd, words, len));
	len = add_text(words, 0, sizeof words, "PUBLISH n %06d\r\n", first + MESSAGES - 1);
	EXPECT(say_bytes(fd, words, len));
}

static void expect_messages(int fd, int first)
{
	static char want[MESSAGES * 60];
	size_t len = 0;

	for (int i = first; i < first + MESSAGES; i++)
		len = add_text(want, len, sizeof want, "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$6\r\n%06d\r\n", i);
	EXPECT_HEARS(fd, want);
}

static void messages_sent_in_one_breath_reach_the_clients_of_all_workers_in_order(void)
{
	struct wire w;
	int fds[LISTENERS];

	FOR_IO(io) {
		WIRE(&w, 3, .io = io);
		int publisher = dial(&w);

		for (int i = 0; i < LISTENERS; i++) {
			fds[i] = dial(&w);
			EXPECT(say(fds[i], "SUBSCRIBE n\r\n"));
			EXPECT_HEARS(fds[i], "*3\r\n$9\r\nsubscribe\r\n$1\r\nn\r\n:1\r\n");
		}
		for (int round = 0; round < 10; round++) {
			publish_some(publisher, round * MESSAGES);
			for (int i = 0; i < LISTENERS; i++)
				expect_messages(fds[i], round * MESSAGES);
		}
		for (int i = 0; i < LISTENERS; i++)
			(void)close(fds[i]);
		(void)close(publisher);
		wire_end(&w);
	}
}

TEST_MAIN(
	TEST(clients_that_speak_at_once_are_all_answered),
	TEST(requests_in_one_breath_find_an_actor_that_goes_and_comes_back_in_between),
	TEST(messages_sent_in_one_breath_reach_the_clients_of_all_workers_in_order),
	TEST(connections_of_this_machine_are_not_paced))
