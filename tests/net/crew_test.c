/* tests/net/crew_test.c - on how many workers connections are: what the trials decide. */
#include "net/crew.h"
#include "tests/lib/test.h"

static struct crew_trial trial;
static uint64_t now_ms;

static void fresh(uint32_t workers)
{
	trial = (struct crew_trial){ .workers = workers };
	now_ms = 1000000;
}

/* A world in which a width has its rate; so many windows go by. Returns in how many of them the width was `wanted`. */
typedef uint64_t rate_fn(uint32_t width);

static uint32_t windows(uint32_t n, rate_fn *rate, uint32_t batch, bool rested, uint32_t wanted)
{
	uint32_t had = 0;

	for (uint32_t i = 0; i < n; i++, now_ms += 100) {
		uint32_t width = trial.width ? trial.width : trial.workers;

		(void)crew_decide(&trial, &(struct crew_seen){ .rate = rate(width), .batch = batch, .rested = rested,
							       .several = width > 1 }, now_ms);
		had += (trial.width ? trial.width : trial.workers) == wanted;
	}
	return had;
}

static uint64_t fewer_do_more(uint32_t width) { return 120000 - 10000 * width; }
static uint64_t more_do_more(uint32_t width) { return 50000u * width; }
static uint64_t all_the_same(uint32_t width) { return 60000 + width; }
static uint64_t hardly_any(uint32_t width) { return 100 + width; }

static void where_fewer_do_more_they_are_gathered(void)
{
	fresh(2);
	EXPECT(windows(100, fewer_do_more, 1, false, 1) > 85);   /* and now and then it is tried again */
	fresh(8);
	(void)windows(50, fewer_do_more, 1, false, 1);
	EXPECT(windows(200, fewer_do_more, 1, false, 1) > 150);
}

static void where_more_do_more_they_are_spread(void)
{
	fresh(2);
	EXPECT(windows(300, more_do_more, 1, false, 2) > 270);
	fresh(8);
	EXPECT(windows(300, more_do_more, 1, false, 8) > 250);
}

static void a_load_that_fewer_carry_is_theirs(void)
{
	fresh(4);
	(void)windows(50, all_the_same, 1, true, 1);
	EXPECT_EQ(windows(100, all_the_same, 1, true, 1), 100);  /* they rest: nobody asks for more of them */
}

static void who_says_many_at_once_is_spread(void)
{
	fresh(2);
	EXPECT_EQ(windows(100, more_do_more, 64, false, 2), 100);        /* it is not even tried */
	fresh(2);
	(void)windows(20, fewer_do_more, 1, true, 1);
	EXPECT_EQ(trial.width, 1);
	EXPECT(windows(100, more_do_more, 64, true, 2) > 90);    /* another load is tried at once */
}

static void a_load_that_ends_in_a_trial_decides_nothing(void)
{
	fresh(2);
	(void)windows(1, fewer_do_more, 1, false, 1);
	EXPECT(trial.phase != CREW_RESTS && trial.width == 1);
	(void)windows(1, hardly_any, 1, false, 2);
	EXPECT(trial.phase == CREW_RESTS && trial.width == 2);
	EXPECT_EQ(windows(100, hardly_any, 1, true, 2), 100);
}

static void trials_that_change_nothing_become_rare(void)
{
	uint32_t last = 2, tries = 0;

	fresh(2);
	for (uint32_t i = 0; i < 6000; i++) {            /* ten minutes */
		(void)windows(1, more_do_more, 1, false, 2);
		tries += trial.width == 1 && last != 1;
		last = trial.width;
	}
	EXPECT(tries >= 15 && tries <= 40);
}

TEST_MAIN(
	TEST(where_fewer_do_more_they_are_gathered),
	TEST(where_more_do_more_they_are_spread),
	TEST(a_load_that_fewer_carry_is_theirs),
	TEST(who_says_many_at_once_is_spread),
	TEST(a_load_that_ends_in_a_trial_decides_nothing),
	TEST(trials_that_change_nothing_become_rare))
