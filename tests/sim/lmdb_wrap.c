/* tests/sim/lmdb_wrap.c - see lmdb_wrap.h. --wrap=pwrite makes calls of pwrite end in __wrap_pwrite. */
#include "tests/sim/lmdb_wrap.h"

#include "core/must.h"
#include "noh.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 1024
#define MAX_PATH 512

int __real_open(const char *path, int flags, ...);
int __real_close(int fd);
ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __real_pwrite(int fd, const void *buf, size_t len, off_t off);
ssize_t __real_writev(int fd, const struct iovec *iov, int count);
ssize_t __real_pwritev(int fd, const struct iovec *iov, int count, off_t off);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_ftruncate(int fd, off_t len);
int __real_fallocate(int fd, int mode, off_t off, off_t len);
int __real_posix_fallocate(int fd, off_t off, off_t len);
int __real_mkdir(const char *path, mode_t mode);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);

int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t off);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int count);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int count, off_t off);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_ftruncate(int fd, off_t len);
int __wrap_fallocate(int fd, int mode, off_t off, off_t len);
int __wrap_posix_fallocate(int fd, off_t off, off_t len);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);

struct wrapped {
	struct disk_file *file;          /* NULL with used: a directory, or a file only read */
	bool              used, dir, through;
	char              path[MAX_PATH];
};

static struct {
	struct disk_sim *disk;
	char             root[MAX_PATH];
	struct wrapped   fd[FDS];
} wrap;

/* ── which path, which number ── */

static const char *inside(const char *path)        /* relative to the root, or NULL: not ours */
{
	size_t len = strlen(wrap.root);
	const char *base = strrchr(path, '/');

	if (!wrap.disk || strncmp(path, wrap.root, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	if (base && strcmp(base, "/lock.mdb") == 0)
		return NULL;
	for (path += len; *path == '/'; path++)
		continue;
	return path;
}

static struct wrapped *wrapped(int fd)
{
	return fd >= 0 && fd < FDS && wrap.fd[fd].used ? &wrap.fd[fd] : NULL;
}

static int errno_of(int rc)              /* 0, or -1 with errno */
{
	if (rc == NOH_OK)
		return 0;
	errno = rc == NOH_ENOSPC ? ENOSPC : EIO;
	return -1;
}

/* ── opening and names ── */

static int open_file(const char *path, const char *rel, int flags, mode_t mode)
{
	struct disk *d = disk_sim_door(wrap.disk);
	bool there = disk_sim_exists(wrap.disk, rel);
	struct disk_file *file = NULL;
	unsigned how = (flags & O_ACCMODE) == O_RDONLY ? 0 : DISK_WRITE;

	if (!there && !(flags & O_CREAT)) {
		errno = disk_sim_is_off(wrap.disk) ? EIO : ENOENT;
		return -1;
	}
	if (errno_of(disk_open(d, rel, how | (there ? 0u : DISK_CREATE), &file)) != 0)
		return -1;
	if (there && flags & O_TRUNC && errno_of(disk_sim_resize(file, 0)) != 0) {
		disk_close(d, file);
		return -1;
	}
	int fd = __real_open(path, flags, mode);

	must(fd < FDS);
	if (fd < 0) {
		disk_close(d, file);
		return -1;
	}
	wrap.fd[fd] = (struct wrapped){ .used = true, .file = file,
					.through = (flags & O_DSYNC) == O_DSYNC };
	return fd;
}

static int open_directory(const char *path, const char *rel, int flags)
{
	int fd = __real_open(path, flags);

	must(fd < FDS);
	if (fd >= 0) {
		wrap.fd[fd] = (struct wrapped){ .used = true, .dir = true };
		snprintf(wrap.fd[fd].path, MAX_PATH, "%s", rel);
	}
	return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
	const char *rel = inside(path);
	struct stat st;
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	if (!rel)
		return __real_open(path, flags, mode);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return open_directory(path, rel, flags);
	return open_file(path, rel, flags, mode);
}

int __wrap_close(int fd)
{
	struct wrapped *w = wrapped(fd);

	if (w) {
		if (w->file)
			disk_close(disk_sim_door(wrap.disk), w->file);
		w->used = false;
	}
	return __real_close(fd);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	const char *rel = inside(path);
	struct stat st;

	if (rel && rel[0] && stat(path, &st) != 0 && errno_of(disk_sim_mkdir(wrap.disk, rel)) != 0)
		return -1;
	return __real_mkdir(path, mode);
}

int __wrap_rename(const char *from, const char *to)
{
	const char *a = inside(from), *b = inside(to);

	if (a && b && errno_of(disk_rename(disk_sim_door(wrap.disk), a, b)) != 0)
		return -1;
	return __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
	const char *rel = inside(path);

	if (rel && disk_sim_exists(wrap.disk, rel) &&
	    errno_of(disk_remove(disk_sim_door(wrap.disk), rel)) != 0)
		return -1;
	return __real_unlink(path);
}

/* ── writing ── */

static ssize_t write_at(struct wrapped *w, int fd, const void *buf, size_t len, off_t off)
{
	struct disk *d = disk_sim_door(wrap.disk);
	int rc = w->through ? disk_sim_write_through(w->file, buf, len, (uint64_t)off)
			    : disk_write(d, w->file, buf, len, (uint64_t)off);

	if (errno_of(rc) != 0)
		return -1;
	return __real_pwrite(fd, buf, len, off);
}

static ssize_t write_vector(struct wrapped *w, int fd, const struct iovec *iov, int count, off_t off)
{
	size_t len = 0, at = 0;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	uint8_t *all = malloc(len + 1);

	must(all);
	for (int i = 0; i < count; i++) {
		memcpy(all + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	ssize_t n = write_at(w, fd, all, len, off);

	free(all);
	return n;
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	struct wrapped *w = wrapped(fd);

	return w && w->file ? write_at(w, fd, buf, len, off) : __real_pwrite(fd, buf, len, off);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int count, off_t off)
{
	struct wrapped *w = wrapped(fd);

	return w && w->file ? write_vector(w, fd, iov, count, off) : __real_pwritev(fd, iov, count, off);
}

ssize_t __wrap_writev(int fd, const struct iovec *iov, int count)
{
	struct wrapped *w = wrapped(fd);

	if (!w || !w->file)
		return __real_writev(fd, iov, count);
	ssize_t n = write_vector(w, fd, iov, count, lseek(fd, 0, SEEK_CUR));

	if (n > 0)
		lseek(fd, n, SEEK_CUR);
	return n;
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	struct wrapped *w = wrapped(fd);
	struct iovec one = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return w && w->file ? __wrap_writev(fd, &one, 1) : __real_write(fd, buf, len);
}

static int resize_to(struct wrapped *w, int fd, off_t len)
{
	return errno_of(disk_sim_resize(w->file, (uint64_t)len)) != 0 ? -1 : __real_ftruncate(fd, len);
}

int __wrap_ftruncate(int fd, off_t len)
{
	struct wrapped *w = wrapped(fd);

	return w && w->file ? resize_to(w, fd, len) : __real_ftruncate(fd, len);
}

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	struct wrapped *w = wrapped(fd);
	struct stat st;

	if (!w || !w->file)
		return __real_fallocate(fd, mode, off, len);
	must((mode & ~FALLOC_FL_KEEP_SIZE) == 0);       /* else it changes bytes: not modelled */
	if (mode & FALLOC_FL_KEEP_SIZE || (fstat(fd, &st) == 0 && st.st_size >= off + len))
		return 0;
	return resize_to(w, fd, off + len);
}

int __wrap_posix_fallocate(int fd, off_t off, off_t len)
{
	return __wrap_fallocate(fd, 0, off, len) == 0 ? 0 : errno;
}

static int sync_it(struct wrapped *w)
{
	struct disk *d = disk_sim_door(wrap.disk);

	return errno_of(w->dir ? disk_sync_dir(d, w->path) : disk_sync(d, w->file));
}

int __wrap_fsync(int fd)
{
	struct wrapped *w = wrapped(fd);

	return w ? sync_it(w) : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	struct wrapped *w = wrapped(fd);

	return w ? sync_it(w) : __real_fdatasync(fd);
}

/* ── the working directory ── */

static void all_closed(void)
{
	for (int i = 0; i < FDS; i++)
		must(!wrap.fd[i].used);
}

void lmdb_wrap(struct disk_sim *s, const char *dir)
{
	all_closed();
	wrap.disk = s;
	snprintf(wrap.root, sizeof wrap.root, "%s", dir ? dir : "");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (ftw->level > 0)
		(void)(type == FTW_DP ? rmdir(path) : __real_unlink(path));
	return 0;
}

static void make_directory(void *arg, const char *rel)
{
	char path[2 * MAX_PATH];

	(void)arg;
	snprintf(path, sizeof path, "%s/%s", wrap.root, rel);
	if (disk_sim_is_directory(wrap.disk, rel))
		__real_mkdir(path, 0700);
}

/* The journal is on the same disk, but nobody made its directory here: it stays out of this one. */
static void restore(void *arg, const char *rel)
{
	char path[2 * MAX_PATH];
	size_t len;
	const uint8_t *at = disk_sim_bytes(wrap.disk, rel, &len);

	(void)arg;
	if (disk_sim_is_directory(wrap.disk, rel))
		return;
	snprintf(path, sizeof path, "%s/%s", wrap.root, rel);
	int fd = __real_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		return;
	must(__real_pwrite(fd, at, len, 0) == (ssize_t)len);
	__real_close(fd);
}

void lmdb_wrap_rebuild(void)
{
	all_closed();
	nftw(wrap.root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	disk_sim_each(wrap.disk, make_directory, NULL);
	disk_sim_each(wrap.disk, restore, NULL);
}

static void compare(void *arg, const char *rel)
{
	char path[2 * MAX_PATH];
	size_t len;
	const uint8_t *at = disk_sim_bytes(wrap.disk, rel, &len);
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", wrap.root, rel);
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	int fd = __real_open(path, O_RDONLY);
	uint8_t *buf = malloc(len + 1);

	must(buf);
	if (fd < 0 || (size_t)st.st_size != len || pread(fd, buf, len, 0) != (ssize_t)len ||
	    memcmp(buf, at, len) != 0)
		*(bool *)arg = false;
	free(buf);
	if (fd >= 0)
		__real_close(fd);
}

bool lmdb_wrap_agrees(void)
{
	bool same = true;

	disk_sim_each(wrap.disk, compare, &same);
	return same;
}

const char *lmdb_wrap_make_dir(char *path, size_t room)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, room, "%s/noh-sim-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : tmp ? tmp : "/tmp");
	must(mkdtemp(path));
	return path;
}

void lmdb_wrap_remove_dir(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rmdir(path);
}
