/* net/rest_send.c - /actor/send and /actor/invoke: a JSON message for an actor; its answer, as JSON. */
#include "net/rest.h"

#include "core/error.h"
#include "core/mem.h"
#include "net/net.h"
#include "noh_actors.h"

#include <string.h>

#define LATER "later:"
enum { LATER_LEN = sizeof LATER - 1 };
_Static_assert(NOH_LATER_ADDRESS + LATER_LEN <= ADDRESS_MAX, "the keeper's address has room");

/* ── responses ── */

struct answered {
	const noh_type          *type;
	uint32_t                 kind;
	const struct reply_part *part;
};

static void write_answer(noh_json_out *o, const void *arg)
{
	const struct answered *a = arg;

	noh_json_open(o, NULL, '{');
	codec_put_answer(o, "response", a->type, a->kind, a->part);
	noh_json_close(o, '}');
}

static void write_refusal(noh_json_out *o, const void *arg)
{
	const struct answered *a = arg;

	codec_put_answer(o, "response", a->type, a->kind, a->part);
}

static void format_invoked(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	struct answered a = { (const noh_type *)(uintptr_t)tag.a, (uint32_t)tag.b, parts };

	(void)n;
	if (parts->status == NOH_OK)
		rest_reply_json(o, 200, write_answer, &a);
	else
		rest_problem(o, parts, parts->status == NOH_REFUSED ? write_refusal : NULL, &a);
}

static void write_accepted(noh_json_out *o, const void *arg)
{
	noh_json_open(o, NULL, '{');
	noh_json_put_bool(o, "accepted", true);
	noh_json_put_text(o, "actor_node", arg, strlen(arg));
	noh_json_close(o, '}');
}

static void write_not_accepted(noh_json_out *o, const void *arg)
{
	noh_json_put_bool(o, "accepted", false);
	noh_json_put_text(o, "actor_node", arg, strlen(arg));
}

/* A refusal is the actor's answer, and nobody asked for one: it was accepted. */
static void format_sent(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const char *node = (const char *)(uintptr_t)tag.a;

	(void)n;
	if (parts->status == NOH_OK || parts->status == NOH_REFUSED)
		rest_reply_json(o, 202, write_accepted, node);
	else
		rest_problem(o, parts, write_not_accepted, node);
}

/* "later" is what it can be taken back with: the keeper's answer, as its type writes it. */
struct delayed {
	const char              *node;
	const struct reply_part *part;
};

static void write_delayed(noh_json_out *o, const void *arg)
{
	const struct delayed *d = arg;

	noh_json_open(o, NULL, '{');
	noh_json_put_bool(o, "accepted", true);
	noh_json_put_text(o, "actor_node", d->node, strlen(d->node));
	if (d->part->len)
		codec_put_answer(o, "later", noh_later_type(), NOH_LATER_SEND, d->part);
	noh_json_close(o, '}');
}

/* The keeper's refusal is one: it was not taken. */
static void format_delayed(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	struct delayed d = { (const char *)(uintptr_t)tag.a, parts };
	struct reply_part full = { .status = NOH_FULL, .len = parts->len, .body = parts->body };

	if (parts->status == NOH_OK)
		rest_reply_json(o, 202, write_delayed, &d);
	else
		format_sent(o, parts->status == NOH_REFUSED ? &full : parts, n, tag);
}

/* ── requests ── */

/* To the actor that keeps it until then: noh_actors.h, later. */
static int delay(struct request *r, struct rest_actor *actor, struct codec_message *m, uint64_t delay_ms)
{
	noh_later_send head = { .delay_ms = delay_ms, .kind = m->kind };
	size_t len = sizeof head + m->len;
	char *body;

	if (actor->len > NOH_LATER_ADDRESS)
		return error_set(NOH_EADDRESS, "with \"delay_ms\" an address is at most %d bytes", NOH_LATER_ADDRESS);
	body = mem_alloc(len);
	if (!body)
		return error_set(NOH_ENOMEM, "no memory for a message of %zu bytes", len);
	memcpy(body, &head, sizeof head);
	if (m->len)
		memcpy(body + sizeof head, m->body, m->len);
	codec_free(m);
	m->big = body;
	m->big_len = len;
	memmove(actor->address + LATER_LEN, actor->address, actor->len + 1);
	memcpy(actor->address, LATER, LATER_LEN);
	actor->len += LATER_LEN;
	r->op = REQUEST_CALL;                    /* its answer is what it can be taken back with */
	r->id_len = actor->len;
	r->kind = NOH_LATER_SEND;
	r->body = body;
	r->len = (uint32_t)len;
	return NOH_OK;
}

static int read_message(struct call *c, const noh_type *type, const noh_json_got *got, struct codec_message *m)
{
	char name[256];
	size_t len = noh_json_text(got[SEND_TYPE].value, name, sizeof name);

	m->kind = 0;
	m->body = m->big = NULL;
	m->len = 0;
	if (len >= sizeof name || strlen(name) != len)
		return error_set(NOH_EKIND, "type %s has no such message", type->name);
	return codec_message(call_box(c), type, name, got[SEND_MESSAGE].value, net_options(c->net)->max_arg_bytes, m);
}

/* One with this key is under way. */
static bool is_running(struct call *c, struct request *r)
{
	if (!r->key || running_begin(&c->net->server->running, r->id, r->id_len, r->key, r->key_len, &r->running))
		return false;
	http_problem(call_out(c), 409, "idempotency_running", "Retry-After: 1\r\n", "a request with this Idempotency-Key is "
		     "still running; try again when it is over, and its response will be replayed");
	return true;
}

static void ask(struct call *c, const struct http_request *q, enum rest_form_id form, format_fn *format)
{
	bool invoke = form == FORM_INVOKE;
	noh_json_got got[REST_FIELDS_MAX];
	struct rest_actor actor;
	struct codec_message m;
	struct arg key;
	int rc;

	if (!rest_read(c, q, form, got) || !rest_key(c, q, &key) || !rest_actor(c, got[SEND_ADDRESS].value, &actor))
		return;
	rc = read_message(c, actor.type, got, &m);
	struct request r = { .op = invoke ? REQUEST_CALL : REQUEST_SEND, .type = TYPE_IN_ADDRESS, .id = actor.address,
			     .id_len = actor.len, .kind = m.kind, .body = m.body, .len = m.len,
			     .key = key.len ? key.at : NULL, .key_len = key.len,
			     .timeout_ms = invoke ? (uint32_t)got[INVOKE_TIMEOUT].n : 0 };
	struct tag tag = { (uint64_t)(uintptr_t)actor.type, m.kind };
	const struct trace_text trace = { q->traceparent, q->tracestate };

	if (q->traceparent.len)
		r.trace = &trace;

	if (!invoke)
		tag.a = (uint64_t)(uintptr_t)rest_node(c);
	if (rc == NOH_OK && !invoke && got[SEND_DELAY].n) {
		rc = delay(&r, &actor, &m, (uint64_t)got[SEND_DELAY].n);
		format = format_delayed;
	}
	if (rc != NOH_OK)
		rest_problem_of(call_out(c), rc);
	else if (!is_running(c, &r))
		call_actors(c, &r, 1, format, tag);
	codec_free(&m);
}

void rest_send(struct call *c, const struct http_request *q)
{
	ask(c, q, FORM_SEND, format_sent);
}

void rest_invoke(struct call *c, const struct http_request *q)
{
	ask(c, q, FORM_INVOKE, format_invoked);
}
