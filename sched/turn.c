/* sched/turn.c - what a hook may do, and its end: everything at once, or nothing (P4).
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
		}
		if (!op->add)
			continue;
		must(x->schedule_count < x->schedule_room);
		x->schedules[x->schedule_count++] = (struct schedule){
			.due_ms = op->due_ms, .period_ms = op->period_ms, .serial = op->serial,
			.kind = op->kind, .entry = op->entry, .worker = op->worker };
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

/* Inside the box answers go at once: who hears them waits for what they tell, in his turn. */
static void answer(struct port *p, uint64_t token, int status, struct msg *m, bool at_once)
{
	if (__builtin_expect(token == REPLY_STEP, 0))            /* the step has taken it */
		return;
	if (m && (m->len & MSG_WRAPPED) && pending_answer_msg(p, token, status, m))
		return;
	if (sched_is_durable(p->sched)) {
		gate_answer(p->worker, at_once ? 0 : p->worker->mine.turn.due, token, status,
			    m ? msg_body(m) : NULL, m ? msg_len(m) : 0);
		return;
	}
	if (!pending_complete(p, token, status, m ? msg_body(m) : NULL, m ? msg_len(m) : 0))
		count_one(&p->late_answers, 1);
}

const char *turn_letter(const noh_turn *t, const struct effect *e, uint32_t *len)
{
	struct letter head;

	for (uint32_t at = 0; at < t->so_far.letters; at += (uint32_t)sizeof head + head.len) {
		memcpy(&head, t->letters.bytes + at, sizeof head);
		*len = head.len;
		if (head.effect == (uint32_t)(e - t->fx->list))
			return t->letters.bytes + at + sizeof head;
	}
	return NULL;
}

/* The receiver went back to storage since the turn wrote to it. By address it comes back. */
static int deliver_again(struct port *p, struct effect *e)
{
	uint32_t len = 0, gen;
	const char *address = turn_letter(&p->worker->mine.turn, e, &len);
	struct cell *c;
	int rc = NOH_EGONE;

	while (address && rc == NOH_EGONE) {
		rc = sched_resolve(p, address, len, &c, &gen);
		if (rc == NOH_OK)
			rc = sched_deliver(p, c, gen, &e->msg);
	}
	return rc;
}

static ALWAYS_INLINE void publish(struct port *p, struct effect *e)
{
	struct sched *s = p->sched;

	if (e->cell == 0) {
		answer(p, e->msg.reply, (int)e->gen, &e->msg, e->msg.kind);
		msg_free_body(&e->msg);
	} else if (e->msg.len == FX_SPAWN) {
		kin_publish_spawn(p, e);
	} else {
		struct cell *to = cell_at(s, e->cell);
		int rc = sched_deliver(p, to, e->gen, &e->msg);

		if (__builtin_expect(rc == NOH_EGONE, 0))
			rc = deliver_again(p, e);
		if (__builtin_expect(rc != NOH_OK, 0)) {
			count_one(&p->dead_letters, 1);
			if (e->msg.reply)
				answer(p, e->msg.reply, rc, NULL, false);
			msg_free_body(&e->msg);
		}
	}
}

void turn_answer_rest(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	for (uint32_t i = 0; i < t->msg_count; i++)
		if (t->msgs[i].reply_to && !(t->so_far.replied >> i & 1))
			turn_answer(w, &t->msgs[i], NOH_OK);
}

void turn_answer(struct worker *w, const noh_msg *m, int status)
{
	if (!(w->mine.turn.so_far.flags & TURN_TRACED) || !trace_answer(w, m, status))
		answer(&w->mine.port, m->reply_to, status, NULL, msg_at_once(m));
}

/* A client of the network is told the reason, too. */
void turn_answer_failed(struct worker *w, const noh_msg *m, int status)
{
	struct noh_turn *t = &w->mine.turn;
	bool told = (t->so_far.flags & TURN_REASON) && (m->reply_to & TOKEN_OF_NET) && m->reply_to != REPLY_STEP;

	if (told)
		gate_answer(w, sched_is_durable(t->sched) && !msg_at_once(m) ? t->due : 0, m->reply_to, status, t->reason,
			    strlen(t->reason));
	else
		turn_answer(w, m, status);
}

/* A message to an idle actor: claim it, and keep the message at hand for its turn. */
static ALWAYS_INLINE bool into_hand(struct worker *w, struct effect *e)
{
	struct cell *to = cell_at(w->fixed.sched, e->cell);

	/* Nobody (an answer) is never idle. */
	if (e->msg.len == FX_SPAWN || !hands_room(&w->hands) || !mailbox_claim(&to->mailbox, e->gen))
		return false;
	__builtin_prefetch(to->body, 1);
	hands_put(&w->hands, e);
	return true;
}

/* Messages to one actor that stand side by side go in together. */
uint32_t turn_publish_run(struct worker *w, struct effect *e, uint32_t most)
{
	struct port *p = &w->mine.port;
	uint32_t n = 1, done;
	int rc;

	if (e->cell && e->msg.len != FX_SPAWN)
		while (n < most && e[n].cell == e->cell && e[n].gen == e->gen &&
		       e[n].msg.len != FX_SPAWN)
			n++;
	if (n > 1) {
		done = sched_deliver_run(p, cell_at(p->sched, e->cell), e->gen, &e->msg, sizeof *e, n,
					 &rc);
		if (rc == NOH_OK)
			return done;
		e += done;
		publish(p, e);              /* says what is wrong */
		return done + 1;
	}
	if (!into_hand(w, e))
		publish(p, e);
	return 1;
}

#define GROUPS 128
#define GROUP_FROM 32           /* fewer effects are not worth it */

/* Bring the messages of a large turn together by receiver, each receiver's in the order sent, so that
 * they go in as runs. Order between receivers is nobody's to see: all of it happens at once. NULL: too
 * many receivers, no memory, or addresses are noted by place. */
static struct effect *group_by_receiver(struct worker *w, const struct effect *list, uint32_t count)
{
	struct { uint32_t cell, at; } groups[GROUPS];
	struct effects *sorted = &w->mine.sorted;
	uint32_t used = 0, at = 0;

	if (w->mine.turn.so_far.letters || list[0].cell == list[1].cell)
		return NULL;
	while (sorted->room < count)
		if (!effects_grow(sorted))
			return NULL;
	for (uint32_t g = 0; g < GROUPS; g++)
		groups[g].cell = UINT32_MAX;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t g = list[i].cell % GROUPS;

		if (groups[g].cell != list[i].cell) {
			if (groups[g].cell != UINT32_MAX)
				return NULL;             /* two receivers in one place */
			groups[g].cell = list[i].cell;
			groups[g].at = 0;
			used++;
		}
		groups[g].at++;
	}
	if (used * 2 > count)
		return NULL;                             /* nearly all different */
	for (uint32_t g = 0; g < GROUPS; g++) {
		uint32_t n = groups[g].cell == UINT32_MAX ? 0 : groups[g].at;

		groups[g].at = at;
		at += n;
	}
	for (uint32_t i = 0; i < count; i++)
		sorted->list[groups[list[i].cell % GROUPS].at++] = list[i];
	return sorted->list;
}

void turn_publish(struct worker *w, uint32_t count)
{
	struct effects *fx = w->mine.turn.fx;
	struct effect  *list = fx->list, *grouped = NULL;

	if (count >= GROUP_FROM)
		grouped = group_by_receiver(w, list, count);
	if (grouped)
		list = grouped;
	for (uint32_t i = 0; i < count; )
		i += turn_publish_run(w, &list[i], count - i);
	fx->count = 0;
}

struct effect *turn_publish_many(struct worker *w, bool at_end)
{
	struct effects *fx = w->mine.turn.fx;
	uint32_t n = fx->count;

	turn_publish(w, n - 1);
	if (at_end && fx->list[n - 1].msg.len != FX_SPAWN && turn_hand_on(w, &fx->list[n - 1]))
		return &fx->list[n - 1];
	publish(&w->mine.port, &fx->list[n - 1]);
	return NULL;
}

static void erase(struct worker *w, struct noh_turn *t)
{
	struct cell *c = t->cell;
	uint64_t self = ref_make(cell_number(t->sched, c), load_relaxed(&c->mailbox.gen)).bits;

	while (c->ext->schedule_count) {
		struct schedule old = c->ext->schedules[--c->ext->schedule_count];

		clock_cancel(t->sched, old.worker, old.entry, self, old.serial);
	}
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
	return effects_grow(&w->mine.fx[0]) && effects_grow(&w->mine.fx[1]);
}

void turn_free(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	for (int i = 0; i < 2; i++)
		mem_free(w->mine.fx[i].list, w->mine.fx[i].room * sizeof(struct effect));
	mem_free(w->mine.sorted.list, w->mine.sorted.room * sizeof(struct effect));
	mem_free(t->ops, t->op_room * sizeof *t->ops);
	mem_free(t->letters.bytes, t->letters.room);
	mem_free(w->mine.newborns.list, w->mine.newborns.room * sizeof *w->mine.newborns.list);
}
