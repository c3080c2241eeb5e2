/* box/serve.c - noh.h, section 8: the network, and the door between it and the actors (deliver.c: requests). */
#include "box/deliver.h"
#include "sched/events.h"
#include "sched/meter.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* ── the network's part of a pass: sched.h ── */

static struct net *net_at(noh_box *box, uint32_t worker)
{
	return load_relaxed(&box->server->nets[worker]);
}

static int on_open(void *arg, uint32_t worker)
{
	noh_box *box = arg;

	if (net_open(box->server, worker))
		return net_at(box, worker)->io->wake_fd + 1;
	sched_logf(&box->sched, NOH_ERROR, "", "worker %u has no network: %s", worker, noh_why());
	server_unlisten(box->server, worker);    /* else its share of the clients would wait for ever */
	return 0;
}

#define FEW_CLIENTS 2

static uint32_t on_read(void *arg, uint32_t worker)
{
	struct worker *w = &((noh_box *)arg)->sched.workers[worker];
	struct net *n = net_at(arg, worker);
	uint32_t work = net_read(n);

	/* A lone client that was just answered asks again soon: worth a longer look before sleeping. */
	w->mine.crowded = load_relaxed(&n->shown.connections) > FEW_CLIENTS;
	w->mine.answered |= work && !w->mine.crowded;
	return work;
}

static uint32_t on_write(void *arg, uint32_t worker) { return net_write(net_at(arg, worker)); }
static void on_submit(void *arg, uint32_t worker) { net_submit(net_at(arg, worker)); }
static bool on_ready(void *arg, uint32_t worker) { return net_ready(net_at(arg, worker)); }
static bool on_pending(void *arg, uint32_t worker) { return net_pending(net_at(arg, worker)); }
static void on_wait(void *arg, uint32_t worker, uint64_t ns) { net_wait(net_at(arg, worker), ns); }
static bool on_idle(void *arg) { return server_idle(((noh_box *)arg)->server); }

/* ── what the network asks of the box: net.h ── */

static int door_status(void *arg, const char *address, noh_status *status, uint64_t *due)
{
	return api_status(arg, address, status, due);
}

/* Vitals may be told before the record they are in is pushed, so they are due with the epoch that goes on now; and that one
 * may have nothing else to end it. */
static int door_vitals(void *arg, const char *address, noh_vitals *vitals, uint64_t *due)
{
	struct sched *s = &((noh_box *)arg)->sched;
	int rc = api_vitals(arg, address, vitals, due);

	if (*due > load_relaxed(&s->durable))
		s->journal.wake(s->journal.arg);
	return rc;
}

static int door_list(void *arg, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count, uint64_t *due)
{
	return api_list(arg, type, cursor, entries, count, due);
}

static int door_scan(void *arg, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user,
		     uint64_t *due)
{
	return api_scan(arg, type, cursor, limit, each, user, due);
}

static uint64_t door_known(void *arg)
{
	struct sched *s = &((noh_box *)arg)->sched;
	uint64_t due = 0;

	for (uint32_t i = 0; i < s->worker_count; i++) {
		uint64_t known = load_acquire(&s->workers[i].shown.known_due);

		due = known > due ? known : due;
	}
	return due;
}

static atomic_u64 *door_awaits(void *arg, uint32_t worker)
{
	return &((noh_box *)arg)->sched.workers[worker].shown.net_awaits;
}

static uint64_t door_now_ns(void *arg)
{
	return clock_now_ns(&((noh_box *)arg)->sched.clock);
}

static uint64_t door_wall_ms(void *arg)
{
	noh_box *box = arg;

	return sched_clock_wall_ms(&box->sched);
}

static void door_log(void *arg, int level, const char *line)
{
	sched_logf(&((noh_box *)arg)->sched, level, "", "%s", line);
}

static ck_epoch_record_t *door_epoch(void *arg, uint32_t worker)
{
	return &((noh_box *)arg)->sched.workers[worker].mine.port.epoch;
}

static struct span_ring *door_spans(void *arg, uint32_t worker)
{
	return &((noh_box *)arg)->sched.workers[worker].spans;
}

static void door_wake(void *arg, uint32_t worker)
{
	park_wake(&((noh_box *)arg)->sched.workers[worker].shared.park);
}

static void door_answered(void *arg, uint32_t worker, void *type, uint64_t ns)
{
	meter_invoke(&((noh_box *)arg)->sched.workers[worker].mine.port, type, ns);
}

/* ── channels ── */

static uint64_t door_publish(void *arg, uint32_t worker, const struct arg *channel, const struct arg *body)
{
	noh_box *box = arg;

	return events_publish(&box->sched.workers[worker].mine.port,
			      &(struct event){ channel->at, channel->len, body->at, body->len, 0, NULL });
}

static bool door_personal(void *arg, const struct arg *channel, struct request *r)
{
	noh_box *box = arg;
	size_t len;
	char address[ADDRESS_MAX + 1];

	if (!events_personal(&box->sched, channel->at, channel->len, address, &len, &r->kind))
		return false;
	memcpy((char *)(uintptr_t)r->id, address, len);
	r->id_len = (uint32_t)len;
	return true;
}

static uint64_t on_publish(void *arg, struct port *p, struct topic *topic, const struct event *e)
{
	return server_publish(((noh_box *)arg)->server, p->worker ? p->worker->fixed.index : UINT32_MAX, topic, e);
}

/* ── noh.h ── */

/* CF-01: an id that stays, where there is a place to keep it. */
static void name_node(noh_box *box, const char *given)
{
	char *id = box->server->node_id;
	uint64_t random = 0;             /* not the seed: that is nobody's business */

	if (given && *given) {
		snprintf(id, sizeof box->server->node_id, "%s", given);
		return;
	}
	if (box->disk.journal)
		random = box->disk.dir.id;
	else
		(void)!getrandom(&random, sizeof random, 0);
	snprintf(id, sizeof box->server->node_id, "%016llx", (unsigned long long)random);
}

int noh_listen(noh_box *box, const noh_listen_options *options)
{
	struct net_door door = { box, door_prepare, door_deliver, door_step, door_status, door_vitals, door_list, door_scan, door_known,
				 door_awaits, door_now_ns, door_wall_ms, door_log, &box->sched.durable, &box->sched.topics,
				 door_epoch, door_spans, door_publish, door_personal, door_wake, door_answered, box_errand };

	if (load_relaxed(&box->phase) != BOX_OPEN)
		return error_set(NOH_ESTOPPED, "noh_listen comes before noh_start");
	if (box->server)
		return error_set(NOH_EEXISTS, "the box listens already");
	int rc = server_open(&box->server, options, box->sched.worker_count, &door);

	if (rc == NOH_OK)
		name_node(box, options ? options->node_id : NULL);
	return rc;
}

int noh_set_accounts(noh_box *box, const noh_account *accounts, size_t count)
{
	if (!box->server)
		return error_set(NOH_EINVAL, "noh_set_accounts: the box does not listen");
	return server_set_accounts(box->server, accounts, count);
}

int noh_set_listen_options(noh_box *box, const noh_listen_options *options)
{
	if (!box->server)
		return error_set(NOH_EINVAL, "noh_set_listen_options: the box does not listen");
	return server_set_options(box->server, options);
}

static int answer_request(noh_box *box, uint64_t request, bool ok, const char *text, size_t len)
{
	uint32_t owner = token_worker(request);
	struct net *n;

	if (!box->server || owner >= box->server->workers || !(request & TOKEN_NET))
		return error_set(NOH_EINVAL, "nobody made this request");
	n = load_acquire(&box->server->nets[owner]);
	if (n && net_answer_late(n, request, 0, ok ? NOH_OK : NOH_REFUSED, text, len))
		park_wake(&box->sched.workers[owner].shared.park);
	return NOH_OK;
}

/* Whole lines: a reader may rely on each one's end. */
int noh_reloaded(noh_box *box, uint64_t request, bool ok, const char *findings)
{
	const char *end = strrchr(findings, '\n');

	return answer_request(box, request, ok, findings, end ? (size_t)(end - findings) + 1 : 0);
}

int noh_drained(noh_box *box, uint64_t request, bool ok, const char *sentence)
{
	return answer_request(box, request, ok, sentence, strlen(sentence));
}

int noh_get_net_stats(noh_box *box, noh_net_stats *stats)
{
	memset(stats, 0, sizeof *stats);
	stats->io = "";
	if (box->server)
		server_stats(box->server, stats);
	return NOH_OK;
}

void box_net_start(noh_box *box)
{
	struct sched *s = &box->sched;

	if (!box->server)
		return;
	if (box->disk.journal) {
		struct journal_stats j;

		journal_get_stats(box->disk.journal, &j);
		snprintf(box->server->no_space, sizeof box->server->no_space, "%.200s is full, %llu bytes are needed: nothing "
			 "was changed, reads go on, and writes as soon as there is space", box->disk.dir.path,
			 (unsigned long long)j.segment_bytes);
	}
	sched_count_messages(s);
	if (box->server->o.http_port || box->server->o.http_unix_path)
		sched_keep_since(s);             /* only there somebody may ask */
	box->counter = sched_find_type(s, "counter", 7);
	box->inventory = sched_find_type(s, "inventory", 9);
	s->net = (struct sched_net){ box, on_open, on_read, on_write, on_submit, on_ready, on_pending, on_wait,
				     on_idle, door_answer, on_publish };
	box_errands_start(box);
	add_seq_cst(&box->events.listeners, 1);
	feeds_start(box->server);
}

/* As long as there are workers: they are told. */
void box_feeds_stop(noh_box *box)
{
	if (box->server)
		feeds_stop(box->server);
}

void box_net_stop(noh_box *box)
{
	if (!box->server)
		return;
	box_feeds_stop(box);
	server_stop(box->server);
	sched_wake_all(&box->sched);
}

void box_net_close(noh_box *box)
{
	box_errands_close(box);
	if (box->server)
		server_close(box->server);
	box->server = NULL;
}
