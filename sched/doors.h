/* sched/doors.h - what the scheduler knows of storage, journal, event log and network: functions that box/ gives it.
 *
 * Owns     nothing.   Threads  as each says; the tables are filled in before the box starts.
 */
#ifndef NOH_SCHED_DOORS_H
#define NOH_SCHED_DOORS_H

#include "core/atomic.h"
#include "core/topics.h"
#include "sched/relay.h"

#include <stdalign.h>

/* Where the states of inactive actors are: box/ connects it to persist/. */
struct sched_image { void *bytes; size_t len; uint64_t seq, due; bool gone, fresh, reborn; };
struct sched_storage {
	void *arg;
	int  (*load)(void *arg, const char *address, size_t len, uint64_t hash,
		     struct sched_image *image);
	int  (*save)(void *arg, const char *address, size_t len, uint64_t hash,
		     const struct sched_image *image);
	bool (*may_have)(void *arg, uint64_t hash);
	int  (*idem_get)(void *arg, const char *address, size_t len, uint64_t hash, const void *key,
			 size_t key_len, void **part, size_t *part_len, uint64_t *due);
	int  (*idem_put)(void *arg, const char *address, size_t len, uint64_t hash, const void *key,
			 size_t key_len, const void *part, size_t part_len, uint64_t due);
};

/* Where records go: box/ connects it to the journal. arg NULL: there is none. */
struct sched_journal {
	void *arg;
	bool     (*room)(void *arg, uint32_t ring);
	bool     (*no_space)(void *arg);  /* read only: turns run, but none may leave a record   */
	uint8_t *(*reserve)(void *arg, uint32_t ring, size_t size);
	void     (*unreserve)(void *arg, uint32_t ring);
	void     (*push)(void *arg, uint32_t ring);
	uint64_t (*epoch)(void *arg);
	void     (*wake)(void *arg);
	void     (*pushed)(void *arg, uint32_t ring);    /* wake, after all that a pass had to push     */
	bool     (*take)(void *arg);      /* the journaller's role; NULL: workers leave it alone */
	bool     (*step)(void *arg);      /* with the role: writes; false: all is written        */
	void     (*give)(void *arg);
};

/* Events on their way to the log (notice.h). With a journal they go there; else box/ keeps them. */
struct event_node;
struct sched_events {
	void      *arg;
	void     (*keep)(void *arg, const void *event, size_t len);  /* into the log; one at a time */
	void     (*shown)(void *arg);                  /* those kept so far may be read             */
	uint64_t   hash;                               /* of the address their records have         */
	atomic_u32 detail;                             /* NOH_EVENTS_...                            */
	alignas(CACHE_LINE) atomic_u64 told, lost;     /* by the box and by actors; for want of memory or room */
	atomic_u64 order;                              /* drawn by whoever tells: after what caused it */
	atomic_u64 bytes;                              /* of all that wait                          */
	struct relay relay;                            /* what was pushed; who passes it on         */
	struct event_node *backlog, *backlog_last;     /* those the journal had no room for: of whoever holds the relay */
};

/* The network, on the workers: box/ connects it. arg NULL: there is none. */
struct port;
struct sched_net {
	void *arg;
	int      (*open)(void *arg, uint32_t worker);       /* on its thread; what to wake it by + 1; 0: none */
	uint32_t (*read)(void *arg, uint32_t worker);       /* requests come in, and are delivered        */
	uint32_t (*write)(void *arg, uint32_t worker);      /* replies go out                             */
	void     (*submit)(void *arg, uint32_t worker);     /* before the worker blocks elsewhere         */
	bool     (*ready)(void *arg, uint32_t worker);      /* is there anything to read or write?        */
	bool     (*pending)(void *arg, uint32_t worker);    /* beside what the sockets have: seq_cst      */
	void     (*wait)(void *arg, uint32_t worker, uint64_t timeout_ns);
	bool     (*idle)(void *arg);                        /* nothing was asked that is not answered     */
	void     (*answer)(void *arg, struct port *p, uint64_t token, uint64_t due, int status,
			   const void *body, size_t len);
	uint64_t (*publish)(void *arg, struct port *p, struct topic *topic, const struct event *e);   /* to how many */
};
/* Tokens of the network's own: their answers go to it at once, and it holds them until they are due. */
#define TOKEN_OF_NET (UINT64_C(1) << 63)
/* In the status of an answer to it: what is told was stored with an idempotency key, not done now. */
#define ANSWER_REPLAYED 0x10000
#define TOKEN_OF_HTTP (UINT64_C(1) << 62)      /* and that one came by HTTP */

/* What else takes memory out of the budget: box/ says it. arg NULL: nothing does. */
struct sched_memory {
	void    *arg;
	atomic_u64 aside;                      /* for what is there with no actor, and for folds   */
	uint64_t (*others)(void *arg);         /* states on their way to the disk                  */
	bool     (*folded)(void *arg, uint64_t due);   /* has the disk's image what was due then?  */
	void     (*lighten)(void *arg);        /* actors have too little room: fold                */
};

#endif
