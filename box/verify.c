/* box/verify.c - is everything in a data directory as it was written, and does it fit together?
 *
 * The journal: every segment's head, every frame's checksum and place in the chain, from the oldest that
 * is left; every record. The image: every page (db_pages), every row (db_verify). Across both: the image's stamp is not beyond
 * the journal's end; what a frame up to the stamp did is in the image (its state is not older, the
 * messages it consumed are not waiting any more).
 *
 * Beside a running box the image may be newer than the stamp that was read first; everything that is
 * asked of it then holds all the more.
 */
#include "box/care.h"

#include "core/address.h"
#include "core/mem.h"
#include "persist/db_pages.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEPT 64                  /* sentences about the journal; more are only counted */
#define TELL_EVERY 20000

/* A busy actor has many records one after the other, and its image may be large: it is loaded once for them. */
#define REMEMBERED 16
struct remembered {
	char             address[256];
	uint32_t         len;            /* 0: nobody                                             */
	int              rc;
	struct db_loaded loaded;
};

struct verify {
	struct care     *c;
	noh_found_fn    *found;
	noh_progress_fn *progress;
	void            *user;
	noh_verified     sum;

	struct care_walk walk;
	struct remembered images[REMEMBERED];   /* of this walk                                   */
	uint64_t         bytes;          /* of records so far                                     */
	uint64_t         count;          /* findings of this walk; the first ones:                */
	char             text[KEPT][320];
};

NOH_PRINTF(2, 3) static void find(struct verify *v, const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	v->sum.findings++;
	if (v->found)
		v->found(v->user, text);
}

/* Kept until the walk has come to its end: one beside a running box may begin again. */
NOH_PRINTF(4, 5) static void find_later(struct verify *v, const struct record_head *head, uint64_t frame,
					const char *format, ...)
{
	char what[200];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	if (v->count < KEPT)
		snprintf(v->text[v->count], sizeof v->text[0], "journal, frame %llu, %.*s: %s",
			 (unsigned long long)frame, head->address_len > 80 ? 80 : head->address_len,
			 record_address(head), what);
	v->count++;
}

/* ── records ── */

static bool is_waiting(const struct db_loaded *loaded, const struct message_id *id)
{
	const uint8_t *at = loaded->image, *end = at + loaded->len;
	struct part_emitted e;
	struct part p;

	while (part_next(&at, end, &p)) {
		if (p.kind != PART_EMITTED)
			continue;
		memcpy(&e, p.data, sizeof e);
		if (memcmp(&e.id, id, sizeof *id) == 0)
			return true;
	}
	return false;
}

static void forget_images(struct verify *v)
{
	for (uint32_t i = 0; i < REMEMBERED; i++) {
		mem_free(v->images[i].loaded.image, v->images[i].loaded.len);
		v->images[i] = (struct remembered){ .len = 0 };
	}
}

/* Never older than the walk's stamp. */
static const struct remembered *image_of(struct verify *v, const struct record_head *head)
{
	struct remembered *r = &v->images[head->hash % REMEMBERED];

	if (r->len == head->address_len && memcmp(r->address, record_address(head), r->len) == 0)
		return r;
	mem_free(r->loaded.image, r->loaded.len);
	r->len = head->address_len;
	memcpy(r->address, record_address(head), r->len);
	r->rc = db_load(v->c->db, r->address, r->len, UINT64_MAX, &r->loaded);
	return r;
}

/* A frame up to the stamp: the image has what this record did. */
static void check_folded(struct verify *v, uint64_t frame, const struct record_head *head,
			 const uint8_t *parts, const uint8_t *end)
{
	const struct remembered *image = image_of(v, head);
	struct message_id id;
	struct part p;

	if (image->rc != NOH_OK)
		return;                          /* erased since, or db_verify says what is wrong */
	while (part_next(&parts, end, &p)) {
		if (p.kind == PART_STATE && image->loaded.seq && image->loaded.seq < head->seq)
			find_later(v, head, frame, "the image says to have this frame, but its state is older");
		if (p.kind != PART_CONSUMED)
			continue;
		memcpy(&id, p.data, sizeof id);
		if (is_waiting(&image->loaded, &id))
			find_later(v, head, frame, "a message that was handled here still waits in the image");
	}
}

static int check_record(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head,
			const uint8_t *parts, const uint8_t *end)
{
	struct verify *v = arg;
	struct address a;

	v->bytes += head->size;
	if (++v->sum.records % TELL_EVERY == 0 && v->progress)
		v->progress(v->user, "journal", v->bytes, v->sum.journal_bytes);
	if (address_parse(&a, record_address(head), head->address_len) != NOH_OK)
		find_later(v, head, frame, "this is no address");
	else if (head->hash != address_hash_text(record_address(head), head->address_len, v->c->dir.seed))
		find_later(v, head, frame, "the hash is not that of the address");
	if (head->tag > epoch || head->seq < head->tag << 20)
		find_later(v, head, frame, "tag %llu or sequence %llu cannot be in epoch %llu",
			   (unsigned long long)head->tag, (unsigned long long)head->seq,
			   (unsigned long long)epoch);
	if (!parts_valid(parts, end))
		find_later(v, head, frame, "a part of this record makes no sense");
	else if (v->c->db && frame <= v->walk.stamp && !(head->flags & RECORD_NOTICE))
		check_folded(v, frame, head, parts, end);
	return NOH_OK;
}

static void again(void *arg)
{
	struct verify *v = arg;

	v->bytes = v->count = v->sum.records = 0;
	forget_images(v);
}

/* ── the two halves ── */

/* The rest of a head's block: no checksum covers it, so it has to be what was written there. */
static int check_head(struct verify *v, const char *name, uint8_t *block)
{
	struct disk_file *f;
	size_t got = 0, at = sizeof(struct segment_head);
	int rc = disk_open(v->c->disk, name, 0, &f);

	if (rc != NOH_OK)
		return rc == NOH_END ? NOH_OK : rc;      /* recycled just now */
	rc = disk_read(v->c->disk, f, block, DISK_BLOCK, 0, &got);
	disk_close(v->c->disk, f);
	while (at < got && block[at] == 0)
		at++;
	if (rc == NOH_OK && at < got)
		find(v, "%s is damaged at offset %zu: there should be zeros behind its head", name, at);
	return rc;
}

static int check_heads(struct verify *v)
{
	uint8_t *block = mem_aligned(DISK_BLOCK, DISK_BLOCK);
	struct segment_list list;
	int rc = segment_list(v->c->disk, &list);

	if (!block)
		rc = error_set(NOH_ENOMEM, "no memory to read the journal");
	for (size_t i = 0; rc == NOH_OK && i < list.count; i++)
		rc = check_head(v, segment_name(list.at[i].number, "seg").text, block);
	segment_list_free(&list);
	mem_free(block, DISK_BLOCK);
	return rc;
}

static int check_journal(struct verify *v)
{
	struct journal_end end = { 0 };
	uint64_t oldest, damaged;
	int rc = check_heads(v);

	if (rc == NOH_OK)
		rc = care_oldest(v->c, &oldest, &damaged);
	if (rc != NOH_OK)
		return rc;
	if (damaged && !care_is_running(v->c->dir.path))
		find(v, "%s is damaged at offset %d: its first frame is missing",
		     segment_name(damaged, "seg").text, DISK_BLOCK);
	v->walk = (struct care_walk){ .all = true, .again = again, .each = check_record, .arg = v };
	rc = care_walk(v->c, &v->walk, &end);
	if (rc == NOH_ENOMEM || rc == NOH_EINUSE)
		return rc;
	if (rc != NOH_OK)
		find(v, "%s", noh_why());
	for (uint64_t i = 0; i < v->count && i < KEPT; i++)
		find(v, "%s", v->text[i]);
	if (v->count > KEPT)
		find(v, "journal: %llu more of that kind", (unsigned long long)(v->count - KEPT));
	if (rc == NOH_OK && oldest && end.frame < v->walk.stamp)
		find(v, "image/data.mdb says to have frame %llu, but the journal ends with frame %llu: the image "
		     "has another journal's stamp, or the journal's end is lost",
		     (unsigned long long)v->walk.stamp, (unsigned long long)end.frame);
	if (rc == NOH_OK && v->c->db && oldest > v->walk.stamp + 1)
		find(v, "the journal begins with frame %llu, but the image ends with %llu: what was between them "
		     "is lost", (unsigned long long)oldest, (unsigned long long)v->walk.stamp);
	v->sum.frames = rc == NOH_OK && end.frame > v->walk.after ? end.frame - v->walk.after : 0;
	v->sum.torn_bytes = end.cut_bytes;
	return NOH_OK;
}

static void problem(void *arg, const char *what)
{
	find(arg, "image/data.mdb, %s", what);
}

static void image_progress(void *arg, uint64_t done, uint64_t all)
{
	struct verify *v = arg;

	v->sum.rows = all;
	if (v->progress)
		v->progress(v->user, "image", done, all);
}

static int check_image(struct verify *v)
{
	int64_t n = db_verify(v->c->db, problem, image_progress, v);

	return n < 0 ? (int)n : NOH_OK;
}

static void pages_progress(void *arg, uint64_t done, uint64_t all)
{
	struct verify *v = arg;

	if (v->progress)
		v->progress(v->user, "pages", done, all);
}

/* LMDB is shown no file whose pages would lead it astray. A running box has opened it already, and changes
 * it: then its own word has to do. */
static int open_image(struct verify *v)
{
	char path[PATH_MAX];
	struct stat st;
	int64_t n = 0;
	int rc = files_path(path, v->c->dir.path, "image/data.mdb");

	if (rc == NOH_OK && !v->c->running && stat(path, &st) == 0)
		n = db_pages(path, problem, pages_progress, v);
	if (rc != NOH_OK || n < 0)
		return rc != NOH_OK ? rc : (int)n;
	if (n > 0)
		return NOH_OK;                   /* without the image */
	rc = care_image(v->c);
	if (rc == NOH_ECORRUPT)
		find(v, "%s", noh_why());
	return rc == NOH_ECORRUPT ? NOH_OK : rc;
}

static int verify_both(struct verify *v)
{
	char path[PATH_MAX];
	int rc = open_image(v);

	if (rc != NOH_OK)
		return rc;
	if (files_path(path, v->c->dir.path, JOURNAL_DIR) == NOH_OK)
		v->sum.journal_bytes = files_bytes(path, ".seg", &v->sum.segments);
	if (files_path(path, v->c->dir.path, "image") == NOH_OK)
		v->sum.image_bytes = files_bytes(path, "data.mdb", NULL);
	rc = check_journal(v);
	forget_images(v);
	if (rc == NOH_OK && v->c->db)
		rc = check_image(v);
	return rc;
}

int noh_verify(const char *dir, noh_found_fn *found, noh_progress_fn *progress, void *user,
	       noh_verified *verified)
{
	struct verify *v = mem_zalloc(sizeof *v);
	struct care c;
	int rc;

	if (verified)
		*verified = (noh_verified){ 0 };
	if (!v)
		return error_set(NOH_ENOMEM, "no memory to verify %s", dir);
	v->c = &c;
	v->found = found;
	v->progress = progress;
	v->user = user;
	rc = care_open(&c, dir);
	if (rc == NOH_OK)
		rc = verify_both(v);
	if (rc == NOH_OK && v->sum.findings)
		rc = error_set(NOH_ECORRUPT, "%s is damaged: %llu findings", c.dir.path,
			       (unsigned long long)v->sum.findings);
	if (verified)
		*verified = v->sum;
	care_close(&c);
	mem_free(v, sizeof *v);
	return rc;
}
