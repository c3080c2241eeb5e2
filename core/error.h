/* core/error.h - a code and a sentence.
 *
 * Owns     this thread's last sentence (noh_why). Foreign codes (errno) stop at the file that met
 *          them: return error_set(NOH_ESYSTEM, "mmap %zu bytes: %m", n);
 * Threads  any; the sentence is per thread.
 */
#ifndef NOH_CORE_ERROR_H
#define NOH_CORE_ERROR_H

#include "noh.h"

int error_set(int code, const char *format, ...) NOH_PRINTF(2, 3);   /* returns code */
void error_clear(void);                                              /* no sentence: who has one says it from here on */

#endif
