/* bench/report.c - results for people (a table), for scripts (--raw), for the record (--json). */
#include "bench/bench.h"
#include "tools/cli.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ── the machine ──────────────────────────────────────────────────────────────────────────── */
struct machine {
	char     cpu[96], kernel[96];
	long     cores;
	uint64_t binary;              /* FNV-1a of this very program */
};

static void read_cpu(char *room, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "r");

	snprintf(room, size, "unknown");
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || colon == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(room, size, "%.*s", (int)size - 1, colon + 2);
		break;
	}
	if (f != NULL)
		fclose(f);
}

static uint64_t hash_binary(void)
{
	unsigned char block[65536];
	uint64_t h = 0xcbf29ce484222325u;
	FILE *f = fopen("/proc/self/exe", "rb");

	if (f == NULL)
		return 0;
	for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0; )
		for (size_t i = 0; i < n; i++)
			h = (h ^ block[i]) * 0x100000001b3u;
	fclose(f);
	return h;
}

static const struct machine *machine(void)
{
	static struct machine m;
	struct utsname u;

	if (m.cores != 0)
		return &m;
	read_cpu(m.cpu, sizeof m.cpu);
	if (uname(&u) == 0)
		snprintf(m.kernel, sizeof m.kernel, "%.20s %.70s", u.sysname, u.release);
	m.cores = sysconf(_SC_NPROCESSORS_ONLN);
	m.binary = hash_binary();
	return &m;
}

const char *bench_machine(void)
{
	static char words[400];
	const struct machine *m = machine();

	snprintf(words, sizeof words, "%s, %ld core%s, %s", m->cpu, m->cores,
		 m->cores == 1 ? "" : "s", m->kernel);
	return words;
}

/* ── raw ──────────────────────────────────────────────────────────────────────────────────── */
void bench_report_raw(const struct bench_run *r)
{
	char bytes[32] = "-";

	if (r->out.bytes_per_actor > 0)
		snprintf(bytes, sizeof bytes, "%.0f", r->out.bytes_per_actor);
	printf("noh %s %u %llu %.6f %.0f %s\n", r->bench->name, r->workers,
	       (unsigned long long)r->out.ops, r->out.seconds, bench_rate(&r->out), bytes);
	fflush(stdout);
}

/* ── json ─────────────────────────────────────────────────────────────────────────────────── */
static void put_text(const char *key, const char *text)
{
	printf(",\"%s\":\"", key);
	for (; *text != '\0'; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	putchar('"');
}

static void put_count(const char *key, uint64_t number)
{
	printf(",\"%s\":%llu", key, (unsigned long long)number);
}

static void put_machine(const struct bench_plan *plan)
{
	const struct machine *m = machine();
	char hash[24];

	snprintf(hash, sizeof hash, "%016llx", (unsigned long long)m->binary);
	put_text("version", noh_version());
	put_text("binary", hash);
	put_text("command", plan->command);
	put_text("cpu", m->cpu);
	put_count("cores", (uint64_t)m->cores);
	put_text("kernel", m->kernel);
	put_count("seed", plan->seed);
}

static void put_result(const struct bench_row *row)
{
	const struct bench_result *x = &row->typical;

	put_count("ops", x->ops);
	printf(",\"ops_per_sec\":%.0f,\"ns_per_op\":%.2f,\"spread_percent\":%.1f,\"seconds\":[",
	       bench_rate(x), x->ops > 0 ? x->seconds * 1e9 / (double)x->ops : 0, row->spread);
	for (unsigned i = 0; i < row->reps; i++)
		printf("%s%.6f", i > 0 ? "," : "", row->all[i].seconds);
	putchar(']');
	if (row->bench->latency) {
		put_count("p50_ns", x->p50_ns);
		put_count("p99_ns", x->p99_ns);
		put_count("p999_ns", x->p999_ns);
	}
	if (x->worst_ns > 0)
		put_count("worst_ns", x->worst_ns);
	if (x->bytes_per_actor > 0)
		printf(",\"bytes_per_actor\":%.1f", x->bytes_per_actor);
	if (x->idle_cpu_ms >= 0)
		printf(",\"idle_cpu_ms\":%.1f", x->idle_cpu_ms);
	put_count("refused", x->refused);
	put_count("turns", x->total.turns);
	put_count("steals", x->total.steals);
	put_count("parks", x->total.parks);
	if (x->note[0] != '\0')
		put_text("note", x->note);
}

static void put_json(const struct bench_plan *plan, const struct bench_row *row)
{
	printf("{\"runtime\":\"noh\"");
	put_text("benchmark", row->bench->name);
	put_text("op", row->bench->unit);
	put_text("group", row->bench->group == BENCH_EXTRA ? "extra" : "peer");
	put_count("workers", row->workers);
	put_text("pinning", "pinned");
	put_count("n", row->n);
	if (row->actors > 0)
		put_count("actors", row->actors);
	put_count("payload_bytes", row->bench->payload);
	put_text("mailbox", "capacity 100, block");
	put_text("turns_by", row->bench->run == bench_fan_in_batch ? "on_batch" : "on_message");
	put_text("durability", "none");
	put_count("reps", row->reps);
	if (row->bench->run == bench_flood)
		put_count("intended_rate", plan->rate);
	put_result(row);
	put_machine(plan);
	puts("}");
	fflush(stdout);
}

/* ── table ────────────────────────────────────────────────────────────────────────────────── */
void bench_report_head(const struct bench_plan *plan)
{
	if (plan->json || plan->raw)
		return;
	printf("noh %s, %s\n", noh_version(), bench_machine());
	printf("workers pinned, mailboxes of 100 that block, in memory, seed %llu%s\n\n",
	       (unsigned long long)plan->seed,
	       plan->smoke ? ", smoke sizes: not for comparing" : "");
	printf("%-27s %7s  %18s %9s %9s %9s %7s %4s %7s\n", "benchmark", "workers", "rate",
	       "ns per op", "p50", "p99", "B/actor", "reps", "spread");
	fflush(stdout);
}

/* What is not comparable with the peers stands under a line of its own. */
static void group_line(enum bench_group group)
{
	static enum bench_group last = BENCH_PEER;

	if (group == BENCH_EXTRA && last == BENCH_PEER)
		printf("\nextra rows, not for comparing with other runtimes\n");
	last = group;
}

void bench_report_row(const struct bench_plan *plan, const struct bench_row *row)
{
	const struct bench_result *x = &row->typical;
	char rate[48] = "", each[32] = "", p50[16] = "", p99[16] = "";
	char bytes[32] = "", spread[32] = "", number[24], line[320];

	if (plan->raw)
		return;
	if (plan->json) {
		put_json(plan, row);
		return;
	}
	if (row->bench->run != bench_stuck && x->ops > 0) {
		cli_rate(number, sizeof number, bench_rate(x));
		snprintf(rate, sizeof rate, "%s %s/s", number, row->bench->unit);
		snprintf(each, sizeof each, "%.1f", x->seconds * 1e9 / (double)x->ops);
	}
	if (row->bench->latency) {
		cli_time(p50, sizeof p50, (double)x->p50_ns);
		cli_time(p99, sizeof p99, (double)x->p99_ns);
	}
	if (x->bytes_per_actor > 0)
		snprintf(bytes, sizeof bytes, "%.0f", x->bytes_per_actor);
	if (row->reps > 1 && rate[0] != '\0')
		snprintf(spread, sizeof spread, "%.1f %%", row->spread);
	group_line(row->bench->group);
	int n = snprintf(line, sizeof line, "%-27s %7u  %18s %9s %9s %9s %7s %4u %7s  %s",
			 row->bench->name, row->workers, rate, each, p50, p99, bytes, row->reps,
			 spread, x->note);
	while (n > 0 && n < (int)sizeof line && line[n - 1] == ' ')
		line[--n] = '\0';
	puts(line);
	fflush(stdout);
}
