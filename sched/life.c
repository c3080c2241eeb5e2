/* sched/life.c - NOT ACTIVE, ACTIVATING, ACTIVE, DEACTIVATING (LC-03), and when.
 *
 * One instance per address (P1): a cell is found through the directory (birth.c) and owned through its
 * word. Deactivation runs the hook, stores the state, and only then kills the mailbox with one CAS that
 * fails if anything arrived meanwhile; then the actor is activated again on the spot, so no message
 * is lost and no second instance can exist. A dead cell still in the directory is taken for absent;
 * whoever needs the address replaces the entry. Memory is reused after a grace period (ck_epoch).
 */
#include "sched/poison.h"

#include "core/life_report.h"
#include "core/plant.h"
#include "sched/events.h"
#include "sched/image.h"
#include "sched/kin.h"
#include "sched/newborn.h"
#include "sched/notice.h"
#include "sched/step.h"

#include <string.h>

struct ext *cell_ext(struct cell *c)
{
	if (!c->ext) {
		c->ext = mem_zalloc(sizeof *c->ext);
		if (c->ext) {
			c->ext->redo_end = &c->ext->redo;
			c->ext->joins_end = &c->ext->joins;
		}
	}
	return c->ext;
}

/* Entries are allocations of their own: about an eighth is the allocator's. */
void life_weigh(struct port *p, struct cell *c)
{
	struct ext *x = c->ext;
	uint64_t now;

	if (!x)
		return;
	now = sizeof *x + (x->vitals ? sizeof *x->vitals : 0) + x->kv.bytes + x->kv.bytes / 8 + x->schedule_room * sizeof *x->schedules;
	if (now > x->weight)
		count_one(&p->bytes_taken, now - x->weight);
	else
		count_one(&p->bytes_given, x->weight - now);
	x->weight = now;
}

void life_comes(struct port *p, struct cell *c, bool reborn)
{
	cell_set_known(c, true, reborn);
	atomic_u64 *came = &p->types[load_relaxed(&c->type)].came;

	store_release(came, load_relaxed(came) + 1);     /* who counts it sees when it is on disk */
}

void life_goes(struct port *p, struct cell *c)
{
	cell_set_known(c, false, false);
	atomic_u64 *went = &p->types[load_relaxed(&c->type)].went;

	store_release(went, load_relaxed(went) + 1);
}

static void set_active(struct cell *c)
{
	if (!cell_late(c))
		c->flags |= CELL_READY;
	cell_set_life(c, NOH_ACTIVE);
}

size_t cell_address(struct sched *s, const struct cell *c, char *out)
{
	const struct type *t = cell_type(s, c);
	uint8_t n = body_id_len(t, c->body);

	memcpy(out, t->name, t->name_len);
	out[t->name_len] = ':';
	memcpy(out + t->name_len + 1, body_id(t, c->body), n);
	out[t->name_len + 1 + n] = 0;
	return t->name_len + 1 + n;
}

/* ── graves ── */

#define GRAVES 62

struct graves {
	ck_epoch_entry_t entry;
	struct port     *port;
	uint32_t         count;
	uint32_t         numbers[GRAVES];
};

static void graves_open(ck_epoch_entry_t *e)
{
	struct graves *g = (struct graves *)e;

	for (uint32_t i = 0; i < g->count; i++)
		birth_give(g->port, g->numbers[i]);
	mem_free(g, sizeof *g);
}

static bool dig(struct port *p)
{
	if (!p->graves) {
		p->graves = mem_alloc(sizeof *p->graves);
		if (!p->graves)
			return false;
		p->graves->port = p;
		p->graves->count = 0;
	}
	return true;
}

static void lay(struct port *p, uint32_t number)
{
	p->graves->numbers[p->graves->count++] = number;
	if (p->graves->count == GRAVES) {
		epoch_defer(&p->epoch, &p->graves->entry, graves_open);
		p->graves = NULL;
	}
}

/* Without memory for a grave the dead wait in limbo, linked like free cells. */
static void bury(struct port *p, uint32_t number)
{
	if (dig(p)) {
		lay(p, number);
		return;
	}
	store_relaxed(&cell_at(p->sched, number)->mailbox.link, p->limbo);
	p->limbo = number;
}

/* At the end of the box nobody looks any more. */
void graves_empty_limbo(struct port *p)
{
	while (p->limbo) {
		uint32_t number = p->limbo;

		p->limbo = load_relaxed(&cell_at(p->sched, number)->mailbox.link);
		birth_give(p, number);
	}
}

void graves_close(struct port *p)
{
	while (p->limbo && dig(p)) {
		uint32_t number = p->limbo;

		p->limbo = load_relaxed(&cell_at(p->sched, number)->mailbox.link);
		lay(p, number);
	}
	if (p->graves) {
		epoch_defer(&p->epoch, &p->graves->entry, graves_open);
		p->graves = NULL;
	}
}

/* ── activation ── */

/* What is known of its past: nothing. */
static int no_image(struct type *t, struct cell *c, uint64_t seq, uint64_t due)
{
	if (t->durable) {
		*body_seq(c->body) = seq | SEQ_BARE;
		durable_raise(c, due);
	}
	cell_set_known(c, false, false);
	return NOH_OK;
}

static void swap_first_two(struct redo *first)        /* PLANT_OVERTAKE */
{
	struct msg m = first->msg;

	first->msg = first->next->msg;
	first->next->msg = m;
}

static int load_image(struct worker *w, struct cell *c, struct type *t)
{
	struct sched *s = w->fixed.sched;
	struct sched_storage *from = t->storage;
	char   address[ADDRESS_MAX + 1];
	struct sched_image image;
	size_t len;
	int    rc;

	if (!from->may_have(from->arg, body_hash(c)))
		return no_image(t, c, 0, 0);
	len = cell_address(s, c, address);
	rc = from->load(from->arg, address, len, body_hash(c), &image);
	if (rc == NOH_END || (rc == NOH_OK && image.gone))
		return no_image(t, c, rc == NOH_OK ? image.seq : 0, rc == NOH_OK ? image.due : 0);
	if (rc != NOH_OK)
		return rc;
	rc = image_decode(w, c, image.bytes, image.len);
	life_weigh(&w->mine.port, c);
	bool there = image_is_kept(image.bytes, image.len) || image.len == 0;

	mem_free(image.bytes, image.len);
	if (rc != NOH_OK)
		return rc;
	if (PLANT(PLANT_OVERTAKE) && c->ext && c->ext->redo && c->ext->redo->next)
		swap_first_two(c->ext->redo);
	turn_publish_state(c, t, w->mine.scratch);
	if (t->durable && !there)        /* only messages wait for it */
		return no_image(t, c, image.seq, image.due);
	if (t->durable)
		*body_seq(c->body) = image.seq;
	if (sched_is_durable(s))
		durable_raise(c, image.due);
	cell_set_known(c, true, image.reborn);
	return NOH_OK;
}

/* More than a state, which the next turn records, or the image: children, entries, schedules, messages. A full disk is
 * no reason not to be activated. */
static bool leaves_more(struct worker *w)
{
	const struct noh_turn *t = &w->mine.turn;

	return (t->fx->count || (t->so_far.flags & (TURN_KV | TURN_TIMERS | TURN_VITALS | TURN_ERASE))) && !w->mine.read_only;
}

static int run_hook(struct worker *w, struct cell *c, int (*hook)(noh_turn *))
{
	int rc;

	turn_begin(w, c, cell_type(w->fixed.sched, c), NULL, 0);
	if (!hook)
		return NOH_OK;
	if (cell_life(c) == NOH_ACTIVATING)
		w->mine.turn.so_far.flags |= TURN_COMES;
	poison_note(w, c, NULL, 0);
	rc = hook(&w->mine.turn);
	poison_done(w);
	if (rc >= 0 && (w->mine.turn.so_far.flags & TURN_BIRTHS))
		rc = newborn_enter(w);
	if (rc >= 0 && cell_type(w->fixed.sched, c)->durable && leaves_more(w))
		rc = durable_prepare(w, c);
	if (rc >= 0) {
		(void)turn_commit(w, c, false, false);
		return NOH_OK;
	}
	turn_undo(w);
	return rc;
}

static void activation_failed(struct worker *w, struct cell *c, struct type *t, int rc)
{
	struct noh_turn *turn = &w->mine.turn;
	char address[ADDRESS_MAX + 1];
	const char *why = turn->cell == c && (turn->so_far.flags & TURN_REASON) ? turn->reason :
			  rc == NOH_EVERSION || rc == NOH_ECORRUPT ? noh_why() : noh_strerror(rc);

	events_leave(&w->mine.port, c);
	if (supervise_activation_failed(w, c, rc))
		return;
	count_one(&w->mine.port.types[t->index].broken, 1);
	cell_address(w->fixed.sched, c, address);
	sched_logf(w->fixed.sched, NOH_WARN, address, "activation failed: %s", why);
	if (!t->tells)
		notice_failed(w, c, UINT32_MAX, rc, why);
	c->flags |= CELL_BROKEN;
	c->flags &= (uint8_t)~CELL_READY;
	if (!(c->flags & CELL_LOADED)) {
		w->mine.unloaded.cell = c;
		w->mine.unloaded.code = rc;
	}
}

bool life_activate(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	bool existed;
	int rc = NOH_OK;

	cell_set_life(c, NOH_ACTIVATING);
	if (!(c->flags & CELL_LOADED)) {
		rc = load_image(w, c, t);
		if (rc == NOH_OK && load_relaxed(&s->vitals_used) && !vitals_if(c) && !vitals_load(s, c, NULL))
			rc = NOH_ENOMEM;
		if (rc == NOH_OK && c->ext)
			clock_arm_schedules(w, c);
	}
	if (rc == NOH_OK) {
		c->flags |= CELL_LOADED;
		if (__builtin_expect(vitals_if(c) || t->supervised, 0) && !supervise_admits(w, c))
			return false;
		rc = events_join(w, c, t);
	}
	existed = load_relaxed(&c->life) & LIFE_THERE;
	if (rc == NOH_OK)
		rc = run_hook(w, c, t->pub.on_activate);
	if (rc < 0) {
		activation_failed(w, c, t, rc);
		return false;
	}
	if (c->ext && c->ext->restarting) {
		c->ext->restarting = false;      /* it was counted when it came */
	} else {
		count_one(&w->mine.port.types[t->index].activations, 1);
		sched_note_since(w, c);
		count_one(&w->mine.port.types[t->index].loaded, existed);
	}
	if (notice_wanted(s, t))
		notice_came(&w->mine.port, c);
	set_active(c);
	return true;
}

/* An actor that was never active, of a type without the hook, with nothing stored: nothing to do. */
bool life_activate_new(struct worker *w, struct cell *c, struct type *t)
{
	struct sched_storage *from = t->storage;

	if (c->flags || !t->comes_easily || load_relaxed(&w->fixed.sched->vitals_used) ||
	    from->may_have(from->arg, body_hash(c)))
		return false;
	count_one(&w->mine.port.types[t->index].activations, 1);
	sched_note_since(w, c);
	c->flags = CELL_LOADED | CELL_READY;
	store_release(&c->life, NOH_ACTIVE | LIFE_KNOWN);
	if (notice_wanted(w->fixed.sched, t))
		notice_came(&w->mine.port, c);
	return true;
}

/* ── deactivation ── */

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
	bury(p, n);
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
	rc = run_hook(w, c, t->pub.on_deactivate);
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
			set_active(c);
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
