/* sched/sweep.c - who has been idle for too long, and who goes when memory is short.
 *
 * Chunks of cells are swept; each knows a time before which a sweep finds nothing, so an idle box sweeps
 * nothing, and no actor carries a timer for this.
 */
#include "sched/durable.h"

#define ACTOR_BYTES 128     /* the least that one that goes gives back                        */
#define OLD_DS 600          /* when memory gets short: first those nobody needed for a minute */
#define CALM_DS 10          /* it was not short for so long: begin anew                       */

static bool lower(atomic_u64 *at, uint64_t to)
{
	uint64_t now = load_relaxed(at);

	while (to < now)
		if (cas_seq_cst(at, &now, to))
			return true;
	return false;
}

/* Worker 0 sleeps no longer than to the next sweep; if it sleeps already, it must hear of it. */
static void note_sweep(struct sched *s, uint64_t due_ds)
{
	if (lower(&s->next_sweep_ds, due_ds) && sched_self() != &s->workers[0])
		park_wake(&s->workers[0].shared.park);
}

void life_note_due(struct sched *s, struct cell *c, uint64_t due_ds)
{
	(void)lower(&s->chunk_due_ds[cell_number(s, c) / CHUNK_CELLS], due_ds);
	note_sweep(s, due_ds);
}

/* It is ours: would it leave something behind that waits for the disk? */
static bool leaves_something(struct sched *s, struct cell *c)
{
	return (c->flags & CELL_DIRTY) && cell_type(s, c)->durable &&
	       !s->memory.folded(s->memory.arg, load_relaxed(body_due(c->body)));
}

/* Claim c if it is idle; it stops when it runs. */
static bool send_home(struct worker *w, struct cell *c, bool lightly, bool evicted)
{
	uint32_t gen = load_acquire(&c->mailbox.gen);

	if (!mailbox_claim(&c->mailbox, gen))
		return false;
	if (lightly && leaves_something(w->fixed.sched, c)) {
		if (!mailbox_idle_in_place(&c->mailbox))
			sched_enqueue(&w->mine.port, c);
		return false;
	}
	c->flags |= CELL_STOP;
	if (evicted)
		cell_set_evicted(c, true);
	sched_enqueue(&w->mine.port, c);
	return true;
}

/* The box stops: one that rests until its back-off is over has nothing to wait for any more. */
static uint32_t end_rest(struct worker *w, struct cell *c)
{
	struct sysmsg *n = node_take(&w->mine.port, SYS_END);

	if (n)
		sched_sys(&w->mine.port, c, load_acquire(&c->mailbox.gen), n);
	return 0;
}

static uint32_t sweep_chunk(struct worker *w, uint32_t chunk, uint64_t now_ds, uint32_t max_age,
			    uint64_t most, uint64_t *next)
{
	struct sched *s = w->fixed.sched;
	uint32_t end = load_relaxed(&s->cells.shared.fresh), sent = 0;
	uint32_t from = chunk * CHUNK_CELLS;
	bool lightly = max_age != UINT32_MAX && load_relaxed(&s->crowded);

	if (from == 0)
		from = 1;
	if (end > (chunk + 1) * CHUNK_CELLS)
		end = (chunk + 1) * CHUNK_CELLS;
	for (uint32_t n = from; n < end && sent < most; n++) {
		struct cell *c = cell_at(s, n);
		uint64_t due;
		uint32_t idle;

		if (mb_state(load_relaxed(&c->mailbox.word)) == MB_DEAD)
			continue;
		idle = load_relaxed(&cell_type(s, c)->idle_ds);
		if (idle == UINT32_MAX && max_age == UINT32_MAX)
			continue;
		due = (uint64_t)load_relaxed(&c->last_active) + (idle < max_age ? idle : max_age);
		if (due <= now_ds && send_home(w, c, lightly, max_age != UINT32_MAX))
			sent++;
		else if (due < *next)
			*next = due > now_ds ? due : now_ds + 1;
	}
	return sent;
}

/* One worker at a time, or several would send home what one is enough for. */
static bool is_reliever(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t who = load_relaxed(&s->reliever), me = w->fixed.index + 1;

	if (who == me)
		return true;
	return (who == 0 || load_relaxed(&s->workers[who - 1].shared.stuck) ||
		load_relaxed(&s->workers[who - 1].shared.park.asleep)) &&
	       cas_acq_rel(&s->reliever, &who, me);
}

/* How old they must be is a matter of trying: if a round of the hand finds few, half of it; if it finds most, twice.
 * Memory that stays short goes on where it was: to begin anew each time would mean rounds in which nobody goes. */
static uint32_t age_to_go(struct worker *w, uint64_t now_ds)
{
	struct sched *s = w->fixed.sched;
	uint64_t last = swap_acq_rel(&s->short_ds, now_ds + 1);

	if (last == 0 || now_ds + 1 - last > CALM_DS) {
		store_relaxed(&s->evict_age_ds, OLD_DS);
		w->mine.sweep_sent = 0;
	}
	return load_relaxed(&s->evict_age_ds);
}

static void next_chunk(struct worker *w, uint32_t chunks, uint32_t age)
{
	uint64_t cells = load_relaxed(&w->fixed.sched->cells.shared.fresh);
	bool nobody = w->mine.sweep_sent == 0 && age == 0;

	if (++w->mine.sweep_at % chunks != 0)
		return;
	if (load_relaxed(&w->fixed.sched->nobody_goes) != nobody)
		store_relaxed(&w->fixed.sched->nobody_goes, nobody);
	if (w->mine.sweep_sent < cells / 16)
		age /= 2;
	else if (w->mine.sweep_sent > cells / 2 && age < OLD_DS)
		age = age * 2 + 1;
	store_relaxed(&w->fixed.sched->evict_age_ds, age);
	w->mine.sweep_sent = 0;
}

/* Over budget: a clock hand goes round and sends home what is older than a limit; at zero it sends home whoever is
 * idle. Returns 0 when there is nothing to be done; if only because all who could go wait for the disk, *again says when
 * to look again: a fold wakes nobody, and an idle box must get below its budget as well. */
static uint32_t relieve(struct worker *w, uint64_t now_ds, uint64_t *again)
{
	struct sched *s = w->fixed.sched;
	uint32_t chunks = load_relaxed(&s->cells.shared.fresh) / CHUNK_CELLS + 1, sent, age;
	uint64_t none = UINT64_MAX, bytes = sched_bytes(s), each, most;

	sched_weigh(s, w->mine.now_ms);
	most = load_relaxed(&s->actor_budget);
	if (bytes <= most || !is_reliever(w))
		return 0;
	if (runq_length(&w->runq))
		return 1;                        /* let those go first that are on their way */
	age = age_to_go(w, now_ds);
	each = bytes / (sched_actors(s) + 1);
	sent = sweep_chunk(w, w->mine.sweep_at % chunks, now_ds, age,
			   (bytes - most) / (each > ACTOR_BYTES ? each : ACTOR_BYTES) + 1, &none);
	count_one(&w->mine.port.evicted, sent);
	w->mine.sweep_sent += sent;
	next_chunk(w, chunks, age);
	if (sent == 0 && age == 0)
		*again = now_ds + 1;
	return sent ? sent : age > 0;
}

uint32_t life_sweep(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint64_t now_ds = w->mine.now_ms / 100, soonest = UINT64_MAX;
	uint32_t chunks, sent = 0;

	if (load_relaxed(&s->memory_budget))
		sent = relieve(w, now_ds, &soonest);
	if (now_ds < load_relaxed(&s->next_sweep_ds)) {
		note_sweep(s, soonest);
		return sent;
	}
	(void)swap_seq_cst(&s->next_sweep_ds, UINT64_MAX);     /* swap: sees what was stored before a 0 it takes */
	chunks = load_relaxed(&s->cells.shared.fresh) / CHUNK_CELLS + 1;
	for (uint32_t i = 0; i < chunks; i++) {
		uint64_t due = load_relaxed(&s->chunk_due_ds[i]);

		if (due <= now_ds) {
			uint64_t next = UINT64_MAX;

			(void)swap_seq_cst(&s->chunk_due_ds[i], UINT64_MAX);
			sent += sweep_chunk(w, i, now_ds, UINT32_MAX, UINT64_MAX, &next);
			/* Actors come and go all the time: not every one gets a sweep of its own. */
			if (next != UINT64_MAX && next < now_ds + load_relaxed(&s->min_idle_ds) / 16)
				next = now_ds + load_relaxed(&s->min_idle_ds) / 16;
			(void)lower(&s->chunk_due_ds[i], next);
			due = next;
		}
		if (due < soonest)
			soonest = due;
	}
	note_sweep(s, soonest);
	return sent;
}

uint32_t life_sweep_all(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t chunks = load_relaxed(&s->cells.shared.fresh) / CHUNK_CELLS + 1;
	uint32_t chunk, sent = 0;

	while (sent < CHUNK_CELLS && load_relaxed(&s->sweep_next) < chunks) {
		chunk = add_relaxed(&s->sweep_next, 1);
		if (chunk >= chunks)
			break;
		uint32_t end = load_relaxed(&s->cells.shared.fresh);
		for (uint32_t n = chunk * CHUNK_CELLS; n < (chunk + 1) * CHUNK_CELLS && n < end; n++) {
			unsigned state = mb_state(load_relaxed(&cell_at(s, n)->mailbox.word));

			if (n && state == MB_IDLE)
				sent += send_home(w, cell_at(s, n), false, false);
			else if (n && state == MB_PARKED && load_relaxed(&s->vitals_used))
				sent += end_rest(w, cell_at(s, n));
		}
	}
	return sent;
}
