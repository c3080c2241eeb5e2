/* sched/directory.c - open addressing, line by line, removed places kept until the next growth.
 *
 * A -> B  a cell is complete (born, body, hash) before its entry is seen.
 * C -> D  a grown array is filled before it is shown; readers of the old one see the same cells,
 *         and it is freed only after every epoch section that could have seen it (ck_epoch).
 * The entry holds 32 bits of the hash: they place it, so growing reads no cell, and a walk looks at
 * other actors' cells about never. A removed place may be filled again: nobody can tell.
 */
#include "sched/directory.h"

#include "core/mem.h"
#include "core/must.h"
#include "core/spin.h"


#define FIRST_SLOTS 8
#define SMALL_SLOTS 512                 /* up to 4 KiB a table grows fourfold */

/* What an array of so many entries counts. The first of a table is one line, and stays for good: all of them together
 * are as little as the tables, and no reason to send anybody home. */
static size_t array_bytes(uint64_t slots)
{
	return slots > FIRST_SLOTS ? slots * sizeof(atomic_u64) : 0;
}

static uint32_t array_class(uint64_t slots)
{
	return (uint32_t)__builtin_ctzll(slots / DIRECTORY_LINE);
}

/* An array that was outgrown, until nobody can be reading it. */
struct retired {
	ck_epoch_entry_t  entry;
	struct directory *directory;
	atomic_u64       *entries;
	uint64_t          slots;
};

static void retired_free(ck_epoch_entry_t *e)
{
	struct retired *r = (struct retired *)e;

	buddy_give(&r->directory->arrays, r->entries, array_class(r->slots));
	mem_free(r, sizeof *r);
}

/* Address space for eight entries per cell: more than an array just grown and the one it grew out of
 * take together. */
bool directory_open(struct directory *d, uint64_t most)
{
	size_t tables = RING_HASH_PARTITIONS * sizeof *d->tables;

	if (!buddy_open(&d->arrays, tables * 4 + most * 8 * sizeof(atomic_u64)))
		return false;
	d->tables = mem_aligned(CACHE_LINE, tables);
	return d->tables != NULL;
}

void directory_close(struct directory *d)
{
	mem_free(d->tables, RING_HASH_PARTITIONS * sizeof *d->tables);
	d->tables = NULL;
	buddy_close(&d->arrays);
}

void directory_lock_busy(struct directory_table *t)
{
	spin_lock(&t->writer);
}

/* The first place for e that nobody has. Most often it is the first of all. */
static inline atomic_u64 *place_for(atomic_u64 *entries, uint64_t mask, uint64_t e)
{
	atomic_u64 *at = &entries[(e >> 32) & mask];

	for (uint64_t i = 1; __builtin_expect(load_relaxed(at) > DIRECTORY_REMOVED, 0); i++)
		at = &entries[directory_place(e, i, mask)];
	return at;
}

/* How many places a table needs. The addresses are spread evenly, so all tables grow at about the same time, and
 * moving the entries is then a good part of what a new actor costs. A small one takes two steps at once: a third of
 * the moves, for at most 8 MB in all. */
static uint64_t slots_for(uint64_t now, uint64_t live)
{
	uint64_t slots = FIRST_SLOTS;

	while (slots * 5 < live * 8)
		slots *= 2;
	return now && slots > now && slots < SMALL_SLOTS ? slots * 2 : slots;
}

/* A fresh array with the living entries of the old one. */
static bool rebuild(struct directory *d, struct directory_table *t, ck_epoch_record_t *epoch)
{
	uint64_t        word = load_relaxed(&t->array);
	atomic_u64     *old = directory_entries(word), *entries;
	uint64_t        slots = slots_for(old ? directory_mask(word) + 1 : 0, (uint64_t)t->live + 1);
	struct retired *r = old ? mem_alloc(sizeof *r) : NULL;

	entries = old && !r ? NULL : buddy_take(&d->arrays, array_class(slots));
	if (!entries) {
		mem_free(r, sizeof *r);
		return false;
	}
	/* Both are cold: ask for all of it at once. */
	for (uint64_t i = 0; old && i <= directory_mask(word); i += DIRECTORY_LINE)
		__builtin_prefetch(&old[i]);
	for (uint64_t i = 0; i < slots; i += DIRECTORY_LINE)
		__builtin_prefetch(&entries[i], 1);
	for (uint64_t i = 0; old && i <= directory_mask(word); i++) {
		uint64_t e = load_relaxed(&old[i]);

		if (e > DIRECTORY_REMOVED)
			store_relaxed(place_for(entries, slots - 1, e), e);
	}
	store_release(&t->array, (uint64_t)(uintptr_t)entries | (uint64_t)__builtin_ctzll(slots)); /* C */
	t->left = (uint32_t)(slots / 4 * 3) - t->live;         /* removed ones are in the way until the next growth */
	add_relaxed(&d->bytes, array_bytes(slots));
	if (old) {
		sub_relaxed(&d->bytes, array_bytes(directory_mask(word) + 1));
		*r = (struct retired){ .directory = d, .entries = old, .slots = directory_mask(word) + 1 };
		epoch_defer(epoch, &r->entry, retired_free);
	}
	return true;
}

bool directory_insert(struct directory *d, struct directory_table *t, uint64_t hash,
		      uint32_t cell, ck_epoch_record_t *epoch)
{
	uint64_t word = load_relaxed(&t->array);

	if (__builtin_expect(t->left == 0, 0)) {
		if (!rebuild(d, t, epoch))
			return false;
		word = load_relaxed(&t->array);
	}
	store_release(place_for(directory_entries(word), directory_mask(word), directory_tag(hash)),
		      directory_tag(hash) | cell);                                 /* A */
	store_release(&t->changes, load_relaxed(&t->changes) + 1);
	t->left--;
	t->live++;
	return true;
}

static atomic_u64 *find_entry(struct directory_table *t, uint64_t hash, uint32_t cell)
{
	uint64_t    word = load_relaxed(&t->array), want = directory_tag(hash) | cell;
	atomic_u64 *entries = directory_entries(word);

	for (uint64_t i = 0; entries && i <= directory_mask(word); i++) {
		atomic_u64 *at = &entries[directory_place(want, i, directory_mask(word))];
		uint64_t    e = load_relaxed(at);

		if (e == want)
			return at;
		if (e == 0)
			break;
	}
	return NULL;
}

void directory_replace(struct directory_table *t, uint64_t hash, uint32_t old, uint32_t cell)
{
	atomic_u64 *e = find_entry(t, hash, old);

	must(e != NULL);
	store_release(e, directory_tag(hash) | cell);                              /* A */
	store_release(&t->changes, load_relaxed(&t->changes) + 1);
}

bool directory_remove(struct directory_table *t, uint64_t hash, uint32_t cell)
{
	atomic_u64 *e = find_entry(t, hash, cell);

	if (!e)
		return false;
	store_release(e, DIRECTORY_REMOVED);
	t->live--;
	return true;
}
