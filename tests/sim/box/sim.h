/* tests/sim/box/sim.h - a whole box from one seed: one thread, a virtual clock, a disk that forgets.
 *
 * Read in this order: sim.h, model.c and recovery.c (what must hold), actors.c (who runs in the box),
 * clients.c and several.c (who calls it), scanner.c (who lists it), events.c (who reads what happened), family.c (who is
 * supervised), limited.c (who has limits), world.c (clock, disk, crashes), shortage.c (memory), steps.c (who goes next), sim_main.c.
 *
 * Owns     everything, in one struct: a seed begins with all of it zeroed.
 * Threads  one.
 */
#ifndef NOH_TESTS_SIM_BOX_SIM_H
#define NOH_TESTS_SIM_BOX_SIM_H

#include "box/box.h"
#include "core/plant.h"
#include "tests/sim/disk_sim.h"

/* ── who there is ── */

enum sim_type { ACC, LOG, LAST, TMP, VOL, SIM_TYPES };
enum { ACTORS = 14, CLIENTS = 4, WORKERS_MAX = 4, OPS = 1024, VERSIONS = 1 << 14, MESSAGES = 1 << 14,
       KEYS = 48, CAUSES = 3 };
enum { TMP_FIRST = 9, VOL_FIRST = 12 };          /* in sim_actors */
#define CLIENT(c) (ACTORS + (c))                 /* as a sender */

struct sim_actor { const char *address; enum sim_type type; };
extern const struct sim_actor sim_actors[ACTORS];
static inline const char *sim_name(unsigned a) { return sim_actors[a].address; }
static inline bool is_durable(unsigned a) { return sim_actors[a].type != VOL; }

enum sim_kind {
	K_ADD, K_GET, K_READ, K_MOVE, K_CREDIT, K_VIA, K_RELAY, K_NOTE, K_ASK, K_ANSWERED, K_ARM, K_TICK,
	K_EVERY, K_BEAT, K_QUIET, K_PUT, K_DEL, K_ERASE, K_FAIL, K_FAIL_LATE, K_SET, K_STOP, K_BURST, K_LOOK,
	K_STEP, K_REFUSE,
	SIM_KINDS
};
extern const char *const sim_kind_names[SIM_KINDS];

/* What every message says. Versions are numbers of model.c; each names its actor. */
struct sim_body {
	uint32_t uid, op, amount, target, count, known[CAUSES];
};

/* The state of all durable types. */
struct sim_state {
	uint64_t version;
	int64_t  balance;
	uint64_t entries;        /* a sum over its key-value part                              */
	uint32_t armed, every;   /* it has a schedule once, again and again                    */
	uint8_t  pad[40];        /* the version's low byte, all of it                          */
};
struct sim_known { uint64_t version[ACTORS]; };     /* the state of a volatile one: whom it heard of */

/* ── the model: a version for each turn that changed a state ── */

struct version {
	uint32_t parent, op, key, amount, depth;
	uint32_t causes[CAUSES];
	uint32_t last[ACTORS];   /* the last message handled from each durable actor, so far   */
	uint64_t due;            /* the epoch that brings it to disk, in `life`                */
	uint32_t life;
	int64_t  balance;        /* the state it left: */
	bool     armed, every;
	uint8_t  actor;
	bool     failed, erased; /* its turn was undone; it ends with nothing stored           */
};
struct message {
	uint8_t  from, to;
	bool     recorded;       /* between durable actors: survives if its sender's turn does */
	bool     ended;          /* found its end in a turn that left no version               */
	bool     heard;          /* in this life                                               */
	uint32_t sent_by, handled_by;       /* versions */
};
enum op_state { OP_FREE, OP_WAITS, OP_OK, OP_REFUSED, OP_UNKNOWN };
struct op {
	enum op_state state;
	enum sim_kind kind;
	uint8_t  client, actor;
	bool     at_memory, sent_only, small_timeout;
	uint32_t uid, key, amount, life, retries;
	uint32_t floor;          /* what its actor had shown when it was sent                  */
	uint64_t at_ns;
};
enum { SEVERAL = 5 };
struct sim_several {             /* of an op that is a step over several actors; count 0: it is not */
	uint8_t  count, actor[SEVERAL];
	uint32_t version[SEVERAL];
};
struct key {                     /* of an idempotent add; key 0 is none */
	uint8_t  actor;
	uint32_t uid, op, amount, shown;        /* shown: the version that was answered at disk */
};

/* ── what a seed is made of ── */

enum fault {
	F_KILL = 1, F_CUT = 2, F_EIO = 4, F_NOSPC = 8, F_ROT = 16, F_JUMP = 32, F_EVICT = 64, F_FORCE = 128,
	F_TIGHT = 256, F_DEEP = 512, F_SHORT = 1024, F_ALL = 2047
};
struct plan {
	unsigned targets;        /* of recorded messages: the first so many actors             */
	unsigned workers, clients, ops, faults, crash_every, nest, capacity, fold_ms, latency;
	bool     family, limited;
	uint64_t kinds, memory_budget, journal_bytes, fold_bytes, segment_bytes, events_bytes;
	uint32_t ring_bytes;
};

struct sim_scan {
	uint64_t cursor;
	bool     under_way;
	bool     there[ACTORS];          /* it exists                                                  */
	uint64_t born_due[ACTORS];       /* since when that is on disk, or that it does not            */
	bool     steady[ACTORS], ever[ACTORS];  /* it existed all the time since the scan began, ever  */
	bool     now[ACTORS];            /* told by this call                                          */
	uint32_t told[ACTORS];
};

enum { KIDS = 4, KNOTS = 3 };
struct sim_family {              /* family.c */
	uint32_t sent[KIDS], done[KIDS], failed[KIDS];   /* messages; how often the one at hand has failed */
	bool     active[KIDS];
	bool     to_stop[KIDS];  /* was in the tree when that began to stop, and has not stopped since */
	bool     stopping;       /* the tree is                                                */
	uint32_t next;           /* those spawned before it stop next                          */
	uint32_t knot_fails, knot_failures, escalations;
};

enum limited { LIM_PACE, LIM_BRIM, LIM_FEW, LIMITED };
enum { LIMITED_ACTORS = 4 };
struct sim_bucket { uint64_t debt_ns, at_ns; };
struct sim_limited {             /* limited.c; by type */
	uint32_t sent[LIMITED_ACTORS], done[LIMITED_ACTORS], running;
	struct sim_bucket bucket[LIMITED_ACTORS];
};

struct sleeper { bool asleep, no_room; uint64_t wake_ns; uint32_t event; };

struct sim_seen {                /* how often what happened: what stays at 0 was not tested */
	uint64_t seeds, steps, ops, answers, refused, unknown, turns, versions, messages, crashes, kills,
		 cuts, deep, eio, nospc, rot, rot_found, rot_image, rot_image_ends, twice, jumps, evictions, forced, folds, nested,
		 torn, redelivered, keys_repeated, idem, ticks, beats, erased, coalesced_or_dropped, full,
		 several_ok, several_undone, several_lost, shortages, refused_memory, late, steals, failed_turns, reads, slept, clean_stops, virtual_ms, scans, counted,
		 events, events_gone,
		 family_failures, escalations, tree_stops, paced, refused_rate, placed;
};

struct only { long nest, faults; };      /* instead of what the plan draws, to make a finding smaller; -1 */

struct sim {
	uint64_t seed, random, hash, step;
	struct plan plan;
	bool     calm;           /* no more faults */
	bool     loud;           /* tell every step */
	struct only only;
	char     dir[128];
	/* world.c */
	struct disk_sim *disk;
	noh_box *box;
	struct clock_virtual clock;
	uint64_t spent_ns;       /* of the lives before */
	uint32_t life, workers;
	bool     dead, verifying;
	struct sched_journal journal;    /* the real one */
	uint64_t space_until_ns;
	uint64_t short_until;            /* step: memory is short before, for */
	uint32_t short_worker;           /* this one; for all, if there is none such */
	struct note notes[WORKERS_MAX];
	/* steps.c */
	struct sleeper worker[WORKERS_MAX], journaller, keeper;
	unsigned depth;
	bool     tail, no_keeper;        /* a tail is being read: the keeper would wait for its end */
	bool     in_journaller, in_keeper, in_worker[WORKERS_MAX];
	/* model.c */
	struct version version[VERSIONS];
	struct message message[MESSAGES];
	uint32_t versions, messages;
	uint32_t tip[ACTORS], shown[ACTORS], found[ACTORS];
	uint32_t heard[ACTORS + CLIENTS][ACTORS];
	bool     busy[ACTORS];
	uint64_t clean[ACTORS];          /* what a copy of the disk recovered to                */
	/* clients.c */
	struct op op[OPS];
	struct sim_several several[OPS];
	struct key key[KEYS];
	uint32_t ops, keys;
	uint32_t erasing[ACTORS];        /* the op that does; 0: none under way */
	/* scanner.c */
	struct sim_scan scan;
	/* events.c */
	uint64_t event_cursor;
	uint32_t event_last[ACTORS];     /* the version of its last event that was read; or EVENT_UNKNOWN */
	struct sim_family family;
	struct sim_limited limited[LIMITED];
};
extern struct sim *sim;
extern struct sim_seen *seen;

static inline uint64_t sim_random(void)
{
	uint64_t z = sim->random += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}
static inline uint32_t sim_below(uint32_t n) { return (uint32_t)(sim_random() % n); }
static inline bool sim_one_in(uint32_t n) { return n && sim_below(n) == 0; }
static inline void sim_note(uint64_t x)          /* into the trace */
{
	sim->hash = (sim->hash ^ x) * UINT64_C(0x100000001b3);
	sim->hash ^= sim->hash >> 29;
}
static inline uint64_t sim_now(void) { return clock_now_ns(&sim->clock.clock); }

/* The end of this process: says seed and step. */
_Noreturn void sim_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));    /* if loud */

/* model.c */
uint32_t model_send(unsigned from, unsigned to, uint32_t version, bool recorded);
void     model_enter(unsigned a, const struct sim_state *s);        /* NULL: volatile */
void     model_hears(unsigned a, const noh_msg *m, const struct sim_body *b);
uint32_t model_version(unsigned a);
void     model_handles(unsigned a, uint32_t v, const struct sim_body *b);
void     model_leave(unsigned a, uint32_t v, int rc, const struct sim_state *s);
void     model_recorded(const char *address, uint64_t due);
void     model_unrecorded(const char *address);
bool     model_reaches(uint32_t v, uint32_t to);        /* is v `to` or before it? */
void     model_shown(uint32_t v, const char *how);
void     model_told(uint32_t v, const char *how);      /* by what goes by its frame, not by its epoch */
void     model_answer(uint32_t op, int status, const void *answer, size_t len);
bool     model_may_drop(const struct message *m);
uint32_t model_with_key(uint32_t v, uint32_t key);      /* the version up to v that used it, or 0 */
void     model_finished(void);
bool     model_quiet(void);

/* recovery.c */
void     model_recovered(noh_box *box);                 /* everything that must hold then */
uint64_t model_image_hash(noh_box *box);
void     model_same_image(noh_box *box);
void     model_any_image(noh_box *box);                 /* of a damaged disk: nothing wrong is shown */

/* actors.c */
int  actors_register(noh_box *box);
uint64_t actors_entry_sum(const void *key, size_t key_len, const void *value, size_t len);

/* clients.c */
void client_act(void);
void client_crashed(void);
void client_end_schedules(void);
unsigned client_waiting(void);
void client_check_patience(uint64_t limit_ns);

/* several.c */
void several_call(uint32_t op);
void several_version(uint32_t op, uint32_t v);          /* one of its actors has made it */
void several_check(const uint32_t *of, const char *when);

/* scanner.c */
void scanner_recorded(const char *address, bool erased, uint64_t due);
void scanner_recovered(const bool *there);
void scanner_started(void);              /* after a crash, before anybody runs */
void scanner_act(void);

/* events.c */
#define EVENT_UNKNOWN UINT32_MAX         /* those before are too old, and gone */
void events_tell(noh_turn *t, uint32_t v);
void events_act(void);
void events_recovered(noh_box *box, const bool *there);  /* may correct sim->found */

/* family.c */
int  family_register(noh_box *box);
bool family_is(const char *address);     /* then the model knows nothing of it */
bool family_is_type(const char *name);
void family_act(void);
void family_log(const char *line);
void family_crashed(void);
void family_recovered(void);
bool family_quiet(void);
void family_finished(void);

/* limited.c */
int  limited_register(noh_box *box);
bool limited_is(const char *address);    /* then the model knows nothing of it */
void limited_act(void);
void limited_crashed(void);
bool limited_quiet(void);
void limited_finished(void);

/* world.c */
void world_begin(uint64_t seed, const char *dir);
void world_crash(void);
void world_reopen(void);
void world_faults(void);                 /* before a step */
bool world_holds(void);                        /* answers, until what they tell is on disk */
void world_end(void);                    /* clean stop, and everything is still there */

/* shortage.c */
void shortage_begin(void);

/* steps.c */
void steps_restart(void);
void steps_nest(void);
bool steps_one(bool clients);            /* false: nothing can go on before time does */
void steps_wait(void);                   /* until the next thing happens */

#endif
