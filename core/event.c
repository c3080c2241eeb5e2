#include "core/event.h"

#include "core/utf8.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct part_event) == 32, "the format says so");

static const char *text(const char *t)
{
	return t ? t : "";
}

static size_t reason_len(const noh_event *e)
{
	size_t n = strlen(text(e->reason));

	return n <= NOH_EVENT_REASON ? n : utf8_cut(e->reason, NOH_EVENT_REASON);
}

struct part_event event_head(const noh_event *e)
{
	return (struct part_event){
		.at_ms = e->at_ms, .revision = e->revision, .actor_len = (uint16_t)strlen(text(e->actor)),
		.kind_len = (uint16_t)strlen(text(e->kind)), .from_len = (uint16_t)strlen(text(e->from)),
		.to_len = (uint16_t)strlen(text(e->to)), .reason_len = (uint16_t)reason_len(e),
		.flags = e->by_box ? EVENT_BY_BOX : 0, .len = (uint32_t)e->len };
}

size_t event_size(const struct part_event *h)
{
	return sizeof *h + h->actor_len + h->kind_len + h->from_len + h->to_len + h->reason_len + 5u + h->len;
}

static uint8_t *put_text(uint8_t *at, const char *t, size_t len)
{
	if (len)
		memcpy(at, t, len);
	at[len] = 0;
	return at + len + 1;
}

void event_write(const noh_event *e, const struct part_event *h, uint8_t *out)
{
	memcpy(out, h, sizeof *h);
	out = put_text(out + sizeof *h, e->actor, h->actor_len);
	out = put_text(out, e->kind, h->kind_len);
	out = put_text(out, e->from, h->from_len);
	out = put_text(out, e->to, h->to_len);
	out = put_text(out, e->reason, h->reason_len);
	if (e->len)
		memcpy(out, e->data, e->len);
}

static const char *take_text(const uint8_t **at, size_t len, bool *whole)
{
	const char *t = (const char *)*at;

	*whole = *whole && !memchr(t, 0, len) && t[len] == 0;
	*at += len + 1;
	return t;
}

bool event_open(const void *bytes, size_t len, noh_event *out)
{
	const uint8_t *at = bytes;
	struct part_event h;
	noh_event e = { .seq = 0 };
	bool whole = true;

	if (len < sizeof h)
		return false;
	memcpy(&h, at, sizeof h);
	if (h.actor_len > EVENT_ACTOR_MAX || h.kind_len == 0 || h.kind_len > NOH_EVENT_KIND ||
	    h.from_len > NOH_EVENT_KIND || h.to_len > NOH_EVENT_KIND || h.reason_len > NOH_EVENT_REASON ||
	    h.len > NOH_EVENT_DATA || event_size(&h) != len)
		return false;
	at += sizeof h;
	e.at_ms = h.at_ms;
	e.revision = h.revision;
	e.by_box = h.flags & EVENT_BY_BOX;
	e.actor = take_text(&at, h.actor_len, &whole);
	e.kind = take_text(&at, h.kind_len, &whole);
	e.from = take_text(&at, h.from_len, &whole);
	e.to = take_text(&at, h.to_len, &whole);
	e.reason = take_text(&at, h.reason_len, &whole);
	e.data = at;
	e.len = h.len;
	if (out)
		*out = e;
	return whole;
}

/* A kind is a word in lines, fields and addresses of others: nothing in it may need quotes. */
static bool kind_is_plain(const char *kind)
{
	for (; *kind; kind++)
		if (*kind <= ' ' || *kind > '~')
			return false;
	return true;
}

const char *event_problem(const noh_event *e)
{
	size_t kind = strlen(text(e->kind));

	if (kind == 0 || kind > NOH_EVENT_KIND)
		return "a kind has 1 to 63 bytes";
	if (!kind_is_plain(e->kind))
		return "a kind has printable ASCII bytes and no spaces";
	if (strlen(text(e->from)) > NOH_EVENT_KIND || strlen(text(e->to)) > NOH_EVENT_KIND)
		return "from and to have at most 63 bytes";
	if (e->len > NOH_EVENT_DATA)
		return "data has at most 16384 bytes";
	return NULL;
}

static bool of_type(const char *actor, const char *type)
{
	size_t n = strlen(type);

	return strncmp(actor, type, n) == 0 && (actor[n] == ':' || actor[n] == 0);
}

bool event_matches(const noh_event *e, const noh_events_filter *f)
{
	if (!f)
		return true;
	return (!f->actor || strcmp(e->actor, f->actor) == 0) && (!f->type || of_type(e->actor, f->type)) &&
	       (!f->kind || strcmp(e->kind, f->kind) == 0) && e->at_ms >= f->since_ms;
}
