/* tests/persist/fold_events_test.c - the old end of the event log in the image: how it goes, and where there is no room. */
#include "core/event.h"
#include "persist/keeper.h"

#include "tests/persist/image_kit.h"
#include "tests/persist/mem_disk.h"

#include <sys/mount.h>

#define SECOND UINT64_C(1000000000)
#define ALWAYS 0, NOW                    /* db_keep_events: nothing of these tests is too old */
#define NOTHING 0, 1

static uint64_t seq;

/* A record of one actor with so many events. */
static void tell(unsigned many, size_t data)
{
	static uint8_t event[EVENT_MAX], zeros[4096];
	noh_event e = { .kind = "k", .actor = "a:1", .at_ms = 1000, .data = zeros, .len = data };
	struct part_event head = event_head(&e);

	begin_flags("a:1", ++seq, RECORD_EVENTS);
	event_write(&e, &head, event);
	for (unsigned i = 0; i < many; i++)
		memcpy(part_put(&kit.at, PART_EVENT, NULL, 0, event_size(&head)), event, event_size(&head));
}

static void tell_and_fold(unsigned many, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		tell(many, 0);
		in_frame(seq);
	}
	commit(seq);
}

static void a_fold_is_not_held_up_by_all_that_is_too_old_at_once(void)
{
	start();
	seq = 0;
	db_keep_events(kit.db, ALWAYS);
	tell_and_fold(1000, 40);
	EXPECT_EQ(stats().events, 40000);
	db_keep_events(kit.db, NOTHING);
	tell_and_fold(1, 1);
	EXPECT(stats().events > 25000 && stats().events < 40000);
	EXPECT(verified());
	for (int i = 0; i < 20 && db_events_gone(kit.db) < db_events_newest(kit.db); i++) {
		uint64_t before = stats().events;

		EXPECT(db_events_expire(kit.db, NOW));
		EXPECT_EQ(db_expire_events(kit.db, NOW), NOH_OK);
		EXPECT(stats().events < before);
	}
	EXPECT_EQ(stats().events, 0);
	EXPECT_EQ(stats().event_bytes, 0);
	EXPECT(verified());
	finish();
}

static void more_go_than_come_until_they_are_few_enough(void)
{
	start();
	seq = 0;
	db_keep_events(kit.db, ALWAYS);
	tell_and_fold(1000, 40);
	db_keep_events(kit.db, NOTHING);
	for (int i = 0; i < 6; i++) {
		uint64_t before = stats().events;

		tell_and_fold(1000, 10);
		EXPECT(stats().events == 0 || stats().events + 18000 <= before);
	}
	EXPECT_EQ(stats().events, 0);
	EXPECT(verified());
	finish();
}

/* ── a keeper beside a journal in memory, an image on a small disk ── */

static struct mem_disk *disk;
static struct journal *j;
static struct clock_virtual now;
static struct keeper k;

static uint64_t wall(void *arg)
{
	(void)arg;
	return NOW;
}

static bool start_keeper_on_a_small_disk(void)
{
	struct journal_options o = { .dir_id = DIR_ID, .rings = 1, .ring_bytes = 1 << 20, .segment_bytes = 1 << 20,
				     .limit_bytes = 16 << 20 };
	struct journal_end none = { 0 };

	start();
	finish();
	EXPECT_EQ(mkdir(kit.dir, 0700), 0);
	if (mount("tmpfs", kit.dir, "tmpfs", 0, "size=4m") != 0) {
		remove_dir(kit.dir);
		test_skip("mounting a small file system needs root");
		return false;
	}
	open_db();
	disk = mem_disk_open();
	o.disk = &disk->disk;
	EXPECT_EQ(journal_open(&j, &o, &none), NOH_OK);
	clock_virtual_init(&now, SECOND);
	k = (struct keeper){ .journal = j, .db = kit.db, .clock = now.clock, .wall_ms = wall };
	seq = 0;
	return true;
}

static void finish_keeper(void)
{
	journal_close(j);
	disk_end(&disk->disk);
	db_close(kit.db);
	kit.db = NULL;
	EXPECT_EQ(umount(kit.dir), 0);
	remove_dir(kit.dir);
}

static void push(void)
{
	record_finish(kit.record, kit.at);
	size_t size = (size_t)(kit.at - kit.record);

	EXPECT(journal_room(j, 0));
	memcpy(journal_reserve(j, 0, size), kit.record, size);
	journal_push(j, 0);
	while (journal_step(j, true) == JOURNAL_BUSY)
		;
}

static void fill_disk(char ballast[100])
{
	static char zeros[4096];
	FILE *file;

	snprintf(ballast, 100, "%s/ballast", kit.dir);
	file = fopen(ballast, "w");
	while (fwrite(zeros, 1, sizeof zeros, file) == sizeof zeros && fflush(file) == 0)
		;
	fclose(file);
}

static void old_events_go_where_there_is_little_room(void)
{
	if (!start_keeper_on_a_small_disk())
		return;
	db_keep_events(kit.db, ALWAYS);
	tell(2000, 0);
	push();
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	EXPECT_EQ(stats().events, 2000);
	db_keep_events(kit.db, NOTHING);
	for (int i = 0; i < 100 && stats().events; i++)
		EXPECT(keeper_step(&k) >= 0);
	EXPECT_EQ(stats().events, 0);
	EXPECT(verified());
	finish_keeper();
}

static void a_full_disk_that_keeps_old_events_puts_no_fold_off(void)
{
	char ballast[100];

	if (!start_keeper_on_a_small_disk())
		return;
	db_keep_events(kit.db, ALWAYS);
	tell(2000, 0);
	push();
	EXPECT_EQ(keeper_fold_all(&k), NOH_OK);
	fill_disk(ballast);
	db_keep_events(kit.db, NOTHING);
	for (int i = 0; i < 100; i++)
		EXPECT(keeper_step(&k) >= 0);
	EXPECT_EQ(k.retry_ns, 0);                /* folds have not been tried, so they have not failed */
	EXPECT(!k.no_space && k.most == 0);
	EXPECT_EQ(unlink(ballast), 0);
	begin("a:1", ++seq); state(1, "one");
	push();
	keeper_ask(&k);
	EXPECT_EQ(keeper_step(&k), 1);           /* now, not when the events are tried again */
	clock_virtual_advance(&now, SECOND);
	for (int i = 0; i < 100 && stats().events; i++)
		EXPECT(keeper_step(&k) >= 0);
	EXPECT_EQ(stats().events, 0);
	EXPECT(verified());
	finish_keeper();
}

TEST_MAIN(
	TEST(a_fold_is_not_held_up_by_all_that_is_too_old_at_once),
	TEST(more_go_than_come_until_they_are_few_enough),
	TEST(old_events_go_where_there_is_little_room),
	TEST(a_full_disk_that_keeps_old_events_puts_no_fold_off))
