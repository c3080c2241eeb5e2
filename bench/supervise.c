/* bench/supervise.c - one supervisor, many children, some of them failing: what do the others lose?
 *
 * Drivers add to random children as fast as they can, for n tenths of a second in all, half a second at a time. In between,
 * for as long, the same while one child in a
 * hundred fails every second: its turn is undone, it backs off and is restarted, and its message comes again. What is
 * reported: by how much the drivers were slower the second time; the CPU time of one failure with its restart (many
 * children fail at once, nothing else runs); and how restarts spread over the back-off, in tenths of its 100 ms.
 */
#include "bench/bench.h"
#include "tools/cli.h"

#include <stdatomic.h>

enum { ADD, FAIL, SPAWN_ALL, GO };
enum { RUN = 64, DRIVERS = 2, TENTHS = 10, BASE_MS = 100, STRETCH = 5 };

struct child { int64_t sum; };
struct boss { uint64_t at; };
struct driver { uint64_t rng, sent; };

static struct {
	noh_actor       *children;
	_Atomic uint8_t *failed;            /* by child: its FAIL has failed once                */
	_Atomic uint64_t *failed_ns;        /* and when                                          */
	uint64_t         n;
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
	id = bench_id(turn);
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

/* Children that fail, one after the other at this rate; 0: as fast as they can be sent. Returns how many. */
static uint64_t fail_some(struct bench_run *r, uint64_t until_ns, uint64_t most, uint64_t a_second)
{
	uint64_t rng = bench_seed(r->seed + 7), began = cli_now_ns(), sent = 0;

	while (sent < most && cli_now_ns() < until_ns) {
		if (a_second && sent >= (cli_now_ns() - began) * a_second / 1000000000u) {
			cli_sleep_ns(500000);
			continue;
		}
		/* One that has failed already is left to itself. */
		uint64_t id = a_second ? bench_below(&rng, yard.n) : sent;
		if (atomic_load(&yard.failed[id]))
			continue;
		bench_send(r, yard.children[id], FAIL, NULL, 0);
		sent++;
	}
	return sent;
}

static void wait_for_restarts(struct bench_run *r, uint64_t sent)
{
	for (unsigned i = 0; atomic_load(&yard.again) < sent; i++) {
		if (i == 20000)
			bench_fail(r, "%llu of %llu children were restarted", (unsigned long long)atomic_load(&yard.again),
				   (unsigned long long)sent);
		cli_sleep_ns(1000000);
	}
	bench_quiet(r);
}

/* Messages the drivers sent in so many tenths of a second. */
static uint64_t drive(struct bench_run *r, uint64_t tenths, uint64_t *failures)
{
	uint64_t until = cli_now_ns() + tenths * 100000000u;

	atomic_store(&yard.over, false);
	for (unsigned i = 0; i < DRIVERS; i++)
		bench_send(r, bench_ref(r, "driver", i), GO, NULL, 0);
	if (failures)
		*failures += fail_some(r, until, UINT64_MAX, yard.n / 100);
	while (cli_now_ns() < until)
		cli_sleep_ns(1000000);
	atomic_store(&yard.over, true);
	return (uint64_t)bench_wait(r, DRIVERS).sums[0];
}

void bench_supervise(struct bench_run *r)
{
	static const noh_supervision patient = { .base_ms = BASE_MS, .restarts = NOH_NEVER };
	noh_type child = bench_type("child", sizeof(struct child), child_message, NULL);
	noh_type boss = bench_type("boss", sizeof(struct boss), boss_message, NULL);
	noh_type driver = bench_type("driver", sizeof(struct driver), driver_message, NULL);
	uint64_t failures = 0, many = r->actors / 10, calm = 0, storm = 0, all = 0;
	double cpu;

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

	cpu = cli_cpu_seconds();
	failures = fail_some(r, UINT64_MAX, many, 0);
	wait_for_restarts(r, failures);
	cpu = (cli_cpu_seconds() - cpu) / (double)failures;
	(void)drive(r, STRETCH, NULL);           /* everybody is warm */
	bench_begin(r);
	for (uint64_t left = r->n, some; left; left -= some) {
		some = left < STRETCH ? left : STRETCH;
		calm += drive(r, some, NULL);
		storm += drive(r, some, &failures);
	}
	bench_end(r, calm + storm);
	wait_for_restarts(r, failures);
	for (unsigned i = 0; i <= TENTHS; i++)
		all += yard.tenths[i];
	int at = snprintf(r->out.note, sizeof r->out.note, "%.1f %% lost, restart %.1f us, back-off by tenths %%:",
			  100.0 - 100.0 * (double)storm / (double)calm, cpu * 1e6);

	for (unsigned i = 0; i <= TENTHS; i++)
		at += snprintf(r->out.note + at, sizeof r->out.note - (size_t)at, " %.0f", 100.0 * (double)yard.tenths[i] / (double)all);
}
