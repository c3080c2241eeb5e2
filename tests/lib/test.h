/* tests/lib/test.h - what a test program is made of.
 *
 *	static void a_full_ring_refuses(void) { EXPECT(!mpsc_push(&q, fake(5))); }
 *
 *	TEST_MAIN(
 *		TEST(a_full_ring_refuses, "MB-02 MB-16"),   the string: SPEC ids it proves
 *		TEST(an_empty_ring_gives_nothing))
 *
 * program [substring]... [--seed=N] [--list]     run the tests whose names contain a substring.
 * Exit 0: all passed, 1: some failed, 77: all skipped. The last line is always
 * "<program>: N passed, N failed". TEST_TIMES=1: also the seconds of each test (SLOW=1 make unit).
 *
 * Owns     the count of failures of the running test, and the seed.
 * Threads  EXPECT, EXPECT_EQ, test_skip, test_random, test_wait_until: any. Tests run one by one.
 * Never    ends a test early: an EXPECT that fails is reported, and the test goes on.
 */
#ifndef NOH_TESTS_LIB_TEST_H
#define NOH_TESTS_LIB_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test {
	const char *name;
	void      (*run)(void);
	const char *proves;
};

/* Both are true if the claim holds, for tests that would only stumble on. */
#define EXPECT(cond) test_expect(!!(cond), #cond, __FILE__, __LINE__)
#define EXPECT_EQ(a, b)                                                                            \
	test_expect_eq((long long)(a), (long long)(b), #a, #b, __FILE__, __LINE__)

#define TEST(...) TEST_ENTRY(__VA_ARGS__, "", )
#define TEST_ENTRY(fn, ids, ...) { #fn, fn, "" ids }
#define TEST_MAIN(...)                                                                             \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		static const struct test tests[] = { __VA_ARGS__ };                                \
		return test_main(argc, argv, tests, sizeof tests / sizeof tests[0]);               \
	}

/* Set before the first test runs: --seed=N, or taken from the system. Printed on failure. */
extern uint64_t test_seed;

/* The next number of a sequence that starts with *state; begin with a copy of test_seed. */
uint64_t test_random(uint64_t *state);

/* How often, how many: a sanitizer is slow, so there it is few, unless make stress asks for all of it with
 * TEST_FULL=1. The claim is the same; what is random gets there in more runs. */
uint64_t test_size(uint64_t full, uint64_t few);

/* Ask again and again until cond(arg) holds. False if it did not within ms milliseconds. */
bool test_wait_until(bool (*cond)(void *arg), void *arg, unsigned ms);

/* This machine cannot run the current test: it counts as neither passed nor failed. */
void test_skip(const char *why);

int test_main(int argc, char **argv, const struct test *tests, size_t count);
void test_failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline bool test_expect(bool ok, const char *text, const char *file, int line)
{
	if (!ok)
		test_failed(file, line, "expected %s", text);
	return ok;
}

static inline bool test_expect_eq(long long a, long long b, const char *a_text, const char *b_text,
				  const char *file, int line)
{
	if (a != b)
		test_failed(file, line, "expected %s == %s, got %lld and %lld (%#llx and %#llx)",
			    a_text, b_text, a, b, (unsigned long long)a, (unsigned long long)b);
	return a == b;
}

#endif
