#include "sched/supervise.h"

#include "core/plant.h"
#include "core/random.h"
#include "noh_reconcile.h"
#include "sched/events.h"
#include "sched/kin.h"
#include "sched/notice.h"
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

void supervise_set_health(struct worker *w, struct vitals *v, noh_health health, uint64_t until_ms)
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

void supervise_count_restart(struct worker *w, struct vitals *v)
{
	vitals_lock(w->fixed.sched, v);
	v->of.restarts += v->of.restarts < UINT32_MAX;
	vitals_unlock(w->fixed.sched, v);
}

void supervise_tell(struct worker *w, struct cell *c, const struct vitals *v, int kind, const char *to)
{
	notice(&w->mine.port, c, (enum notice_kind)kind, notice_moves(c, to), to, v->reason, v->of.desired);
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

static uint64_t backoff_ms(struct worker *w, const noh_supervision *p, uint32_t streak)
{
	noh_backoff policy = { .base_ms = p->base_ms, .factor = p->factor,
			       .cap_ms = PLANT(PLANT_BACKOFF_UNCAPPED) ? UINT32_MAX : p->cap_ms };

	return noh_backoff_ms(&policy, streak, random_next(&w->mine.rng) * UINT64_C(0x2545F4914F6CDD1D) >> 16);
}

/* True: it was too often. */
bool supervise_count(struct worker *w, struct cell *c, struct vitals *v, const noh_supervision *p, const char *reason)
{
	uint64_t now = sched_wall_ms(w);
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
	supervise_tell(w, c, v, NOTICE_FAILED, noh_health_name(NOH_DOWN));
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
	supervise_set_health(w, v, NOH_DOWN, sched_wall_ms(w) + delay_ms);
	v->down = true;
	c->ext->rests_on = 0;
	c->flags |= CELL_BLOCKED;
	life_weigh(&w->mine.port, c);            /* as long as it is down it stays, with what is known of it */
	arm(w, c, v, delay_ms);
}

/* What is over is not waited for any more. */
void supervise_come_up(struct worker *w, struct cell *c, struct vitals *v)
{
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;

	if (v->entry)
		clock_cancel(w->fixed.sched, v->worker, v->entry, self, WHEEL_RESTART | v->serial);
	v->entry = 0;
	v->serial++;
	v->down = v->with_kin = false;
	c->flags &= (uint8_t)~CELL_BLOCKED;
	supervise_set_health(w, v, NOH_HEALTHY, 0);
}

void supervise_restart(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_of(w->fixed.sched, c);

	if (!v || (c->flags & CELL_BROKEN) || cell_life(c) == NOH_DEACTIVATING)
		return;
	supervise_come_up(w, c, v);
	supervise_tell(w, c, v, NOTICE_RESTARTED, "activating");
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

/* ── what becomes of it ── */

/* Its supervisor's policy, or its own if there is none above. */
int supervise_policy(struct worker *w, const struct vitals *v, uint32_t hops)
{
	const noh_supervision *above = kin_policy(w->fixed.sched, v);
	int then = above ? above->then : w->fixed.sched->types[v->type]->sup.then;

	if (then == NOH_THEN_ESCALATE && (!above || (hops >= TREE_DEPTH_MAX && !PLANT(PLANT_ESCALATION_LOOP))))
		return NOH_THEN_DEGRADE;
	return then;
}

/* It has failed: back off, or ask who decides. Returns false if it was given up. */
bool supervise_back_off(struct worker *w, struct cell *c, struct vitals *v, bool too_often, uint32_t hops)
{
	struct sched *s = w->fixed.sched;
	const noh_supervision *p = &s->types[v->type]->sup;
	int then = too_often ? supervise_policy(w, v, hops) : NOH_THEN_ESCALATE;
	char address[ADDRESS_MAX + 1];
	uint64_t delay;

	cell_address(s, c, address);
	if (too_often && then != NOH_THEN_ESCALATE) {
		given_up_mark(w, c, v, then);
		record(w, c, NULL);
		given_up_retire(w, c, v);
		return false;
	}
	if (too_often) {
		sched_logf(s, NOH_ERROR, address, "failed %u times within %u ms: that is its parent's failure: %s", v->of.in_window,
			   p->within_ms, v->reason ? v->reason : "");
		delay = p->cap_ms;               /* its parent restarts it before, if it can */
		supervise_tell(w, c, v, NOTICE_ESCALATED, noh_health_name(NOH_DOWN));
		kin_escalate(w, c, v, hops + 1);
	} else {
		delay = backoff_ms(w, p, v->of.streak);
		supervise_count_restart(w, v);
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
	too_often = supervise_count(w, c, v, &t->sup, reason);
	if (v->down && !too_often)               /* it will be restarted anyway */
		return;
	if (supervise_back_off(w, c, v, too_often, hops))
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
	if (t->msg_count)
		notice(&w->mine.port, c, NOTICE_DEAD_LETTER, NULL, NULL, c->ext->vitals->reason, c->ext->vitals->of.desired);
	count_one(&counts->set_aside, t->msg_count);
	count_one(&w->mine.port.dead_letters, t->msg_count);
	serve_answer_failed(w, rc);
}

/* Its message is answered before its on_deactivate runs: that is a turn of its own. */
static void give_up_in_turn(struct worker *w, struct cell *c, struct vitals *v, int rc)
{
	bool temporary = cell_type(w->fixed.sched, c)->sup.restart == NOH_TEMPORARY;

	if (!temporary)
		given_up_mark(w, c, v, supervise_policy(w, v, 0));
	set_aside(w, c, rc);
	if (temporary)
		life_retire(w, c, GONE_FAILED);
	else
		given_up_retire(w, c, v);
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
	too_often = supervise_count(w, c, v, p, reason);
	if (p->restart == NOH_TEMPORARY || (too_often && supervise_policy(w, v, 0) != NOH_THEN_ESCALATE)) {
		give_up_in_turn(w, c, v, rc);
		return rc;
	}
	again = try_again(t, p);
	(void)supervise_back_off(w, c, v, too_often, 0);
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
	stays = supervise_back_off(w, c, v, supervise_count(w, c, v, &type->sup, reason), 0);
	if (stays)
		record(w, c, NULL);
	watch_tell(w, v, rc, !stays);
	return true;
}
