/* core/json_read.c - looking at JSON that was checked: values in place, nothing is copied but text. */
#include "core/error.h"
#include "core/json.h"
#include "core/utf8.h"

#include <string.h>

noh_json_type noh_json_type_of(noh_json value)
{
	switch (*value.at) {
	case '{': return NOH_JSON_OBJECT;
	case '[': return NOH_JSON_ARRAY;
	case '"': return NOH_JSON_STRING;
	case 't': case 'f': return NOH_JSON_BOOL;
	case 'n': return NOH_JSON_NULL;
	default: return NOH_JSON_NUMBER;
	}
}

bool noh_json_int(noh_json value, int64_t *n)
{
	const char *at = value.at, *end = value.at + value.len;
	bool minus = *at == '-';
	uint64_t sum = 0, most = minus ? UINT64_C(1) << 63 : INT64_MAX;

	at += minus;
	if (at == end)
		return false;
	for (; at < end; at++) {
		unsigned digit = (unsigned)*at - '0';

		if (digit > 9 || sum > (most - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	*n = minus ? (int64_t)(0 - sum) : (int64_t)sum;
	return true;
}

/* Most strings: without escapes their text is what stands between the quotes. */
static bool is_verbatim(noh_json value)
{
	return !memchr(value.at, '\\', value.len);
}

size_t noh_json_text(noh_json value, char *to, size_t room)
{
	const char *at = value.at + 1, *end = value.at + value.len - 1;
	size_t len = 0, kept = 0;

	if (value.len - 2 < room && is_verbatim(value)) {
		memcpy(to, at, value.len - 2);
		to[value.len - 2] = 0;
		return value.len - 2;
	}
	while (at < end) {
		char c[4];
		size_t n = utf8_put(json_next_char(&at), c);

		if (kept == len && len + n < room) {     /* cut at a whole character */
			memcpy(to + len, c, n);
			kept += n;
		}
		len += n;
	}
	if (room)
		to[kept] = 0;
	return len;
}

bool noh_json_is(noh_json value, const char *text)
{
	const char *at = value.at + 1, *end = value.at + value.len - 1;

	if (*value.at != '"')
		return false;
	for (;;) {
		char c[4];
		size_t n;

		while (at < end && *at == *text && *at != '\\') {
			at++;
			text++;
		}
		if (at == end || *at != '\\')
			return at == end && *text == 0;
		n = utf8_put(json_next_char(&at), c);
		if (*text == 0 || strncmp(text, c, n) != 0)
			return false;
		text += n;
	}
}

/* ── walking ── */

/* end: of a text that goes on at least as far as the string. */
static const char *skip_string(const char *at, const char *end)
{
	for (at++;;) {
		at += json_plain(at, (size_t)(end - at));
		if (*at == '"')
			return at + 1;
		if (*at == '\\')
			at++;
		do
			at++;
		while (*at & 0x80);
	}
}

static const char *skip_space(const char *at)
{
	while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
		at++;
	return at;
}

/* Behind the value at `at`: there is more text behind it, its container's bracket at least. */
static const char *skip_value(const char *at, const char *end)
{
	unsigned depth = 0;

	do {
		if (*at == '"') {
			at = skip_string(at, end);
		} else if (*at == '{' || *at == '[') {
			depth++;
			at++;
		} else if (*at == '}' || *at == ']') {
			depth--;
			at++;
		} else if (depth) {
			at++;
		} else {
			while (*at != ',' && *at != '}' && *at != ']' && *at != ' ' && *at != '\n' && *at != '\t' &&
			       *at != '\r')
				at++;
		}
	} while (depth);
	return at;
}

bool noh_json_next(noh_json of, noh_json_walk *walk, noh_json *name, noh_json *value)
{
	const char *at = skip_space(walk->at ? walk->at : of.at + 1), *all = of.at + of.len, *end;

	if (walk->at && *at == ',')
		at = skip_space(at + 1);
	if (*at == '}' || *at == ']') {
		walk->at = at;
		return false;
	}
	if (*of.at == '{') {
		end = skip_string(at, all);
		if (name)
			*name = (noh_json){ at, (size_t)(end - at) };
		at = skip_space(skip_space(end) + 1);
	}
	end = skip_value(at, all);
	*value = (noh_json){ at, (size_t)(end - at) };
	walk->at = end;
	return true;
}

/* ── fields ── */

static int shown(noh_json v)
{
	return v.len < 40 ? (int)v.len : 40;
}

static int not_a(const noh_json_field *f, const char *what, noh_json v)
{
	return error_set(NOH_EINVAL, "\"%s\" must be %s, not %.*s%s", f->name, what, shown(v), v.at,
			 v.len > 40 ? "..." : "");
}

static int read_int(const noh_json_field *f, noh_json v, int64_t *n)
{
	if (noh_json_type_of(v) != NOH_JSON_NUMBER || !noh_json_int(v, n))
		return not_a(f, "an integer of 64 bits", v);
	if (*n >= f->least && *n <= f->most)
		return NOH_OK;
	return error_set(NOH_EINVAL, "\"%s\" must be from %lld to %lld, not %lld", f->name, (long long)f->least,
			 (long long)f->most, (long long)*n);
}

static int read_string(const noh_json_field *f, noh_json v)
{
	size_t len;

	if (noh_json_type_of(v) != NOH_JSON_STRING)
		return not_a(f, "a string", v);
	len = is_verbatim(v) ? v.len - 2 : noh_json_text(v, NULL, 0);
	if (f->most == 0 || (len >= (uint64_t)f->least && len <= (uint64_t)f->most))
		return NOH_OK;
	return error_set(NOH_EINVAL, "\"%s\" must have %lld to %lld bytes, not %zu", f->name, (long long)f->least,
			 (long long)f->most, len);
}

static int read_field(const noh_json_field *f, noh_json v, noh_json_got *got)
{
	noh_json_type type = noh_json_type_of(v);

	if (type == NOH_JSON_NULL && f->type != NOH_JSON_NULL && !f->required)
		return NOH_OK;           /* as if it were not there */
	got->given = true;
	got->value = v;
	switch (f->type) {
	case NOH_JSON_INT:
		return read_int(f, v, &got->n);
	case NOH_JSON_BOOL:
		got->n = *v.at == 't';
		return type == NOH_JSON_BOOL ? NOH_OK : not_a(f, "true or false", v);
	case NOH_JSON_TIME:
		return noh_json_time(v, &got->n) ? NOH_OK : not_a(f, "a time like \"2026-01-31T23:59:59Z\"", v);
	case NOH_JSON_STRING:
		return read_string(f, v);
	case NOH_JSON_OBJECT:
		return type == NOH_JSON_OBJECT ? NOH_OK : not_a(f, "an object", v);
	default:
		return NOH_OK;
	}
}

static int unknown(noh_json name, const noh_json_field *fields, size_t count)
{
	char list[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < count && len + strlen(fields[i].name) + 3 < sizeof list; i++) {
		memcpy(list + len, i ? ", " : "", i ? 2 : 0);
		len += i ? 2 : 0;
		memcpy(list + len, fields[i].name, strlen(fields[i].name));
		len += strlen(fields[i].name);
	}
	if (count == 0)
		return error_set(NOH_EINVAL, "there is no field %.*s here: the object must be empty", shown(name), name.at);
	return error_set(NOH_EINVAL, "there is no field %.*s here, only: %.*s", shown(name), name.at, (int)len, list);
}

int noh_json_read(const char *text, size_t len, const noh_json_field *fields, size_t count, noh_json_got *got)
{
	noh_json whole;
	int rc = noh_json_check(text, len, &whole);

	return rc == NOH_OK ? json_fields(whole, fields, count, got) : rc;
}

int json_fields(noh_json whole, const noh_json_field *fields, size_t count, noh_json_got *got)
{
	noh_json name, value;
	noh_json_walk walk = { NULL };
	int rc;

	for (size_t i = 0; i < count; i++)
		got[i] = (noh_json_got){ .n = fields[i].preset };
	if (noh_json_type_of(whole) != NOH_JSON_OBJECT)
		return error_set(NOH_EINVAL, "a JSON object is expected: {...}");
	while (noh_json_next(whole, &walk, &name, &value)) {
		size_t i = 0;

		while (i < count && !noh_json_is(name, fields[i].name))
			i++;
		rc = i < count ? read_field(&fields[i], value, &got[i]) : unknown(name, fields, count);
		if (rc != NOH_OK)
			return rc;
	}
	for (size_t i = 0; i < count; i++)
		if (fields[i].required && !got[i].given)
			return error_set(NOH_EINVAL, "\"%s\" is missing", fields[i].name);
	return NOH_OK;
}
