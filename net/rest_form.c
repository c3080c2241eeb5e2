/* net/rest_form.c - the requests of the actor API: their fields, once, for reading and for /openapi.json. */
#include "net/rest.h"

#include "core/error.h"
#include "net/net.h"
#include "noh_actors.h"

#include <string.h>

enum { TIMEOUT_PRESET_MS = 30000, TIMEOUT_MOST_MS = 86400000, LIST_PRESET = 100, LIST_MOST = 1000 };

#define ADDRESS_FIELD { .name = "actor_address", .type = NOH_JSON_STRING, .required = true, .least = 3, .most = ADDRESS_MAX }
#define ADDRESS_TEXT { "Actor address in format {type}:{id}", "\"npc-brain:character-abc123\"" }

#define TYPE_FIELD { .name = "message_type", .type = NOH_JSON_STRING, .required = true, .least = 1, .most = 255 }
#define TYPE_TEXT { "Kind of the message: a name of the actor's type", "\"perception\"" }
#define MESSAGE_FIELD { .name = "message", .type = NOH_JSON_OBJECT, .required = true }
#define MESSAGE_TEXT { "Message payload (JSON)", NULL }

static const noh_json_field send_fields[] = {
	[SEND_ADDRESS] = ADDRESS_FIELD,
	[SEND_TYPE] = TYPE_FIELD,
	[SEND_MESSAGE] = MESSAGE_FIELD,
	[SEND_DELAY] = { .name = "delay_ms", .type = NOH_JSON_INT, .least = 0, .most = (int64_t)NOH_LATER_MAX_MS },
};
static const struct rest_field_text send_texts[] = {
	[SEND_ADDRESS] = ADDRESS_TEXT,
	[SEND_TYPE] = TYPE_TEXT,
	[SEND_MESSAGE] = MESSAGE_TEXT,
	[SEND_DELAY] = { "It arrives so many milliseconds later, once, also after a crash", NULL },
};

static const noh_json_field invoke_fields[] = {
	[SEND_ADDRESS] = ADDRESS_FIELD,
	[SEND_TYPE] = TYPE_FIELD,
	[SEND_MESSAGE] = MESSAGE_FIELD,
	[INVOKE_TIMEOUT] = { .name = "timeout_ms", .type = NOH_JSON_INT, .least = 1, .most = TIMEOUT_MOST_MS,
			     .preset = TIMEOUT_PRESET_MS },
};
static const struct rest_field_text invoke_texts[] = {
	[SEND_ADDRESS] = ADDRESS_TEXT,
	[SEND_TYPE] = TYPE_TEXT,
	[SEND_MESSAGE] = MESSAGE_TEXT,
	[INVOKE_TIMEOUT] = { "How long to wait for the response, in milliseconds", NULL },
};

static const noh_json_field life_fields[] = {
	[LIFE_ADDRESS] = ADDRESS_FIELD,
	[LIFE_FORCE] = { .name = "force", .type = NOH_JSON_BOOL },
};
static const struct rest_field_text life_texts[] = {
	[LIFE_ADDRESS] = ADDRESS_TEXT,
	[LIFE_FORCE] = { "Force immediate deactivation without draining inbox", NULL },
};

static const noh_json_field list_fields[] = {
	[LIST_TYPE] = { .name = "actor_type", .type = NOH_JSON_STRING, .least = 1, .most = TYPE_NAME_MAX },
	[LIST_ACTIVE] = { .name = "active_only", .type = NOH_JSON_BOOL, .preset = true },
	[LIST_LIMIT] = { .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = LIST_MOST, .preset = LIST_PRESET },
	[LIST_CURSOR] = { .name = "cursor", .type = NOH_JSON_STRING, .least = 1, .most = 64 },
};
static const struct rest_field_text list_texts[] = {
	[LIST_TYPE] = { "Only actors of this type", "\"npc-brain\"" },
	[LIST_ACTIVE] = { "Only those that are in memory; false: also those that are stored", NULL },
	[LIST_LIMIT] = { "How many at most; of stored ones about so many", NULL },
	[LIST_CURSOR] = { "next_cursor of the page before", NULL },
};

/* ── of operators ── */

#define PAGE_FIELDS \
	{ .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = LIST_MOST, .preset = LIST_PRESET }, \
	{ .name = "cursor", .type = NOH_JSON_STRING, .least = 1, .most = NOH_CURSOR - 1 }, \
	{ .name = "actor_address", .type = NOH_JSON_STRING, .least = 3, .most = ADDRESS_MAX }
#define PAGE_TEXTS \
	{ "How many at most", NULL }, { "next_cursor of the page before", NULL }, { "Only of this actor", "\"counter:hits\"" }

static const noh_json_field dead_fields[] = { PAGE_FIELDS };
static const struct rest_field_text dead_texts[] = { PAGE_TEXTS };

static const noh_json_field dead_id_fields[] = {
	[DEAD_ID] = { .name = "id", .type = NOH_JSON_STRING, .required = true, .least = 3, .most = 43 } };
static const struct rest_field_text dead_id_texts[] = { [DEAD_ID] = { "Of /admin/dead/list", "\"1794834000123-7\"" } };

static const noh_json_field schedule_fields[] = { PAGE_FIELDS,
	[SCHEDULE_TYPE] = { .name = "actor_type", .type = NOH_JSON_STRING, .least = 1, .most = TYPE_NAME_MAX } };
static const struct rest_field_text schedule_texts[] = { PAGE_TEXTS,
	[SCHEDULE_TYPE] = { "Only of actors of this type", "\"inventory\"" } };

static const noh_json_field cancel_fields[] = {
	[CANCEL_ADDRESS] = ADDRESS_FIELD,
	[CANCEL_KIND] = { .name = "message_type", .type = NOH_JSON_STRING, .required = true, .least = 1, .most = 255 },
};
static const struct rest_field_text cancel_texts[] = {
	[CANCEL_ADDRESS] = ADDRESS_TEXT,
	[CANCEL_KIND] = { "Kind of the timer's message: a name of the actor's type, or its number", "\"expire\"" },
};

static const noh_json_field drain_fields[] = {
	[DRAIN_DEADLINE] = { .name = "deadline_ms", .type = NOH_JSON_INT, .least = 1, .most = TIMEOUT_MOST_MS,
			     .preset = TIMEOUT_PRESET_MS },
	[DRAIN_WAIT] = { .name = "wait", .type = NOH_JSON_BOOL },
};
static const struct rest_field_text drain_texts[] = {
	[DRAIN_DEADLINE] = { "How long it may take to finish what waits, in milliseconds", NULL },
	[DRAIN_WAIT] = { "Answer when it is over, and not at once", NULL },
};

static const noh_json_field quarantine_fields[] = {
	[QUARANTINE_TYPE] = { .name = "actor_type", .type = NOH_JSON_STRING, .least = 1, .most = TYPE_NAME_MAX },
	[QUARANTINE_LIMIT] = { .name = "limit", .type = NOH_JSON_INT, .least = 1, .most = LIST_MOST, .preset = LIST_PRESET },
};
static const struct rest_field_text quarantine_texts[] = {
	[QUARANTINE_TYPE] = { "Only actors of this type", "\"npc-brain\"" },
	[QUARANTINE_LIMIT] = { "How many at most", NULL },
};

static const noh_json_field resume_fields[] = {
	[RESUME_WHOM] = { .name = "actor", .type = NOH_JSON_STRING, .least = 1, .most = ADDRESS_MAX },
	[RESUME_ADDRESS] = { .name = "actor_address", .type = NOH_JSON_STRING, .least = 1, .most = ADDRESS_MAX } };
static const struct rest_field_text resume_texts[] = {
	[RESUME_WHOM] = { "Its address; or the name of a type: all of that type that are not healthy", "\"npc-brain:character-abc123\"" },
	[RESUME_ADDRESS] = { "The same: one of the two is given", NULL } };

const struct rest_form rest_forms[FORMS] = {
	[FORM_SEND] = { "/actor/send", "SendToActorRequest", "SendToActorResponse",
			"Send a message to an actor; it is activated if need be", send_fields, send_texts, 4 },
	[FORM_INVOKE] = { "/actor/invoke", "InvokeActorRequest", "InvokeActorResponse",
			  "Send a message to an actor and wait for its response", invoke_fields, invoke_texts, 4 },
	[FORM_ACTIVATE] = { "/actor/activate", "ActivateActorRequest", "ActivateActorResponse",
			    "Bring an actor into memory", life_fields, life_texts, 1 },
	[FORM_DEACTIVATE] = { "/actor/deactivate", "DeactivateActorRequest", "DeactivateActorResponse",
			      "Send an actor back to storage", life_fields, life_texts, 2 },
	[FORM_STATUS] = { "/actor/status", "GetActorStatusRequest", "ActorStatus",
			  "What is known of an actor; never activates it", life_fields, life_texts, 1 },
	[FORM_LIST] = { "/actor/list", "ListActorsRequest", "ListActorsResponse", "Who is there, page by page", list_fields,
			list_texts, 4 },
	[FORM_POOL] = { "/actor/pool/status", "GetPoolStatusRequest", "ActorPoolStatus", "How the server is", NULL, NULL, 0 },
	[FORM_DEAD_LIST] = { "/admin/dead/list", "ListDeadRequest", "ListDeadResponse", "Messages that were set aside, the oldest first",
			     dead_fields, dead_texts, 3 },
	[FORM_DEAD_SHOW] = { "/admin/dead/show", "ShowDeadRequest", "DeadMessage", "One of them, with its body", dead_id_fields,
			     dead_id_texts, 1 },
	[FORM_DEAD_REDRIVE] = { "/admin/dead/redrive", "RedriveDeadRequest", "RedriveDeadResponse",
				"Send it to its actor again: once, however often this is asked for", dead_id_fields, dead_id_texts, 1 },
	[FORM_DEAD_PURGE] = { "/admin/dead/purge", "PurgeDeadRequest", "PurgeDeadResponse", "Forget it", dead_id_fields, dead_id_texts, 1 },
	[FORM_SCHEDULE_LIST] = { "/admin/schedule/list", "ListSchedulesRequest", "ListSchedulesResponse",
				 "Durable timers, the soonest first", schedule_fields, schedule_texts, 4 },
	[FORM_SCHEDULE_CANCEL] = { "/admin/schedule/cancel", "CancelScheduleRequest", "CancelScheduleResponse",
				   "Take a timer away from an actor", cancel_fields, cancel_texts, 2 },
	[FORM_DRAIN] = { "/admin/drain", "DrainRequest", "DrainState", "Refuse new work, finish what waits, and end", drain_fields,
			 drain_texts, 2 },
	[FORM_DRAIN_STATUS] = { "/admin/drain/status", "GetDrainRequest", "DrainState", "How far a drain is", NULL, NULL, 0 },
	[FORM_QUARANTINE_LIST] = { "/admin/quarantine/list", "ListQuarantineRequest", "ListQuarantineResponse",
				   "Actors that are degraded, stopped, quarantined or awaiting a revision", quarantine_fields,
				   quarantine_texts, 2 },
	[FORM_QUARANTINE_RESUME] = { "/admin/quarantine/resume", "ResumeRequest", "ResumeResponse",
				     "Let an actor that is not healthy begin anew", resume_fields, resume_texts, 2 },
};

bool rest_read(struct call *c, const struct http_request *q, enum rest_form_id id, noh_json_got *got)
{
	const struct rest_form *f = &rest_forms[id];
	noh_json whole;
	int rc = noh_json_check(q->body.at, q->body.len, &whole);

	if (rc == NOH_EINVAL) {
		http_problem(call_out(c), 400, "bad_json", "", "%s", noh_why());
		return false;
	}
	if (rc == NOH_OK)
		rc = json_fields(whole, f->fields, f->count, got);
	if (rc == NOH_OK)
		return true;
	rest_problem_of(call_out(c), rc);
	return false;
}

bool rest_actor(struct call *c, noh_json value, struct rest_actor *actor)
{
	char text[ADDRESS_MAX + 1], type[TYPE_NAME_MAX + 1];
	size_t len = noh_json_text(value, text, sizeof text);
	struct address a;
	int rc = address_parse(&a, text, len);

	if (rc != NOH_OK) {
		rest_problem_of(call_out(c), rc);
		return false;
	}
	memcpy(type, a.type, a.type_len);
	type[a.type_len] = 0;
	memcpy(actor->address, text, len);
	actor->address[a.type_len] = ':';                /* it may have been a slash */
	actor->address[len] = 0;
	actor->len = (uint32_t)len;
	actor->type = noh_find_type(call_box(c), type);
	if (actor->type)
		return true;
	rest_problem_of(call_out(c), error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type));
	return false;
}

/* RFC 8941 has it as a string in quotes; most clients leave them out. */
bool rest_key(struct call *c, const struct http_request *q, struct arg *key)
{
	*key = q->idempotency_key;
	if (key->len >= 2 && key->at[0] == '"' && key->at[key->len - 1] == '"') {
		key->at++;
		key->len -= 2;
		if (memchr(key->at, '\\', key->len) || memchr(key->at, '"', key->len))
			key->len = 0;
	}
	if (q->idempotency_key.at == NULL || (key->len >= 1 && key->len <= 255))
		return true;
	http_problem(call_out(c), 400, "bad_idempotency_key", "", "an Idempotency-Key has 1 to 255 bytes, without quotes or "
		     "backslashes in it");
	return false;
}

const char *rest_node(struct call *c)
{
	return c->net->server->node_id;
}
