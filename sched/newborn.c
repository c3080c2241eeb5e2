/* sched/newborn.c - many new addresses in one turn, without waiting for the memory of each.
 *
 * The directory's line for a new address is cold. A turn that forks would wait for one after another,
 * so after a first address that was new the next ones are taken for new as well: the send asks for the
 * line, makes a cell that nobody sees and goes on. At the turn's end, when the lines are here, the cells
 * are entered, under each table's writer word and after a look, so one address has one actor as ever
 * (P1). Entered cells are BUSY from birth, and their first messages wait in hand. An undone turn leaves
 * nothing in the directory.
 *
 * Who turns out to be there already gets the messages (they go in whatever his mailbox holds, and the
 * sender rests if it is full); then the next address is looked up at the send again.
 */
#include "sched/newborn.h"

#include "sched/late.h"
#include "sched/make.h"

#include <string.h>

enum { MADE, CLAIMED, SETTLED };       /* settled: born idle, or somebody else's */
enum { FETCH = 16, AGAIN_AHEAD = 4 };  /* lines of the directory that are asked for together; and once more, before use */

static bool grow(struct newborns *all)
{
	uint32_t room = all->room ? all->room * 2 : 64;
	struct newborn *list = mem_alloc(room * sizeof *list);

	if (!list)
		return false;
	if (all->room)
		memcpy(list, all->list, all->room * sizeof *list);
	mem_free(all->list, all->room * sizeof *list);
	all->list = list;
	all->room = room;
	return true;
}

/* One more for an address that this turn has written to before. */
static int tell_again(noh_turn *t, const struct named *who, struct namesake *known)
{
	uint32_t letters = t->so_far.letters;
	uint32_t gen = load_relaxed(&cell_at(t->sched, known->cell)->mailbox.gen);
	char     address[ADDRESS_MAX + 1];
	int      rc = NOH_OK;

	t->so_far.flags |= TURN_TWICE;
	if (!turn_note_address(t, t->fx->count, address,
			       cell_address(t->sched, cell_at(t->sched, known->cell), address)))
		return tell_no_memory(t, 0);
	if (known->count >= who->type->capacity)
		rc = tell_no_room(t, who->type, known->cell, gen, known->count, known->count);
	if (rc == NOH_OK)
		known->count++;
	else
		t->so_far.letters = letters;
	return rc;
}

/* Their tables are here by now. Some at once: a line may also have to wait for its page's address, and those waits
 * pass side by side, too. */
static inline void fetch_entries(struct worker *w, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		directory_fetch(&w->fixed.sched->directory, w->mine.newborns.list[from].hash);
}

/* The budget, or memory, has refused it. */
static __attribute__((noinline)) int make_all_the_same(noh_turn *t, const struct named *who, uint32_t *number)
{
	struct cell *c;
	int rc = NOH_ENOMEM;

	if (sched_may_exceed(t) && (rc = birth_make(&t->worker->mine.port, who, false, &c)) == NOH_OK)
		*number = cell_number(t->sched, c);
	return rc;
}

/* The cell was made for the message that will be the next effect. */
static ALWAYS_INLINE void note(noh_turn *t, uint64_t hash, uint32_t cell, struct namesake *known)
{
	struct worker *w = t->worker;
	uint32_t       n = t->so_far.births;

	*known = (struct namesake){ .turn = load_relaxed(&w->shown.counts.turns), .hash = hash, .cell = cell, .count = 1 };
	w->mine.newborns.list[n] = (struct newborn){ .hash = hash, .effect = t->fx->count, .cell = cell };
	t->so_far.births = n + 1;
	t->so_far.flags |= TURN_BIRTHS;
}

/* The table's line; and those of the entries since. */
static ALWAYS_INLINE void fetch(noh_turn *t, uint64_t hash)
{
	uint32_t n = t->so_far.births;

	directory_fetch_table(&t->sched->directory, hash);
	if (n % FETCH == 0 && n)
		fetch_entries(t->worker, n - FETCH, n);
}

static ALWAYS_INLINE bool knows(noh_turn *t, const struct namesake *known, const struct named *who)
{
	return __builtin_expect(known->hash == who->hash && known->turn == load_relaxed(&t->worker->shown.counts.turns), 0) &&
	       birth_is(cell_at(t->sched, known->cell), who);
}

/* The cell for the message that will be the next effect: known->cell. */
static int find_or_make(noh_turn *t, const struct named *who, struct namesake *known)
{
	struct worker *w = t->worker;
	uint32_t       cell = 0;
	int            rc;

	fetch(t, who->hash);
	if (knows(t, known, who))
		return tell_again(t, who, known);
	if (t->so_far.births == w->mine.newborns.room && !grow(&w->mine.newborns))
		return tell_no_memory(t, 0);
	rc = make_cell(&w->mine.port, who, true, &cell);
	if (rc != NOH_OK && (rc = make_all_the_same(t, who, &cell)) != NOH_OK)
		return rc;
	note(t, who->hash, cell, known);
	return NOH_OK;
}

static ALWAYS_INLINE void address_effect(noh_turn *t, struct effect *e, uint32_t cell, uint32_t kind)
{
	e->cell = cell;
	e->gen = load_relaxed(&cell_at(t->sched, cell)->mailbox.gen);
	e->msg.kind = kind;
	e->msg.reply = 0;
	t->fx->count++;
	t->so_far.newborn_effects++;
}

/* To an address that is probably new. */
static int tell_new(noh_turn *t, const struct named *who, uint32_t kind, const void *body, size_t len)
{
	struct namesake *known = &t->worker->mine.namesakes[who->hash % NAMESAKES];
	struct effect   *e;
	int              rc;

	if (who->type->pub.kinds && (rc = type_check_kind(who->type, kind)) != NOH_OK)
		return rc;
	if (len > t->sched->max_message)
		return tell_too_big(t->sched, len);
	e = effect_new(t);
	if (!e || !set_body(&e->msg, body, len))
		return tell_no_memory(t, len);
	rc = find_or_make(t, who, known);
	if (rc != NOH_OK) {
		msg_free_body(&e->msg);
		return rc;
	}
	address_effect(t, e, known->cell, kind);
	return NOH_OK;
}

/* The last address a turn wrote to was new, so this one probably is; of a type that accepts a message
 * without a look into the mailbox. */
static inline bool expected_new(const struct worker *w, const struct type *t)
{
	return w->mine.expects_new && t->pub.full_mode != NOH_DROP_NEWEST;
}

static __attribute__((noinline)) int tell_to(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len)
{
	struct named who;
	int rc;

	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	rc = birth_name(&t->worker->mine.port, address, address_len(address), &who);
	if (rc != NOH_OK)
		return rc;
	/* It ends later than this turn; or a cell is looked at before it is written to. */
	if ((t->so_far.flags & TURN_STEP) || (load_relaxed(&who.type->limits) & LIMIT_REFUSE))
		return tell_resolved(t, address, kind, body, len);
	if (!expected_new(t->worker, who.type)) {
		rc = tell_known(t, &who, address, kind, body, len);
		if (rc != NOH_EGONE)
			return rc;
	}
	if (t->fx->count != t->so_far.newborn_effects && tell_wrote_to(t, who.hash))
		return tell_resolved(t, address, kind, body, len);
	return tell_new(t, &who, kind, body, len);
}

/* One more of a turn that writes to new addresses, and to nobody else: a short message, of whose type a send is not looked
 * at, and there is room to note it down. */
static ALWAYS_INLINE bool one_more(noh_turn *t, const struct type *ty, size_t len)
{
	struct worker *w = t->worker;

	return w->mine.expects_new && len <= MSG_INLINE &&
	       t->fx->count == t->so_far.newborn_effects && t->fx->count < t->fx->room &&
	       t->so_far.births < w->mine.newborns.room &&
	       load_relaxed(&((struct type *)(uintptr_t)ty)->short_capacity) && ty->pub.full_mode != NOH_DROP_NEWEST;
}

int noh_tell_to(noh_turn *t, const char *address, uint32_t kind, const void *body, size_t len)
{
	struct namesake *known;
	struct effect   *e;
	struct named     who;
	uint32_t         cell = 0;

	if (__builtin_expect(t->so_far.flags & (TURN_READONLY | TURN_STEP), 0))      /* a read outside has no worker */
		return tell_to(t, address, kind, body, len);
	struct port *p = &t->worker->mine.port;
	struct type *ty = p->last_type;
	size_t       address_size = address_len(address);

	if (__builtin_expect(!birth_of_type(ty, address, address_size) || !one_more(t, ty, len), 0))
		return tell_to(t, address, kind, body, len);
	birth_name_as(t->sched, ty, address, address_size, &who);
	known = &t->worker->mine.namesakes[who.hash % NAMESAKES];
	if (knows(t, known, &who))
		return tell_to(t, address, kind, body, len);
	fetch(t, who.hash);
	if (__builtin_expect(make_cell(p, &who, true, &cell) != NOH_OK, 0))
		return tell_to(t, address, kind, body, len);
	note(t, who.hash, cell, known);
	e = &t->fx->list[t->fx->count];
	e->msg.len = (uint32_t)len;
	copy_small(e->msg.body.bytes, body, len);
	address_effect(t, e, cell, kind);
	return NOH_OK;
}

/* Somebody was there: all that was meant for the cell made here is for him. */
static bool forward(struct worker *w, uint32_t first, struct cell *mine, struct cell *theirs,
		    uint32_t gen)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched    *s = t->sched;
	struct type     *ty = cell_type(s, theirs);
	uint32_t         was = cell_number(s, mine), is = cell_number(s, theirs);
	char             address[ADDRESS_MAX + 1];

	/* Those after the first have noted the address when they were sent. */
	if (!turn_note_address(t, first, address, cell_address(s, mine, address)))
		return false;
	for (uint32_t i = first; i < t->fx->count; i++) {
		if (t->fx->list[i].cell == was) {
			t->fx->list[i].cell = is;
			t->fx->list[i].gen = gen;
		}
		if (!(t->so_far.flags & TURN_TWICE))
			break;
	}
	if (t->so_far.block_on == was) {
		t->so_far.block_on = is;
		t->so_far.block_gen = gen;
	} else if (ty->pub.full_mode == NOH_BLOCK && mailbox_depth(&theirs->mailbox) >= ty->capacity) {
		turn_note_full(t, &t->so_far.block_on, &t->so_far.block_gen, is, gen);
	}
	birth_unmake(&w->mine.port, was);
	w->mine.expects_new = false;
	return true;
}

/* Nobody has a hash like this, as it is nearly always: nothing to compare. */
static inline bool enter_quickly(struct worker *w, struct newborn *n, struct cell *mine)
{
	struct sched *s = w->fixed.sched;
	struct directory_table *table = directory_lock(&s->directory, n->hash);
	bool ok = directory_insert_new(table, n->hash, n->cell);

	if (ok)
		mailbox_born(&mine->mailbox, MB_BUSY);   /* last, and under the lock: see birth_enter */
	directory_unlock(table);
	return ok;
}

static bool enter(struct worker *w, struct newborn *n, bool claimed)
{
	struct noh_turn *t = &w->mine.turn;
	struct cell     *mine = cell_at(t->sched, n->cell), *theirs;
	char             address[ADDRESS_MAX + 1];
	struct named     who;
	uint32_t         gen = 0;

	birth_name_of(t->sched, mine, &who);
	if (!birth_enter(&w->mine.port, mine, &who, (struct looked){ .done = false }, claimed, &theirs,
			 &gen))
		return false;
	if (theirs) {
		if (!forward(w, n->effect, mine, theirs, gen))
			return false;
		n->is = SETTLED;
		return true;
	}
	n->is = claimed ? CLAIMED : SETTLED;
	/* If it is not claimed it may go again before its message comes. */
	return claimed ||
	       turn_note_address(t, n->effect, address, cell_address(t->sched, mine, address));
}

/* Those that were entered already stay, as actors that nobody has written to yet. */
void newborn_forget(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct port     *p = &w->mine.port;

	for (uint32_t i = 0; i < t->so_far.births; i++) {
		struct newborn *n = &w->mine.newborns.list[i];
		struct cell    *c = cell_at(t->sched, n->cell);

		if (n->is == MADE)
			birth_unmake(p, n->cell);
		else if (n->is == CLAIMED &&
			 !mailbox_idle(&c->mailbox, &p->room, cell_type(t->sched, c)->shared))
			sched_enqueue(p, c);
	}
	t->so_far.births = 0;
	t->so_far.flags &= ~(uint32_t)TURN_BIRTHS;
}

/* As many as there is room for in hand. Returns how many are entered. */
static uint32_t enter_in_hand(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct sched    *s = t->sched;
	uint32_t         room = hands_left(&w->hands), i;
	uint32_t         most = t->so_far.births < room ? t->so_far.births : room;
	uint64_t         born = 0;

	for (i = 0; i < most; i++) {
		struct newborn *n = &w->mine.newborns.list[i];
		struct cell    *mine = cell_at(s, n->cell);

		if (i + AGAIN_AHEAD < most)              /* the first ones have gone to the outer cache meanwhile */
			directory_fetch(&s->directory, n[AGAIN_AHEAD].hash);
		if (__builtin_expect(!enter_quickly(w, n, mine), 0)) {
			if (!enter(w, n, true))
				break;
			continue;
		}
		n->is = CLAIMED;
		born++;
		life_note_idle(s, mine, cell_type(s, mine), load_relaxed(&mine->last_active));
	}
	count_one(&w->mine.port.born, born);
	return i;
}

int newborn_enter(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	uint32_t i;
	bool ok;

	epoch_enter(&w->mine.port.epoch);
	fetch_entries(w, (t->so_far.births - 1) / FETCH * FETCH, t->so_far.births);    /* there is one, at least */
	i = enter_in_hand(w);
	ok = i == t->so_far.births || i == hands_left(&w->hands);
	for (; ok && i < t->so_far.births; i++)
		ok = enter(w, &w->mine.newborns.list[i], false);
	if (!ok)
		newborn_forget(w);
	epoch_leave(&w->mine.port.epoch);
	if (!ok)
		return error_set(NOH_ENOMEM, "%s: no memory to enter the actors it has made",
				 noh_address(t));
	return NOH_OK;
}

/* No memory for those from this effect on; but who is in hand has got his. */
static void publish_late(struct worker *w, struct newborn *next, uint32_t from)
{
	struct noh_turn *t = &w->mine.turn;

	for (struct newborn *end = w->mine.newborns.list + t->so_far.births; next < end; next++)
		if (next->is == CLAIMED)
			t->fx->list[next->effect].msg.len = FX_DONE;
	turn_publish_late(w, &t->fx->list[from], t->fx->count - from);
}

void newborn_publish(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct newborn  *n = w->mine.newborns.list, *end = n + t->so_far.births, *rest;
	struct effect   *list = t->fx->list;
	uint32_t         count = t->fx->count, i = 0;

	/* First those that have a place in hand: the others may fill it. Most turns write to them first, and to others then. */
	for (; n < end && n->is == CLAIMED && n->effect == i; n++, i++)
		hands_put(&w->hands, &list[i]);
	for (rest = n; rest < end; rest++)
		if (rest->is == CLAIMED)
			hands_put(&w->hands, &list[rest->effect]);
	for (uint32_t went; i < count; i += went) {
		uint32_t until = n < end ? n->effect : count;

		went = i == until && n->is == CLAIMED ? 1 : turn_publish_run(w, &list[i], i == until ? 1 : until - i);
		if (__builtin_expect(went == 0, 0)) {
			publish_late(w, n, i);
			break;
		}
		n += i == until;
	}
	t->fx->count = 0;
}
