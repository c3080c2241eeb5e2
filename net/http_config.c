/* net/http_config.c - POST /admin/config/reload: the program reads its settings again, and says what came of it.
 *
 * As JSON; or, to whoever accepts text/plain and not JSON, line by line as the program told it: noh config reload
 * reads those.
 */
#include "net/http.h"

#include "core/utf8.h"
#include "net/session.h"

#include <stdio.h>
#include <string.h>

/* ── JSON ── */

/* Values and sentences come from files: any byte may be in them. */
static void put_text(struct out *o, const char *text, size_t len)
{
	char escape[8];

	out_bytes(o, "\"", 1);
	for (size_t i = 0, n; i < len; i += n) {
		unsigned char c = (unsigned char)text[i];

		n = utf8_next((const unsigned char *)text + i, len - i);
		if (n == 0)
			out_bytes(o, "\\ufffd", 6);
		else if (c == '"' || c == '\\' || c < ' ' || c == 0x7f)
			out_bytes(o, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
		else
			out_bytes(o, text + i, n);
		n += n == 0;
	}
	out_bytes(o, "\"", 1);
}

static void put(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

/* The findings of one kind ("changed", "warning"): objects of their fields, or their sentences. */
static void put_findings(struct out *o, const struct reply_part *p, const char *kind, bool is_object)
{
	static const char *const names[] = { "\"setting\":", ",\"old\":", ",\"new\":", ",\"where\":" };
	size_t kind_len = strlen(kind);
	const char *line = p->body, *end = line + p->len, *stop;
	bool any = false;

	put(o, "[");
	for (; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if ((size_t)(stop - line) <= kind_len || memcmp(line, kind, kind_len) != 0 || line[kind_len] != '\t')
			continue;
		put(o, any ? "," : "");
		any = true;
		put(o, is_object ? "{" : "");
		line += kind_len + 1;
		for (unsigned i = 0; i < 4 && line <= stop; i++) {
			const char *tab = is_object ? memchr(line, '\t', (size_t)(stop - line)) : NULL;

			put(o, is_object ? names[i] : "");
			put_text(o, line, (size_t)((tab ? tab : stop) - line));
			line = (tab ? tab : stop) + 1;
		}
		put(o, is_object ? "}" : "");
	}
	put(o, "]");
}

/* ── the response ── */

static void reloaded(struct out *o, const struct reply_part *p)
{
	struct out body = { 0 };

	put(&body, "{\"reloaded\":true,\"changed\":");
	put_findings(&body, p, "changed", true);
	put(&body, ",\"restart\":");
	put_findings(&body, p, "restart", true);
	put(&body, ",\"warnings\":");
	put_findings(&body, p, "warning", false);
	put(&body, "}\n");
	if (body.failed)
		http_problem(o, 503, "out_of_memory", "", "the settings were read again, but there is no memory to say what changed");
	else
		http_reply(o, 200, "application/json", "", body.bytes, body.len);
	out_close(&body);
}

static void refused(struct out *o, const struct reply_part *p)
{
	struct out body = { 0 };

	put(&body, "{\"type\":\"about:blank\",\"title\":\"Unprocessable Content\",\"status\":422,\"code\":\"bad_settings\","
		   "\"detail\":\"the settings have errors, so nothing was changed\",\"errors\":");
	put_findings(&body, p, "error", false);
	put(&body, "}\n");
	if (body.failed)
		http_problem(o, 422, "bad_settings", "", "the settings have errors, so nothing was changed; the log has them");
	else
		http_reply(o, 422, "application/problem+json", "", body.bytes, body.len);
	out_close(&body);
}

static void format(struct out *o, const struct reply_part *p, uint32_t n, struct tag tag)
{
	bool as_text = tag.a;

	(void)n;
	if (p->status != NOH_OK && p->status != NOH_REFUSED)
		http_problem(o, p->status == NOH_ETIMEOUT ? 504 : 503, "no_answer", "",
			     "there is no answer to the reload; the log says what came of it");
	else if (as_text)
		http_reply(o, p->status == NOH_OK ? 200 : 422, "text/plain; charset=utf-8", "", p->body, p->len);
	else if (p->status == NOH_OK)
		reloaded(o, p);
	else
		refused(o, p);
}

/* No more of Accept than is needed: this text alone means plain text. */
static bool wants_text(const struct arg *accept)
{
	return accept->len == 10 && memcmp(accept->at, "text/plain", 10) == 0;
}

void http_config_reload(struct call *c, const struct http_request *q)
{
	call_audit(c, "config reload", NULL, NULL);
	if (!call_reload(c, format, (struct tag){ wants_text(&q->accept), 0 }))
		http_problem(call_out(c), 501, "no_settings", "", "this program has no settings to read again");
}
