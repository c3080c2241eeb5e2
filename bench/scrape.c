/* bench/scrape.c - what it costs to look: all metrics as text, n times, while a million counters are at work.
 *
 * Two drivers keep every worker busy with increments of random counters until the last scrape is done. What counts is
 * the CPU time of the thread that asks: 5 ms is the most that one scrape may take. The time on the clock is shown, too;
 * on a machine whose cores are all busy with the workers, much of it is waiting for one. At the end the metrics must
 * say exactly how many increments there were.
 */
#include "bench/bench.h"
#include "bench/hist.h"
#include "tools/cli.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ADD, GO };
enum { DRIVERS = 2, RUN = 64, MOST_NS = 5000000 };

static struct {
	noh_actor       *counters;
	noh_actor        gather;
	uint64_t         actors, seed;
	_Atomic bool     over;
} field;
struct counter { int64_t sum; };
struct driver { uint64_t random; int64_t sent; };
struct page { char *text; size_t len, room; };

static int counter_message(noh_turn *turn, const noh_msg *msg)
{
	struct counter *me = noh_state(turn);

	me->sum += *(const int64_t *)msg->body;
	return NOH_OK;
}

static int driver_message(noh_turn *turn, const noh_msg *msg)
{
	struct driver *me = noh_state(turn);
	int64_t one = 1;

	(void)msg;
	if (me->random == 0)
		me->random = bench_seed(field.seed + bench_id(turn));
	if (atomic_load_explicit(&field.over, memory_order_relaxed))
		return gather_add(turn, field.gather, me->sent);
	for (unsigned i = 0; i < RUN; i++) {
		int rc = noh_tell(turn, field.counters[bench_below(&me->random, field.actors)], ADD, &one, sizeof one);

		if (rc != NOH_OK)
			return rc;
	}
	me->sent += RUN;
	return noh_tell(turn, noh_self(turn), GO, NULL, 0);
}

static int add_text(void *user, const char *text, size_t len)
{
	struct page *p = user;

	if (p->len + len + 1 > p->room) {
		p->room = (p->len + len + 1) * 2;
		p->text = realloc(p->text, p->room);
		if (!p->text)
			return NOH_ENOMEM;
	}
	memcpy(p->text + p->len, text, len);
	p->len += len;
	p->text[p->len] = 0;
	return NOH_OK;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the most CPU time that one of them took; the first one grows the page, and is not counted. */
static uint64_t look(struct bench_run *r, struct page *page, struct hist *wall)
{
	uint64_t worst = 0;

	for (uint64_t i = 0; i <= r->n; i++) {
		uint64_t cpu = cpu_ns(), began = cli_now_ns();

		page->len = 0;
		bench_must(r, noh_metrics(r->box, NOH_PROMETHEUS, add_text, page), "a scrape");
		cpu = cpu_ns() - cpu;
		if (i) {
			hist_add(wall, cli_now_ns() - began);
			worst = cpu > worst ? cpu : worst;
		}
	}
	return worst;
}

static int64_t told(const struct page *page, const char *name)
{
	const char *at = strstr(page->text, name);

	return at ? atoll(at + strlen(name)) : -1;
}

void bench_scrape(struct bench_run *r)
{
	static struct hist wall;
	noh_type counter = bench_type("counter", sizeof(struct counter), counter_message, NULL);
	noh_type driver = bench_type("driver", sizeof(struct driver), driver_message, NULL);
	struct page page = { .text = NULL };

	bench_register(r, &counter);
	bench_register(r, &driver);
	bench_start(r);
	field.counters = bench_memory(r, r->actors * sizeof *field.counters);
	field.gather = r->gather;
	field.actors = r->actors;
	field.seed = r->seed;
	for (uint64_t i = 0; i < r->actors; i++)
		field.counters[i] = bench_ref(r, "counter", i);
	for (unsigned i = 0; i < DRIVERS; i++)
		bench_send(r, bench_ref(r, "driver", i + 1), GO, NULL, 0);
	bench_begin(r);
	uint64_t worst = look(r, &page, &wall);

	bench_end(r, r->n);
	atomic_store(&field.over, true);
	int64_t sent = bench_wait(r, DRIVERS).sums[0];

	bench_quiet(r);
	page.len = 0;
	bench_must(r, noh_metrics(r->box, NOH_PROMETHEUS, add_text, &page), "the last scrape");
	bench_same(r, "increments in the metrics", told(&page, "noh_messages_processed_total{type=\"counter\",result=\"ok\"} "),
		   sent);
	r->out.p50_ns = hist_at(&wall, 0.5);
	r->out.p99_ns = hist_at(&wall, 0.99);
	r->out.p999_ns = hist_at(&wall, 0.999);
	r->out.worst_ns = wall.most;
	snprintf(r->out.note, sizeof r->out.note, "at most %.2f ms of CPU, %zu KiB", (double)worst / 1e6, page.len / 1024);
	if (!r->smoke && worst > MOST_NS)
		bench_fail(r, "a scrape took %.2f ms of CPU: at most %d ms", (double)worst / 1e6, MOST_NS / 1000000);
	free(page.text);
	free(field.counters);
}
