/* actors/json.h - what the JSON forms of the built-in types have in common.
 *
 * Owns     nothing.   Threads  any: they are outside of turns.
 */
#ifndef NOH_ACTORS_JSON_H
#define NOH_ACTORS_JSON_H

#include "noh_actors.h"
#include "noh_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One message type: its name, the kind it is, its fields, and how its body is made of them. */
typedef int json_body_fn(noh_json_message *m, const noh_json_got *got);
struct json_form {
	const char           *type;
	uint32_t              kind;
	const noh_json_field *fields;
	uint32_t              count;
	json_body_fn         *body;      /* NULL: there is none */
};
enum { JSON_FIELDS_MAX = 8 };

static inline int json_says(noh_json_message *m, const char *format, ...) NOH_PRINTF(2, 3);
static inline int json_says(noh_json_message *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(m->why, sizeof m->why, format, args);
	va_end(args);
	return NOH_EINVAL;
}

static inline int json_body(noh_json_message *m, const void *body, size_t len)
{
	memcpy(m->body, body, len);              /* room is 256 at least */
	m->len = len;
	return NOH_OK;
}

static inline int json_form_read(const struct json_form *forms, size_t count, noh_json_message *m)
{
	noh_json_got got[JSON_FIELDS_MAX];

	for (size_t i = 0; i < count; i++) {
		if (strcmp(forms[i].type, m->type) != 0)
			continue;
		int rc = noh_json_read(m->json, m->json_len, forms[i].fields, forms[i].count, got);

		m->kind = forms[i].kind;
		m->len = 0;
		return rc == NOH_OK && forms[i].body ? forms[i].body(m, got) : rc;
	}
	size_t len = (size_t)snprintf(m->why, sizeof m->why, "it has");

	for (size_t i = 0; i < count && len < sizeof m->why; i++)
		len += (size_t)snprintf(m->why + len, sizeof m->why - len, "%s %s", i ? "," : "", forms[i].type);
	return NOH_EKIND;
}

/* Begins the object with its outcome. */
static inline noh_json_out json_outcome(noh_json_reply *r, const char *const *names, size_t count, uint32_t outcome)
{
	noh_json_out o = { .at = r->json, .room = r->room };
	const char *name = outcome < count && names[outcome] ? names[outcome] : "unknown";

	noh_json_open(&o, NULL, '{');
	noh_json_put_text(&o, "outcome", name, strlen(name));
	return o;
}

static inline int json_end(noh_json_reply *r, noh_json_out *o)
{
	noh_json_close(o, '}');
	r->json_len = o->len;
	return NOH_OK;
}

#endif
