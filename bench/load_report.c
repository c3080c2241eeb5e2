/* bench/load_report.c - a result for people, and for programs. */
#include "bench/bench.h"
#include "bench/load.h"
#include "tools/cli.h"

#include <stdio.h>
#include <string.h>

static const struct { const char *name; double share; } points[] = {
	{ "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 }, { "max", 1 },
};
enum { POINTS = sizeof points / sizeof points[0] };

const char *load_mix_name(enum load_mix mix)
{
	static const char *const names[] = { [MIX_INCR] = "incr", [MIX_GET] = "get", [MIX_SET] = "set",
					     [MIX_PING] = "ping", [MIX_RESERVE] = "reserve-commit",
					     [MIX_SALE] = "flash-sale", [MIX_PUBSUB] = "pubsub" };

	return names[mix];
}

static const char *shape(const struct load_plan *p, char *buf, size_t room)
{
	static const char *const names[] = { [KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf",
					     [KEYS_HOT] = "hot", [KEYS_SEQ] = "seq" };

	if (p->dist == KEYS_ZIPF || p->dist == KEYS_HOT)
		snprintf(buf, room, "%s:%g", names[p->dist], p->dist_parameter);
	else
		snprintf(buf, room, "%s", names[p->dist]);
	return buf;
}

void load_progress(const struct load_plan *p, uint64_t ops, double rate, uint64_t errors, double elapsed)
{
	char speed[32], count[40], end[48] = "";

	if (p->requests == 0)
		snprintf(end, sizeof end, " of %.1f", p->warmup + p->seconds);
	fprintf(stderr, "\r\033[K  %s  %.1f%s s  %s/s  %s so far", load_mix_name(p->mix), elapsed, end,
		cli_rate(speed, sizeof speed, rate), cli_count(count, sizeof count, ops));
	if (errors > 0)
		fprintf(stderr, "  %llu errors", (unsigned long long)errors);
	fflush(stderr);
}

static void print_work(const struct load_plan *p)
{
	char keys[40], dist[40], units[40];

	if (p->mix == MIX_SALE)
		printf(", %s orders for %s units", cli_count(keys, sizeof keys, p->requests),
		       cli_count(units, sizeof units, p->units));
	else if (p->mix == MIX_PUBSUB)
		printf(", %u publisher%s, %u bytes", p->publishers, p->publishers > 1 ? "s" : "", p->payload);
	else if (p->mix != MIX_PING)
		printf(", %s keys %s", cli_count(keys, sizeof keys, p->keys), shape(p, dist, sizeof dist));
	if (p->reads > 0)
		printf(", %g %% reads", 100 * p->reads);
	if (p->holds > 0)
		printf(" with %s open holds each", cli_count(keys, sizeof keys, p->holds));
}

static void print_plan(const struct load_plan *p, const struct load_result *r)
{
	char rate[40];

	printf("%s", load_mix_name(p->mix));
	print_work(p);
	printf("; %u %s, pipeline %u, %s", p->connections, p->mix == MIX_PUBSUB ? "subscribers" : "connections",
	       p->pipeline, p->rate > 0 ? "intended " : "as fast as it goes");
	if (p->rate > 0)
		printf("%s/s", cli_rate(rate, sizeof rate, (double)p->rate));
	printf("; %u thread%s, %s\n", p->threads, p->threads > 1 ? "s" : "", r->uring ? "io_uring" : "epoll");
}

static void print_latency(const char *head, const struct hist *h)
{
	char time[32];

	printf("  %-13s", head);
	for (unsigned i = 0; i < POINTS; i++)
		printf("%s %s%s", points[i].name,
		       cli_time(time, sizeof time, (double)hist_at(h, points[i].share)),
		       i + 1 < POINTS ? "   " : "\n");
}

static void print_server(const struct load_result *r)
{
	char rate[32], bytes[32];

	if (r->server_cpu < 0)
		return;
	printf("  %-13s%.2f s CPU, %.0f %% of a core", "server", r->server_cpu,
	       r->seconds > 0 ? 100 * r->server_cpu / r->seconds : 0);
	if (r->server_cpu > 0)
		printf("; %s operations per CPU second",
		       cli_rate(rate, sizeof rate, (double)r->ops / r->server_cpu));
	printf("; RssAnon %s\n", cli_bytes(bytes, sizeof bytes, r->server_rss_anon));
}

static void print_sale(const struct load_plan *p, const struct load_result *r)
{
	if (p->mix != MIX_RESERVE && p->mix != MIX_SALE)
		return;
	printf("  %-13s%llu reserved, %llu committed", "stock", (unsigned long long)r->reserved,
	       (unsigned long long)r->committed);
	if (p->mix == MIX_SALE)
		printf(", %llu came too late", (unsigned long long)r->sold_out);
	printf("\n");
}

void load_report(const struct load_plan *p, const struct load_result *r)
{
	char count[40], rate[32];

	print_plan(p, r);
	printf("  %-13s%s/s; %s %s in %.2f s\n", "rate", cli_rate(rate, sizeof rate, r->rate),
	       cli_count(count, sizeof count, r->ops),
	       p->mix == MIX_PUBSUB ? "messages delivered" : "operations", r->seconds);
	print_latency("latency", &r->latency);
	if (p->rate > 0)
		print_latency("own lag", &r->lag);
	print_server(r);
	printf("  %-13s%.2f s CPU\n", "client", r->client_cpu);
	print_sale(p, r);
	if (r->reconnects > 0)
		printf("  %-13s%llu times\n", "reconnected", (unsigned long long)r->reconnects);
	printf("  %-13s%s requests, ", "verified", cli_count(count, sizeof count, r->requests));
	printf("%s replies, %llu errors%s%s\n", cli_count(count, sizeof count, r->replies),
	       (unsigned long long)r->errors, r->errors > 0 ? "; the first: " : "", r->first_error);
}

/* ── JSON ─────────────────────────────────────────────────────────────────────────────────── */
static void text(const char *name, const char *value)
{
	printf("\"%s\":", name);
	cli_json_text(value, strlen(value));
	putchar(',');
}

static void number(const char *name, uint64_t value)
{
	printf("\"%s\":%llu,", name, (unsigned long long)value);
}

static void json_latency(const char *name, const struct hist *h)
{
	printf("\"%s\":{", name);
	for (unsigned i = 0; i < POINTS; i++)
		printf("\"%s\":%.1f,", points[i].name, (double)hist_at(h, points[i].share) / 1e3);
	printf("\"count\":%llu},", (unsigned long long)h->count);
}

static void json_plan(const struct load_plan *p, const struct load_result *r)
{
	char dist[40];

	text("mix", load_mix_name(p->mix));
	text("dialect", p->dialect == DIALECT_NOH ? "noh" : "redis");
	text("dist", shape(p, dist, sizeof dist));
	text("io", r->uring ? "uring" : "epoll");
	number("connections", p->connections);
	number("pipeline", p->pipeline);
	number("threads", p->threads);
	number("keys", p->keys);
	number("key_bytes", p->key_bytes);
	number("intended_rate", p->rate);
	number("holds", p->holds);
	number("seed", p->seed);
	printf("\"reads\":%g,\"idem\":%s,", p->reads, p->idem || p->mix == MIX_SALE ? "true" : "false");
	if (p->mix == MIX_SALE)
		number("units", p->units);
	if (p->mix == MIX_PUBSUB) {
		number("publishers", p->publishers);
		number("payload", p->payload);
	}
}

void load_report_json(const struct load_plan *p, const struct load_result *r)
{
	printf("{");
	json_plan(p, r);
	number("operations", r->ops);
	printf("\"seconds\":%.6f,\"rate\":%.1f,", r->seconds, r->rate);
	json_latency("latency_us", &r->latency);
	if (p->rate > 0)
		json_latency("own_lag_us", &r->lag);
	if (r->server_cpu >= 0) {
		printf("\"server_cpu_seconds\":%.2f,", r->server_cpu);
		if (r->server_cpu > 0)
			printf("\"operations_per_server_cpu_second\":%.0f,", (double)r->ops / r->server_cpu);
		number("server_rss_anon", r->server_rss_anon);
	}
	printf("\"client_cpu_seconds\":%.3f,", r->client_cpu);
	number("requests", r->requests);
	number("replies", r->replies);
	number("errors", r->errors);
	if (p->mix == MIX_RESERVE || p->mix == MIX_SALE) {
		number("reserved", r->reserved);
		number("committed", r->committed);
		number("sold_out", r->sold_out);
	}
	if (p->mix == MIX_PUBSUB)
		number("delivered", r->delivered);
	number("reconnects", r->reconnects);
	text("first_error", r->first_error);
	text("failure", r->failure);
	text("machine", bench_machine());
	printf("\"command\":");
	cli_json_text(p->command, strlen(p->command));
	printf("}\n");
}
