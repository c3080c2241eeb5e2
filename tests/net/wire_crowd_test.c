/* tests/net/wire_crowd_test.c - many clients at the same moment, and what their connections are like. */
#include "tests/net/wire_kit.h"

enum { CLIENTS = 120, EACH = 1000 };             /* together far more bytes than there are buffers in turn */

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

TEST_MAIN(
	TEST(clients_that_speak_at_once_are_all_answered),
	TEST(connections_of_this_machine_are_not_paced))
