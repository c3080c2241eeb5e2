/* tests/bench/load_keys_test.c - the distributions are what they are called. */
#include "bench/load_keys.h"

#include "tests/lib/test.h"

#include <math.h>
#include <string.h>

enum { MOST = 2000, DRAWS = 400000 };
static uint64_t seen[MOST];

static void draw(const struct keys *k, uint64_t random)
{
	uint64_t next = 0;

	memset(seen, 0, sizeof seen);
	random |= 1;
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t key = keys_next(k, &random, &next);

		if (!EXPECT(key < k->count))
			return;
		seen[key]++;
	}
}

/* Pearson's chi-square over cells that expect 20 or more, the rest as one. A right sampler is within six
 * standard deviations of the degrees of freedom but once in hundreds of millions of seeds. */
static double too_far(const struct keys *k, double (*share)(const struct keys *, uint64_t rank))
{
	double chi = 0, cells = 0, rest = 0, rest_seen = 0;

	for (uint64_t rank = 1; rank <= k->count; rank++) {
		double want = share(k, rank) * DRAWS;
		double got = (double)seen[k->kind == KEYS_ZIPF ? keys_of_rank(k, rank) : rank - 1];

		if (want < 20) {
			rest += want;
			rest_seen += got;
			continue;
		}
		chi += (got - want) * (got - want) / want;
		cells++;
	}
	if (rest >= 20) {
		chi += (rest_seen - rest) * (rest_seen - rest) / rest;
		cells++;
	}
	double freedom = cells - 1;

	/* With few cells the sum is far from normal: six deviations would be met by chance once in some hundred runs. */
	return freedom > 0 ? (chi - freedom) / sqrt(2 * freedom) / (freedom < 100 ? 4 : 1) : 0;
}

static double zipf_share(const struct keys *k, uint64_t rank)
{
	static double sum, for_s;
	static uint64_t for_count;

	if (for_s < k->s || for_s > k->s || for_count != k->count) {
		sum = 0;
		for (uint64_t i = k->count; i >= 1; i--)
			sum += pow((double)i, -k->s);
		for_s = k->s;
		for_count = k->count;
	}
	return pow((double)rank, -k->s) / sum;
}

static double same_share(const struct keys *k, uint64_t rank)
{
	(void)rank;
	return 1.0 / (double)k->count;
}

static void zipf_draws_every_rank_as_often_as_it_should(void)
{
	static const double exponents[] = { 0.3, 0.75, 0.99, 1, 1.01, 1.5, 3 };
	static const uint64_t counts[] = { 2, 3, 10, 97, 1000, MOST };

	for (unsigned e = 0; e < sizeof exponents / sizeof exponents[0]; e++)
		for (unsigned c = 0; c < sizeof counts / sizeof counts[0]; c++) {
			struct keys k;

			keys_init(&k, KEYS_ZIPF, counts[c], exponents[e]);
			draw(&k, test_seed + 31 * e + c);
			EXPECT(too_far(&k, zipf_share) < 6);
		}
}

static void the_test_notices_a_slightly_different_exponent(void)
{
	struct keys k, claimed;

	keys_init(&k, KEYS_ZIPF, 1000, 0.99);
	keys_init(&claimed, KEYS_ZIPF, 1000, 0.97);
	draw(&k, test_seed);
	EXPECT(too_far(&claimed, zipf_share) > 6);
}

static void zipf_over_one_key_is_that_key(void)
{
	struct keys k;

	keys_init(&k, KEYS_ZIPF, 1, 0.99);
	draw(&k, test_seed);
	EXPECT_EQ(seen[0], DRAWS);
}

static void ranks_are_spread_over_all_keys(void)
{
	for (uint64_t count = 1; count <= 300; count++) {
		struct keys k;

		memset(seen, 0, sizeof seen);
		keys_init(&k, KEYS_ZIPF, count, 1);
		for (uint64_t rank = 1; rank <= count; rank++)
			seen[keys_of_rank(&k, rank)]++;
		for (uint64_t key = 0; key < count; key++)
			EXPECT_EQ(seen[key], 1);
	}
}

static void uniform_draws_every_key_alike(void)
{
	struct keys k;

	keys_init(&k, KEYS_UNIFORM, 777, 0);
	draw(&k, test_seed);
	EXPECT(too_far(&k, same_share) < 6);
}

static void hot_gives_one_key_its_share(void)
{
	struct keys k;

	keys_init(&k, KEYS_HOT, 1000, 0.25);
	draw(&k, test_seed);
	double want = DRAWS * (0.25 + 0.75 / 1000);
	EXPECT(fabs((double)seen[0] - want) < 6 * sqrt(want));
	keys_init(&k, KEYS_HOT, 1000, 1);
	draw(&k, test_seed);
	EXPECT_EQ(seen[0], DRAWS);
}

static void seq_gives_every_key_once_per_round(void)
{
	struct keys k;

	keys_init(&k, KEYS_SEQ, 1000, 0);
	draw(&k, test_seed);
	for (unsigned i = 0; i < 1000; i++)
		EXPECT_EQ(seen[i], DRAWS / 1000);
}

TEST_MAIN(
	TEST(zipf_draws_every_rank_as_often_as_it_should),
	TEST(the_test_notices_a_slightly_different_exponent),
	TEST(zipf_over_one_key_is_that_key),
	TEST(ranks_are_spread_over_all_keys),
	TEST(uniform_draws_every_key_alike),
	TEST(hot_gives_one_key_its_share),
	TEST(seq_gives_every_key_once_per_round))
