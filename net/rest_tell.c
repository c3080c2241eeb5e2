/* net/rest_tell.c - how actors are and who belongs to whom, over HTTP: net/tell.h as JSON. */
#include "core/error.h"
#include "net/net.h"
#include "net/rest.h"
#include "net/tell.h"

#include <string.h>

static void format(struct out *o, const struct reply_part *part, uint32_t n, struct tag tag)
{
	(void)n, (void)tag;
	if (part->status == NOH_OK)
		http_reply(o, 200, "application/json", "", part->body, part->len);
	else if (part->status == NOH_END)
		http_problem(o, 404, "nothing_to_resume", "", "there is nothing to resume: it is healthy, or nothing is known of it");
	else
		rest_problem(o, part, NULL, NULL);
}

/* What this connection did before is to be seen. */
static bool may_look(struct call *c)
{
	c->later = !call_alone(c);
	return !c->later;
}

static void ask(struct call *c, errand_fn *run, const struct tell_wish *w)
{
	call_errand(c, run, w, sizeof *w, 2 * TELL_MS, format, (struct tag){ 0, 0 });
}

void rest_describe(struct call *c, const struct http_request *q)
{
	struct query_got got[QUERY_FIELDS_MAX];
	struct tell_wish w = { .proto = 0 };

	if (!may_look(c) || !rest_query(c, q, QUERY_DESCRIBE, got) || !rest_query_actor(c, &got[DESCRIBE_ADDRESS], w.whom))
		return;
	w.limit = (uint32_t)got[DESCRIBE_EVENTS].n;
	ask(c, tell_actor, &w);
}

void rest_tree(struct call *c, const struct http_request *q)
{
	struct query_got got[QUERY_FIELDS_MAX];
	struct tell_wish w = { .proto = 0 };

	if (!may_look(c) || !rest_query(c, q, QUERY_TREE, got))
		return;
	if (got[TREE_ROOT].given && !rest_query_actor(c, &got[TREE_ROOT], w.whom))
		return;
	w.limit = (uint32_t)got[TREE_LIMIT].n;
	ask(c, tell_tree, &w);
}

/* A type's name, or an address if it has a colon. False: the problem is written. */
static bool take_whom(struct call *c, noh_json value, char whom[ADDRESS_MAX + 1])
{
	struct rest_actor actor;
	size_t len = noh_json_text(value, whom, ADDRESS_MAX + 1);

	if (len <= ADDRESS_MAX && strlen(whom) == len && !strpbrk(whom, ":/")) {
		if (noh_find_type(call_box(c), whom))
			return true;
		rest_problem_of(call_out(c), error_set(NOH_ENOTYPE, "no type \"%.63s\" is registered, and an address has a colon", whom));
		return false;
	}
	if (!rest_actor(c, value, &actor))
		return false;
	memcpy(whom, actor.address, actor.len + 1);
	return true;
}

void rest_quarantine_list(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct tell_wish w = { .proto = 0 };

	if (!may_look(c) || !rest_read(c, q, FORM_QUARANTINE_LIST, got))
		return;
	if (got[QUARANTINE_TYPE].given && !take_whom(c, got[QUARANTINE_TYPE].value, w.whom))
		return;
	w.limit = (uint32_t)got[QUARANTINE_LIMIT].n;
	ask(c, tell_quarantine, &w);
}

void rest_quarantine_resume(struct call *c, const struct http_request *q)
{
	noh_json_got got[REST_FIELDS_MAX];
	struct tell_wish w = { .proto = 0 };

	if (!may_look(c) || !rest_read(c, q, FORM_QUARANTINE_RESUME, got))
		return;
	if (got[RESUME_WHOM].given == got[RESUME_ADDRESS].given) {
		http_problem(call_out(c), 422, "invalid", "", "whom? \"actor\" is an address, or the name of a type; \"actor_address\" is the "
			     "same: give one of them");
		return;
	}
	if (!take_whom(c, got[got[RESUME_WHOM].given ? RESUME_WHOM : RESUME_ADDRESS].value, w.whom))
		return;
	call_audit(c, "quarantine resume", w.whom, NULL);
	ask(c, tell_resume, &w);
}
