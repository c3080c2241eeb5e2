/* tests/box/scan_test.c - noh_scan of a box that stands still: who exists is told once, wherever it is;
 * cursors; lack of memory; what waits for the disk (P5). And how many there are. */
#include "tests/box/scan_kit.h"

#include "core/mem.h"

static bool all(uint32_t id) { (void)id; return true; }
static bool none(uint32_t id) { (void)id; return false; }
static bool even(uint32_t id) { return id % 2 == 0; }
static bool odd(uint32_t id) { return id % 2; }
static bool thirds(uint32_t id) { return id % 3 == 0; }
static bool not_thirds(uint32_t id) { return id % 3 != 0; }

/* ── a quiet box ── */

static void a_volatile_box_tells_who_exists(void)
{
	for (unsigned workers = 1; workers <= 4; workers *= 2) {
		noh_box *box = open_plain(workers);

		EXPECT(tells(box, "c", 0, none));
		send_all(box, 'c', 0, 3000, ADD, NULL);
		send_all(box, 'c', 3000, 3500, GET, NULL);       /* asked for, and nothing more */
		send_all(box, 'd', 0, 10, PUT, NULL);
		settle(box, "c");
		settle(box, "d");
		EXPECT(tells(box, "c", 3000, all));
		EXPECT_EQ(told.active, 3000);
		EXPECT(tells(box, "d", 10, all));
		EXPECT_EQ(existing(box, "c"), 3000);
		EXPECT_EQ(existing(box, "d"), 10);
		send_all(box, 'c', 0, 1500, STOP, NULL);         /* half of them to storage */
		send_all(box, 'c', 0, 3000, ERASE, thirds);
		settle(box, "c");
		EXPECT(tells(box, "c", 3000, not_thirds));
		EXPECT_EQ(existing(box, "c"), 2000);
		send_all(box, 'c', 0, 3000, ADD, thirds);        /* and there again */
		settle(box, "c");
		EXPECT(tells(box, "c", 3000, all));
		EXPECT_EQ(existing(box, "c"), 3000);
		scan_all(box, "c", 100000, &told);
		EXPECT(told.calls <= 2);
		shut(box);
	}
}

static void a_few_actors_are_told_in_one_call(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, types, TYPES_HERE);

	send_all(box, 'c', 0, 8, ADD, NULL);
	send_all(box, 'v', 0, 1, ADD, NULL);
	settle(box, "c");
	scan_all(box, "c", 10, &told);
	EXPECT_EQ(told.calls, 1);
	EXPECT_EQ(told.all, 8);
	fold(box);
	scan_all(box, "c", 10, &told);
	EXPECT_EQ(told.calls, 1);
	EXPECT_EQ(told.all, 8);
	shut(box);
	remove_dir(dir);
}

static void types_are_kept_apart_or_told_together(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, types, TYPES_HERE);
	uint64_t cursor = 0;

	send_all(box, 'c', 0, 50, ADD, NULL);
	send_all(box, 'd', 0, 60, ADD, NULL);
	fold(box);
	send_all(box, 'd', 60, 70, ADD, NULL);
	send_all(box, 'v', 0, 80, ADD, NULL);
	settle(box, "d");
	settle(box, "v");
	EXPECT(tells(box, "c", 50, all));
	EXPECT(tells(box, "d", 70, all));
	EXPECT(tells(box, "v", 80, all));
	memset(&told, 0, sizeof told);
	go_on(box, NULL, &cursor, 7, &told);
	EXPECT_EQ(told.all, 200);
	shut(box);
	/* Types that this program does not have are not told. */
	box = open_dir(dir, 1, &types[1], 1);
	cursor = 0;
	memset(&told, 0, sizeof told);
	told.type = 'd';
	go_on(box, NULL, &cursor, 7, &told);
	EXPECT_EQ(told.all, 70);
	EXPECT_EQ(told.strange, 0);
	shut(box);
	remove_dir(dir);
}

/* Active, evicted and not folded, folded, folded and active, erased at each of these. */
static void wherever_an_actor_is_it_is_told_once(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, types, TYPES_HERE);

	send_all(box, 'c', 0, 1000, ADD, NULL);
	fold(box);
	send_home(box, "c", 0, 500);
	send_all(box, 'c', 1000, 2000, ADD, NULL);
	send_home(box, "c", 1000, 1500);
	EXPECT(tells(box, "c", 2000, all));
	EXPECT_EQ(existing(box, "c"), 2000);
	send_all(box, 'c', 0, 2000, ERASE, odd);
	send_all(box, 'c', 2000, 2100, ERASE, NULL);     /* who never was */
	send_all(box, 'c', 2100, 2200, GET, NULL);
	settle(box, "c");
	EXPECT(tells(box, "c", 2000, even));
	EXPECT_EQ(existing(box, "c"), 1000);
	fold(box);
	EXPECT(tells(box, "c", 2000, even));
	send_all(box, 'c', 0, 2000, ADD, odd);
	settle(box, "c");
	EXPECT_EQ(existing(box, "c"), 2000);
	fold(box);
	EXPECT(tells(box, "c", 2000, all));
	shut(box);
	for (unsigned workers = 1; workers <= 4; workers++) {
		box = open_dir(dir, workers, types, TYPES_HERE);
		EXPECT(is_counted(box));
		EXPECT_EQ(existing(box, "c"), 2000);
		EXPECT(tells(box, "c", 2000, all));
		EXPECT_EQ(told.active, 0);
		shut(box);
	}
	remove_dir(dir);
}

static void a_volatile_type_beside_durable_ones_goes_with_the_process(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 2, types, TYPES_HERE);

	send_all(box, 'v', 0, 100, ADD, NULL);
	send_home(box, "v", 0, 50);
	send_all(box, 'v', 0, 100, ERASE, odd);
	settle(box, "v");
	EXPECT(tells(box, "v", 100, even));
	EXPECT_EQ(existing(box, "v"), 50);
	shut(box);
	box = open_dir(dir, 2, types, TYPES_HERE);
	EXPECT(tells(box, "v", 100, none));
	EXPECT_EQ(existing(box, "v"), 0);
	shut(box);
	remove_dir(dir);
}

static void status_says_who_exists(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 1, types, TYPES_HERE);
	noh_status s;

	EXPECT_EQ(say(box, 'c', 1, GET), NOH_OK);
	EXPECT_EQ(noh_get_status(box, "c:1", &s), NOH_OK);
	EXPECT(s.life == NOH_ACTIVE && !s.exists);
	EXPECT_EQ(say(box, 'c', 1, ADD), NOH_OK);
	EXPECT_EQ(noh_get_status(box, "c:1", &s), NOH_OK);
	EXPECT(s.exists);
	EXPECT_EQ(noh_deactivate(box, "c:1", false, SOON), NOH_OK);
	EXPECT_EQ(noh_get_status(box, "c:1", &s), NOH_OK);
	EXPECT(s.life == NOH_NOT_ACTIVE && s.exists && s.stored);
	EXPECT_EQ(say(box, 'c', 1, ERASE), NOH_OK);
	EXPECT_EQ(noh_get_status(box, "c:1", &s), NOH_OK);
	EXPECT(!s.exists);
	EXPECT_EQ(noh_get_status(box, "c:never", &s), NOH_OK);
	EXPECT(!s.exists && !s.stored);
	/* A message between durable actors leaves a record with its receiver, even if that only read. */
	EXPECT_EQ(say(box, 'c', 3, TELL), NOH_OK);
	settle(box, "c");
	EXPECT_EQ(noh_deactivate(box, "c:2", false, SOON), NOH_OK);
	EXPECT_EQ(noh_get_status(box, "c:2", &s), NOH_OK);
	EXPECT(s.life == NOH_NOT_ACTIVE && s.exists && s.stored);
	EXPECT_EQ(say(box, 'c', 2, ADD), NOH_OK);
	EXPECT_EQ(existing(box, "c"), 2);
	shut(box);
	remove_dir(dir);
}

/* ── cursors ── */

static void a_cursor_outlives_its_box_and_its_workers(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 1, types, TYPES_HERE);
	uint64_t cursor = 0;

	send_all(box, 'c', 0, 4000, ADD, even);
	fold(box);
	send_all(box, 'c', 0, 4000, ADD, odd);
	settle(box, "c");
	for (unsigned stop = 1; stop <= 9; stop += 2) {      /* in the midst of memory; of what is stored */
		memset(&told, 0, sizeof told);
		told.type = 'c';
		cursor = 0;
		for (unsigned i = 0; i < 4 * stop * stop; i++) {
			EXPECT_EQ(noh_scan(box, "c", &cursor, 10, each, &told), NOH_OK);
			if (!cursor)
				break;
		}
		shut(box);
		box = open_dir(dir, 1 + stop % 4, types, TYPES_HERE);
		if (cursor)
			go_on(box, "c", &cursor, 100, &told);
		for (uint32_t id = 0; id < 4000; id++)
			if (!EXPECT(told.times[id] > 0))
				break;
		EXPECT_EQ(told.strange, 0);
		send_all(box, 'c', 0, 4000, ADD, thirds);
		settle(box, "c");
	}
	shut(box);
	remove_dir(dir);
}

static void marks_that_are_forgotten_miss_nobody(void)
{
	char dir[256], address[16];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 1, types, TYPES_HERE);
	uint64_t cursor = 0;

	send_all(box, 'c', 0, 2000, ADD, NULL);
	fold(box);
	memset(&told, 0, sizeof told);
	told.type = 'c';
	for (int i = 0; i < 10 || !(cursor >> 63); i++)
		EXPECT_EQ(noh_scan(box, "c", &cursor, 50, each, &told), NOH_OK);
	EXPECT_EQ(noh_scan(box, "c", &cursor, 50, each, &told), NOH_OK);
	EXPECT(cursor >> 63 && told.all > 0);
	EXPECT_EQ(told.twice, 0);
	for (uint64_t i = 0; i < 3 * MARKS; i++) {
		snprintf(address, sizeof address, "c:%u", (unsigned)i);
		EXPECT_EQ(marks_set(&box->marks, address, strlen(address), i * UINT64_C(0x9E3779B97F4A7C15)),
			  NOH_OK);
	}
	EXPECT(overlay_bytes(&box->marks.places) < MARKS * 400);
	go_on(box, "c", &cursor, 50, &told);
	for (uint32_t id = 0; id < 2000; id++)
		if (!EXPECT(told.times[id] > 0))
			break;
	EXPECT(told.twice > 0);                                  /* it began that part anew */
	shut(box);
	remove_dir(dir);
}

static void what_makes_no_sense_is_refused(void)
{
	noh_box *box = open_plain(1);
	uint64_t cursor = UINT64_C(1) << 44;

	EXPECT_EQ(noh_scan(box, "c", &cursor, 10, each, &told), NOH_EINVAL);
	EXPECT_EQ(cursor, UINT64_C(1) << 44);
	cursor = UINT64_MAX / 2;
	EXPECT_EQ(noh_scan(box, NULL, &cursor, 10, each, &told), NOH_EINVAL);
	cursor = 0;
	EXPECT_EQ(noh_scan(box, "nobody", &cursor, 10, each, &told), NOH_ENOTYPE);
	cursor = UINT64_MAX;                                     /* a mark nobody set: no storage, the end */
	EXPECT_EQ(noh_scan(box, "c", &cursor, 10, each, &told), NOH_OK);
	EXPECT_EQ(cursor, 0);
	EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	EXPECT_EQ(noh_scan(box, "c", &cursor, 10, each, &told), NOH_ESTOPPED);
	noh_close(box);
}

static void without_memory_nobody_is_told_and_the_cursor_stays(void)
{
	char dir[256];
	noh_box *box = open_dir(fresh_dir(dir, sizeof dir), 1, types, TYPES_HERE);
	unsigned failures = 0;

	send_all(box, 'c', 0, 300, ADD, NULL);
	fold(box);
	send_all(box, 'c', 300, 400, ADD, NULL);
	send_home(box, "c", 350, 400);
	memset(&told, 0, sizeof told);
	told.type = 'c';
	for (uint64_t cursor = 0, nth = 1;; nth++) {
		uint64_t before = cursor;
		uint32_t so_far = told.all;

		mem_fail_at(nth, 0);
		int rc = noh_scan(box, "c", &cursor, 60, each, &told);

		mem_fail_at(0, 0);
		if (rc == NOH_ENOMEM) {
			failures++;
			EXPECT_EQ(cursor, before);
			EXPECT_EQ(told.all, so_far);
			continue;
		}
		EXPECT_EQ(rc, NOH_OK);
		nth = 0;
		if (cursor == 0)
			break;
	}
	EXPECT(failures > 5);
	EXPECT_EQ(told.all, 400);
	EXPECT_EQ(told.twice, 0);
	shut(box);
	remove_dir(dir);
}

/* ── P5: what is told waits for the disk, what is left out as well ── */

static void pass(noh_box *box)
{
	struct worker *w = &box->sched.workers[0];

	sched_set_self(w);
	while (sched_pass(w))
		;
	sched_set_self(NULL);
}

static void to_disk(noh_box *box)
{
	for (int i = 0; i < 3; i++) {
		while (box_journal_round(box, true) == JOURNAL_BUSY)
			;
		pass(box);
	}
}

static uint64_t scan_due(noh_box *box, uint32_t *count)
{
	uint64_t cursor = 0, due, most = 0;

	memset(&told, 0, sizeof told);
	told.type = 'c';
	do {
		EXPECT_EQ(api_scan(box, "c", &cursor, 10, each, &told, &due), NOH_OK);
		most = due > most ? due : most;
	} while (cursor);
	*count = told.all;
	return most;
}

static noh_box *open_stepped(const char *dir)
{
	noh_options o = { .workers = 1, .dir = dir, .unpinned = true, .max_actors = 1000 };
	noh_box *box = NULL;

	EXPECT_EQ(noh_open(&box, &o), NOH_OK);
	EXPECT_EQ(noh_register(box, &types[0]), NOH_OK);
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	box->sched.journal.take = NULL;                          /* nobody writes but to_disk */
	return box;
}

static void what_could_still_be_lost_has_a_due(void)
{
	char dir[256];
	noh_box *box = open_stepped(fresh_dir(dir, sizeof dir));
	uint32_t count;
	uint64_t due;
	noh_status s;

	EXPECT_EQ(scan_due(box, &count), 0);
	EXPECT_EQ(noh_send(box, "c:1", ADD, &(int64_t){ 1 }, 8), NOH_OK);
	pass(box);
	due = scan_due(box, &count);
	EXPECT_EQ(count, 1);
	EXPECT(due > load_acquire(&box->sched.durable));
	EXPECT_EQ(api_status(box, "c:1", &s, &due), NOH_OK);
	EXPECT(s.exists && due > load_acquire(&box->sched.durable));
	to_disk(box);
	EXPECT(scan_due(box, &count) <= load_acquire(&box->sched.durable));
	EXPECT_EQ(noh_send(box, "c:1", ERASE, NULL, 0), NOH_OK);
	pass(box);                                               /* erased, and evicted: a tombstone says so */
	EXPECT_EQ(sched_actors(&box->sched), 0);
	due = scan_due(box, &count);
	EXPECT_EQ(count, 0);
	EXPECT(due > load_acquire(&box->sched.durable));
	EXPECT_EQ(api_status(box, "c:1", &s, &due), NOH_OK);
	EXPECT(!s.exists && due > load_acquire(&box->sched.durable));
	to_disk(box);
	EXPECT(scan_due(box, &count) <= load_acquire(&box->sched.durable));
	noh_close(box);
	remove_dir(dir);
}

static struct { uint32_t count, calls; uint64_t due; } inside;

static void scan_inside(noh_box *box)
{
	inside.due = scan_due(box, &inside.count);
	inside.calls++;
}

/* Its row is still in LMDB, and it is still in memory: busy with what came after. */
static void the_row_of_an_erased_actor_does_not_count(void)
{
	char dir[256];
	noh_box *box = open_stepped(fresh_dir(dir, sizeof dir));
	uint32_t count;

	EXPECT_EQ(noh_send(box, "c:1", ADD, &(int64_t){ 1 }, 8), NOH_OK);
	pass(box);
	to_disk(box);
	EXPECT_EQ(keeper_fold_all(&box->disk.keeper), NOH_OK);
	EXPECT_EQ(db_images(box->disk.db), 1);
	EXPECT(scan_due(box, &count) <= load_acquire(&box->sched.durable));
	EXPECT_EQ(count, 1);
	EXPECT_EQ(noh_send(box, "c:1", ERASE, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "c:1", LOOK, NULL, 0), NOH_OK);
	memset(&inside, 0, sizeof inside);
	looks = scan_inside;
	pass(box);
	EXPECT_EQ(inside.calls, 1);
	EXPECT_EQ(inside.count, 0);
	EXPECT(inside.due > load_acquire(&box->sched.durable));
	EXPECT_EQ(existing(box, "c"), 0);
	noh_close(box);
	remove_dir(dir);
}

static void what_a_crash_left_is_counted_apart_from_what_came_after(void)
{
	char dir[256];
	noh_box *box = open_stepped(fresh_dir(dir, sizeof dir));
	uint32_t count;

	for (uint32_t id = 0; id < 20; id++) {
		char address[16];

		snprintf(address, sizeof address, "c:%u", id);
		EXPECT_EQ(noh_send(box, address, ADD, &(int64_t){ 1 }, 8), NOH_OK);
	}
	EXPECT_EQ(noh_send(box, "c:0", ERASE, NULL, 0), NOH_OK);
	pass(box);
	to_disk(box);
	noh_close(box);                                          /* nothing is folded */
	box = open_stepped(dir);
	EXPECT(!is_counted(box));
	EXPECT_EQ(noh_send(box, "c:100", ADD, &(int64_t){ 1 }, 8), NOH_OK);
	EXPECT_EQ(noh_send(box, "c:1", ERASE, NULL, 0), NOH_OK);
	EXPECT_EQ(noh_send(box, "c:2", ADD, &(int64_t){ 1 }, 8), NOH_OK);
	EXPECT_EQ(noh_send(box, "c:0", ADD, &(int64_t){ 1 }, 8), NOH_OK);
	pass(box);
	to_disk(box);
	(void)scan_due(box, &count);
	EXPECT_EQ(count, 20);
	EXPECT_EQ(told.twice, 0);
	EXPECT_EQ(box_keeper_round(box), 1);                     /* both runs are durable by now */
	EXPECT(is_counted(box));
	EXPECT_EQ(existing(box, "c"), 20);
	EXPECT_EQ(keeper_fold_all(&box->disk.keeper), NOH_OK);
	EXPECT_EQ(existing(box, "c"), 20);
	EXPECT_EQ(db_images(box->disk.db), 20);
	(void)scan_due(box, &count);
	EXPECT_EQ(count, 20);
	noh_close(box);
	box = open_stepped(dir);
	EXPECT(is_counted(box));
	EXPECT_EQ(existing(box, "c"), 20);
	noh_close(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_volatile_box_tells_who_exists, "API-06"),
	TEST(a_few_actors_are_told_in_one_call),
	TEST(types_are_kept_apart_or_told_together, "API-06"),
	TEST(wherever_an_actor_is_it_is_told_once, "API-06 LC-02"),
	TEST(a_volatile_type_beside_durable_ones_goes_with_the_process),
	TEST(status_says_who_exists, "API-05 LC-02"),
	TEST(a_cursor_outlives_its_box_and_its_workers, "API-06"),
	TEST(marks_that_are_forgotten_miss_nobody),
	TEST(what_makes_no_sense_is_refused),
	TEST(without_memory_nobody_is_told_and_the_cursor_stays),
	TEST(what_could_still_be_lost_has_a_due, "P5"),
	TEST(the_row_of_an_erased_actor_does_not_count, "P5"),
	TEST(what_a_crash_left_is_counted_apart_from_what_came_after))
