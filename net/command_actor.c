/* net/command_actor.c - actors of any type, by their addresses. */
#include "net/command_counter.h"

#include "core/address.h"
#include "core/error.h"
#include "core/mem.h"
#include "net/codec.h"
#include "net/session.h"
#include "net/tell.h"
#include "noh_actors.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MAX_MS = 86400000, LIST_MOST = 1000, LIST_USUAL = 100 };

/* ── address and kind ─────────────────────────────────────────────────────────────────────────── */
static bool read_address(struct call *c, const struct arg *a, struct address *address)
{
	int rc = address_parse(address, a->at, a->len);

	if (rc == NOH_OK)
		return true;
	out_error(call_out(c), "-BADADDRESS %s", noh_why());
	return false;
}

/* The sentence is noh_why's. */
static bool failed(struct call *c, int rc)
{
	const char *why = noh_why();

	out_part_status(call_out(c), &(struct reply_part){ rc, (uint32_t)strlen(why), why });
	return false;
}

/* A message: its kind is a number, and its payload the body; or a name. */
struct message {
	struct request       r;
	struct trace_text    trace;
	uint64_t             delay_ms;
	const noh_type      *json;               /* it is a JSON message of this type; NULL: bytes     */
	struct codec_message made;               /* of the JSON                                        */
};

/* By the name of a JSON message, if the type has one of this name: then an empty payload is an empty object. Else by a
 * name in the type's table. */
static bool read_named(struct call *c, const noh_type *type, const char *name, struct message *m)
{
	const struct arg *payload = &c->argv[3];
	noh_json json = { "{}", 2 };
	bool object = payload->len == 0 || (noh_json_check(payload->at, payload->len, &json) == NOH_OK &&
					    noh_json_type_of(json) == NOH_JSON_OBJECT);
	int rc;

	if (codec_has(type, name)) {
		rc = object ? codec_message(call_box(c), type, name, json, net_options(c->net)->max_arg_bytes, &m->made)
			    : error_set(NOH_EINVAL, "\"%s\" of type %s takes a JSON object, or nothing; for bytes name "
					"the kind by its number", name, type->name);
		if (rc != NOH_OK)
			return failed(c, rc);
		m->json = type;
		m->r.kind = m->made.kind;
		m->r.body = m->made.body;
		m->r.len = m->made.len;
		return true;
	}
	rc = codec_kind(call_box(c), type, name);
	m->r.kind = (uint32_t)rc;
	return rc >= 0 || failed(c, rc);
}

static bool read_kind(struct call *c, const struct address *address, struct message *m)
{
	const struct arg *a = &c->argv[2];
	char type[TYPE_NAME_MAX + 1], name[256];
	const noh_type *of;
	uint64_t n;

	if (arg_uint(a, &n) && n <= UINT32_MAX) {
		m->r.kind = (uint32_t)n;
		return true;
	}
	memcpy(type, address->type, address->type_len);
	type[address->type_len] = 0;
	of = noh_find_type(call_box(c), type);
	if (of && a->len < sizeof name && memchr(a->at, 0, a->len) == NULL) {
		memcpy(name, a->at, a->len);
		name[a->len] = 0;
		return read_named(c, of, name, m);
	}
	out_status(call_out(c), of ? NOH_EKIND : NOH_ENOTYPE);
	return false;
}

/* ── SEND, INVOKE ─────────────────────────────────────────────────────────────────────────────── */
static bool read_message(struct call *c, struct message *m)
{
	struct address address;

	if (!read_address(c, &c->argv[1], &address))
		return false;
	m->r.type = TYPE_IN_ADDRESS;
	m->r.id = c->argv[1].at;
	m->r.id_len = c->argv[1].len;
	m->r.body = c->argv[3].at;
	m->r.len = c->argv[3].len;
	return read_kind(c, &address, m);
}

static bool read_ack(struct call *c, const struct arg *a, struct request *r)
{
	r->no_wait = arg_is(a, "none");
	r->durability = arg_is(a, "memory") ? NOH_MEMORY : NOH_DISK;
	if (r->no_wait || arg_is(a, "memory") || arg_is(a, "disk"))
		return true;
	out_error(call_out(c), "ACK must be none, memory or disk");
	return false;
}

static bool read_timeout(struct call *c, const struct arg *a, struct request *r)
{
	uint64_t ms;

	if (arg_uint(a, &ms) && ms >= 1 && ms <= TIMEOUT_MAX_MS) {
		r->timeout_ms = (uint32_t)ms;
		return true;
	}
	out_error(call_out(c), "TIMEOUT must be a number of milliseconds, 1 to %d", TIMEOUT_MAX_MS);
	return false;
}

static bool read_delay(struct call *c, const struct arg *a, uint64_t *ms)
{
	if (arg_uint(a, ms) && *ms <= NOH_LATER_MAX_MS)
		return true;
	out_error(call_out(c), "DELAY must be a number of milliseconds, at most a year (%llu)",
		  (unsigned long long)NOH_LATER_MAX_MS);
	return false;
}

/* The options behind the payload, pairs all of them. False: the error is written. A trace that is none is ignored, as
 * its standard has it. */
static bool read_options(struct call *c, struct message *m)
{
	struct request *r = &m->r;
	struct trace_text *trace = &m->trace;
	bool send = r->op == REQUEST_SEND, acked = false;

	for (uint32_t i = 4; i < c->argc; i += 2) {
		const struct arg *a = &c->argv[i];
		struct arg key;

		if (arg_is(a, "idem") && r->key == NULL) {
			if (!call_idem(c, i, &key))
				return false;
			r->key = key.at;
			r->key_len = key.len;
		} else if (i + 1 < c->argc && send && m->delay_ms == 0 && arg_is(a, "delay")) {
			if (!read_delay(c, a + 1, &m->delay_ms))
				return false;
		} else if (i + 1 < c->argc && send && !acked && arg_is(a, "ack")) {
			acked = true;
			if (!read_ack(c, a + 1, r))
				return false;
		} else if (i + 1 < c->argc && !send && r->timeout_ms == 0 && arg_is(a, "timeout")) {
			if (!read_timeout(c, a + 1, r))
				return false;
		} else if (i + 1 < c->argc && trace->parent.at == NULL && arg_is(a, "trace")) {
			trace->parent = a[1];
			r->trace = trace;
		} else if (i + 1 < c->argc && trace->state.at == NULL && arg_is(a, "tracestate")) {
			trace->state = a[1];
		} else {
			out_syntax_error(call_out(c));
			return false;
		}
	}
	return true;
}

static void format_ok(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	(void)tag;
	if (parts[0].status == NOH_REFUSED)
		out_part_status(o, &parts[0]);
	else if (!out_failed(o, parts, n, 0))
		out_simple(o, "OK");
}

/* A refusal is an error to the client, with what the actor said, if that can be read. */
static void format_answer(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	(void)tag;
	if (parts[0].status == NOH_REFUSED)
		out_part_status(o, &parts[0]);
	else if (!out_failed(o, parts, n, 0))
		out_bulk(o, parts[0].body, parts[0].len);
}

/* The answer to a JSON message, as HTTP's "response" has it; tag: the type, and the kind. */
static void format_json(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const noh_type *type = (const noh_type *)(uintptr_t)tag.a;
	char inside[1024], *big = NULL;
	noh_json_out json = { .at = inside, .room = sizeof inside };
	size_t room = 0;

	if (parts[0].status != NOH_REFUSED && out_failed(o, parts, n, 0))
		return;
	codec_put_answer(&json, NULL, type, (uint32_t)tag.b, &parts[0]);
	if (json.len > json.room) {
		room = json.len;
		big = mem_alloc(room);
		if (big == NULL) {
			out_error(o, "-OOM no memory for an answer of %zu bytes; what was asked for has happened", room);
			return;
		}
		json = (noh_json_out){ .at = big, .room = room };
		codec_put_answer(&json, NULL, type, (uint32_t)tag.b, &parts[0]);
	}
	if (parts[0].status == NOH_REFUSED)
		out_part_status(o, &(struct reply_part){ NOH_REFUSED, (uint32_t)json.len, json.at });
	else
		out_bulk(o, json.at, json.len);
	mem_free(big, room);
}

/* To the actor that keeps it until then: noh_actors.h, later. */
static void send_later(struct call *c, struct request *r, uint64_t delay_ms)
{
	noh_later_send head = { .delay_ms = delay_ms, .kind = r->kind };
	uint32_t len = (uint32_t)sizeof head + r->len;
	struct address to;
	char id[ADDRESS_MAX + 1], type[TYPE_NAME_MAX + 1];
	char *body;

	if (!read_address(c, &c->argv[1], &to))
		return;
	snprintf(type, sizeof type, "%.*s", (int)to.type_len, to.type);
	if (noh_kind_number(call_box(c), type, "") == NOH_ENOTYPE) {
		out_status(call_out(c), NOH_ENOTYPE);
		return;
	}
	if (r->id_len > NOH_LATER_ADDRESS) {
		out_error(call_out(c), "-BADADDRESS with DELAY an address is at most %d bytes", NOH_LATER_ADDRESS);
		return;
	}
	body = mem_alloc(len);
	if (body == NULL) {
		out_status(call_out(c), NOH_ENOMEM);
		return;
	}
	memcpy(body, &head, sizeof head);
	memcpy(body + sizeof head, r->body, r->len);
	/* one keeper for "type:id" and "type/id" */
	r->id_len = (uint32_t)snprintf(id, sizeof id, "later:%s:%.*s", type, (int)to.id_len, to.id);
	r->id = id;
	r->body = body;
	r->len = len;
	r->kind = NOH_LATER_SEND;
	call_actors(c, r, 1, format_ok, (struct tag){ 0, 0 });
	mem_free(body, len);
}

void cmd_actor_send(struct call *c)
{
	struct message m = { .r = { .op = REQUEST_SEND } };

	if (read_message(c, &m) && read_options(c, &m)) {
		if (m.delay_ms)
			send_later(c, &m.r, m.delay_ms);
		else
			call_actors(c, &m.r, 1, format_ok, (struct tag){ 0, 0 });
	}
	codec_free(&m.made);
}

void cmd_actor_invoke(struct call *c)
{
	struct message m = { .r = { .op = REQUEST_CALL } };

	if (read_message(c, &m) && read_options(c, &m))
		call_actors(c, &m.r, 1, m.json ? format_json : format_answer,
			    (struct tag){ (uint64_t)(uintptr_t)m.json, m.r.kind });
	codec_free(&m.made);
}

/* ── ACTIVATE, DEACTIVATE ─────────────────────────────────────────────────────────────────────── */
static void life(struct call *c, enum request_op op, const char *what)
{
	struct request r = { .op = op, .type = TYPE_IN_ADDRESS, .id = c->argv[1].at, .id_len = c->argv[1].len };
	struct address to;
	char whom[ADDRESS_MAX + 1];

	if (!read_address(c, &c->argv[1], &to))
		return;
	snprintf(whom, sizeof whom, "%.*s:%.*s", (int)to.type_len, to.type, (int)to.id_len, to.id);
	call_audit(c, what, whom, NULL);
	call_actors(c, &r, 1, format_ok, (struct tag){ 0, 0 });
}

void cmd_actor_activate(struct call *c)
{
	life(c, REQUEST_ACTIVATE, "activate");
}

void cmd_actor_deactivate(struct call *c)
{
	if (c->argc == 2)
		life(c, REQUEST_DEACTIVATE, "deactivate");
	else if (c->argc == 3 && arg_is(&c->argv[2], "force"))
		life(c, REQUEST_DEACTIVATE_FORCE, "deactivate by force");
	else
		out_syntax_error(call_out(c));
}

/* ── STATUS, LIST, POOL ───────────────────────────────────────────────────────────────────────── */
void cmd_actor_status(struct call *c)
{
	struct out *o = call_out(c);
	struct address address;
	noh_status status;
	noh_vitals v;
	char text[ADDRESS_MAX + 1];

	if (!read_address(c, &c->argv[1], &address))
		return;
	memcpy(text, c->argv[1].at, c->argv[1].len);
	text[c->argv[1].len] = 0;
	int rc = call_status(c, text, &status);

	if (rc == NOH_OK)
		rc = call_vitals(c, text, &v);
	if (rc != NOH_OK) {
		out_status(o, rc);
		return;
	}
	out_map(o, 14);
	out_text(o, "actor_address"), out_text(o, text);
	out_text(o, "is_active"), out_bool(o, status.life != NOH_NOT_ACTIVE);
	out_text(o, "life"), out_text(o, noh_life_name(status.life));
	out_text(o, "exists"), out_bool(o, status.exists);
	out_text(o, "stored"), out_bool(o, status.stored);
	out_text(o, "mailbox_size"), out_int(o, status.mailbox_size);
	out_text(o, "idle_ms"), out_int(o, (int64_t)status.idle_ms);
	out_text(o, "resting"), out_bool(o, status.resting);
	out_text(o, "messages_processed"), out_int(o, (int64_t)status.messages_processed);
	out_text(o, "state"), out_text(o, tell_state_of(v.health, status.life));
	out_text(o, "restarts"), out_int(o, (int64_t)v.restarts);
	out_text(o, "last_failure"), out_text(o, v.reason);
	out_text(o, "last_failure_ms"), out_int(o, (int64_t)v.failed_ms);
	out_text(o, "retry_ms"), out_int(o, (int64_t)v.until_ms);
}

struct listing {
	char     type[TYPE_NAME_MAX + 1];         /* "": any                                  */
	uint64_t cursor, limit;
	bool     all;                             /* those that are not in memory as well     */
	struct out entries;
	uint32_t count;
};

static bool read_list(struct call *c, struct listing *l)
{
	for (uint32_t i = 1; i < c->argc; ) {
		const struct arg *a = &c->argv[i];
		int taken = page_option(c, &i, &l->cursor, &l->limit, LIST_MOST);

		if (taken < 0)
			return false;
		if (taken == 1)
			continue;
		if (arg_is(a, "all") && !l->all) {
			l->all = true;
			i++;
		} else if (arg_is(a, "type") && i + 1 < c->argc && l->type[0] == 0) {
			if (a[1].len == 0 || a[1].len > TYPE_NAME_MAX || memchr(a[1].at, 0, a[1].len)) {
				out_status(call_out(c), NOH_ENOTYPE);
				return false;
			}
			memcpy(l->type, a[1].at, a[1].len);
			i += 2;
		} else {
			out_syntax_error(call_out(c));
			return false;
		}
	}
	return true;
}

static void list_one(struct listing *l, const char *address, size_t len, const char *life_)
{
	out_array(&l->entries, 2);
	out_bulk(&l->entries, address, len);
	out_text(&l->entries, life_);
	l->count++;
}

static void scan_one(void *user, const noh_scanned *actor)
{
	list_one(user, actor->address, actor->len, actor->active ? "active" : "stored");
}

static int list_active(struct call *c, struct listing *l)
{
	noh_entry *entries = mem_alloc(l->limit * sizeof *entries);
	size_t count = l->limit;

	if (entries == NULL)
		return NOH_ENOMEM;
	int rc = call_list(c, l->type[0] ? l->type : NULL, &l->cursor, entries, &count);

	for (size_t i = 0; rc == NOH_OK && i < count; i++)
		list_one(l, entries[i].address, strlen(entries[i].address), noh_life_name(entries[i].life));
	mem_free(entries, l->limit * sizeof *entries);
	return rc;
}

void cmd_actor_list(struct call *c)
{
	struct out *o = call_out(c);
	struct listing l = { .limit = LIST_USUAL };

	if (!read_list(c, &l))
		return;
	int rc = l.all ? call_scan(c, l.type[0] ? l.type : NULL, &l.cursor, (uint32_t)l.limit, scan_one, &l)
		       : list_active(c, &l);

	if (rc == NOH_EINVAL) {
		out_error(o, "invalid cursor");
	} else if (rc != NOH_OK || l.entries.failed) {
		out_status(o, rc != NOH_OK ? rc : NOH_ENOMEM);
	} else {
		out_array(o, 2);
		out_cursor(o, l.cursor);
		out_array(o, l.count);
		out_bytes(o, l.entries.bytes, l.entries.len);
	}
	out_close(&l.entries);
}

void cmd_actor_pool(struct call *c)
{
	struct out *o = call_out(c);
	noh_box_stats s;
	int rc = noh_get_stats(call_box(c), &s);

	if (rc != NOH_OK) {
		out_status(o, rc);
		return;
	}
	const struct { const char *name; uint64_t n; } rows[] = {
		{ "total_nodes", 1 }, { "healthy_nodes", s.read_only ? 0 : 1 }, { "workers", s.workers },
		{ "total_actors_active", s.actors }, { "actors_stored", s.stored }, { "actor_bytes", s.actor_bytes },
		{ "timers", s.timers }, { "activations", s.activations }, { "deactivations", s.deactivations },
		{ "evictions", s.evictions }, { "dead_letters", s.dead_letters }, { "late_answers", s.late_answers },
		{ "turns", s.total.turns }, { "messages", s.total.messages }, { "steals", s.total.steals },
		{ "slow_turns", s.total.slow_turns } };
	enum { ROWS = sizeof rows / sizeof rows[0] };

	out_map(o, ROWS);
	for (uint32_t i = 0; i < ROWS; i++) {
		out_text(o, rows[i].name);
		out_int(o, (int64_t)rows[i].n);
	}
}
