/* persist/blocks.h - the large blocks of memory a fold needs, kept for the next one.
 *
 * While much is written a fold follows the other, and memory that goes back to the system has to be cleared, and on a
 * virtual machine found anew, before it is there again: a third of what a fold takes. So blocks stay until somebody says
 * that nothing comes any more: some of them, and no small ones.
 *
 * Owns     the blocks nobody uses.   Threads  the one that folds.
 */
#ifndef NOH_PERSIST_BLOCKS_H
#define NOH_PERSIST_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define BLOCKS_MOST 32
#define BLOCKS_BYTES ((size_t)512 << 20)  /* more than that is not kept; two million records take 300 MB */
#define BLOCKS_LARGE ((size_t)1 << 20)

struct blocks {
	uint32_t count;
	size_t   bytes;
	struct { void *at; size_t bytes; } kept[BLOCKS_MOST];
};

void *blocks_take(struct blocks *b, size_t bytes);             /* NULL: no memory. b may be NULL: none is kept */
void  blocks_give(struct blocks *b, void *at, size_t bytes);   /* bytes: as taken; NULL is fine */
void  blocks_free(struct blocks *b);                           /* all that are kept */

#endif
