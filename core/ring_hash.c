/* core/ring_hash.c - a hash ring, flattened into a table.
 *
 * Every core throws POINTS points onto the ring of 64-bit hashes. A partition is an arc of the ring
 * and belongs to the first point at or after its start: the smallest point within the arc, or, of
 * an arc without points, whoever owns the next one. So the ring need not be sorted or kept: one
 * pass finds the smallest point of every arc, another one, backwards, fills the gaps. A new core
 * only adds points, and can only take arcs, never hand one to an old core.
 */
#include "core/ring_hash.h"

#include "core/must.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define POINTS 512               /* per core; more balance better and cost time at the start */

static uint64_t point(uint32_t core, uint32_t nth)
{
	uint64_t name = (uint64_t)core << 32 | nth;
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(name >> 8 * i);
	return XXH3_64bits(bytes, sizeof bytes);
}

void ring_hash_init(struct ring_hash *r, unsigned cores)
{
	uint64_t least[RING_HASH_PARTITIONS];

	must(cores >= 1 && cores <= UINT16_MAX);
	for (uint32_t p = 0; p < RING_HASH_PARTITIONS; p++)
		least[p] = UINT64_MAX;
	uint16_t next = 0;
	uint64_t first = UINT64_MAX;

	for (uint32_t core = 0; core < cores; core++) {
		for (uint32_t nth = 0; nth < POINTS; nth++) {
			uint64_t at = point(core, nth);
			uint32_t p = ring_hash_partition(at);

			if (at < least[p]) {
				least[p] = at;
				r->owner[p] = (uint16_t)core;
			}
			if (at < first) {
				first = at;
				next = (uint16_t)core;
			}
		}
	}
	/* Backwards from the top, where the ring closes at its very first point. */
	for (uint32_t p = RING_HASH_PARTITIONS; p-- > 0; ) {
		if (least[p] == UINT64_MAX)
			r->owner[p] = next;
		next = r->owner[p];
	}
}
