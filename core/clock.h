/* core/clock.h - the one door to time.
 *
 * Owns     nothing. Whoever needs the time is handed an instant, or a clock to ask.
 * Threads  any, for both kinds.
 * Never    goes backwards.
 */
#ifndef NOH_CORE_CLOCK_H
#define NOH_CORE_CLOCK_H

#include "core/atomic.h"

struct clock {
	uint64_t (*mono_ns)(void *arg);
	void *arg;
};

/* The system's monotonic clock. */
void clock_real(struct clock *c);

static inline uint64_t clock_now_ns(const struct clock *c)
{
	return c->mono_ns(c->arg);
}

/* A clock that stands still until somebody moves it. Must not be moved in memory. */
struct clock_virtual {
	atomic_u64   ns;
	struct clock clock;
};

void clock_virtual_init(struct clock_virtual *v, uint64_t start_ns);
void clock_virtual_advance(struct clock_virtual *v, uint64_t by_ns);

#endif
