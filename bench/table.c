/* bench/table.c - the benchmarks by name, with the sizes they run at. */
#include "bench/bench.h"

#include <string.h>

#define M 1000000u

const struct bench bench_all[] = {
	{ .name = "ping-pong", .unit = "msg", .run = bench_ping_pong, .payload = 8,
	  .n = 15 * M, .smoke_n = 20000, .actors = 2,
	  .about = "two actors, one ball, n times there and back" },
	{ .name = "counting", .unit = "msg", .run = bench_fan_in, .payload = 8,
	  .n = 20 * M, .smoke_n = 50000, .actors = 1,
	  .about = "one producer sends a counter n increments" },
	{ .name = "thread-ring", .unit = "msg", .run = bench_thread_ring, .payload = 8,
	  .n = 25 * M, .smoke_n = 20000, .actors = 100,
	  .about = "100 actors in a circle hand one token on, n times" },
	{ .name = "fork-join-create", .unit = "actors", .run = bench_fork_join_create,
	  .payload = 16, .n = 1 * M, .smoke_n = 10000,
	  .about = "n new addresses get their first message, and answer" },
	{ .name = "fork-join-throughput", .unit = "msg", .run = bench_fork_join_throughput,
	  .payload = 8, .n = 300000, .smoke_n = 1000, .actors = 60,
	  .about = "one actor sends n messages to each of 60" },
	{ .name = "big", .unit = "msg", .run = bench_big, .payload = 8,
	  .n = 50000, .smoke_n = 200, .actors = 120,
	  .about = "120 actors ping random others, n times each, one ping under way each" },
	{ .name = "chameneos", .unit = "meetings", .run = bench_chameneos, .payload = 16,
	  .n = 2 * M, .smoke_n = 5000, .actors = 100,
	  .about = "100 creatures meet in pairs through one mall, n meetings" },
	{ .name = "bank-transaction", .unit = "transfers", .run = bench_bank, .payload = 16,
	  .n = 3 * M, .smoke_n = 10000, .actors = 1000,
	  .about = "n transfers between 1000 accounts, 256 under way" },
	{ .name = "fan-in-10", .unit = "msg", .run = bench_fan_in, .payload = 8,
	  .n = 20 * M, .smoke_n = 50000, .actors = 10,
	  .about = "10 producers send one counter n increments together" },
	{ .name = "fan-in-1000", .unit = "msg", .run = bench_fan_in, .payload = 8,
	  .n = 20 * M, .smoke_n = 100000, .actors = 1000,
	  .about = "1000 producers send one counter n increments together" },
	{ .name = "random-counters-1M", .unit = "msg", .run = bench_random_counters, .payload = 8,
	  .n = 10 * M, .smoke_n = 50000, .actors = 1 * M, .smoke_actors = 10000,
	  .about = "2 drivers, n increments to 1 M live counters, uniformly; then all are read" },
	{ .name = "random-counters-10M", .unit = "msg", .run = bench_random_counters, .payload = 8,
	  .n = 20 * M, .smoke_n = 50000, .actors = 10 * M, .smoke_actors = 10000,
	  .about = "the same with 10 M live counters" },
	{ .name = "flood", .unit = "msg", .run = bench_flood, .payload = 8, .latency = true,
	  .n = 1 * M, .smoke_n = 20000, .actors = 1000,
	  .about = "open loop: n messages from outside at --rate, latency from intended start" },

	{ .name = "counting-batch", .unit = "msg", .run = bench_fan_in_batch, .payload = 8,
	  .group = BENCH_EXTRA, .n = 20 * M, .smoke_n = 50000, .actors = 1,
	  .about = "counting, the counter takes up to 64 messages a turn (on_batch)" },
	{ .name = "fan-in-10-batch", .unit = "msg", .run = bench_fan_in_batch, .payload = 8,
	  .group = BENCH_EXTRA, .n = 20 * M, .smoke_n = 50000, .actors = 10,
	  .about = "fan-in-10, the counter takes up to 64 messages a turn (on_batch)" },
	{ .name = "read-only", .unit = "calls", .run = bench_read_only, .latency = true,
	  .group = BENCH_EXTRA, .n = 3 * M, .smoke_n = 10000, .actors = 1000,
	  .about = "n read-only calls from outside threads, beside the mailbox" },
	{ .name = "idle-memory", .unit = "actors", .run = bench_idle_memory, .payload = 8,
	  .group = BENCH_EXTRA, .n = 1 * M, .smoke_n = 10000,
	  .about = "bytes per idle counter, n of them; CPU time of ten idle seconds" },
	{ .name = "latency-under-stuck-worker", .unit = "events", .run = bench_stuck, .payload = 16,
	  .group = BENCH_EXTRA, .least_workers = 2, .n = 1000, .smoke_n = 50,
	  .about = "one turn spins n ms: the worst delay of everybody else" },
	{ .name = "supervise", .unit = "msg", .run = bench_supervise, .payload = 8,
	  .group = BENCH_EXTRA, .n = 30, .smoke_n = 1, .actors = 100000, .smoke_actors = 1000,
	  .about = "a supervisor of 100 k children, 1 % failing a second: what the others lose in n tenths of a second" },
	{ .name = "restart", .unit = "restarts", .run = bench_restart,
	  .group = BENCH_EXTRA, .n = 10000, .smoke_n = 100, .actors = 100000, .smoke_actors = 1000,
	  .about = "of a supervisor's 100 k children n fail at once: the CPU time of each, and how they come back" },
	{ .name = "scrape", .unit = "scrapes", .run = bench_scrape, .latency = true,
	  .group = BENCH_EXTRA, .n = 1000, .smoke_n = 20, .actors = 1 * M, .smoke_actors = 10000,
	  .about = "all metrics as text, n times, beside 1 M counters at full load; CPU time of each" },

	{ .name = "durable-counters", .unit = "calls", .run = bench_durable_counters, .payload = 8,
	  .group = BENCH_DISK, .n = 10 * M, .smoke_n = 2000, .actors = 1 * M, .smoke_actors = 1000,
	  .about = "n increments of 1 M counters, on disk when answered, 65536 under way" },
	{ .name = "durable-latency", .unit = "calls", .run = bench_durable_latency, .payload = 8,
	  .group = BENCH_DISK, .n = 5000, .smoke_n = 50, .actors = 1000, .latency = true,
	  .about = "one caller, n calls one after the other, beside bare durable writes" },

	{ .name = "durable-start", .unit = "starts", .run = bench_durable_start, .payload = 8,
	  .group = BENCH_DISK, .n = 10 * M, .smoke_n = 2000,
	  .about = "from open to the first answer with n stored counters; after kill -9 as well" },
	{ .name = "durable-activate", .unit = "actors", .run = bench_durable_activate, .payload = 8,
	  .group = BENCH_DISK, .n = 1 * M, .smoke_n = 2000,
	  .about = "n stored counters are called, and activated by that" },

	{ .name = "durable-sustain", .unit = "calls", .run = bench_durable_sustain, .payload = 8,
	  .group = BENCH_DISK, .n = 60, .smoke_n = 2, .actors = 5 * M, .smoke_actors = 2000, .latency = true,
	  .about = "n seconds of increments over 5 M stored counters: does the keeper keep up?" },

	{ .name = "events", .unit = "events", .run = bench_events,
	  .group = BENCH_DISK, .n = 3 * M, .smoke_n = 2000, .actors = 10000, .smoke_actors = 100,
	  .about = "n turns that tell an event each, on disk, and a reader that follows" },

	{ .name = "random-counters-1k", .unit = "msg", .run = bench_random_counters, .payload = 8,
	  .group = BENCH_SWEEP, .n = 10 * M, .smoke_n = 20000, .actors = 1000,
	  .about = "random-counters with a thousand" },
	{ .name = "random-counters-10k", .unit = "msg", .run = bench_random_counters, .payload = 8,
	  .group = BENCH_SWEEP, .n = 10 * M, .smoke_n = 20000, .actors = 10000,
	  .smoke_actors = 2000, .about = "... ten thousand" },
	{ .name = "random-counters-100k", .unit = "msg", .run = bench_random_counters, .payload = 8,
	  .group = BENCH_SWEEP, .n = 10 * M, .smoke_n = 20000, .actors = 100000,
	  .smoke_actors = 5000, .about = "... and a hundred thousand counters" },
};
const unsigned bench_count = sizeof bench_all / sizeof bench_all[0];

const struct bench *bench_find(const char *name)
{
	for (unsigned i = 0; i < bench_count; i++)
		if (strcmp(bench_all[i].name, name) == 0)
			return &bench_all[i];
	return NULL;
}

void bench_list(void)
{
	static const char *const heads[] = {
		[BENCH_PEER] = "Same shapes and rules as the peer programs",
		[BENCH_EXTRA] = "Extra rows",
		[BENCH_DISK] = "On disk (--dir says where), by name only",
		[BENCH_SWEEP] = "By name only (and in --plot)",
	};

	for (int group = BENCH_PEER; group <= BENCH_SWEEP; group++) {
		printf("%s%s\n", group == BENCH_PEER ? "" : "\n", heads[group]);
		for (unsigned i = 0; i < bench_count; i++)
			if ((int)bench_all[i].group == group)
				printf("  %-27s %s\n", bench_all[i].name, bench_all[i].about);
	}
}
