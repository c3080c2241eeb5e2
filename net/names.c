/* net/names.c - the actors that one command names, each once. */
#include "net/command_counter.h"

#include "core/mem.h"

#include <string.h>
#include <xxhash.h>

bool names_open(struct call *c, struct names *names, uint32_t most)
{
	uint32_t slots = 16;

	while (slots < 2 * (uint64_t)most)
		slots *= 2;
	*names = (struct names){ .mask = slots - 1 };
	names->bytes = most * (sizeof *names->requests + sizeof *names->bodies) + slots * sizeof *names->slots;
	names->memory = mem_zalloc(names->bytes);
	if (names->memory == NULL) {
		out_status(call_out(c), NOH_ENOMEM);
		return false;
	}
	names->requests = names->memory;
	names->bodies = (void *)(names->requests + most);
	names->slots = (void *)(names->bodies + most);
	return true;
}

/* The caller writes request [number] right after: names are compared with those. The seed is the table's own
 * place, so that a client cannot choose names that all fall into one slot; it shows in nothing but time. */
uint32_t names_add(struct names *names, const struct arg *name)
{
	uint64_t slot = XXH3_64bits_withSeed(name->at, name->len, (uintptr_t)names->memory);

	for (;; slot++) {
		uint32_t at = names->slots[slot & names->mask];

		if (at == 0) {
			names->slots[slot & names->mask] = ++names->count;
			return names->count - 1;
		}
		const struct request *r = &names->requests[at - 1];

		if (r->id_len == name->len && memcmp(r->id, name->at, name->len) == 0)
			return at - 1;
	}
}

void names_close(struct names *names)
{
	mem_free(names->memory, names->bytes);
}
