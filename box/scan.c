/* box/scan.c - noh.h, section 4: who exists, in memory, in the overlay, in a crash's tail, or in LMDB.
 *
 * A scan goes first through memory in the order of hashes, a window at a time, then through LMDB in the
 * order of addresses. The cursor says where: below 2^44 the next hash (its top 44 bits), with the top
 * bit set the mark of the address it stopped at (marks.h).
 *
 * Why nobody is missed who exists all the time: in his window he is loaded in a cell; or he is not, and
 * then he is in the overlay, the tail or LMDB. The four are asked in this order, and he moves down it
 * before he leaves where he was (overlay before the cell dies, commit before overlay and tail go), so
 * one of them has him. Up he is copied, not moved. Whoever LMDB has in his window is left to the second
 * part: a row stays as long as its actor exists. But for one: who was erased and came again before that
 * was folded may lose the row for the time between two folds; he is NAME_REBORN, and given at once (and
 * perhaps once more).
 *
 * Why nobody is given who never exists meanwhile: of the places that know him the first is right. A row
 * of LMDB counts if neither a cell nor overlay nor tail says that he is erased; if there was a commit
 * since the snapshot those may have said so and gone, and it is looked again.
 *
 * What is given, and what is left out, is on disk when *due is (P5).
 */
#include "box/api.h"
#include "sched/scan.h"

#include <string.h>

#define WINDOWS_END (UINT64_C(1) << 44)
#define WINDOWS_OF_TABLE (UINT64_C(1) << 32)
#define IN_STORAGE (UINT64_C(1) << 63)
#define LIMIT 100
#define LIMIT_MOST 10000
#define LOOKS 8                  /* times the limit are looked at in memory, if most are LMDB's to give */
#define LINES_MOST 16384         /* of the directory, in one call */
#define STOP_AT 64               /* one address in so many is a place to stop at: different scans share marks */

struct scan {
	noh_box        *box;
	struct port    *port;
	struct type    *only;          /* NULL: all */
	uint32_t        limit;
	uint32_t        looked, chosen;        /* so far: of names, and of these to be given */
	uint64_t        due;
	struct names    names;
	noh_scan_fn    *each;
	void           *user;
};

static int no_memory(void)
{
	return error_set(NOH_ENOMEM, "no memory for a list of actors");
}

/* Which of the registered types? NULL: none. */
static struct type *type_of(struct scan *x, uint32_t i, struct address *a)
{
	const char *text = names_at(&x->names, i);
	struct type *t;

	if (address_parse(a, text, x->names.list[i].len) != NOH_OK)
		return NULL;
	t = sched_find_type(&x->box->sched, a->type, a->type_len);
	return !x->only || t == x->only ? t : NULL;
}

static void give(struct scan *x)
{
	for (uint32_t i = 0; i < x->names.count; i++) {
		const struct name *n = &x->names.list[i];

		if (n->flags & NAME_CHOSEN)
			x->each(x->user, &(noh_scanned){ .address = names_at(&x->names, i), .len = n->len,
							 .active = n->flags & NAME_ACTIVE });
	}
}

static void raise_due(struct scan *x, uint64_t due)
{
	if (due > x->due)
		x->due = due;
}

/* ── in memory ── */

static bool collect(struct scan *x, uint64_t from, uint64_t last)
{
	noh_box *box = x->box;

	return scan_window(x->port, x->only, from, last, &x->names) &&
	       store_window(box->store, from, last, &x->names) &&
	       (!box->disk.store || store_window(box->disk.store, from, last, &x->names));
}

/* Windows, until enough was found or read. */
static int collect_some(struct scan *x, uint64_t *pos, uint64_t *read)
{
	uint32_t enough = x->looked + x->limit - x->chosen;
	noh_box *box = x->box;

	while (*pos < WINDOWS_END && x->names.count < enough && *read < LINES_MOST) {
		uint64_t left = WINDOWS_OF_TABLE - *pos % WINDOWS_OF_TABLE, width = left;
		uint64_t from = *pos << 20, lines;
		uint64_t near = scan_near(&box->sched, from, &lines) + store_near(box->store, from) +
				(box->disk.store ? store_near(box->disk.store, from) : 0);
		uint64_t want = enough - x->names.count;

		*read += 1 + lines;
		if (near > 2 * want)
			width = WINDOWS_OF_TABLE / near * want;
		if (width > left)
			width = left;
		if (near && !collect(x, from, ((*pos + width) << 20) - 1))
			return no_memory();
		*pos += width;
	}
	return NOH_OK;
}

/* Of each address the first word counts; then who of them is LMDB's to give? */
static int settle(struct scan *x)
{
	struct names *n = &x->names;

	names_sort(n, x->looked);
	for (uint32_t i = x->looked, first = i; i < n->count; i++) {
		struct address a;
		struct type *t = type_of(x, i, &a);

		raise_due(x, n->list[i].due);
		if (i > first && names_same(n, first, i)) {
			n->list[i].flags = 0;
			continue;
		}
		first = i;
		if (!t)
			n->list[i].flags = 0;
		else if (t->durable)
			n->list[i].flags |= NAME_DURABLE;
		if (t && t->durable && store_disk_is_folded(x->box->disk.store, n->list[i].due))
			n->list[i].flags = (n->list[i].flags | NAME_STORED) & (uint16_t)~NAME_REBORN;
	}
	return x->box->disk.db ? db_mark_stored(x->box->disk.db, n, x->looked) : NOH_OK;
}

static uint64_t window_of(const struct scan *x, uint32_t i)
{
	return x->names.list[i].hash >> 20;
}

/* With the last that is wanted it ends, and the next call goes on from there: behind a whole window, for a cursor says no more. */
static void choose(struct scan *x, uint64_t *pos)
{
	for (; x->looked < x->names.count; x->looked++) {
		uint16_t flags = x->names.list[x->looked].flags;

		if (x->chosen >= x->limit && window_of(x, x->looked) != window_of(x, x->looked - 1)) {
			*pos = window_of(x, x->looked);
			x->names.count = x->looked;
			return;
		}
		if ((flags & NAME_THERE) && ((flags & NAME_REBORN) || !(flags & NAME_STORED))) {
			x->names.list[x->looked].flags |= NAME_CHOSEN;
			x->chosen++;
		}
	}
}

static int scan_memory(struct scan *x, uint64_t *pos)
{
	uint64_t read = 0;
	int rc = NOH_OK;

	while (rc == NOH_OK && *pos < WINDOWS_END && x->chosen < x->limit && x->looked < LOOKS * x->limit &&
	       read < LINES_MOST) {
		rc = collect_some(x, pos, &read);
		if (rc == NOH_OK)
			rc = settle(x);
		if (rc == NOH_OK)
			choose(x, pos);
	}
	return rc;
}

/* ── in LMDB ── */

/* How many rows of these are to be looked at: all, or up to a place to stop, if there is one in the second half. */
static uint32_t stop_at(struct scan *x, bool end)
{
	struct names *n = &x->names;
	uint32_t half = x->looked + (n->count - x->looked) / 2, stop = n->count;

	for (uint32_t i = x->looked; i < n->count; i++) {
		n->list[i].hash = address_hash_text(names_at(n, i), n->list[i].len, x->box->sched.seed);
		if (!end && i >= half && n->list[i].hash % STOP_AT == 0)
			stop = i + 1;
	}
	return stop;
}

/* Is it erased, though there is a row? */
static void look_again(struct scan *x, uint32_t i)
{
	struct name *n = &x->names.list[i];
	const char *text = names_at(&x->names, i);
	struct address a;
	struct type *t = type_of(x, i, &a);
	struct store *store = x->box->disk.store;
	uint64_t due = 0;
	uint16_t flags;

	n->flags = 0;
	if (!t || !t->durable)
		return;
	if (!scan_look(x->port, &a, t, n->hash, &flags, &due))
		flags = store_disk_says(store, text, n->len, n->hash, &due) == STORE_GONE ? 0 : NAME_THERE;
	if (flags & NAME_THERE)
		n->flags = flags | NAME_CHOSEN;
	raise_due(x, due);
}

/* Into names, behind the x->looked that are there. *end: these were the last. */
static int rows(struct scan *x, const char *after, size_t after_len, bool *end)
{
	struct db *db = x->box->disk.db;
	size_t used = x->names.used;
	uint32_t want = x->limit - x->chosen;
	char prefix[TYPE_NAME_MAX + 1] = "";
	size_t prefix_len = 0;
	uint64_t commits;
	int rc, tries = 0;

	if (x->only) {
		memcpy(prefix, x->only->name, x->only->name_len);
		prefix[x->only->name_len] = ':';
		prefix_len = x->only->name_len + 1;
	}
	do {
		commits = db_commits(db);
		x->names.count = x->looked;
		x->names.used = used;
		rc = db_rows(db, prefix, prefix_len, after, after_len, want, &x->names, end);
		if (rc != NOH_OK)
			return rc;
		uint32_t count = stop_at(x, *end);

		*end = *end && count == x->names.count;
		x->names.count = count;
		for (uint32_t i = x->looked; i < count; i++)
			look_again(x, i);
	} while (db_commits(db) != commits && ++tries < 100);
	return NOH_OK;
}

static int scan_storage(struct scan *x, uint64_t *cursor)
{
	struct marks *marks = &x->box->marks;
	char after[ADDRESS_MAX + 1];
	size_t after_len = 0;
	bool end;
	int rc = *cursor == IN_STORAGE ? NOH_END : marks_get(marks, *cursor << 1, after, &after_len);

	if (rc != NOH_OK && rc != NOH_END)
		return no_memory();
	rc = rows(x, rc == NOH_OK ? after : NULL, after_len, &end);
	if (rc != NOH_OK)
		return rc;
	if (!end) {
		uint32_t last = x->names.count - 1;

		if (marks_set(marks, names_at(&x->names, last), x->names.list[last].len,
			      x->names.list[last].hash) != NOH_OK)
			return no_memory();
		*cursor = IN_STORAGE | x->names.list[last].hash >> 1;
	} else {
		*cursor = 0;
	}
	return NOH_OK;
}

/* ── both ── */

static int scan(struct scan *x, uint64_t *cursor)
{
	bool stored = x->box->disk.db && (!x->only || x->only->durable);
	int rc = NOH_OK;

	if (*cursor < WINDOWS_END) {
		rc = scan_memory(x, cursor);
		if (rc != NOH_OK || *cursor < WINDOWS_END)
			return rc;
		*cursor = IN_STORAGE;
		if (stored && (x->chosen >= x->limit || x->looked >= LOOKS * x->limit))
			return NOH_OK;
	}
	if (stored)
		return scan_storage(x, cursor);
	*cursor = 0;
	return NOH_OK;
}

int api_scan(noh_box *box, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user,
	     uint64_t *due)
{
	struct sched *s = &box->sched;
	struct scan x = { .box = box, .each = each, .user = user, .limit = limit ? limit : LIMIT };
	uint64_t at = *cursor;
	int rc;

	*due = 0;
	if (load_acquire(&box->phase) != BOX_RUNNING)
		return api_running(box);
	x.only = type ? sched_find_type(s, type, strlen(type)) : NULL;
	if (type && !x.only)
		return error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type);
	if (at >= WINDOWS_END && at < IN_STORAGE)
		return error_set(NOH_EINVAL, "%llu is no cursor that noh_scan gave", (unsigned long long)at);
	if (x.limit > LIMIT_MOST)
		x.limit = LIMIT_MOST;
	x.port = api_look_port(box);
	if (!x.port)
		return NOH_ESTOPPED;
	rc = scan(&x, &at);
	sched_port_done(x.port);
	if (rc == NOH_OK) {
		*cursor = at;
		*due = x.due;
		give(&x);
	}
	names_free(&x.names);
	return rc;
}

int noh_scan(noh_box *box, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user)
{
	uint64_t due;

	return api_scan(box, type, cursor, limit, each, user, &due);
}
