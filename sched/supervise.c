#include "sched/supervise.h"

#include "core/plant.h"
#include "sched/events.h"
#include "sched/kin.h"
#include "sched/serve.h"
#include "sched/watch.h"

#include <stdio.h>
#include <string.h>

/* ── vitals that change ── */

static const int gauge_of[] = { [NOH_HEALTHY] = -1, [NOH_DOWN] = 0, [NOH_DEGRADED] = 1, [NOH_STOPPED] = 2,
				[NOH_QUARANTINED] = 3, [NOH_AWAITING] = 3 };

void supervise_gauge(struct port *p, struct vitals *v)
{
	struct type_counts *counts = &p->types[v->type];

	if (v->counted == v->of.health)
		return;
	if (gauge_of[v->counted] >= 0)
		count_one(&counts->unwell[gauge_of[v->counted]], UINT64_MAX);
	if (gauge_of[v->of.health] >= 0)
		count_one(&counts->unwell[gauge_of[v->of.health]], 1);
	v->counted = v->of.health;
}

static void set_health(struct worker *w, struct vitals *v, noh_health health, uint64_t until_ms)
{
	vitals_lock(w->fixed.sched, v);
	v->of.health = (uint8_t)health;
	v->of.until_ms = until_ms;
	vitals_unlock(w->fixed.sched, v);
	supervise_gauge(&w->mine.port, v);
}

/* What failed before does not count any more. */
void supervise_forgive(struct worker *w, struct vitals *v, bool streak)
{
	vitals_lock(w->fixed.sched, v);
	v->of.in_window = 0;
	if (streak)
		v->of.streak = 0;
	vitals_unlock(w->fixed.sched, v);
}

static void count_restart(struct worker *w, struct vitals *v)
{
	vitals_lock(w->fixed.sched, v);
	v->of.restarts += v->of.restarts < UINT32_MAX;
	vitals_unlock(w->fixed.sched, v);
}

static uint64_t wall_ms(struct worker *w)
{
	return sched_now_ms(w) + w->fixed.sched->wall_offset_ms;
}

struct note_parts { const noh_msg *dead; const char *reason; };

static void put_note(struct sink *k, struct worker *w, struct cell *c, void *arg)
{
	const struct note_parts *n = arg;

	turn_record_vitals(k, c->ext->vitals);
	turn_record_first(k, w, c);
	if (n->dead) {
		turn_record_dead(k, w, c, n->dead, n->reason);
		if (n->dead->flags & NOH_MSG_TIMER)
			turn_record_timers(k, &w->mine.turn, c->ext);
	}
}

/* On disk, of a durable actor; with the message that is set aside, if any. */
static void record(struct worker *w, struct cell *c, const noh_msg *dead)
{
	struct note_parts n = { dead, c->ext->vitals->reason ? c->ext->vitals->reason : "it failed" };

	c->flags |= CELL_DIRTY;
	if (!cell_type(w->fixed.sched, c)->durable) {
		if (sched_is_durable(w->fixed.sched))
			w->mine.turn.due = load_relaxed(body_due(c->body));
		if (!(load_relaxed(&c->life) & LIFE_THERE))
			life_comes(&w->mine.port, c, false);
	} else if (durable_note(w, c, true, put_note, &n) != NOH_OK) {
		sched_logf(w->fixed.sched, NOH_ERROR, "", "no room to record how an actor failed: after a crash it is not known");
	}
}

void supervise_note(struct worker *w, struct cell *c)
{
	record(w, c, NULL);
}

void supervise_commit(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct cell *c = t->cell;
	struct vitals *v = vitals_if(c);

	if (t->so_far.flags & TURN_ERASE) {
		vitals_forget(t->sched, c);
		supervise_gauge(&w->mine.port, v);
		return;
	}
	vitals_lock(t->sched, v);
	v->of.desired = t->vitals.desired;
	v->of.observed = t->vitals.observed;
	v->of.spawned = t->vitals.spawned;
	v->of.children = t->vitals.children;
	/* Without memory for a text it stays as it was; the record has it. */
	if (t->vitals.has_error)
		(void)vitals_text(&v->error, &v->of.error_len, t->vitals.error, t->vitals.error_len);
	vitals_unlock(t->sched, v);
}

/* ── failing ── */

static uint64_t random_up_to(struct worker *w, uint64_t most)
{
	uint64_t x = w->mine.rng;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	w->mine.rng = x;
	return (x * UINT64_C(0x2545F4914F6CDD1D) >> 16) % (most + 1);
}

/* Full jitter: those that failed together do not come back together. */
static uint64_t backoff_ms(struct worker *w, const noh_supervision *p, uint32_t streak)
{
	uint64_t most = p->base_ms;

	for (uint32_t i = 1; i < streak && (most < p->cap_ms || (PLANT(PLANT_BACKOFF_UNCAPPED) && most < UINT32_MAX)); i++)
		most *= p->factor;
	if (most > p->cap_ms && !PLANT(PLANT_BACKOFF_UNCAPPED))
		most = p->cap_ms;
	return random_up_to(w, most);
}

/* True: it was too often. */
static bool count_failure(struct worker *w, struct vitals *v, const noh_supervision *p, const char *reason)
{
	uint64_t now = wall_ms(w);
	size_t len = strlen(reason);

	vitals_lock(w->fixed.sched, v);
	if (now - v->of.failed_ms > p->within_ms)
		v->of.streak = 0;
	if (now - v->of.window_ms > p->within_ms || v->of.in_window == 0) {
		v->of.window_ms = now;
		v->of.in_window = 0;
	}
	v->of.streak += v->of.streak < UINT32_MAX;
	v->of.in_window += v->of.in_window < UINT32_MAX;
	v->of.failed_ms = now;
	(void)vitals_text(&v->reason, &v->of.reason_len, reason, len < NOH_REASON_MAX ? len : NOH_REASON_MAX);
	vitals_unlock(w->fixed.sched, v);
	return p->restarts != NOH_NEVER && v->of.in_window > p->restarts;
}

/* A wheel without memory: then it is restarted at once. */
static void arm(struct worker *w, struct cell *c, struct vitals *v, uint64_t delay_ms)
{
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;
	struct sysmsg *n;

	v->serial++;
	v->worker = w->fixed.index;
	v->entry = clock_add(w, clock_due(w->fixed.sched, delay_ms), self, WHEEL_RESTART | v->serial);
	if (v->entry)
		return;
	n = node_take(&w->mine.port, SYS_RESTART);
	if (n) {
		n->token = v->serial;
		sched_sys(&w->mine.port, c, (uint32_t)(self >> 32), n);
	} else {
		v->down = false;
		c->flags &= (uint8_t)~CELL_BLOCKED;
	}
}

void supervise_go_down(struct worker *w, struct cell *c, struct vitals *v, uint64_t delay_ms)
{
	set_health(w, v, NOH_DOWN, wall_ms(w) + delay_ms);
	v->down = true;
	c->ext->rests_on = 0;
	c->flags |= CELL_BLOCKED;
	arm(w, c, v, delay_ms);
}

/* What is over is not waited for any more. */
static void come_up(struct worker *w, struct cell *c, struct vitals *v)
{
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;

	if (v->entry)
		clock_cancel(w->fixed.sched, v->worker, v->entry, self, WHEEL_RESTART | v->serial);
	v->entry = 0;
	v->serial++;
	v->down = v->with_kin = false;
	c->flags &= (uint8_t)~CELL_BLOCKED;
	set_health(w, v, NOH_HEALTHY, 0);
}

void supervise_restart(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_of(w->fixed.sched, c);

	if (!v || (c->flags & CELL_BROKEN) || cell_life(c) == NOH_DEACTIVATING)
		return;
	come_up(w, c, v);
	if (PLANT(PLANT_RESTART_LOSES)) {        /* what waited is gone with the old life */
		struct slot *slot;

		while (mailbox_take(&c->mailbox, &w->mine.port.room, cell_type(w->fixed.sched, c)->shared, &slot) == MB_TAKEN) {
			msg_dispose(&w->mine.port, &slot->msg, NOH_EFAILED);
			mailbox_release(slot);
		}
	}
	if (cell_life(c) == NOH_ACTIVE) {
		c->ext->restarting = true;
		c->flags &= (uint8_t)~CELL_READY;
		cell_set_life(c, NOH_NOT_ACTIVE);
		events_leave(&w->mine.port, c);
	}
	count_one(&w->mine.port.types[v->type].restarts, 1);
	serve_activate(w, c);
	kin_restarted(w, c, v);
}

/* ── giving up ── */

static const char *const then_names[] = { "escalated", "degraded", "stopped", "quarantined", "quarantined with its type",
					  "waiting for a higher revision" };

static noh_health health_of(int then)
{
	switch (then) {
	case NOH_THEN_STOP: return NOH_STOPPED;
	case NOH_THEN_QUARANTINE:
	case NOH_THEN_QUARANTINE_TYPE: return NOH_QUARANTINED;
	case NOH_THEN_AWAIT: return NOH_AWAITING;
	default: return NOH_DEGRADED;
	}
}

/* A hint by address: whoever is degraded is tried again, even if nobody writes to it. */
static void try_later(struct worker *w, struct cell *c, uint64_t delay_ms)
{
	char address[ADDRESS_MAX + 1];
	size_t len = cell_address(w->fixed.sched, c, address);

	(void)clock_arm_dormant(w, address, len, clock_due(w->fixed.sched, delay_ms));
}

/* Whoever hears of it from now on sees it so. */
static void mark_given_up(struct worker *w, struct cell *c, struct vitals *v, int then)
{
	const noh_supervision *own = &cell_type(w->fixed.sched, c)->sup;
	noh_health health = health_of(then);
	char address[ADDRESS_MAX + 1];

	cell_address(w->fixed.sched, c, address);
	sched_logf(w->fixed.sched, NOH_ERROR, address, "failed %u times within %u ms, and is %s: %s", v->of.in_window,
		   own->within_ms, then_names[then], v->reason ? v->reason : "");
	if (v->down)
		come_up(w, c, v);
	set_health(w, v, health, health == NOH_DEGRADED ? wall_ms(w) + own->cap_ms : 0);
	supervise_forgive(w, v, false);
	v->whole_type = then == NOH_THEN_QUARANTINE_TYPE;
	if (v->whole_type)
		store_release(&cell_type(w->fixed.sched, c)->quarantined, 1);
}

/* And it leaves memory: its last turn is its on_deactivate. */
static void retire(struct worker *w, struct cell *c, struct vitals *v)
{
	const noh_supervision *own = &cell_type(w->fixed.sched, c)->sup;

	if (!life_retire(w, c)) {                /* it cannot be stored: then it stays, and rests */
		supervise_go_down(w, c, v, own->cap_ms);
		return;
	}
	if (v->of.health == NOH_DEGRADED)
		try_later(w, c, own->cap_ms);
	if (v->whole_type)
		kin_quarantine_type(w, c);
}

/* Its supervisor's policy, or its own if there is none above. */
static int policy_of(struct worker *w, const struct vitals *v, uint32_t hops)
{
	const noh_supervision *above = kin_policy(w->fixed.sched, v);
	int then = above ? above->then : w->fixed.sched->types[v->type]->sup.then;

	if (then == NOH_THEN_ESCALATE && (!above || (hops >= TREE_DEPTH_MAX && !PLANT(PLANT_ESCALATION_LOOP))))
		return NOH_THEN_DEGRADE;
	return then;
}

/* It has failed: back off, or ask who decides. Returns false if it was given up. */
static bool back_off(struct worker *w, struct cell *c, struct vitals *v, bool too_often, uint32_t hops)
{
	struct sched *s = w->fixed.sched;
	const noh_supervision *p = &s->types[v->type]->sup;
	int then = policy_of(w, v, hops);
	char address[ADDRESS_MAX + 1];
	uint64_t delay;

	cell_address(s, c, address);
	if (too_often && then != NOH_THEN_ESCALATE) {
		mark_given_up(w, c, v, then);
		record(w, c, NULL);
		retire(w, c, v);
		return false;
	}
	if (too_often) {
		sched_logf(s, NOH_ERROR, address, "failed %u times within %u ms: that is its parent's failure: %s", v->of.in_window,
			   p->within_ms, v->reason ? v->reason : "");
		delay = p->cap_ms;               /* its parent restarts it before, if it can */
		kin_escalate(w, c, v, hops + 1);
	} else {
		delay = backoff_ms(w, p, v->of.streak);
		count_restart(w, v);
		sched_logf(s, NOH_WARN, address, "failed, and is restarted in %llu ms: %s", (unsigned long long)delay,
			   v->reason ? v->reason : "");
	}
	supervise_go_down(w, c, v, delay);
	if (!too_often)
		kin_failed(w, c, v);
	return true;
}

void supervise_failed(struct worker *w, struct cell *c, const char *reason, uint32_t hops)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct vitals *v = vitals_of(w->fixed.sched, c);
	bool too_often;

	if (!v || !t->supervised || (c->flags & CELL_BROKEN))
		return;
	too_often = count_failure(w, v, &t->sup, reason);
	if (v->down && !too_often)               /* it will be restarted anyway */
		return;
	if (back_off(w, c, v, too_often, hops))
		record(w, c, NULL);
	watch_tell(w, v, NOH_EFAILED, false);
}

/* ── a turn that failed ── */

int supervise_hook_ended(struct worker *w, int rc)
{
	struct noh_turn *t = &w->mine.turn;
	uint32_t most = t->type->sup.turn_deadline_ms;
	uint64_t took;

	if (!most || rc < 0)
		return rc;
	took = (clock_now_ns(&t->sched->clock) - t->hook_ns) / 1000000u;
	if (took <= most)
		return rc;
	return noh_fail(t, "its turn took %llu ms, and %u are allowed", (unsigned long long)took, most);
}

/* Its message has failed for the last time. */
static void set_aside(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;
	struct type_counts *counts = &w->mine.port.types[t->type->index];

	record(w, c, t->msg_count ? &t->msgs[0] : NULL);
	count_one(&w->mine.port.dead_letters, t->msg_count);
	count_one(&counts->set_aside, t->msg_count);
	serve_answer_failed(w, rc);
}

/* Its message is answered before its on_deactivate runs: that is a turn of its own. */
static void give_up_in_turn(struct worker *w, struct cell *c, struct vitals *v, int rc)
{
	bool temporary = cell_type(w->fixed.sched, c)->sup.restart == NOH_TEMPORARY;

	if (!temporary)
		mark_given_up(w, c, v, policy_of(w, v, 0));
	set_aside(w, c, rc);
	if (!temporary)
		retire(w, c, v);
	else if (!life_retire(w, c))
		supervise_go_down(w, c, v, cell_type(w->fixed.sched, c)->sup.cap_ms);
	watch_tell(w, v, rc, true);
}

/* Once more? How often it was tried travels with the message. */
static bool try_again(struct noh_turn *t, const noh_supervision *p)
{
	noh_msg *m = (noh_msg *)(uintptr_t)t->msgs;

	if (t->msg_count != 1 || p->retries == NOH_NEVER || m->flags / MSG_TRY % 256 >= p->retries)
		return false;
	m->flags += MSG_TRY;
	return true;
}

int supervise_turn_failed(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched *s = t->sched;
	const noh_supervision *p = &t->type->sup;
	struct vitals *v = vitals_of(s, c);
	const char *reason = t->so_far.flags & TURN_REASON ? t->reason : noh_strerror(rc);
	bool too_often, again;

	if (rc == NOH_ENOSPC || !v) {            /* nobody's failure; or no memory to be careful */
		serve_failed(w, rc);
		return rc;
	}
	turn_undo(w);
	t->so_far.full_on = 0;
	too_often = count_failure(w, v, p, reason);
	if (p->restart == NOH_TEMPORARY || (too_often && policy_of(w, v, 0) != NOH_THEN_ESCALATE)) {
		give_up_in_turn(w, c, v, rc);
		return rc;
	}
	again = try_again(t, p);
	(void)back_off(w, c, v, too_often, 0);
	if (again)
		record(w, c, NULL);
	else
		set_aside(w, c, rc);
	watch_tell(w, v, rc, false);
	return again ? NOH_FULL : rc;
}

bool supervise_activation_failed(struct worker *w, struct cell *c, int rc)
{
	struct noh_turn *t = &w->mine.turn;
	struct type *type = cell_type(w->fixed.sched, c);
	const char *reason = t->cell == c && (t->so_far.flags & TURN_REASON) ? t->reason : noh_strerror(rc);
	struct vitals *v = type->supervised && (c->flags & CELL_LOADED) ? vitals_of(w->fixed.sched, c) : NULL;
	bool stays;

	if (!v || type->sup.restart == NOH_TEMPORARY || rc == NOH_ENOSPC)
		return false;
	c->flags &= (uint8_t)~CELL_READY;
	stays = back_off(w, c, v, count_failure(w, v, &type->sup, reason), 0);
	if (stays)
		record(w, c, NULL);
	watch_tell(w, v, rc, !stays);
	return true;
}

/* ── who was given up ── */

static bool is_given_up(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_if(c);

	return load_relaxed(&cell_type(w->fixed.sched, c)->quarantined) || (v && v->of.health >= NOH_DEGRADED);
}

/* The process ended in its turn: that was a failure, and what starts now is the restart. */
static bool crashed_too_often(struct worker *w, struct cell *c, const struct type *t)
{
	struct vitals *v;

	if (!t->supervised || !poison_suspects(w->fixed.sched, c) || !(v = vitals_of(w->fixed.sched, c)))
		return false;
	count_restart(w, v);
	return count_failure(w, v, &t->sup, "the process ended while it was handling a message");
}

bool supervise_admits(struct worker *w, struct cell *c)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct vitals *v = vitals_if(c);

	if (v && v->of.health == NOH_DEGRADED && wall_ms(w) >= v->of.until_ms)
		set_health(w, v, NOH_HEALTHY, 0);
	if (v && v->of.health == NOH_DOWN && !v->down)   /* when the box ended: that is over */
		set_health(w, v, NOH_HEALTHY, 0);
	if (v)
		supervise_gauge(&w->mine.port, v);
	if (is_given_up(w, c)) {
		c->flags |= CELL_BROKEN;
		c->flags &= (uint8_t)~CELL_READY;
		return false;
	}
	if (__builtin_expect(w->fixed.sched->crashes != NULL, 0) && crashed_too_often(w, c, t)) {
		v = vitals_if(c);
		if (!back_off(w, c, v, true, 0))
			return false;
		record(w, c, NULL);
		return false;
	}
	return true;
}

int supervise_code(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_if(c);

	if (load_relaxed(&cell_type(w->fixed.sched, c)->quarantined))
		return NOH_EQUARANTINED;
	if (!v || v->of.health < NOH_DEGRADED)
		return NOH_EFAILED;
	return v->of.health >= NOH_QUARANTINED ? NOH_EQUARANTINED : NOH_EDEGRADED;
}

/* A revision above the desired one is a new beginning. */
static bool is_newer(struct worker *w, struct cell *c, const struct msg *m)
{
	const struct type *t = cell_type(w->fixed.sched, c);
	struct vitals *v = vitals_if(c);
	uint64_t key, revision;

	if (!v || v->of.health != NOH_AWAITING || m->kind >= t->pub.kind_count ||
	    !(t->pub.kinds[m->kind].flags & NOH_KIND_COALESCE))
		return false;
	t->pub.kinds[m->kind].coalesce(msg_body(m), msg_len(m), &key, &revision);
	return revision > v->of.desired;
}

static void begin_anew(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_if(c);

	set_health(w, v, NOH_HEALTHY, 0);
	supervise_forgive(w, v, true);
	v->whole_type = false;
	c->flags &= (uint8_t)~CELL_BROKEN;
	record(w, c, NULL);
	watch_tell(w, v, NOH_OK, false);
}

static void put_refused(struct sink *k, struct worker *w, struct cell *c, void *m)
{
	turn_record_dead(k, w, c, m, "its actor was given up");
}

enum refused supervise_refuse(struct worker *w, struct cell *c, const struct msg *m)
{
	struct vitals *v = vitals_if(c);
	struct port *p = &w->mine.port;
	noh_msg pub;

	if (load_relaxed(&w->fixed.sched->stopping) && v && v->of.health == NOH_DOWN) {
		count_one(&p->types[load_relaxed(&c->type)].dropped_stop, 1);      /* what is recorded waits in storage */
		msg_dispose(p, m, NOH_ESTOPPED);
		return REFUSED_DONE;
	}
	if (!is_given_up(w, c))
		return REFUSED_NOT;
	to_public(&pub, m);
	if (is_newer(w, c, m)) {
		begin_anew(w, c);
		extra_keep(w, c, &pub, m, true);
		return REFUSED_DONE;
	}
	count_one(&p->types[load_relaxed(&c->type)].dropped_unwell, 1);
	if (cell_type(w->fixed.sched, c)->durable && msg_envelope(&pub) && msg_envelope(&pub)->seq)
		(void)durable_note(w, c, false, put_refused, &pub);
	serve_tell_broken(w, c, m->reply);
	msg_free_body(m);
	return REFUSED_DONE;
}

/* ── the system lane ── */


/* The box stops: whoever is down goes as it is; its recorded messages wait in storage. */
static void end(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_if(c);

	if (!v || !v->down || !load_relaxed(&w->fixed.sched->stopping))
		return;
	come_up(w, c, v);
	set_health(w, v, NOH_DOWN, 0);
	(void)life_retire(w, c);
}

/* By force it goes now: what it waits for does not come any more. Else when it is back. */
void supervise_leaves(struct worker *w, struct cell *c, bool forced)
{
	struct vitals *v = vitals_if(c);

	if (!v || !v->down)
		return;
	if (load_relaxed(&w->fixed.sched->stopping)) {
		end(w, c);
	} else if (forced) {
		come_up(w, c, v);
		if (cell_life(c) != NOH_ACTIVE)  /* its activation failed: there is nothing to deactivate */
			c->flags |= CELL_BROKEN;
	}
}

static void resume(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	struct vitals *v = vitals_if(c);
	uint64_t due = 0;
	int rc = NOH_END;

	if (v && v->down) {
		supervise_forgive(w, v, true);
		supervise_restart(w, c);
		rc = NOH_OK;
	} else if (load_relaxed(&cell_type(w->fixed.sched, c)->quarantined)) {
		rc = NOH_EQUARANTINED;
	} else if (v && v->of.health >= NOH_DEGRADED) {
		begin_anew(w, c);
		rc = NOH_OK;
		if (sched_is_durable(w->fixed.sched))
			due = load_relaxed(body_due(c->body));
		serve_activate(w, c);
	}
	if (n->token && due)
		gate_answer(w, due, n->token, rc, NULL, 0);
	else if (n->token)
		gate_complete(&w->mine.port, n->token, rc, NULL, 0);
}

void supervise_sys(struct worker *w, struct cell *c, struct sysmsg *n)
{
	struct vitals *v = vitals_if(c);

	switch (n->op) {
	case SYS_RESTART:
		if (v && v->down && v->serial == n->token && !kin_waits_for_parent(w, c, v))
			supervise_restart(w, c);
		break;
	case SYS_RESUME:
		resume(w, c, n);
		break;
	case SYS_TYPE_DOWN:
		if (!(c->flags & CELL_BROKEN) && is_given_up(w, c)) {
			if (v && v->down)
				come_up(w, c, v);
			(void)life_retire(w, c);
		}
		break;
	case SYS_END:
		end(w, c);
		break;
	default:
		kin_sys(w, c, n);
	}
}

void supervise_stopped(struct worker *w, struct cell *c, enum gone why)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct vitals *v = vitals_if(c);

	if (why == GONE_SELF && t->supervised && t->sup.restart == NOH_PERMANENT && !load_relaxed(&w->fixed.sched->stopping))
		try_later(w, c, t->sup.base_ms);
	if (v && (why == GONE_ASKED || why == GONE_FORCED || why == GONE_SELF || why == GONE_ERASED))
		watch_tell(w, v, NOH_OK, true);
}
