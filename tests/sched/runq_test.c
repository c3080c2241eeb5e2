/* tests/sched/runq_test.c - the run queue by itself, one thread. Orders of steps: tests/interleave. */
#include "sched/runq.h"

#include "tests/lib/test.h"

static struct runq q;

static void push(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i <= to; i++)
		EXPECT(runq_push(&q, i));
}

static void first_in_is_first_out(void)
{
	EXPECT(runq_open(&q, 4));
	EXPECT_EQ(runq_take(&q), 0);
	for (uint32_t lap = 0; lap < 10; lap++) {
		push(3 * lap + 1, 3 * lap + 3);
		EXPECT_EQ(runq_length(&q), 3);
		for (uint32_t i = 1; i <= 3; i++)
			EXPECT_EQ(runq_take(&q), 3 * lap + i);
		EXPECT_EQ(runq_take(&q), 0);
	}
	runq_close(&q);
}

static void it_grows_and_keeps_the_order(void)
{
	EXPECT(runq_open(&q, 2));
	push(1, 1);
	EXPECT_EQ(runq_take(&q), 1);
	push(2, 1000);
	EXPECT_EQ(runq_length(&q), 999);
	for (uint32_t i = 2; i <= 1000; i++)
		EXPECT_EQ(runq_take(&q), i);
	EXPECT_EQ(runq_length(&q), 0);
	runq_close(&q);
}

static void a_thief_gets_the_older_half(void)
{
	uint32_t out[8];

	EXPECT(runq_open(&q, 4));
	EXPECT_EQ(runq_steal(&q, out, 8), 0);
	push(1, 7);
	EXPECT_EQ(runq_steal(&q, out, 8), 4);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(out[i], i + 1);
	EXPECT_EQ(runq_steal(&q, out, 1), 1);
	EXPECT_EQ(out[0], 5);
	EXPECT_EQ(runq_steal(&q, out, 8), 1);
	EXPECT_EQ(runq_steal(&q, out, 8), 1);               /* of one, that one */
	EXPECT_EQ(out[0], 7);
	EXPECT_EQ(runq_steal(&q, out, 8), 0);
	runq_close(&q);
}

static void a_peek_takes_nothing(void)
{
	EXPECT(runq_open(&q, 4));
	EXPECT_EQ(runq_peek(&q, 0), 0);
	push(1, 3);
	EXPECT_EQ(runq_peek(&q, 0), 1);
	EXPECT_EQ(runq_peek(&q, 2), 3);
	EXPECT_EQ(runq_peek(&q, 3), 0);
	EXPECT_EQ(runq_take(&q), 1);
	EXPECT_EQ(runq_peek(&q, 0), 2);
	runq_close(&q);
}

TEST_MAIN(
	TEST(first_in_is_first_out),
	TEST(it_grows_and_keeps_the_order),
	TEST(a_thief_gets_the_older_half),
	TEST(a_peek_takes_nothing))
