/* box/metrics.h - noh.h, section 6: every number of the box as text, in the form Prometheus reads.
 *
 * One table (metrics.c) says what there is: the text, docs/metrics.md and its check are made from it. Each row has a
 * function that sums what workers, journal, image and network have counted for themselves, and puts samples.
 * metrics_types.c: by actor type.  metrics_box.c: workers, disk, network, process.
 *
 * Owns     nothing. A scrape is a buffer on its caller's stack, handed on whenever it is full.
 * Threads  any, at once, from noh_start to noh_close. Relaxed loads: a scrape is no instant.
 * Never    waits, allocates, or looks at single actors: a label is never an actor's id.
 */
#ifndef NOH_BOX_METRICS_H
#define NOH_BOX_METRICS_H

#include "box/box.h"
#include "net/net.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };

struct scrape;
struct metric {
	const char      *name;             /* of a counter: with _total */
	enum metric_kind kind;
	const char      *labels;           /* "type, reason"; "": none  */
	const char      *help;             /* one sentence, no backslash, no quote, no newline */
	void           (*write)(struct scrape *m);
};
extern const struct metric metrics[];
extern const uint32_t metrics_total;

#define METRIC_TYPES 100                   /* that have series of their own; the others' are one: type=":other" */
#define METRIC_LABELS 512                  /* bytes of the labels of one sample                               */

struct scrape {
	noh_box             *box;
	int                  format;       /* NOH_PROMETHEUS, NOH_OPENMETRICS */
	noh_text_fn         *write;
	void                *user;
	int                  rc;           /* what write said, once it was not 0 */
	const struct metric *metric;       /* at hand */
	bool                 headed;       /* it has a sample already */
	uint64_t             now_ns;
	noh_net_stats        net;
	struct journal_stats journal;      /* without a directory: zero */
	struct db_stats      db;
	uint32_t             groups;       /* types shown; with ":other" */
	size_t               len;
	char                 text[8192];
};

/* ── putting samples of the metric at hand; labels: a="b",c="d", or "" ── */
void metric_number(struct scrape *m, const char *labels, uint64_t value);
void metric_seconds(struct scrape *m, const char *labels, uint64_t ns);
void metric_ratio(struct scrape *m, const char *labels, uint64_t part, uint64_t whole);
void metric_histogram(struct scrape *m, const char *labels, const struct histogram_scale *scale,
		      const struct histogram_sum *sum);

/* name="value" with the value escaped, and a comma before it if it is not the first. */
struct labels { char text[METRIC_LABELS]; size_t len; };
void label_add(struct labels *l, const char *name, const char *value);
void label_number(struct labels *l, const char *name, uint64_t value);

/* ── the rows' functions ── */
typedef void metric_fn(struct scrape *m);

/* metrics_types.c */
metric_fn metric_actors_active, metric_actors_stored, metric_activations, metric_deactivations, metric_accepted,
	metric_processed, metric_dropped, metric_refusals, metric_depth, metric_depth_max, metric_capacity, metric_wait, metric_turn,
	metric_invoke, metric_batch, metric_restarts, metric_quarantined, metric_degraded, metric_unwell,
	metric_set_aside, metric_replays, metric_rests, metric_resting, metric_limit_rate, metric_limit_burst, metric_limit_tokens,
	metric_limit_turns;

/* metrics_box.c */
metric_fn metric_build, metric_started, metric_ready, metric_dead_letters, metric_late, metric_late_answers, metric_memory,
	metric_log_lines, metric_timers, metric_lateness, metric_turns, metric_slow_turns, metric_steals, metric_parked, metric_busy,
	metric_busy_ratio, metric_events, metric_events_lost, metric_events_bytes, metric_events_oldest;

/* metrics_disk.c */
metric_fn metric_commit, metric_group, metric_lag, metric_journal, metric_unfolded, metric_written, metric_store_used,
	metric_store_limit, metric_oldest_reader, metric_folds, metric_idem_keys, metric_read_only;

/* metrics_net.c */
metric_fn metric_sq_full, metric_io_errors, metric_connections, metric_connections_total, metric_connections_refused,
	metric_connections_crowded, metric_connections_slow, metric_connections_moved, metric_connections_workers, metric_logins, metric_requests, metric_request_errors, metric_request_duration, metric_bytes,
	metric_pushes, metric_pushes_dropped;

/* metrics_process.c */
metric_fn metric_cpu, metric_resident, metric_virtual, metric_fds, metric_max_fds, metric_process_start;
uint64_t process_start_ms(uint64_t wall_ms);       /* wall-clock time; 0: not known */

#endif
