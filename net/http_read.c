/* net/http_read.c - the reader of HTTP requests.
 *
 * The head is read by lines: a line is looked at when its LF is there, and the search for that goes on where it
 * ended. A chunked body is read byte by byte between the chunks, so that nothing of its framing has to be kept.
 */
#include "net/http_read.h"

#include <string.h>
#include <strings.h>

enum state {
	LINE_FIRST, LINE_FIELD,            /* the head                                               */
	BODY,                              /* of a known length                                      */
	SIZE, EXTENSION, SIZE_LF,          /* a chunk's first line                                   */
	DATA, DATA_CR, DATA_LF,
	TRAILER, TRAILER_NAME, TRAILER_VALUE, TRAILER_LF,
	LAST_LF, DONE, REFUSED,
};

enum { METHOD_MAX = 20, SIZE_DIGITS_MAX = 16 };

void http_open(struct http_reader *r)
{
	*r = (struct http_reader){ .state = LINE_FIRST };
}

static enum http_result bad(struct http_reader *r, int status, const char *code, const char *why)
{
	r->state = REFUSED;
	r->status = status;
	r->code = code;
	r->why = why;
	return HTTP_BAD;
}

static enum http_result malformed(struct http_reader *r, const char *why)
{
	return bad(r, 400, "bad_request", why);
}

/* ── bytes ── */

/* Of names and methods: RFC 9110, token. */
static inline bool is_token(unsigned char c)
{
	static const uint64_t low = UINT64_C(0x03ff6cfa00000000), high = UINT64_C(0x57ffffffc7fffffe);

	return c < 64 ? low >> c & 1 : c < 128 && (high >> (c - 64) & 1);
}

static inline bool is_control(unsigned char c)
{
	return (c < ' ' && c != '\t') || c == 0x7f;
}

/* Could one of eight bytes be a control byte? Yes if one is; a tab is looked at closer, as well. */
static inline bool may_have_control(const char *at)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
	uint64_t x, delete;

	memcpy(&x, at, 8);
	delete = x ^ ones * 0x7f;
	return (((x - ones * ' ') & ~x) | ((delete - ones) & ~delete)) & highs;
}

static bool is_clean(const char *at, size_t len)
{
	const char *end = at + len;

	while (at < end) {
		if (end - at >= 8 && !may_have_control(at))
			at += 8;
		else if (is_control((unsigned char)*at++))
			return false;
	}
	return true;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 32);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(at, word, len) == 0;
}

/* ── the first line ── */

/* In place; -1: not what a path may be. */
static int decode(char *path, uint32_t len)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)path[i];

		if (c == '%') {
			int high = i + 2 < len ? hex(path[i + 1]) : -1, low = i + 2 < len ? hex(path[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -1;
			c = (unsigned char)(high * 16 + low);
			i += 2;
		}
		if (c < ' ' || c == 0x7f)
			return -1;
		path[to++] = (char)c;
	}
	return (int)to;
}

static enum http_result read_target(struct http_reader *r, char *bytes, char *target, uint32_t len)
{
	const char *mark = memchr(target, '?', len);
	uint32_t path = mark ? (uint32_t)(mark - target) : len;
	int decoded;

	for (uint32_t i = 0; i < len; i++)
		if (target[i] <= ' ' || target[i] >= 0x7f || target[i] == '#' || target[i] == '\\')
			return malformed(r, "the target has a byte that must be percent-encoded");
	if (len == 0 || target[0] != '/')
		return malformed(r, "the target must be a path: it begins with /");
	decoded = memchr(target, '%', path) ? decode(target, path) : (int)path;
	if (decoded < 0)
		return malformed(r, "the path has a % that two hex digits of a printable character do not follow");
	r->path = (struct resp_place){ (uint32_t)(target - bytes), (uint32_t)decoded };
	if (mark)
		r->query = (struct resp_place){ (uint32_t)(mark + 1 - bytes), len - path - 1 };
	return HTTP_MORE;
}

static enum http_result read_version(struct http_reader *r, const char *version, size_t len)
{
	if (len != 8 || memcmp(version, "HTTP/", 5) != 0 || version[6] != '.')
		return malformed(r, "a request begins with METHOD /path HTTP/1.1");
	if (version[5] != '1' || (version[7] != '1' && version[7] != '0'))
		return bad(r, 505, "http_version", "this server speaks HTTP/1.1 and HTTP/1.0");
	r->http_1_0 = r->close = version[7] == '0';
	return HTTP_MORE;
}

/* HTTP_MORE: well. */
static enum http_result read_first(struct http_reader *r, char *bytes, char *line, uint32_t len)
{
	uint32_t method = 0, target;
	enum http_result result;
	char *space;

	while (method < len && is_token((unsigned char)line[method]))
		method++;
	if (method == 0 || method == len || line[method] != ' ')
		return malformed(r, "a request begins with METHOD /path HTTP/1.1");
	if (method > METHOD_MAX)
		return bad(r, 501, "unknown_method", "no method has so long a name");
	r->method = (struct resp_place){ (uint32_t)(line - bytes), method };
	target = method + 1;
	space = memchr(line + target, ' ', len - target);
	if (!space)
		return malformed(r, "a request begins with METHOD /path HTTP/1.1");
	result = read_version(r, space + 1, (size_t)(line + len - space - 1));
	return result == HTTP_MORE ? read_target(r, bytes, line + target, (uint32_t)(space - line) - target) : result;
}

/* ── fields ── */

enum {                                     /* beside those that are kept */
	FIELD_LENGTH = HTTP_FIELDS, FIELD_CODING, FIELD_CONNECTION, FIELD_EXPECT, FIELD_ENCODING, FIELD_OTHER
};

static const struct { const char *name; uint8_t len, field; bool list; } known[] = {
#define KNOWN(name, field, list) { name, sizeof name - 1, field, list }
	KNOWN("host", FIELD_HOST, false),
	KNOWN("accept", FIELD_ACCEPT, true),
	KNOWN("content-length", FIELD_LENGTH, false),
	KNOWN("content-type", FIELD_CONTENT_TYPE, false),
	KNOWN("connection", FIELD_CONNECTION, true),
	KNOWN("authorization", FIELD_AUTHORIZATION, false),
	KNOWN("idempotency-key", FIELD_IDEMPOTENCY_KEY, false),
	KNOWN("transfer-encoding", FIELD_CODING, false),
	KNOWN("expect", FIELD_EXPECT, false),
	KNOWN("origin", FIELD_ORIGIN, false),
	KNOWN("content-encoding", FIELD_ENCODING, false),
	KNOWN("traceparent", FIELD_TRACEPARENT, true),
	KNOWN("tracestate", FIELD_TRACESTATE, true),
	KNOWN("last-event-id", FIELD_LAST_EVENT_ID, false),
#undef KNOWN
};
enum { KNOWN_FIELDS = sizeof known / sizeof known[0] };

static enum http_result read_length(struct http_reader *r, const char *at, uint32_t len)
{
	uint64_t n = 0;

	if (len == 0 || len > 18)
		return malformed(r, "Content-Length is a number in decimal digits");
	for (uint32_t i = 0; i < len; i++) {
		if (at[i] < '0' || at[i] > '9')
			return malformed(r, "Content-Length is a number in decimal digits");
		n = n * 10 + (uint64_t)(at[i] - '0');
	}
	r->rest = n;
	r->has_length = true;
	return HTTP_MORE;
}

static void read_connection(struct http_reader *r, const char *at, uint32_t len)
{
	const char *end = at + len;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at)), *to = comma ? comma : end;

		while (at < to && (*at == ' ' || *at == '\t'))
			at++;
		while (to > at && (to[-1] == ' ' || to[-1] == '\t'))
			to--;
		if (is_word(at, (size_t)(to - at), "close"))
			r->close = true;
		else if (r->http_1_0 && is_word(at, (size_t)(to - at), "keep-alive"))
			r->close = false;
		at = comma ? comma + 1 : end;
	}
}

/* One that means something to us. again: it was there before. */
static enum http_result read_known(struct http_reader *r, unsigned field, bool again, const char *bytes, const char *at,
				   uint32_t len)
{
	switch (field) {
	case FIELD_LENGTH:
		return read_length(r, at, len);
	case FIELD_CODING:
		if (!is_word(at, len, "chunked"))
			return bad(r, 501, "transfer_coding", "the only transfer coding is chunked, alone");
		r->chunked = true;
		return HTTP_MORE;
	case FIELD_CONNECTION:
		read_connection(r, at, len);
		return HTTP_MORE;
	case FIELD_EXPECT:
		if (!is_word(at, len, "100-continue"))
			return bad(r, 417, "expectation", "the only expectation is 100-continue");
		r->expects = true;
		return HTTP_MORE;
	case FIELD_ENCODING:
		r->encoded = !is_word(at, len, "identity");
		return HTTP_MORE;
	default:
		if (again && field == FIELD_TRACEPARENT)
			len = 0;                         /* two of them: none counts (W3C Trace Context) */
		if (!again || field == FIELD_TRACEPARENT)
			r->field[field] = (struct resp_place){ (uint32_t)(at - bytes), len };
		return HTTP_MORE;
	}
}

/* Its place in the table; or behind it: a field of another name. */
static unsigned find_known(const char *name, uint32_t len)
{
	unsigned i = 0;

	while (i < KNOWN_FIELDS && (known[i].len != len || strncasecmp(known[i].name, name, len) != 0))
		i++;
	return i;
}

/* Of a field that is not known: known names need no look at each of their letters. */
static enum http_result check_name(struct http_reader *r, const char *line, uint32_t len)
{
	uint32_t name = 0;

	while (name < len && is_token((unsigned char)line[name]))
		name++;
	if (name == 0 && (line[0] == ' ' || line[0] == '\t'))
		return malformed(r, "a folded header line: one field is one line");
	if (name == 0 || name == len || line[name] != ':')
		return malformed(r, "a header line is Name: value, without a space before the colon");
	return HTTP_MORE;
}

static enum http_result read_field(struct http_reader *r, const char *bytes, const char *line, uint32_t len,
				   const struct http_limits *limits)
{
	const char *colon = memchr(line, ':', len);
	uint32_t name = colon ? (uint32_t)(colon - line) : len, from, to = len;
	unsigned i = find_known(line, name);
	bool again;

	if (++r->fields > limits->fields)
		return bad(r, 431, "too_many_fields", "too many header fields");
	if ((i == KNOWN_FIELDS || !colon) && check_name(r, line, len) != HTTP_MORE)
		return HTTP_BAD;
	if (!is_clean(line + name + 1, len - name - 1))
		return malformed(r, "a header value has a control byte");
	for (from = name + 1; from < to && (line[from] == ' ' || line[from] == '\t'); )
		from++;
	while (to > from && (line[to - 1] == ' ' || line[to - 1] == '\t'))
		to--;
	if (i == KNOWN_FIELDS)
		return HTTP_MORE;
	again = r->seen >> known[i].field & 1;
	if (again && !known[i].list)
		return malformed(r, "a header field that may be there once is there twice");
	r->seen |= 1u << known[i].field;
	return read_known(r, known[i].field, again, bytes, line + from, to - from);
}

/* All fields are there: where does it end? */
static enum http_result end_head(struct http_reader *r, const struct http_limits *limits)
{
	if (!(r->seen >> FIELD_HOST & 1) && !r->http_1_0)
		return malformed(r, "a request of HTTP/1.1 names its Host");
	if (r->chunked && r->has_length)
		return malformed(r, "both Content-Length and Transfer-Encoding: where it ends is not clear");
	if (r->chunked && r->http_1_0)
		return malformed(r, "HTTP/1.0 knows no Transfer-Encoding");
	if (r->rest > limits->body_bytes)
		return bad(r, 413, "too_large", "the body is larger than this server takes");
	r->has_body = r->chunked || r->rest;
	r->expects = r->expects && r->has_body && !r->http_1_0;
	r->body = (struct resp_place){ r->at, 0 };
	r->state = r->chunked ? SIZE : BODY;
	return HTTP_HEAD_READ;
}

static enum http_result too_long(struct http_reader *r)
{
	return r->state == LINE_FIRST ? bad(r, 414, "uri_too_long", "the request line is longer than this server takes")
				      : bad(r, 431, "fields_too_large", "the header is larger than this server takes");
}

static enum http_result read_head(struct http_reader *r, char *bytes, size_t len, const struct http_limits *limits)
{
	uint32_t seen = len < limits->head_bytes ? (uint32_t)len : limits->head_bytes;

	if (r->state == LINE_FIRST && bytes[0] == 0x16)          /* has no lines to wait for */
		return malformed(r, "this is TLS, and this port speaks plain HTTP");
	for (;;) {
		char *line = bytes + r->line, *lf = r->at < seen ? memchr(bytes + r->at, '\n', seen - r->at) : NULL;
		enum http_result result = HTTP_MORE;
		uint32_t size;

		if (!lf) {
			r->at = seen;
			return len >= limits->head_bytes ? too_long(r) : HTTP_MORE;
		}
		size = (uint32_t)(lf - line);
		r->line = r->at = (uint32_t)(lf + 1 - bytes);
		if (size == 0 || line[size - 1] != '\r')
			return malformed(r, "a line of the header ends with CR LF");
		size--;
		if (size == 0 && r->state == LINE_FIELD)
			return end_head(r, limits);
		if (r->state == LINE_FIELD) {
			result = read_field(r, bytes, line, size, limits);
		} else if (size || r->blank) {           /* one empty line before a request is let pass: RFC 9112, 2.2 */
			result = read_first(r, bytes, line, size);
			r->state = result == HTTP_MORE ? LINE_FIELD : r->state;
		} else {
			r->blank = true;
		}
		if (result != HTTP_MORE)
			return result;
	}
}

/* ── bodies ── */

/* So many bytes from here belong to it; returns how many of them there were. */
static size_t take(struct http_reader *r, char *bytes, size_t at, size_t len)
{
	size_t some = len - at < r->rest ? len - at : (size_t)r->rest;
	char *to = bytes + r->body.at + r->body.len;

	r->rest -= some;
	r->body_bytes += some;
	if (r->drops)
		return some;
	if (to != bytes + at)
		memmove(to, bytes + at, some);
	r->body.len += (uint32_t)some;
	return some;
}

static enum http_result more_body(struct http_reader *r, size_t *len)
{
	r->at = r->body.at + r->body.len;
	*len = r->at;
	return HTTP_MORE;
}

static enum http_result read_plain(struct http_reader *r, char *bytes, size_t *len)
{
	r->at += (uint32_t)take(r, bytes, r->at, *len);
	if (r->rest)
		return more_body(r, len);
	r->state = DONE;
	return HTTP_REQUEST;
}

static enum http_result size_digit(struct http_reader *r, char c, const struct http_limits *limits)
{
	int digit = hex(c);

	if (digit >= 0) {
		if (++r->digits > SIZE_DIGITS_MAX)
			return malformed(r, "a chunk size has at most 16 digits");
		r->rest = r->rest * 16 + (uint64_t)digit;
		if (r->rest + r->body_bytes > limits->body_bytes)
			return bad(r, 413, "too_large", "the body is larger than this server takes");
		return HTTP_MORE;
	}
	if (r->digits == 0 || (c != '\r' && c != ';'))
		return malformed(r, "a chunk begins with its size in hex digits and CR LF");
	r->state = c == '\r' ? SIZE_LF : EXTENSION;
	return HTTP_MORE;
}

static void after_size(struct http_reader *r)
{
	r->state = r->rest ? DATA : TRAILER;
	r->digits = 0;
}

/* A byte between the chunks. */
static enum http_result frame(struct http_reader *r, char c, const struct http_limits *limits)
{
	static const char *const wrong = "a chunk, its size and every trailer end with CR LF";
	bool good = true;

	switch ((enum state)r->state) {
	case SIZE:
		return size_digit(r, c, limits);
	case EXTENSION:
	case TRAILER_VALUE:
		good = c == '\r' || !is_control((unsigned char)c);
		if (c == '\r')
			r->state = r->state == EXTENSION ? SIZE_LF : TRAILER_LF;
		break;
	case SIZE_LF:
		good = c == '\n';
		after_size(r);
		break;
	case DATA_CR:
		good = c == '\r';
		r->state = DATA_LF;
		break;
	case DATA_LF:
		good = c == '\n';
		r->state = SIZE;
		break;
	case TRAILER:
		good = c == '\r' || is_token((unsigned char)c);
		r->state = c == '\r' ? LAST_LF : TRAILER_NAME;
		if (c != '\r' && ++r->fields > limits->fields)
			return bad(r, 431, "too_many_fields", "too many header fields");
		break;
	case TRAILER_NAME:
		good = c == ':' || is_token((unsigned char)c);
		r->state = c == ':' ? TRAILER_VALUE : TRAILER_NAME;
		break;
	case TRAILER_LF:
		good = c == '\n';
		r->state = TRAILER;
		break;
	case LAST_LF:
		good = c == '\n';
		r->state = DONE;
		break;
	default:
		break;
	}
	return good ? HTTP_MORE : malformed(r, wrong);
}

static bool is_spare(const struct http_reader *r)
{
	return r->state == EXTENSION || (r->state >= TRAILER && r->state <= TRAILER_LF);
}

static enum http_result read_chunks(struct http_reader *r, char *bytes, size_t *len, const struct http_limits *limits)
{
	size_t at = r->at;

	while (at < *len) {
		enum http_result result;

		if (r->state == DATA) {
			at += take(r, bytes, at, *len);
			r->state = r->rest ? DATA : DATA_CR;
			continue;
		}
		if (is_spare(r) && ++r->framing > limits->head_bytes)
			return bad(r, 431, "fields_too_large", "chunk extensions and trailers are larger than this server takes");
		result = frame(r, bytes[at++], limits);
		if (result != HTTP_MORE)
			return result;
		if (r->state == DONE) {
			r->at = (uint32_t)at;
			return HTTP_REQUEST;
		}
	}
	return more_body(r, len);
}

enum http_result http_read(struct http_reader *r, char *bytes, size_t *len, const struct http_limits *limits)
{
	switch ((enum state)r->state) {
	case LINE_FIRST:
	case LINE_FIELD:
		return read_head(r, bytes, *len, limits);
	case BODY:
		return read_plain(r, bytes, len);
	case DONE:
		return HTTP_REQUEST;
	case REFUSED:
		return HTTP_BAD;
	default:
		return read_chunks(r, bytes, len, limits);
	}
}

size_t http_next(struct http_reader *r)
{
	size_t took = r->at;

	http_open(r);
	return took;
}
