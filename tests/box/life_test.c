/* tests/box/life_test.c - activation, deactivation, and what survives them. */
#include "tests/box/kit.h"

struct state { uint64_t sum, activations, deactivations; };

enum { ADD, GET, HOLD, STOP, STOP_AND_FAIL, SPAWN, PARENT, DEACTIVATIONS };

/* One letter per hook: A, m, D. */
static struct { pthread_mutex_t lock; char text[256]; size_t len; } trace = {
	.lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_u32 hold_activate, hold_deactivate, fail_activate, fail_deactivate, tell_at_end;
static atomic_u64 activated;

static void mark(char c)
{
	pthread_mutex_lock(&trace.lock);
	if (trace.len + 1 < sizeof trace.text) {
		trace.text[trace.len++] = c;
		trace.text[trace.len] = 0;
	}
	pthread_mutex_unlock(&trace.lock);
}

static bool traced_either(const char *what, const char *or)
{
	pthread_mutex_lock(&trace.lock);
	bool same = strcmp(trace.text, what) == 0 || strcmp(trace.text, or) == 0;
	if (!same)
		printf("  trace is %s, not %s\n", trace.text, what);
	pthread_mutex_unlock(&trace.lock);
	return same;
}

static bool traced(const char *what)
{
	return traced_either(what, what);
}

static int on_activate(noh_turn *t)
{
	struct state *s = noh_state(t);

	if (load_relaxed(&hold_activate))
		gate_pass();
	s->activations++;
	if (load_relaxed(&fail_activate))
		return noh_fail(t, "not today");
	mark('A');
	add_relaxed(&activated, 1);
	return NOH_OK;
}

static int on_deactivate(noh_turn *t)
{
	struct state *s = noh_state(t);

	mark('D');
	s->deactivations++;
	if (load_relaxed(&hold_deactivate))
		gate_pass();
	if (load_relaxed(&tell_at_end))
		EXPECT_EQ(noh_tell_to(t, "heir:1", ADD, &(uint64_t){ 5 }, 8), NOH_OK);
	return load_relaxed(&fail_deactivate) ? noh_fail(t, "I stay") : NOH_OK;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	struct state *s = noh_state(t);

	switch (m->kind) {
	case ADD: s->sum += *(const uint64_t *)m->body; mark('m'); return NOH_OK;
	case GET: return noh_reply(t, &s->sum, 8);
	case DEACTIVATIONS: return noh_reply(t, &s->deactivations, 8);
	case HOLD: gate_pass(); mark('h'); return NOH_OK;
	case STOP: return noh_stop_self(t);
	case STOP_AND_FAIL: EXPECT_EQ(noh_stop_self(t), NOH_OK); return NOH_EFAILED;
	case SPAWN: {
		noh_actor child = { 0 };
		EXPECT_EQ(noh_spawn(t, "a:child", &child), NOH_OK);
		EXPECT(child.bits != 0);
		return noh_reply(t, &(uint64_t){ noh_self(t).bits }, 8);
	}
	case PARENT: return noh_reply(t, &(uint64_t){ noh_parent(t).bits }, 8);
	}
	return NOH_EINVAL;
}

#define HOOKS .state_size = sizeof(struct state), .on_activate = on_activate, \
	.on_message = on_message, .on_deactivate = on_deactivate

static const noh_type stays = { .name = "a", .idle_timeout_ms = NOH_NEVER, HOOKS };
static const noh_type heir = { .name = "heir", .idle_timeout_ms = NOH_NEVER,
	.state_size = sizeof(struct state), .on_message = on_message };
static const noh_type idles = { .name = "a", .idle_timeout_ms = 100, HOOKS };

static noh_box *start(unsigned workers, const noh_type *type)
{
	trace.len = 0;
	trace.text[0] = 0;
	store_relaxed(&hold_activate, 0);
	store_relaxed(&hold_deactivate, 0);
	store_relaxed(&fail_activate, 0);
	store_relaxed(&fail_deactivate, 0);
	store_relaxed(&tell_at_end, 0);
	store_relaxed(&activated, 0);
	gate_shut();
	return BOX(workers, type, &heir);
}

static void the_first_message_activates(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);

		EXPECT_EQ(status_of(box, "a:1").life, NOH_NOT_ACTIVE);
		EXPECT_EQ(load_relaxed(&activated), 0);        /* asking does not activate */
		EXPECT_EQ(put(box, "a:1", ADD, 3), NOH_OK);
		EXPECT_EQ(get(box, "a:1", GET), 3);
		EXPECT_EQ(status_of(box, "a:1").life, NOH_ACTIVE);
		EXPECT(!status_of(box, "a:1").stored);
		EXPECT_EQ(load_relaxed(&activated), 1);
		EXPECT_EQ(stats(box).actors, 1);
		EXPECT(traced("Am"));
		end(box);
		EXPECT(traced("AmD"));
	}
}

static void a_reference_alone_activates_nobody(void)
{
	noh_box *box = start(2, &idles);
	noh_actor ref;

	EXPECT_EQ(noh_ref(box, "a:1", &ref), NOH_OK);
	EXPECT_EQ(status_of(box, "a:1").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(noh_ref(box, "a:2", &ref), NOH_OK);
	nap_us(400000);                                /* it may idle out meanwhile: without hooks */
	EXPECT_EQ(noh_ref(box, "a:3", &ref), NOH_OK);
	end(box);
	EXPECT_EQ(load_relaxed(&activated), 0);
	EXPECT(traced(""));
}

static void activate_activates_without_a_message(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);

		EXPECT_EQ(noh_activate(box, "a:1", SOON), NOH_OK);
		EXPECT_EQ(status_of(box, "a:1").life, NOH_ACTIVE);
		EXPECT_EQ(noh_activate(box, "a:1", SOON), NOH_OK);
		EXPECT_EQ(load_relaxed(&activated), 1);
		EXPECT_EQ(get(box, "a:1", GET), 0);            /* LC-17: a zero state at first */
		end(box);
	}
}

static void state_comes_back_after_any_number_of_lives(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);
		const int lives = 100;

		for (int i = 0; i < lives; i++) {
			EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
			EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
			EXPECT_EQ(status_of(box, "a:1").life, NOH_NOT_ACTIVE);
			EXPECT(status_of(box, "a:1").stored);
		}
		EXPECT_EQ(get(box, "a:1", GET), lives);
		EXPECT_EQ(get(box, "a:1", DEACTIVATIONS), lives);   /* a change made in the hook is stored */
		EXPECT_EQ(stats_of(box, "a").activations, lives + 1);
		EXPECT_EQ(stats_of(box, "a").deactivations, lives);
		end(box);
	}
}

static void hooks_run_after_loading_and_before_storing(void)
{
	noh_box *box = start(2, &stays);

	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
	EXPECT(traced("AmmDAmD"));
	end(box);
}

static void *deactivates(void *box)
{
	return (void *)(intptr_t)noh_deactivate(box, "a:1", false, SOON);
}

static void *forces(void *box)
{
	return (void *)(intptr_t)noh_deactivate(box, "a:1", true, SOON);
}

static void *activates(void *box)
{
	return (void *)(intptr_t)noh_activate(box, "a:1", SOON);
}

static pthread_t aside(noh_box *box, void *(*what)(void *))
{
	pthread_t t;

	EXPECT_EQ(pthread_create(&t, NULL, what, box), 0);
	return t;
}

static int outcome(pthread_t t)
{
	void *rc;

	pthread_join(t, &rc);
	return (int)(intptr_t)rc;
}

static void what_waits_is_handled_before_deactivation(void)
{
	noh_box *box = start(2, &stays);

	EXPECT_EQ(noh_send(box, "a:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, 20), NOH_ETIMEOUT);
	pthread_t t = aside(box, deactivates);
	gate_open();
	int rc = outcome(t);             /* the request that timed out may have done it first */
	EXPECT(rc == NOH_OK || rc == NOH_ENOACTOR);
	/* A request that comes while the first one is carried out is one for the next life, however short. */
	EXPECT(traced_either("AhmmmmmD", "AhmmmmmDAD"));
	EXPECT_EQ(get(box, "a:1", GET), 5);
	end(box);
}

static void what_comes_during_deactivation_is_handled_by_the_next_life(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);

		EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
		store_relaxed(&hold_deactivate, 1);
		pthread_t t = aside(box, deactivates);
		EXPECT(gate_holds(1));
		EXPECT_EQ(status_of(box, "a:1").life, NOH_DEACTIVATING);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
		store_relaxed(&hold_deactivate, 0);
		gate_open();
		EXPECT_EQ(outcome(t), NOH_OK);
		EXPECT_EQ(get(box, "a:1", GET), 4);
		EXPECT_EQ(stats_of(box, "a").activations, stats_of(box, "a").deactivations + 1);
		EXPECT(settles(box, "a"));
		end(box);
	}
}

static void what_comes_during_activation_waits(void)
{
	noh_box *box = start(2, &stays);

	store_relaxed(&hold_activate, 1);
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(status_of(box, "a:1").life, NOH_ACTIVATING);
	EXPECT_EQ(status_of(box, "a:1").mailbox_size, 3);
	EXPECT_EQ(noh_activate(box, "a:1", 20), NOH_ETIMEOUT);
	pthread_t t = aside(box, activates);
	gate_open();
	EXPECT_EQ(outcome(t), NOH_OK);
	EXPECT_EQ(get(box, "a:1", GET), 3);
	EXPECT(traced("Ammm"));
	end(box);
}

static atomic_u64 done_count;
static atomic_u32 done_status;

static void done(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	(void)answer;
	(void)len;
	store_relaxed(&done_status, (uint32_t)status);
	add_acq_rel(&done_count, 1);
}

static void force_drops_what_waits_and_counts_it(void)
{
	noh_box *box = start(2, &stays);

	store_relaxed(&done_count, 0);
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_send(box, "a:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_call_then(box, "a:1", GET, NULL, 0, SOON, done, NULL), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", true, 20), NOH_ETIMEOUT);   /* a turn is not cut off */
	pthread_t t = aside(box, forces);
	gate_open();
	int rc = outcome(t);
	EXPECT(rc == NOH_OK || rc == NOH_ENOACTOR);                /* the first force may be through */
	EXPECT(goes_to_storage(box, "a:1"));
	EXPECT_EQ(stats_of(box, "a").dropped_forced, 6);
	EXPECT(reaches(&done_count, 1));
	EXPECT_EQ((int32_t)load_relaxed(&done_status), NOH_EGONE);
	EXPECT_EQ(get(box, "a:1", GET), 1);
	EXPECT(settles(box, "a"));
	end(box);
}

static void deactivating_nobody_is_an_answer(void)
{
	noh_box *box = start(1, &stays);

	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_ENOACTOR);
	EXPECT(strstr(noh_why(), "a:1"));
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(get(box, "a:1", GET), 1);
	EXPECT_EQ(noh_deactivate(box, "a:1", true, SOON), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", true, SOON), NOH_ENOACTOR);
	end(box);
}

static void a_failing_activation_fails_who_waits_and_nobody_after(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);

		EXPECT_EQ(put(box, "a:1", ADD, 7), NOH_OK);
		EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
		store_relaxed(&fail_activate, 1);
		EXPECT_EQ(call(box, "a:1", GET), NOH_EFAILED);
		EXPECT_EQ(noh_activate(box, "a:1", SOON), NOH_EFAILED);
		EXPECT(test_wait_until(is_logged, "a:1|activation failed: not today", SOON));
		EXPECT(goes_to_storage(box, "a:1"));
		store_relaxed(&fail_activate, 0);
		EXPECT_EQ(get(box, "a:1", GET), 7);            /* and its state is as it was */
		EXPECT_EQ(stats_of(box, "a").failed, 1);
		EXPECT_EQ(stats_of(box, "a").activations, 2);
		EXPECT_EQ(stats_of(box, "a").deactivations, 1);
		EXPECT(settles(box, "a"));
		end(box);
	}
}

static void a_failing_deactivation_keeps_the_state_of_the_last_turn(void)
{
	noh_box *box = start(1, &stays);

	store_relaxed(&fail_deactivate, 1);
	EXPECT_EQ(put(box, "a:1", ADD, 7), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
	EXPECT(test_wait_until(is_logged, "a:1|on_deactivate failed: I stay", SOON));
	EXPECT_EQ(get(box, "a:1", GET), 7);
	EXPECT_EQ(get(box, "a:1", DEACTIVATIONS), 0);
	end(box);
}

static void what_on_deactivate_sends_is_sent(void)
{
	noh_box *box = start(2, &stays);

	store_relaxed(&tell_at_end, 1);
	EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "a:1", false, SOON), NOH_OK);
	EXPECT_EQ(get(box, "heir:1", GET), 5);
	store_relaxed(&tell_at_end, 0);
	end(box);
}

static void a_child_is_activated_and_knows_its_parent(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);
		uint64_t parent = get(box, "a:parent", SPAWN);

		EXPECT(reaches(&activated, 2));
		EXPECT_EQ(get(box, "a:child", PARENT), parent);
		EXPECT_EQ(get(box, "a:parent", PARENT), 0);
		end(box);
	}
}

static void an_actor_can_stop_itself(void)
{
	noh_box *box = start(2, &stays);

	EXPECT_EQ(noh_send(box, "a:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_send(box, "a:1", STOP, NULL, 0), NOH_OK);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(put(box, "a:1", ADD, 1), NOH_OK);
	gate_open();
	EXPECT(goes_to_storage(box, "a:1"));
	EXPECT(traced("AhmmmD"));
	EXPECT_EQ(get(box, "a:1", GET), 3);
	EXPECT_EQ(call(box, "a:1", STOP_AND_FAIL), NOH_EFAILED);
	EXPECT_EQ(get(box, "a:1", GET), 3);
	EXPECT_EQ(stats_of(box, "a").deactivations, 1);
	end(box);
}

static void stopping_deactivates_everybody(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &stays);
		char address[32];

		for (int i = 0; i < 5000; i++) {
			snprintf(address, sizeof address, "a:%d", i);
			EXPECT_EQ(put(box, address, ADD, 1), NOH_OK);
		}
		EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
		EXPECT_EQ(stats(box).actors, 0);
		EXPECT_EQ(stats(box).stored, 5000);
		EXPECT_EQ(stats_of(box, "a").handled, 5000);
		EXPECT_EQ(stats_of(box, "a").deactivations, 5000);
		noh_close(box);
	}
}

/* Only actor i is told at time i, so whichever worker sleeps, one of them must come round. */
static void idle_actors_go_to_storage_on_every_worker(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = start(workers, &idles);
		char address[32];

		for (int i = 0; i < 4; i++) {
			snprintf(address, sizeof address, "a:%d", i);
			EXPECT_EQ(put(box, address, ADD, 9), NOH_OK);
			EXPECT(goes_to_storage(box, address));
			EXPECT(status_of(box, address).stored);
			EXPECT_EQ(get(box, address, GET), 9);
		}
		end(box);
	}
}

static void an_idle_actor_stays_for_its_timeout(void)
{
	noh_box *box = start(1, &idles);
	uint64_t start_us = now_us();

	EXPECT_EQ(put(box, "a:1", ADD, 9), NOH_OK);
	EXPECT(goes_to_storage(box, "a:1"));
	EXPECT(now_us() - start_us >= 100000);
	end(box);
}

TEST_MAIN(
	TEST(the_first_message_activates, "ID-05 LC-02 LC-03 LC-04 LC-17"),
	TEST(a_reference_alone_activates_nobody),
	TEST(activate_activates_without_a_message, "RT-15 LC-17"),
	TEST(state_comes_back_after_any_number_of_lives, "LC-07 LC-13 LC-15 RT-16"),
	TEST(hooks_run_after_loading_and_before_storing, "LC-06 LC-07 LC-08 LC-12 LC-13 LC-14 LC-16"),
	TEST(what_waits_is_handled_before_deactivation, "LC-10 LC-11"),
	TEST(what_comes_during_deactivation_is_handled_by_the_next_life, "LC-03 LC-14 LC-15"),
	TEST(what_comes_during_activation_waits, "LC-03 LC-09"),
	TEST(force_drops_what_waits_and_counts_it, "RT-16"),
	TEST(deactivating_nobody_is_an_answer, "RT-16"),
	TEST(a_failing_activation_fails_who_waits_and_nobody_after, "LC-08"),
	TEST(a_failing_deactivation_keeps_the_state_of_the_last_turn, "LC-12"),
	TEST(what_on_deactivate_sends_is_sent, "LC-12"),
	TEST(a_child_is_activated_and_knows_its_parent, "LC-22"),
	TEST(an_actor_can_stop_itself, "LC-24"),
	TEST(stopping_deactivates_everybody, "LC-10 LC-13"),
	TEST(idle_actors_go_to_storage_on_every_worker, "LC-10"),
	TEST(an_idle_actor_stays_for_its_timeout, "LC-10"))
