/* tools/verbs.h - every verb of the command line, once: the table behind help, completion and manual pages.
 *
 * A verb's words are read by the same table (words.h), so what is documented is what is understood.
 *
 * Owns     nothing: the table is constant.
 * Threads  any.
 */
#ifndef NOH_TOOLS_VERBS_H
#define NOH_TOOLS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct verb_option {
	const char *name;                  /* without the dashes                                    */
	const char *value;                 /* as the help calls it; NULL: it takes none             */
	const char *help;
};

struct verb_action {                       /* noh dead list                                         */
	const char *name;
	const char *words;                 /* what follows                                          */
	const char *about;
};

struct verb {
	const char *group;                 /* of this and those after it; NULL: as before           */
	const char *name, *about;
	int       (*main)(int argc, char **argv);      /* returns the exit code                     */
	const char *words;                 /* what follows the name                                 */
	const struct verb_action *actions; /* NULL: none; ended by a name that is NULL              */
	const struct verb_option *options; /* NULL: none; ended by a name that is NULL              */
	bool        remote;                /* talks to a running server: verbs_remote come on top   */
	bool        settings;              /* takes every option of noh serve                       */
	const char *text;                  /* paragraphs, without the last newline                  */
	const char *examples;              /* lines, each "  noh ..."                               */
	const char *exits;                 /* NULL: the usual ones                                  */
	void      (*more)(void);           /* prints what the table cannot know; may be NULL        */
};
extern const struct verb verbs[];          /* ended by a name that is NULL                          */
extern const struct verb_option verbs_remote[];

const struct verb *verb_find(const char *name);                    /* NULL: there is none */
const char *verb_nearest(const char *name);                        /* NULL: none is near  */

/* ── verbs_print.c ── */
void verbs_overview(void);
int  verb_help(const char *name);          /* of one that is in the table; the exit code: 0 */
void verbs_man(void);                      /* noh(1), for all of them                       */
int  verbs_run(int argc, char **argv);      /* argv[1] is the verb; the exit code            */

int help_main(int argc, char **argv);
int version_main(int argc, char **argv);
int completion_main(int argc, char **argv);        /* verbs_complete.c */

#endif
