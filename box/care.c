/* box/care.c - looking at a data directory without owning it. */
#include "box/care.h"

#include "core/mem.h"
#include "persist/db_pages.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 20                 /* each a few milliseconds after the last */
#define SURE 3
#define LESS 4                   /* from this try on, only what is not in the image yet */

/* Who holds the lock, if anybody does: the file says so as long as it is held. */
static bool lock_held(const char *dir, long *pid)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX], text[24] = "";
	bool held = false;

	*pid = 0;
	if (files_path(path, dir, "lock") != NOH_OK)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) {
		held = true;
		if (pread(fd, text, sizeof text - 1, 0) > 0)
			*pid = strtol(text, NULL, 10);
	}
	close(fd);
	return held;
}

bool care_is_running(const char *dir)
{
	long pid;

	return lock_held(dir, &pid);
}

int care_open(struct care *c, const char *dir)
{
	long pid;

	*c = (struct care){ .dir.lock = -1 };
	if (access(dir, F_OK) != 0)
		return error_set(NOH_ESYSTEM, "there is no data directory %s; name one that a box has made", dir);
	int rc = datadir_open(&c->dir, dir, DATADIR_LOOK, 0);

	if (rc != NOH_OK)
		return rc;
	c->running = lock_held(c->dir.path, &pid);
	if (c->running && pid == (long)getpid())
		return error_set(NOH_EINUSE, "%s is open in a box of this process; ask that box, or use another "
				 "process", c->dir.path);
	return disk_real_open(&c->disk, c->dir.path, DISK_PLAIN);
}

int care_image(struct care *c)
{
	return db_open(&c->db, &(struct db_options){ .dir = c->dir.path, .dir_id = c->dir.id,
						     .read_only = true });
}

int care_look(struct care *c, const char *dir)
{
	int rc = care_open(c, dir);

	if (rc == NOH_OK)
		rc = care_image(c);
	if (rc != NOH_OK)
		care_close(c);
	return rc;
}

static void keep_first(void *arg, const char *what)
{
	char *text = arg;

	if (!text[0])
		snprintf(text, 200, "%s", what);
}

int care_pages(struct care *c)
{
	char path[PATH_MAX], text[200] = "";
	int rc = files_path(path, c->dir.path, "image/data.mdb");

	if (rc != NOH_OK || c->running || access(path, F_OK) != 0)
		return rc;
	int64_t n = db_pages(path, keep_first, NULL, text);

	return n <= 0 ? (int)n : error_set(NOH_ECORRUPT, "%s, %s; restore a backup", path, text);
}

int care_whole(struct care *c, const char *dir)
{
	int rc = care_open(c, dir);

	if (rc == NOH_OK)
		rc = care_pages(c);
	if (rc == NOH_OK)
		rc = care_image(c);
	if (rc != NOH_OK)
		care_close(c);
	return rc;
}

void care_close(struct care *c)
{
	db_close(c->db);
	disk_end(c->disk);
	*c = (struct care){ .dir.lock = -1 };
}

/* ── the oldest frame ── */

static bool is_frame(const struct care *c, const struct segment_info *s, const struct frame_head *h, size_t got)
{
	return got >= DISK_BLOCK && h->magic == FRAME_MAGIC && h->dir_id == c->dir.id &&
	       h->segment == s->number && h->segment_epoch == s->epoch &&
	       h->bytes <= FRAME_MAX - sizeof *h && frame_size(h->bytes) <= got && h->sum == frame_sum(h);
}

/* The segment's frames from the front, up to one that begins a group: a group may go over from one segment
 * to the next. */
static int first_frames(struct care *c, const struct segment_info *s, struct disk_file *f, uint8_t *room,
			struct care_first *out)
{
	const struct frame_head *h = (const struct frame_head *)(void *)room;
	uint64_t off = DISK_BLOCK;
	size_t got;
	int rc;

	while ((rc = disk_read(c->disk, f, room, FRAME_MAX, off, &got)) == NOH_OK && is_frame(c, s, h, got)) {
		if (!out->frame)
			out->frame = h->number;
		if (h->flags & FRAME_FIRST) {
			out->group = h->number;
			break;
		}
		off += frame_size(h->bytes);
	}
	return rc;
}

int care_segment(struct care *c, struct segment_info *s, struct care_first *out)
{
	int rc = segment_look(c->disk, c->dir.id, s);
	struct disk_file *f;

	*out = (struct care_first){ 0 };
	if (rc == NOH_OK)
		out->frame = out->group = s->first;
	if (rc != NOH_OK || s->first)
		return rc;
	uint8_t *room = mem_aligned(DISK_BLOCK, FRAME_MAX);

	if (!room)
		return error_set(NOH_ENOMEM, "no memory to read the journal");
	rc = disk_open(c->disk, segment_name(s->number, "seg").text, 0, &f);
	if (rc == NOH_OK) {
		rc = first_frames(c, s, f, room, out);
		disk_close(c->disk, f);
	}
	mem_free(room, FRAME_MAX);
	return rc == NOH_END ? NOH_OK : rc;
}

/* A segment without a frame of its own is empty, unless one of the same run follows that has some. */
int care_oldest(struct care *c, uint64_t *frame, uint64_t *damaged)
{
	const struct segment_info *odd = NULL;
	struct segment_list list;
	int rc = segment_list(c->disk, &list);

	*frame = *damaged = 0;
	for (size_t i = 0; rc == NOH_OK && *frame == 0 && i < list.count; i++) {
		struct segment_info *s = &list.at[i];
		struct care_first first;

		rc = care_segment(c, s, &first);
		if (rc != NOH_OK && rc != NOH_ENOMEM) {  /* the walk will say so */
			rc = NOH_OK;
			continue;
		}
		*frame = first.group;
		if (first.frame && odd && odd->epoch == s->epoch)
			*damaged = odd->number;
		if (!first.frame && !odd)
			odd = s;
	}
	segment_list_free(&list);
	return rc;
}

/* ── a walk ── */

int care_named(int rc, const char *dir)
{
	char why[512];

	if (rc != NOH_ECORRUPT && rc != NOH_EVERSION)
		return rc;
	snprintf(why, sizeof why, "%s", noh_why());
	return strstr(why, dir) ? rc : error_set(rc, "%s: %s", dir, why);
}

static int walk_once(struct care *c, struct care_walk *w, bool running, struct journal_end *end)
{
	uint64_t oldest, damaged;
	int rc = NOH_OK;

	w->stamp = w->epoch = 0;
	if (c->db)
		db_stamp(c->db, &w->stamp, &w->epoch);
	w->after = w->stamp;
	if (w->all) {
		rc = care_oldest(c, &oldest, &damaged);
		if (oldest)
			w->after = oldest - 1;
	}
	if (w->again)
		w->again(w->arg);
	if (rc == NOH_OK)
		rc = journal_must_be_there(c->disk, c->dir.path);
	if (rc == NOH_OK)
		rc = (running ? journal_look_beside : journal_recover)(c->disk, c->dir.id, w->after, w->each, w->arg, end);
	return care_named(rc, c->dir.path);
}

int care_walk(struct care *c, struct care_walk *w, struct journal_end *end)
{
	char before[512] = "";
	unsigned same = 0;
	int rc;

	for (unsigned i = 0; i < TRIES; i++) {
		bool running = care_is_running(c->dir.path);

		w->all = w->all && i < LESS;
		rc = walk_once(c, w, running, end);
		if (rc == NOH_OK || rc == NOH_ENOMEM || (!running && !care_is_running(c->dir.path)))   /* nor began to meanwhile */
			return rc;
		same = strcmp(before, noh_why()) == 0 ? same + 1 : 1;
		if (same == SURE)
			return rc;
		snprintf(before, sizeof before, "%s", noh_why());
		usleep(5000);
	}
	return error_set(NOH_EINUSE, "%s: its box writes faster than its journal can be read here; look at a backup of it, or try again "
			 "when it has less to do", c->dir.path);
}
