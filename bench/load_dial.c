/* bench/load_dial.c - connecting, AUTH, and conversations before and after the run: plain blocking calls. */
#include "bench/load.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

bool load_say(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		n -= (size_t)sent;
	}
	return true;
}

/* Reads so many replies; *last is the last one, or the first error among them. raw: the bytes as text, cut. */
bool load_hear(int fd, uint64_t replies, struct reply *last, char *raw, size_t room)
{
	struct reply r;
	uint8_t bytes[4096];
	size_t kept = 0;
	bool error = false;

	reply_reset(&r);
	while (replies > 0) {
		ssize_t n = recv(fd, bytes, sizeof bytes, 0);
		const uint8_t *at = bytes, *end = bytes + (n > 0 ? n : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		for (size_t i = 0; raw != NULL && i < (size_t)n && kept + 1 < room; i++)
			raw[kept++] = (char)bytes[i];
		while (at < end) {
			enum reply_state state = reply_next(&r, &at, end);

			if (state == REPLY_BROKEN || (state == REPLY_DONE && replies-- == 0))
				return false;
			if (state == REPLY_DONE && !error) {
				*last = r;
				error = r.type == '-';
			}
		}
	}
	if (raw != NULL)
		raw[kept] = '\0';
	return true;
}

size_t load_command(char *out, size_t room, unsigned argc, const char *const *argv)
{
	size_t at = (size_t)snprintf(out, room, "*%u\r\n", argc);

	for (unsigned i = 0; i < argc && at < room; i++)
		at += (size_t)snprintf(out + at, room - at, "$%zu\r\n%s\r\n", strlen(argv[i]), argv[i]);
	return at < room ? at : 0;
}

bool load_ask(int fd, struct reply *r, char *raw, size_t room, unsigned argc, const char *const *argv)
{
	char request[4096];
	size_t n = load_command(request, sizeof request, argc, argv);

	return n > 0 && load_say(fd, request, n) && load_hear(fd, 1, r, raw, room);
}

static int dial_unix(const char *path, char *why, size_t room)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof a.sun_path) {
		snprintf(why, room, "the path %s is too long for a socket", path);
	} else if (fd >= 0) {
		strcpy(a.sun_path, path);
		if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
			return fd;
		snprintf(why, room, "cannot connect to %s: %s", path, strerror(errno));
	} else {
		snprintf(why, room, "no socket: %s", strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static int dial_tcp(const char *host, unsigned port, char *why, size_t room)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char service[16];
	int fd = -1, one = 1;

	snprintf(service, sizeof service, "%u", port);
	int rc = getaddrinfo(host, service, &want, &found);
	if (rc != 0) {
		snprintf(why, room, "cannot find the host %s: %s", host, gai_strerror(rc));
		return -1;
	}
	for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			break;
		snprintf(why, room, "cannot connect to %s port %u: %s", host, port, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static bool authenticate(const struct load_plan *plan, int fd, char *why, size_t room)
{
	const char *with_user[] = { "AUTH", plan->user, plan->token };
	const char *without[] = { "AUTH", plan->token };
	struct reply r;
	bool answered = plan->user != NULL ? load_ask(fd, &r, NULL, 0, 3, with_user)
					   : load_ask(fd, &r, NULL, 0, 2, without);

	if (answered && r.type == '+')
		return true;
	snprintf(why, room, "AUTH was answered with: %.120s", answered ? r.leaf : "nothing");
	return false;
}

int load_dial(const struct load_plan *plan, char *why, size_t room)
{
	int fd = plan->unix_path != NULL ? dial_unix(plan->unix_path, why, room)
					 : dial_tcp(plan->host, plan->port, why, room);
	struct timeval patience = { .tv_sec = (time_t)plan->patience + 1 };

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (plan->token == NULL || authenticate(plan, fd, why, room))
		return fd;
	close(fd);
	return -1;
}
