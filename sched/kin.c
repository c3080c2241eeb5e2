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

/* In the order spawned; pointers into the entries. False: no memory. */
bool kin_children(struct cell *c, struct children *out)
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

void kin_children_free(struct children *k)
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
	int rc = address_parse(&a, text, address_len(text));

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
	int rc = address_parse(&a, text, address_len(text));

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
	if (!kin_children(t->cell, &k))
		return no_memory(t, "a list of its children");
	for (uint32_t i = 0; i < k.count; i++) {
		char address[ADDRESS_MAX + 1];

		memcpy(address, k.list[i].address, k.list[i].len);
		address[k.list[i].len] = 0;
		each(user, address);
	}
	kin_children_free(&k);
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
