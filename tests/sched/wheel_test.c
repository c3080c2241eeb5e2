/* tests/sched/wheel_test.c - the wheel against a list that anyone can see is right. */
#include "sched/wheel.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <string.h>

#define ALL UINT32_MAX
#define YEAR_MS (UINT64_C(366) * 24 * 3600 * 1000)
#define MANY 3000

/* The model: entry i carries a = i and b = its own random word. */
static struct {
	struct wheel wheel;
	uint64_t     now, last_due, fired, rng;
	bool         in_order;           /* check that due times never fall */
	struct { uint64_t due, b; uint32_t id; bool pending; } timer[MANY];
} m;

static void start(uint64_t now_ms)
{
	memset(&m, 0, sizeof m);
	m.rng = test_seed;
	m.now = now_ms;
	EXPECT(wheel_init(&m.wheel, now_ms));
}

static void check_fire(void *ctx, uint64_t a, uint64_t b, uint64_t due_ms)
{
	EXPECT(ctx == &m);
	if (!EXPECT(a < MANY))
		return;
	EXPECT(m.timer[a].pending);
	EXPECT_EQ(m.timer[a].b, b);
	EXPECT_EQ(m.timer[a].due, due_ms);
	EXPECT(due_ms <= m.now);
	EXPECT(!m.in_order || due_ms >= m.last_due);
	m.timer[a].pending = false;
	m.last_due = due_ms;
	m.fired++;
}

static void add(uint32_t i, uint64_t due)
{
	m.timer[i].due = due;
	m.timer[i].b = test_random(&m.rng);
	m.timer[i].id = wheel_add(&m.wheel, due, i, m.timer[i].b);
	EXPECT(m.timer[i].id != 0);
	m.timer[i].pending = true;
}

static uint32_t go_to(uint64_t now, uint32_t max_work)
{
	m.now = now;
	return wheel_advance(&m.wheel, now, max_work, check_fire, &m);
}

static void expect_like_the_model(bool all_fired)
{
	uint64_t count = 0, first = UINT64_MAX;

	for (uint32_t i = 0; i < MANY; i++) {
		if (!m.timer[i].pending)
			continue;
		EXPECT(!all_fired || m.timer[i].due > m.now);
		count++;
		first = m.timer[i].due < first ? m.timer[i].due : first;
	}
	EXPECT_EQ(wheel_count(&m.wheel), count);
	uint64_t bound = first < m.wheel.tick ? m.wheel.tick : first;
	EXPECT(wheel_next_ms(&m.wheel) <= bound);
	EXPECT((count == 0) == (wheel_next_ms(&m.wheel) == UINT64_MAX));
}

/* Mostly near, sometimes anywhere: every level gets its share. */
static uint64_t some_time(unsigned bits)
{
	return test_random(&m.rng) >> (64 - 1 - test_random(&m.rng) % bits);
}

static void nothing_fires_early_and_everything_at_its_tick(void)
{
	start(65536 - 700);                      /* two carries on the way */
	for (uint32_t i = 0; i < MANY; i++)
		add(i, m.now + test_random(&m.rng) % 2000);
	for (uint64_t t = m.now; t < 65536 - 700 + 2000; t++) {
		go_to(t, ALL);
		expect_like_the_model(true);
	}
	EXPECT_EQ(m.fired, MANY);
	wheel_free(&m.wheel);
}

static void a_big_jump_fires_in_order_of_time(void)
{
	start(1000);
	m.in_order = true;
	for (uint32_t i = 0; i < MANY; i++)
		add(i, m.now + some_time(40));
	EXPECT(go_to(m.now + (UINT64_C(1) << 41), ALL) < MANY * 6);
	EXPECT_EQ(m.fired, MANY);
	EXPECT_EQ(wheel_next_ms(&m.wheel), UINT64_MAX);
	wheel_free(&m.wheel);
}

static void random_op(void)
{
	uint64_t dice = test_random(&m.rng) % 100;
	uint32_t i = (uint32_t)(test_random(&m.rng) % MANY);
	uint32_t max_work = dice % 3 ? ALL : (uint32_t)(test_random(&m.rng) % 50);

	if (dice < 60) {
		if (m.timer[i].pending)
			return;
		uint64_t by = some_time(36);
		add(i, dice == 0 ? m.now - by % (m.now + 1) : m.now + by);
	} else if (dice < 80) {
		bool was = wheel_cancel(&m.wheel, m.timer[i].id, i, m.timer[i].b);
		EXPECT_EQ(was, m.timer[i].pending);
		m.timer[i].pending = false;
	} else {
		uint64_t by = some_time(dice == 99 ? 34 : 12);
		uint64_t before = m.fired;
		uint32_t work = go_to(m.now + by, max_work);
		EXPECT(work <= max_work);
		EXPECT(m.fired - before <= work);
		if (work < max_work)
			expect_like_the_model(true);
	}
}

static void random_work_matches_the_model(void)
{
	static const uint64_t starts[] = { 0, 1, 255, 65535, (UINT64_C(1) << 32) - 50,
					   (UINT64_C(1) << 40) - 5, UINT64_C(1) << 62 };
	uint64_t seed = test_seed;

	for (unsigned round = 0; round < 35; round++) {
		start(starts[round % 7]);
		m.rng = test_random(&seed);
		for (unsigned i = 0; i < 4000; i++) {
			random_op();
			if (i % 16 == 0)
				expect_like_the_model(false);
		}
		while (go_to(m.now, 100) == 100)
			;
		expect_like_the_model(true);
		go_to(UINT64_MAX, ALL);
		EXPECT_EQ(wheel_count(&m.wheel), 0);
		wheel_free(&m.wheel);
	}
}

static void sleeping_until_next_ms_fires_everything_on_time(void)
{
	start(UINT64_C(0xfffff0));
	uint64_t end = m.now + YEAR_MS, naps = 0;

	for (uint32_t i = 0; i < MANY; i++)
		add(i, m.now + some_time(34));
	for (uint64_t next; (next = wheel_next_ms(&m.wheel)) != UINT64_MAX; naps++) {
		EXPECT(next <= end);
		EXPECT(next >= m.now);
		EXPECT(go_to(next, ALL) > 0);    /* nobody is woken for nothing */
		EXPECT(m.fired == 0 || m.last_due <= m.now);
		for (uint32_t i = 0; i < MANY; i++)
			EXPECT(!m.timer[i].pending || m.timer[i].due > m.now);
	}
	EXPECT_EQ(m.fired, MANY);
	EXPECT(naps <= MANY * 5);
	wheel_free(&m.wheel);
}

static void a_timer_a_year_away_costs_five_wakeups(void)
{
	unsigned wakeups = 0;

	start(123456789);
	add(0, m.now + YEAR_MS);
	for (; m.fired == 0 && wakeups < 100; wakeups++)
		go_to(wheel_next_ms(&m.wheel), ALL);
	EXPECT_EQ(m.now, 123456789 + YEAR_MS);
	EXPECT(wakeups <= 5);
	wheel_free(&m.wheel);
}

static void a_near_timer_after_a_long_silence_costs_one_wakeup(void)
{
	start(1);
	go_to(YEAR_MS | 1, ALL);
	add(0, m.now + 20);
	EXPECT_EQ(wheel_next_ms(&m.wheel), m.now + 20);
	EXPECT_EQ(go_to(m.now + 20, ALL), 1);
	EXPECT_EQ(m.fired, 1);
	wheel_free(&m.wheel);
}

static void count_fire(void *ctx, uint64_t a, uint64_t b, uint64_t due_ms)
{
	(void)a, (void)b, (void)due_ms;
	++*(uint64_t *)ctx;
}

static void a_crowded_tick_is_worked_off_in_bounded_steps(void)
{
	const uint64_t crowd = 100000, due = 1 << 20;
	uint64_t fired = 0, calls = 0, units = 0;

	start(5);
	for (uint64_t i = 0; i < crowd; i++)
		EXPECT(wheel_add(&m.wheel, due, i, i));
	EXPECT_EQ(wheel_count(&m.wheel), crowd);
	EXPECT(wheel_bytes(&m.wheel) >= crowd * 32);
	while (wheel_count(&m.wheel) > 0) {
		uint64_t before = fired;
		uint32_t work = wheel_advance(&m.wheel, due, 64, count_fire, &fired);
		EXPECT(work <= 64);
		EXPECT(fired - before <= 64);
		units += work;
		if (!EXPECT(calls++ < crowd))
			break;
		EXPECT(fired == crowd || wheel_next_ms(&m.wheel) == due);
	}
	EXPECT_EQ(fired, crowd);
	EXPECT(units <= crowd * 4);
	wheel_free(&m.wheel);
}

static void a_stopped_advance_can_be_added_to_and_cancelled(void)
{
	uint64_t fired = 0;
	uint32_t id[100];

	start(0);
	for (uint32_t i = 0; i < 100; i++)
		id[i] = wheel_add(&m.wheel, 0x10000 + i, i, 0);
	EXPECT_EQ(wheel_advance(&m.wheel, 0x10000, 10, count_fire, &fired), 10);    /* ten moved */
	for (uint32_t i = 0; i < 100; i += 2)
		EXPECT(wheel_cancel(&m.wheel, id[i], i, 0));
	EXPECT(wheel_add(&m.wheel, 0x10000, 7, 7));
	EXPECT(wheel_add(&m.wheel, 0x10100, 7, 7));
	wheel_advance(&m.wheel, 0x10000, ALL, count_fire, &fired);
	EXPECT_EQ(fired, 1);
	wheel_advance(&m.wheel, 0x10000 + 99, ALL, count_fire, &fired);
	EXPECT_EQ(fired, 51);
	EXPECT_EQ(wheel_count(&m.wheel), 1);
	wheel_free(&m.wheel);
}

static void a_reused_id_is_not_cancelled_by_its_former_owner(void)
{
	start(0);
	uint32_t old = wheel_add(&m.wheel, 10, 1, 1);
	EXPECT(!wheel_cancel(&m.wheel, old, 1, 2));
	EXPECT(!wheel_cancel(&m.wheel, old, 2, 1));
	EXPECT(wheel_cancel(&m.wheel, old, 1, 1));
	EXPECT(!wheel_cancel(&m.wheel, old, 1, 1));
	EXPECT_EQ(wheel_add(&m.wheel, 20, 2, 2), old);
	EXPECT(!wheel_cancel(&m.wheel, old, 1, 1));
	EXPECT_EQ(wheel_count(&m.wheel), 1);
	EXPECT(wheel_cancel(&m.wheel, old, 2, 2));
	EXPECT(!wheel_cancel(&m.wheel, 0, 0, 0));
	EXPECT(!wheel_cancel(&m.wheel, old + 1, 2, 2));
	EXPECT(!wheel_cancel(&m.wheel, UINT32_MAX, 2, 2));
	wheel_free(&m.wheel);
}

/* Each firing of a sets the next one a ms later, and cancels the entry kept in victim. */
static struct { uint32_t id; uint64_t fired[4], last; } chain;

static void add_in_fire(void *ctx, uint64_t a, uint64_t b, uint64_t due_ms)
{
	struct wheel *w = ctx;

	chain.fired[b]++;
	chain.last = due_ms;
	if (b == 1)
		EXPECT(wheel_add(w, due_ms + a, a, 1));
	if (b == 2)
		EXPECT(wheel_cancel(w, chain.id, 0, 3));
}

static void fire_may_add_and_cancel(void)
{
	memset(&chain, 0, sizeof chain);
	start(0);
	wheel_add(&m.wheel, 100, 100, 1);
	wheel_add(&m.wheel, 50, 0, 2);
	chain.id = wheel_add(&m.wheel, 50, 0, 3);        /* the very next one of that tick */
	wheel_advance(&m.wheel, 100000, ALL, add_in_fire, &m.wheel);
	EXPECT_EQ(chain.fired[1], 1000);
	EXPECT_EQ(chain.fired[2], 1);
	EXPECT_EQ(chain.fired[3], 0);
	EXPECT_EQ(chain.last, 100000);
	EXPECT_EQ(wheel_next_ms(&m.wheel), 100100 & ~UINT64_C(0xff));
	wheel_free(&m.wheel);
}

static void a_timer_that_renews_itself_at_once_cannot_hold_the_caller(void)
{
	memset(&chain, 0, sizeof chain);
	start(0);
	wheel_add(&m.wheel, 0, 0, 1);
	EXPECT_EQ(wheel_advance(&m.wheel, 10, 1000, add_in_fire, &m.wheel), 1000);
	EXPECT_EQ(chain.fired[1], 1000);
	wheel_free(&m.wheel);
}

static void a_late_timer_fires_at_the_next_advance(void)
{
	start(1000);
	add(0, 3);
	EXPECT(wheel_next_ms(&m.wheel) <= 1000);
	go_to(999, ALL);
	EXPECT_EQ(m.fired, 0);
	go_to(1000, ALL);
	EXPECT_EQ(m.fired, 1);
	add(1, 1000);
	go_to(1000, ALL);
	EXPECT_EQ(m.fired, 2);
	wheel_free(&m.wheel);
}

static void a_failed_allocation_leaves_the_wheel_intact(void)
{
	struct wheel w;
	uint64_t fired = 0, added = 0;

	mem_fail_at(1, 0);
	EXPECT(!wheel_init(&w, 0));
	mem_fail_at(0, 0);
	EXPECT(wheel_init(&w, 0));
	for (uint64_t i = 0; i < 300000; i++) {
		if (i % 5000 == 0)
			mem_fail_at(1 + i / 5000 % 2, 1);
		if (wheel_add(&w, i, i, i))
			added++;
		else
			mem_fail_at(0, 0);
		EXPECT_EQ(wheel_count(&w), added);
	}
	mem_fail_at(0, 0);
	EXPECT(added < 300000);
	wheel_advance(&w, 300000, ALL, count_fire, &fired);
	EXPECT_EQ(fired, added);
	wheel_free(&w);
}

TEST_MAIN(
	TEST(nothing_fires_early_and_everything_at_its_tick),
	TEST(a_big_jump_fires_in_order_of_time),
	TEST(random_work_matches_the_model),
	TEST(sleeping_until_next_ms_fires_everything_on_time),
	TEST(a_timer_a_year_away_costs_five_wakeups),
	TEST(a_near_timer_after_a_long_silence_costs_one_wakeup),
	TEST(a_crowded_tick_is_worked_off_in_bounded_steps),
	TEST(a_stopped_advance_can_be_added_to_and_cancelled),
	TEST(a_reused_id_is_not_cancelled_by_its_former_owner),
	TEST(fire_may_add_and_cancel),
	TEST(a_timer_that_renews_itself_at_once_cannot_hold_the_caller),
	TEST(a_late_timer_fires_at_the_next_advance),
	TEST(a_failed_allocation_leaves_the_wheel_intact))
