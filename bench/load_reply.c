/* bench/load_reply.c - an element is a type byte, a line, and for strings a body.
 *
 *     TYPE ──► LINE ──► BODY ──► TYPE          of arrays only `left` is kept: elements still to come
 */
#include "bench/load_reply.h"

#include <string.h>

enum { TYPE, LINE, BODY };
enum { MOST_DIGITS = 18 };

void reply_reset(struct reply *r)
{
	memset(r, 0, sizeof *r);
}

static bool is_text(uint8_t kind)      /* the line itself is the value */
{
	return kind == '+' || kind == '-' || kind == ':' || kind == ',' || kind == '#' || kind == '_' ||
	       kind == '(';
}

static bool is_string(uint8_t kind)
{
	return kind == '$' || kind == '=' || kind == '!';
}

static bool is_array(uint8_t kind)
{
	return kind == '*' || kind == '~' || kind == '>' || kind == '%';
}

static void keep(struct reply *r, const uint8_t *from, uint64_t n)
{
	uint64_t room = REPLY_LEAF - r->leaf_len;

	if (r->leaves > 0)
		return;
	n = n < room ? n : room;
	memcpy(r->leaf + r->leaf_len, from, n);
	r->leaf_len = (uint8_t)(r->leaf_len + n);
	r->leaf[r->leaf_len] = '\0';
}

static bool take_type(struct reply *r, uint8_t kind)
{
	if (!is_text(kind) && !is_string(kind) && !is_array(kind))
		return false;
	if (r->depth == 0) {
		r->type = kind;
		r->leaf_len = 0;
		r->leaf[0] = '\0';
		r->leaves = 0;
	}
	r->kind = kind;
	r->minus = false;
	r->digits = 0;
	r->number = 0;
	r->phase = LINE;
	return true;
}

/* A part of a line, without its '\n'. */
static bool take_line(struct reply *r, const uint8_t *from, uint64_t n)
{
	if (is_text(r->kind)) {
		keep(r, from, n);
		return true;
	}
	for (uint64_t i = 0; i < n; i++) {
		if (from[i] == '-' && r->digits == 0 && !r->minus) {
			r->minus = true;
		} else if (from[i] >= '0' && from[i] <= '9' && r->digits < MOST_DIGITS) {
			r->number = r->number * 10 + (from[i] - '0');
			r->digits++;
		} else if (from[i] != '\r') {
			return false;
		}
	}
	return true;
}

static bool leaf_ends(struct reply *r)      /* true: and with it the reply */
{
	r->leaves++;
	r->phase = TYPE;
	while (r->depth > 0 && --r->left[r->depth - 1] == 0)
		r->depth--;
	return r->depth == 0;
}

static enum reply_state line_ends(struct reply *r)
{
	if (is_text(r->kind)) {
		while (r->leaves == 0 && r->leaf_len > 0 && r->leaf[r->leaf_len - 1] == '\r')
			r->leaf[--r->leaf_len] = '\0';
		return leaf_ends(r) ? REPLY_DONE : REPLY_MORE;
	}
	if (r->digits == 0)
		return REPLY_BROKEN;
	if (r->minus)                                         /* $-1, *-1: nothing */
		return leaf_ends(r) ? REPLY_DONE : REPLY_MORE;
	if (is_string(r->kind)) {
		r->body = r->number + 2;
		r->phase = BODY;
		return REPLY_MORE;
	}
	uint64_t elements = r->kind == '%' ? 2 * r->number : r->number;
	if (elements == 0)
		return leaf_ends(r) ? REPLY_DONE : REPLY_MORE;
	if (r->depth == REPLY_DEPTH)
		return REPLY_BROKEN;
	r->left[r->depth++] = elements;
	r->phase = TYPE;
	return REPLY_MORE;
}

static enum reply_state take_body(struct reply *r, const uint8_t **at, const uint8_t *end)
{
	uint64_t n = (uint64_t)(end - *at);

	n = n < r->body ? n : r->body;
	if (r->body > 2)
		keep(r, *at, n < r->body - 2 ? n : r->body - 2);
	*at += n;
	r->body -= n;
	if (r->body > 0)
		return REPLY_MORE;
	return leaf_ends(r) ? REPLY_DONE : REPLY_MORE;
}

enum reply_state reply_next(struct reply *r, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		enum reply_state state = REPLY_MORE;

		if (r->phase == TYPE) {
			if (!take_type(r, *(*at)++))
				return REPLY_BROKEN;
		} else if (r->phase == LINE) {
			const uint8_t *stop = memchr(*at, '\n', (size_t)(end - *at));

			if (!take_line(r, *at, (uint64_t)((stop != NULL ? stop : end) - *at)))
				return REPLY_BROKEN;
			*at = stop != NULL ? stop + 1 : end;
			if (stop != NULL)
				state = line_ends(r);
		} else {
			state = take_body(r, at, end);
		}
		if (state != REPLY_MORE)
			return state;
	}
	return REPLY_MORE;
}

/* One step over n bytes: how many lines end, and whether anything but integers was there. b[n] exists.
 * '0'..'9' and ':' are neighbours. No branches, so that a compiler makes vectors of it. */
static inline void look(const uint8_t *b, unsigned n, uint8_t *lines, uint8_t *other)
{
	uint8_t ends = 0, odd = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t newline = b[i] == '\n';

		ends = (uint8_t)(ends + newline);
		odd |= (uint8_t)(newline & (b[i + 1] != ':'));
		odd |= (uint8_t)(((uint8_t)(b[i] - '0') > 10) & (b[i] != '\r') & (newline ^ 1));
	}
	*lines = ends;
	*other |= odd;
}

uint32_t reply_integers(const uint8_t **at, const uint8_t *end)
{
	enum { STEP = 64 };
	const uint8_t *b = *at;
	const uint8_t *last = memrchr(b, '\n', (size_t)(end - b));
	uint32_t count = 1;                                       /* the last line, not looked at below */
	uint8_t lines, other = 0;

	if (last == NULL || *b != ':')
		return 0;
	for (; last - b >= STEP; b += STEP) {
		look(b, STEP, &lines, &other);
		count += lines;
	}
	look(b, (unsigned)(last - b), &lines, &other);
	if (other != 0)
		return 0;
	*at = last + 1;
	return count + lines;
}
