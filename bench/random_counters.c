/* bench/random_counters.c - a million live counters (or ten), two drivers, random targets.
 *
 * Every message meets a cold actor: what is measured is memory. The drivers pick a run of targets,
 * say so (noh_hint), then send. At the end a sweeper asks every counter for its value, which counts
 * as two messages each, and the sum must be exact: n increments + 2 x actors messages.
 * Everyone is alive and idle before the clock starts (an untimed sweep).
 */
#include "bench/bench.h"
#include "tools/cli.h"

#include <stdlib.h>

enum { ADD, GET, GO };
enum { DRIVERS = 2, RUN = 64 };

struct field {
	noh_actor *counters;
	noh_actor  gather;
	uint64_t   actors, each, seed;
};
struct counter { int64_t sum; };
struct driver { uint64_t random, left; };
struct sweeper { uint64_t at; };

static int counter_message(noh_turn *turn, const noh_msg *msg)
{
	if (msg->kind == ADD) {
		struct counter *me = noh_state(turn);

		me->sum += *(const int64_t *)msg->body;
		return NOH_OK;
	}
	const struct counter *me = noh_look(turn);
	return gather_add(turn, *(const noh_actor *)msg->body, me->sum);
}

static int driver_activate(noh_turn *turn)
{
	const struct field *field = noh_user(turn);
	struct driver *me = noh_state(turn);

	me->random = bench_seed(field->seed + bench_id(turn));
	me->left = field->each;
	return NOH_OK;
}

/* Three passes over a run: which ones, fetch their references, fetch the actors; then send. */
static int driver_message(noh_turn *turn, const noh_msg *msg)
{
	const struct field *field = noh_user(turn);
	struct driver *me = noh_state(turn);
	noh_box *box = noh_turn_box(turn);
	unsigned run = me->left < RUN ? (unsigned)me->left : RUN;
	const noh_actor *to[RUN];
	int64_t one = 1;

	(void)msg;
	for (unsigned i = 0; i < run; i++) {
		to[i] = &field->counters[bench_below(&me->random, field->actors)];
		__builtin_prefetch(to[i]);
	}
	for (unsigned i = 0; i < run; i++)
		noh_hint(box, *to[i]);
	for (unsigned i = 0; i < run; i++) {
		int rc = noh_tell(turn, *to[i], ADD, &one, sizeof one);
		if (rc != NOH_OK)
			return rc;
	}
	me->left -= run;
	if (me->left > 0)
		return noh_tell(turn, noh_self(turn), GO, NULL, 0);
	return gather_add(turn, field->gather, (int64_t)field->each);
}

static int sweeper_message(noh_turn *turn, const noh_msg *msg)
{
	const struct field *field = noh_user(turn);
	struct sweeper *me = noh_state(turn);
	uint64_t end = me->at + RUN < field->actors ? me->at + RUN : field->actors;
	noh_box *box = noh_turn_box(turn);

	(void)msg;
	for (uint64_t i = me->at; i < end; i++)
		noh_hint(box, field->counters[i]);
	for (; me->at < end; me->at++) {
		int rc = noh_tell(turn, field->counters[me->at], GET, &field->gather,
				  sizeof field->gather);
		if (rc != NOH_OK)
			return rc;
	}
	if (me->at < field->actors)
		return noh_tell(turn, noh_self(turn), GO, NULL, 0);
	me->at = 0;
	return NOH_OK;
}

static int64_t sweep(struct bench_run *r, noh_actor sweeper)
{
	bench_send(r, sweeper, GO, NULL, 0);
	return bench_wait(r, r->actors).sums[0];
}

/* There is no order between messages of different senders: an increment may still be under way
 * when the sweeper's question overtakes it. Then the sweep is repeated, on the clock. */
static void drive_and_sweep(struct bench_run *r, const noh_actor *drivers, noh_actor sweeper)
{
	int64_t want = (int64_t)(r->n / DRIVERS * DRIVERS), sum = -1;

	bench_begin(r);
	for (unsigned i = 0; i < DRIVERS; i++)
		bench_send(r, drivers[i], GO, NULL, 0);
	bench_wait(r, DRIVERS);
	double driven = (double)(cli_now_ns() - r->began);
	for (unsigned i = 0; i < 3 && sum != want; i++)
		sum = sweep(r, sweeper);
	bench_end(r, (uint64_t)want + 2 * r->actors);
	bench_same(r, "the sum of all counters", sum, want);
	snprintf(r->out.note, sizeof r->out.note, "increments alone %.1f ns",
		 driven / (double)want);
}

void bench_random_counters(struct bench_run *r)
{
	static struct field field;
	noh_type counter = bench_type("counter", sizeof(struct counter), counter_message, NULL);
	noh_type driver = bench_type("driver", sizeof(struct driver), driver_message, &field);
	noh_type sweeper = bench_type("sweeper", sizeof(struct sweeper), sweeper_message, &field);
	noh_actor drivers[DRIVERS];

	driver.on_activate = driver_activate;
	bench_register(r, &counter);
	bench_register(r, &driver);
	bench_register(r, &sweeper);
	bench_start(r);
	field = (struct field){ bench_memory(r, r->actors * sizeof *field.counters), r->gather,
				r->actors, r->n / DRIVERS, r->seed };
	for (unsigned i = 0; i < DRIVERS; i++)
		drivers[i] = bench_ref(r, "driver", i + 1);
	noh_actor all = bench_ref(r, "sweeper", 1);

	uint64_t before = cli_rss_anon();
	for (uint64_t i = 0; i < r->actors; i++)
		field.counters[i] = bench_ref(r, "counter", i);
	bench_same(r, "the sum before the start", sweep(r, all), 0);
	drive_and_sweep(r, drivers, all);
	r->out.bytes_per_actor = (double)(cli_rss_anon() - before) / (double)r->actors;
	free(field.counters);
}
