#include "sched/image.h"

#include "core/record.h"
#include "sched/serve.h"
#include "sched/trace.h"
#include "sched/vitals.h"

#include <string.h>

size_t image_size(struct sched *s, struct cell *c)
{
	const struct ext *x = c->ext;
	size_t n = part_size(0, sizeof(struct part_state) + cell_type(s, c)->pub.state_size);
	struct kv_walk walk = { .kv = x ? &x->kv : NULL };

	if (x && x->schedule_count)
		n += part_size(0, x->schedule_count * sizeof(struct part_timer));
	if (x && x->vitals && vitals_kept(x->vitals))
		n += part_size(0, vitals_size(x->vitals));
	if (x && x->hint_ms)
		n += part_size(0, 8);
	for (const struct kv_node *e; x && (e = kv_walk_on(&walk)) != NULL; )
		n += part_size(e->klen, e->vlen);
	return n;
}

void image_encode(struct sched *s, struct cell *c, uint8_t *out)
{
	const struct type *t = cell_type(s, c);
	const struct ext *x = c->ext;
	struct kv_walk walk = { .kv = x ? &x->kv : NULL };
	struct part_state *state = part_put(&out, PART_STATE, NULL, 0,
					    sizeof *state + t->pub.state_size);

	*state = (struct part_state){ .version = t->pub.version, .schema = t->pub.schema };
	if (t->pub.state_size)
		memcpy(state + 1, body_state(t, c->body), t->pub.state_size);
	if (x && x->schedule_count) {
		struct part_timer *at = part_put(&out, PART_TIMERS, NULL, 0,
						 x->schedule_count * sizeof *at);

		for (uint32_t i = 0; i < x->schedule_count; i++)
			at[i] = (struct part_timer){ x->schedules[i].due_ms + s->wall_offset_ms,
						     x->schedules[i].period_ms, x->schedules[i].kind, 0 };
	}
	if (x && x->vitals && vitals_kept(x->vitals))
		vitals_write(x->vitals, part_put(&out, PART_VITALS, NULL, 0, vitals_size(x->vitals)));
	if (x && x->hint_ms)
		memcpy(part_put(&out, PART_HINT, NULL, 0, 8), &x->hint_ms, 8);
	for (const struct kv_node *e; x && (e = kv_walk_on(&walk)) != NULL; ) {
		void *value = part_put(&out, PART_PUT, kv_key(e), e->klen, e->vlen);

		if (e->vlen)
			memcpy(value, kv_value(e), e->vlen);
	}
}

/* ── reading ── */

static const noh_migration *step_from(const struct type *t, uint32_t version)
{
	for (uint32_t i = 0; i < t->pub.migration_count; i++)
		if (t->pub.migrations[i].from == version)
			return &t->pub.migrations[i];
	return NULL;
}

static int no_way(const struct type *t, uint32_t version)
{
	return error_set(NOH_EVERSION, "type %s: a state of version %u is stored, this program has version "
			 "%u and no migration from %u", t->name, version, t->pub.version, version);
}

#define MIGRATION_ROOM (1u << 20)

/* Step by step, each into the other of two rooms. */
static int migrate(const struct type *t, uint32_t version, const void *state, size_t len, void *out)
{
	uint8_t *rooms = mem_alloc(2 * MIGRATION_ROOM), *from = rooms, *to = rooms + MIGRATION_ROOM;
	int rc = rooms && len <= MIGRATION_ROOM ? NOH_OK : NOH_ENOMEM;

	if (rc == NOH_OK)
		memcpy(from, state, len);
	for (; rc == NOH_OK && version < t->pub.version; version++) {
		const noh_migration *step = step_from(t, version);
		size_t room = MIGRATION_ROOM;
		uint8_t *swap = from;

		if (!step)
			rc = no_way(t, version);
		else
			rc = step->migrate(t->pub.user, from, len, to, &room);
		if (rc == NOH_OK && room > MIGRATION_ROOM)
			rc = NOH_ETOOBIG;
		len = room;
		from = to;
		to = swap;
	}
	if (rc == NOH_OK && len != t->pub.state_size)
		rc = error_set(NOH_EVERSION, "type %s: the migrations end with %zu bytes of state, version %u "
			       "has %u", t->name, len, t->pub.version, t->pub.state_size);
	if (rc == NOH_OK && len)
		memcpy(out, from, len);
	mem_free(rooms, 2 * MIGRATION_ROOM);
	return rc;
}

static int decode_state(const struct type *t, const struct part *p, void *out)
{
	const uint8_t *state = (const uint8_t *)p->data + sizeof(struct part_state);
	size_t len = p->len - sizeof(struct part_state);
	struct part_state head;

	memcpy(&head, p->data, sizeof head);
	if (head.version > t->pub.version)
		return no_way(t, head.version);
	if (head.version < t->pub.version)
		return migrate(t, head.version, state, len, out);
	if (head.schema != t->pub.schema || len != t->pub.state_size)
		return error_set(NOH_EVERSION, "type %s: its stored state of version %u has %zu bytes (schema "
				 "%llx), this program's has %u (%llx): raise the version and add a migration",
				 t->name, head.version, len, (unsigned long long)head.schema,
				 t->pub.state_size, (unsigned long long)t->pub.schema);
	if (len)
		memcpy(out, state, len);
	return NOH_OK;
}

static int decode_timers(struct sched *s, const struct part *p, struct ext *x)
{
	uint32_t n = p->len / (uint32_t)sizeof(struct part_timer);
	const uint8_t *at = p->data;

	if (x->schedules)                        /* two lists: encode makes one */
		return NOH_ECORRUPT;
	x->schedules = mem_alloc(n * sizeof *x->schedules);
	if (!x->schedules)
		return NOH_ENOMEM;
	x->schedule_room = n;
	for (; x->schedule_count < n; at += sizeof(struct part_timer)) {
		struct part_timer t;

		memcpy(&t, at, sizeof t);
		/* What was due before this box's clock began is due at its beginning. */
		x->schedules[x->schedule_count++] = (struct schedule){
			.due_ms = t.due_ms > s->wall_offset_ms ? t.due_ms - s->wall_offset_ms : 0,
			.period_ms = t.period_ms, .kind = t.kind, .serial = ++x->next_serial };
	}
	return NOH_OK;
}

/* Sent before a crash, not handled: first in line, by its name. */
static int decode_message(struct worker *w, struct cell *c, const struct part *p)
{
	struct sched *s = w->fixed.sched;
	struct part_emitted e;
	const char *from = (const char *)p->data + sizeof e;
	const uint8_t *body;
	struct envelope *env;
	noh_msg m = { 0 };
	struct msg owned;
	struct cell *asker;
	uint32_t len, gen;

	memcpy(&e, p->data, sizeof e);
	body = (const uint8_t *)from + record_pad(e.from_len);
	len = p->len - (uint32_t)sizeof e - (uint32_t)record_pad(e.from_len);
	env = mem_alloc(sizeof *env + len);
	if (!env)
		return NOH_ENOMEM;
	*env = (struct envelope){ .bytes = (uint32_t)sizeof *env + len, .index = e.id.index,
				  .sender = e.id.sender, .seq = e.id.seq };
	memcpy(env + 1, body, len);
	owned = (struct msg){ .kind = e.kind, .len = len | MSG_WRAPPED, .body.big = env };
	if (e.from_len && sched_resolve_sent(&w->mine.port, from, e.from_len, &asker, &gen) == NOH_OK) {
		owned.reply = pending_ask(w, asker, e.answer_kind, clock_due(s, 30000));
		if (owned.reply)
			pending_set_number(s, owned.reply, e.ask);
	}
	to_public(&m, &owned);
	if (e.flags & EMITTED_ANSWER) {
		m.flags |= NOH_MSG_ANSWER;
		m.status = e.status;
		m.ask = e.ask;
	}
	count_one(&w->mine.port.types[load_relaxed(&c->type)].accepted, 1);
	return extra_again(c, &m, &owned) ? NOH_OK : NOH_ENOMEM;
}

static int decode_part(struct worker *w, struct cell *c, const struct part *p)
{
	struct sched *s = w->fixed.sched;
	struct kv_log log = { 0 };
	int rc;

	if (p->kind == PART_STATE)
		return decode_state(cell_type(s, c), p, w->mine.scratch);
	if (!cell_ext(c))
		return NOH_ENOMEM;
	switch (p->kind) {
	case PART_TIMERS:
		return p->len ? decode_timers(s, p, c->ext) : NOH_OK;
	case PART_HINT:
		memcpy(&c->ext->hint_ms, p->data, 8);
		return NOH_OK;
	case PART_PUT:
		rc = kv_put(&c->ext->kv, &log, p->key, p->key_len, p->data, p->len);
		kv_commit(&c->ext->kv, &log);
		return rc;
	case PART_EMITTED:
		return decode_message(w, c, p);
	case PART_VITALS:
		return vitals_load(s, c, p) ? NOH_OK : NOH_ENOMEM;
	default:
		return NOH_ECORRUPT;
	}
}

int image_decode(struct worker *w, struct cell *c, const uint8_t *in, size_t len)
{
	const uint8_t *end = in + len;
	struct part p;
	int rc = parts_valid(in, end) ? NOH_OK : NOH_ECORRUPT;

	memset(w->mine.scratch, 0, (size_t)cell_type(w->fixed.sched, c)->state_words * 8);
	while (rc == NOH_OK && part_next(&in, end, &p))
		rc = decode_part(w, c, &p);
	return rc;
}

bool image_is_kept(const uint8_t *in, size_t len)
{
	const uint8_t *end = in + len;
	struct part p;

	while (part_next(&in, end, &p))
		if (p.kind != PART_EMITTED && p.kind != PART_HINT)
			return true;
	return false;
}

bool image_blank(struct sched *s, struct cell *c)
{
	const struct type *t = cell_type(s, c);
	const uint8_t *state = body_state(t, c->body);

	if (c->ext && (c->ext->schedule_count || c->ext->kv.entries || (c->ext->vitals && vitals_kept(c->ext->vitals))))
		return false;
	for (uint32_t i = 0; i < t->pub.state_size; i++)
		if (state[i])
			return false;
	return true;
}

void ext_free(struct ext *x)
{
	if (!x)
		return;
	kv_free(&x->kv);
	mem_free(x->schedules, x->schedule_room * sizeof *x->schedules);
	trace_timers_drop(x);
	mem_free(x, sizeof *x);
}
