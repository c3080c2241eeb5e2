/* core/json.h - noh_json.h, and what its parts share: json_check.c (is it JSON?), json_read.c, json_write.c.
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_CORE_JSON_H
#define NOH_CORE_JSON_H

#include "noh_json.h"

#include <endian.h>
#include <string.h>

/* Of eight bytes, the first in the lowest place: a byte's high bit is set if it does not stand for itself within a JSON
 * string. Behind the first of these more may be set, by borrows. */
static inline uint64_t json_others(uint64_t x)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
	uint64_t quote = x ^ ones * '"', escape = x ^ ones * '\\';

	return (x | (x - ones * ' ') | (x + ones) | (quote - ones) | (escape - ones)) & highs;
}

/* How many of these bytes stand for themselves, read or written: ASCII, printable, no quote and no backslash. */
static inline size_t json_plain(const char *at, size_t len)
{
	uint32_t first, last;
	size_t i = 0;
	uint64_t x;

	for (; i + 8 <= len; i += 8) {
		memcpy(&x, at + i, 8);
		x = json_others(le64toh(x));
		if (x)
			return i + (size_t)__builtin_ctzll(x) / 8;
	}
	if (len - i >= 4) {                      /* names are short: two halves that may overlap */
		memcpy(&first, at + i, 4);
		memcpy(&last, at + len - 4, 4);
		if (!json_others((uint64_t)last << 32 | first))
			return len;
	}
	while (i < len && at[i] >= ' ' && at[i] < 0x7f && at[i] != '"' && at[i] != '\\')
		i++;
	return i;
}

/* Of a checked string, between its quotes: the next character, escapes undone; *at moves behind it. */
uint32_t json_next_char(const char **at);

/* noh_json_read of what was checked before. */
int json_fields(noh_json whole, const noh_json_field *fields, size_t count, noh_json_got *got);

#define TIME_TEXT 25       /* "2026-01-31T23:59:59.250Z" and a NUL */

/* False: not within the years 1 to 9999. */
bool json_time_text(int64_t ms, char text[TIME_TEXT]);

#endif
