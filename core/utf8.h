/* core/utf8.h - the next character of a text in UTF-8, or that there is none; and where a text may be cut.
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_CORE_UTF8_H
#define NOH_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `at`; 0: what stands there is none (cut short, overlong, a surrogate, too large). */
static inline size_t utf8_next(const unsigned char *at, size_t left)
{
	unsigned char a = at[0], low = 0x80, high = 0xbf;
	size_t n;

	if (a < 0x80)
		return 1;
	if (a < 0xc2 || a > 0xf4)
		return 0;
	n = a < 0xe0 ? 2 : a < 0xf0 ? 3 : 4;
	if (left < n)
		return 0;
	if (a == 0xe0)
		low = 0xa0;
	else if (a == 0xed)
		high = 0x9f;
	else if (a == 0xf0)
		low = 0x90;
	else if (a == 0xf4)
		high = 0x8f;
	if (at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* How many bytes of a text that is longer than `most` are to be kept, so that it is not cut inside a character. */
static inline size_t utf8_cut(const char *text, size_t most)
{
	size_t n = most;

	while (n > 0 && n + 4 > most && ((unsigned char)text[n] & 0xc0) == 0x80)      /* it goes on with one */
		n--;
	return n;
}

/* Writes the character, at most 4 bytes; returns how many. */
static inline size_t utf8_put(uint32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

#endif
