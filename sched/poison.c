#include "sched/poison.h"

#include "sched/notice.h"
#include "sched/turn_record.h"

#include <string.h>
#include <xxhash.h>

/* A recorded message comes again under its name; another one, if its sender tries again, looks the same. */
static uint64_t print_of(const noh_msg *m)
{
	const struct envelope *env = msg_envelope(m);

	if (env && env->seq)
		return XXH3_64bits(&env->sender, 16) + env->index;
	return durable_print(m) | 1;
}

void poison_note_slowly(struct worker *w, struct cell *c, const noh_msg *msgs, uint32_t n)
{
	struct sched *s = w->fixed.sched;
	struct note *note = &s->notes[w->fixed.index];
	uint64_t hash = body_hash(c);

	if (note->hash != hash || note->address_len == 0) {
		note->hash = hash;
		note->address_len = (uint32_t)cell_address(s, c, note->address);
		note->version = cell_type(s, c)->pub.version;
	}
	note->kind = n ? msgs[0].kind : UINT32_MAX;
	note->print = n == 1 ? print_of(&msgs[0]) : 0;
	/* A signal may stop this thread anywhere; the compiler must not move it up. */
	store_release(&note->busy, 1);
	/* This turn may take its time; the records before it do not wait for that. */
	if (w->mine.pushed) {
		w->mine.pushed = false;
		s->journal.wake(s->journal.arg);
	}
}

void poison_survived(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	struct note *note = &s->notes[w->fixed.index];

	for (uint32_t i = 0; i < s->crashes->count; i++)
		if (s->crashes->list[i].hash == note->hash && s->crashes->list[i].print == note->print)
			store_relaxed(&s->crashes->list[i].times, 0);
}

bool poison_suspects(struct sched *s, struct cell *c)
{
	for (uint32_t i = 0; s->crashes && i < s->crashes->count; i++)
		if (s->crashes->list[i].hash == body_hash(c) && load_relaxed(&s->crashes->list[i].times))
			return true;
	return false;
}

bool poison_blames(struct sched *s, struct cell *c)
{
	bool blamed = false;

	for (uint32_t i = 0; s->crashes && i < s->crashes->count; i++) {
		struct crash *e = &s->crashes->list[i];

		if (e->hash == body_hash(c) && load_relaxed(&e->times) && !swap_acq_rel(&e->blamed, 1))
			blamed = true;
	}
	return blamed;
}

static const char reason[] = "it was being handled each time the process ended";

/* One record, no effect. */
static void put_dead(struct sink *k, struct worker *w, struct cell *c, void *m)
{
	turn_record_dead(k, w, c, m, reason);
}

bool poison_hit(struct worker *w, struct cell *c, const noh_msg *m)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	uint64_t print = print_of(m), hash = body_hash(c);
	char address[ADDRESS_MAX + 1];

	for (uint32_t i = 0; i < s->crashes->count; i++) {
		struct crash *e = &s->crashes->list[i];

		if (e->hash != hash || e->print != print || load_relaxed(&e->times) < CRASHES_ENOUGH)
			continue;
		cell_address(s, c, address);
		sched_logf(s, NOH_ERROR, address, "a message of kind %u was set aside: %s (%u times)", m->kind,
			   reason, load_relaxed(&e->times));
		w->mine.turn.due = load_relaxed(body_due(c->body));
		if (t->durable)
			(void)durable_note(w, c, false, put_dead, (void *)(uintptr_t)m);
		notice(&w->mine.port, c, NOTICE_DEAD_LETTER, NULL, NULL, reason, 0);
		count_one(&w->mine.port.types[t->index].failed, 1);
		count_one(&w->mine.port.types[t->index].quarantined, 1);
		count_one(&w->mine.port.dead_letters, 1);
		if (m->reply_to)
			gate_answer(w, w->mine.turn.due, m->reply_to, NOH_EPOISON, NULL, 0);
		return true;
	}
	return false;
}
