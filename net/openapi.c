/* net/openapi.c - /openapi.json: what this server answers to, as OpenAPI 3.0.
 *
 * Paths, methods and roles come from the table of routes, requests from that of the forms, problems from that of
 * statuses: what is served and what is told are the same. Only the responses' shapes are written down, in
 * openapi_shapes.c.
 */
#include "net/openapi.h"
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

#define STRING "{\"type\":\"string\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define COUNT "{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0}"

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

static const struct openapi_plain *plain_of(const struct http_route *r)
{
	for (const struct openapi_plain *p = openapi_plain; p->path; p++)
		if (strcmp(p->path, r->path) == 0)
			return p;
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

static void put_plain(noh_json_out *o, const struct openapi_plain *p)
{
	put_response(o, "200", "As asked", p->schema, p->type);
	if (p->not_status)
		put_response(o, p->not_status, p->not_what, p->not_schema, p->not_type);
}

static void put_responses(noh_json_out *o, const struct http_route *r, const struct rest_form *f, const struct rest_query *q)
{
	bool asks = f == &rest_forms[FORM_SEND] || f == &rest_forms[FORM_INVOKE];
	const struct openapi_plain *plain = plain_of(r);

	open(o, "responses");
	if (plain)
		put_plain(o, plain);
	else if (f == &rest_forms[FORM_SEND])
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

static void open_header(noh_json_out *o, const char *name)
{
	open(o, NULL);
	text(o, "name", name);
	text(o, "in", "header");
	noh_json_put_bool(o, "required", false);
}

static void put_headers(noh_json_out *o)
{
	open_header(o, "Idempotency-Key");
	text(o, "description", "However often a request with it is sent to this actor, it takes effect once; a repetition gets the "
	     "stored response, marked Idempotency-Replayed: true. 409 while the first is running, 422 with another message.");
	noh_json_put_raw(o, "schema", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}",
			 strlen("{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}"));
	close(o);
	open_header(o, "traceparent");
	text(o, "description", "W3C Trace Context: GET /trace tells where the message was; it is carried on to what it causes. One that is none "
	     "is ignored.");
	noh_json_put_raw(o, "schema", STRING, strlen(STRING));
	close(o);
}

static const char *tag_of(const struct rest_form *f, const struct rest_query *q)
{
	if (f)
		return f >= &rest_forms[FORM_DEAD_LIST] ? "operators" : "actors";
	return q && q != &rest_queries[QUERY_EVENTS] && q != &rest_queries[QUERY_TRACE] ? "actors" : "server";
}

/* "GET HEAD" is described as get: HEAD is the same without its body. */
static void put_path(noh_json_out *o, const struct http_route *r)
{
	const struct rest_form *f = form_of(r);
	const struct rest_query *q = query_of(r);
	const struct openapi_plain *plain = plain_of(r);

	open(o, r->path);
	open(o, strstr(r->methods, "POST") ? "post" : "get");
	text(o, "operationId", r->op);
	text(o, "summary", f ? f->summary : q ? q->summary : plain ? plain->summary : r->op);
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
		put_headers(o);
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
	for (const struct openapi_shape *p = openapi_shapes; p->name; p++)
		noh_json_put_raw(o, p->name, p->json, strlen(p->json));
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
