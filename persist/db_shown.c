/* persist/db_shown.c - the image in numbers, for who may not wait: written at each commit, read by any thread.
 *
 * A snapshot would do as well, but taking one waits while the map is moved, and that waits for who copies the image.
 */
#include "persist/db_in.h"

#include <stdlib.h>
#include <string.h>

bool db_count(struct db *db, MDB_txn *txn, uint64_t *rows)
{
	for (enum table t = 0; t < TABLES; t++) {
		MDB_stat s;

		rows[t] = 0;
		if (!db_has_table(db, t))
			continue;
		if (mdb_stat(txn, db->fixed.tables[t], &s) != MDB_SUCCESS)
			return false;
		rows[t] = s.ms_entries;
	}
	return true;
}

uint64_t db_count_unwell(struct db *db, MDB_txn *txn)
{
	uint8_t from[VALUE_KEY_MAX];
	MDB_val key = { key_timer(from, VALUE_UNWELL, NULL, 0), from }, val;
	MDB_cursor *c;
	uint64_t rows = 0;
	int rc = mdb_cursor_open(txn, db->fixed.tables[TABLE_TIMERS], &c);

	if (rc != MDB_SUCCESS)
		return 0;
	rc = mdb_cursor_get(c, &key, &val, MDB_SET_RANGE);
	for (; rc == MDB_SUCCESS; rc = mdb_cursor_get(c, &key, &val, MDB_NEXT))
		rows++;
	mdb_cursor_close(c);
	return rows;
}

uint64_t db_timer_rows(struct db *db, uint64_t rows)
{
	uint64_t unwell = load_relaxed(&db->shown.unwell);

	return rows > unwell ? rows - unwell : 0;
}

void db_show(struct db *db, const struct meta_stamp *stamp, const uint64_t *rows, uint64_t at_ms)
{
	MDB_envinfo info = {0};

	mdb_env_info(db->fixed.env, &info);
	for (enum table t = 0; t < TABLES; t++)
		store_relaxed(&db->shown.tables[t], rows[t]);
	store_relaxed(&db->shown.idem_bytes, stamp->idem_bytes);
	store_relaxed(&db->shown.idem_dropped, stamp->idem_dropped);
	store_relaxed(&db->shown.event_bytes, stamp->event_bytes);
	store_relaxed(&db->shown.event_oldest_ms, stamp->event_oldest_ms);
	store_release(&db->shown.event_seq, stamp->event_seq);
	store_relaxed(&db->shown.folds, stamp->folds);
	store_relaxed(&db->shown.folded_records, stamp->records);
	store_relaxed(&db->shown.used_bytes, ((uint64_t)info.me_last_pgno + 1) * db->fixed.page);
	store_relaxed(&db->shown.map_bytes, info.me_mapsize);
	store_relaxed(&db->shown.commits[info.me_last_txnid % COMMITS].at_ms, at_ms);
	store_release(&db->shown.commits[info.me_last_txnid % COMMITS].txn, info.me_last_txnid);
	store_release(&db->shown.last_txn, info.me_last_txnid);
	store_relaxed(&db->shown.images, rows[TABLE_IMAGES]);
	store_relaxed(&db->shown.frame, stamp->frame);
	store_relaxed(&db->shown.epoch, stamp->epoch);
	store_release(&db->shown.rows, rows[TABLE_IMAGES] + rows[TABLE_PENDING]);
}

void db_shown_stats(struct db *db, struct db_stats *stats)
{
	*stats = (struct db_stats){
		.images = load_relaxed(&db->shown.tables[TABLE_IMAGES]),
		.entries = load_relaxed(&db->shown.tables[TABLE_ENTRIES]),
		.pending = load_relaxed(&db->shown.tables[TABLE_PENDING]),
		.idem = load_relaxed(&db->shown.tables[TABLE_IDEM]),
		.idem_bytes = load_relaxed(&db->shown.idem_bytes),
		.idem_dropped = load_relaxed(&db->shown.idem_dropped),
		.timers = db_timer_rows(db, load_relaxed(&db->shown.tables[TABLE_TIMERS])),
		.dead = load_relaxed(&db->shown.tables[TABLE_DEAD]),
		.events = load_relaxed(&db->shown.tables[TABLE_EVENTS]),
		.event_bytes = load_relaxed(&db->shown.event_bytes),
		.event_seq = load_relaxed(&db->shown.event_seq),
		.event_oldest_ms = load_relaxed(&db->shown.event_oldest_ms),
		.map_bytes = load_relaxed(&db->shown.map_bytes),
		.used_bytes = load_relaxed(&db->shown.used_bytes),
		.folds = load_relaxed(&db->shown.folds),
		.folded_records = load_relaxed(&db->shown.folded_records),
	};
}

/* One line of LMDB's list of readers: "   pid  thread  txn", or "-" instead of txn if it holds none; the title has
 * words instead of numbers. */
static int oldest_of(const char *line, void *arg)
{
	uint64_t *oldest = arg, txn;
	const char *last = strrchr(line, ' ');
	char *end;

	if (!last || last[1] < '0' || last[1] > '9')
		return 0;
	txn = strtoull(last + 1, &end, 10);
	if ((*end == '\n' || *end == 0) && txn < *oldest)
		*oldest = txn;
	return 0;
}

uint64_t db_oldest_reader_ms(struct db *db, uint64_t now_ms)
{
	uint64_t oldest = UINT64_MAX, last = load_acquire(&db->shown.last_txn);
	struct reader *r = reader_enter(db);
	int rc;

	if (!r)
		return 0;                        /* while it moves nobody holds one */
	rc = mdb_reader_list(db->fixed.env, oldest_of, &oldest);
	reader_leave(r);
	if (rc < 0 || oldest >= last)
		return 0;
	for (uint64_t txn = last - oldest < COMMITS ? oldest + 1 : last - COMMITS + 1; txn <= last; txn++) {
		uint64_t at_ms = load_acquire(&db->shown.commits[txn % COMMITS].txn) == txn
					 ? load_relaxed(&db->shown.commits[txn % COMMITS].at_ms) : 0;

		if (at_ms && now_ms > at_ms)
			return now_ms - at_ms;
	}
	return 0;
}
