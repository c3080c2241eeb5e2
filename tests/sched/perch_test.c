/* tests/sched/perch_test.c - where a worker sits for the writes of a lone caller. */
#include "sched/perch.h"
#include "tests/lib/test.h"

#define US UINT64_C(1000)

/* So many writes; at place i one takes us[i]. Returns where the worker sits then. */
static uint32_t writes(struct perch *p, const uint64_t *us, uint32_t places, unsigned count)
{
	while (count--)
		(void)perch_wrote(p, places, us[p->at] * US);
	return p->at;
}

static void the_quicker_core_is_found_soon(void)
{
	const uint64_t us[] = { 250, 165 };
	struct perch p = perch_at(0);

	EXPECT_EQ(writes(&p, us, 2, 2 * PERCH_WRITES), 1);
	EXPECT_EQ(p.best, 1);
	EXPECT_EQ(writes(&p, us, 2, PERCH_WRITES * PERCH_SOON / 2), 1);
}

static void who_sits_well_stays(void)
{
	const uint64_t us[] = { 165, 250, 250 };
	struct perch p = perch_at(0);
	unsigned away = 0;

	for (unsigned i = 0; i < 200000; i++) {
		(void)writes(&p, us, 3, 1);
		away += p.at != 0;
	}
	EXPECT_EQ(p.best, 0);
	EXPECT(away >= 2 * PERCH_WRITES && away < 20 * PERCH_WRITES);    /* each is tried, then ever more seldom */
}

static void a_little_quicker_is_no_reason_to_move(void)
{
	const uint64_t us[] = { 180, 165 };
	struct perch p = perch_at(0);

	(void)writes(&p, us, 2, 100 * PERCH_WRITES);
	EXPECT_EQ(p.best, 0);
}

static void one_slow_write_does_not_spoil_a_try(void)
{
	const uint64_t us[] = { 250, 165 };
	struct perch p = perch_at(0);

	EXPECT_EQ(writes(&p, us, 2, PERCH_WRITES), 1);
	(void)perch_wrote(&p, 2, 1000000 * US);
	EXPECT_EQ(writes(&p, us, 2, PERCH_WRITES - 1), 1);
	EXPECT_EQ(p.best, 1);
}

static void other_work_is_done_at_home(void)
{
	const uint64_t us[] = { 250, 165 };
	struct perch p = perch_at(0);

	(void)writes(&p, us, 2, 2 * PERCH_WRITES);
	for (int i = 0; i < PERCH_BUSY - 1; i++)
		EXPECT_EQ(perch_busy(&p), 1);            /* a moment of it does not count */
	EXPECT_EQ(writes(&p, us, 2, 1), 1);
	for (int i = 0; i < PERCH_BUSY; i++)
		(void)perch_busy(&p);
	EXPECT_EQ(p.at, 0);
	EXPECT_EQ(writes(&p, us, 2, 1), 1);              /* a lone caller again: where it was quick */
}

static void the_only_worker_has_no_choice(void)
{
	const uint64_t us[] = { 250 };
	struct perch p = perch_at(0);

	EXPECT_EQ(writes(&p, us, 1, 100 * PERCH_WRITES), 0);
}

TEST_MAIN(
	TEST(the_quicker_core_is_found_soon),
	TEST(who_sits_well_stays),
	TEST(a_little_quicker_is_no_reason_to_move),
	TEST(one_slow_write_does_not_spoil_a_try),
	TEST(other_work_is_done_at_home),
	TEST(the_only_worker_has_no_choice))
