/* net/rest_reply.c - responses: JSON, and problems. */
#include "net/rest.h"

#include "core/error.h"
#include "core/mem.h"
#include "net/status.h"

#include <stdio.h>
#include <string.h>

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
