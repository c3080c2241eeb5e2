/* box/deliver.c - from request to turn, and from answer to connection.
 *
 * Requests come in batches. Their addresses are hashed and the memory they will touch is asked for together;
 * then each is delivered: if its actor is idle the worker that read the request runs the turn at once, from
 * the receive buffer (turn in place); if it is busy, the message waits in its mailbox.
 */
#include "box/deliver.h"
#include "net/net.h"
#include "sched/birth.h"
#include "sched/durable.h"

#include <string.h>

/* Cells and bodies are about to be written to: asked for as such they come once, also from another core. */
#if defined(__x86_64__)
#define TO_WRITE __attribute__((target("prfchw")))
#else
#define TO_WRITE
#endif

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

static bool gathers(const struct type *t)
{
	return t && t->durable && t->pub.on_batch;
}

/* Several messages for one durable actor are one record if they meet in its mailbox. */
static void see_who_follows(struct arrival *a, const struct arrival *next)
{
	a->more = next && next->hash == a->hash && gathers(a->type);
}

/* What a turn with entries and timers looks at. The address is a hint: its actor may be anybody's, and going. */
static void fetch_ext(const char *ext)
{
	__builtin_prefetch(ext + offsetof(struct ext, kv), 1);
	__builtin_prefetch(ext + offsetof(struct ext, weight), 1);
}

TO_WRITE void door_prepare(void *arg, uint32_t worker, struct arrival *list, uint32_t n, bool behind)
{
	noh_box *box = arg;
	struct directory *d = &box->sched.directory;

	(void)worker;
	for (uint32_t i = 0; i < n + behind; i++) {
		list[i].type = type_of(box, &list[i]);
		list[i].hash = address_hash_text(list[i].address, list[i].address_len, box->sched.seed);
		directory_fetch_table(d, list[i].hash);
	}
	for (uint32_t i = 0; i < n; i++) {
		directory_fetch(d, list[i].hash);        /* by now its table is here */
		see_who_follows(&list[i], i + 1 < n + behind ? &list[i + 1] : NULL);
	}
	if (n < 3)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct directory_walk walk;
		uint32_t number;

		directory_walk(d, list[i].hash, &walk);
		number = directory_next(&walk);
		list[i].found = number ? cell_at(&box->sched, number) : NULL;
		__builtin_prefetch(list[i].found, 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct cell *c = list[i].found;
		const char *body = c ? (const char *)load_relaxed(&c->body) : NULL;
		const struct type *t = list[i].type;
		const char *ext;

		if (!body || !t)
			continue;
		__builtin_prefetch(body, 1);
		__builtin_prefetch(body + sizeof(struct body) + t->id_off, 1);   /* many stand on two lines */
		ext = (const char *)load_relaxed(&c->ext);
		if (ext)
			fetch_ext(ext);
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
static int deliver_message(struct worker *w, const struct named *who, const struct arrival *a, struct effect *e)
{
	struct port *p = &w->mine.port;
	bool in_place = !a->more && (!sched_is_durable(w->fixed.sched) || durable_room(w));
	bool limited = load_relaxed(&who->type->limits) & LIMIT_REFUSE;
	struct cell *c;
	uint32_t gen;
	bool claimed;
	int rc;

	do {
		claimed = in_place && !limited;
		rc = sched_resolve_found(p, who, a->found, &c, &gen, &claimed);
		if (rc == NOH_OK && __builtin_expect(limited, 0))
			rc = limit_admit(p, c, who->type);
		if (rc != NOH_OK)
			return rc;
		if (claimed || (in_place && mailbox_claim(&c->mailbox, gen))) {
			e->cell = cell_number(w->fixed.sched, c);
			e->gen = gen;
			if (c->ext)
				kv_fetch(&c->ext->kv);
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

/* What it asks for is checked and put into m. Most ask with a few bytes, and nothing else. */
static int fill_message(noh_box *box, struct arrival *a, struct msg *m)
{
	struct type *t = a->type;

	if (__builtin_expect(!a->key && !a->trace && a->len <= MSG_INLINE && a->len <= box->sched.max_message && !t->refused, 1)) {
		(void)msg_set_body(m, a->body, a->len);          /* takes no memory */
		return type_check_kind(t, a->kind);
	}
	noh_call_options options = { .key = a->key, .key_len = a->key_len };
	struct outgoing out = { a->kind, a->body, a->len, a->token, a->key ? &options : NULL, a->trace };
	int rc = api_check(&box->sched, t, &out);

	if (rc != NOH_OK)
		return rc;
	return api_set_body(&box->sched, m, &out)
		       ? NOH_OK : error_set(NOH_ENOMEM, "no memory for a message of %u bytes", a->len);
}

int door_deliver(void *arg, uint32_t worker, struct arrival *a)
{
	noh_box *box = arg;
	struct worker *w = &box->sched.workers[worker];
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
	e.msg.reply = a->token;
	rc = fill_message(box, a, &e.msg);
	if (rc != NOH_OK)
		return rc;
	rc = deliver_message(w, &who, a, &e);
	a->final = who.type->pub.full_mode != NOH_BLOCK;
	if (rc != NOH_OK)
		msg_free_body(&e.msg);
	return rc;
}

/* ── answers ── */

_Static_assert(NET_REPLAYED == ANSWER_REPLAYED && TOKEN_NET == TOKEN_OF_NET, "both sides mean the same");

void door_answer(void *arg, struct port *p, uint64_t token, uint64_t due, int status, const void *body,
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
int door_step(void *arg, uint32_t worker, const struct request *requests, uint32_t n, uint32_t timeout_ms,
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
