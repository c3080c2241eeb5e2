/* net/command_info.c - INFO: the server in numbers, in the form Redis's tools read.
 *
 * The fields that redis_exporter and the clients look for have Redis's names; where noh has no such thing they
 * say so with the value that means it. Everything of noh's own is in the section noh.
 */
#include "net/command.h"
#include "net/redis_version.h"
#include "net/session.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct report {
	struct call *call;
	struct out   text;
	noh_box_stats box;
	noh_net_stats net;
};

static void say(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct report *r, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	int len = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (len > 0)
		out_bytes(&r->text, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
	out_bytes(&r->text, "\r\n", 2);
}

#define NUMBER(name, n) say(r, name ":%" PRIu64, (uint64_t)(n))

static void server(struct report *r)
{
	const noh_listen_options *options = net_options(r->call->net);
	uint64_t up = (r->call->now_ms - net_started_ms(r->call->net)) / 1000;

	say(r, "redis_version:" REDIS_VERSION);
	say(r, "redis_mode:standalone");
	say(r, "noh_version:%s", noh_version());
	say(r, "os:Linux");
	say(r, "arch_bits:%zu", sizeof(void *) * 8);
	say(r, "multiplexing_api:%s", r->net.io);
	say(r, "io_backend:%s", r->net.io);
	say(r, "process_id:%ld", (long)getpid());
	say(r, "tcp_port:%d", options->resp_port > 0 ? options->resp_port : 0);
	say(r, "server_time_usec:%" PRIu64, r->call->now_ms * 1000);
	NUMBER("uptime_in_seconds", up);
	NUMBER("uptime_in_days", up / 86400);
}

static void clients(struct report *r)
{
	NUMBER("connected_clients", r->net.connections);
	say(r, "cluster_connections:0");
	NUMBER("maxclients", net_options(r->call->net)->max_connections);
	say(r, "blocked_clients:0");
}

/* Pages of this process, from the kernel. */
static uint64_t resident_bytes(void)
{
	unsigned long long all, resident;
	FILE *f = fopen("/proc/self/statm", "re");
	bool ok = f && fscanf(f, "%llu %llu", &all, &resident) == 2;

	if (f)
		fclose(f);
	return ok ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void memory(struct report *r)
{
	uint64_t resident = resident_bytes();
	struct rusage used;

	NUMBER("used_memory", resident);
	NUMBER("used_memory_rss", resident);
	if (getrusage(RUSAGE_SELF, &used) == 0)
		NUMBER("used_memory_peak", (uint64_t)used.ru_maxrss * 1024);
	say(r, "maxmemory_policy:noeviction");
}

static void persistence(struct report *r)
{
	say(r, "loading:0");
	say(r, "async_loading:0");
	say(r, "rdb_changes_since_last_save:0");
	say(r, "rdb_bgsave_in_progress:%d", r->box.folding);
	say(r, "rdb_last_bgsave_status:ok");
	say(r, "aof_enabled:%d", r->box.journal_frames > 0);
	say(r, "aof_last_write_status:%s", r->box.read_only ? "err" : "ok");
	NUMBER("aof_current_size", r->box.journal_unfolded);
	NUMBER("aof_pending_bio_fsync", r->box.durable_lag_us > 0);
}

static void stats(struct report *r)
{
	NUMBER("total_connections_received", r->net.accepted);
	NUMBER("total_commands_processed", r->net.commands);
	NUMBER("total_net_input_bytes", r->net.bytes_in);
	NUMBER("total_net_output_bytes", r->net.bytes_out);
	NUMBER("rejected_connections", r->net.refused);
	NUMBER("total_error_replies", r->net.errors);
	NUMBER("client_output_buffer_limit_disconnections", r->net.closed_slow);
	NUMBER("evicted_keys", r->box.evictions);
	NUMBER("pubsub_channels", net_topics(r->call->net, false));
	NUMBER("pubsub_patterns", net_topics(r->call->net, true));
}

static void replication(struct report *r)
{
	say(r, "role:master");
	say(r, "connected_slaves:0");
}

static void cpu(struct report *r)
{
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) != 0)
		return;
	say(r, "used_cpu_sys:%ld.%06ld", (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec);
	say(r, "used_cpu_user:%ld.%06ld", (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec);
}

static void commandstats(struct report *r)
{
	for (uint32_t i = 0; i < command_total(); i++) {
		uint64_t calls = net_command_calls(r->call->net, i);

		if (calls)
			say(r, "cmdstat_%s:calls=%" PRIu64, command_row(i)->name, calls);
	}
}

static void keyspace(struct report *r)
{
	noh_type_stats counters;

	if (call_type_stats(r->call, "counter", &counters) == NOH_OK && counters.existing)
		say(r, "db0:keys=%" PRIu64, counters.existing);          /* how many of them expire, nobody counts */
}

static void noh(struct report *r)
{
	NUMBER("workers", r->box.workers);
	NUMBER("actors_active", r->box.actors);
	NUMBER("actors_stored", r->box.stored);
	NUMBER("actors_bytes", r->box.actor_bytes);
	NUMBER("actors_peak_bytes", r->box.actors_peak_bytes);
	NUMBER("activations", r->box.activations);
	NUMBER("deactivations", r->box.deactivations);
	NUMBER("evictions", r->box.evictions);
	NUMBER("timers", r->box.timers);
	NUMBER("dead_letters", r->box.dead_letters);
	NUMBER("late_answers", r->box.late_answers);
	NUMBER("turns", r->box.total.turns);
	NUMBER("messages", r->box.total.messages);
	NUMBER("slow_turns", r->box.total.slow_turns);
	NUMBER("steals", r->box.total.steals);
	NUMBER("journal_frames", r->box.journal_frames);
	NUMBER("journal_records", r->box.journal_records);
	NUMBER("journal_bytes", r->box.journal_bytes);
	NUMBER("journal_unfolded_bytes", r->box.journal_unfolded);
	NUMBER("folds", r->box.folds);
	NUMBER("idem_keys", r->box.idem_keys);
	NUMBER("idem_dropped", r->box.idem_dropped);
	NUMBER("durable_lag_us", r->box.durable_lag_us);
	NUMBER("store_bytes", r->box.store_bytes);
	NUMBER("no_type", r->box.no_type);
	NUMBER("pushed", r->net.pushed);
	NUMBER("pushes_dropped", r->net.pushes_dropped);
	say(r, "read_only:%d", r->box.read_only);
	for (const char *const *pair = net_options(r->call->net)->info; pair && pair[0] && pair[1]; pair += 2)
		say(r, "%s:%s", pair[0], pair[1]);
}

enum { TYPES_SHOWN = 100 };

/* One line a type, as Redis writes such things; docs/metrics.md has the same numbers, and more. */
static void types(struct report *r)
{
	noh_type_stats s;
	const char *name;

	for (unsigned i = 0; i < TYPES_SHOWN && (name = noh_type_name(call_box(r->call), i)) != NULL; i++)
		if (!strpbrk(name, "\r\n") && call_type_stats(r->call, name, &s) == NOH_OK)
			say(r, "type_%s:active=%" PRIu64 ",stored=%" PRIu64 ",accepted=%" PRIu64 ",processed=%" PRIu64 ",failed=%" PRIu64
			    ",refused=%" PRIu64 ",dropped=%" PRIu64 ",coalesced=%" PRIu64 ",waiting=%" PRIu64 ",restarts=%" PRIu64
			    ",quarantined=%" PRIu64 ",replays=%" PRIu64 ",refused_rate=%" PRIu64 ",rests=%" PRIu64 ",resting=%" PRIu64
			    ",waiting_turn=%" PRIu64, name,
			    s.activations > s.deactivations ? s.activations - s.deactivations : 0, s.existing, s.accepted,
			    s.handled, s.failed, s.refused, s.dropped_oldest + s.dropped_forced + s.dropped_stop, s.coalesced,
			    s.waiting, s.restarts, s.quarantined, s.replays, s.refused_rate, s.rests, s.resting, s.waiting_turn);
}

static const struct section {
	const char *name, *title;
	void      (*write)(struct report *r);
	bool        by_default;
} sections[] = {
	{ "server", "Server", server, true },
	{ "clients", "Clients", clients, true },
	{ "memory", "Memory", memory, true },
	{ "persistence", "Persistence", persistence, true },
	{ "stats", "Stats", stats, true },
	{ "replication", "Replication", replication, true },
	{ "cpu", "CPU", cpu, true },
	{ "commandstats", "Commandstats", commandstats, false },
	{ "keyspace", "Keyspace", keyspace, true },
	{ "noh", "Noh", noh, true },
	{ "types", "Types", types, true },
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static bool is_wanted(const struct call *c, const struct section *s)
{
	if (c->argc == 1)
		return s->by_default;
	for (uint32_t i = 1; i < c->argc; i++) {
		if (arg_is(&c->argv[i], s->name) || arg_is(&c->argv[i], "all") || arg_is(&c->argv[i], "everything"))
			return true;
		if (arg_is(&c->argv[i], "default") && s->by_default)
			return true;
	}
	return false;
}

void cmd_info(struct call *c)
{
	struct report r = { .call = c, .net.io = "" };
	bool first = true;

	noh_get_stats(call_box(c), &r.box);
	noh_get_net_stats(call_box(c), &r.net);
	for (uint32_t i = 0; i < SECTIONS; i++) {
		if (!is_wanted(c, &sections[i]))
			continue;
		if (!first)
			out_bytes(&r.text, "\r\n", 2);
		first = false;
		out_bytes(&r.text, "# ", 2);
		out_bytes(&r.text, sections[i].title, strlen(sections[i].title));
		out_bytes(&r.text, "\r\n", 2);
		sections[i].write(&r);
	}
	if (r.text.failed)
		out_status(call_out(c), NOH_ENOMEM);
	else
		out_verbatim(call_out(c), r.text.bytes, r.text.len);
	out_close(&r.text);
}
