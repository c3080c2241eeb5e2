/* tests/sim/box/several.c - steps over several actors: who sends them, and that each is all there or not at all.
 *
 * The first of a step's actors gives, the second gets, the others only take notice; now and then one of them
 * fails or says no. Every one of their turns that ends well makes a version, and the op knows them all.
 */
#include "sched/step.h"
#include "tests/sim/box/sim.h"

#include <string.h>

#define PATIENCE_MS 1000000

void __wrap_step_end(struct worker *w, struct step *s, uint64_t due, int status, const void *body, size_t len);
void __real_step_end(struct worker *w, struct step *s, uint64_t due, int status, const void *body, size_t len);

void several_version(uint32_t op, uint32_t v)
{
	struct sim_several *x = &sim->several[op];

	for (unsigned i = 0; i < x->count; i++)
		if (x->actor[i] == sim->version[v].actor)
			x->version[i] = v;
}

/* A turn of it that ended well is undone, because another did not. */
void __wrap_step_end(struct worker *w, struct step *s, uint64_t due, int status, const void *body, size_t len)
{
	uint32_t op = ((const struct sim_body *)s->parts[0].msg.body)->op;
	struct sim_several *x = &sim->several[op];

	for (unsigned i = 0; status != NOH_OK && i < x->count; i++)
		if (x->version[i] && !sim->version[x->version[i]].failed) {
			model_unrecorded(sim_name(x->actor[i]));
			seen->several_undone++;
		}
	__real_step_end(w, s, due, status, body, len);
}

static void check_answers(uint32_t op, const noh_part_answer *answers, size_t count)
{
	struct sim_several *x = &sim->several[op];

	for (size_t i = 0; i < count; i++) {
		const uint32_t *a = answers[i].body;

		if (answers[i].status != NOH_OK || answers[i].len != 8 || a[1] != x->version[i])
			sim_violation("op %u, a step: what %s answered is not what it did", op, sim_name(x->actor[i]));
		if (!sim->op[op].at_memory)
			model_shown(a[1], "a step");
	}
}

static void done(void *user, int status, const noh_part_answer *answers, size_t count)
{
	uint32_t op = (uint32_t)(uintptr_t)user;

	if (sim->dead)
		return;
	if (count != sim->several[op].count)
		sim_violation("op %u, a step over %u actors, has %zu answers", op, sim->several[op].count, count);
	if (status == NOH_OK) {
		sim_note((uint64_t)op << 32);
		if (sim->op[op].state != OP_WAITS)
			sim_violation("op %u is answered twice", op);
		sim->op[op].state = OP_OK;
		seen->answers++;
		seen->several_ok++;
		check_answers(op, answers, count);
		return;
	}
	for (size_t i = 0; status == NOH_REFUSED && i < count; i++)
		if (answers[i].status == NOH_REFUSED)
			model_answer(op, status, answers[i].body, answers[i].len);
	if (status != NOH_REFUSED)
		model_answer(op, status, NULL, 0);
}

/* A worker that is awake and between two turns runs it at once, if it can. */
static struct worker *in_place(void)
{
	unsigned i = sim_below(sim->workers);

	if (sim_one_in(2) || sim->in_worker[i] || sim->worker[i].asleep || sim->worker[i].no_room)
		return NULL;
	return &sim->box->sched.workers[i];
}

static void send_it(uint32_t op, const noh_part *parts, const noh_call_options *o)
{
	struct worker *w = in_place(), *was = sched_self();
	int rc;

	if (w) {
		sim->in_worker[w->fixed.index] = true;
		sched_set_self(w);
	}
	rc = noh_step_then(sim->box, parts, sim->several[op].count, o, done, (void *)(uintptr_t)op);
	if (w) {
		sched_set_self(was);
		sim->in_worker[w->fixed.index] = false;
	}
	sim_note((uint64_t)op << 32 | (uint32_t)rc);
	if (rc == NOH_OK)
		return;
	if (rc != NOH_ENOMEM)
		sim_violation("op %u, a step, was not accepted: %s", op, noh_why());
	sim->op[op].state = OP_REFUSED;
	seen->refused++;
}

void several_call(uint32_t op)
{
	struct sim_several *x = &sim->several[op];
	struct sim_body b[SEVERAL] = { { 0 } };
	noh_part parts[SEVERAL];
	noh_call_options o = { .timeout_ms = PATIENCE_MS };
	uint32_t amount = sim_below(100), bad = sim_one_in(4) ? sim_below(SEVERAL) : SEVERAL;

	x->count = (uint8_t)(2 + sim_below(SEVERAL - 1));
	x->actor[0] = sim->op[op].actor;
	for (unsigned i = 0; i < x->count; i++) {
		/* Accounts first; then one that can be read beside the mailbox, and one that handles batches. None that
		 * is erased: of nothing stored the model could not say when that was. */
		if (i)
			x->actor[i] = (uint8_t)(i < 3 ? (x->actor[0] + i) % 6 : i == 3 ? 8 : 6 + sim_below(2));
		b[i] = (struct sim_body){ .op = op, .amount = amount, .target = i };
		parts[i] = (noh_part){ sim_name(x->actor[i]), i == bad ? (sim_one_in(2) ? K_REFUSE : K_FAIL_LATE) : K_STEP,
				       &b[i], sizeof b[i] };
	}
	sim->op[op].at_memory = sim_one_in(8);
	sim->op[op].small_timeout = sim_one_in(30);
	if (sim->op[op].small_timeout)
		o.timeout_ms = 1 + sim_below(30);
	if (sim->op[op].at_memory)
		o.durability = NOH_MEMORY;
	sim_say("op %u: a step over %u actors from %s on, part %u is bad", op, x->count, sim_name(x->actor[0]), bad);
	send_it(op, parts, &o);
}

/* In `of`, the versions of all actors at one instant. */
void several_check(const uint32_t *of, const char *when)
{
	for (uint32_t op = 1; op <= sim->ops; op++) {
		struct sim_several *x = &sim->several[op];
		unsigned there = 0, made = 0;

		for (unsigned i = 0; i < x->count; i++) {
			uint32_t v = x->version[i];

			made += v != 0;
			there += v && !sim->version[v].failed && model_reaches(v, of[x->actor[i]]);
		}
		if (there && there != x->count)
			sim_violation("op %u, a step over %u actors: %s, %u of them have done it", op, x->count, when, there);
		if (there && sim->op[op].state == OP_REFUSED)
			sim_violation("op %u, a step, was refused, and is there %s", op, when);
		seen->several_lost += made == x->count && made && !there;
	}
}
