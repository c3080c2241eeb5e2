/* tests/sched/directory_test.c - what was inserted is found, whatever came and went around it. */
#include "sched/directory.h"

#include "core/mem.h"
#include "tests/lib/test.h"

enum { MANY = 200000, MOST = 2200000 };
#define ONE (UINT64_C(7) << 25)
#define OTHER (UINT64_C(7) << 32)

static struct directory d;
static ck_epoch_t epoch;
static ck_epoch_record_t record;

static void open_directory(void)
{
	ck_epoch_init(&epoch);
	ck_epoch_register(&epoch, &record, NULL);
	EXPECT(directory_open(&d, MOST));
}

static void close_directory(void)
{
	epoch_synchronize_all(&record);
	directory_close(&d);
}

static uint64_t hash_of(uint32_t cell)
{
	uint64_t state = cell * UINT64_C(0x9E3779B97F4A7C15);

	return test_random(&state);
}

static bool insert(uint64_t hash, uint32_t cell)
{
	struct directory_table *t = directory_lock(&d, hash);
	bool ok = directory_insert(&d, t, hash, cell, &record);

	directory_unlock(t);
	return ok;
}

static bool insert_new(uint64_t hash, uint32_t cell)
{
	struct directory_table *t = directory_lock(&d, hash);
	bool ok = directory_insert_new(t, hash, cell);

	directory_unlock(t);
	return ok;
}

static bool removed(uint64_t hash, uint32_t cell)
{
	struct directory_table *t = directory_lock(&d, hash);
	bool ok = directory_remove(t, hash, cell);

	directory_unlock(t);
	return ok;
}

static bool has(uint64_t hash, uint32_t cell)
{
	struct directory_walk w;
	uint32_t n;

	directory_walk(&d, hash, &w);
	while ((n = directory_next(&w)) != 0)
		if (n == cell)
			return true;
	return false;
}

static void all_are_found_while_tables_grow(void)
{
	open_directory();
	for (uint32_t n = 2; n < MANY; n++)
		if (!insert_new(hash_of(n), n))
			EXPECT(insert(hash_of(n), n));
	for (uint32_t n = 2; n < MANY; n++)
		if (!EXPECT(has(hash_of(n), n)))
			break;
	EXPECT(!has(hash_of(MANY), MANY));
	close_directory();
}

/* Fourfold up to 4 KiB, then double: about 98 entries a table take 4 KiB, twice as many do not take more. */
static void small_tables_grow_in_large_steps_and_large_ones_in_small_steps(void)
{
	uint64_t four_kib = (uint64_t)RING_HASH_PARTITIONS * 4096, least = UINT64_MAX;
	uint32_t n = 2;

	open_directory();
	store_relaxed(&d.bytes, 0);
	for (; n < 20 * RING_HASH_PARTITIONS; n++)
		EXPECT(insert(hash_of(n), n));
	EXPECT(load_relaxed(&d.bytes) <= four_kib / 4);
	for (; n < 250 * RING_HASH_PARTITIONS; n++) {
		EXPECT(insert(hash_of(n), n));
		if (n == 200 * RING_HASH_PARTITIONS)
			least = load_relaxed(&d.bytes);
	}
	EXPECT_EQ(least, four_kib);
	EXPECT_EQ(load_relaxed(&d.bytes), four_kib);
	for (; n < 500 * RING_HASH_PARTITIONS; n++)
		EXPECT(insert(hash_of(n), n));
	EXPECT_EQ(load_relaxed(&d.bytes), 2 * four_kib);
	close_directory();
}

static void what_was_removed_is_gone_and_the_rest_stays(void)
{
	open_directory();
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t n = 2; n < MANY / 4; n++)
			EXPECT(insert(hash_of(n), n));
		for (uint32_t n = 2; n < MANY / 4; n += 2)
			EXPECT(removed(hash_of(n), n));
		for (uint32_t n = 2; n < MANY / 4; n++)
			EXPECT_EQ(has(hash_of(n), n), n % 2);
		for (uint32_t n = 3; n < MANY / 4; n += 2)
			EXPECT(removed(hash_of(n), n));
		EXPECT(!removed(hash_of(3), 3));
	}
	close_directory();
}

/* One partition and one line: every try goes round the line, then to the next. */
static void entries_that_want_the_same_line_are_all_found(void)
{
	open_directory();
	for (uint32_t n = 2; n < 300; n++)
		EXPECT(insert((uint64_t)n << 40, n));
	for (uint32_t n = 2; n < 300; n++)
		EXPECT(has((uint64_t)n << 40, n));
	close_directory();
}

static void a_new_one_is_not_entered_beside_one_that_may_be_the_same(void)
{
	open_directory();
	EXPECT(!insert_new(ONE, 2));              /* no array yet */
	EXPECT(insert(ONE, 2));
	EXPECT(!insert_new(ONE, 3));              /* the same tag: somebody has to compare */
	EXPECT(insert_new(OTHER, 4));
	EXPECT(removed(ONE, 2));
	EXPECT(insert_new(ONE, 5));
	EXPECT(!has(ONE, 3));
	EXPECT(has(ONE, 5) && has(OTHER, 4));
	close_directory();
}

static void no_memory_for_growth_changes_nothing(void)
{
	uint32_t n = 2;

	open_directory();
	for (; n < 8; n++)
		EXPECT(insert((uint64_t)n << 20, n));
	for (uint64_t at = 1; at <= 2; at++) {
		mem_fail_at(at, 0);
		EXPECT(!insert((uint64_t)n << 20, n));
		mem_fail_at(0, 0);
		EXPECT(!has((uint64_t)n << 20, n));
	}
	EXPECT(insert((uint64_t)n << 20, n));
	for (uint32_t i = 2; i <= n; i++)
		EXPECT(has((uint64_t)i << 20, i));
	close_directory();
}

TEST_MAIN(
	TEST(all_are_found_while_tables_grow, "P1"),
	TEST(small_tables_grow_in_large_steps_and_large_ones_in_small_steps),
	TEST(what_was_removed_is_gone_and_the_rest_stays),
	TEST(entries_that_want_the_same_line_are_all_found),
	TEST(a_new_one_is_not_entered_beside_one_that_may_be_the_same, "P1"),
	TEST(no_memory_for_growth_changes_nothing))
