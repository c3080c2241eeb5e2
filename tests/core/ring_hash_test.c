/* tests/core/ring_hash_test.c */
#include "core/ring_hash.h"

#include "tests/lib/test.h"

#define KEYS 100000

static struct ring_hash ring, bigger;

static void every_core_gets_its_share(void)
{
	for (unsigned cores = 1; cores <= 16; cores++) {
		unsigned share[16] = {0};

		ring_hash_init(&ring, cores);
		for (unsigned p = 0; p < RING_HASH_PARTITIONS; p++) {
			EXPECT(ring.owner[p] < cores);
			share[ring.owner[p] % 16]++;
		}
		for (unsigned c = 0; c < cores; c++) {
			EXPECT(share[c] * cores * 4 >= RING_HASH_PARTITIONS * 3);
			EXPECT(share[c] * cores * 4 <= RING_HASH_PARTITIONS * 5);
		}
	}
}

static void more_cores_take_their_share_and_no_more(void)
{
	uint64_t rng = test_seed;
	unsigned moved = 0;

	ring_hash_init(&ring, 4);
	ring_hash_init(&bigger, 6);
	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t hash = test_random(&rng);
		uint16_t before = ring_hash_owner(&ring, hash);
		uint16_t after = ring_hash_owner(&bigger, hash);

		if (before == after)
			continue;
		moved++;
		EXPECT(after >= 4);
	}
	EXPECT(moved > KEYS / 100 * 25);
	EXPECT(moved < KEYS / 100 * 42);
}

static void fewer_cores_move_only_what_has_lost_its_home(void)
{
	for (unsigned cores = 2; cores <= 64; cores++) {
		ring_hash_init(&bigger, cores);
		ring_hash_init(&ring, cores - 1);
		for (unsigned p = 0; p < RING_HASH_PARTITIONS; p++)
			if (bigger.owner[p] != cores - 1)
				EXPECT_EQ(ring.owner[p], bigger.owner[p]);
	}
}

static void a_hash_keeps_its_home_from_one_start_to_the_next(void)
{
	uint64_t rng = test_seed;

	ring_hash_init(&ring, 12);
	ring_hash_init(&bigger, 12);
	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t hash = test_random(&rng);
		EXPECT_EQ(ring_hash_owner(&ring, hash), ring_hash_owner(&bigger, hash));
	}
}

static void the_partition_is_the_top_twelve_bits(void)
{
	EXPECT_EQ(ring_hash_partition(0), 0);
	EXPECT_EQ(ring_hash_partition(UINT64_MAX), RING_HASH_PARTITIONS - 1);
	EXPECT_EQ(ring_hash_partition(UINT64_MAX >> RING_HASH_BITS), 0);
	EXPECT_EQ(ring_hash_partition(UINT64_C(1) << (64 - RING_HASH_BITS)), 1);
}

static void a_big_machine_leaves_no_core_without_work(void)
{
	unsigned share[256] = {0};

	ring_hash_init(&ring, 256);
	for (unsigned p = 0; p < RING_HASH_PARTITIONS; p++)
		share[ring.owner[p] % 256]++;
	for (unsigned c = 0; c < 256; c++)
		EXPECT(share[c] > 0);
	ring_hash_init(&ring, UINT16_MAX);
}

TEST_MAIN(
	TEST(every_core_gets_its_share, "US-11"),
	TEST(more_cores_take_their_share_and_no_more, "US-11 LC-24"),
	TEST(fewer_cores_move_only_what_has_lost_its_home, "LC-24"),
	TEST(a_hash_keeps_its_home_from_one_start_to_the_next, "LC-24"),
	TEST(the_partition_is_the_top_twelve_bits),
	TEST(a_big_machine_leaves_no_core_without_work, "US-11"))
