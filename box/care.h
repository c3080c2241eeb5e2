/* box/care.h - a data directory from the outside: what the functions of noh.h's section 7 share.
 *
 * These live in box/ because journal and image meet here, and their faces are in noh.h, so that the
 * command line stays an embedder like any other, and an embedder can do all the command line can.
 *
 * Owns     a directory opened to look: no lock is taken, nothing in it is changed but LMDB's table of
 *          readers (image/lock.mdb).
 * Threads  one per struct.
 * Blocks   all of it.
 * Refuses  a directory that a box of this process has open: LMDB's file must not be opened twice in a
 *          process (closing one drops the other's locks).
 *
 * Beside a running box the journal moves while it is read: a frame may be seen missing that was written
 * a moment later, with one behind it that knows it. So a walk that finds damage is repeated, and only
 * what is found at the same place three times running is damage.
 */
#ifndef NOH_BOX_CARE_H
#define NOH_BOX_CARE_H

#include "core/error.h"
#include "persist/datadir.h"
#include "persist/db.h"
#include "persist/journal.h"
#include "persist/segment.h"

struct care {
	struct datadir dir;
	struct disk   *disk;
	struct db     *db;               /* NULL until care_image                                */
	bool           running;          /* some box has it open                                 */
};

int  care_open(struct care *c, const char *dir);     /* the directory and its journal            */
int  care_image(struct care *c);                     /* and the image                            */
int  care_look(struct care *c, const char *dir);     /* both                                     */
/* LMDB does not survive every kind of damage: who reads all of it anyway has the pages checked first, if no
 * box runs. NOH_ECORRUPT names the first that is wrong. */
int  care_pages(struct care *c);
int  care_whole(struct care *c, const char *dir);    /* care_look with care_pages                */
void care_close(struct care *c);                     /* also what was never opened: { 0 }        */
bool care_is_running(const char *dir);

/* Reads the segment's head into *s. The numbers of its first frame, and of the first one that begins a
 * group; 0: there is none that is whole. */
struct care_first { uint64_t frame, group; };
int care_segment(struct care *c, struct segment_info *s, struct care_first *first);
/* The number of the oldest frame still in the journal that begins a group; 0: there is none. *damaged: the number
 * of a segment that lost its first frame though others follow, or 0. */
int care_oldest(struct care *c, uint64_t *frame, uint64_t *damaged);

struct care_walk {
	bool             all;            /* from the oldest frame; else what the image does not have */
	void           (*again)(void *arg);  /* before each attempt: forget what was seen; or NULL   */
	journal_each_fn *each;           /* returns NOH_OK or NOH_ENOMEM                             */
	void            *arg;
	uint64_t         after;          /* out: frames above this one were walked                   */
	uint64_t         stamp, epoch;   /* out: the image's, before the walk                        */
};
int care_walk(struct care *c, struct care_walk *w, struct journal_end *end);

/* The journal's own sentences do not know the directory: put its name before them. Returns rc. */
int care_named(int rc, const char *dir);

/* Can a program with this type (NULL: it has none such) open what is stored? Sets verdict, to, missing. */
void care_judge(noh_stored_type *s, const noh_type *t);

/* files.c - whole files and directories; errors name them. */
int      files_path(char *out, const char *dir, const char *name);    /* out: PATH_MAX               */
/* Without holes: room that is not written yet is taken all the same. Synced. NOH_END: no such file. */
int      files_copy(const char *from, const char *to, bool backwards);
int      files_make_dir(const char *path);
int      files_sync_dir(const char *path);
int      files_sync_parent(const char *path);
uint64_t files_bytes(const char *dir, const char *ending, uint64_t *count);   /* sizes in a folder   */
void     files_remove(const char *dir);              /* one of our own makings, with all in it       */
bool     files_is_empty(const char *dir);
int      files_error(const char *doing, const char *path);             /* from errno                 */

#endif
