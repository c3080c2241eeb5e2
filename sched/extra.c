/* sched/extra.c - messages that do not come out of the mailbox: those that have to be handled again,
 * and the system lane (answers, timers, room, activation, deactivation).
 */
#include "core/life_report.h"
#include "sched/kin.h"
#include "sched/serve.h"
#include "sched/step.h"
#include "sched/trace.h"

#define BROKEN_AGAIN_MS 60000            /* long enough for many that are broken for good */

static bool redo_add(struct cell *c, const noh_msg *m, const struct msg *owned, bool in_front)
{
	struct ext *x = cell_ext(c);
	struct redo *r = x ? mem_alloc(sizeof *r) : NULL;

	if (!r)
		return false;
	r->msg = *owned;
	r->flags = m->flags;
	r->status = m->status;
	r->ask = m->ask;
	r->next = NULL;
	c->flags |= CELL_EXTRA;
	if (!x->redo)
		x->redo_end = &x->redo;
	if (in_front) {
		r->next = x->redo;
		if (!x->redo)
			x->redo_end = &r->next;
		x->redo = r;
	} else {
		*x->redo_end = r;
		x->redo_end = &r->next;
	}
	return true;
}

bool extra_again(struct cell *c, const noh_msg *m, const struct msg *owned)
{
	return redo_add(c, m, owned, false);
}

/* Keep a message for later; if there is no memory for that, it fails, and that is its end. */
void extra_keep(struct worker *w, struct cell *c, const noh_msg *m, const struct msg *owned,
		 bool in_front)
{
	if (redo_add(c, m, owned, in_front))
		return;
	if (sched_is_durable(w->fixed.sched) && durable_room(w))
		durable_dropped(w, c, owned);
	count_one(&w->mine.port.types[load_relaxed(&c->type)].failed, 1);
	msg_dispose(&w->mine.port, owned, NOH_ENOMEM);
}

void extra_put_down(struct worker *w, struct cell *c, struct effect **in_hand)
{
	const struct msg *owned = &(*in_hand)->msg;
	noh_msg m;

	to_public(&m, owned);
	count_one(&w->mine.port.types[load_relaxed(&c->type)].accepted, 1);
	extra_keep(w, c, &m, owned, false);
	*in_hand = NULL;
}

/* A message out of order: answer, timer, or one that comes again. */
static void serve_extra(struct worker *w, struct cell *c, const noh_msg *m, const struct msg *owned,
			bool again)
{
	int rc;

	if (cell_rests(c) || cell_late(c)) {
		extra_keep(w, c, m, owned, again);
		return;
	}
	rc = serve_turn(w, c, m, 1, false);
	if (rc == NOH_FULL)
		extra_keep(w, c, m, owned, true);
	else
		msg_free_body(owned);
	after_turn(w, c, rc);
}

/* Damage and a missing migration have codes of their own: who is told "it failed" would only try again. */
int serve_broken_code(struct worker *w, struct cell *c)
{
	int code = supervise_code(w, c);

	if (code != NOH_EFAILED || (c->flags & CELL_LOADED) || w->mine.unloaded.cell != c ||
	    (w->mine.unloaded.code != NOH_ECORRUPT && w->mine.unloaded.code != NOH_EVERSION && w->mine.unloaded.code != NOH_ENOSPC))
		return code;
	return w->mine.unloaded.code;
}

/* Why it could not be activated was found in its state: whoever hears that waits for the state's sake. A client of the
 * network is told why it was given up. */
void serve_tell_broken(struct worker *w, struct cell *c, uint64_t token)
{
	int code = serve_broken_code(w, c);
	char text[SUPERVISE_SENTENCE];
	bool told = supervise_code(w, c) != NOH_EFAILED && (token & TOKEN_OF_NET);
	size_t len = told ? supervise_sentence(w, c, text) : 0;

	if (token && sched_is_durable(w->fixed.sched))
		gate_answer(w, load_relaxed(body_due(c->body)), token, code, told ? text : NULL, len);
	else if (token)
		gate_complete(&w->mine.port, token, code, told ? text : NULL, len);
}

/* It is down, and will be back. */
static void tell_down(struct worker *w, struct cell *c, uint64_t token)
{
	char text[SUPERVISE_SENTENCE];
	size_t len = token & TOKEN_OF_NET ? supervise_sentence(w, c, text) : 0;

	gate_complete(&w->mine.port, token, NOH_EDEGRADED, len ? text : NULL, len);
}

/* What waits for an actor that is being thrown out, or that could not be activated. */
void extra_refuse(struct worker *w, struct cell *c, const struct msg *m)
{
	struct type_counts *counts = &w->mine.port.types[load_relaxed(&c->type)];

	if ((c->flags & CELL_BROKEN) && supervise_refuse(w, c, m) == REFUSED_DONE)
		return;
	/* What could not be loaded may be next time; its messages wait in storage for that. */
	if (sched_is_durable(w->fixed.sched) && (c->flags & CELL_LOADED))
		durable_dropped(w, c, m);
	if (c->flags & CELL_BROKEN) {
		count_one(&counts->failed, 1);
		serve_tell_broken(w, c, m->reply);
		msg_free_body(m);
	} else {
		count_one(&counts->dropped_forced, 1);
		msg_dispose(&w->mine.port, m, NOH_EGONE);
	}
}

bool extra_waits(struct worker *w, struct cell *c)
{
	struct redo *r = (c->flags & CELL_EXTRA) && c->ext ? c->ext->redo : NULL;
	noh_msg m;

	if (!r)
		return false;
	to_public(&m, &r->msg);
	m.flags = r->flags;
	return durable_waits(w, &m);
}

void extra_redo(struct worker *w, struct cell *c)
{
	struct ext  *x = c->ext;
	struct redo *r = x->redo;
	struct redo  copy = *r;
	noh_msg m;

	x->redo = r->next;
	if (!x->redo)
		x->redo_end = &x->redo;
	mem_free(r, sizeof *r);
	if (cell_refuses(c)) {
		extra_refuse(w, c, &copy.msg);
		return;
	}
	to_public(&m, &copy.msg);
	m.flags = copy.flags;
	m.status = copy.status;
	m.ask = copy.ask;
	if (!(m.flags & (NOH_MSG_ANSWER | NOH_MSG_TIMER)))
		limit_used(c, 1);
	serve_extra(w, c, &m, &copy.msg, true);
}

/* ── the system lane ── */

static void serve_sys_message(struct worker *w, struct cell *c, struct sysmsg *n)
{
	struct msg owned = { .kind = n->kind, .len = n->len };
	noh_msg m = { .kind = n->kind, .len = msg_len(&owned), .status = n->status, .ask = n->token,
		      .flags = NOH_MSG_ANSWER | (n->len & MSG_WRAPPED) };

	if (n->len > SYS_INLINE && n->len > MSG_INLINE) {
		owned.body.big = n->body.big;
		n->len = 0;              /* now ours */
	} else if (n->len > SYS_INLINE) {
		memcpy(owned.body.bytes, n->body.big, n->len);
	} else {
		memcpy(owned.body.bytes, n->body.bytes, n->len);
	}
	m.body = msg_body(&owned);
	if (n->op == SYS_TIMER) {
		m.flags = NOH_MSG_TIMER;
		m.ask = 0;
		if (!clock_take_schedule(w, c, n->token, &m.kind))
			return;
		owned.kind = m.kind;
		if (c->ext->traced) {
			trace_timer_fired(w, c->ext, n->token, &owned);
			m.flags |= owned.len & MSG_WRAPPED;
			m.body = msg_body(&owned);
		}
	} else if ((c->flags & CELL_WAITING) && c->ext->waits_for == n->token) {
		c->flags &= (uint8_t)~CELL_WAITING;
	}
	count_one(&w->mine.port.types[load_relaxed(&c->type)].accepted, 1);
	serve_extra(w, c, &m, &owned, false);
}

/* A schedule taken away from outside: a turn of its own, without the actor's code. NOH_END: there is none of that kind. */
static void unschedule(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	struct noh_turn *t = &w->mine.turn;
	struct type *type = cell_type(w->fixed.sched, c);
	struct effect *handed;
	int rc = NOH_END;

	if (c->flags & CELL_BROKEN) {
		serve_tell_broken(w, c, n->token);
		return;
	}
	turn_begin(w, c, type, NULL, 0);
	for (uint32_t i = 0; c->ext && i < c->ext->schedule_count; i++)
		if (c->ext->schedules[i].kind == n->kind)
			rc = noh_schedule_cancel(t, n->kind);
	if (rc == NOH_OK)
		rc = end_turn(w, c, rc, 1, false, false, &handed);
	if (!sched_is_durable(w->fixed.sched)) {
		gate_complete(&w->mine.port, n->token, rc, NULL, 0);
		return;
	}
	gate_answer(w, rc == NOH_OK ? t->due : load_relaxed(body_due(c->body)), n->token, rc, NULL, 0);
}

static void tell_active(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	struct life_report report = { .since_ms = sched_since_ms(w->fixed.sched, c), .came = n->kind };
	bool told = n->token & TOKEN_OF_NET;

	if (report.came && !report.since_ms)     /* the moment itself, where nobody keeps it */
		report.since_ms = sched_wall_ms(w);
	(void)pending_complete(&w->mine.port, n->token, NOH_OK, told ? &report : NULL, told ? sizeof report : 0);
}

/* A hint came for it, and it could not be activated. There is no other: it comes again, until somebody mends that. Not if
 * it is known to have no schedule (then messages were what it was woken for, and they are refused), or was given up. */
static void wake_later(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	bool   none = (c->flags & CELL_LOADED) && !(c->ext && c->ext->schedule_count);
	char   address[ADDRESS_MAX + 1];
	size_t len;

	if (none || supervise_code(w, c) != NOH_EFAILED || load_relaxed(&s->stopping))
		return;
	len = cell_address(s, c, address);
	(void)clock_arm_dormant(w, address, len, clock_due(s, BROKEN_AGAIN_MS));
}

static void serve_sys(struct worker *w, struct cell *c, struct sysmsg *n)
{
	struct port *p = &w->mine.port;

	if (n->gen != load_relaxed(&c->mailbox.gen)) {
		node_undeliverable(p, n);
		return;
	}
	switch (n->op) {
	case SYS_ROOM:
		if (!supervise_is_down(c))
			c->flags &= (uint8_t)~CELL_BLOCKED;
		break;
	case SYS_ANSWER:
	case SYS_TIMER:
		if (!(c->flags & CELL_BROKEN))
			serve_sys_message(w, c, n);
		break;
	case SYS_WAKE:
		if (c->flags & CELL_BROKEN)
			wake_later(w, c);
		break;
	case SYS_ACTIVATE:
		if (c->flags & CELL_BROKEN)
			serve_tell_broken(w, c, n->token);
		else if (supervise_is_down(c))
			tell_down(w, c, n->token);
		else
			tell_active(w, c, n);
		break;
	case SYS_DEACTIVATE:
		if (!cell_ext(c)) {
			(void)pending_complete(p, n->token, NOH_ENOMEM, NULL, 0);
			break;
		}
		c->flags |= CELL_STOP;
		n->kind = mailbox_depth(&c->mailbox);
		if (n->status) {
			c->ext->forced = true;
			c->flags |= CELL_EXTRA;
		}
		supervise_leaves(w, c, n->status != 0);
		n->next = c->ext->goodbyes;
		c->ext->goodbyes = n;
		return;                          /* answered when it is gone */
	case SYS_UNSCHEDULE:
		unschedule(w, c, n);
		break;
	case SYS_LIMIT:
		limit_woken(w, c, n);
		break;
	case SYS_JOIN:
		step_queue(w, c, n);
		return;                          /* the step's own */
	case SYS_SPAWN:
		kin_adopted(w, c, n);
		break;
	default:
		if (n->op >= SYS_RESTART)
			supervise_sys(w, c, n);
	}
	node_free(p, n);
}

void extra_sys_lane(struct worker *w, struct cell *c)
{
	struct sysmsg *list = mailbox_sys_take(&c->mailbox);

	for (struct sysmsg *n = list; n; n = n->next)
		if (n->op == SYS_SPAWN && n->gen == load_relaxed(&c->mailbox.gen) && cell_ext(c))
			c->ext->parent = (noh_actor){ n->token };
	for (struct sysmsg *n = list; n; n = n->next)
		if (n->op == SYS_ACTIVATE && !n->kind)           /* it may have been put back since it came */
			n->kind = cell_life(c) != NOH_ACTIVE;
	if (list && cell_life(c) != NOH_ACTIVE && !(c->flags & CELL_BROKEN) && !supervise_is_down(c))
		serve_activate(w, c);
	while (list && !cell_late(c)) {
		struct sysmsg *next = list->next;

		serve_sys(w, c, list);
		list = next;
	}
	if (__builtin_expect(list != NULL, 0))           /* who is late runs nothing */
		mailbox_sys_put_back(&c->mailbox, list);
}
