/* tests/box/kin_kit.h - a parent and children that write down who comes and goes. */
#ifndef NOH_TESTS_BOX_KIN_KIT_H
#define NOH_TESTS_BOX_KIN_KIT_H

#include "tests/box/supervise_kit.h"

/* Hooks that ran, in order: "+c:1" activated, "-c:1" deactivated. */
static struct { pthread_mutex_t lock; char text[4096]; size_t len; } trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void mark(char what, const char *address)
{
	pthread_mutex_lock(&trace.lock);
	if (trace.len + strlen(address) + 3 < sizeof trace.text)
		trace.len += (size_t)sprintf(trace.text + trace.len, "%c%s ", what, address);
	pthread_mutex_unlock(&trace.lock);
}

static inline void forget(void)
{
	pthread_mutex_lock(&trace.lock);
	trace.len = 0;
	trace.text[0] = 0;
	pthread_mutex_unlock(&trace.lock);
}

static inline bool is_traced(void *what)
{
	pthread_mutex_lock(&trace.lock);
	bool same = strcmp(trace.text, what) == 0;
	pthread_mutex_unlock(&trace.lock);
	return same;
}

static inline bool traces(const char *what)
{
	bool ok = test_wait_until(is_traced, (void *)(uintptr_t)what, SOON);

	if (!ok)
		printf("  trace is \"%s\", not \"%s\"\n", trace.text, what);
	return ok;
}

enum { SPAWN, SPAWN_AND_FAIL, PARENT, CHILDREN, DISOWN, FAIL, WATCH, UNWATCH, TOLD, TELL_ME, KEYS, QUIT, HANG };

static struct { pthread_mutex_t lock; noh_gone list[64]; uint32_t count; } told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void add_child(void *user, const char *address)
{
	strcat(strcat(user, address), " ");
}

static inline int on_activate(noh_turn *t)
{
	mark('+', noh_address(t));
	return NOH_OK;
}

static inline int on_deactivate(noh_turn *t)
{
	mark('-', noh_address(t));
	return NOH_OK;
}

static inline int count_keys(noh_turn *t)
{
	const void *key = NULL, *value;
	size_t key_len = 0, len;
	uint64_t n = 0;

	while (noh_kv_next(t, &key, &key_len, &value, &len) == NOH_OK)
		n++;
	return noh_reply(t, &n, 8);
}

static inline int on_message(noh_turn *t, const noh_msg *m)
{
	char address[256] = "", list[4096] = "";

	if (m->len && m->len < sizeof address && m->kind != TOLD)
		memcpy(address, m->body, m->len);
	switch (m->kind) {
	case SPAWN:
		EXPECT_EQ(noh_kv_put(t, "mine", 4, "x", 1), NOH_OK);
		return noh_spawn(t, address, NULL);
	case SPAWN_AND_FAIL:
		EXPECT_EQ(noh_spawn(t, address, NULL), NOH_OK);
		return NOH_EINVAL;
	case PARENT:
		return noh_reply(t, noh_parent_address(t), strlen(noh_parent_address(t)) + 1);
	case CHILDREN:
		EXPECT_EQ(noh_children(t, add_child, list), NOH_OK);
		return noh_reply(t, list, strlen(list) + 1);
	case DISOWN:
		return noh_disown(t, address);
	case FAIL:
		return fails_now() ? noh_fail(t, "told to") : NOH_OK;
	case WATCH:
		return noh_watch(t, address, TOLD);
	case UNWATCH:
		return noh_unwatch(t, address);
	case TOLD:
		EXPECT_EQ(m->len, sizeof(noh_gone));
		pthread_mutex_lock(&told.lock);
		if (told.count < 64)
			memcpy(&told.list[told.count++], m->body, sizeof(noh_gone));
		pthread_mutex_unlock(&told.lock);
		return NOH_OK;
	case KEYS:
		EXPECT_EQ(noh_kv_put(t, "\0noh\0x", 6, "x", 1), NOH_EINVAL);
		return count_keys(t);
	case QUIT:
		return noh_stop_self(t);
	case HANG:
		gate_pass();
	}
	return NOH_OK;
}

#define ACTOR(n, p) { .name = (n), .state_size = 8, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER, \
	.on_activate = on_activate, .on_message = on_message, .on_deactivate = on_deactivate, .supervision = (p) }

static const noh_supervision quick = { .base_ms = 1, .cap_ms = 2000, .restarts = 100, .restart = NOH_TRANSIENT };
static const noh_supervision fragile = { .base_ms = 1, .cap_ms = 2000, .restarts = 2, .restart = NOH_TRANSIENT, .retries = 100 };
static const noh_supervision for_all = { .strategy = NOH_ONE_FOR_ALL, .base_ms = 1, .cap_ms = 2000, .restarts = 100 };
static const noh_supervision for_rest = { .strategy = NOH_REST_FOR_ONE, .base_ms = 1, .cap_ms = 2000, .restarts = 100 };
static const noh_supervision root_policy = { .base_ms = 1, .cap_ms = 2000, .restarts = 2, .then = NOH_THEN_QUARANTINE };
static const noh_supervision hasty = { .base_ms = 1, .cap_ms = 20, .restarts = 100, .stop_ms = 50 };

static const noh_type parent = ACTOR("p", &quick), child = ACTOR("c", &quick), all = ACTOR("p", &for_all),
	rest = ACTOR("p", &for_rest), bare = ACTOR("p", NULL), weak = ACTOR("c", &fragile), top = ACTOR("top", &root_policy),
	middle = ACTOR("p", &fragile), hurried = ACTOR("c", &hasty);

static inline int ask_text(noh_box *box, const char *address, uint32_t kind, const char *body, char *answer, size_t room)
{
	answer[0] = 0;
	return noh_call(box, address, kind, body, body ? strlen(body) : 0, SOON, answer, &room);
}

static inline int tell(noh_box *box, const char *address, uint32_t kind, const char *body)
{
	char nothing[8];

	return ask_text(box, address, kind, body, nothing, sizeof nothing);
}

static inline bool has_parent(void *arg)
{
	struct kit_about *a = arg;

	return vitals_of(a->box, a->name).parent[0] != 0;
}

static inline void family(noh_box *box, const char *who, unsigned children)
{
	char address[32];

	for (unsigned i = 1; i <= children; i++) {
		snprintf(address, sizeof address, "c:%u", i);
		EXPECT_EQ(tell(box, who, SPAWN, address), NOH_OK);
		EXPECT(test_wait_until(has_parent, &(struct kit_about){ box, address, 0 }, SOON));
	}
}

#endif
