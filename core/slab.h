/* core/slab.h - objects of one size, by number, in memory that never moves or goes away.
 *
 * Owns     the address range. Number 0 is nobody. A freed object keeps its bytes (but the link
 *          word): whoever holds a stale number may still read atomics in it, and must find out
 *          by what he reads that it is stale.
 * Threads  take and give: any, each with a cache of its own (one owner at a time). Caches trade
 *          runs of numbers with a shared stack; nothing is scanned, nothing waits.
 * Never    blocks. Fresh memory is zero.
 */
#ifndef NOH_CORE_SLAB_H
#define NOH_CORE_SLAB_H

#include "core/atomic.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

struct slab {
	struct {
		char    *base;
		size_t   size;          /* bytes of one object                                */
		size_t   link;          /* offset of an atomic_u32 that is ours while it is free */
		uint32_t limit;         /* numbers 1 .. limit - 1                             */
		uint32_t run;           /* numbers that a cache trades at once; it keeps two runs */
	} fixed;
	alignas(CACHE_LINE) struct {
		atomic_u64 free;        /* stack of free numbers: tag << 32 | number          */
		atomic_u32 fresh;       /* numbers below were handed out at least once        */
	} shared;
};

#ifndef SLAB_RUN
#define SLAB_RUN 64                     /* at most so many at once, and a small part of all: of a */
#define SLAB_PART 64                    /* few large objects no cache may keep what others need   */
#endif

#define SLAB_AHEAD 8

struct slab_cache {
	uint32_t count;
	uint32_t items[2 * SLAB_RUN];
};

bool slab_open(struct slab *s, size_t size, size_t link, uint32_t limit);
void slab_close(struct slab *s);
uint32_t slab_refill(struct slab *s, struct slab_cache *c);   /* takes one; 0: none left */
void slab_spill(struct slab *s, struct slab_cache *c);        /* makes room in a full cache */
void slab_flush(struct slab *s, struct slab_cache *c);        /* gives all to the others    */

static inline void *slab_at(const struct slab *s, uint32_t number)
{
	return s->fixed.base + (size_t)number * s->fixed.size;
}

static inline uint32_t slab_number(const struct slab *s, const void *object)
{
	return (uint32_t)((size_t)((const char *)object - s->fixed.base) / s->fixed.size);
}

static inline uint32_t slab_take(struct slab *s, struct slab_cache *c)
{
	if (__builtin_expect(c->count == 0, 0))
		return slab_refill(s, c);
	return c->items[--c->count];
}

/* A cache hands out its numbers in a known order: bring the object that is due some takes from now. */
static inline void slab_fetch(const struct slab *s, const struct slab_cache *c)
{
	if (c->count >= SLAB_AHEAD)
		__builtin_prefetch(slab_at(s, c->items[c->count - SLAB_AHEAD]), 1);
}

static inline void slab_give(struct slab *s, struct slab_cache *c, uint32_t number)
{
	if (__builtin_expect(c->count >= 2 * s->fixed.run, 0))
		slab_spill(s, c);
	c->items[c->count++] = number;
}

#endif
