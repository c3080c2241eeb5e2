/* tests/sim/persist_records.c - turns of a story as records (core/record.h). */
#include "tests/sim/persist_world_in.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

const char *world_address_of(uint32_t actor)
{
	static const char *const names[ACTORS] = { "a:1", "a:2", "b:1", "b:11", "c:long/er-name", "z:z" };

	return names[actor];
}

static uint64_t hash_of(uint32_t actor)
{
	return XXH3_64bits(world_address_of(actor), strlen(world_address_of(actor)));
}

struct message_id world_id_of(const struct world *w, const struct msg *m)
{
	const struct rec *r = &w->recs[m->by];

	return (struct message_id){ .sender = hash_of(r->actor), .seq = r->seq, .index = m->index };
}

void world_fill_state(uint8_t *out, const struct state *s)
{
	uint64_t random = s->value;

	for (uint32_t i = 0; i < s->len; i++)
		out[i] = (uint8_t)(i % 128 ? i : test_random(&random));
	memcpy(out, &s->value, sizeof s->value);
	memcpy(out + 4, &s->len, sizeof s->len);
}

static uint8_t *put_state(uint8_t *at, const struct state *s)
{
	struct part_state head = { .version = 1, .schema = 7 };
	uint8_t *data = part_put(&at, PART_STATE, NULL, 0, sizeof head + s->len);

	memcpy(data, &head, sizeof head);
	world_fill_state(data + sizeof head, s);
	return at;
}

static uint8_t *put_message(struct world *w, uint8_t *at, const struct msg *m)
{
	struct part_emitted head = { .id = world_id_of(w, m), .tag = w->recs[m->by].tag, .kind = 3 };
	uint32_t number = (uint32_t)(m - w->msgs);
	const char *to = world_address_of(m->to);
	uint8_t *data = part_put(&at, PART_EMITTED, to, strlen(to), sizeof head + sizeof number);

	memcpy(data, &head, sizeof head);
	memcpy(data + sizeof head, &number, sizeof number);
	return at;
}

static uint8_t *put_idem(uint8_t *at, uint32_t number)
{
	struct part_idem head = { .at_ms = NOW_MS, .body_hash = number };
	char key[16];
	int len = snprintf(key, sizeof key, "k%u", number);
	uint8_t *data = part_put(&at, PART_IDEM, key, (size_t)len, sizeof head + sizeof number);

	memcpy(data, &head, sizeof head);
	memcpy(data + sizeof head, &number, sizeof number);
	return at;
}

/* The turn's record as bytes. What changed in the entries is what differs from before. */
size_t world_build(struct world *w, uint32_t number, const struct state *before, bool erased,
		    uint32_t first_msg, uint8_t *out)
{
	const struct rec *r = &w->recs[number];
	const char *address = world_address_of(r->actor);
	uint8_t *at = record_begin(out, address, strlen(address), hash_of(r->actor), r->tag, r->seq,
				   erased ? RECORD_GONE : 0);

	if (r->after.len)
		at = put_state(at, &r->after);
	for (uint32_t k = 0; k < KEYS; k++) {
		char key[8];
		int len = snprintf(key, sizeof key, "e%u", k);
		uint32_t was = erased ? 0 : before->key[k];

		if (r->after.key[k] == was)
			continue;
		if (r->after.key[k] == 0)
			part_put(&at, PART_DELETE, key, (size_t)len, 0);
		else
			memcpy(part_put(&at, PART_PUT, key, (size_t)len, 4), &r->after.key[k], 4);
	}
	if (r->consumes != NONE) {
		struct message_id id = world_id_of(w, &w->msgs[r->consumes]);

		memcpy(part_put(&at, PART_CONSUMED, NULL, 0, sizeof id), &id, sizeof id);
	}
	for (uint32_t m = first_msg; m < w->msg_count; m++)
		at = put_message(w, at, &w->msgs[m]);
	at = put_idem(at, number);
	record_finish(out, at);
	return (size_t)(at - out);
}
