/* tools/settings_load.c - defaults < file < environment < flags, and what must hold between settings. */
#include "tools/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

/* ── flags ── */

static const struct setting *flag_setting(const char *name)
{
	for (unsigned i = 0; i < SETTINGS; i++)
		if (settings_table[i].flag && strcmp(settings_table[i].flag, name) == 0)
			return &settings_table[i];
	return NULL;
}

bool settings_flag(struct settings *s, struct cli_args *args)
{
	const struct setting *t = flag_setting(args->name);
	bool is_config = strcmp(args->name, "config") == 0;
	char where[64];

	if (!t && !is_config)
		return false;
	/* A bool stands alone: the word after it is another one. */
	const char *value = t && t->type == SETTING_BOOL ? (args->value ? args->value : "true") : cli_value(args);

	if (!value) {
		settings_wrong(s, "--%s needs a value", args->name);
	} else if (is_config) {
		free(s->config_flag);
		s->config_flag = settings_copy(value);
	} else {
		snprintf(where, sizeof where, "--%s", t->flag);
		settings_put(s, (enum setting_id)(t - settings_table), value, FROM_FLAG, where);
	}
	return true;
}

void settings_unknown_flag(struct settings *s, const char *verb, const char *name,
			   const char *const *others, size_t count)
{
	const char *names[SETTINGS + 16];
	size_t n = 0;

	names[n++] = "config";
	names[n++] = "help";
	for (size_t i = 0; i < count && i < 8; i++)
		names[n++] = others[i];
	for (unsigned i = 0; i < SETTINGS; i++)
		if (settings_table[i].flag)
			names[n++] = settings_table[i].flag;
	const char *near = cli_nearest(name, names, n);

	if (near)
		settings_wrong(s, "there is no option --%.60s; did you mean --%s?", name, near);
	else
		settings_wrong(s, "there is no option --%.60s; noh %s --help lists them", name, verb);
}

/* ── the environment ── */

static const char *find(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
			return (*environment)[len + 1] ? *environment + len + 1 : NULL;   /* empty: not set */
	return NULL;
}

/* NOH_SECTION_KEY_FILE, of a secret. */
static bool put_from_file(struct settings *s, enum setting_id id, const char *name, char *const *environment)
{
	char with_file[80];
	const char *path;

	snprintf(with_file, sizeof with_file, "%s_FILE", name);
	path = find(environment, with_file);
	if (!path)
		return true;
	if (find(environment, name)) {
		settings_wrong(s, "%s and %s are both set; one of them is enough", name, with_file);
		return false;
	}
	return settings_put_secret_file(s, id, path, FROM_ENVIRONMENT, with_file);
}

bool settings_put_alias(struct settings *s, enum setting_id id, const char *value, enum setting_origin from,
			const char *where)
{
	const struct setting *t = &settings_table[id];
	char text[SETTINGS_VALUE_MAX + 8];
	size_t digits = strspn(value, "0123456789");

	if (strlen(value) > SETTINGS_VALUE_MAX) {
		settings_wrong(s, "%s: the value is longer than %d bytes", where, SETTINGS_VALUE_MAX);
		return false;
	}
	snprintf(text, sizeof text, "%s%s", value, t->alias_unit && value[digits] == 0 ? t->alias_unit : "");
	return settings_put(s, id, text, from, where);
}

static bool from_environment(struct settings *s, enum setting_id id, char *const *environment)
{
	const struct setting *t = &settings_table[id];
	char name[64];
	bool good = true;

	for (int i = 1; i >= 0; i--) {           /* the first name last, and our own after it: it wins */
		const char *value = t->alias[i] ? find(environment, t->alias[i]) : NULL;

		if (value)
			good &= settings_put_alias(s, id, value, FROM_ENVIRONMENT, t->alias[i]);
	}
	settings_env_name(id, name, sizeof name);
	const char *value = find(environment, name);

	if (value)
		good &= settings_put(s, id, value, FROM_ENVIRONMENT, name);
	if (t->secret)
		good &= put_from_file(s, id, name, environment);
	return good;
}

/* NOH_RESP_PORT for NOH_NET_RESP_PORT: the section was left out. NULL: no name ends so, or more than one does. */
static const char *with_section(const char *name, const char *const *names, size_t n)
{
	const char *tail = name + 3, *found = NULL;

	for (size_t i = 0; strncmp(name, "NOH_", 4) == 0 && i < n; i++) {
		size_t len = strlen(names[i]), end = strlen(tail);

		if (len <= end || strcmp(names[i] + len - end, tail) != 0)
			continue;
		if (found)
			return NULL;
		found = names[i];
	}
	return found;
}

/* A name that is nearly one of ours is most likely meant to be; others (NOH_SERVICE_HOST of Kubernetes, say)
 * are somebody else's business. */
static void warn_of_near_misses(struct settings *s, char *const *environment)
{
	enum { NAMES = SETTINGS * 3 };
	char own[SETTINGS][64];
	const char *names[NAMES];
	size_t n = 0;

	for (unsigned i = 0; i < SETTINGS; i++) {
		settings_env_name(i, own[i], sizeof own[i]);
		names[n++] = own[i];
		for (unsigned a = 0; a < 2; a++)
			if (settings_table[i].alias[a])
				names[n++] = settings_table[i].alias[a];
	}
	for (; *environment; environment++) {
		const char *equals = strchr(*environment, '=');
		char name[64];

		if (!equals || (strncmp(*environment, "NOH_", 4) && strncmp(*environment, "ACTOR_", 6)) ||
		    equals - *environment >= (ptrdiff_t)sizeof name)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(equals - *environment), *environment);
		if (!strcmp(name, "NOH_TOKEN") || !strcmp(name, "NOH_URL"))      /* the client's (ask.c) */
			continue;
		const char *whole = with_section(name, names, n), *near = whole ? whole : cli_nearest(name, names, n);

		if (near && strcmp(near, name) != 0 && (whole || strlen(near) < strlen(name) + 4) && !strstr(name, "_FILE"))
			settings_warn(s, "%s in the environment is not a setting; did you mean %s?", name, near);
	}
}

bool settings_environment(struct settings *s, char *const *environment)
{
	bool good = true;

	for (unsigned i = 0; i < SETTINGS; i++)
		good &= from_environment(s, i, environment);
	warn_of_near_misses(s, environment);
	return good;
}

/* ── what follows from them ── */

/* A directory with so long a name has no socket in it: the kernel takes no longer path. */
const char *settings_http_path(const struct settings *s, char *buf, size_t size)
{
	const char *given = settings_text(s, SET_HTTP_UNIX);
	struct sockaddr_un at;
	int len;

	if (strcmp(given, "off") == 0)
		return NULL;
	if (*given)
		return given;
	len = snprintf(buf, size, "%s/http.sock", settings_text(s, SET_DIR));
	if (strcmp(settings_text(s, SET_DURABILITY), "none") == 0 || len < 0 || (size_t)len >= sizeof at.sun_path)
		return NULL;
	return buf;
}

/* ── what must hold between them ── */

bool settings_check(struct settings *s)
{
	unsigned before = s->errors;

	if (strcmp(settings_text(s, SET_NODE_MODE), "local") != 0)
		settings_wrong(s, "%s: the mode \"%s\" is for clusters; noh is one box that places and runs its actors "
			       "itself, so only local works", settings_origin(s, SET_NODE_MODE),
			       settings_text(s, SET_NODE_MODE));
	if (settings_number(s, SET_MAX_ARG_BYTES) > settings_number(s, SET_MAX_COMMAND_BYTES))
		settings_wrong(s, "net.max_arg_bytes (%s) is more than a whole command may have, net.max_command_bytes "
			       "(%s)", settings_text(s, SET_MAX_ARG_BYTES), settings_text(s, SET_MAX_COMMAND_BYTES));
	if (settings_number(s, SET_RESP_PORT) == 0 && !*settings_text(s, SET_UNIX) &&
	    settings_number(s, SET_HTTP_PORT) == 0 && !*settings_text(s, SET_HTTP_UNIX))
		settings_wrong(s, "%s: without a TCP port a Unix socket is needed: --unix PATH",
			       settings_origin(s, SET_RESP_PORT));
	uint64_t partitions = settings_number(s, SET_PARTITIONS);

	if (partitions && settings_number(s, SET_REPLICAS) % partitions)
		settings_wrong(s, "node.replicas (%s) is not a multiple of node.partitions (%s)",
			       settings_text(s, SET_REPLICAS), settings_text(s, SET_PARTITIONS));
	if (settings_number(s, SET_CLAIM_REFRESH) >= settings_number(s, SET_CLAIM_TTL))
		settings_wrong(s, "node.claim_refresh (%s) is not less than node.claim_ttl (%s): the claim would run out in "
			       "between", settings_text(s, SET_CLAIM_REFRESH), settings_text(s, SET_CLAIM_TTL));
	if (settings_number(s, SET_RESP_PORT) && settings_number(s, SET_RESP_PORT) == settings_number(s, SET_HTTP_PORT))
		settings_wrong(s, "net.resp_port (%s) and http.port (%s) are both %s; each needs one of its own",
			       settings_origin(s, SET_RESP_PORT), settings_origin(s, SET_HTTP_PORT),
			       settings_text(s, SET_HTTP_PORT));
	for (unsigned i = 0; i < SETTINGS; i++)
		if (settings_table[i].ignored && settings_given(s, i))
			settings_warn(s, "%s is accepted, but has no effect on one box", settings_origin(s, i));
	return s->errors == before;
}

/* ── all of it ── */

bool settings_load(struct settings *s, char *const *environment)
{
	const char *from = s->config_flag ? s->config_flag : find(environment, "NOH_CONFIG");
	bool read = settings_read_file(s, from ? from : SETTINGS_USUAL_FILE, from != NULL);

	if (settings_environment(s, environment) && read && s->errors == 0)
		settings_check(s);
	return s->errors == 0;
}

bool settings_reload(struct settings *fresh, const struct settings *old, settings_say_fn *say, void *user,
		     char *const *environment)
{
	settings_init(fresh, say, user);
	fresh->config_flag = old->config_flag ? settings_copy(old->config_flag) : NULL;
	for (unsigned i = 0; i < SETTINGS; i++)
		if (old->value[i].from == FROM_FLAG)
			settings_put(fresh, i, old->value[i].text, FROM_FLAG, old->value[i].where);
	return settings_load(fresh, environment);
}
