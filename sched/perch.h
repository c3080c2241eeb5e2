/* sched/perch.h - on which core a worker sits while it writes the records of a lone caller.
 *
 * A disk's interrupts go to one core. A worker that waits for its write on another one is woken from there, and its own core
 * first has to wake up: on a virtual machine a write of 165 us takes it 250 (and on other machines it is the other way round). While
 * a worker has nothing to do but such writes it does not matter where it sits, so it tries: some writes on the core of another
 * worker, and it stays there if they were quicker by a fifth. Tries that came to nothing are repeated ever more seldom. With
 * other work it goes back to its own core.
 *
 * Owns     nothing.   Threads  the worker.
 */
#ifndef NOH_SCHED_PERCH_H
#define NOH_SCHED_PERCH_H

#include <stdbool.h>
#include <stdint.h>

enum { PERCH_WRITES = 32, PERCH_SOON = 64, PERCH_LATE = 4096, PERCH_BUSY = 16 };

struct perch {
	uint32_t home, at;               /* places are numbers of workers                              */
	uint32_t best, next;             /* where writes are quickest; the last one that was tried     */
	uint32_t writes, tries;          /* of this look; of all                                       */
	uint32_t looks, every;           /* since the last try; how many come between two              */
	uint32_t busy;                   /* how often there was other work since the last write        */
	bool     trying;
	uint64_t sum_ns, best_ns;        /* of this look; what a write takes at the best place         */
};

static inline struct perch perch_at(uint32_t home)
{
	return (struct perch){ .home = home, .at = home, .best = home, .next = home };
}

static inline uint32_t perch_go(struct perch *p, uint32_t to)
{
	p->writes = p->busy = 0;
	p->sum_ns = 0;
	return p->at = to;
}

static inline uint32_t perch_try(struct perch *p, uint32_t places)
{
	p->next = (p->next + 1) % places;
	if (p->next == p->best)
		p->next = (p->next + 1) % places;
	p->trying = true;
	p->looks = 0;
	p->tries++;
	return perch_go(p, p->next);
}

/* All were tried once: now and then one again, and if nothing comes of it, ever more seldom. */
static inline uint32_t perch_settle(struct perch *p, uint32_t places, uint64_t mean_ns)
{
	bool quicker = mean_ns * 5 < p->best_ns * 4;

	p->trying = false;
	if (quicker) {
		p->best = p->at;
		p->best_ns = mean_ns;
	}
	if (p->tries + 1 >= places)
		p->every = quicker || !p->every ? PERCH_SOON : p->every < PERCH_LATE ? p->every * 2 : PERCH_LATE;
	return perch_go(p, p->best);
}

/* A write took so long. Where to write the next one. */
static inline uint32_t perch_wrote(struct perch *p, uint32_t places, uint64_t took_ns)
{
	uint64_t most = p->best_ns ? p->best_ns * 4 : UINT64_MAX, mean;

	p->busy = 0;
	if (!p->trying && p->at != p->best)
		return perch_go(p, p->best);     /* it was at home, for other work */
	p->sum_ns += took_ns < most ? took_ns : most;    /* one that the disk was slow with says little */
	if (++p->writes < PERCH_WRITES)
		return p->at;
	mean = p->sum_ns / PERCH_WRITES;
	if (p->trying)
		return perch_settle(p, places, mean);
	p->best_ns = mean;
	return places > 1 && p->looks++ >= p->every ? perch_try(p, places) : perch_go(p, p->at);
}

/* There is other work. Where to do it. */
static inline uint32_t perch_busy(struct perch *p)
{
	if (p->at == p->home || ++p->busy < PERCH_BUSY)
		return p->at;
	p->trying = false;
	return perch_go(p, p->home);
}

#endif
