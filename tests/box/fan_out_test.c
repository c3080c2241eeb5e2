/* tests/box/fan_out_test.c - turns that write a lot: in order to each receiver, and no more than there is room for. */
#include "tests/box/kit.h"

enum { ORDER, NEXT, HOLD, COUNT };

#define HANDS_MOST 300

/* What the boss is told to do. Long bodies and an answer in between take other ways than short messages. */
struct order { uint32_t hands, rounds, others; bool long_ones, answer_first; };
struct next { uint64_t round, padding[6]; };
struct hand { uint64_t heard, wrong; };

static struct { noh_actor hands[HANDS_MOST]; } to;

static int hand_message(noh_turn *t, const noh_msg *m)
{
	struct hand *me = noh_state(t);

	switch (m->kind) {
	case HOLD: gate_pass(); return NOH_OK;
	case COUNT: return noh_reply(t, &(uint64_t){ me->wrong ? UINT64_MAX : me->heard }, 8);
	default:
		me->wrong += *(const uint64_t *)m->body != me->heard;
		me->heard++;
		return NOH_OK;
	}
}

static int boss_message(noh_turn *t, const noh_msg *m)
{
	const struct order *o = m->body;
	uint64_t sent = 0;

	if (o->answer_first && noh_reply(t, &sent, sizeof sent) != NOH_OK)
		return NOH_EFAILED;
	for (uint32_t r = 0; r < o->rounds; r++)
		for (uint32_t i = 0; i < o->hands; i++) {
			struct next next = { .round = r };
			int rc = noh_tell(t, to.hands[i], NEXT, &next, o->long_ones && (r + i) % 5 == 0 ? sizeof next : 8);

			if (rc == NOH_OK)
				sent += i == 0;
			else if (rc != NOH_FULL)
				return rc;
		}
	return o->answer_first ? NOH_OK : noh_reply(t, &sent, sizeof sent);
}

static noh_box *open_box(unsigned workers, int mode, uint32_t capacity, uint32_t hands)
{
	noh_type hand = { .name = "hand", .state_size = sizeof(struct hand), .on_message = hand_message,
			  .full_mode = mode, .mailbox_capacity = capacity, .idle_timeout_ms = NOH_NEVER };
	noh_type boss = { .name = "boss", .on_message = boss_message, .idle_timeout_ms = NOH_NEVER };
	noh_box *box = BOX(workers, &hand, &boss);
	char address[32];

	for (uint32_t i = 0; i < hands; i++) {
		snprintf(address, sizeof address, "hand:%u", i);
		EXPECT_EQ(noh_ref(box, address, &to.hands[i]), NOH_OK);
	}
	return box;
}

static uint64_t give(noh_box *box, struct order o)
{
	uint64_t sent = UINT64_MAX;
	size_t len = sizeof sent;

	EXPECT_EQ(noh_call(box, "boss:1", ORDER, &o, sizeof o, SOON, &sent, &len), NOH_OK);
	return sent;
}

static bool have_handled(void *arg)
{
	struct kit_about *a = arg;

	return stats_of(a->box, a->name).handled == a->n;
}

static void all_are_heard_in_order(unsigned workers, struct order o)
{
	noh_box *box = open_box(workers, NOH_BLOCK, 1000, o.hands);
	char address[32];

	EXPECT_EQ(give(box, o), o.answer_first ? 0 : o.rounds);
	EXPECT(test_wait_until(have_handled, &(struct kit_about){ box, "hand", (uint64_t)o.hands * o.rounds }, SOON));
	for (uint32_t i = 0; i < o.hands; i++) {
		snprintf(address, sizeof address, "hand:%u", i);
		EXPECT_EQ(get(box, address, COUNT), o.rounds);
	}
	end(box);
}

static void a_turn_reaches_each_of_many_in_the_order_sent(void)
{
	for (unsigned workers = 1; workers <= 2; workers++) {
		all_are_heard_in_order(workers, (struct order){ .hands = 60, .rounds = 16 });
		all_are_heard_in_order(workers, (struct order){ .hands = 1, .rounds = 700 });
		all_are_heard_in_order(workers, (struct order){ .hands = 2, .rounds = 1 });
		all_are_heard_in_order(workers, (struct order){ .hands = HANDS_MOST, .rounds = 5 });
	}
}

static void long_messages_and_answers_among_them_change_nothing(void)
{
	all_are_heard_in_order(1, (struct order){ .hands = 60, .rounds = 9, .long_ones = true });
	all_are_heard_in_order(2, (struct order){ .hands = 60, .rounds = 9, .answer_first = true });
	all_are_heard_in_order(1, (struct order){ .hands = HANDS_MOST, .rounds = 3, .long_ones = true, .answer_first = true });
}

/* hand:0 is in a turn: how many of a turn's messages it accepts. */
static uint64_t accepted(int mode, uint32_t hands)
{
	noh_box *box = open_box(2, mode, 10, hands);
	uint64_t sent;

	gate_shut();
	EXPECT_EQ(noh_send(box, "hand:0", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT(gets_to_hold(box, "hand:0", 0));
	sent = give(box, (struct order){ .hands = hands, .rounds = 100 });
	EXPECT(gets_to_hold(box, "hand:0", sent));
	gate_open();
	EXPECT(settles(box, "hand"));
	EXPECT_EQ(get(box, "hand:0", COUNT), sent);
	end(box);
	return sent;
}

static void one_turn_is_refused_at_exactly_the_limit(void)
{
	EXPECT_EQ(accepted(NOH_DROP_NEWEST, 1), 10);
	EXPECT_EQ(accepted(NOH_DROP_NEWEST, 7), 10);
	EXPECT_EQ(accepted(NOH_BLOCK, 1), 40);
	EXPECT_EQ(accepted(NOH_BLOCK, 7), 40);
}

TEST_MAIN(
	TEST(a_turn_reaches_each_of_many_in_the_order_sent, "TB-02"),
	TEST(long_messages_and_answers_among_them_change_nothing, "TB-02"),
	TEST(one_turn_is_refused_at_exactly_the_limit, "MB-04 MB-05"))
