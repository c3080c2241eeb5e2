/* core/span_ring.c - pieces of spans: one writer, readers at any time.
 *
 * Each slot has a version, odd while it is written.
 *
 * A -> C  who has read a word of the new piece has seen the odd version before it: what A did happens before D of
 *         the same reader, so D sees that version or a later one, and the copy is thrown away. With the words
 *         relaxed he could read a new word and still find the old version.
 * B -> E  who reads an even version sees all words of that piece, or later ones, and then D tells.
 * The swap (A) is acquire as well: no word of the new piece is written before it is odd.
 */
#include "core/trace.h"

#include "core/mem.h"

#include <string.h>

void span_ring_close(struct span_ring *r)
{
	mem_free(load_relaxed(&r->shown.slots), SPANS * sizeof(struct span_slot));
	store_relaxed(&r->shown.slots, NULL);
}

/* F -> G  hands on the slots as they were made: all versions 0. */
static struct span_slot *slots_of(struct span_ring *r)
{
	struct span_slot *slots = load_relaxed(&r->shown.slots);

	if (!slots) {
		slots = mem_aligned(CACHE_LINE, SPANS * sizeof *slots);
		store_release(&r->shown.slots, slots);                             /* F */
	}
	return slots;
}

void span_put(struct span_ring *r, const struct span *s)
{
	struct span_slot *slot = slots_of(r);
	uint64_t version, word;

	if (!slot)
		return;                          /* no memory: forgotten */
	slot += r->mine.next++ % SPANS;
	version = load_relaxed(&slot->version);
	(void)swap_acq_rel(&slot->version, version + 1);                           /* A */
	for (size_t i = 0; i < SPAN_WORDS; i++) {
		memcpy(&word, (const char *)s + i * 8, 8);
		store_release(&slot->words[i], word);                              /* A */
	}
	store_release(&slot->version, version + 2);                                /* B */
}

static bool read_slot(struct span_slot *slot, struct span *out)
{
	uint64_t before = load_acquire(&slot->version), word;                      /* E */

	if (before == 0 || (before & 1))
		return false;
	for (size_t i = 0; i < SPAN_WORDS; i++) {
		word = load_acquire(&slot->words[i]);                              /* C */
		memcpy((char *)out + i * 8, &word, 8);
	}
	return load_relaxed(&slot->version) == before;                             /* D */
}

bool span_read(struct span_ring *r, uint32_t i, struct span *out)
{
	struct span_slot *slots = load_acquire(&r->shown.slots);                   /* G */

	return slots && read_slot(&slots[i], out);
}

bool span_read_of(struct span_ring *r, uint32_t i, uint64_t hi, uint64_t lo, struct span *out)
{
	struct span_slot *slots = load_acquire(&r->shown.slots);                   /* G */

	static_assert(offsetof(struct span, hi) == 0 && offsetof(struct span, lo) == 8, "the first two words");
	return slots && load_relaxed(&slots[i].words[0]) == hi && load_relaxed(&slots[i].words[1]) == lo &&
	       read_slot(&slots[i], out) && out->hi == hi && out->lo == lo;
}
