/* tests/persist/mem_disk.h - a disk in memory whose faults a test chooses.
 *
 * Submitted writes take effect when they are reaped. Names and bytes are durable at once: what a power
 * cut does is the simulator's business; here tests change the bytes themselves.
 */
#ifndef NOH_TESTS_MEM_DISK_H
#define NOH_TESTS_MEM_DISK_H

#include "core/error.h"
#include "core/must.h"
#include "persist/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEM_FILES 64
#define MEM_FLIGHT 2

struct disk_file {
	char      name[64];
	uint8_t  *bytes;
	uint64_t  len;
	bool      there;
	unsigned  opened;
	struct mem_disk *disk;
};

struct mem_disk {
	struct disk      disk;
	struct disk_file file[MEM_FILES];
	struct { struct disk_file *f; const void *buf; size_t len; uint64_t off, ticket; } going[MEM_FLIGHT];
	unsigned         count;
	bool             full;           /* a new file cannot be filled                  */
	bool             hold;           /* nothing ends                                 */
	bool             backwards;      /* the youngest write ends first                */
	bool             broken;         /* every submitted write ends with EIO          */
	unsigned         fills, syncs, dir_syncs, writes;
};

static inline struct mem_disk *mem_disk(struct disk *d)
{
	return (struct mem_disk *)(void *)d;
}

static inline struct disk_file *mem_find(struct mem_disk *d, const char *path)
{
	for (int i = 0; i < MEM_FILES; i++)
		if (d->file[i].there && !strcmp(d->file[i].name, path))
			return &d->file[i];
	return NULL;
}

static inline void mem_grow(struct disk_file *f, uint64_t len)
{
	if (len <= f->len)
		return;
	f->bytes = realloc(f->bytes, len);
	must(f->bytes);
	memset(f->bytes + f->len, 0, len - f->len);
	f->len = len;
}

static inline int mem_open(struct disk *disk, const char *path, unsigned flags, struct disk_file **file)
{
	struct disk_file *f = mem_find(mem_disk(disk), path);

	if (!f && !(flags & DISK_CREATE))
		return error_set(NOH_END, "%s is not there", path);
	if (f && (flags & DISK_CREATE))
		return error_set(NOH_EDISK, "%s is there already", path);
	for (int i = 0; !f; i++) {
		must(i < MEM_FILES);
		if (mem_disk(disk)->file[i].there || mem_disk(disk)->file[i].opened)
			continue;
		f = &mem_disk(disk)->file[i];
		free(f->bytes);
		*f = (struct disk_file){ .there = true, .disk = mem_disk(disk) };
		snprintf(f->name, sizeof f->name, "%s", path);
	}
	f->opened++;
	*file = f;
	return NOH_OK;
}

static inline void mem_close(struct disk_file *f) { f->opened--; }
static inline int mem_size(struct disk_file *f, uint64_t *bytes) { *bytes = f->len; return NOH_OK; }
static inline int mem_fill(struct disk_file *f, uint64_t bytes)
{
	f->disk->fills++;
	if (f->disk->full)
		return error_set(NOH_ENOSPC, "fill %s: no space", f->name);
	mem_grow(f, bytes);
	return NOH_OK;
}
static inline int mem_read(struct disk_file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
	*got = off >= f->len ? 0 : f->len - off < len ? (size_t)(f->len - off) : len;
	if (*got)
		memcpy(buf, f->bytes + off, *got);
	return NOH_OK;
}
static inline int mem_write(struct disk_file *f, const void *buf, size_t len, uint64_t off)
{
	mem_grow(f, off + len);
	memcpy(f->bytes + off, buf, len);
	f->disk->writes++;
	return NOH_OK;
}
static inline int mem_sync(struct disk_file *f) { f->disk->syncs++; return NOH_OK; }
static inline int mem_submit(struct disk_file *f, const void *buf, size_t len, uint64_t off,
			     uint64_t ticket)
{
	struct mem_disk *d = f->disk;

	must(d->count < d->disk.in_flight && f->there);
	must(off % DISK_BLOCK == 0 && len % DISK_BLOCK == 0 && off + len <= f->len);
	d->going[d->count].f = f;
	d->going[d->count].buf = buf;
	d->going[d->count].len = len;
	d->going[d->count].off = off;
	d->going[d->count++].ticket = ticket;
	return NOH_OK;
}
static inline int mem_reap(struct disk *disk, bool wait, uint64_t *ticket, int *result)
{
	struct mem_disk *d = mem_disk(disk);
	unsigned at = d->backwards ? d->count - 1 : 0;

	if (d->count == 0 || (d->hold && !wait))
		return NOH_END;
	*ticket = d->going[at].ticket;
	*result = d->broken ? error_set(NOH_EDISK, "write %s: Input/output error", d->going[at].f->name) :
		  mem_write(d->going[at].f, d->going[at].buf, d->going[at].len, d->going[at].off);
	d->count--;
	memmove(&d->going[at], &d->going[at + 1], (d->count - at) * sizeof d->going[0]);
	return NOH_OK;
}
static inline int mem_rename(struct disk *disk, const char *from, const char *to)
{
	struct disk_file *f = mem_find(mem_disk(disk), from), *old = mem_find(mem_disk(disk), to);

	if (!f)
		return error_set(NOH_EDISK, "rename %s: it is not there", from);
	if (old)
		old->there = false;
	snprintf(f->name, sizeof f->name, "%s", to);
	return NOH_OK;
}
static inline int mem_remove(struct disk *disk, const char *path)
{
	struct disk_file *f = mem_find(mem_disk(disk), path);

	if (!f)
		return NOH_END;
	f->there = false;
	return NOH_OK;
}
static inline int mem_sync_dir(struct disk *disk, const char *path)
{
	(void)path;
	mem_disk(disk)->dir_syncs++;
	return NOH_OK;
}
static inline int mem_list(struct disk *disk, const char *path,
			   void (*each)(void *arg, const char *name), void *arg)
{
	size_t len = strlen(path);

	for (int i = 0; i < MEM_FILES; i++) {
		struct disk_file *f = &mem_disk(disk)->file[i];

		if (f->there && !strncmp(f->name, path, len) && f->name[len] == '/')
			each(arg, f->name + len + 1);
	}
	return NOH_OK;
}
static inline void mem_end(struct disk *disk)
{
	for (int i = 0; i < MEM_FILES; i++)
		free(mem_disk(disk)->file[i].bytes);
	free(disk);
}

static inline struct mem_disk *mem_disk_open(void)
{
	static const struct disk_ops ops = {
		.open = mem_open, .close = mem_close, .size = mem_size, .fill = mem_fill, .read = mem_read,
		.write = mem_write, .sync = mem_sync, .submit = mem_submit, .reap = mem_reap,
		.rename = mem_rename, .remove = mem_remove, .sync_dir = mem_sync_dir, .list = mem_list,
		.end = mem_end,
	};
	struct mem_disk *d = calloc(1, sizeof *d);

	must(d);
	d->disk.ops = &ops;
	d->disk.how = "memory";
	d->disk.in_flight = MEM_FLIGHT;
	return d;
}

/* The power is off: what was under way is lost, and nobody has a file open. */
static inline void mem_disk_cut(struct mem_disk *d)
{
	d->count = 0;
	d->hold = d->backwards = d->broken = d->full = false;
	for (int i = 0; i < MEM_FILES; i++)
		d->file[i].opened = 0;
}

#endif
