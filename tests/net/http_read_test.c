/* tests/net/http_read_test.c - bytes cut into HTTP requests: whole, in pieces, hostile. */
#include "net/http_read.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct http_limits usual = { .head_bytes = 16384, .fields = 100, .body_bytes = 65536 };
static const struct http_limits tight = { .head_bytes = 64, .fields = 2, .body_bytes = 10 };

/* What a client's bytes came out as: "[GET /p?q host=h body]" for a request, "!400 code" for an end. */
struct log {
	char   text[1 << 17];
	size_t len;
};

static void note(struct log *l, const char *bytes, size_t len)
{
	if (EXPECT(l->len + len < sizeof l->text)) {
		memcpy(l->text + l->len, bytes, len);
		l->len += len;
	}
	l->text[l->len] = 0;
}

static void note_text(struct log *l, const char *text)
{
	note(l, text, strlen(text));
}

static void note_place(struct log *l, const char *before, const struct resp_place *p, const char *bytes)
{
	note_text(l, before);
	note(l, bytes + p->at, p->len);
}

static void note_request(struct log *l, const struct http_reader *r, const char *bytes)
{
	static const char *const names[HTTP_FIELDS] = { " host=", " origin=", " auth=", " type=", " accept=", " key=",
							" trace=", " state=" };

	note_place(l, "[", &r->method, bytes);
	note_place(l, " ", &r->path, bytes);
	if (r->query.len)
		note_place(l, "?", &r->query, bytes);
	for (int i = 0; i < HTTP_FIELDS; i++)
		if (r->field[i].len)
			note_place(l, names[i], &r->field[i], bytes);
	note_text(l, r->http_1_0 ? " 1.0" : "");
	note_text(l, r->close ? " close" : "");
	note_text(l, r->expects ? " expects" : "");
	note_text(l, r->encoded ? " encoded" : "");
	if (r->body.len)
		note_place(l, " body=", &r->body, bytes);
	note_text(l, "]");
}

/* False: an end. *taken: of the bytes at hand. */
static bool read_some(struct log *l, struct http_reader *r, char *bytes, size_t *len, size_t *taken,
		      const struct http_limits *limits, bool drop)
{
	char status[40];

	*taken = 0;
	while (*taken < *len) {
		size_t rest = *len - *taken;
		char *at = bytes + *taken;

		switch (http_read(r, at, &rest, limits)) {
		case HTTP_MORE:
			EXPECT(rest <= *len - *taken);
			*len = *taken + rest;
			return true;
		case HTTP_HEAD_READ:
			if (drop)
				http_drop_body(r);
			break;
		case HTTP_REQUEST:
			note_request(l, r, at);
			*taken += http_next(r);
			EXPECT(*taken <= *len);
			break;
		case HTTP_BAD:
			snprintf(status, sizeof status, "!%d %s", r->status, r->code);
			note_text(l, status);
			return false;
		}
	}
	return true;
}

/* Feed `len` bytes in pieces that end at the given cuts. Each piece is read from a buffer of its own that is
 * exactly as long as what has to be there: the sanitizer sees a byte too far, and places that are not offsets. */
static size_t feed(struct log *l, const char *bytes, size_t len, const size_t *cuts, size_t cut_count,
		   const struct http_limits *limits, bool drop)
{
	struct http_reader r;
	char *held = NULL;
	size_t held_len = 0, from = 0, most = 0;
	bool more = true;

	l->len = 0;
	l->text[0] = 0;
	http_open(&r);
	for (size_t i = 0; more && i <= cut_count; i++) {
		size_t until = i < cut_count ? cuts[i] : len, now_len = held_len + until - from, taken;
		char *now = malloc(now_len + !now_len);

		if (held_len)
			memcpy(now, held, held_len);
		memcpy(now + held_len, bytes + from, until - from);
		free(held);
		from = until;
		more = read_some(l, &r, now, &now_len, &taken, limits, drop);
		held_len = now_len - taken;
		most = held_len > most ? held_len : most;
		held = malloc(held_len + !held_len);
		memcpy(held, now + taken, held_len);
		free(now);
	}
	free(held);
	return most;
}

static const char *whole(const char *text, const struct http_limits *limits)
{
	static struct log l;

	feed(&l, text, strlen(text), NULL, 0, limits, false);
	return l.text;
}

static bool test_reads(const char *text, const char *want, const struct http_limits *limits, int line)
{
	const char *got = whole(text, limits);

	if (strcmp(got, want) == 0)
		return true;
	test_failed(__FILE__, line, "%.200s: expected \"%.300s\", got \"%.300s\"", text, want, got);
	return false;
}
#define READS(text, want) test_reads((text), (want), &usual, __LINE__)
#define READS_TIGHT(text, want) test_reads((text), (want), &tight, __LINE__)
#define H "Host: h\r\n"

/* ── what is a request ── */

static void a_request_is_read_with_what_it_says(void)
{
	READS("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "[GET / host=h]");
	READS("GET /a/b?x=1&y=%20 HTTP/1.1\r\n" H "\r\n", "[GET /a/b?x=1&y=%20 host=h]");
	READS("POST /p HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", "[POST /p host=h body=hello]");
	READS("POST /p HTTP/1.1\r\n" H "content-LENGTH:5\t \r\n\r\nhello", "[POST /p host=h body=hello]");
	READS("GET / HTTP/1.1\r\n" H "X-Other: anything, \x80\xff\r\nAccept: a\r\nAccept: b\r\n\r\n", "[GET / host=h accept=a]");
	READS("GET / HTTP/1.1\r\n" H "Authorization:  Bearer t \r\nIdempotency-Key: k\r\nOrigin: null\r\nContent-Type: j\r\n"
	      "tracestate: s\r\ntraceparent: 00\r\n\r\n", "[GET / host=h origin=null auth=Bearer t type=j key=k trace=00 state=s]");
	READS("GET / HTTP/1.1\r\n" H "traceparent: 00\r\ntraceparent: 01\r\n\r\n", "[GET / host=h]");
	READS("GET / HTTP/1.1\r\nHost:\r\n\r\n", "[GET /]");
}

static void requests_follow_each_other(void)
{
	READS("GET /1 HTTP/1.1\r\n" H "\r\nPOST /2 HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\n" H "\r\n",
	      "[GET /1 host=h][POST /2 host=h body=abc][GET /3 host=h]");
	READS("\r\nGET /1 HTTP/1.1\r\n" H "\r\n\r\nGET /2 HTTP/1.1\r\n" H "\r\n", "[GET /1 host=h][GET /2 host=h]");
	READS("\r\n\r\nGET /1 HTTP/1.1\r\n" H "\r\n", "!400 bad_request");
}

static void chunks_are_joined_and_what_frames_them_is_dropped(void)
{
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
	      "[POST / host=h body=hello world][GET / host=h]");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n00A;x=\"y z\"\r\n0123456789\r\n0;last\r\nTrailer: x\r\n"
	      "Host: other\r\n\r\n", "[POST / host=h body=0123456789]");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "[POST / host=h]");
}

static void connections_are_kept_or_not_as_asked(void)
{
	READS("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", "[GET / host=h close]");
	READS("GET / HTTP/1.1\r\n" H "Connection: x , Close\r\n\r\n", "[GET / host=h close]");
	READS("GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\n\r\n", "[GET / host=h]");
	READS("GET / HTTP/1.0\r\n\r\n", "[GET / 1.0 close]");
	READS("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "[GET / 1.0]");
	READS("POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx", "[POST / host=h expects body=x]");
	READS("POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", "[POST / host=h]");
	READS("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx", "[POST / 1.0 close body=x]");
	READS("POST / HTTP/1.1\r\n" H "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", "[POST / host=h encoded body=x]");
}

static void a_path_is_decoded_once(void)
{
	READS("GET /%61%2Fb HTTP/1.1\r\n" H "\r\n", "[GET /a/b host=h]");
	READS("GET /%252e%252e HTTP/1.1\r\n" H "\r\n", "[GET /%2e%2e host=h]");
	READS("GET /../x HTTP/1.1\r\n" H "\r\n", "[GET /../x host=h]");
	READS("GET /%00 HTTP/1.1\r\n" H "\r\n", "!400 bad_request");
	READS("GET /%0a HTTP/1.1\r\n" H "\r\n", "!400 bad_request");
	READS("GET /% HTTP/1.1\r\n" H "\r\n", "!400 bad_request");
	READS("GET /%4 HTTP/1.1\r\n" H "\r\n", "!400 bad_request");
	READS("GET /%4g HTTP/1.1\r\n" H "\r\n", "!400 bad_request");
}

/* ── smuggling: whatever two readers could understand differently ── */

static const char *const smuggling[] = {
	/* where the body ends */
	"POST / HTTP/1.1\r\n" H "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\x0b\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551621\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length : 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H " Content-Length: 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "X: y\r\n Content-Length: 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "X:\r\n\tfolded\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\nX: y\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\nhello",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\rX: y\r\n\r\nhello",
	"POST / HTTP/1.1\r\n" H "X: a\rTransfer-Encoding: chunked\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\rhello\r\n",
	"POST / HTTP/1.1\nHost: h\n\n",
	/* how it is coded */
	"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b" "chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	/* chunks */
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\rX\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n;x\r\nhello\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nX : y\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n X: y\r\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\rX",
	"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n00000000000000005\r\nhello\r\n0\r\n\r\n",
	/* what it asks for, and of whom */
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\r\n" H H "\r\n",
	"GET / HTTP/1.1\r\n" H "Host: other\r\n\r\n",
	"GET / HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: b\r\n\r\n",
	"GET http://h/ HTTP/1.1\r\n" H "\r\n",
	"GET * HTTP/1.1\r\n" H "\r\n",
	"CONNECT h:80 HTTP/1.1\r\n" H "\r\n",
	"GET  / HTTP/1.1\r\n" H "\r\n",
	"GET / HTTP/1.1 \r\n" H "\r\n",
	"GET /a b HTTP/1.1\r\n" H "\r\n",
	"GET\t/ HTTP/1.1\r\n" H "\r\n",
	" GET / HTTP/1.1\r\n" H "\r\n",
	"GET /#x HTTP/1.1\r\n" H "\r\n",
	"GET /\\x HTTP/1.1\r\n" H "\r\n",
	"GET /\x7f HTTP/1.1\r\n" H "\r\n",
	"GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n",
	"GET /\r\n",                                     /* HTTP/0.9 */
	"GET / HTTP/11\r\n" H "\r\n",
	"GET / http/1.1\r\n" H "\r\n",
	"G(T / HTTP/1.1\r\n" H "\r\n",
	"GET / HTTP/1.1\r\n" H ": empty\r\n\r\n",
	"GET / HTTP/1.1\r\n" H "no colon\r\n\r\n",
	"GET / HTTP/1.1\r\n" H "Accept\r\n\r\n",
	"GET / HTTP/1.1\r\n" H "Content\rType: a\r\n\r\n",
	"GET / HTTP/1.1\r\n" H "X: \x01\r\n\r\n",
	"*1\r\n$4\r\nPING\r\n",
	"\x16\x03\x01\x02",
};

static void what_two_readers_could_read_differently_is_refused(void)
{
	for (size_t i = 0; i < sizeof smuggling / sizeof smuggling[0]; i++)
		test_reads(smuggling[i], "!400 bad_request", &usual, (int)i);
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", "!501 transfer_coding");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n", "!501 transfer_coding");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n", "!501 transfer_coding");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", "!501 transfer_coding");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", "!501 transfer_coding");
	READS("POST / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n", "!417 expectation");
	READS("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505 http_version");
	READS("GET / HTTP/1.2\r\n" H "\r\n", "!505 http_version");
	READS("GET / HTTP/9.9\r\n" H "\r\n", "!505 http_version");
}

/* And no other, wherever it stands. */
static void every_control_byte_of_a_header_is_refused(void)
{
	for (int i = 0; i < 18 * 256; i++) {
		char text[] = "GET / HTTP/1.1\r\nHost: h\r\nX: 012345678901234567\r\n\r\n";
		int c = i % 256;
		bool control = (c < ' ' && c != '\t') || c == 0x7f;
		static struct log l;

		strchr(text, '0')[i / 256] = (char)c;
		feed(&l, text, sizeof text - 1, NULL, 0, &usual, false);
		if (strcmp(l.text, control ? "!400 bad_request" : "[GET / host=h]") != 0)
			test_failed(__FILE__, __LINE__, "byte %d at %d: %s", c, i / 256, l.text);
	}
}

static void nothing_is_read_behind_a_refusal(void)
{
	READS("GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n" H "\r\n", "[GET /1 host=h]!400 bad_request");
}

/* ── limits ── */

static void what_is_too_much_is_refused_by_its_own_status(void)
{
	READS_TIGHT("GET /0123456789012345678901234567890123456789012345678901234567890123 HTTP/1.1\r\n" H "\r\n", "!414 uri_too_long");
	READS_TIGHT("GET / HTTP/1.1\r\n" H "X: 0123456789012345678901234567890123456789\r\n\r\n", "!431 fields_too_large");
	READS_TIGHT("GET / HTTP/1.1\r\n" H "A:\r\nB:\r\n\r\n", "!431 too_many_fields");
	READS_TIGHT("GET / HTTP/1.1\r\n" H "A:\r\n\r\n", "[GET / host=h]");
	READS_TIGHT("POST / HTTP/1.1\r\n" H "Content-Length: 11\r\n\r\n", "!413 too_large");
	READS_TIGHT("POST / HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\n0123456789", "[POST / host=h body=0123456789]");
	READS_TIGHT("POST / HTTP/1.1\r\n" H "Content-Length: 999999999999999999\r\n\r\n", "!413 too_large");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "!413 too_large");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n10000\r\n", "");
	READS("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n10001\r\n", "!413 too_large");
	READS("GETGETGETGETGETGETGETG / HTTP/1.1\r\n" H "\r\n", "!501 unknown_method");
}

static void extensions_and_trailers_have_a_limit_in_all(void)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
	static char text[1 << 18];
	size_t at = sizeof head - 1;

	memcpy(text, head, at);
	for (int i = 0; i < 600; i++)                    /* 30 bytes of extension each: more than 16384 in the end */
		at += (size_t)snprintf(text + at, sizeof text - at, "1;%030d\r\nx\r\n", 0);
	READS(text, "!431 fields_too_large");
	at = sizeof head - 1;
	at += (size_t)snprintf(text + at, sizeof text - at, "0\r\n");
	for (int i = 0; i < 100; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "T: x\r\n");
	snprintf(text + at, sizeof text - at, "\r\n");
	READS(text, "!431 too_many_fields");
}

static void memory_is_kept_for_a_body_and_not_for_what_frames_it(void)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
	static char text[1 << 16];
	static size_t cuts[1 << 16];
	static struct log l;
	size_t at = sizeof head - 1, n = 0;

	memcpy(text, head, at);
	for (int i = 0; i < 5000; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "1\r\nx\r\n");
	at += (size_t)snprintf(text + at, sizeof text - at, "0\r\n\r\n");
	for (size_t i = 1; i < at; i++)
		cuts[n++] = i;
	EXPECT(feed(&l, text, at, cuts, n, &usual, false) <= sizeof head + 5000);
	EXPECT_EQ(l.len, strlen("[POST / host=h body=]") + 5000);
	EXPECT(feed(&l, text, at, cuts, n, &usual, true) <= sizeof head);
	EXPECT(strcmp(l.text, "[POST / host=h]") == 0);
}

/* ── pieces ── */

static void same_in_pieces(const char *text, size_t len, const struct http_limits *limits, bool drop)
{
	static struct log one, cut;
	size_t all[600], n = 0;
	uint64_t random = test_seed;

	feed(&one, text, len, NULL, 0, limits, drop);
	for (size_t i = 1; i < len; i++) {
		feed(&cut, text, len, &i, 1, limits, drop);
		if (strcmp(one.text, cut.text) != 0)
			test_failed(__FILE__, __LINE__, "cut at %zu of %.200s: \"%.200s\", not \"%.200s\"", i, text, cut.text, one.text);
	}
	for (size_t i = 1; i < len && n < 600; i++)
		all[n++] = i;
	feed(&cut, text, len, all, n, limits, drop);
	EXPECT(strcmp(one.text, cut.text) == 0);
	for (int round = 0; round < 20; round++) {
		n = 0;
		for (size_t i = 1; i < len && n < 600; i++)
			if (test_random(&random) % 5 == 0)
				all[n++] = i;
		feed(&cut, text, len, all, n, limits, drop);
		EXPECT(strcmp(one.text, cut.text) == 0);
	}
}

static void however_the_bytes_are_cut_the_requests_are_the_same(void)
{
	static const char good[] =
		"GET /1?q HTTP/1.1\r\n" H "\r\n"
		"POST /%32 HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Type: j\r\n\r\nhello"
		"\r\nPOST /3 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3;e=1\r\nabc\r\n00d\r\n\r\n0\r\n\r\nGET / \r\n0;z\r\nT: v\r\n\r\n"
		"HEAD /4 HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n"
		"POST /5 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
		"GET /6 HTTP/1.1\r\n" H "\r\n";

	EXPECT(strcmp(whole(good, &usual), "[GET /1?q host=h][POST /2 host=h type=j body=hello][POST /3 host=h body=abc\r\n0\r\n\r\nGET / ]"
		      "[HEAD /4 1.0][POST /5 host=h][GET /6 host=h]") == 0);
	same_in_pieces(good, sizeof good - 1, &usual, false);
	same_in_pieces(good, sizeof good - 1, &usual, true);
	same_in_pieces(good, sizeof good - 1, &tight, false);
	for (size_t i = 0; i < sizeof smuggling / sizeof smuggling[0]; i++) {
		same_in_pieces(smuggling[i], strlen(smuggling[i]), &usual, false);
		same_in_pieces(smuggling[i], strlen(smuggling[i]), &tight, false);
	}
}

TEST_MAIN(
	TEST(a_request_is_read_with_what_it_says),
	TEST(requests_follow_each_other),
	TEST(chunks_are_joined_and_what_frames_them_is_dropped),
	TEST(connections_are_kept_or_not_as_asked),
	TEST(a_path_is_decoded_once),
	TEST(what_two_readers_could_read_differently_is_refused),
	TEST(every_control_byte_of_a_header_is_refused),
	TEST(nothing_is_read_behind_a_refusal),
	TEST(what_is_too_much_is_refused_by_its_own_status),
	TEST(extensions_and_trailers_have_a_limit_in_all),
	TEST(memory_is_kept_for_a_body_and_not_for_what_frames_it),
	TEST(however_the_bytes_are_cut_the_requests_are_the_same))
