/* tools/client.c - one request, one answer. */
#include "tools/client.h"

#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ── which server ── */

static bool port_ok(const char *port)
{
	uint64_t n;

	return strlen(port) <= 5 && strspn(port, "0123456789") == strlen(port) && cli_number(port, 1, 65535, &n);
}

bool client_set_url(struct client *c, const char *url, char *why, size_t size)
{
	const char *at = url + 7, *end, *colon;
	char port[8] = "5012";
	size_t host;

	snprintf(why, size, "is no http://HOST:PORT");
	if (strncasecmp(url, "https://", 8) == 0)
		snprintf(why, size, "asks for TLS, which noh does not speak: use http:// through a tunnel of yours");
	if (strncasecmp(url, "http://", 7) != 0)
		return false;
	end = at + strcspn(at, "/?#");
	if (*end && strcmp(end, "/") != 0) {
		snprintf(why, size, "has a path: say http://HOST:PORT alone");
		return false;
	}
	if (*at == '[') {                        /* http://[::1]:5012 */
		const char *close = memchr(at, ']', (size_t)(end - at));

		if (!close || (close + 1 != end && close[1] != ':'))
			return false;
		colon = close + 1 == end ? NULL : close + 1;
		at++;
		host = (size_t)(close - at);
	} else {
		colon = memchr(at, ':', (size_t)(end - at));
		host = (size_t)((colon ? colon : end) - at);
	}
	if (colon && (size_t)(end - colon - 1) < sizeof port)
		snprintf(port, sizeof port, "%.*s", (int)(end - colon - 1), colon + 1);
	else if (colon)
		return false;
	if (host == 0 || host >= sizeof c->host || !port_ok(port) || memchr(at, '@', host))
		return false;
	for (size_t i = 0; i < host; i++)
		if (at[i] <= ' ' || at[i] > '~')
			return false;
	snprintf(c->host, sizeof c->host, "%.*s", (int)host, at);
	snprintf(c->port, sizeof c->port, "%s", port);
	c->unix_path[0] = 0;
	snprintf(c->where, sizeof c->where, strchr(c->host, ':') ? "http://[%s]:%s" : "http://%s:%s", c->host, c->port);
	return true;
}

bool client_set_unix(struct client *c, const char *path, char *why, size_t size)
{
	if (!*path || strlen(path) >= sizeof c->unix_path) {
		snprintf(why, size, "is no path of a socket: 1 to %zu bytes", sizeof c->unix_path - 1);
		return false;
	}
	snprintf(c->unix_path, sizeof c->unix_path, "%s", path);
	snprintf(c->where, sizeof c->where, "%s", path);
	return true;
}

bool client_set_token(struct client *c, const char *token)
{
	size_t len = strlen(token);

	for (size_t i = 0; i < len; i++)
		if (token[i] <= ' ' || token[i] > '~')
			return false;
	if (len == 0 || len > CLIENT_TOKEN_MAX)
		return false;
	memcpy(c->token, token, len + 1);
	return true;
}

/* ── reaching it ── */

static int left_ms(uint64_t until_ns)
{
	uint64_t now = cli_now_ns();

	return now >= until_ns ? 0 : (int)((until_ns - now + 999999) / 1000000);
}

/* False: the time is up. */
static bool ready(int fd, short what, uint64_t until_ns)
{
	struct pollfd p = { .fd = fd, .events = what };
	int n;

	do {
		n = poll(&p, 1, left_ms(until_ns));
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

/* The descriptor, or -errno. */
static int connect_to(int family, const struct sockaddr *to, socklen_t len, uint64_t until_ns)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
	socklen_t size = sizeof err;

	if (fd < 0)
		return -errno;
	if (connect(fd, to, len) != 0) {
		err = errno;
		if (err == EINPROGRESS && !ready(fd, POLLOUT, until_ns))
			err = ETIMEDOUT;
		else if (err == EINPROGRESS && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0)
			err = errno;
	}
	if (err == 0)
		return fd;
	close(fd);
	return -err;
}

static int reach_unix(const struct client *c, uint64_t until_ns, char *why, size_t size)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memcpy(to.sun_path, c->unix_path, strlen(c->unix_path) + 1);
	int fd = connect_to(AF_UNIX, (const struct sockaddr *)&to, sizeof to, until_ns);

	if (fd == -ENOENT)
		snprintf(why, size, "there is no server at %s: start one (noh serve), or say where it is (--data DIR, --url URL)",
			 c->where);
	else if (fd == -ECONNREFUSED)
		snprintf(why, size, "nobody listens at %s: its server has ended; start it again (noh serve)", c->where);
	else if (fd == -EACCES || fd == -EPERM)
		snprintf(why, size, "you may not use %s: be its owner, or ask with --url and a token", c->where);
	else if (fd < 0)
		snprintf(why, size, "%s: %s", c->where, strerror(-fd));
	return fd;
}

static int reach_tcp(const struct client *c, uint64_t until_ns, char *why, size_t size)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(c->host, c->port, &hints, &list), fd = -EHOSTUNREACH;

	if (rc != 0) {
		snprintf(why, size, "%s: %s", c->host, gai_strerror(rc));
		return -1;
	}
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = connect_to(a->ai_family, a->ai_addr, a->ai_addrlen, until_ns);
	freeaddrinfo(list);
	if (fd == -ECONNREFUSED)
		snprintf(why, size, "nobody listens at %s: is the server running (noh serve), and is this its HTTP port?", c->where);
	else if (fd < 0)
		snprintf(why, size, "%s: %s", c->where, strerror(-fd));
	return fd;
}

/* ── its answer ── */

static bool number_header(const char *value, size_t len, uint64_t most, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9' || *number > most)
			return false;
		*number = *number * 10 + (uint64_t)(value[i] - '0');
	}
	return len > 0 && *number <= most;
}

static bool named(const char *line, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(line, name, len) == 0;
}

/* One line "Name: value". False: it makes the answer useless. */
static bool header(struct client_reply *r, const char *line, size_t len, size_t *body_len, bool *has_length, char *why,
		   size_t size)
{
	const char *colon = memchr(line, ':', len), *value;
	size_t name = colon ? (size_t)(colon - line) : 0, value_len;
	uint64_t n;

	snprintf(why, size, "its answer has a header that is none");
	if (name == 0 || memchr(line, ' ', name))
		return false;
	value = colon + 1;
	value_len = len - name - 1;
	for (; value_len && (*value == ' ' || *value == '\t'); value_len--)
		value++;
	for (; value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'); value_len--)
		;
	if (named(line, name, "content-length")) {
		snprintf(why, size, "its answer has no length that makes sense, or is longer than %d MiB", CLIENT_BODY_MAX >> 20);
		if (*has_length || !number_header(value, value_len, CLIENT_BODY_MAX, &n))
			return false;
		*has_length = true;
		*body_len = (size_t)n;
	} else if (named(line, name, "transfer-encoding")) {
		snprintf(why, size, "its answer comes in pieces, as noh's never do: it is something else");
		return false;
	} else if (named(line, name, "content-type")) {
		snprintf(r->content_type, sizeof r->content_type, "%.*s", (int)(value_len < 60 ? value_len : 60), value);
	} else if (named(line, name, "retry-after") && number_header(value, value_len, 86400, &n)) {
		r->retry_after = (uint32_t)n;
	} else if (named(line, name, "idempotency-replayed")) {
		r->replayed = named(value, value_len, "true");
	}
	return true;
}

int client_read_head(const char *bytes, size_t len, struct client_reply *r, size_t *body_len, char *why, size_t size)
{
	const char *end = len >= 4 ? memmem(bytes, len, "\r\n\r\n", 4) : NULL, *line;
	bool has_length = false;

	if (len >= 5 && strncmp(bytes, "HTTP/", 5) != 0) {
		snprintf(why, size, "what answers does not speak HTTP: is this the HTTP port?");
		return -1;
	}
	if (!end && len < CLIENT_HEAD_MAX)
		return 0;
	snprintf(why, size, "its answer begins with more than %d bytes of headers", CLIENT_HEAD_MAX);
	if (!end || end - bytes > CLIENT_HEAD_MAX)
		return -1;
	snprintf(why, size, "its answer is no HTTP/1.1");
	if (len < 13 || strncmp(bytes, "HTTP/1.1 ", 9) != 0 || strspn(bytes + 9, "0123456789") != 3 ||
	    (bytes[12] != ' ' && bytes[12] != '\r') || memchr(bytes, 0, (size_t)(end - bytes)))
		return -1;
	r->status = atoi(bytes + 9);
	r->content_type[0] = 0;
	*body_len = 0;
	for (line = (const char *)memchr(bytes, '\n', len) + 1; line < end + 2; ) {
		const char *stop = memchr(line, '\n', (size_t)(end + 2 - line));

		if (!stop || stop[-1] != '\r')
			return -1;
		if (!header(r, line, (size_t)(stop - 1 - line), body_len, &has_length, why, size))
			return -1;
		line = stop + 1;
	}
	r->stream = !has_length && r->status == 200 && strcmp(r->content_type, "text/event-stream") == 0;
	snprintf(why, size, "its answer does not say how long it is");
	if (r->status < 100 || (!has_length && !r->stream && r->status >= 200 && r->status != 204 && r->status != 304))
		return -1;
	return (int)(end + 4 - bytes);
}

/* ── one call ── */

static bool send_all(int fd, const char *bytes, size_t len, uint64_t until_ns)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && ready(fd, POLLOUT, until_ns))
			continue;
		if (n < 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

ptrdiff_t client_receive(int fd, char *room, size_t size, uint64_t until_ns)
{
	for (;;) {
		ssize_t n = recv(fd, room, size, 0);

		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n < 0 ? 0 : n;
		if (errno == EAGAIN && !ready(fd, POLLIN, until_ns))
			return -1;
	}
}

static enum client_result too_late(char *why, size_t size, const struct client *c)
{
	snprintf(why, size, "no answer from %s in %llu ms; what was asked may still take effect", c->where,
		 (unsigned long long)c->timeout_ms);
	return CLIENT_TIMED_OUT;
}

static enum client_result broken(char *why, size_t size, const struct client *c, const char *how)
{
	snprintf(why, size, "%s%s", c->where, how);
	return CLIENT_BROKEN;
}

size_t client_receive_head(const struct client *c, int fd, uint64_t until_ns, struct client_reply *r, char *head, size_t room,
			   size_t *have, size_t *body_len, enum client_result *result, char *why, size_t size)
{
	int head_len = 0;
	char half[256];

	for (*have = 0; head_len == 0; ) {
		ptrdiff_t n = client_receive(fd, head + *have, room - *have, until_ns);

		if (n < 0) {
			*result = too_late(why, size, c);
			return 0;
		}
		*have += (size_t)n;
		head_len = client_read_head(head, *have, r, body_len, half, sizeof half);
		if (head_len > 0 && r->status < 200) {           /* 100: the answer is still to come */
			memmove(head, head + head_len, *have -= (size_t)head_len);
			head_len = *have ? client_read_head(head, *have, r, body_len, half, sizeof half) : 0;
		}
		if (n == 0 && head_len == 0) {
			*result = broken(why, size, c, " ended the connection without an answer");
			return 0;
		}
	}
	if (head_len > 0)
		return (size_t)head_len;
	snprintf(why, size, "%s: %s", c->where, half);
	*result = CLIENT_BROKEN;
	return 0;
}

enum client_result client_receive_body(const struct client *c, int fd, uint64_t until_ns, struct client_reply *r, const char *first,
				       size_t have, size_t body_len, char *why, size_t size)
{
	r->body = malloc(body_len + 1);
	if (!r->body) {
		snprintf(why, size, "no memory for an answer of %zu bytes", body_len);
		return CLIENT_BROKEN;
	}
	if (have > body_len)
		have = body_len;
	memcpy(r->body, first, have);
	for (r->len = have; r->len < body_len; ) {
		ptrdiff_t n = client_receive(fd, r->body + r->len, body_len - r->len, until_ns);

		if (n < 0)
			return too_late(why, size, c);
		if (n == 0)
			return broken(why, size, c, " ended the connection in the middle of its answer");
		r->len += (size_t)n;
	}
	r->body[r->len] = 0;
	return CLIENT_OK;
}

static enum client_result read_answer(const struct client *c, int fd, uint64_t until_ns, struct client_reply *r, char *why,
				      size_t size)
{
	char head[CLIENT_HEAD_MAX + 4096];       /* its own: drain calls from two threads */
	enum client_result result = CLIENT_OK;
	size_t have, body_len = 0, head_len = client_receive_head(c, fd, until_ns, r, head, sizeof head, &have, &body_len, &result, why, size);

	if (!head_len)
		return result;
	if (r->stream)
		return broken(why, size, c, " answers with a stream that does not end");
	return client_receive_body(c, fd, until_ns, r, head + head_len, have - head_len, body_len, why, size);
}

static size_t write_head(const struct client *c, char *head, size_t size, const char *method, const char *path,
			 const char *headers, size_t len)
{
	const char *host = *c->unix_path ? "localhost" : c->host;
	bool six = strchr(host, ':') != NULL, post = strcmp(method, "POST") == 0;

	return (size_t)snprintf(head, size, "%s %s HTTP/1.1\r\nHost: %s%s%s%s%s\r\nConnection: close\r\n%s%s%s%s%sContent-Length: %zu\r\n\r\n",
				method, path, six ? "[" : "", host, six ? "]" : "", *c->unix_path ? "" : ":",
				*c->unix_path ? "" : c->port, *c->token ? "Authorization: Bearer " : "", c->token,
				*c->token ? "\r\n" : "", headers, post ? "Content-Type: application/json\r\n" : "", len);
}

int client_dial(const struct client *c, const char *method, const char *path, const char *headers, const void *body, size_t len,
		uint64_t until_ns, enum client_result *result, char *why, size_t size)
{
	char head[4096];
	size_t head_len = write_head(c, head, sizeof head, method, path, headers, len);
	int fd;

	if (head_len >= sizeof head) {
		snprintf(why, size, "the request's headers are too long");
		*result = CLIENT_BROKEN;
		return -1;
	}
	fd = *c->unix_path ? reach_unix(c, until_ns, why, size) : reach_tcp(c, until_ns, why, size);
	if (fd < 0) {
		*result = fd == -ETIMEDOUT ? too_late(why, size, c) : CLIENT_UNREACHABLE;
		explicit_bzero(head, sizeof head);
		return -1;
	}
	/* A server that refuses answers before it has read all: its answer counts, not that the rest did not go. */
	bool sent = send_all(fd, head, head_len, until_ns) && send_all(fd, body, len, until_ns);

	explicit_bzero(head, sizeof head);
	if (sent || errno == EPIPE || errno == ECONNRESET)
		return fd;
	close(fd);
	*result = too_late(why, size, c);
	return -1;
}

enum client_result client_call(const struct client *c, const char *method, const char *path, const char *headers,
			       const void *body, size_t len, struct client_reply *reply, char *why, size_t size)
{
	uint64_t until = cli_now_ns() + c->timeout_ms * 1000000u;
	enum client_result result = CLIENT_OK;
	int fd;

	memset(reply, 0, sizeof *reply);
	fd = client_dial(c, method, path, headers, body, len, until, &result, why, size);
	if (fd < 0)
		return result;
	result = read_answer(c, fd, until, reply, why, size);
	close(fd);
	if (result != CLIENT_OK)
		client_reply_free(reply);
	return result;
}

void client_reply_free(struct client_reply *reply)
{
	free(reply->body);
	memset(reply, 0, sizeof *reply);
}
