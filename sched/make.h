/* sched/make.h - a cell and its body for a new actor: the short way, in the caller's own code.
 *
 * Owns     nothing. What is made here is its maker's until it is entered (birth.h).
 * Threads  any, each with its port.
 */
#ifndef NOH_SCHED_MAKE_H
#define NOH_SCHED_MAKE_H

#include "sched/birth.h"

/* birth.c: the rare parts */
bool make_bodies_open(struct sched *s, uint32_t k);      /* the slab of that size; false: no memory */
int  make_over_budget(struct sched *s);                  /* NOH_OK, or NOH_ENOMEM and a sentence    */
int  make_no_memory(struct sched *s);

static inline uint32_t body_class(size_t bytes)
{
	return bytes <= 32 ? 0 : (uint32_t)((bytes - 32 + 15) / 16);
}

static ALWAYS_INLINE struct body *make_room(struct port *p, size_t bytes)
{
	struct sched *s = p->sched;
	uint32_t k = body_class(bytes), n;

	if (__builtin_expect(k >= BODY_CLASSES, 0))
		return mem_aligned(CACHE_LINE, bytes);
	/* What is in the cache came from an open one. */
	if (__builtin_expect(p->bodies[k].count == 0, 0) && load_acquire(&s->bodies_open[k]) != 2 && !make_bodies_open(s, k))
		return NULL;
	n = slab_take(&s->bodies[k], &p->bodies[k]);
	slab_fetch(&s->bodies[k], &p->bodies[k]);
	return n ? slab_at(&s->bodies[k], n) : NULL;
}

static ALWAYS_INLINE struct body *make_body(struct port *p, const struct named *who)
{
	const struct type *t = who->type;
	uint32_t state = t->id_off;
	uint8_t n = who->a.id_len, *id;
	struct body *b = make_room(p, body_bytes(t, n));

	if (__builtin_expect(!b, 0))
		return NULL;
	memset(b->data, 0, 8);                   /* the least there is behind the hash */
	if (state > 64)
		memset(b->data, 0, state);
	else
		for (uint32_t i = 8; i < state; i += 8)
			memset(b->data + i, 0, 8);
	store_relaxed(&b->hash, who->hash);
	id = b->data + state;
	*id++ = n;
	if (n <= MSG_INLINE)
		copy_small(id, who->a.id, n);
	else
		memcpy(id, who->a.id, n);
	id[n] = 0;
	return b;
}

/* *number: of a cell for that actor, with a body; nobody has seen it. Its bytes are counted from now on. budgeted: not
 * if the box's actors take more than they may. NOH_OK, NOH_ENOMEM. */
static ALWAYS_INLINE int make_cell(struct port *p, const struct named *who, bool budgeted, uint32_t *number)
{
	struct sched *s = p->sched;
	struct cell *c;
	uint32_t n;
	int rc = budgeted && load_relaxed(&s->memory_budget) ? make_over_budget(s) : NOH_OK;

	if (rc != NOH_OK)
		return rc;
	n = slab_take(&s->cells, &p->cells);
	if (__builtin_expect(!n, 0))
		return make_no_memory(s);
	slab_fetch(&s->cells, &p->cells);
	c = cell_at(s, n);
	struct body *b = make_body(p, who);

	if (__builtin_expect(!b, 0)) {
		slab_give(&s->cells, &p->cells, n);
		return make_no_memory(s);
	}
	store_relaxed(&c->body, b);
	store_relaxed(&c->type, (uint16_t)who->type->index);
	store_relaxed(&c->life, NOH_NOT_ACTIVE);
	c->flags = 0;
	store_relaxed(&c->ext, NULL);
	if (load_relaxed(&c->mailbox.gen) == 0)
		store_relaxed(&c->mailbox.gen, 1);
	store_relaxed(&c->last_active, p->worker ? p->worker->mine.now_ds
						 : (uint32_t)(clock_now_ns(&s->clock) / 100000000u));
	count_one(&p->bytes_taken, birth_bytes(who->type, who->a.id_len));
	*number = n;
	return NOH_OK;
}

#endif
