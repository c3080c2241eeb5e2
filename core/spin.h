/* core/spin.h - a word that one thread at a time holds, for a few instructions.
 *
 * For what is rare or short, off the way of messages. Who does not get it spins a little and then lets others run: the holder may
 * have been interrupted.
 *
 * Owns     nothing.   Threads  any.
 *
 * A -> B  what the holder wrote is seen by the next one.
 */
#ifndef NOH_CORE_SPIN_H
#define NOH_CORE_SPIN_H

#include "core/atomic.h"

#include <sched.h>

static inline bool spin_try(atomic_u32 *word)
{
	uint32_t none = 0;

	return !load_relaxed(word) && cas_acquire(word, &none, 1);         /* B */
}

static inline void spin_lock(atomic_u32 *word)
{
	for (uint32_t tries = 0; !spin_try(word); tries++)
		tries < 100 ? cpu_relax() : (void)sched_yield();
}

static inline void spin_unlock(atomic_u32 *word)
{
	store_release(word, 0);                                            /* A */
}

#endif
