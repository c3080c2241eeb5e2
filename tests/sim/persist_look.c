/* tests/sim/persist_look.c - what image and journal add up to after a crash, and whether that may be. */
#include "tests/sim/persist_world_in.h"

#include "core/mem.h"
#include "core/must.h"
#include "noh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ── recovery ── */

static int keep(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
		const uint8_t *parts, const uint8_t *parts_end)
{
	struct world *w = arg;
	struct tail *t = &w->tail;

	(void)frame;
	(void)epoch;
	(void)parts;
	(void)parts_end;
	if (t->len + head->size > t->room) {
		t->room = 2 * (t->len + head->size);
		t->bytes = realloc(t->bytes, t->room);
		must(t->bytes);
	}
	memcpy(t->bytes + t->len, head, head->size);
	t->len += head->size;
	w->tail_records++;
	return NOH_OK;
}

/* What the image and the journal after it add up to, for one actor. */
struct view { struct state state; uint64_t seq; };

static bool same_bytes(const struct part *p, const struct state *s)
{
	static uint8_t want[64 << 10];

	must(s->len <= sizeof want);
	world_fill_state(want, s);
	return p->len == sizeof(struct part_state) + s->len &&
	       memcmp((const uint8_t *)p->data + sizeof(struct part_state), want, s->len) == 0;
}

static void see_state(struct world *w, struct view *v, const struct part *p, uint32_t actor)
{
	const uint8_t *data = (const uint8_t *)p->data + sizeof(struct part_state);

	if (p->len < sizeof(struct part_state) + 8) {
		world_violated(w, "state: %s has %u bytes", world_address_of(actor), p->len);
		return;
	}
	memcpy(&v->state.value, data, 4);
	memcpy(&v->state.len, data + 4, 4);
	if (v->state.len > 60100 || !same_bytes(p, &v->state))
		world_violated(w, "state: the bytes of %s are not what anybody wrote", world_address_of(actor));
}

static struct msg *message_of(struct world *w, const struct message_id *id)
{
	for (uint32_t m = 0; m < w->msg_count; m++) {
		struct message_id own = world_id_of(w, &w->msgs[m]);

		if (w->recs[w->msgs[m].by].dead)         /* its number may be taken again */
			continue;
		if (memcmp(&own, id, sizeof own) == 0)
			return &w->msgs[m];
	}
	return NULL;
}

static void see_message(struct world *w, const struct part *p, bool pending)
{
	struct message_id id;
	struct msg *m;

	memcpy(&id, p->data, sizeof id);
	m = message_of(w, &id);
	if (!m)
		world_violated(w, "message: one that nobody sent");
	else if (pending && m->pending)
		world_violated(w, "message: one is there twice");
	else if (!pending && !m->pending)
		world_violated(w, "message: one is consumed that was not there");
	if (m)
		m->pending = pending;
}

/* Records of one group may stand in any order: sequences tell (DESIGN: applied by sequence), and what was
 * sent is looked at before what was consumed. */
enum { SEE_ACTOR = 1, SEE_SENT = 2, SEE_CONSUMED = 4 };

static void see_parts(struct world *w, struct view *v, uint32_t actor, const uint8_t *at,
		      const uint8_t *end, unsigned what)
{
	struct part p;

	while (part_next(&at, end, &p)) {
		uint32_t k = p.key_len == 2 ? (uint32_t)(p.key[1] - '0') : 0;

		if (p.kind == PART_STATE && what & SEE_ACTOR)
			see_state(w, v, &p, actor);
		else if (p.kind == PART_PUT && what & SEE_ACTOR && k < KEYS)
			memcpy(&v->state.key[k], p.data, 4);
		else if (p.kind == PART_DELETE && what & SEE_ACTOR && k < KEYS)
			v->state.key[k] = 0;
		else if (p.kind == PART_EMITTED && what & SEE_SENT)
			see_message(w, &p, true);
		else if (p.kind == PART_CONSUMED && what & SEE_CONSUMED)
			see_message(w, &p, false);
	}
	if (at != end)
		world_violated(w, "phantom: parts of %s that are not whole", world_address_of(actor));
}

static void see_image(struct world *w, struct view *v, uint32_t actor)
{
	struct db_loaded loaded = { 0 };
	const char *address = world_address_of(actor);
	int rc = db_load(w->db, address, strlen(address), UINT64_MAX, &loaded);

	if (rc == NOH_END || world_went_wrong(w, rc, "db_load"))
		return;
	v->seq = loaded.seq;
	see_parts(w, v, actor, loaded.image, (const uint8_t *)loaded.image + loaded.len,
		  SEE_ACTOR | SEE_SENT);
	mem_free(loaded.image, loaded.len);
}

static uint32_t actor_of(const struct record_head *head)
{
	for (uint32_t a = 0; a < ACTORS; a++)
		if (strlen(world_address_of(a)) == head->address_len &&
		    memcmp(record_address(head), world_address_of(a), head->address_len) == 0)
			return a;
	return NONE;
}

/* The record's own number is the answer to its idempotency key. */
static uint32_t number_of(const uint8_t *at, const uint8_t *end)
{
	uint32_t number = NONE;
	struct part p;

	while (part_next(&at, end, &p))
		if (p.kind == PART_IDEM && p.len == sizeof(struct part_idem) + 4)
			memcpy(&number, (const uint8_t *)p.data + sizeof(struct part_idem), 4);
	return number;
}

static bool see_number(struct world *w, const struct record_head *head, uint32_t number)
{
	if (number >= w->rec_count || actor_of(head) == NONE ||
	    XXH3_64bits(head, head->size) != w->recs[number].hash) {
		world_violated(w, "phantom: a record that nobody pushed");
		return false;
	}
	if (w->recs[number].there)
		world_violated(w, "phantom: record %u is there twice", number);
	w->recs[number].there = true;
	return true;
}

static int by_seq(const void *a, const void *b)
{
	const struct record_head *const *x = a, *const *y = b;

	return ((*x)->seq > (*y)->seq) - ((*x)->seq < (*y)->seq);
}

static void see_records(struct world *w, struct view *views, const struct record_head **heads,
			size_t count, unsigned what)
{
	for (size_t i = 0; i < count; i++) {
		const struct record_head *head = heads[i];
		const uint8_t *parts = (const uint8_t *)head + record_parts_at(head->address_len);
		uint32_t actor = actor_of(head);
		struct view *v = &views[actor];

		if (what & SEE_ACTOR) {
			if (head->seq <= v->seq)
				world_violated(w, "state: %s was at %llx before its record %llx",
					 world_address_of(actor), (unsigned long long)v->seq,
					 (unsigned long long)head->seq);
			v->seq = head->seq;
			if (head->flags & RECORD_GONE)
				v->state = (struct state){ 0 };
		}
		see_parts(w, v, actor, parts, (const uint8_t *)head + head->size, what);
	}
}

static void see_tail(struct world *w, struct view *views)
{
	const uint8_t *at = w->tail.bytes, *end = at + w->tail.len, *parts, *parts_end;
	const struct record_head *head, **heads = calloc(w->tail_records + 1, sizeof *heads);
	size_t count = 0;

	must(heads);
	while (w->tail.len && record_next(&at, end, &head, &parts, &parts_end))
		if (see_number(w, head, number_of(parts, parts_end)))
			heads[count++] = head;
	qsort(heads, count, sizeof *heads, by_seq);
	see_records(w, views, heads, count, SEE_ACTOR | SEE_SENT);
	see_records(w, views, heads, count, SEE_CONSUMED);
	free(heads);
}

static void see_keys(struct world *w)
{
	for (uint32_t i = 0; i < w->rec_count; i++) {
		const char *address = world_address_of(w->recs[i].actor);
		void *part = NULL;
		size_t part_len = 0;
		char key[16];
		int len = snprintf(key, sizeof key, "k%u", i);
		int rc = db_idem(w->db, address, strlen(address), key, (size_t)len, &part, &part_len);

		w->recs[i].there = rc == NOH_OK;
		if (rc == NOH_OK)
			mem_free(part, part_len);
		else if (world_went_wrong(w, rc, "db_idem"))
			return;
	}
}

/* ── what must be there ── */

static void check_records(struct world *w)
{
	for (uint32_t i = 0; i < w->rec_count; i++) {
		const struct rec *r = &w->recs[i];

		if (r->acknowledged && !r->there)
			world_violated(w, "lost: record %u of %s, due %llx", i, world_address_of(r->actor),
				 (unsigned long long)r->due);
		if (r->there && (r->dead || !r->pushed))
			world_violated(w, "phantom: record %u of %s came back", i, world_address_of(r->actor));
		for (int n = 0; r->there && n < DEPS; n++)
			if (r->deps[n] != NONE && !w->recs[r->deps[n]].there)
				world_violated(w, "cause: record %u is there, %u is not", i, r->deps[n]);
	}
}

static void check_states(struct world *w, const struct view *views)
{
	static const struct state nothing;

	for (uint32_t a = 0; a < ACTORS; a++) {
		const struct state *want = &nothing;

		for (uint32_t i = 0; i < w->rec_count; i++)
			if (w->recs[i].actor == a && w->recs[i].there)
				want = &w->recs[i].after;
		if (memcmp(want, &views[a].state, sizeof *want) != 0)
			world_violated(w, "state: %s is %u (%u bytes), should be %u (%u)", world_address_of(a),
				 views[a].state.value, views[a].state.len, want->value, want->len);
	}
}

static void check_messages(struct world *w)
{
	for (uint32_t m = 0; m < w->msg_count; m++) {
		const struct msg *g = &w->msgs[m];
		bool want = w->recs[g->by].there && (g->eaten == NONE || !w->recs[g->eaten].there);

		if (g->pending != want)
			world_violated(w, "message: %u from record %u is %s", m, g->by,
				 want ? "gone" : "there, but was consumed or never sent");
	}
}

static uint64_t hash_view(const struct world *w, const struct view *views)
{
	uint64_t h = 0;

	for (uint32_t a = 0; a < ACTORS; a++)
		h = XXH3_64bits_withSeed(&views[a].state, sizeof views[a].state, h);
	for (uint32_t i = 0; i < w->rec_count; i++)
		h = h * 31 + w->recs[i].there;
	for (uint32_t m = 0; m < w->msg_count; m++)
		h = h * 31 + w->msgs[m].pending;
	return h;
}

static bool read_journal(struct world *w)
{
	uint64_t frame, epoch;

	w->tail.len = 0;
	w->tail_records = 0;
	db_stamp(w->db, &frame, &epoch);
	return !world_went_wrong(w, journal_recover(w->disk, DIR_ID, frame, keep, w, &w->end), "journal_recover");
}

static void look(struct world *w, struct view *views)
{
	memset(views, 0, ACTORS * sizeof *views);
	for (uint32_t m = 0; m < w->msg_count; m++)
		w->msgs[m].pending = false;
	for (uint32_t a = 0; a < ACTORS; a++)
		see_image(w, &views[a], a);
	see_keys(w);
	see_tail(w, views);
}

bool world_open_and_look(struct world *w, uint64_t *hash)
{
	struct db_options o = { .dir = w->dir, .dir_id = DIR_ID, .map_bytes = 1 << 20 };
	struct view views[ACTORS];
	uint64_t before;

	if (world_went_wrong(w, db_open(&w->db, &o), "db_open"))
		return false;
	before = disk_sim_hash(w->sim);
	if (!read_journal(w))
		return false;
	if (disk_sim_hash(w->sim) != before)
		world_violated(w, "again: recovery wrote to the disk");
	look(w, views);
	*hash = hash_view(w, views);
	if (world_draw(w, 4) == 0) {
		struct journal_end end = w->end;

		if (read_journal(w) && memcmp(&end, &w->end, sizeof end) != 0)
			world_violated(w, "again: the journal ended somewhere else");
		look(w, views);
		if (hash_view(w, views) != *hash)
			world_violated(w, "again: a second recovery gave something else");
	}
	w->seen->recoveries++;
	w->seen->torn_tails += w->end.cut_bytes > 0;
	w->seen->replayed += w->tail_records;
	check_records(w);
	check_states(w, views);
	check_messages(w);
	return true;
}
