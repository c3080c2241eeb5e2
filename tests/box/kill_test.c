/* tests/box/kill_test.c - kill -9 in the middle of everything, again and again: what was answered is
 * there, what was not is there once or not at all, and what actors sent each other arrives once (P4-P7).
 *
 * The page cache survives kill -9, so this is about the logic of recovery; power cuts are in tests/crash.
 */
#include "tests/box/durable_kit.h"

#include "core/atomic.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { COUNTERS = 8, IN_FLIGHT = 64, ROUNDS = 6 };
enum { ADD, GET, MOVE, GROW };

/* Shared with the child that is killed. */
struct tally {
	atomic_u64 sent[COUNTERS], acked[COUNTERS];
	atomic_u64 moves_sent, moves_acked, keys_sent, keys_acked, in_flight, failed;
};

static int on_message(noh_turn *t, const noh_msg *m)
{
	int64_t *sum = noh_state(t), n = m->len >= 8 ? *(const int64_t *)m->body : 0;

	switch (m->kind) {
	case ADD:
		*sum += n;
		return noh_reply(t, sum, 8);
	case GET:
		return noh_reply(t, noh_look(t), 8);
	case MOVE:                               /* to three others in a row, one third each */
		*sum -= 3 * n;
		for (int i = 0; i < 3; i++) {
			char to[32];

			snprintf(to, sizeof to, "sum:purse-%d", i);
			int rc = noh_tell_to(t, to, i == 2 ? GROW : ADD, &n, 8);
			if (rc != NOH_OK)
				return rc;
		}
		return NOH_OK;
	case GROW:                               /* passes it on once more, and notes it */
		EXPECT_EQ(noh_kv_put(t, "last", 4, &n, 8), NOH_OK);
		return noh_tell_to(t, "sum:purse-3", ADD, &n, 8);
	}
	return NOH_EINVAL;
}

static const noh_type sum_type = { .name = "sum", .state_size = 8, .on_message = on_message,
				   .full_mode = NOH_BLOCK, .mailbox_capacity = 1000,
				   .idle_timeout_ms = 100 };
static struct tally *tally;

static void done(void *user, int status, const void *answer, size_t len)
{
	(void)answer;
	(void)len;
	add_seq_cst(&tally->in_flight, UINT64_MAX);
	add_seq_cst(status == NOH_OK ? (atomic_u64 *)user : &tally->failed, 1);
}

static void call(noh_box *box, const char *address, uint32_t kind, const char *key, atomic_u64 *sent,
		 atomic_u64 *acked)
{
	noh_call_options o = { .key = key, .key_len = key ? strlen(key) : 0, .timeout_ms = 60000 };

	add_seq_cst(&tally->in_flight, 1);
	add_seq_cst(sent, 1);
	if (noh_call_then_with(box, address, kind, &(int64_t){ 1 }, 8, &o, done, acked) != NOH_OK) {
		add_seq_cst(&tally->in_flight, UINT64_MAX);
		add_seq_cst(&tally->failed, 1);
	}
}

/* The child: as much as it can until it is killed. */
static void work(const char *dir, unsigned workers)
{
	noh_box *box = open_dir(dir, workers, &sum_type, 1);
	char text[64];

	for (uint64_t i = 0;; i++) {
		int c = (int)(i % COUNTERS);

		while (load_seq_cst(&tally->in_flight) > IN_FLIGHT)
			usleep(20);
		snprintf(text, sizeof text, "sum:%d", c);
		call(box, text, ADD, NULL, &tally->sent[c], &tally->acked[c]);
		if (i % 4 == 0)
			call(box, "sum:giver", MOVE, NULL, &tally->moves_sent, &tally->moves_acked);
		if (i % 3 == 0) {
			snprintf(text, sizeof text, "key-%llu",
				 (unsigned long long)load_seq_cst(&tally->keys_sent));
			call(box, "sum:keyed", ADD, text, &tally->keys_sent, &tally->keys_acked);
		}
	}
}

static uint64_t all_acked(void)
{
	uint64_t sum = load_seq_cst(&tally->moves_acked) + load_seq_cst(&tally->keys_acked);

	for (int i = 0; i < COUNTERS; i++)
		sum += load_seq_cst(&tally->acked[i]);
	return sum;
}

static bool enough(void *arg)
{
	return all_acked() >= *(uint64_t *)arg;
}

static bool balanced(void *box)
{
	int64_t sum = call_i64(box, "sum:giver", GET, 0);

	for (int i = 0; i < 4; i++) {
		char text[32];

		snprintf(text, sizeof text, "sum:purse-%d", i);
		sum += call_i64(box, text, GET, 0);
	}
	return sum == 0;
}

static void check(noh_box *box)
{
	char text[64];
	int64_t moves;

	for (int i = 0; i < COUNTERS; i++) {
		snprintf(text, sizeof text, "sum:%d", i);
		int64_t value = call_i64(box, text, GET, 0);

		EXPECT(value >= (int64_t)load_seq_cst(&tally->acked[i]));
		EXPECT(value <= (int64_t)load_seq_cst(&tally->sent[i]));
	}
	EXPECT(test_wait_until(balanced, box, 20000));
	moves = -call_i64(box, "sum:giver", GET, 0) / 3;
	EXPECT(moves >= (int64_t)load_seq_cst(&tally->moves_acked));
	EXPECT(moves <= (int64_t)load_seq_cst(&tally->moves_sent));
	for (int i = 0; i < 4; i++) {            /* purse-2 passes its share on to purse-3 */
		snprintf(text, sizeof text, "sum:purse-%d", i);
		EXPECT_EQ(call_i64(box, text, GET, 0), i == 2 ? 0 : moves);
	}
	/* Whatever became of each: sent again with its key it has happened once. */
	for (uint64_t k = 0; k < load_seq_cst(&tally->keys_sent); k++) {
		snprintf(text, sizeof text, "key-%llu", (unsigned long long)k);
		EXPECT_EQ(noh_call_with(box, "sum:keyed", ADD, &(int64_t){ 1 }, 8,
					&(noh_call_options){ .key = text, .key_len = strlen(text),
							     .durability = NOH_MEMORY }, NULL, NULL), NOH_OK);
	}
	EXPECT_EQ(call_i64(box, "sum:keyed", GET, 0), (int64_t)load_seq_cst(&tally->keys_sent));
}

static void kill_minus_nine_loses_nothing_and_repeats_nothing(void)
{
	char room[256];
	const char *dir = fresh_dir(room, sizeof room);
	uint64_t random = test_seed;

	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t until = all_acked() + test_random(&random) % 500;
		unsigned workers = 1 + (unsigned)(test_random(&random) % 2);
		pid_t child = fork();

		if (child == 0) {
			work(dir, workers);
			_exit(1);
		}
		EXPECT(test_wait_until(enough, &until, 30000));
		kill(child, SIGKILL);
		EXPECT_EQ(waitpid(child, NULL, 0), child);
		store_seq_cst(&tally->in_flight, 0);
		noh_box *box = open_dir(dir, 3 - workers, &sum_type, 1);

		check(box);
		if (round % 2)
			shut(box);
		else
			noh_close(box);
	}
	EXPECT_EQ(load_seq_cst(&tally->failed), 0);
	munmap(tally, sizeof *tally);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(kill_minus_nine_loses_nothing_and_repeats_nothing, "US-10 MB-12 MB-14 EN-13 RT-30"))
