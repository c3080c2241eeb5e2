/* sched/worker.c - one round of a worker, the loop around it, and the watchdog.
 *
 * sched_pass is a step that a test can call by itself. The loop decides what to do when there is
 * nothing to do: take from a partner (spread.h), spin for a moment, sleep.
 *
 * Sleeping: announce, look again, sleep (park.h). What can wake a sleeper: an inbox push, an offer, a
 * timer put into its wheel from elsewhere, the watchdog, stop. Each puts its thing down first and
 * wakes then.
 */
#include "core/random.h"
#include "sched/durable.h"
#include "sched/late.h"
#include "sched/notice.h"

#include <string.h>

#define PASS_ITEMS 256
#define CLOCK_EVERY 32                 /* messages between two looks at the clock */
#define PASS_NS 200000u
#define SPIN_NS 10000u
#define SPIN_CLIENTS_NS 2000u          /* with many connections something else comes by soon  */
#define SPIN_CALLER_NS 60000u          /* who was just answered from disk often asks again ... */
#define FEW_CALLERS 4                  /* ... which matters if there are only so many      */
#define WATCH_NS 4000000u
#define WATCH_QUIET_TICKS 25

static void tick(struct worker *w)
{
	w->mine.now_ns = clock_now_ns(&w->fixed.sched->clock);
	w->mine.now_ms = w->mine.now_ns / 1000000u;
	w->mine.now_ds = (uint32_t)(w->mine.now_ms / 100);
}

uint64_t sched_now_ms(struct worker *w)
{
	return clock_now_ns(&w->fixed.sched->clock) / 1000000u;
}

/* Oldest first, into my own queue. */
static uint32_t empty_inbox(struct worker *w, struct inbox *in)
{
	struct sched *s = w->fixed.sched;
	uint32_t n = inbox_take(in), oldest = 0, count = 0;

	while (n) {
		struct cell *c = cell_at(s, n);
		uint32_t next = load_relaxed(&c->mailbox.link);

		store_relaxed(&c->mailbox.link, oldest);
		oldest = n;
		n = next;
	}
	while (oldest) {
		struct cell *c = cell_at(s, oldest);
		uint32_t next = load_relaxed(&c->mailbox.link);

		sched_enqueue(&w->mine.port, c);
		oldest = next;
		count++;
	}
	return count;
}

/* The cells that come next: their lines, bodies and messages should be here when their turn is. Each look needs what
 * the one before it has brought. */
static void look_ahead(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t far = runq_peek(&w->runq, 9), near = runq_peek(&w->runq, 5), next = runq_peek(&w->runq, 2);

	if (far)
		__builtin_prefetch(cell_at(s, far), 1);
	if (near) {
		__builtin_prefetch(cell_at(s, near)->body, 1);
		mailbox_fetch_ring(&cell_at(s, near)->mailbox, w->mine.port.room.rings);
	}
	if (next)
		mailbox_fetch_slot(&cell_at(s, next)->mailbox, w->mine.port.room.rings);
}

static uint32_t run_some(struct worker *w)
{
	uint64_t start = w->mine.now_ns, looked = load_relaxed(&w->shown.counts.turns);
	uint32_t n, ran = 0;
	bool alone = w->fixed.sched->worker_count == 1;

	while (ran < PASS_ITEMS) {
		struct effect *e = NULL;
		uint64_t done;

		if (__builtin_expect(sched_is_durable(w->fixed.sched), 0) && !durable_room(w))
			break;
		/* What is in hand comes first, but not for ever. */
		if (w->mine.in_a_row < HANDS / 4 || !runq_length(&w->runq))
			e = alone ? hands_take_alone(&w->hands) : hands_take(&w->hands);

		if (e) {
			w->mine.in_a_row++;
			sched_serve_hand(w, e);
		} else if ((n = alone ? runq_take_alone(&w->runq) : runq_take(&w->runq)) != 0) {
			w->mine.in_a_row = 0;
			look_ahead(w);
			sched_serve(w, cell_at(w->fixed.sched, n));
		} else {
			break;
		}
		ran++;
		done = load_relaxed(&w->shown.counts.turns);
		if (done - looked >= CLOCK_EVERY) {
			looked = done;
			tick(w);
			if (w->mine.now_ns - start > PASS_NS)
				break;
		}
	}
	return ran;
}

/* Everything a stuck worker would do if it were not. */
static uint32_t help_stuck(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t done = 0;

	for (uint32_t i = 0; i < s->worker_count; i++) {
		struct worker *o = &s->workers[i];

		if (o == w || !load_relaxed(&o->shared.stuck))
			continue;
		done += empty_inbox(w, &o->shared.inbox);
		while (runq_length(&o->runq) + hands_length(&o->hands) && spread_steal(w, o))
			done++;
		done += clock_advance(o, w);
		done += gate_open(o, &w->mine.port);
	}
	return done;
}

/* Answers whose time has come; if the disk has failed, none ever will. */
static uint32_t let_out(struct worker *w)
{
	if (__builtin_expect(load_relaxed(&w->fixed.sched->disk_failed), 0))
		gate_end(w, NOH_EDISK);
	uint32_t n = gate_open(w, &w->mine.port);

	w->mine.answered |= n > 0 && n <= FEW_CALLERS;
	return n;
}

#define BUSY_WINDOW_NS UINT64_C(10000000000)

/* Time from the begin of a pass that did something to the begin of what comes next is time that was needed. How much
 * of the last seconds that was is told by two readings that are a window apart. */
static void count_busy(struct worker *w)
{
	uint64_t now = w->mine.now_ns;

	if (w->mine.worked)
		count_one(&w->shown.busy_ns, now - w->mine.pass_ns);
	w->mine.worked = false;
	w->mine.pass_ns = now;
	if (now - w->mine.window_ns < BUSY_WINDOW_NS)
		return;
	store_relaxed(&w->shown.since_busy_ns, w->mine.window_busy_ns);
	store_relaxed(&w->shown.since_ns, w->mine.window_ns);
	w->mine.window_ns = now;
	w->mine.window_busy_ns = load_relaxed(&w->shown.busy_ns);
}

uint32_t sched_pass(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t work = 0;

	tick(w);
	count_busy(w);
	w->mine.sample_at = load_relaxed(&w->shown.counts.turns);        /* the next turn is measured */
	w->mine.has_room = false;
	count_one(&w->shown.counts.passes, 1);
	if (__builtin_expect(sched_is_durable(s), 0))
		work += let_out(w);
	if (w->mine.now_ms >= clock_next_ms(w))
		work += clock_advance(w, w);
	work += empty_inbox(w, &w->shared.inbox);
	epoch_enter(&w->mine.port.epoch);        /* once a pass: look-ups inside cost no barrier */
	if (__builtin_expect(w->mine.lates.first != NULL, 0))
		work += late_retry(w);
	if (w->mine.networked)
		work += s->net.read(s->net.arg, w->fixed.index);
	work += run_some(w);
	if (w->mine.networked)
		work += s->net.write(s->net.arg, w->fixed.index);
	epoch_leave(&w->mine.port.epoch);
	work += life_sweep(w);
	if (__builtin_expect(load_relaxed(&s->stopping) == 2, 0))
		work += life_sweep_all(w);
	if (__builtin_expect(load_relaxed(&s->stuck_workers) != 0, 0))
		work += help_stuck(w);
	graves_close(&w->mine.port);
	epoch_poll(&w->mine.port.epoch);
	w->mine.worked = work != 0;
	return work;
}

bool sched_has_work(struct worker *w)
{
	struct sched *s = w->fixed.sched;

	return inbox_has(&w->shared.inbox) || runq_length(&w->runq) || hands_length(&w->hands) ||
	       load_seq_cst(&w->shared.spread.offer) ||
	       load_relaxed(&w->shown.awaits) <= load_seq_cst(&s->durable) ||
	       (w->mine.networked && s->net.pending(s->net.arg, w->fixed.index)) ||
	       sched_now_ms(w) >= load_seq_cst(&w->shown.next_timer_ms) ||
	       (w->fixed.index == 0 &&
		sched_now_ms(w) / 100 >= load_seq_cst(&s->next_sweep_ds)) ||
	       (load_relaxed(&s->stopping) == 2 &&
		load_seq_cst(&s->sweep_next) <= load_relaxed(&s->cells.shared.fresh) / CHUNK_CELLS) ||
	       load_seq_cst(&s->stopping) == 3;
}

static uint64_t sleep_ns(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint64_t timer = clock_next_ms(w), nap = spread_nap_ns(w), now = clock_now_ns(&s->clock);
	uint64_t until = timer == UINT64_MAX ? UINT64_MAX : timer * 1000000u;

	if (w->fixed.index == 0 && load_seq_cst(&s->next_sweep_ds) != UINT64_MAX) {
		uint64_t sweep = load_seq_cst(&s->next_sweep_ds) * 100000000u;

		until = sweep < until ? sweep : until;
	}
	if (load_relaxed(&s->stuck_workers) && nap > WATCH_NS)
		nap = WATCH_NS;
	if (w->mine.port.epoch.n_pending && nap > 10000000u)
		nap = 10000000u;         /* the dead want to be buried */
	if (w->mine.lates.first && nap > LATE_NAP_NS)
		nap = LATE_NAP_NS;
	if (until == UINT64_MAX)
		return nap;
	until = until > now ? until - now : 1;
	return until < nap ? until : nap;
}

static void sleep_now(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t deep = 1;
	bool slept = false;

	park_announce(&w->shared.park);
	add_seq_cst(&s->sleepers, 1);
	if (sched_has_work(w)) {
		park_cancel(&w->shared.park);
	} else {
		count_one(&w->shown.counts.parks, 1);
		slept = true;
		tick(w);
		count_busy(w);
		if (w->mine.networked) {
			s->net.wait(s->net.arg, w->fixed.index, sleep_ns(w));
			park_awake(&w->shared.park);
		} else {
			park_sleep(&w->shared.park, sleep_ns(w));
		}
		count_one(&w->shown.counts.wakeups, 1);
	}
	add_seq_cst(&s->sleepers, UINT32_MAX);
	if (load_seq_cst(&s->watch_event) == 1 && cas_seq_cst(&s->watch_event, &deep, 0))
		futex_wake_all(&s->watch_event);
	tick(w);
	if (slept)
		count_one(&w->shown.parked_ns, w->mine.now_ns - w->mine.pass_ns);
	spread_restart(w);
}

static bool steal_some(struct worker *w)
{
	struct sched *s = w->fixed.sched;

	if (!spread_may_steal(w) || s->worker_count < 2)
		return false;
	uint32_t i = (uint32_t)(random_next(&w->mine.rng) >> 33) % (s->worker_count - 1);
	struct worker *o = &s->workers[(w->fixed.index + 1 + i) % s->worker_count];

	return runq_length(&o->runq) + hands_length(&o->hands) > 1 && spread_steal(w, o) > 0;
}

/* True: something came up while spinning. */
static bool spin(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint64_t until = w->mine.now_ns + (w->mine.answered ? SPIN_CALLER_NS
						: w->mine.crowded ? SPIN_CLIENTS_NS : SPIN_NS);

	w->mine.answered = false;
	do {
		for (int i = 0; i < 16; i++) {
			cpu_relax();
			if (load_relaxed(&w->shared.inbox.top))
				return true;
		}
		if (w->mine.networked && s->net.ready(s->net.arg, w->fixed.index))
			return true;
		if (steal_some(w))
			return true;
		tick(w);
	} while (w->mine.now_ns < until);
	return false;
}

static void wrote_alone(struct worker *w, uint64_t took_ns)
{
	struct sched *s = w->fixed.sched;
	uint32_t at = w->mine.perch.at;

	writer_note(&s->writers, &w->mine.writer, w->fixed.index, took_ns);
	if (s->sit && perch_wrote(&w->mine.perch, s->worker_count, took_ns) != at)
		s->sit(s->box, w->mine.perch.at);
}

static void has_other_work(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	struct perch *p = &w->mine.perch;

	if (__builtin_expect(p->at != p->home, 0) && perch_busy(p) == p->home)
		s->sit(s->box, p->home);
}

#define JOURNAL_SLOW_NS 10000000u
#define JOURNAL_PAUSE_NS 50000000u

/* Be the journaller, if nobody is, and write what all have pushed. How long it took; 0: somebody else does. Whatever comes
 * for this worker meanwhile waits no longer than a write takes; after one that took its time the journaller's own thread does
 * it for a while. */
static uint64_t write_here(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	struct sched_journal *j = &s->journal;
	uint64_t began = clock_now_ns(&s->clock), took;

	if (began < w->mine.journal_from_ns || !j->take(j->arg)) {
		j->wake(j->arg);
		return 0;
	}
	store_relaxed(&w->shown.serving, SERVING_DISK);
	bool busy = j->step(j->arg);
	store_relaxed(&w->shown.serving, 0);
	took = clock_now_ns(&s->clock) - began;
	(void)let_out(w);
	if (took > JOURNAL_SLOW_NS)
		w->mine.journal_from_ns = began + took + JOURNAL_PAUSE_NS;
	j->give(j->arg);
	if (busy)
		j->wake(j->arg);
	return took + !took;
}

/* Nothing else to do, and a record of mine is not on disk: two wake-ups less for a lone caller. */
static void journal_here(struct worker *w)
{
	uint64_t took = write_here(w);

	if (took)
		wrote_alone(w, took);
}

static void see_to_records(struct worker *w)
{
	w->mine.pushed = false;
	if (w->mine.networked) {         /* what may leave leaves before the disk is waited for; more may come in */
		epoch_enter(&w->mine.port.epoch);
		w->fixed.sched->net.submit(w->fixed.sched->net.arg, w->fixed.index);
		epoch_leave(&w->mine.port.epoch);
	}
	if (runq_length(&w->runq) || hands_length(&w->hands) || w->mine.crowded) {
		has_other_work(w);
		w->fixed.sched->journal.pushed(w->fixed.sched->journal.arg, w->fixed.index);
	} else {
		journal_here(w);
	}
}

/* The disk is slower than the actors: nobody runs until the journal has room again. If the journaller only rests, it need not.
 * True: waited. */
static bool wait_for_journal(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t event = load_seq_cst(&s->durable_event);

	if (load_relaxed(&s->stopping) == 3 ||
	    (durable_room(w) && !(s->journal.no_space(s->journal.arg) && runq_length(&w->runq))))
		return false;
	if (s->journal.take && !durable_room(w) && write_here(w) && durable_room(w))
		return true;
	add_seq_cst(&s->durable_waiters, 1);
	futex_wait(&s->durable_event, event, 1000000u);
	add_seq_cst(&s->durable_waiters, UINT32_MAX);
	return true;
}

void sched_loop(struct worker *w)
{
	struct sched *s = w->fixed.sched;

	sched_set_self(w);
	if (s->net.arg) {
		int event = s->net.open(s->net.arg, w->fixed.index);

		store_relaxed(&w->shared.park.event, (uint32_t)event);
		w->mine.networked = event != 0;
	}
	while (load_acquire(&s->stopping) < 3) {
		bool rests = false;
		uint32_t work = sched_pass(w);

		if (__builtin_expect(w->mine.pushed, 0))
			see_to_records(w);
		else if (work)
			has_other_work(w);
		if (work) {
			spread_lead(w);
			spread_measure(w);
			spread_offer(w);
			rests = spread_verdict(w);
			if (!rests)
				continue;
		} else {
			if (__builtin_expect(sched_is_durable(s), 0) && wait_for_journal(w))
				continue;
			rests = spread_verdict(w);
			if (!rests && spin(w))
				continue;
		}
		if (!rests)
			spread_slept(w);
		sleep_now(w);
		spread_woke(w);
	}
	sched_set_self(NULL);
}

void sched_wake_all(struct sched *s)
{
	uint32_t deep = 1;

	for (uint32_t i = 0; i < s->worker_count; i++)
		park_wake(&s->workers[i].shared.park);
	if (cas_seq_cst(&s->watch_event, &deep, 0))
		futex_wake_all(&s->watch_event);
}

/* ── the watchdog ── */

struct watched {
	uint64_t turns, since_ns;
	void    *running;
	bool     reported;
};

static void report_slow(struct sched *s, struct cell *c, uint64_t ms)
{
	struct port *p = sched_port(s);
	char address[ADDRESS_MAX + 1] = "";

	epoch_enter(&p->epoch);
	if (mb_state(load_acquire(&c->mailbox.word)) != MB_DEAD)
		cell_address(s, c, address);
	epoch_leave(&p->epoch);
	sched_port_done(p);
	sched_logf(s, NOH_WARN, address, "its turn has been running for %llu ms",
		   (unsigned long long)ms);
}

static void wake_one(struct sched *s)
{
	for (uint32_t i = 0; i < s->worker_count; i++)
		if (park_wake(&s->workers[i].shared.park))
			return;
}

static void watch_worker(struct sched *s, struct worker *w, struct watched *seen, uint64_t now)
{
	uint64_t turns = load_relaxed(&w->shown.counts.turns);
	uint32_t serving = load_relaxed(&w->shown.serving);
	void    *running = serving ? load_relaxed(&w->mine.turn.cell) : NULL;
	bool     stuck = running && running == seen->running && turns == seen->turns;

	if (!stuck) {
		*seen = (struct watched){ .turns = turns, .running = running, .since_ns = now };
		if (load_relaxed(&w->shared.stuck)) {
			store_relaxed(&w->shared.stuck, 0);
			add_seq_cst(&s->stuck_workers, UINT32_MAX);
		}
		return;
	}
	if (!load_relaxed(&w->shared.stuck)) {
		store_relaxed(&w->shared.stuck_ns, seen->since_ns);
		store_relaxed(&w->shared.stuck, 1);
		add_seq_cst(&s->stuck_workers, 1);
	}
	wake_one(s);
	uint64_t ms = (now - seen->since_ns) / 1000000u;
	if (!seen->reported && serving == SERVING_TURN && ms >= load_relaxed(&s->slow_turn_ms)) {
		seen->reported = true;
		add_relaxed(&w->shown.slow_turns, 1);
		report_slow(s, running, ms);
	}
}

/* While anybody is awake it looks every few milliseconds; when all have slept for a while it sleeps,
 * too, until a worker wakes it. */
void sched_watch(struct sched *s)
{
	struct watched *seen = mem_zalloc(s->worker_count * sizeof *seen);
	struct notice_sums *sums = notice_sums_open(s);
	uint32_t quiet = 0;

	while (seen && load_acquire(&s->stopping) < 3) {
		bool all_asleep = load_seq_cst(&s->sleepers) == s->worker_count;

		quiet = all_asleep ? quiet + 1 : 0;
		notice_sums_tell(sums, s, quiet > WATCH_QUIET_TICKS);
		if (quiet > WATCH_QUIET_TICKS) {
			store_seq_cst(&s->watch_event, 1);
			if (load_seq_cst(&s->sleepers) == s->worker_count &&
			    load_seq_cst(&s->stopping) < 3)
				futex_wait(&s->watch_event, 1, UINT64_MAX);
			store_seq_cst(&s->watch_event, 0);
			quiet = 0;
			continue;
		}
		futex_wait(&s->watch_event, 0, WATCH_NS);
		for (uint32_t i = 0; i < s->worker_count; i++)
			watch_worker(s, &s->workers[i], &seen[i], clock_now_ns(&s->clock));
	}
	notice_sums_tell(sums, s, true);
	notice_sums_close(sums, s);
	mem_free(seen, 0);
}
