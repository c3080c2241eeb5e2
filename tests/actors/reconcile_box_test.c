/* tests/actors/reconcile_box_test.c - reconcilers on a box with real threads: many at a time, driven by an actor that
 * fails; and under supervision. */
#include "noh_reconcile.h"
#include "tests/box/kit.h"

#include <stdlib.h>

struct spec { int64_t size; };
enum { DEVICE_SET };

static atomic_u64 broken, asked, chance, sizes[64];

static int diff(noh_turn *turn, noh_reconcile *now, noh_action *next, size_t room)
{
	const struct spec *want = now->desired, *is = now->observed;
	int64_t size = now->goal == NOH_GOAL_RUN ? want->size : 0;

	(void)turn;
	(void)room;
	if (load_relaxed(&broken))
		return noh_reconcile_fail(now, "a bug");
	next[0].arg = (uint64_t)size;
	return is->size != size;
}

static int apply(noh_turn *turn, noh_reconcile *now, const noh_action *action)
{
	char device[32];

	snprintf(device, sizeof device, "device:%s", noh_id(turn));
	return noh_reconcile_ask(turn, now, device, DEVICE_SET, &action->arg, sizeof action->arg);
}

static int done(noh_turn *turn, noh_reconcile *now, const noh_action *action, const noh_msg *answer)
{
	(void)turn;
	return answer->status == NOH_OK ? noh_reconcile_observe(now, &action->arg, sizeof action->arg) : NOH_EFAILED;
}

/* Two of three calls fail. */
static int device_message(noh_turn *turn, const noh_msg *msg)
{
	uint64_t seed = test_seed + add_relaxed(&chance, 1);
	int i = atoi(noh_id(turn));

	add_relaxed(&asked, 1);
	if (test_random(&seed) % 3)
		return noh_refuse(turn, "no", 2);
	store_relaxed(&sizes[i], *(const uint64_t *)msg->body);
	return noh_reply(turn, NULL, 0);
}

static const noh_reconciler how = { .name = "thing", .spec_max = sizeof(struct spec), .observed_max = sizeof(struct spec),
	.settle_ms = 1, .backoff = { .base_ms = 1, .cap_ms = 5 }, .diff = diff, .apply = apply, .done = done };
static const noh_type device = { .name = "device", .full_mode = NOH_BLOCK, .on_message = device_message };

static int want(noh_box *box, const char *address, uint64_t revision, int64_t size)
{
	struct { uint64_t revision; struct spec spec; } m = { revision, { size } };

	return noh_call(box, address, NOH_RECONCILE_APPLY, &m, sizeof m, SOON, NULL, NULL);
}

static int wait_for(noh_box *box, const char *address, uint64_t revision)
{
	return noh_call(box, address, NOH_RECONCILE_WAIT, &revision, sizeof revision, SOON, NULL, NULL);
}

static void many_converge_at_the_same_time(void)
{
	enum { MANY = 64 };
	noh_type thing = noh_reconcile_type(&how);

	store_relaxed(&broken, 0);
	FOR_WORKERS(n) {
		noh_box *box = BOX(n, &thing, &device);
		char address[32];

		for (uint64_t revision = 1; revision <= 3; revision++) {
			for (int i = 0; i < MANY; i++) {
				snprintf(address, sizeof address, "thing:%d", i);
				EXPECT_EQ(want(box, address, revision, (int64_t)revision * 100 + i), NOH_OK);
			}
			for (int i = 0; i < MANY; i++) {
				snprintf(address, sizeof address, "thing:%d", i);
				EXPECT_EQ(wait_for(box, address, revision), NOH_OK);
				EXPECT_EQ(load_relaxed(&sizes[i]), revision * 100 + (uint64_t)i);
			}
		}
		end(box);
	}
}

static bool is_stopped(void *box)
{
	noh_vitals v;

	return noh_get_vitals(box, "thing:1", &v) == NOH_OK && v.health == NOH_STOPPED;
}

/* Its timer was the message that failed, and was set aside: it is not forgotten what it was to do. */
static void once_resumed_it_goes_on_by_itself(void)
{
	static const noh_supervision policy = { .restart = NOH_TRANSIENT, .then = NOH_THEN_STOP, .base_ms = 1, .cap_ms = 5,
						.restarts = 2 };
	noh_type thing = noh_reconcile_type(&how);
	noh_box *box;

	thing.supervision = &policy;
	store_relaxed(&broken, 1);
	box = BOX(2, &thing, &device);
	EXPECT_EQ(want(box, "thing:1", 1, 7), NOH_OK);
	EXPECT(test_wait_until(is_stopped, box, SOON));
	EXPECT_EQ(wait_for(box, "thing:1", 1), NOH_EDEGRADED);
	store_relaxed(&broken, 0);
	EXPECT_EQ(noh_resume(box, "thing:1", SOON), NOH_OK);
	EXPECT_EQ(wait_for(box, "thing:1", 1), NOH_OK);
	EXPECT_EQ(load_relaxed(&sizes[1]), 7);
	end(box);
}

static void a_call_beside_the_mailbox_shows_its_state(void)
{
	noh_type thing = noh_reconcile_type(&how);
	noh_box *box = BOX(2, &thing, &device);
	noh_reconcile_state s;
	size_t len = sizeof s;

	store_relaxed(&broken, 0);
	EXPECT_EQ(want(box, "thing:2", 5, 9), NOH_OK);
	EXPECT_EQ(wait_for(box, "thing:2", 5), NOH_OK);
	EXPECT_EQ(noh_call(box, "thing:2", NOH_RECONCILE_STATE, NULL, 0, SOON, &s, &len), NOH_OK);
	EXPECT_EQ(len, sizeof s);
	EXPECT_EQ(s.applied, 5);
	EXPECT_EQ(s.phase, NOH_PHASE_ACTIVE);
	end(box);
}

TEST_MAIN(
	TEST(many_converge_at_the_same_time, "RC-09 PR-12"),
	TEST(once_resumed_it_goes_on_by_itself, "SUP-07"),
	TEST(a_call_beside_the_mailbox_shows_its_state))
