/* tests/sched/writer_test.c - where all workers sleep, a message wakes the one whose lone writes end soonest. */
#include "box/box.h"
#include "tests/box/kit.h"

enum { SLOW_NS = 150000, QUICK_NS = 100000 };

static void note(struct lone_writers *all, struct lone_writer *w, uint32_t index, uint64_t took_ns, int times)
{
	for (int i = 0; i < times; i++)
		writer_note(all, w, index, took_ns);
}

static uint32_t quickest(struct lone_writers *all)
{
	store_relaxed(&all->asked, 0);
	return writer_ask(all, 9);
}

static void nobody_is_known_to_be_quick_before_eight_writes(void)
{
	struct lone_writers all = { 0 };
	struct lone_writer one = { 0 };

	note(&all, &one, 0, SLOW_NS, WRITER_SAMPLES - 1);
	EXPECT_EQ(quickest(&all), 0);
	note(&all, &one, 0, SLOW_NS, 1);
	EXPECT_EQ(quickest(&all), 1);
}

static void the_quicker_one_takes_its_place_and_noise_does_not(void)
{
	struct lone_writers all = { 0 };
	struct lone_writer one = { 0 }, two = { 0 }, three = { 0 };

	note(&all, &one, 0, SLOW_NS, 8);
	note(&all, &two, 1, SLOW_NS * 9 / 10, 100);
	EXPECT_EQ(quickest(&all), 1);
	note(&all, &three, 2, QUICK_NS, 8);
	EXPECT_EQ(quickest(&all), 3);
	note(&all, &one, 0, SLOW_NS, 100);
	EXPECT_EQ(quickest(&all), 3);
}

static void who_has_become_slow_is_overtaken(void)
{
	struct lone_writers all = { 0 };
	struct lone_writer one = { 0 }, two = { 0 };

	note(&all, &one, 0, QUICK_NS, 8);
	note(&all, &two, 1, SLOW_NS, 8);
	EXPECT_EQ(quickest(&all), 1);
	note(&all, &one, 0, SLOW_NS * 3, 100);
	note(&all, &two, 1, SLOW_NS, 1);
	EXPECT_EQ(quickest(&all), 2);
}

static void one_in_sixteen_wakes_another_so_that_all_are_measured(void)
{
	struct lone_writers all = { .best = writer_word(1, QUICK_NS) };
	unsigned woken[3] = { 0 };

	for (int i = 0; i < 128; i++)
		woken[writer_ask(&all, 3) - 1]++;
	EXPECT(woken[0] >= 10 && woken[2] >= 10);
	memset(woken, 0, sizeof woken);
	for (int i = 0; i < 16 * 30; i++)
		woken[writer_ask(&all, 3) - 1]++;
	EXPECT_EQ(woken[0], 10);
	EXPECT_EQ(woken[1], 15 * 30 + 10);
	EXPECT_EQ(woken[2], 10);
}

static void a_write_that_takes_for_ever_counts_as_a_long_one(void)
{
	struct lone_writers all = { 0 };
	struct lone_writer one = { 0 };

	note(&all, &one, 7, UINT64_MAX, 100);
	EXPECT_EQ(quickest(&all), 8);
	EXPECT(load_relaxed(&all.best) >> 16 <= UINT64_C(1) << 40);
}

/* ── whom a send wakes ── */

static int on_message(noh_turn *t, const noh_msg *m)
{
	(void)t, (void)m;
	return NOH_OK;
}

static const noh_type plain = { .name = "plain", .state_size = 8, .on_message = on_message };

/* Sends to sixty-four actors; every worker is as told. Returns how many went to worker 1 of 3. */
static unsigned sent_to_one(uint64_t word, bool asleep, bool stuck)
{
	noh_options o = kit_options(3);
	noh_box *box = kit_open(&o, TYPES(&plain));
	struct sched *s = &box->sched;
	unsigned n = 0;

	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	store_relaxed(&s->writers.best, word);
	for (unsigned i = 0; i < 64; i++) {
		char address[32];

		for (uint32_t k = 0; k < 3; k++) {
			store_relaxed(&s->workers[k].shared.park.asleep, asleep);
			store_relaxed(&s->workers[k].shared.inbox.top, 0);
		}
		store_relaxed(&s->workers[1].shared.stuck, stuck);
		snprintf(address, sizeof address, "plain:%u", i);
		EXPECT_EQ(noh_send(box, address, 0, NULL, 0), NOH_OK);
		n += load_relaxed(&s->workers[1].shared.inbox.top) != 0;
	}
	noh_close(box);
	return n;
}

static void a_message_wakes_the_quickest_writer_if_all_sleep(void)
{
	unsigned n = sent_to_one(writer_word(1, QUICK_NS), true, false);

	EXPECT(n >= 48 && n < 64);               /* the others are tried now and then */
	n = sent_to_one(0, true, false);
	EXPECT(n > 5 && n < 40);                 /* a third */
}

static void who_is_awake_needs_no_waking_up(void)
{
	unsigned n = sent_to_one(writer_word(1, QUICK_NS), false, false);

	EXPECT(n > 5 && n < 40);
}

static void a_quick_writer_that_is_stuck_gets_nothing(void)
{
	EXPECT_EQ(sent_to_one(writer_word(1, QUICK_NS), true, true), 0);
}

TEST_MAIN(TEST(nobody_is_known_to_be_quick_before_eight_writes),
	  TEST(the_quicker_one_takes_its_place_and_noise_does_not),
	  TEST(who_has_become_slow_is_overtaken),
	  TEST(one_in_sixteen_wakes_another_so_that_all_are_measured),
	  TEST(a_write_that_takes_for_ever_counts_as_a_long_one),
	  TEST(a_message_wakes_the_quickest_writer_if_all_sleep),
	  TEST(who_is_awake_needs_no_waking_up),
	  TEST(a_quick_writer_that_is_stuck_gets_nothing))
