/* box/stats.c - noh.h, section 6: numbers, summed over workers and ports when somebody asks. */
#include "box/box.h"

#include <string.h>

static uint64_t port_messages(struct sched *s, struct port *p)
{
	uint64_t sum = 0;

	for (uint32_t t = 0; t < s->type_count; t++)
		sum += load_relaxed(&p->types[t].handled) + load_relaxed(&p->types[t].failed);
	return sum;
}

int noh_get_worker_stats(noh_box *box, unsigned worker, noh_worker_stats *out)
{
	struct sched *s = &box->sched;
	struct worker_counts *c;
	uint64_t stuck = 0;

	memset(out, 0, sizeof *out);
	if (!s->workers || worker >= s->worker_count)
		return error_set(NOH_EINVAL, "no worker %u", worker);
	c = &s->workers[worker].shown.counts;
	if (load_relaxed(&s->workers[worker].shared.stuck))
		stuck = (clock_now_ns(&s->clock) - load_relaxed(&s->workers[worker].shared.stuck_ns)) / 1000000u;
	*out = (noh_worker_stats){
		.turns = load_relaxed(&c->turns),
		.messages = port_messages(s, &s->workers[worker].mine.port),
		.steals = load_relaxed(&c->steals), .stolen_actors = load_relaxed(&c->stolen_actors),
		.parks = load_relaxed(&c->parks), .wakeups = load_relaxed(&c->wakeups),
		.passes = load_relaxed(&c->passes),
		.slow_turns = load_relaxed(&s->workers[worker].shown.slow_turns), .stuck_ms = stuck };
	return NOH_OK;
}

static void add_worker_stats(noh_worker_stats *sum, const noh_worker_stats *w)
{
	sum->turns += w->turns;
	sum->messages += w->messages;
	sum->steals += w->steals;
	sum->stolen_actors += w->stolen_actors;
	sum->parks += w->parks;
	sum->wakeups += w->wakeups;
	sum->passes += w->passes;
	sum->slow_turns += w->slow_turns;
	if (w->stuck_ms > sum->stuck_ms)
		sum->stuck_ms = w->stuck_ms;
}

static uint64_t sum_types(struct sched *s, uint32_t type, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->worker_count + OUTSIDE_PORTS; i++) {
		struct port *p = i < s->worker_count ? &s->workers[i].mine.port
						     : &s->outside[i - s->worker_count];

		for (uint32_t t = 0; t < s->type_count; t++)
			if (type == UINT32_MAX || t == type)
				sum += load_relaxed((atomic_u64 *)(void *)((char *)&p->types[t] + offset));
	}
	return sum;
}
#define TYPE_SUM(s, type, field) sum_types((s), (type), offsetof(struct type_counts, field))

static void disk_stats(noh_box *box, noh_box_stats *out)
{
	struct journal_stats j;
	struct db_stats d;

	if (!box->disk.journal)
		return;
	journal_get_stats(box->disk.journal, &j);
	db_shown_stats(box->disk.db, &d);
	out->stored += store_count(box->disk.store);
	out->journal_frames = j.frames;
	out->journal_records = j.records;
	out->journal_bytes = j.bytes;
	out->journal_unfolded = j.unfolded_bytes;
	out->folds = d.folds;
	out->folding = load_relaxed(&box->disk.keeper.folding);
	out->idem_keys = d.idem;
	out->idem_dropped = d.idem_dropped;
	out->read_only = j.no_space;
	out->durable_lag_us = j.lag_ns / 1000;
	out->store_bytes = d.used_bytes;
}

int noh_get_stats(noh_box *box, noh_box_stats *out)
{
	struct sched *s = &box->sched;
	uint64_t peak;

	memset(out, 0, sizeof *out);
	if (!s->workers)
		return error_set(NOH_ESTOPPED, "the box was not started");
	out->workers = s->worker_count;
	out->capacity = s->max_actors - 2;
	out->actor_bytes = sched_bytes(s);
	peak = load_relaxed(&s->peak_bytes);
	if (out->actor_bytes > peak)
		store_relaxed(&s->peak_bytes, peak = out->actor_bytes);
	out->actors_peak_bytes = peak;
	out->stored = store_count(box->store);
	for (uint32_t i = 0; i < s->worker_count; i++) {
		noh_worker_stats w;

		(void)noh_get_worker_stats(box, i, &w);
		add_worker_stats(&out->total, &w);
		out->timers += clock_pending(&s->workers[i]);
	}
	out->activations = TYPE_SUM(s, UINT32_MAX, activations);
	out->deactivations = TYPE_SUM(s, UINT32_MAX, deactivations);
	out->actors = out->activations > out->deactivations ? out->activations - out->deactivations : 0;
	out->evictions = sched_sum(s, offsetof(struct port, evicted));
	out->dead_letters = sched_sum(s, offsetof(struct port, dead_letters));
	out->late_answers = sched_sum(s, offsetof(struct port, late_answers));
	out->no_type = sched_sum(s, offsetof(struct port, no_type));
	disk_stats(box, out);
	return NOH_OK;
}

int noh_get_type_stats(noh_box *box, const char *type, noh_type_stats *out)
{
	struct sched *s = &box->sched;
	struct type *t = sched_find_type(s, type, strlen(type));

	memset(out, 0, sizeof *out);
	if (!s->workers)
		return error_set(NOH_ESTOPPED, "the box was not started");
	if (!t)
		return error_set(NOH_ENOTYPE, "no type \"%s\" is registered", type);
	uint64_t ended, came = t->durable ? load_relaxed(&t->at_start) : 0, went = TYPE_SUM(s, t->index, went);

	came += TYPE_SUM(s, t->index, came);     /* after those that went: too many rather than below zero */
	*out = (noh_type_stats){
		.existing = came > went ? came - went : 0,
		.counting = t->durable && !load_acquire(&box->disk.counted),
		.accepted = TYPE_SUM(s, t->index, accepted),
		.handled = TYPE_SUM(s, t->index, handled),
		.failed = TYPE_SUM(s, t->index, failed),
		.refused = TYPE_SUM(s, t->index, refused),
		.dropped_oldest = TYPE_SUM(s, t->index, dropped_oldest),
		.dropped_forced = TYPE_SUM(s, t->index, dropped_forced),
		.dropped_stop = TYPE_SUM(s, t->index, dropped_stop),
		.coalesced = TYPE_SUM(s, t->index, coalesced),
		.activations = TYPE_SUM(s, t->index, activations),
		.deactivations = TYPE_SUM(s, t->index, deactivations),
		.restarts = TYPE_SUM(s, t->index, broken) + TYPE_SUM(s, t->index, restarts),
		.set_aside = TYPE_SUM(s, t->index, set_aside),
		.dropped_unwell = TYPE_SUM(s, t->index, dropped_unwell),
		.down = TYPE_SUM(s, t->index, unwell[0]),
		.degraded = TYPE_SUM(s, t->index, unwell[1]),
		.stopped = TYPE_SUM(s, t->index, unwell[2]),
		.unwell = TYPE_SUM(s, t->index, unwell[3]),
		.quarantined = TYPE_SUM(s, t->index, quarantined),
		.refused_rate = TYPE_SUM(s, t->index, refused_rate),
		.waiting_turn = load_relaxed(&t->limit.places.waiting) };
	ended = TYPE_SUM(s, t->index, rests_ended);
	out->rests = TYPE_SUM(s, t->index, rests);
	out->resting = out->rests > ended ? out->rests - ended : 0;
	for (uint32_t r = 0; r < REPLAYS; r++)
		out->replays += sum_types(s, t->index, offsetof(struct type_counts, replays) + r * sizeof(atomic_u64));
	ended = out->handled + out->failed + out->coalesced + out->dropped_oldest + out->dropped_forced + out->dropped_stop +
		out->dropped_unwell;
	out->waiting = out->accepted > ended ? out->accepted - ended : 0;
	return NOH_OK;
}

const char *noh_type_name(noh_box *box, unsigned index)
{
	return index < box->sched.type_count ? box->sched.types[index]->name : NULL;
}
