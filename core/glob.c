/* core/glob.c - one star at a time.
 *
 * Everything but a star takes exactly one byte. So if what follows a star does not fit, that star takes one
 * byte more and the rest is tried again; a star further left need never be looked at again, because whatever
 * it could take instead this one can take as well. That is at most pattern times text, for a*a*a*a*b too,
 * where trying every star anew would be exponential.
 */
#include "core/glob.h"

static unsigned char lower(unsigned char c, bool any_case)
{
	return any_case && c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* The set whose first byte, after the bracket, is at p: is c in it? *next: behind it. */
static bool in_set(const unsigned char *p, const unsigned char *end, unsigned char c, bool any_case,
		   const unsigned char **next)
{
	bool not = p < end && *p == '^', found = false;

	for (p += not; p < end && *p != ']'; p++) {
		bool escaped = *p == '\\' && p + 1 < end;
		unsigned char from, to;

		p += escaped;
		from = to = lower(*p, any_case);
		if (!escaped && end - p >= 3 && p[1] == '-') {
			to = lower(p[2], any_case);
			p += 2;
		}
		if (from > to) {
			unsigned char swap = from;

			from = to;
			to = swap;
		}
		found |= c >= from && c <= to;
	}
	*next = p < end ? p + 1 : end;
	return found != not;
}

/* Does what is at p, which is no star, fit the byte c? *next: behind it. */
static bool fits(const unsigned char *p, const unsigned char *end, unsigned char c, bool any_case,
		 const unsigned char **next)
{
	c = lower(c, any_case);
	if (*p == '[')
		return in_set(p + 1, end, c, any_case, next);
	if (*p == '?') {
		*next = p + 1;
		return true;
	}
	if (*p == '\\' && p + 1 < end)
		p++;
	*next = p + 1;
	return lower(*p, any_case) == c;
}

static bool match(const char *pattern, size_t pattern_len, const char *text, size_t len, bool any_case)
{
	const unsigned char *p = (const unsigned char *)pattern, *p_end = p + pattern_len;
	const unsigned char *t = (const unsigned char *)text, *t_end = t + len;
	const unsigned char *after_star = NULL, *taken = NULL;    /* and what the last star has taken so far */

	for (;;) {
		if (p < p_end && *p == '*') {
			while (p < p_end && *p == '*')
				p++;
			if (p == p_end)
				return true;
			after_star = p;
			taken = t;
		} else if (t == t_end) {
			return p == p_end;
		} else if (p < p_end && fits(p, p_end, *t, any_case, &p)) {
			t++;
		} else {
			if (!after_star)
				return false;
			p = after_star;
			t = ++taken;
		}
	}
}

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len)
{
	return match(pattern, pattern_len, text, len, false);
}

bool glob_match_any_case(const char *pattern, size_t pattern_len, const char *text, size_t len)
{
	return match(pattern, pattern_len, text, len, true);
}

size_t glob_plain(const char *pattern, size_t pattern_len)
{
	size_t n = 0;

	while (n < pattern_len && pattern[n] != '*' && pattern[n] != '?' && pattern[n] != '[' &&
	       pattern[n] != '\\')
		n++;
	return n;
}
