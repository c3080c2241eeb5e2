/* net/command_config.c - CONFIG: settings by the names Redis's tools know, the server's own, and what the
 * program that listens tells about itself (noh_listen_options.info). */
#include "net/command.h"
#include "net/session.h"

#include "core/glob.h"
#include "core/must.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum setting_kind { NUMBER, MAYBE, SECONDS, PORT, TEXT, FIXED, LEVELS };         /* MAYBE: a number, or 0 for none */

struct setting {
	const char *name;
	enum setting_kind kind;
	size_t      at;            /* in noh_listen_options        */
	const char *value;         /* FIXED: what it is            */
};
#define AT(field) offsetof(noh_listen_options, field)

static const struct setting settings[] = {
	{ "appendonly", FIXED, 0, "yes" },                 /* there is a journal, and nothing but it: no snapshots */
	{ "bind", TEXT, AT(bind), NULL },
	{ "databases", FIXED, 0, "1" },
	{ "loglevel", LEVELS, 0, NULL },                   /* noh_set_log_level */
	{ "maxclients", NUMBER, AT(max_connections), NULL },
	{ "maxmemory-policy", FIXED, 0, "noeviction" },
	{ "port", PORT, AT(resp_port), NULL },
	{ "proto-max-bulk-len", NUMBER, AT(max_arg_bytes), NULL },
	{ "save", FIXED, 0, "" },
	{ "timeout", SECONDS, AT(idle_ms), NULL },
	{ "unixsocket", TEXT, AT(unix_path), NULL },
	{ "noh-auth-failures", NUMBER, AT(auth_failures), NULL },
	{ "noh-call-ms", NUMBER, AT(call_ms), NULL },
	{ "noh-client-timeout-ms", NUMBER, AT(timeout_ms), NULL },
	{ "noh-http-body-ms", NUMBER, AT(http_body_ms), NULL },
	{ "noh-http-header-ms", NUMBER, AT(http_header_ms), NULL },
	{ "noh-http-idle-ms", NUMBER, AT(http_idle_ms), NULL },
	{ "noh-http-max-body-bytes", NUMBER, AT(http_max_body_bytes), NULL },
	{ "noh-http-max-header-bytes", NUMBER, AT(http_max_header_bytes), NULL },
	{ "noh-http-max-headers", NUMBER, AT(http_max_headers), NULL },
	{ "noh-http-min-rate", NUMBER, AT(http_min_rate), NULL },
	{ "noh-max-address-connections", MAYBE, AT(max_address_connections), NULL },
	{ "noh-max-args", NUMBER, AT(max_args), NULL },
	{ "noh-max-command-bytes", NUMBER, AT(max_command_bytes), NULL },
	{ "noh-max-inline-bytes", NUMBER, AT(max_inline_bytes), NULL },
	{ "noh-max-output-bytes", NUMBER, AT(max_output_bytes), NULL },
	{ "noh-max-pipeline", NUMBER, AT(max_pipeline), NULL },
	{ "noh-max-subscriber-bytes", NUMBER, AT(max_subscriber_bytes), NULL },
	{ "noh-max-subscriptions", NUMBER, AT(max_subscriptions), NULL },
	{ "noh-stop-ms", NUMBER, AT(stop_ms), NULL },
	{ "noh-trace-sample", MAYBE, AT(trace_sample), NULL },
};
enum { SETTINGS = sizeof settings / sizeof settings[0], VALUE_MAX = 1024 };

static uint32_t number_of(const struct setting *s, const noh_listen_options *options)
{
	uint32_t n;

	memcpy(&n, (const char *)options + s->at, sizeof n);
	return s->kind == SECONDS ? n / 1000 : n;
}

static const char *value_of(struct call *c, const struct setting *s, const noh_listen_options *options, char *text,
			    size_t size)
{
	const char *value;
	int port;

	switch (s->kind) {
	case FIXED:
		return s->value;
	case LEVELS:
		text[0] = 0;
		(void)noh_get_log_level(call_box(c), text, size);
		return text;
	case TEXT:
		memcpy(&value, (const char *)options + s->at, sizeof value);
		return value ? value : "";
	case PORT:
		memcpy(&port, (const char *)options + s->at, sizeof port);
		snprintf(text, size, "%d", port > 0 ? port : 0);
		return text;
	default:
		snprintf(text, size, "%u", number_of(s, options));
		return text;
	}
}

static bool wanted(const struct call *c, const char *name)
{
	for (uint32_t i = 2; i < c->argc; i++)
		if (glob_match_any_case(c->argv[i].at, c->argv[i].len, name, strlen(name)))
			return true;
	return false;
}

static bool is_setting(const char *name)
{
	for (uint32_t i = 0; i < SETTINGS; i++)
		if (strcmp(settings[i].name, name) == 0)
			return true;
	return false;
}

/* Writes them if o is given; returns how many. What the program tells comes after our own, and never twice. */
static uint32_t matching(struct call *c, const noh_listen_options *options, struct out *o)
{
	char text[VALUE_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < SETTINGS; i++) {
		if (!wanted(c, settings[i].name))
			continue;
		n++;
		if (o) {
			out_text(o, settings[i].name);
			out_text(o, value_of(c, &settings[i], options, text, sizeof text));
		}
	}
	for (const char *const *pair = options->info; pair && pair[0] && pair[1]; pair += 2) {
		if (!wanted(c, pair[0]) || is_setting(pair[0]))
			continue;
		n++;
		if (o) {
			out_text(o, pair[0]);
			out_text(o, pair[1]);
		}
	}
	return n;
}

void cmd_config_get(struct call *c)
{
	const noh_listen_options *options = net_options(c->net);
	struct out *o = call_out(c);

	for (uint32_t i = 2; i < c->argc; i++)
		if (!call_pattern(c, &c->argv[i]))
			return;
	out_map(o, matching(c, options, NULL));
	matching(c, options, o);
}

static const struct setting *find(const struct arg *name)
{
	for (uint32_t i = 0; i < SETTINGS; i++)
		if (arg_is(name, settings[i].name))
			return &settings[i];
	return NULL;
}

/* Levels by their names, also Redis's, and TYPE=LEVEL. */
static bool set_levels(struct call *c, const struct arg *value)
{
	char text[VALUE_MAX], before[VALUE_MAX] = "";

	if (value->len >= sizeof text || memchr(value->at, 0, value->len) != NULL) {
		out_error(call_out(c), "CONFIG SET failed (possibly related to argument 'loglevel') - no level of the log");
		return false;
	}
	memcpy(text, value->at, value->len);
	text[value->len] = 0;
	(void)noh_get_log_level(call_box(c), before, sizeof before);
	if (noh_set_log_level(call_box(c), text) == NOH_OK) {
		(void)noh_get_log_level(call_box(c), text, sizeof text);
		if (strcmp(before, text) != 0)
			(void)noh_tell_config(call_box(c), "loglevel", before, text);
		return true;
	}
	out_error(call_out(c), "CONFIG SET failed (possibly related to argument 'loglevel') - %s", noh_why());
	return false;
}

/* Each pair is looked at first, so that all of them happen or none; whether there are such levels shows in setting
 * them, so that comes before the rest. */
enum { LOOK, SET_LEVELS, SET_REST, SET_PASSES };

static bool set(struct call *c, uint32_t at, int pass)
{
	const struct arg *name = &c->argv[at], *value = &c->argv[at + 1];
	const struct setting *s = find(name);
	const noh_listen_options *options = net_options(c->net);
	char shown[64], text[VALUE_MAX];
	uint64_t n;

	arg_show(name, shown, sizeof shown);
	if (s == NULL) {
		out_error(call_out(c), "Unknown option or number of arguments for CONFIG SET - '%s'", shown);
		return false;
	}
	const char *now = value_of(c, s, options, text, sizeof text);

	if (strlen(now) == value->len && memcmp(now, value->at, value->len) == 0)
		return true;                          /* tools set what is set already */
	if (s->kind == LEVELS)
		return pass != SET_LEVELS || set_levels(c, value);
	if (s->kind != NUMBER && s->kind != MAYBE && s->kind != SECONDS) {
		out_error(call_out(c), "CONFIG SET failed (possibly related to argument '%s') - can't set immutable config",
			  shown);
		return false;
	}
	if (!arg_uint(value, &n) || n > UINT32_MAX / 1000 || (n == 0 && s->kind == NUMBER)) {
		out_error(call_out(c), "CONFIG SET failed (possibly related to argument '%s') - argument must be between %d "
			  "and %u inclusive", shown, s->kind == NUMBER, UINT32_MAX / 1000);
		return false;
	}
	if (pass != SET_REST)
		return true;
	if (net_set_option(c->net, s->name, s->kind == SECONDS ? n * 1000 : n)) {
		char after[24];

		snprintf(after, sizeof after, "%" PRIu64, n);
		(void)noh_tell_config(call_box(c), s->name, now, after);
		return true;
	}
	out_error(call_out(c), "CONFIG SET failed (possibly related to argument '%s') - can't set immutable config", shown);
	return false;
}

/* The names alone: what they were and are now is told by the events of the changes. */
static void audit_set(struct call *c)
{
	char names[256] = "";
	size_t len = 0;

	for (uint32_t i = 2; i < c->argc && len < sizeof names; i += 2)
		len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i > 2 ? " " : "", find(&c->argv[i])->name);
	call_audit(c, "config set", NULL, names);
}

void cmd_config_set(struct call *c)
{
	if (c->argc % 2 != 0) {
		out_syntax_error(call_out(c));
		return;
	}
	for (int pass = LOOK; pass < SET_PASSES; pass++) {
		for (uint32_t i = 2; i < c->argc; i += 2)
			if (!set(c, i, pass))
				return;
		if (pass == LOOK)
			audit_set(c);
	}
	out_simple(call_out(c), "OK");
}

/* Findings are lines, their fields parted by tabs: noh_reloaded. */
static uint32_t count_of(const char *text, size_t len, char c)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == c;
	return n;
}

static void out_fields(struct out *o, const char *line, size_t len)
{
	const char *end = line + len;

	out_array(o, count_of(line, len, '\t') + 1);
	while (line <= end) {
		const char *tab = memchr(line, '\t', (size_t)(end - line)), *stop = tab ? tab : end;

		out_bulk(o, line, (size_t)(stop - line));
		line = stop + 1;
	}
}

/* An error is one line: of what is wrong as much as fits. */
static void out_wrongs(struct out *o, const char *text, size_t len)
{
	char all[400];
	size_t n = 0;

	for (const char *line = text, *end = text + len, *stop; line < end && n < sizeof all - 1; line = stop + 1) {
		const char *tab = memchr(line, '\t', (size_t)(end - line));

		stop = memchr(line, '\n', (size_t)(end - line));
		line = tab && tab < stop ? tab + 1 : line;
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%.*s", n ? " | " : "", (int)(stop - line), line);
	}
	if (n >= sizeof all)
		n = sizeof all - 1;
	out_error(o, "nothing was changed: %.*s", (int)n, all);
}

static void format_reload(struct out *o, const struct reply_part *parts, uint32_t n, struct tag tag)
{
	const char *line = parts->body, *end = line + parts->len;

	(void)n, (void)tag;
	if (parts->status == NOH_REFUSED) {
		out_wrongs(o, line, parts->len);
		return;
	}
	if (parts->status != NOH_OK) {
		out_part_status(o, parts);
		return;
	}
	out_array(o, count_of(line, parts->len, '\n'));
	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		out_fields(o, line, (size_t)(stop - line));
		line = stop + 1;
	}
}

void cmd_config_reload(struct call *c)
{
	call_audit(c, "config reload", NULL, NULL);
	if (!call_reload(c, format_reload, (struct tag){ 0 }))
		out_error(call_out(c), "this program has no settings to read again");
}

void cmd_config_resetstat(struct call *c)
{
	call_audit(c, "config resetstat", NULL, NULL);
	net_reset_stats(c->net);
	out_simple(call_out(c), "OK");
}

void cmd_config_help(struct call *c)
{
	out_help(call_out(c), c->command);
}
