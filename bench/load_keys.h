/* bench/load_keys.h - which key comes next.
 *
 * uniform   every key alike
 * zipf      the k-th most popular key with a probability proportional to 1 / k^s, exactly; popular keys
 *           are spread over the key space
 * hot       key 0 with probability `share`, else uniform
 * seq       0, 1, 2 ... : every key once, for loading
 *
 * Owns     nothing. A shape is read only once made; the state of a thread is its random number.
 * Threads  any number may draw from one shape (seq: the caller keeps the counter).
 */
#ifndef NOH_BENCH_LOAD_KEYS_H
#define NOH_BENCH_LOAD_KEYS_H

#include "core/random.h"

#include <stdint.h>

enum keys_kind { KEYS_UNIFORM, KEYS_ZIPF, KEYS_HOT, KEYS_SEQ };

struct keys {
	enum keys_kind kind;
	uint64_t count;               /* at most 2^32 */
	double   s, share;
	double   from, to, sure;      /* zipf; see load_keys.c */
	uint64_t spread;              /* zipf: rank k is key k * spread mod count */
};

void keys_init(struct keys *k, enum keys_kind kind, uint64_t count, double parameter);

/* The next key, below count. random: any number but 0. next: the counter of seq. */
uint64_t keys_next(const struct keys *k, uint64_t *random, uint64_t *next);
uint64_t keys_of_rank(const struct keys *k, uint64_t rank);      /* ranks count from 1 */

#endif
