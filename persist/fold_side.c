/* persist/fold_side.c - what records bring besides their actors: messages, keys, dead letters; and the
 * tables that follow from the images: timers, types. Then what is too old goes, then the stamp.
 */
#include "persist/fold_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <string.h>

/* ── rows ── */

int fold_damaged(struct fold *f, enum table t, const void *key, size_t len)
{
	f->failed = db_damaged(f->db, t, key, len);
	return FOLD_FAILED;
}

int fold_nomem(struct fold *f)
{
	f->failed = error_set(NOH_ENOMEM, "folding into %s: out of memory", f->db->fixed.file);
	return FOLD_FAILED;
}

static const uint8_t *page_of(const struct fold *f, const void *at)
{
	return (const uint8_t *)((uintptr_t)at & ~(uintptr_t)(f->db->fixed.page - 1));
}

int fold_find_map(struct fold *f)
{
	MDB_envinfo info;
	MDB_val key, val;
	uint64_t number;
	int rc = mdb_cursor_get(f->cursors[TABLE_META], &key, &val, MDB_FIRST);

	if (rc == 0)
		rc = mdb_env_info(f->db->fixed.env, &info);
	if (rc != 0)
		return rc;
	memcpy(&number, page_of(f, key.mv_data), sizeof number);   /* a page begins with its number */
	f->map = page_of(f, key.mv_data) - number * f->db->fixed.page;
	f->map_bytes = info.me_mapsize;
	return 0;
}

/* A leaf that lost rows looks as if they had never been, once LMDB has split it. So nothing is added to one, and no
 * row in it changes its size, before it was looked at: once, as the transaction then has a copy of its own. */
static bool leaf_is_whole(struct fold *f, enum table t, const void *key)
{
	const uint8_t *page = page_of(f, key);

	if (page == f->whole[t] || (uintptr_t)key - (uintptr_t)f->map >= f->map_bytes)
		return true;
	f->whole[t] = page;
	return db_leaf_is_whole(f->db, key);
}

/* Where a row was not found: the leaf it would be put into. */
static bool place_is_whole(struct fold *f, enum table t)
{
	MDB_val key, val;
	int rc = mdb_cursor_get(f->cursors[t], &key, &val, MDB_GET_CURRENT);

	if (rc == MDB_NOTFOUND)
		rc = mdb_cursor_get(f->cursors[t], &key, &val, MDB_PREV);   /* behind the last of its leaf */
	return rc != 0 || leaf_is_whole(f, t, key.mv_data);
}

/* Leaves the cursor on the row. */
int fold_get(struct fold *f, enum table t, const void *key, size_t len, struct value_row *row)
{
	MDB_val k = { len, (void *)(uintptr_t)key }, val;
	int rc = mdb_cursor_get(f->cursors[t], &k, &val, MDB_SET_KEY);

	if (rc == 0 ? !value_row(t, key, len, val.mv_data, val.mv_size, row)
		    : rc == MDB_NOTFOUND && !place_is_whole(f, t))
		return fold_damaged(f, t, key, len);
	if (rc == 0) {
		f->found[t].key = k.mv_data;
		f->found[t].len = val.mv_size;
	}
	return rc;
}

/* Rows come in the order of keys, so one that lies in another page than the row before it lies in one that was not
 * changed yet. What is above the leaves is a small part of them. */
static int note_page(struct fold *f, enum table t, const void *at, size_t len)
{
	const uint8_t *page = page_of(f, at);

	if (page == f->page[t])
		return 0;
	f->page[t] = page;
	f->changed += f->db->fixed.page + (len & ~(size_t)(f->db->fixed.page - 1));
	if (!f->limit || f->changed <= f->limit->most)
		return 0;
	f->failed = NOH_FULL;
	return FOLD_FAILED;
}

static int put_row(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, unsigned flags,
		   uint8_t **value)
{
	MDB_val k = { len, (void *)(uintptr_t)key }, val = { value_len, NULL };
	int rc = mdb_cursor_put(f->cursors[t], &k, &val, MDB_RESERVE | flags);

	*value = val.mv_data;
	return rc == 0 ? note_page(f, t, *value, value_len) : rc;
}

/* Room for a value, to be filled before anything else is written. */
int fold_put(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, uint8_t **value)
{
	return put_row(f, t, key, len, value_len, 0, value);
}

int fold_replace(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, uint8_t **value)
{
	if (value_len != f->found[t].len && !leaf_is_whole(f, t, f->found[t].key))
		return fold_damaged(f, t, key, len);
	return put_row(f, t, key, len, value_len, MDB_CURRENT, value);
}

int fold_append(struct fold *f, enum table t, const void *key, size_t len, size_t value_len, uint8_t **value)
{
	int rc = put_row(f, t, key, len, value_len, MDB_APPEND, value);

	return rc == MDB_KEYEXIST ? fold_damaged(f, t, key, len) : rc;
}

/* What is not there needs no deleting. */
int fold_delete(struct fold *f, enum table t, const void *key, size_t len)
{
	MDB_val k = { len, (void *)(uintptr_t)key }, val;
	int rc = mdb_cursor_get(f->cursors[t], &k, &val, MDB_SET);

	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc == 0)
		rc = note_page(f, t, val.mv_data, val.mv_size);
	return rc == 0 ? mdb_cursor_del(f->cursors[t], 0) : rc;
}

/* ── messages ── */

static int write_message(struct fold *f, const struct ref *r)
{
	struct part p = fold_part(r->at);
	size_t len = sizeof(struct value_head) + p.len;
	uint8_t *value;
	int rc = fold_put(f, TABLE_PENDING, r->key, r->len, len, &value);

	if (rc != 0)
		return rc;
	memcpy(value + sizeof(struct value_head), p.data, p.len);
	value_seal(TABLE_PENDING, r->key, r->len, value, len, r->seq);
	return 0;
}

/* Sent and consumed in one fold: never written. */
int fold_pending(struct fold *f)
{
	int rc = 0;

	for (size_t i = 0, end; rc == 0 && i < f->pending.count; i = end) {
		const struct ref *sent = NULL;
		bool consumed = false;

		end = refs_group(&f->pending, i);
		for (size_t n = i; n < end; n++) {
			const struct ref *r = refs_nth(&f->pending, n);

			if (r->at)
				sent = r;
			else
				consumed = true;
		}
		if (sent && !consumed)
			rc = write_message(f, sent);
		else if (!sent)
			rc = fold_delete(f, TABLE_PENDING, refs_nth(&f->pending, i)->key, refs_nth(&f->pending, i)->len);
	}
	return rc;
}

/* ── idempotency keys ── */

/* The row of a key and the row of its age, gone. The cursor stands on the former. */
static int drop_key(struct fold *f, size_t key_len, const struct value_row *row)
{
	uint8_t age[VALUE_KEY_MAX];
	struct part_idem idem;
	uint64_t number = row->number;

	memcpy(&idem, row->rest, sizeof idem);
	f->stamp.idem_bytes -= key_len + row->v.len + sizeof(struct value_head);
	int rc = mdb_cursor_del(f->cursors[TABLE_IDEM], 0);

	if (rc == 0)
		rc = fold_delete(f, TABLE_IDEM_AGE, age, key_numbered(age, idem.at_ms, number));
	return rc;
}

int fold_idem(struct fold *f, const char *address, size_t len, const struct part *p, uint64_t seq)
{
	uint8_t key[VALUE_KEY_MAX], age[VALUE_KEY_MAX], *value;
	size_t key_len = key_pair(key, address, len, p->key, p->key_len);
	size_t value_len = sizeof(struct value_head) + sizeof f->stamp.number + p->len;
	struct part_idem idem;
	struct value_row row;
	int rc = fold_get(f, TABLE_IDEM, key, key_len, &row);

	if (rc == 0 && row.v.seq >= seq)
		return 0;
	if (rc == 0)
		rc = drop_key(f, key_len, &row);
	else if (rc == MDB_NOTFOUND)
		rc = 0;
	if (rc == 0)
		rc = fold_put(f, TABLE_IDEM, key, key_len, value_len, &value);
	if (rc != 0)
		return rc;
	f->stamp.number++;
	f->stamp.idem_bytes += key_len + value_len;
	memcpy(value + sizeof(struct value_head), &f->stamp.number, sizeof f->stamp.number);
	memcpy(value + sizeof(struct value_head) + sizeof f->stamp.number, p->data, p->len);
	value_seal(TABLE_IDEM, key, key_len, value, value_len, seq);

	memcpy(&idem, p->data, sizeof idem);
	size_t age_len = key_numbered(age, idem.at_ms, f->stamp.number);

	rc = fold_put(f, TABLE_IDEM_AGE, age, age_len, sizeof(struct value_head) + key_len, &value);
	if (rc == 0) {
		memcpy(value + sizeof(struct value_head), key, key_len);
		value_seal(TABLE_IDEM_AGE, age, age_len, value, sizeof(struct value_head) + key_len, seq);
	}
	return rc;
}

/* Oldest first: what is over its time, then what is over the limit; only the latter are counted as
 * dropped, as the former were kept as long as promised. */
int fold_expire(struct fold *f, uint64_t now_ms)
{
	for (;;) {
		uint8_t key[VALUE_KEY_MAX];
		struct value_row age, idem;
		MDB_val k, val;
		int rc = mdb_cursor_get(f->cursors[TABLE_IDEM_AGE], &k, &val, MDB_FIRST);

		if (rc != 0)
			return rc == MDB_NOTFOUND ? 0 : rc;
		if (!value_row(TABLE_IDEM_AGE, k.mv_data, k.mv_size, val.mv_data, val.mv_size, &age))
			return fold_damaged(f, TABLE_IDEM_AGE, k.mv_data, k.mv_size);
		uint64_t at_ms = key_u64(k.mv_data);
		bool old = at_ms < now_ms && now_ms - at_ms > f->db->fixed.idem_ms;

		if (!old && f->stamp.idem_bytes <= f->db->fixed.idem_bytes)
			return 0;
		size_t len = age.rest_len;

		memcpy(key, age.rest, len);
		rc = fold_get(f, TABLE_IDEM, key, len, &idem);
		if (rc == MDB_NOTFOUND)
			return fold_damaged(f, TABLE_IDEM, key, len);
		if (rc == 0)
			rc = drop_key(f, len, &idem);
		if (rc != 0)
			return rc;
		if (!old)
			f->stamp.idem_dropped++;
	}
}

/* ── dead letters ── */

int fold_dead(struct fold *f, const struct part *p, uint64_t seq)
{
	uint8_t key[VALUE_KEY_MAX], *value;
	struct part_dead dead;
	uint64_t receiver_len = p->key_len;
	size_t at = sizeof(struct value_head), padded = record_pad(p->key_len);

	memcpy(&dead, p->data, sizeof dead);
	size_t key_len = key_numbered(key, dead.at_ms, ++f->stamp.number);
	size_t len = at + sizeof receiver_len + padded + p->len;
	int rc = fold_put(f, TABLE_DEAD, key, key_len, len, &value);

	if (rc != 0)
		return rc;
	memcpy(value + at, &receiver_len, sizeof receiver_len);
	at += sizeof receiver_len;
	memset(value + at, 0, padded);
	memcpy(value + at, p->key, p->key_len);
	memcpy(value + at + padded, p->data, p->len);
	value_seal(TABLE_DEAD, key, key_len, value, len, seq);
	return 0;
}

/* It has its number from an earlier fold: nobody could have named it before. */
int fold_undead(struct fold *f, const struct part *p)
{
	uint8_t key[VALUE_KEY_MAX];
	struct part_undead undead;

	memcpy(&undead, p->data, sizeof undead);
	return fold_delete(f, TABLE_DEAD, key, key_numbered(key, undead.at_ms, undead.number));
}

/* ── what follows from the images ── */

int fold_timers(struct fold *f)
{
	int rc = 0;

	if (!refs_sort(&f->timers))
		return fold_nomem(f);
	for (size_t i = 0; rc == 0 && i < f->timers.count; i++) {
		const struct ref *r = refs_nth(&f->timers, i);
		uint8_t *value;

		if (!r->at) {
			rc = fold_delete(f, TABLE_TIMERS, r->key, r->len);
			continue;
		}
		rc = fold_put(f, TABLE_TIMERS, r->key, r->len, sizeof(struct value_head), &value);
		if (rc == 0)
			value_seal(TABLE_TIMERS, r->key, r->len, value, sizeof(struct value_head), r->seq);
	}
	return rc;
}

static struct fold_type *find_type(struct fold *f, const uint8_t *key, size_t len)
{
	for (size_t i = 0; i < f->type_count; i++) {
		struct fold_type *t = &f->types[(f->last_type + i) % f->type_count];

		if (t->len == len && memcmp(t->key, key, len) == 0) {
			f->last_type = (size_t)(t - f->types);
			return t;
		}
	}
	return NULL;
}

int fold_type(struct fold *f, const char *address, size_t len, uint32_t version, uint64_t schema,
	      int64_t more)
{
	uint8_t key[VALUE_KEY_MAX];
	size_t key_len = key_type(key, address, len, version, schema);
	struct fold_type *t = find_type(f, key, key_len);

	if (!t && f->type_count == f->type_room) {
		size_t room = f->type_room ? f->type_room * 2 : 16;
		struct fold_type *all = mem_alloc(room * sizeof *all);

		if (!all)
			return fold_nomem(f);
		if (f->type_count)
			memcpy(all, f->types, f->type_count * sizeof *all);
		mem_free(f->types, f->type_room * sizeof *all);
		f->types = all;
		f->type_room = room;
	}
	if (!t) {
		f->last_type = f->type_count++;
		t = &f->types[f->last_type];
		t->len = key_len;
		t->more = 0;
		memcpy(t->key, key, key_len);
	}
	t->more += more;
	return 0;
}

int fold_types(struct fold *f)
{
	for (size_t i = 0; i < f->type_count; i++) {
		struct fold_type *t = &f->types[i];
		struct value_row row;
		uint8_t *value;
		int rc = t->more ? fold_get(f, TABLE_TYPES, t->key, t->len, &row) : MDB_NOTFOUND;

		if (rc != 0 && rc != MDB_NOTFOUND)
			return rc;
		uint64_t images = (rc == 0 ? row.images : 0) + (uint64_t)t->more;

		if (t->more == 0)
			continue;
		if (images == 0) {
			rc = mdb_cursor_del(f->cursors[TABLE_TYPES], 0);
		} else if (images > INT64_MAX) {
			return fold_damaged(f, TABLE_TYPES, t->key, t->len);
		} else {
			rc = fold_put(f, TABLE_TYPES, t->key, t->len,
				      sizeof(struct value_head) + sizeof images, &value);
			if (rc == 0) {
				memcpy(value + sizeof(struct value_head), &images, sizeof images);
				value_seal(TABLE_TYPES, t->key, t->len, value,
					   sizeof(struct value_head) + sizeof images, 0);
			}
		}
		if (rc != 0)
			return rc;
	}
	return 0;
}

int fold_stamp(struct fold *f)
{
	static const char name[] = "stamp";
	uint8_t *value;
	size_t len = sizeof(struct value_head) + sizeof f->stamp;
	int rc = fold_put(f, TABLE_META, name, sizeof name - 1, len, &value);

	if (rc == 0) {
		memcpy(value + sizeof(struct value_head), &f->stamp, sizeof f->stamp);
		value_seal(TABLE_META, name, sizeof name - 1, value, len, 0);
	}
	return rc;
}
