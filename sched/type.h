/* sched/type.h - a type of actors as the scheduler knows it, and what is counted of it.
 *
 * Owns     nothing: the box has made it, and it lives as long.
 * Threads  plain fields are written before the box starts; each port counts for itself.
 */
#ifndef NOH_SCHED_TYPE_H
#define NOH_SCHED_TYPE_H

#include "core/address.h"
#include "core/atomic.h"
#include "noh.h"
#include "sched/limit.h"

#include <assert.h>
#include <stdalign.h>

struct cell;
struct sched_storage;

/* A message of this type whose time in the mailbox is measured (meter.h). All workers read it, few write it. */
struct wait_probe {
	_Atomic(struct cell *) cell;   /* whose mailbox; NULL: none                                */
	atomic_u64 since_ns;           /* 0: free; 1: somebody is at it                            */
	atomic_u64 upto;               /* it has been taken when head is there                     */
	atomic_u64 next_ns;            /* not before                                               */
};

/* In this run, by a worker; or before, as was found in storage. */
enum { QUARANTINED_NOW = 1, QUARANTINED_FOUND = 2 };

struct type {
	noh_type pub;
	char     name[TYPE_NAME_MAX + 1];
	uint32_t index, name_len;
	int    (*single)(noh_turn *turn, const noh_msg *msg);    /* on_message, or on_batch of one */
	uint32_t capacity, half, hard;
	atomic_u32 idle_ds;            /* tenths of a second; UINT32_MAX: never                    */
	uint32_t state_words;          /* of 8 bytes                                               */
	uint32_t count_off, version_off, state_off, id_off;   /* in body.data                      */
	atomic_u32 short_capacity;     /* capacity; 0 if every send must be looked at: declared
					  kinds, a message limit under MSG_INLINE, or a rate       */
	uint32_t short_itself;         /* the same without a rate                                  */
	uint64_t name_head, name_mask; /* the first 8 bytes of "name:", and which of them count    */
	bool     shared;               /* drop_oldest: senders take, too                           */
	bool     sheds;                /* drop_oldest and durable: the runner drops, and only what
					  was not recorded                                         */
	bool     reads;                /* has read-only kinds: the state carries a version         */
	bool     counted;              /* its actors count what they handle, for who asks for their status */
	bool     coalesces;            /* has coalescing kinds                                     */
	bool     windowed;             /* that, or on_batch                                        */
	bool     odd_itself;           /* reads, windowed or durable: not for the short way        */
	atomic_u8 odd;                 /* that, or limited                                         */
	atomic_u8 guarded;             /* noted or limited: looked at before each message          */
	atomic_u8 limits;              /* LIMIT_...                                                */
	bool     noted;                /* the box has a data directory: what runs is noted down; or its turns have a deadline */
	bool     durable;              /* its turns are recorded                                   */
	bool     comes_easily;         /* a new one has nothing to do first: no hook, no topics, no record */
	bool     tells;                /* that its actors come and go is an event, unless none is  */
	int32_t  personal;             /* kind of what comes by the personal channel; -1: none     */
	int      refused;              /* NOH_EVERSION: what is stored has no way to here; else 0  */
	struct sched_storage *storage; /* where its actors rest                                    */
	atomic_u64 at_start;           /* how many existed then                                    */
	atomic_u32 log_level;          /* plus 1; 0: the box's                                     */
	atomic_u64 failures;           /* told one by one: second << 8, how many in that second    */
	atomic_u64 failures_told;      /* in all                                                   */
	bool     supervised;           /* by sup, defaults filled in                               */
	atomic_u32 quarantined;        /* all of its actors are: QUARANTINED_...                   */
	atomic_u32 resumed;            /* in this run: what was stored before says nothing of that any more */
	noh_supervision sup;
	alignas(CACHE_LINE) struct wait_probe probe;
	struct limit limit;
};

/* Why an actor has left memory; the box's words for it are in box/metrics_types.c. */
enum gone {
	GONE_IDLE, GONE_MEMORY, GONE_ASKED, GONE_FORCED, GONE_SELF, GONE_ERASED, GONE_STOP,
	GONE_FAILED,                   /* given up (supervise.h)                                   */
	GONE_REASONS
};

/* Whose answer it was. */
enum replay { REPLAY_LIBRARY, REPLAY_RESP, REPLAY_HTTP, REPLAYS };

struct type_counts {
	atomic_u64 accepted, handled, failed, refused;
	atomic_u64 dropped_oldest, dropped_forced, dropped_stop, coalesced;
	atomic_u64 activations, deactivations;
	atomic_u64 came, went;         /* into existence, and out of it                            */
	atomic_u64 loaded;             /* activations of those that existed before                 */
	atomic_u64 broken;             /* activations that failed: thrown out, tried anew next time */
	atomic_u64 quarantined;        /* messages set aside: they ended the process too often     */
	atomic_u64 gone[GONE_REASONS]; /* deactivations                                            */
	atomic_u64 replays[REPLAYS];   /* of idempotent calls                                      */
	atomic_u64 restarts;           /* of supervised actors                                     */
	atomic_u64 set_aside;          /* messages that failed too often                           */
	atomic_u64 dropped_unwell;     /* messages for actors that were given up                   */
	atomic_u64 unwell[4];          /* actors now: down, degraded, stopped, quarantined or awaiting; the sum of all ports
					  counts, one alone may be below zero              */
	atomic_u64 refused_rate;       /* sends over its limits                                    */
	atomic_u64 rests, rests_ended; /* of actors, until a token came                            */
	uint64_t   share;              /* of the type's bucket: the port's (limit.c)               */
	uint64_t   pad[27];
};
static_assert(sizeof(struct type_counts) == 8 * CACHE_LINE, "found by a shift");

#endif
