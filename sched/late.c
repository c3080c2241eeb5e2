#include "sched/late.h"

#include "core/plant.h"
#include "sched/turn.h"

#include <string.h>

#define TRIES 64                         /* senders looked at in one pass */

/* ── room ── */

static bool make_room(struct late_turn *l, uint32_t effects, uint32_t letters)
{
	while (l->fx.room < effects)
		if (!effects_grow(&l->fx))
			return false;
	if (l->letters.room < letters) {
		char *bytes = mem_alloc(letters);

		if (!bytes)
			return false;
		mem_free(l->letters.bytes, l->letters.room);
		l->letters = (struct letters){ bytes, letters };
	}
	return true;
}

static void free_one(struct late_turn *l)
{
	if (!l)
		return;
	mem_free(l->fx.list, l->fx.room * sizeof *l->fx.list);
	mem_free(l->letters.bytes, l->letters.room);
	mem_free(l, sizeof *l);
}

bool late_reserve(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct lates *all = &w->mine.lates;

	if (!all->spare)
		all->spare = mem_zalloc(sizeof *all->spare);
	return all->spare && make_room(all->spare, t->fx->count, t->so_far.letters);
}

/* The larger one stays. */
void late_give(struct worker *w, struct late_turn *spare)
{
	struct lates *all = &w->mine.lates;
	struct late_turn *other = all->spare;

	if (!spare)
		return;
	if (other && other->fx.room >= spare->fx.room && other->letters.room >= spare->letters.room) {
		other = spare;
		spare = all->spare;
	}
	all->spare = spare;
	free_one(other);
}

/* ── keeping ── */

static void append(struct lates *all, struct late_turn *l)
{
	l->next = NULL;
	if (all->last)
		all->last->next = l;
	else
		all->first = l;
	all->last = l;
}

static void count(struct worker *w, int64_t n)
{
	store_relaxed(&w->shown.late, load_relaxed(&w->shown.late) + (uint64_t)n);
}

/* The sender of the turn becomes late. */
static struct late_turn *begin(struct worker *w, uint32_t place)
{
	struct noh_turn *t = &w->mine.turn;
	struct lates *all = &w->mine.lates;
	struct cell *c = load_relaxed(&t->cell);
	struct late_turn *l;

	if (!late_reserve(w))
		return NULL;
	l = all->spare;
	all->spare = NULL;
	l->due = t->due;
	l->sender = cell_number(t->sched, c);
	l->at = 0;
	l->first = place;
	l->fx.count = 0;
	l->letters_len = t->so_far.letters;
	if (l->letters_len)
		memcpy(l->letters.bytes, t->letters.bytes, l->letters_len);
	append(all, l);
	t->so_far.flags |= TURN_LATE;
	if (!PLANT(PLANT_LATE_OVERTAKEN)) {
		must(!cell_late(c));             /* who is late runs nothing */
		cell_set_late(c, true);
		c->flags &= (uint8_t)~CELL_READY;
	}
	return l;
}

bool late_keep(struct worker *w, const struct effect *rest, uint32_t n, uint32_t place)
{
	struct late_turn *l = w->mine.turn.so_far.flags & TURN_LATE ? w->mine.lates.last : NULL;

	if (PLANT(PLANT_LATE_LOST))
		return false;
	if (!l)
		l = begin(w, place);
	if (!l || !make_room(l, l->fx.count + n, 0))
		return false;
	memcpy(&l->fx.list[l->fx.count], rest, n * sizeof *rest);
	l->fx.count += n;
	count(w, n);
	return true;
}

/* ── trying again ── */

static uint32_t send_some(struct worker *w, struct late_turn *l)
{
	uint32_t from = l->at;

	for (; l->at < l->fx.count; l->at++) {
		struct effect *e = &l->fx.list[l->at];
		struct noted at = { l->letters.bytes, l->letters_len, l->first + l->at, l->due };

		if (e->msg.len != FX_DONE && !turn_publish_again(w, e, &at))
			break;
	}
	count(w, (int64_t)from - l->at);
	return l->at - from;
}

/* All it had sent is out: it goes on. */
static void release(struct worker *w, struct late_turn *l)
{
	struct cell *c = cell_at(w->fixed.sched, l->sender);

	if (!PLANT(PLANT_LATE_OVERTAKEN)) {
		cell_set_late(c, false);
		if (cell_life(c) == NOH_ACTIVE)
			c->flags |= CELL_READY;
		sched_enqueue(&w->mine.port, c);
	}
	late_give(w, l);
}

/* Senders are independent of each other: whose messages do not go yet is the last to be tried again. */
uint32_t late_retry(struct worker *w)
{
	struct lates *all = &w->mine.lates;
	struct late_turn *end = all->last;
	uint32_t went = 0;

	for (uint32_t i = 0; i < TRIES && all->first; i++) {
		struct late_turn *l = all->first;
		bool was_end = l == end;

		all->first = l->next;
		if (!all->first)
			all->last = NULL;
		went += send_some(w, l);
		if (l->at == l->fx.count)
			release(w, l);
		else
			append(all, l);
		if (was_end)
			break;
	}
	return went;
}

/* ── the end ── */

/* What was recorded comes with the next start. */
void late_discard(struct worker *w, struct port *p)
{
	struct lates *all = &w->mine.lates;

	while (all->first) {
		struct late_turn *l = all->first;

		all->first = l->next;
		for (; l->at < l->fx.count; l->at++) {
			struct effect *e = &l->fx.list[l->at];

			if (e->msg.len == FX_DONE || e->msg.len == FX_SPAWN)
				continue;
			if (e->cell) {
				uint32_t t = load_relaxed(&cell_at(p->sched, e->cell)->type);

				count_one(&p->types[t].accepted, 1);
				count_one(&p->types[t].dropped_stop, 1);
				msg_dispose(p, &e->msg, NOH_ESTOPPED);
			} else {
				msg_free_body(&e->msg);
			}
		}
		free_one(l);
	}
	all->last = NULL;
	store_relaxed(&w->shown.late, 0);
}

void late_free(struct worker *w)
{
	free_one(w->mine.lates.spare);
	w->mine.lates.spare = NULL;
}
