/* net/http_routes.c - every path of the HTTP face, once. */
#include "net/http.h"

#include "net/rest.h"
#include "net/session.h"

#include <string.h>

const struct http_route http_routes[] = {
	{ "/healthz", "GET HEAD", SESSION_NOBODY, false, http_healthz, "healthz" },
	{ "/readyz", "GET HEAD", SESSION_NOBODY, false, http_readyz, "readyz" },
	{ "/metrics", "GET HEAD", SESSION_NOBODY, false, http_metrics, "metrics" },
	{ "/admin/config/reload", "POST", NOH_ADMIN, false, http_config_reload, "configReload" },
	{ "/openapi.json", "GET HEAD", SESSION_NOBODY, false, rest_openapi, "GetOpenApi" },
	{ "/actor/send", "POST", NOH_USER, true, rest_send, "SendToActor" },
	{ "/actor/invoke", "POST", NOH_USER, true, rest_invoke, "InvokeActor" },
	{ "/actor/activate", "POST", NOH_DEVELOPER, true, rest_activate, "ActivateActor" },
	{ "/actor/deactivate", "POST", NOH_DEVELOPER, true, rest_deactivate, "DeactivateActor" },
	{ "/actor/status", "POST", NOH_USER, true, rest_status, "GetActorStatus" },
	{ "/actor/list", "POST", NOH_DEVELOPER, true, rest_list, "ListActors" },
	{ "/actor/pool/status", "POST", NOH_ADMIN, true, rest_pool, "GetActorPoolStatus" },
	{ "/trace", "GET HEAD", NOH_DEVELOPER, false, http_trace, "traceShow" },
	{ "/admin/dead/list", "POST", NOH_DEVELOPER, true, rest_dead_list, "ListDead" },
	{ "/admin/dead/show", "POST", NOH_DEVELOPER, true, rest_dead_show, "ShowDead" },
	{ "/admin/dead/redrive", "POST", NOH_ADMIN, true, rest_dead_redrive, "RedriveDead" },
	{ "/admin/dead/purge", "POST", NOH_ADMIN, true, rest_dead_purge, "PurgeDead" },
	{ "/admin/schedule/list", "POST", NOH_DEVELOPER, true, rest_schedule_list, "ListSchedules" },
	{ "/admin/schedule/cancel", "POST", NOH_ADMIN, true, rest_schedule_cancel, "CancelSchedule" },
	{ "/admin/drain", "POST", NOH_ADMIN, true, rest_drain, "Drain" },
	{ "/admin/drain/status", "POST", NOH_DEVELOPER, true, rest_drain_status, "GetDrain" },
	{ "/events", "GET", NOH_DEVELOPER, false, http_events, "StreamEvents" },
	{ "/actor/describe", "GET HEAD", NOH_DEVELOPER, false, rest_describe, "DescribeActor" },
	{ "/actor/tree", "GET HEAD", NOH_DEVELOPER, false, rest_tree, "GetActorTree" },
	{ "/admin/quarantine/list", "POST", NOH_DEVELOPER, true, rest_quarantine_list, "ListQuarantine" },
	{ "/admin/quarantine/resume", "POST", NOH_ADMIN, true, rest_quarantine_resume, "ResumeQuarantined" },
	{ .path = NULL },
};

uint32_t http_route_total(const struct http_route *routes)
{
	uint32_t n = 0;

	while (routes[n].path)
		n++;
	return n;
}

bool http_route_is(const struct http_route *r, const char *path, uint32_t len)
{
	return strncmp(r->path, path, len) == 0 && r->path[len] == 0;
}

/* A few dozen rows: the lengths differ, so most cost one comparison. */
const struct http_route *http_route_find(const struct http_route *routes, const char *path, uint32_t len)
{
	for (const struct http_route *r = routes; r->path; r++)
		if (http_route_is(r, path, len))
			return r;
	return NULL;
}
