/* sched/durable.h - what makes a turn durable: its record, its answer's wait, its messages' names.
 *
 * In a box without a data directory nothing here runs but the question whether there is one.
 *
 * Order at the end of a turn (DESIGN.md 6): tag = epoch; the record is written and pushed; due = epoch
 * again; cell.due; only then is anything of the turn visible to others. An answer leaves when
 * durable >= due: until then it waits in its worker's gate.
 *
 * Owns     the gate. Records are the journal's once pushed.
 * Threads  the worker that runs the actor; durable_raise and sched_durable: any.
 */
#ifndef NOH_SCHED_DURABLE_H
#define NOH_SCHED_DURABLE_H

#include "core/record.h"
#include "sched/turn.h"

/* No image of it is stored: it is new, or was erased. In the word that holds its sequence. */
#define SEQ_BARE (UINT64_C(1) << 63)

static inline bool sched_is_durable(const struct sched *s)
{
	return s->journal.arg != NULL;
}
static inline atomic_u64 *body_due(struct body *b)         /* in a durable box only */
{
	return (atomic_u64 *)(void *)b->data;
}
static inline uint64_t *body_seq(struct body *b)
{
	return (uint64_t *)(void *)(b->data + 8);
}
static inline uint64_t body_hash(struct cell *c)
{
	return load_relaxed(&c->body->hash);
}
static inline const struct envelope *msg_envelope(const noh_msg *m)
{
	return m->flags & MSG_WRAPPED ? (const struct envelope *)m->body - 1 : NULL;
}

/* Its caller wants the answer without waiting for the disk. */
static inline bool msg_at_once(const noh_msg *m)
{
	const struct envelope *env = msg_envelope(m);

	return env && (env->flags & ENVELOPE_MEMORY);
}

/* Before user code runs: room for its record and its answers. False: not now. What was found is there until this worker
 * uses some of it; it looks again in every pass. */
bool durable_look_for_room(struct worker *w);
static inline bool durable_room(struct worker *w)
{
	return w->mine.has_room || durable_look_for_room(w);
}

/* The disk is full, and this message's end could not be recorded: it has to wait. (What comes from outside
 * and wants to change something is refused instead: its caller can be told.) */
static inline bool durable_waits(struct worker *w, const noh_msg *m)
{
	const struct envelope *env = msg_envelope(m);

	return w->mine.read_only &&
	       ((env && env->seq) || (m->flags & NOH_MSG_TIMER));
}

/* For whoever writes a record by himself: reserve, write, push; sets the turn's due. */
uint64_t durable_next_seq(struct cell *c, uint64_t tag);
void durable_push(struct worker *w, struct cell *c, uint64_t seq);

/* The same for few parts that are known: put() is called twice, to count and to write. `kept`: something of the actor is in
 * it, so it exists then. NOH_OK (also if there was nothing to write); NOH_ENOSPC, NOH_ENOMEM. */
struct sink;
typedef void durable_put_fn(struct sink *k, struct worker *w, struct cell *c, void *arg);
int durable_note(struct worker *w, struct cell *c, bool kept, durable_put_fn *put, void *arg);

/* Write the record of the turn that just succeeded, and name its messages; not visible yet. NOH_OK, or
 * why the turn has to fail instead. */
int  durable_prepare(struct worker *w, struct cell *c);
void durable_commit(struct worker *w, struct cell *c);     /* push it; sets the turn's due */
void durable_tell(struct worker *w);                       /* whom it wrote to, when: before they hear it */
void durable_undo(struct worker *w);                       /* prepared, but the turn fails after all */
void durable_failed(struct worker *w, struct cell *c);     /* the turn had no effect: its messages are used up */
void durable_dropped(struct worker *w, struct cell *c, const struct msg *m);   /* so is this one */

/* A step over several actors: their turns' records are gathered and pushed as one. */
struct durable_key {                       /* of the whole step, in the record of who keeps it */
	const void *key;
	size_t      key_len;
	struct part_idem part;
	const void *answer;
	size_t      len;
};
struct durable_group {
	uint64_t tag;                      /* the epoch, once all of its actors are held */
	uint8_t *bytes;
	size_t   len, room;
};
int  durable_prepare_part(struct worker *w, struct cell *c, struct durable_group *g,
			  const struct durable_key *key);          /* key: NULL for all but one */
int  durable_push_group(struct worker *w, struct durable_group *g, uint64_t *due);   /* due: as it was if empty */

uint64_t durable_print(const noh_msg *m);                  /* of kind and body: is it the same message? */

/* The answer to a keyed message that was handled before. True: answered, do not run it. */
bool durable_repeated(struct worker *w, struct cell *c, const noh_msg *m);
void durable_replayed(struct worker *w, const struct type *t, uint64_t reply);   /* counts it; reply: who waits */

/* Whatever `due` belongs to has become known to this actor: what it says from now on waits as well.
 * In an epoch section. */
void durable_raise(struct cell *c, uint64_t due);

/* ── the gate: gate.c ── */
bool gate_room(struct gate *g);                            /* for the answers of one turn */
void gate_complete(struct port *p, uint64_t token, int status, const void *body, size_t len);
void gate_answer(struct worker *w, uint64_t due, uint64_t token, int status, const void *body,
		 size_t len);
void gate_trace(struct worker *w, uint64_t due, const void *body, size_t len);   /* trace.h: MSG_INLINE at most */
uint32_t gate_open(struct worker *w, struct port *p);      /* what may leave, leaves: how many */
void gate_end(struct worker *w, int status);               /* the box ends: all that is left   */
void gate_free(struct worker *w);

#endif
