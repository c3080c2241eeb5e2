/* tests/actors/reconcile_model_test.c - a reconciler under whatever may happen, in any order: changes new and old, snapshots,
 * stops, drains, devices that refuse or say nothing, things that break by themselves, restarts of the box. When the world
 * has become kind again, the thing is as was desired last. */
#include "tests/actors/reconcile_kit.h"

static struct {
	uint64_t random;
	uint64_t revision;              /* the highest that was said */
	int64_t  copies;                /* with it */
	bool     stopped;               /* since then */
	bool     kind;                  /* nothing fails any more */
} model;

static uint64_t draw(uint64_t n)
{
	return test_random(&model.random) % n;
}

static int look_at_it(noh_turn *turn, noh_reconcile *now)
{
	return draw(2) ? noh_reconcile_ask(turn, now, "device:0", DEVICE_LOOK, NULL, 0) :
			 noh_reconcile_observe(now, &world.is, sizeof world.is);
}

/* What is done is never what was desired before something else was, but for a burst that settles. */
static int apply_somehow(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	if (now->goal == NOH_GOAL_RUN) {
		EXPECT_EQ(action->arg, *(const int64_t *)now->desired);
		EXPECT_EQ(now->revision, model.revision);
	}
	world.how = model.kind ? (int)draw(2) : (int)draw(NOT_AT_ALL + 1);
	return app_apply(turn, now, action);
}

static void change(void)
{
	bool old = draw(4) == 0 && model.revision > 0;
	uint64_t revision = old ? 1 + draw(model.revision) : model.revision + 1 + draw(3);
	int64_t copies = old ? 1000 : (int64_t)draw(5) + 1;

	if (!old) {
		model.revision = revision;
		model.copies = copies;
		model.stopped = false;
	}
	EXPECT_EQ(want(revision, copies), !old ? NOH_RECONCILE_OK : revision == model.revision ? NOH_RECONCILE_CONFLICT :
		  NOH_RECONCILE_STALE);
}

static void end_it(void)
{
	uint64_t ms = draw(3000);
	int rc = draw(2) ? outcome_of(NOH_RECONCILE_STOP, "enough", 6) : outcome_of(NOH_RECONCILE_DRAIN, &ms, sizeof ms);

	EXPECT(rc == NOH_RECONCILE_OK || (model.stopped && rc == NOH_RECONCILE_STALE));
	model.stopped = true;
}

static void finish_something(void)
{
	uint64_t number = world.number - draw(2);
	bool well = draw(2);

	if (well && number == world.number && world.how == OUTSIDE)
		world.is.copies = world.args[(world.applied - 1) % 256];
	EXPECT_EQ(noh_reconcile_finish(k.box, "app:a", number, well ? NOH_OK : NOH_EFAILED, &world.is, well ? sizeof world.is : 0),
		  NOH_OK);
	kit_run(true);
}

static void anything(bool durable)
{
	switch (draw(durable ? 12 : 11)) {
	case 0: case 1: case 2: change(); break;
	case 3: if (draw(4) == 0) end_it(); break;
	case 4: world.is.copies = (int64_t)draw(4); break;       /* it breaks, or somebody helps */
	case 5: world.is.busy = (int64_t)draw(2); break;
	case 6: EXPECT_EQ(tell_seen(0, world.is.copies, world.is.busy), NOH_RECONCILE_OK); break;
	case 7: world.hold = draw(2); world.said = (int)draw(4); break;
	case 8: finish_something(); break;
	case 9: EXPECT(outcome_of(NOH_RECONCILE_RETRY, NULL, 0) >= 0); break;
	case 10: EXPECT(outcome_of(NOH_RECONCILE_TICK, NULL, 0) >= 0); break;
	case 11: kit_restart(&app_type, (int64_t)draw(2000)); break;
	}
	kit_pass_ms((int64_t)draw(draw(4) ? 50 : 2000));
}

static void become_kind(void)
{
	model.kind = true;
	world.hold = false;
	world.said = 0;
	world.is.busy = 0;
	for (int i = 0; i < 60; i++)
		kit_pass_ms(1000);
}

static void live_once(bool durable)
{
	begin_plain();
	app.apply = apply_somehow;
	app.observe = look_at_it;
	app.tick_ms = 1000;
	app.action_ms = 2000;
	app.backoff = (noh_backoff){ .base_ms = 10, .cap_ms = 1000 };
	open_app(durable);
	for (int i = 0; i < 120; i++)
		anything(durable);
	become_kind();
	noh_reconcile_state s = state();

	EXPECT_EQ(s.revision, model.revision);
	if (model.revision && !model.stopped) {
		EXPECT_EQ(s.phase, NOH_PHASE_ACTIVE);
		EXPECT_EQ(s.applied, model.revision);
		EXPECT_EQ(world.is.copies, model.copies);
	} else if (model.stopped) {
		EXPECT_EQ(s.phase, NOH_PHASE_STOPPED);
	}
	if (s.phase == NOH_PHASE_RETRYING || s.phase == NOH_PHASE_FAILED)
		printf("  %s\n", s.error);
	noh_type_stats t;

	EXPECT_EQ(noh_get_type_stats(k.box, "app", &t), NOH_OK);
	EXPECT_EQ(t.failed, 0);                          /* no turn did */
	kit_end();
}

static void whatever_happens_it_ends_as_was_desired_last(void)
{
	uint64_t random = test_seed;

	for (uint64_t i = 0; i < test_size(16, 4); i++) {
		memset(&model, 0, sizeof model);
		model.random = test_random(&random);
		live_once(i % 2);
	}
}

TEST_MAIN(
	TEST(whatever_happens_it_ends_as_was_desired_last, "RC-02 RC-03 PR-12 PR-15 SUP-15"))
