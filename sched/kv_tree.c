/* sched/kv_tree.c - a B+ tree of entries, with the first bytes of their keys beside the pointers.
 *
 *     block   the heads of up to 32 keys | as many pointers, to entries or to blocks | (above: as many keys)
 *
 * A search looks at heads that stand side by side, and at a key only where heads are the same: with a hundred
 * thousand entries that is some four cold lines, and with ten of them one.
 *
 * Undoing needs no memory: within a turn blocks are split and grow, but none goes and none shrinks. So, when a
 * turn is undone from its end, an entry that was taken out finds the block it was in, or a part of that, with
 * its place still free. What is empty is let go when the turn has ended. Undone or not, blocks may be left
 * split: that is a matter of memory, not of content.
 */
#include "sched/kv_tree.h"

#include "core/mem.h"
#include "core/must.h"

#include <assert.h>
#include <string.h>

#define FANOUT 32u
#define FANOUT_LEAST 4u

static_assert(sizeof(struct kv_node) == 8, "values begin aligned");

struct kv_block {
	uint16_t count, room;            /* room: FANOUT_LEAST, doubled up to FANOUT                     */
	uint32_t level;                  /* 0: its places are entries; else blocks of the level below   */
	uint64_t heads[];                /* room of them, then the pointers, then (level > 0) the keys  */
};

#define AT(p, level_) ((p)->at[(p)->depth - 1 - (level_)])

/* ── order ─────────────────────────────────────────────────────────────────────────────────── */

static int compare(const struct kv_search *k, uint64_t head, const struct kv_node *n)
{
	int c;

	if (k->head != head)
		return k->head < head ? -1 : 1;
	c = k->len ? memcmp(k->bytes, kv_key(n), k->len < n->klen ? k->len : n->klen) : 0;
	return c ? c : (k->len > n->klen) - (k->len < n->klen);
}

/* ── entries and blocks ────────────────────────────────────────────────────────────────────── */
static size_t node_bytes(const struct kv_node *n)
{
	return sizeof *n + n->vlen + n->klen;
}

struct kv_node *kv_node_new(const struct kv_search *k, const void *val, size_t vlen)
{
	struct kv_node *n;

	if (vlen > UINT32_MAX)
		return NULL;
	n = mem_alloc(sizeof *n + vlen + k->len);
	if (!n)
		return NULL;
	*n = (struct kv_node){ .vlen = (uint32_t)vlen, .klen = (uint8_t)k->len };
	if (vlen)
		memcpy((uint8_t *)n + sizeof *n, val, vlen);
	memcpy((uint8_t *)n + sizeof *n + vlen, k->bytes, k->len);
	return n;
}

void kv_node_free(struct kv_node *n)
{
	if (n)
		mem_free(n, node_bytes(n));
}

static void **pointers(struct kv_block *b)
{
	return (void **)(void *)(b->heads + b->room);
}

/* What a place stands for: the key of its entry, or the smallest that may be in its block. (The first block of a
 * block holds all that is smaller as well: it has none.) */
static struct kv_node **names(struct kv_block *b)
{
	void **p = pointers(b) + (b->level ? b->room : 0);

	return (struct kv_node **)(void *)p;
}

static size_t block_bytes(const struct kv_block *b)
{
	return sizeof *b + b->room * (b->level ? 24u : 16u);
}

static struct kv_block *block_new(struct kv *kv, uint32_t room, uint32_t level)
{
	struct kv_block head = { .room = (uint16_t)room, .level = level };
	struct kv_block *b = mem_alloc(block_bytes(&head));

	if (!b)
		return NULL;
	*b = head;
	kv->bytes += block_bytes(b);
	return b;
}

static void block_free(struct kv *kv, struct kv_block *b)
{
	kv->bytes -= block_bytes(b);
	mem_free(b, block_bytes(b));
}

static void name_free(struct kv *kv, struct kv_node *name)
{
	if (name)
		kv->bytes -= node_bytes(name);
	kv_node_free(name);
}

/* n places from one block to another, or within one. */
static void copy(struct kv_block *to, uint32_t at, struct kv_block *from, uint32_t first, uint32_t n)
{
	memmove(to->heads + at, from->heads + first, n * sizeof *to->heads);
	memmove(pointers(to) + at, pointers(from) + first, n * sizeof(void *));
	if (to->level)
		memmove(names(to) + at, names(from) + first, n * sizeof(void *));
}

static void put_in(struct kv_block *b, uint32_t at, uint64_t head, void *what, struct kv_node *name)
{
	copy(b, at + 1, b, at, b->count - at);
	b->heads[at] = head;
	pointers(b)[at] = what;
	if (b->level)
		names(b)[at] = name;
	b->count++;
}

static void take_out(struct kv_block *b, uint32_t at)
{
	copy(b, at, b, at + 1, b->count - at - 1);
	b->count--;
}

/* ── finding ───────────────────────────────────────────────────────────────────────────────── */

/* The first place from `from` on that is not below the key; *same: it is the key's own. */
static uint32_t search(struct kv_block *b, uint32_t from, const struct kv_search *k, bool *same)
{
	uint32_t low = from, high = b->count;

	*same = false;
	while (low < high) {
		uint32_t mid = (low + high) / 2;
		int c = compare(k, b->heads[mid], names(b)[mid]);

		if (c == 0) {
			*same = true;
			return mid;
		}
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* To the place where the key is, or would be. True: it is there. */
bool kv_find(const struct kv *kv, const struct kv_search *k, struct kv_path *p)
{
	struct kv_block *b = kv->root;
	bool same = false;

	p->depth = 0;
	while (b) {
		uint32_t i = search(b, b->level ? 1 : 0, k, &same);

		if (b->level && !same)
			i--;
		must(p->depth < KV_DEPTH);
		p->at[p->depth].block = b;
		p->at[p->depth++].index = i;
		b = b->level ? pointers(b)[i] : NULL;
	}
	return same;
}

/* The entry at the end of the path, or the first behind it; NULL: there is none. Blocks may be empty. */
struct kv_node *kv_here_or_behind(struct kv_path *p)
{
	uint32_t d = p->depth;

	while (d > 0) {
		struct kv_block *b = p->at[d - 1].block;
		uint32_t i = p->at[d - 1].index;

		if (i >= b->count) {             /* nothing more below here: on with the next above */
			if (--d > 0)
				p->at[d - 1].index++;
		} else if (b->level) {
			p->at[d].block = pointers(b)[i];
			p->at[d++].index = 0;
		} else {
			return pointers(b)[i];
		}
	}
	return NULL;
}

/* ── growing ───────────────────────────────────────────────────────────────────────────────── */
static void **hangs(struct kv *kv, struct kv_path *p, uint32_t level)
{
	return level + 1 == p->depth ? (void **)(void *)&kv->root
				     : &pointers(AT(p, level + 1).block)[AT(p, level + 1).index];
}

static bool grow(struct kv *kv, struct kv_path *p, uint32_t level)
{
	struct kv_block *b = AT(p, level).block, *larger = block_new(kv, b->room * 2u, level);

	if (!larger)
		return false;
	copy(larger, 0, b, 0, b->count);
	larger->count = b->count;
	*hangs(kv, p, level) = AT(p, level).block = larger;
	block_free(kv, b);
	return true;
}

static bool raise_root(struct kv *kv, struct kv_path *p)
{
	uint32_t level = p->depth;
	struct kv_block *root = block_new(kv, FANOUT_LEAST, level);

	if (!root)
		return false;
	must(p->depth < KV_DEPTH);
	if (kv->root)
		put_in(root, 0, 0, kv->root, NULL);
	kv->root = root;
	memmove(p->at + 1, p->at, p->depth * sizeof p->at[0]);
	p->depth++;
	p->at[0].block = root;
	p->at[0].index = 0;
	return true;
}

/* Full blocks are cut in the middle; but where keys come in order, what is full stays so. */
static uint32_t cut_at(const struct kv_block *b, uint32_t index)
{
	bool at_end = index + (b->level ? 1 : 0) == b->count;

	return !at_end ? b->count / 2u : b->level ? b->count - 1u : b->count;
}

/* A full block in two; the block above has a place. The path leads to where it led. */
static bool split(struct kv *kv, struct kv_path *p, uint32_t level, const struct kv_search *k)
{
	struct kv_block *b = AT(p, level).block, *above = AT(p, level + 1).block;
	uint32_t index = AT(p, level).index, cut = cut_at(b, index);
	struct kv_block *right = block_new(kv, FANOUT, level);
	struct kv_search first = cut == b->count ? *k : kv_search_of(names(b)[cut]);
	struct kv_node *name = !right ? NULL : level ? names(b)[cut] : kv_node_new(&first, NULL, 0);

	if (!name) {
		if (right)
			block_free(kv, right);
		return false;
	}
	if (!level)
		kv->bytes += node_bytes(name);
	copy(right, 0, b, cut, b->count - cut);
	right->count = (uint16_t)(b->count - cut);
	b->count = (uint16_t)cut;
	if (level)
		names(right)[0] = NULL;
	put_in(above, AT(p, level + 1).index + 1, first.head, right, name);
	if (level ? index >= cut : index > cut || right->count == 0) {
		AT(p, level).block = right;
		AT(p, level).index = index - cut;
		AT(p, level + 1).index++;
	}
	return true;
}

/* A free place in the block of this level. False: no memory, and all is as it was, if perhaps split. */
static bool make_place(struct kv *kv, struct kv_path *p, uint32_t level, const struct kv_search *k)
{
	if (level == p->depth && !raise_root(kv, p))
		return false;
	if (AT(p, level).block->count < AT(p, level).block->room)
		return true;
	if (AT(p, level).block->room < FANOUT)
		return grow(kv, p, level);
	return make_place(kv, p, level + 1, k) && split(kv, p, level, k);
}

/* ── shrinking ─────────────────────────────────────────────────────────────────────────────── */

/* An empty block, and those that hold nothing else. */
static void let_go(struct kv *kv, struct kv_path *p, uint32_t level)
{
	for (; level < p->depth && AT(p, level).block->count == 0; level++) {
		block_free(kv, AT(p, level).block);
		if (level + 1 == p->depth) {
			kv->root = NULL;
			return;
		}
		struct kv_block *above = AT(p, level + 1).block;
		uint32_t i = AT(p, level + 1).index;

		name_free(kv, names(above)[i]);
		take_out(above, i);
		if (i == 0 && above->count) {            /* the first has no name */
			name_free(kv, names(above)[0]);
			names(above)[0] = NULL;
		}
	}
}

static void merge_with_next(struct kv *kv, struct kv_path *p)
{
	struct kv_block *b = AT(p, 0).block, *above = AT(p, 1).block, *next;
	uint32_t i = AT(p, 1).index + 1;

	if (i >= above->count)
		return;
	next = pointers(above)[i];
	if (b->count + next->count > FANOUT / 2 || b->count + next->count > b->room)
		return;
	copy(b, b->count, next, 0, next->count);
	b->count = (uint16_t)(b->count + next->count);
	next->count = 0;
	AT(p, 1).index = i;
	AT(p, 0).block = next;
	let_go(kv, p, 0);
}

bool kv_is_sparse(const struct kv_path *p)
{
	uint32_t count = p->depth ? AT(p, 0).block->count : FANOUT;

	return count == 0 || (p->depth > 1 && count <= FANOUT / 4);
}

/* A key was taken out and will not come back. */
void kv_tidy(struct kv *kv, const struct kv_node *gone)
{
	struct kv_search k = kv_search_of(gone);
	struct kv_path p;

	(void)kv_find(kv, &k, &p);
	if (!kv_is_sparse(&p))
		return;
	if (AT(&p, 0).block->count == 0)
		let_go(kv, &p, 0);
	else
		merge_with_next(kv, &p);
	while (kv->root && kv->root->level && kv->root->count == 1) {
		struct kv_block *old = kv->root;

		kv->root = pointers(old)[0];
		block_free(kv, old);
	}
}

void kv_free(struct kv *kv)
{
	struct kv_path p = { .depth = kv->root ? 1 : 0 };

	p.at[0].block = kv->root;
	p.at[0].index = 0;
	while (p.depth) {
		struct kv_block *b = p.at[p.depth - 1].block;
		uint32_t i = p.at[p.depth - 1].index++;

		if (i == b->count) {
			block_free(kv, b);
			p.depth--;
		} else if (b->level) {
			name_free(kv, names(b)[i]);
			p.at[p.depth].block = pointers(b)[i];
			p.at[p.depth++].index = 0;
		} else {
			kv_node_free(pointers(b)[i]);
		}
	}
	*kv = (struct kv){ 0 };
}

/* ── places ────────────────────────────────────────────────────────────────────────────────── */
static void count_in(struct kv *kv, const struct kv_node *n)
{
	kv->entries++;
	kv->bytes += node_bytes(n);
}

static void count_out(struct kv *kv, const struct kv_node *n)
{
	kv->entries--;
	kv->bytes -= node_bytes(n);
}

void kv_insert(struct kv *kv, struct kv_path *p, const struct kv_search *k, struct kv_node *n)
{
	put_in(AT(p, 0).block, AT(p, 0).index, k->head, n, NULL);
	count_in(kv, n);
}

struct kv_node *kv_replace(struct kv *kv, struct kv_path *p, struct kv_node *n)
{
	void **at = &pointers(AT(p, 0).block)[AT(p, 0).index];
	struct kv_node *old = *at;

	*at = n;
	count_out(kv, old);
	count_in(kv, n);
	return old;
}

struct kv_node *kv_drop(struct kv *kv, struct kv_path *p)
{
	struct kv_node *n = pointers(AT(p, 0).block)[AT(p, 0).index];

	take_out(AT(p, 0).block, AT(p, 0).index);
	count_out(kv, n);
	return n;
}

bool kv_make_place(struct kv *kv, struct kv_path *p, const struct kv_search *k)
{
	return make_place(kv, p, 0, k);
}

bool kv_has_place(const struct kv_path *p)
{
	return p->depth && AT(p, 0).block->count < AT(p, 0).block->room;
}

struct kv_node *kv_here(const struct kv_path *p)
{
	return pointers(AT(p, 0).block)[AT(p, 0).index];
}

void kv_go_on(struct kv_path *p)
{
	if (p->depth)
		AT(p, 0).index++;
}
