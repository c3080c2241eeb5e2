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

static _Thread_local bool changed;

void thread_gives_way(bool does)
{
	struct attributes a = { 0 };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || (does ? a.policy != SCHED_OTHER : !changed))
		return;
	a.size = sizeof a;
	a.policy = does ? SCHED_BATCH : SCHED_OTHER;
	a.runtime = does ? LONGEST_SLICE_NS : 0;         /* 0: the usual one */
	changed = syscall(SYS_sched_setattr, 0, &a, 0) == 0 && does;
}
