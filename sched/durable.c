/* sched/durable.c - a turn's record, and what its messages are called.
 *
 * The record is written to the journal's ring before the turn is committed and pushed when it is, so a
 * record that does not fit fails the turn, never the other way round. A message to an actor of a durable
 * type is part of the record and carries its name {sender, sequence, place}: whoever handles it says so
 * in his own record, and after a crash exactly those are delivered again that nobody has said so about.
 *
 * A turn with a record is due when its record is; one without, when everything its actor has seen is
 * (cell.due, raised by whoever writes to it without a record).
 */
#include "sched/durable.h"

#include "core/plant.h"
#include "core/record.h"

#include <string.h>
#include <xxhash.h>

/* A full disk lets turns run that leave no record. What was so when the turn began holds until its end, even if
 * there is space again meanwhile: nobody has asked for room in the ring. */
bool durable_room(struct worker *w)
{
	struct sched *s = w->fixed.sched;

	w->mine.read_only = s->journal.no_space(s->journal.arg);
	return !load_relaxed(&s->disk_failed) &&
	       (w->mine.read_only || s->journal.room(s->journal.arg, w->fixed.index)) &&
	       gate_room(&w->gate);
}

void durable_raise(struct cell *c, uint64_t due)
{
	atomic_u64 *at = body_due(c->body);
	uint64_t now = load_relaxed(at);

	while (now < due && !cas_relaxed(at, &now, due))
		;
}

/* ── the record ── */

struct sink { uint8_t *at; size_t size; };       /* at NULL: only count */

static void *put(struct sink *k, enum part_kind kind, const void *key, size_t key_len, size_t len)
{
	k->size += part_size(key_len, len);
	return k->at ? part_put(&k->at, kind, key, key_len, len) : NULL;
}

static bool state_changed(const struct noh_turn *t, const struct cell *c)
{
	const void *own = body_state(t->type, c->body);

	if (*body_seq(c->body) & SEQ_BARE)
		return true;
	return t->so_far.state && memcmp(own, t->scratch, t->type->pub.state_size) != 0;
}

static void put_state(struct sink *k, const struct noh_turn *t, struct cell *c)
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
static bool timer_fired(const struct noh_turn *t)
{
	return t->msg_count == 1 && (t->msgs[0].flags & NOH_MSG_TIMER);
}

static void put_timers(struct sink *k, const struct noh_turn *t, const struct ext *x)
{
	uint32_t n = list_timers(t, x, NULL);
	struct part_timer *at = put(k, PART_TIMERS, NULL, 0, n * sizeof *at);

	if (at)
		(void)list_timers(t, x, at);
}

static void put_entries(struct sink *k, const struct noh_turn *t, const struct ext *x)
{
	const struct kv_log *log = &t->kv_log;
	const struct kv_change *list = log->more ? log->more : log->few;

	for (uint32_t i = 0; i < log->count; i++) {
		const struct kv_node *any = list[i].after ? list[i].after : list[i].before;
		const struct kv_node *now = kv_get(&x->kv, kv_key(any), any->klen);
		void *value = put(k, now ? PART_PUT : PART_DELETE, kv_key(any), any->klen,
				  now ? now->vlen : 0);

		if (value && now && now->vlen)
			memcpy(value, kv_value(now), now->vlen);
	}
}

static void put_consumed(struct sink *k, const struct envelope *env)
{
	struct message_id *id;

	if (!env || !env->seq || PLANT(PLANT_REDELIVER))
		return;
	id = put(k, PART_CONSUMED, NULL, 0, sizeof *id);
	if (id)
		*id = (struct message_id){ env->sender, env->seq, env->index, 0 };
}

uint64_t durable_print(const noh_msg *m)
{
	return XXH3_64bits_withSeed(m->body, m->len, m->kind);
}

/* The answer this turn gave to its one message; NULL: none. */
static const struct effect *answer_of(const struct noh_turn *t, uint64_t token)
{
	for (uint32_t i = 0; token && i < t->fx->count; i++)
		if (t->fx->list[i].cell == 0 && t->fx->list[i].msg.reply == token)
			return &t->fx->list[i];
	return NULL;
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
	*p = (struct part_idem){ .at_ms = sched_now_ms(t->worker) + t->sched->wall_offset_ms,
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

/* Decided once: a receiver may go at any moment. False: no memory. */
static bool note_receivers(struct worker *w)
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

static void put_all(struct sink *k, struct noh_turn *t, struct cell *c, uint64_t tag, uint64_t seq)
{
	if (!(t->so_far.flags & TURN_ERASE)) {
		if (t->so_far.flags & TURN_KV)
			put_entries(k, t, c->ext);
		if (t->op_count || timer_fired(t))
			put_timers(k, t, c->ext);
	}
	for (uint32_t i = 0; i < t->msg_count; i++)
		put_consumed(k, msg_envelope(&t->msgs[i]));
	put_idem(k, t);
	if (t->fx->count)
		put_emitted(k, t, c, tag, seq);
	/* The first record of an actor says which version its state is, if nothing else. */
	if (!(t->so_far.flags & TURN_ERASE) && t->so_far.state && state_changed(t, c))
		put_state(k, t, c);
	else if (k->size && !(t->so_far.flags & TURN_ERASE) && (*body_seq(c->body) & SEQ_BARE))
		put_state(k, t, c);
}

/* Name the messages: what was put into the record goes out in an envelope. */
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

static uint8_t *begin_record(struct worker *w, struct cell *c, size_t parts, uint64_t tag, uint64_t seq,
			     uint8_t flags, struct sink *k)
{
	struct sched *s = w->fixed.sched;
	char address[ADDRESS_MAX + 1];
	size_t n = cell_address(s, c, address);
	uint8_t *record = s->journal.reserve(s->journal.arg, w->fixed.index, record_parts_at(n) + parts);

	if (record)
		k->at = record_begin(record, address, n, body_hash(c), tag, seq, flags);
	k->size = 0;
	return record;
}

uint64_t durable_next_seq(struct cell *c, uint64_t tag)
{
	uint64_t after = (*body_seq(c->body) & ~SEQ_BARE) + 1;

	return after > tag << 20 ? after : tag << 20;
}

/* A retry must find the key before it is folded. The part is copied before the push: afterwards the
 * journaller may have taken the record's bytes. */
static bool copy_key(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	const struct envelope *env = t->msg_count == 1 ? msg_envelope(&t->msgs[0]) : NULL;
	const uint8_t *at = t->record + record_parts_at(strlen(noh_address(t)));
	struct part p = { 0 };
	uint32_t size;

	if (!env || !env->key_len)
		return true;
	memcpy(&size, t->record, sizeof size);
	while (part_next(&at, t->record + size, &p) && p.kind != PART_IDEM)
		;
	t->key_part = mem_alloc(p.len);
	t->key_part_len = p.len;
	if (t->key_part)
		memcpy(t->key_part, p.data, p.len);
	return t->key_part != NULL;
}

static bool wrap_all(struct worker *w, struct cell *c, uint64_t seq)
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

int durable_prepare(struct worker *w, struct cell *c)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched *s = w->fixed.sched;
	uint64_t tag = s->journal.epoch(s->journal.arg), seq = durable_next_seq(c, tag);
	bool erase = t->so_far.flags & TURN_ERASE;
	struct sink k = { .at = NULL };
	size_t size;

	if (PLANT(PLANT_RELEASE_BEFORE_PUSH))
		s->journal.push(s->journal.arg, w->fixed.index);
	t->record = NULL;
	if (t->fx->count && !note_receivers(w))
		return error_set(NOH_ENOMEM, "%s: no memory for its messages", noh_address(t));
	put_all(&k, t, c, tag, seq);
	if (k.size == 0 && !erase)
		return NOH_OK;
	if (erase && k.size == 0 && (*body_seq(c->body) & SEQ_BARE))
		return NOH_OK;                   /* there is nothing to erase */
	if (w->mine.read_only)
		return error_set(NOH_ENOSPC, "%s: nothing can be changed, the disk is full; what is there can be "
				 "read, and this goes on by itself when there is space", noh_address(t));
	size = k.size;
	t->record = begin_record(w, c, size, tag, seq, erase ? RECORD_GONE : 0, &k);
	if (!t->record)
		return error_set(NOH_ENOMEM, "%s: no memory for a record of %zu bytes", noh_address(t), size);
	t->record_seq = seq;
	put_all(&k, t, c, tag, seq);
	must(k.size == size);
	record_finish(t->record, k.at);
	if (copy_key(w) && wrap_all(w, c, seq))
		return NOH_OK;
	durable_undo(w);
	return error_set(NOH_ENOMEM, "%s: no memory for its messages", noh_address(t));
}

void durable_undo(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	if (t->record)
		t->sched->journal.unreserve(t->sched->journal.arg, w->fixed.index);
	t->record = NULL;
	mem_free(t->key_part, t->key_part_len);
	t->key_part = NULL;
}

/* From here on the record is what happened. */
void durable_push(struct worker *w, struct cell *c, uint64_t seq)
{
	struct sched *s = w->fixed.sched;
	struct noh_turn *t = &w->mine.turn;

	uint64_t early = PLANT(PLANT_ANSWER_AT_TAG) ? s->journal.epoch(s->journal.arg) : 0;

	if (!PLANT(PLANT_RELEASE_BEFORE_PUSH))          /* then the next record takes it along */
		s->journal.push(s->journal.arg, w->fixed.index);
	t->due = early ? early : s->journal.epoch(s->journal.arg);
	uint64_t before = *body_seq(c->body);

	*body_seq(c->body) = seq;
	durable_raise(c, t->due);
	c->flags |= CELL_DIRTY;                  /* who only consumed a message must not get it again */
	if ((before ^ seq) & SEQ_BARE) {         /* after its due: who sees one sees the other */
		if (seq & SEQ_BARE)
			life_goes(&w->mine.port, c);
		else
			life_comes(&w->mine.port, c, before != SEQ_BARE);
	}
	/* A worker that is about to run out of work writes them itself (journal_here). */
	if (!s->journal.take || runq_length(&w->runq) || hands_length(&w->hands))
		s->journal.wake(s->journal.arg);
	else if (!PLANT(PLANT_LOSE_WAKE))
		w->mine.pushed = true;
}

static void remember_key(struct worker *w, struct cell *c)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched_storage *disk = t->type->storage;
	const struct envelope *env;

	if (!t->key_part)
		return;
	env = msg_envelope(&t->msgs[0]);
	if (!PLANT(PLANT_KEY_FORGOTTEN) &&
	    disk->idem_put(disk->arg, noh_address(t), strlen(noh_address(t)), body_hash(c),
			   envelope_key(env, t->msgs[0].len), env->key_len, t->key_part, t->key_part_len,
			   t->due) != NOH_OK)
		sched_logf(t->sched, NOH_ERROR, noh_address(t), "no memory for an idempotency key: a retry "
			   "within the next minute may be handled twice");
	mem_free(t->key_part, t->key_part_len);
	t->key_part = NULL;
}

/* Whoever gets a message without a record of his own to come has to wait like its sender. */
void durable_tell(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched *s = t->sched;

	if (t->due <= load_relaxed(&s->durable) || PLANT(PLANT_RELAY_FORGETS))
		return;

	for (uint32_t i = 0; i < t->fx->count; i++) {
		struct effect *e = &t->fx->list[i];
		noh_actor to = e->cell ? ref_make(e->cell, e->gen) : pending_asker(s, e->msg.reply);
		struct cell *c;

		if (!ref_number(to) || (e->msg.len != FX_SPAWN && (e->msg.len & MSG_WRAPPED)))
			continue;
		c = cell_at(s, ref_number(to));
		if (load_acquire(&c->mailbox.gen) == ref_gen(to))
			durable_raise(c, t->due);
	}
}

void durable_commit(struct worker *w, struct cell *c)
{
	struct noh_turn *t = &w->mine.turn;

	if (t->record) {
		bool erase = t->so_far.flags & TURN_ERASE;

		durable_push(w, c, (erase && PLANT(PLANT_SEQUENCE_RESET) ? 0 : t->record_seq) |
				   (erase ? SEQ_BARE : 0));
		t->record = NULL;
		remember_key(w, c);
	} else {
		t->due = PLANT(PLANT_READ_UNGATED) ? 0 : load_relaxed(body_due(c->body));
	}
}

/* ── messages that end without an effect ── */

void durable_failed(struct worker *w, struct cell *c)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched *s = w->fixed.sched;
	struct sink k = { .at = NULL };
	uint64_t tag, seq;
	uint8_t *record = NULL;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < t->msg_count; i++)
			put_consumed(&k, msg_envelope(&t->msgs[i]));
		if (timer_fired(t))
			put_timers(&k, t, c->ext);
		if (k.size == 0 || record)
			break;
		tag = s->journal.epoch(s->journal.arg);
		seq = durable_next_seq(c, tag) | (*body_seq(c->body) & SEQ_BARE);
		record = begin_record(w, c, k.size, tag, seq & ~SEQ_BARE, 0, &k);
		if (!record)
			break;
	}
	t->due = load_relaxed(body_due(c->body));
	if (!record) {
		if (k.size)
			sched_logf(s, NOH_ERROR, noh_address(t), "no memory to record the end of a message: "
				   "after a crash it would be delivered again");
		return;
	}
	record_finish(record, k.at);
	durable_push(w, c, seq);
}

void durable_dropped(struct worker *w, struct cell *c, const struct msg *m)
{
	noh_msg gone = { .body = msg_body(m), .len = msg_len(m), .flags = m->len & MSG_WRAPPED };
	struct noh_turn *t = &w->mine.turn;
	struct sched *s = w->fixed.sched;
	const noh_msg *msgs = t->msgs;
	uint32_t count = t->msg_count;

	if (!cell_type(w->fixed.sched, c)->durable || !gone.flags || !msg_envelope(&gone)->seq)
		return;
	if (w->mine.read_only) {         /* nobody has asked for room */
		sched_logf(s, NOH_ERROR, "", "the disk is full, and the end of a message is not recorded: after a "
			   "crash it would be delivered again");
		return;
	}
	t->msgs = &gone;
	t->msg_count = 1;
	durable_failed(w, c);
	t->msgs = msgs;
	t->msg_count = count;
}

/* ── idempotency ── */

bool durable_repeated(struct worker *w, struct cell *c, const noh_msg *m)
{
	struct sched *s = w->fixed.sched;
	struct sched_storage *disk = cell_type(s, c)->storage;
	const struct envelope *env = msg_envelope(m);
	char address[ADDRESS_MAX + 1];
	struct part_idem p;
	uint64_t due;
	size_t n, len;
	void *part;
	int rc;

	if (!env || !env->key_len)
		return false;
	n = cell_address(s, c, address);
	rc = disk->idem_get(disk->arg, address, n, body_hash(c), envelope_key(env, m->len), env->key_len, &part,
			    &len, &due);
	if (rc == NOH_END)
		return false;
	if (rc != NOH_OK || len < sizeof p) {
		if (m->reply_to)
			gate_complete(&w->mine.port, m->reply_to, rc == NOH_OK ? NOH_ECORRUPT : rc, NULL, 0);
		if (rc == NOH_OK)
			mem_free(part, len);
		return true;
	}
	memcpy(&p, part, sizeof p);
	if (msg_at_once(m))
		due = 0;
	if (m->reply_to && (p.body_hash != durable_print(m) || (p.flags & IDEM_DEFERRED)))
		gate_answer(w, due, m->reply_to, NOH_EIDEM, NULL, 0);
	else if (m->reply_to)
		gate_answer(w, due, m->reply_to, p.status, (char *)part + sizeof p, len - sizeof p);
	mem_free(part, len);
	return true;
}
