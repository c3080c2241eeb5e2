/* persist/refs.h - references to rows that will be written, sorted by key, then by sequence.
 *
 * Owns     its arrays, not what it refers to.   Threads  the one that folds.
 */
#ifndef NOH_PERSIST_REFS_H
#define NOH_PERSIST_REFS_H

#include "persist/blocks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ref {
	const uint8_t *key;
	const uint8_t *at;               /* what it is about */
	uint64_t       seq;
	uint32_t       len;              /* of the key */
	uint32_t       note;             /* the caller's */
};

/* What is moved while sorting: small, and most comparisons end in it. */
struct ref_place {
	uint64_t window;                 /* eight bytes of the key */
	uint32_t which;                  /* in all[] */
	uint32_t left;                   /* of the key, in the window: 0 to 8, 9 if more follows */
};

struct refs {
	struct ref       *all;           /* as they came */
	size_t            count, room;
	struct ref_place *order;         /* after sorting */
	size_t            order_room;
	struct blocks    *blocks;        /* where its memory comes from; NULL: the allocator */
	size_t            first_room;    /* so many are expected; 0: few */
};

bool refs_add(struct refs *r, const void *key, size_t len, uint64_t seq, const void *at, uint32_t note);
/* Stable, and the time is that of looking at the keys a few times, whatever they are. False: no memory, and no
 * order. */
bool refs_sort(struct refs *r);
void refs_free(struct refs *r);          /* blocks stays */

/* ── after sorting ── */

static inline const struct ref *refs_nth(const struct refs *r, size_t i)
{
	return &r->all[r->order[i].which];
}
/* One past the last of those with the key of `from`. */
size_t refs_group(const struct refs *r, size_t from);

#endif
