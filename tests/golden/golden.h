/* tests/golden/golden.h - the actors of the golden data directories: what make.c stores and
 * tests/box/golden_test.c expects. Once a directory is kept, nothing here may change. */
#ifndef NOH_TESTS_GOLDEN_GOLDEN_H
#define NOH_TESTS_GOLDEN_GOLDEN_H

#include "noh.h"

#include <string.h>
#include <unistd.h>

enum { GOLD_ADD, GOLD_GET, GOLD_PUT, GOLD_REMOVE, GOLD_LOOK, GOLD_ONCE, GOLD_EVERY, GOLD_TICK, GOLD_BEAT, GOLD_SEND,
       GOLD_ERASE };

#define GOLD_SCHEMA UINT64_C(0x676f6c64)
#define GOLD_VALUE  "the value of an entry, long enough to be no number"

/* A receiver that does not come back while `stuck` is set: what it was sent stays pending. */
struct gold_world { volatile bool stuck, reached; };

static inline int gold_entry(noh_turn *t, const noh_msg *m)
{
	const void *value;
	size_t len;

	if (m->kind == GOLD_PUT)
		return noh_kv_put(t, m->body, m->len, GOLD_VALUE, sizeof GOLD_VALUE);
	if (m->kind == GOLD_REMOVE)
		return noh_kv_delete(t, m->body, m->len);
	if (noh_kv_get(t, m->body, m->len, &value, &len) != NOH_OK)
		return NOH_OK;
	return noh_reply(t, value, len);
}

static inline int gold_message(noh_turn *t, const noh_msg *m)
{
	struct gold_world *world = noh_user(t);
	int64_t n = 0;

	if (m->kind == GOLD_PUT || m->kind == GOLD_REMOVE || m->kind == GOLD_LOOK)
		return gold_entry(t, m);
	if (m->len >= sizeof n)
		memcpy(&n, m->body, sizeof n);
	switch (m->kind) {
	case GOLD_ADD:
		while (world->stuck && strcmp(noh_id(t), "stuck") == 0) {
			world->reached = true;
			usleep(1000);
		}
		*(int64_t *)noh_state(t) += n;
		return noh_reply(t, noh_look(t), 8);
	case GOLD_GET:
		return noh_reply(t, noh_look(t), 8);
	case GOLD_ONCE:
		return noh_schedule_once(t, GOLD_TICK, (uint64_t)n);
	case GOLD_EVERY:
		return noh_schedule_every(t, GOLD_BEAT, (uint64_t)n);
	case GOLD_TICK:
		*(int64_t *)noh_state(t) += 1000;
		return NOH_OK;
	case GOLD_BEAT:
		*(int64_t *)noh_state(t) += 1;
		return NOH_OK;
	case GOLD_SEND:
		*(int64_t *)noh_state(t) -= n;
		return noh_tell_to(t, "gold:stuck", GOLD_ADD, &n, sizeof n);
	case GOLD_ERASE:
		return noh_erase(t);
	}
	return NOH_EINVAL;
}

static inline noh_type gold_type(struct gold_world *world)
{
	return (noh_type){ .name = "gold", .state_size = 8, .on_message = gold_message, .user = world,
			   .full_mode = NOH_BLOCK, .schema = GOLD_SCHEMA };
}

#endif
