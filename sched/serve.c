/* sched/serve.c - running one actor: from BUSY to idle, parked, queued again, or gone.
 *
 * Read sched_serve first. An actor is served until nothing waits, its slice is used up, or it has to
 * rest; then the worker goes on with the actor it handed a message to, if any. Whoever serves owns
 * the cell: its flags, state and ext are plain memory until mailbox_idle, mailbox_park or
 * sched_enqueue gives it away, and not to be touched after.
 */
#include "sched/meter.h"
#include "sched/serve.h"
#include "sched/step.h"
#include "sched/trace.h"

#include <string.h>

/* CELL_EXTRA goes when there is nothing extra any more. */
static void settle_extra(struct cell *c)
{
	if (!c->ext->redo && !c->ext->room_queue && !c->ext->forced && !c->ext->joins)
		c->flags &= (uint8_t)~CELL_EXTRA;
}

/* Who rests for room here is looked at when the mailbox falls to half, and when it rises above it. */
static ALWAYS_INLINE void check_waiters(struct worker *w, struct cell *c, struct type *t)
{
	if (__builtin_expect((load_relaxed(&c->mailbox.word) & MB_WAIT) || (c->flags & CELL_EXTRA), 0)) {
		uint32_t waiting = mailbox_depth(&c->mailbox);

		if ((waiting <= t->half) != (c->ext && c->ext->room_woken))
			rest_wake_some(w, c, t, waiting);
		if (c->flags & CELL_EXTRA)
			settle_extra(c);
	}
}

enum next { AGAIN, GONE };

static enum next nothing_waits(struct worker *w, struct cell *c, struct type *t)
{
	uint64_t word = load_relaxed(&c->mailbox.word);

	if ((word & MB_WAIT) || (c->flags & CELL_EXTRA)) {
		rest_wake_some(w, c, t, 0);
		if (c->flags & CELL_EXTRA)
			settle_extra(c);
		if (c->ext && c->ext->room_queue) {      /* some still rest: come back for them */
			sched_enqueue(&w->mine.port, c);
			return GONE;
		}
	}
	if (word & (MB_WAIT | MB_SYS))
		return AGAIN;
	if (c->flags & (CELL_STOP | CELL_BROKEN)) {
		if (life_deactivate(w, c))
			return GONE;
		if (!(c->flags & CELL_BROKEN) || cell_late(c))
			return AGAIN;
	}                                        /* what cannot be stored now is tried again when it is swept */
	store_relaxed(&c->last_active, w->mine.now_ds);
	return mailbox_idle(&c->mailbox, &w->mine.port.room, t->shared) ? GONE : AGAIN;
}

/* The end of a turn over one message. Returns the actor to go on with if there was a hand-off. */
struct cell *serve_finish(struct worker *w, struct cell *c, struct type *ty, const noh_msg *m, const struct msg *owned,
			  struct slot *slot, int rc, uint32_t budget, struct effect **in_hand)
{
	struct effect *handed;

	rc = end_turn(w, c, rc, budget, true, false, &handed);
	if (__builtin_expect(rc == NOH_FULL, 0))
		extra_keep(w, c, m, owned, true);
	else
		msg_free_body(owned);
	if (slot)
		mailbox_release(slot);
	if (handed) {
		*in_hand = handed;
		store_relaxed(&c->last_active, w->mine.now_ds);
		if (!mailbox_idle_in_place(&c->mailbox) &&
		    !mailbox_idle(&c->mailbox, &w->mine.port.room, ty->shared))
			sched_enqueue(&w->mine.port, c);
		return cell_at(w->fixed.sched, handed->cell);
	}
	after_turn(w, c, rc);
	return NULL;
}

/* In a box with a directory, or of a type with a deadline: is there room for its end to be recorded, was it handled before, did it end the
 * process too often? If it may run, a note is taken of it. */
static bool may_run(struct worker *w, struct cell *c, struct type *ty, const noh_msg *m,
		    const struct msg *owned, struct slot *slot)
{
	if (ty->durable && durable_waits(w, m)) {
		if (!slot)
			count_one(&w->mine.port.types[ty->index].accepted, 1);
		extra_keep(w, c, m, owned, true);
	} else if (poison_refused(w, c, m)) {
		if (!slot)
			count_one(&w->mine.port.types[ty->index].accepted, 1);
		msg_free_body(owned);
	} else if ((m->flags & MSG_WRAPPED) && ty->durable && durable_repeated(w, c, m)) {
		if (!slot)
			count_one(&w->mine.port.types[ty->index].accepted, 1);
		count_one(&w->mine.port.types[ty->index].handled, 1);
		msg_free_body(owned);
	} else {
		poison_note(w, c, m, 1);
		supervise_hook_begins(w, ty);
		return true;
	}
	if (slot)
		mailbox_release(slot);
	return false;
}

/* One message: out of the mailbox (slot), or handed over by its sender. */
static ALWAYS_INLINE struct cell *serve_message(struct worker *w, struct cell *c, struct type *ty,
						const struct msg *owned, struct slot *slot,
						uint32_t budget, struct effect **in_hand)
{
	struct noh_turn *t = &w->mine.turn;
	noh_msg m;
	int rc;

	to_public(&m, owned);
	if (__builtin_expect(ty->noted, 0) && !may_run(w, c, ty, &m, owned, slot))
		return NULL;
	turn_begin(w, c, ty, &m, 1);
	if (__builtin_expect(m.flags & MSG_WRAPPED, 0))
		trace_turn_begins(w);
	if (!slot)
		count_one(&t->counts->accepted, 1);
	rc = meter_hook(w, ty, &m);
	if (__builtin_expect(ty->noted, 0)) {
		poison_done(w);
		rc = supervise_hook_ended(w, rc);
	}
	if (slot && rc == NOH_OK && !(t->so_far.flags & ~(uint32_t)TURN_ADDRESS) && !t->fx->count &&
	    !m.reply_to && owned->len <= MSG_INLINE && !load_relaxed(&ty->odd)) {      /* it only changed its state */
		if (t->so_far.state)
			turn_changed(w, c);
		count_one(&t->counts->handled, 1);
		turn_counted(c, ty, 1);
		mailbox_release(slot);
		return NULL;
	}
	return serve_finish(w, c, ty, &m, owned, slot, rc, budget, in_hand);
}

#define HAND_ON_LEAST 8                /* what a chain may need: one whose slice ends within it leaves an actor in the queue */

/* A chain has ended: the next in hand, if enough is left of the slice and its turn has come anyway (run_some in worker.c).
 * NULL: ask there. */
static ALWAYS_INLINE struct effect *next_in_hand(struct worker *w, uint32_t left)
{
	struct sched *s = w->fixed.sched;
	struct effect *e;

	if (left < HAND_ON_LEAST || sched_is_durable(s) || (w->mine.in_a_row >= HANDS / 4 && runq_length(&w->runq)))
		return NULL;
	e = s->worker_count == 1 ? hands_take_alone(&w->hands) : hands_take(&w->hands);
	if (e)
		w->mine.in_a_row++;
	return e;
}

/* Message in hand, hand-off after hand-off, and one in hand after the other: as long as nothing unusual happens, this is
 * all there is to a message between actors of one worker. A turn that is to be measured is unusual. Returns the actor to
 * go on with the general way, with *in_hand or without. */
static struct cell *serve_chain(struct worker *w, struct cell *c, struct effect **in_hand,
				uint32_t *budget)
{
	struct noh_turn *t = &w->mine.turn;
	struct effect *e = *in_hand;
	uint32_t left = *budget, end = meter_stretch(w, left);
	noh_msg m = { .status = NOH_OK };        /* no answer, no timer, nobody waits */

	while (left > end) {
		struct type *ty = cell_type(w->fixed.sched, c);
		struct effects *fx = t->fx;
		uint64_t word;
		int rc;

		if (load_relaxed(&ty->odd) || e->msg.len > MSG_INLINE || e->msg.reply ||
		    (load_relaxed(&c->mailbox.word) & MB_SYS) ||
		    (!cell_plain(c) && !life_activate_new(w, c, ty)))
			break;
		memcpy(&m.kind, &e->msg.kind, 8);
		m.body = e->msg.body.bytes;
		turn_begin_plain(w, c, ty, &m, 1);
		count_one(&t->counts->accepted, 1);
		rc = ty->single(t, &m);
		word = load_relaxed(&c->mailbox.word);
		left--;
		if (rc != NOH_OK || (t->so_far.flags & ~(uint32_t)TURN_ADDRESS) || !mb_in_place(word)) {
			struct cell *next = serve_finish(w, c, ty, &m, &e->msg, NULL, rc, left, in_hand);

			if (!next)
				*in_hand = NULL;
			*budget = left;
			return next ? next : c;
		}
		if (t->so_far.state)
			turn_changed(w, c);
		e = fx->count ? turn_publish_all(w, true) : NULL;
		count_one(&t->counts->handled, 1);
		turn_counted(c, ty, 1);
		store_relaxed(&c->last_active, w->mine.now_ds);
		uint64_t idle = word ^ (uint64_t)(MB_IDLE ^ MB_BUSY) << MB_STATE_SHIFT;

		if (__builtin_expect(!e, 0)) {   /* nobody to go on with: the chain ends here */
			bool idles = !(t->so_far.flags & TURN_LATE) && cas_acq_rel(&c->mailbox.word, &word, idle);

			if (!idles || !(e = next_in_hand(w, left - end))) {
				*in_hand = NULL;
				*budget = left;
				return idles ? NULL : c;
			}
		} else if (!cas_acq_rel(&c->mailbox.word, &word, idle)) {
			sched_enqueue(&w->mine.port, c);
		}
		c = cell_at(w->fixed.sched, e->cell);
	}
	*in_hand = e;
	*budget = left;
	return c;
}

enum ready { READY, LOOK_AGAIN, PARKED, NEVER_USED };

/* Swept while nobody ever wrote to it: nothing to activate for. */
static bool never_used(const struct cell *c, uint64_t word, const struct effect *in_hand)
{
	return (c->flags & CELL_STOP) && !(word & (MB_SYS | MB_WAIT | MB_RING_MASK)) && !in_hand &&
	       !(c->ext && c->ext->redo);
}

/* Its next message may have no token yet: then it rests until that comes. */
static enum ready rest_for_token(struct worker *w, struct cell *c, struct effect **in_hand)
{
	if (!limit_holds(w, c, *in_hand != NULL))
		return READY;
	return limit_park(w, c, in_hand) ? PARKED : LOOK_AGAIN;
}

/* Whatever comes before the next message: the system lane, resting, activation. Who is late is its worker's (late.h). */
static enum ready make_ready(struct worker *w, struct cell *c, struct effect **in_hand)
{
	if (!cell_late(c) && (load_relaxed(&c->mailbox.word) & MB_SYS))
		extra_sys_lane(w, c);
	if (__builtin_expect(cell_late(c), 0)) {
		if (*in_hand)
			extra_put_down(w, c, in_hand);
		return PARKED;
	}
	if (cell_rests(c)) {
		if (*in_hand)
			extra_put_down(w, c, in_hand);
		if (c->ext->joins)
			step_yield(w, c);
		return rest_park(w, c) ? PARKED : LOOK_AGAIN;
	}
	if (cell_life(c) != NOH_ACTIVE && !(c->flags & CELL_BROKEN)) {
		if (never_used(c, load_relaxed(&c->mailbox.word), *in_hand))
			return NEVER_USED;
		serve_activate(w, c);
		return LOOK_AGAIN;
	}
	return rest_for_token(w, c, in_hand);
}

enum taken { MESSAGE, NO_MESSAGE, LEFT };

/* What comes before the mailbox's next message: one that comes again, or a step that waits for this actor. */
static enum taken take_extra(struct worker *w, struct cell *c)
{
	if (c->ext->redo) {
		extra_redo(w, c);
		return NO_MESSAGE;
	}
	if (!c->ext->joins)
		return MESSAGE;
	switch (step_meet(w, c)) {
	case STEP_HOLDS: return LEFT;
	case STEP_WENT: return NO_MESSAGE;
	default: return MESSAGE;
	}
}

/* The next message of the mailbox, if it is to be handled alone. */
static enum taken take_message(struct worker *w, struct cell *c, struct type *t, struct slot **slot,
			       struct mb_cursor *cur, uint32_t *budget)
{
	bool plain = !load_relaxed(&t->odd) && !t->shared && cell_plain(c);
	uint32_t n;

	cur->id = 0;
	switch (plain ? mailbox_look(&c->mailbox, &w->mine.port.room, cur)
		      : mailbox_take(&c->mailbox, &w->mine.port.room, t->shared, slot)) {
	case MB_TAKEN:
		if (!plain)
			break;
		(*budget)++;             /* it will be taken, with those behind it */
		return NO_MESSAGE;
	case MB_EMPTY:
		(*budget)++;             /* nothing was handled */
		return nothing_waits(w, c, t) == GONE ? LEFT : NO_MESSAGE;
	case MB_UNPUBLISHED:
		cpu_relax();
		sched_enqueue(&w->mine.port, c);
		return LEFT;
	}
	if (__builtin_expect(c->flags & (CELL_EXTRA | CELL_BROKEN), 0) && cell_refuses(c)) {
		extra_refuse(w, c, &(*slot)->msg);
		mailbox_release(*slot);
		return NO_MESSAGE;
	}
	if (!t->windowed) {
		meter_took(w, c, t, 1);
		if (!t->shared)
			mailbox_cursor(&c->mailbox, &w->mine.port.room, cur);
		return MESSAGE;
	}
	n = window_serve(w, c, t, *slot);
	*budget = *budget > n ? *budget - n + 1 : 1;
	return NO_MESSAGE;
}

/* More waits than there is room for: the oldest goes, unless it was recorded. */
static bool shed(struct worker *w, struct cell *c, struct type *t, struct slot *slot)
{
	const struct msg *m = &slot->msg;

	if (mailbox_depth(&c->mailbox) < t->capacity ||
	    ((m->len & MSG_WRAPPED) && ((struct envelope *)m->body.big)->seq))
		return false;
	count_one(&w->mine.port.types[t->index].dropped_oldest, 1);
	msg_dispose(&w->mine.port, m, NOH_FULL);
	mailbox_release(slot);
	return true;
}

static struct cell *serve(struct worker *w, struct cell *c, struct effect **in_hand, uint32_t *budget);

/* Of a type with so many turns at once: as long as c is served it holds one of their places. */
static struct cell *serve_in_place(struct worker *w, struct cell *c, struct type *t, struct effect **in_hand,
				   uint32_t *budget)
{
	struct cell *next;

	if (!limit_try_place(c, t)) {
		if (*in_hand)
			extra_put_down(w, c, in_hand);
		if (!limit_wait_place(w, c, t))
			return NULL;
	}
	w->mine.placed = c;
	next = serve(w, c, in_hand, budget);
	w->mine.placed = NULL;
	limit_leave_place(&w->mine.port, t);
	return next;
}

/* What a guarded type is looked at for before each message. PARKED: it is not ours any more. */
static enum ready look_first(struct worker *w, struct cell *c, struct type *t, struct effect **in_hand)
{
	if (t->durable && (!durable_room(w) || extra_waits(w, c)) && !cell_late(c)) {
		if (w->mine.read_only)
			step_refuse(w, c, NOH_ENOSPC);
		if (*in_hand)
			extra_put_down(w, c, in_hand);
		sched_enqueue(&w->mine.port, c);
		return PARKED;
	}
	if (!load_relaxed(&t->limits) || (load_relaxed(&c->mailbox.word) & MB_SYS) || !cell_ready(c))
		return READY;
	return rest_for_token(w, c, in_hand);
}

/* Others come first now. Who has used up its slice queues: a pair that hands on would go on for ever. Who has not, and has
 * nothing waiting, is idle: in the queue nothing could be handed to it, and those in hand that write to it would fill its
 * mailbox and rest. */
static void leave(struct worker *w, struct cell *c, bool used_up)
{
	if (cell_late(c))
		return;
	if (!used_up && cell_plain(c)) {
		store_relaxed(&c->last_active, w->mine.now_ds);
		if (mailbox_idle_in_place(&c->mailbox))
			return;
	}
	sched_enqueue(&w->mine.port, c);
}

/* Serve c; returns the actor to go on with, or NULL. */
static struct cell *serve(struct worker *w, struct cell *c, struct effect **in_hand,
			  uint32_t *budget)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct mb_cursor cur = { .id = 0 };

	for (;;) {
		const struct msg *m = NULL;
		struct slot *slot = NULL;
		struct cell *next = NULL;
		enum taken extra = MESSAGE;
		uint32_t ran;

		if (__builtin_expect(load_relaxed(&t->guarded), 0)) {
			enum ready r;

			if ((load_relaxed(&t->limits) & LIMIT_TURNS) && w->mine.placed != c)
				return serve_in_place(w, c, t, in_hand, budget);
			r = look_first(w, c, t, in_hand);
			if (r == PARKED)
				return NULL;
			cur.id = r == READY ? cur.id : 0;
			if (r != READY)
				continue;
		}
		if (__builtin_expect((load_relaxed(&c->mailbox.word) & MB_SYS) || !cell_ready(c), 0)) {
			enum ready r = make_ready(w, c, in_hand);

			if (r == PARKED || (r == NEVER_USED && life_deactivate(w, c)))
				return NULL;
			cur.id = 0;      /* it may be broken: then what waits is refused */
			if (r != READY)
				continue;
		}
		if (__builtin_expect(c->flags & CELL_EXTRA, 0)) {
			/* What its activation brought from storage was sent before. */
			if (*in_hand && c->ext->redo)
				extra_put_down(w, c, in_hand);
			if (c->ext->forced)
				cur.id = 0;      /* what waits is dropped */
		}
		if (*in_hand) {
			m = &(*in_hand)->msg;
			*in_hand = NULL;
			if (__builtin_expect(c->flags & CELL_BROKEN, 0)) {
				count_one(&w->mine.port.types[t->index].accepted, 1);
				extra_refuse(w, c, m);
				m = NULL;
			}
		} else if (__builtin_expect(c->flags & CELL_EXTRA, 0) &&
			   (extra = take_extra(w, c)) != MESSAGE) {
			if (extra == LEFT)
				return NULL;
		} else if (cur.id && !load_relaxed(&t->odd) && (ran = serve_ring(w, c, t, &cur, *budget, in_hand, &next)) != 0) {
			*budget -= next ? ran : ran - 1;
		} else if (cur.id && mailbox_take_next(&c->mailbox, &cur, &slot)) {
			m = &slot->msg;
			meter_took(w, c, t, 1);
		} else {
			enum taken got = take_message(w, c, t, &slot, &cur, budget);

			if (got == LEFT)
				return NULL;
			if (got == MESSAGE)
				m = &slot->msg;
		}
		if (__builtin_expect(load_relaxed(&t->guarded), 0) && m) {
			if (t->sheds && slot && shed(w, c, t, slot))
				m = NULL;
			else if (load_relaxed(&t->limits))
				limit_used(c, 1);
		}
		if (m) {
			next = serve_message(w, c, t, m, slot, *budget, in_hand);
			*budget -= next != NULL;
		}
		if (next)
			return next;
		if (m && !slot && *budget > 1 && cell_plain(c) && !load_relaxed(&t->limits)) {   /* it came by hand: most are alone */
			store_relaxed(&c->last_active, w->mine.now_ds);
			if (mailbox_idle_in_place(&c->mailbox))
				return NULL;
		}
		check_waiters(w, c, t);
		/* Used up its slice; or it has given others enough to do that they should come first. */
		if (--*budget == 0 || hands_many(&w->hands)) {
			leave(w, c, *budget == 0);
			return NULL;
		}
	}
}

static void serve_all(struct worker *w, struct cell *c, struct effect *in_hand)
{
	uint32_t budget = SLICE;

	store_relaxed(&w->mine.turn.cell, c);
	store_relaxed(&w->shown.serving, 1);
	while (c) {
		if (in_hand && !in_hand->msg.reply) {
			c = serve_chain(w, c, &in_hand, &budget);
			if (!c)
				break;
		}
		c = serve(w, c, &in_hand, &budget);
	}
	store_relaxed(&w->shown.serving, 0);
}

void sched_serve(struct worker *w, struct cell *c)
{
	serve_all(w, c, NULL);
}

void sched_serve_hand(struct worker *w, struct effect *e)
{
	serve_all(w, cell_at(w->fixed.sched, e->cell), e);
}
