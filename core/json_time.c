/* core/json_time.c - instants as text: RFC 3339, written in UTC with milliseconds. */
#include "core/json.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

/* Days since 1970-01-01 in the Gregorian calendar: years begin in March, so that leap days come last. */
static int64_t days_of(int64_t year, unsigned month, unsigned day)
{
	int64_t era;
	unsigned of_era, of_year;

	year -= month <= 2;
	era = (year >= 0 ? year : year - 399) / 400;
	of_era = (unsigned)(year - era * 400);
	of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	return era * 146097 + (int64_t)(of_era * 365 + of_era / 4 - of_era / 100 + of_year) - 719468;
}

static void date_of(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
	int64_t era;
	unsigned of_era, years, of_year, m;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	of_era = (unsigned)(days - era * 146097);
	years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	of_year = of_era - (365 * years + years / 4 - years / 100);
	m = (5 * of_year + 2) / 153;
	*day = of_year - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = (int64_t)years + era * 400 + (*month <= 2);
}

bool json_time_text(int64_t ms, char text[TIME_TEXT])
{
	int64_t days = ms / DAY_MS - (ms % DAY_MS < 0), year;
	unsigned month, day, left;

	if (days < days_of(1, 1, 1) || days > days_of(9999, 12, 31))
		return false;
	left = (unsigned)(ms - days * DAY_MS);
	date_of(days, &year, &month, &day);
	snprintf(text, TIME_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)year % 10000, month % 100, day % 100,
		 left / 3600000 % 100, left / 60000 % 60, left / 1000 % 60, left % 1000);
	return true;
}

/* ── reading ── */

/* n digits and, if it is not 0, the character behind them. */
static bool number(const char **at, const char *end, int n, char behind, unsigned *value)
{
	*value = 0;
	for (; n; n--, ++*at) {
		if (*at == end || **at < '0' || **at > '9')
			return false;
		*value = *value * 10 + (unsigned)(**at - '0');
	}
	if (!behind)
		return true;
	if (*at == end || **at != behind)
		return false;
	++*at;
	return true;
}

static unsigned days_in(unsigned year, unsigned month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return month == 2 && leap ? 29 : days[month - 1];
}

/* ".123456": milliseconds, the rest is cut off. */
static bool fraction(const char **at, const char *end, unsigned *ms)
{
	unsigned digits = 0;

	*ms = 0;
	if (*at == end || **at != '.')
		return true;
	for (++*at; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (digits++ < 3)
			*ms = *ms * 10 + (unsigned)(**at - '0');
	for (unsigned i = digits; i && i < 3; i++)
		*ms *= 10;
	return digits > 0;
}

/* "Z" or "+01:30": what is to be taken off, in minutes. */
static bool zone(const char **at, const char *end, int *minutes)
{
	unsigned h, m;
	bool minus;

	*minutes = 0;
	if (*at == end)
		return false;
	if (**at == 'Z' || **at == 'z') {
		++*at;
		return true;
	}
	if (**at != '+' && **at != '-')
		return false;
	minus = **at == '-';
	++*at;
	if (!number(at, end, 2, ':', &h) || !number(at, end, 2, 0, &m) || h > 23 || m > 59)
		return false;
	*minutes = (int)(h * 60 + m) * (minus ? -1 : 1);
	return true;
}

bool noh_json_time(noh_json value, int64_t *ms)
{
	char text[64];
	size_t len = noh_json_type_of(value) == NOH_JSON_STRING ? noh_json_text(value, text, sizeof text) : sizeof text;
	const char *at = text, *end;
	unsigned year, month, day, h, m, s, thousandths;
	int minutes;

	if (len >= sizeof text)
		return false;
	end = text + len;
	if (!number(&at, end, 4, '-', &year) || !number(&at, end, 2, '-', &month) ||
	    !number(&at, end, 2, 0, &day) || at == end || (*at != 'T' && *at != 't' && *at != ' '))
		return false;
	at++;
	if (!number(&at, end, 2, ':', &h) || !number(&at, end, 2, ':', &m) || !number(&at, end, 2, 0, &s) ||
	    !fraction(&at, end, &thousandths) || !zone(&at, end, &minutes) || at != end)
		return false;
	if (month < 1 || month > 12 || day < 1 || day > days_in(year, month) || h > 23 || m > 59 || s > 60)
		return false;
	*ms = days_of(year, month, day) * DAY_MS + ((int64_t)h * 3600 + (int64_t)m * 60 + s) * 1000 + thousandths -
	      (int64_t)minutes * 60000;
	return true;
}
