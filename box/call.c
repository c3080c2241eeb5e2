/* box/call.c - noh.h, section 4: calls, which wait for an answer. */
#include "box/api.h"
#include "sched/durable.h"
#include "sched/meter.h"

#include <string.h>

/* Copy the state as the last finished turn left it. */
static bool copy_state(struct type *t, struct body *b, uint64_t *out)
{
	atomic_u64 *version = (atomic_u64 *)(void *)(b->data + t->version_off);
	atomic_u64 *words = (atomic_u64 *)(void *)body_state(t, b);
	size_t n = (t->pub.state_size + 7u) / 8;

	for (int tries = 0; tries < 1000; tries++) {
		uint64_t before = load_acquire(version);

		for (size_t i = 0; i < n; i++)
			out[i] = load_acquire(&words[i]);
		if (!(before & 1) && load_acquire(version) == before)
			return true;
		cpu_relax();
	}
	return false;
}

int api_call_result(const char *address, int status, size_t len, size_t room, bool wanted)
{
	if ((status == NOH_OK || status == NOH_REFUSED) && wanted && len > room)
		return error_set(NOH_ETOOBIG, "the answer of %s has %zu bytes, there is room for %zu",
				 address, len, room);
	if (status < 0 && status != NOH_ETIMEOUT)
		return error_set(status, "%s: %s", address, noh_strerror(status));
	return status;
}

/* What the state tells is on disk. If not, the ordinary way waits for it. */
static bool shown(struct sched *s, struct cell *c)
{
	return !sched_is_durable(s) || load_acquire(body_due(c->body)) <= load_acquire(&s->durable);
}

#define READ_STATE_MAX 4096

/* A read-only kind runs here and now, beside the mailbox (RT-22). False: take the ordinary way. */
static bool call_read_only(noh_box *box, const char *address, uint32_t kind, const void *body,
			   size_t len, bool at_once, void *answer, size_t *answer_len, int *rc)
{
	struct sched *s = &box->sched;
	uint64_t state[READ_STATE_MAX / 8];
	struct effects nothing = { 0 };          /* and no room for more */
	struct noh_turn turn = { .sched = s, .fx = &nothing, .so_far = { .flags = TURN_READONLY | TURN_OUTSIDE | TURN_ADDRESS,
						    .state = state },
				 .answer = answer,
				 .answer_room = answer && answer_len ? *answer_len : 0 };
	noh_msg m = { .kind = kind, .len = (uint32_t)len, .body = body,
		      .flags = NOH_MSG_WANTS_REPLY };
	struct address a;
	struct port *p;
	uint32_t gen;
	bool ok = false;

	if (address_parse(&a, address, address_len(address)) != NOH_OK)
		return false;
	turn.type = sched_find_type(s, a.type, a.type_len);
	if (!turn.type || !turn.type->reads || kind >= turn.type->pub.kind_count ||
	    !(turn.type->pub.kinds[kind].flags & NOH_KIND_READ) || !turn.type->pub.on_message ||
	    turn.type->pub.state_size > READ_STATE_MAX || len > s->max_message)
		return false;
	p = api_look_port(box);
	if (!p)
		return false;
	epoch_enter(&p->epoch);
	turn.cell = sched_find(p, &a, turn.type, address_hash(&a, s->seed), &gen);
	if (turn.cell && (load_acquire(&turn.cell->life) & (LIFE_OF | LIFE_HELD)) == NOH_ACTIVE)
		ok = copy_state(turn.type, turn.cell->body, state) && (at_once || shown(s, turn.cell));
	epoch_leave(&p->epoch);
	sched_port_done(p);
	if (!ok)
		return false;
	memcpy(turn.address, address, strlen(address) + 1);
	turn.address[a.type_len] = ':';
	turn.msgs = &m;
	turn.msg_count = 1;
	sched_set_reading(true);
	*rc = turn.type->pub.on_message(&turn, &m);
	sched_set_reading(false);
	if (answer_len)
		*answer_len = turn.answer_len;
	if (*rc < 0)
		(void)error_set(*rc, "%s: %s", address,
				turn.so_far.flags & TURN_REASON ? turn.reason : noh_strerror(*rc));
	else
		*rc = api_call_result(address, *rc == NOH_REFUSED ? *rc : NOH_OK, turn.answer_len, turn.answer_room, answer != NULL);
	return true;
}

int api_check_options(const noh_call_options *o)
{
	if (o->durability != NOH_DISK && o->durability != NOH_MEMORY)
		return error_set(NOH_EINVAL, "durability %d is none of NOH_DISK and NOH_MEMORY", o->durability);
	if (o->key ? o->key_len < 1 || o->key_len > 255 : o->key_len != 0)
		return error_set(NOH_EINVAL, "an idempotency key has 1 to 255 bytes, not %zu", o->key_len);
	return NOH_OK;
}

/* Why is known of who is supervised: what it last failed of. */
static int call_failed(noh_box *box, const char *address, int rc)
{
	noh_vitals v;

	if ((rc != NOH_EFAILED && rc != NOH_EQUARANTINED && rc != NOH_EDEGRADED) ||
	    noh_get_vitals(box, address, &v) != NOH_OK || !*v.reason)
		return api_call_result(address, rc, 0, 0, false);
	return error_set(rc, "%s: %s: %s", address, noh_strerror(rc), v.reason);
}

/* It was answered. */
static void measure(struct sched *s, const char *address, uint64_t since_ns)
{
	uint64_t now = clock_now_ns(&s->clock);
	struct type *t = NULL;
	struct address a;
	struct port *p;

	if (address_parse(&a, address, address_len(address)) == NOH_OK)
		t = sched_find_type(s, a.type, a.type_len);
	if (!t)
		return;
	p = sched_port(s);
	meter_invoke(p, t, now - since_ns);
	sched_port_done(p);
}

static int call(noh_box *box, const char *address, struct outgoing *out, uint32_t timeout_ms, void *answer,
		size_t *answer_len)
{
	struct sched *s = &box->sched;
	bool at_once = out->options && out->options->durability == NOH_MEMORY;
	size_t room = answer && answer_len ? *answer_len : 0, got = 0;
	uint64_t until = api_until_ns(box, timeout_ms);
	struct port *p;
	int rc = api_may_block("noh_call");

	if (rc == NOH_OK)
		rc = api_running(box);
	if (rc == NOH_OK)
		rc = api_check_body(out->body, out->len);
	if (rc != NOH_OK)
		return rc;
	if (call_read_only(box, address, out->kind, out->body, out->len, at_once, answer, answer_len, &rc))
		return rc;
	p = sched_port(s);
	out->reply = pending_call(p, answer, room);
	sched_port_done(p);
	if (!out->reply)
		return error_set(NOH_ENOMEM, "no memory for another call");
	rc = api_send_until(box, address, out, until);
	if (rc != NOH_OK) {
		p = sched_port(s);
		pending_drop(p, out->reply);
		sched_port_done(p);
		return rc;
	}
	rc = pending_wait(s, out->reply, until, &got);
	if (rc != NOH_ETIMEOUT && rc != NOH_ESTOPPED)
		measure(s, address, until - (uint64_t)timeout_ms * 1000000u);
	if (answer_len)
		*answer_len = got;
	if (rc == NOH_ETIMEOUT)
		return error_set(rc, "%s: no answer within %u ms", address, timeout_ms);
	if (rc < 0)
		return call_failed(box, address, rc);
	return api_call_result(address, rc, got, room, answer != NULL);
}

int noh_call(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
	     uint32_t timeout_ms, void *answer, size_t *answer_len)
{
	return call(box, address, &(struct outgoing){ kind, body, len, 0, NULL, NULL }, timeout_ms, answer,
		    answer_len);
}

int noh_call_with(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
		  const noh_call_options *o, void *answer, size_t *answer_len)
{
	int rc = o ? api_check_options(o) : NOH_OK;

	if (rc != NOH_OK)
		return rc;
	return call(box, address, &(struct outgoing){ kind, body, len, 0, o, NULL },
		    o && o->timeout_ms ? o->timeout_ms : API_TIMEOUT_MS, answer, answer_len);
}

static int call_then(noh_box *box, const char *address, struct outgoing *out, uint32_t timeout_ms,
		     noh_done_fn *done, void *user)
{
	struct sched *s = &box->sched;
	struct port *p;
	int rc = api_running(box);

	if (rc != NOH_OK)
		return rc;
	if (!done)
		return error_set(NOH_EINVAL, "noh_call_then without a function to call");
	p = sched_port(s);
	out->reply = pending_then(p, done, user);
	sched_port_done(p);
	if (!out->reply)
		return error_set(NOH_ENOMEM, "no memory for another call");
	rc = api_send(box, address, out);
	p = sched_port(s);
	if (rc == NOH_OK)
		pending_deadline(p, out->reply, clock_due(s, timeout_ms));
	else
		pending_drop(p, out->reply);
	sched_port_done(p);
	return rc;
}

int noh_call_then(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
		  uint32_t timeout_ms, noh_done_fn *done, void *user)
{
	return call_then(box, address, &(struct outgoing){ kind, body, len, 0, NULL, NULL }, timeout_ms, done, user);
}

int noh_call_then_with(noh_box *box, const char *address, uint32_t kind, const void *body, size_t len,
		       const noh_call_options *o, noh_done_fn *done, void *user)
{
	int rc = o ? api_check_options(o) : NOH_OK;

	if (rc != NOH_OK)
		return rc;
	return call_then(box, address, &(struct outgoing){ kind, body, len, 0, o, NULL },
			 o && o->timeout_ms ? o->timeout_ms : API_TIMEOUT_MS, done, user);
}

int noh_sync(noh_box *box, uint32_t timeout_ms)
{
	int rc = api_may_block("noh_sync");

	if (rc == NOH_OK && load_acquire(&box->phase) != BOX_RUNNING)
		rc = api_running(box);
	if (rc != NOH_OK || !box->disk.journal)
		return rc;
	rc = journal_wait(box->disk.journal, journal_epoch(box->disk.journal),
			  (uint64_t)timeout_ms * 1000000u);
	if (rc != NOH_EDISK && load_acquire(&box->disk.failed))      /* the keeper's: the image, not the journal */
		return error_set(NOH_EDISK, "the data directory failed; the log says how");
	if (rc == NOH_ETIMEOUT)
		return error_set(rc, "what has happened is not on disk after %u ms", timeout_ms);
	return rc;
}
