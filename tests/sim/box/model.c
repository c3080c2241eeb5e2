/* tests/sim/box/model.c - what must hold, turn by turn, answer by answer, and after every crash.
 *
 * Every turn that changes a state writes a number into it: its version. The model knows of each which one
 * it followed, what caused it, and which messages it handled. So a state tells exactly what has happened
 * to its actor, and what was lost: whatever does not lead up to it.
 */
#include "tests/sim/box/sim.h"

#include <inttypes.h>
#include <string.h>

#define TURN_MAX 80

static struct { uint32_t uid[TURN_MAX], heard[TURN_MAX], count, made; } turn[ACTORS];     /* messages of the turn that runs */

bool model_reaches(uint32_t v, uint32_t to)
{
	while (to && sim->version[to].depth > sim->version[v].depth)
		to = sim->version[to].parent;
	return v == 0 || v == to;
}

/* ── messages ── */

uint32_t model_send(unsigned from, unsigned to, uint32_t version, bool recorded)
{
	uint32_t uid = ++sim->messages;

	must(uid < MESSAGES);
	sim->message[uid] = (struct message){ .from = (uint8_t)from, .to = (uint8_t)to, .sent_by = version,
					      .recorded = recorded };
	seen->messages++;
	if (from < ACTORS)
		sim_say("%s sends message %u to %s", sim_name(from), uid, sim_name(to));
	return uid;
}

/* Its mailbox may throw it away: coalescing, a full mode, a forced end. */
bool model_may_drop(const struct message *m)
{
	enum sim_type to = sim_actors[m->to].type;

	return to == LAST || (to == LOG && (sim->plan.faults & F_FORCE));
}

static void check_order(unsigned a, uint32_t uid, const struct message *m)
{
	uint32_t last = m->recorded ? sim->version[sim->tip[a]].last[m->from] : sim->heard[m->from][a];

	if (uid > last)
		return;
	if (m->handled_by && model_reaches(m->handled_by, sim->tip[a]))
		sim_violation("%s handles message %u twice: first in version %u", sim_name(a), uid,
			      m->handled_by);
	sim_violation("%s handles message %u after message %u of the same sender", sim_name(a), uid, last);
}

void model_hears(unsigned a, const noh_msg *m, const struct sim_body *b)
{
	struct message *msg;

	if (m->flags & (NOH_MSG_TIMER | NOH_MSG_ANSWER))
		return;
	if (m->len < sizeof *b || b->uid > sim->messages || b->op >= OPS)
		sim_violation("%s hears a message that nobody sent", sim_name(a));
	if (b->op && sim->op[b->op].state == OP_REFUSED && !sim->op[b->op].key)
		sim_violation("%s handles op %u, which was refused", sim_name(a), b->op);
	if (b->uid == 0)
		return;                                  /* keyed: model_handles looks */
	msg = &sim->message[b->uid];
	if (msg->to != a)
		sim_violation("%s hears message %u, which is for %s", sim_name(a), b->uid, sim_name(msg->to));
	if (msg->sent_by && sim->version[msg->sent_by].failed)
		sim_violation("%s hears message %u of a turn that failed", sim_name(a), b->uid);
	if (msg->recorded && msg->sent_by && !model_reaches(msg->sent_by, sim->tip[msg->from]))
		sim_violation("%s hears message %u of a turn that was lost", sim_name(a), b->uid);
	check_order(a, b->uid, msg);
	must(turn[a].count < TURN_MAX);
	turn[a].uid[turn[a].count++] = b->uid;
}

/* ── turns ── */

void model_enter(unsigned a, const struct sim_state *s)
{
	uint32_t tip = sim->tip[a], expect = sim->version[tip].erased ? 0 : tip;

	seen->turns++;
	if (sim->busy[a])
		sim_violation("%s runs twice at once", sim_name(a));
	sim->busy[a] = true;
	turn[a].count = 0;
	if (!s)
		return;
	if (s->version != expect)
		sim_violation("%s begins a turn with version %" PRIu64 ", but its last was %u", sim_name(a),
			      s->version, expect);
	for (size_t i = 0; i < sizeof s->pad; i++)
		if (s->pad[i] != (uint8_t)s->version)
			sim_violation("%s has a state that nobody wrote", sim_name(a));
}

uint32_t model_version(unsigned a)
{
	uint32_t v = ++sim->versions, tip = sim->tip[a];

	must(v < VERSIONS);
	sim->version[v] = sim->version[tip];
	sim->version[v].parent = tip;
	sim->version[v].depth++;
	sim->version[v].actor = (uint8_t)a;
	sim->version[v].op = sim->version[v].key = 0;
	sim->version[v].failed = sim->version[v].erased = false;
	memset(sim->version[v].causes, 0, sizeof sim->version[v].causes);
	seen->versions++;
	return v;
}

static void add_cause(uint32_t v, uint32_t cause)
{
	uint32_t *at = sim->version[v].causes;

	if (!cause)
		return;
	for (unsigned i = 0; i < CAUSES; i++)
		if (at[i] == cause || at[i] == 0) {
			at[i] = cause;
			return;
		}
	at[sim_below(CAUSES)] = cause;
}

uint32_t model_with_key(uint32_t v, uint32_t key)
{
	while (v && sim->version[v].key != key)
		v = sim->version[v].parent;
	return v;
}

/* A version takes notice of a message (or, with uid 0, of a keyed one). */
void model_handles(unsigned a, uint32_t v, const struct sim_body *b)
{
	struct version *at = &sim->version[v];

	at->op = b->op;
	for (unsigned i = 0; i < b->count && i < CAUSES; i++)
		add_cause(v, b->known[i]);
	if (b->uid) {
		add_cause(v, sim->message[b->uid].sent_by);
		return;
	}
	if (sim->several[b->op].count) {
		several_version(b->op, v);
		return;
	}
	uint32_t key = sim->op[b->op].key;

	if (model_with_key(at->parent, key))
		sim_violation("%s handles key %u again: first in version %u", sim_name(a), key,
			      model_with_key(at->parent, key));
	at->key = key;
	at->amount = b->amount;
}

static unsigned actor_at(const char *address)
{
	unsigned a = 0;

	while (strcmp(address, sim_name(a)) != 0)
		a++;
	return a;
}

/* The record of the turn that just ended is pushed; from `due` on it is on disk. */
void model_recorded(const char *address, uint64_t due)
{
	uint32_t v = turn[actor_at(address)].made;

	if (!v)
		return;
	sim->version[v].due = due;
	sim->version[v].life = sim->life;
}

/* A turn that ended well could not be recorded after all. */
void model_unrecorded(const char *address)
{
	unsigned a = actor_at(address);

	for (uint32_t i = turn[a].count; i-- > 0; ) {
		struct message *m = &sim->message[turn[a].uid[i]];

		m->ended = true;
		sim->heard[m->from][a] = turn[a].heard[i];
	}
	if (!turn[a].made)
		return;
	sim->version[turn[a].made].failed = true;
	sim->tip[a] = sim->version[turn[a].made].parent;
}

void model_leave(unsigned a, uint32_t v, int rc, const struct sim_state *s)
{
	bool ok = rc >= 0 && rc != NOH_FULL && rc != NOH_REFUSED;

	sim->busy[a] = false;
	turn[a].made = ok ? v : 0;
	seen->failed_turns += rc < 0;
	seen->full += rc == NOH_FULL;
	if (v && !ok)
		sim->version[v].failed = true;
	for (uint32_t i = 0; i < turn[a].count && rc != NOH_FULL; i++) {
		uint32_t uid = turn[a].uid[i];
		struct message *m = &sim->message[uid];

		if (!ok || !v)
			m->ended = true;
		if (!ok)
			continue;
		turn[a].heard[i] = sim->heard[m->from][a];
		if (!m->recorded)
			sim->heard[m->from][a] = uid;
		if (v)
			m->handled_by = v;
		if (m->from < ACTORS)
			sim_say("%s handled message %u", sim_name(a), uid);
		if (v && m->recorded)
			sim->version[v].last[m->from] = uid;
	}
	sim_note((uint64_t)a << 32 | v);
	if (!ok || !v)
		return;
	sim_say("%s: version %u, op %u", sim_name(a), v, sim->version[v].op);
	sim->version[v].balance = s->balance;
	sim->version[v].armed = s->armed;
	sim->version[v].every = s->every;
	if (sim->version[v].erased)
		sim->version[v].armed = sim->version[v].every = false;
	sim->tip[a] = v;
}

/* ── answers ── */

/* From now on it must never be taken back. */
void model_told(uint32_t v, const char *how)
{
	unsigned a = sim->version[v].actor;

	if (v == 0)
		return;
	if (v > sim->versions || sim->version[v].failed)
		sim_violation("%s shows version %u, which never was", how, v);
	if (!model_reaches(v, sim->tip[a]))
		sim_violation("%s shows version %u of %s, which was lost", how, v, sim_name(a));
	if (model_reaches(sim->shown[a], v))
		sim->shown[a] = v;
	sim_say("%s shows version %u of %s", how, v, sim_name(a));
}

/* An answer waits for its epoch. (An event goes by its frame: that may be on disk an epoch earlier.) */
void model_shown(uint32_t v, const char *how)
{
	if (v && v <= sim->versions && sim->version[v].life == sim->life &&
	    sim->version[v].due > journal_durable(sim->box->disk.journal))
		sim_violation("%s shows version %u of %s, which is not on disk yet", how, v, sim_name(sim->version[v].actor));
	model_told(v, how);
}

static void check_key(const struct op *o, uint32_t v)
{
	struct key *k = &sim->key[o->key];

	if (sim->version[v].key != o->key || sim->version[v].amount != o->amount)
		sim_violation("key %u was answered with version %u, which is not its own", o->key, v);
	if (k->shown && k->shown != v)
		sim_violation("key %u was answered with version %u, and before with %u", o->key, v, k->shown);
	seen->keys_repeated += k->shown == v;
	if (!o->at_memory)
		k->shown = v;
}

static void check_ok(uint32_t number, const uint32_t *answer, size_t len)
{
	struct op *o = &sim->op[number];
	uint32_t count = len >= 4 ? answer[0] : 0, own = count ? answer[1] : 0;
	bool coalesced = o->kind == K_SET && len == 0;

	if (coalesced || o->kind == K_LOOK || o->kind == K_RELAY)
		own = 0;
	else if (count == 0 || len != 4 * (1 + (size_t)count))
		sim_violation("op %u (%s) got an answer that nobody gave", number, sim_kind_names[o->kind]);
	for (uint32_t i = 0; i < count; i++)
		if (o->at_memory ? answer[1 + i] > sim->versions : (model_shown(answer[1 + i], "an answer"), false))
			sim_violation("op %u shows a version that never was", number);
	if (own && !model_reaches(o->floor, own))
		sim_violation("op %u shows version %u of %s, older than what was shown when it was sent", number,
			      own, sim_name(o->actor));
	if (o->key)
		check_key(o, own);
	else if (own && o->kind != K_GET && o->kind != K_READ && sim->version[own].op != number &&
		 sim_actors[o->actor].type != LOG)
		sim_violation("op %u is answered with version %u, which is op %u's", number, own,
			      sim->version[own].op);
}

static void check_idem(const struct op *o)
{
	uint32_t v = model_with_key(sim->tip[o->actor], o->key);

	seen->idem++;
	if (!v || sim->version[v].amount == o->amount)
		sim_violation("key %u of %s is said to have been used with another message, but was not", o->key,
			      sim_name(o->actor));
	if (!o->at_memory)
		model_shown(v, "a refusal");
}

/* An error that a handler computed from its state says which version it saw. */
#define CODE_BASE 1000000

void model_answer(uint32_t number, int status, const void *answer, size_t len)
{
	struct op *o = &sim->op[number];

	sim_note((uint64_t)number << 32 | (uint32_t)status);
	if (o->state != OP_WAITS)
		sim_violation("op %u is answered twice", number);
	seen->answers++;
	if (status != NOH_OK)
		sim_say("op %u is answered with %d, %s", number, status, noh_strerror(status));
	if (status == NOH_OK) {
		o->state = OP_OK;
		check_ok(number, answer, len);
	} else if (status == NOH_REFUSED) {
		o->state = OP_REFUSED;
		if (len != 8)
			sim_violation("op %u is refused with an answer that nobody gave", number);
		if (!o->at_memory)
			model_shown(((const uint32_t *)answer)[1], "a refusal");
	} else if (status <= -CODE_BASE) {
		o->state = OP_REFUSED;
		if (!o->at_memory)
			model_shown((uint32_t)(-status - CODE_BASE), "an error");
	} else if (status == NOH_EIDEM) {
		o->state = OP_REFUSED;
		check_idem(o);
	} else if (status == NOH_EGONE || status == NOH_FULL || status == NOH_EFAILED || status == NOH_ENOSPC) {
		o->state = OP_REFUSED;
		seen->refused++;
	} else if (status == NOH_ETIMEOUT || status == NOH_ESTOPPED || status == NOH_EDISK ||
		   status == NOH_ENOMEM) {
		if (status == NOH_ETIMEOUT && !o->small_timeout)
			sim_violation("op %u (%s to %s) ended without an answer", number,
				      sim_kind_names[o->kind], sim_name(o->actor));
		o->state = OP_UNKNOWN;
		seen->unknown++;
	} else {
		sim_violation("op %u (%s to %s) was answered with %d, %s", number, sim_kind_names[o->kind],
			      sim_name(o->actor), status, noh_strerror(status));
	}
	for (unsigned a = 0; a < ACTORS; a++)
		if (sim->erasing[a] == number)
			sim->erasing[a] = 0;
}

/* ── the end ── */

static bool message_open(const struct message *m)
{
	if (!m->recorded || m->ended || model_may_drop(m) || !m->sent_by || sim->version[m->sent_by].failed)
		return false;
	return model_reaches(m->sent_by, sim->tip[m->from]) &&
	       !(m->handled_by && model_reaches(m->handled_by, sim->tip[m->to]));
}

bool model_quiet(void)
{
	if (client_waiting())
		return false;
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a) && (sim->version[sim->tip[a]].armed || sim->version[sim->tip[a]].every))
			return false;
	for (uint32_t uid = 1; uid <= sim->messages; uid++)
		if (message_open(&sim->message[uid]))
			return false;
	return true;
}

static void why_not_quiet(void)
{
	for (uint32_t i = 1; i <= sim->ops; i++)
		if (sim->op[i].state == OP_WAITS)
			sim_violation("op %u (%s to %s) is never answered", i, sim_kind_names[sim->op[i].kind],
				      sim_name(sim->op[i].actor));
	for (unsigned a = 0; a < ACTORS; a++)
		if (is_durable(a) && (sim->version[sim->tip[a]].armed || sim->version[sim->tip[a]].every))
			sim_violation("a schedule of %s never fires", sim_name(a));
	for (uint32_t uid = 1; uid <= sim->messages; uid++)
		if (message_open(&sim->message[uid]))
			sim_violation("message %u from %s to %s is never handled", uid,
				      sim_name(sim->message[uid].from), sim_name(sim->message[uid].to));
}

void model_finished(void)
{
	int64_t sum = 0;

	why_not_quiet();
	several_check(sim->tip, "at the end");
	for (unsigned a = 0; a < ACTORS; a++)
		if (sim_actors[a].type == ACC)
			sum += sim->version[sim->tip[a]].balance;
	if (sum != 0)
		sim_violation("%" PRId64 " were made out of nothing", sum);
	for (uint32_t v = 1; v <= sim->versions; v++)
		if (!sim->version[v].failed && sim->version[v].op &&
		    sim->op[sim->version[v].op].state == OP_REFUSED && !sim->version[v].key &&
		    sim->op[sim->version[v].op].actor == sim->version[v].actor &&
		    model_reaches(v, sim->tip[sim->version[v].actor]))
			sim_violation("op %u was refused, but is version %u of %s", sim->version[v].op, v,
				      sim_name(sim->version[v].actor));
}
