/* core/json.h - noh_json.h, and what its parts share: json_check.c (is it JSON?), json_read.c, json_write.c.
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_CORE_JSON_H
#define NOH_CORE_JSON_H

#include "noh_json.h"

/* Of a checked string, between its quotes: the next character, escapes undone; *at moves behind it. */
uint32_t json_next_char(const char **at);

/* noh_json_read of what was checked before. */
int json_fields(noh_json whole, const noh_json_field *fields, size_t count, noh_json_got *got);

#define TIME_TEXT 25       /* "2026-01-31T23:59:59.250Z" and a NUL */

/* False: not within the years 1 to 9999. */
bool json_time_text(int64_t ms, char text[TIME_TEXT]);

#endif
