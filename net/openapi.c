/* net/openapi.c - /openapi.json: what this server answers to, as OpenAPI 3.0.
 *
 * Paths, methods and roles come from the table of routes, requests from that of the forms, problems from that of
 * statuses: what is served and what is told are the same. Only the responses' shapes are written down here, beside each
 * other, as they are in rest_*.c.
 */
#include "net/rest.h"

#include "core/mem.h"
#include "net/session.h"
#include "net/status.h"

#include <stdio.h>
#include <string.h>

/* ── words ── */

static void text(noh_json_out *o, const char *name, const char *value)
{
	noh_json_put_text(o, name, value, strlen(value));
}

static void open(noh_json_out *o, const char *name)
{
	noh_json_open(o, name, '{');
}

static void close(noh_json_out *o)
{
	noh_json_close(o, '}');
}

static void reference(noh_json_out *o, const char *kind, const char *name)
{
	char at[96];

	snprintf(at, sizeof at, "#/components/%s/%s", kind, name);
	text(o, "$ref", at);
}

static const char *role_name(int role)
{
	return role == NOH_ADMIN ? "admin" : role == NOH_DEVELOPER ? "developer" : "user";
}

/* ── requests ── */

/* preset: what it is if it is not given counts as any other value would. */
static void put_schema(noh_json_out *o, const noh_json_field *f, bool preset)
{
	switch (f->type) {
	case NOH_JSON_INT:
		text(o, "type", "integer");
		text(o, "format", "int64");
		noh_json_put_int(o, "minimum", f->least);
		noh_json_put_int(o, "maximum", f->most);
		if (preset || f->preset)
			noh_json_put_int(o, "default", f->preset);
		break;
	case NOH_JSON_BOOL:
		text(o, "type", "boolean");
		noh_json_put_bool(o, "default", f->preset);
		break;
	case NOH_JSON_OBJECT:
		text(o, "type", "object");
		noh_json_put_bool(o, "additionalProperties", true);
		break;
	case NOH_JSON_TIME:
		text(o, "type", "string");
		break;
	default:
		text(o, "type", "string");
		noh_json_put_int(o, "minLength", f->least);
		noh_json_put_int(o, "maxLength", f->most);
	}
}

static void put_text(noh_json_out *o, const struct rest_field_text *t)
{
	text(o, "description", t->text);
	if (t->example)
		noh_json_put_raw(o, "example", t->example, strlen(t->example));
}

static void put_field(noh_json_out *o, const noh_json_field *f, const struct rest_field_text *t)
{
	open(o, f->name);
	put_schema(o, f, true);
	put_text(o, t);
	close(o);
}

static void put_parameters(noh_json_out *o, const struct rest_query *q)
{
	noh_json_open(o, "parameters", '[');
	for (uint32_t i = 0; i < q->count; i++) {
		open(o, NULL);
		text(o, "name", q->fields[i].name);
		text(o, "in", "query");
		noh_json_put_bool(o, "required", q->fields[i].required);
		put_text(o, &q->texts[i]);
		open(o, "schema");
		put_schema(o, &q->fields[i], false);
		close(o);
		close(o);
	}
	noh_json_close(o, ']');
}

static void put_request_schema(noh_json_out *o, const struct rest_form *f)
{
	bool required = false;

	open(o, f->schema);
	text(o, "type", "object");
	noh_json_put_bool(o, "additionalProperties", false);
	open(o, "properties");
	for (uint32_t i = 0; i < f->count; i++) {
		put_field(o, &f->fields[i], &f->texts[i]);
		required |= f->fields[i].required;
	}
	close(o);
	if (required) {
		noh_json_open(o, "required", '[');
		for (uint32_t i = 0; i < f->count; i++)
			if (f->fields[i].required)
				text(o, NULL, f->fields[i].name);
		noh_json_close(o, ']');
	}
	close(o);
}

/* ── responses ── */

struct shape { const char *name, *json; };

#define STRING "{\"type\":\"string\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define COUNT "{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0}"
#define ADDRESS "{\"type\":\"string\",\"description\":\"Actor address in format {type}:{id}\"," \
	"\"example\":\"npc-brain:character-abc123\"}"
#define TIME(text) "{\"type\":\"string\",\"format\":\"date-time\",\"description\":\"" text "\"}"
#define TIME_OR_NULL(text) "{\"type\":\"string\",\"format\":\"date-time\",\"nullable\":true,\"description\":\"" text "\"}"
#define HEALTH "{\"type\":\"string\",\"enum\":[\"healthy\",\"degraded\",\"unavailable\"]}"

#define PAGE_END "\"next_cursor\":{\"type\":\"string\",\"nullable\":true,\"description\":\"For the next page; null: this was the " \
	"last\"},\"complete\":{\"type\":\"boolean\",\"description\":\"false: what happened in the last seconds may be missing\"}"

#define TEXT_OR_NULL(text) "{\"type\":\"string\",\"nullable\":true,\"description\":\"" text "\"}"
#define STATE "{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"activating\",\"deactivating\",\"down\",\"degraded\"," \
	"\"stopped\",\"quarantined\",\"awaiting\"]}"
#define UNWELL "\"state\":" STATE ",\"restarts\":" COUNT ",\"last_failure\":" TEXT_OR_NULL("Why it failed last") \
	",\"last_failure_at\":" TIME_OR_NULL("When that was") ",\"retry_at\":" TIME_OR_NULL("When it is tried again")

static const struct shape shapes[] = {
	{ "SendToActorResponse",
	  "{\"type\":\"object\",\"required\":[\"accepted\",\"actor_node\"],\"properties\":{\"accepted\":" BOOLEAN
	  ",\"actor_node\":{\"type\":\"string\",\"description\":\"Node handling this actor\"},\"later\":{\"type\":\"object\",\"description\":"
	  "\"With delay_ms: when it arrives, and the id it can be taken back with (message cancel of later:ADDRESS)\",\"required\":"
	  "[\"id\",\"due_at\"],\"properties\":{\"id\":" STRING ",\"due_at\":" TIME("When it is sent") "}}}}" },
	{ "InvokeActorResponse",
	  "{\"type\":\"object\",\"required\":[\"response\"],\"properties\":{\"response\":{\"type\":\"object\","
	  "\"additionalProperties\":true,\"description\":\"Actor's response payload\"}}}" },
	{ "ActivateActorResponse",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"node_id\",\"already_active\",\"activated_at\"],\"properties\":{"
	  "\"actor_address\":" ADDRESS ",\"node_id\":" STRING ",\"already_active\":" BOOLEAN
	  ",\"activated_at\":" TIME_OR_NULL("When it was activated; null: not known") "}}" },
	{ "DeactivateActorResponse",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"was_active\",\"messages_drained\"],\"properties\":{"
	  "\"actor_address\":" ADDRESS ",\"was_active\":" BOOLEAN ",\"messages_drained\":" COUNT "}}" },
	{ "ActorStatus",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"is_active\",\"node_id\",\"activated_at\",\"last_message_at\","
	  "\"messages_processed\",\"mailbox_size\"],\"properties\":{\"actor_address\":" ADDRESS ",\"is_active\":" BOOLEAN
	  ",\"node_id\":" STRING ",\"activated_at\":" TIME_OR_NULL("To 100 ms; null: it is not active")
	  ",\"last_message_at\":" TIME_OR_NULL("When it last did something, to 100 ms; null: it is not active")
	  ",\"messages_processed\":{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,\"description\":\"By its turns, since it "
	  "was activated\"},\"mailbox_size\":" COUNT
	  ",\"resting\":{\"type\":\"boolean\",\"description\":\"It handles nothing now: until there is room, an answer, or a token of its "
	  "type's limits\"},\"exists\":{\"type\":\"boolean\",\"description\":\"Something of it is kept\"}," UNWELL "}}" },
	{ "ListActorsResponse",
	  "{\"type\":\"object\",\"required\":[\"actors\",\"next_cursor\"],\"properties\":{\"actors\":{\"type\":\"array\",\"items\":{"
	  "\"$ref\":\"#/components/schemas/ActorStatus\"}},\"next_cursor\":{\"type\":\"string\",\"nullable\":true,\"description\":"
	  "\"For the next page; null: this was the last\"}}}" },
	{ "ActorPoolStatus",
	  "{\"type\":\"object\",\"required\":[\"total_nodes\",\"healthy_nodes\",\"total_actors_active\",\"total_capacity\","
	  "\"utilization_percent\",\"nodes\"],\"properties\":{\"total_nodes\":" COUNT ",\"healthy_nodes\":" COUNT
	  ",\"total_actors_active\":" COUNT ",\"total_capacity\":" COUNT
	  ",\"utilization_percent\":{\"type\":\"number\",\"format\":\"float\",\"minimum\":0,\"maximum\":100},\"nodes\":{\"type\":"
	  "\"array\",\"items\":{\"$ref\":\"#/components/schemas/ActorNodeStatus\"}}}}" },
	{ "ActorNodeStatus",
	  "{\"type\":\"object\",\"required\":[\"node_id\",\"status\",\"actors_active\",\"actors_capacity\",\"last_heartbeat\"],"
	  "\"properties\":{\"node_id\":" STRING ",\"status\":" HEALTH ",\"actors_active\":" COUNT ",\"actors_capacity\":" COUNT
	  ",\"actors_given_up\":{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,\"description\":\"Degraded, stopped, quarantined, or "
	  "awaiting a revision, as far as they were met since the start; the node is degraded while there are any\"}"
	  ",\"last_heartbeat\":" TIME("When it last showed up")
	  ",\"shards\":{\"type\":\"array\",\"description\":\"Its workers\",\"items\":{\"type\":\"object\",\"properties\":{"
	  "\"worker\":" COUNT ",\"status\":" HEALTH ",\"last_heartbeat\":" TIME("When it last showed up") "}}}}}" },
	{ "ListDeadResponse",
	  "{\"type\":\"object\",\"required\":[\"dead\",\"next_cursor\",\"complete\"],\"properties\":{\"dead\":{\"type\":\"array\",\"items\":{"
	  "\"$ref\":\"#/components/schemas/DeadMessage\"}}," PAGE_END "}}" },
	{ "DeadMessage",
	  "{\"type\":\"object\",\"required\":[\"id\",\"at\",\"actor_address\",\"message_type\",\"kind\",\"reason\",\"size\"],"
	  "\"properties\":{\"id\":" STRING ",\"at\":" TIME("When it was set aside") ",\"actor_address\":" ADDRESS
	  ",\"message_type\":" STRING ",\"kind\":" COUNT ",\"reason\":" STRING ",\"size\":" COUNT ",\"body_base64\":" STRING "}}" },
	{ "RedriveDeadResponse",
	  "{\"type\":\"object\",\"required\":[\"id\",\"redriven\"],\"properties\":{\"id\":" STRING ",\"redriven\":" BOOLEAN "}}" },
	{ "PurgeDeadResponse",
	  "{\"type\":\"object\",\"required\":[\"id\",\"purged\"],\"properties\":{\"id\":" STRING ",\"purged\":" BOOLEAN "}}" },
	{ "ListSchedulesResponse",
	  "{\"type\":\"object\",\"required\":[\"timers\",\"next_cursor\",\"complete\"],\"properties\":{\"timers\":{\"type\":\"array\","
	  "\"items\":{\"type\":\"object\",\"required\":[\"actor_address\",\"message_type\",\"kind\",\"due_at\",\"period_ms\"],"
	  "\"properties\":{\"actor_address\":" ADDRESS ",\"message_type\":" STRING ",\"kind\":" COUNT
	  ",\"due_at\":" TIME("When it fires next") ",\"period_ms\":" COUNT "}}}," PAGE_END "}}" },
	{ "CancelScheduleResponse",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"message_type\",\"was_scheduled\"],\"properties\":{\"actor_address\":" ADDRESS
	  ",\"message_type\":" STRING ",\"was_scheduled\":" BOOLEAN "}}" },
	{ "DrainState",
	  "{\"type\":\"object\",\"required\":[\"draining\",\"drained\",\"actors\",\"messages\",\"left_ms\"],\"properties\":{"
	  "\"draining\":" BOOLEAN ",\"drained\":" BOOLEAN ",\"actors\":" COUNT ",\"messages\":" COUNT ",\"left_ms\":" COUNT "}}" },
	{ "Event",
	  "{\"type\":\"object\",\"description\":\"The data of a server-sent event; its id is seq. A stream that is ended says so with an "
	  "event named cut, gone or end: reason, cursor\",\"required\":[\"seq\",\"at\",\"actor\",\"kind\",\"from\",\"to\",\"reason\","
	  "\"revision\",\"by_box\",\"data\"],\"properties\":{\"seq\":" COUNT ",\"at\":" TIME("When it happened")
	  ",\"actor\":" TEXT_OR_NULL("Address; or a type's name; null: the server itself") ",\"kind\":" STRING
	  ",\"from\":" TEXT_OR_NULL("State before") ",\"to\":" TEXT_OR_NULL("State after") ",\"reason\":" TEXT_OR_NULL("For people")
	  ",\"revision\":{\"type\":\"integer\",\"format\":\"int64\",\"nullable\":true},\"by_box\":" BOOLEAN
	  ",\"data\":{\"type\":\"object\",\"nullable\":true,\"additionalProperties\":true}}}" },
	{ "ActorDescription",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"state\",\"health\",\"desired_revision\",\"observed_revision\","
	  "\"reconcile_error\",\"restarts\",\"last_failure\",\"mailbox_size\",\"events\"],\"properties\":{\"actor_address\":" ADDRESS
	  ",\"state\":" STATE ",\"health\":" STRING ",\"is_active\":" BOOLEAN ",\"exists\":" BOOLEAN ",\"desired_revision\":" COUNT
	  ",\"observed_revision\":" COUNT ",\"reconcile_error\":" TEXT_OR_NULL("Of its last try to get there")
	  ",\"restarts\":" COUNT ",\"last_failure\":" TEXT_OR_NULL("Why it failed last")
	  ",\"last_failure_at\":" TIME_OR_NULL("When that was") ",\"retry_at\":" TIME_OR_NULL("Down or degraded: when it is tried again")
	  ",\"mailbox_size\":" COUNT ",\"parent\":" TEXT_OR_NULL("Who supervises it") ",\"children\":" COUNT
	  ",\"activated_at\":" TIME_OR_NULL("To 100 ms; null: it is not active")
	  ",\"last_message_at\":" TIME_OR_NULL("To 100 ms; null: it is not active")
	  ",\"cursor\":{\"type\":\"integer\",\"format\":\"int64\",\"description\":\"What happens after this event may not be in here\"}"
	  ",\"events\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Event\"}}}}" },
	{ "ActorTree",
	  "{\"type\":\"object\",\"required\":[\"actors\",\"complete\"],\"properties\":{\"actors\":{\"type\":\"array\",\"description\":\"Depth "
	  "first, children in the order spawned\",\"items\":{\"type\":\"object\",\"properties\":{\"actor_address\":" ADDRESS ",\"depth\":" COUNT
	  ",\"last\":{\"type\":\"boolean\",\"description\":\"Of its parent's children\"}," UNWELL "}}},\"complete\":" BOOLEAN "}}" },
	{ "ListQuarantineResponse",
	  "{\"type\":\"object\",\"required\":[\"quarantined\",\"complete\"],\"properties\":{\"quarantined\":{\"type\":\"array\",\"items\":{"
	  "\"type\":\"object\",\"properties\":{\"actor_address\":" ADDRESS "," UNWELL ",\"parent\":" TEXT_OR_NULL("Who supervises it")
	  "}}},\"complete\":" BOOLEAN "}}" },
	{ "ResumeResponse", "{\"type\":\"object\",\"required\":[\"resumed\"],\"properties\":{\"resumed\":" STRING "}}" },
};

static void put_problem_schema(noh_json_out *o)
{
	open(o, "Problem");
	text(o, "type", "object");
	text(o, "description", "RFC 9457");
	noh_json_put_raw(o, "required", "[\"title\",\"status\",\"detail\",\"code\"]", strlen("[\"title\",\"status\",\"detail\",\"code\"]"));
	open(o, "properties");
	noh_json_put_raw(o, "type", STRING, strlen(STRING));
	noh_json_put_raw(o, "title", STRING, strlen(STRING));
	noh_json_put_raw(o, "status", COUNT, strlen(COUNT));
	open(o, "detail");
	text(o, "type", "string");
	text(o, "description", "What happened, to what, and what to do");
	close(o);
	open(o, "code");
	text(o, "type", "string");
	text(o, "description", "Stable; of what an actor could not answer:");
	noh_json_open(o, "x-codes", '[');
	for (uint32_t i = 0; i < status_total(); i++) {
		open(o, NULL);
		text(o, "code", status_row(i)->name);
		noh_json_put_uint(o, "status", status_row(i)->http);
		text(o, "meaning", status_row(i)->text);
		close(o);
	}
	noh_json_close(o, ']');
	close(o);
	noh_json_put_raw(o, "accepted", BOOLEAN, strlen(BOOLEAN));
	noh_json_put_raw(o, "actor_node", STRING, strlen(STRING));
	open(o, "response");
	text(o, "type", "object");
	text(o, "description", "Of a refusal: what the actor said");
	close(o);
	close(o);
	close(o);
}

/* ── paths ── */

static const struct rest_form *form_of(const struct http_route *r)
{
	for (uint32_t i = 0; i < FORMS; i++)
		if (strcmp(rest_forms[i].path, r->path) == 0)
			return &rest_forms[i];
	return NULL;
}

static const struct rest_query *query_of(const struct http_route *r)
{
	for (uint32_t i = 0; i < QUERIES; i++)
		if (strcmp(rest_queries[i].path, r->path) == 0)
			return &rest_queries[i];
	return NULL;
}

static void put_content(noh_json_out *o, const char *type, const char *schema)
{
	open(o, "content");
	open(o, type);
	open(o, "schema");
	reference(o, "schemas", schema);
	close(o);
	close(o);
	close(o);
}

#define JSON_TYPE "application/json"
#define PROBLEM_TYPE "application/problem+json"

static void put_response(noh_json_out *o, const char *status, const char *what, const char *schema, const char *type)
{
	open(o, status);
	text(o, "description", what);
	if (schema)
		put_content(o, type, schema);
	close(o);
}

/* Beside the answer as asked. */
static void put_refusals(noh_json_out *o, const struct rest_form *f, const struct rest_query *q)
{
	bool asks = f == &rest_forms[FORM_SEND] || f == &rest_forms[FORM_INVOKE];

	if (f) {
		put_response(o, "400", "The body is not JSON, or a header is malformed", "Problem", PROBLEM_TYPE);
		put_response(o, "422", "A field is missing, unknown or out of its range", "Problem", PROBLEM_TYPE);
	}
	if (q)
		put_response(o, "400", "A parameter is missing, unknown or out of its range", "Problem", PROBLEM_TYPE);
	if ((f && f != &rest_forms[FORM_LIST] && f != &rest_forms[FORM_POOL]) || q)
		put_response(o, "404", "There is no such type, or no such message or actor", "Problem", PROBLEM_TYPE);
	if (asks) {
		put_response(o, "409", "A request with this Idempotency-Key is still running; or the actor refused", "Problem", PROBLEM_TYPE);
		put_response(o, "429", "The actor's mailbox is full, its type is over its limits, or too many logins from the client's address have failed; see "
			     "Retry-After", "Problem", PROBLEM_TYPE);
		put_response(o, "504", "No answer in time; it may still take effect", "Problem", PROBLEM_TYPE);
	}
	if (f == &rest_forms[FORM_DEAD_REDRIVE] || f == &rest_forms[FORM_DEAD_PURGE])
		put_response(o, "409", "The other of redrive and purge was done to it", "Problem", PROBLEM_TYPE);
	if (f == &rest_forms[FORM_DRAIN])
		put_response(o, "504", "Not all of it was done in time; the detail says what is left, and the server ends", "Problem", PROBLEM_TYPE);
	if (q == &rest_queries[QUERY_EVENTS])
		put_response(o, "410", "The events behind this cursor are gone; the detail names the oldest", "Problem", PROBLEM_TYPE);
}

static void put_responses(noh_json_out *o, const struct http_route *r, const struct rest_form *f, const struct rest_query *q)
{
	bool asks = f == &rest_forms[FORM_SEND] || f == &rest_forms[FORM_INVOKE];

	open(o, "responses");
	if (f == &rest_forms[FORM_SEND])
		put_response(o, "202", "It is accepted", f->response, JSON_TYPE);
	else
		put_response(o, "200", f == &rest_forms[FORM_INVOKE] ? "The actor's response" : "As asked",
			     f ? f->response : q ? q->response : NULL,
			     q == &rest_queries[QUERY_EVENTS] ? "text/event-stream" : JSON_TYPE);
	if (f == &rest_forms[FORM_DRAIN])
		put_response(o, "202", "It begins; with wait the answer comes when it is over", f->response, JSON_TYPE);
	put_refusals(o, f, q);
	if (r->role != SESSION_NOBODY) {
		put_response(o, "401", "Who asks is not known", "Problem", PROBLEM_TYPE);
		put_response(o, "403", "The role does not allow it", "Problem", PROBLEM_TYPE);
		if (!asks)
			put_response(o, "429", "Too many logins from the client's address have failed; see Retry-After", "Problem", PROBLEM_TYPE);
	}
	put_response(o, "default", "Anything else that stands in the way", "Problem", PROBLEM_TYPE);
	close(o);
}

static void put_idempotency(noh_json_out *o)
{
	open(o, NULL);
	text(o, "name", "Idempotency-Key");
	text(o, "in", "header");
	noh_json_put_bool(o, "required", false);
	text(o, "description", "However often a request with it is sent to this actor, it takes effect once; a repetition gets the "
	     "stored response, marked Idempotency-Replayed: true. 409 while the first is running, 422 with another message.");
	noh_json_put_raw(o, "schema", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}",
			 strlen("{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}"));
	close(o);
}

static const char *tag_of(const struct rest_form *f, const struct rest_query *q)
{
	if (f)
		return f >= &rest_forms[FORM_DEAD_LIST] ? "operators" : "actors";
	return q && q != &rest_queries[QUERY_EVENTS] ? "actors" : "server";
}

/* "GET HEAD" is described as get: HEAD is the same without its body. */
static void put_path(noh_json_out *o, const struct http_route *r)
{
	const struct rest_form *f = form_of(r);
	const struct rest_query *q = query_of(r);

	open(o, r->path);
	open(o, strstr(r->methods, "POST") ? "post" : "get");
	text(o, "operationId", r->op);
	text(o, "summary", f ? f->summary : q ? q->summary : r->op);
	noh_json_open(o, "tags", '[');
	text(o, NULL, tag_of(f, q));
	noh_json_close(o, ']');
	if (r->role != SESSION_NOBODY) {
		noh_json_open(o, "x-permissions", '[');
		open(o, NULL);
		text(o, "role", role_name(r->role));
		close(o);
		noh_json_close(o, ']');
		noh_json_put_raw(o, "security", "[{\"bearer\":[]}]", strlen("[{\"bearer\":[]}]"));
	} else {
		noh_json_put_raw(o, "security", "[]", 2);
	}
	if (f == &rest_forms[FORM_SEND] || f == &rest_forms[FORM_INVOKE]) {
		noh_json_open(o, "parameters", '[');
		put_idempotency(o);
		noh_json_close(o, ']');
	}
	if (f) {
		open(o, "requestBody");
		noh_json_put_bool(o, "required", true);
		put_content(o, "application/json", f->schema);
		close(o);
	}
	if (q)
		put_parameters(o, q);
	put_responses(o, r, f, q);
	close(o);
	close(o);
}

static void write_document(noh_json_out *o, const void *arg)
{
	static const char bearer[] = "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}";

	(void)arg;
	open(o, NULL);
	text(o, "openapi", "3.0.3");
	open(o, "info");
	text(o, "title", "noh Actor Service API");
	text(o, "version", "1.0.0");
	text(o, "description", "Send messages to actors, ask for their answers, and see how they are.");
	noh_json_put_raw(o, "license", "{\"name\":\"Apache-2.0\",\"url\":\"https://www.apache.org/licenses/LICENSE-2.0\"}",
			 strlen("{\"name\":\"Apache-2.0\",\"url\":\"https://www.apache.org/licenses/LICENSE-2.0\"}"));
	close(o);
	noh_json_put_raw(o, "servers", "[{\"url\":\"http://localhost:5012\"}]", strlen("[{\"url\":\"http://localhost:5012\"}]"));
	open(o, "paths");
	for (const struct http_route *r = http_routes; r->path; r++)
		put_path(o, r);
	close(o);
	open(o, "components");
	noh_json_put_raw(o, "securitySchemes", bearer, sizeof bearer - 1);
	open(o, "schemas");
	for (uint32_t i = 0; i < FORMS; i++)
		put_request_schema(o, &rest_forms[i]);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		noh_json_put_raw(o, shapes[i].name, shapes[i].json, strlen(shapes[i].json));
	put_problem_schema(o);
	close(o);
	close(o);
	close(o);
}

void rest_openapi(struct call *c, const struct http_request *q)
{
	(void)q;
	rest_reply(call_out(c), 200, "application/json", "", write_document, NULL);
}
