/* persist/store_disk.c - the store that survives: LMDB, and over it the overlay.
 *
 * A load looks at the folded epoch, then into the overlay, then into a snapshot of LMDB. An entry is
 * taken out of the overlay only after the commit that holds what it says. So who does not find it
 * there any more begins its snapshot after that commit (the shard's word hands the order on), and who
 * finds it needs no snapshot. The other way round, LMDB first, both looks could miss: LMDB before the
 * commit, the overlay after the sweep.
 *
 * Pending messages come with what LMDB says, and only with it (fresh). Nobody gets one twice in a run:
 * an actor that consumed one has made a record that says so, with a due of its own, so when it goes it
 * leaves an overlay entry with that due, and the next load finds the entry: not fresh, no messages.
 * Once the entry may go, the record is folded, and the same transaction deleted the message. An actor
 * that consumed none of those it got leaves none either, and gets them again: as it must. Messages
 * sent in this run (tag not below boot_tag) go through mailboxes, and are never handed out here.
 */
#include "core/mem.h"
#include "core/plant.h"
#include "noh.h"
#include "persist/db.h"
#include "persist/overlay.h"
#include "persist/tail.h"
#include "persist/value.h"

#include <sched.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct store_disk {
	struct store   store;
	struct db     *db;
	uint64_t       boot_tag;
	_Alignas(CACHE_LINE) struct overlay images;
	struct overlay keys;             /* address NUL key -> IDEM part */
	_Alignas(CACHE_LINE) struct {
		_Atomic(struct tail *) tail; /* NULL: none, or folded          */
		atomic_u32 users;            /* who looks into it              */
		uint64_t   epoch;            /* its last                       */
	} shared;
};

/* Count yourself, then look; the keeper takes it away, then waits until nobody counts (both seq_cst: one
 * of the two sees the other). Nobody is counted while there is no tail. */
static struct tail *tail_take(struct store_disk *d)
{
	struct tail *t = NULL;

	if (!load_relaxed(&d->shared.tail))
		return NULL;
	add_seq_cst(&d->shared.users, 1);
	t = load_seq_cst(&d->shared.tail);
	if (!t)
		sub_relaxed(&d->shared.users, 1);
	return t;
}

static void tail_give(struct store_disk *d)
{
	add_acq_rel(&d->shared.users, UINT32_MAX);
}

void store_disk_set_tail(struct store *s, struct tail *tail, uint64_t epoch)
{
	struct store_disk *d = (struct store_disk *)(void *)s;

	d->shared.epoch = epoch;
	store_seq_cst(&d->shared.tail, tail);
}

static void tail_drop(struct store_disk *d)
{
	struct tail *t = load_relaxed(&d->shared.tail);

	if (!t)
		return;
	store_seq_cst(&d->shared.tail, NULL);
	while (load_seq_cst(&d->shared.users))
		sched_yield();
	tail_close(t);
}

static struct store_disk *disk_of(struct store *s)
{
	return (struct store_disk *)(void *)s;
}

static int store_disk_load(struct store *s, const char *address, size_t alen, uint64_t hash,
			   struct stored *out)
{
	struct store_disk *d = disk_of(s);
	struct db_loaded loaded;
	int stale = PLANT(PLANT_STALE_SNAPSHOT) ? db_load(d->db, address, alen, d->boot_tag, &loaded) : NOH_END;
	int rc = overlay_get(&d->images, address, alen, hash, out);

	if (rc != NOH_END)
		return rc;
	*out = (struct stored){ .image = NULL };
	struct tail *tail = tail_take(d);

	rc = stale == NOH_OK ? stale : db_load(d->db, address, alen, d->boot_tag, &loaded);
	if (rc == NOH_OK)
		*out = (struct stored){ .image = loaded.image, .len = loaded.len, .seq = loaded.seq,
					.fresh = true };
	if (tail) {
		if ((rc == NOH_OK || rc == NOH_END) && tail_has(tail, hash)) {
			rc = tail_apply(tail, address, alen, hash, out);
			(void)tail_says(tail, address, alen, hash, &out->reborn);
		}
		tail_give(d);
	}
	return rc;
}

static int store_disk_save(struct store *s, const char *address, size_t alen, uint64_t hash,
			   const struct stored *in)
{
	return overlay_put(&disk_of(s)->images, address, alen, hash, in);
}

/* The keys of one actor spread over the shards. */
static uint64_t key_hash(uint64_t hash, const void *key, size_t klen)
{
	return XXH3_64bits_withSeed(key, klen, hash);
}

static int store_disk_idem_get(struct store *s, const char *address, size_t alen, uint64_t hash,
			       const void *key, size_t klen, void **part, size_t *len, uint64_t *due)
{
	struct store_disk *d = disk_of(s);
	uint8_t name[VALUE_KEY_MAX];
	struct stored found;
	int rc;

	*part = NULL;
	*len = 0;
	*due = 0;
	if (klen == 0 || klen > 255)
		return NOH_END;
	rc = overlay_get(&d->keys, name, key_pair(name, address, alen, key, klen),
			 key_hash(hash, key, klen), &found);
	if (rc == NOH_END) {
		struct tail *tail = tail_take(d);

		if (tail) {
			rc = tail_idem(tail, address, alen, hash, key, klen, part, len);
			tail_give(d);
		}
		return rc == NOH_END ? db_idem(d->db, address, alen, key, klen, part, len) : rc;
	}
	if (rc == NOH_OK) {
		*part = found.image;
		*len = found.len;
		*due = found.due;
	}
	return rc;
}

static int store_disk_idem_put(struct store *s, const char *address, size_t alen, uint64_t hash,
			       const void *key, size_t klen, const void *part, size_t len, uint64_t due)
{
	struct stored in = { .image = (void *)(uintptr_t)part, .len = len, .seq = due, .due = due };
	uint8_t name[VALUE_KEY_MAX];

	if (klen == 0 || klen > 255)
		return NOH_EINVAL;
	return overlay_put(&disk_of(s)->keys, name, key_pair(name, address, alen, key, klen),
			   key_hash(hash, key, klen), &in);
}

/* The overlay first: if its shard is empty because of a sweep, the commit before it shows. */
static bool store_disk_may_have(struct store *s, uint64_t hash)
{
	struct store_disk *d = disk_of(s);

	return overlay_any(&d->images, hash) || load_relaxed(&d->shared.tail) || !db_empty(d->db);
}

/* The overlay first: what has gone from it before the tail is looked at has gone from there, too, into
 * LMDB. */
static bool store_disk_window(struct store *s, uint64_t from, uint64_t last, struct names *out)
{
	struct store_disk *d = disk_of(s);
	bool ok = overlay_window(&d->images, from, last, out);
	struct tail *tail = ok ? tail_take(d) : NULL;

	if (tail) {
		ok = tail_window(tail, from, last, out);
		tail_give(d);
	}
	return ok;
}

static uint64_t store_disk_near(struct store *s, uint64_t hash)
{
	struct store_disk *d = disk_of(s);
	uint64_t n = (overlay_near(&d->images, hash) + 15) / 16;
	struct tail *tail = tail_take(d);

	if (tail) {
		n += tail_actors(tail) / 4096 + 1;
		tail_give(d);
	}
	return n;
}

enum store_says store_disk_says(struct store *s, const char *address, size_t alen, uint64_t hash, uint64_t *due)
{
	struct store_disk *d = disk_of(s);
	enum store_says says = overlay_says(&d->images, address, alen, hash, due);
	struct tail *tail = says == STORE_NOTHING ? tail_take(d) : NULL;
	bool reborn;

	if (tail) {
		says = tail_says(tail, address, alen, hash, &reborn);
		*due = 0;
		tail_give(d);
	}
	return says;
}

/* What comes out of the tail is due long since, and not folded yet. */
bool store_disk_is_folded(struct store *s, uint64_t due)
{
	struct store_disk *d = disk_of(s);

	return !load_acquire(&d->shared.tail) && due <= load_acquire(&d->images.folded);
}

/* An actor that is in both counts twice until its entry is folded; one with a tombstone still counts
 * in LMDB. Exact when all is folded. */
static uint64_t store_disk_count(struct store *s)
{
	struct store_disk *d = disk_of(s);

	return overlay_living(&d->images) + db_images(d->db);
}

uint64_t store_disk_overlay_bytes(struct store *s)
{
	struct store_disk *d = disk_of(s);

	return overlay_bytes(&d->images) + overlay_bytes(&d->keys);
}

/* LMDB's pages are the page cache's. */
static uint64_t store_disk_bytes(struct store *s)
{
	struct store_disk *d = disk_of(s);
	struct tail *tail = tail_take(d);
	uint64_t bytes = sizeof *d + store_disk_overlay_bytes(s);

	if (tail) {
		bytes += tail_bytes(tail);
		tail_give(d);
	}
	return bytes;
}

void store_disk_folded(struct store *s, uint64_t epoch)
{
	struct store_disk *d = disk_of(s);

	/* The tail before the entries: tail.h says why. */
	if (epoch >= d->shared.epoch)
		tail_drop(d);
	overlay_folded(&d->images, epoch);
	overlay_folded(&d->keys, epoch);
}

static void store_disk_close(struct store *s)
{
	struct store_disk *d = disk_of(s);

	tail_drop(d);
	overlay_close(&d->images);
	overlay_close(&d->keys);
	mem_free(d, sizeof *d);
}

static const struct store_ops store_disk_ops = {
	.load = store_disk_load,
	.save = store_disk_save,
	.idem_get = store_disk_idem_get,
	.idem_put = store_disk_idem_put,
	.may_have = store_disk_may_have,
	.window = store_disk_window,
	.near = store_disk_near,
	.count = store_disk_count,
	.bytes = store_disk_bytes,
	.close = store_disk_close,
};

int store_disk_open(struct store **s, struct db *db, uint64_t boot_tag)
{
	struct store_disk *d = mem_aligned(CACHE_LINE, sizeof *d);
	uint64_t frame, epoch;

	if (!d)
		return NOH_ENOMEM;
	d->store.ops = &store_disk_ops;
	store_relaxed(&d->store.used, 1);       /* before this run */
	d->db = db;
	d->boot_tag = boot_tag;
	db_stamp(db, &frame, &epoch);
	overlay_open(&d->images, epoch);
	overlay_open(&d->keys, epoch);
	*s = &d->store;
	return NOH_OK;
}
