/* sched/rounds.c - several at once: siblings that go down together and are restarted in order, and failures that go up. */
#include "sched/kin.h"

#include "sched/birth.h"

#include <stdio.h>
#include <string.h>

/* ── among kin ── */

/* A message of the system lane, by address; only if the actor is in memory, or else it is woken for it. */
static bool send_to(struct worker *w, const char *address, size_t len, bool wake, uint32_t op, uint64_t token,
		    const void *body, size_t body_len)
{
	struct port *p = &w->mine.port;
	struct cell *c = NULL;
	struct sysmsg *n;
	uint32_t gen = 0;

	if (wake) {
		if (sched_resolve(p, address, len, &c, &gen) != NOH_OK)
			return false;
	} else {
		struct named who;

		if (birth_name(p, address, len, &who) == NOH_OK) {
			epoch_enter(&p->epoch);
			c = sched_find(p, &who.a, who.type, who.hash, &gen);
			epoch_leave(&p->epoch);
		}
	}
	n = c ? node_take(p, op) : NULL;
	if (!n)
		return false;
	if (!node_set_body(n, body, body_len)) {
		node_free(p, n);
		return false;
	}
	n->token = token;
	sched_sys(p, c, gen, n);
	return true;
}

const noh_supervision *kin_policy(struct sched *s, const struct vitals *v)
{
	const char *colon = v->parent ? strchr(v->parent, ':') : NULL;
	struct type *t = colon ? sched_find_type(s, v->parent, (size_t)(colon - v->parent)) : NULL;

	return t && t->supervised ? &t->sup : NULL;
}

static bool in_group(struct sched *s, const struct vitals *v)
{
	const noh_supervision *above = kin_policy(s, v);

	return above && above->strategy != NOH_ONE_FOR_ONE;
}

void kin_failed(struct worker *w, struct cell *c, struct vitals *v)
{
	(void)c;
	v->told_parent = false;
	if (in_group(w->fixed.sched, v))
		(void)send_to(w, v->parent, v->of.parent_len, true, SYS_KIN_FAILED, v->of.order, NULL, 0);
}

bool kin_waits_for_parent(struct worker *w, struct cell *c, struct vitals *v)
{
	const noh_supervision *own = &cell_type(w->fixed.sched, c)->sup;

	if (v->told_parent || v->with_kin || !in_group(w->fixed.sched, v) ||
	    !send_to(w, v->parent, v->of.parent_len, true, SYS_KIN_UP, v->of.order, NULL, 0))
		return false;
	supervise_go_down(w, c, v, own->cap_ms ? own->cap_ms : 30000);
	v->told_parent = true;
	return true;
}

void kin_escalate(struct worker *w, struct cell *c, struct vitals *v, uint32_t hops)
{
	struct { uint32_t hops; char child[ADDRESS_MAX + 1]; } body = { .hops = hops };
	size_t len = cell_address(w->fixed.sched, c, body.child);

	(void)send_to(w, v->parent, v->of.parent_len, true, SYS_ESCALATE, v->of.order, &body, 4 + len + 1);
}

/* ── rounds ── */

struct round {
	uint32_t count, at, bytes;
	bool     fresh;                    /* their failures so far are forgiven */
	struct { uint32_t from, len; } list[];     /* then the addresses */
};

void kin_round_free(struct vitals *v)
{
	if (v->round)
		mem_free(v->round, v->round->bytes);
	v->round = NULL;
}

static char *round_address(struct round *r, uint32_t i)
{
	return (char *)&r->list[r->count] + r->list[i].from;
}

/* The next one that is in memory; whoever is not needs no restart. */
static void round_on(struct worker *w, struct cell *c, struct vitals *v)
{
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;
	struct round *r = v->round;

	while (r && r->at < r->count) {
		uint32_t i = r->at++;
		uint8_t fresh = r->fresh;

		if (send_to(w, round_address(r, i), r->list[i].len, false, SYS_KIN_RESTART, self, &fresh, 1))
			return;
	}
	kin_round_free(v);
}

/* All children from this order on, one after the other. */
static void round_begin(struct worker *w, struct cell *c, uint64_t from, bool fresh)
{
	struct vitals *v = vitals_of(w->fixed.sched, c);
	struct children k;
	size_t bytes = sizeof(struct round);
	struct round *r;
	uint32_t used = 0;

	if (!v || !kin_children(c, &k))
		return;
	kin_round_free(v);
	for (uint32_t i = 0; i < k.count; i++)
		bytes += sizeof r->list[0] + k.list[i].len;
	r = bytes < UINT32_MAX ? mem_zalloc(bytes) : NULL;
	for (uint32_t i = 0; r && i < k.count; i++)
		r->count += k.list[i].order >= from;
	for (uint32_t i = k.count - (r ? r->count : 0), n = 0; r && i < k.count; i++, n++) {
		r->list[n].from = used;
		r->list[n].len = (uint32_t)k.list[i].len;
		memcpy(round_address(r, n), k.list[i].address, k.list[i].len);
		used += (uint32_t)k.list[i].len;
	}
	kin_children_free(&k);
	if (!r)
		return;                          /* each has a timer of its own */
	r->bytes = (uint32_t)bytes;
	r->fresh = fresh;
	v->round = r;
	round_on(w, c, v);
}

/* One of them failed: those it stands or falls with are down, the last spawned first. */
static void put_down_siblings(struct worker *w, struct cell *c, uint64_t failed)
{
	const noh_supervision *p = &cell_type(w->fixed.sched, c)->sup;
	struct children k;

	if (!kin_children(c, &k))
		return;
	for (uint32_t i = k.count; i-- > 0; )
		if (k.list[i].order != failed && (p->strategy == NOH_ONE_FOR_ALL || k.list[i].order > failed))
			(void)send_to(w, k.list[i].address, k.list[i].len, false, SYS_KIN_DOWN, 0, NULL, 0);
	kin_children_free(&k);
}

/* ── the system lane ── */

/* Because of a sibling: no failure of its own. */
static void go_down(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_of(w->fixed.sched, c);
	const noh_supervision *above = v ? kin_policy(w->fixed.sched, v) : NULL;

	if (!v || v->down || (c->flags & (CELL_BROKEN | CELL_STOP)) || cell_life(c) != NOH_ACTIVE ||
	    !cell_type(w->fixed.sched, c)->supervised)
		return;
	supervise_go_down(w, c, v, above ? above->cap_ms : 30000);
	v->with_kin = true;
}

static void answer_round(struct port *p, uint64_t parent)
{
	noh_actor to = { parent };
	struct sysmsg *n = node_take(p, SYS_KIN_NEXT);

	if (n)
		sched_sys(p, cell_at(p->sched, ref_number(to)), ref_gen(to), n);
}

void kin_lost(struct port *p, struct sysmsg *n)
{
	answer_round(p, n->token);
}

static void restart(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	struct vitals *v = vitals_if(c);

	if (v && n->body.bytes[0])
		supervise_forgive(w, v, true);
	if (cell_type(w->fixed.sched, c)->supervised && (cell_life(c) == NOH_ACTIVE || (v && v->down)))
		supervise_restart(w, c);
	answer_round(&w->mine.port, n->token);
}

static void escalated(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	const char *body = n->len > SYS_INLINE ? n->body.big : (const char *)n->body.bytes;
	struct vitals *v = vitals_of(w->fixed.sched, c);
	char reason[NOH_REASON_MAX + 1];
	uint32_t hops;

	memcpy(&hops, body, sizeof hops);
	snprintf(reason, sizeof reason, "its child %s failed too often", body + sizeof hops);
	if (!v || !cell_type(w->fixed.sched, c)->supervised)
		return;
	v->then_children = true;
	supervise_failed(w, c, reason, hops);
}

void kin_restarted(struct worker *w, struct cell *c, struct vitals *v)
{
	if (!v->then_children || cell_life(c) != NOH_ACTIVE)
		return;
	v->then_children = false;
	round_begin(w, c, 0, true);
}

void kin_sys(struct worker *w, struct cell *c, struct sysmsg *n)
{
	const noh_supervision *p = &cell_type(w->fixed.sched, c)->sup;

	switch (n->op) {
	case SYS_KIN_FAILED:
		put_down_siblings(w, c, n->token);
		break;
	case SYS_KIN_DOWN:
		go_down(w, c);
		break;
	case SYS_KIN_UP:
		round_begin(w, c, p->strategy == NOH_REST_FOR_ONE ? n->token : 0, false);
		break;
	case SYS_KIN_RESTART:
		restart(w, c, n);
		break;
	case SYS_KIN_NEXT:
		if (vitals_if(c))
			round_on(w, c, c->ext->vitals);
		break;
	case SYS_ESCALATE:
		escalated(w, c, n);
		break;
	default:
		break;
	}
}

/* All of its type that are in memory hear of it; the others will when they come. */
void kin_quarantine_type(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	uint32_t end = load_relaxed(&s->cells.shared.fresh);

	for (uint32_t i = 2; i < end; i++) {             /* 1 is nobody's (sched_open) */
		struct cell *o = cell_at(s, i);
		struct sysmsg *n;

		if (o == c || mb_state(load_acquire(&o->mailbox.word)) == MB_DEAD || cell_type(s, o) != t)
			continue;
		n = node_take(&w->mine.port, SYS_TYPE_DOWN);
		if (n)
			sched_sys(&w->mine.port, o, load_acquire(&o->mailbox.gen), n);
	}
}
