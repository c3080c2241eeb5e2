/* core/glob.h - does a text match a pattern, as Redis writes patterns?
 *
 *     *        any bytes, also none            [abc]    one of these       \x    x itself
 *     ?        one byte                        [a-z]    one from a to z    else  the byte itself
 *                                              [^a-z]   one that is not
 *
 * Any bytes are a pattern: a set that is not closed ends with the pattern, a backslash at the end is itself,
 * a range may be written backwards.
 *
 * Owns     nothing.   Threads  any.
 * Never    takes more than length of pattern times length of text, calls itself, or allocates.
 */
#ifndef NOH_CORE_GLOB_H
#define NOH_CORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len);
/* The same, and a letter is one with its capital. */
bool glob_match_any_case(const char *pattern, size_t pattern_len, const char *text, size_t len);

/* How many bytes of the pattern stand for themselves, before anything that does not: what matches begins
 * with them. All of it: it matches itself alone. */
size_t glob_plain(const char *pattern, size_t pattern_len);

#endif
