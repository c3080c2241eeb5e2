#include "sched/kin.h"

#include "sched/birth.h"
#include "sched/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ── a parent's list ── */

#define KEY_LEN (KIN_KEY_LEN + 16)

/* An address does not fit a key beside the prefix: 128 bits of its hash do. */
static void key_of(uint8_t key[KEY_LEN], const char *address, size_t len)
{
	XXH128_canonical_t sum;

	XXH128_canonicalFromHash(&sum, XXH3_128bits(address, len));
	memcpy(key, KIN_KEY, KIN_KEY_LEN);
	memcpy(key + KIN_KEY_LEN, sum.digest, 16);
}

const struct kv_node *kin_skip(const struct kv *kv)
{
	uint8_t behind[KEY_LEN + 1];

	memset(behind, 0xff, sizeof behind);
	memcpy(behind, KIN_KEY, KIN_KEY_LEN);
	return kv_next(kv, behind, sizeof behind);
}

struct child { uint64_t order; const char *address; size_t len; };

/* The value: order, then the address. */
static struct child child_of(const struct kv_node *n)
{
	struct child k = { .address = (const char *)kv_value(n) + 8, .len = n->vlen - 8u };

	memcpy(&k.order, kv_value(n), 8);
	return k;
}

static int by_order(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

struct children { struct child *list; uint32_t count, room; };

/* In the order spawned; pointers into the entries. False: no memory. */
static bool children_of(struct cell *c, struct children *out)
{
	const struct kv *kv = c->ext ? &c->ext->kv : NULL;
	const struct kv_node *n = kv ? kv_next(kv, KIN_KEY, KIN_KEY_LEN) : NULL;

	*out = (struct children){ .room = vitals_if(c) ? c->ext->vitals->of.children + 8 : 8 };
	out->list = mem_alloc(out->room * sizeof *out->list);
	for (; out->list && n && kin_key(kv_key(n), n->klen); n = kv_next(kv, kv_key(n), n->klen)) {
		if (n->klen != KEY_LEN || n->vlen <= 8)
			continue;
		if (out->count == out->room) {
			struct child *more = mem_alloc(out->room * 2 * sizeof *more);

			if (more)
				memcpy(more, out->list, out->count * sizeof *more);
			mem_free(out->list, out->room * sizeof *more);
			out->list = more;
			out->room *= 2;
			if (!more)
				break;
		}
		out->list[out->count++] = child_of(n);
	}
	if (out->list && out->count)
		qsort(out->list, out->count, sizeof *out->list, by_order);
	return out->list != NULL;
}

static void children_free(struct children *k)
{
	mem_free(k->list, k->room * sizeof *k->list);
}

/* ── in a turn ── */

static int no_memory(noh_turn *t, const char *what)
{
	return error_set(NOH_ENOMEM, "%s: no memory for %s", noh_address(t), what);
}

/* What the turn says begins with what is so. */
static int open_vitals(noh_turn *t)
{
	struct vitals *v;

	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (t->so_far.flags & TURN_VITALS)
		return NOH_OK;
	v = vitals_of(t->sched, t->cell);
	if (!v)
		return no_memory(t, "its vitals");
	t->vitals.desired = v->of.desired;
	t->vitals.observed = v->of.observed;
	t->vitals.spawned = v->of.spawned;
	t->vitals.children = v->of.children;
	t->vitals.has_error = false;
	t->so_far.flags |= TURN_VITALS;
	return NOH_OK;
}

int noh_set_revision(noh_turn *t, uint64_t desired, uint64_t observed)
{
	int rc = open_vitals(t);

	if (rc == NOH_OK) {
		t->vitals.desired = desired;
		t->vitals.observed = observed;
	}
	return rc;
}

int noh_set_error(noh_turn *t, const char *text)
{
	int rc = open_vitals(t);

	if (rc == NOH_OK) {
		snprintf(t->vitals.error, sizeof t->vitals.error, "%s", text ? text : "");
		t->vitals.error_len = (uint8_t)strlen(t->vitals.error);
		t->vitals.has_error = true;
	}
	return rc;
}

int noh_get_own_vitals(noh_turn *t, noh_vitals *out)
{
	struct vitals *v = t->so_far.flags & TURN_OUTSIDE ? NULL : vitals_if(t->cell);

	memset(out, 0, sizeof *out);
	out->life = NOH_ACTIVE;
	if (t->so_far.flags & TURN_OUTSIDE)
		return error_set(NOH_EREADONLY, "%s: a read-only call beside the mailbox sees the state alone", noh_address(t));
	if (v)
		vitals_tell(t->sched, v, out);
	if (t->so_far.flags & TURN_VITALS) {
		out->desired = t->vitals.desired;
		out->observed = t->vitals.observed;
		out->children = t->vitals.children;
		if (t->vitals.has_error)
			memcpy(out->error, t->vitals.error, sizeof out->error);
	}
	return NOH_OK;
}

const char *noh_parent_address(noh_turn *t)
{
	struct vitals *v = t->so_far.flags & TURN_OUTSIDE ? NULL : vitals_if(t->cell);

	return v && v->parent ? v->parent : "";
}

noh_actor noh_parent(noh_turn *t)
{
	struct port *p = &t->worker->mine.port;
	const char *address = noh_parent_address(t);
	noh_actor parent = { 0 };
	struct named who;
	uint32_t gen;

	if (t->so_far.flags & TURN_OUTSIDE)
		return parent;
	if (t->cell->ext)
		parent = t->cell->ext->parent;
	if (ref_number(parent) && load_acquire(&cell_at(t->sched, ref_number(parent))->mailbox.gen) == ref_gen(parent))
		return parent;
	parent = (noh_actor){ 0 };
	if (*address && birth_name(p, address, strlen(address), &who) == NOH_OK) {
		epoch_enter(&p->epoch);
		struct cell *c = sched_find(p, &who.a, who.type, who.hash, &gen);

		if (c)
			parent = t->cell->ext->parent = ref_make(cell_number(t->sched, c), gen);
		epoch_leave(&p->epoch);
	}
	return parent;
}

/* "type/id" is the same actor as "type:id"; entries are by the latter. */
static size_t spell(const struct address *a, char out[ADDRESS_MAX + 1])
{
	return (size_t)snprintf(out, ADDRESS_MAX + 1, "%.*s:%.*s", a->type_len, a->type, a->id_len, a->id);
}

/* A place among the children, the old one if it is one. */
int kin_adopt(noh_turn *t, const char *text, uint64_t *order)
{
	uint8_t key[KEY_LEN], value[8 + ADDRESS_MAX];
	char address[ADDRESS_MAX + 1];
	const struct kv_node *n;
	struct address a;
	size_t len;
	int rc = address_parse(&a, text, strlen(text));

	if (rc == NOH_OK)
		rc = open_vitals(t);
	if (rc != NOH_OK)
		return rc;
	len = spell(&a, address);
	if (strcmp(address, noh_address(t)) == 0 || strcmp(address, noh_parent_address(t)) == 0)
		return error_set(NOH_EINVAL, "%s cannot be the parent of %s: it is %s", noh_address(t), address,
				 strcmp(address, noh_address(t)) == 0 ? "the same" : "its child");
	key_of(key, address, len);
	n = kv_get(&t->cell->ext->kv, key, sizeof key);
	if (n) {
		*order = child_of(n).order;
		return NOH_OK;
	}
	*order = ++t->vitals.spawned;
	memcpy(value, order, 8);
	memcpy(value + 8, address, len);
	t->so_far.flags |= TURN_KV;
	if (kv_put(&t->cell->ext->kv, &t->kv_log, key, sizeof key, value, 8 + len) != NOH_OK)
		return no_memory(t, "another child");
	t->vitals.children++;
	return NOH_OK;
}

int noh_disown(noh_turn *t, const char *text)
{
	char address[ADDRESS_MAX + 1];
	uint8_t key[KEY_LEN];
	struct address a;
	int rc = address_parse(&a, text, strlen(text));

	if (rc == NOH_OK)
		rc = open_vitals(t);
	if (rc != NOH_OK)
		return rc;
	key_of(key, address, spell(&a, address));
	t->so_far.flags |= TURN_KV;
	rc = kv_delete(&t->cell->ext->kv, &t->kv_log, key, sizeof key);
	if (rc == NOH_OK && t->vitals.children)
		t->vitals.children--;
	return rc == NOH_ENOMEM ? no_memory(t, "a child less") : rc;
}

int noh_children(noh_turn *t, noh_child_fn *each, void *user)
{
	struct children k;

	if (t->so_far.flags & TURN_OUTSIDE)
		return error_set(NOH_EREADONLY, "%s: a read-only call beside the mailbox sees the state alone", noh_address(t));
	if (!children_of(t->cell, &k))
		return no_memory(t, "a list of its children");
	for (uint32_t i = 0; i < k.count; i++) {
		char address[ADDRESS_MAX + 1];

		memcpy(address, k.list[i].address, k.list[i].len);
		address[k.list[i].len] = 0;
		each(user, address);
	}
	children_free(&k);
	return NOH_OK;
}

/* ── the child hears of it ── */

bool kin_publish_spawn(struct port *p, struct effect *e)
{
	noh_actor parent = { e->msg.reply };
	struct sysmsg *n = node_take(p, SYS_SPAWN);
	struct spawn s = { .order = 0 };
	size_t len = cell_address(p->sched, cell_at(p->sched, ref_number(parent)), s.parent);

	if (!n)
		return false;
	memcpy(&s.order, e->msg.body.bytes, 8);
	n->token = e->msg.reply;
	if (!node_set_body(n, &s, offsetof(struct spawn, parent) + len + 1)) {
		node_free(p, n);
		return false;
	}
	sched_sys(p, cell_at(p->sched, e->cell), e->gen, n);
	return true;
}

void kin_adopted(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	const struct spawn *s = n->len > SYS_INLINE ? n->body.big : (const struct spawn *)(const void *)n->body.bytes;
	struct vitals *v = n->len && (c->flags & CELL_LOADED) ? vitals_of(w->fixed.sched, c) : NULL;

	if (!v || (v->of.order == s->order && v->parent && strcmp(v->parent, s->parent) == 0))
		return;
	vitals_lock(w->fixed.sched, v);
	if (vitals_text(&v->parent, &v->of.parent_len, s->parent, strlen(s->parent)))
		v->of.order = s->order;
	vitals_unlock(w->fixed.sched, v);
	supervise_note(w, c);
}

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

	if (!v || !children_of(c, &k))
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
	children_free(&k);
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

	if (!children_of(c, &k))
		return;
	for (uint32_t i = k.count; i-- > 0; )
		if (k.list[i].order != failed && (p->strategy == NOH_ONE_FOR_ALL || k.list[i].order > failed))
			(void)send_to(w, k.list[i].address, k.list[i].len, false, SYS_KIN_DOWN, 0, NULL, 0);
	children_free(&k);
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

	store_release(&t->quarantined, 1);
	for (uint32_t i = 2; i < end; i++) {
		struct cell *o = cell_at(s, i);
		struct sysmsg *n;

		if (o == c || mb_state(load_acquire(&o->mailbox.word)) == MB_DEAD || cell_type(s, o) != t)
			continue;
		n = node_take(&w->mine.port, SYS_TYPE_DOWN);
		if (n)
			sched_sys(&w->mine.port, o, load_acquire(&o->mailbox.gen), n);
	}
}
