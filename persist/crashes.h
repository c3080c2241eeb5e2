/* persist/crashes.h - the notes of the last run, and what they add up to.
 *
 *     DIR/running    a struct note per worker, mapped
 *     DIR/crashes    text: which message of which actor was running when the process ended, how often
 *
 * Owns     both files.   Threads  open and close: one. The notes: each its worker's.
 */
#ifndef NOH_PERSIST_CRASHES_H
#define NOH_PERSIST_CRASHES_H

#include "core/note.h"

#include <stddef.h>

/* Whose turn it was when the last run ended. */
struct crash_found {
	struct crash *entry;             /* of the list; NULL: that is full                      */
	uint32_t      kind, times;       /* kind UINT32_MAX: a hook                              */
	uint32_t      address_len;
	char          address[256];
};

struct crashes {
	char              path[4096];    /* of the directory                                     */
	struct note      *notes;         /* one per worker                                       */
	uint32_t          workers;
	size_t            bytes;         /* mapped                                               */
	struct crash_list seen;
	struct crash_found found[CRASHES_MAX];
	uint32_t          found_count;
};

/* Counts what the last run left, tells found() of each (how often so far), writes the list, and starts
 * with clean notes. NOH_OK, NOH_EDISK. */
typedef void crashes_found_fn(void *arg, const struct note *note, uint32_t times);
int  crashes_open(struct crashes *c, const char *dir, uint32_t workers, crashes_found_fn *found,
		  void *arg);
void crashes_close(struct crashes *c);       /* a clean end: nobody was running */

#endif
