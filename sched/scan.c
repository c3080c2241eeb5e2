#include "sched/scan.h"

#include "sched/durable.h"

/* Its life first, its due after: due was raised before the life that tells of it was stored (durable_push). */
static bool look(struct sched *s, struct cell *c, const struct type *t, uint16_t *flags, uint64_t *due)
{
	uint8_t life = load_acquire(&c->life);

	if (!(life & LIFE_KNOWN))
		return false;
	*due = sched_is_durable(s) ? load_acquire(body_due(c->body)) : 0;
	*flags = (uint16_t)((life & LIFE_THERE ? NAME_THERE : 0) | (life & LIFE_REBORN ? NAME_REBORN : 0) |
			    ((life & LIFE_OF) == NOH_ACTIVE ? NAME_ACTIVE : 0) | (t->durable ? NAME_DURABLE : 0));
	return true;
}

static bool put(struct sched *s, struct cell *c, const struct type *only, struct names *out)
{
	const struct type *t = cell_type(s, c);
	struct name is = { .from = 0 };
	char address[ADDRESS_MAX + 1];

	if (mb_state(load_acquire(&c->mailbox.word)) == MB_DEAD || (only && t != only) ||
	    !look(s, c, t, &is.flags, &is.due))
		return true;
	is.hash = body_hash(c);
	if (!names_room(out, 1))
		return false;
	names_put(out, address, cell_address(s, c, address), is);
	return true;
}

bool scan_window(struct port *p, const struct type *only, uint64_t from, uint64_t last, struct names *out)
{
	struct sched *s = p->sched;
	uint64_t first_tag = directory_tag(from), last_tag = directory_tag(last);
	bool ok = true;

	epoch_enter(&p->epoch);
	uint64_t word = load_acquire(&s->directory.tables[ring_hash_partition(from)].array);
	atomic_u64 *entries = directory_entries(word);

	for (uint64_t i = 0; ok && entries && i <= directory_mask(word); i++) {
		uint64_t e = load_acquire(&entries[i]);

		if (e > DIRECTORY_REMOVED && (e & DIRECTORY_TAG) >= first_tag && (e & DIRECTORY_TAG) <= last_tag)
			ok = put(s, cell_at(s, (uint32_t)e), only, out);
	}
	epoch_leave(&p->epoch);
	return ok;
}

uint64_t scan_near(struct sched *s, uint64_t hash, uint64_t *lines)
{
	uint64_t word = load_acquire(&s->directory.tables[ring_hash_partition(hash)].array);
	uint64_t slots = directory_entries(word) ? directory_mask(word) + 1 : 0;

	*lines = slots / DIRECTORY_LINE;
	return (slots + 1) / 2;
}

bool scan_look(struct port *p, const struct address *a, struct type *t, uint64_t hash, uint16_t *flags,
	       uint64_t *due)
{
	struct cell *c;
	uint32_t gen;
	bool known;

	epoch_enter(&p->epoch);
	c = sched_find(p, a, t, hash, &gen);
	known = c && look(p->sched, c, t, flags, due);
	epoch_leave(&p->epoch);
	return known;
}
