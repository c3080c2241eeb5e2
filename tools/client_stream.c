/* tools/client_stream.c - server-sent events of noh: a line each for id, event and data, an empty line behind them. */
#include "tools/client.h"

#include "tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 65536 };

/* ── one event ── */

/* The text behind "name: "; NULL: this line is another. */
static char *value_of(char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	return line + len + 1 + (line[len + 1] == ' ');
}

int client_read_event(char *bytes, size_t len, struct client_event *e)
{
	char *end = len >= 2 ? memmem(bytes, len, "\n\n", 2) : NULL, *line, *stop, *value;

	*e = (struct client_event){ .name = "message", .id = "", .data = "" };
	if (len >= 1 && bytes[0] == '\n')        /* an empty line of its own is nothing */
		return 1;
	if (!end)
		return 0;
	if (memchr(bytes, 0, (size_t)(end - bytes)) || memchr(bytes, '\r', (size_t)(end - bytes)))
		return -1;
	for (line = bytes; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end + 1 - line));
		*stop = 0;
		if ((value = value_of(line, "id")) != NULL)
			e->id = value;
		else if ((value = value_of(line, "event")) != NULL)
			e->name = value;
		else if ((value = value_of(line, "data")) != NULL)
			e->data = value;
		else if (*line != ':' && !value_of(line, "retry"))
			return -1;
	}
	e->len = strlen(e->data);
	return (int)(end + 2 - bytes);
}

/* ── the stream ── */

enum client_result client_stream_open(const struct client *c, const char *path, struct client_stream *s, struct client_reply *reply,
				      char *why, size_t size)
{
	uint64_t until = cli_now_ns() + c->timeout_ms * 1000000u;
	enum client_result result = CLIENT_OK;
	size_t head_len = 0, body_len = 0;

	memset(reply, 0, sizeof *reply);
	*s = (struct client_stream){ .fd = -1, .room = CLIENT_HEAD_MAX + ROOM };
	s->bytes = malloc(s->room);
	if (!s->bytes) {
		snprintf(why, size, "out of memory");
		return CLIENT_BROKEN;
	}
	s->fd = client_dial(c, "GET", path, "Accept: text/event-stream\r\n", NULL, 0, until, &result, why, size);
	if (s->fd >= 0)
		head_len = client_receive_head(c, s->fd, until, reply, s->bytes, s->room, &s->len, &body_len, &result, why, size);
	s->from = head_len;
	if (head_len && reply->stream)
		return CLIENT_OK;
	if (head_len)
		result = client_receive_body(c, s->fd, until, reply, s->bytes + s->from, s->len - s->from, body_len, why, size);
	client_stream_close(s);
	if (result != CLIENT_OK)
		client_reply_free(reply);
	return result;
}

/* Room for more behind what is there; false: one event is longer than any of noh's. */
static bool make_room(struct client_stream *s)
{
	char *larger;

	if (s->from) {
		memmove(s->bytes, s->bytes + s->from, s->len -= s->from);
		s->from = 0;
	}
	if (s->len < s->room)
		return true;
	larger = s->room < CLIENT_EVENT_MAX ? realloc(s->bytes, s->room * 2) : NULL;
	if (!larger)
		return false;
	s->bytes = larger;
	s->room *= 2;
	return true;
}

enum client_next client_stream_next(struct client_stream *s, struct client_event *e, uint64_t until_ns, char *why, size_t size)
{
	for (;;) {
		int took = client_read_event(s->bytes + s->from, s->len - s->from, e);
		ptrdiff_t n;

		if (took > 0) {
			s->from += (size_t)took;
			if (e->len)
				return NEXT_EVENT;
			continue;                        /* a sign of life */
		}
		if (took < 0 || !make_room(s)) {
			snprintf(why, size, took < 0 ? "the stream has something in it that is no event" : "an event is too long");
			return NEXT_BROKEN;
		}
		n = client_receive(s->fd, s->bytes + s->len, s->room - s->len, until_ns);
		if (n <= 0)
			return n < 0 ? NEXT_TIMED_OUT : NEXT_ENDED;
		s->len += (size_t)n;
	}
}

void client_stream_close(struct client_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->bytes);
	*s = (struct client_stream){ .fd = -1 };
}
