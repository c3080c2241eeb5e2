/* actors/reconcile_json.c - the messages of a reconciler as JSON: docs/reconcile.md lists them. */
#include "actors/json.h"
#include "actors/reconcile.h"

#define REVISION(need) { .name = "revision", .type = NOH_JSON_INT, .least = 1, .most = INT64_MAX, .required = (need) }
#define REASON { .name = "reason", .type = NOH_JSON_STRING }

enum { NUMBER, VALUE, PAIR };
static const noh_json_field apply_fields[PAIR] = {
	[NUMBER] = REVISION(true),
	[VALUE] = { .name = "spec", .type = NOH_JSON_OBJECT, .required = true },
};
static const noh_json_field observed_fields[PAIR] = {
	[NUMBER] = { .name = "sequence", .type = NOH_JSON_INT, .least = 0, .most = INT64_MAX },
	[VALUE] = { .name = "snapshot", .type = NOH_JSON_OBJECT, .required = true },
};
static const noh_json_field drain_fields[PAIR] = {
	[NUMBER] = { .name = "deadline_ms", .type = NOH_JSON_INT, .least = 0, .most = INT64_C(365) * 24 * 3600 * 1000,
		     .required = true },
	[VALUE] = REASON,
};
static const noh_json_field stop_fields[] = { REASON };
static const noh_json_field wait_fields[] = { REVISION(false) };

/* A number, and behind it bytes that the type makes of an object, or the object as it came. */
static int number_and_value(const noh_reconciler *how, noh_json_message *m, const noh_json_got *got)
{
	uint64_t number = (uint64_t)got[NUMBER].n;
	noh_json value = got[VALUE].value;
	size_t room = m->room - sizeof number, len = value.len;
	uint8_t *to = (uint8_t *)m->body + sizeof number;
	int rc = NOH_OK;

	if (how->from_json)
		rc = how->from_json(how->user, m->kind, value.at, value.len, to, room, &len, m->why);
	else if (len > room)
		rc = NOH_ETOOBIG;
	else
		memcpy(to, value.at, len);
	memcpy(m->body, &number, sizeof number);
	m->len = sizeof number + len;
	return rc;
}

/* As UTF-8, up to as much as is kept of a reason. */
static size_t reason_to(const noh_json_got *got, uint8_t *to)
{
	size_t len = got->given ? noh_json_text(got->value, (char *)to, NOH_RECONCILE_ERROR) : 0;

	return len < NOH_RECONCILE_ERROR ? len : NOH_RECONCILE_ERROR - 1;
}

static int stop(noh_json_message *m, const noh_json_got *got)
{
	m->len = reason_to(&got[0], m->body);
	return NOH_OK;
}

static int drain(noh_json_message *m, const noh_json_got *got)
{
	uint64_t deadline = (uint64_t)got[NUMBER].n;

	memcpy(m->body, &deadline, sizeof deadline);
	m->len = sizeof deadline + reason_to(&got[VALUE], (uint8_t *)m->body + sizeof deadline);
	return NOH_OK;
}

static int wait_for(noh_json_message *m, const noh_json_got *got)
{
	uint64_t revision = (uint64_t)got[0].n;

	return got[0].given ? json_body(m, &revision, sizeof revision) : NOH_OK;
}

static const struct json_form forms[] = {
	{ "tick", NOH_RECONCILE_TICK, NULL, 0, NULL },
	{ "stop", NOH_RECONCILE_STOP, stop_fields, 1, stop },
	{ "drain", NOH_RECONCILE_DRAIN, drain_fields, PAIR, drain },
	{ "retry", NOH_RECONCILE_RETRY, NULL, 0, NULL },
	{ "wait", NOH_RECONCILE_WAIT, wait_fields, 1, wait_for },
	{ "state", NOH_RECONCILE_STATE, NULL, 0, NULL },
};

int reconcile_from_json(void *user, noh_json_message *m)
{
	const noh_reconciler *how = user;
	noh_json_got got[PAIR];
	uint32_t named = m->kind;
	int rc;

	if (named == NOH_RECONCILE_APPLY || named == NOH_RECONCILE_OBSERVED) {
		rc = noh_json_read(m->json, m->json_len, named == NOH_RECONCILE_APPLY ? apply_fields : observed_fields, PAIR, got);
		return rc == NOH_OK ? number_and_value(how, m, got) : rc;
	}
	if (named < NOH_RECONCILE_KINDS || named == UINT32_MAX)
		return json_form_read(forms, sizeof forms / sizeof forms[0], m);
	m->len = m->json_len;                    /* one of its own kinds: the text, as it came */
	if (m->json_len > m->room)
		return NOH_ETOOBIG;
	memcpy(m->body, m->json, m->json_len);
	return NOH_OK;
}

/* ── answers ── */

static void put_name(noh_json_out *o, const char *name, const char *text)
{
	noh_json_put_text(o, name, text, strlen(text));
}

static int answer_to_json(noh_json_reply *r)
{
	static const char *const outcomes[] = { [NOH_RECONCILE_OK] = "ok", [NOH_RECONCILE_STALE] = "stale",
		[NOH_RECONCILE_CONFLICT] = "conflict", [NOH_RECONCILE_NOT_NOW] = "not_now" };
	const noh_reconcile_answer *a = r->body;
	noh_json_out o;

	if (r->len != sizeof *a)
		return NOH_EINVAL;
	o = json_outcome(r, outcomes, sizeof outcomes / sizeof outcomes[0], a->outcome);
	put_name(&o, "phase", noh_phase_name((noh_phase)a->phase));
	noh_json_put_uint(&o, "revision", a->revision);
	noh_json_put_uint(&o, "applied", a->applied);
	return json_end(r, &o);
}

static int state_to_json(const noh_reconciler *how, noh_json_reply *r)
{
	static const char *const goals[] = { "run", "drain", "stop" };
	const noh_reconcile_state *s = r->body;
	noh_json_out o = { .at = r->json, .room = r->room };

	if (r->len != sizeof *s)
		return NOH_EINVAL;
	noh_json_open(&o, NULL, '{');
	put_name(&o, "phase", noh_phase_name((noh_phase)s->phase));
	put_name(&o, "goal", s->goal < 3 ? goals[s->goal] : "unknown");
	noh_json_put_uint(&o, "revision", s->revision);
	noh_json_put_uint(&o, "applied", s->applied);
	noh_json_put_uint(&o, "passes", s->passes);
	noh_json_put_uint(&o, "actions", s->actions);
	noh_json_put_uint(&o, "failed", s->failed);
	noh_json_put_uint(&o, "failures", s->failures);
	if (s->action < how->action_count && how->action_names && how->action_names[s->action])
		put_name(&o, "action", how->action_names[s->action]);
	if (s->next_ms)
		noh_json_put_time(&o, "next", (int64_t)s->next_ms);
	if (s->error[0])
		put_name(&o, "error", s->error);
	return json_end(r, &o);
}

int reconcile_to_json(void *user, noh_json_reply *r)
{
	if (r->status != NOH_OK || r->kind >= NOH_RECONCILE_KINDS)
		return NOH_EINVAL;               /* a sentence, or the type's own */
	if (r->kind == NOH_RECONCILE_STATE || r->kind == NOH_RECONCILE_WAIT)
		return state_to_json(user, r);
	return answer_to_json(r);
}
