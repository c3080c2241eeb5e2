/* tools/crash.h - a process that dies of its own code says whose it was.
 *
 * Owns     the handlers of SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, from the first call on. They
 *          write noh_crash_report to stderr and let the signal take its course (core file, exit status).
 * Threads  the main thread.
 */
#ifndef NOH_TOOLS_CRASH_H
#define NOH_TOOLS_CRASH_H

#include "noh.h"

void crash_watch(noh_box *box);      /* NULL: the box is closed */

/* For verbs that read files which may be damaged: LMDB answers some kinds of damage with a signal. Then
 * say this instead of a report, and end with CLI_FAILED. The text is kept, not copied. */
void crash_means(const char *text);

#endif
