/* core/mem.c - sized frees and aligned blocks straight from jemalloc, failure on demand. */
#include "core/mem.h"

#include "core/atomic.h"
#include "core/must.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef NOH_SANITIZED
#include <jemalloc/jemalloc.h>
#endif

#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE (2 * HUGE_PAGE)
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

/* The one mutable static of the project: a switch for tests, off in the product. */
static struct {
	atomic_u64 armed, count;
	atomic_u32 all_later;
} failing;

int mem_refuse(void)
{
	uint64_t at = load_relaxed(&failing.armed);

	if (__builtin_expect(at == 0, 1))
		return 0;
	uint64_t n = add_relaxed(&failing.count, 1) + 1;
	return n == at || (n > at && load_relaxed(&failing.all_later));
}

uint64_t mem_fail_at(uint64_t nth, int and_all_later)
{
	store_relaxed(&failing.armed, 0);
	uint64_t seen = load_relaxed(&failing.count);
	store_relaxed(&failing.count, 0);
	store_relaxed(&failing.all_later, and_all_later != 0);
	store_relaxed(&failing.armed, nth);
	return seen;
}

void *mem_alloc(size_t bytes)
{
	if (mem_refuse())
		return NULL;
#ifdef NOH_SANITIZED
	return malloc(bytes ? bytes : 1);
#else
	return mallocx(bytes ? bytes : 1, 0);
#endif
}

const char *mem_name(void)
{
#ifdef NOH_SANITIZED
	return "sanitizer";
#else
	return "jemalloc";
#endif
}

void *mem_zalloc(size_t bytes)
{
	void *p = mem_alloc(bytes);

	if (p)
		memset(p, 0, bytes);
	return p;
}

void *mem_aligned(size_t align, size_t bytes)
{
	if (mem_refuse())
		return NULL;
#ifdef NOH_SANITIZED
	void *p = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
#else
	void *p = mallocx(bytes, MALLOCX_ALIGN(align));
#endif
	if (p)
		memset(p, 0, bytes);
	return p;
}

void mem_free(void *p, size_t bytes)
{
	if (!p)
		return;
#ifdef NOH_SANITIZED
	(void)bytes;
	free(p);
#else
	(void)bytes;
	dallocx(p, 0);
#endif
}

void mem_trim(void)
{
#ifndef NOH_SANITIZED
	(void)mallctl("arena." STRING(MALLCTL_ARENAS_ALL) ".purge", NULL, NULL, NULL, 0);
#endif
}

void *mem_reserve(size_t bytes)
{
	if (mem_refuse())
		return NULL;
	char *p = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	char *at = (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
	size_t before = (size_t)(at - p);

	if (before)
		munmap(p, before);
	munmap(at + bytes, HUGE_PAGE - before);
	return at;
}

void mem_unreserve(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

static size_t huge_pages(size_t bytes)
{
	return (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

static bool is_large(size_t bytes)
{
#ifdef NOH_SANITIZED
	(void)bytes;
	return false;                    /* every block with its own borders */
#else
	return bytes >= LARGE && bytes <= SIZE_MAX / 2;
#endif
}

void *mem_large(size_t bytes)
{
	void *p;

	if (!is_large(bytes))
		return mem_alloc(bytes);
	p = mem_reserve(huge_pages(bytes));
	if (p)
		(void)madvise(p, huge_pages(bytes), MADV_HUGEPAGE);
	return p;
}

void mem_large_free(void *p, size_t bytes)
{
	if (is_large(bytes))
		mem_unreserve(p, huge_pages(bytes));
	else
		mem_free(p, bytes);
}
