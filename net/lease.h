/* net/lease.h - who may touch a worker's connections (lend.h): one word.
 *
 *     worker   about to sleep: A  OURS -> FREE    awake: B  FREE -> OURS, trying again while it is LENT
 *     other    C  FREE -> LENT                    D  LENT -> FREE
 *
 * A -> C, D -> B, D -> C  hand on connections, lists and counters. With any of them relaxed the next one could see
 *         half of what the last one did.
 *
 * Owns     nothing.   Threads  lease_offer, lease_back: the worker.  lease_take, lease_return: any other.
 */
#ifndef NOH_NET_LEASE_H
#define NOH_NET_LEASE_H

#include "core/atomic.h"

enum { LEASE_OURS, LEASE_FREE, LEASE_LENT };

static inline void lease_offer(atomic_u32 *lease)
{
	store_release(lease, (uint32_t)LEASE_FREE);                         /* A */
}

/* False: somebody has it, and gives it back soon. */
static inline bool lease_back(atomic_u32 *lease)
{
	uint32_t free = LEASE_FREE;

	return cas_acquire(lease, &free, (uint32_t)LEASE_OURS);             /* B */
}

static inline bool lease_take(atomic_u32 *lease)
{
	uint32_t free = LEASE_FREE;

	return load_relaxed(lease) == LEASE_FREE && cas_acquire(lease, &free, (uint32_t)LEASE_LENT);   /* C */
}

static inline void lease_return(atomic_u32 *lease)
{
	store_release(lease, (uint32_t)LEASE_FREE);                         /* D */
}

#endif
