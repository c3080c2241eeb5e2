/* tests/box/storm_test.c - everything at once, at random: actors of four kinds of mailbox, and supervised ones, tell, ask,
 * wait, schedule, spawn, fail, defer and stop; threads send, call, list, read, deactivate, resume and draw the tree.
 *
 * What must hold whatever happens: one instance and one turn per address, state changes whole or
 * not at all and never lost, every callback once, every accepted message accounted for, and the box
 * comes to rest when told to stop. */
#include "tests/box/kit.h"

#include <stdlib.h>

#define IDS 6
#define KINDS_OF_TYPE 7
#define UNSUPERVISED 4                 /* the first so many */

enum { ACT, ANSWER, TICK, KEPT, READ, SPEC };

struct work { uint64_t rnd; uint32_t ttl, pad; };

struct state { uint64_t a, rest[5], b; };

static struct place {
	atomic_u32 active, inside;
	uint64_t   version;                    /* plain: TSan watches that turns follow each other */
} places[KINDS_OF_TYPE][IDS];

static const char *names[KINDS_OF_TYPE] = { "block", "oldest", "newest", "batch", "wary", "frail", "heap" };

static struct place *place_of(noh_turn *t)
{
	for (int i = 0; i < KINDS_OF_TYPE; i++)
		if (strncmp(noh_address(t), names[i], strlen(names[i])) == 0)
			return &places[i][atoi(noh_id(t))];
	return NULL;
}

static void pick(uint64_t *rng, char *address)
{
	snprintf(address, 32, "%s:%u", names[test_random(rng) % KINDS_OF_TYPE],
		 (unsigned)(test_random(rng) % IDS));
}

/* A full mailbox of another actor that blocks: the turn wants to be run again. */
static int again_if_full(noh_turn *t, const char *to, int rc)
{
	return rc == NOH_FULL && to[0] == 'b' && strcmp(to, noh_address(t)) != 0 ? NOH_FULL : NOH_OK;
}

static int go_on(noh_turn *t, const struct work *w, uint64_t *rng)
{
	struct work next = { test_random(rng), w->ttl - 1, 0 };
	static const char big[2000];
	char to[32], key = (char)('a' + test_random(rng) % 8);
	noh_ask_options o = { .answer_kind = ANSWER, .timeout_ms = 1 + (uint32_t)(test_random(rng) % 40) };
	int rc = NOH_OK;

	pick(rng, to);
	switch (test_random(rng) % 14) {
	case 0: o.wait = true; rc = noh_ask_to(t, to, ACT, &next, sizeof next, &o, NULL); break;
	case 1: rc = noh_ask_to(t, to, ACT, &next, sizeof next, &o, NULL); break;
	case 2: rc = noh_schedule_once(t, TICK, test_random(rng) % 3); break;
	case 3: rc = noh_schedule_every(t, TICK, 1 + test_random(rng) % 3); break;
	case 4: rc = noh_schedule_cancel(t, TICK); break;
	case 5: rc = noh_kv_put(t, &key, 1, big, test_random(rng) % 300); break;
	case 6: rc = noh_kv_delete(t, &key, 1) & 0; break;
	case 7:
		rc = noh_spawn(t, to, NULL);
		rc = rc == NOH_EINVAL ? NOH_OK : rc;     /* of itself, or of its parent */
		break;
	case 8: rc = noh_stop_self(t); break;
	case 9: return noh_fail(t, "at random");
	case 10: return -1234;
	case 11:
		for (int i = 0; i < 7 && rc == NOH_OK; i++)
			rc = noh_tell_to(t, to, ACT, &next, sizeof next);
		return again_if_full(t, to, rc);
	default: rc = noh_tell_to(t, to, ACT, &next, sizeof next); break;
	}
	/* Two messages of one batch may both want to wait. */
	EXPECT(rc == NOH_OK || rc == NOH_FULL || (rc == NOH_EINVAL && o.wait));
	return NOH_OK;
}

static int one_message(noh_turn *t, const noh_msg *m, uint64_t rnd)
{
	struct work  w = { rnd, 0, 0 };
	noh_promise  p;
	char         to[32];

	if (m->kind == ACT || m->kind == SPEC)
		memcpy(&w, m->body, sizeof w);
	uint64_t rng = w.rnd;
	if (m->kind == KEPT) {
		static const char big[700];
		memcpy(&p, m->body, sizeof p);
		int rc = noh_answer(t, p, NOH_OK, big, test_random(&rng) % sizeof big);
		EXPECT(rc == NOH_OK || rc == NOH_NOBODY);
		return NOH_OK;
	}
	if (m->reply_to && test_random(&rng) % 4 == 0) {
		p = noh_defer(t, m);
		pick(&rng, to);
		return again_if_full(t, to, noh_tell_to(t, to, KEPT, &p, sizeof p));
	}
	if (m->reply_to && test_random(&rng) % 2)
		EXPECT_EQ(noh_reply_to(t, m, &w, sizeof w), NOH_OK);
	return w.ttl ? go_on(t, &w, &rng) : NOH_OK;
}

/* The two ends of the state and the table outside change together or not at all. */
static int turn(noh_turn *t, const noh_msg *m, uint32_t n)
{
	struct place *p = place_of(t);
	const struct state *seen = noh_look(t);
	uint32_t reads = 0;
	int rc = NOH_OK;

	for (uint32_t i = 0; i < n; i++)
		reads += m[i].kind == READ;
	EXPECT_EQ(add_acq_rel(&p->inside, 1), 0);
	EXPECT_EQ(load_acquire(&p->active), 1);
	EXPECT_EQ(seen->a, seen->b);
	EXPECT_EQ(seen->a, p->version);
	if (reads < n) {
		struct state *s = noh_state(t);

		s->a++;
		for (uint32_t i = 0; i < n && rc == NOH_OK; i++)
			rc = m[i].kind == READ ? NOH_OK : one_message(t, &m[i], s->a * 7919);
		s->b++;
	}
	/* What the box will make of it: anything but a failure or a rerun is kept. */
	if (rc == NOH_OK && reads < n)
		p->version++;
	EXPECT_EQ(add_acq_rel(&p->inside, UINT32_MAX), 1);
	return rc;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	if (m->kind == READ) {
		const struct state *s = noh_look(t);

		EXPECT_EQ(s->a, s->b);
		return noh_reply(t, &s->a, 8) < 0 ? NOH_EFAILED : NOH_OK;
	}
	return turn(t, m, 1);
}

static int on_batch(noh_turn *t, const noh_msg *m, uint32_t n)
{
	return turn(t, m, n);
}

static int on_activate(noh_turn *t)
{
	struct place *p = place_of(t);

	EXPECT_EQ(add_acq_rel(&p->inside, 1), 0);
	/* One that is restarted has been active. */
	EXPECT(swap_acq_rel(&p->active, 1) == 0 || p >= places[UNSUPERVISED]);
	EXPECT_EQ(((const struct state *)noh_look(t))->a, p->version);
	EXPECT_EQ(add_acq_rel(&p->inside, UINT32_MAX), 1);
	return NOH_OK;
}

static int on_deactivate(noh_turn *t)
{
	struct place *p = place_of(t);

	EXPECT_EQ(add_acq_rel(&p->inside, 1), 0);
	EXPECT_EQ(add_acq_rel(&p->active, UINT32_MAX), 1);
	EXPECT_EQ(add_acq_rel(&p->inside, UINT32_MAX), 1);
	return NOH_OK;
}

static void by_low_bits(const void *body, size_t len, uint64_t *key, uint64_t *revision)
{
	struct work w = { 0 };

	memcpy(&w, body, len < sizeof w ? len : sizeof w);
	*key = w.rnd % 2;
	*revision = w.rnd >> 8;
}

static const noh_kind plain[] = { { "act", 0, NULL }, { "answer", 0, NULL },
	{ "tick", NOH_KIND_TIMER, NULL }, { "kept", 0, NULL }, { "read", NOH_KIND_READ, NULL },
	{ "spec", NOH_KIND_COALESCE, by_low_bits } };

#define COMMON .state_size = sizeof(struct state), .idle_timeout_ms = 100, .kinds = plain, \
	.kind_count = 6, .on_activate = on_activate, .on_deactivate = on_deactivate
static const noh_type types[KINDS_OF_TYPE] = {
	{ .name = "block", .full_mode = NOH_BLOCK, .mailbox_capacity = 4, .on_message = on_message, COMMON },
	{ .name = "oldest", .full_mode = NOH_DROP_OLDEST, .mailbox_capacity = 3, .on_message = on_message,
	  COMMON },
	{ .name = "newest", .full_mode = NOH_DROP_NEWEST, .mailbox_capacity = 3, .on_message = on_message,
	  COMMON },
	{ .name = "batch", .full_mode = NOH_BLOCK, .mailbox_capacity = 8, .on_batch = on_batch, COMMON },
	{ .name = "wary", .full_mode = NOH_DROP_OLDEST, .mailbox_capacity = 4, .on_message = on_message, COMMON,
	  .supervision = &(noh_supervision){ .base_ms = 1, .cap_ms = 3, .restarts = NOH_NEVER, .retries = 2,
					     .strategy = NOH_ONE_FOR_ALL } },
	{ .name = "frail", .full_mode = NOH_DROP_NEWEST, .mailbox_capacity = 4, .on_message = on_message, COMMON,
	  .supervision = &(noh_supervision){ .base_ms = 1, .cap_ms = 4, .restarts = 3, .restart = NOH_TRANSIENT,
					     .strategy = NOH_REST_FOR_ONE } },
	{ .name = "heap", .full_mode = NOH_DROP_NEWEST, .mailbox_capacity = 8, .on_batch = on_batch, COMMON,
	  .supervision = &(noh_supervision){ .base_ms = 1, .cap_ms = 4, .restarts = 3, .then = NOH_THEN_QUARANTINE } } };

/* ── outside ── */

static noh_box *box;
static unsigned rounds;
static atomic_u64 calls, callbacks;

static void called_back(void *user, int status, const void *answer, size_t len)
{
	char copy[1000];

	EXPECT(len <= sizeof copy);
	memcpy(copy, answer, len);                         /* ASan: it is all there */
	EXPECT(status <= NOH_FULL && (status <= 0 || len == 0));
	EXPECT_EQ(swap_acq_rel((atomic_u32 *)user, 1), 0);         /* once */
	add_acq_rel(&callbacks, 1);
}

#define TICKETS 20000
static atomic_u32 tickets[TICKETS];
static atomic_u64 next_ticket;

static int look(void *user, const noh_tree_node *node)
{
	(void)user;
	EXPECT(strchr(node->address, ':') != NULL);
	return 0;
}

static void any_call(uint64_t *rng)
{
	struct work w = { test_random(rng), (uint32_t)(test_random(rng) % 6), 0 };
	uint32_t kind = test_random(rng) % 5 ? ACT : SPEC;
	uint64_t at, cursor = 0;
	char     to[32], answer[100];
	size_t   len = sizeof answer, count = 4;
	noh_status status;
	noh_vitals vitals;
	noh_entry entries[4];
	noh_actor ref;
	int      rc = NOH_OK;

	pick(rng, to);
	switch (test_random(rng) % 20) {
	case 0: rc = noh_call(box, to, kind, &w, sizeof w, 20, answer, &len); break;
	case 1: rc = noh_call(box, to, READ, NULL, 0, 20, answer, &len); break;
	case 2: rc = noh_deactivate(box, to, false, 5); break;
	case 3: rc = noh_deactivate(box, to, true, 5); break;
	case 4: rc = noh_activate(box, to, 5); break;
	case 5: rc = noh_get_status(box, to, &status); break;
	case 6: rc = noh_list(box, NULL, &cursor, entries, &count); break;
	case 7:
		rc = noh_ref(box, to, &ref);
		if (rc == NOH_OK)
			rc = noh_send_ref(box, ref, kind, &w, sizeof w);
		break;
	case 8: case 9: case 10:
		at = add_relaxed(&next_ticket, 1);
		rc = noh_call_then(box, to, kind, &w, sizeof w, (uint32_t)(test_random(rng) % 30),
				   called_back, &tickets[at]);
		add_relaxed(&calls, rc == NOH_OK);
		break;
	case 11: rc = noh_send_wait(box, to, kind, &w, sizeof w, 2); break;
	case 12: rc = noh_get_vitals(box, to, &vitals); break;
	case 13: rc = noh_tree(box, test_random(rng) % 2 ? to : NULL, look, NULL); break;
	case 14:
		rc = noh_resume(box, to, 5);
		rc = rc == NOH_END ? NOH_OK : rc;
		break;
	case 15: rc = test_random(rng) % 8 ? NOH_OK : noh_stop_tree(box, to, 5); break;
	default: rc = noh_send(box, to, kind, &w, sizeof w); break;
	}
	EXPECT(rc == NOH_OK || rc == NOH_FULL || rc == NOH_EFAILED || rc == -1234 || rc == NOH_ETIMEOUT ||
	       rc == NOH_EGONE || rc == NOH_ENOACTOR || rc == NOH_ETOOBIG || rc == NOH_ESTOPPED ||
	       rc == NOH_EDEGRADED || rc == NOH_EQUARANTINED);
}

static void *storms(void *arg)
{
	uint64_t rng = test_seed * 31 + (uintptr_t)arg;

	for (unsigned i = 0; i < rounds; i++)
		any_call(&rng);
	return NULL;
}

static void storm(unsigned workers, bool stop_in_the_middle)
{
	struct threads t;
	int rc;

	memset(places, 0, sizeof places);
	memset(tickets, 0, sizeof tickets);
	store_relaxed(&next_ticket, 0);
	store_relaxed(&calls, 0);
	store_relaxed(&callbacks, 0);
	rounds = 1200;
	box = BOX(workers, &types[0], &types[1], &types[2], &types[3], &types[4], &types[5], &types[6]);
	threads_start(&t, 3, storms);
	if (!stop_in_the_middle)
		threads_join(&t);
	else
		nap_us(30000);
	rc = noh_stop(box, SOON);
	if (!EXPECT_EQ(rc, NOH_OK))
		printf("  %s\n", noh_why());
	if (stop_in_the_middle)
		threads_join(&t);
	for (int i = 0; i < KINDS_OF_TYPE; i++) {
		EXPECT(settles(box, names[i]));
		EXPECT_EQ(stats_of(box, names[i]).activations, stats_of(box, names[i]).deactivations);
		for (int id = 0; id < IDS; id++)
			EXPECT_EQ(load_relaxed(&places[i][id].active), 0);
	}
	EXPECT_EQ(stats(box).actors, 0);
	noh_close(box);
	EXPECT_EQ(load_relaxed(&callbacks), load_relaxed(&calls));
}

static void a_storm_of_everything_leaves_the_box_in_order(void)
{
	FOR_WORKERS(workers)
		storm(workers, false);
}

static void a_box_stops_in_the_middle_of_a_storm(void)
{
	FOR_WORKERS(workers)
		storm(workers, true);
}

/* ── stopping under load ── */

static atomic_u64 taken;

static int count_it(noh_turn *t, const noh_msg *m)
{
	++*(uint64_t *)noh_state(t);
	return noh_reply(t, m->body, m->len) < 0 ? NOH_EFAILED : NOH_OK;
}

static const noh_type counter = { .name = "c", .state_size = 8, .full_mode = NOH_BLOCK,
	.mailbox_capacity = 16, .on_message = count_it };

/* Until it is told that the box stops. */
static void *sends_until_stopped(void *arg)
{
	uint64_t rng = test_seed + (uintptr_t)arg;
	int rc = NOH_OK;

	while (rc != NOH_ESTOPPED) {
		char to[32];

		snprintf(to, sizeof to, "c:%u", (unsigned)(test_random(&rng) % 20));
		if (test_random(&rng) % 8 == 0)
			rc = noh_call(box, to, 0, "x", 1, SOON, NULL, NULL);
		else
			rc = noh_send_wait(box, to, 0, "x", 1, SOON);
		EXPECT(rc == NOH_OK || rc == NOH_ESTOPPED);
		add_relaxed(&taken, rc == NOH_OK);
	}
	return NULL;
}

static void what_is_accepted_while_stopping_is_accounted_for(void)
{
	for (int i = 0; i < 30; i++) {
		struct threads t;
		uint64_t start;

		store_relaxed(&taken, 0);
		box = BOX(1u << i % 3, &counter);
		threads_start(&t, 4, sends_until_stopped);
		nap_us(1000);
		start = now_us();
		EXPECT_EQ(noh_stop(box, SOON), NOH_OK);
		threads_join(&t);
		EXPECT(now_us() - start < 5000000);            /* nobody waits for his own timeout */
		EXPECT(adds_up(box, "c"));
		EXPECT(stats_of(box, "c").accepted >= load_relaxed(&taken));
		EXPECT_EQ(stats(box).actors, 0);
		noh_close(box);
	}
}

TEST_MAIN(
	TEST(a_storm_of_everything_leaves_the_box_in_order, "LC-01 LC-19 TB-01 TB-03 TB-04"),
	TEST(a_box_stops_in_the_middle_of_a_storm, "LC-10"),
	TEST(what_is_accepted_while_stopping_is_accounted_for, "LC-10"))
