/* tests/persist/journal_test.c - pushing, writing, publishing, folding. What a crash leaves is in
 * recover_test.c. */
#include "persist/journal.h"

#include "core/atomic.h"
#include "core/mem.h"
#include "noh.h"
#include "tests/persist/journal_kit.h"

#include <pthread.h>
#include <unistd.h>

static struct mem_disk *d;
static struct journal *j;
static struct seen s;
static struct journal_end end;

static void start(uint32_t rings)
{
	d = mem_disk_open();
	EXPECT_EQ(open_journal(&j, &d->disk, rings, NULL), NOH_OK);
}

static void stop(void)
{
	journal_close(j);
	disk_end(&d->disk);
}

static struct journal_stats stats(void)
{
	struct journal_stats st;

	journal_get_stats(j, &st);
	return st;
}

static void a_record_is_durable_after_a_step_and_not_before(void)
{
	start(1);
	uint64_t due = push(j, 0, 1, 20);

	EXPECT(journal_durable(j) < due);
	d->hold = true;
	EXPECT_EQ(journal_step(j, false), JOURNAL_BUSY);
	EXPECT(journal_durable(j) < due);
	d->hold = false;
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT(journal_durable(j) >= due);
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == 1 && s.last == 1 && !s.wrong);
	EXPECT_EQ(stats().frames, 1);
	stop();
}

static void nothing_pushed_means_nothing_written(void)
{
	start(2);
	unsigned writes = d->writes;

	EXPECT_EQ(journal_step(j, true), JOURNAL_IDLE);
	journal_sleep(j, 0);
	EXPECT_EQ(d->writes, writes);
	EXPECT(journal_durable(j) >= 1);        /* the empty epoch is durable without a write */
	stop();
}

static void an_epoch_asked_for_too_late_is_still_covered(void)
{
	start(1);
	push(j, 0, 1, 20);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	uint64_t due = journal_epoch(j);        /* as if the pusher had been slow after its push */

	journal_sleep(j, 0);                    /* what the journaller does before it sleeps */
	EXPECT(journal_durable(j) >= due);
	stop();
}

static void several_reserves_are_one_push_and_undone_they_never_were(void)
{
	start(1);
	record_of(j, 0, 1, 20);
	record_of(j, 0, 2, 40000);
	EXPECT_EQ(journal_step(j, true), JOURNAL_IDLE);
	journal_push(j, 0);
	record_of(j, 0, 99, 20);
	record_of(j, 0, 98, 20000);
	journal_unreserve(j, 0);
	push(j, 0, 3, 8);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == 3 && s.first == 1 && s.last == 3 && !s.wrong);
	stop();
}

static void the_ring_wraps_and_a_full_one_says_so(void)
{
	start(1);
	uint64_t n = 0;

	for (int lap = 0; lap < 50; lap++) {
		while (journal_room(j, 0))
			n++, push(j, 0, n, 1000 + n % 97 * 8);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
		EXPECT(journal_room(j, 0));
		EXPECT_EQ(journal_folded(j, stats().durable_frame), NOH_OK);
	}
	EXPECT(n > 1000);
	EXPECT_EQ(stats().records, n);
	stop();
}

static void big_records_go_around_the_ring(void)
{
	const size_t sizes[] = { JOURNAL_INLINE - 100, JOURNAL_INLINE, JOURNAL_INLINE + 8, 100000,
				 (1 << 20) - 100, 1 << 20, (1 << 20) + 8, 5 << 20 };
	const size_t count = sizeof sizes / sizeof sizes[0];

	start(1);
	for (size_t i = 0; i < count; i++) {
		uint64_t due;

		while (!journal_room(j, 0) || stats().no_space) {
			(void)journal_step(j, true);
			EXPECT_EQ(journal_folded(j, 0), NOH_OK);
		}
		due = push(j, 0, i + 1, sizes[i]);
		while (journal_durable(j) < due) {
			EXPECT(journal_step(j, true) >= 0);
			EXPECT_EQ(journal_folded(j, 0), NOH_OK);
		}
	}
	EXPECT(stats().segments > 20);          /* one record is bigger than many segments */
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == count && s.last == count && !s.wrong);
	stop();
}

static void a_record_that_begins_where_a_frame_is_full_is_counted_once(void)
{
	start(1);
	size_t left = (size_t)stats().segment_bytes - DISK_BLOCK - sizeof(struct frame_head);

	(void)push(j, 0, 1, left - record_parts_at(3) - part_size(0, sizeof(struct part_state)));
	(void)push(j, 0, 2, 20);
	EXPECT_EQ(journal_prepare(j), NOH_OK);
	while (journal_step(j, true) == JOURNAL_BUSY || stats().records < 2)
		EXPECT_EQ(journal_prepare(j), NOH_OK);
	EXPECT_EQ(stats().records, 2);
	EXPECT_EQ(stats().frames, 2);
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == 2 && !s.wrong);
	stop();
}

static void frames_end_in_any_order_but_are_published_in_theirs(void)
{
	start(1);
	d->hold = d->backwards = true;
	uint64_t due1 = push(j, 0, 1, 20);

	EXPECT_EQ(journal_step(j, false), JOURNAL_BUSY);
	uint64_t due2 = push(j, 0, 2, 20);

	EXPECT_EQ(journal_step(j, false), JOURNAL_BUSY);
	EXPECT_EQ(d->count, 2);
	push(j, 0, 3, 20);                      /* no third buffer: it gathers */
	EXPECT_EQ(journal_step(j, false), JOURNAL_BUSY);
	EXPECT_EQ(d->count, 2);
	EXPECT(journal_durable(j) < due1);
	d->hold = false;
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT(journal_durable(j) >= due2);
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == 3 && !s.wrong && end.frame == 3);
	stop();
}

static void a_failed_write_is_final(void)
{
	start(1);
	uint64_t good = push(j, 0, 1, 20);

	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	d->broken = true;
	uint64_t due = push(j, 0, 2, 20);

	EXPECT_EQ(journal_step(j, true), NOH_EDISK);
	EXPECT(strstr(noh_why(), "Input/output error"));
	d->broken = false;
	EXPECT_EQ(journal_step(j, true), NOH_EDISK);       /* the disk healed; the promise did not */
	EXPECT(strstr(noh_why(), "Input/output error"));
	EXPECT_EQ(journal_wait(j, due, 1000), NOH_EDISK);
	EXPECT_EQ(journal_wait(j, good, 1000), NOH_OK);
	EXPECT(journal_durable(j) < due);
	EXPECT(!journal_room(j, 0));
	stop();
}

static void without_space_for_the_next_segment_only_new_work_is_refused(void)
{
	uint64_t n = 0, due = 0;

	start(1);
	while (stats().bytes < 40000) {
		push(j, 0, ++n, 500);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
	}
	d->full = true;
	EXPECT(journal_room(j, 0));
	EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	EXPECT(stats().no_space);
	EXPECT(!journal_room(j, 0));
	record_of(j, 0, ++n, 1000);             /* room was given before: it is taken */
	journal_push(j, 0);
	due = journal_epoch(j);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT(journal_durable(j) >= due);
	EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	EXPECT(!journal_room(j, 0));
	d->full = false;                        /* it recovers by itself */
	EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	EXPECT(!stats().no_space);
	EXPECT(journal_room(j, 0));
	for (int i = 0; i < 200; i++) {
		push(j, 0, ++n, 500);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	}
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == n && !s.wrong);
	stop();
}

static void room_is_refused_while_the_current_segment_still_takes_all_rings(void)
{
	uint64_t n = 0;

	start(1);
	while (journal_room(j, 0)) {            /* the keeper never comes */
		push(j, 0, ++n, 500);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
	}
	for (uint64_t size = 0; size < RING - 2000; size += 600)    /* as much as the ring holds */
		record_of(j, 0, ++n, 500);
	journal_push(j, 0);
	uint64_t due = journal_epoch(j);

	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT(journal_durable(j) >= due);
	EXPECT_EQ(recover(&d->disk, 0, &s, &end), NOH_OK);
	EXPECT(s.count == n && !s.wrong);
	stop();
}

static uint64_t told;
static void tell_me(void *arg, uint64_t epoch)
{
	(void)arg;
	told = epoch;
}

static void at_the_limit_it_waits_until_something_is_folded(void)
{
	struct journal_options o = { .disk = NULL, .dir_id = DIR_ID, .rings = 1, .ring_bytes = RING,
				     .limit_bytes = 100000, .on_durable = tell_me };
	uint64_t n = 0, upto = 0, epoch = 0;
	struct journal_end none = { 0 };
	int rc = JOURNAL_IDLE;

	d = mem_disk_open();
	o.disk = &d->disk;
	EXPECT_EQ(journal_open(&j, &o, &none), NOH_OK);
	for (int i = 0; i < 100 && rc != JOURNAL_FULL; i++) {
		if (journal_room(j, 0))
			push(j, 0, ++n, 3000);
		rc = steps(j);
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	}
	EXPECT_EQ(rc, JOURNAL_FULL);
	EXPECT(stats().full_waits > 0);
	EXPECT(stats().unfolded_bytes >= 100000 && stats().unfolded_bytes < 110000);
	EXPECT(told == journal_durable(j));
	s = (struct seen){ 0 };
	EXPECT_EQ(journal_read(j, 0, 8192, see, &s, &upto, &epoch), NOH_OK);
	EXPECT_EQ(journal_folded(j, upto), NOH_OK);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	while ((rc = journal_read(j, upto, 1 << 20, see, &s, &upto, &epoch)) == NOH_OK)
		EXPECT_EQ(journal_folded(j, upto), NOH_OK);
	EXPECT_EQ(rc, NOH_END);
	EXPECT(s.count == n && !s.wrong);
	EXPECT_EQ(stats().unfolded_bytes, 0);
	stop();
}

static void what_was_read_and_not_folded_is_read_again_from_its_place(void)
{
	uint64_t upto = 0, epoch = 0, all, before;

	start(1);
	s = (struct seen){ 0 };
	for (uint64_t n = 1; n <= 20; n++) {
		push(j, 0, n, 3000);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
	}
	all = stats().unfolded_bytes;
	EXPECT_EQ(journal_read(j, 0, 40000, see, &s, &upto, &epoch), NOH_OK);      /* too much, for once */
	for (uint64_t from = 0; from < 20; from = upto) {
		before = stats().unfolded_bytes;
		s = (struct seen){ 0 };
		EXPECT_EQ(journal_read(j, from, 9000, see, &s, &upto, &epoch), NOH_OK);
		EXPECT_EQ(journal_folded(j, upto), NOH_OK);
		if (!EXPECT(upto > from) || !EXPECT(stats().unfolded_bytes < before))
			break;
	}
	EXPECT(all > 60000);
	EXPECT_EQ(stats().unfolded_bytes, 0);
	stop();
}

static void the_keeper_reads_what_is_durable_and_no_more(void)
{
	uint64_t upto = 0, epoch = 0;

	start(2);
	s = (struct seen){ 0 };
	EXPECT_EQ(journal_read(j, 0, 1 << 20, see, &s, &upto, &epoch), NOH_END);
	push(j, 0, 1, 20);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	d->hold = true;
	push(j, 1, 2, 20);
	EXPECT_EQ(journal_step(j, false), JOURNAL_BUSY);
	EXPECT_EQ(journal_read(j, 0, 1 << 20, see, &s, &upto, &epoch), NOH_OK);
	EXPECT(s.count == 1 && upto == 1 && epoch <= journal_durable(j));
	EXPECT_EQ(journal_read(j, upto, 1 << 20, see, &s, &upto, &epoch), NOH_END);
	d->hold = false;
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT_EQ(journal_read(j, upto, 1 << 20, see, &s, &upto, &epoch), NOH_OK);
	EXPECT(s.count == 2 && upto == 2 && !s.wrong);
	stop();
}

static void folded_segments_are_recycled_not_filled_again(void)
{
	uint64_t n = 0;
	unsigned fills = 0;

	start(1);
	for (int i = 0; i < 4000; i++) {
		push(j, 0, ++n, 1000);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
		EXPECT_EQ(journal_folded(j, stats().durable_frame), NOH_OK);
		if (i == 2000)
			fills = d->fills;
	}
	EXPECT(stats().segments <= 4);
	EXPECT_EQ(d->fills, fills);
	EXPECT(journal_room(j, 0));
	stop();
}

/* It grows four times as fast as the rest of this one goes, and no faster than that asks for. */
static void the_next_segment_takes_its_time_if_there_is_some(void)
{
	uint64_t n = 0, half;

	start(1);
	half = stats().segment_bytes / 2;
	(void)d->disk.has_time(d->disk.time_arg, 0);
	EXPECT(!d->disk.has_time(d->disk.time_arg, half));               /* nobody writes, nobody is disturbed */
	push(j, 0, ++n, 1000);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT(d->disk.has_time(d->disk.time_arg, 0));                   /* it is not wanted yet */
	while (stats().bytes < half + half / 4) {
		push(j, 0, ++n, 1000);
		EXPECT_EQ(steps(j), JOURNAL_IDLE);
		EXPECT_EQ(journal_prepare(j), NOH_OK);
	}
	EXPECT(!d->disk.has_time(d->disk.time_arg, half));               /* it will be soon */
	push(j, 0, ++n, 1000);
	EXPECT_EQ(steps(j), JOURNAL_IDLE);
	EXPECT(d->disk.has_time(d->disk.time_arg, 2 * half));
	stop();
}

static void every_allocation_may_fail(void)
{
	uint64_t upto = 0, epoch = 0;
	int rc = NOH_ENOMEM;

	for (uint64_t nth = 1; rc != NOH_OK && nth < 100; nth++) {
		d = mem_disk_open();
		(void)mem_fail_at(nth, 0);
		rc = open_journal(&j, &d->disk, 2, NULL);
		(void)mem_fail_at(0, 0);
		EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
		if (rc != NOH_OK)
			disk_end(&d->disk);
	}
	(void)mem_fail_at(1, 0);
	EXPECT(journal_reserve(j, 0, 40000) == NULL);
	push(j, 0, 1, 500000);                  /* a group of several frames */
	while (stats().durable_frame == 0) {
		EXPECT(journal_step(j, true) >= 0);
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
	}
	rc = NOH_ENOMEM;
	for (uint64_t nth = 1; rc != NOH_OK && nth < 100; nth++) {
		s = (struct seen){ 0 };
		(void)mem_fail_at(nth, 0);
		rc = journal_read(j, 0, 1 << 20, see, &s, &upto, &epoch);
		(void)mem_fail_at(0, 0);
		EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
	}
	EXPECT(s.count == 1 && !s.wrong);
	rc = NOH_ENOMEM;
	for (uint64_t nth = 1; rc != NOH_OK && nth < 100; nth++) {
		(void)mem_fail_at(nth, 0);
		rc = recover(&d->disk, 0, &s, &end);
		(void)mem_fail_at(0, 0);
		EXPECT(rc == NOH_OK || rc == NOH_ENOMEM);
	}
	EXPECT(s.count == 1 && !s.wrong);
	stop();
}

/* ── threads, on a real disk ── */
#define PUSHERS 2
#define EACH 3000

static struct {
	struct disk *disk;
	atomic_u32   stop, keeper_stop;
	atomic_u64   number[PUSHERS];       /* B's record of this number was caused by A's */
} t;

static void *journaller(void *arg)
{
	(void)arg;
	journal_loop(j, &t.stop);
	return NULL;
}

static void *keeper(void *arg)
{
	(void)arg;
	while (!load_acquire(&t.keeper_stop)) {
		EXPECT_EQ(journal_folded(j, 0), NOH_OK);
		usleep(200);
	}
	return NULL;
}

static void push_numbered(uint32_t ring, uint64_t number, uint64_t *due)
{
	while (!journal_room(j, ring))
		usleep(50);
	uint64_t tag = journal_epoch(j);
	uint8_t *at = journal_reserve(j, ring, record_parts_at(3)), *parts;

	parts = record_begin(at, ring ? "b:1" : "a:1", 3, ring, tag, number, 0);
	record_finish(at, parts);
	journal_push(j, ring);
	*due = journal_epoch(j);
	journal_wake(j);
}

static void *cause(void *arg)
{
	uint64_t due = 0;

	(void)arg;
	for (uint64_t n = 1; n <= EACH; n++) {
		push_numbered(0, n, &due);
		store_release(&t.number[0], n);
		if (n % 64 == 0)
			EXPECT_EQ(journal_wait(j, due, UINT64_C(10000000000)), NOH_OK);
	}
	EXPECT_EQ(journal_wait(j, due, UINT64_C(10000000000)), NOH_OK);
	return NULL;
}

static void *effect(void *arg)
{
	uint64_t due = 0, n = 0;

	(void)arg;
	while (n < EACH) {
		uint64_t seen = load_acquire(&t.number[0]);

		if (seen == n)
			continue;
		n = seen;
		push_numbered(1, n, &due);
		if (n % 7 == 0)
			EXPECT_EQ(journal_wait(j, due, UINT64_C(10000000000)), NOH_OK);
	}
	EXPECT_EQ(journal_wait(j, due, UINT64_C(10000000000)), NOH_OK);
	return NULL;
}

/* Within a frame order means nothing; over frames the cause must not come later. */
struct causes { uint64_t frame, a, b, records; bool wrong; };
static int check_causes(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
			const uint8_t *parts, const uint8_t *parts_end)
{
	struct causes *c = arg;

	(void)parts;
	(void)parts_end;
	if (frame != c->frame)
		c->wrong |= c->b > c->a;
	c->frame = frame;
	c->records++;
	c->wrong |= head->tag > epoch;
	if (head->hash == 0) {
		c->wrong |= head->seq != c->a + 1;
		c->a = head->seq;
	} else {
		c->wrong |= head->seq <= c->b;
		c->b = head->seq;
	}
	return NOH_OK;
}

static void an_effect_is_never_in_an_earlier_frame_than_its_cause(void)
{
	char dir[] = "/tmp/noh-journal-XXXXXX", command[64];
	pthread_t thread[4];
	struct causes c = { 0 };
	void *(*const run[4])(void *) = { journaller, keeper, cause, effect };

	EXPECT(mkdtemp(dir) != NULL);
	memset(&t, 0, sizeof t);
	EXPECT_EQ(disk_real_open(&t.disk, dir, DISK_AUTO), NOH_OK);
	EXPECT_EQ(open_journal(&j, t.disk, PUSHERS, NULL), NOH_OK);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, run[i], NULL);
	pthread_join(thread[2], NULL);
	pthread_join(thread[3], NULL);
	store_seq_cst(&t.stop, 1);
	journal_wake(j);
	pthread_join(thread[0], NULL);
	store_seq_cst(&t.keeper_stop, 1);
	pthread_join(thread[1], NULL);
	journal_close(j);
	EXPECT_EQ(journal_recover(t.disk, DIR_ID, 0, check_causes, &c, &end), NOH_OK);
	EXPECT(!c.wrong && c.a == EACH && c.b == EACH);
	EXPECT_EQ(end.cut_bytes, 0);
	disk_end(t.disk);
	snprintf(command, sizeof command, "rm -r %s", dir);
	EXPECT_EQ(system(command), 0);
}

TEST_MAIN(
	TEST(a_record_is_durable_after_a_step_and_not_before, "MB-10"),
	TEST(nothing_pushed_means_nothing_written),
	TEST(an_epoch_asked_for_too_late_is_still_covered),
	TEST(several_reserves_are_one_push_and_undone_they_never_were),
	TEST(the_ring_wraps_and_a_full_one_says_so),
	TEST(big_records_go_around_the_ring),
	TEST(a_record_that_begins_where_a_frame_is_full_is_counted_once),
	TEST(frames_end_in_any_order_but_are_published_in_theirs),
	TEST(a_failed_write_is_final),
	TEST(without_space_for_the_next_segment_only_new_work_is_refused),
	TEST(room_is_refused_while_the_current_segment_still_takes_all_rings),
	TEST(at_the_limit_it_waits_until_something_is_folded),
	TEST(what_was_read_and_not_folded_is_read_again_from_its_place),
	TEST(the_keeper_reads_what_is_durable_and_no_more),
	TEST(the_next_segment_takes_its_time_if_there_is_some),
	TEST(folded_segments_are_recycled_not_filled_again),
	TEST(every_allocation_may_fail),
	TEST(an_effect_is_never_in_an_earlier_frame_than_its_cause, "MB-10 US-09"))
