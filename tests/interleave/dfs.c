/* tests/interleave/dfs.c - every order of a few threads' steps, depth first.
 *
 * Threads are coroutines. dfs_point, called before each shared access, picks who makes the next
 * step; the picks of one run are a path, and the next run takes the last pick that has another
 * choice left. Going on with another thread although the current one could is a preemption; only
 * paths with at most `bound` of them are tried (all orders, if the bound is large enough).
 *
 * dfs [case]... [--bound=N] [--full] [--random=RUNS --seed=N] [--list] [--limit=RUNS] [--seconds=N]
 * One line per case. Exit 0: nothing found; 1: a case failed, and its last steps are shown.
 */
#include "tests/interleave/world.h"

#include "core/mem.h"
#include "core/must.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#define STEPS_MAX 3000
#define STACK (64u << 10)
#define TRACE 60

struct world *w;
uint64_t ring_life;

enum { READY, PAUSED, ASLEEP, DONE };

static struct {
	int        state;
	uint64_t   writes;
	uint64_t   seen;                /* PAUSED: until others have written more than this */
	const void *futex;              /* ASLEEP on it                             */
	bool       made;
	jmp_buf    at;
	ucontext_t start;
	char       stack[STACK];
} threads[THREADS_MAX];

static struct {
	const struct a_case *c;
	int       current;              /* -1: setup or finish */
	uint64_t  writes, steps, preemptions, bound;
	jmp_buf   back;
	uint32_t  depth;
	struct { uint8_t pick, choices; } path[STEPS_MAX];
	struct { const char *file; int line, thread; } trace[STEPS_MAX];
	bool      random;
	uint64_t  rng, runs;
} s;

/* ── failure ───────────────────────────────────────────────────────────────────────────────────── */
void check_failed(const char *claim, const char *file, int line)
{
	printf("  FAIL  dfs %s: expected %s (%s:%d), run %llu\n", s.c->name, claim, file, line,
	       (unsigned long long)s.runs + 1);
	for (uint64_t i = s.steps > TRACE ? s.steps - TRACE : 0; i < s.steps && i < STEPS_MAX; i++)
		printf("        %d %*s%s:%d\n", s.trace[i].thread, 4 * s.trace[i].thread, "",
		       s.trace[i].file, s.trace[i].line);
	fflush(stdout);
	_Exit(1);
}

noreturn void must_fail(const char *what, const char *file, int line)
{
	check_failed(what, file, line);
	abort();
}

/* ── who goes on ───────────────────────────────────────────────────────────────────────────────── */
static bool can_go(int t)
{
	return threads[t].state == READY ||
	       (threads[t].state == PAUSED && s.writes - threads[t].writes != threads[t].seen);
}

static uint64_t random_next(void)
{
	s.rng ^= s.rng << 13;
	s.rng ^= s.rng >> 7;
	s.rng ^= s.rng << 17;
	return s.rng;
}

/* The next thread; -1: all are done. */
static int pick(void)
{
	int  choice[THREADS_MAX];
	int  n = 0, at = 0;
	bool going = s.current >= 0 && can_go(s.current);

	if (going)
		choice[n++] = s.current;
	if (!going || s.random || s.preemptions < s.bound)
		for (int t = 0; t < s.c->threads; t++)
			if (t != s.current && can_go(t))
				choice[n++] = t;
	if (n == 0) {
		for (int t = 0; t < s.c->threads; t++)
			if (threads[t].state != DONE)
				check_failed("somebody can go on", __FILE__, __LINE__);
		return -1;
	}
	if (n > 1 && s.random) {
		uint64_t r = random_next() >> 20;

		at = going && r % 3 ? 0 : (int)(r / 3 % (uint64_t)n);
	} else if (n > 1) {
		if (s.path[s.depth].choices == 0)
			s.path[s.depth].choices = (uint8_t)n;
		at = s.path[s.depth++].pick;
	}
	s.preemptions += going && at > 0;
	return choice[at];
}

static void go_on(int from)
{
	int to = pick();

	if (to == from)
		return;
	if (from >= 0 && _setjmp(threads[from].at))
		return;
	s.current = to;
	_longjmp(to < 0 ? s.back : threads[to].at, 1);
}

void dfs_point(const char *file, int line)
{
	int me = s.current;

	if (me < 0)
		return;
	if (s.c->watch)
		s.c->watch();
	threads[me].state = READY;
	go_on(me);
	if (s.steps >= STEPS_MAX)
		check_failed("it ends", file, line);
	s.trace[s.steps].file = file;
	s.trace[s.steps].line = line;
	s.trace[s.steps++].thread = me;
}

void dfs_wrote(void)
{
	s.writes++;
	if (s.current >= 0)
		threads[s.current].writes++;
}

void pause_here(void)
{
	int      me = s.current;
	uint64_t others;

	if (me < 0)
		check_failed("finish has nobody to wait for", __FILE__, __LINE__);
	others = s.writes - threads[me].writes;
	if (threads[me].seen == others) {       /* nothing new since the last time: wait for it */
		threads[me].state = PAUSED;
		go_on(me);
		threads[me].state = READY;
		others = s.writes - threads[me].writes;
	}
	threads[me].seen = others;
}

/* futex.c's only system call: sleep on a word while it has a value, wake who sleeps on it. */
long fake_syscall(long number, ...)
{
	va_list args;
	int     me = s.current;

	va_start(args, number);
	atomic_u32 *word = va_arg(args, atomic_u32 *);
	int         op = va_arg(args, int);
	uint32_t    value = va_arg(args, uint32_t);
	va_end(args);
	must(number == SYS_futex);
	DFS_POINT();
	if (op == FUTEX_WAIT_PRIVATE && *word == value) {
		threads[me].futex = word;
		threads[me].state = ASLEEP;
		go_on(me);
	} else if (op == FUTEX_WAKE_PRIVATE) {
		for (int t = 0; t < s.c->threads; t++)
			if (threads[t].state == ASLEEP && threads[t].futex == word)
				threads[t].state = READY;
	}
	return 0;
}

/* ── memory: an arena that is cleared between the runs ─────────────────────────────────────────── */
static struct { char bytes[256 << 10] __attribute__((aligned(64))); size_t used; } arena;

void *mem_aligned(size_t align, size_t bytes)
{
	size_t at = (arena.used + align - 1) & ~(align - 1);

	must(at + bytes <= sizeof arena.bytes);
	arena.used = at + bytes;
	return arena.bytes + at;
}

void *mem_alloc(size_t bytes) { return mem_aligned(16, bytes); }
void mem_free(void *p, size_t bytes) { (void)p; (void)bytes; }
void *mem_reserve(size_t bytes) { (void)bytes; return mem_aligned(64, 8192); }
void mem_unreserve(void *p, size_t bytes) { (void)p; (void)bytes; }
void rings_construct(struct rings *rs, uint32_t class_no, uint32_t n) { (void)rs; (void)class_no; (void)n; }
void things_construct(struct slab *slab, uint32_t n) { (void)slab; (void)n; }

/* ── runs ──────────────────────────────────────────────────────────────────────────────────────── */
static void thread_main(int t)
{
	for (;;) {
		if (_setjmp(threads[t].at) == 0)
			_longjmp(s.back, 1);            /* made; waits for its first step */
		s.c->run(t);
		threads[t].state = DONE;
		int to = pick();
		s.current = to;
		if (_setjmp(threads[t].at) == 0)
			_longjmp(to < 0 ? s.back : threads[to].at, 1);
	}
}

static void make_threads(void)
{
	for (int t = 0; t < THREADS_MAX; t++) {
		getcontext(&threads[t].start);
		threads[t].start.uc_stack.ss_sp = threads[t].stack;
		threads[t].start.uc_stack.ss_size = STACK;
		threads[t].start.uc_link = NULL;
		makecontext(&threads[t].start, (void (*)(void))thread_main, 1, t);
	}
}

static void one_run(void)
{
	static struct world world;

	memset(&world, 0, sizeof world);
	memset(arena.bytes, 0, arena.used);
	arena.used = 0;
	w = &world;
	s.current = -1;
	s.depth = 0;
	s.writes = s.steps = s.preemptions = 0;
	ring_life = UINT64_C(1) << 31;
	s.c->setup();
	for (int t = 0; t < s.c->threads; t++) {
		threads[t].state = READY;
		threads[t].writes = 0;
		threads[t].seen = UINT64_MAX;
		if (_setjmp(s.back) == 0) {
			if (threads[t].made)
				_longjmp(threads[t].at, 1);
			threads[t].made = true;
			setcontext(&threads[t].start);
		}
	}
	if (_setjmp(s.back) == 0) {
		int to = pick();
		s.current = to;
		_longjmp(threads[to].at, 1);
	}
	s.current = -1;
	s.c->finish();
	s.runs++;
}

static bool next_path(void)
{
	for (uint32_t d = s.depth; d-- > 0; ) {
		if (s.path[d].pick + 1 < s.path[d].choices) {
			s.path[d].pick++;
			memset(&s.path[d + 1], 0, (s.depth - d) * sizeof s.path[0]);
			return true;
		}
	}
	return false;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct {
	bool     full, list;
	uint64_t bound, random, seed, limit;
	double   seconds;
} opt = { .bound = UINT64_MAX, .seed = 1, .limit = UINT64_MAX };

static void try_case(const struct a_case *c)
{
	double began = seconds();
	bool   more = true;

	s.c = c;
	s.runs = 0;
	s.bound = opt.bound != UINT64_MAX ? opt.bound : opt.full ? c->full_bound : c->bound;
	s.random = opt.random > 0;
	s.rng = opt.seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	memset(s.path, 0, sizeof s.path);
	while (more && s.runs < opt.limit) {
		one_run();
		more = s.random ? s.runs < opt.random : next_path();
		if (opt.seconds > 0 && s.runs % 1024 == 0 && seconds() - began > opt.seconds)
			break;
	}
	printf("  ok    dfs %-24s %9llu schedules, %s %llu%s %7.2f s\n", c->name,
	       (unsigned long long)s.runs, s.random ? "random, seed" : "preemptions <=",
	       (unsigned long long)(s.random ? opt.seed : s.bound), more && !s.random ? " (cut)" : "",
	       seconds() - began);
	fflush(stdout);
}

static uint64_t number(const char *arg) { return strtoull(strchr(arg, '=') + 1, NULL, 10); }

int main(int argc, char **argv)
{
	const struct a_case *all[] = { mailbox_cases, lane_cases, sched_cases, journal_cases };
	int names = 0;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--bound=", 8)) opt.bound = number(argv[i]);
		else if (!strncmp(argv[i], "--random=", 9)) opt.random = number(argv[i]);
		else if (!strncmp(argv[i], "--seed=", 7)) opt.seed = number(argv[i]);
		else if (!strncmp(argv[i], "--limit=", 8)) opt.limit = number(argv[i]);
		else if (!strncmp(argv[i], "--seconds=", 10)) opt.seconds = (double)number(argv[i]);
		else if (!strcmp(argv[i], "--full")) opt.full = true;
		else if (!strcmp(argv[i], "--list")) opt.list = true;
		else argv[1 + names++] = argv[i];
	}
	make_threads();
	for (size_t g = 0; g < sizeof all / sizeof all[0]; g++)
		for (const struct a_case *c = all[g]; c->name; c++) {
			bool wanted = names == 0;

			for (int i = 0; i < names; i++)
				wanted |= !strcmp(argv[1 + i], c->name);
			if (opt.list)
				puts(c->name);
			else if (wanted)
				try_case(c);
		}
	return 0;
}
