/* tests/sim/persist_world.c - a story: turns, steps, folds and the ends of lives. */
#include "tests/sim/persist_world_in.h"

#include "core/must.h"
#include "noh.h"
#include "tests/lib/test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* ── small things ── */

static struct { struct sigaction before; char says[64]; } dying;

/* An assertion of the product ends the program: at least it says in which story. */
static void die(int sig)
{
	ssize_t ignored = write(STDOUT_FILENO, dying.says, strlen(dying.says));

	(void)ignored;
	sigaction(sig, &dying.before, NULL);
	raise(sig);
}

static void watch(uint64_t seed)
{
	struct sigaction act = { .sa_handler = die };

	snprintf(dying.says, sizeof dying.says, "  in story %llu (NOH_STORY)\n", (unsigned long long)seed);
	sigaction(SIGABRT, &act, &dying.before);
}

uint64_t world_draw(struct world *w, uint64_t below) { return test_random(&w->random) % below; }

void world_violated(struct world *w, const char *format, ...)
{
	va_list args;

	if (w->result.violations++ > 0)
		return;
	va_start(args, format);
	int len = vsnprintf(w->result.first, sizeof w->result.first, format, args);

	va_end(args);
	if (len > 0 && (size_t)len < sizeof w->result.first)
		snprintf(w->result.first + len, sizeof w->result.first - (size_t)len,
			 " [after %s, %llu pending then]", w->ended ? w->ended : "nothing",
			 (unsigned long long)w->pending);
}

/* The product may fail when power is off, or when the disk did, and only then. */
bool world_went_wrong(struct world *w, int rc, const char *what)
{
	if (rc >= 0)
		return false;
	if (!disk_sim_is_off(w->sim) && disk_sim_faults(w->sim) == w->faults &&
	    !(w->small && (rc == NOH_ENOSPC || rc == NOH_EDISK)))
		world_violated(w, "%s: %s", what, noh_why());
	return true;
}

/* ── turns ── */

static uint32_t message_for(struct world *w, uint32_t actor)
{
	for (uint32_t m = 0; m < w->msg_count; m++) {
		const struct msg *g = &w->msgs[m];

		if (g->to == actor && g->eaten == NONE && w->recs[g->by].pushed && !w->recs[g->by].dead &&
		    world_draw(w, 2))
			return m;
	}
	return NONE;
}

/* What the turn saw, then its tag, then what it did: nothing of it is visible before the push. */
static void begin_turn(struct world *w, uint32_t ring, uint32_t actor)
{
	static const struct state nothing;
	static uint8_t bytes[128 << 10];
	uint32_t number = w->rec_count++, first_msg = w->msg_count;
	struct rec *r = &w->recs[number];
	uint32_t prev = w->last[actor], other = w->last[world_draw(w, ACTORS)];
	const struct state *before = prev == NONE ? &nothing : &w->recs[prev].after;
	bool erased = world_draw(w, 12) == 0;

	*r = (struct rec){ .actor = actor, .consumes = message_for(w, actor) };
	r->deps[0] = prev;
	r->deps[1] = other;
	r->deps[2] = r->consumes == NONE ? NONE : w->msgs[r->consumes].by;
	r->tag = journal_epoch(w->journal);
	r->seq = r->tag << 20;
	if (prev != NONE && w->recs[prev].seq >= r->seq)
		r->seq = w->recs[prev].seq + 1;
	if (r->consumes != NONE)
		w->msgs[r->consumes].eaten = number;
	if (!erased) {
		r->after = *before;
		r->after.value = number + 1;
		r->after.len = 8 + (uint32_t)world_draw(w, world_draw(w, 4) ? 200 : world_draw(w, 8) ? 5000 : 60000);
		for (uint32_t k = 0; k < KEYS; k++)
			if (world_draw(w, 3) == 0)
				r->after.key[k] = world_draw(w, 4) ? number + 1 : 0;
	}
	for (uint64_t n = world_draw(w, 4) / 2; n > 0 && w->msg_count < MESSAGES; n--) {
		w->msgs[w->msg_count] = (struct msg){ .by = number, .to = (uint32_t)world_draw(w, ACTORS),
						      .index = w->msg_count - first_msg, .eaten = NONE };
		w->msg_count++;
	}
	size_t len = world_build(w, number, before, erased, first_msg, bytes);
	uint8_t *at = journal_reserve(w->journal, ring, len);

	must(at && len <= sizeof bytes);
	memcpy(at, bytes, len);
	r->hash = XXH3_64bits(bytes, len);
	w->rings[ring].open[w->rings[ring].count++] = number;
	w->busy[actor] = true;
	w->seen->large += len > JOURNAL_INLINE;
	w->seen->erased += erased;
	w->seen->consumed += r->consumes != NONE;
}

static void undo(struct world *w, uint32_t number)
{
	struct rec *r = &w->recs[number];

	r->dead = true;
	w->busy[r->actor] = false;
	if (r->consumes != NONE)
		w->msgs[r->consumes].eaten = NONE;
}

static void end_turns(struct world *w, uint32_t ring)
{
	struct ring *g = &w->rings[ring];

	if (g->count == 0)
		return;
	if (world_draw(w, 10) == 0) {
		journal_unreserve(w->journal, ring);
		for (uint32_t i = 0; i < g->count; i++)
			undo(w, g->open[i]);
		w->seen->unreserved++;
		g->count = 0;
		return;
	}
	journal_push(w->journal, ring);
	uint64_t due = journal_epoch(w->journal);

	for (uint32_t i = 0; i < g->count; i++) {
		struct rec *r = &w->recs[g->open[i]];

		r->pushed = true;
		r->due = due;
		r->acknowledged = w->plan->ack_early;
		w->last[r->actor] = g->open[i];
		w->busy[r->actor] = false;
		w->seen->records++;
	}
	g->count = 0;
}

static void act(struct world *w)
{
	uint32_t ring = (uint32_t)world_draw(w, RINGS), actor = (uint32_t)world_draw(w, ACTORS);
	struct ring *g = &w->rings[ring];

	if (g->count == BATCH || w->busy[actor] || w->rec_count == RECORDS || (g->count && world_draw(w, 2)))
		end_turns(w, ring);
	else if (g->count > 0 || journal_room(w->journal, ring))
		begin_turn(w, ring, actor);
	else
		w->seen->full++;
	if (world_draw(w, 3))
		end_turns(w, ring);
}

/* ── the journaller and the keeper ── */

static void acknowledge(struct world *w)
{
	uint64_t durable = journal_durable(w->journal);

	for (uint32_t i = 0; i < w->rec_count; i++) {
		struct rec *r = &w->recs[i];

		if (r->pushed && !r->dead && !r->acknowledged &&
		    (w->plan->ack_at_tag ? r->tag : r->due) <= durable) {
			r->acknowledged = true;
			w->seen->acknowledged++;
		}
	}
}

static bool step(struct world *w)
{
	int rc = journal_step(w->journal, world_draw(w, 3) == 0);

	acknowledge(w);
	return !world_went_wrong(w, rc, "journal_step");
}

static uint64_t wall_ms(void *arg)
{
	(void)arg;
	return NOW_MS;
}

static void hire_keeper(struct world *w)
{
	w->keeper = (struct keeper){ .journal = w->journal, .db = w->db, .clock = w->clock.clock,
				     .fold_bytes = 20000 + world_draw(w, 200000), .fold_ms = 1000,
				     .wall_ms = wall_ms };
}

static bool keep_house(struct world *w)
{
	clock_virtual_advance(&w->clock, world_draw(w, 2000) * 1000000);
	if (world_draw(w, 3) == 0)
		keeper_ask(&w->keeper);
	if (world_draw(w, 8) == 0)
		return !world_went_wrong(w, keeper_fold_all(&w->keeper), "keeper_fold_all");
	int rc = keeper_step(&w->keeper);

	w->seen->folds += rc == 1;
	return !world_went_wrong(w, rc, "keeper_step");
}

/* The same by hand: smaller pieces, and the bugs that a keeper might have. */
static bool fold(struct world *w)
{
	uint64_t frame, epoch, upto, upto_epoch;
	struct fold *f;
	int rc;

	db_stamp(w->db, &frame, &epoch);
	rc = fold_begin(w->db, &f);
	if (world_went_wrong(w, rc, "fold_begin"))
		return false;
	rc = journal_read(w->journal, frame, world_draw(w, 2) ? UINT64_MAX : 1 + world_draw(w, 30000), fold_record, f,
			  &upto, &upto_epoch);
	if (rc != NOH_OK) {
		fold_abort(f);
		if (rc == NOH_END)
			return !world_went_wrong(w, journal_folded(w->journal, frame), "journal_folded");
		return !world_went_wrong(w, rc, "journal_read");
	}
	if (w->plan->folded_early && world_went_wrong(w, journal_folded(w->journal, upto), "journal_folded")) {
		fold_abort(f);
		return false;
	}
	if (world_went_wrong(w, fold_commit(f, upto + w->plan->stamp_high, upto_epoch, NOW_MS), "fold_commit"))
		return false;
	w->seen->folds++;
	return !world_went_wrong(w, journal_folded(w->journal, upto), "journal_folded");
}

/* ── recovery ── */

/* Fold what the journal has, as a start does, and open the next run. */
static bool go_on(struct world *w)
{
	struct journal_options o = { .disk = w->disk, .dir_id = DIR_ID, .rings = RINGS,
				     .ring_bytes = 64 << 10, .segment_bytes = 256 << 10,
				     .limit_bytes = (512 << 10) + world_draw(w, 1 << 20) };
	struct fold *f;

	if (w->tail_records && world_draw(w, 2)) {
		uint64_t frame, epoch;
		struct journal_end end;

		db_stamp(w->db, &frame, &epoch);
		if (world_went_wrong(w, fold_begin(w->db, &f), "fold_begin"))
			return false;
		if (world_went_wrong(w, journal_recover(w->disk, DIR_ID, frame, fold_record, f, &end),
			       "journal_recover") || world_went_wrong(w, journal_settle(w->disk), "journal_settle")) {
			fold_abort(f);
			return false;
		}
		if (world_went_wrong(w, fold_commit(f, end.frame, end.epoch, NOW_MS), "fold_commit at start"))
			return false;
	}
	return !world_went_wrong(w, journal_open(&w->journal, &o, &w->end), "journal_open");
}

/* ── power ── */

static void stop(struct world *w)
{
	int rc = JOURNAL_BUSY;

	while (w->journal && rc == JOURNAL_BUSY)             /* what is under way comes to an end */
		rc = journal_step(w->journal, true);
	journal_close(w->journal);
	w->journal = NULL;
	db_close(w->db);
	w->db = NULL;
	memset(w->rings, 0, sizeof w->rings);
	memset(w->busy, 0, sizeof w->busy);
}

/* In some lives the disk fails once, or is small. */
static void trouble(struct world *w)
{
	static const enum sim_op ops[] = { SIM_WRITE, SIM_SYNC, SIM_SUBMIT, SIM_SUBMIT, SIM_SYNC_DIR,
					   SIM_RENAME, SIM_OPEN, SIM_READ };

	w->faults = disk_sim_faults(w->sim);
	w->small = world_draw(w, 8) == 0;
	if (w->small)
		disk_sim_space(w->sim, (1 << 20) + world_draw(w, 1 << 20));
	if (world_draw(w, 6) == 0) {
		enum sim_op op = ops[world_draw(w, 8)];
		uint64_t nth = 1 + world_draw(w, 20);

		disk_sim_fail(w->sim, op, nth, world_draw(w, 4) ? FAULT_EIO : FAULT_SHORT);
	}
}

static void no_more_trouble(struct world *w)
{
	w->seen->faults += disk_sim_faults(w->sim) - w->faults;
	for (enum sim_op op = 0; op < SIM_OPS; op++)
		disk_sim_fail(w->sim, op, 0, FAULT_EIO);
	disk_sim_space(w->sim, 0);
	disk_sim_lie(w->sim, false);
	w->faults = disk_sim_faults(w->sim);
	w->small = false;
}

static void cut(struct world *w)
{
	w->seen->operations += disk_sim_ops(w->sim);
	disk_sim_off(w->sim);
	stop(w);
	if (disk_sim_problem(w->sim))
		world_violated(w, "disk: %s", disk_sim_problem(w->sim));
	if (disk_sim_open_files(w->sim)) {
		world_violated(w, "%u files were left open", disk_sim_open_files(w->sim));
		return;
	}
	no_more_trouble(w);
	w->pending = disk_sim_pending(w->sim);
	if (world_draw(w, 4) == 0) {
		disk_sim_kill(w->sim, world_draw(w, UINT64_MAX));
		w->ended = "the process died";
		w->seen->kills++;
	} else {
		enum cut mode = (enum cut)world_draw(w, CUT_MODES);

		disk_sim_cut(w->sim, mode, world_draw(w, UINT64_MAX));
		w->ended = cut_names[mode];
		w->seen->cuts++;
	}
	lmdb_wrap_rebuild();
}

/* What was not there is gone for good; what was there must stay. */
static void take_stock(struct world *w)
{
	for (uint32_t a = 0; a < ACTORS; a++)
		w->last[a] = NONE;
	for (uint32_t i = 0; i < w->rec_count; i++) {
		struct rec *r = &w->recs[i];

		w->seen->survived_unacknowledged += r->there && !r->acknowledged;
		w->seen->lost_unacknowledged += !r->there && !r->dead;
		r->acknowledged = r->there;
		r->dead = !r->there;
		if (r->there)
			w->last[r->actor] = i;
		else if (r->consumes != NONE && w->msgs[r->consumes].eaten == i)
			w->msgs[r->consumes].eaten = NONE;
	}
}

/* Recover, being cut again now and then; what comes out must not depend on that. */
static bool recover(struct world *w)
{
	uint64_t first = 0, again = 0;
	bool known = false;

	for (unsigned tries = 0; tries < 6 && !w->result.violations; tries++) {
		if (tries < 4 && world_draw(w, 3) == 0)
			disk_sim_cut_at(w->sim, disk_sim_ops(w->sim) + 1 + world_draw(w, 40));
		if (world_open_and_look(w, &again)) {
			first = known ? first : again;
			if (known && again != first)
				world_violated(w, "again: an interrupted recovery changed what is there");
			/* What a dead process left unsynced may go until somebody was told of it. */
			known = disk_sim_pending(w->sim) == 0;
			if (go_on(w)) {
				disk_sim_cut_at(w->sim, 0);
				take_stock(w);
				w->result.hash = w->result.hash * 31 + again;
				return true;
			}
		}
		if (w->result.violations)
			break;
		w->seen->cuts_in_recovery++;
		cut(w);
	}
	if (!w->result.violations)
		world_violated(w, "recovery does not come to an end");
	return false;
}

static void live(struct world *w)
{
	uint64_t folds = world_draw(w, 3) ? 30 : 6;
	bool by_hand = w->plan->folded_early || w->plan->stamp_high || world_draw(w, 3) == 0;

	hire_keeper(w);
	trouble(w);
	disk_sim_lie(w->sim, w->plan->lie);
	disk_sim_latency(w->sim, 0, (unsigned)world_draw(w, 12));
	uint64_t soon = 1 + world_draw(w, 30), later = world_draw(w, 3);

	later *= world_draw(w, 100);
	disk_sim_cut_at(w->sim, disk_sim_ops(w->sim) + soon + later);
	for (unsigned i = 0; i < 600 && !w->result.violations; i++) {
		bool on = true;

		if (world_draw(w, 2))
			act(w);
		else if (world_draw(w, folds) == 0)
			on = by_hand ? fold(w) : keep_house(w);
		else
			on = step(w);
		if (!on)
			break;
	}
	acknowledge(w);
}

struct pick { struct world *w; char path[200]; unsigned seen; };

static void pick_segment(void *arg, const char *path)
{
	struct pick *p = arg;

	if (strncmp(path, "journal/", 8) == 0 && world_draw(p->w, ++p->seen) == 0)
		snprintf(p->path, sizeof p->path, "%s", path);
}

static void rot(struct world *w)
{
	struct pick p = { .w = w };
	uint64_t hash, off = world_draw(w, 100000);

	disk_sim_each(w->sim, pick_segment, &p);
	disk_sim_rot(w->sim, p.path, off, (unsigned)world_draw(w, 8));
	(void)world_open_and_look(w, &hash);
}

struct world_result world_run(const struct world_plan *plan, const char *dir, struct world_seen *seen)
{
	struct world w = { .plan = plan, .dir = dir, .seen = seen, .random = plan->seed };

	watch(plan->seed);
	w.sim = disk_sim_new(test_random(&w.random));
	w.disk = disk_sim_door(w.sim);
	w.disk->in_flight = 1 + (unsigned)world_draw(&w, 4);
	clock_virtual_init(&w.clock, 1);
	w.recs = calloc(RECORDS, sizeof *w.recs);
	w.msgs = calloc(MESSAGES, sizeof *w.msgs);
	must(w.recs && w.msgs);
	lmdb_wrap(w.sim, dir);
	lmdb_wrap_rebuild();
	for (unsigned life = 0; life <= WORLD_LIVES && recover(&w) && life < WORLD_LIVES; life++) {
		live(&w);
		if (w.result.violations)
			break;
		cut(&w);
		if (plan->rot) {
			rot(&w);
			break;
		}
	}
	disk_sim_off(w.sim);
	stop(&w);
	lmdb_wrap(NULL, NULL);
	if (disk_sim_open_files(w.sim) == 0)
		disk_sim_free(w.sim);
	free(w.recs);
	free(w.msgs);
	free(w.tail.bytes);
	sigaction(SIGABRT, &dying.before, NULL);
	return w.result;
}
