/* core/note.h - what is being run, in memory that outlives the process (P11).
 *
 * A page per worker in a file of the data directory, mapped: whatever is written there before a crash is
 * there after it. After a restart the box knows whose turn it was, and a message that ends the process
 * again and again is set aside instead of being run once more.
 *
 * Owns     nothing.   Threads  a note is its worker's; the list of crashes is read by all workers, and
 *          only `times` and `blamed` of an entry change.
 */
#ifndef NOH_CORE_NOTE_H
#define NOH_CORE_NOTE_H

#include "core/atomic.h"

#include <assert.h>

struct note {
	atomic_u32 busy;             /* user code runs                                           */
	uint32_t   kind;
	uint64_t   hash;             /* of the actor's address                                   */
	uint64_t   print;            /* of the message: its name, or a hash of kind and body; 0: several */
	uint32_t   version;          /* of the actor's type                                      */
	uint32_t   address_len;
	char       address[256];
	char       pad[224];
};
static_assert(sizeof(struct note) == 512, "eight to a page");

#define CRASHES_MAX 64
#define CRASHES_ENOUGH 3             /* then the message is set aside                            */

struct crash {
	uint64_t   hash, print;
	atomic_u32 times;            /* 0: over                                                  */
	uint32_t   kind;
	atomic_u32 blamed;           /* its actor knows that the last of them was its failure (supervise.h) */
};

struct crash_list {
	uint32_t     count;
	struct crash list[CRASHES_MAX];
};

#endif
