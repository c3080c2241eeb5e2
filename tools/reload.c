/* tools/reload.c - the client of POST /admin/config/reload, over the server's own Unix socket. */
#include "tools/reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 1 << 18, PATIENCE_S = 65 };        /* the server gives up after 60 s */

/* ── the wire ── */

static int dial(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof at.sun_path) {
		errno = fd < 0 ? errno : ENAMETOOLONG;
	} else {
		strcpy(at.sun_path, path);
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
			return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* All of it, with a NUL; the server closes behind its answer. */
static size_t exchange(int fd, const char *request, char *answer, size_t size)
{
	size_t len = 0;
	ssize_t n = send(fd, request, strlen(request), MSG_NOSIGNAL);

	while (n > 0 && len + 1 < size && (n = read(fd, answer + len, size - 1 - len)) > 0)
		len += (size_t)n;
	answer[len] = 0;
	return len;
}

/* The status, and where the body begins; 0: that was no answer of HTTP, or not all of one. */
static int status_of(const char *answer, size_t len, const char **body)
{
	const char *end = strstr(answer, "\r\n\r\n"), *length = strcasestr(answer, "\r\nContent-Length:");
	int status = 0;

	if (!end || !length || length > end || sscanf(answer, "HTTP/1.1 %3d ", &status) != 1)
		return 0;
	*body = end + 4;
	return strtoul(length + strlen("\r\nContent-Length:"), NULL, 10) == len - (size_t)(*body - answer) ? status : 0;
}

/* ── what came of it ── */

/* "kind TAB field TAB field ..." */
static void tell_line(char *line, unsigned counts[2])
{
	char *field[5] = { "", "", "", "", "" };

	for (int i = 0; i < 5 && line; i++)
		field[i] = strsep(&line, "\t");
	if (strcmp(field[0], "changed") == 0 || strcmp(field[0], "restart") == 0) {
		bool waits = field[0][0] == 'r';

		counts[waits]++;
		printf("%-8s %s: \"%s\" -> \"%s\"  (%s)\n", waits ? "restart" : "changed", field[1], field[2], field[3], field[4]);
	} else {
		printf("%-8s %s\n", field[0], field[1]);
	}
}

static int tell(char *body, bool good)
{
	unsigned counts[2] = { 0, 0 };

	for (char *line; (line = strsep(&body, "\n")) != NULL; )
		if (*line)
			tell_line(line, counts);
	if (!good)
		printf("nothing was changed\n");
	else if (counts[0] + counts[1] == 0)
		printf("read again: nothing has changed\n");
	else if (counts[1])
		printf("%u changed, %u as before until a restart\n", counts[0], counts[1]);
	else
		printf("%u changed\n", counts[0]);
	return good ? CLI_FINE : CLI_FAILED;
}

static int judge(char *answer, size_t len, bool json)
{
	const char *body = NULL;
	int status = status_of(answer, len, &body);

	if (status == 0) {
		fprintf(stderr, "noh config reload: the server gave no whole answer; its log says what came of it\n");
		return CLI_TEMPORARY;
	}
	if (json && (status == 200 || status == 422)) {
		fputs(body, stdout);
		return status == 200 ? CLI_FINE : CLI_FAILED;
	}
	if (status == 200 || status == 422)
		return tell((char *)(uintptr_t)body, status == 200);
	fprintf(stderr, "noh config reload: the server says %d: %s\n", status, body);
	return status == 503 || status == 504 ? CLI_TEMPORARY : CLI_FAILED;
}

/* ── the verb ── */

static void say_nothing(void *user, bool wrong, const char *sentence)
{
	(void)user, (void)wrong, (void)sentence;
}

int reload_request(struct settings *s, bool json)
{
	char room[4200], request[256];
	const char *path;
	int code, fd, error;

	s->say = say_nothing;
	(void)settings_load(s, environ);
	path = settings_http_path(s, room, sizeof room);
	if (!path) {
		fprintf(stderr, "noh config reload: there is no Unix socket for HTTP (http.unix, or the data directory); send the "
			"server SIGHUP instead\n");
		return CLI_USAGE;
	}
	fd = dial(path);
	error = errno;
	if (fd < 0) {
		fprintf(stderr, "noh config reload: no server answers at %s: %s; --data names its directory\n", path,
			strerror(error));
		return error == EACCES ? CLI_FAILED : CLI_TEMPORARY;
	}
	snprintf(request, sizeof request, "POST /admin/config/reload HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n"
		 "Content-Length: 0\r\nConnection: close\r\n\r\n", json ? "application/json" : "text/plain");
	char *answer = malloc(MOST);

	code = answer ? judge(answer, exchange(fd, request, answer, MOST), json) : CLI_TEMPORARY;
	free(answer);
	close(fd);
	return code;
}
