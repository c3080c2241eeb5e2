/* persist/db_events.c - the event log as far as it is in the image: read by number. */
#include "persist/db_in.h"

#include "core/error.h"

#include <errno.h>
#include <string.h>

#define EVENT_BYTES ((uint64_t)256 << 20)
#define EVENT_MS ((uint64_t)7 * 24 * 3600 * 1000)

void db_keep_events(struct db *db, uint64_t bytes, uint64_t ms)
{
	store_relaxed(&db->events.bytes, bytes ? bytes : EVENT_BYTES);
	store_relaxed(&db->events.ms, ms ? ms : EVENT_MS);
}

bool db_events_expire(struct db *db, uint64_t now_ms)
{
	uint64_t ms = load_relaxed(&db->events.ms), at_ms = load_relaxed(&db->shown.event_oldest_ms);

	return load_relaxed(&db->shown.event_bytes) > load_relaxed(&db->events.bytes) ||
	       (at_ms && now_ms >= ms && at_ms < now_ms - ms);
}

uint64_t db_events_newest(struct db *db)
{
	return load_acquire(&db->shown.event_seq);
}

uint64_t db_events_gone(struct db *db)
{
	return load_acquire(&db->shown.event_seq) - load_relaxed(&db->shown.tables[TABLE_EVENTS]);
}

static int cursor_at(struct db *db, struct reader *r, uint64_t first, MDB_cursor **c, MDB_val *k, MDB_val *val)
{
	uint8_t key[VALUE_KEY_MAX];

	*c = reader_cursor(db, r, TABLE_EVENTS);
	if (!*c)
		return ENOMEM;
	*k = (MDB_val){ key_number(key, first), key };
	return mdb_cursor_get(*c, k, val, MDB_SET_RANGE);
}

int db_events_oldest(struct db *db, uint64_t *seq)
{
	struct reader *r;
	MDB_cursor *c;
	MDB_val k, val;
	int rc = NOH_OK;

	*seq = 0;
	if (db->fixed.no_events)
		return NOH_OK;
	rc = reader_take(db, &r);
	if (rc != NOH_OK)
		return rc;
	rc = cursor_at(db, r, 0, &c, &k, &val);
	if (rc == 0 && k.mv_size == 8)
		*seq = key_u64(k.mv_data);
	reader_give(r);
	return rc == MDB_NOTFOUND ? NOH_OK : db_error(db, rc, "reading");
}

/* Rows one after the other, from where the cursor stands, as many as fit. */
static int copy_rows(struct db *db, MDB_cursor *c, MDB_val k, MDB_val val, uint64_t first, uint8_t *room, size_t size,
		     size_t *used)
{
	int rc = 0;

	for (*used = 0; rc == 0; first++) {
		struct value_row row;
		struct db_event head;
		size_t need;

		if (!value_row(TABLE_EVENTS, k.mv_data, k.mv_size, val.mv_data, val.mv_size, &row) || row.v.seq != first)
			return db_damaged(db, TABLE_EVENTS, "a row of the event log", 22);
		head = (struct db_event){ row.v.seq, row.rest_len };
		need = sizeof head + record_pad(row.rest_len);
		if (*used && *used + need > size)
			return NOH_OK;
		if (need > size) {
			*used = need;
			return error_set(NOH_ENOMEM, "no room for an event of %zu bytes", row.rest_len);
		}
		memcpy(room + *used, &head, sizeof head);
		memcpy(room + *used + sizeof head, row.rest, row.rest_len);
		*used += need;
		rc = mdb_cursor_get(c, &k, &val, MDB_NEXT);
	}
	return rc == MDB_NOTFOUND ? NOH_OK : db_error(db, rc, "reading");
}

int db_events(struct db *db, uint64_t first, uint8_t *room, size_t size, size_t *used, uint64_t *oldest)
{
	struct reader *r;
	MDB_cursor *c;
	MDB_val k, val;
	int rc;

	*used = 0;
	*oldest = 0;
	if (db->fixed.no_events)
		return NOH_OK;
	rc = reader_take(db, &r);
	if (rc != NOH_OK)
		return rc;
	rc = cursor_at(db, r, first, &c, &k, &val);
	if (rc == MDB_NOTFOUND) {
		rc = NOH_OK;
	} else if (rc != 0) {
		rc = db_error(db, rc, "reading");
	} else if (k.mv_size == 8 && key_u64(k.mv_data) != first) {
		*oldest = key_u64(k.mv_data);
		rc = error_set(NOH_ETOOOLD, "event %llu is gone", (unsigned long long)first);
	} else {
		rc = copy_rows(db, c, k, val, first, room, size, used);
	}
	reader_give(r);
	return rc;
}
