/* sched/life.c - NOT ACTIVE, ACTIVATING, ACTIVE, DEACTIVATING (LC-03), and when.
 *
 * One instance per address (P1): a cell is found through the directory and owned through its word.
 * Deactivation runs the hook, stores the state, and only then kills the mailbox with one CAS that
 * fails if anything arrived meanwhile; then the actor is activated again on the spot, so no message
 * is lost and no second instance can exist. A dead cell still in the directory is taken for absent;
 * whoever needs the address replaces the entry. Memory is reused after a grace period (ck_epoch).
 */
#include "sched/image.h"
#include "sched/turn.h"

#include <string.h>

/* ── bodies ── */

static size_t body_bytes(const struct type *t, uint8_t id_len)
{
	return sizeof(struct body) + t->id_off + 2u + id_len;
}

static uint32_t body_class(size_t bytes)
{
	return bytes <= 32 ? 0 : (uint32_t)((bytes - 32 + 15) / 16);
}

/* Most boxes need few of the sizes: a slab is opened with its first body. */
static bool bodies_ready(struct sched *s, uint32_t k)
{
	uint32_t state = load_acquire(&s->bodies_open[k]);

	if (__builtin_expect(state == 2, 1))
		return true;
	state = 0;
	if (cas_acquire(&s->bodies_open[k], &state, 1)) {
		bool ok = slab_open(&s->bodies[k], 32 + 16 * (size_t)k, 0, s->max_actors);

		store_release(&s->bodies_open[k], ok ? 2 : 0);
		return ok;
	}
	while ((state = load_acquire(&s->bodies_open[k])) == 1)
		cpu_relax();
	return state == 2;
}

static struct body *body_new(struct port *p, struct type *t, const struct address *a, uint64_t hash)
{
	size_t   bytes = body_bytes(t, a->id_len);
	uint32_t k = body_class(bytes);
	struct body *b;

	if (k < BODY_CLASSES) {
		uint32_t n = bodies_ready(p->sched, k) ? slab_take(&p->sched->bodies[k], &p->bodies[k]) : 0;

		b = n ? slab_at(&p->sched->bodies[k], n) : NULL;
	} else {
		b = mem_aligned(CACHE_LINE, bytes);
	}
	if (!b)
		return NULL;
	memset(b->data, 0, t->id_off);
	store_relaxed(&b->hash, hash);
	b->data[t->id_off] = a->id_len;
	memcpy(b->data + t->id_off + 1, a->id, a->id_len);
	b->data[t->id_off + 1 + a->id_len] = 0;
	return b;
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

static size_t actor_bytes(const struct type *t, const struct body *b)
{
	return body_bytes(t, body_id_len(t, b)) + sizeof(struct cell);
}

struct ext *cell_ext(struct cell *c)
{
	if (!c->ext) {
		c->ext = mem_zalloc(sizeof *c->ext);
		if (c->ext)
			c->ext->redo_end = &c->ext->redo;
	}
	return c->ext;
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

static void give_cell(struct port *p, uint32_t number)
{
	struct cell *c = cell_at(p->sched, number);

	body_free(p, cell_type(p->sched, c), c->body);
	c->body = NULL;
	slab_give(&p->sched->cells, &p->cells, number);
}

static void graves_open(ck_epoch_entry_t *e)
{
	struct graves *g = (struct graves *)e;

	for (uint32_t i = 0; i < g->count; i++)
		give_cell(g->port, g->numbers[i]);
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
		give_cell(p, number);
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

/* ── birth: find the cell of an address, or make it ── */

static bool is_it(struct cell *c, struct type *t, const struct address *a)
{
	return load_relaxed(&c->type) == t->index && body_id_len(t, c->body) == a->id_len &&
	       memcmp(body_id(t, c->body), a->id, a->id_len) == 0;
}

/* In an epoch section. *dead: an entry for this address whose actor is gone. */
static struct cell *find(struct sched *s, struct type *t, const struct address *a, uint64_t hash,
			 uint32_t *gen, uint32_t *dead)
{
	struct directory_walk walk;
	uint32_t n;

	*dead = 0;
	directory_walk(&s->directory, hash, &walk);
	while ((n = directory_next(&walk, hash)) != 0) {
		struct cell *c = cell_at(s, n);
		uint32_t g = load_acquire(&c->mailbox.gen);

		if (!is_it(c, t, a))
			continue;
		if (mb_state(load_acquire(&c->mailbox.word)) != MB_DEAD) {
			*gen = g;
			return c;
		}
		*dead = n;
	}
	return NULL;
}

static struct cell *make(struct port *p, struct type *t, const struct address *a, uint64_t hash)
{
	struct sched *s = p->sched;
	uint32_t n = slab_take(&s->cells, &p->cells);
	struct cell *c;

	if (!n)
		return NULL;
	c = cell_at(s, n);
	c->body = body_new(p, t, a, hash);
	if (!c->body) {
		slab_give(&s->cells, &p->cells, n);
		return NULL;
	}
	store_relaxed(&c->type, (uint16_t)t->index);
	store_relaxed(&c->life, NOH_NOT_ACTIVE);
	c->flags = 0;
	c->ext = NULL;
	if (load_relaxed(&c->mailbox.gen) == 0)
		store_relaxed(&c->mailbox.gen, 1);
	return c;
}

static int over_budget(struct sched *s)
{
	uint64_t bytes = s->memory_budget ? sched_bytes(s) : 0;

	if (bytes <= s->memory_budget + s->memory_budget / 8)
		return NOH_OK;
	park_wake(&s->workers[0].shared.park);   /* somebody has to send somebody home */
	return error_set(NOH_ENOMEM, "the box's actors take %llu bytes, its budget is %llu: wait until "
			 "some have gone idle, or raise memory_budget", (unsigned long long)bytes,
			 (unsigned long long)s->memory_budget);
}

static int insert(struct port *p, struct type *t, const struct address *a, uint64_t hash,
		  uint32_t changes, uint32_t dead, struct cell **cell, uint32_t *gen)
{
	struct sched *s = p->sched;
	struct cell *mine = NULL, *theirs = NULL;
	struct directory_table *table;
	bool ok = true;
	int rc = over_budget(s);

	if (rc != NOH_OK)
		return rc;
	mine = make(p, t, a, hash);
	if (!mine)
		return error_set(NOH_ENOMEM, "no memory for another actor (%llu are active)",
				 (unsigned long long)sched_actors(s));
	store_relaxed(&mine->last_active, p->worker ? p->worker->mine.now_ds
						    : (uint32_t)(clock_now_ns(&s->clock) / 100000000u));
	table = directory_lock(&s->directory, hash);
	if (dead || directory_changes(&s->directory, hash) != changes)
		theirs = find(s, t, a, hash, gen, &dead);
	if (!theirs && dead)
		directory_replace(table, hash, dead, cell_number(s, mine));
	else if (!theirs)
		ok = directory_insert(&s->directory, table, hash, cell_number(s, mine), &p->epoch);
	/* Born last, and under the lock: until now it is dead to sweepers and to who finds it. */
	if (!theirs && ok)
		mailbox_born(&mine->mailbox);
	directory_unlock(table);
	if (theirs || !ok) {
		give_cell(p, cell_number(s, mine));
		if (!ok)
			return error_set(NOH_ENOMEM, "no memory for the directory");
		*cell = theirs;
		return NOH_OK;
	}
	count_one(&p->bytes_taken, actor_bytes(t, mine->body));
	*gen = load_relaxed(&mine->mailbox.gen);
	*cell = mine;
	count_one(&p->born, 1);
	life_note_idle(s, mine, t, load_relaxed(&mine->last_active));
	return NOH_OK;
}

int sched_resolve(struct port *p, const char *address, size_t len, struct cell **cell, uint32_t *gen)
{
	struct sched *s = p->sched;
	struct address a;
	struct type *t;
	uint64_t hash;
	uint32_t dead, changes;
	int rc = address_parse(&a, address, len);

	if (rc != NOH_OK)
		return rc;
	t = sched_find_type(s, a.type, a.type_len);
	if (!t)
		return error_set(NOH_ENOTYPE, "no type \"%.*s\" is registered (address \"%.*s\")",
				 a.type_len, a.type, (int)len, address);
	hash = address_hash(&a, s->seed);
	epoch_enter(&p->epoch);
	changes = directory_changes(&s->directory, hash);
	*cell = find(s, t, &a, hash, gen, &dead);
	if (!*cell)
		rc = insert(p, t, &a, hash, changes, dead, cell, gen);
	epoch_leave(&p->epoch);
	return rc;
}

struct cell *sched_find(struct port *p, const struct address *a, struct type *t, uint64_t hash,
			uint32_t *gen)
{
	uint32_t dead;

	return find(p->sched, t, a, hash, gen, &dead);
}

/* ── activation ── */

static int load_image(struct worker *w, struct cell *c, struct type *t)
{
	struct sched *s = w->fixed.sched;
	char   address[ADDRESS_MAX + 1];
	size_t len, image_len;
	void  *image;
	int    rc;

	if (!s->storage.may_have(s->storage.arg, c->body->hash))
		return NOH_OK;
	len = cell_address(s, c, address);
	rc = s->storage.load(s->storage.arg, address, len, c->body->hash, &image, &image_len);
	if (rc == NOH_END)
		return NOH_OK;
	if (rc != NOH_OK)
		return rc;
	rc = image_decode(image, image_len, w->mine.scratch, t->pub.state_size, &c->ext);
	mem_free(image, image_len);
	if (rc == NOH_OK) {
		if (c->ext)
			c->ext->redo_end = &c->ext->redo;
		turn_publish_state(c, t, w->mine.scratch);
	}
	return rc;
}

static int run_hook(struct worker *w, struct cell *c, int (*hook)(noh_turn *))
{
	int rc;

	turn_begin(w, c, cell_type(w->fixed.sched, c), NULL, 0);
	if (!hook)
		return NOH_OK;
	rc = hook(&w->mine.turn);
	if (rc >= 0) {
		(void)turn_commit(w, c, false, false);
		return NOH_OK;
	}
	turn_undo(w);
	return rc;
}

bool life_activate(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	int rc = NOH_OK;

	store_relaxed(&c->life, NOH_ACTIVATING);
	if (!(c->flags & CELL_LOADED)) {
		rc = load_image(w, c, t);
		if (rc == NOH_OK && c->ext)
			clock_arm_schedules(w, c);
	}
	if (rc == NOH_OK) {
		c->flags |= CELL_LOADED;
		rc = run_hook(w, c, t->pub.on_activate);
	}
	if (rc < 0) {
		struct noh_turn *turn = &w->mine.turn;
		char address[ADDRESS_MAX + 1];

		cell_address(s, c, address);
		sched_logf(s, NOH_WARN, address, "activation failed: %s",
			   turn->cell == c && (turn->so_far.flags & TURN_REASON) ? turn->reason : noh_strerror(rc));
		c->flags |= CELL_BROKEN;
		c->flags &= (uint8_t)~CELL_READY;
		return false;
	}
	count_one(&w->mine.port.types[t->index].activations, 1);
	c->flags |= CELL_READY;
	store_release(&c->life, NOH_ACTIVE);
	return true;
}

/* ── deactivation ── */

static int save_image(struct worker *w, struct cell *c, struct type *t)
{
	struct sched *s = w->fixed.sched;
	size_t   n = image_size(t->pub.state_size, c->ext);
	uint8_t *image;
	char     address[ADDRESS_MAX + 1];
	size_t   len;
	int      rc;

	if (!(c->flags & CELL_DIRTY))
		return NOH_OK;
	image = mem_alloc(n);
	if (!image)
		return NOH_ENOMEM;
	image_encode(image, body_state(t, c->body), t->pub.state_size, c->ext);
	len = cell_address(s, c, address);
	rc = s->storage.save(s->storage.arg, address, len, c->body->hash, image, n);
	mem_free(image, n);
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

		c->ext->goodbyes = n->next;
		(void)pending_complete(p, n->token, status, NULL, 0);
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

static void remove_cell(struct worker *w, struct cell *c, struct type *t)
{
	struct port  *p = &w->mine.port;
	struct sched *s = p->sched;
	uint32_t n = cell_number(s, c);
	struct directory_table *table = directory_lock(&s->directory, c->body->hash);

	(void)directory_remove(table, c->body->hash, n);   /* or replaced already */
	directory_unlock(table);
	count_one(&p->died, 1);
	count_one(&p->bytes_given, actor_bytes(t, c->body));
	if (load_relaxed(&c->life) == NOH_DEACTIVATING)
		count_one(&p->types[t->index].deactivations, 1);
	store_relaxed(&c->life, NOH_NOT_ACTIVE);
	say_goodbye(p, c, NOH_OK);
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

bool life_deactivate(struct worker *w, struct cell *c)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	int rc = NOH_OK;

	if (load_relaxed(&c->life) == NOH_ACTIVE) {
		c->flags &= (uint8_t)~CELL_READY;
		store_relaxed(&c->life, NOH_DEACTIVATING);
		rc = run_hook(w, c, t->pub.on_deactivate);
		if (rc < 0)
			sched_logf(s, NOH_WARN, noh_address(&w->mine.turn), "on_deactivate failed: %s",
				   w->mine.turn.so_far.flags & TURN_REASON ? w->mine.turn.reason : noh_strerror(rc));
		rc = leave_hint(w, c);
		if (rc == NOH_OK)
			rc = save_image(w, c, t);
	}
	if (rc < 0) {            /* keep what cannot be stored */
		say_goodbye(&w->mine.port, c, rc);
		unforce(c);
		c->flags |= CELL_READY;
		store_relaxed(&c->life, NOH_ACTIVE);
		return false;
	}
	disarm(w, c);
	if (mailbox_kill(&c->mailbox, &w->mine.port.room)) {
		remove_cell(w, c, t);
		return true;
	}
	/* Somebody wrote meanwhile: it comes back at once, with the state it has. */
	if (c->flags & CELL_BROKEN)
		return false;
	if (!(c->ext && c->ext->goodbyes) && load_relaxed(&s->stopping) < 2)
		unforce(c);
	if (load_relaxed(&c->life) == NOH_DEACTIVATING)
		count_one(&w->mine.port.types[t->index].deactivations, 1);
	store_relaxed(&c->life, NOH_NOT_ACTIVE);
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

		if (n->op == SYS_ACTIVATE || n->op == SYS_DEACTIVATE)
			(void)pending_complete(p, n->token, NOH_ESTOPPED, NULL, 0);
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
	say_goodbye(p, c, NOH_ESTOPPED);
	ext_free(c->ext);
	c->ext = NULL;
	if (body_class(body_bytes(t, body_id_len(t, c->body))) >= BODY_CLASSES)
		body_free(p, t, c->body);
	c->body = NULL;
}
