/* wireguard.c - WireGuardActor: the peers of an interface, changed one by one and no more than needed; and, shorter still,
 * VolumeAttachmentActor. */
#include "node.h"

#include <string.h>

/* ── WireGuardActor ── */

enum { ADD, REMOVE };
static const char *const wireguard_actions[] = { [ADD] = "add peer", [REMOVE] = "remove peer" };

static bool has(const struct wireguard_spec *w, uint64_t peer)
{
	for (uint64_t i = 0; i < w->count; i++)
		if (w->peers[i] == peer)
			return true;
	return false;
}

/* The minimal difference: who stays is not touched. */
static int wireguard_diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	static const struct wireguard_spec nobody;
	const struct wireguard_spec *want = now->goal == NOH_GOAL_RUN ? now->desired : &nobody;
	const struct wireguard_spec *is = now->observed;
	size_t n = 0;

	(void)turn;
	for (uint64_t i = 0; i < is->count && n < room; i++)
		if (!has(want, is->peers[i]))
			next[n++] = (noh_action){ .code = REMOVE, .arg = is->peers[i] };
	for (uint64_t i = 0; i < want->count && n < room; i++)
		if (!has(is, want->peers[i]))
			next[n++] = (noh_action){ .code = ADD, .arg = want->peers[i] };
	return (int)n;
}

static int wireguard_apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	return noh_reconcile_ask(turn, now, "device:wg0", action->code == ADD ? WIRE_ADD : WIRE_REMOVE, &action->arg,
				 sizeof action->arg);
}

static int wireguard_observe(noh_turn *turn, noh_reconcile *now)
{
	return noh_reconcile_ask(turn, now, "device:wg0", WIRE_LOOK, NULL, 0);
}

/* Every answer of the interface is all of its peers. */
static int wireguard_done(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	(void)turn, (void)action;
	if (answer->status != NOH_OK || answer->len != sizeof(struct wireguard_spec))
		return NOH_EFAILED;
	return noh_reconcile_observe(now, answer->body, answer->len);
}

static int wireguard_check(noh_turn *turn, noh_reconcile *now, const void *spec, size_t len)
{
	struct wireguard_spec s;

	(void)turn;
	if (len != sizeof s)
		return noh_reconcile_fail(now, "a list of peers has %zu bytes, not %zu", sizeof s, len);
	memcpy(&s, spec, sizeof s);
	return s.count <= PEERS ? NOH_OK : noh_reconcile_fail(now, "%d peers are the most", PEERS);
}

noh_type wireguard_type(void)
{
	static const noh_reconciler how = {
		.name = "wireguard", .spec_max = sizeof(struct wireguard_spec), .observed_max = sizeof(struct wireguard_spec),
		.tick_ms = 300, .action_ms = 100, .backoff = { .base_ms = 5, .cap_ms = 100 },
		.action_names = wireguard_actions, .action_count = 2, .diff = wireguard_diff, .apply = wireguard_apply,
		.done = wireguard_done, .observe = wireguard_observe, .check = wireguard_check };
	static const noh_supervision policy = { .restart = NOH_TRANSIENT, .base_ms = 5, .cap_ms = 100 };
	noh_type type = noh_reconcile_type(&how);

	type.supervision = &policy;
	return type;
}

/* ── VolumeAttachmentActor ── */

static int volume_diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	const struct volume_seen *is = now->observed;
	uint64_t want = now->goal == NOH_GOAL_RUN;

	(void)turn, (void)room;
	next[0].arg = want;
	return is->attached != want;
}

static int volume_apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	const struct volume_spec *spec = now->desired;

	return noh_reconcile_ask(turn, now, "device:disks", action->arg ? DISK_ATTACH : DISK_DETACH, spec->disk, NAME);
}

static int volume_done(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	struct volume_seen is = { .attached = action->arg };

	(void)turn;
	return answer->status == NOH_OK ? noh_reconcile_observe(now, &is, sizeof is) : NOH_EFAILED;
}

noh_type volume_attachment_type(void)
{
	static const char *const actions[] = { "attach or detach" };
	static const noh_reconciler how = {
		.name = "volume_attachment", .spec_max = sizeof(struct volume_spec), .observed_max = sizeof(struct volume_seen),
		.tick_ms = NOH_NEVER, .action_ms = 100, .backoff = { .base_ms = 5, .cap_ms = 100 },
		.action_names = actions, .action_count = 1, .diff = volume_diff, .apply = volume_apply, .done = volume_done };
	static const noh_supervision policy = { .restart = NOH_TRANSIENT, .base_ms = 5, .cap_ms = 100 };
	noh_type type = noh_reconcile_type(&how);

	type.supervision = &policy;
	return type;
}
