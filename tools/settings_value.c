/* tools/settings_value.c - what a text means: units written out, ranges, words to choose from. */
#include "tools/settings.h"

#include "noh.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t    worth;
};
static const struct unit sizes[] = {
	{ "B", 1 }, { "KB", 1000 }, { "MB", 1000000 }, { "GB", 1000000000 }, { "TB", 1000000000000 },
	{ "KiB", 1u << 10 }, { "MiB", 1u << 20 }, { "GiB", 1u << 30 }, { "TiB", UINT64_C(1) << 40 },
};
static const struct unit durations[] = {
	{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 },
};
enum { SIZES = sizeof sizes / sizeof sizes[0], DURATIONS = sizeof durations / sizeof durations[0] };

/* The digits text begins with, and where they end. False: none, or beyond 64 bits. */
static bool digits(const char *text, uint64_t *number, const char **end)
{
	*number = 0;
	for (*end = text; **end >= '0' && **end <= '9'; (*end)++) {
		uint64_t digit = (uint64_t)(**end - '0');

		if (*number > (UINT64_MAX - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return *end != text;
}

/* In the largest unit in which the number is whole. */
void settings_write(char *buf, size_t size, uint64_t number, enum setting_type type)
{
	const struct unit *best = NULL;

	if (type == SETTING_SIZE) {
		for (unsigned i = 0; i < SIZES; i++)
			if (strlen(sizes[i].name) != 2 && number % sizes[i].worth == 0)   /* not KB, MB */
				best = &sizes[i];
	} else if (type == SETTING_DURATION) {
		for (unsigned i = 0; i < DURATIONS; i++)
			if (number % durations[i].worth == 0)
				best = &durations[i];
	}
	snprintf(buf, size, "%" PRIu64 "%s", best ? number / best->worth : number, best ? best->name : "");
}

static bool in_range(const struct setting *t, uint64_t n, char *why, size_t size)
{
	char least[32], most[32];

	if ((n >= t->least && n <= t->most) || (n == 0 && t->or_zero))
		return true;
	settings_write(least, sizeof least, t->least, t->type);
	settings_write(most, sizeof most, t->most, t->type);
	snprintf(why, size, "is not within %s and %s%s", least, most, t->or_zero ? ", or 0" : "");
	return false;
}

static bool with_unit(const struct setting *t, const char *text, uint64_t *number, char *why, size_t size)
{
	const struct unit *units = t->type == SETTING_SIZE ? sizes : durations;
	unsigned count = t->type == SETTING_SIZE ? SIZES : DURATIONS;
	const char *example = t->type == SETTING_SIZE ? "a size with its unit, such as 64MiB or 200MB"
						      : "a time with its unit, such as 300s or 250ms";
	const char *end;

	if (!digits(text, number, &end)) {
		snprintf(why, size, "is not %s", example);
		return false;
	}
	if (*end == 0 && *number == 0)
		return in_range(t, 0, why, size);
	if (*end == 0) {
		snprintf(why, size, "lacks a unit: %s", t->type == SETTING_SIZE ? "B, KiB, MiB, GiB, KB, MB, GB"
										: "ms, s, m, h, d");
		return false;
	}
	for (unsigned i = 0; i < count; i++) {
		if (strcasecmp(end, units[i].name) != 0)
			continue;
		if (*number > UINT64_MAX / units[i].worth)
			*number = UINT64_MAX;
		else
			*number *= units[i].worth;
		return in_range(t, *number, why, size);
	}
	snprintf(why, size, "is not %s", example);
	return false;
}

static bool plain_number(const struct setting *t, const char *text, uint64_t *number, char *why, size_t size)
{
	const char *end;

	if (!digits(text, number, &end) || *end) {
		snprintf(why, size, "is not a whole number from %" PRIu64 " to %" PRIu64 "%s", t->least, t->most,
			 t->or_zero ? ", or 0" : "");
		return false;
	}
	return in_range(t, *number, why, size);
}

/* 0, 1, 0.8, 0.125: thousandths, exactly. */
static bool ratio(const char *text, uint64_t *number, char *why, size_t size)
{
	const char *end, *point;
	uint64_t part = 0;
	unsigned places = 0;
	bool good = digits(text, number, &end) && end - text == 1;

	if (good && *end == '.') {
		for (point = end++; *end >= '0' && *end <= '9' && places < 3; end++, places++)
			part = part * 10 + (uint64_t)(*end - '0');
		good = end > point + 1;
	}
	for (; places < 3; places++)
		part *= 10;
	*number = *number * 1000 + part;
	if (good && *end == 0 && *number <= 1000)
		return true;
	snprintf(why, size, "is not a part of the whole such as 0.8: 0 to 1, three places at most");
	return false;
}

static bool choice(const struct setting *t, const char *text, uint64_t *number, char *why, size_t size)
{
	size_t count = 0, at;

	for (; t->choices[count]; count++) {
		if (strcmp(t->choices[count], text) == 0) {
			*number = count;
			return true;
		}
	}
	const char *near = cli_nearest(text, t->choices, count);

	at = (size_t)snprintf(why, size, "is none of ");
	for (size_t i = 0; i < count && at < size; i++)
		at += (size_t)snprintf(why + at, size - at, "%s%s", i ? ", " : "", t->choices[i]);
	if (near && at < size)
		snprintf(why + at, size - at, "; did you mean %s?", near);
	return false;
}

/* "100", "0.5:20". The bounds are noh_limits'. */
bool settings_rate(const char *text, double *per_second, uint32_t *burst)
{
	uint64_t whole = 0;
	const char *end = text;
	char *stop;

	*burst = 0;
	if (strspn(text, "0123456789.") == 0)
		return false;                    /* strtod knows names, signs and hexadecimals, too */
	*per_second = strtod(text, &stop);
	if (strspn(text, "0123456789.") != (size_t)(stop - text) || !(*per_second >= NOH_RATE_LEAST) ||
	    *per_second > NOH_RATE_MOST)
		return false;
	if (*stop == 0)
		return true;
	if (*stop != ':' || !digits(stop + 1, &whole, &end) || *end || whole < 1 || whole > NOH_BURST_MOST)
		return false;
	*burst = (uint32_t)whole;
	return true;
}

static bool one_of_list(const struct setting *t, const char *one, char *why, size_t size)
{
	uint64_t number;
	uint32_t burst;
	double rate;

	if (t->type == SETTING_LEVELS)
		return choice(t, one, &number, why, size);
	if (t->type == SETTING_COUNTS)
		return plain_number(t, one, &number, why, size);
	if (settings_rate(one, &rate, &burst))
		return true;
	snprintf(why, size, "is not RATE or RATE:BURST, with %g to %g messages a second and a burst of 1 to %d", NOH_RATE_LEAST,
		 NOH_RATE_MOST, NOH_BURST_MOST);
	return false;
}

/* Which types there are is known when the box is. */
static bool list(const struct setting *t, const char *text, char *why, size_t size)
{
	const char *what = t->type == SETTING_LEVELS ? "WORD" : t->type == SETTING_COUNTS ? "N" : "RATE";
	char one[64], bad[160];

	for (const char *at = text; *at; ) {
		size_t len = strcspn(at, ","), name = strcspn(at, "=,");

		if (name == 0 || name >= len || len - name > sizeof one) {
			snprintf(why, size, "is not TYPE=%s, several of them parted by commas", what);
			return false;
		}
		snprintf(one, sizeof one, "%.*s", (int)(len - name - 1), at + name + 1);
		if (!one_of_list(t, one, bad, sizeof bad)) {
			snprintf(why, size, "has \"%s\" for %.*s, which %s", one, (int)name, at, bad);
			return false;
		}
		at += len + (at[len] == ',');
	}
	return true;
}

bool settings_of_type(const struct settings *s, enum setting_id id, const char *type, char *value, size_t size)
{
	size_t type_len = strlen(type);

	for (const char *at = settings_text(s, id); *at; ) {
		size_t len = strcspn(at, ",");

		if (len > type_len && memcmp(at, type, type_len) == 0 && at[type_len] == '=') {
			snprintf(value, size, "%.*s", (int)(len - type_len - 1), at + type_len + 1);
			return true;
		}
		at += len + (at[len] == ',');
	}
	return false;
}

static bool boolean(const char *text, uint64_t *number, char *why, size_t size)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (unsigned i = 0; i < 6; i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*number = i % 2;
			return true;
		}
	}
	snprintf(why, size, "is neither true nor false");
	return false;
}

static bool address(const char *text, char *why, size_t size)
{
	unsigned char room[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, text, room) == 1 || inet_pton(AF_INET6, text, room) == 1 ||
	    strcmp(text, "localhost") == 0)
		return true;
	snprintf(why, size, "is not an address such as 127.0.0.1, 0.0.0.0 or ::1");
	return false;
}

static bool printable(const char *text, char *why, size_t size)
{
	size_t len = strlen(text);

	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < ' ' || *c == 0x7f) {
			snprintf(why, size, "has a control character in it");
			return false;
		}
	}
	if (len == 0)
		snprintf(why, size, "is empty");
	else if (len > SETTINGS_VALUE_MAX)
		snprintf(why, size, "is longer than %d bytes", SETTINGS_VALUE_MAX);
	return len > 0 && len <= SETTINGS_VALUE_MAX;
}

bool settings_value(const struct setting *t, const char *text, uint64_t *number, char *why, size_t size)
{
	*number = 0;
	if (!printable(text, why, size))
		return false;
	switch (t->type) {
	case SETTING_CHOICE: return choice(t, text, number, why, size);
	case SETTING_BOOL: return boolean(text, number, why, size);
	case SETTING_NUMBER: return plain_number(t, text, number, why, size);
	case SETTING_SIZE:
	case SETTING_DURATION: return with_unit(t, text, number, why, size);
	case SETTING_RATIO: return ratio(text, number, why, size);
	case SETTING_ADDRESS: return address(text, why, size);
	case SETTING_PATH: return true;
	case SETTING_LEVELS:
	case SETTING_RATES:
	case SETTING_COUNTS: return list(t, text, why, size);
	case SETTING_TEXT: break;
	}
	if (strlen(text) >= t->least && strlen(text) <= t->most)
		return true;
	snprintf(why, size, "is not %" PRIu64 " to %" PRIu64 " characters long", t->least, t->most);
	return false;
}
