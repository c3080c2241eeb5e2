/* persist/db_pages.h - the pages of the image's file, checked without LMDB.
 *
 * LMDB trusts its pages: a flipped bit in one makes it read past the page or the file, which is a signal
 * and not an error code. So before it maps a file of doubtful health, this reads the file with plain
 * calls and checks everything LMDB follows: page numbers, kinds, bounds, nodes, long values, the lists
 * of free pages, and that no page is used twice.
 *
 * Owns     nothing.   Threads  one.   Blocks  reads the file.
 * Never    maps it. The file must not change meanwhile: not beside a running box.
 */
#ifndef NOH_PERSIST_DB_PAGES_H
#define NOH_PERSIST_DB_PAGES_H

#include "persist/db.h"

/* problem() is told each finding; returns how many, or NOH_EDISK, NOH_ENOMEM. progress may be NULL. */
int64_t db_pages(const char *file, db_problem_fn *problem, db_progress_fn *progress, void *arg);

#endif
