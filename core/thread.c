/* core/thread.c - SCHED_BATCH, and the longest slice there is: of two that may run, the kernel takes the one whose slice ends
 * first. Kernels before 6.12 have no slices to ask for, and leave it at the policy.
 */
#include "core/thread.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_SLICE_NS 100000000u

struct attributes {                      /* the kernel's sched_attr, as of its first version */
	uint32_t size, policy;
	uint64_t flags;
	int32_t  nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static _Thread_local struct attributes before;   /* size 0: nothing was changed */

static void give_way(void)
{
	struct attributes a = { 0 }, now;

	if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER)
		return;
	a.size = sizeof a;
	now = a;
	now.policy = SCHED_BATCH;
	now.runtime = LONGEST_SLICE_NS;
	if (syscall(SYS_sched_setattr, 0, &now, 0) == 0)
		before = a;
}

void thread_gives_way(bool does)
{
	if (does && !before.size)
		give_way();
	else if (!does && before.size && syscall(SYS_sched_setattr, 0, &before, 0) == 0)
		before.size = 0;
}
