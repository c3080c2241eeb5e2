/* noh_json.h - JSON for the hooks of noh.h: a strict reader and a small writer that take no memory of yours.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nobody has to use it: from_json and to_json (noh.h, section 3) are handed plain text. It is what the built-in types
 * and the HTTP interface use.
 *
 *	enum { BY, HIGH, FIELDS };
 *	static const noh_json_field fields[FIELDS] = {
 *		[BY]   = { .name = "by", .type = NOH_JSON_INT, .least = INT64_MIN, .most = INT64_MAX, .preset = 1 },
 *		[HIGH] = { .name = "high", .type = NOH_JSON_INT, .least = 0, .most = INT64_MAX } };
 *	noh_json_got got[FIELDS];
 *
 *	if (noh_json_read(text, len, fields, FIELDS, got) != NOH_OK)
 *		return NOH_EINVAL;                     noh_why() names the field and what it must be
 *	add(got[BY].n, got[HIGH].given ? got[HIGH].n : INT64_MAX);
 *
 * Strict: RFC 8259 and nothing beside it. UTF-8 without faults and without lone surrogates; no name twice in one
 * object, however it is escaped; no NUL in a name; at most NOH_JSON_DEPTH deep. Integers are 64 bits and exact; a number
 * with a fraction or an exponent is none. Text that is passed on is passed on as it came, to the last digit.
 *
 * Threads     any. Keeps nothing.
 */
#ifndef NOH_JSON_H
#define NOH_JSON_H

#include "noh.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NOH_JSON_DEPTH 32

typedef enum {
	NOH_JSON_NULL, NOH_JSON_BOOL, NOH_JSON_NUMBER, NOH_JSON_STRING, NOH_JSON_ARRAY, NOH_JSON_OBJECT,
	NOH_JSON_INT,              /* of a field: a number that is a 64-bit integer                         */
	NOH_JSON_TIME              /* of a field: a string, RFC 3339: "2026-01-31T23:59:59.250Z"             */
} noh_json_type;

/* One value: a piece of a text that was checked, without the white space around it. */
typedef struct noh_json {
	const char *at;
	size_t      len;
} noh_json;

/* ── reading ─────────────────────────────────────────────────────────────────────────────────── */

/* Is this one value, and nothing but white space around it? NOH_OK; NOH_EINVAL: noh_why() says what is wrong and at
 * which byte; NOH_ENOMEM: for the names of a large object some memory is needed, at most twice the text's. All else
 * here is for what was checked. */
NOH_API int noh_json_check(const char *text, size_t len, noh_json *value);

NOH_API noh_json_type noh_json_type_of(noh_json value);           /* never INT or TIME                       */
NOH_API bool noh_json_int(noh_json value, int64_t *n);            /* false: not an integer, or beyond 64 bits */
NOH_API bool noh_json_time(noh_json value, int64_t *ms);          /* since 1970; false: not RFC 3339          */

/* A string's text in UTF-8, with a NUL at the end if there is room. Returns its length; it is cut if that is not less
 * than room. */
NOH_API size_t noh_json_text(noh_json value, char *to, size_t room);
NOH_API bool noh_json_is(noh_json value, const char *text);       /* a string that says this                 */

/* The members of an object, the items of an array (name may be NULL): *walk is { 0 } at first. */
typedef struct noh_json_walk { const char *at; } noh_json_walk;
NOH_API bool noh_json_next(noh_json of, noh_json_walk *walk, noh_json *name, noh_json *value);

/* An object with these fields and no others, each of its type and within its range. What is not there, or null, is
 * preset (INT, BOOL) or not given. */
typedef struct noh_json_field {
	const char   *name;
	noh_json_type type;              /* BOOL, INT, TIME, STRING, OBJECT; NULL: any               */
	bool          required;
	int64_t       least, most;       /* INT: the number. STRING: bytes; 0, 0: any                */
	int64_t       preset;
} noh_json_field;
typedef struct noh_json_got {
	bool     given;
	int64_t  n;                      /* INT, BOOL; TIME: milliseconds since 1970                 */
	noh_json value;                  /* if given                                                 */
} noh_json_got;

/* NOH_OK; NOH_EINVAL: noh_why() says which field and what it must be; or as noh_json_check. Text that is not JSON at
 * all is told apart by noh_json_check: call that first where it matters. */
NOH_API int noh_json_read(const char *text, size_t len, const noh_json_field *fields, size_t count, noh_json_got *got);

/* ── writing ─────────────────────────────────────────────────────────────────────────────────────
 * Appends to at[0 .. room); beyond that it only counts: len > room means that it was cut. Commas are set where they
 * belong. Names are C strings of yours. */
typedef struct noh_json_out {
	char  *at;
	size_t room, len;
	bool   comma;                    /* the next value needs one                                 */
} noh_json_out;

NOH_API void noh_json_open(noh_json_out *o, const char *name, char bracket);     /* '{' or '['; name NULL: none */
NOH_API void noh_json_close(noh_json_out *o, char bracket);                      /* '}' or ']'                  */
NOH_API void noh_json_put_int(noh_json_out *o, const char *name, int64_t n);
NOH_API void noh_json_put_uint(noh_json_out *o, const char *name, uint64_t n);
NOH_API void noh_json_put_bool(noh_json_out *o, const char *name, bool yes);
NOH_API void noh_json_put_null(noh_json_out *o, const char *name);
/* What is not UTF-8 in it becomes U+FFFD. */
NOH_API void noh_json_put_text(noh_json_out *o, const char *name, const char *text, size_t len);
/* UTC, milliseconds; null if it is before the year 1 or beyond 9999. */
NOH_API void noh_json_put_time(noh_json_out *o, const char *name, int64_t ms);
NOH_API void noh_json_put_raw(noh_json_out *o, const char *name, const char *json, size_t len);
NOH_API void noh_json_put_base64(noh_json_out *o, const char *name, const void *bytes, size_t len);

#ifdef __cplusplus
}
#endif
#endif
