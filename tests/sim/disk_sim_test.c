/* tests/sim/disk_sim_test.c - the simulated disk forgets what it may, and nothing else. */
#include "tests/sim/disk_sim.h"

#include "noh.h"
#include "tests/lib/test.h"

#include <stdalign.h>
#include <string.h>

static struct disk_sim *s;
static struct disk *d;
static struct disk_file *f;
static alignas(DISK_BLOCK) uint8_t block[4 * DISK_BLOCK];

static void start(void)
{
	s = disk_sim_new(42);
	d = disk_sim_door(s);
}

static void end(void)
{
	EXPECT(disk_sim_problem(s) == NULL);
	disk_sim_free(s);
}

static void make(const char *path)
{
	EXPECT_EQ(disk_open(d, path, DISK_WRITE | DISK_CREATE | DISK_DURABLE, &f), NOH_OK);
}

/* A file whose name is durable, open. */
static void make_named(const char *path)
{
	make(path);
	EXPECT_EQ(disk_sync_dir(d, ""), NOH_OK);
}

static int say(const char *text, uint64_t off) { return disk_write(d, f, text, strlen(text), off); }

static void cut(enum cut mode, uint64_t seed)
{
	disk_sim_off(s);
	if (f)
		disk_close(d, f);
	f = NULL;
	disk_sim_cut(s, mode, seed);
}

static bool reads(const char *path, const char *text)
{
	size_t len;
	const uint8_t *at = disk_sim_bytes(s, path, &len);

	return at && len == strlen(text) && memcmp(at, text, len) == 0;
}

static void a_synced_write_survives_every_cut(void)
{
	for (enum cut mode = 0; mode < CUT_MODES; mode++) {
		start();
		make_named("a");
		say("hello", 0);
		EXPECT_EQ(disk_sync(d, f), NOH_OK);
		EXPECT_EQ(disk_sim_pending(s), 0);
		cut(mode, mode);
		EXPECT(reads("a", "hello"));
		end();
	}
}

static void an_unsynced_write_may_vanish_or_stay(void)
{
	start();
	make_named("a");
	say("hello", 0);
	struct disk_sim *other = disk_sim_copy(s);

	cut(CUT_DROP, 1);
	EXPECT(reads("a", ""));
	end();
	s = other;
	disk_sim_cut(s, CUT_KEEP, 1);
	EXPECT(reads("a", "hello"));
	end();
}

static void a_synced_file_whose_directory_was_not_may_be_gone(void)
{
	start();
	make("a");
	say("hello", 0);
	EXPECT_EQ(disk_sync(d, f), NOH_OK);
	cut(CUT_DROP, 1);
	EXPECT(!disk_sim_exists(s, "a"));
	end();
}

static void a_rename_is_whole_or_not_at_all(void)
{
	unsigned old = 0, new = 0;

	for (uint64_t seed = 0; seed < 64; seed++) {
		start();
		make_named("old");
		say("x", 0);
		disk_sync(d, f);
		EXPECT_EQ(disk_rename(d, "old", "new"), NOH_OK);
		EXPECT(!disk_sim_exists(s, "old") && disk_sim_exists(s, "new"));
		cut(CUT_SUBSET, seed);
		EXPECT(disk_sim_exists(s, "old") != disk_sim_exists(s, "new"));
		old += disk_sim_exists(s, "old");
		new += disk_sim_exists(s, "new");
		EXPECT(reads(disk_sim_exists(s, "old") ? "old" : "new", "x"));
		end();
	}
	EXPECT(old > 0 && new > 0);
}

static void a_removed_file_may_come_back_until_the_directory_is_synced(void)
{
	start();
	make_named("a");
	EXPECT_EQ(disk_remove(d, "a"), NOH_OK);
	struct disk_file *none;

	EXPECT_EQ(disk_open(d, "a", 0, &none), NOH_END);
	cut(CUT_DROP, 1);
	EXPECT(disk_sim_exists(s, "a"));
	EXPECT_EQ(disk_remove(d, "a"), NOH_OK);
	EXPECT_EQ(disk_sync_dir(d, ""), NOH_OK);
	cut(CUT_DROP, 1);
	EXPECT(!disk_sim_exists(s, "a"));
	end();
}

static void syncing_one_directory_leaves_the_names_of_another(void)
{
	start();
	make("journal/1");
	disk_close(d, f);
	make("image/1");
	EXPECT_EQ(disk_sync_dir(d, "journal"), NOH_OK);
	cut(CUT_DROP, 1);
	EXPECT(disk_sim_exists(s, "journal/1"));
	EXPECT(!disk_sim_exists(s, "image/1"));
	end();
}

static void a_file_is_lost_with_the_directory_it_is_in(void)
{
	start();
	EXPECT_EQ(disk_sim_mkdir(s, "image"), NOH_OK);
	make("image/a");
	disk_sync(d, f);
	EXPECT_EQ(disk_sync_dir(d, "image"), NOH_OK);
	struct disk_sim *other = disk_sim_copy(s);

	cut(CUT_DROP, 1);
	EXPECT(!disk_sim_exists(s, "image/a"));
	end();
	s = other;
	EXPECT_EQ(disk_sync_dir(disk_sim_door(s), ""), NOH_OK);
	disk_sim_cut(s, CUT_DROP, 1);
	EXPECT(disk_sim_exists(s, "image/a"));
	end();
}

static void a_renamed_directory_takes_its_files_along(void)
{
	start();
	EXPECT_EQ(disk_sim_mkdir(s, "image.new"), NOH_OK);
	make("image.new/a");
	disk_sync(d, f);
	EXPECT_EQ(disk_sync_dir(d, "image.new"), NOH_OK);
	EXPECT_EQ(disk_rename(d, "image.new", "image"), NOH_OK);
	EXPECT(disk_sim_exists(s, "image/a") && !disk_sim_exists(s, "image.new/a"));
	EXPECT_EQ(disk_sync_dir(d, ""), NOH_OK);
	cut(CUT_DROP, 1);
	EXPECT(disk_sim_exists(s, "image/a"));
	EXPECT(disk_sim_is_directory(s, "image"));
	end();
}

static void a_torn_write_is_torn_at_sectors(void)
{
	unsigned mixed = 0;

	memset(block, 'n', sizeof block);
	for (uint64_t seed = 0; seed < 32; seed++) {
		size_t len, news = 0;

		start();
		make_named("a");
		disk_fill(d, f, DISK_BLOCK);
		disk_write(d, f, block, DISK_BLOCK, 0);
		cut(CUT_TORN, seed);
		const uint8_t *at = disk_sim_bytes(s, "a", &len);

		EXPECT_EQ(len, DISK_BLOCK);
		for (size_t i = 0; i < len; i++) {
			EXPECT(at[i] == at[i - i % 512]);
			news += at[i] == 'n';
		}
		mixed += news > 0 && news < len;
		end();
	}
	EXPECT(mixed > 25);
}

static void a_submit_is_durable_only_when_reaped(void)
{
	uint64_t ticket = 0;
	int result = -1;

	memset(block, 'n', sizeof block);
	start();
	make_named("a");
	disk_fill(d, f, 4 * DISK_BLOCK);
	EXPECT_EQ(disk_submit(d, f, block, DISK_BLOCK, 0, 7), NOH_OK);
	struct disk_sim *before = disk_sim_copy(s);

	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
	EXPECT_EQ(ticket, 7);
	EXPECT_EQ(result, NOH_OK);
	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_END);
	cut(CUT_DROP, 1);
	size_t len;

	EXPECT_EQ(disk_sim_bytes(s, "a", &len)[0], 'n');
	end();
	s = before;
	disk_sim_cut(s, CUT_DROP, 1);
	EXPECT_EQ(disk_sim_bytes(s, "a", &len)[0], 0);
	EXPECT_EQ(len, 4 * DISK_BLOCK);
	end();
}

static void submits_end_in_any_order(void)
{
	bool crossed = false;

	for (uint64_t seed = 0; seed < 50 && !crossed; seed++) {
		uint64_t last = 0, ticket = 0;
		int result;

		s = disk_sim_new(seed);
		d = disk_sim_door(s);
		make_named("a");
		disk_fill(d, f, 4 * DISK_BLOCK);
		for (uint64_t i = 0; i < 4; i++)
			EXPECT_EQ(disk_submit(d, f, block, DISK_BLOCK, i * DISK_BLOCK, i), NOH_OK);
		while (disk_reap(d, true, &ticket, &result) == NOH_OK) {
			crossed |= ticket < last;
			last = ticket;
		}
		disk_close(d, f);
		end();
	}
	EXPECT(crossed);
}

static void a_durable_write_does_not_make_its_neighbours_durable(void)
{
	uint64_t ticket;
	int result;
	size_t len;

	memset(block, 'n', sizeof block);
	start();
	make_named("a");
	disk_fill(d, f, 2 * DISK_BLOCK);
	disk_write(d, f, block, DISK_BLOCK, DISK_BLOCK);
	disk_submit(d, f, block, DISK_BLOCK, 0, 1);
	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
	cut(CUT_DROP, 1);
	const uint8_t *at = disk_sim_bytes(s, "a", &len);

	EXPECT(at[0] == 'n' && at[DISK_BLOCK] == 0);
	end();
}

static void an_older_unsynced_write_never_undoes_a_durable_one(void)
{
	start();
	make_named("a");
	say("old old old", 0);
	EXPECT_EQ(disk_sim_write_through(f, "NEW", 3, 4), NOH_OK);
	struct disk_sim *other = disk_sim_copy(s);

	cut(CUT_KEEP, 1);
	EXPECT(reads("a", "old NEW old"));
	end();
	s = other;
	disk_sim_cut(s, CUT_DROP, 1);
	size_t len;

	EXPECT(memcmp(disk_sim_bytes(s, "a", &len) + 4, "NEW", 3) == 0);
	end();
}

static void after_a_failed_sync_the_next_one_succeeds_and_the_bytes_are_gone(void)
{
	unsigned lost = 0;

	for (uint64_t seed = 0; seed < 16; seed++) {
		s = disk_sim_new(seed);
		d = disk_sim_door(s);
		make_named("a");
		say("hello", 0);
		disk_sim_fail(s, SIM_SYNC, 1, FAULT_EIO);
		EXPECT_EQ(disk_sync(d, f), NOH_EDISK);
		EXPECT(reads("a", "hello"));
		EXPECT_EQ(disk_sync(d, f), NOH_OK);
		cut(CUT_KEEP, 1);
		lost += !reads("a", "hello");
		end();
	}
	EXPECT(lost > 8);
}

static void a_failed_submit_says_so_when_reaped(void)
{
	uint64_t ticket = 0;
	int result = NOH_OK;

	start();
	make_named("a");
	disk_fill(d, f, DISK_BLOCK);
	disk_sim_fail(s, SIM_SUBMIT, 2, FAULT_EIO);
	disk_submit(d, f, block, DISK_BLOCK, 0, 1);
	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
	EXPECT_EQ(result, NOH_OK);
	disk_submit(d, f, block, DISK_BLOCK, 0, 2);
	EXPECT_EQ(disk_reap(d, true, &ticket, &result), NOH_OK);
	EXPECT_EQ(ticket, 2);
	EXPECT_EQ(result, NOH_EDISK);
	disk_close(d, f);
	end();
}

static void a_full_disk_refuses_growth_and_recovers(void)
{
	start();
	disk_sim_space(s, 2 * DISK_BLOCK);
	make("a");
	EXPECT_EQ(disk_fill(d, f, 2 * DISK_BLOCK), NOH_OK);
	disk_close(d, f);
	make("b");
	EXPECT_EQ(disk_fill(d, f, DISK_BLOCK), NOH_ENOSPC);
	EXPECT_EQ(say("x", 0), NOH_ENOSPC);
	EXPECT_EQ(disk_remove(d, "a"), NOH_OK);
	EXPECT_EQ(disk_fill(d, f, DISK_BLOCK), NOH_OK);
	disk_close(d, f);
	end();
}

static void a_short_write_leaves_its_first_sectors(void)
{
	size_t len;

	start();
	make_named("a");
	disk_sim_fail(s, SIM_WRITE, 1, FAULT_SHORT);
	EXPECT_EQ(disk_write(d, f, block, 3000, 0), NOH_EDISK);
	EXPECT(disk_sim_bytes(s, "a", &len) && len == 1024);
	EXPECT_EQ(disk_sim_faults(s), 1);
	disk_close(d, f);
	end();
}

static void power_goes_with_the_chosen_operation_and_all_later_ones_fail(void)
{
	start();
	make_named("a");                         /* operations 1 and 2 */
	disk_sim_cut_at(s, 4);
	EXPECT_EQ(say("one", 0), NOH_OK);
	EXPECT_EQ(say("two", 3), NOH_EDISK);
	EXPECT(disk_sim_is_off(s));
	EXPECT_EQ(say("three", 6), NOH_EDISK);
	EXPECT_EQ(disk_sync(d, f), NOH_EDISK);
	EXPECT_EQ(disk_sim_ops(s), 4);
	cut(CUT_KEEP, 1);
	EXPECT(reads("a", "onetwo"));            /* the one that power ended with may have arrived */
	EXPECT(!disk_sim_is_off(s));
	make("b");
	disk_close(d, f);
	end();
}

static void a_dead_process_leaves_what_it_wrote_but_not_for_good(void)
{
	start();
	make_named("a");
	say("hello", 0);
	disk_sim_off(s);
	disk_close(d, f);
	f = NULL;
	disk_sim_kill(s, 1);
	EXPECT(reads("a", "hello"));
	EXPECT_EQ(disk_sim_pending(s), 1);
	cut(CUT_DROP, 1);
	EXPECT(reads("a", ""));
	end();
}

static void one_cut_hits_all_files_in_one_order(void)
{
	start();
	make("a");
	disk_close(d, f);
	make("b");
	disk_sync_dir(d, "");
	struct disk_file *b = f, *a = NULL;

	EXPECT_EQ(disk_open(d, "a", DISK_WRITE, &a), NOH_OK);
	disk_write(d, a, "1", 1, 0);
	disk_write(d, b, "2", 1, 0);
	disk_close(d, a);
	cut(CUT_LAST, 1);
	EXPECT(reads("a", ""));
	EXPECT(reads("b", "2"));
	end();
}

static void a_lying_disk_loses_what_it_called_durable(void)
{
	start();
	make_named("a");
	disk_sim_lie(s, true);
	say("hello", 0);
	EXPECT_EQ(disk_sync(d, f), NOH_OK);
	cut(CUT_DROP, 1);
	EXPECT(reads("a", ""));
	end();
}

static void a_changed_buffer_and_an_odd_place_are_noticed(void)
{
	uint64_t ticket;
	int result;

	start();
	make_named("a");
	disk_fill(d, f, DISK_BLOCK);
	disk_submit(d, f, block, DISK_BLOCK, 0, 1);
	block[9] ^= 1;
	disk_reap(d, true, &ticket, &result);
	EXPECT(disk_sim_problem(s) && strstr(disk_sim_problem(s), "buffer changed"));
	disk_close(d, f);
	disk_sim_free(s);
	start();
	make_named("a");
	disk_submit(d, f, block, 100, 0, 1);
	disk_reap(d, true, &ticket, &result);
	EXPECT(disk_sim_problem(s) && strstr(disk_sim_problem(s), "odd place"));
	disk_close(d, f);
	disk_sim_free(s);
}

static uint64_t a_story(uint64_t seed)
{
	uint64_t random = seed, ticket, hash;
	int result;

	s = disk_sim_new(seed);
	d = disk_sim_door(s);
	make_named("a");
	disk_fill(d, f, 4 * DISK_BLOCK);
	for (int i = 0; i < 40; i++) {
		block[i] = (uint8_t)test_random(&random);
		disk_submit(d, f, block, DISK_BLOCK, test_random(&random) % 4 * DISK_BLOCK, 1);
		disk_reap(d, true, &ticket, &result);
		disk_write(d, f, block, 700, test_random(&random) % 9000);
		if (test_random(&random) % 8 == 0)
			disk_sync(d, f);
	}
	hash = disk_sim_hash(s);
	cut(CUT_TORN, seed);
	hash = hash * 31 + disk_sim_hash(s);
	end();
	return hash;
}

static void the_same_seed_gives_the_same_disk(void)
{
	memset(block, 0, sizeof block);
	uint64_t first = a_story(5);

	memset(block, 0, sizeof block);
	EXPECT(first == a_story(5));
	memset(block, 0, sizeof block);
	EXPECT(first != a_story(6));
}

static void rot_flips_one_bit_for_good(void)
{
	start();
	make_named("a");
	say("A", 0);
	disk_sync(d, f);
	EXPECT(disk_sim_rot(s, "a", 0, 1));
	EXPECT(!disk_sim_rot(s, "a", 1, 1));
	cut(CUT_DROP, 1);
	EXPECT(reads("a", "C"));
	EXPECT(disk_sim_chop(s, "a", 0));
	EXPECT(reads("a", ""));
	end();
}

TEST_MAIN(
	TEST(a_synced_write_survives_every_cut),
	TEST(an_unsynced_write_may_vanish_or_stay),
	TEST(a_synced_file_whose_directory_was_not_may_be_gone),
	TEST(a_rename_is_whole_or_not_at_all),
	TEST(a_removed_file_may_come_back_until_the_directory_is_synced),
	TEST(syncing_one_directory_leaves_the_names_of_another),
	TEST(a_file_is_lost_with_the_directory_it_is_in),
	TEST(a_renamed_directory_takes_its_files_along),
	TEST(a_torn_write_is_torn_at_sectors),
	TEST(a_submit_is_durable_only_when_reaped),
	TEST(submits_end_in_any_order),
	TEST(a_durable_write_does_not_make_its_neighbours_durable),
	TEST(an_older_unsynced_write_never_undoes_a_durable_one),
	TEST(after_a_failed_sync_the_next_one_succeeds_and_the_bytes_are_gone),
	TEST(a_failed_submit_says_so_when_reaped),
	TEST(a_full_disk_refuses_growth_and_recovers),
	TEST(a_short_write_leaves_its_first_sectors),
	TEST(power_goes_with_the_chosen_operation_and_all_later_ones_fail),
	TEST(a_dead_process_leaves_what_it_wrote_but_not_for_good),
	TEST(one_cut_hits_all_files_in_one_order),
	TEST(a_lying_disk_loses_what_it_called_durable),
	TEST(a_changed_buffer_and_an_odd_place_are_noticed),
	TEST(the_same_seed_gives_the_same_disk),
	TEST(rot_flips_one_bit_for_good))
