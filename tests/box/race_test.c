/* tests/box/race_test.c - send, deactivate, stop and idle-out race on few addresses, and under memory
 * pressure on many. A table outside the actors checks: one instance per address, one turn at a time,
 * the next instance sees the state of the last, nothing lost, every sender in order. */
#include "tests/box/kit.h"

#include <stdlib.h>

#define SENDERS 4
#define PLACES 64

struct state { uint64_t count, last[SENDERS]; };

static struct place {
	atomic_u32 active, inside;
	uint64_t   count;              /* plain: what the last turn left; TSan watches it */
	atomic_u64 sent;
} places[PLACES];

static noh_box *box;
static unsigned place_count, rounds;

struct numbered { uint32_t sender; uint64_t seq; };

enum { NUMBERED, STOP, LOOK };

static struct place *place_of(noh_turn *t)
{
	return &places[atoi(noh_id(t))];
}

static void enter(struct place *p)
{
	EXPECT_EQ(add_acq_rel(&p->inside, 1), 0);
}

static int leave(struct place *p)
{
	EXPECT_EQ(add_acq_rel(&p->inside, UINT32_MAX), 1);
	return NOH_OK;
}

static int on_activate(noh_turn *t)
{
	struct place *p = place_of(t);
	const struct state *s = noh_look(t);

	enter(p);
	EXPECT_EQ(add_acq_rel(&p->active, 1), 0);
	EXPECT_EQ(s->count, p->count);
	return leave(p);
}

static int on_deactivate(noh_turn *t)
{
	struct place *p = place_of(t);

	enter(p);
	EXPECT_EQ(add_acq_rel(&p->active, UINT32_MAX), 1);
	return leave(p);
}

static int on_message(noh_turn *t, const noh_msg *m)
{
	struct place *p = place_of(t);

	enter(p);
	EXPECT_EQ(load_acquire(&p->active), 1);
	if (m->kind == STOP) {
		EXPECT_EQ(noh_stop_self(t), NOH_OK);
	} else if (m->kind == LOOK) {
		EXPECT_EQ(noh_reply(t, noh_look(t), sizeof(struct state)), NOH_OK);
	} else {
		const struct numbered *n = m->body;
		struct state *s = noh_state(t);

		EXPECT_EQ(n->seq, s->last[n->sender] + 1);
		s->last[n->sender] = n->seq;
		EXPECT_EQ(s->count, p->count);
		p->count = ++s->count;
	}
	return leave(p);
}

static noh_type type = { .name = "a", .state_size = sizeof(struct state), .mailbox_capacity = 8,
	.full_mode = NOH_BLOCK, .idle_timeout_ms = 100, .on_activate = on_activate,
	.on_message = on_message, .on_deactivate = on_deactivate };

static int send_one(const char *address, uint32_t sender, uint64_t seq)
{
	struct numbered n = { sender, seq };
	int rc;

	while ((rc = noh_send_wait(box, address, NUMBERED, &n, sizeof n, SOON)) == NOH_ENOMEM)
		nap_us(50);
	return rc;
}

static void *sends_and_deactivates(void *arg)
{
	uint32_t sender = (uint32_t)(uintptr_t)arg;
	uint64_t rng = test_seed + sender, seq[PLACES] = { 0 };

	for (unsigned i = 0; i < rounds; i++) {
		uint32_t at = (uint32_t)(test_random(&rng) % place_count);
		uint32_t what = (uint32_t)(test_random(&rng) % 40);
		char address[16];

		snprintf(address, sizeof address, "a:%u", at);
		if (what == 0) {
			int rc = noh_deactivate(box, address, false, SOON);

			EXPECT(rc == NOH_OK || rc == NOH_ENOACTOR);
		} else if (what == 1) {
			int rc = noh_send(box, address, STOP, NULL, 0);

			EXPECT(rc == NOH_OK || rc == NOH_FULL || rc == NOH_ENOMEM);
		} else if (what == 2 && i % 64 == 0) {
			nap_us(150000);                /* others idle out */
		} else {
			EXPECT_EQ(send_one(address, sender, ++seq[at]), NOH_OK);
			add_relaxed(&places[at].sent, 1);
		}
	}
	return NULL;
}

static bool looks(unsigned at, struct state *s)
{
	char address[16];
	size_t len = sizeof *s;
	int rc;

	snprintf(address, sizeof address, "a:%u", at);
	while ((rc = noh_call(box, address, LOOK, NULL, 0, SOON, s, &len)) == NOH_ENOMEM)
		nap_us(50);
	return EXPECT_EQ(rc, NOH_OK) && EXPECT_EQ(len, sizeof *s);
}

static void race(unsigned workers, uint64_t budget)
{
	noh_options o = kit_options(workers);
	struct threads t;
	struct state s = { 0 };

	memset(places, 0, sizeof places);
	o.memory_budget = budget;
	box = kit_start(&o, TYPES(&type));
	threads_start(&t, SENDERS, sends_and_deactivates);
	threads_join(&t);
	for (unsigned i = 0; i < place_count; i++)
		if (looks(i, &s))
			EXPECT_EQ(s.count, load_relaxed(&places[i].sent));
	EXPECT(settles(box, "a"));
	EXPECT_EQ(stats_of(box, "a").failed, 0);
	EXPECT_EQ(stats(box).dead_letters, 0);
	end(box);
	for (unsigned i = 0; i < place_count; i++)
		EXPECT_EQ(load_relaxed(&places[i].active), 0);
}

static void one_instance_and_one_turn_at_a_time_under_any_race(void)
{
	place_count = 3;
	rounds = 3000;
	FOR_WORKERS(workers)
		race(workers, 0);
}

static void one_instance_and_one_turn_at_a_time_under_memory_pressure(void)
{
	noh_options o = kit_options(1);
	noh_box *empty = kit_start(&o, TYPES(&type));
	uint64_t base = stats(empty).actor_bytes;      /* an empty box's tables */

	end(empty);
	place_count = PLACES;
	rounds = 1500;
	FOR_WORKERS(workers)
		race(workers, base + 20 * 200);        /* room for about 20 of the 64 */
}

/* ── eviction ── */

#define COLD 600
#define HOT 60

static bool is_within_budget(void *budget)
{
	return stats(box).actor_bytes <= *(uint64_t *)budget;
}

static int heat(noh_turn *t, const noh_msg *m)
{
	uint64_t *n = noh_state(t);

	*n += m->len;
	return noh_reply(t, n, sizeof *n);
}

static const noh_type warm_type = { .name = "w", .state_size = 8, .idle_timeout_ms = NOH_NEVER,
	.on_message = heat };

static unsigned active_ones(unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned i = from; i < to; i++) {
		char address[16];

		snprintf(address, sizeof address, "w:%u", i);
		n += status_of(box, address).life == NOH_ACTIVE;
	}
	return n;
}

static void warm(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		char address[16];

		snprintf(address, sizeof address, "w:%u", i);
		EXPECT_EQ(noh_send(box, address, 0, "x", 1), NOH_OK);
	}
}

/* What a box with so many actors takes. */
static uint64_t bytes_with(unsigned actors)
{
	noh_options o = kit_options(1);
	uint64_t bytes;

	box = kit_start(&o, TYPES(&warm_type));
	warm(0, actors);
	EXPECT(settles(box, "w"));
	bytes = stats(box).actor_bytes;
	end(box);
	return bytes;
}

static void pressure_sends_the_coldest_to_storage(void)
{
	noh_options o = kit_options(2);
	char address[16];

	o.memory_budget = bytes_with(COLD + HOT / 2);
	box = kit_start(&o, TYPES(&warm_type));
	warm(0, COLD);
	nap_us(400000);                                /* they are cold now, by tenths of a second */
	EXPECT_EQ(active_ones(0, COLD), COLD);
	warm(COLD, COLD + HOT);
	EXPECT(settles(box, "w"));
	EXPECT(test_wait_until(is_within_budget, &o.memory_budget, SOON));
	EXPECT_EQ(active_ones(COLD, COLD + HOT), HOT);
	EXPECT(active_ones(0, COLD) < COLD);
	EXPECT(stats(box).evictions > 0);
	EXPECT(stats(box).stored > 0);
	for (unsigned i = 0; i < COLD + HOT; i++) {
		snprintf(address, sizeof address, "w:%u", i);
		EXPECT_EQ(get(box, address, 0), 1);    /* what was evicted comes back */
	}
	end(box);
}

TEST_MAIN(
	TEST(one_instance_and_one_turn_at_a_time_under_any_race,
	     "LC-01 LC-06 LC-19 LC-20 TB-01 TB-02 TB-03"),
	TEST(one_instance_and_one_turn_at_a_time_under_memory_pressure, "LC-01 TB-03"),
	TEST(pressure_sends_the_coldest_to_storage, "LC-02"))
