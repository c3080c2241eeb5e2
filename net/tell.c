/* net/tell.c - see tell.h. */
#include "net/tell.h"

#include "core/mem.h"
#include "net/event_text.h"
#include "net/rest.h"

#include <string.h>

const char *tell_state_of(noh_health health, noh_life life)
{
	if (health != NOH_HEALTHY)
		return noh_health_name(health);
	return life == NOH_NOT_ACTIVE ? "inactive" : noh_life_name(life);
}

static const char *state_of(const noh_vitals *v)
{
	return tell_state_of(v->health, v->life);
}

/* ── writing ── */

/* What went wrong, in words, is the errand's answer then. */
static int failed(struct out *o, int rc)
{
	o->len = 0;
	if (rc != NOH_END)
		out_bytes(o, noh_why(), strlen(noh_why()));
	return rc;
}

typedef void put_fn(noh_json_out *o, const void *what);

/* Counted, then written behind what is there. */
static void put_json(struct out *o, put_fn *put, const void *what, bool comma)
{
	noh_json_out counted = { .comma = comma }, all;

	put(&counted, what);
	if (!out_room(o, counted.len))
		return;
	all = (noh_json_out){ .at = o->bytes + o->len, .room = counted.len, .comma = comma };
	put(&all, what);
	o->len += all.len;
}

static void put_raw(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

/* ── one actor ── */

struct actor {
	const char *address;
	noh_status  status;
	noh_vitals  vitals;
	uint64_t    newest;                /* event, before anything else was looked at */
	uint8_t     proto;
	struct out  events;
	uint32_t    count;
};

static void put_event(noh_json_out *o, const void *event)
{
	event_put_json(o, NULL, event);
}

static int add_event(void *user, const noh_event *e)
{
	struct actor *a = user;

	if (a->proto)
		event_put_resp(&a->events, e);
	else
		put_json(&a->events, put_event, e, a->count > 0);
	a->count++;
	return a->events.failed;
}

static int look(noh_box *box, const struct tell_wish *w, struct actor *a)
{
	int rc = noh_events_bounds(box, NULL, &a->newest);

	if (rc == NOH_OK)
		rc = noh_get_vitals(box, w->whom, &a->vitals);
	if (rc == NOH_OK)
		rc = noh_get_status(box, w->whom, &a->status);
	if (rc == NOH_OK && w->limit)
		rc = noh_events_last(box, w->whom, w->limit, add_event, a);
	if (rc == NOH_END || rc == NOH_ETOOOLD)  /* none of it, or none any more: the rest is worth telling */
		rc = NOH_OK;
	return rc == NOH_OK ? noh_sync(box, TELL_MS) : rc;
}

static void put_actor(noh_json_out *o, const void *what)
{
	const struct actor *a = what;
	const noh_vitals *v = &a->vitals;
	bool active = a->status.life != NOH_NOT_ACTIVE;

	noh_json_open(o, NULL, '{');
	rest_put_text(o, "actor_address", a->address);
	rest_put_text(o, "state", state_of(v));
	rest_put_text(o, "health", noh_health_name(v->health));
	noh_json_put_bool(o, "is_active", active);
	noh_json_put_bool(o, "exists", a->status.exists);
	noh_json_put_uint(o, "desired_revision", v->desired);
	noh_json_put_uint(o, "observed_revision", v->observed);
	rest_put_text(o, "reconcile_error", v->error);
	noh_json_put_uint(o, "restarts", v->restarts);
	rest_put_text(o, "last_failure", v->reason);
	rest_put_when(o, "last_failure_at", v->failed_ms);
	rest_put_when(o, "retry_at", v->until_ms);
	noh_json_put_uint(o, "mailbox_size", a->status.mailbox_size);
	rest_put_text(o, "parent", v->parent);
	noh_json_put_uint(o, "children", v->children);
	rest_put_when(o, "activated_at", active ? a->status.activated_ms : 0);
	rest_put_when(o, "last_message_at", active ? a->status.last_ms : 0);
	noh_json_put_uint(o, "cursor", a->newest);
	noh_json_open(o, "events", '[');
	noh_json_put_raw(o, NULL, a->events.bytes ? a->events.bytes : "", a->events.len);
	noh_json_close(o, ']');
	noh_json_close(o, '}');
}

static void put_actor_resp(struct out *o, const struct actor *a)
{
	const noh_vitals *v = &a->vitals;
	const struct { const char *name; uint64_t n; } numbers[] = {
		{ "desired_revision", v->desired }, { "observed_revision", v->observed }, { "restarts", v->restarts },
		{ "last_failure_ms", v->failed_ms }, { "retry_ms", v->until_ms }, { "mailbox_size", a->status.mailbox_size },
		{ "children", v->children }, { "cursor", a->newest } };
	const struct { const char *name, *text; } texts[] = {
		{ "actor_address", a->address }, { "state", state_of(v) }, { "health", noh_health_name(v->health) },
		{ "reconcile_error", v->error }, { "last_failure", v->reason }, { "parent", v->parent } };
	enum { NUMBERS = sizeof numbers / sizeof numbers[0], TEXTS = sizeof texts / sizeof texts[0] };

	out_map(o, TEXTS + NUMBERS + 3);
	for (uint32_t i = 0; i < TEXTS; i++)
		out_text(o, texts[i].name), out_text(o, texts[i].text);
	out_text(o, "is_active"), out_bool(o, a->status.life != NOH_NOT_ACTIVE);
	out_text(o, "exists"), out_bool(o, a->status.exists);
	for (uint32_t i = 0; i < NUMBERS; i++)
		out_text(o, numbers[i].name), out_int(o, (int64_t)numbers[i].n);
	out_text(o, "events"), out_array(o, a->count);
	out_bytes(o, a->events.bytes, a->events.len);
}

int tell_actor(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct tell_wish *w = args;
	struct actor a = { .address = w->whom, .proto = w->proto, .events.proto = w->proto };
	int rc = look(box, w, &a);

	(void)len;
	o->proto = w->proto;
	if (rc == NOH_OK && w->proto)
		put_actor_resp(o, &a);
	else if (rc == NOH_OK)
		put_json(o, put_actor, &a, false), put_raw(o, "\n");
	o->failed |= a.events.failed;
	out_close(&a.events);
	return rc == NOH_OK ? rc : failed(o, rc);
}

/* ── many ── */

struct page {
	struct out *o;
	uint8_t     proto;
	uint32_t    limit, count;
	bool        more;
};

struct entry {
	const char       *address;
	const noh_vitals *vitals;
	int               depth;           /* -1: not in a tree */
	bool              last;
};

static void put_entry(noh_json_out *o, const void *what)
{
	const struct entry *e = what;

	noh_json_open(o, NULL, '{');
	rest_put_text(o, "actor_address", e->address);
	if (e->depth >= 0) {
		noh_json_put_uint(o, "depth", (uint64_t)e->depth);
		noh_json_put_bool(o, "last", e->last);
	}
	rest_put_text(o, "state", state_of(e->vitals));
	noh_json_put_uint(o, "restarts", e->vitals->restarts);
	rest_put_text(o, "last_failure", e->vitals->reason);
	rest_put_when(o, "last_failure_at", e->vitals->failed_ms);
	rest_put_when(o, "retry_at", e->vitals->until_ms);
	if (e->depth < 0)
		rest_put_text(o, "parent", e->vitals->parent);
	noh_json_close(o, '}');
}

static int add(struct page *p, const struct entry *e)
{
	p->more = p->count == p->limit;
	if (p->more)
		return 1;
	if (p->proto) {
		out_array(p->o, 5);
		out_int(p->o, e->depth < 0 ? 0 : e->depth);
		out_text(p->o, e->address);
		out_text(p->o, state_of(e->vitals));
		out_int(p->o, (int64_t)e->vitals->restarts);
		out_text(p->o, e->vitals->reason);
	} else {
		put_json(p->o, put_entry, e, p->count > 0);
	}
	p->count++;
	return p->o->failed;
}

/* The entries are there: what goes around them. */
static void wrap(struct out *o, const struct page *p, const char *name)
{
	struct out *entries = p->o;

	if (p->proto) {
		out_array(o, p->count);
		out_bytes(o, entries->bytes, entries->len);
		return;
	}
	put_raw(o, "{\"");
	put_raw(o, name);
	put_raw(o, "\":[");
	out_bytes(o, entries->bytes, entries->len);
	put_raw(o, p->more ? "],\"complete\":false}\n" : "],\"complete\":true}\n");
}

static int add_node(void *user, const noh_tree_node *n)
{
	return add(user, &(struct entry){ .address = n->address, .vitals = n->vitals, .depth = (int)n->depth, .last = n->last });
}

static int add_unwell(void *user, const char *address, const noh_vitals *vitals)
{
	return add(user, &(struct entry){ .address = address, .vitals = vitals, .depth = -1 });
}

static int tell_many(noh_box *box, const struct tell_wish *w, struct out *o, bool tree)
{
	struct out entries = { .proto = w->proto };
	struct page p = { .o = &entries, .proto = w->proto, .limit = w->limit };
	const char *whom = *w->whom ? w->whom : NULL;
	int rc = tree ? noh_tree(box, whom, add_node, &p) : noh_quarantine_list(box, whom, TELL_MS, add_unwell, &p);

	o->proto = w->proto;
	if (rc == NOH_ETIMEOUT && !tree)         /* what is there is told */
		p.more = true, rc = NOH_OK;
	if (rc == NOH_OK)
		rc = noh_sync(box, TELL_MS);
	if (rc == NOH_OK)
		wrap(o, &p, tree ? "actors" : "quarantined");
	o->failed |= entries.failed;
	out_close(&entries);
	return rc == NOH_OK ? rc : failed(o, rc);
}

int tell_tree(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	(void)len;
	return tell_many(box, args, o, true);
}

int tell_quarantine(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	(void)len;
	return tell_many(box, args, o, false);
}

static void put_resumed(noh_json_out *o, const void *whom)
{
	noh_json_open(o, NULL, '{');
	rest_put_text(o, "resumed", whom);
	noh_json_close(o, '}');
}

int tell_resume(noh_box *box, const void *args, uint32_t len, struct out *o)
{
	const struct tell_wish *w = args;
	int rc = noh_resume(box, w->whom, TELL_MS);

	(void)len;
	if (rc != NOH_OK)
		return failed(o, rc);
	if (!w->proto)
		put_json(o, put_resumed, w->whom, false), put_raw(o, "\n");
	return rc;
}
