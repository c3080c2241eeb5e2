/* core/ring_hash.h - which core an address is at home on. The only consistent hashing in noh.
 *
 * A hash belongs to one of 4096 partitions (its top 12 bits); each partition has one owner, found
 * on a ring of many points per core. With more cores, partitions move to the new ones and nowhere
 * else; the answer depends on the hash and the number of cores alone, never on the machine.
 *
 * Owns     the table partition -> core.
 * Threads  ring_hash_owner: any.  ring_hash_init: before sharing.
 * Never    allocates, or fails.
 */
#ifndef NOH_CORE_RING_HASH_H
#define NOH_CORE_RING_HASH_H

#include <stdint.h>

#define RING_HASH_BITS 12
#define RING_HASH_PARTITIONS (1u << RING_HASH_BITS)

struct ring_hash {
	uint16_t owner[RING_HASH_PARTITIONS];
};

/* cores: 1 to 65535. */
void ring_hash_init(struct ring_hash *r, unsigned cores);

static inline uint32_t ring_hash_partition(uint64_t hash)
{
	return (uint32_t)(hash >> (64 - RING_HASH_BITS));
}

static inline uint16_t ring_hash_owner(const struct ring_hash *r, uint64_t hash)
{
	return r->owner[ring_hash_partition(hash)];
}

#endif
