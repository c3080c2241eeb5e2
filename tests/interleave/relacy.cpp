/* tests/interleave/relacy.cpp - the same cases under Relacy: weak memory, and races on plain memory.
 * The product's sources are part of this one file; run.sh copies them and marks the plain memory
 * (slots, links of the system lane, the run queue's array) as tracked, nothing else.
 *
 * relacy [case]... [--random=N [--from=N]] [--bound=N] [--sites] [--quiet]
 *        [--weaken=file:line:operation:order]     order: relaxed acquire release acq_rel fail
 */
#include "tests/interleave/world.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/time.h>

static long fake_syscall(long number, atomic_u32 *word, int op, uint32_t value, ...);
#define syscall fake_syscall

#include "core/mem.h"
#include "core/must.h"

#include "mailbox/mailbox.c"
#include "mailbox/ring.c"
#include "core/slab.c"
#include "core/futex.c"
#include "sched/runq.c"
#include "sched/park.c"
#include "persist/gather.c"

struct world *w;
uint64_t ring_life;

#include "tests/interleave/mailbox_cases.c"
#include "tests/interleave/lane_cases.c"
#include "tests/interleave/sched_cases.c"
#include "tests/interleave/journal_cases.c"

/* ── sites ─────────────────────────────────────────────────────────────────────────────────────── */
static struct { char where[128]; char order[16]; site *sites; } weaken;

site::site(const char *f, int l, const char *o)
	: file(f), op(o), line(l), weakened(false), next(weaken.sites)
{
	char name[256];

	for (const char *p = f; (p = strchr(p, '/')) != NULL; file = ++p)
		;
	snprintf(name, sizeof name, "%s:%d:%s", file, l, o);
	weakened = strcmp(name, weaken.where) == 0;
	weaken.sites = this;
}

order_pair site::weaker(rl::memory_order success)
{
	if (!strcmp(weaken.order, "relaxed")) return order_pair{ rl::mo_relaxed, rl::mo_relaxed };
	if (!strcmp(weaken.order, "acquire")) return order_pair{ rl::mo_acquire, rl::mo_acquire };
	if (!strcmp(weaken.order, "release")) return order_pair{ rl::mo_release, rl::mo_relaxed };
	if (!strcmp(weaken.order, "acq_rel")) return order_pair{ rl::mo_acq_rel, rl::mo_acquire };
	return order_pair{ success, rl::mo_relaxed };                /* fail */
}

/* ── what the cases and the product call ───────────────────────────────────────────────────────── */
void check_failed(const char *claim, const char *file, int line)
{
	rl::ctx().fail_test(claim, rl::test_result_user_assert_failed,
			    rl::debug_info("", file, (unsigned)line));
}
void pause_here(void) { rl::yield(1, $); }

/* Whoever waits here is woken by a change of the word: park_wake changes it first. */
static long fake_syscall(long, atomic_u32 *word, int op, uint32_t value, ...)
{
	if (op == FUTEX_WAIT_PRIVATE)
		while (word->fetch_add(0, rl::mo_relaxed, $) == value)
			rl::yield(1, $);
	return 0;
}

/* Memory of one run. What lives in it is constructed when the case says so, or when it is asked
 * for (run queue arrays), and destroyed at the end. */
static struct {
	char        *bytes;
	size_t       used;
	struct ring *ring[64];
	thing       *things[8];
	runq_array  *array[8];
	size_t       rings, thing_count, arrays;
} arena;

static void *arena_take(size_t bytes)
{
	char *p = arena.bytes + ((arena.used + 63) & ~(size_t)63);

	arena.used = (size_t)(p - arena.bytes) + bytes;
	must(arena.used <= (4u << 20));
	return p;
}
void *mem_reserve(size_t) { return arena_take(32 << 10); }
void mem_unreserve(void *, size_t) {}
void *mem_aligned(size_t, size_t)
{
	runq_array *a = new (arena_take(sizeof(runq_array))) runq_array();

	must(arena.arrays < 8);
	a->older = NULL;
	return arena.array[arena.arrays++] = a;
}
void *mem_alloc(size_t) { return NULL; }
void mem_free(void *, size_t) {}
void rings_construct(struct rings *rs, uint32_t class_no, uint32_t numbers)
{
	must((numbers + 1) * rs->slab[class_no].fixed.size <= (32u << 10));
	for (uint32_t n = 1; n <= numbers; n++) {
		void *at = slab_at(&rs->slab[class_no], n);

		arena.ring[arena.rings++] = new (at) ring();
	}
}
void things_construct(struct slab *slab, uint32_t numbers)
{
	for (uint32_t n = 1; n <= numbers; n++)
		arena.things[arena.thing_count++] = new (slab_at(slab, n)) thing();
}

/* ── runs ──────────────────────────────────────────────────────────────────────────────────────── */
static const a_case *current;

template <int THREADS> struct suite : rl::test_suite<suite<THREADS>, THREADS> {
	world here;

	suite() : here() {}
	void before()
	{
		arena.used = arena.rings = arena.thing_count = arena.arrays = 0;
		ring_life = UINT64_C(1) << 31;
		w = &here;
		current->setup();
	}
	void thread(unsigned t) { current->run((int)t); }
	void invariant()
	{
		if (current->watch && w == &here)
			current->watch();
	}
	void after()
	{
		current->finish();
		for (size_t i = 0; i < arena.rings; i++) arena.ring[i]->~ring();
		for (size_t i = 0; i < arena.thing_count; i++) arena.things[i]->~thing();
		for (size_t i = 0; i < arena.arrays; i++) arena.array[i]->~runq_array();
		w = NULL;
	}
};

static double seconds(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static struct { unsigned long long random, bound, from; bool sites, quiet; } opt;

/* What Relacy says: the beginning of it, in memory that it does not manage. */
static struct said : std::streambuf {
	char   text[16 << 10];
	size_t used;

	int overflow(int c)
	{
		if (used + 1 < sizeof text)
			text[used++] = (char)c;
		return c;
	}
} said;

static bool try_case(const a_case *c)
{
	static std::ostream out(&said);
	rl::test_params    &p = *new (malloc(sizeof(rl::test_params))) rl::test_params();
	double              began = seconds();
	bool                ok;

	current = c;
	w = NULL;
	said.used = 0;
	p.output_stream = p.progress_stream = &out;
	p.execution_depth_limit = 4000;
	if (opt.bound) {
		p.search_type = rl::sched_bound;
		p.context_bound = (unsigned)opt.bound;
	} else {
		p.search_type = rl::sched_random;
		p.iteration_count = opt.from + opt.random;
		if (opt.from) {
			std::ostringstream from;

			from << opt.from << " ";
			p.initial_state = from.str().c_str();
		}
	}
	ok = c->threads == 2 ? rl::simulate<suite<2> >(p) : rl::simulate<suite<3> >(p);
	printf("  %-5s relacy %-21s %9llu schedules, %s %llu %7.2f s\n", ok ? "ok" : "FAIL", c->name,
	       (unsigned long long)p.stop_iteration - opt.from,
	       opt.bound ? "preemptions <=" : "random, from", opt.bound ? opt.bound : opt.from,
	       seconds() - began);
	if (!ok && !opt.quiet)
		printf("%.*s\n", (int)said.used, said.text);
	fflush(stdout);
	return ok;
}

static unsigned long long number(const char *arg) { return strtoull(strchr(arg, '=') + 1, NULL, 10); }

int main(int argc, char **argv)
{
	const a_case *all[] = { mailbox_cases, lane_cases, sched_cases, journal_cases };
	int           names = 0;
	bool          ok = true;

	opt.random = 10000;
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];

		if (!strncmp(a, "--bound=", 8)) opt.bound = number(a);
		else if (!strncmp(a, "--random=", 9)) opt.random = number(a);
		else if (!strncmp(a, "--from=", 7)) opt.from = number(a);
		else if (!strcmp(a, "--sites")) opt.sites = true;
		else if (!strcmp(a, "--quiet")) opt.quiet = true;
		else if (!strncmp(a, "--weaken=", 9)) {
			const char *order = strrchr(a, ':');

			snprintf(weaken.where, sizeof weaken.where, "%.*s", (int)(order - a - 9), a + 9);
			snprintf(weaken.order, sizeof weaken.order, "%s", order + 1);
		} else {
			argv[1 + names++] = argv[i];
		}
	}
	arena.bytes = (char *)aligned_alloc(64, 4u << 20);
	for (size_t g = 0; ok && g < sizeof all / sizeof all[0]; g++)
		for (const a_case *c = all[g]; ok && c->name; c++) {
			bool wanted = names == 0;

			for (int i = 0; i < names; i++)
				wanted |= !strcmp(argv[1 + i], c->name);
			if (wanted)
				ok = try_case(c);
		}
	for (site *s = weaken.sites; opt.sites && s; s = s->next)
		printf("site %s:%d:%s\n", s->file, s->line, s->op);
	fflush(stdout);
	_Exit(ok ? 0 : 1);
}
