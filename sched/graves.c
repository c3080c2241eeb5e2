/* sched/graves.c - cells of the dead, until nobody can look at them any more (ck_epoch): then they are given back, many at a time.
 */
#include "sched/sched.h"

#include "core/mem.h"
#include "sched/birth.h"

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
void graves_bury(struct port *p, uint32_t number)
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
