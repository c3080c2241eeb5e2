/* bench/ping_pong.c - the cost of a message between actors that do nothing else.
 *
 * ping-pong    two actors, one ball, n times there and n times back: 2n messages.
 * thread-ring  a hundred actors in a circle hand one token on, n times.
 * Not: contention (fan_in.c), memory (random_counters.c).
 */
#include "bench/bench.h"

enum { BALL, OVER };

struct court { noh_actor ping, pong, gather; };
struct player { uint64_t seen; };

static int ping_message(noh_turn *turn, const noh_msg *msg)
{
	const struct court *court = noh_user(turn);
	struct player *me = noh_state(turn);
	uint64_t left = *(const uint64_t *)msg->body;

	me->seen++;
	if (left > 1) {
		left--;
		return noh_tell(turn, court->pong, BALL, &left, sizeof left);
	}
	int rc = noh_tell(turn, court->pong, OVER, NULL, 0);
	return rc != NOH_OK ? rc : gather_add(turn, court->gather, (int64_t)me->seen);
}

static int pong_message(noh_turn *turn, const noh_msg *msg)
{
	const struct court *court = noh_user(turn);

	if (msg->kind == OVER) {
		const struct player *me = noh_look(turn);
		return gather_add(turn, court->gather, (int64_t)me->seen);
	}
	struct player *me = noh_state(turn);

	me->seen++;
	return noh_tell(turn, court->ping, BALL, msg->body, msg->len);
}

void bench_ping_pong(struct bench_run *r)
{
	static struct court court;
	noh_type ping = bench_type("ping", sizeof(struct player), ping_message, &court);
	noh_type pong = bench_type("pong", sizeof(struct player), pong_message, &court);

	bench_register(r, &ping);
	bench_register(r, &pong);
	bench_start(r);
	court = (struct court){ bench_ref(r, "ping", 1), bench_ref(r, "pong", 1), r->gather };

	bench_begin(r);
	bench_send(r, court.pong, BALL, &r->n, sizeof r->n);
	struct gathered all = bench_wait(r, 2);
	bench_end(r, 2 * r->n);
	bench_same(r, "messages seen by both", all.sums[0], (int64_t)(2 * r->n));
}

/* ── thread-ring ──────────────────────────────────────────────────────────────────────────── */
enum { RING = 100 };

struct ring { noh_actor all[RING], gather; };
struct link { noh_actor next; uint64_t id; };

static int link_activate(noh_turn *turn)
{
	const struct ring *ring = noh_user(turn);
	struct link *me = noh_state(turn);

	me->id = bench_id(turn);
	me->next = ring->all[(me->id + 1) % RING];
	return NOH_OK;
}

static int link_message(noh_turn *turn, const noh_msg *msg)
{
	const struct link *me = noh_look(turn);
	uint64_t left = *(const uint64_t *)msg->body;

	if (left == 0) {
		const struct ring *ring = noh_user(turn);
		return gather_add(turn, ring->gather, (int64_t)me->id);
	}
	left--;
	return noh_tell(turn, me->next, BALL, &left, sizeof left);
}

void bench_thread_ring(struct bench_run *r)
{
	static struct ring ring;
	noh_type link = bench_type("link", sizeof(struct link), link_message, &ring);

	link.on_activate = link_activate;
	bench_register(r, &link);
	bench_start(r);
	ring.gather = r->gather;
	for (uint64_t i = 0; i < RING; i++)
		ring.all[i] = bench_ref(r, "link", i);

	bench_begin(r);
	bench_send(r, ring.all[0], BALL, &r->n, sizeof r->n);
	struct gathered all = bench_wait(r, 1);
	bench_end(r, r->n);
	bench_same(r, "where the token stopped", all.sums[0], (int64_t)(r->n % RING));
}
