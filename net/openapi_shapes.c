/* net/openapi_shapes.c - the responses of /openapi.json: their shapes, beside each other, as they are in rest_*.c and http_*.c. */
#include "net/openapi.h"

#include <stddef.h>

#define JSON "application/json"
#define PROBLEM "application/problem+json"
#define STRING "{\"type\":\"string\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define COUNT "{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0}"
#define ADDRESS "{\"type\":\"string\",\"description\":\"Actor address in format {type}:{id}\"," \
	"\"example\":\"npc-brain:character-abc123\"}"
#define TIME(text) "{\"type\":\"string\",\"format\":\"date-time\",\"description\":\"" text "\"}"
#define TIME_OR_NULL(text) "{\"type\":\"string\",\"format\":\"date-time\",\"nullable\":true,\"description\":\"" text "\"}"
#define HEALTH "{\"type\":\"string\",\"enum\":[\"healthy\",\"degraded\",\"unavailable\"]}"

#define PAGE_END "\"next_cursor\":{\"type\":\"string\",\"nullable\":true,\"description\":\"For the next page; null: this was the " \
	"last\"},\"complete\":{\"type\":\"boolean\",\"description\":\"false: what happened in the last seconds may be missing\"}"

#define TEXT_OR_NULL(text) "{\"type\":\"string\",\"nullable\":true,\"description\":\"" text "\"}"
#define STATE "{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"activating\",\"deactivating\",\"down\",\"degraded\"," \
	"\"stopped\",\"quarantined\",\"awaiting\"]}"
#define UNWELL "\"state\":" STATE ",\"restarts\":" COUNT ",\"last_failure\":" TEXT_OR_NULL("Why it failed last") \
	",\"last_failure_at\":" TIME_OR_NULL("When that was") ",\"retry_at\":" TIME_OR_NULL("When it is tried again")
#define OBJECT "{\"type\":\"object\",\"additionalProperties\":true}"
#define CHANGE "{\"type\":\"object\",\"properties\":{\"setting\":" STRING ",\"old\":" STRING ",\"new\":" STRING ",\"where\":" STRING "}}"

const struct openapi_shape openapi_shapes[] = {
	{ "SendToActorResponse",
	  "{\"type\":\"object\",\"required\":[\"accepted\",\"actor_node\"],\"properties\":{\"accepted\":" BOOLEAN
	  ",\"actor_node\":{\"type\":\"string\",\"description\":\"Node handling this actor\"},\"later\":{\"type\":\"object\",\"description\":"
	  "\"With delay_ms: when it arrives, and the id it can be taken back with (message cancel of later:ADDRESS)\",\"required\":"
	  "[\"id\",\"due_at\"],\"properties\":{\"id\":" STRING ",\"due_at\":" TIME("When it is sent") "}}}}" },
	{ "InvokeActorResponse",
	  "{\"type\":\"object\",\"required\":[\"response\"],\"properties\":{\"response\":{\"type\":\"object\","
	  "\"additionalProperties\":true,\"description\":\"Actor's response payload\"}}}" },
	{ "ActivateActorResponse",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"node_id\",\"already_active\",\"activated_at\"],\"properties\":{"
	  "\"actor_address\":" ADDRESS ",\"node_id\":" STRING ",\"already_active\":" BOOLEAN
	  ",\"activated_at\":" TIME_OR_NULL("When it was activated; null: not known") "}}" },
	{ "DeactivateActorResponse",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"was_active\",\"messages_drained\"],\"properties\":{"
	  "\"actor_address\":" ADDRESS ",\"was_active\":" BOOLEAN ",\"messages_drained\":" COUNT "}}" },
	{ "ActorStatus",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"is_active\",\"node_id\",\"activated_at\",\"last_message_at\","
	  "\"messages_processed\",\"mailbox_size\"],\"properties\":{\"actor_address\":" ADDRESS ",\"is_active\":" BOOLEAN
	  ",\"node_id\":" STRING ",\"activated_at\":" TIME_OR_NULL("To 100 ms; null: it is not active")
	  ",\"last_message_at\":" TIME_OR_NULL("When it last did something, to 100 ms; null: it is not active")
	  ",\"messages_processed\":{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,\"description\":\"By its turns, since it "
	  "was activated\"},\"mailbox_size\":" COUNT
	  ",\"resting\":{\"type\":\"boolean\",\"description\":\"It handles nothing now: until there is room, an answer, or a token of its "
	  "type's limits\"},\"exists\":{\"type\":\"boolean\",\"description\":\"Something of it is kept\"}," UNWELL "}}" },
	{ "ListActorsResponse",
	  "{\"type\":\"object\",\"required\":[\"actors\",\"next_cursor\"],\"properties\":{\"actors\":{\"type\":\"array\",\"items\":{"
	  "\"$ref\":\"#/components/schemas/ActorStatus\"}},\"next_cursor\":{\"type\":\"string\",\"nullable\":true,\"description\":"
	  "\"For the next page; null: this was the last\"}}}" },
	{ "ActorPoolStatus",
	  "{\"type\":\"object\",\"required\":[\"total_nodes\",\"healthy_nodes\",\"total_actors_active\",\"total_capacity\","
	  "\"utilization_percent\",\"nodes\"],\"properties\":{\"total_nodes\":" COUNT ",\"healthy_nodes\":" COUNT
	  ",\"total_actors_active\":" COUNT ",\"total_capacity\":" COUNT
	  ",\"utilization_percent\":{\"type\":\"number\",\"format\":\"float\",\"minimum\":0,\"maximum\":100},\"nodes\":{\"type\":"
	  "\"array\",\"items\":{\"$ref\":\"#/components/schemas/ActorNodeStatus\"}}}}" },
	{ "ActorNodeStatus",
	  "{\"type\":\"object\",\"required\":[\"node_id\",\"status\",\"actors_active\",\"actors_capacity\",\"last_heartbeat\"],"
	  "\"properties\":{\"node_id\":" STRING ",\"status\":" HEALTH ",\"actors_active\":" COUNT ",\"actors_capacity\":" COUNT
	  ",\"actors_given_up\":{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,\"description\":\"Degraded, stopped, quarantined, or "
	  "awaiting a revision, as far as they were met since the start; the node is degraded while there are any\"}"
	  ",\"last_heartbeat\":" TIME("When it last showed up")
	  ",\"shards\":{\"type\":\"array\",\"description\":\"Its workers\",\"items\":{\"type\":\"object\",\"properties\":{"
	  "\"worker\":" COUNT ",\"status\":" HEALTH ",\"last_heartbeat\":" TIME("When it last showed up") "}}}}}" },
	{ "ListDeadResponse",
	  "{\"type\":\"object\",\"required\":[\"dead\",\"next_cursor\",\"complete\"],\"properties\":{\"dead\":{\"type\":\"array\",\"items\":{"
	  "\"$ref\":\"#/components/schemas/DeadMessage\"}}," PAGE_END "}}" },
	{ "DeadMessage",
	  "{\"type\":\"object\",\"required\":[\"id\",\"at\",\"actor_address\",\"message_type\",\"kind\",\"reason\",\"size\"],"
	  "\"properties\":{\"id\":" STRING ",\"at\":" TIME("When it was set aside") ",\"actor_address\":" ADDRESS
	  ",\"message_type\":" STRING ",\"kind\":" COUNT ",\"reason\":" STRING ",\"size\":" COUNT ",\"body_base64\":" STRING "}}" },
	{ "RedriveDeadResponse",
	  "{\"type\":\"object\",\"required\":[\"id\",\"redriven\"],\"properties\":{\"id\":" STRING ",\"redriven\":" BOOLEAN "}}" },
	{ "PurgeDeadResponse",
	  "{\"type\":\"object\",\"required\":[\"id\",\"purged\"],\"properties\":{\"id\":" STRING ",\"purged\":" BOOLEAN "}}" },
	{ "ListSchedulesResponse",
	  "{\"type\":\"object\",\"required\":[\"timers\",\"next_cursor\",\"complete\"],\"properties\":{\"timers\":{\"type\":\"array\","
	  "\"items\":{\"type\":\"object\",\"required\":[\"actor_address\",\"message_type\",\"kind\",\"due_at\",\"period_ms\"],"
	  "\"properties\":{\"actor_address\":" ADDRESS ",\"message_type\":" STRING ",\"kind\":" COUNT
	  ",\"due_at\":" TIME("When it fires next") ",\"period_ms\":" COUNT "}}}," PAGE_END "}}" },
	{ "CancelScheduleResponse",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"message_type\",\"was_scheduled\"],\"properties\":{\"actor_address\":" ADDRESS
	  ",\"message_type\":" STRING ",\"was_scheduled\":" BOOLEAN "}}" },
	{ "DrainState",
	  "{\"type\":\"object\",\"required\":[\"draining\",\"drained\",\"actors\",\"messages\",\"left_ms\"],\"properties\":{"
	  "\"draining\":" BOOLEAN ",\"drained\":" BOOLEAN ",\"actors\":" COUNT ",\"messages\":" COUNT ",\"left_ms\":" COUNT "}}" },
	{ "Event",
	  "{\"type\":\"object\",\"description\":\"The data of a server-sent event; its id is seq. A stream that is ended says so with an "
	  "event named cut, gone or end: reason, cursor\",\"required\":[\"seq\",\"at\",\"actor\",\"kind\",\"from\",\"to\",\"reason\","
	  "\"revision\",\"by_box\",\"data\"],\"properties\":{\"seq\":" COUNT ",\"at\":" TIME("When it happened")
	  ",\"actor\":" TEXT_OR_NULL("Address; or a type's name; null: the server itself") ",\"kind\":" STRING
	  ",\"from\":" TEXT_OR_NULL("State before") ",\"to\":" TEXT_OR_NULL("State after") ",\"reason\":" TEXT_OR_NULL("For people")
	  ",\"revision\":{\"type\":\"integer\",\"format\":\"int64\",\"nullable\":true},\"by_box\":" BOOLEAN
	  ",\"data\":{\"type\":\"object\",\"nullable\":true,\"additionalProperties\":true}}}" },
	{ "ActorDescription",
	  "{\"type\":\"object\",\"required\":[\"actor_address\",\"state\",\"health\",\"desired_revision\",\"observed_revision\","
	  "\"reconcile_error\",\"restarts\",\"last_failure\",\"mailbox_size\",\"events\"],\"properties\":{\"actor_address\":" ADDRESS
	  ",\"state\":" STATE ",\"health\":" STRING ",\"is_active\":" BOOLEAN ",\"exists\":" BOOLEAN ",\"desired_revision\":" COUNT
	  ",\"observed_revision\":" COUNT ",\"reconcile_error\":" TEXT_OR_NULL("Of its last try to get there")
	  ",\"restarts\":" COUNT ",\"last_failure\":" TEXT_OR_NULL("Why it failed last")
	  ",\"last_failure_at\":" TIME_OR_NULL("When that was") ",\"retry_at\":" TIME_OR_NULL("Down or degraded: when it is tried again")
	  ",\"mailbox_size\":" COUNT ",\"parent\":" TEXT_OR_NULL("Who supervises it") ",\"children\":" COUNT
	  ",\"activated_at\":" TIME_OR_NULL("To 100 ms; null: it is not active")
	  ",\"last_message_at\":" TIME_OR_NULL("To 100 ms; null: it is not active")
	  ",\"cursor\":{\"type\":\"integer\",\"format\":\"int64\",\"description\":\"What happens after this event may not be in here\"}"
	  ",\"events\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Event\"}}}}" },
	{ "ActorTree",
	  "{\"type\":\"object\",\"required\":[\"actors\",\"complete\"],\"properties\":{\"actors\":{\"type\":\"array\",\"description\":\"Depth "
	  "first, children in the order spawned\",\"items\":{\"type\":\"object\",\"properties\":{\"actor_address\":" ADDRESS ",\"depth\":" COUNT
	  ",\"last\":{\"type\":\"boolean\",\"description\":\"Of its parent's children\"}," UNWELL "}}},\"complete\":" BOOLEAN "}}" },
	{ "ListQuarantineResponse",
	  "{\"type\":\"object\",\"required\":[\"quarantined\",\"complete\"],\"properties\":{\"quarantined\":{\"type\":\"array\",\"items\":{"
	  "\"type\":\"object\",\"properties\":{\"actor_address\":" ADDRESS "," UNWELL ",\"parent\":" TEXT_OR_NULL("Who supervises it")
	  "}}},\"complete\":" BOOLEAN "}}" },
	{ "ResumeResponse", "{\"type\":\"object\",\"required\":[\"resumed\"],\"properties\":{\"resumed\":" STRING "}}" },
	{ "Health", "{\"type\":\"object\",\"required\":[\"status\"],\"properties\":{\"status\":{\"type\":\"string\",\"enum\":[\"ok\"]}}}" },
	{ "Readiness",
	  "{\"type\":\"object\",\"required\":[\"status\"],\"properties\":{\"status\":{\"type\":\"string\",\"enum\":[\"ready\",\"not ready\"]},"
	  "\"reason\":{\"type\":\"string\",\"description\":\"Why it is not\"}}}" },
	{ "Metrics", "{\"type\":\"string\",\"description\":\"Prometheus' text format 0.0.4; OpenMetrics for who accepts application/openmetrics-text\"}" },
	{ "Document", "{\"type\":\"object\",\"description\":\"OpenAPI 3.0\",\"required\":[\"openapi\",\"info\",\"paths\"],\"properties\":{"
	  "\"openapi\":" STRING ",\"info\":" OBJECT ",\"servers\":{\"type\":\"array\",\"items\":" OBJECT "},\"paths\":" OBJECT
	  ",\"components\":" OBJECT "}}" },
	{ "ReloadResponse",
	  "{\"type\":\"object\",\"required\":[\"reloaded\",\"changed\",\"restart\",\"warnings\"],\"properties\":{\"reloaded\":" BOOLEAN
	  ",\"changed\":{\"type\":\"array\",\"description\":\"In force now\",\"items\":" CHANGE "},\"restart\":{\"type\":\"array\","
	  "\"description\":\"Will be after a restart\",\"items\":" CHANGE "},\"warnings\":{\"type\":\"array\",\"items\":" STRING "}}}" },
	{ "ReloadRefused",
	  "{\"allOf\":[{\"$ref\":\"#/components/schemas/Problem\"},{\"type\":\"object\",\"properties\":{\"errors\":{\"type\":\"array\",\"items\":"
	  STRING "}}}]}" },
	{ "Traces", "{\"oneOf\":[{\"$ref\":\"#/components/schemas/TraceList\"},{\"$ref\":\"#/components/schemas/Trace\"}]}" },
	{ "TraceList",
	  "{\"type\":\"object\",\"required\":[\"traces\"],\"properties\":{\"traces\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
	  "\"trace_id\":" STRING ",\"began\":" TIME("When the first was received") ",\"took_us\":" COUNT ",\"spans\":" COUNT ",\"status\":" STRING
	  ",\"actor\":" STRING ",\"kind\":" STRING "}}}}}" },
	{ "Trace",
	  "{\"type\":\"object\",\"required\":[\"trace_id\",\"spans\"],\"properties\":{\"trace_id\":" STRING ",\"spans\":{\"type\":\"array\",\"items\":{"
	  "\"type\":\"object\",\"properties\":{\"span_id\":" STRING ",\"parent_id\":" TEXT_OR_NULL("The span it came from") ",\"actor\":" STRING
	  ",\"kind\":" STRING ",\"status\":" STRING ",\"worker\":" COUNT ",\"batch\":{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,"
	  "\"description\":\"How many messages its turn handled\"},\"received\":" TIME_OR_NULL("It came") ",\"queued\":" TIME_OR_NULL("In the mailbox")
	  ",\"started\":" TIME_OR_NULL("Its turn began") ",\"ended\":" TIME_OR_NULL("Its turn was over") ",\"on_disk\":" TIME_OR_NULL("It is on disk")
	  ",\"answered\":" TIME_OR_NULL("The answer left") "}}}}}" },
	{ NULL, NULL },
};

/* ── paths that no table of fields knows ── */

const struct openapi_plain openapi_plain[] = {
	{ .path = "/healthz", .summary = "Is it alive? If this fails, restart it", .type = JSON, .schema = "Health" },
	{ .path = "/readyz", .summary = "May it be sent traffic?", .type = JSON, .schema = "Readiness", .not_status = "503",
	  .not_what = "It stops, is drained, or has no space left on disk", .not_type = JSON, .not_schema = "Readiness" },
	{ .path = "/metrics", .summary = "How it is, for Prometheus", .type = "text/plain", .schema = "Metrics", .not_status = "401",
	  .not_what = "Others can reach this server, and who asks is not known", .not_type = PROBLEM, .not_schema = "Problem" },
	{ .path = "/openapi.json", .summary = "This document", .type = JSON, .schema = "Document" },
	{ .path = "/admin/config/reload", .summary = "Read settings and users again: what changed, and what needs a restart", .type = JSON,
	  .schema = "ReloadResponse", .not_status = "422", .not_what = "The settings have errors, and nothing was changed", .not_type = PROBLEM,
	  .not_schema = "ReloadRefused" },
	{ .path = NULL },
};
