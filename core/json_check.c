/* core/json_check.c - is this text JSON? Whatever comes from outside goes through here before anybody reads it.
 *
 * One pass, no recursion, a bit per level. Names are noted as places in the text; when an object ends its names are
 * compared (few: each with each; many: sorted), and forgotten. So hostile text costs its length times a logarithm, and
 * memory for places alone.
 */
#include "core/error.h"
#include "core/json.h"
#include "core/mem.h"
#include "core/utf8.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_INSIDE 64
#define NAMES_FEW 12
#define TEXT_MAX UINT32_MAX

struct name {
	const char *at, *end;            /* between the quotes */
};

struct checker {
	const char  *at, *end;
	const char  *why;                /* NULL: nothing is wrong; "": no memory                    */
	uint32_t     depth;
	uint64_t     objects;            /* bit d: level d is one, else an array                     */
	bool         escapes;            /* in a name: it may be there a second time, spelled otherwise */
	struct name *names;              /* of the objects that are open, the outermost first        */
	uint32_t     count, room;
	uint32_t     first[NOH_JSON_DEPTH];
	struct name  inside[NAMES_INSIDE];
};

static bool wrong(struct checker *k, const char *why)
{
	if (!k->why)
		k->why = why;
	return false;
}

static void skip_space(struct checker *k)
{
	while (k->at < k->end && (*k->at == ' ' || *k->at == '\n' || *k->at == '\t' || *k->at == '\r'))
		k->at++;
}

/* ── strings ── */

static int hex4(const char *at)
{
	int n = 0;

	for (int i = 0; i < 4; i++) {
		char c = at[i];
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			    c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (digit < 0)
			return -1;
		n = n << 4 | digit;
	}
	return n;
}

/* At the u of \u: both halves of a pair. */
static bool check_unicode(struct checker *k, bool name)
{
	int c = k->end - k->at >= 5 ? hex4(k->at + 1) : -1, low;

	if (c < 0)
		return wrong(k, "\\u without four hexadecimal digits");
	if (c == 0 && name)
		return wrong(k, "a NUL in a name");
	k->at += 5;
	if (c < 0xd800 || c > 0xdfff)
		return true;
	low = c < 0xdc00 && k->end - k->at >= 6 && k->at[0] == '\\' && k->at[1] == 'u' ? hex4(k->at + 2) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return wrong(k, "half a surrogate pair");
	k->at += 6;
	return true;
}

static bool check_escape(struct checker *k, bool name)
{
	k->at++;
	k->escapes |= name;
	if (k->at == k->end)
		return wrong(k, "a string that does not end");
	if (*k->at == 'u')
		return check_unicode(k, name);
	if (*k->at == 0 || !strchr("\"\\/bfnrt", *k->at))
		return wrong(k, "an escape that JSON does not know");
	k->at++;
	return true;
}

/* At a character: it, and those that follow it as long as they are not ASCII. */
static bool check_utf8(struct checker *k)
{
	do {
		size_t n = utf8_next((const unsigned char *)k->at, (size_t)(k->end - k->at));

		if (!n)
			return wrong(k, "bytes that are not UTF-8");
		k->at += n;
	} while (k->at < k->end && *k->at & 0x80);
	return true;
}

/* At the quote. */
static bool check_string(struct checker *k, bool name)
{
	k->at++;
	for (;;) {
		unsigned char c;

		k->at += json_plain(k->at, (size_t)(k->end - k->at));
		if (k->at == k->end || *k->at == '"')
			break;
		c = (unsigned char)*k->at;
		if (c == '\\') {
			if (!check_escape(k, name))
				return false;
		} else if (c < 0x20) {
			return wrong(k, "a control character in a string (write it as \\u00..)");
		} else if (!check_utf8(k)) {
			return false;
		}
	}
	if (k->at == k->end)
		return wrong(k, "a string that does not end");
	k->at++;
	return true;
}

/* The next character of a checked string, escapes undone. */
uint32_t json_next_char(const char **at)
{
	static const char escaped[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const unsigned char *p = (const unsigned char *)*at;
	uint32_t c;

	if (*p == '\\' && p[1] != 'u') {
		*at += 2;
		return (uint32_t)meant[strchr(escaped, p[1]) - escaped];
	}
	if (*p == '\\') {
		c = (uint32_t)hex4(*at + 2);
		*at += 6;
		if (c < 0xd800 || c > 0xdfff)
			return c;
		c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex4(*at + 2) - 0xdc00);
		*at += 6;
		return c;
	}
	if (*p < 0x80) {
		*at += 1;
		return *p;
	}
	if (*p < 0xe0) {
		*at += 2;
		return (uint32_t)(*p & 31) << 6 | (p[1] & 63);
	}
	if (*p < 0xf0) {
		*at += 3;
		return (uint32_t)(*p & 15) << 12 | (uint32_t)(p[1] & 63) << 6 | (p[2] & 63);
	}
	*at += 4;
	return (uint32_t)(*p & 7) << 18 | (uint32_t)(p[1] & 63) << 12 | (uint32_t)(p[2] & 63) << 6 | (p[3] & 63);
}

/* ── names ── */

static int compare(const void *x, const void *y)
{
	struct name a = *(const struct name *)x, b = *(const struct name *)y;

	while (a.at < a.end && b.at < b.end) {
		uint32_t ca = json_next_char(&a.at), cb = json_next_char(&b.at);

		if (ca != cb)
			return ca < cb ? -1 : 1;
	}
	return (a.at < a.end) - (b.at < b.end);
}

static bool note_name(struct checker *k, const char *at)
{
	if (k->count == k->room) {
		struct name *list = mem_alloc(2 * (size_t)k->room * sizeof *list);

		if (!list)
			return wrong(k, "");
		memcpy(list, k->names, k->count * sizeof *list);
		if (k->names != k->inside)
			mem_free(k->names, k->room * sizeof *list);
		k->names = list;
		k->room *= 2;
	}
	k->names[k->count++] = (struct name){ at + 1, k->at - 1 };
	return true;
}

static bool is_same(const struct checker *k, const struct name *a, const struct name *b)
{
	size_t len = (size_t)(a->end - a->at);

	if (k->escapes)
		return compare(a, b) == 0;
	return len == (size_t)(b->end - b->at) && memcmp(a->at, b->at, len) == 0;
}

/* An object ends: is one of its names there twice? */
static bool check_names(struct checker *k)
{
	struct name *list = k->names + k->first[k->depth - 1];
	uint32_t n = k->count - k->first[k->depth - 1];

	k->count -= n;
	if (n <= NAMES_FEW) {
		for (uint32_t i = 1; i < n; i++)
			for (uint32_t j = 0; j < i; j++)
				if (is_same(k, &list[i], &list[j]))
					return wrong(k, "a name that is in this object twice");
		return true;
	}
	qsort(list, n, sizeof *list, compare);
	for (uint32_t i = 1; i < n; i++)
		if (compare(&list[i], &list[i - 1]) == 0)
			return wrong(k, "a name that is in this object twice");
	return true;
}

/* ── values ── */

static bool check_digits(struct checker *k)
{
	const char *from = k->at;

	while (k->at < k->end && *k->at >= '0' && *k->at <= '9')
		k->at++;
	return k->at > from || wrong(k, "a digit is missing in a number");
}

static bool check_number(struct checker *k)
{
	if (*k->at == '-')
		k->at++;
	if (k->at < k->end && *k->at == '0') {
		k->at++;
		if (k->at < k->end && *k->at >= '0' && *k->at <= '9')
			return wrong(k, "a number that begins with 0");
	} else if (!check_digits(k)) {
		return false;
	}
	if (k->at < k->end && *k->at == '.') {
		k->at++;
		if (!check_digits(k))
			return false;
	}
	if (k->at < k->end && (*k->at == 'e' || *k->at == 'E')) {
		k->at++;
		if (k->at < k->end && (*k->at == '+' || *k->at == '-'))
			k->at++;
		return check_digits(k);
	}
	return true;
}

static bool check_word(struct checker *k, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(k->end - k->at) < n || memcmp(k->at, word, n) != 0)
		return wrong(k, "a value is expected");
	k->at += n;
	return true;
}

static bool is_object(const struct checker *k)
{
	return k->objects >> (k->depth - 1) & 1;
}

static bool open_level(struct checker *k)
{
	if (k->depth == NOH_JSON_DEPTH)
		return wrong(k, "too deep: at most 32 levels");
	k->first[k->depth] = k->count;
	k->objects &= ~(UINT64_C(1) << k->depth);
	k->objects |= (uint64_t)(*k->at == '{') << k->depth;
	k->depth++;
	k->at++;
	return true;
}

/* The name of a member, and its colon. */
static bool check_member(struct checker *k)
{
	const char *at = k->at;

	if (k->at == k->end || *k->at != '"')
		return wrong(k, "a name in quotes is expected");
	if (!check_string(k, true) || !note_name(k, at))
		return false;
	skip_space(k);
	if (k->at == k->end || *k->at != ':')
		return wrong(k, "a colon is expected");
	k->at++;
	skip_space(k);
	return true;
}

static bool check_plain(struct checker *k)
{
	switch (k->at == k->end ? 0 : *k->at) {
	case '"': return check_string(k, false);
	case 't': return check_word(k, "true");
	case 'f': return check_word(k, "false");
	case 'n': return check_word(k, "null");
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9': return check_number(k);
	}
	return wrong(k, k->at == k->end ? "the text ends where a value is expected" : "a value is expected");
}

/* Behind a value: commas and ends of levels, up to where the next value begins. *more: there is one. */
static bool check_after(struct checker *k, bool *more)
{
	for (;;) {
		skip_space(k);
		*more = false;
		if (k->depth == 0)
			return k->at == k->end || wrong(k, "something follows the value");
		if (k->at == k->end)
			return wrong(k, "the text ends before a bracket is closed");
		*more = true;
		if (*k->at == ',') {
			k->at++;
			skip_space(k);
			return !is_object(k) || check_member(k);
		}
		if (*k->at != (is_object(k) ? '}' : ']'))
			return wrong(k, "a comma or a closing bracket is expected");
		if (is_object(k) && !check_names(k))
			return false;
		k->at++;
		k->depth--;
	}
}

/* At a bracket: into it, or, if it is empty, behind it. *inside: a value follows. */
static bool check_open(struct checker *k, bool *inside)
{
	*inside = true;
	if (!open_level(k))
		return false;
	skip_space(k);
	if (k->at < k->end && *k->at == (is_object(k) ? '}' : ']')) {
		k->at++;
		k->depth--;
		*inside = false;
		return true;
	}
	return !is_object(k) || check_member(k);
}

static bool check(struct checker *k)
{
	bool more = true;

	skip_space(k);
	while (more) {
		if (k->at < k->end && (*k->at == '{' || *k->at == '[')) {
			bool inside;

			if (!check_open(k, &inside))
				return false;
			if (inside)
				continue;
		} else if (!check_plain(k)) {
			return false;
		}
		if (!check_after(k, &more))
			return false;
	}
	return true;
}

static void begin(struct checker *k, const char *text, size_t len)
{
	k->at = text;
	k->end = text + len;
	k->why = NULL;
	k->depth = 0;
	k->objects = 0;
	k->escapes = false;
	k->names = k->inside;
	k->count = 0;
	k->room = NAMES_INSIDE;
}

int noh_json_check(const char *text, size_t len, noh_json *value)
{
	struct checker k;                        /* its lists are written before they are read: nothing to clear */
	bool ok;

	if (len > TEXT_MAX)
		return error_set(NOH_EINVAL, "not JSON that is read here: more than 4 GiB");
	begin(&k, text, len);
	ok = check(&k);
	if (k.names != k.inside)
		mem_free(k.names, k.room * sizeof *k.names);
	if (!ok && *k.why == 0)
		return error_set(NOH_ENOMEM, "no memory for the names of an object");
	if (!ok)
		return error_set(NOH_EINVAL, "not JSON: %s, at byte %zu of %zu", k.why, (size_t)(k.at - text), len);
	k.at = text;
	skip_space(&k);
	while (k.end[-1] == ' ' || k.end[-1] == '\n' || k.end[-1] == '\t' || k.end[-1] == '\r')
		k.end--;
	*value = (noh_json){ k.at, (size_t)(k.end - k.at) };
	return NOH_OK;
}
