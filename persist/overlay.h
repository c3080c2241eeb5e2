/* persist/overlay.h - what is newer than the image: a table in memory, shrinking with every fold.
 *
 * An entry says what LMDB will say once epoch `due` is folded. It stands until then, and no longer.
 *
 * Owns     copies of keys and values. What overlay_get hands out is the caller's: mem_free(image, len).
 * Order    by hash: the top bits pick the shard, the next ones the bucket, however many there are.
 * Threads  any, at once, for all but open and close. overlay_folded: the keeper.
 * Never    holds a shard while it allocates for an entry, or longer than 64 buckets of a sweep.
 */
#ifndef NOH_PERSIST_OVERLAY_H
#define NOH_PERSIST_OVERLAY_H

#include "core/atomic.h"
#include "persist/store.h"

#define OVERLAY_SHARDS 256

struct overlay_entry;

struct overlay_shard {
	_Alignas(CACHE_LINE) atomic_u32 held;
	struct overlay_entry **buckets;          /* guarded by held, as is all below */
	uint64_t               room;             /* a power of two, or 0 */
	atomic_u64             count, living, bytes;     /* written by the holder, read by anyone */
};

struct overlay {
	atomic_u64           folded;
	struct overlay_shard shards[OVERLAY_SHARDS];
};

void overlay_open(struct overlay *o, uint64_t folded);    /* in zeroed memory */
void overlay_close(struct overlay *o);

/* NOH_OK with a copy (or gone), NOH_END, NOH_ENOMEM. */
int overlay_get(struct overlay *o, const void *key, size_t key_len, uint64_t hash, struct stored *out);
/* In place of what is there, unless that has a higher sequence; not at all if in->due is folded:
 * then what is there goes. NOH_OK, NOH_ENOMEM. */
int overlay_put(struct overlay *o, const void *key, size_t key_len, uint64_t hash,
		const struct stored *in);
void overlay_folded(struct overlay *o, uint64_t epoch);

/* Those with a hash in [from, last], which share its top 8 bits. False: no memory. */
bool overlay_window(struct overlay *o, uint64_t from, uint64_t last, struct names *out);
/* What is said of one, and its due. */
enum store_says overlay_says(struct overlay *o, const void *key, size_t key_len, uint64_t hash, uint64_t *due);
uint64_t overlay_near(struct overlay *o, uint64_t hash);      /* entries in its shard; acquire */

/* Is there anything in this hash's shard? acquire. */
bool overlay_any(struct overlay *o, uint64_t hash);
uint64_t overlay_living(struct overlay *o);      /* entries that are no tombstones */
uint64_t overlay_bytes(struct overlay *o);

#endif
