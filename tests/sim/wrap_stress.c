/* tests/sim/wrap_stress.c - thousands of power cuts in LMDB and in noh's fold into it. */
#include "tests/sim/wrap_cut.h"

#include "tests/lib/test.h"

#include <stdio.h>

#ifdef NOH_SANITIZED
#define RUNS 2
#else
#define RUNS 12
#endif

static void cut_runs(bool fold)
{
	uint64_t points = 0;
	double seconds = 0;

	for (unsigned i = 0; i < RUNS; i++) {
		struct cut_plan plan = { .name = "", .transactions = 30, .seed = test_seed + i, .fold = fold };
		struct cut_result r = cut_everywhere(&plan);

		points += r.points;
		seconds += r.seconds;
		if (r.violations)
			printf("  --seed=%llu: %s\n", (unsigned long long)plan.seed, r.first);
		if (!EXPECT_EQ(r.violations, 0) || !EXPECT(r.agreed))
			break;
	}
	printf("  %llu points, %.0f points/s\n", (unsigned long long)points, (double)points / seconds);
}

static void no_cut_of_thousands_loses_a_transaction(void) { cut_runs(false); }
static void no_cut_of_thousands_loses_a_fold(void) { cut_runs(true); }

TEST_MAIN(
	TEST(no_cut_of_thousands_loses_a_transaction),
	TEST(no_cut_of_thousands_loses_a_fold))
