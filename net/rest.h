/* net/rest.h - the actor API over HTTP: seven paths, JSON in and out (SPEC 1.5), and the document that describes them.
 *
 * rest_form.c   the requests' fields, in one table: what is read and what /openapi.json says are the same
 * rest_reply.c  responses: JSON, and problems (messages and answers themselves: codec.h)
 * rest_send.c   /actor/send, /actor/invoke             rest_life.c   /actor/activate, /actor/deactivate
 * rest_look.c   /actor/status, /actor/list             rest_pool.c   /actor/pool/status
 * rest_admin.c  /admin/dead/..., /admin/schedule/...: what operators do             rest_drain.c  /admin/drain
 * rest_query.c  what comes behind the '?' of a GET, in one table as well
 * rest_tell.c   /actor/describe, /actor/tree, /admin/quarantine/...: how actors are, and who belongs to whom
 * openapi.c    /openapi.json; openapi_shapes.c: what responses look like
 *
 * Owns     nothing.   Threads  the worker of the connection.
 */
#ifndef NOH_NET_REST_H
#define NOH_NET_REST_H

#include "core/address.h"
#include "net/codec.h"
#include "net/http.h"

/* ── requests: rest_form.c ── */

enum rest_form_id { FORM_SEND, FORM_INVOKE, FORM_ACTIVATE, FORM_DEACTIVATE, FORM_STATUS, FORM_LIST, FORM_POOL,
		    FORM_DEAD_LIST, FORM_DEAD_SHOW, FORM_DEAD_REDRIVE, FORM_DEAD_PURGE, FORM_SCHEDULE_LIST, FORM_SCHEDULE_CANCEL,
		    FORM_QUARANTINE_LIST, FORM_QUARANTINE_RESUME, FORM_DRAIN, FORM_DRAIN_STATUS, FORMS };
enum { REST_FIELDS_MAX = 4 };
enum { SEND_ADDRESS, SEND_TYPE, SEND_MESSAGE, SEND_DELAY, INVOKE_TIMEOUT = SEND_DELAY };
enum { LIFE_ADDRESS, LIFE_FORCE };
enum { LIST_TYPE, LIST_ACTIVE, LIST_LIMIT, LIST_CURSOR };
enum { DEAD_LIMIT, DEAD_CURSOR, DEAD_ADDRESS };
enum { DEAD_ID };
enum { SCHEDULE_LIMIT, SCHEDULE_CURSOR, SCHEDULE_ADDRESS, SCHEDULE_TYPE };
enum { CANCEL_ADDRESS, CANCEL_KIND };
enum { DRAIN_DEADLINE, DRAIN_WAIT };
enum { QUARANTINE_TYPE, QUARANTINE_LIMIT };
enum { RESUME_WHOM, RESUME_ADDRESS };

struct rest_form {
	const char *path, *schema, *response;      /* "/actor/send", names of components                    */
	const char *summary;
	const noh_json_field *fields;
	const struct rest_field_text { const char *text, *example; } *texts;   /* of each field; example: JSON    */
	uint32_t count;
};
extern const struct rest_form rest_forms[FORMS];

/* The body of the request as this form; false: the problem is written (400: not JSON, 422: not this). */
bool rest_read(struct call *c, const struct http_request *q, enum rest_form_id form, noh_json_got *got);

/* An address and its type; false: the problem is written. */
struct rest_actor {
	char            address[ADDRESS_MAX + 1];  /* "type:id"                                             */
	uint32_t        len;
	const noh_type *type;
};
bool rest_actor(struct call *c, noh_json value, struct rest_actor *actor);

/* ── queries: rest_query.c ── */

enum rest_query_id { QUERY_EVENTS, QUERY_DESCRIBE, QUERY_TREE, QUERY_TRACE, QUERIES };
enum { QUERY_FIELDS_MAX = 8 };
enum { EVENTS_CURSOR, EVENTS_LAST, EVENTS_SINCE, EVENTS_ACTOR, EVENTS_TYPE, EVENTS_KIND, EVENTS_FOLLOW };
enum { DESCRIBE_ADDRESS, DESCRIBE_EVENTS };
enum { TREE_ROOT, TREE_LIMIT };
enum { TRACE_ID, TRACE_LIMIT };
enum { TRACE_LIST = 20, TRACE_LIST_MOST = 1000 };

struct rest_query {
	const char *path, *response, *summary;
	const noh_json_field *fields;
	const struct rest_field_text *texts;
	uint32_t count;
};
extern const struct rest_query rest_queries[QUERIES];

struct query_got {
	bool    given;
	int64_t n;                                 /* INT, BOOL; TIME: milliseconds since 1970              */
	int     len;
	char    text[ADDRESS_MAX + 1];             /* without escapes                                       */
};

/* Strictly: each at most once, none that is not in the table. NOH_OK, NOH_EINVAL. */
int  query_read(const struct rest_query *form, const char *text, size_t len, struct query_got *got);
bool rest_query(struct call *c, const struct http_request *q, enum rest_query_id id, struct query_got *got);   /* false: told so */
bool rest_query_actor(struct call *c, const struct query_got *got, char address[ADDRESS_MAX + 1]);            /* the same      */

/* The Idempotency-Key, without the quotes it may stand in; len 0: none. False: the problem is written. */
bool rest_key(struct call *c, const struct http_request *q, struct arg *key);

const char *rest_node(struct call *c);              /* the node's id: as long as the server                  */

/* ── responses: rest_reply.c ── */

/* null where there is none: "", 0. */
void rest_put_text(noh_json_out *o, const char *name, const char *text);
void rest_put_when(noh_json_out *o, const char *name, uint64_t ms);

/* What `write` writes is the whole body; it may be called twice, and must write the same. */
typedef void rest_write_fn(noh_json_out *o, const void *arg);
void rest_reply(struct out *o, int status, const char *type, const char *headers, rest_write_fn *write, const void *arg);
void rest_reply_json(struct out *o, int status, rest_write_fn *write, const void *arg);

/* A part without an answer, or a refusal, as a problem; more: further members, or NULL. */
void rest_problem(struct out *o, const struct reply_part *part, rest_write_fn *more, const void *arg);
void rest_problem_of(struct out *o, int code);      /* noh_why() tells */

http_fn rest_send, rest_invoke, rest_activate, rest_deactivate, rest_status, rest_list, rest_pool, rest_openapi;
http_fn rest_describe, rest_tree, rest_quarantine_list, rest_quarantine_resume;
http_fn rest_dead_list, rest_dead_show, rest_dead_redrive, rest_dead_purge, rest_schedule_list, rest_schedule_cancel, rest_drain,
	rest_drain_status;

#endif
