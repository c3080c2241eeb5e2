/* tests/core/buddy_test.c - blocks that never overlap, and neighbours that become one again. */
#include "core/buddy.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <string.h>

static struct buddy b;

static bool is_zero(const uint8_t *block, uint32_t k)
{
	size_t n = (size_t)CACHE_LINE << k;

	return block[0] == 0 && memcmp(block, block + 1, n - 1) == 0;
}

static void blocks_are_aligned_zeroed_and_side_by_side(void)
{
	EXPECT(buddy_open(&b, 1 << 22));
	uint8_t *one = buddy_take(&b, 0), *two = buddy_take(&b, 0), *big = buddy_take(&b, 3);

	EXPECT(two == one + CACHE_LINE);
	EXPECT((uintptr_t)big % (8 * CACHE_LINE) == 0);
	EXPECT(is_zero(one, 0) && is_zero(two, 0) && is_zero(big, 3));
	EXPECT((uint8_t *)buddy_take(&b, 1) == one + 2 * CACHE_LINE);     /* out of the gap */
	buddy_close(&b);
}

static void free_neighbours_become_one_block(void)
{
	EXPECT(buddy_open(&b, 1 << 22));
	uint8_t *four[4];

	for (int i = 0; i < 4; i++)
		memset(four[i] = buddy_take(&b, 0), 0xff, CACHE_LINE);
	buddy_give(&b, four[2], 0);
	buddy_give(&b, four[0], 0);
	buddy_give(&b, four[3], 0);
	buddy_give(&b, four[1], 0);
	uint8_t *all = buddy_take(&b, 2);

	EXPECT(all == four[0]);
	EXPECT(is_zero(all, 2));
	buddy_close(&b);
}

static void a_large_free_block_is_split_for_a_small_one(void)
{
	EXPECT(buddy_open(&b, 1 << 22));
	uint8_t *big = buddy_take(&b, 4);

	buddy_give(&b, big, 4);
	EXPECT((uint8_t *)buddy_take(&b, 0) == big);
	EXPECT((uint8_t *)buddy_take(&b, 3) == big + 8 * CACHE_LINE);
	EXPECT((uint8_t *)buddy_take(&b, 2) == big + 4 * CACHE_LINE);
	buddy_close(&b);
}

static void a_full_range_says_so_and_recovers(void)
{
	EXPECT(buddy_open(&b, 1 << 22));
	uint32_t n = 0;
	void *last = NULL, *block;

	while ((block = buddy_take(&b, 10)) != NULL) {
		last = block;
		n++;
	}
	EXPECT_EQ(n, (1 << 22) / (CACHE_LINE << 10));
	EXPECT(buddy_take(&b, 0) == NULL);
	EXPECT(buddy_take(&b, BUDDY_CLASSES) == NULL);
	buddy_give(&b, last, 10);
	EXPECT(buddy_take(&b, 0) == last);
	buddy_close(&b);
}

static void no_memory_is_an_answer(void)
{
	mem_fail_at(1, 0);
	EXPECT(!buddy_open(&b, 1 << 22));
	mem_fail_at(0, 0);
	EXPECT(buddy_open(&b, 1 << 22));
	mem_fail_at(1, 0);
	EXPECT(buddy_take(&b, 0) == NULL);
	mem_fail_at(0, 0);
	EXPECT(buddy_take(&b, 0) != NULL);
	buddy_close(&b);
}

/* Each block is filled with its own number; whoever overlaps another destroys it. */
static void any_order_of_takes_and_gives_keeps_blocks_apart(void)
{
	enum { MOST = 500 };
	static struct { uint8_t *at; uint32_t k; uint8_t fill; } live[MOST];
	uint64_t seed = test_seed;
	uint32_t n = 0;

	EXPECT(buddy_open(&b, 1 << 23));
	for (int step = 0; step < 20000; step++) {
		uint64_t r = test_random(&seed);

		if (n < MOST && (n == 0 || r % 100 < 52)) {
			uint32_t k = (uint32_t)(r >> 8) % 7;
			uint8_t *at = buddy_take(&b, k);

			if (!at)
				continue;
			EXPECT(is_zero(at, k));
			live[n].at = at;
			live[n].k = k;
			live[n].fill = (uint8_t)(r >> 32 | 1);
			memset(at, live[n].fill, (size_t)CACHE_LINE << k);
			n++;
		} else {
			uint32_t i = (uint32_t)(r >> 8) % n;
			size_t   bytes = (size_t)CACHE_LINE << live[i].k;

			EXPECT(live[i].at[0] == live[i].fill &&
			       memcmp(live[i].at, live[i].at + 1, bytes - 1) == 0);
			buddy_give(&b, live[i].at, live[i].k);
			live[i] = live[--n];
		}
	}
	while (n > 0) {
		n--;
		buddy_give(&b, live[n].at, live[n].k);
	}
	for (uint32_t line = 0; line < b.fresh; line++)
		n += b.fixed.heads[line] != 0;
	EXPECT_EQ(n, __builtin_popcount(b.fresh));       /* as few blocks as the length allows */
	buddy_close(&b);
}

TEST_MAIN(
	TEST(blocks_are_aligned_zeroed_and_side_by_side),
	TEST(free_neighbours_become_one_block),
	TEST(a_large_free_block_is_split_for_a_small_one),
	TEST(a_full_range_says_so_and_recovers),
	TEST(no_memory_is_an_answer),
	TEST(any_order_of_takes_and_gives_keeps_blocks_apart))
