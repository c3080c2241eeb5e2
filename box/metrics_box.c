/* box/metrics_box.c - numbers of the box itself and of its workers. */
#include "box/metrics.h"

#ifndef NOH_COMMIT
#define NOH_COMMIT "unknown"
#endif

void metric_build(struct scrape *m)
{
	struct labels l = { .len = 0 };

	label_add(&l, "version", noh_version());
	label_add(&l, "commit", NOH_COMMIT);
	label_add(&l, "io_backend", *m->net.io ? m->net.io : "none");
	label_add(&l, "allocator", mem_name());
	metric_number(m, l.text, 1);
}

void metric_started(struct scrape *m)
{
	metric_seconds(m, "", m->box->opened_wall_ms * 1000000u);
}

void metric_ready(struct scrape *m)
{
	uint64_t ready = load_relaxed(&m->box->ready_ns);

	if (ready)
		metric_seconds(m, "", ready - m->box->opened_ns);
}

void metric_dead_letters(struct scrape *m)
{
	struct sched *s = &m->box->sched;
	uint64_t all = sched_sum(s, offsetof(struct port, dead_letters)), aside = 0;
	struct labels l = { .len = 0 }, other = { .len = 0 };

	for (uint32_t i = 0; i < s->worker_count; i++)
		for (uint32_t t = 0; t < s->type_count; t++)
			aside += load_relaxed(&s->workers[i].mine.port.types[t].quarantined) +
				 load_relaxed(&s->workers[i].mine.port.types[t].set_aside);
	label_add(&l, "reason", "quarantined");
	metric_number(m, l.text, m->db.dead);
	label_add(&other, "reason", "undeliverable");
	metric_number(m, other.text, all > aside ? all - aside : 0);
}

void metric_late(struct scrape *m)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < m->box->sched.worker_count; i++)
		n += load_relaxed(&m->box->sched.workers[i].shown.late);
	metric_number(m, "", n);
}

/* Of a box that logs by noh's own logger. */
void metric_log_lines(struct scrape *m)
{
	static const char *const results[] = { "written", "left_out", "lost" };
	noh_logger_stats stats;

	if (m->box->sched.log_line != noh_logger_write)
		return;
	noh_get_logger_stats(m->box->sched.log_user, &stats);
	for (int i = 0; i < 3; i++) {
		struct labels l = { .len = 0 };

		label_add(&l, "result", results[i]);
		metric_number(m, l.text, i == 0 ? stats.written : i == 1 ? stats.left_out : stats.lost);
	}
}

void metric_late_answers(struct scrape *m)
{
	metric_number(m, "", sched_sum(&m->box->sched, offsetof(struct port, late_answers)));
}

void metric_memory(struct scrape *m)
{
	metric_number(m, "", sched_bytes(&m->box->sched));
}

/* ── events ── */

void metric_events(struct scrape *m)
{
	metric_number(m, "", load_relaxed(&m->box->sched.events.told));
}

void metric_events_lost(struct scrape *m)
{
	metric_number(m, "", load_relaxed(&m->box->sched.events.lost));
}

void metric_events_bytes(struct scrape *m)
{
	metric_number(m, "", m->box->disk.db ? m->db.event_bytes : eventlog_bytes(&m->box->events));
}

void metric_events_oldest(struct scrape *m)
{
	uint64_t now = m->now_ns / 1000000u + m->box->sched.wall_offset_ms, at = m->db.event_oldest_ms;

	if (!at)
		at = eventlog_oldest_ms(&m->box->events);
	if (at)
		metric_seconds(m, "", now > at ? (now - at) * 1000000u : 0);
}

/* ── timers ── */

void metric_timers(struct scrape *m)
{
	struct sched *s = &m->box->sched;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->worker_count; i++)
		sum += clock_pending(&s->workers[i]);
	metric_number(m, "", sum);
}

void metric_lateness(struct scrape *m)
{
	struct sched *s = &m->box->sched;
	struct histogram_sum sum = { .count = 0 };

	for (uint32_t i = 0; i < s->worker_count; i++)
		histogram_collect(&sum, &s->workers[i].shown.lateness);
	metric_histogram(m, "", &histogram_latency, &sum);
}

/* ── workers ── */

static void each_worker(struct scrape *m, void (*put)(struct scrape *m, const char *labels, struct worker *w))
{
	for (uint32_t i = 0; i < m->box->sched.worker_count; i++) {
		struct labels l = { .len = 0 };

		label_number(&l, "worker", i);
		put(m, l.text, &m->box->sched.workers[i]);
	}
}

static void turns(struct scrape *m, const char *l, struct worker *w)
{
	metric_number(m, l, load_relaxed(&w->shown.counts.turns));
}
void metric_turns(struct scrape *m) { each_worker(m, turns); }

static void slow_turns(struct scrape *m, const char *l, struct worker *w)
{
	metric_number(m, l, load_relaxed(&w->shown.slow_turns));
}
void metric_slow_turns(struct scrape *m) { each_worker(m, slow_turns); }

static void steals(struct scrape *m, const char *l, struct worker *w)
{
	metric_number(m, l, load_relaxed(&w->shown.counts.steals));
}
void metric_steals(struct scrape *m) { each_worker(m, steals); }

static void parked(struct scrape *m, const char *l, struct worker *w)
{
	metric_seconds(m, l, load_relaxed(&w->shown.parked_ns));
}
void metric_parked(struct scrape *m) { each_worker(m, parked); }

static void busy(struct scrape *m, const char *l, struct worker *w)
{
	metric_seconds(m, l, load_relaxed(&w->shown.busy_ns));
}
void metric_busy(struct scrape *m) { each_worker(m, busy); }

static void busy_ratio(struct scrape *m, const char *l, struct worker *w)
{
	uint64_t since = load_relaxed(&w->shown.since_ns), before = load_relaxed(&w->shown.since_busy_ns);
	uint64_t now = load_relaxed(&w->shown.busy_ns);

	metric_ratio(m, l, now > before ? now - before : 0, m->now_ns > since ? m->now_ns - since : 0);
}
void metric_busy_ratio(struct scrape *m) { each_worker(m, busy_ratio); }
