/* tests/box/metrics_test.c - what happened is what the metrics say: exactly, by type and reason, and never by actor. */
#include "box/box.h"
#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"
#include "tests/box/metrics_kit.h"

enum { NOTE, HOLD, FAIL, STOP, ERASE, LATER, TICK, SLOW, SPEC };

static int on_message(noh_turn *t, const noh_msg *m)
{
	uint64_t *state = noh_state(t);

	switch (m->kind) {
	case HOLD: gate_pass(); break;
	case FAIL: return noh_fail(t, "told to");
	case STOP: return noh_stop_self(t);
	case ERASE: return noh_erase(t);
	case LATER: return noh_schedule_once(t, TICK, 5);
	case SLOW: nap_us(30000); break;
	}
	++*state;
	return NOH_OK;
}

static int on_batch(noh_turn *t, const noh_msg *msgs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (msgs[i].kind == HOLD)
			gate_pass();
	*(uint64_t *)noh_state(t) += n;
	return NOH_OK;
}

static int refuse_to_live(noh_turn *t)
{
	return noh_fail(t, "never");
}

static void key_and_revision(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	(void)body;
	*key = 1;
	*revision = len;
}

static const noh_kind kinds[] = { [NOTE] = { "note", 0, NULL }, [HOLD] = { "hold", 0, NULL },
				  [SPEC] = { "spec", NOH_KIND_COALESCE, key_and_revision } };
static const noh_type plain = { .name = "plain", .state_size = 8, .full_mode = NOH_BLOCK, .on_message = on_message };
static const noh_type oldest = { .name = "oldest", .state_size = 8, .mailbox_capacity = 10,
				 .full_mode = NOH_DROP_OLDEST, .on_message = on_message };
static const noh_type newest = { .name = "newest", .state_size = 8, .mailbox_capacity = 10,
				 .full_mode = NOH_DROP_NEWEST, .on_message = on_message };
static const noh_type merging = { .name = "merging", .state_size = 8, .full_mode = NOH_BLOCK, .kinds = kinds,
				  .kind_count = sizeof kinds / sizeof kinds[0], .on_message = on_message };
static const noh_type batches = { .name = "batches", .state_size = 8, .full_mode = NOH_BLOCK, .on_batch = on_batch };
static const noh_type brief = { .name = "brief", .state_size = 8, .idle_timeout_ms = 100, .full_mode = NOH_BLOCK,
				.on_message = on_message };
static const noh_type stillborn = { .name = "stillborn", .full_mode = NOH_BLOCK, .on_activate = refuse_to_live,
				    .on_message = on_message };

/* ── messages ── */

static void messages_are_counted_by_their_ends(void)
{
	noh_box *box = BOX(2, &plain, &newest);

	for (int i = 0; i < 70; i++)
		EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
	for (int i = 0; i < 30; i++)
		EXPECT_EQ(call(box, "plain:b", FAIL), NOH_EFAILED);
	EXPECT_EQ(noh_send(box, "nosuch:a", NOTE, NULL, 0), NOH_ENOTYPE);
	EXPECT(settles(box, "plain"));
	scrape(box);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\"plain\"}"), 100);
	EXPECT_EQ(said("noh_messages_processed_total{type=\"plain\",result=\"ok\"}"), 70);
	EXPECT_EQ(said("noh_messages_processed_total{type=\"plain\",result=\"failed\"}"), 30);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\"newest\"}"), 0);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"\",reason=\"no_type\"}"), 1);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"plain\"}"), 0);
	EXPECT_EQ(said("noh_actors_active{type=\"plain\"}"), 2);
	end(box);
}

static void drops_are_counted_by_type_and_reason(void)
{
	noh_box *box = BOX(2, &oldest, &newest, &merging);

	gate_shut();
	EXPECT_EQ(put(box, "oldest:a", HOLD, 1), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 17; i++)
		EXPECT_EQ(put(box, "oldest:a", NOTE, 1), NOH_OK);
	EXPECT_EQ(put(box, "newest:a", HOLD, 1), NOH_OK);
	EXPECT(gate_holds(2));
	for (int i = 0; i < 13; i++)
		EXPECT_EQ(put(box, "newest:a", NOTE, 1), i < 10 ? NOH_OK : NOH_FULL);
	scrape(box);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"oldest\",reason=\"full_oldest\"}"), 7);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"newest\",reason=\"full_newest\"}"), 3);
	EXPECT_EQ(said("noh_mailbox_refusals_total{type=\"newest\"}"), 3);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"oldest\"}"), 11);       /* and the one that is held */
	EXPECT_EQ(said("noh_mailbox_depth{type=\"newest\"}"), 11);
	EXPECT_EQ(said("noh_mailbox_depth_max{type=\"oldest\"}"), 10);
	EXPECT_EQ(said("noh_mailbox_depth_max{type=\"newest\"}"), 10);
	EXPECT_EQ(said("noh_mailbox_capacity{type=\"newest\"}"), 10);
	gate_open();
	EXPECT(settles(box, "oldest") && settles(box, "newest"));
	gate_shut();
	EXPECT_EQ(put(box, "merging:a", HOLD, 1), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 9; i++)
		EXPECT_EQ(noh_send(box, "merging:a", SPEC, "abcdefghi", (size_t)i), NOH_OK);
	gate_open();
	EXPECT(settles(box, "merging"));
	scrape(box);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"merging\",reason=\"coalesced\"}"), 8);
	EXPECT_EQ(said("noh_messages_processed_total{type=\"merging\",result=\"ok\"}"), 2);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"oldest\"}"), 0);
	end(box);
}

static void what_is_dropped_by_force_or_at_the_end_is_counted(void)
{
	noh_box *box = BOX(1, &plain);

	gate_shut();
	EXPECT_EQ(put(box, "plain:a", HOLD, 1), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
	for (int i = 0; i < 99; i++)             /* it blocks: a sender that is refused tries again, and drops nothing */
		(void)put(box, "plain:a", NOTE, 1);
	scrape(box);
	EXPECT_EQ(said("noh_mailbox_refusals_total{type=\"plain\"}"), 4);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"plain\",reason=\"full_newest\"}"), 0);
	EXPECT_EQ(noh_deactivate(box, "plain:a", true, 1), NOH_ETIMEOUT);
	gate_open();
	EXPECT(goes_to_storage(box, "plain:a"));
	gate_shut();
	EXPECT_EQ(put(box, "plain:b", HOLD, 1), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(put(box, "plain:b", NOTE, 1), NOH_OK);
	scrape(box);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"plain\",reason=\"forced\"}"), 100);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"forced\"}"), 1);
	EXPECT_EQ(said("noh_messages_dropped_total{type=\"plain\",reason=\"stop\"}"), 0);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"plain\"}"), 4);
	gate_open();
	end(box);
}

/* ── actors ── */

static void coming_and_going_is_counted_by_reason(void)
{
	noh_box *box = BOX(2, &plain, &brief);

	EXPECT_EQ(call(box, "plain:asked", NOTE), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "plain:asked", false, SOON), NOH_OK);
	EXPECT_EQ(call(box, "plain:asked", NOTE), NOH_OK);               /* and loaded again */
	EXPECT_EQ(call(box, "plain:self", STOP), NOH_OK);
	EXPECT(goes_to_storage(box, "plain:self"));
	EXPECT_EQ(call(box, "plain:erased", NOTE), NOH_OK);
	EXPECT_EQ(call(box, "plain:erased", ERASE), NOH_OK);
	EXPECT(goes_to_storage(box, "plain:erased"));
	EXPECT_EQ(call(box, "brief:idle", NOTE), NOH_OK);
	EXPECT(goes_to_storage(box, "brief:idle"));
	scrape(box);
	EXPECT_EQ(said("noh_activations_total{type=\"plain\",reason=\"new\"}"), 3);
	EXPECT_EQ(said("noh_activations_total{type=\"plain\",reason=\"loaded\"}"), 1);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"asked\"}"), 1);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"self\"}"), 1);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"erased\"}"), 1);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"idle\"}"), 0);
	EXPECT_EQ(said("noh_deactivations_total{type=\"brief\",reason=\"idle\"}"), 1);
	EXPECT_EQ(said("noh_actors_active{type=\"plain\"}"), 1);
	EXPECT_EQ(said("noh_actors_active{type=\"brief\"}"), 0);
	EXPECT_EQ(said("noh_actors_stored{type=\"plain\"}"), 2);         /* the erased one is not */
	EXPECT_EQ(said("noh_actors_stored{type=\"brief\"}"), 1);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	scrape(box);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"stop\"}"), 1);
	EXPECT_EQ(said("noh_actors_active{type=\"plain\"}"), 0);
	noh_close(box);
}

static void who_goes_because_memory_is_short_is_told_from_who_is_idle(void)
{
	noh_options o = kit_options(1);
	char address[32];
	double gone = 0;

	o.memory_budget = 1 << 20;
	noh_box *box = kit_start(&o, TYPES(&plain));

	for (int i = 0; i < 30000 && gone == 0; i++) {
		snprintf(address, sizeof address, "plain:%d", i);
		while (put(box, address, NOTE, 1) != NOH_OK)
			nap_us(100);
		if (i % 1000 == 0) {
			scrape(box);
			gone = said("noh_deactivations_total{type=\"plain\",reason=\"memory\"}");
		}
	}
	EXPECT(gone > 0);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"idle\"}"), 0);
	EXPECT_EQ(said("noh_deactivations_total{type=\"plain\",reason=\"self\"}"), 0);
	end(box);
}

static void failed_activations_are_restarts(void)
{
	noh_box *box = BOX(1, &stillborn);

	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(call(box, "stillborn:a", NOTE), NOH_EFAILED);
		EXPECT(goes_to_storage(box, "stillborn:a"));             /* else it fails the next one as well */
	}
	EXPECT(settles(box, "stillborn"));
	scrape(box);
	EXPECT_EQ(said("noh_restarts_total{type=\"stillborn\"}"), 6);
	EXPECT_EQ(said("noh_activations_total{type=\"stillborn\",reason=\"new\"}"), 0);
	EXPECT_EQ(said("noh_messages_processed_total{type=\"stillborn\",result=\"failed\"}"), 6);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"stillborn\"}"), 0);
	end(box);
}

/* ── times ── */

/* A turn is measured if it is the first of a pass; the worker may still be in the one of the call before. */
static bool is_slow_turn_seen(void *box)
{
	EXPECT_EQ(call(box, "plain:a", SLOW), NOH_OK);                   /* 30 ms */
	scrape(box);
	return said("noh_turn_duration_seconds_bucket{type=\"plain\",le=\"0.025\"}") <
	       said("noh_turn_duration_seconds_count{type=\"plain\"}");
}

static void a_histogram_adds_up(void)
{
	noh_box *box = BOX(2, &plain, &batches);
	char name[128];
	double last = -1;
	static const char *const bounds[] = { "0.00005", "0.001", "0.025", "0.05", "1", "30", "+Inf" };

	for (int i = 0; i < 20; i++)
		EXPECT_EQ(call(box, "plain:a", NOTE), NOH_OK);
	EXPECT_EQ(call(box, "plain:a", SLOW), NOH_OK);
	scrape(box);
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		snprintf(name, sizeof name, "noh_invoke_duration_seconds_bucket{type=\"plain\",le=\"%s\"}", bounds[i]);
		EXPECT(said(name) >= last);
		last = said(name);
	}
	EXPECT_EQ(last, 21);
	EXPECT_EQ(said("noh_invoke_duration_seconds_count{type=\"plain\"}"), 21);
	EXPECT(said("noh_invoke_duration_seconds_sum{type=\"plain\"}") >= 0.03);
	EXPECT(test_wait_until(is_slow_turn_seen, box, SOON));
	EXPECT(said("noh_turn_duration_seconds_sum{type=\"plain\"}") >= 0.03);
	EXPECT_EQ(said("noh_turn_duration_seconds_count{type=\"batches\"}"), 0);
	EXPECT_EQ(said("noh_turn_batch_size_count{type=\"plain\"}"), -1);        /* takes none */
	end(box);
}

static void batches_are_counted_by_their_size(void)
{
	noh_box *box = BOX(1, &batches);

	gate_shut();
	EXPECT_EQ(put(box, "batches:a", HOLD, 1), NOH_OK);
	EXPECT(gate_holds(1));
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(put(box, "batches:a", NOTE, 1), NOH_OK);
	gate_open();
	EXPECT(settles(box, "batches"));
	scrape(box);
	EXPECT_EQ(said("noh_turn_batch_size_bucket{type=\"batches\",le=\"1\"}"), 1);
	EXPECT_EQ(said("noh_turn_batch_size_bucket{type=\"batches\",le=\"32\"}"), 1);
	EXPECT_EQ(said("noh_turn_batch_size_bucket{type=\"batches\",le=\"64\"}"), 2);
	EXPECT_EQ(said("noh_turn_batch_size_sum{type=\"batches\"}"), 41);
	end(box);
}

static bool has_ticked(void *box)
{
	scrape(box);
	return said("noh_timer_lateness_seconds_count") == 3;
}

static void timers_tell_how_late_they_are(void)
{
	noh_box *box = BOX(1, &plain);

	EXPECT_EQ(call(box, "plain:a", LATER), NOH_OK);
	EXPECT_EQ(call(box, "plain:b", LATER), NOH_OK);
	EXPECT_EQ(call(box, "plain:c", LATER), NOH_OK);
	EXPECT(test_wait_until(has_ticked, box, SOON));
	EXPECT_EQ(said("noh_timers_pending"), 0);
	EXPECT(said("noh_timer_lateness_seconds_sum") < 3);
	end(box);
}

/* A box whose clock the test moves, and whose one worker it runs. */
static noh_box *open_stepped(struct clock_virtual *v, const noh_type *type)
{
	noh_options o = kit_options(1);
	noh_box *box = NULL;

	clock_virtual_init(v, UINT64_C(1000000000));
	EXPECT_EQ(box_open(&box, &o, &(struct box_seams){ .clock = v->clock }), NOH_OK);
	EXPECT_EQ(noh_register(box, type), NOH_OK);
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	return box;
}

static void pass(noh_box *box)
{
	sched_set_self(&box->sched.workers[0]);
	while (sched_pass(&box->sched.workers[0]) != 0)
		;
	sched_set_self(NULL);
}

static void time_in_the_mailbox_is_measured(void)
{
	struct clock_virtual v;
	noh_box *box = open_stepped(&v, &plain);

	EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
	clock_virtual_advance(&v, 3000000);
	pass(box);
	scrape(box);
	EXPECT_EQ(said("noh_mailbox_wait_seconds_bucket{type=\"plain\",le=\"0.0025\"}"), 0);
	EXPECT_EQ(said("noh_mailbox_wait_seconds_bucket{type=\"plain\",le=\"0.005\"}"), 1);
	EXPECT(said("noh_mailbox_wait_seconds_sum{type=\"plain\"}") == 0.003);
	/* The sixteenth is the next, among others that wait as long; a new probe needs the old one back. */
	clock_virtual_advance(&v, 1000000);
	for (int i = 1; i < 20; i++)
		EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
	clock_virtual_advance(&v, 200000000);
	pass(box);
	clock_virtual_advance(&v, UINT64_C(3600000000000));              /* nobody waits meanwhile */
	EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
	pass(box);
	scrape(box);
	EXPECT_EQ(said("noh_mailbox_wait_seconds_count{type=\"plain\"}"), 2);
	EXPECT(said("noh_mailbox_wait_seconds_sum{type=\"plain\"}") == 0.203);
	noh_close(box);
}

static void a_batch_taken_at_once_is_measured_as_well(void)
{
	struct clock_virtual v;
	noh_box *box = open_stepped(&v, &batches);

	for (int i = 0; i < 15; i++)                                     /* the first carries the probe */
		EXPECT_EQ(put(box, "batches:a", NOTE, 1), NOH_OK);
	clock_virtual_advance(&v, 7000000);
	pass(box);
	scrape(box);
	EXPECT_EQ(said("noh_mailbox_wait_seconds_count{type=\"batches\"}"), 1);
	EXPECT(said("noh_mailbox_wait_seconds_sum{type=\"batches\"}") == 0.007);
	EXPECT_EQ(said("noh_mailbox_depth_max{type=\"batches\"}"), 1);
	noh_close(box);
}

static void a_worker_is_as_busy_as_it_works(void)
{
	struct clock_virtual v;
	noh_box *box = open_stepped(&v, &plain);
	struct worker *w = &box->sched.workers[0];

	for (int i = 0; i < 400; i++) {                                  /* 100 ms each: one of four with work */
		if (i % 4 == 0)
			EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
		sched_set_self(w);
		(void)sched_pass(w);
		sched_set_self(NULL);
		clock_virtual_advance(&v, 100000000);
	}
	scrape(box);
	EXPECT(said("noh_worker_busy_ratio{worker=\"0\"}") > 0.24 && said("noh_worker_busy_ratio{worker=\"0\"}") < 0.26);
	EXPECT(said("noh_worker_busy_seconds_total{worker=\"0\"}") == 10);
	EXPECT_EQ(said("noh_turns_total{worker=\"0\"}"), 101);           /* and its activation */
	noh_close(box);
}

/* ── on disk ── */

static int keyed(noh_box *box, const char *address, const char *key)
{
	return noh_call_with(box, address, NOTE, NULL, 0, &(noh_call_options){ .key = key, .key_len = strlen(key) }, NULL,
			     NULL);
}

static void replays_and_commits_are_counted(void)
{
	const noh_type types[] = { plain, batches };
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, types, 2);

	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(keyed(box, "plain:a", "order-1"), NOH_OK);
		EXPECT_EQ(keyed(box, "batches:a", "order-1"), NOH_OK);
	}
	EXPECT_EQ(noh_sync(box, SOON), NOH_OK);
	EXPECT(settles(box, "plain") && settles(box, "batches"));
	scrape(box);
	EXPECT_EQ(said("noh_idempotent_replays_total{protocol=\"library\"}"), 6);
	EXPECT_EQ(said("noh_idempotent_replays_total{protocol=\"resp\"}"), 0);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\"plain\"}"), 4);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\"batches\"}"), 4);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"plain\"}"), 0);
	EXPECT_EQ(said("noh_mailbox_depth{type=\"batches\"}"), 0);
	EXPECT_EQ(said("noh_commit_batch_size_sum"), stats(box).journal_records);
	EXPECT(said("noh_commit_batch_size_sum") >= 2);
	EXPECT_EQ(said("noh_commit_duration_seconds_count"), said("noh_commit_batch_size_count"));
	EXPECT_EQ(said("noh_durable_lag_seconds"), 0);
	EXPECT_EQ(said("noh_actors_stored{type=\"plain\"}"), 1);
	EXPECT(said("noh_store_used_bytes") > 0);
	EXPECT(said("noh_store_limit_bytes") > said("noh_store_used_bytes"));
	EXPECT(said("noh_journal_bytes") > 0);
	EXPECT_EQ(said("noh_store_oldest_reader_seconds"), 0);
	EXPECT_EQ(said("noh_read_only"), 0);
	EXPECT_EQ(said("noh_io_errors_total{op=\"disk\"}"), 0);
	shut(box);
	remove_dir(dir);
}

static void what_is_not_written_yet_lags(void)
{
	struct clock_virtual v;
	noh_options o = kit_options(1);
	noh_box *box = NULL;
	char dir[256];

	clock_virtual_init(&v, UINT64_C(1000000000));
	o.dir = fresh_dir(dir, sizeof dir);
	EXPECT_EQ(box_open(&box, &o, &(struct box_seams){ .clock = v.clock }), NOH_OK);
	EXPECT_EQ(noh_register(box, &plain), NOH_OK);
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	box->sched.journal.take = NULL;          /* the journal is written when the test says so */
	EXPECT_EQ(put(box, "plain:a", NOTE, 1), NOH_OK);
	pass(box);
	EXPECT_EQ(journal_step(box->disk.journal, false), JOURNAL_BUSY);         /* submitted, not reaped */
	clock_virtual_advance(&v, 250000000);
	scrape(box);
	EXPECT(said("noh_durable_lag_seconds") == 0.25);
	while (journal_step(box->disk.journal, true) == JOURNAL_BUSY)
		;
	scrape(box);
	EXPECT_EQ(said("noh_durable_lag_seconds"), 0);
	EXPECT_EQ(said("noh_commit_duration_seconds_count"), 1);
	EXPECT(said("noh_commit_duration_seconds_sum") == 0.25);
	noh_close(box);
	remove_dir(dir);
}

/* ── the text ── */

static void no_label_is_an_actors_id(void)
{
	noh_box *box = BOX(2, &plain);
	char address[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(address, sizeof address, "plain:customer-%d", i);
		EXPECT_EQ(put(box, address, NOTE, 1), NOH_OK);
	}
	EXPECT_EQ(noh_send(box, "evil-type:customer-1", NOTE, NULL, 0), NOH_ENOTYPE);
	EXPECT(settles(box, "plain"));
	scrape(box);
	EXPECT(strstr(scraped.text, "customer") == NULL);
	EXPECT(strstr(scraped.text, "evil") == NULL);
	EXPECT(scraped.len < 40000);
	end(box);
}

static void more_types_than_there_is_room_for_are_one_series(void)
{
	static char names[150][16];
	noh_options o = kit_options(1);
	noh_box *box = NULL;
	char address[32];

	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	for (int i = 0; i < 150; i++) {
		noh_type t = plain;

		snprintf(names[i], sizeof names[i], "t%d", i);
		t.name = names[i];
		EXPECT_EQ(noh_register(box, &t), NOH_OK);
	}
	EXPECT_EQ(noh_start(box), NOH_OK);
	for (int i = 0; i < 150; i++) {
		snprintf(address, sizeof address, "t%d:a", i);
		EXPECT_EQ(call(box, address, NOTE), NOH_OK);
	}
	scrape(box);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\"t99\"}"), 1);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\"t100\"}"), -1);
	EXPECT_EQ(said("noh_messages_accepted_total{type=\":other\"}"), 50);
	EXPECT_EQ(said("noh_invoke_duration_seconds_count{type=\":other\"}"), 50);
	end(box);
}

static void names_that_are_no_text_do_not_break_it(void)
{
	noh_type odd = plain, broken = plain;
	noh_box *box;

	odd.name = "a\"b\\c\nd";
	broken.name = "caf\xe9";
	box = BOX(1, &odd, &broken);
	scrape(box);
	EXPECT_EQ(said("noh_actors_active{type=\"a\\\"b\\\\c\\nd\"}"), 0);
	EXPECT_EQ(said("noh_actors_active{type=\"caf?\"}"), 0);
	end(box);
}

static void openmetrics_has_its_own_form(void)
{
	noh_box *box = BOX(1, &plain);
	const char *text = scrape_as(box, NOH_OPENMETRICS);

	EXPECT(strstr(text, "# TYPE noh_messages_accepted counter\n") != NULL);
	EXPECT(strstr(text, "# TYPE noh_build info\n") != NULL);
	EXPECT(strstr(text, "le=\"1.0\"") != NULL);
	EXPECT(scraped.len > 6 && strcmp(text + scraped.len - 6, "# EOF\n") == 0);
	text = scrape_as(box, NOH_PROMETHEUS);
	EXPECT(strstr(text, "# TYPE noh_messages_accepted_total counter\n") != NULL);
	EXPECT(strstr(text, "# EOF") == NULL);
	EXPECT(strstr(text, "noh_commit") == NULL);      /* no directory: not even a title */
	EXPECT(said("process_resident_memory_bytes") > 1e6);
	EXPECT(said("process_open_fds") > 2);
	EXPECT(said("process_start_time_seconds") > 1.5e9);
	EXPECT(said("noh_start_time_seconds") >= said("process_start_time_seconds"));
	EXPECT(said("noh_ready_seconds") >= 0);
	end(box);
}

static int refuse_piece(void *user, const char *text, size_t len)
{
	(void)text;
	(void)len;
	++*(int *)user;
	return 42;
}

static void who_is_told_may_end_it(void)
{
	noh_box *box = BOX(1, &plain), *cold = NULL;
	int times = 0;

	EXPECT_EQ(noh_metrics(box, NOH_PROMETHEUS, refuse_piece, &times), 42);
	EXPECT_EQ(times, 1);
	EXPECT_EQ(noh_metrics(box, 7, refuse_piece, &times), NOH_EINVAL);
	EXPECT_EQ(noh_metrics(box, NOH_PROMETHEUS, NULL, NULL), NOH_EINVAL);
	end(box);
	EXPECT_EQ(noh_open(&cold, NULL), NOH_OK);
	EXPECT_EQ(noh_metrics(cold, NOH_PROMETHEUS, refuse_piece, &times), NOH_ESTOPPED);
	noh_close(cold);
}

/* ── many readers ── */

static noh_box *busy_box;
static atomic_u32 over;

static int count_bytes(void *user, const char *text, size_t len)
{
	(void)text;
	*(size_t *)user += len;
	return 0;
}

static void *scrape_all_the_time(void *arg)
{
	(void)arg;
	while (!load_acquire(&over)) {
		size_t bytes = 0;

		EXPECT_EQ(noh_metrics(busy_box, NOH_PROMETHEUS, count_bytes, &bytes), NOH_OK);
		EXPECT(bytes > 1000);
	}
	return NULL;
}

static void anybody_may_look_while_it_works(void)
{
	struct threads t;
	char address[32];

	busy_box = BOX(2, &plain, &brief, &oldest);
	store_release(&over, 0);
	threads_start(&t, 3, scrape_all_the_time);
	for (int i = 0; i < 3000; i++) {
		snprintf(address, sizeof address, "%s:%d", i % 3 ? "brief" : "oldest", i % 50);
		while (put(busy_box, address, i % 7 ? NOTE : FAIL, 1) == NOH_FULL)
			nap_us(100);
	}
	EXPECT(settles(busy_box, "brief") && settles(busy_box, "oldest"));
	store_release(&over, 1);
	threads_join(&t);
	end(busy_box);
}

TEST_MAIN(
	TEST(messages_are_counted_by_their_ends, "P8"),
	TEST(drops_are_counted_by_type_and_reason, "P8"),
	TEST(what_is_dropped_by_force_or_at_the_end_is_counted, "P8"),
	TEST(coming_and_going_is_counted_by_reason),
	TEST(who_goes_because_memory_is_short_is_told_from_who_is_idle),
	TEST(failed_activations_are_restarts),
	TEST(a_histogram_adds_up),
	TEST(batches_are_counted_by_their_size),
	TEST(timers_tell_how_late_they_are),
	TEST(time_in_the_mailbox_is_measured),
	TEST(a_batch_taken_at_once_is_measured_as_well),
	TEST(a_worker_is_as_busy_as_it_works),
	TEST(replays_and_commits_are_counted, "P8"),
	TEST(what_is_not_written_yet_lags),
	TEST(no_label_is_an_actors_id),
	TEST(more_types_than_there_is_room_for_are_one_series),
	TEST(names_that_are_no_text_do_not_break_it),
	TEST(openmetrics_has_its_own_form),
	TEST(who_is_told_may_end_it),
	TEST(anybody_may_look_while_it_works))
