/* sched/life.c - NOT ACTIVE, ACTIVATING, ACTIVE, DEACTIVATING (LC-03), and when.
 *
 * One instance per address (P1): a cell is found through the directory (birth.c) and owned through its
 * word. Deactivation runs the hook, stores the state, and only then kills the mailbox with one CAS that
 * fails if anything arrived meanwhile; then the actor is activated again on the spot, so no message
 * is lost and no second instance can exist. A dead cell still in the directory is taken for absent;
 * whoever needs the address replaces the entry. Memory is reused after a grace period (ck_epoch).
 */
#include "sched/poison.h"

#include "core/plant.h"
#include "sched/events.h"
#include "sched/image.h"
#include "sched/kin.h"
#include "sched/newborn.h"
#include "sched/notice.h"

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

void life_set_active(struct cell *c)
{
	if (!cell_late(c))
		c->flags |= CELL_READY;
	cell_set_life(c, NOH_ACTIVE);
}

size_t cell_address_len(struct sched *s, const struct cell *c)
{
	const struct type *t = cell_type(s, c);

	return t->name_len + 1 + body_id_len(t, c->body);
}

static inline void put_text(char *to, const char *from, size_t len)
{
	if (__builtin_expect(len <= MSG_INLINE, 1))
		copy_small((uint8_t *)to, from, len);
	else
		memcpy(to, from, len);
}

void cell_address_put(struct sched *s, const struct cell *c, char *out)
{
	const struct type *t = cell_type(s, c);

	put_text(out, t->name, t->name_len);
	out[t->name_len] = ':';
	put_text(out + t->name_len + 1, body_id(t, c->body), body_id_len(t, c->body));
}

size_t cell_address(struct sched *s, const struct cell *c, char *out)
{
	size_t n = cell_address_len(s, c);

	cell_address_put(s, c, out);
	out[n] = 0;
	return n;
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

/* More than a state, which the next turn records, or the image: children, messages, entries, schedules. On a full disk there is
 * no turn that leaves such: what others record of it later would have no cause (P6). What one who goes keeps is in the image. */
static bool leaves_more(struct worker *w, struct cell *c)
{
	const struct noh_turn *t = &w->mine.turn;
	bool kept = w->mine.read_only && cell_life(c) == NOH_DEACTIVATING;

	return t->fx->count || (t->so_far.flags & (kept ? TURN_ERASE : TURN_KV | TURN_TIMERS | TURN_VITALS | TURN_ERASE));
}

int life_run_hook(struct worker *w, struct cell *c, int (*hook)(noh_turn *))
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
	if (rc >= 0 && cell_type(w->fixed.sched, c)->durable && leaves_more(w, c))
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
	bool existed, fresh = !(c->flags & CELL_LOADED);
	int rc = NOH_OK;

	cell_set_life(c, NOH_ACTIVATING);
	if (fresh) {
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
		rc = life_run_hook(w, c, t->pub.on_activate);
	if (rc < 0) {
		if (rc == NOH_ENOSPC && fresh)
			c->flags &= (uint8_t)~CELL_LOADED;       /* as it was: next time from storage, with what waits there */
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
	life_set_active(c);
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
