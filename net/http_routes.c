/* net/http_routes.c - every path of the HTTP face, once. */
#include "net/http.h"

#include "net/session.h"

#include <string.h>

const struct http_route http_routes[] = {
	{ "/healthz", "GET HEAD", SESSION_NOBODY, false, http_healthz, "healthz" },
	{ "/readyz", "GET HEAD", SESSION_NOBODY, false, http_readyz, "readyz" },
	{ .path = NULL },
};

uint32_t http_route_total(void)
{
	return sizeof http_routes / sizeof http_routes[0] - 1;
}

/* A few dozen rows: the lengths differ, so most cost one comparison. */
const struct http_route *http_route_find(const char *path, uint32_t len)
{
	for (const struct http_route *r = http_routes; r->path; r++)
		if (strncmp(r->path, path, len) == 0 && r->path[len] == 0)
			return r;
	return NULL;
}
