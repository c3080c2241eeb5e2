/* tools/data.h - the verbs that care for a data directory. Each returns the exit code.
 *
 * Owns     nothing.   Threads  the main thread.
 * Says     what it did and how long it took on stdout; what is wrong in one sentence on stderr.
 */
#ifndef NOH_TOOLS_DATA_H
#define NOH_TOOLS_DATA_H

#include "noh.h"

int inspect_main(int argc, char **argv);
int verify_main(int argc, char **argv);
int check_main(int argc, char **argv);
int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);
int compact_main(int argc, char **argv);

/* ── what they share ── */

struct data_words {
	const char *plain[2];    /* DIR and what comes after it     */
	int         count;
	bool        json, list;  /* --json; --list: inspect only    */
	const char *type;        /* --type: inspect only            */
	uint64_t    limit;       /* --limit: inspect only; 0: none  */
};

struct data_verb {
	const char *name;                    /* in verbs_table.c                  */
	int         least, most;             /* plain words                       */
	bool        json, lists;             /* which options it takes            */
};

/* True: go on. False: *code is the exit code. */
bool data_words(struct data_words *w, const struct data_verb *verb, int argc, char **argv, int *code);
int  data_failed(const char *verb, int rc);                /* says noh_why; the exit code     */
noh_progress_fn data_progress;                             /* a bar, if stderr is a terminal  */
void data_progress_end(void);

#endif
