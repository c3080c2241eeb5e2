/* tools/top.c - noh top: what a server does, second by second, from its /metrics.
 *
 * The screen is the alternate one: what was there before is there again afterwards, whatever ends us. A screen is made in
 * memory and written at once, lines cut to the width, as many of them as there is room for.
 */
#include "tools/top.h"

#include "tools/ask.h"
#include "tools/scrape.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { ROWS_MAX = 1024 };

#define TURNS "noh_turns_total"

struct top {
	struct words  *words;
	struct client  client;
	struct scrape  before, now;
	bool           has_before;
	uint64_t       every_ms;
	char           trouble[600];       /* why the last look failed; "": it did not */

	char          *screen;
	size_t         len, room;
	unsigned       columns, rows, row;
	bool           color;
};

/* ── looking ── */

/* The exit code; why is in trouble. */
static int look(struct top *t)
{
	static const int codes[] = { [CLIENT_OK] = CLI_FINE, [CLIENT_UNREACHABLE] = CLI_TEMPORARY, [CLIENT_TIMED_OUT] = CLI_TIMEOUT,
				     [CLIENT_BROKEN] = CLI_FAILED };
	struct client_reply r;
	struct scrape fresh;
	uint64_t at = cli_now_ns();
	enum client_result result = client_call(&t->client, "GET", "/metrics", "Accept: text/plain\r\n", NULL, 0, &r, t->trouble,
						sizeof t->trouble);

	if (result != CLIENT_OK)
		return codes[result];
	if (r.status != 200) {
		snprintf(t->trouble, sizeof t->trouble, "%s answers %d to /metrics%s", t->client.where, r.status,
			 r.status == 401 ? "; give your token: --token-file FILE or NOH_TOKEN" : "");
		result = CLIENT_BROKEN;
	}
	bool good = result == CLIENT_OK && scrape_read(&fresh, r.body, r.len);
	int code = r.status == 200 ? CLI_FAILED : ask_code(r.status);

	client_reply_free(&r);
	if (!good)
		return code;
	t->trouble[0] = 0;
	fresh.at_ns = at;
	if (t->has_before)
		scrape_free(&t->before);
	t->before = t->now;
	t->has_before = t->before.text != NULL;
	t->now = fresh;
	return CLI_FINE;
}

static double seconds(const struct top *t)
{
	return t->has_before ? (double)(t->now.at_ns - t->before.at_ns) * 1e-9 : 0;
}

/* Growth per second since the last look; 0 if there was none, or the server started anew. */
static double rate(const struct top *t, const char *name, const char *label, const char *value)
{
	double more = t->has_before ? scrape_sum(&t->now, name, label, value) - scrape_sum(&t->before, name, label, value) : 0;

	return more > 0 && seconds(t) > 0 ? more / seconds(t) : 0;
}

static double value_of(const struct top *t, const char *name, const char *label, const char *value)
{
	return scrape_sum(&t->now, name, label, value);
}

static double quantile(const struct top *t, const char *type, double q)
{
	return scrape_quantile(t->has_before ? &t->before : NULL, &t->now, "noh_turn_duration_seconds", "type", type, q);
}

/* Of the time since the last look, the part a worker was at work; before a second look, as the server last saw it. */
static double busy(const struct top *t, const char *worker)
{
	double part = rate(t, "noh_worker_busy_seconds_total", "worker", worker);

	if (!t->has_before)
		return value_of(t, "noh_worker_busy_ratio", "worker", worker);
	return part < 1 ? part : 1;
}

/* ── drawing ── */

static void put(struct top *t, const char *text, size_t len)
{
	if (t->len + len > t->room) {
		size_t room = 2 * (t->len + len) + 4096;
		char *screen = realloc(t->screen, room);

		if (!screen)
			return;
		t->screen = screen;
		t->room = room;
	}
	memcpy(t->screen + t->len, text, len);
	t->len += len;
}

/* One line, cut to the width; style: what comes before it, or "". */
static void line(struct top *t, const char *style, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void line(struct top *t, const char *style, const char *format, ...)
{
	char text[600];
	va_list list;

	if (t->row >= t->rows)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	size_t len = strlen(text);

	if (len > t->columns)
		len = t->columns;
	if (t->row++)
		put(t, "\n", 1);
	if (t->color && *style)
		put(t, style, strlen(style));
	put(t, text, len);
	if (t->color && *style)
		put(t, "\033[0m", 4);
	if (t->rows < ROWS_MAX)
		put(t, "\033[K", 3);
}

#define HEAD "\033[7m"
#define LOUD "\033[1m"
#define BAD  "\033[31m"

static void draw_summary(struct top *t)
{
	char used[24], journal[24], rss[24], lag[24], rate_text[24];
	const char *const none = NULL;
	double store = value_of(t, "noh_store_used_bytes", none, none), lag_s = value_of(t, "noh_durable_lag_seconds", none, none);

	cli_bytes(used, sizeof used, (uint64_t)(store > 0 ? store : 0));
	cli_bytes(journal, sizeof journal, (uint64_t)value_of(t, "noh_journal_bytes", none, none));
	cli_bytes(rss, sizeof rss, (uint64_t)value_of(t, "process_resident_memory_bytes", none, none));
	cli_time(lag, sizeof lag, lag_s * 1e9);
	cli_rate(rate_text, sizeof rate_text, rate(t, "noh_requests_total", none, none));
	line(t, LOUD, "noh top - %s   %s requests/s   %.0f connections   every %.1f s, q ends it", t->client.where, rate_text,
	     value_of(t, "noh_connections", none, none), (double)t->every_ms / 1000);
	line(t, "", "memory %s   image %s   journal %s   %.0f actors active   %.0f timers", rss, used, journal,
	     value_of(t, "noh_actors_active", none, none), value_of(t, "noh_timers_pending", none, none));
	line(t, lag_s > 1 ? BAD : "", "durable lag %s   dead letters %.0f   quarantined %.0f   commits %.0f/s", lag,
	     value_of(t, "noh_dead_letters", none, none), value_of(t, "noh_quarantined", none, none),
	     rate(t, "noh_commit_duration_seconds_count", none, none));
	line(t, *t->trouble ? BAD : "", "%s", t->trouble);
}


static void draw_workers(struct top *t, unsigned most)
{
	const char *workers[ROWS_MAX];
	size_t n = scrape_values(&t->now, TURNS, "worker", workers, ROWS_MAX);
	char a[24], b[24];

	line(t, HEAD, "%6s %12s %8s %12s   %-*s", "WORKER", "TURNS/S", "BUSY", "STEALS/S", (int)t->columns - 44, "");
	for (size_t i = 0; i < n && i < most; i++) {
		double part = busy(t, workers[i]);
		char bar[33] = "";

		memset(bar, '#', (size_t)(part * 32 > 32 ? 32 : part * 32));
		line(t, "", "%6.6s %12s %6.1f %% %12s   %s", workers[i],
		     cli_rate(a, sizeof a, rate(t, TURNS, "worker", workers[i])), part * 100,
		     cli_rate(b, sizeof b, rate(t, "noh_scheduler_steals_total", "worker", workers[i])), bar);
	}
	if (n > most)
		line(t, "", "   ... and %zu more", n - most);
}

static const char *latency(char *buf, size_t size, double s)
{
	if (s < 0)
		snprintf(buf, size, "-");
	else
		cli_time(buf, size, s * 1e9);
	return buf;
}

static void draw_types(struct top *t)
{
	const char *types[ROWS_MAX];
	size_t n = scrape_values(&t->now, "noh_actors_active", "type", types, ROWS_MAX);
	char a[24], b[24], c[24], d[24];

	line(t, HEAD, "%-20s %11s %10s %9s %9s %9s %-*s", "TYPE", "ACTORS", "MSGS/S", "P50", "P99", "WAITING", (int)t->columns - 74, "");
	for (size_t i = 0; i < n; i++)
		line(t, "", "%-20.20s %11s %10s %9s %9s %9.0f", types[i],
		     cli_count(a, sizeof a, (uint64_t)value_of(t, "noh_actors_active", "type", types[i])),
		     cli_rate(b, sizeof b, rate(t, "noh_messages_processed_total", "type", types[i])),
		     latency(c, sizeof c, quantile(t, types[i], 0.5)), latency(d, sizeof d, quantile(t, types[i], 0.99)),
		     value_of(t, "noh_mailbox_depth", "type", types[i]));
}

static void draw(struct top *t)
{
	unsigned room = t->rows > 16 ? (t->rows - 8) / 2 : 4;

	t->len = 0;
	t->row = 0;
	if (t->rows < ROWS_MAX)
		put(t, "\033[H", 3);
	draw_summary(t);
	draw_workers(t, room);
	line(t, "", "%s", "");
	draw_types(t);
	put(t, t->rows < ROWS_MAX ? "\033[J" : "\n", t->rows < ROWS_MAX ? 3 : 1);
	for (size_t done = 0; done < t->len; ) {
		ssize_t n = write(STDOUT_FILENO, t->screen + done, t->len - done);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		done += n > 0 ? (size_t)n : 0;
	}
}

/* ── for programs ── */

/* Below zero, or none: null. */
static void put_number(noh_json_out *o, const char *name, double value)
{
	char text[48];

	if (!(value >= 0) || isinf(value))
		noh_json_put_null(o, name);
	else
		noh_json_put_raw(o, name, text, (size_t)snprintf(text, sizeof text, "%.9g", value));
}

static void put_worker(noh_json_out *o, const struct top *t, const char *worker)
{
	noh_json_open(o, NULL, '{');
	noh_json_put_text(o, "worker", worker, strlen(worker));
	put_number(o, "turns_per_second", rate(t, TURNS, "worker", worker));
	put_number(o, "busy", busy(t, worker));
	put_number(o, "steals_per_second", rate(t, "noh_scheduler_steals_total", "worker", worker));
	noh_json_close(o, '}');
}

static void put_type(noh_json_out *o, const struct top *t, const char *type)
{
	noh_json_open(o, NULL, '{');
	noh_json_put_text(o, "type", type, strlen(type));
	put_number(o, "actors_active", value_of(t, "noh_actors_active", "type", type));
	put_number(o, "messages_per_second", rate(t, "noh_messages_processed_total", "type", type));
	put_number(o, "mailbox_depth", value_of(t, "noh_mailbox_depth", "type", type));
	put_number(o, "turn_p50_seconds", quantile(t, type, 0.5));
	put_number(o, "turn_p99_seconds", quantile(t, type, 0.99));
	noh_json_close(o, '}');
}

static void write_json(noh_json_out *o, const struct top *t)
{
	const char *names[ROWS_MAX];
	size_t n = scrape_values(&t->now, TURNS, "worker", names, ROWS_MAX);

	noh_json_open(o, NULL, '{');
	noh_json_put_text(o, "server", t->client.where, strlen(t->client.where));
	put_number(o, "seconds", seconds(t));
	put_number(o, "requests_per_second", rate(t, "noh_requests_total", NULL, NULL));
	put_number(o, "durable_lag_seconds", value_of(t, "noh_durable_lag_seconds", NULL, NULL));
	put_number(o, "dead_letters", value_of(t, "noh_dead_letters", NULL, NULL));
	put_number(o, "connections", value_of(t, "noh_connections", NULL, NULL));
	noh_json_open(o, "workers", '[');
	for (size_t i = 0; i < n; i++)
		put_worker(o, t, names[i]);
	noh_json_close(o, ']');
	n = scrape_values(&t->now, "noh_actors_active", "type", names, ROWS_MAX);
	noh_json_open(o, "types", '[');
	for (size_t i = 0; i < n; i++)
		put_type(o, t, names[i]);
	noh_json_close(o, ']');
	noh_json_close(o, '}');
}

static void print_json(const struct top *t)
{
	noh_json_out counted = { .at = NULL }, all;

	write_json(&counted, t);
	all = (noh_json_out){ .at = malloc(counted.len), .room = counted.len };
	if (all.at) {
		write_json(&all, t);
		printf("%.*s\n", (int)all.len, all.at);
	}
	fflush(stdout);
	free(all.at);
}

/* ── the terminal ── */

static struct termios terminal_before;
static volatile sig_atomic_t ended, resized;

static void on_signal(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else
		ended = 1;
}

static void terminal_back(void)
{
	static const char leave[] = "\033[?25h\033[?1049l";

	(void)!write(STDOUT_FILENO, leave, sizeof leave - 1);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal_before);
}

static bool terminal_take(void)
{
	static const char enter[] = "\033[?1049h\033[?25l\033[2J";
	struct sigaction on = { .sa_handler = on_signal };
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &terminal_before) != 0)
		return false;
	raw = terminal_before;
	raw.c_lflag &= (tcflag_t)~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0)
		return false;
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGHUP, &on, NULL);
	sigaction(SIGWINCH, &on, NULL);
	(void)!write(STDOUT_FILENO, enter, sizeof enter - 1);
	return true;
}

static void terminal_size(struct top *t)
{
	struct winsize size;

	t->columns = 80;
	t->rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		t->columns = size.ws_col;
		t->rows = size.ws_row < ROWS_MAX ? size.ws_row : ROWS_MAX - 1;
	}
}

/* Until it is time for the next look. False: q was typed, or a signal came. */
static bool wait_keys(struct top *t)
{
	uint64_t until = cli_now_ns() + t->every_ms * 1000000u, now;

	while (!ended && (now = cli_now_ns()) < until) {
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
		char key = 0;

		if (poll(&p, 1, (int)((until - now) / 1000000u) + 1) > 0) {
			ssize_t n = read(STDIN_FILENO, &key, 1);

			if (n == 0 || key == 'q' || key == 'Q' || key == 3)
				return false;
		}
		if (resized) {
			resized = 0;
			terminal_size(t);
			draw(t);
		}
	}
	return !ended;
}

static int live(struct top *t)
{
	int code = look(t);

	if (code != CLI_FINE)
		return words_failed(t->words, code, "%s", t->trouble);
	if (!terminal_take())
		return words_failed(t->words, CLI_FAILED, "not a terminal: noh top --once prints one look");
	do {
		terminal_size(t);
		draw(t);
		if (!wait_keys(t))
			break;
		(void)look(t);                           /* a server that is away for a while is said so on the screen */
	} while (!ended);
	terminal_back();
	return CLI_FINE;
}

/* Two looks, and what happened in between; again and again with --json alone. */
static int plain(struct top *t, bool once)
{
	int code;

	t->rows = ROWS_MAX;
	t->columns = 200;
	t->color = false;
	for (code = look(t); code == CLI_FINE; ) {
		cli_sleep_ns(t->every_ms * 1000000u);
		code = look(t);
		if (code != CLI_FINE)
			break;
		if (words_flag(t->words, "json"))
			print_json(t);
		else
			draw(t);
		if (once)
			return CLI_FINE;
	}
	return words_failed(t->words, code, "%s", t->trouble);
}

int top_main(int argc, char **argv)
{
	struct top t = { .every_ms = 1000 };
	struct words w;
	int code;

	if (!words_read(&w, "top", argc, argv, &code))
		return code;
	t.words = &w;
	t.color = words_color(&w);
	if (ask_open(&t.client, &w, &code)) {
		bool once = words_flag(&w, "once"), screen = !once && !words_flag(&w, "json");

		code = CLI_USAGE;
		if (words_count(&w, 0, 0, "") && words_duration(&w, "every", 100, 3600000, &t.every_ms)) {
			if (screen && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
				code = words_wrong(&w, "not a terminal: noh top --once prints one look, --json goes on for programs");
			else
				code = screen ? live(&t) : plain(&t, once);
		}
	}
	scrape_free(&t.before);
	scrape_free(&t.now);
	free(t.screen);
	words_free(&w);
	return code;
}
