/* tools/cli.c - words, numbers and clocks for the verbs. */
#include "tools/cli.h"

#include "noh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

int cli_exit_of(int rc)
{
	if (rc == NOH_OK)
		return CLI_FINE;
	return rc == NOH_EINUSE || rc == NOH_ENOSPC || rc == NOH_ENOMEM ? CLI_TEMPORARY : CLI_FAILED;
}

bool cli_next(struct cli_args *args)
{
	if (args->at >= args->count)
		return false;
	char *word = args->words[args->at++];

	args->name = NULL;
	args->value = word;
	if (strcmp(word, "-h") == 0)
		word = "--help";
	if (strncmp(word, "--", 2) != 0)
		return true;
	char *equals = strchr(word, '=');

	args->name = word + 2;
	args->value = NULL;
	if (equals != NULL) {
		*equals = '\0';
		args->value = equals + 1;
	}
	return true;
}

const char *cli_value(struct cli_args *args)
{
	if (args->value == NULL && args->at < args->count &&
	    strncmp(args->words[args->at], "--", 2) != 0)
		args->value = args->words[args->at++];
	return args->value;
}

bool cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	double value = strtod(text, &end);
	switch (*end) {
	case 'k': case 'K': value *= 1e3; end++; break;
	case 'm': case 'M': value *= 1e6; end++; break;
	case 'g': case 'G': value *= 1e9; end++; break;
	default: break;
	}
	if (*end != '\0' || errno != 0 || !(value < 1.8e19))
		return false;
	*number = (uint64_t)value;
	return (double)*number >= value && *number >= min && *number <= max;
}

/* Edit distance with swaps of neighbours; words here are short, longer ones are never near. */
static unsigned distance(const char *a, const char *b)
{
	enum { MOST = 40 };
	unsigned rows[3][MOST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t n = strlen(a), m = strlen(b);

	if (n > MOST || m > MOST)
		return MOST;
	for (unsigned j = 0; j <= m; j++)
		before[j] = last[j] = j;
	for (unsigned i = 1; i <= n; i++) {
		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			row[j] = best;
		}
		unsigned *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[m];
}

const char *cli_nearest(const char *word, const char *const *candidates, size_t count)
{
	size_t len = strlen(word);
	unsigned best = len < 3 ? 1 : len < 7 ? 2 : 3;
	const char *found = NULL;

	for (size_t i = 0; i < count; i++) {
		unsigned d = distance(word, candidates[i]);
		if (d < best || (d == best && found == NULL)) {
			best = d;
			found = candidates[i];
		}
	}
	for (size_t i = 0; found == NULL && len >= 3 && i < count; i++)
		if (strncmp(word, candidates[i], len) == 0)
			found = candidates[i];
	return found;
}

const char *cli_rate(char *buf, size_t size, double v)
{
	static const char *const unit[] = { "", " k", " M", " G" };
	unsigned u = 0;

	while (v >= 999.5 && u < 3) {
		v /= 1000;
		u++;
	}
	snprintf(buf, size, "%.*f%s", u == 0 ? 0 : v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[u]);
	return buf;
}

const char *cli_time(char *buf, size_t size, double ns)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	unsigned u = 0;

	while (ns >= 999.5 && u < 3) {
		ns /= 1000;
		u++;
	}
	int digits = u == 0 ? 0 : ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0;

	snprintf(buf, size, "%.*f %s", digits, ns, unit[u]);
	return buf;
}

const char *cli_count(char *buf, size_t size, uint64_t number)
{
	char digits[24];
	int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
	size_t out = 0;

	for (int i = 0; i < n && out + 2 < size; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			buf[out++] = ' ';
		buf[out++] = digits[i];
	}
	buf[out] = '\0';
	return buf;
}

const char *cli_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	unsigned u = 0;

	while (v >= 1023.5 && u < 4) {
		v /= 1024;
		u++;
	}
	snprintf(buf, size, "%.*f %s", u == 0 || v >= 99.95 ? 0 : 1, v, unit[u]);
	return buf;
}

void cli_json_text(const void *text, size_t len)
{
	const unsigned char *at = text;

	putchar('"');
	for (size_t i = 0; i < len; i++) {
		if (at[i] == '"' || at[i] == '\\')
			printf("\\%c", at[i]);
		else if (at[i] < ' ' || at[i] > '~')
			printf("\\u%04x", at[i]);
		else
			putchar(at[i]);
	}
	putchar('"');
}

uint64_t cli_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	nanosleep(&t, NULL);
}

uint64_t cli_rss_anon(void)
{
	char line[256];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "RssAnon: %llu kB", &kib) == 1)
			break;
	fclose(f);
	return (uint64_t)kib * 1024;
}

double cli_cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}
