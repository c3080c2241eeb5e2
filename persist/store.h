/* persist/store.h - where actors rest: address -> image, behind an interface (RT-24).
 *
 * An image is whatever parts (record.h) the box made of an actor. hash is the address's; a store may
 * use it but must not rely on it being unique.
 *
 * Owns     the stored images. What load hands out is the caller's: mem_free(image, len).
 * Threads  any, at once, for all but close. Operations on one address happen one after another.
 * Never    keeps half of an image: what returns an error has changed nothing.
 */
#ifndef NOH_PERSIST_STORE_H
#define NOH_PERSIST_STORE_H

#include "core/atomic.h"
#include "core/names.h"

struct store;

struct stored {
	void    *image;          /* NULL with gone                                              */
	size_t   len;
	uint64_t seq;            /* of the actor's last record                                  */
	uint64_t due;            /* epoch at which that record is durable; 0: long since        */
	bool     gone;           /* erased: only seq and due mean something                     */
	bool     fresh;          /* load: never activated since the start; its pending messages
				    are among the parts                                         */
	bool     reborn;         /* erased and there again: a fold may end between the two      */
};

/* What a store knows of one address without loading it. */
enum store_says { STORE_NOTHING, STORE_THERE, STORE_GONE };

struct store_ops {
	int (*load)(struct store *s, const char *address, size_t alen, uint64_t hash,
		    struct stored *out);
	int (*save)(struct store *s, const char *address, size_t alen, uint64_t hash,
		    const struct stored *in);
	int (*idem_get)(struct store *s, const char *address, size_t alen, uint64_t hash,
			const void *key, size_t klen, void **part, size_t *len, uint64_t *due);
	int (*idem_put)(struct store *s, const char *address, size_t alen, uint64_t hash,
			const void *key, size_t klen, const void *part, size_t len, uint64_t due);
	bool (*may_have)(struct store *s, uint64_t hash);
	bool (*window)(struct store *s, uint64_t from, uint64_t last, struct names *out);
	uint64_t (*near)(struct store *s, uint64_t hash);
	uint64_t (*count)(struct store *s);
	uint64_t (*bytes)(struct store *s);
	void (*close)(struct store *s);
};

struct store {
	const struct store_ops *ops;
	atomic_u32 used;         /* 0: nothing was ever saved here. Who takes an actor over from who saved it sees that */
};

/* A store that lives and dies with the process; seq and due are kept with the image, an erased actor
 * leaves nothing. It has no idempotency keys (NOH_END). NOH_OK, NOH_ENOMEM. */
int store_mem_open(struct store **s);

/* What is durable in LMDB, and over it what is not folded yet (the overlay). boot_tag: the first epoch
 * of this run; pending messages sent before it are handed out by the first load of their receiver. */
struct db;
int store_disk_open(struct store **s, struct db *db, uint64_t boot_tag);
/* After a crash: the journal's tail up to `epoch`, the store's from now on; it goes when that is folded. */
struct tail;
void store_disk_set_tail(struct store *s, struct tail *tail, uint64_t epoch);
/* The keeper has committed up to this epoch: overlay entries whose due is not above go, unless
 * they changed meanwhile. */
void store_disk_folded(struct store *s, uint64_t epoch);
uint64_t store_disk_overlay_bytes(struct store *s);

/* What the overlay and the tail say of it, and when that is on disk. What they say nothing of is as LMDB
 * says. */
enum store_says store_disk_says(struct store *s, const char *address, size_t alen, uint64_t hash, uint64_t *due);
/* Is it sure that LMDB has what is due then? */
bool store_disk_is_folded(struct store *s, uint64_t due);

/* NOH_OK with a copy of the image, NOH_END if there is none, NOH_ENOMEM, NOH_ECORRUPT. An erased actor
 * whose end is not folded yet is NOH_OK with gone. */
static inline int store_load(struct store *s, const char *address, size_t alen, uint64_t hash,
			     struct stored *out)
{
	return s->ops->load(s, address, alen, hash, out);
}

/* In place of an image of the same or a lower sequence; image is copied. A disk store keeps it in memory
 * until it is folded, and not at all if in->due is folded already. NOH_OK, NOH_ENOMEM. */
static inline int store_save(struct store *s, const char *address, size_t alen, uint64_t hash,
			     const struct stored *in)
{
	if (__builtin_expect(!load_relaxed(&s->used), 0))
		store_relaxed(&s->used, 1);
	return s->ops->save(s, address, alen, hash, in);
}

/* A struct part_idem and the answer, and when that is durable. NOH_OK, NOH_END, NOH_ENOMEM,
 * NOH_ECORRUPT. */
static inline int store_idem_get(struct store *s, const char *address, size_t alen, uint64_t hash,
				 const void *key, size_t klen, void **part, size_t *len,
				 uint64_t *due)
{
	return s->ops->idem_get(s, address, alen, hash, key, klen, part, len, due);
}

/* The record with it was pushed: remember it until it is folded. */
static inline int store_idem_put(struct store *s, const char *address, size_t alen, uint64_t hash,
				 const void *key, size_t klen, const void *part, size_t len,
				 uint64_t due)
{
	return s->ops->idem_put(s, address, alen, hash, key, klen, part, len, due);
}

/* Cheap. False: surely nothing is stored under this hash. True: look. */
static inline bool store_may_have(struct store *s, uint64_t hash)
{
	return load_relaxed(&s->used) && s->ops->may_have(s, hash);
}

/* For scans. What is in memory of those whose hash is in [from, last], which share its top 12 bits: with
 * due, and NAME_THERE or not (out of an overlay, from 1; out of the tail, from 2). False: no memory. */
static inline bool store_window(struct store *s, uint64_t from, uint64_t last, struct names *out)
{
	return s->ops->window(s, from, last, out);
}

/* About how many that are, of all with these top 12 bits. Cheap; 0 is exact. */
static inline uint64_t store_near(struct store *s, uint64_t hash)
{
	return s->ops->near(s, hash);
}

/* Stored images, and the bytes of memory they take. Exact when nobody else is at work. */
static inline uint64_t store_count(struct store *s)
{
	return s->ops->count(s);
}

static inline uint64_t store_bytes(struct store *s)
{
	return s->ops->bytes(s);
}

/* NULL is fine. */
static inline void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}

#endif
