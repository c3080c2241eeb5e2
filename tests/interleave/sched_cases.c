/* tests/interleave/sched_cases.c - run queue, inbox with parking, slab: each item once and in order,
 * no lost wake-up, no object with two owners. */
#include "tests/interleave/common.h"

static struct {
	uint32_t times[16];                     /* an item came out so often  */
	uint32_t newest[THREADS_MAX];           /* a thread got, so far       */
	uint32_t pushed;
} q;

static void got_item(int t, uint32_t item)
{
	CHECK(item >= 1 && item <= q.pushed);
	q.times[item]++;
	CHECK(item > q.newest[t]);              /* first in, first out */
	q.newest[t] = item;
}

/* ── run queue of two slots ────────────────────────────────────────────────────────────────────── */
static void open_queue(void)
{
	memset(&q, 0, sizeof q);
	CHECK(runq_open(&w->runq, 2));
}
static void queue_with_one(void)
{
	open_queue();
	CHECK(runq_push(&w->runq, ++q.pushed));
}
static void push_item(void)
{
	q.pushed++;
	CHECK(runq_push(&w->runq, q.pushed));
}
static void take_item(int t)
{
	uint32_t item = runq_take(&w->runq);

	if (item)
		got_item(t, item);
}
static void steal_items(int t)
{
	uint32_t out[2], n = runq_steal(&w->runq, out, 2);

	for (uint32_t i = 0; i < n; i++)
		got_item(t, out[i]);
}
static void owner_and_thief(int t)              /* wraps round, then grows */
{
	if (t == 0) {
		push_item();
		take_item(0);
		push_item();
		push_item();
		push_item();
		take_item(0);
	} else {
		steal_items(1);
		take_item(1);
	}
}
static void owner_and_two(int t)
{
	if (t == 0) {
		push_item();
		push_item();
		take_item(0);
		push_item();
	} else if (t == 1) {
		steal_items(1);
	} else {
		take_item(2);
		take_item(2);
	}
}
static void each_item_once(void)
{
	uint32_t item;

	q.newest[0] = 0;
	while ((item = runq_take(&w->runq)) != 0)
		got_item(0, item);
	CHECK(runq_length(&w->runq) == 0);
	for (uint32_t i = 1; i <= q.pushed; i++)
		CHECK(q.times[i] == 1);
	runq_close(&w->runq);
}

/* ── messages in hand: four places, three at a time ────────────────────────────────────────────── */
#ifndef __cplusplus
static void open_hands(void)
{
	memset(&q, 0, sizeof q);
	memset(&w->hands, 0, sizeof w->hands);
}
static void put_hand(void)
{
	struct effect e;

	if (!hands_room(&w->hands))
		return;
	memset(&e, 0, sizeof e);
	e.cell = ++q.pushed;
	e.msg.kind = e.cell * 7;
	e.msg.reply = e.cell * 11;
	hands_put(&w->hands, &e);
}
static void got_hand(int t, const struct effect *e)
{
	CHECK(e->msg.kind == e->cell * 7 && e->msg.reply == e->cell * 11);   /* whole */
	got_item(t, e->cell);
}
static void take_hand(int t)
{
	struct effect *e = hands_take(&w->hands);

	if (e)
		got_hand(t, e);
}
static void steal_hands(int t)
{
	struct effect out[2];
	uint32_t n = hands_steal(&w->hands, out, 2);

	for (uint32_t i = 0; i < n; i++)
		got_hand(t, &out[i]);
}
static void hands_and_thief(int t)              /* wraps round while the thief reads */
{
	if (t == 0) {
		put_hand();
		put_hand();
		put_hand();
		struct effect *e = hands_take(&w->hands);

		put_hand();                     /* what is being worked from stays */
		put_hand();
		if (e)
			got_hand(0, e);
		take_hand(0);
	} else {
		steal_hands(1);
	}
}
static void hands_and_two(int t)
{
	if (t == 0) {
		put_hand();
		put_hand();
		put_hand();
		take_hand(0);
		put_hand();
	} else {
		steal_hands(t);
	}
}
static void each_hand_once(void)
{
	struct effect *e;

	q.newest[0] = 0;
	while ((e = hands_take(&w->hands)) != NULL)
		got_hand(0, e);
	CHECK(hands_length(&w->hands) == 0);
	for (uint32_t i = 1; i <= q.pushed; i++)
		CHECK(q.times[i] == 1);
}
#endif

/* ── inbox and sleeping worker ─────────────────────────────────────────────────────────────────── */
static void open_inbox(void) { memset(&q, 0, sizeof q); q.pushed = 3; }
static void arrive(uint32_t number)
{
	if (inbox_push(&w->inbox, number, &w->box[number - 1]))
		(void)park_wake(&w->park);
}
static uint32_t take_arrived(int t)
{
	uint32_t number = inbox_take(&w->inbox), n = 0;

	(void)t;
	while (number) {
		uint32_t next = load_relaxed(&w->box[number - 1].link);

		CHECK(number <= 2);
		q.times[number]++;
		n++;
		number = next;
	}
	return n;
}
static void sleep_and_arrive(int t)
{
	if (t > 0) {
		arrive((uint32_t)t);
		return;
	}
	for (uint32_t got = 0; got < 2; ) {
		uint32_t n = take_arrived(0);

		got += n;
		if (n || got == 2)
			continue;
		park_announce(&w->park);
		if (inbox_has(&w->inbox))
			park_cancel(&w->park);
		else
			park_sleep(&w->park, UINT64_MAX);
	}
}
static void all_arrived(void)
{
	CHECK(q.times[1] == 1 && q.times[2] == 1);
	CHECK(PEEK(w->inbox.top) == 0);
}

/* Another worker empties the inbox of a stuck one, at the same time. */
static void arrive_and_take(int t)
{
	if (t == 0)
		arrive(1), arrive(2);
	else
		(void)take_arrived(t);
}
static void rest_arrived(void)
{
	(void)take_arrived(0);
	CHECK(q.times[1] == 1 && q.times[2] == 1);
}

/* ── the slab's shared stack: numbers come and go ──────────────────────────────────────────────── */
static void open_slab(void)
{
	memset(&q, 0, sizeof q);
	CHECK(slab_open(&w->slab, sizeof(struct thing), offsetof(struct thing, link), 5));
	things_construct(&w->slab, 4);
	for (uint32_t i = 1; i <= 3; i++) {             /* 3 -> 2 -> 1 on the stack, none fresh */
		slab_give(&w->slab, &w->slab_cache[0], i);
		slab_flush(&w->slab, &w->slab_cache[0]);
	}
	store_relaxed(&w->slab.shared.fresh, 5);
}
static void own(int t, uint32_t number)
{
	struct thing *thing = (struct thing *)slab_at(&w->slab, number);

	CHECK(number >= 1 && number <= 3);
	CHECK(q.times[number] == 0);
	q.times[number] = 1;
	thing->owner = (uint32_t)t;
}
static void disown(int t, uint32_t number)
{
	struct thing *thing = (struct thing *)slab_at(&w->slab, number);

	CHECK(thing->owner == (uint32_t)t);
	CHECK(q.times[number] == 1);
	q.times[number] = 0;
	slab_give(&w->slab, &w->slab_cache[t], number);
	slab_flush(&w->slab, &w->slab_cache[t]);
}
static uint32_t take_thing(int t)
{
	uint32_t number = slab_take(&w->slab, &w->slab_cache[t]);

	if (number)
		own(t, number);
	slab_flush(&w->slab, &w->slab_cache[t]);        /* SLAB_RUN may have brought a second */
	return number;
}
static void take_and_give(int t)
{
	uint32_t one, two;

	if (t == 0) {
		one = take_thing(0);
		if (one)
			disown(0, one);
	} else {
		one = take_thing(t);
		two = take_thing(t);
		if (one)
			disown(t, one);
		if (two)
			disown(t, two);
	}
}
static void all_things_home(void)
{
	uint32_t number = (uint32_t)PEEK(w->slab.shared.free), seen = 0;

	while (number) {
		struct thing *thing = (struct thing *)slab_at(&w->slab, number);

		CHECK(number <= 3 && !(seen >> number & 1));
		seen |= 1u << number;
		number = PEEK(thing->link);
	}
	CHECK(seen == 14);
}

/* ── whose a step is: its flow, the runner that finds its token, and its caller's deadline ─────────── */
static struct { uint32_t ran, let_go, held; bool token, taken, told; } st;

static void open_step(void)
{
	memset(&st, 0, sizeof st);
	store_relaxed(&w->step, (uint32_t)STEP_OWNED);
}
static void let_go(void)                        /* what it holds, all of it, once */
{
	CHECK(w->held == st.held);
	st.let_go++;
}
static void find_token(void)
{
	if (!st.token)
		return;
	st.token = false;
	if (!step_word_take(&w->step)) {
		CHECK(PEEK(w->step) == STEP_OVER);
		return;
	}
	CHECK(!st.told);                        /* its caller knows that it is over */
	st.taken = true;
	CHECK(w->held == st.held);
	w->held = st.held = 2;                  /* the next one is taken */
	if (step_word_expired(&w->step)) {
		let_go();
	} else {
		st.ran++;
		let_go();
		step_word_end(&w->step);
	}
}
static void yield_and_find(void)                /* its actor rests: it lets go, and waits again */
{
	if (!st.token)
		return;
	st.token = false;
	if (!step_word_take(&w->step))
		return;
	CHECK(!st.told);
	w->held = st.held = 0;
	if (step_word_wait(&w->step)) {
		st.token = true;
		find_token();
	} else {
		let_go();
	}
}
static void take_one(void)
{
	w->held = st.held = 1;
	if (step_word_wait(&w->step))
		st.token = true;
	else
		let_go();
}
static void deadline(void)
{
	if (step_word_cancel(&w->step))
		let_go();
	st.told = !st.taken;                    /* who runs it at this moment may go on */
}
static void step_and_deadline(int t)
{
	if (t == 0)
		take_one();
	else if (t == 1)
		find_token();
	else
		deadline();
}
static void step_that_yields(int t)
{
	if (t == 0)
		take_one();
	else if (t == 1)
		yield_and_find();
	else
		deadline();
}
static void let_go_once(void)
{
	find_token();
	CHECK(st.let_go == 1 && st.ran <= 1);
	CHECK(PEEK(w->step) != STEP_WAITS && PEEK(w->step) != STEP_OWNED);
}

/* ── connections that a sleeping worker lends: one at a time touches them ──────────────────────── */
static uint32_t lent, at_it;

static void open_lease(void)
{
	lent = at_it = 0;
	store_relaxed(&w->lease, (uint32_t)LEASE_OURS);
	w->sent = 0;
}
static void send_one(void)
{
	CHECK(at_it++ == 0);
	(void)load_relaxed(&w->flag[0]);        /* others may come in between */
	w->sent = w->sent + 1;
	lent++;
	at_it--;
}
static void sleep_and_borrow(int t)
{
	if (t == 0) {
		for (int i = 0; i < 2; i++) {
			send_one();
			lease_offer(&w->lease);
			while (!lease_back(&w->lease))
				pause_here();
		}
		send_one();
		lease_offer(&w->lease);
	} else if (lease_take(&w->lease)) {
		send_one();
		lease_return(&w->lease);
	}
}
static void all_was_sent(void)
{
	CHECK(w->sent == lent && lent >= 3);
	CHECK(PEEK(w->lease) == LEASE_FREE);
}

const struct a_case sched_cases[] = {
	{ "lease", 3, open_lease, sleep_and_borrow, all_was_sent, NULL, 4, 6 },
	{ "step_deadline", 3, open_step, step_and_deadline, let_go_once, NULL, 4, 6 },
	{ "step_yields", 3, open_step, step_that_yields, let_go_once, NULL, 4, 6 },
	{ "runq_thief", 2, queue_with_one, owner_and_thief, each_item_once, NULL, 5, 8 },
	{ "runq_two_thieves", 3, open_queue, owner_and_two, each_item_once, NULL, 3, 5 },
#ifndef __cplusplus
	{ "hands_thief", 2, open_hands, hands_and_thief, each_hand_once, NULL, 3, 4 },
	{ "hands_two_thieves", 3, open_hands, hands_and_two, each_hand_once, NULL, 2, 3 },
#endif
	{ "inbox_park", 3, open_inbox, sleep_and_arrive, all_arrived, NULL, 4, 6 },
	{ "inbox_takers", 3, open_inbox, arrive_and_take, rest_arrived, NULL, 6, 9 },
	{ "slab", 2, open_slab, take_and_give, all_things_home, NULL, 4, 6 },
	{ "slab_three", 3, open_slab, take_and_give, all_things_home, NULL, 2, 3 },
	{ NULL, 0, NULL, NULL, NULL, NULL, 0, 0 },
};
