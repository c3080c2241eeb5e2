/* persist/db_read.c - one actor out of the image.
 *
 * Nothing is handed out unchecked: a value by its sum; all entries of an actor together by their
 * number and the sum of their sums, which its image row carries; a row that is not there by its
 * neighbours (a flipped bit in a key, or in a page that leads to it, would make it invisible).
 */
#include "persist/db_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <string.h>

/* Where an actor's parts go; at == NULL: only counted. */
struct sink {
	uint8_t *at;
	size_t   len;
};

static void sink_part(struct sink *s, enum part_kind kind, const void *key, size_t key_len,
		      const void *data, size_t len)
{
	s->len += part_size(key_len, len);
	if (s->at) {
		void *to = part_put(&s->at, kind, key, key_len, len);

		if (len)
			memcpy(to, data, len);
	}
}

static bool has_prefix(const MDB_val *key, const uint8_t *prefix, size_t len)
{
	return key->mv_size >= len && memcmp(key->mv_data, prefix, len) == 0;
}

static bool neighbour_fits(enum table t, const MDB_val *key, const MDB_val *val)
{
	return value_key_fits(t, key->mv_data, key->mv_size, val->mv_data, val->mv_size);
}

static bool before(const MDB_val *a, const MDB_val *b)
{
	return key_compare(a->mv_data, a->mv_size, b->mv_data, b->mv_size) < 0;
}

static bool same_key(const MDB_val *a, const MDB_val *b)
{
	return a->mv_size == b->mv_size &&
	       (!a->mv_size || memcmp(a->mv_data, b->mv_data, a->mv_size) == 0);
}

/* From the root to this row, and one step: that must be the other, or the end of the table. */
static int leads_to(MDB_cursor *c, enum table t, MDB_txn *txn, const MDB_val *from, MDB_cursor_op op,
		    const MDB_val *to)
{
	MDB_val at = *from, val;
	int rc = mdb_cursor_renew(txn, c);       /* or the search would begin where it stands */

	if (rc == MDB_SUCCESS && from->mv_size) {
		rc = mdb_cursor_get(c, &at, &val, MDB_SET_KEY);
		if (rc == MDB_NOTFOUND || (rc == MDB_SUCCESS && !neighbour_fits(t, &at, &val)))
			return MDB_CORRUPTED;
	}
	if (rc == MDB_SUCCESS)
		rc = mdb_cursor_get(c, &at, &val, from->mv_size || op == MDB_PREV ? op : MDB_FIRST);
	if (rc == MDB_NOTFOUND)
		return to->mv_size ? MDB_CORRUPTED : MDB_SUCCESS;
	return rc == MDB_SUCCESS && !same_key(&at, to) ? MDB_CORRUPTED : rc;
}

/* As LMDB 0.9 (data version 1, checked at the start) writes it: its nodes fill it from `upper` to the end
 * without gaps. If the head says fewer than there are, they do not. */
struct leaf_page { uint64_t number; uint16_t pad, flags, lower, upper; };
struct leaf_node { uint16_t low, high, flags, key_len; };
enum { LEAF = 2, ON_PAGES_OF_ITS_OWN = 1 };

bool db_leaf_is_whole(const struct db *db, const void *key)
{
	const uint8_t *page = (const uint8_t *)((uintptr_t)key & ~((uintptr_t)db->fixed.page - 1));
	struct leaf_page head;
	size_t bytes = 0;

	memcpy(&head, page, sizeof head);
	if (!(head.flags & LEAF) || head.lower < sizeof head || head.lower > head.upper ||
	    head.upper > db->fixed.page)
		return false;
	for (size_t at = sizeof head; at < head.lower; at += sizeof(uint16_t)) {
		struct leaf_node node;
		uint16_t place;

		memcpy(&place, page + at, sizeof place);
		if (place < head.upper || place + sizeof node > db->fixed.page)
			return false;
		memcpy(&node, page + place, sizeof node);
		size_t size = sizeof node + node.key_len +
			      (node.flags & ON_PAGES_OF_ITS_OWN ? sizeof(uint64_t)
							       : node.low | (size_t)node.high << 16);
		bytes += (size + 1) & ~(size_t)1;
	}
	return bytes == (size_t)(db->fixed.page - head.upper);
}

/* Is there really nothing between these two rows (empty: the table's end)? A damaged page may lead a
 * search astray and still look in order. So both are searched for from the root, and each has to be
 * the other's neighbour: a row or page that stands in a wrong place is not where its own key leads. */
static int gap(struct db *db, struct reader *r, enum table t, const MDB_val *low, const MDB_val *high)
{
	MDB_cursor *c = r->cursors[t];
	int rc = leads_to(c, t, r->txn, low, MDB_NEXT, high);

	if (rc == MDB_SUCCESS && high->mv_size)
		rc = leads_to(c, t, r->txn, high, MDB_PREV, low);
	if (rc == MDB_SUCCESS && ((low->mv_size && !db_leaf_is_whole(db, low->mv_data)) ||
				  (high->mv_size && !db_leaf_is_whole(db, high->mv_data))))
		rc = MDB_CORRUPTED;
	if (rc == MDB_CORRUPTED)
		return db_damaged(db, t, high->mv_size ? high->mv_data : low->mv_data,
				  high->mv_size ? high->mv_size : low->mv_size);
	return db_error(db, rc, "reading");
}

/* The first row not below `want` (*high) and the one before it (*low); empty where there is none.
 * Both must fit their keys and stand on their sides. The cursor is moved. */
static int around(MDB_cursor *c, enum table t, const MDB_val *want, MDB_val *low, MDB_val *high)
{
	MDB_val val;
	int rc;

	*high = *want;
	rc = mdb_cursor_get(c, high, &val, MDB_SET_RANGE);
	if (rc == MDB_SUCCESS && (before(high, want) || !neighbour_fits(t, high, &val)))
		return MDB_CORRUPTED;
	if (rc == MDB_NOTFOUND) {
		*high = (MDB_val){ 0, NULL };
		rc = mdb_cursor_get(c, low, &val, MDB_LAST);
	} else if (rc == MDB_SUCCESS) {
		rc = mdb_cursor_get(c, low, &val, MDB_PREV);
	}
	if (rc == MDB_NOTFOUND) {
		*low = (MDB_val){ 0, NULL };
		return MDB_SUCCESS;
	}
	if (rc == MDB_SUCCESS && (!before(low, want) || !neighbour_fits(t, low, &val)))
		return MDB_CORRUPTED;
	return rc;
}

/* Nothing was found under this key: NOH_END if that is so. */
static int really_absent(struct db *db, struct reader *r, enum table t, const void *key, size_t len)
{
	MDB_val want = { len, (void *)(uintptr_t)key }, low, high;
	MDB_cursor *c = reader_cursor(db, r, t);
	int rc;

	if (!c)
		return error_set(NOH_ENOMEM, "reading %s: out of memory", db->fixed.file);
	rc = around(c, t, &want, &low, &high);
	if (rc == MDB_SUCCESS && same_key(&high, &want))
		rc = MDB_CORRUPTED;
	if (rc == MDB_CORRUPTED)
		return db_damaged(db, t, key, len);
	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "reading");
	rc = gap(db, r, t, &low, &high);
	return rc == NOH_OK ? NOH_END : rc;
}

/* A row, checked. NOH_OK, NOH_END, or damage. */
static int get_row(struct db *db, struct reader *r, enum table t, const void *key, size_t len,
		   struct value_row *row)
{
	MDB_val k = { len, (void *)(uintptr_t)key }, val;
	int rc = mdb_get(r->txn, db->fixed.tables[t], &k, &val);

	if (rc == MDB_NOTFOUND)
		return really_absent(db, r, t, key, len);
	if (rc != MDB_SUCCESS)
		return db_error(db, rc, "reading");
	return value_row(t, key, len, val.mv_data, val.mv_size, row) ? NOH_OK
								     : db_damaged(db, t, key, len);
}

/* All entries, in key order; together they must be what the image says. */
static int sink_entries(struct db *db, struct reader *r, const char *address, size_t len,
			const struct value_image *image, struct sink *s)
{
	uint8_t prefix[VALUE_KEY_MAX];
	size_t plen = key_pair(prefix, address, len, NULL, 0);
	MDB_val key = { plen, prefix }, val;
	MDB_cursor *c = reader_cursor(db, r, TABLE_ENTRIES);
	uint64_t count = 0, sums = 0;
	int rc;

	if (!c)
		return error_set(NOH_ENOMEM, "reading %s: out of memory", db->fixed.file);
	for (rc = mdb_cursor_get(c, &key, &val, MDB_SET_RANGE);
	     rc == MDB_SUCCESS && has_prefix(&key, prefix, plen);
	     rc = mdb_cursor_get(c, &key, &val, MDB_NEXT)) {
		struct value_row row;

		if (count == image->entries ||
		    !value_row(TABLE_ENTRIES, key.mv_data, key.mv_size, val.mv_data, val.mv_size, &row))
			return db_damaged(db, TABLE_ENTRIES, key.mv_data, key.mv_size);
		sink_part(s, PART_PUT, (const char *)key.mv_data + plen, key.mv_size - plen, row.rest,
			  row.rest_len);
		sums += row.v.sum;
		count++;
	}
	if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
		return db_error(db, rc, "reading");
	if (count != image->entries || sums != image->entries_sum)
		return db_damaged(db, TABLE_ENTRIES, prefix, plen);
	return NOH_OK;
}

static uint64_t emitted_tag(const struct value_row *row)
{
	struct part_emitted e;

	memcpy(&e, row->rest, sizeof e);
	return e.tag;
}

static uint64_t rows_of(struct db *db, struct reader *r, enum table t)
{
	MDB_stat s;

	return mdb_stat(r->txn, db->fixed.tables[t], &s) == MDB_SUCCESS ? s.ms_entries : UINT64_MAX;
}

/* Its messages, and that there is nothing before the first and behind the last that is missing. */
static int sink_pending(struct db *db, struct reader *r, const char *address, size_t len,
			uint64_t before_tag, struct sink *s)
{
	uint8_t prefix[VALUE_KEY_MAX];
	size_t plen = key_pair(prefix, address, len, NULL, 0);
	MDB_val want = { plen, prefix }, low, high, key = want, last = { 0, NULL }, val;
	MDB_cursor *c;
	int rc;

	if (before_tag == 0 || rows_of(db, r, TABLE_PENDING) == 0)
		return NOH_OK;
	c = reader_cursor(db, r, TABLE_PENDING);
	if (!c)
		return error_set(NOH_ENOMEM, "reading %s: out of memory", db->fixed.file);
	rc = around(c, TABLE_PENDING, &want, &low, &high);
	if (rc == MDB_SUCCESS)
		rc = mdb_cursor_get(c, &key, &val, MDB_SET_RANGE);
	for (; rc == MDB_SUCCESS && has_prefix(&key, prefix, plen);
	     rc = mdb_cursor_get(c, &key, &val, MDB_NEXT)) {
		struct value_row row;

		if (!value_row(TABLE_PENDING, key.mv_data, key.mv_size, val.mv_data, val.mv_size, &row))
			return db_damaged(db, TABLE_PENDING, key.mv_data, key.mv_size);
		if (emitted_tag(&row) < before_tag)
			sink_part(s, PART_EMITTED, address, len, row.rest, row.rest_len);
		last = key;
	}
	if (rc == MDB_CORRUPTED)
		return db_damaged(db, TABLE_PENDING, prefix, plen);
	if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
		return db_error(db, rc, "reading");
	if (s->at)
		return NOH_OK;           /* all of this was looked at when it was counted */
	MDB_val behind = rc == MDB_SUCCESS ? key : (MDB_val){ 0, NULL };

	rc = gap(db, r, TABLE_PENDING, &low, &high);
	return rc == NOH_OK && last.mv_size ? gap(db, r, TABLE_PENDING, &last, &behind) : rc;
}

/* Once to count, once to write: the snapshot stands still, so both are the same. */
static int sink_rest(struct db *db, struct reader *r, const char *address, size_t len,
		     uint64_t before_tag, const struct value_image *image, struct sink *s)
{
	int rc = image->entries ? sink_entries(db, r, address, len, image, s) : NOH_OK;

	return rc == NOH_OK ? sink_pending(db, r, address, len, before_tag, s) : rc;
}

static int load_in(struct db *db, struct reader *r, const char *address, size_t len,
		   uint64_t before_tag, struct db_loaded *out)
{
	struct value_row row = { .number = 0 };
	struct sink s = { .at = NULL };
	int found = get_row(db, r, TABLE_IMAGES, address, len, &row);
	int rc = found == NOH_OK || found == NOH_END ? NOH_OK : found;

	if (rc == NOH_OK)
		rc = sink_rest(db, r, address, len, before_tag, &row.image, &s);
	if (rc != NOH_OK)
		return rc;
	if (found == NOH_END && s.len == 0)
		return NOH_END;
	size_t more = s.len;
	uint8_t *image = mem_alloc(row.rest_len + more);

	if (!image)
		return error_set(NOH_ENOMEM, "loading %.*s: out of memory", (int)len, address);
	if (row.rest_len)
		memcpy(image, row.rest, row.rest_len);
	if (more) {
		s = (struct sink){ .at = image + row.rest_len };
		rc = sink_rest(db, r, address, len, before_tag, &row.image, &s);
		if (rc == NOH_OK && s.len != more)
			rc = db_damaged(db, TABLE_ENTRIES, address, len);
		if (rc != NOH_OK) {
			mem_free(image, row.rest_len + more);
			return rc;
		}
	}
	*out = (struct db_loaded){ image, row.rest_len + more, row.v.seq };
	return NOH_OK;
}

int db_load(struct db *db, const char *address, size_t len, uint64_t before_tag,
	    struct db_loaded *out)
{
	struct reader *r;
	int rc = reader_take(db, &r);

	*out = (struct db_loaded){ .image = NULL };
	if (rc != NOH_OK)
		return rc;
	rc = load_in(db, r, address, len, before_tag, out);
	reader_give(r);
	return rc;
}

int db_timers_of(struct db *db, const char *address, size_t len, db_timer_of_fn *each, void *arg)
{
	struct value_parts parts;
	struct value_row row;
	struct part_timer *copy = NULL;
	struct reader *r;
	size_t bytes = 0;
	int rc = reader_take(db, &r);

	if (rc != NOH_OK)
		return rc;
	rc = get_row(db, r, TABLE_IMAGES, address, len, &row);
	if (rc == NOH_OK && !value_image_parts(row.rest, row.rest_len, &parts))
		rc = db_damaged(db, TABLE_IMAGES, address, len);
	if (rc == NOH_OK && parts.timers.kind) {
		bytes = parts.timers.len;
		copy = mem_alloc(bytes + 1);
		if (!copy)
			rc = error_set(NOH_ENOMEM, "reading %s: out of memory", db->fixed.file);
		else
			memcpy(copy, parts.timers.data, bytes);
	}
	reader_give(r);
	for (size_t i = 0; copy && i < bytes / sizeof *copy; i++)
		if (each(arg, &copy[i]) != 0)
			break;
	mem_free(copy, bytes + 1);
	return rc;
}

bool db_has(struct db *db, const char *address, size_t len)
{
	struct value_row row;
	struct sink s = { .at = NULL };
	struct reader *r;

	if (reader_take(db, &r) != NOH_OK)
		return true;
	int rc = get_row(db, r, TABLE_IMAGES, address, len, &row);

	if (rc == NOH_END)
		rc = sink_pending(db, r, address, len, UINT64_MAX, &s) != NOH_OK || s.len ? NOH_OK
											  : NOH_END;
	reader_give(r);
	return rc != NOH_END;
}

int db_idem(struct db *db, const char *address, size_t len, const void *key, size_t key_len,
	    void **part, size_t *part_len)
{
	uint8_t name[VALUE_KEY_MAX];
	struct value_row row;
	struct reader *r;
	int rc;

	*part = NULL;
	*part_len = 0;
	if (key_len == 0 || key_len > 255)
		return NOH_END;
	rc = reader_take(db, &r);
	if (rc != NOH_OK)
		return rc;
	rc = rows_of(db, r, TABLE_IDEM) == 0
		     ? NOH_END
		     : get_row(db, r, TABLE_IDEM, name, key_pair(name, address, len, key, key_len), &row);
	if (rc == NOH_OK) {
		*part = mem_alloc(row.rest_len);
		if (*part) {
			memcpy(*part, row.rest, row.rest_len);
			*part_len = row.rest_len;
		} else {
			rc = error_set(NOH_ENOMEM, "loading a key of %.*s: out of memory", (int)len,
				       address);
		}
	}
	reader_give(r);
	return rc;
}
