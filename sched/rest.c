/* sched/rest.c - resting: an actor that filled a mailbox, or waits for an answer, and who wakes it.
 *
 * An actor that rests is PARKED; mailbox.link names the cell it rests on. Nobody rests in a circle.
 */
#include "sched/serve.h"

#define CIRCLE_HOPS 10000

/* Does whoever c rests on rest, in the end, on c? All of a standing circle are PARKED, and the last
 * of them to park sees all the others so (park is seq_cst): he finds it. */
static bool in_circle(struct sched *s, const struct cell *c, uint32_t on)
{
	uint32_t me = cell_number(s, c);

	for (int hops = 0; hops < CIRCLE_HOPS; hops++) {
		struct cell *other;

		if (on == me)
			return true;
		if (on == 0)
			return false;
		other = cell_at(s, on);
		if (mb_state(load_seq_cst(&other->mailbox.word)) != MB_PARKED)
			return false;
		on = load_relaxed(&other->mailbox.link);
	}
	return false;
}

/* After a turn that filled a mailbox: c rests until that one is at half. */
static void block(struct worker *w, struct cell *c, uint32_t on, uint32_t gen)
{
	struct port *p = &w->mine.port;
	struct cell *to = cell_at(w->fixed.sched, on);
	struct type *ty = cell_type(w->fixed.sched, to);
	struct ext  *x = cell_ext(c);
	struct sysmsg *n;

	if (!x || load_acquire(&to->mailbox.gen) != gen || mailbox_depth(&to->mailbox) <= ty->half ||
	    (c->flags & (CELL_WAITING | CELL_BLOCKED)))
		return;
	n = node_take(p, SYS_ROOM);
	if (!n)
		return;
	n->token = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;
	x->rests_on = on;
	c->flags |= CELL_BLOCKED;
	n = mailbox_ask_room(&to->mailbox, n);
	if (n)
		sched_wake_waiters(p, n);
}

void rest_after_turn(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	if (rc == NOH_FULL) {            /* or it is down: then it is on nobody */
		if (t->so_far.full_on)
			block(w, c, t->so_far.full_on, t->so_far.full_gen);
		return;
	}
	if (rc != NOH_OK)
		return;
	if (__builtin_expect(t->so_far.wait_token != 0, 0)) {
		if (pending_waits(t->sched, t->so_far.wait_token)) {
			c->ext->waits_for = t->so_far.wait_token;
			c->ext->rests_on = t->so_far.wait_on;
			c->flags |= CELL_WAITING;
		}
	} else if (__builtin_expect(t->so_far.block_on != 0, 0)) {
		block(w, c, t->so_far.block_on, t->so_far.block_gen);
	}
}

/* Whoever is full and rests himself, in a circle, cannot empty his mailbox: he goes on. */
static void let_run(struct worker *w, uint32_t on)
{
	struct cell *c = cell_at(w->fixed.sched, on);
	struct sysmsg *n = node_take(&w->mine.port, SYS_ROOM);

	if (n)
		sched_sys(&w->mine.port, c, load_acquire(&c->mailbox.gen), n);
}

/* True: c is parked, and not ours any more. */
bool rest_park(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	uint32_t on = c->ext->rests_on;

	store_relaxed(&c->mailbox.link, on);
	if (!mailbox_park(&c->mailbox))
		return false;
	if (!in_circle(s, c, on) || !mailbox_wake(&c->mailbox))
		return true;
	if (c->flags & CELL_BLOCKED)
		let_run(w, on);
	c->flags &= (uint8_t)~CELL_BLOCKED;
	if (c->flags & CELL_WAITING)
		(void)pending_complete(&w->mine.port, c->ext->waits_for, NOH_ECYCLE, NULL, 0);
	return false;
}

/* Who rests until there is room here is woken in small groups: all at once they would only fill the
 * mailbox to its limit and be refused. A group that left the mailbox empty was too small, one that
 * filled it too large. */
void rest_wake_some(struct worker *w, struct cell *c, struct type *t, uint32_t waiting)
{
	struct sysmsg *n, *first = NULL;
	struct ext *x = c->ext;

	if (waiting > t->half) {                 /* the flag stays up */
		if (x && x->room_woken && waiting >= t->capacity && x->room_batch > 1)
			x->room_batch /= 2;
		if (x)
			x->room_woken = false;
		return;
	}
	n = mailbox_take_waiters(&c->mailbox);
	x = n ? cell_ext(c) : x;
	if (!x) {                                /* only outside threads; or no memory to be careful */
		sched_wake_waiters(&w->mine.port, n);
		return;
	}
	if (!x->room_queue)
		x->room_end = &x->room_queue;
	for (*x->room_end = n; n; n = n->next)
		x->room_end = &n->next;
	if (!x->room_woken || waiting == 0) {
		if (waiting == 0 && x->room_woken && x->room_batch < t->half)
			x->room_batch *= 2;
		if (x->room_batch == 0)
			x->room_batch = 1;
		x->room_woken = true;
		n = first = x->room_queue;
		for (uint32_t i = 1; n && n->next && i < x->room_batch; i++)
			n = n->next;
		if (n) {
			x->room_queue = n->next;
			n->next = NULL;
		}
	}
	sched_wake_waiters(&w->mine.port, first);
	if (x->room_queue)
		c->flags |= CELL_EXTRA;
}
