/* sched/kv.h - an actor's key-value part (RT-23): entries sorted by key, changed turn by turn.
 *
 * Keys are 1 to 255 bytes, in the order of memcmp, a shorter one before a longer one that begins
 * with it. Values are of any length (below 4 GiB). The changes of a turn are made in place and noted in a log;
 * at its end they are committed, or rolled back without needing memory (P4).
 *
 * Owns     its nodes; the log owns what the turn has replaced until it ends.
 * Threads  whoever runs the actor.
 * Never    changes anything when it returns an error.
 */
#ifndef NOH_SCHED_KV_H
#define NOH_SCHED_KV_H

#include <stddef.h>
#include <stdint.h>

#define KV_KEY_MAX 255

struct kv_node {
	struct kv_node *left, *right;
	uint64_t head;                   /* the key's first 8 bytes as a number: most comparisons end here */
	uint32_t vlen;
	uint32_t rank : 24, klen : 8;    /* rank: a hash of the key; parents outrank their children */
	/* behind it the value, then the key: kv_value, kv_key */
};

/* Zeroed is empty. seed may be set while it is empty: a seed that senders of keys cannot know keeps
 * them from choosing keys that make the tree deep. */
struct kv {
	struct kv_node *root;
	uint64_t entries;
	uint64_t bytes;                  /* of memory, all nodes together */
	uint64_t seed;
};

#define KV_LOG_INLINE 8

struct kv_change {
	struct kv_node *before, *after;  /* NULL: the key was, or is, absent */
};

/* Zeroed is empty, and so it is after commit and rollback. */
struct kv_log {
	struct kv_change *more;          /* in place of few, once there were too many */
	uint32_t count, room;
	struct kv_change few[KV_LOG_INLINE];
};

static inline const void *kv_value(const struct kv_node *n)     /* aligned to 8 */
{
	return (const uint8_t *)n + sizeof *n;
}

static inline const void *kv_key(const struct kv_node *n)
{
	return (const uint8_t *)n + sizeof *n + n->vlen;
}

/* NOH_OK, NOH_EINVAL (key length), NOH_ENOMEM; delete also NOH_END: there is no such key. */
int kv_put(struct kv *kv, struct kv_log *log, const void *key, size_t klen, const void *val,
	   size_t vlen);
int kv_delete(struct kv *kv, struct kv_log *log, const void *key, size_t klen);

/* NULL: none. A node is valid until its key is put or deleted and the turn has ended. */
const struct kv_node *kv_get(const struct kv *kv, const void *key, size_t klen);

/* The node with the smallest key above; with klen 0 the very first. NULL: no further one. */
const struct kv_node *kv_next(const struct kv *kv, const void *key, size_t klen);

void kv_commit(struct kv_log *log);
void kv_rollback(struct kv *kv, struct kv_log *log);
void kv_free(struct kv *kv);             /* after that it is empty, with its seed */

/* All entries in key order, without recursion and without looking each up: begin with { .kv = kv }. It
 * remembers the nearest ancestors still to visit; whoever was forgotten, in a deeper tree, is found again
 * by key. The tree must not change meanwhile. */
#define KV_WALK 64                       /* a power of two */
struct kv_walk {
	const struct kv      *kv;
	const struct kv_node *last;
	uint32_t              top, depth;
	const struct kv_node *above[KV_WALK];
};
const struct kv_node *kv_walk_on(struct kv_walk *w);     /* NULL: that was the last */

#endif
