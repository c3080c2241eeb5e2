/* net/rest_admin.c - what operators do: messages that were set aside, and schedules.
 *
 * What they ask for may block (the image is read, and the journal folded before), so it is an errand: the handler checks
 * the words, the errand finds the answer and writes it as JSON, the format makes the response of it. Every change is a line
 * in the log, with who asked for it.
 */
#include "core/mem.h"
#include "net/net.h"
#include "net/rest.h"
#include "noh_actors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLD_MS = 10000, CALL_MS = 20000, ENTRY_MAX = 8192, REASON_MAX = 300 };

struct wish {                              /* what an errand is given; "": not said */
	char     address[ADDRESS_MAX + 1], type[TYPE_NAME_MAX + 1], id[44], kind[256], cursor[NOH_CURSOR];
	uint32_t limit;
};

static void put_c_text(noh_json_out *o, const char *name, const char *text)
{
	noh_json_put_text(o, name, text, strlen(text));
}

/* ── responses ── */

static void format(struct out *o, const struct reply_part *part, uint32_t n, struct tag tag)
{
	(void)n, (void)tag;
	if (part->status == NOH_OK)
		http_reply(o, 200, "application/json", "", part->body, part->len);
	else if (part->status == NOH_END)
		http_problem(o, 404, "not_found", "", "there is none of this id, or none any more");
	else if (part->status == NOH_EIDEM)
		http_problem(o, 409, "conflict", "", "%.*s", (int)part->len, (const char *)part->body);
	else
		rest_problem(o, part, NULL, NULL);
}

/* What went wrong, in words, is the errand's answer then. */
static int failed(struct out *o, int rc)
{
	if (rc != NOH_END)
		out_bytes(o, noh_why(), strlen(noh_why()));
	return rc;
}

static void put_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

/* The end of a page: {"...":[ ... has been written. */
static void put_end(struct out *o, const char *cursor, bool complete)
{
	char text[ENTRY_MAX];
	noh_json_out end = { .at = text, .room = sizeof text, .comma = true };

	if (*cursor)
		put_c_text(&end, "next_cursor", cursor);
	else
		noh_json_put_null(&end, "next_cursor");
	noh_json_put_bool(&end, "complete", complete);
	put_text(o, "]");
	out_bytes(o, text, end.len);
	put_text(o, "}\n");
}

static void ask(struct call *c, errand_fn *run, const struct wish *w)
{
	call_errand(c, run, w, sizeof *w, CALL_MS, format, (struct tag){ 0, 0 });
}

static void take(noh_json_got got, char *to, size_t size)
{
	to[0] = 0;
	if (got.given)
		noh_json_text(got.value, to, size);
}

/* An address, or "". False: the problem is written. */
static bool take_address(struct call *c, noh_json_got got, char *to)
{
	struct rest_actor actor;

	to[0] = 0;
	if (!got.given)
		return true;
	if (!rest_actor(c, got.value, &actor))
		return false;
	memcpy(to, actor.address, actor.len + 1);
	return true;
}

/* ── messages that were set aside ── */

static void put_letter(noh_json_out *o, const noh_dead *d, bool whole)
{
	size_t reason = strlen(d->reason);

	noh_json_open(o, NULL, '{');
	put_c_text(o, "id", d->id);
	noh_json_put_time(o, "at", (int64_t)d->at_ms);
	put_c_text(o, "actor_address", d->address);
	put_c_text(o, "message_type", d->kind_name);
	noh_json_put_uint(o, "kind", d->kind);
	noh_json_put_text(o, "reason", d->reason, reason < REASON_MAX ? reason : REASON_MAX);
	noh_json_put_uint(o, "size", d->len);
	if (whole)
		noh_json_put_base64(o, "body_base64", d->body, d->len);
	noh_json_close(o, '}');
}

struct page {
	struct out *o;
	uint32_t    limit, count;
	bool        more;
	char        last[44];
};

static int add_letter(void *user, const noh_dead *d)
{
	struct page *p = user;
	char text[ENTRY_MAX];
	noh_json_out entry = { .at = text, .room = sizeof text, .comma = p->count > 0 };

	p->more = p->count == p->limit;
	if (p->more)
		return 1;
	put_letter(&entry, d, false);
	if (entry.len <= entry.room)
		out_bytes(p->o, text, entry.len);
	p->count++;
	memcpy(p->last, d->id, sizeof p->last);
	return 0;
}

static int dead_list(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct wish *w = args;
	struct page p = { .o = o, .limit = w->limit };
	int rc;

	(void)len;
	put_text(o, "{\"dead\":[");
	rc = noh_dead_list(box, *w->address ? w->address : NULL, w->cursor, FOLD_MS, add_letter, &p);
	if (rc != NOH_OK && rc != NOH_ETIMEOUT) {
		o->len = 0;
		return failed(o, rc);
	}
	put_end(o, p.more ? p.last : "", rc == NOH_OK);
	return NOH_OK;
}

static int show_letter(void *user, const noh_dead *d)
{
	struct out *o = user;
	size_t room = 4 * d->len / 3 + ENTRY_MAX;
	noh_json_out all = { .at = mem_alloc(room), .room = room };

	if (all.at)
		put_letter(&all, d, true);
	if (all.at && all.len <= all.room)
		out_bytes(o, all.at, all.len);
	mem_free(all.at, room);
	return 1;
}

static int dead_show(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct wish *w = args;
	int rc = noh_dead_get(box, w->id, show_letter, o);

	(void)len;
	return rc == NOH_OK && o->len == 0 ? NOH_ENOMEM : rc == NOH_OK ? rc : failed(o, rc);
}

static int done(struct out *o, int rc, const char *id, const char *what)
{
	char text[128];

	if (rc != NOH_OK)
		return failed(o, rc);
	snprintf(text, sizeof text, "{\"id\":\"%s\",\"%s\":true}\n", id, what);
	put_text(o, text);
	return NOH_OK;
}

static int dead_redrive(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct wish *w = args;

	(void)len;
	return done(o, noh_dead_redrive(box, w->id, FOLD_MS), w->id, "redriven");
}

static int dead_purge(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct wish *w = args;

	(void)len;
	return done(o, noh_dead_purge(box, w->id, FOLD_MS), w->id, "purged");
}

void rest_dead_list(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct wish w = { .limit = 0 };

	if (!rest_read(c, q, FORM_DEAD_LIST, got) || !take_address(c, got[DEAD_ADDRESS], w.address))
		return;
	w.limit = (uint32_t)got[DEAD_LIMIT].n;
	take(got[DEAD_CURSOR], w.cursor, sizeof w.cursor);
	ask(c, dead_list, &w);
}

static void one_letter(struct call *c, const struct http_request *q, enum rest_form_id form, errand_fn *run, const char *what)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct wish w = { .limit = 0 };

	if (!rest_read(c, q, form, got))
		return;
	take(got[DEAD_ID], w.id, sizeof w.id);
	if (what)
		call_audit(c, what, NULL, w.id);
	ask(c, run, &w);
}

void rest_dead_show(struct call *c, const struct http_request *q)
{
	one_letter(c, q, FORM_DEAD_SHOW, dead_show, NULL);
}

void rest_dead_redrive(struct call *c, const struct http_request *q)
{
	one_letter(c, q, FORM_DEAD_REDRIVE, dead_redrive, "dead redrive");
}

void rest_dead_purge(struct call *c, const struct http_request *q)
{
	one_letter(c, q, FORM_DEAD_PURGE, dead_purge, "dead purge");
}

/* ── schedules ── */

static void add_timer(void *user, const noh_scheduled *s)
{
	struct page *p = user;
	char text[ENTRY_MAX];
	noh_json_out entry = { .at = text, .room = sizeof text, .comma = p->count++ > 0 };

	noh_json_open(&entry, NULL, '{');
	put_c_text(&entry, "actor_address", s->address);
	put_c_text(&entry, "message_type", s->kind_name);
	noh_json_put_uint(&entry, "kind", s->kind);
	noh_json_put_time(&entry, "due_at", (int64_t)s->due_ms);
	noh_json_put_uint(&entry, "period_ms", s->period_ms);
	noh_json_close(&entry, '}');
	if (entry.len <= entry.room)
		out_bytes(p->o, text, entry.len);
}

static int schedule_list(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct wish *w = args;
	struct page p = { .o = o };
	char cursor[NOH_CURSOR];
	int rc;

	(void)len;
	memcpy(cursor, w->cursor, sizeof cursor);
	put_text(o, "{\"timers\":[");
	rc = noh_schedule_list(box, *w->type ? w->type : NULL, *w->address ? w->address : NULL, cursor, w->limit, FOLD_MS,
			       add_timer, &p);
	if (rc != NOH_OK && rc != NOH_ETIMEOUT) {
		o->len = 0;
		return failed(o, rc);
	}
	put_end(o, cursor, rc == NOH_OK);
	return NOH_OK;
}

/* By its name, that of a JSON message of this kind, or (a type without a table) by its number. Below zero: why not. */
static int kind_of(noh_box *box, const struct wish *w)
{
	char type[ADDRESS_MAX + 1];
	bool digits = strspn(w->kind, "0123456789") == strlen(w->kind) && strlen(w->kind) <= 10;
	unsigned long n = digits ? strtoul(w->kind, NULL, 10) : 0;

	if (digits && n <= INT32_MAX)
		return (int)n;
	snprintf(type, sizeof type, "%.*s", (int)strcspn(w->address, ":"), w->address);
	const noh_type *of = noh_find_type(box, type);

	return of ? codec_kind(box, of, w->kind) : noh_kind_number(box, type, w->kind);
}

/* Without its timer what is to arrive later would neither arrive nor be gone: so all of it goes, with the timer. */
static int clear_later(noh_box *box, const char *address)
{
	uint64_t count = 0;
	size_t len = sizeof count;
	int rc = noh_call(box, address, NOH_LATER_CLEAR, NULL, 0, FOLD_MS, &count, &len);

	return rc == NOH_OK && count == 0 ? NOH_END : rc;
}

static bool keeps_for_later(noh_box *box, const char *address)
{
	const noh_type *later = noh_find_type(box, noh_later_type()->name);

	return later && later->on_message == noh_later_type()->on_message && strncmp(address, "later:", 6) == 0;
}

static int drop(noh_box *box, const struct wish *w)
{
	int kind = kind_of(box, w);

	if (kind < 0)
		return kind;
	if (kind == NOH_LATER_DUE && keeps_for_later(box, w->address))
		return clear_later(box, w->address);
	return noh_schedule_drop(box, w->address, (uint32_t)kind, FOLD_MS);
}

static int schedule_cancel(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct wish *w = args;
	int rc = drop(box, w);
	char text[ENTRY_MAX];
	noh_json_out all = { .at = text, .room = sizeof text };

	(void)len;
	if (rc != NOH_OK && rc != NOH_END)
		return failed(o, rc);
	noh_json_open(&all, NULL, '{');
	put_c_text(&all, "actor_address", w->address);
	put_c_text(&all, "message_type", w->kind);
	noh_json_put_bool(&all, "was_scheduled", rc == NOH_OK);
	noh_json_close(&all, '}');
	out_bytes(o, text, all.len);
	put_text(o, "\n");
	return NOH_OK;
}

void rest_schedule_list(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct wish w = { .limit = 0 };

	if (!rest_read(c, q, FORM_SCHEDULE_LIST, got) || !take_address(c, got[SCHEDULE_ADDRESS], w.address))
		return;
	if (got[SCHEDULE_ADDRESS].given && got[SCHEDULE_TYPE].given) {
		http_problem(call_out(c), 422, "invalid", "", "\"actor_address\" or \"actor_type\": not both");
		return;
	}
	w.limit = (uint32_t)got[SCHEDULE_LIMIT].n;
	take(got[SCHEDULE_TYPE], w.type, sizeof w.type);
	take(got[SCHEDULE_CURSOR], w.cursor, sizeof w.cursor);
	ask(c, schedule_list, &w);
}

void rest_schedule_cancel(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct wish w = { .limit = 0 };

	if (!rest_read(c, q, FORM_SCHEDULE_CANCEL, got) || !take_address(c, got[CANCEL_ADDRESS], w.address))
		return;
	take(got[CANCEL_KIND], w.kind, sizeof w.kind);
	call_audit(c, "schedule cancel", w.address, w.kind);
	ask(c, schedule_cancel, &w);
}
