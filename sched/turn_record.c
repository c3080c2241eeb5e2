/* sched/turn_record.c - what stands in the record of a turn.
 *
 * Written twice: once to count its bytes, once into the journal's ring. A message to an actor of a durable
 * type is part of it and carries its name {sender, sequence, place}: whoever handles it says so in his own
 * record, and after a crash exactly those are delivered again that nobody has said so about.
 */
#include "sched/turn_record.h"

#include "core/plant.h"
#include "sched/notice.h"
#include "sched/vitals.h"

#include <string.h>

static void *put(struct sink *k, enum part_kind kind, const void *key, size_t key_len, size_t len)
{
	k->size += part_size(key_len, len);
	return k->at ? part_put(&k->at, kind, key, key_len, len) : NULL;
}

/* Most are a few words. */
static inline bool same_state(const uint8_t *a, const uint8_t *b, uint32_t size)
{
	uint64_t x, y;

	if (size > 64 || size % 8)
		return memcmp(a, b, size) == 0;
	for (uint32_t i = 0; i < size; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			return false;
	}
	return true;
}

static bool state_changed(const struct noh_turn *t, const struct cell *c)
{
	const void *own = body_state(t->type, c->body);

	if (*body_seq(c->body) & SEQ_BARE)
		return true;
	return t->so_far.state && !same_state(own, t->scratch, t->type->pub.state_size);
}

void turn_record_state(struct sink *k, const struct noh_turn *t, struct cell *c)
{
	uint32_t size = t->type->pub.state_size;
	uint8_t *p = put(k, PART_STATE, NULL, 0, sizeof(struct part_state) + size);

	if (!p)
		return;
	*(struct part_state *)(void *)p = (struct part_state){ .version = t->type->pub.version,
							       .schema = t->type->pub.schema };
	if (size)
		memcpy(p + sizeof(struct part_state),
		       t->so_far.state ? t->so_far.state : body_state(t->type, c->body), size);
}

bool turn_record_is_simple(const struct noh_turn *t)
{
	const struct effect *answer = t->fx->list;

	return t->msg_count == 1 && !(t->msgs[0].flags & (MSG_WRAPPED | NOH_MSG_TIMER)) && t->op_count == 0 &&
	       !(t->so_far.flags & ~(uint32_t)TURN_ADDRESS) &&
	       (t->fx->count == 0 ||
		(t->fx->count == 1 && answer->cell == 0 &&
		 ((answer->msg.reply & TOKEN_OF_NET) || !pending_is_ask(t->sched, answer->msg.reply))));
}

size_t turn_record_state_size(const struct noh_turn *t, const struct cell *c)
{
	if (!t->so_far.state || !state_changed(t, c))
		return 0;
	return part_size(0, sizeof(struct part_state) + t->type->pub.state_size);
}

static void put_timer(struct part_timer **at, uint32_t *count, uint64_t due, uint64_t period,
		      uint32_t kind)
{
	if (*at)
		*(*at)++ = (struct part_timer){ due, period, kind, 0 };
	++*count;
}

static bool op_overrides(const struct noh_turn *t, uint32_t from, uint32_t kind)
{
	for (uint32_t i = from; i < t->op_count; i++)
		if (t->ops[i].kind == kind)
			return true;
	return false;
}

/* The list as it will be after the turn; and what has fired but was not handled yet, due at once. */
static uint32_t list_timers(const struct noh_turn *t, const struct ext *x, struct part_timer *at)
{
	uint64_t offset = t->sched->wall_offset_ms;
	uint32_t n = 0;

	for (uint32_t i = 0; x && i < x->schedule_count; i++)
		if (!op_overrides(t, 0, x->schedules[i].kind))
			put_timer(&at, &n, x->schedules[i].due_ms + offset, x->schedules[i].period_ms,
				  x->schedules[i].kind);
	for (uint32_t i = 0; i < t->op_count; i++)
		if (t->ops[i].add && !op_overrides(t, i + 1, t->ops[i].kind))
			put_timer(&at, &n, t->ops[i].due_ms + offset, t->ops[i].period_ms, t->ops[i].kind);
	for (struct redo *r = x ? x->redo : NULL; r; r = r->next)
		if (r->flags & NOH_MSG_TIMER)
			put_timer(&at, &n, sched_now_ms(t->worker) + offset, 0, r->msg.kind);
	return n;
}

/* A schedule that fired is used up, or has a new time, from the record of its turn on. */
bool turn_record_fired(const struct noh_turn *t)
{
	return t->msg_count == 1 && (t->msgs[0].flags & NOH_MSG_TIMER);
}

void turn_record_timers(struct sink *k, const struct noh_turn *t, const struct ext *x)
{
	uint32_t n = list_timers(t, x, NULL);
	struct part_timer *at = put(k, PART_TIMERS, NULL, 0, n * sizeof *at);

	if (at)
		(void)list_timers(t, x, at);
}

/* Has the turn changed the same entry once more? */
static bool changed_again(const struct kv_change *list, uint32_t i, uint32_t count)
{
	const struct kv_node *key = list[i].before;

	for (uint32_t j = i + 1; j < count; j++) {
		const struct kv_node *after = list[j].after;

		if (list[i].after ? list[j].before == list[i].after
				  : !list[j].before && after->klen == key->klen &&
				    memcmp(kv_key(after), kv_key(key), key->klen) == 0)
			return true;
	}
	return false;
}

#define FEW_CHANGES 32           /* are compared with each other; of more each is looked up */

/* A bit for each. */
static uint32_t outdated(const struct kv_change *list, uint32_t count)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i + 1 < count; i++)
		bits |= changed_again(list, i, count) ? UINT32_C(1) << i : 0;
	return bits;
}

/* Every entry that changed, as it is at the end of the turn: with few changes, once. It is counted before it is written. */
static void put_entries(struct sink *k, struct noh_turn *t, const struct ext *x)
{
	struct kv_log *log = &t->kv_log;
	const struct kv_change *list = log->more ? log->more : log->few;
	bool few = log->count <= FEW_CHANGES;

	if (few && !k->at)
		log->outdated = outdated(list, log->count);
	for (uint32_t i = 0; i < log->count; i++) {
		const struct kv_node *any = list[i].after ? list[i].after : list[i].before;
		const struct kv_node *now = list[i].after;

		if (few && (log->outdated >> i & 1))
			continue;
		if (!few)
			now = kv_get(&x->kv, kv_key(any), any->klen);
		void *value = put(k, now ? PART_PUT : PART_DELETE, kv_key(any), any->klen,
				  now ? now->vlen : 0);

		if (value && now && now->vlen)
			memcpy(value, kv_value(now), now->vlen);
	}
}

void turn_record_consumed(struct sink *k, const struct envelope *env)
{
	struct message_id *id;

	if (!env || !env->seq || PLANT(PLANT_REDELIVER))
		return;
	id = put(k, PART_CONSUMED, NULL, 0, sizeof *id);
	if (id)
		*id = (struct message_id){ env->sender, env->seq, env->index, 0 };
}

/* The answer this turn gave to its one message; NULL: none. */
static const struct effect *answer_of(const struct noh_turn *t, uint64_t token)
{
	for (uint32_t i = 0; token && i < t->fx->count; i++)
		if (t->fx->list[i].cell == 0 && t->fx->list[i].msg.reply == token)
			return &t->fx->list[i];
	return NULL;
}

static void put_step_key(struct sink *k, const struct durable_key *key)
{
	uint8_t *p = put(k, PART_IDEM, key->key, key->key_len, sizeof key->part + key->len);

	if (!p)
		return;
	memcpy(p, &key->part, sizeof key->part);
	if (key->len)
		memcpy(p + sizeof key->part, key->answer, key->len);
}

static void put_idem(struct sink *k, const struct noh_turn *t)
{
	const struct envelope *env = t->msg_count == 1 ? msg_envelope(&t->msgs[0]) : NULL;
	const struct effect *a;
	struct part_idem *p;
	uint32_t len;

	if (!env || !env->key_len)
		return;
	a = answer_of(t, t->msgs[0].reply_to);
	len = a ? msg_len(&a->msg) : 0;
	p = put(k, PART_IDEM, envelope_key(env, t->msgs[0].len), env->key_len, sizeof *p + len);
	if (!p)
		return;
	*p = (struct part_idem){ .at_ms = sched_wall_ms(t->worker),
				 .body_hash = durable_print(&t->msgs[0]),
				 .status = a ? (int32_t)a->gen : NOH_OK,
				 .flags = !a && t->so_far.replied ? IDEM_DEFERRED : 0 };
	if (len)
		memcpy(p + 1, msg_body(&a->msg), len);
}

/* The actor of a durable type that an effect goes to; NULL: none such, or it is gone. (The cell of one that
 * went since the send still says who it was: this is the same epoch section.) */
static struct cell *recorded_to(const struct noh_turn *t, const struct effect *e)
{
	struct sched *s = t->sched;
	noh_actor asker;
	struct cell *c;
	uint32_t len;

	if (e->cell && e->msg.len != FX_SPAWN) {         /* sent by address it arrives even if he has gone */
		c = cell_at(s, e->cell);
		return cell_type(s, c)->durable &&
		       (load_acquire(&c->mailbox.gen) == e->gen || turn_letter(t, e, &len)) ? c : NULL;
	}
	if (e->cell)
		return NULL;
	asker = pending_asker(s, e->msg.reply);
	c = ref_number(asker) ? cell_at(s, ref_number(asker)) : NULL;
	return c && load_acquire(&c->mailbox.gen) == ref_gen(asker) && cell_type(s, c)->durable ? c : NULL;
}

bool turn_record_receivers(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	uint32_t count = t->fx->count, room = t->fx->room;

	if (count > w->mine.receiver_room) {
		struct cell **list = mem_alloc(room * sizeof *list);

		if (!list)
			return false;
		mem_free(w->mine.receivers, w->mine.receiver_room * sizeof *list);
		w->mine.receivers = list;
		w->mine.receiver_room = room;
	}
	for (uint32_t i = 0; i < count; i++)
		w->mine.receivers[i] = recorded_to(t, &t->fx->list[i]);
	return true;
}

static void put_emitted(struct sink *k, struct noh_turn *t, struct cell *self, uint64_t tag, uint64_t seq)
{
	struct sched *s = t->sched;

	for (uint32_t i = 0; i < t->fx->count; i++) {
		const struct effect *e = &t->fx->list[i];
		struct cell *to = t->worker->mine.receivers[i];
		bool   is_answer = e->cell == 0, is_ask = !is_answer && e->msg.reply;
		char   address[ADDRESS_MAX + 1];
		size_t from = is_ask ? strlen(noh_address(t)) : 0, len = to ? msg_len(&e->msg) : 0, n;
		struct part_emitted *p;

		if (!to)
			continue;
		n = cell_address(s, to, address);
		p = put(k, PART_EMITTED, address, n, sizeof *p + record_pad(from) + len);
		if (!p)
			continue;
		*p = (struct part_emitted){ .id = { body_hash(self), seq, i, 0 }, .tag = tag,
					    .kind = is_answer ? pending_answer_kind(s, e->msg.reply) : e->msg.kind,
					    .ask = is_answer || is_ask ? pending_number(s, e->msg.reply) : 0,
					    .answer_kind = is_ask ? pending_answer_kind(s, e->msg.reply) : 0,
					    .flags = is_answer ? EMITTED_ANSWER : 0,
					    .status = is_answer ? (int32_t)e->gen : 0,
					    .from_len = (uint32_t)from };
		if (from) {
			memset((char *)(p + 1) + record_pad(from) - 8, 0, 8);
			memcpy(p + 1, noh_address(t), from);
		}
		if (len)
			memcpy((char *)(p + 1) + record_pad(from), msg_body(&e->msg), len);
	}
}

void turn_record_vitals(struct sink *k, const struct vitals *v)
{
	void *at = put(k, PART_VITALS, NULL, 0, vitals_size(v));

	if (at)
		vitals_write(v, at);
}

/* As they will be when the turn is over. */
static void put_vitals(struct sink *k, const struct noh_turn *t, const struct vitals *v)
{
	struct vitals then = *v;

	then.of.desired = t->vitals.desired;
	then.of.observed = t->vitals.observed;
	then.of.spawned = t->vitals.spawned;
	then.of.children = t->vitals.children;
	if (t->vitals.has_error) {
		then.error = (char *)(uintptr_t)t->vitals.error;
		then.of.error_len = t->vitals.error_len;
	}
	turn_record_vitals(k, &then);
}

void turn_record_first(struct sink *k, struct worker *w, struct cell *c)
{
	const struct type *t = cell_type(w->fixed.sched, c);
	uint32_t size = t->pub.state_size;
	uint8_t *at;

	if (!(*body_seq(c->body) & SEQ_BARE))
		return;
	at = put(k, PART_STATE, NULL, 0, sizeof(struct part_state) + size);
	if (!at)
		return;
	*(struct part_state *)(void *)at = (struct part_state){ .version = t->pub.version, .schema = t->pub.schema };
	if (size)
		memcpy(at + sizeof(struct part_state), body_state(t, c->body), size);
}

/* The message goes to the dead letters, with everything it was. */
void turn_record_dead(struct sink *k, struct worker *w, struct cell *c, const noh_msg *m, const char *reason)
{
	struct sched *s = w->fixed.sched;
	const struct envelope *env = msg_envelope(m);
	size_t len = strlen(reason), padded = record_pad(len);
	struct message_id id = { 0 };
	struct part_dead *dead;
	char address[ADDRESS_MAX + 1];

	if (env && env->seq)
		id = (struct message_id){ env->sender, env->seq, env->index, 0 };
	dead = put(k, PART_DEAD, address, cell_address(s, c, address), sizeof *dead + padded + m->len);
	if (dead) {
		*dead = (struct part_dead){ .id = id, .at_ms = sched_wall_ms(w), .kind = m->kind,
					    .reason_len = (uint32_t)len };
		if (len) {
			memset((char *)(dead + 1) + padded - 8, 0, 8);
			memcpy(dead + 1, reason, len);
		}
		if (m->len)
			memcpy((char *)(dead + 1) + padded, m->body, m->len);
	}
	turn_record_consumed(k, env);
}

static void put_undead(struct sink *k, const struct noh_turn *t)
{
	struct part_undead *p = put(k, PART_UNDEAD, NULL, 0, sizeof *p);

	if (p)
		*p = t->undead;
}

static void put_events(struct sink *k, const struct noh_turn *t)
{
	for (const struct event_node *n = t->events; n; n = n->next) {
		void *p = put(k, PART_EVENT, NULL, 0, n->len);

		if (p)
			memcpy(p, n->event, n->len);
	}
}

void turn_record_put(struct sink *k, struct noh_turn *t, struct cell *c, uint64_t tag, uint64_t seq,
		     const struct durable_key *key)
{
	if (!(t->so_far.flags & TURN_ERASE)) {
		if (t->so_far.flags & TURN_KV)
			put_entries(k, t, c->ext);
		if (t->op_count || turn_record_fired(t))
			turn_record_timers(k, t, c->ext);
	}
	if ((t->so_far.flags & (TURN_VITALS | TURN_ERASE)) == TURN_VITALS)
		put_vitals(k, t, c->ext->vitals);
	for (uint32_t i = 0; i < t->msg_count; i++)
		turn_record_consumed(k, msg_envelope(&t->msgs[i]));
	if (t->so_far.flags & TURN_UNDEAD)
		put_undead(k, t);
	if (t->so_far.flags & TURN_EVENTS)
		put_events(k, t);
	if (key)
		put_step_key(k, key);
	else
		put_idem(k, t);
	if (t->fx->count)
		put_emitted(k, t, c, tag, seq);
	/* The first record of an actor says which version its state is, if nothing else. */
	if (!(t->so_far.flags & TURN_ERASE) && t->so_far.state && state_changed(t, c))
		turn_record_state(k, t, c);
	else if (k->size && !(t->so_far.flags & TURN_ERASE) && (*body_seq(c->body) & SEQ_BARE))
		turn_record_state(k, t, c);
}

static bool wrap(struct msg *m, uint64_t sender, uint64_t seq, uint32_t index)
{
	uint32_t len = msg_len(m), bytes = (uint32_t)sizeof(struct envelope) + len;
	struct envelope *env = mem_alloc(bytes);

	if (!env)
		return false;
	*env = (struct envelope){ .bytes = bytes, .index = index, .sender = sender, .seq = seq };
	if (len)
		memcpy(env + 1, msg_body(m), len);
	msg_free_body(m);
	m->body.big = env;
	m->len = len | MSG_WRAPPED;
	return true;
}

uint8_t turn_record_flags(const struct noh_turn *t)
{
	return (uint8_t)((t->so_far.flags & TURN_ERASE ? RECORD_GONE : 0) |
			 (t->so_far.flags & TURN_EVENTS ? RECORD_EVENTS : 0));
}

/* Drawn before anybody hears of the turn: what it causes has a higher one. */
void turn_record_order(struct noh_turn *t, uint8_t *record)
{
	if (!(t->so_far.flags & TURN_EVENTS))
		return;
	record_set_order(record, notice_order(t->sched));
	t->so_far.flags |= TURN_EVENTS_KEPT;
}

bool turn_record_wrap(struct worker *w, struct cell *c, uint64_t seq)
{
	struct noh_turn *t = &w->mine.turn;

	for (uint32_t i = 0; i < t->fx->count; i++) {
		struct cell *to = w->mine.receivers[i];
		char address[ADDRESS_MAX + 1];

		if (!to)
			continue;
		if (!wrap(&t->fx->list[i].msg, body_hash(c), seq, i))
			return false;
		/* Whoever it is for may go before he gets it; then it finds him by this. */
		if (t->fx->list[i].cell &&
		    !turn_note_address(t, i, address, cell_address(t->sched, to, address)))
			return false;
	}
	return true;
}
