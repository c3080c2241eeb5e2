/* tools/serve_sockets.c - sockets that the service manager has opened for noh serve (socket activation).
 *
 * It says so in LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES; they begin at descriptor 3. One is for RESP, or for HTTP: by its name,
 * or if that is another by its port. They stay open while the server is started anew: clients wait, and none is refused.
 */
#include "tools/cli.h"
#include "tools/serve_in.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD = 3, SOCKETS_MOST = 2 };

/* Its address, for people; the port; whether others than this machine reach it. */
static bool look_at(struct given_socket *g, int fd, uint16_t *port)
{
	union { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; struct sockaddr_storage room; } at;
	socklen_t len = sizeof at, size = sizeof(int);
	int listens = 0;
	char text[INET6_ADDRSTRLEN];

	if (getsockname(fd, &at.any, &len) != 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
		return false;
	if (at.any.sa_family != AF_INET && at.any.sa_family != AF_INET6)
		return false;
	bool six = at.any.sa_family == AF_INET6;

	*port = ntohs(six ? at.six.sin6_port : at.four.sin_port);
	inet_ntop(at.any.sa_family, six ? (const void *)&at.six.sin6_addr : (const void *)&at.four.sin_addr, text, sizeof text);
	g->fd = fd;
	g->loopback = six ? IN6_IS_ADDR_LOOPBACK(&at.six.sin6_addr) : ntohl(at.four.sin_addr.s_addr) >> 24 == 127;
	snprintf(g->at, sizeof g->at, six ? "[%s]:%u" : "%s:%u", text, *port);
	return true;
}

static bool is_http(const struct server *s, const char *name, uint16_t port)
{
	if (strcmp(name, "http") == 0 || strcmp(name, "resp") == 0)
		return *name == 'h';
	return port == settings_number(&s->settings, SET_HTTP_PORT);
}

static bool take(struct server *s, int fd, const char *name, char *why, size_t size)
{
	struct given_socket g = { .fd = 0 }, *to;
	uint16_t port;

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (!look_at(&g, fd, &port)) {
		snprintf(why, size, "the service manager's socket \"%.60s\" (descriptor %d) is no TCP socket that listens: ListenStream= is "
			 "ADDRESS:PORT; Unix sockets noh makes itself, for their owner alone (net.unix, http.unix)", name, fd);
		return false;
	}
	to = is_http(s, name, port) ? &s->given.http : &s->given.resp;
	if (to->fd) {
		snprintf(why, size, "the service manager's sockets %s and %s are both for %s: name them (FileDescriptorName=resp, "
			 "FileDescriptorName=http), or let http.port be that of the second", to->at, g.at, to == &s->given.http ? "HTTP" : "RESP");
		return false;
	}
	*to = g;
	return true;
}

bool sockets_take(struct server *s, char *why, size_t size)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
	char list[256] = "", *rest = list, *name;
	uint64_t count = 0, whose = 0;
	bool ok = true;

	if (!pid || !fds || !cli_number(pid, 1, INT32_MAX, &whose) || whose != (uint64_t)getpid())
		return true;                     /* none, or another process's */
	if (!cli_number(fds, 0, SOCKETS_MOST, &count)) {
		snprintf(why, size, "LISTEN_FDS=%.40s: the service manager may give noh one socket for RESP and one for HTTP", fds);
		return false;
	}
	if (names)
		snprintf(list, sizeof list, "%s", names);
	for (uint64_t i = 0; ok && i < count; i++) {
		name = strsep(&rest, ":");
		ok = take(s, FIRST_FD + (int)i, name ? name : "", why, size);
	}
	(void)unsetenv("LISTEN_PID");            /* they are taken */
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return ok;
}
