/* tests/persist/keeper_test.c - when it folds, in which order it tells whom, and what stops it. */
#include "persist/keeper.h"
#include "persist/db_in.h"

#include "tests/persist/image_kit.h"
#include "tests/persist/mem_disk.h"

#include <pthread.h>

#define SECOND UINT64_C(1000000000)

static struct mem_disk *disk;
static struct journal *j;
static struct store *s;
static struct clock_virtual now;
static struct keeper k;

static uint64_t fold_takes_ns;           /* it asks for the time once */

static uint64_t wall(void *arg)
{
	(void)arg;
	if (fold_takes_ns)
		clock_virtual_advance(&now, fold_takes_ns);
	return NOW;
}

static void start_keeper(void)
{
	struct journal_options o = { .dir_id = DIR_ID, .rings = 1, .ring_bytes = 65536,
				     .segment_bytes = 65536, .limit_bytes = 1 << 20 };
	struct journal_end none = {0};

	start();
	disk = mem_disk_open();
	o.disk = &disk->disk;
	EXPECT_EQ(journal_open(&j, &o, &none), NOH_OK);
	EXPECT_EQ(store_disk_open(&s, kit.db, 1), NOH_OK);
	clock_virtual_init(&now, SECOND);
	k = (struct keeper){ .journal = j, .db = kit.db, .store = s, .fold_bytes = 100000,
			     .fold_ms = 10000, .clock = now.clock, .wall_ms = wall };
}

static void finish_keeper(void)
{
	journal_close(j);
	disk_end(&disk->disk);
	store_close(s);
	finish();
}

/* The record in the kit, into the journal; and evicted into the overlay. */
static uint64_t push_turn(const char *address, uint64_t seq, const char *text)
{
	struct stored in = { .image = (void *)(uintptr_t)text, .len = strlen(text), .seq = seq };

	begin(address, seq); state(1, text);
	record_finish(kit.record, kit.at);
	size_t size = (size_t)(kit.at - kit.record);

	EXPECT(journal_room(j, 0));
	memcpy(journal_reserve(j, 0, size), kit.record, size);
	journal_push(j, 0);
	in.due = journal_epoch(j);
	EXPECT_EQ(store_save(s, address, strlen(address), hash_of(address), &in), NOH_OK);
	return in.due;
}

static void write_all(void)
{
	while (journal_step(j, true) == JOURNAL_BUSY)
		;
}

/* And durable. */
static uint64_t turn(const char *address, uint64_t seq, const char *text)
{
	uint64_t due = push_turn(address, seq, text);

	write_all();
	return due;
}

static uint64_t stamped(void)
{
	uint64_t frame, epoch;

	db_stamp(kit.db, &frame, &epoch);
	return frame;
}

static bool in_overlay(const char *address)
{
	struct stored out;

	if (store_load(s, address, strlen(address), hash_of(address), &out) != NOH_OK)
		return false;
	mem_free(out.image, out.len);
	return !out.fresh;
}

static struct journal_stats journal_says(void)
{
	struct journal_stats st;

	journal_get_stats(j, &st);
	return st;
}

/* A frame a millisecond is fast; none for ten seconds is calm. */
static void what_lmdb_keeps_goes_when_little_comes(void)
{
	start_keeper();
	kit.db->folding.pages = UINT64_MAX;
	(void)turn("cart:1", 1, "pears");
	EXPECT(keeper_step(&k) >= 0);                    /* measures from here on */
	kit.db->folding.pages = UINT64_MAX;
	for (uint64_t i = 2; i < 52; i++) {
		(void)turn("cart:1", i, "apples");
		clock_virtual_advance(&now, SECOND / 1000);
	}
	EXPECT(keeper_step(&k) >= 0);
	for (int i = 0; i < 9; i++) {
		EXPECT_EQ(kit.db->folding.pages, UINT64_MAX);    /* the next fold may come soon */
		clock_virtual_advance(&now, SECOND);
		EXPECT(keeper_step(&k) >= 0);
	}
	clock_virtual_advance(&now, SECOND + SECOND / 2);
	EXPECT(keeper_step(&k) >= 0);
	EXPECT_EQ(kit.db->folding.pages, 0);
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	EXPECT(loads("cart:1", "51 S1:apples"));
	finish_keeper();
}

static void it_waits_for_age(void)
{
	start_keeper();
	EXPECT_EQ(keeper_step(&k), 0);
	turn("a:1", 1, "one");
	EXPECT_EQ(keeper_step(&k), 0);
	EXPECT_EQ(stamped(), 0);
	clock_virtual_advance(&now, 9 * SECOND);
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, SECOND);
	EXPECT_EQ(keeper_step(&k), 1);
	EXPECT_EQ(stamped(), 1);
	EXPECT(loads("a:1", "1 S1:one"));
	EXPECT_EQ(keeper_step(&k), 0);
	turn("a:1", 2, "two");                           /* and waits anew */
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, 10 * SECOND);
	EXPECT_EQ(keeper_step(&k), 1);
	EXPECT(loads("a:1", "2 S1:two"));
	finish_keeper();
}

static void it_waits_for_bytes(void)
{
	static char text[9000];
	uint64_t seq = 0;

	start_keeper();
	memset(text, 'x', sizeof text - 1);
	while (seq < 50 && stamped() == 0) {
		turn("a:1", ++seq, text);
		EXPECT(keeper_step(&k) >= 0);
	}
	EXPECT(seq >= 9 && seq <= 13);
	EXPECT_EQ(stamped(), seq);
	EXPECT_EQ(journal_says().unfolded_bytes, 0);
	finish_keeper();
}

/* A turn of 8 KiB and a little, so many milliseconds after the one before; how many until it folds. */
static unsigned turns_until_fold(unsigned every_ms)
{
	static char text[8000];
	static uint64_t seq;
	uint64_t before = stamped();
	unsigned n = 0;

	memset(text, 'x', sizeof text - 1);
	for (; n < 100 && stamped() == before; n++) {
		clock_virtual_advance(&now, every_ms * SECOND / 1000);
		turn("a:1", ++seq, text);
		EXPECT(keeper_step(&k) >= 0);
	}
	return n;
}

/* At 100 kB/s for folding and 16 kB/s that come, it can wait for half as much again. At 136 kB/s it cannot. */
static void it_waits_longer_if_little_comes_while_it_folds(void)
{
	start_keeper();
	k.fold_ms = 60000;
	fold_takes_ns = SECOND;
	unsigned at_first = turns_until_fold(500);

	EXPECT(at_first >= 8 && at_first <= 13);
	unsigned slow = turns_until_fold(500);

	EXPECT(slow >= at_first + at_first / 2 - 2 && slow <= at_first + at_first / 2 + 1);
	(void)turns_until_fold(60);
	unsigned fast = turns_until_fold(60);

	EXPECT(fast >= at_first && fast < slow - 2);
	fold_takes_ns = 0;
	finish_keeper();
}

static void it_looks_again_in_time(void)
{
	static char text[8000];

	start_keeper();
	EXPECT_EQ(keeper_step(&k), 0);
	EXPECT_EQ(keeper_nap_ns(&k), SECOND);            /* nothing comes */
	memset(text, 'x', sizeof text - 1);
	for (uint64_t seq = 1; seq <= 6; seq++) {        /* 80 kB/s, half of it is there */
		clock_virtual_advance(&now, SECOND / 10);
		turn("a:1", seq, text);
		EXPECT_EQ(keeper_step(&k), 0);
	}
	EXPECT(keeper_nap_ns(&k) > SECOND / 3 && keeper_nap_ns(&k) < SECOND * 2 / 3);
	clock_virtual_advance(&now, 10 * SECOND);
	EXPECT_EQ(keeper_step(&k), 1);
	finish_keeper();
}

static void it_folds_what_is_worth_it_when_nothing_comes(void)
{
	static char text[9000];

	start_keeper();
	k.fold_ms = 60000;
	memset(text, 'x', sizeof text - 1);
	turn("a:1", 1, text);
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, 9 * SECOND);
	turn("a:2", 2, "little");
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, 9 * SECOND);
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, SECOND);
	EXPECT_EQ(keeper_step(&k), 1);
	turn("a:2", 3, "little");                        /* alone not worth it */
	clock_virtual_advance(&now, 30 * SECOND);
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, 30 * SECOND);
	EXPECT_EQ(keeper_step(&k), 0);
	clock_virtual_advance(&now, 30 * SECOND);
	EXPECT_EQ(keeper_step(&k), 1);
	finish_keeper();
}

static void it_folds_when_asked(void)
{
	start_keeper();
	turn("a:1", 1, "one");
	keeper_ask(&k);
	keeper_sleep(&k, UINT64_MAX);                    /* does not sleep */
	EXPECT_EQ(keeper_step(&k), 1);
	EXPECT_EQ(stamped(), 1);
	EXPECT_EQ(load_relaxed(&k.asked), 0);
	keeper_ask(&k);                                  /* with nothing to give */
	EXPECT_EQ(keeper_step(&k), 0);
	EXPECT_EQ(load_relaxed(&k.asked), 0);
	finish_keeper();
}

static void the_overlay_empties_with_the_last_fold(void)
{
	start_keeper();
	turn("a:1", 1, "one");
	turn("a:2", 2, "two");
	EXPECT(in_overlay("a:1") && in_overlay("a:2"));
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	EXPECT(!in_overlay("a:1"));
	EXPECT(loads("a:2", "2 S1:two"));
	/* A due above its frame's epoch: told once that epoch, without a frame, is durable. */
	struct stored in = { .image = "late", .len = 4, .seq = 3, .due = journal_epoch(j) };

	EXPECT_EQ(store_save(s, "a:3", 3, hash_of("a:3"), &in), NOH_OK);
	EXPECT(in_overlay("a:3"));
	journal_sleep(j, 0);
	while (journal_step(j, true) == JOURNAL_BUSY)
		;
	EXPECT(journal_durable(j) >= in.due);
	EXPECT_EQ(keeper_step(&k), 0);
	EXPECT(!in_overlay("a:3"));
	finish_keeper();
}

static void many_segments_are_folded_and_recycled(void)
{
	static char text[3000], address[16];

	start_keeper();
	memset(text, 'y', sizeof text - 1);
	for (uint64_t seq = 1; seq <= 400; seq++) {
		snprintf(address, sizeof address, "a:%d", (int)(seq % 37));
		turn(address, seq, text);
		EXPECT(keeper_step(&k) >= 0);
	}
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	EXPECT_EQ(stamped(), 400);
	EXPECT(journal_says().segments < 25);
	EXPECT_EQ(stats().images, 37);
	EXPECT_EQ(stats().folded_records, 400);
	EXPECT(stats().folds < 30);
	EXPECT(verified());
	finish_keeper();
}

/* Actors all over the tree, many to a frame. */
#define SPREAD 3000
static void change_all_over(uint64_t *seq, unsigned every, const char *text)
{
	char address[16];

	for (unsigned i = 0; i < SPREAD; i += every) {
		snprintf(address, sizeof address, "a:%04u", i);
		push_turn(address, ++*seq, text);
		if (*seq % 20)
			continue;
		write_all();
		if (every == 1)
			EXPECT(keeper_step(&k) >= 0);
		else
			EXPECT_EQ(journal_folded(j, stamped()), NOH_OK);
	}
}

static void a_fold_keeps_to_its_pages(void)
{
	static char text[600];
	struct fold_pages pages = { .most = 40 * 4096 };
	uint64_t seq = 0, upto = 0, epoch = 0, folds, before;
	struct fold *f;

	start_keeper();
	memset(text, 'z', sizeof text - 1);
	change_all_over(&seq, 1, text);
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	before = stamped();
	change_all_over(&seq, 5, "new");                 /* 600 records on about 500 pages */

	EXPECT_EQ(fold_begin(kit.db, &f), NOH_OK);
	EXPECT_EQ(journal_read(j, stamped(), 1 << 20, fold_record, f, &upto, &epoch), NOH_OK);
	fold_limit(f, &pages);
	EXPECT_EQ(fold_commit(f, upto, epoch, NOW), NOH_FULL);
	EXPECT(pages.fitted > 4 && pages.fitted < 100);
	EXPECT_EQ(stamped(), before);                    /* nothing was written */
	EXPECT(in_overlay("a:0000"));

	folds = stats().folds;
	k.memory = 400000;                               /* 200000 for pages */
	k.fold_bytes = 0;
	keeper_ask(&k);
	EXPECT_EQ(keeper_step(&k), 1);
	EXPECT_EQ(stamped(), before);                    /* given up: too many */
	EXPECT(k.most > 0 && k.most < 100000);
	EXPECT_EQ(keeper_step(&k), 1);                   /* at once again, with less */
	EXPECT(stamped() > before);
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	EXPECT(stats().folds - folds >= 2);
	EXPECT(loads("a:0000", "3001 S1:new") && loads("a:2995", "3600 S1:new"));
	EXPECT_EQ(journal_says().unfolded_bytes, 0);
	EXPECT(verified());
	finish_keeper();
}

static void a_fold_that_fits_easily_grows_again(void)
{
	static char text[600];
	uint64_t seq = 0;

	start_keeper();
	k.memory = 1 << 20;
	k.fold_bytes = 0;
	k.most = 70000;
	memset(text, 'z', sizeof text - 1);
	for (int i = 0; i < 2000 && k.most; i++) {
		turn("a:1", ++seq, text);
		EXPECT(keeper_step(&k) >= 0);
	}
	EXPECT_EQ(k.most, 0);                            /* as much as there is */
	finish_keeper();
}

static void what_was_folded_is_not_read_again_after_a_restart(void)
{
	start_keeper();
	turn("a:1", 1, "one");
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	turn("a:1", 2, "two");                           /* durable, not folded: a crash now */
	journal_close(j);
	store_close(s);
	start_again();
	struct journal_end end;
	struct fold *f;

	EXPECT_EQ(stamped(), 1);
	EXPECT_EQ(fold_begin(kit.db, &f), NOH_OK);
	EXPECT_EQ(journal_recover(&disk->disk, DIR_ID, 1, fold_record, f, &end), NOH_OK);
	EXPECT_EQ(end.frame, 2);
	EXPECT_EQ(fold_commit(f, end.frame, end.epoch, NOW), NOH_OK);
	EXPECT(loads("a:1", "2 S1:two"));
	EXPECT_EQ(stats().folded_records, 2);
	disk_end(&disk->disk);
	finish();
}

static void too_little_memory_puts_it_off(void)
{
	uint64_t nth;

	start_keeper();
	turn("a:1", 1, "one");
	for (nth = 1; nth < 100; nth++) {
		keeper_ask(&k);
		mem_fail_at(nth, 0);
		int rc = keeper_step(&k);

		mem_fail_at(0, 0);
		EXPECT(rc >= 0);
		if (rc == 1)
			break;
		EXPECT_EQ(stamped(), 0);
		EXPECT(in_overlay("a:1"));
		keeper_ask(&k);
		EXPECT_EQ(keeper_step(&k), 0);           /* not at once again */
		clock_virtual_advance(&now, SECOND);
	}
	EXPECT(nth > 3);
	EXPECT(loads("a:1", "1 S1:one"));
	EXPECT_EQ(keeper_step(&k), 0);
	finish_keeper();
}

static void a_damaged_image_is_for_good(void)
{
	char path[100];

	start_keeper();
	turn("a:1", 1, "one to be damaged");
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	snprintf(path, sizeof path, "%s/image/data.mdb", kit.dir);
	int fd = open(path, O_RDWR);
	static char bytes[1 << 20];
	ssize_t n = pread(fd, bytes, sizeof bytes, 0);
	char *at = memmem(bytes, (size_t)n, "to be damaged", 13);

	if (EXPECT(at != NULL))
		EXPECT_EQ(pwrite(fd, "T", 1, at - bytes), 1);
	close(fd);
	turn("a:1", 2, "two");
	EXPECT_EQ(keeper_fold_all(&k), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "a:1") && strstr(noh_why(), "images"));
	EXPECT_EQ(stamped(), 1);
	finish_keeper();
}

static void *ask_later(void *arg)
{
	usleep(20000);
	keeper_ask(arg);
	return NULL;
}

static void a_sleeping_keeper_is_woken(void)
{
	pthread_t thread;

	start_keeper();
	EXPECT_EQ(pthread_create(&thread, NULL, ask_later, &k), 0);
	while (load_acquire(&k.asked) == 0)
		keeper_sleep(&k, 60 * SECOND);
	pthread_join(thread, NULL);
	keeper_sleep(&k, 1);
	finish_keeper();
}

TEST_MAIN(
	TEST(what_lmdb_keeps_goes_when_little_comes),
	TEST(it_waits_for_age),
	TEST(it_waits_for_bytes),
	TEST(it_waits_longer_if_little_comes_while_it_folds),
	TEST(it_looks_again_in_time),
	TEST(it_folds_what_is_worth_it_when_nothing_comes),
	TEST(it_folds_when_asked),
	TEST(the_overlay_empties_with_the_last_fold),
	TEST(many_segments_are_folded_and_recycled),
	TEST(a_fold_keeps_to_its_pages),
	TEST(a_fold_that_fits_easily_grows_again),
	TEST(what_was_folded_is_not_read_again_after_a_restart, "US-10"),
	TEST(too_little_memory_puts_it_off),
	TEST(a_damaged_image_is_for_good),
	TEST(a_sleeping_keeper_is_woken))
