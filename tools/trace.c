/* tools/trace.c - noh trace show, noh trace list: the server has written the page, this prints it. */
#include "tools/trace.h"

#include "tools/client.h"
#include "tools/config.h"
#include "tools/settings.h"
#include "tools/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct asked {
	struct settings settings;
	const char *url, *socket, *token_file, *id;
	uint64_t    limit;
	bool        json, list, help;
};

/* ── words ── */

static bool text_option(struct asked *a, struct cli_args *args)
{
	const struct { const char *name; const char **to; } known[] = {
		{ "url", &a->url }, { "socket", &a->socket }, { "token-file", &a->token_file } };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(args->name, known[i].name) == 0) {
			*known[i].to = cli_value(args);
			if (!*known[i].to)
				settings_wrong(&a->settings, "--%s lacks its value", known[i].name);
			return true;
		}
	return false;
}

static void option(struct asked *a, struct cli_args *args)
{
	static const char *const ours[] = { "json", "limit", "url", "socket", "token-file", "help" };

	if (strcmp(args->name, "help") == 0)
		a->help = true;
	else if (strcmp(args->name, "json") == 0)
		a->json = true;
	else if (strcmp(args->name, "limit") == 0) {
		const char *value = cli_value(args);

		if (!value || !cli_number(value, 1, 1000, &a->limit))
			settings_wrong(&a->settings, "--limit takes a number from 1 to 1000");
	} else if (!text_option(a, args) && !settings_flag(&a->settings, args))
		settings_unknown_flag(&a->settings, "trace", args->name, ours, sizeof ours / sizeof ours[0]);
}

static void word(struct asked *a, const char *value, int place)
{
	if (place == 0 && strcmp(value, "list") == 0)
		a->list = true;
	else if (place == 0 && strcmp(value, "show") != 0)
		settings_wrong(&a->settings, "\"%.60s\" is neither show nor list", value);
	else if (place == 1 && !a->list)
		a->id = value;
	else if (place > 0)
		settings_wrong(&a->settings, "one word too many: \"%.60s\"", value);
}

static bool is_trace_id(const char *id)
{
	return strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32;
}

static bool read_words(struct asked *a, int argc, char **argv)
{
	struct cli_args args = { .count = argc, .at = 1, .words = argv };
	int place = 0;

	while (a->settings.errors == 0 && !a->help && cli_next(&args)) {
		if (args.name)
			option(a, &args);
		else
			word(a, args.value, place++);
	}
	if (a->help || a->settings.errors)
		return false;
	if (place == 0)
		settings_wrong(&a->settings, "show or list? noh trace --help");
	else if (!a->list && (!a->id || !is_trace_id(a->id)))
		settings_wrong(&a->settings, "show takes a trace id, 32 hex digits in lower case: noh trace list tells which there are");
	return a->settings.errors == 0 && settings_load(&a->settings, environ);
}

/* ── the server ── */

static bool find_token(const struct asked *a, struct client *c, char *why, size_t size)
{
	char text[CLIENT_TOKEN_MAX + 2] = "";
	const char *token = getenv("NOH_TOKEN");
	FILE *f = a->token_file ? fopen(a->token_file, "re") : NULL;
	bool good;

	if (a->token_file && (!f || !fgets(text, sizeof text, f))) {
		snprintf(why, size, "--token-file %.200s: %s", a->token_file, f ? "it is empty" : strerror(errno));
		if (f)
			fclose(f);
		return false;
	}
	if (f) {
		fclose(f);
		text[strcspn(text, "\r\n")] = 0;
		token = text;
	}
	good = !token || !*token || client_set_token(c, token);
	explicit_bzero(text, sizeof text);
	if (!good)
		snprintf(why, size, "the token is none: it has blanks, or more than %d characters", CLIENT_TOKEN_MAX);
	return good;
}

static bool find_server(const struct asked *a, struct client *c, char *why, size_t size)
{
	char half[200], own[4200];
	const char *path = a->socket;
	bool good;

	memset(c, 0, sizeof *c);
	c->timeout_ms = 30000;
	if (a->url) {
		good = client_set_url(c, a->url, half, sizeof half);
		path = a->url;
	} else {
		if (!path)
			path = settings_http_path(&a->settings, own, sizeof own);
		if (!path) {
			snprintf(why, size, "the settings switch the Unix socket for HTTP off: say --url URL");
			return false;
		}
		good = client_set_unix(c, path, half, sizeof half);
	}
	if (!good)
		snprintf(why, size, "%.200s %s", path, half);
	return good && find_token(a, c, why, size);
}

static int tell(const struct asked *a, const struct client *c, const struct client_reply *r)
{
	if (r->status == 200) {
		fwrite(r->body, 1, r->len, stdout);
		return CLI_FINE;
	}
	if (r->status == 404 && a->id)
		fprintf(stderr, "noh trace: nothing is remembered of %s: its traceparent did not say sampled (...-01), or it is too "
			"long ago\n", a->id);
	else if (r->status == 401 || r->status == 403)
		fprintf(stderr, "noh trace: %s wants the token of a developer: --token-file FILE or NOH_TOKEN\n", c->where);
	else
		fprintf(stderr, "noh trace: %s answers %d\n", c->where, r->status);
	return r->status == 404 ? CLI_NOT_FOUND : r->status == 503 ? CLI_TEMPORARY : CLI_FAILED;
}

static int ask(const struct asked *a)
{
	struct client c;
	struct client_reply r;
	char path[128], why[600];
	int code;

	if (!find_server(a, &c, why, sizeof why)) {
		fprintf(stderr, "noh trace: %s\n", why);
		return CLI_USAGE;
	}
	if (a->list)
		snprintf(path, sizeof path, "/trace?limit=%u", (unsigned)a->limit);
	else
		snprintf(path, sizeof path, "/trace?id=%s", a->id);
	enum client_result result = client_call(&c, "GET", path, a->json ? "Accept: application/json\r\n" : "Accept: text/plain\r\n",
						NULL, 0, &r, why, sizeof why);

	if (result != CLIENT_OK) {
		fprintf(stderr, "noh trace: %s\n", why);
		return result == CLIENT_BROKEN ? CLI_FAILED : CLI_TEMPORARY;
	}
	code = tell(a, &c, &r);
	client_reply_free(&r);
	return code;
}

int trace_main(int argc, char **argv)
{
	struct asked a = { .limit = 20 };
	int code = CLI_USAGE;

	settings_init(&a.settings, config_say, "trace");
	if (read_words(&a, argc, argv))
		code = ask(&a);
	else if (a.help)
		code = verb_help("trace");
	settings_free(&a.settings);
	return code;
}
