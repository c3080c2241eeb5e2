/* tests/interleave/lane_cases.c - the system lane, parking of an actor, waiting for room: no node is
 * lost or given out twice, nobody sleeps while something waits for him. */
#include "tests/interleave/common.h"

static void handed_back(struct sysmsg *list)
{
	while (list) {
		struct sysmsg *next = list->next;

		b.node_back[node_index(list)]++;
		list = next;
	}
}

/* Node i to the actor of generation gen; whoever wakes it runs it. */
static void node_to(int t, uint32_t i, uint32_t gen, void (*run)(int t, int box))
{
	struct sysmsg *back;

	if (mailbox_sys_push(&w->box[0], gen, &w->node[i], &back)) {
		b.wakes++;
		run(t, 0);
	}
	handed_back(back);
}

static void expect_nodes(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		CHECK(b.node_seen[i] + b.node_back[i] == 1);
}

/* ── two nodes each against idle, and an ordinary message between ──────────────────────────────── */
static void one_box(void) { open_rings(2); born(0); }
static void nodes_and_message(int t)
{
	uint32_t first = 2 * (uint32_t)t;

	node_to(t, first, b.gen[0], run_actor);
	if (t == 0)
		send_and_run(t, 0);
	node_to(t, first + 1, b.gen[0], run_actor);
}
static void all_nodes_seen(void)
{
	expect_idle(0);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(b.node_seen[i] == 1 && b.node_back[i] == 0);
	CHECK(b.wakes == b.idles);
	expect_all_rings_home(2);
}

/* ── what was taken and cannot be served goes back in front of what came since ─────────────────── */
static void puts_back_while_sent_to(int t)
{
	if (t == 0) {
		struct sysmsg *list;
		uint32_t       seen = 0;

		list = mailbox_sys_take(&w->box[0]);
		if (list)
			mailbox_sys_put_back(&w->box[0], list);
		for (list = mailbox_sys_take(&w->box[0]); list; list = list->next) {
			CHECK(node_index(list) == seen);      /* one sender's, in order */
			b.node_seen[seen++]++;
		}
	} else {
		for (uint32_t i = 0; i < 3; i++) {
			struct sysmsg *back;

			CHECK(!mailbox_sys_push(&w->box[0], b.gen[0], &w->node[i], &back) && !back);
		}
	}
}
static void rest_in_order(void)
{
	struct sysmsg *list = mailbox_sys_take(&w->box[0]);

	for (uint32_t i = 0; i < 3; i++) {
		if (b.node_seen[i])
			continue;
		CHECK(list && node_index(list) == i);
		list = list->next;
	}
	CHECK(!list);
}

/* ── an actor that parks until its answer comes; ordinary messages do not wake it ──────────────── */
static void parking_run(int t, int box)
{
	enter(box);
	for (;;) {
		handle_nodes(mailbox_sys_take(&w->box[box]), b.gen[box]);
		if (b.node_seen[0] && b.node_seen[1])
			break;                        /* both answers are there: go on as usual */
		leave(box);
		if (mailbox_park(&w->box[box]))
			return;
		enter(box);
	}
	leave(box);
	run_actor(t, box);
}
static void parked_box(void)
{
	open_rings(3);
	born(0);
	CHECK(mailbox_claim(&w->box[0], b.gen[0]));
}
static void parks_and_answers(int t)
{
	if (t == 0) {
		parking_run(0, 0);
	} else if (t == 1) {
		node_to(1, 0, b.gen[0], parking_run);
		node_to(1, 1, b.gen[0], parking_run);
	} else {
		send_and_run(2, 0);
	}
}
static void parked_and_served(void)
{
	expect_idle(0);
	CHECK(b.node_seen[0] == 1 && b.node_seen[1] == 1);
	CHECK(b.accepted == 1 && b.handled == 1);
	expect_all_rings_home(3);
}

/* ── PARKED is left once ───────────────────────────────────────────────────────────────────────── */
static void park_then_wake(int t)
{
	if (t == 0) {
		w->state[0] = 1;
		CHECK(mailbox_park(&w->box[0]));
		b.kills++;                            /* parked */
	} else {
		if (mailbox_wake(&w->box[0])) {
			b.wakes++;
			enter(0);
		}
	}
}
static void woken_once(void)
{
	CHECK(b.kills == 1 && b.wakes <= 1);
	CHECK(mb_state(PEEK(w->box[0].word)) == (b.wakes ? MB_BUSY : MB_PARKED));
}

/* ── death: nodes are handled or handed back, once, also when the cell lives on as another ─────── */
static void die(int t)
{
	struct mailroom room = room_of(t);

	for (;;) {
		drain(t, 0);
		leave(0);
		if (mailbox_kill(&w->box[0], &room))
			return;
		enter(0);
	}
}
static void dying_box(void)
{
	open_rings(3);
	born(0);
	CHECK(mailbox_claim(&w->box[0], b.gen[0]));
}
static void dies_under_nodes(int t)
{
	if (t == 0) {
		enter(0);
		die(0);
	} else {
		node_to(t, (uint32_t)t - 1, 0, run_actor);
		if (t == 1)
			node_to(t, 2, 0, run_actor);
	}
}
static void all_back_or_seen(void)
{
	CHECK(mb_state(PEEK(w->box[0].word)) == MB_DEAD);
	CHECK(PEEK(w->box[0].sys) == NULL);
	expect_nodes(0, 3);
}
static void dies_and_is_born(int t)
{
	if (t == 0) {
		enter(0);
		die(0);
		born(0);
		node_to(0, 4, b.gen[0], run_actor);
	} else {
		node_to(t, (uint32_t)t - 1, 0, run_actor);
	}
}
static void new_one_was_served(void)
{
	expect_idle(0);
	expect_nodes(0, 2);
	CHECK(b.node_seen[4] == 1 && b.node_back[4] == 0);
}

/* ── room: who was refused waits, and is told ──────────────────────────────────────────────────── */
static void box_of_one(void)
{
	open_rings(2);
	born(0);
	b.capacity = 1;
}
static void full_box_of_one(void)
{
	open_rings(3);
	born(0);
	b.capacity = 1;
	(void)send_to(2, 0, b.gen[0]);
}
static void send_patiently(int t)
{
	for (;;) {
		enum mb_push got = send_to(t, 0, b.gen[0]);

		if (got == MB_PUSHED_WAKE)
			run_actor(t, 0);
		if (got != MB_FULL)
			return;
		b.sent[0][t]--;
		b.refused--;
		store_relaxed(&w->flag[t], 0);
		wake_waiters(mailbox_ask_room(&w->box[0], &w->node[t]));
		while (!load_acquire(&w->flag[t]))
			pause_here();
	}
}
static void send_two_patiently(int t) { send_patiently(t); send_patiently(t); }
static void two_wait_one_runs(int t)
{
	if (t == 2)
		run_actor(2, 0);
	else
		send_patiently(t);
}
static void nobody_waits(void)
{
	expect_idle(0);
	CHECK(b.accepted == b.handled && b.wakes == b.idles);
	expect_all_rings_home(2);
}
static void nobody_waits_3(void)
{
	expect_idle(0);
	CHECK(b.accepted == 3 && b.handled == 3 && b.wakes == b.idles);
	expect_all_rings_home(3);
}

const struct a_case lane_cases[] = {
	{ "lane_idle", 2, one_box, nodes_and_message, all_nodes_seen, NULL, 3, 5 },
	{ "lane_park", 3, parked_box, parks_and_answers, parked_and_served, NULL, 3, 5 },
	{ "lane_back", 2, parked_box, puts_back_while_sent_to, rest_in_order, NULL, 4, 9 },
	{ "park_wake", 3, parked_box, park_then_wake, woken_once, NULL, 9, 9 },
	{ "lane_kill", 3, dying_box, dies_under_nodes, all_back_or_seen, NULL, 3, 5 },
	{ "lane_reborn", 3, dying_box, dies_and_is_born, new_one_was_served, NULL, 3, 4 },
	{ "room", 2, box_of_one, send_two_patiently, nobody_waits, NULL, 3, 5 },
	{ "room_run", 3, full_box_of_one, two_wait_one_runs, nobody_waits_3, NULL, 2, 3 },
	{ NULL, 0, NULL, NULL, NULL, NULL, 0, 0 },
};
