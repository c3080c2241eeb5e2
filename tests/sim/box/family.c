/* tests/sim/box/family.c - supervised actors in some of the seeds: a parent with children that fail, and three that are each
 * other's parents in a circle.
 *
 * Kids get numbered messages, some of which fail several times. What must hold as long as the process lives: every kid
 * handles every number, in order, however often it is restarted; no back-off is longer than its cap; escalation in the
 * circle comes to an end; the tree stops children first, the last spawned first. After a crash: a kid that knows its parent
 * is known to it (what it heard of was recorded before, P6).
 */
#include "tests/sim/box/sim.h"

#include <stdio.h>
#include <string.h>

enum { KID_WORK, KID_WAKE };
enum { CAP_MS = 80, HOPS = 70 };

struct family_body { uint32_t number, fails; };

static const noh_supervision boss_policy[2] = {
	{ .base_ms = 10, .cap_ms = CAP_MS, .restarts = NOH_NEVER, .retries = 200, .strategy = NOH_ONE_FOR_ONE },
	{ .base_ms = 10, .cap_ms = CAP_MS, .restarts = NOH_NEVER, .retries = 200, .strategy = NOH_ONE_FOR_ALL },
};
static const noh_supervision knot_policy = { .base_ms = 5, .cap_ms = CAP_MS, .restarts = 1, .retries = 200,
					     .restart = NOH_TRANSIENT };

bool family_is(const char *address)
{
	return strncmp(address, "boss:", 5) == 0 || strncmp(address, "kid:", 4) == 0 || strncmp(address, "knot:", 5) == 0;
}

bool family_is_type(const char *name)
{
	return strcmp(name, "boss") == 0 || strcmp(name, "kid") == 0 || strcmp(name, "knot") == 0;
}

static unsigned number_of(noh_turn *t)
{
	return (unsigned)(noh_id(t)[0] - '0');
}

/* ── the kids ── */

static int kid_works(noh_turn *t, const noh_msg *m)
{
	struct sim_family *f = &sim->family;
	unsigned k = number_of(t);
	struct family_body b;

	memcpy(&b, m->body, sizeof b);
	steps_nest();
	if (b.number != f->done[k] + 1)
		sim_violation("kid:%u handles message %u after %u", k, b.number, f->done[k]);
	++*(uint64_t *)noh_state(t);
	if (f->failed[k] < b.fails) {
		f->failed[k]++;
		seen->family_failures++;
		return noh_fail(t, "as asked");
	}
	f->failed[k] = 0;
	f->done[k] = b.number;
	return NOH_OK;
}

static int kid_comes(noh_turn *t)
{
	sim->family.active[number_of(t)] = true;
	return NOH_OK;
}

/* Memory that is short sends home whom it likes. */
static int kid_goes(noh_turn *t)
{
	struct sim_family *f = &sim->family;
	unsigned k = number_of(t);

	f->active[k] = false;
	if (!f->stopping || !f->to_stop[k] || sim->plan.memory_budget || sim->dead)
		return NOH_OK;
	f->to_stop[k] = false;
	if (k >= f->next)
		sim_violation("kid:%u stops after kid:%u, which was spawned before it", k, f->next);
	f->next = k;
	return NOH_OK;
}

/* ── their parent ── */

static int boss_comes(noh_turn *t)
{
	char address[16];
	int rc = NOH_OK;

	for (unsigned k = 0; rc == NOH_OK && k < KIDS; k++) {
		snprintf(address, sizeof address, "kid:%u", k);
		rc = noh_spawn(t, address, NULL);
	}
	return rc;
}

static int boss_works(noh_turn *t, const noh_msg *m)
{
	(void)m;
	++*(uint64_t *)noh_state(t);
	steps_nest();
	return NOH_OK;
}

static int boss_goes(noh_turn *t)
{
	struct sim_family *f = &sim->family;

	(void)t;
	for (unsigned k = 0; k < KIDS; k++)
		if (f->stopping && f->to_stop[k] && !sim->plan.memory_budget && !sim->dead)
			sim_violation("boss:0 stops before its kid:%u", k);
	return NOH_OK;
}

/* ── the circle ── */

static int knot_works(noh_turn *t, const noh_msg *m)
{
	struct family_body b;
	char next[16];

	memcpy(&b, m->body, sizeof b);
	if (m->kind == KID_WAKE) {
		snprintf(next, sizeof next, "knot:%u", (number_of(t) + 1) % KNOTS);
		int rc = noh_spawn(t, next, NULL);

		sim->family.knot_failures += rc < 0;     /* memory was short */
		return rc;
	}
	if (b.fails && sim->family.knot_fails) {
		sim->family.knot_fails--;
		sim->family.knot_failures++;
		return noh_fail(t, "as asked");
	}
	return NOH_OK;
}

void family_log(const char *line)
{
	struct sim_family *f = &sim->family;

	if (!strstr(line, "its parent's failure"))
		return;
	seen->escalations++;
	if (++f->escalations > HOPS * (f->knot_failures + 2))
		sim_violation("%u failures have gone up %u times: round and round", f->knot_failures, f->escalations);
}

int family_register(noh_box *box)
{
	unsigned all = (unsigned)(sim->seed / 3 % 2);
	const noh_type types[] = {
		{ .name = "boss", .state_size = 8, .idle_timeout_ms = NOH_NEVER, .full_mode = NOH_BLOCK, .on_activate = boss_comes,
		  .on_message = boss_works, .on_deactivate = boss_goes, .supervision = &boss_policy[all] },
		{ .name = "kid", .state_size = 8, .idle_timeout_ms = NOH_NEVER, .full_mode = NOH_BLOCK, .on_activate = kid_comes,
		  .on_message = kid_works, .on_deactivate = kid_goes, .supervision = &boss_policy[0] },
		{ .name = "knot", .state_size = 8, .idle_timeout_ms = NOH_NEVER, .full_mode = NOH_BLOCK,
		  .on_message = knot_works, .supervision = &knot_policy },
	};
	int rc = NOH_OK;

	for (unsigned i = 0; sim->plan.family && rc == NOH_OK && i < sizeof types / sizeof types[0]; i++)
		rc = noh_register(box, &types[i]);
	return rc;
}

/* ── from outside ── */

static void send_to(const char *type, unsigned i, uint32_t kind, struct family_body b, uint32_t *count)
{
	char address[16];
	int rc;

	snprintf(address, sizeof address, "%s:%u", type, i);
	rc = noh_send(sim->box, address, kind, &b, sizeof b);
	sim_note((uint64_t)rc << 8 | i);
	if (rc == NOH_OK && count)
		++*count;
}

static void check_backoff(void)
{
	uint64_t now = sim_now() / 1000000u + sim->box->sched.wall_offset_ms;
	noh_vitals v;
	char address[16];

	for (unsigned k = 0; k < KIDS; k++) {
		snprintf(address, sizeof address, "kid:%u", k);
		if (noh_get_vitals(sim->box, address, &v) != NOH_OK)
			sim_violation("nothing can be said about %s: %s", address, noh_why());
		if (v.health == NOH_DOWN && v.until_ms > now + CAP_MS)
			sim_violation("%s is down for another %llu ms, and %u are the most", address,
				      (unsigned long long)(v.until_ms - now), CAP_MS);
		if (v.health >= NOH_DEGRADED)
			sim_violation("%s was given up, and may fail as often as it likes", address);
	}
}

bool family_quiet(void)
{
	for (unsigned k = 0; sim->plan.family && k < KIDS; k++)
		if (sim->family.done[k] != sim->family.sent[k])
			return false;
	return !sim->plan.family || !sim->family.stopping;
}

static void stopped(void *user, int status, const void *answer, size_t len)
{
	(void)user;
	(void)status;
	(void)answer;
	(void)len;
	sim->family.stopping = false;
	seen->tree_stops += !sim->dead;
}

/* Whoever is spawned, or spawned again, meanwhile is none of it. */
static void stop_tree(void)
{
	struct sim_family *f = &sim->family;
	noh_vitals v;
	char address[16];

	f->stopping = true;
	f->next = KIDS;
	for (unsigned k = 0; k < KIDS; k++) {
		snprintf(address, sizeof address, "kid:%u", k);
		f->to_stop[k] = noh_get_vitals(sim->box, address, &v) == NOH_OK && v.parent[0] && v.life == NOH_ACTIVE &&
				f->active[k];
	}
	if (noh_stop_tree_then(sim->box, "boss:0", stopped, NULL) != NOH_OK)
		f->stopping = false;
}

void family_act(void)
{
	struct sim_family *f = &sim->family;
	unsigned k = sim_below(KIDS);

	check_backoff();
	if (f->stopping)
		return;
	if (sim_one_in(12))
		send_to("boss", 0, KID_WAKE, (struct family_body){ 0, 0 }, NULL);
	else if (sim_one_in(10))
		send_to("knot", sim_below(KNOTS), KID_WAKE, (struct family_body){ 0, 0 }, NULL);
	else if (sim_one_in(10) && f->knot_fails < 20) {
		f->knot_fails += 1 + sim_below(6);
		send_to("knot", sim_below(KNOTS), KID_WORK, (struct family_body){ 0, 1 }, NULL);
	} else if (sim_one_in(10) && family_quiet())
		stop_tree();
	else if (f->sent[k] - f->done[k] < 50)
		send_to("kid", k, KID_WORK, (struct family_body){ f->sent[k] + 1, sim_one_in(3) ? sim_below(12) : 0 },
			&f->sent[k]);
}

/* What nobody had recorded is gone. */
void family_crashed(void)
{
	struct sim_family *f = &sim->family;

	memcpy(f->done, f->sent, sizeof f->done);
	memset(f->failed, 0, sizeof f->failed);
	memset(f->active, 0, sizeof f->active);
	f->stopping = false;
}

void family_recovered(void)
{
	noh_vitals boss, kid;
	char address[16];

	if (!sim->plan.family || noh_get_vitals(sim->box, "boss:0", &boss) != NOH_OK)
		return;
	for (unsigned k = 0; k < KIDS; k++) {
		snprintf(address, sizeof address, "kid:%u", k);
		if (noh_get_vitals(sim->box, address, &kid) != NOH_OK)
			sim_violation("nothing can be said about %s: %s", address, noh_why());
		if (kid.parent[0] && kid.order > boss.children)
			sim_violation("%s is child %llu of boss:0, which has %u", address, (unsigned long long)kid.order,
				      boss.children);
		if (kid.health != NOH_HEALTHY)
			sim_violation("%s is %s, and nobody runs", address, noh_health_name(kid.health));
	}
}

void family_finished(void)
{
	for (unsigned k = 0; sim->plan.family && k < KIDS; k++)
		if (sim->family.done[k] != sim->family.sent[k])
			sim_violation("kid:%u has handled %u of %u messages, and nothing goes on", k, sim->family.done[k],
				      sim->family.sent[k]);
}
