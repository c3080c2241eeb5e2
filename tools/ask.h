/* tools/ask.h - verbs that ask a running server over HTTP, and what they share.
 *
 * Owns     nothing between calls.   Threads  the main thread.
 * Says     answers on stdout: for people, or (--json) the server's bytes as they came; what is wrong in one sentence on
 *          stderr, with --json also the server's problem on stdout.
 */
#ifndef NOH_TOOLS_ASK_H
#define NOH_TOOLS_ASK_H

#include "noh_json.h"
#include "tools/client.h"
#include "tools/words.h"


int send_main(int argc, char **argv);
int invoke_main(int argc, char **argv);
int status_main(int argc, char **argv);
int list_main(int argc, char **argv);
int activate_main(int argc, char **argv);
int deactivate_main(int argc, char **argv);
int pool_main(int argc, char **argv);
int schedule_main(int argc, char **argv);          /* ask_schedule.c */
int dead_main(int argc, char **argv);              /* ask_dead.c     */
int drain_main(int argc, char **argv);             /* ask_drain.c    */
int events_main(int argc, char **argv);            /* ask_events.c   */
int wait_main(int argc, char **argv);              /* ask_wait.c     */
int describe_main(int argc, char **argv);          /* ask_tell.c     */
int tree_main(int argc, char **argv);
int quarantine_main(int argc, char **argv);

/* ── what they share: ask.c ── */

/* The server that the words mean, and how long to wait. False: *code, and a sentence was said. */
bool ask_open(struct client *c, const struct words *w, int *code);
bool ask_find(struct client *c, const struct words *w, char *why, size_t size);      /* the same, said to the caller */

/* What a server said: one JSON object. */
struct answer {
	char    *text;                     /* NULL: nothing                                        */
	noh_json json;
};
void answer_free(struct answer *a);

/* POST body to path. CLI_FINE with *answer if the server says 2xx and with JSON; --json has printed it then. Else the exit
 * code that fits, and a sentence was said. */
int ask(const struct client *c, const struct words *w, const char *path, const char *headers, const char *body,
	struct answer *answer);

/* The same by GET. */
int ask_get(const struct client *c, const struct words *w, const char *path, struct answer *answer);

/* Another answer than 2xx, said to the user; the exit code that fits. */
int ask_refused(const struct client *c, const struct words *w, const struct client_reply *r);
int ask_result(enum client_result result);         /* the exit code of one that is not CLIENT_OK */

/* "?name=value" or "&name=value" behind the path, escaped; value NULL: not said. False: no room, said so. */
enum { ASK_PATH = 2048 };
bool ask_query(const struct words *w, char path[ASK_PATH], const char *name, const char *value);

/* A request's body: begin, put, end. What is no UTF-8 or too long makes the end NULL, and said so. */
struct ask_body {
	char         text[16384];
	noh_json_out out;
	bool         bad;
};
void ask_begin(struct ask_body *b);
void ask_put(struct ask_body *b, const char *name, const char *text);     /* text NULL: not said */
const char *ask_end(struct ask_body *b, const struct words *w);

/* --json: what came was printed already, byte for byte. */
static inline bool ask_printed(const struct words *w)
{
	return words_flag(w, "json");
}

/* The exit code for a status of HTTP. */
int ask_code(int status);

/* Fields of an object, whatever a server put there. "" / 0 / false: not there, or of another type. Text is fit for a
 * terminal: control characters become '?'; in buf, which it returns. */
noh_json    ask_member(noh_json object, const char *name);          /* len 0: there is none */
const char *ask_text(noh_json object, const char *name, char *buf, size_t size);
long long   ask_number(noh_json object, const char *name);
void        ask_print_event(noh_json event);                        /* one line */
bool        ask_bool(noh_json object, const char *name);
size_t      ask_items(noh_json array);                              /* how many             */
const char *ask_shown(char *buf, size_t size, const char *text);

/* limit and cursor from the words, into a body that was begun. False: wrong, said so. */
bool ask_page(struct ask_body *b, const struct words *w);
void ask_more(const struct words *w, noh_json answer);              /* "there are more: ..." if there is a next_cursor */

#endif
