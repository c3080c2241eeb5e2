/* persist/store_mem.c - the store in memory: 256 hash tables, each behind a spin word.
 *
 * The low byte of the hash picks the shard, the rest the bucket. The word is held while pointers
 * change hands and while a load copies; allocating and freeing happen outside. The one exception is
 * the table itself, which doubles while it is held, and goes on crowded if there is no memory.
 *
 * A -> B  hands the shard on. With B relaxed the next holder could see half of what the last did.
 * count   relaxed: who saved before asking sees at least its own (coherence), and nothing is read
 *         through it.
 */
#include "core/atomic.h"
#include "core/mem.h"
#include "core/must.h"
#include "noh.h"
#include "persist/store.h"

#include <sched.h>
#include <string.h>

#define SHARDS 256
#define FIRST_BUCKETS 16
#define SPINS 100

struct image {
	struct image *next;
	uint64_t      hash, seq, due;
	size_t        alen, len;
	char          bytes[];           /* address, then image */
};

struct shard {
	_Alignas(CACHE_LINE) atomic_u32 held;
	struct image **buckets;          /* guarded by held, as is all below */
	uint64_t       room;             /* a power of two, or 0 */
	atomic_u64     count, bytes;     /* written by the holder, read by anyone */
};

struct store_mem {
	struct store store;
	struct shard shards[SHARDS];
};

static struct shard *shard_of(struct store *s, uint64_t hash)
{
	return &((struct store_mem *)s)->shards[hash % SHARDS];
}

static void hold(struct shard *sh)
{
	for (unsigned tries = 0; swap_acquire(&sh->held, 1) != 0; ) {       /* B */
		while (load_relaxed(&sh->held) != 0) {
			if (++tries % SPINS == 0)
				sched_yield();
			else
				cpu_relax();
		}
	}
}

static void let_go(struct shard *sh)
{
	store_release(&sh->held, 0);                                        /* A */
}

static size_t image_bytes(const struct image *i)
{
	return sizeof *i + i->alen + i->len;
}

static struct image **bucket(struct shard *sh, uint64_t hash)
{
	return &sh->buckets[hash / SHARDS & (sh->room - 1)];
}

/* Where the image hangs, or the empty end of its chain. NULL: there is no table yet. */
static struct image **find(struct shard *sh, const char *address, size_t alen, uint64_t hash)
{
	if (sh->room == 0)
		return NULL;
	struct image **at = bucket(sh, hash);

	while (*at && ((*at)->hash != hash || (*at)->alen != alen ||
		       memcmp((*at)->bytes, address, alen) != 0))
		at = &(*at)->next;
	return at;
}

static bool grow(struct shard *sh)
{
	struct image **old = sh->buckets;
	uint64_t old_room = sh->room, room = old_room ? old_room * 2 : FIRST_BUCKETS;
	struct image **bigger = mem_zalloc(sizeof *bigger * room);

	if (!bigger)
		return false;
	sh->buckets = bigger;
	sh->room = room;
	for (uint64_t b = 0; b < old_room; b++) {
		for (struct image *i = old[b], *next; i; i = next) {
			struct image **at = bucket(sh, i->hash);
			next = i->next;
			i->next = *at;
			*at = i;
		}
	}
	mem_free(old, sizeof *old * old_room);
	count_one(&sh->bytes, sizeof *bigger * (room - old_room));
	return true;
}

/* Put fresh in the place of an older image, which is handed back in *old. False: no memory. */
static bool hang(struct shard *sh, struct image *fresh, struct image **old)
{
	*old = NULL;
	if (load_relaxed(&sh->count) >= sh->room && !grow(sh) && sh->room == 0)
		return false;
	struct image **at = find(sh, fresh->bytes, fresh->alen, fresh->hash);

	*old = *at;
	fresh->next = *old ? (*old)->next : NULL;
	*at = fresh;
	count_one(&sh->bytes, image_bytes(fresh));
	if (*old)
		count_one(&sh->bytes, 0 - (uint64_t)image_bytes(*old));
	else
		count_one(&sh->count, 1);
	return true;
}

static int erase(struct store *s, const char *address, size_t alen, uint64_t hash)
{
	struct shard *sh = shard_of(s, hash);

	hold(sh);
	struct image **at = find(sh, address, alen, hash);
	struct image *gone = at ? *at : NULL;

	if (gone) {
		*at = gone->next;
		count_one(&sh->count, UINT64_MAX);       /* one less */
		count_one(&sh->bytes, 0 - (uint64_t)image_bytes(gone));
	}
	let_go(sh);
	mem_free(gone, gone ? image_bytes(gone) : 0);
	return NOH_OK;
}

static int store_mem_save(struct store *s, const char *address, size_t alen, uint64_t hash,
			  const struct stored *in)
{
	struct shard *sh = shard_of(s, hash);
	struct image *fresh, *old;

	if (in->gone)
		return erase(s, address, alen, hash);
	if (in->len > PTRDIFF_MAX - sizeof *fresh - alen)
		return NOH_ENOMEM;
	fresh = mem_alloc(sizeof *fresh + alen + in->len);
	if (!fresh)
		return NOH_ENOMEM;
	*fresh = (struct image){ .hash = hash, .seq = in->seq, .due = in->due, .alen = alen,
				 .len = in->len };
	memcpy(fresh->bytes, address, alen);
	if (in->len)
		memcpy(fresh->bytes + alen, in->image, in->len);
	hold(sh);
	bool done = hang(sh, fresh, &old);
	let_go(sh);
	struct image *rest = done ? old : fresh;

	mem_free(rest, rest ? image_bytes(rest) : 0);
	return done ? NOH_OK : NOH_ENOMEM;
}

/* Copy the image if it fits into room bytes. Its length, or SIZE_MAX if there is none. */
static size_t copy_out(struct shard *sh, const char *address, size_t alen, uint64_t hash,
		       struct stored *to, size_t room)
{
	size_t len = SIZE_MAX;

	hold(sh);
	struct image **at = find(sh, address, alen, hash);

	if (at && *at) {
		len = (*at)->len;
		to->seq = (*at)->seq;
		to->due = (*at)->due;
		if (to->image && len == room)
			memcpy(to->image, (*at)->bytes + alen, len);
	}
	let_go(sh);
	return len;
}

static int store_mem_load(struct store *s, const char *address, size_t alen, uint64_t hash,
			  struct stored *out)
{
	struct shard *sh = shard_of(s, hash);
	size_t room;

	*out = (struct stored){ .image = NULL };
	room = copy_out(sh, address, alen, hash, out, 0);
	while (room != SIZE_MAX) {
		out->image = mem_alloc(room);
		if (!out->image)
			return NOH_ENOMEM;
		size_t now = copy_out(sh, address, alen, hash, out, room);
		if (now == room) {
			out->len = room;
			return NOH_OK;
		}
		mem_free(out->image, room);      /* another image in the meantime */
		room = now;
	}
	return NOH_END;
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
	return load_relaxed(&shard_of(s, hash)->count) != 0;
}

static uint64_t store_mem_count(struct store *s)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < SHARDS; i++)
		sum += load_relaxed(&shard_of(s, i)->count);
	return sum;
}

static uint64_t store_mem_bytes(struct store *s)
{
	uint64_t sum = sizeof(struct store_mem);

	for (uint64_t i = 0; i < SHARDS; i++)
		sum += load_relaxed(&shard_of(s, i)->bytes);
	return sum;
}

static void store_mem_close(struct store *s)
{
	for (uint64_t n = 0; n < SHARDS; n++) {
		struct shard *sh = shard_of(s, n);

		must(load_relaxed(&sh->held) == 0);
		for (uint64_t b = 0; b < sh->room; b++) {
			for (struct image *i = sh->buckets[b], *next; i; i = next) {
				next = i->next;
				mem_free(i, image_bytes(i));
			}
		}
		mem_free(sh->buckets, sizeof *sh->buckets * sh->room);
	}
	mem_free(s, sizeof(struct store_mem));
}

static const struct store_ops store_mem_ops = {
	.load = store_mem_load,
	.save = store_mem_save,
	.idem_get = store_mem_idem_get,
	.idem_put = store_mem_idem_put,
	.may_have = store_mem_may_have,
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
	*s = &m->store;
	return NOH_OK;
}
