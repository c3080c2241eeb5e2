/* sched/step.c - taking the actors of a step, holding them, letting them go. */
#include "sched/step.h"

#include "sched/serve.h"

static struct step *step_of(struct sysmsg *n)
{
	return (struct step *)(void *)n;         /* its first member */
}

static void unref(struct step *s)
{
	if (add_acq_rel(&s->refs, UINT32_MAX) == 1)
		mem_free(s, s->bytes);
}

/* ── letting go ── */

static void let_go(struct port *p, struct cell *c)
{
	struct type *t = cell_type(p->sched, c);

	if (cell_late(c))                /* the step has run, and what c sent in it is not out yet (late.h) */
		return;
	if (p->worker && cell_plain(c)) {
		store_relaxed(&c->last_active, p->worker->mine.now_ds);
		if (mailbox_idle_in_place(&c->mailbox) || mailbox_idle(&c->mailbox, &p->room, t->shared))
			return;
	}
	sched_enqueue(p, c);
}

void step_let_go(struct port *p, struct step *s)
{
	while (s->held)
		let_go(p, step_part_at(s, --s->held)->cell);
}

/* Its caller knows already. */
static void give_up(struct port *p, struct step *s)
{
	step_let_go(p, s);
	step_word_end(&s->state);
	unref(s);
}

void step_end(struct worker *w, struct step *s, uint64_t due, int status, const void *body, size_t len)
{
	step_let_go(&w->mine.port, s);
	step_word_end(&s->state);
	gate_answer(w, s->at_once ? 0 : due, s->token, status, body, len);
	unref(s);
}

/* No state was looked at. */
static void refuse(struct port *p, struct step *s, int status)
{
	step_let_go(p, s);
	step_word_end(&s->state);
	gate_complete(p, s->token, status, NULL, 0);
	unref(s);
}

/* ── the caller ── */

/* Whoever waits is told by somebody else than the step: it must not happen any more, and hold nobody. */
static void cancel(struct step *s)
{
	struct port *p;

	if (!step_word_cancel(&s->state))
		return;
	p = sched_port(s->sched);
	for (uint32_t i = 0; i < s->held; i++)
		sched_enqueue(p, step_part_at(s, i)->cell);
	sched_port_done(p);
}

static void unpack(struct step *s, const uint8_t *at, size_t len)
{
	for (uint32_t i = 0; i < s->count; i++) {
		noh_part_answer *answer = &s->answers[s->answered[i]];
		struct step_answer a = { NOH_OK, 0 };

		*answer = (noh_part_answer){ NOH_OK, "", 0 };
		if (len < sizeof a)
			continue;
		memcpy(&a, at, sizeof a);
		at += sizeof a;
		len -= sizeof a;
		if (record_pad(a.len) > len)
			a.len = 0;
		*answer = (noh_part_answer){ a.status, at, a.len };
		at += record_pad(a.len);
		len -= record_pad(a.len);
	}
}

void step_told(void *step, int status, const void *body, size_t len)
{
	struct step *s = step;

	cancel(s);
	unpack(s, body, len);
	s->done(s->user, status, s->answers, s->count);
	unref(s);
}

/* ── taking ── */

/* Another cell, perhaps: then it has no place there yet. */
static int find(struct port *p, struct step_part *part)
{
	part->placed = false;
	return sched_resolve(p, part->address, part->address_len, &part->cell, &part->gen);
}

/* The token goes to the next actor. */
static void ask(struct port *p, struct step *s)
{
	struct step_part *part = step_part_at(s, s->held);
	struct cell *c;
	uint32_t gen;
	int rc = NOH_OK;

	if (!part->cell)
		rc = find(p, part);
	/* Who is held can not even be read: on a full disk the one we wait for may wait for ever. */
	if (rc == NOH_OK && s->held && sched_is_durable(s->sched) &&
	    s->sched->journal.no_space(s->sched->journal.arg))
		rc = NOH_ENOSPC;
	if (rc != NOH_OK) {
		refuse(p, s, rc);
		return;
	}
	c = part->cell;
	gen = part->gen;
	if (!part->placed) {
		part->place = mb_tail(load_acquire(&c->mailbox.word));
		part->placed = true;
	}
	s->node.op = SYS_JOIN;
	s->node.token = part->place;
	if (step_word_wait(&s->state))
		sched_sys(p, c, gen, &s->node);
	else
		give_up(p, s);
}

/* c was claimed by us, and is not held: it may have to be activated, and it may have something to do first. */
static bool make_ready(struct worker *w, struct cell *c)
{
	if (!(c->flags & (uint8_t)~(CELL_LOADED | CELL_DIRTY)) && cell_life(c) != NOH_ACTIVE)
		serve_activate(w, c);
	return cell_plain(c);
}

/* No room for a record now: the next actor (all are held: the last one again) comes to it when there is. */
static void later(struct worker *w, struct step *s)
{
	struct cell *last = NULL;

	if (s->held == s->count)
		last = step_part_at(s, --s->held)->cell;
	ask(&w->mine.port, s);
	if (last)
		sched_enqueue(&w->mine.port, last);
}

static void advance(struct worker *w, struct step *s)
{
	struct port *p = &w->mine.port;

	if (sched_is_durable(s->sched) && !durable_room(w)) {
		later(w, s);
		return;
	}
	while (s->held < s->count) {
		struct step_part *part = step_part_at(s, s->held);
		struct cell *c = part->cell;

		if (!c || (load_acquire(&c->mailbox.gen) != part->gen)) {
			int rc = find(p, part);

			if (rc != NOH_OK) {
				refuse(p, s, rc);
				return;
			}
			c = part->cell;
		}
		if (!mailbox_claim(&c->mailbox, part->gen)) {
			ask(p, s);
			return;
		}
		if (!make_ready(w, c)) {
			ask(p, s);
			if (!cell_late(c))
				sched_enqueue(p, c);     /* it is still ours, and finds the token in its lane */
			return;
		}
		s->held++;
	}
	if (sched_is_durable(s->sched) && !durable_room(w))      /* activations may have used some */
		later(w, s);
	else if (step_word_expired(&s->state))
		give_up(p, s);
	else
		step_run(w, s);
}

void step_start(struct port *p, struct step *s)
{
	struct worker *w = p->worker;

	if (!w || load_relaxed(&w->shown.serving)) {
		ask(p, s);
		return;
	}
	epoch_enter(&p->epoch);
	store_relaxed(&w->shown.serving, SERVING_TURN);
	advance(w, s);
	store_relaxed(&w->shown.serving, 0);
	epoch_leave(&p->epoch);
}

/* ── tokens ── */

static void unlink_join(struct ext *x, struct sysmsg **at)
{
	struct sysmsg *n = *at;

	*at = n->next;
	if (x->joins_end == &n->next)
		x->joins_end = at;
	n->next = NULL;
}

void step_queue(struct worker *w, struct cell *c, struct sysmsg *n)
{
	struct ext *x = cell_ext(c);

	if (!x) {
		if (step_word_take(&step_of(n)->state))
			refuse(&w->mine.port, step_of(n), NOH_ENOMEM);
		else
			unref(step_of(n));
		return;
	}
	n->next = NULL;
	*x->joins_end = n;
	x->joins_end = &n->next;
	c->flags |= CELL_EXTRA;
}

/* Everything is handled that was in the mailbox before the token. */
static bool its_turn(struct cell *c, const struct sysmsg *n)
{
	return mb_distance(mb_tail(load_relaxed(&c->mailbox.head)), n->token) >= 0;
}

static enum step_met meet(struct worker *w, struct cell *c, struct step *s)
{
	if (!step_word_take(&s->state)) {
		unref(s);
		return STEP_WENT;
	}
	if (s->again) {                  /* c does not rest any more; its place it keeps */
		s->again = false;
		advance(w, s);
		return STEP_WENT;
	}
	if (c->flags & CELL_BROKEN) {
		step_end(w, s, sched_is_durable(s->sched) ? load_relaxed(body_due(c->body)) : 0,
			 serve_broken_code(w, c), NULL, 0);
		return STEP_WENT;
	}
	must(step_part_at(s, s->held)->cell == c);
	s->held++;
	advance(w, s);
	return STEP_HOLDS;
}

enum step_met step_meet(struct worker *w, struct cell *c)
{
	struct ext *x = c->ext;

	for (struct sysmsg **at = &x->joins; *at; at = &(*at)->next) {
		struct sysmsg *n = *at;

		if (!its_turn(c, n))
			continue;
		unlink_join(x, at);
		return meet(w, c, step_of(n));
	}
	return STEP_NONE;
}

/* c waits for an answer or for room, perhaps of an actor that a step holds which waits for c. So nobody is held
 * for the sake of one that rests: the step keeps its place here, and begins anew when c gets to it. */
void step_yield(struct worker *w, struct cell *c)
{
	struct ext *x = c->ext;
	struct sysmsg **at = &x->joins;

	while (*at) {
		struct step *s = step_of(*at);
		bool holds = step_word_over(&s->state) || s->held;

		if (holds && step_word_take(&s->state)) {
			step_let_go(&w->mine.port, s);
			s->again = true;
			if (step_word_wait(&s->state)) {
				at = &s->node.next;
			} else {
				unlink_join(x, at);
				give_up(&w->mine.port, s);
			}
		} else if (holds) {
			unlink_join(x, at);
			unref(s);
		} else {
			at = &s->node.next;
		}
	}
}

void step_refuse(struct worker *w, struct cell *c, int status)
{
	while (c->ext && c->ext->joins) {
		struct step *s = step_of(c->ext->joins);

		unlink_join(c->ext, &c->ext->joins);
		if (step_word_take(&s->state))
			refuse(&w->mine.port, s, status);
		else
			unref(s);
	}
}

void step_lost(struct port *p, struct sysmsg *n)
{
	struct step *s = step_of(n);

	if (!step_word_take(&s->state)) {
		unref(s);
		return;
	}
	step_part_at(s, s->held)->cell = NULL;
	ask(p, s);
}

/* Nothing runs any more; its caller was told with all others. */
void step_discard(struct sysmsg *n)
{
	unref(step_of(n));
}
