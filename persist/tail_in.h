/* persist/tail_in.h - a tail from the inside: built and looked through by tail.c, put together by tail_apply.c.
 *
 * Owns     what tail.h says.   Threads  as there.
 */
#ifndef NOH_PERSIST_TAIL_IN_H
#define NOH_PERSIST_TAIL_IN_H

#include "core/must.h"
#include "persist/tail.h"

#include <string.h>

#define TAIL_BATCH 16                        /* look-ups under way at once: their lines come together */
#define TAIL_JAILERS 256                     /* records noted that quarantine a whole type            */
#define MENTION_MESSAGE (UINT32_C(1) << 31)

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
	struct { uint64_t hash; uint32_t mention; } waiting[TAIL_BATCH];
	uint32_t        wait_count;
	uint32_t        jailer_count, jailers[TAIL_JAILERS];   /* places of records; the count may be above */
};

/* In the order of hashes, as far as places are free. */
static inline uint64_t tail_place(const struct tail *t, uint64_t hash)
{
	return hash >> (64 - __builtin_ctzll(t->slot_count));
}

static inline struct slot *tail_slot(const struct tail *t, uint64_t hash)
{
	uint64_t i = tail_place(t, hash);

	while (t->slots[i].used && t->slots[i].hash != hash)
		i = (i + 1) & (t->slot_count - 1);
	return &t->slots[i];
}

static inline const struct record_head *tail_record_at(const struct tail *t, uint32_t at, const uint8_t **parts,
						       const uint8_t **end)
{
	const uint8_t *p = t->bytes + (uint64_t)(at & ~MENTION_MESSAGE) * 8;
	const struct record_head *head;

	must(record_next(&p, t->bytes + t->len, &head, parts, end));
	return head;
}

static inline bool tail_is_about(const struct record_head *h, const char *address, size_t len)
{
	return h->address_len == len && memcmp(record_address(h), address, len) == 0;
}

#endif
