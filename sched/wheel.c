/* sched/wheel.c - geometry.
 *
 * A time is eight bytes; level L looks at byte L. An entry hangs at the level of the highest byte
 * in which its due time differs from tick, in the slot named by that byte:
 *
 *     tick  00 00 00 00 00 12 34 56
 *     due   00 00 00 00 00 12 40 07      differs from byte 1 on: level 1, slot 0x40
 *
 * From this follows all the rest:
 * - Whatever hangs at a lower level is due before whatever hangs at a higher one, so the next thing
 *   to do is the first occupied slot of the lowest level that is not empty: a look at the bitmaps.
 * - Tick may jump to any time before that slot begins, and every entry still hangs where it should.
 * - When tick reaches the beginning of a slot of level L > 0, its entries now agree in byte L and
 *   move down. Lower levels are empty then, so no other slot is concerned. Tick stays until the
 *   slot is empty (moving), however many calls that takes.
 * - Slots of level 0 are single milliseconds. What is added late hangs at tick itself.
 * An entry moves at most once per level, and a year is in level 4.
 *
 * Lists are circular through their slot, which has an id of its own above all entries' ids: an
 * entry whose neighbours are one and the same slot is the last one there.
 */
#include "sched/wheel.h"

#include "core/mem.h"
#include "core/must.h"

#include <assert.h>
#include <string.h>

#define CHUNK_BITS 14
#define CHUNK (1u << CHUNK_BITS)
#define SLOT_IDS 0xfffff000u             /* ids from here on are slots */
#define NOT_PENDING 0xffffffffu          /* prev of an entry on the free list */

struct wheel_slot {
	uint32_t next, prev;
};

struct wheel_entry {
	uint64_t due, a, b;
	struct wheel_slot link;
};
static_assert(sizeof(struct wheel_entry) == 32, "two entries in a cache line");
static_assert(SLOT_IDS + WHEEL_LEVELS * WHEEL_SLOTS < NOT_PENDING, "slot ids fit");

static struct wheel_entry *entry(const struct wheel *w, uint32_t id)
{
	return &w->chunks[id >> CHUNK_BITS][id & (CHUNK - 1)];
}

static struct wheel_slot *link_of(struct wheel *w, uint32_t id)
{
	return id >= SLOT_IDS ? &w->slots[id - SLOT_IDS] : &entry(w, id)->link;
}

static uint32_t byte_of(uint64_t time, uint32_t level)
{
	return (uint32_t)(time >> 8 * level) & (WHEEL_SLOTS - 1);
}

static void mark(struct wheel *w, uint32_t slot, bool full)
{
	uint32_t level = slot / WHEEL_SLOTS;
	uint64_t *words = w->occupied[level], bit = UINT64_C(1) << (slot & 63);
	uint64_t *word = &words[(slot % WHEEL_SLOTS) / 64];

	*word = full ? *word | bit : *word & ~bit;
	if (words[0] | words[1] | words[2] | words[3])
		w->levels |= 1u << level;
	else
		w->levels &= ~(1u << level);
}

static bool is_occupied(const struct wheel *w, uint32_t level, uint32_t slot)
{
	return w->occupied[level][slot / 64] >> (slot & 63) & 1;
}

/* Append the entry to the list where its due time belongs. */
static void hang(struct wheel *w, uint32_t id)
{
	struct wheel_entry *e = entry(w, id);
	uint64_t due = e->due > w->tick ? e->due : w->tick;
	uint64_t differ = due ^ w->tick;
	uint32_t level = differ ? (63 - (uint32_t)__builtin_clzll(differ)) / 8 : 0;
	uint32_t slot = level * WHEEL_SLOTS + byte_of(due, level);
	struct wheel_slot *s = &w->slots[slot];

	e->link.next = SLOT_IDS + slot;
	e->link.prev = s->prev;
	link_of(w, s->prev)->next = id;
	s->prev = id;
	if (s->next == id)
		mark(w, slot, true);
}

static void take_off(struct wheel *w, uint32_t id)
{
	struct wheel_slot link = entry(w, id)->link;

	link_of(w, link.prev)->next = link.next;
	link_of(w, link.next)->prev = link.prev;
	if (link.prev == link.next && link.prev >= SLOT_IDS)
		mark(w, link.prev - SLOT_IDS, false);
}

static void release(struct wheel *w, uint32_t id)
{
	struct wheel_entry *e = entry(w, id);

	e->link.next = w->free;
	e->link.prev = NOT_PENDING;
	w->free = id;
	w->count--;
}

bool wheel_init(struct wheel *w, uint64_t now_ms)
{
	size_t bytes = sizeof *w->slots * WHEEL_LEVELS * WHEEL_SLOTS;

	memset(w, 0, sizeof *w);
	w->slots = mem_alloc(bytes);
	if (!w->slots)
		return false;
	for (uint32_t i = 0; i < WHEEL_LEVELS * WHEEL_SLOTS; i++)
		w->slots[i] = (struct wheel_slot){ SLOT_IDS + i, SLOT_IDS + i };
	w->tick = now_ms;
	w->bytes = bytes;
	w->fresh = 1;
	return true;
}

void wheel_free(struct wheel *w)
{
	for (uint32_t i = 0; i < w->chunk_count; i++)
		mem_free(w->chunks[i], sizeof(struct wheel_entry) * CHUNK);
	mem_free(w->chunks, sizeof *w->chunks * w->chunk_room);
	mem_free(w->slots, sizeof *w->slots * WHEEL_LEVELS * WHEEL_SLOTS);
	memset(w, 0, sizeof *w);
}

static bool grow_table(struct wheel *w)
{
	uint32_t room = w->chunk_room ? w->chunk_room * 2 : 16;
	struct wheel_entry **bigger = mem_alloc(sizeof *bigger * room);

	if (!bigger)
		return false;
	if (w->chunk_count)
		memcpy(bigger, w->chunks, sizeof *bigger * w->chunk_count);
	mem_free(w->chunks, sizeof *bigger * w->chunk_room);
	w->bytes += sizeof *bigger * (room - w->chunk_room);
	w->chunks = bigger;
	w->chunk_room = room;
	return true;
}

static bool grow(struct wheel *w)
{
	if (w->chunk_count == SLOT_IDS >> CHUNK_BITS)
		return false;
	if (w->chunk_count == w->chunk_room && !grow_table(w))
		return false;
	struct wheel_entry *chunk = mem_alloc(sizeof *chunk * CHUNK);

	if (!chunk)
		return false;
	w->chunks[w->chunk_count++] = chunk;
	w->bytes += sizeof *chunk * CHUNK;
	return true;
}

uint32_t wheel_add(struct wheel *w, uint64_t due_ms, uint64_t a, uint64_t b)
{
	uint32_t id = w->free;

	if (id) {
		w->free = entry(w, id)->link.next;
		if (w->free)             /* whoever released it may have it in another core's cache */
			__builtin_prefetch(entry(w, w->free), 1);
	} else {
		if (w->fresh >> CHUNK_BITS == w->chunk_count && !grow(w))
			return 0;
		id = w->fresh++;
	}
	struct wheel_entry *e = entry(w, id);

	e->due = due_ms;
	e->a = a;
	e->b = b;
	hang(w, id);
	w->count++;
	return id;
}

bool wheel_cancel(struct wheel *w, uint32_t id, uint64_t a, uint64_t b)
{
	if (id == 0 || id >= w->fresh)
		return false;
	struct wheel_entry *e = entry(w, id);

	if (e->link.prev == NOT_PENDING || e->a != a || e->b != b)
		return false;
	take_off(w, id);
	release(w, id);
	return true;
}

/* The level of the next slot that has something in it, and when that slot begins. */
static uint32_t next_slot(const struct wheel *w, uint64_t *begin)
{
	uint32_t level = (uint32_t)__builtin_ctz(w->levels), word = 0;

	while (!w->occupied[level][word])
		word++;
	uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(w->occupied[level][word]);
	uint64_t high = w->tick >> 8 * level & ~UINT64_C(0xff);

	*begin = (high | slot) << 8 * level;
	must_debug(*begin >= w->tick);
	return level;
}

/* Step to the next time with something to do. False if there is none up to now_ms. */
static bool step(struct wheel *w, uint64_t now_ms)
{
	uint64_t begin = UINT64_MAX;
	uint32_t level = w->levels ? next_slot(w, &begin) : 0;

	if (!w->levels || begin > now_ms) {
		w->tick = now_ms;
		return false;
	}
	w->tick = begin;
	w->moving = level;
	return true;
}

static void move_one(struct wheel *w)
{
	uint32_t id = w->slots[w->moving * WHEEL_SLOTS + byte_of(w->tick, w->moving)].next;

	take_off(w, id);
	hang(w, id);
}

static void fire_one(struct wheel *w, wheel_fire_fn *fire, void *ctx)
{
	uint32_t id = w->slots[byte_of(w->tick, 0)].next;
	struct wheel_entry e = *entry(w, id);

	must(e.due <= w->tick);
	take_off(w, id);
	release(w, id);                  /* before fire: it may add, and reuse the id */
	fire(ctx, e.a, e.b, e.due);
}

uint32_t wheel_advance(struct wheel *w, uint64_t now_ms, uint32_t max_work, wheel_fire_fn *fire,
		       void *ctx)
{
	uint32_t work = 0;

	if (now_ms < w->tick)
		return 0;
	while (work < max_work) {
		if (w->moving && !is_occupied(w, w->moving, byte_of(w->tick, w->moving)))
			w->moving = 0;
		if (w->moving)
			move_one(w);
		else if (is_occupied(w, 0, byte_of(w->tick, 0)))
			fire_one(w, fire, ctx);
		else if (step(w, now_ms))
			continue;
		else
			break;
		work++;
	}
	return work;
}

uint64_t wheel_next_ms(const struct wheel *w)
{
	uint64_t begin;

	if (!w->levels)
		return UINT64_MAX;
	if (w->moving && is_occupied(w, w->moving, byte_of(w->tick, w->moving)))
		return w->tick;
	next_slot(w, &begin);
	return begin;
}
