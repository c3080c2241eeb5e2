/* tests/net/wire_kit.h - a box that listens, in this process, and clients that are plain sockets.
 *
 * Beside counters and inventory it has three types of its own: `later` answers when it is told to, `jam` and
 * `queue` handle nothing while they wait for a `later`, so that their mailboxes fill up.
 *
 * Owns     one data directory and one socket file per server, both gone at its end.
 * Threads  the test's own; clients are sockets of the test.
 */
#ifndef NOH_TESTS_NET_WIRE_KIT_H
#define NOH_TESTS_NET_WIRE_KIT_H

#include "net/io.h"
#include "noh_actors.h"
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ── the types ── */

enum { LATER_WAIT, LATER_GO, LATER_COUNT };      /* keep the promise; answer all of them; how many */
enum { LATER_MAX = 64 };
struct later { uint64_t count; noh_promise kept[LATER_MAX]; };

static inline int later_message(noh_turn *t, const noh_msg *m)
{
	struct later *s = noh_state(t);

	switch (m->kind) {
	case LATER_WAIT:
		if (s->count == LATER_MAX)
			return noh_fail(t, "too many");
		s->kept[s->count++] = noh_defer(t, m);
		return NOH_OK;
	case LATER_GO:
		for (uint64_t i = 0; i < s->count; i++)
			(void)noh_answer(t, s->kept[i], NOH_OK, "late", 4);
		s->count = 0;
		return noh_reply(t, "gone", 4);
	}
	char text[24];

	return noh_reply(t, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)s->count));
}

enum { JAM_NOTE, JAM_JAM, JAM_FREE };            /* say "noted"; wait for later:jam; (its answer) */
static inline int jam_message(noh_turn *t, const noh_msg *m)
{
	static const noh_ask_options wait = { .answer_kind = JAM_FREE, .timeout_ms = 60000, .wait = true };

	if (m->kind == JAM_JAM)
		return noh_ask_to(t, "later:jam", LATER_WAIT, NULL, 0, &wait, NULL);
	return m->kind == JAM_NOTE ? noh_reply(t, "noted", 5) : NOH_OK;
}

static const noh_type later_type = { .name = "later", .state_size = sizeof(struct later), .is_volatile = true,
				     .on_message = later_message, .mailbox_capacity = 4096 };
static const noh_type jam_type = { .name = "jam", .mailbox_capacity = 4, .full_mode = NOH_DROP_NEWEST,
				   .is_volatile = true, .on_message = jam_message };
static const noh_type queue_type = { .name = "queue", .mailbox_capacity = 4, .full_mode = NOH_BLOCK,
				     .is_volatile = true, .on_message = jam_message };

/* ── the server ── */

struct wire {
	noh_box *box;
	int      port;
	char     dir[200];         /* "": volatile */
	char     path[108];        /* of the Unix socket */
	bool     local;            /* dial through it */
};

/* Both backends, or the one there is. */
#define FOR_IO(io) for (int io = io_uring_missing() ? NOH_IO_EPOLL : NOH_IO_URING; io <= NOH_IO_EPOLL; io++)

static inline int free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		at.sin_port = 0;
	(void)close(fd);
	return ntohs(at.sin_port);
}

static inline void wire_socket_path(char path[108])
{
	static unsigned count;

	snprintf(path, 108, "/tmp/noh-wire-%d-%u.sock", (int)getpid(), count++);
}

static inline int wire_listen(struct wire *w, noh_listen_options l)
{
	int rc = NOH_ESYSTEM;

	for (int tries = 0; tries < 5 && rc == NOH_ESYSTEM; tries++) {   /* somebody else may take the port meanwhile */
		w->port = l.resp_port = free_port();
		rc = noh_listen(w->box, &l);
	}
	return rc;
}

static inline void wire_open(struct wire *w, noh_options o, noh_listen_options l)
{
	w->dir[0] = 0;
	wire_socket_path(w->path);
	if (!l.unix_path)
		l.unix_path = w->path;
	o.log = kit_log;
	o.unpinned = true;
	if (!o.max_actors)
		o.max_actors = 100000;
	if (o.dir)
		o.dir = fresh_dir(w->dir, sizeof w->dir);
	w->box = kit_open(&o, TYPES(noh_counter_type(), noh_inventory_type(), &later_type, &jam_type, &queue_type));
	w->local = false;
	if (!EXPECT_EQ(wire_listen(w, l), NOH_OK) || !EXPECT_EQ(noh_start(w->box), NOH_OK))
		printf("  %s\n", noh_why());
}

/* Volatile, with these workers and these options of listening: .max_pipeline = 4 ... */
#define WIRE(w, n, ...) wire_open((w), (noh_options){ .workers = (n) }, (noh_listen_options){ __VA_ARGS__ })
#define WIRE_ON_DISK(w, n, ...) \
	wire_open((w), (noh_options){ .workers = (n), .dir = "" }, (noh_listen_options){ __VA_ARGS__ })

static inline noh_net_stats net_stats(struct wire *w)
{
	noh_net_stats s;

	EXPECT_EQ(noh_get_net_stats(w->box, &s), NOH_OK);
	return s;
}

static inline void wire_end(struct wire *w)
{
	end(w->box);
	EXPECT(access(w->path, F_OK) != 0);      /* the socket file goes with the server */
	if (w->dir[0])
		remove_dir(w->dir);
}

/* ── waiting for a number ── */

enum wire_number { CONNECTIONS, ACCEPTED, BYTES_IN, COMMANDS, CLOSED_SLOW };
struct wire_wait { struct wire *w; enum wire_number which; uint64_t n; };

static inline uint64_t wire_number(struct wire *w, enum wire_number which)
{
	noh_net_stats s = net_stats(w);

	switch (which) {
	case CONNECTIONS: return s.connections;
	case ACCEPTED: return s.accepted;
	case BYTES_IN: return s.bytes_in;
	case COMMANDS: return s.commands;
	case CLOSED_SLOW: return s.closed_slow;
	}
	return 0;
}

static inline bool is_number(void *arg)
{
	struct wire_wait *x = arg;

	return x->which == CONNECTIONS ? wire_number(x->w, x->which) == x->n : wire_number(x->w, x->which) >= x->n;
}

/* Connections: exactly so many; the others: at least. */
static inline bool comes_to(struct wire *w, enum wire_number which, uint64_t n)
{
	bool ok = test_wait_until(is_number, &(struct wire_wait){ w, which, n }, SOON);

	if (!ok)
		printf("  %llu instead of %llu\n", (unsigned long long)wire_number(w, which), (unsigned long long)n);
	return ok;
}

/* ── clients ── */

/* The end of a ring that this thread has opened (io_uring_missing does) may interrupt its calls much later. */
static inline ssize_t take(int fd, void *to, size_t len)
{
	ssize_t n;

	do {
		n = recv(fd, to, len, 0);
	} while (n < 0 && errno == EINTR);
	return n;
}

static inline bool connects(int fd, void *at, socklen_t len)
{
	int rc;

	do {
		rc = connect(fd, at, len);
	} while (rc != 0 && (errno == EINTR || errno == EALREADY));
	return rc == 0 || errno == EISCONN;
}

static inline int dial(struct wire *w)
{
	struct sockaddr_in tcp = { .sin_family = AF_INET, .sin_port = htons((uint16_t)w->port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = SOON / 1000 };
	int fd = socket(w->local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	memcpy(local.sun_path, w->path, sizeof w->path);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (!w->local)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	EXPECT(connects(fd, w->local ? (void *)&local : (void *)&tcp, w->local ? sizeof local : sizeof tcp));
	return fd;
}

static inline bool say_bytes(int fd, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len; ) {
		ssize_t n = send(fd, (const char *)bytes + done, len - done, MSG_NOSIGNAL);

		if (n <= 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static inline bool say(int fd, const char *text)
{
	return say_bytes(fd, text, strlen(text));
}

/* Up to len bytes, or until the end or the end of patience; a NUL behind them. */
static inline size_t hear(int fd, char *to, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = take(fd, to + got, len - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	to[got] = 0;
	return got;
}

static inline bool test_text(const char *got, const char *want, const char *file, int line)
{
	if (strcmp(got, want) == 0)
		return true;
	test_failed(file, line, "expected \"%.300s\", got \"%.300s\"", want, got);
	return false;
}

static inline bool test_hears(int fd, const char *want, const char *file, int line)
{
	size_t len = strlen(want);
	char *got = malloc(len + 1);
	bool ok;

	hear(fd, got, len);
	ok = test_text(got, want, file, line);
	free(got);
	return ok;
}
#define EXPECT_HEARS(fd, want) test_hears((fd), (want), __FILE__, __LINE__)

/* One line, without CR LF. */
static inline const char *hear_line(int fd, char *to, size_t size)
{
	size_t got = 0;

	while (got + 1 < size && take(fd, to + got, 1) == 1)
		if (to[got++] == '\n')
			break;
	while (got && (to[got - 1] == '\n' || to[got - 1] == '\r'))
		got--;
	to[got] = 0;
	return to;
}

/* An inline command, and the first line of what comes back. */
static inline bool test_asks(int fd, const char *command, const char *want, const char *file, int line)
{
	char got[600];

	(void)say(fd, command);
	(void)say(fd, "\r\n");
	hear_line(fd, got, sizeof got);
	if (strncmp(got, want, strlen(want)) == 0)
		return true;
	test_failed(file, line, "%.100s: expected \"%s...\", got \"%.300s\"", command, want, got);
	return false;
}
#define EXPECT_ASK(fd, command, want) test_asks((fd), (command), (want), __FILE__, __LINE__)

/* The server has closed it: an end or a reset, after whatever was still to be read. */
static inline bool hears_the_end(int fd)
{
	char bytes[4096];
	ssize_t n;

	while ((n = take(fd, bytes, sizeof bytes)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

/* Nothing of a client is left: its reset says that it vanished. */
static inline void vanish(int fd)
{
	struct linger now = { 1, 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	(void)close(fd);
}

/* So many promises are kept by later:NAME. */
struct wire_later { struct wire *w; const char *address; const char *count; };
static inline bool is_kept(void *arg)
{
	struct wire_later *x = arg;
	char text[24] = "";
	size_t len = sizeof text - 1;

	return noh_call(x->w->box, x->address, LATER_COUNT, NULL, 0, SOON, text, &len) == NOH_OK &&
	       strcmp(text, x->count) == 0;
}
static inline bool keeps(struct wire *w, const char *address, const char *count)
{
	return test_wait_until(is_kept, &(struct wire_later){ w, address, count }, SOON);
}
static inline void let_go(struct wire *w, const char *address)
{
	EXPECT_EQ(call(w->box, address, LATER_GO), NOH_OK);
}

#endif
