/* persist/journal_push.c - the journal as its writers see it: into a ring, and waiting until it is on disk. The letters are
 * those of journal.c.
 */
#include "persist/journal_inside.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/must.h"

bool journal_room(struct journal *j, uint32_t ring)
{
	must_debug(ring < j->gather.fixed.rings);
	if (load_relaxed(&j->shown.closed) || load_relaxed(&j->kept.no_space))
		return false;
	return gather_room(&j->gather.fixed.ring[ring], JOURNAL_INLINE);
}

bool journal_no_space(struct journal *j)
{
	return load_relaxed(&j->kept.no_space);
}

uint8_t *journal_reserve(struct journal *j, uint32_t ring, size_t size)
{
	return gather_reserve(&j->gather, &j->gather.fixed.ring[ring], size);
}

void journal_push(struct journal *j, uint32_t ring)
{
	gather_push(&j->gather.fixed.ring[ring]);
}

void journal_unreserve(struct journal *j, uint32_t ring)
{
	gather_unreserve(&j->gather, &j->gather.fixed.ring[ring]);
}

uint64_t journal_epoch(struct journal *j)
{
	return gather_epoch(&j->gather);
}

uint64_t journal_durable(struct journal *j)
{
	return load_acquire(&j->durable.epoch);                                /* M */
}

void journal_wake(struct journal *j)
{
	gather_wake(&j->gather);
}

void journal_pushed(struct journal *j, uint32_t ring)
{
	gather_enough(&j->gather, &j->gather.fixed.ring[ring]);
	gather_wake(&j->gather);
}

int journal_wait(struct journal *j, uint64_t epoch, uint64_t timeout_ns)
{
	struct clock clock;
	int rc = NOH_OK;

	clock_real(&clock);
	uint64_t now = clock_now_ns(&clock);
	uint64_t until = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;

	add_seq_cst(&j->waiting.count, 1);                                     /* N */
	for (;;) {
		uint32_t event = load_seq_cst(&j->waiting.event);

		if (load_seq_cst(&j->durable.epoch) >= epoch)
			break;
		if (load_acquire(&j->shown.failed)) {
			rc = error_set(NOH_EDISK, "%s", j->mine.why);
			break;
		}
		gather_wake(&j->gather);
		if (now >= until) {
			rc = error_set(NOH_ETIMEOUT, "the journal was not written in time");
			break;
		}
		futex_wait(&j->waiting.event, event, until == UINT64_MAX ? UINT64_MAX : until - now);
		now = until == UINT64_MAX ? now : clock_now_ns(&clock);
	}
	sub_relaxed(&j->waiting.count, 1);
	return rc;
}
