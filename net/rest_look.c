/* net/rest_look.c - /actor/status and /actor/list: who is there. Nobody is activated by being looked at. */
#include "net/rest.h"

#include "core/error.h"
#include "core/mem.h"
#include "net/net.h"
#include "net/tell.h"

#include <stdio.h>
#include <string.h>

/* ── one actor ── */

struct seen {
	const char *address, *node;
	size_t      len;
	noh_life    life;
	bool        exists, resting;
	uint32_t    mailbox;
	uint64_t    last_ms, since_ms, processed;
	noh_vitals  vitals;
};

static void put_actor(noh_json_out *o, const struct seen *s)
{
	const noh_vitals *v = &s->vitals;
	bool active = s->life != NOH_NOT_ACTIVE;

	noh_json_open(o, NULL, '{');
	noh_json_put_text(o, "actor_address", s->address, s->len);
	noh_json_put_bool(o, "is_active", active);
	noh_json_put_text(o, "node_id", s->node, strlen(s->node));
	rest_put_when(o, "activated_at", active ? s->since_ms : 0);
	rest_put_when(o, "last_message_at", active ? s->last_ms : 0);
	noh_json_put_uint(o, "messages_processed", s->processed);
	noh_json_put_uint(o, "mailbox_size", s->mailbox);
	noh_json_put_bool(o, "resting", s->resting);
	noh_json_put_bool(o, "exists", s->exists);
	rest_put_text(o, "state", tell_state_of(v->health, s->life));
	noh_json_put_uint(o, "restarts", v->restarts);
	rest_put_text(o, "last_failure", v->reason);
	rest_put_when(o, "last_failure_at", v->failed_ms);
	rest_put_when(o, "retry_at", v->until_ms);
	noh_json_close(o, '}');
}

static void write_actor(noh_json_out *o, const void *arg)
{
	put_actor(o, arg);
}

static bool may_look(struct call *c)
{
	c->later = !call_alone(c);       /* what this connection did before is to be seen */
	return !c->later;
}

static int look(struct call *c, const char *address, size_t len, struct seen *s)
{
	noh_status status;
	int rc = call_status(c, address, &status);

	*s = (struct seen){ .address = address, .len = len, .node = rest_node(c), .life = status.life, .exists = status.exists,
			    .mailbox = status.mailbox_size, .resting = status.resting, .last_ms = status.last_ms,
			    .since_ms = status.activated_ms, .processed = status.messages_processed };
	return rc == NOH_OK ? call_vitals(c, address, &s->vitals) : rc;
}

void rest_status(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct rest_actor actor;
	struct seen s;
	int rc;

	if (!may_look(c) || !rest_read(c, q, FORM_STATUS, got) || !rest_actor(c, got[LIFE_ADDRESS].value, &actor))
		return;
	rc = look(c, actor.address, actor.len, &s);
	if (rc == NOH_OK)
		rest_reply_json(call_out(c), 200, write_actor, &s);
	else
		rest_problem_of(call_out(c), rc);
}

/* ── all of them ── */

struct listing {
	struct call *call;
	const char  *node, *type;                /* type NULL: any                                           */
	bool         active_only, failed;
	uint32_t     limit;
	uint64_t     cursor;
	struct out   actors;                     /* as JSON, with commas between them                        */
};

/* A cursor says which listing it is of: "a12" of the active ones, "s12" of all that exist. */
static bool read_cursor(struct call *c, const noh_json_got *got, struct listing *l)
{
	char text[72], digits[24], kind = 0, more = 0;
	unsigned long long n = 0;

	if (!got->given)
		return true;
	(void)noh_json_text(got->value, text, sizeof text);
	if (sscanf(text, "%c%20[0-9]%c", &kind, digits, &more) == 2 && kind == (l->active_only ? 'a' : 's') &&
	    sscanf(digits, "%llu", &n) == 1 && n != 0) {
		l->cursor = n;
		return true;
	}
	rest_problem_of(call_out(c), error_set(NOH_EINVAL, "\"cursor\" must be the next_cursor of a page with the same "
					      "\"active_only\""));
	return false;
}

static bool read_type(struct call *c, noh_json value, char type[TYPE_NAME_MAX + 1])
{
	size_t len = noh_json_text(value, type, TYPE_NAME_MAX + 1);

	if (strlen(type) == len)
		return true;
	rest_problem_of(call_out(c), error_set(NOH_ENOTYPE, "no type has a NUL in its name"));
	return false;
}

static void add(struct listing *l, const struct seen *s)
{
	char text[4096];                         /* address and reason: at most 1530 and 1200 bytes when escaped */
	noh_json_out o = { .at = text, .room = sizeof text, .comma = l->actors.len != 0 };

	put_actor(&o, s);
	if (o.len <= o.room)
		out_bytes(&l->actors, text, o.len);
	else
		l->failed = true;
}

static int list_active(struct listing *l)
{
	noh_entry *entries = mem_alloc(l->limit * sizeof *entries);
	size_t count = l->limit;
	int rc;

	if (!entries)
		return error_set(NOH_ENOMEM, "no memory for a page of %u", l->limit);
	rc = call_list(l->call, l->type, &l->cursor, entries, &count);
	for (size_t i = 0; rc == NOH_OK && i < count; i++) {
		const noh_entry *e = &entries[i];
		struct seen s = { .address = e->address, .len = strlen(e->address), .node = l->node, .life = e->life,
				  .exists = e->exists, .mailbox = e->mailbox_size, .resting = e->resting, .last_ms = e->last_ms,
				  .since_ms = e->activated_ms, .processed = e->messages_processed };

		rc = call_vitals(l->call, e->address, &s.vitals);
		add(l, &s);
	}
	mem_free(entries, l->limit * sizeof *entries);
	return rc;
}

static void scan_one(void *user, const noh_scanned *actor)
{
	struct listing *l = user;
	struct seen s;

	if (!actor->active || look(l->call, actor->address, actor->len, &s) != NOH_OK) {
		s = (struct seen){ .address = actor->address, .len = actor->len, .node = l->node };
		(void)call_vitals(l->call, actor->address, &s.vitals);
	}
	s.exists = true;
	add(l, &s);
}

static void write_page(noh_json_out *o, const void *arg)
{
	const struct listing *l = arg;
	char cursor[32];

	noh_json_open(o, NULL, '{');
	noh_json_open(o, "actors", '[');
	noh_json_put_raw(o, NULL, l->actors.bytes ? l->actors.bytes : "", l->actors.len);
	noh_json_close(o, ']');
	snprintf(cursor, sizeof cursor, "%c%llu", l->active_only ? 'a' : 's', (unsigned long long)l->cursor);
	if (l->cursor)
		noh_json_put_text(o, "next_cursor", cursor, strlen(cursor));
	else
		noh_json_put_null(o, "next_cursor");
	noh_json_close(o, '}');
}

void rest_list(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct listing l = { .call = c, .node = rest_node(c) };
	char type[TYPE_NAME_MAX + 1];
	int rc;

	if (!may_look(c) || !rest_read(c, q, FORM_LIST, got))
		return;
	l.active_only = got[LIST_ACTIVE].n;
	l.limit = (uint32_t)got[LIST_LIMIT].n;
	if (got[LIST_TYPE].given && !read_type(c, got[LIST_TYPE].value, type))
		return;
	l.type = got[LIST_TYPE].given ? type : NULL;
	if (!read_cursor(c, &got[LIST_CURSOR], &l))
		return;
	rc = l.active_only ? list_active(&l) : call_scan(c, l.type, &l.cursor, l.limit, scan_one, &l);
	if (rc == NOH_OK && (l.actors.failed || l.failed))
		rc = error_set(NOH_ENOMEM, "no memory for a page of %u", l.limit);
	if (rc == NOH_OK)
		rest_reply_json(call_out(c), 200, write_page, &l);
	else
		rest_problem_of(call_out(c), rc);
	out_close(&l.actors);
}
