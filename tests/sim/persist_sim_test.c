/* tests/sim/persist_sim_test.c - what was acknowledged survives any power cut, and nothing else appears. */
#include "tests/sim/persist_world.h"

#include "tests/lib/test.h"
#include "tests/sim/lmdb_wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NOH_SANITIZED
#define STORIES 20
#else
#define STORIES 150
#endif

static char dir[128];

/* Stories from `from` on, until one goes wrong or there are `count`. */
static struct world_result tell(struct world_plan plan, uint64_t from, unsigned count,
				struct world_seen *seen, unsigned *told)
{
	struct world_result r = { 0 };

	lmdb_wrap_make_dir(dir, sizeof dir);
	for (*told = 0; *told < count && r.violations == 0; ++*told) {
		plan.seed = from + *told;
		r = world_run(&plan, dir, seen);
	}
	lmdb_wrap_remove_dir(dir);
	return r;
}

/* NOH_STORY=n: that one alone, as a failure names it. */
static uint64_t chosen_story(void)
{
	const char *text = getenv("NOH_STORY");

	return text ? strtoull(text, NULL, 10) : 0;
}

static void nothing_acknowledged_is_lost_in_any_power_cut(void)
{
	struct world_seen seen = { 0 };
	unsigned told;
	uint64_t story = chosen_story();
	struct world_result r = tell((struct world_plan){ 0 }, story ? story : 1, story ? 1 : STORIES,
				     &seen, &told);

	if (r.violations)
		printf("  story %llu: %s\n", (unsigned long long)(story ? story : told), r.first);
	EXPECT_EQ(r.violations, 0);
	if (r.violations || story)
		return;
	printf("  %u stories, %llu cuts, %llu records, %llu acknowledged, %llu folds\n", told,
	       (unsigned long long)seen.cuts, (unsigned long long)seen.records,
	       (unsigned long long)seen.acknowledged, (unsigned long long)seen.folds);
	/* What never happened was not tested. */
	EXPECT(seen.survived_unacknowledged > 0);
	EXPECT(seen.lost_unacknowledged > 0);
	EXPECT(seen.kills > 0);
	EXPECT(seen.faults > 0);
	EXPECT(seen.cuts_in_recovery > 0);
	EXPECT(seen.torn_tails > 0);
	EXPECT(seen.replayed > 0);
	EXPECT(seen.large > 0);
	EXPECT(seen.unreserved > 0);
	EXPECT(seen.erased > 0);
	EXPECT(seen.consumed > 0);
}

/* Each ended badly once: a frame that a dead process had under way was read, folded, and then lost with the power. */
static void stories_that_once_ended_badly_end_well(void)
{
	static const uint64_t stories[] = { 409148589, 412155968 };
	struct world_seen seen = { 0 };
	unsigned told;

	for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
		struct world_result r = tell((struct world_plan){ 0 }, stories[i], 1, &seen, &told);

		if (!EXPECT_EQ(r.violations, 0))
			printf("  story %llu: %s\n", (unsigned long long)stories[i], r.first);
	}
}

static void the_same_story_ends_the_same_way(void)
{
	struct world_seen seen = { 0 };
	unsigned told;
	struct world_result a = tell((struct world_plan){ 0 }, 7, 1, &seen, &told);
	struct world_result b = tell((struct world_plan){ 0 }, 7, 1, &seen, &told);

	EXPECT(a.hash == b.hash && a.hash != 0);
}

static void found(struct world_plan plan, const char *what)
{
	struct world_seen seen = { 0 };
	unsigned told;
	struct world_result r = tell(plan, 1, STORIES, &seen, &told);

	printf("  planted: %-34s found in story %u: %s\n", what, told, r.first);
	EXPECT(r.violations > 0);
}

static void a_disk_that_lies_is_found_out(void)
{
	found((struct world_plan){ .lie = true }, "the disk forgets");
}

static void an_answer_before_the_disk_is_found_out(void)
{
	found((struct world_plan){ .ack_early = true }, "acknowledged at the push");
}

static void an_answer_at_the_tag_is_found_out(void)
{
	found((struct world_plan){ .ack_at_tag = true }, "acknowledged at the tag, not at due");
}

static void segments_let_go_before_the_fold_are_found_out(void)
{
	found((struct world_plan){ .folded_early = true }, "folded before the commit");
}

static void a_stamp_above_what_is_folded_is_found_out(void)
{
	found((struct world_plan){ .stamp_high = true }, "a stamp too high");
}

/* A refusal names the place; a loss is that of the last frames, which nothing behind them vouches for. */
static void a_rotten_bit_in_the_journal_is_refused_or_harmless(void)
{
	struct world_seen seen = { 0 };
	unsigned refused = 0, harmless = 0, torn = 0;

	lmdb_wrap_make_dir(dir, sizeof dir);
	for (uint64_t i = 0; i < 2 * STORIES; i++) {
		struct world_result r = world_run(&(struct world_plan){ .seed = i, .rot = true }, dir, &seen);

		if (r.violations == 0)
			harmless++;
		else if (strncmp(r.first, "journal_recover: ", 17) == 0)
			refused++;
		else if (strncmp(r.first, "lost: ", 6) == 0)
			torn++;
		else
			test_failed(__FILE__, __LINE__, "story %llu: %s", (unsigned long long)i, r.first);
	}
	lmdb_wrap_remove_dir(dir);
	printf("  rot: %u refused, %u harmless, %u taken for a torn tail\n", refused, harmless, torn);
	EXPECT(refused > 0 && harmless > 0);
}

TEST_MAIN(
	TEST(a_rotten_bit_in_the_journal_is_refused_or_harmless),
	TEST(nothing_acknowledged_is_lost_in_any_power_cut),
	TEST(stories_that_once_ended_badly_end_well, "P5"),
	TEST(the_same_story_ends_the_same_way),
	TEST(a_disk_that_lies_is_found_out),
	TEST(an_answer_before_the_disk_is_found_out),
	TEST(an_answer_at_the_tag_is_found_out),
	TEST(segments_let_go_before_the_fold_are_found_out),
	TEST(a_stamp_above_what_is_folded_is_found_out))
