/* core/log_text.h - one line of the log, as text or JSON, that nothing said in it can break.
 *
 * Owns     nothing.   Threads  any.
 */
#ifndef NOH_CORE_LOG_TEXT_H
#define NOH_CORE_LOG_TEXT_H

#include "noh.h"

#include <assert.h>

#define LOG_LINE_MAX 4096                /* with its newline: a pipe takes that whole */

enum log_form { LOG_TEXT, LOG_JSON };

/* With a newline; how long it is. wall_ms: since 1970; repeated: how many like it were left out since the last, 0: this
 * is the line itself. */
size_t log_text(char out[LOG_LINE_MAX], const noh_log_line *line, enum log_form form, bool journal, uint64_t wall_ms,
		uint64_t repeated);

/* As it stands in a line: control bytes, what is no UTF-8 and what would turn a terminal's text around are escaped.
 * At most room bytes, no NUL; how many. */
size_t log_escape(char *out, size_t room, const char *text, bool json);

const char *log_level_name(int level);
int log_level_number(const char *name, size_t len);      /* also as Redis calls them; -1: there is none */

#endif
