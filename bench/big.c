/* bench/big.c - 120 actors, each with one ping on its way to a random other one.
 *
 * Many to many: whoever gets a ping sends a pong back, whoever gets a pong sends its next ping,
 * n of them. 2 x 120 x n messages.
 */
#include "bench/bench.h"

enum { START, PING, PONG, REPORT };
enum { CROWD = 120 };

struct crowd { noh_actor all[CROWD], gather; uint64_t n, seed; };
struct body { uint64_t id, random, pings, pongs; };

static int body_activate(noh_turn *turn)
{
	const struct crowd *crowd = noh_user(turn);
	struct body *me = noh_state(turn);

	me->id = bench_id(turn);
	me->random = bench_seed(crowd->seed + me->id);
	return NOH_OK;
}

static int send_ping(noh_turn *turn, const struct crowd *crowd, struct body *me)
{
	noh_actor self = noh_self(turn);
	noh_actor to = crowd->all[bench_other(&me->random, me->id, CROWD)];

	return noh_tell(turn, to, PING, &self, sizeof self);
}

static int body_message(noh_turn *turn, const noh_msg *msg)
{
	const struct crowd *crowd = noh_user(turn);
	struct body *me = noh_state(turn);

	switch (msg->kind) {
	case START:
		return send_ping(turn, crowd, me);
	case PING:
		me->pings++;
		return noh_tell(turn, *(const noh_actor *)msg->body, PONG, NULL, 0);
	case PONG:
		if (++me->pongs < crowd->n)
			return send_ping(turn, crowd, me);
		return gather_add(turn, crowd->gather, 1);
	default: {
		int64_t report[2] = { (int64_t)me->pings, (int64_t)me->pongs };
		return noh_tell(turn, crowd->gather, GATHER_ADD, report, sizeof report);
	}
	}
}

void bench_big(struct bench_run *r)
{
	static struct crowd crowd;
	noh_type body = bench_type("body", sizeof(struct body), body_message, &crowd);

	body.on_activate = body_activate;
	bench_register(r, &body);
	bench_start(r);
	crowd.gather = r->gather;
	crowd.n = r->n;
	crowd.seed = r->seed;
	for (uint64_t i = 0; i < CROWD; i++)
		crowd.all[i] = bench_ref(r, "body", i);

	bench_begin(r);
	for (unsigned i = 0; i < CROWD; i++)
		bench_send(r, crowd.all[i], START, NULL, 0);
	bench_wait(r, CROWD);
	bench_end(r, 2 * CROWD * r->n);

	for (unsigned i = 0; i < CROWD; i++)
		bench_send(r, crowd.all[i], REPORT, NULL, 0);
	struct gathered all = bench_wait(r, CROWD);
	bench_same(r, "pings", all.sums[0], (int64_t)(CROWD * r->n));
	bench_same(r, "pongs", all.sums[1], (int64_t)(CROWD * r->n));
}
