/* net/command_command.c - COMMAND: the table, told to clients. */
#include "net/command.h"

#include "core/glob.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_sub(const struct command *k)
{
	return strchr(k->name, '|') != NULL;
}

static bool is_listed(const struct command *k)
{
	return !is_sub(k) && !(k->flags & COMMAND_REFUSED);
}

static const struct command *after(const struct command *k)
{
	return k + 1 + k->subs;
}

static const struct command *end(void)
{
	return command_row(0) + command_total();
}

static uint32_t count(void)
{
	uint32_t n = 0;

	for (const struct command *k = command_row(0); k < end(); k = after(k))
		n += is_listed(k);
	return n;
}

static const char *const flag_names[] = { "write", "readonly", "fast", "no_auth", "admin", "pubsub", NULL, "denyoom" };
enum { FLAG_NAMES = sizeof flag_names / sizeof flag_names[0] };

/* The categories Redis's ACL would put it in. Returns how many; names may be NULL. */
static uint32_t categories(const struct command *k, const char **names)
{
	static const char *const groups[GROUPS] = { "@connection", NULL, "@string", "@keyspace", "@inventory", "@actor",
						    "@pubsub", "@transaction" };
	const char *all[6];
	uint32_t n = 0;

	if (k->flags & COMMAND_WRITE)
		all[n++] = "@write";
	if (k->flags & COMMAND_READONLY)
		all[n++] = "@read";
	if (groups[k->group])
		all[n++] = groups[k->group];
	if (k->flags & COMMAND_ADMIN) {
		all[n++] = "@admin";
		all[n++] = "@dangerous";
	}
	all[n++] = k->flags & COMMAND_FAST ? "@fast" : "@slow";
	if (names)
		memcpy(names, all, n * sizeof *all);
	return n;
}

static void tell_one(struct out *o, const struct command *k)
{
	const char *names[6];
	uint32_t flags = 0, n = categories(k, names);

	for (uint32_t i = 0; i < FLAG_NAMES; i++)
		flags += flag_names[i] && (k->flags & 1u << i);
	out_array(o, 10);
	out_text(o, k->name);
	out_int(o, k->arity);
	out_set(o, flags);
	for (uint32_t i = 0; i < FLAG_NAMES; i++)
		if (flag_names[i] && (k->flags & 1u << i))
			out_simple(o, flag_names[i]);
	out_int(o, k->first_key);
	out_int(o, k->last_key);
	out_int(o, k->key_step);
	out_set(o, n);
	for (uint32_t i = 0; i < n; i++)
		out_simple(o, names[i]);
	out_array(o, 0);                              /* tips               */
	out_array(o, 0);                              /* key specifications */
	out_array(o, k->subs);
}

static void tell(struct out *o, const struct command *k)
{
	tell_one(o, k);
	for (uint32_t i = 1; i <= k->subs; i++)       /* they have none themselves */
		tell_one(o, &k[i]);
}

static void tell_all(struct out *o)
{
	out_array(o, count());
	for (const struct command *k = command_row(0); k < end(); k = after(k))
		if (is_listed(k))
			tell(o, k);
}

void cmd_command(struct call *c)
{
	tell_all(call_out(c));
}

void cmd_command_count(struct call *c)
{
	out_int(call_out(c), count());
}

void cmd_command_info(struct call *c)
{
	struct out *o = call_out(c);

	if (c->argc == 2) {
		tell_all(o);
		return;
	}
	out_array(o, c->argc - 2);
	for (uint32_t i = 2; i < c->argc; i++) {
		const struct command *k = command_find_full(c->argv[i].at, c->argv[i].len);

		if (k)
			tell(o, k);
		else
			out_nil(o);
	}
}

static void document_fields(struct out *o, const struct command *k, bool subs)
{
	out_map(o, subs ? 7 : 6);
	out_text(o, "summary"), out_text(o, k->summary);
	out_text(o, "since"), out_text(o, k->since);
	out_text(o, "group"), out_text(o, command_group_name(k->group));
	out_text(o, "complexity"), out_text(o, k->complexity);
	out_text(o, "syntax"), out_text(o, k->syntax);
	out_text(o, "reply"), out_text(o, k->reply);
}

static void document(struct out *o, const struct command *k)
{
	out_text(o, k->name);
	document_fields(o, k, k->subs);
	if (k->subs == 0)
		return;
	out_text(o, "subcommands");
	out_map(o, k->subs);
	for (uint32_t i = 1; i <= k->subs; i++) {
		out_text(o, k[i].name);
		document_fields(o, &k[i], false);
	}
}

void cmd_command_docs(struct call *c)
{
	struct out *o = call_out(c);
	uint32_t known = 0;

	if (c->argc == 2) {
		out_map(o, count());
		for (const struct command *k = command_row(0); k < end(); k = after(k))
			if (is_listed(k))
				document(o, k);
		return;
	}
	for (uint32_t i = 2; i < c->argc; i++)
		known += command_find_full(c->argv[i].at, c->argv[i].len) != NULL;
	out_map(o, known);
	for (uint32_t i = 2; i < c->argc; i++) {
		const struct command *k = command_find_full(c->argv[i].at, c->argv[i].len);

		if (k)
			document(o, k);
	}
}

/* ── COMMAND LIST ─────────────────────────────────────────────────────────────────────────────── */
static bool in_category(const struct command *k, const struct arg *a)
{
	const char *names[6];
	uint32_t n = categories(k, names);

	for (uint32_t i = 0; i < n; i++)
		if (arg_is(a, names[i] + 1))
			return true;
	return false;
}

static bool passes(const struct call *c, const struct command *k)
{
	const struct arg *how = &c->argv[c->argc - 2], *what = &c->argv[c->argc - 1];

	if (c->argc == 2)
		return true;
	if (arg_is(how, "pattern"))
		return glob_match_any_case(what->at, what->len, k->name, strlen(k->name));
	return arg_is(how, "aclcat") && in_category(k, what);          /* there are no modules */
}

void cmd_command_list(struct call *c)
{
	struct out *o = call_out(c);
	uint32_t n = 0;

	if (c->argc != 2 && (c->argc != 5 || !arg_is(&c->argv[2], "filterby") ||
			     !(arg_is(&c->argv[3], "pattern") || arg_is(&c->argv[3], "aclcat") ||
			       arg_is(&c->argv[3], "module")))) {
		out_syntax_error(o);
		return;
	}
	if (c->argc == 5 && !call_pattern(c, &c->argv[4]))
		return;
	for (const struct command *k = command_row(0); k < end(); k = after(k))
		n += is_listed(k) && passes(c, k);
	out_array(o, n);
	for (const struct command *k = command_row(0); k < end(); k = after(k))
		if (is_listed(k) && passes(c, k))
			out_text(o, k->name);
}

/* ── COMMAND GETKEYS ──────────────────────────────────────────────────────────────────────────── */
void cmd_command_getkeys(struct call *c)
{
	struct out *o = call_out(c);
	const struct arg *argv = c->argv + 2;
	uint32_t argc = c->argc - 2;
	const struct command *k = command_find(argv[0].at, argv[0].len);

	if (k == NULL) {
		out_error(o, "Invalid command specified");
		return;
	}
	if (k->first_key == 0) {
		out_error(o, "The command has no key arguments");
		return;
	}
	if (k->arity >= 0 ? argc != (uint32_t)k->arity : argc < (uint32_t)-k->arity) {
		out_error(o, "Invalid number of arguments specified for command");
		return;
	}
	if ((k->flags & COMMAND_IDEM) && k->last_key < 0 && argc >= 4 && arg_is(&argv[argc - 2], "idem"))
		argc -= 2;
	uint32_t first = (uint32_t)k->first_key, step = (uint32_t)k->key_step;
	uint32_t last = k->last_key < 0 ? argc - 1 : (uint32_t)k->last_key;

	out_array(o, (last - first) / step + 1);
	for (uint32_t i = first; i <= last; i += step)
		out_bulk(o, argv[i].at, argv[i].len);
}

/* ── HELP ─────────────────────────────────────────────────────────────────────────────────────── */
static void upper_text(struct out *o, const char *format, const struct command *k, size_t skip)
{
	char text[300];
	int len = snprintf(text, sizeof text, format, k->name + skip, *k->syntax ? " " : "", k->syntax);

	for (size_t i = 0; i < strlen(k->name + skip) && i < sizeof text - 1; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	out_simple(o, len < 0 ? "" : text);
}

void out_help(struct out *o, const struct command *of)
{
	const struct command *parent = of;
	char text[300];

	while (is_sub(parent))
		parent--;
	size_t name = strlen(parent->name);

	out_array(o, 1 + 2u * parent->subs);
	snprintf(text, sizeof text, "%s <subcommand> [<arg> ...]. Subcommands are:", parent->name);
	for (size_t i = 0; i < name; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	out_simple(o, text);
	for (uint32_t i = 1; i <= parent->subs; i++) {
		upper_text(o, "%s%s%s", &parent[i], name + 1);
		snprintf(text, sizeof text, "    %s", parent[i].summary);
		out_simple(o, text);
	}
}

void cmd_command_help(struct call *c)
{
	out_help(call_out(c), c->command);
}
