/* core/slab.c - ordering.  The shared stack is Treiber's with a tag against reuse (ABA):
 *
 * A -> B  a number pushed with its link is seen with that link. With A relaxed, B could read the
 *         link of the object's earlier stay on the stack and lose the rest of the stack.
 * B       also takes over the object's memory from whoever freed it, on his thread.
 * C       the link is read while others may pop and reuse the object: it is atomic, and if the
 *         object was popped meanwhile the tag has changed and B's compare fails.
 * fresh   relaxed: it only deals out numbers; fresh memory is zero for everyone.
 */
#include "core/slab.h"

#include "core/mem.h"
#include "core/must.h"

#include <sys/mman.h>

#define SMALL_PAGES ((size_t)2 << 20)   /* a small box stays small: huge pages start after this */

static atomic_u32 *link_of(struct slab *s, uint32_t number)
{
	return (atomic_u32 *)(void *)((char *)slab_at(s, number) + s->fixed.link);
}

static size_t reserved(size_t size, uint32_t limit)
{
	return ((size_t)limit * size + SMALL_PAGES - 1) & ~(SMALL_PAGES - 1);
}

/* Where address space is scarce (a limit, a checker) a slab takes half, and half again, rather than
 * nothing: it is full earlier. */
bool slab_open(struct slab *s, size_t size, size_t link, uint32_t limit)
{
	while (!(s->fixed.base = (char *)mem_reserve(reserved(size, limit)))) {
		if (limit < 1u << 16)
			return false;
		limit /= 2;
	}
	if (reserved(size, limit) > SMALL_PAGES)
		(void)madvise(s->fixed.base + SMALL_PAGES, reserved(size, limit) - SMALL_PAGES,
			      MADV_HUGEPAGE);
	s->fixed.size = size;
	s->fixed.link = link;
	s->fixed.limit = limit;
	s->fixed.run = limit / SLAB_PART < SLAB_RUN ? limit / SLAB_PART : SLAB_RUN;
	store_relaxed(&s->shared.free, 0);
	store_relaxed(&s->shared.fresh, 1);
	return true;
}

void slab_close(struct slab *s)
{
	mem_unreserve(s->fixed.base, reserved(s->fixed.size, s->fixed.limit));
	s->fixed.base = NULL;
}

static uint32_t pop(struct slab *s)
{
	uint64_t top = load_acquire(&s->shared.free);

	while ((uint32_t)top != 0) {
		uint32_t next = load_relaxed(link_of(s, (uint32_t)top));           /* C */
		uint64_t to = ((top >> 32) + 1) << 32 | next;

		if (cas_acq_rel(&s->shared.free, &top, to))                        /* B */
			return (uint32_t)top;
	}
	return 0;
}

/* first .. last are linked already. */
static void push_chain(struct slab *s, uint32_t first, uint32_t last)
{
	uint64_t top = load_relaxed(&s->shared.free);

	do {
		store_relaxed(link_of(s, last), (uint32_t)top);
	} while (!cas_acq_rel(&s->shared.free, &top, ((top >> 32) + 1) << 32 | first));   /* A */
}

uint32_t slab_refill(struct slab *s, struct slab_cache *c)
{
	uint32_t n, most = s->fixed.run ? s->fixed.run : 1;

	must(c->count == 0);
	while (c->count < most && (n = pop(s)) != 0)
		c->items[c->count++] = n;
	if (c->count == 0) {
		uint32_t from = load_relaxed(&s->shared.fresh), run;

		do {
			uint32_t left = s->fixed.limit - from;
			run = left < most ? left : most;
			if (run == 0)
				return 0;
		} while (!cas_relaxed(&s->shared.fresh, &from, from + run));
		for (uint32_t i = 0; i < run; i++)         /* ascending when they are taken */
			c->items[i] = from + run - 1 - i;
		c->count = run;
	}
	return c->items[--c->count];
}

void slab_spill(struct slab *s, struct slab_cache *c)
{
	/* The older half goes: what was freed last is warm. */
	uint32_t warm[SLAB_RUN], keep = c->count / 2;

	for (uint32_t i = 0; i < keep; i++)
		warm[i] = c->items[c->count - keep + i];
	c->count -= keep;
	slab_flush(s, c);
	for (uint32_t i = 0; i < keep; i++)
		c->items[i] = warm[i];
	c->count = keep;
}

void slab_flush(struct slab *s, struct slab_cache *c)
{
	if (c->count == 0)
		return;
	for (uint32_t i = 1; i < c->count; i++)
		store_relaxed(link_of(s, c->items[i]), c->items[i - 1]);
	push_chain(s, c->items[c->count - 1], c->items[0]);
	c->count = 0;
}
