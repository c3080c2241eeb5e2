/* core/clock.h - the one door to time.
 *
 * Owns     nothing. Whoever needs the time is handed an instant, or a clock to ask.
 * Threads  any, for both kinds.
 * Never    goes backwards; only wall_ms may.
 */
#ifndef NOH_CORE_CLOCK_H
#define NOH_CORE_CLOCK_H

#include "core/atomic.h"

struct clock {
	uint64_t (*mono_ns)(void *arg);
	uint64_t (*wall_ms)(void *arg);    /* since 1970; may jump. Asked once, when a box starts */
	void *arg;
};

/* The system's monotonic clock. */
void clock_real(struct clock *c);

static inline uint64_t clock_now_ns(const struct clock *c)
{
	return c->mono_ns(c->arg);
}

static inline uint64_t clock_wall_ms(const struct clock *c)
{
	return c->wall_ms(c->arg);
}

/* A clock that stands still until somebody moves it. Must not be moved in memory. */
struct clock_virtual {
	atomic_u64   ns;
	atomic_u64   wall_ms;              /* at ns 0 */
	struct clock clock;
};

void clock_virtual_init(struct clock_virtual *v, uint64_t start_ns);
void clock_virtual_advance(struct clock_virtual *v, uint64_t by_ns);

#endif
