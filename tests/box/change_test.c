/* tests/box/change_test.c - what of a box changes while it runs, and whether its workers are alive. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

enum { ADD, GET, HOLD };
#define MANY 3000

static int on_message(noh_turn *t, const noh_msg *m)
{
	uint64_t *n = noh_state(t);

	if (m->kind == HOLD)
		gate_pass();
	*n += m->kind == ADD;
	return noh_reply(t, n, sizeof *n);
}

static const noh_type type = { .name = "a", .state_size = 64, .idle_timeout_ms = NOH_NEVER, .on_message = on_message };

static noh_box *box;

static void add_to(unsigned from, unsigned to)
{
	char address[16];

	for (unsigned i = from; i < to; i++) {
		snprintf(address, sizeof address, "a:%u", i);
		EXPECT_EQ(call(box, address, ADD), NOH_OK);
	}
}

/* Who is not folded yet stays until that is done; then it takes a worker that comes by. */
static bool is_within(void *budget)
{
	(void)call(box, "a:busy", ADD);                  /* there may be no room for it so long */
	return stats(box).actor_bytes <= *(uint64_t *)budget;
}

static bool nobody_is_active(void *unused)
{
	(void)unused;
	return stats(box).actors == 0;
}

static void with_less_memory_the_coldest_go_and_all_are_still_there(void)
{
	char dir[200], address[16];
	noh_options o = kit_options(2);

	for (int durable = 0; durable <= 1; durable++) {
		o.dir = durable ? fresh_dir(dir, sizeof dir) : NULL;
		box = kit_start(&o, TYPES(&type));
		add_to(0, MANY / 2);
		uint64_t half = stats(box).actor_bytes;

		add_to(MANY / 2, MANY);
		EXPECT_EQ(stats(box).actors, MANY);
		EXPECT_EQ(stats(box).evictions, 0);
		EXPECT_EQ(noh_set_memory_budget(box, half), NOH_OK);     /* of a durable box: a part of it is the actors' */
		EXPECT(test_wait_until(is_within, &half, SOON));
		EXPECT(stats(box).evictions > 0 && stats(box).actors < MANY);
		EXPECT_EQ(noh_set_memory_budget(box, 0), NOH_OK);                /* no limit: nobody is refused */
		add_to(MANY, MANY + 500);
		for (unsigned i = 0; i < MANY; i += 7) {
			snprintf(address, sizeof address, "a:%u", i);
			EXPECT_EQ(get(box, address, GET), 1);
		}
		end(box);
	}
	remove_dir(dir);
}

static void another_idle_time_counts_for_actors_that_idle_already(void)
{
	FOR_WORKERS(n) {
		noh_options o = kit_options(n);

		box = kit_start(&o, TYPES(&type));
		add_to(0, 100);
		EXPECT_EQ(stats(box).actors, 100);
		EXPECT_EQ(noh_set_idle_timeout(box, "nosuch", 100), NOH_ENOTYPE);
		EXPECT_EQ(noh_set_idle_timeout(box, "a", 100), NOH_OK);
		EXPECT(test_wait_until(nobody_is_active, NULL, SOON));
		EXPECT_EQ(noh_set_idle_timeout(box, "a", NOH_NEVER), NOH_OK);
		EXPECT_EQ(get(box, "a:7", GET), 1);
		EXPECT_EQ(stats(box).actors, 1);
		end(box);
	}
}

static void a_turn_is_slow_by_the_time_that_was_set_last(void)
{
	noh_options o = kit_options(1);

	o.slow_turn_ms = 3600000;
	box = kit_start(&o, TYPES(&type));
	EXPECT_EQ(noh_set_slow_turn(box, 5), NOH_OK);
	gate_shut();
	EXPECT_EQ(noh_send(box, "a:slow", HOLD, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(is_logged, "a:slow|its turn has been running", SOON));
	gate_open();
	end(box);
}

/* ── the pulse ── */

struct pulse_is { uint64_t least, most; unsigned worker; };
static bool beats(void *arg)
{
	struct pulse_is *want = arg;
	uint64_t silent;

	EXPECT_EQ(noh_pulse(box, &silent, &want->worker), NOH_OK);
	return silent >= want->least && silent <= want->most;
}

static void a_pulse_tells_of_workers_that_sleep_and_of_one_that_is_stuck(void)
{
	FOR_WORKERS(n) {
		noh_options o = kit_options(n);
		struct pulse_is stuck = { .least = 150, .most = UINT64_MAX, .worker = 99 }, fine = { .most = 0 };
		uint64_t silent;

		box = kit_open(&o, TYPES(&type));
		EXPECT_EQ(noh_pulse(box, &silent, NULL), NOH_ESTOPPED);
		EXPECT_EQ(noh_start(box), NOH_OK);
		for (int i = 0; i < 5; i++) {
			nap_us(20000);                   /* they sleep, and are woken by it */
			EXPECT(test_wait_until(beats, &fine, SOON));
		}
		gate_shut();
		EXPECT_EQ(noh_send(box, "a:stuck", HOLD, NULL, 0), NOH_OK);
		EXPECT(gate_holds(1));
		EXPECT(test_wait_until(beats, &stuck, SOON));
		EXPECT(stuck.worker < n);
		gate_open();
		EXPECT(test_wait_until(beats, &fine, SOON));
		end(box);
	}
}

TEST_MAIN(
	TEST(with_less_memory_the_coldest_go_and_all_are_still_there),
	TEST(another_idle_time_counts_for_actors_that_idle_already, "CF-03"),
	TEST(a_turn_is_slow_by_the_time_that_was_set_last),
	TEST(a_pulse_tells_of_workers_that_sleep_and_of_one_that_is_stuck, "CF-06 CF-17 PL-12"))
