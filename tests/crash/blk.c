/* tests/crash/blk.c - a disk that writes down what it is told, so that its power can be cut afterwards.
 *
 *     blk serve IMAGE LOG DIR          FUSE: DIR/disk is IMAGE, for a loop device; DIR/mark takes numbers
 *                                      that were acknowledged; DIR/ctl takes "eio" and "ok"
 *     blk count LOG                    which entries of the log are the first mark and the last one
 *     blk cut LOG IMAGE ENTRY HOW SEED   writes into IMAGE (a copy of what it was before) what the disk may
 *                                      hold if power goes before ENTRY; prints the last number marked
 *
 * The log has writes, flushes and marks in one order. What a flush covered is on the disk; of the writes
 * after the last flush any may be: HOW is drop, keep, subset, torn (each 512 bytes by itself) or last.
 *
 * Threads  one (FUSE runs with -s): the order of the log is the order things happened in.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE = 1, FLUSH, MARK };
struct entry { uint32_t type, len; uint64_t off; };      /* then len bytes */

/* ── serve ── */

static struct { int image; FILE *log; uint64_t size; bool eio; } disk;

static void put(uint32_t type, const void *data, size_t len, uint64_t off)
{
	struct entry e = { .type = type, .len = (uint32_t)len, .off = off };

	fwrite(&e, sizeof e, 1, disk.log);
	if (len)
		fwrite(data, len, 1, disk.log);
}

static bool is(const char *path, const char *name) { return strcmp(path + 1, name) == 0; }

static int get_attr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	memset(st, 0, sizeof *st);
	st->st_mode = S_IFREG | 0600;
	st->st_nlink = 1;
	if (strcmp(path, "/") == 0)
		st->st_mode = S_IFDIR | 0700;
	else if (is(path, "disk"))
		st->st_size = (off_t)disk.size;
	else if (!is(path, "mark") && !is(path, "ctl"))
		return -ENOENT;
	return 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	fi->direct_io = 1;               /* no page cache between us and the loop device */
	return 0;
}

static int read_file(const char *path, char *buf, size_t len, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	if (!is(path, "disk"))
		return 0;
	ssize_t n = pread(disk.image, buf, len, off);

	return n < 0 ? -errno : (int)n;
}

static int write_file(const char *path, const char *buf, size_t len, off_t off,
		      struct fuse_file_info *fi)
{
	(void)fi;
	if (is(path, "ctl")) {
		disk.eio = len >= 3 && memcmp(buf, "eio", 3) == 0;
		return (int)len;
	}
	if (is(path, "mark")) {
		put(MARK, buf, len, 0);
		return (int)len;
	}
	if (disk.eio)
		return -EIO;
	put(WRITE, buf, len, (uint64_t)off);
	ssize_t n = pwrite(disk.image, buf, len, off);

	return n < 0 ? -errno : (int)n;
}

static int sync_file(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)data_only;
	(void)fi;
	if (disk.eio)
		return -EIO;
	if (is(path, "disk"))
		put(FLUSH, NULL, 0, 0);
	return 0;
}

static int truncate_file(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)path;
	(void)size;
	(void)fi;
	return 0;
}

static int serve(char *program, const char *image, const char *log, char *dir)
{
	static const struct fuse_operations ops = {
		.getattr = get_attr, .open = open_file, .read = read_file, .write = write_file,
		.fsync = sync_file, .truncate = truncate_file,
	};
	char single[] = "-s", foreground[] = "-f";
	char *args[] = { program, single, foreground, dir, NULL };
	struct stat st;

	disk.image = open(image, O_RDWR);
	disk.log = fopen(log, "w");
	if (disk.image < 0 || !disk.log || fstat(disk.image, &st) != 0) {
		perror(image);
		return 1;
	}
	disk.size = (uint64_t)st.st_size;
	int rc = fuse_main(4, args, &ops, NULL);

	return fclose(disk.log) == 0 ? rc : 1;
}

/* ── cut ── */

struct tape { uint8_t *bytes; const struct entry **entry; size_t count; };

static const uint8_t *data_of(const struct entry *e) { return (const uint8_t *)(e + 1); }

static bool load(struct tape *t, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	size_t room = 0;

	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(path);
		return false;
	}
	t->bytes = malloc((size_t)st.st_size + 1);
	if (!t->bytes || read(fd, t->bytes, (size_t)st.st_size) != st.st_size) {
		perror(path);
		return false;
	}
	close(fd);
	for (size_t at = 0; at + sizeof(struct entry) <= (size_t)st.st_size;) {
		const struct entry *e = (const struct entry *)(const void *)(t->bytes + at);

		if (t->count == room) {
			room = room ? 2 * room : 1024;
			t->entry = realloc(t->entry, room * sizeof *t->entry);
			if (!t->entry)
				return false;
		}
		t->entry[t->count++] = e;
		at += sizeof *e + e->len;
	}
	return true;
}

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static bool write_out(int image, const struct entry *e, size_t from, size_t len)
{
	return pwrite(image, data_of(e) + from, len, (off_t)(e->off + from)) == (ssize_t)len;
}

static bool keep_some(int image, const struct entry *e, const char *how, bool last, uint64_t *random)
{
	bool ok = true;

	if (strcmp(how, "drop") == 0 || (strcmp(how, "last") == 0 && !last))
		return true;
	if (strcmp(how, "subset") == 0)
		return draw(random) & 1 ? write_out(image, e, 0, e->len) : true;
	if (strcmp(how, "torn") != 0)
		return write_out(image, e, 0, e->len);
	for (size_t at = 0; at < e->len && ok; at += 512)
		if (draw(random) & 1)
			ok = write_out(image, e, at, e->len - at < 512 ? e->len - at : 512);
	return ok;
}

static int cut(const char *log, const char *path, size_t upto, const char *how, uint64_t seed)
{
	struct tape t = { 0 };
	size_t flushed = 0, last = 0;
	uint64_t marked = 0;
	int image = open(path, O_WRONLY);

	if (image < 0 || !load(&t, log)) {
		perror(path);
		return 1;
	}
	upto = upto < t.count ? upto : t.count;
	for (size_t i = 0; i < upto; i++) {
		if (t.entry[i]->type == FLUSH)
			flushed = i;
		else if (t.entry[i]->type == WRITE)
			last = i;
		else
			marked = strtoull((const char *)data_of(t.entry[i]), NULL, 10);
	}
	for (size_t i = 0; i < upto; i++) {
		const struct entry *e = t.entry[i];

		if (e->type == WRITE && !(i < flushed ? write_out(image, e, 0, e->len)
						      : keep_some(image, e, how, i == last, &seed))) {
			perror(path);
			return 1;
		}
	}
	printf("%llu\n", (unsigned long long)marked);
	return close(image) == 0 ? 0 : 1;
}

static int count(const char *log)
{
	struct tape t = { 0 };
	size_t first = 0, last;

	if (!load(&t, log))
		return 1;
	while (first < t.count && t.entry[first]->type != MARK)
		first++;
	last = t.count;
	while (last > first && t.entry[last - 1]->type != MARK)
		last--;
	printf("%zu %zu\n", first, last);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "serve") == 0)
		return serve(argv[0], argv[2], argv[3], argv[4]);
	if (argc == 3 && strcmp(argv[1], "count") == 0)
		return count(argv[2]);
	if (argc == 7 && strcmp(argv[1], "cut") == 0)
		return cut(argv[2], argv[3], strtoull(argv[4], NULL, 10), argv[5],
			   strtoull(argv[6], NULL, 10));
	fprintf(stderr, "usage: blk serve IMAGE LOG DIR | count LOG | cut LOG IMAGE ENTRY HOW SEED\n");
	return 2;
}
