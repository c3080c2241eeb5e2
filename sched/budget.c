/* sched/budget.c - how much memory actors take, and how much they may.
 *
 * The budget is the whole box's. Out of it come first what is there with no actor at all and what folds need (aside),
 * then an eighth for states that were sent home and are not folded yet (others); actors have the rest. Above it the
 * coldest go (sweep.c); a ninth part more, and nobody is made any more (birth.c). The memory of one that went serves
 * the next, it is not given back: so the shares do not flow into each other as things go.
 *
 * To send home who is not folded moves a state from one share to the other, and no further. So once half of the
 * eighth is used (crowded), they stay and those go whom the disk has already; and the keeper is asked to fold. If
 * there are none, who comes new waits for that.
 *
 * Who is down (supervise.h), or rests, does not go. If its on_activate failed because others were refused to it, it is
 * down until there is room; and it may be what takes the room, alone or with more of its kind. So once the sweep has tried
 * all and nobody could go, the next activation that is refused somebody gets all it asks for. One at a time: whom it
 * brought can go again, and until then there is nothing to be had for the others.
 *
 * A quarter is the actors' whatever happens, even if a crash has left more to be folded than there is memory for:
 * with less nothing could be done.
 */
#include "sched/sched.h"

uint64_t sched_bytes(struct sched *s)
{
	uint64_t given = sched_sum(s, offsetof(struct port, bytes_given));
	uint64_t taken = sched_sum(s, offsetof(struct port, bytes_taken));
	uint64_t live = taken > given ? taken - given : 0;

	return live + load_relaxed(&s->directory.bytes);
}

/* Once a millisecond is enough: nothing grows out of its margins so fast. */
void sched_weigh(struct sched *s, uint64_t now_ms)
{
	uint64_t at = load_relaxed(&s->budget_ms), budget = load_relaxed(&s->memory_budget), others, taken, left;

	if (at == now_ms + 1 || !cas_relaxed(&s->budget_ms, &at, now_ms + 1))
		return;
	if (!s->memory.arg) {
		store_relaxed(&s->actor_budget, budget);
		return;
	}
	others = s->memory.others(s->memory.arg);
	store_relaxed(&s->crowded, others > budget / 16);
	taken = load_relaxed(&s->memory.aside) + (others > budget / 8 ? others : budget / 8);
	left = budget > taken + budget / 4 ? budget - taken : budget / 4;
	left -= left / 9;
	store_relaxed(&s->actor_budget, left);
	if (others > budget / 16 && sched_bytes(s) > left)
		s->memory.lighten(s->memory.arg);
}

bool sched_may_exceed(noh_turn *t)
{
	atomic_u32 *nobody_goes = &t->sched->nobody_goes;

	if (!(t->so_far.flags & TURN_COMES))
		return false;
	if (!(t->so_far.flags & TURN_EXCEEDS) && load_relaxed(nobody_goes) && swap_acq_rel(nobody_goes, 0))
		t->so_far.flags |= TURN_EXCEEDS;
	return t->so_far.flags & TURN_EXCEEDS;
}
