/* tests/mailbox/mailbox_test.c - the mailbox by itself, one thread. Orders of steps: tests/interleave. */
#include "mailbox/mailbox.h"

#include "tests/lib/test.h"

#include <string.h>

static struct {
	struct mailbox    box, other;
	struct rings      rings;
	struct ring_cache cache;
	struct mailroom   room;
	uint32_t          sent;
} t;

static void open_box(uint32_t rings_of_each)
{
	memset(&t, 0, sizeof t);
	EXPECT(rings_open(&t.rings, rings_of_each + 1));
	t.room = (struct mailroom){ &t.rings, &t.cache };
	mailbox_born(&t.box, MB_IDLE);
	mailbox_born(&t.other, MB_IDLE);
}

static void close_box(void) { rings_close(&t.rings); }

static enum mb_push push_to(struct mailbox *m, uint32_t gen, uint32_t capacity, uint32_t number)
{
	struct msg msg = { .kind = number, .len = 4, .reply = UINT64_C(7) * number };

	memset(msg.body.bytes, (int)(number & 0xff), sizeof msg.body.bytes);
	return mailbox_push(m, &t.room, gen, capacity, &msg);
}
static enum mb_push push(uint32_t capacity) { return push_to(&t.box, 0, capacity, ++t.sent); }

/* The number of the next message, 0 if there is none. */
static uint32_t take(bool shared)
{
	struct slot *slot;

	if (mailbox_take(&t.box, &t.room, shared, &slot) != MB_TAKEN)
		return 0;
	uint32_t number = slot->msg.kind;
	EXPECT_EQ(slot->msg.reply, UINT64_C(7) * number);
	EXPECT_EQ(slot->msg.body.bytes[MSG_INLINE - 1], number & 0xff);
	mailbox_release(slot);
	return number;
}

static void the_first_message_wakes_and_the_second_does_not(void)
{
	open_box(8);
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED_WAKE);
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED);
	EXPECT_EQ(mailbox_depth(&t.box), 2);
	EXPECT_EQ(take(false), 1);
	EXPECT(!mailbox_idle(&t.box, &t.room, false));
	EXPECT_EQ(take(false), 2);
	EXPECT_EQ(take(false), 0);
	EXPECT(mailbox_idle(&t.box, &t.room, false));
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED_WAKE);
	close_box();
}

static void capacity_is_exact_although_rings_are_powers_of_two(void)
{
	for (uint32_t capacity = 1; capacity <= 40; capacity++) {
		open_box(8);
		for (uint32_t i = 0; i < capacity; i++)
			EXPECT(push(capacity) <= MB_PUSHED_WAKE);
		EXPECT_EQ(push(capacity), MB_FULL);
		EXPECT_EQ(mailbox_depth(&t.box), capacity);
		EXPECT_EQ(take(false), 1);
		EXPECT_EQ(push(capacity), MB_PUSHED);
		EXPECT_EQ(push(capacity), MB_FULL);
		close_box();
	}
}

static void it_grows_through_many_rings_and_keeps_the_order(void)
{
	uint32_t got = 0;

	open_box(1);
	for (int again = 0; again < 20; again++) {         /* with the same rings: one of each class */
		for (int i = 0; i < 300; i++)
			EXPECT(push(UINT32_MAX) <= MB_PUSHED_WAKE);
		for (int i = 0; i < 100; i++)
			EXPECT_EQ(take(false), ++got);
		for (int i = 0; i < 2000 * again; i++)
			EXPECT(push(UINT32_MAX) <= MB_PUSHED_WAKE);
		while (got < t.sent && EXPECT_EQ(take(false), got + 1))
			got++;
		EXPECT(mailbox_idle(&t.box, &t.room, false));
	}
	close_box();
}

/* A run of up to n messages; how many went in. */
static uint32_t push_run(uint32_t n, enum mb_push *how)
{
	struct msg msgs[64];
	const struct msg *run[64];

	for (uint32_t i = 0; i < n; i++) {
		msgs[i] = (struct msg){ .kind = t.sent + i + 1, .len = 4, .reply = UINT64_C(7) * (t.sent + i + 1) };
		memset(msgs[i].body.bytes, (int)((t.sent + i + 1) & 0xff), MSG_INLINE);
		run[i] = &msgs[i];
	}
	*how = mailbox_push_run(&t.box, &t.room, 0, run, &n);
	if (*how <= MB_PUSHED_WAKE)
		t.sent += n;
	return n;
}

static void a_run_comes_with_one_ring_that_holds_it(void)
{
	enum mb_push how;
	uint32_t got = 0;

	open_box(2);
	for (int again = 0; again < 40; again++) {       /* a run ends anywhere in its ring */
		EXPECT_EQ(push_run(9, &how), 9);
		EXPECT_EQ(how, MB_PUSHED_WAKE);
		EXPECT_EQ(push_to(&t.other, 0, UINT32_MAX, 1), MB_PUSHED_WAKE);  /* no small ring is out: both are here */
		EXPECT_EQ(push_run(40, &how), 7);                /* what is left of 16 places */
		EXPECT_EQ(how, MB_PUSHED);
		EXPECT_EQ(push_run(40, &how), 1);                /* a larger ring */
		EXPECT_EQ(push_run(40, &how), 40);
		EXPECT_EQ(mailbox_depth(&t.box), 57);
		while (got < t.sent && EXPECT_EQ(take(false), got + 1))
			got++;
		EXPECT_EQ(take(false), 0);
		EXPECT(mailbox_idle(&t.box, &t.room, false));
		struct slot *slot;
		EXPECT_EQ(mailbox_take(&t.other, &t.room, false, &slot), MB_TAKEN);
		mailbox_release(slot);
		EXPECT(mailbox_idle(&t.other, &t.room, false));
	}
	close_box();
}

/* Without a ring of its size a run goes in by ones; to the dead nothing does. */
static void a_run_makes_do_with_small_rings(void)
{
	enum mb_push how;
	struct ring_cache others = { 0 };

	open_box(1);
	EXPECT(ring_take(&t.rings, &others, 1) != 0);
	EXPECT_EQ(push_run(9, &how), 1);
	EXPECT_EQ(how, MB_PUSHED_WAKE);
	EXPECT_EQ(push_run(9, &how), 3);
	EXPECT_EQ(push_run(9, &how), 1);
	EXPECT_EQ(how, MB_NOMEM);
	for (uint32_t i = 1; i <= 4; i++)
		EXPECT_EQ(take(false), i);
	EXPECT(mailbox_kill(&t.box, &t.room));
	(void)push_run(9, &how);
	EXPECT_EQ(how, MB_GONE);
	close_box();
}

static void an_idle_mailbox_owns_no_ring(void)
{
	open_box(1);
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(push(UINT32_MAX), MB_PUSHED_WAKE);
		EXPECT_EQ(push_to(&t.other, 0, UINT32_MAX, 1), MB_NOMEM);   /* the only small ring is out */
		EXPECT_EQ(take(i & 1), (uint32_t)i + 1);
		EXPECT(mailbox_idle(&t.box, &t.room, i & 1));
		EXPECT_EQ(mailbox_depth(&t.box), 0);
	}
	EXPECT_EQ(push_to(&t.other, 0, UINT32_MAX, 1), MB_PUSHED_WAKE);
	close_box();
}

static void the_oldest_is_dropped_to_make_room(void)
{
	struct slot *slot;

	open_box(8);
	for (int i = 0; i < 3; i++)
		EXPECT(push(3) <= MB_PUSHED_WAKE);
	EXPECT_EQ(push(3), MB_FULL);
	EXPECT_EQ(mailbox_drop(&t.box, &t.room, 0, &slot), MB_TAKEN);
	EXPECT_EQ(slot->msg.kind, 1);
	mailbox_release(slot);
	EXPECT_EQ(push(3), MB_PUSHED);
	EXPECT_EQ(take(true), 2);
	EXPECT_EQ(take(true), 3);
	EXPECT_EQ(take(true), 5);
	EXPECT(mailbox_idle(&t.box, &t.room, true));
	EXPECT_EQ(mailbox_drop(&t.box, &t.room, 0, &slot), MB_EMPTY);
	close_box();
}

/* Its ring goes home and comes back, but the slot is not written before it is released. */
static void a_slow_dropper_keeps_his_slot(void)
{
	struct slot *slow;

	open_box(8);
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED_WAKE);
	EXPECT_EQ(mailbox_drop(&t.box, &t.room, 0, &slow), MB_TAKEN);
	EXPECT(mailbox_idle(&t.box, &t.room, true));
	for (uint32_t lap = 0; lap < 30; lap++) {
		EXPECT_EQ(push(UINT32_MAX), MB_PUSHED_WAKE);
		EXPECT_EQ(take(true), t.sent);
		EXPECT(mailbox_idle(&t.box, &t.room, true));
		EXPECT_EQ(slow->msg.kind, 1);
	}
	mailbox_release(slow);
	for (uint32_t i = 0; i < 9; i++)
		EXPECT(push(UINT32_MAX) <= MB_PUSHED_WAKE);
	for (uint32_t i = 0; i < 9; i++)
		EXPECT_EQ(take(true), 32 + i);
	EXPECT(mailbox_idle(&t.box, &t.room, true));
	close_box();
}

static void the_dead_get_nothing(void)
{
	struct sysmsg node, *back;
	struct slot  *slot;

	open_box(8);
	EXPECT(mailbox_claim(&t.box, 0));
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED);
	EXPECT(!mailbox_kill(&t.box, &t.room));            /* not while a message waits */
	EXPECT_EQ(take(false), 1);
	EXPECT(mailbox_kill(&t.box, &t.room));
	EXPECT_EQ(push(UINT32_MAX), MB_GONE);
	EXPECT(!mailbox_claim(&t.box, 0));
	EXPECT(!mailbox_sys_push(&t.box, 0, &node, &back));
	EXPECT(back == &node);
	EXPECT_EQ(mailbox_drop(&t.box, &t.room, 0, &slot), MB_EMPTY);
	mailbox_born(&t.box, MB_IDLE);
	EXPECT_EQ(push(UINT32_MAX), MB_GONE);               /* the cell's next actor is another */
	EXPECT(!mailbox_claim(&t.box, 0));
	EXPECT_EQ(push_to(&t.box, 1, UINT32_MAX, 9), MB_PUSHED_WAKE);
	EXPECT_EQ(mailbox_drop(&t.box, &t.room, 0, &slot), MB_EMPTY);
	EXPECT_EQ(take(true), 9);
	close_box();
}

static void one_claim_at_a_time(void)
{
	open_box(8);
	EXPECT(mailbox_claim(&t.box, 0));
	EXPECT(!mailbox_claim(&t.box, 0));
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED);
	EXPECT(!mailbox_idle_in_place(&t.box));
	EXPECT(!mailbox_idle(&t.box, &t.room, false));
	EXPECT_EQ(take(false), 1);
	EXPECT(mailbox_idle(&t.box, &t.room, false));
	EXPECT(mailbox_claim(&t.box, 0));
	EXPECT(mailbox_idle_in_place(&t.box));
	EXPECT(mailbox_claim(&t.box, 0));
	close_box();
}

static void a_parked_actor_wakes_for_the_system_lane_only(void)
{
	struct sysmsg node, *back;

	open_box(8);
	EXPECT(mailbox_claim(&t.box, 0));
	EXPECT(mailbox_park(&t.box));
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED);
	EXPECT(!mailbox_claim(&t.box, 0));
	EXPECT(mailbox_sys_push(&t.box, 0, &node, &back));
	EXPECT(!back);
	EXPECT(!mailbox_park(&t.box));                      /* the node is still there */
	EXPECT(mailbox_sys_take(&t.box) == &node);
	EXPECT(mailbox_park(&t.box));
	EXPECT(mailbox_wake(&t.box));
	EXPECT(!mailbox_wake(&t.box));
	EXPECT_EQ(take(false), 1);
	EXPECT(mailbox_idle(&t.box, &t.room, false));
	close_box();
}

static void the_system_lane_is_in_order_and_takes_no_room(void)
{
	struct sysmsg node[3], *back, *list;

	open_box(8);
	EXPECT_EQ(push(1), MB_PUSHED_WAKE);
	for (int i = 0; i < 3; i++)
		EXPECT(!mailbox_sys_push(&t.box, 0, &node[i], &back) && !back);
	EXPECT_EQ(mailbox_depth(&t.box), 1);
	EXPECT_EQ(take(false), 1);
	EXPECT(!mailbox_idle(&t.box, &t.room, false));
	EXPECT(!mailbox_kill(&t.box, &t.room));
	list = mailbox_sys_take(&t.box);
	EXPECT(list == &node[0] && list->next == &node[1] && list->next->next == &node[2]);
	EXPECT(node[2].next == NULL);
	EXPECT(mailbox_sys_take(&t.box) == NULL);
	EXPECT(!mailbox_sys_push(&t.box, 0, &node[0], &back));
	mailbox_sys_put_back(&t.box, &node[1]);                /* in front of what came since */
	list = mailbox_sys_take(&t.box);
	EXPECT(list == &node[1] && list->next == &node[2] && node[2].next == &node[0] && node[0].next == NULL);
	EXPECT(mailbox_idle(&t.box, &t.room, false));
	EXPECT(mailbox_sys_push(&t.box, 0, &node[0], &back));  /* idle: the caller must run it */
	close_box();
}

static void who_waits_for_room_is_remembered_while_it_runs(void)
{
	struct sysmsg node[2];

	open_box(8);
	EXPECT(mailbox_ask_room(&t.box, &node[0]) == &node[0]);   /* idle: there is room */
	EXPECT(!mailbox_flag_room(&t.box));
	EXPECT_EQ(push(1), MB_PUSHED_WAKE);
	EXPECT_EQ(push(1), MB_FULL);
	EXPECT(mailbox_ask_room(&t.box, &node[0]) == NULL);
	EXPECT(mailbox_ask_room(&t.box, &node[1]) == NULL);
	EXPECT_EQ(take(false), 1);
	EXPECT(!mailbox_idle(&t.box, &t.room, false));
	struct sysmsg *list = mailbox_take_waiters(&t.box);
	EXPECT(list == &node[0] && list->next == &node[1] && !node[1].next);
	EXPECT(mailbox_take_waiters(&t.box) == NULL);
	EXPECT(mailbox_idle(&t.box, &t.room, false));
	close_box();
}

static void tails_wrap_round(void)
{
	uint32_t got = 0;

	open_box(8);
	t.box.word = mb_word(MB_DEAD, 0, MB_TAIL_MASK - 20);
	mailbox_born(&t.box, MB_IDLE);
	for (int round = 0; round < 10; round++) {
		EXPECT_EQ(push(7), MB_PUSHED_WAKE);
		for (int i = 0; i < 6; i++)
			EXPECT_EQ(push(7), MB_PUSHED);
		EXPECT_EQ(push_to(&t.box, 0, 7, 99), MB_FULL);
		EXPECT_EQ(mailbox_depth(&t.box), 7);
		for (int i = 0; i < 7; i++)
			EXPECT_EQ(take(round & 1), ++got);
		EXPECT_EQ(take(round & 1), 0);
		EXPECT(mailbox_idle(&t.box, &t.room, round & 1));
	}
	close_box();
}

/* A mailbox that is never empty: its ring has given out 2^31 positions. */
static void an_old_ring_is_changed_for_a_fresh_one(void)
{
	open_box(8);
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED_WAKE);
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED);
	uint32_t     old = mb_ring(t.box.word);
	struct ring *r = ring_at(&t.rings, old);
	uint64_t     age = (UINT64_C(1) << 31) - 2;

	r->start = (r->start - age) & MB_TAIL_MASK;          /* the same positions, seen from further */
	r->base = r->base - age;
	EXPECT_EQ(push(UINT32_MAX), MB_PUSHED);
	EXPECT(mb_ring(t.box.word) != old);
	EXPECT_EQ(ring_class(mb_ring(t.box.word)), ring_class(old));
	EXPECT_EQ(mailbox_depth(&t.box), 3);
	for (uint32_t i = 1; i <= 3; i++)
		EXPECT_EQ(take(false), i);
	EXPECT(mailbox_idle(&t.box, &t.room, false));
	for (uint32_t i = 4; i < 30; i++) {                  /* both are ready for use */
		EXPECT(push(UINT32_MAX) <= MB_PUSHED_WAKE);
		EXPECT(push_to(&t.other, 0, UINT32_MAX, i) <= MB_PUSHED_WAKE);
	}
	for (uint32_t i = 4; i < 30; i++)
		EXPECT_EQ(take(false), i);
	close_box();
}

/* A few large rings must not all lie in the cache of whoever came first. */
static void nobody_keeps_the_rings_that_others_need(void)
{
	static struct ring_cache others[4];
	struct mailbox box[4];

	open_box(16);
	memset(others, 0, sizeof others);
	memset(box, 0, sizeof box);
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 4; i++) {
			struct mailroom sender = { &t.rings, &others[i] };
			struct msg      m = { .kind = 1 };
			struct slot    *slot;

			if (round == 0)
				mailbox_born(&box[i], MB_IDLE);
			EXPECT_EQ(mailbox_push(&box[i], &sender, 0, UINT32_MAX, &m), MB_PUSHED_WAKE);
			EXPECT_EQ(mailbox_take(&box[i], &t.room, false, &slot), MB_TAKEN);
			mailbox_release(slot);
			EXPECT(mailbox_idle(&box[i], &t.room, false));  /* the ring goes to the runner */
		}
	close_box();
}

TEST_MAIN(
	TEST(the_first_message_wakes_and_the_second_does_not),
	TEST(capacity_is_exact_although_rings_are_powers_of_two, "MB-01 MB-02 MB-04 MB-09"),
	TEST(it_grows_through_many_rings_and_keeps_the_order),
	TEST(a_run_comes_with_one_ring_that_holds_it),
	TEST(a_run_makes_do_with_small_rings),
	TEST(an_idle_mailbox_owns_no_ring),
	TEST(nobody_keeps_the_rings_that_others_need),
	TEST(the_oldest_is_dropped_to_make_room, "MB-03 MB-16"),
	TEST(a_slow_dropper_keeps_his_slot),
	TEST(the_dead_get_nothing),
	TEST(one_claim_at_a_time),
	TEST(a_parked_actor_wakes_for_the_system_lane_only),
	TEST(the_system_lane_is_in_order_and_takes_no_room),
	TEST(who_waits_for_room_is_remembered_while_it_runs),
	TEST(tails_wrap_round),
	TEST(an_old_ring_is_changed_for_a_fresh_one))
