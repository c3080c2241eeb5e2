/* tests/box/read_test.c - read-only kinds (RT-22): beside the mailbox, consistent, and harmless. */
#include "tests/box/kit.h"

#define BETWEEN 200                    /* a long way from a to c, so that a change comes between */
struct twins { uint64_t a, b[BETWEEN], c; };

enum { BOTH_UP, READ, READ_AND_TRY, HOLD, READ_BIG, BLOCK_INSIDE };

static int tries(noh_turn *t)
{
	struct twins *s = noh_state(t);
	noh_ask_options o = { 0 };

	s->a = 99;                                         /* a copy: nobody sees it */
	EXPECT_EQ(noh_tell_to(t, "r:2", BOTH_UP, NULL, 0), NOH_EREADONLY);
	EXPECT_EQ(noh_tell(t, noh_self(t), BOTH_UP, NULL, 0), NOH_EREADONLY);
	EXPECT_EQ(noh_ask_to(t, "r:2", BOTH_UP, NULL, 0, &o, NULL), NOH_EREADONLY);
	EXPECT_EQ(noh_spawn(t, "r:2", NULL), NOH_EREADONLY);
	EXPECT_EQ(noh_kv_put(t, "k", 1, "v", 1), NOH_EREADONLY);
	EXPECT_EQ(noh_kv_delete(t, "k", 1), NOH_EREADONLY);
	EXPECT_EQ(noh_schedule_once(t, BOTH_UP, 10), NOH_EREADONLY);
	EXPECT_EQ(noh_schedule_every(t, BOTH_UP, 10), NOH_EREADONLY);
	EXPECT_EQ(noh_schedule_cancel(t, BOTH_UP), NOH_EREADONLY);
	EXPECT_EQ(noh_stop_self(t), NOH_EREADONLY);
	EXPECT(strstr(noh_why(), "r:1"));
	EXPECT(strcmp(noh_address(t), "r:1") == 0);
	EXPECT(strcmp(noh_id(t), "1") == 0);
	EXPECT(noh_user(t) == &kit);
	return noh_reply(t, &s->a, 8);
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	const struct twins *s = noh_look(t);
	int same = 0;

	switch (m->kind) {
	case BOTH_UP: {
		struct twins *w = noh_state(t);
		w->a++;
		for (int i = 0; i < BETWEEN; i++)
			w->b[i]++;
		w->c++;
		return NOH_OK;
	}
	case READ:
		for (int i = 0; i < BETWEEN; i++)
			same += s->b[i] == s->a;
		EXPECT_EQ(same, BETWEEN);
		EXPECT_EQ(s->a, s->c);
		return noh_reply(t, &s->a, 8);
	case READ_AND_TRY: return tries(t);
	case HOLD: gate_pass(); return NOH_OK;
	case READ_BIG: return noh_reply(t, s, sizeof *s);
	case BLOCK_INSIDE:
		EXPECT_EQ(noh_call(noh_turn_box(t), "r:2", READ, NULL, 0, 10, NULL, NULL), NOH_EINTURN);
		return noh_fail(t, "only to see");
	}
	return NOH_EINVAL;
}

static const noh_kind kinds[] = {
	[BOTH_UP] = { "both up", 0, NULL }, [READ] = { "read", NOH_KIND_READ, NULL },
	[READ_AND_TRY] = { "try", NOH_KIND_READ, NULL }, [HOLD] = { "hold", 0, NULL },
	[READ_BIG] = { "big", NOH_KIND_READ, NULL }, [BLOCK_INSIDE] = { "block", NOH_KIND_READ, NULL } };

static const noh_type r_type = { .name = "r", .state_size = sizeof(struct twins), .kinds = kinds,
	.kind_count = 6, .mailbox_capacity = 1000, .full_mode = NOH_BLOCK,
	.on_message = on_message, .user = &kit };

static noh_box *box;
static atomic_u32 stop_reading;

static void *reads(void *arg)
{
	uint64_t last = 0;

	(void)arg;
	while (!load_relaxed(&stop_reading)) {
		uint64_t now = get(box, "r:1", READ);

		EXPECT(now >= last);
		last = now;
	}
	return NULL;
}

static void a_reader_never_sees_half_a_change(void)
{
	FOR_WORKERS(workers) {
		struct threads t;

		box = BOX(workers, &r_type);
		store_relaxed(&stop_reading, 0);
		threads_start(&t, 2, reads);
		for (int i = 0; i < 5000; i++)
			EXPECT_EQ(noh_send_wait(box, "r:1", BOTH_UP, NULL, 0, SOON), NOH_OK);
		EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
		EXPECT_EQ(get(box, "r:1", READ), 5001);
		store_relaxed(&stop_reading, 1);
		threads_join(&t);
		end(box);
	}
}

static void a_read_does_not_wait_for_a_running_turn(void)
{
	box = BOX(1, &r_type);
	EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
	gate_shut();
	EXPECT_EQ(noh_send(box, "r:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(get(box, "r:1", READ), 1);
	gate_open();
	end(box);
}

static void a_read_of_a_dormant_actor_activates_it(void)
{
	box = BOX(1, &r_type);
	EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
	EXPECT_EQ(noh_deactivate(box, "r:1", false, SOON), NOH_OK);
	EXPECT_EQ(get(box, "r:1", READ), 1);
	EXPECT_EQ(status_of(box, "r:1").life, NOH_ACTIVE);
	end(box);
}

static void a_read_changes_nothing(void)
{
	box = BOX(1, &r_type);
	EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
	EXPECT_EQ(get(box, "r:1", READ_AND_TRY), 99);      /* its own copy */
	EXPECT_EQ(get(box, "r:1", READ), 1);
	EXPECT_EQ(noh_send(box, "r:1", READ_AND_TRY, NULL, 0), NOH_OK);    /* as a turn, too */
	EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
	EXPECT_EQ(get(box, "r:1", READ), 2);
	EXPECT_EQ(status_of(box, "r:2").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(stats(box).timers, 0);
	end(box);
}

static void a_read_answers_like_any_call(void)
{
	struct twins all;
	size_t len = sizeof all;

	box = BOX(1, &r_type);
	EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
	EXPECT_EQ(noh_call(box, "r:1", READ_BIG, NULL, 0, SOON, &all, &len), NOH_OK);
	EXPECT(len == sizeof all && all.a == 1 && all.c == 1);
	EXPECT_EQ(noh_call(box, "r:1", READ_BIG, NULL, 0, SOON, NULL, NULL), NOH_OK);
	len = 8;
	all.b[0] = 7;
	EXPECT_EQ(noh_call(box, "nobody:1", READ, NULL, 0, SOON, &all, &len), NOH_ENOTYPE);
	len = 8;
	EXPECT_EQ(noh_call(box, "r:1", READ_BIG, NULL, 0, SOON, &all, &len), NOH_ETOOBIG);
	EXPECT_EQ(len, sizeof all);
	EXPECT_EQ(all.b[0], 7);
	EXPECT(strstr(noh_why(), "r:1"));
	len = 8;                                           /* only the length is wanted */
	EXPECT_EQ(noh_call(box, "r:1", READ_BIG, NULL, 0, SOON, NULL, &len), NOH_OK);
	EXPECT_EQ(len, sizeof all);
	end(box);
}

static void a_blocking_call_inside_a_read_is_refused(void)
{
	box = BOX(1, &r_type);
	EXPECT_EQ(call(box, "r:1", BOTH_UP), NOH_OK);
	EXPECT_EQ(call(box, "r:1", BLOCK_INSIDE), NOH_EFAILED);
	EXPECT(strstr(noh_why(), "only to see"));
	end(box);
}

/* ── in batches ── */

static int on_batch(noh_turn *t, const noh_msg *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (m[i].kind == HOLD)
			gate_pass();
		else if (m[i].kind == BOTH_UP)
			((struct twins *)noh_state(t))->a++;
		else
			EXPECT_EQ(noh_reply_to(t, &m[i], &((const struct twins *)noh_look(t))->a, 8) <= NOH_NOBODY, 1);
	}
	return NOH_OK;
}

static void a_read_in_a_batch_does_not_undo_the_writes_beside_it(void)
{
	noh_type b_type = r_type;

	b_type.name = "b";
	b_type.on_message = NULL;
	b_type.on_batch = on_batch;
	box = BOX(2, &b_type);
	gate_shut();
	EXPECT_EQ(noh_send(box, "b:1", HOLD, NULL, 0), NOH_OK);
	EXPECT(gate_holds(1));
	EXPECT_EQ(noh_send(box, "b:1", READ, NULL, 0), NOH_OK);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(noh_send(box, "b:1", BOTH_UP, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "b:1", READ, NULL, 0), NOH_OK);
	gate_open();
	EXPECT_EQ(call(box, "b:1", READ), NOH_OK);         /* maybe in the same batch */
	EXPECT_EQ(get(box, "b:1", READ), 10);
	end(box);
}

TEST_MAIN(
	TEST(a_reader_never_sees_half_a_change, "RT-22"),
	TEST(a_read_does_not_wait_for_a_running_turn, "RT-22"),
	TEST(a_read_of_a_dormant_actor_activates_it, "RT-22"),
	TEST(a_read_changes_nothing, "RT-22"),
	TEST(a_read_answers_like_any_call, "RT-22"),
	TEST(a_blocking_call_inside_a_read_is_refused),
	TEST(a_read_in_a_batch_does_not_undo_the_writes_beside_it, "RT-22"))
