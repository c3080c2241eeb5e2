/* box/metrics_types.c - numbers by actor type, summed over workers and outside threads. */
#include "box/metrics.h"
#include "sched/meter.h"

#include <string.h>

/* ── sums ── */

static uint32_t ports(struct sched *s)
{
	return s->worker_count + OUTSIDE_PORTS;
}

static struct port *port_at(struct sched *s, uint32_t i)
{
	return i < s->worker_count ? &s->workers[i].mine.port : &s->outside[i - s->worker_count];
}

/* A group is a type, or all that have no series of their own: types first to end - 1. */
static void members(struct scrape *m, uint32_t group, uint32_t *first, uint32_t *end)
{
	*first = group;
	*end = group < METRIC_TYPES ? group + 1 : m->box->sched.type_count;
}

static struct labels labels_of(struct scrape *m, uint32_t group)
{
	struct labels l = { .len = 0 };

	label_add(&l, "type", group < METRIC_TYPES ? m->box->sched.types[group]->name : ":other");
	return l;
}

static uint64_t sum_of(struct scrape *m, uint32_t group, size_t offset)
{
	struct sched *s = &m->box->sched;
	uint32_t first, end;
	uint64_t sum = 0;

	members(m, group, &first, &end);
	for (uint32_t i = 0; i < ports(s); i++)
		for (uint32_t t = first; t < end; t++)
			sum += load_relaxed((atomic_u64 *)(void *)((char *)&port_at(s, i)->types[t] + offset));
	return sum;
}
#define SUM(m, group, field) sum_of((m), (group), offsetof(struct type_counts, field))

/* Two counters are not read at one instant: what has just moved from one to the other is not below nothing. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void each_group(struct scrape *m, uint64_t (*value)(struct scrape *m, uint32_t group))
{
	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);

		metric_number(m, l.text, value(m, g));
	}
}

static void put_with(struct scrape *m, const struct labels *of, const char *name, const char *value, uint64_t n)
{
	struct labels l = *of;

	label_add(&l, name, value);
	metric_number(m, l.text, n);
}

/* ── actors ── */

/* What left is read first: then what came is not less. */
static uint64_t active(struct scrape *m, uint32_t g)
{
	uint64_t left = SUM(m, g, deactivations);

	return less(SUM(m, g, activations), left);
}
void metric_actors_active(struct scrape *m) { each_group(m, active); }

static uint64_t existing(struct scrape *m, uint32_t g)
{
	uint64_t went = SUM(m, g, went), came = SUM(m, g, came);
	uint32_t first, end;

	members(m, g, &first, &end);
	for (uint32_t t = first; t < end; t++)
		if (m->box->sched.types[t]->durable)
			came += load_relaxed(&m->box->sched.types[t]->at_start);
	return less(came, went);
}
void metric_actors_stored(struct scrape *m) { each_group(m, existing); }

void metric_activations(struct scrape *m)
{
	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);
		uint64_t loaded = SUM(m, g, loaded);

		put_with(m, &l, "reason", "new", less(SUM(m, g, activations), loaded));
		put_with(m, &l, "reason", "loaded", loaded);
	}
}

void metric_deactivations(struct scrape *m)
{
	static const char *const reasons[GONE_REASONS] = {
		[GONE_IDLE] = "idle", [GONE_MEMORY] = "memory", [GONE_ASKED] = "asked", [GONE_FORCED] = "forced",
		[GONE_SELF] = "self", [GONE_ERASED] = "erased", [GONE_STOP] = "stop", [GONE_FAILED] = "failed" };

	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);

		for (uint32_t r = 0; r < GONE_REASONS; r++)
			put_with(m, &l, "reason", reasons[r], sum_of(m, g, offsetof(struct type_counts, gone) +
								      r * sizeof(atomic_u64)));
	}
}

/* ── messages ── */

static uint64_t accepted(struct scrape *m, uint32_t g) { return SUM(m, g, accepted); }
void metric_accepted(struct scrape *m) { each_group(m, accepted); }

void metric_processed(struct scrape *m)
{
	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);
		uint64_t aside = SUM(m, g, quarantined);

		put_with(m, &l, "result", "ok", SUM(m, g, handled));
		put_with(m, &l, "result", "failed", less(SUM(m, g, failed), aside));
	}
}

static uint64_t refused(struct scrape *m, uint32_t g) { return SUM(m, g, refused); }
void metric_refusals(struct scrape *m) { each_group(m, refused); }

/* Only where nobody tries again for its sender: of a mailbox that blocks, a refusal is no end of a message. */
static uint64_t dropped_newest(struct scrape *m, uint32_t g)
{
	struct sched *s = &m->box->sched;
	uint32_t first, end;
	uint64_t sum = 0;

	members(m, g, &first, &end);
	for (uint32_t t = first; t < end; t++)
		for (uint32_t i = 0; s->types[t]->pub.full_mode == NOH_DROP_NEWEST && i < ports(s); i++)
			sum += load_relaxed(&port_at(s, i)->types[t].refused);
	return sum;
}

void metric_dropped(struct scrape *m)
{
	struct labels nobody = { .len = 0 };

	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);

		put_with(m, &l, "reason", "full_oldest", SUM(m, g, dropped_oldest));
		put_with(m, &l, "reason", "full_newest", dropped_newest(m, g));
		put_with(m, &l, "reason", "coalesced", SUM(m, g, coalesced));
		put_with(m, &l, "reason", "forced", SUM(m, g, dropped_forced));
		put_with(m, &l, "reason", "stop", SUM(m, g, dropped_stop));
		put_with(m, &l, "reason", "quarantined", SUM(m, g, quarantined) + SUM(m, g, dropped_unwell));
		put_with(m, &l, "reason", "rate", SUM(m, g, refused_rate));
	}
	label_add(&nobody, "type", "");          /* what the sender called it is never a label */
	put_with(m, &nobody, "reason", "no_type", sched_sum(&m->box->sched, offsetof(struct port, no_type)));
}

/* Whatever was accepted and has met none of its ends. */
static uint64_t depth(struct scrape *m, uint32_t g)
{
	uint64_t ended = SUM(m, g, handled) + SUM(m, g, failed) + SUM(m, g, coalesced) + SUM(m, g, dropped_oldest) +
			 SUM(m, g, dropped_forced) + SUM(m, g, dropped_stop) + SUM(m, g, dropped_unwell);

	return less(SUM(m, g, accepted), ended);
}
void metric_depth(struct scrape *m) { each_group(m, depth); }

static uint64_t depth_max(struct scrape *m, uint32_t g)
{
	struct sched *s = &m->box->sched;
	uint64_t most = 0;
	uint32_t first, end;

	members(m, g, &first, &end);
	for (uint32_t i = 0; i < ports(s); i++)
		for (uint32_t t = first; t < end; t++) {
			struct meter *x = load_acquire(&port_at(s, i)->meters[t]);
			uint64_t seen = x ? meter_depth(x, m->now_ns / 1000000u) : 0;

			most = seen > most ? seen : most;
		}
	return most;
}
void metric_depth_max(struct scrape *m) { each_group(m, depth_max); }

void metric_capacity(struct scrape *m)
{
	for (uint32_t g = 0; g < m->groups && g < METRIC_TYPES; g++) {
		struct labels l = labels_of(m, g);

		metric_number(m, l.text, m->box->sched.types[g]->capacity);
	}
}

/* ── limits ── */

static uint64_t rests(struct scrape *m, uint32_t g) { return SUM(m, g, rests); }
void metric_rests(struct scrape *m) { each_group(m, rests); }

void metric_resting(struct scrape *m)
{
	struct sched *s = &m->box->sched;

	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);
		uint64_t ended = SUM(m, g, rests_ended), turns = 0;
		uint32_t first, end;

		members(m, g, &first, &end);
		for (uint32_t t = first; t < end; t++)
			turns += load_relaxed(&s->types[t]->limit.places.waiting);
		put_with(m, &l, "reason", "rate", less(SUM(m, g, rests), ended));
		put_with(m, &l, "reason", "turns", turns);
	}
}

/* Types that share a series have no limit in common. */
static uint32_t limited(const struct scrape *m)
{
	return m->groups < METRIC_TYPES ? m->groups : METRIC_TYPES;
}

/* To a thousandth: steps are whole nanoseconds, and a rate of 3 is not to be told as 3.000000003. */
static void put_rate(struct scrape *m, const struct labels *of, const char *scope, bool refuses, uint64_t step_ns)
{
	struct labels l = *of;

	if (!step_ns)
		return;
	label_add(&l, "scope", scope);
	label_add(&l, "over", refuses ? "refuse" : "wait");
	metric_seconds(m, l.text, (UINT64_C(1000000000000) + step_ns / 2) / step_ns * 1000000);
}

void metric_limit_rate(struct scrape *m)
{
	for (uint32_t g = 0; g < limited(m); g++) {
		struct type *t = m->box->sched.types[g];
		struct labels l = labels_of(m, g);
		bool refuses = load_relaxed(&t->limits) & LIMIT_REFUSE;

		put_rate(m, &l, "type", refuses, load_relaxed(&t->limit.set.step_ns));
		put_rate(m, &l, "actor", refuses, load_relaxed(&t->limit.set.actor_step_ns));
	}
}

void metric_limit_burst(struct scrape *m)
{
	for (uint32_t g = 0; g < limited(m); g++) {
		struct limit *x = &m->box->sched.types[g]->limit;
		uint64_t step = load_relaxed(&x->set.step_ns), actor_step = load_relaxed(&x->set.actor_step_ns);
		struct labels l = labels_of(m, g);

		if (step)
			put_with(m, &l, "scope", "type", load_relaxed(&x->set.span_ns) / step);
		if (actor_step)
			put_with(m, &l, "scope", "actor", load_relaxed(&x->set.actor_span_ns) / actor_step);
	}
}

void metric_limit_tokens(struct scrape *m)
{
	for (uint32_t g = 0; g < limited(m); g++) {
		struct limit *x = &m->box->sched.types[g]->limit;
		uint64_t step = load_relaxed(&x->set.step_ns), span = load_relaxed(&x->set.span_ns);
		uint64_t full = load_relaxed(&x->bucket.full_ns);
		struct labels l = labels_of(m, g);

		if (step)
			metric_number(m, l.text, less(span, less(full, m->now_ns)) / step);
	}
}

void metric_limit_turns(struct scrape *m)
{
	for (uint32_t g = 0; g < limited(m); g++) {
		uint32_t turns = load_relaxed(&m->box->sched.types[g]->limit.set.turns);
		struct labels l = labels_of(m, g);

		if (turns)
			metric_number(m, l.text, turns);
	}
}

/* ── histograms ── */

static void each_histogram(struct scrape *m, size_t offset, const struct histogram_scale *scale, bool batches)
{
	struct sched *s = &m->box->sched;

	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);
		struct histogram_sum sum = { .count = 0 };
		uint32_t first, end;

		members(m, g, &first, &end);
		if (batches && end == first + 1 && !s->types[first]->pub.on_batch)
			continue;
		for (uint32_t i = 0; i < ports(s); i++)
			for (uint32_t t = first; t < end; t++) {
				struct meter *x = load_acquire(&port_at(s, i)->meters[t]);

				if (x)
					histogram_collect(&sum, (struct histogram *)(void *)((char *)x + offset));
			}
		metric_histogram(m, l.text, scale, &sum);
	}
}

void metric_wait(struct scrape *m) { each_histogram(m, offsetof(struct meter, wait), &histogram_latency, false); }
void metric_turn(struct scrape *m) { each_histogram(m, offsetof(struct meter, turn), &histogram_fine, false); }
void metric_invoke(struct scrape *m) { each_histogram(m, offsetof(struct meter, invoke), &histogram_latency, false); }
void metric_batch(struct scrape *m) { each_histogram(m, offsetof(struct meter, batch), &histogram_batch, true); }

/* ── what goes wrong ── */

static uint64_t broken(struct scrape *m, uint32_t g) { return SUM(m, g, broken) + SUM(m, g, restarts); }
void metric_restarts(struct scrape *m) { each_group(m, broken); }

static uint64_t unwell(struct scrape *m, uint32_t g, uint32_t how)
{
	uint64_t n = sum_of(m, g, offsetof(struct type_counts, unwell) + how * sizeof(atomic_u64));

	return n > INT64_MAX ? 0 : n;            /* ports are not read at one instant */
}

void metric_unwell(struct scrape *m)
{
	static const char *const names[] = { "down", "degraded", "stopped", "quarantined" };

	for (uint32_t g = 0; g < m->groups; g++) {
		struct labels l = labels_of(m, g);

		for (uint32_t i = 0; i < 4; i++)
			put_with(m, &l, "health", names[i], unwell(m, g, i));
	}
}

static uint64_t set_aside(struct scrape *m, uint32_t g) { return SUM(m, g, set_aside); }
void metric_set_aside(struct scrape *m) { each_group(m, set_aside); }

static uint64_t quarantined(struct scrape *m, uint32_t g) { return SUM(m, g, quarantined) + unwell(m, g, 3); }
void metric_quarantined(struct scrape *m) { each_group(m, quarantined); }

static uint64_t degraded(struct scrape *m, uint32_t g)
{
	uint32_t first, end;
	uint64_t some = 0;

	members(m, g, &first, &end);
	for (uint32_t t = first; t < end; t++)
		some |= m->box->sched.types[t]->refused != 0;
	return some + unwell(m, g, 1);
}
void metric_degraded(struct scrape *m) { each_group(m, degraded); }

void metric_replays(struct scrape *m)
{
	static const char *const names[REPLAYS] = { [REPLAY_LIBRARY] = "library", [REPLAY_RESP] = "resp",
						    [REPLAY_HTTP] = "http" };

	for (uint32_t r = 0; r < REPLAYS; r++) {
		struct labels l = { .len = 0 };
		uint64_t sum = 0;

		for (uint32_t g = 0; g < m->groups; g++)
			sum += sum_of(m, g, offsetof(struct type_counts, replays) + r * sizeof(atomic_u64));
		label_add(&l, "protocol", names[r]);
		metric_number(m, l.text, sum);
	}
}
