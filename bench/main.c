/* bench/main.c - noh bench: which benchmarks, how often, on how many workers, shown how. */
#include "bench/bench.h"
#include "bench/load.h"
#include "tools/cli.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORKERS = 256, MOST_REPS = 1000, MOST_BENCHES = 64 };

void bench_usage(void)
{
	printf("usage: noh bench [NAME ...] [options]\n"
	       "       noh bench load [options]     put load on a RESP server; see noh bench load --help\n\n"
	       "Runs the named benchmarks (default: all of --list but the last groups), each\n"
	       "repetition in a process of its own, and checks every result exactly. The table\n"
	       "shows the median; spread is fastest minus slowest, in percent of it.\n\n"
	       "  --workers N[,M...]   worker threads, one run each (default 1 and all cores)\n"
	       "  --n N                how much work, see --list; 10k and 2M are fine\n"
	       "  --reps R             repetitions (default 3; 1 with --raw or --smoke)\n"
	       "  --rate R             flood: intended messages/s (default 500k)\n"
	       "  --dir DIR            where durable-... put their data (default: here)\n"
	       "  --seed S             of all random choices (default 1)\n"
	       "  --all-events         of boxes in memory: that every actor comes and goes is told as an event\n"
	       "  --smoke              tiny sizes: does everything still work?\n"
	       "  --json               one JSON object per line and row, with all parameters\n"
	       "  --raw                one line per repetition:\n"
	       "                       noh NAME WORKERS OPS SECONDS OPS_PER_SEC BYTES_PER_ACTOR|-\n"
	       "  --plot FILE.svg      instead: draw random-counters from 1k to 10M actors, and\n"
	       "                       several benchmarks by workers\n"
	       "  --list               the benchmarks, what they do, what n is\n\n"
	       "  noh bench ping-pong big --workers 1,2 --reps 5\n"
	       "  noh bench random-counters-1M --json | tee before.json\n");
}

NOH_PRINTF(1, 2) static int usage_error(const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	bool question = n > 0 && n < (int)sizeof text && text[n - 1] == '?';
	fprintf(stderr, "noh bench: %s%s\n", text, question ? "" : "; see noh bench --help");
	return CLI_USAGE;
}

static unsigned cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

/* ── the command line ─────────────────────────────────────────────────────────────────────── */
static bool parse_workers(const char *text, struct bench_plan *plan)
{
	char copy[128], *save = NULL;

	plan->worker_counts = 0;
	if (text == NULL || strlen(text) >= sizeof copy)
		return false;
	strcpy(copy, text);
	for (char *w = strtok_r(copy, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
		uint64_t n;
		if (plan->worker_counts == sizeof plan->workers / sizeof plan->workers[0] ||
		    !cli_number(w, 1, MOST_WORKERS, &n))
			return false;
		plan->workers[plan->worker_counts++] = (unsigned)n;
	}
	return plan->worker_counts > 0;
}

static int parse_value(struct cli_args *args, struct bench_plan *plan)
{
	const char *name = args->name, *value = cli_value(args);
	uint64_t number;

	if (value == NULL)
		return usage_error("--%s needs a value", name);
	if (strcmp(name, "plot") == 0) {
		plan->plot = value;
		return CLI_FINE;
	}
	if (strcmp(name, "dir") == 0) {
		plan->dir = value;
		return CLI_FINE;
	}
	if (strcmp(name, "workers") == 0)
		return parse_workers(value, plan) ? CLI_FINE :
		       usage_error("--workers takes numbers from 1 to %d with commas, not \"%s\"",
				   MOST_WORKERS, value);
	uint64_t most = strcmp(name, "reps") == 0 ? MOST_REPS : 1000000000000000u;

	if (!cli_number(value, 1, most, &number))
		return usage_error("--%s takes a number from 1%s, not \"%s\"", name,
				   most == MOST_REPS ? " to 1000" : "", value);
	if (strcmp(name, "n") == 0)
		plan->n = number;
	else if (strcmp(name, "reps") == 0)
		plan->reps = (unsigned)number;
	else if (strcmp(name, "rate") == 0)
		plan->rate = number;
	else
		plan->seed = number;
	return CLI_FINE;
}

static int unknown_option(const char *name)
{
	static const char *const names[] = { "workers", "n", "reps", "rate", "seed", "dir", "smoke",
					     "all-events", "json", "raw", "plot", "list", "help" };
	const char *near = cli_nearest(name, names, sizeof names / sizeof names[0]);

	if (near != NULL)
		return usage_error("there is no option --%s; did you mean --%s?", name, near);
	return usage_error("there is no option --%s", name);
}

static int unknown_bench(const char *name)
{
	const char *names[MOST_BENCHES];

	for (unsigned i = 0; i < bench_count; i++)
		names[i] = bench_all[i].name;
	const char *near = cli_nearest(name, names, bench_count);
	if (near != NULL)
		return usage_error("there is no benchmark \"%s\"; did you mean %s?", name, near);
	return usage_error("there is no benchmark \"%s\"; --list shows them", name);
}

static int parse_option(struct cli_args *args, struct bench_plan *plan)
{
	static const char *const with_value[] = { "workers", "n", "reps", "rate", "seed", "dir", "plot" };
	const char *name = args->name;

	for (unsigned i = 0; i < sizeof with_value / sizeof with_value[0]; i++)
		if (strcmp(name, with_value[i]) == 0)
			return parse_value(args, plan);
	bool *flag = strcmp(name, "smoke") == 0 ? &plan->smoke :
		     strcmp(name, "all-events") == 0 ? &plan->all_events :
		     strcmp(name, "json") == 0 ? &plan->json :
		     strcmp(name, "raw") == 0 ? &plan->raw : NULL;

	if (flag == NULL)
		return unknown_option(name);
	if (args->value != NULL)
		return usage_error("--%s takes no value", name);
	*flag = true;
	return CLI_FINE;
}

static void remember_command(struct bench_plan *plan, int argc, char **argv)
{
	size_t len = (size_t)snprintf(plan->command, sizeof plan->command, "noh");

	for (int i = 0; i < argc && len < sizeof plan->command; i++)
		len += (size_t)snprintf(plan->command + len, sizeof plan->command - len, " %s",
					argv[i]);
}

/* ── measuring ────────────────────────────────────────────────────────────────────────────── */
double bench_rate(const struct bench_result *x)
{
	return x->seconds > 0 ? (double)x->ops / x->seconds : 0;
}

static int slower_first(const void *a, const void *b)
{
	double x = bench_rate(a), y = bench_rate(b);

	return (x > y) - (x < y);
}

static void progress(const struct bench *b, unsigned workers, unsigned rep, unsigned reps)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (b == NULL)
		fputs("\r\033[K", stderr);
	else
		fprintf(stderr, "\r\033[K  %s, %u worker%s, repetition %u of %u ...", b->name,
			workers, workers == 1 ? "" : "s", rep + 1, reps);
	fflush(stderr);
}

static void summarize(struct bench_row *row)
{
	double idle = -1;
	char note[sizeof row->typical.note] = "";

	for (unsigned i = 0; i < row->reps; i++)     /* what only one repetition measured */
		if (row->all[i].idle_cpu_ms >= 0) {
			idle = row->all[i].idle_cpu_ms;
			memcpy(note, row->all[i].note, sizeof note);
		}
	qsort(row->all, row->reps, sizeof *row->all, slower_first);
	row->typical = row->all[row->reps / 2];
	if (idle >= 0) {
		row->typical.idle_cpu_ms = idle;
		memcpy(row->typical.note, note, sizeof note);
	}
	double middle = bench_rate(&row->typical);

	row->spread = middle > 0 ? 100 * (bench_rate(&row->all[row->reps - 1]) -
					  bench_rate(&row->all[0])) / middle : 0;
}

bool bench_measure(const struct bench_plan *plan, const struct bench *b, unsigned workers,
		   struct bench_row *row)
{
	struct bench_run r = { .bench = b, .workers = workers, .smoke = plan->smoke,
			       .seed = plan->seed, .rate = plan->rate, .dir = plan->dir,
			       .all_events = plan->all_events };

	r.n = plan->n != 0 ? plan->n : plan->smoke ? b->smoke_n : b->n;
	r.actors = plan->smoke && b->smoke_actors != 0 ? b->smoke_actors : b->actors;
	*row = (struct bench_row){ .bench = b, .workers = workers, .reps = plan->reps, .n = r.n,
				   .actors = r.actors };
	row->all = calloc(plan->reps, sizeof *row->all);
	if (row->all == NULL)
		return false;
	for (unsigned i = 0; i < plan->reps; i++) {
		r.rep = i;
		progress(b, workers, i, plan->reps);
		bool fine = bench_repeat(&r);
		progress(NULL, 0, 0, 0);
		if (!fine)
			return false;
		row->all[i] = r.out;
		if (plan->raw)
			bench_report_raw(&r);
	}
	summarize(row);
	return true;
}

void bench_row_free(struct bench_row *row)
{
	free(row->all);
	row->all = NULL;
}

static bool measure_one(const struct bench_plan *plan, const struct bench *b, unsigned workers,
			bool by_name)
{
	struct bench_row row;

	if (workers < b->least_workers) {
		if (by_name)
			fprintf(stderr, "noh bench: %s needs %u workers or more: not run with %u\n",
				b->name, b->least_workers, workers);
		return true;
	}
	bool fine = bench_measure(plan, b, workers, &row);

	if (fine)
		bench_report_row(plan, &row);
	bench_row_free(&row);
	return fine;
}

static int measure_all(const struct bench_plan *plan, const struct bench **chosen, unsigned count,
		       bool by_name)
{
	int rc = CLI_FINE;

	bench_report_head(plan);
	for (unsigned i = 0; i < count; i++)
		for (unsigned w = 0; w < plan->worker_counts; w++)
			if (!measure_one(plan, chosen[i], plan->workers[w], by_name))
				rc = CLI_FAILED;
	return rc;
}

static void fill_defaults(struct bench_plan *plan)
{
	unsigned all = cores();

	if (plan->worker_counts == 0) {
		plan->workers[plan->worker_counts++] = 1;
		for (unsigned w = 2; plan->plot != NULL && w < all; w *= 2)
			plan->workers[plan->worker_counts++] = w;
		if (all > 1)
			plan->workers[plan->worker_counts++] = all;
	}
	if (plan->reps == 0)
		plan->reps = plan->raw || plan->smoke ? 1 : 3;
}

int bench_main(int argc, char **argv)
{
	struct bench_plan plan = { .seed = 1, .rate = 500000 };
	struct cli_args args = { .count = argc, .at = 1, .words = argv };
	const struct bench *chosen[MOST_BENCHES];
	unsigned count = 0;

	if (argc > 1 && strcmp(argv[1], "load") == 0)
		return load_main(argc - 1, argv + 1);
	remember_command(&plan, argc, argv);
	while (cli_next(&args)) {
		int rc = CLI_FINE;

		if (args.name != NULL && strcmp(args.name, "help") == 0) {
			bench_usage();
			return CLI_FINE;
		}
		if (args.name != NULL && strcmp(args.name, "list") == 0) {
			bench_list();
			return CLI_FINE;
		}
		if (args.name != NULL)
			rc = parse_option(&args, &plan);
		else if (bench_find(args.value) == NULL)
			rc = unknown_bench(args.value);
		else if (count < MOST_BENCHES)
			chosen[count++] = bench_find(args.value);
		if (rc != CLI_FINE)
			return rc;
	}
	if (plan.json && plan.raw)
		return usage_error("--json and --raw are two different outputs: choose one");
	if (plan.plot != NULL && count > 0)
		return usage_error("--plot chooses its own benchmarks: leave the names out");
	fill_defaults(&plan);
	if (plan.plot != NULL)
		return bench_plot(&plan);
	bool by_name = count > 0;
	for (unsigned i = 0; !by_name && i < bench_count; i++)
		if (bench_all[i].group < BENCH_DISK || (plan.smoke && bench_all[i].group == BENCH_DISK))
			chosen[count++] = &bench_all[i];
	return measure_all(&plan, chosen, count, by_name);
}
