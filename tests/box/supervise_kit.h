/* tests/box/supervise_kit.h - a worker that fails when told to, and questions about how it is. */
#ifndef NOH_TESTS_BOX_SUPERVISE_KIT_H
#define NOH_TESTS_BOX_SUPERVISE_KIT_H

#include "tests/box/durable_kit.h"
#include "tests/box/kit.h"

#include <signal.h>

struct worker_state { uint64_t sum, activations, list; };

enum { ADD, GET, ACTIVATIONS, LIST, FLAKY, POISON, LATE, REVISION, STOP, APPLY, SEND_ADD, KILL, KINDS };

static atomic_u64 failures_left;           /* so many FLAKY messages, and activations if fail_activate, fail */
static atomic_u32 fail_activate;

static inline bool fails_now(void)
{
	uint64_t left = load_relaxed(&failures_left);

	while (left && !cas_acq_rel(&failures_left, &left, left - 1))
		;
	return left != 0;
}

static inline int worker_on_activate(noh_turn *t)
{
	struct worker_state *s = noh_state(t);

	s->activations++;
	return load_relaxed(&fail_activate) && fails_now() ? noh_fail(t, "cannot begin") : NOH_OK;
}

static inline int worker_on_message(noh_turn *t, const noh_msg *m)
{
	struct worker_state *s = noh_state(t);
	uint64_t n = 0;

	if (m->len >= sizeof n)
		memcpy(&n, m->body, sizeof n);
	switch (m->kind) {
	case ADD:
		s->sum += n;
		s->list = s->list * 16 + n;
		return noh_reply(t, &s->sum, 8);
	case GET:
		return noh_reply(t, &s->sum, 8);
	case ACTIVATIONS:
		return noh_reply(t, &s->activations, 8);
	case LIST:
		return noh_reply(t, &s->list, 8);
	case FLAKY:
		s->sum += 100;                   /* undone if it fails */
		return fails_now() ? noh_fail(t, "no luck today") : noh_reply(t, &s->sum, 8);
	case POISON:
		return noh_fail(t, "I never liked %u", m->len);
	case LATE:
		s->sum += 100;
		if (fails_now())
			nap_us(60000);
		return NOH_OK;
	case REVISION:
		EXPECT_EQ(noh_set_revision(t, n, n - 1), NOH_OK);
		EXPECT_EQ(noh_set_error(t, n > 100 ? NULL : "no such host"), NOH_OK);
		return NOH_OK;
	case STOP:
		return noh_stop_self(t);
	case APPLY:
		s->sum = n;
		EXPECT_EQ(noh_set_revision(t, n, n), NOH_OK);
		return fails_now() ? noh_fail(t, "cannot apply %llu", (unsigned long long)n) : NOH_OK;
	case KILL:
		raise(SIGKILL);                  /* as a crash would, but without a core */
		return NOH_OK;
	case SEND_ADD:
		s->sum += n;
		return noh_tell_to(t, "w:one", ADD, &n, 8);
	}
	return NOH_EINVAL;
}

static inline void by_revision(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	*key = 0;
	*revision = 0;
	if (len >= 8)
		memcpy(revision, body, 8);
}

static const noh_kind worker_kinds[KINDS] = {
	[ADD] = { .name = "add" }, [GET] = { .name = "get" }, [ACTIVATIONS] = { .name = "activations" },
	[LIST] = { .name = "list" }, [FLAKY] = { .name = "flaky" }, [POISON] = { .name = "poison" },
	[LATE] = { .name = "late" }, [REVISION] = { .name = "revision" }, [STOP] = { .name = "stop" },
	[APPLY] = { .name = "apply", .flags = NOH_KIND_COALESCE, .coalesce = by_revision },
	[SEND_ADD] = { .name = "send add" }, [KILL] = { .name = "kill" },
};

#define WORKER(n, p) { .name = (n), .state_size = sizeof(struct worker_state), .full_mode = NOH_BLOCK, \
	.idle_timeout_ms = NOH_NEVER, .kinds = worker_kinds, .kind_count = KINDS, .on_activate = worker_on_activate, \
	.on_message = worker_on_message, .supervision = (p) }

static inline noh_vitals vitals_of(noh_box *box, const char *address)
{
	noh_vitals v;

	if (!EXPECT_EQ(noh_get_vitals(box, address, &v), NOH_OK))
		printf("  %s\n", noh_why());
	return v;
}

struct kit_health { noh_box *box; const char *address; noh_health health; };

static inline bool is_health(void *arg)
{
	struct kit_health *h = arg;

	return vitals_of(h->box, h->address).health == h->health;
}

static inline bool gets(noh_box *box, const char *address, noh_health health)
{
	bool ok = test_wait_until(is_health, &(struct kit_health){ box, address, health }, SOON);

	if (!ok)
		printf("  %s is %s\n", address, noh_health_name(vitals_of(box, address).health));
	return ok;
}

static inline void set_failures(uint64_t n, bool activate)
{
	store_relaxed(&failures_left, n);
	store_relaxed(&fail_activate, activate);
}

static inline noh_box *open_logged(const char *dir, unsigned workers, const noh_type *const *types)
{
	noh_options o = kit_options(workers);

	o.dir = dir;
	return kit_start(&o, types);
}

#endif
