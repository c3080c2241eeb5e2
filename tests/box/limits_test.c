/* tests/box/limits_test.c - limits of types: messages a second, turns at once. Step by step, on a clock that stands still:
 * what waits, for how long, and that nobody runs, or sets a timer, for nothing. */
#include "tests/box/durable_kit.h"
#include "tests/box/hands_kit.h"

#include <stdlib.h>

enum { NOTE, TELL_MANY, TELL_REF, ASK, ANSWER, LATER, TICK, REVISION, REFUSE_IT };

#define NOTES 4096
static struct { char by[NOTES]; uint32_t n; } notes;
static uint32_t ticks, answers, batches[64], batch_count;
static int told[16];

static void note(noh_turn *t)
{
	if (notes.n < NOTES)
		notes.by[notes.n++] = noh_id(t)[0];
}

static int tell_many(noh_turn *t, const noh_msg *m)
{
	static const char *const to[] = { "few:a", "few:b", "few:c", "few:d" };
	uint64_t n;

	memcpy(&n, m->body, sizeof n);
	for (uint64_t i = 0; i < n; i++)
		told[i] = noh_tell_to(t, to[i], NOTE, NULL, 0);
	return NOH_OK;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	noh_actor to;

	switch (m->kind) {
	case NOTE: *(uint64_t *)noh_state(t) += 1; note(t); return NOH_OK;
	case TELL_MANY: return tell_many(t, m);
	case TELL_REF:
		memcpy(&to, m->body, sizeof to);
		for (int i = 0; i < 4; i++)
			told[i] = noh_tell(t, to, NOTE, NULL, 0);
		return NOH_OK;
	case ASK:
		note(t);
		return noh_ask_to(t, "free:helper", NOTE, NULL, 0, &(noh_ask_options){ .answer_kind = ANSWER }, NULL);
	case ANSWER: answers++; return NOH_OK;
	case LATER: note(t); return noh_schedule_once(t, TICK, 10);
	case TICK: ticks++; return NOH_OK;
	case REVISION: note(t); return NOH_OK;
	case REFUSE_IT: return noh_refuse(t, "no", 2);
	}
	return NOH_EINVAL;
}

static int on_batch(noh_turn *t, const noh_msg *msgs, uint32_t count)
{
	(void)msgs;
	if (batch_count < 64)
		batches[batch_count++] = count;
	for (uint32_t i = 0; i < count; i++)
		note(t);
	return NOH_OK;
}

static void by_revision(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	(void)len;
	*key = 0;
	memcpy(revision, body, sizeof *revision);
}

static const noh_kind kinds[] = { [NOTE] = { "note", 0, NULL }, [TELL_MANY] = { "many", 0, NULL }, [TELL_REF] = { "ref", 0, NULL },
	[ASK] = { "ask", 0, NULL }, [ANSWER] = { "answer", 0, NULL }, [LATER] = { "later", 0, NULL },
	[TICK] = { "tick", NOH_KIND_TIMER, NULL }, [REVISION] = { "revision", NOH_KIND_COALESCE, by_revision },
	[REFUSE_IT] = { "refuse", 0, NULL } };

#define COMMON .state_size = 8, .mailbox_capacity = 1000, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER
static const noh_type slow = { .name = "slow", COMMON, .on_message = on_message,
	.limits = { .actor_per_second = 10, .actor_burst = 3 } };
static const noh_type all = { .name = "all", COMMON, .on_message = on_message, .limits = { .per_second = 100, .burst = 5 } };
static const noh_type few = { .name = "few", COMMON, .on_message = on_message,
	.limits = { .actor_per_second = 10, .actor_burst = 2, .over = NOH_OVER_REFUSE } };
static const noh_type rare = { .name = "rare", COMMON, .on_message = on_message,
	.limits = { .per_second = 0.5, .over = NOH_OVER_REFUSE } };
static const noh_type merged = { .name = "merged", COMMON, .on_message = on_message, .kinds = kinds, .kind_count = 9,
	.limits = { .actor_per_second = 10, .actor_burst = 1 } };
static const noh_type batched = { .name = "batched", COMMON, .on_batch = on_batch,
	.limits = { .actor_per_second = 10, .actor_burst = 4 } };
static const noh_type fast = { .name = "fast", COMMON, .on_message = on_message, .limits = { .per_second = 100000, .burst = 1 } };
static const noh_type free_type = { .name = "free", COMMON, .on_message = on_message };

/* ── a box by hand ── */

static noh_box *stepped(void)
{
	notes.n = ticks = answers = batch_count = 0;
	return hands_start(TYPES(&slow, &all, &few, &rare, &merged, &batched, &fast, &free_type));
}

static void send(noh_box *box, const char *address, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		EXPECT_EQ(noh_send(box, address, NOTE, NULL, 0), NOH_OK);
}

/* ── wait ── */

static void an_actor_handles_its_burst_and_then_one_by_one(void)
{
	noh_box *box = stepped();

	send(box, "slow:x", 6);
	hands_run(box);
	EXPECT_EQ(notes.n, 3);
	EXPECT_EQ(stats_of(box, "slow").resting, 1);
	EXPECT_EQ(stats_of(box, "slow").waiting, 3);
	EXPECT_EQ(status_of(box, "slow:x").mailbox_size, 3);
	EXPECT(status_of(box, "slow:x").resting);
	hands_after_ms(box, 99);
	EXPECT_EQ(notes.n, 3);
	hands_after_ms(box, 1);
	EXPECT_EQ(notes.n, 4);
	hands_after_ms(box, 100);
	EXPECT_EQ(notes.n, 5);
	hands_after_ms(box, 100);
	EXPECT_EQ(notes.n, 6);
	EXPECT_EQ(stats_of(box, "slow").resting, 0);
	EXPECT(!status_of(box, "slow:x").resting);
	EXPECT_EQ(stats_of(box, "slow").rests, 3);
	EXPECT_EQ(stats_of(box, "slow").refused_rate, 0);
	hands_after_ms(box, 10000);
	send(box, "slow:x", 4);
	hands_run(box);
	EXPECT_EQ(notes.n, 9);                   /* a pause is worth a burst, not more */
	noh_close(box);
}

/* Asleep: nobody looks before the token is there, and then exactly one timer has woken it. */
static void who_rests_costs_nothing_until_its_token_comes(void)
{
	noh_box *box = stepped();
	struct worker *w = &box->sched.workers[0];
	uint64_t passes;

	send(box, "slow:x", 5);
	hands_run(box);
	EXPECT_EQ(stats(box).timers, 1);
	EXPECT(!sched_has_work(w));
	EXPECT_EQ(clock_next_ms(w), load_relaxed(&hands.ns) / 1000000u + 100);
	send(box, "slow:x", 100);                /* more of them wake nobody */
	EXPECT(!sched_has_work(w));
	EXPECT_EQ(stats(box).timers, 1);
	passes = stats(box).total.passes;
	hands_after_ms(box, 100);
	EXPECT_EQ(notes.n, 4);
	EXPECT(stats(box).total.passes - passes <= 4);
	EXPECT_EQ(stats(box).timers, 1);
	noh_close(box);
}

static void one_who_rests_keeps_nobody_else(void)
{
	noh_box *box = stepped();

	send(box, "slow:x", 5);
	hands_run(box);
	send(box, "slow:y", 3);
	send(box, "free:z", 50);
	hands_run(box);
	EXPECT_EQ(notes.n, 3 + 3 + 50);
	EXPECT_EQ(stats_of(box, "slow").resting, 1);
	noh_close(box);
}

static void actors_of_a_type_share_its_bucket_first_come_first_served(void)
{
	static const char *const to[] = { "all:a", "all:b", "all:c", "all:d", "all:e", "all:f", "all:g", "all:h", "all:i", "all:j" };
	noh_box *box = stepped();

	for (int i = 0; i < 10; i++) {
		send(box, to[i], 1);
		hands_run(box);
	}
	EXPECT_EQ(notes.n, 5);
	EXPECT_EQ(stats_of(box, "all").resting, 5);
	EXPECT_EQ(stats(box).timers, 5);         /* one each, at its own instant */
	send(box, "all:k", 1);                   /* who comes later gets a later one */
	hands_run(box);
	for (uint32_t i = 1; i <= 6; i++) {
		hands_after_ms(box, 10);
		EXPECT_EQ(notes.n, 5 + i);
	}
	EXPECT(memcmp(notes.by, "abcdefghijk", 11) == 0);
	EXPECT_EQ(stats_of(box, "all").resting, 0);
	noh_close(box);
}

/* Timers go by milliseconds: a hundred come in each. */
static void a_fast_rate_is_kept_although_timers_are_coarse(void)
{
	noh_box *box = stepped();

	for (int i = 0; i < 10; i++) {
		char to[32];

		snprintf(to, sizeof to, "fast:%d", i);
		send(box, to, 300);
	}
	hands_run(box);
	EXPECT(notes.n <= 200);
	for (int ms = 0; ms < 20; ms++)
		hands_after_ms(box, 1);
	EXPECT(notes.n >= 1900 && notes.n <= 2200);
	for (int ms = 0; ms < 20; ms++)
		hands_after_ms(box, 1);
	EXPECT_EQ(notes.n, 3000);
	EXPECT_EQ(stats_of(box, "fast").resting, 0);
	noh_close(box);
}

static void answers_and_timers_need_no_token(void)
{
	noh_box *box = stepped();

	EXPECT_EQ(noh_send(box, "slow:x", LATER, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "slow:x", ASK, NULL, 0), NOH_OK);
	send(box, "slow:x", 3);
	hands_run(box);
	EXPECT_EQ(notes.n, 3 + 1);               /* and the helper's */
	EXPECT_EQ(answers, 1);
	EXPECT_EQ(stats_of(box, "slow").resting, 1);
	hands_after_ms(box, 10);
	EXPECT_EQ(ticks, 1);                     /* while it rests */
	EXPECT_EQ(notes.n, 4);
	EXPECT_EQ(stats_of(box, "slow").resting, 1);
	hands_after_ms(box, 90);
	EXPECT_EQ(notes.n, 5);
	noh_close(box);
}

/* What coalesces is counted by what is handled: the last of twenty takes the one token. */
static void of_twenty_revisions_one_takes_the_token(void)
{
	noh_box *box = stepped();

	for (uint64_t i = 1; i <= 20; i++)
		EXPECT_EQ(noh_send(box, "merged:x", REVISION, &i, sizeof i), NOH_OK);
	hands_run(box);
	EXPECT_EQ(notes.n, 1);
	EXPECT_EQ(stats_of(box, "merged").coalesced, 19);
	EXPECT_EQ(stats_of(box, "merged").resting, 0);
	for (uint64_t i = 21; i <= 40; i++)
		EXPECT_EQ(noh_send(box, "merged:x", REVISION, &i, sizeof i), NOH_OK);
	hands_run(box);
	EXPECT_EQ(notes.n, 1);
	hands_after_ms(box, 100);
	EXPECT_EQ(notes.n, 2);
	EXPECT_EQ(stats_of(box, "merged").coalesced, 38);
	noh_close(box);
}

static void a_batch_is_no_longer_than_there_are_tokens(void)
{
	noh_box *box = stepped();

	send(box, "batched:x", 9);
	hands_run(box);
	EXPECT_EQ(batch_count, 1);
	EXPECT_EQ(batches[0], 4);
	hands_after_ms(box, 100);
	EXPECT_EQ(notes.n, 5);
	hands_after_ms(box, 400);
	EXPECT_EQ(notes.n, 9);
	noh_close(box);
}

/* A turn hands its message to an idle actor at once; one without a token puts it down, and nothing is reordered. */
static void a_message_in_hand_waits_as_well(void)
{
	noh_box *box = stepped();
	noh_actor ref;

	EXPECT_EQ(noh_ref(box, "slow:x", &ref), NOH_OK);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(noh_send(box, "free:a", TELL_REF, &ref, sizeof ref), NOH_OK);
		hands_run(box);
	}
	EXPECT_EQ(notes.n, 3);
	EXPECT_EQ(stats_of(box, "slow").accepted, 12);
	for (int i = 0; i < 9; i++)
		hands_after_ms(box, 100);
	EXPECT_EQ(notes.n, 12);
	EXPECT(adds_up(box, "slow"));
	noh_close(box);
}

/* ── refuse ── */

static void a_send_over_the_rate_is_refused_and_says_when_to_try_again(void)
{
	noh_box *box = stepped();

	send(box, "few:x", 2);
	EXPECT_EQ(noh_send(box, "few:x", NOTE, NULL, 0), NOH_ERATE);
	EXPECT(strstr(noh_why(), "actors of type few take, each, 10 messages a second, 2 at once"));
	EXPECT(strstr(noh_why(), "try again in 101 ms"));
	send(box, "few:y", 2);                   /* each has its own */
	hands_run(box);
	EXPECT_EQ(notes.n, 4);
	EXPECT_EQ(stats_of(box, "few").refused_rate, 1);
	EXPECT_EQ(stats_of(box, "few").resting, 0);
	clock_virtual_advance(&hands, 99999999);
	EXPECT_EQ(noh_send(box, "few:x", NOTE, NULL, 0), NOH_ERATE);
	clock_virtual_advance(&hands, 1);
	send(box, "few:x", 1);
	send(box, "rare:x", 1);
	EXPECT_EQ(noh_send(box, "rare:y", NOTE, NULL, 0), NOH_ERATE);
	EXPECT(strstr(noh_why(), "all actors of type rare together take 0.5 messages a second, 1 at once"));
	EXPECT(strstr(noh_why(), "try again in 2001 ms"));
	noh_close(box);
}

static void a_turn_that_tells_too_much_is_told(void)
{
	noh_box *box = stepped();
	uint64_t n = 4;
	noh_actor ref;

	EXPECT_EQ(noh_send(box, "free:a", TELL_MANY, &n, sizeof n), NOH_OK);
	hands_run(box);
	EXPECT(told[0] == NOH_OK && told[1] == NOH_OK && told[2] == NOH_OK && told[3] == NOH_OK);
	EXPECT_EQ(notes.n, 4);
	EXPECT_EQ(noh_ref(box, "few:a", &ref), NOH_OK);
	EXPECT_EQ(noh_send(box, "free:a", TELL_REF, &ref, sizeof ref), NOH_OK);
	hands_run(box);
	EXPECT(told[0] == NOH_OK && told[1] == NOH_ERATE && told[2] == NOH_ERATE && told[3] == NOH_ERATE);
	EXPECT_EQ(notes.n, 5);
	EXPECT_EQ(stats_of(box, "few").refused_rate, 3);
	noh_close(box);
}

/* ── a step ── */

static int step_status;

static void step_done(void *user, int status, const noh_part_answer *parts, size_t count)
{
	(void)user, (void)parts, (void)count;
	step_status = status;
}

static void a_step_has_all_of_its_tokens_or_is_refused(void)
{
	noh_box *box = stepped();
	const noh_part parts[] = { { "slow:x", NOTE, NULL, 0 }, { "few:x", NOTE, NULL, 0 } };

	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(noh_step_then(box, parts, 2, NULL, step_done, NULL), NOH_OK);
		hands_run(box);
		EXPECT_EQ(step_status, NOH_OK);
	}
	EXPECT_EQ(notes.n, 4);
	EXPECT_EQ(noh_step_then(box, parts, 2, NULL, step_done, NULL), NOH_ERATE);
	EXPECT(strstr(noh_why(), "type few"));
	send(box, "slow:x", 2);
	hands_run(box);
	EXPECT_EQ(notes.n, 5);                   /* the third of slow:x was given back, and there is no fourth */
	noh_close(box);
}

/* ── going away ── */

static void forced_away(void *user, int status, const void *answer, size_t len)
{
	(void)answer, (void)len;
	*(int *)user = status;
}

static void who_rests_can_be_thrown_out(void)
{
	noh_box *box = stepped();
	int status = 1;
	struct cell *c;
	struct port *p;
	struct sysmsg *n;
	uint32_t gen;

	send(box, "slow:x", 3);
	EXPECT_EQ(noh_call_then(box, "slow:x", NOTE, NULL, 0, 5000, forced_away, &status), NOH_OK);
	hands_run(box);
	EXPECT_EQ(stats_of(box, "slow").resting, 1);
	p = sched_port(&box->sched);             /* noh_deactivate would wait for this thread */
	EXPECT_EQ(sched_resolve(p, "slow:x", 6, &c, &gen), NOH_OK);
	n = node_take(p, SYS_DEACTIVATE);
	n->status = 1;
	sched_sys(p, c, gen, n);
	sched_port_done(p);
	hands_run(box);
	EXPECT_EQ(status, NOH_EGONE);
	EXPECT_EQ(stats_of(box, "slow").dropped_forced, 1);
	EXPECT_EQ(stats_of(box, "slow").resting, 0);
	EXPECT_EQ(status_of(box, "slow:x").life, NOH_NOT_ACTIVE);
	hands_after_ms(box, 1000);                     /* its timer finds nobody */
	EXPECT_EQ(notes.n, 3);
	send(box, "slow:x", 3);                  /* the next one has a bucket of its own */
	hands_run(box);
	EXPECT_EQ(notes.n, 6);
	noh_close(box);
}

/* ── limits that change ── */

static void other_limits_count_at_once_for_those_who_rest(void)
{
	noh_box *box = stepped();
	noh_limits l = { .actor_per_second = 0.001 };

	EXPECT_EQ(noh_set_limits(box, "slow", &l), NOH_OK);
	send(box, "slow:x", 10);
	send(box, "slow:y", 10);
	hands_run(box);
	EXPECT_EQ(notes.n, 2);
	EXPECT_EQ(stats_of(box, "slow").resting, 2);
	l = (noh_limits){ .actor_per_second = 10, .actor_burst = 4 };
	EXPECT_EQ(noh_set_limits(box, "slow", &l), NOH_OK);
	hands_run(box);
	EXPECT_EQ(notes.n, 2 + 8);
	EXPECT_EQ(stats_of(box, "slow").resting, 2);
	EXPECT_EQ(noh_set_limits(box, "slow", NULL), NOH_OK);
	hands_run(box);
	EXPECT_EQ(notes.n, 20);
	EXPECT_EQ(stats_of(box, "slow").resting, 0);
	hands_after_ms(box, 2000000);                  /* the timers of then mean nobody any more */
	EXPECT_EQ(notes.n, 20);
	noh_close(box);
}

static void a_timer_of_limits_that_are_gone_wakes_nobody_too_soon(void)
{
	noh_box *box = stepped();

	send(box, "slow:x", 10);
	hands_run(box);
	EXPECT_EQ(notes.n, 3);                   /* the next in 100 ms */
	EXPECT_EQ(noh_set_limits(box, "slow", &(noh_limits){ .actor_per_second = 0.1 }), NOH_OK);
	hands_run(box);
	EXPECT_EQ(notes.n, 4);
	hands_after_ms(box, 9999);
	EXPECT_EQ(notes.n, 4);
	hands_after_ms(box, 1);
	EXPECT_EQ(notes.n, 5);
	noh_close(box);
}

static void a_type_gets_a_rate_and_loses_it(void)
{
	noh_box *box = stepped();

	EXPECT_EQ(noh_set_limits(box, "free", &(noh_limits){ .per_second = 1, .over = NOH_OVER_REFUSE }), NOH_OK);
	send(box, "free:x", 1);
	EXPECT_EQ(noh_send(box, "free:y", NOTE, NULL, 0), NOH_ERATE);
	EXPECT_EQ(noh_set_limits(box, "free", NULL), NOH_OK);
	send(box, "free:y", 3);
	hands_run(box);
	EXPECT_EQ(notes.n, 4);
	noh_close(box);
}

static void limits_are_told_as_they_are_in_force(void)
{
	noh_box *box = stepped();
	noh_limits l;

	EXPECT_EQ(noh_get_limits(box, "all", &l), NOH_OK);
	EXPECT(l.per_second > 99.99 && l.per_second < 100.01 && l.burst == 5 && l.actor_burst == 0 && l.turns == 0);
	EXPECT_EQ(noh_set_limits(box, "all", &(noh_limits){ .actor_per_second = 50, .turns = 3, .over = NOH_OVER_REFUSE }), NOH_OK);
	EXPECT_EQ(noh_get_limits(box, "all", &l), NOH_OK);
	EXPECT(l.burst == 0 && l.actor_burst == 50 && l.turns == 3 && l.over == NOH_OVER_REFUSE);
	EXPECT_EQ(noh_get_limits(box, "free", &l), NOH_OK);
	EXPECT(l.burst == 0 && l.actor_burst == 0 && l.turns == 0 && l.over == NOH_OVER_WAIT);
	EXPECT_EQ(noh_get_limits(box, "nobody", &l), NOH_ENOTYPE);
	EXPECT_EQ(noh_set_limits(box, "nobody", NULL), NOH_ENOTYPE);
	noh_close(box);
}

static void limits_that_make_no_sense_are_refused(void)
{
	static const noh_limits wrong[] = { { .per_second = -1 }, { .per_second = 1e8 }, { .actor_per_second = 0.0001 },
		{ .burst = 5 }, { .per_second = 1, .burst = 2000000 }, { .over = 2 }, { .actor_per_second = 0.0 / 0.0 } };
	noh_type t = { .name = "t", COMMON, .on_message = on_message };
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, TYPES(&free_type));

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		t.limits = wrong[i];
		EXPECT_EQ(noh_register(box, &t), NOH_EINVAL);
		EXPECT(strstr(noh_why(), "type t: "));
		EXPECT_EQ(noh_set_limits(box, "free", &wrong[i]), NOH_EINVAL);
	}
	noh_close(box);
}

/* ── turns at once ── */

static atomic_u32 inside, most_inside;
static atomic_u64 passed;

static int enter_gate(noh_turn *t, const noh_msg *m)
{
	uint32_t now = add_seq_cst(&inside, 1) + 1, most = load_relaxed(&most_inside);

	(void)t, (void)m;
	while (now > most && !cas_seq_cst(&most_inside, &most, now))
		;
	gate_pass();
	add_seq_cst(&inside, UINT32_MAX);
	add_seq_cst(&passed, 1);
	return NOH_OK;
}

static const noh_type narrow = { .name = "narrow", COMMON, .on_message = enter_gate, .limits = { .turns = 2 } };

static bool three_wait(void *box)
{
	return stats_of(box, "narrow").waiting_turn == 3;
}

static void of_a_type_with_two_turns_two_run_and_others_run_beside_them(void)
{
	noh_box *box = BOX(4, &narrow, &free_type);
	static const char *const to[] = { "narrow:a", "narrow:b", "narrow:c", "narrow:d", "narrow:e" };

	gate_shut();
	store_seq_cst(&most_inside, 0);
	store_seq_cst(&passed, 0);
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 3; k++)
			EXPECT_EQ(noh_send(box, to[i], NOTE, NULL, 0), NOH_OK);
	EXPECT(gate_holds(2));
	EXPECT(test_wait_until(three_wait, box, SOON));
	EXPECT_EQ(load_seq_cst(&inside), 2);
	EXPECT_EQ(call(box, "free:x", REFUSE_IT), NOH_REFUSED);          /* two workers are free for others */
	gate_open();
	EXPECT(reaches(&passed, 15));
	EXPECT_EQ(load_seq_cst(&most_inside), 2);
	EXPECT(settles(box, "narrow"));
	EXPECT_EQ(stats_of(box, "narrow").waiting_turn, 0);
	end(box);
}

static void more_turns_let_those_who_wait_go_on(void)
{
	noh_box *box = BOX(4, &narrow);
	static const char *const to[] = { "narrow:a", "narrow:b", "narrow:c", "narrow:d", "narrow:e" };

	gate_shut();
	store_seq_cst(&most_inside, 0);
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(noh_send(box, to[i], NOTE, NULL, 0), NOH_OK);
	EXPECT(test_wait_until(three_wait, box, SOON));
	EXPECT_EQ(noh_set_limits(box, "narrow", &(noh_limits){ .turns = 4 }), NOH_OK);
	EXPECT(gate_holds(4));
	EXPECT_EQ(noh_set_limits(box, "narrow", NULL), NOH_OK);
	gate_open();
	EXPECT(settles(box, "narrow"));
	EXPECT_EQ(stats_of(box, "narrow").handled, 5);
	end(box);
}

/* ── the end ── */

static const noh_type steady = { .name = "steady", COMMON, .on_message = on_message,
	.limits = { .actor_per_second = 500, .actor_burst = 1 } };

static void a_box_that_stops_finishes_at_the_rate(void)
{
	noh_box *box = BOX(2, &steady);

	notes.n = 0;
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(noh_send(box, "steady:x", NOTE, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT_EQ(notes.n, 40);
	noh_close(box);
}

/* ── on disk ── */

static int tell_ten(noh_turn *t, const noh_msg *m)
{
	(void)m;
	*(uint64_t *)noh_state(t) += 1;
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(noh_tell_to(t, "kept:x", 0, NULL, 0), NOH_OK);
	return NOH_OK;
}

static int count_or_tell(noh_turn *t, const noh_msg *m)
{
	uint64_t *n = noh_state(t);

	*n += m->kind == 0;
	return m->kind == 0 ? NOH_OK : noh_reply(t, n, sizeof *n);
}

static bool nine_wait(void *box)
{
	noh_type_stats s = stats_of(box, "kept");

	return s.handled == 1 && s.resting == 1 && s.waiting == 9;
}

static bool ten_are_counted(void *box)
{
	return get(box, "kept:x", 1) == 10;
}

/* What one durable actor sends another is kept while it waits for a token, and across the end of the box: once each. */
static void what_rests_on_disk_comes_again_once(void)
{
	noh_type types[] = { { .name = "sower", .state_size = 8, .on_message = tell_ten },
			     { .name = "kept", .state_size = 8, .on_message = count_or_tell,
			       .limits = { .actor_per_second = 0.001, .actor_burst = 1 } } };
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box = open_dir(dir, 2, types, 2);

	EXPECT_EQ(call(box, "sower:a", 0), NOH_OK);
	EXPECT(test_wait_until(nine_wait, box, SOON));
	EXPECT_EQ(noh_stop(box, 100), NOH_ETIMEOUT);
	noh_close(box);
	types[1].limits = (noh_limits){ 0 };
	box = open_dir(dir, 2, types, 2);
	EXPECT(test_wait_until(ten_are_counted, box, SOON));
	EXPECT_EQ(get(box, "kept:x", 1), 10);
	shut(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(an_actor_handles_its_burst_and_then_one_by_one, "MB-11"),
	TEST(who_rests_costs_nothing_until_its_token_comes, "MB-11"),
	TEST(one_who_rests_keeps_nobody_else, "MB-11"),
	TEST(actors_of_a_type_share_its_bucket_first_come_first_served, "MB-11"),
	TEST(a_fast_rate_is_kept_although_timers_are_coarse, "MB-11"),
	TEST(answers_and_timers_need_no_token),
	TEST(of_twenty_revisions_one_takes_the_token, "MB-08 MB-11"),
	TEST(a_batch_is_no_longer_than_there_are_tokens),
	TEST(a_message_in_hand_waits_as_well),
	TEST(a_send_over_the_rate_is_refused_and_says_when_to_try_again, "MB-11"),
	TEST(a_turn_that_tells_too_much_is_told, "MB-11"),
	TEST(a_step_has_all_of_its_tokens_or_is_refused),
	TEST(who_rests_can_be_thrown_out),
	TEST(other_limits_count_at_once_for_those_who_rest, "MB-11"),
	TEST(a_timer_of_limits_that_are_gone_wakes_nobody_too_soon),
	TEST(a_type_gets_a_rate_and_loses_it),
	TEST(limits_are_told_as_they_are_in_force),
	TEST(limits_that_make_no_sense_are_refused),
	TEST(of_a_type_with_two_turns_two_run_and_others_run_beside_them, "MB-11"),
	TEST(more_turns_let_those_who_wait_go_on),
	TEST(a_box_that_stops_finishes_at_the_rate),
	TEST(what_rests_on_disk_comes_again_once, "MB-11 MB-12"))
