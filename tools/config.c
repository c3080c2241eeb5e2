/* tools/config.c - noh config: what the settings are, whether they are right, and a server that reads them again. */
#include "tools/config.h"

#include "tools/accounts.h"
#include "tools/reload.h"
#include "tools/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void config_say(void *verb, bool is_wrong, const char *sentence)
{
	fprintf(stderr, "noh %s: %s%s\n", (const char *)verb, is_wrong ? "" : "warning: ", sentence);
}

/* ── show ── */

static void show_line(const struct settings *s, enum setting_id id)
{
	const struct setting *t = &settings_table[id];
	const char *text = settings_shown(s, id);
	bool bare = *text && !text[strcspn(text, " \t\"#=[]\\")];
	char line[2 * SETTINGS_VALUE_MAX + 128];
	size_t at = 0;

	/* Unset and secret ones are comments, so that the whole is a file that noh can read. */
	at += (size_t)snprintf(line, sizeof line, "%s%s = %s", *text && !t->secret ? "" : "# ", t->key,
			       bare || !*text || t->secret ? text : "\"");
	for (const char *c = text; !bare && !t->secret && *c && at + 3 < sizeof line; c++) {
		if (*c == '"' || *c == '\\')
			line[at++] = '\\';
		line[at++] = *c;
	}
	snprintf(line + at, sizeof line - at, "%s", *text && !bare && !t->secret ? "\"" : "");
	printf("%-36s # %s\n", line, *text ? settings_origin(s, id) : "not set");
}

static void show(const struct settings *s)
{
	const char *section = "";

	printf("# noh config show: effective settings and where each comes from\n");
	printf("# configuration file: %s\n", s->config ? s->config : "none");
	for (unsigned i = 0; i < SETTINGS; i++) {
		if (strcmp(section, settings_table[i].section) != 0)
			printf("\n[%s]\n", section = settings_table[i].section);
		show_line(s, i);
	}
}

static void text_field(const char *name, const char *text, const char *end)
{
	printf("\"%s\": ", name);
	if (text)
		cli_json_text(text, strlen(text));
	else
		printf("null");
	printf("%s", end);
}

static void show_json(const struct settings *s)
{
	static const char *const origins[] = { "default", "file", "environment", "flag" };

	printf("{\n  ");
	text_field("config_file", s->config, ",\n  \"settings\": [\n");
	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];
		const char *text = settings_shown(s, i);

		printf("    { ");
		text_field("section", t->section, ", ");
		text_field("key", t->key, ", ");
		text_field("value", *text ? text : NULL, ", ");
		text_field("origin", origins[s->value[i].from], ", ");
		text_field("where", settings_origin(s, i), ", ");
		printf("\"restart\": %s }%s\n", t->restart ? "true" : "false", i + 1 < SETTINGS ? "," : "");
	}
	printf("  ]\n}\n");
}

/* --json, and every option of noh serve. */
static void read_flags(struct settings *s, struct cli_args *args, bool *json)
{
	static const char *const own[] = { "json" };

	while (s->errors == 0 && cli_next(args)) {
		if (!args->name)
			settings_wrong(s, "one word too many: \"%.60s\"", args->value);
		else if (strcmp(args->name, "json") == 0)
			*json = true;
		else if (!settings_flag(s, args))
			settings_unknown_flag(s, "config", args->name, own, 1);
	}
}

static int show_main(struct cli_args *args)
{
	struct settings s;
	bool json = false;

	settings_init(&s, config_say, "config show");
	read_flags(&s, args, &json);
	bool good = s.errors == 0 && settings_load(&s, environ);

	if (good)
		json ? show_json(&s) : show(&s);
	settings_free(&s);
	return good ? CLI_FINE : CLI_USAGE;
}

/* ── check ── */

/* What was found, for --json; for people it is printed as it is found. */
struct found {
	bool     json;
	unsigned count;
	struct { bool is_wrong; char *sentence; } list[256];
};

static void check_say(void *arg, bool is_wrong, const char *sentence)
{
	struct found *f = arg;

	if (!f->json)
		printf("%s%s\n", is_wrong ? "" : "warning: ", sentence);
	else if (f->count < sizeof f->list / sizeof f->list[0] && (f->list[f->count].sentence = strdup(sentence)))
		f->list[f->count++].is_wrong = is_wrong;
}

static void found_list(const struct found *f, const char *name, bool is_wrong)
{
	bool any = false;

	printf(", \"%s\": [", name);
	for (unsigned i = 0; i < f->count; i++)
		if (f->list[i].is_wrong == is_wrong) {
			printf("%s", any ? ", " : "");
			cli_json_text(f->list[i].sentence, strlen(f->list[i].sentence));
			any = true;
		}
	printf("]");
}

static void found_end(struct found *f, bool good)
{
	if (f->json) {
		printf("{ \"valid\": %s", good ? "true" : "false");
		found_list(f, "errors", true);
		found_list(f, "warnings", false);
		printf(" }\n");
	}
	for (unsigned i = 0; i < f->count; i++)
		free(f->list[i].sentence);
}

/* A file by itself: what the environment of whoever checks it says is no fault of the file. */
static bool check_file(const char *path, struct found *f)
{
	struct settings s;
	unsigned given = 0;

	settings_init(&s, check_say, f);
	bool good = settings_read_file(&s, path, true) && settings_check(&s);

	for (unsigned i = 0; i < SETTINGS; i++)
		given += settings_given(&s, i);
	settings_free(&s);
	if (good && !f->json)
		printf("%s: %u setting%s, all well\n", path, given, given == 1 ? "" : "s");
	return good;
}

/* All that noh serve would go by: file, environment, flags, and the users. */
static bool check_all(struct settings *s, struct found *f)
{
	bool good = settings_load(s, environ);
	struct accounts users = { 0 };
	char path[4200], why[1024];

	if (good) {
		accounts_path(s, path, sizeof path);
		good = accounts_read(&users, path, why, sizeof why);
		if (!good)
			check_say(f, true, why);
	}
	bool tcp = settings_number(s, SET_RESP_PORT) || settings_number(s, SET_HTTP_PORT);

	if (good && tcp && !settings_is_loopback(settings_text(s, SET_BIND)) &&
	    !users.present && !*settings_text(s, SET_ADMIN_TOKEN) && !settings_number(s, SET_INSECURE)) {
		settings_wrong(s, "%s: %s may be reached from elsewhere, and there are no users; add one (noh user add NAME), or "
			       "say --insecure", settings_origin(s, SET_BIND), settings_text(s, SET_BIND));
		good = false;
	}
	if (good && !f->json)
		printf("%s: all well, %zu user%s\n", s->config ? s->config : "no configuration file", users.count,
		       users.count == 1 ? "" : "s");
	accounts_free(&users);
	return good;
}

static int check_main_of(struct cli_args *args)
{
	static const char *const own[] = { "json" };
	const char *path = NULL;
	struct settings s;
	struct found f = { .json = false };
	bool usage = false, others = false, good = false;

	settings_init(&s, config_say, "config check");
	while (s.errors == 0 && cli_next(args)) {
		if (!args->name) {
			usage |= path != NULL;
			path = args->value;
		} else if (strcmp(args->name, "json") == 0) {
			f.json = true;
		} else if (settings_flag(&s, args)) {
			others = true;
		} else {
			settings_unknown_flag(&s, "config", args->name, own, 1);
		}
	}
	s.say = check_say;
	s.user = &f;
	if (s.errors == 0 && (usage || (path && others)))
		fprintf(stderr, "noh config check: either one FILE, or --config FILE and other options of noh serve\n");
	else if (s.errors == 0) {
		good = path ? check_file(path, &f) : check_all(&s, &f);
		found_end(&f, good);
	}
	settings_free(&s);
	return good ? CLI_FINE : CLI_USAGE;
}

/* ── reload ── */

static int reload_main_of(struct cli_args *args)
{
	struct settings s;
	bool json = false;
	int code = CLI_USAGE;

	settings_init(&s, config_say, "config reload");
	read_flags(&s, args, &json);
	if (s.errors == 0)
		code = reload_request(&s, json);
	settings_free(&s);
	return code;
}

int config_main(int argc, char **argv)
{
	static const char *const verbs[] = { "show", "check", "reload", "doc" };
	struct cli_args args = { .count = argc, .at = 2, .words = argv };
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "show") == 0)
		return show_main(&args);
	if (strcmp(verb, "check") == 0)
		return check_main_of(&args);
	if (strcmp(verb, "reload") == 0)
		return reload_main_of(&args);
	if (strcmp(verb, "doc") == 0 && argc == 2) {
		settings_print_page();
		return CLI_FINE;
	}
	const char *near = *verb ? cli_nearest(verb, verbs, 4) : NULL;

	fprintf(stderr, "noh config: %s%s%s\n", near ? "did you mean noh config " : "one of show, check, reload, doc",
		near ? near : "", near ? "?" : "");
	return CLI_USAGE;
}
