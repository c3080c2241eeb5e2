/* net/rest_query.c - what comes behind the '?' of a GET: its fields, once, for reading and for /openapi.json. */
#include "net/rest.h"

#include "core/error.h"
#include "net/net.h"
#include "net/tell.h"

#include <stdio.h>
#include <string.h>

static const noh_json_field event_fields[] = {
	[EVENTS_CURSOR] = { .name = "cursor", .type = NOH_JSON_INT, .least = 0, .most = INT64_MAX },
	[EVENTS_LAST] = { .name = "last", .type = NOH_JSON_INT, .least = 0, .most = FEED_LAST_MOST },
	[EVENTS_SINCE] = { .name = "since", .type = NOH_JSON_TIME },
	[EVENTS_ACTOR] = { .name = "actor", .type = NOH_JSON_STRING, .least = 3, .most = ADDRESS_MAX },
	[EVENTS_TYPE] = { .name = "type", .type = NOH_JSON_STRING, .least = 1, .most = TYPE_NAME_MAX },
	[EVENTS_KIND] = { .name = "kind", .type = NOH_JSON_STRING, .least = 1, .most = NOH_EVENT_KIND },
	[EVENTS_FOLLOW] = { .name = "follow", .type = NOH_JSON_BOOL, .preset = true },
};
static const struct rest_field_text event_texts[] = {
	[EVENTS_CURSOR] = { "Events behind this number; 0: from the oldest there is. Last-Event-ID goes before it. Without any of cursor, "
			    "last and since: those that come from now on", "4711" },
	[EVENTS_LAST] = { "Begin with the last so many, of the 65 536 newest", "10" },
	[EVENTS_SINCE] = { "Not before: RFC 3339, or milliseconds since 1970", "\"2031-05-01T12:00:00Z\"" },
	[EVENTS_ACTOR] = { "Only of this actor", "\"counter:hits\"" },
	[EVENTS_TYPE] = { "Only of actors of this type, and of the type itself", "\"counter\"" },
	[EVENTS_KIND] = { "Only of this kind", "\"restarted\"" },
	[EVENTS_FOLLOW] = { "false: end when all there is has been told", NULL },
};

static const noh_json_field describe_fields[] = {
	[DESCRIBE_ADDRESS] = { .name = "actor", .type = NOH_JSON_STRING, .required = true, .least = 3, .most = ADDRESS_MAX },
	[DESCRIBE_EVENTS] = { .name = "events", .type = NOH_JSON_INT, .least = 0, .most = TELL_EVENTS_MOST, .preset = TELL_EVENTS },
};
static const struct rest_field_text describe_texts[] = {
	[DESCRIBE_ADDRESS] = { "Actor address in format {type}:{id}", "\"npc-brain:character-abc123\"" },
	[DESCRIBE_EVENTS] = { "With its last so many events, of the 65 536 newest of the server", NULL },
};

static const noh_json_field tree_fields[] = {
	[TREE_ROOT] = { .name = "root", .type = NOH_JSON_STRING, .least = 3, .most = ADDRESS_MAX },
	[TREE_LIMIT] = { .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = TELL_TREE_MOST, .preset = TELL_TREE },
};
static const struct rest_field_text tree_texts[] = {
	[TREE_ROOT] = { "This actor and all below it; without it: all trees", "\"supervisor:node-1\"" },
	[TREE_LIMIT] = { "How many actors at most", NULL },
};

static const noh_json_field trace_fields[] = {
	[TRACE_ID] = { .name = "id", .type = NOH_JSON_STRING, .least = 1, .most = 64 },
	[TRACE_LIMIT] = { .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = TRACE_LIST_MOST, .preset = TRACE_LIST },
};
static const struct rest_field_text trace_texts[] = {
	[TRACE_ID] = { "This trace, 32 hex digits; without it: those that took longest", "\"4bf92f3577b34da6a3ce929d0e0e4736\"" },
	[TRACE_LIMIT] = { "How many at most", NULL },
};

const struct rest_query rest_queries[QUERIES] = {
	[QUERY_EVENTS] = { "/events", "Event", "Events as they come, as server-sent events (text/event-stream); Last-Event-ID goes on",
			   event_fields, event_texts, 7 },
	[QUERY_DESCRIBE] = { "/actor/describe", "ActorDescription", "All that is known of an actor; never activates it",
			     describe_fields, describe_texts, 2 },
	[QUERY_TREE] = { "/actor/tree", "ActorTree", "Who supervises whom, and how they are", tree_fields, tree_texts, 2 },
	[QUERY_TRACE] = { "/trace", "Traces", "Where a request was, and how long; or which there are", trace_fields, trace_texts, 2 },
};

/* ── reading ── */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* How many bytes it has; -1: an escape is none, there is a NUL, or it is longer than room. */
static int decode(const char *at, const char *end, char *to, int room)
{
	int len = 0;

	for (; at < end; at++, len++) {
		int c = *at == '+' ? ' ' : (unsigned char)*at;

		if (*at == '%') {
			c = end - at < 3 || hex(at[1]) < 0 || hex(at[2]) < 0 ? 0 : hex(at[1]) << 4 | hex(at[2]);
			at += 2;
		}
		if (c == 0 || len == room)
			return -1;
		to[len] = (char)c;
	}
	to[len] = 0;
	return len;
}

/* Digits alone; false: none, or beyond most. */
static bool number(const char *text, int64_t most, int64_t *n)
{
	*n = 0;
	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '9' || *n > (most - (*at - '0')) / 10)
			return false;
		*n = *n * 10 + (*at - '0');
	}
	return *text != 0;
}

/* A JSON string as it stands: what json_next_char walks over was checked before, and this is not. */
static bool plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

static bool instant(const char *text, int64_t *ms)
{
	char quoted[72];
	int len = snprintf(quoted, sizeof quoted, "\"%s\"", text);

	if (number(text, INT64_MAX, ms))
		return true;
	return len < (int)sizeof quoted && plain(text) && noh_json_time((noh_json){ quoted, (size_t)len }, ms) && *ms >= 0;
}

static int take(const noh_json_field *f, struct query_got *got)
{
	switch (f->type) {
	case NOH_JSON_INT:
		if (number(got->text, f->most, &got->n) && got->n >= f->least)
			return NOH_OK;
		return error_set(NOH_EINVAL, "\"%s\" is a number from %lld to %lld", f->name, (long long)f->least, (long long)f->most);
	case NOH_JSON_BOOL:
		got->n = strcmp(got->text, "true") == 0;
		if (got->n || strcmp(got->text, "false") == 0)
			return NOH_OK;
		return error_set(NOH_EINVAL, "\"%s\" is true or false", f->name);
	case NOH_JSON_TIME:
		if (instant(got->text, &got->n))
			return NOH_OK;
		return error_set(NOH_EINVAL, "\"%s\" is a time of RFC 3339 (2031-05-01T12:00:00Z), or milliseconds since 1970", f->name);
	default:
		if (got->len >= f->least && got->len <= f->most)
			return NOH_OK;
		return error_set(NOH_EINVAL, "\"%s\" has %lld to %lld bytes", f->name, (long long)f->least, (long long)f->most);
	}
}

static int unknown(const struct rest_query *form, const char *name, int len)
{
	char list[200] = "";

	for (uint32_t i = 0; i < form->count; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", form->fields[i].name);
	return error_set(NOH_EINVAL, "there is no \"%.*s\" here: %s takes %s", len < 40 ? len : 40, name, form->path, list);
}

/* Bodies say actor_address, queries actor: both are fine here. */
static bool is_name(const char *field, const char *at, int len)
{
	static const char alias[] = "actor_address";

	if ((int)strlen(field) == len && memcmp(field, at, (size_t)len) == 0)
		return true;
	return strcmp(field, "actor") == 0 && len == (int)sizeof alias - 1 && memcmp(at, alias, sizeof alias - 1) == 0;
}

/* One "name=value". */
static int pair(const struct rest_query *form, const char *at, const char *end, struct query_got *got)
{
	const char *equals = memchr(at, '=', (size_t)(end - at));
	int len = (int)((equals ? equals : end) - at);

	for (uint32_t i = 0; i < form->count; i++) {
		if (!is_name(form->fields[i].name, at, len))
			continue;
		if (got[i].given)
			return error_set(NOH_EINVAL, "\"%s\" is there twice", form->fields[i].name);
		len = equals ? decode(equals + 1, end, got[i].text, ADDRESS_MAX) : 0;
		if (len < 0)
			return error_set(NOH_EINVAL, "\"%s\" is longer than %d bytes, or an escape in it is none (%%41)", form->fields[i].name,
					 ADDRESS_MAX);
		got[i].given = true;
		got[i].len = len;
		return take(&form->fields[i], &got[i]);
	}
	return unknown(form, at, len);
}

int query_read(const struct rest_query *form, const char *text, size_t len, struct query_got *got)
{
	const char *at = text, *end = text + len;
	int rc = NOH_OK;

	for (uint32_t i = 0; i < form->count; i++)
		got[i] = (struct query_got){ .n = form->fields[i].preset };
	while (rc == NOH_OK && at < end) {
		const char *and = memchr(at, '&', (size_t)(end - at)), *stop = and ? and : end;

		if (stop > at)
			rc = pair(form, at, stop, got);
		at = and ? and + 1 : end;
	}
	for (uint32_t i = 0; rc == NOH_OK && i < form->count; i++)
		if (form->fields[i].required && !got[i].given)
			rc = error_set(NOH_EINVAL, "\"%s\" is missing: %s?%s=...", form->fields[i].name, form->path, form->fields[i].name);
	return rc;
}

bool rest_query(struct call *c, const struct http_request *q, enum rest_query_id id, struct query_got *got)
{
	if (query_read(&rest_queries[id], q->query.at, q->query.len, got) == NOH_OK)
		return true;
	http_problem(call_out(c), 400, "bad_query", "", "%s", noh_why());
	return false;
}

bool rest_query_actor(struct call *c, const struct query_got *got, char address[ADDRESS_MAX + 1])
{
	char type[TYPE_NAME_MAX + 1];
	struct address a;
	int rc = address_parse(&a, got->text, (size_t)got->len);

	if (rc == NOH_OK) {
		memcpy(type, a.type, a.type_len);
		type[a.type_len] = 0;
		memcpy(address, got->text, (size_t)got->len + 1);
		address[a.type_len] = ':';               /* it may have been a slash */
		if (!noh_find_type(call_box(c), type))
			rc = error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type);
	}
	if (rc == NOH_OK)
		return true;
	rest_problem_of(call_out(c), rc);
	return false;
}
