/* tests/persist/journal_stress.c - pushers, journaller and keeper at once, with rings and segments as
 * small as they go: wrap, full rings, changes of segment and recycling happen all the time. Checks that
 * every record is folded once and in its pusher's order, and no effect before its cause. */
#include "core/atomic.h"
#include "noh.h"
#include "tests/persist/journal_kit.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define PUSHERS 3

static struct journal *j;
static atomic_u32 stop, keeper_stop, failed;
static atomic_u64 newest;                       /* of what pusher 0 has pushed */
static uint64_t each_pushes;

struct folded { uint64_t last[PUSHERS], frame, cause, effect, records; };
static struct folded folded;

static void *journaller(void *arg)
{
	(void)arg;
	journal_loop(j, &stop);
	return NULL;
}

/* hash: whose. seq: its number. reserved: the newest of pusher 0 it had seen. */
static int fold(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		const uint8_t *parts, const uint8_t *parts_end)
{
	struct folded *f = arg;

	(void)epoch, (void)parts, (void)parts_end;
	if (frame != f->frame && f->effect > f->cause)
		store_relaxed(&failed, 1);
	f->frame = frame;
	f->records++;
	if (!EXPECT(head->hash < PUSHERS) || !EXPECT_EQ(head->seq, f->last[head->hash] + 1))
		return NOH_ECORRUPT;
	f->last[head->hash] = head->seq;
	if (head->hash == 0)
		f->cause = head->seq;
	else if (head->order > f->effect)
		f->effect = head->order;
	return NOH_OK;
}

static void *keeper(void *arg)
{
	uint64_t upto = 0, epoch = 0;
	bool last = false;

	(void)arg;
	for (;;) {
		int rc = journal_read(j, upto, 1 << 20, fold, &folded, &upto, &epoch);

		EXPECT(rc == NOH_OK || rc == NOH_END);
		/* A frame is shown first, then its epoch. */
		EXPECT(rc != NOH_OK || journal_wait(j, epoch, UINT64_C(10000000000)) == NOH_OK);
		EXPECT_EQ(journal_folded(j, upto), NOH_OK);
		if (rc == NOH_OK)
			continue;
		if (last || rc < 0)
			return NULL;
		last = load_acquire(&keeper_stop);
		usleep(100);
	}
}

static void push_one(uint32_t me, uint64_t number, uint64_t *rng, uint64_t *due)
{
	size_t extra = test_random(rng) % 64 ? test_random(rng) % 200 : test_random(rng) % 40000;
	size_t size = record_parts_at(3) + part_size(1, extra);

	while (!journal_room(j, me)) {
		journal_wake(j);
		sched_yield();
	}
	uint64_t tag = journal_epoch(j), seen = load_acquire(&newest);
	uint8_t *at = journal_reserve(j, me, size), *parts;

	parts = record_begin(at, "t:1", 3, me, tag, number, 0);
	memset(part_put(&parts, PART_PUT, "k", 1, extra), 7, extra);
	((struct record_head *)(void *)at)->order = seen;
	record_finish(at, parts);
	journal_push(j, me);
	*due = journal_epoch(j);
	if (me == 0)
		store_release(&newest, number);
	journal_wake(j);
}

static void *pusher(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t rng = test_seed + me, due = 0;

	for (uint64_t n = 1; n <= each_pushes; n++) {
		push_one(me, n, &rng, &due);
		if (test_random(&rng) % 100 == 0 || n == each_pushes) {
			EXPECT_EQ(journal_wait(j, due, UINT64_C(60000000000)), NOH_OK);
			EXPECT(journal_durable(j) >= due);
		}
	}
	return NULL;
}

static void run(enum disk_io io, uint64_t each)
{
	char dir[] = "/tmp/noh-stress-XXXXXX", command[64];
	pthread_t thread[PUSHERS + 2];
	struct disk *d;

	EXPECT(mkdtemp(dir) != NULL);
	if (disk_real_open(&d, dir, io) != NOH_OK) {
		rmdir(dir);
		test_skip("io_uring is not allowed here");
		return;
	}
	memset(&folded, 0, sizeof folded);
	store_relaxed(&stop, 0);
	store_relaxed(&keeper_stop, 0);
	store_relaxed(&newest, 0);
	each_pushes = each;
	struct journal_options o = { .disk = d, .dir_id = DIR_ID, .rings = PUSHERS, .ring_bytes = RING,
				     .segment_bytes = 65536, .limit_bytes = 3 << 20 };
	struct journal_end none = { 0 };

	EXPECT_EQ(journal_open(&j, &o, &none), NOH_OK);
	pthread_create(&thread[0], NULL, journaller, NULL);
	pthread_create(&thread[1], NULL, keeper, NULL);
	for (uintptr_t i = 0; i < PUSHERS; i++)
		pthread_create(&thread[2 + i], NULL, pusher, (void *)i);
	for (int i = 0; i < PUSHERS; i++)
		pthread_join(thread[2 + i], NULL);
	store_seq_cst(&stop, 1);
	journal_wake(j);
	pthread_join(thread[0], NULL);
	store_release(&keeper_stop, 1);
	pthread_join(thread[1], NULL);
	journal_close(j);
	EXPECT_EQ(folded.records, PUSHERS * each);
	EXPECT(folded.effect <= folded.cause && !load_relaxed(&failed));
	disk_end(d);
	snprintf(command, sizeof command, "rm -r %s", dir);
	EXPECT_EQ(system(command), 0);
}

#ifdef NOH_SANITIZED
#define EACH 5000
#else
#define EACH 40000
#endif

static void every_record_is_folded_once_in_order_by_io_uring(void)
{
	run(DISK_URING, EACH);
}

static void every_record_is_folded_once_in_order_by_plain_calls(void)
{
	run(DISK_PLAIN, EACH);
}

TEST_MAIN(
	TEST(every_record_is_folded_once_in_order_by_io_uring, "MB-10 US-09"),
	TEST(every_record_is_folded_once_in_order_by_plain_calls, "MB-10"))
