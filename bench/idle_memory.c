/* bench/idle_memory.c - what an actor costs that does nothing.
 *
 * A million counters with twelve-character ids get one message each and go quiet. RssAnon before
 * and after, divided: cell, address, directory, timer, everything. Then (full size, first
 * repetition) nobody does anything for ten seconds and the process' CPU time is read. At the end
 * every counter is asked, by address.
 */
#include "bench/bench.h"
#include "tools/cli.h"

enum { ADD, GET, ADD_ALL, GET_ALL };
enum { RUN = 64, SETTLE_MS = 300, IDLE_MS = 10000 };

struct village { noh_actor gather; uint64_t n; };
struct visitor { uint64_t at; };
struct counter { int64_t sum; };

static int counter_message(noh_turn *turn, const noh_msg *msg)
{
	if (msg->kind == GET) {
		const struct counter *me = noh_look(turn);
		return gather_add(turn, *(const noh_actor *)msg->body, me->sum);
	}
	struct counter *me = noh_state(turn);

	me->sum += *(const int64_t *)msg->body;
	return NOH_OK;
}

/* Goes from door to door, in runs. */
static int visitor_message(noh_turn *turn, const noh_msg *msg)
{
	const struct village *village = noh_user(turn);
	struct visitor *me = noh_state(turn);
	bool add = msg->kind == ADD_ALL;
	int64_t one = 1;
	char address[64];

	for (unsigned i = 0; i < RUN && me->at < village->n; i++) {
		bench_address(address, "counter", me->at++);
		int rc = add ? noh_tell_to(turn, address, ADD, &one, sizeof one)
			     : noh_tell_to(turn, address, GET, &village->gather,
				   sizeof village->gather);
		if (rc != NOH_OK)
			return rc;
	}
	if (me->at < village->n)
		return noh_tell(turn, noh_self(turn), msg->kind, NULL, 0);
	me->at = 0;
	return add ? gather_add(turn, village->gather, (int64_t)village->n) : NOH_OK;
}

static void measure_idle(struct bench_run *r)
{
	double cpu = cli_cpu_seconds();

	cli_sleep_ns((uint64_t)IDLE_MS * 1000000u);
	r->out.idle_cpu_ms = (cli_cpu_seconds() - cpu) * 1e3;
	snprintf(r->out.note, sizeof r->out.note, "idle: %.1f ms of CPU in %d s",
		 r->out.idle_cpu_ms, IDLE_MS / 1000);
}

void bench_idle_memory(struct bench_run *r)
{
	static struct village village;
	noh_type counter = bench_type("counter", sizeof(struct counter), counter_message, NULL);
	noh_type visitor = bench_type("visitor", sizeof(struct visitor), visitor_message, &village);
	noh_type_stats stats;

	bench_register(r, &counter);
	bench_register(r, &visitor);
	bench_start(r);
	village = (struct village){ r->gather, r->n };
	noh_actor guest = bench_ref(r, "visitor", 1);
	uint64_t before = cli_rss_anon();

	bench_begin(r);
	bench_send(r, guest, ADD_ALL, NULL, 0);
	bench_wait(r, 1);
	bench_quiet(r);
	bench_end(r, r->n);
	if (!r->smoke)
		cli_sleep_ns((uint64_t)SETTLE_MS * 1000000u);
	r->out.bytes_per_actor = (double)(cli_rss_anon() - before) / (double)r->n;
	if (!r->smoke && r->rep == 0)
		measure_idle(r);

	bench_must(r, noh_get_type_stats(r->box, "counter", &stats), "reading the counters");
	bench_same(r, "activations", (int64_t)stats.activations, (int64_t)r->n);
	bench_same(r, "deactivations", (int64_t)stats.deactivations, 0);
	bench_send(r, guest, GET_ALL, NULL, 0);
	bench_same(r, "the sum of all counters", bench_wait(r, r->n).sums[0], (int64_t)r->n);
}
