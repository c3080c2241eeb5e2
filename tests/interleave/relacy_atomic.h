/* tests/interleave/relacy_atomic.h - core/atomic.h for Relacy, which explores what weak memory
 * allows. Each operation in the source is a site; one of them can be given a weaker order for the
 * length of a program run (--weaken), so that the must-fail twins need no build of their own. */
#ifndef NOH_TESTS_RELACY_ATOMIC_H
#define NOH_TESTS_RELACY_ATOMIC_H

#include <relacy/relacy.hpp>
#undef new                              /* what it would watch is not ours */
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Fresh memory is zero, so is a fresh atomic. */
template <typename T> struct zero_atomic : rl::generic_atomic<T, true> {};

typedef zero_atomic<uint64_t> atomic_u64;
typedef zero_atomic<uint32_t> atomic_u32;
typedef zero_atomic<uint16_t> atomic_u16;
typedef zero_atomic<uint8_t> atomic_u8;
typedef zero_atomic<void *> atomic_ptr;

/* Plain memory that an atomic guards: an access that does not come after the last write is a race. */
template <typename T> struct tracked {
	T            value;
	rl::var<int> guard;

	tracked &operator=(const T &v) { guard($).store(1); value = v; return *this; }
	operator T() const { (void)guard($).load(); return value; }
};
template <typename T> struct tracked<T *> {
	T           *value;
	rl::var<int> guard;

	tracked &operator=(T *v) { guard($).store(1); value = v; return *this; }
	operator T *() const { (void)guard($).load(); return value; }
};
#define WEAK_MEMORY 1                   /* a load may give an older value */
#define PLAIN(type) tracked<type>
#define PEEK(atomic) ((atomic).debug_value())

/* ── sites ─────────────────────────────────────────────────────────────────────────────────────── */
struct order_pair { rl::memory_order success, failure; };

struct site {
	const char *file, *op;
	int         line;
	bool        weakened;
	site       *next;

	site(const char *file, int line, const char *op);
	order_pair orders(rl::memory_order success, rl::memory_order failure) const
	{
		return weakened ? weaker(success) : order_pair{ success, failure };
	}
	static order_pair weaker(rl::memory_order success);
};

#define SITE(op, success, failure)                                                                 \
	([]() -> order_pair {                                                                      \
		static const site here(__FILE__, __LINE__, op);                                    \
		return here.orders(rl::success, rl::failure);                                      \
	}())

template <typename T>
T noh_load(const zero_atomic<T> *p, order_pair o, rl::debug_info_param info)
{
	return p->load(o.success, info);
}
template <typename T, typename V>
void noh_store(zero_atomic<T> *p, V v, order_pair o, rl::debug_info_param info)
{
	p->store((T)v, o.success, info);
}
template <typename T, typename V>
T noh_swap(zero_atomic<T> *p, V v, order_pair o, rl::debug_info_param info)
{
	return p->exchange((T)v, o.success, info);
}
template <typename T, typename V>
T noh_add(zero_atomic<T> *p, V v, order_pair o, rl::debug_info_param info)
{
	return p->fetch_add((T)v, o.success, info);
}
template <typename T, typename V>
bool noh_cas(zero_atomic<T> *p, T *expected, V v, order_pair o, rl::debug_info_param info)
{
	return p->compare_exchange_strong(*expected, (T)v, o.success, info, o.failure, info);
}

#define load_relaxed(p) noh_load((p), SITE("load_relaxed", mo_relaxed, mo_relaxed), $)
#define load_acquire(p) noh_load((p), SITE("load_acquire", mo_acquire, mo_relaxed), $)
#define load_seq_cst(p) noh_load((p), SITE("load_seq_cst", mo_seq_cst, mo_relaxed), $)
#define store_relaxed(p, v) noh_store((p), (v), SITE("store_relaxed", mo_relaxed, mo_relaxed), $)
#define store_release(p, v) noh_store((p), (v), SITE("store_release", mo_release, mo_relaxed), $)
#define store_seq_cst(p, v) noh_store((p), (v), SITE("store_seq_cst", mo_seq_cst, mo_relaxed), $)
#define swap_acquire(p, v) noh_swap((p), (v), SITE("swap_acquire", mo_acquire, mo_relaxed), $)
#define swap_acq_rel(p, v) noh_swap((p), (v), SITE("swap_acq_rel", mo_acq_rel, mo_relaxed), $)
#define swap_seq_cst(p, v) noh_swap((p), (v), SITE("swap_seq_cst", mo_seq_cst, mo_relaxed), $)
#define add_relaxed(p, v) noh_add((p), (v), SITE("add_relaxed", mo_relaxed, mo_relaxed), $)
#define add_acq_rel(p, v) noh_add((p), (v), SITE("add_acq_rel", mo_acq_rel, mo_relaxed), $)
#define add_seq_cst(p, v) noh_add((p), (v), SITE("add_seq_cst", mo_seq_cst, mo_relaxed), $)
#define sub_relaxed(p, v) noh_add((p), 0 - (v), SITE("sub_relaxed", mo_relaxed, mo_relaxed), $)
#define cas_relaxed(p, e, v) noh_cas((p), (e), (v), SITE("cas_relaxed", mo_relaxed, mo_relaxed), $)
#define cas_acquire(p, e, v) noh_cas((p), (e), (v), SITE("cas_acquire", mo_acquire, mo_acquire), $)
#define cas_release(p, e, v) noh_cas((p), (e), (v), SITE("cas_release", mo_release, mo_relaxed), $)
#define cas_acq_rel(p, e, v) noh_cas((p), (e), (v), SITE("cas_acq_rel", mo_acq_rel, mo_acquire), $)
#define cas_seq_cst(p, e, v) noh_cas((p), (e), (v), SITE("cas_seq_cst", mo_seq_cst, mo_seq_cst), $)

#endif
