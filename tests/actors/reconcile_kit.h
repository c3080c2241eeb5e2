/* tests/actors/reconcile_kit.h - a reconciler whose world the test holds in its hands: apps of so many copies.
 *
 * Owns     the world: what apply() does to it, and what it was told to do.   Threads  one (tests/actors/kit.h).
 */
#ifndef NOH_TESTS_ACTORS_RECONCILE_KIT_H
#define NOH_TESTS_ACTORS_RECONCILE_KIT_H

#include "noh_reconcile.h"
#include "tests/actors/kit.h"

struct spec { int64_t copies; };
struct seen { int64_t copies, busy; };

enum { SCALE, EMPTY };                                   /* actions */
enum { AT_ONCE, BY_ASKING, OUTSIDE, QUIETLY, BLINDLY, NOT_AT_ALL };       /* how apply() does it */
enum { DEVICE_SET, DEVICE_LOOK };

static struct {
	int         how;
	struct seen is;                 /* the thing itself */
	int         applied, observed, diffs, phases, activated;
	int64_t     args[256];
	int64_t     at_ms[256];         /* of each apply() */
	uint64_t    number;             /* of the last action begun */
	int         said;               /* device: refuses so many times */
	bool        hold;               /* device: does not answer */
	noh_promise held;
	bool        broken;             /* diff() fails */
} world;

static inline int app_diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	const struct spec *want = now->desired;
	const struct seen *is = now->observed;
	int64_t copies = now->goal == NOH_GOAL_RUN ? want->copies : 0;

	(void)turn;
	EXPECT_EQ(room, NOH_ACTIONS_MAX);
	world.diffs++;
	if (world.broken)
		return noh_reconcile_fail(now, "the program is broken");
	if (now->goal == NOH_GOAL_DRAIN) {
		next[0] = (noh_action){ .code = EMPTY };
		return is->busy ? 1 : 0;
	}
	next[0] = (noh_action){ .code = SCALE, .arg = (uint64_t)copies };
	return is->copies == copies ? 0 : 1;
}

static inline void note(const noh_action *action)
{
	world.args[world.applied % 256] = (int64_t)action->arg;
	world.at_ms[world.applied++ % 256] = kit_wall();
	world.number = action->number;
}

static inline int app_apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	note(action);
	if (world.how == NOT_AT_ALL)
		return noh_reconcile_fail(now, "the world says no");
	if (action->code == EMPTY || world.how == BLINDLY)
		return NOH_OK;
	if (world.how == OUTSIDE)
		return NOH_UNDER_WAY;
	if (world.how == BY_ASKING)
		return noh_reconcile_ask(turn, now, "device:0", DEVICE_SET, &action->arg, sizeof action->arg);
	world.is.copies = (int64_t)action->arg;
	if (world.how == QUIETLY)
		return NOH_OK;
	return noh_reconcile_observe(now, &world.is, sizeof world.is);
}

static inline int app_done(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	(void)turn;
	EXPECT(action->number != 0);
	if (answer->status != NOH_OK)
		return answer->status < 0 ? answer->status : NOH_EFAILED;
	return answer->len == sizeof(struct seen) ? noh_reconcile_observe(now, answer->body, answer->len) : NOH_OK;
}

static inline int app_on_phase(noh_turn *turn, noh_reconcile *now, noh_phase from)
{
	(void)turn;
	EXPECT(now->phase != from);
	world.phases++;
	return NOH_OK;
}

static inline int app_on_activate(noh_turn *turn, noh_reconcile *now)
{
	(void)turn;
	(void)now;
	world.activated++;
	return NOH_OK;
}

static const char *const app_actions[] = { [SCALE] = "scale", [EMPTY] = "empty" };

/* ── the device that is asked ── */

static inline int device_message(noh_turn *turn, const noh_msg *msg)
{
	if (world.hold) {
		world.held = noh_defer(turn, msg);
		return NOH_OK;
	}
	if (world.said > 0) {
		world.said--;
		return noh_refuse(turn, "out of\nroom", 11);
	}
	if (msg->kind == DEVICE_SET)
		memcpy(&world.is.copies, msg->body, sizeof world.is.copies);
	return noh_reply(turn, &world.is, sizeof world.is);
}

static const noh_type device = { .name = "device", .is_volatile = true, .full_mode = NOH_BLOCK, .on_message = device_message };

/* ── a test ── */

static noh_reconciler app;               /* as the test wants it */
static noh_type app_type;

static inline void begin_plain(void)
{
	memset(&world, 0, sizeof world);
	app = (noh_reconciler){ .name = "app", .spec_max = sizeof(struct spec), .observed_max = sizeof(struct seen),
				.action_names = app_actions, .action_count = 2, .diff = app_diff, .apply = app_apply,
				.done = app_done, .on_phase = app_on_phase };
	kit_also = &device;
}

static inline void open_app(bool durable)
{
	app_type = noh_reconcile_type(&app);
	kit_begin(&app_type, durable);
}

static inline void begin(bool durable)
{
	begin_plain();
	open_app(durable);
}

static inline int say(uint32_t kind, const void *body, size_t len, noh_reconcile_answer *answer)
{
	int rc = kit_call("app:a", kind, body, len, NULL);

	memset(answer, 0xee, sizeof *answer);
	if (rc == NOH_OK && k.heard.len == sizeof *answer)
		memcpy(answer, k.heard.body, sizeof *answer);
	return rc;
}

/* The outcome, or -1: none came. */
static inline int outcome_of(uint32_t kind, const void *body, size_t len)
{
	noh_reconcile_answer a;

	return say(kind, body, len, &a) == NOH_OK ? (int)a.outcome : -1;
}

static inline int want(uint64_t revision, int64_t copies)
{
	struct { uint64_t revision; struct spec spec; } m = { revision, { copies } };

	return outcome_of(NOH_RECONCILE_APPLY, &m, sizeof m);
}

static inline int tell_seen(uint64_t sequence, int64_t copies, int64_t busy)
{
	struct { uint64_t sequence; struct seen seen; } m = { sequence, { copies, busy } };

	return outcome_of(NOH_RECONCILE_OBSERVED, &m, sizeof m);
}

static inline noh_reconcile_state state_of(const char *address)
{
	noh_reconcile_state s;

	kit_ask(address, NOH_RECONCILE_STATE, NULL, 0, &s, sizeof s);
	return s;
}

static inline noh_reconcile_state state(void)
{
	return state_of("app:a");
}

static inline void expect_phase(noh_phase phase)
{
	noh_reconcile_state s = state();

	if (!EXPECT_EQ(s.phase, phase))
		printf("  it is %s, not %s: %s\n", noh_phase_name((noh_phase)s.phase), noh_phase_name(phase), s.error);
}

#define SETTLED 130                      /* ms after which a burst has settled */

/* It is active with so many copies of revision 1. */
static inline void begin_active(bool durable, int64_t copies)
{
	begin(durable);
	EXPECT_EQ(want(1, copies), NOH_RECONCILE_OK);
	kit_pass_ms(SETTLED);
	expect_phase(NOH_PHASE_ACTIVE);
	EXPECT_EQ(world.is.copies, copies);
}

#endif
