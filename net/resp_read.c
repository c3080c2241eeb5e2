/* net/resp_read.c - the reader of RESP requests.
 *
 * The path of a short command that arrived whole is straight: count, then for each argument its length and
 * its place; no byte of an argument is looked at. Everything else (a command in pieces, an inline command,
 * more arguments than usual) leaves that path and comes back to it.
 *
 * All sums are of 64 bits, and every place is checked against command_bytes before it is kept as 32 bits.
 */
#include "net/resp_read.h"

#include "core/mem.h"
#include "core/must.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PLACES_KEPT = 128 };       /* a connection keeps so many between two commands: 1 KiB */
enum { LENGTH_DIGITS = 10 };      /* of the longest length that fits 32 bits                */

void resp_open(struct resp_reader *r)
{
	r->want = r->argc = r->at = r->bulk = 0;
	r->room = RESP_ARGS_INSIDE;
	r->places = r->inside;
	r->why = NULL;
}

static void drop_places(struct resp_reader *r)
{
	if (r->places != r->inside)
		mem_free(r->places, (size_t)r->room * sizeof *r->places);
	r->places = r->inside;
	r->room = RESP_ARGS_INSIDE;
}

void resp_close(struct resp_reader *r)
{
	drop_places(r);
}

size_t resp_next(struct resp_reader *r)
{
	uint32_t took = r->at;

	if (r->room > PLACES_KEPT)
		drop_places(r);
	r->want = r->argc = r->at = r->bulk = 0;
	return took;
}

static enum resp_result bad(struct resp_reader *r, const char *why)
{
	r->why = why;
	return RESP_BAD;
}

/* Twice as many: paid for by the arguments that have arrived. */
static bool more_places(struct resp_reader *r)
{
	uint32_t room = r->room * 2;

	must(r->room < UINT32_MAX / 2);
	struct resp_place *places = mem_alloc((size_t)room * sizeof *places);

	if (places == NULL)
		return false;
	memcpy(places, r->places, r->argc * sizeof *places);
	uint32_t argc = r->argc;
	drop_places(r);
	r->places = places;
	r->room = room;
	r->argc = argc;
	return true;
}

static bool keep(struct resp_reader *r, uint32_t at, uint32_t len)
{
	if (r->argc == r->room && !more_places(r))
		return false;
	r->places[r->argc++] = (struct resp_place){ at, len };
	return true;
}

static enum resp_result no_memory(struct resp_reader *r)
{
	return bad(r, "Protocol error: out of memory for so many arguments");
}

/* A length and its CR LF, after the byte that says of what. Returns the bytes it takes, 0 if they are not all
 * there yet, -1 if they never will be a length. */
static __attribute__((noinline)) int any_length(const char *p, size_t left, uint64_t *value)
{
	uint64_t n = 0;
	int digits = 0;

	for (;; digits++) {
		if ((size_t)digits == left)
			return 0;
		unsigned d = (unsigned)(unsigned char)p[digits] - '0';

		if (d > 9)
			break;
		if (digits == LENGTH_DIGITS)
			return -1;
		n = n * 10 + d;
	}
	if (p[digits] != '\r' || digits == 0 || (p[0] == '0' && digits > 1))
		return -1;
	if ((size_t)digits + 1 == left)
		return 0;
	if (p[digits + 1] != '\n')
		return -1;
	*value = n;
	return digits + 2;
}

/* The same; those of one and two digits, which nearly all are, at once. */
static inline int length(const char *p, size_t left, uint64_t *value)
{
	if (__builtin_expect(left >= 4, 1)) {
		unsigned first = (unsigned)(unsigned char)p[0] - '0', second = (unsigned)(unsigned char)p[1] - '0';

		if (p[1] == '\r' && p[2] == '\n' && first <= 9) {
			*value = first;
			return 3;
		}
		if (p[2] == '\r' && p[3] == '\n' && first - 1 <= 8 && second <= 9) {
			*value = first * 10 + second;
			return 4;
		}
	}
	return any_length(p, left, value);
}

enum { CR_LF = 0x0a0d };          /* as two bytes of a number; little-endian machines */

/* A command that arrived whole, with a count of one digit and lengths of one or two: nearly all. False: any other, and nothing
 * is changed; it is read from its beginning by those below. */
static inline bool read_short(struct resp_reader *r, const char *bytes, size_t len, const struct resp_limits *limits)
{
	uint32_t word, want, n;
	uint16_t end_of;
	size_t at = 4;

	if (len < 4)
		return false;
	memcpy(&word, bytes, 4);                                        /* "*2\r\n" */
	want = (word >> 8 & 0xff) - '0';
	if ((word & 0xffff00ff) != ((uint32_t)CR_LF << 16 | '*') || want - 1 > 8 || want > limits->args)
		return false;
	static_assert(RESP_ARGS_INSIDE >= 9, "there is always room for those");
	for (uint32_t i = 0; i < want; i++) {
		if (len - at < 5 || bytes[at] != '$')                   /* "$4\r\n" or "$12\r\n" */
			return false;
		memcpy(&word, bytes + at + 1, 4);
		n = (word & 0xff) - '0';
		if ((word >> 8 & 0xffff) == CR_LF && n <= 9) {
			at += 4;
		} else {
			uint32_t second = (word >> 8 & 0xff) - '0';

			if (word >> 16 != CR_LF || n - 1 > 8 || second > 9)
				return false;
			n = n * 10 + second;
			at += 5;
		}
		if (len - at < n + 2 || n > limits->arg_bytes || at + n + 2 > limits->command_bytes)
			return false;
		memcpy(&end_of, bytes + at + n, 2);
		if (end_of != CR_LF)
			return false;
		r->places[i] = (struct resp_place){ (uint32_t)at, n };
		at += n + 2;
	}
	r->want = r->argc = want;
	r->at = (uint32_t)at;
	r->bulk = 0;
	return true;
}

/* "*3\r\n". A negative count is an empty command, as it always was. */
static enum resp_result read_count(struct resp_reader *r, const char *bytes, size_t len,
				   const struct resp_limits *limits)
{
	bool negative = len > 1 && bytes[1] == '-';
	size_t from = negative ? 2 : 1;
	uint64_t n = 0;
	int took = len < from ? 0 : length(bytes + from, len - from, &n);

	if (took == 0)
		return RESP_MORE;
	if (took < 0 || (negative && n == 0))
		return bad(r, "Protocol error: invalid multibulk length");
	r->at = (uint32_t)from + (uint32_t)took;
	if (negative || n == 0)
		return RESP_NOTHING;
	if (n > limits->args)
		return bad(r, "Protocol error: invalid multibulk length");
	r->want = (uint32_t)n;
	return RESP_COMMAND;
}

static __attribute__((noinline)) enum resp_result not_a_bulk(struct resp_reader *r, char c)
{
	snprintf(r->why_text, sizeof r->why_text, "Protocol error: expected '$', got '%c'", c >= ' ' && c <= '~' ? c : '?');
	return bad(r, r->why_text);
}

/* Stopped in the middle: argument argc begins at `at`, with its length (bulk 0) or behind it. */
static enum resp_result stop(struct resp_reader *r, uint32_t argc, size_t at, uint32_t bulk)
{
	r->argc = argc;
	r->at = (uint32_t)at;
	r->bulk = bulk;
	return RESP_MORE;
}

static enum resp_result read_args(struct resp_reader *r, const char *bytes, size_t len,
				  const struct resp_limits *limits)
{
	uint32_t argc = r->argc, want = r->want, bulk = r->bulk;
	size_t at = r->at;

	for (; argc < want; argc++, bulk = 0) {
		if (bulk == 0) {                                        /* "$5\r\n" */
			uint64_t n;

			if (at == len)
				return stop(r, argc, at, 0);
			if (__builtin_expect(bytes[at] != '$', 0))
				return not_a_bulk(r, bytes[at]);
			int took = length(bytes + at + 1, len - at - 1, &n);

			if (took == 0)
				return stop(r, argc, at, 0);
			if (took < 0 || n > limits->arg_bytes)
				return bad(r, "Protocol error: invalid bulk length");
			at += 1 + (size_t)took;
			if (at + n + 2 > limits->command_bytes)
				return bad(r, "Protocol error: too big command");
			bulk = (uint32_t)n + 1;
		}
		size_t end = at + (bulk - 1);

		if (len < end + 2)
			return stop(r, argc, at, bulk);
		if (__builtin_expect(bytes[end] != '\r' || bytes[end + 1] != '\n', 0))
			return bad(r, "Protocol error: expected CRLF after the bulk string");
		if (__builtin_expect(argc == r->room, 0)) {
			r->argc = argc;
			if (!more_places(r))
				return no_memory(r);
		}
		r->places[argc] = (struct resp_place){ (uint32_t)at, bulk - 1 };
		at = end + 2;
	}
	stop(r, argc, at, 0);
	return RESP_COMMAND;
}

/* ── inline commands ──────────────────────────────────────────────────────────────────────────── */
static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One escape of a text in double quotes, p behind the backslash. Returns what follows it. */
static const char *escape(const char *p, const char *end, char *out)
{
	if (end - p >= 3 && *p == 'x' && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
		*out = (char)(hex(p[1]) << 4 | hex(p[2]));
		return p + 3;
	}
	switch (*p) {
	case 'n': *out = '\n'; break;
	case 'r': *out = '\r'; break;
	case 't': *out = '\t'; break;
	case 'b': *out = '\b'; break;
	case 'a': *out = '\a'; break;
	default: *out = *p;
	}
	return p + 1;
}

/* A quoted stretch, p behind its quote: unquoted into *to, which never gets ahead of p. Returns what follows
 * the closing quote, or NULL: there is none, or no blank after it. */
static const char *unquote(const char *p, const char *end, char **to)
{
	char quote = p[-1], *out = *to;

	for (; p < end; out++) {
		if (*p == quote) {
			*to = out;
			return p + 1 == end || is_blank(p[1]) ? p + 1 : NULL;
		}
		if (quote == '"' && *p == '\\' && end - p > 1)
			p = escape(p + 1, end, out);
		else if (quote == '\'' && *p == '\\' && end - p > 1 && p[1] == '\'')
			*out = '\'', p += 2;
		else
			*out = *p++;
	}
	return NULL;
}

/* The arguments of a complete line, its quotes taken out in place. */
static enum resp_result split_line(struct resp_reader *r, char *bytes, const char *end,
				   const struct resp_limits *limits)
{
	const char *p = bytes;

	for (;;) {
		while (p < end && is_blank(*p))
			p++;
		if (p == end)
			break;
		char *start = bytes + (p - bytes), *to = start;

		while (p < end && !is_blank(*p)) {
			if (*p != '"' && *p != '\'') {
				*to++ = *p++;
				continue;
			}
			p = unquote(p + 1, end, &to);
			if (p == NULL)
				return bad(r, "Protocol error: unbalanced quotes in request");
		}
		if (r->argc == limits->args)
			return bad(r, "Protocol error: too many arguments in inline request");
		if ((size_t)(to - start) > limits->arg_bytes)
			return bad(r, "Protocol error: too big argument in inline request");
		if (!keep(r, (uint32_t)(start - bytes), (uint32_t)(to - start)))
			return no_memory(r);
	}
	return r->argc ? RESP_COMMAND : RESP_NOTHING;
}

static enum resp_result read_inline(struct resp_reader *r, char *bytes, size_t len,
				    const struct resp_limits *limits)
{
	uint32_t longest = limits->inline_bytes < limits->command_bytes ? limits->inline_bytes
									: limits->command_bytes;
	size_t seen = len;

	if (longest > UINT32_MAX - 3)
		longest = UINT32_MAX - 3;
	if (seen > (size_t)longest + 2)
		seen = (size_t)longest + 2;            /* the line, CR, LF: further on there is none of ours */
	const char *end = memchr(bytes + r->at, '\n', seen - r->at);

	if (end == NULL) {
		r->at = (uint32_t)seen;
		return seen == (size_t)longest + 2 ? bad(r, "Protocol error: too big inline request") : RESP_MORE;
	}
	size_t line = (size_t)(end - bytes);

	if (line > 0 && bytes[line - 1] == '\r')
		line--;
	if (line > longest)
		return bad(r, "Protocol error: too big inline request");
	r->at = (uint32_t)(end - bytes) + 1;
	return split_line(r, bytes, bytes + line, limits);
}

static __attribute__((noinline)) enum resp_result read_any(struct resp_reader *r, char *bytes, size_t len,
							  const struct resp_limits *limits)
{
	if (r->want == 0) {
		if (len == 0)
			return RESP_MORE;
		if (bytes[0] != '*')
			return read_inline(r, bytes, len, limits);
		enum resp_result result = read_count(r, bytes, len, limits);

		if (result != RESP_COMMAND)
			return result;
	}
	return read_args(r, bytes, len, limits);
}

enum resp_result resp_read(struct resp_reader *r, char *bytes, size_t len, const struct resp_limits *limits)
{
	if (__builtin_expect(r->want == 0 && read_short(r, bytes, len, limits), 1))
		return RESP_COMMAND;
	return read_any(r, bytes, len, limits);
}
