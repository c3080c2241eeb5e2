/* tests/box/alloc_fail_test.c - the Nth allocation fails, for every N of a whole scenario: open, run,
 * stop, close. Whatever happens has a code; nothing crashes, hangs or leaks (ASan looks). */
#include "tests/box/kit.h"

#include "core/mem.h"

enum { ADD, GET, ASK, ANSWERED, PUT, TIMER, TICK, SPAWN, FORK, STOP, WATCH, TOLD, FAIL, REVISION };

struct state { uint64_t sum; noh_promise who; };

static atomic_u64 abandoned;

static int on_message(noh_turn *t, const noh_msg *m)
{
	struct state *s = noh_state(t);
	noh_ask_options wait = { .answer_kind = ANSWERED, .wait = true, .timeout_ms = 2000 };
	char big[600] = "big", address[16];
	int  rc;

	switch (m->kind) {
	case ADD: s->sum += m->len; return noh_reply(t, big, sizeof big);
	case GET: return noh_reply(t, &s->sum, 8);
	case ASK:
		s->who = noh_defer(t, m);
		return noh_ask_to(t, "a:asked", ADD, big, 300, &wait, NULL);
	case ANSWERED:
		rc = noh_answer(t, s->who, m->status, big, 100);
		if (rc != NOH_OK && noh_answer(t, s->who, rc, NULL, 0) != NOH_OK)
			add_relaxed(&abandoned, 1);    /* the turn fails, the promise stays open */
		return load_relaxed(&abandoned) ? rc : NOH_OK;
	case PUT:
		for (char key = 'a'; key < 'j'; key++) {
			rc = noh_kv_put(t, &key, 1, big, 200);
			if (rc != NOH_OK)
				return rc;
		}
		return noh_kv_delete(t, "c", 1);
	case TIMER: return noh_schedule_once(t, TICK, 1);
	case TICK: return noh_tell_to(t, "a:told", ADD, big, 100);
	case SPAWN:
		for (int i = 0; i < 70; i++) {
			rc = noh_tell_to(t, "a:told", ADD, big, 50);
			if (rc != NOH_OK)
				return rc;
		}
		return noh_spawn(t, "a:child", NULL);
	case FORK:
		for (int i = 0; i < 12; i++) {         /* the first of them is known, some come twice */
			sprintf(address, "a:%d", i * 5 % 9 + 1);
			rc = noh_tell_to(t, address, ADD, big, i % 2 ? 50 : 5);
			if (rc != NOH_OK)
				return rc;
		}
		return NOH_OK;
	case STOP: return noh_stop_self(t);
	case WATCH: return noh_watch(t, "frail:2", TOLD);
	case TOLD: return NOH_OK;
	case FAIL: return noh_fail(t, "as asked");
	case REVISION:
		rc = noh_set_revision(t, 7, 6);
		return rc == NOH_OK ? noh_set_error(t, "not there yet") : rc;
	}
	return NOH_EINVAL;
}

static int hook(noh_turn *t)
{
	((struct state *)noh_state(t))->sum += 0;
	return noh_kv_put(t, "hook", 4, "value", 5);
}

static const noh_type a_type = { .name = "a", .state_size = sizeof(struct state),
	.mailbox_capacity = 1000, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER,
	.on_activate = hook, .on_message = on_message, .on_deactivate = hook };
static const noh_type large = { .name = "large", .state_size = 3000, .on_activate = hook,
	.on_message = on_message };

static const noh_type frail = { .name = "frail", .state_size = sizeof(struct state), .on_activate = hook,
	.on_message = on_message, .on_deactivate = hook, .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER,
	.supervision = &(noh_supervision){ .base_ms = 1, .cap_ms = 2, .restarts = 2, .then = NOH_THEN_QUARANTINE,
					   .strategy = NOH_ONE_FOR_ALL, .restart = NOH_TRANSIENT } };

/* The outcomes a lack of memory may have. A timeout is none: somebody would have been forgotten. */
static bool is_honest(int rc)
{
	if (rc == NOH_ETIMEOUT)
		return load_relaxed(&abandoned) != 0;
	return rc == NOH_OK || rc == NOH_ENOMEM || rc == NOH_EFAILED || rc == NOH_ENOACTOR ||
	       rc == NOH_END || rc == NOH_EQUARANTINED || rc == NOH_EDEGRADED;
}

static uint64_t now_failing;

#define HONEST(expr)                                                                               \
	do {                                                                                       \
		int rc_ = (expr);                                                                  \
		if (!is_honest(rc_))                                                               \
			test_failed(__FILE__, __LINE__, "allocation %llu failing: %s gives %d (%s)",  \
				    (unsigned long long)now_failing, #expr, rc_, noh_why());           \
		if (rc_ < 0)                                                                       \
			EXPECT(*noh_why());                                                        \
	} while (0)

/* Both get the same, at once, or neither does. */
static void run_steps(noh_box *box)
{
	static const uint32_t kinds[] = { ADD, PUT, TIMER, SPAWN, FORK, 99 };
	uint64_t sum[2];
	size_t len[2] = { 8, 8 };
	int rc[2];

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		noh_part parts[3] = { { "a:s1", ADD, "one", 3 }, { "large:s2", ADD, "two", 3 },
				      { "a:s3", kinds[i], "three", 5 } };
		int step = noh_step(box, parts, 3, NULL, NULL, NULL, NULL);

		if (step != NOH_EINVAL || kinds[i] != 99)
			HONEST(step);
	}
	rc[0] = noh_call(box, "a:s1", GET, NULL, 0, SOON, &sum[0], &len[0]);
	rc[1] = noh_call(box, "large:s2", GET, NULL, 0, SOON, &sum[1], &len[1]);
	if (rc[0] == NOH_OK && rc[1] == NOH_OK)
		EXPECT_EQ(sum[0], sum[1]);
}

static int look(void *user, const noh_tree_node *node)
{
	(void)user;
	return node->vitals->health > NOH_AWAITING;
}

static void run_family(noh_box *box)
{
	noh_vitals v;

	HONEST(noh_call(box, "frail:1", SPAWN, NULL, 0, SOON, NULL, NULL));
	HONEST(noh_call(box, "frail:1", WATCH, NULL, 0, SOON, NULL, NULL));
	HONEST(noh_call(box, "frail:2", REVISION, NULL, 0, SOON, NULL, NULL));
	HONEST(noh_call(box, "frail:2", FAIL, NULL, 0, SOON, NULL, NULL));
	HONEST(noh_call(box, "frail:2", GET, NULL, 0, SOON, NULL, NULL));
	HONEST(noh_get_vitals(box, "frail:2", &v));
	HONEST(noh_tree(box, NULL, look, NULL));
	HONEST(noh_resume(box, "frail:2", SOON));
	HONEST(noh_call(box, "frail:2", GET, NULL, 0, SOON, NULL, NULL));
	HONEST(noh_stop_tree(box, "frail:1", SOON));
}

static void run(noh_box *box)
{
	static char big[1000];
	static const char *who[] = { "a:1", "a:2", "large:1" };

	for (int i = 0; i < 3; i++) {
		HONEST(noh_send(box, who[i], ADD, "small", 5));
		HONEST(noh_call(box, who[i], ADD, big, sizeof big, SOON, NULL, NULL));
		HONEST(noh_call(box, who[i], PUT, NULL, 0, SOON, NULL, NULL));
		HONEST(noh_call(box, who[i], TIMER, NULL, 0, SOON, NULL, NULL));
		HONEST(noh_call(box, who[i], ASK, NULL, 0, load_relaxed(&abandoned) ? 10 : 4000, NULL, NULL));
		HONEST(noh_call(box, who[i], SPAWN, NULL, 0, SOON, NULL, NULL));
		HONEST(noh_call(box, who[i], FORK, NULL, 0, SOON, NULL, NULL));
		HONEST(noh_deactivate(box, who[i], false, SOON));
		HONEST(noh_activate(box, who[i], SOON));
		HONEST(noh_call(box, who[i], GET, NULL, 0, SOON, NULL, NULL));
	}
	run_steps(box);
	run_family(box);
	HONEST(noh_send(box, "a:1", STOP, NULL, 0));
	HONEST(noh_call(box, "a:1", GET, NULL, 0, SOON, NULL, NULL));
}

static void scenario(bool all_later)
{
	noh_options o = kit_options(1);
	noh_box *box = NULL;
	int rc;

	store_relaxed(&abandoned, 0);
	o.max_actors = 1000;
	rc = noh_open(&box, &o);
	HONEST(rc);
	if (rc != NOH_OK) {
		EXPECT(box == NULL);
		return;
	}
	rc = noh_register(box, &a_type);
	HONEST(rc);
	if (rc == NOH_OK) {
		rc = noh_register(box, &large);
		HONEST(rc);
	}
	if (rc == NOH_OK) {
		rc = noh_register(box, &frail);
		HONEST(rc);
	}
	if (rc == NOH_OK) {
		rc = noh_start(box);
		HONEST(rc);
	}
	if (rc == NOH_OK && stats(box).workers == 1) {
		run(box);
		rc = noh_stop(box, all_later ? 5 : SOON);
		EXPECT(rc == NOH_OK || (all_later && rc == NOH_ETIMEOUT));
	}
	noh_close(box);
}

#ifdef __SANITIZE_THREAD__
#define STRIDE test_size(1, 4)       /* what fails and what leaks the other builds see, one by one */
#else
#define STRIDE 1
#endif

static void fail_at_every(bool all_later)
{
	mem_fail_at(UINT64_MAX, 0);
	scenario(false);
	uint64_t need = mem_fail_at(0, 0);

	EXPECT(need > 50 && need < 5000);
	for (now_failing = 1 + test_seed % STRIDE; now_failing <= need; now_failing += STRIDE) {
		mem_fail_at(now_failing, all_later);
		scenario(all_later);
		mem_fail_at(0, 0);
	}
}

static void any_one_allocation_may_fail(void)
{
	fail_at_every(false);
}

static void all_allocations_may_fail_from_any_one_on(void)
{
	fail_at_every(true);
}

static void a_start_that_failed_may_be_tried_again(void)
{
	for (uint64_t n = 1; n < 40; n++) {
		noh_options o = kit_options(2);
		noh_box *box = kit_open(&o, TYPES(&a_type));
		int rc;

		mem_fail_at(n, 0);
		rc = noh_start(box);
		mem_fail_at(0, 0);
		if (rc != NOH_OK) {
			EXPECT_EQ(rc, NOH_ENOMEM);
			rc = noh_start(box);
			EXPECT(rc == NOH_OK || rc == NOH_ESTOPPED);
		}
		if (rc == NOH_OK)
			EXPECT_EQ(call(box, "a:1", GET), NOH_OK);
		noh_close(box);
	}
}

TEST_MAIN(
	TEST(any_one_allocation_may_fail),
	TEST(all_allocations_may_fail_from_any_one_on),
	TEST(a_start_that_failed_may_be_tried_again))
