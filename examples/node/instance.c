/* instance.c - InstanceActor: one per instance. Its image must be here, then it runs with so many CPUs of that image. */
#include "node.h"

#include <stdio.h>
#include <string.h>

enum { PULL, RUN, HALT };
static const char *const actions[] = { [PULL] = "pull", [RUN] = "run", [HALT] = "halt" };

/* The next step, and only that: a pass may begin anywhere, after a crash of either side. */
static int diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	const struct instance_spec *want = now->desired;
	const struct instance_seen *is = now->observed;

	(void)turn, (void)room;
	if (now->goal != NOH_GOAL_RUN)
		next[0].code = HALT;
	else if (strncmp(is->image, want->image, NAME) != 0)
		next[0].code = PULL;
	else
		next[0].code = RUN;
	if (next[0].code == HALT)
		return is->cpus != 0;
	return next[0].code == PULL || is->cpus != want->cpus || strncmp(is->runs, want->image, NAME) != 0;
}

/* At most one pull per digest: the image's own actor does it, and all who wait for it share the result (SUP-14). */
static int pull(noh_turn *turn, noh_reconcile *now, const struct instance_spec *want)
{
	struct child_message make = { .kind = NOH_RECONCILE_APPLY, .len = sizeof(uint64_t) + sizeof(struct image_spec) };
	const uint64_t first = 1;
	int rc;

	snprintf(make.address, sizeof make.address, "image_pull:%.*s", NAME - 1, want->image);
	memcpy(make.body, &first, sizeof first);
	memcpy(make.body + sizeof first, want->image, NAME);
	rc = noh_tell_to(turn, "image_cache_supervisor:" NODE, SUPERVISOR_CHILD, &make, CHILD_HEAD + make.len);
	if (rc != NOH_OK)
		return noh_reconcile_fail(now, "the image cache: %s", noh_strerror(rc));
	return noh_reconcile_ask(turn, now, make.address, NOH_RECONCILE_WAIT, &first, sizeof first);
}

static int apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	const struct instance_spec *want = now->desired;
	struct host_order order = { .spec = *want };

	if (action->code == PULL)
		return pull(turn, now, want);
	snprintf(order.id, sizeof order.id, "%s", noh_id(turn));
	if (action->code == RUN)
		return noh_reconcile_ask(turn, now, "device:host", HOST_RUN, &order, sizeof order);
	return noh_reconcile_ask(turn, now, "device:host", HOST_STOP, order.id, sizeof order.id);
}

static int observe(noh_turn *turn, noh_reconcile *now)
{
	char id[NAME] = "";

	snprintf(id, sizeof id, "%s", noh_id(turn));
	return noh_reconcile_ask(turn, now, "device:host", HOST_LOOK, id, sizeof id);
}

/* It has another image now, or none. Told in the turn that knows it: so it is counted once (P4). */
static int change_image(noh_turn *turn, struct instance_seen *is, const char *image)
{
	int rc = NOH_OK;

	if (strncmp(is->image, image, NAME) == 0)
		return NOH_OK;
	if (is->image[0])
		rc = noh_tell_to(turn, "image_gc:" NODE, GC_FREES, is->image, NAME);
	if (rc == NOH_OK && image[0])
		rc = noh_tell_to(turn, "image_gc:" NODE, GC_USES, image, NAME);
	memcpy(is->image, image, NAME);
	return rc;
}

static int done(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	static const char none[NAME];
	const struct instance_spec *want = now->desired;
	struct instance_seen is = *(const struct instance_seen *)now->observed;
	const struct instance_seen *told = answer->body;
	int rc = NOH_OK;

	if (answer->status != NOH_OK)
		return NOH_EFAILED;
	if (action->code == PULL) {
		rc = change_image(turn, &is, want->image);
	} else if (answer->len == sizeof *told) {
		memcpy(is.runs, told->runs, NAME);
		is.cpus = told->cpus;
	}
	if (action->code == HALT)
		rc = change_image(turn, &is, none);
	return rc == NOH_OK ? noh_reconcile_observe(now, &is, sizeof is) : rc;
}

/* From the network, or from anybody: a name that ends, and a number a host could have. */
static int check(noh_turn *turn, noh_reconcile *now, const void *spec, size_t len)
{
	struct instance_spec s;

	(void)turn;
	if (len != sizeof s)
		return noh_reconcile_fail(now, "an instance's spec has %zu bytes, not %zu", sizeof s, len);
	memcpy(&s, spec, sizeof s);
	if (s.image[0] == 0 || !memchr(s.image, 0, NAME))
		return noh_reconcile_fail(now, "an image's name has 1 to %d bytes", NAME - 1);
	return s.cpus >= 1 && s.cpus <= 1024 ? NOH_OK : noh_reconcile_fail(now, "1 to 1024 CPUs");
}

noh_type instance_type(void)
{
	static const noh_reconciler how = {
		.name = "instance", .spec_max = sizeof(struct instance_spec), .observed_max = sizeof(struct instance_seen),
		.tick_ms = 300, .action_ms = 500, .backoff = { .base_ms = 5, .cap_ms = 100 },
		.action_names = actions, .action_count = 3,
		.diff = diff, .apply = apply, .done = done, .observe = observe, .check = check };
	static const noh_supervision policy = { .restart = NOH_TRANSIENT, .base_ms = 5, .cap_ms = 100 };
	noh_type type = noh_reconcile_type(&how);

	type.supervision = &policy;
	return type;
}
