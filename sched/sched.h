/* sched/sched.h - the scheduler's words: ports, turns, workers, and what they share (types: type.h).
 *
 * Owns     the actors and the right to run them. box/ makes threads out of workers and gives the
 *          storage; tests call sched_pass themselves, one step at a time.
 * Threads  a worker's `mine` is its own thread's; `shown` it writes and others read; `shared`
 *          anyone writes. A port is what a thread needs in order to send: a worker has one, outside
 *          threads borrow one.
 */
#ifndef NOH_SCHED_SCHED_H
#define NOH_SCHED_SCHED_H

#include "core/atomic.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/histogram.h"
#include "core/mem.h"
#include "core/must.h"
#include "core/note.h"
#include "core/record.h"
#include "core/ring_hash.h"
#include "core/slab.h"
#include "core/topics.h"
#include "core/trace.h"
#include "mailbox/inbox.h"
#include "sched/cell.h"
#include "sched/clockwork.h"
#include "sched/directory.h"
#include "sched/doors.h"
#include "sched/hands.h"
#include "sched/limit.h"
#include "sched/park.h"
#include "sched/pending.h"
#include "sched/runq.h"
#include "sched/spread.h"
#include "sched/type.h"
#include "sched/wheel.h"
#include "sched/writer.h"
#include "sched/perch.h"

#define SLICE 128              /* messages of one actor (or of a chain of hand-offs) in a row     */
#define BATCH_MAX 64
#define WINDOW_MAX 256         /* messages looked at together for coalescing                       */
#define EFFECTS_MAX 65536      /* messages and answers of one turn                                 */
#define BODY_CLASSES 15        /* 32, 48 ... 256 bytes; larger bodies are allocations              */
#define CHUNK_CELLS 4096       /* cells swept together                                             */
#define HARD_FACTOR 4          /* overflow of a block mailbox, times its capacity                  */

struct sched;
struct worker;
struct meter;

struct port {
	ck_epoch_record_t   epoch;
	struct sched       *sched;
	struct worker      *worker;            /* NULL: an outside thread's                        */
	struct mailroom     room;
	struct ring_cache   rings;
	struct slab_cache   cells, nodes, pendings, bodies[BODY_CLASSES];
	struct type_counts *types;
	_Atomic(struct meter *) *meters;       /* by type; NULL: nothing measured yet              */
	struct type        *last_type;         /* of the last address, or NULL                     */
	atomic_u64          dead_letters, late_answers, born, died, evicted, bytes_taken, bytes_given;
	atomic_u64          no_type;           /* messages for types that are not registered       */
	struct graves      *graves;            /* cells that died since the last grace period      */
	uint32_t            limbo;             /* and those there was no memory for                */
	alignas(CACHE_LINE) atomic_u32 busy;   /* outside: borrowed                                */
};

struct effects {
	struct effect *list;
	uint32_t       count, room;
};

/* The addresses a turn wrote to, one after the other: {effect, length} and the bytes. An actor may go
 * back to storage before the turn ends; then it is looked up again. */
struct letters {
	char    *bytes;
	uint32_t room;                     /* used: noh_turn.so_far.letters */
};

/* What turns have sent and could not be delivered yet, by sender; and room for the next one's (late.h). */
struct late_turn;
struct lates { struct late_turn *first, *last, *spare; };

struct schedule_op {
	uint64_t due_ms, period_ms, serial;
	uint32_t kind, entry, worker;
	bool     add;
};

enum {
	TURN_READONLY = 1, TURN_STOP = 2, TURN_TIMERS = 4, TURN_OUTSIDE = 8, TURN_KV = 16,
	TURN_ADDRESS = 32,                 /* address[] is filled in */
	TURN_REASON = 64,                  /* reason[] is            */
	TURN_RESTS = 128,                  /* block_on or wait_token */
	TURN_SPAWNS = 256,
	TURN_BIRTHS = 512,                 /* it has made cells that are not entered yet    */
	TURN_TWICE = 1024,                 /* and wrote to one of them more than once       */
	TURN_ERASE = 2048,
	TURN_STEP = 4096,                  /* one of several at one moment (step.h)         */
	TURN_RECORDED = 8192,              /* of a step: it has a record                    */
	TURN_REFUSED = 16384,              /* refusal is filled in                          */
	TURN_TOPICS = 32768,               /* it publishes, or changes what it listens to   */
	TURN_TRACED = 65536,               /* trace is filled in (trace.h)                  */
	TURN_LATE = 1 << 17,               /* some of what it sent is kept for later (late.h) */
	TURN_COMES = 1 << 18,              /* it is an on_activate                          */
	TURN_EXCEEDS = 1 << 19,            /* whom it writes to is made whatever the budget says (budget.c) */
	TURN_UNDEAD = 1 << 20,             /* undead is filled in                           */
	TURN_VITALS = 1 << 21,             /* vitals is                                     */
	TURN_WATCHES = 1 << 22,            /* watches is (watch.c)                          */
	TURN_EVENTS = 1 << 24,             /* events is filled in (notice.h)                */
	TURN_EVENTS_KEPT = 1 << 25,        /* and they are in its record                    */
};

/* What a turn says about its actor (vitals.h), until it ends. */
struct turn_vitals {
	uint64_t desired, observed, spawned;
	uint32_t children;
	uint8_t  error_len;
	bool     has_error;                /* error and its length count; all others always do */
	char     error[NOH_REASON_MAX + 1];
};

struct noh_turn {
	struct worker  *worker;
	struct sched   *sched;
	_Atomic(struct cell *) cell;       /* shown to the watchdog                                */
	struct type    *type;
	const noh_msg  *msgs;
	struct effects *fx, *other_fx;     /* the worker's two: now, and before: the message in
					      hand is among them                                   */
	struct type_counts *counts;        /* of the type, in the worker's port                    */
	uint32_t        msg_count;
	struct {                           /* all zero when a turn begins                          */
		void    *state;            /* the copy; NULL: not asked for yet                    */
		uint64_t replied;          /* bit per message: answered or deferred                */
		uint64_t now_ms;           /* 0: nobody has asked for the time yet                 */
		uint64_t wait_token;       /* the ask it waits for after this turn, and of whom    */
		uint32_t wait_on;
		uint32_t flags;
		uint32_t block_on, block_gen;   /* the first full mailbox this turn sent to        */
		uint32_t full_on, full_gen;     /* the first that refused                          */
		uint32_t letters;          /* bytes used of letters                                */
		uint32_t topics;           /* bytes used of topics                                 */
		uint32_t watches;          /* bytes used of watches                                */
		uint32_t births;           /* used of the worker's newborns                        */
		uint32_t newborn_effects;  /* messages for them: the first so many, if no others   */
	} so_far;
	void           *scratch;           /* the worker's room for one state                      */
	uint64_t        due;               /* of the turn that has just been committed             */
	uint8_t        *record;            /* prepared, not pushed; NULL: none                     */
	uint64_t        record_seq;
	struct msg      refusal;           /* what noh_refuse was given                            */
	const struct trace_tail *trace;    /* of the first of its messages that has one            */
	uint64_t        trace_began_ns;    /* when the hook was called, if that is kept            */
	struct part_undead undead;         /* the message set aside that this turn takes from there */
	struct event_node *events, **events_end;    /* what it tells, in order; one is freed with its turn */
	uint32_t        event_count;
	void           *key_part;          /* what a retry of a keyed message will be told; NULL   */
	size_t          key_part_len;
	struct letters  letters;
	struct letters  topics;            /* what it publishes and listens to (events.c)          */
	struct letters  watches;           /* whom it watches, and no longer (watch.c)             */
	struct turn_vitals vitals;
	uint64_t        hook_ns;           /* when it began, if its type has a deadline            */
	struct kv_log   kv_log;
	struct schedule_op *ops;
	uint32_t        op_count, op_room;
	char            address[ADDRESS_MAX + 1];
	char            reason[256];
	/* outside read-only turns: where the answer goes */
	void           *answer;
	size_t          answer_room, answer_len;
};

/* Messages this turn has for one mailbox: direct mapped. */
#define PENDING_TABLE 128
struct pending_sends {
	uint64_t  turn;
	noh_actor to;
	uint32_t  count, limit;            /* limit: so many without a look at the mailbox         */
	uint32_t  from, at;                /* its place in the order of a large commit             */
};
struct sends {
	struct pending_sends places[PENDING_TABLE];
	uint64_t turn;                     /* that has entered its receivers                       */
	uint8_t  used[PENDING_TABLE];      /* their places, as they came                           */
	uint32_t used_count;
	bool     mixed;                    /* two of its receivers have one place                  */
};

/* Cells made for addresses that are probably new, until the turn ends (newborn.c). */
struct newborn { uint64_t hash; uint32_t effect, cell, is; };
struct newborns { struct newborn *list; uint32_t room; };      /* used: noh_turn.so_far.births */
#define NAMESAKES 64               /* what this turn made an address: direct mapped by hash        */
struct namesake { uint64_t turn, hash; uint32_t cell, count; };

/* Answers that wait until what they tell is on disk: first in, first out. */
struct gated;
struct gate {
	alignas(CACHE_LINE) atomic_u32 held;       /* for a few entries: the owner, or who helps him */
	struct gated *list;                        /* guarded by held, as is all below               */
	uint32_t      head, room;                  /* room: a power of two                           */
	atomic_u32    count;                       /* may be read without, and then only fall         */
};

enum { SERVING_TURN = 1, SERVING_DISK = 2 };     /* mine.turn.cell is served; a frame is written */

struct worker_counts {
	atomic_u64 turns, steals, stolen_actors, parks, wakeups, passes;
};

struct worker {
	struct {
		struct sched *sched;
		uint32_t      index;
	} fixed;
	alignas(CACHE_LINE) struct {
		struct port      port;
		struct noh_turn  turn;
		struct effects   fx[2];
		const struct msg **order;          /* of a large commit: scratch                   */
		uint32_t         order_room;
		struct lates     lates;
		void            *scratch;
		struct sends     sends;
		struct newborns  newborns;
		struct namesake  namesakes[NAMESAKES];
		bool             expects_new;      /* the last address a turn wrote to was new    */
		struct slot     *window[WINDOW_MAX];
		noh_msg          msgs[WINDOW_MAX];
		uint64_t         rng;
		uint64_t         now_ns, now_ms;
		uint32_t         now_ds;
		struct cell    **receivers;        /* of the turn's effects, if they are recorded  */
		uint32_t         receiver_room;
		bool             read_only;        /* the disk was full when this turn began       */
		bool             has_room;         /* for a record and its answers: durable_room   */
		struct { struct cell *cell; int code; } unloaded;    /* the last one that could not be, and why */
		bool             answered;         /* few callers were answered since it last slept: they will ask again */
		bool             networked;        /* it has sockets                                 */
		bool             crowded;          /* and many who use them                          */
		uint64_t         journal_from_ns;  /* the disk was slow: not before                */
		struct lone_writer writer;         /* how long my lone writes take                 */
		struct perch     perch;            /* and where I sit for them                     */
		struct cell     *placed;           /* it is served and holds a place of its type (limit.h) */
		bool             pushed;           /* records since the journal was last seen to   */
		uint32_t         in_a_row;         /* served from hands since the run queue had one */
		uint64_t         sample_at;        /* turn that is measured next (meter.h)           */
		uint32_t         sample_rng;
		bool             worked;           /* the last pass did                              */
		uint64_t         pass_ns;          /* when it began                                  */
		uint64_t         window_ns, window_busy_ns;    /* begin of the window of time at hand */
		uint32_t         sweep_at;
		uint64_t         sweep_sent;       /* home, in this round of the hand                */
		struct spread    spread;
	} mine;
	alignas(CACHE_LINE) struct {
		struct worker_counts counts;
		atomic_u32 serving;            /* for the watchdog: SERVING_..., 0: neither        */
		atomic_u64 slow_turns;         /* counted by the watchdog                          */
		atomic_u64 next_timer_ms;      /* hint: when its wheel has something to do         */
		atomic_u64 awaits;             /* epoch its gate waits for; UINT64_MAX: none       */
		atomic_u64 net_awaits;         /* and its connections                              */
		atomic_u64 late;               /* messages that wait for memory (late.h)           */
		atomic_u64 known_due;          /* who came and went here: when that is on disk     */
		atomic_u64 busy_ns, parked_ns; /* so far                                           */
		atomic_u64 since_ns, since_busy_ns;    /* what busy was some ten seconds ago       */
		struct histogram lateness;     /* of timers                                        */
	} shown;
	struct runq runq;
	struct hands hands;
	struct gate gate;
	struct span_ring spans;
	alignas(CACHE_LINE) struct {
		struct inbox inbox;
		struct park  park;
		atomic_u32   stuck;            /* set by the watchdog: others may take over        */
		atomic_u64   stuck_ns;         /* and since when; its                              */
		struct spread_shared spread;
	} shared;
	alignas(CACHE_LINE) struct {
		atomic_u32   lock;             /* of the wheel: held for one operation             */
		atomic_u64   count;            /* how many are in it: for those who only look      */
		struct wheel wheel;
	} timers;
};

#define TYPES_MAX 1024
#define NO_BUDGET (UINT64_MAX / 2)        /* sched.actor_budget, while there is none               */
#define OUTSIDE_PORTS 16

struct sched {
	noh_box             *box;
	struct clock         clock;
	struct sched_storage storage;          /* in memory                                        */
	struct sched_storage disk;             /* of durable types                                 */
	struct sched_journal journal;
	struct sched_net     net;
	void               (*sit)(noh_box *box, uint32_t place);   /* me, on the core of that worker; NULL: they have none */
	struct sched_events  events;
	struct note         *notes;            /* one per worker; NULL: none are taken             */
	struct crash_list   *crashes;          /* of earlier runs; NULL: none                      */
	uint64_t             wall_offset_ms;   /* wall-clock time minus the box's, at the start    */
	uint64_t             seed;
	uint32_t             max_message, max_actors;
	atomic_u32           slow_turn_ms;
	atomic_u64           memory_budget;    /* of the whole box; 0: no limit                    */
	_Atomic(atomic_u64 *) buckets;         /* by cell: of types with a rate for each actor; NULL: none has */
	atomic_u32          *since_ds;         /* by cell: when it was activated; NULL: nobody will ask     */
	struct sched_memory  memory;
	noh_log_fn          *log;
	noh_log_line_fn     *log_line;         /* instead of log                                   */
	void                *log_user;
	atomic_u32           log_level;        /* of types without one of their own                */

	struct type        **types;
	uint32_t             type_count;
	atomic_u32           min_idle_ds;      /* of all types                                     */

	struct slab          cells, nodes, pendings, bodies[BODY_CLASSES];
	atomic_u32           bodies_open[BODY_CLASSES];   /* 0: not yet, 1: being opened, 2: open */
	struct rings         rings;
	struct directory     directory;
	struct topics        topics;           /* closed by the box, after the network             */
	struct vitals_table *vitals;
	atomic_u32           vitals_used;      /* somebody's were ever kept there                  */
	ck_epoch_t           epoch;
	struct ring_hash     homes;
	struct worker       *workers;
	uint32_t             worker_count;
	struct port         *outside;
	atomic_u64          *chunk_due_ds;     /* nothing to sweep in the chunk before             */

	alignas(CACHE_LINE) atomic_u32 stopping;   /* 1: refuse outside; 2: deactivate all; 3: end */
	atomic_u32           lead;             /* index + 1 of the one that outside work goes to (spread.h) */
	struct lone_writers  writers;          /* whom to wake for a lone record (writer.h)        */
	atomic_u32           sleepers;         /* workers that are parked                          */
	atomic_u32           room_waiters;     /* outside threads that wait for room               */
	atomic_u32           room_event;
	atomic_u64           peak_bytes;
	atomic_u32           watch_event;      /* the watchdog sleeps on it while all are idle     */
	atomic_u32           evict_age_ds;     /* under pressure: evict what is colder             */
	atomic_u64           short_ds;         /* when memory was last short, plus 1; 0: never     */
	atomic_u32           reliever;         /* index + 1 of the worker that evicts              */
	atomic_u32           nobody_goes;      /* it has tried all, and none could (budget.c)      */
	atomic_u64           actor_budget;     /* bytes that actors may take, as things stand      */
	atomic_u64           budget_ms;        /* when that was looked at, plus 1                  */
	atomic_u32           crowded;          /* too much is on its way to the disk already       */
	atomic_u64           next_sweep_ds;    /* nothing to sweep before                          */
	atomic_u32           stuck_workers;    /* how many the watchdog found stuck                */
	atomic_u32           sweep_next;       /* stop: next chunk to sweep                        */
	alignas(CACHE_LINE) atomic_u64 durable;    /* epoch: whatever is due by then is on disk    */
	atomic_u32           durable_event;    /* counts its steps; who waits for one sleeps on it */
	atomic_u32           durable_waiters;  /* how many do                                      */
	atomic_u32           disk_failed;      /* for good: nothing is acknowledged any more       */
};

/* sched.c */
int  sched_open(struct sched *s);              /* after the fields above were set */
void sched_count_messages(struct sched *s);                              /* by actor: before there are any          */
void sched_keep_since(struct sched *s);     /* before it starts: when actors are activated */
uint64_t sched_since_ms(struct sched *s, struct cell *c);                /* wall clock; 0: nobody keeps it */
uint64_t sched_handled(struct sched *s, struct cell *c);                 /* messages, since it was activated; inside an epoch section */
int  sched_start(struct sched *s);             /* types are known: make the workers */
void sched_discard(struct sched *s);           /* no thread runs: whoever is left goes, counted */
void sched_close(struct sched *s);
struct port *sched_port(struct sched *s);      /* this thread's: the worker's own, or borrowed */
void sched_port_done(struct port *p);
struct worker *sched_self(void);               /* the worker whose turn this thread runs, or NULL */
void sched_set_self(struct worker *w);
bool sched_in_turn(void);                      /* user code runs on this thread: do not block */
void sched_set_reading(bool yes);
uint64_t sched_bytes(struct sched *s);         /* of actors; budget.c */
void sched_weigh(struct sched *s, uint64_t now_ms);    /* how much actors may take now; budget.c */
bool sched_may_exceed(noh_turn *t);    /* the budget has refused it somebody: not if it is this turn's now; budget.c */
uint64_t sched_actors(struct sched *s);
uint64_t sched_sum(struct sched *s, size_t port_offset);    /* of a counter in all ports */
int type_check_kind(const struct type *t, uint32_t kind);   /* may others send it? NOH_EKIND */
struct type *sched_find_type(struct sched *s, const char *name, size_t len);
void sched_enqueue(struct port *p, struct cell *c);     /* it is BUSY: let it run */
struct sysmsg *node_take(struct port *p, uint32_t op);  /* NULL: out of memory */
void node_free(struct port *p, struct sysmsg *n);       /* and its body */
bool node_set_body(struct sysmsg *n, const void *body, size_t len);
struct cell *sched_find(struct port *p, const struct address *a, struct type *t, uint64_t hash,
			uint32_t *gen);  /* in an epoch section; NULL: not in memory */
int  sched_resolve(struct port *p, const char *address, size_t len, struct cell **cell,
		   uint32_t *gen);      /* find or make; never activates */
int  sched_resolve_sent(struct port *p, const char *address, size_t len, struct cell **cell,
			uint32_t *gen); /* the same for what was sent already: whatever the budget says */
/* The same for a name that is known; *claim: if it has to be made, it is BUSY, and the caller's to run; told
 * if so. */
struct named;
int  sched_resolve_named(struct port *p, const struct named *who, struct cell **cell, uint32_t *gen, bool *claim);
/* found: whom the directory had for its hash, in this epoch section; NULL: nobody looked. */
int  sched_resolve_found(struct port *p, const struct named *who, struct cell *found, struct cell **cell, uint32_t *gen,
			 bool *claim);

/* log.c: a line about an actor ("": none in particular); the same by its turn, with its message and trace */
void sched_logf(struct sched *s, int level, const char *actor, const char *format, ...) NOH_PRINTF(4, 5);
void sched_log_always(struct sched *s, const char *actor, const char *text);   /* NOH_INFO, whatever the levels are */
void turn_logf(noh_turn *t, int level, const char *format, ...) NOH_PRINTF(3, 4);

/* gate.c */
void sched_durable(struct sched *s, uint64_t epoch);   /* the journal says so */
void sched_disk_failed(struct sched *s);
uint64_t sched_work_ahead(struct sched *s);    /* of the workers that do not sleep, the one with the fewest: how many actors wait */

/* worker.c */
uint32_t sched_pass(struct worker *w);         /* one round; returns how much was done */
bool sched_has_work(struct worker *w);
void sched_loop(struct worker *w);             /* until stopping is 3 */
void sched_wake_all(struct sched *s);
void sched_watch(struct sched *s);             /* the watchdog's loop */
uint64_t sched_now_ms(struct worker *w);
static inline uint64_t sched_wall_ms(struct worker *w)                   /* of the pass at hand */
{
	return sched_now_ms(w) + w->fixed.sched->wall_offset_ms;
}
static inline uint64_t sched_clock_wall_ms(const struct sched *s)        /* now */
{
	return clock_now_ns(&s->clock) / 1000000u + s->wall_offset_ms;
}

/* serve.c */
void sched_serve(struct worker *w, struct cell *c);          /* it is BUSY, and ours now   */
void sched_serve_hand(struct worker *w, struct effect *e);   /* the same, with its message */

/* deliver.c */
enum { SYS_ANSWER, SYS_TIMER, SYS_ROOM, SYS_ACTIVATE, SYS_DEACTIVATE, SYS_SPAWN, SYS_WAKE, SYS_JOIN,
       SYS_UNSCHEDULE, SYS_LIMIT,
       SYS_RESTART = 32, SYS_RESUME, SYS_ESCALATE, SYS_KIN_FAILED, SYS_KIN_DOWN, SYS_KIN_UP, SYS_KIN_RESTART, SYS_KIN_NEXT,
       SYS_TYPE_DOWN, SYS_END };               /* supervise.h, kin.h */
void sched_sys(struct port *p, struct cell *c, uint32_t gen, struct sysmsg *n);
void sched_wake_waiters(struct port *p, struct sysmsg *list);
int  sched_deliver(struct port *p, struct cell *c, uint32_t gen, const struct msg *m);
uint32_t sched_deliver_run(struct port *p, struct cell *c, uint32_t gen, const struct msg *const *msgs,
			   uint32_t n, int *rc);
void msg_dispose(struct port *p, const struct msg *m, int status);
void node_undeliverable(struct port *p, struct sysmsg *n);

/* turn.c; the short way is in turn.h */
void turn_undo(struct worker *w);
bool turn_open(struct worker *w);
void turn_free(struct worker *w);
void turn_publish_state(struct cell *c, struct type *t, const void *state);
bool msg_set_body(struct msg *m, const void *body, size_t len);

/* life.c */
bool life_activate(struct worker *w, struct cell *c);      /* false: broken */
bool life_activate_new(struct worker *w, struct cell *c, struct type *t);   /* false: not the short way */
int  life_run_hook(struct worker *w, struct cell *c, int (*hook)(noh_turn *));   /* a turn of its own; NULL: an empty one */
void life_set_active(struct cell *c);
struct ext *cell_ext(struct cell *c);                      /* made if need be; NULL: no memory */
void life_weigh(struct port *p, struct cell *c);           /* what it has besides its body may have changed */
void life_comes(struct port *p, struct cell *c, bool reborn);   /* it exists from now on, and is counted */
void life_goes(struct port *p, struct cell *c);

/* leave.c */
bool life_deactivate(struct worker *w, struct cell *c);    /* true: it is gone */
void life_retire(struct worker *w, struct cell *c, enum gone why);      /* its last turn; what waits is refused, then it goes */
void life_discard(struct port *p, struct cell *c);         /* at the end: free it, whatever it is in */

/* graves.c: the dead, until nobody can look at them any more */
void graves_bury(struct port *p, uint32_t cell);
void graves_close(struct port *p);                         /* this pass's dead: into the ground */
void graves_empty_limbo(struct port *p);                   /* at the end of the box */

/* sweep.c */
uint32_t life_sweep(struct worker *w);                     /* what idled out; under pressure, more */
uint32_t life_sweep_all(struct worker *w);                 /* stopping: everybody */
void life_note_due(struct sched *s, struct cell *c, uint64_t due_ds);   /* it will have idled out */

static inline struct cell *cell_at(struct sched *s, uint32_t number)
{
	return (struct cell *)(void *)s->cells.fixed.base + number;
}
static inline uint32_t cell_number(struct sched *s, const struct cell *c)
{
	return (uint32_t)(c - (const struct cell *)(void *)s->cells.fixed.base);
}
/* Neither asleep nor held by a long turn: what it is given runs soon. */
static inline bool worker_is_up(struct worker *w)
{
	return !load_relaxed(&w->shared.park.asleep) && !load_relaxed(&w->shared.stuck);
}
/* When it was activated, if that is kept: now. */
static inline void sched_note_since(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;

	if (__builtin_expect(s->since_ds != NULL, 0))
		store_relaxed(&s->since_ds[cell_number(s, c)], w->mine.now_ds);
}
static inline void life_note_idle(struct sched *s, struct cell *c, const struct type *t,
				  uint64_t now_ds)
{
	uint32_t idle = load_relaxed(&((struct type *)(uintptr_t)t)->idle_ds);
	uint64_t due = now_ds + idle;

	if (idle != UINT32_MAX &&
	    (due < load_relaxed(&s->chunk_due_ds[cell_number(s, c) / CHUNK_CELLS]) ||
	     due < load_relaxed(&s->next_sweep_ds)))
		life_note_due(s, c, due);
}
static inline struct type *cell_type(struct sched *s, const struct cell *c)
{
	return s->types[load_relaxed(&((struct cell *)(uintptr_t)c)->type)];
}
static inline atomic_u64 *body_handled(struct body *b, const struct type *t)       /* if it is counted */
{
	return (atomic_u64 *)(void *)(b->data + t->count_off);
}
static inline uint8_t *body_state(const struct type *t, struct body *b)
{
	return b->data + t->state_off;
}
static inline uint8_t body_id_len(const struct type *t, const struct body *b)
{
	return b->data[t->id_off];
}
static inline const char *body_id(const struct type *t, const struct body *b)
{
	return (const char *)b->data + t->id_off + 1;
}
size_t cell_address(struct sched *s, const struct cell *c, char *out);   /* with NUL; length */
size_t cell_address_len(struct sched *s, const struct cell *c);
void   cell_address_put(struct sched *s, const struct cell *c, char *out);       /* without NUL */

static inline void msg_free_body(const struct msg *m)
{
	if (m->len > MSG_INLINE)
		mem_free(m->body.big, m->len & MSG_WRAPPED ? ((struct envelope *)m->body.big)->bytes
							   : m->len);
}

/* Whole words: states are padded to 8 bytes wherever they are kept. */
static inline void copy_words(void *to, const void *from, uint32_t words)
{
	uint64_t *t = to;
	const uint64_t *f = from;

	switch (words) {                 /* most states are small, and every turn that changes one comes by */
	case 8: t[7] = f[7];             /* fall through */
	case 7: t[6] = f[6];             /* fall through */
	case 6: t[5] = f[5];             /* fall through */
	case 5: t[4] = f[4];             /* fall through */
	case 4: t[3] = f[3];             /* fall through */
	case 3: t[2] = f[2];             /* fall through */
	case 2: t[1] = f[1];             /* fall through */
	case 1: t[0] = f[0];             /* fall through */
	case 0: return;
	}
	for (uint32_t i = 0; i < words; i++)
		t[i] = f[i];
}

/* Two words, and as two: where they were written one by one a moment ago, a load of both at once would wait until they
 * have left for the cache. */
static inline void copy_two(volatile uint64_t *to, const volatile uint64_t *from)
{
	to[0] = from[0];
	to[1] = from[1];
}

/* Before a turn changes it. A small one without a look at how small: behind a state of up to two words there are enough to
 * read two, behind a larger one enough to read four (the id comes there, and bodies have 32 bytes, 48 and so on), and a
 * copy has room for them. */
#define STATE_COPY_LEAST 32
static inline void copy_before(void *copy, const void *state, uint32_t words)
{
	if (__builtin_expect(words <= 4, 1)) {
		copy_two(copy, state);
		if (words > 2)
			copy_two((uint64_t *)copy + 2, (const uint64_t *)state + 2);
	} else {
		copy_words(copy, state, words);
	}
}

#endif
