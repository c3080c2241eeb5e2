/* tests/box/drain_test.c - a box that is drained: nothing new, everything finished, nobody left, and how far it is. */
#include "tests/box/kit.h"

enum { COUNT, HOLD, LOOK, TICK, ON };

static int on_message(noh_turn *t, const noh_msg *m)
{
	uint64_t *n = noh_state(t);

	switch (m->kind) {
	case COUNT: ++*n; return NOH_OK;
	case HOLD: ++*n; gate_pass(); return NOH_OK;
	case LOOK: return noh_reply(t, n, sizeof *n);
	case TICK: ++*n; return noh_schedule_once(t, TICK, 1);
	case ON: ++*n; return noh_tell_to(t, "a:next", COUNT, NULL, 0);
	}
	return NOH_EINVAL;
}

static atomic_u64 stored;

static int on_deactivate(noh_turn *t)
{
	(void)t;
	add_seq_cst(&stored, 1);
	return NOH_OK;
}

static const noh_type a_type = { .name = "a", .state_size = 8, .full_mode = NOH_BLOCK, .mailbox_capacity = 10000,
	.idle_timeout_ms = NOH_NEVER, .on_message = on_message, .on_deactivate = on_deactivate };

static noh_drain_state state_of(noh_box *box)
{
	noh_drain_state s;

	EXPECT_EQ(noh_get_drain(box, &s), NOH_OK);
	return s;
}

static void what_waits_is_finished_and_nobody_is_left(void)
{
	noh_box *box = BOX(2, &a_type);
	char to[32];

	store_seq_cst(&stored, 0);
	for (int i = 0; i < 500; i++) {
		snprintf(to, sizeof to, "a:%d", i % 50);
		EXPECT_EQ(noh_send(box, to, i % 10 ? COUNT : ON, NULL, 0), NOH_OK);
	}
	EXPECT_EQ(noh_send(box, "a:clock", TICK, NULL, 0), NOH_OK);      /* a schedule that would go on for ever */
	EXPECT(!state_of(box).draining);
	EXPECT_EQ(noh_drain(box, SOON, NULL, NULL), NOH_OK);
	EXPECT(state_of(box).draining);
	EXPECT_EQ(state_of(box).actors, 0);
	EXPECT_EQ(state_of(box).messages, 0);
	EXPECT_EQ(stats(box).actors, 0);
	EXPECT(load_seq_cst(&stored) >= 52);
	EXPECT(adds_up(box, "a"));
	EXPECT_EQ(stats_of(box, "a").dropped_stop, 0);
	EXPECT_EQ(noh_send(box, "a:1", COUNT, NULL, 0), NOH_ESTOPPED);
	EXPECT_EQ(call(box, "a:1", LOOK), NOH_ESTOPPED);
	EXPECT_EQ(status_of(box, "a:1").life, NOH_NOT_ACTIVE);           /* looking is fine */
	EXPECT_EQ(noh_drain(box, SOON, NULL, NULL), NOH_EEXISTS);
	end(box);
}

static int keep_event(void *user, const noh_event *e)
{
	char *text = user;

	snprintf(text + strlen(text), 256, "%s %s>%s %.*s\n", e->kind, e->from, e->to, (int)e->len, (const char *)e->data);
	return 0;
}

static void it_is_told_in_the_log_of_events(void)
{
	noh_box *box = BOX(1, &a_type);
	char text[4096] = "";
	uint64_t cursor = 0;

	gate_shut();
	EXPECT_EQ(noh_send(box, "a:x", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_drain(box, 20, NULL, NULL), NOH_ETIMEOUT);
	EXPECT(noh_events_read(box, &cursor, &(noh_events_filter){ .kind = "drain" }, 10, keep_event, text) >= NOH_OK);
	EXPECT(strcmp(text, "drain running>draining {\"actors\":1,\"messages\":1}\n"
			    "drain draining>not drained {\"actors\":1,\"messages\":1}\n") == 0);
	gate_open();
	end(box);
}

struct seen { unsigned calls; noh_drain_state last; int rc; };

static int see(void *user, const noh_drain_state *state)
{
	struct seen *s = user;

	s->calls++;
	s->last = *state;
	return s->rc;
}

static int see_and_open(void *user, const noh_drain_state *state)
{
	if (state->messages == 4)
		gate_open();
	return see(user, state);
}

static void it_is_told_how_far_it_is(void)
{
	noh_box *box = BOX(2, &a_type);
	struct seen s = { .calls = 0 };

	gate_shut();
	EXPECT_EQ(noh_send(box, "a:x", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(noh_send(box, "a:x", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_drain(box, SOON, see_and_open, &s), NOH_OK);
	EXPECT(s.calls >= 1);
	EXPECT(s.last.draining && s.last.left_ms <= SOON);
	EXPECT_EQ(stats_of(box, "a").handled, 4);
	end(box);
}

static void a_deadline_that_is_over_says_what_is_left(void)
{
	noh_box *box = BOX(2, &a_type);

	gate_shut();
	EXPECT_EQ(noh_send(box, "a:x", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_send(box, "a:x", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_drain(box, 50, NULL, NULL), NOH_ETIMEOUT);
	EXPECT(strstr(noh_why(), "1 actors are still in memory and 2 messages not handled after 50 ms"));
	EXPECT_EQ(state_of(box).left_ms, 0);
	gate_open();
	end(box);                                /* it can be stopped all the same */
}

static void whoever_watches_may_end_it(void)
{
	noh_box *box = BOX(1, &a_type);
	struct seen s = { .rc = 1 };

	gate_shut();
	EXPECT_EQ(noh_send(box, "a:x", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_drain(box, SOON, see, &s), NOH_ETIMEOUT);
	EXPECT(strstr(noh_why(), " ms, when it was told to end: ") && !strstr(noh_why(), "after 30000 ms"));
	EXPECT_EQ(s.calls, 1);
	EXPECT_EQ(s.last.actors, 1);
	gate_open();
	end(box);
}

static int drain_inside(noh_turn *t, const noh_msg *m)
{
	(void)m;
	EXPECT_EQ(noh_drain(noh_turn_box(t), 10, NULL, NULL), NOH_EINTURN);
	return NOH_OK;
}

static void it_is_not_for_turns_nor_for_boxes_that_do_not_run(void)
{
	const noh_type t = { .name = "t", .on_message = drain_inside };
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, TYPES(&t));
	noh_drain_state s;

	EXPECT_EQ(noh_drain(box, 10, NULL, NULL), NOH_ESTOPPED);
	EXPECT_EQ(noh_get_drain(box, &s), NOH_ESTOPPED);
	EXPECT_EQ(noh_start(box), NOH_OK);
	EXPECT_EQ(call(box, "t:x", 0), NOH_OK);
	end(box);
}

static const noh_type steady = { .name = "steady", .state_size = 8, .full_mode = NOH_BLOCK, .on_message = on_message,
	.limits = { .actor_per_second = 500, .actor_burst = 1 } };

static void who_rests_for_a_token_is_waited_for(void)
{
	noh_box *box = BOX(2, &steady);

	for (int i = 0; i < 30; i++)
		EXPECT_EQ(noh_send(box, "steady:x", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_drain(box, SOON, NULL, NULL), NOH_OK);
	EXPECT_EQ(stats_of(box, "steady").handled, 30);
	end(box);
}

/* ── senders that do not stop ── */

static noh_box *flooded;
static atomic_u64 accepted;

static void *flood(void *arg)
{
	char to[32];
	int rc;

	snprintf(to, sizeof to, "a:%u", (unsigned)(uintptr_t)arg);
	while ((rc = noh_send_wait(flooded, to, COUNT, NULL, 0, SOON)) == NOH_OK)
		add_relaxed(&accepted, 1);
	EXPECT_EQ(rc, NOH_ESTOPPED);
	return NULL;
}

static void what_was_accepted_is_handled_whoever_goes_on_sending(void)
{
	struct threads t;

	store_relaxed(&accepted, 0);
	flooded = BOX(2, &a_type);
	threads_start(&t, 4, flood);
	EXPECT(reaches(&accepted, 1000));
	EXPECT_EQ(noh_drain(flooded, SOON, NULL, NULL), NOH_OK);
	threads_join(&t);
	EXPECT_EQ(stats_of(flooded, "a").handled, load_relaxed(&accepted));
	end(flooded);
}

TEST_MAIN(
	TEST(what_waits_is_finished_and_nobody_is_left, "CLI-05"),
	TEST(it_is_told_how_far_it_is, "CLI-05"),
	TEST(a_deadline_that_is_over_says_what_is_left, "CLI-05"),
	TEST(it_is_told_in_the_log_of_events),
	TEST(whoever_watches_may_end_it),
	TEST(it_is_not_for_turns_nor_for_boxes_that_do_not_run),
	TEST(who_rests_for_a_token_is_waited_for),
	TEST(what_was_accepted_is_handled_whoever_goes_on_sending, "CLI-05"))
