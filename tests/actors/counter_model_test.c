/* tests/actors/counter_model_test.c - a hundred thousand random messages to a few counters, on a clock that
 * jumps from instant to instant, against a model that knows nothing of timers, records or storage. Actors go
 * to storage and boxes are restarted in between; every answer must be the model's. */
#include "tests/actors/kit.h"

enum { KEYS = 5, STEPS = 100000 };

struct model { bool there, timed; int64_t value, until; };
static struct model models[KEYS];
static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return test_random(&random_state) % below;
}

static struct model *at(int key)
{
	struct model *m = &models[key];

	if (m->there && m->timed && m->until <= kit_wall())
		*m = (struct model){ 0 };
	return m;
}

static int64_t any_value(void)
{
	switch (draw(4)) {
	case 0: return INT64_MAX - (int64_t)draw(3);
	case 1: return INT64_MIN + (int64_t)draw(3);
	}
	return (int64_t)draw(21) - 10;
}

static int64_t any_time(int64_t least)
{
	return least + (int64_t)(draw(10) ? draw(50) : draw(3) * (uint64_t)(400 * DAY));
}

static void give_time(struct model *m, uint32_t flags, int64_t time)
{
	m->timed = true;
	m->until = flags & NOH_COUNTER_IN ? kit_wall() + time : time;
	if (m->until <= kit_wall())
		*m = (struct model){ 0 };
}

static void check_value(struct model before, uint32_t outcome)
{
	noh_counter_value a;

	memcpy(&a, k.heard.body, sizeof a);
	EXPECT_EQ(k.heard.len, sizeof a);
	EXPECT_EQ(a.outcome, outcome);
	EXPECT_EQ(a.existed, before.there);
	EXPECT_EQ(a.value, before.value);
}

static void check_times(const struct model *m, uint32_t outcome)
{
	noh_counter_times a;

	memcpy(&a, k.heard.body, sizeof a);
	EXPECT_EQ(k.heard.len, sizeof a);
	EXPECT_EQ(a.outcome, outcome);
	EXPECT_EQ(a.left, !m->there ? -2 : !m->timed ? -1 : m->until - kit_wall());
	EXPECT_EQ(a.at, !m->there ? -2 : !m->timed ? -1 : m->until);
}

static void do_add(const char *address, struct model *m)
{
	noh_counter_add b = { .by = any_value(), .low = INT64_MIN, .high = INT64_MAX };
	bool plain = draw(2);
	noh_counter_added a;
	__extension__ __int128 sum, low, high;
	uint32_t outcome = NOH_COUNTER_OK;

	if (!plain) {
		if (draw(2))
			b.low = (int64_t)draw(20) - 10;
		if (draw(2))
			b.high = (b.low == INT64_MIN ? 0 : b.low) + (int64_t)draw(20);
		b.flags = (draw(2) ? NOH_COUNTER_SATURATE : 0) |
			  (uint32_t[]){ 0, NOH_COUNTER_IN, NOH_COUNTER_AT, NOH_COUNTER_PERSIST }[draw(4)];
		if (b.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT)) {
			b.time = b.flags & NOH_COUNTER_IN ? any_time(1) : any_time(kit_wall() - 10);
			b.flags |= draw(2) ? NOH_COUNTER_IF_NO_TIME : 0;
		}
	}
	EXPECT_EQ(kit_call(address, NOH_COUNTER_ADD, &b, plain ? 8 : sizeof b, NULL), NOH_OK);
	memcpy(&a, k.heard.body, sizeof a);
	sum = m->value;
	sum += b.by;
	low = b.low;
	high = b.high;
	if (sum < low || sum > high) {
		bool wide = sum > INT64_MAX ? b.high == INT64_MAX : sum < INT64_MIN && b.low == INT64_MIN;

		if (b.flags & NOH_COUNTER_SATURATE)
			sum = sum < low ? low : high;
		else
			outcome = wide ? NOH_COUNTER_OVERFLOW : NOH_COUNTER_OUT_OF_BOUNDS;
	}
	if (outcome == NOH_COUNTER_OK && (sum - m->value > INT64_MAX || sum - m->value < INT64_MIN))
		outcome = NOH_COUNTER_OVERFLOW;
	EXPECT_EQ(a.outcome, outcome);
	EXPECT_EQ(a.value, outcome == NOH_COUNTER_OK ? (int64_t)sum : m->value);
	EXPECT_EQ(a.applied, outcome == NOH_COUNTER_OK ? (int64_t)(sum - m->value) : 0);
	if (outcome != NOH_COUNTER_OK)
		return;
	m->there = true;
	m->value = (int64_t)sum;
	if (b.flags & NOH_COUNTER_PERSIST)
		m->timed = false;
	if ((b.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT)) && !((b.flags & NOH_COUNTER_IF_NO_TIME) && m->timed))
		give_time(m, b.flags, b.time);
}

static void do_set(const char *address, struct model *m)
{
	noh_counter_set b = { .value = any_value() };
	struct model before = *m;
	bool plain = draw(3) == 0;

	if (!plain) {
		b.flags = (uint32_t[]){ 0, NOH_COUNTER_IN, NOH_COUNTER_AT, NOH_COUNTER_KEEP }[draw(4)] |
			  (uint32_t[]){ 0, NOH_COUNTER_IF_NONE, NOH_COUNTER_IF_THERE }[draw(3)];
		if (b.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT))
			b.time = b.flags & NOH_COUNTER_IN ? any_time(1) : any_time(kit_wall() - 10);
	}
	EXPECT_EQ(kit_call(address, NOH_COUNTER_SET, &b, plain ? 8 : sizeof b, NULL), NOH_OK);
	if (b.flags & (m->there ? NOH_COUNTER_IF_NONE : NOH_COUNTER_IF_THERE)) {
		check_value(before, NOH_COUNTER_UNCHANGED);
		return;
	}
	check_value(before, NOH_COUNTER_OK);
	m->there = true;
	m->value = b.value;
	if (!(b.flags & NOH_COUNTER_KEEP))
		m->timed = false;
	if (b.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT))
		give_time(m, b.flags, b.time);
}

static bool may_expire(const struct model *m, const noh_counter_expire *b)
{
	int64_t until = b->flags & NOH_COUNTER_IN ? kit_wall() + b->time : b->time;

	if (b->flags & NOH_COUNTER_PERSIST)
		return m->timed;
	if ((b->flags & NOH_COUNTER_IF_NO_TIME) && m->timed)
		return false;
	if ((b->flags & NOH_COUNTER_IF_TIME) && !m->timed)
		return false;
	if ((b->flags & NOH_COUNTER_IF_LATER) && (!m->timed || until <= m->until))
		return false;
	return !((b->flags & NOH_COUNTER_IF_EARLIER) && m->timed && until >= m->until);
}

static void do_expire(const char *address, struct model *m)
{
	static const uint32_t when[] = { 0, NOH_COUNTER_IF_NO_TIME, NOH_COUNTER_IF_TIME, NOH_COUNTER_IF_LATER,
					 NOH_COUNTER_IF_EARLIER, NOH_COUNTER_IF_TIME | NOH_COUNTER_IF_LATER };
	static const uint32_t ways[] = { NOH_COUNTER_IN, NOH_COUNTER_AT, NOH_COUNTER_PERSIST };
	noh_counter_expire b = { .flags = ways[draw(3)] };

	if (!(b.flags & NOH_COUNTER_PERSIST)) {
		b.time = any_time(b.flags & NOH_COUNTER_IN ? -10 : kit_wall() - 10);
		b.flags |= when[draw(6)];
	}
	EXPECT_EQ(kit_call(address, NOH_COUNTER_EXPIRE, &b, sizeof b, NULL), NOH_OK);
	if (!m->there) {
		check_times(m, NOH_COUNTER_NONE);
	} else if (!may_expire(m, &b)) {
		check_times(m, NOH_COUNTER_UNCHANGED);
	} else {
		m->timed = false;
		if (!(b.flags & NOH_COUNTER_PERSIST))
			give_time(m, b.flags, b.time);
		check_times(m, NOH_COUNTER_OK);
	}
}

static void do_one(int key)
{
	struct model *m = at(key), before = *m;
	char address[32];

	snprintf(address, sizeof address, "counter:%d", key);
	switch (draw(8)) {
	case 0:
		EXPECT_EQ(kit_call(address, NOH_COUNTER_GET, NULL, 0, NULL), NOH_OK);
		check_value(before, m->there ? NOH_COUNTER_OK : NOH_COUNTER_NONE);
		return;
	case 1:
		EXPECT_EQ(kit_call(address, NOH_COUNTER_TTL, NULL, 0, NULL), NOH_OK);
		check_times(m, m->there ? NOH_COUNTER_OK : NOH_COUNTER_NONE);
		return;
	case 2:
		EXPECT_EQ(kit_call(address, NOH_COUNTER_DELETE, NULL, 0, NULL), NOH_OK);
		check_value(before, m->there ? NOH_COUNTER_OK : NOH_COUNTER_NONE);
		*m = (struct model){ 0 };
		return;
	case 3: case 4: do_set(address, m); return;
	case 5: do_expire(address, m); return;
	}
	do_add(address, m);
}

/* What is there is there, and nothing else, in memory and on disk. */
static void check_what_is_left(void)
{
	uint64_t there = 0, timed = 0;
	noh_dir_info info;

	kit_pass_ms(1000 * SECOND);                              /* who can idle out has */
	for (int i = 0; i < KEYS; i++) {
		there += at(i)->there;
		timed += at(i)->timed;
	}
	EXPECT_EQ(kit_stats().actors, 0);
	if (!k.durable) {
		EXPECT_EQ(kit_stats().stored, there);
		kit_end();
		return;
	}
	noh_close(k.box);
	EXPECT_EQ(noh_compact(k.dir, NULL), NOH_OK);
	EXPECT_EQ(noh_inspect(k.dir, &info), NOH_OK);
	EXPECT_EQ(info.actors, there);
	EXPECT_EQ(info.timers, timed);
	remove_dir(k.dir);
}

static void every_answer_is_the_models(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		random_state = test_seed + (uint64_t)durable;
		memset(models, 0, sizeof models);
		kit_begin(noh_counter_type(), durable);
		for (uint64_t i = test_size(STEPS, STEPS / 10) / 2; i > 0; i--) {
			if (draw(3) == 0)
				kit_pass_ms((int64_t)draw(20));
			else if (draw(500) == 0)
				kit_pass_ms((int64_t)draw(400) * DAY);
			if (durable && draw(3000) == 0)
				kit_restart(noh_counter_type(), (int64_t)draw(100));
			do_one((int)draw(KEYS));
		}
		check_what_is_left();
	}
}

TEST_MAIN(
	TEST(every_answer_is_the_models, "UC-11 US-12 LC-02 LC-05"))
