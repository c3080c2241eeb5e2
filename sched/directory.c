/* sched/directory.c - open addressing, linear probing, removed places kept until the next growth.
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

#include <sched.h>

#if defined(__SANITIZE_THREAD__)
#define NOH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NOH_TSAN 1
#endif
#endif
#ifdef NOH_TSAN
/* libck's own half of the protocol is not instrumented: tell ThreadSanitizer what it orders. */
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define TSAN_ACQUIRE(p) __tsan_acquire(p)
#define TSAN_RELEASE(p) __tsan_release(p)
#else
#define TSAN_ACQUIRE(p) ((void)(p))
#define TSAN_RELEASE(p) ((void)(p))
#endif

#define REMOVED UINT64_C(1)
#define FIRST_SLOTS 8

static inline uint64_t tag_of(uint64_t hash)
{
	return (hash << RING_HASH_BITS) & UINT64_C(0xffffffff00000000);
}

void epoch_enter(ck_epoch_record_t *r)
{
	ck_epoch_begin(r, NULL);
}

void epoch_leave(ck_epoch_record_t *r)
{
	TSAN_RELEASE(r->global);
	ck_epoch_end(r, NULL);
}

void epoch_defer(ck_epoch_record_t *r, ck_epoch_entry_t *e, epoch_fn *fn)
{
	ck_epoch_call(r, e, fn);
}

void epoch_poll(ck_epoch_record_t *r)
{
	if (r->n_pending) {
		TSAN_ACQUIRE(r->global);
		(void)ck_epoch_poll(r);
	}
}

void epoch_synchronize_all(ck_epoch_record_t *r)
{
	TSAN_ACQUIRE(r->global);
	ck_epoch_barrier(r);
}

static size_t array_bytes(uint64_t slots)
{
	return sizeof(struct directory_array) + slots * sizeof(atomic_u64);
}

static inline struct directory_array *array_of(uint64_t word)
{
	return (struct directory_array *)(uintptr_t)(word & ~UINT64_C(63));
}

static inline uint64_t mask_of(uint64_t word)
{
	return (UINT64_C(1) << (word & 63)) - 1;
}

static void array_free(ck_epoch_entry_t *e)
{
	struct directory_array *a = (struct directory_array *)e;

	mem_free(a, array_bytes(a->mask + 1));
}

bool directory_open(struct directory *d)
{
	d->tables = mem_zalloc(RING_HASH_PARTITIONS * sizeof *d->tables);
	store_relaxed(&d->bytes, RING_HASH_PARTITIONS * sizeof *d->tables);
	return d->tables != NULL;
}

void directory_close(struct directory *d)
{
	for (uint32_t i = 0; d->tables && i < RING_HASH_PARTITIONS; i++) {
		struct directory_array *a = array_of(load_relaxed(&d->tables[i].array));

		if (a)
			mem_free(a, array_bytes(a->mask + 1));
	}
	mem_free(d->tables, RING_HASH_PARTITIONS * sizeof *d->tables);
	d->tables = NULL;
}

void directory_walk(struct directory *d, uint64_t hash, struct directory_walk *w)
{
	uint64_t word = load_acquire(&d->tables[ring_hash_partition(hash)].array); /* D */

	w->array = array_of(word);
	w->mask = mask_of(word);
	w->at = (tag_of(hash) >> 32) & w->mask;
	w->left = w->mask + 1;
}

uint32_t directory_next(struct directory_walk *w, uint64_t hash)
{
	while (w->array && w->left-- > 0) {
		uint64_t e = load_acquire(&w->array->entries[w->at]);              /* B */

		if (e == 0)
			break;
		w->at = (w->at + 1) & w->mask;
		if (e != REMOVED && (e & UINT64_C(0xffffffff00000000)) == tag_of(hash))
			return (uint32_t)e;
	}
	return 0;
}

struct directory_table *directory_lock(struct directory *d, uint64_t hash)
{
	struct directory_table *t = &d->tables[ring_hash_partition(hash)];

	for (uint32_t tries = 0;; tries++) {
		uint32_t none = 0;

		if (!load_relaxed(&t->writer) && cas_acquire(&t->writer, &none, 1))
			return t;
		if (tries < 100)
			cpu_relax();
		else
			sched_yield();
	}
}

void directory_unlock(struct directory_table *t)
{
	store_release(&t->writer, 0);
}

static struct directory_array *array_new(struct directory *d, uint64_t slots)
{
	struct directory_array *a = mem_aligned(CACHE_LINE, array_bytes(slots));

	if (a) {
		a->mask = slots - 1;
		add_relaxed(&d->bytes, array_bytes(slots));
	}
	return a;
}

static void put(struct directory_array *a, uint64_t e)
{
	uint64_t at = e >> 32;

	while (load_relaxed(&a->entries[at & a->mask]) > REMOVED)
		at++;
	store_release(&a->entries[at & a->mask], e);                               /* A */
}

/* A fresh array with the living entries of the old one. */
static bool rebuild(struct directory *d, struct directory_table *t, struct directory_array *old,
		    ck_epoch_record_t *epoch)
{
	uint64_t slots = FIRST_SLOTS;

	while (slots * 5 < (uint64_t)(t->live + 1) * 8)
		slots *= 2;
	struct directory_array *a = array_new(d, slots);

	if (!a)
		return false;
	for (uint64_t i = 0; old && i <= old->mask; i++) {
		uint64_t e = load_relaxed(&old->entries[i]);

		if (e > REMOVED)
			put(a, e);
	}
	store_release(&t->array, (uint64_t)(uintptr_t)a | (uint64_t)__builtin_ctzll(slots));    /* C */
	t->used = t->live;
	if (old) {
		sub_relaxed(&d->bytes, array_bytes(old->mask + 1));
		epoch_defer(epoch, &old->retired, array_free);
	}
	return true;
}

bool directory_insert(struct directory *d, struct directory_table *t, uint64_t hash,
		      uint32_t cell, ck_epoch_record_t *epoch)
{
	struct directory_array *a = array_of(load_relaxed(&t->array));

	if (!a || (uint64_t)(t->used + 1) * 4 > (mask_of(load_relaxed(&t->array)) + 1) * 3) {
		if (!rebuild(d, t, a, epoch))
			return false;
		a = array_of(load_relaxed(&t->array));
	}
	put(a, tag_of(hash) | cell);
	store_release(&t->changes, load_relaxed(&t->changes) + 1);
	t->used++;
	t->live++;
	return true;
}

static atomic_u64 *find_entry(struct directory_table *t, uint64_t hash, uint32_t cell)
{
	struct directory_array *a = array_of(load_relaxed(&t->array));
	uint64_t want = tag_of(hash) | cell;

	for (uint64_t at = want >> 32, i = 0; a && i <= a->mask; i++, at++) {
		uint64_t e = load_relaxed(&a->entries[at & a->mask]);

		if (e == want)
			return &a->entries[at & a->mask];
		if (e == 0)
			break;
	}
	return NULL;
}

void directory_replace(struct directory_table *t, uint64_t hash, uint32_t old, uint32_t cell)
{
	atomic_u64 *e = find_entry(t, hash, old);

	must(e != NULL);
	store_release(e, tag_of(hash) | cell);                                     /* A */
	store_release(&t->changes, load_relaxed(&t->changes) + 1);
}

bool directory_remove(struct directory_table *t, uint64_t hash, uint32_t cell)
{
	atomic_u64 *e = find_entry(t, hash, cell);

	if (!e)
		return false;
	store_release(e, REMOVED);
	t->live--;
	return true;
}
