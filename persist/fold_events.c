/* persist/fold_events.c - the event log: numbered in the order of the journal, appended, cut off at its old end.
 *
 * An event's number is its place among all events of the journal: group by group, in a group by the order the workers
 * drew, because in the frame their rings stand one after the other. eventlog.c counts the same way while they are
 * in memory only: a cursor does not change when they are folded.
 */
#include "persist/fold_in.h"

#include "core/event.h"
#include "core/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXPIRE_ROWS 8192         /* that go in one transaction of their own, */
#define EXPIRE_PAGES 2048        /* and how many pages that may change       */
#define EXPIRE_PAGES_LEAST 32    /* where there is no room for more          */

bool fold_note_event(struct fold *f, uint64_t frame, uint64_t order, const struct part *p)
{
	if (f->event_count == f->event_room) {
		size_t room = f->event_room ? 2 * f->event_room : 64;
		struct fold_event *more = mem_alloc(room * sizeof *more);

		if (!more)
			return false;
		if (f->event_count)
			memcpy(more, f->events, f->event_count * sizeof *more);
		mem_free(f->events, f->event_room * sizeof *more);
		f->events = more;
		f->event_room = room;
	}
	f->events[f->event_count] = (struct fold_event){ frame, order, f->event_count, p->data, p->len };
	f->event_count++;
	f->event_bytes += part_size(0, p->len);
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct fold_event *x = a, *y = b;

	if (x->frame != y->frame)
		return x->frame > y->frame ? 1 : -1;
	if (x->order != y->order)
		return x->order > y->order ? 1 : -1;
	return (x->nth > y->nth) - (x->nth < y->nth);
}

static uint64_t row_bytes(size_t len)
{
	return 8 + sizeof(struct value_head) + len;
}

static int append(struct fold *f, uint64_t seq, const struct fold_event *e)
{
	uint8_t key[VALUE_KEY_MAX], *value;
	size_t key_len = key_number(key, seq), len = sizeof(struct value_head) + e->len;
	int rc = fold_append(f, TABLE_EVENTS, key, key_len, len, &value);

	if (rc != 0)
		return rc;
	memcpy(value + sizeof(struct value_head), e->event, e->len);
	value_seal(TABLE_EVENTS, key, key_len, value, len, seq);
	f->stamp.event_bytes += row_bytes(e->len);
	return 0;
}

/* How many of them would go again at once, because those behind them are as many as are kept. */
static size_t not_kept(const struct fold *f, uint64_t most)
{
	uint64_t bytes = 0;
	size_t i = f->event_count;

	while (i > 0 && bytes + row_bytes(f->events[i - 1].len) <= most)
		bytes += row_bytes(f->events[--i].len);
	return i;
}

/* The old end: what is over its time, then what is over the limit; at most so many rows. */
static int expire(struct fold *f, uint64_t now_ms, uint64_t rows)
{
	uint64_t most = load_relaxed(&f->db->events.bytes), ms = load_relaxed(&f->db->events.ms);

	for (; rows; rows--) {
		struct value_row row;
		struct part_event head;
		MDB_val k, val;
		int rc = mdb_cursor_get(f->cursors[TABLE_EVENTS], &k, &val, MDB_FIRST);

		f->stamp.event_oldest_ms = 0;
		if (rc != 0)
			return rc == MDB_NOTFOUND ? 0 : rc;
		if (!value_row(TABLE_EVENTS, k.mv_data, k.mv_size, val.mv_data, val.mv_size, &row))
			return fold_damaged(f, TABLE_EVENTS, k.mv_data, k.mv_size);
		memcpy(&head, row.rest, sizeof head);
		f->stamp.event_oldest_ms = head.at_ms;
		if (f->stamp.event_bytes <= most && (now_ms < ms || head.at_ms >= now_ms - ms))
			return 0;
		f->stamp.event_bytes -= row_bytes(row.rest_len);
		rc = mdb_cursor_del(f->cursors[TABLE_EVENTS], 0);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int fold_events(struct fold *f, uint64_t now_ms)
{
	uint64_t most = load_relaxed(&f->db->events.bytes);
	size_t first;
	int rc = 0;

	if (f->event_count > 1)
		qsort(f->events, f->event_count, sizeof *f->events, by_place);
	first = not_kept(f, most);
	if (first) {                     /* then those before them go as well: there are no gaps */
		rc = mdb_drop(f->txn, f->db->fixed.tables[TABLE_EVENTS], 0);
		f->stamp.event_bytes = 0;
	}
	for (size_t i = first; rc == 0 && i < f->event_count; i++)
		rc = append(f, f->stamp.event_seq + 1 + i, &f->events[i]);
	f->stamp.event_seq += f->event_count;
	if (rc == FOLD_FAILED && f->failed == NOH_FULL)
		f->limit->fitted = 128;
	/* More than came, so that they get fewer; but no fold is held up by all that a new limit is too much for. The keeper
	 * goes on with the rest. */
	return rc == 0 ? expire(f, now_ms, 2 * f->event_count + EXPIRE_ROWS) : rc;
}

/* In the open transaction; 0, an LMDB code, or FOLD_FAILED. */
static int expire_alone(struct fold *f, uint64_t now_ms, uint64_t most, uint64_t *rows)
{
	int rc;

	f->failed = db_read_stamp(f->db, f->txn, &f->stamp);
	if (f->failed != NOH_OK)
		return FOLD_FAILED;
	rc = mdb_cursor_open(f->txn, f->db->fixed.tables[TABLE_EVENTS], &f->cursors[TABLE_EVENTS]);
	if (rc == 0)
		rc = mdb_cursor_open(f->txn, f->db->fixed.tables[TABLE_META], &f->cursors[TABLE_META]);
	if (rc == 0)
		rc = expire(f, now_ms, most);
	if (rc == 0)
		rc = fold_stamp(f);
	(void)db_count(f->db, f->txn, rows);
	for (enum table t = TABLE_META; t <= TABLE_EVENTS; t++)
		if (f->cursors[t])
			mdb_cursor_close(f->cursors[t]);
	return rc;
}

/* A box in which nothing happens any more forgets as well: some at a time. */
int db_expire_events(struct db *db, uint64_t now_ms)
{
	struct fold f = { .db = db };
	uint64_t rows[TABLES] = { 0 }, pages = EXPIRE_PAGES, most;
	int rc = db_make_room(db, pages);

	while (rc == NOH_ENOSPC && pages > EXPIRE_PAGES_LEAST)   /* a few make room for more */
		rc = db_make_room(db, pages /= 8);
	if (rc != NOH_OK)
		return rc;
	most = EXPIRE_ROWS * pages / EXPIRE_PAGES;
	rc = mdb_txn_begin(db->fixed.env, NULL, 0, &f.txn);
	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "writing");
	rc = expire_alone(&f, now_ms, most, rows);
	if (rc == 0)
		rc = mdb_txn_commit(f.txn);
	else
		mdb_txn_abort(f.txn);
	if (rc == FOLD_FAILED)
		return f.failed;
	if (rc == MDB_MAP_FULL || ((rc == EIO || rc == ENOSPC) && db_disk_full(db)))
		rc = ENOSPC;
	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "writing");
	db_show(db, &f.stamp, rows, now_ms);
	return db_keep_length(db);
}
