/* tests/tools/top_test.c - noh top in a terminal of 80 columns and 24 lines, before a server that tells made-up numbers:
 * what is on the screen, what q and a new size do, and that the terminal is as it was afterwards. */
#include "tests/lib/test.h"
#include "tools/cli.h"
#include "tools/top.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ── the server: with every look, a thousand turns and messages more ── */

static int server;
static char url[64];
static atomic_uint looks;

static void answer(int fd)
{
	char body[4096], head[256], ask[4096];
	unsigned k = atomic_fetch_add(&looks, 1);
	size_t n = 0;
	ssize_t got;

	while (n < sizeof ask - 1 && (got = read(fd, ask + n, sizeof ask - 1 - n)) > 0) {
		ask[n += (size_t)got] = 0;
		if (strstr(ask, "\r\n\r\n"))
			break;
	}
	int len = snprintf(body, sizeof body,
		"# TYPE noh_turns_total counter\n"
		"noh_turns_total{worker=\"0\"} %u\nnoh_turns_total{worker=\"1\"} %u\n"
		"noh_worker_busy_seconds_total{worker=\"0\"} %u\nnoh_worker_busy_ratio{worker=\"1\"} 0\n"
		"noh_scheduler_steals_total{worker=\"0\"} %u\n"
		"noh_actors_active{type=\"counter\"} 1234567\nnoh_actors_active{type=\"inventory\"} 3\n"
		"noh_messages_processed_total{type=\"counter\",result=\"ok\"} %u\n"
		"noh_turn_duration_seconds_bucket{type=\"counter\",le=\"0.00005\"} %u\n"
		"noh_turn_duration_seconds_bucket{type=\"counter\",le=\"0.001\"} %u\n"
		"noh_turn_duration_seconds_bucket{type=\"counter\",le=\"+Inf\"} %u\n"
		"noh_mailbox_depth{type=\"counter\"} 42\nnoh_durable_lag_seconds 0.002\nnoh_connections 7\n",
		k * 1000, k * 10, k, k * 5, k * 1000, k * 900, k * 1000, k * 1000);
	int head_len = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", len);

	(void)!write(fd, head, (size_t)head_len);
	(void)!write(fd, body, (size_t)len);
}

static void *serve(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(server, NULL, NULL)) >= 0) {
		answer(fd);
		close(fd);
	}
	return NULL;
}

static void start_server(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof at;
	pthread_t thread;

	if (server)
		return;
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT(bind(server, (struct sockaddr *)&at, sizeof at) == 0 && listen(server, 8) == 0);
	EXPECT(getsockname(server, (struct sockaddr *)&at, &size) == 0);
	snprintf(url, sizeof url, "--url=http://127.0.0.1:%u", ntohs(at.sin_port));
	EXPECT(pthread_create(&thread, NULL, serve, NULL) == 0);
	pthread_detach(thread);
}

/* ── the terminal ── */

static char seen[1 << 18];
static size_t seen_len;

/* Reads what is shown until it has this, or ten seconds are over. */
static bool shows(int fd, const char *what)
{
	uint64_t until = cli_now_ns() + 10000000000u;

	while (cli_now_ns() < until) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n = 0;

		if (poll(&p, 1, 100) > 0)
			n = read(fd, seen + seen_len, sizeof seen - 1 - seen_len);
		if (n > 0)
			seen[seen_len += (size_t)n] = 0;
		if (strstr(seen, what))
			return true;
		if (n < 0)
			return false;
	}
	return false;
}

static pid_t start_top(int *fd, unsigned short columns, unsigned short rows)
{
	struct winsize size = { .ws_col = columns, .ws_row = rows };
	char verb[] = "top", every[] = "--every=100ms", *argv[] = { verb, url, every, NULL };

	start_server();
	seen_len = 0;
	seen[0] = 0;
	pid_t child = forkpty(fd, NULL, NULL, &size);

	if (child == 0) {
		setenv("TERM", "xterm", 1);
		unsetenv("NO_COLOR");
		_exit(top_main(3, argv));
	}
	return child;
}

/* The longest line of the last whole screen, and how many lines it has: escapes take no room. */
static void measure(unsigned *columns, unsigned *rows)
{
	char *from = NULL, *next = seen;
	unsigned at = 0;

	*columns = 0;
	*rows = 1;
	while ((next = strstr(next, "\033[H")) != NULL && strstr(next + 1, "\033[J"))
		from = next++;
	for (char *c = from; c && *c && strncmp(c, "\033[J", 3) != 0; c++) {
		if (*c == '\033') {
			c += strcspn(c, "HKJmhl");
		} else if (*c == '\n') {
			at = 0;
			++*rows;
		} else if (*c != '\r' && ++at > *columns) {
			*columns = at;
		}
	}
}

static int end_of(pid_t child)
{
	int status = -1;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_screen_fits_and_tells_what_happens(void)
{
	unsigned columns, rows;
	int fd;
	pid_t child = start_top(&fd, 80, 24);

	EXPECT(shows(fd, "WORKER"));
	EXPECT(shows(fd, "1 234 567"));
	EXPECT(shows(fd, "50.0 us"));            /* the half of the turns */
	EXPECT(shows(fd, "1.00 ms"));            /* 99 % of them */
	EXPECT(strstr(seen, "durable lag 2.00 ms") != NULL);
	EXPECT(strstr(seen, "42") != NULL);
	measure(&columns, &rows);
	EXPECT(columns > 40 && columns <= 80);
	EXPECT(rows >= 10 && rows <= 24);
	(void)!write(fd, "q", 1);
	EXPECT(shows(fd, "\033[?1049l"));        /* what was there before is there again */
	EXPECT_EQ(end_of(child), CLI_FINE);
	close(fd);
}

static void a_smaller_window_gets_a_smaller_screen(void)
{
	struct winsize small = { .ws_col = 50, .ws_row = 8 };
	unsigned columns, rows;
	int fd;
	pid_t child = start_top(&fd, 120, 40);

	EXPECT(shows(fd, "inventory"));
	EXPECT(ioctl(fd, TIOCSWINSZ, &small) == 0);
	unsigned before = atomic_load(&looks);

	while (atomic_load(&looks) < before + 4 && shows(fd, "WORKER"))
		usleep(1000);
	seen_len = 0;
	seen[0] = 0;
	EXPECT(shows(fd, "\033[J") && shows(fd, "WORKER"));
	for (before = atomic_load(&looks); atomic_load(&looks) < before + 3; usleep(1000))
		(void)shows(fd, "WORKER");
	measure(&columns, &rows);
	EXPECT(columns <= 50 && rows <= 8);
	kill(child, SIGTERM);                    /* a signal restores the terminal as well */
	EXPECT(shows(fd, "\033[?1049l"));
	EXPECT_EQ(end_of(child), CLI_FINE);
	close(fd);
}

static void once_tells_what_happened_between_two_looks(void)
{
	char text[8192] = "", verb[] = "top", once[] = "--once", json[] = "--json", every[] = "--every=100ms";
	char *argv[] = { verb, url, once, json, every, NULL };
	int ends[2], status;
	size_t n = 0;
	ssize_t got;

	start_server();
	EXPECT(pipe(ends) == 0);
	fflush(stdout);
	pid_t child = fork();

	if (child == 0) {
		dup2(ends[1], 1);
		status = top_main(5, argv);
		fflush(stdout);
		_exit(status);
	}
	close(ends[1]);
	while ((got = read(ends[0], text + n, sizeof text - 1 - n)) > 0)
		text[n += (size_t)got] = 0;
	close(ends[0]);
	EXPECT_EQ(end_of(child), CLI_FINE);
	EXPECT(strstr(text, "\"durable_lag_seconds\":0.002") != NULL);
	EXPECT(strstr(text, "\"type\":\"counter\",\"actors_active\":1234567") != NULL);
	EXPECT(strstr(text, "\"turn_p50_seconds\":5e-05") != NULL);
	EXPECT(strstr(text, "\"turn_p99_seconds\":0.001") != NULL);
	EXPECT(strstr(text, "\"type\":\"inventory\"") && strstr(text, "\"turn_p50_seconds\":null"));
	const char *turns = strstr(text, "\"turns_per_second\":");

	EXPECT(turns && atof(turns + 19) > 100);
}

TEST_MAIN(
	TEST(the_screen_fits_and_tells_what_happens),
	TEST(a_smaller_window_gets_a_smaller_screen),
	TEST(once_tells_what_happened_between_two_looks))
