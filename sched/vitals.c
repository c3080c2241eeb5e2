#include "sched/vitals.h"

#include "core/spin.h"
#include "sched/kin.h"

#include <string.h>

/* ── the table ── */

static_assert(VITALS_HEALTH_MAX == NOH_AWAITING, "the format says so");

static struct vitals_stripe *stripe_of(struct sched *s, uint64_t hash)
{
	return &s->vitals->stripes[hash >> 56];
}

bool vitals_open(struct sched *s)
{
	s->vitals = mem_aligned(CACHE_LINE, sizeof *s->vitals);
	return s->vitals != NULL;
}

static size_t bytes_of(const struct vitals *v)
{
	return sizeof *v + v->address_len + 1u;
}

static void text_free(char *text, uint8_t len)
{
	mem_free(text, len + 1u);
}

static void entry_free(struct vitals *v)
{
	kin_round_free(v);
	text_free(v->parent, v->of.parent_len);
	text_free(v->reason, v->of.reason_len);
	text_free(v->error, v->of.error_len);
	while (v->watchers) {
		struct watcher *w = v->watchers;

		v->watchers = w->next;
		mem_free(w, sizeof *w + w->len + 1);
	}
	mem_free(v, bytes_of(v));
}

void vitals_close(struct sched *s)
{
	if (!s->vitals)
		return;
	for (uint32_t i = 0; i < VITALS_STRIPES; i++) {
		struct vitals_stripe *t = &s->vitals->stripes[i];

		for (uint32_t b = 0; b < t->room; b++)
			while (t->buckets[b]) {
				struct vitals *v = t->buckets[b];

				t->buckets[b] = v->next;
				entry_free(v);
			}
		mem_free(t->buckets, t->room * sizeof *t->buckets);
	}
	mem_free(s->vitals, 0);
	s->vitals = NULL;
}

static bool stripe_grow(struct vitals_stripe *t)
{
	uint32_t room = t->room ? t->room * 2 : 8;
	struct vitals **fresh = mem_zalloc(room * sizeof *fresh);

	if (!fresh)
		return t->room != 0;             /* longer chains will do */
	for (uint32_t b = 0; b < t->room; b++)
		while (t->buckets[b]) {
			struct vitals *v = t->buckets[b];

			t->buckets[b] = v->next;
			v->next = fresh[v->hash & (room - 1)];
			fresh[v->hash & (room - 1)] = v;
		}
	mem_free(t->buckets, t->room * sizeof *t->buckets);
	t->buckets = fresh;
	t->room = room;
	return true;
}

static struct vitals **place_of(struct vitals_stripe *t, uint64_t hash, const char *address, size_t len)
{
	struct vitals **at = t->room ? &t->buckets[hash & (t->room - 1)] : NULL;

	while (at && *at && ((*at)->hash != hash || (*at)->address_len != len || memcmp((*at)->address, address, len) != 0))
		at = &(*at)->next;
	return at;
}

static struct vitals *find(struct vitals_stripe *t, uint64_t hash, const char *address, size_t len)
{
	struct vitals **at = place_of(t, hash, address, len);

	return at ? *at : NULL;
}

static struct vitals *make(struct vitals_stripe *t, uint64_t hash, const char *address, size_t len, uint32_t type)
{
	struct vitals *v = mem_zalloc(sizeof *v + len + 1);

	if (!v)
		return NULL;
	if (t->count >= t->room && !stripe_grow(t)) {
		mem_free(v, sizeof *v + len + 1);
		return NULL;
	}
	v->hash = hash;
	v->type = type;
	v->address_len = (uint8_t)len;
	memcpy(v->address, address, len);
	v->next = t->buckets[hash & (t->room - 1)];
	t->buckets[hash & (t->room - 1)] = v;
	t->count++;
	return v;
}

struct vitals *vitals_hold(struct sched *s, const char *address, size_t len, uint64_t hash, uint32_t type, bool make_it)
{
	struct vitals_stripe *t = stripe_of(s, hash);
	struct vitals *v;

	spin_lock(&t->held);
	v = find(t, hash, address, len);
	if (!v && make_it) {
		v = make(t, hash, address, len, type);
		if (!load_relaxed(&s->vitals_used))
			store_relaxed(&s->vitals_used, 1);
	}
	if (!v)
		spin_unlock(&t->held);
	return v;
}

void vitals_lock(struct sched *s, const struct vitals *v)
{
	spin_lock(&stripe_of(s, v->hash)->held);
}

void vitals_unlock(struct sched *s, const struct vitals *v)
{
	spin_unlock(&stripe_of(s, v->hash)->held);
}

bool vitals_text(char **to, uint8_t *len, const char *text, size_t n)
{
	char *copy = NULL;

	if (n > UINT8_MAX)
		n = UINT8_MAX;
	if (n) {
		copy = mem_alloc(n + 1);
		if (!copy)
			return false;
		memcpy(copy, text, n);
		copy[n] = 0;
	}
	if (*to)
		text_free(*to, *len);
	*to = copy;
	*len = (uint8_t)n;
	return true;
}

/* ── an actor's own ── */

struct vitals *vitals_of(struct sched *s, struct cell *c)
{
	char address[ADDRESS_MAX + 1];
	struct ext *x = cell_ext(c);
	struct vitals *v = x ? x->vitals : NULL;

	if (v || !x)
		return v;
	v = vitals_hold(s, address, cell_address(s, c, address), body_hash(c), load_relaxed(&c->type), true);
	if (v) {
		v->cell = cell_number(s, c);
		x->vitals = v;
		vitals_unlock(s, v);
	}
	return v;
}

/* What was given up, and whoever is watched, is known already: that is newer than any image. */
bool vitals_load(struct sched *s, struct cell *c, const struct part *part)
{
	char address[ADDRESS_MAX + 1];
	size_t len = cell_address(s, c, address);
	struct vitals *v = vitals_hold(s, address, len, body_hash(c), load_relaxed(&c->type), part != NULL);
	const char *text = part ? (const char *)part->data + sizeof v->of : NULL;
	bool ok = true;

	if (!v || !cell_ext(c)) {
		if (v)
			vitals_unlock(s, v);
		return !v && !part;
	}
	v->cell = cell_number(s, c);
	if (part && !vitals_kept(v)) {
		struct part_vitals of;

		memcpy(&of, part->data, sizeof of);
		ok = vitals_text(&v->parent, &v->of.parent_len, text, of.parent_len) &&
		     vitals_text(&v->reason, &v->of.reason_len, text + of.parent_len, of.reason_len) &&
		     vitals_text(&v->error, &v->of.error_len, text + of.parent_len + of.reason_len, of.error_len);
		if (ok)
			v->of = of;
	}
	c->ext->vitals = v;
	vitals_unlock(s, v);
	return ok;
}

/* Somebody may have taken the address over already: then they are his. */
void vitals_leave(struct sched *s, struct cell *c)
{
	char address[ADDRESS_MAX + 1];
	struct vitals_stripe *t = stripe_of(s, body_hash(c));
	size_t len = cell_address(s, c, address);
	struct vitals **at, *v = NULL;

	if (!vitals_if(c))
		return;
	c->ext->vitals = NULL;
	spin_lock(&t->held);
	at = place_of(t, body_hash(c), address, len);
	if (at && *at && (*at)->cell == cell_number(s, c)) {
		v = *at;
		v->cell = 0;
		v->down = false;
		if (v->of.health < NOH_DEGRADED && !v->watchers) {
			*at = v->next;
			t->count--;
		} else {
			v = NULL;
		}
	}
	spin_unlock(&t->held);
	if (v)
		entry_free(v);
}

void vitals_forget(struct sched *s, struct cell *c)
{
	struct vitals *v = vitals_if(c);

	if (!v)
		return;
	vitals_lock(s, v);
	(void)vitals_text(&v->parent, &v->of.parent_len, NULL, 0);
	(void)vitals_text(&v->reason, &v->of.reason_len, NULL, 0);
	(void)vitals_text(&v->error, &v->of.error_len, NULL, 0);
	v->of = (struct part_vitals){ .health = NOH_HEALTHY };
	vitals_unlock(s, v);
}

/* ── as bytes ── */

bool vitals_kept(const struct vitals *v)
{
	const struct part_vitals *of = &v->of;

	return of->failed_ms || of->restarts || of->desired || of->observed || of->order || of->spawned || of->health ||
	       of->parent_len || of->error_len;
}

size_t vitals_size(const struct vitals *v)
{
	return sizeof v->of + v->of.parent_len + v->of.reason_len + v->of.error_len;
}

void vitals_write(const struct vitals *v, void *out)
{
	uint8_t *at = out;

	memcpy(at, &v->of, sizeof v->of);
	at += sizeof v->of;
	if (v->parent)
		memcpy(at, v->parent, v->of.parent_len);
	at += v->of.parent_len;
	if (v->reason)
		memcpy(at, v->reason, v->of.reason_len);
	at += v->of.reason_len;
	if (v->error)
		memcpy(at, v->error, v->of.error_len);
}

/* ── for whoever asks ── */

static void copy_text(char *to, size_t room, const char *text, size_t len)
{
	if (len >= room)
		len = room - 1;
	if (len)
		memcpy(to, text, len);
	to[len] = 0;
}

static void show(const struct part_vitals *of, const char *parent, const char *reason, const char *error, noh_vitals *out)
{
	noh_life life = out->life;

	*out = (noh_vitals){ .health = (noh_health)of->health, .life = life, .restarts = of->restarts,
			     .failed_ms = of->failed_ms, .until_ms = of->until_ms, .desired = of->desired,
			     .observed = of->observed, .order = of->order, .children = of->children };
	copy_text(out->parent, sizeof out->parent, parent, of->parent_len);
	copy_text(out->reason, sizeof out->reason, reason, of->reason_len);
	copy_text(out->error, sizeof out->error, error, of->error_len);
	if (out->health != NOH_DOWN && out->health != NOH_DEGRADED)
		out->until_ms = 0;
}

bool vitals_read(const struct part *part, noh_vitals *out)
{
	const char *text = (const char *)part->data + sizeof(struct part_vitals);
	struct part_vitals of;

	if (!part_data_fits(PART_VITALS, part->data, part->len))
		return false;
	memcpy(&of, part->data, sizeof of);
	if (of.health == NOH_DOWN)               /* nobody is down in storage */
		of.health = NOH_HEALTHY;
	show(&of, text, text + of.parent_len, text + of.parent_len + of.reason_len, out);
	return true;
}

void vitals_tell(struct sched *s, const struct vitals *v, noh_vitals *out)
{
	out->life = v->cell ? cell_life(cell_at(s, v->cell)) : NOH_NOT_ACTIVE;
	show(&v->of, v->parent, v->reason, v->error, out);
	if (v->of.health == NOH_HEALTHY && load_relaxed(&s->types[v->type]->quarantined))
		out->health = NOH_QUARANTINED;
}

bool vitals_get(struct sched *s, const char *address, size_t len, uint64_t hash, noh_vitals *out)
{
	struct vitals *v = vitals_hold(s, address, len, hash, 0, false);

	if (!v)
		return false;
	bool known = v->cell || vitals_kept(v);          /* or somebody only watches it */

	if (known)
		vitals_tell(s, v, out);
	vitals_unlock(s, v);
	return known;
}

void vitals_each(struct sched *s, vitals_fn *each, void *arg)
{
	for (uint32_t i = 0; i < VITALS_STRIPES; i++) {
		struct vitals_stripe *t = &s->vitals->stripes[i];

		spin_lock(&t->held);
		for (uint32_t b = 0; b < t->room; b++)
			for (struct vitals *v = t->buckets[b]; v; v = v->next)
				each(arg, v);
		spin_unlock(&t->held);
	}
}

const char *noh_health_name(noh_health health)
{
	switch (health) {
	case NOH_HEALTHY: return "healthy";
	case NOH_DOWN: return "down";
	case NOH_DEGRADED: return "degraded";
	case NOH_STOPPED: return "stopped";
	case NOH_QUARANTINED: return "quarantined";
	case NOH_AWAITING: return "awaiting";
	}
	return "unknown";
}
