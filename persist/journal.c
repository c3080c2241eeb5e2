/* persist/journal.c - the journaller: collects, writes, publishes.
 *
 * An epoch's records are a group of frames (frame.h). Frames are built in the buffers of `flight`, which
 * is a queue: submitted at one end, published at the other, in order, whatever order the disk ends them
 * in. An epoch without records is published with the last frame on its way, or at once.
 *
 * The keeper makes segments and hands them over through `next`; segments it can let go are those whose
 * last frame is folded, and a folded frame is durable, so nothing is on its way to them.
 *
 *     keeper       makes a segment, stores `next` (J), wakes the journaller
 *     journaller   takes `next` (K), writes to it
 * J -> K  publishes the segment. With K relaxed its file may not be seen yet.
 * L -> M  durable: whoever sees the epoch may read the frame's effects from anywhere.
 * N, O    waiters: a waiter counts itself, then looks at durable; the publisher stores durable, then looks
 *         for waiters. Both seq_cst, or both may miss the other.
 */
#include "persist/journal_inside.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/must.h"
#include "core/plant.h"

#include <stdio.h>
#include <string.h>

/* ── publishing ── */

static void wake_waiters(struct journal *j)
{
	if (load_seq_cst(&j->waiting.count) == 0)                              /* O */
		return;
	add_seq_cst(&j->waiting.event, 1);
	futex_wake_all(&j->waiting.event);
}

static void tell(struct journal *j)
{
	wake_waiters(j);
	if (j->fixed.on_durable)
		j->fixed.on_durable(j->fixed.arg, load_relaxed(&j->durable.epoch));
}

static void publish_epoch(struct journal *j, uint64_t epoch)
{
	must(epoch > load_relaxed(&j->durable.epoch));
	store_seq_cst(&j->durable.epoch, epoch);                               /* L, O */
	count_one(&j->shown.epochs, 1);
	tell(j);
}

static int fail(struct journal *j)
{
	snprintf(j->mine.why, sizeof j->mine.why, "%s", noh_why());
	store_relaxed(&j->shown.closed, 1);
	store_seq_cst(&j->shown.failed, 1);
	wake_waiters(j);
	return NOH_EDISK;
}

static int failed_before(struct journal *j)
{
	return error_set(NOH_EDISK, "%s", j->mine.why);
}

static uint64_t now_ns(const struct journal *j)
{
	return j->fixed.clock ? clock_now_ns(j->fixed.clock) : 0;
}

static void show_oldest(struct journal *j)
{
	bool any = j->mine.first != j->mine.after;

	store_relaxed(&j->shown.oldest_ns, any ? j->mine.flight[j->mine.first % j->mine.flights].began_ns : 0);
}

static void measure(struct journal *j, const struct flight *last)
{
	uint64_t took = now_ns(j) - last->began_ns;

	histogram_add(&j->shown.commit, &histogram_latency, took);
	histogram_add(&j->shown.group, &histogram_group, last->records);
	j->mine.last_records = last->records;
	j->mine.commit_ns += took / 8 - j->mine.commit_ns / 8;
	j->mine.mean_records += last->records * 32 - j->mine.mean_records / 8;
}

#define MANY_RECORDS 8
#define MOST_RECORDS 4096              /* beyond that a group costs what its records do */
#define PAUSE_MOST_NS 200000u
#define PAUSE_LEAST_NS 30000u          /* less than that is not worth a timer */

/* Each group costs two trips to the disk and the wake-ups of all who wait for it, however few its records are. Where many write
 * at once, the answers of one group bring the next records; begun at once, the next group would have the first few of them,
 * and the rest would wait for another (docs/decisions/0005). So there is a pause, of half the time that a group takes. */
uint64_t journal_pause_ns(const struct journal *j)
{
	uint64_t pause = j->mine.commit_ns / 2;

	if (j->mine.last_records < MANY_RECORDS || j->mine.last_records > MOST_RECORDS || pause < PAUSE_LEAST_NS)
		return 0;
	return pause < PAUSE_MOST_NS ? pause : PAUSE_MOST_NS;
}

#define LARGE_GROUP 128                /* records, in the mean                                            */

bool journal_can_wait(const struct journal *j, bool did)
{
	uint64_t least = did ? MANY_RECORDS / 2 : MANY_RECORDS, most = did ? LARGE_GROUP * 3 / 2 : LARGE_GROUP;

	return j->mine.mean_records >= least * 256 && j->mine.mean_records < most * 256;
}

/* Frames that ended, in the order of their numbers. */
static bool publish(struct journal *j)
{
	bool did = false;

	while (j->mine.first != j->mine.after) {
		struct flight *f = &j->mine.flight[j->mine.first % j->mine.flights];

		if (!f->ended)
			break;
		j->mine.written = f->frame;
		j->mine.written_pos += f->bytes;
		j->mine.first++;
		if (f->last) {
			store_release(&j->shown.durable_pos, j->mine.written_pos);
			store_release(&j->shown.durable_frame, f->frame);
			measure(j, f);
			if (j->fixed.events)
				eventlog_show(j->fixed.events, f->event);
			publish_epoch(j, f->epoch);
		}
		did = true;
	}
	if (did)
		show_oldest(j);
	return did;
}

/* All that ended; with `wait` at least one. */
static int reap(struct journal *j, bool wait, bool *did)
{
	uint64_t ticket;
	int result, rc;

	while ((rc = disk_reap(j->fixed.disk, wait, &ticket, &result)) == NOH_OK) {
		struct flight *f = &j->mine.flight[ticket % j->mine.flights];

		must(ticket - j->mine.first < j->mine.after - j->mine.first && !f->ended);
		if (result != NOH_OK)
			return fail(j);
		f->ended = true;
		wait = false;
	}
	if (rc != NOH_END)
		return fail(j);
	*did |= publish(j);
	return NOH_OK;
}

/* ── collecting ── */

/* One record, or the several of a step: what was reserved is full of them. Returns how many. */
static uint64_t records_in(struct journal *j, const struct gather_item *item)
{
	uint64_t at = 0, count = 0;
	const struct record_head *h;

	for (; at < item->size; at += h->size, count++) {
		h = (const struct record_head *)(const void *)(item->record + at);
		must(h->size <= item->size - at && h->size % 8 == 0 && h->size >= record_parts_at(h->address_len));
		if ((h->flags & RECORD_EVENTS) && j->fixed.events)
			eventlog_stage(j->fixed.events, h, (const uint8_t *)h + record_parts_at(h->address_len),
				       (const uint8_t *)h + h->size);
	}
	return count;
}

static bool next_item(struct journal *j, struct gather_item *item)
{
	for (; j->mine.ring < j->gather.fixed.rings; j->mine.ring++) {
		struct gather_ring *r = &j->gather.fixed.ring[j->mine.ring];

		if (gather_peek(r, load_relaxed(&r->shared.head), j->mine.limit[j->mine.ring],
				j->mine.epoch, item))
			return true;
	}
	return false;
}

/* Copies records of the group to `out`; true: that was the last of it. */
static bool copy_records(struct journal *j, uint8_t *out, size_t room, size_t *len)
{
	struct gather_item item;
	uint64_t records = 0;

	*len = 0;
	while (next_item(j, &item)) {
		uint64_t left = item.size - j->mine.copied;
		size_t n = left < room - *len ? (size_t)left : room - *len;
		uint64_t count = j->mine.copied || n == 0 ? 0 : records_in(j, &item);    /* once, where it begins */

		memcpy(out + *len, item.record + j->mine.copied, n);
		*len += n;
		j->mine.copied += n;
		records += count;
		if (n < left)
			break;
		j->mine.copied = 0;
		gather_release(&j->gather, &j->gather.fixed.ring[j->mine.ring], &item);
	}
	count_one(&j->shown.records, records);
	j->mine.records += records;
	return j->mine.ring == j->gather.fixed.rings;
}

/* Is there work that nobody may add to while the next segment is not there? */
static void look_at_room(struct journal *j)
{
	uint64_t left = j->mine.segment->info.bytes - j->mine.used;
	uint64_t need = j->fixed.need + load_relaxed(&j->gather.large.bytes);
	bool closed = left < need && !load_acquire(&j->kept.next);
	bool shut = closed || load_relaxed(&j->kept.no_space);

	store_relaxed(&j->shown.closed, closed);
	if (j->mine.used >= j->mine.segment->info.bytes / 2 && !load_acquire(&j->kept.next) &&
	    !load_relaxed(&j->kept.wanted) && !load_relaxed(&j->kept.no_space))
		journal_prepare_wake(j);
	if (j->mine.shut && !shut)
		tell(j);                             /* who was refused may try again */
	j->mine.shut = shut;
}

static bool change_segment(struct journal *j)
{
	struct segment *s = j->mine.segment;
	struct segment *next = swap_acq_rel(&j->kept.next, NULL);              /* K */

	if (!next)
		return false;
	store_release(&s->end_pos, j->mine.pos);
	store_release(&s->last, j->mine.frame);
	j->mine.segment = next;
	j->mine.used = DISK_BLOCK;
	store_relaxed(&j->shown.used, j->mine.used);
	return true;
}

/* It fills its segment, and the next one is there: nobody but us takes that. */
static bool goes_on_in_next(struct journal *j, size_t size)
{
	return j->mine.segment->info.bytes - j->mine.used - size < DISK_BLOCK && load_acquire(&j->kept.next);
}

/* One frame of the group that is open. */
static int write_frame(struct journal *j)
{
	struct flight *f = &j->mine.flight[j->mine.after % j->mine.flights];
	struct segment *s = j->mine.segment;
	struct frame_head *h = (struct frame_head *)(void *)f->buf;
	uint64_t left = s->info.bytes - j->mine.used;
	size_t room = left < FRAME_MAX ? (size_t)left : FRAME_MAX, len;
	bool last = copy_records(j, f->buf + sizeof *h, room - sizeof *h, &len);
	size_t size = frame_size(len);

	*h = (struct frame_head){
		.magic = FRAME_MAGIC, .format = FRAME_FORMAT, .dir_id = j->fixed.dir_id,
		.flags = (uint16_t)((j->mine.begun ? 0 : FRAME_FIRST) | (last ? FRAME_LAST : 0) |
				    (goes_on_in_next(j, size) ? FRAME_GOES_ON : 0)),
		.segment = s->info.number, .segment_epoch = s->info.epoch,
		.number = ++j->mine.frame, .epoch = j->mine.epoch, .durable = j->mine.written,
		.bytes = (uint32_t)len, .before = j->mine.sum,
	};
	memset(f->buf + sizeof *h + len, 0, size - sizeof *h - len);
	h->sum = j->mine.sum = frame_sum(h);
	f->frame = j->mine.frame;
	f->epoch = j->mine.epoch;
	f->bytes = size;
	f->began_ns = j->mine.began_ns;
	f->records = j->mine.records;
	f->last = last;
	if (last && j->fixed.events) {
		eventlog_settle(j->fixed.events);
		f->event = eventlog_appended(j->fixed.events);
	}
	f->ended = false;
	j->mine.begun = true;
	j->mine.open = !last;
	if (disk_submit(j->fixed.disk, s->file, f->buf, size, j->mine.used, j->mine.after) != NOH_OK)
		return fail(j);
	j->mine.after++;
	show_oldest(j);
	j->mine.used += size;
	j->mine.pos += size;
	store_relaxed(&j->shown.used, j->mine.used);
	store_relaxed(&j->shown.pos, j->mine.pos);
	count_one(&j->shown.frames, 1);
	count_one(&j->shown.bytes, size);
	return NOH_OK;
}

static void count_held(struct journal *j)
{
	j->mine.held = j->mine.holders = 0;
	for (uint32_t i = 0; i < j->gather.fixed.rings; i++) {
		uint64_t bytes = j->mine.limit[i] - load_relaxed(&j->gather.fixed.ring[i].shared.head);

		j->mine.held += bytes;
		j->mine.holders += bytes != 0;
	}
}

/* End an epoch. False: it was empty, and is published or goes with the frame before it. */
static bool begin_group(struct journal *j)
{
	struct gather_item item;

	j->mine.epoch = gather_begin(&j->gather, j->mine.limit);
	j->mine.ring = 0;
	j->mine.copied = 0;
	j->mine.begun = false;
	j->mine.open = next_item(j, &item);
	if (j->mine.open) {
		count_held(j);
		j->mine.began_ns = now_ns(j);
		j->mine.records = 0;
		return true;
	}
	if (PLANT(PLANT_EMPTY_EPOCH))
		return false;
	if (j->mine.first == j->mine.after)
		publish_epoch(j, j->mine.epoch);
	else
		j->mine.flight[(j->mine.after - 1) % j->mine.flights].epoch = j->mine.epoch;
	return false;
}

static uint64_t unfolded(struct journal *j)
{
	return j->mine.pos - load_relaxed(&j->kept.folded_pos);
}

enum composed { NOTHING, SOMETHING, NO_ROOM };

/* Write as long as there is a buffer and something to write. `look`: end an epoch even if all rings
 * are empty. An epoch also ends after each group, for those who pushed before it and asked for the
 * epoch after it. */
static int compose(struct journal *j, bool look)
{
	int did = NOTHING;

	while (j->mine.after - j->mine.first < j->mine.flights) {
		if (!j->mine.open) {
			if (!look && !j->mine.trailing && !gather_waiting(&j->gather))
				break;
			if (unfolded(j) >= j->fixed.limit)
				return NO_ROOM;
			j->mine.trailing = begin_group(j);
			look = false;
			if (!j->mine.open)
				continue;
		}
		if (j->mine.segment->info.bytes - j->mine.used < DISK_BLOCK && !change_segment(j))
			return NO_ROOM;
		did = write_frame(j);
		if (did < 0)
			return did;
		did = SOMETHING;
		if (j->fixed.disk->ended)
			break;                       /* who waits for it need not wait for the next one */
	}
	return did;
}

static void show_stuck(struct journal *j, bool stuck)
{
	if (!stuck)
		store_relaxed(&j->shown.stuck_ns, 0);
	else if (!load_relaxed(&j->shown.stuck_ns))
		store_relaxed(&j->shown.stuck_ns, now_ns(j));
}

static int round_of(struct journal *j, bool wait, bool look)
{
	bool did = false;
	int rc, composed;

	if (load_relaxed(&j->shown.failed))
		return failed_before(j);
	rc = reap(j, false, &did);
	if (rc != NOH_OK)
		return rc;
	look_at_room(j);
	composed = compose(j, look);
	if (composed < 0)
		return composed;
	show_stuck(j, composed == NO_ROOM && gather_waiting(&j->gather));
	look_at_room(j);
	if (wait && j->mine.first != j->mine.after) {
		rc = reap(j, true, &did);
		if (rc != NOH_OK)
			return rc;
	}
	if (did || composed == SOMETHING || j->mine.first != j->mine.after)
		return JOURNAL_BUSY;
	if (composed == NO_ROOM)
		count_one(&j->shown.full_waits, 1);
	return composed == NO_ROOM ? JOURNAL_FULL : JOURNAL_IDLE;
}

int journal_step(struct journal *j, bool wait)
{
	return round_of(j, wait, false);
}

int journal_step_here(struct journal *j)
{
	int rc;

	j->fixed.disk->at_once = true;
	rc = round_of(j, false, true);
	if (rc == JOURNAL_BUSY)
		rc = round_of(j, false, false);      /* what was written is published */
	j->fixed.disk->at_once = false;
	return rc;
}

/* P -> Q  what the last one with the role has changed is seen by the next. */
bool journal_take(struct journal *j)
{
	uint32_t nobody = 0;

	return cas_acquire(&j->role.word, &nobody, 1);                         /* Q */
}

void journal_take_wait(struct journal *j)
{
	if (journal_take(j))
		return;
	while (swap_acquire(&j->role.word, 2) != 0)                            /* Q */
		futex_wait(&j->role.word, 2, UINT64_MAX);
}

void journal_give(struct journal *j)
{
	if (swap_acq_rel(&j->role.word, 0) == 2)                               /* P */
		futex_wake_all(&j->role.word);
}

/* If all write again who were answered with the last group, there will be as much as it had, and what is waiting already. When
 * a ring has half of its share of that, the next group begins: the other half comes while it is written. */
void journal_rest(struct journal *j, uint64_t timeout_ns)
{
	uint64_t all = j->mine.held, half;

	for (uint32_t i = 0; i < j->gather.fixed.rings; i++)
		all += gather_held(&j->gather.fixed.ring[i]);
	half = j->mine.holders ? all / j->mine.holders / 2 : 0;
	journal_give(j);
	if (half)
		gather_rest(&j->gather, half < UINT32_MAX ? (uint32_t)half : UINT32_MAX, timeout_ns);
}

/* Announce, look once more, sleep: gather.c has the argument. */
static int sleep_unless(struct journal *j, uint64_t timeout_ns, atomic_u32 *stop)
{
	gather_announce(&j->gather);
	int rc = stop && load_seq_cst(stop) ? JOURNAL_BUSY : round_of(j, false, true);

	if (rc == JOURNAL_IDLE || rc == JOURNAL_FULL) {
		journal_give(j);                     /* what comes now wakes us */
		gather_sleep(&j->gather, timeout_ns);
	} else {
		gather_cancel(&j->gather);
		journal_give(j);
	}
	return rc;
}

void journal_sleep(struct journal *j, uint64_t timeout_ns)
{
	(void)sleep_unless(j, timeout_ns, NULL);
}

/* What was pushed before the stop is written; if there is no room, the keeper gets some seconds. */
static void drain(struct journal *j)
{
	for (int tries = 0; tries < 1000; tries++) {
		int rc = round_of(j, true, true);

		if (rc < 0 || rc == JOURNAL_IDLE)
			return;
		if (rc == JOURNAL_BUSY) {
			tries--;
			continue;
		}
		(void)sleep_unless(j, 10 * 1000 * 1000, NULL);
		journal_take_wait(j);
	}
}

void journal_loop(struct journal *j, atomic_u32 *stop)
{
	int rc = JOURNAL_BUSY;

	while (rc >= 0 && !load_seq_cst(stop)) {
		journal_take_wait(j);
		rc = journal_step(j, true);
		if (rc == JOURNAL_IDLE || rc == JOURNAL_FULL)
			rc = sleep_unless(j, UINT64_MAX, stop);
		else
			journal_give(j);
	}
	journal_take_wait(j);
	if (rc >= 0)
		drain(j);
	journal_give(j);
}
