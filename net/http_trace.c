/* net/http_trace.c - GET /trace: what is remembered of a trace, or which there are; as JSON, or as a page of text for
 * who says Accept: text/plain (noh trace does). */
#include "net/http.h"

#include "core/log_text.h"
#include "core/mem.h"
#include "net/net.h"
#include "net/rest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SPANS_MOST = 512 };

static const char json[] = "application/json", text[] = "text/plain; charset=utf-8";

/* ── writing ── */

static void put(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct out *o, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);

	va_end(args);
	out_bytes(o, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void put_escaped(struct out *o, const char *words, bool as_json)
{
	char line[2048];

	out_bytes(o, line, log_escape(line, sizeof line, words, as_json));
}

static void put_time(struct out *o, uint64_t ns, unsigned digits)
{
	time_t seconds = (time_t)(ns / 1000000000u);
	char date[32];
	struct tm utc;

	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
	put(o, "%s.%0*" PRIu64 "Z", date, (int)digits, digits == 3 ? ns % 1000000000u / 1000000u : ns % 1000000000u);
}

/* "412us", "1.2ms", "3.05s"; "-": it has not come to that. */
static const char *length(char *buf, size_t size, uint64_t from, uint64_t to)
{
	uint64_t us = from && to > from ? (to - from + 500) / 1000 : 0;

	if (!from || !to)
		snprintf(buf, size, "-");
	else if (us < 10000)
		snprintf(buf, size, "%" PRIu64 "us", us);
	else if (us < 10000000)
		snprintf(buf, size, "%" PRIu64 ".%" PRIu64 "ms", us / 1000, us % 1000 / 100);
	else
		snprintf(buf, size, "%" PRIu64 ".%" PRIu64 "s", us / 1000000, us % 1000000 / 100000);
	return buf;
}

static void put_kind(struct out *o, const char *name, uint32_t kind, bool as_json)
{
	if (*name)
		put_escaped(o, name, as_json);
	else
		put(o, "%u", kind);
}

/* ── one trace ── */

struct kept {
	noh_span span;
	char     actor[256];
	uint32_t parent;                 /* its place plus 1; 0: it is nobody's child here */
};
struct trace_page {
	struct kept *list;
	uint32_t     count;
};

static void keep(void *user, const noh_span *span)
{
	struct trace_page *page = user;
	struct kept *k;

	if (page->count == SPANS_MOST)
		return;
	k = &page->list[page->count++];
	k->span = *span;
	snprintf(k->actor, sizeof k->actor, "%s", span->actor);
	k->parent = 0;
}

static void find_parents(struct trace_page *page)
{
	for (uint32_t i = 0; i < page->count; i++)
		for (uint32_t p = 0; page->list[i].span.parent_id[0] && p < page->count; p++)
			if (p != i && memcmp(page->list[p].span.span_id, page->list[i].span.parent_id, 16) == 0)
				page->list[i].parent = p + 1;
}

static uint64_t last_of(const noh_span *s)
{
	uint64_t last = 0;

	for (int i = 0; i < NOH_STAMPS; i++)
		last = s->at_ns[i] > last ? s->at_ns[i] : last;
	return last;
}

static void put_span_json(struct out *o, const struct kept *k)
{
	static const char *const names[] = { "received", "queued", "started", "ended", "on_disk", "answered" };
	const noh_span *s = &k->span;

	put(o, "{\"span_id\":\"%s\",\"parent_id\":", s->span_id);
	put(o, *s->parent_id ? "\"%s\"" : "null", s->parent_id);
	put(o, ",\"actor\":\"");
	put_escaped(o, k->actor, true);
	put(o, "\",\"kind\":\"");
	put_kind(o, s->kind_name, s->kind, true);
	put(o, "\",\"status\":\"%s\",\"worker\":%u,\"batch\":%u", noh_strerror(s->status), s->worker, s->batch);
	for (int i = 0; i < NOH_STAMPS; i++) {
		put(o, ",\"%s\":", names[i]);
		if (!s->at_ns[i]) {
			put(o, "null");
			continue;
		}
		put(o, "\"");
		put_time(o, s->at_ns[i], 9);
		put(o, "\"");
	}
	put(o, "}");
}

static void put_json(struct out *o, const struct trace_page *page)
{
	put(o, "{\"trace_id\":\"%s\",\"spans\":[", page->list[0].span.trace_id);
	for (uint32_t i = 0; i < page->count; i++) {
		put(o, i ? "," : "");
		put_span_json(o, &page->list[i]);
	}
	put(o, "]}\n");
}

static void put_span_text(struct out *o, const struct kept *k, uint64_t began, uint32_t depth)
{
	char at[5][24];
	const noh_span *s = &k->span;
	const uint64_t *t = s->at_ns;

	put(o, "%10s %9s %9s %9s %9s %6u  ", length(at[0], 24, began, t[NOH_RECEIVED]),
	    length(at[1], 24, t[NOH_QUEUED], t[NOH_STARTED]), length(at[2], 24, t[NOH_STARTED], t[NOH_ENDED]),
	    length(at[3], 24, t[NOH_ENDED], t[NOH_ON_DISK]), length(at[4], 24, t[NOH_RECEIVED], t[NOH_ANSWERED]), s->worker);
	for (uint32_t i = 1; i < depth && i < 16; i++)
		put(o, "   ");
	put(o, depth ? "└─ " : "");
	if (*k->actor) {
		put_escaped(o, k->actor, false);
		put(o, " ");
		put_kind(o, s->kind_name, s->kind, false);
	} else {
		put(o, "(no turn)");
	}
	if (s->batch > 1)
		put(o, " (of %u in one turn)", s->batch);
	if (s->status != NOH_OK)
		put(o, ": %s", noh_strerror(s->status));
	put(o, "\n");
}

/* Each below the one it came from, in the order received. */
static void put_tree(struct out *o, const struct trace_page *page, uint32_t of, uint32_t depth)
{
	for (uint32_t i = 0; i < page->count; i++)
		if (page->list[i].parent == of) {
			put_span_text(o, &page->list[i], page->list[0].span.at_ns[NOH_RECEIVED], depth);
			if (depth < SPANS_MOST)
				put_tree(o, page, i + 1, depth + 1);
		}
}

static void put_text(struct out *o, const struct trace_page *page)
{
	uint64_t began = page->list[0].span.at_ns[NOH_RECEIVED], last = 0;
	char took[24];

	for (uint32_t i = 0; i < page->count; i++)
		last = last_of(&page->list[i].span) > last ? last_of(&page->list[i].span) : last;
	put(o, "trace %s  ", page->list[0].span.trace_id);
	put_time(o, began, 3);
	put(o, "  %s in all, %u span%s\n\n", length(took, sizeof took, began, last), page->count, page->count == 1 ? "" : "s");
	put(o, "  received    waited      turn      disk    answer worker  actor, message\n");
	put_tree(o, page, 0, 0);
}

static void show(struct call *c, const char *id, bool as_text)
{
	struct trace_page page = { mem_alloc(SPANS_MOST * sizeof *page.list), 0 };
	struct out body = { 0 };
	int rc = page.list ? noh_trace_show(call_box(c), id, keep, &page) : NOH_ENOMEM;

	if (rc == NOH_OK) {
		find_parents(&page);
		(as_text ? put_text : put_json)(&body, &page);
	}
	if (rc == NOH_EINVAL)
		http_problem(call_out(c), 400, "bad_trace_id", "", "%s", noh_why());
	else if (rc == NOH_END)
		http_problem(call_out(c), 404, "no_such_trace", "", "%s", noh_why());
	else if (rc != NOH_OK || body.failed)
		http_problem(call_out(c), 503, "out_of_memory", "Retry-After: 1\r\n", "no memory to tell of a trace");
	else
		http_reply(call_out(c), 200, as_text ? text : json, "", body.bytes, body.len);
	out_close(&body);
	mem_free(page.list, SPANS_MOST * sizeof *page.list);
}

/* ── which there are ── */

struct list_page {
	struct out body;
	bool       as_text;
	uint32_t   count;
};

static void list_one(void *user, const noh_trace_summary *t)
{
	struct list_page *page = user;
	struct out *o = &page->body;
	char took[24];

	page->count++;
	if (page->as_text) {
		put(o, "%s  ", t->trace_id);
		put_time(o, t->began_ns, 3);
		put(o, " %9s %5u  ", length(took, sizeof took, 1, t->took_ns + 1), t->spans);
		put_escaped(o, t->actor, false);
		put(o, " ");
		put_kind(o, t->kind_name, t->kind, false);
		put(o, t->status == NOH_OK ? "\n" : ": %s\n", noh_strerror(t->status));
		return;
	}
	put(o, "%s{\"trace_id\":\"%s\",\"began\":\"", page->count > 1 ? "," : "", t->trace_id);
	put_time(o, t->began_ns, 9);
	put(o, "\",\"took_us\":%" PRIu64 ",\"spans\":%u,\"status\":\"%s\",\"actor\":\"", t->took_ns / 1000, t->spans,
	    noh_strerror(t->status));
	put_escaped(o, t->actor, true);
	put(o, "\",\"kind\":\"");
	put_kind(o, t->kind_name, t->kind, true);
	put(o, "\"}");
}

static void list(struct call *c, uint32_t limit, bool as_text)
{
	struct list_page page = { .as_text = as_text };
	int rc;

	put(&page.body, as_text ? "trace                             began                         took spans  actor, message\n"
				: "{\"traces\":[");
	rc = noh_trace_list(call_box(c), limit, list_one, &page);
	if (!as_text)
		put(&page.body, "]}\n");
	else if (page.count == 0)
		put(&page.body, "none: send a traceparent, or set trace.sample\n");
	if ((rc != NOH_OK && rc != NOH_END) || page.body.failed)
		http_problem(call_out(c), 503, "unavailable", "Retry-After: 1\r\n", "%s", noh_why());
	else
		http_reply(call_out(c), 200, as_text ? text : json, "", page.body.bytes, page.body.len);
	out_close(&page.body);
}

/* ── the request ── */

void http_trace(struct call *c, const struct http_request *q)
{
	bool as_text = memmem(q->accept.at, q->accept.len, "text/plain", 10) != NULL;
	struct query_got got[QUERY_FIELDS_MAX];

	if (!rest_query(c, q, QUERY_TRACE, got))
		return;
	if (!got[TRACE_ID].given)
		list(c, (uint32_t)got[TRACE_LIMIT].n, as_text);
	else if (got[TRACE_LIMIT].given)
		http_problem(call_out(c), 400, "bad_query", "", "one trace (id), or so many of them (limit): not both");
	else
		show(c, got[TRACE_ID].text, as_text);
}
