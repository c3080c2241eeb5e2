/* box/api_actor.c - noh.h, section 4: actors as such: references, activating, deactivating, status, lists, types. */
#include "box/api.h"
#include "sched/durable.h"
#include "sched/image.h"

#include <stdio.h>
#include <string.h>

int noh_ref(noh_box *box, const char *address, noh_actor *ref)
{
	struct cell *c;
	uint32_t gen;
	struct port *p;
	int rc = load_acquire(&box->phase) == BOX_RUNNING ? NOH_OK : api_running(box);

	if (rc != NOH_OK)
		return rc;
	p = api_look_port(box);
	if (!p)
		return NOH_ESTOPPED;
	rc = sched_resolve(p, address, address_len(address), &c, &gen);
	if (rc == NOH_OK)
		*ref = ref_make(cell_number(&box->sched, c), gen);
	sched_port_done(p);
	return rc;
}

void noh_hint(noh_box *box, noh_actor to)
{
	__builtin_prefetch(cell_at(&box->sched, ref_number(to)), 1);
}

/* A question to the actor's system lane, and its answer. */
static int ask_system(noh_box *box, struct port *p, struct cell *c, uint32_t gen, uint32_t op,
		      int arg, uint64_t until)
{
	struct sched *s = &box->sched;
	uint64_t token = pending_call(p, NULL, 0);
	struct sysmsg *n = token ? node_take(p, op) : NULL;

	if (!n) {
		if (token)
			pending_drop(p, token);
		sched_port_done(p);
		return error_set(NOH_ENOMEM, "no memory for another call");
	}
	n->token = token;
	n->status = arg;
	n->kind = (uint32_t)arg;
	sched_sys(p, c, gen, n);
	sched_port_done(p);
	return pending_wait(s, token, until, NULL);
}

int api_ask_system(noh_box *box, const char *address, uint32_t op, uint32_t arg, uint64_t until)
{
	struct port *p = api_port(box);
	struct cell *c;
	uint32_t gen;
	int rc;

	if (!p)
		return NOH_ESTOPPED;
	rc = sched_resolve(p, address, address_len(address), &c, &gen);
	if (rc == NOH_OK)
		return ask_system(box, p, c, gen, op, (int)arg, until);
	sched_port_done(p);
	return rc;
}

int noh_activate(noh_box *box, const char *address, uint32_t timeout_ms)
{
	uint64_t until = api_until_ns(box, timeout_ms);
	int rc = api_may_block("noh_activate");

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc != NOH_OK)
		return rc;
	do {
		rc = api_ask_system(box, address, SYS_ACTIVATE, 0, until);
	} while (rc == NOH_ENOACTOR);
	return api_call_result(address, rc, 0, 0, false);
}

/* Find without making. NOH_OK with *c = NULL: nobody in memory. */
static int look_up(struct port *p, const char *address, struct cell **c, uint32_t *gen,
		   struct address *a, struct type **t)
{
	struct sched *s = p->sched;
	int rc = address_parse(a, address, address_len(address));

	if (rc != NOH_OK)
		return rc;
	*t = sched_find_type(s, a->type, a->type_len);
	if (!*t)
		return error_set(NOH_ENOTYPE, "no type \"%.*s\" is registered", a->type_len, a->type);
	*c = sched_find(p, a, *t, address_hash(a, s->seed), gen);
	return NOH_OK;
}

/* A message is on its way to an actor that has not begun yet: it is activating. */
static noh_life life_of(struct cell *c)
{
	noh_life life = cell_life(c);

	if (life == NOH_NOT_ACTIVE && mb_state(load_acquire(&c->mailbox.word)) != MB_IDLE)
		return NOH_ACTIVATING;
	return life;
}

int noh_deactivate(noh_box *box, const char *address, bool force, uint32_t timeout_ms)
{
	struct address a;
	struct type *t;
	struct port *p;
	struct cell *c = NULL;
	uint32_t gen;
	bool active;
	int rc = api_may_block("noh_deactivate");

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc != NOH_OK)
		return rc;
	p = api_port(box);
	if (!p)
		return NOH_ESTOPPED;
	epoch_enter(&p->epoch);
	rc = look_up(p, address, &c, &gen, &a, &t);
	active = rc == NOH_OK && c && life_of(c) != NOH_NOT_ACTIVE;
	epoch_leave(&p->epoch);
	if (!active) {
		sched_port_done(p);
		return rc != NOH_OK ? rc : error_set(NOH_ENOACTOR, "%s is not active", address);
	}
	rc = ask_system(box, p, c, gen, SYS_DEACTIVATE, force,
			api_until_ns(box, timeout_ms));
	return api_call_result(address, rc, 0, 0, false);
}

const char *noh_life_name(noh_life life)
{
	switch (life) {
	case NOH_NOT_ACTIVE: return "not active";
	case NOH_ACTIVATING: return "activating";
	case NOH_ACTIVE: return "active";
	case NOH_DEACTIVATING: return "deactivating";
	}
	return "unknown";
}

/* Also raises *due. */
static bool is_stored(noh_box *box, const struct address *a, struct type *t, uint64_t *due)
{
	uint64_t hash = address_hash(a, box->sched.seed);
	char text[ADDRESS_MAX + 1];
	struct stored stored;

	struct store *store = t->durable ? box->disk.store : box->store;

	if (!store_may_have(store, hash))
		return false;
	memcpy(text, t->name, t->name_len);
	text[t->name_len] = ':';
	memcpy(text + t->name_len + 1, a->id, a->id_len);
	if (store_load(store, text, (size_t)t->name_len + 1 + a->id_len, hash, &stored) !=
	    NOH_OK)
		return false;
	if (stored.due > *due)
		*due = stored.due;
	bool kept = !stored.gone && image_is_kept(stored.image, stored.len);

	mem_free(stored.image, stored.len);
	return kept;
}

int noh_get_status(noh_box *box, const char *address, noh_status *status)
{
	uint64_t due;

	return api_status(box, address, status, &due);
}

int api_status(noh_box *box, const char *address, noh_status *status, uint64_t *due)
{
	struct sched *s = &box->sched;
	struct address a;
	struct type *t;
	struct cell *c = NULL;
	struct port *p;
	uint32_t gen;
	uint8_t life = 0;
	int rc = load_acquire(&box->phase) == BOX_RUNNING ? NOH_OK : api_running(box);

	memset(status, 0, sizeof *status);
	*due = 0;
	if (rc != NOH_OK)
		return rc;
	p = api_look_port(box);
	if (!p)
		return NOH_ESTOPPED;
	epoch_enter(&p->epoch);
	rc = look_up(p, address, &c, &gen, &a, &t);
	if (rc == NOH_OK && c) {
		uint64_t now_ds = clock_now_ns(&s->clock) / 100000000u;
		uint32_t last = load_relaxed(&c->last_active);

		life = load_acquire(&c->life);
		if (sched_is_durable(s))
			*due = load_acquire(body_due(c->body));
		status->life = life_of(c);
		status->mailbox_size = mailbox_depth(&c->mailbox);
		status->resting = mb_state(load_relaxed(&c->mailbox.word)) == MB_PARKED;
		status->idle_ms = now_ds > last ? (now_ds - last) * 100 : 0;
		status->last_ms = s->wall_offset_ms + last * UINT64_C(100);
		status->activated_ms = cell_life(c) == NOH_ACTIVE ? sched_since_ms(s, c) : 0;
		status->messages_processed = sched_handled(s, c);
	}
	epoch_leave(&p->epoch);
	sched_port_done(p);
	if (rc == NOH_OK) {
		status->stored = is_stored(box, &a, t, due);
		status->exists = life & LIFE_KNOWN ? (life & LIFE_THERE) != 0 : status->stored;
	}
	return rc;
}

int noh_list(noh_box *box, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count)
{
	uint64_t due;

	return api_list(box, type, cursor, entries, count, &due);
}

int api_list(noh_box *box, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count, uint64_t *due)
{
	struct sched *s = &box->sched;
	struct type *only = type ? sched_find_type(s, type, strlen(type)) : NULL;
	uint64_t end, n = *cursor ? *cursor : 1;
	size_t   got = 0;
	struct port *p;

	*due = 0;
	if (load_acquire(&box->phase) != BOX_RUNNING)
		return api_running(box);
	if (type && !only)
		return error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type);
	p = api_look_port(box);
	if (!p)
		return NOH_ESTOPPED;
	epoch_enter(&p->epoch);
	end = load_relaxed(&s->cells.shared.fresh);
	for (; n < end && got < *count; n++) {
		struct cell *c = cell_at(s, (uint32_t)n);
		uint64_t word = load_acquire(&c->mailbox.word);

		if (mb_state(word) == MB_DEAD || cell_life(c) == NOH_NOT_ACTIVE ||
		    (only && cell_type(s, c) != only))
			continue;
		entries[got].ref = ref_make((uint32_t)n, load_relaxed(&c->mailbox.gen));
		entries[got].life = cell_life(c);
		entries[got].exists = load_relaxed(&c->life) & LIFE_THERE;
		entries[got].mailbox_size = mailbox_depth(&c->mailbox);
		entries[got].resting = mb_state(load_relaxed(&c->mailbox.word)) == MB_PARKED;
		entries[got].activated_ms = cell_life(c) == NOH_ACTIVE ? sched_since_ms(s, c) : 0;
		entries[got].messages_processed = sched_handled(s, c);
		entries[got].last_ms = s->wall_offset_ms + load_relaxed(&c->last_active) * UINT64_C(100);
		if (sched_is_durable(s) && load_acquire(body_due(c->body)) > *due)
			*due = load_acquire(body_due(c->body));
		cell_address(s, c, entries[got++].address);
	}
	epoch_leave(&p->epoch);
	sched_port_done(p);
	*cursor = n < end ? n : 0;
	*count = got;
	return NOH_OK;
}

const noh_type *noh_find_type(noh_box *box, const char *name)
{
	struct type *t = sched_find_type(&box->sched, name, strlen(name));

	return t ? &t->pub : NULL;
}

/* Those that fit. */
static void list_kinds(const struct type *t, char *text, size_t size)
{
	size_t len = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < t->pub.kind_count && len < size; i++)
		if (t->pub.kinds[i].name)
			len += (size_t)snprintf(text + len, size - len, "%s %s", len ? "," : "; it has", t->pub.kinds[i].name);
}

int noh_kind_number(noh_box *box, const char *type, const char *name)
{
	struct type *t = sched_find_type(&box->sched, type, strlen(type));
	char kinds[200];

	if (!t)
		return error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type);
	for (uint32_t i = 0; i < t->pub.kind_count; i++)
		if (t->pub.kinds[i].name && strcmp(t->pub.kinds[i].name, name) == 0)
			return (int)i;
	list_kinds(t, kinds, sizeof kinds);
	return error_set(NOH_EKIND, "type %s has no message kind \"%s\"%s", type, name, kinds);
}
