/* persist/tail.c - the tail is built, and looked through by hash (tail_apply.c puts an actor together). */
#include "persist/tail_in.h"

#include "core/address.h"
#include "core/error.h"
#include "core/mem.h"
#include "noh.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST (UINT64_C(1) << 16)
int tail_open(struct tail **out, uint64_t seed, uint64_t most)
{
	struct tail *t = mem_zalloc(sizeof *t);

	*out = t;
	if (!t)
		return error_set(NOH_ENOMEM, "no memory for the journal's tail");
	t->seed = seed;
	t->most = most;
	t->mention_most = most / 32;
	t->slot_count = SLOTS_FIRST;
	t->bytes = mem_reserve(t->most);
	t->mentions = mem_reserve(t->mention_most * sizeof *t->mentions);
	t->slots = mem_reserve(t->slot_count * sizeof *t->slots);
	if (t->bytes && t->mentions && t->slots)
		return NOH_OK;
	tail_close(t);
	*out = NULL;
	return error_set(NOH_ENOMEM, "no address space for the journal's tail (%llu bytes)",
			 (unsigned long long)most);
}

uint64_t tail_records(const struct tail *t) { return t->records; }
uint64_t tail_bytes(const struct tail *t)
{
	return t->len + t->mention_count * sizeof *t->mentions + t->slot_count * sizeof *t->slots;
}

void tail_close(struct tail *t)
{
	if (!t)
		return;
	if (t->bytes)
		mem_unreserve(t->bytes, t->most);
	if (t->mentions)
		mem_unreserve(t->mentions, t->mention_most * sizeof *t->mentions);
	if (t->slots)
		mem_unreserve(t->slots, t->slot_count * sizeof *t->slots);
	mem_free(t, sizeof *t);
}

/* ── building ── */

static bool grow(struct tail *t)
{
	struct slot *old = t->slots;
	uint64_t count = t->slot_count;
	struct slot *bigger = mem_reserve(4 * count * sizeof *bigger);

	if (!bigger)
		return false;
	t->slots = bigger;
	t->slot_count = 4 * count;
	for (uint64_t i = 0; i < count; i++)
		if (old[i].used)
			*tail_slot(t, old[i].hash) = old[i];
	mem_unreserve(old, count * sizeof *old);
	return true;
}

static bool settle(struct tail *t)
{
	while (t->slots_used + TAIL_BATCH > t->slot_count / 2)
		if (!grow(t))
			return false;
	for (uint32_t i = 0; i < t->wait_count; i++) {
		struct slot *s = tail_slot(t, t->waiting[i].hash);

		if (!s->used) {
			*s = (struct slot){ .hash = t->waiting[i].hash, .used = 1 };
			t->slots_used++;
		}
		t->mentions[t->waiting[i].mention].older = s->newest;
		s->newest = t->waiting[i].mention;
	}
	t->wait_count = 0;
	return true;
}

static bool mention(struct tail *t, uint64_t hash, uint32_t at)
{
	uint32_t n = (uint32_t)++t->mention_count;

	if (t->mention_count >= t->mention_most || t->mention_count >= UINT32_MAX)
		return false;
	t->mentions[n].at = at;
	__builtin_prefetch(&t->slots[tail_place(t, hash)], 1);
	t->waiting[t->wait_count].hash = hash;
	t->waiting[t->wait_count++].mention = n;
	return t->wait_count < TAIL_BATCH || settle(t);
}

static void note_vitals(struct tail *t, const struct part *p, uint32_t at)
{
	struct part_vitals of;

	if (!part_data_fits(PART_VITALS, p->data, p->len))
		return;
	memcpy(&of, p->data, sizeof of);
	if (!(of.flags & VITALS_WHOLE_TYPE))
		return;
	if (t->jailer_count < TAIL_JAILERS)
		t->jailers[t->jailer_count] = at;
	t->jailer_count++;
}

static bool mention_parts(struct tail *t, const uint8_t *parts, const uint8_t *end, uint32_t at)
{
	struct part p;

	while (part_next(&parts, end, &p)) {
		if (p.kind == PART_VITALS)
			note_vitals(t, &p, at);
		if (p.kind == PART_EMITTED &&
		    !mention(t, address_hash_text(p.key, p.key_len, t->seed), at | MENTION_MESSAGE))
			return false;
	}
	return true;
}

int tail_record(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		const uint8_t *parts, const uint8_t *parts_end)
{
	struct tail *t = arg;
	uint32_t at = (uint32_t)(t->len / 8);

	(void)epoch;
	if (!parts_valid(parts, parts_end))
		return error_set(NOH_ECORRUPT, "a record of %.*s in frame %llu makes no sense though its checksum "
				 "is right: restore a backup", head->address_len, record_address(head),
				 (unsigned long long)frame);
	if (head->flags & RECORD_NOTICE)
		return NOH_OK;                   /* about no actor */
	if (t->len + head->size > t->most || at >= MENTION_MESSAGE)
		return error_set(NOH_ENOMEM, "the journal's tail is larger than the journal may be");
	memcpy(t->bytes + t->len, head, head->size);
	t->len += head->size;
	t->records++;
	if (!mention(t, head->hash, at) || !mention_parts(t, parts, parts_end, at))
		return error_set(NOH_ENOMEM, "no memory for the journal's tail");
	return NOH_OK;
}

void tail_done(struct tail *t)
{
	must(settle(t) || t->wait_count == 0);
}

/* ── reading ── */

bool tail_has(const struct tail *t, uint64_t hash)
{
	return tail_slot(t, hash)->used;
}

/* ── for scans ── */

static bool keeps_something(const uint8_t *parts, const uint8_t *end)
{
	struct part p;

	while (part_next(&parts, end, &p))
		if (p.kind == PART_STATE || p.kind == PART_PUT || p.kind == PART_VITALS || (p.kind == PART_TIMERS && p.len))
			return true;
	return false;
}

enum store_says tail_says(const struct tail *t, const char *address, size_t len, uint64_t hash, bool *reborn)
{
	uint64_t erased = 0, kept = 0;           /* sequences: the last erasure, the last that left something */
	const uint8_t *parts, *end;

	for (uint32_t m = tail_slot(t, hash)->newest; m; m = t->mentions[m].older) {
		const struct record_head *h = tail_record_at(t, t->mentions[m].at, &parts, &end);

		if ((t->mentions[m].at & MENTION_MESSAGE) || !tail_is_about(h, address, len))
			continue;
		if ((h->flags & RECORD_GONE) && h->seq > erased)
			erased = h->seq;
		if (h->seq > kept && keeps_something(parts, end))
			kept = h->seq;
	}
	*reborn = erased && kept >= erased;
	return kept && kept >= erased ? STORE_THERE : erased ? STORE_GONE : STORE_NOTHING;
}

/* The addresses of one hash: one, as good as always. */
static bool list_slot(const struct tail *t, const struct slot *s, struct names *out)
{
	uint32_t first = out->count;
	const uint8_t *parts, *end;

	for (uint32_t m = s->newest; m; m = t->mentions[m].older) {
		const struct record_head *h = tail_record_at(t, t->mentions[m].at, &parts, &end);
		bool reborn, known = t->mentions[m].at & MENTION_MESSAGE;
		enum store_says says;

		for (uint32_t i = first; !known && i < out->count; i++)
			known = tail_is_about(h, names_at(out, i), out->list[i].len);
		if (known)
			continue;
		says = tail_says(t, record_address(h), h->address_len, s->hash, &reborn);
		if (!names_room(out, 1))
			return false;
		if (says != STORE_NOTHING)
			names_put(out, record_address(h), h->address_len, (struct name){
				.hash = s->hash, .from = 2, .flags = (uint16_t)
				((says == STORE_THERE ? NAME_THERE : 0) | (reborn ? NAME_REBORN : 0)) });
	}
	return true;
}

/* Whoever found his place taken stands behind it, before the next free one. */
bool tail_window(const struct tail *t, uint64_t from, uint64_t last, struct names *out)
{
	uint64_t at = tail_place(t, from), behind = tail_place(t, last) + 1;

	for (uint64_t i = at; i < behind || t->slots[i & (t->slot_count - 1)].used; i++) {
		const struct slot *s = &t->slots[i & (t->slot_count - 1)];

		if (s->used && s->hash >= from && s->hash <= last && !list_slot(t, s, out))
			return false;
	}
	return true;
}

uint64_t tail_actors(const struct tail *t)
{
	return t->slots_used;
}

int tail_idem(const struct tail *t, const char *address, size_t len, uint64_t hash, const void *key,
	      size_t key_len, void **part, size_t *part_len)
{
	const uint8_t *parts, *end;
	struct part p;

	for (uint32_t m = tail_slot(t, hash)->newest; m; m = t->mentions[m].older) {
		const struct record_head *h = tail_record_at(t, t->mentions[m].at, &parts, &end);

		if ((t->mentions[m].at & MENTION_MESSAGE) || !tail_is_about(h, address, len))
			continue;
		while (part_next(&parts, end, &p)) {
			if (p.kind != PART_IDEM || p.key_len != key_len || memcmp(p.key, key, key_len) != 0)
				continue;
			*part = mem_alloc(p.len);
			if (!*part)
				return NOH_ENOMEM;
			memcpy(*part, p.data, p.len);
			*part_len = p.len;
			return NOH_OK;
		}
	}
	return NOH_END;
}

static uint64_t earliest(const struct part *p)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < p->len / sizeof(struct part_timer); i++) {
		struct part_timer timer;

		memcpy(&timer, (const uint8_t *)p->data + i * sizeof timer, sizeof timer);
		first = timer.due_ms < first ? timer.due_ms : first;
	}
	return first;
}

void tail_wakes(const struct tail *t, tail_wake_fn *each, void *arg)
{
	const uint8_t *at = t->bytes, *parts, *end;
	const struct record_head *h;
	struct part p;

	while (record_next(&at, t->bytes + t->len, &h, &parts, &end))
		while (part_next(&parts, end, &p))
			if ((p.kind == PART_EMITTED && each(arg, 0, p.key, p.key_len)) ||
			    (p.kind == PART_TIMERS && p.len &&
			     each(arg, earliest(&p), record_address(h), h->address_len)))
				return;
}

bool tail_jailers(const struct tail *t, tail_wake_fn *each, void *arg)
{
	for (uint32_t i = 0; i < t->jailer_count && i < TAIL_JAILERS; i++) {
		const uint8_t *parts, *end;
		const struct record_head *head = tail_record_at(t, t->jailers[i], &parts, &end);

		if (each(arg, 0, record_address(head), head->address_len) != 0)
			break;
	}
	return t->jailer_count <= TAIL_JAILERS;
}
