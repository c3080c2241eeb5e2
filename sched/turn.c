/* sched/turn.c - what a hook may do, and its end: everything at once, or nothing (P4).
 *
 * State is changed in place with a copy kept aside (with read-only kinds: in a copy, as readers see
 * it at any time), messages and answers go to a list, entries of the key-value part are
 * changed in place with an undo log, schedules enter the wheel but not the actor. turn_commit makes
 * all of it real, in the order sent; turn_undo leaves no trace. Nothing of a turn is visible to
 * another thread before its commit, so a turn that hangs holds up nobody it has written to.
 *
 * Hand-off: if the actor has nothing left to do and the last message it sent is for an idle actor,
 * commit claims that actor and the worker goes on with it at once, message in hand: no ring, no run
 * queue. The claim comes before the sender is released, so nobody's later message can overtake (P3).
 */
#include "sched/turn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ── bodies ── */

static bool effects_grow(struct effects *fx)
{
	uint32_t room = fx->room ? fx->room * 2 : 64;
	struct effect *list;

	list = room > EFFECTS_MAX ? NULL : mem_aligned(CACHE_LINE, room * sizeof *list);
	if (!list)
		return false;
	if (fx->count)
		memcpy(list, fx->list, fx->count * sizeof *list);
	mem_free(fx->list, fx->room * sizeof *list);
	fx->list = list;
	fx->room = room;
	return true;
}

/* At most MSG_INLINE bytes: a few overlapping moves instead of a call. */
static inline void copy_small(uint8_t *to, const void *from, size_t len)
{
	const uint8_t *f = from;

	if (len >= 8) {
		if (len > 16) {
			memcpy(to, f, 16);
			memcpy(to + len - 16, f + len - 16, 16);
			if (len > 32)
				memcpy(to + 16, f + 16, 16);
			return;
		}
		memcpy(to, f, 8);
		memcpy(to + len - 8, f + len - 8, 8);
	} else {
		for (; len; len--)
			*to++ = *f++;
	}
}

static ALWAYS_INLINE bool set_body(struct msg *m, const void *body, size_t len)
{
	m->len = (uint32_t)len;
	if (len <= MSG_INLINE) {
		copy_small(m->body.bytes, body, len);
		return true;
	}
	m->body.big = mem_alloc(len);
	if (!m->body.big)
		return false;
	memcpy(m->body.big, body, len);
	return true;
}

bool msg_set_body(struct msg *m, const void *body, size_t len)
{
	return set_body(m, body, len);
}

static void msg_free_body(struct msg *m)
{
	if (m->len > MSG_INLINE)
		mem_free(m->body.big, m->len);
}

/* ── commit, undo ── */

/* With read-only kinds the state is copied by readers on other threads at any time: a version that
 * is odd while it changes, and word-sized atomic copies, make a torn one visible to them. */
void turn_publish_state(struct cell *c, struct type *ty, const void *state)
{
	uint8_t *to = body_state(ty, c->body);

	if (!ty->reads) {
		copy_words(to, state, ty->state_words);
		return;
	}
	atomic_u64 *version = (atomic_u64 *)(void *)c->body->data;
	atomic_u64 *words = (atomic_u64 *)(void *)to;
	uint64_t    v = load_relaxed(version);
	size_t      n = (ty->pub.state_size + 7u) / 8;

	(void)swap_acq_rel(version, v + 1);
	for (size_t i = 0; i < n; i++) {
		uint64_t x = 0;
		size_t   left = ty->pub.state_size - i * 8;

		memcpy(&x, (const uint8_t *)state + i * 8, left < 8 ? left : 8);
		store_release(&words[i], x);
	}
	store_release(version, v + 2);
}

static void apply_schedules(struct worker *w, struct noh_turn *t)
{
	struct ext *x = t->cell->ext;
	uint64_t    self = ref_make(cell_number(t->sched, t->cell),
				    load_relaxed(&t->cell->mailbox.gen)).bits;

	for (uint32_t i = 0; i < t->op_count; i++) {
		struct schedule_op *op = &t->ops[i];
		uint32_t at = 0;

		while (at < x->schedule_count && x->schedules[at].kind != op->kind)
			at++;
		if (at < x->schedule_count) {
			struct schedule old = x->schedules[at];

			x->schedules[at] = x->schedules[--x->schedule_count];
			clock_cancel(t->sched, old.worker, old.entry, self, old.serial);
		}
		if (!op->add)
			continue;
		must(x->schedule_count < x->schedule_room);
		x->schedules[x->schedule_count++] = (struct schedule){
			.due_ms = op->due_ms, .period_ms = op->period_ms, .serial = op->serial,
			.kind = op->kind, .entry = op->entry, .worker = op->worker };
		/* It may have come due, and been found unknown, before the turn ended. */
		if (op->due_ms <= sched_now_ms(w)) {
			struct sysmsg *n = node_take(&w->mine.port, SYS_TIMER);

			if (n) {
				n->token = op->serial;
				sched_sys(&w->mine.port, t->cell,
					  load_relaxed(&t->cell->mailbox.gen), n);
			}
		}
	}
	t->op_count = 0;
}

static void answer(struct port *p, uint64_t token, int status, const struct msg *m)
{
	if (!pending_complete(p, token, status, m ? turn_body(m) : NULL, m ? m->len : 0))
		count_one(&p->late_answers, 1);
}

struct letter { uint32_t effect, len; };

/* The receiver went back to storage since the turn wrote to it. By address it comes back. */
static int deliver_again(struct port *p, struct effect *e)
{
	struct noh_turn *t = &p->worker->mine.turn;
	struct letters *l = &t->letters;
	struct letter   head;
	int rc = NOH_EGONE;

	for (uint32_t at = 0; at < t->so_far.letters; at += (uint32_t)sizeof head + head.len) {
		struct cell *c;
		uint32_t gen;

		memcpy(&head, l->bytes + at, sizeof head);
		if (head.effect != (uint32_t)(e - t->fx->list))
			continue;
		do {
			rc = sched_resolve(p, l->bytes + at + sizeof head, head.len, &c, &gen);
			if (rc == NOH_OK)
				rc = sched_deliver(p, c, gen, &e->msg);
		} while (rc == NOH_EGONE);
		break;
	}
	return rc;
}

static ALWAYS_INLINE void publish(struct port *p, struct effect *e)
{
	struct sched *s = p->sched;

	if (e->cell == 0) {
		answer(p, e->msg.reply, (int)e->gen, &e->msg);
		msg_free_body(&e->msg);
	} else if (e->msg.len == FX_SPAWN) {
		struct sysmsg *n = node_take(p, SYS_SPAWN);

		if (n) {
			n->token = e->msg.reply;
			sched_sys(p, cell_at(s, e->cell), e->gen, n);
		}
	} else {
		struct cell *to = cell_at(s, e->cell);
		int rc = sched_deliver(p, to, e->gen, &e->msg);

		if (__builtin_expect(rc == NOH_EGONE, 0))
			rc = deliver_again(p, e);
		if (__builtin_expect(rc != NOH_OK, 0)) {
			count_one(&p->dead_letters, 1);
			if (e->msg.reply)
				answer(p, e->msg.reply, rc, NULL);
			msg_free_body(&e->msg);
		}
	}
}

void turn_answer_rest(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	for (uint32_t i = 0; i < t->msg_count; i++)
		if (t->msgs[i].reply_to && !(t->so_far.replied >> i & 1))
			answer(&w->mine.port, t->msgs[i].reply_to, NOH_OK, NULL);
}

/* A message to an idle actor: claim it, and keep the message at hand for its turn. */
static ALWAYS_INLINE bool into_hand(struct worker *w, struct effect *e)
{
	struct cell *to = cell_at(w->fixed.sched, e->cell);

	/* Nobody (an answer) is never idle. */
	if (e->msg.len == FX_SPAWN || !hands_room(&w->hands) || !mailbox_claim(&to->mailbox, e->gen))
		return false;
	__builtin_prefetch(to->body, 1);
	hands_put(&w->hands, e);
	return true;
}

/* Messages to one actor that stand side by side go in together. */
static uint32_t publish_run(struct worker *w, struct effect *e, uint32_t most)
{
	struct port *p = &w->mine.port;
	uint32_t n = 1, done;
	int rc;

	if (e->cell && e->msg.len != FX_SPAWN)
		while (n < most && e[n].cell == e->cell && e[n].gen == e->gen &&
		       e[n].msg.len != FX_SPAWN)
			n++;
	if (n > 1) {
		done = sched_deliver_run(p, cell_at(p->sched, e->cell), e->gen, &e->msg, sizeof *e, n,
					 &rc);
		if (rc == NOH_OK)
			return done;
		e += done;
		publish(p, e);              /* says what is wrong */
		return done + 1;
	}
	if (!into_hand(w, e))
		publish(p, e);
	return 1;
}

void turn_publish(struct worker *w, uint32_t count)
{
	struct effects *fx = w->mine.turn.fx;

	for (uint32_t i = 0; i < count; )
		i += publish_run(w, &fx->list[i], count - i);
	fx->count = 0;
}

struct effect *turn_publish_many(struct worker *w, bool at_end)
{
	struct effects *fx = w->mine.turn.fx;
	uint32_t n = fx->count;

	turn_publish(w, n - 1);
	if (at_end && fx->list[n - 1].msg.len != FX_SPAWN && turn_hand_on(w, &fx->list[n - 1]))
		return &fx->list[n - 1];
	publish(&w->mine.port, &fx->list[n - 1]);
	return NULL;
}

void turn_commit_rest(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct cell     *c = t->cell;

	kv_commit(&t->kv_log);
	if (t->op_count)
		apply_schedules(w, t);
	if (t->so_far.flags & TURN_STOP)
		c->flags |= CELL_STOP;
	if (t->so_far.flags & (TURN_KV | TURN_TIMERS))
		c->flags |= CELL_DIRTY;
}

void turn_undo(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	uint64_t self = ref_make(cell_number(t->sched, t->cell),
				 load_relaxed(&t->cell->mailbox.gen)).bits;

	for (uint32_t i = 0; i < t->fx->count; i++) {
		struct effect *e = &t->fx->list[i];

		if (e->msg.len == FX_SPAWN)
			continue;
		if (e->cell && e->msg.reply)
			pending_drop(&w->mine.port, e->msg.reply);
		msg_free_body(&e->msg);
	}
	t->fx->count = 0;
	if (t->so_far.state && !t->type->reads)
		copy_words(t->so_far.state, w->mine.scratch, t->type->state_words);
	if (t->cell->ext)
		kv_rollback(&t->cell->ext->kv, &t->kv_log);
	for (uint32_t i = 0; i < t->op_count; i++)
		if (t->ops[i].add)
			clock_cancel(t->sched, t->ops[i].worker, t->ops[i].entry, self,
				     t->ops[i].serial);
	t->op_count = 0;
}

bool turn_open(struct worker *w)
{
	return effects_grow(&w->mine.fx[0]) && effects_grow(&w->mine.fx[1]);
}

void turn_free(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	for (int i = 0; i < 2; i++)
		mem_free(w->mine.fx[i].list, w->mine.fx[i].room * sizeof(struct effect));
	mem_free(t->ops, t->op_room * sizeof *t->ops);
	mem_free(t->letters.bytes, t->letters.room);
}

/* ── who and where ── */

noh_box *noh_turn_box(noh_turn *t) { return t->sched->box; }
void *noh_user(noh_turn *t) { return t->type->pub.user; }
bool noh_cancelled(noh_turn *t) { return load_relaxed(&t->sched->stopping) != 0; }

uint64_t noh_now_ms(noh_turn *t)
{
	if (!t->so_far.now_ms)
		t->so_far.now_ms = clock_now_ns(&t->sched->clock) / 1000000u;
	return t->so_far.now_ms;
}

noh_actor noh_self(noh_turn *t)
{
	return ref_make(cell_number(t->sched, t->cell), load_relaxed(&t->cell->mailbox.gen));
}

const char *noh_address(noh_turn *t)
{
	if (!(t->so_far.flags & TURN_ADDRESS)) {
		cell_address(t->sched, t->cell, t->address);
		t->so_far.flags |= TURN_ADDRESS;
	}
	return t->address;
}

const char *noh_id(noh_turn *t)
{
	return noh_address(t) + t->type->name_len + 1;
}

noh_actor noh_parent(noh_turn *t)
{
	return !(t->so_far.flags & TURN_OUTSIDE) && t->cell->ext ? t->cell->ext->parent : (noh_actor){ 0 };
}

const void *noh_look(noh_turn *t)
{
	return t->so_far.state ? t->so_far.state : body_state(t->type, t->cell->body);
}

void *noh_state(noh_turn *t)
{
	if (!t->so_far.state) {
		void *own = body_state(t->type, t->cell->body), *copy = t->scratch;

		copy_words(copy, own, t->type->state_words);
		t->so_far.state = t->type->reads ? copy : own;
	}
	return t->so_far.state;
}

/* ── sending ── */

static int read_only(noh_turn *t)
{
	return error_set(NOH_EREADONLY, "%s: a read-only message kind cannot change anything",
			 noh_address(t));
}

static ALWAYS_INLINE struct effect *effect_new(noh_turn *t)
{
	struct effects *fx = t->fx;

	if (__builtin_expect(fx->count == fx->room, 0) && !effects_grow(fx))
		return NULL;
	return &fx->list[fx->count];
}

/* How many messages this turn has for `cell` already; this one is counted, too. A small direct-mapped
 * table: two actors that share a place make each other's count too small, never wrong by more than
 * what one turn may send. */
static ALWAYS_INLINE uint32_t sends_to(noh_turn *t, uint32_t cell)
{
	uint64_t turn = load_relaxed(&t->worker->shown.counts.turns);
	struct pending_sends *e = &t->worker->mine.sends[cell % PENDING_TABLE];

	if (t->fx->count == 1) {            /* the first was not counted */
		uint32_t first = t->fx->list[0].cell;

		t->worker->mine.sends[first % PENDING_TABLE] =
			(struct pending_sends){ .turn = turn, .cell = first, .count = 1 };
	}
	if (__builtin_expect(e->cell != cell || e->turn != turn, 0))
		*e = (struct pending_sends){ .turn = turn, .cell = cell };
	return e->count++;
}

static ALWAYS_INLINE void sends_back(noh_turn *t, uint32_t cell)
{
	t->worker->mine.sends[cell % PENDING_TABLE].count--;
}

static void note_full(noh_turn *t, uint32_t *on, uint32_t *on_gen, uint32_t cell, uint32_t gen)
{
	if (*on == 0 && cell_at(t->sched, cell) != t->cell) {
		*on = cell;
		*on_gen = gen;
		t->so_far.flags |= TURN_RESTS;
	}
}

static int no_room(noh_turn *t, struct type *ty, uint32_t number, uint32_t gen, int64_t n)
{
	if (ty->pub.full_mode == NOH_DROP_OLDEST)
		return NOH_OK;
	if (ty->pub.full_mode == NOH_BLOCK) {
		if (n < (int64_t)ty->hard) {
			note_full(t, &t->so_far.block_on, &t->so_far.block_gen, number, gen);
			return NOH_OK;
		}
		note_full(t, &t->so_far.full_on, &t->so_far.full_gen, number, gen);
	}
	count_one(&t->worker->mine.port.types[ty->index].refused, 1);
	return NOH_FULL;
}

/* The mailbox's full mode acts here, at the send call. */
static ALWAYS_INLINE int room_for(noh_turn *t, struct cell *c, struct type *ty, uint32_t number, uint32_t gen,
		    uint64_t word)
{
	int64_t n = mb_distance(mb_tail(word), mb_tail(load_relaxed(&c->mailbox.head)));

	if (t->fx->count)
		n += sends_to(t, number);
	if (__builtin_expect(n < (int64_t)ty->capacity, 1))
		return NOH_OK;
	return no_room(t, ty, number, gen, n);
}

static int check_kind(struct type *ty, uint32_t kind)
{
	if (!ty->pub.kinds)
		return NOH_OK;
	if (kind >= ty->pub.kind_count)
		return error_set(NOH_EKIND, "type %s has no message kind %u: it has %u", ty->name, kind,
				 ty->pub.kind_count);
	if (ty->pub.kinds[kind].flags & NOH_KIND_TIMER)
		return error_set(NOH_EKIND, "kind %s of type %s comes from its own schedule only",
				 ty->pub.kinds[kind].name ? ty->pub.kinds[kind].name : "?", ty->name);
	return NOH_OK;
}

static int gone(void)
{
	return error_set(NOH_EGONE, "the reference is stale: its actor went back to storage; send to "
			 "its address");
}

static int too_big(struct sched *s, size_t len)
{
	return error_set(NOH_ETOOBIG, "message of %zu bytes: the limit is %u", len, s->max_message);
}

static int no_memory(noh_turn *t, size_t len)
{
	return error_set(NOH_ENOMEM, "%s: no memory for a message of %zu bytes (%u in this turn so far)",
			 noh_address(t), len, t->fx->count);
}

static ALWAYS_INLINE int tell(noh_turn *t, uint32_t number, uint32_t gen, uint32_t kind, const void *body,
		size_t len, uint64_t reply)
{
	struct sched *s = t->sched;
	struct cell  *c = cell_at(s, number);
	uint64_t      word = load_acquire(&c->mailbox.word);
	int           rc;

	if (__builtin_expect(load_relaxed(&c->mailbox.gen) != gen || mb_state(word) == MB_DEAD, 0))
		return gone();
	struct type *ty = cell_type(s, c);

	if (ty->pub.kinds && (rc = check_kind(ty, kind)) != NOH_OK)
		return rc;
	if (__builtin_expect(len > s->max_message, 0))
		return too_big(s, len);
	struct effect *e = effect_new(t);

	if (__builtin_expect(!e, 0))
		return no_memory(t, len);
	rc = room_for(t, c, ty, number, gen, word);
	if (__builtin_expect(rc != NOH_OK, 0))
		return rc;
	if (__builtin_expect(!set_body(&e->msg, body, len), 0))
		return no_memory(t, len);
	e->cell = number;
	e->gen = gen;
	e->msg.kind = kind;
	e->msg.reply = reply;
	t->fx->count++;
	return NOH_OK;
}

static inline bool ref_valid(noh_turn *t, noh_actor to)
{
	return ref_number(to) != 0 && ref_number(to) < load_relaxed(&t->sched->cells.shared.fresh);
}

static __attribute__((noinline)) int tell_slowly(noh_turn *t, noh_actor to, uint32_t kind,
						  const void *body, size_t len)
{
	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	if (!ref_valid(t, to))
		return error_set(NOH_EINVAL, "a reference to nobody");
	return tell(t, ref_number(to), ref_gen(to), kind, body, len, 0);
}

static ALWAYS_INLINE void put_tell(struct effect *e, noh_actor to, uint32_t kind, const void *body,
				   size_t len)
{
	memcpy(&e->cell, &to.bits, 8);       /* cell and gen: a reference, in this order */
	e->msg.kind = kind;
	e->msg.len = (uint32_t)len;
	e->msg.reply = 0;
	copy_small(e->msg.body.bytes, body, len);
}

/* Messages that wait, and 2^33 - 1 for the instant in which the runner's head is ahead. */
static ALWAYS_INLINE uint64_t waiting_now(struct cell *c)
{
	return (load_acquire(&c->mailbox.word) - load_relaxed(&c->mailbox.head)) & MB_TAIL_MASK;
}

/* The same for a turn that has sent something already. */
static __attribute__((noinline)) int tell_more(noh_turn *t, noh_actor to, uint32_t kind,
						const void *body, size_t len)
{
	struct sched   *s = t->sched;
	uint32_t        number = ref_number(to);
	struct cell    *c = cell_at(s, number);
	struct effects *fx = t->fx;

	if (__builtin_expect((t->so_far.flags & TURN_READONLY) || fx->count == fx->room ||
			     len > MSG_INLINE || number >= load_relaxed(&s->cells.shared.fresh) ||
			     load_relaxed(&c->mailbox.gen) != ref_gen(to), 0))
		return tell_slowly(t, to, kind, body, len);
	if (__builtin_expect(waiting_now(c) + sends_to(t, number) >= cell_type(s, c)->short_capacity,
			     0)) {
		sends_back(t, number);
		return tell_slowly(t, to, kind, body, len);
	}
	put_tell(&fx->list[fx->count++], to, kind, body, len);
	return NOH_OK;
}

/* A short message to an actor that has room, the first of its turn: everything else goes slower. */
int noh_tell(noh_turn *t, noh_actor to, uint32_t kind, const void *body, size_t len)
{
	struct sched   *s = t->sched;
	uint32_t        number = ref_number(to);
	struct cell    *c = cell_at(s, number);
	struct effects *fx = t->fx;

	if (fx->count)
		return tell_more(t, to, kind, body, len);
	if (__builtin_expect((t->so_far.flags & TURN_READONLY) || len > MSG_INLINE ||
			     number >= load_relaxed(&s->cells.shared.fresh) ||
			     load_relaxed(&c->mailbox.gen) != ref_gen(to) ||
			     waiting_now(c) >= cell_type(s, c)->short_capacity, 0))
		return tell_slowly(t, to, kind, body, len);
	put_tell(fx->list, to, kind, body, len);
	fx->count = 1;
	return NOH_OK;
}

static bool note_address(noh_turn *t, const char *address, size_t len)
{
	struct letters *l = &t->letters;
	struct letter   head = { t->fx->count, (uint32_t)len };
	uint32_t        need = (uint32_t)(sizeof head + len);

	if (t->so_far.letters + need > l->room) {
		uint32_t room = (t->so_far.letters + need) * 2;
		char *bytes = mem_alloc(room);

		if (!bytes)
			return false;
		if (t->so_far.letters)
			memcpy(bytes, l->bytes, t->so_far.letters);
		mem_free(l->bytes, l->room);
		l->bytes = bytes;
		l->room = room;
	}
	memcpy(l->bytes + t->so_far.letters, &head, sizeof head);
	memcpy(l->bytes + t->so_far.letters + sizeof head, address, len);
	t->so_far.letters += need;
	return true;
}

static int resolve(noh_turn *t, const char *address, uint32_t *number, uint32_t *gen)
{
	struct cell *c;
	int rc;

	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	rc = sched_resolve(&t->worker->mine.port, address, strlen(address), &c, gen);
	if (rc == NOH_OK)
		*number = cell_number(t->sched, c);
	if (rc == NOH_OK && !note_address(t, address, strlen(address)))
		return error_set(NOH_ENOMEM, "no memory for a message to %s", address);
	return rc;
}

int noh_tell_to(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len)
{
	uint32_t number = 0, gen = 0;
	int rc;

	do {
		rc = resolve(t, address, &number, &gen);
		if (rc == NOH_OK)
			rc = tell(t, number, gen, kind, body, len, 0);
	} while (rc == NOH_EGONE);
	return rc;
}

static int ask(noh_turn *t, uint32_t number, uint32_t gen, uint32_t kind, const void *body,
	       size_t len, const noh_ask_options *o, uint64_t *number_out)
{
	uint32_t timeout = o && o->timeout_ms ? o->timeout_ms : 30000;
	uint64_t token;
	int rc;

	if (o && o->wait && t->so_far.wait_token)
		return error_set(NOH_EINVAL, "%s: a turn can wait for one answer only", noh_address(t));
	token = pending_ask(t->worker, t->cell, o ? o->answer_kind : 0, clock_due(t->sched, timeout));
	if (!token)
		return error_set(NOH_ENOMEM, "no memory for another ask");
	rc = tell(t, number, gen, kind, body, len, token);
	if (rc != NOH_OK) {
		pending_drop(&t->worker->mine.port, token);
		return rc;
	}
	if (o && o->wait) {
		if (!cell_ext(t->cell)) {
			t->fx->count--;
			msg_free_body(&t->fx->list[t->fx->count].msg);
			pending_drop(&t->worker->mine.port, token);
			return error_set(NOH_ENOMEM, "no memory to wait for an answer");
		}
		t->so_far.wait_token = token;
		t->so_far.flags |= TURN_RESTS;
		t->so_far.wait_on = number;
	}
	if (number_out)
		*number_out = token;
	return NOH_OK;
}

int noh_ask(noh_turn *t, noh_actor to, uint32_t kind, const void *body, size_t len,
	    const noh_ask_options *o, uint64_t *number)
{
	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	if (!ref_valid(t, to))
		return error_set(NOH_EINVAL, "a reference to nobody");
	return ask(t, ref_number(to), ref_gen(to), kind, body, len, o, number);
}

int noh_ask_to(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len,
	       const noh_ask_options *o, uint64_t *number)
{
	uint32_t cell = 0, gen = 0;
	int rc;

	do {
		rc = resolve(t, address, &cell, &gen);
		if (rc == NOH_OK)
			rc = ask(t, cell, gen, kind, body, len, o, number);
	} while (rc == NOH_EGONE);
	return rc;
}

int noh_spawn(noh_turn *t, const char *address, noh_actor *child)
{
	uint32_t cell = 0, gen = 0;
	int rc = resolve(t, address, &cell, &gen);
	struct effect *e;

	if (rc != NOH_OK)
		return rc;
	e = effect_new(t);
	if (!e)
		return error_set(NOH_ENOMEM, "no memory to spawn %s", address);
	e->cell = cell;
	e->gen = gen;
	e->msg.reply = noh_self(t).bits;
	e->msg.len = FX_SPAWN;
	t->so_far.flags |= TURN_SPAWNS;
	t->fx->count++;
	if (child)
		*child = ref_make(cell, gen);
	return NOH_OK;
}

int noh_stop_self(noh_turn *t)
{
	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	t->so_far.flags |= TURN_STOP;
	return NOH_OK;
}

int noh_fail(noh_turn *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->reason, sizeof t->reason, format, args);
	va_end(args);
	t->so_far.flags |= TURN_REASON;
	return NOH_EFAILED;
}

void noh_log(noh_turn *t, int level, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	sched_logf(t->sched, level, noh_address(t), "%s", line);
}

/* ── answering ── */

static int add_answer(noh_turn *t, uint64_t token, int status, const void *body, size_t len)
{
	struct effect *e;

	if (len > t->sched->max_message)
		return error_set(NOH_ETOOBIG, "answer of %zu bytes: the limit is %u", len,
				 t->sched->max_message);
	e = effect_new(t);
	if (!e || !msg_set_body(&e->msg, body, len))
		return error_set(NOH_ENOMEM, "no memory for an answer of %zu bytes", len);
	e->cell = 0;
	e->gen = (uint32_t)status;
	e->msg.reply = token;
	t->fx->count++;
	return NOH_OK;
}

static int answer_outside(noh_turn *t, const void *body, size_t len)
{
	size_t n = len < t->answer_room ? len : t->answer_room;

	if (n)
		memcpy(t->answer, body, n);
	t->answer_len = len;
	t->so_far.replied = 1;
	return NOH_OK;
}

int noh_reply_to(noh_turn *t, const noh_msg *m, const void *body, size_t len)
{
	ptrdiff_t i = m - t->msgs;
	int rc;

	if (i < 0 || i >= (ptrdiff_t)t->msg_count)
		return error_set(NOH_EINVAL, "not a message of this turn");
	if (t->so_far.replied >> i & 1)
		return error_set(NOH_EREPLIED, "%s has answered this message already", noh_address(t));
	if (t->so_far.flags & TURN_OUTSIDE)
		return answer_outside(t, body, len);
	if (!m->reply_to)
		return NOH_NOBODY;
	rc = add_answer(t, m->reply_to, NOH_OK, body, len);
	if (rc == NOH_OK)
		t->so_far.replied |= UINT64_C(1) << i;
	return rc;
}

int noh_reply(noh_turn *t, const void *body, size_t len)
{
	if (t->msg_count == 0)
		return NOH_NOBODY;
	return noh_reply_to(t, &t->msgs[0], body, len);
}

noh_promise noh_defer(noh_turn *t, const noh_msg *m)
{
	ptrdiff_t i = m - t->msgs;

	if (i < 0 || i >= (ptrdiff_t)t->msg_count || !m->reply_to || (t->so_far.replied >> i & 1) ||
	    (t->so_far.flags & TURN_READONLY))
		return (noh_promise){ 0 };
	t->so_far.replied |= UINT64_C(1) << i;
	return (noh_promise){ m->reply_to };
}

int noh_answer(noh_turn *t, noh_promise promise, int status, const void *body, size_t len)
{
	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	if (!pending_waits(t->sched, promise.bits))
		return NOH_NOBODY;
	for (uint32_t i = 0; i < t->fx->count; i++)
		if (t->fx->list[i].cell == 0 && t->fx->list[i].msg.reply == promise.bits)
			return NOH_NOBODY;       /* answered in this very turn */
	return add_answer(t, promise.bits, status, body, len);
}

/* ── schedules ── */

#define YEAR_MS (UINT64_C(366) * 24 * 3600 * 1000)

static struct schedule_op *op_new(noh_turn *t)
{
	if (t->op_count == t->op_room) {
		uint32_t room = t->op_room ? t->op_room * 2 : 8;
		struct schedule_op *ops = mem_alloc(room * sizeof *ops);

		if (!ops)
			return NULL;
		if (t->op_count)
			memcpy(ops, t->ops, t->op_count * sizeof *ops);
		mem_free(t->ops, t->op_room * sizeof *ops);
		t->ops = ops;
		t->op_room = room;
	}
	return &t->ops[t->op_count];
}

/* Room for what this turn may add, so that commit cannot fail. */
static struct ext *schedule_room(noh_turn *t)
{
	struct ext *x = cell_ext(t->cell);
	uint32_t need = x ? x->schedule_count + t->op_count + 1 : 0;

	if (x && need > x->schedule_room) {
		uint32_t room = need < 4 ? 4 : need * 2;
		struct schedule *list = mem_alloc(room * sizeof *list);

		if (!list)
			return NULL;
		if (x->schedule_count)
			memcpy(list, x->schedules, x->schedule_count * sizeof *list);
		mem_free(x->schedules, x->schedule_room * sizeof *list);
		x->schedules = list;
		x->schedule_room = room;
	}
	return x;
}

static int schedule(noh_turn *t, uint32_t kind, uint64_t delay, uint64_t period)
{
	struct schedule_op *op;
	struct ext *x;

	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	if (delay > YEAR_MS)
		return error_set(NOH_EINVAL, "%s: a schedule of %llu ms: at most a year is allowed",
				 noh_address(t), (unsigned long long)delay);
	if (t->type->pub.kinds && kind >= t->type->pub.kind_count)
		return error_set(NOH_EKIND, "type %s has no message kind %u", t->type->name, kind);
	x = schedule_room(t);
	op = x ? op_new(t) : NULL;
	if (!op)
		return error_set(NOH_ENOMEM, "no memory for a schedule of %s", noh_address(t));
	*op = (struct schedule_op){ .due_ms = clock_due(t->sched, delay), .period_ms = period,
				    .serial = ++x->next_serial, .kind = kind, .add = true,
				    .worker = t->worker->fixed.index };
	op->entry = clock_add(t->worker, op->due_ms, noh_self(t).bits, op->serial);
	if (!op->entry)
		return error_set(NOH_ENOMEM, "no memory for a schedule of %s", noh_address(t));
	t->op_count++;
	t->so_far.flags |= TURN_TIMERS;
	return NOH_OK;
}

int noh_schedule_once(noh_turn *t, uint32_t kind, uint64_t delay_ms)
{
	return schedule(t, kind, delay_ms, 0);
}

int noh_schedule_every(noh_turn *t, uint32_t kind, uint64_t interval_ms)
{
	if (interval_ms == 0)
		return error_set(NOH_EINVAL, "%s: an interval of 0 ms", noh_address(t));
	return schedule(t, kind, interval_ms, interval_ms);
}

int noh_schedule_cancel(noh_turn *t, uint32_t kind)
{
	struct schedule_op *op;

	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	if (!t->cell->ext)
		return NOH_OK;
	op = op_new(t);
	if (!op)
		return error_set(NOH_ENOMEM, "no memory to cancel a schedule of %s", noh_address(t));
	*op = (struct schedule_op){ .kind = kind, .add = false };
	t->op_count++;
	t->so_far.flags |= TURN_TIMERS;
	return NOH_OK;
}

/* ── key-value part ── */

int noh_kv_get(noh_turn *t, const void *key, size_t key_len, const void **value, size_t *value_len)
{
	const struct kv_node *n;

	if (t->so_far.flags & TURN_OUTSIDE)
		return error_set(NOH_EREADONLY, "%s: a read-only call beside the mailbox sees the state, "
				 "not the key-value part", noh_address(t));
	n = t->cell->ext ? kv_get(&t->cell->ext->kv, key, key_len) : NULL;
	if (!n)
		return NOH_END;
	*value = kv_value(n);
	*value_len = n->vlen;
	return NOH_OK;
}

int noh_kv_next(noh_turn *t, const void **key, size_t *key_len, const void **value,
		size_t *value_len)
{
	const struct kv_node *n;

	if (t->so_far.flags & TURN_OUTSIDE)
		return error_set(NOH_EREADONLY, "%s: a read-only call beside the mailbox sees the state, "
				 "not the key-value part", noh_address(t));
	n = t->cell->ext ? kv_next(&t->cell->ext->kv, *key, *key_len) : NULL;
	if (!n)
		return NOH_END;
	*key = kv_key(n);
	*key_len = n->klen;
	*value = kv_value(n);
	*value_len = n->vlen;
	return NOH_OK;
}

static int kv_result(noh_turn *t, int rc)
{
	if (rc == NOH_EINVAL)
		return error_set(rc, "%s: a key has 1 to %d bytes", noh_address(t), KV_KEY_MAX);
	if (rc == NOH_ENOMEM)
		return error_set(rc, "%s: no memory for an entry", noh_address(t));
	return rc;
}

int noh_kv_put(noh_turn *t, const void *key, size_t key_len, const void *value, size_t value_len)
{
	struct ext *x;

	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	x = cell_ext(t->cell);
	if (!x)
		return kv_result(t, NOH_ENOMEM);
	if (!x->kv.root)
		x->kv.seed = t->sched->seed;
	t->so_far.flags |= TURN_KV;
	return kv_result(t, kv_put(&x->kv, &t->kv_log, key, key_len, value, value_len));
}

int noh_kv_delete(noh_turn *t, const void *key, size_t key_len)
{
	if (t->so_far.flags & TURN_READONLY)
		return read_only(t);
	if (!t->cell->ext)
		return NOH_END;
	t->so_far.flags |= TURN_KV;
	return kv_result(t, kv_delete(&t->cell->ext->kv, &t->kv_log, key, key_len));
}
