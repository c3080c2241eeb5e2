#include "sched/park.h"

#include <errno.h>
#include <unistd.h>

void park_sleep(struct park *p, uint64_t timeout_ns)
{
	if (load_acquire(&p->asleep))
		futex_wait(&p->asleep, 1, timeout_ns);
	store_relaxed(&p->asleep, 0);
}

void park_awake(struct park *p)
{
	store_relaxed(&p->asleep, 0);
}

static void wake_by(uint32_t event)
{
	uint64_t one = 1;

	while (write((int)event - 1, &one, sizeof one) < 0 && errno == EINTR)
		;
}

bool park_wake(struct park *p)
{
	uint32_t asleep = 1, event = load_relaxed(&p->event);

	if (!load_seq_cst(&p->asleep) || !cas_acq_rel(&p->asleep, &asleep, 0))
		return false;
	if (event)
		wake_by(event);
	else
		futex_wake_all(&p->asleep);
	return true;
}
