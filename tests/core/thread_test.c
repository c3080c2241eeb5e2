/* tests/core/thread_test.c */
#include "core/thread.h"

#include "tests/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct asked {
	int before, policy, after, nice, nice_before;
	uint64_t slice, slice_after;
};

struct kernels_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t  nice;
	uint32_t priority;
	uint64_t slice, deadline, period;
};

static struct kernels_attributes now(void)
{
	struct kernels_attributes a = { 0 };

	EXPECT_EQ(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
	a.size = sizeof a;
	return a;
}

static void ask_for_slice(uint64_t ns)
{
	struct kernels_attributes a = now();

	a.slice = ns;
	EXPECT_EQ(syscall(SYS_sched_setattr, 0, &a, 0), 0);
}

static void *gives_way(void *arg)
{
	struct asked *a = arg;
	struct sched_param none = { 0 };

	if (a->before != SCHED_OTHER)
		(void)sched_setscheduler(0, a->before, &none);
	if (a->slice)
		ask_for_slice(a->slice);
	a->slice = now().slice;                  /* 0 for ever, on kernels without slices */
	a->nice_before = getpriority(PRIO_PROCESS, 0);
	thread_gives_way(true);
	a->policy = sched_getscheduler(0);
	a->nice = getpriority(PRIO_PROCESS, 0);
	thread_gives_way(false);
	a->after = sched_getscheduler(0);
	a->slice_after = now().slice;
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

static void a_slice_that_somebody_has_chosen_comes_back(void)
{
	struct asked a = { .before = SCHED_OTHER, .slice = 5000000 };

	run(&a);
	EXPECT_EQ(a.policy, SCHED_BATCH);
	EXPECT_EQ(a.slice_after, a.slice);
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
	TEST(a_slice_that_somebody_has_chosen_comes_back),
	TEST(a_policy_that_somebody_has_chosen_stays))
