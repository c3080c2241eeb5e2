#include "core/names.h"

#include "core/mem.h"
#include "core/must.h"

#include <string.h>

#define LONGEST 256              /* an address and its NUL */

uint32_t names_left(const struct names *n)
{
	size_t long_ones = (n->bytes_room - n->used) / LONGEST;
	uint32_t places = n->room - n->count;

	return long_ones < places ? (uint32_t)long_ones : places;
}

static bool more_places(struct names *n, uint32_t want)
{
	uint32_t room = n->room ? n->room : 64;
	struct name *list;

	if (want <= n->room)
		return true;
	while (room < want)
		room *= 2;
	list = mem_alloc(room * sizeof *list);
	if (!list)
		return false;
	if (n->count)
		memcpy(list, n->list, n->count * sizeof *list);
	mem_free(n->list, n->room * sizeof *list);
	n->list = list;
	n->room = room;
	return true;
}

static bool more_bytes(struct names *n, size_t want)
{
	size_t room = n->bytes_room ? n->bytes_room : 64 * LONGEST;
	char *bytes;

	if (want <= n->bytes_room)
		return true;
	while (room < want)
		room *= 2;
	bytes = mem_alloc(room);
	if (!bytes)
		return false;
	if (n->used)
		memcpy(bytes, n->bytes, n->used);
	mem_free(n->bytes, n->bytes_room);
	n->bytes = bytes;
	n->bytes_room = room;
	return true;
}

bool names_room(struct names *n, uint32_t more)
{
	return more_places(n, n->count + more) && more_bytes(n, n->used + (size_t)more * LONGEST);
}

void names_put(struct names *n, const void *address, size_t len, struct name is)
{
	must(n->count < n->room);
	must(len < LONGEST && len + 1 <= n->bytes_room - n->used);
	is.at = n->used;
	is.len = (uint8_t)len;
	n->list[n->count++] = is;
	memcpy(n->bytes + n->used, address, len);
	n->bytes[n->used + len] = 0;
	n->used += len + 1;
}

void names_free(struct names *n)
{
	mem_free(n->list, n->room * sizeof *n->list);
	mem_free(n->bytes, n->bytes_room);
	*n = (struct names){ .count = 0 };
}

static int compare(const struct names *n, const struct name *a, const struct name *b)
{
	size_t len = a->len < b->len ? a->len : b->len;
	int c;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	c = memcmp(n->bytes + a->at, n->bytes + b->at, len);
	if (c == 0)
		c = a->len - b->len;
	return c ? c : a->from - b->from;
}

bool names_same(const struct names *n, uint32_t a, uint32_t b)
{
	const struct name *x = &n->list[a], *y = &n->list[b];

	return x->hash == y->hash && x->len == y->len &&
	       memcmp(n->bytes + x->at, n->bytes + y->at, x->len) == 0;
}

/* A heap sort: in place, and never worse than n log n. */
static void sink(const struct names *n, struct name *list, uint32_t at, uint32_t count)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		struct name swap = list[at];

		if (child >= count)
			return;
		if (child + 1 < count && compare(n, &list[child], &list[child + 1]) < 0)
			child++;
		if (compare(n, &swap, &list[child]) >= 0)
			return;
		list[at] = list[child];
		list[child] = swap;
		at = child;
	}
}

void names_sort(struct names *n, uint32_t first)
{
	struct name *list = n->list + first;
	uint32_t count = n->count - first;

	for (uint32_t i = count / 2; i-- > 0; )
		sink(n, list, i, count);
	for (uint32_t last = count; last-- > 1; ) {
		struct name swap = list[0];

		list[0] = list[last];
		list[last] = swap;
		sink(n, list, 0, last);
	}
}
