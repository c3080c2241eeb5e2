/* sched/late.h - what a finished turn has sent, and there is no memory to deliver it with.
 *
 * A message that was sent is delivered. But after its turn was committed, and perhaps recorded, there may be no ring
 * for the receiver's mailbox, or no cell for a receiver that went back to storage meanwhile. Then the worker keeps
 * what is left of the turn's messages, and tries again with every pass.
 *
 * The sender waits as long. It is late (cell_late): BUSY, and the worker's; it stands in no queue, runs nothing, and
 * does not go. So whatever it sends next comes next (P3), on whichever worker it runs then; nobody else waits. (A worker that
 * is stuck in a long turn keeps what it has until that ends: nobody helps it out with these.)
 *
 * One exception: a message in hand whose receiver has just become late (in its on_activate), or has to rest, is put down beside
 * the mailbox, and that takes memory (extra_put_down). If there is none it fails like a turn's message: NOH_ENOMEM to
 * whoever asked, counted, and its end recorded.
 *
 * Space first: a turn whose messages are recorded is committed only if they could be kept (late_reserve). What other
 * turns send is a dead letter if not even that can be had, and counted.
 *
 * Owns     the messages it keeps.
 * Threads  the worker; late_discard: when none runs any more.
 * Never    lets a turn fail after its commit. late_keep and late_retry allocate for others, never for what was reserved.
 */
#ifndef NOH_SCHED_LATE_H
#define NOH_SCHED_LATE_H

#include "sched/sched.h"

#define LATE_NAP_NS 1000000u             /* between two tries of a worker with nothing else to do           */
#define FX_DONE (UINT32_MAX - 1)         /* msg.len of an effect that is not to be kept (FX_SPAWN: hands.h) */

struct late_turn {
	struct late_turn *next;
	uint64_t       due;              /* of the turn                                     */
	uint32_t       sender;           /* a cell                                          */
	uint32_t       at;               /* of fx: the next to go                           */
	uint32_t       first;            /* place in the turn of what is first here: by it letters are found */
	uint32_t       letters_len;
	struct effects fx;
	struct letters letters;
};

/* For the turn that is about to be committed, if it sends anything. False: no memory. */
bool late_reserve(struct worker *w);

/* Its messages from this one on, of which the first had that place in the turn; the same turn may add more. False: no
 * memory, they stay the caller's. */
bool late_keep(struct worker *w, const struct effect *rest, uint32_t n, uint32_t place);

uint32_t late_retry(struct worker *w);                   /* how many went. In an epoch section */
void late_give(struct worker *w, struct late_turn *spare);    /* one that was reserved, and set aside; NULL is fine */
void late_discard(struct worker *w, struct port *p);     /* the box is at its end; counted by p */
void late_free(struct worker *w);

#endif
