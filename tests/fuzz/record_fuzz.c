/* tests/fuzz/record_fuzz.c - any bytes as records: walked without a step outside; what is valid is made
 * of parts that encode to the very same bytes, up to padding. */
#include "core/record.h"

#include "core/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void inside(const void *at, size_t len, const uint8_t *from, const uint8_t *end)
{
	const uint8_t *p = at;

	must(p >= from && p <= end && (size_t)(end - p) >= len);
}

static void walk_parts(const uint8_t *from, const uint8_t *end)
{
	const uint8_t *at = from, *start = from;
	bool valid = parts_valid(from, end);
	struct part p;

	for (; part_next(&at, end, &p); start = at) {
		inside(p.key, p.key_len, from, end);
		inside(p.data, p.len, from, end);
		must((size_t)(at - start) == part_size(p.key_len, p.len));
		if (!valid)
			continue;
		must(p.kind >= PART_STATE && p.kind < PART_KINDS);
		must(p.kind != PART_EMITTED || p.len >= sizeof(struct part_emitted));
		must(p.kind != PART_TIMERS || p.len % sizeof(struct part_timer) == 0);
		uint8_t *copy = malloc((size_t)(at - start)), *to = copy;

		must(copy);
		memcpy(part_put(&to, (enum part_kind)p.kind, p.key, p.key_len, p.len), p.data, p.len);
		must(to - copy == at - start);
		must(memcmp(copy, start, sizeof(struct part_head) + p.key_len) == 0);
		free(copy);
	}
	must(!valid || at == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *bytes = malloc(len ? len : 1);  /* exactly as long, and aligned */
	const uint8_t *at = bytes, *end, *parts, *parts_end;
	const struct record_head *head;

	must(bytes);
	if (len)
		memcpy(bytes, data, len);
	end = bytes + len;
	walk_parts(bytes, end);
	while (record_next(&at, end, &head, &parts, &parts_end)) {
		must(head->address_len > 0 && head->size % 8 == 0);
		inside(record_address(head), head->address_len, bytes, end);
		inside(parts, (size_t)(parts_end - parts), bytes, end);
		must(parts_end == at);
		walk_parts(parts, parts_end);
	}
	must(at <= end);
	free(bytes);
	return 0;
}
