/* sched/durable.c - a turn's record, and what its messages are called.
 *
 * The record is written to the journal's ring before the turn is committed and pushed when it is, so a
 * record that does not fit fails the turn, never the other way round. What stands in it: turn_record.c.
 *
 * A turn with a record is due when its record is; one without, when everything its actor has seen is
 * (cell.due, raised by whoever writes to it without a record).
 */
#include "sched/turn_record.h"

#include "core/plant.h"
#include "sched/late.h"

#include <string.h>
#include <xxhash.h>

/* A full disk lets turns run that leave no record. What was so when the turn began holds until its end, even if
 * there is space again meanwhile: nobody has asked for room in the ring. */
bool durable_look_for_room(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	bool room;

	w->mine.read_only = s->journal.no_space(s->journal.arg);
	room = !load_relaxed(&s->disk_failed) &&
	       (w->mine.read_only || s->journal.room(s->journal.arg, w->fixed.index)) &&
	       gate_room(&w->gate);
	w->mine.has_room = room && !w->mine.read_only;
	return room;
}

void durable_raise(struct cell *c, uint64_t due)
{
	atomic_u64 *at = body_due(c->body);
	uint64_t now = load_relaxed(at);

	while (now < due && !cas_relaxed(at, &now, due))
		;
}

uint64_t durable_print(const noh_msg *m)
{
	return XXH3_64bits_withSeed(m->body, m->len, m->kind);
}

static uint8_t *begin_record(struct worker *w, struct cell *c, size_t parts, uint64_t tag, uint64_t seq,
			     uint8_t flags, struct sink *k)
{
	struct sched *s = w->fixed.sched;
	size_t n = cell_address_len(s, c);
	uint8_t *record = s->journal.reserve(s->journal.arg, w->fixed.index, record_parts_at(n) + parts);

	w->mine.has_room = false;
	k->size = 0;
	if (!record)
		return NULL;
	k->at = record_head(record, n, body_hash(c), tag, seq, flags);
	cell_address_put(s, c, (char *)record + sizeof(struct record_head));
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
	struct part p = { 0 };
	const uint8_t *at;
	uint32_t size;

	if (!env || !env->key_len)
		return true;
	at = t->record + record_parts_at(strlen(noh_address(t)));
	memcpy(&size, t->record, sizeof size);
	while (part_next(&at, t->record + size, &p) && p.kind != PART_IDEM)
		;
	t->key_part = mem_alloc(p.len);
	t->key_part_len = p.len;
	if (t->key_part)
		memcpy(t->key_part, p.data, p.len);
	return t->key_part != NULL;
}

static int no_space(struct noh_turn *t)
{
	return error_set(NOH_ENOSPC, "%s: nothing can be changed, the disk is full; what is there can be read, and "
			 "this goes on by itself when there is space", noh_address(t));
}

static int no_memory(struct noh_turn *t, size_t size)
{
	return error_set(NOH_ENOMEM, "%s: no memory for a record of %zu bytes", noh_address(t), size);
}

/* What most turns are. */
static int prepare_simple(struct worker *w, struct cell *c, uint64_t tag, uint64_t seq)
{
	struct noh_turn *t = &w->mine.turn;
	size_t size = turn_record_state_size(t, c);
	struct sink k = { .at = NULL };

	if (size == 0)
		return NOH_OK;
	if (w->mine.read_only)
		return no_space(t);
	t->record = begin_record(w, c, size, tag, seq, 0, &k);
	if (!t->record)
		return no_memory(t, size);
	t->record_seq = seq;
	turn_record_state(&k, t, c);
	must(k.size == size);
	record_finish(t->record, k.at);
	return NOH_OK;
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
	if (turn_record_is_simple(t))
		return prepare_simple(w, c, tag, seq);
	if (t->fx->count && !turn_record_receivers(w))
		return error_set(NOH_ENOMEM, "%s: no memory for its messages", noh_address(t));
	turn_record_put(&k, t, c, tag, seq, NULL);
	if (k.size == 0 && !erase)
		return NOH_OK;
	if (erase && k.size == 0 && (*body_seq(c->body) & SEQ_BARE))
		return NOH_OK;                   /* there is nothing to erase */
	if (w->mine.read_only)
		return no_space(t);
	size = k.size;
	t->record = begin_record(w, c, size, tag, seq, turn_record_flags(t), &k);
	if (!t->record)
		return no_memory(t, size);
	t->record_seq = seq;
	turn_record_put(&k, t, c, tag, seq, NULL);
	must(k.size == size);
	record_finish(t->record, k.at);
	turn_record_order(t, t->record);
	if (copy_key(w) && turn_record_wrap(w, c, seq) && (!t->fx->count || late_reserve(w)))
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

/* A worker that is about to run out of work writes them itself (journal_here). */
static void see_to_it(struct worker *w)
{
	struct sched *s = w->fixed.sched;

	if (!s->journal.take || runq_length(&w->runq) || hands_length(&w->hands))
		s->journal.wake(s->journal.arg);
	else if (!PLANT(PLANT_LOSE_WAKE))
		w->mine.pushed = true;
}

/* After its due was raised: who sees that it exists sees when that is on disk. */
static void set_seq(struct worker *w, struct cell *c, uint64_t seq)
{
	uint64_t before = *body_seq(c->body);

	*body_seq(c->body) = seq;
	c->flags |= CELL_DIRTY;                  /* also without a new state: who consumed a message must not get it again */
	if (!((before ^ seq) & SEQ_BARE))
		return;
	store_release(&w->shown.known_due, w->mine.turn.due);
	if (seq & SEQ_BARE)
		life_goes(&w->mine.port, c);
	else
		life_comes(&w->mine.port, c, before != SEQ_BARE);
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
	durable_raise(c, t->due);
	set_seq(w, c, seq);
	see_to_it(w);
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
		turn_logf(t, NOH_ERROR, "no memory for an idempotency key: a retry "
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
		noh_actor to;
		struct cell *c;

		if (!e->cell && (e->msg.reply & TOKEN_OF_NET))
			continue;                        /* connections have gates of their own */
		to = e->cell ? ref_make(e->cell, e->gen) : pending_asker(s, e->msg.reply);
		if (!ref_number(to) || (e->msg.len != FX_SPAWN && (e->msg.len & MSG_WRAPPED) &&
					((struct envelope *)e->msg.body.big)->seq))
			continue;
		c = cell_at(s, ref_number(to));
		if (load_acquire(&c->mailbox.gen) == ref_gen(to))
			durable_raise(c, t->due);
	}
}

/* Of a step: pushed already, and due with all of it. A volatile actor's state tells of it, too. */
static void commit_part(struct worker *w, struct noh_turn *t, struct cell *c)
{
	durable_raise(c, t->due);
	if (t->so_far.flags & TURN_RECORDED)
		set_seq(w, c, t->record_seq | (t->so_far.flags & TURN_ERASE ? SEQ_BARE : 0));
}

void durable_commit(struct worker *w, struct cell *c)
{
	struct noh_turn *t = &w->mine.turn;

	if (t->so_far.flags & TURN_STEP) {
		commit_part(w, t, c);
	} else if (t->record) {
		bool erase = t->so_far.flags & TURN_ERASE;

		durable_push(w, c, (erase && PLANT(PLANT_SEQUENCE_RESET) ? 0 : t->record_seq) |
				   (erase ? SEQ_BARE : 0));
		t->record = NULL;
		remember_key(w, c);
	} else {
		t->due = PLANT(PLANT_READ_UNGATED) ? 0 : load_relaxed(body_due(c->body));
	}
}

/* ── a step: the records of several turns, pushed as one ── */

static bool group_grow(struct durable_group *g, size_t more)
{
	size_t room = (g->len + more) * 2;
	uint8_t *bytes;

	if (g->len + more <= g->room)
		return true;
	bytes = mem_alloc(room);
	if (!bytes)
		return false;
	if (g->len)
		memcpy(bytes, g->bytes, g->len);
	mem_free(g->bytes, g->room);
	g->bytes = bytes;
	g->room = room;
	return true;
}

int durable_prepare_part(struct worker *w, struct cell *c, struct durable_group *g,
			 const struct durable_key *key)
{
	struct noh_turn *t = &w->mine.turn;
	uint64_t seq = durable_next_seq(c, g->tag);
	bool erase = t->so_far.flags & TURN_ERASE;
	size_t n = strlen(noh_address(t)), size;
	struct sink k = { .at = NULL };

	if (t->fx->count && !turn_record_receivers(w))
		return error_set(NOH_ENOMEM, "%s: no memory for its messages", noh_address(t));
	turn_record_put(&k, t, c, g->tag, seq, key);
	if (k.size == 0 && (!erase || (*body_seq(c->body) & SEQ_BARE)))
		return NOH_OK;
	if (w->mine.read_only)
		return no_space(t);
	size = record_parts_at(n) + k.size;
	if (g->len + size > NOH_STEP_BYTES)
		return error_set(NOH_ETOOBIG, "%s: with what it records the step takes more than %u bytes",
				 noh_address(t), NOH_STEP_BYTES);
	if (!group_grow(g, size))
		return no_memory(t, size);
	k.at = record_begin(g->bytes + g->len, noh_address(t), n, body_hash(c), g->tag, seq, turn_record_flags(t));
	turn_record_put(&k, t, c, g->tag, seq, key);
	record_finish(g->bytes + g->len, k.at);
	turn_record_order(t, g->bytes + g->len);
	must(k.at == g->bytes + g->len + size);
	if (!turn_record_wrap(w, c, seq) || (t->fx->count && !late_reserve(w)))
		return error_set(NOH_ENOMEM, "%s: no memory for its messages", noh_address(t));
	g->len += size;
	t->record_seq = seq;
	t->so_far.flags |= TURN_RECORDED;
	return NOH_OK;
}

/* PLANT_STEP_SPLIT: the first record alone, the others with the tag of the next epoch. */
static uint8_t *reserve_split(struct worker *w, struct durable_group *g)
{
	struct sched_journal *j = &w->fixed.sched->journal;
	uint64_t tag = g->tag + 1;
	uint8_t *at;
	uint32_t first, size;

	memcpy(&first, g->bytes, sizeof first);
	if (first == g->len)
		return j->reserve(j->arg, w->fixed.index, g->len);
	for (size_t i = first; i < g->len; i += size) {
		memcpy(&size, g->bytes + i, sizeof size);
		memcpy(g->bytes + i + offsetof(struct record_head, tag), &tag, sizeof tag);
	}
	memcpy(j->reserve(j->arg, w->fixed.index, first), g->bytes, first);
	memmove(g->bytes, g->bytes + first, g->len -= first);
	at = j->reserve(j->arg, w->fixed.index, g->len);
	return at;
}

/* One entry of the ring: whoever takes it takes all of it, and an epoch's records are on disk all or none. */
int durable_push_group(struct worker *w, struct durable_group *g, uint64_t *due)
{
	struct sched_journal *j = &w->fixed.sched->journal;
	uint8_t *at;

	w->mine.has_room = false;
	if (g->len) {
		at = PLANT(PLANT_STEP_SPLIT) ? reserve_split(w, g) : j->reserve(j->arg, w->fixed.index, g->len);
		if (!at)
			return error_set(NOH_ENOMEM, "no memory for the %zu bytes of a step's record", g->len);
		memcpy(at, g->bytes, g->len);
		j->push(j->arg, w->fixed.index);
		*due = j->epoch(j->arg);
		see_to_it(w);
	}
	return NOH_OK;
}

/* ── records that are no turn's ── */

int durable_note(struct worker *w, struct cell *c, bool kept, durable_put_fn *put, void *arg)
{
	struct sched *s = w->fixed.sched;
	uint64_t tag = s->journal.epoch(s->journal.arg), seq = durable_next_seq(c, tag);
	struct sink k = { .at = NULL };
	uint8_t *record;

	w->mine.turn.due = load_relaxed(body_due(c->body));
	put(&k, w, c, arg);
	if (k.size == 0)
		return NOH_OK;
	if (w->mine.read_only || !s->journal.room(s->journal.arg, w->fixed.index))
		return NOH_ENOSPC;
	record = begin_record(w, c, k.size, tag, seq, 0, &k);
	if (!record)
		return NOH_ENOMEM;
	put(&k, w, c, arg);
	record_finish(record, k.at);
	durable_push(w, c, seq | (kept ? 0 : *body_seq(c->body) & SEQ_BARE));
	return NOH_OK;
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
			turn_record_consumed(&k, msg_envelope(&t->msgs[i]));
		if (turn_record_fired(t))
			turn_record_timers(&k, t, c->ext);
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

/* The network tells its client so. */
static int replayed(uint64_t token, int status)
{
	return (token & TOKEN_OF_NET) && status >= 0 ? status | ANSWER_REPLAYED : status;
}

void durable_replayed(struct worker *w, const struct type *t, uint64_t reply)
{
	enum replay of = !(reply & TOKEN_OF_NET) ? REPLAY_LIBRARY : reply & TOKEN_OF_HTTP ? REPLAY_HTTP : REPLAY_RESP;

	count_one(&w->mine.port.types[t->index].replays[of], 1);
}

bool durable_repeated(struct worker *w, struct cell *c, const noh_msg *m)
{
	static const char put_off[] = "the first message with this idempotency key was handled, but its answer was put off, and "
				      "is not kept";
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
	if (p.body_hash == durable_print(m))
		durable_replayed(w, cell_type(s, c), m->reply_to);
	if (m->reply_to && p.body_hash != durable_print(m))
		gate_answer(w, due, m->reply_to, NOH_EIDEM, NULL, 0);
	else if (m->reply_to && (p.flags & IDEM_DEFERRED))
		gate_answer(w, due, m->reply_to, NOH_EIDEM, m->reply_to & TOKEN_OF_NET ? put_off : NULL,
			    m->reply_to & TOKEN_OF_NET ? sizeof put_off - 1 : 0);
	else if (m->reply_to)
		gate_answer(w, due, m->reply_to, replayed(m->reply_to, p.status), (char *)part + sizeof p,
			    len - sizeof p);
	mem_free(part, len);
	return true;
}
