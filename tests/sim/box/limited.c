/* tests/sim/box/limited.c - types with limits in some of the seeds (MB-11): a rate that waits, one that refuses, and turns at once.
 *
 * What must hold as long as the process lives: whoever rests for a token, or for a place, goes on in the end, and in the order
 * sent; no more turns of a type run at once than it allows; a rate is met, but for what was taken ahead of time; and
 * a send that was refused for another reason than the rate costs no token.
 */
#include "tests/sim/box/sim.h"

#include <stdio.h>
#include <string.h>

enum { RATE = 20, BURST = 4, TURNS = 2 };
#define STEP_NS (UINT64_C(1000000000) / RATE)

static const char *const type_names[LIMITED] = { "pace", "brim", "few" };

bool limited_is(const char *address)
{
	for (unsigned i = 0; i < LIMITED; i++)
		if (strncmp(address, type_names[i], strlen(type_names[i])) == 0 && address[strlen(type_names[i])] == ':')
			return true;
	return false;
}

/* ── buckets, as anybody would write them: full again so many nanoseconds from now ── */

static uint64_t debt_now(const struct sim_bucket *b)
{
	uint64_t since = sim_now() - b->at_ns;

	return b->debt_ns > since ? b->debt_ns - since : 0;
}

static bool has_token(const struct sim_bucket *b, unsigned burst)
{
	return debt_now(b) + STEP_NS <= burst * STEP_NS;
}

static void take_token(struct sim_bucket *b)
{
	*b = (struct sim_bucket){ debt_now(b) + STEP_NS, sim_now() };
}

/* ── in the box ── */

static void in_order(struct sim_limited *l, noh_turn *t, const noh_msg *m)
{
	unsigned a = (unsigned)(noh_id(t)[0] - '0');
	uint32_t number;

	memcpy(&number, m->body, sizeof number);
	if (number != l->done[a] + 1)
		sim_violation("%s handles message %u after %u", noh_address(t), number, l->done[a]);
	l->done[a] = number;
}

/* Tokens may have been taken a burst ahead, and be used together with the next ones. */
static int pace_works(noh_turn *t, const noh_msg *m)
{
	struct sim_limited *l = &sim->limited[LIM_PACE];
	unsigned a = (unsigned)(noh_id(t)[0] - '0');

	in_order(l, t, m);
	if (!has_token(&l->bucket[a], 3 * BURST))
		sim_violation("%s handles more than %u messages a second", noh_address(t), RATE);
	take_token(&l->bucket[a]);
	seen->paced++;
	steps_nest();
	return NOH_OK;
}

/* Who comes again has a full bucket. */
static int pace_goes(noh_turn *t)
{
	sim->limited[LIM_PACE].bucket[noh_id(t)[0] - '0'] = (struct sim_bucket){ 0, 0 };
	return NOH_OK;
}

static int brim_works(noh_turn *t, const noh_msg *m)
{
	in_order(&sim->limited[LIM_BRIM], t, m);
	steps_nest();
	return NOH_OK;
}

static int few_works(noh_turn *t, const noh_msg *m)
{
	struct sim_limited *l = &sim->limited[LIM_FEW];

	in_order(l, t, m);
	if (++l->running > TURNS)
		sim_violation("%u turns of type few run at once, and %u may", l->running, TURNS);
	seen->placed++;
	steps_nest();
	if (!sim->dead)
		l->running--;
	return NOH_OK;
}

int limited_register(noh_box *box)
{
	const noh_type types[LIMITED] = {
		[LIM_PACE] = { .name = "pace", .is_volatile = true, .full_mode = NOH_BLOCK, .on_message = pace_works,
			       .on_deactivate = pace_goes,
			       .limits = { .actor_per_second = RATE, .actor_burst = BURST } },
		[LIM_BRIM] = { .name = "brim", .is_volatile = true, .full_mode = NOH_DROP_NEWEST, .mailbox_capacity = 2,
			       .on_message = brim_works,
			       .limits = { .actor_per_second = RATE, .actor_burst = BURST, .over = NOH_OVER_REFUSE } },
		[LIM_FEW] = { .name = "few", .is_volatile = true, .full_mode = NOH_BLOCK, .on_message = few_works,
			      .limits = { .turns = TURNS } },
	};
	int rc = NOH_OK;

	for (unsigned i = 0; sim->plan.limited && rc == NOH_OK && i < LIMITED; i++)
		rc = noh_register(box, &types[i]);
	return rc;
}

/* ── from outside ── */

/* An actor that went and came again has a full bucket: so more than the model thinks may be taken, never less. */
static void check_refusal(unsigned a, int rc)
{
	struct sim_bucket *b = &sim->limited[LIM_BRIM].bucket[a];
	bool has = has_token(b, BURST);

	if (rc == NOH_ERATE && has)
		sim_violation("brim:%u is refused for its rate, and has a token", a);
	if (rc == NOH_OK && has)
		take_token(b);
	seen->refused_rate += rc == NOH_ERATE;
}

void limited_act(void)
{
	unsigned which = sim_below(LIMITED), a = sim_below(LIMITED_ACTORS), n = 1 + sim_below(4);
	struct sim_limited *l = &sim->limited[which];
	char address[16];

	snprintf(address, sizeof address, "%s:%u", type_names[which], a);
	for (unsigned i = 0; i < n && l->sent[a] - l->done[a] < 20; i++) {
		uint32_t number = l->sent[a] + 1;
		int rc = noh_send(sim->box, address, 0, &number, sizeof number);

		sim_note((uint64_t)(uint32_t)rc << 8 | a);
		if (rc == NOH_OK)
			l->sent[a]++;
		if (which == LIM_BRIM)
			check_refusal(a, rc);
		if (rc != NOH_OK && rc != NOH_FULL && rc != NOH_ENOMEM && rc != NOH_ERATE)
			sim_violation("%s does not take a message: %s", address, noh_why());
	}
}

/* What nobody had recorded is gone, and all buckets are full. */
void limited_crashed(void)
{
	for (unsigned i = 0; i < LIMITED; i++) {
		struct sim_limited *l = &sim->limited[i];

		memcpy(l->done, l->sent, sizeof l->done);
		memset(l->bucket, 0, sizeof l->bucket);
		l->running = 0;
	}
}

bool limited_quiet(void)
{
	for (unsigned i = 0; i < LIMITED; i++)
		if (memcmp(sim->limited[i].done, sim->limited[i].sent, sizeof sim->limited[i].done) != 0)
			return false;
	return true;
}

void limited_finished(void)
{
	for (unsigned i = 0; i < LIMITED; i++)
		for (unsigned a = 0; a < LIMITED_ACTORS; a++)
			if (sim->limited[i].done[a] != sim->limited[i].sent[a])
				sim_violation("%s:%u has handled %u of %u messages, and nothing goes on", type_names[i], a,
					      sim->limited[i].done[a], sim->limited[i].sent[a]);
}
