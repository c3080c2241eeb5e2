/* tests/sim/disk_sim.c - the model. The list of what is pending is the heart of it. */
#include "tests/sim/disk_sim_in.h"

#include "core/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define IN_FLIGHT 4

const char *const cut_names[CUT_MODES] = {
	"drop all", "keep all", "subset", "torn", "only the last", "all but one", "any byte",
};

/* ── small things ── */

uint64_t model_draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void *grow(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	must(p);
	return p;
}

void model_resize(struct bytes *b, uint64_t len)
{
	if (len > b->room) {
		b->room = len > 2 * b->room ? len : 2 * b->room;
		b->at = grow(b->at, b->room);
	}
	if (len > b->len)
		memset(b->at + b->len, 0, len - b->len);
	b->len = len;
}

void model_put(struct bytes *b, const uint8_t *data, uint64_t len, uint64_t off)
{
	if (len == 0)
		return;
	if (off + len > b->len)
		model_resize(b, off + len);
	if (data)
		memcpy(b->at + off, data, len);
	else
		memset(b->at + off, 0, len);
}

static void copy_bytes(struct bytes *to, const struct bytes *from)
{
	model_resize(to, 0);
	model_put(to, from->at, from->len, 0);
}

void model_complain(struct disk_sim *s, const char *what, const char *path)
{
	if (!s->problem[0])
		snprintf(s->problem, sizeof s->problem, "%s: %s", path, what);
}

/* ── names ── */

struct inode *model_look_up(const struct names *n, const char *path)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->at[i].path, path) == 0)
			return n->at[i].inode;
	return NULL;
}

static void unname(struct names *n, const char *path)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->at[i].path, path) == 0) {
			n->at[i] = n->at[--n->count];
			return;
		}
}

void model_name(struct names *n, const char *path, struct inode *inode)
{
	unname(n, path);
	if (n->count == n->room) {
		n->room = n->room ? 2 * n->room : 16;
		n->at = grow(n->at, n->room * sizeof *n->at);
	}
	snprintf(n->at[n->count].path, MAX_PATH, "%s", path);
	n->at[n->count++].inode = inode;
}

/* A directory takes along what is in it. */
static void move_inside(char *path, const char *from, const char *to)
{
	char moved[2 * MAX_PATH];
	size_t len = strlen(from);

	if (len == 0 || strncmp(path, from, len) != 0 || path[len] != '/')
		return;
	snprintf(moved, sizeof moved, "%s%s", to, path + len);
	must(strlen(moved) < MAX_PATH);
	strcpy(path, moved);
}

void model_apply_name(struct names *n, const struct item *it)
{
	if (it->from[0])
		unname(n, it->from);
	if (it->to[0])
		model_name(n, it->to, it->inode);
	for (size_t i = 0; it->from[0] && it->to[0] && i < n->count; i++)
		move_inside(n->at[i].path, it->from, it->to);
}

bool model_in_directory(const char *path, const char *dir)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	return path[0] && strlen(dir) == len && strncmp(path, dir, len) == 0;
}

struct inode *model_new_inode(struct disk_sim *s)
{
	struct inode *i = calloc(1, sizeof *i);

	must(i);
	i->id = ++s->inodes;
	i->next = s->all;
	s->all = i;
	return i;
}

/* ── what is pending ── */

struct item *model_append(struct disk_sim *s, enum kind kind, struct inode *inode)
{
	if (s->count_pending == s->room_pending) {
		s->room_pending = s->room_pending ? 2 * s->room_pending : 64;
		s->pending = grow(s->pending, s->room_pending * sizeof *s->pending);
	}
	struct item *it = &s->pending[s->count_pending++];

	memset(it, 0, sizeof *it);
	it->kind = kind;
	it->inode = inode;
	return it;
}

struct item *model_append_write(struct disk_sim *s, struct inode *inode, const void *data,
				 uint64_t len, uint64_t off)
{
	struct item *it = model_append(s, A_WRITE, inode);

	it->off = off;
	it->len = len;
	if (data) {
		it->data = grow(NULL, len ? len : 1);
		memcpy(it->data, data, len);
	}
	return it;
}

void model_drop(struct disk_sim *s, size_t i)
{
	free(s->pending[i].data);
	s->count_pending--;
	memmove(&s->pending[i], &s->pending[i + 1], (s->count_pending - i) * sizeof *s->pending);
}

static void apply(struct disk_sim *s, const struct item *it)
{
	switch (it->kind) {
	case A_WRITE: model_put(&it->inode->durable, it->data, it->len, it->off); break;
	case A_SIZE: model_resize(&it->inode->durable, it->len); break;
	case A_NAME: model_apply_name(&s->durable, it); break;
	}
}

/* What just became durable must not be undone by an older write that a cut keeps: where they overlap,
 * the older one gets the newer bytes. */
static void overrule(struct disk_sim *s, size_t upto)
{
	const struct item *new = &s->pending[upto];

	for (size_t i = 0; i < upto; i++) {
		struct item *old = &s->pending[i];
		uint64_t from = old->off > new->off ? old->off : new->off;
		uint64_t to = old->off + old->len < new->off + new->len ? old->off + old->len
								       : new->off + new->len;

		if (old->kind != A_WRITE || old->inode != new->inode || from >= to)
			continue;
		if (!old->data) {
			if (!new->data)
				continue;
			old->data = calloc(1, old->len);
			must(old->data);
		}
		if (new->data)
			memcpy(old->data + (from - old->off), new->data + (from - new->off), to - from);
		else
			memset(old->data + (from - old->off), 0, to - from);
	}
}

void model_promote(struct disk_sim *s, size_t i)
{
	if (s->lie)
		return;
	apply(s, &s->pending[i]);
	if (s->pending[i].kind == A_WRITE)
		overrule(s, i);
	for (size_t n = 0; s->pending[i].kind == A_NAME && s->pending[i].to[0] && n < i; n++) {
		move_inside(s->pending[n].from, s->pending[i].from, s->pending[i].to);
		move_inside(s->pending[n].to, s->pending[i].from, s->pending[i].to);
	}
	model_drop(s, i);
}

void model_promote_last(struct disk_sim *s) { model_promote(s, s->count_pending - 1); }

/* Each sector of a write by itself: what a device does with a write that power or the medium ended. */
void model_apply_sectors(struct bytes *b, const struct item *it, uint64_t *random)
{
	for (uint64_t at = 0; at < it->len;) {
		uint64_t n = SECTOR - (it->off + at) % SECTOR;

		n = n < it->len - at ? n : it->len - at;
		if (model_draw(random) & 1)
			model_put(b, it->data ? it->data + at : NULL, n, it->off + at);
		at += n;
	}
}

/* ── power ── */

static void keep_part(struct disk_sim *s, const struct item *it, enum cut mode, uint64_t *random)
{
	bool heads = model_draw(random) & 1;

	if (it->kind != A_WRITE) {
		if (heads)
			apply(s, it);
	} else if (mode == CUT_TORN) {
		model_apply_sectors(&it->inode->durable, it, random);
	} else if (mode == CUT_BYTES && it->off / SECTOR != (it->off + it->len - 1) / SECTOR) {
		model_put(&it->inode->durable, it->data, model_draw(random) % (it->len + 1), it->off);
	} else if (heads) {
		apply(s, it);
	}
}

bool disk_sim_is_directory(const struct disk_sim *s, const char *path)
{
	for (size_t i = 0; i < s->made.count; i++)
		if (strcmp(s->made.at[i].path, path) == 0)
			return true;
	return false;
}

static void lose_with_directory(struct disk_sim *s)
{
	for (size_t i = 0; i < s->durable.count;) {
		char parent[MAX_PATH];
		const char *path = s->durable.at[i].path, *slash = strrchr(path, '/');

		snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 0, path);
		if (slash && disk_sim_is_directory(s, parent) && !model_look_up(&s->durable, parent)) {
			unname(&s->durable, path);
			i = 0;
		} else {
			i++;
		}
	}
}

static void sweep(struct disk_sim *s)
{
	for (struct inode *i = s->all; i; i = i->next)
		i->marked = false;
	for (size_t n = 0; n < s->durable.count; n++)
		s->durable.at[n].inode->marked = true;
	for (struct inode **at = &s->all; *at;) {
		struct inode *i = *at;

		if (i->marked) {
			copy_bytes(&i->seen, &i->durable);
			at = &i->next;
			continue;
		}
		*at = i->next;
		free(i->seen.at);
		free(i->durable.at);
		free(i);
	}
}

void disk_sim_cut(struct disk_sim *s, enum cut mode, uint64_t seed)
{
	uint64_t random = seed;
	size_t n = s->count_pending, one = n ? model_draw(&random) % n : 0;

	must(s->handles == 0);
	for (size_t i = 0; i < n; i++) {
		const struct item *it = &s->pending[i];

		switch (mode) {
		case CUT_DROP: break;
		case CUT_KEEP: apply(s, it); break;
		case CUT_LAST: if (i == n - 1) apply(s, it); break;
		case CUT_BUT_ONE: if (i != one) apply(s, it); break;
		default: keep_part(s, it, mode, &random); break;
		}
	}
	while (s->count_pending)
		model_drop(s, s->count_pending - 1);
	lose_with_directory(s);
	s->seen.count = 0;
	for (size_t i = 0; i < s->durable.count; i++)
		model_name(&s->seen, s->durable.at[i].path, s->durable.at[i].inode);
	sweep(s);
	s->off = false;
	s->cut_at = 0;
	s->flying = 0;
}

void disk_sim_kill(struct disk_sim *s, uint64_t seed)
{
	must(s->handles == 0);
	for (size_t i = 0; i < s->count_pending;) {
		struct item *it = &s->pending[i];
		bool arrived = model_draw(&seed) & 1;

		if (it->unseen && !arrived) {
			model_drop(s, i);
			continue;
		}
		if (it->unseen && it->kind == A_WRITE)
			model_put(&it->inode->seen, it->data, it->len, it->off);
		else if (it->unseen && it->kind == A_SIZE)
			model_resize(&it->inode->seen, it->len);
		else if (it->unseen)
			model_apply_name(&s->seen, it);
		it->unseen = false;
		i++;
	}
	s->off = false;
	s->cut_at = 0;
	s->flying = 0;
}

uint64_t disk_sim_ops(const struct disk_sim *s) { return s->ops; }
void disk_sim_cut_at(struct disk_sim *s, uint64_t op) { s->cut_at = op; }
uint64_t disk_sim_faults(const struct disk_sim *s) { return s->faults; }
void disk_sim_off(struct disk_sim *s) { s->off = true; }
bool disk_sim_is_off(const struct disk_sim *s) { return s->off; }
uint64_t disk_sim_pending(const struct disk_sim *s) { return s->count_pending; }
struct disk *disk_sim_door(struct disk_sim *s) { return &s->door; }
uint64_t disk_sim_count(const struct disk_sim *s, enum sim_op op) { return s->count[op]; }
void disk_sim_space(struct disk_sim *s, uint64_t bytes) { s->space = bytes; }
void disk_sim_lie(struct disk_sim *s, bool lie) { s->lie = lie; }
unsigned disk_sim_open_files(const struct disk_sim *s) { return s->handles; }
const char *disk_sim_problem(const struct disk_sim *s) { return s->problem[0] ? s->problem : NULL; }
bool disk_sim_exists(const struct disk_sim *s, const char *path) { return model_look_up(&s->seen, path); }

void disk_sim_fail(struct disk_sim *s, enum sim_op op, uint64_t nth, enum sim_fault how)
{
	s->fail_at[op] = nth ? s->count[op] + nth : 0;
	s->fail_how[op] = how;
}

void disk_sim_latency(struct disk_sim *s, unsigned least, unsigned most)
{
	must(least <= most);
	s->least = least;
	s->most = most;
}

/* ── making, copying, looking ── */

struct disk_sim *disk_sim_new(uint64_t seed)
{
	struct disk_sim *s = calloc(1, sizeof *s);

	must(s);
	s->door = (struct disk){ .ops = &disk_sim_ops_table, .how = "simulated", .in_flight = IN_FLIGHT };
	s->random = seed;
	s->most = 4;
	return s;
}

static void copy_names(struct names *to, const struct names *from)
{
	for (size_t i = 0; i < from->count; i++)
		model_name(to, from->at[i].path, from->at[i].inode->copy);
}

struct disk_sim *disk_sim_copy(const struct disk_sim *s)
{
	struct disk_sim *c = grow(NULL, sizeof *c);

	*c = *s;
	c->all = NULL;
	c->pending = NULL;
	c->count_pending = c->room_pending = 0;
	c->handles = c->flying = 0;
	memset(&c->seen, 0, sizeof c->seen);
	memset(&c->durable, 0, sizeof c->durable);
	memset(&c->made, 0, sizeof c->made);
	for (size_t i = 0; i < s->made.count; i++)
		model_name(&c->made, s->made.at[i].path, NULL);
	for (struct inode *i = s->all; i; i = i->next) {
		i->copy = model_new_inode(c);
		i->copy->id = i->id;
		copy_bytes(&i->copy->seen, &i->seen);
		copy_bytes(&i->copy->durable, &i->durable);
	}
	c->inodes = s->inodes;
	copy_names(&c->seen, &s->seen);
	copy_names(&c->durable, &s->durable);
	for (size_t n = 0; n < s->count_pending; n++) {
		const struct item *from = &s->pending[n];
		struct item *to = model_append(c, from->kind, NULL);

		*to = *from;
		to->inode = from->inode->copy;
		to->owner = NULL;
		to->file = NULL;
		if (from->data) {
			to->data = grow(NULL, from->len ? from->len : 1);
			memcpy(to->data, from->data, from->len);
		}
	}
	return c;
}

void disk_sim_free(struct disk_sim *s)
{
	if (!s)
		return;
	must(s->handles == 0);
	while (s->count_pending)
		model_drop(s, s->count_pending - 1);
	s->durable.count = 0;
	sweep(s);
	free(s->pending);
	free(s->seen.at);
	free(s->durable.at);
	free(s->made.at);
	free(s);
}

bool disk_sim_rot(struct disk_sim *s, const char *path, uint64_t off, unsigned bit)
{
	struct inode *i = model_look_up(&s->seen, path);

	if (!i || off >= i->seen.len)
		return false;
	i->seen.at[off] ^= (uint8_t)(1u << bit % 8);
	if (off < i->durable.len)
		i->durable.at[off] ^= (uint8_t)(1u << bit % 8);
	return true;
}

bool disk_sim_chop(struct disk_sim *s, const char *path, uint64_t bytes)
{
	struct inode *i = model_look_up(&s->seen, path);

	if (!i)
		return false;
	model_resize(&i->seen, bytes);
	model_resize(&i->durable, bytes);
	return true;
}

const uint8_t *disk_sim_bytes(const struct disk_sim *s, const char *path, size_t *len)
{
	struct inode *i = model_look_up(&s->seen, path);

	*len = i ? i->seen.len : 0;
	return !i ? NULL : i->seen.at ? i->seen.at : (const uint8_t *)"";
}

void disk_sim_each(const struct disk_sim *s, void (*each)(void *arg, const char *path), void *arg)
{
	for (size_t i = 0; i < s->seen.count; i++)
		each(arg, s->seen.at[i].path);
}

/* Sums, so that the order of the tables does not count; the list's order does. */
static uint64_t hash_names(const struct names *n, bool durable)
{
	uint64_t sum = durable;

	for (size_t i = 0; i < n->count; i++) {
		const struct bytes *b = durable ? &n->at[i].inode->durable : &n->at[i].inode->seen;
		uint64_t h = XXH3_64bits(n->at[i].path, strlen(n->at[i].path));

		h = h * 31 + n->at[i].inode->id;
		sum += XXH3_64bits_withSeed(b->at ? b->at : (const uint8_t *)"", b->len, h);
	}
	return sum;
}

uint64_t disk_sim_hash(const struct disk_sim *s)
{
	uint64_t h = hash_names(&s->seen, false) * 31 + hash_names(&s->durable, true);

	for (size_t i = 0; i < s->count_pending; i++) {
		const struct item *it = &s->pending[i];
		uint64_t head[4] = { it->kind, it->inode ? it->inode->id : 0, it->off, it->len };

		h = XXH3_64bits_withSeed(head, sizeof head, h);
		h = XXH3_64bits_withSeed(it->from, strlen(it->from), h);
		h = XXH3_64bits_withSeed(it->to, strlen(it->to), h);
		if (it->data)
			h = XXH3_64bits_withSeed(it->data, it->len, h);
	}
	return h;
}
