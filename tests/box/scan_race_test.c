/* tests/box/scan_race_test.c - noh_scan while actors come, go, move to storage and are folded, and after
 * kill -9: whoever exists all the time is told, whoever never does is not; in the end the number is
 * exact. */
#include "tests/box/scan_kit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#ifdef NOH_SANITIZED
enum { SCANS = 12, WORDS = 150 };        /* of one box; a life of the one that is killed */
#else
enum { SCANS = 40, WORDS = 600 };
#endif

/* ── in the midst of everything ── */

/* 0 to 999 exist all the time, and are moved about; 1000 to 1999 come and go; 2000 on never are. */
static struct { noh_box *box; atomic_u32 stop; char type; } busy;

static void *stir(void *arg)
{
	uint64_t rng = test_seed + (uintptr_t)arg;

	while (!load_acquire(&busy.stop)) {
		uint64_t dice = test_random(&rng);
		uint32_t stays = (uint32_t)(dice % 1000), goes = (uint32_t)(1000 + dice / 1000 % 1000);
		char address[16];
		int64_t one = 1;

		snprintf(address, sizeof address, "%c:%u", busy.type, stays);
		(void)noh_send(busy.box, address, dice >> 40 & 1 ? ADD : STOP, &one, 8);
		snprintf(address, sizeof address, "%c:%u", busy.type, goes);
		(void)noh_send(busy.box, address, dice >> 41 & 1 ? ADD : dice >> 42 & 1 ? ERASE : STOP, &one, 8);
		snprintf(address, sizeof address, "%c:%u", busy.type, (uint32_t)(2000 + dice % 500));
		(void)noh_send(busy.box, address, dice >> 43 & 1 ? GET : dice >> 44 & 1 ? ERASE : STOP, &one, 8);
		if (dice % 256 == 0 && busy.box->disk.db)
			keeper_ask(&busy.box->disk.keeper);
		if (dice % 64 == 0)
			usleep(200);
	}
	return NULL;
}

static void stirred(noh_box *box, char type, unsigned scans)
{
	char name[2] = { type, 0 };
	pthread_t threads[2];

	send_all(box, type, 0, 1000, ADD, NULL);
	settle(box, name);
	busy.box = box;
	busy.type = type;
	store_release(&busy.stop, 0);
	for (uintptr_t i = 0; i < 2; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, stir, (void *)i), 0);
	for (unsigned i = 0; i < scans; i++) {
		scan_all(box, name, 1 + i % 3 * 100, &told);
		for (uint32_t id = 0; id < MOST; id++)
			if (id < 1000 ? !EXPECT(told.times[id] > 0)
				      : id >= 2000 && !EXPECT_EQ(told.times[id], 0)) {
				fprintf(stderr, "%s:%u\n", name, id);
				break;
			}
		EXPECT_EQ(told.strange, 0);
	}
	store_release(&busy.stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	settle(box, name);
	scan_all(box, name, 100, &told);
	EXPECT_EQ(existing(box, name), told.all - told.twice);
}

static void a_scan_in_the_midst_of_everything_misses_nobody(void)
{
	char dir[256];

	for (unsigned workers = 1; workers <= 2; workers++) {
		noh_box *box = open_dir(fresh_dir(dir, sizeof dir), workers, types, TYPES_HERE);

		stirred(box, 'c', SCANS);
		stirred(box, 'v', SCANS);
		fold(box);
		scan_all(box, "c", 100, &told);
		EXPECT_EQ(told.twice, 0);
		EXPECT_EQ(existing(box, "c"), told.all);
		uint64_t before = existing(box, "c");

		shut(box);
		box = open_dir(dir, 3 - workers, types, TYPES_HERE);
		EXPECT_EQ(existing(box, "c"), before);
		scan_all(box, "c", 100, &told);
		EXPECT_EQ(told.all, before);
		shut(box);
		remove_dir(dir);
	}
	noh_box *box = open_plain(2);

	stirred(box, 'c', SCANS);
	shut(box);
}

/* ── kill -9 ── */

/* What was acknowledged: the last word on each. */
struct words { atomic_u32 sent[400], acked[400]; };      /* odd: it is there, even: erased */

static void work_until_killed(const char *dir, struct words *words, uint64_t rng)
{
	noh_box *box = open_dir(dir, 2, types, TYPES_HERE);

	for (;;) {
		uint32_t id = (uint32_t)(test_random(&rng) % 400), next = load_relaxed(&words->sent[id]) + 1;

		store_seq_cst(&words->sent[id], next);
		if (say(box, 'c', id, next % 2 ? ADD : ERASE) == NOH_OK)
			store_seq_cst(&words->acked[id], next);
		if (test_random(&rng) % 16 == 0)
			(void)say(box, 'c', (uint32_t)(test_random(&rng) % 400), STOP);
		if (test_random(&rng) % 100 == 0)
			keeper_ask(&box->disk.keeper);
	}
}

static uint64_t words_said(struct words *w)
{
	uint64_t n = 0;

	for (int i = 0; i < 400; i++)
		n += load_seq_cst(&w->acked[i]);
	return n;
}

struct saying { struct words *words; uint64_t upto; };

static bool said_enough(void *arg)
{
	struct saying *s = arg;

	return words_said(s->words) >= s->upto;
}

static void after_kill_9_it_tells_what_was_answered(void)
{
	struct words *words = mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t rng = test_seed;
	char dir[256];

	fresh_dir(dir, sizeof dir);
	for (unsigned round = 0; round < 5; round++) {
		uint64_t from = words_said(words), seed = test_random(&rng);
		pid_t child = fork();

		if (child == 0) {
			work_until_killed(dir, words, seed);
			_exit(0);
		}
		EXPECT(test_wait_until(said_enough, &(struct saying){ words, from + WORDS }, 6 * SOON));
		EXPECT_EQ(kill(child, SIGKILL), 0);
		EXPECT_EQ(waitpid(child, NULL, 0), child);

		noh_box *box = open_dir(dir, 1 + round % 3, types, TYPES_HERE);

		for (int again = 0; again < 2; again++) {        /* out of the tail; folded */
			scan_all(box, "c", 50, &told);
			for (uint32_t id = 0; id < 400; id++) {
				uint32_t sent = load_seq_cst(&words->sent[id]);
				uint32_t acked = load_seq_cst(&words->acked[id]);

				if (sent == acked)
					EXPECT_EQ(told.times[id] > 0, sent % 2);
			}
			EXPECT(told.all - told.twice <= 400);
			EXPECT_EQ(told.strange, 0);
			EXPECT(test_wait_until(is_counted, box, SOON));
			fold(box);
		}
		scan_all(box, "c", 50, &told);
		EXPECT_EQ(told.twice, 0);
		EXPECT_EQ(existing(box, "c"), told.all);
		/* The next round begins with what is there. */
		for (uint32_t id = 0; id < 400; id++) {
			uint32_t now = load_relaxed(&words->sent[id]);

			now += now % 2 != told.times[id];
			store_relaxed(&words->sent[id], now);
			store_relaxed(&words->acked[id], now);
		}
		if (round % 2)
			shut(box);
		else
			noh_close(box);
	}
	remove_dir(dir);
	munmap(words, sizeof *words);
}

TEST_MAIN(
	TEST(a_scan_in_the_midst_of_everything_misses_nobody, "API-06"),
	TEST(after_kill_9_it_tells_what_was_answered, "API-06 LC-02"))
