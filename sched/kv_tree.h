/* sched/kv_tree.h - the tree under an actor's entries, for kv.c alone.
 *
 * Owns     the blocks, and the entries that are in them.   Threads  whoever runs the actor.
 */
#ifndef NOH_SCHED_KV_TREE_H
#define NOH_SCHED_KV_TREE_H

#include "sched/kv.h"

#include <string.h>

/* What is looked for. */
struct kv_search {
	const void *bytes;
	size_t      len;
	uint64_t    head;                /* the first 8 bytes as a number: most comparisons end here */
};

/* Numbers in the order of memcmp. A shorter key is filled up with zeros, so it is never above a longer one
 * that begins with it. */
static inline uint64_t kv_head(const void *key, size_t klen)
{
	uint64_t head = 0;

	if (klen)
		memcpy(&head, key, klen < 8 ? klen : 8);
	return __builtin_bswap64(head);
}

static inline struct kv_search kv_search_for(const void *key, size_t klen)
{
	return (struct kv_search){ key, klen, kv_head(key, klen) };
}

static inline struct kv_search kv_search_of(const struct kv_node *n)
{
	return kv_search_for(kv_key(n), n->klen);
}

struct kv_node *kv_node_new(const struct kv_search *k, const void *val, size_t vlen);    /* NULL: no memory */
void kv_node_free(struct kv_node *n);                    /* NULL is fine */

/* To the place where the key is, or would be. True: it is there. */
bool kv_find(const struct kv *kv, const struct kv_search *k, struct kv_path *p);
struct kv_node *kv_here(const struct kv_path *p);        /* the entry that was found */
void kv_go_on(struct kv_path *p);                        /* to the next place */
struct kv_node *kv_here_or_behind(struct kv_path *p);    /* the entry there, or the first behind it; NULL: none */

/* A free place where the path leads. False: no memory, and all is as it was, if perhaps split. */
bool kv_make_place(struct kv *kv, struct kv_path *p, const struct kv_search *k);
bool kv_has_place(const struct kv_path *p);

/* What was there is the caller's from now on. */
void kv_insert(struct kv *kv, struct kv_path *p, const struct kv_search *k, struct kv_node *n);
struct kv_node *kv_replace(struct kv *kv, struct kv_path *p, struct kv_node *n);
struct kv_node *kv_drop(struct kv *kv, struct kv_path *p);

/* A key was taken out and will not come back. Nothing comes of it but where it left its block nearly empty. */
bool kv_is_sparse(const struct kv_path *p);
void kv_tidy(struct kv *kv, const struct kv_node *gone);

#endif
