/* tests/sim/wrap_test.c - LMDB itself under power cuts: at every operation, in every way. */
#include "tests/sim/wrap_cut.h"

#include "tests/lib/test.h"
#include "tests/sim/lmdb_wrap.h"

#include <stdio.h>

/* What the harness shows, and how fast. */
static struct cut_result tried(const struct cut_plan *plan)
{
	struct cut_result r = cut_everywhere(plan);

	printf("  %-34s %5llu points, %4llu violations, %.0f points/s%s%s\n", plan->name,
	       (unsigned long long)r.points, (unsigned long long)r.violations, (double)r.points / r.seconds,
	       r.violations ? ": " : "", r.first);
	return r;
}

static void every_acknowledged_transaction_survives_and_no_half_one_is_seen(void)
{
	struct cut_result r = tried(&(struct cut_plan){ .name = "LMDB, plain puts",
							.transactions = CUT_SMALL, .seed = 1 });

	EXPECT_EQ(r.violations, 0);
	EXPECT(r.points > 100);
	EXPECT(r.agreed);
}

static void every_acknowledged_fold_survives_whole(void)
{
	struct cut_result r = tried(&(struct cut_plan){ .name = "noh's fold into LMDB", .fold = true,
							.transactions = CUT_SMALL, .seed = 2 });

	EXPECT_EQ(r.violations, 0);
	EXPECT(r.points > 100);
	EXPECT(r.agreed);
}

static void a_fold_on_a_disk_that_ignores_syncs_is_found_out(void)
{
	struct cut_result r = tried(&(struct cut_plan){ .name = "control: fold, fdatasync ignored",
							.fold = true, .lie = true,
							.transactions = CUT_SMALL, .seed = 2 });

	EXPECT(r.violations > r.points / 10);
}

static void without_sync_the_harness_sees_violations(void)
{
	struct cut_result r = tried(&(struct cut_plan){ .name = "control: MDB_NOSYNC", .no_sync = true,
							.transactions = CUT_SMALL, .seed = 1 });

	EXPECT(r.violations > r.points / 10);
}

static void on_a_disk_that_ignores_syncs_the_harness_sees_violations(void)
{
	struct cut_result r = tried(&(struct cut_plan){ .name = "control: fdatasync ignored", .lie = true,
							.transactions = CUT_SMALL, .seed = 1 });

	EXPECT(r.violations > r.points / 10);
}

static void without_a_synced_directory_the_harness_sees_violations(void)
{
	struct cut_result r = tried(&(struct cut_plan){ .name = "control: directory not synced",
							.no_dir_sync = true,
							.transactions = CUT_SMALL, .seed = 1 });

	EXPECT(r.violations > r.points / 20);
}

TEST_MAIN(
	TEST(every_acknowledged_transaction_survives_and_no_half_one_is_seen),
	TEST(every_acknowledged_fold_survives_whole),
	TEST(a_fold_on_a_disk_that_ignores_syncs_is_found_out),
	TEST(without_sync_the_harness_sees_violations),
	TEST(on_a_disk_that_ignores_syncs_the_harness_sees_violations),
	TEST(without_a_synced_directory_the_harness_sees_violations))
