/* box/vitals.c - noh.h, section 4: how an actor is, who is not well, and letting them begin anew. */
#include "box/tree.h"
#include "core/names.h"
#include "persist/tail.h"
#include "sched/durable.h"
#include "sched/notice.h"
#include "sched/vitals.h"

#include <string.h>

/* ── one ── */

static void from_image(const struct stored *stored, noh_vitals *out)
{
	const uint8_t *at = stored->image, *end = at + stored->len;
	struct part p;

	while (part_next(&at, end, &p))
		if (p.kind == PART_VITALS)
			(void)vitals_read(&p, out);
}

/* Also raises *due. */
static void from_storage(noh_box *box, struct type *t, const char *address, uint64_t hash, noh_vitals *out, uint64_t *due)
{
	struct store *store = t->durable ? box->disk.store : box->store;
	struct stored stored;

	if (!store_may_have(store, hash) || store_load(store, address, strlen(address), hash, &stored) != NOH_OK)
		return;
	if (stored.due > *due)
		*due = stored.due;
	if (!stored.gone)
		from_image(&stored, out);
	mem_free(stored.image, stored.len);
}

int api_vitals_at(noh_box *box, struct port *p, const char *text, noh_vitals *out, uint64_t *due)
{
	struct sched *s = &box->sched;
	char address[ADDRESS_MAX + 1];
	struct address a;
	struct type *t;
	struct cell *c;
	uint64_t hash;
	uint32_t gen;
	noh_life life = NOH_NOT_ACTIVE;
	bool known;
	int rc = tree_spell(box, text, address, &t);

	memset(out, 0, sizeof *out);
	*due = 0;
	if (rc != NOH_OK)
		return rc;
	(void)address_parse(&a, address, strlen(address));
	hash = address_hash(&a, s->seed);
	known = vitals_get(s, address, strlen(address), hash, out);
	if (known && sched_is_durable(s))
		*due = s->journal.epoch(s->journal.arg);
	epoch_enter(&p->epoch);
	c = sched_find(p, &a, t, hash, &gen);
	if (c) {
		life = cell_life(c);
		if (sched_is_durable(s) && load_acquire(body_due(c->body)) > *due)
			*due = load_acquire(body_due(c->body));
	}
	epoch_leave(&p->epoch);
	if (!known && life != NOH_ACTIVE)
		from_storage(box, t, address, hash, out, due);
	out->life = life;
	if (out->health == NOH_HEALTHY && load_relaxed(&t->quarantined))
		out->health = NOH_QUARANTINED;
	return NOH_OK;
}

int api_vitals(noh_box *box, const char *address, noh_vitals *out, uint64_t *due)
{
	struct port *p = api_look_port(box);
	int rc;

	if (!p) {
		memset(out, 0, sizeof *out);
		*due = 0;
		return NOH_ESTOPPED;
	}
	rc = api_vitals_at(box, p, address, out, due);
	sched_port_done(p);
	return rc;
}

int noh_get_vitals(noh_box *box, const char *address, noh_vitals *out)
{
	uint64_t due;

	return api_vitals(box, address, out, &due);
}

/* ── those that are not well ── */

struct unwell {
	noh_box     *box;
	const char  *type;                 /* NULL: all */
	size_t       type_len;
	struct names names;
	bool         failed;
};

static void add(struct unwell *u, const char *address, size_t len)
{
	if (u->type && (len <= u->type_len || memcmp(address, u->type, u->type_len) != 0 || address[u->type_len] != ':'))
		return;
	if (names_room(&u->names, 1))
		names_put(&u->names, address, len, (struct name){ .hash = address_hash_text(address, len, u->box->sched.seed) });
	else
		u->failed = true;
}

static void add_known(void *arg, const struct vitals *v)
{
	if (v->of.health >= NOH_DEGRADED)
		add(arg, v->address, v->address_len);
}

static int add_stored(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	(void)due_ms;
	add(arg, address, len);
	return 0;
}

/* Of the table, then of the image; who stands in both stands there twice. */
static int find_unwell(struct unwell *u, uint32_t timeout_ms)
{
	struct port *p = api_look_port(u->box);
	int rc = NOH_OK;

	if (!p)
		return NOH_ESTOPPED;
	vitals_each(&u->box->sched, add_known, u);
	sched_port_done(p);
	if (u->box->disk.db) {
		rc = box_fold_now(u->box, timeout_ms);
		if (rc == NOH_OK || rc == NOH_ETIMEOUT) {
			int walked = db_unwell(u->box->disk.db, add_stored, u);

			rc = walked == NOH_OK ? rc : walked;
		}
	}
	return u->failed ? error_set(NOH_ENOMEM, "no memory for a list of actors") : rc;
}

int noh_quarantine_list(noh_box *box, const char *type, uint32_t timeout_ms, noh_quarantine_fn *each, void *user)
{
	struct unwell u = { .box = box, .type = type, .type_len = type ? strlen(type) : 0 };
	int rc = api_may_block("noh_quarantine_list");

	if (rc == NOH_OK && type && !sched_find_type(&box->sched, type, strlen(type)))
		rc = error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type);
	if (rc == NOH_OK)
		rc = find_unwell(&u, timeout_ms);
	if (rc == NOH_OK || rc == NOH_ETIMEOUT) {
		names_sort(&u.names, 0);
		for (uint32_t i = 0; i < u.names.count; i++) {
			noh_vitals vitals;

			if ((i && names_same(&u.names, i - 1, i)) ||
			    noh_get_vitals(box, names_at(&u.names, i), &vitals) != NOH_OK || vitals.health < NOH_DEGRADED)
				continue;
			if (each(user, names_at(&u.names, i), &vitals) != 0)
				break;
		}
	}
	names_free(&u.names);
	return rc;
}

/* ── types that are quarantined as a whole ── */

struct finding { noh_box *box; uint32_t left; bool cut; };

/* noh_resume may come at any time: it marks the type, then clears the word. If that was before our change of the word we see
 * the mark, and take back what is ours; else it was cleared after. A worker's own verdict is another value, and stays. */
static void set_quarantined(struct type *t)
{
	uint32_t none = 0, found = QUARANTINED_FOUND;

	if (cas_acq_rel(&t->quarantined, &none, QUARANTINED_FOUND) && load_relaxed(&t->resumed))
		(void)cas_acq_rel(&t->quarantined, &found, 0);
}

static int find_type(void *arg, uint64_t due_ms, const char *address, size_t len)
{
	struct finding *f = arg;
	noh_box *box = f->box;
	const char *colon = memchr(address, ':', len);
	struct type *t = colon ? sched_find_type(&box->sched, address, (size_t)(colon - address)) : NULL;
	struct part_vitals of;
	struct stored stored;
	struct part p;

	(void)due_ms;
	f->cut = f->left == 0;
	if (f->cut)
		return 1;
	f->left--;
	if (!t || load_relaxed(&t->quarantined) ||
	    store_load(box->disk.store, address, len, address_hash_text(address, len, box->sched.seed), &stored) != NOH_OK)
		return 0;
	const uint8_t *at = stored.image, *end = at + stored.len;

	while (!stored.gone && part_next(&at, end, &p))
		if (p.kind == PART_VITALS && part_data_fits(PART_VITALS, p.data, p.len)) {
			memcpy(&of, p.data, sizeof of);
			if (of.flags & VITALS_WHOLE_TYPE)
				set_quarantined(t);
		}
	mem_free(stored.image, stored.len);
	return 0;
}

bool box_find_quarantined_types(noh_box *box, const struct tail *tail, uint32_t most)
{
	struct finding f = { .box = box, .left = most };
	bool all = !tail || (tail_jailers(tail, find_type, &f) && !f.cut);

	return db_unwell(box->disk.db, find_type, &f) == NOH_OK && !f.cut && all;
}

/* ── a new beginning ── */

static int resume_one(noh_box *box, const char *address, uint64_t until)
{
	noh_vitals vitals;
	int rc = noh_get_vitals(box, address, &vitals);

	if (rc != NOH_OK)
		return rc;
	if (vitals.health == NOH_HEALTHY)        /* do not wake it for nothing */
		return NOH_END;
	do {
		rc = api_ask_system(box, address, SYS_RESUME, 0, until);
	} while (rc == NOH_ENOACTOR);
	if (rc == NOH_EQUARANTINED)
		return error_set(rc, "%s: its whole type is quarantined: resume that", address);
	return rc == NOH_END ? rc : api_call_result(address, rc, 0, 0, false);
}

static int resume_type(noh_box *box, struct type *t, uint32_t timeout_ms, uint64_t until)
{
	struct unwell u = { .box = box, .type = t->name, .type_len = t->name_len };
	bool any;
	int rc;

	store_relaxed(&t->resumed, 1);           /* before the word: set_quarantined */
	any = swap_acq_rel(&t->quarantined, 0) != 0;
	rc = find_unwell(&u, timeout_ms);
	if (any)
		notice_of(&box->sched, t->name, NOTICE_RESUMED,
			  &(noh_emit_options){ .from = noh_health_name(NOH_QUARANTINED), .to = noh_health_name(NOH_HEALTHY) });
	names_sort(&u.names, 0);
	for (uint32_t i = 0; (rc == NOH_OK || rc == NOH_ETIMEOUT) && i < u.names.count; i++) {
		int one = i && names_same(&u.names, i - 1, i) ? NOH_END : resume_one(box, names_at(&u.names, i), until);

		any |= one == NOH_OK;
		if (one != NOH_OK && one != NOH_END)
			rc = one;
	}
	names_free(&u.names);
	return rc != NOH_OK ? rc : any ? NOH_OK : NOH_END;
}

int noh_resume(noh_box *box, const char *what, uint32_t timeout_ms)
{
	uint64_t until = api_until_ns(box, timeout_ms);
	struct type *t;
	int rc = api_may_block("noh_resume");

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc != NOH_OK)
		return rc;
	if (!what)
		return error_set(NOH_EINVAL, "noh_resume: whom? An address, or a type");
	if (strpbrk(what, ":/"))
		return resume_one(box, what, until);
	t = sched_find_type(&box->sched, what, strlen(what));
	if (!t)
		return error_set(NOH_ENOTYPE, "no type \"%s\" is registered", what);
	return resume_type(box, t, timeout_ms, until);
}
