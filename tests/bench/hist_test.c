/* tests/bench/hist_test.c - percentiles are believed only if they are right. */
#include "bench/hist.h"

#include "tests/lib/test.h"

#include <string.h>

static struct hist h, other;

static bool near(uint64_t got, uint64_t exact)      /* within 1.6 %, never below */
{
	return got >= exact && (double)got <= (double)exact * 1.016 + 1;
}

static void every_percentile_is_within_1_6_percent(void)
{
	static const double shares[] = { 0.5, 0.9, 0.99, 0.999 };
	enum { VALUES = 100000 };

	for (uint64_t unit = 1; unit <= 10000000; unit *= 10) {      /* up to 1000 s */
		memset(&h, 0, sizeof h);
		for (uint64_t i = 1; i <= VALUES; i++)
			hist_add(&h, i * unit);
		for (unsigned k = 0; k < sizeof shares / sizeof shares[0]; k++) {
			uint64_t exact = ((uint64_t)((double)VALUES * shares[k]) + 1) * unit;

			EXPECT(near(hist_at(&h, shares[k]), exact));
		}
		EXPECT_EQ(hist_at(&h, 1), VALUES * unit);
	}
}

static void minutes_are_kept_apart(void)
{
	memset(&h, 0, sizeof h);
	hist_add_many(&h, 60u * 1000000000ull, 98);
	hist_add_many(&h, 600u * 1000000000ull, 2);
	EXPECT(near(hist_at(&h, 0.5), 60u * 1000000000ull));
	EXPECT(near(hist_at(&h, 0.99), 600u * 1000000000ull));
}

static void many_at_once_are_the_same_as_one_by_one(void)
{
	memset(&h, 0, sizeof h);
	memset(&other, 0, sizeof other);
	for (uint64_t v = 1; v < 1000000; v = v * 3 + 1) {
		hist_add_many(&h, v, v % 7);
		for (uint64_t i = 0; i < v % 7; i++)
			hist_add(&other, v);
	}
	EXPECT_EQ(h.count, other.count);
	EXPECT(memcmp(h.steps, other.steps, sizeof h.steps) == 0);
}

static void merged_parts_are_the_whole(void)
{
	memset(&h, 0, sizeof h);
	memset(&other, 0, sizeof other);
	hist_add_many(&h, 100, 99);
	hist_add_many(&other, 5000, 1);
	hist_merge(&h, &other);
	EXPECT_EQ(h.count, 100);
	EXPECT(near(hist_at(&h, 0.5), 100));
	EXPECT_EQ(hist_at(&h, 0.999), 5000);
}

static void an_empty_one_says_zero(void)
{
	memset(&h, 0, sizeof h);
	EXPECT_EQ(hist_at(&h, 0.99), 0);
}

TEST_MAIN(
	TEST(every_percentile_is_within_1_6_percent),
	TEST(minutes_are_kept_apart),
	TEST(many_at_once_are_the_same_as_one_by_one),
	TEST(merged_parts_are_the_whole),
	TEST(an_empty_one_says_zero))
