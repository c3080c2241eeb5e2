/* sched/clockwork.c - the wheels: one per worker, under a word held for one operation.
 *
 * The truth about a schedule is in its actor (ext.schedules); wheel entries are hints that may come
 * late, twice or for nothing. So an actor may move, be cancelled or go back to storage without any
 * wheel being asked. A dormant actor with schedules leaves one hint behind, by address.
 *
 * Another worker may advance the wheel of one that is stuck in a long turn; what fires is pushed to
 * the actors' system lanes from there.
 */
#include "sched/sched.h"

#include "core/spin.h"

#include <string.h>

struct dormant {
	size_t len;
	char   address[];
};

#define FIRE_MAX 128
#define WAKE_AGAIN_MS 100

struct fired {
	uint32_t count;
	struct { uint64_t a, b; } list[FIRE_MAX];
};

/* Whoever waits for an answer comes here twice, from any thread: the line that its worker looks at in every pass, and has its
 * counters beside, is written only when there is news. */
static void unlock(struct worker *w)
{
	uint64_t next = wheel_next_ms(&w->timers.wheel);

	if (next != load_relaxed(&w->shown.next_timer_ms))
		store_relaxed(&w->shown.next_timer_ms, next);
	store_relaxed(&w->timers.count, wheel_count(&w->timers.wheel));
	spin_unlock(&w->timers.lock);
}

uint64_t clock_due(struct sched *s, uint64_t delay_ms)
{
	return (clock_now_ns(&s->clock) + delay_ms * 1000000u + 999999u) / 1000000u;
}

uint64_t clock_next_ms(struct worker *w)
{
	return load_relaxed(&w->shown.next_timer_ms);
}

uint32_t clock_add(struct worker *w, uint64_t due_ms, uint64_t a, uint64_t b)
{
	uint32_t entry;
	bool     sooner;

	spin_lock(&w->timers.lock);
	sooner = due_ms < load_relaxed(&w->shown.next_timer_ms);
	entry = wheel_add(&w->timers.wheel, due_ms, a, b);
	unlock(w);
	if (entry && sooner && sched_self() != w)
		park_wake(&w->shared.park);   /* it may sleep past that */
	return entry;
}

/* A wheel that is busy keeps its entry: it will fire for nothing. */
void clock_cancel(struct sched *s, uint32_t worker, uint32_t entry, uint64_t a, uint64_t b)
{
	struct worker *w = &s->workers[worker];

	if (entry == 0)
		return;
	for (uint32_t tries = 0; !spin_try(&w->timers.lock); tries++) {
		if (tries == 1000)
			return;
		cpu_relax();
	}
	(void)wheel_cancel(&w->timers.wheel, entry, a, b);
	unlock(w);
}

static void note(void *ctx, uint64_t a, uint64_t b, uint64_t due_ms)
{
	struct fired *f = ctx;

	(void)due_ms;
	f->list[f->count].a = a;
	f->list[f->count++].b = b;
}

static void wake_dormant(struct port *p, struct dormant *d)
{
	struct cell *c;
	uint32_t gen;
	struct sysmsg *n = NULL;
	int rc = load_relaxed(&p->sched->stopping) ? NOH_ESTOPPED
						   : sched_resolve(p, d->address, d->len, &c, &gen);

	if (rc == NOH_OK)
		n = node_take(p, SYS_WAKE);
	if (n) {
		sched_sys(p, c, gen, n);
	} else if (rc == NOH_OK || rc == NOH_ENOMEM) {
		/* Over the budget, or no memory: nobody else remembers him, so a little later again. */
		struct worker *w = &p->sched->workers[d->len % p->sched->worker_count];

		if (clock_add(w, clock_due(p->sched, WAKE_AGAIN_MS), (uint64_t)(uintptr_t)d, WHEEL_DORMANT))
			return;
	}
	mem_free(d, sizeof *d + d->len + 1);
}

/* Without memory a little later again: for what waits until then nobody else comes. */
static void tell_cell(struct port *p, uint64_t a, uint64_t b)
{
	struct sysmsg *n = node_take(p, b & WHEEL_LIMIT ? SYS_LIMIT : b & WHEEL_RESTART ? SYS_RESTART : SYS_TIMER);

	if (!n) {
		(void)clock_add(&p->sched->workers[0], clock_due(p->sched, WAKE_AGAIN_MS), a, b);
		return;
	}
	n->token = b & WHEEL_LIMIT ? b & UINT32_MAX : b & ~WHEEL_RESTART;
	sched_sys(p, cell_at(p->sched, (uint32_t)a), (uint32_t)(a >> 32), n);
}

static void fire(struct port *p, uint64_t a, uint64_t b)
{
	if (b & WHEEL_DEADLINE)
		pending_expired(p, a);
	else if (b & WHEEL_DORMANT)
		wake_dormant(p, (struct dormant *)(uintptr_t)a);
	else if ((b & WHEEL_LIMIT) || !load_relaxed(&p->sched->stopping))
		tell_cell(p, a, b);              /* a limit: what waits is finished, also by a box that stops */
}

uint32_t clock_advance(struct worker *owner, struct worker *runner)
{
	uint64_t now = sched_now_ms(runner);
	struct fired f;
	uint32_t work;

	if (now < load_relaxed(&owner->shown.next_timer_ms) || !spin_try(&owner->timers.lock))
		return 0;
	f.count = 0;
	work = wheel_advance(&owner->timers.wheel, now, FIRE_MAX, note, &f);
	unlock(owner);
	for (uint32_t i = 0; i < f.count; i++)
		fire(&runner->mine.port, f.list[i].a, f.list[i].b);
	return work;
}

void clock_arm_schedules(struct worker *w, struct cell *c)
{
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;

	for (uint32_t i = 0; c->ext && i < c->ext->schedule_count; i++) {
		struct schedule *s = &c->ext->schedules[i];

		s->worker = w->fixed.index;
		s->entry = clock_add(w, s->due_ms, self, s->serial);
	}
}

bool clock_arm_dormant(struct worker *w, const char *address, size_t len, uint64_t due_ms)
{
	struct dormant *d = mem_alloc(sizeof *d + len + 1);

	if (!d)
		return false;
	d->len = len;
	memcpy(d->address, address, len + 1);
	if (clock_add(w, due_ms, (uint64_t)(uintptr_t)d, WHEEL_DORMANT))
		return true;
	mem_free(d, sizeof *d + len + 1);
	return false;
}

/* A hint came: is there such a schedule, and is it due? Then it is used up, or set to its next
 * time: the first multiple of its period that is still to come. */
bool clock_take_schedule(struct worker *w, struct cell *c, uint64_t serial, uint32_t *kind)
{
	struct ext *x = c->ext;
	uint64_t now = sched_now_ms(w);

	for (uint32_t i = 0; x && i < x->schedule_count; i++) {
		struct schedule *s = &x->schedules[i];

		if (s->serial != serial || s->due_ms > now)
			continue;
		*kind = s->kind;
		histogram_add(&w->shown.lateness, &histogram_latency, (now - s->due_ms) * 1000000u);
		c->flags |= CELL_DIRTY;
		if (s->period_ms == 0) {
			x->schedules[i] = x->schedules[--x->schedule_count];
			return true;
		}
		s->due_ms += (1 + (now - s->due_ms) / s->period_ms) * s->period_ms;
		s->worker = w->fixed.index;
		s->entry = clock_add(w, s->due_ms,
				     ref_make(cell_number(w->fixed.sched, c),
					      load_relaxed(&c->mailbox.gen)).bits, serial);
		return true;
	}
	return false;
}

uint64_t clock_pending(struct worker *w)
{
	return load_relaxed(&w->timers.count);
}

static void forget(void *ctx, uint64_t a, uint64_t b, uint64_t due_ms)
{
	(void)ctx;
	(void)due_ms;
	if ((b & WHEEL_DORMANT) && !(b & WHEEL_DEADLINE)) {
		struct dormant *d = (struct dormant *)(uintptr_t)a;

		mem_free(d, sizeof *d + d->len + 1);
	}
}

void clock_close(struct worker *w)
{
	if (!w->timers.wheel.slots)
		return;
	while (wheel_count(&w->timers.wheel))
		wheel_advance(&w->timers.wheel, wheel_next_ms(&w->timers.wheel), UINT32_MAX, forget, NULL);
	wheel_free(&w->timers.wheel);
}
