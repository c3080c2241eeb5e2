/* core/clock.c - the system's clock, and one for tests. */
#include "core/clock.h"

#include "core/must.h"

#include <stddef.h>
#include <time.h>

static uint64_t real_ns(void *arg)
{
	struct timespec t;

	(void)arg;
	must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t real_wall_ms(void *arg)
{
	struct timespec t;

	(void)arg;
	must(clock_gettime(CLOCK_REALTIME, &t) == 0);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

void clock_real(struct clock *c)
{
	c->mono_ns = real_ns;
	c->wall_ms = real_wall_ms;
	c->arg = NULL;
}

/* A -> B  what was written before the clock moved is seen by whoever sees the new time. */
static uint64_t virtual_ns(void *arg)
{
	struct clock_virtual *v = arg;

	return load_acquire(&v->ns);                                        /* B */
}

static uint64_t virtual_wall_ms(void *arg)
{
	struct clock_virtual *v = arg;

	return load_relaxed(&v->wall_ms) + load_acquire(&v->ns) / 1000000u;
}

void clock_virtual_init(struct clock_virtual *v, uint64_t start_ns)
{
	store_relaxed(&v->ns, start_ns);
	store_relaxed(&v->wall_ms, 0);
	v->clock.mono_ns = virtual_ns;
	v->clock.wall_ms = virtual_wall_ms;
	v->clock.arg = v;
}

void clock_virtual_advance(struct clock_virtual *v, uint64_t by_ns)
{
	add_acq_rel(&v->ns, by_ns);                                         /* A */
}
