/* tests/box/ask_test.c - asks between actors: answers, deadlines, waiting, and circles of it. */
#include "tests/box/kit.h"

struct node {
	noh_promise who;               /* our own caller, answered when our answer comes */
	uint64_t    asks[2];
	uint32_t    answers, matched, counted, counted_at_answer;
	int32_t     status;
};

enum { ECHO, RELAY, RELAYED, ASK_ONE, ASKED, COUNT, HOLD, SILENT, FAIL, ASK_TWO, WAIT_TWO, LOOK,
       OWN_CODE, TELL };

struct order { char to[40]; uint32_t kind, timeout_ms; bool wait; };

static int relay(noh_turn *t, const noh_msg *m, struct node *s)
{
	const char *path = m->body;
	char to[] = { 'n', ':', m->len ? path[0] : '?', 0 };
	noh_ask_options wait = { .answer_kind = RELAYED, .wait = true };

	if (m->len == 0)
		return noh_reply(t, "!", 1);
	s->who = noh_defer(t, m);
	return noh_ask_to(t, to, RELAY, path + 1, m->len - 1, &wait, NULL);
}

static int ask_one(noh_turn *t, const noh_msg *m, struct node *s)
{
	const struct order *o = m->body;
	noh_ask_options how = { .answer_kind = ASKED, .wait = o->wait, .timeout_ms = o->timeout_ms };

	s->who = noh_defer(t, m);
	return noh_ask_to(t, o->to, o->kind, "hello", 5, &how, &s->asks[0]);
}

static int ask_two(noh_turn *t, const noh_msg *m, struct node *s)
{
	noh_ask_options how = { .answer_kind = ASKED };

	s->who = noh_defer(t, m);
	EXPECT_EQ(noh_ask_to(t, "n:x", ECHO, "hello", 5, &how, &s->asks[0]), NOH_OK);
	EXPECT_EQ(noh_ask_to(t, "n:y", ECHO, "hello", 5, &how, &s->asks[1]), NOH_OK);
	EXPECT(s->asks[0] != s->asks[1]);
	return NOH_OK;
}

static int wait_two(noh_turn *t)
{
	noh_ask_options wait = { .answer_kind = RELAYED, .wait = true };

	EXPECT_EQ(noh_ask_to(t, "n:x", ECHO, NULL, 0, &wait, NULL), NOH_OK);
	EXPECT_EQ(noh_ask_to(t, "n:y", ECHO, NULL, 0, &wait, NULL), NOH_EINVAL);
	EXPECT(strstr(noh_why(), "n:a"));
	return NOH_EFAILED;
}

static int asked(noh_turn *t, const noh_msg *m, struct node *s)
{
	EXPECT(m->flags & NOH_MSG_ANSWER);
	s->matched += m->ask == s->asks[0] || m->ask == s->asks[1];
	s->answers++;
	s->counted_at_answer = s->counted;
	s->status = m->status;
	if (m->status == NOH_OK && m->len)
		EXPECT(m->len == 5 && memcmp(m->body, "hello", 5) == 0);
	if (s->asks[1] && s->answers < 2)
		return NOH_OK;
	return noh_answer(t, s->who, m->status, m->body, m->len);
}

static int node_message(noh_turn *t, const noh_msg *m)
{
	struct node *s = noh_state(t);

	switch (m->kind) {
	case ECHO: return noh_reply(t, m->body, m->len);
	case RELAY: return relay(t, m, s);
	case RELAYED: return noh_answer(t, s->who, m->status, m->body, m->len);
	case ASK_ONE: return ask_one(t, m, s);
	case ASK_TWO: return ask_two(t, m, s);
	case WAIT_TWO: return wait_two(t);
	case ASKED: return asked(t, m, s);
	case COUNT: s->counted++; return NOH_OK;
	case HOLD: gate_pass(); return noh_reply(t, m->body, m->len);
	case SILENT: (void)noh_defer(t, m); return NOH_OK;
	case FAIL: return noh_fail(t, "as told");
	case OWN_CODE: return -1000;
	case LOOK: return noh_reply(t, s, sizeof *s);
	case TELL: return noh_tell_to(t, "late:1", COUNT, NULL, 0);
	}
	return NOH_EINVAL;
}

static const noh_type node_type = { .name = "n", .state_size = sizeof(struct node),
	.idle_timeout_ms = NOH_NEVER, .on_message = node_message };

/* Waits for an answer before its first message. */
static int late_activate(noh_turn *t)
{
	noh_ask_options wait = { .answer_kind = ASKED, .wait = true };

	return noh_ask_to(t, "n:x", ECHO, NULL, 0, &wait, NULL);
}

static int late_message(noh_turn *t, const noh_msg *m)
{
	struct node *s = noh_state(t);

	if (m->kind == ASKED)
		s->answers++;
	else if (m->kind == COUNT)
		s->counted += s->answers;
	else
		return noh_reply(t, &(uint64_t){ s->counted }, 8);
	return NOH_OK;
}

static const noh_type late_type = { .name = "late", .state_size = sizeof(struct node),
	.on_activate = late_activate, .on_message = late_message };

static struct node look(noh_box *box, const char *address)
{
	struct node s = { 0 };
	size_t len = sizeof s;

	EXPECT_EQ(noh_call(box, address, LOOK, NULL, 0, SOON, &s, &len), NOH_OK);
	return s;
}

static int order(noh_box *box, const char *whom, struct order o)
{
	return noh_call(box, whom, ASK_ONE, &o, sizeof o, SOON, NULL, NULL);
}

static int path(noh_box *box, const char *first, const char *rest)
{
	return noh_call(box, first, RELAY, rest, strlen(rest), SOON, NULL, NULL);
}

static void an_answer_comes_as_a_message(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &node_type);
		char answer[8];
		size_t len = sizeof answer;
		struct order o = { .to = "n:x", .kind = ECHO };

		EXPECT_EQ(noh_call(box, "n:a", ASK_ONE, &o, sizeof o, SOON, answer, &len), NOH_OK);
		EXPECT(len == 5 && memcmp(answer, "hello", 5) == 0);
		EXPECT_EQ(look(box, "n:a").matched, 1);
		EXPECT(settles(box, "n"));
		end(box);
	}
}

static void two_asks_get_their_own_answers(void)
{
	noh_box *box = BOX(2, &node_type);

	EXPECT_EQ(call(box, "n:a", ASK_TWO), NOH_OK);
	EXPECT_EQ(look(box, "n:a").matched, 2);
	end(box);
}

static void a_turn_can_wait_for_one_answer_only(void)
{
	noh_box *box = BOX(1, &node_type);

	EXPECT_EQ(call(box, "n:a", WAIT_TWO), NOH_EFAILED);
	EXPECT_EQ(call(box, "n:a", ECHO), NOH_OK);         /* and does not wait: it failed */
	end(box);
}

static void a_failure_and_an_own_code_reach_the_asker(void)
{
	noh_box *box = BOX(2, &node_type);

	EXPECT_EQ(order(box, "n:a", (struct order){ .to = "n:x", .kind = FAIL }), NOH_EFAILED);
	EXPECT_EQ(look(box, "n:a").status, NOH_EFAILED);
	EXPECT_EQ(order(box, "n:b", (struct order){ .to = "n:x", .kind = OWN_CODE, .wait = true }), -1000);
	EXPECT_EQ(order(box, "n:c", (struct order){ .to = "none:x" }), NOH_ENOTYPE);
	end(box);
}

static void an_ask_ends_at_its_deadline_and_not_before(void)
{
	noh_box *box = BOX(2, &node_type);

	for (int wait = 0; wait <= 1; wait++) {
		uint64_t start = now_us();

		EXPECT_EQ(order(box, wait ? "n:a" : "n:b", (struct order){ .to = "n:x", .kind = SILENT,
			  .timeout_ms = 30, .wait = wait }), NOH_ETIMEOUT);
		EXPECT(now_us() - start >= 30000);
		EXPECT_EQ(look(box, wait ? "n:a" : "n:b").answers, 1);
	}
	end(box);
}

static void an_actor_that_asked_keeps_serving(void)
{
	noh_box *box = BOX(2, &node_type);
	struct order o = { .to = "n:x", .kind = HOLD };

	gate_shut();
	EXPECT_EQ(noh_send(box, "n:a", ASK_ONE, &o, sizeof o), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(noh_send(box, "n:a", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(look(box, "n:a").counted, 3);
	EXPECT_EQ(look(box, "n:a").answers, 0);
	gate_open();
	end(box);
}

static void an_actor_that_waits_serves_nothing_but_the_answer(void)
{
	noh_box *box = BOX(2, &node_type);
	struct order o = { .to = "n:x", .kind = HOLD, .wait = true };

	gate_shut();
	EXPECT_EQ(noh_send(box, "n:a", ASK_ONE, &o, sizeof o), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(noh_send(box, "n:a", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_call(box, "n:a", ECHO, NULL, 0, 50, NULL, NULL), NOH_ETIMEOUT);
	EXPECT_EQ(status_of(box, "n:a").mailbox_size, 4);
	gate_open();
	struct node s = look(box, "n:a");
	EXPECT_EQ(s.counted, 3);
	EXPECT_EQ(s.answers, 1);
	EXPECT_EQ(s.counted_at_answer, 0);
	EXPECT_EQ(stats(box).late_answers, 1);             /* of the ECHO nobody waited for */
	end(box);
}

static void a_message_handed_to_an_actor_that_waits_is_not_lost(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &node_type, &late_type);

		EXPECT_EQ(call(box, "n:s", TELL), NOH_OK);     /* activates late:1, which waits */
		EXPECT_EQ(get(box, "late:1", LOOK), 1);
		EXPECT(settles(box, "late"));
		end(box);
	}
}

static void a_chain_of_waiting_actors_is_no_circle(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &node_type);

		EXPECT_EQ(path(box, "n:a", "bcdefghijklmnop"), NOH_OK);
		end(box);
	}
}

static void a_circle_of_waiting_actors_is_told_at_once(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &node_type);
		uint64_t start = now_us();

		EXPECT_EQ(path(box, "n:a", "a"), NOH_ECYCLE);
		EXPECT_EQ(path(box, "n:a", "ba"), NOH_ECYCLE);
		EXPECT_EQ(path(box, "n:a", "bca"), NOH_ECYCLE);
		EXPECT_EQ(path(box, "n:a", "bcdefghb"), NOH_ECYCLE);
		EXPECT(now_us() - start < 5000000);            /* an ask's own deadline is 30 s */
		EXPECT_EQ(path(box, "n:a", "bcd"), NOH_OK);    /* and all are free again */
		EXPECT(settles(box, "n"));
		end(box);
	}
}

static noh_box *shared_box;
static atomic_u64 circles;

static void *walks_at_random(void *arg)
{
	uint64_t rng = test_seed + (uintptr_t)arg;

	for (int i = 0; i < 300; i++) {
		char to[] = "n:?", way[4];
		size_t n = test_random(&rng) % 4;

		to[2] = (char)('a' + test_random(&rng) % 5);
		for (size_t at = 0; at < n; at++)
			way[at] = (char)('a' + test_random(&rng) % 5);
		int rc = noh_call(shared_box, to, RELAY, way, n, SOON, NULL, NULL);

		EXPECT(rc == NOH_OK || rc == NOH_ECYCLE);
		add_relaxed(&circles, rc == NOH_ECYCLE);
	}
	return NULL;
}

static void asks_in_all_directions_never_stand_still(void)
{
	FOR_WORKERS(workers) {
		struct threads t;

		shared_box = BOX(workers, &node_type);
		threads_start(&t, 4, walks_at_random);
		threads_join(&t);
		EXPECT(settles(shared_box, "n"));
		end(shared_box);
	}
	EXPECT(load_relaxed(&circles) > 0);
}

static void an_answer_for_an_asker_that_is_gone_is_counted(void)
{
	noh_box *box = BOX(2, &node_type);
	struct order o = { .to = "n:x", .kind = HOLD };

	gate_shut();
	EXPECT_EQ(noh_send(box, "n:a", ASK_ONE, &o, sizeof o), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_deactivate(box, "n:a", false, SOON), NOH_OK);
	gate_open();
	EXPECT_EQ(call(box, "n:x", ECHO), NOH_OK);
	EXPECT_EQ(stats(box).late_answers, 1);
	end(box);
}

TEST_MAIN(
	TEST(an_answer_comes_as_a_message, "RT-10 RT-14"),
	TEST(two_asks_get_their_own_answers, "RT-14"),
	TEST(a_turn_can_wait_for_one_answer_only),
	TEST(a_failure_and_an_own_code_reach_the_asker, "SC-26"),
	TEST(an_ask_ends_at_its_deadline_and_not_before, "RT-14"),
	TEST(an_actor_that_asked_keeps_serving),
	TEST(an_actor_that_waits_serves_nothing_but_the_answer),
	TEST(a_message_handed_to_an_actor_that_waits_is_not_lost, "LC-09"),
	TEST(a_chain_of_waiting_actors_is_no_circle),
	TEST(a_circle_of_waiting_actors_is_told_at_once, "MB-05"),
	TEST(asks_in_all_directions_never_stand_still),
	TEST(an_answer_for_an_asker_that_is_gone_is_counted))
