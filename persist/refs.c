/* persist/refs.c - a merge sort that looks at eight bytes of the keys at a time.
 *
 * Keys begin alike ("counter:1", "counter:2") and lie all over the memory. So the window that is being
 * compared is kept in the reference; where windows are equal the next eight bytes are fetched, and
 * where whole keys are equal the sequence decides.
 */
#include "persist/refs.h"

#include "core/mem.h"

#include <string.h>

#define FIRST_ROOM 256
#define SMALL 12
#define AHEAD 16                 /* keys are fetched so much before they are looked at */
#define SAME_KEY 10              /* after sorting, in left: as the one before */

bool refs_add(struct refs *r, const void *key, size_t len, uint64_t seq, const void *at)
{
	if (r->count == r->room) {
		size_t room = r->room ? r->room * 2 : FIRST_ROOM;
		struct ref *all = mem_alloc(room * sizeof *all);

		if (!all)
			return false;
		if (r->count)
			memcpy(all, r->all, r->count * sizeof *all);
		mem_free(r->all, r->room * sizeof *all);
		r->all = all;
		r->room = room;
	}
	r->all[r->count++] = (struct ref){ .key = key, .at = at, .seq = seq, .len = (uint32_t)len };
	return true;
}

void refs_free(struct refs *r)
{
	mem_free(r->all, r->room * sizeof *r->all);
	*r = (struct refs){ .count = 0 };
}

static inline bool above(const struct ref *a, const struct ref *b)
{
	return a->window > b->window || (a->window == b->window && a->left > b->left);
}

static void insertion(struct ref *r, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct ref x = r[i];
		size_t at = i;

		for (; at > 0 && above(&r[at - 1], &x); at--)
			r[at] = r[at - 1];
		r[at] = x;
	}
}

/* spare has room for half of it. */
static void merge_sort(struct ref *r, size_t n, struct ref *spare)
{
	size_t half = n / 2, a = 0, b = half, to = 0;

	if (n <= SMALL) {
		insertion(r, n);
		return;
	}
	merge_sort(r, half, spare);
	merge_sort(r + half, n - half, spare);
	if (!above(&r[half - 1], &r[half]))
		return;
	memcpy(spare, r, half * sizeof *r);
	while (a < half && b < n)
		r[to++] = above(&spare[a], &r[b]) ? r[b++] : spare[a++];
	memcpy(&r[to], &spare[a], (half - a) * sizeof *r);
}

static void look_at(struct ref *r, uint32_t depth)
{
	uint32_t left = r->len > depth ? r->len - depth : 0;
	uint64_t window = 0;

	r->left = left > 8 ? 9 : left;
	if (left)
		memcpy(&window, r->key + depth, left < 8 ? left : 8);
	r->window = __builtin_bswap64(window);
}

static void by_sequence(struct ref *r, size_t n, struct ref *spare)
{
	for (size_t i = 0; i < n; i++)
		r[i].window = r[i].seq;
	merge_sort(r, n, spare);
	for (size_t i = 1; i < n; i++)
		r[i].left = SAME_KEY;
}

/* Their keys are alike up to depth. It calls itself at most once per eight bytes of key. */
static void sort_from(struct ref *r, size_t n, uint32_t depth, struct ref *spare)
{
	for (size_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			__builtin_prefetch(r[i + AHEAD].key + depth);
		look_at(&r[i], depth);
	}
	merge_sort(r, n, spare);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !above(&r[end], &r[i]); end++)
			;
		if (end - i == 1)
			continue;
		if (r[i].left > 8)
			sort_from(r + i, end - i, depth + 8, spare);
		else
			by_sequence(r + i, end - i, spare);
	}
}

bool refs_sort(struct refs *r)
{
	size_t half = r->count / 2 + 1;
	struct ref *spare;

	if (r->count < 2)
		return true;
	spare = mem_alloc(half * sizeof *spare);
	if (!spare)
		return false;
	sort_from(r->all, r->count, 0, spare);
	mem_free(spare, half * sizeof *spare);
	return true;
}

size_t refs_group(const struct refs *r, size_t from)
{
	size_t end = from + 1;

	while (end < r->count && r->all[end].left == SAME_KEY)
		end++;
	return end;
}
