/* sched/publish.c - what a committed turn has sent, on its way: messages, answers, children.
 *
 * In the order sent; to idle actors into this worker's hands, to others into their mailboxes, in runs where several go to
 * one. What there is no memory for is kept, and its sender waits (late.h).
 */
#include "sched/durable.h"
#include "sched/kin.h"
#include "sched/late.h"
#include "sched/newborn.h"
#include "sched/trace.h"

#include <stddef.h>
#include <string.h>

/* ── answers ── */

/* Inside the box answers go at once: who hears them waits for what they tell, in his turn. */
static void answer(struct port *p, uint64_t token, int status, struct msg *m, uint64_t due)
{
	if (__builtin_expect(token == REPLY_STEP, 0))            /* the step has taken it */
		return;
	if (m && (m->len & MSG_WRAPPED) && pending_answer_msg(p, token, status, m))
		return;
	if (token & TOKEN_OF_NET) {                              /* most; connections have gates of their own */
		p->sched->net.answer(p->sched->net.arg, p, token, sched_is_durable(p->sched) ? due : 0, status,
				     m ? msg_body(m) : NULL, m ? msg_len(m) : 0);
		return;
	}
	if (sched_is_durable(p->sched)) {
		gate_answer(p->worker, due, token, status, m ? msg_body(m) : NULL, m ? msg_len(m) : 0);
		return;
	}
	if (!pending_complete(p, token, status, m ? msg_body(m) : NULL, m ? msg_len(m) : 0))
		count_one(&p->late_answers, 1);
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
		answer(&w->mine.port, m->reply_to, status, NULL, msg_at_once(m) ? 0 : w->mine.turn.due);
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

/* ── messages ── */

static const char *find_letter(const struct noted *n, uint32_t *len)
{
	struct letter head;

	for (uint32_t at = 0; at < n->size; at += (uint32_t)sizeof head + head.len) {
		memcpy(&head, n->letters + at, sizeof head);
		*len = head.len;
		if (head.effect == n->effect)
			return n->letters + at + sizeof head;
	}
	return NULL;
}

static struct noted noted(const noh_turn *t, const struct effect *e)
{
	return (struct noted){ t->letters.bytes, t->so_far.letters, (uint32_t)(e - t->fx->list), t->due };
}

const char *turn_letter(const noh_turn *t, const struct effect *e, uint32_t *len)
{
	struct noted n = noted(t, e);

	return find_letter(&n, len);
}

static void dead_letter(struct port *p, const struct effect *e, int status, uint64_t due)
{
	count_one(&p->dead_letters, 1);
	if (e->msg.reply)
		answer(p, e->msg.reply, status, NULL, due);
	msg_free_body(&e->msg);
}

/* It was refused with `rc`. A receiver that went back to storage since the turn wrote to it comes back, by its address;
 * what it says from then on waits for the disk as its sender does. False: there is no memory for that now. */
static bool deliver_anew(struct port *p, struct effect *e, int rc, const struct noted *at)
{
	uint32_t len = 0, gen;
	const char *address = rc == NOH_EGONE ? find_letter(at, &len) : NULL;
	struct cell *c;

	while (rc == NOH_EGONE && address) {
		rc = sched_resolve_sent(p, address, len, &c, &gen);
		if (rc != NOH_OK)
			break;
		if (sched_is_durable(p->sched))
			durable_raise(c, at->due);
		e->cell = cell_number(p->sched, c);
		e->gen = gen;
		rc = sched_deliver(p, c, gen, &e->msg);
	}
	if (rc == NOH_ENOMEM)
		return false;
	if (rc != NOH_OK)
		dead_letter(p, e, rc, at->due);
	return true;
}

static bool deliver_noted(struct port *p, struct effect *e, int rc)
{
	struct noted at = noted(&p->worker->mine.turn, e);

	return deliver_anew(p, e, rc, &at);
}

/* A child to be activated, or an answer. */
static bool publish_other(struct port *p, struct effect *e, uint64_t due)
{
	if (e->cell == 0) {
		if (!(e->msg.reply & TOKEN_OF_NET) && !pending_answerable(p, e->msg.reply))
			return false;
		answer(p, e->msg.reply, (int)e->gen, &e->msg, e->msg.kind ? 0 : due);
		msg_free_body(&e->msg);
		return true;
	}
	return kin_publish_spawn(p, e);
}

/* False: there is no memory for it now. */
static ALWAYS_INLINE bool publish(struct port *p, struct effect *e)
{
	int rc;

	if (e->cell == 0 || e->msg.len == FX_SPAWN)
		return publish_other(p, e, p->worker->mine.turn.due);
	rc = sched_deliver(p, cell_at(p->sched, e->cell), e->gen, &e->msg);
	return __builtin_expect(rc == NOH_OK, 1) || deliver_noted(p, e, rc);
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

static inline noh_actor effect_to(const struct effect *e)
{
	noh_actor to;

	memcpy(&to.bits, &e->cell, 8);       /* cell and gen: a reference, in this order */
	return to;
}

static struct effect *effect_of(const struct msg *m)
{
	return (struct effect *)((uintptr_t)m - offsetof(struct effect, msg));
}

/* n messages for one actor. How many of them went; 0: no memory. */
static uint32_t publish_together(struct port *p, const struct msg **run, uint32_t n)
{
	struct effect *e = effect_of(run[0]);
	int rc;
	uint32_t done = sched_deliver_run(p, cell_at(p->sched, e->cell), e->gen, run, n, &rc);

	return done ? done : deliver_noted(p, e, rc);
}

#define RUN 256                  /* messages side by side that go in together */

/* Messages to one actor that stand side by side go in together. */
uint32_t turn_publish_run(struct worker *w, struct effect *e, uint32_t most)
{
	const struct msg *run[RUN];
	noh_actor to = effect_to(e);
	uint32_t n = 1;

	if (most > 1 && effect_to(&e[1]).bits == to.bits && e->cell && e->msg.len != FX_SPAWN) {
		most = most < RUN ? most : RUN;
		run[0] = &e->msg;
		for (; n < most && effect_to(&e[n]).bits == to.bits && e[n].msg.len != FX_SPAWN; n++)
			run[n] = &e[n].msg;
	}
	if (n > 1)
		return publish_together(&w->mine.port, run, n);
	return into_hand(w, e) || publish(&w->mine.port, e);
}

/* ── what there is no memory for ── */

/* Answers are not held up by messages. */
void turn_publish_late(struct worker *w, struct effect *rest, uint32_t n)
{
	struct noh_turn *t = &w->mine.turn;

	for (uint32_t i = 0; i < n; i++)
		if (rest[i].cell == 0 && rest[i].msg.len != FX_DONE && publish_other(&w->mine.port, &rest[i], t->due))
			rest[i].msg.len = FX_DONE;
	if (late_keep(w, rest, n, (uint32_t)(rest - t->fx->list)))
		return;
	for (uint32_t i = 0; i < n; i++)
		if (rest[i].msg.len != FX_DONE && rest[i].msg.len != FX_SPAWN)
			dead_letter(&w->mine.port, &rest[i], NOH_ENOMEM, t->due);
}

bool turn_publish_again(struct worker *w, struct effect *e, const struct noted *at)
{
	struct port *p = &w->mine.port;

	if (e->cell == 0 || e->msg.len == FX_SPAWN)
		return publish_other(p, e, at->due);
	return into_hand(w, e) ||
	       deliver_anew(p, e, sched_deliver(p, cell_at(p->sched, e->cell), e->gen, &e->msg), at);
}

#define GROUP_FROM 32            /* fewer effects are not worth it */

static bool order_room(struct worker *w, uint32_t count)
{
	uint32_t room = w->mine.order_room ? w->mine.order_room : 64;
	const struct msg **order;

	if (w->mine.order_room >= count)
		return true;
	while (room < count)
		room *= 2;
	order = mem_alloc(room * sizeof *order);
	if (!order)
		return false;
	mem_free(w->mine.order, w->mine.order_room * sizeof *order);
	w->mine.order = order;
	w->mine.order_room = room;
	return true;
}

/* Where each message of a large turn comes in w->mine.order: together with the others for its receiver, each
 * receiver's in the order sent. False: nearly all are for different ones, two of them have one place, not all
 * were sent by reference, or (in a step) a later part's turn has the places now. */
static bool order_by_receiver(struct worker *w, const struct effect *list, uint32_t count)
{
	struct sends *s = &w->mine.sends;
	uint32_t at = 0;

	if (s->turn != load_relaxed(&w->shown.counts.turns) || s->mixed || s->used_count * 2 > count)
		return false;
	for (uint32_t i = 0; i < s->used_count; i++) {
		struct pending_sends *p = &s->places[s->used[i]];

		p->from = p->at = at;
		at += p->count;
		p->limit = at;
	}
	if (!order_room(w, at))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct pending_sends *p = &s->places[list[i].cell % PENDING_TABLE];

		if (p->turn != s->turn || p->to.bits != effect_to(&list[i]).bits || p->at == p->limit)
			return false;
		w->mine.order[p->at++] = &list[i].msg;
	}
	return true;
}

/* No memory for what comes from place k of the order on: what went before is not to be kept. */
static void publish_ordered_late(struct worker *w, struct effect *list, uint32_t count, uint32_t receivers, uint32_t k)
{
	struct sends *s = &w->mine.sends;

	for (uint32_t i = 0; i <= receivers; i++) {
		const struct pending_sends *p = &s->places[s->used[i]];

		for (uint32_t j = p->from; j < (i < receivers ? p->at : k); j++)
			effect_of(w->mine.order[j])->msg.len = FX_DONE;
	}
	turn_publish_late(w, list, count);
}

/* Bring the messages of a large turn together by receiver, so that they go in as runs. Order between receivers is
 * nobody's to see: all of it happens at once. */
static bool publish_by_receiver(struct worker *w, struct effect *list, uint32_t count)
{
	struct sends *s = &w->mine.sends;

	/* Addresses are noted by place; and of two to one actor side by side there will be more. */
	if (w->mine.turn.so_far.letters || (w->mine.turn.so_far.flags & TURN_SPAWNS) || list[0].cell == list[1].cell ||
	    !order_by_receiver(w, list, count))
		return false;
	for (uint32_t i = 0; i < s->used_count; i++) {
		const struct pending_sends *p = &s->places[s->used[i]];

		for (uint32_t k = p->from, went; k < p->at; k += went) {
			went = p->at - k > 1 ? publish_together(&w->mine.port, w->mine.order + k, p->at - k)
					     : turn_publish_run(w, effect_of(w->mine.order[k]), 1);
			if (__builtin_expect(went == 0, 0)) {
				publish_ordered_late(w, list, count, i, k);
				return true;
			}
		}
	}
	return true;
}

/* Alone, or behind the others of its turn. */
void turn_publish_last(struct worker *w, struct effect *e, bool in_hand)
{
	if ((w->mine.turn.so_far.flags & TURN_LATE) || !((in_hand && into_hand(w, e)) || publish(&w->mine.port, e)))
		turn_publish_late(w, e, 1);
}

void turn_publish(struct worker *w, uint32_t count)
{
	struct effects *fx = w->mine.turn.fx;

	if (count == 1)
		turn_publish_last(w, fx->list, true);
	else if (count < GROUP_FROM || !publish_by_receiver(w, fx->list, count))
		for (uint32_t i = 0, went; i < count; i += went) {
			went = turn_publish_run(w, &fx->list[i], count - i);
			if (__builtin_expect(went == 0, 0)) {
				turn_publish_late(w, &fx->list[i], count - i);
				break;
			}
		}
	fx->count = 0;
}
