/* box/marks.h - where scans of the stored part stopped: a cursor has 64 bits, an address up to 255 bytes.
 *
 * The last some ten thousand are kept, in memory. A scan whose mark is gone (others have left so many since,
 * or the box was started again) begins its stored part once more: it gives again what it gave, and misses
 * nothing.
 *
 * Owns     the marks.   Threads  any, but for open and close.
 */
#ifndef NOH_BOX_MARKS_H
#define NOH_BOX_MARKS_H

#include "persist/overlay.h"

#define MARKS 16384              /* between this many and twice as many are kept */

struct marks {
	struct overlay places;       /* mark -> address; an entry's due is its generation */
	atomic_u64     count;
	atomic_u32     sweeping;
};

void marks_open(struct marks *m);                        /* in zeroed memory */
void marks_close(struct marks *m);
/* The mark for this address: its hash without the last bit. NOH_OK, NOH_ENOMEM. */
int  marks_set(struct marks *m, const char *address, size_t len, uint64_t hash);
/* NOH_OK with the address, NOH_END: no such mark; NOH_ENOMEM. */
int  marks_get(struct marks *m, uint64_t hash, char *address, size_t *len);

#endif
