/* sched/tell.c - what a hook sends: messages, asks, children. Noted now, done at the turn's end.
 *
 * (noh_tell_to, whose address may be new, is in newborn.c.) The full mode of the receiver's mailbox acts here, at the send call.
 */
#include "sched/kin.h"
#include "sched/meter.h"
#include "sched/newborn.h"

#include <string.h>

/* How many messages this turn has for `to` already, this one not counted: of a few they are counted, of more there
 * is a small direct-mapped table. Two actors that share a place in it make each other's count too small, never wrong
 * by more than what one turn may send. */
#define FEW 2

static ALWAYS_INLINE uint32_t sends_among(const struct effects *fx, noh_actor to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < fx->count; i++)
		n += ref_make(fx->list[i].cell, fx->list[i].gen).bits == to.bits;
	return n;
}

static ALWAYS_INLINE struct pending_sends *sends_place(noh_turn *t, noh_actor to)
{
	return &t->worker->mine.sends.places[ref_number(to) % PENDING_TABLE];
}

static ALWAYS_INLINE bool sends_known(noh_turn *t, const struct pending_sends *e, noh_actor to)
{
	return e->to.bits == to.bits && e->turn == load_relaxed(&t->worker->shown.counts.turns);
}

static struct pending_sends *sends_enter(struct sends *s, noh_actor to)
{
	uint32_t              place = ref_number(to) % PENDING_TABLE;
	struct pending_sends *e = &s->places[place];

	if (e->turn == s->turn) {
		if (e->to.bits == to.bits)
			return e;
		s->mixed = true;
	} else {
		s->used[s->used_count++] = (uint8_t)place;
	}
	*e = (struct pending_sends){ .turn = s->turn, .to = to };
	return e;
}

/* From the FEW + 1st on. */
static struct pending_sends *sends_to(noh_turn *t, noh_actor to)
{
	struct sends *s = &t->worker->mine.sends;
	uint64_t      turn = load_relaxed(&t->worker->shown.counts.turns);

	if (s->turn != turn) {           /* those before were not entered yet */
		s->turn = turn;
		s->used_count = 0;
		s->mixed = false;
		for (uint32_t i = 0; i < FEW; i++)
			if (t->fx->list[i].cell)
				sends_enter(s, ref_make(t->fx->list[i].cell, t->fx->list[i].gen))->count++;
	}
	return sends_enter(s, to);
}

void turn_note_full(noh_turn *t, uint32_t *on, uint32_t *on_gen, uint32_t cell, uint32_t gen)
{
	if (*on == 0 && cell_at(t->sched, cell) != t->cell) {
		*on = cell;
		*on_gen = gen;
		t->so_far.flags |= TURN_RESTS;
	}
}

int tell_no_room(noh_turn *t, struct type *ty, uint32_t number, uint32_t gen, int64_t n, int64_t own)
{
	if (ty->pub.full_mode == NOH_DROP_OLDEST)
		return NOH_OK;
	if (ty->pub.full_mode == NOH_BLOCK) {
		if (n < (int64_t)ty->hard) {
			turn_note_full(t, &t->so_far.block_on, &t->so_far.block_gen, number, gen);
			return NOH_OK;
		}
		/* What this turn alone sends may be too much even for an empty mailbox: then waiting would not help. */
		if (own < (int64_t)ty->hard)
			turn_note_full(t, &t->so_far.full_on, &t->so_far.full_gen, number, gen);
	}
	count_one(&t->worker->mine.port.types[ty->index].refused, 1);
	meter_full(&t->worker->mine.port, ty);
	return NOH_FULL;
}

/* The mailbox's full mode acts here, at the send call. */
static ALWAYS_INLINE int room_for(noh_turn *t, struct cell *c, struct type *ty, uint32_t number, uint32_t gen,
		    uint64_t word)
{
	int64_t n = mb_distance(mb_tail(word), mb_tail(load_relaxed(&c->mailbox.head))), own;

	if (t->fx->count < FEW)
		own = sends_among(t->fx, ref_make(number, gen));
	else
		own = sends_to(t, ref_make(number, gen))->count++;
	if (__builtin_expect(n + own < (int64_t)ty->capacity, 1))
		return NOH_OK;
	return tell_no_room(t, ty, number, gen, n + own, own);
}

int type_check_kind(const struct type *ty, uint32_t kind)
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

int tell_too_big(struct sched *s, size_t len)
{
	return error_set(NOH_ETOOBIG, "message of %zu bytes: the limit is %u", len, s->max_message);
}

int tell_no_memory(noh_turn *t, size_t len)
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

	if (ty->pub.kinds && (rc = type_check_kind(ty, kind)) != NOH_OK)
		return rc;
	if (__builtin_expect(len > s->max_message, 0))
		return tell_too_big(s, len);
	struct effect *e = effect_new(t);

	if (__builtin_expect(!e, 0))
		return tell_no_memory(t, len);
	rc = room_for(t, c, ty, number, gen, word);
	if (__builtin_expect(load_relaxed(&ty->limits) & LIMIT_REFUSE, 0) && rc == NOH_OK)
		rc = limit_admit(&t->worker->mine.port, c, ty);
	if (__builtin_expect(rc != NOH_OK, 0))
		return rc;
	if (__builtin_expect(!set_body(&e->msg, body, len), 0)) {
		if (load_relaxed(&ty->limits) & LIMIT_REFUSE)
			limit_unadmit(&t->worker->mine.port, c, ty);
		return tell_no_memory(t, len);
	}
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
		return turn_read_only(t);
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

/* To an actor that this turn has not looked at yet, or whose room was used up by it. */
static __attribute__((noinline)) int tell_looking(noh_turn *t, noh_actor to, uint32_t kind,
						const void *body, size_t len)
{
	struct sched   *s = t->sched;
	uint32_t        number = ref_number(to);
	struct cell    *c = cell_at(s, number);
	struct effects *fx = t->fx;
	struct pending_sends *sends;
	struct type    *ty;
	uint64_t        n, limit;

	if (__builtin_expect((t->so_far.flags & TURN_READONLY) || fx->count == fx->room ||
			     len > MSG_INLINE || number >= load_relaxed(&s->cells.shared.fresh) ||
			     load_relaxed(&c->mailbox.gen) != ref_gen(to), 0))
		return tell_slowly(t, to, kind, body, len);
	ty = cell_type(s, c);
	sends = sends_to(t, to);
	n = waiting_now(c) + sends->count;
	limit = load_relaxed(&ty->short_capacity);
	if (n >= limit) {
		if (ty->pub.full_mode != NOH_BLOCK || n >= ty->hard || limit == 0)
			return tell_slowly(t, to, kind, body, len);
		turn_note_full(t, &t->so_far.block_on, &t->so_far.block_gen, number, ref_gen(to));
		limit = ty->hard;
	}
	sends->limit = sends->count + (uint32_t)(limit - n);
	sends->count++;
	put_tell(&fx->list[fx->count++], to, kind, body, len);
	return NOH_OK;
}

/* For a turn that has sent more than a few. Where it has found room it need not look again: what others send
 * meanwhile may exceed the capacity anyway, by what this turn sends. */
static ALWAYS_INLINE int tell_more(noh_turn *t, noh_actor to, uint32_t kind, const void *body, size_t len)
{
	struct effects       *fx = t->fx;
	struct pending_sends *sends = sends_place(t, to);

	if (__builtin_expect(!sends_known(t, sends, to) || sends->count >= sends->limit || fx->count == fx->room ||
			     len > MSG_INLINE, 0))
		return tell_looking(t, to, kind, body, len);
	sends->count++;
	put_tell(&fx->list[fx->count++], to, kind, body, len);
	return NOH_OK;
}

/* A short message to an actor that has room, among the first of its turn: everything else goes slower. */
static ALWAYS_INLINE int tell_early(noh_turn *t, noh_actor to, uint32_t kind, const void *body, size_t len, bool first)
{
	struct sched   *s = t->sched;
	uint32_t        number = ref_number(to);
	struct cell    *c = cell_at(s, number);
	struct effects *fx = t->fx;

	if (__builtin_expect((t->so_far.flags & TURN_READONLY) || len > MSG_INLINE ||
			     number >= load_relaxed(&s->cells.shared.fresh) ||
			     load_relaxed(&c->mailbox.gen) != ref_gen(to) ||
			     waiting_now(c) + (first ? 0 : sends_among(fx, to)) >= load_relaxed(&cell_type(s, c)->short_capacity), 0))
		return tell_slowly(t, to, kind, body, len);
	put_tell(first ? fx->list : &fx->list[fx->count], to, kind, body, len);
	fx->count = first ? 1 : fx->count + 1;
	return NOH_OK;
}

static __attribute__((noinline)) int tell_next(noh_turn *t, noh_actor to, uint32_t kind, const void *body, size_t len)
{
	return tell_early(t, to, kind, body, len, false);
}

int noh_tell(noh_turn *t, noh_actor to, uint32_t kind, const void *body, size_t len)
{
	if (t->fx->count == 0)
		return tell_early(t, to, kind, body, len, true);
	if (t->fx->count < FEW)
		return tell_next(t, to, kind, body, len);
	return tell_more(t, to, kind, body, len);
}

/* The actor may go back to storage before the turn ends: then it is looked up again. */
bool turn_note_address(noh_turn *t, uint32_t effect, const char *address, size_t len)
{
	struct letters *l = &t->letters;
	struct letter   head = { effect, (uint32_t)len };
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

static int no_letter(const char *address)
{
	return error_set(NOH_ENOMEM, "no memory for a message to %s", address);
}

static int resolve(noh_turn *t, const char *address, uint32_t *number, uint32_t *gen)
{
	struct cell *c;
	size_t       len = address_len(address);
	int          rc;

	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	rc = sched_resolve(&t->worker->mine.port, address, len, &c, gen);
	if (rc == NOH_ENOMEM && sched_may_exceed(t))
		rc = sched_resolve_sent(&t->worker->mine.port, address, len, &c, gen);
	if (rc != NOH_OK)
		return rc;
	*number = cell_number(t->sched, c);
	return turn_note_address(t, t->fx->count, address, len) ? NOH_OK : no_letter(address);
}

int tell_known(noh_turn *t, const struct named *who, const char *address, uint32_t kind, const void *body, size_t len)
{
	struct port *p = &t->worker->mine.port;
	uint32_t     gen = 0, letters = t->so_far.letters;
	struct cell *c;
	int          rc = NOH_EGONE;

	epoch_enter(&p->epoch);
	c = sched_find(p, &who->a, who->type, who->hash, &gen);
	t->worker->mine.expects_new = c == NULL;
	if (c && !turn_note_address(t, t->fx->count, address, strlen(address)))
		rc = no_letter(address);
	else if (c)
		rc = tell(t, cell_number(t->sched, c), gen, kind, body, len, 0);
	epoch_leave(&p->epoch);
	if (rc != NOH_OK)
		t->so_far.letters = letters;     /* the next effect has this place */
	return rc;
}

#define LOOK_BACK 64

/* Has this turn written to the address before, in the ordinary way? That actor may have gone since, and a
 * newborn that has its message in hand would hear this one first (P3). True if it is not known. */
bool tell_wrote_to(noh_turn *t, uint64_t hash)
{
	bool found = t->fx->count > LOOK_BACK;

	epoch_enter(&t->worker->mine.port.epoch);
	for (uint32_t i = 0; !found && i < t->fx->count; i++) {
		struct body *b = t->fx->list[i].cell ? cell_at(t->sched, t->fx->list[i].cell)->body : NULL;

		found = b && load_relaxed(&b->hash) == hash;
	}
	epoch_leave(&t->worker->mine.port.epoch);
	return found;
}

int tell_resolved(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len)
{
	uint32_t number = 0, gen = 0, letters = t->so_far.letters;
	int rc;

	do {
		t->so_far.letters = letters;
		rc = resolve(t, address, &number, &gen);
		if (rc == NOH_OK)
			rc = tell(t, number, gen, kind, body, len, 0);
	} while (rc == NOH_EGONE);
	if (rc != NOH_OK)
		t->so_far.letters = letters;
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
			struct cell *c = cell_at(t->sched, number);
			struct type *ty = cell_type(t->sched, c);

			t->fx->count--;
			msg_free_body(&t->fx->list[t->fx->count].msg);
			if (load_relaxed(&ty->limits) & LIMIT_REFUSE)
				limit_unadmit(&t->worker->mine.port, c, ty);
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
		return turn_read_only(t);
	if (!ref_valid(t, to))
		return error_set(NOH_EINVAL, "a reference to nobody");
	return ask(t, ref_number(to), ref_gen(to), kind, body, len, o, number);
}

int noh_ask_to(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len,
	       const noh_ask_options *o, uint64_t *number)
{
	uint32_t cell = 0, gen = 0, letters = t->so_far.letters;
	int rc;

	do {
		t->so_far.letters = letters;
		rc = resolve(t, address, &cell, &gen);
		if (rc == NOH_OK)
			rc = ask(t, cell, gen, kind, body, len, o, number);
	} while (rc == NOH_EGONE);
	if (rc != NOH_OK)
		t->so_far.letters = letters;
	return rc;
}

int noh_spawn(noh_turn *t, const char *address, noh_actor *child)
{
	uint32_t cell = 0, gen = 0, letters = t->so_far.letters;
	int rc = resolve(t, address, &cell, &gen);
	struct effect *e;
	uint64_t order;

	if (rc == NOH_OK)
		rc = kin_adopt(t, address, &order);
	if (rc != NOH_OK) {
		t->so_far.letters = letters;
		return rc;
	}
	e = effect_new(t);
	if (!e) {
		t->so_far.letters = letters;
		return error_set(NOH_ENOMEM, "no memory to spawn %s", address);
	}
	e->cell = cell;
	e->gen = gen;
	e->msg.reply = noh_self(t).bits;
	e->msg.len = FX_SPAWN;
	memcpy(e->msg.body.bytes, &order, sizeof order);
	t->so_far.flags |= TURN_SPAWNS;
	t->fx->count++;
	if (child)
		*child = ref_make(cell, gen);
	return NOH_OK;
}
