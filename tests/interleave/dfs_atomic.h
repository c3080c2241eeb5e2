/* tests/interleave/dfs_atomic.h - core/atomic.h for the depth-first scheduler: before each shared
 * access dfs_point decides who goes on. Sequentially consistent; orders are Relacy's business. */
#ifndef NOH_TESTS_DFS_ATOMIC_H
#define NOH_TESTS_DFS_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t atomic_u64;
typedef uint32_t atomic_u32;
typedef uint16_t atomic_u16;
typedef uint8_t atomic_u8;
typedef void *atomic_ptr;
#define WEAK_MEMORY 0
#define PLAIN(type) type                        /* memory that an atomic guards          */
#define PEEK(atomic) (atomic)                   /* its newest value, no step             */

void dfs_point(const char *file, int line);     /* a shared access comes next            */
void dfs_wrote(void);                           /* it was a write: who waits looks again */

#define DFS_POINT() dfs_point(__FILE__, __LINE__)
#define DFS_LOAD(p) (DFS_POINT(), *(p))
#define DFS_STORE(p, v) (DFS_POINT(), (void)(*(p) = (v)), dfs_wrote())
#define DFS_RMW(p, new_value)                                                                      \
	({                                                                                         \
		DFS_POINT();                                                                       \
		__typeof__(*(p)) was = *(p);                                                       \
		*(p) = (new_value);                                                                \
		dfs_wrote();                                                                       \
		was;                                                                               \
	})
#define DFS_CAS(p, expected, v)                                                                    \
	({                                                                                         \
		DFS_POINT();                                                                       \
		bool same = *(p) == *(expected);                                                   \
		if (same)                                                                          \
			*(p) = (v), dfs_wrote();                                                   \
		else                                                                               \
			*(expected) = *(p);                                                        \
		same;                                                                              \
	})

#define load_relaxed(p) DFS_LOAD(p)
#define load_acquire(p) DFS_LOAD(p)
#define load_seq_cst(p) DFS_LOAD(p)
#define store_relaxed(p, v) DFS_STORE(p, v)
#define store_release(p, v) DFS_STORE(p, v)
#define store_seq_cst(p, v) DFS_STORE(p, v)
#define swap_acquire(p, v) DFS_RMW(p, v)
#define swap_acq_rel(p, v) DFS_RMW(p, v)
#define swap_seq_cst(p, v) DFS_RMW(p, v)
#define add_relaxed(p, v) DFS_RMW(p, was + (v))
#define add_acq_rel(p, v) DFS_RMW(p, was + (v))
#define add_seq_cst(p, v) DFS_RMW(p, was + (v))
#define sub_relaxed(p, v) DFS_RMW(p, was - (v))
#define cas_relaxed(p, expected, v) DFS_CAS(p, expected, v)
#define cas_acquire(p, expected, v) DFS_CAS(p, expected, v)
#define cas_release(p, expected, v) DFS_CAS(p, expected, v)
#define cas_acq_rel(p, expected, v) DFS_CAS(p, expected, v)
#define cas_seq_cst(p, expected, v) DFS_CAS(p, expected, v)

#endif
