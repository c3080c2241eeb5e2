#include "persist/walk.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/plant.h"

#include <inttypes.h>
#include <string.h>

#define WINDOW (4u << 20)

void walk_open(struct walk *w, struct disk *disk, uint64_t dir_id)
{
	*w = (struct walk){ .disk = disk, .dir_id = dir_id };
}

static void close_file(struct walk *w)
{
	if (w->file)
		disk_close(w->disk, w->file);
	w->file = NULL;
	w->file_number = 0;
	w->window_len = 0;
}

void walk_close(struct walk *w)
{
	close_file(w);
	mem_free(w->window, w->window_room);
	mem_free(w->pieces, w->pieces_room);
	segment_list_free(&w->segments);
}

void walk_refresh(struct walk *w)
{
	w->window_len = 0;
}

void walk_drop(struct walk *w, size_t count)
{
	struct segment_list *s = &w->segments;

	memmove(s->at, s->at + count, (s->count - count) * sizeof *s->at);
	s->count -= count;
	if (w->at < count) {              /* it had read all of that segment */
		w->at = 0;
		w->off = DISK_BLOCK;
		if (s->count && s->at[0].first) {        /* a run begins there, after its own sum */
			w->sum = s->at[0].sum;
			w->sum_known = true;
			w->last = w->group = s->at[0].first - 1;
		}
	} else {
		w->at -= count;
	}
	close_file(w);
}

static int corrupt(struct walk *w, size_t at, uint64_t off, const char *why)
{
	return error_set(NOH_ECORRUPT, "%s is damaged at offset %" PRIu64 ": %s; restore the "
			 "directory from a backup", segment_name(w->segments.at[at].number, "seg").text, off, why);
}

/* ── one frame ── */

/* As long as a segment, up to WINDOW: a frame always fits. */
static int make_window(struct walk *w, uint64_t segment_bytes)
{
	size_t room = segment_bytes < WINDOW ? (size_t)segment_bytes : WINDOW;

	if (room <= w->window_room)
		return NOH_OK;
	mem_free(w->window, w->window_room);
	w->window_len = w->window_room = 0;
	w->window = mem_aligned(DISK_BLOCK, room);
	if (!w->window)
		return error_set(NOH_ENOMEM, "no memory to read the journal");
	w->window_room = room;
	return NOH_OK;
}

/* Make `len` bytes of a segment at `off` readable; *p is NULL if the file does not have them. */
static int look(struct walk *w, size_t at, uint64_t off, size_t len, const uint8_t **p)
{
	uint64_t number = w->segments.at[at].number;
	int rc;

	*p = NULL;
	if (w->file_number != number) {
		close_file(w);
		rc = disk_open(w->disk, segment_name(number, "seg").text, 0, &w->file);
		if (rc != NOH_OK) {
			w->file = NULL;
			return rc == NOH_END ? corrupt(w, at, 0, "it is gone") : rc;
		}
		w->file_number = number;
	}
	if (!w->window_len || off < w->window_off || off + len > w->window_off + w->window_len) {
		rc = make_window(w, w->segments.at[at].bytes);
		if (rc != NOH_OK)
			return rc;
		w->window_off = off;
		w->window_len = 0;
		rc = disk_read(w->disk, w->file, w->window, w->window_room, off, &w->window_len);
		if (rc != NOH_OK)
			return rc;
	}
	if (off + len <= w->window_off + w->window_len)
		*p = w->window + (off - w->window_off);
	return NOH_OK;
}

/* The frame at `off`, if one is there, checked by itself; else *h is NULL. */
static int frame_at(struct walk *w, size_t at, uint64_t off, const struct frame_head **h)
{
	const struct segment_info *s = &w->segments.at[at];
	const struct frame_head *f;
	const uint8_t *p;
	int rc;

	*h = NULL;
	if (off + DISK_BLOCK > s->bytes)
		return NOH_OK;
	rc = look(w, at, off, sizeof *f, &p);
	if (rc != NOH_OK || !p)
		return rc;
	f = (const struct frame_head *)(const void *)p;
	if (f->magic != FRAME_MAGIC || f->format != FRAME_FORMAT || f->dir_id != w->dir_id ||
	    f->segment != s->number || f->segment_epoch != s->epoch ||
	    f->bytes == 0 || f->bytes > FRAME_MAX - sizeof *f ||
	    frame_size(f->bytes) > s->bytes - off)
		return NOH_OK;
	rc = look(w, at, off, frame_size(f->bytes), &p);
	if (rc != NOH_OK || !p)
		return rc;
	f = (const struct frame_head *)(const void *)p;
	if (!PLANT(PLANT_SKIP_CHECKSUM) && f->sum != frame_sum(f))
		return NOH_OK;
	if (f->epoch > w->top_epoch)
		w->top_epoch = f->epoch;
	*h = f;
	return NOH_OK;
}

/* The first segment of the next run; segments.count: there is none. */
static size_t next_run(const struct walk *w)
{
	size_t i = w->at + 1;

	while (i < w->segments.count && w->segments.at[i].epoch == w->segments.at[w->at].epoch)
		i++;
	return i < w->segments.count ? i : w->segments.count;
}

/* Is it the one that comes next? */
static bool follows(const struct walk *w, const struct frame_head *h)
{
	size_t next = next_run(w);

	return h && h->number == w->last + 1 && (!w->sum_known || h->before == w->sum) &&
	       (next == w->segments.count || h->number < w->segments.at[next].first);
}

/* ── groups ── */

static int give_records(struct walk *w, const uint8_t *at, const uint8_t *end, uint64_t number,
			uint64_t epoch, journal_each_fn *each, void *arg)
{
	const struct record_head *head;
	const uint8_t *parts, *parts_end;

	while (record_next(&at, end, &head, &parts, &parts_end)) {
		int rc = each(arg, number, epoch, head, parts, parts_end);

		if (rc != NOH_OK) {
			w->stopped = true;
			return rc;
		}
	}
	return at == end ? NOH_OK : corrupt(w, w->at, w->off, "a record in it makes no sense");
}

static int keep_piece(struct walk *w, const uint8_t *bytes, size_t len)
{
	if (w->pieces_len + len > w->pieces_room) {
		size_t room = 2 * (w->pieces_len + len);
		uint8_t *more = mem_alloc(room);

		if (!more)
			return error_set(NOH_ENOMEM, "no memory for a group of %zu bytes", room);
		if (w->pieces_len)
			memcpy(more, w->pieces, w->pieces_len);
		mem_free(w->pieces, w->pieces_room);
		w->pieces = more;
		w->pieces_room = room;
	}
	memcpy(w->pieces + w->pieces_len, bytes, len);
	w->pieces_len += len;
	return NOH_OK;
}

static int give_group(struct walk *w, const struct frame_head *h, journal_each_fn *each, void *arg)
{
	const uint8_t *bytes = (const uint8_t *)(h + 1);
	int rc;

	if (h->flags & FRAME_FIRST)
		w->pieces_len = 0;
	if ((h->flags & FRAME_FIRST) && (h->flags & FRAME_LAST))      /* nearly always */
		return give_records(w, bytes, bytes + h->bytes, h->number, h->epoch, each, arg);
	rc = keep_piece(w, bytes, h->bytes);
	if (rc != NOH_OK || !(h->flags & FRAME_LAST))
		return rc;
	return give_records(w, w->pieces, w->pieces + w->pieces_len, h->number, h->epoch, each, arg);
}

/* Take the frame at w->off. *ended: it ended a group that somebody was told of. */
static int take(struct walk *w, const struct frame_head *h, journal_each_fn *each, void *arg,
		bool *ended)
{
	bool first = h->flags & FRAME_FIRST, last = h->flags & FRAME_LAST;
	int rc = NOH_OK;

	*ended = false;
	if (h->number > w->after) {
		if (first != (w->group == w->last))
			return corrupt(w, w->at, w->off, "it belongs to no group");
		if (first)
			w->group_bytes = 0;
		w->group_bytes += frame_size(h->bytes);
		rc = give_group(w, h, each, arg);
		if (rc != NOH_OK)
			return rc;
		*ended = last;
		w->bytes += last ? w->group_bytes : 0;
	}
	w->last = h->number;
	w->sum = h->sum;
	w->sum_known = true;
	w->goes_on = h->flags & FRAME_GOES_ON;
	w->off += frame_size(h->bytes);
	if (last) {
		w->group = h->number;
		w->epoch = h->epoch;
		w->group_bytes = 0;
	}
	return NOH_OK;
}

/* ── where a frame is not ── */

/* What begins like frame k but is not whole: how long it would have been. */
static size_t torn_size(struct walk *w, size_t at, uint64_t off, uint64_t k)
{
	const struct segment_info *s = &w->segments.at[at];
	const struct frame_head *f;
	const uint8_t *p;

	if (look(w, at, off, sizeof *f, &p) != NOH_OK || !p)
		return 0;
	f = (const struct frame_head *)(const void *)p;
	return f->magic == FRAME_MAGIC && f->segment == s->number && f->segment_epoch == s->epoch &&
	       f->number == k && f->bytes <= FRAME_MAX - sizeof *f ? frame_size(f->bytes) : 0;
}

/* Does a whole frame behind this place say that frame k was on disk? Counts what is cut. */
static int search(struct walk *w, uint64_t k)
{
	const struct frame_head *h;
	uint64_t off = w->off;
	int rc;

	w->cut = w->group_bytes + torn_size(w, w->at, w->off, k);
	for (size_t i = w->at; i < w->segments.count; i++, off = DISK_BLOCK) {
		while (off + DISK_BLOCK <= w->segments.at[i].bytes) {
			rc = frame_at(w, i, off, &h);
			if (rc != NOH_OK)
				return rc;
			if (h && h->durable >= k && !PLANT(PLANT_GAP_IS_WHOLE))
				return corrupt(w, w->at, w->off,
					       "a frame is missing here that was on disk before");
			w->cut += h ? frame_size(h->bytes) : 0;
			off += h ? frame_size(h->bytes) : DISK_BLOCK;
		}
	}
	return NOH_END;
}

/* The frame that comes next, if it is there: the walk stands before it. Else *h is NULL, or not the one. */
static int find_next(struct walk *w, const struct frame_head **h)
{
	int rc = frame_at(w, w->at, w->off, h);

	if (rc != NOH_OK || follows(w, *h) || w->at + 1 >= next_run(w))
		return rc;
	rc = frame_at(w, w->at + 1, DISK_BLOCK, h);
	if (rc == NOH_OK && follows(w, *h)) {
		w->at++;
		w->off = DISK_BLOCK;
	}
	return rc;
}

static int last_run_ends(struct walk *w)
{
	const struct frame_head *h;
	int rc = search(w, w->last + 1);

	if (rc == NOH_END && w->goes_on && w->at + 1 == w->segments.count && !w->beside)
		return error_set(NOH_ECORRUPT, "%s is missing: the journal goes on in it after frame %" PRIu64
				 "; put it back, or restore the directory from a backup",
				 segment_name(w->segments.at[w->at].number + 1, "seg").text, w->last);
	if (rc != NOH_ECORRUPT || !w->beside)
		return rc;
	walk_refresh(w);
	return find_next(w, &h) == NOH_OK && follows(w, h) ? NOH_OK : rc;
}

/* No frame follows here. NOH_OK: it goes on with the next run, or with a frame that has come since. */
static int run_ends(struct walk *w)
{
	size_t next = next_run(w);
	const struct segment_info *s = &w->segments.at[next];

	if (next == w->segments.count)
		return w->live ? corrupt(w, w->at, w->off, "a frame is missing here") : last_run_ends(w);
	if (s->first > w->group + 1)
		return corrupt(w, w->at, w->off,
			       "a frame is missing here that an earlier start has read");
	w->at = next;
	w->off = DISK_BLOCK;
	w->last = w->group = s->first - 1;
	w->sum = s->sum;
	w->sum_known = true;
	w->goes_on = false;
	w->group_bytes = 0;
	return NOH_OK;
}

int walk_next(struct walk *w, journal_each_fn *each, void *arg)
{
	const struct frame_head *h;
	bool ended = false;
	int rc = NOH_OK;

	w->stopped = false;
	if (w->segments.count == 0)
		return NOH_END;
	while (rc == NOH_OK && !ended) {
		rc = find_next(w, &h);
		if (rc != NOH_OK)
			break;
		rc = follows(w, h) ? take(w, h, each, arg, &ended) : run_ends(w);
	}
	return rc;
}

/* ── the beginning ── */

/* The number of a segment's first frame; 0: it is not known. */
static int first_frame(struct walk *w, size_t at, uint64_t *first)
{
	const struct frame_head *h;
	int rc;

	*first = w->segments.at[at].first;
	if (*first)
		return NOH_OK;
	rc = frame_at(w, at, DISK_BLOCK, &h);
	*first = rc == NOH_OK && h ? h->number : 0;
	return rc;
}

int walk_start(struct walk *w, uint64_t after)
{
	uint64_t first = 0;
	int rc;

	w->at = 0;
	w->off = DISK_BLOCK;
	w->after = w->last = w->group = after;
	w->sum_known = w->goes_on = false;
	w->bytes = w->group_bytes = w->cut = 0;
	for (size_t i = w->segments.count; i-- > 0; ) {
		const struct segment_info *s = &w->segments.at[i];

		rc = first_frame(w, i, &first);
		if (rc != NOH_OK)
			return rc;
		if (first == 0 || first > after + 1)
			continue;
		w->at = i;
		w->last = w->group = first - 1;
		w->sum = s->sum;
		w->sum_known = s->first != 0;
		return NOH_OK;
	}
	if (first > after + 1)
		return error_set(NOH_ECORRUPT, "the journal begins with frame %" PRIu64 " in %s, but "
				 "frame %" PRIu64 " comes next: a segment is missing; restore the "
				 "directory from a backup", first, segment_name(w->segments.at[0].number, "seg").text,
				 after + 1);
	return NOH_OK;
}
