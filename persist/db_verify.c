/* persist/db_verify.c - every row of one snapshot, and whether the tables agree.
 *
 * Sets are compared by the sum of the hashes of their members, so no table is looked up from another:
 * one pass over each, in key order. Entries go along with the images they belong to.
 *
 * It holds one snapshot all the time: pages are not used again meanwhile, and a fold that has to move
 * the map waits until it is done.
 */
#include "persist/db_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TELL_EVERY 100000
#define TYPES_MOST 4096

struct type_seen { uint64_t hash, images; };

struct verify {
	struct db       *db;
	struct reader   *r;
	db_problem_fn   *problem;
	db_progress_fn  *progress;
	void            *arg;
	int64_t          found;
	uint64_t         done, all;
	uint64_t         due, timers;             /* sums over what images say, and over the rows */
	uint64_t         keys, ages, idem_bytes;
	uint64_t         event, event_bytes;      /* the last one, and all of them */
	struct type_seen types[TYPES_MOST];
	size_t           type_count;
	MDB_cursor      *entries;                 /* stands on the next entry */
	MDB_val          entry, entry_val;
	bool             more_entries;
};

static void report(struct verify *v, enum table t, const void *key, size_t len, const char *what)
{
	char text[400];
	int at = snprintf(text, sizeof text, "table %s, \"", table_name(t));

	for (size_t i = 0; i < len && i < 255; i++) {
		char c = ((const char *)key)[i];
		text[at++] = c >= ' ' && c < 127 && c != '"' ? c : '.';
	}
	snprintf(text + at, sizeof text - (size_t)at, "\": %s", what);
	v->found++;
	if (v->problem)
		v->problem(v->arg, text);
}

static void advance(struct verify *v)
{
	if (++v->done % TELL_EVERY == 0 && v->progress)
		v->progress(v->arg, v->done, v->all);
}

static uint64_t hash_of(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

/* ── images, and the entries beside them ── */

static void next_entry(struct verify *v, MDB_cursor_op op)
{
	MDB_val before = v->entry;
	int rc = mdb_cursor_get(v->entries, &v->entry, &v->entry_val, op);

	v->more_entries = rc == MDB_SUCCESS;
	if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
		report(v, TABLE_ENTRIES, "", 0, mdb_strerror(rc));
	if (rc == MDB_SUCCESS && op == MDB_NEXT &&
	    key_compare(before.mv_data, before.mv_size, v->entry.mv_data, v->entry.mv_size) >= 0)
		report(v, TABLE_ENTRIES, v->entry.mv_data, v->entry.mv_size, "out of order");
}

/* Entries whose address is below this one have no image. */
static void skip_orphans(struct verify *v, const uint8_t *prefix, size_t len)
{
	while (v->more_entries && (!prefix || key_compare(v->entry.mv_data, v->entry.mv_size, prefix,
							   len) < 0)) {
		report(v, TABLE_ENTRIES, v->entry.mv_data, v->entry.mv_size, "belongs to no image");
		advance(v);
		next_entry(v, MDB_NEXT);
	}
}

static void check_entries(struct verify *v, const MDB_val *address, const struct value_image *image)
{
	uint8_t prefix[VALUE_KEY_MAX + 1];
	size_t len = key_pair(prefix, address->mv_data, address->mv_size, NULL, 0);
	uint64_t count = 0, sums = 0;

	skip_orphans(v, prefix, len);
	while (v->more_entries && v->entry.mv_size >= len &&
	       memcmp(v->entry.mv_data, prefix, len) == 0) {
		struct value_row row;

		if (!value_row(TABLE_ENTRIES, v->entry.mv_data, v->entry.mv_size, v->entry_val.mv_data,
			       v->entry_val.mv_size, &row))
			report(v, TABLE_ENTRIES, v->entry.mv_data, v->entry.mv_size,
			       "the checksum or the key does not match");
		sums += row.v.sum;
		count++;
		advance(v);
		next_entry(v, MDB_NEXT);
	}
	if (count != image->entries || sums != image->entries_sum)
		report(v, TABLE_IMAGES, address->mv_data, address->mv_size,
		       "its entries are not those it was stored with");
}

static void count_type(struct verify *v, const MDB_val *address, const struct part_state *state)
{
	uint8_t key[VALUE_KEY_MAX];
	size_t len = key_type(key, address->mv_data, address->mv_size, state->version, state->schema);
	uint64_t hash = hash_of(key, len);

	for (size_t i = 0; i < v->type_count; i++)
		if (v->types[i].hash == hash) {
			v->types[i].images++;
			return;
		}
	if (v->type_count < TYPES_MOST)
		v->types[v->type_count++] = (struct type_seen){ hash, 1 };
}

static void check_image(struct verify *v, const MDB_val *key, const struct value_row *row)
{
	struct part_state state = { .version = 0 };
	struct value_parts parts;
	uint8_t timer[VALUE_KEY_MAX];

	if (!value_image_parts(row->rest, row->rest_len, &parts))
		return;
	if (parts.state_at)
		memcpy(&state, parts.state.data, sizeof state);
	count_type(v, key, &state);
	uint64_t due = value_due(&parts.timers);

	if (due)
		v->due += hash_of(timer, key_timer(timer, due, key->mv_data, key->mv_size));
	if (value_unwell(&parts.vitals))
		v->due += hash_of(timer, key_timer(timer, VALUE_UNWELL, key->mv_data, key->mv_size));
	check_entries(v, key, &row->image);
}

/* ── the others ── */

static void check_type(struct verify *v, const MDB_val *key, const struct value_row *row)
{
	uint64_t hash = hash_of(key->mv_data, key->mv_size);

	for (size_t i = 0; i < v->type_count; i++)
		if (v->types[i].hash == hash) {
			if (v->types[i].images != row->images)
				report(v, TABLE_TYPES, key->mv_data, key->mv_size, "counts wrongly");
			v->types[i].images = 0;
			return;
		}
	if (v->type_count < TYPES_MOST)
		report(v, TABLE_TYPES, key->mv_data, key->mv_size, "counts images that are not there");
}

/* at_ms, number, key: the same bytes from both sides. */
static uint64_t age_hash(uint64_t at_ms, uint64_t number, const void *key, size_t len)
{
	return XXH3_64bits_withSeed(key, len, at_ms * UINT64_C(0x9e3779b97f4a7c15) + number);
}

static void check_row(struct verify *v, enum table t, const MDB_val *key, const struct value_row *row)
{
	struct part_idem idem;

	switch (t) {
	case TABLE_IMAGES:
		check_image(v, key, row);
		break;
	case TABLE_TIMERS:
		v->timers += hash_of(key->mv_data, key->mv_size);
		break;
	case TABLE_TYPES:
		check_type(v, key, row);
		break;
	case TABLE_IDEM:
		memcpy(&idem, row->rest, sizeof idem);
		v->keys += age_hash(idem.at_ms, row->number, key->mv_data, key->mv_size);
		v->idem_bytes += key->mv_size + row->v.len + sizeof(struct value_head);
		break;
	case TABLE_EVENTS:
		if (v->event && row->v.seq != v->event + 1)
			report(v, t, key->mv_data, key->mv_size, "the event before it is missing");
		v->event = row->v.seq;
		v->event_bytes += key->mv_size + row->v.len + sizeof(struct value_head);
		break;
	case TABLE_IDEM_AGE:
		v->ages += age_hash(key_u64(key->mv_data), key_u64((const uint8_t *)key->mv_data + 8),
				    row->rest, row->rest_len);
		break;
	default:
		break;
	}
}

static void check_table(struct verify *v, enum table t)
{
	MDB_cursor *c = reader_cursor(v->db, v->r, t);
	MDB_val key, val, before = { 0, NULL };
	MDB_stat stat = { .ms_entries = 0 };
	uint64_t rows = 0;
	int rc = c ? mdb_cursor_get(c, &key, &val, MDB_FIRST) : ENOMEM;

	for (; rc == MDB_SUCCESS; rc = mdb_cursor_get(c, &key, &val, MDB_NEXT), rows++) {
		struct value_row row;

		if (rows && key_compare(before.mv_data, before.mv_size, key.mv_data, key.mv_size) >= 0)
			report(v, t, key.mv_data, key.mv_size, "out of order");
		before = key;
		if (value_row(t, key.mv_data, key.mv_size, val.mv_data, val.mv_size, &row))
			check_row(v, t, &key, &row);
		else
			report(v, t, key.mv_data, key.mv_size, "the checksum or the key does not match");
		advance(v);
	}
	if (rc != MDB_NOTFOUND)
		report(v, t, "", 0, mdb_strerror(rc));
	mdb_stat(v->r->txn, v->db->fixed.tables[t], &stat);
	if (stat.ms_entries != rows)
		report(v, t, "", 0, "has another number of rows than it says");
}

static void check_all(struct verify *v)
{
	struct meta_stamp stamp = { .frame = 0 };
	MDB_stat stat;

	for (enum table t = 0; t < TABLES; t++)
		if (db_has_table(v->db, t) && mdb_stat(v->r->txn, v->db->fixed.tables[t], &stat) == MDB_SUCCESS)
			v->all += stat.ms_entries;
	if (mdb_cursor_open(v->r->txn, v->db->fixed.tables[TABLE_ENTRIES], &v->entries) != MDB_SUCCESS) {
		report(v, TABLE_ENTRIES, "", 0, "cannot be read");
		return;
	}
	next_entry(v, MDB_FIRST);
	check_table(v, TABLE_IMAGES);
	skip_orphans(v, NULL, 0);
	mdb_cursor_close(v->entries);
	for (enum table t = TABLE_PENDING; t < TABLES; t++)
		if (db_has_table(v->db, t))
			check_table(v, t);
	for (size_t i = 0; i < v->type_count; i++)
		if (v->types[i].images && v->type_count < TYPES_MOST)
			report(v, TABLE_TYPES, "", 0, "does not count all images");
	if (v->due != v->timers)
		report(v, TABLE_TIMERS, "", 0, "does not match what the images say");
	if (v->keys != v->ages)
		report(v, TABLE_IDEM_AGE, "", 0, "does not match the keys");
	if (db_read_stamp(v->db, v->r->txn, &stamp) != NOH_OK || stamp.idem_bytes != v->idem_bytes ||
	    stamp.event_bytes != v->event_bytes || (v->event && stamp.event_seq != v->event))
		report(v, TABLE_META, "stamp", 5, "does not fit the tables");
	if (v->progress)
		v->progress(v->arg, v->done, v->all);
}

int64_t db_verify(struct db *db, db_problem_fn *problem, db_progress_fn *progress, void *arg)
{
	struct verify *v = mem_zalloc(sizeof *v);

	if (!v)
		return error_set(NOH_ENOMEM, "verifying %s: out of memory", db->fixed.file);
	*v = (struct verify){ .db = db, .problem = problem, .progress = progress, .arg = arg };
	int rc = reader_take(db, &v->r);

	if (rc == NOH_OK) {
		check_all(v);
		reader_give(v->r);
	}
	int64_t found = rc == NOH_OK ? v->found : rc;

	mem_free(v, sizeof *v);
	return found;
}
