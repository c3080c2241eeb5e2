/* tests/box/limits_metrics_test.c - the limits in force, as metrics: by type, on a clock that stands still. */
#include "tests/box/hands_kit.h"
#include "tests/box/metrics_kit.h"

static int on_message(noh_turn *t, const noh_msg *m)
{
	(void)m;
	*(uint64_t *)noh_state(t) += 1;
	return NOH_OK;
}

#define COMMON .state_size = 8, .idle_timeout_ms = NOH_NEVER, .on_message = on_message
static const noh_type all = { .name = "all", COMMON, .limits = { .per_second = 3, .burst = 5 } };
static const noh_type each = { .name = "each", COMMON,
	.limits = { .actor_per_second = 0.5, .actor_burst = 2, .turns = 4, .over = NOH_OVER_REFUSE } };
static const noh_type unbound = { .name = "unbound", COMMON };

static void the_limits_in_force_are_metrics(void)
{
	noh_box *box = hands_start(TYPES(&all, &each, &unbound));

	scrape(box);
	EXPECT_EQ(said("noh_limit_messages_per_second{type=\"all\",scope=\"type\",over=\"wait\"}"), 3);
	EXPECT_EQ(said("noh_limit_messages_per_second{type=\"each\",scope=\"actor\",over=\"refuse\"}") * 10, 5);
	EXPECT_EQ(said("noh_limit_burst_messages{type=\"all\",scope=\"type\"}"), 5);
	EXPECT_EQ(said("noh_limit_burst_messages{type=\"each\",scope=\"actor\"}"), 2);
	EXPECT_EQ(said("noh_limit_turns{type=\"each\"}"), 4);
	EXPECT(!strstr(scraped.text, "noh_limit_turns{type=\"all\"}"));
	EXPECT(!strstr(scraped.text, "noh_limit_tokens{type=\"each\"}"));
	EXPECT(!strstr(scraped.text, "{type=\"unbound\",scope="));
	noh_close(box);
}

static void what_is_left_of_a_types_limit_is_a_metric(void)
{
	noh_box *box = hands_start(TYPES(&all));

	scrape(box);
	EXPECT_EQ(said("noh_limit_tokens{type=\"all\"}"), 5);
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(noh_send(box, "all:a", 0, NULL, 0), NOH_OK);
	hands_run(box);
	scrape(box);
	EXPECT_EQ(said("noh_limit_tokens{type=\"all\"}"), 0);
	hands_after_ms(box, 1000);
	scrape(box);
	EXPECT_EQ(said("noh_limit_tokens{type=\"all\"}"), 3);
	noh_close(box);
}

static void a_limit_that_changes_or_goes_does_so_in_the_metrics(void)
{
	noh_box *box = hands_start(TYPES(&all));
	noh_limits other = { .per_second = 1e7, .turns = 2 };

	EXPECT_EQ(noh_set_limits(box, "all", &other), NOH_OK);
	scrape(box);
	EXPECT_EQ(said("noh_limit_messages_per_second{type=\"all\",scope=\"type\",over=\"wait\"}"), 10000000);
	EXPECT_EQ(said("noh_limit_turns{type=\"all\"}"), 2);
	EXPECT_EQ(noh_set_limits(box, "all", NULL), NOH_OK);
	scrape(box);
	EXPECT(!strstr(scraped.text, "\nnoh_limit_"));
	noh_close(box);
}

TEST_MAIN(
	TEST(the_limits_in_force_are_metrics, "MB-11"),
	TEST(what_is_left_of_a_types_limit_is_a_metric, "MB-11"),
	TEST(a_limit_that_changes_or_goes_does_so_in_the_metrics, "MB-11"))
