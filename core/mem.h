/* core/mem.h - the one door to the allocator.
 *
 * Owns     nothing; counts, and can be made to fail (mem_fail_at) so that every allocation's
 *          failure is tested. jemalloc in release builds; the sanitizer's own in the others.
 * Threads  any.
 */
#ifndef NOH_CORE_MEM_H
#define NOH_CORE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);                  /* NULL when there is none */
void *mem_zalloc(size_t bytes);
void *mem_aligned(size_t align, size_t bytes);  /* zeroed; align a power of two */
void  mem_free(void *p, size_t bytes);          /* bytes as given to alloc; NULL is fine */

/* Address space for `bytes`, zero-filled when touched, 2 MiB aligned, on huge pages where the
 * system gives them. NULL when the system refuses. */
void *mem_reserve(size_t bytes);
void  mem_unreserve(void *p, size_t bytes);

/* For much that is touched all over and freed as a whole: huge pages where the system gives them, which are the
 * system's again at once. What is little comes from mem_alloc. */
void *mem_large(size_t bytes);
void  mem_large_free(void *p, size_t bytes);

const char *mem_name(void);                     /* whose allocator it is */

/* Give what was freed back to the system now, not some seconds later. Takes a while: not for workers. */
void  mem_trim(void);

/* For who hands out memory of his own: counts as an allocation; true: there is none. */
int   mem_refuse(void);

/* Tests: let the Nth allocation from now on fail (0: none), once or from then on. Returns how many
 * allocations happened since the last call. */
uint64_t mem_fail_at(uint64_t nth, int and_all_later);

#endif
