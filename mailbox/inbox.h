/* mailbox/inbox.h - runnable actors on their way to a worker, from threads that are not it.
 *
 * Owns     a stack of cell numbers, linked through mailbox.link; a BUSY cell is in one place only,
 *          so the link is free. Taken whole, so numbers may come back without harm (no ABA).
 * Threads  push: any.  inbox_take: any, normally its worker; others when the worker is stuck.
 */
#ifndef NOH_MAILBOX_INBOX_H
#define NOH_MAILBOX_INBOX_H

#include "mailbox/mailbox.h"

struct inbox {
	atomic_u32 top;
};

/* True if it was empty: then the caller wakes the worker. seq_cst against park.h. */
static inline bool inbox_push(struct inbox *in, uint32_t number, struct mailbox *m)
{
	uint32_t top = load_relaxed(&in->top);

	do {
		store_relaxed(&m->link, top);
	} while (!cas_seq_cst(&in->top, &top, number));
	return top == 0;
}

static inline bool inbox_has(struct inbox *in)
{
	return load_seq_cst(&in->top) != 0;
}

/* The newest; follow mailbox.link. The caller runs them oldest first. */
static inline uint32_t inbox_take(struct inbox *in)
{
	return load_relaxed(&in->top) ? swap_seq_cst(&in->top, 0) : 0;
}

#endif
