/* tools/serve.c - noh serve: from settings to a box that listens. */
#include "tools/serve.h"

#include "noh_actors.h"
#include "tools/config.h"
#include "tools/crash.h"
#include "tools/serve_in.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

void serve_help_more(void)
{
	putchar('\n');
	settings_print_help();
	printf("\nEvery option is a setting of the configuration file and of the environment, too: noh config show.\n"
	       "Signals: SIGTERM, Ctrl-C finish what was begun and stop; a second one ends at once; SIGHUP reads settings\n"
	       "and users again.\n");
}

static bool is_volatile(const struct server *s)
{
	return strcmp(settings_text(&s->settings, SET_DURABILITY), "none") == 0;
}

/* The box does not know what its settings are called here. */
static const char *way_out(const char *why)
{
	if (strncmp(why, "cannot listen on ", 17) != 0 || !strstr(why, " port "))
		return "";
	return strstr(why, " (HTTP): ") ? "; --http-port takes another one, or 0 for none"
				        : "; --resp-port takes another one, or 0 for none";
}

static int failed(int rc)
{
	const char *why = noh_why();

	fprintf(stderr, "noh serve: %s%s\n", why, way_out(why));
	if (rc == NOH_ENOTYPE)
		return CLI_USAGE;                /* a setting names a type that there is not */
	return cli_exit_of(rc);
}

/* ── before the box ── */

/* Every connection is a file. What the system allows is taken; if that is too little, there are fewer. */
void server_fit_connections(struct server *s)
{
	enum { OWN_FILES = 128 };                /* segments, image, rings, listeners ... */
	uint64_t wanted = settings_number(&s->settings, SET_MAX_CONNECTIONS), most;
	struct rlimit files;

	s->max_connections = wanted;
	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == RLIM_INFINITY ||
	    files.rlim_cur >= wanted + OWN_FILES)
		return;
	most = files.rlim_cur > 2 * OWN_FILES ? files.rlim_cur - OWN_FILES : files.rlim_cur / 2;
	server_say(s, NOH_WARN, "%s connections (%s) need %llu open files, and this process may have %llu: %llu connections at "
		   "most; raise ulimit -n or LimitNOFILE", settings_text(&s->settings, SET_MAX_CONNECTIONS),
		   settings_origin(&s->settings, SET_MAX_CONNECTIONS), (unsigned long long)wanted + OWN_FILES,
		   (unsigned long long)files.rlim_cur, (unsigned long long)most);
	s->max_connections = most;
}

/* Where others than this machine could come from, and by which setting. NULL: nowhere. */
static const char *open_address(const struct server *s, const char **origin)
{
	const char *address = settings_text(&s->settings, SET_BIND);
	bool resp = settings_number(&s->settings, SET_RESP_PORT) && !s->given.resp.fd;
	bool http = settings_number(&s->settings, SET_HTTP_PORT) && !s->given.http.fd;

	*origin = "the service manager's socket";
	if (s->given.resp.fd && !s->given.resp.loopback)
		return s->given.resp.at;
	if (s->given.http.fd && !s->given.http.loopback)
		return s->given.http.at;
	*origin = settings_origin(&s->settings, SET_BIND);
	return (resp || http) && !settings_is_loopback(address) ? address : NULL;
}

static bool may_listen_there(struct server *s)
{
	const char *origin, *address = open_address(s, &origin);

	if (!address || users_exist(s))
		return true;
	if (settings_number(&s->settings, SET_INSECURE)) {
		server_say(s, NOH_WARN, "there are no users, and %s may be reached from elsewhere: whoever connects may do "
			   "everything", address);
		return true;
	}
	settings_wrong(&s->settings, "%s: %s may be reached from elsewhere, and there are no users; add one (noh user add "
		       "NAME), or say --insecure", origin, address);
	return false;
}

/* ── the box ── */

/* One per core, at most as many as the pool may have; a partition is what one worker runs. */
static unsigned worker_count(const struct settings *set)
{
	uint64_t workers = settings_number(set, SET_WORKERS), most = settings_number(set, SET_MAX_INSTANCES);
	cpu_set_t cores;

	if (!workers)
		workers = settings_number(set, SET_PARTITIONS);
	if (workers)
		return (unsigned)workers;
	if (sched_getaffinity(0, sizeof cores, &cores) != 0 || most >= (uint64_t)CPU_COUNT(&cores))
		return 0;
	return (unsigned)most;
}

/* The box knows better where it keeps them. */
uint64_t server_events_bytes(const struct settings *set)
{
	return settings_given(set, SET_EVENTS_BYTES) ? settings_number(set, SET_EVENTS_BYTES) : 0;
}

static int open_box(struct server *s)
{
	const struct settings *set = &s->settings;
	char head[4200];
	const noh_options options = {
		.workers = worker_count(set),
		.unpinned = !settings_number(set, SET_PIN),
		.max_message = (uint32_t)settings_number(set, SET_MAX_MESSAGE),
		.memory_budget = settings_number(set, SET_MEMORY),
		.max_actors = settings_number(set, SET_MAX_ACTORS),
		.slow_turn_ms = (uint32_t)settings_number(set, SET_SLOW_TURN),
		.dir = is_volatile(s) ? NULL : settings_text(set, SET_DIR),
		.journal_bytes = settings_number(set, SET_JOURNAL),
		.idem_ms = settings_number(set, SET_IDEM_KEEP),
		.idem_bytes = settings_number(set, SET_IDEM_BYTES),
		.no_uring = strcmp(settings_text(set, SET_IO), "epoll") == 0,
		.events_bytes = server_events_bytes(set),
		.events_ms = settings_number(set, SET_EVENTS_KEEP),
		.events_detail = (int)settings_number(set, SET_EVENTS_DETAIL),
		.log_line = noh_logger_write,
		.log_user = s->log.logger,
	};
	snprintf(head, sizeof head, "%s/noh.dir", settings_text(set, SET_DIR));
	s->fresh = access(head, F_OK) != 0;
	return noh_open(&s->box, &options);
}

/* The built-in types have good values of their own: only what somebody asked for changes them. */
static int register_type(struct server *s, const noh_type *builtin)
{
	noh_type type = *builtin;

	if (settings_given(&s->settings, SET_ACTOR_IDLE))
		type.idle_timeout_ms = (uint32_t)settings_number(&s->settings, SET_ACTOR_IDLE);
	if (settings_given(&s->settings, SET_ACTOR_MAILBOX))
		type.mailbox_capacity = (uint32_t)settings_number(&s->settings, SET_ACTOR_MAILBOX);
	return noh_register(s->box, &type);
}

/* The directory's id, or one for this run. */
static void read_dir_id(struct server *s)
{
	char path[4200], line[256];
	uint64_t random = 0;
	FILE *f;

	(void)!getrandom(&random, sizeof random, 0);
	snprintf(s->dir_id, sizeof s->dir_id, "%016llx", (unsigned long long)random);
	snprintf(path, sizeof path, "%s/noh.dir", settings_text(&s->settings, SET_DIR));
	f = is_volatile(s) ? NULL : fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "id %16[0-9a-f]", s->dir_id) == 1)
			break;
	if (f)
		fclose(f);
}

/* The name of this server: what was given, or that id. */
static void name_node(struct server *s)
{
	const char *given = settings_text(&s->settings, SET_NODE_ID);

	read_dir_id(s);
	snprintf(s->node_id, sizeof s->node_id, "%s", *given ? given : s->dir_id);
}

/* What INFO and CONFIG GET tell: the settings in effect, and never a secret. */
static size_t write_info(const struct server *s, struct info_table *table)
{
	size_t at = 0, n = 0;

	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];
		const char *value = i == SET_NODE_ID ? s->node_id : settings_text(&s->settings, i);

		if (t->secret)
			continue;
		if (table) {
			table->pairs[n++] = table->text + at;
			sprintf(table->text + at, "%s.%s", t->section, t->key);
		}
		at += strlen(t->section) + strlen(t->key) + 2;
		if (table) {
			table->pairs[n++] = table->text + at;
			strcpy(table->text + at, value);
		}
		at += strlen(value) + 1;
	}
	return at;
}

bool server_fill_info(struct server *s)
{
	struct info_table *fresh = calloc(1, sizeof *fresh + write_info(s, NULL));

	if (!fresh)
		return false;
	write_info(s, fresh);
	fresh->older = s->info;
	s->info = fresh;
	return true;
}

static void on_shutdown(void *user)
{
	(void)user;
	kill(getpid(), SIGTERM);                 /* as if from outside: the main thread waits for it */
}

noh_listen_options server_listen_options(struct server *s)
{
	const struct settings *set = &s->settings;
	const char *address = settings_text(set, SET_BIND);
	uint64_t port = settings_number(set, SET_RESP_PORT);

	return (noh_listen_options){
		.bind = strcmp(address, "localhost") == 0 ? "127.0.0.1" : address,
		.resp_port = port ? (int)port : -1,
		.unix_path = *settings_text(set, SET_UNIX) ? settings_text(set, SET_UNIX) : NULL,
		.http_port = (int)settings_number(set, SET_HTTP_PORT),
		.http_unix_path = settings_http_path(set, s->http_path, sizeof s->http_path),
		.http_max_header_bytes = (uint32_t)settings_number(set, SET_HTTP_MAX_HEADER),
		.http_max_headers = (uint32_t)settings_number(set, SET_HTTP_MAX_HEADERS),
		.http_max_body_bytes = (uint32_t)settings_number(set, SET_HTTP_MAX_BODY),
		.http_header_ms = (uint32_t)settings_number(set, SET_HTTP_HEADER_TIMEOUT),
		.http_body_ms = (uint32_t)settings_number(set, SET_HTTP_BODY_TIMEOUT),
		.http_min_rate = (uint32_t)settings_number(set, SET_HTTP_MIN_RATE),
		.http_idle_ms = (uint32_t)settings_number(set, SET_HTTP_IDLE),
		.io = (int)settings_number(set, SET_IO),
		.max_connections = (uint32_t)s->max_connections,
		.max_address_connections = (uint32_t)settings_number(set, SET_MAX_ADDRESS_CONNECTIONS),
		.auth_failures = (uint32_t)settings_number(set, SET_AUTH_FAILURES),
		.max_args = (uint32_t)settings_number(set, SET_MAX_ARGS),
		.max_arg_bytes = (uint32_t)settings_number(set, SET_MAX_ARG_BYTES),
		.max_command_bytes = (uint32_t)settings_number(set, SET_MAX_COMMAND_BYTES),
		.max_inline_bytes = (uint32_t)settings_number(set, SET_MAX_INLINE_BYTES),
		.max_pipeline = (uint32_t)settings_number(set, SET_MAX_PIPELINE),
		.max_output_bytes = (uint32_t)settings_number(set, SET_MAX_OUTPUT_BYTES),
		.max_subscriptions = (uint32_t)settings_number(set, SET_MAX_SUBSCRIPTIONS),
		.max_subscriber_bytes = (uint32_t)settings_number(set, SET_MAX_SUBSCRIBER_BYTES),
		.timeout_ms = (uint32_t)settings_number(set, SET_TIMEOUT),
		.idle_ms = (uint32_t)settings_number(set, SET_IDLE),
		.call_ms = (uint32_t)settings_number(set, SET_CALL),
		.stop_ms = (uint32_t)settings_number(set, SET_STOP_PATIENCE),
		.durability = strcmp(settings_text(set, SET_DURABILITY), "memory") == 0 ? NOH_MEMORY : NOH_DISK,
		.trace_sample = (uint32_t)settings_number(set, SET_TRACE_SAMPLE),
		.may_shutdown = settings_number(set, SET_SHUTDOWN),
		.on_shutdown = on_shutdown,
		.on_reload = reload_asked,
		.on_drain = drain_asked,
		.node_id = s->node_id,
		.info = s->info ? s->info->pairs : NULL,
		.user = s,
		.resp_fd = s->given.resp.fd,
		.http_fd = s->given.http.fd,
	};
}

static int start_listening(struct server *s)
{
	const noh_listen_options options = server_listen_options(s);

	return noh_listen(s->box, &options);
}

static int start_box(struct server *s)
{
	char why[400];
	int rc = open_box(s);

	if (rc != NOH_OK)
		return failed(rc);
	crash_watch(s->box);
	name_node(s);
	(void)server_fill_info(s);
	rc = register_type(s, noh_counter_type());
	if (rc == NOH_OK)
		rc = register_type(s, noh_inventory_type());
	if (rc == NOH_OK)
		rc = register_type(s, noh_later_type());
	if (rc == NOH_OK)
		rc = server_log_open(s);         /* again: the levels of types, which there are by now */
	if (rc == NOH_OK && !limits_check(s, &s->settings, why, sizeof why)) {
		fprintf(stderr, "noh serve: %s\n", why);
		crash_watch(NULL);
		noh_close(s->box);
		return CLI_USAGE;
	}
	if (rc == NOH_OK)
		rc = limits_apply(s, NULL);
	if (rc == NOH_OK)
		rc = start_listening(s);
	if (rc == NOH_OK)
		rc = users_apply(s, &s->accounts);       /* before the first connection is served */
	if (rc == NOH_OK)
		rc = noh_start(s->box);
	if (rc == NOH_OK)
		return CLI_FINE;
	rc = failed(rc);
	crash_watch(NULL);
	noh_close(s->box);
	return rc;
}

/* ── the verb ── */

static int serve(struct server *s)
{
	char why[1024];

	server_take_signals();                   /* before there are threads */
	int rc = server_log_open(s);

	if (rc != NOH_OK)
		return failed(rc);
	server_fit_connections(s);
	accounts_path(&s->settings, s->users, sizeof s->users);
	if (!sockets_take(s, why, sizeof why)) {
		fprintf(stderr, "noh serve: %s\n", why);
		return CLI_USAGE;
	}
	if (!users_read(s, &s->settings, s->users, &s->accounts, &s->mark, why, sizeof why)) {
		fprintf(stderr, "noh serve: %s\n", why);
		return CLI_USAGE;
	}
	if (!may_listen_there(s))
		return CLI_USAGE;
	int code = start_box(s);

	if (code != CLI_FINE)
		return code;
	server_banner(s);
	server_notify("READY=1");
	return server_run(s);
}

int serve_main(int argc, char **argv)
{
	struct cli_args args = { .count = argc, .at = 1, .words = argv };
	static struct server s;
	int code = CLI_USAGE;

	s.began_ns = cli_now_ns();
	settings_init(&s.settings, config_say, "serve");
	while (s.settings.errors == 0 && cli_next(&args)) {
		if (!args.name)
			settings_wrong(&s.settings, "one word too many: \"%.60s\"; options begin with --", args.value);
		else if (!settings_flag(&s.settings, &args))
			settings_unknown_flag(&s.settings, "serve", args.name, NULL, 0);
	}
	if (s.settings.errors == 0 && settings_load(&s.settings, environ))
		code = serve(&s);
	server_log_close(&s);
	accounts_free(&s.accounts);
	settings_free(&s.settings);
	for (struct info_table *next; s.info; s.info = next) {
		next = s.info->older;
		free(s.info);
	}
	return code;
}
