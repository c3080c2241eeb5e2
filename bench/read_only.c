/* bench/read_only.c - NOH_KIND_READ: outsiders read actors without queueing for them.
 *
 * As many outside threads as workers call a thousand actors by address, at random; the read runs
 * on the calling thread, and every single answer is checked. One op is one call.
 */
#include "bench/bench.h"
#include "bench/hist.h"
#include "tools/cli.h"

#include <pthread.h>
#include <stdlib.h>

enum { SET, READ };
enum { DOCS = 1000, SAMPLE = 16 };     /* every 16th call is timed */

struct doc { int64_t value; };

static int doc_message(noh_turn *turn, const noh_msg *msg)
{
	if (msg->kind == READ) {
		const struct doc *me = noh_look(turn);
		return noh_reply(turn, &me->value, sizeof me->value);
	}
	struct doc *me = noh_state(turn);

	me->value = *(const int64_t *)msg->body;
	return NOH_OK;
}

struct reader {
	struct bench_run *r;
	uint64_t          count, random;
	struct hist       hist;
	pthread_t         thread;
};

static int64_t value_of(uint64_t id)
{
	return (int64_t)(id * 7 + 3);
}

static void read_one(struct reader *me, const char *address, int64_t want)
{
	int64_t value = 0;
	size_t len = sizeof value;
	int rc = noh_call(me->r->box, address, READ, NULL, 0, 10000, &value, &len);

	bench_must(me->r, rc, "reading");
	if (value != want || len != sizeof value)
		bench_same(me->r, address, value, want);
}

static void *read_all(void *arg)
{
	struct reader *me = arg;
	char address[64];

	for (uint64_t i = 0; i < me->count; i++) {
		uint64_t id = bench_below(&me->random, DOCS);
		uint64_t start = i % SAMPLE == 0 ? cli_now_ns() : 0;

		bench_address(address, "doc", id);
		read_one(me, address, value_of(id));
		if (start != 0)
			hist_add(&me->hist, cli_now_ns() - start);
	}
	return NULL;
}

static void write_docs(struct bench_run *r)
{
	for (uint64_t i = 0; i < DOCS; i++) {
		char address[64];
		int64_t value = value_of(i);

		bench_address(address, "doc", i);
		int rc = noh_call(r->box, address, SET, &value, sizeof value, 10000, NULL, NULL);
		bench_must(r, rc, "writing a document");
	}
}

void bench_read_only(struct bench_run *r)
{
	static const noh_kind kinds[] = { { "set", 0, NULL }, { "read", NOH_KIND_READ, NULL } };
	noh_type doc = bench_type("doc", sizeof(struct doc), doc_message, NULL);
	struct reader *readers = bench_memory(r, r->workers * sizeof *readers);
	uint64_t ops = 0;

	doc.kinds = kinds;
	doc.kind_count = sizeof kinds / sizeof kinds[0];
	bench_register(r, &doc);
	bench_start(r);
	write_docs(r);

	bench_begin(r);
	for (unsigned i = 0; i < r->workers; i++) {
		readers[i].r = r;
		readers[i].count = r->n / r->workers;
		readers[i].random = bench_seed(r->seed + i);
		ops += readers[i].count;
		if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i]) != 0)
			bench_fail(r, "no thread to read from");
	}
	for (unsigned i = 0; i < r->workers; i++)
		pthread_join(readers[i].thread, NULL);
	bench_end(r, ops);
	for (unsigned i = 1; i < r->workers; i++)
		hist_merge(&readers[0].hist, &readers[i].hist);
	r->out.p50_ns = hist_at(&readers[0].hist, 0.5);
	r->out.p99_ns = hist_at(&readers[0].hist, 0.99);
	r->out.p999_ns = hist_at(&readers[0].hist, 0.999);
	snprintf(r->out.note, sizeof r->out.note, "read by %u outside thread%s", r->workers,
		 r->workers == 1 ? "" : "s");
	free(readers);
}
