/* persist/fold.c - gathering the records of many frames, and committing them as one transaction.
 *
 * The records are copied into large chunks (without their heads), referred to by address, and sorted; fold_write.c
 * then goes through each tree once, in key order. Extra memory: that copy, 48 bytes of references per record and
 * per message, and 16 more of them while sorting.
 */
#include "persist/fold_in.h"

#include "core/error.h"
#include "core/mem.h"

#include <errno.h>
#include <string.h>

#define CHUNK ((size_t)1 << 20)
#define LARGE_CHUNK ((size_t)16 << 20)   /* of a fold that is not small: on huge pages */

uint8_t *fold_keep(struct fold *f, size_t len)
{
	size_t need = record_pad(len);
	struct fold_chunk *c = f->chunks;

	if (!c || c->room - c->used < need) {
		size_t room = (f->bytes < 4 * CHUNK ? CHUNK : LARGE_CHUNK) - sizeof *c;

		if (room < need)
			room = need;
		c = blocks_take(&f->db->folding.blocks, sizeof *c + room);
		if (!c)
			return NULL;
		*c = (struct fold_chunk){ .next = f->chunks, .room = room };
		f->chunks = c;
	}
	c->used += need;
	return c->bytes + c->used - need;
}

struct part fold_part(const uint8_t *at)
{
	struct part_head head;
	struct part p = { .kind = 0 };

	memcpy(&head, at, sizeof head);
	part_next(&at, at + part_size(head.key_len, head.len), &p);
	return p;
}

int fold_begin(struct db *db, struct fold **out)
{
	struct fold *f;
	uint64_t epoch;

	*out = NULL;
	if (db->fixed.read_only)
		return error_set(NOH_EREADONLY, "%s is open to look only", db->fixed.file);
	f = mem_zalloc(sizeof *f);
	if (!f)
		return error_set(NOH_ENOMEM, "folding into %s: out of memory", db->fixed.file);
	f->db = db;
	f->records.blocks = f->pending.blocks = &db->folding.blocks;
	f->records.first_room = db->folding.records;
	f->pending.first_room = db->folding.messages;
	db_stamp(db, &f->stamped, &epoch);
	*out = f;
	return NOH_OK;
}

void fold_limit(struct fold *f, struct fold_pages *pages)
{
	f->limit = pages;
}

void fold_trim(struct db *db)
{
	blocks_free(&db->folding.blocks);
	db->folding.records = db->folding.messages = 0;
}

void fold_abort(struct fold *f)
{
	if (!f)
		return;
	f->db->folding.records = f->records.room;
	f->db->folding.messages = f->pending.room;
	for (struct fold_chunk *c = f->chunks, *next; c; c = next) {
		next = c->next;
		blocks_give(&f->db->folding.blocks, c, sizeof *c + c->room);
	}
	refs_free(&f->records);
	refs_free(&f->pending);
	refs_free(&f->entries);
	refs_free(&f->timers);
	mem_free(f->types, f->type_room * sizeof *f->types);
	mem_free(f->events, f->event_room * sizeof *f->events);
	mem_free(f->kept, f->kept_room);
	mem_free(f, sizeof *f);
}

/* A message that came (at: its part) or found its end (NULL). */
static bool note_message(struct fold *f, const void *receiver, size_t len, const struct message_id *id,
			 const uint8_t *at)
{
	uint8_t key[VALUE_KEY_MAX];
	size_t key_len = key_pending(key, receiver, len, id);
	uint8_t *kept = fold_keep(f, key_len);

	if (!kept)
		return false;
	memcpy(kept, key, key_len);
	return refs_add(&f->pending, kept, key_len, id->seq, at, 0);
}

static bool note_part(struct fold *f, uint64_t frame, const struct record_head *head, const uint8_t *address,
		      const uint8_t *at, const struct part *p)
{
	struct part_emitted e;
	struct part_dead d;
	struct message_id id;

	f->rows++;
	switch (p->kind) {
	case PART_EMITTED:
		memcpy(&e, p->data, sizeof e);
		return note_message(f, p->key, p->key_len, &e.id, at);
	case PART_CONSUMED:
		memcpy(&id, p->data, sizeof id);
		return note_message(f, address, head->address_len, &id, NULL);
	case PART_DEAD:
		memcpy(&d, p->data, sizeof d);
		return d.id.seq == 0 || note_message(f, p->key, p->key_len, &d.id, NULL);
	case PART_IDEM:
		f->rows++;               /* its age */
		return true;
	case PART_EVENT:
		f->rows--;               /* they lie side by side */
		return !(head->flags & RECORD_EVENTS) || fold_note_event(f, frame, head->order, p);
	default:
		return true;
	}
}

int fold_record(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		const uint8_t *parts, const uint8_t *parts_end)
{
	struct fold *f = arg;
	size_t len = (size_t)(parts_end - parts);
	struct part p;

	(void)epoch;
	if (frame <= f->stamped)
		return NOH_OK;
	if (!parts_valid(parts, parts_end) || memchr(record_address(head), 0, head->address_len))
		return error_set(NOH_ECORRUPT, "folding into %s: a record of frame %llu makes no sense",
				 f->db->fixed.file, (unsigned long long)frame);
	struct kept_record *copy = (void *)fold_keep(f, sizeof *copy + record_pad(head->address_len) + len);
	uint32_t note = head->flags & RECORD_GONE ? NOTE_GONE : NOTE_PLAIN;

	if (!copy)
		goto no_memory;
	*copy = (struct kept_record){ (uint32_t)record_pad(head->address_len), (uint32_t)len };
	memcpy(copy->bytes, record_address(head), copy->parts_at);
	memcpy(copy->bytes + copy->parts_at, parts, len);
	const uint8_t *at = copy->bytes + copy->parts_at, *end = at + len;

	for (const uint8_t *start = at; part_next(&at, end, &p); start = at) {
		if (!note_part(f, frame, head, copy->bytes, start, &p))
			goto no_memory;
		if (p.kind == PART_STATE)
			note |= NOTE_STATE;
		else if (p.kind != PART_EVENT)           /* that has its own list */
			note &= ~(uint32_t)NOTE_PLAIN;
	}
	if (!(head->flags & RECORD_NOTICE) &&
	    !refs_add(&f->records, copy->bytes, head->address_len, head->seq, copy, note))
		goto no_memory;
	f->count++;
	f->bytes += record_parts_at(head->address_len) + len;
	return NOH_OK;
no_memory:
	return error_set(NOH_ENOMEM, "folding into %s: out of memory", f->db->fixed.file);
}

/* How many pages it may write: each row its own leaf, as far as there are as many, and what is new;
 * a value above a leaf's half has pages of its own. Rather too many than too few. */
static uint64_t pages_to_write(struct fold *f)
{
	struct db_stats s;
	uint64_t page = f->db->fixed.page, rows = f->count * 2 + f->rows;

	db_get_stats(f->db, &s);
	uint64_t touched = rows * 3 < s.used_bytes / page ? rows * 3 : s.used_bytes / page;
	uint64_t added = ((f->bytes - f->event_bytes) * 3 + rows * 160) / page;

	added += 2 * (f->event_bytes + f->event_bytes / 4 + f->event_count * 64) / page;      /* as many may go */
	return touched + added + touched / 64 + 64;
}

static int in_our_words(struct fold *f, int rc)
{
	if ((rc == EIO || rc == ENOSPC) && db_disk_full(f->db))
		rc = ENOSPC;
	if (rc == MDB_TXN_FULL)
		return error_set(NOH_ENOMEM, "folding into %s: too much for one transaction",
				 f->db->fixed.file);
	return db_error(f->db, rc, "folding into");
}

/* One transaction. NOH_OK, an error, or MDB_MAP_FULL. */
static int try_commit(struct fold *f, uint64_t frame, uint64_t epoch, uint64_t now_ms)
{
	uint64_t rows[TABLES] = {0};
	int failed = NOH_OK, rc = mdb_txn_begin(f->db->fixed.env, NULL, 0, &f->txn);

	if (rc != MDB_SUCCESS)
		return in_our_words(f, rc);
	rc = fold_write(f, frame, epoch, now_ms, &failed);
	if (rc == MDB_SUCCESS)
		(void)db_count(f->db, f->txn, rows);
	for (enum table t = 0; t < TABLES; t++) {
		if (f->cursors[t])
			mdb_cursor_close(f->cursors[t]);
		f->cursors[t] = NULL;
	}
	if (rc == MDB_SUCCESS)
		rc = mdb_txn_commit(f->txn);
	else
		mdb_txn_abort(f->txn);
	f->txn = NULL;
	if (f->changed > f->db->folding.pages)
		f->db->folding.pages = f->changed;
	if (rc == FOLD_FAILED)
		return failed;
	if (rc == MDB_MAP_FULL)
		return rc;
	if (rc != MDB_SUCCESS)
		return in_our_words(f, rc);
	if (f->limit)
		f->limit->changed = f->changed;
	add_relaxed(&f->db->shown.unwell, (uint64_t)f->unwell);
	db_show(f->db, &f->stamp, rows, now_ms);
	return db_keep_length(f->db);
}

static int commit(struct fold *f, uint64_t frame, uint64_t epoch, uint64_t now_ms)
{
	uint64_t pages = pages_to_write(f);
	int rc, dead;

	if (!refs_sort(&f->records) || !refs_sort(&f->pending))
		return error_set(NOH_ENOMEM, "folding into %s: out of memory", f->db->fixed.file);
	mdb_reader_check(f->db->fixed.env, &dead);       /* of tools that crashed beside us */
	for (;; pages *= 2) {
		rc = db_make_room(f->db, pages);
		if (rc == NOH_OK)
			rc = try_commit(f, frame, epoch, now_ms);
		if (rc != MDB_MAP_FULL)
			return rc;
	}
}

int fold_commit(struct fold *f, uint64_t frame, uint64_t epoch, uint64_t now_ms)
{
	int rc = frame <= f->stamped ? NOH_OK : commit(f, frame, epoch, now_ms);

	fold_abort(f);
	return rc;
}
