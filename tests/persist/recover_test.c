/* tests/persist/recover_test.c - what a crash, a torn write or a bad disk leaves, and what recovery makes
 * of it: the records up to a frame, all whole, or a refusal that names the place. Never anything else. */
#include "noh.h"
#include "persist/segment.h"
#include "tests/persist/journal_kit.h"

#define SEGMENT_1 "journal/00000001.seg"

static struct mem_disk *d;
static struct journal *j;
static struct seen s;
static struct journal_end end;

static void step_all(uint64_t from, uint64_t to, size_t len)
{
	for (uint64_t n = from; n <= to; n++) {
		EXPECT(journal_room(j, 0));
		push(j, 0, n, len);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	}
}

/* A journal with frames 1 to n, one record of that number in each; then the power is off. */
static void frames(uint64_t n, size_t len)
{
	d = mem_disk_open();
	EXPECT_EQ(open_journal(&j, &d->disk, 1, NULL), NOH_OK);
	step_all(1, n, len);
	journal_close(j);
	mem_disk_cut(d);
}

static struct disk_file *segment(uint64_t number)
{
	return mem_find(d, segment_name(number, "seg").text);
}

static uint8_t *frame(uint64_t number)          /* of 4 KiB each, in the first segment */
{
	return segment(1)->bytes + number * DISK_BLOCK;
}

static int again(void)
{
	int rc = recover(&d->disk, 0, &s, &end);

	EXPECT(!s.wrong);
	return rc;
}

/* The checksum of all bytes of all files: recovery changes nothing. */
static uint64_t everything(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < MEM_FILES; i++)
		if (d->file[i].there)
			sum ^= XXH3_64bits_withSeed(d->file[i].bytes, d->file[i].len,
						    XXH3_64bits(d->file[i].name, 64));
	return sum;
}

static void an_empty_directory_is_an_empty_journal(void)
{
	d = mem_disk_open();
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(s.count == 0 && end.frame == 0 && end.segment == 0 && end.epoch == 0);
	EXPECT_EQ(recover(&d->disk, 17, &s, &end), NOH_OK);
	EXPECT_EQ(end.frame, 17);               /* what LMDB holds is not numbered again */
	disk_end(&d->disk);
}

static void recovery_changes_nothing_and_twice_is_the_same(void)
{
	struct journal_end first;

	frames(100, 3000);
	uint64_t before = everything();

	EXPECT_EQ(again(), NOH_OK);
	first = end;
	EXPECT(s.count == 100 && s.last == 100 && end.frame == 100);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(!memcmp(&first, &end, sizeof end) && s.count == 100);
	EXPECT(everything() == before);
	EXPECT_EQ(recover(&d->disk, 60, &s, &end), NOH_OK);
	EXPECT(s.first == 61 && s.count == 40 && end.frame == 100 && !s.wrong);
	EXPECT_EQ(recover(&d->disk, 100, &s, &end), NOH_OK);
	EXPECT(s.count == 0 && end.frame == 100 && end.bytes == 0);
	disk_end(&d->disk);
}

/* One bit is wrong somewhere in frame k of n: the rest is as the disk has it. */
static void expect_cut_or_refused(uint64_t k, uint64_t n, uint64_t off)
{
	char at[32];
	int rc = again();

	snprintf(at, sizeof at, "at offset %llu", (unsigned long long)off);
	if (k == n) {
		EXPECT(rc == NOH_OK && s.count == n - 1 && end.frame == n - 1);
		return;
	}
	EXPECT_EQ(rc, NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), SEGMENT_1) && strstr(noh_why(), at));
	EXPECT(s.count == k - 1);
}

static void a_flipped_bit_is_cut_in_the_last_frame_and_refused_in_all_others(void)
{
	const uint64_t n = 4;
	uint64_t rng = test_seed;

	frames(n, 20);
	for (uint64_t k = 1; k <= n; k++)
		for (size_t bit = 0; bit < DISK_BLOCK * 8; bit++) {
			uint8_t *p = frame(k) + bit / 8;

			if (bit / 8 > 200 && test_random(&rng) % 16)
				continue;                       /* of the padding only some */
			*p ^= (uint8_t)(1u << bit % 8);
			expect_cut_or_refused(k, n, k * DISK_BLOCK);
			*p ^= (uint8_t)(1u << bit % 8);
		}
	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, n);
	disk_end(&d->disk);
}

enum { MADE, BEGUN, FULL };

static bool has_come(uint64_t number, int how_far)
{
	struct disk_file *f = segment(number);

	return f && (how_far == MADE || f->bytes[how_far == FULL ? f->len - DISK_BLOCK : DISK_BLOCK]);
}

/* Frames until that segment is made, begun or full. */
static uint64_t frames_up_to(uint64_t number, int how_far)
{
	uint64_t n = 0;

	d = mem_disk_open();
	EXPECT_EQ(open_journal(&j, &d->disk, 1, NULL), NOH_OK);
	for (; !has_come(number, how_far); step_all(n, n, 20))
		n++;
	journal_close(j);
	mem_disk_cut(d);
	return n;
}

static void a_segment_that_somebody_took_away_is_missed(void)
{
	uint64_t n = frames_up_to(3, BEGUN);

	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, n);
	if (segment(4))                         /* made ahead, not used yet */
		EXPECT_EQ(disk_remove(&d->disk, segment_name(4, "seg").text), NOH_OK);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, n);
	EXPECT_EQ(disk_remove(&d->disk, segment_name(3, "seg").text), NOH_OK);
	EXPECT_EQ(again(), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "journal/00000003.seg is missing"));
	disk_end(&d->disk);
}

static void a_segment_made_ahead_and_not_used_yet_is_not_missed(void)
{
	uint64_t n = frames_up_to(3, MADE);

	EXPECT_EQ(disk_remove(&d->disk, segment_name(3, "seg").text), NOH_OK);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, n);
	disk_end(&d->disk);
}

static void a_new_run_need_not_have_the_segment_that_an_earlier_one_relied_on(void)
{
	uint64_t n = frames_up_to(2, FULL);

	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, n);
	EXPECT_EQ(segment_make_empty(&d->disk, DIR_ID, 4, end.epoch + 1, n + 1), NOH_OK);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, n);
	disk_end(&d->disk);
}

static void a_flipped_bit_in_a_segments_head_is_refused(void)
{
	frames(3, 20);
	for (size_t bit = 0; bit < sizeof(struct segment_head) * 8; bit++) {
		segment(1)->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		int rc = again();

		EXPECT(rc == NOH_ECORRUPT && s.count == 0);
		EXPECT(strstr(noh_why(), SEGMENT_1));
		segment(1)->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	disk_end(&d->disk);
}

static void a_file_cut_short_is_refused_at_every_length(void)
{
	frames(3, 20);
	uint64_t whole = segment(1)->len;

	for (uint64_t len = 0; len < whole; len += len < 5 * DISK_BLOCK ? 1 : 997) {
		segment(1)->len = len;
		EXPECT_EQ(again(), NOH_ECORRUPT);
		EXPECT(strstr(noh_why(), SEGMENT_1));
		EXPECT_EQ(s.count, 0);
	}
	segment(1)->len = whole;
	EXPECT_EQ(again(), NOH_OK);
	EXPECT_EQ(s.count, 3);
	disk_end(&d->disk);
}

/* The last frame reached the disk only up to some byte; the rest is what was there before. */
static void a_torn_last_frame_is_cut_at_every_length(void)
{
	uint8_t whole[DISK_BLOCK];

	frames(3, 20);
	memcpy(whole, frame(3), DISK_BLOCK);
	for (size_t len = 0; len <= DISK_BLOCK; len++) {
		bool all = true;

		memset(frame(3), 0, DISK_BLOCK);
		memcpy(frame(3), whole, len);
		all = memcmp(frame(3), whole, DISK_BLOCK) == 0;
		EXPECT_EQ(again(), NOH_OK);
		EXPECT_EQ(s.count, all ? 3 : 2);
		EXPECT(all || len < 80 || end.cut_bytes == DISK_BLOCK);
	}
	disk_end(&d->disk);
}

static void a_lost_frame_cuts_also_the_one_after_it_that_arrived(void)
{
	d = mem_disk_open();
	EXPECT_EQ(open_journal(&j, &d->disk, 1, NULL), NOH_OK);
	step_all(1, 3, 20);
	d->hold = true;
	push(j, 0, 4, 20);
	(void)journal_step(j, false);
	push(j, 0, 5, 20);
	(void)journal_step(j, false);           /* 4 and 5 are under way together: both name 3 */
	EXPECT_EQ(d->count, 2);
	d->hold = false;
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	uint64_t epoch = journal_durable(j);

	journal_close(j);
	memset(frame(4), 0, DISK_BLOCK);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(s.count == 3 && end.frame == 3 && end.cut_bytes == DISK_BLOCK);
	EXPECT(end.epoch >= epoch - 1);         /* not used again, though it was cut */

	/* The next run numbers its frames from 4 on; the old 5 is never mistaken for its own. */
	EXPECT_EQ(open_journal(&j, &d->disk, 1, &end), NOH_OK);
	EXPECT(journal_epoch(j) > end.epoch);
	step_all(4, 5, 50);
	journal_close(j);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(s.count == 5 && s.last == 5 && end.frame == 5);
	EXPECT_EQ(recover(&d->disk, 3, &s, &end), NOH_OK);
	EXPECT(s.count == 2 && s.first == 4 && end.frame == 5);

	/* What that start relied on must stay readable. */
	frame(3)[200] ^= 1;
	EXPECT_EQ(again(), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), SEGMENT_1 " is damaged at offset 12288"));
	disk_end(&d->disk);
}

static void a_frame_that_was_acknowledged_is_never_cut_in_silence(void)
{
	frames(5, 20);
	memset(frame(4), 0, DISK_BLOCK);        /* 5 was submitted when 4 was on disk, and says so */
	EXPECT_EQ(again(), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "offset 16384"));
	EXPECT_EQ(s.count, 3);
	disk_end(&d->disk);
}

static void an_unfinished_group_never_happened(void)
{
	d = mem_disk_open();
	EXPECT_EQ(open_journal(&j, &d->disk, 1, NULL), NOH_OK);
	step_all(1, 2, 20);
	while (!journal_room(j, 0))
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	record_of(j, 0, 3, 20);
	record_of(j, 0, 4, 900000);             /* more than two segments: no keeper, no end of it */
	journal_push(j, 0);
	uint64_t due = journal_epoch(j);

	EXPECT_EQ(steps(j), JOURNAL_FULL);
	EXPECT(journal_durable(j) < due);
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(s.count == 2 && end.frame == 2 && end.cut_bytes > 100000);
	uint64_t upto, epoch;

	s = (struct seen){ 0 };
	EXPECT_EQ(journal_read(j, 0, 1 << 30, see, &s, &upto, &epoch), NOH_OK);
	EXPECT(s.count == 2 && upto == 2);
	while (journal_durable(j) < due) {      /* the keeper comes after all */
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
		EXPECT(journal_step(j, true) >= 0);
	}
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(s.count == 4 && end.cut_bytes == 0);
	journal_close(j);
	disk_end(&d->disk);
}

static void many_starts_in_a_row_keep_everything(void)
{
	uint64_t n = 0;

	d = mem_disk_open();
	for (int run = 0; run < 12; run++) {
		EXPECT_EQ(again(), NOH_OK);
		EXPECT(s.count == n && end.frame == n);
		EXPECT_EQ(open_journal(&j, &d->disk, 1, &end), NOH_OK);
		if (run % 3 != 1)               /* some end before their first frame */
			step_all(n + 1, n + 3, 100), n += 3;
		journal_close(j);
	}
	EXPECT_EQ(again(), NOH_OK);
	EXPECT(s.count == n && end.segment >= 12);
	disk_end(&d->disk);
}

static void old_frames_in_a_recycled_segment_are_not_new_ones(void)
{
	struct journal_stats st;

	d = mem_disk_open();
	EXPECT_EQ(open_journal(&j, &d->disk, 1, NULL), NOH_OK);
	for (uint64_t n = 1; n <= 1000; n++) {
		push(j, 0, n, 1000);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
		EXPECT_EQ(journal_folded(j, n > 20 ? n - 20 : 0), NOH_OK);
	}
	EXPECT(d->fills < 10);
	journal_close(j);
	EXPECT_EQ(recover(&d->disk, 980, &s, &end), NOH_OK);
	EXPECT(s.count == 20 && s.first == 981 && s.last == 1000 && end.frame == 1000 && !s.wrong);
	EXPECT_EQ(end.cut_bytes, 0);
	EXPECT_EQ(open_journal(&j, &d->disk, 1, &end), NOH_OK);
	step_all(1001, 1100, 1000);
	uint64_t upto = 980, epoch;

	s = (struct seen){ 0 };                 /* the keeper folds what recovery found, and goes on */
	while (journal_read(j, upto, 20000, see, &s, &upto, &epoch) == NOH_OK)
		EXPECT_EQ(journal_folded(j, upto), NOH_OK);
	EXPECT(s.first == 981 && s.last == 1100 && !s.wrong && upto == 1100);
	journal_get_stats(j, &st);
	EXPECT_EQ(st.unfolded_bytes, 0);
	journal_close(j);
	disk_end(&d->disk);
}

static void a_missing_segment_is_refused(void)
{
	frames(300, 3000);                      /* several segments */
	EXPECT(segment(3) != NULL);
	segment(2)->there = false;
	EXPECT_EQ(again(), NOH_ECORRUPT);
	segment(1)->there = false;
	EXPECT_EQ(again(), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "a segment is missing"));
	EXPECT_EQ(s.count, 0);
	EXPECT_EQ(recover(&d->disk, 250, &s, &end), NOH_OK);    /* all in LMDB: it is not needed */
	EXPECT(s.first == 251 && s.last == 300 && !s.wrong);
	disk_end(&d->disk);
}

static void files_of_another_directory_or_version_are_refused(void)
{
	frames(3, 20);
	EXPECT_EQ(journal_recover(&d->disk, DIR_ID + 1, 0, see, &s, &end), NOH_ECORRUPT);
	EXPECT(strstr(noh_why(), "another data directory"));
	struct segment_head *h = (struct segment_head *)(void *)segment(1)->bytes;

	h->format = FRAME_FORMAT + 1;
	h->sum = segment_sum(h);
	EXPECT_EQ(again(), NOH_EVERSION);
	EXPECT(strstr(noh_why(), "format 2"));
	disk_end(&d->disk);
}

static int third_is_too_much(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
			     const uint8_t *parts, const uint8_t *parts_end)
{
	(void)arg, (void)frame, (void)epoch, (void)parts, (void)parts_end;
	return head->seq == 3 ? NOH_ENOMEM : NOH_OK;
}

static void what_the_caller_says_ends_it(void)
{
	frames(5, 20);
	EXPECT_EQ(journal_recover(&d->disk, DIR_ID, 0, third_is_too_much, NULL, &end), NOH_ENOMEM);
	disk_end(&d->disk);
}

/* A box writes while we read: of frame `late.number` the first read that has its place gets nothing yet, but what came
 * after it. */
static struct {
	struct disk_ops ops;
	int           (*read)(struct disk_file *, void *, size_t, uint64_t, size_t *);
	uint64_t        number;
	unsigned        reads;
} late;

static int read_too_early(struct disk_file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
	uint64_t at = late.number * DISK_BLOCK;
	int rc = late.read(f, buf, len, off, got);

	if (f == segment(1) && off <= at && at + DISK_BLOCK <= off + *got && late.reads++ == 0)
		memset((uint8_t *)buf + (at - off), 0, DISK_BLOCK);
	return rc;
}

static void beside_a_box_that_writes_a_frame_may_come_while_it_is_looked_for(void)
{
	frames(8, 20);
	late.read = d->disk.ops->read;
	late.ops = *d->disk.ops;
	late.ops.read = read_too_early;
	d->disk.ops = &late.ops;
	for (late.number = 2; late.number < 8; late.number++) {
		late.reads = 0;
		EXPECT_EQ(again(), NOH_ECORRUPT);
		late.reads = 0;
		s = (struct seen){ 0 };
		EXPECT_EQ(journal_look_beside(&d->disk, DIR_ID, 0, see, &s, &end), NOH_OK);
		EXPECT(s.count == 8 && s.last == 8 && end.frame == 8 && !s.wrong && late.reads > 1);
	}
	memset(frame(5), 0, DISK_BLOCK);         /* and one that does not come is lost */
	s = (struct seen){ 0 };
	EXPECT_EQ(journal_look_beside(&d->disk, DIR_ID, 0, see, &s, &end), NOH_ECORRUPT);
	EXPECT_EQ(s.count, 4);
	disk_end(&d->disk);
}

TEST_MAIN(
	TEST(an_empty_directory_is_an_empty_journal),
	TEST(recovery_changes_nothing_and_twice_is_the_same),
	TEST(a_flipped_bit_is_cut_in_the_last_frame_and_refused_in_all_others),
	TEST(a_segment_that_somebody_took_away_is_missed),
	TEST(a_segment_made_ahead_and_not_used_yet_is_not_missed),
	TEST(a_new_run_need_not_have_the_segment_that_an_earlier_one_relied_on),
	TEST(a_flipped_bit_in_a_segments_head_is_refused),
	TEST(a_file_cut_short_is_refused_at_every_length),
	TEST(a_torn_last_frame_is_cut_at_every_length),
	TEST(a_lost_frame_cuts_also_the_one_after_it_that_arrived),
	TEST(a_frame_that_was_acknowledged_is_never_cut_in_silence),
	TEST(an_unfinished_group_never_happened),
	TEST(many_starts_in_a_row_keep_everything),
	TEST(old_frames_in_a_recycled_segment_are_not_new_ones),
	TEST(a_missing_segment_is_refused),
	TEST(files_of_another_directory_or_version_are_refused),
	TEST(what_the_caller_says_ends_it),
	TEST(beside_a_box_that_writes_a_frame_may_come_while_it_is_looked_for))
