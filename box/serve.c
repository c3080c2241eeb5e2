/* box/serve.c - noh.h, section 8: the network, and the door between it and the actors.
 *
 * Requests come in batches. Their addresses are hashed and the memory they will touch is asked for together;
 * then each is delivered: if its actor is idle the worker that read the request runs the turn at once, from
 * the receive buffer (turn in place); if it is busy, the message waits in its mailbox.
 */
#include "box/api.h"
#include "net/net.h"
#include "sched/birth.h"
#include "sched/durable.h"
#include "sched/events.h"
#include "sched/meter.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* ── delivering ── */

static struct type *type_of(noh_box *box, const struct arrival *a)
{
	const char *colon;

	switch ((enum request_type)a->named) {
	case TYPE_COUNTER:
		return box->counter;
	case TYPE_INVENTORY:
		return box->inventory;
	case TYPE_IN_ADDRESS:
		break;
	}
	/* Anything out of the ordinary is looked at when it is delivered. */
	colon = memchr(a->address, ':', a->address_len);
	return colon && colon + 1 < a->address + a->address_len
		       ? sched_find_type(&box->sched, a->address, (size_t)(colon - a->address)) : NULL;
}

/* Several messages for one durable actor are one record if they meet in its mailbox. */
static bool gathers(const struct type *t)
{
	return t && t->durable && t->pub.on_batch;
}

static void prepare(void *arg, uint32_t worker, struct arrival *list, uint32_t n)
{
	noh_box *box = arg;
	struct directory *d = &box->sched.directory;
	struct cell *cells[ARRIVALS];

	(void)worker;
	for (uint32_t i = 0; i < n; i++) {
		list[i].type = type_of(box, &list[i]);
		list[i].hash = address_hash_text(list[i].address, list[i].address_len, box->sched.seed);
		directory_fetch(d, list[i].hash);
		list[i].more = false;
		if (i && list[i].hash == list[i - 1].hash && gathers(list[i].type))
			list[i - 1].more = true;
	}
	if (n < 3)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct directory_walk walk;
		uint32_t number;

		directory_walk(d, list[i].hash, &walk);
		number = directory_next(&walk);
		cells[i] = number ? cell_at(&box->sched, number) : NULL;
		__builtin_prefetch(cells[i], 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		const char *body = cells[i] ? (const char *)load_relaxed(&cells[i]->body) : NULL;

		if (!body)
			continue;
		__builtin_prefetch(body, 1);
		__builtin_prefetch(body + 47, 1);        /* many stand on two lines */
	}
}

static void name(const struct arrival *a, struct named *who)
{
	struct type *t = a->type;

	who->a.type = a->address;
	who->a.type_len = (uint8_t)t->name_len;
	who->a.id = a->address + t->name_len + 1;
	who->a.id_len = (uint8_t)(a->address_len - t->name_len - 1);
	who->type = t;
	who->hash = a->hash;
}

/* Idle: run it here and now. Busy, or more for it come behind: into its mailbox. */
static int deliver_message(struct worker *w, const struct named *who, bool more, struct effect *e)
{
	struct port *p = &w->mine.port;
	bool in_place = !more && (!sched_is_durable(w->fixed.sched) || durable_room(w));
	bool limited = load_relaxed(&who->type->limits) & LIMIT_REFUSE;
	struct cell *c;
	uint32_t gen;
	bool claimed;
	int rc;

	do {
		claimed = in_place && !limited;
		rc = sched_resolve_named(p, who, &c, &gen, &claimed);
		if (rc == NOH_OK && __builtin_expect(limited, 0))
			rc = limit_admit(p, c, who->type);
		if (rc != NOH_OK)
			return rc;
		if (claimed || (in_place && mailbox_claim(&c->mailbox, gen))) {
			e->cell = cell_number(w->fixed.sched, c);
			e->gen = gen;
			sched_serve_hand(w, e);
			return NOH_OK;
		}
		rc = api_push(p, c, gen, &e->msg);
		if (rc != NOH_OK && __builtin_expect(limited, 0))
			limit_unadmit(p, c, who->type);
	} while (rc == NOH_EGONE);
	return rc;
}

static int deliver_system(struct worker *w, const struct named *who, const struct arrival *a)
{
	struct port *p = &w->mine.port;
	bool claim = false, on = a->op == REQUEST_ACTIVATE;
	struct sysmsg *n;
	struct cell *c;
	uint32_t gen;
	int rc = NOH_OK;

	if (on)
		rc = sched_resolve_named(p, who, &c, &gen, &claim);
	else
		c = sched_find(p, &who->a, who->type, who->hash, &gen);
	if (rc != NOH_OK)
		return rc;
	if (!c)
		return error_set(NOH_ENOACTOR, "%.*s is not active", (int)a->address_len, a->address);
	n = node_take(p, on ? SYS_ACTIVATE : SYS_DEACTIVATE);
	if (!n)
		return error_set(NOH_ENOMEM, "no memory for another call");
	n->token = a->token;
	n->status = a->op == REQUEST_DEACTIVATE_FORCE;
	sched_sys(p, c, gen, n);
	return NOH_OK;
}

/* A message to a type that is never on disk is accepted when it is in its mailbox: nobody waits for the turn. */
static void send_only(struct arrival *a)
{
	if (a->op == REQUEST_SEND && !((struct type *)a->type)->durable)
		a->token = 0;
}

static int deliver(void *arg, uint32_t worker, struct arrival *a)
{
	noh_box *box = arg;
	struct worker *w = &box->sched.workers[worker];
	noh_call_options options = { .key = a->key, .key_len = a->key_len };
	struct outgoing out = { a->kind, a->body, a->len, 0, a->key ? &options : NULL, a->trace };
	struct effect e = { .msg = { .kind = a->kind } };
	struct named who;
	int rc;

	if (__builtin_expect(load_relaxed(&box->drain_until_ns) != 0, 0))
		return error_set(NOH_ESTOPPED, "the server is draining before it ends; nothing was changed: ask another one, or this "
				 "one again when it is back");
	rc = a->type ? NOH_OK : birth_name(&w->mine.port, a->address, a->address_len, &who);
	if (rc != NOH_OK)
		return rc;
	if (a->type)
		name(a, &who);           /* else: "type/id" */
	else
		a->type = who.type;
	if (a->op != REQUEST_CALL && a->op != REQUEST_SEND)
		return deliver_system(w, &who, a);
	send_only(a);
	out.reply = e.msg.reply = a->token;
	rc = api_check(&box->sched, a->type, &out);
	if (rc != NOH_OK)
		return rc;
	if (!api_set_body(&box->sched, &e.msg, &out))
		return error_set(NOH_ENOMEM, "no memory for a message of %u bytes", a->len);
	rc = deliver_message(w, &who, a->more, &e);
	a->final = who.type->pub.full_mode != NOH_BLOCK;
	if (rc != NOH_OK)
		msg_free_body(&e.msg);
	return rc;
}

/* ── answers ── */

_Static_assert(NET_REPLAYED == ANSWER_REPLAYED && TOKEN_NET == TOKEN_OF_NET, "both sides mean the same");

static void answer(void *arg, struct port *p, uint64_t token, uint64_t due, int status, const void *body,
		   size_t len)
{
	noh_box *box = arg;
	uint32_t owner = token_worker(token);
	struct net *n = load_acquire(&box->server->nets[owner]);

	if (p->worker && p->worker->fixed.index == owner)
		net_answer(n, token, due, status, body, len);
	else if (net_answer_late(n, token, due, status, body, len))
		park_wake(&box->sched.workers[owner].shared.park);
}

/* What a step's answer finds its way back by. */
struct stepping {
	noh_box *box;
	uint64_t token;
	size_t   bytes;
};

static void step_done(void *user, int status, const noh_part_answer *answers, size_t count)
{
	struct stepping *st = user;
	noh_box *box = st->box;
	uint32_t owner = token_worker(st->token);
	struct net *n = load_acquire(&box->server->nets[owner]);
	struct worker *self = sched_self();
	struct reply_part parts[NOH_STEP_PARTS];

	for (size_t i = 0; i < count; i++)
		parts[i] = (struct reply_part){ status < 0 && answers[i].status == NOH_OK ? status : answers[i].status,
					      (uint32_t)answers[i].len, answers[i].body };
	if (self && self->fixed.sched == &box->sched && self->fixed.index == owner)
		net_answer_parts(n, st->token, 0, status, parts, (uint32_t)count);
	else if (net_answer_parts_late(n, st->token, 0, status, parts, (uint32_t)count))
		park_wake(&box->sched.workers[owner].shared.park);
	mem_free(st, st->bytes);
}

/* The step's own gate holds the answer until it is on disk. */
static int step(void *arg, uint32_t worker, const struct request *requests, uint32_t n, uint32_t timeout_ms,
		uint64_t token)
{
	noh_box *box = arg;
	noh_call_options o = { .timeout_ms = timeout_ms, .durability = requests->durability, .key = requests->key,
			       .key_len = requests->key_len };
	size_t bytes = sizeof(struct stepping) + n * sizeof(noh_part);
	struct stepping *st;
	noh_part *parts;
	char *text;
	int rc;

	(void)worker;
	if (n > NOH_STEP_PARTS)
		return error_set(NOH_ETOOBIG, "a step over %u actors: at most %d", n, NOH_STEP_PARTS);
	if (box->server->o.durability == NOH_MEMORY)
		o.durability = NOH_MEMORY;
	for (uint32_t i = 0; i < n; i++)
		bytes += strlen(request_prefixes[requests[i].type]) + requests[i].id_len + 1;
	st = mem_alloc(bytes);
	if (!st)
		return error_set(NOH_ENOMEM, "no memory for a step over %u actors", n);
	*st = (struct stepping){ box, token, bytes };
	parts = (noh_part *)(void *)(st + 1);
	text = (char *)(parts + n);
	for (uint32_t i = 0; i < n; i++) {
		size_t name_len = strlen(request_prefixes[requests[i].type]);

		parts[i] = (noh_part){ text, requests[i].kind, requests[i].body, requests[i].len };
		memcpy(text, request_prefixes[requests[i].type], name_len);
		memcpy(text + name_len, requests[i].id, requests[i].id_len);
		text[name_len + requests[i].id_len] = 0;
		if (memchr(text, 0, name_len + requests[i].id_len)) {
			mem_free(st, bytes);
			return error_set(NOH_EADDRESS, "a key with a NUL byte in it");
		}
		text += name_len + requests[i].id_len + 1;
	}
	rc = api_step_then(box, parts, n, &o, step_done, st, token);
	if (rc != NOH_OK)
		mem_free(st, bytes);
	return rc;
}

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
			      &(struct event){ channel->at, channel->len, body->at, body->len, 0 });
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
	struct net_door door = { box, prepare, deliver, step, door_status, door_list, door_scan, door_known, door_awaits,
				 door_now_ns, door_wall_ms, door_log, &box->sched.durable, &box->sched.topics,
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
	if (box->server->o.http_port || box->server->o.http_unix_path)
		sched_keep_since(s);             /* only there somebody may ask */
	box->counter = sched_find_type(s, "counter", 7);
	box->inventory = sched_find_type(s, "inventory", 9);
	s->net = (struct sched_net){ box, on_open, on_read, on_write, on_submit, on_ready, on_pending, on_wait,
				     on_idle, answer, on_publish };
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
