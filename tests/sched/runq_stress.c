/* tests/sched/runq_stress.c - an owner and three thieves on a queue that begins with two slots and
 * grows under them. Each item comes out once; whoever takes, takes older ones first. */
#include "sched/runq.h"

#include "core/mem.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#ifdef NOH_SANITIZED
#define ITEMS 200000u
#else
#define ITEMS 2000000u
#endif
#define THIEVES 3
#define AT_ONCE 5

static struct {
	struct runq q;
	atomic_u8  *times;
	atomic_u32  done;
} s;

static void got(uint32_t item, uint32_t *newest)
{
	EXPECT(item >= 1 && item <= ITEMS);
	EXPECT(item > *newest);
	*newest = item;
	store_relaxed(&s.times[item], (uint8_t)(load_relaxed(&s.times[item]) + 1));
}

static void *thief(void *arg)
{
	uint32_t out[AT_ONCE], newest = 0, n;
	bool     one = arg != NULL, last;

	do {
		last = load_acquire(&s.done);
		if (one) {
			n = (out[0] = runq_take(&s.q)) != 0;
		} else {
			n = runq_steal(&s.q, out, AT_ONCE);
		}
		for (uint32_t i = 0; i < n; i++)
			got(out[i], &newest);
		if (n == 0)
			sched_yield();
	} while (n || !last);
	return NULL;
}

static void each_item_comes_out_once(void)
{
	pthread_t threads[THIEVES];
	uint64_t  rng = test_seed;
	uint32_t  newest = 0, item = 0;

	memset(&s, 0, sizeof s);
	s.times = mem_zalloc(ITEMS + 1);
	EXPECT(s.times && runq_open(&s.q, 2));
	for (uintptr_t i = 0; i < THIEVES; i++)
		EXPECT(!pthread_create(&threads[i], NULL, thief, (void *)(i & 1)));
	while (item < ITEMS) {
		for (uint64_t n = test_random(&rng) % 6; n > 0 && item < ITEMS; n--)
			EXPECT(runq_push(&s.q, ++item));
		for (uint64_t n = test_random(&rng) % 3; n > 0; n--) {
			uint32_t took = runq_take(&s.q);

			if (took)
				got(took, &newest);
		}
	}
	store_release(&s.done, 1);
	for (int i = 0; i < THIEVES; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(runq_length(&s.q), 0);
	for (uint32_t i = 1; i <= ITEMS; i++)
		if (load_relaxed(&s.times[i]) != 1 && !EXPECT_EQ(load_relaxed(&s.times[i]), 1))
			break;
	runq_close(&s.q);
	mem_free(s.times, ITEMS + 1);
}

TEST_MAIN(TEST(each_item_comes_out_once))
