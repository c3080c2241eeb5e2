/* actors/reconcile_type.c - the reconciliation kit: a type made of callbacks, and what those callbacks call. */
#include "actors/reconcile.h"

#include <stdarg.h>
#include <stdio.h>

static const noh_kind kinds[NOH_RECONCILE_KINDS] = { NOH_RECONCILE_TABLE };

void noh_reconcile_coalesce(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	*key = len < sizeof *revision;           /* what is malformed takes nobody's place */
	*revision = 0;
	if (*key == 0)
		memcpy(revision, body, sizeof *revision);
}

void reconcile_show(noh_turn *turn, noh_reconcile *now)
{
	const noh_reconciler *how = reconciler(turn);
	struct kit *k = noh_state(turn);

	now->goal = (int)k->goal;
	now->phase = (noh_phase)k->phase;
	now->revision = k->revision;
	now->applied = k->applied;
	now->desired = spec_of(how, k);
	now->desired_len = k->desired_len;
	now->observed = observed_of(how, k);
	now->observed_len = k->observed_len;
	now->failures = k->retry.failures;
	now->own = k + 1;
	now->user = how->user;
	now->how = how;
	now->error[0] = 0;
	now->kit = k;
}

/* ── what callbacks call ── */

int noh_reconcile_fail(noh_reconcile *now, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(now->error, sizeof now->error, format, args);
	va_end(args);
	return NOH_EFAILED;
}

int noh_reconcile_observe(noh_reconcile *now, const void *snapshot, size_t len)
{
	struct kit *k = now->kit;
	uint8_t *at = (uint8_t *)(uintptr_t)now->observed;

	if (len > observed_max(now->how)) {
		(void)noh_reconcile_fail(now, "a snapshot of %zu bytes: %u are the most", len, observed_max(now->how));
		return NOH_ETOOBIG;
	}
	if (len == k->observed_len && (len == 0 || memcmp(at, snapshot, len) == 0))
		return NOH_OK;
	if (len)
		memcpy(at, snapshot, len);
	memset(at + len, 0, k->observed_len > len ? k->observed_len - len : 0);
	k->observed_len = (uint32_t)len;
	now->observed_len = len;
	k->changed = 1;
	return NOH_OK;
}

int noh_reconcile_ask(noh_turn *turn, noh_reconcile *now, const char *address, uint32_t kind, const void *body, size_t len)
{
	struct kit *k = now->kit;
	noh_ask_options how = { .answer_kind = NOH_RECONCILE_ANSWER, .timeout_ms = k->action.timeout_ms };
	int rc;

	if (!k->beginning || k->ask) {
		(void)noh_reconcile_fail(now, "noh_reconcile_ask is for apply and observe, once in each");
		return NOH_EINVAL;
	}
	rc = noh_ask_to(turn, address, kind, body, len, &how, &k->ask);
	if (rc == NOH_OK)
		return NOH_UNDER_WAY;
	k->ask = 0;
	(void)noh_reconcile_fail(now, "asking %s: %s", address, rc < 0 ? noh_why() : noh_strerror(rc));
	return rc < 0 ? rc : NOH_EFAILED;
}

/* ── the type ── */

/* Whatever was under way is not any more, or nobody knows: its answer went with the process. It is done again, as all
 * of it is idempotent. Whoever waited has gone, or will ask again. And a timer that is overdue is set anew: it may be the
 * message that made a turn fail, and was set aside. */
static int on_activate(noh_turn *turn)
{
	const noh_reconciler *how = reconciler(turn);
	const struct kit *before = noh_look(turn);
	uint64_t due = reconcile_due(before);
	noh_reconcile now;
	struct kit *k;
	int rc = NOH_OK;

	if (!before->under_way && !before->waiters && !how->on_activate && (due == 0 || due > noh_wall_ms(turn)))
		return NOH_OK;
	reconcile_show(turn, &now);
	k = now.kit;
	if (k->waiters)
		rc = reconcile_forget_waiters(turn, k);
	if (k->under_way) {
		k->under_way = 0;
		k->ask = 0;
		if (k->due_pass == 0)
			k->due_pass = noh_wall_ms(turn);
	}
	if (rc == NOH_OK && how->on_activate)
		rc = how->on_activate(turn, &now);
	return rc == NOH_OK ? reconcile_close(turn, &now) : rc;
}

static uint64_t layout(const noh_reconciler *how)
{
	return (uint64_t)KIT_LAYOUT << 60 | (uint64_t)own_room(how) << 40 | (uint64_t)spec_room(how) << 20 | observed_room(how);
}

static uint32_t state_size(const noh_reconciler *how)
{
	return (uint32_t)sizeof(struct kit) + own_room(how) + spec_room(how) + observed_room(how);
}

noh_type noh_reconcile_type(const noh_reconciler *how)
{
	return (noh_type){
		.name = how->name,
		.state_size = state_size(how),
		.full_mode = NOH_BLOCK,
		.kinds = how->kinds ? how->kinds : kinds,
		.kind_count = how->kinds ? how->kind_count : NOH_RECONCILE_KINDS,
		.on_activate = on_activate,
		.on_message = how->diff && how->apply ? reconcile_message : NULL,
		.user = (void *)(uintptr_t)how,
		.version = 1,
		.schema = layout(how),
		.from_json = reconcile_from_json,
		.to_json = reconcile_to_json,
	};
}

/* One part: what it has is kept, what it needs more is zero. */
static bool move(uint8_t **to, uint32_t room, const uint8_t **from, uint32_t old, uint32_t used)
{
	uint32_t n = old < room ? old : room;

	if (used > room)
		return false;
	memcpy(*to, *from, n);
	memset(*to + n, 0, room - n);
	*to += room;
	*from += old;
	return true;
}

int noh_reconcile_migrate(const noh_reconciler *old, const noh_reconciler *fresh, const void *state, size_t len, void *to,
			  size_t *to_len)
{
	const uint8_t *from = state;
	uint8_t *at = to;
	struct kit k;

	if (len != state_size(old))
		return NOH_EINVAL;
	if (*to_len < state_size(fresh))
		return NOH_ETOOBIG;
	memcpy(&k, state, sizeof k);
	*to_len = state_size(fresh);
	return move(&at, sizeof k, &from, sizeof k, sizeof k) &&
	       move(&at, own_room(fresh), &from, own_room(old), own_room(old)) &&
	       move(&at, spec_room(fresh), &from, spec_room(old), k.desired_len) &&
	       move(&at, observed_room(fresh), &from, observed_room(old), k.observed_len) ? NOH_OK : NOH_ETOOBIG;
}
