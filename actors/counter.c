/* actors/counter.c - a number with a name, and perhaps a time at which it goes away.
 *
 * A message is decided on a copy of the counter as it is at this instant (past its time: absent), then kept:
 * what it has become is stored, or, if it has become absent, all of it is erased. The time is guarded twice:
 * by a schedule that wakes the counter to erase it, and by every message, which looks at the clock itself.
 * So a late timer shows nothing that is gone, and a timer for a time that was changed meanwhile does nothing
 * but set itself anew.
 *
 * Owns     16 bytes of state and one schedule.
 * Never    reads the clock for a counter without a time; writes a record for a message that only looks.
 */
#include "actors/answer.h"
#include "actors/json_types.h"

#include <string.h>

#define FOREVER     INT64_MAX
#define TIMES       (NOH_COUNTER_IN | NOH_COUNTER_AT | NOH_COUNTER_KEEP | NOH_COUNTER_PERSIST)
#define ADD_FLAGS   (NOH_COUNTER_IN | NOH_COUNTER_AT | NOH_COUNTER_PERSIST | NOH_COUNTER_IF_NO_TIME | \
		     NOH_COUNTER_SATURATE)
#define SET_FLAGS   (NOH_COUNTER_IN | NOH_COUNTER_AT | NOH_COUNTER_KEEP | NOH_COUNTER_IF_NONE | \
		     NOH_COUNTER_IF_THERE)
#define WHEN_FLAGS  (NOH_COUNTER_IF_NO_TIME | NOH_COUNTER_IF_TIME | NOH_COUNTER_IF_LATER | \
		     NOH_COUNTER_IF_EARLIER)

struct counter {
	int64_t value;
	int64_t until;       /* wall clock; FOREVER; 0: there is no such key */
};

_Static_assert(sizeof(struct counter) == 16, "five million of them are to be small");
_Static_assert(sizeof(noh_counter_add) == 40, "travels in its mailbox slot");

static const struct counter absent;

static bool has_time(const struct counter *c)
{
	return c->until != 0 && c->until != FOREVER;
}

/* As it is now. */
static struct counter look(noh_turn *turn)
{
	struct counter c = *(const struct counter *)noh_look(turn);

	return has_time(&c) && c.until <= (int64_t)noh_wall_ms(turn) ? absent : c;
}

/* ── keeping ── */

static int wake_at(noh_turn *turn, int64_t until)
{
	int64_t left = until - (int64_t)noh_wall_ms(turn);

	return noh_schedule_once(turn, NOH_COUNTER_EXPIRED,
				 (uint64_t)(left < (int64_t)NOH_SCHEDULE_MAX_MS ? left : (int64_t)NOH_SCHEDULE_MAX_MS));
}

static int keep(noh_turn *turn, struct counter c)
{
	struct counter before = *(const struct counter *)noh_look(turn);
	struct counter *state;
	int rc = NOH_OK;

	if (c.until == 0)
		return noh_erase(turn);
	if (c.until != before.until && c.until != FOREVER)
		rc = wake_at(turn, c.until);
	else if (c.until != before.until && has_time(&before))
		rc = noh_schedule_cancel(turn, NOH_COUNTER_EXPIRED);
	if (rc != NOH_OK)
		return rc;
	state = noh_state(turn);
	*state = c;
	return NOH_OK;
}

/* Refused, and there is nothing: nothing stays, not even (erase) beside an idempotency key. */
static int refuse_and_go(noh_turn *turn, const void *body, size_t len)
{
	const struct counter *stored = noh_look(turn);
	int rc = refuse(turn, body, len);

	return rc == NOH_OK && stored->until == 0 ? noh_erase(turn) : rc;
}

/* Only looked. What is past its time is left to its timer: looking writes no record. */
static int answer_and_go(noh_turn *turn, const void *body, size_t len)
{
	const struct counter *stored = noh_look(turn);
	int rc = answer(turn, body, len);

	return rc == NOH_OK && stored->until == 0 ? noh_stop_self(turn) : rc;
}

/* ── times ── */

static bool one_of(uint32_t flags)
{
	return (flags & (flags - 1)) == 0;
}

/* Flags of the message's own, one way to give the time at most, and a time only with a way. */
static bool times_make_sense(uint32_t flags, uint32_t allowed, int64_t time, int64_t least)
{
	if ((flags & ~allowed) || !one_of(flags & TIMES))
		return false;
	if (flags & NOH_COUNTER_IN)
		return time >= least && time <= NOH_COUNTER_IN_MAX;
	if (flags & NOH_COUNTER_AT)
		return time >= -NOH_COUNTER_TIME_MAX && time <= NOH_COUNTER_TIME_MAX;
	return time == 0;
}

/* The instant that is meant, or 0: it is past already. */
static int64_t instant(noh_turn *turn, uint32_t flags, int64_t time)
{
	int64_t now = (int64_t)noh_wall_ms(turn);
	int64_t at = flags & NOH_COUNTER_IN ? now + time : time;

	return at > now ? at : 0;
}

static noh_counter_times times_of(noh_turn *turn, uint32_t outcome, const struct counter *c)
{
	if (c->until == 0)
		return (noh_counter_times){ .outcome = outcome, .left = -2, .at = -2 };
	if (c->until == FOREVER)
		return (noh_counter_times){ .outcome = outcome, .left = -1, .at = -1 };
	return (noh_counter_times){ .outcome = outcome, .left = c->until - (int64_t)noh_wall_ms(turn),
				    .at = c->until };
}

/* ── the messages ── */

static int get(noh_turn *turn, const noh_msg *msg)
{
	struct counter c = look(turn);
	noh_counter_value a = { .outcome = c.until ? NOH_COUNTER_OK : NOH_COUNTER_NONE,
				.existed = c.until != 0, .value = c.value };

	return msg->len == 0 ? answer_and_go(turn, &a, sizeof a) : malformed(turn, "counter GET", msg);
}

static int ttl(noh_turn *turn, const noh_msg *msg)
{
	struct counter c = look(turn);
	noh_counter_times a = times_of(turn, c.until ? NOH_COUNTER_OK : NOH_COUNTER_NONE, &c);

	return msg->len == 0 ? answer_and_go(turn, &a, sizeof a) : malformed(turn, "counter TTL", msg);
}

static int delete(noh_turn *turn, const noh_msg *msg)
{
	struct counter c = look(turn);
	noh_counter_value a = { .outcome = c.until ? NOH_COUNTER_OK : NOH_COUNTER_NONE,
				.existed = c.until != 0, .value = c.value };
	int rc;

	if (msg->len != 0)
		return malformed(turn, "counter DELETE", msg);
	rc = answer(turn, &a, sizeof a);
	return rc == NOH_OK ? noh_erase(turn) : rc;
}

/* What value becomes, and by how much. */
static uint32_t sum(int64_t value, const noh_counter_add *m, int64_t *out, int64_t *applied)
{
	bool beyond = __builtin_add_overflow(value, m->by, out);
	bool wide;

	if (beyond)
		*out = m->by > 0 ? INT64_MAX : INT64_MIN;
	if (beyond || *out < m->low || *out > m->high) {
		wide = beyond && (m->by > 0 ? m->high == INT64_MAX : m->low == INT64_MIN);
		if (!(m->flags & NOH_COUNTER_SATURATE))
			return wide ? NOH_COUNTER_OVERFLOW : NOH_COUNTER_OUT_OF_BOUNDS;
		*out = *out < m->low ? m->low : *out > m->high ? m->high : *out;
	}
	return __builtin_sub_overflow(*out, value, applied) ? NOH_COUNTER_OVERFLOW : NOH_COUNTER_OK;
}

static bool read_add(const noh_msg *msg, noh_counter_add *m)
{
	if (msg->len == sizeof(int64_t)) {
		*m = (noh_counter_add){ .low = INT64_MIN, .high = INT64_MAX };
		memcpy(&m->by, msg->body, sizeof m->by);
		return true;
	}
	if (msg->len != sizeof *m)
		return false;
	memcpy(m, msg->body, sizeof *m);
	return m->reserved == 0 && m->low <= m->high && times_make_sense(m->flags, ADD_FLAGS, m->time, 1) &&
	       (!(m->flags & NOH_COUNTER_IF_NO_TIME) || (m->flags & (NOH_COUNTER_IN | NOH_COUNTER_AT)));
}

static int add(noh_turn *turn, const noh_msg *msg)
{
	struct counter c = look(turn);
	noh_counter_added a = { .value = c.value };
	noh_counter_add m;
	int64_t value, applied;
	int rc;

	if (!read_add(msg, &m))
		return malformed(turn, "counter ADD", msg);
	a.outcome = sum(c.value, &m, &value, &applied);
	if (a.outcome != NOH_COUNTER_OK)
		return refuse_and_go(turn, &a, sizeof a);
	a.value = c.value = value;
	a.applied = applied;
	if (m.flags & NOH_COUNTER_PERSIST || c.until == 0)
		c.until = FOREVER;
	if ((m.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT)) &&
	    !((m.flags & NOH_COUNTER_IF_NO_TIME) && has_time(&c)))
		c.until = instant(turn, m.flags, m.time);
	rc = keep(turn, c);
	return rc == NOH_OK ? answer(turn, &a, sizeof a) : rc;
}

static bool read_set(const noh_msg *msg, noh_counter_set *m)
{
	uint32_t both = NOH_COUNTER_IF_NONE | NOH_COUNTER_IF_THERE;

	if (msg->len == sizeof(int64_t)) {
		*m = (noh_counter_set){ 0 };
		memcpy(&m->value, msg->body, sizeof m->value);
		return true;
	}
	if (msg->len != sizeof *m)
		return false;
	memcpy(m, msg->body, sizeof *m);
	return m->reserved == 0 && (m->flags & both) != both && times_make_sense(m->flags, SET_FLAGS, m->time, 1);
}

static int set(noh_turn *turn, const noh_msg *msg)
{
	struct counter c = look(turn);
	noh_counter_value a = { .existed = c.until != 0, .value = c.value };
	noh_counter_set m;
	int rc;

	if (!read_set(msg, &m))
		return malformed(turn, "counter SET", msg);
	if (m.flags & (c.until ? NOH_COUNTER_IF_NONE : NOH_COUNTER_IF_THERE)) {
		a.outcome = NOH_COUNTER_UNCHANGED;
		return refuse_and_go(turn, &a, sizeof a);
	}
	c.value = m.value;
	if (m.flags & (NOH_COUNTER_IN | NOH_COUNTER_AT))
		c.until = instant(turn, m.flags, m.time);
	else if (!(m.flags & NOH_COUNTER_KEEP) || c.until == 0)
		c.until = FOREVER;
	rc = keep(turn, c);
	return rc == NOH_OK ? answer(turn, &a, sizeof a) : rc;
}

static bool read_expire(const noh_msg *msg, noh_counter_expire *m)
{
	uint32_t when;

	if (msg->len != sizeof *m)
		return false;
	memcpy(m, msg->body, sizeof *m);
	when = m->flags & WHEN_FLAGS;
	if (when & NOH_COUNTER_IF_TIME && when & (NOH_COUNTER_IF_LATER | NOH_COUNTER_IF_EARLIER))
		when &= ~(uint32_t)NOH_COUNTER_IF_TIME;          /* these two go together */
	return m->reserved == 0 && (m->flags & TIMES) && one_of(when) &&
	       !((m->flags & NOH_COUNTER_PERSIST) && when) &&
	       times_make_sense(m->flags, NOH_COUNTER_IN | NOH_COUNTER_AT | NOH_COUNTER_PERSIST | WHEN_FLAGS,
				m->time, -NOH_COUNTER_TIME_MAX);
}

/* until: FOREVER, an instant, or 0 for one that is past. */
static bool condition_holds(uint32_t flags, const struct counter *c, int64_t until)
{
	if (flags & NOH_COUNTER_PERSIST)
		return has_time(c);
	if ((flags & NOH_COUNTER_IF_NO_TIME) && has_time(c))
		return false;
	if ((flags & NOH_COUNTER_IF_TIME) && !has_time(c))
		return false;
	if ((flags & NOH_COUNTER_IF_LATER) && until <= c->until)
		return false;
	return !((flags & NOH_COUNTER_IF_EARLIER) && until >= c->until);
}

static int expire(noh_turn *turn, const noh_msg *msg)
{
	struct counter c = look(turn);
	noh_counter_expire m;
	noh_counter_times a;
	int64_t until;
	int rc;

	if (!read_expire(msg, &m))
		return malformed(turn, "counter EXPIRE", msg);
	until = m.flags & NOH_COUNTER_PERSIST ? FOREVER : instant(turn, m.flags, m.time);
	if (c.until == 0 || !condition_holds(m.flags, &c, until)) {
		a = times_of(turn, c.until ? NOH_COUNTER_UNCHANGED : NOH_COUNTER_NONE, &c);
		return refuse_and_go(turn, &a, sizeof a);
	}
	c.until = until;
	rc = keep(turn, c);
	if (rc != NOH_OK)
		return rc;
	a = times_of(turn, NOH_COUNTER_OK, &c);
	return answer(turn, &a, sizeof a);
}

/* The timer: its time is over, or was further off than a schedule reaches. */
static int expired(noh_turn *turn)
{
	struct counter c = look(turn);

	if (c.until == 0)
		return noh_erase(turn);
	return c.until == FOREVER ? NOH_OK : wake_at(turn, c.until);
}

/* Many at once: one change, one record, an answer to each. Only of what a busy key gets: plain additions and looks, no
 * time, no overflow. Anything else is run message by message. */
static int on_batch(noh_turn *turn, const noh_msg *msgs, uint32_t count)
{
	struct counter c = look(turn);
	bool changed = false;

	if (c.until != FOREVER)
		return NOH_EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		noh_counter_value seen = { .outcome = NOH_COUNTER_OK, .existed = 1, .value = c.value };
		noh_counter_added added = { .outcome = NOH_COUNTER_OK };
		int rc;

		if (msgs[i].kind == NOH_COUNTER_GET && msgs[i].len == 0) {
			rc = noh_reply_to(turn, &msgs[i], &seen, sizeof seen);
		} else if (msgs[i].kind == NOH_COUNTER_ADD && msgs[i].len == sizeof added.applied) {
			memcpy(&added.applied, msgs[i].body, sizeof added.applied);
			if (__builtin_add_overflow(c.value, added.applied, &c.value))
				return NOH_EINVAL;
			added.value = c.value;
			changed = true;
			rc = noh_reply_to(turn, &msgs[i], &added, sizeof added);
		} else {
			return NOH_EINVAL;
		}
		if (rc < 0)
			return rc;
	}
	return changed ? keep(turn, c) : NOH_OK;
}

static int on_message(noh_turn *turn, const noh_msg *msg)
{
	switch (msg->kind) {
	case NOH_COUNTER_GET: return get(turn, msg);
	case NOH_COUNTER_ADD: return add(turn, msg);
	case NOH_COUNTER_SET: return set(turn, msg);
	case NOH_COUNTER_DELETE: return delete(turn, msg);
	case NOH_COUNTER_EXPIRE: return expire(turn, msg);
	case NOH_COUNTER_TTL: return ttl(turn, msg);
	case NOH_COUNTER_EXPIRED: return expired(turn);
	}
	return noh_fail(turn, "a counter has no message of kind %u", msg->kind);
}

static const noh_kind kinds[NOH_COUNTER_KINDS] = {
	[NOH_COUNTER_GET] = { .name = "get" },
	[NOH_COUNTER_ADD] = { .name = "add" },
	[NOH_COUNTER_SET] = { .name = "set" },
	[NOH_COUNTER_DELETE] = { .name = "delete" },
	[NOH_COUNTER_EXPIRE] = { .name = "expire" },
	[NOH_COUNTER_TTL] = { .name = "ttl" },
	[NOH_COUNTER_EXPIRED] = { .name = "expired", .flags = NOH_KIND_TIMER },
};

/* C-01: what is full makes its senders wait; nothing that was accepted is dropped. */
static const noh_type type = {
	.name = "counter",
	.state_size = sizeof(struct counter),
	.mailbox_capacity = 4096,
	.full_mode = NOH_BLOCK,
	.idle_timeout_ms = 300000,
	.kinds = kinds,
	.kind_count = NOH_COUNTER_KINDS,
	.on_message = on_message,
	.on_batch = on_batch,
	.version = 1,
	.schema = 1,
	.from_json = counter_from_json,
	.to_json = counter_to_json,
};

const noh_type *noh_counter_type(void)
{
	return &type;
}
