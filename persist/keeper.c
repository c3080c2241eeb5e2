/* persist/keeper.c - when to fold, and how far.
 *
 * One fold: read durable frames, commit them with their stamp, tell the store, tell the journal; in
 * this order. Told earlier, the store would drop what LMDB does not have yet, and the journal would
 * recycle what only it has.
 *
 * When: the later, the better. A key that was written often is folded once, and a fold of keys all over the image writes
 * most of its pages however many have changed. But what comes while it runs has to fit into the journal as well. So
 * the keeper measures how fast records come and how fast they go, and begins when the rest of the journal is what
 * will come meanwhile: at three eighths of its limit if nothing is known or it comes fast, at half as much again if
 * slowly; not later, for its records are in memory while it runs. What has waited for a minute is folded whatever it is; and when nothing has come for ten seconds, what is worth it: nobody is
 * disturbed then, and a restart after a crash has less to read.
 *
 * A full disk or too little memory is no failure: the journal keeps what it has, and a smaller fold is
 * tried a second later.
 *
 * Where memory is limited, a fold takes half of its share for the records (a quarter for their bytes, as much for
 * what refers to them), and half for the pages LMDB changes. How many records change how many pages cannot be known
 * before: records of neighbours share pages, those of actors all over the tree have one each. So a fold that changes
 * too many is given up, and as many records are tried as fitted; when they fit easily, more and more.
 *
 * A -> B  asked. Who asks stores first and then moves the event; who sleeps reads the event, then asked,
 *         and then sleeps only if the event is the one it read. seq_cst: one of the two sees the other.
 */
#include "persist/keeper.h"

#include "core/error.h"
#include "core/futex.h"
#include "core/mem.h"

#define FOLD_BYTES ((uint64_t)96 << 20)  /* three eighths of the journal's default limit */
#define FOLD_MS 60000
#define RETRY_NS UINT64_C(1000000000)
#define EVENTS_MOST ((uint64_t)32 << 20)         /* in memory, then they are folded */
#define LEAST ((uint64_t)1 << 20)
#define LEAST_BATCH ((uint64_t)1 << 16)  /* below that no fold is given up for its pages */
#define QUIET_NS UINT64_C(10000000000)
#define QUIET_SHARE 12                   /* of fold_bytes: less is not worth a fold of its own */
#define TRIM_SECONDS 16
#define NAP_NS UINT64_C(1000000000)
#define NAP_LEAST_NS UINT64_C(20000000)
#define MEASURE_NS UINT64_C(50000000)    /* how fast it comes is taken over at least so long */

static uint64_t fold_bytes(const struct keeper *k)
{
	uint64_t bytes = k->fold_bytes ? k->fold_bytes : FOLD_BYTES, memory = load_relaxed(&k->memory);

	if (memory && memory / 4 < bytes)
		bytes = memory / 4 > LEAST_BATCH ? memory / 4 : LEAST_BATCH;
	return bytes;
}

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return ns ? (uint64_t)((double)bytes * 1e9 / (double)ns) : 0;
}

/* How much may wait before it is folded. */
static uint64_t fold_at(const struct keeper *k)
{
	uint64_t least = fold_bytes(k), room = least / 3 * 7;    /* seven eighths of the limit */

	if (load_relaxed(&k->memory) || !k->pace.goes)
		return least;
	uint64_t at = (uint64_t)((double)room * (double)k->pace.goes / (double)(k->pace.goes + k->pace.comes));

	return at < least ? least : at > least / 2 * 3 ? least / 2 * 3 : at;
}

static void look_at_pace(struct keeper *k, const struct journal_stats *stats, uint64_t now)
{
	uint64_t passed = now - k->pace.at_ns;

	if (stats->durable_frame != k->pace.frame) {
		k->pace.frame = stats->durable_frame;
		k->pace.quiet_ns = now;
	}
	if (k->pace.at_ns && passed < MEASURE_NS)
		return;
	k->pace.comes = k->pace.at_ns ? per_second(stats->bytes - k->pace.bytes, passed) : 0;
	k->pace.at_ns = now ? now : 1;
	k->pace.bytes = stats->bytes;
	if (!k->pace.busy_ns || k->pace.comes >= fold_bytes(k) / TRIM_SECONDS)
		k->pace.busy_ns = k->pace.at_ns;
}

/* Not to be late: at the latest when it will be time. */
static void plan_nap(struct keeper *k, const struct journal_stats *stats)
{
	uint64_t at = fold_at(k), left = at > stats->unfolded_bytes ? at - stats->unfolded_bytes : 0;
	uint64_t ns = k->pace.comes && !k->retry_ns ? (uint64_t)((double)left * 1e9 / (double)k->pace.comes) : NAP_NS;

	k->pace.nap_ns = ns < NAP_LEAST_NS ? NAP_LEAST_NS : ns < NAP_NS ? ns : NAP_NS;
}

static uint64_t fold_ns(const struct keeper *k)
{
	return (k->fold_ms ? k->fold_ms : FOLD_MS) * UINT64_C(1000000);
}

/* A batch at a time: large folds are fast ones, but their records are in memory. */
static uint64_t most_bytes(const struct keeper *k)
{
	uint64_t batch = fold_bytes(k) * (load_relaxed(&k->memory) ? 1 : 2);

	return k->most && k->most < batch ? k->most : batch;
}

/* A fold takes much memory. If the next one is a while away, it is the system's meanwhile. What was little for a moment only
 * is not little: taking the memory again costs more than the fold's own work on it. */
static int trim(struct keeper *k)
{
	bool calm = k->pace.at_ns - k->pace.busy_ns >= QUIET_NS;
	int shed = calm ? db_shed(k->db) : 0;

	if (shed < 0)
		return shed;
	if (shed || (k->trims && (calm || load_relaxed(&k->memory)))) {
		k->trims = false;
		fold_trim(k->db);
		mem_trim();
	}
	return NOH_OK;
}

static void tell_store(struct keeper *k, uint64_t epoch)
{
	if (k->store && epoch > k->told) {
		store_disk_folded(k->store, epoch);
		k->told = epoch;
	}
}

static void tell_events(struct keeper *k)
{
	if (!k->events)
		return;
	eventlog_cut(k->events, db_events_gone(k->db));
	eventlog_drop(k->events, db_events_newest(k->db));
}

/* No room, no memory: less of it, later. Anything else is for good. */
static int put_off(struct keeper *k, int rc)
{
	if (rc != NOH_ENOSPC && rc != NOH_ENOMEM)
		return rc;
	k->no_space = rc == NOH_ENOSPC;
	k->most = most_bytes(k) / 4 > LEAST ? most_bytes(k) / 4 : LEAST;
	k->retry_ns = clock_now_ns(&k->clock) + RETRY_NS;
	return 0;
}

/* Too many pages: as much as fitted, and at once. */
static int fold_less(struct keeper *k, const struct fold_pages *pages)
{
	k->most = most_bytes(k) * pages->fitted / 320;
	if (k->most < LEAST_BATCH)
		k->most = LEAST_BATCH;
	store_seq_cst(&k->asked, 1);
	return 1;
}

static void fold_more(struct keeper *k, const struct fold_pages *pages)
{
	if (!load_relaxed(&k->memory) || k->most == 0)
		k->most = 0;
	else
		k->most += pages->changed < load_relaxed(&k->memory) / 4 ? k->most : k->most / 16;
	if (k->most >= fold_bytes(k))
		k->most = 0;
}

/* The next batch. 1: done, 0: nothing to do or put off, or an error. */
static int fold_once(struct keeper *k)
{
	struct journal_stats stats;
	struct fold *f;
	uint64_t frame, epoch, upto = 0, last = 0;
	uint64_t memory = load_relaxed(&k->memory);
	struct fold_pages pages = { .most = memory && most_bytes(k) > LEAST_BATCH ? memory / 2 : UINT64_MAX };
	/* The durable epoch before the durable frame: all records of the former are in frames up to
	 * the latter, also where the last epochs had none and wrote no frame. */
	uint64_t durable = journal_durable(k->journal);

	journal_get_stats(k->journal, &stats);
	db_stamp(k->db, &frame, &epoch);
	int rc = fold_begin(k->db, &f);

	if (rc != NOH_OK)
		return put_off(k, rc);
	rc = journal_read_to(k->journal, frame, frame < k->first_to ? k->first_to : UINT64_MAX, most_bytes(k),
			     fold_record, f, &upto, &last);
	if (rc != NOH_OK) {
		fold_abort(f);
		if (rc == NOH_END && frame >= stats.durable_frame)
			tell_store(k, durable);
		return rc == NOH_END ? 0 : put_off(k, rc);
	}
	fold_limit(f, &pages);
	rc = fold_commit(f, upto, last, k->wall_ms(k->wall_arg));
	k->trims = true;
	int trimmed = trim(k);

	if (trimmed != NOH_OK)
		return trimmed;
	if (rc == NOH_FULL)
		return fold_less(k, &pages);
	if (rc != NOH_OK)
		return put_off(k, rc);
	k->no_space = false;
	k->retry_ns = 0;
	fold_more(k, &pages);
	k->oldest_ns = 0;
	tell_events(k);
	tell_store(k, upto >= stats.durable_frame && durable > last ? durable : last);
	rc = journal_folded(k->journal, upto);
	return rc < 0 ? put_off(k, rc) : 1;
}

static bool is_time(struct keeper *k, const struct journal_stats *stats, uint64_t frame, uint64_t now)
{
	if (k->retry_ns && now < k->retry_ns)
		return false;
	if (stats->durable_frame <= frame) {
		k->oldest_ns = 0;
		return false;
	}
	if (k->oldest_ns == 0)
		k->oldest_ns = now ? now : 1;
	return load_acquire(&k->asked) != 0 || stats->unfolded_bytes >= fold_at(k) ||
	       (k->events && eventlog_bytes(k->events) >= EVENTS_MOST) ||
	       now - k->oldest_ns >= fold_ns(k) ||
	       (now - k->pace.quiet_ns >= QUIET_NS && stats->unfolded_bytes >= fold_bytes(k) / QUIET_SHARE);
}

/* And how long it took. */
static int fold_timed(struct keeper *k, uint64_t waits)
{
	uint64_t began = clock_now_ns(&k->clock);

	store_relaxed(&k->folding, 1);
	int rc = fold_once(k);

	store_relaxed(&k->folding, 0);
	if (rc == 1 && waits >= fold_bytes(k) / QUIET_SHARE)     /* of a small one the sync is most */
		k->pace.goes = per_second(waits < most_bytes(k) ? waits : most_bytes(k), clock_now_ns(&k->clock) - began);
	return rc;
}

/* Where nothing is folded nobody else looks for events that are too old, or too many by a new limit. On a full disk it is tried
 * again later, by itself: that says nothing about folds, which may need less, or find the room that it made. */
static int expire_events(struct keeper *k)
{
	uint64_t wall;
	int rc;

	if (db_events_gone(k->db) == db_events_newest(k->db) || clock_now_ns(&k->clock) < k->expire_ns)
		return 0;
	wall = k->wall_ms(k->wall_arg);
	if (!db_events_expire(k->db, wall))
		return 0;
	rc = db_expire_events(k->db, wall);
	tell_events(k);
	if (rc == NOH_OK)
		return 1;
	k->expire_ns = clock_now_ns(&k->clock) + RETRY_NS;
	return rc == NOH_ENOSPC || rc == NOH_ENOMEM ? 0 : rc;
}

int keeper_step(struct keeper *k)
{
	struct journal_stats stats;
	uint64_t frame, epoch, durable = journal_durable(k->journal), now = clock_now_ns(&k->clock);

	journal_get_stats(k->journal, &stats);
	db_stamp(k->db, &frame, &epoch);
	look_at_pace(k, &stats, now);
	plan_nap(k, &stats);
	if (is_time(k, &stats, frame, now)) {
		store_seq_cst(&k->asked, 0);
		return fold_timed(k, stats.unfolded_bytes);
	}
	int rc = trim(k);

	if (rc != NOH_OK)
		return rc;
	if (stats.durable_frame <= frame) {
		store_seq_cst(&k->asked, 0);             /* there is nothing more to give */
		if (k->store && store_disk_overlay_bytes(k->store))
			tell_store(k, durable);
	}
	rc = journal_folded(k->journal, frame);          /* the next segment, if need be */
	return rc < 0 ? put_off(k, rc) : expire_events(k);
}

uint64_t keeper_nap_ns(const struct keeper *k)
{
	return k->pace.nap_ns;
}

int keeper_fold_all(struct keeper *k)
{
	struct journal_stats stats;

	journal_get_stats(k->journal, &stats);
	for (;;) {
		uint64_t frame, epoch;

		db_stamp(k->db, &frame, &epoch);
		int rc = fold_once(k);                   /* once more at the end: tells the store */
		if (rc < 0)
			return rc;
		if (rc == 0) {
			if (frame >= stats.durable_frame)
				return NOH_OK;
			return k->no_space ? error_set(NOH_ENOSPC, "the disk is full; the journal keeps "
						       "what is not folded")
					   : error_set(NOH_ENOMEM, "out of memory while folding; the "
						       "journal keeps what is not folded");
		}
	}
}

void keeper_ask(struct keeper *k)
{
	store_seq_cst(&k->asked, 1);                                                /* A */
	keeper_wake(k);
}

void keeper_wake(struct keeper *k)
{
	add_seq_cst(&k->event, 1);
	futex_wake_all(&k->event);
}

void keeper_sleep(struct keeper *k, uint64_t timeout_ns)
{
	uint32_t event = load_seq_cst(&k->event);

	if (load_seq_cst(&k->asked) == 0)                                           /* B */
		futex_wait(&k->event, event, timeout_ns);
}
