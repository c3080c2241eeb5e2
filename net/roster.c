/* net/roster.c - the actors that one command names, each once. */
#include "net/command_counter.h"

#include "core/mem.h"

#include <string.h>
#include <xxhash.h>

bool roster_open(struct call *c, struct roster *roster, uint32_t most)
{
	uint32_t slots = 16;

	while (slots < 2 * (uint64_t)most)
		slots *= 2;
	*roster = (struct roster){ .mask = slots - 1 };
	roster->bytes = most * (sizeof *roster->requests + sizeof *roster->bodies) + slots * sizeof *roster->slots;
	roster->memory = mem_zalloc(roster->bytes);
	if (roster->memory == NULL) {
		out_status(call_out(c), NOH_ENOMEM);
		return false;
	}
	roster->requests = roster->memory;
	roster->bodies = (void *)(roster->requests + most);
	roster->slots = (void *)(roster->bodies + most);
	return true;
}

/* The caller writes request [number] right after: names are compared with those. The seed is the table's own
 * place, so that a client cannot choose names that all fall into one slot; it shows in nothing but time. */
uint32_t roster_add(struct roster *roster, const struct arg *name)
{
	uint64_t slot = XXH3_64bits_withSeed(name->at, name->len, (uintptr_t)roster->memory);

	for (;; slot++) {
		uint32_t at = roster->slots[slot & roster->mask];

		if (at == 0) {
			roster->slots[slot & roster->mask] = ++roster->count;
			return roster->count - 1;
		}
		const struct request *r = &roster->requests[at - 1];

		if (r->id_len == name->len && memcmp(r->id, name->at, name->len) == 0)
			return at - 1;
	}
}

void roster_close(struct roster *roster)
{
	mem_free(roster->memory, roster->bytes);
}
