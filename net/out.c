/* net/out.c - the writer of RESP replies. */
#include "net/out.h"

#include "core/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_ROOM = 256 };
enum { NUMBER_MAX = 24 };         /* a mark, a sign, 20 digits, CR LF */

static const char pairs_of_digits[200] =
	"00010203040506070809" "10111213141516171819" "20212223242526272829" "30313233343536373839"
	"40414243444546474849" "50515253545556575859" "60616263646566676869" "70717273747576777879"
	"80818283848586878889" "90919293949596979899";

void out_close(struct out *o)
{
	mem_free(o->bytes, o->room);
	o->bytes = NULL;
	o->len = o->room = 0;
}

static bool grow(struct out *o, size_t more)
{
	size_t room = o->room ? o->room : FIRST_ROOM;

	if (o->failed || more > SIZE_MAX / 4 - o->len) {
		o->failed = true;
		return false;
	}
	while (room < o->len + more)
		room *= 2;
	char *bytes = mem_alloc(room);

	if (bytes == NULL) {
		o->failed = true;
		return false;
	}
	if (o->len)
		memcpy(bytes, o->bytes, o->len);
	mem_free(o->bytes, o->room);
	o->bytes = bytes;
	o->room = room;
	return true;
}

/* Once failed, for ever failed: a reply that fits behind one that did not would be half an answer. */
static inline bool make_room(struct out *o, size_t more)
{
	if (__builtin_expect(o->room - o->len < more || o->failed, 0))
		return grow(o, more);
	return true;
}

bool out_room(struct out *o, size_t more)
{
	return make_room(o, more);
}

void out_bytes(struct out *o, const void *bytes, size_t len)
{
	if (!make_room(o, len) || len == 0)
		return;
	memcpy(o->bytes + o->len, bytes, len);
	o->len += len;
}

/* ── numbers ──────────────────────────────────────────────────────────────────────────────────── */
static inline unsigned digits_of(uint64_t n)
{
	unsigned digits = 1;

	for (;; n /= 10000, digits += 4) {
		if (n < 10)
			return digits;
		if (n < 100)
			return digits + 1;
		if (n < 1000)
			return digits + 2;
		if (n < 10000)
			return digits + 3;
	}
}

/* n in decimal from p on, where there is room; returns the end. */
static inline char *put_digits(char *p, uint64_t n)
{
	char *end = p + digits_of(n), *at = end;

	while (n >= 100) {
		at -= 2;
		memcpy(at, pairs_of_digits + n % 100 * 2, 2);
		n /= 100;
	}
	if (n >= 10)
		memcpy(p, pairs_of_digits + n * 2, 2);
	else
		*p = (char)('0' + n);
	return end;
}

static inline char *put_int(char *p, int64_t n)
{
	if (n >= 0)
		return put_digits(p, (uint64_t)n);
	*p = '-';
	return put_digits(p + 1, 0 - (uint64_t)n);
}

static inline char *put_end(char *p)
{
	p[0] = '\r';
	p[1] = '\n';
	return p + 2;
}

/* ":n", "$n", "*n" and their like, in room that is there. */
static inline void put_line(struct out *o, char mark, int64_t n)
{
	char *p = o->bytes + o->len;

	*p = mark;
	o->len = (size_t)(put_end(put_int(p + 1, n)) - o->bytes);
}

static inline void line(struct out *o, char mark, int64_t n)
{
	if (make_room(o, NUMBER_MAX))
		put_line(o, mark, n);
}

void out_int(struct out *o, int64_t n)
{
	line(o, ':', n);
}

void out_array(struct out *o, size_t n)
{
	line(o, '*', (int64_t)n);
}

void out_map(struct out *o, size_t pairs)
{
	if (o->proto >= 3)
		line(o, '%', (int64_t)pairs);
	else
		line(o, '*', (int64_t)pairs * 2);
}

void out_set(struct out *o, size_t n)
{
	line(o, o->proto >= 3 ? '~' : '*', (int64_t)n);
}

void out_push(struct out *o, size_t n)
{
	line(o, o->proto >= 3 ? '>' : '*', (int64_t)n);
}

void out_bool(struct out *o, bool yes)
{
	if (o->proto >= 3)
		out_bytes(o, yes ? "#t\r\n" : "#f\r\n", 4);
	else
		line(o, ':', yes);
}

void out_nil(struct out *o)
{
	out_bytes(o, o->proto >= 3 ? "_\r\n" : "$-1\r\n", o->proto >= 3 ? 3 : 5);
}

void out_double(struct out *o, double x)
{
	char text[40];
	int len = isnan(x) ? snprintf(text, sizeof text, "nan") :
		  isinf(x) ? snprintf(text, sizeof text, x > 0 ? "inf" : "-inf") :
			     snprintf(text, sizeof text, "%.17g", x);

	if (o->proto < 3) {
		out_bulk(o, text, (size_t)len);
		return;
	}
	out_bytes(o, ",", 1);
	out_bytes(o, text, (size_t)len);
	out_bytes(o, "\r\n", 2);
}

/* ── texts ────────────────────────────────────────────────────────────────────────────────────── */
void out_simple(struct out *o, const char *text)
{
	size_t len = strlen(text);

	if (!make_room(o, len + 3))
		return;
	o->bytes[o->len] = '+';
	memcpy(o->bytes + o->len + 1, text, len);
	put_end(o->bytes + o->len + 1 + len);
	o->len += len + 3;
}

void out_bulk(struct out *o, const void *bytes, size_t len)
{
	if (!make_room(o, NUMBER_MAX + len + 2))
		return;
	put_line(o, '$', (int64_t)len);
	if (len)
		memcpy(o->bytes + o->len, bytes, len);
	put_end(o->bytes + o->len + len);
	o->len += len + 2;
}

void out_text(struct out *o, const char *text)
{
	out_bulk(o, text, strlen(text));
}

void out_bulk_int(struct out *o, int64_t n)
{
	char text[NUMBER_MAX];

	out_bulk(o, text, (size_t)(put_int(text, n) - text));
}

void out_verbatim(struct out *o, const char *text, size_t len)
{
	if (o->proto < 3) {
		out_bulk(o, text, len);
		return;
	}
	line(o, '=', (int64_t)len + 4);
	out_bytes(o, "txt:", 4);
	out_bytes(o, text, len);
	out_bytes(o, "\r\n", 2);
}

void out_error(struct out *o, const char *format, ...)
{
	char text[OUT_ERROR_MAX] = "-ERR ";
	size_t at = format[0] == '-' ? 0 : 5;
	va_list args;

	va_start(args, format);
	int len = vsnprintf(text + at, sizeof text - at, format, args);
	va_end(args);
	size_t all = len < 0 ? at : at + (size_t)len;

	if (all > sizeof text - 1)
		all = sizeof text - 1;
	for (size_t i = 0; i < all; i++)
		if (text[i] == '\r' || text[i] == '\n')
			text[i] = ' ';
	out_bytes(o, text, all);
	out_bytes(o, "\r\n", 2);
}
