/* net/http_admin.c - what operators do: messages that were set aside, and schedules.
 *
 * A request is a small JSON object of texts and a limit. What is asked for may block (the image is read, and the journal
 * folded before), so it is an errand: the handler checks the words, the errand finds the answer and writes it as JSON, the
 * format makes the response of it. Every change is a line in the log, with who asked for it.
 */
#include "net/http.h"

#include "net/net.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIMIT_MOST = 1000, FOLD_MS = 10000, CALL_MS = 20000 };

struct words {                             /* of a request, and of its errand; "": not given */
	char     actor_address[256], actor_type[64], id[44], message_type[256], cursor[NOH_CURSOR];
	uint32_t limit;
};

/* ── the request ── */

#define FIELD(name) { #name, offsetof(struct words, name), sizeof((struct words *)0)->name }
static const struct field { const char *name; size_t at, size; } fields[] = {
	FIELD(actor_address), FIELD(actor_type), FIELD(id), FIELD(message_type), FIELD(cursor) };

static bool take_field(struct call *c, struct words *w, const char *name, const json_t *value, const char *allowed)
{
	size_t len = strlen(name);
	const char *at = strstr(allowed, name);

	if (!at || (at > allowed && at[-1] != ' ') || (at[len] && at[len] != ' ')) {
		http_problem(call_out(c), 400, "unknown_field", "", "there is no field \"%.60s\" here: %s", name, allowed);
		return false;
	}
	if (json_is_null(value))
		return true;
	if (strcmp(name, "limit") == 0) {
		json_int_t n = json_integer_value(value);

		if (!json_is_integer(value) || n < 1 || n > LIMIT_MOST) {
			http_problem(call_out(c), 400, "bad_field", "", "\"limit\" is a number from 1 to %d", LIMIT_MOST);
			return false;
		}
		w->limit = (uint32_t)n;
		return true;
	}
	for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (strcmp(fields[i].name, name) != 0)
			continue;
		if (!json_is_string(value) || json_string_length(value) >= fields[i].size ||
		    strlen(json_string_value(value)) != json_string_length(value)) {
			http_problem(call_out(c), 400, "bad_field", "", "\"%s\" is a text of at most %zu bytes", name, fields[i].size - 1);
			return false;
		}
		memcpy((char *)w + fields[i].at, json_string_value(value), json_string_length(value) + 1);
	}
	return true;
}

/* allowed, needed: names with a blank between. False: the problem is written. */
static bool read_words(struct call *c, const struct http_request *q, struct words *w, const char *allowed, const char *needed)
{
	json_error_t error;
	json_t *body = json_loadb(q->body.at, q->body.len, JSON_REJECT_DUPLICATES, &error), *value;
	bool good = json_is_object(body);
	const char *name;

	memset(w, 0, sizeof *w);
	w->limit = 100;
	if (!good)
		http_problem(call_out(c), 400, "bad_json", "", "the body is no JSON object: %s", body ? "it is a list" : error.text);
	json_object_foreach(body, name, value)
		if (good)
			good = take_field(c, w, name, value, allowed);
	json_decref(body);
	for (unsigned i = 0; good && i < sizeof fields / sizeof fields[0]; i++)
		if (strstr(needed, fields[i].name) && !((char *)w)[fields[i].at]) {
			http_problem(call_out(c), 400, "missing_field", "", "\"%s\" is missing", fields[i].name);
			good = false;
		}
	return good;
}

static void tell_log(struct call *c, const char *what, const struct words *w)
{
	char line[700];

	snprintf(line, sizeof line, "%s asked to %s %s%s%s", call_session(c)->user, what, *w->id ? w->id : w->actor_address,
		 *w->message_type ? " " : "", w->message_type);
	c->net->server->door.log(call_box(c), NOH_INFO, line);
}

/* ── the response ── */

static const struct { int status, http; const char *code, *headers; } problems[] = {
	{ NOH_END, 404, "not_found", "" },
	{ NOH_EINVAL, 400, "bad_request", "" },
	{ NOH_EADDRESS, 400, "bad_address", "" },
	{ NOH_ENOTYPE, 404, "no_type", "" },
	{ NOH_EKIND, 409, "no_such_message", "" },
	{ NOH_EIDEM, 409, "conflict", "" },
	{ NOH_EFAILED, 429, "mailbox_full", "Retry-After: 1\r\n" },
	{ NOH_ETIMEOUT, 504, "timeout", "" },
	{ NOH_ESTOPPED, 503, "busy", "Retry-After: 1\r\n" },
	{ NOH_ENOMEM, 503, "no_memory", "Retry-After: 1\r\n" },
	{ NOH_ENOSPC, 503, "read_only", "Retry-After: 10\r\n" },
};

static void format(struct out *o, const struct reply_part *part, uint32_t n, struct tag tag)
{
	const char *detail = part->len ? part->body : noh_strerror(part->status);
	int len = part->len ? (int)part->len : (int)strlen(detail);

	(void)n, (void)tag;
	if (part->status == NOH_OK) {
		http_reply(o, 200, "application/json", "", part->body, part->len);
		return;
	}
	for (unsigned i = 0; i < sizeof problems / sizeof problems[0]; i++)
		if (problems[i].status == part->status) {
			http_problem(o, problems[i].http, problems[i].code, problems[i].headers, "%.*s", len, detail);
			return;
		}
	http_problem(o, 500, "failed", "", "%.*s", len, detail);
}

/* What went wrong, in words; or the answer. Both are the errand's to give back. */
static int told(struct out *o, int rc, json_t *answer)
{
	char *text = rc == NOH_OK ? json_dumps(answer, JSON_COMPACT) : NULL;

	json_decref(answer);
	if (rc == NOH_OK && !text)
		return NOH_ENOMEM;
	if (rc == NOH_OK)
		out_bytes(o, text, strlen(text));
	else if (rc != NOH_END)
		out_bytes(o, noh_why(), strlen(noh_why()));
	free(text);
	return rc;
}

static void ask(struct call *c, errand_fn *run, const struct words *w)
{
	call_errand(c, run, w, sizeof *w, CALL_MS, format, (struct tag){ 0, 0 });
}

/* RFC 3339, UTC, milliseconds. */
static json_t *json_time(uint64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[40] = "", all[64];

	if (gmtime_r(&s, &tm))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(all, sizeof all, "%s.%03uZ", text, (unsigned)(ms % 1000));
	return json_string(all);
}

/* An address or the name of a kind is text of this box's own; yet what is no UTF-8 must not spoil the list. */
static json_t *json_text(const char *text)
{
	json_t *s = json_string(text);

	return s ? s : json_string("?");
}

/* ── messages that were set aside ── */

struct page {
	json_t  *list;
	uint32_t limit;
	char     last[44];
	bool     more;
};

static json_t *describe(const noh_dead *d)
{
	json_t *j = json_object();

	json_object_set_new(j, "id", json_string(d->id));
	json_object_set_new(j, "at", json_time(d->at_ms));
	json_object_set_new(j, "actor_address", json_text(d->address));
	json_object_set_new(j, "message_type", json_text(d->kind_name));
	json_object_set_new(j, "kind", json_integer(d->kind));
	json_object_set_new(j, "reason", json_text(d->reason));
	json_object_set_new(j, "size", json_integer((json_int_t)d->len));
	return j;
}

static int add_letter(void *user, const noh_dead *d)
{
	struct page *p = user;

	p->more = json_array_size(p->list) == p->limit;
	if (p->more)
		return 1;
	json_array_append_new(p->list, describe(d));
	memcpy(p->last, d->id, sizeof p->last);
	return 0;
}

static int dead_list(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct words *w = args;
	struct page p = { .list = json_array(), .limit = w->limit };
	json_t *answer = json_object();
	int rc = noh_dead_list(box, *w->actor_address ? w->actor_address : NULL, w->cursor, FOLD_MS, add_letter, &p);

	(void)len;
	json_object_set_new(answer, "dead", p.list);
	json_object_set_new(answer, "next_cursor", p.more ? json_string(p.last) : json_null());
	json_object_set_new(answer, "complete", json_boolean(rc == NOH_OK));
	return told(o, rc == NOH_ETIMEOUT ? NOH_OK : rc, answer);
}

static json_t *base64(const uint8_t *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((len + 2) / 3 * 4 + 1), *at = text;
	json_t *s = NULL;

	for (size_t i = 0; text && i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)bytes[i] << 16 | (n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (n > 2 ? bytes[i + 2] : 0);

		*at++ = digits[bits >> 18];
		*at++ = digits[bits >> 12 & 63];
		*at++ = n > 1 ? digits[bits >> 6 & 63] : '=';
		*at++ = n > 2 ? digits[bits & 63] : '=';
	}
	if (text) {
		*at = 0;
		s = json_string(text);
	}
	free(text);
	return s;
}

static int show_letter(void *user, const noh_dead *d)
{
	json_t **answer = user, *text = json_stringn(d->body, d->len);

	*answer = describe(d);
	json_object_set_new(*answer, "body_base64", base64(d->body, d->len));
	json_object_set_new(*answer, "body_text", text ? text : json_null());
	return 1;
}

static int dead_show(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct words *w = args;
	json_t *answer = NULL;
	int rc = noh_dead_get(box, w->id, show_letter, &answer);

	(void)len;
	return told(o, rc, answer);
}

static int done(struct out *o, int rc, const char *id, const char *what)
{
	json_t *answer = json_object();

	json_object_set_new(answer, "id", json_text(id));
	json_object_set_new(answer, what, json_true());
	return told(o, rc, answer);
}

static int dead_redrive(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct words *w = args;

	(void)len;
	return done(o, noh_dead_redrive(box, w->id, FOLD_MS), w->id, "redriven");
}

static int dead_purge(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct words *w = args;

	(void)len;
	return done(o, noh_dead_purge(box, w->id, FOLD_MS), w->id, "purged");
}

void http_dead_list(struct call *c, const struct http_request *q)
{
	struct words w;

	if (read_words(c, q, &w, "actor_address limit cursor", ""))
		ask(c, dead_list, &w);
}

void http_dead_show(struct call *c, const struct http_request *q)
{
	struct words w;

	if (read_words(c, q, &w, "id", "id"))
		ask(c, dead_show, &w);
}

static void change(struct call *c, const struct http_request *q, errand_fn *run, const char *what)
{
	struct words w;

	if (!read_words(c, q, &w, "id", "id"))
		return;
	tell_log(c, what, &w);
	ask(c, run, &w);
}

void http_dead_redrive(struct call *c, const struct http_request *q)
{
	change(c, q, dead_redrive, "redrive the message");
}

void http_dead_purge(struct call *c, const struct http_request *q)
{
	change(c, q, dead_purge, "purge the message");
}

/* ── schedules ── */

static void add_timer(void *user, const noh_scheduled *s)
{
	json_t *j = json_object();

	json_object_set_new(j, "actor_address", json_text(s->address));
	json_object_set_new(j, "message_type", json_text(s->kind_name));
	json_object_set_new(j, "kind", json_integer(s->kind));
	json_object_set_new(j, "due_at", json_time(s->due_ms));
	json_object_set_new(j, "period_ms", json_integer((json_int_t)s->period_ms));
	json_array_append_new(user, j);
}

static int schedule_list(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct words *w = args;
	json_t *answer = json_object(), *timers = json_array();
	char cursor[NOH_CURSOR];

	(void)len;
	memcpy(cursor, w->cursor, sizeof cursor);
	int rc = noh_schedule_list(box, *w->actor_type ? w->actor_type : NULL, *w->actor_address ? w->actor_address : NULL, cursor,
				   w->limit, FOLD_MS, add_timer, timers);

	json_object_set_new(answer, "timers", timers);
	json_object_set_new(answer, "next_cursor", *cursor ? json_text(cursor) : json_null());
	json_object_set_new(answer, "complete", json_boolean(rc == NOH_OK));
	return told(o, rc == NOH_ETIMEOUT ? NOH_OK : rc, answer);
}

/* By its name, or (a type without a table) by its number. Below zero: why not. */
static int kind_of(noh_box *box, const struct words *w)
{
	size_t len = strcspn(w->actor_address, ":/");
	char type[256], *end;
	unsigned long n = strtoul(w->message_type, &end, 10);

	if (*end == 0 && n <= INT32_MAX)
		return (int)n;
	snprintf(type, sizeof type, "%.*s", (int)len, w->actor_address);
	return noh_kind_number(box, type, w->message_type);
}

static int schedule_cancel(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct words *w = args;
	int kind = kind_of(box, w), rc = kind < 0 ? kind : noh_schedule_drop(box, w->actor_address, (uint32_t)kind, FOLD_MS);
	json_t *answer = json_object();

	(void)len;
	json_object_set_new(answer, "actor_address", json_text(w->actor_address));
	json_object_set_new(answer, "message_type", json_text(w->message_type));
	json_object_set_new(answer, "was_scheduled", json_boolean(rc == NOH_OK));
	return told(o, rc == NOH_END ? NOH_OK : rc, answer);
}

void http_schedule_list(struct call *c, const struct http_request *q)
{
	struct words w;

	if (read_words(c, q, &w, "actor_address actor_type limit cursor", ""))
		ask(c, schedule_list, &w);
}

void http_schedule_cancel(struct call *c, const struct http_request *q)
{
	struct words w;

	if (!read_words(c, q, &w, "actor_address message_type", "actor_address message_type"))
		return;
	tell_log(c, "cancel a timer of", &w);
	ask(c, schedule_cancel, &w);
}
