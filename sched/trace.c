#include "sched/trace.h"

#include <string.h>

/* ── the message ── */

bool trace_attach(struct msg *m, const struct trace_tail *tail, const char *state)
{
	bool wrapped = m->len & MSG_WRAPPED;
	struct envelope *old = wrapped ? m->body.big : NULL, *env;
	uint32_t inside = wrapped ? old->bytes - (uint32_t)sizeof *old : m->len;
	uint32_t at = (uint32_t)sizeof *env + ((inside + 7u) & ~7u);
	uint32_t state_room = ((uint32_t)tail->state_len + 7u) & ~7u;
	uint32_t bytes = at + state_room + (uint32_t)sizeof *tail;

	env = mem_alloc(bytes);
	if (!env)
		return false;
	*env = wrapped ? *old : (struct envelope){ 0 };
	env->bytes = bytes;
	env->flags |= ENVELOPE_TRACED;
	if (inside)
		memcpy(env + 1, wrapped ? (const void *)(old + 1) : msg_body(m), inside);
	if (tail->state_len)
		memcpy((char *)env + at, state, tail->state_len);
	memcpy((char *)env + at + state_room, tail, sizeof *tail);
	msg_free_body(m);
	m->len = msg_len(m) | MSG_WRAPPED;
	m->body.big = env;
	return true;
}

/* One more hop of the trace this turn is part of. */
bool trace_send_on(struct worker *w, struct msg *m, const struct trace_tail *from, uint64_t now)
{
	struct trace_tail next = { .at = from->at, .received_ns = now, .queued_ns = now,
				   .state_len = from->state_len };

	next.at.parent = from->at.span;
	next.at.span = trace_fresh(&w->spans.mine.seed);
	return trace_attach(m, &next, trace_state(from));
}

/* ── schedules ── */

struct timer_trace {
	struct timer_trace *next;
	uint64_t            serial;      /* of its schedule                                       */
	uint64_t            state_room;  /* the tracestate's, padded to 8; the tail stands behind it */
	uint64_t            bytes[];
};

static struct trace_tail *tail_of(struct timer_trace *x)
{
	return (struct trace_tail *)(void *)((char *)x->bytes + x->state_room);
}

static void timer_free(struct timer_trace *x)
{
	mem_free(x, sizeof *x + x->state_room + sizeof(struct trace_tail));
}

void trace_timer_set(struct worker *w, struct ext *x, uint64_t serial)
{
	struct noh_turn *t = &w->mine.turn;
	uint64_t room = (t->trace->state_len + 7) & ~UINT64_C(7);
	struct timer_trace *of;

	if (t->msg_count == 0 || (t->msgs[0].flags & NOH_MSG_TIMER))
		return;
	of = mem_alloc(sizeof *of + room + sizeof(struct trace_tail));
	if (!of)
		return;
	*of = (struct timer_trace){ .next = x->traced, .serial = serial, .state_room = room };
	memcpy(of->bytes, trace_state(t->trace), room);
	*tail_of(of) = *t->trace;
	tail_of(of)->received_ns = clock_now_ns(&t->sched->clock);
	x->traced = of;
}

/* Out of the list; NULL: it has none. */
static struct timer_trace *timer_take(struct ext *x, uint64_t serial)
{
	struct timer_trace **at = &x->traced, *of;

	while (*at && (*at)->serial != serial)
		at = &(*at)->next;
	of = *at;
	if (of)
		*at = of->next;
	return of;
}

void trace_timer_drop(struct ext *x, uint64_t serial)
{
	struct timer_trace *of = timer_take(x, serial);

	if (of)
		timer_free(of);
}

void trace_timers_drop(struct ext *x)
{
	while (x->traced)
		trace_timer_drop(x, x->traced->serial);
}

/* Received is when it was set: how long it waited is no secret. */
void trace_timer_fired(struct worker *w, struct ext *x, uint64_t serial, struct msg *m)
{
	struct timer_trace *of = timer_take(x, serial);

	if (!of)
		return;
	tail_of(of)->at.parent = tail_of(of)->at.span;
	tail_of(of)->at.span = trace_fresh(&w->spans.mine.seed);
	tail_of(of)->queued_ns = clock_now_ns(&w->fixed.sched->clock);
	(void)trace_attach(m, tail_of(of), trace_state(tail_of(of)));
	timer_free(of);
}

/* ── the turn ── */

void trace_turn_begins(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	bool kept = false;

	for (uint32_t i = 0; i < t->msg_count; i++) {
		const struct trace_tail *tail = msg_trace(&t->msgs[i]);

		if (!tail)
			continue;
		if (!(t->so_far.flags & TURN_TRACED))
			t->trace = tail;
		t->so_far.flags |= TURN_TRACED;
		kept |= (tail->at.flags & TRACE_SAMPLED) != 0;
	}
	t->trace_began_ns = kept ? clock_now_ns(&t->sched->clock) : 0;
}

struct waiting { uint64_t hi, lo, span; uint32_t answers; };    /* in the gate */
static_assert(sizeof(struct waiting) <= MSG_INLINE, "no allocation for it");

/* When is what it told on disk, and when does its caller hear it? The network says so itself (net/trace.c). */
static void settle(struct worker *w, struct span *s, const noh_msg *m, uint64_t now)
{
	struct sched *sched = w->fixed.sched;
	struct noh_turn *t = &w->mine.turn;
	bool ask = pending_is_ask(sched, m->reply_to);
	bool outside = m->reply_to && !ask && !(m->reply_to & TOKEN_OF_NET);
	bool disk = sched_is_durable(sched) && t->type->durable;
	struct waiting rest = { s->hi, s->lo, s->span, outside };

	if (ask)
		s->at_ns[SPAN_ANSWERED] = now;
	if (!disk || t->due <= load_relaxed(&sched->durable)) {
		if (disk)
			s->at_ns[SPAN_ON_DISK] = now;
		if (outside)
			s->at_ns[SPAN_ANSWERED] = now;
		return;
	}
	gate_trace(w, t->due, &rest, sizeof rest);
}

static void remember(struct worker *w, int status, uint64_t now)
{
	struct noh_turn *t = &w->mine.turn;

	for (uint32_t i = 0; i < t->msg_count; i++) {
		const struct trace_tail *tail = msg_trace(&t->msgs[i]);
		struct span s = { .kind = t->msgs[i].kind, .status = status, .worker = (uint16_t)w->fixed.index,
				  .batch = (uint16_t)t->msg_count, .turn = 1 };

		if (!tail || !(tail->at.flags & TRACE_SAMPLED))
			continue;
		s.hi = tail->at.hi;
		s.lo = tail->at.lo;
		s.span = tail->at.span;
		s.parent = tail->at.parent;
		s.at_ns[SPAN_RECEIVED] = tail->received_ns;
		s.at_ns[SPAN_QUEUED] = tail->queued_ns;
		s.at_ns[SPAN_STARTED] = t->trace_began_ns;
		s.at_ns[SPAN_ENDED] = now;
		s.address_len = (uint16_t)cell_address(t->sched, load_relaxed(&t->cell), s.address);
		settle(w, &s, &t->msgs[i], now);
		span_put(&w->spans, &s);
	}
}

/* The trace a message of this turn goes on with: an answer with that of the message it answers. */
static const struct trace_tail *cause(const struct noh_turn *t, const struct effect *e)
{
	for (uint32_t i = 0; e->cell == 0 && i < t->msg_count; i++)
		if (t->msgs[i].reply_to == e->msg.reply)
			return msg_trace(&t->msgs[i]);
	return t->trace;
}

/* Without memory for it a message goes on without its trace. */
void trace_commit(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	uint64_t now = clock_now_ns(&t->sched->clock);
	int status = NOH_OK;

	for (uint32_t i = 0; i < t->fx->count; i++) {
		struct effect *e = &t->fx->list[i];
		const struct trace_tail *from = cause(t, e);

		if (e->cell == 0 && e->gen == NOH_REFUSED)
			status = NOH_REFUSED;
		if (from && e->msg.len != FX_SPAWN && (e->cell || pending_is_ask(t->sched, e->msg.reply)))
			(void)trace_send_on(w, &e->msg, from, now);
	}
	remember(w, status, now);
}

void trace_failed(struct worker *w, int rc)
{
	remember(w, rc, clock_now_ns(&w->fixed.sched->clock));
}

bool trace_answer(struct worker *w, const noh_msg *m, int status)
{
	const struct trace_tail *tail = msg_trace(m);
	struct msg empty = { .kind = 0 };

	if (!tail || !pending_is_ask(w->fixed.sched, m->reply_to) ||
	    !trace_send_on(w, &empty, tail, clock_now_ns(&w->fixed.sched->clock)))
		return false;
	if (!pending_answer_msg(&w->mine.port, m->reply_to, status, &empty)) {
		msg_free_body(&empty);
		return false;
	}
	return true;
}

void trace_on_disk(struct port *p, const void *body)
{
	struct span s = { 0 };
	struct waiting rest;
	uint64_t now = clock_now_ns(&p->sched->clock);

	if (!p->worker)                  /* the box is being closed: nobody will ask */
		return;
	memcpy(&rest, body, sizeof rest);
	s.hi = rest.hi;
	s.lo = rest.lo;
	s.span = rest.span;
	s.worker = (uint16_t)p->worker->fixed.index;
	s.at_ns[SPAN_ON_DISK] = now;
	if (rest.answers)
		s.at_ns[SPAN_ANSWERED] = now;
	span_put(&p->worker->spans, &s);
}

/* ── noh.h ── */

bool noh_trace(noh_turn *t, noh_trace_context *out)
{
	struct trace_tail tail;

	out->traceparent[0] = out->tracestate[0] = 0;
	if (!(t->so_far.flags & TURN_TRACED))
		return false;
	tail = *t->trace;
	trace_write(&tail.at, out->traceparent);
	memcpy(out->tracestate, trace_state(t->trace), tail.state_len);
	out->tracestate[tail.state_len] = 0;
	return true;
}
