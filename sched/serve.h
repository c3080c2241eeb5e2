/* sched/serve.h - what the parts of serving an actor share (serve.c, extra.c, rest.c, window.c).
 *
 * Owns     nothing.   Threads  whoever runs the actor: it is BUSY, and that is you.
 */
#ifndef NOH_SCHED_SERVE_H
#define NOH_SCHED_SERVE_H

#include "sched/newborn.h"
#include "sched/poison.h"
#include "sched/supervise.h"

/* serve.c */
int  serve_turn(struct worker *w, struct cell *c, const noh_msg *msgs, uint32_t n, bool retry);
void serve_failed(struct worker *w, int rc);
void serve_answer_failed(struct worker *w, int rc);     /* the rest of it: undone, and its end recorded */
int  serve_broken_code(struct worker *w, struct cell *c);       /* why it is not active, for who asked */
void serve_tell_broken(struct worker *w, struct cell *c, uint64_t token);      /* the same, said */
void serve_activate(struct worker *w, struct cell *c);
struct cell *serve_finish(struct worker *w, struct cell *c, struct type *ty, const noh_msg *m, const struct msg *owned,
			  struct slot *slot, int rc, uint32_t budget, struct effect **in_hand);

/* rest.c - actors that wait for room or for an answer */
void rest_after_turn(struct worker *w, struct cell *c, int rc);
bool rest_park(struct worker *w, struct cell *c);       /* true: parked, and not ours any more */
void rest_wake_some(struct worker *w, struct cell *c, struct type *t, uint32_t waiting);

/* extra.c - messages beside the mailbox */
void extra_keep(struct worker *w, struct cell *c, const noh_msg *m, const struct msg *owned,
		bool in_front);
void extra_put_down(struct worker *w, struct cell *c, struct effect **in_hand);   /* it cannot take it now */
void extra_refuse(struct worker *w, struct cell *c, const struct msg *m);
bool extra_again(struct cell *c, const noh_msg *m, const struct msg *owned);   /* behind the others */
bool extra_waits(struct worker *w, struct cell *c);   /* its next message needs a disk with room */
void extra_redo(struct worker *w, struct cell *c);
void extra_sys_lane(struct worker *w, struct cell *c);

/* serve_ring.c - one message after the other, the short way: how many. cur stands at the next one. *next: the actor
 * to go on with, with *in_hand. */
uint32_t serve_ring(struct worker *w, struct cell *c, struct type *ty, struct mb_cursor *cur, uint32_t budget,
		    struct effect **in_hand, struct cell **next);

/* window.c - batches and coalescing: takes what waits behind `first`, too; returns how many */
uint32_t window_serve(struct worker *w, struct cell *c, struct type *t, struct slot *first);

static inline bool cell_rests(const struct cell *c)
{
	return (c->flags & (CELL_BLOCKED | CELL_WAITING)) != 0;
}

static inline bool cell_refuses(const struct cell *c)
{
	return (c->flags & CELL_BROKEN) || (c->ext && c->ext->forced);
}

static ALWAYS_INLINE void to_public(noh_msg *out, const struct msg *m)
{
	memcpy(&out->kind, &m->kind, 8);     /* kind and len stand side by side in both */
	out->len &= ~MSG_WRAPPED;
	out->body = msg_body(m);
	out->flags = (m->reply != 0) | (m->len & MSG_WRAPPED);   /* NOH_MSG_WANTS_REPLY, and ours */
	out->status = NOH_OK;
	out->ask = 0;
	out->reply_to = m->reply;
}

/* Nothing left for c once this turn is over: then its last message may be handed on. */
static ALWAYS_INLINE bool at_its_end(struct worker *w, struct cell *c, uint32_t budget)
{
	uint64_t word = load_relaxed(&c->mailbox.word);

	return budget > 1 && !(word & (MB_SYS | MB_WAIT)) && cell_plain(c) &&
	       !(w->mine.turn.so_far.flags & (TURN_STOP | TURN_RESTS)) &&
	       (mb_ring(word) == 0 || mb_tail(word) == mb_tail(load_relaxed(&c->mailbox.head)));
}

/* NOH_OK: committed. NOH_FULL: undone, to be run again. Below zero: undone and failed; with
 * `retry`, undone only. */
static ALWAYS_INLINE int end_turn(struct worker *w, struct cell *c, int rc, uint32_t budget,
				  bool single, bool retry, struct effect **handed)
{
	struct noh_turn *t = &w->mine.turn;

	if (__builtin_expect((t->so_far.flags & (TURN_BIRTHS | TURN_REFUSED)) || rc == NOH_REFUSED, 0))
		rc = turn_settle(w, rc);
	if (__builtin_expect(t->type->durable, 0) && (rc == NOH_OK || (rc > 0 && rc != NOH_FULL)))
		rc = durable_prepare(w, c);
	if (__builtin_expect(rc == NOH_OK || (rc > 0 && rc != NOH_FULL), 1)) {
		*handed = turn_commit(w, c, at_its_end(w, c, budget), single);
		count_one(&t->counts->handled, single ? 1 : t->msg_count);
		turn_counted(c, t->type, single ? 1 : t->msg_count);
		return NOH_OK;
	}
	*handed = NULL;
	if (rc == NOH_FULL && !t->so_far.full_on)
		rc = noh_fail(t, "returned NOH_FULL, but no other actor's mailbox refused it");
	if (rc == NOH_FULL || retry) {
		turn_undo(w);
		return rc;
	}
	if (__builtin_expect(t->type->supervised, 0))
		return supervise_turn_failed(w, c, rc);
	serve_failed(w, rc);
	return rc;
}

static ALWAYS_INLINE void after_turn(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;

	if (__builtin_expect(rc == NOH_FULL || (t->so_far.flags & TURN_RESTS), 0))
		rest_after_turn(w, c, rc);
}

#endif
