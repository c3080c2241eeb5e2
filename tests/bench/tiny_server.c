/* tests/bench/tiny_server.c - poll, parse arrays of strings, answer. */
#include "tests/bench/tiny_server.h"

#include "core/atomic.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 256, IN = 1 << 16, OUT = 1 << 20, KEYS = 4096, ARGS = 8, ORDERS = 65536 };

struct client {
	int    fd;
	bool   known, subscriber;
	size_t in_len, out_len;
	char   in[IN], out[OUT];
};

struct tiny_server {
	struct tiny_faults faults;
	char       path[108], directory[64];
	int        listener;
	pthread_t  thread;
	atomic_u64 stop, commands, hangups;
	uint64_t   replies;
	struct client *clients;
	unsigned   count;
	int64_t    counters[KEYS];
	int64_t    stock, held, sold;
	uint64_t   holds;
	bool       committed[ORDERS];
	uint64_t   orders[ORDERS];          /* idempotency key's number -> reservation */
	uint64_t   lost;
};

static void put(struct client *c, const char *bytes, size_t n)
{
	if (c->out_len + n <= OUT) {
		memcpy(c->out + c->out_len, bytes, n);
		c->out_len += n;
	}
}

static void flush(struct tiny_server *s, struct client *c)
{
	size_t step = s->faults.dribble ? 1 : c->out_len;

	for (size_t at = 0; c->fd >= 0 && at < c->out_len; ) {
		ssize_t n = send(c->fd, c->out + at, step < c->out_len - at ? step : c->out_len - at, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	c->out_len = 0;
}

static uint64_t digits_at_end(const char *text)
{
	size_t n = strlen(text), from = n;

	while (from > 0 && text[from - 1] >= '0' && text[from - 1] <= '9' && n - from < 9)
		from--;
	return strtoull(text + from, NULL, 10);
}

static int reserve(struct tiny_server *s, char *reply, size_t room, int argc, char **argv)
{
	uint64_t order = argc == 7 ? digits_at_end(argv[6]) % ORDERS : 0, *was = argc == 7 ? &s->orders[order] : NULL;
	uint64_t id = was != NULL ? *was : 0;

	if (id == 0) {
		if (s->stock <= 0 && s->faults.oversell == 0)
			return snprintf(reply, room, "-OUTOFSTOCK 0 available\r\n");
		if (s->stock <= 0)
			s->faults.oversell--;
		s->stock--;
		s->held++;
		id = ++s->holds;
		if (was != NULL)
			*was = id;
	}
	return snprintf(reply, room, "*2\r\n$%d\r\nr%06llu\r\n:%lld\r\n", 7,
			s->faults.same_hold ? 1ull : (unsigned long long)id, (long long)s->stock);
}

static int commit(struct tiny_server *s, char *reply, size_t room, const char *id)
{
	uint64_t n = digits_at_end(id) % ORDERS;

	if (!s->committed[n] || s->faults.same_hold) {
		s->held--;
		s->sold++;
	}
	s->committed[n] = true;
	return snprintf(reply, room, "+OK\r\n");
}

static int publish(struct tiny_server *s, char *reply, size_t room, char **argv)
{
	char message[8192];
	int n = snprintf(message, sizeof message, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
			 strlen(argv[1]), argv[1], strlen(argv[2]), argv[2]);
	unsigned reached = 0;

	for (unsigned i = 0; i < s->count; i++) {
		if (!s->clients[i].subscriber)
			continue;
		if (reached++ == 0 && s->lost < s->faults.lose)
			s->lost++;
		else
			put(&s->clients[i], message, (size_t)n);
	}
	return snprintf(reply, room, ":%u\r\n", reached);
}

static int answer(struct tiny_server *s, struct client *c, char *reply, size_t room, int argc, char **argv)
{
	int64_t *counter = argc > 1 ? &s->counters[digits_at_end(argv[1]) % KEYS] : &s->counters[0];
	char text[32];

	if (!c->known)
		return snprintf(reply, room, "-NOAUTH Authentication required.\r\n");
	if (strcmp(argv[0], "PING") == 0)
		return snprintf(reply, room, "+PONG\r\n");
	if (strcmp(argv[0], "INCR") == 0)
		return snprintf(reply, room, ":%lld\r\n", (long long)++*counter);
	if (strcmp(argv[0], "SET") == 0) {
		*counter = strtoll(argv[2], NULL, 10);
		return snprintf(reply, room, "+OK\r\n");
	}
	if (strcmp(argv[0], "GET") == 0) {
		int n = snprintf(text, sizeof text, "%lld", (long long)*counter);
		return *counter != 0 ? snprintf(reply, room, "$%d\r\n%s\r\n", n, text) : snprintf(reply, room, "$-1\r\n");
	}
	if (strcmp(argv[0], "SUBSCRIBE") == 0) {
		c->subscriber = true;
		return snprintf(reply, room, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(argv[1]), argv[1]);
	}
	if (strcmp(argv[0], "PUBLISH") == 0)
		return publish(s, reply, room, argv);
	if (strcmp(argv[0], "INV.RESTOCK") == 0)
		return snprintf(reply, room, ":%lld\r\n", (long long)(s->stock += strtoll(argv[2], NULL, 10)));
	if (strcmp(argv[0], "INV.RESERVE") == 0)
		return reserve(s, reply, room, argc, argv);
	if (strcmp(argv[0], "INV.COMMIT") == 0)
		return commit(s, reply, room, argv[2]);
	if (strcmp(argv[0], "INV.GET") == 0)
		return snprintf(reply, room, "*4\r\n:%lld\r\n:%lld\r\n:%lld\r\n:%lld\r\n", (long long)(s->stock + s->held),
				(long long)s->held, (long long)s->stock, (long long)s->sold);
	return snprintf(reply, room, "-ERR unknown command '%s'\r\n", argv[0]);
}

static void hang_up(struct tiny_server *s)
{
	count_one(&s->hangups, 1);
	for (unsigned i = 0; i < s->count; i++) {
		flush(s, &s->clients[i]);        /* part of a batch is answered, the rest is not */
		if (s->clients[i].fd >= 0)
			close(s->clients[i].fd);
		s->clients[i].fd = -1;
	}
}

/* Does the command, and what goes wrong with its reply. False: the connection is gone. */
static bool serve(struct tiny_server *s, struct client *c, int argc, char **argv)
{
	char reply[256];
	const struct tiny_faults *f = &s->faults;

	if (strcmp(argv[0], "AUTH") == 0) {
		c->known = f->token != NULL && strcmp(argv[argc - 1], f->token) == 0;
		put(c, c->known ? "+OK\r\n" : "-WRONGPASS no\r\n", c->known ? 5 : 15);
		return true;
	}
	int n = answer(s, c, reply, sizeof reply, argc, argv);

	count_one(&s->commands, 1);
	s->replies++;
	if (s->replies == f->hang_up) {          /* done, but not answered */
		hang_up(s);
		return false;
	}
	if (s->replies == f->stall)
		nanosleep(&(struct timespec){ f->stall_ms / 1000, (long)(f->stall_ms % 1000) * 1000000 }, NULL);
	if (s->replies == f->error)
		n = snprintf(reply, sizeof reply, "-ERR planted\r\n");
	if (s->replies == f->text)
		n = snprintf(reply, sizeof reply, "+OK\r\n");
	if (s->replies == f->garbage)
		n = snprintf(reply, sizeof reply, "what?\r\n");
	if (s->replies != f->swallow)
		put(c, reply, (size_t)n);
	if (s->replies == f->twice)
		put(c, reply, (size_t)n);
	return true;
}

#define NO_COMMAND SIZE_MAX

/* One command from the beginning of in: its bytes, or 0 if it is not all there, or NO_COMMAND. */
static size_t parse(char *in, size_t len, int *argc, char **argv)
{
	char *at = in, *end = in + len, *line;

	if ((line = memchr(at, '\n', len)) == NULL)
		return 0;
	*argc = atoi(at + 1);
	if (*at != '*' || *argc < 1 || *argc > ARGS)
		return NO_COMMAND;
	at = line + 1;
	for (int i = 0; i < *argc; i++) {
		if (at >= end || (line = memchr(at, '\n', (size_t)(end - at))) == NULL)
			return 0;
		size_t n = strtoul(at + 1, NULL, 10);

		if ((size_t)(end - line) < n + 3)
			return 0;
		argv[i] = line + 1;
		at = line + 1 + n + 2;
	}
	for (int i = 0; i < *argc; i++) {
		char *stop = memchr(argv[i], '\r', (size_t)(end - argv[i]));

		if (stop == NULL)
			return NO_COMMAND;
		*stop = '\0';
	}
	return (size_t)(at - in);
}

static void let_go(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

static void readable(struct tiny_server *s, struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_len, IN - c->in_len, MSG_DONTWAIT);
	size_t at = 0, used;
	char *argv[ARGS] = { 0 };
	int argc;

	if (n <= 0) {
		let_go(c);
		return;
	}
	c->in_len += (size_t)n;
	while ((used = parse(c->in + at, c->in_len - at, &argc, argv)) > 0) {
		if (used == NO_COMMAND) {
			let_go(c);
			return;
		}
		at += used;
		if (!serve(s, c, argc, argv))
			return;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
}

static void welcome(struct tiny_server *s)
{
	int fd = accept(s->listener, NULL, NULL);
	unsigned i = 0;

	if (fd < 0)
		return;
	while (i < s->count && s->clients[i].fd >= 0)
		i++;
	if (i == CLIENTS) {
		close(fd);
		return;
	}
	s->count += i == s->count;
	memset(&s->clients[i], 0, sizeof s->clients[i]);
	s->clients[i].fd = fd;
	s->clients[i].known = s->faults.token == NULL;
}

static void *run(void *arg)
{
	struct tiny_server *s = arg;
	struct pollfd p[CLIENTS + 1];

	while (load_relaxed(&s->stop) == 0) {
		unsigned n = s->count;

		p[0] = (struct pollfd){ .fd = s->listener, .events = POLLIN };
		for (unsigned i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN };
		if (poll(p, n + 1, 10) <= 0)
			continue;
		for (unsigned i = 0; i < n; i++)
			if (p[i + 1].revents != 0 && s->clients[i].fd >= 0)
				readable(s, &s->clients[i]);
		for (unsigned i = 0; i < n; i++)
			flush(s, &s->clients[i]);
		if (p[0].revents != 0)
			welcome(s);
	}
	return NULL;
}

struct tiny_server *tiny_start(const struct tiny_faults *faults)
{
	struct tiny_server *s = calloc(1, sizeof *s);
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	s->clients = calloc(CLIENTS, sizeof *s->clients);
	if (faults != NULL)
		s->faults = *faults;
	strcpy(s->directory, "/tmp/noh-tiny-XXXXXX");
	if (mkdtemp(s->directory) == NULL)
		abort();
	snprintf(s->path, sizeof s->path, "%s/socket", s->directory);
	strcpy(a.sun_path, s->path);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s->listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(s->listener, CLIENTS) != 0)
		abort();
	pthread_create(&s->thread, NULL, run, s);
	return s;
}

const char *tiny_path(const struct tiny_server *s)
{
	return s->path;
}

uint64_t tiny_commands(const struct tiny_server *s)
{
	return load_relaxed(&s->commands);
}

uint64_t tiny_hangups(const struct tiny_server *s)
{
	return load_relaxed(&s->hangups);
}

void tiny_stop(struct tiny_server *s)
{
	store_relaxed(&s->stop, 1);
	pthread_join(s->thread, NULL);
	for (unsigned i = 0; i < s->count; i++)
		if (s->clients[i].fd >= 0)
			close(s->clients[i].fd);
	close(s->listener);
	unlink(s->path);
	rmdir(s->directory);
	free(s->clients);
	free(s);
}
