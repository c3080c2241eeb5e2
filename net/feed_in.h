/* net/feed_in.h - inside of feed.c and feed_conn.c: a reader, and what its thread and its worker tell each other. */
#ifndef NOH_NET_FEED_IN_H
#define NOH_NET_FEED_IN_H

#include "net/feed.h"
#include "net/net.h"

/* In late.status, above its kind: the connection's generation, and whether this is the last. */
#define FEED_GEN_SHIFT 8
#define FEED_ENDS (1u << 24)
#define FEED_SLOW (1u << 25)               /* ... for the client was too slow */

#define FEED_MEMO 256                      /* events whose text is kept: readers are mostly at the same place */
struct feed_memo {
	uint64_t   seq;
	struct out text;
};

struct feed {
	struct feed     *next;
	struct feed_wish wish;
	noh_events_filter filter;          /* points into wish                                      */
	uint64_t         id;               /* never used twice                                      */
	uint64_t         token;            /* of the slot that waits                                */
	uint32_t         worker, conn;
	uint16_t         conn_gen;
	struct {                           /* the thread's                                          */
		uint64_t cursor;
		uint64_t given;            /* bytes                                                 */
		uint64_t until_ns;         /* a command: then it is answered in any case            */
		uint64_t full_ns;          /* since when there is no room; 0: there is              */
		bool     begun;
		bool     spoken;           /* since the last breath                                 */
		bool     broken;           /* something could not be told: it ends                  */
		bool     done;             /* all was said; until its side leaves                   */
	} mine;
	uint64_t         received;         /* the worker's: bytes given to the connection           */
	alignas(CACHE_LINE) atomic_u64 taken;      /* of them, those that are gone                  */
	atomic_u32       starved;          /* the thread waits for room: ring                       */
	atomic_u32       hurry;            /* a command: not to wait any longer                     */
	atomic_u32       gone;             /* the worker is through with it                         */
};

struct feeds {
	struct server   *server;
	pthread_t        thread;
	bool             started;
	uint64_t         breath_ns;        /* the thread's, as what follows: when silent streams get a sign of life */
	struct feed     *list;
	struct out       text;
	struct feed_memo memo[FEED_MEMO];
	alignas(CACHE_LINE) atomic_ptr arrived;    /* struct feed: not in the list yet              */
	atomic_u64       next_id;
	atomic_u32       count;
	atomic_u32       bell, asleep;
	atomic_u32       over;             /* the thread has ended, or will not look any more       */
};

void feeds_ring(struct feeds *f);

#endif
