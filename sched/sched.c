/* sched/sched.c - opening and closing, ports, and the way of a runnable actor to a worker. */
#include "sched/durable.h"
#include "sched/late.h"
#include "sched/meter.h"
#include "sched/vitals.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct worker *self;
static _Thread_local bool reading;      /* a read-only hook runs on this thread, whoever it is */

struct worker *sched_self(void)
{
	return self;
}

void sched_set_self(struct worker *w)
{
	self = w;
}

bool sched_in_turn(void)
{
	return self || reading;
}

void sched_set_reading(bool yes)
{
	reading = yes;
}

struct type *sched_find_type(struct sched *s, const char *name, size_t len)
{
	for (uint32_t i = 0; i < s->type_count; i++)
		if (s->types[i]->name_len == len && memcmp(s->types[i]->name, name, len) == 0)
			return s->types[i];
	return NULL;
}

/* ── ports ── */

static bool port_open(struct sched *s, struct port *p, struct worker *w)
{
	p->sched = s;
	p->worker = w;
	p->room = (struct mailroom){ &s->rings, &p->rings };
	ck_epoch_register(&s->epoch, &p->epoch, NULL);
	p->types = mem_aligned(CACHE_LINE, (s->type_count + 1) * sizeof *p->types);
	p->meters = mem_zalloc(s->type_count * sizeof *p->meters);
	return p->types && p->meters;
}

/* A worker's own, or one of a few that outside threads take turns with. Threads start looking at
 * different places, so two rarely meet; when all are taken, wait: each is held for one send. */
struct port *sched_port(struct sched *s)
{
	uint32_t at;

	if (self && self->fixed.sched == s)
		return &self->mine.port;
	at = (uint32_t)((uintptr_t)&self >> 6) * 2654435761u >> 16;
	for (uint32_t tries = 0;; tries++) {
		struct port *p = &s->outside[(at + tries) % OUTSIDE_PORTS];
		uint32_t none = 0;

		if (!load_relaxed(&p->busy) && cas_seq_cst(&p->busy, &none, 1)) {
			epoch_poll(&p->epoch);
			return p;
		}
		if (tries % OUTSIDE_PORTS == OUTSIDE_PORTS - 1)
			sched_yield();
	}
}

void sched_port_done(struct port *p)
{
	if (!p->worker)
		store_release(&p->busy, 0);
}

/* ── nodes of the system lane ── */

struct sysmsg *node_take(struct port *p, uint32_t op)
{
	uint32_t n = slab_take(&p->sched->nodes, &p->nodes);
	struct sysmsg *m;

	if (!n)
		return NULL;
	m = (struct sysmsg *)slab_at(&p->sched->nodes, n);
	m->op = op;
	m->kind = 0;
	m->len = 0;
	m->status = 0;
	m->token = 0;
	return m;
}

void node_free(struct port *p, struct sysmsg *n)
{
	if (n->len > SYS_INLINE)
		mem_free(n->body.big, n->len & MSG_WRAPPED ? ((struct envelope *)n->body.big)->bytes
							   : n->len);
	slab_give(&p->sched->nodes, &p->nodes, slab_number(&p->sched->nodes, n));
}

bool node_set_body(struct sysmsg *n, const void *body, size_t len)
{
	if (len > SYS_INLINE) {
		n->body.big = mem_alloc(len);
		if (!n->body.big)
			return false;
		memcpy(n->body.big, body, len);
	} else if (len) {
		memcpy(n->body.bytes, body, len);
	}
	n->len = (uint32_t)len;
	return true;
}

/* ── a runnable actor finds a worker ── */

/* The one that leads, so that a lone message wakes nobody for nothing; or the address's home, if that helps. If nobody
 * leads: the one that is quickest with a lone record, or the home. Never one that is stuck in a long turn. */
static struct worker *pick_worker(struct sched *s, struct cell *c)
{
	uint32_t home = ring_hash_owner(&s->homes, c->body->hash), lead = load_relaxed(&s->lead), best;
	struct worker *w = &s->workers[home];

	if (worker_is_up(w) && (lead == home + 1 || load_relaxed(&w->shared.spread.helps)))
		return w;
	if (lead && worker_is_up(&s->workers[lead - 1]))
		return &s->workers[lead - 1];
	best = worker_is_up(w) ? 0 : writer_ask(&s->writers, s->worker_count);
	if (best)
		w = &s->workers[best - 1];
	for (uint32_t i = 0; load_relaxed(&w->shared.stuck) && i < s->worker_count; i++)
		w = &s->workers[(home + i) % s->worker_count];
	return w;
}

void sched_enqueue(struct port *p, struct cell *c)
{
	struct sched *s = p->sched;
	struct worker *w = p->worker;
	uint32_t n = cell_number(s, c);

	if (w && runq_push(&w->runq, n))
		return;
	if (!w)
		w = pick_worker(s, c);
	if (inbox_push(&w->shared.inbox, n, &c->mailbox))
		park_wake(&w->shared.park);
}

/* ── numbers ── */

uint64_t sched_sum(struct sched *s, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->worker_count; i++)
		sum += load_relaxed((atomic_u64 *)(void *)((char *)&s->workers[i].mine.port + offset));
	for (uint32_t i = 0; s->outside && i < OUTSIDE_PORTS; i++)
		sum += load_relaxed((atomic_u64 *)(void *)((char *)&s->outside[i] + offset));
	return sum;
}

uint64_t sched_actors(struct sched *s)
{
	uint64_t died = sched_sum(s, offsetof(struct port, died));
	uint64_t born = sched_sum(s, offsetof(struct port, born));

	return born > died ? born - died : 0;
}

/* ── open, start, close ── */

static bool open_slabs(struct sched *s)
{
	uint32_t others = s->max_actors < 1u << 26 ? s->max_actors + 65536 : 1u << 26;

	if (!slab_open(&s->cells, sizeof(struct cell),
		       offsetof(struct cell, mailbox) + offsetof(struct mailbox, link), s->max_actors) ||
	    !slab_open(&s->nodes, sizeof(struct sysmsg), offsetof(struct sysmsg, number), others) ||
	    !slab_open(&s->pendings, pending_size(), pending_link(), others))
		return false;
	return rings_open(&s->rings, s->max_actors + 1024);
}

int sched_open(struct sched *s)
{
	size_t chunks = s->max_actors / CHUNK_CELLS + 2;

	ck_epoch_init(&s->epoch);
	topics_open(&s->topics, s->seed);
	if (!vitals_open(s))
		return error_set(NOH_ENOMEM, "no memory for a box");
	store_relaxed(&s->next_sweep_ds, UINT64_MAX);
	s->types = mem_zalloc(TYPES_MAX * sizeof *s->types);
	s->chunk_due_ds = mem_alloc(chunks * sizeof *s->chunk_due_ds);
	if (!s->types || !s->chunk_due_ds || !open_slabs(s) || !directory_open(&s->directory, s->max_actors))
		return error_set(NOH_ENOMEM, "no memory (or address space) for a box of %u actors",
				 s->max_actors);
	memset(s->chunk_due_ds, 0xff, chunks * sizeof *s->chunk_due_ds);
	store_relaxed(&s->cells.shared.fresh, 2);   /* 1 is what the directory calls a removed entry */
	ring_hash_init(&s->homes, s->worker_count);
	return NOH_OK;
}

/* ── what actors have handled ──
 * A box that may be asked for it pays 8 bytes an actor, in the body that its turn works on anyway. */

void sched_count_messages(struct sched *s)
{
	for (uint32_t i = 0; i < s->type_count; i++) {
		struct type *t = s->types[i];

		if (t->counted)
			continue;
		t->counted = true;
		t->count_off = t->version_off;
		t->version_off += 8;
		t->state_off += 8;
		t->id_off += 8;
	}
}

uint64_t sched_handled(struct sched *s, struct cell *c)
{
	struct type *t = cell_type(s, c);

	return t->counted ? load_relaxed(body_handled(load_relaxed(&c->body), t)) : 0;
}

/* ── when actors were activated ──
 * A box that may be asked for it pays 4 bytes an actor, beside the cells. Without memory nobody is told: that is all. */

void sched_keep_since(struct sched *s)
{
	s->since_ds = mem_reserve(s->max_actors * sizeof *s->since_ds);
}

uint64_t sched_since_ms(struct sched *s, struct cell *c)
{
	return s->since_ds ? s->wall_offset_ms + load_relaxed(&s->since_ds[cell_number(s, c)]) * UINT64_C(100) : 0;
}

static bool worker_open(struct sched *s, struct worker *w, uint32_t index, size_t scratch)
{
	w->fixed.sched = s;
	w->fixed.index = index;
	w->mine.turn.worker = w;
	w->mine.turn.sched = s;
	w->mine.turn.fx = &w->mine.fx[0];
	w->mine.turn.other_fx = &w->mine.fx[1];
	w->mine.perch = perch_at(index);
	w->mine.rng = (s->seed + index) * UINT64_C(0x9E3779B97F4A7C15) | 1;
	w->mine.now_ns = clock_now_ns(&s->clock);
	w->mine.now_ms = w->mine.now_ns / 1000000u;
	w->mine.sample_rng = (uint32_t)w->mine.rng | 1;
	w->mine.pass_ns = w->mine.window_ns = w->mine.now_ns;
	store_relaxed(&w->shown.since_ns, w->mine.now_ns);
	store_relaxed(&w->shown.next_timer_ms, UINT64_MAX);
	store_relaxed(&w->shown.awaits, UINT64_MAX);
	store_relaxed(&w->shown.net_awaits, UINT64_MAX);
	w->mine.scratch = mem_aligned(CACHE_LINE, scratch);
	w->mine.turn.scratch = w->mine.scratch;
	return w->mine.scratch && turn_open(w) && port_open(s, &w->mine.port, w) &&
	       runq_open(&w->runq, 1024) &&
	       wheel_init(&w->timers.wheel, w->mine.now_ms);
}

static void name_words(struct type *t)
{
	char   text[TYPE_NAME_MAX + 2];
	size_t n = t->name_len < 8 ? t->name_len + 1 : 8;

	memcpy(text, t->name, t->name_len);
	text[t->name_len] = ':';
	memcpy(&t->name_head, text, n);
	memset(&t->name_mask, 0xff, n);
}

int sched_start(struct sched *s)
{
	size_t scratch = 64;
	bool   ok = true;

	for (uint32_t i = 0; i < s->type_count; i++) {
		if (s->types[i]->pub.state_size + 8u > scratch)
			scratch = s->types[i]->pub.state_size + 8u;
		name_words(s->types[i]);
	}
	s->workers = mem_aligned(CACHE_LINE, s->worker_count * sizeof *s->workers);
	s->outside = mem_aligned(CACHE_LINE, OUTSIDE_PORTS * sizeof *s->outside);
	if (!s->workers || !s->outside)
		return error_set(NOH_ENOMEM, "no memory for %u workers", s->worker_count);
	for (uint32_t i = 0; ok && i < OUTSIDE_PORTS; i++)
		ok = port_open(s, &s->outside[i], NULL);
	for (uint32_t i = 0; ok && i < s->worker_count; i++)
		ok = worker_open(s, &s->workers[i], i, scratch);
	if (ok && load_relaxed(&s->memory_budget))
		sched_weigh(s, s->workers[0].mine.now_ms);
	return ok ? NOH_OK : error_set(NOH_ENOMEM, "no memory for %u workers", s->worker_count);
}

static void port_close(struct sched *s, struct port *p)
{
	if (!p->sched)
		return;
	graves_close(p);
	graves_empty_limbo(p);
	epoch_synchronize_all(&p->epoch);
	mem_free(p->types, (s->type_count + 1) * sizeof *p->types);
	meter_free(p, s->type_count);
}

/* Nobody runs any more: whatever is left in memory goes. */
void sched_discard(struct sched *s)
{
	uint32_t end = s->cells.fixed.base ? load_relaxed(&s->cells.shared.fresh) : 0;

	if (!s->outside || !s->outside[0].sched || !s->outside[0].types)
		return;
	pending_end_all(&s->outside[0]);
	for (uint32_t i = 0; i < s->worker_count; i++) {
		struct effect *e;

		while ((e = hands_take(&s->workers[i].hands)) != NULL) {
			uint32_t t = load_relaxed(&cell_at(s, e->cell)->type);

			count_one(&s->outside[0].types[t].accepted, 1);
			count_one(&s->outside[0].types[t].dropped_stop, 1);
			msg_dispose(&s->outside[0], &e->msg, NOH_ESTOPPED);
		}
		late_discard(&s->workers[i], &s->outside[0]);
	}
	for (uint32_t n = 1; n < end; n++) {
		struct cell *c = cell_at(s, n);

		if (c->body && mb_state(load_relaxed(&c->mailbox.word)) != MB_DEAD)
			life_discard(&s->outside[0], c);
	}
}

void sched_close(struct sched *s)
{
	if (s->workers && s->outside)
		sched_discard(s);
	for (uint32_t i = 0; s->workers && i < s->worker_count; i++) {
		struct worker *w = &s->workers[i];

		clock_close(w);
		port_close(s, &w->mine.port);
		turn_free(w);
		mem_free(w->mine.turn.topics.bytes, w->mine.turn.topics.room);
		mem_free(w->mine.turn.watches.bytes, w->mine.turn.watches.room);
		gate_free(w);
		span_ring_close(&w->spans);
		mem_free(w->mine.receivers, w->mine.receiver_room * sizeof *w->mine.receivers);
		runq_close(&w->runq);
		mem_free(w->mine.scratch, 0);
	}
	for (uint32_t i = 0; s->outside && i < OUTSIDE_PORTS; i++)
		port_close(s, &s->outside[i]);
	vitals_close(s);
	mem_free(s->workers, 0);
	mem_free(s->outside, 0);
	directory_close(&s->directory);
	if (s->cells.fixed.base)
		slab_close(&s->cells);
	if (s->nodes.fixed.base)
		slab_close(&s->nodes);
	if (s->pendings.fixed.base)
		slab_close(&s->pendings);
	for (uint32_t k = 0; k < BODY_CLASSES; k++)
		if (s->bodies[k].fixed.base)
			slab_close(&s->bodies[k]);
	rings_close(&s->rings);
	for (uint32_t i = 0; i < s->type_count; i++)
		mem_free(s->types[i], sizeof *s->types[i]);
	mem_free(s->types, 0);
	mem_free(s->chunk_due_ds, 0);
	if (s->since_ds)
		mem_unreserve(s->since_ds, s->max_actors * sizeof *s->since_ds);
	if (load_relaxed(&s->buckets))
		mem_unreserve((void *)load_relaxed(&s->buckets), s->max_actors * sizeof(atomic_u64));
}
