/* tools/words.c - options and plain words of a verb, by its row. */
#include "tools/words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const struct words *w, const char *format, va_list list)
{
	fprintf(stderr, "noh %s: ", w->full);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
}

int words_wrong(const struct words *w, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say(w, format, list);
	va_end(list);
	return CLI_USAGE;
}

int words_failed(const struct words *w, int code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say(w, format, list);
	va_end(list);
	return code;
}

static void settings_say(void *arg, bool is_wrong, const char *sentence)
{
	const struct words *w = arg;

	if (w->listener)
		w->listener(w->listener_arg, is_wrong, sentence);
	else
		fprintf(stderr, "noh %s: %s%s\n", w->full, is_wrong ? "" : "warning: ", sentence);
}

/* ── options ── */

static const struct verb_option *find_in(const struct verb_option *list, const char *name)
{
	for (; list && list->name; list++)
		if (strcmp(list->name, name) == 0)
			return list;
	return NULL;
}

static size_t gather_names(const char **names, size_t n, size_t room, const struct verb_option *list)
{
	for (; list && list->name && n < room; list++)
		names[n++] = list->name;
	return n;
}

static bool unknown(struct words *w, const char *name)
{
	const char *names[SETTINGS + 64];
	size_t room = sizeof names / sizeof names[0], n = gather_names(names, 0, room - 1, w->verb->options);

	if (w->verb->remote)
		n = gather_names(names, n, room - 1, verbs_remote);
	for (unsigned i = 0; w->verb->settings && i < SETTINGS && n < room - 1; i++)
		if (settings_table[i].flag)
			names[n++] = settings_table[i].flag;
	names[n++] = "help";
	const char *near = cli_nearest(name, names, n);

	if (near)
		words_wrong(w, "there is no option --%.60s; did you mean --%s?", name, near);
	else
		words_wrong(w, "there is no option --%.60s; noh %s --help lists them", name, w->verb->name);
	return false;
}

static bool option(struct words *w, struct cli_args *args)
{
	const struct verb_option *o = find_in(w->verb->options, args->name);
	const char *name = args->name;

	if (!o && w->verb->remote)
		o = find_in(verbs_remote, name);
	/* Where the server is, is a matter of its settings. */
	if ((!o && w->verb->settings) || (o && w->verb->remote && find_in(verbs_remote, name) == o &&
					  (strcmp(name, "data") == 0 || strcmp(name, "config") == 0)))
		if (settings_flag(&w->settings, args))
			return w->settings.errors == 0 || w->listener;
	if (!o)
		return unknown(w, name);
	if (!o->value && args->value) {
		words_wrong(w, "--%s takes no value", name);
		return false;
	}
	const char *value = o->value ? cli_value(args) : NULL;

	if (o->value && !value) {
		words_wrong(w, "--%s needs a value: --%s %s", name, name, o->value);
		return false;
	}
	w->given[w->given_count].name = o->name;
	w->given[w->given_count++].value = value ? value : "";
	return true;
}

static bool read_all(struct words *w, struct cli_args *args)
{
	while (args->at < args->count) {
		if (strcmp(args->words[args->at], "--") == 0) {          /* the rest is no option */
			for (args->at++; args->at < args->count; args->at++)
				w->plain[w->count++] = args->words[args->at];
			break;
		}
		(void)cli_next(args);
		if (!args->name)
			w->plain[w->count++] = args->value;
		else if (!option(w, args))
			return false;
	}
	return !w->has_settings || settings_load(&w->settings, environ) || w->listener;
}

/* ── the action: noh dead LIST ── */

static bool choose_action(struct words *w, int argc, char **argv)
{
	const struct verb_action *a = w->verb->actions;
	const char *names[16], *word = argc > 1 ? argv[1] : "";
	char list[256] = "";
	size_t n = 0;

	for (; a->name && n < 16; a++) {
		if (strcmp(a->name, word) == 0) {
			w->action = a->name;
			snprintf(w->full, sizeof w->full, "%s %s", w->verb->name, a->name);
			return true;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? ", " : "", a->name);
		names[n++] = a->name;
	}
	const char *near = *word ? cli_nearest(word, names, n) : NULL;

	if (near)
		words_wrong(w, "there is no \"%.60s\"; did you mean noh %s %s?", word, w->verb->name, near);
	else
		words_wrong(w, "say which: noh %s %s", w->verb->name, list);
	return false;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

bool words_read(struct words *w, const char *verb, int argc, char **argv, int *code)
{
	return words_read_all(w, verb, argc, argv, NULL, NULL, code);
}

bool words_read_all(struct words *w, const char *verb, int argc, char **argv, settings_say_fn *say_fn, void *arg, int *code)
{
	memset(w, 0, sizeof *w);
	w->listener = say_fn;
	w->listener_arg = arg;
	w->verb = verb_find(verb);
	snprintf(w->full, sizeof w->full, "%s", verb);
	*code = CLI_USAGE;
	if (wants_help(argc, argv)) {
		*code = verb_help(verb);
		return false;
	}
	if (w->verb->actions && !choose_action(w, argc, argv))
		return false;
	struct cli_args args = { .count = argc, .at = w->verb->actions ? 2 : 1, .words = argv };
	size_t room = (size_t)argc + 1;

	w->plain = calloc(room, sizeof *w->plain);
	w->given = calloc(room, sizeof *w->given);
	if (!w->plain || !w->given) {
		*code = words_failed(w, CLI_TEMPORARY, "out of memory");
		words_free(w);
		return false;
	}
	w->has_settings = w->verb->remote || w->verb->settings;
	if (w->has_settings)
		settings_init(&w->settings, settings_say, w);
	if (read_all(w, &args))
		return true;
	words_free(w);
	return false;
}

void words_free(struct words *w)
{
	free(w->plain);
	free(w->given);
	if (w->has_settings)
		settings_free(&w->settings);
	memset(w, 0, sizeof *w);
}

/* ── what was said ── */

const char *words_text(const struct words *w, const char *name)
{
	for (unsigned i = w->given_count; i-- > 0; )
		if (strcmp(w->given[i].name, name) == 0)
			return w->given[i].value;
	return NULL;
}

bool words_flag(const struct words *w, const char *name)
{
	return words_text(w, name) != NULL;
}

bool words_number(const struct words *w, const char *name, uint64_t least, uint64_t most, uint64_t *number)
{
	const char *text = words_text(w, name);

	if (!text || cli_number(text, least, most, number))
		return true;
	words_wrong(w, "--%s is a number from %llu to %llu, not \"%.40s\"", name, (unsigned long long)least,
		    (unsigned long long)most, text);
	return false;
}

bool words_duration(const struct words *w, const char *name, uint64_t least_ms, uint64_t most_ms, uint64_t *ms)
{
	const struct setting as = { .key = name, .type = SETTING_DURATION, .least = least_ms, .most = most_ms };
	const char *text = words_text(w, name);
	char why[256];

	if (!text || settings_value(&as, text, ms, why, sizeof why))
		return true;
	words_wrong(w, "--%s %.40s: %s", name, text, why);
	return false;
}

static const char *usage_of(const struct words *w)
{
	for (const struct verb_action *a = w->verb->actions; a && a->name; a++)
		if (w->action && strcmp(a->name, w->action) == 0)
			return a->words;
	return w->verb->words;
}

bool words_count(const struct words *w, unsigned least, unsigned most, const char *missing)
{
	if (w->count < least)
		words_wrong(w, "%s missing; usage: noh %s %s", missing, w->full, usage_of(w));
	else if (w->count > most)
		words_wrong(w, "one word too many: \"%.60s\"; usage: noh %s %s", w->plain[most], w->full, usage_of(w));
	return w->count >= least && w->count <= most;
}

bool words_color(const struct words *w)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !words_flag(w, "no-color") && !(no && *no) && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}
