#include "persist/db_pages.h"

#include "core/error.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LMDB 0.9 on a 64-bit little-endian machine, as it is on disk. */
struct page_head { uint64_t number; uint16_t pad, flags, lower, upper; };     /* lower, upper: or a count */
struct node_head { uint16_t lo, hi, flags, key_len; };
struct tree { uint32_t pad; uint16_t flags, depth; uint64_t branches, leaves, overflow, rows, root; };
struct head {
	uint32_t magic, version;
	uint64_t address, map_bytes;
	struct tree free, tables;
	uint64_t last_page, txnid;
};
enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4 };
enum { NODE_BIG = 1, NODE_TREE = 2 };
#define NO_PAGE UINT64_MAX
#define DEPTH_MOST 32
#define TELL_EVERY 4096
#define KEPT 100                         /* findings told; what is behind a broken page is not looked at */

struct pages {
	int             fd;
	uint32_t        size;
	uint64_t        last;
	uint8_t        *used;            /* a bit per page */
	db_problem_fn  *problem;
	db_progress_fn *progress;
	void           *arg;
	int64_t         found;
	uint64_t        done;
	int             error;
};

static void report(struct pages *p, uint64_t page, const char *what)
{
	char text[160];

	snprintf(text, sizeof text, "page %" PRIu64 " at offset %" PRIu64 ": %s", page, page * p->size, what);
	if (p->problem && p->found < KEPT)
		p->problem(p->arg, text);
	p->found++;
}

/* Every page has one use. False: it has another already, or is none. */
static bool take(struct pages *p, uint64_t page, uint64_t by)
{
	if (page < 2 || page > p->last) {
		report(p, by, "names a page that is not there");
		return false;
	}
	uint8_t bit = (uint8_t)(1u << (page & 7));

	if (p->used[page >> 3] & bit) {
		report(p, page, "is used twice");
		return false;
	}
	p->used[page >> 3] |= bit;
	if (++p->done % TELL_EVERY == 0 && p->progress)
		p->progress(p->arg, p->done, p->last + 1);
	return true;
}

static bool read_at(struct pages *p, void *buf, size_t len, uint64_t off)
{
	ssize_t n;

	do
		n = pread(p->fd, buf, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return true;
	if (n < 0)
		p->error = error_set(NOH_EDISK, "read the image at offset %" PRIu64 ": %s", off, strerror(errno));
	else
		report(p, off / p->size, "lies behind the end of the file");
	return false;
}

/* ── values ── */

/* Pages free for use again: a count and as many numbers. */
static void check_free(struct pages *p, uint64_t page, const uint8_t *ids, size_t len)
{
	uint64_t count = 0, id;

	if (len >= sizeof count)
		memcpy(&count, ids, sizeof count);
	if (len < sizeof count || count > len / 8 - 1) {
		report(p, page, "a list of free pages makes no sense");
		return;
	}
	for (uint64_t i = 1; i <= count; i++) {
		memcpy(&id, ids + 8 * i, sizeof id);
		(void)take(p, id, page);
	}
}

/* A value in pages of its own. */
static void check_big(struct pages *p, uint64_t page, const uint8_t *at, size_t len, struct tree *seen, bool free)
{
	struct page_head h;
	uint64_t first, count = (sizeof h + len + p->size - 1) / p->size;
	uint32_t says;

	memcpy(&first, at, sizeof first);
	if (first > p->last || count > p->last - first + 1 || !read_at(p, &h, sizeof h, first * p->size)) {
		report(p, page, "a long value is not in the file");
		return;
	}
	memcpy(&says, &h.lower, sizeof says);
	if (h.number != first || h.flags != PAGE_OVERFLOW || says != count)
		report(p, first, "is not the long value that it should be");
	for (uint64_t i = 0; i < count; i++)
		(void)take(p, first + i, page);
	seen->overflow += count;
	uint8_t *ids = free ? mem_alloc(len) : NULL;

	if (ids && read_at(p, ids, len, first * p->size + sizeof h))
		check_free(p, page, ids, len);
	mem_free(ids, len);
}

/* ── trees ── */

struct level { struct pages *p; struct tree *seen; uint16_t depth; bool free, tables; };

static void check_tree(struct pages *p, const struct tree *t, uint64_t by, bool free, bool tables);
static void check_page(const struct level *l, uint64_t page, uint64_t by, uint16_t depth);

static void check_leaf(const struct level *l, uint64_t page, const struct node_head *n, const uint8_t *data,
		       size_t room)
{
	size_t len = (size_t)n->lo | (size_t)n->hi << 16;
	size_t here = n->flags & NODE_BIG ? sizeof(uint64_t) : len;
	struct tree t;

	l->seen->rows++;
	if (n->flags & ~(NODE_BIG | NODE_TREE) || here > room)
		report(l->p, page, "a value does not fit");
	else if (n->flags & NODE_BIG)
		check_big(l->p, page, data, len, l->seen, l->free);
	else if (l->free)
		check_free(l->p, page, data, len);
	else if (!!(n->flags & NODE_TREE) != l->tables || (l->tables && len != sizeof t))
		report(l->p, page, "a table is not where it should be");
	else if (l->tables) {
		memcpy(&t, data, sizeof t);
		check_tree(l->p, &t, page, false, false);
	}
}

static bool check_node(const struct level *l, uint64_t page, const uint8_t *bytes, size_t at, size_t upper,
		       uint16_t depth)
{
	struct node_head n;

	if (at < upper || at % 2 || at + sizeof n > l->p->size)
		return false;
	memcpy(&n, bytes + at, sizeof n);
	size_t data = at + sizeof n + n.key_len;

	if (data > l->p->size)
		return false;
	if (depth < l->depth)
		check_page(l, (uint64_t)n.lo | (uint64_t)n.hi << 16 | (uint64_t)n.flags << 32, page,
			   (uint16_t)(depth + 1));
	else
		check_leaf(l, page, &n, bytes + data, l->p->size - data);
	return true;
}

static void check_nodes(const struct level *l, uint64_t page, const uint8_t *bytes, uint16_t depth)
{
	struct page_head h;
	uint16_t node;

	memcpy(&h, bytes, sizeof h);
	if (h.number != page)
		report(l->p, page, "is another page");
	else if (h.flags != (depth < l->depth ? PAGE_BRANCH : PAGE_LEAF))
		report(l->p, page, "is of another kind");
	else if (h.lower < sizeof h || h.lower % 2 || h.upper < h.lower || h.upper > l->p->size ||
		 h.lower == sizeof h)
		report(l->p, page, "its bounds make no sense");
	else
		for (size_t i = sizeof h; i < h.lower && l->p->error == NOH_OK; i += sizeof node) {
			memcpy(&node, bytes + i, sizeof node);
			if (!check_node(l, page, bytes, node, h.upper, depth)) {
				report(l->p, page, "an entry lies outside of it");
				break;
			}
		}
	*(depth < l->depth ? &l->seen->branches : &l->seen->leaves) += 1;
}

static void check_page(const struct level *l, uint64_t page, uint64_t by, uint16_t depth)
{
	struct pages *p = l->p;

	if (!take(p, page, by))
		return;
	uint8_t *bytes = mem_alloc(p->size);

	if (!bytes)
		p->error = error_set(NOH_ENOMEM, "out of memory");
	else if (read_at(p, bytes, p->size, page * p->size))
		check_nodes(l, page, bytes, depth);
	mem_free(bytes, p->size);
}

static void check_tree(struct pages *p, const struct tree *t, uint64_t by, bool free, bool tables)
{
	struct tree seen = { 0 };
	struct level l = { p, &seen, t->depth, free, tables };
	int64_t before = p->found;

	if (t->depth > DEPTH_MOST || (t->depth == 0) != (t->root == NO_PAGE)) {
		report(p, by, "a table's head makes no sense");
		return;
	}
	if (t->depth)
		check_page(&l, t->root, by, 1);
	if (p->found == before && p->error == NOH_OK &&
	    (seen.branches != t->branches || seen.leaves != t->leaves || seen.overflow != t->overflow ||
	     seen.rows != t->rows))
		report(p, by, "a table's head counts other pages or rows than there are");
}

/* ── the file ── */

static bool head_at(struct pages *p, uint64_t off, struct head *h)
{
	struct page_head page;

	return read_at(p, &page, sizeof page, off) && read_at(p, h, sizeof *h, off + sizeof page) &&
	       h->magic == 0xBEEFC0DEu && h->free.pad >= 512 && h->free.pad <= 65536;
}

static void check_file(struct pages *p)
{
	struct head a, b;

	p->size = 4096;
	if (!head_at(p, 0, &a) || (p->size = a.free.pad, !head_at(p, p->size, &b)) || b.free.pad != a.free.pad) {
		if (p->error == NOH_OK)
			report(p, 0, "is no beginning of an image");
		return;
	}
	const struct head *h = a.txnid > b.txnid ? &a : &b;
	struct stat st;

	p->last = h->last_page;
	if (fstat(p->fd, &st) != 0 || p->last >= (uint64_t)st.st_size / p->size) {
		report(p, 0, "names more pages than the file has: it was cut short");
		return;
	}
	p->used = mem_zalloc(p->last / 8 + 1);
	if (!p->used) {
		p->error = error_set(NOH_ENOMEM, "out of memory");
		return;
	}
	check_tree(p, &h->free, 0, true, false);
	check_tree(p, &h->tables, 0, false, true);
	mem_free(p->used, p->last / 8 + 1);
}

int64_t db_pages(const char *file, db_problem_fn *problem, db_progress_fn *progress, void *arg)
{
	struct pages p = { .problem = problem, .progress = progress, .arg = arg };

	p.fd = open(file, O_RDONLY | O_CLOEXEC);
	if (p.fd < 0)
		return error_set(NOH_EDISK, "open %s: %s", file, strerror(errno));
	check_file(&p);
	close(p.fd);
	return p.error != NOH_OK ? p.error : p.found;
}
