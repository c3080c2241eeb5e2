/* tests/actors/later_test.c - messages for later: when they arrive, in which order, how often, and what becomes of
 * those nobody takes. */
#include "tests/actors/kit.h"

#include <pthread.h>

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

static void *drop(void *done)
{
	EXPECT_EQ(noh_schedule_drop(k.box, "later:pad:a", NOH_LATER_DUE, 3600000), NOH_OK);
	store_release((atomic_u32 *)done, 1);
	return NULL;
}

/* It waits for its answer, so it is another thread's. */
static void drop_timer(void)
{
	atomic_u32 done = 0;
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, drop, &done), 0);
	while (!load_acquire(&done)) {
		kit_run(true);
		sched_yield();
	}
	pthread_join(thread, NULL);
}

/* Whoever cares for the server takes its timer away: what comes then arrives nevertheless. */
static void a_timer_that_was_taken_away_is_set_again(void)
{
	begin(true);
	EXPECT_EQ(send("later:pad:a", 100, NOTE, 'x', NULL), NOH_OK);
	drop_timer();
	kit_pass_ms(150);
	EXPECT_EQ(got.count, 0);
	EXPECT_EQ(send("later:pad:a", 100, NOTE, 'y', NULL), NOH_OK);
	for (int i = 0; i < 3; i++)
		kit_pass_ms(100);
	EXPECT_EQ(strcmp(got.text, "xy"), 0);
	EXPECT(!exists("later:pad:a"));
	kit_end();
}

static void all_that_waits_can_be_forgotten(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		uint64_t count = 99;

		begin(durable);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(send("later:pad:a", 100, NOTE, 'x', NULL), NOH_OK);
		EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CLEAR, "x", 1, NULL), NOH_EINVAL);
		EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CLEAR, NULL, 0, NULL), NOH_OK);
		if (EXPECT_EQ(k.heard.len, sizeof count))
			memcpy(&count, k.heard.body, sizeof count);
		EXPECT_EQ(count, 3);
		EXPECT(!exists("later:pad:a"));
		EXPECT_EQ(kit_call("later:pad:a", NOH_LATER_CLEAR, NULL, 0, NULL), NOH_OK);
		EXPECT_EQ(*(const uint64_t *)(const void *)k.heard.body, 0);
		EXPECT(!exists("later:pad:a"));
		kit_pass_ms(200);
		EXPECT_EQ(got.count, 0);
		EXPECT_EQ(send("later:pad:a", 100, NOTE, 'y', NULL), NOH_OK);
		kit_pass_ms(150);
		EXPECT_EQ(strcmp(got.text, "y"), 0);
		kit_end();
	}
}

static struct { noh_later_list head; noh_later_waiting page[NOH_LATER_PAGE_MAX]; } told;

static int list(noh_later_sent after, uint32_t limit)
{
	noh_later_page m = { .after = after, .limit = limit };
	int rc = kit_call("later:pad:a", NOH_LATER_LIST, &m, sizeof m, NULL);

	memset(&told, 0, sizeof told);
	if (rc == NOH_OK && EXPECT(k.heard.len <= sizeof told))
		memcpy(&told, k.heard.body, k.heard.len);
	return rc;
}

static void what_waits_is_told_page_by_page(void)
{
	IN_MEMORY_AND_ON_DISK(durable) {
		noh_later_sent first, second, none = { 0 };

		begin(durable);
		EXPECT_EQ(list(none, 10), NOH_OK);
		EXPECT_EQ(told.head.waiting, 0);
		EXPECT_EQ(told.head.count, 0);
		EXPECT(!exists("later:pad:a"));
		EXPECT_EQ(send("later:pad:a", 2000, NOTE, 'b', NULL), NOH_OK);
		second = sent();
		EXPECT_EQ(send("later:pad:a", 1000, 77, 'a', NULL), NOH_OK);
		first = sent();
		EXPECT_EQ(list(none, 1), NOH_OK);
		EXPECT_EQ(told.head.waiting, 2);
		EXPECT_EQ(told.head.count, 1);
		EXPECT_EQ(told.head.more, 1);
		EXPECT_EQ(memcmp(&told.page[0].sent, &first, sizeof first), 0);
		EXPECT_EQ(told.page[0].kind, 77);
		EXPECT_EQ(told.page[0].len, 1);
		EXPECT_EQ(told.page[0].name[0], 0);      /* its type has no such kind */
		EXPECT_EQ(list(first, 1), NOH_OK);
		EXPECT_EQ(told.head.count, 1);
		EXPECT_EQ(told.head.more, 0);
		EXPECT_EQ(memcmp(&told.page[0].sent, &second, sizeof second), 0);
		EXPECT_EQ(strcmp(told.page[0].name, "note"), 0);
		EXPECT_EQ(list(second, 1), NOH_OK);
		EXPECT_EQ(told.head.count, 0);
		EXPECT_EQ(list(none, 0), NOH_EINVAL);
		EXPECT_EQ(list(none, NOH_LATER_PAGE_MAX + 1), NOH_EINVAL);
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
	TEST(a_timer_that_was_taken_away_is_set_again),
	TEST(all_that_waits_can_be_forgotten),
	TEST(what_waits_is_told_page_by_page),
	TEST(many_that_are_due_together_all_arrive_in_order),
	TEST(what_nobody_takes_is_logged_and_dropped),
	TEST(what_is_no_proper_message_is_refused))
