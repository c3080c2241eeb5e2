/* tests/persist/pause_test.c - for how long the journaller lets records gather before it writes again. */
#include "persist/journal_inside.h"
#include "tests/persist/journal_kit.h"

#include <pthread.h>

#define US UINT64_C(1000)

static struct mem_disk *d;
static struct journal *j;
static struct clock_virtual watch;

static void start(void)
{
	struct journal_options o = { .dir_id = DIR_ID, .rings = 1, .ring_bytes = 1u << 20, .segment_bytes = 8u << 20,
				     .clock = &watch.clock };
	struct journal_end none = { 0 };

	d = mem_disk_open();
	o.disk = &d->disk;
	clock_virtual_init(&watch, 1000 * US);
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
		clock_virtual_advance(&watch, took_ns);
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

struct resting {
	atomic_u32 over;
	uint64_t   timeout_ns;
};

static void *rests(void *arg)
{
	struct resting *r = arg;

	journal_take_wait(j);
	journal_rest(j, r->timeout_ns);
	store_release(&r->over, 1);
	return NULL;
}

static bool is_over(void *arg)
{
	return load_acquire(&((struct resting *)arg)->over) != 0;
}

static bool it_rests(void *arg)
{
	(void)arg;
	return load_relaxed(&j->gather.shared.wanted) != 0;
}

static void a_rest_ends_when_half_of_the_last_group_is_there_again(void)
{
	struct resting r = { .timeout_ns = UINT64_MAX };
	pthread_t t;

	start();
	groups(1, 16, 300 * US);
	EXPECT_EQ(pthread_create(&t, NULL, rests, &r), 0);
	EXPECT(test_wait_until(it_rests, NULL, 5000));
	for (unsigned i = 0; i < 7; i++) {
		push(j, 0, 1000 + i, 8);
		journal_pushed(j, 0);
	}
	EXPECT(it_rests(NULL));                  /* seven are not enough: nobody has told it */
	push(j, 0, 1007, 8);
	journal_pushed(j, 0);
	EXPECT(!it_rests(NULL));
	EXPECT(test_wait_until(is_over, &r, 5000));
	EXPECT_EQ(pthread_join(t, NULL), 0);
	stop();
}

static void a_rest_does_not_begin_if_there_is_enough(void)
{
	start();
	groups(1, 16, 300 * US);
	for (unsigned i = 0; i < 16; i++)
		push(j, 0, 2000 + i, 8);
	journal_take_wait(j);
	journal_rest(j, UINT64_MAX);             /* of 32 in all, 16 are here */
	EXPECT(!it_rests(NULL));
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	stop();
}

static void a_rest_that_nobody_ends_is_over_in_time(void)
{
	struct resting r = { .timeout_ns = 200 * US };

	start();
	groups(1, 16, 300 * US);
	(void)rests(&r);
	EXPECT(is_over(&r) && !it_rests(NULL));
	stop();
}

static void a_lone_writer_is_not_made_to_wait_for_a_core(void)
{
	start();
	EXPECT(!journal_can_wait(j, false));
	groups(50, 2, 300 * US);
	EXPECT(!journal_can_wait(j, false) && !journal_can_wait(j, true));
	stop();
}

static void small_groups_can_wait_and_large_ones_cannot(void)
{
	start();
	groups(50, 40, 300 * US);
	EXPECT(journal_can_wait(j, false));
	groups(1, 400, 300 * US);                /* one alone changes nothing */
	EXPECT(journal_can_wait(j, true));
	groups(50, 160, 300 * US);               /* in between it stays as it was */
	EXPECT(journal_can_wait(j, true) && !journal_can_wait(j, false));
	groups(50, 400, 300 * US);
	EXPECT(!journal_can_wait(j, true));
	groups(50, 40, 300 * US);
	EXPECT(journal_can_wait(j, false));
	stop();
}

TEST_MAIN(
	TEST(a_lone_writer_never_waits_for_others),
	TEST(many_writers_get_half_the_time_that_a_group_takes),
	TEST(a_slow_disk_makes_nobody_wait_longer_than_a_moment),
	TEST(a_fast_disk_needs_no_pause),
	TEST(a_large_group_needs_no_pause),
	TEST(a_rest_ends_when_half_of_the_last_group_is_there_again),
	TEST(a_rest_does_not_begin_if_there_is_enough),
	TEST(a_rest_that_nobody_ends_is_over_in_time),
	TEST(a_lone_writer_is_not_made_to_wait_for_a_core),
	TEST(small_groups_can_wait_and_large_ones_cannot))
