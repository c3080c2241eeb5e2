/* tests/box/no_room_test.c - a worker whose ring is full, and a journaller that does not come: here there is none at all. */
#include "tests/box/durable_kit.h"

#include "box/box.h"
#include "core/clock.h"

#include <pthread.h>

enum { STATE = 8000, RING = 64 << 10, ACTORS = 64 };

static int on_message(noh_turn *t, const noh_msg *m)
{
	char *state = noh_state(t);

	(void)m;
	memset(state, state[0] + 1, STATE);
	return noh_reply(t, state, 1);
}

static const noh_type big = { .name = "big", .state_size = STATE, .on_message = on_message };

static void *work(void *w)
{
	sched_loop(w);
	return NULL;
}

static atomic_u32 answers, wrong;

static void answered(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	if (status != NOH_OK || len != 1 || *(const char *)answer != 1)
		add_relaxed(&wrong, 1);
	add_seq_cst(&answers, 1);
}

/* What it pushed last it may leave to the journaller, who does not come. */
static bool most_are_answered(void *arg)
{
	(void)arg;
	return load_seq_cst(&answers) >= ACTORS / 2;
}

/* Eight times what its ring holds: it waits for room before its work is done, again and again. */
static void who_finds_no_room_in_the_journal_writes_himself(void)
{
	char dir[300], address[32];
	noh_options o = { .workers = 1, .dir = light_dir(dir, sizeof dir), .unpinned = true, .max_actors = 1000 };
	struct box_seams seams = { .ring_bytes = RING };
	noh_box *box = NULL;
	pthread_t worker;

	clock_real(&seams.clock);
	EXPECT_EQ(box_open(&box, &o, &seams), NOH_OK);
	EXPECT_EQ(noh_register(box, &big), NOH_OK);
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	for (int i = 0; i < ACTORS; i++) {
		snprintf(address, sizeof address, "big:%d", i);
		EXPECT_EQ(noh_call_then(box, address, 0, NULL, 0, 100000, answered, NULL), NOH_OK);
	}
	EXPECT_EQ(pthread_create(&worker, NULL, work, &box->sched.workers[0]), 0);
	EXPECT(test_wait_until(most_are_answered, NULL, 20000));
	EXPECT_EQ(load_relaxed(&wrong), 0);
	store_seq_cst(&box->sched.stopping, 3);
	sched_wake_all(&box->sched);
	pthread_join(worker, NULL);
	noh_close(box);
	remove_dir(dir);
}

TEST_MAIN(TEST(who_finds_no_room_in_the_journal_writes_himself, "P5"))
