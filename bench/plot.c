/* bench/plot.c - noh bench --plot: two charts in one self-contained SVG.
 *
 * Above: random-counters throughput against the number of live actors, one line per worker count.
 * Below: several benchmarks, one bar per worker count.
 */
#include "bench/bench.h"
#include "tools/cli.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 960, LEFT = 210, RIGHT = 130, TOP = 110, LINES_HIGH = 300, BAR = 16, GAP = 14 };
enum { SIZES = 5, BARS = 8, COUNTS = 16 };

static const char *const by_size[SIZES] = {
	"random-counters-1k", "random-counters-10k", "random-counters-100k", "random-counters-1M",
	"random-counters-10M",
};
static const char *const size_names[SIZES] = { "1 k", "10 k", "100 k", "1 M", "10 M" };
static const char *const by_workers[BARS] = {
	"ping-pong", "counting", "thread-ring", "big", "chameneos", "bank-transaction", "fan-in-10",
	"fork-join-throughput",
};
static const char *const colours[] = { "#2563a8", "#d9822b", "#2f8f5b", "#8a4fa3", "#b33a3a" };
enum { COLOURS = sizeof colours / sizeof colours[0] };

struct data {
	const struct bench_plan *plan;
	double line[COUNTS][SIZES];         /* [worker count][actors], ops/s */
	double bar[COUNTS][BARS];
};

/* ── measuring ────────────────────────────────────────────────────────────────────────────── */
static bool point(const struct bench_plan *plan, const char *name, unsigned workers, double *rate)
{
	const struct bench *b = bench_find(name);
	struct bench_row row;
	bool fine = b != NULL && bench_measure(plan, b, workers, &row);

	if (fine) {
		*rate = bench_rate(&row.typical);
		bench_report_row(plan, &row);
	}
	if (b != NULL)
		bench_row_free(&row);
	return fine;
}

static bool collect(struct data *d)
{
	const struct bench_plan *plan = d->plan;

	for (unsigned i = 0; i < SIZES; i++)
		for (unsigned w = 0; w < plan->worker_counts; w++)
			if (!point(plan, by_size[i], plan->workers[w], &d->line[w][i]))
				return false;
	for (unsigned i = 0; i < BARS; i++)
		for (unsigned w = 0; w < plan->worker_counts; w++)
			if (!point(plan, by_workers[i], plan->workers[w], &d->bar[w][i]))
				return false;
	return true;
}

/* ── drawing ──────────────────────────────────────────────────────────────────────────────── */
/* A number at or above v whose quarters are round as well. */
static double round_up(double v)
{
	double power = pow(10, floor(log10(v > 1 ? v : 1)));
	static const double steps[] = { 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10 };

	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++)
		if (steps[i] * power >= v)
			return steps[i] * power;
	return 10 * power;
}

static double largest(const double *values, unsigned rows, unsigned columns, unsigned stride)
{
	double most = 1;

	for (unsigned i = 0; i < rows; i++)
		for (unsigned k = 0; k < columns; k++)
			if (values[i * stride + k] > most)
				most = values[i * stride + k];
	return most;
}

static void text(FILE *f, double x, double y, const char *class, const char *words)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	for (; *words != '\0'; words++)
		switch (*words) {
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '&': fputs("&amp;", f); break;
		default: fputc(*words, f);
		}
	fputs("</text>\n", f);
}

static void rect(FILE *f, double x, double y, double wide, double high, const char *colour)
{
	fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
		x, y, wide, high, colour);
}

static void head(FILE *f, const struct bench_plan *plan, double height)
{
	char words[200];

	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
		   "height=\"%.0f\">\n<title>noh %s benchmarks</title>\n", WIDTH, height, WIDTH,
		height, noh_version());
	fputs("<style>text{font:13px system-ui,sans-serif;fill:#222}.s{fill:#666}"
	      ".t{font-size:19px;font-weight:600}.h{font-size:15px;font-weight:600}"
	      ".r{text-anchor:end}.m{text-anchor:middle}</style>\n"
	      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", f);
	snprintf(words, sizeof words, "noh %s: throughput", noh_version());
	text(f, 24, 34, "t", words);
	snprintf(words, sizeof words, "median of %u repetition%s, results verified, seed %llu%s",
		 plan->reps, plan->reps == 1 ? "" : "s", (unsigned long long)plan->seed,
		 plan->smoke ? ", smoke sizes: not for comparing" : "");
	text(f, 24, 55, "s", words);
	text(f, 24, 72, "s", bench_machine());
}

static void worker_label(char *room, size_t size, unsigned workers)
{
	snprintf(room, size, "%u worker%s", workers, workers == 1 ? "" : "s");
}

static double size_x(unsigned i)
{
	return LEFT + 30 + (WIDTH - RIGHT - LEFT - 60.0) * i / (SIZES - 1);
}

static void grid(FILE *f, double most)
{
	double high = LINES_HIGH, right = WIDTH - RIGHT;
	char label[48], number[24];

	for (unsigned i = 0; i <= 4; i++) {
		double y = TOP + 30 + high - high * i / 4;

		fprintf(f, "<path d=\"M%d %.1fH%.0f\" stroke=\"%s\"/>\n", LEFT, y, right,
			i == 0 ? "#888" : "#e4e4e4");
		cli_rate(number, sizeof number, most * i / 4);
		snprintf(label, sizeof label, "%s msg/s", number);
		text(f, LEFT - 10, y + 4, "r s", i == 0 ? "0" : label);
	}
	for (unsigned i = 0; i < SIZES; i++)
		text(f, size_x(i), TOP + 30 + high + 20, "m s", size_names[i]);
	text(f, (LEFT + right) / 2, TOP + 30 + high + 42, "m s", "live actors");
}

/* Labels stand at the ends of their lines, moved apart where two would touch. */
static void draw_lines(FILE *f, const struct data *d)
{
	double most = round_up(largest(&d->line[0][0], d->plan->worker_counts, SIZES, SIZES));
	double last = -100;
	char label[48];

	text(f, 24, TOP, "h", "Random counters: one message each to uniformly random live actors");
	grid(f, most);
	for (unsigned w = d->plan->worker_counts; w-- > 0; ) {
		const char *colour = colours[w % COLOURS];
		double x = 0, y = 0;

		fprintf(f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" d=\"", colour);
		for (unsigned i = 0; i < SIZES; i++) {
			x = size_x(i);
			y = TOP + 30 + LINES_HIGH * (1 - d->line[w][i] / most);
			fprintf(f, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x, y);
		}
		fputs("\"/>\n", f);
		for (unsigned i = 0; i < SIZES; i++)
			fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
				size_x(i),
				TOP + 30 + LINES_HIGH * (1 - d->line[w][i] / most), colour);
		if (fabs(y - last) < 16)
			y = last + 16;
		last = y;
		worker_label(label, sizeof label, d->plan->workers[w]);
		text(f, x + 10, y + 4, "", label);
	}
}

static double bars_top(void)
{
	return TOP + 30 + LINES_HIGH + 100;
}

static double group_high(const struct bench_plan *plan)
{
	return (double)plan->worker_counts * BAR + GAP;
}

static void draw_bars(FILE *f, const struct data *d)
{
	double most = round_up(largest(&d->bar[0][0], d->plan->worker_counts, BARS, BARS));
	double wide = WIDTH - LEFT - RIGHT, top = bars_top();
	char label[80], number[24], workers[48];

	text(f, 24, top, "h", "By number of workers");
	for (unsigned w = 0; w < d->plan->worker_counts; w++) {
		double x = LEFT + 20 + 110.0 * w;

		rect(f, x, top - 11, 12, 12, colours[w % COLOURS]);
		worker_label(workers, sizeof workers, d->plan->workers[w]);
		text(f, x + 18, top, "", workers);
	}
	for (unsigned i = 0; i < BARS; i++) {
		double y = top + 22 + i * group_high(d->plan);

		text(f, LEFT - 10, y + d->plan->worker_counts * BAR / 2.0 + 4, "r", by_workers[i]);
		for (unsigned w = 0; w < d->plan->worker_counts; w++) {
			double length = wide * d->bar[w][i] / most;

			rect(f, LEFT, y + w * BAR, length, BAR - 2, colours[w % COLOURS]);
			cli_rate(number, sizeof number, d->bar[w][i]);
			snprintf(label, sizeof label, "%s %s/s", number,
				 bench_find(by_workers[i])->unit);
			text(f, LEFT + length + 6, y + w * BAR + 11, "s", label);
		}
	}
}

int bench_plot(const struct bench_plan *plan)
{
	static struct data d;
	FILE *f = fopen(plan->plot, "w");

	if (f == NULL) {
		fprintf(stderr, "noh bench: cannot write %s: %s\n", plan->plot, strerror(errno));
		return CLI_USAGE;
	}
	d.plan = plan;
	bench_report_head(plan);
	if (!collect(&d)) {
		fclose(f);
		remove(plan->plot);
		return CLI_FAILED;
	}
	head(f, plan, bars_top() + 22 + BARS * group_high(plan) + 20);
	draw_lines(f, &d);
	draw_bars(f, &d);
	fputs("</svg>\n", f);
	if (ferror(f) | fclose(f)) {
		fprintf(stderr, "noh bench: writing %s failed\n", plan->plot);
		return CLI_FAILED;
	}
	if (!plan->json && !plan->raw)
		printf("\nwritten: %s\n", plan->plot);
	return CLI_FINE;
}
