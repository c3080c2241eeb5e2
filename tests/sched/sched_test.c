/* tests/sched/sched_test.c - who runs when: step by step on a clock that stands still, and with real
 * workers: stealing, stuck workers, parking. */
#include "tests/box/kit.h"

#include "box/box.h"

#include <stdlib.h>

enum { COUNT, FLOOD, SPIN, LOOK, SLEEP_TIMER, TICK, SOW };

#define STEPS 4096
static struct { uint32_t by[STEPS]; uint32_t n; } order;    /* who ran, in a stepped box */
static atomic_u64 counted, ticked_at;
static atomic_u32 spinning, stop_spinning;

static int on_message(noh_turn *t, const noh_msg *m)
{
	uint64_t *n = noh_state(t);

	switch (m->kind) {
	case COUNT:
		++*n;
		if (order.n < STEPS && noh_user(t) == &order)
			order.by[order.n++] = (uint32_t)noh_id(t)[0];
		add_relaxed(&counted, 1);
		return NOH_OK;
	case FLOOD:
		++*n;
		if (order.n < STEPS)
			order.by[order.n++] = (uint32_t)noh_id(t)[0];
		return noh_tell(t, noh_self(t), FLOOD, NULL, 0);
	case SPIN:
		store_seq_cst(&spinning, 1);
		while (!load_relaxed(&stop_spinning))
			cpu_relax();
		return NOH_OK;
	case LOOK: return noh_reply(t, n, 8);
	case SLEEP_TIMER: return noh_schedule_once(t, TICK, 20);
	case TICK: store_seq_cst(&ticked_at, now_us()); return NOH_OK;
	}
	return NOH_EINVAL;
}

static const noh_type a_type = { .name = "a", .state_size = 8, .idle_timeout_ms = NOH_NEVER,
	.full_mode = NOH_BLOCK, .mailbox_capacity = 1000, .on_message = on_message };

/* ── step by step ── */

static struct clock_virtual hands;

static noh_box *stepped(unsigned workers, const noh_type *type)
{
	noh_options o = kit_options(workers);
	noh_box *box = kit_open(&o, TYPES(type));

	order.n = 0;
	clock_virtual_init(&hands, UINT64_C(1000000000000));
	box->sched.clock = hands.clock;
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	return box;
}

static uint32_t step(noh_box *box, unsigned worker)
{
	struct worker *w = &box->sched.workers[worker];
	uint32_t work;

	sched_set_self(w);
	work = sched_pass(w);
	sched_set_self(NULL);
	return work;
}

static void nothing_runs_between_passes(void)
{
	noh_box *box = stepped(1, &a_type);
	noh_status s;

	EXPECT_EQ(step(box, 0), 0);
	EXPECT_EQ(noh_send(box, "a:x", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_get_status(box, "a:x", &s), NOH_OK);
	EXPECT_EQ(s.life, NOH_ACTIVATING);
	EXPECT_EQ(s.mailbox_size, 1);
	EXPECT(sched_has_work(&box->sched.workers[0]));
	EXPECT(step(box, 0) > 0);
	EXPECT_EQ(status_of(box, "a:x").life, NOH_ACTIVE);
	EXPECT_EQ(status_of(box, "a:x").mailbox_size, 0);
	EXPECT_EQ(stats_of(box, "a").handled, 1);
	EXPECT_EQ(step(box, 0), 0);
	EXPECT(!sched_has_work(&box->sched.workers[0]));
	EXPECT_EQ(stats(box).total.passes, 3);
	noh_close(box);
}

static uint64_t told_now, told_wall;

static int tell_time(noh_turn *t, const noh_msg *m)
{
	(void)m;
	told_now = noh_now_ms(t);
	told_wall = noh_wall_ms(t);
	return NOH_OK;
}

static uint64_t wall_of(noh_box *box)
{
	EXPECT_EQ(noh_send(box, "a:x", LOOK, NULL, 0), NOH_OK);
	EXPECT(step(box, 0) > 0);
	EXPECT_EQ(told_now, load_relaxed(&hands.ns) / 1000000u);
	return told_wall;
}

/* The system's clock is asked when the box starts, and then runs with the monotonic one. */
static void wall_clock_time_does_not_jump_while_the_box_runs(void)
{
	noh_type type = a_type;
	noh_options o = kit_options(1);
	noh_box *box;

	type.on_message = tell_time;
	clock_virtual_init(&hands, UINT64_C(5000000));
	box = kit_open(&o, TYPES(&type));
	box->sched.clock = hands.clock;
	store_relaxed(&hands.wall_ms, UINT64_C(1700000000100));
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	EXPECT_EQ(wall_of(box), UINT64_C(1700000000105));
	store_relaxed(&hands.wall_ms, 7);
	EXPECT_EQ(wall_of(box), UINT64_C(1700000000105));
	clock_virtual_advance(&hands, UINT64_C(2500000));
	EXPECT_EQ(wall_of(box), UINT64_C(1700000000107));
	store_relaxed(&hands.wall_ms, UINT64_C(1) << 50);
	EXPECT_EQ(wall_of(box), UINT64_C(1700000000107));
	noh_close(box);
}

static void an_actor_that_floods_itself_does_not_starve_another(void)
{
	noh_type type = a_type;
	uint32_t in_a_row = 0, longest = 0, others = 0;

	type.user = &order;
	noh_box *box = stepped(1, &type);
	EXPECT_EQ(noh_send(box, "a:f", FLOOD, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "a:o", FLOOD, NULL, 0), NOH_OK);
	while (order.n < STEPS)
		step(box, 0);
	for (uint32_t i = 0; i < order.n; i++) {
		in_a_row = i && order.by[i] == order.by[i - 1] ? in_a_row + 1 : 1;
		longest = in_a_row > longest ? in_a_row : longest;
		others += order.by[i] == 'o';
	}
	EXPECT_EQ(order.n, STEPS);
	EXPECT(longest <= SLICE);
	EXPECT(others >= STEPS / 2 - SLICE && others <= STEPS / 2 + SLICE);
	noh_close(box);
}

static int ping(noh_turn *t, const noh_msg *m)
{
	if (order.n < STEPS)
		order.by[order.n++] = (uint32_t)noh_id(t)[0];
	return noh_tell_to(t, noh_id(t)[0] == 'p' ? "a:q" : noh_id(t)[0] == 'q' ? "a:p" : "a:o", COUNT,
			   m->body, m->len);
}

static void a_pair_that_hands_messages_on_does_not_starve_another(void)
{
	noh_type type = a_type;
	uint32_t in_a_row = 0, longest = 0;

	type.on_message = ping;
	noh_box *box = stepped(1, &type);
	EXPECT_EQ(noh_send(box, "a:p", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "a:o", COUNT, NULL, 0), NOH_OK);
	while (order.n < STEPS)
		step(box, 0);
	EXPECT_EQ(order.n, STEPS);
	for (uint32_t i = 0; i < order.n; i++) {
		in_a_row = order.by[i] != 'o' ? in_a_row + 1 : 0;
		longest = in_a_row > longest ? in_a_row : longest;
	}
	EXPECT(longest <= 2 * SLICE);
	noh_close(box);
}

/* a:1 tells sixty others, each of which tells a:2. */
static struct { noh_actor two; uint32_t rounds, others, in_a_row, longest; } fans;

static int fan(noh_turn *t, const noh_msg *m)
{
	char to[16];
	int rc = NOH_OK;

	(void)m;
	if (noh_id(t)[0] == '2') {
		fans.in_a_row = 0;
		return NOH_OK;
	}
	if (noh_id(t)[0] != '1') {
		fans.in_a_row++;
		fans.longest = fans.in_a_row > fans.longest ? fans.in_a_row : fans.longest;
		return noh_tell(t, fans.two, COUNT, NULL, 0);
	}
	for (uint32_t i = 0; i < 60 && rc == NOH_OK; i++) {
		snprintf(to, sizeof to, "a:o%u", fans.others++);
		rc = noh_tell_to(t, to, COUNT, NULL, 0);
	}
	return rc != NOH_OK || ++fans.rounds == 400 ? rc : noh_tell(t, noh_self(t), COUNT, NULL, 0);
}

/* Also after turns that are measured: they go another way. */
static void who_has_nothing_waiting_does_not_queue_behind_those_who_write_to_it(void)
{
	noh_type type = a_type;

	memset(&fans, 0, sizeof fans);
	type.on_message = fan;
	noh_box *box = stepped(1, &type);
	EXPECT_EQ(noh_ref(box, "a:2", &fans.two), NOH_OK);
	EXPECT_EQ(noh_send(box, "a:1", COUNT, NULL, 0), NOH_OK);
	for (uint32_t i = 0; i < 100000 && (fans.rounds < 400 || stats_of(box, "a").handled < 400 * 121); i++)
		step(box, 0);
	EXPECT_EQ(fans.rounds, 400);
	EXPECT_EQ(stats_of(box, "a").handled, 400 * 121);
	EXPECT_EQ(fans.longest, 1);
	noh_close(box);
}

static void time_passes_only_with_the_clock(void)
{
	noh_type type = a_type;

	type.idle_timeout_ms = 1000;
	store_relaxed(&ticked_at, 0);
	noh_box *box = stepped(1, &type);
	EXPECT_EQ(noh_send(box, "a:t", SLEEP_TIMER, NULL, 0), NOH_OK);
	step(box, 0);
	EXPECT_EQ(stats(box).timers, 1);
	clock_virtual_advance(&hands, 19999999);
	step(box, 0);
	EXPECT_EQ(load_relaxed(&ticked_at), 0);            /* 19.999999 ms are not 20 */
	clock_virtual_advance(&hands, 1);
	step(box, 0);
	EXPECT(load_relaxed(&ticked_at) != 0);
	EXPECT_EQ(status_of(box, "a:t").life, NOH_ACTIVE);
	clock_virtual_advance(&hands, UINT64_C(900000000));
	for (int i = 0; i < 3; i++)
		step(box, 0);
	EXPECT_EQ(status_of(box, "a:t").life, NOH_ACTIVE); /* 0.9 of 1 s */
	clock_virtual_advance(&hands, UINT64_C(400000000));
	for (int i = 0; i < 3; i++)
		step(box, 0);
	EXPECT_EQ(status_of(box, "a:t").life, NOH_NOT_ACTIVE);
	noh_close(box);
}

static int keep_ticking(noh_turn *t, const noh_msg *m)
{
	if (m->kind == TICK)
		add_relaxed(&counted, 1);
	return m->kind == TICK ? NOH_OK : noh_schedule_every(t, TICK, 10);
}

static uint64_t ticks_after(noh_box *box, uint64_t ns)
{
	clock_virtual_advance(&hands, ns);
	for (int i = 0; i < 20; i++)
		step(box, 0);
	return load_relaxed(&counted);
}

static void missed_times_are_skipped(void)
{
	noh_type type = a_type;

	type.on_message = keep_ticking;
	store_relaxed(&counted, 0);
	noh_box *box = stepped(1, &type);
	EXPECT_EQ(noh_send(box, "a:t", COUNT, NULL, 0), NOH_OK);
	EXPECT_EQ(ticks_after(box, 0), 0);
	EXPECT_EQ(ticks_after(box, 9999999), 0);
	EXPECT_EQ(ticks_after(box, 1), 1);                 /* at 10 ms */
	EXPECT_EQ(ticks_after(box, 95000000), 2);          /* at 105 ms: one, not nine */
	EXPECT_EQ(ticks_after(box, 4999999), 2);
	EXPECT_EQ(ticks_after(box, 1), 3);                 /* at 110 ms: still in step */
	EXPECT_EQ(ticks_after(box, 10000000), 4);
	noh_close(box);
}

/* ── real workers ── */

static char spinner[16], others[64][16];

/* Addresses with the same home as the spinner's worker, whichever that is: there are 64 of them. */
static void name_actors(void)
{
	snprintf(spinner, sizeof spinner, "a:spin");
	for (unsigned i = 0; i < 64; i++)
		snprintf(others[i], sizeof others[i], "a:%u", i);
}

static bool is_spinning(void *arg)
{
	(void)arg;
	return load_seq_cst(&spinning) != 0;
}

static bool others_are_done(void *want)
{
	return load_acquire(&counted) >= *(uint64_t *)want;
}

static noh_box *with_a_stuck_worker(unsigned workers, uint32_t slow_ms)
{
	noh_options o = kit_options(workers);
	noh_box *box;

	name_actors();
	o.slow_turn_ms = slow_ms;
	store_relaxed(&counted, 0);
	store_relaxed(&ticked_at, 0);
	store_relaxed(&spinning, 0);
	store_relaxed(&stop_spinning, 0);
	box = kit_start(&o, TYPES(&a_type));
	for (int i = 0; i < 32; i++)                       /* half of the others are active already */
		EXPECT_EQ(noh_call(box, others[i], COUNT, NULL, 0, SOON, NULL, NULL), NOH_OK);
	EXPECT_EQ(call(box, "a:timer", SLEEP_TIMER), NOH_OK);
	EXPECT_EQ(noh_send(box, spinner, SPIN, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(is_spinning, NULL, SOON));
	return box;
}

/* Microseconds until all others had their turn, and until a timer of 20 ms came that was set before. */
static uint64_t delay_beside_a_stuck_worker(unsigned workers)
{
	noh_box *box = with_a_stuck_worker(workers, 50);
	uint64_t start = now_us(), want = 32 + 64, took, ticked;
	char line[64];

	for (int i = 0; i < 64; i++)
		EXPECT_EQ(noh_send(box, others[i], COUNT, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(others_are_done, &want, SOON));
	took = now_us() - start;
	EXPECT(reaches(&ticked_at, 1));
	ticked = load_relaxed(&ticked_at);
	snprintf(line, sizeof line, "%s|its turn has been running", spinner);
	EXPECT(test_wait_until(is_logged, line, SOON));
	EXPECT(load_relaxed(&stop_spinning) == 0);         /* all that happened while it was stuck */
	store_relaxed(&stop_spinning, 1);
	EXPECT_EQ(get(box, spinner, LOOK), 0);
	EXPECT_EQ(stats(box).total.slow_turns, 1);
	end(box);
	return ticked > start + took ? ticked - start : took;
}

/* Other programs may delay them: the best of a few is what the box itself makes them wait. */
static void a_stuck_worker_delays_nobody_else_for_long(void)
{
	for (unsigned workers = 2; workers <= 4; workers *= 2) {
		uint64_t least = UINT64_MAX;

		for (int i = 0; i < 10 && least >= 100000; i++) {
			uint64_t delay = delay_beside_a_stuck_worker(workers);

			least = delay < least ? delay : least;
		}
		EXPECT(least < 100000);
	}
}

/* A window of a worker's work: so many turns a millisecond, for so many milliseconds. */
static uint64_t speed_after(struct worker *w, uint64_t turns, uint64_t ms)
{
	w->mine.now_ns += ms * 1000000u;
	count_one(&w->shown.counts.turns, turns * ms);
	spread_measure(w);
	return w->mine.spread.speed;
}

static void a_worker_that_lost_its_core_for_a_while_is_not_taken_for_slow(void)
{
	noh_box *box = stepped(2, &a_type);
	struct worker *w = &box->sched.workers[0];

	EXPECT_EQ(step(box, 0), 0);
	spread_measure(w);                                 /* the first window begins */
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(speed_after(w, 30000, 1), 30001);
	EXPECT_EQ(speed_after(w, 100, 20), 30001);
	EXPECT_EQ(speed_after(w, 20000, 1), 30001);
	for (int i = 0; i < 2; i++)
		(void)speed_after(w, 100, 20);
	EXPECT_EQ(w->mine.spread.speed, 20001);
	for (int i = 0; i < 2; i++)
		(void)speed_after(w, 100, 20);
	EXPECT_EQ(w->mine.spread.speed, 101);              /* it is slow */
	spread_restart(w);
	EXPECT_EQ(w->mine.spread.speed, 0);
	EXPECT_EQ(speed_after(w, 5, 1), 0);                /* a new window begins, and nothing is left of before */
	EXPECT_EQ(speed_after(w, 5, 1), 6);
	noh_close(box);
}

/* Both work for so many microseconds, at so many turns a millisecond; the first one's window ends. */
static void both_work(noh_box *box, uint64_t us, uint64_t first, uint64_t second)
{
	struct worker *w = box->sched.workers;

	count_one(&w[0].shown.counts.turns, first * us / 1000);
	count_one(&w[1].shown.counts.turns, second * us / 1000);
	w[0].mine.now_ns += us * 1000;
	w[1].mine.now_ns += us * 1000;
	spread_measure(&w[0]);
}

/* The first has done 10,000 a millisecond, the second comes to help, and they do so many each. Then it rests for a moment. */
static void help_for_a_while(noh_box *box, uint64_t each)
{
	struct worker *w = box->sched.workers;

	for (int i = 0; i < 5; i++)
		both_work(box, 1000, 10000, 0);
	store_relaxed(&w[1].shared.spread.offer, UINT64_C(10000) << 16 | 1);
	spread_woke(&w[1]);
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_TRIAL);
	both_work(box, 400, 9000, 9000);
	EXPECT(!spread_verdict(&w[1]));
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_JOINED);
	for (int i = 0; i < 5; i++)
		both_work(box, 1000, each, each);
	EXPECT(spread_verdict(&w[1]));
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_RECHECK);
}

static uint64_t pause_before_the_next_offer(noh_box *box)
{
	spread_offer(&box->sched.workers[0]);
	return box->sched.workers[0].mine.spread.backoff_ns;
}

static void a_helper_stays_only_if_two_did_more_than_one_can(void)
{
	noh_box *box = stepped(2, &a_type);
	struct worker *w = box->sched.workers;
	uint64_t pause;

	EXPECT_EQ(step(box, 0) + step(box, 1), 0);
	spread_measure(&w[0]);
	w[0].mine.spread.backoff_ns = 4000000;
	help_for_a_while(box, 5500);
	EXPECT_EQ(pause_before_the_next_offer(box), 4000000);      /* a trial alone proves nothing */
	both_work(box, 100, 1000, 0);
	spread_woke(&w[1]);                                        /* too early to tell */
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_RECHECK);
	both_work(box, 300, 100, 0);                               /* somebody else had its core */
	spread_woke(&w[1]);
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_RECHECK);
	both_work(box, 400, 10000, 0);
	spread_woke(&w[1]);
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_ALONE);
	EXPECT_EQ(pause_before_the_next_offer(box), 8000000);
	help_for_a_while(box, 9000);
	both_work(box, 400, 10000, 0);
	spread_woke(&w[1]);
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_JOINED);
	pause = pause_before_the_next_offer(box);
	EXPECT(pause < 4000000);
	help_for_a_while(box, 9000);
	spread_restart(&w[0]);                                     /* it slept: there is too little to do for two */
	w[1].mine.now_ns += 400000;
	spread_woke(&w[1]);
	EXPECT_EQ(w[1].mine.spread.phase, SPREAD_ALONE);
	EXPECT_EQ(pause_before_the_next_offer(box), 2 * pause);
	noh_close(box);
}

/* A message to each of 64 actors, whose homes are both workers; how many turns that is for this one. */
static uint64_t share_of(noh_box *box, unsigned worker)
{
	uint64_t before = load_relaxed(&box->sched.workers[worker].shown.counts.turns);

	for (int i = 0; i < 64; i++)
		EXPECT_EQ(noh_send(box, others[i], COUNT, NULL, 0), NOH_OK);
	while (step(box, 0) + step(box, 1))
		;
	return load_relaxed(&box->sched.workers[worker].shown.counts.turns) - before;
}

static void what_comes_from_outside_goes_to_the_worker_that_leads_and_to_those_that_help(void)
{
	noh_box *box = stepped(2, &a_type);
	struct worker *first = &box->sched.workers[0], *second = &box->sched.workers[1];

	name_actors();
	(void)share_of(box, 0);                            /* they are made */
	spread_lead(second);
	spread_lead(first);                                /* somebody leads already */
	EXPECT_EQ(share_of(box, 1), 64);
	store_relaxed(&first->shared.spread.helps, 1);
	uint64_t share = share_of(box, 0);

	EXPECT(share > 8 && share < 56);                   /* as their homes are */
	store_relaxed(&first->shared.spread.helps, 0);
	EXPECT_EQ(share_of(box, 1), 64);
	park_announce(&second->shared.park);               /* who sleeps does not lead */
	spread_lead(first);
	park_cancel(&second->shared.park);
	EXPECT_EQ(share_of(box, 0), 64);
	noh_close(box);
}

/* Turns that sleep: two workers do twice as much, however busy the machine is. */
static int work_a_while(noh_turn *t, const noh_msg *m)
{
	if (m->kind == SOW) {                              /* all of them begin on this worker */
		for (int i = 0; i < 64; i++)
			EXPECT_EQ(noh_tell_to(t, others[i], COUNT, NULL, 0), NOH_OK);
		return NOH_OK;
	}
	nap_us(300);
	return load_relaxed(&stop_spinning) ? NOH_OK : noh_tell(t, noh_self(t), COUNT, NULL, 0);
}

static bool both_have_turns(void *box)
{
	noh_worker_stats one, two;

	EXPECT_EQ(noh_get_worker_stats(box, 0, &one), NOH_OK);
	EXPECT_EQ(noh_get_worker_stats(box, 1, &two), NOH_OK);
	return one.turns > 20 && two.turns > 20 && one.steals + two.steals > 0;
}

static void the_journal_may_rest_as_long_as_everybody_who_is_awake_has_work(void)
{
	noh_box *box = stepped(2, &a_type);
	struct worker *first = &box->sched.workers[0], *second = &box->sched.workers[1];

	EXPECT_EQ(sched_work_ahead(&box->sched), 0);
	for (uint32_t i = 1; i <= 5; i++)
		EXPECT(runq_push(&first->runq, i));
	EXPECT_EQ(sched_work_ahead(&box->sched), 0);       /* the second has none */
	EXPECT(runq_push(&second->runq, 6));
	EXPECT(runq_push(&second->runq, 7));
	EXPECT_EQ(sched_work_ahead(&box->sched), 2);
	park_announce(&second->shared.park);
	EXPECT_EQ(sched_work_ahead(&box->sched), 5);
	park_announce(&first->shared.park);
	EXPECT_EQ(sched_work_ahead(&box->sched), 0);
	park_cancel(&first->shared.park);
	park_cancel(&second->shared.park);
	while (runq_take(&first->runq) || runq_take(&second->runq))
		;
	noh_close(box);
}

static void work_that_gains_from_two_workers_is_spread(void)
{
	noh_type type = a_type;

	type.on_message = work_a_while;
	store_relaxed(&stop_spinning, 0);
	noh_box *box = BOX(2, &type);
	name_actors();
	EXPECT_EQ(noh_send(box, "a:sower", SOW, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(both_have_turns, box, SOON));
	EXPECT(stats(box).total.stolen_actors > 0);
	store_relaxed(&stop_spinning, 1);
	end(box);
}

static bool is_parked(void *box)
{
	return load_seq_cst(&((noh_box *)box)->sched.sleepers) == ((noh_box *)box)->sched.worker_count;
}

static void an_idle_box_sleeps(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &a_type);
		noh_box_stats before, after;

		name_actors();
		for (int i = 0; i < 64; i++)
			EXPECT_EQ(call(box, others[i], COUNT), NOH_OK);
		EXPECT(test_wait_until(is_parked, box, SOON));
		nap_us(50000);                                 /* the last dead are buried */
		before = stats(box);
		nap_us(200000);
		after = stats(box);
		EXPECT_EQ(after.total.passes, before.total.passes);
		EXPECT_EQ(after.total.parks, before.total.parks);
		EXPECT_EQ(call(box, others[0], COUNT), NOH_OK);     /* and wakes */
		end(box);
	}
}

static void one_message_wakes_a_sleeping_box_every_time(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &a_type);

		for (int i = 0; i < 2000; i++)
			EXPECT_EQ(call(box, i % 2 ? "a:1" : "a:2", COUNT), NOH_OK);
		EXPECT_EQ(get(box, "a:1", LOOK), 1000);
		end(box);
	}
}

TEST_MAIN(
	TEST(wall_clock_time_does_not_jump_while_the_box_runs, "LC-18"),
	TEST(nothing_runs_between_passes),
	TEST(an_actor_that_floods_itself_does_not_starve_another),
	TEST(a_pair_that_hands_messages_on_does_not_starve_another),
	TEST(who_has_nothing_waiting_does_not_queue_behind_those_who_write_to_it),
	TEST(time_passes_only_with_the_clock, "RT-06 LC-10"),
	TEST(missed_times_are_skipped, "RT-07 RT-09"),
	TEST(a_stuck_worker_delays_nobody_else_for_long, "US-05"),
	TEST(a_helper_stays_only_if_two_did_more_than_one_can),
	TEST(a_worker_that_lost_its_core_for_a_while_is_not_taken_for_slow),
	TEST(what_comes_from_outside_goes_to_the_worker_that_leads_and_to_those_that_help, "US-05"),
	TEST(the_journal_may_rest_as_long_as_everybody_who_is_awake_has_work),
	TEST(work_that_gains_from_two_workers_is_spread, "US-05"),
	TEST(an_idle_box_sleeps),
	TEST(one_message_wakes_a_sleeping_box_every_time))
