/* tests/core/bucket_test.c - tokens: never more than burst and time allow, never lost, in the order asked for. */
#include "core/bucket.h"

#include "tests/lib/test.h"

#include <pthread.h>

#define MS UINT64_C(1000000)
#define NOW (1000 * MS)

static const struct rate ten = { 100 * MS, 500 * MS };         /* ten a second, five at once */

static void a_full_bucket_gives_its_burst_and_no_more(void)
{
	atomic_u64 b = 0;

	EXPECT_EQ(bucket_wait_ns(&b, NOW, ten), 0);
	EXPECT_EQ(bucket_take(&b, NOW, ten, 2), 2);
	EXPECT_EQ(bucket_take(&b, NOW, ten, 100), 3);
	EXPECT_EQ(bucket_take(&b, NOW, ten, 1), 0);
	EXPECT_EQ(bucket_wait_ns(&b, NOW, ten), 100 * MS);
}

static void tokens_come_at_the_rate(void)
{
	atomic_u64 b = 0;

	EXPECT_EQ(bucket_take(&b, NOW, ten, 5), 5);
	EXPECT_EQ(bucket_take(&b, NOW + 100 * MS - 1, ten, 1), 0);
	EXPECT_EQ(bucket_take(&b, NOW + 100 * MS, ten, 2), 1);
	EXPECT_EQ(bucket_take(&b, NOW + 350 * MS, ten, 9), 2);
	EXPECT_EQ(bucket_wait_ns(&b, NOW + 350 * MS, ten), 50 * MS);
}

static void a_bucket_that_nobody_used_is_full_and_not_fuller(void)
{
	atomic_u64 b = 0;

	EXPECT_EQ(bucket_take(&b, NOW, ten, 5), 5);
	EXPECT_EQ(bucket_take(&b, NOW + 86400000 * MS, ten, 1000), 5);
}

static void reserved_tokens_come_one_after_the_other(void)
{
	atomic_u64 b = 0;

	EXPECT_EQ(bucket_reserve(&b, NOW, ten, 5), NOW);
	EXPECT_EQ(bucket_reserve(&b, NOW, ten, 1), NOW + 100 * MS);
	EXPECT_EQ(bucket_reserve(&b, NOW, ten, 2), NOW + 300 * MS);
	EXPECT_EQ(bucket_take(&b, NOW + 300 * MS, ten, 1), 0);          /* they are somebody's */
	EXPECT_EQ(bucket_take(&b, NOW + 400 * MS, ten, 9), 1);
}

static void what_is_given_back_can_be_taken_again(void)
{
	atomic_u64 b = 0;

	EXPECT_EQ(bucket_take(&b, NOW, ten, 5), 5);
	bucket_give(&b, NOW, ten, 2);
	EXPECT_EQ(bucket_take(&b, NOW, ten, 9), 2);
	bucket_give(&b, NOW + 400 * MS, ten, 5);
	EXPECT_EQ(bucket_take(&b, NOW + 400 * MS, ten, 9), 5);          /* full, not more */
	bucket_give(&b, NOW + 9000 * MS, ten, 5);
	EXPECT_EQ(bucket_take(&b, NOW + 9000 * MS, ten, 9), 5);
}

/* Whoever takes what and when: in no stretch of time is there more than a burst and what came meanwhile. */
static void no_stretch_of_time_has_more_than_its_share(void)
{
	enum { TAKES = 400 };
	uint64_t at[TAKES], rng = test_seed, now = NOW;
	uint32_t n[TAKES];
	atomic_u64 b = 0;

	for (int i = 0; i < TAKES; i++) {
		now += test_random(&rng) % (150 * MS);
		at[i] = now;
		n[i] = bucket_take(&b, now, ten, 1 + (uint32_t)(test_random(&rng) % 7));
	}
	for (int i = 0; i < TAKES; i++) {
		uint64_t sum = 0;

		for (int j = i; j < TAKES; j++) {
			sum += n[j];
			if (!EXPECT(sum <= 5 + (at[j] - at[i]) / (100 * MS) + 1))
				return;
		}
	}
}

/* ── several at once ── */

enum { TAKERS = 4, BURST = 20000 };
static const struct rate many = { 1000, 1000 * (uint64_t)BURST };
static atomic_u64 shared_bucket;
static uint32_t got[TAKERS];

static void *taker(void *arg)
{
	uint32_t *mine = arg, n;

	while ((n = bucket_take(&shared_bucket, NOW, many, 3)) > 0) {
		*mine += n;
		if (n == 3) {
			bucket_give(&shared_bucket, NOW, many, 1);
			*mine -= 1;
		}
	}
	return NULL;
}

static void several_takers_get_each_token_once(void)
{
	pthread_t threads[TAKERS];
	uint32_t sum = 0;

	store_relaxed(&shared_bucket, 0);
	for (int i = 0; i < TAKERS; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, taker, &got[i]), 0);
	for (int i = 0; i < TAKERS; i++) {
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
		sum += got[i];
	}
	/* Who gave one back last may have come after the others had gone. */
	sum += bucket_take(&shared_bucket, NOW, many, BURST);
	EXPECT_EQ(sum, BURST);
}

TEST_MAIN(
	TEST(a_full_bucket_gives_its_burst_and_no_more, "MB-11"),
	TEST(tokens_come_at_the_rate, "MB-11"),
	TEST(a_bucket_that_nobody_used_is_full_and_not_fuller, "MB-11"),
	TEST(reserved_tokens_come_one_after_the_other, "MB-11"),
	TEST(what_is_given_back_can_be_taken_again),
	TEST(no_stretch_of_time_has_more_than_its_share, "MB-11"),
	TEST(several_takers_get_each_token_once, "MB-11"))
