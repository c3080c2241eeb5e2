/* tests/box/timer_test.c - schedules: on time, never early, across storage, and at the end. */
#include "tests/box/hands_kit.h"

#include <stdlib.h>

enum { ONCE, EVERY, CANCEL, TICK, TOCK, LOOK, LIMITS, REPLACE };

struct order { uint64_t ms; };

struct seen { uint64_t ticks, tocks, set_us, first_us, last_us; };

static atomic_u64 ticks, activations;

static int tick(noh_turn *t, const noh_msg *m, struct seen *s)
{
	EXPECT(m->flags & NOH_MSG_TIMER);
	EXPECT_EQ(m->len, 0);
	EXPECT_EQ(noh_reply(t, NULL, 0), NOH_NOBODY);
	s->ticks++;
	s->last_us = now_us();
	if (s->ticks == 1)
		s->first_us = s->last_us;
	add_relaxed(&ticks, 1);
	return NOH_OK;
}

static int limits(noh_turn *t)
{
	const uint64_t year = UINT64_C(366) * 24 * 3600 * 1000;

	EXPECT_EQ(noh_schedule_once(t, TICK, year), NOH_OK);
	EXPECT_EQ(noh_schedule_once(t, TICK, year + 1), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "year"));
	EXPECT_EQ(noh_schedule_every(t, TICK, UINT64_MAX), NOH_EINVAL);
	EXPECT_EQ(noh_schedule_every(t, TICK, 0), NOH_EINVAL);
	EXPECT_EQ(noh_schedule_once(t, 1000, 1), NOH_EKIND);
	EXPECT_EQ(noh_schedule_cancel(t, TOCK), NOH_OK);     /* what is not scheduled */
	return noh_schedule_cancel(t, TICK);
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	struct seen *s = noh_state(t);
	const struct order *o = m->body;

	switch (m->kind) {
	case ONCE: s->set_us = now_us(); return noh_schedule_once(t, TICK, o->ms);
	case EVERY: s->set_us = now_us(); return noh_schedule_every(t, TICK, o->ms);
	case CANCEL: return noh_schedule_cancel(t, TICK);
	case REPLACE:
		EXPECT_EQ(noh_schedule_once(t, TICK, 5), NOH_OK);
		EXPECT_EQ(noh_schedule_once(t, TOCK, 10), NOH_OK);
		return noh_schedule_once(t, TICK, 60000);
	case TICK: return tick(t, m, s);
	case TOCK: s->tocks++; return NOH_OK;
	case LOOK: return noh_reply(t, s, sizeof *s);
	case LIMITS: return limits(t);
	}
	return NOH_EINVAL;
}

static bool is_broken;                 /* it cannot be activated */

static int on_activate(noh_turn *t)
{
	add_relaxed(&activations, 1);
	return is_broken ? noh_fail(t, "not now") : NOH_OK;
}

static const noh_kind kinds[10] = { [TICK] = { "tick", NOH_KIND_TIMER, NULL },
				    [TOCK] = { "tock", NOH_KIND_TIMER, NULL } };
static const noh_type t_type = { .name = "t", .state_size = sizeof(struct seen), .kinds = kinds,
	.kind_count = 10, .idle_timeout_ms = NOH_NEVER, .on_activate = on_activate,
	.on_message = on_message };

static noh_box *start(unsigned workers)
{
	store_relaxed(&ticks, 0);
	store_relaxed(&activations, 0);
	return BOX(workers, &t_type);
}

static struct seen look(noh_box *box, const char *address)
{
	struct seen s = { 0 };
	size_t len = sizeof s;

	EXPECT_EQ(noh_call(box, address, LOOK, NULL, 0, SOON, &s, &len), NOH_OK);
	return s;
}

static int order(noh_box *box, const char *address, uint32_t kind, uint64_t ms)
{
	return noh_call(box, address, kind, &(struct order){ ms }, sizeof(struct order), SOON, NULL, NULL);
}

static void a_timer_comes_once_and_never_early(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);
		char address[16];

		for (uint64_t ms = 0; ms < 40; ms++) {
			snprintf(address, sizeof address, "t:%u", (unsigned)ms);
			EXPECT_EQ(order(box, address, ONCE, ms), NOH_OK);
		}
		EXPECT(reaches(&ticks, 40));
		for (uint64_t ms = 0; ms < 40; ms++) {
			snprintf(address, sizeof address, "t:%u", (unsigned)ms);
			struct seen s = look(box, address);
			EXPECT_EQ(s.ticks, 1);
			EXPECT(s.first_us - s.set_us >= ms * 1000);
			EXPECT(s.first_us - s.set_us < ms * 1000 + 2000000);
		}
		EXPECT_EQ(stats(box).timers, 0);
		EXPECT(settles(box, "t"));
		end(box);
	}
}

static void a_recurring_timer_comes_again_until_cancelled(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(order(box, "t:1", EVERY, 5), NOH_OK);
	EXPECT(stats(box).timers <= 2);   /* the schedule, and the hint that wakes it */
	EXPECT(reaches(&ticks, 10));
	EXPECT_EQ(order(box, "t:1", CANCEL, 0), NOH_OK);
	struct seen s = look(box, "t:1");
	EXPECT(s.last_us - s.set_us >= s.ticks * 5000);    /* never early, also not the tenth */
	EXPECT_EQ(stats(box).timers, 0);
	nap_us(20000);
	EXPECT_EQ(look(box, "t:1").ticks, s.ticks);
	end(box);
}

static void a_new_schedule_of_a_kind_replaces_the_old(void)
{
	noh_box *box = start(1);

	EXPECT_EQ(order(box, "t:1", REPLACE, 0), NOH_OK);
	EXPECT_EQ(stats(box).timers, 2);
	nap_us(40000);
	EXPECT_EQ(look(box, "t:1").tocks, 1);
	EXPECT_EQ(look(box, "t:1").ticks, 0);
	EXPECT_EQ(order(box, "t:1", CANCEL, 0), NOH_OK);
	EXPECT_EQ(stats(box).timers, 0);
	end(box);
}

static void a_timer_is_refused_where_it_makes_no_sense(void)
{
	noh_box *box = start(1);

	EXPECT_EQ(order(box, "t:1", LIMITS, 0), NOH_OK);
	EXPECT_EQ(stats(box).timers, 0);
	EXPECT_EQ(noh_send(box, "t:1", TICK, NULL, 0), NOH_EKIND);
	end(box);
}

static void a_timer_wakes_a_dormant_actor(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);

		EXPECT_EQ(order(box, "t:1", ONCE, 40), NOH_OK);
		EXPECT_EQ(noh_deactivate(box, "t:1", false, SOON), NOH_OK);
		EXPECT_EQ(load_relaxed(&ticks), 0);
		EXPECT_EQ(status_of(box, "t:1").life, NOH_NOT_ACTIVE);
		EXPECT(reaches(&ticks, 1));
		struct seen s = look(box, "t:1");
		EXPECT(s.first_us - s.set_us >= 40000);
		EXPECT_EQ(s.ticks, 1);
		EXPECT_EQ(load_relaxed(&activations), 2);
		end(box);
	}
}

static void a_recurring_timer_survives_storage(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(order(box, "t:1", EVERY, 10), NOH_OK);
	for (uint64_t i = 1; i <= 3; i++) {
		int rc = noh_deactivate(box, "t:1", false, SOON);

		EXPECT(rc == NOH_OK || rc == NOH_ENOACTOR);
		EXPECT(reaches(&ticks, i * 3));
	}
	EXPECT_EQ(order(box, "t:1", CANCEL, 0), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "t:1", false, SOON), NOH_OK);
	uint64_t before = load_relaxed(&ticks);
	nap_us(30000);
	EXPECT_EQ(load_relaxed(&ticks), before);
	end(box);
}

static void a_far_schedule_costs_one_timer_however_often_its_actor_sleeps(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(order(box, "t:1", ONCE, 3600000), NOH_OK);
	for (int i = 0; i < 50; i++) {
		EXPECT_EQ(noh_deactivate(box, "t:1", false, SOON), NOH_OK);
		EXPECT_EQ(look(box, "t:1").ticks, 0);
	}
	EXPECT(stats(box).timers <= 2);   /* the schedule, and the hint that wakes it */
	end(box);
}

static void a_hundred_thousand_timers_all_come(void)
{
	noh_box *box = start(2);
	char address[32];
	const int many = (int)test_size(99000, 20000);

	for (int i = 0; i < many; i++) {
		struct order o = { (uint64_t)i % 50 + 1 };

		snprintf(address, sizeof address, "t:%d", i);
		EXPECT_EQ(noh_send(box, address, ONCE, &o, sizeof o), NOH_OK);
	}
	EXPECT(reaches(&ticks, (uint64_t)many));
	EXPECT(settles(box, "t"));
	EXPECT_EQ(stats(box).timers, 0);
	EXPECT_EQ(stats_of(box, "t").handled, 2 * many);
	end(box);
}

static void stopping_does_not_wait_for_timers(void)
{
	noh_box *box = start(2);
	uint64_t begin = now_us();

	EXPECT_EQ(order(box, "t:1", ONCE, 3600000), NOH_OK);
	EXPECT_EQ(order(box, "t:2", EVERY, 1), NOH_OK);
	EXPECT_EQ(order(box, "t:3", ONCE, 3600000), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "t:3", false, SOON), NOH_OK);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT(now_us() - begin < 5000000);
	EXPECT_EQ(stats(box).actors, 0);
	EXPECT_EQ(stats(box).stored, 3);
	noh_close(box);
}

static int long_now(noh_turn *t, const noh_msg *m)
{
	uint64_t now = noh_now_ms(t);

	(void)m;
	nap_us(5000);
	EXPECT_EQ(noh_now_ms(t), now);                     /* one instant for the whole turn */
	return noh_reply(t, &now, 8);
}

static void a_turn_is_one_instant(void)
{
	noh_type now = t_type;
	uint64_t first;

	now.on_message = long_now;
	noh_box *box = BOX(1, &now);
	first = get(box, "t:1", LOOK);
	EXPECT(get(box, "t:1", LOOK) >= first + 5);
	end(box);
}

/* ── a hint that wakes nobody ── */

/* t:1 has a schedule in ten seconds. */
static noh_box *stepped(uint32_t idle_ms)
{
	noh_type idles = t_type;
	noh_box *box;

	idles.idle_timeout_ms = idle_ms;
	box = hands_start(TYPES(&idles));
	store_relaxed(&ticks, 0);
	store_relaxed(&activations, 0);
	EXPECT_EQ(noh_send(box, "t:1", ONCE, &(struct order){ 10000 }, sizeof(struct order)), NOH_OK);
	hands_after_ms(box, 0);
	EXPECT_EQ(load_relaxed(&activations), 1);
	return box;
}

static void a_timer_whose_actor_cannot_be_activated_comes_when_it_can(void)
{
	noh_box *box = stepped(1000);

	hands_after_ms(box, 5000);
	EXPECT_EQ(stats(box).actors, 0);
	is_broken = true;
	hands_after_ms(box, 5000);
	EXPECT_EQ(load_relaxed(&activations), 2);
	hands_after_ms(box, 30000);
	EXPECT_EQ(load_relaxed(&activations), 2);        /* nobody tries it all the time */
	hands_after_ms(box, 30000);
	EXPECT_EQ(load_relaxed(&activations), 3);
	EXPECT_EQ(stats(box).actors, 0);
	EXPECT_EQ(stats(box).timers, 1);
	is_broken = false;
	EXPECT_EQ(load_relaxed(&ticks), 0);
	hands_after_ms(box, 60000);
	EXPECT_EQ(load_relaxed(&ticks), 1);
	hands_after_ms(box, 600000);
	EXPECT_EQ(load_relaxed(&ticks), 1);
	EXPECT_EQ(stats(box).timers, 0);
	noh_close(box);
}

static int load_nothing(void *arg, const char *address, size_t len, uint64_t hash, struct sched_image *out)
{
	(void)arg;
	(void)address;
	(void)len;
	(void)hash;
	(void)out;
	return NOH_ENOMEM;
}

static void a_timer_whose_actor_cannot_be_loaded_comes_when_it_can(void)
{
	noh_box *box = stepped(1000);
	struct sched_storage real = box->sched.storage;

	hands_after_ms(box, 5000);
	box->sched.storage.load = load_nothing;
	hands_after_ms(box, 5000);
	EXPECT_EQ(stats_of(box, "t").restarts, 1);       /* it was tried */
	box->sched.storage = real;
	hands_after_ms(box, 60000);
	EXPECT_EQ(load_relaxed(&ticks), 1);
	noh_close(box);
}

static void a_timer_that_there_is_no_memory_for_comes_a_little_later(void)
{
	noh_box *box = stepped(NOH_NEVER);
	struct slab *nodes = &box->sched.nodes;
	uint32_t fresh = load_relaxed(&nodes->shared.fresh);

	store_relaxed(&nodes->shared.fresh, nodes->fixed.limit);
	store_relaxed(&nodes->shared.free, 0);
	box->sched.workers[0].mine.port.nodes.count = 0;
	hands_after_ms(box, 10000);
	EXPECT_EQ(load_relaxed(&ticks), 0);
	store_relaxed(&nodes->shared.fresh, fresh);
	hands_after_ms(box, 1000);
	EXPECT_EQ(load_relaxed(&ticks), 1);
	noh_close(box);
}

TEST_MAIN(
	TEST(a_timer_comes_once_and_never_early, "RT-06"),
	TEST(a_recurring_timer_comes_again_until_cancelled, "RT-07 RT-08"),
	TEST(a_new_schedule_of_a_kind_replaces_the_old, "RT-06 RT-08"),
	TEST(a_timer_is_refused_where_it_makes_no_sense, "SC-12"),
	TEST(a_timer_wakes_a_dormant_actor, "LC-05"),
	TEST(a_recurring_timer_survives_storage, "RT-07 RT-08 LC-05"),
	TEST(a_far_schedule_costs_one_timer_however_often_its_actor_sleeps),
	TEST(a_hundred_thousand_timers_all_come, "RT-06"),
	TEST(stopping_does_not_wait_for_timers),
	TEST(a_turn_is_one_instant, "LC-18"),
	TEST(a_timer_whose_actor_cannot_be_activated_comes_when_it_can),
	TEST(a_timer_whose_actor_cannot_be_loaded_comes_when_it_can),
	TEST(a_timer_that_there_is_no_memory_for_comes_a_little_later))
