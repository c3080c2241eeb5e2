/* tests/persist/journal_kit.h - records and journals for the tests of the journal. */
#ifndef NOH_TESTS_JOURNAL_KIT_H
#define NOH_TESTS_JOURNAL_KIT_H

#include "persist/frame.h"
#include "persist/journal.h"
#include "tests/lib/test.h"
#include "tests/persist/mem_disk.h"

#define DIR_ID 0x1234567890abcdefu
#define RING 65536u

/* A record of actor "t:1" whose state is `len` bytes made of `number`. */
static inline uint64_t record_of(struct journal *j, uint32_t ring, uint64_t number, size_t len)
{
	size_t size = record_parts_at(3) + part_size(0, sizeof(struct part_state) + len);
	uint64_t tag = journal_epoch(j);
	uint8_t *at = journal_reserve(j, ring, size), *parts;
	struct part_state state = { .version = 1 };

	must(at);
	parts = record_begin(at, "t:1", 3, 7, tag, number, 0);
	uint8_t *data = part_put(&parts, PART_STATE, NULL, 0, sizeof state + len);

	memcpy(data, &state, sizeof state);
	memset(data + sizeof state, (int)(number * 31 + 1), len);
	record_finish(at, parts);
	must((size_t)(parts - at) == size);
	return tag;
}

static inline uint64_t push(struct journal *j, uint32_t ring, uint64_t number, size_t len)
{
	must(journal_room(j, ring));
	record_of(j, ring, number, len);
	journal_push(j, ring);
	uint64_t due = journal_epoch(j);

	journal_wake(j);
	return due;
}

static inline int steps(struct journal *j)
{
	int rc;

	do
		rc = journal_step(j, true);
	while (rc == JOURNAL_BUSY);
	return rc;
}

/* What was read back: every record whole, numbers in a row from `first`. */
struct seen { uint64_t count, first, last, frame, epoch; bool wrong; };

static inline int see(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		      const uint8_t *parts, const uint8_t *parts_end)
{
	struct seen *s = arg;
	struct part p;
	const uint8_t *at = parts;

	s->wrong |= frame < s->frame || epoch < s->epoch || head->tag > epoch;
	s->wrong |= head->address_len != 3 || memcmp(record_address(head), "t:1", 3) || head->hash != 7;
	s->wrong |= s->count && head->seq != s->last + 1;
	if (s->count++ == 0)
		s->first = head->seq;
	s->last = head->seq;
	s->frame = frame;
	s->epoch = epoch;
	if (!parts_valid(parts, parts_end) || !part_next(&at, parts_end, &p) || p.kind != PART_STATE) {
		s->wrong = true;
		return NOH_OK;
	}
	for (size_t i = sizeof(struct part_state); i < p.len; i++)
		s->wrong |= ((const uint8_t *)p.data)[i] != (uint8_t)(head->seq * 31 + 1);
	return NOH_OK;
}

static inline int open_journal(struct journal **j, struct disk *d, uint32_t rings,
			       const struct journal_end *end)
{
	struct journal_options o = { .disk = d, .dir_id = DIR_ID, .rings = rings, .ring_bytes = RING,
				     .segment_bytes = 65536 };
	struct journal_end none = { 0 };

	return journal_open(j, &o, end ? end : &none);
}

static inline int recover(struct disk *d, uint64_t after, struct seen *s, struct journal_end *end)
{
	*s = (struct seen){ 0 };
	return journal_recover(d, DIR_ID, after, see, s, end);
}

#endif
