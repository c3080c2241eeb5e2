/* persist/gather.c - ordering.  All of A to F are seq_cst: they stand in one total order.
 *
 *     pusher       load epoch (tag)  A    store tail  B    load epoch (due)  C    load asleep  F
 *     journaller   add to epoch      D    load tails  E    collect tag <= the old epoch
 *
 * B, C against D, E   is store buffering. If C gave at most the epoch that D ended, C came before D, so B
 *                     came before E and the record is collected: durable >= due means it is on disk. With
 *                     B a release store both sides may read the old value, on x86 too: durable would
 *                     pass a record that still lies in its ring.
 * B, A' against D, E  cause and effect. The cause was pushed (B) before it was published, the effect's
 *                     tag (A') was read after that. If the effect is collected, its tag is at most the
 *                     old epoch: A' came before D, so B before E: the cause is seen, and its own tag
 *                     is not higher. Without the check of the tag the effect could be taken from a
 *                     ring looked at late, and the cause missed in one looked at early.
 * B -> E              publishes the record's bytes. With E relaxed the journaller may read old ones.
 * G -> H              gives the space back. With G relaxed the pusher may overwrite what is being read.
 *
 * Sleeping: the journaller announces (I), then does D and E once more. F saw 0: F came before I, so did
 * B and C, so this last look finds the record, and its epoch covers due even if an earlier look took the
 * record. F saw 1: the pusher wakes it, and the next look covers both. With I after the last look, or
 * without the epoch in it, a pusher that was slow between B and C would wait for ever.
 */
#include "persist/gather.h"

#include "core/futex.h"
#include "core/mem.h"
#include "core/must.h"

#include <string.h>

static bool is_ring_size(uint64_t bytes)
{
	return bytes >= sizeof(struct gather_entry) && (bytes & (bytes - 1)) == 0;
}

/* Where a position is in its ring. */
static uint64_t place(const struct gather_ring *r, uint64_t at)
{
	return at & (r->fixed.size - 1);
}

bool gather_open(struct gather *g, uint32_t rings, uint64_t ring_bytes, uint64_t last_bytes, uint64_t epoch)
{
	must(is_ring_size(ring_bytes) && is_ring_size(last_bytes));
	g->fixed.ring = (struct gather_ring *)mem_aligned(CACHE_LINE, rings * sizeof *g->fixed.ring);
	if (!g->fixed.ring)
		return false;
	g->fixed.rings = rings;
	for (uint32_t i = 0; i < rings; i++) {
		struct gather_ring *r = &g->fixed.ring[i];

		r->fixed.size = i + 1 < rings ? ring_bytes : last_bytes;
		r->fixed.bytes = (uint8_t *)mem_aligned(CACHE_LINE, (size_t)r->fixed.size);
		if (!r->fixed.bytes) {
			gather_close(g);
			return false;
		}
	}
	store_relaxed(&g->shown.epoch, epoch);
	return true;
}

static void free_large(struct gather *g, struct gather_ring *r, uint64_t from, uint64_t to)
{
	while (from != to) {
		uint8_t *at = r->fixed.bytes + place(r, from);
		struct gather_entry e;
		struct gather_large l;

		memcpy(&e, at, sizeof e);
		if (e.kind == GATHER_LARGE) {
			memcpy(&l, at + sizeof e, sizeof l);
			mem_free(l.record, (size_t)l.size);
			sub_relaxed(&g->large.bytes, l.size);
		}
		from += sizeof e + e.size;
	}
}

void gather_close(struct gather *g)
{
	for (uint32_t i = 0; g->fixed.ring && i < g->fixed.rings; i++) {
		struct gather_ring *r = &g->fixed.ring[i];

		if (r->fixed.bytes)
			free_large(g, r, load_relaxed(&r->shared.head), r->mine.at);
		mem_free(r->fixed.bytes, (size_t)r->fixed.size);
	}
	mem_free(g->fixed.ring, g->fixed.rings * sizeof *g->fixed.ring);
	g->fixed.ring = NULL;
}

/* ── the pusher ── */

/* An entry never wraps: what is left before the end is skipped. */
static uint64_t needed(const struct gather_ring *r, size_t size)
{
	uint64_t whole = sizeof(struct gather_entry) + size;
	uint64_t to_end = r->fixed.size - place(r, r->mine.at);

	return to_end < whole ? to_end + whole : whole;
}

bool gather_room(struct gather_ring *r, size_t size)
{
	uint64_t need = needed(r, size);

	if (r->mine.at + need - r->mine.head <= r->fixed.size)
		return true;
	r->mine.head = load_acquire(&r->shared.head);                          /* H */
	return r->mine.at + need - r->mine.head <= r->fixed.size;
}

static uint8_t *put(struct gather_ring *r, enum gather_kind kind, size_t size)
{
	struct gather_entry e = { (uint32_t)size, kind };
	uint8_t *at = r->fixed.bytes + place(r, r->mine.at);

	memcpy(at, &e, sizeof e);
	r->mine.at += sizeof e + size;
	return at + sizeof e;
}

static uint8_t *put_whole(struct gather_ring *r, enum gather_kind kind, size_t size)
{
	uint64_t to_end = r->fixed.size - place(r, r->mine.at);

	must(gather_room(r, size));           /* who did not ask for room has run user code already */
	if (to_end < sizeof(struct gather_entry) + size)
		(void)put(r, GATHER_SKIP, (size_t)to_end - sizeof(struct gather_entry));
	return put(r, kind, size);
}

uint8_t *gather_reserve(struct gather *g, struct gather_ring *r, size_t size)
{
	struct gather_large l = { NULL, size };

	must(size % 8 == 0 && size > 0);
	if (size <= GATHER_INLINE)
		return put_whole(r, GATHER_RECORD, size);
	l.record = (uint8_t *)mem_alloc(size);
	if (!l.record)
		return NULL;
	add_relaxed(&g->large.bytes, size);
	memcpy(put_whole(r, GATHER_LARGE, sizeof l), &l, sizeof l);
	return l.record;
}

void gather_push(struct gather_ring *r)
{
	if (r->mine.tail == r->mine.at)
		return;
	r->mine.tail = r->mine.at;
	store_seq_cst(&r->shown.tail, r->mine.at);                             /* B */
}

void gather_unreserve(struct gather *g, struct gather_ring *r)
{
	free_large(g, r, r->mine.tail, r->mine.at);
	r->mine.at = r->mine.tail;
}

uint64_t gather_epoch(struct gather *g)
{
	return load_seq_cst(&g->shown.epoch);                                  /* A, C */
}

/* ── the journaller ── */

uint64_t gather_begin(struct gather *g, uint64_t *limit)
{
	uint64_t ended = add_seq_cst(&g->shown.epoch, 1);                      /* D */

	for (uint32_t i = 0; i < g->fixed.rings; i++)
		limit[i] = load_seq_cst(&g->fixed.ring[i].shown.tail);         /* E */
	return ended;
}

bool gather_waiting(struct gather *g)
{
	for (uint32_t i = 0; i < g->fixed.rings; i++)
		if (load_relaxed(&g->fixed.ring[i].shown.tail) !=
		    load_relaxed(&g->fixed.ring[i].shared.head))
			return true;
	return false;
}

/* The tag is where struct record_head has it. */
static uint64_t tag_of(const uint8_t *record)
{
	uint64_t tag;

	memcpy(&tag, record + 8, sizeof tag);
	return tag;
}

bool gather_peek(struct gather_ring *r, uint64_t head, uint64_t limit, uint64_t epoch,
		 struct gather_item *item)
{
	struct gather_entry e;
	struct gather_large l;
	const uint8_t *at;

	for (;; head += sizeof e + e.size) {
		if (head == limit)
			return false;
		at = r->fixed.bytes + place(r, head);
		memcpy(&e, at, sizeof e);
		if (e.kind != GATHER_SKIP)
			break;
	}
	item->record = at + sizeof e;
	item->size = e.size;
	item->large = NULL;
	item->next = head + sizeof e + e.size;
	if (e.kind == GATHER_LARGE) {
		memcpy(&l, at + sizeof e, sizeof l);
		item->record = item->large = l.record;
		item->size = l.size;
	}
	return tag_of(item->record) <= epoch;
}

void gather_release(struct gather *g, struct gather_ring *r, const struct gather_item *item)
{
	if (item->large) {
		mem_free(item->large, (size_t)item->size);
		sub_relaxed(&g->large.bytes, item->size);
	}
	store_release(&r->shared.head, item->next);                            /* G */
}

void gather_announce(struct gather *g)
{
	(void)swap_seq_cst(&g->shared.asleep, 1);                              /* I */
}

void gather_cancel(struct gather *g)
{
	store_relaxed(&g->shared.asleep, 0);
}

void gather_sleep(struct gather *g, uint64_t timeout_ns)
{
	if (load_relaxed(&g->shared.asleep))
		futex_wait(&g->shared.asleep, 1, timeout_ns);
	store_relaxed(&g->shared.asleep, 0);
}

void gather_wake(struct gather *g)
{
	if (load_seq_cst(&g->shared.asleep) && swap_acquire(&g->shared.asleep, 0))      /* F */
		futex_wake_all(&g->shared.asleep);
}

/* ── resting ── */

uint64_t gather_held(struct gather_ring *r)
{
	return load_relaxed(&r->shown.tail) - load_relaxed(&r->shared.head);
}

void gather_rest(struct gather *g, uint32_t bytes, uint64_t timeout_ns)
{
	bool enough = false;

	store_relaxed(&g->shared.wanted, bytes);
	for (uint32_t i = 0; i < g->fixed.rings && !enough; i++)
		enough = gather_held(&g->fixed.ring[i]) >= bytes;
	if (!enough)
		futex_wait(&g->shared.wanted, bytes, timeout_ns);
	store_relaxed(&g->shared.wanted, 0);
}

void gather_enough(struct gather *g, struct gather_ring *r)
{
	uint32_t wanted = load_relaxed(&g->shared.wanted);

	if (wanted == 0 || gather_held(r) < wanted)
		return;
	store_relaxed(&g->shared.wanted, 0);
	futex_wake_all(&g->shared.wanted);
}
