/* noh_actors.h - the actor types that come with noh: counters, inventory, and messages for later.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They are ordinary types, written against noh.h: register them, then send and call as with your own.
 *
 *	noh_register(box, noh_counter_type());
 *	noh_register(box, noh_inventory_type());
 *	...
 *	int64_t one = 1;
 *	noh_counter_added now;
 *	size_t len = sizeof now;
 *	noh_call(box, "counter:hits", NOH_COUNTER_ADD, &one, sizeof one, 1000, &now, &len);
 *
 * Bodies and answers are these structs, in the byte order of the machine. Where two forms are named, the
 * length tells them apart. Whoever sends a body of another length, with an unknown flag, a reserved field
 * that is not 0 or a number outside its range gets NOH_EINVAL, the log names the message, and nothing has
 * happened.
 *
 * Every answer begins with an outcome. Anything but ..._OK says what stood in the way; then nothing was
 * changed, and the other fields hold what their comments say, or 0. An outcome is an answer like any other:
 * with an idempotency key, the retry gets it again.
 *
 * Times are the box's wall clock (noh_wall_ms), in milliseconds since 1970. What is past its time is gone at
 * that instant, whether or not its timer was there already.
 */
#ifndef NOH_ACTORS_H
#define NOH_ACTORS_H

#include "noh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ── counter ─────────────────────────────────────────────────────────────────────────────────
 * A key with a 64-bit number and, perhaps, a time at which it goes away. A key that was never set, or was
 * deleted, or is past its time does not exist: it takes no room, in memory or on disk. */
NOH_API const noh_type *noh_counter_type(void);          /* name "counter" */

enum {
	NOH_COUNTER_GET,           /* -                                        -> noh_counter_value   */
	NOH_COUNTER_ADD,           /* int64_t, or noh_counter_add              -> noh_counter_added   */
	NOH_COUNTER_SET,           /* int64_t, or noh_counter_set              -> noh_counter_value   */
	NOH_COUNTER_DELETE,        /* -                                        -> noh_counter_value   */
	NOH_COUNTER_EXPIRE,        /* noh_counter_expire                       -> noh_counter_times   */
	NOH_COUNTER_TTL,           /* -                                        -> noh_counter_times   */
	NOH_COUNTER_EXPIRED,       /* its own timer: from outside NOH_EKIND                           */
	NOH_COUNTER_KINDS
};

enum {
	NOH_COUNTER_OK = 0,
	NOH_COUNTER_NONE = 1,          /* there is no such key                                        */
	NOH_COUNTER_UNCHANGED = 2,     /* a condition (IF_..., PERSIST without a time) did not hold   */
	NOH_COUNTER_OUT_OF_BOUNDS = 3, /* ADD: the sum is below low or above high                     */
	NOH_COUNTER_OVERFLOW = 4       /* ADD: the sum, or what was added, is beyond 64 bits          */
};

/* When it goes away. One of IN, AT, KEEP, PERSIST, or none of them: then ADD leaves the time as it is, and
 * SET takes it away. A time that is past already deletes the key, and is NOH_COUNTER_OK. */
enum {
	NOH_COUNTER_IN = 1,            /* time: milliseconds from now: at least 1 in ADD and SET      */
	NOH_COUNTER_AT = 2,            /* time: an instant                                            */
	NOH_COUNTER_KEEP = 4,          /* SET: keep the time there is                                 */
	NOH_COUNTER_PERSIST = 8,       /* ADD, EXPIRE: stay for ever                                  */

	NOH_COUNTER_IF_NONE = 16,      /* SET: only if there is no such key                           */
	NOH_COUNTER_IF_THERE = 32,     /* SET: only if there is                                       */
	NOH_COUNTER_IF_NO_TIME = 64,   /* ADD, EXPIRE: set the time only if the key has none. (ADD adds
					  all the same)                                               */
	NOH_COUNTER_IF_TIME = 128,     /* EXPIRE: only if it has one                                  */
	NOH_COUNTER_IF_LATER = 256,    /* EXPIRE: only to a later time; having none is later than any */
	NOH_COUNTER_IF_EARLIER = 512,  /* EXPIRE: only to an earlier time                             */

	NOH_COUNTER_SATURATE = 1024    /* ADD: stop at the bound instead of refusing                  */
};
/* The greatest time of AT: the end of the year 9999, the last that a date of four digits can say. Of IN: half of that, so
 * that its instant can be said, too. The least of both: -NOH_COUNTER_TIME_MAX. */
#define NOH_COUNTER_TIME_MAX INT64_C(253402300799999)
#define NOH_COUNTER_IN_MAX   (NOH_COUNTER_TIME_MAX / 2)

/* GET, DELETE: the value (before it was deleted), or NOH_COUNTER_NONE.
 * SET: the value before, if there was one; IF_NONE and IF_THERE may give NOH_COUNTER_UNCHANGED. */
typedef struct noh_counter_value {
	uint32_t outcome;
	uint32_t existed;              /* 1: value is that of the key before this message           */
	int64_t  value;
} noh_counter_value;

/* A key that does not exist counts as 0, without a time. Nothing is added unless the sum is within low and
 * high (INT64_MIN, INT64_MAX: no bound), or SATURATE takes it to the nearer of them. The time is set with
 * it, or not at all. */
typedef struct noh_counter_add {
	int64_t  by;
	int64_t  low, high;            /* low <= high                                               */
	int64_t  time;
	uint32_t flags;                /* IN, AT, PERSIST, IF_NO_TIME (with IN or AT), SATURATE       */
	uint32_t reserved;
} noh_counter_add;

typedef struct noh_counter_added {
	uint32_t outcome;
	uint32_t reserved;
	int64_t  value;                /* now; also if nothing was added (0: there is no such key)   */
	int64_t  applied;              /* what was added: by, less with SATURATE, 0 unless OK        */
} noh_counter_added;

typedef struct noh_counter_set {
	int64_t  value;
	int64_t  time;
	uint32_t flags;                /* IN, AT, KEEP, IF_NONE or IF_THERE                          */
	uint32_t reserved;
} noh_counter_set;

/* IN and AT take any time, also past ones. IF_NO_TIME stands alone, IF_TIME with one of LATER and EARLIER
 * or none; none of them with PERSIST. NOH_COUNTER_NONE, NOH_COUNTER_UNCHANGED. */
typedef struct noh_counter_expire {
	int64_t  time;
	uint32_t flags;                /* IN, AT or PERSIST; IF_...                                  */
	uint32_t reserved;
} noh_counter_expire;

typedef struct noh_counter_times {
	uint32_t outcome;              /* TTL: OK or NONE                                            */
	uint32_t reserved;
	int64_t  left;                 /* milliseconds; -1: it stays; -2: there is no such key       */
	int64_t  at;                   /* the instant; -1, -2 likewise                               */
} noh_counter_times;

/* ── inventory ───────────────────────────────────────────────────────────────────────────────
 * An article (SKU) of which there are some on hand, of which some are reserved. A reservation (hold) is taken
 * for a while or until further notice, then committed (sold) or released; past its time it is released by
 * itself. More than there is can never be reserved. At every step
 *
 *	on_hand = available + reserved,  none below 0        restocked + adjusted = on_hand + sold
 *
 * A coupon is a SKU: restock N of it, and there are N winners. RESTOCK and SET make a SKU known. Holds are
 * numbered from 1 by their SKU; a number is never used again. A hold that has ended is remembered for
 * NOH_INVENTORY_KEPT_MS (of the last NOH_INVENTORY_KEPT): COMMIT and RELEASE repeated are answered as the
 * first time, and the other one is told what became of it. */
NOH_API const noh_type *noh_inventory_type(void);        /* name "inventory" */

enum {
	NOH_INVENTORY_RESTOCK,     /* int64_t                                  -> noh_inventory_stock    */
	NOH_INVENTORY_RESERVE,     /* int64_t, or noh_inventory_reserve        -> noh_inventory_reserved */
	NOH_INVENTORY_COMMIT,      /* uint64_t: the reservation                -> noh_inventory_ended    */
	NOH_INVENTORY_RELEASE,     /* uint64_t: the reservation                -> noh_inventory_ended    */
	NOH_INVENTORY_GET,         /* -                                        -> noh_inventory_stock    */
	NOH_INVENTORY_HOLDS,       /* noh_inventory_page              -> noh_inventory_holds, and the array */
	NOH_INVENTORY_SET,         /* int64_t: counted on hand                 -> noh_inventory_stock    */
	NOH_INVENTORY_EXPIRE,      /* its own timer: from outside NOH_EKIND                              */
	NOH_INVENTORY_KINDS
};

enum {
	NOH_INVENTORY_OK = 0,
	NOH_INVENTORY_NO_SKU = 1,          /* never restocked or counted                              */
	NOH_INVENTORY_SHORT = 2,           /* RESERVE: fewer are available                            */
	NOH_INVENTORY_NO_HOLD = 3,         /* COMMIT, RELEASE: the SKU never gave this number         */
	NOH_INVENTORY_COMMITTED = 4,       /* RELEASE: it was committed                               */
	NOH_INVENTORY_RELEASED = 5,        /* COMMIT: it was released                                 */
	NOH_INVENTORY_EXPIRED = 6,         /* COMMIT, RELEASE: its time was over                      */
	NOH_INVENTORY_FORGOTTEN = 7,       /* COMMIT, RELEASE: it ended so long ago that nobody knows how */
	NOH_INVENTORY_BAD_AMOUNT = 8,      /* RESTOCK, RESERVE: not above 0; SET: below 0             */
	NOH_INVENTORY_OVERFLOW = 9,        /* RESTOCK, SET: one of the sums is beyond 63 bits         */
	NOH_INVENTORY_BELOW_RESERVED = 10, /* SET: fewer than are reserved                            */
	NOH_INVENTORY_TOO_MANY = 11        /* RESERVE: NOH_INVENTORY_HOLDS_MAX holds are open         */
};

#define NOH_INVENTORY_KEPT_MS  (INT64_C(24) * 3600 * 1000)
#define NOH_INVENTORY_KEPT     100000
#define NOH_INVENTORY_HOLDS_MAX 1000000
#define NOH_INVENTORY_TTL_MAX  (INT64_C(365) * 24 * 3600 * 1000)
#define NOH_INVENTORY_PAGE_MAX 1000

typedef struct noh_inventory_reserve {
	int64_t  n;
	int64_t  ttl_ms;               /* 1 to NOH_INVENTORY_TTL_MAX; 0: until it is released        */
} noh_inventory_reserve;

typedef struct noh_inventory_reserved {
	uint32_t outcome;
	uint32_t reserved;
	uint64_t reservation;          /* its number, if OK                                          */
	int64_t  available;            /* now: after it, or those that were not enough               */
	int64_t  expires;              /* the instant; -1: never                                     */
} noh_inventory_reserved;

/* The same bytes each time it is asked for. */
typedef struct noh_inventory_ended {
	uint32_t outcome;
	uint32_t reserved;
	uint64_t reservation;
	int64_t  n;                    /* how many it held; 0 if that is not known                   */
} noh_inventory_ended;

/* NO_SKU: all 0. Refused: as it is. */
typedef struct noh_inventory_stock {
	uint32_t outcome;
	uint32_t holds;                /* open ones                                                  */
	int64_t  on_hand, reserved, available, sold;
	int64_t  restocked;            /* all of it, ever                                            */
	int64_t  adjusted;             /* by stock-takes, all together; may be below 0               */
} noh_inventory_stock;

/* Open holds in the order of their numbers. Begin with cursor 0, go on with the one answered until that is
 * 0. A hold that is open throughout is listed once. */
typedef struct noh_inventory_page {
	uint64_t cursor;
	uint32_t limit;                /* holds in one answer, at most; 0: 100; at most NOH_INVENTORY_PAGE_MAX */
	uint32_t reserved;
} noh_inventory_page;

typedef struct noh_inventory_hold {
	uint64_t reservation;
	int64_t  n;
	int64_t  expires;              /* the instant; -1: never                                     */
} noh_inventory_hold;

typedef struct noh_inventory_holds {
	uint32_t outcome;              /* OK or NO_SKU                                               */
	uint32_t count;                /* of the noh_inventory_hold that follow                      */
	uint64_t cursor;               /* for the next page; 0: this was the last                    */
} noh_inventory_holds;

/* ── later ───────────────────────────────────────────────────────────────────────────────────
 * Messages for another actor that are to arrive after a while: "later:TARGET" keeps those for the actor whose
 * address is TARGET (of at most NOH_LATER_ADDRESS bytes). It is sent when its time has come, never before, in the
 * order of their times; once, also if the process ends meanwhile; if the target's mailbox is full, when there is
 * room. What nobody takes (NOH_ENOTYPE, NOH_EKIND) is logged and dropped. What is refused comes as NOH_REFUSED
 * with a sentence. */
NOH_API const noh_type *noh_later_type(void);            /* name "later" */

enum {
	NOH_LATER_SEND,            /* noh_later_send, and the message's body   -> noh_later_sent      */
	NOH_LATER_CANCEL,          /* noh_later_sent                           -> the same            */
	NOH_LATER_DUE,             /* its own timer: from outside NOH_EKIND                           */
	NOH_LATER_CLEAR,           /* nothing: all that waits is forgotten     -> uint64_t: how many  */
	NOH_LATER_LIST,            /* noh_later_page   -> noh_later_list, and its noh_later_waiting   */
	NOH_LATER_KINDS
};

#define NOH_LATER_ADDRESS 249
#define NOH_LATER_MAX_MS  (UINT64_C(365) * 24 * 3600 * 1000)
#define NOH_LATER_MOST    100000       /* may wait for one actor                                  */
#define NOH_LATER_PAGE_MAX 100

typedef struct noh_later_send {
	uint64_t delay_ms;
	uint32_t kind;                 /* for the target                                             */
	uint32_t reserved;
} noh_later_send;

typedef struct noh_later_sent {
	uint64_t number;
	uint64_t due;                  /* the instant                                                */
} noh_later_sent;

typedef struct noh_later_page {
	noh_later_sent after;          /* the last one of the page before; zeros: from the first     */
	uint32_t       limit;          /* 1 to NOH_LATER_PAGE_MAX                                    */
	uint32_t       reserved;
} noh_later_page;

typedef struct noh_later_list {
	uint64_t waiting;              /* in all                                                     */
	uint32_t count;                /* of the noh_later_waiting that follow, the soonest first    */
	uint32_t more;                 /* 1: there are more behind the last of them                  */
} noh_later_list;

typedef struct noh_later_waiting {
	noh_later_sent sent;
	uint32_t       kind, len;      /* for the target; bytes of its body                          */
	char           name[64];       /* of that kind, if its type has one; cut to this             */
} noh_later_waiting;

#ifdef __cplusplus
}
#endif
#endif
