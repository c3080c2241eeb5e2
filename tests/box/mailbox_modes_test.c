/* tests/box/mailbox_modes_test.c - full mailboxes in their three modes, resting senders, coalescing. */
#include "tests/box/kit.h"

#include <stdlib.h>

enum { NOTE, HOLD, LOOK, SPEC, PRODUCE, TOKEN, TWICE_TOKEN };

#define NOTES 512

/* What came, in order; one actor at a time writes it. */
static struct { uint64_t n[NOTES]; uint32_t count; } notes;

static int keep_note(noh_turn *t, const noh_msg *m)
{
	switch (m->kind) {
	case HOLD: gate_pass(); return NOH_OK;
	case LOOK: return noh_reply(t, &(uint64_t){ notes.count }, 8);
	case NOTE:
	case SPEC:
		if (notes.count < NOTES)
			memcpy(&notes.n[notes.count++], m->body, 8);
		return NOH_OK;
	}
	return NOH_EINVAL;
}

static noh_type with(int mode, uint32_t capacity)
{
	return (noh_type){ .name = "m", .full_mode = mode, .mailbox_capacity = capacity,
			   .idle_timeout_ms = NOH_NEVER, .on_message = keep_note };
}

/* m:1 is in a turn, and nothing waits. */
static noh_box *held(const noh_type *type)
{
	noh_box *box = BOX(2, type);

	notes.count = 0;
	gate_shut();
	EXPECT_EQ(noh_send(box, "m:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT(gets_to_hold(box, "m:1", 0));
	return box;
}

static const uint32_t sizes[] = { 1, 2, 3, 7, 100 };
#define FOR_SIZES(c) for (uint32_t at_ = 0, c; at_ < 5 && (c = sizes[at_], true); at_++)

static void drop_newest_refuses_above_its_exact_capacity(void)
{
	FOR_SIZES(capacity) {
		noh_type type = with(NOH_DROP_NEWEST, capacity);
		noh_box *box = held(&type);

		for (uint64_t i = 0; i < capacity; i++)
			EXPECT_EQ(put(box, "m:1", NOTE, i), NOH_OK);
		EXPECT_EQ(status_of(box, "m:1").mailbox_size, capacity);
		EXPECT_EQ(put(box, "m:1", NOTE, 999), NOH_FULL);
		EXPECT_EQ(noh_send_wait(box, "m:1", NOTE, "12345678", 8, SOON), NOH_FULL);  /* at once */
		EXPECT_EQ(status_of(box, "m:1").mailbox_size, capacity);
		EXPECT_EQ(stats_of(box, "m").refused, 2);
		gate_open();
		EXPECT(gets_to_hold(box, "m:1", 0));
		EXPECT_EQ(get(box, "m:1", LOOK), capacity);
		for (uint64_t i = 0; i < capacity; i++)
			EXPECT_EQ(notes.n[i], i);
		EXPECT(settles(box, "m"));
		end(box);
	}
}

static void a_type_that_does_not_say_has_room_for_a_hundred(void)
{
	noh_type type = with(NOH_DROP_NEWEST, 0);
	noh_box *box = held(&type);

	for (uint64_t i = 0; i < 100; i++)
		EXPECT_EQ(put(box, "m:1", NOTE, i), NOH_OK);
	EXPECT_EQ(put(box, "m:1", NOTE, 999), NOH_FULL);
	gate_open();
	EXPECT(settles(box, "m"));
	end(box);
}

static void drop_oldest_drops_the_oldest_and_counts(void)
{
	FOR_SIZES(capacity) {
		noh_type type = with(NOH_DROP_OLDEST, capacity);
		noh_box *box = held(&type);

		for (uint64_t i = 0; i < capacity + 5u; i++)
			EXPECT_EQ(put(box, "m:1", NOTE, i), NOH_OK);
		EXPECT_EQ(status_of(box, "m:1").mailbox_size, capacity);
		EXPECT_EQ(stats_of(box, "m").dropped_oldest, 5);
		gate_open();
		EXPECT(gets_to_hold(box, "m:1", 0));
		EXPECT_EQ(get(box, "m:1", LOOK), capacity);
		for (uint64_t i = 0; i < capacity; i++)
			EXPECT_EQ(notes.n[i], i + 5);
		EXPECT(settles(box, "m"));
		end(box);
	}
}

static atomic_u64 done_count, done_full;

static void done(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	(void)answer;
	(void)len;
	add_relaxed(&done_full, status == NOH_FULL);
	add_acq_rel(&done_count, 1);
}

static void the_caller_of_a_dropped_message_hears_of_it(void)
{
	noh_type type = with(NOH_DROP_OLDEST, 2);
	noh_box *box = held(&type);
	char big[300] = "";

	store_relaxed(&done_count, 0);
	store_relaxed(&done_full, 0);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(noh_call_then(box, "m:1", LOOK, big, sizeof big, SOON, done, NULL), NOH_OK);
	EXPECT(reaches(&done_count, 1));
	EXPECT_EQ(load_relaxed(&done_full), 1);
	gate_open();
	EXPECT(reaches(&done_count, 3));
	EXPECT_EQ(load_relaxed(&done_full), 1);
	end(box);
}

static void block_is_full_at_its_exact_capacity(void)
{
	FOR_SIZES(capacity) {
		noh_type type = with(NOH_BLOCK, capacity);
		noh_box *box = held(&type);
		uint64_t start = now_us();

		for (uint64_t i = 0; i < capacity; i++)
			EXPECT_EQ(put(box, "m:1", NOTE, i), NOH_OK);
		EXPECT_EQ(put(box, "m:1", NOTE, 999), NOH_FULL);
		EXPECT_EQ(noh_send_wait(box, "m:1", NOTE, "12345678", 8, 20), NOH_FULL);
		EXPECT(now_us() - start >= 20000);
		EXPECT_EQ(noh_call_then(box, "m:1", LOOK, NULL, 0, SOON, done, NULL), NOH_FULL);
		EXPECT_EQ(status_of(box, "m:1").mailbox_size, capacity);
		gate_open();
		EXPECT_EQ(get(box, "m:1", LOOK), capacity);    /* noh_call waits for room */
		EXPECT(settles(box, "m"));
		end(box);
	}
}

static noh_box *shared_box;

static void *waits_for_room(void *arg)
{
	uint64_t n = (uintptr_t)arg;

	return (void *)(intptr_t)noh_send_wait(shared_box, "m:1", NOTE, &n, 8, SOON);
}

static void waiting_senders_get_in_when_there_is_room(void)
{
	noh_type type = with(NOH_BLOCK, 1);
	struct threads t;

	shared_box = held(&type);
	EXPECT_EQ(put(shared_box, "m:1", NOTE, 100), NOH_OK);
	threads_start(&t, 4, waits_for_room);
	gate_open();
	threads_join(&t);
	EXPECT_EQ(get(shared_box, "m:1", LOOK), 5);
	EXPECT_EQ(notes.n[0], 100);
	end(shared_box);
}

static void *opens_after_a_while(void *arg)
{
	(void)arg;
	nap_us(500000);
	gate_open();
	return NULL;
}

static int hold_again(noh_turn *t, const noh_msg *m)
{
	if (m->kind == LOOK)
		nap_us(1600000);
	return keep_note(t, m);
}

static void a_call_waits_for_room_and_answer_together_no_longer_than_told(void)
{
	noh_type type = with(NOH_BLOCK, 1);
	struct threads t;
	uint64_t start;

	type.on_message = hold_again;
	shared_box = held(&type);
	EXPECT_EQ(put(shared_box, "m:1", NOTE, 1), NOH_OK);
	threads_start(&t, 1, opens_after_a_while);
	start = now_us();
	EXPECT_EQ(noh_call(shared_box, "m:1", LOOK, NULL, 0, 900, NULL, NULL), NOH_ETIMEOUT);
	EXPECT(now_us() - start >= 900000);
	EXPECT(now_us() - start < 1350000);                /* not 500 for room and then 900 again */
	threads_join(&t);
	end(shared_box);
}

/* ── actors that send to actors ── */

struct source { uint64_t next, until; };

static atomic_u64 attempts, refusals;

/* Sends `burst` numbers to m:1, then tells itself to go on. */
static int source_message(noh_turn *t, const noh_msg *m)
{
	struct source *s = noh_state(t);
	uint32_t id = (uint32_t)atoi(noh_id(t));

	if (m->kind == LOOK)
		return noh_reply(t, &s->next, 8);
	if (m->len == 8)
		memcpy(&s->until, m->body, 8);
	add_relaxed(&attempts, 1);
	for (int burst = 0; burst < 7 && s->next < s->until; burst++) {
		uint64_t n = (uint64_t)id << 32 | s->next++;
		int rc = noh_tell_to(t, "m:1", NOTE, &n, 8);

		if (rc == NOH_FULL) {
			add_relaxed(&refusals, 1);
			return NOH_FULL;               /* undone, and again later */
		}
		EXPECT_EQ(rc, NOH_OK);
	}
	return s->next < s->until ? noh_tell(t, noh_self(t), PRODUCE, NULL, 0) : NOH_OK;
}

static const noh_type source_type = { .name = "s", .state_size = sizeof(struct source),
	.full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER, .on_message = source_message };

#define SOURCES 12

static struct { uint64_t last[SOURCES], count; } sink;

static void sink_take(const noh_msg *m)
{
	uint64_t n;

	if (m->kind != NOTE)
		return;
	memcpy(&n, m->body, 8);
	EXPECT_EQ((uint32_t)n, sink.last[n >> 32]);        /* every sender in order, none missing */
	sink.last[n >> 32] = (uint32_t)n + 1;
	sink.count++;
}

static int sink_message(noh_turn *t, const noh_msg *m)
{
	if (m->kind == HOLD)
		gate_pass();
	sink_take(m);
	return m->kind == LOOK ? noh_reply(t, &sink.count, 8) : NOH_OK;
}

static int sink_batch(noh_turn *t, const noh_msg *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		sink_take(&m[i]);
		if (m[i].kind == LOOK)
			EXPECT_EQ(noh_reply_to(t, &m[i], &sink.count, 8), NOH_OK);
	}
	return NOH_OK;
}

static void key_and_revision(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	(void)len;
	memcpy(key, body, 8);
	memcpy(revision, (const char *)body + 8, 8);
}

static const noh_kind sink_kinds[] = { [NOTE] = { "note", 0, NULL }, [HOLD] = { "hold", 0, NULL },
	[LOOK] = { "look", 0, NULL }, [SPEC] = { "spec", NOH_KIND_COALESCE, key_and_revision } };

static void *sends_in_order(void *arg)
{
	for (uint64_t i = 0; i < 500; i++) {
		uint64_t n = (8 + (uint64_t)(uintptr_t)arg) << 32 | i;

		EXPECT_EQ(noh_send_wait(shared_box, "m:1", NOTE, &n, 8, SOON), NOH_OK);
	}
	return NULL;
}

static bool is_all_there(void *want)
{
	return get(shared_box, "m:1", LOOK) == *(uint64_t *)want;
}

/* 8 actors and 4 threads send to one actor whose mailbox is small. */
static void many_to_one(unsigned workers, const noh_type *type)
{
	struct threads t;
	uint64_t each = 500, want = SOURCES * each;

	memset(&sink, 0, sizeof sink);
	shared_box = BOX(workers, type, &source_type);
	for (int i = 0; i < 8; i++) {
		char address[16];

		snprintf(address, sizeof address, "s:%d", i);
		EXPECT_EQ(put(shared_box, address, PRODUCE, each), NOH_OK);
	}
	threads_start(&t, 4, sends_in_order);
	threads_join(&t);
	EXPECT(test_wait_until(is_all_there, &want, SOON));
	EXPECT(settles(shared_box, "m"));
	EXPECT_EQ(stats_of(shared_box, "m").failed, 0);
	EXPECT_EQ(stats_of(shared_box, "s").failed, 0);
	end(shared_box);
}

static void every_sender_is_heard_in_order(void)
{
	noh_type type = { .name = "m", .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER,
			  .on_message = sink_message };

	FOR_WORKERS(workers)
		for (uint32_t capacity = 2; capacity <= 8; capacity *= 4) {
			type.mailbox_capacity = capacity;
			many_to_one(workers, &type);
		}
}

static void every_sender_is_heard_in_order_in_batches_and_windows(void)
{
	noh_type batch = { .name = "m", .full_mode = NOH_BLOCK, .mailbox_capacity = 5,
			   .idle_timeout_ms = NOH_NEVER, .on_batch = sink_batch };
	noh_type window = { .name = "m", .full_mode = NOH_BLOCK, .mailbox_capacity = 5,
			    .idle_timeout_ms = NOH_NEVER, .on_message = sink_message,
			    .kinds = sink_kinds, .kind_count = 4 };

	FOR_WORKERS(workers) {
		many_to_one(workers, &batch);
		many_to_one(workers, &window);
	}
}

static void a_turn_that_returns_full_is_undone_and_run_again_when_there_is_room(void)
{
	noh_type type = with(NOH_BLOCK, 3);                /* hard limit 12 = 7 + 5 */
	noh_box *box;

	type.on_message = sink_message;
	memset(&sink, 0, sizeof sink);
	store_relaxed(&attempts, 0);
	store_relaxed(&refusals, 0);
	box = BOX(2, &type, &source_type);
	gate_shut();
	EXPECT_EQ(noh_send(box, "m:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_call(box, "s:1", PRODUCE, &(uint64_t){ 7 }, 8, SOON, NULL, NULL), NOH_OK);
	EXPECT(gets_to_hold(box, "m:1", 7));
	EXPECT_EQ(noh_send(box, "s:2", PRODUCE, &(uint64_t){ 7 }, 8), NOH_OK);
	EXPECT(reaches(&refusals, 1));
	EXPECT_EQ(noh_call(box, "s:2", LOOK, NULL, 0, 30, NULL, NULL), NOH_ETIMEOUT);  /* it rests */
	EXPECT_EQ(status_of(box, "m:1").mailbox_size, 7);
	gate_open();
	EXPECT_EQ(get(box, "s:2", LOOK), 7);
	shared_box = box;
	EXPECT(test_wait_until(is_all_there, &(uint64_t){ 14 }, SOON));
	EXPECT(load_relaxed(&attempts) >= 3);
	EXPECT(settles(box, "s"));
	end(box);
}

static void a_sender_that_fills_a_mailbox_rests_and_loses_nothing(void)
{
	noh_type type = with(NOH_BLOCK, 4);
	noh_box *box;

	type.on_message = sink_message;
	memset(&sink, 0, sizeof sink);
	shared_box = box = BOX(2, &type, &source_type);
	gate_shut();
	EXPECT_EQ(noh_send(box, "m:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(put(box, "s:1", PRODUCE, 200), NOH_OK);
	EXPECT(gets_to_hold(box, "m:1", 7));               /* one burst; then it rests */
	EXPECT_EQ(noh_call(box, "s:1", LOOK, NULL, 0, 50, NULL, NULL), NOH_ETIMEOUT);
	EXPECT_EQ(status_of(box, "m:1").mailbox_size, 7);
	gate_open();
	EXPECT(test_wait_until(is_all_there, &(uint64_t){ 200 }, SOON));
	end(box);
}

/* ── circles ── */

static atomic_u64 tokens;
static uint32_t ring_size;

/* A token goes on to the next actor until its time is up. */
static int pass_on(noh_turn *t, const noh_msg *m)
{
	uint64_t left;
	char next[16];
	int rc = NOH_OK;

	memcpy(&left, m->body, 8);
	snprintf(next, sizeof next, "c:%u", ((uint32_t)atoi(noh_id(t)) + 1) % ring_size);
	if (left--)
		rc = noh_tell_to(t, next, TOKEN, &left, 8);
	if (rc == NOH_OK)
		add_relaxed(&tokens, 1);
	return rc;
}

static void a_circle_of_full_actors_never_stands_still(void)
{
	static const uint32_t circles[] = { 1, 2, 3, 10 };
	const uint64_t life = 300, each = 4;
	noh_type type = { .name = "c", .full_mode = NOH_BLOCK, .mailbox_capacity = 2,
			  .idle_timeout_ms = NOH_NEVER, .on_message = pass_on };

	FOR_WORKERS(workers)
		for (int i = 0; i < 4; i++) {
			noh_box *box = BOX(workers, &type);

			ring_size = circles[i];
			store_relaxed(&tokens, 0);
			for (uint64_t n = 0; n < each * ring_size; n++) {
				char address[16];

				snprintf(address, sizeof address, "c:%u", (uint32_t)(n % ring_size));
				EXPECT_EQ(noh_send_wait(box, address, TOKEN, &life, 8, SOON), NOH_OK);
			}
			EXPECT(reaches(&tokens, each * ring_size * (life + 1)));
			EXPECT(settles(box, "c"));
			end(box);
		}
}

/* ── coalescing ── */

struct spec { uint64_t key, revision; };

static int keep_revision(noh_turn *t, const noh_msg *m)
{
	if (m->kind == SPEC && notes.count < NOTES) {
		const struct spec *s = m->body;

		notes.n[notes.count++] = s->key * 1000 + s->revision;
		return NOH_OK;
	}
	return keep_note(t, m);
}

static noh_box *held_specs(void)
{
	static noh_type type;

	type = with(NOH_BLOCK, 100);
	type.kinds = sink_kinds;
	type.kind_count = 4;
	type.on_message = keep_revision;
	return held(&type);
}

static void spec(noh_box *box, uint64_t key, uint64_t revision)
{
	struct spec s = { key, revision };

	EXPECT_EQ(noh_send(box, "m:1", SPEC, &s, sizeof s), NOH_OK);
}

static void twenty_changes_become_one_pass_with_the_last(void)
{
	noh_box *box = held_specs();

	for (uint64_t i = 1; i <= 20; i++)
		spec(box, 1, i);
	gate_open();
	EXPECT_EQ(get(box, "m:1", LOOK), 1);
	EXPECT_EQ(notes.n[0], 1020);
	EXPECT_EQ(stats_of(box, "m").coalesced, 19);
	EXPECT(settles(box, "m"));
	end(box);
}

static void the_highest_revision_of_each_key_is_kept(void)
{
	noh_box *box = held_specs();

	spec(box, 1, 5);
	spec(box, 2, 1);
	spec(box, 1, 9);                                   /* stays */
	EXPECT_EQ(put(box, "m:1", NOTE, 77), NOH_OK);
	spec(box, 1, 7);                                   /* late: older than 9 */
	spec(box, 2, 1);                                   /* the latest of equals stays */
	spec(box, 3, 0);
	gate_open();
	EXPECT_EQ(get(box, "m:1", LOOK), 4);
	EXPECT_EQ(notes.n[0], 1009);
	EXPECT_EQ(notes.n[1], 77);
	EXPECT_EQ(notes.n[2], 2001);
	EXPECT_EQ(notes.n[3], 3000);
	EXPECT_EQ(stats_of(box, "m").coalesced, 3);
	EXPECT(settles(box, "m"));
	end(box);
}

static void what_was_handled_already_is_not_coalesced(void)
{
	noh_box *box = held_specs();

	gate_open();
	for (uint64_t i = 1; i <= 5; i++) {
		spec(box, 1, 6 - i);
		EXPECT_EQ(get(box, "m:1", LOOK), i);
	}
	EXPECT_EQ(stats_of(box, "m").coalesced, 0);
	end(box);
}

static int floods(noh_turn *t, const noh_msg *m)
{
	int rc = NOH_OK;

	for (int i = 0; m->kind == 0 && i < 9 && rc == NOH_OK; i++)
		rc = noh_tell_to(t, "flood:other", 1, NULL, 0);
	return rc;
}

static void a_turn_that_alone_sends_too_much_fails_instead_of_waiting(void)
{
	noh_type flood = { .name = "flood", .on_message = floods, .full_mode = NOH_BLOCK,
			   .mailbox_capacity = 2, .idle_timeout_ms = NOH_NEVER };
	noh_box *box = BOX(1, &flood);

	EXPECT_EQ(noh_call(box, "flood:other", 1, NULL, 0, SOON, NULL, NULL), NOH_OK);
	EXPECT_EQ(noh_call(box, "flood:one", 0, NULL, 0, SOON, NULL, NULL), NOH_EFAILED);
	end(box);
}

TEST_MAIN(
	TEST(a_turn_that_alone_sends_too_much_fails_instead_of_waiting),
	TEST(drop_newest_refuses_above_its_exact_capacity, "MB-01 MB-02 MB-04 MB-06 MB-16"),
	TEST(drop_oldest_drops_the_oldest_and_counts, "MB-02 MB-03 MB-06 MB-16"),
	TEST(a_type_that_does_not_say_has_room_for_a_hundred, "MB-02 SC-06 CF-04"),
	TEST(the_caller_of_a_dropped_message_hears_of_it, "MB-03"),
	TEST(block_is_full_at_its_exact_capacity, "MB-02 MB-05 MB-06"),
	TEST(waiting_senders_get_in_when_there_is_room, "MB-05 MB-09"),
	TEST(a_call_waits_for_room_and_answer_together_no_longer_than_told),
	TEST(every_sender_is_heard_in_order, "TB-02 MB-05"),
	TEST(every_sender_is_heard_in_order_in_batches_and_windows, "TB-02"),
	TEST(a_turn_that_returns_full_is_undone_and_run_again_when_there_is_room, "MB-05"),
	TEST(a_sender_that_fills_a_mailbox_rests_and_loses_nothing, "MB-05 MB-09"),
	TEST(a_circle_of_full_actors_never_stands_still, "MB-05"),
	TEST(twenty_changes_become_one_pass_with_the_last, "MB-07 MB-08"),
	TEST(the_highest_revision_of_each_key_is_kept, "MB-07"),
	TEST(what_was_handled_already_is_not_coalesced, "MB-07"))
