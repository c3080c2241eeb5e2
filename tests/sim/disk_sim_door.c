/* tests/sim/disk_sim_door.c - struct disk over the model: what each operation does, and how it fails. */
#include "tests/sim/disk_sim_in.h"

#include "core/error.h"
#include "core/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what, const char *path)
{
	return error_set(NOH_EDISK, "%s %s: simulated", what, path);
}

/* ── the beginning of every operation ── */

enum verdict { GO, GOING, OFF, FAULT };     /* GOING: power goes with this one */

static enum verdict begin(struct disk_sim *s, enum sim_op op, enum sim_fault *how)
{
	if (s->off)
		return OFF;
	s->count[op]++;
	if (op != SIM_READ) {
		s->ops++;
		s->now++;
		if (s->cut_at && s->ops >= s->cut_at) {
			s->off = true;
			return GOING;
		}
	}
	if (s->fail_at[op] && s->count[op] == s->fail_at[op]) {
		s->fail_at[op] = 0;
		s->faults++;
		*how = s->fail_how[op];
		return FAULT;
	}
	return GO;
}

static bool has_room(const struct disk_sim *s, const struct inode *inode, uint64_t len)
{
	uint64_t used = len;

	if (s->space == 0 || len <= inode->seen.len)
		return true;
	for (size_t i = 0; i < s->seen.count; i++)
		used += s->seen.at[i].inode == inode ? 0 : s->seen.at[i].inode->seen.len;
	return used <= s->space;
}

static int no_room(const char *path)
{
	return error_set(NOH_ENOSPC, "write %s: no room, simulated", path);
}

/* ── the door ── */

static int sim_open(struct disk *d, const char *path, unsigned flags, struct disk_file **file)
{
	struct disk_sim *s = (struct disk_sim *)d;
	struct inode *inode = model_look_up(&s->seen, path);
	enum sim_fault how = FAULT_EIO;

	must(strlen(path) < MAX_PATH && path[0] && path[0] != '/' && !strstr(path, ".."));
	if (s->off)
		return failed("open", path);
	if (flags & DISK_CREATE) {
		if (inode)
			return error_set(NOH_EDISK, "create %s: it is there", path);
		enum verdict v = begin(s, SIM_OPEN, &how);

		if (v == FAULT)
			return how == FAULT_NOSPC ? no_room(path) : failed("create", path);
		inode = model_new_inode(s);
		struct item *it = model_append(s, A_NAME, inode);

		snprintf(it->to, MAX_PATH, "%s", path);
		it->unseen = v == GOING;
		if (v != GO)
			return failed("create", path);
		model_name(&s->seen, path, inode);
	}
	if (!inode)
		return NOH_END;
	struct disk_file *f = calloc(1, sizeof *f);

	must(f);
	*f = (struct disk_file){ .s = s, .inode = inode, .flags = flags };
	snprintf(f->path, MAX_PATH, "%s", path);
	s->handles++;
	*file = f;
	return NOH_OK;
}

static void sim_close(struct disk_file *f)
{
	struct disk_sim *s = f->s;

	if (f->flying && !s->off)
		model_complain(s, "closed with a write under way", f->path);
	for (size_t i = 0; i < s->count_pending; i++)
		if (s->pending[i].owner && s->pending[i].file == f) {
			s->pending[i].owner = NULL;
			s->pending[i].unseen = true;
			s->flying--;
		}
	s->handles--;
	free(f);
}

static int sim_size(struct disk_file *f, uint64_t *bytes)
{
	*bytes = f->inode->seen.len;
	return f->s->off ? failed("size of", f->path) : NOH_OK;
}

static int sim_read(struct disk_file *f, void *buf, size_t len, uint64_t off, size_t *got)
{
	enum sim_fault how = FAULT_EIO;

	if (begin(f->s, SIM_READ, &how) != GO)
		return failed("read", f->path);
	*got = off >= f->inode->seen.len ? 0 : f->inode->seen.len - off;
	*got = *got < len ? *got : len;
	if (*got)
		memcpy(buf, f->inode->seen.at + off, *got);
	return NOH_OK;
}

static int pages_clean(struct disk_file *f)
{
	struct disk_sim *s = f->s;

	for (size_t i = s->count_pending; i-- > 0;) {
		struct item *it = &s->pending[i];

		if (it->inode != f->inode || it->kind == A_NAME || it->owner)
			continue;
		if (it->kind == A_WRITE && model_draw(&s->random) % 4 == 0)
			model_apply_sectors(&it->inode->durable, it, &s->random);
		model_drop(s, i);
	}
	return failed("sync", f->path);
}

static int sim_sync(struct disk_file *f)
{
	struct disk_sim *s = f->s;
	enum sim_fault how = FAULT_EIO;

	switch (begin(s, SIM_SYNC, &how)) {
	case GO: break;
	case FAULT: return pages_clean(f);
	default: return failed("sync", f->path);
	}
	if (s->lie)
		return NOH_OK;
	for (size_t i = 0; i < s->count_pending;) {
		struct item *it = &s->pending[i];

		if (it->inode == f->inode && it->kind != A_NAME && !it->owner)
			model_promote(s, i);
		else
			i++;
	}
	return NOH_OK;
}

/* A write that fails ends between two sectors, as one that power ended. */
static size_t whole_sectors(uint64_t off, uint64_t len)
{
	uint64_t end = (off + len) / SECTOR * SECTOR;

	return end > off ? (size_t)(end - off) : 0;
}

static int write_some(struct disk_file *f, const void *buf, size_t len, uint64_t off, bool through)
{
	struct disk_sim *s = f->s;
	enum sim_fault how = FAULT_EIO;
	enum verdict v;
	int rc = NOH_OK;

	if (!(f->flags & DISK_WRITE))
		model_complain(s, "written, but open for reading", f->path);
	if (!s->off && !has_room(s, f->inode, off + len))
		return no_room(f->path);
	v = begin(s, SIM_WRITE, &how);
	if (v == OFF)
		return failed("write", f->path);
	if (v == FAULT) {
		if (how == FAULT_NOSPC)
			return no_room(f->path);
		len = whole_sectors(off, how == FAULT_SHORT ? len / 2 : model_draw(&s->random) % (len + 1));
		rc = failed("write", f->path);
	}
	model_append_write(s, f->inode, buf, len, off)->unseen = v == GOING;
	if (v == GOING)
		return failed("write", f->path);
	model_put(&f->inode->seen, buf, len, off);
	if (through && rc == NOH_OK)
		model_promote_last(s);
	return rc;
}

static int sim_write(struct disk_file *f, const void *buf, size_t len, uint64_t off)
{
	return write_some(f, buf, len, off, false);
}

int disk_sim_write_through(struct disk_file *f, const void *buf, size_t len, uint64_t off)
{
	return write_some(f, buf, len, off, true);
}

int disk_sim_resize(struct disk_file *f, uint64_t bytes)
{
	struct disk_sim *s = f->s;
	enum sim_fault how = FAULT_EIO;

	if (!s->off && !has_room(s, f->inode, bytes))
		return no_room(f->path);
	enum verdict v = begin(s, SIM_FILL, &how);

	if (v == OFF || v == FAULT)
		return v == FAULT && how == FAULT_NOSPC ? no_room(f->path) : failed("resize", f->path);
	struct item *it = model_append(s, A_SIZE, f->inode);

	it->len = bytes;
	it->unseen = v == GOING;
	if (v == GOING)
		return failed("resize", f->path);
	model_resize(&f->inode->seen, bytes);
	return NOH_OK;
}

static int sim_fill(struct disk_file *f, uint64_t bytes)
{
	int rc = disk_sim_resize(f, bytes);

	if (rc != NOH_OK)
		return rc;
	rc = write_some(f, NULL, bytes, 0, false);
	return rc == NOH_OK ? sim_sync(f) : rc;
}

static int sim_submit(struct disk_file *f, const void *buf, size_t len, uint64_t off, uint64_t ticket)
{
	struct disk_sim *s = f->s;
	enum sim_fault how = FAULT_EIO;
	enum verdict v;

	if (off % DISK_BLOCK || len % DISK_BLOCK || (uintptr_t)buf % DISK_BLOCK || len == 0)
		model_complain(s, "submit of an odd place, length or buffer", f->path);
	if ((f->flags & (DISK_WRITE | DISK_DURABLE)) != (DISK_WRITE | DISK_DURABLE))
		model_complain(s, "submit, but not opened for it", f->path);
	if (s->flying >= s->door.in_flight)
		model_complain(s, "more submits under way than the disk takes", f->path);
	v = begin(s, SIM_SUBMIT, &how);
	if (v == OFF)
		return failed("submit", f->path);
	if (v != FAULT && !has_room(s, f->inode, off + len)) {
		v = FAULT;
		how = FAULT_NOSPC;
	}
	struct item *it = model_append_write(s, f->inode, buf, len, off);

	it->unseen = true;
	if (v == GOING)
		return failed("submit", f->path);
	it->owner = buf;
	it->file = f;
	it->ticket = ticket;
	it->fails = v == FAULT;
	it->how = how;
	it->due = s->now + s->least + model_draw(&s->random) % (s->most - s->least + 1);
	s->flying++;
	f->flying++;
	return NOH_OK;
}

static int end_flight(struct disk_sim *s, size_t i, uint64_t *ticket, int *result)
{
	struct item *it = &s->pending[i];

	*ticket = it->ticket;
	if (memcmp(it->data, it->owner, it->len) != 0)
		model_complain(s, "the buffer changed while its write was under way", it->file->path);
	it->owner = NULL;
	it->file->flying--;
	s->flying--;
	if (s->off) {                            /* it stays pending: the cut decides */
		*result = failed("write", it->file->path);
	} else if (it->fails) {
		uint64_t same = s->random;

		*result = it->how == FAULT_NOSPC ? no_room(it->file->path) : failed("write", it->file->path);
		if (it->how != FAULT_NOSPC) {
			model_apply_sectors(&it->inode->seen, it, &same);
			model_apply_sectors(&it->inode->durable, it, &s->random);
		}
		model_drop(s, i);
	} else {
		*result = NOH_OK;
		it->unseen = false;
		model_put(&it->inode->seen, it->data, it->len, it->off);
		model_promote(s, i);
	}
	return NOH_OK;
}

static int sim_reap(struct disk *d, bool wait, uint64_t *ticket, int *result)
{
	struct disk_sim *s = (struct disk_sim *)d;
	size_t first = s->count_pending;

	if (!s->off)
		s->now++;
	for (size_t i = 0; i < s->count_pending; i++)
		if (s->pending[i].owner &&
		    (first == s->count_pending || s->pending[i].due < s->pending[first].due))
			first = i;
	if (first == s->count_pending)
		return NOH_END;
	if (s->pending[first].due > s->now && !s->off) {
		if (!wait)
			return NOH_END;
		s->now = s->pending[first].due;
	}
	return end_flight(s, first, ticket, result);
}

static int change_name(struct disk_sim *s, enum sim_op op, const char *from, const char *to)
{
	struct inode *inode = model_look_up(&s->seen, from);
	const char *what = op == SIM_RENAME ? "rename" : "remove";
	enum sim_fault how = FAULT_EIO;

	must(strlen(from) < MAX_PATH && strlen(to) < MAX_PATH);
	if (!inode && !s->off)
		return op == SIM_REMOVE ? NOH_END
					: error_set(NOH_EDISK, "%s %s: no such file", what, from);
	enum verdict v = begin(s, op, &how);

	if (v == OFF || v == FAULT)
		return failed(what, from);
	struct item *it = model_append(s, A_NAME, inode);

	snprintf(it->from, MAX_PATH, "%s", from);
	snprintf(it->to, MAX_PATH, "%s", to);
	it->unseen = v == GOING;
	if (to[0] && disk_sim_is_directory(s, from))
		model_name(&s->made, to, NULL);
	if (v == GOING)
		return failed(what, from);
	model_apply_name(&s->seen, it);
	return NOH_OK;
}

static int sim_rename(struct disk *d, const char *from, const char *to)
{
	return change_name((struct disk_sim *)d, SIM_RENAME, from, to);
}

static int sim_remove(struct disk *d, const char *path)
{
	return change_name((struct disk_sim *)d, SIM_REMOVE, path, "");
}

static int sim_sync_dir(struct disk *d, const char *path)
{
	struct disk_sim *s = (struct disk_sim *)d;
	enum sim_fault how = FAULT_EIO;

	if (begin(s, SIM_SYNC_DIR, &how) != GO)
		return failed("sync directory", path);
	if (s->lie)
		return NOH_OK;
	for (size_t i = 0; i < s->count_pending;) {
		struct item *it = &s->pending[i];

		if (it->kind == A_NAME && (model_in_directory(it->from, path) || model_in_directory(it->to, path)))
			model_promote(s, i);
		else
			i++;
	}
	return NOH_OK;
}

static int sim_list(struct disk *d, const char *path, void (*each)(void *arg, const char *name),
		    void *arg)
{
	struct disk_sim *s = (struct disk_sim *)d;

	if (s->off)
		return failed("list", path);
	for (size_t i = 0; i < s->seen.count; i++) {
		const char *full = s->seen.at[i].path, *slash = strrchr(full, '/');

		if (model_in_directory(full, path))
			each(arg, slash ? slash + 1 : full);
	}
	return NOH_OK;
}

int disk_sim_mkdir(struct disk_sim *s, const char *path)
{
	struct disk_file *f;
	int rc = sim_open(&s->door, path, DISK_CREATE | DISK_WRITE, &f);

	model_name(&s->made, path, NULL);
	if (rc == NOH_OK)
		sim_close(f);
	return rc;
}

static void sim_end(struct disk *d) { (void)d; }

const struct disk_ops disk_sim_ops_table = {
	.open = sim_open, .close = sim_close, .size = sim_size, .fill = sim_fill, .read = sim_read,
	.write = sim_write, .sync = sim_sync, .submit = sim_submit, .reap = sim_reap,
	.rename = sim_rename, .remove = sim_remove, .sync_dir = sim_sync_dir, .list = sim_list,
	.end = sim_end,
};
