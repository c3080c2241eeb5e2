/* sched/step.h - a step over several actors: all of their turns at one moment, or none of them.
 *
 * A step takes its actors one after the other, in the order of their hashes: one that is idle by claiming it,
 * a busy one by a token in its system lane, which waits there until everything is handled that was in the
 * mailbox before it. An actor that was taken is *held*: BUSY, and the step stands for it; so it runs nothing,
 * emits nothing, is not evicted, and its messages queue. With the last one the turns are run, on the worker that
 * took it (step_turn.c), and all are let go. Why nobody waits for ever: docs/notes/step.md.
 * Whose the step is, a word says: step_word.h.
 *
 * Owns     copies of what its caller passed, and the actors it holds.
 * Threads  step_start: any. The others: the runner of the actor; step_lost, step_discard: whoever found it so.
 * Never    blocks; allocates before it runs.
 */
#ifndef NOH_SCHED_STEP_H
#define NOH_SCHED_STEP_H

#include "sched/durable.h"
#include "sched/step_word.h"

struct step_part {
	struct cell *cell;         /* as it was last found; NULL: look for it                */
	struct type *type;
	const char  *address;      /* "type:id"                                              */
	size_t       address_len;
	uint64_t     hash;
	uint64_t     place;        /* in its mailbox: what was claimed before is handled before */
	uint32_t     gen;
	bool         placed;       /* it has that place, in this cell                        */
	noh_msg      msg;
	struct msg   answer;       /* as long as it runs: what the turn has answered         */
	int          status;
};

struct step {
	struct sysmsg    node;     /* the token */
	struct sched    *sched;
	atomic_u32       state, refs;      /* refs: who works on it (or its token), and its caller */
	uint32_t         count, held;
	bool             again;    /* it had to let all go: begin with the first             */
	bool             at_once;  /* its answer need not wait for the disk                  */
	uint64_t         token;    /* of the pending answer                                  */
	uint64_t         asked_by; /* token of the network's, which waits for that; 0: none  */
	uint64_t         print;    /* of all parts: is it the same step?                     */
	uint32_t         keeper;   /* the place in parts of who keeps the key                */
	const void      *key;
	size_t           key_len;
	size_t           bytes;    /* of this allocation                                     */
	noh_step_fn     *done;
	void            *user;
	uint32_t        *order;    /* places in parts, by hash                               */
	uint32_t        *answered; /* and in the order of answers: with a key, by name       */
	noh_part_answer *answers;
	struct step_part parts[];
};

/* How answers travel, and are kept with a key: for each part (in the order of `answered`: a retry may name them in another
 * one) this, then the body, padded to 8. */
struct step_answer { int32_t status; uint32_t len; };

/* Its token is set. In place if this is a worker between two turns. */
void step_start(struct port *p, struct step *s);
void step_told(void *step, int status, const void *body, size_t len);    /* a noh_done_fn, once */

/* ── for serve.c and its like ── */
enum step_met { STEP_NONE, STEP_WENT, STEP_HOLDS };          /* HOLDS: c is not ours any more */
void step_queue(struct worker *w, struct cell *c, struct sysmsg *n);     /* a token has come  */
enum step_met step_meet(struct worker *w, struct cell *c);   /* about to take its next message */
void step_yield(struct worker *w, struct cell *c);           /* c is about to rest            */
void step_refuse(struct worker *w, struct cell *c, int status);          /* all that wait here */
void step_lost(struct port *p, struct sysmsg *n);            /* its actor went before         */
void step_discard(struct sysmsg *n);                         /* the box is at its end         */

/* ── step.c and step_turn.c ── */
void step_run(struct worker *w, struct step *s);             /* all are held */
void step_let_go(struct port *p, struct step *s);
void step_end(struct worker *w, struct step *s, uint64_t due, int status, const void *body, size_t len);

static inline struct step_part *step_part_at(struct step *s, uint32_t i)     /* the ith to take */
{
	return &s->parts[s->order[i]];
}

#endif
