/* tests/box/metrics_kit.h - what a box says of itself, read as Prometheus would.
 *
 * Owns     the text of the last scrape, one per test program.
 * Threads  the test's own.
 */
#ifndef NOH_TESTS_BOX_METRICS_KIT_H
#define NOH_TESTS_BOX_METRICS_KIT_H

#include "noh.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

static struct { char *text; size_t len, room; } scraped;

static inline int scrape_piece(void *user, const char *text, size_t len)
{
	(void)user;
	if (scraped.len + len + 1 > scraped.room) {
		scraped.room = (scraped.len + len + 1) * 2;
		scraped.text = realloc(scraped.text, scraped.room);
	}
	memcpy(scraped.text + scraped.len, text, len);
	scraped.len += len;
	scraped.text[scraped.len] = 0;
	return 0;
}

static inline const char *scrape_as(noh_box *box, int format)
{
	scraped.len = 0;
	EXPECT_EQ(noh_metrics(box, format, scrape_piece, NULL), NOH_OK);
	return scraped.text;
}

static inline void scrape(noh_box *box)
{
	(void)scrape_as(box, NOH_PROMETHEUS);
}

/* What stands behind this name (with its labels) at the beginning of a line; NULL: nothing does. */
static inline const char *scraped_at(const char *name)
{
	size_t len = strlen(name);

	for (const char *at = scraped.text; at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (strncmp(at, name, len) == 0 && at[len] == ' ')
			return at + len + 1;
	return NULL;
}

/* -1: there is none. */
static inline double said(const char *name)
{
	const char *at = scraped_at(name);

	return at ? strtod(at, NULL) : -1;
}

#endif
