/* sched/window.c - messages looked at together: batches (on_batch) and coalescing (MB-07).
 *
 * What waits is taken, up to a window; superseded messages go, the rest is handled in batches or one by
 * one. If the actor has to rest in between, what is left of the window is kept for later, in order.
 */
#include "sched/meter.h"
#include "sched/serve.h"

struct coalesce { uint64_t key, revision; bool is, gone; };

/* Of the messages with one key only the highest revision stays, the latest of equals (MB-07). */
static uint32_t coalesce(struct worker *w, struct cell *c, struct type *t, struct slot **slots,
			 uint32_t n)
{
	struct coalesce of[WINDOW_MAX];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct msg *m = &slots[i]->msg;

		of[i].gone = false;
		of[i].is = t->pub.kinds && m->kind < t->pub.kind_count &&
			   (t->pub.kinds[m->kind].flags & NOH_KIND_COALESCE);
		if (!of[i].is)
			continue;
		t->pub.kinds[m->kind].coalesce(msg_body(m), msg_len(m), &of[i].key, &of[i].revision);
		for (uint32_t j = 0; j < i; j++) {
			if (of[j].gone || !of[j].is || slots[j]->msg.kind != m->kind ||
			    of[j].key != of[i].key)
				continue;
			if (of[j].revision > of[i].revision)
				of[i].gone = true;
			else
				of[j].gone = true;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (of[i].gone) {
			count_one(&w->mine.port.types[t->index].coalesced, 1);
			if (t->durable)
				durable_dropped(w, c, &slots[i]->msg);
			msg_dispose(&w->mine.port, &slots[i]->msg, NOH_OK);
			mailbox_release(slots[i]);
		} else {
			slots[kept++] = slots[i];
		}
	}
	return kept;
}

static void window_done(struct slot **slots, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		msg_free_body(&slots[i]->msg);
		mailbox_release(slots[i]);
	}
}

/* The actor cannot go on with the rest of the window now. */
static void window_keep(struct worker *w, struct cell *c, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < n; i++) {
		extra_keep(w, c, &w->mine.msgs[i], &w->mine.window[i]->msg, false);
		mailbox_release(w->mine.window[i]);
	}
}

static uint32_t serve_part(struct worker *w, struct cell *c, struct type *t, uint32_t at, uint32_t n, bool retry)
{
	int rc = serve_turn(w, c, &w->mine.msgs[at], n, retry);

	if (rc == NOH_FULL || (rc < 0 && retry)) {
		if (rc == NOH_FULL)
			after_turn(w, c, rc);
		return 0;
	}
	if (t->pub.on_batch)
		meter_batch(w, t, n);
	window_done(&w->mine.window[at], n);
	after_turn(w, c, rc);
	return n;
}

/* Messages that only read are not mixed with others in a batch; nor are those with a key, which may
 * have been handled before, perhaps in this very batch. */
static bool alone(struct type *t, const noh_msg *m)
{
	const struct envelope *env = msg_envelope(m);

	return (t->reads && type_reads(t, m->kind)) || (env && env->key_len);
}

static uint32_t batch_length(struct worker *w, struct type *t, uint32_t at, uint32_t n)
{
	uint32_t part = 1;

	if (alone(t, &w->mine.msgs[at]))
		return 1;
	while (at + part < n && part < BATCH_MAX && !alone(t, &w->mine.msgs[at + part]))
		part++;
	return part;
}

/* It neither rests nor was given up, nor is it late. */
static bool may_go_on(struct cell *c)
{
	return !cell_rests(c) && !cell_late(c) && !(c->flags & CELL_BROKEN);
}

static void serve_all(struct worker *w, struct cell *c, struct type *t, uint32_t n)
{
	uint32_t at = 0, most;

	if (t->coalesces)
		n = coalesce(w, c, t, w->mine.window, n);
	for (uint32_t i = 0; i < n; i++)
		to_public(&w->mine.msgs[i], &w->mine.window[i]->msg);
	most = load_relaxed(&t->limits) & LIMIT_WAIT && limit_left(c) < n ? limit_left(c) : n;
	while (at < most && may_go_on(c)) {
		uint32_t part = t->pub.on_batch && !poison_suspects(w->fixed.sched, c)
					? batch_length(w, t, at, most) : 1, end;

		if (part > 1 && serve_part(w, c, t, at, part, true)) {
			at += part;
			continue;
		}
		/* One message, or a batch that failed: message by message. */
		end = at + part;
		while (at < end && may_go_on(c) && serve_part(w, c, t, at, 1, false))
			at++;
		if (at < end)
			break;
	}
	if (load_relaxed(&t->limits))
		limit_used(c, at);
	window_keep(w, c, at, n);
}

uint32_t window_serve(struct worker *w, struct cell *c, struct type *t, struct slot *first)
{
	uint32_t n = 1, max = t->coalesces ? WINDOW_MAX : BATCH_MAX;

	/* What coalesces is all looked at, and then there is less of it; of others, no more than may be handled. */
	if (!t->coalesces && load_relaxed(&t->limits) & LIMIT_WAIT && limit_left(c) < max)
		max = limit_left(c);
	w->mine.window[0] = first;
	while (n < max && mailbox_take(&c->mailbox, &w->mine.port.room, t->shared,
				       &w->mine.window[n]) == MB_TAKEN)
		n++;
	meter_took(w, c, t, n);
	serve_all(w, c, t, n);
	return n;
}
