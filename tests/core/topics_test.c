/* tests/core/topics_test.c - who listens to what: against a model, while others look, and without memory. */
#include "core/topics.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct topics ts;
static ck_epoch_t epoch;
static ck_epoch_record_t record;

static void open_all(void)
{
	ck_epoch_init(&epoch);
	ck_epoch_register(&epoch, &record, NULL);
	topics_open(&ts, test_seed);
}

static void close_all(void)
{
	epoch_synchronize_all(&record);
	topics_close(&ts);
}

static struct topic *find(const char *name)
{
	return topics_find(&ts, false, name, strlen(name));
}

static struct topic *hold(const char *name)
{
	return topics_hold(&ts, &record, false, name, strlen(name));
}

static void a_topic_is_there_as_long_as_somebody_holds_it(void)
{
	struct topic *a, *b;

	open_all();
	EXPECT(find("a") == NULL);
	a = hold("a");
	b = hold("a");
	EXPECT(a && a == b && find("a") == a);
	EXPECT(topics_find(&ts, true, "a", 1) == NULL);         /* a pattern is something else */
	EXPECT_EQ(topics_count(&ts, false), 1);
	topics_let_go(&ts, &record, a);
	EXPECT(find("a") == a);
	topics_let_go(&ts, &record, a);
	EXPECT(find("a") == NULL);
	EXPECT_EQ(topics_count(&ts, false), 0);
	close_all();
}

static void names_may_be_any_bytes(void)
{
	struct topic *none, *nul, *longest;
	char name[CHANNEL_MAX];

	open_all();
	memset(name, 'x', sizeof name);
	none = topics_hold(&ts, &record, false, "", 0);
	nul = topics_hold(&ts, &record, false, "a\0b", 3);
	longest = topics_hold(&ts, &record, false, name, sizeof name);
	EXPECT(topics_find(&ts, false, "", 0) == none && topics_find(&ts, false, "a\0b", 3) == nul);
	EXPECT(topics_find(&ts, false, name, sizeof name) == longest);
	EXPECT(topics_find(&ts, false, "a\0c", 3) == NULL && find("a") == NULL);
	topics_let_go(&ts, &record, none);
	topics_let_go(&ts, &record, nul);
	topics_let_go(&ts, &record, longest);
	close_all();
}

#define MANY 3000

/* Held and let go at random; at every step exactly those are found that should be. */
static void many_come_and_go(void)
{
	static uint32_t held[MANY];
	uint64_t state = test_seed, live = 0;
	char name[32];

	open_all();
	memset(held, 0, sizeof held);
	for (int step = 0; step < 60000; step++) {
		uint32_t i = (uint32_t)(test_random(&state) % MANY);
		struct topic *t;

		sprintf(name, "channel %u", i);
		t = find(name);
		if ((t != NULL) != (held[i] > 0)) {
			EXPECT_EQ(t != NULL, held[i] > 0);
			break;
		}
		if (t && test_random(&state) % 2) {
			topics_let_go(&ts, &record, t);
			live -= --held[i] == 0;
		} else {
			EXPECT(hold(name) != NULL);
			live += held[i]++ == 0;
		}
		if (step % 64 == 0)
			epoch_poll(&record);
	}
	EXPECT_EQ(topics_count(&ts, false), live);
	for (uint32_t i = 0; i < MANY; i++)
		for (sprintf(name, "channel %u", i); held[i]; held[i]--)
			topics_let_go(&ts, &record, find(name));
	EXPECT_EQ(topics_count(&ts, false), 0);
	close_all();
}

static void workers_have_entries_of_their_own(void)
{
	int one, two;
	struct topic *t;

	open_all();
	t = hold("a");
	EXPECT(topic_hear(&ts, &record, t, 3, &one, 2));
	EXPECT(topic_hear(&ts, &record, t, 7, &two, 1));
	EXPECT(topic_local(t, 3) == &one && topic_local(t, 7) == &two && topic_local(t, 4) == NULL);
	EXPECT_EQ(topic_listeners(t), 3);
	EXPECT(topic_hear(&ts, &record, t, 3, NULL, 0));
	EXPECT(topic_local(t, 3) == NULL);
	EXPECT_EQ(topic_listeners(t), 1);
	EXPECT(topic_hear(&ts, &record, t, 3, &two, 5));
	EXPECT(topic_local(t, 3) == &two);
	EXPECT_EQ(topic_listeners(t), 6);
	topics_let_go(&ts, &record, t);
	close_all();
}

static void patterns_match_as_globs_do(void)
{
	static const struct { const char *pattern, *channel; bool yes; } of[] = {
		{ "news", "news", true }, { "news", "newsx", false }, { "news", "new", false }, { "*", "", true },
		{ "n*s", "news", true }, { "n*s", "ns", true }, { "new?", "news", true }, { "new?", "new", false },
		{ "a\\*b", "a*b", true }, { "a\\*b", "axb", false }, { "x[ab]", "xb", true }, { "x[^ab]", "xb", false },
		{ "", "", true }, { "", "a", false },
	};

	open_all();
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		struct topic *t = topics_hold(&ts, &record, true, of[i].pattern, strlen(of[i].pattern));

		if (topic_matches(t, of[i].channel, strlen(of[i].channel)) != of[i].yes)
			test_failed(__FILE__, __LINE__, "%s and %s", of[i].pattern, of[i].channel);
		topics_let_go(&ts, &record, t);
	}
	close_all();
}

/* ── seats ── */

static struct topic_member members[MANY];

static uint32_t seen(struct topic *t, struct topic_member *who)
{
	uint32_t n, count = 0;
	struct seats *s = topic_seats(t, &n);

	for (uint32_t i = 0; i < n; i++)
		count += topic_seat(s, i) && (!who || topic_seat(s, i) == who);
	return count;
}

static void who_sits_is_seen_when_he_has_appeared(void)
{
	struct topic *t;

	open_all();
	t = hold("a");
	EXPECT(topic_sit(&ts, &record, t, &members[0]) && topic_sit(&ts, &record, t, &members[1]));
	EXPECT_EQ(seen(t, NULL), 0);
	topic_appear(&ts, &members[1]);
	EXPECT_EQ(seen(t, NULL), 1);
	EXPECT_EQ(seen(t, &members[1]), 1);
	EXPECT_EQ(topic_listeners(t), 1);
	topic_leave(&ts, &record, &members[0]);                  /* was never seen */
	EXPECT_EQ(topic_listeners(t), 1);
	topics_let_go(&ts, &record, t);
	EXPECT(find("a") == t);                                  /* a seat holds it */
	topic_leave(&ts, &record, &members[1]);
	EXPECT(find("a") == NULL);
	close_all();
}

/* Rows grow and are closed up again; who is hidden stays hidden, who is seen stays seen. */
static void seats_are_taken_and_left_at_random(void)
{
	enum { OUT, HIDDEN, SHOWN };
	static uint8_t is[MANY];
	uint64_t state = test_seed;
	uint32_t shown = 0, n;
	struct topic *t;

	open_all();
	memset(is, OUT, sizeof is);
	t = hold("a");
	for (int step = 0; step < 50000; step++) {
		uint32_t limit = step < 20000 ? MANY : step < 40000 ? 20 : MANY;   /* a full house, then few */
		uint32_t i = (uint32_t)(test_random(&state) % MANY);

		if (is[i] == OUT && i < limit) {
			EXPECT(topic_sit(&ts, &record, t, &members[i]));
			is[i] = HIDDEN;
		} else if (is[i] == HIDDEN && i < limit) {
			topic_appear(&ts, &members[i]);
			is[i] = SHOWN;
			shown++;
		} else if (is[i] != OUT && (i >= limit || test_random(&state) % 3 == 0)) {
			topic_leave(&ts, &record, &members[i]);
			shown -= is[i] == SHOWN;
			is[i] = OUT;
		}
		if (step % 500 == 0 && !EXPECT_EQ(seen(t, NULL), shown))
			break;
		if (step % 64 == 0)
			epoch_poll(&record);
	}
	for (uint32_t i = 0; i < MANY; i++)
		EXPECT_EQ(seen(t, &members[i]), is[i] == SHOWN);
	for (uint32_t i = 10; i < MANY; i++)
		if (is[i] != OUT)
			topic_leave(&ts, &record, &members[i]);
	(void)topic_seats(t, &n);
	EXPECT(n <= 64);                                         /* nobody walks over empty rows */
	for (uint32_t i = 0; i < 10; i++)
		if (is[i] != OUT)
			topic_leave(&ts, &record, &members[i]);
	topics_let_go(&ts, &record, t);
	close_all();
}

/* ── while others look ── */

static atomic_u32 stop;
static struct topic_member *always;

/* Whoever sits throughout is seen by every walk, exactly once. */
struct reader { ck_epoch_record_t epoch; atomic_u64 walks; };     /* the epoch keeps its records */

static void *look(void *arg)
{
	struct reader *r = arg;

	while (!load_acquire(&stop)) {
		struct topic *t;

		epoch_enter(&r->epoch);
		t = find("busy");
		if (!t || seen(t, always) != 1) {
			test_failed(__FILE__, __LINE__, "not seen exactly once");
			store_release(&stop, 1);
		}
		(void)find("other");
		(void)topic_listeners(t ? t : find("busy"));
		epoch_leave(&r->epoch);
		add_relaxed(&r->walks, 1);
	}
	return NULL;
}

static void free_member(ck_epoch_entry_t *e)
{
	free(e);
}

static void readers_see_who_sits_throughout(void)
{
	pthread_t readers[2];
	static struct reader by[2];
	uint64_t state = test_seed;
	struct topic_member *list[64] = { NULL };

	open_all();
	struct topic *t = hold("busy");

	always = calloc(1, sizeof *always);
	EXPECT(topic_sit(&ts, &record, t, always));
	topic_appear(&ts, always);
	store_release(&stop, 0);
	memset(by, 0, sizeof by);
	for (int i = 0; i < 2; i++) {
		ck_epoch_register(&epoch, &by[i].epoch, NULL);
		EXPECT_EQ(pthread_create(&readers[i], NULL, look, &by[i]), 0);
	}
	/* So many changes, and on until both have looked: a busy machine may not have let them begin. */
	for (int step = 0; (step < 40000 || !load_relaxed(&by[0].walks) || !load_relaxed(&by[1].walks)) &&
			   !load_acquire(&stop); step++) {
		uint32_t i = (uint32_t)(test_random(&state) % 64);

		if (list[i]) {
			topic_leave(&ts, &record, list[i]);
			epoch_defer(&record, &list[i]->entry, free_member);
			list[i] = NULL;
		} else {
			list[i] = calloc(1, sizeof *list[i]);
			EXPECT(topic_sit(&ts, &record, t, list[i]));
			topic_appear(&ts, list[i]);
		}
		if (step % 16 == 0)
			topics_let_go(&ts, &record, hold("other"));
		(void)topic_hear(&ts, &record, t, (uint32_t)step % 8, t, 1);
		epoch_poll(&record);
	}
	store_release(&stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	EXPECT(load_relaxed(&by[0].walks) > 0 && load_relaxed(&by[1].walks) > 0);
	for (int i = 0; i < 64; i++)
		if (list[i]) {
			topic_leave(&ts, &record, list[i]);
			free(list[i]);
		}
	topic_leave(&ts, &record, always);
	free(always);
	topics_let_go(&ts, &record, t);
	close_all();
}

/* ── without memory ── */

/* Every allocation fails in turn; what is refused leaves nothing behind. */
static void nothing_is_left_of_what_was_refused(void)
{
	bool all = false;

	for (uint64_t nth = 1; !all && nth < 50; nth++) {
		struct topic *t;
		bool sat = false, heard = false;

		open_all();
		(void)mem_fail_at(nth, 0);
		t = hold("a");
		if (t) {
			sat = topic_sit(&ts, &record, t, &members[0]);
			heard = topic_hear(&ts, &record, t, 1, t, 1);
		}
		(void)mem_fail_at(0, 0);
		all = t && sat && heard;
		if (sat)
			topic_leave(&ts, &record, &members[0]);
		if (heard)
			EXPECT(topic_hear(&ts, &record, t, 1, NULL, 0));
		if (t)
			topics_let_go(&ts, &record, t);
		EXPECT_EQ(topics_count(&ts, false), 0);
		close_all();
	}
	EXPECT(all);
}

TEST_MAIN(
	TEST(a_topic_is_there_as_long_as_somebody_holds_it),
	TEST(names_may_be_any_bytes),
	TEST(many_come_and_go),
	TEST(workers_have_entries_of_their_own),
	TEST(patterns_match_as_globs_do),
	TEST(who_sits_is_seen_when_he_has_appeared),
	TEST(seats_are_taken_and_left_at_random),
	TEST(readers_see_who_sits_throughout),
	TEST(nothing_is_left_of_what_was_refused, "P11"))
