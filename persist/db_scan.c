/* persist/db_scan.c - addresses out of the image, for scans: a few at a time, from one short snapshot each.
 *
 * Only the keys are looked at, and that each is the one its value was written with.
 */
#include "persist/db_in.h"

#include "core/error.h"

#include <errno.h>
#include <string.h>

int db_rows(struct db *db, const char *prefix, size_t prefix_len, const char *after, size_t after_len,
	    uint32_t most, struct names *out, bool *end)
{
	uint8_t from[VALUE_KEY_MAX];
	MDB_val key = { prefix_len, from }, val;
	struct reader *r;
	MDB_cursor *c;
	uint32_t first = out->count;
	int rc;

	*end = false;
	memcpy(from, prefix, prefix_len);
	if (after && key_compare(after, after_len, prefix, prefix_len) >= 0) {
		memcpy(from, after, after_len);
		from[after_len] = 0;             /* the first key above it */
		key.mv_size = after_len + 1;
	}
	rc = reader_take(db, &r);
	if (rc != NOH_OK)
		return rc;
	c = reader_cursor(db, r, TABLE_IMAGES);
	rc = c ? mdb_cursor_get(c, &key, &val, key.mv_size ? MDB_SET_RANGE : MDB_FIRST) : ENOMEM;
	while (rc == MDB_SUCCESS && out->count - first < most) {
		const uint8_t *k = key.mv_data;

		if (key.mv_size < prefix_len || memcmp(k, prefix, prefix_len) != 0)
			break;
		if (key.mv_size > 255 || !value_key_fits(TABLE_IMAGES, k, key.mv_size, val.mv_data, val.mv_size) ||
		    (out->count > first && key_compare(k, key.mv_size, names_at(out, out->count - 1),
						       out->list[out->count - 1].len) <= 0)) {
			reader_give(r);
			return db_damaged(db, TABLE_IMAGES, k, key.mv_size);
		}
		if (!names_room(out, 1)) {
			rc = ENOMEM;
			break;
		}
		names_put(out, k, key.mv_size, (struct name){ .flags = NAME_THERE | NAME_STORED | NAME_DURABLE });
		rc = mdb_cursor_get(c, &key, &val, MDB_NEXT);
	}
	*end = rc == MDB_NOTFOUND || (rc == MDB_SUCCESS && out->count - first < most);
	reader_give(r);
	return rc == MDB_NOTFOUND ? NOH_OK : db_error(db, rc, "reading");
}

int db_mark_stored(struct db *db, struct names *n, uint32_t first)
{
	struct reader *r = NULL;
	int rc = MDB_SUCCESS;

	for (uint32_t i = first; rc == MDB_SUCCESS && i < n->count; i++) {
		MDB_val key = { n->list[i].len, (void *)(uintptr_t)names_at(n, i) }, val;

		if ((n->list[i].flags & (NAME_THERE | NAME_DURABLE | NAME_STORED)) != (NAME_THERE | NAME_DURABLE))
			continue;
		if (!r) {
			int taken = reader_take(db, &r);

			if (taken != NOH_OK)
				return taken;
		}
		rc = mdb_get(r->txn, db->fixed.tables[TABLE_IMAGES], &key, &val);
		if (rc == MDB_SUCCESS)
			n->list[i].flags |= NAME_STORED;
		else if (rc == MDB_NOTFOUND)
			rc = MDB_SUCCESS;
	}
	if (r)
		reader_give(r);
	return db_error(db, rc, "reading");
}

uint64_t db_commits(struct db *db)
{
	return load_acquire(&db->shown.frame);
}
