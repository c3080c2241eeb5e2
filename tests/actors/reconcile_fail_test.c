/* tests/actors/reconcile_fail_test.c - the reconciliation kit when things go wrong: retries, lost answers, restarts, and
 * messages from people who mean no good. */
#include "tests/actors/reconcile_kit.h"

#include <stdlib.h>

/* ── back-off ── */

static void a_back_off_grows_to_its_cap_and_is_spread_over_all_of_it(void)
{
	static const noh_backoff small = { .base_ms = 10, .factor = 3, .cap_ms = 100 };
	static const uint64_t most[] = { 10, 10, 30, 90, 100, 100 };
	uint64_t random = test_seed;

	for (uint32_t failures = 0; failures < 6; failures++) {
		uint64_t low = UINT64_MAX, high = 0, sum = 0;

		for (int i = 0; i < 10000; i++) {
			uint64_t ms = noh_backoff_ms(&small, failures, test_random(&random));

			low = ms < low ? ms : low;
			high = ms > high ? ms : high;
			sum += ms;
		}
		EXPECT_EQ(low, 0);
		EXPECT_EQ(high, most[failures]);
		EXPECT(sum > most[failures] * 4500 && sum < most[failures] * 5500);
	}
	for (uint32_t failures = 10; failures < 100; failures++)
		EXPECT_EQ(noh_backoff_ms(NULL, failures, 30000), 30000);
	EXPECT_EQ(noh_backoff_ms(NULL, 1, 100), 100);
	EXPECT_EQ(noh_backoff_ms(NULL, 2, 200), 200);
	EXPECT_EQ(noh_backoff_ms(&(noh_backoff){ .base_ms = UINT32_MAX, .factor = UINT32_MAX, .cap_ms = UINT32_MAX }, UINT32_MAX,
				 UINT32_MAX), UINT32_MAX);
	EXPECT_EQ(noh_backoff_ms(&(noh_backoff){ .factor = 1 }, UINT32_MAX, 100), 100);
}

/* Lets time pass in small steps, so that each attempt is seen at its own instant. */
static void pass_finely(int64_t ms)
{
	for (int64_t i = 0; i < ms; i += 5)
		kit_pass_ms(5);
}

static void what_fails_is_tried_again_after_longer_and_longer_waits(void)
{
	int64_t most = 100;

	begin(false);
	world.how = NOT_AT_ALL;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	pass_finely(20000);
	noh_reconcile_state s = state();

	EXPECT_EQ(s.phase, NOH_PHASE_RETRYING);
	EXPECT(world.applied >= 7 && world.applied < 60);
	EXPECT_EQ(s.failed, world.applied);
	EXPECT_EQ(s.failures, world.applied);
	EXPECT(strcmp(s.error, "scale: the world says no") == 0);
	for (int i = 1; i < world.applied; i++, most = most < 15000 ? most * 2 : 30000)
		EXPECT(world.at_ms[i] - world.at_ms[i - 1] <= most + 10);
	world.how = AT_ONCE;
	pass_finely(31000);
	s = state();
	EXPECT_EQ(s.phase, NOH_PHASE_ACTIVE);
	EXPECT_EQ(s.failures, 0);
	EXPECT(strcmp(s.error, "") == 0);
	kit_end();
}

/* What failed at one instant is not tried again at one instant. */
static void many_that_fail_together_do_not_come_back_together(void)
{
	enum { MANY = 100 };
	int at[200] = { 0 }, most = 0;

	begin(false);
	world.how = NOT_AT_ALL;
	for (int i = 0; i < MANY; i++) {
		struct { uint64_t revision; struct spec spec; } m = { 1, { 1 } };
		char address[32];

		snprintf(address, sizeof address, "app:%d", i);
		EXPECT_EQ(noh_send(k.box, address, NOH_RECONCILE_APPLY, &m, sizeof m), NOH_OK);
	}
	kit_run(true);
	kit_pass_ms(SETTLED);
	for (int i = 0; i < MANY; i++) {
		char address[32];

		snprintf(address, sizeof address, "app:%d", i);
		int64_t wait = (int64_t)state_of(address).next_ms - kit_wall();

		if (EXPECT(wait >= 0 && wait <= 100))
			at[wait]++;
	}
	for (int i = 0; i < 200; i++)
		most = at[i] > most ? at[i] : most;
	EXPECT(most <= 10);
	kit_end();
}

static void after_its_attempts_it_waits_for_a_higher_revision_or_for_somebody(void)
{
	begin_plain();
	world.how = NOT_AT_ALL;
	app.backoff.attempts = 4;
	open_app(true);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_RETRY, NULL, 0), NOH_RECONCILE_NOT_NOW);
	pass_finely(2000);
	expect_phase(NOH_PHASE_FAILED);
	EXPECT_EQ(world.applied, 4);
	kit_pass_ms(DAY);
	EXPECT_EQ(world.applied, 4);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_STALE);
	kit_restart(&app_type, 0);                       /* that, too, is kept */
	kit_pass_ms(DAY);
	EXPECT_EQ(world.applied, 4);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_RETRY, NULL, 0), NOH_RECONCILE_OK);
	pass_finely(2000);
	EXPECT_EQ(world.applied, 8);
	expect_phase(NOH_PHASE_FAILED);
	world.how = AT_ONCE;
	EXPECT_EQ(want(2, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	expect_phase(NOH_PHASE_ACTIVE);
	kit_end();
}

static void what_turns_out_to_be_there_needs_no_further_attempt(void)
{
	begin_plain();
	world.how = NOT_AT_ALL;
	app.backoff.attempts = 1;
	open_app(false);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	expect_phase(NOH_PHASE_FAILED);
	EXPECT_EQ(tell_seen(0, 2, 0), NOH_RECONCILE_OK);
	expect_phase(NOH_PHASE_FAILED);
	EXPECT_EQ(tell_seen(0, 3, 0), NOH_RECONCILE_OK);         /* somebody did it by hand */
	expect_phase(NOH_PHASE_ACTIVE);
	EXPECT_EQ(world.applied, 1);
	kit_end();
}

static void giving_up_is_told_to_whoever_waits(void)
{
	begin_plain();
	world.how = NOT_AT_ALL;
	app.backoff.attempts = 1;
	open_app(false);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	k.heard.count = 0;
	EXPECT_EQ(noh_call_then(k.box, "app:a", NOH_RECONCILE_WAIT, NULL, 0, 60000, kit_done, NULL), NOH_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(k.heard.count, 1);
	EXPECT_EQ(k.heard.status, NOH_EFAILED);
	EXPECT_EQ(k.heard.len, sizeof(noh_reconcile_state));
	kit_end();
}

/* ── actions under way ── */

static void an_actor_that_refuses_is_asked_again(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		world.how = BY_ASKING;
		world.said = 3;
		EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
		kit_pass_ms(SETTLED);
		EXPECT(strcmp(state().error, "scale: out of?room") == 0);
		pass_finely(3000);
		EXPECT_EQ(world.applied, 4);
		EXPECT_EQ(world.is.copies, 3);
		expect_phase(NOH_PHASE_ACTIVE);
		kit_end();
	}
}

static void an_answer_that_does_not_come_is_a_failure_and_its_late_coming_is_nothing(void)
{
	begin_plain();
	world.how = BY_ASKING;
	world.hold = true;
	app.action_ms = 1000;
	open_app(false);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(state().action, SCALE);
	kit_pass_ms(999);
	EXPECT_EQ(state().failed, 0);
	world.hold = false;
	kit_pass_ms(5);
	EXPECT_EQ(state().failed, 1);
	kit_pass_ms(200);
	EXPECT_EQ(world.applied, 2);
	EXPECT_EQ(state().action, NOH_ACTION_NONE);
	expect_phase(NOH_PHASE_ACTIVE);
	kit_end();
}

/* What a failed action says is shown as `shown`. */
static void says(const char *text, size_t len, const char *shown)
{
	char want[300];

	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number, NOH_EFAILED, text, len), NOH_OK);
	kit_run(true);
	snprintf(want, sizeof want, "scale: %s", shown);
	if (!EXPECT(strcmp(state().error, want) == 0))
		printf("  it is \"%s\"\n", state().error);
	kit_pass_ms(40000);                      /* it is tried again */
	EXPECT_EQ(state().action, SCALE);
}

static void what_is_said_outside_is_made_fit_for_terminals_and_people(void)
{
	char wide[600];

	begin_plain();
	app.action_ms = 10000000;
	open_app(false);
	world.how = OUTSIDE;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	says("\x1b[2J\x7f\r\n", 7, "?[2J???");
	says("\xc2\x9b" "2J", 4, "?2J");                         /* the same in one character of the second set */
	says("\x9b" "2J", 3, "?2J");                             /* and as a byte */
	says("file\xe2\x80\xae" "txt.exe", 14, "file?txt.exe");     /* from right to left */
	says("\xe2\x81\xa6x\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f\xe2\x80\xa8", 15, "?x????");
	says("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\xad", 15, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\xad");
	says("\xc0\xaf \xed\xa0\x80 \xe2\x82", 9, "?? ??? ??");      /* no characters */
	for (size_t i = 0; i < sizeof wide; i += 2)
		memcpy(wide + i, "\xc3\xbc", 2);
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number, NOH_EFAILED, wide, sizeof wide), NOH_OK);
	kit_run(true);
	EXPECT((strlen(state().error) - strlen("scale: ")) % 2 == 0);     /* cut between two of them */
	kit_end();
}

static void a_thread_outside_may_end_an_action(void)
{
	struct seen seen = { 3, 0 };

	begin(false);
	world.how = OUTSIDE;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number + 1, NOH_OK, &seen, sizeof seen), NOH_OK);
	kit_run(true);
	EXPECT_EQ(state().action, SCALE);                /* that was another one */
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number, NOH_EFAILED, "no", 2), NOH_OK);
	kit_run(true);
	EXPECT(strcmp(state().error, "scale: no") == 0);
	kit_pass_ms(200);
	EXPECT_EQ(world.applied, 2);
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number, NOH_OK, &seen, sizeof seen), NOH_OK);
	kit_run(true);
	expect_phase(NOH_PHASE_ACTIVE);
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number, NOH_EFAILED, NULL, 0), NOH_OK);
	kit_run(true);
	expect_phase(NOH_PHASE_ACTIVE);
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", 1, NOH_OK, &seen, NOH_RECONCILE_BODY + 1), NOH_ETOOBIG);
	kit_end();
}

/* ── restarts ── */

static void the_last_applied_revision_survives_a_restart(void)
{
	begin(true);
	EXPECT_EQ(want(41, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	kit_restart(&app_type, 0);
	noh_reconcile_state s = state();

	EXPECT_EQ(s.applied, 41);
	EXPECT_EQ(s.revision, 41);
	EXPECT_EQ(s.phase, NOH_PHASE_ACTIVE);
	EXPECT_EQ(want(40, 1), NOH_RECONCILE_STALE);
	kit_pass_ms(1000);
	EXPECT_EQ(world.applied, 1);                     /* nothing is done again */
	kit_end();
}

static void a_burst_that_settles_survives_a_restart(void)
{
	begin(true);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	EXPECT_EQ(want(2, 4), NOH_RECONCILE_OK);
	kit_restart(&app_type, 0);
	EXPECT_EQ(world.applied, 0);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(world.applied, 1);
	EXPECT_EQ(world.is.copies, 4);
	kit_end();
}

static void an_action_under_way_at_a_restart_is_done_again(void)
{
	begin(true);
	world.how = BY_ASKING;
	world.hold = true;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(world.applied, 1);
	world.hold = false;
	kit_restart(&app_type, 0);
	EXPECT_EQ(state().action, NOH_ACTION_NONE);      /* whoever wakes it has it know that */
	kit_pass_ms(1);
	EXPECT_EQ(world.applied, 2);
	EXPECT_EQ(world.is.copies, 3);
	EXPECT_EQ(state().applied, 1);
	kit_end();
}

static void its_deadline_wakes_it_if_nobody_else_does(void)
{
	begin_plain();
	app.tick_ms = NOH_NEVER;
	open_app(true);
	world.how = BY_ASKING;
	world.hold = true;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	world.hold = false;
	kit_restart(&app_type, 0);
	kit_pass_ms(30000);
	kit_pass_ms(200);
	EXPECT_EQ(world.applied, 2);
	EXPECT_EQ(world.is.copies, 3);
	kit_end();
}

static void failures_in_a_row_are_counted_across_a_restart(void)
{
	begin_plain();
	world.how = NOT_AT_ALL;
	app.backoff = (noh_backoff){ .base_ms = 1000, .factor = 1, .attempts = 6 };
	open_app(true);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	kit_pass_ms(1000);
	uint32_t failures = state().failures;

	EXPECT(failures >= 2);
	kit_restart(&app_type, 0);
	EXPECT(state().failures >= failures);
	for (int i = 0; i < 10; i++)
		kit_pass_ms(1000);
	EXPECT_EQ(world.applied, 6);
	expect_phase(NOH_PHASE_FAILED);
	kit_end();
}

static noh_reconciler before, after;

static int grow(void *user, const void *old, size_t old_len, void *fresh, size_t *len)
{
	(void)user;
	return noh_reconcile_migrate(&before, &after, old, old_len, fresh, len);
}

static void a_type_whose_sizes_have_changed_migrates(void)
{
	static const noh_migration steps[] = { { 1, grow } };
	noh_type type;

	begin_active(true, 3);
	before = app;
	app.spec_max = 64;
	app.own_size = 24;
	app.observed_max = 100;
	after = app;
	type = noh_reconcile_type(&app);
	type.version = 2;
	type.migrations = steps;
	type.migration_count = 1;
	kit_restart(&type, 0);
	EXPECT_EQ(state().applied, 1);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_STALE);      /* the same spec: it is all there */
	EXPECT_EQ(want(1, 4), NOH_RECONCILE_CONFLICT);
	EXPECT_EQ(want(2, 4), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(world.is.copies, 4);
	kit_end();
}

/* ── whose fault it is ── */

static void a_diff_that_fails_is_a_failed_turn(void)
{
	noh_type_stats t;

	begin(false);
	world.broken = true;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(noh_get_type_stats(k.box, "app", &t), NOH_OK);
	EXPECT(t.failed >= 1);
	EXPECT(strstr(k.log, "the program is broken"));
	EXPECT_EQ(world.applied, 0);
	kit_end();
}

static void a_broken_program_awaits_a_higher_revision_if_its_policy_says_so(void)
{
	static const noh_supervision policy = { .restart = NOH_TRANSIENT, .then = NOH_THEN_AWAIT, .base_ms = 1, .cap_ms = 10,
						.restarts = 2 };
	noh_vitals v;

	begin_plain();
	app_type = noh_reconcile_type(&app);
	app_type.supervision = &policy;
	kit_begin(&app_type, true);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	world.broken = true;
	kit_pass_ms(SETTLED);
	for (int i = 0; i < 10; i++)
		kit_pass_ms(20);
	EXPECT_EQ(noh_get_vitals(k.box, "app:a", &v), NOH_OK);
	EXPECT_EQ(v.health, NOH_AWAITING);
	EXPECT(strstr(v.reason, "the program is broken"));
	EXPECT_EQ(v.desired, 1);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_TICK, NULL, 0, NULL), NOH_EQUARANTINED);
	EXPECT_EQ(want(1, 3), -1);
	world.broken = false;
	kit_restart(&app_type, 0);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_TICK, NULL, 0, NULL), NOH_EQUARANTINED);
	EXPECT_EQ(want(2, 4), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	expect_phase(NOH_PHASE_ACTIVE);
	EXPECT_EQ(world.is.copies, 4);
	kit_end();
}

static void nothing_that_anybody_says_makes_a_turn_fail(void)
{
	static const char junk[5000] = { 1, 2, 3 };
	static const uint64_t bad[] = { 0, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	uint64_t random = test_seed;
	noh_type_stats t;

	begin_active(false, 3);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_APPLY, NULL, 0, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_APPLY, bad, sizeof bad[0], NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_APPLY, junk, 8 + sizeof(struct spec) + 1, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_OBSERVED, junk, 7, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_OBSERVED, junk, sizeof junk, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_DRAIN, bad + 1, 8, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_DRAIN, NULL, 0, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_WAIT, junk, 3, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_FINISH, bad, sizeof bad, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_FINISH, junk, 3, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_ANSWER, bad, sizeof bad, NULL), NOH_REFUSED);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_KINDS, NULL, 0, NULL), NOH_EKIND);
	for (int i = 0; i < 2000; i++) {
		uint64_t body[4] = { test_random(&random) % 4, test_random(&random), 0, test_random(&random) };
		uint32_t kind = (uint32_t)(test_random(&random) % NOH_RECONCILE_KINDS);

		(void)noh_send(k.box, "app:a", kind, body, test_random(&random) % (sizeof body + 1));
		if (i % 10 == 0)
			kit_pass_ms(100);
	}
	kit_pass_ms(60000);
	EXPECT_EQ(noh_get_type_stats(k.box, "app", &t), NOH_OK);
	EXPECT_EQ(t.failed, 0);
	kit_end();
}

static void a_type_without_diff_or_apply_is_not_registered(void)
{
	noh_reconciler none = { .name = "none", .diff = app_diff };
	noh_type type = noh_reconcile_type(&none);
	noh_box *box;

	EXPECT_EQ(noh_open(&box, NULL), NOH_OK);
	EXPECT_EQ(noh_register(box, &type), NOH_EINVAL);
	none.apply = app_apply;
	none.spec_max = 2u << 20;
	type = noh_reconcile_type(&none);
	EXPECT_EQ(noh_register(box, &type), NOH_EINVAL);
	noh_close(box);
}

TEST_MAIN(
	TEST(a_back_off_grows_to_its_cap_and_is_spread_over_all_of_it, "SUP-09"),
	TEST(what_fails_is_tried_again_after_longer_and_longer_waits, "SUP-09 PR-15"),
	TEST(many_that_fail_together_do_not_come_back_together, "SUP-09"),
	TEST(after_its_attempts_it_waits_for_a_higher_revision_or_for_somebody, "SUP-07"),
	TEST(what_turns_out_to_be_there_needs_no_further_attempt, "RC-03"),
	TEST(giving_up_is_told_to_whoever_waits),
	TEST(an_actor_that_refuses_is_asked_again, "RC-03 PR-15"),
	TEST(an_answer_that_does_not_come_is_a_failure_and_its_late_coming_is_nothing, "RC-01"),
	TEST(what_is_said_outside_is_made_fit_for_terminals_and_people),
	TEST(a_thread_outside_may_end_an_action),
	TEST(the_last_applied_revision_survives_a_restart, "SUP-15"),
	TEST(a_burst_that_settles_survives_a_restart, "SUP-15 MB-08"),
	TEST(an_action_under_way_at_a_restart_is_done_again, "SUP-15 RC-03"),
	TEST(its_deadline_wakes_it_if_nobody_else_does, "SUP-15"),
	TEST(failures_in_a_row_are_counted_across_a_restart, "SUP-15"),
	TEST(a_type_whose_sizes_have_changed_migrates),
	TEST(a_diff_that_fails_is_a_failed_turn),
	TEST(a_broken_program_awaits_a_higher_revision_if_its_policy_says_so, "SUP-07"),
	TEST(nothing_that_anybody_says_makes_a_turn_fail, "P11"),
	TEST(a_type_without_diff_or_apply_is_not_registered))
