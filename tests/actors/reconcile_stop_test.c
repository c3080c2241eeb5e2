/* tests/actors/reconcile_stop_test.c - the reconciliation kit: the end of a thing, and who waits for it. */
#include "tests/actors/reconcile_kit.h"

/* ── stop and drain ── */

static bool is_active(const char *address)
{
	noh_status s;

	EXPECT_EQ(noh_get_status(k.box, address, &s), NOH_OK);
	return s.life == NOH_ACTIVE;
}

static void stopped_it_is_gone_and_only_a_higher_revision_brings_it_back(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin_active(durable, 3);
		EXPECT_EQ(outcome_of(NOH_RECONCILE_STOP, "no more\033[2J", 11), NOH_RECONCILE_OK);
		EXPECT_EQ(world.is.copies, 0);
		kit_pass_ms(100);
		EXPECT(!is_active("app:a"));
		expect_phase(NOH_PHASE_STOPPED);
		EXPECT_EQ(outcome_of(NOH_RECONCILE_STOP, NULL, 0), NOH_RECONCILE_STALE);
		EXPECT_EQ(want(1, 3), NOH_RECONCILE_STALE);
		kit_pass_ms(DAY);
		EXPECT_EQ(world.is.copies, 0);
		EXPECT_EQ(want(2, 2), NOH_RECONCILE_OK);
		kit_pass_ms(SETTLED);
		EXPECT_EQ(world.is.copies, 2);
		expect_phase(NOH_PHASE_ACTIVE);
		kit_end();
	}
}

static void what_never_ran_stops_at_once(void)
{
	begin(false);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_STOP, NULL, 0), NOH_RECONCILE_OK);
	expect_phase(NOH_PHASE_STOPPED);
	EXPECT_EQ(world.diffs, 0);
	kit_end();
}

static void what_is_to_be_forgotten_leaves_nothing(void)
{
	noh_status s;

	begin_plain();
	app.forget = true;
	open_app(true);
	EXPECT_EQ(want(7, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_STOP, NULL, 0), NOH_RECONCILE_OK);
	kit_pass_ms(1);
	EXPECT_EQ(noh_get_status(k.box, "app:a", &s), NOH_OK);
	EXPECT(!s.exists);
	EXPECT_EQ(want(1, 1), NOH_RECONCILE_OK);
	kit_end();
}

static void it_drains_then_stops(void)
{
	struct { uint64_t ms; char why[4]; } m = { 60000, "node" };

	begin_active(true, 3);
	EXPECT_EQ(tell_seen(0, 3, 1), NOH_RECONCILE_OK);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_DRAIN, &m, 12), NOH_RECONCILE_OK);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_DRAIN, &m, 12), NOH_RECONCILE_STALE);
	kit_pass_ms(10000);
	expect_phase(NOH_PHASE_DRAINING);
	EXPECT_EQ(world.is.copies, 3);
	EXPECT_EQ(tell_seen(0, 3, 0), NOH_RECONCILE_OK);
	EXPECT_EQ(world.is.copies, 0);
	expect_phase(NOH_PHASE_STOPPED);
	kit_end();
}

static void what_does_not_drain_by_its_deadline_is_stopped(void)
{
	uint64_t ms = 5000;

	begin_active(true, 3);
	EXPECT_EQ(tell_seen(0, 3, 1), NOH_RECONCILE_OK);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_DRAIN, &ms, sizeof ms), NOH_RECONCILE_OK);
	kit_pass_ms(4999);
	expect_phase(NOH_PHASE_DRAINING);
	kit_restart(&app_type, 0);                       /* the deadline is kept */
	expect_phase(NOH_PHASE_DRAINING);
	kit_pass_ms(10);
	EXPECT_EQ(world.is.copies, 0);
	expect_phase(NOH_PHASE_STOPPED);
	kit_end();
}

static void a_higher_revision_ends_a_drain(void)
{
	uint64_t ms = 5000;

	begin_active(false, 3);
	EXPECT_EQ(tell_seen(0, 3, 1), NOH_RECONCILE_OK);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_DRAIN, &ms, sizeof ms), NOH_RECONCILE_OK);
	EXPECT_EQ(want(2, 5), NOH_RECONCILE_OK);
	kit_pass_ms(10000);
	EXPECT_EQ(world.is.copies, 5);
	expect_phase(NOH_PHASE_ACTIVE);
	kit_end();
}

/* ── waiting ── */

static struct { int count, status[8]; uint64_t applied; } waited;

static void wait_done(void *user, int status, const void *answer, size_t len)
{
	noh_reconcile_state s;

	(void)user;
	waited.status[waited.count++ % 8] = status;
	if (len == sizeof s) {
		memcpy(&s, answer, sizeof s);
		waited.applied = s.applied;
	}
}

static void wait_for(uint64_t revision)
{
	noh_call_options o = { .timeout_ms = 3600000, .durability = NOH_MEMORY };

	EXPECT_EQ(noh_call_then_with(k.box, "app:a", NOH_RECONCILE_WAIT, &revision, revision ? 8 : 0, &o, wait_done, NULL), NOH_OK);
	kit_run(true);
}

static void whoever_waits_is_told_when_it_is_applied(void)
{
	memset(&waited, 0, sizeof waited);
	begin(true);
	wait_for(0);                                     /* the first */
	wait_for(2);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	EXPECT_EQ(waited.count, 0);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(waited.count, 1);
	EXPECT_EQ(waited.applied, 1);
	wait_for(1);                                     /* has been */
	EXPECT_EQ(waited.count, 2);
	EXPECT_EQ(want(3, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(waited.count, 3);                      /* 3 is more than 2 */
	EXPECT_EQ(waited.applied, 3);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(waited.status[i], NOH_OK);
	kit_end();
}

static void whoever_waits_for_what_stops_is_told_that(void)
{
	memset(&waited, 0, sizeof waited);
	begin(false);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	wait_for(1);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_STOP, NULL, 0), NOH_RECONCILE_OK);
	EXPECT_EQ(waited.count, 1);
	EXPECT_EQ(waited.status[0], NOH_EGONE);
	wait_for(1);
	EXPECT_EQ(waited.status[1], NOH_EGONE);
	wait_for(2);                                     /* may still come */
	EXPECT_EQ(waited.count, 2);
	EXPECT_EQ(want(2, 1), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(waited.count, 3);
	EXPECT_EQ(waited.status[2], NOH_OK);
	kit_end();
}

static void too_many_that_wait_are_refused(void)
{
	memset(&waited, 0, sizeof waited);
	begin(false);
	for (int i = 0; i < NOH_RECONCILE_WAITERS; i++)
		wait_for(1);
	EXPECT_EQ(waited.count, 0);
	wait_for(1);
	EXPECT_EQ(waited.count, 1);
	EXPECT_EQ(waited.status[0], NOH_REFUSED);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(waited.count, NOH_RECONCILE_WAITERS + 1);
	kit_end();
}

static void who_waited_before_a_restart_is_forgotten(void)
{
	begin(true);
	for (int i = 0; i < NOH_RECONCILE_WAITERS; i++)
		wait_for(1);
	kit_restart(&app_type, 0);
	memset(&waited, 0, sizeof waited);               /* all have been told that the box stops */
	wait_for(1);
	EXPECT_EQ(waited.count, 0);                      /* there is room again */
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(waited.count, 1);
	EXPECT_EQ(waited.status[0], NOH_OK);
	kit_end();
}

TEST_MAIN(
	TEST(stopped_it_is_gone_and_only_a_higher_revision_brings_it_back, "RC-05 SUP-07"),
	TEST(what_never_ran_stops_at_once),
	TEST(what_is_to_be_forgotten_leaves_nothing),
	TEST(it_drains_then_stops, "RC-05"),
	TEST(what_does_not_drain_by_its_deadline_is_stopped, "RC-05"),
	TEST(a_higher_revision_ends_a_drain),
	TEST(whoever_waits_is_told_when_it_is_applied),
	TEST(whoever_waits_for_what_stops_is_told_that),
	TEST(too_many_that_wait_are_refused),
	TEST(who_waited_before_a_restart_is_forgotten))
