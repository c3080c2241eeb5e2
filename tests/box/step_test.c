/* tests/box/step_test.c - a step over several actors: all of their turns or none of them, and nobody waits for
 * ever; and a turn that says no (noh_refuse). In memory; on disk it is step_durable_test.c. */
#include "tests/box/step_kit.h"

#include "box/box.h"

/* ── all or none ── */

static void all_parts_of_a_step_take_effect_and_answer(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &purse_type);
		noh_part parts[3] = { part_of("purse:a", ADD, N(5)), part_of("purse:b", ADD, N(7)),
				      part_of("purse/c", ADD, N(-12)) };
		noh_part_answer answers[3];
		int64_t room[3];
		size_t len = sizeof room;

		EXPECT_EQ(noh_step(box, parts, 3, NULL, answers, room, &len), NOH_OK);
		EXPECT_EQ(len, 24);
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(answers[i].status, NOH_OK);
			EXPECT_EQ(answers[i].len, 8);
		}
		EXPECT_EQ(*(const int64_t *)answers[0].body, 5);
		EXPECT_EQ(*(const int64_t *)answers[1].body, 7);
		EXPECT_EQ(*(const int64_t *)answers[2].body, -12);
		EXPECT_EQ(balance(box, "purse:c"), -12);
		EXPECT(settles(box, "purse"));
		EXPECT_EQ(stats_of(box, "purse").handled, 4);
		end(box);
	}
}

static void a_refusal_undoes_the_whole_step(void)
{
	noh_box *box = BOX(2, &purse_type);
	noh_part parts[3] = { part_of("purse:a", KEEP, N(5)), part_of("purse:b", TAKE, N(7)),
			      part_of("purse:c", ADD, N(1)) };
	int64_t said;
	int which;

	EXPECT_EQ(put(box, "purse:b", ADD, 3), NOH_OK);
	EXPECT_EQ(step_with(box, parts, 3, NULL, &said, &which), NOH_REFUSED);
	EXPECT_EQ(which, 1);
	EXPECT_EQ(said, 3);
	EXPECT_EQ(balance(box, "purse:a"), 0);
	EXPECT_EQ(balance(box, "purse:b"), 3);
	EXPECT_EQ(balance(box, "purse:c"), 0);
	EXPECT_EQ(balance(box, "purse:told"), 0);
	EXPECT(!logged("failed"));
	EXPECT(settles(box, "purse"));
	EXPECT_EQ(stats_of(box, "purse").failed, 0);
	end(box);
}

static void a_failure_undoes_the_whole_step_wherever_it_is(void)
{
	noh_box *box = BOX(2, &purse_type);

	for (int bad = 0; bad < 4; bad++) {
		static const int64_t one = 1;
		noh_part parts[4];
		char name[4][24];
		int which;

		for (int i = 0; i < 4; i++) {
			snprintf(name[i], sizeof name[i], "purse:%d", i);
			parts[i] = part_of(name[i], i == bad ? FAIL : KEEP, &one);
		}
		EXPECT_EQ(step_with(box, parts, 4, NULL, NULL, &which), NOH_EFAILED);
		EXPECT_EQ(which, bad);
		for (int i = 0; i < 4; i++)
			EXPECT_EQ(balance(box, name[i]), 0);
	}
	EXPECT(logged("as it was told to"));
	EXPECT_EQ(balance(box, "purse:told"), 0);
	EXPECT_EQ(stats_of(box, "purse").failed, 4);
	EXPECT(settles(box, "purse"));
	end(box);
}

static void what_parts_send_and_schedule_leaves_when_all_have_succeeded(void)
{
	noh_box *box = BOX(2, &purse_type);
	struct order o[2] = { { .n = 4, .to = "purse:c" }, { .n = 5, .to = "purse:a" } };
	noh_part parts[3] = { { "purse:a", TELL, &o[0], sizeof o[0] }, { "purse:b", TELL, &o[1], sizeof o[1] },
			      part_of("purse:c", KEEP, N(100)) };

	EXPECT_EQ(step(box, parts, 3), NOH_OK);
	EXPECT_EQ(balance(box, "purse:c"), 104);
	EXPECT_EQ(balance(box, "purse:a"), 1);
	EXPECT(settles(box, "purse"));
	end(box);
}

static void one_part_alone_is_a_step_and_so_are_a_thousand(void)
{
	static noh_part parts[NOH_STEP_PARTS];
	static char names[NOH_STEP_PARTS][24];
	noh_box *box = BOX(2, &purse_type);

	static const int64_t one = 1;

	for (int i = 0; i < NOH_STEP_PARTS; i++) {
		snprintf(names[i], sizeof names[i], "purse:%d", i);
		parts[i] = part_of(names[i], ADD, &one);
	}
	EXPECT_EQ(step(box, parts, 1), NOH_OK);
	EXPECT_EQ(noh_step(box, parts, NOH_STEP_PARTS, NULL, NULL, NULL, NULL), NOH_OK);
	EXPECT_EQ(balance(box, "purse:0"), 2);
	EXPECT_EQ(balance(box, "purse:1023"), 1);
	parts[1000].kind = FAIL;
	EXPECT_EQ(noh_step(box, parts, NOH_STEP_PARTS, NULL, NULL, NULL, NULL), NOH_EFAILED);
	EXPECT_EQ(balance(box, "purse:0"), 2);
	EXPECT_EQ(balance(box, "purse:1023"), 1);
	end(box);
}

/* ── what is no step ── */

static void nobody(void *user, int status, const noh_part_answer *answers, size_t count)
{
	(void)user, (void)answers, (void)count;
	test_failed(__FILE__, __LINE__, "told of %d what was refused", status);
}

static int refused(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *o)
{
	int rc = noh_step_then(box, parts, count, o, nobody, NULL);

	if (rc != NOH_OK)
		EXPECT(*noh_why());
	return rc;
}

static void what_makes_no_sense_is_refused_before_anything_happens(void)
{
	static char big[1 << 20];
	static noh_part many[NOH_STEP_PARTS + 1];
	noh_box *box = BOX(1, &purse_type, &shown_type);
	noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)) };
	noh_call_options keyed = { .key = "k", .key_len = 1 };
	static const struct { const char *address; uint32_t kind; int code; } bad[] = {
		{ "purse", ADD, NOH_EADDRESS }, { "no:1", ADD, NOH_ENOTYPE }, { "shown:1", 99, NOH_EKIND },
		{ "purse:a", ADD, NOH_EINVAL }, { "purse/a", ADD, NOH_EINVAL }, { NULL, ADD, NOH_EINVAL },
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		parts[1] = part_of(bad[i].address, bad[i].kind, parts[0].body);
		EXPECT_EQ(refused(box, parts, 2, NULL), bad[i].code);
	}
	parts[1] = (noh_part){ "purse:b", ADD, big, sizeof big + 1 };
	EXPECT_EQ(refused(box, parts, 2, NULL), NOH_ETOOBIG);
	EXPECT_EQ(refused(box, parts, 0, NULL), NOH_EINVAL);
	EXPECT_EQ(refused(box, parts, 1, &keyed), NOH_EINVAL);           /* nothing is kept in this box */
	EXPECT_EQ(noh_step_then(box, parts, 1, NULL, NULL, NULL), NOH_EINVAL);
	for (int i = 0; i <= NOH_STEP_PARTS; i++)
		many[i] = (noh_part){ "purse:a", ADD, big, sizeof big };
	EXPECT_EQ(refused(box, many, NOH_STEP_PARTS + 1, NULL), NOH_EINVAL);
	EXPECT_EQ(refused(box, many, NOH_STEP_PARTS, NULL), NOH_ETOOBIG);
	EXPECT_EQ(stats(box).actors, 0);
	end(box);
	box = BOX(1, &purse_type);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT_EQ(refused(box, parts, 1, NULL), NOH_ESTOPPED);
	noh_close(box);
}

/* ── busy actors ── */

/* Of steps that end on several workers: the last to say something. */
struct told { atomic_u64 times; _Atomic int status; _Atomic int64_t answer; };

static void note(void *user, int status, const noh_part_answer *answers, size_t count)
{
	struct told *told = user;

	told->status = status;
	told->answer = count && answers[0].len >= 8 ? *(const int64_t *)answers[0].body : -1;
	add_seq_cst(&told->times, 1);
}

static void a_step_comes_after_what_waits_already_and_holds_up_what_comes_later(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &purse_type);
		noh_part parts[2] = { part_of("purse:a", NOTE, N(11)), part_of("purse:b", NOTE, N(11)) };
		struct told told = { .status = 99 };

		gate_shut();
		EXPECT_EQ(noh_send(box, "purse:a", GATE, NULL, 0), NOH_OK);
		EXPECT(gate_holds(1));
		for (int64_t i = 1; i <= 10; i++) {
			EXPECT_EQ(noh_send(box, "purse:a", NOTE, &i, 8), NOH_OK);
			EXPECT_EQ(noh_send(box, "purse:b", NOTE, &i, 8), NOH_OK);
		}
		EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
		gate_open();
		EXPECT(reaches(&told.times, 1));
		for (int64_t i = 12; i <= 20; i++) {
			EXPECT_EQ(noh_send(box, "purse:a", NOTE, &i, 8), NOH_OK);
			EXPECT_EQ(noh_send(box, "purse:b", NOTE, &i, 8), NOH_OK);
		}
		EXPECT_EQ(told.status, NOH_OK);
		EXPECT(settles(box, "purse"));
		EXPECT_EQ(stats_of(box, "purse").handled, 1 + 20 + 20);
		EXPECT_EQ(get(box, "purse:a", ORDER), 20);
		EXPECT_EQ(get(box, "purse:b", ORDER), 20);
		end(box);
	}
}

static void an_actor_that_is_held_handles_nothing_and_then_everything_in_order(void)
{
	noh_box *box = BOX(4, &purse_type);
	const char *first = "purse:a", *last = "purse:b";
	struct told told[2] = { { .status = 99 }, { .status = 99 } };
	uint64_t before;

	/* Whichever is taken first is held while the other is stuck. Both ways, so it is seen in one of them. */
	for (int way = 0; way < 2; way++) {
		noh_part parts[2] = { part_of(first, ADD, N(1)), part_of(last, ADD, N(1)) };

		gate_shut();
		EXPECT_EQ(noh_send(box, last, GATE, NULL, 0), NOH_OK);
		EXPECT(gate_holds(1));
		EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told[way]), NOH_OK);
		before = stats_of(box, "purse").handled;
		for (int64_t i = 1; i <= 5; i++)
			EXPECT_EQ(noh_send(box, first, ADD, &i, 8), NOH_OK);
		nap_us(20000);
		EXPECT_EQ(load_seq_cst(&told[way].times), 0);
		if (stats_of(box, "purse").handled == before)
			EXPECT_EQ(status_of(box, first).mailbox_size, 5);
		gate_open();
		EXPECT(reaches(&told[way].times, 1));
		EXPECT_EQ(told[way].status, NOH_OK);
		EXPECT(settles(box, "purse"));
		EXPECT_EQ(balance(box, first), way + 15 + 1);
		const char *other = first;

		first = last;
		last = other;
	}
	end(box);
}

/* The one the step waits for waits for one that it holds. */
static void a_step_lets_go_of_its_actors_while_one_rests(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &purse_type);

		for (int way = 0; way < 2; way++) {
			const char *rests = way ? "purse:a" : "purse:b", *other = way ? "purse:b" : "purse:a";
			struct order ask = { .n = 1 };
			noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)) };
			struct told told = { .status = 99 };

			snprintf(ask.to, sizeof ask.to, "%s", other);
			gate_shut();
			EXPECT_EQ(noh_send(box, rests, GATE, NULL, 0), NOH_OK);
			EXPECT(gate_holds(1));
			for (int i = 0; i < 20; i++)
				EXPECT_EQ(noh_send(box, rests, WAIT_FOR, &ask, sizeof ask), NOH_OK);
			EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
			for (int i = 0; i < 20; i++)
				EXPECT_EQ(noh_send(box, rests, WAIT_FOR, &ask, sizeof ask), NOH_OK);
			gate_open();
			EXPECT(reaches(&told.times, 1));
			EXPECT_EQ(told.status, NOH_OK);
			EXPECT(settles(box, "purse"));
		}
		EXPECT_EQ(balance(box, "purse:a"), 42);
		EXPECT_EQ(balance(box, "purse:b"), 42);
		end(box);
	}
}

static void a_step_that_gets_no_further_ends_in_time_and_has_done_nothing(void)
{
	noh_box *box = BOX(2, &purse_type);
	noh_call_options soon = { .timeout_ms = 30 };
	noh_part parts[3] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)),
			      part_of("purse:c", ADD, N(1)) };

	gate_shut();
	EXPECT_EQ(noh_send(box, "purse:b", GATE, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(step_with(box, parts, 3, &soon, NULL, NULL), NOH_ETIMEOUT);
	EXPECT_EQ(balance(box, "purse:a"), 0);           /* nobody is held any more */
	EXPECT_EQ(balance(box, "purse:c"), 0);
	gate_open();
	EXPECT_EQ(balance(box, "purse:b"), 0);
	EXPECT(settles(box, "purse"));
	EXPECT_EQ(step(box, parts, 3), NOH_OK);
	end(box);
}

static void actors_that_sleep_are_woken_for_a_step(void)
{
	noh_box *box = BOX(2, &purse_type);

	EXPECT_EQ(put(box, "purse:a", ADD, 10), NOH_OK);
	for (int i = 0; i < 10; i++) {
		(void)noh_deactivate(box, "purse:a", false, SOON);
		(void)noh_deactivate(box, "purse:b", false, SOON);
		EXPECT_EQ(move(box, "purse:a", "purse:b", 1), NOH_OK);
	}
	EXPECT_EQ(balance(box, "purse:a"), 0);
	EXPECT_EQ(balance(box, "purse:b"), 10);
	end(box);
}

static int cannot(noh_turn *t) { return noh_fail(t, "never"); }
static const noh_type broken_type = { .name = "broken", .state_size = 8, .on_activate = cannot,
				      .on_message = purse_message };

static void an_actor_that_cannot_be_activated_fails_the_step(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = BOX(workers, &purse_type, &broken_type);

		for (int i = 0; i < 8; i++) {            /* sometimes it is taken first, sometimes last */
			char name[24];

			snprintf(name, sizeof name, "purse:%d", i);
			noh_part parts[2] = { part_of(name, ADD, N(1)), part_of("broken:1", ADD, N(1)) };

			EXPECT_EQ(step(box, parts, 2), NOH_EFAILED);
			EXPECT_EQ(balance(box, name), 0);
		}
		end(box);
	}
}

static void parts_may_stop_and_erase_their_actors(void)
{
	noh_box *box = BOX(2, &purse_type);
	noh_part parts[3] = { part_of("purse:a", STOP, N(0)), part_of("purse:b", ERASE, N(0)),
			      part_of("purse:c", DEFER, N(0)) };

	EXPECT_EQ(put(box, "purse:a", ADD, 1), NOH_OK);
	EXPECT_EQ(put(box, "purse:b", ADD, 2), NOH_OK);
	EXPECT_EQ(step(box, parts, 3), NOH_OK);
	EXPECT(goes_to_storage(box, "purse:a"));
	EXPECT(goes_to_storage(box, "purse:b"));
	EXPECT_EQ(balance(box, "purse:a"), 1);
	EXPECT_EQ(balance(box, "purse:b"), 0);
	end(box);
}

static void a_box_that_stops_finishes_its_steps_or_says_so(void)
{
	for (int i = 0; i < 20; i++) {
		noh_box *box = BOX(2, &purse_type);
		struct told told = { .status = 99 };
		noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)) };

		for (int k = 0; k < 50; k++)
			EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
		EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
		EXPECT_EQ(load_seq_cst(&told.times), 50);
		EXPECT_EQ(told.status, NOH_OK);
		noh_close(box);
	}
	for (int way = 0; way < 4; way++) {      /* one of them, or its caller's, waits for an answer that never comes */
		noh_box *box = BOX(2, &purse_type);
		struct told told = { .status = 99 };
		noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)) };
		struct order ask = { .n = 1, .to = "purse:c", .kind = SILENT };

		EXPECT_EQ(noh_send(box, way & 1 ? "purse:a" : "purse:b", WAIT_FOR, &ask, sizeof ask), NOH_OK);
		EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
		if (way & 2)
			EXPECT_EQ(noh_stop(box, 50), NOH_ETIMEOUT);
		noh_close(box);
		EXPECT_EQ(load_seq_cst(&told.times), 1);
		EXPECT_EQ(told.status, NOH_ESTOPPED);
	}
}

/* ── where it may come from, and where it goes ── */

static const noh_type dropping_type = { .name = "purse", .state_size = sizeof(struct purse), .mailbox_capacity = 2,
					.full_mode = NOH_DROP_OLDEST, .on_message = purse_message };

static void a_mailbox_that_drops_messages_does_not_drop_a_step(void)
{
	noh_box *box = BOX(2, &dropping_type);
	noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)) };
	struct told told = { .status = 99 };

	gate_shut();
	EXPECT_EQ(noh_send(box, "purse:a", GATE, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "purse:b", GATE, NULL, 0), NOH_OK);
	EXPECT(gate_holds(2));
	for (int i = 0; i < 100; i++) {
		if (i == 50)
			EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
		EXPECT_EQ(noh_send(box, i % 2 ? "purse:a" : "purse:b", GET, NULL, 0), NOH_OK);
	}
	gate_open();
	EXPECT(reaches(&told.times, 1));
	EXPECT_EQ(told.status, NOH_OK);
	EXPECT_EQ(balance(box, "purse:a"), 1);
	EXPECT(settles(box, "purse"));
	EXPECT(stats_of(box, "purse").dropped_oldest >= 90);
	end(box);
}

/* done sends the next one: however often, it is not a deeper and deeper call. */
static struct { noh_box *box; atomic_u64 left, over; } chain;

static void next_step(void *user, int status, const noh_part_answer *answers, size_t count)
{
	noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(1)) };

	(void)user, (void)answers, (void)count;
	EXPECT_EQ(status, NOH_OK);
	if (add_seq_cst(&chain.left, UINT64_MAX) == 1)
		add_seq_cst(&chain.over, 1);
	else
		EXPECT_EQ(noh_step_then(chain.box, parts, 2, NULL, next_step, NULL), NOH_OK);
}

static void each_step_may_send_the_next_one(void)
{
	noh_part parts[2] = { part_of("purse:a", ADD, N(0)), part_of("purse:b", ADD, N(0)) };

	chain.box = BOX(2, &purse_type);
	store_seq_cst(&chain.left, 20000);
	store_seq_cst(&chain.over, 0);
	EXPECT_EQ(noh_step_then(chain.box, parts, 2, NULL, next_step, NULL), NOH_OK);
	EXPECT(reaches(&chain.over, 1));
	EXPECT_EQ(balance(chain.box, "purse:b"), 19999);
	end(chain.box);
}

static struct told from_turn;

static int caller_message(noh_turn *t, const noh_msg *m)
{
	noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("caller:1", ADD, N(1)) };

	if (m->kind != GATE)
		return NOH_OK;
	EXPECT_EQ(noh_step(noh_turn_box(t), parts, 2, NULL, NULL, NULL, NULL), NOH_EINTURN);
	return noh_step_then(noh_turn_box(t), parts, 2, NULL, note, &from_turn);   /* with itself in it */
}

static const noh_type caller_type = { .name = "caller", .on_message = caller_message };

static void a_turn_may_begin_a_step_that_comes_after_it(void)
{
	noh_box *box = BOX(2, &purse_type, &caller_type);

	store_seq_cst(&from_turn.times, 0);
	EXPECT_EQ(call(box, "caller:1", GATE), NOH_OK);
	EXPECT(reaches(&from_turn.times, 1));
	EXPECT_EQ(from_turn.status, NOH_OK);
	EXPECT_EQ(balance(box, "purse:a"), 1);
	end(box);
}

/* ── in place ── */

static void between_turns_a_worker_runs_the_step_at_once(void)
{
	noh_options o = kit_options(2);
	noh_box *box = kit_open(&o, TYPES(&purse_type));
	noh_part parts[2] = { part_of("purse:a", ADD, N(1)), part_of("purse:b", ADD, N(2)) };
	struct told told = { .status = 99 };

	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	sched_set_self(&box->sched.workers[1]);
	for (uint64_t i = 1; i <= 3; i++) {
		EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
		EXPECT_EQ(load_seq_cst(&told.times), i);
		EXPECT_EQ(told.status, NOH_OK);
		EXPECT_EQ(told.answer, i);
	}
	parts[0].kind = KEEP;
	parts[1].kind = FAIL;
	EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
	EXPECT_EQ(told.status, NOH_EFAILED);
	EXPECT_EQ(stats(box).timers, 0);
	parts[1].kind = ADD;
	EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
	EXPECT_EQ(told.answer, 4);
	EXPECT_EQ(stats(box).timers, 1);
	store_seq_cst(&told.times, 3);
	EXPECT(!runq_length(&box->sched.workers[1].runq));
	EXPECT(!inbox_has(&box->sched.workers[0].shared.inbox));
	EXPECT_EQ(noh_send(box, "purse:b", ADD, N(5), 8), NOH_OK);       /* busy: then it has to wait */
	EXPECT_EQ(noh_step_then(box, parts, 2, NULL, note, &told), NOH_OK);
	EXPECT_EQ(load_seq_cst(&told.times), 3);
	while (sched_pass(&box->sched.workers[1]))
		;
	EXPECT_EQ(load_seq_cst(&told.times), 4);
	sched_set_self(NULL);
	noh_close(box);
}

/* ── reads beside the mailbox ── */

static struct { noh_box *box; atomic_u32 stop; atomic_u64 torn, looked; } reading;

static void *read_both(void *arg)
{
	(void)arg;
	while (!load_seq_cst(&reading.stop)) {
		uint64_t a = get(reading.box, "shown:a", READ), b = get(reading.box, "shown:b", READ);

		if (b < a)                       /* both grow by one, at once */
			add_seq_cst(&reading.torn, 1);
		add_seq_cst(&reading.looked, 1);
	}
	return NULL;
}

static void no_read_sees_some_actors_before_a_step_and_others_after(void)
{
	noh_box *box = reading.box = BOX(2, &shown_type);
	noh_part parts[2] = { part_of("shown:a", ADD, N(1)), part_of("shown:b", ADD, N(1)) };
	struct threads t;

	store_seq_cst(&reading.stop, 0);
	EXPECT_EQ(step(box, parts, 2), NOH_OK);
	threads_start(&t, 2, read_both);
	for (int i = 0; i < 3000; i++)
		EXPECT_EQ(step(box, parts, 2), NOH_OK);
	EXPECT(reaches(&reading.looked, 100));
	store_seq_cst(&reading.stop, 1);
	threads_join(&t);
	EXPECT_EQ(load_seq_cst(&reading.torn), 0);
	end(box);
}

/* ── a turn that says no ── */

static void a_refused_turn_leaves_nothing_but_its_answer(void)
{
	noh_box *box = BOX(1, &purse_type, &shown_type);
	int64_t said = 0, big[40] = { 17 };
	size_t len = sizeof said;

	EXPECT_EQ(put(box, "purse:a", ADD, 3), NOH_OK);
	EXPECT_EQ(noh_call(box, "purse:a", TAKE, N(4), 8, SOON, &said, &len), NOH_REFUSED);
	EXPECT_EQ(said, 3);
	EXPECT_EQ(balance(box, "purse:a"), 3);
	EXPECT_EQ(balance(box, "purse:told"), 0);
	EXPECT_EQ(noh_call(box, "shown:a", TAKE, N(4), 8, SOON, &said, &len), NOH_REFUSED);
	EXPECT_EQ(balance(box, "shown:a"), 0);
	EXPECT_EQ(noh_send(box, "purse:a", TAKE, N(400), 8), NOH_OK);    /* nobody waits for it */
	len = 8;
	EXPECT_EQ(noh_call(box, "purse:a", NO, big, sizeof big, SOON, &said, &len), NOH_ETOOBIG);
	EXPECT_EQ(len, sizeof big);
	EXPECT(settles(box, "purse"));
	EXPECT_EQ(stats_of(box, "purse").failed, 0);
	EXPECT(!logged("failed"));
	EXPECT(strcmp(noh_strerror(NOH_REFUSED), "refused") == 0);
	end(box);
}

TEST_MAIN(
	TEST(all_parts_of_a_step_take_effect_and_answer, "P4"),
	TEST(a_refusal_undoes_the_whole_step, "P4"),
	TEST(a_failure_undoes_the_whole_step_wherever_it_is, "P4 P11"),
	TEST(what_parts_send_and_schedule_leaves_when_all_have_succeeded, "P4"),
	TEST(one_part_alone_is_a_step_and_so_are_a_thousand, "P4"),
	TEST(what_makes_no_sense_is_refused_before_anything_happens, "P11"),
	TEST(a_step_comes_after_what_waits_already_and_holds_up_what_comes_later, "P3"),
	TEST(an_actor_that_is_held_handles_nothing_and_then_everything_in_order, "P2 P3"),
	TEST(a_step_lets_go_of_its_actors_while_one_rests),
	TEST(a_step_that_gets_no_further_ends_in_time_and_has_done_nothing, "P11"),
	TEST(actors_that_sleep_are_woken_for_a_step, "P1"),
	TEST(an_actor_that_cannot_be_activated_fails_the_step, "P11"),
	TEST(parts_may_stop_and_erase_their_actors),
	TEST(a_box_that_stops_finishes_its_steps_or_says_so, "P8"),
	TEST(a_mailbox_that_drops_messages_does_not_drop_a_step, "P8"),
	TEST(each_step_may_send_the_next_one),
	TEST(a_turn_may_begin_a_step_that_comes_after_it),
	TEST(between_turns_a_worker_runs_the_step_at_once),
	TEST(no_read_sees_some_actors_before_a_step_and_others_after, "P4"),
	TEST(a_refused_turn_leaves_nothing_but_its_answer, "P4 P8"))
