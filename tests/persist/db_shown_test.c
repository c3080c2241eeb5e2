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

static void timers_are(uint64_t want)
{
	struct db_stats shown;

	db_shown_stats(kit.db, &shown);
	EXPECT_EQ(shown.timers, want);
	EXPECT_EQ(stats().timers, want);
}

static int count_timer(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	(void)due_ms;
	(void)address;
	(void)len;
	++*(int *)arg;
	return 0;
}

static void who_is_not_healthy_counts_as_no_timer(void)
{
	int met = 0;

	start();
	begin("a:1", 1); state(1, "x"); timers(1, 500); in_frame(1);
	begin("a:2", 1); state(1, "x"); vitals(NOH_QUARANTINED, ""); in_frame(1);
	begin("a:3", 1); state(1, "x"); timers(1, 700); vitals(NOH_DEGRADED, ""); in_frame(1);
	commit_at(1, NOW);
	timers_are(2);
	EXPECT_EQ(db_timers(kit.db, 0, UINT64_MAX, count_timer, &met), NOH_OK);
	EXPECT_EQ(met, 2);
	start_again();
	timers_are(2);
	begin("a:2", 2); vitals(NOH_HEALTHY, ""); in_frame(2);
	begin("a:1", 2); timers(0); in_frame(2);
	commit_at(2, NOW);
	timers_are(1);
	gone("a:3", 3); in_frame(3);
	commit_at(3, NOW);
	timers_are(0);
	start_again();
	timers_are(0);
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
	TEST(who_is_not_healthy_counts_as_no_timer),
	TEST(the_oldest_snapshot_has_an_age),
	TEST(one_that_is_older_than_what_is_remembered_is_at_least_so_old))
