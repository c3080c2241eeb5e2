/* tools/settings.c - the table, and values from the strongest place. */
#include "tools/settings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static const char *const durabilities[] = { "disk", "memory", "none", NULL };
static const char *const backends[] = { "auto", "uring", "epoll", NULL };      /* NOH_IO_... */
static const char *const levels[] = { "debug", "info", "warn", "error", NULL }; /* NOH_DEBUG ... */
static const char *const overs[] = { "wait", "refuse", NULL };                  /* NOH_OVER_... */
static const char *const details[] = { "default", "all", "none", NULL };        /* NOH_EVENTS_... */
static const char *const formats[] = { "text", "json", NULL };
static const char *const pools[] = { "actor-node", NULL };
static const char *const modes[] = { "local", "control-plane", "worker", NULL };

const struct setting settings_table[SETTINGS] = {
	[SET_DIR] = { .section = "data", .key = "dir", .flag = "data", .type = SETTING_PATH,
		.preset = "noh-data", .restart = true,
		.help = "The data directory; made if it is not there." },
	[SET_DURABILITY] = { .section = "data", .key = "durability", .flag = "durability",
		.type = SETTING_CHOICE, .choices = durabilities, .preset = "disk", .restart = true,
		.help = "What an answer means: disk (it is on disk), memory (it will be in a moment), none (nothing "
			"is ever stored, and no data directory is used)." },
	[SET_JOURNAL] = { .section = "data", .key = "journal", .flag = "journal", .type = SETTING_SIZE,
		.preset = "256MiB", .least = 64 * MIB, .most = 64 * GIB, .restart = true,
		.help = "How far the journal may be ahead of the image: what a start after a crash reads, at most." },
	[SET_IDEM_KEEP] = { .section = "data", .key = "idem_keep", .flag = "idem-keep", .type = SETTING_DURATION,
		.preset = "24h", .least = SECOND, .most = 365 * DAY, .restart = true,
		.help = "How long idempotency keys (IDEM) are kept." },
	[SET_IDEM_BYTES] = { .section = "data", .key = "idem_bytes", .flag = "idem-bytes", .type = SETTING_SIZE,
		.preset = "1GiB", .least = MIB, .most = 16 * TIB, .restart = true,
		.help = "How much of them is kept; beyond it the oldest go." },

	[SET_EVENTS_BYTES] = { .section = "events", .key = "bytes", .flag = "events-bytes", .type = SETTING_SIZE,
		.preset = "256MiB", .least = MIB, .most = 16 * TIB,
		.help = "How much of the event log is kept; beyond it the oldest go. Where nothing is stored it is in memory, and "
			"16MiB unless this says otherwise." },
	[SET_EVENTS_KEEP] = { .section = "events", .key = "keep", .flag = "events-keep", .type = SETTING_DURATION,
		.preset = "168h", .least = SECOND, .most = 3650 * DAY,
		.help = "How long events are kept." },
	[SET_EVENTS_DETAIL] = { .section = "events", .key = "detail", .flag = "events-detail", .type = SETTING_CHOICE,
		.choices = details, .preset = "default",
		.help = "What the server tells beside actors' own events: default (failures, restarts, drops, dead letters, "
			"changes; that supervised actors come and go), all (that any actor does), none." },

	[SET_BIND] = { .section = "net", .key = "bind", .flag = "bind", .type = SETTING_ADDRESS,
		.preset = "127.0.0.1", .restart = true,
		.help = "The address to listen on; one that others can reach needs users, or --insecure." },
	[SET_RESP_PORT] = { .section = "net", .key = "resp_port", .flag = "resp-port", .type = SETTING_NUMBER,
		.preset = "7411", .least = 1, .most = 65535, .or_zero = true, .restart = true,
		.help = "The port for Redis clients; 0: no TCP." },
	[SET_UNIX] = { .section = "net", .key = "unix", .flag = "unix", .type = SETTING_PATH, .preset = "",
		.restart = true, .help = "A Unix socket for Redis clients." },
	[SET_IO] = { .section = "net", .key = "io", .flag = "io", .type = SETTING_CHOICE, .choices = backends,
		.preset = "auto", .restart = true,
		.help = "How to talk to the kernel; auto: io_uring where it works, else epoll." },
	[SET_INSECURE] = { .section = "net", .key = "insecure", .flag = "insecure", .type = SETTING_BOOL,
		.preset = "false", .restart = true,
		.help = "Listen where others can reach it although there are no users: whoever connects may do all." },
	[SET_SHUTDOWN] = { .section = "net", .key = "shutdown", .flag = "shutdown", .type = SETTING_BOOL,
		.preset = "true", .restart = true,
		.help = "Whether the command SHUTDOWN (role admin) may end the server." },
	[SET_MAX_CONNECTIONS] = { .section = "net", .key = "max_connections", .flag = "max-connections",
		.type = SETTING_NUMBER, .preset = "10000", .least = 1, .most = 1000000,
		.help = "Connections at once; more are refused with an error." },
	[SET_MAX_ADDRESS_CONNECTIONS] = { .section = "net", .key = "max_address_connections",
		.flag = "max-address-connections", .type = SETTING_NUMBER, .preset = "0", .least = 0, .most = 1000000,
		.help = "Connections at once from one IP address (of IPv6: from its first 64 bits); 0: no limit of its own." },
	[SET_AUTH_FAILURES] = { .section = "net", .key = "auth_failures", .flag = "auth-failures",
		.type = SETTING_NUMBER, .preset = "30", .least = 1, .most = 1000000,
		.help = "Failed logins from one address in a minute; while there are more, the next ones are refused unseen." },
	[SET_MAX_ARGS] = { .section = "net", .key = "max_args", .flag = "max-args", .type = SETTING_NUMBER,
		.preset = "65536", .least = 16, .most = 1u << 20,
		.help = "Arguments of one command." },
	[SET_MAX_ARG_BYTES] = { .section = "net", .key = "max_arg_bytes", .flag = "max-arg-bytes",
		.type = SETTING_SIZE, .preset = "1MiB", .least = KIB, .most = 512 * MIB,
		.help = "Bytes of one argument." },
	[SET_MAX_COMMAND_BYTES] = { .section = "net", .key = "max_command_bytes", .flag = "max-command-bytes",
		.type = SETTING_SIZE, .preset = "16MiB", .least = KIB, .most = GIB,
		.help = "Bytes of a whole command." },
	[SET_MAX_INLINE_BYTES] = { .section = "net", .key = "max_inline_bytes", .flag = "max-inline-bytes",
		.type = SETTING_SIZE, .preset = "64KiB", .least = 256, .most = 16 * MIB,
		.help = "Bytes of a command typed as a line (telnet, nc)." },
	[SET_MAX_PIPELINE] = { .section = "net", .key = "max_pipeline", .flag = "max-pipeline",
		.type = SETTING_NUMBER, .preset = "4096", .least = 1, .most = 1u << 20,
		.help = "Unanswered commands of one connection; it is not read further beyond that." },
	[SET_MAX_OUTPUT_BYTES] = { .section = "net", .key = "max_output_bytes", .flag = "max-output-bytes",
		.type = SETTING_SIZE, .preset = "16MiB", .least = 64 * KIB, .most = GIB,
		.help = "Answers that a client has not taken yet; it is not read further beyond that, and closed if "
			"it takes none for the time of net.timeout." },
	[SET_MAX_SUBSCRIPTIONS] = { .section = "net", .key = "max_subscriptions", .flag = "max-subscriptions",
		.type = SETTING_NUMBER, .preset = "10000", .least = 1, .most = 1u << 20,
		.help = "Channels and patterns that one connection may listen to." },
	[SET_MAX_SUBSCRIBER_BYTES] = { .section = "net", .key = "max_subscriber_bytes", .flag = "max-subscriber-bytes",
		.type = SETTING_SIZE, .preset = "8MiB", .least = 64 * KIB, .most = GIB,
		.help = "Published messages that a client has not taken yet; it is cut off beyond that." },
	[SET_TIMEOUT] = { .section = "net", .key = "timeout", .flag = "timeout", .type = SETTING_DURATION,
		.preset = "30s", .least = 100, .most = DAY,
		.help = "After this a client that stopped in the middle of something is closed." },
	[SET_IDLE] = { .section = "net", .key = "idle_timeout", .flag = "idle-timeout", .type = SETTING_DURATION,
		.preset = "0", .least = SECOND, .most = 30 * DAY, .or_zero = true,
		.help = "After this a client that says nothing at all is closed; 0: never." },
	[SET_CALL] = { .section = "net", .key = "call_timeout", .flag = "call-timeout", .type = SETTING_DURATION,
		.preset = "30s", .least = 1, .most = DAY,
		.help = "After this a command that has no answer yet is answered TIMEOUT; it may still take effect." },
	[SET_STOP_PATIENCE] = { .section = "net", .key = "stop_patience", .flag = "stop-patience", .type = SETTING_DURATION,
		.preset = "1s", .least = 1, .most = HOUR,
		.help = "During a stop, when all is answered: after this a client that takes none of its answers is cut." },

	[SET_HTTP_PORT] = { .section = "http", .key = "port", .flag = "http-port", .type = SETTING_NUMBER,
		.preset = "5012", .least = 1, .most = 65535, .or_zero = true, .restart = true,
		.help = "The port for HTTP; 0: no TCP." },
	[SET_HTTP_UNIX] = { .section = "http", .key = "unix", .flag = "http-unix", .type = SETTING_PATH, .preset = "",
		.restart = true, .help = "A Unix socket for HTTP, where whoever may open it (its owner) is an admin; not set: the "
			"file http.sock in the data directory; off: none." },
	[SET_HTTP_MAX_HEADER] = { .section = "http", .key = "max_header_bytes", .flag = "http-max-header-bytes",
		.type = SETTING_SIZE, .preset = "16KiB", .least = KIB, .most = MIB,
		.help = "Bytes of a request's first line and header." },
	[SET_HTTP_MAX_HEADERS] = { .section = "http", .key = "max_headers", .flag = "http-max-headers",
		.type = SETTING_NUMBER, .preset = "100", .least = 8, .most = 10000,
		.help = "Header fields of a request." },
	[SET_HTTP_MAX_BODY] = { .section = "http", .key = "max_body_bytes", .flag = "http-max-body-bytes",
		.type = SETTING_SIZE, .preset = "2MiB", .least = KIB, .most = GIB,
		.help = "Bytes of a request's body." },
	[SET_HTTP_HEADER_TIMEOUT] = { .section = "http", .key = "header_timeout", .flag = "http-header-timeout",
		.type = SETTING_DURATION, .preset = "10s", .least = 100, .most = HOUR,
		.help = "After this a request whose header is not there is answered 408." },
	[SET_HTTP_BODY_TIMEOUT] = { .section = "http", .key = "body_timeout", .flag = "http-body-timeout",
		.type = SETTING_DURATION, .preset = "20s", .least = 100, .most = HOUR,
		.help = "The same of its body; a large one that comes at http.min_rate or faster may take longer." },
	[SET_HTTP_MIN_RATE] = { .section = "http", .key = "min_rate", .flag = "http-min-rate",
		.type = SETTING_SIZE, .preset = "1KiB", .least = 1, .most = GIB,
		.help = "Bytes of a body that must come in a second." },
	[SET_HTTP_IDLE] = { .section = "http", .key = "idle_timeout", .flag = "http-idle-timeout",
		.type = SETTING_DURATION, .preset = "60s", .least = 100, .most = DAY,
		.help = "After this a connection without a request is closed." },

	[SET_WORKERS] = { .section = "box", .key = "workers", .flag = "workers", .type = SETTING_NUMBER,
		.preset = "0", .least = 1, .most = 1024, .or_zero = true, .restart = true,
		.help = "Worker threads; 0: one per core, but at most pool.max_instances." },
	[SET_PIN] = { .section = "box", .key = "pin", .flag = "pin", .type = SETTING_BOOL, .preset = "true",
		.restart = true, .help = "Keep each worker on one core." },
	[SET_MEMORY] = { .section = "box", .key = "memory", .flag = "memory", .type = SETTING_SIZE, .preset = "0",
		.least = 16 * MIB, .most = 64 * TIB, .or_zero = true,
		.help = "Memory of the whole server (its RssAnon; clients' buffers and volatile actors at rest come on top): when it is "
			"short the coldest actors go back to disk; 64 MiB and more make sense; 0: no limit." },
	[SET_MAX_ACTORS] = { .section = "box", .key = "max_actors", .flag = "max-actors", .type = SETTING_NUMBER,
		.alias = { "ACTOR_MAX_PER_NODE" }, .seed = "ActorsPerNode", .preset = "0", .least = 100, .most = UINT64_C(1) << 31,
		.or_zero = true, .restart = true,
		.help = "Actors in memory at once; 0: as many as fit." },
	[SET_MAX_MESSAGE] = { .section = "box", .key = "max_message", .flag = "max-message", .type = SETTING_SIZE,
		.preset = "1MiB", .least = KIB, .most = 512 * MIB, .restart = true,
		.help = "Bytes of one message to an actor." },
	[SET_SLOW_TURN] = { .section = "box", .key = "slow_turn", .flag = "slow-turn", .type = SETTING_DURATION,
		.preset = "100ms", .least = 1, .most = HOUR,
		.help = "A turn that takes longer is reported with its actor." },
	[SET_STOP_DEADLINE] = { .section = "box", .key = "stop_deadline", .flag = "stop-deadline",
		.type = SETTING_DURATION, .preset = "30s", .least = 100, .most = HOUR,
		.help = "How long a stop may take to finish what was begun." },

	[SET_ACTOR_IDLE] = { .section = "actors", .key = "idle_timeout", .flag = "actor-idle-timeout",
		.alias = { "ACTOR_DEFAULT_IDLE_TIMEOUT_SECONDS" }, .seed = "DefaultIdleTimeoutSeconds",
		.alias_unit = "s", .type = SETTING_DURATION,
		.preset = "300s", .least = 100, .most = 30 * DAY,
		.help = "After this an actor that nobody needs goes back to storage." },
	[SET_ACTOR_MAILBOX] = { .section = "actors", .key = "mailbox_capacity", .flag = "mailbox-capacity",
		.alias = { "ACTOR_DEFAULT_MAILBOX_CAPACITY" }, .seed = "DefaultMailboxCapacity",
		.type = SETTING_NUMBER, .preset = "4096", .least = 1,
		.most = 1u << 20, .restart = true,
		.help = "Messages that may wait for one actor of a built-in type: they hold callers back when full, and a hot key's burst "
			"needs room. A type declared through noh.h has 100 unless it says otherwise." },

	[SET_LIMIT_RATE] = { .section = "limits", .key = "rate", .flag = "limit-rate", .type = SETTING_RATES, .preset = "",
		.help = "Messages a second that all actors of a type together handle, and how many at once after a pause (else what "
			"comes in a second): counter=5000,later=100:10." },
	[SET_LIMIT_ACTOR_RATE] = { .section = "limits", .key = "actor_rate", .flag = "limit-actor-rate", .type = SETTING_RATES,
		.preset = "", .help = "The same for each actor of a type: counter=50:100." },
	[SET_LIMIT_TURNS] = { .section = "limits", .key = "turns", .flag = "limit-turns", .type = SETTING_COUNTS, .preset = "",
		.least = 1, .most = 1024,
		.help = "Of how many actors of a type turns may run at the same moment: inventory=2." },
	[SET_LIMIT_OVER] = { .section = "limits", .key = "over", .flag = "limit-over", .type = SETTING_LEVELS, .choices = overs,
		.preset = "", .help = "What happens to a message over a rate: wait (in the mailbox, which may fill), or refuse (an error "
			"that says when to try again): counter=refuse. Not said: wait." },

	[SET_USERS_FILE] = { .section = "users", .key = "file", .flag = "users-file", .type = SETTING_PATH,
		.preset = "", .help = "The accounts (noh user add); not set: the file users in the data directory." },
	[SET_ADMIN_TOKEN] = { .section = "users", .key = "admin_token", .type = SETTING_TEXT, .preset = "",
		.least = 32, .most = 1024, .secret = true,
		.help = "The token of one more account named admin, of role admin: 32 characters or more." },

	[SET_LOG_LEVEL] = { .section = "log", .key = "level", .flag = "log-level", .type = SETTING_CHOICE,
		.choices = levels, .preset = "warn", .help = "What is told on stderr: this and what is more serious." },
	[SET_LOG_TYPES] = { .section = "log", .key = "types", .flag = "log-types", .type = SETTING_LEVELS, .choices = levels,
		.preset = "", .help = "The same for some types of actors alone: counter=debug,inventory=error." },
	[SET_LOG_FORMAT] = { .section = "log", .key = "format", .flag = "log-format", .type = SETTING_CHOICE,
		.choices = formats, .preset = "text", .help = "One line per event: text for people, json for programs." },

	[SET_TRACE_SAMPLE] = { .section = "trace", .key = "sample", .flag = "trace-sample", .type = SETTING_NUMBER,
		.preset = "1024", .least = 1, .most = 1u << 30, .or_zero = true,
		.help = "Of so many requests that no client traces one is traced (noh trace list); 0: none." },

	[SET_NODE_ID] = { .section = "node", .key = "id", .flag = "node-id", .alias = { "ACTOR_NODE_ID" }, .seed = "NodeId",
		.type = SETTING_TEXT, .preset = "", .least = 1, .most = 63, .restart = true,
		.help = "The name this server tells of itself; not set: the id of the data directory." },
	[SET_NODE_MODE] = { .section = "node", .key = "mode", .flag = "mode",
		.alias = { "ACTOR_MODE", "ACTOR_NODE_MODE" }, .type = SETTING_CHOICE, .choices = modes,
		.preset = "local", .restart = true,
		.help = "Only local works: one box places and runs its actors itself." },
	[SET_CLAIM_TTL] = { .section = "node", .key = "claim_ttl", .flag = "claim-ttl",
		.alias = { "ACTOR_CLAIM_TTL_SECONDS" }, .seed = "ClaimTtlSeconds", .alias_unit = "s", .type = SETTING_DURATION, .preset = "90s",
		.least = SECOND, .most = DAY,
		.help = "How long the claim on the data directory (its file claim) counts; also, after how long without a round a "
			"worker is reported. What keeps others out is a lock, and that ends with its process." },
	[SET_CLAIM_REFRESH] = { .section = "node", .key = "claim_refresh", .flag = "claim-refresh",
		.alias = { "ACTOR_CLAIM_REFRESH_INTERVAL_SECONDS" }, .seed = "ClaimRefreshIntervalSeconds",
		.alias_unit = "s", .type = SETTING_DURATION,
		.preset = "30s", .least = SECOND, .most = DAY,
		.help = "How often the pulse of all workers is taken and, if they are alive, that claim renewed." },
	[SET_PLACEMENT] = { .section = "node", .key = "placement_endpoint", .flag = "placement-endpoint",
		.alias = { "ACTOR_PLACEMENT_ENDPOINT" }, .type = SETTING_TEXT, .preset = "", .least = 1, .most = 1024,
		.ignored = true, .help = "Accepted, without effect: one box asks nobody where its actors are." },
	[SET_NODES] = { .section = "node", .key = "nodes", .flag = "nodes", .type = SETTING_NUMBER, .preset = "1",
		.least = 1, .most = 1000000, .ignored = true, .help = "Accepted, without effect: this is one box." },
	[SET_PARTITIONS] = { .section = "node", .key = "partitions", .flag = "partitions", .type = SETTING_NUMBER,
		.preset = "0", .least = 1, .most = 1024, .or_zero = true, .restart = true,
		.help = "A partition is what one worker runs: so this is box.workers, where that is not set; 0: as many as there are "
			"workers." },
	[SET_REPLICAS] = { .section = "node", .key = "replicas", .flag = "replicas", .type = SETTING_NUMBER,
		.preset = "0", .least = 1, .most = 1000000, .or_zero = true, .ignored = true,
		.help = "Accepted, if a multiple of the partitions, and without effect: readers see the last state beside the writer." },

	[SET_POOL_NAME] = { .section = "pool", .key = "name", .flag = "pool-name", .type = SETTING_TEXT,
		.preset = "actor-nodes", .least = 1, .most = 63, .ignored = true, .help = "Accepted, without effect: a name." },
	[SET_POOL_TYPE] = { .section = "pool", .key = "pool_type", .flag = "pool-type", .type = SETTING_CHOICE,
		.choices = pools, .preset = "actor-node", .ignored = true,
		.help = "Accepted, without effect: the worker threads are the pool." },
	[SET_MIN_INSTANCES] = { .section = "pool", .key = "min_instances", .flag = "min-instances",
		.type = SETTING_NUMBER, .preset = "10", .least = 0, .most = 1000000, .ignored = true,
		.help = "Accepted, without effect: there are never more worker threads than cores unless box.workers says so." },
	[SET_MAX_INSTANCES] = { .section = "pool", .key = "max_instances", .flag = "max-instances",
		.type = SETTING_NUMBER, .preset = "150", .least = 1, .most = 1000000, .restart = true,
		.help = "Worker threads at most, where box.workers is not set; never more than cores." },
	[SET_SCALE_UP] = { .section = "pool", .key = "scale_up_threshold", .flag = "scale-up-threshold",
		.type = SETTING_RATIO, .preset = "0.8", .most = 1000, .ignored = true,
		.help = "Accepted, without effect: a sleeping worker is woken when its help was measured to pay." },
	[SET_SCALE_DOWN] = { .section = "pool", .key = "scale_down_threshold", .flag = "scale-down-threshold",
		.type = SETTING_RATIO, .preset = "0.2", .most = 1000, .ignored = true,
		.help = "Accepted, without effect: a worker without work sleeps." },
	[SET_ACTORS_PER_NODE] = { .section = "pool", .key = "actors_per_node", .flag = "actors-per-node",
		.type = SETTING_NUMBER, .preset = "1000", .least = 1, .most = UINT64_C(1) << 40, .ignored = true,
		.help = "Accepted, without effect: memory is the limit (box.memory), and box.max_actors where one is wanted." },
};

/* ── errors and memory ── */

static void say(struct settings *s, bool wrong, const char *format, va_list args)
{
	char sentence[2048];

	vsnprintf(sentence, sizeof sentence, format, args);
	for (char *c = sentence; *c; c++)        /* it may quote anything: it stays one line all the same */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	s->errors += wrong;
	if (s->say)
		s->say(s->user, wrong, sentence);
}

void settings_wrong(struct settings *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(s, true, format, args);
	va_end(args);
}

void settings_warn(struct settings *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(s, false, format, args);
	va_end(args);
}

char *settings_copy(const char *text)
{
	char *copy = strdup(text);

	if (!copy) {
		fprintf(stderr, "noh: out of memory\n");
		exit(CLI_FAILED);
	}
	return copy;
}

/* ── values ── */

static void set(struct settings *s, enum setting_id id, const char *text, uint64_t number,
		enum setting_origin from, const char *where)
{
	struct setting_value *v = &s->value[id];

	free(v->text);
	free(v->where);
	*v = (struct setting_value){ settings_copy(text), number, from, settings_copy(where) };
}

void settings_init(struct settings *s, settings_say_fn *say_fn, void *user)
{
	memset(s, 0, sizeof *s);
	s->say = say_fn;
	s->user = user;
	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];
		uint64_t number = 0;
		char why[256];

		if (*t->preset && !settings_value(t, t->preset, &number, why, sizeof why))
			settings_wrong(s, "the default of %s.%s, %s, %s", t->section, t->key, t->preset, why);
		set(s, i, t->preset, number, FROM_DEFAULT, "default");
	}
}

void settings_free(struct settings *s)
{
	for (unsigned i = 0; i < SETTINGS; i++) {
		free(s->value[i].text);
		free(s->value[i].where);
	}
	free(s->config);
	free(s->config_flag);
	memset(s, 0, sizeof *s);
}

bool settings_put(struct settings *s, enum setting_id id, const char *text, enum setting_origin from,
		  const char *where)
{
	const struct setting *t = &settings_table[id];
	uint64_t number;
	char why[256];

	if (!settings_value(t, text, &number, why, sizeof why)) {
		if (t->secret)
			settings_wrong(s, "%s: the value %s", where, why);
		else
			settings_wrong(s, "%s: \"%.200s\" %s", where, text, why);
		return false;
	}
	if (from >= s->value[id].from)
		set(s, id, text, number, from, where);
	return true;
}

bool settings_put_secret_file(struct settings *s, enum setting_id id, const char *path,
			      enum setting_origin from, const char *where)
{
	char text[SETTINGS_VALUE_MAX + 1];
	FILE *f = fopen(path, "re");

	if (!f) {
		settings_wrong(s, "%s: cannot open %s: %s", where, path, strerror(errno));
		return false;
	}
	size_t n = fread(text, 1, sizeof text - 1, f);
	bool bad = ferror(f);

	fclose(f);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;                             /* as an editor or echo leaves them */
	text[n] = 0;
	if (bad || strlen(text) != n) {
		settings_wrong(s, "%s: %s cannot be read, or is no text", where, path);
		return false;
	}
	return settings_put(s, id, text, from, where);
}

uint64_t settings_number(const struct settings *s, enum setting_id id)
{
	return s->value[id].number;
}

const char *settings_text(const struct settings *s, enum setting_id id)
{
	return s->value[id].text;
}

bool settings_same(const struct settings *a, const struct settings *b, enum setting_id id)
{
	enum setting_type type = settings_table[id].type;
	bool text = type == SETTING_TEXT || type == SETTING_PATH || type == SETTING_ADDRESS || type == SETTING_LEVELS ||
		    type == SETTING_RATES || type == SETTING_COUNTS;

	return text ? strcmp(settings_text(a, id), settings_text(b, id)) == 0
		    : settings_number(a, id) == settings_number(b, id);
}

bool settings_given(const struct settings *s, enum setting_id id)
{
	return s->value[id].from != FROM_DEFAULT;
}

const char *settings_shown(const struct settings *s, enum setting_id id)
{
	return settings_table[id].secret && *s->value[id].text ? "(secret)" : s->value[id].text;
}

const char *settings_origin(const struct settings *s, enum setting_id id)
{
	return s->value[id].where;
}

void settings_env_name(enum setting_id id, char *buf, size_t size)
{
	snprintf(buf, size, "NOH_%s_%s", settings_table[id].section, settings_table[id].key);
	for (char *c = buf; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

bool settings_is_loopback(const char *address)
{
	struct in_addr four;
	struct in6_addr six;

	if (strcmp(address, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, address, &four) == 1)
		return (ntohl(four.s_addr) >> 24) == 127;
	return inet_pton(AF_INET6, address, &six) == 1 &&
	       (IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127));
}
