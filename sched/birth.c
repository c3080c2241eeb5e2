/* sched/birth.c - find the cell of an address, or make one.
 *
 * Who needs an address looks without a lock; if nobody is there he makes a cell, takes the table's
 * writer word, looks again if anybody came in meanwhile, and enters it. So of two that make the same
 * address one wins, and the other uses the winner's and gives his own back (P1).
 */
#include "sched/make.h"

#include <string.h>

/* ── bodies ── */

/* Most boxes need few of the sizes: a slab is opened with its first body. */
bool make_bodies_open(struct sched *s, uint32_t k)
{
	uint32_t state = 0;

	if (cas_acquire(&s->bodies_open[k], &state, 1)) {
		bool ok = slab_open(&s->bodies[k], 32 + 16 * (size_t)k, 0, s->max_actors);

		store_release(&s->bodies_open[k], ok ? 2 : 0);
		return ok;
	}
	while ((state = load_acquire(&s->bodies_open[k])) == 1)
		cpu_relax();
	return state == 2;
}

static void body_free(struct port *p, struct type *t, struct body *b)
{
	size_t   bytes = body_bytes(t, body_id_len(t, b));
	uint32_t k = body_class(bytes);

	if (k < BODY_CLASSES)
		slab_give(&p->sched->bodies[k], &p->bodies[k], slab_number(&p->sched->bodies[k], b));
	else
		mem_free(b, bytes);
}

void birth_discard_body(struct type *t, struct body *b)
{
	size_t bytes = body_bytes(t, body_id_len(t, b));

	if (body_class(bytes) >= BODY_CLASSES)
		mem_free(b, bytes);
}

/* ── names ── */

int birth_name_anew(struct port *p, const char *text, size_t len, struct named *who)
{
	struct type *t;
	int rc;

	rc = address_parse(&who->a, text, len);
	if (rc != NOH_OK)
		return rc;
	t = sched_find_type(p->sched, who->a.type, who->a.type_len);
	if (!t) {
		count_one(&p->no_type, 1);
		return error_set(NOH_ENOTYPE, "no type \"%.*s\" is registered (address \"%.*s\")",
				 who->a.type_len, who->a.type, (int)len, text);
	}
	who->type = p->last_type = t;
	who->hash = address_hash(&who->a, p->sched->seed);
	return NOH_OK;
}

void birth_name_of(struct sched *s, struct cell *c, struct named *who)
{
	struct type *t = cell_type(s, c);

	who->a.type = t->name;
	who->a.type_len = (uint8_t)t->name_len;
	who->a.id = body_id(t, c->body);
	who->a.id_len = body_id_len(t, c->body);
	who->type = t;
	who->hash = load_relaxed(&load_relaxed(&c->body)->hash);
}

static inline bool same_word(const char *a, const char *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x == y;
}

/* Reads these bytes and no others. memcmp reads 32 at a time, and from the end of a body on into the next line, which
 * nobody has asked for before: that was a tenth of what a request cost. */
static inline bool same_id(const char *a, const char *b, size_t n)
{
	size_t i = 0;

	if (n < 8) {
		while (i < n && a[i] == b[i])
			i++;
		return i == n;
	}
	for (; i + 8 < n; i += 8)
		if (!same_word(a + i, b + i))
			return false;
	return same_word(a + n - 8, b + n - 8);
}

bool birth_is(struct cell *c, const struct named *who)
{
	return load_relaxed(&c->type) == who->type->index &&
	       body_id_len(who->type, c->body) == who->a.id_len &&
	       same_id(body_id(who->type, c->body), who->a.id, who->a.id_len);
}

/* ── cells ── */

/* In an epoch section. *dead: an entry for this address whose actor is gone. */
static inline struct cell *find(struct sched *s, const struct named *who, uint32_t *gen,
				uint32_t *dead)
{
	struct directory_walk walk;
	uint32_t n;

	*dead = 0;
	directory_walk(&s->directory, who->hash, &walk);
	while (__builtin_expect((n = directory_next(&walk)) != 0, 0)) {
		struct cell *c = cell_at(s, n);
		uint32_t g = load_acquire(&c->mailbox.gen);

		if (!birth_is(c, who))
			continue;
		if (mb_state(load_acquire(&c->mailbox.word)) != MB_DEAD) {
			*gen = g;
			return c;
		}
		*dead = n;
	}
	return NULL;
}

int make_over_budget(struct sched *s)
{
	uint64_t bytes = sched_bytes(s), most = load_relaxed(&s->actor_budget);

	if (bytes <= most + most / 8)
		return NOH_OK;
	park_wake(&s->workers[0].shared.park);   /* somebody has to send somebody home */
	return error_set(NOH_ENOMEM, "the box's actors take %llu bytes, %llu of its memory of %llu are theirs: wait "
			 "until some have gone idle, or raise memory_budget", (unsigned long long)bytes,
			 (unsigned long long)most, (unsigned long long)load_relaxed(&s->memory_budget));
}

int make_no_memory(struct sched *s)
{
	return error_set(NOH_ENOMEM, "no memory for another actor (%llu are active)",
			 (unsigned long long)sched_actors(s));
}

int birth_make(struct port *p, const struct named *who, bool budgeted, struct cell **cell)
{
	uint32_t n = 0;
	int      rc = make_cell(p, who, budgeted, &n);

	*cell = cell_at(p->sched, n);
	return rc;
}

void birth_give(struct port *p, uint32_t number)
{
	struct cell *c = cell_at(p->sched, number);
	atomic_u64 *buckets = load_relaxed(&p->sched->buckets);

	if (__builtin_expect(buckets != NULL, 0) && load_relaxed(&buckets[number]))
		store_relaxed(&buckets[number], 0);      /* the next one has a full one */
	body_free(p, cell_type(p->sched, c), c->body);
	c->body = NULL;
	slab_give(&p->sched->cells, &p->cells, number);
}

void birth_unmake(struct port *p, uint32_t number)
{
	struct cell *c = cell_at(p->sched, number);
	struct type *t = cell_type(p->sched, c);

	count_one(&p->bytes_given, birth_bytes(t, body_id_len(t, c->body)));
	birth_give(p, number);
}

bool birth_enter(struct port *p, struct cell *mine, const struct named *who, struct looked looked,
		 bool claimed, struct cell **theirs, uint32_t *gen)
{
	struct sched *s = p->sched;
	struct directory_table *table = directory_lock(&s->directory, who->hash);
	uint32_t dead = looked.dead;
	bool ok = true;

	*theirs = NULL;
	if (!looked.done || dead || load_relaxed(&table->changes) != looked.changes)
		*theirs = find(s, who, gen, &dead);
	if (!*theirs && dead)
		directory_replace(table, who->hash, dead, cell_number(s, mine));
	else if (!*theirs)
		ok = directory_insert(&s->directory, table, who->hash, cell_number(s, mine), &p->epoch);
	/* Born last, and under the lock: until now it is dead to sweepers and to who finds it. */
	if (!*theirs && ok)
		mailbox_born(&mine->mailbox, claimed ? MB_BUSY : MB_IDLE);
	directory_unlock(table);
	if (*theirs || !ok)
		return ok;
	count_one(&p->born, 1);
	life_note_idle(s, mine, who->type, load_relaxed(&mine->last_active));
	*gen = load_relaxed(&mine->mailbox.gen);
	return true;
}

static int resolve(struct port *p, const struct named *who, bool budgeted, struct cell **cell, uint32_t *gen, bool *claim)
{
	struct sched *s = p->sched;
	struct looked looked = { .done = true };
	struct cell *mine, *theirs;
	bool claimed = false;
	int rc = NOH_OK;

	epoch_enter(&p->epoch);
	looked.changes = directory_changes(&s->directory, who->hash);
	*cell = find(s, who, gen, &looked.dead);
	if (!*cell && (rc = birth_make(p, who, budgeted, &mine)) == NOH_OK) {
		bool ok = birth_enter(p, mine, who, looked, *claim, &theirs, gen);

		*cell = theirs ? theirs : mine;
		claimed = *claim && ok && !theirs;
		if (theirs || !ok)
			birth_unmake(p, cell_number(s, mine));
		if (!ok)
			rc = error_set(NOH_ENOMEM, "no memory for the directory");
	}
	epoch_leave(&p->epoch);
	*claim = claimed;
	return rc;
}

int sched_resolve_named(struct port *p, const struct named *who, struct cell **cell, uint32_t *gen, bool *claim)
{
	return resolve(p, who, true, cell, gen, claim);
}

int sched_resolve_found(struct port *p, const struct named *who, struct cell *found, struct cell **cell, uint32_t *gen,
			bool *claim)
{
	if (found) {
		*gen = load_acquire(&found->mailbox.gen);
		if (birth_is(found, who) && mb_state(load_acquire(&found->mailbox.word)) != MB_DEAD) {
			*cell = found;
			*claim = false;
			return NOH_OK;
		}
	}
	return resolve(p, who, true, cell, gen, claim);
}

int sched_resolve(struct port *p, const char *address, size_t len, struct cell **cell, uint32_t *gen)
{
	struct named who;
	bool claim = false;
	int rc = birth_name(p, address, len, &who);

	return rc == NOH_OK ? resolve(p, &who, true, cell, gen, &claim) : rc;
}

/* The budget was asked when the message was accepted. To refuse it now would lose it; and who waits for others to go
 * home may be who keeps them here. */
int sched_resolve_sent(struct port *p, const char *address, size_t len, struct cell **cell, uint32_t *gen)
{
	struct named who;
	bool claim = false;
	int rc = birth_name(p, address, len, &who);

	return rc == NOH_OK ? resolve(p, &who, false, cell, gen, &claim) : rc;
}

struct cell *sched_find(struct port *p, const struct address *a, struct type *t, uint64_t hash,
			uint32_t *gen)
{
	struct named who = { *a, t, hash };
	uint32_t dead;

	return find(p->sched, &who, gen, &dead);
}
