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

/* The head of an answer: its length with the empty line, 0: not all there yet, -1: it is none (why says so).
 * *body_len: what follows. */
int client_read_head(const char *bytes, size_t len, struct client_reply *reply, size_t *body_len, char *why, size_t size);

#endif
