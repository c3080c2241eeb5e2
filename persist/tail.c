#include "persist/tail.h"

#include "core/address.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/must.h"
#include "noh.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 16                        /* look-ups under way at once: their lines come together */
#define SLOTS_FIRST (UINT64_C(1) << 16)
#define MENTION_MESSAGE (UINT32_C(1) << 31)
#define JAILERS 256                     /* records noted that quarantine a whole type            */

/* Where an address is mentioned: by its own record, or (MENTION_MESSAGE) as a receiver in another's. */
struct mention { uint32_t older, at; };         /* at: the record's place, in units of 8 bytes */
struct slot { uint64_t hash; uint32_t newest, used; };

struct tail {
	uint8_t        *bytes;          /* records, one after the other          */
	uint64_t        len, most;
	struct mention *mentions;       /* from 1                                */
	uint64_t        mention_count, mention_most;
	struct slot    *slots;
	uint64_t        slot_count, slots_used;
	uint64_t        seed, records;
	struct { uint64_t hash; uint32_t mention; } waiting[BATCH];
	uint32_t        wait_count;
	uint32_t        jailer_count, jailers[JAILERS];   /* places of records; the count may be above */
};

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

/* In the order of hashes, as far as places are free. */
static uint64_t place_of(const struct tail *t, uint64_t hash)
{
	return hash >> (64 - __builtin_ctzll(t->slot_count));
}

static struct slot *slot_of(const struct tail *t, uint64_t hash)
{
	uint64_t i = place_of(t, hash);

	while (t->slots[i].used && t->slots[i].hash != hash)
		i = (i + 1) & (t->slot_count - 1);
	return &t->slots[i];
}

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
			*slot_of(t, old[i].hash) = old[i];
	mem_unreserve(old, count * sizeof *old);
	return true;
}

static bool settle(struct tail *t)
{
	while (t->slots_used + BATCH > t->slot_count / 2)
		if (!grow(t))
			return false;
	for (uint32_t i = 0; i < t->wait_count; i++) {
		struct slot *s = slot_of(t, t->waiting[i].hash);

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
	__builtin_prefetch(&t->slots[place_of(t, hash)], 1);
	t->waiting[t->wait_count].hash = hash;
	t->waiting[t->wait_count++].mention = n;
	return t->wait_count < BATCH || settle(t);
}

static void note_vitals(struct tail *t, const struct part *p, uint32_t at)
{
	struct part_vitals of;

	if (!part_data_fits(PART_VITALS, p->data, p->len))
		return;
	memcpy(&of, p->data, sizeof of);
	if (!(of.flags & VITALS_WHOLE_TYPE))
		return;
	if (t->jailer_count < JAILERS)
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
	return slot_of(t, hash)->used;
}

static const struct record_head *record_at(const struct tail *t, uint32_t at, const uint8_t **parts,
					   const uint8_t **end)
{
	const uint8_t *p = t->bytes + (uint64_t)(at & ~MENTION_MESSAGE) * 8;
	const struct record_head *head;

	must(record_next(&p, t->bytes + t->len, &head, parts, end));
	return head;
}

static bool is_about(const struct record_head *h, const char *address, size_t len)
{
	return h->address_len == len && memcmp(record_address(h), address, len) == 0;
}

/* An actor being put together: pointers into the tail and into LMDB's image. */
struct whole {
	struct part  state, timers, vitals;     /* len 0: none */
	struct entry { struct part part; uint32_t order; } *entries;
	struct part *messages;
	struct message_id *consumed;
	uint32_t     entry_count, entry_room, message_count, message_room, consumed_count, consumed_room;
	bool         failed;
};

static void *more(void *list, uint32_t count, uint32_t *room, size_t size, bool *failed)
{
	uint32_t larger = *room ? *room * 2 : 8;
	void *fresh;

	if (count < *room)
		return list;
	fresh = mem_alloc(larger * size);
	if (!fresh) {
		*failed = true;
		return list;
	}
	if (count)
		memcpy(fresh, list, count * size);
	mem_free(list, *room * size);
	*room = larger;
	return fresh;
}

static void whole_part(struct whole *w, const struct part *p, const char *address, size_t len,
		       bool message_only)
{
	if (message_only != (p->kind == PART_EMITTED))
		return;
	switch (p->kind) {
	case PART_STATE:
		w->state = *p;
		break;
	case PART_TIMERS:
		w->timers = *p;
		break;
	case PART_VITALS:
		w->vitals = *p;
		break;
	case PART_PUT:
	case PART_DELETE:
		w->entries = more(w->entries, w->entry_count, &w->entry_room, sizeof *w->entries, &w->failed);
		if (!w->failed) {
			w->entries[w->entry_count] = (struct entry){ *p, w->entry_count };
			w->entry_count++;
		}
		break;
	case PART_CONSUMED:
		w->consumed = more(w->consumed, w->consumed_count, &w->consumed_room, sizeof *w->consumed,
				   &w->failed);
		if (!w->failed)
			memcpy(&w->consumed[w->consumed_count++], p->data, sizeof *w->consumed);
		break;
	case PART_EMITTED:
		if (p->key_len != len || memcmp(p->key, address, len) != 0)
			break;
		w->messages = more(w->messages, w->message_count, &w->message_room, sizeof *w->messages,
				   &w->failed);
		if (!w->failed)
			w->messages[w->message_count++] = *p;
		break;
	default:
		break;
	}
}

static void whole_free(struct whole *w)
{
	mem_free(w->entries, w->entry_room * sizeof *w->entries);
	mem_free(w->messages, w->message_room * sizeof *w->messages);
	mem_free(w->consumed, w->consumed_room * sizeof *w->consumed);
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	size_t n = x->part.key_len < y->part.key_len ? x->part.key_len : y->part.key_len;
	int c = memcmp(x->part.key, y->part.key, n);

	if (c == 0)
		c = (x->part.key_len > y->part.key_len) - (x->part.key_len < y->part.key_len);
	return c ? c : (x->order > y->order) - (x->order < y->order);
}

static int by_id(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct message_id));
}

static bool consumed(const struct whole *w, const struct part *message)
{
	struct message_id id;

	memcpy(&id, message->data, sizeof id);
	return w->consumed_count &&
	       bsearch(&id, w->consumed, w->consumed_count, sizeof id, by_id) != NULL;
}

/* In the order of each sender. */
static int by_sender(const void *a, const void *b)
{
	struct message_id x, y;

	memcpy(&x, ((const struct part *)a)->data, sizeof x);
	memcpy(&y, ((const struct part *)b)->data, sizeof y);
	if (x.sender != y.sender)
		return x.sender > y.sender ? 1 : -1;
	if (x.seq != y.seq)
		return x.seq > y.seq ? 1 : -1;
	return (x.index > y.index) - (x.index < y.index);
}

/* Of each key the last word; of the messages those that nobody consumed, once: what is folded already is
 * in LMDB and in the tail. */
static void settle_whole(struct whole *w)
{
	uint32_t kept = 0;

	if (w->entry_count)
		qsort(w->entries, w->entry_count, sizeof *w->entries, by_key);
	for (uint32_t i = 0; i < w->entry_count; i++) {
		bool last = i + 1 == w->entry_count ||
			    w->entries[i + 1].part.key_len != w->entries[i].part.key_len ||
			    memcmp(w->entries[i + 1].part.key, w->entries[i].part.key,
				   w->entries[i].part.key_len) != 0;

		if (last && w->entries[i].part.kind == PART_PUT)
			w->entries[kept++] = w->entries[i];
	}
	w->entry_count = kept;
	if (w->consumed_count)
		qsort(w->consumed, w->consumed_count, sizeof *w->consumed, by_id);
	kept = 0;
	if (w->message_count)
		qsort(w->messages, w->message_count, sizeof *w->messages, by_sender);
	for (uint32_t i = 0; i < w->message_count; i++)
		if (!consumed(w, &w->messages[i]) &&
		    (kept == 0 || by_sender(&w->messages[kept - 1], &w->messages[i]) != 0))
			w->messages[kept++] = w->messages[i];
	w->message_count = kept;
}

static void put_part(uint8_t **at, const struct part *p)
{
	void *data = part_put(at, (enum part_kind)p->kind, p->key, p->key_len, p->len);

	if (p->len)
		memcpy(data, p->data, p->len);
}

static size_t whole_size(const struct whole *w)
{
	size_t n = (w->state.len ? part_size(0, w->state.len) : 0) +
		   (w->timers.len ? part_size(0, w->timers.len) : 0) +
		   (w->vitals.len ? part_size(0, w->vitals.len) : 0);

	for (uint32_t i = 0; i < w->entry_count; i++)
		n += part_size(w->entries[i].part.key_len, w->entries[i].part.len);
	for (uint32_t i = 0; i < w->message_count; i++)
		n += part_size(w->messages[i].key_len, w->messages[i].len);
	return n;
}

static void write_whole(const struct whole *w, uint8_t *at)
{
	if (w->state.len)
		put_part(&at, &w->state);
	if (w->timers.len)
		put_part(&at, &w->timers);
	if (w->vitals.len)
		put_part(&at, &w->vitals);
	for (uint32_t i = 0; i < w->entry_count; i++)
		put_part(&at, &w->entries[i].part);
	for (uint32_t i = 0; i < w->message_count; i++)
		put_part(&at, &w->messages[i]);
}

static uint64_t seq_at(const struct tail *t, uint32_t at)
{
	const uint8_t *parts, *end;

	return record_at(t, at, &parts, &end)->seq;
}

/* An actor may have been on two workers within one frame, whose rings stand one after the other there. */
static void sort_by_seq(const struct tail *t, uint32_t *list, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t at = list[i], to = i;
		uint64_t seq = seq_at(t, at);

		for (; to > 0 && seq_at(t, list[to - 1]) > seq; to--)
			list[to] = list[to - 1];
		list[to] = at;
	}
}

/* Mentions are linked from the newest; what they say has to be applied in the order of sequences. */
static uint32_t *oldest_first(const struct tail *t, uint64_t hash, uint32_t *count)
{
	uint32_t newest = slot_of(t, hash)->newest, n = 0, *list;

	for (uint32_t m = newest; m; m = t->mentions[m].older)
		n++;
	list = mem_alloc((n + 1) * sizeof *list);
	*count = n;
	for (uint32_t m = newest; list && m; m = t->mentions[m].older)
		list[--n] = t->mentions[m].at;
	if (list)
		sort_by_seq(t, list, *count);
	return list;
}

static void apply_record(struct whole *w, const struct tail *t, uint32_t at, const char *address, size_t len,
			 uint64_t *seq)
{
	const uint8_t *parts, *end;
	const struct record_head *h = record_at(t, at, &parts, &end);
	bool message = at & MENTION_MESSAGE;
	struct part p;

	if (!message && !is_about(h, address, len))
		return;
	if (!message) {
		*seq = h->seq > *seq ? h->seq : *seq;
		if (h->flags & RECORD_GONE) {
			w->state.len = w->timers.len = w->vitals.len = 0;
			w->entry_count = 0;
		}
	}
	while (part_next(&parts, end, &p))
		whole_part(w, &p, address, len, message);
}

int tail_apply(const struct tail *t, const char *address, size_t len, uint64_t hash, struct stored *io)
{
	const uint8_t *at = io->image, *end = at + io->len;
	struct whole w = { .failed = false };
	uint32_t count, *list = oldest_first(t, hash, &count);
	uint64_t seq = io->seq;
	uint8_t *fresh = NULL;
	size_t size = 0;
	struct part p;
	int rc;

	while (at && part_next(&at, end, &p))
		whole_part(&w, &p, address, len, p.kind == PART_EMITTED);
	for (uint32_t i = 0; list && i < count; i++)
		if (i == 0 || list[i] != list[i - 1])    /* one record may send it several messages */
			apply_record(&w, t, list[i], address, len, &seq);
	if (list && !w.failed) {
		settle_whole(&w);
		size = whole_size(&w);
		fresh = mem_alloc(size);
	}
	if (fresh)
		write_whole(&w, fresh);
	rc = !fresh ? error_set(NOH_ENOMEM, "loading %.*s: out of memory", (int)len, address) :
	     size == 0 && seq == 0 ? NOH_END : NOH_OK;
	mem_free(list, (count + 1) * sizeof *list);
	whole_free(&w);
	mem_free(io->image, io->len);
	if (rc != NOH_OK) {
		mem_free(fresh, size);
		*io = (struct stored){ .image = NULL };
		return rc;
	}
	*io = (struct stored){ .image = fresh, .len = size, .seq = seq, .fresh = true,
			       .gone = size == 0 };
	if (io->gone) {
		mem_free(fresh, size);
		io->image = NULL;
	}
	return NOH_OK;
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

	for (uint32_t m = slot_of(t, hash)->newest; m; m = t->mentions[m].older) {
		const struct record_head *h = record_at(t, t->mentions[m].at, &parts, &end);

		if ((t->mentions[m].at & MENTION_MESSAGE) || !is_about(h, address, len))
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
		const struct record_head *h = record_at(t, t->mentions[m].at, &parts, &end);
		bool reborn, known = t->mentions[m].at & MENTION_MESSAGE;
		enum store_says says;

		for (uint32_t i = first; !known && i < out->count; i++)
			known = is_about(h, names_at(out, i), out->list[i].len);
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
	uint64_t at = place_of(t, from), behind = place_of(t, last) + 1;

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

	for (uint32_t m = slot_of(t, hash)->newest; m; m = t->mentions[m].older) {
		const struct record_head *h = record_at(t, t->mentions[m].at, &parts, &end);

		if ((t->mentions[m].at & MENTION_MESSAGE) || !is_about(h, address, len))
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
	for (uint32_t i = 0; i < t->jailer_count && i < JAILERS; i++) {
		const uint8_t *parts, *end;
		const struct record_head *head = record_at(t, t->jailers[i], &parts, &end);

		if (each(arg, 0, record_address(head), head->address_len) != 0)
			break;
	}
	return t->jailer_count <= JAILERS;
}
