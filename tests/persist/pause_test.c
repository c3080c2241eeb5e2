/* tests/persist/pause_test.c - for how long the journaller lets records gather before it writes again. */
#include "tests/persist/journal_kit.h"

#define US UINT64_C(1000)

static struct mem_disk *d;
static struct journal *j;
static struct clock_virtual clock;

static void start(void)
{
	struct journal_options o = { .dir_id = DIR_ID, .rings = 1, .ring_bytes = 1u << 20, .segment_bytes = 1u << 20,
				     .clock = &clock.clock };
	struct journal_end none = { 0 };

	d = mem_disk_open();
	o.disk = &d->disk;
	clock_virtual_init(&clock, 1000 * US);
	EXPECT_EQ(journal_open(&j, &o, &none), NOH_OK);
}

static void stop(void)
{
	journal_close(j);
	disk_end(&d->disk);
}

/* Some groups of so many records, each of which the disk takes so long for. */
static void groups(unsigned count, unsigned records, uint64_t took_ns)
{
	static uint64_t number;

	for (unsigned g = 0; g < count; g++) {
		for (unsigned i = 0; i < records; i++)
			push(j, 0, ++number, 8);
		d->hold = true;
		EXPECT_EQ(journal_step(j, false), JOURNAL_BUSY);
		clock_virtual_advance(&clock, took_ns);
		d->hold = false;
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
	}
}

static void a_lone_writer_never_waits_for_others(void)
{
	start();
	EXPECT_EQ(journal_pause_ns(j), 0);
	groups(50, 1, 300 * US);
	EXPECT_EQ(journal_pause_ns(j), 0);
	stop();
}

static void many_writers_get_half_the_time_that_a_group_takes(void)
{
	start();
	groups(50, 16, 300 * US);
	EXPECT(journal_pause_ns(j) > 130 * US && journal_pause_ns(j) <= 150 * US);
	groups(1, 2, 300 * US);                  /* the crowd is gone */
	EXPECT_EQ(journal_pause_ns(j), 0);
	stop();
}

static void a_slow_disk_makes_nobody_wait_longer_than_a_moment(void)
{
	start();
	groups(50, 16, 40000 * US);
	EXPECT_EQ(journal_pause_ns(j), 200 * US);
	stop();
}

static void a_fast_disk_needs_no_pause(void)
{
	start();
	groups(50, 16, 20 * US);
	EXPECT_EQ(journal_pause_ns(j), 0);
	stop();
}

static void a_large_group_needs_no_pause(void)
{
	start();
	groups(20, 16, 300 * US);
	groups(1, 5000, 300 * US);
	EXPECT_EQ(journal_pause_ns(j), 0);
	stop();
}

TEST_MAIN(
	TEST(a_lone_writer_never_waits_for_others),
	TEST(many_writers_get_half_the_time_that_a_group_takes),
	TEST(a_slow_disk_makes_nobody_wait_longer_than_a_moment),
	TEST(a_fast_disk_needs_no_pause),
	TEST(a_large_group_needs_no_pause))
