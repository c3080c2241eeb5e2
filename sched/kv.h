/* sched/kv.h - an actor's key-value part (RT-23): entries sorted by key, changed turn by turn.
 *
 * Keys are 1 to 255 bytes, in the order of memcmp, a shorter one before a longer one that begins
 * with it. Values are of any length (below 4 GiB). The changes of a turn are made in place and noted in a log;
 * at its end they are committed, or rolled back without needing memory (P4).
 *
 * Owns     its entries; the log owns what the turn has replaced until it ends.
 * Threads  whoever runs the actor.
 * Never    changes anything when it returns an error.
 */
#ifndef NOH_SCHED_KV_H
#define NOH_SCHED_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KV_KEY_MAX 255

/* An entry: an allocation of its own, so that a turn can put back what it took out. */
struct kv_node {
	uint32_t vlen;
	uint8_t  klen;
	uint8_t  unused[3];
	/* behind it the value, then the key: kv_value, kv_key */
};

/* Zeroed is empty. */
struct kv_block;
struct kv {
	struct kv_block *root;
	uint64_t entries;
	uint64_t bytes;                  /* of memory, all together */
};

#define KV_LOG_INLINE 8

struct kv_change {
	struct kv_node *before, *after;  /* NULL: the key was, or is, absent */
};

/* Zeroed is empty, and so it is after commit and rollback. */
struct kv_log {
	struct kv_change *more;          /* in place of few, once there were too many */
	uint32_t count, room;
	uint32_t outdated;               /* of few changes: those that a later one has made pointless (turn_record.c) */
	bool     sparse;                 /* a deletion has left a block nearly empty */
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

/* Its entries will be looked at: the first lines of where they are. */
static inline void kv_fetch(const struct kv *kv)
{
	uintptr_t root = (uintptr_t)kv->root;    /* a number, not a pointer: there may be none */

	__builtin_prefetch((const void *)root);
	__builtin_prefetch((const void *)(root + 64));
}

/* NOH_OK, NOH_EINVAL (key length), NOH_ENOMEM; delete also NOH_END: there is no such key. */
int kv_put(struct kv *kv, struct kv_log *log, const void *key, size_t klen, const void *val,
	   size_t vlen);
int kv_delete(struct kv *kv, struct kv_log *log, const void *key, size_t klen);

/* NULL: none. An entry is valid until its key is put or deleted and the turn has ended. */
const struct kv_node *kv_get(const struct kv *kv, const void *key, size_t klen);

/* The entry with the smallest key above; with klen 0 the very first. NULL: no further one. */
const struct kv_node *kv_next(const struct kv *kv, const void *key, size_t klen);

void kv_commit(struct kv *kv, struct kv_log *log);
void kv_rollback(struct kv *kv, struct kv_log *log);
void kv_free(struct kv *kv);             /* after that it is empty */

/* From the root to an entry: in each block which place. 16 blocks one above the other are more than memory holds. */
#define KV_DEPTH 16
struct kv_path {
	uint32_t depth;                  /* 0: the tree is empty */
	struct { struct kv_block *block; uint32_t index; } at[KV_DEPTH];
};

/* All entries in key order: begin with { .kv = kv }. The tree must not change meanwhile. */
struct kv_walk {
	const struct kv *kv;
	struct kv_path   path;
	bool             begun;
};
const struct kv_node *kv_walk_on(struct kv_walk *w);     /* NULL: that was the last */

#endif
