/* net/openapi.h - what /openapi.json says that no table of routes, forms or queries knows: openapi_shapes.c.
 *
 * Owns     nothing.   Threads  any: it is text.
 */
#ifndef NOH_NET_OPENAPI_H
#define NOH_NET_OPENAPI_H

/* A component: its name, its schema. */
struct openapi_shape { const char *name, *json; };
extern const struct openapi_shape openapi_shapes[];        /* ended by a name that is NULL */

/* A path without a form and without a query: what it answers, and (not_...) what else it may answer; NULL: nothing else. */
struct openapi_plain {
	const char *path, *summary;
	const char *type, *schema;
	const char *not_status, *not_what, *not_type, *not_schema;
};
extern const struct openapi_plain openapi_plain[];         /* ended by a path that is NULL */

#endif
