/* persist/refs.h - references to rows that will be written, sorted by key, then by sequence.
 *
 * Owns     its array, not what it refers to.   Threads  the one that folds.
 */
#ifndef NOH_PERSIST_REFS_H
#define NOH_PERSIST_REFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ref {
	uint64_t       window;           /* eight bytes of the key: most comparisons end here */
	const uint8_t *key;
	const uint8_t *at;               /* what it is about */
	uint64_t       seq;
	uint32_t       len;              /* of the key */
	uint32_t       left;             /* of the key, in the window: 0 to 8, 9 if more follows */
};

struct refs {
	struct ref *all;
	size_t      count, room;
};

bool refs_add(struct refs *r, const void *key, size_t len, uint64_t seq, const void *at);
/* Stable, n log n whatever the keys. False: no memory, nothing has moved. */
bool refs_sort(struct refs *r);
void refs_free(struct refs *r);
/* After sorting: one past the last of those with the key of `from`. */
size_t refs_group(const struct refs *r, size_t from);

#endif
