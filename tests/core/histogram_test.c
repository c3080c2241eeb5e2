/* tests/core/histogram_test.c - a value is in the first bucket that is large enough for it. */
#include "core/histogram.h"
#include "tests/lib/test.h"

#include <string.h>

static const struct histogram_scale *const scales[] = { &histogram_latency, &histogram_fine, &histogram_batch,
							&histogram_group };

static void bounds_grow_and_belong_to_their_bucket(void)
{
	for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++) {
		const struct histogram_scale *s = scales[k];
		struct histogram h;
		struct histogram_sum sum = { .count = 0 };

		memset(&h, 0, sizeof h);
		EXPECT(s->count <= HISTOGRAM_BOUNDS);
		for (uint32_t i = 0; i < s->count; i++) {
			EXPECT(s->bounds[i] > (i ? s->bounds[i - 1] : 0));
			histogram_add(&h, s, s->bounds[i]);      /* the last that is in it ... */
			histogram_add(&h, s, s->bounds[i] + 1);  /* ... and the first that is not */
		}
		histogram_collect(&sum, &h);
		EXPECT_EQ(sum.buckets[0], 1);
		for (uint32_t i = 1; i < s->count; i++)
			EXPECT_EQ(sum.buckets[i], 2);
		EXPECT_EQ(sum.buckets[s->count], 1);
		EXPECT_EQ(sum.count, 2 * s->count);
	}
}

static void what_several_wrote_is_summed(void)
{
	struct histogram a, b;
	struct histogram_sum sum = { .count = 0 };

	memset(&a, 0, sizeof a);
	memset(&b, 0, sizeof b);
	histogram_add(&a, &histogram_latency, 10);
	histogram_add(&b, &histogram_latency, 30);
	histogram_add(&b, &histogram_latency, UINT64_C(40000000000));    /* 40 s: beyond all */
	histogram_collect(&sum, &a);
	histogram_collect(&sum, &b);
	EXPECT_EQ(sum.count, 3);
	EXPECT_EQ(sum.sum, UINT64_C(40000000040));
	EXPECT_EQ(sum.buckets[0], 2);
	EXPECT_EQ(sum.buckets[histogram_latency.count], 1);
}

TEST_MAIN(
	TEST(bounds_grow_and_belong_to_their_bucket),
	TEST(what_several_wrote_is_summed))
