/* tests/fuzz/value_fuzz.c - any bytes as a row of the image: opened only if they were sealed with this
 * key, then taken apart without a step outside; one bit less and they are refused.
 * Input: table, length of the key, key, value. */
#include "persist/value.h"

#include "core/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void inside(const void *at, size_t len, const uint8_t *value, size_t value_len)
{
	const uint8_t *p = at;

	must(p >= value && p <= value + value_len && (size_t)(value + value_len - p) >= len);
}

static void look_at(enum table t, const uint8_t *key, size_t key_len, const uint8_t *value, size_t len)
{
	struct value_parts parts;
	struct value_row row;

	if (!value_row(t, key, key_len, value, len, &row))
		return;
	inside(row.rest, row.rest_len, value, len);
	if (t == TABLE_IMAGES) {
		must(value_image_parts(row.rest, row.rest_len, &parts));
		must(value_due(&parts.timers) == 0 || parts.timers_at);
		if (parts.state_at)
			inside(parts.state.data, sizeof(struct part_state), value, len);
	}
	if (t == TABLE_DEAD)
		inside(row.receiver, row.receiver_len, value, len);
	if (t == TABLE_PENDING)
		must(row.rest_len >= sizeof(struct part_emitted));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	enum table t = data[0] % TABLES;
	size_t key_len = data[1] < len - 2 ? data[1] : len - 2, value_len = len - 2 - key_len;
	uint8_t *key = malloc(key_len ? key_len : 1);    /* exactly as long: one byte too far is seen */
	uint8_t *value = malloc(value_len ? value_len : 1);
	struct value v;

	must(key && value);
	memcpy(key, data + 2, key_len);
	memcpy(value, data + 2 + key_len, value_len);
	look_at(t, key, key_len, value, value_len);
	if (value_len >= sizeof(struct value_head)) {
		value_seal(t, key, key_len, value, value_len, 7);
		must(value_open(t, key, key_len, value, value_len, &v) && v.seq == 7);
		must(value_key_fits(t, key, key_len, value, value_len));
		look_at(t, key, key_len, value, value_len);
		value[data[0] % value_len] ^= 1;
		must(!value_open(t, key, key_len, value, value_len, &v));
	}
	free(key);
	free(value);
	return 0;
}
