/* tests/sim/box/clients.c - who calls the box, and what became of each call. */
#include "tests/sim/box/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 1000000          /* longer than any seed: a call that ends this way was forgotten */

static void done(void *user, int status, const void *answer, size_t len)
{
	if (!sim->dead)
		model_answer((uint32_t)(uintptr_t)user, status, answer, len);
}

unsigned client_waiting(void)
{
	unsigned n = 0;

	for (uint32_t i = 1; i <= sim->ops; i++)
		n += sim->op[i].state == OP_WAITS;
	return n;
}

void client_crashed(void)
{
	for (uint32_t i = 1; i <= sim->ops; i++)
		if (sim->op[i].state == OP_WAITS) {
			sim->op[i].state = OP_UNKNOWN;
			seen->unknown++;
		}
	memset(sim->erasing, 0, sizeof sim->erasing);
}

void client_check_patience(uint64_t limit_ns)
{
	for (uint32_t i = 1; i <= sim->ops; i++)
		if (sim->op[i].state == OP_WAITS && sim_now() - sim->op[i].at_ns > limit_ns)
			sim_violation("op %u (%s to %s) has waited for %" PRIu64 " ms", i,
				      sim_kind_names[sim->op[i].kind], sim_name(sim->op[i].actor),
				      (sim_now() - sim->op[i].at_ns) / 1000000);
}

/* ── one call ── */

static uint32_t new_op(enum sim_kind kind, unsigned actor)
{
	uint32_t n = ++sim->ops;

	must(n < OPS);
	sim->op[n] = (struct op){ .state = OP_WAITS, .kind = kind, .actor = (uint8_t)actor, .life = sim->life,
				  .client = (uint8_t)sim_below(sim->plan.clients), .at_ns = sim_now(),
				  .floor = sim->shown[actor], .amount = sim_below(2000) };
	seen->ops++;
	return n;
}

static void send_it(uint32_t n, struct sim_body *b, const noh_call_options *o)
{
	struct op *op = &sim->op[n];
	static uint8_t large[sizeof *b + 20000];
	size_t len = sizeof *b + (sim_one_in(40) && !op->key ? sim_below(20000) : 0);
	int rc;

	memcpy(large, b, sizeof *b);
	sim_say("op %u: client %u, %s to %s, amount %u, key %u, target %u", n, op->client,
		sim_kind_names[op->kind], sim_name(op->actor), b->amount, op->key, b->target);
	if (op->sent_only)
		rc = noh_send(sim->box, sim_name(op->actor), op->kind, large, len);
	else
		rc = noh_call_then_with(sim->box, sim_name(op->actor), op->kind, large, len, o, done,
					(void *)(uintptr_t)n);
	sim_note((uint64_t)n << 32 | (uint32_t)rc);
	if (rc != NOH_OK && rc != NOH_FULL && rc != NOH_ENOMEM && rc != NOH_ENOSPC && rc != NOH_EDISK)
		sim_violation("op %u (%s) was not accepted: %s", n, sim_kind_names[op->kind], noh_why());
	if (rc != NOH_OK) {
		sim_say("op %u is refused: %s", n, noh_strerror(rc));
		op->state = OP_REFUSED;
		seen->refused++;
	} else if (op->sent_only) {
		op->state = OP_UNKNOWN;
	}
}

static void call(enum sim_kind kind, unsigned actor, unsigned target, uint32_t amount)
{
	uint32_t n = new_op(kind, actor);
	struct op *op = &sim->op[n];
	struct sim_body b = { .op = n, .amount = amount, .target = target };
	noh_call_options o = { .timeout_ms = PATIENCE_MS };

	op->amount = amount;
	op->sent_only = kind != K_ERASE && sim_one_in(12);
	op->at_memory = kind != K_ERASE && sim_one_in(8);
	op->small_timeout = kind != K_ERASE && sim_one_in(40);
	if (op->small_timeout)
		o.timeout_ms = 1 + sim_below(30);
	if (op->at_memory)
		o.durability = NOH_MEMORY;
	b.uid = op->uid = model_send(CLIENT(op->client), actor, 0, false);
	if (kind == K_ERASE)
		sim->erasing[actor] = n;
	send_it(n, &b, &o);
	if (kind == K_ERASE && op->state != OP_WAITS)
		sim->erasing[actor] = 0;
}

/* With a key: a new one, one that was used before, or one with another body. */
static void call_keyed(unsigned actor)
{
	bool fresh = sim->keys == 0 || (sim->keys + 1 < KEYS && sim_one_in(2));
	uint32_t k = fresh ? ++sim->keys : 1 + sim_below(sim->keys);
	struct key *key = &sim->key[k];
	uint32_t n = new_op(K_ADD, fresh ? actor : key->actor);
	struct op *op = &sim->op[n];
	char text[16];

	if (fresh)
		*key = (struct key){ .actor = (uint8_t)actor, .op = n, .amount = op->amount };
	op->key = k;
	op->floor = 0;
	op->amount = key->amount + (sim_one_in(6) ? 1 : 0);
	op->at_memory = sim_one_in(6);
	struct sim_body b = { .op = key->op, .amount = op->amount };
	noh_call_options o = { .timeout_ms = PATIENCE_MS, .key = text,
			       .durability = op->at_memory ? NOH_MEMORY : NOH_DISK };

	o.key_len = (size_t)snprintf(text, sizeof text, "key-%u", k);
	send_it(n, &b, &o);
}

/* ── other things a client can do ── */

/* Beside the mailbox, now or not at all. */
static void read_now(unsigned actor)
{
	struct sim_body b = { .uid = 0 };        /* it may overtake: no number */
	uint32_t answer[2] = { 0 }, floor = sim->shown[actor];
	size_t len = sizeof answer;
	int rc;

	sim->verifying = true;                   /* this is nobody's turn: nobody gets in between */
	rc = noh_call(sim->box, sim_name(actor), K_READ, &b, sizeof b, 0, answer, &len);
	sim->verifying = false;
	sim_note((uint32_t)rc);
	if (rc != NOH_OK)
		return;
	seen->reads++;
	model_shown(answer[1], "a read");
	if (!model_reaches(floor, answer[1]))
		sim_violation("a read shows version %u of %s, older than %u", answer[1],
			      sim_name(actor), floor);
}

static void deactivate(unsigned actor)
{
	enum sim_type t = sim_actors[actor].type;
	bool force = (sim->plan.faults & F_FORCE) && (t == LOG || t == LAST || t == TMP) && sim_one_in(2);
	int rc = noh_deactivate(sim->box, sim_name(actor), force, 0);

	sim_say("deactivate %s%s: %d", sim_name(actor), force ? ", by force" : "", rc);
	seen->evictions++;
	seen->forced += force;
}

/* ── which ── */

static bool wants(enum sim_kind k) { return sim->plan.kinds >> k & 1; }

static void act_on_account(enum sim_kind k)
{
	unsigned a = sim_below(6), b = (a + 1 + sim_below(5)) % 6, any = sim_below(sim->plan.targets);
	uint32_t delay = sim_one_in(4) ? 0 : sim_below(3000);

	switch (k) {
	case K_MOVE: call(k, a, b, 1 + sim_below(100)); break;
	case K_ASK: call(k, a, b, sim_below(100)); break;
	case K_BURST: any = sim->plan.faults & (F_TIGHT | F_SHORT) ? 0 : any;      /* fall through */
	case K_VIA: call(k, a, any == a ? b : any, sim_below(1000)); break;
	case K_ARM: call(k, sim_one_in(3) ? TMP_FIRST + sim_below(3) : any, 0, delay); break;
	case K_EVERY: case K_QUIET: call(k, sim_one_in(3) ? TMP_FIRST + sim_below(3) : a, 0, delay); break;
	case K_PUT: case K_DEL: call(k, sim_one_in(3) ? TMP_FIRST + sim_below(3) : a, 0, sim_below(35)); break;
	case K_FAIL_LATE: call(k, a, b, sim_below(100)); break;
	default: break;
	}
}

void client_act(void)
{
	enum sim_kind k = (enum sim_kind)sim_below(SIM_KINDS);
	unsigned durable = sim_below(VOL_FIRST), tmp = TMP_FIRST + sim_below(3);

	if (sim->ops + 2 >= OPS || !wants(k))
		k = K_ADD;
	else if ((sim->plan.faults & (F_TIGHT | F_SHORT)) && sim_one_in(3))
		k = K_BURST;
	else if (wants(K_STEP) && sim_one_in(8))
		k = K_STEP;
	if ((sim->plan.faults & F_EVICT) && sim_one_in(6)) {
		deactivate(sim_below(ACTORS));
		return;
	}
	switch (k) {
	case K_ADD: case K_CREDIT: case K_NOTE:
		if (sim_one_in(3) && wants(K_ADD))
			call_keyed(sim_below(6));
		else
			call(K_ADD, durable, 0, sim_below(1000));
		break;
	case K_GET: call(K_GET, durable, 0, 0); break;
	case K_READ: case K_TICK: case K_BEAT: read_now(8 + sim_below(4)); break;
	case K_FAIL: call(K_FAIL, durable, 0, 0); break;
	case K_REFUSE: call(K_REFUSE, durable, 0, 0); break;
	case K_STEP: several_call(new_op(K_STEP, sim_below(6))); break;
	case K_SET: call(K_SET, 8, 0, sim_below(100)); break;
	case K_STOP: call(K_STOP, durable, 0, 0); break;
	case K_LOOK: case K_RELAY: call(K_LOOK, VOL_FIRST + sim_below(2), 0, 0); break;
	case K_ERASE: case K_ANSWERED:
		if (!sim->erasing[tmp])
			call(K_ERASE, tmp, 0, 0);
		break;
	default: act_on_account(k); break;
	}
}

void client_end_schedules(void)
{
	for (unsigned a = 0; a < VOL_FIRST; a++) {
		bool asked = false;

		for (uint32_t i = 1; i <= sim->ops; i++)
			asked |= sim->op[i].state == OP_WAITS && sim->op[i].kind == K_QUIET &&
				 sim->op[i].actor == a;
		if (sim->version[sim->tip[a]].every && !asked && sim->ops + 2 < OPS)
			call(K_QUIET, a, 0, 0);
	}
}
