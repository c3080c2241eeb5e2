/* persist/disk.h - the one door to files, for all but LMDB.
 *
 * Two implementations: disk_real.c (io_uring, or plain calls where it is not allowed) and the
 * simulator's, which loses what was not synced, tears, reorders and fails. A path is relative to the
 * directory the disk was opened with and has no "..".
 *
 * Owns     the open files. A buffer given to disk_submit is the disk's until its ticket is reaped.
 * Threads  submit and reap: the one that writes the journal. The rest: any, one at a time per file.
 * Never    retries a failed write or sync: what fails is final (a second fsync that succeeds is a lie).
 *
 * Results are NOH_OK or NOH_EDISK with a sentence that names the file; NOH_END where it is said;
 * NOH_ENOSPC if there was no room (nothing changed that anybody relies on).
 */
#ifndef NOH_PERSIST_DISK_H
#define NOH_PERSIST_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_BLOCK 4096          /* what disk_submit writes: place, length and buffer are multiples */

struct disk;
struct disk_file;

enum {
	DISK_WRITE = 1,          /* else read only                                            */
	DISK_CREATE = 2,         /* it must not be there yet                                  */
	DISK_DURABLE = 4,        /* for disk_submit: past the page cache where the system can */
};

struct disk_ops {
	int  (*open)(struct disk *d, const char *path, unsigned flags, struct disk_file **file);
	void (*close)(struct disk_file *f);
	int  (*size)(struct disk_file *f, uint64_t *bytes);
	int  (*fill)(struct disk_file *f, uint64_t bytes);
	int  (*read)(struct disk_file *f, void *buf, size_t len, uint64_t off, size_t *got);
	int  (*write)(struct disk_file *f, const void *buf, size_t len, uint64_t off);
	int  (*sync)(struct disk_file *f);
	int  (*submit)(struct disk_file *f, const void *buf, size_t len, uint64_t off, uint64_t ticket);
	int  (*reap)(struct disk *d, bool wait, uint64_t *ticket, int *result);
	int  (*rename)(struct disk *d, const char *from, const char *to);
	int  (*remove)(struct disk *d, const char *path);
	int  (*sync_dir)(struct disk *d, const char *path);
	int  (*list)(struct disk *d, const char *path, void (*each)(void *arg, const char *name),
		     void *arg);
	void (*end)(struct disk *d);
};

struct disk {
	const struct disk_ops *ops;
	const char *how;         /* "io_uring, O_DIRECT and O_DSYNC": for the start line */
	unsigned    in_flight;   /* how many submits it takes before a reap, at least 1  */
	bool        at_once;     /* set by who submits: submits may block until they have ended */
	bool        ended;       /* set by submit: it has, and is to be reaped before the next one */
	bool      (*has_time)(void *arg, uint64_t done);   /* set by who fills; asked when so much is: may it take its time? */
	void       *time_arg;
};

enum disk_io { DISK_AUTO, DISK_URING, DISK_PLAIN };

/* The directory must exist. NOH_OK, NOH_EDISK, NOH_ENOMEM. DISK_URING fails where it is forbidden. */
int disk_real_open(struct disk **d, const char *dir, enum disk_io io);

/* NOH_END: no such file. */
static inline int disk_open(struct disk *d, const char *path, unsigned flags, struct disk_file **file)
{
	return d->ops->open(d, path, flags, file);
}

/* NULL-safe callers keep f; a closed file's submits must have been reaped. */
static inline void disk_close(struct disk *d, struct disk_file *f) { d->ops->close(f); }
static inline int disk_size(struct disk *d, struct disk_file *f, uint64_t *bytes)
{
	return d->ops->size(f, bytes);
}

/* Make it `bytes` long, every block written with zeros and synced: writing there later needs no
 * metadata. Where it has time, a little at a time: others write to that disk as well, and wait for their writes.
 * NOH_ENOSPC leaves the file to be removed. */
static inline int disk_fill(struct disk *d, struct disk_file *f, uint64_t bytes)
{
	return d->ops->fill(f, bytes);
}

/* *got < len only at the end of the file. */
static inline int disk_read(struct disk *d, struct disk_file *f, void *buf, size_t len, uint64_t off,
			    size_t *got)
{
	return d->ops->read(f, buf, len, off, got);
}

/* All of it, but not durable before disk_sync. */
static inline int disk_write(struct disk *d, struct disk_file *f, const void *buf, size_t len,
			     uint64_t off)
{
	return d->ops->write(f, buf, len, off);
}
static inline int disk_sync(struct disk *d, struct disk_file *f) { return d->ops->sync(f); }

/* Start a write that is durable when reaped with NOH_OK. At most d->in_flight before a reap. */
static inline int disk_submit(struct disk *d, struct disk_file *f, const void *buf, size_t len,
			      uint64_t off, uint64_t ticket)
{
	return d->ops->submit(f, buf, len, off, ticket);
}

/* A submit that ended: NOH_OK with its ticket and its own result. NOH_END: none has ended (without
 * wait), or none is under way. They may end in any order. */
static inline int disk_reap(struct disk *d, bool wait, uint64_t *ticket, int *result)
{
	return d->ops->reap(d, wait, ticket, result);
}

/* Names: durable only after disk_sync_dir of their directory ("" is the disk's own). */
static inline int disk_rename(struct disk *d, const char *from, const char *to)
{
	return d->ops->rename(d, from, to);
}
static inline int disk_remove(struct disk *d, const char *path) { return d->ops->remove(d, path); }
static inline int disk_sync_dir(struct disk *d, const char *path) { return d->ops->sync_dir(d, path); }
static inline int disk_list(struct disk *d, const char *path,
			    void (*each)(void *arg, const char *name), void *arg)
{
	return d->ops->list(d, path, each, arg);
}
static inline void disk_end(struct disk *d)
{
	if (d)
		d->ops->end(d);
}

#endif
