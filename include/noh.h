/* noh.h - the noh actor runtime, as a C library.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A *box* runs any number of *actors* on a few worker threads. An actor has an address
 * "type:id", a state of fixed size, a key-value part and a mailbox. It handles one message at a
 * time, on one thread at a time, so its state needs no lock. An address needs no creation: the
 * first message activates it, and an actor that has been idle for a while goes back to storage.
 *
 *	noh_box *box;
 *	noh_open(&box, NULL);                          one box with defaults
 *	noh_register(box, &my_type);                   once per type
 *	noh_start(box);
 *	noh_send(box, "hits:home", INCR, &one, 8);     from any thread
 *	noh_stop(box, 5000);
 *	noh_close(box);
 *
 * Beside it   noh_actors.h: counters, inventory; noh_json.h: JSON for hooks; noh_reconcile.h: actors that keep
 *             a thing as it should be
 * Contents    1 results and errors    2 the box      3 actor types    4 from any thread
 *             5 inside a turn         6 numbers      7 a data directory, from outside
 *             8 the network           9 a log
 *
 * Threads     Section 4 and 6 may be called from any thread at any time between noh_start and
 *             noh_close; section 5 only by the hook that was handed the turn, until it returns.
 * Blocking    Nothing blocks unless its comment says so. What blocks is refused inside a turn.
 * Ownership   What you pass in is copied. What a hook is handed is valid until it returns.
 * Never       exit(), signals, mutable globals. Several boxes may live in one process.
 */
#ifndef NOH_H
#define NOH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NOH_VERSION "0.1.0"
#if defined(__GNUC__)
#define NOH_API __attribute__((visibility("default")))
#define NOH_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define NOH_API
#define NOH_PRINTF(f, a)
#endif

/* ── 1 results and errors ────────────────────────────────────────────────────────────────────
 * Zero and above are outcomes, below zero are errors. An error has a code, the code's text
 * (noh_strerror), and a sentence about this very case (noh_why: what happened, to what, and what
 * to do), kept per thread until that thread's next error. */
enum {
	NOH_OK = 0,
	NOH_FULL = 1,          /* the mailbox is full; nothing was sent                          */
	NOH_NOBODY = 2,        /* nobody waits for this answer; nothing was sent                 */
	NOH_END = 3,           /* no further entry                                               */
	NOH_REFUSED = 4,       /* the actor says no, and its answer says why; nothing was done   */

	NOH_ENOMEM = -1,       /* out of memory, or over the box's memory budget                 */
	NOH_EINVAL = -2,       /* an argument makes no sense                                     */
	NOH_EADDRESS = -3,     /* not an address: no colon, too long, empty, or a NUL in it      */
	NOH_ENOTYPE = -4,      /* no such type is registered                                     */
	NOH_EKIND = -5,        /* the type has no such message kind                              */
	NOH_ETOOBIG = -6,      /* the message is over the limit                                  */
	NOH_EEXISTS = -7,      /* registered already                                             */
	NOH_ESTOPPED = -8,     /* the box is stopping, stopped or not started                    */
	NOH_EREPLIED = -9,     /* this message was answered already                              */
	NOH_EINTURN = -10,     /* a blocking call inside a turn                                  */
	NOH_EGONE = -11,       /* the reference is stale: the actor went idle; use its address   */
	NOH_ETIMEOUT = -12,    /* no answer in time; it may still take effect                    */
	NOH_ECYCLE = -13,      /* waiting for this answer would close a circle of waiting actors */
	NOH_EFAILED = -14,     /* the actor's hook failed; the turn had no effect                */
	NOH_ENOACTOR = -15,    /* no such actor is active                                        */
	NOH_ESYSTEM = -16,     /* the operating system refused something                         */
	NOH_EREADONLY = -17,   /* a read-only message kind tried to change something             */
	NOH_EDISK = -18,       /* the disk failed: the box ends, a restart recovers              */
	NOH_ENOSPC = -19,      /* no space left on disk: nothing was changed, reads go on        */
	NOH_ECORRUPT = -20,    /* a file is damaged; the sentence names it and the place         */
	NOH_EINUSE = -21,      /* another box has the data directory open                        */
	NOH_EVERSION = -22,    /* stored by another version, and no migration leads here         */
	NOH_EIDEM = -23,       /* the idempotency key was used with another message              */
	NOH_EPOISON = -24,     /* the message crashed the box again and again; it was set aside  */
	NOH_EQUARANTINED = -25,/* the actor (or its type) failed too often: noh_resume, or a higher revision */
	NOH_EDEGRADED = -26,   /* the actor failed too often: it is tried again later, or was stopped */
	NOH_ETOOOLD = -27,     /* events after this cursor are gone; the sentence names the oldest one there is */
	NOH_ERATE = -28        /* over the limits of its type; nothing was sent, try again later */
};

NOH_API const char *noh_strerror(int code);   /* "mailbox full"; never NULL           */
NOH_API const char *noh_why(void);            /* this thread's last error; never NULL */
NOH_API const char *noh_version(void);

/* ── 2 the box ───────────────────────────────────────────────────────────────────────────────*/
typedef struct noh_box noh_box;
typedef struct noh_turn noh_turn;

/* A reference to an active actor: a value, 8 bytes. Copy it, send it to others, keep it. Sending
 * by reference costs no look-up. It goes stale (NOH_EGONE) when the actor goes back to storage;
 * the address works always. { 0 } refers to nobody. */
typedef struct noh_actor { uint64_t bits; } noh_actor;

enum { NOH_DEBUG, NOH_INFO, NOH_WARN, NOH_ERROR };

/* One line of the log, without newline. actor is "" where no actor is concerned. Called from any
 * thread, also from several at once. */
typedef void noh_log_fn(void *user, int level, const char *actor, const char *line);

/* The same with all there is to say about it. Texts are as they were given: whoever writes them somewhere escapes
 * them (noh_logger_write does). "" where there is none. Never a payload, a state or a secret, unless an actor's own
 * code puts one into its line. */
typedef struct noh_log_line {
	int         level;
	const char *msg;
	const char *actor;            /* address                                                   */
	const char *type;             /* of that actor                                             */
	const char *msg_id;           /* of the message its turn handles, if that is recorded      */
	const char *trace_id, *span_id;      /* of that turn                                       */
	int         shard;            /* the worker; -1: said by another thread                    */
} noh_log_line;
typedef void noh_log_line_fn(void *user, const noh_log_line *line);

/* All zero is a good start: NULL or a zeroed struct gives the defaults in the comments. */
typedef struct noh_options {
	unsigned     workers;         /* worker threads; 0: one per core of the affinity mask      */
	bool         unpinned;        /* do not pin workers to cores                               */
	uint32_t     max_message;     /* bytes of one message; 0: 1 MiB                            */
	uint64_t     memory_budget;   /* bytes for the box, except messages and volatile actors at rest;
					 when they are short the coldest go to disk; 0: no limit   */
	uint64_t     max_actors;      /* active at once; 0: memory / 128. Costs address space   */
	uint32_t     slow_turn_ms;    /* a longer turn is reported with its actor; 0: 100          */
	uint64_t     seed;            /* of hashing and of random choices; 0: taken from the system */
	const char  *dir;             /* data directory, made if need be; NULL: nothing is kept    */
	uint64_t     journal_bytes;   /* not folded into the image yet, at most; 0: 256 MiB        */
	uint64_t     idem_ms;         /* how long idempotency keys are kept; 0: 24 h               */
	uint64_t     idem_bytes;      /* and how many bytes of them, then the oldest go; 0: 1 GiB  */
	bool         no_uring;        /* plain file calls even where io_uring works                */
	noh_log_fn  *log;             /* NULL: stderr, from NOH_WARN up (and noh_tell_admin's)     */
	void        *log_user;
	noh_log_line_fn *log_line;    /* instead of log, if given; log_user is its user, too       */

	uint64_t     events_bytes;    /* of the event log, then the oldest go; 0: 256 MiB; without a directory,
					 where they are in memory: 16 MiB                          */
	uint64_t     events_ms;       /* how long events are kept; 0: 7 days                       */
	int          events_detail;   /* NOH_EVENTS_...; 0: NOH_EVENTS_DEFAULT                     */
} noh_options;

/* What the box itself tells as events (what actors tell themselves always is): failures, restarts, escalations, drops,
 * dead letters, drain, changed settings, and the comings and goings of actors of supervised types; those of all
 * types; nothing. */
enum { NOH_EVENTS_DEFAULT, NOH_EVENTS_ALL, NOH_EVENTS_NONE };

/* Make a box; no thread runs yet. With a data directory it locks it and reads what the last run left in the
 * journal, and may block for that. Returns NOH_OK, NOH_ENOMEM, NOH_EINVAL, NOH_ESYSTEM; with a directory
 * also NOH_EDISK, NOH_ENOSPC, NOH_ECORRUPT, NOH_EINUSE, NOH_EVERSION, each with a sentence that names the
 * file and the way out, and then nothing was changed. */
NOH_API int noh_open(noh_box **box, const noh_options *options);

/* Start the workers. Types are registered before this. */
NOH_API int noh_start(noh_box *box);

/* Refuse new work from outside, finish what waits, deactivate every actor (trees as noh_stop_tree does, then
 * the others; hooks run, states are stored), end the threads. Blocks at most timeout_ms; whatever is left then is dropped and
 * counted, and NOH_ETIMEOUT is returned. A box that was stopped can only be closed. */
NOH_API int noh_stop(noh_box *box, uint32_t timeout_ms);

/* Before it stops: refuse new work from outside (NOH_ESTOPPED) and let no schedule fire, finish what waits, deactivate every
 * actor (trees as noh_stop_tree does, then the others), and have all of it on disk. Unlike noh_stop it leaves workers and network at work: clients are told why they are
 * refused, and may see how far it is. progress (or NULL) is told some ten times a second, on the calling thread; anything but
 * 0 ends it. Blocks at most timeout_ms. NOH_OK: nothing is left; NOH_ETIMEOUT: the sentence says what is, and whether
 * progress ended it; NOH_EEXISTS: it is being drained already. Then noh_stop: there is no way back. */
typedef struct noh_drain_state {
	bool     draining;
	uint64_t actors;              /* still in memory                             */
	uint64_t messages;            /* still to be handled                         */
	uint32_t left_ms;             /* until its deadline                          */
} noh_drain_state;
typedef int noh_drain_fn(void *user, const noh_drain_state *state);
NOH_API int noh_drain(noh_box *box, uint32_t timeout_ms, noh_drain_fn *progress, void *user);
NOH_API int noh_get_drain(noh_box *box, noh_drain_state *state);   /* any thread; NOH_ESTOPPED */

/* Change these two of its options while it runs; zero means what it means there. With less memory the coldest
 * actors go back to storage from now on; the journal and the workers' buffers stay as they were made. Threads:
 * any, one at a time. */
NOH_API int noh_set_memory_budget(noh_box *box, uint64_t bytes);
NOH_API int noh_set_slow_turn(noh_box *box, uint32_t ms);

/* Are the workers alive? Wakes them all, and says how long ago the one that lags most was last seen to have gone
 * round: in the call before, if all is well. So call it again and again, some seconds apart; a worker inside one
 * long turn, or one call of the system that does not come back, makes it grow. worker (or NULL): which one.
 * NOH_OK, NOH_ESTOPPED. Threads: any, one at a time. Never blocks. */
NOH_API int noh_pulse(noh_box *box, uint64_t *silent_ms, unsigned *worker);

/* Free everything. Stops first, at once, if need be. No other thread may be inside the box. */
NOH_API void noh_close(noh_box *box);

/* What is logged: "info", or "info counter=debug orders=error": the least level of all types but those that have
 * their own. Levels: debug, info, warn, error. All that was set before is replaced. Any thread, any time after
 * noh_register; at first all is logged (to stderr: from warn up). A line below its level costs a comparison.
 * NOH_OK, NOH_EINVAL, NOH_ENOTYPE; then nothing has changed. */
NOH_API int noh_set_log_level(noh_box *box, const char *levels);
NOH_API int noh_get_log_level(noh_box *box, char *levels, size_t size);   /* as above; cut to size */

/* ── 3 actor types ───────────────────────────────────────────────────────────────────────────*/

/* One message, as a hook sees it. */
typedef struct noh_msg {
	uint32_t    kind;
	uint32_t    len;
	const void *body;       /* len bytes, aligned to 8                                         */
	uint32_t    flags;      /* NOH_MSG_...; other bits are the box's own                       */
	int         status;     /* of an answer: NOH_OK, NOH_REFUSED, or why there is none; else NOH_OK */
	uint64_t    ask;        /* of an answer: the number noh_ask gave                           */
	uint64_t    reply_to;   /* opaque; see noh_reply_to and noh_promise                        */
} noh_msg;

enum {
	NOH_MSG_WANTS_REPLY = 1,   /* somebody waits for the answer    */
	NOH_MSG_ANSWER = 2,        /* the answer to a noh_ask          */
	NOH_MSG_TIMER = 4          /* sent by noh_schedule_...         */
};

/* A message kind of a type: its index in the table is the number used in send and tell.
 * Declaring kinds is optional; a type without a table takes any number.
 *
 * NOH_KIND_READ      only reads. noh_call runs it on the calling thread against the state of the
 *                    last finished turn, beside the mailbox; noh_state gives a copy, and whatever
 *                    would change something returns NOH_EREADONLY.
 * NOH_KIND_COALESCE  of the waiting messages with one key, only the one with the highest revision
 *                    is handled (the latest of equals); the others are counted as coalesced, and
 *                    answered empty if somebody waits.
 *                    coalesce() reads both out of the body.
 * NOH_KIND_TIMER     sent by the actor's own schedule alone; from outside it is NOH_EKIND.
 * NOH_KIND_PERSONAL  of one kind at most: what is published on the actor's personal channel comes as
 *                    this kind (see noh_publish). */
typedef struct noh_kind {
	const char *name;
	uint32_t    flags;
	void      (*coalesce)(const void *body, size_t len, uint64_t *key, uint64_t *revision);
} noh_kind;

enum { NOH_KIND_READ = 1, NOH_KIND_COALESCE = 2, NOH_KIND_TIMER = 4, NOH_KIND_PERSONAL = 8 };

/* What happens to a message for a mailbox that holds its capacity already.
 *
 * NOH_DROP_OLDEST  the oldest message not yet started is dropped and counted; the send is NOH_OK
 * NOH_DROP_NEWEST  the send is NOH_FULL
 * NOH_BLOCK        noh_send is NOH_FULL, noh_send_wait and noh_call wait; a sending *actor's*
 *                  message is accepted, and the sender rests after its turn until the mailbox is
 *                  at half. Actors that would rest in a circle do not rest. At four times the
 *                  capacity noh_tell is NOH_FULL; a turn may `return NOH_FULL` then: it is undone
 *                  and run again when the mailbox is at half. (Not for its own mailbox: that
 *                  cannot empty while it waits, so the turn fails.)
 * Messages sent in turns that run at the same moment on several workers may exceed the capacity by
 * what those turns send: an accepted message is never taken back. What one durable actor sends to
 * another is never dropped: such a mailbox may hold more, and drops others instead. */
enum { NOH_DROP_OLDEST = 0, NOH_DROP_NEWEST = 1, NOH_BLOCK = 2 };

#define NOH_NEVER UINT32_MAX

/* From a stored state of version `from` to version from + 1. *len is the room in fresh on entry (1 MiB)
 * and the length of the new state on return. NOH_OK, or the actor cannot be activated. */
typedef struct noh_migration {
	uint32_t from;
	int    (*migrate)(void *user, const void *old, size_t old_len, void *fresh, size_t *len);
} noh_migration;

/* A channel that every actor of a type listens to as long as it is active: what is published there comes
 * as a message of this kind. Subscribed before on_activate runs. See noh_publish. */
#define NOH_CHANNEL_MAX 512
typedef struct noh_topic {
	const char *channel;               /* 1 to NOH_CHANNEL_MAX bytes                         */
	uint32_t    kind;
} noh_topic;

/* Limits of a type. All zero: none, and then they cost nothing. Tokens are counted: one for each message of others that an
 * actor handles; what a bucket holds at most is its burst, and it fills at its rate.
 *
 * per_second, burst              of all actors of the type together; burst 0: what comes in a second, at least 1 (and in any
 *                                case what comes in 2 ms)
 * actor_per_second, actor_burst  the same of each actor. Its bucket is full again when it comes back from storage
 * turns                          of so many of its actors turns run at the same moment (a turn is on one worker, so more than
 *                                there are workers is no limit); others wait, first come, first served
 * over                           NOH_OVER_WAIT: a message without a token stays in the mailbox, and its actor rests until the
 *                                token comes: so the mailbox may fill, and then its full mode counts. Those who came first
 *                                go first. NOH_OVER_REFUSE: the send is NOH_ERATE (what is published on a channel: the actor
 *                                does not get it), and noh_why says when to try again
 * Answers, timers, activation, what noh_call reads beside the mailbox: none of these needs a token. Of kinds that coalesce,
 * those that are handled do. A noh_step does not wait, however `over` is: it is NOH_ERATE if one of its actors has none, and
 * it needs no place among the turns. Limits hold while the box stops, too: leave it the time. */
enum { NOH_OVER_WAIT = 0, NOH_OVER_REFUSE = 1 };
#define NOH_RATE_LEAST 0.001
#define NOH_RATE_MOST 1e7
#define NOH_BURST_MOST 1000000
typedef struct noh_limits {
	double   per_second;               /* 0 (no limit), or NOH_RATE_LEAST to NOH_RATE_MOST   */
	uint32_t burst;                    /* at most NOH_BURST_MOST                             */
	double   actor_per_second;
	uint32_t actor_burst;
	uint32_t turns;                    /* 0: no limit                                        */
	int      over;
} noh_limits;

/* JSON: over HTTP a message comes as {"message_type": "incr", "message": {"by": 5}}, and its answer goes as an object.
 * A type whose bodies are not JSON themselves says with two hooks how one is made of the other. They run on any
 * thread, outside of turns, and know nothing of the actor; noh_json.h has what they need, any other library will do.
 *
 * from_json   NOH_OK; NOH_EKIND: there is no such message; NOH_EINVAL: it is none of this kind, and `why` (or, if that is
 *             empty, noh_why) says what must be different; NOH_ETOOBIG: room is not enough for len, call again
 * to_json     NOH_OK: json_len bytes are one JSON object; if that is more than room, it is called again with as much.
 *             Below zero: it is shown as if there were no hook
 * Without from_json the text of the message is the body, as it came, and message_type is the name of a kind (of a type
 * without names: its number). Without to_json an answer that is a JSON object is passed on as it is, any other JSON is
 * {"value": ...}, other text {"text": "..."}, other bytes {"base64": "..."}; none is {}. */
typedef struct noh_json_message {
	const char *type;              /* message_type                                           */
	const char *json;              /* the message: an object, checked: see noh_json.h        */
	size_t      json_len;
	uint32_t    kind;              /* to be set; as it comes: the kind of that name, or UINT32_MAX */
	void       *body;              /* to be filled; aligned to 8                             */
	size_t      room;              /* bytes; at least 256                                    */
	size_t      len;               /* to be set                                              */
	char        why[200];
} noh_json_message;
typedef struct noh_json_reply {
	uint32_t    kind;
	int         status;            /* NOH_OK or NOH_REFUSED                                  */
	const void *body;
	size_t      len;
	char       *json;              /* to be filled                                           */
	size_t      room;
	size_t      json_len;          /* to be set                                              */
} noh_json_reply;

/* Supervision: what happens when actors of a type fail. A type without it (NULL) has none: a failed turn is undone and
 * answered, and the actor goes on with its next message.
 *
 * A failure is: a hook that returns an error (noh_fail), a turn that took longer than its deadline (noticed at its end), a
 * turn in which the process ended. (Not: noh_refuse, a full disk, a step over several actors: these are answered.) The
 * turn is undone, its message stays in front, and the actor is down until its back-off is over: what others send waits in
 * its mailbox meanwhile. Then it is restarted: on_activate runs with the state as last committed, and the message comes
 * again; after `retries` of them it is set aside as a dead letter, its caller is told so as of any
 * failure, and the actor goes on.
 * The back-off is uniform in [0, min(cap_ms, base_ms * factor^n)], n: failures before this one without within_ms of
 * quiet in between.
 *
 * A failure beyond `restarts` in within_ms is too many; then `then` of its supervisor says what becomes of it, or, if it
 * has no parent that is supervised, its own:
 *     NOH_THEN_ESCALATE         the parent fails: it is restarted (or fails too often itself), and then its children, in
 *                               the order spawned. Without a parent: as NOH_THEN_DEGRADE
 *     NOH_THEN_DEGRADE          degraded: all messages are refused (NOH_EDEGRADED) for cap_ms, then it is tried again
 *     NOH_THEN_STOP             stopped: refused (NOH_EDEGRADED) until noh_resume
 *     NOH_THEN_QUARANTINE       refused (NOH_EQUARANTINED) until noh_resume
 *     NOH_THEN_QUARANTINE_TYPE  the same with all actors of its type
 *     NOH_THEN_AWAIT            refused (NOH_EQUARANTINED) until noh_resume, or until a message of a NOH_KIND_COALESCE kind
 *                               comes whose revision is above the desired one (noh_set_revision)
 * A message that is refused and was sent by a durable actor to a durable one is set aside as a dead letter.
 *
 * strategy is about its children: NOH_ONE_FOR_ONE restarts the one that failed. With NOH_ONE_FOR_ALL all of them are down,
 * with NOH_REST_FOR_ONE those spawned after it, until its back-off is over; then they are restarted in the order spawned.
 * (Children of types without supervision are not.)
 *
 * restart is about itself. NOH_PERMANENT: always; also if it stops by itself (noh_stop_self), after base_ms.
 * NOH_TRANSIENT: after failures. NOH_TEMPORARY: not at all: its message is set aside, what waits fails (NOH_EFAILED), it
 * goes back to storage, and the next message wakes it. */
enum { NOH_ONE_FOR_ONE, NOH_ONE_FOR_ALL, NOH_REST_FOR_ONE };
enum { NOH_PERMANENT, NOH_TRANSIENT, NOH_TEMPORARY };
enum { NOH_THEN_ESCALATE, NOH_THEN_DEGRADE, NOH_THEN_STOP, NOH_THEN_QUARANTINE, NOH_THEN_QUARANTINE_TYPE, NOH_THEN_AWAIT };
typedef struct noh_supervision {
	int      strategy;                 /* NOH_ONE_FOR_ONE ...                                */
	int      restart;                  /* NOH_PERMANENT ...                                  */
	int      then;                     /* NOH_THEN_...                                       */
	uint32_t base_ms;                  /* 0: 100                                             */
	uint32_t factor;                   /* 0: 2; at most 100                                  */
	uint32_t cap_ms;                   /* 0: 30 000                                          */
	uint32_t restarts;                 /* 0: 5; NOH_NEVER: there are never too many          */
	uint32_t within_ms;                /* 0: 60 000                                          */
	uint32_t retries;                  /* of a message; 0: 3; NOH_NEVER: it is set aside at once */
	uint32_t turn_deadline_ms;         /* 0: none                                            */
	uint32_t stop_ms;                  /* to stop, in noh_stop_tree; then by force; 0: 5000  */
} noh_supervision;

/* A turn is a transaction: what a hook changes (state, key-value part), sends, schedules and
 * answers takes effect when it returns NOH_OK, all together, and not at all when it returns
 * anything below zero. Then whoever waits for the answer gets NOH_EFAILED (or the returned
 * code), the failure is counted and logged, and the actor goes on with the next message. (To say no
 * without failing there is noh_refuse.)
 *
 * on_activate    after the state was loaded (zeroed if none is stored), before any message
 * on_message     one message
 * on_batch       if given, called instead with up to 64 waiting messages: one turn, one state
 *                change, an answer to each (noh_reply_to). A batch that fails is undone and run
 *                again one message at a time. Timers and answers come one at a time as well.
 * on_deactivate  before the state is stored for the last time; its changes are stored (on a full disk
 *                it may change, but not send or spawn: then it fails, and that is logged)
 * One of on_message and on_batch is needed, the rest is optional. */
typedef struct noh_type {
	const char     *name;              /* 1 to 63 bytes, no colon, no slash                  */
	uint32_t        state_size;        /* bytes; 0 is fine; at most 1 MiB                    */
	uint32_t        mailbox_capacity;  /* messages; 0: 100; at most 1 Mi                     */
	int             full_mode;         /* NOH_DROP_OLDEST, NOH_DROP_NEWEST, NOH_BLOCK        */
	uint32_t        idle_timeout_ms;   /* 0: 300 000; NOH_NEVER: stays                       */
	const noh_kind *kinds;             /* kept, not copied; may be NULL                      */
	uint32_t        kind_count;
	int           (*on_activate)(noh_turn *turn);
	int           (*on_message)(noh_turn *turn, const noh_msg *msg);
	int           (*on_batch)(noh_turn *turn, const noh_msg *msgs, uint32_t count);
	int           (*on_deactivate)(noh_turn *turn);
	void           *user;              /* yours: noh_user(turn)                              */

	/* In a box with a data directory a type is durable: what a turn did is on disk when its answer
	 * comes. The rest is about that. */
	bool            is_volatile;       /* never on disk: gone with the process               */
	uint32_t        version;           /* of the state's layout; 0 means 1                   */
	uint64_t        schema;            /* any number that changes when the layout does       */
	const noh_migration *migrations;   /* from older versions, one step each; kept           */
	uint32_t        migration_count;

	const noh_topic *topics;           /* subscribed to while active; kept; may be NULL      */
	uint32_t        topic_count;       /* at most 1024                                       */

	int           (*from_json)(void *user, noh_json_message *message);   /* both may be NULL */
	int           (*to_json)(void *user, noh_json_reply *reply);

	noh_limits      limits;            /* of messages and turns                              */
	const noh_supervision *supervision;   /* copied; NULL: none                              */
} noh_type;

/* Before noh_start. Returns NOH_OK, NOH_EEXISTS, NOH_EINVAL, NOH_ENOMEM, NOH_ESTOPPED. */
NOH_API int noh_register(noh_box *box, const noh_type *type);

/* Another idle time for a registered type, also while the box runs; 0 and NOH_NEVER as in noh_type. It counts
 * for actors that idle already. NOH_OK, NOH_ENOTYPE. Threads: any, one at a time. */
NOH_API int noh_set_idle_timeout(noh_box *box, const char *type, uint32_t idle_timeout_ms);

/* Other limits for a registered type, also while the box runs; NULL: none. Buckets are full then, and whoever rests by the
 * old limits goes by the new ones. Looks at every actor in memory. NOH_OK, NOH_ENOTYPE, NOH_EINVAL, NOH_ENOMEM. Threads: any,
 * one at a time. noh_get_limits: as they are in force, with the bursts filled in. */
NOH_API int noh_set_limits(noh_box *box, const char *type, const noh_limits *limits);
NOH_API int noh_get_limits(noh_box *box, const char *type, noh_limits *limits);

/* The number of the message kind of this name; the type has a table of kinds. Any thread. NOH_ENOTYPE, NOH_EKIND. */
NOH_API int noh_kind_number(noh_box *box, const char *type, const char *name);

/* The type of this name as it was registered, defaults filled in; valid as long as the box. Any thread, after noh_start.
 * NULL: there is none. */
NOH_API const noh_type *noh_find_type(noh_box *box, const char *name);

/* ── 4 from any thread ───────────────────────────────────────────────────────────────────────
 * Addresses are "type:id", split at the first colon ("type/id" means the same if there is no
 * colon before the slash); at most 255 bytes, no NUL, id not empty. */

/* Put a message into the actor's mailbox; activates it if need be.
 * NOH_OK, NOH_FULL, NOH_EADDRESS, NOH_ENOTYPE, NOH_EKIND, NOH_ETOOBIG, NOH_ENOMEM, NOH_ESTOPPED;
 * by reference also NOH_EGONE. */
NOH_API int noh_send(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len);
NOH_API int noh_send_ref(noh_box *box, noh_actor to, uint32_t kind, const void *body, size_t len);

/* The same; while the mailbox is full and its type's mode is NOH_BLOCK, blocks up to timeout_ms. */
NOH_API int noh_send_wait(noh_box *box, const char *address, uint32_t kind, const void *body,
			  size_t len, uint32_t timeout_ms);

/* Send and wait for the answer. Blocks at most timeout_ms. *answer_len is the room in answer on
 * entry and the length of the answer on return; a longer answer is cut to the room and
 * NOH_ETOOBIG returned with the full length. Both may be NULL. A turn that does not answer gives
 * an empty answer. Inside a turn: NOH_EINTURN (use noh_ask). */
NOH_API int noh_call(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
		     uint32_t timeout_ms, void *answer, size_t *answer_len);

/* The same without waiting: done is called exactly once, on a worker (or, if the message is dropped
 * or the box stops, on the thread that did so), and must not block. If noh_call_then itself returns
 * an error or NOH_FULL, done is not called. */
typedef void noh_done_fn(void *user, int status, const void *answer, size_t len);
NOH_API int noh_call_then(noh_box *box, const char *address, uint32_t kind, const void *body,
			  size_t len, uint32_t timeout_ms, noh_done_fn *done, void *user);

/* Both with everything there is to say about a call. NULL or zeroed: 30 000 ms, NOH_DISK, no key.
 *
 * durability  NOH_DISK: the answer comes when what it tells is on disk. NOH_MEMORY: as soon as the turn
 *             is over; a crash in the next instant may lose it. (A type that is volatile, or a box
 *             without a data directory, has nothing to wait for.)
 * key         an idempotency key, 1 to 255 bytes: however often a message with it is sent to this
 *             actor, it is handled once, and each time answered as the first time; with another kind
 *             or body it is NOH_EIDEM. Kept as long as noh_options says. Durable types only.
 * traceparent, tracestate   the W3C trace this call is part of, as it was received or as noh_trace told it.
 *             What is none by that standard is ignored. Not in a noh_step. See noh_trace. */
enum { NOH_DISK = 0, NOH_MEMORY = 1 };
typedef struct noh_call_options {
	uint32_t    timeout_ms;
	int         durability;
	const void *key;
	size_t      key_len;
	const char *traceparent, *tracestate;
} noh_call_options;
NOH_API int noh_call_with(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
			  const noh_call_options *options, void *answer, size_t *answer_len);
NOH_API int noh_call_then_with(noh_box *box, const char *address, uint32_t kind, const void *body,
			       size_t len, const noh_call_options *options, noh_done_fn *done, void *user);

/* A step over several actors: each part's actor gets its message in a turn of its own (on_message), all of
 * these turns at one moment. They all take effect, or none does: after a crash, too (P4, P6). No message is
 * handled in between by any of the actors, and no read beside the mailboxes sees some of them before and
 * others after.
 *
 * done is called exactly once, on a worker (or on the thread that stops the box, or, between turns of a
 * worker, before noh_step_then returns), must not block, and gets as many answers as there were parts, in
 * their order, valid until it returns. An error of noh_step_then itself means that nothing was done and done
 * is not called. status is
 *     NOH_OK         all of it happened; each part's answer is in its place, empty if its turn gave none
 *     NOH_REFUSED    one part's hook said noh_refuse: nothing happened. answers[i].status of that part is
 *                    NOH_REFUSED, with what it said; the others are NOH_OK and empty
 *     NOH_FULL       one part's hook wrote to a mailbox that is full, and returned so: nothing happened
 *     NOH_ETIMEOUT   not all of the actors came to it in time, and nothing happened; or (with NOH_DISK) it
 *                    happened and is not on disk yet: with a key, the same call again will tell
 *     below zero     nothing happened: a hook failed (answers[i].status of that part says so), an actor could
 *                    not be activated, the disk is full, the box stops ...
 *
 * Parts are run in the order given; an address may be in it once (NOH_EINVAL). At most NOH_STEP_PARTS of
 * them (NOH_EINVAL); bodies and states together, what it records, and its answers are at most
 * NOH_STEP_BYTES each (NOH_ETOOBIG). Inside such a turn noh_defer gives { 0 }: the answer cannot be put off.
 * key (of options) makes the whole step once-only, in whatever order its parts are named: the answers are in the
 * order of the call at hand. It is kept with the actor of the lowest address (byte by byte) among those whose types
 * are durable, and there has to be one (NOH_EINVAL); the same key with other parts, if that actor is among them, is
 * NOH_EIDEM. A refusal is kept as well, a failure is not.
 *
 * Order: what this thread sent to one of the actors before is handled before. What it sends while done has
 * not been called may be handled before or after. Actors that are idle are taken at once; a busy one gets to
 * the step in the order of its mailbox, and those already taken handle nothing until all are there. (If the
 * busy one waits for an answer or for room meanwhile, they are let go, and taken again later.) */
#define NOH_STEP_PARTS 1024
#define NOH_STEP_BYTES (16u << 20)
typedef struct noh_part {
	const char *address;
	uint32_t    kind;
	const void *body;
	size_t      len;
} noh_part;
typedef struct noh_part_answer {
	int         status;
	const void *body;
	size_t      len;
} noh_part_answer;
typedef void noh_step_fn(void *user, int status, const noh_part_answer *answers, size_t count);
NOH_API int noh_step_then(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *options,
			  noh_step_fn *done, void *user);

/* The same, and wait for it: blocks up to the options' timeout. answers (NULL: not wanted) has room for count
 * of them; their bodies are copied into room, one after the other. *room_len is the size of room on entry and
 * what the bodies take on return; if that is more, those that fit are there, and it is NOH_ETOOBIG: the step has
 * happened all the same. Inside a turn: NOH_EINTURN. */
NOH_API int noh_step(noh_box *box, const noh_part *parts, size_t count, const noh_call_options *options,
		     noh_part_answer *answers, void *room, size_t *room_len);

/* Block until everything that has happened so far is on disk. NOH_OK, NOH_ETIMEOUT, NOH_EDISK. */
NOH_API int noh_sync(noh_box *box, uint32_t timeout_ms);

/* Publish on a channel, now (in a turn: noh_publish). Returns how many got it: connected clients that have
 * subscribed to the channel, those whose patterns match it, and active actors. Never waits for any of them.
 * NOH_EINVAL (no such channel can be), NOH_ETOOBIG, NOH_ESTOPPED. On a personal channel (see noh_publish) it is
 * noh_send to that actor as well; if that fails nobody gets it, and its code is the result, for a full mailbox
 * NOH_EFAILED. */
NOH_API int noh_publish_to(noh_box *box, const char *channel, const void *body, size_t len);

/* The reference of an address. Makes room for the actor, but does not activate it. */
NOH_API int noh_ref(noh_box *box, const char *address, noh_actor *ref);

/* Say that you are about to send to it: starts to fetch its memory. Worth it for batches of sends
 * to many actors; never needed. */
NOH_API void noh_hint(noh_box *box, noh_actor to);

/* Activate, and wait until it is active. Blocks at most timeout_ms. */
NOH_API int noh_activate(noh_box *box, const char *address, uint32_t timeout_ms);

/* Finish what waits, run on_deactivate, store the state, release the address. Blocks at most
 * timeout_ms. With force, waiting messages are dropped and counted, and whoever waits for their
 * answers gets NOH_EGONE; a running turn is never cut off. NOH_ENOACTOR if it is not active. */
NOH_API int noh_deactivate(noh_box *box, const char *address, bool force, uint32_t timeout_ms);

typedef enum { NOH_NOT_ACTIVE, NOH_ACTIVATING, NOH_ACTIVE, NOH_DEACTIVATING } noh_life;
NOH_API const char *noh_life_name(noh_life life);

typedef struct noh_status {
	noh_life life;
	bool     exists;          /* see noh_scan                                   */
	bool     stored;          /* of that, something is kept outside the actor: what is active may
				     be in the journal alone                        */
	uint32_t mailbox_size;    /* waiting messages                               */
	uint64_t idle_ms;         /* since its last turn, to 100 ms                 */
	uint64_t last_ms;         /* of its last turn, or its activation: wall clock, to 100 ms; 0: not active */
	uint64_t activated_ms;    /* wall clock, to 100 ms; 0: not active, or not known: only a box that
				     listens on HTTP keeps it                       */
	bool     resting;         /* it handles nothing now: until there is room in a mailbox it filled, an answer it
				     waits for, or a token (noh_limits)             */
	uint64_t messages_processed;   /* by its turns since it was activated, those that failed included; not what was read
				     beside its turns (NOH_KIND_READ). 0: not active, or not known: only a box that listens
				     counts them                                    */
} noh_status;

/* Never activates anybody. An actor that was never heard of is NOH_NOT_ACTIVE, not an error. This,
 * noh_list and noh_scan tell what is so now, and do not wait for the disk: what they told could
 * still be lost in a crash of the next instant. noh_sync after them, before you act on it or tell
 * others, and it cannot. */
NOH_API int noh_get_status(noh_box *box, const char *address, noh_status *status);

/* Active actors, of one type or (NULL) of all. Start with *cursor = 0; call until it is 0 again.
 * Fills up to *count entries and sets *count. An actor that is active throughout is listed once. */
typedef struct noh_entry {
	char      address[256];
	noh_actor ref;
	noh_life  life;
	bool      exists;         /* these: as in noh_status                        */
	uint32_t  mailbox_size;
	uint64_t  last_ms, activated_ms;
	bool      resting;
	uint64_t  messages_processed;
} noh_entry;
NOH_API int noh_list(noh_box *box, const char *type, uint64_t *cursor, noh_entry *entries,
		     size_t *count);

/* Actors that exist, active or not, of one registered type or (NULL) of all. An actor exists from
 * its first turn that left something to keep (state, entries, schedules; of a durable type any
 * turn with a record) until noh_erase; one that was only asked for its state does not. A type may
 * take an actor for absent all the same (a counter past its time): that is its own matter.
 *
 * Start with *cursor = 0; call until it is 0 again. each() is told of every actor that exists from
 * the first call to the last at least once, and of none that at no time in between exists; whoever
 * comes or goes meanwhile is told or not. One that is folded into the image meanwhile, or was
 * erased and came again shortly before, may be told twice. A call tells of at most limit actors (0:
 * 100; at most 10 000; one more if two hashes agree in 44 bits), and looks at eight times as many at
 * most: so it may tell of fewer, also of none, and go on. A cursor is good for any type, any number of
 * workers, and in the next run of the box on the same directory; then, or if tens of thousands of
 * scans are under way at once, the stored part may begin anew.
 *
 * Does not block; takes time for what it looks at and for reading memory the image is mapped to.
 * each() may call whatever does not block. NOH_OK, NOH_ENOTYPE, NOH_EINVAL (no cursor of
 * noh_scan's), NOH_ENOMEM and NOH_ECORRUPT (nobody was told, *cursor is as it was), NOH_ESTOPPED. */
typedef struct noh_scanned {
	const char *address;      /* len bytes and a NUL */
	size_t      len;
	bool        active;
} noh_scanned;
typedef void noh_scan_fn(void *user, const noh_scanned *actor);
NOH_API int noh_scan(noh_box *box, const char *type, uint64_t *cursor, uint32_t limit,
		     noh_scan_fn *each, void *user);

/* ── what waits on disk: of a box with a data directory, all of it durable ──
 *
 * Both lists are of the image, into which the journal is folded first: what was durable before the call is told. They
 * block for that (at most timeout_ms: then they tell what is there, and are NOH_ETIMEOUT in the end) and for reading. */

/* Messages that were set aside, the oldest first: those of durable actors that were being handled each time the process ended
 * (NOH_EPOISON), that failed more often than their type's supervision retries them, or that a durable actor sent to one
 * that was given up. id is its name, and where to go on: `after` NULL begins
 * with the first. address: of that actor only, or NULL. Ends when each() returns anything but 0. */
typedef struct noh_dead {
	char        id[44];               /* "1794834000123-7"                              */
	uint64_t    at_ms;                /* when, since 1970                               */
	const char *address;
	uint32_t    kind;
	const char *kind_name;            /* "": its type is not registered, or has no table */
	const char *reason;
	const void *body;
	size_t      len;
} noh_dead;
typedef int noh_dead_fn(void *user, const noh_dead *letter);
NOH_API int noh_dead_list(noh_box *box, const char *address, const char *after, uint32_t timeout_ms,
			  noh_dead_fn *each, void *user);
NOH_API int noh_dead_get(noh_box *box, const char *id, noh_dead_fn *each, void *user);   /* or NOH_END */

/* Back to its actor, as a message from the box; or forgotten. In one transaction with its removal: however often this is
 * called, also across a crash, the actor gets it once. On disk when it returns. NOH_OK; NOH_END: there is none of this id
 * (any more); NOH_EIDEM: the other of the two was done to it; NOH_EFAILED: the actor's mailbox is full; NOH_ENOTYPE and
 * NOH_EKIND: nobody here takes it (a timer's message comes from its timer alone); NOH_ETIMEOUT: ask again. */
NOH_API int noh_dead_redrive(noh_box *box, const char *id, uint32_t timeout_ms);
NOH_API int noh_dead_purge(noh_box *box, const char *id, uint32_t timeout_ms);

/* Schedules of durable actors: actor by actor, those whose first one is due soonest first; of one type, of one address, or
 * (both NULL) of all. due_ms is wall-clock time; period_ms 0: once. cursor: NOH_CURSOR bytes, begin with ""; where it ends
 * it is "" again. limit: about so many are told (0: 100): an actor's are told together. */
#define NOH_CURSOR 400
typedef struct noh_scheduled {
	const char *address;
	uint32_t    kind;
	const char *kind_name;
	uint64_t    due_ms, period_ms;
} noh_scheduled;
typedef void noh_scheduled_fn(void *user, const noh_scheduled *timer);
NOH_API int noh_schedule_list(noh_box *box, const char *type, const char *address, char *cursor, uint32_t limit,
			      uint32_t timeout_ms, noh_scheduled_fn *each, void *user);

/* Take a schedule away from an actor, between two of its turns; activates it if need be. On disk when it returns. NOH_OK;
 * NOH_END: it has none of this kind. Blocks at most timeout_ms. */
NOH_API int noh_schedule_drop(noh_box *box, const char *address, uint32_t kind, uint32_t timeout_ms);

/* ── events ──
 *
 * What happened, in order: what actors tell with noh_emit, and what the box tells of them (events_detail). A box with a
 * data directory keeps them there; an event is shown when it is on disk, and never changes or goes again but for its
 * age (events_bytes, events_ms: the oldest first). Without a directory they are in memory.
 *
 * seq counts 1, 2, 3 ... over the life of the directory, without gaps, the same after a crash. It is the cursor, too:
 * the number of the last event that was read. Who keeps it with what he made of the events misses none, and none
 * comes twice. docs/events.md has the kinds and their fields. */
typedef struct noh_event {
	uint64_t    seq;
	uint64_t    at_ms;        /* since 1970                                             */
	const char *actor;        /* address; or a type's name: of all its actors; "": the box */
	const char *kind;         /* "restarted"; or an actor's own                         */
	const char *from, *to;    /* states before and after; "": none                      */
	const char *reason;       /* for people                                             */
	uint64_t    revision;     /* of what is desired; 0: none                            */
	const void *data;         /* an actor's own; of the box: a JSON object, or nothing  */
	size_t      len;
	bool        by_box;       /* the box tells it, not an actor                         */
} noh_event;

#define NOH_EVENT_KIND 63         /* bytes of a kind, and of from and to; without NUL       */
#define NOH_EVENT_REASON 511
#define NOH_EVENT_DATA 16384

/* NULL or zero: any. All that are given must fit. */
typedef struct noh_events_filter {
	const char *actor;        /* this address                                           */
	const char *type;         /* actors of this type, and events of the type itself     */
	const char *kind;
	uint64_t    since_ms;     /* not before                                             */
} noh_events_filter;
typedef int noh_event_fn(void *user, const noh_event *event);

/* Events behind *cursor, the oldest first; *cursor 0: from the oldest there is. each() gets those that fit (filter may be
 * NULL), at most limit of them (0: 100), valid until it returns; anything but 0 ends it behind that event. A call
 * looks at some ten thousand events at most, whether they fit or not. *cursor is moved behind what was looked at.
 * NOH_OK: there may be more; NOH_END: this was all there is now (noh_events_wait). NOH_ETOOOLD: those behind the cursor
 * are gone already: nothing was told; begin with the one the sentence names, or with 0, and know that some are missing.
 * NOH_EINVAL: a cursor above the newest event (of another directory?). NOH_ENOMEM, NOH_ECORRUPT, NOH_EDISK.
 * Does not block, but reads memory the image is mapped to. Threads: any. */
NOH_API int noh_events_read(noh_box *box, uint64_t *cursor, const noh_events_filter *filter, uint32_t limit,
			    noh_event_fn *each, void *user);

/* Block until there is an event behind cursor. NOH_OK, NOH_ETIMEOUT, NOH_ESTOPPED (also when the box stops), NOH_EINTURN. */
NOH_API int noh_events_wait(noh_box *box, uint64_t cursor, uint32_t timeout_ms);

/* The oldest and the newest that can be read. Both 0: there never was one. oldest above newest: all have gone. */
NOH_API int noh_events_bounds(noh_box *box, uint64_t *oldest, uint64_t *newest);

/* The last events of one actor, at most n (0: 10; at most 1000), the oldest of them first. Looks at the last 65 536
 * events of the box; what is told meanwhile is not among them. NOH_END: these were all; NOH_OK: each() ended it before
 * the last one. Errors as noh_events_read, but never NOH_ETOOOLD: those that go meanwhile are left out. */
NOH_API int noh_events_last(noh_box *box, const char *address, uint32_t n, noh_event_fn *each, void *user);

/* Change these options while it runs; zero means what it means there. Threads: any, one at a time. What of this, of
 * noh_set_memory_budget, noh_set_slow_turn, noh_set_idle_timeout and noh_set_limits is another than before is told as an event. */
NOH_API int noh_set_events(noh_box *box, uint64_t events_bytes, uint64_t events_ms, int events_detail);

/* Tell that a setting has changed, as an event of the box: what, from which value to which. */
NOH_API int noh_tell_config(noh_box *box, const char *what, const char *from, const char *to);

/* Tell that somebody in charge asked for something, as an event of the box, and as a line of the log that is written whatever
 * its level is (as NOH_INFO). What listens tells of its own clients; this is for a program that has commands of its own. Texts may be
 * NULL but for who and call; they are cut where they are longer than an event may be. NOH_OK, NOH_EINVAL. Threads: any. */
typedef struct noh_admin_call {
	const char *who;          /* the name of an account                                 */
	const char *call;         /* what: "deactivate", "dead redrive"                     */
	const char *actor;        /* the address, or the type, it is about; NULL: the box   */
	const char *target;       /* what else it is about: an id, a name                   */
	const char *from;         /* where it came from: "127.0.0.1:4711"                   */
} noh_admin_call;
NOH_API int noh_tell_admin(noh_box *box, const noh_admin_call *call);

/* ── supervision: how actors are, who belongs to whom ── */

typedef enum { NOH_HEALTHY, NOH_DOWN, NOH_DEGRADED, NOH_STOPPED, NOH_QUARANTINED, NOH_AWAITING } noh_health;
NOH_API const char *noh_health_name(noh_health health);          /* "healthy", "down" ...                */

/* Of any actor, active or stored; kept as long as its state is. Nothing is known of an actor that never failed, was never
 * spawned and never set a revision: then all of it is zero, and it is healthy. */
#define NOH_REASON_MAX 200
typedef struct noh_vitals {
	noh_health health;
	noh_life   life;
	uint64_t   restarts;                 /* after failures, ever                              */
	uint64_t   failed_ms;                /* the last failure: wall clock; 0: none             */
	uint64_t   until_ms;                 /* down, degraded: it is tried again then; wall clock */
	uint64_t   desired, observed;        /* noh_set_revision                                  */
	uint64_t   order;                    /* which child of its parent it is: 1, 2 ...         */
	uint32_t   children;                 /* it has                                            */
	char       reason[NOH_REASON_MAX + 1];   /* of the last failure                           */
	char       error[NOH_REASON_MAX + 1];    /* noh_set_error                                 */
	char       parent[256];              /* address; "": none                                 */
} noh_vitals;

/* Never activates anybody, and waits for no actor. NOH_OK, NOH_EADDRESS, NOH_ENOTYPE, NOH_ESTOPPED. */
NOH_API int noh_get_vitals(noh_box *box, const char *address, noh_vitals *vitals);

/* The living tree: actors that are in memory, or are not healthy, and have a parent or children; depth first, children in
 * the order spawned. root: from there (NOH_ENOACTOR: it is not in the tree); NULL: from all that have no parent in it. Ends when
 * each() returns anything but 0. It is a picture of one instant, made before each() is called first. */
typedef struct noh_tree_node {
	const char       *address;
	unsigned          depth;             /* the root: 0                                       */
	bool              last;              /* of its parent's children, or of the roots         */
	const noh_vitals *vitals;
} noh_tree_node;
typedef int noh_tree_fn(void *user, const noh_tree_node *node);
NOH_API int noh_tree(noh_box *box, const char *root, noh_tree_fn *each, void *user);

/* Stop an actor and all below it: children first, the last spawned first of all, one after the other. Each has its type's
 * stop_ms to finish what waits (5000 without supervision), then it is stopped by force (as noh_deactivate does). Whoever
 * is not active is passed over, the root as well; those below it are not. Who hangs in a turn is left behind after stop_ms once more. NOH_OK: nobody runs any more.
 * NOH_ETIMEOUT: somebody was left behind, and noh_why names it; or it took longer than timeout_ms, and goes on by itself.
 * Blocks at most timeout_ms. noh_stop does this first with every tree there is. */
NOH_API int noh_stop_tree(noh_box *box, const char *root, uint32_t timeout_ms);

/* The same without waiting, also from inside a turn (it begins at once, whatever becomes of the turn). done (or NULL) is
 * called as in noh_call_then, once all have stopped, without answer; or with NOH_ETIMEOUT and the address of the first that was
 * left behind, without a zero. */
NOH_API int noh_stop_tree_then(noh_box *box, const char *root, noh_done_fn *done, void *user);

/* Let an actor that is not healthy begin anew; "type" instead of an address: all of that type that are. On disk when it
 * returns. NOH_OK; NOH_END: there was nothing to resume; NOH_ETIMEOUT. Blocks. */
NOH_API int noh_resume(noh_box *box, const char *address_or_type, uint32_t timeout_ms);

/* Actors that are degraded, stopped, quarantined or awaiting a revision, of one type or (NULL) of all; in no order. Ends when each()
 * returns anything but 0. Blocks for what is stored: at most timeout_ms (then it tells what is there, and is NOH_ETIMEOUT). */
typedef int noh_quarantine_fn(void *user, const char *address, const noh_vitals *vitals);
NOH_API int noh_quarantine_list(noh_box *box, const char *type, uint32_t timeout_ms, noh_quarantine_fn *each, void *user);

/* ── 5 inside a turn ─────────────────────────────────────────────────────────────────────────*/
NOH_API noh_box    *noh_turn_box(noh_turn *turn);
NOH_API noh_actor   noh_self(noh_turn *turn);
NOH_API const char *noh_address(noh_turn *turn);         /* "type:id"                           */
NOH_API const char *noh_id(noh_turn *turn);              /* "id"                                */
NOH_API void       *noh_user(noh_turn *turn);            /* user of the type                    */
NOH_API uint64_t    noh_now_ms(noh_turn *turn);          /* one instant for the whole turn;
							    monotonic, not wall-clock time     */
NOH_API uint64_t    noh_wall_ms(noh_turn *turn);         /* the same instant since 1970: the system's clock
							    is asked when the box starts, and from then
							    on runs with the monotonic one: it never
							    jumps while the box runs. Schedules go
							    by it across a restart              */
NOH_API bool        noh_cancelled(noh_turn *turn);       /* the box is stopping: finish soon    */

/* The state, to change or only to look at. The first noh_state of a turn makes a copy that becomes
 * the state when the turn succeeds; looking costs nothing. */
NOH_API void       *noh_state(noh_turn *turn);
NOH_API const void *noh_look(noh_turn *turn);

/* Answer the message of this turn; of a batch, one of its messages. NOH_OK, NOH_NOBODY,
 * NOH_EREPLIED, NOH_ETOOBIG. A message that is not answered gets an empty answer at the end. */
NOH_API int noh_reply(noh_turn *turn, const void *body, size_t len);
NOH_API int noh_reply_to(noh_turn *turn, const noh_msg *msg, const void *body, size_t len);

/* Answer later: take the promise out of a message now, keep it (in the state, say), and answer it
 * in another turn of any actor of this box. status is NOH_OK or your own negative code. A promise
 * answered twice, or after its asker gave up, is NOH_NOBODY. { 0 }: nobody waits. */
typedef struct noh_promise { uint64_t bits; } noh_promise;
NOH_API noh_promise noh_defer(noh_turn *turn, const noh_msg *msg);
NOH_API int noh_answer(noh_turn *turn, noh_promise promise, int status, const void *body, size_t len);

/* Send. Messages of one sender to one actor are handled in the order sent. NOH_OK, NOH_FULL (see
 * the full modes), NOH_EGONE (by reference), NOH_ENOTYPE, NOH_EKIND, NOH_ETOOBIG, NOH_ENOMEM. If the
 * actor goes back to storage before the turn ends, a message by address wakes it again, and one by
 * reference is a dead letter, and counted. */
NOH_API int noh_tell(noh_turn *turn, noh_actor to, uint32_t kind, const void *body, size_t len);
NOH_API int noh_tell_to(noh_turn *turn, const char *address, uint32_t kind, const void *body,
			size_t len);

/* Ask: the answer comes as a message of kind answer_kind with NOH_MSG_ANSWER, the number of the
 * ask, and a status. With wait, nothing but that answer (and timers' waiting) is handled until it
 * is here: NOH_ECYCLE in the answer's status if the actors waited for wait for this one.
 * timeout_ms 0: 30 000. Answers take no room in the mailbox and may overtake ordinary messages. */
typedef struct noh_ask_options {
	uint32_t answer_kind;
	uint32_t timeout_ms;
	bool     wait;
} noh_ask_options;
NOH_API int noh_ask(noh_turn *turn, noh_actor to, uint32_t kind, const void *body, size_t len,
		    const noh_ask_options *options, uint64_t *ask);
NOH_API int noh_ask_to(noh_turn *turn, const char *address, uint32_t kind, const void *body,
		       size_t len, const noh_ask_options *options, uint64_t *ask);

/* Publish on a channel. It takes effect with the turn, and at most once: a crash may lose it, but not before
 * clients were told of what the turn did. Whoever has subscribed when the turn ends gets it, in the order
 * published. Actors get it as a message of the kind they subscribed with; a mailbox that is full drops it by
 * its type's mode (NOH_BLOCK: the event is dropped), counted as refused or dropped_oldest. Actors in storage
 * do not get it, and are not woken.
 *
 * The personal channel of an actor is "actor.personal.{type}.{id}" (of several types that fit, the one with
 * the longest name). What is published there is, besides, sent to that actor, like noh_tell_to, as its
 * type's kind with NOH_KIND_PERSONAL: it wakes the actor, and is recorded as other messages are. A type
 * without such a kind has no personal channels.
 * NOH_OK, NOH_EINVAL (also inside a step over several actors), NOH_ETOOBIG, NOH_ENOMEM; on a personal channel
 * what noh_tell_to returns. */
NOH_API int noh_publish(noh_turn *turn, const char *channel, const void *body, size_t len);

/* Listen to a channel, from the end of this turn until noh_unsubscribe or until this actor goes back to
 * storage (so: do it in on_activate). With another kind: as that from now on. At most 1024 channels an actor.
 * NOH_OK, NOH_EINVAL, NOH_EKIND, NOH_ENOMEM. Leaving a channel it does not listen to is NOH_OK. */
NOH_API int noh_subscribe(noh_turn *turn, const char *channel, uint32_t kind);
NOH_API int noh_unsubscribe(noh_turn *turn, const char *channel);

/* The channel a message was published on; NULL: it was sent (so are those of the personal channel). */
NOH_API const char *noh_channel(noh_turn *turn, const noh_msg *msg);

/* Activate a child: an actor whose parent is this one. Its place among the children is kept with this turn; a child that
 * is one already keeps its place, so on_activate may spawn all of them each time. A child has one parent: the last
 * that spawned it. NOH_EINVAL: of itself, or of its own parent.
 * noh_parent: a reference; { 0 }: it has none, or that one is not in memory. noh_parent_address: "": it has none. */
NOH_API int noh_spawn(noh_turn *turn, const char *address, noh_actor *child);
NOH_API noh_actor noh_parent(noh_turn *turn);
NOH_API const char *noh_parent_address(noh_turn *turn);

/* The children of this actor, in the order spawned; and: it is none of them any more (it goes on; NOH_END: it was none). */
typedef void noh_child_fn(void *user, const char *address);
NOH_API int noh_children(noh_turn *turn, noh_child_fn *each, void *user);
NOH_API int noh_disown(noh_turn *turn, const char *address);

/* What an actor says about itself, with its turn, for noh_get_vitals: the revision it has been told to have and the one it
 * has; the error of its last try to get there (NULL: none; cut to NOH_REASON_MAX). */
NOH_API int noh_set_revision(noh_turn *turn, uint64_t desired, uint64_t observed);
NOH_API int noh_set_error(noh_turn *turn, const char *text);
NOH_API int noh_get_own_vitals(noh_turn *turn, noh_vitals *vitals);

/* Be told, by a message of this kind with a struct noh_gone, whenever that actor fails, is given up, is resumed, or stops (by itself or
 * because somebody wants it; not: goes to storage because it is idle or memory is short); at once if it is down or worse
 * already. From the end of this turn, until noh_unwatch or until this actor goes to storage (so: do it in on_activate). Such a
 * message is not recorded. At most 1024 watchers an actor (NOH_FULL). NOH_EINVAL: itself, or inside a step. */
typedef struct noh_gone {
	int32_t  status;                     /* why: its failure's code; NOH_OK: it has stopped, or was resumed */
	int32_t  health;                     /* since then: noh_health                            */
	uint32_t stopped;                    /* 1: it is not active any more                      */
	uint32_t restarts;
	char     address[256];
	char     reason[NOH_REASON_MAX + 1];
	char     pad[7];
} noh_gone;
NOH_API int noh_watch(noh_turn *turn, const char *address, uint32_t kind);
NOH_API int noh_unwatch(noh_turn *turn, const char *address);

/* Go back to storage after this turn: waiting messages are handled first. */
NOH_API int noh_stop_self(noh_turn *turn);

/* Forget this actor: at the end of the turn its state, entries and schedules are gone, from storage as
 * well, whatever else the turn did to them. Waiting messages find it as if it had never been. */
NOH_API int noh_erase(noh_turn *turn);

/* Say no: return noh_refuse(turn, &answer, sizeof answer). The turn ends without any effect but this answer,
 * which comes with status NOH_REFUSED (and is what a retry with the same idempotency key gets). Unlike a
 * failure it is nothing unusual: it counts as handled and is not logged. In a step over several actors it
 * undoes the whole step. NOH_REFUSED, or below zero if the answer is too long or there is no memory for it:
 * then that is the turn's failure. */
NOH_API int noh_refuse(noh_turn *turn, const void *body, size_t len);
NOH_API bool noh_in_step(noh_turn *turn);                /* this turn is part of a noh_step            */

/* Give the failure a reason: return noh_fail(turn, "no such %s", name). */
NOH_API int noh_fail(noh_turn *turn, const char *format, ...) NOH_PRINTF(2, 3);

/* Send this actor a message of kind (with NOH_MSG_TIMER, without body) once, or again and again.
 * One schedule per kind: a new one replaces the old. Never early; milliseconds; at most a year (NOH_SCHEDULE_MAX_MS).
 * A schedule keeps no actor in memory: it wakes the actor when due. Recurring ones that fall
 * behind skip the missed times. Cancelling what is not scheduled is NOH_OK. */
#define NOH_SCHEDULE_MAX_MS (UINT64_C(366) * 24 * 3600 * 1000)
NOH_API int noh_schedule_once(noh_turn *turn, uint32_t kind, uint64_t delay_ms);
NOH_API int noh_schedule_every(noh_turn *turn, uint32_t kind, uint64_t interval_ms);
NOH_API int noh_schedule_cancel(noh_turn *turn, uint32_t kind);

/* The key-value part: any number of entries, sorted by key bytes. Keys of 1 to 255 bytes. What
 * get and next hand out is valid until the next put or delete, or the end of the turn. */
NOH_API int noh_kv_get(noh_turn *turn, const void *key, size_t key_len, const void **value,
		       size_t *value_len);                                    /* or NOH_END */
NOH_API int noh_kv_put(noh_turn *turn, const void *key, size_t key_len, const void *value,
		       size_t value_len);
NOH_API int noh_kv_delete(noh_turn *turn, const void *key, size_t key_len);   /* or NOH_END */

/* The entry with the smallest key above *key (all of them: start with key_len 0). Or NOH_END. */
NOH_API int noh_kv_next(noh_turn *turn, const void **key, size_t *key_len, const void **value,
			size_t *value_len);

/* One line into the log, with this actor's address. */
NOH_API void noh_log(noh_turn *turn, int level, const char *format, ...) NOH_PRINTF(3, 4);

/* The trace of the message this turn handles (of a batch: of the first that has one), as W3C's Trace Context writes
 * it: to log it, or to call on with it. Its parent-id is the span of this turn. Whatever the turn sends, asks and
 * answers carries the trace on by itself, each message with a span of its own; schedules, what is published on
 * channels, and steps over several actors do not. A trace is not stored: a message that is delivered again after a
 * crash has none. False, and both empty: it has none. */
typedef struct noh_trace_context {
	char traceparent[56];
	char tracestate[513];
} noh_trace_context;
NOH_API bool noh_trace(noh_turn *turn, noh_trace_context *trace);

/* Tell an event, as part of this turn: it is in the log if the turn takes effect, and only then; of a durable type they are
 * on disk together (P4). kind: 1 to NOH_EVENT_KIND printable ASCII bytes without spaces; the texts may be NULL. At most 256
 * a turn. NOH_OK, NOH_EINVAL, NOH_ETOOBIG (it says what), NOH_ENOMEM, NOH_EREADONLY; of a type that is volatile also NOH_ENOSPC:
 * too many of them wait for a full disk. */
typedef struct noh_emit_options {
	const char *kind;
	const char *from, *to;
	const char *reason;
	uint64_t    revision;
	const void *data;
	size_t      len;
} noh_emit_options;
NOH_API int noh_emit(noh_turn *turn, const noh_emit_options *event);

/* ── 6 numbers ───────────────────────────────────────────────────────────────────────────────
 * Counters only grow. They are exact once the box is quiet, and close while it runs. */
typedef struct noh_worker_stats {
	uint64_t turns, messages, steals, stolen_actors, parks, wakeups, passes, slow_turns;
	uint64_t stuck_ms;            /* in one turn, so long; 0: it is not. Of the sum: the longest */
} noh_worker_stats;

typedef struct noh_box_stats {
	unsigned workers;
	uint64_t actors;              /* active now                                  */
	uint64_t capacity;            /* at most                                     */
	uint64_t actors_peak_bytes;   /* the most memory actors ever took            */
	uint64_t actor_bytes;         /* memory of actors now, with all they keep    */
	uint64_t stored;              /* actors in storage                           */
	uint64_t timers;              /* pending                                     */
	uint64_t activations, deactivations, evictions;
	uint64_t dead_letters;        /* messages whose receiver was gone            */
	uint64_t late_answers;        /* answers nobody waited for any more          */
	uint64_t journal_frames, journal_records, journal_bytes;   /* written since the start */
	uint64_t journal_unfolded;    /* bytes not folded into the image yet         */
	uint64_t folds;               /* into the image, since the start             */
	bool     folding;             /* one runs at this moment                     */
	uint64_t idem_keys, idem_dropped;   /* idempotency keys stored; given up for room */
	bool     read_only;           /* the disk is full: writes are refused        */
	noh_worker_stats total;
	uint64_t durable_lag_us;      /* age of the oldest record that is not on disk */
	uint64_t store_bytes;         /* of the image                                */
	uint64_t no_type;             /* messages for types that are not registered  */
} noh_box_stats;

typedef struct noh_type_stats {
	uint64_t accepted;            /* messages that entered a mailbox or a turn   */
	uint64_t handled;             /* by a turn that succeeded                    */
	uint64_t failed;              /* by a turn that failed                       */
	uint64_t refused;             /* sends that were NOH_FULL                    */
	uint64_t dropped_oldest, dropped_forced, dropped_stop, coalesced;
	uint64_t activations, deactivations;
	uint64_t existing;            /* actors that exist (noh_scan), active or not */
	bool     counting;            /* a crash's tail is not counted yet: existing
					 is about so; seconds, in the background     */
	uint64_t waiting;             /* messages in mailboxes, and in turns         */
	uint64_t restarts;            /* activations that failed, and restarts of supervised actors */
	uint64_t quarantined;         /* messages set aside (NOH_EPOISON)            */
	uint64_t replays;             /* idempotent calls answered without an effect */
	uint64_t refused_rate;        /* sends that were NOH_ERATE                   */
	uint64_t rests;               /* of actors, until a token came: how often    */
	uint64_t resting;             /* actors that do now                          */
	uint64_t waiting_turn;        /* actors that wait for one of the type's turns */
	uint64_t set_aside;           /* messages that failed too often: dead letters, too */
	uint64_t dropped_unwell;      /* refused: the actor was degraded, stopped, quarantined ... */
	uint64_t down, degraded, stopped, unwell;   /* actors now, as far as they were met since the start;
					 unwell: quarantined, or awaiting a revision */
} noh_type_stats;

NOH_API int noh_get_stats(noh_box *box, noh_box_stats *stats);
NOH_API int noh_get_worker_stats(noh_box *box, unsigned worker, noh_worker_stats *stats);
NOH_API int noh_get_type_stats(noh_box *box, const char *type, noh_type_stats *stats);
NOH_API const char *noh_type_name(noh_box *box, unsigned index);   /* in the order registered; NULL: no more */

/* All numbers as text that Prometheus reads (docs/metrics.md lists them): the text format 0.0.4, or OpenMetrics
 * 1.0. write() gets it piece by piece, on the calling thread; anything but 0 ends it, and is returned. Takes well
 * below a millisecond per worker, however many actors there are; waits for nobody, and keeps nobody waiting. */
enum { NOH_PROMETHEUS, NOH_OPENMETRICS };
typedef int noh_text_fn(void *user, const char *text, size_t len);
NOH_API int noh_metrics(noh_box *box, int format, noh_text_fn *write, void *user);

/* What is remembered of a trace: its spans, one for each message on its way to an actor and through its turn. Those
 * whose traceparent has the sampled flag are kept, in memory, the last 1024 or so per worker. Times are
 * nanoseconds since 1970, 0: it has not happened (yet), or is not known. It is told at once, and does not wait for the
 * disk. */
enum {
	NOH_RECEIVED,              /* by the network; or its sender's turn had ended              */
	NOH_QUEUED,                /* into its actor's mailbox, or in hand for its turn           */
	NOH_STARTED, NOH_ENDED,    /* its turn: on_message                                        */
	NOH_ON_DISK,               /* what that turn did; 0 for what is not kept                  */
	NOH_ANSWERED,              /* its caller or asker; 0: nobody waits                        */
	NOH_STAMPS
};
typedef struct noh_span {
	char        trace_id[33], span_id[17];
	char        parent_id[17];         /* "": it began here; or a span of somebody else's     */
	const char *actor;                 /* address; "": it has not run yet                     */
	const char *kind_name;             /* in the type's table; "": it has none                */
	uint32_t    kind;
	int         status;                /* of its turn: NOH_OK, NOH_REFUSED, or why it failed  */
	unsigned    worker;
	unsigned    batch;                 /* messages handled in that turn                       */
	uint64_t    at_ns[NOH_STAMPS];
} noh_span;

/* Tells each() of every span of a trace (32 hex digits), in the order received, 512 at most. NOH_OK, NOH_END (nothing
 * is remembered of it), NOH_EINVAL, NOH_ENOMEM, NOH_ESTOPPED. Never blocks. */
typedef void noh_span_fn(void *user, const noh_span *span);
NOH_API int noh_trace_show(noh_box *box, const char *trace_id, noh_span_fn *each, void *user);

/* Of the traces that are remembered, those that took longest (from their first instant to the last that is known),
 * the longest first; limit: at most 1000. Looks at every span there is. Results as above. */
typedef struct noh_trace_summary {
	char        trace_id[33];
	const char *actor;                 /* of its first span                                   */
	const char *kind_name;
	uint32_t    kind;
	int         status;                /* the first that is not NOH_OK, if any                */
	unsigned    spans;
	uint64_t    began_ns, took_ns;
} noh_trace_summary;
typedef void noh_trace_summary_fn(void *user, const noh_trace_summary *trace);
NOH_API int noh_trace_list(noh_box *box, uint32_t limit, noh_trace_summary_fn *each, void *user);

/* ── 7 a data directory, from outside ────────────────────────────────────────────────────────
 * For whoever cares for the data: the verbs of the noh command are made of these. All of them block.
 * Those that take a directory open it themselves, in any thread, without a box; what only reads works
 * beside a running one. On the directory of a box of this very process they are NOH_EINUSE (for that
 * there is noh_backup), and so they are beside a box that writes faster than they can read. Results are NOH_OK, or what is
 * said, or one of NOH_EINVAL, NOH_ESYSTEM, NOH_EDISK, NOH_ENOSPC, NOH_ENOMEM, NOH_EVERSION, NOH_ECORRUPT with a sentence
 * that names the file. */

/* How far it is; what: "journal", "image". Called now and then, by the calling thread. */
typedef void noh_progress_fn(void *user, const char *what, uint64_t done, uint64_t all);

/* A copy of all that was answered before the call, in a new directory dest, while the box works on. It
 * is one instant, and a data directory like any other: open it, verify it, restore it. What is written
 * is on disk when this returns; a dest that is there is whole. NOH_EEXISTS: dest is there already. */
typedef struct noh_copied {
	uint64_t frame;            /* the last one in it: what happened up to there            */
	uint64_t tail;             /* frames of the journal that are not in the image yet      */
	uint64_t actors;           /* in the image                                             */
	uint64_t image_bytes, journal_bytes;
	uint64_t image_before, journal_before;   /* noh_compact: and how it was                */
} noh_copied;
NOH_API int noh_backup(noh_box *box, const char *dest);
NOH_API int noh_backup_dir(const char *dir, const char *dest, noh_copied *copied);   /* or NULL */

/* Check the backup, then copy it to dir, which is not there or empty. */
NOH_API int noh_restore(const char *backup, const char *dir, noh_progress_fn *progress, void *user,
			noh_copied *copied);

/* Fold the journal into the image and write the image anew, without the room it does not need. No box
 * may have the directory open: NOH_EINUSE. Interrupted anywhere it has either happened or not. */
NOH_API int noh_compact(const char *dir, noh_copied *copied);

/* Read every byte: checksums, the journal's chain, and whether journal and image fit together. found is
 * told of each finding in one sentence. A torn tail is none: it is what a crash leaves, and nobody was
 * told of it. NOH_OK: all is well; NOH_ECORRUPT: there were findings. */
typedef void noh_found_fn(void *user, const char *what);
typedef struct noh_verified {
	uint64_t frames, records, segments, journal_bytes;
	uint64_t torn_bytes;
	uint64_t rows, image_bytes;
	uint64_t findings;
} noh_verified;
NOH_API int noh_verify(const char *dir, noh_found_fn *found, noh_progress_fn *progress, void *user,
		       noh_verified *verified);

/* Can a program with these types open what is stored? Tells each of every type and version there is.
 * NOH_OK; NOH_EVERSION: some cannot be opened; NOH_ENOTYPE: some are of no type given (of none if
 * count is 0: then it only tells what is stored). If each() returns anything but 0, that ends it. */
enum { NOH_FITS, NOH_MIGRATES, NOH_UNKNOWN, NOH_NO_STEP, NOH_TOO_NEW, NOH_OTHER_SCHEMA };
typedef struct noh_stored_type {
	const char *name;
	uint32_t    version;       /* of the stored states; 0: actors without state            */
	uint64_t    schema;
	uint64_t    actors;        /* in the image                                             */
	uint64_t    tail;          /* records in the journal that are not in the image yet     */
	int         verdict;       /* NOH_FITS ...                                             */
	uint32_t    to;            /* the given type's version                                 */
	uint32_t    missing;       /* NOH_NO_STEP: there is no migration from this version     */
} noh_stored_type;
typedef int noh_stored_type_fn(void *user, const noh_stored_type *type);
NOH_API int noh_check(const char *dir, const noh_type *types, size_t count, noh_stored_type_fn *each,
		      void *user);

/* What is there, in numbers. */
typedef struct noh_dir_info {
	uint32_t format;
	bool     in_use;           /* a box has it open                                        */
	uint64_t id;
	uint64_t stamp, epoch;     /* the last frame in the image, and its epoch               */
	uint64_t end;              /* the last whole frame of the journal                      */
	uint64_t tail_records, torn_bytes;
	uint64_t segments, journal_bytes, image_bytes;
	uint64_t actors, entries, pending, keys, key_bytes, timers, dead_letters;
	uint64_t events, event_bytes;
	uint64_t event_seq;        /* the last event's number                                  */
} noh_dir_info;
NOH_API int noh_inspect(const char *dir, noh_dir_info *info);

/* Addresses of what is stored: those of one type, or (NULL) all. each() ends it with anything but 0. */
typedef int noh_stored_address_fn(void *user, const char *address);
NOH_API int noh_inspect_list(const char *dir, const char *type, noh_stored_address_fn *each, void *user);

/* Everything that is stored of one actor, piece by piece: first what the image has, then (tail) record
 * by record what the journal has beyond it. NOH_ENOACTOR: nothing is. */
enum {
	NOH_PIECE_STATE,           /* version, schema, value                                   */
	NOH_PIECE_TIMER,           /* kind, due_ms and period_ms: wall-clock time              */
	NOH_PIECE_NO_TIMERS,       /* tail: there are none any more                            */
	NOH_PIECE_ENTRY,           /* key, value                                               */
	NOH_PIECE_ENTRY_GONE,      /* tail: key                                                */
	NOH_PIECE_PENDING,         /* a message it has not handled yet: kind, value, sender... */
	NOH_PIECE_RECORD,          /* tail: frame, seq; what follows is of this record         */
	NOH_PIECE_ERASED,          /* tail: noh_erase                                          */
	NOH_PIECE_HANDLED,         /* tail: a message: sender...                               */
	NOH_PIECE_SENT,            /* tail: a message: to key, kind, value                     */
	NOH_PIECE_KEY,             /* tail: an idempotency key: key, the answer: value         */
	NOH_PIECE_DEAD,            /* tail: a message set aside: kind                          */
	NOH_PIECE_EVENT,           /* tail: an event it told: its kind is key, its data value  */
	NOH_PIECE_VITALS           /* how it is (noh_get_vitals), as it is stored: value       */
};
typedef struct noh_piece {
	int         what;
	bool        tail;
	uint64_t    seq, frame;
	uint32_t    version, kind;
	uint64_t    schema, due_ms, period_ms;
	uint64_t    sender, sender_seq;     /* hash of the sender's address, its turn,         */
	uint32_t    index;                  /* and which of that turn's messages               */
	const void *key, *value;
	size_t      key_len, len;
} noh_piece;
typedef int noh_piece_fn(void *user, const noh_piece *piece);
NOH_API int noh_inspect_actor(const char *dir, const char *address, noh_piece_fn *each, void *user);

/* Write to fd what this box was doing: for every worker inside user code the actor, the kind of message
 * and the version of its type (a box with a data directory knows), the image's file if it ended inside LMDB,
 * then the stack of this thread. For a
 * handler of SIGSEGV and its like: takes no lock and no memory. Call backtrace(3) once beforehand: its
 * first call loads a library. box may be NULL. */
NOH_API void noh_crash_report(noh_box *box, int fd);

/* ── 8 the network ───────────────────────────────────────────────────────────────────────────
 * The box as a server: workers read requests from sockets beside their turns, and answers leave when what
 * they tell is on disk. noh serve is made of these. */
enum { NOH_USER, NOH_DEVELOPER, NOH_ADMIN };             /* roles: each may do what those before it may */
enum { NOH_IO_AUTO, NOH_IO_URING, NOH_IO_EPOLL };

/* All zero is a good start: the defaults are in the comments. */
typedef struct noh_listen_options {
	const char *bind;                 /* address; NULL: 127.0.0.1                               */
	int         resp_port;            /* 0: 7411; -1: no TCP                                    */
	const char *unix_path;            /* NULL: no Unix socket                                   */
	int         http_port;            /* 0: no HTTP over TCP                                    */
	const char *http_unix_path;       /* NULL: no Unix socket for HTTP; whoever may open it is an admin: it
					     is made for its owner alone                            */
	int         io;                   /* NOH_IO_AUTO: io_uring where it works, else epoll       */
	uint32_t    max_connections;      /* 0: 10 000                                              */
	uint32_t    max_address_connections;   /* of one IP address (of IPv6: of its first 64 bits); 0: no limit */
	uint32_t    auth_failures;        /* failed logins from one address in a minute; as long as there are more, the
					     next ones are not looked at; 0: 30                     */
	uint32_t    max_args;             /* arguments of one command; 0: 65 536                    */
	uint32_t    max_arg_bytes;        /* of one argument; 0: 1 MiB                              */
	uint32_t    max_command_bytes;    /* of a whole command; 0: 16 MiB                          */
	uint32_t    max_inline_bytes;     /* of an inline command; 0: 64 KiB                        */
	uint32_t    max_pipeline;         /* unanswered commands of a connection, then it is not read
					     further; 0: 4096                                       */
	uint32_t    max_output_bytes;     /* not taken by the client; not read further beyond it, and closed
					     if it does not take any for timeout_ms; 0: 16 MiB      */
	uint32_t    max_subscriptions;    /* channels and patterns of a connection; 0: 10 000       */
	uint32_t    max_subscriber_bytes; /* published to a client and not taken by it; beyond it the client is
					     cut off; 0: 8 MiB                                      */
	uint32_t    timeout_ms;           /* of a client that stops in the middle of something;
					     0: 30 000                                              */
	uint32_t    idle_ms;              /* of one that says nothing at all; 0: never              */
	uint32_t    call_ms;              /* until a command is answered TIMEOUT; 0: 30 000         */
	uint32_t    stop_ms;              /* while the box stops: of a client that takes none of its answers,
					     then it is cut; 0: 1000                                */
	uint32_t    http_max_header_bytes;/* of a request's line and fields; 0: 16 KiB              */
	uint32_t    http_max_headers;     /* 0: 100                                                 */
	uint32_t    http_max_body_bytes;  /* 0: 2 MiB                                               */
	uint32_t    http_header_ms;       /* until a request's header is there; 0: 10 000           */
	uint32_t    http_body_ms;         /* the same of its body, and as much longer as ...        */
	uint32_t    http_min_rate;        /* ... so many bytes a second need; 0: 20 000, and 1024   */
	uint32_t    http_idle_ms;         /* of a connection between two requests; 0: 60 000        */
	int         durability;           /* of commands that do not say: NOH_DISK, NOH_MEMORY      */
	uint32_t    trace_sample;         /* of so many requests without a trace one is traced (noh_trace_list);
					     0: none is                                             */
	bool        may_shutdown;         /* SHUTDOWN calls on_shutdown                             */
	void      (*on_shutdown)(void *user);
	/* CONFIG RELOAD: somebody wants the program to read its settings again. A worker calls it: it must not
	 * block. noh_reloaded answers, from any thread. NULL: the program has none.             */
	void      (*on_reload)(void *user, uint64_t request);
	/* DRAIN: the program is to drain the box within that time, and to end. A worker calls it: it must not block.
	 * noh_drained answers, unless request is 0: then nobody waits. NULL: the program does not drain. */
	void      (*on_drain)(void *user, uint64_t request, uint32_t deadline_ms);
	const char *node_id;              /* what it calls itself, up to 63 bytes; NULL: the id of its data directory */
	const char *const *info;          /* name, value, name, value ... NULL: what INFO and CONFIG GET tell
					     beside their own; kept                                 */
	void       *user;
	/* TCP sockets that listen already (a service manager's, an older process's); the box's from noh_listen on. Instead of
	 * bind and the port; all workers accept from it. 0: none.                               */
	int         resp_fd, http_fd;
} noh_listen_options;

/* Before noh_start: opens the sockets; served from noh_start on. NOH_OK, NOH_EINVAL, NOH_ESYSTEM (the sentence
 * names the address), NOH_ENOMEM, NOH_ESTOPPED. */
NOH_API int noh_listen(noh_box *box, const noh_listen_options *options);

/* Change what can change while it listens: all limits and times (uint32_t) and info. Those that differ from the
 * options given last are taken over, whatever CONFIG SET said of them meanwhile; all other fields are ignored.
 * Blocks until every worker goes by them, a second at most. NOH_OK; NOH_ETIMEOUT: a worker is in a long turn, and
 * will go by them after it (until then info given before must stay). Threads: any, one at a time. */
NOH_API int noh_set_listen_options(noh_box *box, const noh_listen_options *options);

/* What a reload came to: one line per finding, fields parted by tabs: "changed", "restart", each with name, old,
 * new, where; "warning", "error" with a sentence. ok: it happened (else nothing has changed). Never blocks. */
NOH_API int noh_reloaded(noh_box *box, uint64_t request, bool ok, const char *findings);

/* What a drain came to: nothing is left, or a sentence about what is. Before noh_stop. Never blocks. */
NOH_API int noh_drained(noh_box *box, uint64_t request, bool ok, const char *sentence);

/* Who may use it: any time, also while it runs; replaces those before. With none, everybody may do all. token is
 * the SHA-256 of the user's secret. A connection whose account is gone, or has another token now, is closed; one
 * whose role is another has that from its next command on. */
typedef struct noh_account {
	const char *name;
	int         role;
	uint8_t     token[32];
} noh_account;
NOH_API int noh_set_accounts(noh_box *box, const noh_account *accounts, size_t count);

typedef struct noh_net_stats {
	const char *io;                   /* "io_uring", "epoll"; "" if it does not listen          */
	uint64_t connections, accepted, refused, closed_slow;
	uint64_t commands, errors, bytes_in, bytes_out;
	uint64_t pushed;                  /* messages of channels written to clients                */
	uint64_t pushes_dropped;          /* not written: their worker was stuck, or no memory      */
	uint64_t refused_address;         /* of refused: their address had too many connections     */
	uint64_t logins_failed;           /* AUTH, HELLO, Bearer                                    */
	uint64_t logins_held;             /* not looked at: too many from their address had failed  */
} noh_net_stats;
NOH_API int noh_get_net_stats(noh_box *box, noh_net_stats *stats);

/* ── 9 a log ─────────────────────────────────────────────────────────────────────────────────
 * Lines to a file or pipe without ever waiting for it: they go into a bounded ring, a thread of the logger's own
 * writes them. If that cannot keep up, lines are lost, counted, and the count is told. Of lines that are alike but
 * for their numbers ten a second are written, then fewer and fewer, with how many were left out; more than 2000
 * lines of any kind within a second are not.
 *
 *	noh_logger *logger;
 *	noh_logger_open(&logger, NULL);                                     to stderr
 *	noh_open(&box, &(noh_options){ .log_line = noh_logger_write, .log_user = logger });
 *
 * One line per event. Text: time, level, actor, message, and what else is known as key=value. JSON: an object with
 * time, level, msg, actor, type, msg_id, trace_id, span_id, shard, repeated; without those that are empty. No field can
 * end its line or hide in it: control bytes are escaped, and each field has its longest length. */
typedef struct noh_logger noh_logger;
typedef struct noh_logger_options {
	int  fd;                              /* 0: stderr                                          */
	bool json;
	bool journal;                         /* a priority in front, <3>, and no time: for systemd's journal */
} noh_logger_options;
NOH_API int noh_logger_open(noh_logger **logger, const noh_logger_options *options);   /* or NOH_ENOMEM, NOH_ESYSTEM */
NOH_API void noh_logger_write(void *logger, const noh_log_line *line);      /* any thread; never blocks */
NOH_API void noh_logger_set_json(noh_logger *logger, bool json);            /* from now on; any thread */
NOH_API int noh_logger_flush(noh_logger *logger, uint32_t timeout_ms);      /* blocks; NOH_OK, NOH_ETIMEOUT */

/* Write what is there, at most timeout_ms; a thread that hangs in write(2) longer is left to itself. Nobody else may
 * use the logger any more. */
NOH_API void noh_logger_close(noh_logger *logger, uint32_t timeout_ms);

/* Is this file the one systemd's journal reads from ($JOURNAL_STREAM)? */
NOH_API bool noh_logger_is_journal(int fd);

typedef struct noh_logger_stats {
	uint64_t written;                     /* lines                                              */
	uint64_t left_out;                    /* alike, or too many                                 */
	uint64_t lost;                        /* there was no room                                  */
} noh_logger_stats;
NOH_API void noh_get_logger_stats(noh_logger *logger, noh_logger_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
