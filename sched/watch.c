#include "sched/watch.h"

#include "sched/birth.h"

#include <string.h>

struct watch_op { uint32_t kind, len; bool add; };       /* then the address */

/* ── in a turn ── */

static int note(noh_turn *t, const char *address, uint32_t kind, bool add)
{
	struct letters *l = &t->watches;
	struct watch_op op = { kind, (uint32_t)strlen(address), add };
	uint32_t need = (uint32_t)sizeof op + op.len;

	if (t->so_far.watches + need > l->room) {
		uint32_t room = (t->so_far.watches + need) * 2;
		char *bytes = mem_alloc(room);

		if (!bytes)
			return error_set(NOH_ENOMEM, "%s: no memory to watch %s", noh_address(t), address);
		if (t->so_far.watches)
			memcpy(bytes, l->bytes, t->so_far.watches);
		mem_free(l->bytes, l->room);
		l->bytes = bytes;
		l->room = room;
	}
	memcpy(l->bytes + t->so_far.watches, &op, sizeof op);
	memcpy(l->bytes + t->so_far.watches + sizeof op, address, op.len);
	t->so_far.watches += need;
	t->so_far.flags |= TURN_WATCHES;
	return NOH_OK;
}

static int check(noh_turn *t, const char *address, struct named *who)
{
	int rc;

	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (t->so_far.flags & TURN_STEP)
		return error_set(NOH_EINVAL, "%s: noh_watch inside a step over several actors", noh_address(t));
	rc = birth_name(&t->worker->mine.port, address, address_len(address), who);
	if (rc == NOH_OK && who->type == t->type && who->hash == load_relaxed(&load_relaxed(&t->cell)->body->hash))
		return error_set(NOH_EINVAL, "%s would watch itself", noh_address(t));
	return rc;
}

static bool is_full(noh_turn *t, const char *address, const struct named *who)
{
	struct vitals *v = vitals_hold(t->sched, address, strlen(address), who->hash, who->type->index, false);
	bool full = v && v->watcher_count >= WATCHERS_MAX;

	if (v)
		vitals_unlock(t->sched, v);
	return full;
}

int noh_watch(noh_turn *t, const char *address, uint32_t kind)
{
	struct named who;
	int rc = check(t, address, &who);

	if (rc != NOH_OK)
		return rc;
	if (t->type->pub.kinds && kind >= t->type->pub.kind_count)
		return error_set(NOH_EKIND, "type %s has no message kind %u", t->type->name, kind);
	if (is_full(t, address, &who))
		return NOH_FULL;
	return note(t, address, kind, true);
}

int noh_unwatch(noh_turn *t, const char *address)
{
	struct named who;
	int rc = check(t, address, &who);

	return rc == NOH_OK ? note(t, address, 0, false) : rc;
}

/* ── at its end ── */

static void remove_watcher(struct vitals *v, const char *address, size_t len)
{
	for (struct watcher **at = &v->watchers; *at; at = &(*at)->next) {
		struct watcher *o = *at;

		if (o->len != len || memcmp(o->address, address, len) != 0)
			continue;
		*at = o->next;
		v->watcher_count--;
		mem_free(o, sizeof *o + o->len + 1);
		return;
	}
}

static noh_gone gone_of(const struct vitals *v, int status, bool stopped)
{
	noh_gone g = { .status = status, .health = v->of.health, .stopped = stopped, .restarts = v->of.restarts };

	memcpy(g.address, v->address, v->address_len);
	if (v->reason)
		memcpy(g.reason, v->reason, v->of.reason_len < NOH_REASON_MAX ? v->of.reason_len : NOH_REASON_MAX);
	return g;
}

static void tell_one(struct port *p, const char *address, size_t len, uint32_t kind, const noh_gone *g)
{
	struct msg m = { .kind = kind };
	struct cell *c;
	uint32_t gen;

	if (!msg_set_body(&m, g, sizeof *g))
		return;
	if (sched_resolve(p, address, len, &c, &gen) != NOH_OK || sched_deliver(p, c, gen, &m) != NOH_OK) {
		count_one(&p->dead_letters, 1);
		msg_free_body(&m);
	}
}

/* One that is down or worse already is told of at once. */
static void apply(struct worker *w, const struct watch_op *op, const char *address)
{
	struct noh_turn *t = &w->mine.turn;
	size_t own_len = strlen(noh_address(t));
	struct watcher *me = op->add ? mem_zalloc(sizeof *me + own_len + 1) : NULL;
	struct vitals *v;
	struct named who;
	bool unwell;
	noh_gone g;

	if ((op->add && !me) || birth_name(&w->mine.port, address, op->len, &who) != NOH_OK)
		goto out;
	v = vitals_hold(t->sched, address, op->len, who.hash, who.type->index, op->add);
	if (!v)
		goto out;
	remove_watcher(v, noh_address(t), own_len);
	if (me && v->watcher_count < WATCHERS_MAX) {
		*me = (struct watcher){ .next = v->watchers, .kind = op->kind, .len = (uint32_t)own_len };
		memcpy(me->address, noh_address(t), own_len + 1);
		v->watchers = me;
		v->watcher_count++;
		me = NULL;
	}
	unwell = op->add && v->of.health != NOH_HEALTHY;
	g = gone_of(v, NOH_EFAILED, v->of.health >= NOH_DEGRADED);
	vitals_unlock(t->sched, v);
	if (unwell)
		tell_one(&w->mine.port, noh_address(t), own_len, op->kind, &g);
out:
	if (me)
		mem_free(me, sizeof *me + own_len + 1);
}

void watch_commit(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct watch_op op;

	for (uint32_t at = 0; at < t->so_far.watches; at += (uint32_t)sizeof op + op.len) {
		char address[ADDRESS_MAX + 1];

		memcpy(&op, t->watches.bytes + at, sizeof op);
		memcpy(address, t->watches.bytes + at + sizeof op, op.len);
		address[op.len] = 0;
		apply(w, &op, address);
	}
}

/* Is he in memory? Who went to storage has to watch anew. */
static bool is_there(struct port *p, const char *address, size_t len)
{
	struct named who;
	struct cell *c = NULL;
	uint32_t gen;

	if (birth_name(p, address, len, &who) == NOH_OK) {
		epoch_enter(&p->epoch);
		c = sched_find(p, &who.a, who.type, who.hash, &gen);
		epoch_leave(&p->epoch);
	}
	return c && cell_life(c) != NOH_NOT_ACTIVE;
}

struct watched { const char *address; size_t len; uint64_t hash; };

static struct vitals *hold(struct sched *s, const struct watched *who)
{
	return vitals_hold(s, who->address, who->len, who->hash, 0, false);
}

/* The list is copied: a stripe is not held while mailboxes are written to. Afterwards the entry may be another one. */
static void tell_all(struct worker *w, const struct watched *who, int status, bool stopped)
{
	struct sched *s = w->fixed.sched;
	struct port *p = &w->mine.port;
	struct vitals *v = hold(s, who);
	struct watcher *copy = NULL;
	noh_gone g;

	if (!v)
		return;
	if (!v->watchers) {
		vitals_unlock(s, v);
		return;
	}
	g = gone_of(v, status, stopped);
	for (struct watcher *o = v->watchers; o; o = o->next) {
		struct watcher *k = mem_alloc(sizeof *k + o->len + 1);

		if (!k)
			break;
		memcpy(k, o, sizeof *o + o->len + 1);
		k->next = copy;
		copy = k;
	}
	vitals_unlock(s, v);
	while (copy) {
		struct watcher *o = copy;

		copy = o->next;
		if (is_there(p, o->address, o->len)) {
			tell_one(p, o->address, o->len, o->kind, &g);
		} else if ((v = hold(s, who))) {
			remove_watcher(v, o->address, o->len);
			vitals_unlock(s, v);
		}
		mem_free(o, sizeof *o + o->len + 1);
	}
}

void watch_tell(struct worker *w, const struct vitals *v, int status, bool stopped)
{
	bool watched = false;

	if (v) {                                 /* nobody watches, as a rule: then it is not looked up once more */
		vitals_lock(w->fixed.sched, v);
		watched = v->watchers != NULL;
		vitals_unlock(w->fixed.sched, v);
	}
	if (watched)
		tell_all(w, &(struct watched){ v->address, v->address_len, v->hash }, status, stopped);
}

void watch_tell_left(struct worker *w, struct cell *c)
{
	char address[ADDRESS_MAX + 1];
	size_t len = cell_address(w->fixed.sched, c, address);

	tell_all(w, &(struct watched){ address, len, load_relaxed(&load_relaxed(&c->body)->hash) }, NOH_OK, true);
}
