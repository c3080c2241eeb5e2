/* sched/birth.h - from an address to a cell: found in the directory, or made and entered.
 *
 * Owns     nothing. A cell that was made and not entered yet is its maker's: nobody else has seen it,
 *          and to whoever reads it by a stale number it is dead.
 * Threads  any, each with its port; birth_enter inside an epoch section.
 */
#ifndef NOH_SCHED_BIRTH_H
#define NOH_SCHED_BIRTH_H

#include "sched/turn.h"

/* An address whose type is known. */
struct named {
	struct address a;
	struct type   *type;
	uint64_t       hash;
};

int birth_name_anew(struct port *p, const char *text, size_t len, struct named *who);

/* Does the address name this type? No search, no parsing. */
static inline bool birth_of_type(const struct type *t, const char *text, size_t len)
{
	uint64_t head;

	if (!t || len < t->name_len + 2u || len > ADDRESS_MAX)
		return false;
	if (len < sizeof head)
		return text[t->name_len] == ':' && memcmp(text, t->name, t->name_len) == 0;
	memcpy(&head, text, sizeof head);
	return ((head ^ t->name_head) & t->name_mask) == 0 &&
	       (t->name_len < sizeof head || (text[t->name_len] == ':' && memcmp(text, t->name, t->name_len) == 0));
}

/* It does. */
static inline void birth_name_as(struct sched *s, struct type *t, const char *text, size_t len, struct named *who)
{
	who->a.type = text;
	who->a.type_len = (uint8_t)t->name_len;
	who->a.id = text + t->name_len + 1;
	who->a.id_len = (uint8_t)(len - t->name_len - 1);
	who->type = t;
	who->hash = address_hash_text(text, len, s->seed);
}

/* text: without a NUL in it. Most often the type is that of the address before. NOH_OK, NOH_EADDRESS,
 * NOH_ENOTYPE. */
static inline int birth_name(struct port *p, const char *text, size_t len, struct named *who)
{
	struct type *t = p->last_type;

	if (__builtin_expect(!birth_of_type(t, text, len), 0))
		return birth_name_anew(p, text, len, who);
	birth_name_as(p->sched, t, text, len, who);
	return NOH_OK;
}

/* NOH_OK, or NOH_ENOMEM: no memory, or (if that counts) over the budget. Its bytes are counted from now on. */
int birth_make(struct port *p, const struct named *who, bool budgeted, struct cell **cell);
void birth_unmake(struct port *p, uint32_t number);        /* it was never entered */

/* Enter `mine`, unless another actor of that address lives: then it is *theirs, with *gen. A newborn
 * is IDLE, or BUSY if `claimed`. looked: the walk that found nobody (or only `dead`) was at `changes`.
 * False: no memory for the directory. */
struct looked { bool done; uint32_t changes, dead; };
bool birth_enter(struct port *p, struct cell *mine, const struct named *who, struct looked looked,
		 bool claimed, struct cell **theirs, uint32_t *gen);

bool birth_is(struct cell *c, const struct named *who);
void birth_name_of(struct sched *s, struct cell *c, struct named *who);   /* as long as c is there */
void birth_give(struct port *p, uint32_t number);          /* nobody can look at it any more */
void birth_discard_body(struct type *t, struct body *b);   /* at the end: what no slab frees */

static inline size_t body_bytes(const struct type *t, uint8_t id_len)
{
	return sizeof(struct body) + t->id_off + 2u + id_len;
}

/* Of a cell and its body together. */
static inline size_t birth_bytes(const struct type *t, uint8_t id_len)
{
	return body_bytes(t, id_len) + sizeof(struct cell);
}

#endif
