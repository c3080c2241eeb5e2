/* persist/fold_write.c - the actors of a fold: all records of one together, in the order of addresses.
 *
 * A row says of which sequence it is. Records of one actor are folded in the order of their sequence,
 * and a frame with a later one never comes before a frame with an earlier one (frames are closed under
 * cause and effect). So a row with sequence s holds all there was up to s, and what is not above s
 * has nothing to add: older after newer changes nothing.
 */
#include "persist/fold_in.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/plant.h"

#include <string.h>

#define AHEAD 8                  /* records are fetched so much before they are written */

struct actor {
	const char        *address;
	size_t             len;
	uint64_t           seq;          /* of its last record */
	bool               there;        /* it has a row */
	struct value_image old, now;     /* its entries */
	uint64_t           old_due;
	bool               old_unwell;
	struct part_state  old_state;
	const uint8_t     *state_at, *timers_at, *vitals_at;     /* parts of the new image; NULL: none */
};

static const uint8_t *parts_of(const uint8_t *at, const uint8_t **end)
{
	const struct kept_record *k = (const void *)at;

	*end = k->bytes + k->parts_at + k->parts_len;
	return k->bytes + k->parts_at;
}

/* Copy what may stay of the old row: the page it lies in changes as soon as something is written. */
static int keep_old(struct fold *f, struct actor *a, const struct value_row *row, uint64_t *base)
{
	struct value_parts parts;

	if (f->kept_room < row->rest_len) {
		mem_free(f->kept, f->kept_room);
		f->kept_room = row->rest_len * 2;
		f->kept = mem_alloc(f->kept_room);
		if (!f->kept) {
			f->kept_room = 0;
			return fold_nomem(f);
		}
	}
	if (row->rest_len)
		memcpy(f->kept, row->rest, row->rest_len);
	if (!value_image_parts(f->kept, row->rest_len, &parts))
		return fold_damaged(f, TABLE_IMAGES, a->address, a->len);
	a->there = true;
	a->old = row->image;
	a->now = row->image;
	a->state_at = parts.state_at;
	a->timers_at = parts.timers_at;
	a->vitals_at = parts.vitals_at;
	a->old_due = value_due(&parts.timers);
	a->old_unwell = value_unwell(&parts.vitals);
	if (parts.state_at)
		memcpy(&a->old_state, parts.state.data, sizeof a->old_state);
	*base = row->v.seq;
	return 0;
}

/* ── entries ── */

static int erase_entries(struct fold *f, struct actor *a)
{
	uint8_t prefix[VALUE_KEY_MAX];
	size_t plen = key_pair(prefix, a->address, a->len, NULL, 0);
	int rc = 0;

	for (uint64_t i = 0; i < a->old.entries; i++) {
		MDB_val key = { plen, prefix }, val;

		rc = mdb_cursor_get(f->cursors[TABLE_ENTRIES], &key, &val, MDB_SET_RANGE);
		if (rc == MDB_NOTFOUND || (rc == 0 && (key.mv_size <= plen ||
						       memcmp(key.mv_data, prefix, plen) != 0)))
			return fold_damaged(f, TABLE_ENTRIES, prefix, plen);
		if (rc == 0)
			rc = mdb_cursor_del(f->cursors[TABLE_ENTRIES], 0);
		if (rc != 0)
			return rc;
	}
	a->now = (struct value_image){ 0, 0 };
	return rc;
}

/* The last word on one entry. */
static int write_entry(struct fold *f, struct actor *a, const struct ref *r)
{
	uint8_t key[VALUE_KEY_MAX], *value;
	size_t len = key_pair(key, a->address, a->len, r->key, r->len);
	struct part p = fold_part(r->at);
	struct value_row row;
	int rc = a->now.entries ? fold_get(f, TABLE_ENTRIES, key, len, &row) : MDB_NOTFOUND;

	if (rc != 0 && rc != MDB_NOTFOUND)
		return rc;
	if (rc == 0) {
		a->now.entries--;
		a->now.entries_sum -= row.v.sum;
		if (p.kind == PART_DELETE)
			return mdb_cursor_del(f->cursors[TABLE_ENTRIES], 0);
	}
	if (p.kind == PART_DELETE)
		return 0;
	size_t value_len = sizeof(struct value_head) + p.len;

	rc = fold_put(f, TABLE_ENTRIES, key, len, value_len, &value);
	if (rc != 0)
		return rc;
	if (p.len)
		memcpy(value + sizeof(struct value_head), p.data, p.len);
	value_seal(TABLE_ENTRIES, key, len, value, value_len, r->seq);
	uint64_t sum;

	memcpy(&sum, value, sizeof sum);
	a->now.entries++;
	a->now.entries_sum += sum;
	return 0;
}

static int write_entries(struct fold *f, struct actor *a)
{
	if (!refs_sort(&f->entries))
		return fold_nomem(f);
	for (size_t i = 0, end; i < f->entries.count; i = end) {
		end = refs_group(&f->entries, i);
		int rc = write_entry(f, a, refs_nth(&f->entries, end - 1));

		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ── the image ── */

static size_t part_bytes(const uint8_t *at)
{
	struct part p;

	if (!at)
		return 0;
	p = fold_part(at);
	return part_size(p.key_len, p.len);
}

static int write_image(struct fold *f, struct actor *a)
{
	size_t state = part_bytes(a->state_at), timers = part_bytes(a->timers_at), vitals = part_bytes(a->vitals_at);
	size_t before = sizeof(struct value_head) + sizeof a->now, all = before + state + timers + vitals;
	uint8_t *value;
	int rc = (a->there ? fold_replace : fold_put)(f, TABLE_IMAGES, a->address, a->len, all, &value);

	if (rc != 0)
		return rc;
	memcpy(value + sizeof(struct value_head), &a->now, sizeof a->now);
	if (state)
		memcpy(value + before, a->state_at, state);
	if (timers)
		memcpy(value + before + state, a->timers_at, timers);
	if (vitals)
		memcpy(value + before + state + timers, a->vitals_at, vitals);
	value_seal(TABLE_IMAGES, a->address, a->len, value, all, a->seq);
	return 0;
}

static int note_timer(struct fold *f, struct actor *a, uint64_t due, bool put)
{
	uint8_t key[VALUE_KEY_MAX];
	size_t len = key_timer(key, due, a->address, a->len);
	uint8_t *kept = fold_keep(f, len);

	if (!kept)
		return fold_nomem(f);
	memcpy(kept, key, len);
	return refs_add(&f->timers, kept, len, a->seq, put ? kept : NULL, 0) ? 0 : fold_nomem(f);
}

/* Types and timers follow what became of the image. */
static int follow_image(struct fold *f, struct actor *a, bool stays)
{
	struct part_state state = { .version = 0 };
	struct part timers = a->timers_at ? fold_part(a->timers_at) : (struct part){ .kind = 0 };
	struct part vitals = a->vitals_at ? fold_part(a->vitals_at) : (struct part){ .kind = 0 };
	uint64_t due = stays ? value_due(&timers) : 0;
	bool unwell = stays && value_unwell(&vitals);
	int rc = 0;

	if (a->state_at)
		memcpy(&state, fold_part(a->state_at).data, sizeof state);
	if (a->there && stays && state.version == a->old_state.version &&
	    state.schema == a->old_state.schema) {
		rc = 0;                  /* as many as before */
	} else {
		if (a->there)
			rc = fold_type(f, a->address, a->len, a->old_state.version, a->old_state.schema, -1);
		if (rc == 0 && stays)
			rc = fold_type(f, a->address, a->len, state.version, state.schema, 1);
	}
	if (rc == 0 && due != a->old_due && a->old_due)
		rc = note_timer(f, a, a->old_due, false);
	if (rc == 0 && due != a->old_due && due)
		rc = note_timer(f, a, due, true);
	if (rc == 0 && unwell != a->old_unwell)
		rc = note_timer(f, a, VALUE_UNWELL, unwell);
	f->unwell += unwell - a->old_unwell;
	return rc;
}

/* ── one actor ── */

/* One record's parts. `counts`: is it above the row, and not before an erasure? */
static int gather(struct fold *f, struct actor *a, const struct ref *r, bool counts)
{
	const uint8_t *end, *at = parts_of(r->at, &end);
	struct part p;
	int rc = 0;

	for (const uint8_t *start = at; rc == 0 && part_next(&at, end, &p); start = at) {
		switch (p.kind) {
		case PART_STATE:
			if (counts)
				a->state_at = start;
			break;
		case PART_TIMERS:
			if (counts)
				a->timers_at = p.len ? start : NULL;
			break;
		case PART_VITALS:
			if (counts)
				a->vitals_at = start;
			break;
		case PART_PUT:
		case PART_DELETE:
			if (counts && !refs_add(&f->entries, p.key, p.key_len, r->seq, start, 0))
				rc = fold_nomem(f);
			break;
		case PART_IDEM:
			rc = fold_idem(f, a->address, a->len, &p, r->seq);
			break;
		case PART_DEAD:
			rc = fold_dead(f, &p, r->seq);
			break;
		case PART_UNDEAD:
			rc = fold_undead(f, &p);
			break;
		default:                 /* messages: fold_pending */
			break;
		}
	}
	return rc;
}

/* Which of an actor's n records, from the first-th on, erases it, and which is the last with a state. SIZE_MAX: none. */
struct turns { size_t gone, state; };

static struct turns look_over(const struct fold *f, size_t first, size_t n, uint64_t base)
{
	struct turns t = { SIZE_MAX, SIZE_MAX };
	uint64_t before = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ref *r = refs_nth(&f->records, first + i);

		if (i > 0 && r->seq == before)
			continue;        /* the same record, read twice: the first one counts */
		before = r->seq;
		if (r->seq > base && (r->note & NOTE_GONE))
			t.gone = i;
		if (r->note & NOTE_STATE)
			t.state = i;
	}
	return t;
}

static int gather_all(struct fold *f, struct actor *a, size_t first, size_t n, uint64_t base, const struct turns *t)
{
	uint64_t before = 0;
	int rc = 0;

	f->entries.count = 0;
	a->seq = base;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct ref *r = refs_nth(&f->records, first + i);
		bool new = r->seq > base && (t->gone == SIZE_MAX || i >= t->gone);

		if (i > 0 && r->seq == before)
			continue;
		before = r->seq;
		if ((r->note & NOTE_PLAIN) && t->state != SIZE_MAX && i < t->state)
			continue;        /* nothing of it stays, whether it counts or not */
		rc = gather(f, a, r, new);
		if (new)
			a->seq = r->seq;
	}
	return rc;
}

/* What most are: records that have a state and nothing else, of an actor whose row has nothing else either, and a state of the
 * same size, version and schema. Only the last one's state and sequence are new; nothing follows from that. */
static bool only_new_state(const struct fold *f, size_t first, size_t n, const struct value_row *row)
{
	const struct ref *last = refs_nth(&f->records, first + n - 1);
	const uint8_t *end, *parts = parts_of(last->at, &end);

	for (size_t i = 0; i < n; i++)
		if (refs_nth(&f->records, first + i)->note != (NOTE_STATE | NOTE_PLAIN))
			return false;
	return last->seq > row->v.seq && (size_t)(end - parts) == row->rest_len &&
	       row->rest_len >= sizeof(struct part_head) + sizeof(struct part_state) &&
	       memcmp(parts, row->rest, sizeof(struct part_head) + sizeof(struct part_state)) == 0;
}

static int write_actor(struct fold *f, size_t first, size_t n)
{
	const struct ref *any = refs_nth(&f->records, first);
	struct actor a = { .address = (const char *)any->key, .len = any->len };
	uint64_t base = 0;
	struct value_row row;
	int rc = fold_get(f, TABLE_IMAGES, a.address, a.len, &row);

	if (rc == 0 && only_new_state(f, first, n, &row)) {
		const struct ref *last = refs_nth(&f->records, first + n - 1);
		const uint8_t *end;

		a.there = true;
		a.now = row.image;
		a.seq = last->seq;
		a.state_at = parts_of(last->at, &end);
		return write_image(f, &a);
	}
	if (rc == 0)
		rc = keep_old(f, &a, &row, &base);
	else if (rc == MDB_NOTFOUND)
		rc = 0;
	struct turns turns = look_over(f, first, n, base);

	if (turns.gone != SIZE_MAX) {
		a.state_at = NULL;
		a.timers_at = NULL;
		a.vitals_at = NULL;
		if (rc == 0 && !PLANT(PLANT_ENTRIES_LEFT))
			rc = erase_entries(f, &a);
	}
	if (rc == 0)
		rc = gather_all(f, &a, first, n, base, &turns);
	if (rc == 0)
		rc = write_entries(f, &a);
	if (rc != 0 || a.seq == base)
		return rc;
	/* An actor that only passed messages on leaves no row; one that has a row keeps its sequence. */
	bool stays = a.state_at || a.timers_at || a.vitals_at || a.now.entries || (a.there && turns.gone == SIZE_MAX);

	rc = follow_image(f, &a, stays);
	if (rc != 0)
		return rc;
	if (stays)
		return write_image(f, &a);
	return a.there ? fold_delete(f, TABLE_IMAGES, a.address, a.len) : 0;
}

static int start(struct fold *f)
{
	f->timers.count = 0;
	f->type_count = 0;
	f->changed = 0;
	f->unwell = 0;
	memset(f->page, 0, sizeof f->page);
	memset(f->whole, 0, sizeof f->whole);
	for (enum table t = 0; t < TABLES; t++) {
		int rc = mdb_cursor_open(f->txn, f->db->fixed.tables[t], &f->cursors[t]);

		if (rc != 0)
			return rc;
	}
	f->failed = db_read_stamp(f->db, f->txn, &f->stamp);
	return f->failed == NOH_OK ? fold_find_map(f) : FOLD_FAILED;
}

/* The references first, then what they refer to: a record stands on two lines. *ref, *record: how far that was done. */
static void look_ahead(const struct fold *f, size_t from, size_t *ref, size_t *record)
{
	for (; *ref < from + 3 * AHEAD && *ref < f->records.count; ++*ref)
		__builtin_prefetch(refs_nth(&f->records, *ref));
	for (; *record < from + AHEAD && *record < f->records.count; ++*record) {
		const uint8_t *at = refs_nth(&f->records, *record)->at;

		__builtin_prefetch(at);
		__builtin_prefetch(at + 64);
	}
}

int fold_write(struct fold *f, uint64_t frame, uint64_t epoch, uint64_t now_ms, int *failed)
{
	size_t ref = 0, record = 0;
	int rc = start(f);

	for (size_t i = 0, end; rc == 0 && i < f->records.count; i = end) {
		end = refs_group(&f->records, i);
		look_ahead(f, end, &ref, &record);
		rc = write_actor(f, i, end - i);
		if (rc == FOLD_FAILED && f->failed == NOH_FULL)
			f->limit->fitted = (uint32_t)(i * 256 / f->records.count);
	}
	if (rc == 0)
		rc = fold_pending(f);
	if (rc == 0)
		rc = fold_timers(f);
	if (rc == 0)
		rc = fold_types(f);
	if (rc == 0)
		rc = fold_expire(f, now_ms);
	if (rc == 0)
		rc = fold_events(f, now_ms);
	f->stamp.frame = frame + (PLANT(PLANT_FOLD_PAST_STAMP) ? 1 : 0);
	f->stamp.epoch = epoch;
	f->stamp.folds++;
	f->stamp.records += f->count;
	if (rc == 0)
		rc = fold_stamp(f);
	if (rc == FOLD_FAILED)
		*failed = f->failed;
	return rc;
}
