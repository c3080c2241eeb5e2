/* tests/sim/disk_sim.h - a disk in memory that forgets, tears, reorders and fails, from one seed.
 *
 * A file is what its readers see, what would survive a power cut (durable), and in between the list of
 * what was written but not synced: pending. Names (create, rename, remove) are pending too, until their
 * directory is synced. Everything of one disk_sim is on one list, in the order it was begun, so one cut
 * hits all files at the same instant; lmdb_wrap puts LMDB's file on the same list.
 *
 *     s = disk_sim_new(42);  disk_sim_cut_at(s, 17);      the 17th operation is the last one begun
 *     ... the product runs on disk_sim_door(s) and gets NOH_EDISK from then on; throw it away ...
 *     disk_sim_cut(s, CUT_TORN, 7);                       what is left is decided
 *     ... open again ...
 *
 * The model is as strict as POSIX allows: a sync of a file makes neither its name durable nor another
 * file's bytes; a durable write (disk_submit) covers its own bytes alone. A failed sync leaves the pages
 * clean: readers still see the bytes, the next sync succeeds, and a cut shows they are gone.
 *
 * Owns     all bytes. Open files belong to who opened them: they close them, power or not.
 * Threads  one.
 */
#ifndef NOH_TESTS_SIM_DISK_SIM_H
#define NOH_TESTS_SIM_DISK_SIM_H

#include "persist/disk.h"

struct disk_sim;

struct disk_sim *disk_sim_new(uint64_t seed);
/* The same disk once more, to try several cuts from one moment. No file is open on it; what is under
 * way there is merely pending here. */
struct disk_sim *disk_sim_copy(const struct disk_sim *s);
void disk_sim_free(struct disk_sim *s);                  /* NULL is fine */
struct disk *disk_sim_door(struct disk_sim *s);          /* disk_end of it does nothing */

/* ── power ── */

enum cut {
	CUT_DROP,        /* nothing that was pending                   */
	CUT_KEEP,        /* all of it                                  */
	CUT_SUBSET,      /* each write and each name: heads or tails   */
	CUT_TORN,        /* so each 512 bytes of each write            */
	CUT_LAST,        /* only the last one begun                    */
	CUT_BUT_ONE,     /* all but one                                */
	CUT_BYTES,       /* each write up to any byte of it, but a sector's worth is never torn */
	CUT_MODES
};
extern const char *const cut_names[CUT_MODES];

/* Operations that change something, begun so far. */
uint64_t disk_sim_ops(const struct disk_sim *s);
/* Power goes as this operation (counted as above) is begun: it fails, and what it would have written is
 * pending. 0: it stays on. */
void disk_sim_cut_at(struct disk_sim *s, uint64_t op);
void disk_sim_off(struct disk_sim *s);                   /* power is off from now on */
bool disk_sim_is_off(const struct disk_sim *s);
/* Decide what was left; power is on again, and nothing pending. All files must have been closed. */
void disk_sim_cut(struct disk_sim *s, enum cut mode, uint64_t seed);
/* Only the process died: what it wrote is seen, and still as pending as before. What was under way got
 * there or did not. Power, if it was taken away to end the process, is on again. */
void disk_sim_kill(struct disk_sim *s, uint64_t seed);
uint64_t disk_sim_pending(const struct disk_sim *s);     /* writes and names that a cut may lose */

/* ── faults ── */

enum sim_op {
	SIM_OPEN, SIM_FILL, SIM_READ, SIM_WRITE, SIM_SYNC, SIM_SUBMIT, SIM_RENAME, SIM_REMOVE,
	SIM_SYNC_DIR, SIM_OPS
};
enum sim_fault {
	FAULT_EIO,       /* write, submit: some of its sectors arrived. sync: the pages are clean  */
	FAULT_SHORT,     /* a write ends half way; an error too, for this door promises all of it  */
	FAULT_NOSPC,     /* NOH_ENOSPC                                                             */
};
/* The nth such operation from now (1: the next) fails, once. 0: none. */
void disk_sim_fail(struct disk_sim *s, enum sim_op op, uint64_t nth, enum sim_fault how);
uint64_t disk_sim_faults(const struct disk_sim *s);      /* how many were met */
uint64_t disk_sim_count(const struct disk_sim *s, enum sim_op op);
/* All files together hold at most so many bytes; then NOH_ENOSPC. 0: no limit. */
void disk_sim_space(struct disk_sim *s, uint64_t bytes);
/* Submits end after so many reaps that do not wait, drawn for each. Default 0 to 4. */
void disk_sim_latency(struct disk_sim *s, unsigned least, unsigned most);
/* Says that writes and syncs are durable and forgets them: what a test must notice. */
void disk_sim_lie(struct disk_sim *s, bool lie);
bool disk_sim_rot(struct disk_sim *s, const char *path, uint64_t off, unsigned bit);   /* flips it */
bool disk_sim_chop(struct disk_sim *s, const char *path, uint64_t bytes);              /* truncates */

/* ── looking ── */

/* What a reader sees; NULL: no such file. Valid until it is written again. */
const uint8_t *disk_sim_bytes(const struct disk_sim *s, const char *path, size_t *len);
uint64_t disk_sim_hash(const struct disk_sim *s);        /* of names, bytes, and all that is pending */
unsigned disk_sim_open_files(const struct disk_sim *s);
/* What the user of the disk did wrong (changed a buffer under way, an odd place or length, too many at
 * once); NULL: nothing. */
const char *disk_sim_problem(const struct disk_sim *s);

/* ── for lmdb_wrap ── */
int disk_sim_write_through(struct disk_file *f, const void *buf, size_t len, uint64_t off);
int disk_sim_resize(struct disk_file *f, uint64_t bytes);
/* Directories are there by themselves; one that was made is a name like others: pending until its own
 * directory is synced, and lost with all that is in it. */
int disk_sim_mkdir(struct disk_sim *s, const char *path);
bool disk_sim_is_directory(const struct disk_sim *s, const char *path);    /* one that was made */
bool disk_sim_exists(const struct disk_sim *s, const char *path);
void disk_sim_each(const struct disk_sim *s, void (*each)(void *arg, const char *path), void *arg);

#endif
