/* core/trace.c - W3C trace context, strictly read.
 *
 * What is not exactly as the standard says is not a trace: the request goes on without one, and nobody is told.
 */
#include "core/trace.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Lower-case digits alone. */
static bool read_hex(const char *text, size_t digits, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < digits; i++) {
		char c = text[i];

		if (c >= '0' && c <= '9')
			*out = *out << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*out = *out << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	return true;
}

static void write_hex(char *out, uint64_t n, unsigned digits)
{
	for (unsigned i = digits; i > 0; i--, n >>= 4)
		out[i - 1] = "0123456789abcdef"[n & 15];
}

bool trace_read_id(const char *text, size_t len, uint64_t *hi, uint64_t *lo)
{
	return len == 32 && read_hex(text, 16, hi) && read_hex(text + 16, 16, lo) && (*hi | *lo) != 0;
}

/* A later version may have more behind the flags, and begins as this one does. */
bool trace_parse(const char *text, size_t len, struct trace *t)
{
	uint64_t version, flags, parent, hi, lo;

	if (len < TRACE_PARENT_LEN || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
	    !read_hex(text, 2, &version) || version == 0xff ||
	    (version == 0 ? len != TRACE_PARENT_LEN : len > TRACE_PARENT_LEN && text[55] != '-') ||
	    !trace_read_id(text + 3, 32, &hi, &lo) || !read_hex(text + 36, 16, &parent) || parent == 0 ||
	    !read_hex(text + 53, 2, &flags))
		return false;
	*t = (struct trace){ .hi = hi, .lo = lo, .parent = parent,
			     .flags = (uint32_t)flags & (TRACE_SAMPLED | TRACE_RANDOM) };
	return true;
}

static bool key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' || c == '/' ||
	       c == '@';
}

/* One "key=value", blanks around it cut off; an empty one is allowed. */
static bool member_ok(const char *at, const char *end)
{
	const char *eq;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (at == end)
		return true;
	eq = memchr(at, '=', (size_t)(end - at));
	if (!eq || eq == at || eq - at > 256 || eq + 1 == end || end - eq > 257)
		return false;
	for (const char *c = at; c < eq; c++)
		if (!key_char(*c))
			return false;
	for (const char *c = eq + 1; c < end; c++)
		if (*c < 0x20 || *c > 0x7e || *c == '=')
			return false;
	return true;
}

bool trace_state_ok(const char *text, size_t len)
{
	const char *end = text + len;
	unsigned members = 0;

	if (len == 0 || len > TRACE_STATE_MAX)
		return false;
	for (const char *at = text; at <= end; ) {
		const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;

		if (!comma)
			comma = end;
		if (!member_ok(at, comma) || ++members > 32)
			return false;
		at = comma + 1;
	}
	return true;
}

void trace_write_id(uint64_t hi, uint64_t lo, char out[33])
{
	write_hex(out, hi, 16);
	write_hex(out + 16, lo, 16);
	out[32] = 0;
}

void trace_write_span(uint64_t span, char out[17])
{
	write_hex(out, span, 16);
	out[16] = 0;
}

void trace_write(const struct trace *t, char out[TRACE_PARENT_LEN + 1])
{
	memcpy(out, "00-", 3);
	trace_write_id(t->hi, t->lo, out + 3);
	out[35] = '-';
	trace_write_span(t->span, out + 36);
	out[52] = '-';
	write_hex(out + 53, t->flags, 2);
	out[55] = 0;
}

/* splitmix64 over a seed of the system's: unlike in every run, and no two alike in a worker. */
uint64_t trace_fresh(uint64_t *state)
{
	uint64_t z;

	if (*state == 0 && getrandom(state, sizeof *state, 0) != sizeof *state) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);     /* a system without randomness: ids need not be secret */
		*state = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)state;
	}
	do {
		*state += UINT64_C(0x9e3779b97f4a7c15);
		z = *state;
		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		z ^= z >> 31;
	} while (z == 0 || *state == 0);
	return z;
}

void trace_begin(struct trace *t, uint64_t *state)
{
	*t = (struct trace){ .flags = TRACE_SAMPLED | TRACE_RANDOM };
	t->hi = trace_fresh(state);
	t->lo = trace_fresh(state);
	t->span = trace_fresh(state);
}
