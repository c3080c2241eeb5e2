/* tools/serve_say.c - what the server says: the banner on stdout, one line per event on stderr. */
#include "tools/serve_in.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* ── the log ── */

/* Lines go through the logger's ring, in their order; a stderr that nobody reads holds up nothing. */
int server_log_open(struct server *s)
{
	char levels[SETTINGS_VALUE_MAX + 16];

	s->log.json = settings_number(&s->settings, SET_LOG_FORMAT) == 1;
	s->log.journal = noh_logger_is_journal(STDERR_FILENO);
	if (!s->log.logger) {
		int rc = noh_logger_open(&s->log.logger, &(noh_logger_options){ .journal = s->log.journal });

		if (rc != NOH_OK)
			return rc;
	}
	noh_logger_set_json(s->log.logger, s->log.json);
	snprintf(levels, sizeof levels, "%s %s", settings_text(&s->settings, SET_LOG_LEVEL),
		 settings_text(&s->settings, SET_LOG_TYPES));
	return s->box ? noh_set_log_level(s->box, levels) : NOH_OK;
}

void server_log_close(struct server *s)
{
	noh_logger_close(s->log.logger, 2000);
	s->log.logger = NULL;
}

void server_say(struct server *s, int level, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	noh_logger_write(s->log.logger, &(noh_log_line){ .level = level, .msg = text, .actor = "", .type = "", .msg_id = "",
							  .trace_id = "", .span_id = "", .shard = -1 });
}

/* ── the banner ── */

static void tell_data(const struct server *s, char *buf, size_t size)
{
	char number[32];
	noh_box_stats stats;

	if (settings_number(&s->settings, SET_DURABILITY) == 2)
		snprintf(buf, size, "none: all is gone when the server ends");
	else if (s->fresh)
		snprintf(buf, size, "%s (new)", settings_text(&s->settings, SET_DIR));
	else if (noh_get_stats(s->box, &stats) == NOH_OK)
		snprintf(buf, size, "%s (%s actors stored)", settings_text(&s->settings, SET_DIR),
			 cli_count(number, sizeof number, stats.stored));
}

static void tell_users(const struct server *s, char *buf, size_t size)
{
	if (s->accounts.count)
		snprintf(buf, size, "%zu (%s)", s->accounts.count, s->users);
	else if (s->accounts.present)
		snprintf(buf, size, "%s has none: nobody may do anything; noh user add NAME", s->users);
	else
		snprintf(buf, size, "none: whoever connects may do everything; noh user add NAME");
}

/* "127.0.0.1:7411, /run/noh/resp.sock"; "none". */
static void tell_address(const struct server *s, const struct given_socket *given, enum setting_id port, const char *path, char *buf,
			 size_t size)
{
	const char *address = settings_text(&s->settings, SET_BIND);
	bool six = strchr(address, ':') != NULL, tcp = settings_number(&s->settings, port);

	if (!path)
		path = "";
	if (given->fd)
		snprintf(buf, size, "%s (the service manager's)%s%s", given->at, *path ? ", " : "", path);
	else if (tcp)
		snprintf(buf, size, "%s%s%s:%s%s%s", six ? "[" : "", address, six ? "]" : "",
			 settings_text(&s->settings, port), *path ? ", " : "", path);
	else
		snprintf(buf, size, "%s", *path ? path : "none");
}

/* "0": there is none. */
static const char *port_of(const struct server *s, const struct given_socket *given, enum setting_id port)
{
	return given->fd ? strrchr(given->at, ':') + 1 : settings_text(&s->settings, port);
}

static void try_http(const struct server *s, const char *lead)
{
	char local[4200];
	const char *port = port_of(s, &s->given.http, SET_HTTP_PORT), *address = settings_is_loopback(settings_text(&s->settings, SET_BIND)) ? "localhost"
											  : settings_text(&s->settings, SET_BIND);
	bool six = strchr(address, ':') != NULL;
	const char *path = settings_http_path(&s->settings, local, sizeof local);

	if (strcmp(port, "0") != 0)
		printf("%scurl http://%s%s%s:%s/readyz\n", lead, six ? "[" : "", address, six ? "]" : "", port);
	else if (path)
		printf("%scurl --unix-socket %s http://localhost/readyz\n", lead, path);
}

static void try_resp(const struct server *s)
{
	const char *port = port_of(s, &s->given.resp, SET_RESP_PORT);
	char how[4300];

	if (strcmp(port, "0") == 0)
		snprintf(how, sizeof how, "-s %s", settings_text(&s->settings, SET_UNIX));
	else
		snprintf(how, sizeof how, "-p %s", port);
	if (users_exist(s))
		strcat(how, " --user NAME --pass TOKEN");
	printf("redis-cli %s INCR hits\n"
	       "            redis-cli %s INV.RESTOCK sku-1 100\n"
	       "            redis-cli %s INV.RESERVE sku-1 2 TTL 600 IDEM order-77\n"
	       "            redis-cli %s INFO\n", how, how, how, how);
}

static void tell_try(const struct server *s)
{
	bool resp = strcmp(port_of(s, &s->given.resp, SET_RESP_PORT), "0") != 0 || *settings_text(&s->settings, SET_UNIX);

	printf("\ntry         ");
	if (resp)
		try_resp(s);
	try_http(s, resp ? "            " : "");
}

void server_banner(struct server *s)
{
	static const char *const meanings[] = { "disk: an answer means it is on disk",
						"memory: an answer may be ahead of the disk",
						"none: nothing is stored" };
	char data[4300], users[4400], resp[4300], http[4300], local[4200], took[32];
	const char *meaning = meanings[settings_number(&s->settings, SET_DURABILITY)];
	noh_net_stats net = { .io = "" };
	noh_box_stats stats = { .workers = 0 };

	noh_get_net_stats(s->box, &net);
	noh_get_stats(s->box, &stats);
	tell_data(s, data, sizeof data);
	tell_users(s, users, sizeof users);
	tell_address(s, &s->given.resp, SET_RESP_PORT, settings_text(&s->settings, SET_UNIX), resp, sizeof resp);
	tell_address(s, &s->given.http, SET_HTTP_PORT, settings_http_path(&s->settings, local, sizeof local), http, sizeof http);
	cli_time(took, sizeof took, (double)(cli_now_ns() - s->began_ns));
	if (s->log.json || s->log.journal) {
		server_say(s, NOH_INFO, "noh %s ready in %s; listens on %s, for HTTP on %s; data %s; users %s; io %s; %u workers; "
			   "durability %s", noh_version(), took, resp, http, data, users, net.io, stats.workers, meaning);
		return;
	}
	printf("noh %s\n"
	       "  data        %s\n"
	       "  listens     %s\n"
	       "  http        %s\n"
	       "  users       %s\n"
	       "  io          %s\n"
	       "  workers     %u\n"
	       "  durability  %s\n",
	       noh_version(), data, resp, http, users, net.io, stats.workers, meaning);
	if (s->settings.config)
		printf("  settings    %s\n", s->settings.config);
	tell_try(s);
	printf("\nready in %s; Ctrl-C stops it\n", took);
	fflush(stdout);
}

/* ── the service manager: one datagram to $NOTIFY_SOCKET (a path, or @ and an abstract name) ── */

void server_notify(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	struct timeval patience = { .tv_usec = 200000 };         /* one that does not read must not hold us up */
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}
