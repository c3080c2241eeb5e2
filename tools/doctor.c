/* tools/doctor.c - the frame of the checks, the configuration, and the running server. */
#include "tools/doctor.h"

#include "tools/ask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool doctor_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool good = f && fgets(line, (int)size, f);

	if (f)
		fclose(f);
	if (good)
		line[strcspn(line, "\n")] = 0;
	return good;
}

bool doctor_number(const char *path, uint64_t *number)
{
	char line[64];

	return doctor_line(path, line, sizeof line) && cli_number(line, 0, UINT64_MAX, number);
}

/* ── what is said ── */

static void print_json(struct doctor *d, const char *verdict, const char *what, const char *text, const char *todo)
{
	printf("%s\n  { \"check\": ", d->printed ? "," : "[");
	cli_json_text(what, strlen(what));
	printf(", \"verdict\": \"%s\", \"finding\": ", verdict);
	cli_json_text(text, strlen(text));
	printf(", \"advice\": ");
	cli_json_text(todo, strlen(todo));
	printf(" }");
}

void doctor_say(struct doctor *d, enum verdict v, const char *what, const char *todo, const char *format, ...)
{
	static const char *const names[] = { "ok", "warn", "fail" };
	static const char *const colors[] = { "\033[32m", "\033[33m", "\033[31m" };
	bool color = words_color(d->words);
	char text[1200], shown[1200];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	ask_shown(shown, sizeof shown, text);
	d->count[v]++;
	if (words_flag(d->words, "quiet") && v == VERDICT_OK)
		return;
	if (words_flag(d->words, "json"))
		print_json(d, names[v], what, shown, todo);
	else
		printf("%s%-4s%s  %-14s %s%s%s\n", color ? colors[v] : "", names[v], color ? "\033[0m" : "", what, shown,
		       *todo ? "; " : "", todo);
	d->printed++;
	fflush(stdout);
}

/* ── the configuration ── */

/* Told while words are read: said when all of them are. */
static void on_settings(void *arg, bool is_wrong, const char *sentence)
{
	struct doctor *d = arg;

	if (d->heard == DOCTOR_HEARD)
		return;
	d->said[d->heard].is_wrong = is_wrong;
	d->said[d->heard++].sentence = settings_copy(sentence);
}

static void configuration(struct doctor *d)
{
	unsigned given = 0;

	for (unsigned i = 0; i < d->heard; i++) {
		doctor_say(d, d->said[i].is_wrong ? VERDICT_FAIL : VERDICT_WARN, "config",
			   d->said[i].is_wrong ? "mend it, or noh serve will not start" : "", "%s", d->said[i].sentence);
		free(d->said[i].sentence);
	}
	for (unsigned i = 0; i < SETTINGS; i++)
		given += settings_given(d->settings, i);
	if (d->settings->errors == 0)
		doctor_say(d, VERDICT_OK, "config", "", "%u settings given%s%s, the rest as usual", given,
			   d->settings->config ? ", some by " : "", d->settings->config ? d->settings->config : "");
}

/* ── the server ── */

/* The status of a GET, 0: none. */
static int get(struct client *c, const char *path, char *why, size_t size)
{
	struct client_reply r;
	int status = 0;

	if (client_call(c, "GET", path, "", NULL, 0, &r, why, size) == CLIENT_OK) {
		status = r.status;
		client_reply_free(&r);
	}
	return status;
}

static bool answers(struct doctor *d, struct client *c, enum verdict silent, const char *whose)
{
	char why[600];
	int alive = get(c, "/healthz", why, sizeof why), is_ready = alive ? get(c, "/readyz", why, sizeof why) : 0;

	if (alive == 0)
		doctor_say(d, silent, "server", "look at its log; if it hangs, noh doctor --json and its log help whoever mends it",
			   "%s does not answer: %s", whose, why);
	else if (alive != 200)
		doctor_say(d, VERDICT_FAIL, "server", "look at its log", "/healthz answers %d", alive);
	else if (is_ready != 200)
		doctor_say(d, VERDICT_WARN, "server", "wait, or look at its log", "alive, but not ready: /readyz answers %d", is_ready);
	else
		doctor_say(d, VERDICT_OK, "server", "", "runs, and is ready");
	return alive != 0;
}

static void server(struct doctor *d)
{
	struct client c = { .timeout_ms = 3000 };
	char path[4200], why[600];

	if (!d->running) {
		doctor_say(d, VERDICT_OK, "server", "", "none runs on this data directory");
		return;
	}
	const char *socket = settings_http_path(d->settings, path, sizeof path);

	if (!socket) {
		doctor_say(d, VERDICT_OK, "server", "", "runs; it has no Unix socket for HTTP to ask it more");
		return;
	}
	if (!client_set_unix(&c, socket, why, sizeof why)) {
		doctor_say(d, VERDICT_WARN, "server", "choose a shorter one with --http-unix", "%s %s", socket, why);
		return;
	}
	(void)answers(d, &c, VERDICT_WARN, "one has the data directory open but");
}

/* ── a server elsewhere: what it says of itself ── */

static void pool(struct doctor *d, const char *body, size_t len)
{
	noh_json p = { NULL, 0 };

	if (noh_json_check(body, len, &p) != NOH_OK)
		doctor_say(d, VERDICT_FAIL, "workers", "is it a noh server?", "/actor/pool/status answers with no JSON");
	else if (ask_number(p, "healthy_nodes") < ask_number(p, "total_nodes"))
		doctor_say(d, VERDICT_FAIL, "workers", "a turn does not end: noh pool and its log say where", "a worker is stuck");
	else
		doctor_say(d, VERDICT_OK, "workers", "", "healthy; %lld of %lld actors active", ask_number(p, "total_actors_active"),
			   ask_number(p, "total_capacity"));
}

static void elsewhere(struct doctor *d, struct client *c)
{
	struct client_reply r;
	char why[600];

	if (!answers(d, c, VERDICT_FAIL, c->where))
		return;
	if (client_call(c, "POST", "/actor/pool/status", "", "{}", 2, &r, why, sizeof why) != CLIENT_OK) {
		doctor_say(d, VERDICT_FAIL, "workers", "look at its log", "/actor/pool/status: %s", why);
		return;
	}
	if (r.status == 200)
		pool(d, r.body, r.len);
	else if (r.status == 401 || r.status == 403)
		doctor_say(d, VERDICT_WARN, "workers", "give an admin's token: --token-file FILE or NOH_TOKEN",
			   "not told: /actor/pool/status answers %d", r.status);
	else
		doctor_say(d, VERDICT_FAIL, "workers", "look at its log", "/actor/pool/status answers %d", r.status);
	client_reply_free(&r);
}

/* ── all of it ── */

static bool find_elsewhere(struct doctor *d, struct client *c)
{
	char why[512];

	if (!ask_find(c, d->words, why, sizeof why)) {
		words_wrong(d->words, "%s", why);
		return false;
	}
	c->timeout_ms = 3000;
	return true;
}

static void here(struct doctor *d)
{
	configuration(d);
	doctor_place(d);
	doctor_door(d);
	doctor_machine(d);
	server(d);
}

static int sum_up(const struct doctor *d)
{
	if (words_flag(d->words, "json"))
		printf("%s\n]\n", d->printed ? "" : "[");
	else
		printf("\n%u ok, %u warnings, %u failed\n", d->count[VERDICT_OK], d->count[VERDICT_WARN], d->count[VERDICT_FAIL]);
	return d->count[VERDICT_FAIL] ? CLI_FAILED : CLI_FINE;
}

int doctor_main(int argc, char **argv)
{
	struct doctor d = { .running = false };
	struct client c;
	struct words w;
	int code;

	d.words = &w;
	if (!words_read_all(&w, "doctor", argc, argv, on_settings, &d, &code))
		return code;
	d.settings = &w.settings;
	d.is_volatile = strcmp(settings_text(d.settings, SET_DURABILITY), "none") == 0;
	if (!words_count(&w, 0, 0, "")) {
		words_free(&w);
		return code;
	}
	if (!words_text(&w, "url")) {
		here(&d);
		code = sum_up(&d);
	} else if (find_elsewhere(&d, &c)) {
		if (d.heard)                     /* a setting that is wrong is said here, too */
			configuration(&d);
		elsewhere(&d, &c);
		code = sum_up(&d);
	}
	words_free(&w);
	return code;
}
