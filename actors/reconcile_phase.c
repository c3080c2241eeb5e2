/* actors/reconcile_phase.c - where a reconciler is: phases and their events, who waits for them, and its timer. */
#include "actors/reconcile.h"

#include <stdio.h>

#define TICK_MS 30000u

const char *noh_phase_name(noh_phase phase)
{
	switch (phase) {
	case NOH_PHASE_NEW: return "new";
	case NOH_PHASE_CONVERGING: return "converging";
	case NOH_PHASE_ACTIVE: return "active";
	case NOH_PHASE_RETRYING: return "retrying";
	case NOH_PHASE_FAILED: return "failed";
	case NOH_PHASE_DRAINING: return "draining";
	case NOH_PHASE_STOPPING: return "stopping";
	case NOH_PHASE_STOPPED: return "stopped";
	}
	return "unknown";
}

void reconcile_state(const struct kit *k, noh_reconcile_state *state)
{
	*state = (noh_reconcile_state){ .revision = k->revision, .applied = k->applied, .passes = k->passes,
		.actions = k->actions, .failed = k->failed, .next_ms = k->due_pass, .phase = k->phase, .goal = k->goal,
		.failures = k->retry.failures, .action = k->under_way ? k->action.code : NOH_ACTION_NONE };
	memcpy(state->error, k->error, sizeof state->error);
}

/* ── who waits: an entry each, { 0, 'w', number } ── */

struct waiter { uint64_t promise, revision; };
struct waiter_key { uint8_t bytes[10]; };

static struct waiter_key key_of(uint64_t number)
{
	struct waiter_key key = { { 0, 'w' } };

	for (int i = 10; i-- > 2; number >>= 8)
		key.bytes[i] = (uint8_t)number;
	return key;
}

static bool next_waiter(noh_turn *turn, struct waiter_key *key, struct waiter *w)
{
	const void *at = key, *value;
	size_t key_len = sizeof *key, len;

	if (noh_kv_next(turn, &at, &key_len, &value, &len) != NOH_OK || key_len != sizeof *key || len != sizeof *w ||
	    memcmp(at, key->bytes, 2) != 0)
		return false;
	memcpy(key, at, sizeof *key);
	memcpy(w, value, sizeof *w);
	return true;
}

/* Whoever waits for what has happened, or cannot happen any more, is told. */
static int tell_waiters(noh_turn *turn, struct kit *k, uint64_t up_to, int status)
{
	struct waiter_key key = key_of(0);
	noh_reconcile_state state;
	struct waiter w;

	if (k->waiters == 0)
		return NOH_OK;
	reconcile_state(k, &state);
	while (next_waiter(turn, &key, &w)) {
		if (w.revision > up_to)
			continue;
		int rc = noh_answer(turn, (noh_promise){ w.promise }, status, &state, sizeof state);

		if (rc >= 0)
			rc = noh_kv_delete(turn, &key, sizeof key);
		if (rc != NOH_OK)
			return rc;
		k->waiters--;
	}
	return NOH_OK;
}

int reconcile_forget_waiters(noh_turn *turn, struct kit *k)
{
	struct waiter_key key = key_of(0);
	struct waiter w;
	int rc = NOH_OK;

	while (rc == NOH_OK && next_waiter(turn, &key, &w))
		rc = noh_kv_delete(turn, &key, sizeof key);
	k->waiters = 0;
	return rc;
}

int reconcile_wait(noh_turn *turn, noh_reconcile *now, const noh_msg *msg, uint64_t revision)
{
	static const char full[] = "wait: too many wait already";
	struct kit *k = now->kit;
	noh_reconcile_state state;
	struct waiter_key key;
	struct waiter w;

	if (revision == 0)
		revision = k->revision ? k->revision : 1;
	if (k->applied < revision && k->waiters >= NOH_RECONCILE_WAITERS)
		return noh_refuse(turn, full, sizeof full - 1);
	w = (struct waiter){ .promise = noh_defer(turn, msg).bits, .revision = revision };
	if (w.promise == 0)
		return NOH_OK;
	int status = k->applied >= revision ? NOH_OK : k->revision < revision ? NOH_UNDER_WAY :
		     k->phase == NOH_PHASE_FAILED ? NOH_EFAILED : k->phase == NOH_PHASE_STOPPED ? NOH_EGONE : NOH_UNDER_WAY;

	if (status != NOH_UNDER_WAY) {
		reconcile_state(k, &state);
		int rc = noh_answer(turn, (noh_promise){ w.promise }, status, &state, sizeof state);

		return rc < 0 ? rc : NOH_OK;
	}
	k->waiters++;
	key = key_of(++k->waiter);
	return noh_kv_put(turn, &key, sizeof key, &w, sizeof w);
}

/* ── phases ── */

int reconcile_event(noh_turn *turn, noh_reconcile *now, const char *kind, const char *to, const char *reason)
{
	const struct kit *k = now->kit;
	char room[NOH_EVENT_KIND + 1];

	(void)snprintf(room, sizeof room, "%s", to);     /* an action's name may be longer */
	return noh_emit(turn, &(noh_emit_options){ .kind = kind, .from = noh_phase_name((noh_phase)k->phase), .to = room,
						   .reason = reason, .revision = k->revision });
}

int reconcile_enter(noh_turn *turn, noh_reconcile *now, noh_phase to, const char *reason)
{
	struct kit *k = now->kit;
	noh_phase from = (noh_phase)k->phase;
	int rc;

	if (from == to)
		return NOH_OK;
	rc = reconcile_event(turn, now, "reconcile.phase", noh_phase_name(to), reason);
	k->phase = to;
	now->phase = to;
	if (rc == NOH_OK && to == NOH_PHASE_ACTIVE)
		rc = tell_waiters(turn, k, k->applied, NOH_OK);
	else if (rc == NOH_OK && (to == NOH_PHASE_FAILED || to == NOH_PHASE_STOPPED))
		rc = tell_waiters(turn, k, k->revision, to == NOH_PHASE_FAILED ? NOH_EFAILED : NOH_EGONE);
	return rc == NOH_OK && now->how->on_phase ? now->how->on_phase(turn, now, from) : rc;
}

/* ── the timer ── */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

uint64_t reconcile_due(const struct kit *k)
{
	uint64_t due = sooner(k->under_way ? k->due_action : k->due_pass, k->due_tick);

	return k->goal == NOH_GOAL_DRAIN ? sooner(due, k->due_drain) : due;
}

/* Three to five quarters: a thousand that were made together do not look together for long. */
static uint64_t next_tick(noh_turn *turn, struct kit *k, uint64_t tick_ms)
{
	return noh_wall_ms(turn) + tick_ms - tick_ms / 4 + retry_random(turn, &k->retry) % (tick_ms / 2 + 1);
}

/* A timer whose time has passed may have been handled by a turn that failed, and was then set aside: what it was to do is
 * still to be done. So it is set anew, which at worst replaces one that is about to come. */
static int set_timer(noh_turn *turn, struct kit *k, uint64_t due)
{
	uint64_t wall = noh_wall_ms(turn), left = due > wall ? due - wall : 0;

	if (due == k->wakes && (due == 0 || due > wall))
		return NOH_OK;                           /* one that should have come may be lost: below */
	k->wakes = due;
	if (due == 0)
		return noh_schedule_cancel(turn, NOH_RECONCILE_TICK);
	return noh_schedule_once(turn, NOH_RECONCILE_TICK, left < NOH_SCHEDULE_MAX_MS ? left : NOH_SCHEDULE_MAX_MS);
}

int reconcile_close(noh_turn *turn, noh_reconcile *now)
{
	const noh_reconciler *how = now->how;
	struct kit *k = now->kit;
	int rc;

	if (!at_work(k) || how->tick_ms == NOH_NEVER || (k->phase == NOH_PHASE_ACTIVE && !how->observe))
		k->due_tick = 0;
	else if (k->due_tick <= noh_wall_ms(turn))
		k->due_tick = next_tick(turn, k, how->tick_ms ? how->tick_ms : TICK_MS);
	rc = set_timer(turn, k, reconcile_due(k));
	if (rc != NOH_OK || k->phase != NOH_PHASE_STOPPED)
		return rc;
	return how->forget ? noh_erase(turn) : noh_stop_self(turn);
}
