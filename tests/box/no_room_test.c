/* tests/box/no_room_test.c - no room in a worker's ring, where the journaller does not come (here there is none at all); no room
 * on the disk, for an actor that writes as soon as it is activated. */
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

/* ── a full disk ── */

enum { LOOK, ADD };

static int scribe_comes(noh_turn *t)
{
	return noh_kv_put(t, "came", 4, "here", 4);
}

static int scribe_works(noh_turn *t, const noh_msg *m)
{
	if (m->kind == ADD)
		++*(int64_t *)noh_state(t);
	return noh_reply(t, noh_look(t), 8);
}

static const noh_type scribe = { .name = "scribe", .state_size = 8, .on_activate = scribe_comes, .on_message = scribe_works };

/* Tells plain:friend that it goes; keeps how often it went. */
static int parting_goes(noh_turn *t)
{
	++*(int64_t *)noh_state(t);
	return noh_tell_to(t, "plain:friend", ADD, NULL, 0);
}

/* Comes as a scribe does; fails of everything but LOOK. */
static int restarted_works(noh_turn *t, const noh_msg *m)
{
	return m->kind == LOOK ? noh_reply(t, noh_look(t), 8) : noh_fail(t, "for a reason");
}

static const noh_type parting = { .name = "parting", .state_size = 8, .on_message = scribe_works, .on_deactivate = parting_goes };
static const noh_type restarted = {
	.name = "restarted", .state_size = 8, .on_activate = scribe_comes, .on_message = restarted_works,
	.supervision = &(noh_supervision){ .retries = NOH_NEVER, .base_ms = 1, .restarts = NOH_NEVER },
};
static const noh_type plain = { .name = "plain", .state_size = 8, .on_message = scribe_works };
static bool full;

static bool is_full(void *arg)
{
	(void)arg;
	return full;
}

static struct { int times, status; int64_t n; } told;

static void tell(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	told.times++;
	told.status = status;
	told.n = len == 8 ? *(const int64_t *)answer : -1;
}

static void pass(noh_box *box)
{
	for (int i = 0; i < 3; i++) {
		while (sched_pass(&box->sched.workers[0]))
			;
		(void)box_journal_round(box, true);
	}
}

static void ask(noh_box *box, const char *address, uint32_t kind)
{
	int before = told.times;

	EXPECT_EQ(noh_call_then(box, address, kind, NULL, 0, 100000, tell, NULL), NOH_OK);
	for (int i = 0; i < 20000 && told.times == before; i++) {
		pass(box);
		if (told.times == before)                /* who restarts does so in a millisecond */
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	EXPECT_EQ(told.times, before + 1);
}

static noh_box *open_stepped(char *dir, size_t size)
{
	noh_options o = { .workers = 1, .dir = light_dir(dir, size), .unpinned = true, .max_actors = 1000 };
	static const noh_type *const types[] = { &scribe, &plain, &parting, &restarted };
	noh_box *box = NULL;

	full = false;
	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		EXPECT_EQ(noh_register(box, types[i]), NOH_OK);
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	box->sched.journal.take = NULL;
	box->sched.journal.no_space = is_full;
	sched_set_self(&box->sched.workers[0]);
	return box;
}

static void close_stepped(noh_box *box, const char *dir)
{
	full = false;
	sched_set_self(NULL);
	noh_close(box);
	remove_dir(dir);
}

static void an_activation_that_writes_is_a_write_on_a_full_disk(void)
{
	char dir[300];
	noh_box *box = open_stepped(dir, sizeof dir);

	ask(box, "plain:a", ADD);
	EXPECT_EQ(told.status, NOH_OK);
	full = true;
	ask(box, "plain:a", LOOK);
	EXPECT_EQ(told.status, NOH_OK);
	EXPECT_EQ(told.n, 1);
	ask(box, "plain:b", LOOK);                       /* nothing to write: it comes */
	EXPECT_EQ(told.status, NOH_OK);
	for (int i = 0; i < 2; i++) {
		ask(box, "scribe:a", LOOK);
		EXPECT_EQ(told.status, NOH_ENOSPC);
	}
	full = false;
	ask(box, "scribe:a", ADD);
	EXPECT_EQ(told.status, NOH_OK);
	EXPECT_EQ(told.n, 1);
	close_stepped(box, dir);
}

static void goes(noh_box *box, const char *address)
{
	noh_status is;

	sched_set_self(NULL);
	EXPECT_EQ(noh_deactivate(box, address, false, 0), NOH_ETIMEOUT);
	sched_set_self(&box->sched.workers[0]);
	pass(box);
	EXPECT_EQ(noh_get_status(box, address, &is), NOH_OK);
	EXPECT_EQ(is.life, NOH_NOT_ACTIVE);
}

static void who_goes_on_a_full_disk_says_nothing_that_nobody_records(void)
{
	char dir[300];
	noh_box *box = open_stepped(dir, sizeof dir);

	ask(box, "plain:friend", ADD);
	ask(box, "parting:a", ADD);
	full = true;
	goes(box, "parting:a");
	ask(box, "plain:friend", LOOK);
	EXPECT_EQ(told.n, 1);
	full = false;
	ask(box, "parting:a", LOOK);
	EXPECT_EQ(told.n, 1);                            /* its last turn was undone as a whole */
	goes(box, "parting:a");
	ask(box, "plain:friend", LOOK);
	EXPECT_EQ(told.n, 2);
	ask(box, "parting:a", LOOK);
	EXPECT_EQ(told.n, 2);
	close_stepped(box, dir);
}

static void who_cannot_restart_on_a_full_disk_comes_when_there_is_room(void)
{
	char dir[300];
	noh_box *box = open_stepped(dir, sizeof dir);

	ask(box, "restarted:a", LOOK);
	EXPECT_EQ(told.status, NOH_OK);
	ask(box, "restarted:a", ADD);
	EXPECT_EQ(told.status, NOH_EFAILED);
	full = true;
	ask(box, "restarted:a", LOOK);                   /* it tried, and left */
	EXPECT_EQ(told.status, NOH_EFAILED);
	ask(box, "restarted:a", LOOK);
	EXPECT_EQ(told.status, NOH_ENOSPC);
	full = false;
	ask(box, "restarted:a", LOOK);
	EXPECT_EQ(told.status, NOH_OK);
	close_stepped(box, dir);
}

TEST_MAIN(TEST(who_goes_on_a_full_disk_says_nothing_that_nobody_records, "P6"),
	  TEST(who_cannot_restart_on_a_full_disk_comes_when_there_is_room, "P11"),
	  TEST(an_activation_that_writes_is_a_write_on_a_full_disk, "P6 P11"),
	  TEST(who_finds_no_room_in_the_journal_writes_himself, "P5"))
