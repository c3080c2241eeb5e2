/* sched/leave.c - from ACTIVE to NOT ACTIVE, and out of memory; life.c says why no message is lost on the way.
 */
#include "sched/image.h"

#include "core/life_report.h"
#include "core/plant.h"
#include "sched/birth.h"
#include "sched/events.h"
#include "sched/kin.h"
#include "sched/notice.h"
#include "sched/step.h"

static int save_image(struct worker *w, struct cell *c, struct type *t)
{
	struct sched *s = w->fixed.sched;
	struct sched_storage *to = t->storage;
	struct sched_image image = { .len = 0 };
	char     address[ADDRESS_MAX + 1];
	size_t   len;
	int      rc;

	if (!(c->flags & CELL_DIRTY))
		return NOH_OK;
	if (t->durable)
		image.seq = *body_seq(c->body) & ~SEQ_BARE;
	if (sched_is_durable(s))         /* a volatile one may know what is not on disk yet */
		image.due = load_relaxed(body_due(c->body));
	/* Whatever a volatile one did since it was erased has left nothing. */
	if (!t->durable && (load_relaxed(&c->life) & LIFE_THERE) && c->ext && c->ext->erased && image_blank(s, c))
		life_goes(&w->mine.port, c);
	image.reborn = load_relaxed(&c->life) & LIFE_REBORN;
	if (!(load_relaxed(&c->life) & LIFE_THERE)) {
		image.gone = true;
	} else {
		image.len = image_size(s, c);
		image.bytes = mem_alloc(image.len);
		if (!image.bytes)
			return NOH_ENOMEM;
		image_encode(s, c, image.bytes);
	}
	len = cell_address(s, c, address);
	rc = to->save(to->arg, address, len, body_hash(c), &image);
	mem_free(image.bytes, image.len);
	if (rc == NOH_OK)
		c->flags &= (uint8_t)~CELL_DIRTY;
	return rc;
}

/* An actor with schedules leaves a hint behind that wakes it; one that is there already, for then or
 * earlier, will do. */
static int leave_hint(struct worker *w, struct cell *c)
{
	uint64_t due = UINT64_MAX;
	char     address[ADDRESS_MAX + 1];
	size_t   len;

	if (PLANT(PLANT_TIMER_LOST))
		return NOH_OK;
	for (uint32_t i = 0; c->ext && i < c->ext->schedule_count; i++)
		if (c->ext->schedules[i].due_ms < due)
			due = c->ext->schedules[i].due_ms;
	if (due == UINT64_MAX || (c->ext->hint_ms > sched_now_ms(w) && c->ext->hint_ms <= due))
		return NOH_OK;
	len = cell_address(w->fixed.sched, c, address);
	if (!clock_arm_dormant(w, address, len, due))
		return NOH_ENOMEM;
	c->ext->hint_ms = due;
	c->flags |= CELL_DIRTY;
	return NOH_OK;
}

static void say_goodbye(struct port *p, struct cell *c, int status)
{
	while (c->ext && c->ext->goodbyes) {
		struct sysmsg *n = c->ext->goodbyes;
		struct life_report report = { .drained = n->status ? 0 : n->kind };
		bool told = status == NOH_OK && (n->token & TOKEN_OF_NET);

		c->ext->goodbyes = n->next;
		(void)pending_complete(p, n->token, status, told ? &report : NULL, told ? sizeof report : 0);
		node_free(p, n);
	}
}

/* Its schedules' wheel entries would fire for nothing. */
static void disarm(struct worker *w, struct cell *c)
{
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;

	for (uint32_t i = 0; c->ext && i < c->ext->schedule_count; i++) {
		struct schedule *x = &c->ext->schedules[i];

		clock_cancel(w->fixed.sched, x->worker, x->entry, self, x->serial);
	}
}

/* Nobody keeps the reason beside CELL_STOP, but what is known of it when it goes tells. */
static enum gone why_gone(struct worker *w, struct cell *c, const struct type *t)
{
	struct sched *s = w->fixed.sched;

	if (load_relaxed(&s->stopping) >= 2)
		return GONE_STOP;
	if (c->ext && c->ext->goodbyes)
		return c->ext->forced ? GONE_FORCED : GONE_ASKED;
	if (c->ext && c->ext->erased)
		return GONE_ERASED;
	if ((uint64_t)load_relaxed(&c->last_active) + t->idle_ds <= w->mine.now_ds)
		return GONE_IDLE;
	return load_relaxed(&c->life) & LIFE_EVICTED ? GONE_MEMORY : GONE_SELF;
}

static void count_gone(struct worker *w, struct cell *c, const struct type *t, enum gone why)
{
	struct type_counts *counts = &w->mine.port.types[t->index];

	count_one(&counts->deactivations, 1);
	count_one(&counts->gone[why], 1);
	if (notice_wanted(w->fixed.sched, t))
		notice_went(&w->mine.port, c, why);
	if (__builtin_expect(vitals_if(c) || t->supervised, 0))
		supervise_stopped(w, c, why);
	cell_set_evicted(c, false);              /* it may come back at once */
}

/* While the address is its own: the next one's first event comes after its last, and its vitals are nobody else's. */
static void tell_gone(struct worker *w, struct cell *c, struct type *t)
{
	if (cell_life(c) == NOH_DEACTIVATING)
		count_gone(w, c, t, why_gone(w, c, t));
	else if (notice_wanted(w->fixed.sched, t) && supervise_left_down(c))
		notice_went(&w->mine.port, c, why_gone(w, c, t));
}

static void remove_cell(struct worker *w, struct cell *c, struct type *t)
{
	struct port  *p = &w->mine.port;
	struct sched *s = p->sched;
	uint32_t n = cell_number(s, c);
	struct directory_table *table = directory_lock(&s->directory, c->body->hash);

	(void)directory_remove(table, c->body->hash, n);   /* or replaced already */
	directory_unlock(table);
	count_one(&p->died, 1);
	count_one(&p->bytes_given, birth_bytes(t, body_id_len(t, c->body)));
	cell_set_life(c, NOH_NOT_ACTIVE);
	say_goodbye(p, c, NOH_OK);
	must(!c->ext || !c->ext->joins);                 /* an empty mailbox is beyond every place in it */
	if (c->ext)
		count_one(&p->bytes_given, c->ext->weight);
	vitals_leave(s, c);
	ext_free(c->ext);
	c->ext = NULL;
	graves_bury(p, n);
}

static void unforce(struct cell *c)
{
	c->flags &= (uint8_t)~CELL_STOP;
	if (c->ext)
		c->ext->forced = false;
}

/* The last turn, and into storage. */
static int put_away(struct worker *w, struct cell *c, struct type *t)
{
	int rc;

	c->flags &= (uint8_t)~CELL_READY;
	cell_set_life(c, NOH_DEACTIVATING);
	rc = life_run_hook(w, c, t->pub.on_deactivate);
	if (rc < 0)
		sched_logf(w->fixed.sched, NOH_WARN, noh_address(&w->mine.turn), "on_deactivate failed: %s",
			   w->mine.turn.so_far.flags & TURN_REASON ? w->mine.turn.reason : noh_strerror(rc));
	rc = leave_hint(w, c);
	return rc == NOH_OK ? save_image(w, c, t) : rc;
}

/* What cannot be stored now is when it leaves memory: until then it stays, and is refused what waits. */
void life_retire(struct worker *w, struct cell *c, enum gone why)
{
	struct type *t = cell_type(w->fixed.sched, c);
	bool active = cell_life(c) == NOH_ACTIVE;

	if (active)
		(void)put_away(w, c, t);
	events_leave(&w->mine.port, c);
	if (active)
		count_gone(w, c, t, why);
	cell_set_life(c, NOH_NOT_ACTIVE);
	c->flags &= (uint8_t)~CELL_READY;
	c->flags |= CELL_BROKEN;
}

bool life_deactivate(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	int rc = NOH_OK;

	if (cell_life(c) == NOH_ACTIVE)
		rc = put_away(w, c, t);
	else if ((c->flags & CELL_BROKEN) && (c->flags & CELL_LOADED))
		rc = save_image(w, c, t);        /* what was recorded of it since must be known to its next life */
	if (rc < 0) {            /* keep what cannot be stored */
		say_goodbye(&w->mine.port, c, rc);
		unforce(c);
		if (!(c->flags & CELL_BROKEN))
			life_set_active(c);
		return false;
	}
	disarm(w, c);
	events_leave(&w->mine.port, c);
	tell_gone(w, c, t);
	if (!cell_late(c) && mailbox_kill(&c->mailbox, &w->mine.port.room)) {
		remove_cell(w, c, t);
		return true;
	}
	/* Somebody wrote meanwhile, or its last words are not out: it comes back at once, with the state it has. */
	if (c->flags & CELL_BROKEN)
		return false;
	if (!(c->ext && c->ext->goodbyes) && load_relaxed(&s->stopping) < 2)
		unforce(c);
	cell_set_life(c, NOH_NOT_ACTIVE);
	clock_arm_schedules(w, c);
	return false;
}

/* ── the end ── */

void life_discard(struct port *p, struct cell *c)
{
	struct sched *s = p->sched;
	struct type *t = cell_type(s, c);
	struct slot *slot;
	struct sysmsg *n;

	while (mailbox_take(&c->mailbox, &p->room, true, &slot) == MB_TAKEN) {
		count_one(&p->types[t->index].dropped_stop, 1);
		msg_dispose(p, &slot->msg, NOH_ESTOPPED);
		mailbox_release(slot);
	}
	for (n = mailbox_sys_take(&c->mailbox); n; ) {
		struct sysmsg *next = n->next;

		if (n->op == SYS_ACTIVATE || n->op == SYS_DEACTIVATE || n->op == SYS_UNSCHEDULE ||
		    (n->op == SYS_RESUME && n->token))
			(void)pending_complete(p, n->token, NOH_ESTOPPED, NULL, 0);
		if (n->op == SYS_JOIN)
			step_discard(n);
		else
			node_free(p, n);
		n = next;
	}
	for (n = mailbox_take_waiters(&c->mailbox); n; ) {
		struct sysmsg *next = n->next;

		node_free(p, n);
		n = next;
	}
	while (c->ext && c->ext->room_queue) {
		n = c->ext->room_queue;
		c->ext->room_queue = n->next;
		node_free(p, n);
	}
	while (c->ext && c->ext->redo) {
		struct redo *r = c->ext->redo;

		c->ext->redo = r->next;
		count_one(&p->types[t->index].dropped_stop, 1);
		msg_dispose(p, &r->msg, NOH_ESTOPPED);
		mem_free(r, sizeof *r);
	}
	for (n = c->ext ? c->ext->joins : NULL; n; ) {
		struct sysmsg *next = n->next;

		step_discard(n);
		n = next;
	}
	say_goodbye(p, c, NOH_ESTOPPED);
	events_leave(p, c);
	vitals_leave(s, c);
	ext_free(c->ext);
	c->ext = NULL;
	birth_discard_body(t, c->body);
	c->body = NULL;
}
