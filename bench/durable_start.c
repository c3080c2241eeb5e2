/* bench/durable_start.c - a box with millions of stored actors: how soon it answers, how fast they wake.
 *
 * durable-start     n counters are stored by a process that stops cleanly; then, with a warm page cache,
 *                   from noh_open to the first answer. Then a process updates until there is as much to
 *                   replay as the keeper lets be, and is killed: the same once more.
 *                   One op is one start; the note has both times, and how fast the journal was replayed.
 * durable-activate  n stored counters are called in random order: each call activates one of them.
 */
#include "bench/durable.h"
#include "tools/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADD, GET };

/* In a process of its own: memory and page tables of the writer are not the reader's. */
static void in_child(struct bench_run *r, const char *dir, void (*work)(struct bench_run *r))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		durable_open(r, dir, durable_counter());
		work(r);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (pid < 0 || !(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0))
		bench_fail(r, "the process that fills the directory failed");
}

static void store_all(struct bench_run *r)
{
	(void)durable_calls(r, r->n, r->n, true, ADD);
	bench_must(r, noh_stop(r->box, 240000), "stopping the box");
	noh_close(r->box);
}

static uint64_t *unfolded;              /* shared with the process that is killed */

static void fill_journal(struct bench_run *r)
{
	uint64_t want = r->smoke ? 100000 : 56u << 20;
	noh_box_stats s;

	for (int i = 0; i < 200; i++) {
		(void)durable_calls(r, r->smoke ? 2000 : 100000, r->n, false, ADD);
		bench_must(r, noh_get_stats(r->box, &s), "reading the counters");
		*unfolded = s.journal_unfolded;
		if (s.journal_unfolded >= want)
			break;
	}
	raise(SIGKILL);
}

static double start(struct bench_run *r, const char *dir)
{
	uint64_t began = cli_now_ns();
	int64_t sum = 0, none = 0;
	size_t len = sizeof sum;
	char address[64];

	durable_open(r, dir, durable_counter());
	bench_address(address, "counter", r->n / 2);
	bench_must(r, noh_call(r->box, address, GET, &none, sizeof none, 60000, &sum, &len), "the first call");
	if (sum < 1)
		bench_fail(r, "%s is %lld after the start", address, (long long)sum);
	return (double)(cli_now_ns() - began) * 1e-9;
}

void bench_durable_start(struct bench_run *r)
{
	char dir[4096];
	double clean, killed;

	unfolded = mmap(NULL, sizeof *unfolded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (unfolded == MAP_FAILED)
		bench_fail(r, "no shared memory");
	alarm(900);
	noh_close(r->box);
	in_child(r, durable_dir(r, dir, sizeof dir), store_all);
	clean = start(r, dir);
	noh_close(r->box);
	in_child(r, dir, fill_journal);
	killed = start(r, dir);
	r->out.seconds = clean;
	r->out.ops = 1;
	snprintf(r->out.note, sizeof r->out.note, "clean %.0f ms; after kill -9 %.0f ms (%.0f MB: %.0f MB/s)",
		 clean * 1e3, killed * 1e3, (double)*unfolded * 1e-6,
		 (double)*unfolded * 1e-6 / (killed > clean ? killed - clean : 1e-3));
	durable_done(r, dir);
}

void bench_durable_activate(struct bench_run *r)
{
	char dir[4096];
	noh_box_stats before, after;

	noh_close(r->box);
	in_child(r, durable_dir(r, dir, sizeof dir), store_all);
	(void)start(r, dir);
	bench_must(r, noh_get_stats(r->box, &before), "reading the counters");
	bench_begin(r);
	(void)durable_calls(r, r->n, r->n, true, GET);
	bench_end(r, r->n);
	bench_must(r, noh_get_stats(r->box, &after), "reading the counters");
	bench_same(r, "activations", (int64_t)(after.activations - before.activations), (int64_t)r->n - 1);
	durable_done(r, dir);
}
