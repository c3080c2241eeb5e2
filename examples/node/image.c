/* image.c - ImagePullActor: one per digest, so at most one pull of it; and ImageGCAgent, which stops what nobody uses. */
#include "node.h"

#include <stdio.h>
#include <string.h>

enum { PULL, DELETE };
static const char *const actions[] = { [PULL] = "pull", [DELETE] = "delete" };

static int diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	const struct image_seen *is = now->observed;

	(void)turn, (void)room;
	next[0].code = now->goal == NOH_GOAL_RUN ? PULL : DELETE;
	return now->goal == NOH_GOAL_RUN ? !is->present : is->present != 0;
}

static int apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	char registry[64];

	snprintf(registry, sizeof registry, "registry:%.40s", noh_id(turn));
	return noh_reconcile_ask(turn, now, registry, action->code == PULL ? REGISTRY_PULL : REGISTRY_DELETE, NULL, 0);
}

static int done(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	struct image_seen is = { .present = action->code == PULL };

	(void)turn;
	return answer->status == NOH_OK ? noh_reconcile_observe(now, &is, sizeof is) : NOH_EFAILED;
}

noh_type image_pull_type(void)
{
	static const noh_reconciler how = {
		.name = "image_pull", .spec_max = sizeof(struct image_spec), .observed_max = sizeof(struct image_seen),
		.settle_ms = NOH_RECONCILE_AT_ONCE, .tick_ms = NOH_NEVER, .action_ms = 500, .forget = true,
		.backoff = { .base_ms = 5, .cap_ms = 100 },
		.action_names = actions, .action_count = 2, .diff = diff, .apply = apply, .done = done };
	static const noh_supervision policy = { .restart = NOH_TRANSIENT, .base_ms = 5, .cap_ms = 100 };
	noh_type type = noh_reconcile_type(&how);

	type.supervision = &policy;
	return type;
}

/* ── the agent: an entry per image, with how many use it ── */

static int count(noh_turn *turn, const noh_msg *msg)
{
	const void *value;
	int64_t users = 0;
	size_t len;

	if (msg->len != NAME)
		return noh_refuse(turn, "a name has 24 bytes", 19);
	if (noh_kv_get(turn, msg->body, NAME, &value, &len) == NOH_OK)
		memcpy(&users, value, sizeof users);
	users += msg->kind == GC_USES ? 1 : -1;
	return noh_kv_put(turn, msg->body, NAME, &users, sizeof users);
}

/* One image in a sweep; the next sweep takes the next. */
static int sweep(noh_turn *turn)
{
	const void *key = NULL, *value;
	size_t key_len = 0, len;
	char name[NAME], address[64];
	int64_t users = 1;
	int rc;

	while (users > 0) {
		if (noh_kv_next(turn, &key, &key_len, &value, &len) != NOH_OK)
			return NOH_OK;
		memcpy(&users, value, sizeof users);
	}
	memcpy(name, key, NAME);
	snprintf(address, sizeof address, "image_pull:%.*s", NAME - 1, name);
	rc = noh_tell_to(turn, address, NOH_RECONCILE_STOP, "nobody uses it", 14);
	return rc == NOH_OK ? noh_kv_delete(turn, name, NAME) : rc;
}

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	return msg->kind == GC_SWEEP ? sweep(turn) : count(turn, msg);
}

static int on_activate(noh_turn *turn)
{
	return noh_schedule_every(turn, GC_SWEEP, 50);
}

noh_type image_gc_type(void)
{
	static const noh_kind kinds[GC_KINDS] = { [GC_USES] = { .name = "uses" }, [GC_FREES] = { .name = "frees" },
						  [GC_SWEEP] = { .name = "sweep", .flags = NOH_KIND_TIMER } };
	static const noh_supervision policy = { .base_ms = 5, .cap_ms = 100 };

	return (noh_type){ .name = "image_gc", .full_mode = NOH_BLOCK, .kinds = kinds, .kind_count = GC_KINDS,
			   .on_activate = on_activate, .on_message = on_message, .supervision = &policy };
}
