/* tests/lib/test.c - runs a table of tests and says in words what failed. */
#include "tests/lib/test.h"

#include "core/atomic.h"
#include "persist/journal_inside.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define REPORTS_PER_TEST 20      /* a broken invariant in a hot loop must not fill the disk */

uint64_t test_seed;

const uint64_t journal_usual_segment = UINT64_C(2) << 20;        /* a sixteenth of the usual */

static struct {
	atomic_u64 failures;     /* of the running test */
	atomic_u32 skipped;
	char       epitaph[256]; /* what to say if the running test kills the program */
	size_t     epitaph_len;
} now;

static const int deadly[] = {
	SIGABRT, SIGTERM,
#ifndef NOH_SANITIZED
	SIGSEGV, SIGBUS, SIGFPE,        /* a sanitizer explains these better */
#endif
};

void test_failed(const char *file, int line, const char *format, ...)
{
	uint64_t nth = add_relaxed(&now.failures, 1) + 1;
	char text[512];
	va_list args;

	if (nth > REPORTS_PER_TEST)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	printf("%s:%d: %s\n%s", file, line, text,
	       nth == REPORTS_PER_TEST ? "  further failures of this test are only counted\n" : "");
}

void test_skip(const char *why)
{
	store_relaxed(&now.skipped, 1);
	printf("  skip: %s\n", why);
}

uint64_t test_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t test_size(uint64_t full, uint64_t few)
{
#ifdef NOH_SANITIZED
	return getenv("TEST_FULL") ? full : few;
#else
	(void)few;
	return full;
#endif
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool test_wait_until(bool (*cond)(void *arg), void *arg, unsigned ms)
{
	const struct timespec nap = { .tv_nsec = 200 * 1000 };
	uint64_t deadline = now_ms() + ms;

	for (unsigned tries = 0; !cond(arg); tries++) {
		if (now_ms() >= deadline)
			return cond(arg);
		if (tries < 100)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return true;
}

static void in_words(const char *name, char *out, size_t room)
{
	snprintf(out, room, "%s", name);
	for (; *out; out++)
		if (*out == '_')
			*out = ' ';
}

static void die_with_a_word(int sig)
{
	ssize_t ignored = write(STDOUT_FILENO, now.epitaph, now.epitaph_len);

	(void)ignored;
	raise(sig);              /* SA_RESETHAND: this one is deadly */
}

static void watch_signals(void)
{
	struct sigaction act = { .sa_handler = die_with_a_word, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
		sigaction(deadly[i], &act, NULL);
}

/* 1 passed, 0 skipped, -1 failed */
static int run_one(const struct test *t)
{
	char words[160];

	in_words(t->name, words, sizeof words);
	store_relaxed(&now.failures, 0);
	store_relaxed(&now.skipped, 0);
	int len = snprintf(now.epitaph, sizeof now.epitaph, "  DIED  %s (--seed=%" PRIu64 ")\n",
			   words, test_seed);
	now.epitaph_len = len < (int)sizeof now.epitaph ? (size_t)len : sizeof now.epitaph - 1;
	uint64_t began = now_ms();
	t->run();
	if (getenv("TEST_TIMES"))
		printf("  time  %.3f %s\n", (double)(now_ms() - began) / 1000, words);
	uint64_t failures = load_relaxed(&now.failures);

	if (failures == 0)
		return load_relaxed(&now.skipped) ? 0 : 1;
	printf("  FAIL  %s%s%s (%" PRIu64 " times, --seed=%" PRIu64 ")\n", words,
	       *t->proves ? ", which proves " : "", t->proves, failures, test_seed);
	return -1;
}

static void list(const struct test *tests, size_t count)
{
	char words[160];

	for (size_t i = 0; i < count; i++) {
		in_words(tests[i].name, words, sizeof words);
		printf("%s\t%s\n", words, tests[i].proves);
	}
}

static bool picked(int argc, char **argv, const char *name)
{
	bool any = false;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			continue;
		if (strstr(name, argv[i]))
			return true;
		any = true;
	}
	return !any;
}

int test_main(int argc, char **argv, const struct test *tests, size_t count)
{
	unsigned passed = 0, failed = 0, skipped = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getrandom(&test_seed, sizeof test_seed, 0) != (ssize_t)sizeof test_seed)
		test_seed = now_ms();
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--seed=", 7) == 0) {
			test_seed = strtoull(argv[i] + 7, NULL, 0);
		} else if (strcmp(argv[i], "--list") == 0) {
			list(tests, count);
			return 0;
		} else if (argv[i][0] == '-') {
			fprintf(stderr, "usage: %s [substring]... [--seed=N] [--list]\n", argv[0]);
			return 2;
		}
	}
	watch_signals();
	for (size_t i = 0; i < count; i++) {
		if (!picked(argc, argv, tests[i].name))
			continue;
		int result = run_one(&tests[i]);
		passed += result > 0;
		skipped += result == 0;
		failed += result < 0;
	}
	printf("%s: %u passed, %u failed\n", argv[0], passed, failed);
	return failed ? 1 : skipped && !passed ? 77 : 0;
}
