/* sched/runq.c - ordering.
 *
 * A -> B  an item is written before the bottom that covers it.
 * C -> D  whoever takes [t, t+n) has read those items before he moves top (release); the owner
 *         sees that top (acquire) before he writes over their places.
 * E -> F  a grown array is filled before it is shown. A thief that still reads the old array reads
 *         the same items there: after growing, the owner writes only to the new one.
 * An item read for a position that somebody else took meanwhile may be garbage; then C fails.
 */
#include "sched/runq.h"

#include "core/mem.h"
#include "core/must.h"

static struct runq_array *array_new(uint64_t slots)
{
	struct runq_array *a = (struct runq_array *)mem_aligned(
		CACHE_LINE, sizeof(struct runq_array) + slots * sizeof(atomic_u32));

	if (a)
		a->mask = slots - 1;
	return a;
}

bool runq_open(struct runq *q, uint32_t slots)
{
	struct runq_array *a = array_new(slots);

	must((slots & (slots - 1)) == 0);
	store_relaxed(&q->shown.bottom, 1);
	store_relaxed(&q->shared.top, 1);
	store_relaxed(&q->shown.array, (void *)a);
	return a != NULL;
}

void runq_close(struct runq *q)
{
	struct runq_array *a = (struct runq_array *)load_relaxed(&q->shown.array);

	while (a) {
		struct runq_array *older = a->older;

		mem_free(a, sizeof *a + (a->mask + 1) * sizeof(atomic_u32));
		a = older;
	}
	store_relaxed(&q->shown.array, NULL);
}

static struct runq_array *grow(struct runq *q, struct runq_array *old, uint64_t top,
			       uint64_t bottom)
{
	struct runq_array *a = array_new((old->mask + 1) * 2);

	if (!a)
		return NULL;
	a->older = old;
	for (uint64_t i = top; i < bottom; i++)
		store_relaxed(&a->items[i & a->mask], load_relaxed(&old->items[i & old->mask]));
	store_release(&q->shown.array, (void *)a);                                 /* E */
	return a;
}

bool runq_push(struct runq *q, uint32_t item)
{
	uint64_t bottom = load_relaxed(&q->shown.bottom);
	uint64_t top = load_acquire(&q->shared.top);                               /* D */
	struct runq_array *a = (struct runq_array *)load_relaxed(&q->shown.array);

	if (bottom - top > a->mask) {
		a = grow(q, a, top, bottom);
		if (!a)
			return false;
	}
	store_relaxed(&a->items[bottom & a->mask], item);
	store_release(&q->shown.bottom, bottom + 1);                               /* A */
	return true;
}

uint32_t runq_take(struct runq *q)
{
	uint64_t top = load_acquire(&q->shared.top);

	while (top < load_acquire(&q->shown.bottom)) {                             /* B */
		struct runq_array *a = (struct runq_array *)load_acquire(&q->shown.array);  /* F */
		uint32_t item = load_relaxed(&a->items[top & a->mask]);

		if (cas_acq_rel(&q->shared.top, &top, top + 1))                    /* C */
			return item;
	}
	return 0;
}

uint32_t runq_steal(struct runq *from, uint32_t *out, uint32_t max)
{
	uint64_t top = load_acquire(&from->shared.top);

	for (;;) {
		uint64_t bottom = load_acquire(&from->shown.bottom);               /* B */
		struct runq_array *a = (struct runq_array *)load_acquire(&from->shown.array);  /* F */

		if (top >= bottom)
			return 0;
		uint64_t half = (bottom - top + 1) / 2;
		uint32_t n = half < max ? (uint32_t)half : max;

		for (uint32_t i = 0; i < n; i++)
			out[i] = load_relaxed(&a->items[(top + i) & a->mask]);
		if (cas_acq_rel(&from->shared.top, &top, top + n))                 /* C */
			return n;
	}
}

uint32_t runq_peek(struct runq *q, uint32_t ahead)
{
	uint64_t at = load_relaxed(&q->shared.top) + ahead;
	struct runq_array *a = (struct runq_array *)load_relaxed(&q->shown.array);

	return at < load_relaxed(&q->shown.bottom) ? load_relaxed(&a->items[at & a->mask]) : 0;
}
