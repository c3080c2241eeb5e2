/* net/http_read.h - bytes of a client, cut into HTTP/1.1 requests (RFC 9112), strictly.
 *
 * Where two readers could disagree about where a request ends, it is refused: both Content-Length and
 * Transfer-Encoding, a length twice or with anything but digits, codings other than chunked, folded lines, a space
 * before the colon, CR or LF alone, control bytes. After a refusal nothing more of the connection is read as a
 * request.
 *
 * Owns     the places of what was found so far: offsets, so that the bytes may move between two calls.
 * Threads  one at a time.
 * Never    allocates; looks at no byte twice because more came; decides by where the bytes were split.
 */
#ifndef NOH_NET_HTTP_READ_H
#define NOH_NET_HTTP_READ_H

#include "net/resp_read.h"

struct http_limits {
	uint32_t head_bytes;       /* request line and fields; also all extensions and trailers of a chunked body */
	uint32_t fields;           /* how many; of trailers as well      */
	uint32_t body_bytes;       /* chunks joined                      */
};

enum http_field {                  /* those that are kept */
	FIELD_HOST, FIELD_ORIGIN, FIELD_AUTHORIZATION, FIELD_CONTENT_TYPE, FIELD_ACCEPT, FIELD_IDEMPOTENCY_KEY,
	FIELD_TRACEPARENT, FIELD_TRACESTATE, FIELD_LAST_EVENT_ID, HTTP_FIELDS
};

struct http_reader {
	uint8_t  state;            /* enum state of http_read.c                                 */
	bool     http_1_0;
	bool     close;            /* "Connection: close"; or of HTTP/1.0, not "keep-alive"     */
	bool     expects;          /* "Expect: 100-continue"                                    */
	bool     has_body;         /* a length above 0, or chunked                              */
	bool     has_length;       /* a length, 0 as well                                       */
	bool     chunked;
	bool     encoded;          /* Content-Encoding other than identity                      */
	bool     drops;            /* http_drop_body                                            */
	bool     blank;            /* the one empty line before a request was there             */
	uint32_t seen;             /* fields that were there: bits                              */
	uint32_t line, at;         /* where the line under way begins; where to go on           */
	uint32_t fields;           /* so far                                                    */
	struct resp_place method, path, query, field[HTTP_FIELDS];
	struct resp_place body;
	uint64_t rest;             /* of the body, or of the chunk under way                    */
	uint64_t body_bytes;       /* so far, dropped ones as well                              */
	uint32_t framing;          /* bytes of extensions and trailers                          */
	uint32_t digits;           /* of the chunk size under way                               */
	int         status;        /* HTTP_BAD: what to answer: 400, 413 ...                    */
	const char *code, *why;
};

enum http_result {
	HTTP_MORE,                 /* call again with *len bytes of these, and more behind them */
	HTTP_HEAD_READ,            /* the head is there: check it; call again for the body      */
	HTTP_REQUEST,              /* all of it: http_next leads to the next one                */
	HTTP_BAD,                  /* answer r->status and end                                  */
};

void http_open(struct http_reader *r);

/* bytes: the same start as in the last call unless http_next was called. They are written to: escapes of the path are
 * decoded in place, chunks are joined. *len: how many there are; after HTTP_MORE, how many must be kept for the next
 * call (what framed chunks is gone). */
enum http_result http_read(struct http_reader *r, char *bytes, size_t *len, const struct http_limits *limits);

/* After HTTP_HEAD_READ: the body is of no use, and is not kept. */
static inline void http_drop_body(struct http_reader *r)
{
	r->drops = true;
}

/* After HTTP_REQUEST: how many bytes it took; the next one begins there. */
size_t http_next(struct http_reader *r);

static inline struct arg http_text(const struct resp_place *p, const char *bytes)
{
	return (struct arg){ bytes + p->at, p->len };
}

#endif
