/* tools/ask.h - verbs that ask a running server over HTTP, and what they share.
 *
 * Owns     nothing between calls.   Threads  the main thread.
 * Says     answers on stdout: for people, or (--json) the server's bytes as they came; what is wrong in one sentence on
 *          stderr, with --json also the server's problem on stdout.
 */
#ifndef NOH_TOOLS_ASK_H
#define NOH_TOOLS_ASK_H

#include "tools/client.h"
#include "tools/words.h"

#include <jansson.h>

int send_main(int argc, char **argv);
int invoke_main(int argc, char **argv);
int status_main(int argc, char **argv);
int list_main(int argc, char **argv);
int activate_main(int argc, char **argv);
int deactivate_main(int argc, char **argv);
int pool_main(int argc, char **argv);
int schedule_main(int argc, char **argv);          /* ask_schedule.c */
int dead_main(int argc, char **argv);              /* ask_dead.c     */

/* ── what they share: ask.c ── */

/* The server that the words mean, and how long to wait. False: *code, and a sentence was said. */
bool ask_open(struct client *c, const struct words *w, int *code);
bool ask_find(struct client *c, const struct words *w, char *why, size_t size);      /* the same, said to the caller */

/* POST body to path. CLI_FINE with *answer (json_decref it) if the server says 2xx and with JSON. Else the exit code that
 * fits, and a sentence was said. body is released. */
int ask(const struct client *c, const struct words *w, const char *path, const char *headers, json_t *body, json_t **answer);
int ask_raw(const struct client *c, const struct words *w, const char *path, const char *headers, const char *body,
	    json_t **answer);

/* --json: what came was printed already, byte for byte. */
static inline bool ask_printed(const struct words *w)
{
	return words_flag(w, "json");
}

/* The exit code for a status of HTTP. */
int ask_code(int status);

/* Fields of an object, whatever a server put there. "" / 0 / false: not there, or of another type. */
const char *ask_text(const json_t *object, const char *name);
long long   ask_number(const json_t *object, const char *name);
bool        ask_bool(const json_t *object, const char *name);
/* The same text for a terminal: control characters become '?'. In buf. */
const char *ask_shown(char *buf, size_t size, const char *text);

/* {"limit":, "cursor":} from the words. NULL: wrong, said so. */
json_t *ask_page(const struct words *w);
void    ask_more(const struct words *w, const json_t *answer);    /* "more: ..." if there is a next_cursor */

#endif
