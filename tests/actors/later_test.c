/* tests/actors/later_test.c - messages for later: when they arrive, in which order, how often, and what becomes of
 * those nobody takes. */
#include "tests/actors/kit.h"

/* A target that notes what it gets. */
enum { NOTE, KINDS };
static struct { int count; char text[64]; int64_t at[64]; } got;

static int on_note(noh_turn *turn, const noh_msg *msg)
{
	got.text[got.count] = *(const char *)msg->body;
	got.at[got.count++] = (int64_t)noh_wall_ms(turn);
	return NOH_OK;
}

static const noh_kind kinds[KINDS] = { { .name = "note" } };
static const noh_type pad = { .name = "pad", .on_message = on_note, .kinds = kinds, .kind_count = KINDS,
			      .mailbox_capacity = 4, .full_mode = NOH_BLOCK };

static void begin(bool durable)
{
	memset(&got, 0, sizeof got);
	kit_also = &pad;
	kit_begin(noh_later_type(), durable);
}

static int send(const char *to, uint64_t delay_ms, uint32_t kind, char text, const char *key)
{
	struct { noh_later_send head; char text[8]; } m = { { delay_ms, kind, 0 }, { text } };

	return kit_call(to, NOH_LATER_SEND, &m, sizeof m.head + 1, key);
}

static noh_later_sent sent(void)
{
	noh_later_sent a = { 0 };

	if (EXPECT_EQ(k.heard.len, sizeof a))
		memcpy(&a, k.heard.body, sizeof a);
	return a;
}

static bool exists(const char *address)
{
	noh_status s;

	EXPECT_EQ(noh_get_status(k.box, address, &s), NOH_OK);
	return s.exists;
}

static void it_arrives_when_its_time_has_come_and_not_before(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		int64_t now = kit_wall();

		EXPECT_EQ(send("later:pad:a", 250, NOTE, 'x', NULL), NOH_OK);
		EXPECT_EQ(sent().due, (uint64_t)now + 250);
		kit_pass_ms(249);
		EXPECT_EQ(got.count, 0);
		EXPECT(exists("later:pad:a"));
		kit_pass_ms(2);
		EXPECT_EQ(got.count, 1);
		EXPECT(got.at[0] >= now + 250);
		EXPECT(!exists("later:pad:a"));          /* nothing of it is left */
		kit_pass_ms(100000);
		EXPECT_EQ(got.count, 1);
		kit_end();
	}
}

static void they_arrive_in_the_order_of_their_times(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		EXPECT_EQ(send("later:pad:a", 300, NOTE, 'c', NULL), NOH_OK);
		EXPECT_EQ(send("later:pad:a", 100, NOTE, 'a', NULL), NOH_OK);
		EXPECT_EQ(send("later:pad:a", 200, NOTE, 'b', NULL), NOH_OK);
		EXPECT_EQ(send("later:pad:a", 300, NOTE, 'd', NULL), NOH_OK);
		for (int i = 0; i < 4; i++)
			kit_pass_ms(100);
		EXPECT_EQ(strcmp(got.text, "abcd"), 0);
		kit_end();
	}
}

static void it_survives_a_restart_and_arrives_once(void)
{
	begin(true);
	EXPECT_EQ(send("later:pad:a", 1000, NOTE, 'x', "order-1"), NOH_OK);
	EXPECT_EQ(send("later:pad:a", 1000, NOTE, 'x', "order-1"), NOH_OK);      /* a retry */
	EXPECT_EQ(send("later:pad:a", 2000, NOTE, 'x', "order-1"), NOH_EIDEM);
	kit_restart(noh_later_type(), 400);
	EXPECT_EQ(got.count, 0);
	kit_pass_ms(700);
	EXPECT_EQ(got.count, 1);
	kit_restart(noh_later_type(), 5000);
	kit_pass_ms(5000);
	EXPECT_EQ(got.count, 1);
	kit_end();
}

static void one_that_is_overdue_at_the_start_arrives_then(void)
{
	begin(true);
	EXPECT_EQ(send("later:pad:a", 1000, NOTE, 'x', NULL), NOH_OK);
	kit_restart(noh_later_type(), 60000);
	kit_pass_ms(1);
	EXPECT_EQ(got.count, 1);
	kit_end();
}

static void it_can_be_cancelled_until_it_was_sent(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		EXPECT_EQ(send("later:pad:a", 100, NOTE, 'x', NULL), NOH_OK);
		noh_later_sent a = sent();
		EXPECT_EQ(send("later:pad:a", 200, NOTE, 'y', NULL), NOH_OK);
		noh_later_sent b = sent();

		EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CANCEL, &a, sizeof a, NULL), NOH_OK);
		kit_pass_ms(150);
		EXPECT_EQ(got.count, 0);
		kit_pass_ms(100);
		EXPECT_EQ(strcmp(got.text, "y"), 0);
		EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CANCEL, &b, sizeof b, NULL), NOH_REFUSED);
		EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CANCEL, &a, sizeof a, NULL), NOH_REFUSED);
		EXPECT(!exists("later:pad:a"));
		kit_end();
	}
}

/* More than one turn sends, and more than the mailbox holds. */
static void many_that_are_due_together_all_arrive_in_order(void)
{
	enum { MANY = 60 };

	IN_MEMORY_AND_ON_DISK(durable) {
		begin(durable);
		for (int i = 0; i < MANY; i++)
			EXPECT_EQ(send("later:pad:a", 50, NOTE, (char)('0' + i), NULL), NOH_OK);
		for (int i = 0; i < 100 && got.count < MANY; i++)
			kit_pass_ms(10);
		EXPECT_EQ(got.count, MANY);
		for (int i = 0; i < MANY; i++)
			EXPECT_EQ(got.text[i], '0' + i);
		EXPECT(!exists("later:pad:a"));
		kit_end();
	}
}

static void what_nobody_takes_is_logged_and_dropped(void)
{
	begin(false);
	EXPECT_EQ(send("later:pad:a", 10, 77, 'x', NULL), NOH_OK);
	EXPECT_EQ(send("later:nobody:a", 10, 0, 'x', NULL), NOH_OK);
	kit_pass_ms(20);
	EXPECT(strstr(k.log, "is dropped"));
	EXPECT(!exists("later:pad:a"));
	EXPECT(!exists("later:nobody:a"));
	kit_end();
}

static void what_is_no_proper_message_is_refused(void)
{
	begin(false);
	noh_later_send m = { .delay_ms = NOH_LATER_MAX_MS + 1 };

	EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_SEND, &m, sizeof m, NULL), NOH_REFUSED);
	m = (noh_later_send){ .reserved = 1 };
	EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_SEND, &m, sizeof m, NULL), NOH_EINVAL);
	EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_SEND, &m, sizeof m - 1, NULL), NOH_EINVAL);
	EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CANCEL, &m, 3, NULL), NOH_EINVAL);
	EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_DUE, NULL, 0, NULL), NOH_EKIND);
	EXPECT(!exists("later:pad:a"));
	kit_end();
}

TEST_MAIN(
	TEST(it_arrives_when_its_time_has_come_and_not_before),
	TEST(they_arrive_in_the_order_of_their_times),
	TEST(it_survives_a_restart_and_arrives_once),
	TEST(one_that_is_overdue_at_the_start_arrives_then),
	TEST(it_can_be_cancelled_until_it_was_sent),
	TEST(many_that_are_due_together_all_arrive_in_order),
	TEST(what_nobody_takes_is_logged_and_dropped),
	TEST(what_is_no_proper_message_is_refused))
