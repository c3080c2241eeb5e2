/* mailbox/inbox.h - runnable actors on their way to a worker, from threads that are not it.
 *
 * Owns     a stack of cell numbers, linked through mailbox.link; a BUSY cell is in one place only,
 *          so the link is free. Taken whole, so numbers may come back without harm (no ABA).
 * Threads  push: any.  inbox_take: any, normally its worker; others when the worker is stuck.
 *
 * A list can only be followed one cell after the other, and their lines are in the pushers' caches. So beside its top stands
 * who was pushed last: a hint, by which the worker fetches them all at once. Two pushers may write over each other there.
 */
#ifndef NOH_MAILBOX_INBOX_H
#define NOH_MAILBOX_INBOX_H

#include "mailbox/mailbox.h"

#define INBOX_RECENT 8

struct inbox {
	atomic_u32 top;
	atomic_u32 pushes;                     /* about so many */
	atomic_u32 recent[INBOX_RECENT];
};

/* Model checkers have no caches. */
#ifdef NOH_ATOMIC_BACKEND
static inline void inbox_note(struct inbox *in, uint32_t number) { (void)in; (void)number; }
#else
static inline void inbox_note(struct inbox *in, uint32_t number)
{
	uint32_t nth = load_relaxed(&in->pushes);

	store_relaxed(&in->recent[nth % INBOX_RECENT], number);
	store_relaxed(&in->pushes, nth + 1);
}
#endif

/* True if it was empty: then the caller wakes the worker. seq_cst against park.h. */
static inline bool inbox_push(struct inbox *in, uint32_t number, struct mailbox *m)
{
	uint32_t top = load_relaxed(&in->top);

	inbox_note(in, number);                /* before: the line is ours from here on */
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
