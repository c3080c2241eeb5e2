#include "persist/crashes.h"

#include "core/error.h"
#include "noh.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int wrong(const struct crashes *c, const char *name, const char *what)
{
	if (errno == ENOSPC)
		return error_set(NOH_ENOSPC, "%s/%s: %s: the disk is full; make room and start again", c->path,
				 name, what);
	return error_set(NOH_EDISK, "%s/%s: %s: %s", c->path, name, what, strerror(errno));
}

/* A damaged line is skipped: the list is a help, not the truth about anything. */
static void read_list(struct crashes *c)
{
	char path[4200];
	uint64_t hash, print;
	uint32_t times, kind;
	FILE *f;

	snprintf(path, sizeof path, "%s/crashes", c->path);
	f = fopen(path, "re");
	while (f && c->seen.count < CRASHES_MAX) {
		int n = fscanf(f, "%" SCNx64 " %" SCNx64 " %" SCNu32 " %" SCNu32 "%*[^\n]", &hash, &print,
			       &times, &kind);

		if (n == EOF)
			break;
		if (n != 4) {
			(void)!fscanf(f, "%*[^\n]");
			continue;
		}
		struct crash *e = &c->seen.list[c->seen.count++];

		e->hash = hash;
		e->print = print;
		e->kind = kind;
		store_relaxed(&e->times, times);
		store_relaxed(&e->blamed, 1);    /* in a run before this one */
	}
	if (f)
		fclose(f);
}

static int write_list(struct crashes *c)
{
	char path[4200], fresh[4200];
	FILE *f;
	bool ok;

	snprintf(path, sizeof path, "%s/crashes", c->path);
	snprintf(fresh, sizeof fresh, "%s/crashes.new", c->path);
	f = fopen(fresh, "we");
	if (!f)
		return wrong(c, "crashes.new", "cannot be written");
	for (uint32_t i = 0; i < c->seen.count; i++)
		if (load_relaxed(&c->seen.list[i].times))
			fprintf(f, "%016" PRIx64 " %016" PRIx64 " %" PRIu32 " %" PRIu32 "\n", c->seen.list[i].hash,
				c->seen.list[i].print, load_relaxed(&c->seen.list[i].times),
				c->seen.list[i].kind);
	ok = fflush(f) == 0 && fsync(fileno(f)) == 0;
	ok &= fclose(f) == 0;
	if (!ok || rename(fresh, path) != 0)
		return wrong(c, "crashes", "cannot be written");
	return NOH_OK;
}

static struct crash *count(struct crashes *c, const struct note *n)
{
	struct crash *e = NULL;

	for (uint32_t i = 0; i < c->seen.count && !e; i++)
		if (c->seen.list[i].hash == n->hash && c->seen.list[i].print == n->print)
			e = &c->seen.list[i];
	if (!e && c->seen.count < CRASHES_MAX) {
		e = &c->seen.list[c->seen.count++];
		e->hash = n->hash;
		e->print = n->print;
		e->kind = n->kind;
		store_relaxed(&e->times, 0);
	}
	if (e) {
		store_relaxed(&e->times, load_relaxed(&e->times) + 1);
		store_relaxed(&e->blamed, 0);
	}
	return e;
}

static void keep_found(struct crashes *c, const struct note *n, struct crash *e)
{
	struct crash_found *f = &c->found[c->found_count];

	if (c->found_count == CRASHES_MAX)
		return;
	*f = (struct crash_found){ .entry = e, .kind = n->kind, .times = e ? load_relaxed(&e->times) : 1,
				   .address_len = n->address_len };
	memcpy(f->address, n->address, n->address_len);
	c->found_count++;
}

/* Notes of the last run, as far as the file goes: it may have had other workers. */
static void take_notes(struct crashes *c, int fd, crashes_found_fn *found, void *arg)
{
	struct note n;

	for (off_t at = 0; pread(fd, &n, sizeof n, at) == (ssize_t)sizeof n; at += (off_t)sizeof n) {
		struct crash *e;

		if (load_relaxed(&n.busy) != 1 || n.address_len >= sizeof n.address)
			continue;
		n.address[n.address_len] = 0;
		e = count(c, &n);
		keep_found(c, &n, e);
		if (found)
			found(arg, &n, e ? load_relaxed(&e->times) : 1);
	}
}

int crashes_open(struct crashes *c, const char *dir, uint32_t workers, crashes_found_fn *found, void *arg)
{
	char path[4200];
	int fd, rc;

	memset(c, 0, sizeof *c);
	snprintf(c->path, sizeof c->path, "%s", dir);
	snprintf(path, sizeof path, "%s/running", dir);
	read_list(c);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return wrong(c, "running", "cannot be opened");
	take_notes(c, fd, found, arg);
	rc = write_list(c);
	c->bytes = workers * sizeof *c->notes;
	if (rc == NOH_OK && ftruncate(fd, 0) != 0)
		rc = wrong(c, "running", "cannot be sized");
	/* With its blocks: a note into a hole of a file on a full disk would be a SIGBUS. */
	if (rc == NOH_OK && (errno = posix_fallocate(fd, 0, (off_t)c->bytes)) != 0)
		rc = wrong(c, "running", "cannot be sized");
	if (rc == NOH_OK) {
		c->notes = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (c->notes == MAP_FAILED) {
			c->notes = NULL;
			rc = wrong(c, "running", "cannot be mapped");
		}
	}
	c->workers = workers;
	close(fd);
	return rc;
}

void crashes_close(struct crashes *c)
{
	if (!c->notes)
		return;
	for (uint32_t i = 0; i < c->workers; i++)
		store_relaxed(&c->notes[i].busy, 0);
	(void)write_list(c);
	munmap(c->notes, c->bytes);
	c->notes = NULL;
}
