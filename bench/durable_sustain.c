/* bench/durable_sustain.c - does the keeper keep up?
 *
 * durable-sustain   n seconds of uniform durable increments over 5 M stored counters. In the first quarter as fast
 *                   as the box takes them: that is what the keeper sustains, by back-pressure. Then at four fifths of
 *                   it, at intended times, so that folds begin and end; calls are kept apart by whether one runs, and
 *                   a late one counts from when it was to begin. One op is one call, p50 and p99 are those while
 *                   folding; the note has the largest journal, the growth of memory since the first quarter, and
 *                   p99 against that while not folding.
 */
#include "bench/durable.h"
#include "bench/hist.h"
#include "tools/cli.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADD };
enum { UNDER_WAY = 8192 };

#define LOOK_NS 5000000u                    /* between two looks at the box */

static struct {
	_Atomic uint64_t answered;
	_Atomic int      failed;
	_Atomic int      folding;           /* a fold runs: whose histogram the next answers go to */
	struct hist      quiet, busy;       /* the worker that answers writes: roughly right */
	uint64_t         sent, random, journal;
} run;

static void answered(void *user, int status, const void *answer, size_t len)
{
	uint64_t began = (uint64_t)(uintptr_t)user;

	(void)answer;
	(void)len;
	if (status != NOH_OK)
		atomic_store(&run.failed, status);
	hist_add(atomic_load_explicit(&run.folding, memory_order_relaxed) ? &run.busy : &run.quiet, cli_now_ns() - began);
	atomic_fetch_add_explicit(&run.answered, 1, memory_order_relaxed);
}

static void look(struct bench_run *r)
{
	noh_box_stats s;

	bench_must(r, noh_get_stats(r->box, &s), "reading the counters");
	atomic_store_explicit(&run.folding, s.folding, memory_order_relaxed);
	run.journal = s.journal_unfolded > run.journal ? s.journal_unfolded : run.journal;
	if (atomic_load(&run.failed))
		bench_fail(r, "a call failed: %s", noh_strerror(atomic_load(&run.failed)));
}

/* One call that was to begin then. False: not now. */
static bool call(struct bench_run *r, uint64_t began)
{
	int64_t one = 1;
	char address[64];
	int rc = NOH_FULL;

	if (run.sent - atomic_load_explicit(&run.answered, memory_order_relaxed) < UNDER_WAY) {
		bench_address(address, "counter", bench_below(&run.random, r->actors));
		rc = noh_call_then(r->box, address, ADD, &one, sizeof one, 100000, answered, (void *)(uintptr_t)began);
	}
	if (rc == NOH_FULL)
		return false;
	bench_must(r, rc, "calling");
	run.sent++;
	return true;
}

/* rate: calls a second; 0: as many as it takes. Returns how many it took. */
static double go_on(struct bench_run *r, uint64_t seconds, double rate)
{
	uint64_t start = cli_now_ns(), until = start + seconds * 1000000000u, looked = 0, first = run.sent, now;

	while ((now = cli_now_ns()) < until) {
		uint64_t intended = rate > 0 ? start + (uint64_t)((double)(run.sent - first) / rate * 1e9) : now;

		if (now - looked >= LOOK_NS) {
			looked = now;
			look(r);
		}
		if (intended > now || !call(r, intended))
			cli_sleep_ns(50000);
	}
	return (double)(run.sent - first) / (double)seconds;
}

void bench_durable_sustain(struct bench_run *r)
{
	char dir[4096], apart[64] = "a fold ran all the time";
	uint64_t first = r->n / 4 ? r->n / 4 : 1, memory;
	double most;

	memset(&run, 0, sizeof run);
	run.random = bench_seed(r->seed);
	alarm((unsigned)r->n + 300);
	noh_close(r->box);
	durable_open(r, durable_dir(r, dir, sizeof dir), durable_counter());
	(void)durable_calls(r, r->actors, r->actors, true, ADD);
	bench_begin(r);
	most = go_on(r, first, 0);
	memory = cli_rss_anon();
	memset(&run.quiet, 0, sizeof run.quiet);         /* only what came at its time is told */
	memset(&run.busy, 0, sizeof run.busy);
	(void)go_on(r, r->n - first, most * 0.8);
	while (atomic_load(&run.answered) < run.sent)
		cli_sleep_ns(100000);
	bench_end(r, run.sent);
	const struct hist *told = run.busy.count ? &run.busy : &run.quiet;

	r->out.p50_ns = hist_at(told, 0.5);
	r->out.p99_ns = hist_at(told, 0.99);
	if (run.quiet.count)
		snprintf(apart, sizeof apart, "p99 folding %.1f times that while not, %.1f ms",
			 (double)r->out.p99_ns / (double)(hist_at(&run.quiet, 0.99) ? hist_at(&run.quiet, 0.99) : 1),
			 (double)hist_at(&run.quiet, 0.99) * 1e-6);
	snprintf(r->out.note, sizeof r->out.note, "sustains %.0f k/s; at 0.8 of that journal <= %.0f MB, memory %+.0f MB, %s",
		 most * 1e-3, (double)run.journal * 1e-6, ((double)cli_rss_anon() - (double)memory) * 1e-6, apart);
	durable_done(r, dir);
}
