/* tests/interleave/mailbox_cases.c - messages: nothing lost, doubled or reordered; capacity exact;
 * one runner at a time; nobody idle with a message waiting; nothing for a dead actor. */
#include "tests/interleave/common.h"

static void all_handled_and_idle(int boxes, int threads)
{
	for (int i = 0; i < boxes; i++)
		expect_idle(i);
	CHECK(b.accepted == b.handled + b.dropped);
	expect_all_rings_home(threads);
}

/* ── two senders; who wakes the actor runs it ──────────────────────────────────────────────────── */
static void one_box_two_threads(void) { open_rings(2); born(0); }
static void send_twice(int t) { send_and_run(t, 0); send_and_run(t, 0); }
static void all_of_one_two(void)
{
	all_handled_and_idle(1, 2);
	CHECK(b.accepted == 4 && b.dropped == 0);
	CHECK(b.wakes == b.idles && b.wakes >= 1);
}

/* ── two senders and a worker that runs the actor: growth through three rings ──────────────────── */
static void busy_with_three(void)
{
	open_rings(3);
	born(0);
	for (int i = 0; i < 3; i++)
		(void)send_to(2, 0, b.gen[0]);        /* 1 slot, then 2 */
	CHECK(b.wakes == 1);
}
static void two_send_one_runs(int t)
{
	if (t == 2)
		run_actor(2, 0);
	else
		send_twice(t);
}
static void all_of_three(void)
{
	all_handled_and_idle(1, 3);
	CHECK(b.accepted == 7 && b.dropped == 0);
	CHECK(b.wakes == b.idles);
}

/* ── one slot for ever: the ring laps while it is read, and late releases make it grow ─────────── */
static void busy_with_one(void)
{
	open_rings(2);
	born(0);
	(void)send_to(1, 0, b.gen[0]);
}
static void one_sends_one_runs(int t)
{
	if (t == 1) {
		run_actor(1, 0);
	} else {
		send_and_run(0, 0);
		send_and_run(0, 0);
		send_and_run(0, 0);
	}
}
static void all_of_one_sender(void)
{
	all_handled_and_idle(1, 2);
	CHECK(b.accepted == 4 && b.wakes == b.idles);
}

/* ── rings of a busy mailbox that are changed for old age ──────────────────────────────────────── */
static void busy_with_old_ring(void)
{
	busy_with_one();
	ring_life = 2;
}

/* ── capacity ──────────────────────────────────────────────────────────────────────────────────── */
static void watch_capacity(void)
{
	uint64_t n = waiting(0);

	CHECK(n <= b.capacity);
	for (int t = 0; t < THREADS_MAX; t++)
		if (n > b.seen_full[t])
			b.seen_full[t] = n;
}
static void send_or_be_refused(int t)
{
	enum mb_push got = send_to(t, 0, b.gen[0]);

	if (got == MB_FULL)                           /* it was full while we asked, or we saw late */
		CHECK(WEAK_MEMORY || b.seen_full[t] == b.capacity);
	else if (got == MB_PUSHED_WAKE)
		run_actor(t, 0);
}
static void capacity_one(void) { one_box_two_threads(); b.capacity = 1; }
static void capacity_two(void) { busy_with_one(); b.capacity = 2; }
static void capacity_two_three_threads(void)
{
	open_rings(3);
	born(0);
	(void)send_to(2, 0, b.gen[0]);
	b.capacity = 2;
}
static void send_refused_twice(int t) { send_or_be_refused(t); send_or_be_refused(t); }
static void two_refused_one_runs(int t)
{
	if (t == 2)
		run_actor(2, 0);
	else
		send_or_be_refused(t);
}
static void run_and_refuse(int t)
{
	if (t == 1) {
		run_actor(1, 0);
		send_or_be_refused(1);
	} else {
		send_refused_twice(0);
		send_or_be_refused(0);
	}
}
static void finish_two(void) { all_handled_and_idle(1, 2); CHECK(b.wakes == b.idles); }
static void finish_three(void) { all_handled_and_idle(1, 3); CHECK(b.wakes == b.idles); }

/* ── drop_oldest ───────────────────────────────────────────────────────────────────────────────── */
static void dropping(uint32_t capacity) { b.shared = true; b.capacity = capacity; }
static void drop_one(void) { one_box_two_threads(); dropping(1); }
static void drop_two(void)
{
	open_rings(3);
	born(0);
	(void)send_to(2, 0, b.gen[0]);
	(void)send_to(2, 0, b.gen[0]);
	dropping(2);
}
static void drop_five(void)                     /* 1 in one slot, 2 in two, 2 of four */
{
	open_rings(3);
	born(0);
	for (int i = 0; i < 5; i++)
		(void)send_to(2, 0, b.gen[0]);
	dropping(5);
}
static void three_send(void)
{
	open_rings(3);
	born(0);
	for (int i = 0; i < 3; i++)
		(void)send_to(2, 0, b.gen[0]);
}
static void two_waiting(void)                   /* one place left in the second ring */
{
	open_rings(2);
	born(0);
	(void)send_to(0, 0, b.gen[0]);
	(void)send_to(0, 0, b.gen[0]);
}
static void send_across(int t)                  /* the last place, then a ring the other has not seen */
{
	(void)send_to(t, 0, b.gen[0]);
	if (t == 1)
		(void)send_to(t, 0, b.gen[0]);
}
static void run_all(void)
{
	run_actor(0, 0);
	all_handled_and_idle(1, 2);
	CHECK(b.handled == 5);
}
static void run_across(int t)
{
	if (t == 0)
		send_run(0, 0);
	else
		send_across(1);
}
static void six_handled(void)
{
	run_actor(0, 0);
	all_handled_and_idle(1, 2);
	CHECK(b.handled == 6);
}
static void two_runs_and_cursor(void)           /* three places left of four */
{
	open_rings(3);
	born(0);
	b.cursor = true;
	for (int i = 0; i < 4; i++)
		(void)send_to(2, 0, b.gen[0]);
}
static void runs_and_cursor(int t)
{
	if (t == 2)
		run_actor(2, 0);
	else if (t == 1)
		send_and_run(1, 0);
	else
		send_run(0, 0);
}
static void runs_from_idle(void) { one_box_two_threads(); b.cursor = true; }
static void send_runs(int t)
{
	send_run(t, 0);
	send_run(t, 0);
}
static void drop_and_grow(void) { three_send(); dropping(3); }
static void drop_send_run(int t)                /* a dropper meets a ring that he has not seen */
{
	struct mailroom room = room_of(t);
	struct slot    *slot;

	if (t == 2) {
		run_actor(2, 0);
	} else if (t == 1) {
		send_and_run(1, 0);
		send_and_run(1, 0);
	} else if (mailbox_drop(&w->box[0], &room, b.gen[0], &slot) == MB_TAKEN) {
		take_note(0, b.gen[0], slot, false);
	}
}
static void two_drop_one_runs(int t)
{
	if (t == 2)
		run_actor(2, 0);
	else
		send_and_run(t, 0);
}

/* ── two mailboxes share rings: what one gives back the other attaches ─────────────────────────── */
static void two_boxes(void) { open_rings(2); born(0); born(1); }
static void two_boxes_dropping(void) { two_boxes(); dropping(1); }
static void to_both(int t)
{
	send_and_run(t, t);
	send_and_run(t, 1 - t);
	send_and_run(t, t);
}
static void finish_both(void) { all_handled_and_idle(2, 2); CHECK(b.wakes == b.idles); }

/* ── turn in place: one runner ─────────────────────────────────────────────────────────────────── */
static void claim_or_send(int t)
{
	b.in_place = true;
	for (int i = 0; i < 2; i++) {
		if (mailbox_claim(&w->box[0], b.gen[0])) {
			b.wakes++;
			run_actor(t, 0);
		} else {
			send_and_run(t, 0);
		}
	}
}
static void claim_claim_send(int t)
{
	if (t == 2)
		send_and_run(2, 0);
	else
		claim_or_send(t);
}
static void one_box_three_threads(void) { open_rings(3); born(0); }

/* ── death and the cell's next actor: nothing of the old one gets through ──────────────────────── */
static bool kill_and_bear(int t)
{
	struct mailroom room = room_of(t);

	for (;;) {
		drain(t, 0);
		leave(0);
		if (mailbox_kill(&w->box[0], &room)) {
			b.kills++;
			born(0);
			return true;
		}
		enter(0);
	}
}
static void dies_and_sends(int t)
{
	if (t == 0) {
		if (mailbox_claim(&w->box[0], b.gen[0])) {
			enter(0);
			(void)kill_and_bear(0);
		}
		send_and_run(0, 0);
	} else {
		uint32_t     gen = 0;                 /* of the first actor */
		enum mb_push got;

		for (int i = 0; i < 2; i++) {
			got = send_to(t, 0, gen);
			CHECK(got == MB_GONE || got == MB_PUSHED || got == MB_PUSHED_WAKE);
			if (got == MB_PUSHED_WAKE)
				run_actor(t, 0);
			if (mailbox_claim(&w->box[0], gen)) {
				CHECK(b.gen[0] == gen);
				run_actor(t, 0);
			}
		}
	}
}
static void finish_dead(void) { all_handled_and_idle(1, 2); }

/* A dropper of the old actor against the new one, which is full with one message. */
static void old_dropper(void)
{
	busy_with_one();
	dropping(1);
}
static void drops_or_dies(int t)
{
	if (t == 1) {
		enter(0);
		(void)kill_and_bear(1);
		b.sent[0][1] = 10;
		if (send_to(1, 0, b.gen[0]) == MB_PUSHED_WAKE)
			run_actor(1, 0);
		CHECK(b.last[0][1] == 11);               /* the new actor's message was handled */
	} else {
		if (send_to(0, 0, 0) == MB_PUSHED_WAKE)
			run_actor(0, 0);
		if (send_to(0, 0, 0) == MB_PUSHED_WAKE)
			run_actor(0, 0);
	}
}

const struct a_case mailbox_cases[] = {
	{ "push_push", 2, one_box_two_threads, send_twice, all_of_one_two, NULL, 3, 5 },
	{ "push_push_run", 3, busy_with_three, two_send_one_runs, all_of_three, NULL, 2, 3 },
	{ "lap", 2, busy_with_one, one_sends_one_runs, all_of_one_sender, NULL, 3, 6 },
	{ "old_ring", 2, busy_with_old_ring, one_sends_one_runs, all_of_one_sender, NULL, 3, 5 },
	{ "capacity_one", 2, capacity_one, send_refused_twice, finish_two, watch_capacity, 3, 5 },
	{ "capacity_two", 2, capacity_two, run_and_refuse, finish_two, watch_capacity, 3, 5 },
	{ "capacity_three", 3, capacity_two_three_threads, two_refused_one_runs, finish_three,
	  watch_capacity, 2, 4 },
	{ "drop_one", 2, drop_one, send_twice, finish_two, NULL, 3, 5 },
	{ "drop_two", 3, drop_two, two_drop_one_runs, finish_three, NULL, 2, 4 },
	{ "drop_five", 3, drop_five, two_drop_one_runs, finish_three, NULL, 2, 3 },
	{ "grow", 3, three_send, two_drop_one_runs, finish_three, NULL, 2, 4 },
	{ "grow_across", 2, two_waiting, send_across, run_all, NULL, 4, 7 },
	{ "run_across", 2, two_waiting, run_across, six_handled, NULL, 4, 6 },
	{ "run_cursor", 3, two_runs_and_cursor, runs_and_cursor, finish_three, NULL, 2, 3 },
	{ "run_idle", 2, runs_from_idle, send_runs, finish_two, NULL, 2, 4 },
	{ "drop_grow", 3, drop_and_grow, drop_send_run, finish_three, NULL, 2, 3 },
	{ "two_boxes", 2, two_boxes, to_both, finish_both, NULL, 2, 4 },
	{ "two_boxes_drop", 2, two_boxes_dropping, to_both, finish_both, NULL, 2, 4 },
	{ "claim_claim", 2, one_box_two_threads, claim_or_send, finish_two, NULL, 4, 6 },
	{ "claim_claim_push", 3, one_box_three_threads, claim_claim_send, finish_three, NULL, 2, 3 },
	{ "kill_push", 2, one_box_two_threads, dies_and_sends, finish_dead, NULL, 3, 5 },
	{ "kill_drop", 2, old_dropper, drops_or_dies, finish_dead, NULL, 3, 5 },
	{ NULL, 0, NULL, NULL, NULL, NULL, 0, 0 },
};
