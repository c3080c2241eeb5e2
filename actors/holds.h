/* actors/holds.h - the books of an article and its holds: what inventory.c decides on, and changes.
 *
 * The books are the state. Holds are in the key-value part, so that a turn writes what it changes and costs
 * the same with ten open holds as with a hundred thousand:
 *
 *	h  hold            an open hold: how many, until when
 *	e  time  hold      the open holds that have a time, in the order of their times
 *	d  hold            one that has ended: how many, how
 *	l  number          the ended ones in the order they ended: which, when
 *
 * (Numbers are big-endian, so that their order is that of the keys, and of 7 bytes, so that most keys are of
 * 8: those are compared as one number.) One schedule is armed for the earliest of both: the next hold that is
 * past its time, and the oldest that need not be remembered any longer. It works in slices; what it has not
 * come to yet is overdue.
 *
 * Owns     the layout of state and entries, and the schedule.
 * Threads  the turn's. All of it returns NOH_OK or what the turn is to return.
 * Never    looks at a message, or answers one.
 */
#ifndef NOH_ACTORS_HOLDS_H
#define NOH_ACTORS_HOLDS_H

#include "noh_actors.h"

#define NEVER (-1)

struct books {
	int64_t  on_hand, reserved, available, sold, restocked, adjusted;
	uint64_t next_hold;          /* its number; 0: there is no such SKU             */
	uint64_t first_ended;        /* numbers of the list of the ended: from here ... */
	uint64_t next_ended;         /* ... up to here                                  */
	int64_t  wakes;              /* nothing is overdue, or to be forgotten, before; 0: nothing is at all */
	uint64_t holds;              /* open */
};

struct open_hold { int64_t n, expires; };            /* expires: NEVER, or the instant */
struct ended_hold { int64_t n; uint64_t how; };      /* how: NOH_INVENTORY_COMMITTED, RELEASED, EXPIRED */
struct overdue { int64_t n; uint32_t holds; };

/* The last step of every turn that changed the books: they balance, or the turn fails. */
int books_close(noh_turn *turn, const struct books *b);

/* What is past its time and still counted as open: a slice of it at most. And its end. */
int holds_overdue(noh_turn *turn, const struct books *b, int64_t now, struct overdue *out);
int holds_end_overdue(noh_turn *turn, struct books *b, int64_t now, uint32_t count);

/* Or NOH_END: not open; not remembered. */
int holds_find(noh_turn *turn, uint64_t hold, struct open_hold *h);
int holds_find_ended(noh_turn *turn, uint64_t hold, struct ended_hold *h);

/* A new one, and its number. The goods are there. */
int holds_take(noh_turn *turn, struct books *b, struct open_hold h, int64_t now, uint64_t *hold);

/* From open to ended, with what becomes of the goods. */
int holds_end(noh_turn *turn, struct books *b, uint64_t hold, struct open_hold h, uint64_t how, int64_t now);

/* One page. It looks at no more entries than it may list, so there may be fewer in it. */
int holds_list(noh_turn *turn, uint64_t cursor, uint32_t limit, noh_inventory_holds *head,
	       noh_inventory_hold *list);

/* The timer. */
int holds_wake(noh_turn *turn);

#endif
