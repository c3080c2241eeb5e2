/* sched/turn_api.c - the rest of what a hook may do: look around, answer, schedule, keep entries, say
 * something. (noh.h, section 5; sending is in tell.c.)
 */
#include "sched/kin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

uint64_t noh_wall_ms(noh_turn *t)
{
	return noh_now_ms(t) + t->sched->wall_offset_ms;
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

const void *noh_look(noh_turn *t)
{
	return t->so_far.state ? t->so_far.state : body_state(t->type, t->cell->body);
}

void *noh_state(noh_turn *t)
{
	if (!t->so_far.state) {
		void *own = body_state(t->type, t->cell->body), *copy = t->scratch;

		copy_before(copy, own, t->type->state_words);
		t->so_far.state = t->type->reads ? copy : own;
	}
	return t->so_far.state;
}

int turn_read_only(noh_turn *t)
{
	return error_set(NOH_EREADONLY, "%s: a read-only message kind cannot change anything",
			 noh_address(t));
}


int noh_stop_self(noh_turn *t)
{
	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	t->so_far.flags |= TURN_STOP;
	return NOH_OK;
}

int noh_erase(noh_turn *t)
{
	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (!cell_ext(t->cell))
		return error_set(NOH_ENOMEM, "no memory to erase %s", noh_address(t));
	t->so_far.flags |= TURN_ERASE;
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

/* ── answering ── */

static int add_answer(noh_turn *t, uint64_t token, int status, const void *body, size_t len, bool at_once)
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
	e->msg.kind = at_once;
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
	rc = add_answer(t, m->reply_to, NOH_OK, body, len, msg_at_once(m));
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

/* Kept aside until the turn has ended: all it has done goes, this stays. */
int noh_refuse(noh_turn *t, const void *body, size_t len)
{
	struct msg said = { .kind = 0 };

	if (t->so_far.flags & TURN_OUTSIDE) {
		(void)answer_outside(t, body, len);
		return NOH_REFUSED;
	}
	if (t->msg_count != 1)
		return error_set(NOH_EINVAL, "%s: noh_refuse is for a turn of one message, not of %u",
				 noh_address(t), t->msg_count);
	if (len > t->sched->max_message)
		return error_set(NOH_ETOOBIG, "answer of %zu bytes: the limit is %u", len,
				 t->sched->max_message);
	if (!msg_set_body(&said, body, len))
		return error_set(NOH_ENOMEM, "no memory for an answer of %zu bytes", len);
	if (t->so_far.flags & TURN_REFUSED)
		msg_free_body(&t->refusal);
	t->refusal = said;
	t->so_far.flags |= TURN_REFUSED;
	return NOH_REFUSED;
}

bool noh_in_step(noh_turn *t)
{
	return (t->so_far.flags & TURN_STEP) != 0;
}

noh_promise noh_defer(noh_turn *t, const noh_msg *m)
{
	ptrdiff_t i = m - t->msgs;

	if (i < 0 || i >= (ptrdiff_t)t->msg_count || !m->reply_to || (t->so_far.replied >> i & 1) ||
	    (t->so_far.flags & (TURN_READONLY | TURN_STEP)))
		return (noh_promise){ 0 };
	t->so_far.replied |= UINT64_C(1) << i;
	return (noh_promise){ m->reply_to };
}

int noh_answer(noh_turn *t, noh_promise promise, int status, const void *body, size_t len)
{
	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (!pending_waits(t->sched, promise.bits))
		return NOH_NOBODY;
	for (uint32_t i = 0; i < t->fx->count; i++)
		if (t->fx->list[i].cell == 0 && t->fx->list[i].msg.reply == promise.bits)
			return NOH_NOBODY;       /* answered in this very turn */
	return add_answer(t, promise.bits, status, body, len, false);
}

/* ── schedules ── */

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
		return turn_read_only(t);
	if (delay > NOH_SCHEDULE_MAX_MS)
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
		return turn_read_only(t);
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
	n = t->cell->ext && !(key_len && kin_key(key, key_len)) ? kv_get(&t->cell->ext->kv, key, key_len) : NULL;
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
	if (n && __builtin_expect(kin_key(kv_key(n), n->klen), 0))
		n = kin_skip(&t->cell->ext->kv);
	if (!n)
		return NOH_END;
	*key = kv_key(n);
	*key_len = n->klen;
	*value = kv_value(n);
	*value_len = n->vlen;
	return NOH_OK;
}

/* Beside the actor's own entries the box has some there. */
static int not_yours(noh_turn *t)
{
	return error_set(NOH_EINVAL, "%s: a key that begins with the bytes 0 'noh' 0 is the box's own", noh_address(t));
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
		return turn_read_only(t);
	if (key_len && kin_key(key, key_len))
		return not_yours(t);
	x = cell_ext(t->cell);
	if (!x)
		return kv_result(t, NOH_ENOMEM);
	t->so_far.flags |= TURN_KV;
	return kv_result(t, kv_put(&x->kv, &t->kv_log, key, key_len, value, value_len));
}

int noh_kv_delete(noh_turn *t, const void *key, size_t key_len)
{
	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (key_len && kin_key(key, key_len))
		return not_yours(t);
	if (!t->cell->ext)
		return NOH_END;
	t->so_far.flags |= TURN_KV;
	return kv_result(t, kv_delete(&t->cell->ext->kv, &t->kv_log, key, key_len));
}
