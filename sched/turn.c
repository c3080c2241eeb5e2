/* sched/turn.c - the end of a turn: everything at once, or nothing (P4).
 *
 * State is changed in place with a copy kept aside (with read-only kinds: in a copy, as readers see
 * it at any time), messages and answers go to a list, entries of the key-value part are
 * changed in place with an undo log, schedules enter the wheel but not the actor. turn_commit makes
 * all of it real, in the order sent; turn_undo leaves no trace. Nothing of a turn is visible to
 * another thread before its commit, so a turn that hangs holds up nobody it has written to.
 *
 * Hand-off: if the actor has nothing left to do and the last message it sent is for an idle actor,
 * commit claims that actor and the worker goes on with it at once, message in hand: no ring, no run
 * queue. The claim comes before the sender is released, so nobody's later message can overtake (P3).
 */
#include "core/plant.h"
#include "sched/durable.h"
#include "sched/events.h"
#include "sched/kin.h"
#include "sched/late.h"
#include "sched/newborn.h"
#include "sched/notice.h"
#include "sched/trace.h"
#include "sched/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ── bodies ── */

bool effects_grow(struct effects *fx)
{
	uint32_t room = fx->room ? fx->room * 2 : 64;
	struct effect *list;

	list = room > EFFECTS_MAX ? NULL : mem_aligned(CACHE_LINE, room * sizeof *list);
	if (!list)
		return false;
	if (fx->count)
		memcpy(list, fx->list, fx->count * sizeof *list);
	mem_free(fx->list, fx->room * sizeof *list);
	fx->list = list;
	fx->room = room;
	return true;
}

bool msg_set_body(struct msg *m, const void *body, size_t len)
{
	return set_body(m, body, len);
}

/* ── commit, undo ── */

/* With read-only kinds the state is copied by readers on other threads at any time: a version that
 * is odd while it changes, and word-sized atomic copies, make a torn one visible to them. */
void turn_publish_state(struct cell *c, struct type *ty, const void *state)
{
	uint8_t *to = body_state(ty, c->body);

	if (!ty->reads) {
		copy_words(to, state, ty->state_words);
		return;
	}
	atomic_u64 *version = (atomic_u64 *)(void *)(c->body->data + ty->version_off);
	atomic_u64 *words = (atomic_u64 *)(void *)to;
	uint64_t    v = load_relaxed(version);
	size_t      n = (ty->pub.state_size + 7u) / 8;

	(void)swap_acq_rel(version, v + 1);
	for (size_t i = 0; i < n; i++) {
		uint64_t x = 0;
		size_t   left = ty->pub.state_size - i * 8;

		memcpy(&x, (const uint8_t *)state + i * 8, left < 8 ? left : 8);
		store_release(&words[i], x);
	}
	store_release(version, v + 2);
}

static void apply_schedules(struct worker *w, struct noh_turn *t)
{
	struct ext *x = t->cell->ext;
	uint64_t    self = ref_make(cell_number(t->sched, t->cell),
				    load_relaxed(&t->cell->mailbox.gen)).bits;

	for (uint32_t i = 0; i < t->op_count; i++) {
		struct schedule_op *op = &t->ops[i];
		uint32_t at = 0;

		while (at < x->schedule_count && x->schedules[at].kind != op->kind)
			at++;
		if (at < x->schedule_count) {
			struct schedule old = x->schedules[at];

			x->schedules[at] = x->schedules[--x->schedule_count];
			clock_cancel(t->sched, old.worker, old.entry, self, old.serial);
			trace_timer_drop(x, old.serial);
		}
		if (!op->add)
			continue;
		must(x->schedule_count < x->schedule_room);
		x->schedules[x->schedule_count++] = (struct schedule){
			.due_ms = op->due_ms, .period_ms = op->period_ms, .serial = op->serial,
			.kind = op->kind, .entry = op->entry, .worker = op->worker };
		if ((t->so_far.flags & TURN_TRACED) && !op->period_ms)
			trace_timer_set(w, x, op->serial);
		/* It may have come due, and been found unknown, before the turn ended. */
		if (op->due_ms <= sched_now_ms(w)) {
			struct sysmsg *n = node_take(&w->mine.port, SYS_TIMER);

			if (n) {
				n->token = op->serial;
				sched_sys(&w->mine.port, t->cell,
					  load_relaxed(&t->cell->mailbox.gen), n);
			}
		}
	}
	t->op_count = 0;
}

static void erase(struct worker *w, struct noh_turn *t)
{
	struct cell *c = t->cell;
	uint64_t self = ref_make(cell_number(t->sched, c), load_relaxed(&c->mailbox.gen)).bits;

	while (c->ext->schedule_count) {
		struct schedule old = c->ext->schedules[--c->ext->schedule_count];

		clock_cancel(t->sched, old.worker, old.entry, self, old.serial);
	}
	trace_timers_drop(c->ext);
	kv_free(&c->ext->kv);
	memset(w->mine.scratch, 0, (size_t)t->type->state_words * 8);
	turn_publish_state(c, t->type, w->mine.scratch);
	c->ext->erased = true;
	if (!t->type->durable && (load_relaxed(&c->life) & LIFE_THERE))
		life_goes(&w->mine.port, c);
	c->flags |= CELL_STOP;           /* nothing worth keeping in memory */
}

void turn_commit_rest(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct cell     *c = t->cell;

	if (c->ext)
		kv_commit(&c->ext->kv, &t->kv_log);
	if (t->op_count)
		apply_schedules(w, t);
	if (t->so_far.flags & TURN_ERASE)
		erase(w, t);
	if (t->so_far.flags & TURN_STOP)
		c->flags |= CELL_STOP;
	if (t->so_far.flags & TURN_VITALS || ((t->so_far.flags & TURN_ERASE) && vitals_if(c)))
		supervise_commit(w);
	if (t->so_far.flags & (TURN_KV | TURN_TIMERS | TURN_ERASE | TURN_VITALS)) {
		turn_changed(w, c);
		life_weigh(&w->mine.port, c);
	}
	if (t->so_far.flags & TURN_TOPICS)
		events_commit(w);
	if (t->so_far.flags & TURN_EVENTS)
		notice_commit(w);
	if (t->so_far.flags & TURN_WATCHES)
		watch_commit(w);
	if (t->so_far.flags & TURN_TRACED)
		trace_commit(w);
}

void turn_undo(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	uint64_t self = ref_make(cell_number(t->sched, t->cell),
				 load_relaxed(&t->cell->mailbox.gen)).bits;

	if (t->so_far.flags & TURN_BIRTHS)
		newborn_forget(w);
	if (t->so_far.flags & TURN_TOPICS)
		events_undo(w);
	if (t->so_far.flags & TURN_EVENTS) {
		if (PLANT(PLANT_EVENT_STAYS))
			notice_commit(w);
		else
			notice_undo(w);
	}
	for (uint32_t i = 0; i < t->fx->count; i++) {
		struct effect *e = &t->fx->list[i];

		if (e->msg.len == FX_SPAWN)
			continue;
		if (e->cell && e->msg.reply)
			pending_drop(&w->mine.port, e->msg.reply);
		msg_free_body(&e->msg);
	}
	t->fx->count = 0;
	if (t->so_far.state && !t->type->reads)
		copy_words(t->so_far.state, w->mine.scratch, t->type->state_words);
	if (t->cell->ext)
		kv_rollback(&t->cell->ext->kv, &t->kv_log);
	for (uint32_t i = 0; i < t->op_count; i++)
		if (t->ops[i].add)
			clock_cancel(t->sched, t->ops[i].worker, t->ops[i].entry, self,
				     t->ops[i].serial);
	t->op_count = 0;
}

/* The turn said no: nothing is left of it but that answer. */
static int refuse(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct msg said = { .kind = 0 };

	if (t->msg_count != 1)
		return noh_fail(t, "returned NOH_REFUSED in a turn of %u messages", t->msg_count);
	if (t->so_far.flags & TURN_REFUSED)
		said = t->refusal;
	turn_undo(w);
	uint32_t flags = t->so_far.flags & (TURN_READONLY | TURN_ADDRESS | TURN_TRACED);

	memset(&t->so_far, 0, sizeof t->so_far);
	t->so_far.flags = flags;
	t->so_far.replied = 1;
	if (!t->msgs[0].reply_to) {
		msg_free_body(&said);
		return NOH_OK;
	}
	said.kind = msg_at_once(&t->msgs[0]);
	said.reply = t->msgs[0].reply_to;
	t->fx->list[t->fx->count++] = (struct effect){ .gen = NOH_REFUSED, .msg = said };
	return NOH_OK;
}

int turn_settle(struct worker *w, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	if (rc == NOH_REFUSED)
		return refuse(w);
	if (t->so_far.flags & TURN_REFUSED)                      /* it has thought better of it */
		msg_free_body(&t->refusal);
	if ((t->so_far.flags & TURN_BIRTHS) && rc >= 0 && rc != NOH_FULL) {
		int entered = newborn_enter(w);

		rc = entered == NOH_OK ? rc : entered;
	}
	return rc;
}

bool turn_open(struct worker *w)
{
	return effects_grow(&w->mine.fx[0]) && effects_grow(&w->mine.fx[1]) && late_reserve(w);
}

void turn_free(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	for (int i = 0; i < 2; i++)
		mem_free(w->mine.fx[i].list, w->mine.fx[i].room * sizeof(struct effect));
	late_free(w);
	mem_free(w->mine.order, w->mine.order_room * sizeof *w->mine.order);
	mem_free(t->ops, t->op_room * sizeof *t->ops);
	mem_free(t->letters.bytes, t->letters.room);
	mem_free(w->mine.newborns.list, w->mine.newborns.room * sizeof *w->mine.newborns.list);
}
