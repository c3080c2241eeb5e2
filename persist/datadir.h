/* persist/datadir.h - a data directory: whose it is, what it holds, who has it open.
 *
 *     DIR/noh.dir      text: format version, id, hash seed, byte order; written once
 *     DIR/lock         held (OFD lock) as long as a box has the directory open; holds its pid
 *     DIR/journal/     segments (journal.h)
 *     DIR/image/       LMDB (db.h)
 *     DIR/running      the page that survives a crash (poison.h)
 *
 * A first start writes the text as noh.dir.tmp, synced, makes the image and the journal's first segment, and only then
 * renames it. So where noh.dir is, image and journal have been, and if one is missing it is lost; where only
 * noh.dir.tmp is, a start was interrupted and nothing was acknowledged: the next one goes on with that.
 *
 * Owns     the lock.   Threads  one.
 * Refuses  with one sentence that names the file and the way out, and changes nothing: a directory
 *          that is not writable, in use (NOH_EINUSE), of another version (NOH_EVERSION), not empty
 *          and not ours or on a network file system (NOH_EINVAL), damaged (NOH_ECORRUPT); what the
 *          system refuses is NOH_ESYSTEM.
 */
#ifndef NOH_PERSIST_DATADIR_H
#define NOH_PERSIST_DATADIR_H

#include <stdbool.h>
#include <stdint.h>

#define DATADIR_FORMAT 1

struct datadir {
	char     path[4096];
	uint64_t id;                 /* random: files of two directories cannot be mixed up */
	uint64_t seed;               /* of address hashes                                   */
	uint32_t format;
	int      lock;               /* -1: opened to look only                             */
	bool     unfinished;         /* the first start is under way                        */
};

enum { DATADIR_CREATE = 1, DATADIR_LOOK = 2 };    /* LOOK: no lock, read only, beside a running box */

/* seed 0: random. Only used when the directory is new. */
int datadir_open(struct datadir *d, const char *path, unsigned flags, uint64_t seed);
/* Image and journal are made and synced. Does nothing to a directory that was finished before. */
int datadir_finish(struct datadir *d);
void datadir_close(struct datadir *d);

#endif
