/* sched/meter.c - samples: see meter.h for what is measured and how often. */
#include "sched/meter.h"

struct meter *meter_of(struct port *p, const struct type *t)
{
	struct meter *m = load_relaxed(&p->meters[t->index]);

	if (__builtin_expect(m == NULL, 0)) {
		m = mem_aligned(CACHE_LINE, sizeof *m);
		store_release(&p->meters[t->index], m);          /* who reads it sees it zeroed */
	}
	return m;
}

void meter_free(struct port *p, uint32_t types)
{
	for (uint32_t i = 0; p->meters && i < types; i++)
		mem_free(load_relaxed(&p->meters[i]), sizeof(struct meter));
	mem_free(p->meters, types * sizeof *p->meters);
}

/* ── depth ── */

static void note_depth(struct port *p, const struct type *t, uint64_t depth, uint64_t now_ms)
{
	struct meter *m = meter_of(p, t);
	struct meter_depth *d;
	int64_t age;

	if (!m)
		return;
	d = &m->depth;
	age = (int64_t)(now_ms - load_relaxed(&d->since_ms));    /* below zero: see recent_ns */
	if (age >= DEPTH_WINDOW_MS) {
		store_relaxed(&d->before, age < 2 * DEPTH_WINDOW_MS ? load_relaxed(&d->now) : 0);
		store_relaxed(&d->now, depth);
		store_relaxed(&d->since_ms, now_ms);
	} else if (depth > load_relaxed(&d->now)) {
		store_relaxed(&d->now, depth);
	}
}

uint64_t meter_depth(struct meter *m, uint64_t now_ms)
{
	uint64_t since = load_relaxed(&m->depth.since_ms), now = load_relaxed(&m->depth.now);
	uint64_t before = load_relaxed(&m->depth.before);

	if (now_ms >= since + 2 * DEPTH_WINDOW_MS)
		return 0;
	return now_ms >= since + DEPTH_WINDOW_MS || now > before ? now : before;
}

void meter_full(struct port *p, struct type *t)
{
	note_depth(p, t, t->capacity, clock_now_ns(&p->sched->clock) / 1000000u);
}

/* ── turns ── */

static void next_sample(struct worker *w)
{
	uint32_t x = w->mine.sample_rng;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	w->mine.sample_rng = x;
	w->mine.sample_at = load_relaxed(&w->shown.counts.turns) + SAMPLE_EVERY / 2 + x % SAMPLE_EVERY;
}

void meter_turn(struct worker *w, uint64_t from_ns)
{
	struct noh_turn *t = &w->mine.turn;
	uint64_t now = clock_now_ns(&w->fixed.sched->clock);
	struct meter *m = meter_of(&w->mine.port, t->type);

	next_sample(w);
	if (m)
		histogram_add(&m->turn, &histogram_fine, now - from_ns);
	note_depth(&w->mine.port, t->type, mailbox_depth(&load_relaxed(&t->cell)->mailbox), now / 1000000u);
}

int meter_hook_timed(struct worker *w, const noh_msg *m)
{
	uint64_t from = clock_now_ns(&w->fixed.sched->clock);
	int rc = w->mine.turn.type->single(&w->mine.turn, m);

	meter_turn(w, from);
	return rc;
}

void meter_batch(struct worker *w, struct type *t, uint32_t n)
{
	struct meter *m = meter_of(&w->mine.port, t);

	if (m)
		histogram_add(&m->batch, &histogram_batch, n);
}

void meter_invoke(struct port *p, struct type *t, uint64_t ns)
{
	struct meter *m = meter_of(p, t);

	if (m)
		histogram_add(&m->invoke, &histogram_latency, ns);
}

/* ── waiting ──
 * The probe's since_ns is its lock and its flag: 0: free; 1: somebody is at it; else it is out. A sender takes it
 * from 0 (or from a time so long ago that nobody will come for it: its cell has gone) to 1 and puts it out; the runner
 * of the cell takes it from that time to 1, and gives it back. What is read before the second step may be another
 * probe's by then: so it is read again after it.
 * Only who takes the message itself knows how long it has waited. A runner that finds it behind him was too early to
 * see the probe; that says nothing, and is not counted. */
#define PROBE_APART_NS 100000u              /* the line is read by all workers: not written all the time */
#define PROBE_LOST_NS INT64_C(60000000000)

/* Good enough to see whether it is time for a probe, and costs nothing: a worker's is as old as its last look at the
 * clock, so it may be before what others have written down. */
static uint64_t recent_ns(struct port *p)
{
	return p->worker ? p->worker->mine.now_ns : clock_now_ns(&p->sched->clock);
}

void meter_queued(struct port *p, struct cell *c, struct type *t)
{
	uint64_t now = recent_ns(p), since = load_relaxed(&t->probe.since_ns);

	note_depth(p, t, mailbox_depth(&c->mailbox), now / 1000000u);
	if (since == 1 || (since ? (int64_t)(now - since) < PROBE_LOST_NS : now < load_relaxed(&t->probe.next_ns)))
		return;
	if (!cas_acquire(&t->probe.since_ns, &since, 1))
		return;
	store_relaxed(&t->probe.upto, mb_tail(load_relaxed(&c->mailbox.word)));
	store_relaxed(&t->probe.cell, c);
	store_release(&t->probe.since_ns, clock_now_ns(&p->sched->clock));
}

void meter_taken(struct worker *w, struct cell *c, struct type *t, uint32_t n)
{
	uint64_t since = load_acquire(&t->probe.since_ns), now;
	int64_t beyond = mb_distance(mb_tail(load_relaxed(&c->mailbox.head)), load_relaxed(&t->probe.upto));
	struct meter *m;

	if (since <= 1 || beyond < 0 || !cas_acquire(&t->probe.since_ns, &since, 1))
		return;
	beyond = mb_distance(mb_tail(load_relaxed(&c->mailbox.head)), load_relaxed(&t->probe.upto));
	if (load_relaxed(&t->probe.cell) != c || beyond < 0) {
		store_release(&t->probe.since_ns, since);        /* another one, meanwhile */
		return;
	}
	now = clock_now_ns(&w->fixed.sched->clock);
	m = beyond < (int64_t)n ? meter_of(&w->mine.port, t) : NULL;
	if (m)
		histogram_add(&m->wait, &histogram_latency, now - since);
	store_relaxed(&t->probe.cell, NULL);
	store_relaxed(&t->probe.next_ns, now + PROBE_APART_NS);
	store_release(&t->probe.since_ns, 0);
}
