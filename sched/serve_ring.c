/* sched/serve_ring.c - message after message out of one ring, the short way.
 *
 * Between two messages that do nothing unusual hardly anything changes: the actor, its type, what is counted and
 * where. So it is set up once for a stretch of messages, and what might end the stretch is looked at as cheaply as
 * it goes. A stretch ends where anything else has to be done first: a flag in the word, the next turn that is
 * measured, a mailbox that others wait for and that falls to half. Its turns are turns like any other.
 */
#include "sched/meter.h"
#include "sched/serve.h"

#define LOOK_EVERY 16            /* messages, while the mailbox may rise above half */

static inline uint32_t lesser(uint32_t a, int64_t b)
{
	return b < 0 ? 0 : b < (int64_t)a ? (uint32_t)b : a;
}

/* How many messages may go by; serve.c does whatever comes then. */
static uint32_t stretch(struct worker *w, struct cell *c, struct type *ty, uint64_t word, uint32_t budget)
{
	uint64_t head = mb_tail(load_relaxed(&c->mailbox.head));
	uint32_t most = budget - meter_stretch(w, budget);

	if ((word & MB_SYS) || !cell_ready(c) || ((c->flags & CELL_EXTRA) && (c->ext->redo || c->ext->joins || c->ext->forced)))
		return 0;
	if (load_relaxed(&ty->probe.cell) == c)          /* the one that is measured comes behind them */
		most = lesser(most, mb_distance(load_relaxed(&ty->probe.upto), head) - 1);
	if ((word & MB_WAIT) || (c->flags & CELL_EXTRA)) {
		int64_t above = mb_distance(mb_tail(word), head) - (int64_t)ty->half;
		bool    woken = c->ext && c->ext->room_woken;

		if (woken)
			return above > 0 ? lesser(most, 1) : lesser(most, LOOK_EVERY);
		return lesser(most, above > 0 ? above : 1);
	}
	return most;
}

/* What the turn wrote goes out, if it did nothing else and there is more to do here: else the last of it may be
 * handed on. */
static bool goes_on(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	if (rc != NOH_OK || (t->so_far.flags & ~(uint32_t)TURN_ADDRESS) ||
	    mb_tail(load_relaxed(&c->mailbox.word)) == mb_tail(load_relaxed(&c->mailbox.head)))
		return false;
	if (t->so_far.state)
		turn_changed(w, c);
	turn_publish(w, t->fx->count);
	return true;
}

uint32_t serve_ring(struct worker *w, struct cell *c, struct type *ty, struct mb_cursor *cursor, uint32_t budget,
		    struct effect **in_hand, struct cell **next)
{
	struct noh_turn *t = &w->mine.turn;
	struct effects *fx = t->fx;
	struct mb_cursor cur = *cursor;
	uint64_t word = load_relaxed(&c->mailbox.word), ends = MB_SYS | (~word & MB_WAIT);
	const struct cell *probed = load_relaxed(&ty->probe.cell);
	uint32_t n = 0, counting = 0, most = stretch(w, c, ty, word, budget);
	noh_msg m = { .status = NOH_OK };        /* no answer, no timer, nobody waits */

	turn_begin_stretch(w, c, ty, &m, 1);
	while (n < most && mailbox_ready(&cur)) {
		struct slot *slot = cur.slot;
		int rc;

		if (slot->msg.len > MSG_INLINE || slot->msg.reply || (load_relaxed(&c->mailbox.word) & ends) ||
		    load_relaxed(&ty->probe.cell) != probed)
			break;
		mailbox_step(&c->mailbox, &cur);
		memcpy(&m.kind, &slot->msg.kind, 8);
		m.body = slot->msg.body.bytes;
		turn_begin_next(w);
		rc = ty->single(t, &m);
		n++;
		if (((uint32_t)rc | (t->so_far.flags & ~(uint32_t)TURN_ADDRESS) | fx->count) != 0) {
			if (!goes_on(w, c, rc)) {
				turn_counted(c, ty, counting);   /* it may not be ours after this */
				counting = 0;
				*next = serve_finish(w, c, ty, &m, &slot->msg, slot, rc, budget - n + 1, in_hand);
				break;
			}
			if (hands_many(&w->hands) || !cell_ready(c))
				most = n;
		} else if (t->so_far.state) {
			turn_changed(w, c);
		}
		count_one(&t->counts->handled, 1);
		counting++;
		mailbox_release(slot);
	}
	if (counting)
		turn_counted(c, ty, counting);
	*cursor = cur;
	return n;
}
