/* bench/durable_sustain.c - does the keeper keep up?
 *
 * durable-sustain   n seconds of uniform durable increments over 5 M stored counters, as fast as the box
 *                   takes them. Every second the journal's unfolded bytes and the process's memory are
 *                   looked at; the latency of calls is kept apart by whether a fold ran in that second. One
 *                   op is one call, p50 and p99 are those while folding; the note has the largest journal, the
 *                   growth of memory over the second half, and p99 against that while not folding.
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

static struct {
	_Atomic uint64_t answered;
	_Atomic int      failed;
	_Atomic unsigned second;            /* whose histogram the next answers go to */
	struct hist     *by_second;         /* one per second; the worker that answers writes: roughly right */
} run;

static void answered(void *user, int status, const void *answer, size_t len)
{
	uint64_t began = (uint64_t)(uintptr_t)user;

	(void)answer;
	(void)len;
	if (status != NOH_OK)
		atomic_store(&run.failed, status);
	hist_add(&run.by_second[atomic_load_explicit(&run.second, memory_order_relaxed)],
		 cli_now_ns() - began);
	atomic_fetch_add_explicit(&run.answered, 1, memory_order_relaxed);
}

static void one_second(struct bench_run *r, uint64_t *sent, uint64_t *random, uint64_t until)
{
	int64_t one = 1;
	char address[64];
	int rc;

	while (cli_now_ns() < until) {
		uint64_t now = cli_now_ns();

		if (*sent - atomic_load_explicit(&run.answered, memory_order_relaxed) >= UNDER_WAY) {
			cli_sleep_ns(50000);
			continue;
		}
		bench_address(address, "counter", bench_below(random, r->actors));
		rc = noh_call_then(r->box, address, ADD, &one, sizeof one, 100000, answered,
				   (void *)(uintptr_t)now);
		if (rc == NOH_FULL) {
			cli_sleep_ns(50000);
			continue;
		}
		bench_must(r, rc, "calling");
		++*sent;
	}
	if (atomic_load(&run.failed))
		bench_fail(r, "a call failed: %s", noh_strerror(atomic_load(&run.failed)));
}

void bench_durable_sustain(struct bench_run *r)
{
	static struct hist folding, quiet;
	char dir[4096];
	uint64_t sent = 0, random = bench_seed(r->seed), journal = 0, memory = 0;
	noh_box_stats s;
	uint64_t folds;

	run.by_second = bench_memory(r, (r->n + 1) * sizeof *run.by_second);
	alarm((unsigned)r->n + 300);
	noh_close(r->box);
	durable_open(r, durable_dir(r, dir, sizeof dir), durable_counter());
	(void)durable_calls(r, r->actors, r->actors, true, ADD);
	bench_must(r, noh_get_stats(r->box, &s), "reading the counters");
	folds = s.folds;
	bench_begin(r);
	for (uint64_t i = 0; i < r->n; i++) {
		atomic_store(&run.second, (unsigned)i);
		one_second(r, &sent, &random, r->began + (i + 1) * 1000000000u);
		bench_must(r, noh_get_stats(r->box, &s), "reading the counters");
		hist_merge(s.folds != folds || s.folding ? &folding : &quiet, &run.by_second[i]);
		folds = s.folds;
		journal = s.journal_unfolded > journal ? s.journal_unfolded : journal;
		if (i == r->n / 2)
			memory = cli_rss_anon();
	}
	while (atomic_load(&run.answered) < sent)
		cli_sleep_ns(100000);
	bench_end(r, sent);
	r->out.p50_ns = hist_at(folding.count ? &folding : &quiet, 0.5);
	r->out.p99_ns = hist_at(folding.count ? &folding : &quiet, 0.99);
	char apart[48] = "a fold ran all the time";

	if (quiet.count)
		snprintf(apart, sizeof apart, "p99 folding %.1f times that while not",
			 (double)r->out.p99_ns / (double)(hist_at(&quiet, 0.99) ? hist_at(&quiet, 0.99) : 1));
	snprintf(r->out.note, sizeof r->out.note, "journal <= %.0f MB, memory %+.0f MB; %s",
		 (double)journal * 1e-6, ((double)cli_rss_anon() - (double)memory) * 1e-6, apart);
	free(run.by_second);
	if (!r->smoke)
		durable_remove(dir);
	else
		r->rubbish = strdup(dir);
}
