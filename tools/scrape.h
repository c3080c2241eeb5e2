/* tools/scrape.h - /metrics as numbers: Prometheus' text format, read.
 *
 * Owns     the text it was given a copy of, until scrape_free.
 * Threads  one.
 * Never    trusts the text: a line that is none is skipped and counted.
 */
#ifndef NOH_TOOLS_SCRAPE_H
#define NOH_TOOLS_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCRAPE_LABELS = 6, SCRAPE_SAMPLES = 200000 };

struct sample {
	const char *name;
	struct { const char *name, *value; } label[SCRAPE_LABELS];
	unsigned    labels;
	double      value;
};

struct scrape {
	char          *text;
	struct sample *all;
	size_t         count, room, bad;
	uint64_t       at_ns;              /* when it was asked for */
};

/* False: no memory. */
bool scrape_read(struct scrape *s, const char *text, size_t len);
void scrape_free(struct scrape *s);

const char *sample_label(const struct sample *x, const char *name);        /* "": it has none */

/* The sum over all samples of this name, with this label if label is not NULL. */
double scrape_sum(const struct scrape *s, const char *name, const char *label, const char *value);
bool   scrape_has(const struct scrape *s, const char *name);

/* Of a histogram's buckets (name without _bucket) between two scrapes: the value below which the share q of what came
 * in between lies, or the last finite bound. Negative: nothing came. before may be NULL. */
double scrape_quantile(const struct scrape *before, const struct scrape *now, const char *name, const char *label,
		       const char *value, double q);

/* The different values of a label in samples of this name, sorted; at most `room`. Numbers sort as numbers. */
size_t scrape_values(const struct scrape *s, const char *name, const char *label, const char **values, size_t room);

#endif
