/* box/metrics.c - the table of metrics, and their text: Prometheus 0.0.4, or OpenMetrics 1.0. */
#include "box/metrics.h"

#include <stdio.h>
#include <string.h>

#define SAMPLED_TURNS "sampled: the first turn of each pass of a worker, and about one in 512"

const struct metric metrics[] = {
	{ "noh_build_info", METRIC_INFO, "version, commit, io_backend, allocator", "What is running.", metric_build },
	{ "noh_start_time_seconds", METRIC_GAUGE, "", "When the box was opened, in seconds since 1970.", metric_started },
	{ "noh_ready_seconds", METRIC_GAUGE, "", "How long it took from opening the box until it served.", metric_ready },

	{ "noh_actors_active", METRIC_GAUGE, "type", "Actors in memory.", metric_actors_active },
	{ "noh_actors_stored", METRIC_GAUGE, "type", "Actors that exist, in memory or at rest.", metric_actors_stored },
	{ "noh_activations_total", METRIC_COUNTER, "type, reason",
	  "Actors brought to memory: new (nothing was stored of them) or loaded.", metric_activations },
	{ "noh_deactivations_total", METRIC_COUNTER, "type, reason",
	  "Actors that left memory: idle, memory (it was short), asked, forced, self, erased, stop.", metric_deactivations },
	{ "noh_messages_accepted_total", METRIC_COUNTER, "type", "Messages that entered a mailbox or a turn.", metric_accepted },
	{ "noh_messages_processed_total", METRIC_COUNTER, "type, result",
	  "Messages handled by a turn: ok (kept; a refusal is one, too) or failed (undone).", metric_processed },
	{ "noh_messages_dropped_total", METRIC_COUNTER, "type, reason",
	  "Messages that no turn has handled: full_oldest, full_newest (its sender was told), coalesced, forced, stop, "
	  "quarantined, rate (over its limits; its sender was told); no_type for types that are not registered.", metric_dropped },
	{ "noh_mailbox_refusals_total", METRIC_COUNTER, "type",
	  "Times a send found the mailbox full and was told so; where mailboxes block, most are tried again.", metric_refusals },
	{ "noh_actors_resting", METRIC_GAUGE, "type, reason",
	  "Actors that have messages and do not run because of their type's limits: rate (until a token comes), turns (until one "
	  "of its turns is over).", metric_resting },
	{ "noh_rests_total", METRIC_COUNTER, "type", "Times an actor rested until a token came.", metric_rests },
	{ "noh_limit_messages_per_second", METRIC_GAUGE, "type, scope, over",
	  "Rate limits in force; none: no such limit. Scope: type (all its actors together) or actor (each of them). Over it, messages "
	  "wait, or their senders are told (refuse).", metric_limit_rate },
	{ "noh_limit_burst_messages", METRIC_GAUGE, "type, scope", "Messages that such a limit lets through at once, after a while without any.",
	  metric_limit_burst },
	{ "noh_limit_tokens", METRIC_GAUGE, "type",
	  "Messages that the limit of the whole type would let through now; what workers have taken ahead is not among them.",
	  metric_limit_tokens },
	{ "noh_limit_turns", METRIC_GAUGE, "type", "Turns of this type that may run at once; none: no such limit.", metric_limit_turns },
	{ "noh_mailbox_depth", METRIC_GAUGE, "type", "Messages that wait, in all mailboxes together.", metric_depth },
	{ "noh_mailbox_depth_max", METRIC_GAUGE, "type",
	  "Messages in the deepest mailbox seen in the last 10 to 20 seconds; sampled, but a full one is always seen.",
	  metric_depth_max },
	{ "noh_mailbox_capacity", METRIC_GAUGE, "type", "Messages a mailbox of this type may hold.", metric_capacity },
	{ "noh_mailbox_wait_seconds", METRIC_HISTOGRAM, "type",
	  "Time from entering a mailbox to being taken out; sampled: one message at a time. What an idle actor handles at "
	  "once has not waited, and is not in it.", metric_wait },
	{ "noh_turn_duration_seconds", METRIC_HISTOGRAM, "type", "Time inside the hook; " SAMPLED_TURNS ".", metric_turn },
	{ "noh_turn_batch_size", METRIC_HISTOGRAM, "type",
	  "Messages of one turn over what waited in the mailbox; of types that take batches.", metric_batch },
	{ "noh_invoke_duration_seconds", METRIC_HISTOGRAM, "type",
	  "Time from a call to its answer, which is on disk then; all calls of the C library that block, and of the network "
	  "the first request of each pass of a worker.", metric_invoke },
	{ "noh_restarts_total", METRIC_COUNTER, "type",
	  "Restarts of supervised actors; and activations that failed: the actor is thrown out, and started anew by its next "
	  "message.", metric_restarts },
	{ "noh_quarantined", METRIC_GAUGE, "type",
	  "Actors that are quarantined, or await a revision, now; and messages set aside since the start, because the process "
	  "ended while they were handled, again and again.", metric_quarantined },
	{ "noh_degraded", METRIC_GAUGE, "type",
	  "Actors that are degraded now; one more: the type is refused, since what is stored of it is of a version that no "
	  "migration leads from.", metric_degraded },
	{ "noh_actors_unwell", METRIC_GAUGE, "type, health",
	  "Actors that are down (backing off), degraded, stopped, or quarantined (or await a revision) now; of those that are "
	  "stored, as far as they were met since the start.", metric_unwell },
	{ "noh_messages_set_aside_total", METRIC_COUNTER, "type",
	  "Messages of supervised actors that failed too often: they are dead letters.", metric_set_aside },
	{ "noh_dead_letters", METRIC_GAUGE, "reason",
	  "Messages nobody could take: quarantined (stored now), undeliverable (since the start).", metric_dead_letters },
	{ "noh_messages_late", METRIC_GAUGE, "",
	  "Messages of finished turns that wait for memory to be delivered with; their senders wait, too.", metric_late },
	{ "noh_late_answers_total", METRIC_COUNTER, "", "Answers nobody waited for any more.", metric_late_answers },
	{ "noh_idempotent_replays_total", METRIC_COUNTER, "protocol",
	  "Calls with an idempotency key that were answered from memory or disk, without another effect: resp, http, "
	  "library.", metric_replays },
	{ "noh_idempotency_keys", METRIC_GAUGE, "", "Idempotency keys in the image.", metric_idem_keys },
	{ "noh_actor_memory_bytes", METRIC_GAUGE, "", "Memory of actors, with all they keep.", metric_memory },

	{ "noh_timers_pending", METRIC_GAUGE, "", "Timers and deadlines that wait.", metric_timers },
	{ "noh_timer_lateness_seconds", METRIC_HISTOGRAM, "", "How late timers reached their actors, in steps of 1 ms.",
	  metric_lateness },
	{ "noh_turns_total", METRIC_COUNTER, "worker", "Turns run.", metric_turns },
	{ "noh_slow_turns_total", METRIC_COUNTER, "worker", "Turns that were reported for taking too long.", metric_slow_turns },
	{ "noh_scheduler_steals_total", METRIC_COUNTER, "worker", "Times this worker took work from another.", metric_steals },
	{ "noh_scheduler_parked_seconds_total", METRIC_COUNTER, "worker", "Time asleep.", metric_parked },
	{ "noh_worker_busy_seconds_total", METRIC_COUNTER, "worker", "Time in passes that found something to do.", metric_busy },
	{ "noh_worker_busy_ratio", METRIC_GAUGE, "worker", "Share of busy time in the last 10 to 20 seconds, 0 to 1.",
	  metric_busy_ratio },

	{ "noh_events_total", METRIC_COUNTER, "", "Events told since the start, by actors and by the box.", metric_events },
	{ "noh_events_lost_total", METRIC_COUNTER, "",
	  "Events of the box that were left out: no memory, or too many waited for a full disk.", metric_events_lost },
	{ "noh_events_bytes", METRIC_GAUGE, "", "Size of the event log: in the image, or of a box without a directory in memory.",
	  metric_events_bytes },
	{ "noh_events_oldest_seconds", METRIC_GAUGE, "", "Age of the oldest event there is.", metric_events_oldest },

	{ "noh_commit_duration_seconds", METRIC_HISTOGRAM, "", "Time from collecting a group of records to having it on disk.",
	  metric_commit },
	{ "noh_commit_batch_size", METRIC_HISTOGRAM, "", "Records of one commit.", metric_group },
	{ "noh_durable_lag_seconds", METRIC_GAUGE, "",
	  "Age of the oldest records that are not on disk yet; 0: all are.", metric_lag },
	{ "noh_journal_bytes", METRIC_GAUGE, "", "Size of the journal's segments on disk.", metric_journal },
	{ "noh_journal_unfolded_bytes", METRIC_GAUGE, "", "Of the journal, what is not in the image yet.", metric_unfolded },
	{ "noh_journal_written_bytes_total", METRIC_COUNTER, "", "Bytes written to the journal.", metric_written },
	{ "noh_store_used_bytes", METRIC_GAUGE, "", "Size of the image.", metric_store_used },
	{ "noh_store_limit_bytes", METRIC_GAUGE, "", "Size it could have: what is used, and what its file system has left.",
	  metric_store_limit },
	{ "noh_store_oldest_reader_seconds", METRIC_GAUGE, "",
	  "For how long the oldest snapshot has kept pages of the image from being used again.", metric_oldest_reader },
	{ "noh_store_folds_total", METRIC_COUNTER, "", "Times the journal was folded into the image, since that was made.",
	  metric_folds },
	{ "noh_read_only", METRIC_GAUGE, "", "1: the disk is full, and writes are refused.", metric_read_only },

	{ "noh_connections", METRIC_GAUGE, "protocol", "Clients that are connected.", metric_connections },
	{ "noh_connections_accepted_total", METRIC_COUNTER, "", "Clients that have come.", metric_connections_total },
	{ "noh_connections_refused_total", METRIC_COUNTER, "", "Clients that were turned away.", metric_connections_refused },
	{ "noh_connections_crowded_total", METRIC_COUNTER, "",
	  "Of those turned away, clients whose address had too many connections.", metric_connections_crowded },
	{ "noh_connections_slow_total", METRIC_COUNTER, "", "Clients that were cut off for being too slow.",
	  metric_connections_slow },
	{ "noh_connections_moved_total", METRIC_COUNTER, "", "Connections that went over to another worker.",
	  metric_connections_moved },
	{ "noh_connections_workers", METRIC_GAUGE, "", "Workers that the connections are gathered on, by trial; all: as they came.",
	  metric_connections_workers },
	{ "noh_logins_total", METRIC_COUNTER, "result",
	  "Logins that failed, or were held: not looked at, since too many from their address had failed.", metric_logins },
	{ "noh_requests_total", METRIC_COUNTER, "protocol, op", "Commands and requests.", metric_requests },
	{ "noh_request_errors_total", METRIC_COUNTER, "", "Replies that were errors.", metric_request_errors },
	{ "noh_request_duration_seconds", METRIC_HISTOGRAM, "protocol, op",
	  "Time from reading a request until its reply may leave, on disk if it has to be; sampled: the first request of each "
	  "pass of a worker, so of a quiet server all of them.", metric_request_duration },
	{ "noh_network_bytes_total", METRIC_COUNTER, "direction", "Bytes read from clients, and written to them.", metric_bytes },
	{ "noh_pushes_total", METRIC_COUNTER, "", "Messages of channels written to clients.", metric_pushes },
	{ "noh_pushes_dropped_total", METRIC_COUNTER, "", "Messages of channels that were not: no memory, or a stuck worker.",
	  metric_pushes_dropped },
	{ "noh_io_uring_sq_full_total", METRIC_COUNTER, "", "Times a submission queue was full.", metric_sq_full },
	{ "noh_io_errors_total", METRIC_COUNTER, "op", "What the system refused: accept, receive, send, disk.",
	  metric_io_errors },
	{ "noh_log_lines_total", METRIC_COUNTER, "result",
	  "Lines of the log: written, left_out (alike, or too many), lost (whoever reads it is too slow).", metric_log_lines },

	{ "process_cpu_seconds_total", METRIC_COUNTER, "", "CPU time of the process.", metric_cpu },
	{ "process_resident_memory_bytes", METRIC_GAUGE, "", "Memory of the process.", metric_resident },
	{ "process_virtual_memory_bytes", METRIC_GAUGE, "", "Its address space; most of it is never touched.", metric_virtual },
	{ "process_open_fds", METRIC_GAUGE, "", "Open file descriptors.", metric_fds },
	{ "process_max_fds", METRIC_GAUGE, "", "How many it may open.", metric_max_fds },
	{ "process_start_time_seconds", METRIC_GAUGE, "", "When the process began, in seconds since 1970.",
	  metric_process_start },
};
const uint32_t metrics_total = sizeof metrics / sizeof metrics[0];

/* ── text ── */

static void hand_on(struct scrape *m)
{
	if (m->rc == 0 && m->len)
		m->rc = m->write(m->user, m->text, m->len);
	m->len = 0;
}

static void put_bytes(struct scrape *m, const char *bytes, size_t len)
{
	if (len > sizeof m->text - m->len)
		hand_on(m);
	memcpy(m->text + m->len, bytes, len);      /* nothing here is as long as the buffer */
	m->len += len;
}

static void put(struct scrape *m, const char *text)
{
	put_bytes(m, text, strlen(text));
}

static size_t digits(char *to, uint64_t n)
{
	char back[20];
	size_t len = 0;

	do {
		back[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	for (size_t i = 0; i < len; i++)
		to[i] = back[len - 1 - i];
	return len;
}

static void put_number(struct scrape *m, uint64_t n)
{
	char text[20];

	put_bytes(m, text, digits(text, n));
}

/* Billionths, exactly; by hand, since printf writes a decimal comma where the program's locale has one. */
static void put_billionths(struct scrape *m, uint64_t n, bool point)
{
	char text[32], *at = text + digits(text, n / 1000000000u);
	uint64_t rest = n % 1000000000u, unit = 100000000u;

	if (rest || point)
		*at++ = '.';
	if (!rest && point)
		*at++ = '0';
	for (; rest; rest %= unit, unit /= 10)
		*at++ = (char)('0' + rest / unit);
	put_bytes(m, text, (size_t)(at - text));
}

/* A type's name may be any bytes; a label has to be UTF-8. */
static bool is_utf8(const unsigned char *s)
{
	while (*s) {
		int more = *s < 0x80 ? 0 : *s >= 0xc2 && *s < 0xe0 ? 1 : (*s & 0xf0) == 0xe0 ? 2 : *s >= 0xf0 && *s < 0xf5 ? 3 : -1;

		if (more < 0 || (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
		    (*s == 0xf4 && s[1] > 0x8f))
			return false;
		for (s++; more > 0; more--, s++)
			if ((*s & 0xc0) != 0x80)
				return false;
	}
	return true;
}

void label_add(struct labels *l, const char *name, const char *value)
{
	bool whole = is_utf8((const unsigned char *)value);
	size_t len = strlen(name);

	if (l->len + len + 2 * strlen(value) + 5 > sizeof l->text)
		return;
	if (l->len)
		l->text[l->len++] = ',';
	memcpy(l->text + l->len, name, len);
	l->len += len;
	l->text[l->len++] = '=';
	l->text[l->len++] = '"';
	for (; *value; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			l->text[l->len++] = '\\';
		l->text[l->len++] = *value == '\n' ? 'n' : !whole && (*value & 0x80) ? '?' : *value;
	}
	l->text[l->len++] = '"';
	l->text[l->len] = 0;
}

void label_number(struct labels *l, const char *name, uint64_t value)
{
	char text[21];

	text[digits(text, value)] = 0;
	label_add(l, name, text);
}

/* ── samples ── */

/* OpenMetrics calls a counter's family by its name without _total, and an info's without _info. */
static void put_head(struct scrape *m, const char *what, const char *text)
{
	const struct metric *k = m->metric;
	size_t len = strlen(k->name);
	bool open = m->format == NOH_OPENMETRICS;

	if (open && k->kind == METRIC_COUNTER)
		len -= strlen("_total");
	else if (open && k->kind == METRIC_INFO)
		len -= strlen("_info");
	put(m, what);
	put_bytes(m, k->name, len);
	put(m, " ");
	put(m, text);
	put(m, "\n");
}

/* A metric without a sample is not mentioned. */
static void begin_sample(struct scrape *m)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram", "gauge" };
	const struct metric *k = m->metric;

	if (!m->headed) {
		put_head(m, "# HELP ", k->help);
		put_head(m, "# TYPE ", m->format == NOH_OPENMETRICS && k->kind == METRIC_INFO ? "info" : kinds[k->kind]);
	}
	m->headed = true;
	put(m, k->name);
}

static void put_name(struct scrape *m, const char *suffix, const char *labels)
{
	begin_sample(m);
	put(m, suffix);
	if (*labels) {
		put(m, "{");
		put(m, labels);
		put(m, "}");
	}
	put(m, " ");
}

void metric_number(struct scrape *m, const char *labels, uint64_t value)
{
	put_name(m, "", labels);
	put_number(m, value);
	put(m, "\n");
}

void metric_seconds(struct scrape *m, const char *labels, uint64_t ns)
{
	put_name(m, "", labels);
	put_billionths(m, ns, false);
	put(m, "\n");
}

void metric_ratio(struct scrape *m, const char *labels, uint64_t part, uint64_t whole)
{
	while (whole >> 33) {                      /* so that a billion times as much fits */
		whole >>= 1;
		part >>= 1;
	}
	metric_seconds(m, labels, whole == 0 ? 0 : part >= whole ? 1000000000u : part * 1000000000u / whole);
}

static void put_bucket(struct scrape *m, const char *labels, const struct histogram_scale *scale, uint32_t i)
{
	begin_sample(m);
	put(m, "_bucket{");
	put(m, labels);
	put(m, *labels ? ",le=\"" : "le=\"");
	if (i == scale->count)
		put(m, "+Inf");
	else
		put_billionths(m, scale->seconds ? scale->bounds[i] : scale->bounds[i] * 1000000000u,
			       m->format == NOH_OPENMETRICS);
	put(m, "\"} ");
}

void metric_histogram(struct scrape *m, const char *labels, const struct histogram_scale *scale,
		      const struct histogram_sum *sum)
{
	uint64_t upto = 0;

	for (uint32_t i = 0; i <= scale->count; i++) {
		upto += sum->buckets[i];
		put_bucket(m, labels, scale, i);
		put_number(m, upto);
		put(m, "\n");
	}
	put_name(m, "_sum", labels);
	if (scale->seconds)
		put_billionths(m, sum->sum, false);
	else
		put_number(m, sum->sum);
	put(m, "\n");
	put_name(m, "_count", labels);
	put_number(m, upto);
	put(m, "\n");
}

/* ── all of them ── */

int noh_metrics(noh_box *box, int format, noh_text_fn *write, void *user)
{
	struct sched *s = &box->sched;
	struct scrape m;

	if ((format != NOH_PROMETHEUS && format != NOH_OPENMETRICS) || !write)
		return error_set(NOH_EINVAL, "noh_metrics: a format that is none, or no function to call");
	if (!s->workers)
		return error_set(NOH_ESTOPPED, "the box was not started");
	m.box = box;
	m.format = format;
	m.write = write;
	m.user = user;
	m.rc = 0;
	m.len = 0;
	m.now_ns = clock_now_ns(&s->clock);
	m.groups = s->type_count > METRIC_TYPES ? METRIC_TYPES + 1 : s->type_count;
	memset(&m.journal, 0, sizeof m.journal);
	memset(&m.db, 0, sizeof m.db);
	(void)noh_get_net_stats(box, &m.net);
	if (box->disk.journal) {
		journal_get_stats(box->disk.journal, &m.journal);
		db_shown_stats(box->disk.db, &m.db);
	}
	for (uint32_t i = 0; i < metrics_total && m.rc == 0; i++) {
		m.metric = &metrics[i];
		m.headed = false;
		metrics[i].write(&m);
	}
	if (format == NOH_OPENMETRICS)
		put(&m, "# EOF\n");
	hand_on(&m);
	return m.rc;
}
