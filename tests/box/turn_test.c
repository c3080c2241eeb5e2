/* tests/box/turn_test.c - a turn is a transaction (P4): all of it, or no trace. Batches, promises, and
 * the key-value part. */
#include "tests/box/kit.h"

struct pair { uint64_t a, b; };

enum { ADD, GET, DO_ALL, DO_ALL_AND_FAIL, COUNT_KEYS, OWN_CODE, PUT, DELETE, SCAN, DEFER, SETTLE,
       SETTLE_TWICE, TICK, HOLD, REPLY_TWICE };

static atomic_u64 spawned, ticks;

static int count_keys(noh_turn *t)
{
	const void *key = NULL, *value;
	size_t key_len = 0, value_len;
	uint64_t n = 0;

	while (noh_kv_next(t, &key, &key_len, &value, &value_len) == NOH_OK)
		n++;
	return noh_reply(t, &n, 8);
}

/* One of everything a turn can do. */
static int do_all(noh_turn *t)
{
	struct pair *s = noh_state(t);
	noh_ask_options o = { .answer_kind = TICK };
	char big[500] = "big=";

	s->a++;
	s->b++;
	EXPECT_EQ(noh_kv_put(t, "new", 3, "value", 5), NOH_OK);
	EXPECT_EQ(noh_kv_put(t, "old", 3, "changed", 7), NOH_OK);
	EXPECT_EQ(noh_kv_delete(t, "gone", 4), NOH_OK);
	EXPECT_EQ(noh_tell_to(t, "t:other", ADD, &(uint64_t){ 1 }, 8), NOH_OK);
	EXPECT_EQ(noh_tell_to(t, "t:other", PUT, big, sizeof big), NOH_OK);
	EXPECT_EQ(noh_ask_to(t, "t:other", ADD, &(uint64_t){ 1 }, 8, &o, NULL), NOH_OK);
	EXPECT_EQ(noh_schedule_once(t, TICK, 1), NOH_OK);
	EXPECT_EQ(noh_spawn(t, "child:1", NULL), NOH_OK);
	EXPECT_EQ(noh_reply(t, "yes", 3), NOH_OK);
	EXPECT_EQ(noh_stop_self(t), NOH_OK);
	return NOH_OK;
}

static int scan(noh_turn *t)
{
	const void *key = NULL, *value;
	size_t key_len = 0, value_len;
	char   text[64];
	size_t at = 0;

	while (noh_kv_next(t, &key, &key_len, &value, &value_len) == NOH_OK)
		at += (size_t)snprintf(text + at, sizeof text - at, "%.*s=%.*s;", (int)key_len,
				       (const char *)key, (int)value_len, (const char *)value);
	return noh_reply(t, text, at);
}

/* "key=value" */
static int put_entry(noh_turn *t, const char *text, size_t len)
{
	size_t key_len = (size_t)((const char *)memchr(text, '=', len) - text);

	return noh_kv_put(t, text, key_len, text + key_len + 1, len - key_len - 1);
}

static int settle(noh_turn *t, const noh_msg *m, int times)
{
	noh_promise p;

	memcpy(&p, m->body, sizeof p);
	for (int i = 0; i < times; i++)
		EXPECT_EQ(noh_answer(t, p, NOH_OK, "settled", 7), i == 0 ? NOH_OK : NOH_NOBODY);
	return NOH_OK;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	const struct pair *seen = noh_look(t);
	noh_promise p;

	switch (m->kind) {
	case ADD: ((struct pair *)noh_state(t))->a += *(const uint64_t *)m->body; return NOH_OK;
	case GET: return noh_reply(t, &seen->a, 8);
	case DO_ALL: return do_all(t);
	case DO_ALL_AND_FAIL: do_all(t); return noh_fail(t, "no %s today", "luck");
	case OWN_CODE: return -77;
	case COUNT_KEYS: return count_keys(t);
	case PUT: return put_entry(t, m->body, m->len);
	case DELETE: return noh_kv_delete(t, m->body, m->len) == NOH_END ? NOH_EFAILED : NOH_OK;
	case SCAN: return scan(t);
	case DEFER:
		p = noh_defer(t, m);
		EXPECT(p.bits != 0);
		EXPECT_EQ(noh_reply(t, NULL, 0), NOH_EREPLIED);
		return noh_tell_to(t, "t:settler", *(const uint64_t *)m->body == 2 ? SETTLE_TWICE : SETTLE,
				   &p, sizeof p);
	case SETTLE: return settle(t, m, 1);
	case SETTLE_TWICE:
		EXPECT_EQ(settle(t, m, 2), NOH_OK);
		return noh_tell_to(t, "t:settler", HOLD, m->body, m->len);
	case HOLD:
		memcpy(&p, m->body, sizeof p);
		EXPECT_EQ(noh_answer(t, p, NOH_OK, NULL, 0), NOH_NOBODY);
		return NOH_OK;
	case TICK: add_relaxed(&ticks, 1); return NOH_OK;
	case REPLY_TWICE:
		EXPECT_EQ(noh_reply(t, "first", 5), NOH_OK);
		EXPECT_EQ(noh_reply(t, "second", 6), NOH_EREPLIED);
		EXPECT(strstr(noh_why(), noh_address(t)));
		return NOH_OK;
	}
	return NOH_EINVAL;
}

static int child_activate(noh_turn *t)
{
	(void)t;
	add_relaxed(&spawned, 1);
	return NOH_OK;
}

static const noh_type t_type = { .name = "t", .state_size = sizeof(struct pair),
	.idle_timeout_ms = NOH_NEVER, .on_message = on_message };
static const noh_type child_type = { .name = "child", .on_activate = child_activate,
	.on_message = on_message };

static noh_box *start(unsigned workers)
{
	noh_box *box = BOX(workers, &t_type, &child_type);

	store_relaxed(&spawned, 0);
	store_relaxed(&ticks, 0);
	EXPECT_EQ(noh_send(box, "t:1", PUT, "old=1", 5), NOH_OK);
	EXPECT_EQ(noh_call(box, "t:1", PUT, "gone=x", 6, SOON, NULL, NULL), NOH_OK);
	return box;
}

static bool entries_are(noh_box *box, const char *address, const char *text)
{
	char   answer[64];
	size_t len = sizeof answer;

	EXPECT_EQ(noh_call(box, address, SCAN, NULL, 0, SOON, answer, &len), NOH_OK);
	bool same = len == strlen(text) && memcmp(answer, text, len) == 0;
	if (!same)
		printf("  entries are %.*s, not %s\n", (int)len, answer, text);
	return same;
}

static void a_turn_that_succeeds_has_all_its_effects(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);
		char answer[8];
		size_t len = sizeof answer;

		EXPECT_EQ(noh_call(box, "t:1", DO_ALL, NULL, 0, SOON, answer, &len), NOH_OK);
		EXPECT(len == 3 && memcmp(answer, "yes", 3) == 0);
		EXPECT(reaches(&ticks, 1));
		EXPECT(reaches(&spawned, 1));
		EXPECT_EQ(get(box, "t:1", GET), 1);
		EXPECT(entries_are(box, "t:1", "new=value;old=changed;"));
		EXPECT_EQ(get(box, "t:other", GET), 2);
		EXPECT_EQ(get(box, "t:other", COUNT_KEYS), 1);
		EXPECT(stats_of(box, "t").deactivations >= 1); /* stop_self */
		EXPECT(settles(box, "t"));
		end(box);
	}
}

static void a_turn_that_fails_leaves_no_trace(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);
		uint64_t before = stats(box).timers;

		EXPECT_EQ(call(box, "t:1", DO_ALL_AND_FAIL), NOH_EFAILED);
		EXPECT(test_wait_until(is_logged, "t:1|turn failed: no luck today", SOON));
		EXPECT_EQ(get(box, "t:1", GET), 0);
		EXPECT(entries_are(box, "t:1", "gone=x;old=1;"));
		EXPECT_EQ(get(box, "t:other", GET), 0);
		EXPECT_EQ(get(box, "t:other", COUNT_KEYS), 0);
		EXPECT_EQ(stats(box).timers, before);
		EXPECT_EQ(load_relaxed(&spawned), 0);
		EXPECT_EQ(load_relaxed(&ticks), 0);
		EXPECT_EQ(stats_of(box, "t").failed, 1);
		EXPECT_EQ(stats_of(box, "t").deactivations, 0);
		EXPECT(settles(box, "t"));
		end(box);
		EXPECT_EQ(load_relaxed(&ticks), 0);
		EXPECT_EQ(load_relaxed(&spawned), 0);
	}
}

static void a_failure_gives_the_caller_its_code(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(call(box, "t:1", OWN_CODE), -77);
	EXPECT(strstr(noh_why(), "t:1"));
	EXPECT_EQ(call(box, "t:1", GET), NOH_OK);          /* and the actor goes on */
	end(box);
}

static void a_second_answer_is_refused(void)
{
	noh_box *box = start(1);
	char answer[16];
	size_t len = sizeof answer;

	EXPECT_EQ(noh_call(box, "t:1", REPLY_TWICE, NULL, 0, SOON, answer, &len), NOH_OK);
	EXPECT(len == 5 && memcmp(answer, "first", 5) == 0);
	end(box);
}

static void a_promise_is_kept_by_another_actor_once(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);
		char answer[16];

		for (uint64_t times = 1; times <= 2; times++) {
			size_t len = sizeof answer;

			EXPECT_EQ(noh_call(box, "t:1", DEFER, &times, 8, SOON, answer, &len), NOH_OK);
			EXPECT(len == 7 && memcmp(answer, "settled", 7) == 0);
		}
		EXPECT_EQ(call(box, "t:settler", GET), NOH_OK);
		end(box);
	}
}

static void entries_survive_storage_and_come_sorted(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(noh_send(box, "t:1", PUT, "abc=", 4), NOH_OK);
	EXPECT_EQ(noh_send(box, "t:1", PUT, "zzz=last", 8), NOH_OK);
	EXPECT_EQ(noh_send(box, "t:1", PUT, "old=2", 5), NOH_OK);
	EXPECT_EQ(noh_call(box, "t:1", DELETE, "gone", 4, SOON, NULL, NULL), NOH_OK);
	EXPECT(entries_are(box, "t:1", "abc=;old=2;zzz=last;"));
	EXPECT_EQ(noh_deactivate(box, "t:1", false, SOON), NOH_OK);
	EXPECT(entries_are(box, "t:1", "abc=;old=2;zzz=last;"));
	EXPECT_EQ(noh_call(box, "t:1", DELETE, "gone", 4, SOON, NULL, NULL), NOH_EFAILED);
	end(box);
}

/* ── batches ── */

static atomic_u64 batches, largest;

/* ADD adds, GET answers the sum so far, OWN_CODE fails, HOLD holds. */
static int on_batch(noh_turn *t, const noh_msg *m, uint32_t n)
{
	struct pair *s = noh_state(t);

	add_relaxed(&batches, 1);
	if (n > load_relaxed(&largest))
		store_relaxed(&largest, n);
	EXPECT(n <= 64);
	for (uint32_t i = 0; i < n; i++) {
		if (m[i].kind == HOLD)
			gate_pass();
		else if (m[i].kind == OWN_CODE)
			return -77;
		else if (m[i].kind == ADD)
			s->a += *(const uint64_t *)m[i].body;
		if (m[i].kind == GET)
			EXPECT_EQ(noh_reply_to(t, &m[i], &s->a, 8), NOH_OK);
	}
	s->b++;
	return NOH_OK;
}

static const noh_type batch_type = { .name = "b", .state_size = sizeof(struct pair),
	.mailbox_capacity = 1000, .full_mode = NOH_BLOCK, .on_batch = on_batch };

static atomic_u64 answers, failures, answer_sum;

static void add_answer(void *user, int status, const void *answer, size_t len)
{
	uint64_t n = 0;

	(void)user;
	if (len == 8)
		memcpy(&n, answer, 8);
	add_relaxed(&answer_sum, n);
	add_relaxed(&failures, status == -77);
	EXPECT(status == NOH_OK || status == -77);
	add_acq_rel(&answers, 1);
}

static void hold(noh_box *box, const char *address)
{
	gate_shut();
	store_relaxed(&batches, 0);
	store_relaxed(&largest, 0);
	store_relaxed(&answers, 0);
	store_relaxed(&failures, 0);
	store_relaxed(&answer_sum, 0);
	EXPECT_EQ(noh_send(box, address, HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
}

static void a_batch_is_one_turn_with_an_answer_each(void)
{
	noh_box *box = BOX(2, &batch_type);
	uint64_t want = 0;

	hold(box, "b:1");
	for (uint64_t i = 1; i <= 100; i++) {
		EXPECT_EQ(put(box, "b:1", ADD, i), NOH_OK);
		EXPECT_EQ(noh_call_then(box, "b:1", GET, NULL, 0, SOON, add_answer, NULL), NOH_OK);
		want += i * (i + 1) / 2;
	}
	gate_open();
	EXPECT(reaches(&answers, 100));
	EXPECT_EQ(load_relaxed(&answer_sum), want);
	EXPECT_EQ(load_relaxed(&largest), 64);
	EXPECT_EQ(load_relaxed(&batches), 1 + 4);          /* the one that was held, then 200 / 64 */
	EXPECT(settles(box, "b"));
	end(box);
}

static void a_failed_batch_is_run_again_one_by_one(void)
{
	noh_box *box = BOX(2, &batch_type);

	hold(box, "b:1");
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(put(box, "b:1", ADD, 1), NOH_OK);
		if (i == 4)
			EXPECT_EQ(noh_call_then(box, "b:1", OWN_CODE, NULL, 0, SOON, add_answer, NULL),
				  NOH_OK);
	}
	EXPECT_EQ(noh_call_then(box, "b:1", GET, NULL, 0, SOON, add_answer, NULL), NOH_OK);
	gate_open();
	EXPECT(reaches(&answers, 2));
	EXPECT_EQ(load_relaxed(&failures), 1);
	EXPECT_EQ(load_relaxed(&answer_sum), 10);          /* each ADD counted once */
	EXPECT_EQ(stats_of(box, "b").failed, 1);
	EXPECT_EQ(stats_of(box, "b").handled, 12);
	EXPECT(settles(box, "b"));
	end(box);
}

TEST_MAIN(
	TEST(a_turn_that_succeeds_has_all_its_effects, "TB-01"),
	TEST(a_turn_that_fails_leaves_no_trace, "SC-26"),
	TEST(a_failure_gives_the_caller_its_code, "SC-26"),
	TEST(a_second_answer_is_refused),
	TEST(a_promise_is_kept_by_another_actor_once, "RT-14"),
	TEST(entries_survive_storage_and_come_sorted, "RT-23"),
	TEST(a_batch_is_one_turn_with_an_answer_each),
	TEST(a_failed_batch_is_run_again_one_by_one))
