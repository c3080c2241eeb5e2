/* net/http_health.c - is it alive, and is it ready: for whoever restarts it, or sends it traffic. */
#include "net/http.h"

#include "net/net.h"

#include <stdio.h>

static const char json[] = "application/json";

void http_healthz(struct call *c, const struct http_request *q)
{
	static const char alive[] = "{\"status\":\"ok\"}\n";

	(void)q;
	http_reply(call_out(c), 200, json, "", alive, sizeof alive - 1);
}

/* It is served from the moment on when all is replayed: whoever gets here too early is refused a connection. */
static const char *not_ready(struct call *c)
{
	noh_box_stats stats;

	if (load_relaxed(&c->net->server->stopping))
		return "stopping";
	if (net_draining(c->net))
		return "draining";
	if (noh_get_stats(call_box(c), &stats) != NOH_OK)
		return "starting";
	return stats.read_only ? "read-only: no space left on disk" : NULL;
}

void http_readyz(struct call *c, const struct http_request *q)
{
	static const char ready[] = "{\"status\":\"ready\"}\n";
	const char *why = not_ready(c);
	char body[128];

	(void)q;
	if (!why) {
		http_reply(call_out(c), 200, json, "", ready, sizeof ready - 1);
		return;
	}
	int len = snprintf(body, sizeof body, "{\"status\":\"not ready\",\"reason\":\"%s\"}\n", why);

	http_reply(call_out(c), 503, json, "Retry-After: 1\r\n", body, (size_t)len);
}
