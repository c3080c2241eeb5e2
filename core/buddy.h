/* core/buddy.h - blocks of 2^k lines, side by side on huge pages; free neighbours become one again.
 *
 * For what grows by doubling, such as the directory's arrays: what the smaller blocks leave behind is
 * what the larger ones are made of, so the range stays about as long as what is in use.
 *
 * Owns     the address range. A block is aligned to its size.
 * Threads  take and give: any, by holding a word for one operation. Both are rare.
 * Never    calls back. Gives nothing back to the system before it is closed.
 */
#ifndef NOH_CORE_BUDDY_H
#define NOH_CORE_BUDDY_H

#include "core/atomic.h"

#include <stdbool.h>
#include <stddef.h>

#define BUDDY_CLASSES 24                /* up to 2^23 lines: 512 MiB */

struct buddy {
	struct {
		char    *base;
		uint8_t *heads;         /* of each line: k + 1 if a free block of 2^k begins here */
		uint32_t lines;
	} fixed;
	atomic_u32 held;
	uint32_t   fresh;               /* guarded by held, as is all below: lines handed out so far */
	uint32_t   free[BUDDY_CLASSES]; /* first line of a free block, plus 1; 0: none               */
};

bool buddy_open(struct buddy *b, size_t bytes);         /* or half of it, or a quarter ...       */
void buddy_close(struct buddy *b);
void *buddy_take(struct buddy *b, uint32_t k);          /* 2^k lines, zeroed; NULL: none left    */
void buddy_give(struct buddy *b, void *block, uint32_t k);

#endif
