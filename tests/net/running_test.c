/* tests/net/running_test.c - idempotency keys under way: one at a time, whoever asks, and never in the way for good. */
#include "net/running.h"

#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct running r;

static bool begin(const char *address, const char *key, uint32_t *place)
{
	return running_begin(&r, address, strlen(address), key, strlen(key), place);
}

static void a_key_runs_once_until_it_ends(void)
{
	uint32_t one, two;

	EXPECT(running_open(&r));
	EXPECT(begin("counter:a", "k", &one) && one);
	EXPECT(!begin("counter:a", "k", &two) && !two);
	EXPECT(begin("counter:b", "k", &two) && two != one);     /* of another actor it is another key */
	running_end(&r, two);
	EXPECT(begin("counter:a", "l", &two) && two != one);
	running_end(&r, two);
	running_end(&r, one);
	EXPECT(begin("counter:a", "k", &one) && one);
	running_end(&r, one);
	running_end(&r, 0);
	running_close(&r);
}

/* More than there is room for: some are not watched, and none is refused for it. */
static void a_full_table_refuses_nobody(void)
{
	static uint32_t places[2 * RUNNING_PLACES];
	uint32_t watched = 0, place;
	char key[16];

	EXPECT(running_open(&r));
	for (uint32_t i = 0; i < 2 * RUNNING_PLACES; i++) {
		snprintf(key, sizeof key, "%u", i);
		if (!EXPECT(begin("a:b", key, &places[i])))
			break;
		watched += places[i] != 0;
	}
	EXPECT(watched > RUNNING_PLACES / 2 && watched <= RUNNING_PLACES);
	for (uint32_t i = 0; i < 2 * RUNNING_PLACES; i++)
		running_end(&r, places[i]);
	for (uint32_t i = 0; i < RUNNING_PLACES; i++)
		EXPECT(load_relaxed(&r.places[i]) == 0);
	EXPECT(begin("a:b", "0", &place) && place);
	running_close(&r);
}

static void without_a_table_nothing_is_watched(void)
{
	uint32_t place;

	r.places = NULL;
	EXPECT(begin("a:b", "k", &place) && place == 0);
	EXPECT(begin("a:b", "k", &place) && place == 0);
	running_end(&r, place);
}

enum { THREADS = 4, ROUNDS = 20000 };
static atomic_u32 inside, most;

static void *compete(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t place;

		if (!begin("a:b", "k", &place))
			continue;
		if (add_relaxed(&inside, 1) + 1 > 1)
			store_relaxed(&most, 2);
		sub_relaxed(&inside, 1);
		running_end(&r, place);
	}
	return NULL;
}

/* With one key alone in the table nobody frees an earlier place: so never two. */
static void of_many_at_once_one_runs(void)
{
	pthread_t threads[THREADS];

	EXPECT(running_open(&r));
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, compete, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(load_relaxed(&most), 0);
	running_close(&r);
}

TEST_MAIN(
	TEST(a_key_runs_once_until_it_ends),
	TEST(a_full_table_refuses_nobody),
	TEST(without_a_table_nothing_is_watched),
	TEST(of_many_at_once_one_runs))
