/* tests/box/step_storm_test.c - many steps and plain messages over few actors, from several threads and from
 * actors, with tiny mailboxes: money is neither made nor lost, and nobody waits for ever. */
#include "tests/box/step_kit.h"

#ifdef NOH_SANITIZED
#define EACH 400
#else
#define EACH 3000
#endif

enum { PURSES = 5, START = 1000 };

static const noh_type tiny_type = { .name = "purse", .state_size = sizeof(struct purse), .full_mode = NOH_BLOCK,
				    .mailbox_capacity = 2, .on_message = purse_message, .idle_timeout_ms = 100 };
static const noh_type tiny_shown = { .name = "purse", .state_size = sizeof(struct purse), .full_mode = NOH_BLOCK,
				     .mailbox_capacity = 2, .on_message = purse_message, .kinds = purse_kinds,
				     .kind_count = KINDS };

static struct { noh_box *box; atomic_u64 ok, refused, failed, others, under_way; } storm;

static void count(void *user, int status, const noh_part_answer *answers, size_t n)
{
	(void)user, (void)answers, (void)n;
	add_seq_cst(status == NOH_OK ? &storm.ok : status == NOH_REFUSED ? &storm.refused :
		    status == NOH_EFAILED ? &storm.failed : &storm.others, 1);
	add_seq_cst(&storm.under_way, UINT64_MAX);
}

/* From one to the others; now and then it fails at the end, now and then it asks for too much. */
static void send_step(uint64_t *rng)
{
	uint32_t first = (uint32_t)(test_random(rng) % PURSES), n = 2 + (uint32_t)(test_random(rng) % (PURSES - 1));
	bool fails = test_random(rng) % 16 == 0;
	int64_t one = 1, all = test_random(rng) % 8 ? (int64_t)n - 1 : 1000000;
	char names[PURSES][24];
	noh_part parts[PURSES];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof names[i], "purse:%u", (first + i) % PURSES);
		parts[i] = part_of(names[i], i ? ADD : TAKE, i ? &one : &all);
	}
	if (fails)
		parts[n - 1].kind = FAIL;
	if (test_random(rng) % 2) {              /* also the other way round */
		noh_part p = parts[0];

		parts[0] = parts[n - 1];
		parts[n - 1] = p;
	}
	add_seq_cst(&storm.under_way, 1);
	if (!EXPECT_EQ(noh_step_then(storm.box, parts, n, NULL, count, NULL), NOH_OK))
		add_seq_cst(&storm.under_way, UINT64_MAX);
}

static void *send_steps(void *arg)
{
	uint64_t rng = test_seed + (uintptr_t)arg;

	for (int i = 0; i < EACH; i++) {
		send_step(&rng);
		while (load_seq_cst(&storm.under_way) > 20)
			nap_us(20);
	}
	return NULL;
}

/* Plain messages, by way of actors that fill each other's mailboxes and wait for each other's answers. */
static void *send_plain(void *arg)
{
	uint64_t rng = test_seed + 100 + (uintptr_t)arg;

	for (int i = 0; i < EACH; i++) {
		uint32_t from = (uint32_t)(test_random(&rng) % PURSES), to = (uint32_t)(test_random(&rng) % PURSES);
		struct order o = { .n = 3, .kind = GET };
		char name[24];
		int rc;

		snprintf(name, sizeof name, "purse:%u", from);
		snprintf(o.to, sizeof o.to, "purse:%u", to);
		do
			rc = noh_send_wait(storm.box, name, test_random(&rng) % 3 ? TELL : WAIT_FOR, &o, sizeof o, SOON);
		while (rc == NOH_FULL);
		EXPECT_EQ(rc, NOH_OK);
		if (test_random(&rng) % 64 == 0)
			(void)noh_deactivate(storm.box, name, false, 0);
	}
	return NULL;
}

static void *mixed(void *arg)
{
	return (uintptr_t)arg % 2 ? send_plain(arg) : send_steps(arg);
}

static bool all_told(void *arg)
{
	(void)arg;
	return load_seq_cst(&storm.under_way) == 0;
}

static void storm_over(noh_box *box)
{
	struct threads t;
	int64_t sum = 0;

	storm.box = box;
	store_seq_cst(&storm.ok, 0);
	store_seq_cst(&storm.refused, 0);
	store_seq_cst(&storm.failed, 0);
	store_seq_cst(&storm.others, 0);
	for (int i = 0; i < PURSES; i++) {
		char name[24];

		snprintf(name, sizeof name, "purse:%d", i);
		EXPECT_EQ(noh_call(box, name, ADD, N(START), 8, SOON, NULL, NULL), NOH_OK);
	}
	threads_start(&t, 4, mixed);
	threads_join(&t);
	EXPECT(test_wait_until(all_told, NULL, 3 * SOON));
	EXPECT(settles(box, "purse"));
	for (int i = 0; i < PURSES; i++) {
		char name[24];

		snprintf(name, sizeof name, "purse:%d", i);
		sum += balance(box, name);
	}
	EXPECT_EQ(sum, PURSES * START);
	EXPECT_EQ(load_seq_cst(&storm.others), 0);
	EXPECT(load_seq_cst(&storm.ok) > EACH / 2);
	EXPECT(load_seq_cst(&storm.refused) > 0);
	EXPECT(load_seq_cst(&storm.failed) > 0);
}

static void steps_and_messages_over_few_actors_keep_the_sum(void)
{
	FOR_WORKERS(workers) {
		noh_options o = kit_options(workers);
		noh_box *box = kit_start(&o, workers == 2 ? TYPES(&tiny_shown) : TYPES(&tiny_type));

		storm_over(box);
		end(box);
	}
}

/* Two threads, the same two actors, in opposite order: each waits for its own steps alone. */
static void *there_and_back(void *arg)
{
	const char *from = (uintptr_t)arg ? "purse:a" : "purse:b", *to = (uintptr_t)arg ? "purse:b" : "purse:a";

	for (int i = 0; i < EACH; i++)
		EXPECT_EQ(move(storm.box, from, to, 1), NOH_OK);
	return NULL;
}

static void two_steps_in_opposite_order_never_wait_for_each_other(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = storm.box = BOX(workers, &purse_type);
		struct threads t;

		EXPECT_EQ(noh_call(box, "purse:a", ADD, N(EACH), 8, SOON, NULL, NULL), NOH_OK);
		EXPECT_EQ(noh_call(box, "purse:b", ADD, N(EACH), 8, SOON, NULL, NULL), NOH_OK);
		threads_start(&t, 2, there_and_back);
		threads_join(&t);
		EXPECT_EQ(balance(box, "purse:a"), EACH);
		EXPECT_EQ(balance(box, "purse:b"), EACH);
		end(box);
	}
}

/* A stream of messages for one of its actors does not starve a step, nor a stream of steps an actor. */
static atomic_u32 enough;

static void *stream(void *arg)
{
	while (!load_seq_cst(&enough)) {
		if ((uintptr_t)arg == 0)
			(void)noh_send(storm.box, "purse:a", ADD, N(0), 8);
		else
			(void)move(storm.box, "purse:a", "purse:b", 0);
	}
	return NULL;
}

static void nobody_starves(void)
{
	FOR_WORKERS(workers) {
		noh_box *box = storm.box = BOX(workers, &tiny_type);
		struct threads t;

		store_seq_cst(&enough, 0);
		threads_start(&t, 3, stream);
		for (int i = 0; i < EACH / 10; i++) {
			EXPECT_EQ(move(box, "purse:a", "purse:c", 0), NOH_OK);
			EXPECT_EQ(noh_call(box, "purse:a", ADD, N(0), 8, SOON, NULL, NULL), NOH_OK);
		}
		store_seq_cst(&enough, 1);
		threads_join(&t);
		end(box);
	}
}

TEST_MAIN(
	TEST(steps_and_messages_over_few_actors_keep_the_sum, "P2 P4 P8"),
	TEST(two_steps_in_opposite_order_never_wait_for_each_other),
	TEST(nobody_starves, "P10"))
