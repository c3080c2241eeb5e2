/* net/rest_drain.c - /admin/drain: the server finishes what it has, and ends; and how far it is. */
#include "net/net.h"
#include "net/rest.h"

struct told {
	noh_drain_state state;
	bool            drained;
};

static void write_state(noh_json_out *o, const void *arg)
{
	const struct told *t = arg;

	noh_json_open(o, NULL, '{');
	noh_json_put_bool(o, "draining", t->state.draining);
	noh_json_put_bool(o, "drained", t->drained);
	noh_json_put_uint(o, "actors", t->state.actors);
	noh_json_put_uint(o, "messages", t->state.messages);
	noh_json_put_uint(o, "left_ms", t->state.left_ms);
	noh_json_close(o, '}');
}

static void format(struct out *o, const struct reply_part *part, uint32_t n, struct tag tag)
{
	const struct told t = { .state = { .draining = true }, .drained = true };

	(void)n, (void)tag;
	if (part->status == NOH_OK)
		rest_reply_json(o, 200, write_state, &t);
	else if (part->status == NOH_REFUSED)
		http_problem(o, 504, "not_drained", "", "%.*s", (int)part->len, (const char *)part->body);
	else
		rest_problem(o, part, NULL, NULL);
}

/* deadline_ms: of one that begins in a moment; 0: nobody asked for one. */
static void tell_state(struct call *c, int status, uint32_t deadline_ms)
{
	struct told t = { .drained = false };
	int rc = noh_get_drain(call_box(c), &t.state);

	t.drained = t.state.draining && t.state.actors == 0;
	if (deadline_ms && !t.state.draining) {
		t.state.draining = true;
		t.state.left_ms = deadline_ms;
	}
	if (rc == NOH_OK)
		rest_reply_json(call_out(c), status, write_state, &t);
	else
		rest_problem_of(call_out(c), rc);
}

void rest_drain(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];

	if (!rest_read(c, q, FORM_DRAIN, got))
		return;
	call_audit(c, "drain", NULL, NULL);
	if (!net_options(c->net)->may_shutdown ||
	    !call_drain(c, (uint32_t)got[DRAIN_DEADLINE].n, got[DRAIN_WAIT].n ? format : NULL, (struct tag){ 0, 0 }))
		http_problem(call_out(c), 403, "not_allowed", "", "this server does not end by request; send it SIGTERM");
	else if (!got[DRAIN_WAIT].n)
		tell_state(c, 202, (uint32_t)got[DRAIN_DEADLINE].n);
}

void rest_drain_status(struct call *c, const struct http_request *q)
{
	if (rest_read(c, q, FORM_DRAIN_STATUS, NULL))
		tell_state(c, 200, 0);
}
