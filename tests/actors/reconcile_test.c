/* tests/actors/reconcile_test.c - the reconciliation kit: bursts, revisions, passes, and what others see of it. */
#include "tests/actors/reconcile_kit.h"

/* ── bursts (MB-08) ── */

static void twenty_changes_in_100_ms_lead_to_one_pass_with_the_final_count(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		for (int i = 1; i <= 20; i++) {
			EXPECT_EQ(want((uint64_t)i, i), NOH_RECONCILE_OK);
			EXPECT_EQ(world.applied, 0);
			kit_pass_ms(5);
		}
		kit_pass_ms(SETTLED);
		noh_reconcile_state s = state();

		EXPECT_EQ(world.applied, 1);
		EXPECT_EQ(world.args[0], 20);
		EXPECT_EQ(s.passes, 1);
		EXPECT_EQ(s.applied, 20);
		EXPECT_EQ(s.phase, NOH_PHASE_ACTIVE);
		kit_end();
	}
}

static void of_changes_that_wait_only_the_highest_is_handled(void)
{
	static const int order[] = { 3, 1, 7, 20, 4, 19 };
	noh_type_stats t;

	begin(false);
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		struct { uint64_t revision; struct spec spec; } m = { (uint64_t)order[i], { order[i] } };

		EXPECT_EQ(noh_send(k.box, "app:a", NOH_RECONCILE_APPLY, &m, sizeof m), NOH_OK);
	}
	kit_pass_ms(0);
	EXPECT_EQ(noh_get_type_stats(k.box, "app", &t), NOH_OK);
	EXPECT_EQ(t.coalesced, 5);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(world.applied, 1);
	EXPECT_EQ(world.args[0], 20);
	kit_end();
}

/* The burst begins while an action is under way, which ends in the middle of it: well, badly, or not at all. */
static void a_burst_during_an_action_is_one_more_pass(void)
{
	enum { WELL, BADLY, NOT };

	for (int end = WELL; end <= NOT; end++) {
		struct seen seen = { 1, 0 };

		begin_plain();
		world.how = OUTSIDE;
		app.action_ms = 10000;
		open_app(false);
		EXPECT_EQ(want(1, 1), NOH_RECONCILE_OK);
		kit_pass_ms(SETTLED);
		EXPECT_EQ(world.applied, 1);
		for (int i = 2; i <= 21; i++) {
			EXPECT_EQ(want((uint64_t)i, i), NOH_RECONCILE_OK);
			if (i == 4 && end != NOT)
				EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", world.number, end == WELL ? NOH_OK : NOH_EFAILED,
							       &seen, end == WELL ? sizeof seen : 0), NOH_OK);
			kit_pass_ms(5);
			EXPECT_EQ(world.applied, 1);     /* one action under way at most, and none in the burst */
		}
		kit_pass_ms(end == NOT ? 10000 : SETTLED);
		kit_pass_ms(end == NOT ? 100 : 0);       /* its back-off */
		EXPECT_EQ(world.applied, 2);
		EXPECT_EQ(world.args[1], 21);
		kit_end();
	}
}

static void at_once_means_in_the_same_turn(void)
{
	begin_plain();
	app.settle_ms = NOH_RECONCILE_AT_ONCE;
	open_app(false);
	EXPECT_EQ(want(1, 4), NOH_RECONCILE_OK);
	EXPECT_EQ(world.is.copies, 4);
	expect_phase(NOH_PHASE_ACTIVE);
	kit_end();
}

/* ── revisions ── */

static void a_stale_revision_changes_nothing_and_writes_nothing(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		EXPECT_EQ(want(5, 3), NOH_RECONCILE_OK);
		kit_pass_ms(SETTLED);
		uint64_t records = kit_stats().journal_records;

		EXPECT_EQ(want(4, 9), NOH_RECONCILE_STALE);
		EXPECT_EQ(want(5, 3), NOH_RECONCILE_STALE);
		EXPECT_EQ(want(5, 4), NOH_RECONCILE_CONFLICT);
		kit_pass_ms(1000);
		EXPECT_EQ(kit_stats().journal_records, records);
		EXPECT_EQ(world.is.copies, 3);
		EXPECT_EQ(world.applied, 1);
		EXPECT_EQ(state().revision, 5);
		kit_end();
	}
}

static int only_even(noh_turn *turn, noh_reconcile *now, const void *spec, size_t len)
{
	struct spec s;

	(void)turn;
	if (len != sizeof s)
		return noh_reconcile_fail(now, "a spec has 8 bytes, not %zu", len);
	memcpy(&s, spec, sizeof s);
	return s.copies % 2 ? noh_reconcile_fail(now, "%lld is odd", (long long)s.copies) : NOH_OK;
}

static void a_spec_that_is_none_is_refused_with_its_reason(void)
{
	struct { uint64_t revision; struct spec spec; } m = { 1, { 3 } };

	begin_plain();
	app.check = only_even;
	open_app(false);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_APPLY, &m, sizeof m, NULL), NOH_REFUSED);
	EXPECT(k.heard.len == 8 && memcmp(k.heard.body, "3 is odd", 8) == 0);
	EXPECT_EQ(kit_call("app:a", NOH_RECONCILE_APPLY, &m, sizeof m - 1, NULL), NOH_REFUSED);
	EXPECT_EQ(state().revision, 0);
	EXPECT_EQ(want(1, 4), NOH_RECONCILE_OK);
	kit_end();
}

/* ── observed ── */

static void what_is_seen_drives_it_on_and_a_late_snapshot_does_not(void)
{
	begin(false);
	world.how = BLINDLY;
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	expect_phase(NOH_PHASE_CONVERGING);
	EXPECT_EQ(world.applied, 1);             /* it says yes: and is not asked again at once */
	EXPECT_EQ(tell_seen(5, 3, 0), NOH_RECONCILE_OK);
	expect_phase(NOH_PHASE_ACTIVE);
	int diffs = world.diffs;

	EXPECT_EQ(tell_seen(5, 1, 0), NOH_RECONCILE_STALE);
	EXPECT_EQ(tell_seen(4, 1, 0), NOH_RECONCILE_STALE);
	EXPECT_EQ(tell_seen(6, 3, 0), NOH_RECONCILE_OK);         /* nothing new */
	EXPECT_EQ(world.diffs, diffs);
	EXPECT_EQ(tell_seen(7, 2, 0), NOH_RECONCILE_OK);         /* one has died */
	EXPECT_EQ(world.applied, 2);
	expect_phase(NOH_PHASE_CONVERGING);
	kit_end();
}

static int look_at_it(noh_turn *turn, noh_reconcile *now)
{
	world.observed++;
	return world.how == BY_ASKING ? noh_reconcile_ask(turn, now, "device:0", DEVICE_LOOK, NULL, 0) :
					noh_reconcile_observe(now, &world.is, sizeof world.is);
}

static void a_tick_finds_what_has_drifted_away(void)
{
	for (int how = AT_ONCE; how <= BY_ASKING; how++) {
		begin_plain();
		world.how = how;
		app.observe = look_at_it;
		app.tick_ms = 1000;
		open_app(false);
		EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
		kit_pass_ms(SETTLED);
		expect_phase(NOH_PHASE_ACTIVE);
		EXPECT_EQ(world.applied, 1);
		world.is.copies = 1;
		kit_pass_ms(1250);
		EXPECT_EQ(world.is.copies, 3);
		EXPECT_EQ(world.applied, 2);
		EXPECT_EQ(state().passes, 2);
		expect_phase(NOH_PHASE_ACTIVE);
		int seen = world.observed;

		for (int i = 0; i < 10; i++)
			kit_pass_ms(1000);
		EXPECT(world.observed >= seen + 7 && world.observed <= seen + 14);
		EXPECT_EQ(world.applied, 2);
		kit_end();
	}
}

/* Done, and nobody said what it has come to: a look, not the next tick, finds out. */
static void what_an_action_has_come_to_is_looked_at(void)
{
	begin_plain();
	world.how = QUIETLY;
	app.observe = look_at_it;
	app.tick_ms = NOH_NEVER;
	open_app(false);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(world.applied, 1);
	EXPECT_EQ(world.observed, 2);            /* before, and after */
	expect_phase(NOH_PHASE_ACTIVE);
	kit_end();
}

/* A device that says yes and does nothing costs an action per tick, not a loop. */
static void what_says_yes_and_does_nothing_is_told_once_per_tick(void)
{
	begin_plain();
	world.how = BLINDLY;
	app.observe = look_at_it;
	app.tick_ms = 1000;
	open_app(false);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	for (int i = 0; i < 10; i++)
		kit_pass_ms(1000);
	EXPECT(world.applied >= 7 && world.applied <= 15);
	expect_phase(NOH_PHASE_CONVERGING);
	EXPECT_EQ(state().passes, 1);
	kit_end();
}

static void somebody_may_tell_it_to_look_now(void)
{
	begin_plain();
	app.observe = look_at_it;
	app.tick_ms = NOH_NEVER;
	open_app(false);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_TICK, NULL, 0), NOH_RECONCILE_NOT_NOW);
	EXPECT_EQ(want(1, 3), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	world.is.copies = 0;
	kit_pass_ms(DAY);
	EXPECT_EQ(world.is.copies, 0);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_TICK, NULL, 0), NOH_RECONCILE_OK);
	EXPECT_EQ(world.is.copies, 3);
	kit_end();
}

/* ── kinds of its own ── */

enum { GREET = NOH_RECONCILE_KINDS, OWN_KINDS };
static const noh_kind own_kinds[OWN_KINDS] = { NOH_RECONCILE_TABLE, [GREET] = { .name = "greet" } };

static int greet(noh_turn *turn, noh_reconcile *now, const noh_msg *msg)
{
	int64_t *greetings = now->own;

	EXPECT_EQ(msg->kind, GREET);
	++*greetings;
	return noh_reply(turn, greetings, sizeof *greetings) < 0 ? NOH_EFAILED : NOH_OK;
}

static void a_type_may_have_messages_and_memory_of_its_own(void)
{
	int64_t n;

	begin_plain();
	app.kinds = own_kinds;
	app.kind_count = OWN_KINDS;
	app.on_message = greet;
	app.on_activate = app_on_activate;
	app.own_size = sizeof n;
	open_app(true);
	for (int i = 1; i <= 3; i++) {
		kit_ask("app:a", GREET, NULL, 0, &n, sizeof n);
		EXPECT_EQ(n, i);
	}
	EXPECT_EQ(world.activated, 1);
	kit_restart(&app_type, 0);
	kit_ask("app:a", GREET, NULL, 0, &n, sizeof n);
	EXPECT_EQ(n, 4);
	EXPECT_EQ(world.activated, 2);
	kit_end();
}

/* ── what others see of it ── */

static struct { char text[2048]; } told;

static int tell_event(void *user, const noh_event *e)
{
	size_t n = strlen(told.text);

	(void)user;
	if (!e->by_box)
		snprintf(told.text + n, sizeof told.text - n, "%s %s>%s r%llu;", e->kind, e->from, e->to,
			 (unsigned long long)e->revision);
	return 0;
}

static void every_transition_is_an_event(void)
{
	uint64_t cursor = 0;

	told.text[0] = 0;
	begin_active(false, 3);
	EXPECT_EQ(outcome_of(NOH_RECONCILE_STOP, NULL, 0), NOH_RECONCILE_OK);
	while (noh_events_read(k.box, &cursor, &(noh_events_filter){ .actor = "app:a" }, 0, tell_event, NULL) == NOH_OK)
		;
	if (!EXPECT(strcmp(told.text, "reconcile.phase new>converging r1;reconcile.action converging>scale r1;"
			   "reconcile.phase converging>active r1;reconcile.phase active>stopping r1;"
			   "reconcile.action stopping>scale r1;reconcile.phase stopping>stopped r1;") == 0))
		printf("  %s\n", told.text);
	EXPECT_EQ(world.phases, 4);
	kit_end();
}

static void describe_knows_its_revisions_and_its_last_error(void)
{
	noh_vitals v;

	begin_active(false, 3);
	EXPECT_EQ(noh_get_vitals(k.box, "app:a", &v), NOH_OK);
	EXPECT_EQ(v.desired, 1);
	EXPECT_EQ(v.observed, 1);
	world.how = NOT_AT_ALL;
	EXPECT_EQ(want(2, 4), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	EXPECT_EQ(noh_get_vitals(k.box, "app:a", &v), NOH_OK);
	EXPECT_EQ(v.desired, 2);
	EXPECT_EQ(v.observed, 1);
	EXPECT(strcmp(v.error, "scale: the world says no") == 0);
	world.how = AT_ONCE;
	kit_pass_ms(30000);
	EXPECT_EQ(noh_get_vitals(k.box, "app:a", &v), NOH_OK);
	EXPECT_EQ(v.observed, 2);
	EXPECT(strcmp(v.error, "") == 0);
	kit_end();
}

TEST_MAIN(
	TEST(twenty_changes_in_100_ms_lead_to_one_pass_with_the_final_count, "MB-08 RC-01 RC-02"),
	TEST(of_changes_that_wait_only_the_highest_is_handled, "MB-07"),
	TEST(a_burst_during_an_action_is_one_more_pass, "MB-08 RC-09"),
	TEST(at_once_means_in_the_same_turn),
	TEST(a_stale_revision_changes_nothing_and_writes_nothing, "RT-30"),
	TEST(a_spec_that_is_none_is_refused_with_its_reason),
	TEST(what_is_seen_drives_it_on_and_a_late_snapshot_does_not, "RC-01"),
	TEST(a_tick_finds_what_has_drifted_away, "RC-01 RC-07"),
	TEST(what_an_action_has_come_to_is_looked_at, "RC-03"),
	TEST(what_says_yes_and_does_nothing_is_told_once_per_tick, "RC-03"),
	TEST(somebody_may_tell_it_to_look_now, "RC-05"),
	TEST(a_type_may_have_messages_and_memory_of_its_own),
	TEST(every_transition_is_an_event, "RC-04 EV-02"),
	TEST(describe_knows_its_revisions_and_its_last_error, "CLI-03"))
