/* persist/store_mem.c - the store in memory: an overlay that is never folded.
 *
 * An overlay forgets what is due by the folded epoch. Here that is 0, and what is saved is kept one higher than
 * its due, so that nothing is ever folded; an erased actor is put as due 0, and forgotten at once.
 */
#include "core/mem.h"
#include "noh.h"
#include "persist/overlay.h"

struct store_mem {
	struct store store;
	_Alignas(CACHE_LINE) struct overlay images;
};

static struct overlay *images(struct store *s)
{
	return &((struct store_mem *)(void *)s)->images;
}

static int store_mem_save(struct store *s, const char *address, size_t alen, uint64_t hash,
			  const struct stored *in)
{
	struct stored kept = *in;

	kept.seq = in->gone ? UINT64_MAX : in->seq;
	kept.due = in->gone ? 0 : in->due + 1;
	return overlay_put(images(s), address, alen, hash, &kept);
}

static int store_mem_load(struct store *s, const char *address, size_t alen, uint64_t hash,
			  struct stored *out)
{
	int rc = overlay_get(images(s), address, alen, hash, out);

	if (rc == NOH_OK)
		out->due--;
	return rc;
}

/* Nothing of a box without a data directory survives, its keys least of all. */
static int store_mem_idem_get(struct store *s, const char *address, size_t alen, uint64_t hash,
			      const void *key, size_t klen, void **part, size_t *len, uint64_t *due)
{
	(void)s; (void)address; (void)alen; (void)hash; (void)key; (void)klen; (void)part; (void)len;
	(void)due;
	return NOH_END;
}

static int store_mem_idem_put(struct store *s, const char *address, size_t alen, uint64_t hash,
			      const void *key, size_t klen, const void *part, size_t len, uint64_t due)
{
	(void)s; (void)address; (void)alen; (void)hash; (void)key; (void)klen; (void)part; (void)len;
	(void)due;
	return NOH_OK;
}

static bool store_mem_may_have(struct store *s, uint64_t hash)
{
	return overlay_any(images(s), hash);
}

static bool store_mem_window(struct store *s, uint64_t from, uint64_t last, struct names *out)
{
	uint32_t first = out->count;
	bool ok = overlay_window(images(s), from, last, out);

	for (uint32_t i = first; i < out->count; i++)
		out->list[i].due--;
	return ok;
}

static uint64_t store_mem_near(struct store *s, uint64_t hash)
{
	return overlay_near(images(s), hash) / 16;
}

static uint64_t store_mem_count(struct store *s)
{
	return overlay_living(images(s));
}

static uint64_t store_mem_bytes(struct store *s)
{
	return sizeof(struct store_mem) + overlay_bytes(images(s));
}

static void store_mem_close(struct store *s)
{
	overlay_close(images(s));
	mem_free(s, sizeof(struct store_mem));
}

static const struct store_ops store_mem_ops = {
	.load = store_mem_load,
	.save = store_mem_save,
	.idem_get = store_mem_idem_get,
	.idem_put = store_mem_idem_put,
	.may_have = store_mem_may_have,
	.window = store_mem_window,
	.near = store_mem_near,
	.count = store_mem_count,
	.bytes = store_mem_bytes,
	.close = store_mem_close,
};

int store_mem_open(struct store **s)
{
	struct store_mem *m = mem_aligned(CACHE_LINE, sizeof *m);

	if (!m)
		return NOH_ENOMEM;
	m->store.ops = &store_mem_ops;
	overlay_open(&m->images, 0);
	*s = &m->store;
	return NOH_OK;
}
