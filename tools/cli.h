/* tools/cli.h - the few things every verb of the command line needs.
 *
 * Owns     nothing.
 * Threads  any; cli_text results live in the caller's buffer.
 * Never    exits: a verb returns its exit code (0 fine, 1 failure, 2 usage, 3 not found, 4 no
 *          answer in time, 75 try again later).
 */
#ifndef NOH_TOOLS_CLI_H
#define NOH_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_FINE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NOT_FOUND = 3, CLI_TIMEOUT = 4, CLI_TEMPORARY = 75 };

/* The exit code of what noh.h refuses: what time or somebody else may mend is worth another try. */
int cli_exit_of(int rc);

/* One piece of the command line: "--name value", "--name=value", or a plain word. */
struct cli_args {
	int    count, at;
	char **words;
	const char *name;     /* of the option, without the dashes; NULL: a plain word */
	const char *value;    /* after the '=', or the plain word; NULL: none yet      */
};

bool cli_next(struct cli_args *args);              /* false: the end                       */
const char *cli_value(struct cli_args *args);      /* the option's value, or NULL          */

/* "250", "10k", "1.5M", "2G" -> number. False if it is none, or outside of min..max. */
bool cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/* The candidate a mistyped word most likely meant, or NULL if none is near. */
const char *cli_nearest(const char *word, const char *const *candidates, size_t count);

/* Numbers for people. Each writes into buf and returns it. */
const char *cli_rate(char *buf, size_t size, double per_second);     /* "52.1 M"     */
const char *cli_time(char *buf, size_t size, double ns);             /* "3.2 ms"     */
const char *cli_count(char *buf, size_t size, uint64_t number);      /* "1 000 000"  */
const char *cli_bytes(char *buf, size_t size, uint64_t bytes);       /* "32.0 MiB"   */

/* A JSON string to stdout, quotes included; bytes that are no printable ASCII become \u00XX. */
void cli_json_text(const void *text, size_t len);

uint64_t cli_now_ns(void);                         /* CLOCK_MONOTONIC                      */
void     cli_sleep_ns(uint64_t ns);
uint64_t cli_rss_anon(void);                       /* bytes of RssAnon; 0 if unknown       */
double   cli_cpu_seconds(void);                    /* of this process, all threads         */

#endif
