/* box/metrics_disk.c - numbers of the journal and the image; a box without a data directory has none of them. */
#include "box/metrics.h"

static bool has_disk(struct scrape *m)
{
	return m->box->disk.journal != NULL;
}

static void put(struct scrape *m, uint64_t n)
{
	if (has_disk(m))
		metric_number(m, "", n);
}

static void put_seconds(struct scrape *m, uint64_t ns)
{
	if (has_disk(m))
		metric_seconds(m, "", ns);
}

static void put_histogram(struct scrape *m, bool records)
{
	struct histogram_sum commit = { .count = 0 }, group = { .count = 0 };

	if (!has_disk(m))
		return;
	journal_get_histograms(m->box->disk.journal, &commit, &group);
	metric_histogram(m, "", records ? &histogram_group : &histogram_latency, records ? &group : &commit);
}

void metric_commit(struct scrape *m) { put_histogram(m, false); }
void metric_group(struct scrape *m) { put_histogram(m, true); }
void metric_lag(struct scrape *m) { put_seconds(m, m->journal.lag_ns); }
void metric_journal(struct scrape *m) { put(m, m->journal.kept_bytes); }
void metric_unfolded(struct scrape *m) { put(m, m->journal.unfolded_bytes); }
void metric_written(struct scrape *m) { put(m, m->journal.bytes); }
void metric_store_used(struct scrape *m) { put(m, m->db.used_bytes); }
void metric_folds(struct scrape *m) { put(m, m->db.folds); }
void metric_idem_keys(struct scrape *m) { put(m, m->db.idem); }
void metric_read_only(struct scrape *m) { put(m, m->journal.no_space); }

void metric_store_limit(struct scrape *m)
{
	uint64_t left = has_disk(m) ? db_room_left(m->box->disk.db) : UINT64_MAX;

	if (left != UINT64_MAX)
		put(m, m->db.used_bytes + left);
}

void metric_oldest_reader(struct scrape *m)
{
	uint64_t now_ms = m->now_ns / 1000000u + m->box->sched.wall_offset_ms;

	if (has_disk(m))
		put_seconds(m, db_oldest_reader_ms(m->box->disk.db, now_ms) * 1000000u);
}
