/* tests/sim/lmdb_wrap.h - LMDB's files on the simulated disk.
 *
 * LMDB reads through a map, so it keeps a real working directory, best on tmpfs. The program is linked
 * with liblmdb.a and --wrap for every call that changes a file (Makefile): for files below that directory
 * each call goes to the disk_sim first, as one operation in its order, and to the working file only if
 * the disk took it. After a cut, lmdb_wrap_rebuild makes the working directory what the disk holds.
 *
 * LMDB's lock file is memory shared by processes, not data: it is left alone, and gone after a cut.
 *
 * Owns     which file numbers are wrapped.   Threads  one.
 */
#ifndef NOH_TESTS_SIM_LMDB_WRAP_H
#define NOH_TESTS_SIM_LMDB_WRAP_H

#include "tests/sim/disk_sim.h"

/* Files of `dir` are from now on those of s, under the same names relative to it. NULL: none are. All
 * wrapped files must be closed. */
void lmdb_wrap(struct disk_sim *s, const char *dir);
/* Make the directory what the disk holds. All wrapped files must be closed. */
void lmdb_wrap_rebuild(void);
/* Do the files look like what the disk has? No: somebody wrote by a call that is not wrapped. */
bool lmdb_wrap_agrees(void);

/* A new directory for it, on tmpfs where there is one. */
const char *lmdb_wrap_make_dir(char *path, size_t room);
void lmdb_wrap_remove_dir(const char *path);

#endif
