/* sched/serve_turn.c - one turn the general way: a batch, a message that comes again, an activation; and one that failed.
 *
 * Messages that come one by one out of a mailbox have a shorter way, in serve.c and serve_ring.c.
 */
#include "sched/meter.h"
#include "sched/notice.h"
#include "sched/serve.h"
#include "sched/trace.h"

void serve_failed(struct worker *w, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	turn_undo(w);
	if (t->type->durable)
		durable_failed(w, load_relaxed(&t->cell));
	else if (sched_is_durable(t->sched))
		t->due = load_relaxed(body_due(load_relaxed(&t->cell)->body));
	serve_answer_failed(w, rc);
	if (rc != NOH_ENOSPC)            /* a full disk is said once, not once a turn */
		turn_logf(t, NOH_WARN, "turn failed: %s",
			  t->so_far.flags & TURN_REASON ? t->reason : noh_strerror(rc));
}

void serve_answer_failed(struct worker *w, int rc)
{
	struct noh_turn *t = &w->mine.turn;
	struct port *p = &w->mine.port;

	if (t->so_far.flags & TURN_TRACED)
		trace_failed(w, rc);
	if (!t->type->tells && rc != NOH_ENOSPC)
		notice_failed(w, load_relaxed(&t->cell), t->msg_count ? t->msgs[0].kind : UINT32_MAX, rc,
			      t->so_far.flags & TURN_REASON ? t->reason : noh_strerror(rc));
	for (uint32_t i = 0; i < t->msg_count; i++)
		if (t->msgs[i].reply_to)
			turn_answer_failed(w, &t->msgs[i], rc);
	count_one(&p->types[t->type->index].failed, t->msg_count);
	turn_counted(load_relaxed(&t->cell), t->type, t->msg_count);
}

int serve_turn(struct worker *w, struct cell *c, const noh_msg *msgs, uint32_t n, bool retry)
{
	struct noh_turn *t = &w->mine.turn;
	struct type *ty = cell_type(w->fixed.sched, c);
	struct effect *none;
	uint64_t from;
	uint32_t wrapped = 0;
	int rc;

	for (uint32_t i = 0; ty->durable && w->mine.read_only && i < n; i++)
		if (durable_waits(w, &msgs[i]))
			return NOH_FULL;
	if (n == 1 && poison_refused(w, c, msgs))
		return NOH_OK;
	if (n == 1 && ty->durable && durable_repeated(w, c, msgs)) {
		count_one(&w->mine.port.types[ty->index].handled, 1);
		return NOH_OK;
	}
	turn_begin(w, c, ty, msgs, n);
	for (uint32_t i = 0; i < n; i++)
		wrapped |= msgs[i].flags;
	if (__builtin_expect(wrapped & MSG_WRAPPED, 0))
		trace_turn_begins(w);
	poison_note(w, c, msgs, n);
	supervise_hook_begins(w, ty);
	from = meter_begin(w);
	if (ty->pub.on_message && (n == 1 || !ty->pub.on_batch))
		rc = ty->pub.on_message(t, msgs);
	else
		rc = ty->pub.on_batch(t, msgs, n);
	meter_end(w, from);
	poison_done(w);
	if (ty->supervised)
		rc = supervise_hook_ended(w, rc);
	return end_turn(w, c, rc, 0, false, retry, &none);
}

void serve_activate(struct worker *w, struct cell *c)
{
	if (life_activate(w, c))
		after_turn(w, c, NOH_OK);
}
