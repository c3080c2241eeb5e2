/* tests/sim/persist_world_in.h - a story from the inside: persist_world.c tells it, persist_records.c makes
 * its records, persist_look.c looks at what is left and compares. */
#ifndef NOH_TESTS_SIM_PERSIST_WORLD_IN_H
#define NOH_TESTS_SIM_PERSIST_WORLD_IN_H

#include "persist/db.h"
#include "persist/journal.h"
#include "persist/keeper.h"
#include "tests/sim/lmdb_wrap.h"
#include "tests/sim/persist_world.h"

#define DIR_ID   0x6469725f6964u
#define ACTORS   6
#define KEYS     4
#define RECORDS  1500                /* of one story */
#define MESSAGES 1500
#define RINGS    2
#define BATCH    3                   /* turns of one push */
#define DEPS     3
#define NONE     UINT32_MAX
#define NOW_MS   1700000000000u

/* What an actor is: a number, and for each key who wrote it (0: no such entry). */
struct state { uint32_t value, len, key[KEYS]; };

struct rec {
	uint32_t     actor;
	uint64_t     tag, due, seq, hash;
	uint32_t     deps[DEPS];         /* records that must be there if this one is          */
	uint32_t     consumes;           /* a message                                          */
	struct state after;
	bool         pushed, acknowledged, dead, there;
};

struct msg { uint32_t by, to, index, eaten; bool pending; };

struct ring { uint32_t open[BATCH]; uint32_t count; };

struct tail { uint8_t *bytes; size_t len, room; };     /* records after the stamp, one behind another */

struct world {
	const struct world_plan *plan;
	const char         *dir;
	struct world_seen  *seen;
	struct world_result result;
	uint64_t            random;
	struct disk_sim    *sim;
	struct disk        *disk;
	struct db          *db;
	struct journal     *journal;
	struct journal_end  end;
	struct rec         *recs;
	struct msg         *msgs;
	uint32_t            rec_count, msg_count;
	uint32_t            last[ACTORS];        /* the last record pushed by each, or NONE            */
	bool                busy[ACTORS];        /* has an open turn                                   */
	struct ring         rings[RINGS];
	struct tail         tail;
	uint64_t            tail_records;
	struct keeper       keeper;
	struct clock_virtual clock;
	uint64_t            faults;              /* met before this life                               */
	bool                small;               /* the disk may be full                               */
	const char         *ended;               /* how the last life did                              */
	uint64_t            pending;             /* and what was not on disk                           */
};

uint64_t world_draw(struct world *w, uint64_t below);
/* Something is not as it must be. The first one is kept, in words. */
void world_violated(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* True if rc is an error; it is a violation unless power is off or the disk failed. */
bool world_went_wrong(struct world *w, int rc, const char *what);

/* ── persist_records.c ── */
const char *world_address_of(uint32_t actor);
struct message_id world_id_of(const struct world *w, const struct msg *m);
void world_fill_state(uint8_t *out, const struct state *s);
/* The record of a turn, with the messages from first_msg on. Returns its length. */
size_t world_build(struct world *w, uint32_t number, const struct state *before, bool erased,
		   uint32_t first_msg, uint8_t *out);

/* ── persist_look.c ── */
/* Open LMDB, read the journal, compare with the records; nothing is changed but that LMDB's file is made.
 * *hash: of all that is there. False: power went, or it was refused. */
bool world_open_and_look(struct world *w, uint64_t *hash);

#endif
