/* net/codec.c - messages and answers of actors between JSON and bytes, by their type's hooks or without. noh.h,
 * section 3, says what is promised.
 */
#include "net/codec.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/utf8.h"

#include <string.h>

/* ── messages ── */

static uint32_t kind_named(const noh_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->kind_count; i++)
		if (type->kinds[i].name && type->kinds[i].name[0] == name[0] && strcmp(type->kinds[i].name, name) == 0)
			return i;
	return UINT32_MAX;
}

/* A name of the type's table; of a type without one, a number. A hook may know names that are in no table: then nobody
 * reads the sentence that tells what is in it, and none is written. */
static int kind_of(noh_box *box, const noh_type *type, const char *name, uint32_t *kind)
{
	uint64_t n = 0;

	if (type->kinds) {
		*kind = kind_named(type, name);
		return *kind != UINT32_MAX || type->from_json ? NOH_OK : noh_kind_number(box, type->name, name);
	}
	for (const char *at = name; *at; at++) {
		if (*at < '0' || *at > '9' || n > UINT32_MAX) {
			*kind = UINT32_MAX;
			return error_set(NOH_EKIND, "the message kinds of type %s are numbers", type->name);
		}
		n = n * 10 + (uint64_t)(*at - '0');
	}
	*kind = (uint32_t)n;
	return n > UINT32_MAX ? error_set(NOH_EKIND, "message kind %s: it has 32 bits", name) : NOH_OK;
}

/* The hook's own words, or what noh_json.h said to it; else ours. */
static int no_message(const noh_type *type, const char *name, const noh_json_message *j, int rc)
{
	if (j->why[0])
		return error_set(rc, "%.*s", (int)strnlen(j->why, sizeof j->why), j->why);
	return *noh_why() ? rc : error_set(rc, "this is no \"%s\" message of type %s", name, type->name);
}

static int by_hook(const noh_type *type, const char *name, noh_json message, size_t most, struct codec_message *m)
{
	noh_json_message j = { .type = name, .json = message.at, .json_len = message.len, .kind = m->kind,
			       .body = m->inside, .room = sizeof m->inside };
	int rc;

	error_clear();
	rc = type->from_json(type->user, &j);
	if (rc == NOH_ETOOBIG && j.len > j.room && j.len <= most) {
		m->big_len = j.len;
		m->big = mem_alloc(m->big_len);
		if (!m->big)
			return error_set(NOH_ENOMEM, "no memory for a message of %zu bytes", j.len);
		j.body = m->big;
		j.room = j.len;
		rc = type->from_json(type->user, &j);
	}
	if (rc == NOH_EKIND)
		return error_set(NOH_EKIND, "type %s has no message \"%s\"%s%.*s", type->name, name, j.why[0] ? "; " : "",
				 (int)strnlen(j.why, sizeof j.why), j.why);
	m->kind = j.kind;
	if (rc == NOH_OK && j.len > j.room)
		return error_set(NOH_ETOOBIG, "the message is larger than the room for it: %zu bytes", j.len);
	if (rc != NOH_OK)
		return no_message(type, name, &j, rc);
	m->body = j.body;
	m->len = (uint32_t)j.len;
	return NOH_OK;
}

int codec_message(noh_box *box, const noh_type *type, const char *name, noh_json message, size_t most, struct codec_message *m)
{
	int rc;

	m->big = NULL;
	m->body = NULL;
	m->len = 0;
	rc = kind_of(box, type, name, &m->kind);
	if (type->from_json)
		return by_hook(type, name, message, most, m);
	m->body = message.at;
	m->len = (uint32_t)message.len;
	return rc;
}

/* What the hook says of an empty object; m->kind: as it sets it, if it does. */
static int probe(const noh_type *type, const char *name, struct codec_message *m)
{
	static const noh_json empty = { "{}", 2 };

	m->kind = UINT32_MAX;
	m->big = NULL;
	return by_hook(type, name, empty, 0, m);
}

bool codec_has(const noh_type *type, const char *name)
{
	struct codec_message m;

	return type->from_json && probe(type, name, &m) != NOH_EKIND;
}

int codec_kind(noh_box *box, const noh_type *type, const char *name)
{
	struct codec_message m;
	int number = noh_kind_number(box, type->name, name), rc;

	if (number >= 0 || !type->from_json)
		return number;
	rc = probe(type, name, &m);
	if (rc != NOH_EKIND && m.kind <= INT32_MAX)
		return (int)m.kind;
	return rc == NOH_EKIND ? rc : noh_kind_number(box, type->name, name);    /* a hook that does not tell */
}

void codec_free(struct codec_message *m)
{
	mem_free(m->big, m->big_len);
	m->big = NULL;
}

/* ── answers ── */

static bool is_text(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; ) {
		size_t n = utf8_next((const unsigned char *)bytes + i, len - i);

		if (!n || bytes[i] == 0)
			return false;
		i += n;
	}
	return true;
}

static bool put_by_hook(noh_json_out *o, const char *name, const noh_type *type, uint32_t kind,
			const struct reply_part *part)
{
	noh_json_out before = *o;
	noh_json_reply r = { .kind = kind, .status = part->status, .body = part->body, .len = part->len };

	noh_json_put_raw(o, name, "", 0);
	r.json = o->len < o->room ? o->at + o->len : NULL;
	r.room = o->len < o->room ? o->room - o->len : 0;
	if (type->to_json(type->user, &r) == NOH_OK) {
		o->len += r.json_len;
		return true;
	}
	*o = before;
	return false;
}

void codec_put_bytes(noh_json_out *o, const char *name, const void *bytes, size_t len)
{
	noh_json value;

	if (len && noh_json_check(bytes, len, &value) == NOH_OK) {
		if (noh_json_type_of(value) == NOH_JSON_OBJECT) {
			noh_json_put_raw(o, name, value.at, value.len);
			return;
		}
		noh_json_open(o, name, '{');
		noh_json_put_raw(o, "value", value.at, value.len);
	} else {
		noh_json_open(o, name, '{');
		if (len && is_text(bytes, len))
			noh_json_put_text(o, "text", bytes, len);
		else if (len)
			noh_json_put_base64(o, "base64", bytes, len);
	}
	noh_json_close(o, '}');
}

void codec_put_answer(noh_json_out *o, const char *name, const noh_type *type, uint32_t kind, const struct reply_part *part)
{
	if (!part->len || !type->to_json || !put_by_hook(o, name, type, kind, part))
		codec_put_bytes(o, name, part->body, part->len);
}
