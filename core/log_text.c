#include "core/log_text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MSG_ROOM = 2048, ACTOR_ROOM = 640, FIELD_ROOM = 96 };      /* of a field, escaped */

static const char *const names[] = { "debug", "info", "warn", "error" };

const char *log_level_name(int level)
{
	return names[level < NOH_DEBUG ? NOH_DEBUG : level > NOH_ERROR ? NOH_ERROR : level];
}

int log_level_number(const char *name, size_t len)
{
	static const struct { const char *name; int level; } known[] = {
		{ "debug", NOH_DEBUG }, { "info", NOH_INFO }, { "warn", NOH_WARN }, { "error", NOH_ERROR },
		{ "verbose", NOH_INFO }, { "notice", NOH_INFO }, { "warning", NOH_WARN } };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strlen(known[i].name) == len && strncasecmp(known[i].name, name, len) == 0)
			return known[i].level;
	return -1;
}

/* ── escaping ── */

/* The bytes of the UTF-8 character at text; 0: it is none. Never reads beyond a NUL. */
static size_t utf8(const unsigned char *t, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = t[0] < 0x80 ? 1 : t[0] >= 0xc2 && t[0] < 0xe0 ? 2 : (t[0] & 0xf0) == 0xe0 ? 3 :
		   t[0] >= 0xf0 && t[0] < 0xf5 ? 4 : 0;

	if (n < 2) {
		*code = t[0];
		return n;
	}
	*code = t[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((t[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (t[i] & 0x3fu);
	}
	return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

/* Control characters, ends of lines, and those that turn the direction of text around. */
static bool hides(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0x200e || c == 0x200f ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

#define ESCAPE_MOST 12

/* One character; what it takes of text is in *taken. */
static size_t escape_one(char *out, const unsigned char *text, bool json, size_t *taken)
{
	uint32_t code;
	size_t n = utf8(text, &code);

	*taken = n ? n : 1;
	if (n == 0)
		return (size_t)snprintf(out, ESCAPE_MOST, json ? "\\ufffd" : "\\x%02x", text[0]);
	if (code == '\\' || (json && code == '"'))
		return (size_t)snprintf(out, ESCAPE_MOST, "\\%c", (int)code);
	if (hides(code))
		return (size_t)snprintf(out, ESCAPE_MOST, json ? "\\u%04x" : code < 0x100 ? "\\x%02x" : "\\u%04x", code);
	memcpy(out, text, n);
	return n;
}

size_t log_escape(char *out, size_t room, const char *text, bool json)
{
	const unsigned char *c = (const unsigned char *)text;
	char one[ESCAPE_MOST];
	size_t at = 0, taken, n;

	while (*c) {
		n = escape_one(one, c, json, &taken);
		if (at + n + (c[taken] ? 3 : 0) > room) {        /* what is cut off is shown as such */
			size_t dots = room - at < 3 ? room - at : 3;

			memcpy(out + at, "...", dots);
			return at + dots;
		}
		memcpy(out + at, one, n);
		at += n;
		c += taken;
	}
	return at;
}

/* ── a line ── */

struct line { char *at; size_t len; };   /* the rooms of all fields together fit: see below */
static_assert(MSG_ROOM + ACTOR_ROOM + 5 * FIELD_ROOM + 400 < LOG_LINE_MAX, "a line has room for all its fields");

static void put(struct line *l, const char *text)
{
	size_t n = strlen(text);

	memcpy(l->at + l->len, text, n);
	l->len += n;
}

static void put_escaped(struct line *l, const char *text, size_t room, bool json)
{
	l->len += log_escape(l->at + l->len, room, text, json);
}

static void put_field(struct line *l, const char *name, const char *value, size_t room, bool json)
{
	if (!value || !*value)
		return;
	put(l, json ? ",\"" : " ");
	put(l, name);
	put(l, json ? "\":\"" : "=");
	put_escaped(l, value, room, json);
	if (json)
		put(l, "\"");
}

static void put_number(struct line *l, const char *name, uint64_t value, bool json)
{
	char text[64];

	snprintf(text, sizeof text, json ? ",\"%s\":%llu" : " %s=%llu", name, (unsigned long long)value);
	put(l, text);
}

static void put_time(struct line *l, uint64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	char date[32], text[48];
	struct tm utc;

	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
	snprintf(text, sizeof text, "%s.%03uZ", date, (unsigned)(wall_ms % 1000));
	put(l, text);
}

static void put_head(struct line *l, const noh_log_line *line, bool json, bool journal, uint64_t wall_ms)
{
	static const char *const priority[] = { "<7>", "<6>", "<4>", "<3>" };    /* of syslog */
	int level = line->level < NOH_DEBUG ? NOH_DEBUG : line->level > NOH_ERROR ? NOH_ERROR : line->level;
	char text[16];

	if (journal)
		put(l, priority[level]);
	if (json)
		put(l, "{\"time\":\"");
	if (json || !journal)
		put_time(l, wall_ms);
	if (json) {
		put(l, "\",\"level\":\"");
		put(l, names[level]);
		put(l, "\",\"msg\":\"");
	} else if (!journal) {
		snprintf(text, sizeof text, " %-5s ", names[level]);
		put(l, text);
	}
}

size_t log_text(char out[LOG_LINE_MAX], const noh_log_line *line, enum log_form form, bool journal, uint64_t wall_ms,
		uint64_t repeated)
{
	struct line l = { out, 0 };
	bool json = form == LOG_JSON;

	put_head(&l, line, json, journal, wall_ms);
	if (!json && *line->actor) {
		put_escaped(&l, line->actor, ACTOR_ROOM, false);
		put(&l, ": ");
	}
	put_escaped(&l, line->msg, MSG_ROOM, json);
	if (json) {
		put(&l, "\"");
		put_field(&l, "actor", line->actor, ACTOR_ROOM, true);
		put_field(&l, "type", line->type, FIELD_ROOM, true);
	}
	put_field(&l, "msg_id", line->msg_id, FIELD_ROOM, json);
	put_field(&l, "trace_id", line->trace_id, FIELD_ROOM, json);
	if (json)
		put_field(&l, "span_id", line->span_id, FIELD_ROOM, true);
	if (json && line->shard >= 0)
		put_number(&l, "shard", (uint64_t)line->shard, true);
	if (repeated)
		put_number(&l, "repeated", repeated, json);
	put(&l, json ? "}\n" : "\n");
	return l.len;
}
