/* tests/interleave/journal_cases.c - records on their way to the journaller: durable means collected, an
 * effect never comes before its cause, nobody waits for a sleeping journaller, what found no room goes when there is some. */
#include "tests/interleave/common.h"

#define RECORDS 4

static struct {
	uint64_t due[RECORDS + 1];              /* of record n; 0: not pushed              */
	uint64_t frame[RECORDS + 1];            /* the epoch that collected it; 0: none    */
	uint64_t ended;                         /* the last epoch that was collected       */
	uint32_t pushed[2];                     /* by ring: how many so far                */
} jc;

/* Rings of exactly two records, so that the third goes where the first was. */
static void open_gather(void)
{
	memset(&jc, 0, sizeof jc);
	w->gather.fixed.ring = w->gather_ring;
	w->gather.fixed.rings = 2;
	for (int i = 0; i < 2; i++) {
		w->gather_ring[i].fixed.bytes = w->gather_bytes[i];
		w->gather_ring[i].fixed.size = sizeof w->gather_bytes[i];
	}
	store_relaxed(&w->gather.shown.epoch, 1);
}

/* A record is its number and, where struct record_head has it, its tag; with what stands before it, half a ring. */
static bool push_record(int ring, uint64_t number)
{
	struct gather_ring *r = &w->gather_ring[ring];
	uint64_t words[3] = {0};

	if (!gather_room(r, sizeof words))
		return false;
	words[0] = number;
	words[1] = gather_epoch(&w->gather);
	memcpy(gather_reserve(&w->gather, r, sizeof words), words, sizeof words);
	w->gather_mark[ring][jc.pushed[ring]++ % 2] = (uint32_t)number;   /* stands for its bytes */
	gather_push(r);
	jc.due[number] = gather_epoch(&w->gather);
	return true;
}

/* End an epoch and take what belongs to it: how many records. */
static uint32_t collect(void)
{
	uint64_t limit[2], ended = gather_begin(&w->gather, limit);
	uint32_t taken = 0;

	for (int i = 0; i < 2; i++) {
		struct gather_ring *r = &w->gather_ring[i];
		struct gather_item  item;

		while (gather_peek(r, load_relaxed(&r->shared.head), limit[i], ended, &item)) {
			uint64_t number;

			memcpy(&number, item.record, sizeof number);
			CHECK(number >= 1 && number <= RECORDS && jc.frame[number] == 0);
			CHECK(w->gather_mark[i][load_relaxed(&r->shared.head) / 24 % 2] == number);
			jc.frame[number] = ended;
			gather_release(&w->gather, r, &item);
			taken++;
		}
	}
	jc.ended = ended;
	store_release(&w->durable, ended);
	return taken;
}

static void push_and_collect(int t)
{
	if (t == 0) {
		for (uint64_t n = 1; n <= 3; n++)
			if (!push_record(0, n))
				return;
	} else {
		for (int i = 0; i < 3; i++)
			(void)collect();
	}
}
static void durable_means_collected(void)
{
	for (int n = 1; n <= RECORDS; n++)
		if (jc.due[n] && jc.due[n] <= jc.ended)
			CHECK(jc.frame[n] && jc.frame[n] <= jc.due[n]);
}

static void cause_and_effect(int t)
{
	if (t == 0) {
		CHECK(push_record(0, 1));
		store_release(&w->flag[0], 1);          /* the message is sent after the push */
	} else if (t == 1) {
		if (load_acquire(&w->flag[0]))
			CHECK(push_record(1, 2));
	} else {
		(void)collect();
		(void)collect();
	}
}
static void no_effect_without_its_cause(void)
{
	durable_means_collected();
	if (jc.frame[2])
		CHECK(jc.frame[1] && jc.frame[1] <= jc.frame[2]);
}

/* As journal_loop does it. */
static void journaller(void)
{
	while (!load_seq_cst(&w->flag[1])) {
		if (gather_waiting(&w->gather)) {
			(void)collect();
			continue;
		}
		gather_announce(&w->gather);
		if (load_seq_cst(&w->flag[1]) || collect() > 0)
			gather_cancel(&w->gather);
		else
			gather_sleep(&w->gather, UINT64_MAX);
	}
}
static void push_and_wait(int t)
{
	if (t == 1) {
		journaller();
		return;
	}
	CHECK(push_record(0, 1));
	gather_wake(&w->gather);
	while (load_acquire(&w->durable) < jc.due[1])
		pause_here();
	CHECK(jc.frame[1] && jc.frame[1] <= jc.due[1]);
	store_seq_cst(&w->flag[1], 1);
	gather_wake(&w->gather);
}
static void all_was_collected(void)
{
	durable_means_collected();
	CHECK(jc.frame[1]);
}

/* ── what waits for room in the journal's ring: nothing stays behind (as notice.c does it) ──────── */
static uint32_t relay_pushed;

static void open_relay(void)
{
	relay_pushed = 0;
	w->relay_waits = 0;
	w->relay_went = 0;
}

/* flag[0]: so many have room, and no more. */
static bool relay_one(void)
{
	if (w->relay_went >= load_acquire(&w->flag[0]))
		return false;
	w->relay_went = w->relay_went + 1;
	w->relay_waits = w->relay_waits - 1;
	return true;
}

static bool relay_all(uint64_t *seen)
{
	bool late = false;

	for (struct sysmsg *n = (struct sysmsg *)relay_take(&w->relay); n; n = n->next)
		w->relay_waits = w->relay_waits + 1;
	while (w->relay_waits) {
		if (relay_one())
			continue;
		if (late)
			return true;
		late = true;
		*seen = relay_some_late(&w->relay, &w->durable);
	}
	relay_none_late(&w->relay);
	return false;
}

static void relay_pass(void)
{
	uint64_t seen = 0;
	bool late;

	do {
		if (!relay_hold(&w->relay))
			return;
		late = relay_all(&seen);
	} while (relay_let_go(&w->relay, late, &w->durable, seen));
}

static void relay_node(uint32_t i)
{
	void *top = relay_top(&w->relay);

	do
		w->node[i].next = (struct sysmsg *)top;
	while (!relay_push(&w->relay, &top, &w->node[i]));
	relay_pushed++;
	relay_pass();
}

/* Somebody makes room, as the journaller does: first the room, then progress, then a look at who is late. */
static void relay_room(uint32_t room)
{
	store_release(&w->flag[0], room);
	store_seq_cst(&w->durable, (uint64_t)room);
	if (relay_any_late(&w->relay))
		relay_pass();
}

static void open_relay_with_room(void)
{
	open_relay();
	store_relaxed(&w->flag[0], 4u);
}
static void relay_push_push(int t)
{
	relay_node((uint32_t)t);
	relay_node((uint32_t)t + 2);
}
static void relay_push_room(int t)
{
	if (t == 0)
		relay_node(0);
	else
		relay_room(1);
}
static void relay_push_two_rooms(int t)
{
	if (t == 2) {
		relay_room(1);
		relay_room(2);
	} else {
		relay_node((uint32_t)t);
	}
}
static void all_was_relayed(void)
{
	CHECK(w->relay_went == relay_pushed && w->relay_waits == 0);
	CHECK(PEEK(w->relay.pushed) == NULL && PEEK(w->relay.held) == 0 && PEEK(w->relay.late) == 0);
}

const struct a_case journal_cases[] = {
	{ "gather_due", 2, open_gather, push_and_collect, durable_means_collected, NULL, 4, 6 },
	{ "gather_cause", 3, open_gather, cause_and_effect, no_effect_without_its_cause, NULL, 3, 5 },
	{ "gather_sleep", 2, open_gather, push_and_wait, all_was_collected, NULL, 4, 6 },
	{ "relay", 2, open_relay_with_room, relay_push_push, all_was_relayed, NULL, 4, 6 },
	{ "relay_room", 2, open_relay, relay_push_room, all_was_relayed, NULL, 6, 9 },
	{ "relay_rooms", 3, open_relay, relay_push_two_rooms, all_was_relayed, NULL, 3, 4 },
	{ NULL, 0, NULL, NULL, NULL, NULL, 0, 0 },
};
