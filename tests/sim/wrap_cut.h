/* tests/sim/wrap_cut.h - transactions on real LMDB; power is cut at every operation, in every mode.
 *
 * A run writes transactions of random puts and deletes (or folds of states and erasures) and stops where
 * power goes. Then, for each mode: what is left is opened; it must be the state after some transaction,
 * whole, and not before the last one that was acknowledged; and it must take another transaction.
 */
#ifndef NOH_TESTS_SIM_WRAP_CUT_H
#define NOH_TESTS_SIM_WRAP_CUT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef NOH_SANITIZED
#define CUT_SMALL 4
#else
#define CUT_SMALL 12
#endif

struct cut_plan {
	const char *name;
	unsigned    transactions;
	uint64_t    seed;
	bool        fold;                          /* through persist/db.h's fold, else plain puts */
	bool        no_sync, no_dir_sync, lie;     /* what must be noticed */
};

struct cut_result {
	uint64_t points, violations;
	double   seconds;
	bool     agreed;             /* the wrap saw every write                */
	char     first[160];         /* the first violation, in words           */
};

struct cut_result cut_everywhere(const struct cut_plan *plan);

#endif
