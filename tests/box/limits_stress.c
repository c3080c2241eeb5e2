/* tests/box/limits_stress.c - limits of every kind at once, on few actors: threads send, actors tell each other, somebody keeps
 * changing the limits and throwing actors out. What must hold: one turn at a time for each actor, never more turns at once than
 * the largest limit that was set, every sender in order, every message accounted for, and nobody rests for ever. */
#include "tests/box/kit.h"

#include <stdlib.h>

#define SENDERS 4
#define IDS 12
#define TYPES_OF 3
#define MOST_TURNS 3

struct numbered { uint64_t seq; uint32_t sender, hops; };

static struct place {
	atomic_u32 inside;
	uint64_t   last[SENDERS];              /* plain: TSan watches that turns follow each other */
} places[TYPES_OF][IDS];
static atomic_u32 inside[TYPES_OF];
static atomic_u32 stop_changing;
static noh_box *box;
static uint64_t rounds;

static const char *const names[TYPES_OF] = { "wait", "refuse", "both" };

static int type_of(noh_turn *t)
{
	for (int i = 0; i < TYPES_OF; i++)
		if (strncmp(noh_address(t), names[i], strlen(names[i])) == 0)
			return i;
	return 0;
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	int type = type_of(t);
	struct place *p = &places[type][atoi(noh_id(t))];
	struct numbered n;

	memcpy(&n, m->body, sizeof n);
	EXPECT_EQ(add_acq_rel(&p->inside, 1), 0);
	if (type == 2)
		EXPECT(add_seq_cst(&inside[type], 1) < MOST_TURNS);
	if (n.hops == 0) {
		EXPECT(n.seq > p->last[n.sender]);
		p->last[n.sender] = n.seq;
	} else {
		char to[32];

		n.hops--;
		snprintf(to, sizeof to, "%s:%u", names[n.seq % TYPES_OF], (unsigned)(n.seq / 7 % IDS));
		if (n.hops)
			(void)noh_tell_to(t, to, 0, &n, sizeof n);
	}
	if (type == 2)
		add_seq_cst(&inside[type], UINT32_MAX);
	EXPECT_EQ(add_acq_rel(&p->inside, UINT32_MAX), 1);
	return NOH_OK;
}

static int on_batch(noh_turn *t, const noh_msg *msgs, uint32_t count)
{
	int rc = NOH_OK;

	for (uint32_t i = 0; i < count && rc == NOH_OK; i++)
		rc = on_message(t, &msgs[i]);
	return rc;
}

static const noh_type types[TYPES_OF] = {
	{ .name = "wait", .full_mode = NOH_BLOCK, .on_message = on_message,
	  .limits = { .per_second = 50000, .burst = 20, .actor_per_second = 10000, .actor_burst = 5 } },
	{ .name = "refuse", .full_mode = NOH_DROP_NEWEST, .mailbox_capacity = 1000, .on_message = on_message,
	  .limits = { .per_second = 50000, .actor_per_second = 20000, .over = NOH_OVER_REFUSE } },
	{ .name = "both", .full_mode = NOH_BLOCK, .on_batch = on_batch,
	  .limits = { .per_second = 100000, .burst = 50, .turns = MOST_TURNS } } };

static void *sender(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t rng = test_seed + me, seq = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		struct numbered n = { ++seq, me, test_random(&rng) % 4 ? 0 : 3 };
		char to[32];
		int rc;

		snprintf(to, sizeof to, "%s:%u", names[test_random(&rng) % TYPES_OF], (unsigned)(test_random(&rng) % IDS));
		rc = noh_send_wait(box, to, 0, &n, sizeof n, SOON);
		EXPECT(rc == NOH_OK || rc == NOH_ERATE || (rc == NOH_FULL && to[0] == 'r'));
	}
	return NULL;
}

static void *changer(void *arg)
{
	uint64_t rng = test_seed * 31;

	(void)arg;
	while (!load_seq_cst(&stop_changing)) {
		int i = (int)(test_random(&rng) % TYPES_OF);
		noh_limits l = types[i].limits;
		char who[32];

		switch (test_random(&rng) % 4) {
		case 0: l.per_second = 0.001; l.burst = 1; break;       /* everybody rests, until it is another one */
		case 1: l.actor_per_second = 0.5; l.actor_burst = 1; break;
		case 2: l.turns = 1 + (uint32_t)(test_random(&rng) % MOST_TURNS); break;
		default: break;
		}
		if (i == 2 && l.turns == 0)
			l.turns = MOST_TURNS;
		EXPECT_EQ(noh_set_limits(box, names[i], &l), NOH_OK);
		snprintf(who, sizeof who, "%s:%u", names[i], (unsigned)(test_random(&rng) % IDS));
		if (test_random(&rng) % 8 == 0)
			(void)noh_deactivate(box, who, true, 10);
		nap_us(500);
		EXPECT_EQ(noh_set_limits(box, names[i], &types[i].limits), NOH_OK);
	}
	return NULL;
}

static void limits_hold_whatever_happens_at_once(void)
{
	struct threads senders, changers;

	rounds = test_size(20000, 3000);
	FOR_WORKERS(workers) {
		memset(places, 0, sizeof places);
		store_seq_cst(&stop_changing, 0);
		box = BOX(workers, &types[0], &types[1], &types[2]);
		threads_start(&changers, 1, changer);
		threads_start(&senders, SENDERS, sender);
		threads_join(&senders);
		store_seq_cst(&stop_changing, 1);
		threads_join(&changers);
		for (int i = 0; i < TYPES_OF; i++) {
			EXPECT(settles(box, names[i]));
			EXPECT_EQ(stats_of(box, names[i]).resting, 0);
			EXPECT_EQ(stats_of(box, names[i]).waiting_turn, 0);
		}
		end(box);
	}
}

/* ── a limit that goes while they go to rest ── */

static int do_nothing(noh_turn *t, const noh_msg *m)
{
	(void)t, (void)m;
	return NOH_OK;
}

static const noh_type racing = { .name = "racing", .full_mode = NOH_BLOCK, .idle_timeout_ms = NOH_NEVER, .on_message = do_nothing };

static void nobody_rests_by_a_limit_that_is_gone(void)
{
	enum { RACERS = 64 };
	const noh_limits slow = { .actor_per_second = 0.001, .actor_burst = 1 };
	uint64_t rng = test_seed, n = test_size(4000, 500);
	bool ok = true;
	char to[32];

	box = BOX(2, &racing);
	for (uint64_t i = 0; ok && i < n; i++) {
		EXPECT_EQ(noh_set_limits(box, "racing", &slow), NOH_OK);
		for (int k = 0; k < RACERS * 2; k++) {                   /* the second of each has no token */
			snprintf(to, sizeof to, "racing:%d", k % RACERS);
			EXPECT_EQ(noh_send(box, to, 0, NULL, 0), NOH_OK);
		}
		for (uint64_t spins = test_random(&rng) % 4000; spins; spins--)
			cpu_relax();
		EXPECT_EQ(noh_set_limits(box, "racing", NULL), NOH_OK);
		ok = settles(box, "racing");
	}
	EXPECT(ok);
	EXPECT_EQ(stats_of(box, "racing").resting, 0);
	end(box);
}

TEST_MAIN(
	TEST(nobody_rests_by_a_limit_that_is_gone),
	TEST(limits_hold_whatever_happens_at_once, "MB-11"))
