/* bench/stuck.c - one actor spins in its turn: how long do the others wait?
 *
 * Four kinds of neighbours are watched while one worker is stuck for n milliseconds:
 *     calls   to actors that were active before        new     calls to addresses never used
 *     hops    between actors, tokens in eight rings    timers  two hundred, due every 5 ms
 * The delay of a call or hop runs from its send, that of a timer from its due time. What is
 * reported is the worst of each.
 */
#include "bench/bench.h"
#include "bench/hist.h"
#include "tools/cli.h"

#include <stdatomic.h>

enum { SPIN, CALL, HOP, ARM, TICK };
enum { CALLED = 200, TIMED = 200, RINGS = 8, RING = 10, HOPS = 100, TICK_MS = 5 };
enum { CALLS, NEW, HOPPED, TIMERS, KINDS };

static struct {
	noh_actor    rings[RINGS][RING];
	_Atomic uint64_t worst[KINDS], seen[KINDS];
	_Atomic uint64_t pending;      /* calls not yet answered */
	_Atomic int  failed;           /* the last bad status of a call */
	_Atomic bool watching, over;
} yard;

static void watched(unsigned kind, uint64_t since)
{
	uint64_t now = cli_now_ns(), delay = now > since ? now - since : 0;
	uint64_t worst = atomic_load_explicit(&yard.worst[kind], memory_order_relaxed);

	if (!atomic_load_explicit(&yard.watching, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&yard.seen[kind], 1, memory_order_relaxed);
	while (delay > worst && !atomic_compare_exchange_weak(&yard.worst[kind], &worst, delay))
		continue;
}

static int spinner_message(noh_turn *turn, const noh_msg *msg)
{
	uint64_t until = cli_now_ns() + *(const uint64_t *)msg->body * 1000000u;

	while (cli_now_ns() < until && !noh_cancelled(turn))
		continue;
	return NOH_OK;
}

static int called_message(noh_turn *turn, const noh_msg *msg)
{
	return noh_reply(turn, msg->body, msg->len);
}

struct token { uint64_t ring, left, sent; };

static int hopper_message(noh_turn *turn, const noh_msg *msg)
{
	struct token token = *(const struct token *)msg->body;

	watched(HOPPED, token.sent);
	if (token.left == 0)
		return NOH_OK;
	token.left--;
	token.sent = cli_now_ns();
	return noh_tell(turn, yard.rings[token.ring][token.left % RING], HOP, &token, sizeof token);
}

struct timed { uint64_t due; };

static int timed_message(noh_turn *turn, const noh_msg *msg)
{
	struct timed *me = noh_state(turn);

	if (msg->kind == TICK)
		watched(TIMERS, me->due);
	if (atomic_load_explicit(&yard.over, memory_order_relaxed))
		return NOH_OK;
	me->due = cli_now_ns() + TICK_MS * 1000000u;
	return noh_schedule_once(turn, TICK, TICK_MS);
}

struct query { uint64_t sent; unsigned kind; };

static void answered(void *user, int status, const void *answer, size_t len)
{
	if (status != NOH_OK || len != sizeof(struct query))
		atomic_store(&yard.failed, status != NOH_OK ? status : NOH_EFAILED);
	else
		watched(((const struct query *)answer)->kind, ((const struct query *)answer)->sent);
	(void)user;
	atomic_fetch_sub(&yard.pending, 1);
}

static void query(struct bench_run *r, unsigned kind, uint64_t id)
{
	struct query q = { cli_now_ns(), kind };
	char address[64];

	bench_address(address, "called", id);
	atomic_fetch_add(&yard.pending, 1);
	bench_must(r, noh_call_then(r->box, address, CALL, &q, sizeof q, 10000, answered, NULL),
		   "calling an actor");
}

/* One millisecond's worth of work for the neighbours. */
static void disturb(struct bench_run *r, uint64_t ms)
{
	for (uint64_t k = 0; k < 4; k++)
		query(r, CALLS, (ms * 4 + k) % CALLED);
	query(r, NEW, CALLED + ms);
	for (unsigned i = 0; i < RINGS; i++) {
		struct token t = { i, HOPS, cli_now_ns() };
		bench_send(r, yard.rings[i][0], HOP, &t, sizeof t);
	}
}

static void start_neighbours(struct bench_run *r)
{
	for (uint64_t i = 0; i < RINGS * RING; i++)
		yard.rings[i / RING][i % RING] = bench_ref(r, "hopper", i);
	for (uint64_t i = 0; i < TIMED; i++)
		bench_send(r, bench_ref(r, "timed", i), ARM, NULL, 0);
	for (uint64_t i = 0; i < CALLED; i++)
		query(r, CALLS, i);
}

static void report(struct bench_run *r)
{
	double worst[KINDS];

	for (unsigned i = 0; i < KINDS; i++) {
		uint64_t ns = atomic_load(&yard.worst[i]);

		worst[i] = (double)ns * 1e-6;
		if (ns > r->out.worst_ns)
			r->out.worst_ns = ns;
		r->out.ops += atomic_load(&yard.seen[i]);
		if (atomic_load(&yard.seen[i]) == 0)
			bench_fail(r, "one kind of neighbour was never heard of");
	}
	snprintf(r->out.note, sizeof r->out.note,
		 "worst delay, ms: calls %.1f, new %.1f, hops %.1f, timers %.1f",
		 worst[CALLS], worst[NEW], worst[HOPPED], worst[TIMERS]);
}

void bench_stuck(struct bench_run *r)
{
	noh_type types[] = {
		bench_type("spinner", 0, spinner_message, NULL),
		bench_type("called", 0, called_message, NULL),
		bench_type("hopper", 0, hopper_message, NULL),
		bench_type("timed", sizeof(struct timed), timed_message, NULL),
	};
	uint64_t ms = 0;

	r->quiet = true;     /* the watchdog reports the long turn: that is the plan */
	for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
		bench_register(r, &types[i]);
	bench_start(r);
	start_neighbours(r);
	cli_sleep_ns(50000000u);

	atomic_store(&yard.watching, true);
	bench_begin(r);
	bench_send(r, bench_ref(r, "spinner", 1), SPIN, &r->n, sizeof r->n);
	for (; ms < r->n; ms++) {
		disturb(r, ms);
		cli_sleep_ns(1000000u);
		if ((cli_now_ns() - r->began) / 1000000u > ms)
			ms = (cli_now_ns() - r->began) / 1000000u;
	}
	cli_sleep_ns(50000000u);
	for (unsigned i = 0; atomic_load(&yard.pending) != 0 && i < 10000; i++)
		cli_sleep_ns(1000000u);
	bench_end(r, 0);
	atomic_store(&yard.watching, false);
	atomic_store(&yard.over, true);
	bench_same(r, "calls without an answer", (int64_t)atomic_load(&yard.pending), 0);
	bench_must(r, atomic_load(&yard.failed), "a call");
	report(r);
}
