/* tests/core/thread_test.c */
#include "core/thread.h"

#include "tests/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

struct asked {
	int before, policy, after, nice, nice_before;
};

static void *gives_way(void *arg)
{
	struct asked *a = arg;
	struct sched_param none = { 0 };

	if (a->before != SCHED_OTHER)
		(void)sched_setscheduler(0, a->before, &none);
	a->nice_before = getpriority(PRIO_PROCESS, 0);
	thread_gives_way(true);
	a->policy = sched_getscheduler(0);
	a->nice = getpriority(PRIO_PROCESS, 0);
	thread_gives_way(false);
	a->after = sched_getscheduler(0);
	return NULL;
}

static void run(struct asked *a)
{
	pthread_t t;

	EXPECT_EQ(pthread_create(&t, NULL, gives_way, a), 0);
	EXPECT_EQ(pthread_join(t, NULL), 0);
}

static void a_thread_that_gives_way_keeps_its_share_of_the_core(void)
{
	struct asked a = { .before = SCHED_OTHER };

	run(&a);
	EXPECT_EQ(a.policy, SCHED_BATCH);
	EXPECT_EQ(a.nice, a.nice_before);
	EXPECT_EQ(a.after, SCHED_OTHER);
	EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);   /* nobody else does */
}

static void a_policy_that_somebody_has_chosen_stays(void)
{
	static const int chosen[] = { SCHED_IDLE, SCHED_BATCH };

	for (int i = 0; i < 2; i++) {
		struct asked a = { .before = chosen[i] };

		run(&a);
		EXPECT_EQ(a.policy, chosen[i]);
		EXPECT_EQ(a.after, chosen[i]);
	}
}

TEST_MAIN(
	TEST(a_thread_that_gives_way_keeps_its_share_of_the_core),
	TEST(a_policy_that_somebody_has_chosen_stays))
