/* tools/settings_words.c - the table in words: for --help, for docs/configuration.md, as a file to start from. */
#include "tools/settings.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *about;
} sections[] = {
	{ "data", "What is kept, and what an answer means." },
	{ "events", "What happened, as a log to follow; see docs/events.md." },
	{ "net", "Who may connect, and how much one of them may ask for." },
	{ "http", "The same API as JSON over HTTP, and its limits." },
	{ "box", "Threads and memory." },
	{ "actors", "The built-in types, counter and inventory." },
	{ "limits", "How much of a type may happen: messages a second, turns at once." },
	{ "users", "Accounts; see noh user." },
	{ "log", "What is told on stderr." },
	{ "trace", "What is remembered of requests on their way (noh trace)." },
	{ "node", "Names that other systems of actors use." },
	{ "pool", "The same, for their pools of nodes: here, of worker threads." },
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static const char *placeholder(const struct setting *t)
{
	static const char *const words[] = {
		[SETTING_TEXT] = "TEXT", [SETTING_PATH] = "PATH", [SETTING_ADDRESS] = "ADDR", [SETTING_CHOICE] = "",
		[SETTING_BOOL] = "", [SETTING_NUMBER] = "N", [SETTING_SIZE] = "SIZE", [SETTING_DURATION] = "TIME", [SETTING_RATIO] = "0.N",
		[SETTING_LEVELS] = "LIST", [SETTING_RATES] = "LIST", [SETTING_COUNTS] = "LIST",
	};
	return words[t->type];
}

/* "auto|uring|epoll" */
static void choices(char *buf, size_t size, const struct setting *t, const char *between)
{
	size_t at = 0;

	buf[0] = 0;
	for (unsigned i = 0; t->choices && t->choices[i] && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? between : "", t->choices[i]);
}

/* A text in lines of at most `width`, each but the first begun with `indent` blanks. */
static void wrap(const char *text, int indent, int width)
{
	int column = 0;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > 0 && column + 1 + len > width) {
			printf("\n%*s", indent, "");
			column = 0;
		}
		column += printf("%s%.*s", column ? " " : "", len, text);
		text += len;
		text += *text == ' ';
	}
	putchar('\n');
}

static void help_line(const struct setting *t)
{
	enum { HELP_AT = 32, WIDTH = 68 };
	char left[96], words[64], text[512];
	const char *take = placeholder(t);

	choices(words, sizeof words, t, "|");
	if (t->choices)
		take = words;
	if (t->type == SETTING_BOOL && strcmp(t->preset, "true") == 0)
		snprintf(left, sizeof left, "--%s=true|false", t->flag);     /* alone it would change nothing */
	else
		snprintf(left, sizeof left, "--%s%s%s", t->flag, *take ? " " : "", take);
	snprintf(text, sizeof text, "%s%s%s%s", t->help, *t->preset ? " [" : "", t->preset, *t->preset ? "]" : "");
	printf("  %-*s", HELP_AT - 2, left);
	if (strlen(left) >= HELP_AT - 2)
		printf("\n%*s", HELP_AT, "");
	wrap(text, HELP_AT, WIDTH);
}

void settings_print_help(void)
{
	printf("  --config FILE                 Settings from a file [" SETTINGS_USUAL_FILE ", if it is there]\n");
	for (unsigned c = 0; c < SECTIONS; c++) {
		printf("\n%s\n", sections[c].about);
		for (unsigned i = 0; i < SETTINGS; i++)
			if (settings_table[i].flag && !settings_table[i].ignored &&
			    strcmp(settings_table[i].section, sections[c].name) == 0)
				help_line(&settings_table[i]);
	}
}

/* ── docs/configuration.md ── */

static void in_words(const struct setting *t)
{
	char words[128], least[32], most[32];

	choices(words, sizeof words, t, ", ");
	settings_write(least, sizeof least, t->least, t->type);
	settings_write(most, sizeof most, t->most, t->type);
	switch (t->type) {
	case SETTING_CHOICE: printf("%s", words); break;
	case SETTING_LEVELS: printf("TYPE=WORD, ...; words: %s", words); break;
	case SETTING_RATES: printf("TYPE=RATE, TYPE=RATE:BURST, ..."); break;
	case SETTING_COUNTS: printf("TYPE=N, ...; %s to %s", least, most); break;
	case SETTING_BOOL: printf("true, false"); break;
	case SETTING_NUMBER:
	case SETTING_SIZE:
	case SETTING_DURATION: printf("%s to %s", least, most); break;
	case SETTING_RATIO: printf("0 to 1"); break;
	case SETTING_PATH: printf("path"); break;
	case SETTING_ADDRESS: printf("address"); break;
	case SETTING_TEXT: printf("%s to %s characters", least, most); break;
	}
	if (t->or_zero)
		printf(", or 0");
}

static void row(enum setting_id id)
{
	const struct setting *t = &settings_table[id];
	char name[64];

	settings_env_name(id, name, sizeof name);
	printf("| `%s` | ", t->key);
	if (t->flag)
		printf("`--%s`", t->flag);
	printf(" | `%s`", name);
	if (t->secret)
		printf(", `%s_FILE`", name);
	for (unsigned i = 0; i < 2; i++)
		if (t->alias[i])
			printf(", `%s`", t->alias[i]);
	printf(" | ");
	in_words(t);
	printf(" | %s%s%s | %s | %s |\n", *t->preset ? "`" : "", t->preset, *t->preset ? "`" : "",
	       t->restart ? "yes" : "", t->help);
}

void settings_print_page(void)
{
	printf("# Configuration\n\n"
	       "Every setting of `noh serve`. Written by `noh config doc` from the table in the program (`tools/settings.c`);\n"
	       "do not edit. A value comes from the strongest of four places:\n\n"
	       "    default  <  configuration file  <  environment  <  flag\n\n"
	       "The file is `" SETTINGS_USUAL_FILE "` if it is there, or what `--config FILE` or `NOH_CONFIG` names. "
	       "`noh config show` prints\n"
	       "each value with the place it comes from, in the form of such a file; `noh config check` lists what is wrong\n"
	       "without starting anything. An unknown key, a value out of range and a number without its unit are errors\n"
	       "that name the line and what would be right; the server does not start with them.\n\n"
	       "```ini\n# comment\n[data]\ndir = /var/lib/noh\n\n[net]\nbind = 10.0.0.7\nmax_connections = 20000\n"
	       "unix = \"/run/noh/my app.sock\"      # quotes where there are blanks; \\\" and \\\\ inside\n\n"
	       "[box]\nmemory = 8GiB\n```\n\n"
	       "Sizes are whole numbers with B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB (of 1000); times with\n"
	       "ms, s, m, h, d. In the environment an empty variable is one that is not set. A variable with `_FILE` at the\n"
	       "end of its name (and, in the file, a key with `_file`) names a file that holds the secret. A running server\n"
	       "reads all of it again on SIGHUP, `noh config reload` or `POST /admin/config/reload`: nothing changes if anything is\n"
	       "wrong; else all does but what the column restart marks.\n");
	for (unsigned c = 0; c < SECTIONS; c++) {
		printf("\n## [%s]\n\n%s\n\n| key | flag | environment | value | default | restart | |\n"
		       "| --- | --- | --- | --- | --- | --- | --- |\n", sections[c].name, sections[c].about);
		for (unsigned i = 0; i < SETTINGS; i++)
			if (strcmp(settings_table[i].section, sections[c].name) == 0)
				row(i);
	}
	printf("\nThe `ACTOR_` names are those of other systems of actors, with the unit in their names (`..._SECONDS`). "
	       "Where both are\nset, the `NOH_` name counts. Their names for files (");
	for (unsigned i = 0, n = 0; i < SETTINGS; i++)
		if (settings_table[i].seed)
			printf("%s`%s`", n++ ? ", " : "", settings_table[i].seed);
	printf(") are keys\nof any section here. What one box has no use for is accepted with a warning; "
	       "a mode other than `local` is refused.\n\n"
	       "Elsewhere: signals, exit codes, users and a full disk are in [operations.md](operations.md).\n");
}
