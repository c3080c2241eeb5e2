/* tools/client.h - a small HTTP/1.1 client for one server: noh's own. Blocking, bounded, strict.
 *
 * One connection per call. The server's answer is taken only if it is framed by one Content-Length: noh never sends
 * anything else, so whatever does is not noh.
 *
 * Owns     the reply's bytes, until client_reply_free.
 * Threads  one.
 * Never    follows a redirect, and never waits longer than it was told.
 */
#ifndef NOH_TOOLS_CLIENT_H
#define NOH_TOOLS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIENT_HEAD_MAX = 32768, CLIENT_BODY_MAX = 64 << 20, CLIENT_TOKEN_MAX = 512 };

struct client {
	char     unix_path[108];           /* "": by host and port                                  */
	char     host[256], port[8];
	char     token[CLIENT_TOKEN_MAX + 1];
	char     where[400];               /* for sentences: "http://127.0.0.1:5012", "/x/http.sock" */
	uint64_t timeout_ms;
};

struct client_reply {
	int      status;                   /* of HTTP                                               */
	char     content_type[64];
	uint32_t retry_after;              /* seconds; 0: not said                                  */
	bool     stream;                   /* text/event-stream: it goes on until the connection ends */
	bool     replayed;                 /* an idempotent answer, given before                    */
	char    *body;                     /* with a NUL behind it                                  */
	size_t   len;
};

enum client_result {
	CLIENT_OK,                         /* there is an answer, whatever its status               */
	CLIENT_UNREACHABLE,                /* nobody listens there                                  */
	CLIENT_TIMED_OUT,                  /* no answer in time; it may still take effect           */
	CLIENT_BROKEN                      /* it ended too early, or is no noh server               */
};

/* "http://host:port", "http://[::1]:5012/": false, and why: a half sentence. */
bool client_set_url(struct client *c, const char *url, char *why, size_t size);
bool client_set_unix(struct client *c, const char *path, char *why, size_t size);
/* Printable and without blanks, or it is none. */
bool client_set_token(struct client *c, const char *token);

/* headers: further lines, each ended by \r\n, or "". why: of a result that is not CLIENT_OK, one sentence. */
enum client_result client_call(const struct client *c, const char *method, const char *path, const char *headers,
			       const void *body, size_t len, struct client_reply *reply, char *why, size_t size);
void client_reply_free(struct client_reply *reply);

/* ── a stream of events: client_stream.c ── */

enum { CLIENT_EVENT_MAX = 4 << 20 };

struct client_stream {
	int      fd;                       /* -1: there is none                                     */
	char    *bytes;                    /* received, not told yet: from `from` to `len`          */
	size_t   from, len, room;
};
struct client_event {                      /* in the stream's bytes, until the next one is asked for */
	const char *name;                  /* "message" where it has none                           */
	const char *id;                    /* "" where it has none                                  */
	const char *data;
	size_t      len;
};
enum client_next { NEXT_EVENT, NEXT_TIMED_OUT, NEXT_ENDED, NEXT_BROKEN };

/* CLIENT_OK: there is a stream, or (fd is -1) another answer in reply, to be freed. */
enum client_result client_stream_open(const struct client *c, const char *path, struct client_stream *s, struct client_reply *reply,
				      char *why, size_t size);
/* Until then, of cli_now_ns. NEXT_BROKEN: why says how. */
enum client_next client_stream_next(struct client_stream *s, struct client_event *e, uint64_t until_ns, char *why, size_t size);
void client_stream_close(struct client_stream *s);

/* The next event of these bytes: how many it took, 0: not all there yet, -1: it is none. Writes into them: its texts are ended. */
int client_read_event(char *bytes, size_t len, struct client_event *e);

/* ── for client_stream.c ── */

/* Connected, and the request sent. -1: *result and why say how not. */
int client_dial(const struct client *c, const char *method, const char *path, const char *headers, const void *body, size_t len,
		uint64_t until_ns, enum client_result *result, char *why, size_t size);
/* The head, in head (of *have bytes, some of the body behind it). 0: no answer, *result and why. */
size_t client_receive_head(const struct client *c, int fd, uint64_t until_ns, struct client_reply *r, char *head, size_t room,
			   size_t *have, size_t *body_len, enum client_result *result, char *why, size_t size);
enum client_result client_receive_body(const struct client *c, int fd, uint64_t until_ns, struct client_reply *r, const char *first,
				       size_t have, size_t body_len, char *why, size_t size);
/* More bytes into room; how many, 0: it ended, -1: the time is up. */
ptrdiff_t client_receive(int fd, char *room, size_t size, uint64_t until_ns);

/* The head of an answer: its length with the empty line, 0: not all there yet, -1: it is none (why says so).
 * *body_len: what follows. */
int client_read_head(const char *bytes, size_t len, struct client_reply *reply, size_t *body_len, char *why, size_t size);

#endif
