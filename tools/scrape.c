/* tools/scrape.c - the text format, line by line. */
#include "tools/scrape.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':';
}

/* A quoted value, unescaped in place; returns what follows the closing quote, NULL: there is none. */
static char *unquote(char *at)
{
	char *to = at;

	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && at[1]) {
			at++;
			*to++ = *at == 'n' ? '\n' : *at;
		} else {
			*to++ = *at;
		}
	}
	if (*at != '"')
		return NULL;
	*to = 0;
	return at + 1;
}

static char *read_labels(struct sample *x, char *at)
{
	while (*at != '}') {
		char *name = at, *value;

		while (name_char(*at))
			at++;
		if (at == name || at[0] != '=' || at[1] != '"')
			return NULL;
		*at = 0;
		value = at + 2;
		at = unquote(value);
		if (!at)
			return NULL;
		if (x->labels < SCRAPE_LABELS) {
			x->label[x->labels].name = name;
			x->label[x->labels++].value = value;
		}
		if (*at == ',')
			at++;
		else if (*at != '}')
			return NULL;
	}
	return at + 1;
}

/* name{label="value",...} number [time] */
static bool read_line(struct sample *x, char *line)
{
	char *at = line, *end, mark;

	memset(x, 0, sizeof *x);
	while (name_char(*at))
		at++;
	mark = *at;
	if (at == line || (mark != '{' && mark != ' '))
		return false;
	*at++ = 0;
	x->name = line;
	if (mark == '{')
		at = read_labels(x, at);
	if (!at)
		return false;
	while (*at == ' ')
		at++;
	x->value = strtod(at, &end);
	return end != at && (*end == 0 || *end == ' ');
}

static bool add(struct scrape *s, const struct sample *x)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct sample *all = realloc(s->all, room * sizeof *all);

		if (!all)
			return false;
		s->all = all;
		s->room = room;
	}
	s->all[s->count++] = *x;
	return true;
}

bool scrape_read(struct scrape *s, const char *text, size_t len)
{
	struct sample x;

	memset(s, 0, sizeof *s);
	s->text = malloc(len + 1);
	if (!s->text)
		return false;
	memcpy(s->text, text, len);
	s->text[len] = 0;
	for (char *line = s->text, *next; line && *line && s->count < SCRAPE_SAMPLES; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		line[strcspn(line, "\r")] = 0;
		if (*line == '#' || *line == 0)
			continue;
		if (!read_line(&x, line))
			s->bad++;
		else if (!add(s, &x))
			return false;
	}
	return true;
}

void scrape_free(struct scrape *s)
{
	free(s->text);
	free(s->all);
	memset(s, 0, sizeof *s);
}

const char *sample_label(const struct sample *x, const char *name)
{
	for (unsigned i = 0; i < x->labels; i++)
		if (strcmp(x->label[i].name, name) == 0)
			return x->label[i].value;
	return "";
}

static bool is_it(const struct sample *x, const char *name, const char *label, const char *value)
{
	return strcmp(x->name, name) == 0 && (!label || strcmp(sample_label(x, label), value) == 0);
}

double scrape_sum(const struct scrape *s, const char *name, const char *label, const char *value)
{
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		if (is_it(&s->all[i], name, label, value))
			sum += s->all[i].value;
	return sum;
}

bool scrape_has(const struct scrape *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->all[i].name, name) == 0)
			return true;
	return false;
}

/* ── quantiles ── */

enum { BOUNDS = 128 };
struct buckets {
	double   bound[BOUNDS], count[BOUNDS];     /* cumulative, as in the text */
	unsigned n;
};

static void gather(struct buckets *b, const struct scrape *s, const char *name, const char *label, const char *value,
		   double sign)
{
	for (size_t i = 0; s && i < s->count; i++) {
		const struct sample *x = &s->all[i];
		unsigned at = 0;

		if (!is_it(x, name, label, value))
			continue;
		double bound = strtod(sample_label(x, "le"), NULL);

		while (at < b->n && b->bound[at] != bound)
			at++;
		if (at == BOUNDS)
			continue;
		if (at == b->n) {
			b->bound[at] = bound;
			b->count[b->n++] = 0;
		}
		b->count[at] += sign * x->value;
	}
}

double scrape_quantile(const struct scrape *before, const struct scrape *now, const char *name, const char *label,
		       const char *value, double q)
{
	struct buckets b = { .n = 0 };
	double total = 0, best = INFINITY, last = -1;
	char full[256];

	snprintf(full, sizeof full, "%s_bucket", name);
	gather(&b, now, full, label, value, 1);
	gather(&b, before, full, label, value, -1);
	for (unsigned i = 0; i < b.n; i++) {
		if (isinf(b.bound[i]))
			total = b.count[i];
		else if (b.bound[i] > last)
			last = b.bound[i];
	}
	if (!(total > 0))
		return -1;
	for (unsigned i = 0; i < b.n; i++)
		if (b.count[i] >= q * total && b.bound[i] < best)
			best = b.bound[i];
	return isinf(best) ? last : best;
}

/* ── values of a label ── */

static int by_value(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	char *x_end, *y_end;
	double m = strtod(x, &x_end), n = strtod(y, &y_end);

	if (*x && *y && !*x_end && !*y_end)
		return (m > n) - (m < n);
	return strcmp(x, y);
}

size_t scrape_values(const struct scrape *s, const char *name, const char *label, const char **values, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < s->count && n < room; i++) {
		const char *value = sample_label(&s->all[i], label);
		size_t k = 0;

		if (strcmp(s->all[i].name, name) != 0 || !*value)
			continue;
		while (k < n && strcmp(values[k], value) != 0)
			k++;
		if (k == n)
			values[n++] = value;
	}
	if (n)
		qsort(values, n, sizeof *values, by_value);
	return n;
}
