/* tests/actors/counter_test.c - the counter: every message, every outcome, and time. (Threads and crashes:
 * sale_test.c; long random runs against a model: counter_model_test.c.) */
#include "tests/actors/kit.h"

static const char key[] = "counter:k";

static noh_counter_value get(const char *address)
{
	noh_counter_value a;

	kit_ask(address, NOH_COUNTER_GET, NULL, 0, &a, sizeof a);
	return a;
}

static noh_counter_value del(const char *address)
{
	noh_counter_value a;

	kit_ask(address, NOH_COUNTER_DELETE, NULL, 0, &a, sizeof a);
	return a;
}

static noh_counter_added add(const char *address, int64_t by)
{
	noh_counter_added a;

	kit_ask(address, NOH_COUNTER_ADD, &by, sizeof by, &a, sizeof a);
	return a;
}

static noh_counter_added add_with(const char *address, noh_counter_add m)
{
	noh_counter_added a;

	kit_ask(address, NOH_COUNTER_ADD, &m, sizeof m, &a, sizeof a);
	return a;
}

static noh_counter_added add_within(int64_t by, int64_t low, int64_t high, uint32_t flags)
{
	return add_with(key, (noh_counter_add){ .by = by, .low = low, .high = high, .flags = flags });
}

static noh_counter_value set(const char *address, int64_t value)
{
	noh_counter_value a;

	kit_ask(address, NOH_COUNTER_SET, &value, sizeof value, &a, sizeof a);
	return a;
}

static noh_counter_value set_with(int64_t value, uint32_t flags, int64_t time)
{
	noh_counter_set m = { .value = value, .flags = flags, .time = time };
	noh_counter_value a;

	kit_ask(key, NOH_COUNTER_SET, &m, sizeof m, &a, sizeof a);
	return a;
}

static noh_counter_times expire(uint32_t flags, int64_t time)
{
	noh_counter_expire m = { .flags = flags, .time = time };
	noh_counter_times a;

	kit_ask(key, NOH_COUNTER_EXPIRE, &m, sizeof m, &a, sizeof a);
	return a;
}

static noh_counter_times ttl(void)
{
	noh_counter_times a;

	kit_ask(key, NOH_COUNTER_TTL, NULL, 0, &a, sizeof a);
	return a;
}

static bool is_there(int64_t value)
{
	noh_counter_value a = get(key);

	return a.outcome == NOH_COUNTER_OK && a.existed == 1 && a.value == value;
}

static bool is_not_there(void)
{
	noh_counter_value a = get(key);

	return a.outcome == NOH_COUNTER_NONE && a.existed == 0 && a.value == 0;
}

static bool nothing_is_left(void)
{
	noh_box_stats s = kit_stats();

	return s.actors == 0 && s.stored == 0 && s.timers == 0;
}

/* ── the number ── */

static void a_counter_counts(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_counter_type(), durable);
		EXPECT_EQ(add(key, 1).value, 1);
		EXPECT_EQ(add(key, 41).value, 42);
		noh_counter_added a = add(key, -50);
		EXPECT_EQ(a.outcome, NOH_COUNTER_OK);
		EXPECT_EQ(a.value, -8);
		EXPECT_EQ(a.applied, -50);
		EXPECT_EQ(add(key, 0).value, -8);
		EXPECT(is_there(-8));
		EXPECT_EQ(ttl().left, -1);
		EXPECT_EQ(ttl().at, -1);
		kit_end();
	}
}

static void beyond_64_bits_nothing_changes(void)
{
	kit_begin(noh_counter_type(), false);
	EXPECT_EQ(set(key, INT64_MAX).outcome, NOH_COUNTER_OK);
	noh_counter_added a = add(key, 1);
	EXPECT_EQ(a.outcome, NOH_COUNTER_OVERFLOW);
	EXPECT_EQ(a.applied, 0);
	EXPECT_EQ(a.value, INT64_MAX);
	EXPECT(is_there(INT64_MAX));
	set(key, -2);
	EXPECT_EQ(add(key, INT64_MIN).outcome, NOH_COUNTER_OVERFLOW);
	EXPECT(is_there(-2));
	EXPECT_EQ(add(key, INT64_MIN + 2).value, INT64_MIN);
	EXPECT_EQ(add(key, -1).outcome, NOH_COUNTER_OVERFLOW);
	EXPECT(is_there(INT64_MIN));
	kit_end();
}

static void bounds_refuse_or_stop_the_sum(void)
{
	static const struct {
		int64_t before, by, low, high;
		bool saturate;
		uint32_t outcome;
		int64_t value, applied;
	} t[] = {
		{ 5, 3, 0, 10, false, NOH_COUNTER_OK, 8, 3 },
		{ 5, 5, 0, 10, false, NOH_COUNTER_OK, 10, 5 },
		{ 5, 6, 0, 10, false, NOH_COUNTER_OUT_OF_BOUNDS, 5, 0 },
		{ 5, 6, 0, 10, true, NOH_COUNTER_OK, 10, 5 },
		{ 5, -6, 0, 10, false, NOH_COUNTER_OUT_OF_BOUNDS, 5, 0 },
		{ 5, -6, 0, 10, true, NOH_COUNTER_OK, 0, -5 },
		{ 10, 1, 0, 10, true, NOH_COUNTER_OK, 10, 0 },
		{ 50, -1, 0, 10, false, NOH_COUNTER_OUT_OF_BOUNDS, 50, 0 },
		{ 50, -1, 0, 10, true, NOH_COUNTER_OK, 10, -40 },
		{ -9, 1, 0, 10, true, NOH_COUNTER_OK, 0, 9 },
		{ INT64_MAX - 1, 5, 0, INT64_MAX, false, NOH_COUNTER_OVERFLOW, INT64_MAX - 1, 0 },
		{ INT64_MAX - 1, 5, 0, INT64_MAX, true, NOH_COUNTER_OK, INT64_MAX, 1 },
		{ INT64_MAX - 1, 5, 0, 100, false, NOH_COUNTER_OUT_OF_BOUNDS, INT64_MAX - 1, 0 },
		{ INT64_MIN + 1, -5, INT64_MIN, 0, true, NOH_COUNTER_OK, INT64_MIN, -1 },
		{ INT64_MIN + 1, -5, INT64_MIN, 0, false, NOH_COUNTER_OVERFLOW, INT64_MIN + 1, 0 },
		{ INT64_MAX, 0, INT64_MIN, -2, true, NOH_COUNTER_OVERFLOW, INT64_MAX, 0 },
		{ 7, 0, 7, 7, false, NOH_COUNTER_OK, 7, 0 },
	};

	kit_begin(noh_counter_type(), false);
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		set(key, t[i].before);
		noh_counter_added a = add_within(t[i].by, t[i].low, t[i].high, t[i].saturate ? NOH_COUNTER_SATURATE : 0);
		if (!EXPECT_EQ(a.outcome, t[i].outcome) || !EXPECT_EQ(a.value, t[i].value) ||
		    !EXPECT_EQ(a.applied, t[i].applied) || !EXPECT(is_there(t[i].value)))
			printf("  row %zu\n", i);
	}
	kit_end();
}

/* UC-13: N winners, then nobody. */
static void a_bounded_counter_has_exactly_so_many_winners(void)
{
	int winners = 0;

	kit_begin(noh_counter_type(), true);
	for (int i = 0; i < 300; i++)
		winners += add_within(1, INT64_MIN, 100, 0).applied == 1;
	EXPECT_EQ(winners, 100);
	EXPECT(is_there(100));
	kit_end();
}

/* ── there or not ── */

static void what_does_not_exist_leaves_nothing_behind(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_counter_type(), durable);
		EXPECT(is_not_there());
		EXPECT(nothing_is_left());
		EXPECT_EQ(ttl().left, -2);
		EXPECT(nothing_is_left());
		EXPECT_EQ(del(key).outcome, NOH_COUNTER_NONE);
		EXPECT(nothing_is_left());
		EXPECT_EQ(expire(NOH_COUNTER_IN, 1000).outcome, NOH_COUNTER_NONE);
		EXPECT(nothing_is_left());
		EXPECT_EQ(set_with(1, NOH_COUNTER_IF_THERE, 0).outcome, NOH_COUNTER_UNCHANGED);
		EXPECT(nothing_is_left());
		noh_counter_added a = add_within(5, 0, 4, 0);
		EXPECT_EQ(a.outcome, NOH_COUNTER_OUT_OF_BOUNDS);
		EXPECT_EQ(a.value, 0);
		EXPECT(nothing_is_left());
		EXPECT_EQ(set_with(1, NOH_COUNTER_AT, kit_wall()).outcome, NOH_COUNTER_OK);
		EXPECT(nothing_is_left());
		EXPECT_EQ(kit_stats().journal_records, 0);
		kit_end();
	}
}

/* A refusal is remembered with its key, but not as an actor of no value. */
static void a_keyed_refusal_is_repeated_and_stores_no_actor(void)
{
	noh_counter_add m = { .by = 5, .low = 0, .high = 4 };
	noh_dir_info info;

	kit_begin(noh_counter_type(), true);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(kit_call(key, NOH_COUNTER_ADD, &m, sizeof m, "order-1"), NOH_OK);
		EXPECT_EQ(((noh_counter_added *)(void *)k.heard.body)->outcome, NOH_COUNTER_OUT_OF_BOUNDS);
	}
	EXPECT_EQ(kit_stats().stored, 0);
	kit_pass_ms(400 * SECOND);                               /* answered from the key alone, it idles out */
	EXPECT_EQ(kit_stats().actors, 0);
	noh_close(k.box);
	EXPECT_EQ(noh_compact(k.dir, NULL), NOH_OK);
	EXPECT_EQ(noh_inspect(k.dir, &info), NOH_OK);
	EXPECT_EQ(info.actors, 0);
	EXPECT_EQ(info.keys, 1);
	kit_open(noh_counter_type());
	EXPECT_EQ(add(key, 3).value, 3);
	EXPECT_EQ(kit_call(key, NOH_COUNTER_ADD, &m, sizeof m, "order-1"), NOH_OK);
	EXPECT_EQ(((noh_counter_added *)(void *)k.heard.body)->value, 0);        /* as the first time */
	kit_end();
}

static void delete_answers_what_was_there_once(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_counter_type(), durable);
		add(key, 7);
		noh_counter_value a = del(key);
		EXPECT_EQ(a.outcome, NOH_COUNTER_OK);
		EXPECT_EQ(a.value, 7);
		EXPECT_EQ(kit_stats().actors, 0);
		EXPECT_EQ(kit_stats().stored, 0);
		EXPECT_EQ(del(key).outcome, NOH_COUNTER_NONE);
		EXPECT_EQ(add(key, 2).value, 2);                 /* from nothing, not from 7 */
		kit_end();
	}
}

static void set_looks_at_its_conditions(void)
{
	kit_begin(noh_counter_type(), false);
	noh_counter_value a = set_with(5, NOH_COUNTER_IF_NONE, 0);
	EXPECT_EQ(a.outcome, NOH_COUNTER_OK);
	EXPECT_EQ(a.existed, 0);
	a = set_with(6, NOH_COUNTER_IF_NONE, 0);
	EXPECT_EQ(a.outcome, NOH_COUNTER_UNCHANGED);
	EXPECT_EQ(a.existed, 1);
	EXPECT_EQ(a.value, 5);
	EXPECT(is_there(5));
	a = set_with(6, NOH_COUNTER_IF_THERE, 0);
	EXPECT_EQ(a.outcome, NOH_COUNTER_OK);
	EXPECT_EQ(a.value, 5);
	a = set(key, 9);
	EXPECT_EQ(a.existed, 1);
	EXPECT_EQ(a.value, 6);
	EXPECT(is_there(9));
	kit_end();
}

/* ── time ── */

static void a_time_is_kept_taken_away_or_replaced(void)
{
	kit_begin(noh_counter_type(), false);
	set_with(1, NOH_COUNTER_IN, 10 * SECOND);
	EXPECT_EQ(ttl().left, 10 * SECOND);
	EXPECT_EQ(ttl().at, kit_wall() + 10 * SECOND);
	add(key, 1);
	EXPECT_EQ(ttl().left, 10 * SECOND);                        /* INCR keeps it */
	set_with(3, NOH_COUNTER_KEEP, 0);
	EXPECT_EQ(ttl().left, 10 * SECOND);
	EXPECT_EQ(kit_stats().timers, 1);
	set(key, 4);                                             /* SET does not */
	EXPECT_EQ(ttl().left, -1);
	EXPECT_EQ(kit_stats().timers, 0);
	set_with(5, NOH_COUNTER_AT, kit_wall() + 7);
	EXPECT_EQ(ttl().left, 7);
	EXPECT_EQ(expire(NOH_COUNTER_PERSIST, 0).left, -1);
	EXPECT_EQ(expire(NOH_COUNTER_PERSIST, 0).outcome, NOH_COUNTER_UNCHANGED);
	EXPECT_EQ(kit_stats().timers, 0);
	kit_pass_ms(100);
	EXPECT(is_there(5));
	kit_end();
}

static void expire_looks_at_its_conditions(void)
{
	static const struct { int64_t before; uint32_t when; int64_t in; uint32_t outcome; int64_t left; } t[] = {
		{ -1, 0, 50, NOH_COUNTER_OK, 50 },
		{ 20, 0, 50, NOH_COUNTER_OK, 50 },
		{ -1, NOH_COUNTER_IF_NO_TIME, 50, NOH_COUNTER_OK, 50 },
		{ 20, NOH_COUNTER_IF_NO_TIME, 50, NOH_COUNTER_UNCHANGED, 20 },
		{ -1, NOH_COUNTER_IF_TIME, 50, NOH_COUNTER_UNCHANGED, -1 },
		{ 20, NOH_COUNTER_IF_TIME, 50, NOH_COUNTER_OK, 50 },
		{ -1, NOH_COUNTER_IF_LATER, 50, NOH_COUNTER_UNCHANGED, -1 },
		{ 20, NOH_COUNTER_IF_LATER, 50, NOH_COUNTER_OK, 50 },
		{ 20, NOH_COUNTER_IF_LATER, 20, NOH_COUNTER_UNCHANGED, 20 },
		{ 20, NOH_COUNTER_IF_LATER, 10, NOH_COUNTER_UNCHANGED, 20 },
		{ 20, NOH_COUNTER_IF_LATER, -10, NOH_COUNTER_UNCHANGED, 20 },
		{ -1, NOH_COUNTER_IF_EARLIER, 50, NOH_COUNTER_OK, 50 },
		{ 20, NOH_COUNTER_IF_EARLIER, 50, NOH_COUNTER_UNCHANGED, 20 },
		{ 20, NOH_COUNTER_IF_EARLIER, 20, NOH_COUNTER_UNCHANGED, 20 },
		{ 20, NOH_COUNTER_IF_EARLIER, 10, NOH_COUNTER_OK, 10 },
		{ 20, NOH_COUNTER_IF_EARLIER, -10, NOH_COUNTER_OK, -2 },
		{ -1, NOH_COUNTER_IF_TIME | NOH_COUNTER_IF_EARLIER, 50, NOH_COUNTER_UNCHANGED, -1 },
		{ 20, NOH_COUNTER_IF_TIME | NOH_COUNTER_IF_LATER, 50, NOH_COUNTER_OK, 50 },
		{ 20, 0, 0, NOH_COUNTER_OK, -2 },
		{ -1, 0, -1000000, NOH_COUNTER_OK, -2 },
	};

	kit_begin(noh_counter_type(), false);
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
		for (uint32_t absolute = 0; absolute < 2; absolute++) {
			int64_t time = absolute ? kit_wall() + t[i].in : t[i].in;

			set_with(1, t[i].before > 0 ? NOH_COUNTER_IN : 0, t[i].before > 0 ? t[i].before : 0);
			noh_counter_times a = expire(t[i].when | (absolute ? NOH_COUNTER_AT : NOH_COUNTER_IN), time);
			if (!EXPECT_EQ(a.outcome, t[i].outcome) || !EXPECT_EQ(a.left, t[i].left) ||
			    !EXPECT_EQ(ttl().left, t[i].left) ||
			    !EXPECT_EQ(ttl().at, t[i].left > 0 ? kit_wall() + t[i].left : t[i].left))
				printf("  row %zu\n", i);
		}
	kit_end();
}

static void add_sets_a_time_with_the_sum_or_not_at_all(void)
{
	noh_counter_add m = { .by = 1, .low = INT64_MIN, .high = 3, .flags = NOH_COUNTER_IN, .time = 60 };

	kit_begin(noh_counter_type(), false);
	EXPECT_EQ(add_with(key, m).value, 1);
	EXPECT_EQ(ttl().left, 60);
	kit_pass_ms(20);
	m.flags = NOH_COUNTER_IN | NOH_COUNTER_IF_NO_TIME;
	EXPECT_EQ(add_with(key, m).value, 2);                    /* a window that began with the first */
	EXPECT_EQ(ttl().left, 40);
	m.flags = NOH_COUNTER_IN;
	EXPECT_EQ(add_with(key, m).value, 3);
	EXPECT_EQ(ttl().left, 60);
	kit_pass_ms(10);
	EXPECT_EQ(add_with(key, m).outcome, NOH_COUNTER_OUT_OF_BOUNDS);
	EXPECT_EQ(ttl().left, 50);
	m = (noh_counter_add){ .low = INT64_MIN, .high = INT64_MAX, .flags = NOH_COUNTER_PERSIST };
	EXPECT_EQ(add_with(key, m).value, 3);
	EXPECT_EQ(ttl().left, -1);
	m.flags = NOH_COUNTER_AT;
	m.time = kit_wall() - 1;
	EXPECT_EQ(add_with(key, m).value, 3);                    /* and past already */
	EXPECT(is_not_there());
	kit_end();
}

static void past_its_time_it_is_gone_and_its_timer_takes_it_away(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_counter_type(), durable);
		set_with(1, NOH_COUNTER_IN, 10 * SECOND);
		kit_pass_ms(10 * SECOND - 1);
		EXPECT(is_there(1));
		EXPECT_EQ(ttl().left, 1);
		kit_pass_ms(1);
		EXPECT(nothing_is_left());
		EXPECT(is_not_there());
		set_with(1, NOH_COUNTER_IN, 10 * SECOND);
		kit_pass_ms(5 * SECOND);
		expire(NOH_COUNTER_IN, 10 * SECOND);             /* later than it was */
		kit_pass_ms(5 * SECOND);
		EXPECT(is_there(1));
		kit_pass_ms(5 * SECOND);
		EXPECT(nothing_is_left());
		kit_end();
	}
}

static int without_timers(noh_turn *turn, const noh_msg *msg)
{
	return msg->flags & NOH_MSG_TIMER ? NOH_OK : noh_counter_type()->on_message(turn, msg);
}

static void past_its_time_it_is_gone_although_its_timer_is_late(void)
{
	noh_type late = *noh_counter_type();

	late.on_message = without_timers;
	kit_begin(&late, true);
	set_with(7, NOH_COUNTER_IN, 10);
	kit_pass_ms(10);
	uint64_t records = kit_stats().journal_records;
	EXPECT(is_not_there());
	EXPECT_EQ(ttl().left, -2);
	kit_run(true);
	EXPECT_EQ(kit_stats().journal_records, records);         /* looking writes nothing */
	EXPECT_EQ(set_with(1, NOH_COUNTER_IF_THERE, 0).outcome, NOH_COUNTER_UNCHANGED);
	EXPECT_EQ(expire(NOH_COUNTER_IN, 1000).outcome, NOH_COUNTER_NONE);
	EXPECT_EQ(set_with(1, NOH_COUNTER_IF_NONE | NOH_COUNTER_KEEP, 0).existed, 0);
	EXPECT_EQ(ttl().left, -1);                               /* KEEP keeps no time of before */
	set_with(7, NOH_COUNTER_IN, 10);
	kit_pass_ms(10);
	EXPECT_EQ(add(key, 1).value, 1);
	EXPECT_EQ(ttl().left, -1);
	set_with(7, NOH_COUNTER_IN, 10);
	kit_pass_ms(10);
	EXPECT_EQ(del(key).outcome, NOH_COUNTER_NONE);
	EXPECT_EQ(kit_stats().stored, 0);
	kit_end();
}

static void times_reach_further_than_a_schedule(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		kit_begin(noh_counter_type(), durable);
		set_with(1, NOH_COUNTER_IN, 5 * 365 * DAY);
		for (int year = 0; year < 4; year++) {
			kit_pass_ms(365 * DAY);
			EXPECT(is_there(1));
			EXPECT(kit_stats().timers >= 1);
		}
		kit_pass_ms(365 * DAY - 1);
		EXPECT_EQ(ttl().left, 1);
		kit_pass_ms(1);
		EXPECT(nothing_is_left());
		set_with(1, NOH_COUNTER_IN, NOH_COUNTER_IN_MAX);
		EXPECT_EQ(ttl().left, NOH_COUNTER_IN_MAX);
		set_with(1, NOH_COUNTER_AT, NOH_COUNTER_TIME_MAX);
		EXPECT_EQ(ttl().at, NOH_COUNTER_TIME_MAX);
		EXPECT_EQ(expire(NOH_COUNTER_AT, -NOH_COUNTER_TIME_MAX).outcome, NOH_COUNTER_OK);
		EXPECT(is_not_there());
		kit_end();
	}
}

static void a_clock_that_is_set_while_it_runs_changes_nothing(void)
{
	kit_begin(noh_counter_type(), false);
	set_with(1, NOH_COUNTER_IN, 10 * SECOND);
	int64_t at = ttl().at;
	store_relaxed(&k.clock.wall_ms, 5);
	EXPECT_EQ(ttl().left, 10 * SECOND);
	EXPECT_EQ(ttl().at, at);
	store_relaxed(&k.clock.wall_ms, (uint64_t)START_MS * 2);
	kit_pass_ms(10 * SECOND - 1);
	EXPECT(is_there(1));
	kit_pass_ms(1);
	EXPECT(is_not_there());
	kit_end();
}

static void a_restart_keeps_values_and_times_by_the_wall_clock(void)
{
	const noh_type *type = noh_counter_type();

	kit_begin(type, true);
	set_with(1, NOH_COUNTER_IN, 100 * SECOND);
	set("counter:stays", 9);
	kit_restart(type, 0);
	EXPECT_EQ(ttl().left, 100 * SECOND);
	EXPECT_EQ(get("counter:stays").value, 9);
	kit_restart(type, 40 * SECOND);                          /* the machine was off for a while */
	EXPECT_EQ(ttl().left, 60 * SECOND);
	kit_restart(type, -20 * SECOND);                         /* or its clock was wrong */
	EXPECT_EQ(ttl().left, 80 * SECOND);
	kit_pass_ms(79 * SECOND);
	EXPECT(is_there(1));
	kit_restart(type, 1 * SECOND);
	EXPECT(is_not_there());
	kit_run(true);
	EXPECT_EQ(kit_stats().timers, 0);
	EXPECT_EQ(get("counter:stays").value, 9);
	kit_end();
}

/* ── what anybody may send ── */

static bool takes(uint32_t kind, const void *body, size_t len)
{
	int rc = kit_call(key, kind, body, len, NULL);

	EXPECT(rc == NOH_OK || rc == NOH_EINVAL);
	return rc == NOH_OK;
}

static void a_malformed_body_is_refused_and_changes_nothing(void)
{
	noh_counter_add a = { .low = INT64_MIN, .high = INT64_MAX };
	noh_counter_expire e = { .flags = NOH_COUNTER_IN, .time = 1 };
	noh_counter_set s = { 0 };
	char zeros[64] = { 0 };

	kit_begin(noh_counter_type(), false);
	set(key, 5);
	for (size_t len = 0; len <= sizeof zeros; len++) {
		EXPECT_EQ(takes(NOH_COUNTER_GET, zeros, len), len == 0);
		EXPECT_EQ(takes(NOH_COUNTER_TTL, zeros, len), len == 0);
		if (len)
			EXPECT(!takes(NOH_COUNTER_DELETE, zeros, len));
		if (len != 8)
			EXPECT_EQ(takes(NOH_COUNTER_ADD, zeros, len), len == sizeof a);
		if (len != 8 && len != sizeof s)
			EXPECT(!takes(NOH_COUNTER_SET, zeros, len));
		EXPECT(!takes(NOH_COUNTER_EXPIRE, zeros, len));  /* neither IN nor AT nor PERSIST */
	}
	EXPECT(strstr(k.log, "counter:k: turn failed: malformed body of counter EXPIRE, 64 bytes"));
#define BAD(kind, m, ...)                                                                                  \
	do {                                                                                               \
		__typeof__(m) bad = m;                                                                     \
		__VA_ARGS__;                                                                               \
		EXPECT(!takes(kind, &bad, sizeof bad));                                                    \
	} while (0)
	BAD(NOH_COUNTER_ADD, a, bad.reserved = 1);
	BAD(NOH_COUNTER_ADD, a, bad.low = 1; bad.high = 0);
	BAD(NOH_COUNTER_ADD, a, bad.flags = NOH_COUNTER_KEEP);
	BAD(NOH_COUNTER_ADD, a, bad.flags = 2048);
	BAD(NOH_COUNTER_ADD, a, bad.flags = NOH_COUNTER_IN);
	BAD(NOH_COUNTER_ADD, a, bad.time = 1);
	BAD(NOH_COUNTER_ADD, a, bad.flags = NOH_COUNTER_IN | NOH_COUNTER_AT; bad.time = 1);
	BAD(NOH_COUNTER_ADD, a, bad.flags = NOH_COUNTER_IF_NO_TIME);
	BAD(NOH_COUNTER_ADD, a, bad.flags = NOH_COUNTER_IN; bad.time = NOH_COUNTER_IN_MAX + 1);
	BAD(NOH_COUNTER_ADD, a, bad.flags = NOH_COUNTER_AT; bad.time = NOH_COUNTER_TIME_MAX + 1);
	BAD(NOH_COUNTER_SET, s, bad.reserved = 1);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_IF_NONE | NOH_COUNTER_IF_THERE);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_SATURATE);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_PERSIST);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_IN);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_IN; bad.time = -1);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_KEEP | NOH_COUNTER_AT);
	BAD(NOH_COUNTER_SET, s, bad.flags = NOH_COUNTER_AT; bad.time = INT64_MIN);
	BAD(NOH_COUNTER_EXPIRE, e, bad.reserved = 1);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags = 0);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags |= NOH_COUNTER_KEEP);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags |= NOH_COUNTER_IF_NO_TIME | NOH_COUNTER_IF_TIME);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags |= NOH_COUNTER_IF_LATER | NOH_COUNTER_IF_EARLIER);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags |= NOH_COUNTER_IF_NO_TIME | NOH_COUNTER_IF_LATER);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags = NOH_COUNTER_PERSIST);
	BAD(NOH_COUNTER_EXPIRE, e, bad.flags = NOH_COUNTER_PERSIST | NOH_COUNTER_IF_TIME; bad.time = 0);
	BAD(NOH_COUNTER_EXPIRE, e, bad.time = INT64_MIN);
#undef BAD
	EXPECT_EQ(kit_call(key, NOH_COUNTER_EXPIRED, NULL, 0, NULL), NOH_EKIND);
	EXPECT_EQ(kit_call(key, NOH_COUNTER_KINDS, NULL, 0, NULL), NOH_EKIND);
	EXPECT(is_there(5));
	EXPECT_EQ(ttl().left, -1);
	kit_end();
}

static void any_bytes_are_survived(void)
{
	uint64_t random = test_seed;

	kit_begin(noh_counter_type(), false);
	for (int i = 0; i < 20000; i++) {
		uint64_t body[6];
		uint32_t kind = (uint32_t)(test_random(&random) % NOH_COUNTER_EXPIRED);
		size_t len = test_random(&random) % 4 ? (size_t[]){ 8, 16, 24, 40 }[test_random(&random) % 4]
						      : test_random(&random) % sizeof body;

		for (size_t w = 0; w < 6; w++) {
			body[w] = test_random(&random);
			if (test_random(&random) % 2)            /* small, as flags are */
				body[w] >>= test_random(&random) % 64;
		}
		(void)takes(kind, body, len);
	}
	kit_end();
}

/* C-01, and what the bars of memory rest on. */
static void the_type_is_as_promised(void)
{
	const noh_type *t = noh_counter_type();

	EXPECT_EQ(t->full_mode, NOH_BLOCK);
	EXPECT_EQ(t->state_size, 16);
	EXPECT(!t->is_volatile);
	EXPECT_EQ(noh_inventory_type()->full_mode, NOH_BLOCK);
	IN_MEMORY_AND_ON_DISK(durable) {
		uint64_t before = 0;

		kit_begin(t, durable);
		for (int i = 0; i <= 9000; i++) {
			char address[32];

			snprintf(address, sizeof address, "counter:key-%08d", i);
			EXPECT_EQ(add(address, 1).value, 1);
			if (i == 1000)
				before = kit_stats().actor_bytes;
		}
		EXPECT_EQ(kit_stats().actors, 9001);
		EXPECT((kit_stats().actor_bytes - before) / 8000 <= 150);
		kit_end();
	}
}

TEST_MAIN(
	TEST(a_counter_counts, "UC-11 US-12"),
	TEST(beyond_64_bits_nothing_changes),
	TEST(bounds_refuse_or_stop_the_sum, "UC-13"),
	TEST(a_bounded_counter_has_exactly_so_many_winners, "UC-13"),
	TEST(what_does_not_exist_leaves_nothing_behind),
	TEST(a_keyed_refusal_is_repeated_and_stores_no_actor),
	TEST(delete_answers_what_was_there_once),
	TEST(set_looks_at_its_conditions),
	TEST(a_time_is_kept_taken_away_or_replaced),
	TEST(expire_looks_at_its_conditions),
	TEST(add_sets_a_time_with_the_sum_or_not_at_all, "UC-14"),
	TEST(past_its_time_it_is_gone_and_its_timer_takes_it_away),
	TEST(past_its_time_it_is_gone_although_its_timer_is_late),
	TEST(times_reach_further_than_a_schedule),
	TEST(a_clock_that_is_set_while_it_runs_changes_nothing),
	TEST(a_restart_keeps_values_and_times_by_the_wall_clock),
	TEST(a_malformed_body_is_refused_and_changes_nothing),
	TEST(any_bytes_are_survived),
	TEST(the_type_is_as_promised, "C-01"))
