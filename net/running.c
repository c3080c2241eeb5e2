/* net/running.c - see running.h.
 *
 * Two requests with one key at the same instant try the same places in the same order: the first free one is taken by
 * one of them, and the other, whose compare-and-swap fails, sees the hash there. One that ends meanwhile may free an
 * earlier place between the two looks: then both are under way, and the actor's mailbox puts them in order.
 */
#include "net/running.h"

#include "core/mem.h"

#include <xxhash.h>

bool running_open(struct running *r)
{
	r->places = mem_zalloc(RUNNING_PLACES * sizeof *r->places);
	return r->places != NULL;
}

void running_close(struct running *r)
{
	mem_free(r->places, RUNNING_PLACES * sizeof *r->places);
	r->places = NULL;
}

bool running_begin(struct running *r, const void *address, size_t address_len, const void *key, size_t key_len,
		   uint32_t *place)
{
	uint64_t hash = XXH3_64bits_withSeed(key, key_len, XXH3_64bits(address, address_len)) | 1;

	*place = 0;
	for (uint32_t i = 0; r->places && i < RUNNING_REACH; i++) {
		uint32_t at = ((uint32_t)(hash >> 32) + i) & (RUNNING_PLACES - 1);
		uint64_t there = load_acquire(&r->places[at]);

		if (there == 0 && cas_acq_rel(&r->places[at], &there, hash)) {
			*place = at + 1;
			return true;
		}
		if (there == hash)
			return false;
	}
	return true;
}

void running_end(struct running *r, uint32_t place)
{
	if (place)
		store_release(&r->places[place - 1], 0);
}
