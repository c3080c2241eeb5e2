/* net/http_admit.c - whether a request may go on, by its head: Host, Origin, method, path, who asks, and what it brings.
 *
 * A browser can be talked into sending requests to a server that only its own machine reaches. Three things keep
 * such requests out: the Host they name must be this machine (a foreign name that was made to point here is not),
 * their Origin must be this server, and a body must be JSON, which no foreign page sends without being allowed to
 * (and nobody is: no CORS).
 */
#include "net/net.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ── Host and Origin ── */

static bool is_text(const struct arg *a, const char *text, size_t len)
{
	return a->len == len && strncasecmp(a->at, text, len) == 0;
}

static bool is_host_byte(char c)
{
	return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
	       c == '~' || c == '[' || c == ']' || c == ':';
}

/* Without its port; what is behind the name must be a port, or nothing. */
static bool host_name(const struct arg *host, struct arg *name)
{
	const char *end = host->at + host->len, *colon;
	const char *bracket = host->len && host->at[0] == '[' ? memchr(host->at, ']', host->len) : NULL;

	colon = memchr(bracket ? bracket : host->at, ':', (size_t)(end - (bracket ? bracket : host->at)));
	*name = (struct arg){ host->at, (uint32_t)((colon ? colon : end) - host->at) };
	if (bracket && bracket + 1 != host->at + name->len)
		return false;
	for (const char *p = host->at; p < host->at + name->len; p++)
		if (!is_host_byte(*p))
			return false;
	for (const char *p = colon ? colon + 1 : end; p < end; p++)
		if (*p < '0' || *p > '9')
			return false;
	return name->len > 0;
}

static bool is_this_machine(const struct arg *name)
{
	return is_text(name, "localhost", 9) || is_text(name, "127.0.0.1", 9) || is_text(name, "[::1]", 5);
}

static bool admit_host(struct call *c, const struct http_request *q)
{
	struct arg name;

	if (q->host.len == 0 && (c->conn->http.reader.http_1_0 || q->local))
		return true;
	if (!host_name(&q->host, &name)) {
		http_problem(call_out(c), 400, "bad_host", "", "Host is a name or an address, and a port");
		return false;
	}
	if (q->local || !c->net->server->loopback || is_this_machine(&name))
		return true;
	http_problem(call_out(c), 421, "wrong_host", "", "this server listens on %s alone, and answers to localhost, 127.0.0.1 "
		     "and [::1]; not to \"%.*s\"", c->net->server->o.bind, (int)(name.len < 100 ? name.len : 100), name.at);
	return false;
}

/* https: behind a proxy that speaks TLS. */
static uint32_t scheme(const struct arg *origin)
{
	if (origin->len > 7 && strncasecmp(origin->at, "http://", 7) == 0)
		return 7;
	return origin->len > 8 && strncasecmp(origin->at, "https://", 8) == 0 ? 8 : 0;
}

static bool admit_origin(struct call *c, const struct http_request *q)
{
	const struct arg *o = &q->origin;
	uint32_t name = scheme(o);

	if (!(c->conn->http.reader.seen >> FIELD_ORIGIN & 1))
		return true;
	if (name && q->host.len && is_text(&q->host, o->at + name, o->len - name))
		return true;
	http_problem(call_out(c), 403, "foreign_origin", "", "pages of other origins may not use this server");
	return false;
}

/* ── method and path ── */

static bool is_method(const struct arg *method, const char *list)
{
	while (*list) {
		size_t len = strcspn(list, " ");

		if (method->len == len && memcmp(method->at, list, len) == 0)
			return true;
		list += len + (list[len] == ' ');
	}
	return false;
}

static void wrong_method(struct call *c, const struct http_route *route)
{
	char allow[128], *to = allow + sizeof "Allow: " - 1;

	memcpy(allow, "Allow: ", sizeof "Allow: " - 1);
	for (const char *p = route->methods; *p && to < allow + sizeof allow - 8; p++) {
		if (*p == ' ')
			*to++ = ',';
		*to++ = *p;
	}
	memcpy(to, "\r\n", 3);
	http_problem(call_out(c), 405, "method_not_allowed", allow, "%s takes %s", route->path, route->methods);
}

/* A connection often asks for the same path again. */
static const struct http_route *find_route(const struct call *c, const struct arg *path)
{
	const struct http_route *last = c->conn->http.route;

	return last && http_route_is(last, path->at, path->len) ? last
								 : http_route_find(c->net->server->routes, path->at, path->len);
}

static bool admit_route(struct call *c, const struct http_request *q)
{
	const struct http_route *route = find_route(c, &q->path);
	char shown[100 + 1];

	if (route && is_method(&q->method, route->methods)) {
		c->conn->http.route = route;
		return true;
	}
	if (!is_method(&q->method, "GET HEAD POST PUT DELETE PATCH OPTIONS TRACE CONNECT")) {
		http_problem(call_out(c), 501, "unknown_method", "", "%.*s is no method of HTTP that this server knows",
			     (int)q->method.len, q->method.at);
		return false;
	}
	if (!route) {
		snprintf(shown, sizeof shown, "%.*s", (int)q->path.len, q->path.at);
		http_problem(call_out(c), 404, "not_found", "", "there is no %s here; /openapi.json tells what there is", shown);
		return false;
	}
	wrong_method(c, route);
	return false;
}

/* ── who asks ── */

static bool bearer(const struct arg *authorization, struct arg *token)
{
	const char *at = authorization->at, *end = at + authorization->len;

	if (authorization->len < 8 || strncasecmp(at, "Bearer ", 7) != 0)
		return false;
	for (at += 7; at < end && *at == ' '; )
		at++;
	*token = (struct arg){ at, (uint32_t)(end - at) };
	return token->len > 0;
}

/* Where there are no users, and through the Unix socket (its file is its owner's alone), whoever comes may do all;
 * but who says a name is taken at its word. */
static int role_of(struct call *c, const struct http_request *q, char name[SESSION_NAME_MAX + 1])
{
	struct arg token;

	strcpy(name, "default");
	call_session(c)->account = 0;
	if (!server_is_guarded(c->net->server))
		return NOH_ADMIN;
	if (q->authorization.len == 0)
		return q->local ? NOH_ADMIN : SESSION_NOBODY;
	if (!bearer(&q->authorization, &token))
		return SESSION_NOBODY;
	int role = net_token_role(c->net, &token, name, &call_session(c)->account);

	if (role < 0)
		call_login_failed(c);
	return role < 0 ? SESSION_NOBODY : role;
}

/* What needs no name is for everybody. */
static bool admit_try(struct call *c, const struct http_request *q)
{
	char field[40];
	uint32_t wait_s;

	if (c->conn->http.route->role == SESSION_NOBODY || q->authorization.len == 0 ||
	    !server_is_guarded(c->net->server) || (wait_s = call_login_waits_s(c)) == 0)
		return true;
	snprintf(field, sizeof field, "Retry-After: %u\r\n", wait_s);
	http_problem(call_out(c), 429, "too_many_failures", field,
		     "too many failed logins from your address: this one was not looked at, try again in %u s", wait_s);
	return false;
}

static const char *const role_names[] = { "user", "developer", "admin" };

static bool admit_user(struct call *c, const struct http_request *q)
{
	const struct http_route *route = c->conn->http.route;
	struct session *s = call_session(c);
	char name[SESSION_NAME_MAX + 1];
	int role = role_of(c, q, name);

	s->role = (int8_t)role;
	if (strcmp(name, s->user) != 0) {
		memcpy(s->user, name, sizeof s->user);
		net_client_changed(c->conn);
	}
	if (role >= route->role)
		return true;
	if (role != SESSION_NOBODY)
		http_problem(call_out(c), 403, "forbidden", "", "%s needs the role %s, and %s has the role %s", route->path,
			     role_names[route->role], name, role_names[role]);
	else if (q->authorization.len)
		http_problem(call_out(c), 401, "bad_token",
			     "WWW-Authenticate: Bearer realm=\"noh\", error=\"invalid_token\"\r\n",
			     "the token of Authorization: Bearer is no user's");
	else
		http_problem(call_out(c), 401, "no_token", "WWW-Authenticate: Bearer realm=\"noh\"\r\n",
			     "say who you are: Authorization: Bearer TOKEN (noh user add gives one)");
	return false;
}

/* ── what it brings ── */

static bool is_json(const struct arg *type)
{
	static const char name[] = "application/json";
	const uint32_t len = sizeof name - 1;

	return type->len >= len && strncasecmp(type->at, name, len) == 0 &&
	       (type->len == len || type->at[len] == ';' || type->at[len] == ' ' || type->at[len] == '\t');
}

static bool admit_body(struct call *c, const struct http_request *q)
{
	const struct http_reader *r = &c->conn->http.reader;

	if (r->encoded) {
		http_problem(call_out(c), 415, "content_encoding", "Accept-Encoding: identity\r\n",
			     "bodies are taken as they are: no Content-Encoding");
		return false;
	}
	if (!c->conn->http.route->json)
		return true;
	if (!r->has_length && !r->chunked) {
		http_problem(call_out(c), 411, "length_required", "", "this needs a body, with its Content-Length or chunked");
		return false;
	}
	if (is_json(&q->content_type))
		return true;
	http_problem(call_out(c), 415, "not_json", "Accept: application/json\r\n",
		     "the body must be JSON: Content-Type: application/json");
	return false;
}

static bool admit_now(struct call *c)
{
	if (!load_relaxed(&c->net->server->stopping))
		return true;
	http_problem(call_out(c), 503, "stopping", "Retry-After: 1\r\n", "the server is stopping; nothing was done");
	return false;
}

bool http_admit(struct call *c, const struct http_request *q)
{
	return admit_now(c) && admit_host(c, q) && admit_origin(c, q) && admit_route(c, q) && admit_try(c, q) &&
	       admit_user(c, q) &&
	       admit_body(c, q);
}
