/* tests/sim/persist_sim_stress.c - thousands of stories of persist_world.h, from the test's seed. */
#include "tests/sim/persist_world.h"

#include "tests/lib/test.h"
#include "tests/sim/lmdb_wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECONDS 60

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* NOH_STORIES=n: so many, however long it takes. */
static void no_story_of_thousands_loses_anything(void)
{
	const char *text = getenv("NOH_STORIES");
	uint64_t count = text ? strtoull(text, NULL, 10) : UINT64_MAX, told = 0;
	struct world_seen seen = { 0 };
	double from = now(), seconds;
	char dir[128];

	lmdb_wrap_make_dir(dir, sizeof dir);
	for (; told < count && (text || now() - from < SECONDS); told++) {
		struct world_plan plan = { .seed = (test_seed + told) % 1000000000 };
		struct world_result r = world_run(&plan, dir, &seen);

		if (r.violations)
			printf("  story %llu (NOH_STORY): %s\n", (unsigned long long)plan.seed, r.first);
		if (!EXPECT_EQ(r.violations, 0))
			break;
	}
	seconds = now() - from;
	lmdb_wrap_remove_dir(dir);
	printf("  %llu stories, %llu cuts, %llu deaths, %llu of them in recovery, %llu faults, %llu records, "
	       "%.0f ends/s\n", (unsigned long long)told, (unsigned long long)seen.cuts,
	       (unsigned long long)seen.kills, (unsigned long long)seen.cuts_in_recovery,
	       (unsigned long long)seen.faults, (unsigned long long)seen.records,
	       (double)(seen.cuts + seen.kills) / seconds);
}

TEST_MAIN(TEST(no_story_of_thousands_loses_anything))
