/* core/futex.h - sleep on a word while it has a value.
 *
 * Owns     nothing.   Threads  any.
 * Blocks   futex_wait: until woken, at most timeout_ns (UINT64_MAX: for ever). It may also return for
 *          no reason: the caller looks again.
 */
#ifndef NOH_CORE_FUTEX_H
#define NOH_CORE_FUTEX_H

#include "core/atomic.h"

void futex_wait(atomic_u32 *word, uint32_t value, uint64_t timeout_ns);
void futex_wake_all(atomic_u32 *word);

#endif
