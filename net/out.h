/* net/out.h - replies, written as RESP2 or RESP3, whichever the connection speaks.
 *
 * Owns     a growing run of bytes. Without memory it fails once and for all (failed): the connection is
 *          closed then, nobody gets half a reply.
 * Threads  one at a time.
 */
#ifndef NOH_NET_OUT_H
#define NOH_NET_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUT_ERROR_MAX 512

struct out {
	char    *bytes;
	size_t   len, room;
	uint8_t  proto;            /* 2 or 3; of HTTP: net/http.h */
	bool     failed;
	bool     replayed;         /* the reply that is being written tells what was stored with its key */
};

void out_close(struct out *o);                                    /* frees the bytes */
bool out_room(struct out *o, size_t more);                        /* false: failed   */
void out_bytes(struct out *o, const void *bytes, size_t len);     /* as they are     */

void out_int(struct out *o, int64_t n);                           /* :n              */
void out_simple(struct out *o, const char *text);                 /* +text           */
void out_error(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
                                   /* "-ERR text"; a format that begins with '-' brings its own first word:
                                      "-NOAUTH ..."; at most OUT_ERROR_MAX bytes; CR and LF become spaces */
void out_bulk(struct out *o, const void *bytes, size_t len);      /* $len            */
void out_text(struct out *o, const char *text);                   /* bulk of a C string */
void out_bulk_int(struct out *o, int64_t n);                      /* a number as bulk: GET's answer */
void out_nil(struct out *o);                                      /* $-1 or _        */
void out_array(struct out *o, size_t n);                          /* n items follow  */
void out_map(struct out *o, size_t pairs);                        /* *2n or %n       */
void out_set(struct out *o, size_t n);                            /* *n or ~n        */
void out_push(struct out *o, size_t n);                           /* *n or >n        */
void out_bool(struct out *o, bool yes);                           /* :1 or #t        */
void out_double(struct out *o, double x);                         /* bulk or ,x      */
void out_verbatim(struct out *o, const char *text, size_t len);   /* bulk or =txt:   */

/* Does what was written from here on say that something went wrong: "-ERR ...", "HTTP/1.1 404 ..."? */
static inline bool out_is_error(const struct out *o, size_t at)
{
	return o->len > at && (o->bytes[at] == '-' || (o->bytes[at] == 'H' && o->len > at + 9 && o->bytes[at + 9] >= '4'));
}

#endif
