/* tests/box/durable_test.c - what a box keeps over a restart, and what an answer means. */
#include "tests/box/durable_kit.h"

#include "core/atomic.h"

enum { ADD, GET, PUT, LOOK, SCHEDULE, TICK, ERASE, FORWARD, FAIL, ASK, ANSWERED, BATCHES, CHURN };

/* Every way to put (bit set) and delete an entry three times in one turn, and some entries more. */
static int churn(noh_turn *t, int64_t more)
{
	for (int64_t step = 0; step < 3; step++)
		for (int64_t way = 0; way < 16; way++) {
			int rc = way >> step & 1 ? noh_kv_put(t, &way, 8, &step, 8) : noh_kv_delete(t, &way, 8);

			EXPECT(rc == NOH_OK || rc == NOH_END);
		}
	for (int64_t i = 100; i < 100 + more; i++)
		EXPECT_EQ(noh_kv_put(t, &i, 8, &i, 8), NOH_OK);
	return NOH_OK;
}

/* The same for one entry alone: few enough changes to be compared with each other. */
static int churn_one(noh_turn *t, int64_t way)
{
	for (int64_t step = 0; step < 3; step++)
		(void)(way >> step & 1 ? noh_kv_put(t, &way, 8, &step, 8) : noh_kv_delete(t, &way, 8));
	return noh_kv_put(t, &(int64_t){ 1000 + way }, 8, &way, 8);
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t);
	int64_t n = m->len >= 8 ? *(const int64_t *)m->body : 0;
	const void *value;
	size_t len;
	char to[64];

	switch (m->kind) {
	case ADD:
		*sum += n;
		return noh_reply(t, sum, 8);
	case GET:
		return noh_reply(t, noh_look(t), 8);
	case PUT:
		EXPECT_EQ(noh_kv_put(t, &n, 8, m->body, m->len), NOH_OK);
		return NOH_OK;
	case LOOK:
		if (noh_kv_get(t, &n, 8, &value, &len) != NOH_OK)
			return noh_reply(t, &(int64_t){ -1 }, 8);
		return noh_reply(t, value, 8);
	case CHURN:
		return n < 0 ? churn_one(t, -n - 1) : churn(t, n);
	case SCHEDULE:
		return noh_schedule_once(t, TICK, (uint64_t)n);
	case TICK:
		*sum += 1000;
		return NOH_OK;
	case ERASE:
		return noh_erase(t);
	case FORWARD:
		*sum -= n;
		snprintf(to, sizeof to, "sum:%s-to", noh_id(t));
		return noh_tell_to(t, to, ADD, &n, 8);
	case FAIL:
		*sum = 666;
		return noh_fail(t, "as asked");
	case ASK:
		snprintf(to, sizeof to, "sum:%s-to", noh_id(t));
		return noh_ask_to(t, to, GET, NULL, 0, &(noh_ask_options){ .answer_kind = ANSWERED }, NULL);
	case ANSWERED:
		*sum = *(const int64_t *)m->body;
		return NOH_OK;
	}
	return NOH_EINVAL;
}

static const noh_type sum_type = { .name = "sum", .state_size = 8, .on_message = on_message,
				   .full_mode = NOH_BLOCK };
static const noh_type fleeting = { .name = "fleeting", .state_size = 8, .on_message = on_message,
				   .is_volatile = true };

static noh_box *open_both(const char *dir, unsigned workers)
{
	return open_dir(dir, workers, (noh_type[]){ sum_type, fleeting }, 2);
}

static void state_and_entries_survive_a_restart(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 2);

	EXPECT_EQ(call_i64(box, "sum:a", ADD, 5), 5);
	EXPECT_EQ(call_i64(box, "sum:a", ADD, 7), 12);
	EXPECT_EQ(call_i64(box, "sum:b", ADD, 1), 1);
	EXPECT_EQ(noh_call(box, "sum:a", PUT, &(int64_t){ 77 }, 8, 5000, NULL, NULL), NOH_OK);
	shut(box);
	box = open_both(dir, 1);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 12);
	EXPECT_EQ(call_i64(box, "sum:a", LOOK, 77), 77);
	EXPECT_EQ(call_i64(box, "sum:a", LOOK, 78), -1);
	EXPECT_EQ(call_i64(box, "sum:b", ADD, 1), 2);
	EXPECT_EQ(call_i64(box, "sum:never", GET, 0), 0);
	shut(box);
	remove_dir(dir);
}

static void check_churned(noh_box *box)
{
	for (int64_t way = 0; way < 16; way++)
		EXPECT_EQ(call_i64(box, "sum:churn", LOOK, way), way & 4 ? 2 : -1);
}

static void an_entry_changed_again_and_again_is_kept_as_it_ended(void)
{
	for (int64_t more = -1; more <= 40; more += 41) {        /* one by one; all in one turn */
		char room[256];
		const char *dir = fresh_dir(room, sizeof room);
		noh_box *box = open_both(dir, 1);

		for (int64_t way = 8; way < 16; way++)           /* these are there before */
			EXPECT_EQ(noh_call(box, "sum:churn", PUT, &way, 8, 5000, NULL, NULL), NOH_OK);
		for (int64_t way = 0; way < (more < 0 ? 16 : 1); way++) {
			int64_t n = more < 0 ? -way - 1 : more;

			EXPECT_EQ(noh_call(box, "sum:churn", CHURN, &n, 8, 5000, NULL, NULL), NOH_OK);
		}
		check_churned(box);
		noh_close(box);
		box = open_both(dir, 1);                         /* out of the journal */
		check_churned(box);
		shut(box);
		box = open_both(dir, 1);                         /* out of the image */
		check_churned(box);
		shut(box);
		remove_dir(dir);
	}
}

static void a_box_closed_without_stopping_loses_nothing_it_answered(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box;

	for (int64_t round = 0; round < 5; round++) {
		box = open_both(dir, 1 + (unsigned)round % 2);
		EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 100 * round);
		for (int64_t i = 0; i < 100; i++)
			EXPECT_EQ(call_i64(box, "sum:a", ADD, 1), 100 * round + i + 1);
		noh_close(box);
	}
	remove_dir(dir);
}

static void a_volatile_type_keeps_nothing(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 1);

	EXPECT_EQ(call_i64(box, "fleeting:a", ADD, 5), 5);
	shut(box);
	box = open_both(dir, 1);
	EXPECT_EQ(call_i64(box, "fleeting:a", GET, 0), 0);
	shut(box);
	remove_dir(dir);
}

static void a_failed_turn_leaves_no_trace(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 1);

	EXPECT_EQ(call_i64(box, "sum:a", ADD, 5), 5);
	EXPECT_EQ(noh_call(box, "sum:a", FAIL, NULL, 0, 5000, NULL, NULL), NOH_EFAILED);
	noh_close(box);
	box = open_both(dir, 1);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 5);
	shut(box);
	remove_dir(dir);
}

static void an_erased_actor_begins_again(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 1);

	EXPECT_EQ(call_i64(box, "sum:a", ADD, 5), 5);
	EXPECT_EQ(noh_call(box, "sum:a", PUT, &(int64_t){ 77 }, 8, 5000, NULL, NULL), NOH_OK);
	EXPECT_EQ(noh_call(box, "sum:a", ERASE, NULL, 0, 5000, NULL, NULL), NOH_OK);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 0);
	EXPECT_EQ(call_i64(box, "sum:a", LOOK, 77), -1);
	EXPECT_EQ(call_i64(box, "sum:a", ADD, 3), 3);
	EXPECT_EQ(call_i64(box, "sum:gone", ADD, 3), 3);
	EXPECT_EQ(noh_call(box, "sum:gone", ERASE, NULL, 0, 5000, NULL, NULL), NOH_OK);
	noh_close(box);
	box = open_both(dir, 1);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 3);
	EXPECT_EQ(call_i64(box, "sum:a", LOOK, 77), -1);
	EXPECT_EQ(call_i64(box, "sum:gone", GET, 0), 0);
	shut(box);
	remove_dir(dir);
}

static bool has_1000(void *box)
{
	return call_i64(box, "sum:a", GET, 0) == 1000;
}

static void a_timer_fires_after_a_restart_once(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 1);

	EXPECT_EQ(noh_call(box, "sum:a", SCHEDULE, &(int64_t){ 300 }, 8, 5000, NULL, NULL), NOH_OK);
	noh_close(box);
	usleep(400000);                          /* overdue when the box comes back */
	box = open_both(dir, 1);
	EXPECT(test_wait_until(has_1000, box, 5000));
	shut(box);
	box = open_both(dir, 2);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 1000);
	shut(box);
	remove_dir(dir);
}

static void messages_between_actors_arrive_once(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box;

	for (int64_t round = 0; round < 8; round++) {
		box = open_both(dir, 1 + (unsigned)round % 2);
		for (int i = 0; i < 50; i++)
			EXPECT_EQ(noh_call(box, "sum:a", FORWARD, &(int64_t){ 1 }, 8, 5000, NULL, NULL), NOH_OK);
		noh_close(box);                  /* what is under way is not waited for */
	}
	box = open_both(dir, 2);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), -400);
	EXPECT_EQ(call_i64(box, "sum:a-to", GET, 0), 400);
	shut(box);
	remove_dir(dir);
}

static bool asked(void *box)
{
	return call_i64(box, "sum:a", GET, 0) == 42;
}

static void durable_actors_ask_each_other(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 2);

	EXPECT_EQ(call_i64(box, "sum:a-to", ADD, 42), 42);
	EXPECT_EQ(noh_call(box, "sum:a", ASK, NULL, 0, 5000, NULL, NULL), NOH_OK);
	EXPECT(test_wait_until(asked, box, 5000));
	shut(box);
	box = open_both(dir, 1);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 42);
	shut(box);
	remove_dir(dir);
}

static int keyed(noh_box *box, const char *address, int64_t n, const char *key, int64_t *answer)
{
	size_t len = sizeof *answer;

	return noh_call_with(box, address, ADD, &n, 8,
			     &(noh_call_options){ .key = key, .key_len = strlen(key) }, answer, &len);
}

static void a_key_takes_effect_once(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 2);
	int64_t answer = 0;

	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(keyed(box, "sum:a", 5, "order-1", &answer), NOH_OK);
		EXPECT_EQ(answer, 5);
	}
	EXPECT_EQ(keyed(box, "sum:a", 6, "order-1", &answer), NOH_EIDEM);
	EXPECT_EQ(keyed(box, "sum:a", 6, "order-2", &answer), NOH_OK);
	EXPECT_EQ(answer, 11);
	EXPECT_EQ(keyed(box, "sum:b", 6, "order-1", &answer), NOH_OK);
	EXPECT_EQ(answer, 6);
	EXPECT_EQ(keyed(box, "fleeting:b", 6, "order-1", &answer), NOH_EINVAL);
	EXPECT_EQ(keyed(box, "sum:a", 6, "", &answer), NOH_EINVAL);
	noh_close(box);
	box = open_both(dir, 1);
	EXPECT_EQ(keyed(box, "sum:a", 5, "order-1", &answer), NOH_OK);
	EXPECT_EQ(answer, 5);
	EXPECT_EQ(keyed(box, "sum:a", 7, "order-1", &answer), NOH_EIDEM);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 11);
	shut(box);
	remove_dir(dir);
}

static void an_answer_at_memory_does_not_wait_and_is_kept_all_the_same(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 1);
	int64_t answer = 0;
	size_t len = 8;

	for (int i = 0; i < 100; i++)
		EXPECT_EQ(noh_call_with(box, "sum:a", ADD, &(int64_t){ 1 }, 8,
					&(noh_call_options){ .durability = NOH_MEMORY }, &answer, &len), NOH_OK);
	EXPECT_EQ(answer, 100);
	EXPECT_EQ(noh_sync(box, 5000), NOH_OK);
	noh_close(box);
	box = open_both(dir, 1);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 100);
	shut(box);
	remove_dir(dir);
}

/* ── versions ── */

struct v2 { int64_t sum, doubled; };
struct v3 { int64_t sum, doubled, tripled; };

static int v3_message(noh_turn *t, const noh_msg *m)
{
	const struct v3 *s = noh_look(t);
	int64_t sum = s->sum + s->doubled + s->tripled;

	return m->kind == GET ? noh_reply(t, &sum, 8) : NOH_EINVAL;
}

static int to_2(void *user, const void *old, size_t old_len, void *fresh, size_t *len)
{
	struct v2 *s = fresh;

	(void)user;
	EXPECT_EQ(old_len, 8);
	s->sum = *(const int64_t *)old;
	s->doubled = s->sum * 2;
	*len = sizeof *s;
	return NOH_OK;
}

static int to_3(void *user, const void *old, size_t old_len, void *fresh, size_t *len)
{
	const struct v2 *s = old;

	(void)user;
	EXPECT_EQ(old_len, sizeof *s);
	*(struct v3 *)fresh = (struct v3){ s->sum, s->doubled, s->sum * 3 };
	*len = sizeof(struct v3);
	return NOH_OK;
}

static void quiet(void *user, int level, const char *actor, const char *line)
{
	(void)user; (void)level; (void)actor; (void)line;
}

static void a_state_is_migrated_step_by_step_or_its_type_refused(void)
{
	static const noh_migration both[] = { { 1, to_2 }, { 2, to_3 } };
	noh_type newer = { .name = "sum", .state_size = sizeof(struct v3), .on_message = v3_message,
			   .version = 3, .migrations = both, .migration_count = 2 };
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_options o = { .workers = 1, .dir = dir, .unpinned = true, .max_actors = 1000, .log = quiet };
	noh_box *box = open_both(dir, 1);

	EXPECT_EQ(call_i64(box, "sum:a", ADD, 7), 7);
	shut(box);
	newer.migration_count = 1;               /* the second step is missing */
	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	EXPECT_EQ(noh_register(box, &newer), NOH_OK);
	EXPECT_EQ(noh_register(box, &fleeting), NOH_OK);
	EXPECT_EQ(noh_start(box), NOH_OK);
	EXPECT_EQ(noh_send(box, "sum:a", GET, NULL, 0), NOH_EVERSION);
	EXPECT_EQ(call_i64(box, "fleeting:a", ADD, 7), 7);
	shut(box);
	newer.migration_count = 2;
	box = open_dir(dir, 1, &newer, 1);
	EXPECT_EQ(call_i64(box, "sum:a", GET, 0), 7 + 14 + 21);
	shut(box);
	remove_dir(dir);
}

static int burst_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t);

	if (m->kind == FORWARD)
		for (int64_t i = 0; i < 100; i++)
			EXPECT_EQ(noh_tell_to(t, "small:b", ADD, &(int64_t){ 1 }, 8), NOH_OK);
	if (m->kind == ADD)
		*sum += 1;
	return m->kind == GET ? noh_reply(t, noh_look(t), 8) : NOH_OK;
}

static uint64_t dropped_calls;           /* no record has them: they may be */

static bool hundred(void *box)
{
	int64_t sum = 0;
	size_t len = sizeof sum;
	int rc = noh_call(box, "small:b", GET, NULL, 0, 5000, &sum, &len);

	dropped_calls += rc != NOH_OK;
	return rc == NOH_OK && sum == 100;
}

static void a_recorded_message_is_never_dropped(void)
{
	noh_type small = { .name = "small", .state_size = 8, .on_message = burst_message,
			   .mailbox_capacity = 2, .full_mode = NOH_DROP_OLDEST };
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_dir(dir, 2, &small, 1);
	noh_type_stats stats;

	dropped_calls = 0;
	EXPECT_EQ(noh_call(box, "small:a", FORWARD, NULL, 0, 5000, NULL, NULL), NOH_OK);
	EXPECT(test_wait_until(hundred, box, 5000));
	EXPECT_EQ(noh_get_type_stats(box, "small", &stats), NOH_OK);
	EXPECT_EQ(stats.dropped_oldest, dropped_calls);
	shut(box);
	remove_dir(dir);
}

static atomic_u32 answer_came, gave_up;

static int chain_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t);

	*sum += 1;
	if (m->kind == FORWARD) {                /* the worker goes on with the other one at once */
		EXPECT_EQ(noh_reply(t, sum, 8), NOH_OK);
		return noh_tell_to(t, "chain:slow", ADD, NULL, 0);
	}
	for (int i = 0; i < 5000 && !load_acquire(&answer_came); i++)
		usleep(1000);
	store_release(&gave_up, !load_acquire(&answer_came));
	return NOH_OK;
}

static void an_answer_does_not_wait_for_a_long_turn_after_it(void)
{
	noh_type chain = { .name = "chain", .state_size = 8, .on_message = chain_message,
			   .full_mode = NOH_BLOCK };
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_dir(dir, 2, &chain, 1);

	store_release(&answer_came, 0);
	EXPECT_EQ(call_i64(box, "chain:first", FORWARD, 0), 1);
	store_release(&answer_came, 1);
	shut(box);
	EXPECT_EQ(load_acquire(&gave_up), 0);
	remove_dir(dir);
}

static void an_actor_that_goes_back_to_storage_is_the_same_when_it_returns(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 2);

	for (int64_t i = 1; i <= 200; i++) {
		char address[32];

		snprintf(address, sizeof address, "sum:%d", (int)(i % 5));
		EXPECT_EQ(call_i64(box, address, ADD, 1), (i + 4) / 5);
		EXPECT_EQ(noh_deactivate(box, address, false, 5000), NOH_OK);
	}
	shut(box);
	remove_dir(dir);
}

static void a_directory_is_opened_by_one_box_at_a_time(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	noh_box *box = open_both(dir, 1), *second = NULL;

	EXPECT_EQ(noh_open(&second, &(noh_options){ .dir = dir }), NOH_EINUSE);
	EXPECT(strstr(noh_why(), dir) != NULL);
	shut(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(state_and_entries_survive_a_restart, "US-10 RT-23"),
	TEST(an_entry_changed_again_and_again_is_kept_as_it_ended, "RT-23"),
	TEST(a_box_closed_without_stopping_loses_nothing_it_answered, "US-10 PL-14"),
	TEST(a_volatile_type_keeps_nothing),
	TEST(a_failed_turn_leaves_no_trace),
	TEST(an_erased_actor_begins_again),
	TEST(a_timer_fires_after_a_restart_once, "LC-05 RT-06 RT-09 PL-17"),
	TEST(messages_between_actors_arrive_once, "MB-12 MB-14 EN-13"),
	TEST(durable_actors_ask_each_other),
	TEST(a_key_takes_effect_once, "RT-30 EN-02"),
	TEST(an_answer_at_memory_does_not_wait_and_is_kept_all_the_same),
	TEST(a_state_is_migrated_step_by_step_or_its_type_refused, "SC-29"),
	TEST(an_actor_that_goes_back_to_storage_is_the_same_when_it_returns, "LC-13 PL-14"),
	TEST(a_recorded_message_is_never_dropped, "MB-14"),
	TEST(an_answer_does_not_wait_for_a_long_turn_after_it),
	TEST(a_directory_is_opened_by_one_box_at_a_time))
