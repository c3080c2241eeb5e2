/* bench/supervise.c - one supervisor, many children, some of them failing: what do the others lose?
 *
 * Drivers add to random children as fast as they can. A thread outside sends one more message to one child in a hundred every
 * second: in calm stretches another addition, in stormy ones a message at which the child fails: its turn is undone, it
 * backs off and is restarted, and its message comes again. A calm and a stormy stretch of a fifth of a second are a pair, n tenths
 * of a second of each kind in all; in every other pair the storm comes first. A stretch is timed when it has run for one
 * back-off: from then on as many come back as fail. What stormy ones leave behind is over before the next one begins.
 *
 * What is reported: how much less the children handled in the stormy stretch of a pair, and how much more CPU time a message took,
 * both of the middle pair: the machine's own ups and downs, which are longer than a pair, are in neither; the CPU
 * time of one failure with its restart (many children fail at once, nothing else runs; this alone is the benchmark restart); and
 * how restarts spread over the back-off, in tenths of its 100 ms.
 *
 * No child fails twice within the minute in which its back-off grows: in that time the drivers would fill its mailbox, and wait
 * for it. That is what a mailbox that blocks is for, and no loss of the others' (docs/notes/supervision.md).
 */
#include "bench/bench.h"
#include "tools/cli.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ADD, FAIL, SPAWN_ALL, GO };
enum { RUN = 64, DRIVERS = 2, TENTHS = 10, BASE_MS = 100, STRETCH = 2, STRIDE = 48271 };

struct child { int64_t sum; };
struct boss { uint64_t at; };
struct driver { uint64_t rng, sent; };
struct sum { uint64_t messages, ns; double cpu; };
struct pairs { double *rate, *cpu; uint64_t count; };    /* stormy by calm */

static struct {
	noh_actor       *children;
	_Atomic uint8_t *failed;            /* by child: its FAIL has failed once                */
	_Atomic uint64_t *failed_ns;        /* and when                                          */
	uint64_t         n, next, failures;
	uint64_t         sent;              /* in all                                            */
	noh_actor        gather;
	_Atomic bool     over;
	_Atomic uint64_t again, tenths[TENTHS + 1];      /* FAILs handled at last; how long after they failed */
} yard;

static int child_message(noh_turn *turn, const noh_msg *msg)
{
	struct child *me = noh_state(turn);
	uint64_t id;

	if (msg->kind == ADD) {
		me->sum += *(const int64_t *)msg->body;
		return NOH_OK;
	}
	memcpy(&id, msg->body, sizeof id);
	if (!atomic_exchange(&yard.failed[id], 1)) {
		atomic_store(&yard.failed_ns[id], cli_now_ns());
		return NOH_EFAILED;
	}
	uint64_t tenth = (cli_now_ns() - atomic_load(&yard.failed_ns[id])) / (BASE_MS * 1000000u / TENTHS);

	atomic_fetch_add(&yard.tenths[tenth < TENTHS ? tenth : TENTHS], 1);
	atomic_store(&yard.failed[id], 0);
	atomic_fetch_add(&yard.again, 1);
	return NOH_OK;
}

static int boss_message(noh_turn *turn, const noh_msg *msg)
{
	struct boss *me = noh_state(turn);
	char address[64];

	for (unsigned i = 0; i < RUN && me->at < yard.n; i++, me->at++) {
		bench_address(address, "child", me->at);
		int rc = noh_spawn(turn, address, &yard.children[me->at]);
		if (rc != NOH_OK)
			return rc;
	}
	if (me->at < yard.n)
		return noh_tell(turn, noh_self(turn), msg->kind, NULL, 0);
	return gather_add(turn, yard.gather, 1);
}

static int driver_message(noh_turn *turn, const noh_msg *msg)
{
	struct driver *me = noh_state(turn);
	int64_t one = 1, sent;

	if (me->rng == 0)
		me->rng = bench_seed(bench_id(turn) + 1);
	if (atomic_load_explicit(&yard.over, memory_order_relaxed)) {
		sent = (int64_t)me->sent;
		me->sent = 0;
		return gather_add(turn, yard.gather, sent);
	}
	for (unsigned i = 0; i < RUN; i++)
		if (noh_tell(turn, yard.children[bench_below(&me->rng, yard.n)], ADD, &one, sizeof one) == NOH_OK)
			me->sent++;
	return noh_tell(turn, noh_self(turn), msg->kind, NULL, 0);
}

/* Whom the thread outside writes to next. Each once, in no order that means anything; those that fail for the restart's CPU
 * time, the first ones, have had their turn. */
static uint64_t next_child(void)
{
	uint64_t first = yard.n / 10;

	return first + yard.next++ * STRIDE % (yard.n - first);
}

/* Until then, so many a second. */
static void send_some(struct bench_run *r, uint32_t kind, uint64_t until_ns, uint64_t a_second)
{
	uint64_t began = cli_now_ns(), sent = 0, now;

	while ((now = cli_now_ns()) < until_ns) {
		if (sent >= (now - began) * a_second / 1000000000u) {
			cli_sleep_ns(500000);
			continue;
		}
		uint64_t id = next_child(), body = kind == FAIL ? id : 1;

		bench_send(r, yard.children[id], kind, &body, sizeof body);
		sent++;
	}
	yard.sent += sent;
	if (kind == FAIL)
		yard.failures += sent;
}

static void wait_for_restarts(struct bench_run *r)
{
	for (unsigned i = 0; atomic_load(&yard.again) < yard.failures; i++) {
		if (i == 20000)
			bench_fail(r, "%llu of %llu children were restarted", (unsigned long long)atomic_load(&yard.again),
				   (unsigned long long)yard.failures);
		cli_sleep_ns(1000000);
	}
	bench_quiet(r);
}

/* The first so many of them, together. CPU seconds of one failure and its restart. */
static double fail_at_once(struct bench_run *r, uint64_t many)
{
	double cpu = cli_cpu_seconds();

	for (uint64_t id = 0; id < many; id++)
		bench_send(r, yard.children[id], FAIL, &id, sizeof id);
	yard.sent = yard.failures = many;
	wait_for_restarts(r);
	return (cli_cpu_seconds() - cpu) / (double)many;
}

static uint64_t handled(struct bench_run *r)
{
	noh_type_stats s;

	bench_must(r, noh_get_type_stats(r->box, "child", &s), "reading the counters");
	return s.handled;
}

/* A message in the hands of a worker without a core is counted nowhere: wait for what was sent. */
static void wait_for_all(struct bench_run *r)
{
	uint64_t until = cli_now_ns() + 10ull * 1000000000u;

	while (handled(r) < yard.sent && cli_now_ns() < until)
		cli_sleep_ns(200000);
	bench_same(r, "messages handled", (int64_t)handled(r), (int64_t)yard.sent);
}

/* What the children did in so many tenths of a second, while one in a hundred got a message of this kind every second. */
static struct sum stretch(struct bench_run *r, uint64_t tenths, uint32_t kind)
{
	struct sum before, did;

	atomic_store(&yard.over, false);
	for (unsigned i = 0; i < DRIVERS; i++)
		bench_send(r, bench_ref(r, "driver", i), GO, NULL, 0);
	send_some(r, kind, cli_now_ns() + BASE_MS * 1000000u, yard.n / 100);
	before = (struct sum){ handled(r), cli_now_ns(), cli_cpu_seconds() };
	send_some(r, kind, before.ns + tenths * 100000000u, yard.n / 100);
	did = (struct sum){ handled(r) - before.messages, cli_now_ns() - before.ns, cli_cpu_seconds() - before.cpu };
	atomic_store(&yard.over, true);
	yard.sent += (uint64_t)bench_wait(r, DRIVERS).sums[0];
	wait_for_restarts(r);
	wait_for_all(r);
	return did;
}

static void add(struct sum *to, const struct sum *did)
{
	to->messages += did->messages;
	to->ns += did->ns;
	to->cpu += did->cpu;
}

/* What drifts is for the one in half of the pairs, and for the other in the rest. */
static void pair(struct bench_run *r, uint64_t tenths, struct pairs *p, struct sum *all)
{
	bool storm_first = p->count % 2;
	struct sum first = stretch(r, tenths, storm_first ? FAIL : ADD), second = stretch(r, tenths, storm_first ? ADD : FAIL);
	const struct sum *calm = storm_first ? &second : &first, *storm = storm_first ? &first : &second;

	add(all, calm);
	add(all, storm);
	if (!calm->messages || !storm->messages) /* the box had no core */
		return;
	p->rate[p->count] = (double)storm->messages / (double)storm->ns / ((double)calm->messages / (double)calm->ns);
	p->cpu[p->count++] = storm->cpu / (double)storm->messages / (calm->cpu / (double)calm->messages);
}

/* How long after it failed a child was back, in tenths of the longest it may take; the last: later. */
static void note_tenths(struct bench_run *r, int at)
{
	uint64_t all = 0;

	for (unsigned i = 0; i <= TENTHS; i++)
		all += yard.tenths[i];
	for (unsigned i = 0; i <= TENTHS; i++)
		at += snprintf(r->out.note + at, sizeof r->out.note - (size_t)at, " %.0f", 100.0 * (double)yard.tenths[i] / (double)all);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double middle(double *list, uint64_t count)
{
	qsort(list, count, sizeof *list, by_size);
	return (list[(count - 1) / 2] + list[count / 2]) / 2;
}

static void report(struct bench_run *r, struct pairs *p, double restart)
{
	if (!p->count)
		bench_fail(r, "no two stretches in which anything was handled");
	note_tenths(r, snprintf(r->out.note, sizeof r->out.note,
				"%.1f %% lost (CPU %+.1f %%), restart %.1f us, back-off by tenths %%:",
				100.0 - 100.0 * middle(p->rate, p->count), 100.0 * middle(p->cpu, p->count) - 100.0, restart * 1e6));
}

/* A supervisor and its children, all of them there. */
static void raise_family(struct bench_run *r)
{
	static const noh_supervision patient = { .base_ms = BASE_MS, .restarts = NOH_NEVER };
	noh_type child = bench_type("child", sizeof(struct child), child_message, NULL);
	noh_type boss = bench_type("boss", sizeof(struct boss), boss_message, NULL);
	noh_type driver = bench_type("driver", sizeof(struct driver), driver_message, NULL);

	r->quiet = true;                         /* each failure is a line in the log */
	child.supervision = boss.supervision = &patient;
	bench_register(r, &child);
	bench_register(r, &boss);
	bench_register(r, &driver);
	bench_start(r);
	yard.n = r->actors;
	yard.gather = r->gather;
	yard.children = bench_memory(r, r->actors * sizeof *yard.children);
	yard.failed = bench_memory(r, r->actors * sizeof *yard.failed);
	yard.failed_ns = bench_memory(r, r->actors * sizeof *yard.failed_ns);
	bench_send(r, bench_ref(r, "boss", 1), SPAWN_ALL, NULL, 0);
	bench_wait(r, 1);
	bench_quiet(r);
}

void bench_supervise(struct bench_run *r)
{
	uint64_t most = (r->n + STRETCH - 1) / STRETCH;
	struct pairs pairs = { .count = 0 };
	struct sum all = { .ns = 0 };
	double restart;

	raise_family(r);
	pairs.rate = bench_memory(r, most * sizeof *pairs.rate);
	pairs.cpu = bench_memory(r, most * sizeof *pairs.cpu);
	restart = fail_at_once(r, yard.n / 10);
	(void)stretch(r, STRETCH, ADD);          /* everybody is warm */
	bench_begin(r);
	for (uint64_t left = r->n, some; left; left -= some) {
		some = left < STRETCH ? left : STRETCH;
		pair(r, some, &pairs, &all);
	}
	bench_end(r, all.messages);
	r->out.seconds = (double)all.ns * 1e-9;  /* what was timed */
	report(r, &pairs, restart);
}

void bench_restart(struct bench_run *r)
{
	double restart;

	if (r->n > r->actors)
		bench_fail(r, "there are only %llu children to fail", (unsigned long long)r->actors);
	raise_family(r);
	bench_begin(r);
	restart = fail_at_once(r, r->n);
	bench_end(r, r->n);
	note_tenths(r, snprintf(r->out.note, sizeof r->out.note, "%.1f us of CPU each, back-off by tenths %%:", restart * 1e6));
}
