/* tools/serve_limits.c - [limits] of the settings: what the types of a server may do, at its start and when they change. */
#include "tools/serve_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum setting_id lists[] = { SET_LIMIT_RATE, SET_LIMIT_ACTOR_RATE, SET_LIMIT_TURNS, SET_LIMIT_OVER };

static bool is_type(struct server *s, const char *name, size_t len)
{
	const char *type;

	for (unsigned i = 0; (type = noh_type_name(s->box, i)) != NULL; i++)
		if (strlen(type) == len && memcmp(type, name, len) == 0)
			return true;
	return false;
}

bool limits_check(struct server *s, const struct settings *settings, char *why, size_t size)
{
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		for (const char *at = settings_text(settings, lists[i]); *at; ) {
			size_t name = strcspn(at, "="), len = strcspn(at, ",");

			if (!is_type(s, at, name)) {
				snprintf(why, size, "%s: limits.%s: there is no type \"%.*s\"", settings_origin(settings, lists[i]),
					 settings_table[lists[i]].key, (int)(name < 64 ? name : 64), at);
				return false;
			}
			at += len + (at[len] == ',');
		}
	return true;
}

/* Their texts were checked when they were read. */
static noh_limits limits_of(const struct settings *set, const char *type)
{
	noh_limits l = { 0 };
	char value[64];

	if (settings_of_type(set, SET_LIMIT_RATE, type, value, sizeof value))
		(void)settings_rate(value, &l.per_second, &l.burst);
	if (settings_of_type(set, SET_LIMIT_ACTOR_RATE, type, value, sizeof value))
		(void)settings_rate(value, &l.actor_per_second, &l.actor_burst);
	if (settings_of_type(set, SET_LIMIT_TURNS, type, value, sizeof value))
		l.turns = (uint32_t)strtoul(value, NULL, 10);
	if (settings_of_type(set, SET_LIMIT_OVER, type, value, sizeof value) && strcmp(value, "refuse") == 0)
		l.over = NOH_OVER_REFUSE;
	return l;
}

static bool same(const noh_limits *a, const noh_limits *b)
{
	return !(a->per_second < b->per_second || a->per_second > b->per_second) && a->burst == b->burst &&
	       !(a->actor_per_second < b->actor_per_second || a->actor_per_second > b->actor_per_second) &&
	       a->actor_burst == b->actor_burst && a->turns == b->turns && a->over == b->over;
}

int limits_apply(struct server *s, const struct settings *before)
{
	const char *type;
	int rc = NOH_OK;

	for (unsigned i = 0; rc == NOH_OK && (type = noh_type_name(s->box, i)) != NULL; i++) {
		noh_limits now = limits_of(&s->settings, type), then = { 0 };

		if (before)
			then = limits_of(before, type);
		if (!same(&now, &then))
			rc = noh_set_limits(s->box, type, &now);
	}
	return rc;
}
