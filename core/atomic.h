/* core/atomic.h - every shared-memory operation of the project, with its order in its name.
 *
 * One source, three readers: C11 atomics in the product and under ThreadSanitizer; the DFS
 * scheduler of tests/interleave (NOH_INTERLEAVE), which takes over before each operation; Relacy
 * (NOH_RELACY), which also explores what weak memory allows. So no bare fences, no operation
 * behind a macro of somebody else's, and orders on the operation that needs them.
 *
 * relaxed   only the value matters              acquire   what its partner's release wrote is seen
 * release   publishes what was written before   seq_cst   takes part in the one total order
 */
#ifndef NOH_CORE_ATOMIC_H
#define NOH_CORE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define CACHE_LINE 64

#ifdef NOH_ATOMIC_BACKEND
#include NOH_ATOMIC_BACKEND
#else
#include <stdatomic.h>

typedef _Atomic uint64_t atomic_u64;
typedef _Atomic uint32_t atomic_u32;
typedef _Atomic uint16_t atomic_u16;
typedef _Atomic uint8_t atomic_u8;
typedef _Atomic(void *) atomic_ptr;

#define load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)
#define store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)
#define swap_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define swap_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define swap_seq_cst(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)
#define add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)

/* cas_*: true if *p was *expected and is now v; otherwise *expected is what was there. */
#define cas_relaxed(p, expected, v)                                                                \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_relaxed,         \
						memory_order_relaxed)
#define cas_acquire(p, expected, v)                                                                \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acquire,         \
						memory_order_acquire)
#define cas_release(p, expected, v)                                                                \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release,         \
						memory_order_relaxed)
#define cas_acq_rel(p, expected, v)                                                                \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel,         \
						memory_order_acquire)
#define cas_seq_cst(p, expected, v)                                                                \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst,         \
						memory_order_seq_cst)
#endif

/* A counter with one writer: no locked instruction. gcc makes three of a relaxed load, add and store; one will do, since an
 * aligned store is seen whole, and every message counts a few times. */
static inline void count_one(atomic_u64 *c, uint64_t n)
{
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && !defined(NOH_ATOMIC_BACKEND)
	__asm__("addq %1, %0" : "+m"(*c) : "er"(n) : "cc");
#else
	store_relaxed(c, load_relaxed(c) + n);
#endif
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
