/* sched/kv.c - a treap: a search tree by key and a heap by rank, the rank being a hash of the key.
 *
 * So the shape of the tree depends on the keys alone, not on the order they came in, and depth is
 * logarithmic unless somebody can choose keys by their hash (see seed). Nothing here recurses, and
 * a node hangs in the tree by its own memory: to put a removed node back needs no allocation, and
 * rollback leaves the very tree that was there before.
 *
 * Encoded: the number of entries, then in key order: klen (1 byte), key, vlen, value. Numbers are
 * little-endian base 128 with the top bit for "more follows", in as few bytes as possible.
 */
#include "sched/kv.h"

#include "core/mem.h"
#include "core/must.h"
#include "noh.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(sizeof(struct kv_node) == 32, "values begin aligned");

/* ── order ─────────────────────────────────────────────────────────────────────────────────── */
struct key {
	const void *bytes;
	size_t      len;
	uint64_t    head;
};

/* Numbers in the order of memcmp. A shorter key is filled up with zeros, so it is never above a longer one
 * that begins with it. */
static uint64_t head_of(const void *key, size_t klen)
{
	uint8_t first[8] = { 0 };
	uint64_t head = 0;

	if (klen)
		memcpy(first, key, klen < 8 ? klen : 8);
	for (int i = 0; i < 8; i++)
		head = head << 8 | first[i];
	return head;
}

static struct key key_from(const void *key, size_t klen)
{
	return (struct key){ key, klen, head_of(key, klen) };
}

static struct key key_in(const struct kv_node *n)
{
	return (struct key){ kv_key(n), n->klen, n->head };
}

static int compare(const struct key *k, const struct kv_node *n)
{
	int c;

	if (k->head != n->head)
		return k->head < n->head ? -1 : 1;
	c = memcmp(k->bytes, kv_key(n), k->len < n->klen ? k->len : n->klen);
	return c ? c : (k->len > n->klen) - (k->len < n->klen);
}

static bool outranks(const struct kv_node *a, const struct kv_node *b)
{
	struct key k;

	if (a->rank != b->rank)
		return a->rank > b->rank;
	k = key_in(a);
	return compare(&k, b) < 0;
}

/* The place in the tree where a node with this key hangs; empty if there is none. */
static struct kv_node **find(struct kv *kv, const void *key, size_t klen)
{
	struct key k = key_from(key, klen);
	struct kv_node **at = &kv->root;

	while (*at) {
		int c = compare(&k, *at);
		if (c == 0)
			break;
		at = c < 0 ? &(*at)->left : &(*at)->right;
	}
	return at;
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */
static size_t node_bytes(const struct kv_node *n)
{
	return sizeof *n + n->vlen + n->klen;
}

static struct kv_node *node_new(const struct kv *kv, const void *key, size_t klen, const void *val,
				size_t vlen)
{
	struct kv_node *n;

	if (vlen > UINT32_MAX)
		return NULL;
	n = mem_alloc(sizeof *n + vlen + klen);
	if (!n)
		return NULL;
	n->left = n->right = NULL;
	n->head = head_of(key, klen);
	n->vlen = (uint32_t)vlen;
	n->klen = klen & 0xff;
	n->rank = XXH3_64bits_withSeed(key, klen, kv->seed) & 0xffffff;
	if (vlen)
		memcpy((uint8_t *)n + sizeof *n, val, vlen);
	memcpy((uint8_t *)n + sizeof *n + vlen, key, klen);
	return n;
}

static void node_free(struct kv_node *n)
{
	if (n)
		mem_free(n, node_bytes(n));
}

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

/* ── the tree ──────────────────────────────────────────────────────────────────────────────── */

/* Where n belongs: below all that outrank it. If its key is there, it is there: with the same rank, below the
 * same nodes. */
static struct kv_node **place(struct kv *kv, const struct kv_node *n)
{
	struct kv_node **at = &kv->root;
	struct key k = key_in(n);

	while (*at && outranks(*at, n))
		at = compare(&k, *at) < 0 ? &(*at)->left : &(*at)->right;
	return at;
}

/* Hang n, whose key is absent, into its place, and split what was there in two. */
static void insert_at(struct kv *kv, struct kv_node **at, struct kv_node *n)
{
	struct kv_node *rest = *at, **below = &n->left, **above = &n->right;
	struct key k = key_in(n);

	*at = n;
	while (rest) {
		if (compare(&k, rest) < 0) {
			*above = rest;
			above = &rest->left;
			rest = rest->left;
		} else {
			*below = rest;
			below = &rest->right;
			rest = rest->right;
		}
	}
	*below = *above = NULL;
	count_in(kv, n);
}

/* Take the node out and put its two subtrees, merged, in its place. */
static struct kv_node *take_out(struct kv *kv, struct kv_node **at)
{
	struct kv_node *n = *at, *low = n->left, *high = n->right;

	while (low && high) {
		if (outranks(low, high)) {
			*at = low;
			at = &low->right;
			low = low->right;
		} else {
			*at = high;
			at = &high->left;
			high = high->left;
		}
	}
	*at = low ? low : high;
	count_out(kv, n);
	return n;
}

/* The same key, so the same rank and the same place. */
static void replace(struct kv *kv, struct kv_node **at, struct kv_node *n)
{
	struct kv_node *old = *at;

	n->left = old->left;
	n->right = old->right;
	*at = n;
	count_out(kv, old);
	count_in(kv, n);
}

void kv_free(struct kv *kv)
{
	struct kv_node *n = kv->root;

	while (n) {
		struct kv_node *left = n->left, *next = n->right;
		if (left) {                      /* rotate, until there is no left one */
			n->left = left->right;
			left->right = n;
			n = left;
		} else {
			node_free(n);
			n = next;
		}
	}
	*kv = (struct kv){ .seed = kv->seed };
}

/* ── the log ───────────────────────────────────────────────────────────────────────────────── */
static struct kv_change *changes(struct kv_log *log)
{
	return log->more ? log->more : log->few;
}

static bool make_room(struct kv_log *log)
{
	uint32_t room = log->more ? log->room : KV_LOG_INLINE;

	if (log->count < room)
		return true;
	if (room > UINT32_MAX / 2)
		return false;
	struct kv_change *more = mem_alloc(sizeof *more * room * 2);

	if (!more)
		return false;
	memcpy(more, changes(log), sizeof *more * log->count);
	mem_free(log->more, sizeof *more * room);
	log->more = more;
	log->room = room * 2;
	return true;
}

static void note(struct kv_log *log, struct kv_node *before, struct kv_node *after)
{
	changes(log)[log->count++] = (struct kv_change){ before, after };
}

static void log_end(struct kv_log *log)
{
	mem_free(log->more, sizeof *log->more * log->room);
	log->more = NULL;
	log->count = log->room = 0;
}

void kv_commit(struct kv_log *log)
{
	for (uint32_t i = 0; i < log->count; i++)
		node_free(changes(log)[i].before);
	log_end(log);
}

static void undo(struct kv *kv, struct kv_change c)
{
	if (!c.after) {
		insert_at(kv, place(kv, c.before), c.before);
		return;
	}
	struct kv_node **at = find(kv, kv_key(c.after), c.after->klen);

	must(*at == c.after);
	if (c.before)
		replace(kv, at, c.before);
	else
		take_out(kv, at);
	node_free(c.after);
}

void kv_rollback(struct kv *kv, struct kv_log *log)
{
	while (log->count > 0)
		undo(kv, changes(log)[--log->count]);
	log_end(log);
}

/* ── reading and changing ──────────────────────────────────────────────────────────────────── */
static bool is_key(size_t klen)
{
	return klen >= 1 && klen <= KV_KEY_MAX;
}

int kv_put(struct kv *kv, struct kv_log *log, const void *key, size_t klen, const void *val,
	   size_t vlen)
{
	if (!is_key(klen))
		return NOH_EINVAL;
	struct kv_node *n = node_new(kv, key, klen, val, vlen);

	if (!n || !make_room(log)) {
		node_free(n);
		return NOH_ENOMEM;
	}
	struct kv_node **at = place(kv, n), *old = *at;
	struct key k = key_in(n);

	if (old && compare(&k, old) == 0) {
		note(log, old, n);
		replace(kv, at, n);
	} else {
		note(log, NULL, n);
		insert_at(kv, at, n);
	}
	return NOH_OK;
}

int kv_delete(struct kv *kv, struct kv_log *log, const void *key, size_t klen)
{
	if (!is_key(klen))
		return NOH_EINVAL;
	struct kv_node **at = find(kv, key, klen);

	if (!*at)
		return NOH_END;
	if (!make_room(log))
		return NOH_ENOMEM;
	note(log, take_out(kv, at), NULL);
	return NOH_OK;
}

const struct kv_node *kv_get(const struct kv *kv, const void *key, size_t klen)
{
	const struct kv_node *n = is_key(klen) ? kv->root : NULL;
	struct key k = key_from(key, n ? klen : 0);

	while (n) {
		int c = compare(&k, n);
		if (c == 0)
			break;
		n = c < 0 ? n->left : n->right;
	}
	return n;
}

const struct kv_node *kv_next(const struct kv *kv, const void *key, size_t klen)
{
	const struct kv_node *n = kv->root, *best = NULL;
	struct key k = key_from(key, klen);

	while (n) {
		if (klen == 0 || compare(&k, n) < 0) {
			best = n;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return best;
}

/* ── all of them ── */

static void walk_push(struct kv_walk *w, const struct kv_node *n)
{
	w->above[w->top++ % KV_WALK] = n;
	if (w->depth < KV_WALK)
		w->depth++;
}

static void walk_find(struct kv_walk *w)
{
	const struct kv_node *n = w->kv->root;
	struct key k = w->last ? key_in(w->last) : (struct key){ 0 };

	while (n) {
		if (!w->last || compare(&k, n) < 0) {
			walk_push(w, n);
			n = n->left;
		} else {
			n = n->right;
		}
	}
}

const struct kv_node *kv_walk_on(struct kv_walk *w)
{
	if (w->depth == 0)
		walk_find(w);
	if (w->depth == 0)
		return NULL;
	w->depth--;
	w->last = w->above[--w->top % KV_WALK];
	for (const struct kv_node *n = w->last->right; n; n = n->left)
		walk_push(w, n);
	return w->last;
}
