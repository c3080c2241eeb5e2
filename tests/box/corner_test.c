/* tests/box/corner_test.c - promises, deadlines and limits where two rules meet. */
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

#include "box/box.h"

enum { DEFER, SETTLE, GET, MANY, ASK_SHORT, ANSWERED, SLOW, HOLD, TO_OTHER_BOX, CANCELLED,
       WAIT_FOR, FILL, TICK, SET_TICK, FULL_TICK };

struct state { noh_promise kept; uint64_t count, asks, answers; };

static noh_box *other_box;
static atomic_u64 answers, asks, ticks, refusals;

static int many(noh_turn *t, const noh_msg *m)
{
	uint64_t n;

	memcpy(&n, m->body, 8);
	for (uint64_t i = 0; i < n; i++) {
		int rc = noh_tell_to(t, "sink:1", GET, NULL, 0);

		if (rc != NOH_OK)
			return rc;
	}
	return NOH_OK;
}

static int ask_short(noh_turn *t, struct state *s)
{
	noh_ask_options o = { .answer_kind = ANSWERED, .timeout_ms = 1 };

	s->asks++;
	add_relaxed(&asks, 1);
	return noh_ask_to(t, "k:slow", SLOW, NULL, 0, &o, NULL);
}

static int wait_for(noh_turn *t, const char *whom)
{
	noh_ask_options o = { .answer_kind = ANSWERED, .wait = true };

	return noh_ask_to(t, whom, HOLD, NULL, 0, &o, NULL);
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	struct state *s = noh_state(t);
	int rc = NOH_OK;

	switch (m->kind) {
	case DEFER: s->kept = noh_defer(t, m); return NOH_OK;
	case SETTLE:
		rc = noh_answer(t, s->kept, NOH_OK, "kept", 4);
		return noh_reply(t, &(uint64_t){ (uint64_t)rc }, 8);
	case GET: s->count++; return noh_reply(t, &s->count, 8) & 0;
	case MANY: return many(t, m);
	case ASK_SHORT: return ask_short(t, s);
	case ANSWERED: s->answers++; add_acq_rel(&answers, 1); return NOH_OK;
	case SLOW: nap_us(900); return NOH_OK;
	case HOLD: gate_pass(); return NOH_OK;
	case TO_OTHER_BOX:
		EXPECT_EQ(noh_send(other_box, "k:there", GET, NULL, 0), NOH_OK);
		EXPECT_EQ(noh_call(other_box, "k:there", GET, NULL, 0, 10, NULL, NULL), NOH_EINTURN);
		return NOH_OK;
	case CANCELLED:
		gate_pass();
		return noh_cancelled(t) ? NOH_OK : NOH_EFAILED;
	case WAIT_FOR: return wait_for(t, "k:held");
	case SET_TICK: return noh_schedule_every(t, TICK, 5);
	case TICK: add_relaxed(&ticks, 1); return NOH_OK;
	case FULL_TICK: return noh_schedule_once(t, FILL, 1);
	case FILL:                                 /* seven for a mailbox that takes eight */
		for (int i = 0; i < 7 && rc == NOH_OK; i++)
			rc = noh_tell_to(t, "small:1", GET, NULL, 0);
		add_relaxed(&refusals, rc == NOH_FULL);
		return rc;
	}
	return NOH_EINVAL;
}

static const noh_type k_type = { .name = "k", .state_size = sizeof(struct state),
	.idle_timeout_ms = NOH_NEVER, .full_mode = NOH_BLOCK, .mailbox_capacity = 1000,
	.on_message = on_message };
static const noh_type sink_type = { .name = "sink", .state_size = sizeof(struct state),
	.mailbox_capacity = 1 << 20, .full_mode = NOH_BLOCK, .on_message = on_message };
static const noh_type small_type = { .name = "small", .state_size = sizeof(struct state),
	.mailbox_capacity = 2, .full_mode = NOH_BLOCK, .on_message = on_message };

static noh_box *start(unsigned workers)
{
	gate_shut();
	store_relaxed(&answers, 0);
	store_relaxed(&asks, 0);
	store_relaxed(&ticks, 0);
	store_relaxed(&refusals, 0);
	return BOX(workers, &k_type, &sink_type, &small_type);
}

static atomic_u64 done_count;
static atomic_u32 done_ok;

static void done(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	if (status == NOH_OK && len == 4)
		store_relaxed(&done_ok, memcmp(answer, "kept", 4) == 0);
	add_acq_rel(&done_count, 1);
}

static void a_promise_in_the_state_outlives_its_actor(void)
{
	noh_box *box = start(2);

	store_relaxed(&done_count, 0);
	store_relaxed(&done_ok, 0);
	EXPECT_EQ(noh_call_then(box, "k:1", DEFER, NULL, 0, SOON, done, NULL), NOH_OK);
	EXPECT_EQ(call(box, "k:2", GET), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "k:1", false, SOON), NOH_OK);
	EXPECT_EQ(load_relaxed(&done_count), 0);
	EXPECT_EQ(get(box, "k:1", SETTLE), NOH_OK);
	EXPECT(reaches(&done_count, 1));
	EXPECT_EQ(load_relaxed(&done_ok), 1);
	EXPECT_EQ(get(box, "k:1", SETTLE), NOH_NOBODY);    /* kept already */
	end(box);
}

static void a_promise_whose_asker_gave_up_is_for_nobody(void)
{
	noh_box *box = start(1);

	EXPECT_EQ(noh_call(box, "k:1", DEFER, NULL, 0, 10, NULL, NULL), NOH_ETIMEOUT);
	for (int i = 0; i < 50; i++)                       /* its place has had others since */
		EXPECT_EQ(call(box, "k:2", GET), NOH_OK);
	EXPECT_EQ(get(box, "k:1", SETTLE), NOH_NOBODY);
	EXPECT_EQ(get(box, "k:fresh", SETTLE), NOH_NOBODY);    /* { 0 } */
	end(box);
}

static bool all_asks_are_answered(void *arg)
{
	(void)arg;
	return load_acquire(&answers) == load_relaxed(&asks);
}

static void an_ask_is_answered_once_even_if_answer_and_deadline_meet(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);

		for (int i = 0; i < 150; i++) {
			EXPECT_EQ(call(box, "k:1", ASK_SHORT), NOH_OK);
			nap_us(300);
		}
		EXPECT(test_wait_until(all_asks_are_answered, NULL, SOON));
		EXPECT_EQ(load_relaxed(&asks), 150);
		end(box);
		EXPECT_EQ(load_relaxed(&answers), 150);
	}
}

static void a_turn_may_send_very_many_messages(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(noh_call(box, "k:1", MANY, &(uint64_t){ 60000 }, 8, SOON, NULL, NULL), NOH_OK);
	EXPECT_EQ(get(box, "sink:1", GET), 60001);
	/* Too many for one turn: it says so, and nothing is sent. */
	EXPECT_EQ(noh_call(box, "k:1", MANY, &(uint64_t){ 100000 }, 8, SOON, NULL, NULL), NOH_ENOMEM);
	EXPECT_EQ(get(box, "sink:1", GET), 60002);
	end(box);
}

static void boxes_may_write_to_each_other(void)
{
	noh_box *here = start(2);

	other_box = BOX(1, &k_type);
	EXPECT_EQ(call(here, "k:1", TO_OTHER_BOX), NOH_OK);
	EXPECT_EQ(get(other_box, "k:there", GET), 2);
	end(here);
	end(other_box);
}

static void *stops(void *box)
{
	return (void *)(intptr_t)noh_stop(box, SOON);
}

static bool is_stopping(void *box)
{
	return noh_send(box, "k:2", GET, NULL, 0) == NOH_ESTOPPED;
}

static void a_long_turn_can_see_that_the_box_stops(void)
{
	noh_box *box = start(1);
	pthread_t t;
	void *rc;

	EXPECT_EQ(noh_send(box, "k:1", CANCELLED, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(pthread_create(&t, NULL, stops, box), 0);
	EXPECT(test_wait_until(is_stopping, box, SOON));
	gate_open();
	pthread_join(t, &rc);
	EXPECT_EQ((intptr_t)rc, NOH_OK);
	EXPECT_EQ(stats_of(box, "k").failed, 0);
	noh_close(box);
}

static void an_actor_that_waits_is_deactivated_when_its_answer_is_here(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(noh_send(box, "k:1", WAIT_FOR, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_deactivate(box, "k:1", false, 20), NOH_ETIMEOUT);
	gate_open();
	EXPECT(goes_to_storage(box, "k:1"));
	EXPECT_EQ(load_relaxed(&answers), 1);
	end(box);
}

static void a_timer_goes_on_however_often_its_actor_is_thrown_out(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers);
		uint64_t before;

		EXPECT_EQ(call(box, "k:1", SET_TICK), NOH_OK);
		for (int i = 0; i < 60; i++) {
			int rc = noh_deactivate(box, "k:1", i % 2, SOON);

			EXPECT(rc == NOH_OK || rc == NOH_ENOACTOR);
			nap_us(1000);
		}
		before = load_relaxed(&ticks);
		EXPECT(reaches(&ticks, before + 3));
		end(box);
	}
}

static void a_timer_whose_turn_finds_a_mailbox_full_comes_again(void)
{
	noh_box *box = start(2);

	EXPECT_EQ(noh_send(box, "small:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_send(box, "small:1", GET, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "small:1", GET, NULL, 0), NOH_OK);
	EXPECT_EQ(call(box, "k:1", FULL_TICK), NOH_OK);    /* 2 + 7 > 4 times 2 */
	EXPECT(reaches(&refusals, 1));
	EXPECT_EQ(status_of(box, "small:1").mailbox_size, 2);
	gate_open();
	EXPECT_EQ(call(box, "k:1", GET), NOH_OK);
	EXPECT_EQ(get(box, "small:1", GET), 2 + 7 + 1);
	EXPECT(settles(box, "k"));
	end(box);
}

static void max_actors_is_a_limit_that_can_be_reached_and_left(void)
{
	noh_options o = kit_options(1);
	char address[32];
	unsigned made = 0;
	noh_box *box;

	o.max_actors = 1000;
	box = kit_start(&o, TYPES(&k_type));
	for (int i = 0; i < 1200; i++) {
		int rc;

		snprintf(address, sizeof address, "k:%d", i);
		rc = noh_send(box, address, GET, NULL, 0);
		EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
		if (rc == NOH_ENOMEM)
			EXPECT(*noh_why());
		made += rc == NOH_OK;
	}
	EXPECT_EQ(made, 1000);
	EXPECT_EQ(noh_deactivate(box, "k:0", false, SOON), NOH_OK);
	EXPECT_EQ(call(box, "k:1", GET), NOH_OK);
	end(box);
}

static const noh_type sheds = { .name = "sheds", .state_size = sizeof(struct state), .on_message = on_message,
				.full_mode = NOH_DROP_OLDEST, .mailbox_capacity = 1 };

static void count_gone(void *user, int status, const void *answer, size_t len)
{
	(void)answer;
	(void)len;
	EXPECT_EQ(status, NOH_EGONE);
	add_seq_cst((atomic_u64 *)user, 1);
}

static void *throw_out(void *box)
{
	EXPECT_EQ(noh_deactivate(box, "sheds:1", true, SOON), NOH_OK);
	return NULL;
}

static bool is_told_to_go(void *mailbox)
{
	return load_acquire(&((struct mailbox *)mailbox)->word) & MB_SYS;
}

/* What is dropped by force was looked at once more, as if it were the oldest of too many. */
static void a_message_that_is_dropped_by_force_is_dropped_once(void)
{
	noh_call_options o = { .timeout_ms = SOON, .durability = NOH_MEMORY };
	atomic_u64 gone = 0;
	noh_actor ref;
	pthread_t t;
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 1, &sheds, 1);

	gate_shut();
	EXPECT_EQ(noh_send(box, "sheds:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(noh_call_then_with(box, "sheds:1", GET, NULL, 0, &o, count_gone, &gone), NOH_OK);
	EXPECT_EQ(noh_ref(box, "sheds:1", &ref), NOH_OK);
	EXPECT_EQ(pthread_create(&t, NULL, throw_out, box), 0);
	EXPECT(test_wait_until(is_told_to_go, &cell_at(&box->sched, ref_number(ref))->mailbox, SOON));
	gate_open();
	EXPECT_EQ(pthread_join(t, NULL), 0);
	EXPECT(reaches(&gone, 3));
	EXPECT_EQ(stats_of(box, "sheds").dropped_forced, 3);
	EXPECT_EQ(stats_of(box, "sheds").dropped_oldest, 0);
	EXPECT(adds_up(box, "sheds"));
	end(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_promise_in_the_state_outlives_its_actor, "RT-14"),
	TEST(a_promise_whose_asker_gave_up_is_for_nobody, "RT-14"),
	TEST(an_ask_is_answered_once_even_if_answer_and_deadline_meet, "RT-14"),
	TEST(a_turn_may_send_very_many_messages),
	TEST(boxes_may_write_to_each_other, "US-14"),
	TEST(a_long_turn_can_see_that_the_box_stops, "LC-18"),
	TEST(an_actor_that_waits_is_deactivated_when_its_answer_is_here, "LC-11"),
	TEST(a_timer_goes_on_however_often_its_actor_is_thrown_out, "RT-07 LC-05"),
	TEST(a_timer_whose_turn_finds_a_mailbox_full_comes_again, "MB-05"),
	TEST(max_actors_is_a_limit_that_can_be_reached_and_left),
	TEST(a_message_that_is_dropped_by_force_is_dropped_once, "MB-03 RT-16"))
