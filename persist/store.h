/* persist/store.h - where actors rest: address -> image, behind an interface (RT-24).
 *
 * An image is whatever bytes the box made of an actor. hash is the address's; a store may use it
 * but must not rely on it being unique.
 *
 * Owns     the stored images. What load hands out is the caller's: mem_free(image, len).
 * Threads  any, at once, for all but close. Operations on one address happen one after another.
 * Never    keeps half of an image: what returns an error has changed nothing.
 */
#ifndef NOH_PERSIST_STORE_H
#define NOH_PERSIST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

struct store_ops {
	int (*load)(struct store *s, const char *address, size_t alen, uint64_t hash, void **image,
		    size_t *len);
	int (*save)(struct store *s, const char *address, size_t alen, uint64_t hash,
		    const void *image, size_t len);
	int (*erase)(struct store *s, const char *address, size_t alen, uint64_t hash);
	bool (*may_have)(struct store *s, uint64_t hash);
	uint64_t (*count)(struct store *s);
	uint64_t (*bytes)(struct store *s);
	void (*close)(struct store *s);
};

struct store {
	const struct store_ops *ops;
};

/* A store that lives and dies with the process. NOH_OK, NOH_ENOMEM. */
int store_mem_open(struct store **s);

/* NOH_OK with a copy of the image, NOH_END if there is none, NOH_ENOMEM. */
static inline int store_load(struct store *s, const char *address, size_t alen, uint64_t hash,
			     void **image, size_t *len)
{
	return s->ops->load(s, address, alen, hash, image, len);
}

/* In place of an older image, if any. NOH_OK, NOH_ENOMEM. */
static inline int store_save(struct store *s, const char *address, size_t alen, uint64_t hash,
			     const void *image, size_t len)
{
	return s->ops->save(s, address, alen, hash, image, len);
}

/* NOH_OK, NOH_END if there is none. */
static inline int store_erase(struct store *s, const char *address, size_t alen, uint64_t hash)
{
	return s->ops->erase(s, address, alen, hash);
}

/* Cheap. False: surely nothing is stored under this hash. True: look. */
static inline bool store_may_have(struct store *s, uint64_t hash)
{
	return s->ops->may_have(s, hash);
}

/* Stored images, and the bytes they take. Exact when nobody else is at work. */
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
