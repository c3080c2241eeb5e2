/* tests/box/metrics_doc.c - docs/metrics.md, from the table in box/metrics.c (tools/metrics.sh). */
#include "box/metrics.h"

#include <stdio.h>

static const char before[] =
	"# Metrics\n\n"
	"Made from the table in `box/metrics.c` by tools/metrics.sh. `GET /metrics` gives them as Prometheus text 0.0.4, or as\n"
	"OpenMetrics 1.0 to who says so in `Accept`; `noh_metrics` in noh.h gives the same to a program that embeds noh.\n\n"
	"    curl localhost:5012/metrics\n\n"
	"- **Who may look.** Through the Unix socket, and of a server that is bound to this machine alone, anybody. Of any other, a\n"
	"  user (`Authorization: Bearer TOKEN`; in Prometheus: `authorization: { credentials: TOKEN }`), if there are users.\n"
	"- **What it costs.** A fraction of a millisecond, whatever the number of actors (`noh bench scrape`): workers count\n"
	"  for themselves, and are summed when somebody asks. No message waits for it.\n"
	"- **Labels.** Types, reasons, workers, protocols, operations: never an actor's id, and nothing that a client has\n"
	"  made up. Types beyond the first hundred are one series, `type=\":other\"`. Commands nobody has used are left out.\n"
	"- **Durations** are samples where a look at the clock would cost more than what is measured; the text says how they are\n"
	"  taken. So `_count` of such a histogram is not how often it happened: for that there are counters.\n"
	"- **What is counted** is what has happened in this run of the box. A scrape does not wait for the disk: after a crash, some of\n"
	"  what was counted may not have happened. What only a data directory or a network has is missing without one.\n\n"
	"A dashboard for Grafana is packaging/grafana/noh.json; alerts for Prometheus are packaging/prometheus/noh.rules.yml.\n"
	"`INFO` (the sections `stats`, `persistence`, `noh` and `types`) tells the same numbers to Redis's tools.\n\n"
	"| metric | kind | labels | what it is |\n| --- | --- | --- | --- |\n";

static void scale(const char *name, const struct histogram_scale *s)
{
	printf("- %s:", name);
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t n = s->bounds[i];

		if (!s->seconds)
			printf(" %llu", (unsigned long long)n);
		else if (n < 1000000)
			printf(" %g us", (double)n / 1e3);
		else if (n < 1000000000)
			printf(" %g ms", (double)n / 1e6);
		else
			printf(" %g s", (double)n / 1e9);
		printf("%s", i + 1 < s->count ? "," : "\n");
	}
}

int main(void)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram", "gauge, always 1" };

	printf("%s", before);
	for (uint32_t i = 0; i < metrics_total; i++) {
		const struct metric *m = &metrics[i];

		printf("| `%s` | %s | %s | %s |\n", m->name, kinds[m->kind], m->labels, m->help);
	}
	printf("\n## Buckets\n\n");
	scale("durations", &histogram_latency);
	scale("`noh_turn_duration_seconds`", &histogram_fine);
	scale("`noh_turn_batch_size`", &histogram_batch);
	scale("`noh_commit_batch_size`", &histogram_group);
	return 0;
}
