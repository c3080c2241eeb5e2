/* actors/later_json.c - what waits for an actor, told and taken back as JSON: docs/http.md. A message is sent for later
 * with delay_ms of /actor/send, DELAY of ACTOR.SEND: there it has the form of its own type.
 */
#include "actors/json_types.h"

#include <inttypes.h>

/* ── ids: "1794834000123-7", due and number ── */

enum { ID_SIZE = 44 };

static void put_sent(noh_json_out *o, const noh_later_sent *s)
{
	char id[ID_SIZE];
	int len = snprintf(id, sizeof id, "%" PRIu64 "-%" PRIu64, s->due, s->number);

	noh_json_put_text(o, "id", id, (size_t)len);
	noh_json_put_time(o, "due_at", (int64_t)s->due);
}

static int read_id(noh_json_message *m, const noh_json_got *got, noh_later_sent *s)
{
	char id[ID_SIZE], again[ID_SIZE];
	size_t len = noh_json_text(got->value, id, sizeof id);

	if (len < sizeof id && strlen(id) == len && sscanf(id, "%" SCNu64 "-%" SCNu64, &s->due, &s->number) == 2) {
		snprintf(again, sizeof again, "%" PRIu64 "-%" PRIu64, s->due, s->number);
		if (strcmp(again, id) == 0)
			return NOH_OK;
	}
	return json_says(m, "this is no id of a message that waits: as told when it was sent, or by \"list\"");
}

/* ── messages ── */

static const noh_json_field cancel_fields[] = {
	{ .name = "id", .type = NOH_JSON_STRING, .required = true, .least = 3, .most = ID_SIZE - 1 } };

static int cancel(noh_json_message *m, const noh_json_got *got)
{
	noh_later_sent b;
	int rc = read_id(m, &got[0], &b);

	return rc == NOH_OK ? json_body(m, &b, sizeof b) : rc;
}

enum { CURSOR, LIMIT, LIST_FIELDS };
static const noh_json_field list_fields[LIST_FIELDS] = {
	[CURSOR] = { .name = "cursor", .type = NOH_JSON_STRING, .least = 3, .most = ID_SIZE - 1 },
	[LIMIT] = { .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = NOH_LATER_PAGE_MAX, .preset = NOH_LATER_PAGE_MAX },
};

static int list(noh_json_message *m, const noh_json_got *got)
{
	noh_later_page b = { .limit = (uint32_t)got[LIMIT].n };
	int rc = got[CURSOR].given ? read_id(m, &got[CURSOR], &b.after) : NOH_OK;

	return rc == NOH_OK ? json_body(m, &b, sizeof b) : rc;
}

static const struct json_form forms[] = {
	{ "list", NOH_LATER_LIST, list_fields, LIST_FIELDS, list },
	{ "cancel", NOH_LATER_CANCEL, cancel_fields, 1, cancel },
	{ "clear", NOH_LATER_CLEAR, NULL, 0, NULL },
};

int later_from_json(void *user, noh_json_message *m)
{
	(void)user;
	return json_form_read(forms, sizeof forms / sizeof forms[0], m);
}

/* ── answers ── */

static int list_to_json(noh_json_reply *r, noh_json_out *o)
{
	const noh_later_list *a = r->body;
	const noh_later_waiting *page = (const noh_later_waiting *)(a + 1);
	char id[ID_SIZE];

	if (r->len < sizeof *a || r->len != sizeof *a + a->count * sizeof *page)
		return NOH_EINVAL;
	noh_json_put_uint(o, "waiting", a->waiting);
	noh_json_open(o, "messages", '[');
	for (uint32_t i = 0; i < a->count; i++) {
		noh_json_open(o, NULL, '{');
		put_sent(o, &page[i].sent);
		noh_json_put_text(o, "message_type", page[i].name, strnlen(page[i].name, sizeof page[i].name));
		noh_json_put_uint(o, "kind", page[i].kind);
		noh_json_put_uint(o, "size", page[i].len);
		noh_json_close(o, '}');
	}
	noh_json_close(o, ']');
	if (a->more && a->count) {
		const noh_later_sent *last = &page[a->count - 1].sent;
		int len = snprintf(id, sizeof id, "%" PRIu64 "-%" PRIu64, last->due, last->number);

		noh_json_put_text(o, "next_cursor", id, (size_t)len);
	} else {
		noh_json_put_null(o, "next_cursor");
	}
	return json_end(r, o);
}

/* A refusal is a sentence: shown as it is. */
int later_to_json(void *user, noh_json_reply *r)
{
	noh_json_out o = { .at = r->json, .room = r->room };

	(void)user;
	if (r->status != NOH_OK)
		return NOH_EINVAL;
	noh_json_open(&o, NULL, '{');
	if (r->kind == NOH_LATER_LIST)
		return list_to_json(r, &o);
	if ((r->kind == NOH_LATER_SEND || r->kind == NOH_LATER_CANCEL) && r->len == sizeof(noh_later_sent))
		put_sent(&o, r->body);
	else if (r->kind == NOH_LATER_CLEAR && r->len == sizeof(uint64_t))
		noh_json_put_uint(&o, "cleared", *(const uint64_t *)r->body);
	else
		return NOH_EINVAL;
	return json_end(r, &o);
}
