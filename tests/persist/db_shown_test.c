/* tests/persist/db_shown_test.c - the image in numbers, without a snapshot: the same as with one. */
#include "persist/db_in.h"
#include "tests/persist/image_kit.h"

static void commit_at(uint64_t frame, uint64_t now_ms)
{
	EXPECT_EQ(try_commit_at(frame, now_ms), NOH_OK);
}

static void write_one(const char *address, uint64_t frame)
{
	begin(address, frame);
	state(1, "pears");
	put("key", "value");
	in_frame(frame);
}

static void what_is_shown_is_what_a_snapshot_says(void)
{
	struct db_stats shown, looked;

	start();
	for (uint64_t frame = 1; frame <= 3; frame++) {
		write_one(frame % 2 ? "cart:1" : "cart:2", frame);
		commit_at(frame, NOW);
		db_shown_stats(kit.db, &shown);
		db_get_stats(kit.db, &looked);
		EXPECT_EQ(shown.images, frame > 1 ? 2 : 1);
		EXPECT(memcmp(&shown, &looked, sizeof shown) == 0);
	}
	start_again();
	db_shown_stats(kit.db, &shown);
	db_get_stats(kit.db, &looked);
	EXPECT_EQ(shown.images, 2);
	EXPECT(memcmp(&shown, &looked, sizeof shown) == 0);
	EXPECT(db_room_left(kit.db) > 0);
	finish();
}

static void the_oldest_snapshot_has_an_age(void)
{
	struct reader *r, *young;

	start();
	write_one("cart:1", 1);
	commit_at(1, NOW);
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + 5000), 0);
	EXPECT_EQ(reader_take(kit.db, &r), NOH_OK);
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + 5000), 0);           /* it is the newest there is */
	write_one("cart:2", 2);
	commit_at(2, NOW + 6000);
	EXPECT_EQ(reader_take(kit.db, &young), NOH_OK);
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + 7500), 1500);        /* since what came after it */
	for (uint64_t frame = 3; frame < 10; frame++) {
		write_one("cart:2", frame);
		commit_at(frame, NOW + 6000 + frame);
	}
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + 8000), 2000);
	reader_give(r);
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + 8003), 2000);        /* the young one: since frame 3 */
	reader_give(young);
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + 8000), 0);
	finish();
}

static void one_that_is_older_than_what_is_remembered_is_at_least_so_old(void)
{
	struct reader *r;

	start();
	write_one("cart:1", 1);
	commit_at(1, NOW);
	EXPECT_EQ(reader_take(kit.db, &r), NOH_OK);
	for (uint64_t frame = 2; frame < 2 + 2 * COMMITS; frame++) {
		write_one("cart:2", frame);
		commit_at(frame, NOW + frame * 1000);
	}
	EXPECT_EQ(db_oldest_reader_ms(kit.db, NOW + (2 + 2 * COMMITS) * 1000), COMMITS * 1000);
	reader_give(r);
	finish();
}

TEST_MAIN(
	TEST(what_is_shown_is_what_a_snapshot_says),
	TEST(the_oldest_snapshot_has_an_age),
	TEST(one_that_is_older_than_what_is_remembered_is_at_least_so_old))
