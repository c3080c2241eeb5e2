/* actors/reconcile_text.c - what somebody outside says, made fit to be shown to people. */
#include "reconcile.h"

/* The character at `at` and its bytes; 0: none stands there (cut short, overlong, a surrogate, too large). */
static size_t next(const uint8_t *at, size_t left, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;

	if (n == 0 || n > left)
		return 0;
	*c = n == 1 ? at[0] : at[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (at[i] & 0x3f);
	}
	return *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : n;
}

/* Control characters of both sets; marks that turn the direction of what follows, so that a line reads as another than it is;
 * line ends that are none in ASCII. */
static bool is_unfit(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void clean_text(char *to, size_t room, const uint8_t *text, size_t len)
{
	size_t used = 0;

	for (size_t at = 0; at < len; ) {
		uint32_t c = 0;
		size_t n = next(text + at, len - at, &c);
		bool shown = n && !is_unfit(c);

		if (used + (shown ? n : 1) >= room)
			break;
		if (shown)
			memcpy(to + used, text + at, n);
		else
			to[used] = '?';
		used += shown ? n : 1;
		at += n ? n : 1;
	}
	to[used] = 0;
}
