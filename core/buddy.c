/* core/buddy.c - ordering.  A -> B hands the lists on; with B relaxed the next holder could see half
 * of what the last one did. The block itself changes hands with them.
 */
#include "core/buddy.h"

#include "core/mem.h"
#include "core/must.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_PAGES ((size_t)2 << 20)   /* a small box stays small: huge pages start after this */
#define LEAST (2 * SMALL_PAGES)
#define PAGE ((size_t)4096)
#define SPINS 100

struct links { uint32_t next, prev; };  /* in a free block; line plus 1, 0: none */

static void hold(struct buddy *b)
{
	for (unsigned tries = 0; swap_acquire(&b->held, 1) != 0; ) {               /* B */
		while (load_relaxed(&b->held) != 0) {
			if (++tries % SPINS == 0)
				sched_yield();
			else
				cpu_relax();
		}
	}
}

static void let_go(struct buddy *b)
{
	store_release(&b->held, 0);                                                /* A */
}

static size_t reserved(size_t bytes)
{
	return bytes + bytes / CACHE_LINE;
}

bool buddy_open(struct buddy *b, size_t bytes)
{
	size_t most = (size_t)UINT32_MAX / 2 * CACHE_LINE;

	bytes = bytes < LEAST ? LEAST : bytes > most ? most : bytes;
	bytes = (bytes + SMALL_PAGES - 1) & ~(SMALL_PAGES - 1);
	memset(b, 0, sizeof *b);
	while (!(b->fixed.base = mem_reserve(reserved(bytes)))) {
		if (bytes < 2 * LEAST)
			return false;
		bytes = bytes / 2 & ~(SMALL_PAGES - 1);
	}
	(void)madvise(b->fixed.base + SMALL_PAGES, bytes - SMALL_PAGES, MADV_HUGEPAGE);
	b->fixed.heads = (uint8_t *)b->fixed.base + bytes;
	b->fixed.lines = (uint32_t)(bytes / CACHE_LINE);
	return true;
}

void buddy_close(struct buddy *b)
{
	mem_unreserve(b->fixed.base, reserved((size_t)b->fixed.lines * CACHE_LINE));
	b->fixed.base = NULL;
}

static struct links *links_at(struct buddy *b, uint32_t line)
{
	return (struct links *)(void *)(b->fixed.base + (size_t)line * CACHE_LINE);
}

static void put(struct buddy *b, uint32_t line, uint32_t k)
{
	uint32_t next = b->free[k];

	*links_at(b, line) = (struct links){ .next = next };
	if (next)
		links_at(b, next - 1)->prev = line + 1;
	b->free[k] = line + 1;
	b->fixed.heads[line] = (uint8_t)(k + 1);
}

static void unlink_free(struct buddy *b, uint32_t line, uint32_t k)
{
	struct links at = *links_at(b, line);

	if (at.next)
		links_at(b, at.next - 1)->prev = at.prev;
	if (at.prev)
		links_at(b, at.prev - 1)->next = at.next;
	else
		b->free[k] = at.next;
	b->fixed.heads[line] = 0;
}

/* From where nothing has been yet; what is skipped to be aligned is free for smaller ones. */
static bool take_fresh(struct buddy *b, uint32_t k, uint32_t *line)
{
	uint32_t size = UINT32_C(1) << k;

	if (size > b->fixed.lines || ((b->fresh + size - 1) & ~(size - 1)) > b->fixed.lines - size)
		return false;
	while (b->fresh & (size - 1)) {
		uint32_t gap = (uint32_t)__builtin_ctz(b->fresh);

		put(b, b->fresh, gap);
		b->fresh += UINT32_C(1) << gap;
	}
	*line = b->fresh;
	b->fresh += size;
	return true;
}

static bool take_used(struct buddy *b, uint32_t k, uint32_t *line)
{
	uint32_t j = k;

	while (j < BUDDY_CLASSES && !b->free[j])
		j++;
	if (j == BUDDY_CLASSES)
		return false;
	*line = b->free[j] - 1;
	unlink_free(b, *line, j);
	while (j-- > k)
		put(b, *line + (UINT32_C(1) << j), j);
	return true;
}

/* A fresh page that is read first is the system's page of zeros, and the first write is a fault of its own (on some systems
 * the end of a huge page as well). Who takes a block looks before he writes. */
static void come(char *block, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += PAGE)
		*(volatile char *)(block + at) = 0;
}

void *buddy_take(struct buddy *b, uint32_t k)
{
	uint32_t line = 0;
	bool used, ok;
	char *block;

	if (k >= BUDDY_CLASSES || mem_refuse())
		return NULL;
	hold(b);
	used = take_used(b, k, &line);
	ok = used || take_fresh(b, k, &line);
	let_go(b);
	if (!ok)
		return NULL;
	block = b->fixed.base + (size_t)line * CACHE_LINE;
	if (used)
		memset(block, 0, (size_t)CACHE_LINE << k);
	else
		come(block, (size_t)CACHE_LINE << k);
	return block;
}

void buddy_give(struct buddy *b, void *block, uint32_t k)
{
	uint32_t line = (uint32_t)((size_t)((char *)block - b->fixed.base) / CACHE_LINE);

	hold(b);
	must(k < BUDDY_CLASSES && b->fixed.heads[line] == 0);
	for (; k + 1 < BUDDY_CLASSES; k++) {
		uint32_t mate = line ^ UINT32_C(1) << k;

		if (mate >= b->fresh || b->fixed.heads[mate] != k + 1)
			break;
		unlink_free(b, mate, k);
		line &= ~(UINT32_C(1) << k);
	}
	put(b, line, k);
	let_go(b);
}
