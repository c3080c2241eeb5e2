/* bench/flood.c - open loop: outsiders send at a fixed rate, whether the box keeps up or not.
 *
 * Two threads share the intended rate. Every half millisecond each has a burst due; a message's
 * latency runs from the instant it was *meant* to be sent to the end of its turn's work, so a stall
 * is charged to every message that should have been sent during it. A sender that finds a mailbox
 * full tries again: the wait counts too, and nothing is lost.
 */
#include "bench/bench.h"
#include "bench/hist.h"
#include "tools/cli.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { HIT, COUNT };
enum { SENDERS = 2, TARGETS = 1000, TICK_NS = 500000 };

/* Each worker thread writes a histogram of its own; they are joined at the end. */
struct page { struct hist hist; struct page *next; };
static struct {
	pthread_mutex_t lock;
	struct page    *pages;
} book = { PTHREAD_MUTEX_INITIALIZER, NULL };
static _Thread_local struct page *my_page;

static struct hist *my_hist(void)
{
	if (my_page == NULL) {
		my_page = calloc(1, sizeof *my_page);
		if (my_page == NULL)
			return NULL;
		pthread_mutex_lock(&book.lock);
		my_page->next = book.pages;
		book.pages = my_page;
		pthread_mutex_unlock(&book.lock);
	}
	return &my_page->hist;
}

struct target { int64_t hits; };

static int target_message(noh_turn *turn, const noh_msg *msg)
{
	if (msg->kind == COUNT) {
		const struct target *me = noh_look(turn);
		return noh_reply(turn, &me->hits, sizeof me->hits);
	}
	struct target *me = noh_state(turn);
	struct hist *hist = my_hist();
	uint64_t intended = *(const uint64_t *)msg->body, now = cli_now_ns();

	if (hist == NULL)
		return noh_fail(turn, "no memory for a histogram");
	me->hits++;
	hist_add(hist, now > intended ? now - intended : 0);
	return NOH_OK;
}

struct sender {
	struct bench_run *r;
	const noh_actor  *targets;
	uint64_t          start, count, per_tick, random;
	pthread_t         thread;
};

static void sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void send_one(struct bench_run *r, noh_actor to, uint64_t intended)
{
	int rc;

	while ((rc = noh_send_ref(r->box, to, HIT, &intended, sizeof intended)) == NOH_FULL)
		sched_yield();
	bench_must(r, rc, "sending from outside");
}

static void *send_all(void *arg)
{
	struct sender *s = arg;
	uint64_t intended = s->start;

	prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	for (uint64_t sent = 0; sent < s->count; intended += TICK_NS) {
		sleep_until(intended);
		for (uint64_t i = 0; i < s->per_tick && sent < s->count; i++, sent++) {
			noh_actor to = s->targets[bench_below(&s->random, TARGETS)];
			send_one(s->r, to, intended);
		}
	}
	return NULL;
}

static int64_t count_hits(struct bench_run *r)
{
	int64_t sum = 0;

	for (uint64_t i = 0; i < TARGETS; i++) {
		char address[64];
		int64_t hits = 0;
		size_t len = sizeof hits;

		bench_address(address, "target", i);
		bench_must(r, noh_call(r->box, address, COUNT, NULL, 0, 10000, &hits, &len),
			   "asking a target");
		sum += hits;
	}
	return sum;
}

static void read_book(struct bench_run *r, uint64_t want)
{
	static struct hist all;

	for (struct page *p = book.pages; p != NULL; p = p->next)
		hist_merge(&all, &p->hist);
	bench_same(r, "latencies taken", (int64_t)all.count, (int64_t)want);
	r->out.p50_ns = hist_at(&all, 0.5);
	r->out.p99_ns = hist_at(&all, 0.99);
	r->out.p999_ns = hist_at(&all, 0.999);
	r->out.worst_ns = all.most;
}

static uint64_t send_from_outside(struct bench_run *r, const noh_actor *targets)
{
	struct sender senders[SENDERS];
	uint64_t per_tick = r->rate * TICK_NS / SENDERS / 1000000000u;
	uint64_t start = cli_now_ns() + 20000000u, sent = 0;

	for (unsigned i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){ .r = r, .targets = targets, .count = r->n / SENDERS,
			.start = start + i * TICK_NS / SENDERS, .random = bench_seed(r->seed + i),
			.per_tick = per_tick > 0 ? per_tick : 1 };
		sent += senders[i].count;
		if (pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) != 0)
			bench_fail(r, "no thread to send from");
	}
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(senders[i].thread, NULL);
	r->began = start;
	return sent;
}

void bench_flood(struct bench_run *r)
{
	noh_type target = bench_type("target", sizeof(struct target), target_message, NULL);
	noh_actor targets[TARGETS];
	char rate[16];

	bench_register(r, &target);
	bench_start(r);
	for (uint64_t i = 0; i < TARGETS; i++)
		targets[i] = bench_ref(r, "target", i);
	bench_same(r, "hits before the start", count_hits(r), 0);

	uint64_t sent = send_from_outside(r, targets);
	bench_end(r, sent);
	bench_quiet(r);
	bench_same(r, "hits", count_hits(r), (int64_t)sent);
	read_book(r, sent);
	snprintf(r->out.note, sizeof r->out.note, "open loop at %s/s",
		 cli_rate(rate, sizeof rate, (double)r->rate));
	while (book.pages != NULL) {
		struct page *next = book.pages->next;
		free(book.pages);
		book.pages = next;
	}
}
