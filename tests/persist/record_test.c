/* tests/persist/record_test.c - what is written is read back; what is damaged is never walked past its
 * end. */
#include "core/record.h"

#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

static uint64_t room[512];
static uint8_t *const bytes = (uint8_t *)room;

static uint8_t *put_record(uint8_t *at, const char *address, uint64_t seq, uint8_t flags)
{
	uint8_t *parts = record_begin(at, address, strlen(address), 11, 22, seq, flags);
	struct part_state state = { .version = 3, .schema = 4 };
	struct part_timer timer = { .due_ms = 5, .kind = 6 };
	struct message_id id = { 1, 2, 3, 0 };

	memcpy(part_put(&parts, PART_STATE, NULL, 0, sizeof state), &state, sizeof state);
	memcpy(part_put(&parts, PART_TIMERS, NULL, 0, sizeof timer), &timer, sizeof timer);
	memcpy(part_put(&parts, PART_PUT, "key", 3, 5), "value", 5);
	(void)part_put(&parts, PART_DELETE, "other", 5, 0);
	memcpy(part_put(&parts, PART_CONSUMED, NULL, 0, sizeof id), &id, sizeof id);
	record_finish(at, parts);
	return parts;
}

static void a_record_is_read_back_as_written(void)
{
	const uint8_t *at = bytes, *parts, *parts_end;
	const struct record_head *head;
	struct part p;
	uint8_t *end;

	memset(room, 0xff, sizeof room);
	end = put_record(bytes, "cart:1", 7, RECORD_GONE);
	end = put_record(end, "c:12345678", 8, 0);
	EXPECT(record_next(&at, end, &head, &parts, &parts_end));
	EXPECT(head->address_len == 6 && !memcmp(record_address(head), "cart:1", 6));
	EXPECT(head->hash == 11 && head->tag == 22 && head->seq == 7 && head->flags == RECORD_GONE);
	EXPECT(parts_valid(parts, parts_end));
	EXPECT(part_next(&parts, parts_end, &p) && p.kind == PART_STATE);
	EXPECT_EQ(((const struct part_state *)p.data)->schema, 4);
	EXPECT(part_next(&parts, parts_end, &p) && p.kind == PART_TIMERS);
	EXPECT(part_next(&parts, parts_end, &p) && p.kind == PART_PUT && p.key_len == 3 && p.len == 5);
	EXPECT(!memcmp(p.key, "key\0\0\0\0\0", 8));            /* padded with zeros */
	EXPECT(!memcmp(p.data, "value\0\0\0", 8));
	EXPECT(part_next(&parts, parts_end, &p) && p.kind == PART_DELETE && p.len == 0);
	EXPECT(part_next(&parts, parts_end, &p) && p.kind == PART_CONSUMED);
	EXPECT(!part_next(&parts, parts_end, &p) && parts == parts_end);
	EXPECT(record_next(&at, end, &head, &parts, &parts_end) && head->seq == 8);
	EXPECT(!record_next(&at, end, &head, &parts, &parts_end) && at == end);
}

static void parts_of_the_wrong_shape_are_not_valid(void)
{
	uint8_t *at = bytes;

	(void)part_put(&at, PART_STATE, NULL, 0, sizeof(struct part_state) - 1);
	EXPECT(!parts_valid(bytes, at));                /* shorter than its struct */
	at = bytes;
	(void)part_put(&at, PART_PUT, NULL, 0, 4);
	EXPECT(!parts_valid(bytes, at));                /* an entry without a key */
	at = bytes;
	(void)part_put(&at, PART_STATE, "key", 3, sizeof(struct part_state));
	EXPECT(!parts_valid(bytes, at));                /* a key where none belongs */
	at = bytes;
	(void)part_put(&at, PART_TIMERS, NULL, 0, sizeof(struct part_timer) + 1);
	EXPECT(!parts_valid(bytes, at));                /* one timer and a bit */
	at = bytes;
	(void)part_put(&at, PART_KINDS, "key", 3, 4);
	EXPECT(!parts_valid(bytes, at));                /* a kind nobody knows */
	at = bytes;
	struct part_vitals *v = part_put(&at, PART_VITALS, NULL, 0, sizeof *v + 5);

	*v = (struct part_vitals){ .health = VITALS_HEALTH_MAX, .parent_len = 3, .error_len = 2 };
	EXPECT(parts_valid(bytes, at));
	v->health++;
	EXPECT(!parts_valid(bytes, at));                /* a health nobody knows */
	v->health = 0;
	v->reason_len = 1;
	EXPECT(!parts_valid(bytes, at));                /* texts beyond its end */
	EXPECT(parts_valid(bytes, bytes));              /* nothing is fine */
}

/* A copy on the heap, exactly as long: a sanitizer sees one byte too far. */
static void walk_copy(const uint8_t *from, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	const uint8_t *at = copy, *parts, *parts_end;
	const struct record_head *head;
	struct part p;
	uint64_t sum = 0;

	memcpy(copy, from, len);
	while (record_next(&at, copy + len, &head, &parts, &parts_end)) {
		for (unsigned i = 0; i < head->address_len; i++)
			sum += (uint8_t)record_address(head)[i];
		(void)parts_valid(parts, parts_end);
		while (part_next(&parts, parts_end, &p)) {
			for (unsigned i = 0; i < p.key_len; i++)
				sum += (uint8_t)p.key[i];
			for (unsigned i = 0; i < p.len; i++)
				sum += ((const uint8_t *)p.data)[i];
		}
		EXPECT(parts <= parts_end && parts_end == at);
	}
	EXPECT(at <= copy + len && sum < UINT64_MAX);
	free(copy);
}

static void damaged_bytes_are_never_walked_past_their_end(void)
{
	uint8_t *end = put_record(bytes, "cart:1", 7, 0);
	size_t len = (size_t)(end - bytes);
	uint64_t rng = test_seed;

	for (size_t cut = 0; cut <= len; cut++)
		walk_copy(bytes, cut);
	for (size_t bit = 0; bit < len * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		walk_copy(bytes, len);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (int i = 0; i < 2000; i++) {
		put_record(bytes, "cart:1", 7, 0);
		for (int k = 0; k < 4; k++)
			bytes[test_random(&rng) % len] = (uint8_t)test_random(&rng);
		walk_copy(bytes, len);
	}
}

TEST_MAIN(
	TEST(a_record_is_read_back_as_written, "MB-12"),
	TEST(parts_of_the_wrong_shape_are_not_valid),
	TEST(damaged_bytes_are_never_walked_past_their_end))
