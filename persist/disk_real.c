/* persist/disk_real.c - struct disk over the kernel's files.
 *
 * A durable file has two descriptors: one through the page cache for everything ordinary, one with
 * O_DIRECT and O_DSYNC for disk_submit. Where the file system does not take O_DIRECT (tmpfs of old
 * kernels), the second is O_DSYNC alone; then a failed write-back is reported by the write itself all
 * the same. Numbers: docs/decisions/0005-journal-writes.md.
 *
 * What is tried again: the rest of a short write, EINTR, EAGAIN: nothing has failed. Nothing else is.
 */
#include "persist/disk.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/must.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_FLIGHT 2
#define SMALL 65536              /* a lone write up to that is sooner there by a call that blocks: decision 0005 */
#define NAME_MAX_LEN 256
#define PIECE (UINT64_C(1) << 18)
#define BREATH_US 2000           /* between two pieces, if there is time */

struct disk_file {
	struct real *disk;
	int          fd;             /* through the page cache                                    */
	int          durable;        /* past it; -1: not opened for disk_submit                   */
	char         name[NAME_MAX_LEN];
};

struct going {                       /* a submit that was not reaped yet                          */
	struct disk_file *file;
	const uint8_t    *buf;
	size_t            left;
	uint64_t          off, ticket;
	int               error;     /* errno                                                     */
	bool              used, done;
};

struct real {
	struct disk     disk;
	int             dir;
	bool            uring;
	char            how[64];
	char            path[4096];
	struct io_uring ring;
	struct going    going[IN_FLIGHT];
};

static int failed(struct real *d, const char *what, const char *name)
{
	int code = errno == ENOSPC || errno == EDQUOT ? NOH_ENOSPC : NOH_EDISK;

	return error_set(code, "%s %s/%s: %s%s", what, d->path, name, strerror(errno),
			 code == NOH_ENOSPC ? "; make room on that file system" : "");
}

static struct real *real(struct disk *d)
{
	return (struct real *)(void *)d;
}

/* ── files ── */

static int open_again(int dir, const char *path, int flags)
{
	int fd;

	do
		fd = openat(dir, path, flags | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* A new file's folder may be missing: it is made, and its name is durable. */
static int make_folder(struct real *d, const char *path)
{
	char folder[NAME_MAX_LEN];
	const char *slash = strrchr(path, '/');

	if (!slash)
		return -1;
	snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
	return mkdirat(d->dir, folder, 0700) || fsync(d->dir) ? -1 : 0;
}

static int open_durable(struct real *d, const char *path)
{
	int fd = open_again(d->dir, path, O_RDWR | O_DIRECT | O_DSYNC);

	return fd < 0 && errno == EINVAL ? open_again(d->dir, path, O_RDWR | O_DSYNC) : fd;
}

static void real_close(struct disk_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->durable >= 0)
		close(f->durable);
	mem_free(f, sizeof *f);
}

static int real_open(struct disk *disk, const char *path, unsigned flags, struct disk_file **file)
{
	struct real *d = real(disk);
	struct disk_file *f = mem_zalloc(sizeof *f);
	int how = flags & (DISK_WRITE | DISK_CREATE) ? O_RDWR : O_RDONLY;

	must(strlen(path) < NAME_MAX_LEN && !strstr(path, ".."));
	if (!f)
		return error_set(NOH_ENOMEM, "no memory to open %s/%s", d->path, path);
	f->disk = d;
	f->durable = -1;
	snprintf(f->name, sizeof f->name, "%s", path);
	if (flags & DISK_CREATE)
		how |= O_CREAT | O_EXCL;
	f->fd = open_again(d->dir, path, how);
	if (f->fd < 0 && errno == ENOENT && (flags & DISK_CREATE) && make_folder(d, path) == 0)
		f->fd = open_again(d->dir, path, how);
	if (f->fd >= 0 && (flags & DISK_DURABLE))
		f->durable = open_durable(d, path);
	if (f->fd < 0 || ((flags & DISK_DURABLE) && f->durable < 0)) {
		int rc = errno == ENOENT ? error_set(NOH_END, "%s/%s is not there", d->path, path) :
					   failed(d, "open", path);
		real_close(f);
		return rc;
	}
	*file = f;
	return NOH_OK;
}

static int real_size(struct disk_file *f, uint64_t *bytes)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return failed(f->disk, "stat", f->name);
	*bytes = (uint64_t)st.st_size;
	return NOH_OK;
}

static int real_read(struct disk_file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
	*got = 0;
	while (*got < len) {
		ssize_t n = pread(f->fd, (char *)buf + *got, len - *got, (off_t)(off + *got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(f->disk, "read", f->name);
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return NOH_OK;
}

/* 0, or errno with what is left in *len. */
static int write_all(int fd, const uint8_t **buf, size_t *len, uint64_t *off)
{
	while (*len > 0) {
		ssize_t n = pwrite(fd, *buf, *len, (off_t)*off);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		*buf += n;
		*len -= (size_t)n;
		*off += (uint64_t)n;
	}
	return 0;
}

static int real_write(struct disk_file *f, const void *buf, size_t len, uint64_t off)
{
	const uint8_t *at = buf;

	errno = write_all(f->fd, &at, &len, &off);
	return errno ? failed(f->disk, "write", f->name) : NOH_OK;
}

static int real_sync(struct disk_file *f)
{
	return fsync(f->fd) ? failed(f->disk, "sync", f->name) : NOH_OK;
}

/* What was written so far is on its way before the next piece: all of it at once, at the end, would keep the disk from
 * whoever waits for one small write. */
static void breathe(struct disk_file *f, uint64_t off, uint64_t len)
{
	struct disk *d = &f->disk->disk;

	if (!d->has_time || !d->has_time(d->time_arg, off + len))
		return;
	(void)sync_file_range(f->fd, (off_t)off, (off_t)len,
			      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	usleep(BREATH_US);
}

/* Written and not only promised: fallocate leaves extents whose first write changes metadata. */
static int real_fill(struct disk_file *f, uint64_t bytes)
{
	uint8_t *zeros = mem_zalloc(PIECE);
	int rc = NOH_OK;

	if (!zeros)
		return error_set(NOH_ENOMEM, "no memory to fill %s", f->name);
	for (uint64_t off = 0; rc == NOH_OK && off < bytes; off += PIECE) {
		size_t len = (size_t)(bytes - off < PIECE ? bytes - off : PIECE);

		rc = real_write(f, zeros, len, off);
		breathe(f, off, len);
	}
	mem_free(zeros, PIECE);
	if (rc == NOH_OK && ftruncate(f->fd, (off_t)bytes))
		rc = failed(f->disk, "resize", f->name);
	return rc == NOH_OK ? real_sync(f) : rc;
}

/* ── submit and reap ── */

/* The kernel may be short of something for a moment, or interrupted: neither is a failure. */
static int ring_submit(struct real *d)
{
	for (;;) {
		int n = io_uring_submit(&d->ring);

		if (n >= 0)
			return 0;
		if (n != -EINTR && n != -EAGAIN && n != -EBUSY) {
			errno = -n;
			return -1;
		}
	}
}

static int ring_write(struct real *d, struct going *g)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);

	must(sqe);                               /* the ring is larger than IN_FLIGHT */
	io_uring_prep_write(sqe, g->file->durable, g->buf, (unsigned)g->left, g->off);
	io_uring_sqe_set_data64(sqe, (uint64_t)(g - d->going));
	return ring_submit(d);
}

static int real_submit(struct disk_file *f, const void *buf, size_t len, uint64_t off, uint64_t ticket)
{
	struct real *d = f->disk;
	struct going *g = d->going;
	bool alone = true;

	must(f->durable >= 0);
	must(off % DISK_BLOCK == 0 && len % DISK_BLOCK == 0 && (uintptr_t)buf % DISK_BLOCK == 0);
	for (uint32_t i = 0; i < IN_FLIGHT; i++)
		alone &= !d->going[i].used;
	while (g < d->going + IN_FLIGHT && g->used)
		g++;
	must(g < d->going + IN_FLIGHT);
	*g = (struct going){ .file = f, .buf = buf, .left = len, .off = off, .ticket = ticket,
			     .used = true };
	d->disk.ended = !d->uring || d->disk.at_once || (alone && len <= SMALL);
	if (d->disk.ended) {
		g->error = write_all(f->durable, &g->buf, &g->left, &g->off);
		g->done = true;
	} else if (ring_write(d, g)) {
		g->used = false;
		return failed(d, "submit a write to", f->name);
	}
	return NOH_OK;
}

/* What the kernel says of a write: done, failed, or the rest is on its way again. */
static void ring_ended(struct real *d, struct going *g, int res)
{
	if (res > 0) {
		g->buf += res;
		g->off += (uint64_t)res;
		g->left -= (size_t)res;
	}
	if (res == 0 || (res < 0 && res != -EINTR && res != -EAGAIN))
		g->error = res < 0 ? -res : EIO;
	else if (g->left > 0 && ring_write(d, g))
		g->error = errno;
	g->done = g->error || g->left == 0;
}

static struct going *ended(struct real *d, bool *any)
{
	*any = false;
	for (struct going *g = d->going; g < d->going + IN_FLIGHT; g++) {
		*any |= g->used;
		if (g->used && g->done)
			return g;
	}
	return NULL;
}

static int real_reap(struct disk *disk, bool wait, uint64_t *ticket, int *result)
{
	struct real *d = real(disk);
	struct io_uring_cqe *cqe;
	struct going *g;
	bool any;

	while (!(g = ended(d, &any))) {
		if (!any)
			return NOH_END;
		int rc = wait ? io_uring_wait_cqe(&d->ring, &cqe) : io_uring_peek_cqe(&d->ring, &cqe);

		if (rc == -EAGAIN && !wait)
			return NOH_END;
		if (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY)
			continue;
		if (rc < 0) {
			errno = -rc;
			return failed(d, "wait for a write in", "journal");
		}
		uint64_t at = io_uring_cqe_get_data64(cqe);
		int res = cqe->res;

		io_uring_cqe_seen(&d->ring, cqe);
		ring_ended(d, &d->going[at], res);
	}
	*ticket = g->ticket;
	*result = NOH_OK;
	if (g->error) {             /* even ENOSPC: the file was filled before it was written to */
		errno = g->error;
		*result = error_set(NOH_EDISK, "write %s/%s at %llu: %s", d->path, g->file->name,
				    (unsigned long long)g->off, strerror(errno));
	}
	g->used = false;
	return NOH_OK;
}

/* ── names ── */

static int real_rename(struct disk *disk, const char *from, const char *to)
{
	struct real *d = real(disk);

	return renameat(d->dir, from, d->dir, to) ? failed(d, "rename", from) : NOH_OK;
}

static int real_remove(struct disk *disk, const char *path)
{
	struct real *d = real(disk);

	if (unlinkat(d->dir, path, 0) == 0)
		return NOH_OK;
	return errno == ENOENT ? NOH_END : failed(d, "remove", path);
}

static int real_sync_dir(struct disk *disk, const char *path)
{
	struct real *d = real(disk);
	int fd = open_again(d->dir, *path ? path : ".", O_RDONLY | O_DIRECTORY);
	int rc = fd < 0 || fsync(fd) ? failed(d, "sync the directory", path) : NOH_OK;

	if (fd >= 0)
		close(fd);
	return rc;
}

/* A folder that is not there is empty. */
static int real_list(struct disk *disk, const char *path, void (*each)(void *arg, const char *name),
		     void *arg)
{
	struct real *d = real(disk);
	int fd = open_again(d->dir, *path ? path : ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return errno == ENOENT ? NOH_OK : failed(d, "list", path);
	}
	errno = 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL; errno = 0)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			each(arg, e->d_name);
	int rc = errno ? failed(d, "list", path) : NOH_OK;

	closedir(dir);
	return rc;
}

/* ── open and end ── */

static void real_end(struct disk *disk)
{
	struct real *d = real(disk);

	if (d->uring)
		io_uring_queue_exit(&d->ring);
	if (d->dir >= 0)
		close(d->dir);
	mem_free(d, sizeof *d);
}

static const struct disk_ops ops = {
	.open = real_open, .close = real_close, .size = real_size, .fill = real_fill,
	.read = real_read, .write = real_write, .sync = real_sync, .submit = real_submit,
	.reap = real_reap, .rename = real_rename, .remove = real_remove,
	.sync_dir = real_sync_dir, .list = real_list, .end = real_end,
};

/* Forbidden (seccomp, io_uring_disabled), or of a kernel that cannot write yet. */
static bool ring_works(struct real *d)
{
	int rc = io_uring_queue_init(8, &d->ring, 0);

	if (rc < 0) {
		errno = -rc;
		return false;
	}
	struct io_uring_probe *probe = io_uring_get_probe_ring(&d->ring);
	bool can = probe && io_uring_opcode_supported(probe, IORING_OP_WRITE);

	if (probe)
		io_uring_free_probe(probe);
	if (!can) {
		io_uring_queue_exit(&d->ring);
		errno = EOPNOTSUPP;
	}
	return can;
}

static bool direct_works(struct real *d)
{
	int fd = open_again(d->dir, ".", O_TMPFILE | O_RDWR | O_DIRECT);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int disk_real_open(struct disk **disk, const char *dir, enum disk_io io)
{
	struct real *d = mem_zalloc(sizeof *d);

	if (!d)
		return error_set(NOH_ENOMEM, "no memory to open %s", dir);
	must(strlen(dir) < sizeof d->path);
	strcpy(d->path, dir);
	d->disk.ops = &ops;
	d->disk.in_flight = IN_FLIGHT;
	d->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->uring = d->dir >= 0 && io != DISK_PLAIN && ring_works(d);
	if (d->dir < 0 || (io == DISK_URING && !d->uring)) {
		int rc = error_set(NOH_EDISK, d->dir < 0 ? "open the directory %s: %s" :
				   "io_uring for %s: %s; plain calls would work", dir, strerror(errno));

		real_end(&d->disk);
		return rc;
	}
	snprintf(d->how, sizeof d->how, "%s, %sO_DSYNC", d->uring ? "io_uring" : "plain calls",
		 direct_works(d) ? "O_DIRECT and " : "");
	d->disk.how = d->how;
	*disk = &d->disk;
	return NOH_OK;
}
