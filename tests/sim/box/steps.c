/* tests/sim/box/steps.c - who goes next: workers, journaller and keeper as threads that sleep and are woken,
 * one at a time, in an order drawn from the seed.
 *
 * Each does in a step what its thread does in one round, and sleeps as it would: announce, look again,
 * then it is passed over until somebody wakes it or its time has come. So a wake-up that is lost is lost
 * here, too. Others may also get in between in the middle of a turn, of a push, of a load (steps_nest):
 * as far as one thread can be in the midst of two things, the one begun later ends first.
 */
#include "tests/sim/box/sim.h"

#include "persist/db.h"
#include "persist/journal_inside.h"
#include "persist/tail.h"
#include "sched/durable.h"
#include "sched/late.h"

#include <string.h>

void __wrap_gather_sleep(struct gather *g, uint64_t timeout_ns);
int __wrap_db_load(struct db *db, const char *address, size_t len, uint64_t tag, struct db_loaded *out);
int __real_db_load(struct db *db, const char *address, size_t len, uint64_t tag, struct db_loaded *out);
void __wrap_store_disk_set_tail(struct store *s, struct tail *tail, uint64_t epoch);
void __real_store_disk_set_tail(struct store *s, struct tail *tail, uint64_t epoch);
void __wrap_tail_close(struct tail *tail);
void __wrap_durable_commit(struct worker *w, struct cell *c);
void __real_durable_commit(struct worker *w, struct cell *c);
int __wrap_durable_prepare(struct worker *w, struct cell *c);
int __real_durable_prepare(struct worker *w, struct cell *c);
void __real_tail_close(struct tail *tail);

void steps_restart(void)
{
	memset(sim->worker, 0, sizeof sim->worker);
	memset(&sim->journaller, 0, sizeof sim->journaller);
	memset(&sim->keeper, 0, sizeof sim->keeper);
}

static uint64_t soon(uint64_t ns) { return ns == UINT64_MAX ? ns : sim_now() + ns; }

/* ── a worker: sched_loop, one round at a time ── */

static struct worker *worker(unsigned i) { return &sim->box->sched.workers[i]; }

static bool worker_can(unsigned i)
{
	struct sleeper *z = &sim->worker[i];

	if (sim->in_worker[i])
		return false;
	if (z->no_room)
		return load_relaxed(&sim->box->sched.durable_event) != z->event || sim_now() >= z->wake_ns;
	return !z->asleep || !park_asleep(&worker(i)->shared.park) || sim_now() >= z->wake_ns;
}

static uint64_t worker_wake_ns(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint64_t timer = clock_next_ms(w), until = soon(spread_nap_ns(w)), sweep;

	if (timer < until / 1000000u)
		until = timer * 1000000u;
	sweep = load_seq_cst(&s->next_sweep_ds);
	if (w->fixed.index == 0 && sweep < until / 100000000u)
		until = sweep * 100000000u;
	if (w->mine.port.epoch.n_pending && soon(10000000u) < until)
		until = soon(10000000u);
	if (w->mine.lates.first && soon(LATE_NAP_NS) < until)
		until = soon(LATE_NAP_NS);
	return until;
}

static void worker_sleeps(struct worker *w, struct sleeper *z)
{
	struct sched *s = w->fixed.sched;

	park_announce(&w->shared.park);
	if (sched_has_work(w)) {
		park_cancel(&w->shared.park);
		return;
	}
	add_seq_cst(&s->sleepers, 1);
	z->asleep = true;
	z->wake_ns = worker_wake_ns(w);
	seen->slept++;
}

static void worker_wakes(struct worker *w, struct sleeper *z)
{
	z->no_room = false;
	if (!z->asleep)
		return;
	z->asleep = false;
	park_cancel(&w->shared.park);
	add_seq_cst(&w->fixed.sched->sleepers, UINT32_MAX);
	spread_restart(w);
	spread_woke(w);
}

static bool steals(struct worker *w)
{
	struct worker *o = worker(sim_below(sim->workers));
	bool did = o != w && sim_one_in(2) &&
		   runq_length(&o->runq) + hands_length(&o->hands) > 1 && spread_steal(w, o) > 0;

	seen->steals += did;
	return did;
}

/* see_to_records of sched/worker.c. */
static void worker_writes(struct worker *w)
{
	struct sched_journal *j = &w->fixed.sched->journal;
	bool busy;

	w->mine.pushed = false;
	if (runq_length(&w->runq) || hands_length(&w->hands) || sim->in_journaller || !j->take(j->arg)) {
		j->wake(j->arg);
		return;
	}
	sim->in_journaller = true;
	busy = j->step(j->arg);
	(void)gate_open(w, &w->mine.port);
	j->give(j->arg);
	if (busy)
		j->wake(j->arg);
	sim->in_journaller = false;
}

/* wait_for_journal of the same. */
static bool must_wait(struct worker *w)
{
	struct sched_journal *j = &w->fixed.sched->journal;

	return !durable_room(w) || (j->no_space(j->arg) && runq_length(&w->runq));
}

static void worker_round(unsigned i)
{
	struct worker *w = worker(i), *was = sched_self();
	struct sleeper *z = &sim->worker[i];
	bool rests = false;

	sim->in_worker[i] = true;
	sched_set_self(w);
	worker_wakes(w, z);
	seen->late += load_relaxed(&w->shown.late) != 0;
	if (sim->depth)
		(void)steals(w);         /* somebody is in the midst of his pass: he has more to do */
	bool work = sched_pass(w);

	if (w->mine.pushed)
		worker_writes(w);
	if (work) {
		spread_measure(w);
		spread_offer(w);
		rests = spread_verdict(w);
	} else if (must_wait(w)) {
		z->no_room = true;
		z->event = load_seq_cst(&sim->box->sched.durable_event);
		z->wake_ns = soon(1000000u);
	} else {
		rests = spread_verdict(w);
		if (!rests && !steals(w)) {
			spread_slept(w);
			worker_sleeps(w, z);
		}
	}
	if (rests)
		worker_sleeps(w, z);
	sched_set_self(was);
	sim->in_worker[i] = false;
}

/* ── the journaller: journal_main ── */

void __wrap_gather_sleep(struct gather *g, uint64_t timeout_ns)
{
	if (!load_relaxed(&g->shared.asleep))
		return;
	sim->journaller.asleep = true;
	sim->journaller.wake_ns = soon(timeout_ns);
}

static bool journaller_can(void)
{
	struct gather *g = &sim->box->disk.journal->gather;

	if (sim->in_journaller || load_relaxed(&sim->box->disk.failed))
		return false;
	return !sim->journaller.asleep || !load_relaxed(&g->shared.asleep) ||
	       sim_now() >= sim->journaller.wake_ns;
}

static void journaller_round(void)
{
	struct journal *j = sim->box->disk.journal;
	int rc;

	sim->in_journaller = true;
	if (sim->journaller.asleep)
		gather_cancel(&j->gather);
	sim->journaller.asleep = false;
	must(journal_take(j));
	rc = box_journal_round(sim->box, false);
	if (rc == JOURNAL_IDLE)
		journal_sleep(j, UINT64_MAX);
	else if (rc == JOURNAL_FULL)
		journal_sleep(j, 1000000u);
	else
		journal_give(j);
	sim->in_journaller = false;
}

/* ── the keeper: keeper_main ── */

static bool keeper_can(void)
{
	struct sleeper *z = &sim->keeper;

	if (sim->in_keeper || sim->no_keeper || load_relaxed(&sim->box->disk.failed))
		return false;
	return !z->asleep || load_relaxed(&sim->box->disk.keeper.event) != z->event || sim_now() >= z->wake_ns;
}

static void keeper_round(void)
{
	struct sleeper *z = &sim->keeper;
	struct keeper *k = &sim->box->disk.keeper;
	int rc;

	sim->in_keeper = true;
	rc = box_keeper_round(sim->box);
	seen->folds += rc == 1;
	z->event = load_relaxed(&k->event);
	z->asleep = rc == 0 && !load_relaxed(&k->asked);
	z->wake_ns = soon(1000000000u);
	sim->in_keeper = false;
}

/* ── the next one ── */

enum who { CLIENTS_TURN = WORKERS_MAX, JOURNALLER, KEEPER };

static void run(unsigned who)
{
	sim_note(who);
	if (who == JOURNALLER)
		journaller_round();
	else if (who == KEEPER)
		keeper_round();
	else if (who == CLIENTS_TURN && sim->plan.family && sim_one_in(3))
		family_act();
	else if (who == CLIENTS_TURN && sim->plan.limited && sim_one_in(3))
		limited_act();
	else if (who == CLIENTS_TURN && sim_one_in(6))
		scanner_act();
	else if (who == CLIENTS_TURN && sim_one_in(6))
		events_act();
	else if (who == CLIENTS_TURN)
		client_act();
	else
		worker_round(who);
}

static unsigned eligible(unsigned *list, bool clients)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sim->workers; i++)
		if (worker_can(i))
			list[n++] = i;
	if (journaller_can())
		list[n++] = JOURNALLER;
	if (keeper_can())
		list[n++] = KEEPER;
	if (clients)
		list[n++] = CLIENTS_TURN;
	return n;
}

bool steps_one(bool clients)
{
	unsigned list[KEEPER + 1], n = eligible(list, clients);

	if (n == 0)
		return false;
	sim->step++;
	seen->steps++;
	clock_virtual_advance(&sim->clock, sim_below(100000));
	run(list[sim_below(n)]);
	return true;
}

void steps_wait(void)
{
	uint64_t next = UINT64_MAX, now = sim_now();

	for (unsigned i = 0; i < sim->workers; i++)
		if ((sim->worker[i].asleep || sim->worker[i].no_room) && sim->worker[i].wake_ns < next)
			next = sim->worker[i].wake_ns;
	if (sim->journaller.asleep && sim->journaller.wake_ns < next)
		next = sim->journaller.wake_ns;
	if (sim->keeper.asleep && sim->keeper.wake_ns < next)
		next = sim->keeper.wake_ns;
	if (next == UINT64_MAX)
		next = now + 1000000000u;
	if (next > now)
		clock_virtual_advance(&sim->clock, next - now);
}

/* Somebody else gets in between, here. */
void steps_nest(void)
{
	unsigned list[KEEPER + 1], n;

	if (!sim->plan.nest || sim->depth >= 2 || sim->dead || sim->verifying || !sim_one_in(sim->plan.nest))
		return;
	n = eligible(list, false);
	if (n == 0)
		return;
	unsigned who = list[sim_below(n)];

	sim->depth++;
	seen->nested++;
	for (unsigned i = sim_below(4); i && journaller_can(); i--)
		run(JOURNALLER);         /* what was pushed so far often is on disk by now */
	if (who < WORKERS_MAX ? worker_can(who) : who == KEEPER && keeper_can())
		run(who);
	sim->depth--;
	if ((sim->plan.faults & F_CUT) && !sim->calm && sim_one_in(sim->plan.crash_every))
		disk_sim_off(sim->disk);
}

int __wrap_db_load(struct db *db, const char *address, size_t len, uint64_t tag, struct db_loaded *out)
{
	bool was = sim->no_keeper;
	int rc;

	sim->no_keeper |= sim->tail;
	steps_nest();
	rc = __real_db_load(db, address, len, tag, out);
	steps_nest();
	sim->no_keeper = was;
	return rc;
}

int __wrap_durable_prepare(struct worker *w, struct cell *c)
{
	int rc = __real_durable_prepare(w, c);

	if (rc != NOH_OK && !family_is(noh_address(&w->mine.turn)))
		model_unrecorded(noh_address(&w->mine.turn));
	return rc;
}

void __wrap_durable_commit(struct worker *w, struct cell *c)
{
	bool step = w->mine.turn.so_far.flags & TURN_STEP, erases = w->mine.turn.so_far.flags & TURN_ERASE;
	bool record = step ? w->mine.turn.so_far.flags & TURN_RECORDED : w->mine.turn.record != NULL;

	__real_durable_commit(w, c);
	if (record && !family_is(noh_address(&w->mine.turn))) {
		uint64_t due = step ? w->mine.turn.due : journal_epoch(sim->box->disk.journal);

		model_recorded(noh_address(&w->mine.turn), due);
		scanner_recorded(noh_address(&w->mine.turn), erases, w->mine.turn.due);
	}
}

void __wrap_store_disk_set_tail(struct store *s, struct tail *tail, uint64_t epoch)
{
	sim->tail = true;
	__real_store_disk_set_tail(s, tail, epoch);
}

void __wrap_tail_close(struct tail *tail)
{
	sim->tail = false;
	__real_tail_close(tail);
}
