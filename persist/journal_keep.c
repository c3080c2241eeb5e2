/* persist/journal_keep.c - the journal's other side: opening it, reading it back, making and letting go
 * of segments. All of it may block; none of it is done by the journaller. */
#include "persist/journal_inside.h"

#include "core/error.h"
#include "core/mem.h"
#include "core/must.h"

#include <string.h>

#define RING_BYTES    (4u << 20)
#define RING_LEAST    (64u << 10)
#define RING_SMALL    (256u << 10)
#define LIMIT_BYTES   (UINT64_C(256) << 20)

/* Weak: unit tests open hundreds of boxes, whose first segments of this size the disk would have to fill (tests/lib/test.c). */
__attribute__((weak)) const uint64_t journal_usual_segment = UINT64_C(32) << 20;

static_assert(GATHER_INLINE == JOURNAL_INLINE, "one number under two names");
static_assert(RING_LEAST >= 2 * (JOURNAL_INLINE + sizeof(struct gather_entry)), "room is possible");
static_assert(offsetof(struct record_head, tag) == 8, "gather.c reads it there");

/* ── the list of segments, oldest first ── */

static struct segment *list_add(struct journal *j, const struct segment_info *info)
{
	struct segment *s = mem_zalloc(sizeof *s);

	if (!s)
		return NULL;
	s->info = *info;
	if (j->keeper.newest)
		j->keeper.newest->newer = s;
	else
		j->keeper.oldest = s;
	j->keeper.newest = s;
	store_relaxed(&j->kept.segments, load_relaxed(&j->kept.segments) + 1);
	return s;
}

/* Forget the oldest. Nothing is on its way to it. */
static void list_drop(struct journal *j)
{
	struct segment *s = j->keeper.oldest;
	struct walk *w = &j->keeper.walk;

	if (w->segments.count && w->segments.at[0].number == s->info.number)
		walk_drop(w, 1);
	if (s->file)
		disk_close(j->fixed.disk, s->file);
	j->keeper.oldest = s->newer;
	if (!s->newer)
		j->keeper.newest = NULL;
	mem_free(s, sizeof *s);
	store_relaxed(&j->kept.segments, load_relaxed(&j->kept.segments) - 1);
}

static bool all_folded(struct journal *j, struct segment *s)
{
	if (!s->file)
		return j->keeper.folded >= j->fixed.old_last;
	uint64_t last = load_acquire(&s->last);

	return last && last <= j->keeper.folded;
}

/* ── making the next segment ── */

/* Frames are written meanwhile, and the next segment has grown by more than four times what has gone of this one's rest. */
static bool has_time(void *arg, uint64_t done)
{
	struct journal *j = arg;
	uint64_t used = load_relaxed(&j->shown.used), half = j->fixed.segment_bytes / 2;
	bool moves = used != j->keeper.used_then;

	j->keeper.used_then = used;
	return moves && (used <= half || done > 4 * (used - half));
}

static int make_next(struct journal *j)
{
	struct segment *old = j->keeper.oldest;
	struct segment_info info = { .number = j->keeper.newest->info.number + 1,
				     .epoch = j->keeper.newest->info.epoch,
				     .bytes = j->fixed.segment_bytes };
	bool recycle = all_folded(j, old) && old->info.bytes == info.bytes;
	uint64_t recycled = recycle ? old->info.number : 0;
	struct disk_file *file;

	if (recycle)
		list_drop(j);
	int rc = segment_make(j->fixed.disk, j->fixed.dir_id, &info, recycled, &file);

	store_seq_cst(&j->kept.no_space, rc == NOH_ENOSPC);
	if (rc != NOH_OK)
		return rc == NOH_ENOSPC ? NOH_OK : rc;      /* no space is a state, not a failure */
	struct segment *s = list_add(j, &info);

	if (!s) {
		disk_close(j->fixed.disk, file);
		return error_set(NOH_ENOMEM, "no memory for a segment");
	}
	s->file = file;
	must(!load_relaxed(&j->kept.next));
	store_seq_cst(&j->kept.next, s);                                       /* J */
	gather_wake(&j->gather);
	return NOH_OK;
}

/* As many folded ones stay, to be recycled, as the limit allows. Each is gone for good before the next one goes: a segment
 * without the one after it is the sign of a journal that has lost its end. */
static int let_go(struct journal *j)
{
	uint64_t most = j->fixed.limit / j->fixed.segment_bytes + 2;
	int rc = NOH_OK;

	while (rc == NOH_OK && all_folded(j, j->keeper.oldest) &&
	       (load_relaxed(&j->kept.segments) > most ||
		j->keeper.oldest->info.bytes != j->fixed.segment_bytes)) {
		uint64_t number = j->keeper.oldest->info.number;

		list_drop(j);
		rc = disk_remove(j->fixed.disk, segment_name(number, "seg").text);
		if (rc == NOH_OK || rc == NOH_END)
			rc = disk_sync_dir(j->fixed.disk, JOURNAL_DIR);
	}
	return rc;
}

/* How many bytes of frames are folded: exactly, if `frame` is where journal_read stopped. */
static uint64_t folded_pos(struct journal *j, uint64_t frame)
{
	uint64_t pos = load_relaxed(&j->kept.folded_pos);
	uint64_t durable_pos = load_acquire(&j->shown.durable_pos);   /* first: too low is fine */

	if (frame >= load_acquire(&j->shown.durable_frame) && durable_pos > pos)
		pos = durable_pos;
	if (frame == j->keeper.reached && j->keeper.reached_pos > pos)
		pos = j->keeper.reached_pos;
	for (struct segment *s = j->keeper.oldest; s && all_folded(j, s); s = s->newer)
		if (load_acquire(&s->end_pos) > pos)
			pos = load_acquire(&s->end_pos);
	return pos;
}

static int prepare(struct journal *j)
{
	uint64_t used = load_relaxed(&j->shown.used), half = j->fixed.segment_bytes / 2;

	store_seq_cst(&j->kept.wanted, 0);
	if (load_acquire(&j->kept.next) || used <= DISK_BLOCK ||
	    (used < half && j->fixed.segment_bytes - used >= 2 * j->fixed.need))
		return NOH_OK;
	return make_next(j);
}

int journal_prepare(struct journal *j)
{
	int rc;

	pthread_mutex_lock(&j->kept.lock);
	rc = prepare(j);
	pthread_mutex_unlock(&j->kept.lock);
	return rc;
}

void journal_prepare_sleep(struct journal *j, uint64_t timeout_ns)
{
	futex_wait(&j->kept.wanted, 0, timeout_ns);
}

void journal_prepare_wake(struct journal *j)
{
	store_seq_cst(&j->kept.wanted, 1);
	futex_wake_all(&j->kept.wanted);
}

static int folded(struct journal *j, uint64_t frame)
{
	uint64_t pos;
	int rc;

	if (frame > j->keeper.folded)
		j->keeper.folded = frame;
	pos = folded_pos(j, j->keeper.folded);
	if (pos != load_relaxed(&j->kept.folded_pos)) {
		store_seq_cst(&j->kept.folded_pos, pos);
		gather_wake(&j->gather);
	}
	rc = prepare(j);
	return rc == NOH_OK ? let_go(j) : rc;
}

int journal_folded(struct journal *j, uint64_t frame)
{
	int rc;

	pthread_mutex_lock(&j->kept.lock);
	rc = folded(j, frame);
	pthread_mutex_unlock(&j->kept.lock);
	return rc;
}

/* ── reading back ── */

static int follow_segments(struct journal *j)
{
	struct walk *w = &j->keeper.walk;

	for (struct segment *s = j->keeper.oldest; s; s = s->newer) {
		int rc = NOH_OK;

		if (!w->segments.count ||
		    w->segments.at[w->segments.count - 1].number < s->info.number)
			rc = segment_list_add(&w->segments, &s->info);
		if (rc != NOH_OK)
			return rc;
	}
	walk_refresh(w);
	return NOH_OK;
}

static int read_frames(struct journal *j, uint64_t after, uint64_t last, uint64_t most, journal_each_fn *each,
		       void *arg, uint64_t *upto, uint64_t *epoch)
{
	struct walk *w = &j->keeper.walk;
	uint64_t durable = load_acquire(&j->shown.durable_frame);
	int rc = NOH_OK;

	if (durable > last)
		durable = last;
	if (after >= durable)
		return NOH_END;
	if (j->keeper.mark == UINT64_MAX) {      /* the first: what recovery counted comes after it */
		j->keeper.mark = after;
		j->keeper.mark_pos = 0;
	}
	if (after == j->keeper.reached) {        /* folded; else it is read once more, less of it perhaps */
		j->keeper.mark = after;
		j->keeper.mark_pos = j->keeper.reached_pos;
	}
	rc = follow_segments(j);
	if (rc == NOH_OK && (!j->keeper.walking || w->group != after))
		rc = walk_start(w, after);
	uint64_t before = w->bytes;

	while (rc == NOH_OK && w->group < durable && w->bytes - before < most)
		rc = walk_next(w, each, arg);
	j->keeper.walking = rc == NOH_OK;
	if (rc != NOH_OK)
		return rc == NOH_END && !w->stopped ? NOH_ECORRUPT : rc;
	if (after == j->keeper.mark) {
		j->keeper.reached = w->group;
		j->keeper.reached_pos = j->keeper.mark_pos + w->bytes - before;
	}
	*upto = w->group;
	*epoch = w->epoch;
	return NOH_OK;
}

int journal_read_to(struct journal *j, uint64_t after, uint64_t last, uint64_t most, journal_each_fn *each,
		    void *arg, uint64_t *upto, uint64_t *epoch)
{
	int rc;

	pthread_mutex_lock(&j->kept.lock);
	rc = read_frames(j, after, last, most, each, arg, upto, epoch);
	pthread_mutex_unlock(&j->kept.lock);
	return rc;
}

int journal_read(struct journal *j, uint64_t after, uint64_t most, journal_each_fn *each, void *arg,
		 uint64_t *upto, uint64_t *epoch)
{
	return journal_read_to(j, after, UINT64_MAX, most, each, arg, upto, epoch);
}

/* ── open and close ── */

static int open_old(struct journal *j, const struct journal_end *end)
{
	struct segment_list list;
	int rc = segment_remove_unfinished(j->fixed.disk);

	if (rc != NOH_OK)
		return rc;
	rc = journal_settle(j->fixed.disk);          /* this run builds on it */
	if (rc != NOH_OK)
		return rc;
	rc = segment_list(j->fixed.disk, &list);
	for (size_t i = 0; rc == NOH_OK && i < list.count; i++) {
		must(list.at[i].number <= end->segment);
		rc = segment_look(j->fixed.disk, j->fixed.dir_id, &list.at[i]);
		struct segment *s = rc == NOH_OK ? list_add(j, &list.at[i]) : NULL;

		if (rc == NOH_OK && !s)
			rc = error_set(NOH_ENOMEM, "no memory for a segment");
		if (s)
			store_relaxed(&s->end_pos, end->bytes);
	}
	segment_list_free(&list);
	return rc == NOH_END ? error_set(NOH_EDISK, "a segment went away") : rc;
}

/* A run begins in a segment of its own: its head says after which frame. */
static int open_first(struct journal *j, const struct journal_end *end)
{
	struct segment_info info = { .number = end->segment + 1, .epoch = end->epoch + 1,
				     .first = end->frame + 1, .bytes = j->fixed.segment_bytes };
	struct disk_file *file;
	int rc = segment_make(j->fixed.disk, j->fixed.dir_id, &info, 0, &file);

	if (rc != NOH_OK)
		return rc;
	j->mine.segment = list_add(j, &info);
	if (!j->mine.segment) {
		disk_close(j->fixed.disk, file);
		return error_set(NOH_ENOMEM, "no memory for a segment");
	}
	j->mine.segment->file = file;
	j->mine.used = DISK_BLOCK;
	j->mine.sum = info.sum;
	store_relaxed(&j->shown.used, j->mine.used);
	return NOH_OK;
}

static bool open_memory(struct journal *j, uint32_t rings, uint64_t ring_bytes, uint64_t last_bytes, uint64_t epoch)
{
	j->mine.flights = j->fixed.disk->in_flight ? j->fixed.disk->in_flight : 1;
	j->fixed.rings = rings;
	j->mine.flight = mem_zalloc(j->mine.flights * sizeof *j->mine.flight);
	j->mine.limit = mem_zalloc(rings * sizeof *j->mine.limit);
	for (uint64_t i = 0; j->mine.flight && i < j->mine.flights; i++) {
		j->mine.flight[i].buf = mem_aligned(DISK_BLOCK, FRAME_MAX);
		if (!j->mine.flight[i].buf)
			return false;
	}
	return j->mine.flight && j->mine.limit && gather_open(&j->gather, rings, ring_bytes, last_bytes, epoch);
}

/* Rings together are at most a quarter of a segment by default, and never more than half of one: while
 * the next segment cannot be made, this one takes what they hold. */
static uint64_t plan_sizes(struct journal *j, const struct journal_options *o, uint64_t *last)
{
	uint64_t segment = o->segment_bytes ? o->segment_bytes : journal_usual_segment;
	uint64_t ring = o->ring_bytes ? o->ring_bytes : RING_BYTES;
	uint32_t large = o->rings - o->small_last;

	while (!o->ring_bytes && ring > RING_LEAST && ring * large > segment / 4)
		ring /= 2;
	must(ring >= RING_LEAST && (ring & (ring - 1)) == 0);
	*last = o->small_last && ring > RING_SMALL ? RING_SMALL : ring;
	j->fixed.need = ring * (o->rings - 1) + *last + (o->rings + 8) * 2 * (uint64_t)DISK_BLOCK;
	if (segment < 2 * j->fixed.need)
		segment = 2 * j->fixed.need;
	j->fixed.segment_bytes = (segment + DISK_BLOCK - 1) / DISK_BLOCK * DISK_BLOCK;
	j->fixed.limit = o->limit_bytes ? o->limit_bytes : LIMIT_BYTES;
	return ring;
}

static void start_above(struct journal *j, const struct journal_end *end)
{
	store_relaxed(&j->durable.epoch, end->epoch);
	store_relaxed(&j->shown.durable_frame, end->frame);
	store_relaxed(&j->shown.durable_pos, end->bytes);
	store_relaxed(&j->shown.pos, end->bytes);
	j->fixed.old_last = end->frame;
	j->mine.frame = j->mine.written = end->frame;
	j->mine.pos = j->mine.written_pos = end->bytes;
	j->keeper.mark = UINT64_MAX;
	j->keeper.reached = UINT64_MAX;
	j->keeper.walk.live = true;
}

int journal_open(struct journal **out, const struct journal_options *o, const struct journal_end *end)
{
	struct journal *j = mem_aligned(CACHE_LINE, sizeof *j);
	int rc;

	must(o->rings > 0);
	if (!j)
		return error_set(NOH_ENOMEM, "no memory for the journal");
	pthread_mutex_init(&j->kept.lock, NULL);
	j->fixed.disk = o->disk;
	j->fixed.dir_id = o->dir_id;
	j->fixed.clock = o->clock;
	j->fixed.on_durable = o->on_durable;
	j->fixed.arg = o->arg;
	j->fixed.events = o->events;
	o->disk->has_time = has_time;
	o->disk->time_arg = j;
	uint64_t last_bytes, ring_bytes = plan_sizes(j, o, &last_bytes);

	walk_open(&j->keeper.walk, o->disk, o->dir_id);
	start_above(j, end);
	if (open_memory(j, o->rings, ring_bytes, last_bytes, end->epoch + 1))
		rc = open_old(j, end);
	else
		rc = error_set(NOH_ENOMEM, "no memory for the journal's rings");
	if (rc == NOH_OK)
		rc = open_first(j, end);
	if (rc != NOH_OK) {
		journal_close(j);
		return rc;
	}
	*out = j;
	return NOH_OK;
}

void journal_close(struct journal *j)
{
	uint64_t ticket;
	int result;

	if (!j)
		return;
	must(j->mine.first == j->mine.after || load_relaxed(&j->shown.failed));
	if (j->mine.first != j->mine.after)          /* it failed: the buffers are still the disk's */
		while (disk_reap(j->fixed.disk, true, &ticket, &result) == NOH_OK)
			;
	j->fixed.disk->has_time = NULL;
	while (j->keeper.oldest)
		list_drop(j);
	walk_close(&j->keeper.walk);
	gather_close(&j->gather);
	for (uint64_t i = 0; j->mine.flight && i < j->mine.flights; i++)
		mem_free(j->mine.flight[i].buf, FRAME_MAX);
	mem_free(j->mine.flight, j->mine.flights * sizeof *j->mine.flight);
	mem_free(j->mine.limit, j->fixed.rings * sizeof *j->mine.limit);
	pthread_mutex_destroy(&j->kept.lock);
	mem_free(j, sizeof *j);
}

/* What is under way is as old as its group. Else something waits in the rings only while there is no room for it. */
static uint64_t lag_ns(struct journal *j)
{
	uint64_t since = load_relaxed(&j->shown.oldest_ns), now = j->fixed.clock ? clock_now_ns(j->fixed.clock) : 0;

	if (!since)
		since = load_relaxed(&j->shown.stuck_ns);
	return since && now > since ? now - since : 0;
}

void journal_get_histograms(struct journal *j, struct histogram_sum *commit, struct histogram_sum *records)
{
	histogram_collect(commit, &j->shown.commit);
	histogram_collect(records, &j->shown.group);
}

void journal_get_stats(struct journal *j, struct journal_stats *stats)
{
	uint64_t pos = load_relaxed(&j->shown.pos), folded = load_relaxed(&j->kept.folded_pos);

	*stats = (struct journal_stats){
		.frames = load_relaxed(&j->shown.frames),
		.records = load_relaxed(&j->shown.records),
		.bytes = load_relaxed(&j->shown.bytes),
		.epochs = load_relaxed(&j->shown.epochs),
		.segments = load_relaxed(&j->kept.segments),
		.unfolded_bytes = pos > folded ? pos - folded : 0,
		.full_waits = load_relaxed(&j->shown.full_waits),
		.durable_frame = load_acquire(&j->shown.durable_frame),
		.durable_epoch = load_acquire(&j->durable.epoch),
		.no_space = load_relaxed(&j->kept.no_space),
		.segment_bytes = j->fixed.segment_bytes,
		.kept_bytes = load_relaxed(&j->kept.segments) * j->fixed.segment_bytes,
		.lag_ns = lag_ns(j),
		.failed = load_relaxed(&j->shown.failed),
	};
}
