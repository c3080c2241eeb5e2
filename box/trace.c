/* box/trace.c - traces: from a call into its message, and back out of the workers' rings (noh.h, section 6). */
#include "box/api.h"
#include "sched/trace.h"

#include <stdlib.h>
#include <string.h>

/* ── in ── */

/* A message goes on without its trace if there is no memory for it. */
void api_set_trace(struct sched *s, struct msg *m, const struct outgoing *out)
{
	const noh_call_options *o = out->options;
	struct trace_tail tail;
	const char *state = "";
	uint64_t seed = 0;

	if (out->trace) {
		tail = *out->trace;
		state = trace_state(out->trace);
	} else {
		size_t len = o->tracestate ? strnlen(o->tracestate, TRACE_STATE_MAX + 1) : 0;

		tail = (struct trace_tail){ .received_ns = clock_now_ns(&s->clock) };
		if (!trace_parse(o->traceparent, strnlen(o->traceparent, 1024), &tail.at))
			return;
		tail.at.span = trace_fresh(&seed);
		if (len && trace_state_ok(o->tracestate, len)) {
			tail.state_len = len;
			state = o->tracestate;
		}
	}
	tail.queued_ns = clock_now_ns(&s->clock);
	(void)trace_attach(m, &tail, state);
}

/* ── out ── */

#define SPANS_TOLD 512
#define TRACES_TOLD 1000

static bool may_look(noh_box *box)
{
	return load_acquire(&box->phase) != BOX_OPEN && box->sched.workers;
}

/* Each piece knows something that the others do not; of an instant that two workers have seen the first counts. */
static void join(struct span *to, const struct span *piece)
{
	const struct span other = piece->turn ? *to : *piece;

	if (piece->turn)
		*to = *piece;
	for (int i = 0; i < SPAN_STAMPS; i++)
		if (other.at_ns[i] && (!to->at_ns[i] || other.at_ns[i] < to->at_ns[i]))
			to->at_ns[i] = other.at_ns[i];
	if (other.parent)
		to->parent = other.parent;
}

static uint64_t first_ns(const struct span *s)
{
	for (int i = 0; i < SPAN_STAMPS; i++)
		if (s->at_ns[i])
			return s->at_ns[i];
	return 0;
}

static uint64_t last_ns(const struct span *s)
{
	uint64_t last = 0;

	for (int i = 0; i < SPAN_STAMPS; i++)
		if (s->at_ns[i] > last)
			last = s->at_ns[i];
	return last;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = first_ns(a), y = first_ns(b);

	return (x > y) - (x < y);
}

/* The spans of one trace into list (room for SPANS_TOLD): how many. */
static uint32_t gather(struct sched *s, uint64_t hi, uint64_t lo, struct span *list)
{
	uint32_t n = 0, k;
	struct span piece;

	for (uint32_t w = 0; w < s->worker_count; w++)
		for (uint32_t i = 0; i < SPANS; i++) {
			if (!span_read_of(&s->workers[w].spans, i, hi, lo, &piece))
				continue;
			for (k = 0; k < n && list[k].span != piece.span; k++)
				;
			if (k < n)
				join(&list[k], &piece);
			else if (n < SPANS_TOLD)
				list[n++] = piece;
		}
	qsort(list, n, sizeof *list, by_time);
	return n;
}

static const char *kind_name(struct sched *s, const struct span *span)
{
	const char *colon = memchr(span->address, ':', span->address_len);
	struct type *t = colon ? sched_find_type(s, span->address, (size_t)(colon - span->address)) : NULL;

	return t && span->kind < t->pub.kind_count && t->pub.kinds[span->kind].name ? t->pub.kinds[span->kind].name : "";
}

static void tell(struct sched *s, const struct span *span, noh_span_fn *each, void *user)
{
	noh_span out = { .actor = span->address, .kind_name = kind_name(s, span), .kind = span->kind,
			 .status = span->status, .worker = span->worker, .batch = span->batch };

	trace_write_id(span->hi, span->lo, out.trace_id);
	trace_write_span(span->span, out.span_id);
	if (span->parent)
		trace_write_span(span->parent, out.parent_id);
	for (int i = 0; i < SPAN_STAMPS; i++)
		if (span->at_ns[i])
			out.at_ns[i] = span->at_ns[i] + s->wall_offset_ms * 1000000u;
	each(user, &out);
}

int noh_trace_show(noh_box *box, const char *trace_id, noh_span_fn *each, void *user)
{
	uint64_t hi, lo;
	struct span *list;
	uint32_t n;

	static_assert((int)SPAN_STAMPS == (int)NOH_STAMPS && (int)SPAN_ON_DISK == (int)NOH_ON_DISK, "the same instants");
	if (!trace_id || !trace_read_id(trace_id, strnlen(trace_id, 64), &hi, &lo))
		return error_set(NOH_EINVAL, "a trace id is 32 hex digits in lower case, and not all zero");
	if (!may_look(box))
		return error_set(NOH_ESTOPPED, "the box is not running");
	list = mem_alloc(SPANS_TOLD * sizeof *list);
	if (!list)
		return error_set(NOH_ENOMEM, "no memory to gather the spans of a trace");
	n = gather(&box->sched, hi, lo, list);
	for (uint32_t i = 0; i < n; i++)
		tell(&box->sched, &list[i], each, user);
	mem_free(list, SPANS_TOLD * sizeof *list);
	return n ? NOH_OK
		 : error_set(NOH_END, "nothing is remembered of trace %s: it was not sampled, or is too long ago", trace_id);
}

/* ── which there are ── */

struct summary {
	uint64_t hi, lo;
	uint64_t began_ns, ended_ns;     /* ended_ns 0: this place is free */
	uint32_t worker, slot;           /* where its first turn stands    */
	uint64_t first_ns;               /* and when that was received     */
	uint32_t turns;
	int32_t  status;
};

struct summaries {
	struct summary *list;
	size_t          room;            /* a power of two, twice what there may be */
};

static struct summary *place_of(const struct summaries *all, const struct span *piece)
{
	size_t at = (size_t)(piece->hi ^ piece->lo * UINT64_C(0x9e3779b97f4a7c15)) & (all->room - 1);

	while (all->list[at].ended_ns && (all->list[at].hi != piece->hi || all->list[at].lo != piece->lo))
		at = (at + 1) & (all->room - 1);
	return &all->list[at];
}

static void note(const struct summaries *all, const struct span *piece, uint32_t worker, uint32_t slot)
{
	struct summary *m = place_of(all, piece);
	uint64_t first = first_ns(piece), last = last_ns(piece);

	if (!m->ended_ns)
		*m = (struct summary){ .hi = piece->hi, .lo = piece->lo, .began_ns = first, .ended_ns = last,
				       .first_ns = UINT64_MAX };
	m->began_ns = first < m->began_ns ? first : m->began_ns;
	m->ended_ns = last > m->ended_ns ? last : m->ended_ns;
	if (!piece->turn)
		return;
	m->turns++;
	if (m->status == NOH_OK)
		m->status = piece->status;
	if (first < m->first_ns) {
		m->first_ns = first;
		m->worker = worker;
		m->slot = slot;
	}
}

static int by_length(const void *a, const void *b)
{
	const struct summary *x = a, *y = b;
	uint64_t m = x->ended_ns - x->began_ns, n = y->ended_ns - y->began_ns;

	return (m < n) - (m > n);
}

static void tell_summary(struct sched *s, const struct summary *m, noh_trace_summary_fn *each, void *user)
{
	noh_trace_summary out = { .status = m->status, .spans = m->turns, .took_ns = m->ended_ns - m->began_ns,
				  .began_ns = m->began_ns + s->wall_offset_ms * 1000000u };
	struct span first = { 0 };

	if (!m->turns || !span_read_of(&s->workers[m->worker].spans, m->slot, m->hi, m->lo, &first))
		return;                          /* overwritten meanwhile */
	trace_write_id(m->hi, m->lo, out.trace_id);
	out.actor = first.address;
	out.kind = first.kind;
	out.kind_name = kind_name(s, &first);
	each(user, &out);
}

int noh_trace_list(noh_box *box, uint32_t limit, noh_trace_summary_fn *each, void *user)
{
	struct sched *s = &box->sched;
	struct summaries all = { .room = 2 };
	struct span piece;
	size_t n = 0;

	if (!may_look(box))
		return error_set(NOH_ESTOPPED, "the box is not running");
	if (limit == 0 || limit > TRACES_TOLD)
		return error_set(NOH_EINVAL, "%u traces: 1 to %d", limit, TRACES_TOLD);
	while (all.room < (size_t)s->worker_count * SPANS * 2)
		all.room *= 2;
	all.list = mem_zalloc(all.room * sizeof *all.list);
	if (!all.list)
		return error_set(NOH_ENOMEM, "no memory to list traces");
	for (uint32_t w = 0; w < s->worker_count; w++)
		for (uint32_t i = 0; i < SPANS; i++)
			if (span_read(&s->workers[w].spans, i, &piece))
				note(&all, &piece, w, i);
	for (size_t i = 0; i < all.room; i++)
		if (all.list[i].ended_ns)
			all.list[n++] = all.list[i];
	qsort(all.list, n, sizeof *all.list, by_length);
	for (size_t i = 0; i < n && i < limit; i++)
		tell_summary(s, &all.list[i], each, user);
	mem_free(all.list, all.room * sizeof *all.list);
	return n ? NOH_OK : NOH_END;
}
