/* sched/turn.h - the beginning and the end of a turn, as far as every message pays for it.
 *
 * Owns     nothing: the turn is the worker's.   Threads  the worker that runs the actor.
 * The rare parts are in turn.c.
 */
#ifndef NOH_SCHED_TURN_H
#define NOH_SCHED_TURN_H

#include "sched/sched.h"

#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

int  turn_read_only(noh_turn *t);                        /* NOH_EREADONLY, with a sentence        */
bool effects_grow(struct effects *fx);
struct letter { uint32_t effect, len; };                 /* before each address in letters        */

void durable_commit(struct worker *w, struct cell *c);   /* durable.h */
void durable_tell(struct worker *w);
int  turn_settle(struct worker *w, int rc);              /* its newborns; or it is refused        */
void turn_answer_rest(struct worker *w);                 /* an empty answer to who got none       */
void turn_answer(struct worker *w, const noh_msg *m, int status);
void turn_answer_failed(struct worker *w, const noh_msg *m, int status);
void turn_publish(struct worker *w, uint32_t count);     /* the first so many effects, and clear  */
void turn_publish_last(struct worker *w, struct effect *e, bool in_hand);   /* in_hand: if its actor is idle */
/* How many of them went; 0: there is no memory for the first now. Then it and the rest are for turn_publish_late. */
uint32_t turn_publish_run(struct worker *w, struct effect *e, uint32_t most);
void turn_publish_late(struct worker *w, struct effect *rest, uint32_t n);
/* An effect's place in its turn, by which its address is found, and when the turn is on disk. */
struct noted { const char *letters; uint32_t size, effect; uint64_t due; };
bool turn_publish_again(struct worker *w, struct effect *e, const struct noted *at);
/* n wait, or will: `own` of them are this turn's. */
int  tell_no_room(noh_turn *t, struct type *ty, uint32_t number, uint32_t gen, int64_t n, int64_t own);
int  tell_too_big(struct sched *s, size_t len);
int  tell_no_memory(noh_turn *t, size_t len);
bool turn_note_address(noh_turn *t, uint32_t effect, const char *address, size_t len);
const char *turn_letter(const noh_turn *t, const struct effect *e, uint32_t *len);   /* NULL: by reference */
void turn_note_full(noh_turn *t, uint32_t *on, uint32_t *on_gen, uint32_t cell, uint32_t gen);
void newborn_publish(struct worker *w);                  /* newborn.h */
void turn_commit_rest(struct worker *w);                 /* key-value part, schedules, stop, trace */
void trace_turn_begins(struct worker *w);                /* trace.h */

static inline bool type_reads(const struct type *ty, uint32_t kind)
{
	return kind < ty->pub.kind_count && (ty->pub.kinds[kind].flags & NOH_KIND_READ);
}

/* What stays the same from turn to turn of one actor; then, what does not. */
static ALWAYS_INLINE void turn_begin_stretch(struct worker *w, struct cell *c, struct type *ty,
					     const noh_msg *msgs, uint32_t count)
{
	struct noh_turn *t = &w->mine.turn;

	store_relaxed(&t->cell, c);
	t->type = ty;
	t->msgs = msgs;
	t->msg_count = count;
	t->counts = &w->mine.port.types[ty->index];
}

static ALWAYS_INLINE void turn_begin_next(struct worker *w)
{
	count_one(&w->shown.counts.turns, 1);
	memset(&w->mine.turn.so_far, 0, sizeof w->mine.turn.so_far);
}

/* Of a type without read-only kinds. */
static ALWAYS_INLINE void turn_begin_plain(struct worker *w, struct cell *c, struct type *ty,
					   const noh_msg *msgs, uint32_t count)
{
	turn_begin_stretch(w, c, ty, msgs, count);
	turn_begin_next(w);
}

static ALWAYS_INLINE void turn_begin(struct worker *w, struct cell *c, struct type *ty,
				     const noh_msg *msgs, uint32_t count)
{
	turn_begin_plain(w, c, ty, msgs, count);
	if (__builtin_expect(ty->reads, 0) && count == 1 && type_reads(ty, msgs[0].kind))
		w->mine.turn.so_far.flags = TURN_READONLY;
}

/* So many messages of c have met their end in a turn. */
static ALWAYS_INLINE void turn_counted(struct cell *c, const struct type *ty, uint32_t n)
{
	if (__builtin_expect(ty->counted, 0))
		count_one(body_handled(load_relaxed(&c->body), ty), n);
}

/* Its state is not what is stored. A durable one exists when its record is pushed (durable.c), others
 * from their first change on. */
static ALWAYS_INLINE void turn_changed(struct worker *w, struct cell *c)
{
	struct noh_turn *t = &w->mine.turn;

	c->flags |= CELL_DIRTY;
	if (__builtin_expect(!(load_relaxed(&c->life) & LIFE_THERE), 0) && !t->type->durable &&
	    !(t->so_far.flags & (TURN_READONLY | TURN_ERASE)))
		life_comes(&w->mine.port, c, false);
}

/* The last message (not a spawn) may go to an idle actor directly: claim it. */
static ALWAYS_INLINE bool turn_hand_on(struct worker *w, struct effect *last)
{
	struct noh_turn *t = &w->mine.turn;
	struct cell *to = cell_at(t->sched, last->cell);
	struct effects *fx = t->fx;

	/* Nobody (an answer) and itself are never idle. */
	if (!mailbox_claim(&to->mailbox, last->gen))
		return false;
	fx->count = 0;
	t->fx = t->other_fx;
	t->other_fx = fx;
	return true;
}

/* All of its effects, in order; the last one is handed on if it may be, and returned then. */
static ALWAYS_INLINE struct effect *turn_publish_all(struct worker *w, bool at_end)
{
	struct noh_turn *t = &w->mine.turn;
	struct effects *fx = t->fx;
	struct effect  *last = &fx->list[fx->count - 1];

	if (__builtin_expect(fx->count > 1, 0)) {
		turn_publish(w, fx->count - 1);
		at_end = at_end && !(t->so_far.flags & TURN_LATE);
	}
	if (at_end && last->msg.len != FX_SPAWN && turn_hand_on(w, last))
		return last;
	turn_publish_last(w, last, !at_end);
	fx->count = 0;
	return NULL;
}

/* Everything of the turn becomes real. If its actor is at its end and the last thing it did was to
 * write to an actor that is idle, that one is claimed and the message for it returned: the caller
 * releases this actor and goes on with that one. */
static ALWAYS_INLINE struct effect *turn_commit(struct worker *w, struct cell *c, bool at_end,
						bool single)
{
	struct noh_turn *t = &w->mine.turn;
	struct effects  *fx = t->fx;
	struct effect   *handed = NULL;

	if (__builtin_expect(t->sched->journal.arg != NULL, 0))
		durable_commit(w, c);
	if (t->so_far.state) {
		if (__builtin_expect(t->type->reads, 0) && !(t->so_far.flags & TURN_READONLY))
			turn_publish_state(c, t->type, t->so_far.state);
		turn_changed(w, c);
	}
	if (__builtin_expect(t->so_far.flags & (TURN_KV | TURN_TIMERS | TURN_STOP | TURN_ERASE | TURN_TOPICS |
					      TURN_TRACED | TURN_EVENTS | TURN_VITALS | TURN_WATCHES), 0))
		turn_commit_rest(w);
	if (__builtin_expect(t->sched->journal.arg != NULL, 0) && fx->count)
		durable_tell(w);
	if (__builtin_expect(t->so_far.flags & TURN_BIRTHS, 0))
		newborn_publish(w);
	if (fx->count)
		handed = turn_publish_all(w, at_end);
	if (single ? t->msgs[0].reply_to && !t->so_far.replied : t->msg_count != 0)
		turn_answer_rest(w);
	return handed;
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
	} else if (len >= 4) {
		memcpy(to, f, 4);
		memcpy(to + len - 4, f + len - 4, 4);
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

static ALWAYS_INLINE struct effect *effect_new(noh_turn *t)
{
	struct effects *fx = t->fx;

	if (__builtin_expect(fx->count == fx->room, 0) && !effects_grow(fx))
		return NULL;
	return &fx->list[fx->count];
}

#endif
