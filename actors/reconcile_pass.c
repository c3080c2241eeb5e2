/* actors/reconcile_pass.c - from what is observed to what is desired: diff, apply, and what comes of it.
 *
 *     begin ─► [observe] ─► diff ─► nothing to do: applied
 *                 ▲          ▲ └──► apply ─► done ───────────► the observation has changed: diff again
 *                 │          │          ├──► under way ... ended ─┘   not: look (LOOK_AFTER), else the next tick
 *                 │          └──────────┼───────────────────────────────┘
 *                 └── back-off ◄── failed
 *
 * An action is judged by what is seen after it, never by its own word alone: that is what makes a pass safe to repeat. And
 * nothing is done again before something new was seen, or time has passed: a thing that says yes and does nothing costs
 * one action per tick.
 */
#include "actors/reconcile.h"

#include <stdio.h>

#define ROUNDS    8                      /* of diff in one turn; then others have theirs */
#define ACTION_MS 30000u

static const char *name_of(const noh_reconciler *how, uint32_t code)
{
	if (code == NOH_ACTION_OBSERVE)
		return "observe";
	return code < how->action_count && how->action_names && how->action_names[code] ? how->action_names[code] : "action";
}

noh_phase reconcile_working(const struct kit *k)
{
	return k->goal == NOH_GOAL_RUN ? NOH_PHASE_CONVERGING : k->goal == NOH_GOAL_DRAIN ? NOH_PHASE_DRAINING :
										       NOH_PHASE_STOPPING;
}

/* ── failing ── */

/* What the callback said, or the answer's own words, or at least the code of either. */
static void say_why(noh_reconcile *now, int rc, const noh_msg *answer)
{
	bool badly = answer && answer->status != NOH_OK;

	if (now->error[0])
		return;
	if (badly && answer->len)
		clean_text(now->error, sizeof now->error, answer->body, answer->len);
	else
		(void)noh_reconcile_fail(now, "%s", noh_strerror(badly ? answer->status : rc));
}

static int failed(noh_turn *turn, noh_reconcile *now, const noh_action *action, int code, const noh_msg *answer)
{
	const noh_reconciler *how = now->how;
	struct kit *k = now->kit;
	uint64_t wait_ms, settles = k->due_pass;
	int rc, later;

	say_why(now, code, answer);
	(void)snprintf(k->error, sizeof k->error, "%s: %.*s", name_of(how, action->code), (int)sizeof k->error - 40, now->error);
	k->failed++;
	k->counted = 0;
	later = noh_retry_after(turn, &k->retry, &how->backoff, &wait_ms);
	k->due_pass = later == NOH_OK ? noh_wall_ms(turn) + wait_ms : 0;
	if (later == NOH_OK && settles > k->due_pass)
		k->due_pass = settles;                   /* a burst is still one pass */
	now->failures = k->retry.failures;
	rc = noh_set_error(turn, k->error);
	if (rc == NOH_OK)
		rc = reconcile_event(turn, now, "reconcile.failed", name_of(how, action->code), k->error);
	if (rc == NOH_OK)
		rc = reconcile_enter(turn, now, later == NOH_OK ? NOH_PHASE_RETRYING : NOH_PHASE_FAILED, k->error);
	return rc;
}

/* ── one action ── */

/* NOH_OK: it is done. NOH_UNDER_WAY: that is all for now; begun, or failed and to be tried again. */
static int run(noh_turn *turn, noh_reconcile *now, noh_action action)
{
	const noh_reconciler *how = now->how;
	struct kit *k = now->kit;
	bool look = action.code == NOH_ACTION_OBSERVE;
	int rc = NOH_OK;

	action.number = ++k->actions;
	if (action.timeout_ms == 0)
		action.timeout_ms = how->action_ms ? how->action_ms : ACTION_MS;
	if (!look)
		rc = reconcile_event(turn, now, "reconcile.action", name_of(how, action.code), NULL);
	if (rc != NOH_OK)
		return rc;
	k->action = action;
	k->ask = 0;
	k->beginning = 1;
	now->error[0] = 0;
	rc = look ? how->observe(turn, now) : how->apply(turn, now, &action);
	k->beginning = 0;
	if (rc == NOH_UNDER_WAY) {
		k->under_way = 1;
		k->due_action = noh_wall_ms(turn) + action.timeout_ms;
		return NOH_UNDER_WAY;
	}
	if (rc == NOH_OK) {
		if (!look)
			noh_retry_done(&k->retry);
		return NOH_OK;
	}
	rc = failed(turn, now, &action, rc, NULL);
	return rc == NOH_OK ? NOH_UNDER_WAY : rc;
}

static int look(noh_turn *turn, noh_reconcile *now, uint64_t why)
{
	return run(turn, now, (noh_action){ .code = NOH_ACTION_OBSERVE, .arg = why });
}

/* ── a pass ── */

/* It is as it should be. *more: there is another goal after this one. */
static int reached(noh_turn *turn, noh_reconcile *now, bool *more)
{
	struct kit *k = now->kit;
	int rc = NOH_OK;

	*more = k->goal == NOH_GOAL_DRAIN;
	k->counted = 0;
	noh_retry_done(&k->retry);
	if (k->error[0]) {
		k->error[0] = 0;
		rc = noh_set_error(turn, NULL);
	}
	if (k->goal == NOH_GOAL_RUN && k->applied != k->revision) {
		k->applied = k->revision;
		if (rc == NOH_OK)
			rc = noh_set_revision(turn, k->revision, k->applied);
	}
	if (k->goal == NOH_GOAL_DRAIN) {
		k->goal = NOH_GOAL_STOP;
		k->due_drain = 0;
	}
	reconcile_show(turn, now);
	if (rc != NOH_OK)
		return rc;
	if (k->goal == NOH_GOAL_RUN)
		return reconcile_enter(turn, now, NOH_PHASE_ACTIVE, NULL);
	return reconcile_enter(turn, now, *more ? NOH_PHASE_STOPPING : NOH_PHASE_STOPPED, *more ? "drained" : NULL);
}

static int act(noh_turn *turn, noh_reconcile *now, const noh_action *next, int count)
{
	struct kit *k = now->kit;
	int rc = reconcile_enter(turn, now, reconcile_working(k), name_of(now->how, next[0].code));

	if (!k->counted)
		k->passes++;
	k->counted = 1;
	k->changed = 0;
	for (int i = 0; rc == NOH_OK && i < count; i++)
		rc = next[i].code < NOH_ACTION_NONE ? run(turn, now, next[i]) :
						      noh_fail(turn, "diff: action code %u is the kit's own", next[i].code);
	return rc;
}

/* The actions are done: has it changed anything? NOH_OK: yes, go on. */
static int see(noh_turn *turn, noh_reconcile *now)
{
	const struct kit *k = now->kit;
	int rc = NOH_OK;

	if (!k->changed && now->how->observe)
		rc = look(turn, now, LOOK_AFTER);
	return rc == NOH_OK && !k->changed ? NOH_UNDER_WAY : rc;
}

static int differs(noh_turn *turn, noh_reconcile *now, noh_action *next)
{
	const struct kit *k = now->kit;
	int n;

	if (k->revision == 0 && k->observed_len == 0)
		return 0;                        /* it never was: there is nothing to stop */
	now->error[0] = 0;
	n = now->how->diff(turn, now, next, NOH_ACTIONS_MAX);
	if (n < 0)
		return noh_fail(turn, "diff: %s", now->error[0] ? now->error : noh_strerror(n));
	if (n > NOH_ACTIONS_MAX)
		return noh_fail(turn, "diff: %d actions, there is room for %d", n, NOH_ACTIONS_MAX);
	return n;
}

static int pass(noh_turn *turn, noh_reconcile *now)
{
	struct kit *k = now->kit;
	int rc = NOH_OK;

	for (int round = 0; rc == NOH_OK && round < ROUNDS; round++) {
		noh_action next[NOH_ACTIONS_MAX] = { { 0 } };
		int n = differs(turn, now, next);
		bool more = true;

		if (n < 0)
			return n;
		rc = n == 0 ? reached(turn, now, &more) : act(turn, now, next, n);
		if (rc == NOH_OK && n > 0)
			rc = see(turn, now);
		if (rc != NOH_OK || !more)
			return rc == NOH_UNDER_WAY ? NOH_OK : rc;
	}
	if (rc == NOH_OK)
		k->due_pass = noh_wall_ms(turn);         /* at once, but after what waits */
	return rc;
}

int reconcile_begin(noh_turn *turn, noh_reconcile *now, bool first_look)
{
	struct kit *k = now->kit;
	int rc = NOH_OK;

	k->due_pass = 0;
	if (now->how->observe && (first_look || k->observed_len == 0))
		rc = look(turn, now, LOOK_FIRST);
	if (rc == NOH_OK)
		rc = pass(turn, now);
	return rc == NOH_UNDER_WAY ? NOH_OK : rc;
}

/* It waits for its next attempt, or was given up, and something new was seen: perhaps it is there already. */
int reconcile_look(noh_turn *turn, noh_reconcile *now)
{
	noh_action next[NOH_ACTIONS_MAX] = { { 0 } };
	struct kit *k = now->kit;
	bool more;
	int n = differs(turn, now, next);

	if (n != 0)
		return n < 0 ? n : NOH_OK;
	k->due_pass = 0;
	int rc = reached(turn, now, &more);

	return rc == NOH_OK && more ? pass(turn, now) : rc;
}

/* ── the end of an action under way ── */

static int judge(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	now->error[0] = 0;
	if (now->how->done)
		return now->how->done(turn, now, action, answer);
	if (answer->status != NOH_OK)
		return answer->status < 0 ? answer->status : NOH_EFAILED;
	return action->code == NOH_ACTION_OBSERVE ? noh_reconcile_observe(now, answer->body, answer->len) : NOH_OK;
}

int reconcile_ended(noh_turn *turn, noh_reconcile *now, const noh_msg *answer)
{
	struct kit *k = now->kit;
	noh_action action = k->action;
	bool looked = action.code == NOH_ACTION_OBSERVE;
	int rc;

	k->under_way = 0;
	k->ask = 0;
	rc = judge(turn, now, &action, answer);
	if (rc != NOH_OK)
		return failed(turn, now, &action, rc, answer);
	if (!looked)
		noh_retry_done(&k->retry);
	if (k->due_pass > noh_wall_ms(turn))
		return NOH_OK;                           /* a burst settles: the pass is for its last */
	if (k->due_pass)
		return reconcile_begin(turn, now, false);
	if (!looked)
		rc = see(turn, now);
	else if (action.arg == LOOK_AFTER && !k->changed)
		rc = NOH_UNDER_WAY;
	if (rc == NOH_OK)
		rc = pass(turn, now);
	return rc == NOH_UNDER_WAY ? NOH_OK : rc;
}

int reconcile_late(noh_turn *turn, noh_reconcile *now)
{
	struct kit *k = now->kit;
	noh_action action = k->action;

	k->under_way = 0;
	k->ask = 0;
	(void)noh_reconcile_fail(now, "no answer within %u ms", action.timeout_ms);
	return failed(turn, now, &action, NOH_ETIMEOUT, NULL);
}
