/* box/api.c - noh.h, section 4: what any thread may call (the numbers are in stats.c).
 *
 * Every function here borrows a port (sched.h) for its sends, and gives it back before it blocks.
 */
#include "box/api.h"
#include "sched/durable.h"
#include "sched/events.h"
#include "sched/image.h"
#include "sched/meter.h"

#include <string.h>

int api_running(noh_box *box)
{
	if (load_acquire(&box->phase) != BOX_RUNNING || load_relaxed(&box->sched.stopping))
		return error_set(NOH_ESTOPPED, "the box is not running");
	return NOH_OK;
}

/* The port is taken first, then the flag
 * looked at; noh_stop raises the flag first, then waits for the ports: so nothing is accepted behind
 * its back. */
struct port *api_port(noh_box *box)
{
	struct port *p = sched_port(&box->sched);

	if (!load_seq_cst(&box->sched.stopping))
		return p;
	sched_port_done(p);
	(void)error_set(NOH_ESTOPPED, "the box is not running");
	return NULL;
}

/* The same to look only, as long as there is something to look at: a box that stops frees its actors when all
 * ports are back. */
struct port *api_look_port(noh_box *box)
{
	struct port *p = sched_port(&box->sched);

	if (load_seq_cst(&box->phase) == BOX_RUNNING)
		return p;
	sched_port_done(p);
	(void)error_set(NOH_ESTOPPED, "the box is not running");
	return NULL;
}

uint64_t api_until_ns(noh_box *box, uint32_t timeout_ms)
{
	return clock_now_ns(&box->sched.clock) + (uint64_t)timeout_ms * 1000000u;
}

int api_may_block(const char *what)
{
	if (sched_in_turn())
		return error_set(NOH_EINTURN, "%s blocks: not inside a turn%s", what,
				 strcmp(what, "noh_call") == 0 ? " (use noh_ask)" : "");
	return NOH_OK;
}

int api_check_body(const void *body, size_t len)
{
	return body || !len ? NOH_OK : error_set(NOH_EINVAL, "a body of %zu bytes that is NULL", len);
}

int api_check_message(struct sched *s, struct type *t, uint32_t kind, const void *body, size_t len)
{
	int rc = api_check_body(body, len);

	if (rc != NOH_OK)
		return rc;
	if (len > s->max_message)
		return error_set(NOH_ETOOBIG, "message of %zu bytes: the limit is %u", len,
				 s->max_message);
	return type_check_kind(t, kind);
}

/* ── sending ── */

/* Far over its capacity with what may not be dropped: then it is this one. */
static int shed(struct port *p, struct type *t, const struct msg *m)
{
	count_one(&p->types[t->index].accepted, 1);
	count_one(&p->types[t->index].dropped_oldest, 1);
	msg_dispose(p, m, NOH_FULL);
	return NOH_OK;
}

static int no_memory(void)
{
	return error_set(NOH_ENOMEM, "no memory for another waiting message");
}

/* Into the mailbox, by its full mode. m's body is the mailbox's if this is NOH_OK. */
int api_push(struct port *p, struct cell *c, uint32_t gen, const struct msg *m)
{
	struct type *t = cell_type(p->sched, c);

	if (t->shared) {
		int rc = sched_deliver(p, c, gen, m);

		return rc == NOH_ENOMEM ? no_memory() : rc;
	}
	switch (mailbox_push(&c->mailbox, &p->room, gen, t->sheds ? t->hard : t->capacity, m)) {
	case MB_PUSHED_WAKE:
		sched_enqueue(p, c);
		/* fall through */
	case MB_PUSHED:
		meter_accepted(p, c, t, 1);
		return NOH_OK;
	case MB_FULL:
		meter_full(p, t);
		if (t->sheds)
			return shed(p, t, m);
		count_one(&p->types[t->index].refused, 1);
		return NOH_FULL;
	case MB_GONE:
		return NOH_EGONE;
	case MB_NOMEM:
		break;
	}
	return no_memory();
}

/* A key, or an answer that need not wait, go in an envelope. */
static bool put_body(struct msg *m, const struct outgoing *out)
{
	const noh_call_options *o = out->options;
	size_t key = o && o->key ? o->key_len : 0;
	struct envelope *env;

	if (!key && !(o && o->durability == NOH_MEMORY))
		return msg_set_body(m, out->body, out->len);
	env = mem_alloc(sizeof *env + out->len + key);
	if (!env)
		return false;
	*env = (struct envelope){ .bytes = (uint32_t)(sizeof *env + out->len + key),
				  .key_len = (uint16_t)key,
				  .flags = o->durability == NOH_MEMORY ? ENVELOPE_MEMORY : 0 };
	if (out->len)
		memcpy(env + 1, out->body, out->len);
	if (key)
		memcpy((char *)(env + 1) + out->len, o->key, key);
	m->len = (uint32_t)out->len | MSG_WRAPPED;
	m->body.big = env;
	return true;
}

bool api_set_body(struct sched *s, struct msg *m, const struct outgoing *out)
{
	if (!put_body(m, out))
		return false;
	if (__builtin_expect(out->trace || (out->options && out->options->traceparent), 0))
		api_set_trace(s, m, out);
	return true;
}

/* By its type's limits. */
static int admit_and_push(struct port *p, struct cell *c, uint32_t gen, const struct msg *m)
{
	struct type *t = cell_type(p->sched, c);
	bool limited = load_relaxed(&t->limits) & LIMIT_REFUSE;
	int rc = limited ? limit_admit(p, c, t) : NOH_OK;

	if (rc != NOH_OK)
		return rc;
	rc = api_push(p, c, gen, m);
	if (limited && rc != NOH_OK)
		limit_unadmit(p, c, t);
	return rc;
}

static int send_cell(struct port *p, struct cell *c, uint32_t gen, const struct outgoing *out)
{
	struct msg m = { .kind = out->kind, .reply = out->reply };
	int rc = api_check_message(p->sched, cell_type(p->sched, c), out->kind, out->body, out->len);

	if (rc != NOH_OK)
		return rc;
	if (!api_set_body(p->sched, &m, out))
		return error_set(NOH_ENOMEM, "no memory for a message of %zu bytes", out->len);
	rc = admit_and_push(p, c, gen, &m);
	if (rc != NOH_OK)
		msg_free_body(&m);
	return rc;
}

int api_check(struct sched *s, struct type *t, const struct outgoing *out)
{
	if (t->refused)
		return error_set(t->refused, "type %s is refused: its stored actors are of a version that no "
				 "migration leads from; see the log of the start, or run noh check", t->name);
	if (!t->durable && out->options && out->options->key)
		return error_set(NOH_EINVAL, "an idempotency key needs a durable type, and %s is not", t->name);
	return api_check_message(s, t, out->kind, out->body, out->len);
}

/* An actor may go back to storage between look-up and push: look it up again. */
int api_send(noh_box *box, const char *address, const struct outgoing *out)
{
	struct sched *s = &box->sched;
	struct address a;
	struct type *t;
	struct port *p;
	struct cell *c;
	uint32_t gen;
	int rc = address_parse(&a, address, address_len(address));

	/* A message that will be refused makes no cell. */
	t = rc == NOH_OK ? sched_find_type(s, a.type, a.type_len) : NULL;
	if (t)
		rc = api_check(s, t, out);
	if (rc != NOH_OK)
		return rc;
	p = api_port(box);
	if (!p)
		return NOH_ESTOPPED;
	do {
		rc = sched_resolve(p, address, address_len(address), &c, &gen);
		if (rc == NOH_OK)
			rc = send_cell(p, c, gen, out);
	} while (rc == NOH_EGONE);
	sched_port_done(p);
	return rc;
}

int noh_send(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len)
{
	int rc = api_running(box);

	return rc == NOH_OK ? api_send(box, address, &(struct outgoing){ kind, body, len, 0, NULL, NULL }) : rc;
}

int noh_send_ref(noh_box *box, noh_actor to, uint32_t kind, const void *body, size_t len)
{
	struct sched *s = &box->sched;
	struct port *p;
	int rc = api_running(box);

	if (rc != NOH_OK)
		return rc;
	if (ref_number(to) == 0 || ref_number(to) >= load_relaxed(&s->cells.shared.fresh))
		return error_set(NOH_EINVAL, "a reference to nobody");
	p = api_port(box);
	if (!p)
		return NOH_ESTOPPED;
	if (load_acquire(&cell_at(s, ref_number(to))->mailbox.gen) != ref_gen(to))
		rc = NOH_EGONE;
	else
		rc = send_cell(p, cell_at(s, ref_number(to)), ref_gen(to),
			       &(struct outgoing){ kind, body, len, 0, NULL, NULL });
	sched_port_done(p);
	if (rc == NOH_EGONE)
		return error_set(rc, "the reference is stale: its actor went back to storage; send to "
				 "its address");
	return rc;
}

/* Full: flag the mailbox, look again, sleep until somebody made room or the time is up. The flag is
 * seen by the actor's runner before it goes idle, so there is always a wake-up. */
static bool wait_for_room(noh_box *box, const char *address, uint64_t until_ns)
{
	struct sched *s = &box->sched;
	uint32_t event, gen;
	struct port *p;
	struct cell *c;
	uint64_t now;
	bool full = false;

	add_seq_cst(&s->room_waiters, 1);
	event = load_seq_cst(&s->room_event);
	p = api_port(box);
	if (!p) {
		add_seq_cst(&s->room_waiters, UINT32_MAX);
		return true;             /* the next try says why */
	}
	if (sched_resolve(p, address, address_len(address), &c, &gen) == NOH_OK &&
	    cell_type(s, c)->pub.full_mode == NOH_BLOCK)
		full = mailbox_flag_room(&c->mailbox) &&
		       mailbox_depth(&c->mailbox) >= cell_type(s, c)->capacity;
	sched_port_done(p);
	now = clock_now_ns(&s->clock);
	if (full && now < until_ns)
		futex_wait(&s->room_event, event, until_ns - now);
	add_seq_cst(&s->room_waiters, UINT32_MAX);
	return now < until_ns;
}

/* NOH_FULL of a block mailbox is worth waiting for; of a drop_newest one it is an answer. */
int api_send_until(noh_box *box, const char *address, const struct outgoing *out, uint64_t until_ns)
{
	struct address a;
	int rc;

	for (;;) {
		rc = api_running(box);
		if (rc == NOH_OK)
			rc = api_send(box, address, out);
		if (rc != NOH_FULL)
			return rc;
		if (address_parse(&a, address, address_len(address)) == NOH_OK &&
		    sched_find_type(&box->sched, a.type, a.type_len)->pub.full_mode != NOH_BLOCK)
			return rc;
		if (!wait_for_room(box, address, until_ns))
			return rc;
	}
}

int noh_send_wait(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
		  uint32_t timeout_ms)
{
	int rc = api_may_block("noh_send_wait");

	if (rc != NOH_OK)
		return rc;
	return api_send_until(box, address, &(struct outgoing){ kind, body, len, 0, NULL, NULL },
			      api_until_ns(box, timeout_ms));
}

/* What the actor of a personal channel refuses is the result; else how many others heard it, and him. */
int noh_publish_to(noh_box *box, const char *channel, const void *body, size_t len)
{
	char address[ADDRESS_MAX + 1];
	size_t channel_len = channel ? strlen(channel) : 0, address_len;
	bool personal;
	uint64_t heard;
	struct port *p;
	uint32_t kind;
	int rc = api_running(box);

	if (rc == NOH_OK)
		rc = events_check(channel, channel_len);
	if (rc == NOH_OK && len > box->sched.max_message)
		rc = error_set(NOH_ETOOBIG, "message of %zu bytes: the limit is %u", len, box->sched.max_message);
	if (rc != NOH_OK)
		return rc;
	personal = events_personal(&box->sched, channel, channel_len, address, &address_len, &kind);
	if (personal) {
		rc = api_send(box, address, &(struct outgoing){ kind, body, len, 0, NULL, NULL });
		if (rc != NOH_OK)
			return rc == NOH_FULL ? error_set(NOH_EFAILED, "the mailbox of %s is full", address) : rc;
	}
	p = api_port(box);
	if (!p)
		return NOH_ESTOPPED;
	heard = events_publish(p, &(struct event){ channel, channel_len, body, len, 0, NULL }) + personal;
	sched_port_done(p);
	return heard < INT32_MAX ? (int)heard : INT32_MAX;
}
