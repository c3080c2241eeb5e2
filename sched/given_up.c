/* sched/given_up.c - actors that failed too often: marked, stored, refused, and let in again. */
#include "sched/supervise.h"

#include "sched/kin.h"
#include "sched/notice.h"
#include "sched/serve.h"
#include "sched/watch.h"

#include <stdio.h>

#define NAME_SHOWN 64                      /* bytes of an address in a sentence; a longer one nobody types */

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

static void set_flags(struct worker *w, struct vitals *v, uint32_t flags)
{
	vitals_lock(w->fixed.sched, v);
	v->of.flags = flags;
	vitals_unlock(w->fixed.sched, v);
}

static void tell(struct worker *w, struct cell *c, const struct vitals *v)
{
	noh_health health = (noh_health)v->of.health;
	enum notice_kind kind = health == NOH_DEGRADED ? NOTICE_DEGRADED : health == NOH_STOPPED ? NOTICE_STOPPED : NOTICE_QUARANTINED;

	supervise_tell(w, c, v, (int)kind, noh_health_name(health));
	if (v->of.flags & VITALS_WHOLE_TYPE)
		notice_of(w->fixed.sched, cell_type(w->fixed.sched, c)->name, kind,
			  &(noh_emit_options){ .from = noh_health_name(NOH_HEALTHY), .to = noh_health_name(health), .reason = v->reason });
}

/* Whoever hears of it from now on sees it so. */
void given_up_mark(struct worker *w, struct cell *c, struct vitals *v, int then)
{
	const noh_supervision *own = &cell_type(w->fixed.sched, c)->sup;
	noh_health health = health_of(then);
	char address[ADDRESS_MAX + 1];

	cell_address(w->fixed.sched, c, address);
	sched_logf(w->fixed.sched, NOH_ERROR, address, "failed %u times within %u ms, and is %s: %s", v->of.in_window,
		   own->within_ms, then_names[then], v->reason ? v->reason : "");
	if (v->down)
		supervise_come_up(w, c, v);
	supervise_set_health(w, v, health, health == NOH_DEGRADED ? sched_wall_ms(w) + own->cap_ms : 0);
	supervise_forgive(w, v, false);
	set_flags(w, v, then == NOH_THEN_QUARANTINE_TYPE ? VITALS_WHOLE_TYPE : 0);
	if (v->of.flags & VITALS_WHOLE_TYPE)
		store_release(&cell_type(w->fixed.sched, c)->quarantined, QUARANTINED_NOW);
}

/* And it leaves memory: its last turn is its on_deactivate, in which it may erase itself, and with that what it failed of. */
void given_up_retire(struct worker *w, struct cell *c, struct vitals *v)
{
	const noh_supervision *own = &cell_type(w->fixed.sched, c)->sup;

	life_retire(w, c, GONE_FAILED);
	if (v->of.health >= NOH_DEGRADED)
		tell(w, c, v);
	if (v->of.health == NOH_DEGRADED)
		try_later(w, c, own->cap_ms);
	if (v->of.flags & VITALS_WHOLE_TYPE)
		kin_quarantine_type(w, c);
}

/* ── who was given up ── */

static bool is_given_up(struct worker *w, struct cell *c)
{
	struct vitals *v = vitals_if(c);

	return load_relaxed(&cell_type(w->fixed.sched, c)->quarantined) || (v && v->of.health >= NOH_DEGRADED);
}

/* The process ended in its turn: that was a failure, and what starts now is the restart. True: that was too often. */
static bool crashed_too_often(struct worker *w, struct cell *c, const struct type *t)
{
	struct vitals *v;

	if (!t->supervised || !poison_blames(w->fixed.sched, c) || !(v = vitals_of(w->fixed.sched, c)))
		return false;
	v->told = "active";                      /* as it was when the process ended */
	if (supervise_count(w, c, v, &t->sup, SUPERVISE_CRASHED)) {
		if (supervise_back_off(w, c, v, true, 0))
			supervise_note(w, c);
		return true;
	}
	supervise_count_restart(w, v);
	supervise_note(w, c);
	supervise_tell(w, c, v, NOTICE_RESTARTED, "activating");
	return false;
}

/* Its time is over; or the clock was set back between two runs, and it would take longer than it may. */
static bool may_try_again(struct worker *w, const struct vitals *v, const struct type *t)
{
	uint64_t now = sched_wall_ms(w);

	return v->of.health == NOH_DEGRADED && (now >= v->of.until_ms || v->of.until_ms - now > t->sup.cap_ms);
}

bool supervise_admits(struct worker *w, struct cell *c)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct vitals *v = vitals_if(c);

	if (v && may_try_again(w, v, t)) {
		v->told = noh_health_name(NOH_DEGRADED);
		supervise_set_health(w, v, NOH_HEALTHY, 0);
		supervise_note(w, c);
	}
	if (v && v->of.health == NOH_DOWN && !v->down)   /* when the box ended: that is over */
		supervise_set_health(w, v, NOH_HEALTHY, 0);
	if (v)
		supervise_gauge(&w->mine.port, v);
	if (is_given_up(w, c)) {
		c->flags |= CELL_BROKEN;
		c->flags &= (uint8_t)~CELL_READY;
		return false;
	}
	return !w->fixed.sched->crashes || !crashed_too_often(w, c, t);
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

/* A name that a person reads, and may type again. */
static void plain_name(char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			*name = '?';
}

size_t supervise_sentence(struct worker *w, struct cell *c, char out[SUPERVISE_SENTENCE])
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct vitals *v = vitals_if(c);
	noh_health health = v ? (noh_health)v->of.health : NOH_HEALTHY;
	bool with_type = load_relaxed(&t->quarantined);
	const char *reason = v && v->reason ? v->reason : "it failed too often";
	char address[ADDRESS_MAX + 1], hint[ADDRESS_MAX + 64] = "noh quarantine list names it";
	uint64_t now = sched_wall_ms(w);
	size_t len = cell_address(w->fixed.sched, c, address);
	int n;

	plain_name(address);
	if (with_type)
		snprintf(hint, sizeof hint, "noh quarantine resume %s", t->name);
	else if (len <= NAME_SHOWN)
		snprintf(hint, sizeof hint, "noh quarantine resume %s", address);
	if (!with_type && health <= NOH_DEGRADED)
		n = snprintf(out, SUPERVISE_SENTENCE, "%.*s is %s: %s; try again in %llu ms", NAME_SHOWN, address, noh_health_name(health),
			     reason, (unsigned long long)(v && v->of.until_ms > now ? v->of.until_ms - now : 1));
	else
		n = snprintf(out, SUPERVISE_SENTENCE, "%.*s is %s: %s; %s", NAME_SHOWN, address,
			     with_type ? "quarantined with its type" : noh_health_name(health), reason, hint);
	return n < SUPERVISE_SENTENCE ? (size_t)n : SUPERVISE_SENTENCE - 1;
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

	v->told = noh_health_name((noh_health)v->of.health);     /* maybe by a process before this one */
	notice(&w->mine.port, c, NOTICE_RESUMED, notice_moves(c, NULL), "not active", NULL, v->of.desired);
	supervise_set_health(w, v, NOH_HEALTHY, 0);
	supervise_forgive(w, v, true);
	set_flags(w, v, 0);
	c->flags &= (uint8_t)~CELL_BROKEN;
	supervise_note(w, c);
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
	/* What was not even loaded has no place in the order of its records: its messages wait in storage. */
	if (cell_type(w->fixed.sched, c)->durable && (c->flags & CELL_LOADED) && msg_envelope(&pub) && msg_envelope(&pub)->seq)
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
	supervise_come_up(w, c, v);
	supervise_set_health(w, v, NOH_DOWN, 0);
	life_retire(w, c, GONE_STOP);
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
		supervise_come_up(w, c, v);
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
				supervise_come_up(w, c, v);
			life_retire(w, c, GONE_FAILED);
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

	if (why == GONE_SELF && t->supervised && t->sup.restart == NOH_PERMANENT && !load_relaxed(&w->fixed.sched->stopping))
		try_later(w, c, t->sup.base_ms);
	if (vitals_if(c) && (why == GONE_ASKED || why == GONE_FORCED || why == GONE_SELF || why == GONE_ERASED))
		watch_tell_left(w, c);
}
