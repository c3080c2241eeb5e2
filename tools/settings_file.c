/* tools/settings_file.c - the configuration file.
 *
 *	# comment
 *	[net]
 *	bind = 127.0.0.1            # a bare value ends at the first blank
 *	unix = "/run/my app.sock"   # quoted: any text; \" and \\ inside
 *
 * Strict: what is not understood is an error with its line, and all errors of a file are told at once.
 * The file may come from anywhere: no line is trusted to end, no byte to be text.
 */
#include "tools/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	struct settings *settings;
	const char *name;
	unsigned    line;
	const char *at, *end;            /* of the line that is being read            */
	const char *section;             /* of the table; NULL: none yet, or unknown  */
	bool        lost;                /* in a section that does not exist          */
	unsigned    seen[SETTINGS];      /* the line of each key; 0: not there        */
	bool        good;
};

enum { WORD_MAX = 63 };                  /* of sections and keys */

static void wrong(struct file *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct file *f, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	f->good = false;
	settings_wrong(f->settings, "%s:%u: %s", f->name, f->line, text);
}

static void skip_blanks(struct file *f)
{
	while (f->at < f->end && (*f->at == ' ' || *f->at == '\t'))
		f->at++;
}

/* Nothing but blanks and a comment is left of the line. */
static bool at_end(struct file *f)
{
	skip_blanks(f);
	return f->at == f->end || *f->at == '#';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* A section's or key's name. False: there is none, or an endless one. */
static bool word(struct file *f, char *buf)
{
	size_t n = 0;

	skip_blanks(f);
	while (f->at < f->end && is_word(*f->at) && n < WORD_MAX)
		buf[n++] = *f->at++;
	buf[n] = 0;
	return n > 0 && (f->at == f->end || !is_word(*f->at));
}

/* ── sections ── */

static const char *find_section(const char *name)
{
	for (unsigned i = 0; i < SETTINGS; i++)
		if (strcmp(settings_table[i].section, name) == 0)
			return settings_table[i].section;
	return NULL;
}

static void read_section(struct file *f)
{
	char name[WORD_MAX + 1];
	const char *names[SETTINGS];

	f->at++;
	f->section = NULL;
	f->lost = true;                          /* until it is found: its keys are not errors of their own */
	if (!word(f, name)) {
		wrong(f, "after [ comes the name of a section, such as [net]");
		return;
	}
	skip_blanks(f);
	if (f->at == f->end || *f->at++ != ']' || !at_end(f)) {
		wrong(f, "a section is a line of its own: [%s]", name);
		return;
	}
	f->section = find_section(name);
	f->lost = f->section == NULL;
	if (!f->lost)
		return;
	for (unsigned i = 0; i < SETTINGS; i++)
		names[i] = settings_table[i].section;
	const char *near = cli_nearest(name, names, SETTINGS);

	if (near)
		wrong(f, "there is no section [%s]; did you mean [%s]?", name, near);
	else
		wrong(f, "there is no section [%s]; noh config show lists all settings", name);
}

/* ── values ── */

static bool read_escape(struct file *f, char *c)
{
	if (f->at == f->end)
		return false;
	switch (*f->at++) {
	case '"': *c = '"'; return true;
	case '\\': *c = '\\'; return true;
	default: return false;
	}
}

static bool read_quoted(struct file *f, char *buf)
{
	size_t n = 0;

	for (f->at++; f->at < f->end && *f->at != '"'; n++) {
		char c = *f->at++;

		if (c == '\\' && !read_escape(f, &c)) {
			wrong(f, "inside quotes a backslash is followed by \" or \\");
			return false;
		}
		if (n == SETTINGS_VALUE_MAX) {
			wrong(f, "the value is longer than %d bytes", SETTINGS_VALUE_MAX);
			return false;
		}
		buf[n] = c;
	}
	buf[n] = 0;
	if (f->at == f->end) {
		wrong(f, "the closing \" is missing");
		return false;
	}
	f->at++;
	return true;
}

static bool read_bare(struct file *f, char *buf)
{
	size_t n = 0;

	for (; f->at < f->end && *f->at != ' ' && *f->at != '\t' && *f->at != '#'; n++) {
		if (*f->at == '"' || *f->at == '=' || *f->at == '[' || *f->at == ']') {
			wrong(f, "a value with %c in it needs quotes: \"...\"", *f->at);
			return false;
		}
		if (n == SETTINGS_VALUE_MAX) {
			wrong(f, "the value is longer than %d bytes", SETTINGS_VALUE_MAX);
			return false;
		}
		buf[n] = *f->at++;
	}
	buf[n] = 0;
	return true;
}

static bool read_value(struct file *f, char *buf)
{
	skip_blanks(f);
	if (at_end(f)) {
		wrong(f, "the value is missing");
		return false;
	}
	bool quoted = *f->at == '"';

	if (quoted ? !read_quoted(f, buf) : !read_bare(f, buf))
		return false;
	if (at_end(f))
		return true;
	wrong(f, quoted ? "something follows the closing \"" : "a value with blanks in it needs quotes: \"...\"");
	return false;
}

/* ── keys ── */

static void unknown_key(struct file *f, const char *key)
{
	const char *names[SETTINGS];
	size_t count = 0;

	for (unsigned i = 0; i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];

		if (strcmp(t->key, key) == 0 && (!f->section || strcmp(t->section, f->section) != 0)) {
			wrong(f, "%s belongs to the section [%s]", key, t->section);
			return;
		}
		if (f->section && strcmp(t->section, f->section) == 0)
			names[count++] = t->key;
	}
	if (!f->section) {
		wrong(f, "%s stands before any section; the first line is one such as [net]", key);
		return;
	}
	const char *near = cli_nearest(key, names, count);

	if (near)
		wrong(f, "there is no key %s in [%s]; did you mean %s?", key, f->section, near);
	else
		wrong(f, "there is no key %s in [%s]; noh config show lists all settings", key, f->section);
}

static bool find_seed(const char *key, enum setting_id *id)
{
	for (unsigned i = 0; i < SETTINGS; i++) {
		if (settings_table[i].seed && strcmp(settings_table[i].seed, key) == 0) {
			*id = i;
			return true;
		}
	}
	return false;
}

static bool put(struct file *f, enum setting_id id, const char *value, bool is_file, bool is_seed)
{
	char where[4200];

	snprintf(where, sizeof where, "%s:%u", f->name, f->line);
	if (is_file)
		return settings_put_secret_file(f->settings, id, value, FROM_FILE, where);
	if (is_seed)
		return settings_put_alias(f->settings, id, value, FROM_FILE, where);
	return settings_put(f->settings, id, value, FROM_FILE, where);
}

/* True: which one; is_file: it was NAME_file, of a secret. */
static bool find_key(struct file *f, const char *key, enum setting_id *id, bool *is_file)
{
	for (unsigned i = 0; f->section && i < SETTINGS; i++) {
		const struct setting *t = &settings_table[i];
		size_t len = strlen(t->key);

		if (strcmp(t->section, f->section) != 0 || strncmp(key, t->key, len) != 0)
			continue;
		*id = i;
		*is_file = t->secret && strcmp(key + len, "_file") == 0;
		if (key[len] == 0 || *is_file)
			return true;
	}
	return false;
}

static void read_key(struct file *f)
{
	char key[WORD_MAX + 1], value[SETTINGS_VALUE_MAX + 1];
	enum setting_id id;
	bool is_file = false, is_seed;

	if (!word(f, key)) {
		wrong(f, "this is neither [section] nor key = value");
		return;
	}
	if (f->lost)
		return;
	is_seed = find_seed(key, &id);
	if (!is_seed && !find_key(f, key, &id, &is_file)) {
		unknown_key(f, key);
		return;
	}
	skip_blanks(f);
	if (f->at == f->end || *f->at++ != '=') {
		wrong(f, "after %s comes = and a value", key);
		return;
	}
	if (!read_value(f, value))
		return;
	if (f->seen[id]) {
		wrong(f, "%s is set in line %u already", settings_table[id].key, f->seen[id]);
		return;
	}
	f->seen[id] = f->line;
	if (!put(f, id, value, is_file, is_seed))
		f->good = false;
}

/* ── lines ── */

static void read_line(struct file *f)
{
	for (const char *c = f->at; c < f->end; c++) {
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f) {
			wrong(f, "there is a control character (%#x) in this line", (unsigned char)*c);
			return;
		}
	}
	if (at_end(f))
		return;
	if (*f->at == '[')
		read_section(f);
	else
		read_key(f);
}

bool settings_parse(struct settings *s, const char *name, const char *text, size_t len)
{
	struct file f = { .settings = s, .name = name, .good = true };
	const char *end = text + len;
	unsigned before = s->errors;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;                       /* some editors begin a file with this */
	while (text < end && s->errors - before < 20) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		f.line++;
		f.at = text;
		f.end = stop ? stop : end;
		text = stop ? stop + 1 : end;
		if (f.end > f.at && f.end[-1] == '\r')
			f.end--;
		read_line(&f);
	}
	return f.good;
}

/* Not a device, not a pipe, not the whole disk: at most SETTINGS_FILE_MAX bytes of a file. */
static char *slurp(int fd, size_t *len)
{
	struct stat st;
	char *text = malloc(SETTINGS_FILE_MAX + 1);
	ssize_t n = 0;

	*len = 0;
	errno = text ? 0 : ENOMEM;
	if (text && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		errno = EISDIR;
	while (text && errno == 0 && *len <= SETTINGS_FILE_MAX &&
	       (n = read(fd, text + *len, SETTINGS_FILE_MAX + 1 - *len)) > 0)
		*len += (size_t)n;
	if (*len > SETTINGS_FILE_MAX)
		errno = EFBIG;
	if (errno == 0 && n == 0)
		return text;
	free(text);
	return NULL;
}

bool settings_read_file(struct settings *s, const char *path, bool must_be_there)
{
	size_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT && !must_be_there)
		return true;
	if (fd < 0) {
		settings_wrong(s, "cannot open the configuration file %s: %s", path, strerror(errno));
		return false;
	}
	char *text = slurp(fd, &len);

	if (!text)
		settings_wrong(s, "cannot read the configuration file %s: %s", path, strerror(errno));
	close(fd);
	if (!text)
		return false;
	bool good = settings_parse(s, path, text, len);

	free(text);
	free(s->config);
	s->config = settings_copy(path);
	return good;
}
