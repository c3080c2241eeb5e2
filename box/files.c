/* box/files.c - copying, syncing and removing files of a data directory. */
#include "box/care.h"

#include "core/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 20)

int files_error(const char *doing, const char *path)
{
	int code = errno == ENOSPC || errno == EDQUOT ? NOH_ENOSPC : errno == EIO ? NOH_EDISK : NOH_ESYSTEM;

	return error_set(code, "%s %s: %s%s", doing, path, strerror(errno),
			 code == NOH_ENOSPC ? "; make room or choose another disk" : "");
}

int files_path(char *out, const char *dir, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

	return n < PATH_MAX ? NOH_OK : error_set(NOH_EINVAL, "the path %s is too long", dir);
}

/* ── one file ── */

static bool is_zero(const uint8_t *bytes, size_t len)
{
	return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

static ssize_t read_all(int fd, uint8_t *buf, size_t len, off_t off)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, buf + got, len - got, off + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static bool write_all(int fd, const uint8_t *buf, size_t len, off_t off)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, buf, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		buf += n;
		off += n;
		len -= (size_t)n;
	}
	return true;
}

/* The room is taken first, so that a full disk is met before anything is written, and never later. */
static bool take_room(int fd, off_t bytes)
{
	if (bytes == 0 || fallocate(fd, 0, 0, bytes) == 0)
		return true;
	return (errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(fd, bytes) == 0;
}

static int copy_chunks(int in, int out, const char *from, const char *to, off_t bytes, bool backwards)
{
	uint8_t *buf = mem_alloc(CHUNK);
	off_t chunks = (bytes + (off_t)CHUNK - 1) / (off_t)CHUNK;
	int rc = buf ? NOH_OK : error_set(NOH_ENOMEM, "copying %s: out of memory", from);

	for (off_t i = 0; rc == NOH_OK && i < chunks; i++) {
		off_t off = (backwards ? chunks - 1 - i : i) * (off_t)CHUNK;
		size_t want = bytes - off < (off_t)CHUNK ? (size_t)(bytes - off) : CHUNK;
		ssize_t got = read_all(in, buf, want, off);

		if (got < 0)
			rc = files_error("read", from);
		else if (!is_zero(buf, (size_t)got) && !write_all(out, buf, (size_t)got, off))
			rc = files_error("write", to);
	}
	mem_free(buf, CHUNK);
	return rc;
}

int files_copy(const char *from, const char *to, bool backwards)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc;
	struct stat st;

	if (in < 0)
		return errno == ENOENT ? NOH_END : files_error("open", from);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (out < 0)
		rc = files_error("create", to);
	else if (fstat(in, &st) != 0)
		rc = files_error("stat", from);
	else if (!take_room(out, st.st_size))
		rc = files_error("write", to);
	else
		rc = copy_chunks(in, out, from, to, st.st_size, backwards);
	if (rc == NOH_OK && fsync(out) != 0)
		rc = files_error("sync", to);
	if (out >= 0)
		close(out);
	close(in);
	return rc;
}

/* ── folders ── */

int files_make_dir(const char *path)
{
	return mkdir(path, 0700) == 0 ? NOH_OK : files_error("create the directory", path);
}

int files_sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? files_error("sync", path) : NOH_OK;

	if (fd >= 0)
		close(fd);
	return rc;
}

int files_sync_parent(const char *path)
{
	char parent[PATH_MAX];
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	snprintf(parent, sizeof parent, "%.*s", len ? (int)len : 1, len ? path : ".");
	return files_sync_dir(parent);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

uint64_t files_bytes(const char *dir, const char *ending, uint64_t *count)
{
	DIR *d = opendir(dir);
	uint64_t bytes = 0, files = 0;
	struct stat st;

	for (struct dirent *e; d && (e = readdir(d)) != NULL; ) {
		size_t len = strlen(e->d_name), tail = strlen(ending);

		if (len < tail || strcmp(e->d_name + len - tail, ending) != 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_size;
		files++;
	}
	if (d)
		closedir(d);
	if (count)
		*count = files;
	return bytes;
}

bool files_is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	bool empty = d != NULL;

	for (struct dirent *e; d && (e = readdir(d)) != NULL; )
		empty &= is_dots(e->d_name);
	if (d)
		closedir(d);
	return empty;
}

static void empty_folder(const char *dir)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d)) != NULL; )
		if (!is_dots(e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

/* Two levels are all a data directory has. */
void files_remove(const char *dir)
{
	static const char *const inner[] = { "journal", "image" };
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++)
		if (files_path(path, dir, inner[i]) == NOH_OK) {
			empty_folder(path);
			(void)rmdir(path);
		}
	empty_folder(dir);
	(void)rmdir(dir);
}
