/* tests/core/clock_test.c */
#include "core/clock.h"

#include "tests/lib/test.h"

static void the_real_clock_never_goes_back(void)
{
	struct clock c;
	uint64_t last = 0;

	clock_real(&c);
	for (int i = 0; i < 10000; i++) {
		uint64_t t = clock_now_ns(&c);
		EXPECT(t >= last);
		last = t;
	}
	EXPECT(last > 0);
}

static bool a_millisecond_later(void *start)
{
	struct clock c;

	clock_real(&c);
	return clock_now_ns(&c) >= *(uint64_t *)start + 1000000;
}

static void the_real_clock_counts_nanoseconds(void)
{
	struct clock c;

	clock_real(&c);
	uint64_t start = clock_now_ns(&c);
	EXPECT(test_wait_until(a_millisecond_later, &start, 2000));
}

static void a_virtual_clock_stands_still_until_moved(void)
{
	struct clock_virtual v;

	clock_virtual_init(&v, 7);
	EXPECT_EQ(clock_now_ns(&v.clock), 7);
	EXPECT_EQ(clock_now_ns(&v.clock), 7);
	clock_virtual_advance(&v, 1000);
	EXPECT_EQ(clock_now_ns(&v.clock), 1007);
}

TEST_MAIN(
	TEST(the_real_clock_never_goes_back),
	TEST(the_real_clock_counts_nanoseconds),
	TEST(a_virtual_clock_stands_still_until_moved))
