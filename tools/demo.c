/* tools/demo.c - noh demo: a minute with a million actors, narrated.
 *
 * The phases, in order: create, drive, check, sleep, wake, timers, calls. Each starts some actors,
 * waits for the gather actor's answer while it keeps a progress line alive, and leaves numbers in
 * struct demo for the table at the end. An interrupt ends the phase; the table shows what there is.
 */
#include "tools/demo.h"

#include "bench/bench.h"
#include "bench/hist.h"
#include "tools/cli.h"
#include "tools/crash.h"
#include "tools/demo_actors.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TICK_MS = 100, LINE_MS = 4000, QUIET_CALLS = 2000, BUSY_CALLS = 10, DRIVERS = 2,
       WAIT_MS = 600000 };

struct demo {
	noh_box          *box;
	struct demo_world world;
	uint64_t          seconds, actors;
	unsigned          workers;
	bool              terminal, failed;

	uint64_t began, line_at, messages_at, rate_at;
	double   rate;                       /* messages/s, just now */

	int64_t  expected;                   /* the sum of all counters */
	double   create_seconds, drive_seconds, bytes_per_actor;
	uint64_t driven, checked, slept, woken, alarms, rung;
	struct hist busy, quiet;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* ── saying what happens ──────────────────────────────────────────────────────────────────── */
static void measure_rate(struct demo *d, const noh_box_stats *s)
{
	uint64_t now = cli_now_ns();

	if (now - d->rate_at < 200000000u)
		return;
	d->rate = (double)(s->total.messages - d->messages_at) * 1e9 / (double)(now - d->rate_at);
	d->messages_at = s->total.messages;
	d->rate_at = now;
}

static void show(struct demo *d, const char *phase)
{
	noh_box_stats s;
	char rate[24], actors[24], stored[24];
	uint64_t now = cli_now_ns();

	if (noh_get_stats(d->box, &s) != NOH_OK)
		return;
	measure_rate(d, &s);
	if (!d->terminal && now - d->line_at < LINE_MS * 1000000ull)
		return;
	d->line_at = now;
	printf("%s%5.1f s  %-26s %7s msg/s %7s active %7s stored%s", d->terminal ? "\r\033[K" : "",
	       (double)(now - d->began) * 1e-9, phase, cli_rate(rate, sizeof rate, d->rate),
	       cli_rate(actors, sizeof actors, (double)s.actors),
	       cli_rate(stored, sizeof stored, (double)s.stored), d->terminal ? "" : "\n");
	fflush(stdout);
}

NOH_PRINTF(2, 3) static void say(struct demo *d, const char *format, ...)
{
	va_list args;

	printf("%s%5.1f s  ", d->terminal ? "\r\033[K" : "",
	       (double)(cli_now_ns() - d->began) * 1e-9);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static bool must(struct demo *d, int rc, const char *what)
{
	if (rc == NOH_OK)
		return true;
	say(d, "FAILED: %s: %s: %s", what, noh_strerror(rc), noh_why());
	d->failed = true;
	return false;
}

/* ── waiting ──────────────────────────────────────────────────────────────────────────────── */
struct answer {
	_Atomic bool    here;
	int             status;
	struct gathered all;
};

static void on_answer(void *user, int status, const void *body, size_t len)
{
	struct answer *a = user;

	a->status = status;
	if (status == NOH_OK && len == sizeof a->all)
		memcpy(&a->all, body, len);
	atomic_store_explicit(&a->here, true, memory_order_release);
}

/* Waits for that many reports, showing progress; false when interrupted or failed. The answer
 * outlives the call: after an interrupt it may still come while the box stops. */
static bool await(struct demo *d, uint64_t reports, const char *phase, int64_t *sum)
{
	static struct answer answers[64];
	static unsigned used;
	struct answer *a = &answers[used++ % 64];

	*a = (struct answer){ .status = NOH_OK };
	int rc = noh_call_then(d->box, GATHER_ADDRESS, GATHER_WAIT, &reports, sizeof reports,
			       WAIT_MS, on_answer, a);
	if (!must(d, rc, phase))
		return false;
	for (unsigned i = 0; !atomic_load_explicit(&a->here, memory_order_acquire); i++) {
		if (interrupted)
			return false;
		if (i % 10 == 0)
			show(d, phase);
		cli_sleep_ns(TICK_MS * 100000u);
	}
	*sum = a->all.sums[0];
	return must(d, a->status, phase);
}

static bool visit(struct demo *d, uint32_t kind, uint64_t to)
{
	struct demo_visit range = { 0, to };

	return must(d, noh_send(d->box, "visitor:1", kind, &range, sizeof range), "the visitor");
}

static bool same(struct demo *d, const char *what, int64_t got, int64_t want)
{
	if (got == want)
		return true;
	say(d, "FAILED: %s: got %lld, expected %lld", what, (long long)got, (long long)want);
	d->failed = true;
	return false;
}

static void call_some(struct demo *d, struct hist *hist, unsigned count)
{
	static uint64_t random = 88172645463325252u;

	for (unsigned i = 0; i < count && !interrupted; i++) {
		char address[64];
		int64_t value;
		size_t len = sizeof value;

		bench_address(address, "counter", bench_below(&random, d->actors));
		uint64_t start = cli_now_ns();
		int rc = noh_call(d->box, address, COUNTER_VALUE, NULL, 0, 30000, &value, &len);
		if (!must(d, rc, "a call"))
			return;
		hist_add(hist, cli_now_ns() - start);
	}
}

/* ── the phases ───────────────────────────────────────────────────────────────────────────── */
static bool create(struct demo *d)
{
	uint64_t before = cli_rss_anon(), start = cli_now_ns();
	noh_type_stats s = { .activations = 0 };
	char count[32], rate[24];
	int64_t sum;

	if (!visit(d, VISIT_ADD, d->actors) ||
	    !await(d, 1, "creating by first message", &sum))
		return false;
	while (s.activations < d->actors && !interrupted) {
		if (!must(d, noh_get_type_stats(d->box, "counter", &s), "reading the counters"))
			return false;
		cli_sleep_ns(1000000u);
	}
	d->create_seconds = (double)(cli_now_ns() - start) * 1e-9;
	d->expected = (int64_t)d->actors;
	d->bytes_per_actor = (double)(cli_rss_anon() - before) / (double)d->actors;
	say(d, "created %s actors, %s a second, %.0f bytes each",
	    cli_count(count, sizeof count, d->actors),
	    cli_rate(rate, sizeof rate, (double)d->actors / d->create_seconds), d->bytes_per_actor);
	return !interrupted;
}

static bool fetch_references(struct demo *d)
{
	for (uint64_t i = 0; i < d->actors; i++) {
		char address[64];

		bench_address(address, "counter", i);
		if (!must(d, noh_ref(d->box, address, &d->world.counters[i]), "making a reference"))
			return false;
	}
	return true;
}

static bool drive(struct demo *d)
{
	char address[64], sent[32], rate[24];
	int64_t sum = 0;

	if (!fetch_references(d))
		return false;
	uint64_t start = cli_now_ns(), until = start + d->seconds * 350000000u;
	for (unsigned i = 0; i < DRIVERS; i++) {
		bench_address(address, "driver", i + 1);
		if (!must(d, noh_send(d->box, address, DRIVER_GO, NULL, 0), "starting a driver"))
			return false;
	}
	while (cli_now_ns() < until && !interrupted && !d->failed) {
		show(d, "random increments");
		call_some(d, &d->busy, BUSY_CALLS);
		cli_sleep_ns(TICK_MS * 1000000u);
	}
	atomic_store(&d->world.drivers_stop, true);
	int was = interrupted;
	interrupted = 0;                     /* the drivers' own count is worth a moment */
	bool told = await(d, DRIVERS, "the drivers come to rest", &sum);
	d->drive_seconds = (double)(cli_now_ns() - start) * 1e-9;
	interrupted = was || interrupted;
	if (!told)
		return false;
	d->driven = (uint64_t)sum;
	d->expected += sum;
	say(d, "sent %s increments to random actors, %s a second",
	    cli_count(sent, sizeof sent, d->driven),
	    cli_rate(rate, sizeof rate, (double)sum / d->drive_seconds));
	return !interrupted;
}

/* There is no order between messages of different senders: an increment still under way may be
 * overtaken by the question. Then everybody is asked again. */
static bool check(struct demo *d, const char *phase)
{
	char count[32];
	int64_t sum = -1;

	for (unsigned i = 0; i < 3 && sum != d->expected; i++)
		if (!visit(d, VISIT_TELL, d->actors) || !await(d, d->actors, phase, &sum))
			return false;
	if (!same(d, "the sum of all counters", sum, d->expected))
		return false;
	d->checked += d->actors;
	say(d, "all counters asked, the sum is exact: %s",
	    cli_count(count, sizeof count, (uint64_t)sum));
	return true;
}

/* A tenth of the counters gets a message now and then; the others fall asleep. */
static bool let_sleep(struct demo *d, uint32_t idle_ms)
{
	uint64_t warm = d->actors / 10, until = cli_now_ns() + (idle_ms * 4ull + 3000) * 1000000u;
	noh_box_stats s = { .actors = d->actors };
	char slept[32];
	int64_t sum;

	while (s.actors > warm + 1000 && cli_now_ns() < until) {
		if (!visit(d, VISIT_ADD, warm) || !await(d, 1, "nine of ten fall asleep", &sum))
			return false;
		d->expected += (int64_t)warm;
		for (uint32_t ms = 0; ms < idle_ms / 4 && !interrupted; ms += TICK_MS) {
			show(d, "nine of ten fall asleep");
			cli_sleep_ns(TICK_MS * 1000000u);
		}
		if (interrupted || !must(d, noh_get_stats(d->box, &s), "reading the counters"))
			return false;
	}
	d->slept = d->actors > s.actors ? d->actors - s.actors : 0;
	say(d, "%s actors are asleep in storage", cli_count(slept, sizeof slept, d->slept));
	return true;
}

static bool wake(struct demo *d)
{
	uint64_t start = cli_now_ns();
	char rate[24];

	if (!check(d, "waking everybody by asking"))
		return false;
	d->woken = d->slept;
	say(d, "everybody is awake again, %s a second, and remembers",
	    cli_rate(rate, sizeof rate, (double)d->actors * 1e9 / (double)(cli_now_ns() - start)));
	return true;
}

static bool timers(struct demo *d)
{
	char count[32], late[24];
	int64_t sum;

	d->alarms = d->actors / 10;
	d->world.alarm_span_ms = d->seconds * 1000 / 15;
	if (!visit(d, VISIT_ALARMS, d->alarms) || !await(d, d->alarms, "a wave of timers", &sum) ||
	    !same(d, "alarms that rang", sum, (int64_t)d->alarms) ||
	    !same(d, "alarms that rang early", (int64_t)atomic_load(&d->world.early), 0))
		return false;
	d->rung = d->alarms;
	say(d, "%s timers rang, none early, the latest %s late",
	    cli_count(count, sizeof count, d->alarms),
	    cli_time(late, sizeof late, (double)atomic_load(&d->world.latest_ns)));
	return true;
}

static void run_phases(struct demo *d, uint32_t idle_ms)
{
	if (!create(d) || !drive(d) || !check(d, "asking every counter") ||
	    !let_sleep(d, idle_ms) || !wake(d) || !timers(d))
		return;
	show(d, "calls from outside");
	call_some(d, &d->quiet, QUIET_CALLS);
}

/* ── the table ────────────────────────────────────────────────────────────────────────────── */
NOH_PRINTF(2, 3) static void row(const char *name, const char *format, ...)
{
	va_list args;

	printf("  %-28s ", name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void call_row(const char *name, const struct hist *h)
{
	char p50[24], p99[24];

	if (h->count > 0)
		row(name, "p50 %s, p99 %s", cli_time(p50, sizeof p50, (double)hist_at(h, 0.5)),
		    cli_time(p99, sizeof p99, (double)hist_at(h, 0.99)));
}

static void table(struct demo *d)
{
	noh_box_stats s;
	char a[32], b[32];

	if (d->terminal)
		fputs("\r\033[K", stdout);
	if (noh_get_stats(d->box, &s) != NOH_OK)
		return;
	printf("\n");
	row("workers", "%u", s.workers);
	row("actors", "%s active, %s stored", cli_count(a, sizeof a, s.actors),
	    cli_count(b, sizeof b, s.stored));
	if (d->bytes_per_actor > 0)
		row("bytes per actor", "%.0f, all included", d->bytes_per_actor);
	row("messages handled", "%s", cli_count(a, sizeof a, s.total.messages));
	if (d->drive_seconds > 0)
		row("increments, actor to actor", "%s messages/s",
		    cli_rate(a, sizeof a, (double)d->driven / d->drive_seconds));
	if (d->checked > 0)
		row("answers checked", "%s, all exact", cli_count(a, sizeof a, d->checked));
	if (d->woken > 0)
		row("put to sleep and woken", "%s", cli_count(a, sizeof a, d->woken));
	if (d->rung > 0)
		row("timers", "%s rang, the latest %s late", cli_count(a, sizeof a, d->rung),
		    cli_time(b, sizeof b, (double)atomic_load(&d->world.latest_ns)));
	call_row("a call from outside, quiet", &d->quiet);
	call_row("a call while all are busy", &d->busy);
	row("steals, parks", "%s, %s", cli_count(a, sizeof a, s.total.steals),
	    cli_count(b, sizeof b, s.total.parks));
}

static void farewell(const struct demo *d)
{
	if (d->failed)
		printf("\nSomething did not add up: see above.\n");
	else if (interrupted)
		printf("\nInterrupted: these are the numbers so far.\n");
	printf("\nWhat to try next\n"
	       "  noh bench ping-pong     one number in two seconds; noh bench for all of them\n"
	       "  make bench-peers        the same beside CAF, Erlang, Go and Tokio\n"
	       "  examples/               your own actor in less than 60 lines of C\n");
}

/* ── the verb ─────────────────────────────────────────────────────────────────────────────── */
static int usage_error(const char *name, const char *value, const char *takes)
{
	if (value == NULL)
		fprintf(stderr, "noh demo: --%s needs a value; it takes %s\n", name, takes);
	else
		fprintf(stderr, "noh demo: --%s takes %s, not \"%s\"\n", name, takes, value);
	return CLI_USAGE;
}

static int parse(struct demo *d, int argc, char **argv)
{
	struct cli_args args = { .count = argc, .at = 1, .words = argv };
	uint64_t number = 0;

	while (cli_next(&args)) {
		const char *name = args.name != NULL ? args.name : "";

		if (strcmp(name, "seconds") == 0) {
			if (!cli_number(cli_value(&args), 5, 3600, &d->seconds))
				return usage_error(name, args.value, "5 to 3600");
		} else if (strcmp(name, "actors") == 0) {
			if (!cli_number(cli_value(&args), 1000, 100000000, &d->actors))
				return usage_error(name, args.value, "1000 to 100M");
		} else if (strcmp(name, "workers") == 0) {
			if (!cli_number(cli_value(&args), 1, 256, &number))
				return usage_error(name, args.value, "1 to 256");
			d->workers = (unsigned)number;
		} else {
			fprintf(stderr, "noh demo: \"%s%s\" is no option; see noh demo --help\n",
				*name ? "--" : "", *name ? name : args.value);
			return CLI_USAGE;
		}
	}
	return CLI_FINE;
}

static bool open_box(struct demo *d, uint32_t idle_ms)
{
	noh_options o = { .workers = d->workers };

	d->world.actors = d->actors;
	d->world.counters = calloc(d->actors, sizeof *d->world.counters);
	if (d->world.counters == NULL) {
		fprintf(stderr, "noh demo: no memory for so many references\n");
		return false;
	}
	int rc = noh_open(&d->box, &o);
	if (rc == NOH_OK)
		rc = demo_register(d->box, &d->world, idle_ms);
	if (rc == NOH_OK)
		rc = noh_start(d->box);
	if (rc == NOH_OK)
		rc = noh_activate(d->box, GATHER_ADDRESS, 10000);
	if (rc == NOH_OK)
		rc = noh_ref(d->box, GATHER_ADDRESS, &d->world.gather);
	if (rc != NOH_OK)
		fprintf(stderr, "noh demo: no box: %s: %s\n", noh_strerror(rc), noh_why());
	return rc == NOH_OK;
}

int demo_main(int argc, char **argv)
{
	static struct demo d = { .seconds = 60, .actors = 1000000 };
	struct sigaction on = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };

	int rc = parse(&d, argc, argv);
	if (rc != CLI_FINE)
		return rc;
	uint32_t idle_ms = (uint32_t)(d.seconds < 48 ? 4000 : d.seconds * 1000 / 12);

	d.terminal = isatty(STDOUT_FILENO);
	d.began = d.rate_at = cli_now_ns();
	if (!open_box(&d, idle_ms)) {
		if (d.box != NULL)
			noh_close(d.box);
		free(d.world.counters);
		return CLI_FAILED;
	}
	crash_watch(d.box);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	run_phases(&d, idle_ms);
	table(&d);
	farewell(&d);
	noh_stop(d.box, 5000);
	crash_watch(NULL);
	noh_close(d.box);
	free(d.world.counters);
	return d.failed ? CLI_FAILED : CLI_FINE;
}
