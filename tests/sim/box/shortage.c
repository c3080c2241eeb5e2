/* tests/sim/box/shortage.c - memory that is short for a while: mailboxes get no ring, addresses no place in the directory.
 *
 * What cannot be accepted then is refused. What was accepted, and turns that are over, must come through: later, and in
 * the order sent.
 */
#include "tests/sim/box/sim.h"

#include "sched/newborn.h"

enum mb_push __wrap_mailbox_push(struct mailbox *m, const struct mailroom *room, uint32_t gen, uint32_t capacity,
				 const struct msg *msg);
enum mb_push __real_mailbox_push(struct mailbox *m, const struct mailroom *room, uint32_t gen, uint32_t capacity,
				 const struct msg *msg);
enum mb_push __wrap_mailbox_push_run(struct mailbox *m, const struct mailroom *room, uint32_t gen,
				     const struct msg *const *msgs, uint32_t *n);
enum mb_push __real_mailbox_push_run(struct mailbox *m, const struct mailroom *room, uint32_t gen,
				     const struct msg *const *msgs, uint32_t *n);
bool __wrap_directory_insert(struct directory *d, struct directory_table *t, uint64_t hash, uint32_t cell,
			     ck_epoch_record_t *epoch);
bool __real_directory_insert(struct directory *d, struct directory_table *t, uint64_t hash, uint32_t cell,
			     ck_epoch_record_t *epoch);

int __wrap_newborn_enter(struct worker *w);
int __real_newborn_enter(struct worker *w);

void shortage_begin(void)
{
	sim->short_until = sim->step + 1 + sim_below(300);
	sim->short_worker = sim_below(2 * sim->workers);
	seen->shortages++;
	sim_say("memory is short");
}

/* For one worker, whose cache is empty, or for all. Not always: what is freed meanwhile serves the next. */
static bool refuses(void)
{
	const struct worker *self = sched_self();
	bool refused;

	if (sim->step >= sim->short_until || sim->calm || sim->dead || sim->verifying ||
	    (sim->short_worker < sim->workers && !(self && self->fixed.index == sim->short_worker)))
		return false;
	refused = !sim_one_in(6);
	seen->refused_memory += refused;
	return refused;
}

enum mb_push __wrap_mailbox_push(struct mailbox *m, const struct mailroom *room, uint32_t gen, uint32_t capacity,
				 const struct msg *msg)
{
	bool there = load_relaxed(&m->gen) == gen && mb_state(load_relaxed(&m->word)) != MB_DEAD;

	return there && refuses() ? MB_NOMEM : __real_mailbox_push(m, room, gen, capacity, msg);
}

enum mb_push __wrap_mailbox_push_run(struct mailbox *m, const struct mailroom *room, uint32_t gen,
				     const struct msg *const *msgs, uint32_t *n)
{
	if (sim->step < sim->short_until)
		*n = 1;
	return *n > 1 ? __real_mailbox_push_run(m, room, gen, msgs, n)
		      : __wrap_mailbox_push(m, room, gen, UINT32_MAX, msgs[0]);
}

/* The hook has said yes, and whom it wrote to could not be entered: its turn fails. */
int __wrap_newborn_enter(struct worker *w)
{
	int rc = __real_newborn_enter(w);

	if (rc != NOH_OK)
		model_unrecorded(noh_address(&w->mine.turn));
	return rc;
}

bool __wrap_directory_insert(struct directory *d, struct directory_table *t, uint64_t hash, uint32_t cell,
			     ck_epoch_record_t *epoch)
{
	return !refuses() && __real_directory_insert(d, t, hash, cell, epoch);
}
