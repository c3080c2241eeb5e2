/* persist/refs.c - sorts by looking at eight bytes of the keys at a time, and of these at the bits that differ.
 *
 * Keys begin alike ("counter:1", "counter:2"), hold few different characters, and lie all over the memory. So
 * what all of them have in common is skipped, the next eight bytes are fetched once, the bits in which
 * they differ are pushed together (order stays), and those are sorted by counting, a byte at a time. Where all
 * eight bytes are equal the next eight are looked at, and where whole keys are equal the sequence decides.
 */
#include "persist/refs.h"

#include "core/mem.h"
#include "core/must.h"

#include <string.h>

#define FIRST_ROOM 256
#define FEW 16                   /* are compared with each other */
#define AHEAD 16                 /* keys are fetched so much before they are looked at */
#define MORE 9                   /* in left: the key goes on behind the window */
#define SAME_KEY 10              /* after sorting, in left: as the one before */
#define DIGIT 256

bool refs_add(struct refs *r, const void *key, size_t len, uint64_t seq, const void *at, uint32_t note)
{
	if (r->count == r->room) {
		size_t room = r->room ? r->room * 2 : r->first_room > FIRST_ROOM ? r->first_room : FIRST_ROOM;
		struct ref *all = blocks_take(r->blocks, room * sizeof *all);

		if (!all)
			return false;
		if (r->count)
			memcpy(all, r->all, r->count * sizeof *all);
		mem_large_free(r->all, r->room * sizeof *all);   /* the next one begins with the larger one */
		r->all = all;
		r->room = room;
	}
	r->all[r->count++] = (struct ref){ .key = key, .at = at, .seq = seq, .len = (uint32_t)len, .note = note };
	return true;
}

void refs_free(struct refs *r)
{
	blocks_give(r->blocks, r->all, r->room * sizeof *r->all);
	blocks_give(r->blocks, r->order, r->order_room * sizeof *r->order);
	*r = (struct refs){ .blocks = r->blocks };
}

/* ── few of them ── */

/* Keys are alike up to depth. */
static int compare(const struct ref *a, const struct ref *b, uint32_t depth)
{
	uint32_t less = a->len < b->len ? a->len : b->len;
	int order = less > depth ? memcmp(a->key + depth, b->key + depth, less - depth) : 0;

	return order ? order : (a->len > b->len) - (a->len < b->len);
}

static void sort_few(const struct refs *r, struct ref_place *p, size_t n, uint32_t depth)
{
	for (size_t i = 1; i < n; i++) {
		struct ref_place x = p[i];
		const struct ref *ref = &r->all[x.which];
		size_t at = i;
		int order = 1;

		for (; at > 0; at--) {
			const struct ref *before = &r->all[p[at - 1].which];

			order = compare(ref, before, depth);
			if (order > 0 || (order == 0 && ref->seq >= before->seq))
				break;
			p[at] = p[at - 1];
		}
		p[at] = x;
	}
	for (size_t i = 0; i < n; i++) {
		bool same = i && compare(&r->all[p[i].which], &r->all[p[i - 1].which], depth) == 0;

		p[i].left = same ? SAME_KEY : 0;
	}
}

/* ── many ── */

/* Stretches of bits, each with its way down to where the one below it ends. */
struct squeeze {
	uint32_t count, bits;
	struct { uint64_t mask; uint32_t shift; } run[32];
};

static void squeeze_plan(struct squeeze *s, uint64_t differ)
{
	s->count = s->bits = 0;
	while (differ) {
		uint32_t low = (uint32_t)__builtin_ctzll(differ);
		uint64_t above = ~(differ >> low);
		uint32_t len = above ? (uint32_t)__builtin_ctzll(above) : 64;
		uint64_t ones = len < 64 ? (UINT64_C(1) << len) - 1 : UINT64_MAX;

		s->run[s->count].mask = ones << s->bits;
		s->run[s->count++].shift = low - s->bits;
		s->bits += len;
		differ &= ~(ones << low);
	}
}

static uint64_t squeeze(const struct squeeze *s, uint64_t window)
{
	uint64_t out = 0;

	for (uint32_t i = 0; i < s->count; i++)
		out |= window >> s->run[i].shift & s->run[i].mask;
	return out;
}

static void starts(uint32_t *count)
{
	for (uint32_t d = 0, at = 0; d < DIGIT; d++) {
		uint32_t n = count[d];

		count[d] = at;
		at += n;
	}
}

static void by_left(struct ref_place **p, struct ref_place **spare, size_t n)
{
	uint32_t count[DIGIT] = {0};
	struct ref_place *from = *p, *to = *spare;

	for (size_t i = 0; i < n; i++)
		count[from[i].left]++;
	starts(count);
	for (size_t i = 0; i < n; i++)
		to[count[from[i].left]++] = from[i];
	*p = to;
	*spare = from;
}

/* By the bits in which the windows differ, the lowest first; each pass keeps the order of the last one. */
static void by_window(struct ref_place **p, struct ref_place **spare, size_t n, uint64_t differ)
{
	uint32_t count[8][DIGIT], passes;
	struct ref_place *from = *p, *to = *spare;
	struct squeeze s;

	squeeze_plan(&s, differ);
	passes = (s.bits + 7) / 8;
	memset(count, 0, passes * sizeof count[0]);
	for (size_t i = 0; i < n; i++) {
		uint64_t window = from[i].window = squeeze(&s, from[i].window);

		for (uint32_t d = 0; d < passes; d++, window >>= 8)
			count[d][window & 255]++;
	}
	for (uint32_t d = 0; d < passes; d++) {
		struct ref_place *sorted = to;

		starts(count[d]);
		for (size_t i = 0; i < n; i++)
			to[count[d][from[i].window >> 8 * d & 255]++] = from[i];
		to = from;
		from = sorted;
	}
	*p = from;
	*spare = to;
}

static void sort_places(struct ref_place *p, size_t n, struct ref_place *spare, uint64_t differ, bool lengths_differ)
{
	struct ref_place *at = p;

	if (lengths_differ)
		by_left(&at, &spare, n);
	if (differ)
		by_window(&at, &spare, n, differ);
	if (at != p)
		memcpy(p, at, n * sizeof *p);
}

/* Their keys are the same. Nearly always they come in their order. */
static void by_sequence(const struct refs *r, struct ref_place *p, size_t n, struct ref_place *spare)
{
	uint64_t differ = 0, first = r->all[p[0].which].seq, before = first;
	bool in_order = true;

	for (size_t i = 0; i < n; i++) {
		uint64_t seq = r->all[p[i].which].seq;

		p[i].window = seq;
		differ |= seq ^ first;
		in_order &= seq >= before;
		before = seq;
	}
	if (!in_order)
		sort_places(p, n, spare, differ, false);
	for (size_t i = 1; i < n; i++)
		p[i].left = SAME_KEY;
}

struct view { uint64_t differ; uint32_t least, most; };      /* least, most: of what is left */

/* Eight bytes from depth on into every window. */
static struct view look_at(const struct refs *r, struct ref_place *p, size_t n, uint32_t depth)
{
	struct view v = { .least = MORE };
	uint64_t first = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ref *ref = &r->all[p[i].which];
		uint32_t left = ref->len > depth ? ref->len - depth : 0;
		uint64_t window = 0;

		if (i + 2 * AHEAD < n)
			__builtin_prefetch(&r->all[p[i + 2 * AHEAD].which]);
		if (i + AHEAD < n)
			__builtin_prefetch(r->all[p[i + AHEAD].which].key + depth);
		if (left >= 8)
			memcpy(&window, ref->key + depth, 8);
		else if (left)
			memcpy(&window, ref->key + depth, left);
		left = left > 8 ? MORE : left;
		p[i].left = left;
		p[i].window = window = __builtin_bswap64(window);
		first = i ? first : window;
		v.differ |= window ^ first;
		v.least = left < v.least ? left : v.least;
		v.most = left > v.most ? left : v.most;
	}
	return v;
}

/* The same, behind what they have in common. */
static struct view look_behind(const struct refs *r, struct ref_place *p, size_t n, uint32_t *depth)
{
	for (;;) {
		struct view v = look_at(r, p, n, *depth);
		uint32_t common = v.differ ? (uint32_t)__builtin_clzll(v.differ) / 8 : 8;

		if (common > v.least)
			common = v.least;
		if (common == 0 || v.most < MORE)
			return v;
		*depth += common;
	}
}

/* Their keys are alike up to depth. It calls itself at most once per eight bytes of key. */
static void sort_from(const struct refs *r, struct ref_place *p, size_t n, uint32_t depth, struct ref_place *spare)
{
	struct view v;

	if (n <= FEW) {
		sort_few(r, p, n, depth);
		return;
	}
	v = look_behind(r, p, n, &depth);
	sort_places(p, n, spare, v.differ, v.least != v.most);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && p[end].window == p[i].window && p[end].left == p[i].left; end++)
			;
		if (end - i == 1)
			continue;
		if (p[i].left == MORE)
			sort_from(r, p + i, end - i, depth + 8, spare);
		else
			by_sequence(r, p + i, end - i, spare);
	}
}

static bool make_order(struct refs *r)
{
	if (r->order_room < r->count) {
		blocks_give(r->blocks, r->order, r->order_room * sizeof *r->order);
		r->order = blocks_take(r->blocks, r->room * sizeof *r->order);
		r->order_room = r->order ? r->room : 0;
		if (!r->order)
			return false;
	}
	for (size_t i = 0; i < r->count; i++)
		r->order[i] = (struct ref_place){ .which = (uint32_t)i };
	return true;
}

bool refs_sort(struct refs *r)
{
	struct ref_place *spare = NULL;

	must(r->count <= UINT32_MAX);
	if (!make_order(r))
		return false;
	if (r->count > FEW) {
		spare = blocks_take(r->blocks, r->room * sizeof *spare);
		if (!spare)
			return false;
	}
	if (r->count)
		sort_from(r, r->order, r->count, 0, spare);
	blocks_give(r->blocks, spare, r->room * sizeof *spare);
	return true;
}

size_t refs_group(const struct refs *r, size_t from)
{
	size_t end = from + 1;

	while (end < r->count && r->order[end].left == SAME_KEY)
		end++;
	return end;
}
