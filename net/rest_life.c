/* net/rest_life.c - /actor/activate and /actor/deactivate. */
#include "net/rest.h"

#include "core/life_report.h"
#include "net/net.h"

#include <string.h>

struct told {
	const char        *address, *node;
	struct life_report report;
	bool               was_active;
};

/* tag.a: the address, tag.b: the node's id. */
static struct told told_of(const struct reply_part *part, struct tag tag)
{
	struct told t = { (const char *)(uintptr_t)tag.a, (const char *)(uintptr_t)tag.b, { 0 }, true };

	if (part->status == NOH_OK && part->len == sizeof t.report)
		memcpy(&t.report, part->body, sizeof t.report);
	return t;
}

static void write_activated(noh_json_out *o, const void *arg)
{
	const struct told *t = arg;

	noh_json_open(o, NULL, '{');
	noh_json_put_text(o, "actor_address", t->address, strlen(t->address));
	noh_json_put_text(o, "node_id", t->node, strlen(t->node));
	noh_json_put_bool(o, "already_active", !t->report.came);
	if (t->report.since_ms)
		noh_json_put_time(o, "activated_at", (int64_t)t->report.since_ms);
	else
		noh_json_put_null(o, "activated_at");
	noh_json_close(o, '}');
}

static void format_activated(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	struct told t = told_of(parts, tag);

	(void)n;
	if (parts->status == NOH_OK)
		rest_reply_json(o, 200, write_activated, &t);
	else
		rest_problem(o, parts, NULL, NULL);
}

static void write_deactivated(noh_json_out *o, const void *arg)
{
	const struct told *t = arg;

	noh_json_open(o, NULL, '{');
	noh_json_put_text(o, "actor_address", t->address, strlen(t->address));
	noh_json_put_bool(o, "was_active", t->was_active);
	noh_json_put_uint(o, "messages_drained", t->report.drained);
	noh_json_close(o, '}');
}

/* That it was not there is what was wanted. */
static void format_deactivated(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	struct told t = told_of(parts, tag);

	(void)n;
	t.was_active = parts->status == NOH_OK;
	if (parts->status == NOH_OK || parts->status == NOH_ENOACTOR)
		rest_reply_json(o, 200, write_deactivated, &t);
	else
		rest_problem(o, parts, NULL, NULL);
}

static void ask(struct call *c, const struct rest_actor *actor, enum request_op op, format_fn *format)
{
	struct request r = { .op = op, .type = TYPE_IN_ADDRESS, .id = actor->address, .id_len = actor->len,
			     .note = actor->address, .note_len = actor->len + 1 };

	call_actors(c, &r, 1, format, (struct tag){ 0, (uint64_t)(uintptr_t)rest_node(c) });
}

void rest_activate(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct rest_actor actor;

	if (!rest_read(c, q, FORM_ACTIVATE, got) || !rest_actor(c, got[LIFE_ADDRESS].value, &actor))
		return;
	call_audit(c, "activate", actor.address, NULL);
	ask(c, &actor, REQUEST_ACTIVATE, format_activated);
}

void rest_deactivate(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct rest_actor actor;

	if (!rest_read(c, q, FORM_DEACTIVATE, got) || !rest_actor(c, got[LIFE_ADDRESS].value, &actor))
		return;
	call_audit(c, got[LIFE_FORCE].n ? "deactivate by force" : "deactivate", actor.address, NULL);
	ask(c, &actor, got[LIFE_FORCE].n ? REQUEST_DEACTIVATE_FORCE : REQUEST_DEACTIVATE, format_deactivated);
}
