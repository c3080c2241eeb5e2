/* tests/fuzz/conn_fuzz.c - whole connections: bytes through real sockets into a box that listens, cut anywhere, ended
 * anyhow, with limits so small that they are met all the time. The server must live, and answer a PING of somebody else.
 *
 * The first byte says how: 1 epoll instead of io_uring, 2 logged in, 4 half-close at the end, 8 reset at the end,
 * 16 reads what comes before the end, and the upper bits into how many pieces the rest is cut; all of those: it is HTTP,
 * in two. */
#include "net/io.h"
#include "noh_actors.h"

#include <errno.h>
#include <openssl/sha.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The boxes live on between inputs, and what they keep hangs on words that are not all pointers: leaks are looked for by
 * tests/net/wire_*_test.c, at the end of a box. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct { noh_box *box; char path[100], http[100]; int checker; } servers[2];

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user, (void)level, (void)actor, (void)line;
}

static int echo(noh_turn *t, const noh_msg *m)
{
	return noh_reply(t, m->body, m->len);
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s (%s)\n", what, noh_why());
	abort();
}

static int dial(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 8 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	strcpy(at.sun_path, path);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	do {
		rc = connect(fd, (struct sockaddr *)&at, sizeof at);
	} while (rc != 0 && errno == EINTR);
	need(rc == 0 || errno == EISCONN, "nobody listens any more");
	return fd;
}

static void ask(int fd, const char *request, const char *want)
{
	char got[100];
	size_t len = strlen(want), at = 0;

	need(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request), "the other client was cut off");
	while (at < len) {
		ssize_t n = recv(fd, got + at, len - at, 0);

		if (n < 0 && errno == EINTR)
			continue;
		need(n > 0, "the other client is not answered");
		at += (size_t)n;
	}
	need(memcmp(got, want, len) == 0, "the other client is answered wrongly");
}

static void open_server(int i)
{
	static const noh_type echo_type = { .name = "echo", .on_message = echo, .mailbox_capacity = 4 };
	const noh_options o = { .workers = 2, .unpinned = true, .max_actors = 50000, .max_message = 4096, .log = quiet };
	const noh_listen_options l = { .resp_port = -1, .unix_path = servers[i].path, .max_pipeline = 4, .max_output_bytes = 2048,
				       .max_args = 20, .max_arg_bytes = 1000, .max_command_bytes = 3000, .max_inline_bytes = 300,
				       .timeout_ms = 500, .call_ms = 500, .http_unix_path = servers[i].http,
				       .http_max_header_bytes = 300, .http_max_headers = 9, .http_max_body_bytes = 100,
				       .http_header_ms = 500, .http_body_ms = 500, .http_idle_ms = 500,
				       .io = i ? NOH_IO_EPOLL : NOH_IO_AUTO };
	noh_account who = { .name = "u", .role = NOH_DEVELOPER };

	SHA256((const unsigned char *)"p", 1, who.token);
	snprintf(servers[i].path, sizeof servers[i].path, "/tmp/noh-fuzz-%d-%d.sock", (int)getpid(), i);
	snprintf(servers[i].http, sizeof servers[i].http, "/tmp/noh-fuzz-%d-%d.http", (int)getpid(), i);
	need(noh_open(&servers[i].box, &o) == NOH_OK && noh_register(servers[i].box, noh_counter_type()) == NOH_OK &&
	     noh_register(servers[i].box, noh_inventory_type()) == NOH_OK && noh_register(servers[i].box, &echo_type) == NOH_OK &&
	     noh_listen(servers[i].box, &l) == NOH_OK && noh_set_accounts(servers[i].box, &who, 1) == NOH_OK &&
	     noh_start(servers[i].box) == NOH_OK, "no box");
	servers[i].checker = dial(servers[i].path);
	ask(servers[i].checker, "AUTH u p\r\n", "+OK\r\n");
}

static void close_servers(void)
{
	for (int i = 0; i < 2; i++) {
		(void)close(servers[i].checker);
		(void)noh_stop(servers[i].box, 5000);
		noh_close(servers[i].box);
	}
}

/* What is there is thrown away; never waits. */
static void drain(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct linger reset = { 1, 0 };
	struct pollfd p;
	size_t piece, how;
	int i, fd;
	bool http;

	if (size < 2)
		return 0;
	if (!servers[0].box) {
		open_server(0);
		open_server(1);
		(void)atexit(close_servers);
	}
	how = data[0];
	i = how & 1;
	http = how >> 5 == 7;
	fd = dial(http ? servers[i].http : servers[i].path);
	if (how & 2 && !http)
		ask(fd, "AUTH u p\r\n", "+OK\r\n");
	piece = (size - 1) / (http ? 2 : 1 + (how >> 5)) + 1;
	for (size_t at = 1; at < size; at += piece) {
		size_t len = size - at < piece ? size - at : piece;

		if (send(fd, data + at, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		if (how & 16)
			drain(fd);
	}
	if (how & 4)
		(void)shutdown(fd, SHUT_WR);
	p = (struct pollfd){ fd, POLLIN, 0 };
	if (how & 16 && poll(&p, 1, 1) > 0)
		drain(fd);
	if (how & 8)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	ask(servers[i].checker, "PING\r\n", "+PONG\r\n");
	(void)close(fd);
	return 0;
}
