/* bench/fan_in.c - many producers, one counter: what contention on a mailbox costs.
 *
 * counting     one producer, n increments
 * fan-in-P     P producers, n / P increments each
 * ...-batch    the same with on_batch: up to 64 messages a turn (extra rows)
 *
 * A producer sends a run of messages in a turn and tells itself to go on. When the counter's
 * mailbox is over its capacity the runtime rests the producer; at four times the capacity the tell
 * is NOH_FULL, and the turn hands that back: it is undone and run again later. Each producer ends
 * with a mark of its own, so the counter needs no order between producers to know it has all.
 */
#include "bench/bench.h"

#include <stdlib.h>

enum { ADD, LAST, GO };
enum { RUN = 50 };     /* messages of one producer in one turn: half the capacity */

struct plant { noh_actor counter, gather; uint64_t producers, each; };
struct counter { int64_t sum; uint64_t ended; };
struct producer { uint64_t left; };

static int count_one(noh_turn *turn, struct counter *me, const noh_msg *msg)
{
	const struct plant *plant = noh_user(turn);

	if (msg->kind == ADD) {
		me->sum += *(const int64_t *)msg->body;
		return NOH_OK;
	}
	if (++me->ended < plant->producers)
		return NOH_OK;
	return gather_add(turn, plant->gather, me->sum);
}

static int counter_message(noh_turn *turn, const noh_msg *msg)
{
	return count_one(turn, noh_state(turn), msg);
}

static int counter_batch(noh_turn *turn, const noh_msg *msgs, uint32_t count)
{
	struct counter *me = noh_state(turn);
	int rc = NOH_OK;

	for (uint32_t i = 0; i < count && rc == NOH_OK; i++)
		rc = count_one(turn, me, &msgs[i]);
	return rc;
}

static int producer_activate(noh_turn *turn)
{
	const struct plant *plant = noh_user(turn);
	struct producer *me = noh_state(turn);

	me->left = plant->each;
	return NOH_OK;
}

static int producer_message(noh_turn *turn, const noh_msg *msg)
{
	const struct plant *plant = noh_user(turn);
	struct producer *me = noh_state(turn);
	uint64_t run = me->left < RUN ? me->left : RUN;
	int64_t one = 1;
	int rc = NOH_OK;

	(void)msg;
	for (uint64_t i = 0; i < run && rc == NOH_OK; i++)
		rc = noh_tell(turn, plant->counter, ADD, &one, sizeof one);
	if (rc != NOH_OK)
		return rc;
	me->left -= run;
	if (me->left > 0)
		return noh_tell(turn, noh_self(turn), GO, NULL, 0);
	return noh_tell(turn, plant->counter, LAST, NULL, 0);
}

static void fan_in(struct bench_run *r, bool batch)
{
	static struct plant plant;
	noh_type counter = bench_type("counter", sizeof(struct counter), counter_message, &plant);
	noh_type producer = bench_type("producer", sizeof(struct producer), producer_message,
				       &plant);
	noh_actor *all = bench_memory(r, r->actors * sizeof *all);

	if (batch) {
		counter.on_message = NULL;
		counter.on_batch = counter_batch;
	}
	producer.on_activate = producer_activate;
	bench_register(r, &counter);
	bench_register(r, &producer);
	bench_start(r);
	plant = (struct plant){ bench_ref(r, "counter", 1), r->gather, r->actors,
				r->n / r->actors };
	for (uint64_t i = 0; i < r->actors; i++)
		all[i] = bench_ref(r, "producer", i);

	bench_begin(r);
	for (uint64_t i = 0; i < r->actors; i++)
		bench_send(r, all[i], GO, NULL, 0);
	struct gathered sum = bench_wait(r, 1);
	bench_end(r, plant.each * plant.producers);
	bench_same(r, "the count", sum.sums[0], (int64_t)(plant.each * plant.producers));
	free(all);
}

void bench_fan_in(struct bench_run *r)
{
	fan_in(r, false);
}

void bench_fan_in_batch(struct bench_run *r)
{
	fan_in(r, true);
}
