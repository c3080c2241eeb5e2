/* tests/box/quarantine_start_test.c - a type that was quarantined as a whole is so before the first message of the next run. */
#include "box/box.h"
#include "tests/box/supervise_kit.h"

static const noh_supervision jail_all = { .base_ms = 1, .cap_ms = 4, .restarts = 2, .then = NOH_THEN_QUARANTINE_TYPE, .retries = 50 };
static const noh_type jailed = WORKER("w", &jail_all), free_one = WORKER("v", &jail_all);

/* w is quarantined; then the box ends, stopped or as after a crash. */
static void leave_quarantined(const char *dir, bool stop)
{
	noh_box *box = open_logged(dir, 2, TYPES(&jailed, &free_one));

	set_failures(1000000, false);
	EXPECT_EQ(call(box, "w:one", FLAKY), NOH_EFAILED);
	set_failures(0, false);
	EXPECT_EQ(call(box, "w:two", GET), NOH_EQUARANTINED);
	EXPECT_EQ(call(box, "v:one", GET), NOH_OK);
	if (stop)
		EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
	noh_close(box);
}

/* Nobody runs but us: what is known now was known before anybody could. */
static noh_box *stepped(const char *dir)
{
	noh_options o = kit_options(2);
	noh_box *box;

	o.dir = dir;
	box = kit_open(&o, TYPES(&jailed, &free_one));
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	return box;
}

static void expect_known_at_once(const char *dir)
{
	noh_box *box = stepped(dir);

	EXPECT_EQ(vitals_of(box, "w:two").health, NOH_QUARANTINED);
	EXPECT_EQ(vitals_of(box, "v:one").health, NOH_HEALTHY);
	EXPECT(box->disk.types_known);
	noh_close(box);
}

static void a_quarantined_type_is_so_before_the_first_message(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);

	leave_quarantined(dir, true);
	expect_known_at_once(dir);
	remove_dir(dir);
}

static void also_when_only_the_tail_of_the_journal_knows(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	noh_box *box;

	leave_quarantined(dir, false);
	expect_known_at_once(dir);
	expect_known_at_once(dir);
	box = open_logged(dir, 2, TYPES(&jailed, &free_one));
	EXPECT_EQ(call(box, "w:three", GET), NOH_EQUARANTINED);
	EXPECT_EQ(noh_resume(box, "w", SOON), NOH_OK);
	EXPECT_EQ(call(box, "w:three", GET), NOH_OK);
	noh_close(box);                          /* the tail has both now: the later one is right */
	box = stepped(dir);
	EXPECT_EQ(vitals_of(box, "w:two").health, NOH_HEALTHY);
	noh_close(box);
	remove_dir(dir);
}

static void what_is_found_late_does_not_undo_a_resume(void)
{
	char room[256];
	const char *dir = light_dir(room, sizeof room);
	struct type *w;
	noh_box *box;

	leave_quarantined(dir, true);
	box = stepped(dir);
	w = sched_find_type(&box->sched, "w", 1);
	EXPECT(!box_find_quarantined_types(box, NULL, 0));       /* too many to look at: there may be more */
	store_relaxed(&w->quarantined, 0);
	EXPECT(box_find_quarantined_types(box, NULL, UINT32_MAX));
	EXPECT_EQ(load_relaxed(&w->quarantined), QUARANTINED_FOUND);
	store_relaxed(&w->resumed, 1);           /* noh_resume, up to where the one to blame still has it stored */
	store_relaxed(&w->quarantined, 0);
	EXPECT(box_find_quarantined_types(box, NULL, UINT32_MAX));
	EXPECT_EQ(load_relaxed(&w->quarantined), 0);
	store_relaxed(&w->quarantined, QUARANTINED_NOW);         /* it fails again */
	EXPECT(box_find_quarantined_types(box, NULL, UINT32_MAX));
	EXPECT_EQ(load_relaxed(&w->quarantined), QUARANTINED_NOW);
	noh_close(box);
	remove_dir(dir);
}

TEST_MAIN(
	TEST(a_quarantined_type_is_so_before_the_first_message, "SUP-05"),
	TEST(also_when_only_the_tail_of_the_journal_knows, "SUP-05"),
	TEST(what_is_found_late_does_not_undo_a_resume, "SUP-05"))
