/* tests/box/step_sends_test.c - the turns of a step are turns like any other: what large parts send comes, all of it and in
 * order, and a deadline counts for each of them. */
#include "tests/box/hands_kit.h"

enum { MANY = 40, FEW = 3, LARGE = 1000 };
enum { NOTE, SEND, SLOW };

struct burst { noh_actor to[2]; uint32_t count; };       /* alternately to two, or to one twice */
struct heard { uint64_t count; bool disorder; };

static atomic_u64 heard[3];
static atomic_u32 disorder;

static int hear(noh_turn *t, const noh_msg *m)
{
	struct heard *h = noh_state(t);

	if (*(const uint64_t *)m->body != h->count++)
		store_relaxed(&disorder, 1);
	store_relaxed(&heard[noh_id(t)[0] - 'a'], h->count);
	return NOH_OK;
}

static int send(noh_turn *t, const noh_msg *m)
{
	const struct burst *s = m->body;
	int rc = NOH_OK;

	if (m->kind == SLOW) {
		clock_virtual_advance(&hands, 60 * UINT64_C(1000000));
		*(uint64_t *)noh_state(t) += 1;
		return NOH_OK;
	}
	for (uint64_t i = 0; rc == NOH_OK && i < s->count; i++)
		rc = noh_tell(t, s->to[i % 2], NOTE, &(uint64_t){ s->to[0].bits == s->to[1].bits ? i : i / 2 }, 8);
	return rc;
}

static const noh_supervision quick = { .base_ms = 1, .cap_ms = 5, .restarts = 100, .turn_deadline_ms = 50 };
static const noh_type ear = { .name = "ear", .state_size = sizeof(struct heard), .full_mode = NOH_BLOCK,
			      .mailbox_capacity = 2000, .on_message = hear };
static const noh_type mouth = { .name = "mouth", .state_size = 8, .on_message = send };
static const noh_type hasty = { .name = "hasty", .state_size = 8, .on_message = send, .supervision = &quick };

static noh_box *open_ears(noh_actor ears[3])
{
	noh_box *box = BOX(1, &ear, &mouth);

	for (int i = 0; i < 3; i++) {
		char address[8] = "ear:a";

		address[4] = (char)('a' + i);
		EXPECT_EQ(noh_ref(box, address, &ears[i]), NOH_OK);
		store_relaxed(&heard[i], 0);
	}
	store_relaxed(&disorder, 0);
	return box;
}

static void expect_heard(noh_box *box, uint64_t a, uint64_t b, uint64_t c)
{
	EXPECT(settles(box, "ear"));
	EXPECT_EQ(load_relaxed(&heard[0]), a);
	EXPECT_EQ(load_relaxed(&heard[1]), b);
	EXPECT_EQ(load_relaxed(&heard[2]), c);
	EXPECT_EQ(load_relaxed(&disorder), 0);
	EXPECT_EQ(stats(box).dead_letters, 0);
	end(box);
}

/* Where a part's messages go is noted until the next one begins: the first to be committed finds the notes of the last. */
static void what_the_first_part_sent_comes_although_the_second_sends_too(void)
{
	for (int large = 0; large < 2; large++) {
		noh_actor ears[3];
		noh_box *box = open_ears(ears);
		uint32_t n = large ? LARGE : MANY;
		struct burst first = { { ears[0], ears[1] }, n }, second = { { ears[2], ears[2] }, FEW };
		noh_part parts[2] = { { "mouth:1", SEND, &first, sizeof first }, { "mouth:2", SEND, &second, sizeof second } };

		EXPECT_EQ(noh_step(box, parts, 2, NULL, NULL, NULL, NULL), NOH_OK);
		expect_heard(box, n / 2, n / 2, FEW);
	}
}

static void two_parts_may_both_send_much(void)
{
	noh_actor ears[3];
	noh_box *box = open_ears(ears);
	struct burst first = { { ears[0], ears[1] }, MANY }, second = { { ears[2], ears[2] }, MANY };
	noh_part parts[2] = { { "mouth:1", SEND, &first, sizeof first }, { "mouth:2", SEND, &second, sizeof second } };

	EXPECT_EQ(noh_step(box, parts, 2, NULL, NULL, NULL, NULL), NOH_OK);
	expect_heard(box, MANY / 2, MANY / 2, MANY);
}

/* ── the deadline of a turn ── */

static int step_status;

static void step_done(void *user, int status, const noh_part_answer *parts, size_t count)
{
	(void)user, (void)parts, (void)count;
	step_status = status;
}

static void a_part_past_its_deadline_fails_the_step(void)
{
	noh_box *box = hands_start(TYPES(&hasty, &mouth));
	noh_part slow[2] = { { "mouth:a", SLOW, NULL, 0 }, { "hasty:b", SLOW, NULL, 0 } };
	noh_part quick_enough[1] = { { "hasty:b", SEND, &(struct burst){ .count = 0 }, sizeof(struct burst) } };

	step_status = 1;
	EXPECT_EQ(noh_step_then(box, slow, 2, NULL, step_done, NULL), NOH_OK);
	hands_run(box);
	EXPECT_EQ(step_status, NOH_EFAILED);
	EXPECT(logged("its turn took 60 ms, and 50 are allowed"));
	EXPECT_EQ(noh_step_then(box, quick_enough, 1, NULL, step_done, NULL), NOH_OK);
	hands_run(box);
	EXPECT_EQ(step_status, NOH_OK);
	noh_close(box);
}

TEST_MAIN(TEST(what_the_first_part_sent_comes_although_the_second_sends_too, "P4 P8"),
	  TEST(two_parts_may_both_send_much, "P4"),
	  TEST(a_part_past_its_deadline_fails_the_step, "P4"))
