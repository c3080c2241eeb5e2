#include "persist/datadir.h"

#include "core/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

#define NAME "noh.dir"
#define UNFINISHED "noh.dir.tmp"
#define TITLE "noh data directory\n"

static int at_path(char *out, const char *dir, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

	return n < PATH_MAX ? NOH_OK : error_set(NOH_EINVAL, "the path %s is too long", dir);
}

static int refused(const char *what, const char *path)
{
	bool full = errno == ENOSPC || errno == EDQUOT;

	return error_set(full ? NOH_ENOSPC : NOH_ESYSTEM, "%s %s: %s%s", what, path, strerror(errno),
			 full ? "; make room on that file system" : "");
}

/* ── the text ── */

static int make_text(const struct datadir *d, char *text, size_t room)
{
	int n = snprintf(text, room, TITLE "format %u\nid %016" PRIx64 "\nseed %016" PRIx64
			 "\norder little\n", d->format, d->id, d->seed);

	return n + snprintf(text + n, room - (size_t)n, "sum %016" PRIx64 "\n",
			    XXH3_64bits(text, (size_t)n));
}

static bool sums_up(const char *text)
{
	const char *sum_at = strstr(text, "\nsum ");

	return strncmp(text, TITLE, sizeof TITLE - 1) == 0 && sum_at &&
	       strtoull(sum_at + 5, NULL, 16) == XXH3_64bits(text, (size_t)(sum_at + 1 - text));
}

/* Of another format only the number is sure to be where it is here. If with our own the text sums up, it is one of ours,
 * and that number is damaged. */
static bool is_other_format(const char *text, uint32_t *format)
{
	const char *rest = strncmp(text, TITLE, sizeof TITLE - 1) == 0 ? strchr(text + sizeof TITLE - 1, '\n') : NULL;
	char ours[512];

	if (!rest || sscanf(text, TITLE "format %" SCNu32, format) != 1 || *format == DATADIR_FORMAT)
		return false;
	return sums_up(text) ||
	       snprintf(ours, sizeof ours, TITLE "format %u%s", DATADIR_FORMAT, rest) >= (int)sizeof ours || !sums_up(ours);
}

static int parse_text(struct datadir *d, const char *text, const char *path)
{
	char again[512];

	if (is_other_format(text, &d->format))
		return error_set(NOH_EVERSION, "%s has format %u, this program reads %u: %s; use that one", path, d->format,
				 DATADIR_FORMAT, d->format > DATADIR_FORMAT ? "a newer release has written it"
									    : "a program older than the first release has written it");
	if (!sums_up(text) || sscanf(text, TITLE "format %" SCNu32 "\n", &d->format) != 1)
		return error_set(NOH_ECORRUPT, "%s is damaged; restore it from a backup", path);
	if (!strstr(text, "\norder little\n"))
		return error_set(NOH_EVERSION, "%s was written on a machine of another byte order; "
				 "this one is little-endian", path);
	sscanf(text, TITLE "format %*u\nid %" SCNx64 "\nseed %" SCNx64 "\n", &d->id, &d->seed);
	make_text(d, again, sizeof again);
	return strcmp(again, text) == 0 ? NOH_OK :
	       error_set(NOH_ECORRUPT, "%s is damaged; restore it from a backup", path);
}

/* NOH_END: there is no such file. */
static int read_text(struct datadir *d, const char *name)
{
	char path[PATH_MAX], text[512];
	int rc = at_path(path, d->path, name);

	if (rc != NOH_OK)
		return rc;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? NOH_END : refused("open", path);
	ssize_t n = read(fd, text, sizeof text - 1);

	close(fd);
	if (n < 0)
		return refused("read", path);
	text[n] = 0;
	return strlen(text) == (size_t)n ? parse_text(d, text, path) :
	       error_set(NOH_ECORRUPT, "%s is damaged; restore it from a backup", path);
}

/* ── what refuses a directory before anything is changed ── */

static int check_file_system(const char *path)
{
	static const struct { uint64_t magic; const char *name; } remote[] = {
		{ 0x6969, "NFS" }, { 0x517b, "SMB" }, { 0xff534d42, "CIFS" },
		{ 0xfe534d42, "SMB" }, { 0x01021997, "9p" },
	};
	struct statfs fs;

	if (statfs(path, &fs))
		return refused("look at the file system of", path);
	for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
		if (((uint64_t)fs.f_type & 0xffffffff) == remote[i].magic)
			return error_set(NOH_EINVAL, "%s is on %s: locks and syncs of a network file "
					 "system cannot be relied on; choose a local disk", path,
					 remote[i].name);
	return NOH_OK;
}

static bool is_empty_folder(const char *path)
{
	DIR *dir = opendir(path);
	bool empty = dir != NULL;

	for (struct dirent *e; dir && (e = readdir(dir)) != NULL; )
		empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

/* What a start makes once it has written UNFINISHED. */
static bool is_of_a_start(const char *name)
{
	return !strcmp(name, "journal") || !strcmp(name, "image") || !strcmp(name, "image.new");
}

/* What may lie in a directory that was never finished, or that a file system begins with. */
static bool may_be_there(const char *path, const char *name, bool begun)
{
	char inner[PATH_MAX];

	if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "lost+found") ||
	    !strcmp(name, "lock") || !strcmp(name, UNFINISHED))
		return true;
	if (begun)
		return is_of_a_start(name);
	return !strcmp(name, "journal") && at_path(inner, path, name) == NOH_OK &&
	       is_empty_folder(inner);
}

static int no_name(const char *path, const char *found)
{
	if (is_of_a_start(found))
		return error_set(NOH_EINVAL, "%s/" NAME " is missing, but %s is there: put " NAME " back, or restore a "
				 "backup of the whole directory (noh restore)", path, found);
	return error_set(NOH_EINVAL, "%s is not empty and not a data directory (it has %s, but no " NAME "); choose an "
			 "empty or a new one", path, found);
}

static int check_nothing_foreign(const char *path, bool begun)
{
	DIR *dir = opendir(path);
	int rc = NOH_OK;

	if (!dir)
		return refused("read the directory", path);
	for (struct dirent *e; rc == NOH_OK && (e = readdir(dir)) != NULL; )
		if (!may_be_there(path, e->d_name, begun))
			rc = no_name(path, e->d_name);
	closedir(dir);
	return rc;
}

/* Asked for by one who makes none. */
static int not_a_data_directory(struct datadir *d)
{
	char path[PATH_MAX];

	if (read_text(d, UNFINISHED) == NOH_OK)
		return error_set(NOH_EINVAL, "%s is not a data directory yet: its first start was not completed and left "
				 "no " NAME "; start it again", d->path);
	if (at_path(path, d->path, "image") == NOH_OK && access(path, F_OK) == 0)
		return no_name(d->path, "image");
	return error_set(NOH_EINVAL, "%s is not a data directory: it has no " NAME, d->path);
}

static int check_writable(const char *path)
{
	if (access(path, R_OK | W_OK | X_OK) == 0)
		return NOH_OK;
	return error_set(NOH_ESYSTEM, "%s is not writable: %s; give this user the right to it", path,
			 strerror(errno));
}

/* ── the lock ── */

static int in_use(int fd, const char *path)
{
	char pid[24] = "";
	ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

	pid[n > 0 ? n : 0] = 0;
	return error_set(NOH_EINUSE, "%s is in use by process %ld; stop it, or choose another "
			 "directory", path, strtol(pid, NULL, 10));
}

/* An OFD lock: it ends with the process however that ends, and a second open in this very process is
 * refused, too. */
static int take_lock(struct datadir *d)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX], pid[24];
	int rc = at_path(path, d->path, "lock");

	if (rc != NOH_OK)
		return rc;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return refused("open", path);
	if (fcntl(fd, F_OFD_SETLK, &lock)) {
		rc = errno == EAGAIN || errno == EACCES ? in_use(fd, d->path) : refused("lock", path);
		close(fd);
		return rc;
	}
	int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n) {
		rc = refused("write", path);
		close(fd);
		return rc;
	}
	d->lock = fd;
	return NOH_OK;
}

/* ── a new one ── */

static int sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int rc = fd < 0 || fsync(fd) ? refused("sync", path) : NOH_OK;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int write_synced(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = NOH_OK;

	if (fd < 0)
		return refused("create", path);
	if (write(fd, text, len) != (ssize_t)len || fsync(fd))
		rc = refused("write", path);
	close(fd);
	return rc;
}

static int random_number(uint64_t *n)
{
	do
		if (getrandom(n, sizeof *n, 0) != sizeof *n)
			return error_set(NOH_ESYSTEM, "getrandom: %s", strerror(errno));
	while (*n == 0);
	return NOH_OK;
}

/* Its identity, under a name that says that nothing is in it yet. */
static int write_new(struct datadir *d, uint64_t seed)
{
	char unfinished[PATH_MAX], journal[PATH_MAX], text[512];
	int rc = random_number(&d->id);

	d->format = DATADIR_FORMAT;
	d->seed = seed;
	if (rc == NOH_OK && seed == 0)
		rc = random_number(&d->seed);
	if (rc != NOH_OK || (rc = at_path(unfinished, d->path, UNFINISHED)) != NOH_OK ||
	    (rc = at_path(journal, d->path, "journal")) != NOH_OK)
		return rc;
	if (mkdir(journal, 0700) && errno != EEXIST)
		return refused("create", journal);
	rc = write_synced(unfinished, text, (size_t)make_text(d, text, sizeof text));
	return rc == NOH_OK ? sync_path(d->path) : rc;
}

/* What a start wrote before it was interrupted may be in a cache only. */
static int take_up(struct datadir *d, uint64_t seed)
{
	char unfinished[PATH_MAX];
	int rc = at_path(unfinished, d->path, UNFINISHED);

	d->unfinished = true;
	if (rc != NOH_OK || read_text(d, UNFINISHED) != NOH_OK)
		return rc == NOH_OK ? write_new(d, seed) : rc;
	rc = sync_path(unfinished);
	return rc == NOH_OK ? sync_path(d->path) : rc;
}

int datadir_finish(struct datadir *d)
{
	char unfinished[PATH_MAX], path[PATH_MAX];
	int rc = at_path(unfinished, d->path, UNFINISHED);

	if (!d->unfinished)
		return NOH_OK;
	if (rc == NOH_OK)
		rc = at_path(path, d->path, NAME);
	if (rc == NOH_OK && rename(unfinished, path))
		rc = refused("rename", unfinished);
	if (rc == NOH_OK)
		rc = sync_path(d->path);
	d->unfinished = rc != NOH_OK;
	return rc;
}

/* The folder the new directory's name is in. */
static void parent_of(char *parent, const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	snprintf(parent, PATH_MAX, "%.*s", len ? (int)len : 1, len ? path : ".");
}

static int make_folder(const char *path)
{
	char parent[PATH_MAX];
	int rc;

	parent_of(parent, path);
	if (access(parent, F_OK) && errno == ENOENT)
		return error_set(NOH_ESYSTEM, "create the directory %s: there is no %s; make that first, or choose another "
				 "place", path, parent);
	rc = check_file_system(parent);
	if (rc != NOH_OK)
		return rc;
	if (mkdir(path, 0700))
		return error_set(errno == ENOSPC ? NOH_ENOSPC : NOH_ESYSTEM, "create the directory %s: %s; give this user "
				 "the right to make it in %s, or choose another place", path, strerror(errno), parent);
	return sync_path(parent);
}

/* ── open and close ── */

static int find(struct datadir *d, const char *path, unsigned flags)
{
	struct stat st;
	int rc = NOH_OK;

	if (strlen(path) >= PATH_MAX)
		return error_set(NOH_EINVAL, "the path of the data directory is too long");
	if (stat(path, &st)) {
		if (errno != ENOENT || !(flags & DATADIR_CREATE))
			return refused("open the data directory", path);
		rc = make_folder(path);
	} else if (!S_ISDIR(st.st_mode)) {
		return error_set(NOH_EINVAL, "%s is not a directory; choose one", path);
	}
	if (rc == NOH_OK && !realpath(path, d->path))
		rc = refused("open the data directory", path);
	return rc;
}

static int open_to_write(struct datadir *d, unsigned flags, uint64_t seed)
{
	int rc = check_file_system(d->path);

	if (rc == NOH_OK)
		rc = check_writable(d->path);
	if (rc != NOH_OK)
		return rc;
	rc = read_text(d, NAME);
	bool fresh = rc == NOH_END;

	if (fresh && !(flags & DATADIR_CREATE))
		return not_a_data_directory(d);
	if (fresh)
		rc = check_nothing_foreign(d->path, read_text(d, UNFINISHED) == NOH_OK);
	if (rc == NOH_OK)
		rc = take_lock(d);
	if (rc != NOH_OK || !fresh)
		return rc;
	rc = read_text(d, NAME);                 /* another may have been faster */
	return rc == NOH_END ? take_up(d, seed) : rc;
}

int datadir_open(struct datadir *d, const char *path, unsigned flags, uint64_t seed)
{
	int rc;

	*d = (struct datadir){ .lock = -1 };
	rc = find(d, path, flags);
	if (rc != NOH_OK)
		return rc;
	if (flags & DATADIR_LOOK) {
		rc = read_text(d, NAME);
		return rc != NOH_END ? rc : not_a_data_directory(d);
	}
	rc = open_to_write(d, flags, seed);
	if (rc != NOH_OK)
		datadir_close(d);
	return rc;
}

void datadir_close(struct datadir *d)
{
	if (d->lock >= 0)
		close(d->lock);
	d->lock = -1;
}
