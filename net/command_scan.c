/* net/command_scan.c - which keys are there: SCAN, KEYS, DBSIZE. */
#include "net/command.h"
#include "net/session.h"

#include "core/glob.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

enum { SCAN_MOST = 10000, SCAN_USUAL = 10, KEYS_MOST = 100000, KEYS_AT_ONCE = 1000 };

enum { PREFIX = sizeof "counter:" - 1 };

/* Keys found: their bytes one behind the other, and where each of them is. */
struct place { size_t at, len; };
struct found {
	const char *pattern;
	uint32_t    pattern_len;
	struct out  bytes, places;                /* places: an array of struct place          */
};

static void find_one(void *user, const noh_scanned *actor)
{
	struct found *f = user;
	const char *key = actor->address + PREFIX;
	size_t len = actor->len - PREFIX;

	if (f->pattern && !glob_match(f->pattern, f->pattern_len, key, len))
		return;
	struct place place = { f->bytes.len, len };

	out_bytes(&f->bytes, key, len);
	out_bytes(&f->places, &place, sizeof place);
}

static uint32_t found_count(const struct found *f)
{
	return (uint32_t)(f->places.len / sizeof(struct place));
}

static struct place *found_places(const struct found *f)
{
	return (struct place *)(void *)f->places.bytes;
}

static void found_tell(const struct found *f, struct out *o)
{
	const struct place *places = found_places(f);

	out_array(o, found_count(f));
	for (uint32_t i = 0; i < found_count(f); i++)
		out_bulk(o, f->bytes.bytes + places[i].at, places[i].len);
}

static void found_close(struct found *f)
{
	out_close(&f->bytes);
	out_close(&f->places);
}

/* ── SCAN ─────────────────────────────────────────────────────────────────────────────────────── */
struct scan {
	uint64_t cursor, limit;
	bool     other_type;                      /* of which there are no keys                */
	struct found found;
};

static bool read_scan(struct call *c, struct scan *s)
{
	if (!arg_uint(&c->argv[1], &s->cursor)) {
		out_error(call_out(c), "invalid cursor");
		return false;
	}
	for (uint32_t i = 2; i < c->argc; i += 2) {
		const struct arg *a = &c->argv[i];

		if (i + 1 < c->argc && arg_is(a, "match")) {
			if (!call_pattern(c, a + 1))
				return false;
			s->found.pattern = a[1].at;
			s->found.pattern_len = a[1].len;
		} else if (i + 1 < c->argc && arg_is(a, "type")) {
			s->other_type = !arg_is(a + 1, "string");
		} else if (i + 1 < c->argc && arg_is(a, "count")) {
			int64_t n;

			if (!arg_int(a + 1, &n)) {
				out_not_int(call_out(c));
				return false;
			}
			if (n < 1) {
				out_syntax_error(call_out(c));
				return false;
			}
			s->limit = n < SCAN_MOST ? (uint64_t)n : SCAN_MOST;
		} else {
			out_syntax_error(call_out(c));
			return false;
		}
	}
	return true;
}

void cmd_scan(struct call *c)
{
	struct out *o = call_out(c);
	struct scan s = { .limit = SCAN_USUAL };

	if (!read_scan(c, &s))
		return;
	int rc = NOH_OK;

	if (s.other_type)
		s.cursor = 0;
	else
		rc = call_scan(c, "counter", &s.cursor, (uint32_t)s.limit, find_one, &s.found);
	if (rc == NOH_EINVAL) {
		out_error(o, "invalid cursor");
	} else if (rc != NOH_OK || s.found.bytes.failed || s.found.places.failed) {
		out_status(o, rc != NOH_OK ? rc : NOH_ENOMEM);
	} else {
		out_array(o, 2);
		out_cursor(o, s.cursor);
		found_tell(&s.found, o);
	}
	found_close(&s.found);
}

/* ── KEYS ─────────────────────────────────────────────────────────────────────────────────────── */
static int by_bytes(const void *a, const void *b, void *bytes)
{
	const struct place *x = a, *y = b;
	int order = memcmp((char *)bytes + x->at, (char *)bytes + y->at, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* A scan may tell of a key twice; KEYS must not. */
static void drop_doubles(struct found *f)
{
	struct place *places = found_places(f);
	uint32_t n = found_count(f), kept = 0;

	if (n < 2)
		return;
	qsort_r(places, n, sizeof *places, by_bytes, f->bytes.bytes);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || by_bytes(&places[kept - 1], &places[i], f->bytes.bytes) != 0)
			places[kept++] = places[i];
	f->places.len = kept * sizeof *places;
}

static uint64_t keys_there(struct call *c)
{
	noh_type_stats counters;

	return call_type_stats(c, "counter", &counters) == NOH_OK ? counters.existing : 0;
}

void cmd_keys(struct call *c)
{
	struct out *o = call_out(c);
	struct found found = { .pattern = c->argv[1].at, .pattern_len = c->argv[1].len };
	uint64_t cursor = 0, looked = 0;
	int rc;

	if (!call_pattern(c, &c->argv[1]))
		return;
	if (keys_there(c) > KEYS_MOST) {
		out_error(o, "-TOOBIG there are more than %d keys: KEYS would hold up everybody else, use SCAN", KEYS_MOST);
		return;
	}
	do {
		rc = call_scan(c, "counter", &cursor, KEYS_AT_ONCE, find_one, &found);
		looked += KEYS_AT_ONCE;
	} while (rc == NOH_OK && cursor != 0 && looked < 4 * KEYS_MOST && !found.bytes.failed && !found.places.failed);
	if (rc == NOH_OK && cursor != 0)
		rc = NOH_ETOOBIG;                     /* they came faster than they were told */
	if (rc != NOH_OK || found.bytes.failed || found.places.failed) {
		out_status(o, rc != NOH_OK ? rc : NOH_ENOMEM);
	} else {
		drop_doubles(&found);
		found_tell(&found, o);
	}
	found_close(&found);
}

void cmd_dbsize(struct call *c)
{
	out_int(call_out(c), (int64_t)keys_there(c));
}
