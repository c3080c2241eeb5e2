/* tests/sim/persist_world.h - journal, fold and LMDB on a simulated disk, and what must be left of them.
 *
 * A story, all of it from one seed: some actors push records from two rings (states, entries, messages,
 * idempotency keys), the journaller steps, the keeper folds, all in random order; power goes in the middle
 * of any operation of journal or LMDB, or only the process dies, or a write or sync fails, or the disk is
 * full; what was left is recovered, sometimes cut again while that goes on; and the next life begins.
 * After each recovery:
 *
 *     lost       a record that was acknowledged (durable >= due), or was there after an earlier recovery
 *     phantom    a record that nobody pushed, that is not whole, or that an earlier recovery did not have
 *     cause      a record whose cause is not there: what its actor had seen, or the message it consumed
 *     state      an actor's state and entries are not exactly those after its last record
 *     message    sent and not consumed, and not there; or there and not sent, or consumed
 *     again      a second recovery, or one after an interrupted one, gave something else
 */
#ifndef NOH_TESTS_SIM_PERSIST_WORLD_H
#define NOH_TESTS_SIM_PERSIST_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct world_plan {
	uint64_t seed;
	/* Bugs that must be found. */
	bool     lie;                /* the disk forgets what it called durable                   */
	bool     ack_early;          /* acknowledged when pushed                                  */
	bool     ack_at_tag;         /* acknowledged at its tag, not at its due                   */
	bool     folded_early;       /* the journal is told of a fold before it is committed      */
	bool     stamp_high;         /* a fold is stamped with a frame above what it holds        */
	/* Not a bug: after the first life one bit of the journal has rotted, and the story ends with the next
	 * look. It must be refused or harmless; only what was written last may be taken for torn. */
	bool     rot;
};

/* How often what happened, summed over stories: what stays at 0 was not tested. */
struct world_seen {
	uint64_t records, acknowledged, survived_unacknowledged, lost_unacknowledged;
	uint64_t cuts, kills, faults, cuts_in_recovery, torn_tails, folds, recycled, large, full, unreserved, erased;
	uint64_t consumed, recoveries, operations, replayed;
};

struct world_result {
	uint64_t violations;
	char     first[320];
	uint64_t hash;               /* of everything recovered: the same seed gives the same */
};

/* dir: a working directory for LMDB (lmdb_wrap_make_dir). */
struct world_result world_run(const struct world_plan *plan, const char *dir, struct world_seen *seen);

#define WORLD_LIVES 5

#endif
