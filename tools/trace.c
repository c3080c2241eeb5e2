/* tools/trace.c - noh trace show, noh trace list: the server has written the page, this prints it. */
#include "tools/trace.h"

#include "tools/ask.h"

#include <string.h>

static bool is_trace_id(const char *id)
{
	return strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32;
}

/* What to ask for; false: wrong, and said so. */
static bool read_path(const struct words *w, char *path, size_t size)
{
	uint64_t limit = 20;

	if (strcmp(w->action, "list") == 0) {
		if (!words_count(w, 0, 0, "") || !words_number(w, "limit", 1, 1000, &limit))
			return false;
		snprintf(path, size, "/trace?limit=%u", (unsigned)limit);
		return true;
	}
	if (!words_count(w, 1, 1, "the trace's id is"))
		return false;
	if (!is_trace_id(w->plain[0])) {
		words_wrong(w, "a trace id has 32 hex digits in lower case; noh trace list tells which there are");
		return false;
	}
	snprintf(path, size, "/trace?id=%s", w->plain[0]);
	return true;
}

static int tell(const struct words *w, const struct client *c, const struct client_reply *r)
{
	if (r->status == 200) {
		fwrite(r->body, 1, r->len, stdout);
		return CLI_FINE;
	}
	if (words_flag(w, "json"))
		fwrite(r->body, 1, r->len, stdout);
	if (r->status == 404 && w->count)
		return words_failed(w, CLI_NOT_FOUND, "nothing is remembered of %s: its traceparent did not say sampled (...-01), or it "
				    "is too long ago", w->plain[0]);
	if (r->status == 401 || r->status == 403)
		return words_failed(w, CLI_FAILED, "%s wants the token of a developer: --token-file FILE or NOH_TOKEN", c->where);
	return words_failed(w, ask_code(r->status), "%s answers %d", c->where, r->status);
}

static int show(const struct words *w, const struct client *c)
{
	static const int codes[] = { [CLIENT_UNREACHABLE] = CLI_TEMPORARY, [CLIENT_TIMED_OUT] = CLI_TIMEOUT,
				     [CLIENT_BROKEN] = CLI_FAILED };
	const char *accept = words_flag(w, "json") ? "Accept: application/json\r\n" : "Accept: text/plain\r\n";
	struct client_reply r;
	char path[128], why[600];
	enum client_result result;
	int code;

	if (!read_path(w, path, sizeof path))
		return CLI_USAGE;
	result = client_call(c, "GET", path, accept, NULL, 0, &r, why, sizeof why);
	if (result != CLIENT_OK)
		return words_failed(w, codes[result], "%s", why);
	code = tell(w, c, &r);
	client_reply_free(&r);
	return code;
}

int trace_main(int argc, char **argv)
{
	struct words w;
	struct client c;
	int code;

	if (!words_read(&w, "trace", argc, argv, &code))
		return code;
	if (ask_open(&c, &w, &code))
		code = show(&w, &c);
	words_free(&w);
	return code;
}
