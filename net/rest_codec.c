/* net/rest_codec.c - messages and answers of actors between JSON and bytes, by their type's hooks or without; and
 * responses. noh.h, section 3, says what is promised.
 */
#include "net/rest.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "net/status.h"

#include <stdio.h>
#include <string.h>

/* ── messages ── */

/* A name of the type's table; of a type without one, a number. */
static int kind_of(noh_box *box, const noh_type *type, const char *name, uint32_t *kind)
{
	uint64_t n = 0;
	int number;

	if (type->kinds) {
		number = noh_kind_number(box, type->name, name);
		*kind = number < 0 ? UINT32_MAX : (uint32_t)number;
		return number < 0 ? number : NOH_OK;
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

static int by_hook(const noh_type *type, const char *name, noh_json message, size_t most, struct rest_message *m)
{
	noh_json_message j = { .type = name, .json = message.at, .json_len = message.len, .kind = m->kind,
			       .body = m->inside, .room = sizeof m->inside };
	int rc;

	(void)error_set(NOH_EINVAL, "this is no \"%s\" message of type %s", name, type->name);
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
		return error_set(NOH_EKIND, "type %s has no message \"%s\"", type->name, name);
	if (rc == NOH_OK && j.len > j.room)
		return error_set(NOH_ETOOBIG, "the message is larger than the room for it: %zu bytes", j.len);
	if (rc != NOH_OK)
		return j.why[0] ? error_set(rc, "%.*s", (int)strnlen(j.why, sizeof j.why), j.why) : rc;
	m->kind = j.kind;
	m->body = j.body;
	m->len = (uint32_t)j.len;
	return NOH_OK;
}

int rest_message(noh_box *box, const noh_type *type, noh_json message_type, noh_json message, size_t most,
		struct rest_message *m)
{
	char name[256];
	size_t len = noh_json_text(message_type, name, sizeof name);
	int rc;

	m->big = NULL;
	m->body = NULL;
	m->len = m->kind = 0;
	if (len >= sizeof name || strlen(name) != len)
		return error_set(NOH_EKIND, "type %s has no such message", type->name);
	rc = kind_of(box, type, name, &m->kind);
	if (type->from_json)
		return by_hook(type, name, message, most, m);
	m->body = message.at;
	m->len = (uint32_t)message.len;
	return rc;
}

void rest_message_free(struct rest_message *m)
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

void rest_put_text(noh_json_out *o, const char *name, const char *text)
{
	if (*text)
		noh_json_put_text(o, name, text, strlen(text));
	else
		noh_json_put_null(o, name);
}

void rest_put_when(noh_json_out *o, const char *name, uint64_t ms)
{
	if (ms)
		noh_json_put_time(o, name, (int64_t)ms);
	else
		noh_json_put_null(o, name);
}

void rest_put_bytes(noh_json_out *o, const char *name, const void *bytes, size_t len)
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

void rest_put_answer(noh_json_out *o, const char *name, const noh_type *type, uint32_t kind, const struct reply_part *part)
{
	if (!part->len || !type->to_json || !put_by_hook(o, name, type, kind, part))
		rest_put_bytes(o, name, part->body, part->len);
}

/* ── responses ── */

void rest_reply(struct out *o, int status, const char *type, const char *headers, rest_write_fn *write, const void *arg)
{
	char inside[2048], *big = NULL;
	noh_json_out body = { .at = inside, .room = sizeof inside - 1 };
	size_t room = 0;

	write(&body, arg);
	if (body.len > body.room) {
		room = body.len + 1;
		big = mem_alloc(room);
		if (!big) {
			http_problem(o, 503, "out_of_memory", "", "no memory for a response of %zu bytes; what was asked for "
				     "has happened", room);
			return;
		}
		body = (noh_json_out){ .at = big, .room = room - 1 };
		write(&body, arg);
	}
	body.at[body.len] = '\n';
	http_reply(o, status, type, headers, body.at, body.len + 1);
	mem_free(big, room);
}

void rest_reply_json(struct out *o, int status, rest_write_fn *write, const void *arg)
{
	rest_reply(o, status, "application/json", o->replayed ? "Idempotency-Replayed: true\r\n" : "", write, arg);
}

struct problem {
	const struct status     *status;
	const struct reply_part *part;
	rest_write_fn            *more;
	const void              *arg;
};

static void put_c_text(noh_json_out *o, const char *name, const char *text)
{
	noh_json_put_text(o, name, text, strlen(text));
}

static void write_problem(noh_json_out *o, const void *arg)
{
	const struct problem *p = arg;

	noh_json_open(o, NULL, '{');
	put_c_text(o, "type", "about:blank");
	put_c_text(o, "title", http_status_text(p->status->http));
	noh_json_put_int(o, "status", p->status->http);
	if (p->part->len && p->part->status != NOH_REFUSED)      /* a sentence; of a refusal it is the actor's answer */
		noh_json_put_text(o, "detail", p->part->body, p->part->len < HTTP_DETAIL_MAX ? p->part->len : HTTP_DETAIL_MAX);
	else
		put_c_text(o, "detail", p->status->text ? p->status->text : noh_strerror(p->part->status));
	put_c_text(o, "code", p->status->name);
	if (p->more)
		p->more(o, p->arg);
	noh_json_close(o, '}');
}

static bool says_when(const struct reply_part *part)
{
	return part->len > 4 && memcmp((const char *)part->body + part->len - 3, " ms", 3) == 0;
}

/* "... try again in 2500 ms": what the sentences of NOH_ERATE and NOH_EDEGRADED end with. */
static unsigned long long seconds_said(const struct reply_part *part)
{
	const char *at = says_when(part) ? (const char *)part->body + part->len - 3 : NULL;
	unsigned long long ms = 0, digit = 1;

	if (!at)
		return 1;
	while (at > (const char *)part->body && at[-1] >= '0' && at[-1] <= '9' && digit <= 1000000000) {
		ms += (unsigned long long)(*--at - '0') * digit;
		digit *= 10;
	}
	return ms > 1000 ? (ms + 999) / 1000 : 1;
}

/* Try again later, where that may help; and that it is the stored refusal. */
static const char *problem_headers(const struct out *o, int http, const struct reply_part *part, char *room, size_t size)
{
	/* Who was given up waits for somebody, not for a time. */
	if (part->status == NOH_EQUARANTINED || (part->status == NOH_EDEGRADED && !says_when(part)))
		return "";
	if (http == 429 || http == 503 || http == 507) {
		bool said = part->status == NOH_ERATE || part->status == NOH_EDEGRADED;

		snprintf(room, size, "Retry-After: %llu\r\n", said ? seconds_said(part) : 1);
		return room;
	}
	return o->replayed ? "Idempotency-Replayed: true\r\n" : "";
}

void rest_problem(struct out *o, const struct reply_part *part, rest_write_fn *more, const void *arg)
{
	struct problem p = { status_of(part->status), part, more, arg };
	char room[48];

	rest_reply(o, p.status->http, "application/problem+json", problem_headers(o, p.status->http, part, room, sizeof room),
		   write_problem, &p);
}

void rest_problem_of(struct out *o, int code)
{
	const char *why = noh_why();

	o->replayed = false;
	rest_problem(o, &(struct reply_part){ code, (uint32_t)strlen(why), why }, NULL, NULL);
}
