/* bench/durable.c - counters that are on disk when the answer comes.
 *
 * durable-counters   n increments of 1 M counters, uniformly, from one outside thread with many calls
 *                    under way; in a box without a directory, in one with, and in one without again. The row is the
 *                    second; the note says how much of the mean of the others that is, and what the disk did.
 * durable-latency    one caller, one call after the other; after every 25 calls as many bare durable
 *                    writes of that size into a preallocated file: the note has the ratio of the medians.
 *
 * The directory is made in --dir (default: here), on whatever disk that is, and removed afterwards.
 */
#include "bench/bench.h"
#include "bench/durable.h"
#include "bench/hist.h"
#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ADD, GET };
enum { UNDER_WAY = 65536, BLOCK = 4096, PROBES = 8192, IN_TURNS = 25 };

static int counter_message(noh_turn *turn, const noh_msg *msg)
{
	int64_t *sum = noh_state(turn);

	if (msg->kind == ADD)
		*sum += *(const int64_t *)msg->body;
	return noh_reply(turn, sum, sizeof *sum);
}

/* ── a box of our own ── */

const char *durable_dir(struct bench_run *r, char *room, size_t size)
{
	snprintf(room, size, "%s/noh-bench-XXXXXX", r->dir ? r->dir : ".");
	if (mkdtemp(room) == NULL)
		bench_fail(r, "%s: %s", room, strerror(errno));
	return room;
}

void durable_remove(const char *dir)
{
	char command[4200];

	if (strlen(dir) < 4096 && !strchr(dir, '\'')) {
		snprintf(command, sizeof command, "rm -rf -- '%s'", dir);
		(void)!system(command);
	}
}

/* The box still writes to it: it goes when that is closed. */
void durable_done(struct bench_run *r, const char *dir)
{
	r->rubbish = strdup(dir);
}

void durable_open(struct bench_run *r, const char *dir, noh_type type)
{
	noh_options o = { .workers = r->workers, .dir = dir };

	bench_must(r, noh_open(&r->box, &o), "opening a box");
	r->type_count = 0;
	bench_register(r, &type);
	bench_must(r, noh_start(r->box), "starting the workers");
}

noh_type durable_counter(void)
{
	noh_type type = bench_type("counter", sizeof(int64_t), counter_message, NULL);

	type.mailbox_capacity = 1000;
	type.idle_timeout_ms = NOH_NEVER;
	return type;
}

/* ── many calls under way ── */

static struct { _Alignas(64) _Atomic uint64_t answered; _Alignas(64) _Atomic int failed; } calls;

static void answered(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	(void)answer;
	(void)len;
	if (status != NOH_OK)
		atomic_store(&calls.failed, status);
	atomic_fetch_add_explicit(&calls.answered, 1, memory_order_relaxed);
}

static void call_counter(struct bench_run *r, uint64_t id, uint32_t kind, const int64_t *body)
{
	char address[64];
	int rc;

	bench_address(address, "counter", id);
	while ((rc = noh_call_then(r->box, address, kind, body, sizeof *body, 100000, answered, NULL)) ==
	       NOH_FULL)
		cli_sleep_ns(20000);
	bench_must(r, rc, "calling");
}

static void wait_answered(struct bench_run *r, uint64_t count)
{
	while (atomic_load_explicit(&calls.answered, memory_order_relaxed) < count)
		cli_sleep_ns(20000);
	if (atomic_load(&calls.failed))
		bench_fail(r, "a call failed: %s", noh_strerror(atomic_load(&calls.failed)));
}

double durable_calls(struct bench_run *r, uint64_t n, uint64_t actors, bool in_order, uint32_t kind)
{
	uint64_t random = bench_seed(r->seed), began = cli_now_ns(), start = atomic_load(&calls.answered);
	int64_t one = 1;

	for (uint64_t i = 0; i < n; i++) {
		while (i >= UNDER_WAY && atomic_load_explicit(&calls.answered, memory_order_relaxed) - start <
						 i - UNDER_WAY)
			cli_sleep_ns(20000);
		call_counter(r, in_order ? i % actors : bench_below(&random, actors), kind, &one);
	}
	wait_answered(r, start + n);
	return (double)n / ((double)(cli_now_ns() - began) * 1e-9);
}

/* In a box that takes the place of r's. */
static double rate_without_disk(struct bench_run *r)
{
	noh_close(r->box);
	durable_open(r, NULL, durable_counter());
	(void)durable_calls(r, r->actors, r->actors, true, ADD);          /* all are live */
	return durable_calls(r, r->n, r->actors, false, ADD);
}

void bench_durable_counters(struct bench_run *r)
{
	char dir[4096];
	double none, disk;
	noh_box_stats before, after;

	none = rate_without_disk(r);
	noh_close(r->box);
	durable_open(r, durable_dir(r, dir, sizeof dir), durable_counter());
	(void)durable_calls(r, r->actors, r->actors, true, ADD);
	bench_must(r, noh_get_stats(r->box, &before), "reading the counters");
	bench_begin(r);
	disk = durable_calls(r, r->n, r->actors, false, ADD);
	bench_end(r, r->n);
	bench_must(r, noh_get_stats(r->box, &after), "reading the counters");
	none = (none + rate_without_disk(r)) / 2;        /* a machine's speed changes meanwhile */
	snprintf(r->out.note, sizeof r->out.note, "%.0f %% of %.2f M/s without disk; %.0f frames/s, %.0f MB/s",
		 100 * disk / none, none * 1e-6,
		 (double)(after.journal_frames - before.journal_frames) / r->out.seconds,
		 (double)(after.journal_bytes - before.journal_bytes) / r->out.seconds * 1e-6);
	durable_done(r, dir);
}

/* ── one call at a time ── */

/* A bare durable write into a filled file, block after block as a journal does: what one answer cannot be
 * faster than. */
static int open_probe(struct bench_run *r, const char *dir, void **block)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof path, "%s.probe", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || posix_memalign(block, BLOCK, BLOCK) != 0)
		bench_fail(r, "%s: %s", path, strerror(errno));
	memset(*block, 0, BLOCK);
	for (int i = 0; i < PROBES; i++)
		if (pwrite(fd, *block, BLOCK, (off_t)i * BLOCK) != BLOCK)
			bench_fail(r, "%s: %s", path, strerror(errno));
	(void)fsync(fd);
	memset(*block, 7, BLOCK);
	(void)fcntl(fd, F_SETFL, O_DIRECT);
	(void)unlink(path);
	return fd;
}

static uint64_t probe(struct bench_run *r, int fd, void *block, uint64_t i)
{
	struct iovec v = { block, BLOCK };
	uint64_t began = cli_now_ns();

	if (pwritev2(fd, &v, 1, (off_t)(i % PROBES) * BLOCK, RWF_DSYNC) != BLOCK)
		bench_fail(r, "the bare write failed: %s", strerror(errno));
	return cli_now_ns() - began;
}

void bench_durable_latency(struct bench_run *r)
{
	static struct hist ours, bare;
	char dir[4096], address[64];
	void *block;
	int fd;

	noh_close(r->box);
	durable_open(r, durable_dir(r, dir, sizeof dir), durable_counter());
	fd = open_probe(r, dir, &block);
	bench_begin(r);
	for (uint64_t i = 0; i < r->n; i++) {
		int64_t one = 1, sum = 0;
		size_t len = sizeof sum;
		uint64_t began = cli_now_ns();

		bench_address(address, "counter", i % 1000);
		bench_must(r, noh_call(r->box, address, ADD, &one, sizeof one, 10000, &sum, &len), "calling");
		hist_add(&ours, cli_now_ns() - began);
		bench_same(r, "the counter", sum, (int64_t)(i / 1000 + 1));
		for (uint64_t k = 0; i % IN_TURNS == IN_TURNS - 1 && k < IN_TURNS; k++)
			hist_add(&bare, probe(r, fd, block, i + k));
	}
	bench_end(r, r->n);
	r->out.p50_ns = hist_at(&ours, 0.5);
	r->out.p99_ns = hist_at(&ours, 0.99);
	r->out.p999_ns = hist_at(&ours, 0.999);
	r->out.worst_ns = ours.most;
	snprintf(r->out.note, sizeof r->out.note, "bare write p50 %.0f us: %.2f times", 
		 (double)hist_at(&bare, 0.5) * 1e-3,
		 (double)r->out.p50_ns / (double)hist_at(&bare, 0.5));
	close(fd);
	free(block);
	durable_done(r, dir);
}
