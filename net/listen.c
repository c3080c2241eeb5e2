/* net/listen.c - the sockets that clients come to: made here, or given by who started the program. */
#include "net/net.h"

#include "core/error.h"
#include "core/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int parse_address(const char *text, int port, struct sockaddr_storage *out, socklen_t *len)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)out;

	memset(out, 0, sizeof *out);
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		*len = sizeof *four;
	} else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		*len = sizeof *six;
	} else {
		return error_set(NOH_EINVAL, "\"%s\" is not an IP address to listen on", text);
	}
	return NOH_OK;
}

static bool is_loopback(const struct sockaddr_storage *at)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)at;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)at;

	return at->ss_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == 127
					: IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static int cannot_listen(const struct server *s, int port)
{
	return error_set(NOH_ESYSTEM, "cannot listen on %s port %d%s: %s", s->o.bind, port,
			 port == s->o.http_port ? " (HTTP)" : "", strerror(errno));
}

static int make_room(const struct server *s, struct entrance *l)
{
	l->tcp = mem_alloc(s->workers * sizeof *l->tcp);
	if (!l->tcp)
		return error_set(NOH_ENOMEM, "no memory for %u listeners", s->workers);
	for (uint32_t i = 0; i < s->workers; i++)
		l->tcp[i] = -1;
	return NOH_OK;
}

/* A socket that somebody else has opened: all workers accept from it. The flag that it does not block is all
 * descriptors' own; io_uring would be told that nobody comes. */
static int listen_given(struct server *s, struct entrance *l, int fd, int *port)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at, size = sizeof(int);
	int listens = 0, flags = fcntl(fd, F_GETFL), rc;

	if (getsockname(fd, (struct sockaddr *)&at, &len) != 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
	    !listens || (at.ss_family != AF_INET && at.ss_family != AF_INET6))
		return error_set(NOH_EINVAL, "descriptor %d is no TCP socket that listens", fd);
	rc = make_room(s, l);
	if (rc != NOH_OK)
		return rc;
	s->loopback &= is_loopback(&at);
	*port = ntohs(at.ss_family == AF_INET ? ((const struct sockaddr_in *)(const void *)&at)->sin_port
					      : ((const struct sockaddr_in6 *)(const void *)&at)->sin6_port);
	for (uint32_t i = 0; i < s->workers; i++) {
		l->tcp[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (l->tcp[i] < 0)
			return error_set(NOH_ESYSTEM, "a descriptor for another worker: %s", strerror(errno));
	}
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
		return error_set(NOH_ESYSTEM, "descriptor %d: %s", fd, strerror(errno));
	(void)close(fd);
	return NOH_OK;
}

/* On the way to itself a machine has no congestion, and nothing to pace: what a system prefers for its network (bbr, say)
 * would only cost time there. Every Linux has this one, and allows it. Connections inherit it. */
static void spare_pacing(int fd)
{
	static const char plain[] = "reno";

	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

static int listen_tcp(struct server *s, struct entrance *l, int port)
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	int rc = parse_address(s->o.bind, port, &at, &len), one = 1;

	if (rc != NOH_OK)
		return rc;
	s->loopback &= is_loopback(&at);
	rc = make_room(s, l);
	if (rc != NOH_OK)
		return rc;
	for (uint32_t i = 0; i < s->workers; i++) {
		int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		l->tcp[i] = fd;
		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0)
			return error_set(NOH_ESYSTEM, "a socket for %s: %s", s->o.bind, strerror(errno));
		/* The first one without SO_REUSEPORT would refuse the others; another server's is found by trying. */
		if (i == 0 && bind(fd, (struct sockaddr *)&at, len) != 0)
			return cannot_listen(s, port);
		if (i == 0) {
			(void)close(fd);
			fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			l->tcp[i] = fd;
			(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		}
		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0 ||
		    bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 1024) != 0)
			return cannot_listen(s, port);
		if (is_loopback(&at))
			spare_pacing(fd);
	}
	return NOH_OK;
}

/* A socket file that nobody listens on is left over from a crash: it goes. */
static bool is_stale(const struct sockaddr_un *at)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool stale = fd >= 0 && stat(at->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		     connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 && errno == ECONNREFUSED;

	if (fd >= 0)
		(void)close(fd);
	return stale;
}

static int listen_unix(struct entrance *l, const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof at.sun_path)
		return error_set(NOH_EINVAL, "%s: the path of a Unix socket has at most %zu bytes", path,
				 sizeof at.sun_path - 1);
	memcpy(at.sun_path, path, strlen(path) + 1);
	if (is_stale(&at))
		(void)unlink(at.sun_path);
	l->local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->local < 0 || bind(l->local, (struct sockaddr *)&at, sizeof at) != 0)
		return error_set(NOH_ESYSTEM, "cannot listen on %s: %s; choose another path", path,
				 errno == EADDRINUSE ? "somebody does, or it is a file and no socket" : strerror(errno));
	l->bound = true;
	/* Nobody can connect before it listens, and then it is its owner's alone. */
	if (chmod(at.sun_path, 0700) != 0 || listen(l->local, 1024) != 0)
		return error_set(NOH_ESYSTEM, "cannot listen on %s: %s", path, strerror(errno));
	return NOH_OK;
}

int listen_open(struct server *s)
{
	int rc = NOH_OK;

	s->loopback = true;
	if (s->o.resp_fd)
		rc = listen_given(s, &s->resp, s->o.resp_fd, &s->o.resp_port);
	else if (s->o.resp_port > 0)
		rc = listen_tcp(s, &s->resp, s->o.resp_port);
	if (rc == NOH_OK && s->o.unix_path)
		rc = listen_unix(&s->resp, s->o.unix_path);
	if (rc == NOH_OK && s->o.http_fd)
		rc = listen_given(s, &s->http, s->o.http_fd, &s->o.http_port);
	else if (rc == NOH_OK && s->o.http_port > 0)
		rc = listen_tcp(s, &s->http, s->o.http_port);
	if (rc == NOH_OK && s->o.http_unix_path)
		rc = listen_unix(&s->http, s->o.http_unix_path);
	return rc;
}

static void stop_listening(struct entrance *l, uint32_t workers, const char *path)
{
	for (uint32_t i = 0; l->tcp && i < workers; i++)
		if (l->tcp[i] >= 0)
			(void)close(l->tcp[i]);
	if (l->local >= 0)
		(void)close(l->local);
	if (l->bound)
		(void)unlink(path);
	mem_free(l->tcp, workers * sizeof *l->tcp);
}

void listen_close(struct server *s)
{
	stop_listening(&s->resp, s->workers, s->o.unix_path);
	stop_listening(&s->http, s->workers, s->o.http_unix_path);
}

static void close_one(struct entrance *l, uint32_t worker)
{
	if (!l->tcp || l->tcp[worker] < 0)
		return;
	(void)close(l->tcp[worker]);
	l->tcp[worker] = -1;
}

void server_unlisten(struct server *s, uint32_t worker)
{
	close_one(&s->resp, worker);
	close_one(&s->http, worker);
}
