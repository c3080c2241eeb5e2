/* box/disk.c - a box with a data directory: recovery, the journaller and the keeper, and their end.
 *
 * Start: lock the directory, open LMDB, read the journal's tail into memory, open a new segment. Then
 * serve; the keeper folds the tail and wakes who has messages or due timers from before, in the background.
 * A disk that fails ends it: nothing is acknowledged any more, callers hear NOH_EDISK, and only a
 * restart, which replays what is whole, makes it right again.
 */
#include "box/box.h"
#include "box/care.h"
#include "core/thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* ── the journal and the store, as the scheduler sees them ── */

static bool j_room(void *arg, uint32_t ring) { return journal_room(arg, ring); }
static bool j_no_space(void *arg) { return journal_no_space(arg); }
static uint8_t *j_reserve(void *arg, uint32_t ring, size_t size)
{
	return journal_reserve(arg, ring, size);
}
static void j_unreserve(void *arg, uint32_t ring) { journal_unreserve(arg, ring); }
static void j_push(void *arg, uint32_t ring) { journal_push(arg, ring); }
static uint64_t j_epoch(void *arg) { return journal_epoch(arg); }
static void j_wake(void *arg) { journal_wake(arg); }
static void j_pushed(void *arg, uint32_t ring) { journal_pushed(arg, ring); }

static bool j_take(void *arg) { return journal_take(arg); }
static void j_give(void *arg) { journal_give(arg); }

static bool j_step(void *arg)
{
	/* A failure, or no room: its thread will find that, too, and see to it. */
	return journal_step_here(arg) != JOURNAL_IDLE;
}

static void on_durable(void *arg, uint64_t epoch)
{
	sched_durable(arg, epoch);
}

/* ── open ── */

#define JOURNAL_BYTES (UINT64_C(256) << 20)
#define JOURNAL_LEAST (UINT64_C(4) << 20)
#define RING_BYTES (4u << 20)
#define RING_LEAST (64u << 10)

/* After a crash all of the journal that is not folded is in memory for a while: of a small one, a quarter. */
static uint64_t journal_most(struct sched *s, const noh_options *o)
{
	uint64_t most = o->journal_bytes ? o->journal_bytes : JOURNAL_BYTES, quarter = load_relaxed(&s->memory_budget) / 4;

	if (quarter && quarter < JOURNAL_LEAST)
		quarter = JOURNAL_LEAST;
	return quarter && quarter < most ? quarter : most;
}

/* What workers put into their rings at once is written at once, and folded at once: a record of a hundred bytes
 * may change a page of its own. */
static uint32_t ring_bytes(struct sched *s, uint32_t given)
{
	uint64_t budget = load_relaxed(&s->memory_budget), share = budget / 256 / s->worker_count;
	uint32_t ring = RING_BYTES;

	if (given || !budget)
		return given;
	while (ring > RING_LEAST && ring > share)
		ring /= 2;
	return ring;
}

struct replaying { struct tail *tail; struct eventlog *events; uint64_t frame; };

static int replay(void *arg, uint64_t frame, uint64_t epoch, const struct record_head *head, const uint8_t *parts,
		  const uint8_t *end)
{
	struct replaying *r = arg;
	int rc = tail_record(r->tail, frame, epoch, head, parts, end);

	if (rc != NOH_OK || !(head->flags & RECORD_EVENTS))
		return rc;
	if (frame != r->frame)
		eventlog_settle(r->events);
	r->frame = frame;
	eventlog_stage(r->events, head, parts, end);
	return NOH_OK;
}

/* The tail of the journal, into memory: the keeper folds it later, in its own time. */
static int recover(noh_box *box, const noh_options *o, struct journal_end *end, struct tail **tail)
{
	struct box_disk *d = &box->disk;
	uint64_t frame, epoch, most = o->journal_bytes ? o->journal_bytes : JOURNAL_BYTES;
	int rc;

	db_stamp(d->db, &frame, &epoch);
	rc = tail_open(tail, box->sched.seed, 2 * most + (UINT64_C(1) << 30));
	struct replaying r = { *tail, &box->events, 0 };

	eventlog_begin(&box->events, db_events_newest(d->db));
	if (rc == NOH_OK && !d->dir.unfinished)
		rc = journal_must_be_there(d->disk, d->dir.path);
	if (rc == NOH_OK)
		rc = care_named(journal_recover(d->disk, d->dir.id, frame, replay, &r, end), d->dir.path);
	if (rc != NOH_OK)
		return rc;
	tail_done(*tail);
	eventlog_settle(&box->events);
	eventlog_show(&box->events, eventlog_appended(&box->events));
	if (end->epoch < epoch)
		end->epoch = epoch;
	if (end->frame < frame)
		end->frame = frame;
	return NOH_OK;
}

static int open_parts(noh_box *box, const noh_options *o)
{
	struct box_disk *d = &box->disk;
	struct sched *s = &box->sched;
	struct journal_end end = { 0 };
	struct tail *tail = NULL;
	uint64_t frame, epoch;
	struct journal_options jo = { .rings = s->worker_count + 1, .small_last = true, .events = &box->events,
				      .limit_bytes = journal_most(s, o),
				      .ring_bytes = ring_bytes(s, d->ring_bytes), .segment_bytes = d->segment_bytes,
				      .on_durable = on_durable, .arg = s, .clock = &s->clock };
	int rc;

	if (!d->disk) {                  /* a test may have brought its own */
		rc = disk_real_open(&d->disk, o->dir, o->no_uring ? DISK_PLAIN : DISK_AUTO);
		if (rc != NOH_OK)
			return rc;
	}
	rc = db_open(&d->db, &(struct db_options){ .dir = o->dir, .dir_id = d->dir.id,
						   .must_exist = !d->dir.unfinished,
						   .idem_ms = o->idem_ms, .idem_bytes = o->idem_bytes,
						   .event_ms = o->events_ms, .event_bytes = o->events_bytes });
	if (rc == NOH_OK)
		rc = recover(box, o, &end, &tail);
	if (rc != NOH_OK) {
		tail_close(tail);
		return rc;
	}
	if (end.cut_bytes)
		sched_logf(s, NOH_INFO, "", "the journal's tail was torn: %llu bytes that nobody was told of "
			   "are gone", (unsigned long long)end.cut_bytes);
	jo.disk = d->disk;
	jo.dir_id = d->dir.id;
	rc = journal_open(&d->journal, &jo, &end);
	db_stamp(d->db, &frame, &epoch);
	if (rc == NOH_OK)
		rc = journal_folded(d->journal, frame);
	d->boot_tag = end.epoch + 1;
	d->last_frame = end.frame;
	if (rc == NOH_OK)
		rc = store_disk_open(&d->store, d->db, d->boot_tag);
	if (rc != NOH_OK || tail_records(tail) == 0) {
		tail_close(tail);
		return rc;
	}
	d->tail = tail;
	store_disk_set_tail(d->store, tail, end.epoch);
	return NOH_OK;
}

/* ── its part of the memory budget ── */

#define FIXED_BYTES (UINT64_C(16) << 20)        /* with no actor and no client                  */

/* What was sent home and is not folded, and the tail of a crash. An eighth or so is the allocator's. */
static uint64_t not_folded(void *arg)
{
	struct box_disk *d = arg;
	uint64_t bytes = store_bytes(d->store) + eventlog_bytes(d->keeper.events);

	return bytes + bytes / 4;
}

static bool is_folded(void *arg, uint64_t due)
{
	struct box_disk *d = arg;

	return store_disk_is_folded(d->store, due);
}

static void fold_soon(void *arg)
{
	struct box_disk *d = arg;

	if (!load_relaxed(&d->keeper.asked) && !load_relaxed(&d->keeper.folding))
		keeper_ask(&d->keeper);
}

/* A quarter is for folds, a sixteenth for what the allocator has besides; what is always there is as much as it is,
 * but of a budget that is too small for it not more than three eighths. */
void box_disk_share(noh_box *box)
{
	struct box_disk *d = &box->disk;
	struct sched *s = &box->sched;
	uint64_t fixed = FIXED_BYTES + (uint64_t)RING_BYTES / 2 * s->worker_count;
	uint64_t budget = load_relaxed(&s->memory_budget);

	if (fixed > budget / 8 * 3)
		fixed = budget / 8 * 3;
	store_relaxed(&d->keeper.memory, budget / 4);
	store_relaxed(&s->memory.aside, budget / 4 + budget / 16 + fixed);
}

/* ── open, all of it ── */

static void crashed(void *arg, const struct note *n, uint32_t times)
{
	struct sched *s = arg;
	char kind[32] = "a hook";

	if (n->kind != UINT32_MAX)
		snprintf(kind, sizeof kind, "a message of kind %u", n->kind);
	sched_logf(s, NOH_WARN, n->address, "the last run of this box ended while it handled %s (type version %u); "
		   "%s", kind, n->version, times >= CRASHES_ENOUGH ? "too often: it will be set aside" :
		   times > 1 ? "not for the first time" : "for the first time");
}

int box_disk_open(noh_box *box, const noh_options *o)
{
	struct box_disk *d = &box->disk;
	struct sched *s = &box->sched;
	int rc = datadir_open(&d->dir, o->dir, DATADIR_CREATE, o->seed);

	if (rc != NOH_OK)
		return rc;
	d->locked = true;
	s->seed = d->dir.seed;
	rc = open_parts(box, o);
	if (rc == NOH_OK)
		rc = datadir_finish(&d->dir);
	if (rc != NOH_OK)
		return rc;
	store_relaxed(&s->durable, d->boot_tag - 1);
	s->journal = (struct sched_journal){ d->journal, j_room, j_no_space, j_reserve, j_unreserve, j_push, j_epoch,
					     j_wake, j_pushed, j_take, j_step, j_give };
	rc = crashes_open(&d->crashes, o->dir, s->worker_count, crashed, s);
	if (rc != NOH_OK)
		return rc;
	s->notes = d->crashes.notes;
	s->crashes = d->crashes.seen.count ? &d->crashes.seen : NULL;
	d->keeper = (struct keeper){ .journal = d->journal, .db = d->db, .store = d->store, .events = &box->events,
				     .fold_bytes = o->journal_bytes / 8 * 3,
				     .clock = s->clock, .wall_ms = s->clock.wall_ms,
				     .wall_arg = s->clock.arg };
	s->memory = (struct sched_memory){ d, 0, not_folded, is_folded, fold_soon };
	box_disk_share(box);
	return NOH_OK;
}

/* ── start ── */

/* Is there a way from what is stored to the registered type? If not, the type is refused, not the box. */
static int check_version(void *arg, const char *name, uint32_t version, uint64_t schema, uint64_t images)
{
	noh_stored_type stored = { .name = name, .version = version, .schema = schema, .actors = images };
	struct sched *s = arg;
	struct type *t = sched_find_type(s, name, strlen(name));

	if (!t || !images)
		return 0;
	care_judge(&stored, &t->pub);
	if (stored.verdict < NOH_NO_STEP)
		return 0;
	t->refused = NOH_EVERSION;
	if (stored.verdict == NOH_NO_STEP)
		sched_logf(s, NOH_ERROR, "", "type %s is refused: %llu actors are stored with version %u, this "
			   "program has version %u and no migration from %u", name,
			   (unsigned long long)images, version, t->pub.version, stored.missing);
	else
		sched_logf(s, NOH_ERROR, "", "type %s is refused: %llu actors are stored with version %u and "
			   "schema %llx, this program has version %u and %llx", name,
			   (unsigned long long)images, version, (unsigned long long)schema, t->pub.version,
			   (unsigned long long)t->pub.schema);
	return 0;
}

static void fail(noh_box *box, int rc, const char *who)
{
	uint32_t none = 0;

	if (!cas_seq_cst(&box->disk.failed, &none, (uint32_t)-rc))
		return;
	sched_logf(&box->sched, NOH_ERROR, "", "%s: %s; nothing is acknowledged any more: stop this process, "
		   "see to the disk, start again", who, noh_why());
	sched_disk_failed(&box->sched);
}

int box_journal_round(noh_box *box, bool wait)
{
	int rc = journal_step(box->disk.journal, wait);

	if (rc < 0)
		fail(box, rc, "the journal cannot be written");
	else if (rc == JOURNAL_FULL)
		keeper_ask(&box->disk.keeper);
	return rc;
}

#define TURN_NS 1000u                    /* the quickest take as long */
#define PAUSE_MOST_NS 2000000u

static void give_way(noh_box *box)
{
	bool now = journal_can_wait(box->disk.journal, box->disk.gives_way);

	if (now != box->disk.gives_way)
		thread_gives_way(now);
	box->disk.gives_way = now;
}

/* Where all have work ahead, nobody waits for the disk but what stands behind it in the queue anyway: so long the next group
 * may gather, and the cores do that work instead of small groups. Who runs out of work sooner writes himself (sched/worker.c). */
static void give_and_pause(noh_box *box)
{
	uint64_t rest = journal_pause_ns(box->disk.journal), ahead = sched_work_ahead(&box->sched) * TURN_NS;
	struct timespec pause = { .tv_nsec = (long)(ahead < PAUSE_MOST_NS ? ahead : PAUSE_MOST_NS) };

	give_way(box);
	if (rest > ahead) {
		journal_rest(box->disk.journal, rest);
		return;
	}
	journal_give(box->disk.journal);
	if (pause.tv_nsec)
		(void)nanosleep(&pause, NULL);       /* a signal ends it: no harm */
}

static void *journal_main(void *arg)
{
	noh_box *box = arg;
	int rc = JOURNAL_IDLE;

	(void)pthread_setname_np(pthread_self(), "noh/journal");
	(void)prctl(PR_SET_TIMERSLACK, 1000);        /* nanoseconds; the usual 50 us are as long as the pause */
	while (rc >= 0 && !(load_acquire(&box->disk.stop_journal) && rc == JOURNAL_IDLE)) {
		journal_take_wait(box->disk.journal);
		rc = box_journal_round(box, true);
		if (rc == JOURNAL_IDLE && !load_acquire(&box->disk.stop_journal))
			journal_sleep(box->disk.journal, UINT64_MAX);
		else if (rc == JOURNAL_FULL)
			journal_sleep(box->disk.journal, 1000000u);
		else
			give_and_pause(box);
	}
	return NULL;
}

/* ── how many there are ── */

/* How many of each type the image has. */
static int count_type(void *arg, const char *name, uint32_t version, uint64_t schema, uint64_t images)
{
	struct type *t = sched_find_type(arg, name, strlen(name));

	(void)version;
	(void)schema;
	if (t)
		add_relaxed(&t->at_start, images);
	return 0;
}

/* What existed when this run began is counted in the image once that has all of it and nothing more; since then
 * everybody counts himself (life_comes). Before a crash's tail is folded it is about so many. */
static void count_types(noh_box *box, bool all)
{
	struct sched *s = &box->sched;

	for (uint32_t i = 0; i < s->type_count; i++)
		store_relaxed(&s->types[i]->at_start, 0);
	if (db_types(box->disk.db, count_type, s) == NOH_OK && all)
		store_release(&box->disk.counted, 1);
}

static void count_after_crash(noh_box *box)
{
	uint64_t frame, epoch;

	if (load_relaxed(&box->disk.counted))
		return;
	db_stamp(box->disk.db, &frame, &epoch);
	if (frame == box->disk.last_frame)
		count_types(box, true);
}

int box_keeper_round(noh_box *box)
{
	struct box_disk *d = &box->disk;
	int rc;

	if (!d->woken)
		box_wake_left_behind(box);
	box_arm_timers(box);
	rc = keeper_step(&d->keeper);
	count_after_crash(box);
	if (!d->types_known && load_relaxed(&d->counted)) {      /* the image has all of the last run */
		d->types_known = true;
		(void)box_find_quarantined_types(box, NULL, UINT32_MAX);
	}
	if (rc < 0)
		fail(box, rc, "the image cannot be written");
	return rc;
}

static void *keeper_main(void *arg)
{
	noh_box *box = arg;
	int rc = 0;

	(void)pthread_setname_np(pthread_self(), "noh/keeper");
	while (rc >= 0 && !load_acquire(&box->disk.stop_keeper)) {
		rc = box_keeper_round(box);
		if (rc == 0)
			keeper_sleep(&box->disk.keeper, keeper_nap_ns(&box->disk.keeper));
	}
	return NULL;
}

static void *segments_main(void *arg)
{
	noh_box *box = arg;
	int rc = NOH_OK;

	(void)pthread_setname_np(pthread_self(), "noh/segments");
	while (rc == NOH_OK && !load_acquire(&box->disk.stop_keeper)) {
		rc = journal_prepare(box->disk.journal);
		if (rc != NOH_OK)
			fail(box, rc, "the journal cannot go on");
		else if (!load_acquire(&box->disk.stop_keeper))
			journal_prepare_sleep(box->disk.journal, UINT64_MAX);
	}
	return NULL;
}

#define UNWELL_AT_START 1000             /* actors looked at: more would keep the start waiting */

int box_disk_start(noh_box *box, bool threads)
{
	struct box_disk *d = &box->disk;
	void *(*const mains[3])(void *) = { journal_main, keeper_main, segments_main };

	if (!d->db)
		return NOH_OK;
	if (!threads) {
		(void)db_types(d->db, check_version, &box->sched);
		count_types(box, !d->tail);
		d->keeper.first_to = d->tail ? d->last_frame : 0;
		/* Before the first message can come. */
		d->types_known = box_find_quarantined_types(box, d->tail, UNWELL_AT_START);
	}
	for (; threads && d->thread_count < 3; d->thread_count++) {
		int err = pthread_create(&d->threads[d->thread_count], NULL, mains[d->thread_count], box);

		if (err)
			return error_set(NOH_ESYSTEM, "cannot start the journal's threads: %s", strerror(err));
	}
	return NOH_OK;
}

/* ── the end ── */

int box_disk_stop(noh_box *box, bool fold)
{
	struct box_disk *d = &box->disk;
	int rc = NOH_OK;

	if (!d->journal)
		return NOH_OK;
	store_seq_cst(&d->stop_journal, 1);
	journal_wake(d->journal);
	if (d->thread_count > 0)         /* it may need the keeper to make room */
		pthread_join(d->threads[0], NULL);
	store_seq_cst(&d->stop_keeper, 1);
	keeper_wake(&d->keeper);
	journal_prepare_wake(d->journal);
	for (uint32_t i = 1; i < d->thread_count; i++)
		pthread_join(d->threads[i], NULL);
	d->thread_count = 0;
	if (load_relaxed(&d->failed))
		return -(int)load_relaxed(&d->failed);
	while ((rc = box_journal_round(box, true)) == JOURNAL_BUSY)
		;
	if (rc >= 0 && fold)
		rc = keeper_fold_all(&d->keeper);
	return rc < 0 ? rc : NOH_OK;
}

void box_disk_close(noh_box *box)
{
	struct box_disk *d = &box->disk;

	crashes_close(&d->crashes);
	journal_close(d->journal);
	store_close(d->store);
	db_close(d->db);
	disk_end(d->disk);
	if (d->locked)
		datadir_close(&d->dir);
	memset(d, 0, sizeof *d);
}
