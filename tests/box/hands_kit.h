/* tests/box/hands_kit.h - a box moved by hand: one worker, no thread, and a clock that stands still until it is told. */
#ifndef NOH_TESTS_BOX_HANDS_KIT_H
#define NOH_TESTS_BOX_HANDS_KIT_H

#include "box/box.h"
#include "tests/box/kit.h"

static struct clock_virtual hands;

static inline noh_box *hands_start(const noh_type *const *types)
{
	noh_options o = kit_options(1);
	noh_box *box = kit_open(&o, types);

	clock_virtual_init(&hands, UINT64_C(1000000000000));
	box->sched.clock = hands.clock;
	EXPECT_EQ(box_start_stepped(box), NOH_OK);
	return box;
}

/* Until nothing is to be done at this instant. */
static inline void hands_run(noh_box *box)
{
	struct worker *w = &box->sched.workers[0];

	sched_set_self(w);
	while (sched_pass(w) > 0 || sched_has_work(w))
		;
	sched_set_self(NULL);
}

static inline void hands_after_ms(noh_box *box, uint64_t ms)
{
	clock_virtual_advance(&hands, ms * 1000000u);
	hands_run(box);
}

#endif
