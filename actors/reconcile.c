/* actors/reconcile.c - the messages of the reconciliation kit.
 *
 * Every message does the same three things: decide by what is known (a stale one changes nothing, and writes no record), change
 * what is known, and begin a pass if nothing stands in its way. What stands in its way is an action under way, a burst
 * that settles, or a back-off: then the timer, or the action's end, begins it.
 */
#include "actors/reconcile.h"

#include <stdio.h>

#define SETTLE_MS    120u                /* a burst of 100 ms is one pass (MB-08) */
#define DRAIN_MAX_MS (UINT64_C(365) * 24 * 3600 * 1000)

struct finished { uint64_t number; int32_t status; uint32_t reserved; };         /* the body follows */

int noh_reconcile_finish(noh_box *box, const char *address, uint64_t number, int status, const void *body, size_t len)
{
	struct { struct finished head; uint8_t body[NOH_RECONCILE_BODY]; } m;

	if (len > sizeof m.body)
		return NOH_ETOOBIG;
	m.head = (struct finished){ .number = number, .status = status };
	if (len)
		memcpy(m.body, body, len);
	return noh_send(box, address, NOH_RECONCILE_FINISH, &m, sizeof m.head + len);
}

/* ── the ways a message ends ── */

static int no(noh_turn *turn, const char *why)
{
	return noh_refuse(turn, why, strlen(why));
}

static int reply(noh_turn *turn, const struct kit *k, uint32_t outcome)
{
	noh_reconcile_answer a = { .outcome = outcome, .phase = k->phase, .revision = k->revision, .applied = k->applied };
	int rc = noh_reply(turn, &a, sizeof a);

	return rc < 0 ? rc : NOH_OK;
}

static int close_with(noh_turn *turn, noh_reconcile *now, int rc)
{
	if (rc == NOH_OK)
		rc = reconcile_close(turn, now);
	return rc == NOH_OK ? reply(turn, now->kit, NOH_RECONCILE_OK) : rc;
}

/* ── desired ── */

static bool may_pass(const struct kit *k)
{
	return at_work(k) && !k->under_way && k->due_pass == 0;
}

/* A pass for what was just said: after the burst of which it may be the first, and after the action under way. */
static int settle(noh_turn *turn, noh_reconcile *now, bool fresh)
{
	const noh_reconciler *how = reconciler(turn);
	uint64_t wall = noh_wall_ms(turn), due = wall + (how->settle_ms ? how->settle_ms : SETTLE_MS);
	struct kit *k = now->kit;

	if (how->settle_ms == NOH_RECONCILE_AT_ONCE && !k->under_way)
		return reconcile_begin(turn, now, false);
	if (how->settle_ms == NOH_RECONCILE_AT_ONCE)
		due = wall;
	if (fresh || k->due_pass == 0 || due < k->due_pass)
		k->due_pass = due;
	return NOH_OK;
}

static int adopt(noh_turn *turn, noh_reconcile *now, uint64_t revision, const uint8_t *spec, uint32_t len)
{
	const noh_reconciler *how = reconciler(turn);
	struct kit *k = now->kit;
	uint8_t *to = spec_of(how, k);
	bool settling = k->goal == NOH_GOAL_RUN && k->phase == NOH_PHASE_CONVERGING && k->due_pass != 0;
	char reason[48];
	int rc;

	if (len)
		memcpy(to, spec, len);
	memset(to + len, 0, spec_room(how) - len);
	k->desired_len = len;
	k->revision = revision;
	k->goal = NOH_GOAL_RUN;
	k->due_drain = 0;
	k->counted = 0;
	noh_retry_done(&k->retry);
	reconcile_show(turn, now);
	(void)snprintf(reason, sizeof reason, "revision %llu is desired", (unsigned long long)revision);
	rc = noh_set_revision(turn, k->revision, k->applied);
	if (rc == NOH_OK)
		rc = reconcile_enter(turn, now, NOH_PHASE_CONVERGING, reason);
	return rc == NOH_OK ? settle(turn, now, !settling) : rc;
}

static int apply_desired(noh_turn *turn, const noh_msg *msg)
{
	const noh_reconciler *how = reconciler(turn);
	const struct kit *k = noh_look(turn);
	const uint8_t *spec = (const uint8_t *)msg->body + sizeof(uint64_t);
	uint64_t revision = 0;
	noh_reconcile now;
	uint32_t len;

	if (msg->len >= sizeof revision)
		memcpy(&revision, msg->body, sizeof revision);
	if (revision == 0)
		return no(turn, "apply: a revision of 1 or more, 8 bytes, and the spec behind it are needed");
	len = msg->len - (uint32_t)sizeof revision;
	if (len > spec_max(how))
		return no(turn, "apply: the spec is longer than this type allows");
	if (revision < k->revision)
		return reply(turn, k, NOH_RECONCILE_STALE);
	if (revision == k->revision)
		return reply(turn, k, len == k->desired_len && memcmp(spec, spec_of(how, k), len) == 0 ?
			     NOH_RECONCILE_STALE : NOH_RECONCILE_CONFLICT);
	reconcile_show(turn, &now);
	if (how->check && how->check(turn, &now, spec, len) < 0)
		return no(turn, now.error[0] ? now.error : "apply: this is no spec");
	return close_with(turn, &now, adopt(turn, &now, revision, spec, len));
}

/* ── observed ── */

static int observed(noh_turn *turn, const noh_msg *msg)
{
	const noh_reconciler *how = reconciler(turn);
	const struct kit *before = noh_look(turn);
	uint64_t sequence;
	noh_reconcile now;
	uint8_t changed;
	struct kit *k;
	int rc;

	if (msg->len < sizeof sequence)
		return no(turn, "observed: a sequence, 8 bytes, and the snapshot behind it are needed");
	memcpy(&sequence, msg->body, sizeof sequence);
	if (msg->len - sizeof sequence > observed_max(how))
		return no(turn, "observed: the snapshot is longer than this type allows");
	if (sequence && sequence <= before->sequence)
		return reply(turn, before, NOH_RECONCILE_STALE);
	reconcile_show(turn, &now);
	k = now.kit;
	if (sequence)
		k->sequence = sequence;
	changed = k->changed;
	k->changed = 0;
	rc = noh_reconcile_observe(&now, (const uint8_t *)msg->body + sizeof sequence, msg->len - sizeof sequence);
	if (rc != NOH_OK || !k->changed)
		k->changed = changed;
	else if (may_pass(k))
		rc = reconcile_begin(turn, &now, false);
	else if (k->phase == NOH_PHASE_RETRYING || k->phase == NOH_PHASE_FAILED)
		rc = reconcile_look(turn, &now);
	return close_with(turn, &now, rc);
}

/* ── stop, drain, retry ── */

static const char *reason_of(const uint8_t *text, size_t len, char *to, size_t room, const char *otherwise)
{
	clean_text(to, room, text, len);
	return len ? to : otherwise;
}

static int give_goal(noh_turn *turn, noh_reconcile *now, uint32_t goal, const char *reason)
{
	struct kit *k = now->kit;
	int rc;

	k->goal = goal;
	k->counted = 0;
	k->due_pass = k->under_way ? noh_wall_ms(turn) : 0;      /* its end begins the pass */
	noh_retry_done(&k->retry);
	reconcile_show(turn, now);
	rc = reconcile_enter(turn, now, reconcile_working(k), reason);
	return rc == NOH_OK && !k->under_way ? reconcile_begin(turn, now, false) : rc;
}

static int stop(noh_turn *turn, const noh_msg *msg)
{
	const struct kit *before = noh_look(turn);
	char text[NOH_RECONCILE_ERROR];
	noh_reconcile now;
	struct kit *k;

	if (before->goal == NOH_GOAL_STOP)
		return reply(turn, before, NOH_RECONCILE_STALE);
	reconcile_show(turn, &now);
	k = now.kit;
	k->due_drain = 0;
	return close_with(turn, &now, give_goal(turn, &now, NOH_GOAL_STOP,
						reason_of(msg->body, msg->len, text, sizeof text, "stop")));
}

static int drain(noh_turn *turn, const noh_msg *msg)
{
	const struct kit *before = noh_look(turn);
	char text[NOH_RECONCILE_ERROR];
	uint64_t deadline;
	noh_reconcile now;
	struct kit *k;

	if (msg->len < sizeof deadline)
		return no(turn, "drain: the deadline, in milliseconds from now, 8 bytes, is needed");
	memcpy(&deadline, msg->body, sizeof deadline);
	if (deadline > DRAIN_MAX_MS)
		return no(turn, "drain: the deadline is at most 365 days away");
	if (before->goal != NOH_GOAL_RUN)
		return reply(turn, before, NOH_RECONCILE_STALE);
	reconcile_show(turn, &now);
	k = now.kit;
	k->due_drain = noh_wall_ms(turn) + deadline;
	return close_with(turn, &now, give_goal(turn, &now, deadline ? NOH_GOAL_DRAIN : NOH_GOAL_STOP,
						reason_of((const uint8_t *)msg->body + sizeof deadline, msg->len - sizeof deadline,
							  text, sizeof text, "drain")));
}

static int retry(noh_turn *turn)
{
	const struct kit *before = noh_look(turn);
	noh_reconcile now;
	struct kit *k;
	int rc;

	if (before->phase != NOH_PHASE_RETRYING && before->phase != NOH_PHASE_FAILED)
		return reply(turn, before, NOH_RECONCILE_NOT_NOW);
	reconcile_show(turn, &now);
	k = now.kit;
	noh_retry_done(&k->retry);
	rc = reconcile_enter(turn, &now, reconcile_working(k), "told to try again");
	return close_with(turn, &now, rc == NOH_OK ? reconcile_begin(turn, &now, true) : rc);
}

/* ── tick ── */

static int tick(noh_turn *turn)
{
	const struct kit *before = noh_look(turn);
	noh_reconcile now;

	if (!may_pass(before))
		return reply(turn, before, NOH_RECONCILE_NOT_NOW);
	reconcile_show(turn, &now);
	return close_with(turn, &now, reconcile_begin(turn, &now, true));
}

static int drained_or_not(noh_turn *turn, noh_reconcile *now)
{
	struct kit *k = now->kit;

	k->due_drain = 0;
	return give_goal(turn, now, NOH_GOAL_STOP, "not drained by its deadline");
}

/* The timer: whichever of the times has come. */
static int timer(noh_turn *turn)
{
	uint64_t wall = noh_wall_ms(turn);
	noh_reconcile now;
	struct kit *k;
	int rc = NOH_OK;

	reconcile_show(turn, &now);
	k = now.kit;
	k->wakes = 0;
	if (k->under_way && k->due_action <= wall)
		rc = reconcile_late(turn, &now);
	if (rc == NOH_OK && k->goal == NOH_GOAL_DRAIN && k->due_drain && k->due_drain <= wall)
		rc = drained_or_not(turn, &now);
	if (rc == NOH_OK && !k->under_way && k->due_pass && k->due_pass <= wall) {
		bool again = k->phase == NOH_PHASE_RETRYING;

		rc = again ? reconcile_enter(turn, &now, reconcile_working(k), "tries again") : NOH_OK;
		if (rc == NOH_OK)
			rc = reconcile_begin(turn, &now, again);
	} else if (rc == NOH_OK && k->due_tick && k->due_tick <= wall && may_pass(k)) {
		rc = reconcile_begin(turn, &now, true);
	}
	return rc == NOH_OK ? reconcile_close(turn, &now) : rc;
}

/* ── ends of actions ── */

static int answered(noh_turn *turn, const noh_msg *msg)
{
	const struct kit *before = noh_look(turn);
	noh_reconcile now;
	int rc;

	if (!(msg->flags & NOH_MSG_ANSWER))
		return no(turn, "answer: only what the actor asked for is one");
	if (!before->under_way || before->ask != msg->ask)
		return NOH_OK;                           /* of an action that was given up */
	reconcile_show(turn, &now);
	rc = reconcile_ended(turn, &now, msg);
	return rc == NOH_OK ? reconcile_close(turn, &now) : rc;
}

static int finish(noh_turn *turn, const noh_msg *msg)
{
	const struct kit *before = noh_look(turn);
	noh_msg answer = *msg;
	struct finished head;
	noh_reconcile now;

	if (msg->len < sizeof head || msg->len > sizeof head + NOH_RECONCILE_BODY)
		return no(turn, "finish: noh_reconcile_finish makes this message");
	memcpy(&head, msg->body, sizeof head);
	if (head.reserved || head.status > 0)
		return no(turn, "finish: noh_reconcile_finish makes this message");
	if (!before->under_way || before->ask || before->action.number != head.number)
		return reply(turn, before, NOH_RECONCILE_STALE);
	answer.status = head.status;
	answer.body = (const uint8_t *)msg->body + sizeof head;
	answer.len = msg->len - (uint32_t)sizeof head;
	reconcile_show(turn, &now);
	return close_with(turn, &now, reconcile_ended(turn, &now, &answer));
}

/* ── waiting, looking ── */

static int wait_for(noh_turn *turn, const noh_msg *msg)
{
	uint64_t revision = 0;
	noh_reconcile now;

	if (msg->len != 0 && msg->len != sizeof revision)
		return no(turn, "wait: a revision, 8 bytes, or nothing");
	if (msg->len)
		memcpy(&revision, msg->body, sizeof revision);
	reconcile_show(turn, &now);
	return reconcile_wait(turn, &now, msg, revision);
}

static int show_state(noh_turn *turn)
{
	noh_reconcile_state state;
	int rc;

	reconcile_state(noh_look(turn), &state);
	rc = noh_reply(turn, &state, sizeof state);
	return rc < 0 ? rc : NOH_OK;
}

static int others(noh_turn *turn, const noh_msg *msg)
{
	const noh_reconciler *how = reconciler(turn);
	noh_reconcile now;

	if (!how->on_message)
		return no(turn, "this type has no such message");
	reconcile_show(turn, &now);
	int rc = how->on_message(turn, &now, msg);

	return rc == NOH_OK ? reconcile_close(turn, &now) : rc;
}

int reconcile_message(noh_turn *turn, const noh_msg *msg)
{
	switch (msg->kind) {
	case NOH_RECONCILE_APPLY: return apply_desired(turn, msg);
	case NOH_RECONCILE_OBSERVED: return observed(turn, msg);
	case NOH_RECONCILE_TICK: return msg->flags & NOH_MSG_TIMER ? timer(turn) : tick(turn);
	case NOH_RECONCILE_STOP: return stop(turn, msg);
	case NOH_RECONCILE_DRAIN: return drain(turn, msg);
	case NOH_RECONCILE_RETRY: return retry(turn);
	case NOH_RECONCILE_WAIT: return wait_for(turn, msg);
	case NOH_RECONCILE_STATE: return show_state(turn);
	case NOH_RECONCILE_FINISH: return finish(turn, msg);
	case NOH_RECONCILE_ANSWER: return answered(turn, msg);
	}
	return others(turn, msg);
}
