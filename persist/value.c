/* persist/value.c - keys and values of the image, made and checked. */
#include "persist/value.h"

#include "core/event.h"
#include "noh.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(sizeof(struct value_head) == 24, "the format says so");

const char *table_name(enum table t)
{
	static const char *const names[TABLES] = { "images", "entries", "pending", "idem", "idem_age",
						   "timers", "types", "dead", "meta", "events" };

	return names[t];
}

/* The table is part of it: a row that strayed into another table does not fit. */
static uint64_t sum_of_key(enum table t, const void *key, size_t len)
{
	return XXH3_64bits_withSeed(key, len, (uint64_t)t + 1);
}

static uint64_t sum_of(uint64_t key, const uint8_t *value, size_t len)
{
	return XXH3_64bits_withSeed(value + 8, len - 8, key);
}

void value_seal(enum table t, const void *key, size_t key_len, uint8_t *value, size_t len,
		uint64_t seq)
{
	uint64_t of_key = sum_of_key(t, key, key_len);
	struct value_head head = { .seq = seq, .key_sum = (uint32_t)of_key };

	memcpy(value, &head, sizeof head);
	head.sum = sum_of(of_key, value, len);
	memcpy(value, &head.sum, sizeof head.sum);
}

bool value_open(enum table t, const void *key, size_t key_len, const void *value, size_t len,
		struct value *out)
{
	uint64_t of_key = sum_of_key(t, key, key_len);
	struct value_head head;

	if (len < sizeof head)
		return false;
	memcpy(&head, value, sizeof head);
	*out = (struct value){ head.sum, head.seq, (const uint8_t *)value + sizeof head,
			       len - sizeof head };
	return head.sum == sum_of(of_key, value, len) && head.key_sum == (uint32_t)of_key;
}

bool value_key_fits(enum table t, const void *key, size_t key_len, const void *value, size_t len)
{
	struct value_head head;

	if (len < sizeof head)
		return false;
	memcpy(&head, value, sizeof head);
	return head.key_sum == (uint32_t)sum_of_key(t, key, key_len);
}

/* Take `len` bytes from the front of the rest. */
static bool take(struct value_row *r, void *to, size_t len)
{
	if (r->rest_len < len)
		return false;
	memcpy(to, r->rest, len);
	r->rest += len;
	r->rest_len -= len;
	return true;
}

static bool take_receiver(struct value_row *r)
{
	uint64_t len;

	if (!take(r, &len, sizeof len) || len == 0 || len > 255 || r->rest_len < record_pad(len))
		return false;
	r->receiver = (const char *)r->rest;
	r->receiver_len = len;
	r->rest += record_pad(len);
	r->rest_len -= record_pad(len);
	return true;
}

bool value_row(enum table t, const void *key, size_t key_len, const void *value, size_t len,
	       struct value_row *out)
{
	struct value_parts parts;

	*out = (struct value_row){ .number = 0 };
	if (key_len == 0 || !value_open(t, key, key_len, value, len, &out->v))
		return false;
	out->rest = out->v.data;
	out->rest_len = out->v.len;
	switch (t) {
	case TABLE_IMAGES:
		return take(out, &out->image, sizeof out->image) &&
		       value_image_parts(out->rest, out->rest_len, &parts);
	case TABLE_ENTRIES:
		return memchr(key, 0, key_len) != NULL;
	case TABLE_PENDING:
		return key_len > 21 && part_data_fits(PART_EMITTED, out->rest, out->rest_len);
	case TABLE_IDEM:
		return take(out, &out->number, sizeof out->number) &&
		       out->rest_len >= sizeof(struct part_idem);
	case TABLE_IDEM_AGE:
		return key_len == 16 && out->rest_len >= 2 && out->rest_len <= VALUE_KEY_MAX;
	case TABLE_TIMERS:
		return key_len > 8 && out->rest_len == 0;
	case TABLE_TYPES:
		return key_len > 13 && take(out, &out->images, sizeof out->images) && out->rest_len == 0;
	case TABLE_EVENTS:
		return key_len == 8 && out->v.seq == key_u64(key) && event_open(out->rest, out->rest_len, NULL);
	case TABLE_DEAD:
		return key_len == 16 && take_receiver(out) && part_data_fits(PART_DEAD, out->rest, out->rest_len);
	default:
		return true;
	}
}

bool value_image_parts(const uint8_t *parts, size_t len, struct value_parts *out)
{
	const uint8_t *at = parts, *end = parts + len, *start = at;
	struct part p;

	*out = (struct value_parts){ .state_at = NULL };
	for (; part_next(&at, end, &p); start = at) {
		if (p.kind == PART_STATE && !out->state_at && !out->timers_at && !out->vitals_at && p.key_len == 0 &&
		    p.len >= sizeof(struct part_state)) {
			out->state = p;
			out->state_at = start;
		} else if (p.kind == PART_TIMERS && !out->timers_at && !out->vitals_at && p.key_len == 0 &&
			   p.len % sizeof(struct part_timer) == 0) {
			out->timers = p;
			out->timers_at = start;
		} else if (p.kind == PART_VITALS && !out->vitals_at && p.key_len == 0 &&
			   part_data_fits(PART_VITALS, p.data, p.len)) {
			out->vitals = p;
			out->vitals_at = start;
		} else {
			return false;
		}
	}
	return at == end;
}

uint64_t value_due(const struct part *timers)
{
	uint64_t due = 0;
	struct part_timer t;

	if (timers->kind != PART_TIMERS)
		return 0;
	for (size_t at = 0; at + sizeof t <= timers->len; at += sizeof t) {
		memcpy(&t, (const uint8_t *)timers->data + at, sizeof t);
		if (due == 0 || t.due_ms < due)
			due = t.due_ms ? t.due_ms : 1;
	}
	return due;
}

bool value_unwell(const struct part *vitals)
{
	struct part_vitals v;

	if (vitals->kind != PART_VITALS || vitals->len < sizeof v)
		return false;
	memcpy(&v, vitals->data, sizeof v);
	return v.health >= NOH_DEGRADED;
}

static uint8_t *put_u64(uint8_t *to, uint64_t n)
{
	n = __builtin_bswap64(n);
	memcpy(to, &n, sizeof n);
	return to + sizeof n;
}

static uint8_t *put_u32(uint8_t *to, uint32_t n)
{
	n = __builtin_bswap32(n);
	memcpy(to, &n, sizeof n);
	return to + sizeof n;
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t len)
{
	if (len)
		memcpy(to, bytes, len);
	return to + len;
}

uint64_t key_u64(const uint8_t *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof n);
	return __builtin_bswap64(n);
}

size_t key_pair(uint8_t *out, const void *address, size_t len, const void *key, size_t key_len)
{
	uint8_t *at = put_bytes(out, address, len);

	*at++ = 0;
	return (size_t)(put_bytes(at, key, key_len) - out);
}

size_t key_pending(uint8_t *out, const void *receiver, size_t len, const struct message_id *id)
{
	uint8_t *at = put_bytes(out, receiver, len);

	*at++ = 0;
	at = put_u64(at, id->sender);
	at = put_u64(at, id->seq);
	return (size_t)(put_u32(at, id->index) - out);
}

size_t key_timer(uint8_t *out, uint64_t due_ms, const void *address, size_t len)
{
	return (size_t)(put_bytes(put_u64(out, due_ms), address, len) - out);
}

size_t key_numbered(uint8_t *out, uint64_t at_ms, uint64_t number)
{
	return (size_t)(put_u64(put_u64(out, at_ms), number) - out);
}

size_t key_number(uint8_t *out, uint64_t number)
{
	return (size_t)(put_u64(out, number) - out);
}

/* The type is what stands before the colon. */
size_t key_type(uint8_t *out, const void *address, size_t len, uint32_t version, uint64_t schema)
{
	const char *colon = memchr(address, ':', len);
	uint8_t *at = put_bytes(out, address, colon ? (size_t)(colon - (const char *)address) : len);

	*at++ = 0;
	return (size_t)(put_u64(put_u32(at, version), schema) - out);
}

int key_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}
