/* core/json_write.c - JSON into a buffer that has an end: what is beyond it is counted, not written. */
#include "core/json.h"
#include "core/utf8.h"

#include <stdio.h>
#include <string.h>

static void put(noh_json_out *o, const void *bytes, size_t len)
{
	if (len && o->len < o->room)
		memcpy(o->at + o->len, bytes, len < o->room - o->len ? len : o->room - o->len);
	o->len += len;
}

static inline void put_char(noh_json_out *o, char c)
{
	if (o->len < o->room)
		o->at[o->len] = c;
	o->len++;
}

static void put_escaped(noh_json_out *o, const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t from = 0;

	for (size_t i = json_plain(text, len); i < len; i += json_plain(text + i, len - i)) {
		size_t n = utf8_next(at + i, len - i);
		char escape[8];

		if (n && at[i] >= 0x20 && at[i] != '"' && at[i] != '\\' && at[i] != 0x7f) {
			i += n;
			continue;
		}
		put(o, text + from, i - from);
		if (!n)
			put(o, "\\ufffd", 6);
		else if (at[i] == '"' || at[i] == '\\')
			put(o, at[i] == '"' ? "\\\"" : "\\\\", 2);
		else if (at[i] == '\n')
			put(o, "\\n", 2);
		else
			put(o, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", at[i]));
		from = ++i;
	}
	put(o, text + from, len - from);
}

static void put_quoted(noh_json_out *o, const char *text, size_t len)
{
	put_char(o, '"');
	if (json_plain(text, len) == len)
		put(o, text, len);
	else
		put_escaped(o, text, len);
	put_char(o, '"');
}

static void begin(noh_json_out *o, const char *name)
{
	if (o->comma)
		put_char(o, ',');
	o->comma = true;
	if (name) {
		put_quoted(o, name, strlen(name));
		put_char(o, ':');
	}
}

void noh_json_open(noh_json_out *o, const char *name, char bracket)
{
	begin(o, name);
	put_char(o, bracket);
	o->comma = false;
}

void noh_json_close(noh_json_out *o, char bracket)
{
	put_char(o, bracket);
	o->comma = true;
}

static void put_digits(noh_json_out *o, bool minus, uint64_t n)
{
	char text[24];
	size_t at = sizeof text;

	do {
		text[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	if (minus)
		text[--at] = '-';
	put(o, text + at, sizeof text - at);
}

void noh_json_put_int(noh_json_out *o, const char *name, int64_t n)
{
	begin(o, name);
	put_digits(o, n < 0, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

void noh_json_put_uint(noh_json_out *o, const char *name, uint64_t n)
{
	begin(o, name);
	put_digits(o, false, n);
}

void noh_json_put_bool(noh_json_out *o, const char *name, bool yes)
{
	begin(o, name);
	put(o, yes ? "true" : "false", yes ? 4 : 5);
}

void noh_json_put_null(noh_json_out *o, const char *name)
{
	begin(o, name);
	put(o, "null", 4);
}

void noh_json_put_text(noh_json_out *o, const char *name, const char *text, size_t len)
{
	begin(o, name);
	put_quoted(o, text, len);
}

void noh_json_put_raw(noh_json_out *o, const char *name, const char *json, size_t len)
{
	begin(o, name);
	put(o, json, len);
}

void noh_json_put_time(noh_json_out *o, const char *name, int64_t ms)
{
	char text[TIME_TEXT];

	if (json_time_text(ms, text))
		noh_json_put_text(o, name, text, strlen(text));
	else
		noh_json_put_null(o, name);
}

void noh_json_put_base64(noh_json_out *o, const char *name, const void *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = bytes;

	begin(o, name);
	put_char(o, '"');
	for (size_t i = 0; i < len; i += 3) {
		uint32_t three = (uint32_t)at[i] << 16 | (uint32_t)(i + 1 < len ? at[i + 1] : 0) << 8 |
				 (i + 2 < len ? at[i + 2] : 0);
		char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
				 i + 1 < len ? digits[three >> 6 & 63] : '=', i + 2 < len ? digits[three & 63] : '=' };

		put(o, four, sizeof four);
	}
	put_char(o, '"');
}
