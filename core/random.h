/* core/random.h - numbers that look random, from a word that its owner keeps (xorshift64): for choices, not for secrets.
 *
 * Owns     nothing.   Threads  the word's owner.
 */
#ifndef NOH_CORE_RANDOM_H
#define NOH_CORE_RANDOM_H

#include <stdint.h>

/* *word: not 0, and then it never is. */
static inline uint64_t random_next(uint64_t *word)
{
	uint64_t x = *word;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *word = x;
}

#endif
