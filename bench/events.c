/* bench/events.c - how many events a second a box keeps up with.
 *
 * events   n messages to actors that change their state and tell an event each, in one turn, so in one record; a reader
 *          follows with a cursor meanwhile. From the first send until the reader has the last event: by then all of
 *          them are on disk. Checked: the reader got each event once, in order, and of each actor every revision. The
 *          note has the same messages without events, and what was written.
 *
 * The directory is made in --dir (default: here), on whatever disk that is, and removed afterwards.
 */
#include "bench/durable.h"
#include "tools/cli.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TELL, WORK };

static struct {
	struct bench_run *r;
	uint64_t  wanted;
	uint64_t  seq;                      /* the reader's cursor */
	uint64_t *revision;                 /* by actor: the last one read */
	bool      wrong;
} reader;

static int tell(noh_turn *turn, const noh_msg *msg)
{
	uint64_t *count = noh_state(turn);

	++*count;
	if (msg->kind == WORK)
		return NOH_OK;
	return noh_emit(turn, &(noh_emit_options){ .kind = "scaled", .from = "converging", .to = "steady",
						   .reason = "the desired count was reached", .revision = *count });
}

static int see(void *user, const noh_event *e)
{
	uint64_t id = strtoull(strchr(e->actor, ':') + 1, NULL, 10);

	(void)user;
	if (e->by_box)
		return 0;
	reader.wrong |= id >= reader.r->actors || e->revision != ++reader.revision[id];
	reader.wanted--;
	return 0;
}

static void *follow(void *arg)
{
	struct bench_run *r = arg;
	uint64_t cursor = 0;

	while (reader.wanted && !reader.wrong) {
		int rc = noh_events_read(r->box, &cursor, NULL, 10000, see, NULL);

		if (rc == NOH_END)
			rc = reader.wanted ? noh_events_wait(r->box, cursor, 60000) : NOH_OK;
		bench_must(r, rc, "reading events");
	}
	return NULL;
}

static void send_all(struct bench_run *r, uint32_t kind)
{
	uint64_t random = bench_seed(r->seed);
	char address[64];

	for (uint64_t i = 0; i < r->n; i++) {
		int rc;

		bench_address(address, "teller", bench_below(&random, r->actors));
		while ((rc = noh_send(r->box, address, kind, NULL, 0)) == NOH_FULL)
			cli_sleep_ns(20000);
		bench_must(r, rc, "sending");
	}
}

void bench_events(struct bench_run *r)
{
	noh_type type = bench_type("teller", sizeof(uint64_t), tell, NULL);
	noh_box_stats before, after;
	char dir[4096];
	pthread_t thread;
	uint64_t began;
	double plain;

	type.mailbox_capacity = 1000;
	type.idle_timeout_ms = NOH_NEVER;
	noh_close(r->box);
	durable_open(r, durable_dir(r, dir, sizeof dir), type);
	began = cli_now_ns();
	send_all(r, WORK);
	bench_must(r, noh_sync(r->box, 60000), "syncing");
	plain = (double)r->n / ((double)(cli_now_ns() - began) * 1e-9);
	noh_close(r->box);
	durable_remove(dir);

	durable_open(r, durable_dir(r, dir, sizeof dir), type);
	reader.r = r;
	reader.wanted = r->n;
	reader.revision = bench_memory(r, r->actors * sizeof *reader.revision);
	bench_must(r, noh_get_stats(r->box, &before), "reading the counters");
	if (pthread_create(&thread, NULL, follow, r) != 0)
		bench_fail(r, "cannot start the reader");
	bench_begin(r);
	send_all(r, TELL);
	pthread_join(thread, NULL);
	bench_end(r, r->n);
	if (reader.wrong)
		bench_fail(r, "an event was missed, or came twice, or out of order");
	bench_must(r, noh_get_stats(r->box, &after), "reading the counters");
	snprintf(r->out.note, sizeof r->out.note, "%.2f M/s without events; %.0f frames/s, %.0f MB/s", plain * 1e-6,
		 (double)(after.journal_frames - before.journal_frames) / r->out.seconds,
		 (double)(after.journal_bytes - before.journal_bytes) / r->out.seconds * 1e-6);
	durable_done(r, dir);
}
