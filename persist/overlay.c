/* persist/overlay.c - hash tables, each behind a spin word.
 *
 * A -> B  hands the shard on. With B relaxed the next holder could see half of what the last did.
 * C -> D  folded. The keeper stores it (C) before it sweeps; whoever inserts loads it (D) while it
 *         holds the shard. Either the shard is held before the sweep comes by: then the sweep finds
 *         the entry. Or after: then the word that was handed on shows the new value. So no entry
 *         outlives its fold by more than the sweep. With D before the hold, one could.
 * E -> F  count. Who reads that a shard is empty because of a sweep also sees the commit before it.
 */
#include "persist/overlay.h"

#include "core/mem.h"
#include "core/must.h"
#include "noh.h"

#include <assert.h>
#include <sched.h>
#include <string.h>

#define FIRST_BUCKETS 16
#define SPINS 100
#define SWEEP 64
#define SHARD_BITS 8
static_assert(OVERLAY_SHARDS == 1 << SHARD_BITS, "the top bits of a hash");

struct overlay_entry {
	struct overlay_entry *next;
	uint64_t hash, seq, due;
	size_t   key_len, len;
	bool     gone, reborn;
	char     bytes[];                /* key, then value */
};

static size_t entry_bytes(const struct overlay_entry *e)
{
	return sizeof *e + e->key_len + e->len;
}

static void free_all(struct overlay_entry *e)
{
	for (struct overlay_entry *next; e; e = next) {
		next = e->next;
		mem_free(e, entry_bytes(e));
	}
}

static struct overlay_shard *shard_of(struct overlay *o, uint64_t hash)
{
	return &o->shards[hash >> (64 - SHARD_BITS)];
}

static void hold(struct overlay_shard *sh)
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

static void let_go(struct overlay_shard *sh)
{
	store_release(&sh->held, 0);                                        /* A */
}

/* In the order of hashes. */
static uint64_t bucket_of(const struct overlay_shard *sh, uint64_t hash)
{
	return (hash << SHARD_BITS) >> (64 - __builtin_ctzll(sh->room));
}

static struct overlay_entry **bucket(struct overlay_shard *sh, uint64_t hash)
{
	return &sh->buckets[bucket_of(sh, hash)];
}

/* Where the entry hangs, or the empty end of its chain. NULL: there is no table yet. */
static struct overlay_entry **find(struct overlay_shard *sh, const void *key, size_t len, uint64_t hash)
{
	if (sh->room == 0)
		return NULL;
	struct overlay_entry **at = bucket(sh, hash);

	while (*at && ((*at)->hash != hash || (*at)->key_len != len ||
		       memcmp((*at)->bytes, key, len) != 0))
		at = &(*at)->next;
	return at;
}

static void count_entry(struct overlay_shard *sh, const struct overlay_entry *e, bool comes)
{
	uint64_t one = comes ? 1 : UINT64_MAX;

	count_one(&sh->bytes, comes ? entry_bytes(e) : 0 - (uint64_t)entry_bytes(e));
	if (!e->gone)
		count_one(&sh->living, one);
	store_release(&sh->count, load_relaxed(&sh->count) + one);          /* E */
}

static struct overlay_entry *unhang(struct overlay_shard *sh, struct overlay_entry **at)
{
	struct overlay_entry *e = *at;

	*at = e->next;
	e->next = NULL;
	count_entry(sh, e, false);
	return e;
}

static bool grow(struct overlay_shard *sh)
{
	struct overlay_entry **old = sh->buckets;
	uint64_t old_room = sh->room, room = old_room ? old_room * 2 : FIRST_BUCKETS;
	struct overlay_entry **bigger = mem_zalloc(sizeof *bigger * room);

	if (!bigger)
		return false;
	sh->buckets = bigger;
	sh->room = room;
	for (uint64_t b = 0; b < old_room; b++) {
		for (struct overlay_entry *e = old[b], *next; e; e = next) {
			struct overlay_entry **at = bucket(sh, e->hash);
			next = e->next;
			e->next = *at;
			*at = e;
		}
	}
	mem_free(old, sizeof *old * old_room);
	count_one(&sh->bytes, sizeof *bigger * (room - old_room));
	return true;
}

static struct overlay_entry *new_entry(const void *key, size_t len, uint64_t hash,
				       const struct stored *in)
{
	size_t bytes = in->gone ? 0 : in->len;
	struct overlay_entry *e;

	if (bytes > PTRDIFF_MAX - sizeof *e - len)
		return NULL;
	e = mem_alloc(sizeof *e + len + bytes);
	if (!e)
		return NULL;
	*e = (struct overlay_entry){ .hash = hash, .seq = in->seq, .due = in->due, .key_len = len,
				     .len = bytes, .gone = in->gone, .reborn = in->reborn };
	memcpy(e->bytes, key, len);
	if (bytes)
		memcpy(e->bytes + len, in->image, bytes);
	return e;
}

/* Holds the shard. *rest: what is to be freed. */
static int change(struct overlay *o, struct overlay_shard *sh, struct overlay_entry *fresh,
		  struct overlay_entry **rest)
{
	*rest = fresh;
	if (load_relaxed(&sh->count) >= sh->room && !grow(sh) && sh->room == 0)
		return NOH_ENOMEM;
	struct overlay_entry **at = find(sh, fresh->bytes, fresh->key_len, fresh->hash);

	if (*at && (*at)->seq > fresh->seq)
		return NOH_OK;
	if (fresh->due <= load_acquire(&o->folded)) {                       /* D */
		fresh->next = *at ? unhang(sh, at) : NULL;
		return NOH_OK;
	}
	struct overlay_entry *old = *at;

	fresh->reborn |= old && (old->gone || old->reborn);
	fresh->next = old ? old->next : NULL;
	*at = fresh;
	count_entry(sh, fresh, true);    /* before the old one goes: a full shard never looks empty */
	if (old) {
		old->next = NULL;
		count_entry(sh, old, false);
	}
	*rest = old;
	return NOH_OK;
}

/* It is folded: all that is to be done is to forget an older one. Needs no memory. */
static void forget(struct overlay_shard *sh, const void *key, size_t len, uint64_t hash, uint64_t seq)
{
	struct overlay_entry *old = NULL;

	if (load_relaxed(&sh->count) == 0)
		return;
	hold(sh);
	struct overlay_entry **at = find(sh, key, len, hash);

	if (at && *at && (*at)->seq <= seq)
		old = unhang(sh, at);
	let_go(sh);
	free_all(old);
}

int overlay_put(struct overlay *o, const void *key, size_t key_len, uint64_t hash,
		const struct stored *in)
{
	struct overlay_shard *sh = shard_of(o, hash);
	struct overlay_entry *fresh, *rest;

	if (in->due <= load_acquire(&o->folded)) {
		forget(sh, key, key_len, hash, in->seq);
		return NOH_OK;
	}
	fresh = new_entry(key, key_len, hash, in);
	if (!fresh)
		return NOH_ENOMEM;
	hold(sh);
	int rc = change(o, sh, fresh, &rest);

	let_go(sh);
	free_all(rest);
	return rc;
}

/* Copy the value if it fits `room` bytes exactly. Its length, SIZE_MAX if there is none. */
static size_t copy_out(struct overlay_shard *sh, const void *key, size_t len, uint64_t hash,
		       struct stored *to, size_t room)
{
	size_t found = SIZE_MAX;

	hold(sh);
	struct overlay_entry **at = find(sh, key, len, hash);

	if (at && *at) {
		found = (*at)->len;
		to->seq = (*at)->seq;
		to->due = (*at)->due;
		to->gone = (*at)->gone;
		to->reborn = (*at)->reborn;
		if (to->image && found == room)
			memcpy(to->image, (*at)->bytes + len, found);
	}
	let_go(sh);
	return found;
}

int overlay_get(struct overlay *o, const void *key, size_t key_len, uint64_t hash, struct stored *out)
{
	struct overlay_shard *sh = shard_of(o, hash);
	size_t room;

	*out = (struct stored){ .image = NULL };
	if (load_acquire(&sh->count) == 0)                                  /* F */
		return NOH_END;
	room = copy_out(sh, key, key_len, hash, out, 0);
	while (room != SIZE_MAX && !out->gone) {
		out->image = mem_alloc(room);
		if (!out->image)
			return NOH_ENOMEM;
		size_t now = copy_out(sh, key, key_len, hash, out, room);

		if (now == room && !out->gone) {
			out->len = room;
			return NOH_OK;
		}
		mem_free(out->image, room);      /* another one in the meantime */
		out->image = NULL;
		room = now;
	}
	return room == SIZE_MAX ? NOH_END : NOH_OK;
}

/* A few buckets. What is folded is hung on *gone. */
static void sweep(struct overlay_shard *sh, uint64_t from, uint64_t epoch, struct overlay_entry **gone)
{
	for (uint64_t b = from; b < sh->room && b < from + SWEEP; b++) {
		for (struct overlay_entry **at = &sh->buckets[b]; *at; ) {
			if ((*at)->due > epoch) {
				at = &(*at)->next;
				continue;
			}
			struct overlay_entry *e = unhang(sh, at);
			e->next = *gone;
			*gone = e;
		}
	}
}

/* If the table doubles between two pieces, an entry of bucket b is in 2b or 2b + 1: the sweep, going on, still
 * meets those it has not met, and some once more. */
void overlay_folded(struct overlay *o, uint64_t epoch)
{
	if (epoch <= load_relaxed(&o->folded))
		return;
	store_release(&o->folded, epoch);                                   /* C */
	for (uint64_t n = 0; n < OVERLAY_SHARDS; n++) {
		struct overlay_shard *sh = &o->shards[n];
		uint64_t at = 0, room;

		do {
			struct overlay_entry *gone = NULL;

			hold(sh);
			sweep(sh, at, epoch, &gone);
			room = sh->room;
			let_go(sh);
			free_all(gone);
			at += SWEEP;
		} while (at < room);
	}
}

/* ── for scans ── */

/* From bucket to bucket as far as there is room for what hangs there. *next: where to go on. True: all done. */
static bool list_some(struct overlay_shard *sh, uint64_t *next, uint64_t last, struct names *out)
{
	uint64_t bits = sh->room ? 64 - SHARD_BITS - (uint64_t)__builtin_ctzll(sh->room) : 0, from = *next;

	for (int i = 0; sh->room && i < SWEEP; i++) {
		uint64_t behind = ((*next >> bits) + 1) << bits;        /* of this bucket; 0: of the last one */
		uint32_t length = 0;

		for (struct overlay_entry *e = *bucket(sh, *next); e; e = e->next)
			length++;
		if (length > names_left(out))
			return false;
		for (struct overlay_entry *e = *bucket(sh, *next); e; e = e->next)
			if (e->hash >= from && e->hash <= last)
				names_put(out, e->bytes, e->key_len, (struct name){
					.hash = e->hash, .due = e->due, .from = 1, .flags =
					(uint16_t)((e->gone ? 0 : NAME_THERE) | (e->reborn ? NAME_REBORN : 0)) });
		if (behind == 0 || behind > last)
			return true;
		*next = from = behind;
	}
	return sh->room == 0;
}

bool overlay_window(struct overlay *o, uint64_t from, uint64_t last, struct names *out)
{
	struct overlay_shard *sh = shard_of(o, from);

	must(sh == shard_of(o, last) && from <= last);
	if (load_acquire(&sh->count) == 0)                                  /* F */
		return true;
	for (uint32_t more = SWEEP; names_room(out, more); ) {
		uint64_t before = from;

		hold(sh);
		bool done = list_some(sh, &from, last, out);

		let_go(sh);
		if (done)
			return true;
		more = from == before ? more * 2 : SWEEP;
	}
	return false;
}

enum store_says overlay_says(struct overlay *o, const void *key, size_t key_len, uint64_t hash, uint64_t *due)
{
	struct stored found = { .image = NULL };

	if (load_acquire(&shard_of(o, hash)->count) == 0 ||                 /* F */
	    copy_out(shard_of(o, hash), key, key_len, hash, &found, 0) == SIZE_MAX)
		return STORE_NOTHING;
	*due = found.due;
	return found.gone ? STORE_GONE : STORE_THERE;
}

uint64_t overlay_near(struct overlay *o, uint64_t hash)
{
	return load_acquire(&shard_of(o, hash)->count);                     /* F */
}

bool overlay_any(struct overlay *o, uint64_t hash)
{
	return load_acquire(&shard_of(o, hash)->count) != 0;                /* F */
}

uint64_t overlay_living(struct overlay *o)
{
	uint64_t sum = 0;

	for (uint64_t n = 0; n < OVERLAY_SHARDS; n++)
		sum += load_relaxed(&o->shards[n].living);
	return sum;
}

uint64_t overlay_bytes(struct overlay *o)
{
	uint64_t sum = 0;

	for (uint64_t n = 0; n < OVERLAY_SHARDS; n++)
		sum += load_relaxed(&o->shards[n].bytes);
	return sum;
}

void overlay_open(struct overlay *o, uint64_t folded)
{
	store_relaxed(&o->folded, folded);
}

void overlay_close(struct overlay *o)
{
	for (uint64_t n = 0; n < OVERLAY_SHARDS; n++) {
		struct overlay_shard *sh = &o->shards[n];

		must(load_relaxed(&sh->held) == 0);
		for (uint64_t b = 0; b < sh->room; b++)
			free_all(sh->buckets[b]);
		mem_free(sh->buckets, sizeof *sh->buckets * sh->room);
	}
}
