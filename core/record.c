#include "core/record.h"

#include "core/event.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct record_head) == 40, "the format says so");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are written as they lie in memory");

bool part_next(const uint8_t **at, const uint8_t *end, struct part *part)
{
	size_t left = (size_t)(end - *at);
	struct part_head head;

	if (left < sizeof head)
		return false;
	memcpy(&head, *at, sizeof head);
	left -= sizeof head;
	if (left < record_pad(head.key_len) || left - record_pad(head.key_len) < record_pad(head.len))
		return false;
	part->kind = head.kind;
	part->key_len = head.key_len;
	part->len = head.len;
	part->key = (const char *)*at + sizeof head;
	part->data = *at + sizeof head + record_pad(head.key_len);
	*at += part_size(head.key_len, head.len);
	return true;
}

uint8_t *record_head(uint8_t *out, size_t len, uint64_t hash, uint64_t tag, uint64_t seq, uint8_t flags)
{
	struct record_head head = { .address_len = (uint8_t)len, .flags = flags, .tag = tag,
				    .seq = seq, .hash = hash };
	uint8_t *parts = out + record_parts_at(len);

	memcpy(out, &head, sizeof head);
	memset(parts - 8, 0, 8);
	return parts;
}

uint8_t *record_begin(uint8_t *out, const char *address, size_t len, uint64_t hash, uint64_t tag,
		      uint64_t seq, uint8_t flags)
{
	uint8_t *parts = record_head(out, len, hash, tag, seq, flags);

	memcpy(out + sizeof(struct record_head), address, len);
	return parts;
}

void record_finish(uint8_t *record, const uint8_t *end)
{
	uint32_t size = (uint32_t)(end - record);

	memcpy(record, &size, sizeof size);
}

void record_set_order(uint8_t *record, uint64_t order)
{
	memcpy(record + offsetof(struct record_head, order), &order, sizeof order);
}

bool record_next(const uint8_t **at, const uint8_t *end, const struct record_head **head,
		 const uint8_t **parts, const uint8_t **parts_end)
{
	size_t left = (size_t)(end - *at);
	const struct record_head *h = (const struct record_head *)(const void *)*at;

	if (left < sizeof *h || h->size > left || h->size % 8 || h->address_len == 0 ||
	    h->size < record_parts_at(h->address_len))
		return false;
	*head = h;
	*parts = *at + record_parts_at(h->address_len);
	*at += h->size;
	*parts_end = *at;
	return true;
}

static size_t smallest_data(uint16_t kind)
{
	switch (kind) {
	case PART_STATE:    return sizeof(struct part_state);
	case PART_CONSUMED: return sizeof(struct message_id);
	case PART_EMITTED:  return sizeof(struct part_emitted);
	case PART_IDEM:     return sizeof(struct part_idem);
	case PART_DEAD:     return sizeof(struct part_dead);
	case PART_HINT:     return 8;
	case PART_UNDEAD:   return sizeof(struct part_undead);
	case PART_EVENT:    return sizeof(struct part_event);
	case PART_VITALS:   return sizeof(struct part_vitals);
	default:            return 0;
	}
}

/* What stands between the struct and the body has to fit, too. */
bool part_data_fits(uint16_t kind, const void *data, size_t len)
{
	struct part_emitted e;
	struct part_dead d;
	struct part_vitals v;

	if (len < smallest_data(kind))
		return false;
	switch (kind) {
	case PART_EMITTED:
		memcpy(&e, data, sizeof e);
		return e.from_len <= 255 && sizeof e + record_pad(e.from_len) <= len;
	case PART_DEAD:
		memcpy(&d, data, sizeof d);
		return d.reason_len <= 4096 && sizeof d + record_pad(d.reason_len) <= len;
	case PART_TIMERS:
		return len % sizeof(struct part_timer) == 0;
	case PART_EVENT:
		return event_open(data, len, NULL);
	case PART_VITALS:
		memcpy(&v, data, sizeof v);
		return v.health <= VITALS_HEALTH_MAX && sizeof v + v.parent_len + v.reason_len + v.error_len == len;
	default:
		return true;
	}
}

static bool key_fits(const struct part *p)
{
	switch (p->kind) {
	case PART_STATE:
	case PART_TIMERS:
	case PART_CONSUMED:
	case PART_HINT:
	case PART_UNDEAD:
	case PART_EVENT:
	case PART_VITALS:
		return p->key_len == 0;
	default:
		return p->key_len >= 1 && p->key_len <= 255;
	}
}

bool parts_valid(const uint8_t *parts, const uint8_t *end)
{
	struct part p;

	while (part_next(&parts, end, &p))
		if (p.kind == 0 || p.kind >= PART_KINDS || !key_fits(&p) ||
		    !part_data_fits(p.kind, p.data, p.len))
			return false;
	return parts == end;
}
