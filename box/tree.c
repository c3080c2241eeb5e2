#include "box/tree.h"

#include "sched/durable.h"
#include "sched/vitals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tree_spell(noh_box *box, const char *address, char out[ADDRESS_MAX + 1], struct type **type)
{
	struct address a;
	int rc = address_parse(&a, address, address_len(address));

	if (rc != NOH_OK)
		return rc;
	*type = sched_find_type(&box->sched, a.type, a.type_len);
	if (!*type)
		return error_set(NOH_ENOTYPE, "no type \"%.*s\" is registered", a.type_len, a.type);
	snprintf(out, ADDRESS_MAX + 1, "%.*s:%.*s", a.type_len, a.type, a.id_len, a.id);
	return NOH_OK;
}

/* ── copying ── */

static char *put_text(char **at, const char *text, size_t len)
{
	char *to = *at;

	if (len)
		memcpy(to, text, len);
	to[len] = 0;
	*at += len + 1;
	return to;
}

static struct tree_node *copy(struct sched *s, const struct vitals *v)
{
	size_t bytes = sizeof(struct tree_node) + v->address_len + v->of.parent_len + v->of.reason_len + v->of.error_len + 4u;
	struct tree_node *n = mem_zalloc(bytes);
	char *at = n ? n->text : NULL;

	if (!n)
		return NULL;
	n->of = v->of;
	n->life = v->cell ? cell_life(cell_at(s, v->cell)) : NOH_NOT_ACTIVE;
	n->type_out = load_relaxed(&s->types[v->type]->quarantined);
	n->bytes = (uint32_t)bytes;
	n->address = put_text(&at, v->address, v->address_len);
	n->parent = put_text(&at, v->parent, v->of.parent_len);
	n->reason = put_text(&at, v->reason, v->of.reason_len);
	n->error = put_text(&at, v->error, v->of.error_len);
	return n;
}

/* NULL is one there was no memory for. */
static bool append(struct tree *t, struct tree_node *n)
{
	if (n && t->count == t->room) {
		uint32_t room = t->room ? t->room * 2 : 64;
		struct tree_node **nodes = mem_alloc(room * sizeof *nodes);

		if (!nodes) {
			mem_free(n, n->bytes);
			return false;
		}
		if (t->count)
			memcpy(nodes, t->nodes, t->count * sizeof *nodes);
		mem_free(t->nodes, t->room * sizeof *nodes);
		t->nodes = nodes;
		t->room = room;
	}
	if (n)
		t->nodes[t->count++] = n;
	return n != NULL;
}

struct taking { struct tree *t; struct sched *s; };

static void take(void *arg, const struct vitals *v)
{
	struct taking *k = arg;

	if ((!v->cell && v->of.health < NOH_DEGRADED) || (v->of.parent_len == 0 && v->of.children == 0))
		return;
	if (!append(k->t, copy(k->s, v)))
		k->t->failed = true;
}

/* ── those in between ── */

/* Where each node stands, by its address: index + 1; 0: free. */
struct places { uint32_t *slots, room; uint64_t seed; };

static uint32_t *place_of(const struct places *p, const struct tree *t, const char *address)
{
	uint64_t at = address_hash_text(address, strlen(address), p->seed);

	while (p->slots[at & (p->room - 1)] && strcmp(t->nodes[p->slots[at & (p->room - 1)] - 1]->address, address) != 0)
		at++;
	return &p->slots[at & (p->room - 1)];
}

/* For one more: at most half of them are used. */
static bool places_room(struct places *p, const struct tree *t)
{
	uint32_t room = p->room ? p->room : 128;

	while (room / 2 <= t->count)
		room *= 2;
	if (room == p->room)
		return true;
	mem_free(p->slots, p->room * sizeof *p->slots);
	p->room = room;
	p->slots = mem_zalloc(room * sizeof *p->slots);
	for (uint32_t i = 0; p->slots && i < t->count; i++)
		*place_of(p, t, t->nodes[i]->address) = i + 1;
	return p->slots != NULL;
}

/* Of a type that is not registered any more, or cannot be read: then nobody is above it. */
static struct tree_node *copy_absent(noh_box *box, struct port *p, const char *address)
{
	size_t len = strlen(address), bytes;
	struct tree_node *n;
	noh_vitals vitals;
	uint64_t due;
	char *at;

	(void)api_vitals_at(box, p, address, &vitals, &due);
	bytes = sizeof *n + len + strlen(vitals.parent) + 3;
	n = mem_zalloc(bytes);
	if (!n)
		return NULL;
	at = n->text;
	n->of.order = vitals.order;
	n->bytes = (uint32_t)bytes;
	n->address = put_text(&at, address, len);
	n->parent = put_text(&at, vitals.parent, strlen(vitals.parent));
	n->reason = n->error = put_text(&at, "", 0);
	return n;
}

/* Whoever is in memory knows its parent, which may not be; and that one's parent may be again. So up to the top: each is
 * looked up once. */
static bool add_absent(noh_box *box, struct port *port, struct tree *t)
{
	struct places p = { .seed = box->sched.seed };
	bool ok = true;

	for (uint32_t i = 0; ok && i < t->count; i++) {
		const char *parent = t->nodes[i]->parent;
		uint32_t *place;

		if (!*parent)
			continue;
		ok = places_room(&p, t);
		place = ok ? place_of(&p, t, parent) : NULL;
		if (place && !*place) {
			ok = append(t, copy_absent(box, port, parent));
			*place = ok ? t->count : 0;
		}
	}
	mem_free(p.slots, p.room * sizeof *p.slots);
	return ok;
}

/* ── sorting out ── */

static int by_address(const void *a, const void *b)
{
	return strcmp((*(struct tree_node *const *)a)->address, (*(struct tree_node *const *)b)->address);
}

static uint32_t find(const struct tree *t, const char *address)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int order = strcmp(t->nodes[mid]->address, address);

		if (order == 0)
			return mid;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return UINT32_MAX;
}

/* Only those stand here whose parent is there, too. */
struct kid { uint32_t parent, node; uint64_t order; };

static int by_place(const void *a, const void *b)
{
	const struct kid *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent > y->parent ? 1 : -1;
	if (x->order != y->order)
		return x->order > y->order ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static bool sort_kids(struct tree *t)
{
	struct kid *kids = mem_alloc((t->count + 1) * sizeof *kids);
	uint32_t n = 0;

	t->kids = mem_alloc((t->count + 1) * sizeof *t->kids);
	for (uint32_t i = 0; kids && t->kids && i < t->count; i++) {
		uint32_t parent = *t->nodes[i]->parent ? find(t, t->nodes[i]->parent) : UINT32_MAX;

		if (parent != UINT32_MAX)
			kids[n++] = (struct kid){ parent, i, t->nodes[i]->of.order };
	}
	if (kids && n)
		qsort(kids, n, sizeof *kids, by_place);
	for (uint32_t i = 0; kids && t->kids && i < n; i++) {
		struct tree_node *parent = t->nodes[kids[i].parent];

		t->kids[i] = kids[i].node;
		if (parent->count++ == 0)
			parent->from = i;
	}
	mem_free(kids, (t->count + 1) * sizeof *kids);
	return kids && t->kids;
}

/* Depth first. A circle of parents is cut where it closes. */
static bool walk_from(struct tree *t, uint32_t root, bool last)
{
	struct { uint32_t node, next; } *stack = mem_alloc((t->count + 1) * sizeof *stack);
	uint32_t depth = 1;

	if (!stack)
		return false;
	stack[0].node = root;
	stack[0].next = 0;
	t->nodes[root]->seen = true;
	t->walk[t->steps++] = (struct tree_step){ root, 0, last };
	while (depth) {
		struct tree_node *n = t->nodes[stack[depth - 1].node];
		uint32_t i = stack[depth - 1].next++;

		if (i == n->count) {
			depth--;
			continue;
		}
		uint32_t kid = t->kids[n->from + i];

		if (t->nodes[kid]->seen)
			continue;
		t->nodes[kid]->seen = true;
		t->walk[t->steps++] = (struct tree_step){ kid, depth, i + 1 == n->count };
		stack[depth].node = kid;
		stack[depth++].next = 0;
	}
	mem_free(stack, (t->count + 1) * sizeof *stack);
	return true;
}

static bool is_root(const struct tree *t, uint32_t i)
{
	return !*t->nodes[i]->parent || find(t, t->nodes[i]->parent) == UINT32_MAX;
}

static bool walk_all(struct tree *t)
{
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; i < t->count; i++)
		if (is_root(t, i))
			last = i;
	for (uint32_t i = 0; i < t->count; i++)
		if (is_root(t, i) && !walk_from(t, i, i == last))
			return false;
	for (uint32_t i = 0; i < t->count; i++)          /* circles have no root */
		if (!t->nodes[i]->seen && !walk_from(t, i, true))
			return false;
	return true;
}

void tree_free(struct tree *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		mem_free(t->nodes[i], t->nodes[i]->bytes);
	mem_free(t->nodes, t->room * sizeof *t->nodes);
	mem_free(t->kids, (t->count + 1) * sizeof *t->kids);
	mem_free(t->walk, (t->count + 1) * sizeof *t->walk);
}

int tree_make(noh_box *box, struct port *p, const char *root, bool whole, struct tree *t)
{
	struct taking k = { t, &box->sched };
	uint32_t from = UINT32_MAX;
	bool ok;

	*t = (struct tree){ .count = 0 };
	vitals_each(&box->sched, take, &k);
	if (whole && !t->failed)
		t->failed = !add_absent(box, p, t);
	if (t->count)
		qsort(t->nodes, t->count, sizeof *t->nodes, by_address);
	t->walk = t->failed ? NULL : mem_alloc((t->count + 1) * sizeof *t->walk);
	ok = t->walk && sort_kids(t);
	if (ok && root) {
		from = find(t, root);
		if (from == UINT32_MAX) {
			tree_free(t);
			return error_set(NOH_ENOACTOR, "%s is not in the tree: it is not active, or has neither parent nor children",
					 root);
		}
	}
	ok = ok && (root ? walk_from(t, from, true) : walk_all(t));
	if (ok)
		return NOH_OK;
	tree_free(t);
	return error_set(NOH_ENOMEM, "no memory for a tree of %u actors", t->count);
}

void tree_show(const struct tree_node *n, noh_vitals *out)
{
	memset(out, 0, sizeof *out);
	*out = (noh_vitals){ .health = (noh_health)n->of.health, .life = n->life, .restarts = n->of.restarts,
			     .failed_ms = n->of.failed_ms, .until_ms = n->of.until_ms, .desired = n->of.desired,
			     .observed = n->of.observed, .order = n->of.order, .children = n->of.children };
	if (out->health == NOH_HEALTHY && n->type_out)
		out->health = NOH_QUARANTINED;
	if (out->health != NOH_DOWN && out->health != NOH_DEGRADED)
		out->until_ms = 0;
	snprintf(out->reason, sizeof out->reason, "%s", n->reason);
	snprintf(out->error, sizeof out->error, "%s", n->error);
	snprintf(out->parent, sizeof out->parent, "%s", n->parent);
}

int noh_tree(noh_box *box, const char *root, noh_tree_fn *each, void *user)
{
	char address[ADDRESS_MAX + 1];
	struct type *type;
	struct port *p;
	struct tree t;
	int rc = root ? tree_spell(box, root, address, &type) : NOH_OK;

	if (rc != NOH_OK)
		return rc;
	p = api_look_port(box);
	if (!p)
		return NOH_ESTOPPED;
	rc = tree_make(box, p, root ? address : NULL, false, &t);
	sched_port_done(p);
	if (rc != NOH_OK)
		return rc;
	for (uint32_t i = 0; i < t.steps; i++) {
		const struct tree_step *s = &t.walk[i];
		noh_vitals vitals;

		tree_show(t.nodes[s->node], &vitals);
		if (each(user, &(noh_tree_node){ t.nodes[s->node]->address, s->depth, s->last, &vitals }) != 0)
			break;
	}
	tree_free(&t);
	return NOH_OK;
}
