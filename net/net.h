/* net/net.h - the network of one worker: its connections, and the commands that wait for answers.
 *
 *     bytes ─► conn.c: commands ─► slot.c: requests, in batches ─► box/ (the door) ─► actors
 *     bytes ◄─ conn.c: replies, held until they are on disk ◄─ slot.c: in the order asked ◄─ answers
 *
 * A command that asks actors takes a slot. Its number, generation and worker are the token that travels with the
 * message; the answer brings it back, on this worker (then it is written at once) or on another (then it
 * comes through `late`). Replies leave in the order of the commands, and not before whatever they tell is
 * on disk: each stretch of a connection's output carries the epoch it waits for.
 *
 * Owns     sockets, connections, slots.
 * Threads  the worker's own; net_answer_late, net_wake: any.
 * Never    blocks (but net_wait), and never trusts a length it was told.
 */
#ifndef NOH_NET_NET_H
#define NOH_NET_NET_H

#include "core/atomic.h"
#include "core/histogram.h"
#include "core/topics.h"
#include "core/trace.h"
#include "net/call.h"
#include "net/feed.h"
#include "net/crew.h"
#include "net/http.h"
#include "net/http_read.h"
#include "net/io.h"
#include "net/running.h"
#include "net/session.h"
#include "net/sources.h"

#include <pthread.h>
#include <stdalign.h>

/* A request on its way to its actor. Text and bytes are valid until the batch was delivered. */
struct arrival {
	const char *address;
	const void *body, *key;            /* body: aligned to 8                                    */
	const struct trace_tail *trace;    /* its state before it; NULL: it is not traced           */
	uint64_t    token;
	uint64_t    hash;                  /* the door's                                            */
	void       *type;                  /* the door's; NULL: not known yet                       */
	void       *found;                 /* the door's: whom it is for, as far as can be seen; NULL: not known */
	uint32_t    len, key_len, kind, address_len;
	uint32_t    slot;
	uint8_t     op;                    /* enum request_op                                       */
	uint8_t     named;                 /* enum request_type                                     */
	bool        more;                  /* the door's: the next one is for the same actor        */
	bool        final;                 /* the door's: NOH_FULL is the answer, its type does not block */
};
#define ARRIVALS 128                       /* delivered together                                    */
#define PREPARED 16                        /* of them, prepared together: what they touch stays in the cache */
#define ARRIVAL_BYTES 32768                /* their addresses, keys and small bodies                */
#define ARRIVAL_SMALL 512                  /* a larger body is delivered before its command returns */

/* How requests reach actors: box/ gives it. deliver: NOH_OK: the answer will come, or came. NOH_FULL (unless
 * it says that it is final) and NOH_ENOMEM (over the memory budget): not now, try again. Anything else is an answer by
 * itself. */
struct net_door {
	void *box;
	/* n that are about to be delivered; behind: of those that come after them, the first is known */
	void (*prepare)(void *box, uint32_t worker, struct arrival *list, uint32_t n, bool behind);
	int  (*deliver)(void *box, uint32_t worker, struct arrival *a);
	int  (*step)(void *box, uint32_t worker, const struct request *parts, uint32_t n, uint32_t timeout_ms,
		     uint64_t token);
	/* *due: when all that was told is on disk */
	int  (*status)(void *box, const char *address, noh_status *status, uint64_t *due);
	int  (*vitals)(void *box, const char *address, noh_vitals *vitals, uint64_t *due);
	int  (*list)(void *box, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count, uint64_t *due);
	int  (*scan)(void *box, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user,
		     uint64_t *due);
	uint64_t (*known)(void *box);                          /* when all that is counted is on disk    */
	atomic_u64 *(*awaits)(void *box, uint32_t worker);     /* where to say for which epoch it waits  */
	uint64_t (*now_ns)(void *box);
	uint64_t (*wall_ms)(void *box);
	void (*log)(void *box, int level, const char *line);
	atomic_u64 *durable;               /* epoch: what is due by then is on disk                 */
	struct topics *topics;
	ck_epoch_record_t *(*epoch)(void *box, uint32_t worker);
	struct span_ring *(*spans)(void *box, uint32_t worker);
	uint64_t (*publish)(void *box, uint32_t worker, const struct arg *channel, const struct arg *body);
	bool (*personal)(void *box, const struct arg *channel, struct request *r);   /* r->id: room for an address */
	void (*wake)(void *box, uint32_t worker);
	void (*answered)(void *box, uint32_t worker, void *type, uint64_t ns);   /* a call, and how long it took */
	/* What may block, done by a thread of its own: its answer is what it wrote. args are copied. */
	int  (*errand)(void *box, errand_fn *run, const void *args, uint32_t len, uint64_t token);
};

struct accounts {
	struct accounts *older;            /* replaced; kept while workers may be looking           */
	uint32_t         until;            /* the change that replaced it                           */
	size_t           count;
	struct { char name[SESSION_NAME_MAX + 1]; int role; uint8_t token[32]; } list[];
};

#define OPTIONS_MAX 32                     /* that can change while it runs                         */

/* Of one protocol. */
struct entrance {
	int        *tcp;                   /* one per worker; NULL: none                            */
	int         local;                 /* the Unix socket; -1: none                             */
	bool        bound;                 /* its file is ours to take away                         */
};

/* What the workers share. */
struct server {
	struct net_door     door;
	noh_listen_options  o;             /* with the defaults filled in; workers have copies      */
	atomic_ptr          accounts;      /* struct accounts; NULL: everybody may do all           */
	const struct http_route *routes;   /* http_routes, or a test's                              */
	struct entrance    resp, http;
	uint32_t            workers;
	bool                loopback;      /* bound where only this machine can reach it            */
	const char         *io_name;       /* as probed                                             */
	char                no_space[400]; /* what READONLY says: the place, and how much it needs  */
	bool                uring;
	atomic_u64          started_ms;    /* wall clock, when its first worker was there           */
	_Atomic(struct net *) *nets;       /* one per worker, made by its thread                    */
	pthread_mutex_t     change_lock;   /* of o's limits, changed_at and change_seen: change.c   */
	pthread_cond_t      change_seen;   /* a worker goes by the last change                      */
	uint32_t            changed_at[OPTIONS_MAX];      /* by option: which change it came with   */
	alignas(CACHE_LINE) atomic_u64 connections;   /* of all workers: for the limit              */
	atomic_u64          next_id;
	atomic_u32          stopping;
	atomic_u32          draining;      /* it serves whoever looks, and refuses the rest         */
	atomic_u32          changes;       /* counts: options or accounts are others                */
	struct running      running;
	struct feeds       *feeds;         /* who reads events                                      */
	struct sources      sources;
	struct crew         crew;
	pthread_mutex_t     moves;         /* of `moving`: move.c                                   */
	struct mover       *moving;        /* connections on their way from one worker to another   */
	char                node_id[64];   /* what it calls itself                                  */
};

struct mark { size_t end; uint64_t due; };     /* output up to end waits for that epoch */

enum {
	CONN_DIRTY = 1,                    /* in the list of those with something to send           */
	CONN_GATED = 2,                    /* in the list of those that wait for the disk           */
	CONN_BACKLOG = 4,                  /* in the list of those with input that may be run again */
	CONN_STALLED = 8,                  /* its next request was refused for now: held            */
	CONN_EOF = 16,                     /* the client will say nothing more                      */
	CONN_ENDING = 32,                  /* no more commands; ends when all is answered and sent  */
	CONN_DEAD = 64,                    /* told to end                                           */
	CONN_LOCAL = 128,                  /* through the Unix socket                               */
	CONN_HTTP = 256,                   /* speaks HTTP                                           */
	CONN_LINGER = 512,                 /* refused before all was read: what comes is passed over, so that
					      the client gets to read why                           */
	CONN_DRAINING = 1024,              /* all was said; until the client ends, or a little while */
	CONN_FEED = 2048,                  /* a stream of events: what the client says is passed over */
	CONN_NOTED = 4096,                 /* in the list of those that may go to another worker    */
};

/* What a connection remembers of the request under way. */
struct http_conn {
	struct http_reader reader;
	const struct http_route *route;    /* once its head is there                                */
	uint64_t body_ms;                  /* when that was                                         */
	bool     answered;                 /* refused by its head: its body is passed over          */
	bool     spoken;                   /* there was a request before                            */
};

struct conn {
	struct io_socket socket;
	struct net      *net;
	uint32_t         flags;
	uint32_t         first, last;      /* slots that wait, oldest first; 0: none                */
	uint32_t         waiting;          /* how many                                              */
	uint32_t         steps;            /* over several actors, under way: what comes next waits */
	bool             alone;            /* its next command, read already, waits until all before are answered */
	struct out       out;              /* written, not sent                                     */
	size_t           released;         /* of it, what may leave                                 */
	struct mark     *marks;            /* of the rest, what it waits for                        */
	uint32_t         mark_count, mark_room;
	struct out       flying;           /* being sent, a piece at a time                         */
	size_t           flown, piece;     /* of it: gone; on its way                               */
	char            *in;               /* input that was not run yet; NULL: none                */
	uint32_t         in_len, in_room;
	struct held     *held, **held_end; /* requests that were refused for now                    */
	uint64_t         active_ms;        /* when it last said something                           */
	uint64_t         took_ms;          /* when it last took something, or had nothing to take   */
	uint64_t         partial_ms;       /* when the command began of which a part is here; 0: none */
	struct subscriptions *subs;        /* pubsub.c; NULL: none                                  */
	struct feed     *feed;             /* CONN_FEED                                             */
	size_t           queued;           /* bytes of text that waits in its slots                 */
	struct client   *shown;            /* what others are told of it: guarded by net.roll       */
	struct conn     *next_dead, *next_noted;
	struct source   *source;           /* where it comes from; NULL: not watched                */
	struct session   session;
	union {
		struct resp_reader reader;
		struct http_conn   http;         /* CONN_HTTP                                     */
	};
};

enum slot_state { SLOT_FREE, SLOT_WAITING, SLOT_READY };

#define SLOT_INLINE 40
struct asked {
	uint64_t   due;
	format_fn *format;                 /* NULL: text is the reply                               */
	struct tag tag;
	uint32_t   gen;
	uint32_t   next;                   /* in the connection's queue, or among the free          */
	uint32_t   conn;
	uint16_t   conn_gen;
	uint8_t    state;
	bool       at_once;                /* does not wait for the disk                            */
	bool       orphan;                 /* its client is gone                                    */
	bool       silent;                 /* CLIENT REPLY OFF                                      */
	bool       step;                   /* over several actors: counted in its connection        */
	bool       replayed;               /* its answer was stored with its idempotency key        */
	bool       traced;                 /* the end of its reply is a point of a trace             */
	uint8_t    proto;                  /* as it was when the command came: HELLO changes later ones */
	uint32_t   parent, parent_gen;     /* a part of another slot; 0: it is one by itself        */
	uint32_t   index;
	uint32_t   parts, missing;
	uint32_t   running;                /* its idempotency key's place in server.running; 0: none */
	uint32_t   note_len;
	void      *note;                   /* a copy for `format`; NULL: none                       */
	uint64_t   until_ms;
	struct feed *feed;                 /* it waits for events; NULL: for something else         */
	struct reply_part one;                   /* parts == 1; body: inside, or an allocation            */
	union {
		uint64_t     inside[SLOT_INLINE / 8];
		struct reply_part *many;         /* parts != 1: their bodies are allocations              */
		struct out   text;
	} u;
};

/* From another thread: an answer; or, without a token, something else this worker is to do. */
enum { LATE_KILL = 0, LATE_OPTION = 1, LATE_RESET = 2,         /* status: due is the client's id; the value */
       LATE_EVENT = 3,                                         /* and, above these 8 bits, the channel's length */
       LATE_FEED = 4,                                          /* feed_in.h: due is the feed's id, count its connection */
       LATE_MOVE = 5 };                                        /* move.c: a connection comes */
struct late {
	struct late *next;
	uint64_t     token, due;
	int          status;
	uint32_t     len, count;           /* count: of a step's parts; UINT32_MAX: a single one    */
	uint64_t     body[];
};

/* Requests of traces that are kept, until their replies have left. */
#define TRACED_MOST 256
struct traced {
	struct trace at;
	uint32_t     slot, slot_gen;
	uint64_t     received_ns;
	uint64_t     due;                  /* of its reply; UINT64_MAX: there is none yet           */
};
struct net_traces {
	struct span_ring *spans;           /* the worker's                                          */
	uint32_t          count;
	uint32_t          every;           /* of so many requests one is sampled; 0: none           */
	uint32_t          until_next;
	struct traced     list[TRACED_MOST];
};

#define LEND_MOST 64                       /* connections of others written to for one message      */
struct lending {                           /* a message on its way to those: lend.c                 */
	uint32_t   waiting;                /* for so many sockets; 0: nothing is                    */
	uint32_t   count, nets;
	size_t     len;
	struct out text;
	struct { struct net *net; uint32_t conn; } to[LEND_MOST];
	struct { struct net *net; bool rest; } lent[LEND_MOST];       /* rest: its worker has to be woken */
};

#define HANDING_MOST 16                    /* workers for which messages are gathered               */

struct net_counts {
	atomic_u64 accepted, refused, refused_address, closed, closed_slow, logins_failed, logins_held, commands, errors, bytes_in, bytes_out, pushed;
};

struct net {
	struct server *server;
	struct io     *io;
	noh_listen_options o;              /* as they are in force: CONFIG SET                      */
	struct resp_limits limits, strict; /* strict: before a client has said who it is            */
	struct http_limits http_limits;
	uint32_t       worker;
	atomic_u64    *awaits;             /* shown: the epoch the first of the gated waits for; UINT64_MAX */
	struct conn  **conns;              /* by number; NULL: free                                 */
	uint16_t      *gens;
	uint32_t      *free;               /* numbers that are free: a stack                        */
	uint32_t       free_count, conn_room;
	struct conn   *dead;               /* to be freed at the end of the pass                    */
	struct conn   *noted;              /* to leave at the end of the pass, if they are still quiet */
	uint32_t       width;              /* crew.h: this many workers have the connections; 0: as they came */
	struct asked   *slots;              /* 0 is nobody's                                         */
	uint32_t       slot_room, slot_free, slots_waiting;
	uint32_t       orphans;            /* of those that wait: their clients are gone            */
	uint32_t       readers;            /* ... and: they wait for events                         */
	uint32_t       streams;            /* connections that are one of events                    */
	uint64_t       orphan_ms;          /* when to look at their time-outs next                  */
	uint32_t      *dirty, *gated, *backlog;            /* numbers; each as long as conns        */
	uint32_t       dirty_count, gated_count, backlog_count;
	struct arrival arrivals[ARRIVALS];
	uint32_t       arrival_count;
	uint64_t       bytes[ARRIVAL_BYTES / 8];
	uint32_t       bytes_used;
	size_t         reply_from;         /* of the command that runs: conn_reply_from             */
	uint32_t       first_before, last_before;
	struct out     scratch;            /* a reply that has to wait its turn                     */
	uint64_t       reply_due;          /* what the reply of the command that runs tells is on disk then */
	bool           muting;             /* what the running command asks for is not to be answered */
	ck_epoch_record_t *epoch;          /* the worker's; NULL: nobody reads topics any more      */
	struct net_traces traces;          /* trace.c                                               */
	struct conn   *running;            /* whose command runs; NULL: none                        */
	bool           more_input;         /* and other bytes of his are behind it                  */
	struct out     own;                /* pushes for it: they follow its reply                  */
	uint64_t       own_due;
	struct out     event, matched;     /* a message as it is pushed; the same for a pattern     */
	struct lending lending;
	struct { struct net *to; struct late *newest, *oldest; } handing[HANDING_MOST];       /* hand.c */
	uint32_t       handing_count;
	bool           gathering;          /* a client publishes, and says more                     */
	struct arg    *argv;               /* of a command with many arguments                      */
	uint32_t       argv_room;
	atomic_u64    *calls;              /* by command: session.calls                             */
	atomic_u64    *http_calls;         /* by route                                              */
	pthread_mutex_t roll;              /* of conn.shown: CLIENT LIST of other workers           */
	struct {                           /* the request that is measured: took.c                  */
		struct histogram *into;    /* NULL: none                                            */
		uint64_t       since_ns;
		uint64_t       due;        /* written: it may leave then; UINT64_MAX: it is not     */
		void          *type;       /* the door's: of the actor it asked; NULL: none, or several */
		uint32_t       slot;       /* where it waits; 0: it does not                        */
		bool           armed;      /* the next one is                                       */
	} timed;
	struct histogram *took;            /* by command, then by route of HTTP                     */
	uint64_t       now_ns;
	uint64_t       now_ms, sweep_ms;   /* monotonic; when to look at time-outs next             */
	uint64_t       wall_ms;
	uint64_t       retry_ms;
	uint32_t       stalled;            /* connections that are                                  */
	uint32_t       partial;            /* with a part of a command                              */
	uint32_t       sending;            /* with a send under way                                 */
	uint32_t       changes;            /* of the server's: those it goes by                     */
	uint32_t       http_conns;         /* that speak HTTP: they are not let idle for ever       */
	uint64_t       stop_ms;            /* when it was told to stop                              */
	bool           unlistened;
	bool           starved;            /* accepts nobody for want of descriptors, until the next sweep */
	struct {
		struct net_counts counts;
		atomic_u64 connections, http;      /* http: of them, how many speak that       */
		atomic_u64 received, asleep_ns, moved;     /* crew.h; moved: came from others   */
		atomic_u32 idle;           /* no command waits, nothing is to be sent               */
		atomic_u32 changes;        /* changed under server.change_lock                      */
	} shown;
	alignas(CACHE_LINE) atomic_ptr late;       /* struct late; any thread                       */
	atomic_u64     late_event_bytes;           /* of them, what is to be pushed                 */
	atomic_u64     pushes_dropped;             /* any thread                                    */
	atomic_u32     lease;                      /* lend.c: who may touch all this                */
};

/* ── listen.c ── */
int  listen_open(struct server *s);                      /* all its sockets; the sentence names the address */
void listen_close(struct server *s);
void server_unlisten(struct server *s, uint32_t worker);       /* this one has no network */

/* ── server.c ── */
int  server_open(struct server **server, const noh_listen_options *o, uint32_t workers, const struct net_door *door);
void server_close(struct server *s);                   /* no worker runs any more */
int  server_set_accounts(struct server *s, const noh_account *list, size_t count);
uint64_t account_mark(const uint8_t token[32]);        /* what a session keeps of it */
bool server_is_guarded(struct server *s);            /* else everybody may do all */
void server_stats(struct server *s, noh_net_stats *stats);
void server_stop(struct server *s);                    /* nobody new, no new commands */
void server_drain(struct server *s);                   /* it will end: what is refused is said to be for that */
bool server_idle(struct server *s);                    /* ... and all that were given are answered */

/* ── change.c ── */
int  server_set_options(struct server *s, const noh_listen_options *o);
uint32_t server_changed(struct server *s);             /* every worker looks what is new; its number */
bool server_all_saw(struct server *s, uint32_t change);         /* every worker goes by it          */
void change_take(struct net *n);                       /* what is new, on this worker            */
void change_open(struct net *n);                       /* it goes by all there is                */
void change_check(struct net *n, struct conn *c);      /* one that comes from a worker that did not go by the last one */

/* ── net.c: the stages of a worker's pass ── */
bool net_open(struct server *s, uint32_t worker);      /* on the worker's thread; false: no network here */
void net_close(struct net *n);
uint32_t net_read(struct net *n);                      /* bytes   -> requests, delivered        */
uint32_t net_write(struct net *n);                     /* replies -> bytes                      */
void net_submit(struct net *n);                        /* what is to be sent, now: before blocking elsewhere */
bool net_ready(struct net *n);                         /* is there something to read or write?  */
bool net_pending(struct net *n);                       /* the same without a look at the sockets */
void net_wait(struct net *n, uint64_t timeout_ns);
void net_wake(struct net *n);

/* ── slot.c ── */
#define TOKEN_NET (UINT64_C(1) << 63)
#define NET_REPLAYED 0x10000       /* in the status of an answer: it was stored with its idempotency key */
#define TOKEN_HTTP (UINT64_C(1) << 62)                 /* it came by HTTP: for who counts       */
static inline uint32_t token_worker(uint64_t token) { return (uint32_t)token >> 21 & 1023; }
void net_answer(struct net *n, uint64_t token, uint64_t due, int status, const void *body, size_t len);
void net_answer_parts(struct net *n, uint64_t token, uint64_t due, int status, const struct reply_part *parts, uint32_t count);
/* From another thread; true: wake the worker. Out of memory: the answer is lost, and TIMEOUT will tell. */
bool net_answer_late(struct net *n, uint64_t token, uint64_t due, int status, const void *body, size_t len);
bool net_answer_parts_late(struct net *n, uint64_t token, uint64_t due, int status, const struct reply_part *parts,
			   uint32_t count);
uint32_t slot_take_late(struct net *n);
bool slot_text(struct net *n, struct conn *c);         /* scratch becomes a reply that waits its turn */
void slot_expire(struct net *n, struct conn *c);       /* who has waited too long               */
void slot_abandon(struct net *n, struct conn *c);      /* its client is gone                    */
void slot_expire_orphans(struct net *n);               /* nothing is on its way to the door     */
void slot_write(struct net *n, struct conn *c);        /* replies that are ready, as far as they go in order */
uint32_t slot_take(struct net *n, struct conn *c);     /* 0: no memory                          */
void slot_give(struct net *n, uint32_t number);
void slot_enqueue(struct net *n, struct conn *c, uint32_t number);     /* the last of its connection's */
void slot_ready(struct net *n, uint32_t number);       /* its answer is there                   */
uint64_t slot_token(struct net *n, uint32_t number);
uint32_t slot_of(struct net *n, uint64_t token);       /* 0: nobody waits for it any more       */
bool slots_open(struct net *n);
void slots_close(struct net *n);

bool net_push_late(struct net *n, struct late *l);     /* true: it was empty, so wake it        */
bool net_push_late_all(struct net *n, struct late *newest, struct late *oldest);       /* the same of a list */

/* ── pubsub.c ── */
/* To all connections of all workers that have subscribed; self: the calling worker, UINT32_MAX: none. In an
 * epoch section. topic: of the channel; NULL: there is none. Returns how many that are. */
uint64_t server_publish(struct server *s, uint32_t self, struct topic *topic, const struct event *e);
void pubsub_late(struct net *n, const struct late *l);
void pubsub_settle(struct net *n);                     /* a command is over that pushed to its own client (own) */
void pubsub_forget(struct net *n, struct conn *c);     /* all its subscriptions                 */

/* ── request.c ── */
#define PREFIX_ROOM 16
extern const char request_prefixes[][PREFIX_ROOM];     /* by enum request_type: what stands before the id */
void request_deliver(struct net *n);                   /* what has arrived, to the door         */
uint32_t request_retry(struct net *n, struct conn *c); /* what was held                         */
void request_abandon(struct net *n, struct conn *c);
void request_refuse(struct net *n, uint64_t token, int rc);      /* it was not even sent: the sentence says why */
/* What the command has on its stack or in its arguments is copied, but for large bodies: those are delivered before it
 * returns. */
void request_arrive(struct net *n, const struct request *r, uint32_t slot);

/* ── call.c ── */
/* A slot for one answer from elsewhere, the last of its connection's. 0: no memory, and the client was told. */
uint32_t request_slot(struct call *c, uint32_t timeout_ms, format_fn *format, struct tag tag);

/* ── took.c ── */
uint32_t took_total(const struct server *s);           /* what may be measured: commands, then routes */
bool took_open(struct net *n);
void took_close(struct net *n);
void took_pass(struct net *n, uint64_t now_ns);        /* a pass begins                         */
void took_begin(struct net *n, struct conn *c, uint32_t what);   /* timed.armed: it has just been run */
void took_written(struct net *n, struct conn *c);      /* timed.slot's reply is                 */
void took_lost(struct net *n);                         /* timed.slot went without one           */
void took_durable(struct net *n);                      /* timed.due is set, and may have come   */
uint64_t server_calls(struct server *s, uint32_t what);                         /* how often; any thread */
void server_took(struct server *s, uint32_t what, struct histogram_sum *sum);    /* any thread */
/* ── trace.c ── */
#define TRACE_BYTES ((TRACE_STATE_MAX + 7) / 8 * 8 + sizeof(struct trace_tail))
/* The trace of a request that takes this slot, in net.bytes, where there is room for TRACE_BYTES; NULL: it has none. */
const struct trace_tail *net_trace(struct net *n, const struct request *r, uint32_t slot);
void net_trace_every(struct net *n, uint32_t requests);
void net_trace_replied(struct net *n, uint32_t slot, uint64_t due);
void net_trace_left(struct net *n);                    /* what may leave has left               */

/* ── roll.c ── */
void roll_kill(struct net *n, uint64_t id);

/* ── option.c ── */
void option_defaults(noh_listen_options *o);
void option_compare(struct server *s, const noh_listen_options *fresh, uint32_t change);   /* change_lock is held */
void option_take(struct net *n, uint32_t since);       /* those changed since; change_lock is held */
void option_limits(struct net *n);                     /* from n->o */
void option_late(struct net *n, const struct late *l);

/* ── conn.c ── */
extern const struct io_handlers conn_handlers;
struct conn *conn_at(struct net *n, uint32_t number, uint16_t gen);     /* NULL: gone */
bool conn_enter(struct net *n, struct conn *c);        /* it is this worker's from now on; false: no memory, it is nobody's */
void conn_begin(struct net *n, struct conn *c);        /* ... and is listened to                 */
void conn_leave(struct net *n, struct conn *c);        /* it is nobody's any more, and ...       */
void conn_lost(struct net *n, struct conn *c);         /* ... nobody's ever again                */
void conn_run(struct net *n, struct conn *c);          /* commands out of its input, as long as it may */
void conn_may_go_on(struct net *n, struct conn *c);    /* something it waited for has happened    */
void conn_end(struct net *n, struct conn *c);          /* now */
bool conn_is_done(const struct conn *c);               /* nothing more will come of it: all that it asked is answered
							  and sent ...                           */
void conn_finish(struct net *n, struct conn *c);       /* ... so it may end                      */
uint32_t conn_run_backlog(struct net *n);
void conn_bury(struct net *n);                         /* frees who is dead: end of a pass       */
bool conns_open(struct net *n);
void conns_close(struct net *n);

/* ── conn_resp.c: commands; http_conn.c: requests ── */
size_t resp_run(struct net *n, struct conn *c, char *bytes, size_t len, bool *cut);
size_t http_run(struct net *n, struct conn *c, char *bytes, size_t *len, bool *cut);
void conn_before(struct net *n, struct conn *c);       /* a command or request is run, and ...    */
void conn_after(struct net *n, struct conn *c);        /* was: its reply is sent, in its turn     */
void conn_reply_from(struct net *n, struct conn *c);   /* those asked before were delivered in between */
bool http_is_late(const struct net *n, const struct conn *c);   /* head or body took too long     */
void http_too_late(struct net *n, struct conn *c);     /* tells it so, and ends it                */
/* Whether a request with this head may go on; else it was told why not. c->http.route: where it goes. */
bool http_admit(struct call *c, const struct http_request *q);

/* ── conn_time.c ── */
void conn_sweep(struct net *n);                        /* time-outs                              */

/* ── conn_out.c ── */
void conn_wrote(struct net *n, struct conn *c, uint64_t due);           /* its output has grown */
uint32_t conn_release_gated(struct net *n);            /* what is on disk by now may leave       */
uint32_t conn_flush_dirty(struct net *n);
void conn_sent(struct net *n, struct conn *c, bool ok);
bool conn_output_full(const struct net *n, const struct conn *c);
void conn_unwrite(struct conn *c, size_t len);         /* a muted reply */
void conn_goes_first(struct net *n, struct conn *c);   /* its reply, before what is written from here on */
void conn_was_silent(struct net *n, struct conn *c);   /* one that came by a slot: it may go on all the same */

static inline bool conn_may_run(const struct net *n, const struct conn *c)
{
	return !(c->flags & (CONN_STALLED | CONN_ENDING | CONN_DEAD | CONN_FEED)) && c->steps == 0 && !(c->alone && c->first) &&
	       c->waiting < n->o.max_pipeline && !conn_output_full(n, c);
}

#endif
