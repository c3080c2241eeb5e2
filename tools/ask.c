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

	if (!file && !token) {
		token = getenv("NOH_TOKEN");
		file = token && *token ? NULL : getenv("NOH_TOKEN_FILE");
	}
	if (file && *file)
		return read_token(c, file, why, size);
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

/* An actor that refuses says why in words of its own, or in an object. */
static void append_refusal(noh_json problem, char *detail, size_t size)
{
	noh_json response = ask_member(problem, "response");
	char said[400];
	size_t len = strlen(detail);

	if (*ask_text(response, "text", said, sizeof said))
		snprintf(detail + len, size - len, ": %s", said);
	else if (response.len > 2)
		snprintf(detail + len, size - len, ": %.*s", (int)response.len, response.at);
}

int ask_refused(const struct client *c, const struct words *w, const struct client_reply *r)
{
	noh_json problem = { NULL, 0 };
	char detail[1100] = "", later[64] = "";

	if (noh_json_check(r->body, r->len, &problem) == NOH_OK) {
		if (words_flag(w, "json"))
			printf("%s\n", r->body);
		if (!*ask_text(problem, "detail", detail, sizeof detail))
			ask_text(problem, "title", detail, sizeof detail);
		append_refusal(problem, detail, sizeof detail);
	}
	if (r->retry_after)
		snprintf(later, sizeof later, "; try again in %u s", r->retry_after);
	if (*detail)
		words_failed(w, 0, "%s%s%s", detail, advice(r->status, c), later);
	else
		words_failed(w, 0, "%s answers %d%s%s", c->where, r->status, advice(r->status, c), later);
	return ask_code(r->status);
}

int ask_result(enum client_result result)
{
	switch (result) {
	case CLIENT_UNREACHABLE: return CLI_TEMPORARY;
	case CLIENT_TIMED_OUT: return CLI_TIMEOUT;
	default: return CLI_FAILED;
	}
}

static int ask_by(const char *method, const struct client *c, const struct words *w, const char *path, const char *headers,
		  const char *body, struct answer *answer)
{
	struct client_reply r;
	char why[600];
	int code = CLI_FINE;

	memset(answer, 0, sizeof *answer);
	enum client_result result = client_call(c, method, path, headers, body, strlen(body), &r, why, sizeof why);

	if (result != CLIENT_OK)
		return words_failed(w, ask_result(result), "%s", why);
	if (r.status < 200 || r.status > 299) {
		code = ask_refused(c, w, &r);
	} else if (noh_json_check(r.body, r.len, &answer->json) != NOH_OK ||
		   noh_json_type_of(answer->json) != NOH_JSON_OBJECT) {
		code = words_failed(w, CLI_FAILED, "%s answers %d with something that is no JSON object: is it a noh server?", c->where,
				    r.status);
	} else {
		answer->text = r.body;
		r.body = NULL;
		if (words_flag(w, "json"))
			printf("%.*s\n", (int)answer->json.len, answer->json.at);
		if (r.replayed)
			fprintf(stderr, "noh %s: this key was used before; this is the answer of then, nothing was done again\n", w->full);
	}
	client_reply_free(&r);
	return code;
}

int ask(const struct client *c, const struct words *w, const char *path, const char *headers, const char *body,
	struct answer *answer)
{
	return ask_by("POST", c, w, path, headers, body, answer);
}

int ask_get(const struct client *c, const struct words *w, const char *path, struct answer *answer)
{
	return ask_by("GET", c, w, path, "", "", answer);
}

void answer_free(struct answer *a)
{
	free(a->text);
	memset(a, 0, sizeof *a);
}

/* ── a request's path ── */

bool ask_query(const struct words *w, char path[ASK_PATH], const char *name, const char *value)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:";
	size_t at = strlen(path);

	if (!value)
		return true;
	at += (size_t)snprintf(path + at, ASK_PATH - at, "%c%s=", strchr(path, '?') ? '&' : '?', name);
	for (; *value && at + 4 < ASK_PATH; value++) {
		if (strchr(plain, *value))
			path[at++] = *value;
		else
			at += (size_t)snprintf(path + at, 4, "%%%02X", (unsigned char)*value);
	}
	if (at < ASK_PATH)
		path[at] = 0;
	if (*value)
		words_wrong(w, "--%s is too long", name);
	return *value == 0;
}

/* ── a request's body ── */

void ask_begin(struct ask_body *b)
{
	b->bad = false;
	b->out = (noh_json_out){ .at = b->text, .room = sizeof b->text - 1 };
	noh_json_open(&b->out, NULL, '{');
}

/* The writer replaces what is no UTF-8: that would be another actor's name. */
void ask_put(struct ask_body *b, const char *name, const char *text)
{
	size_t from = b->out.len;

	if (!text)
		return;
	noh_json_put_text(&b->out, name, text, strlen(text));
	if (b->out.len > b->out.room || (memmem(b->text + from, b->out.len - from, "\\ufffd", 6) && !strstr(text, "\\ufffd")))
		b->bad = true;
}

const char *ask_end(struct ask_body *b, const struct words *w)
{
	noh_json_close(&b->out, '}');
	if (b->bad || b->out.len > b->out.room) {
		words_wrong(w, "addresses and names are UTF-8, and not longer than a screen");
		return NULL;
	}
	b->text[b->out.len] = 0;
	return b->text;
}

/* ── fields ── */

noh_json ask_member(noh_json object, const char *name)
{
	noh_json_walk walk = { NULL };
	noh_json key, value;

	if (!object.at || noh_json_type_of(object) != NOH_JSON_OBJECT)
		return (noh_json){ NULL, 0 };
	while (noh_json_next(object, &walk, &key, &value))
		if (noh_json_is(key, name))
			return value;
	return (noh_json){ NULL, 0 };
}

const char *ask_shown(char *buf, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		buf[n++] = (unsigned char)*text < ' ' || *text == 127 ? '?' : *text;
	buf[n] = 0;
	return buf;
}

const char *ask_text(noh_json object, const char *name, char *buf, size_t size)
{
	noh_json value = ask_member(object, name);

	buf[0] = 0;
	if (value.len && noh_json_type_of(value) == NOH_JSON_STRING) {
		size_t len = noh_json_text(value, buf, size);

		buf[len < size ? len : size - 1] = 0;
		ask_shown(buf, size, buf);
	}
	return buf;
}

long long ask_number(noh_json object, const char *name)
{
	noh_json value = ask_member(object, name);
	int64_t n = 0;

	return value.len && noh_json_int(value, &n) ? n : 0;
}

bool ask_bool(noh_json object, const char *name)
{
	noh_json value = ask_member(object, name);

	return value.len == 4 && memcmp(value.at, "true", 4) == 0;
}

size_t ask_items(noh_json array)
{
	noh_json_walk walk = { NULL };
	noh_json item;
	size_t n = 0;

	while (array.len && noh_json_type_of(array) == NOH_JSON_ARRAY && noh_json_next(array, &walk, NULL, &item))
		n++;
	return n;
}

bool ask_page(struct ask_body *b, const struct words *w)
{
	uint64_t limit = 100;

	if (!words_number(w, "limit", 1, 1000, &limit))
		return false;
	noh_json_put_uint(&b->out, "limit", limit);
	ask_put(b, "cursor", words_text(w, "cursor"));
	return true;
}

void ask_more(const struct words *w, noh_json answer)
{
	char cursor[NOH_CURSOR];

	if (*ask_text(answer, "next_cursor", cursor, sizeof cursor))
		fprintf(stderr, "there are more: noh %s ... --cursor '%s'\n", w->full, cursor);
}
