/* tools/words.h - the words after a verb, read by its row of the table (verbs.h).
 *
 *	struct words w;
 *	int code;
 *	if (!words_read(&w, "list", argc, argv, &code))
 *		return code;                     help was asked for, or a sentence says what is wrong
 *	... words_text(&w, "type") ...
 *	words_free(&w);
 *
 * Owns     the lists; the words themselves are argv's.
 * Threads  one.
 */
#ifndef NOH_TOOLS_WORDS_H
#define NOH_TOOLS_WORDS_H

#include "tools/settings.h"
#include "tools/verbs.h"

struct words {
	const struct verb *verb;
	const char        *action;         /* NULL: the verb has none                               */
	char               full[64];       /* "dead list": for sentences                            */
	const char       **plain;          /* plain words, in their order                           */
	unsigned           count;
	struct { const char *name, *value; } *given;
	unsigned           given_count;
	struct settings    settings;       /* of a remote verb, or one that takes settings: loaded  */
	bool               has_settings;
	settings_say_fn   *listener;       /* NULL: what is wrong with settings ends it, said on stderr */
	void              *listener_arg;
};

/* False: *code is the exit code, and everything is freed. */
bool words_read(struct words *w, const char *verb, int argc, char **argv, int *code);
/* The same, but what is wrong with settings is told to `say`, and no reason to end. */
bool words_read_all(struct words *w, const char *verb, int argc, char **argv, settings_say_fn *say, void *arg, int *code);
void words_free(struct words *w);

bool        words_flag(const struct words *w, const char *name);
const char *words_text(const struct words *w, const char *name);   /* the last one; NULL: not given */

/* False: it was given and is none of this range; said so. Not given: *number stays. */
bool words_number(const struct words *w, const char *name, uint64_t least, uint64_t most, uint64_t *number);
bool words_duration(const struct words *w, const char *name, uint64_t least_ms, uint64_t most_ms, uint64_t *ms);

/* How many plain words there must be; said so if not. */
bool words_count(const struct words *w, unsigned least, unsigned most, const char *missing);

/* "noh dead list: ..." on stderr; returns CLI_USAGE, or whatever code. */
int words_wrong(const struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
int words_failed(const struct words *w, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* May stdout be coloured? A terminal, no NO_COLOR, no --no-color. */
bool words_color(const struct words *w);

#endif
