#include "box/marks.h"

#include "core/mem.h"
#include "noh.h"

#include <string.h>

void marks_open(struct marks *m)
{
	overlay_open(&m->places, 0);
}

void marks_close(struct marks *m)
{
	overlay_close(&m->places);
}

static uint64_t key_of(uint64_t hash)
{
	return hash & ~UINT64_C(1);
}

/* A generation is MARKS marks; the one before the last goes. */
static void forget_old(struct marks *m, uint64_t generation)
{
	uint32_t nobody = 0;

	if (generation < 3 || !cas_acquire(&m->sweeping, &nobody, 1))
		return;
	overlay_folded(&m->places, generation - 2);
	store_release(&m->sweeping, 0);
}

int marks_set(struct marks *m, const char *address, size_t len, uint64_t hash)
{
	uint64_t nth = add_relaxed(&m->count, 1), generation = nth / MARKS + 1, key = key_of(hash);
	struct stored in = { .image = (void *)(uintptr_t)address, .len = len, .seq = generation,
			     .due = generation };

	if (nth % MARKS == 0)
		forget_old(m, generation);
	return overlay_put(&m->places, &key, sizeof key, key, &in);
}

int marks_get(struct marks *m, uint64_t hash, char *address, size_t *len)
{
	uint64_t key = key_of(hash);
	struct stored found;
	int rc = overlay_get(&m->places, &key, sizeof key, key, &found);

	if (rc != NOH_OK)
		return rc;
	memcpy(address, found.image, found.len);
	*len = found.len;
	mem_free(found.image, found.len);
	return NOH_OK;
}
