/* tools/ask.c - what the verbs that ask a server share: finding it, asking, telling what it said. */
#include "tools/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ── which server, and who asks ── */

static bool read_token(struct client *c, const char *path, char *why, size_t size)
{
	char text[CLIENT_TOKEN_MAX + 2];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

	if (!f) {
		snprintf(why, size, "--token-file %.200s: %s", path, strerror(errno));
		return false;
	}
	fclose(f);
	text[n] = 0;
	text[strcspn(text, "\r\n")] = 0;
	bool good = client_set_token(c, text);

	explicit_bzero(text, sizeof text);
	if (!good)
		snprintf(why, size, "--token-file %.200s: its first line is no token", path);
	return good;
}

static bool find_token(struct client *c, const struct words *w, char *why, size_t size)
{
	const char *file = words_text(w, "token-file"), *token = words_text(w, "token");

	if (file)
		return read_token(c, file, why, size);
	if (!token)
		token = getenv("NOH_TOKEN");
	if (!token || !*token)
		return true;
	if (client_set_token(c, token))
		return true;
	snprintf(why, size, "the token is none: it has blanks or is longer than %d characters", CLIENT_TOKEN_MAX);
	return false;
}

bool ask_find(struct client *c, const struct words *w, char *why, size_t size)
{
	const char *url = words_text(w, "url"), *path = words_text(w, "socket");
	char half[200], own[4200];
	bool good;

	memset(c, 0, sizeof *c);
	c->timeout_ms = 30000;
	if (!url && !path && !settings_given(&w->settings, SET_DIR))
		url = getenv("NOH_URL");
	if (url && *url) {
		good = client_set_url(c, url, half, sizeof half);
		path = url;
	} else {
		if (!path)
			path = settings_http_path(&w->settings, own, sizeof own);
		if (!path) {
			snprintf(why, size, "the settings switch the Unix socket for HTTP off: say --url URL");
			return false;
		}
		good = client_set_unix(c, path, half, sizeof half);
	}
	if (!good)
		snprintf(why, size, "%.200s %s", path, half);
	return good && find_token(c, w, why, size);
}

bool ask_open(struct client *c, const struct words *w, int *code)
{
	char why[512];

	*code = CLI_USAGE;
	if (!ask_find(c, w, why, sizeof why)) {
		words_wrong(w, "%s", why);
		return false;
	}
	return words_duration(w, "timeout", 1, 86400000, &c->timeout_ms);
}

/* ── asking ── */

int ask_code(int status)
{
	switch (status) {
	case 400: case 422: return CLI_USAGE;
	case 404: return CLI_NOT_FOUND;
	case 408: case 504: return CLI_TIMEOUT;
	case 429: case 503: return CLI_TEMPORARY;
	default: return status >= 200 && status < 300 ? CLI_FINE : CLI_FAILED;
	}
}

/* What a status means for who typed the command, beyond what the server says of it. */
static const char *advice(int status, const struct client *c)
{
	if (status == 401)
		return *c->token ? "; is this the right token?" : "; give your token: --token-file FILE or NOH_TOKEN (noh user add makes one)";
	if (status == 403)
		return "; ask somebody with that role, or for it (noh user add NAME --role ROLE)";
	return "";
}

static int refused(const struct client *c, const struct words *w, const struct client_reply *r)
{
	json_t *problem = json_loadb(r->body, r->len, 0, NULL);
	const char *detail = ask_text(problem, "detail");
	char shown[600], later[64] = "";

	if (words_flag(w, "json") && problem)
		printf("%s\n", r->body);
	if (!*detail)
		detail = ask_text(problem, "title");
	if (r->retry_after)
		snprintf(later, sizeof later, "; try again in %u s", r->retry_after);
	if (*detail)
		words_failed(w, 0, "%s%s%s", ask_shown(shown, sizeof shown, detail), advice(r->status, c), later);
	else
		words_failed(w, 0, "%s answers %d%s%s", c->where, r->status, advice(r->status, c), later);
	json_decref(problem);
	return ask_code(r->status);
}

int ask_raw(const struct client *c, const struct words *w, const char *path, const char *headers, const char *body,
	    json_t **answer)
{
	static const int codes[] = { [CLIENT_UNREACHABLE] = CLI_TEMPORARY, [CLIENT_TIMED_OUT] = CLI_TIMEOUT,
				     [CLIENT_BROKEN] = CLI_FAILED };
	struct client_reply r;
	char why[600];
	enum client_result result = client_call(c, "POST", path, headers, body, strlen(body), &r, why, sizeof why);
	json_error_t error;
	int code = CLI_FINE;

	*answer = NULL;
	if (result != CLIENT_OK)
		return words_failed(w, codes[result], "%s", why);
	if (r.status < 200 || r.status > 299)
		code = refused(c, w, &r);
	else if (!(*answer = json_loadb(r.body, r.len, JSON_REJECT_DUPLICATES, &error)))
		code = words_failed(w, CLI_FAILED, "%s answers %d with something that is no JSON object: %s", c->where, r.status,
				    error.text);
	else if (words_flag(w, "json"))
		printf("%s\n", r.body);
	client_reply_free(&r);
	return code;
}

int ask(const struct client *c, const struct words *w, const char *path, const char *headers, json_t *body, json_t **answer)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int code = text ? ask_raw(c, w, path, headers, text, answer)
			: words_failed(w, CLI_USAGE, "not text: an address and names are UTF-8");

	free(text);
	json_decref(body);
	return code;
}

/* ── fields ── */

const char *ask_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

long long ask_number(const json_t *object, const char *name)
{
	return (long long)json_integer_value(json_object_get(object, name));
}

bool ask_bool(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

const char *ask_shown(char *buf, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		buf[n++] = (unsigned char)*text < ' ' || *text == 127 ? '?' : *text;
	buf[n] = 0;
	return buf;
}

json_t *ask_page(const struct words *w)
{
	uint64_t limit = 100;
	const char *cursor = words_text(w, "cursor");

	if (!words_number(w, "limit", 1, 10000, &limit))
		return NULL;
	json_t *body = json_pack("{sI}", "limit", (json_int_t)limit);

	if (cursor)
		json_object_set_new(body, "cursor", json_string(cursor));
	return body;
}

void ask_more(const struct words *w, const json_t *answer)
{
	const char *cursor = ask_text(answer, "next_cursor");
	char shown[600];

	if (*cursor)
		fprintf(stderr, "there are more: noh %s ... --cursor %s\n", w->full, ask_shown(shown, sizeof shown, cursor));
}
