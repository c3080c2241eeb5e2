/* tests/box/newborn_test.c - turns that write to addresses that are new: many of them, the same one more
 * than once, one that is there after all; and turns that are undone after that. */
#include "tests/box/kit.h"

enum { FORK, FORK_AND_FAIL, FORK_TWICE, FORK_ODD, FILL, TELL, COUNT, SUM, ONE };

struct forker { uint64_t forked; };
struct child { uint64_t count, last, disorder; };
struct range { uint32_t from, n; };
struct told { uint64_t seq; };

static atomic_u64 in_all, out_of_order;

static int child_message(noh_turn *t, const noh_msg *m)
{
	struct child *me = noh_state(t);

	if (m->kind == COUNT)
		return noh_reply(t, &me->count, 8);
	uint64_t seq = ((const struct told *)m->body)->seq;

	me->count++;
	if (seq <= me->last)
		add_relaxed(&out_of_order, 1);
	me->last = seq;
	add_relaxed(&in_all, 1);
	return NOH_OK;
}

static int tell_child(noh_turn *t, const char *type, uint32_t id, uint64_t seq)
{
	char address[40];

	snprintf(address, sizeof address, "%s:%u", type, id);
	return noh_tell_to(t, address, TELL, &(struct told){ seq }, sizeof(struct told));
}

/* Each address several times, interleaved, in rising order. */
static int fork_many(noh_turn *t, struct range r, uint64_t times)
{
	for (uint64_t k = 1; k <= times; k++)
		for (uint32_t i = 0; i < r.n; i++) {
			int rc = tell_child(t, "child", r.from + i, k);

			if (rc != NOH_OK)
				return rc;
		}
	return NOH_OK;
}

static int fork_odd(noh_turn *t, struct range r)
{
	char big[300] = { 9 };

	for (uint32_t i = 0; i < r.n; i++)
		EXPECT_EQ(tell_child(t, "child", r.from + i, 1), NOH_OK);
	EXPECT_EQ(tell_child(t, "nobody", 1, 1), NOH_ENOTYPE);
	EXPECT_EQ(noh_tell_to(t, "child", TELL, NULL, 0), NOH_EADDRESS);
	EXPECT_EQ(noh_tell_to(t, "child:", TELL, NULL, 0), NOH_EADDRESS);
	EXPECT_EQ(tell_child(t, "child/x", r.from, 1), NOH_OK);    /* child:x:N */
	memcpy(big, &(struct told){ 1 }, sizeof(struct told));
	EXPECT_EQ(noh_tell_to(t, "child:big", TELL, big, sizeof big), NOH_OK);
	for (uint32_t i = 0; i < r.n; i++)
		EXPECT_EQ(tell_child(t, "child", r.from + r.n + i, 1), NOH_OK);
	return NOH_OK;
}

/* Until the mailbox says no: its own messages of this turn count. */
static int fill(noh_turn *t, const char *type)
{
	uint64_t n = 0;
	int rc;

	EXPECT_EQ(tell_child(t, "child", 1000000, 1), NOH_OK);    /* so that a new one is expected */
	while ((rc = tell_child(t, type, 5, n + 1)) == NOH_OK && n < 10000)
		n++;
	EXPECT_EQ(rc, NOH_FULL);
	return noh_reply(t, &n, 8);
}

static int forker_message(noh_turn *t, const noh_msg *m)
{
	struct range r = { 0, 0 };

	if (m->len == sizeof r)
		memcpy(&r, m->body, sizeof r);
	((struct forker *)noh_state(t))->forked++;
	switch (m->kind) {
	case FORK: return fork_many(t, r, 1);
	case FORK_TWICE: return fork_many(t, r, 3);
	case FORK_ODD: return fork_odd(t, r);
	case FORK_AND_FAIL: return fork_many(t, r, 2) == NOH_OK ? NOH_EFAILED : NOH_OK;
	case FILL: return fill(t, m->len == 1 ? "strict" : "child");
	case ONE: return tell_child(t, "child", r.from, r.n);
	}
	return NOH_EINVAL;
}

static int hook_forks(noh_turn *t)
{
	return fork_many(t, (struct range){ 700, 20 }, 1);
}

static const noh_type child = { .name = "child", .state_size = sizeof(struct child),
	.full_mode = NOH_BLOCK, .mailbox_capacity = 10, .idle_timeout_ms = NOH_NEVER,
	.on_message = child_message };
static const noh_type strict = { .name = "strict", .state_size = sizeof(struct child),
	.full_mode = NOH_DROP_NEWEST, .mailbox_capacity = 10, .on_message = child_message };
static const noh_type forker = { .name = "forker", .state_size = sizeof(struct forker),
	.full_mode = NOH_BLOCK, .on_message = forker_message };
static const noh_type hooked = { .name = "hooked", .state_size = sizeof(struct forker),
	.full_mode = NOH_BLOCK, .on_activate = hook_forks, .on_message = forker_message };

static noh_box *open_box(unsigned workers)
{
	store_relaxed(&in_all, 0);
	store_relaxed(&out_of_order, 0);
	return BOX(workers, &child, &strict, &forker, &hooked);
}

static bool heard(void *n)
{
	return load_relaxed(&in_all) >= *(uint64_t *)n;
}

/* So many messages have come to children, and no more. */
static bool hear(noh_box *box, uint64_t n)
{
	return EXPECT(test_wait_until(heard, &n, SOON)) && EXPECT(settles(box, "child")) &&
	       EXPECT_EQ(load_relaxed(&in_all), n);
}

static int forks(noh_box *box, const char *who, uint32_t kind, uint32_t from, uint32_t n)
{
	struct range r = { from, n };

	return noh_call(box, who, kind, &r, sizeof r, SOON, NULL, NULL);
}

static uint64_t count_of(noh_box *box, uint32_t id)
{
	char address[40];

	snprintf(address, sizeof address, "child:%u", id);
	return get(box, address, COUNT);
}

static void every_new_address_hears_its_message(void)
{
	for (unsigned workers = 1; workers <= 2; workers++) {
		noh_box *box = open_box(workers);

		EXPECT_EQ(forks(box, "forker:1", FORK, 0, 1000), NOH_OK);    /* more than fit in hand */
		EXPECT_EQ(forks(box, "forker:1", FORK, 1000, 64), NOH_OK);
		hear(box, 1064);
		EXPECT_EQ(stats_of(box, "child").activations, 1064);
		for (uint32_t i = 0; i < 1064; i += 7)
			EXPECT_EQ(count_of(box, i), 1);
		EXPECT_EQ(stats(box).dead_letters, 0);
		end(box);
	}
}

static void one_new_address_several_times_is_one_actor_in_order(void)
{
	for (unsigned workers = 1; workers <= 2; workers++) {
		noh_box *box = open_box(workers);

		for (uint32_t round = 0; round < 20; round++)
			EXPECT_EQ(forks(box, "forker:1", FORK_TWICE, round * 300, 300), NOH_OK);
		hear(box, 20 * 900);
		EXPECT_EQ(load_relaxed(&out_of_order), 0);
		EXPECT_EQ(stats_of(box, "child").activations, 20 * 300);
		end(box);
	}
}

static void who_is_there_already_gets_the_message_behind_the_earlier_ones(void)
{
	noh_box *box = open_box(1);

	EXPECT_EQ(forks(box, "forker:1", ONE, 50, 1), NOH_OK);
	EXPECT_EQ(forks(box, "forker:1", ONE, 20, 1), NOH_OK);
	EXPECT_EQ(forks(box, "forker:2", FORK, 100, 5), NOH_OK);     /* now new ones are expected */
	EXPECT_EQ(forks(box, "forker:1", ONE, 50, 2), NOH_OK);
	EXPECT_EQ(forks(box, "forker:1", ONE, 50, 3), NOH_OK);
	EXPECT_EQ(forks(box, "forker:2", FORK, 200, 5), NOH_OK);
	EXPECT_EQ(forks(box, "forker:1", FORK_TWICE, 30, 10), NOH_OK);
	hear(box, 2 + 5 + 2 + 5 + 30);
	EXPECT_EQ(count_of(box, 50), 3);
	EXPECT_EQ(count_of(box, 20), 1);
	EXPECT_EQ(load_relaxed(&out_of_order), 0);
	EXPECT_EQ(stats_of(box, "child").activations, 2 + 5 + 5 + 10);
	end(box);
}

/* The middle of what is forked exists. */
static void known_and_new_addresses_mix(void)
{
	noh_box *box = open_box(1);

	EXPECT_EQ(forks(box, "forker:1", FORK, 100, 100), NOH_OK);
	hear(box, 100);
	EXPECT_EQ(forks(box, "forker:2", FORK, 0, 1), NOH_OK);
	store_relaxed(&out_of_order, 0);
	EXPECT_EQ(forks(box, "forker:2", FORK, 1, 299), NOH_OK);
	hear(box, 400);
	EXPECT_EQ(load_relaxed(&out_of_order), 100);     /* each of them heard number 1 a second time */
	for (uint32_t i = 0; i < 300; i += 9)
		EXPECT_EQ(count_of(box, i), i >= 100 && i < 200 ? 2 : 1);
	EXPECT_EQ(stats_of(box, "child").activations, 300);
	end(box);
}

static void a_bad_address_among_new_ones_harms_nobody(void)
{
	noh_box *box = open_box(1);

	EXPECT_EQ(forks(box, "forker:1", FORK_ODD, 0, 30), NOH_OK);
	EXPECT_EQ(forks(box, "forker:1", FORK_ODD, 100, 30), NOH_OK);
	hear(box, 2 * 60 + 2 + 2);
	EXPECT_EQ(count_of(box, 59), 1);
	EXPECT_EQ(get(box, "child:big", COUNT), 2);
	EXPECT_EQ(get(box, "child:x:100", COUNT), 1);
	end(box);
}

static void an_undone_turn_leaves_no_actors(void)
{
	noh_box *box = open_box(1);

	EXPECT_EQ(forks(box, "forker:1", FORK, 0, 4), NOH_OK);
	hear(box, 4);
	uint64_t before = stats(box).actors, bytes = stats(box).actor_bytes;

	for (uint32_t i = 0; i < 50; i++)
		EXPECT_EQ(forks(box, "forker:1", FORK_AND_FAIL, 100, 200), NOH_EFAILED);
	EXPECT_EQ(stats(box).actors, before);
	EXPECT_EQ(stats(box).actor_bytes, bytes);
	EXPECT_EQ(status_of(box, "child:150").life, NOH_NOT_ACTIVE);
	EXPECT_EQ(load_relaxed(&in_all), 4);
	EXPECT_EQ(forks(box, "forker:1", FORK, 100, 200), NOH_OK);
	hear(box, 204);
	end(box);
}

static void a_new_mailbox_has_its_limit_too(void)
{
	noh_box *box = open_box(1);
	uint64_t n = 0;
	size_t   len = sizeof n;

	EXPECT_EQ(noh_call(box, "forker:1", FILL, NULL, 0, SOON, &n, &len), NOH_OK);
	EXPECT_EQ(n, 40);                            /* four times its capacity, then NOH_FULL */
	EXPECT_EQ(noh_call(box, "forker:1", FILL, "s", 1, SOON, &n, &len), NOH_OK);
	EXPECT_EQ(n, 10);
	hear(box, 1 + 40 + 1 + 10);
	EXPECT(settles(box, "strict"));
	EXPECT_EQ(load_relaxed(&out_of_order), 1);   /* child:1000000 heard number 1 twice */
	end(box);
}

static void a_hook_may_fork(void)
{
	noh_box *box = open_box(1);

	EXPECT_EQ(forks(box, "forker:1", FORK, 0, 2), NOH_OK);
	EXPECT_EQ(forks(box, "hooked:1", FORK, 10, 2), NOH_OK);
	hear(box, 24);
	EXPECT_EQ(count_of(box, 719), 1);
	end(box);
}

/* Two workers, four forkers, the same addresses at the same time. */
static void who_makes_an_address_together_makes_it_once(void)
{
	enum { ROUNDS = 60, EACH = 200 };
	noh_box *box = open_box(2);
	char who[20];

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < 4; i++) {
			struct range r = { round * EACH, EACH };

			snprintf(who, sizeof who, "forker:%u", i);
			EXPECT_EQ(noh_send_wait(box, who, FORK, &r, sizeof r, SOON), NOH_OK);
		}
	hear(box, ROUNDS * EACH * 4);
	EXPECT_EQ(stats_of(box, "child").activations, ROUNDS * EACH);
	for (uint32_t i = 0; i < ROUNDS * EACH; i += 97)
		EXPECT_EQ(count_of(box, i), 4);
	EXPECT_EQ(stats(box).dead_letters, 0);
	end(box);
}

/* The cells run out in the middle of a turn: it is told at the send, and undone. */
static void a_full_box_says_so_at_the_send(void)
{
	noh_options o = kit_options(1);

	o.max_actors = 300;
	store_relaxed(&in_all, 0);
	noh_box *box = kit_start(&o, TYPES(&child, &strict, &forker, &hooked));

	EXPECT_EQ(forks(box, "forker:1", FORK, 0, 100), NOH_OK);
	EXPECT_EQ(forks(box, "forker:1", FORK, 100, 400), NOH_ENOMEM);
	EXPECT_EQ(forks(box, "forker:1", FORK, 100, 100), NOH_OK);
	hear(box, 200);
	end(box);
}

TEST_MAIN(
	TEST(every_new_address_hears_its_message, "P1"),
	TEST(one_new_address_several_times_is_one_actor_in_order, "P1 P3"),
	TEST(who_is_there_already_gets_the_message_behind_the_earlier_ones, "P1 P3"),
	TEST(known_and_new_addresses_mix, "P1"),
	TEST(a_bad_address_among_new_ones_harms_nobody),
	TEST(an_undone_turn_leaves_no_actors, "P4"),
	TEST(a_new_mailbox_has_its_limit_too),
	TEST(a_hook_may_fork),
	TEST(who_makes_an_address_together_makes_it_once, "P1"),
	TEST(a_full_box_says_so_at_the_send))
