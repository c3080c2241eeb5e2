/* sched/pending.h - answers that somebody waits for: an actor that has asked, a thread, a function to call.
 *
 * Each has a token. Whoever answers, gives up or lets the deadline pass first is the one who tells; the others find nothing.
 * REPLY_STEP is no token: what a part of a step answers goes to the step.
 *
 * Owns     what waits.   Threads  any.
 */
#ifndef NOH_SCHED_PENDING_H
#define NOH_SCHED_PENDING_H

#include "noh.h"

struct cell;
struct msg;
struct port;
struct sched;
struct worker;

#define REPLY_STEP (UINT64_C(1) << 32)
#define REPLY_TRACE (UINT64_C(2) << 32)        /* nor is this: in the gate, a span that waits for the disk */
enum { PENDING_ASK, PENDING_CALL, PENDING_THEN };
size_t pending_size(void);
size_t pending_link(void);
uint64_t pending_ask(struct worker *w, struct cell *c, uint32_t answer_kind, uint64_t due_ms);
uint64_t pending_call(struct port *p, void *answer, size_t room);
uint64_t pending_then(struct port *p, noh_done_fn *done, void *user);
void pending_deadline(struct port *p, uint64_t token, uint64_t due_ms);
bool pending_waits(struct sched *s, uint64_t token);
bool pending_is_ask(struct sched *s, uint64_t token);
noh_actor pending_asker(struct sched *s, uint64_t token);            /* { 0 }: not an ask's */
uint32_t pending_answer_kind(struct sched *s, uint64_t token);
uint64_t pending_number(struct sched *s, uint64_t token);            /* as the asker knows it */
void pending_set_number(struct sched *s, uint64_t token, uint64_t number);
bool pending_answer_msg(struct port *p, uint64_t token, int status, struct msg *m);   /* takes its envelope */
bool pending_answerable(struct port *p, uint64_t token);    /* false: it is an ask's, and there is no memory for it now */
void pending_end_all(struct port *p);                       /* when nothing runs any more */
void pending_fetch(struct sched *s, uint64_t token);        /* it will be completed soon */
bool pending_complete(struct port *p, uint64_t token, int status, const void *body, size_t len);
void pending_drop(struct port *p, uint64_t token);          /* rolled back before it was sent */
void pending_expired(struct port *p, uint64_t token);
int  pending_wait(struct sched *s, uint64_t token, uint64_t until_ns, size_t *answer_len);

#endif
