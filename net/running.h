/* net/running.h - idempotency keys whose requests are under way, of all workers: whoever sends one of them again
 * meanwhile is told so, and not kept waiting.
 *
 * A table of hashes of fixed size. An entry that finds no place is not watched: then the second request waits in its
 * actor's mailbox behind the first, and gets the stored answer. So it is a courtesy; what keeps a request from being
 * handled twice is the actor's record.
 *
 * Owns     the table.   Threads  any.
 */
#ifndef NOH_NET_RUNNING_H
#define NOH_NET_RUNNING_H

#include "core/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNNING_PLACES 8192                /* a power of two */
#define RUNNING_REACH 16                   /* places that are tried */

struct running {
	atomic_u64 *places;                /* 0: free; NULL: nothing is watched */
};

/* False: no memory; then nothing is watched. */
bool running_open(struct running *r);
void running_close(struct running *r);

/* False: this one is under way. *place: for running_end; 0: not watched. */
bool running_begin(struct running *r, const void *address, size_t address_len, const void *key, size_t key_len,
		   uint32_t *place);
void running_end(struct running *r, uint32_t place);

#endif
