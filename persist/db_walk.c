/* persist/db_walk.c - walks over whole tables, a slice at a time.
 *
 * A slice is copied out of one snapshot, the snapshot given back, and only then is the caller called.
 * So a walk never holds pages back from being used again, a callback may load, and the map may grow
 * between two slices. A walk is no snapshot: what is folded meanwhile may be seen or not.
 */
#include "persist/db_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <string.h>

#define SLICE_ROWS 512
#define SLICE_BYTES 65536

struct row_at { size_t key, key_len, val, val_len; };

struct slice {
	uint8_t      *bytes;
	size_t        used, room;
	uint32_t      rows;
	struct row_at at[SLICE_ROWS];
	uint8_t       next[VALUE_KEY_MAX + 1];   /* where the following one begins */
	size_t        next_len;
	bool          last;
};

static bool slice_room(struct slice *s, size_t more)
{
	size_t room = s->room ? s->room : SLICE_BYTES;
	uint8_t *bytes;

	if (s->room - s->used >= more)
		return true;
	while (room - s->used < more)
		room *= 2;
	bytes = mem_alloc(room);
	if (!bytes)
		return false;
	if (s->used)
		memcpy(bytes, s->bytes, s->used);
	mem_free(s->bytes, s->room);
	s->bytes = bytes;
	s->room = room;
	return true;
}

static bool slice_add(struct slice *s, const MDB_val *key, const MDB_val *val)
{
	if (!slice_room(s, key->mv_size + val->mv_size))
		return false;
	s->at[s->rows++] = (struct row_at){ s->used, key->mv_size, s->used + key->mv_size,
					    val->mv_size };
	memcpy(s->bytes + s->used, key->mv_data, key->mv_size);
	memcpy(s->bytes + s->used + key->mv_size, val->mv_data, val->mv_size);
	s->used += key->mv_size + val->mv_size;
	return true;
}

/* Go on above this very key (exact), or above all keys that begin with it and a NUL. */
static void slice_next(struct slice *s, const void *key, size_t len, bool exact)
{
	memcpy(s->next, key, len);
	s->next[len] = exact ? 0 : 1;
	s->next_len = len + 1;
}

/* by_receiver: only the first message below before_tag of each receiver. */
struct db_walk {
	struct db  *db;
	enum table  table;
	uint64_t    before_tag;
	bool        by_receiver;
	uint8_t     upto[8];                     /* keys from here on are not wanted */
	bool        has_upto;
};

static bool wanted(const struct db_walk *w, const struct value_row *row)
{
	struct part_emitted e;

	if (!w->by_receiver)
		return true;
	memcpy(&e, row->rest, sizeof e);
	return e.tag < w->before_tag;
}

static int fill(const struct db_walk *w, struct reader *r, struct slice *s)
{
	MDB_cursor *c = reader_cursor(w->db, r, w->table);
	MDB_val key = { s->next_len, s->next }, val;
	MDB_cursor_op op = s->next_len ? MDB_SET_RANGE : MDB_FIRST;
	uint8_t from[VALUE_KEY_MAX + 1];
	size_t from_len = 0;
	struct value_row row;
	int rc;

	if (!c)
		return error_set(NOH_ENOMEM, "reading %s: out of memory", w->db->fixed.file);
	for (uint32_t seen = 0; seen < 8 * SLICE_ROWS; seen++) {
		rc = mdb_cursor_get(c, &key, &val, op);
		if (rc == MDB_NOTFOUND ||
		    (rc == MDB_SUCCESS && w->has_upto && key.mv_size >= 8 &&
		     memcmp(key.mv_data, w->upto, 8) >= 0)) {
			s->last = true;
			return NOH_OK;
		}
		if (rc != MDB_SUCCESS)
			return db_error(w->db, rc, "reading");
		if (key_compare(key.mv_data, key.mv_size, from, from_len) <= 0 ||
		    !value_row(w->table, key.mv_data, key.mv_size, val.mv_data, val.mv_size, &row))
			return db_damaged(w->db, w->table, key.mv_data, key.mv_size);
		memcpy(from, key.mv_data, from_len = key.mv_size);
		bool taken = wanted(w, &row);

		if (taken && !slice_add(s, &key, &val))
			return error_set(NOH_ENOMEM, "reading %s: out of memory", w->db->fixed.file);
		if (taken && w->by_receiver) {
			slice_next(s, key.mv_data, key.mv_size - 21, false);
			key = (MDB_val){ s->next_len, s->next };
			op = MDB_SET_RANGE;
		} else {
			slice_next(s, key.mv_data, key.mv_size, true);
			op = MDB_NEXT;
		}
		if (s->rows == SLICE_ROWS || s->used >= SLICE_BYTES)
			break;
	}
	return NOH_OK;
}

typedef int give_fn(const struct value_row *row, const uint8_t *key, size_t len, void *each, void *arg);

static int hand_out(const struct db_walk *w, struct slice *s, give_fn *give, void *each, void *arg)
{
	for (uint32_t i = 0; i < s->rows; i++) {
		const uint8_t *key = s->bytes + s->at[i].key;
		struct value_row row;

		if (!value_row(w->table, key, s->at[i].key_len, s->bytes + s->at[i].val, s->at[i].val_len,
			       &row))
			return db_damaged(w->db, w->table, key, s->at[i].key_len);
		if (give(&row, key, s->at[i].key_len, each, arg) != 0)
			return NOH_END;
	}
	return NOH_OK;
}

/* each points to the caller's function pointer (a function does not fit a void pointer). */
static int walk(const struct db_walk *w, const void *from, size_t len, give_fn *give, void *each,
		void *arg)
{
	struct slice *s = mem_zalloc(sizeof *s);
	int rc = NOH_OK;

	if (!s)
		return error_set(NOH_ENOMEM, "reading %s: out of memory", w->db->fixed.file);
	if (len)
		memcpy(s->next, from, len);
	s->next_len = len;
	while (rc == NOH_OK && !s->last) {
		struct reader *r;

		s->rows = 0;
		s->used = 0;
		rc = reader_take(w->db, &r);
		if (rc != NOH_OK)
			break;
		rc = fill(w, r, s);
		reader_give(r);
		if (rc == NOH_OK)
			rc = hand_out(w, s, give, each, arg);
	}
	mem_free(s->bytes, s->room);
	mem_free(s, sizeof *s);
	return rc == NOH_END ? NOH_OK : rc;
}

/* From the first key above `after` and this byte; NULL: from the beginning. */
static int walk_after(const struct db_walk *w, const char *after, size_t len, uint8_t then, give_fn *give,
		      void *each, void *arg)
{
	uint8_t from[256];

	if (!after || len >= sizeof from)
		return walk(w, NULL, 0, give, each, arg);
	memcpy(from, after, len);
	from[len] = then;
	return walk(w, from, len + 1, give, each, arg);
}

static int give_address(const struct value_row *row, const uint8_t *key, size_t len, void *each,
			void *arg)
{
	(void)row;
	return (*(db_address_fn **)each)(arg, (const char *)key, len);
}

int db_addresses(struct db *db, const char *after, size_t after_len, db_address_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_IMAGES };

	return walk_after(&w, after, after_len, 0, give_address, &each, arg);
}

static int give_receiver(const struct value_row *row, const uint8_t *key, size_t len, void *each,
			 void *arg)
{
	(void)row;
	return (*(db_address_fn **)each)(arg, (const char *)key, len - 21);
}

int db_receivers(struct db *db, const char *after, size_t after_len, uint64_t before_tag,
		 db_address_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_PENDING, .before_tag = before_tag,
			  .by_receiver = true };

	return walk_after(&w, after, after_len, 1, give_receiver, &each, arg);     /* past its NUL */
}

static int give_timer(const struct value_row *row, const uint8_t *key, size_t len, void *each, void *arg)
{
	(void)row;
	return (*(db_timer_fn **)each)(arg, key_u64(key), (const char *)key + 8, len - 8);
}

int db_timers(struct db *db, uint64_t from_ms, uint64_t to_ms, db_timer_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_TIMERS, .has_upto = true };
	uint8_t from[VALUE_KEY_MAX];

	key_timer(w.upto, to_ms < VALUE_UNWELL ? to_ms + 1 : VALUE_UNWELL, NULL, 0);
	return walk(&w, from, key_timer(from, from_ms, NULL, 0), give_timer, &each, arg);
}

int db_timers_after(struct db *db, uint64_t due_ms, const char *address, size_t len, db_timer_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_TIMERS, .has_upto = true };
	uint8_t from[VALUE_KEY_MAX + 1];
	size_t from_len = key_timer(from, due_ms, address, len);

	key_timer(w.upto, VALUE_UNWELL, NULL, 0);
	if (address)
		from[from_len++] = 0;            /* the first key above it */
	return walk(&w, from, from_len, give_timer, &each, arg);
}

int db_unwell(struct db *db, db_timer_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_TIMERS };
	uint8_t from[VALUE_KEY_MAX];

	return walk(&w, from, key_timer(from, VALUE_UNWELL, NULL, 0), give_timer, &each, arg);
}

static int give_type(const struct value_row *row, const uint8_t *key, size_t len, void *each, void *arg)
{
	size_t name_len = len - 13;
	uint32_t version;
	char name[256];

	memcpy(name, key, name_len);
	name[name_len] = 0;
	memcpy(&version, key + name_len + 1, sizeof version);
	return (*(db_type_fn **)each)(arg, name, __builtin_bswap32(version), key_u64(key + name_len + 5),
				      row->images);
}

int db_types(struct db *db, db_type_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_TYPES };

	return walk(&w, NULL, 0, give_type, &each, arg);
}

static int give_dead(const struct value_row *row, const uint8_t *key, size_t len, void *each, void *arg)
{
	struct part_dead dead;

	(void)len;
	memcpy(&dead, row->rest, sizeof dead);
	return (*(db_dead_fn **)each)(arg, key_u64(key), key_u64(key + 8), row->receiver,
				      row->receiver_len, &dead, row->rest + sizeof dead,
				      row->rest_len - sizeof dead);
}

int db_dead(struct db *db, uint64_t from_ms, uint64_t from_number, db_dead_fn *each, void *arg)
{
	struct db_walk w = { .db = db, .table = TABLE_DEAD };
	uint8_t from[VALUE_KEY_MAX];

	return walk(&w, from, key_numbered(from, from_ms, from_number), give_dead, &each, arg);
}
