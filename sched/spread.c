#include "sched/spread.h"

#include "sched/sched.h"

#include <string.h>

#define WINDOW_NS 200000u              /* speeds are measured over at least this long             */
#define TRIAL_NS 400000u               /* a trial lasts this long, ...                            */
#define TRIAL_WINDOWS 5                /* ... or so many times, as long as it does no harm        */
#define RECHECK_NS 5000000u            /* a helper asks itself again after this long, then twice  */
#define NAPS 4                         /* so many more if the partner lost its core meanwhile     */
#define RECHECK_MAX_NS 1600000000u
#define BACKOFF_FIRST_NS 2000000u      /* next offer after a trial that did not help, then twice  */
#define BACKOFF_MAX_NS 500000000u
#define STEAL_MAX 256

/* Together they must do a quarter more than one alone. */
static bool helps(uint64_t together, uint64_t alone)
{
	return together * 4 >= alone * 5;
}

/* More than a tenth less: nothing else it could take would make up for that. */
static bool harms(uint64_t together, uint64_t alone)
{
	return together * 10 < alone * 9;
}

static uint64_t messages_of(struct worker *w)
{
	return load_relaxed(&w->shown.counts.turns);
}

static void set_phase(struct worker *w, enum spread_phase phase)
{
	w->mine.spread.phase = phase;
	store_relaxed(&w->shared.spread.helps, phase == SPREAD_TRIAL || phase == SPREAD_JOINED);
}

void spread_restart(struct worker *w)
{
	struct spread *x = &w->mine.spread;

	x->window_ns = 0;
	x->speed = 0;
	store_relaxed(&w->shared.spread.speed, 0);
	memset(x->speeds, 0, sizeof x->speeds);
}

void spread_measure(struct worker *w)
{
	struct spread *x = &w->mine.spread;
	uint64_t now = w->mine.now_ns, done = messages_of(w);

	if (x->window_ns && now - x->window_ns < WINDOW_NS)
		return;
	if (x->window_ns) {
		/* In a slow one somebody else may have had the core. */
		x->speeds[x->windows++ % SPREAD_WINDOWS] =
			(done - x->window_messages) * 1000000u / (now - x->window_ns) + 1;
		x->speed = 0;
		for (uint32_t i = 0; i < SPREAD_WINDOWS; i++)
			x->speed = x->speeds[i] > x->speed ? x->speeds[i] : x->speed;
		store_relaxed(&w->shared.spread.speed, x->speed);
	}
	x->window_ns = now;
	x->window_messages = done;
}

static struct worker *sleeper(struct worker *w)
{
	struct sched *s = w->fixed.sched;

	for (uint32_t i = 1; i < s->worker_count; i++) {
		struct worker *o = &s->workers[(w->fixed.index + i) % s->worker_count];

		if (load_relaxed(&o->shared.park.asleep) && !load_relaxed(&o->shared.spread.offer))
			return o;
	}
	return NULL;
}

/* What came of my last offers. */
static void learn(struct worker *w)
{
	struct spread *x = &w->mine.spread;
	uint64_t v = load_acquire(&w->shared.spread.verdicts);

	if (v == x->seen_verdicts)
		return;
	x->seen_verdicts = v;
	if (v & 1)
		x->backoff_ns = BACKOFF_FIRST_NS / 2;
	else
		x->backoff_ns = x->backoff_ns * 2 < BACKOFF_MAX_NS ? x->backoff_ns * 2 : BACKOFF_MAX_NS;
	x->next_offer_ns = w->mine.now_ns + x->backoff_ns;
}

void spread_offer(struct worker *w)
{
	struct spread *x = &w->mine.spread;
	struct worker *o;
	uint64_t none = 0;

	learn(w);
	if (x->speed == 0 || w->mine.now_ns < x->next_offer_ns ||
	    load_relaxed(&w->fixed.sched->sleepers) == 0 ||
	    runq_length(&w->runq) + hands_length(&w->hands) < 2)
		return;
	if (x->backoff_ns == 0)
		x->backoff_ns = BACKOFF_FIRST_NS;
	o = sleeper(w);
	if (!o || !cas_acq_rel(&o->shared.spread.offer, &none, x->speed << 16 | (w->fixed.index + 1)))
		return;
	x->next_offer_ns = w->mine.now_ns + x->backoff_ns;
	if (!park_wake(&o->shared.park))
		store_release(&o->shared.spread.offer, 0);   /* it woke by itself: its own business */
}

/* From the run queue if there is something, else what it has in hand. */
static uint32_t take_half(struct worker *w, struct worker *from)
{
	uint32_t got[STEAL_MAX], n = runq_steal(&from->runq, got, STEAL_MAX);

	for (uint32_t i = 0; i < n; i++)
		sched_enqueue(&w->mine.port, cell_at(w->fixed.sched, got[i]));
	if (n == 0 && hands_length(&w->hands) == 0) {
		struct effect in_hand[HANDS / 4];

		hands_rest(&w->hands);
		n = hands_steal(&from->hands, in_hand, HANDS / 4);
		for (uint32_t i = 0; i < n; i++)
			hands_put(&w->hands, &in_hand[i]);
	}
	if (n) {
		count_one(&w->shown.counts.steals, 1);
		count_one(&w->shown.counts.stolen_actors, n);
	}
	return n;
}

uint32_t spread_steal(struct worker *w, struct worker *from)
{
	return take_half(w, from);
}

static void watch_pair(struct worker *w, struct worker *o)
{
	w->mine.spread.since_ns = w->mine.now_ns;
	w->mine.spread.my_messages = messages_of(w);
	w->mine.spread.partner_messages = messages_of(o);
}

static bool accept_offer(struct worker *w)
{
	struct spread *x = &w->mine.spread;
	uint64_t offer = load_acquire(&w->shared.spread.offer);
	struct worker *o;

	if (!offer)
		return false;
	store_release(&w->shared.spread.offer, 0);
	x->partner = (uint32_t)(offer & 0xffff) - 1;
	x->speed_before = offer >> 16;
	o = &w->fixed.sched->workers[x->partner];
	watch_pair(w, o);
	x->trial_windows = 1;
	set_phase(w, SPREAD_TRIAL);
	return take_half(w, o) > 0;
}

static uint64_t pair_speed(struct worker *w, struct worker *o)
{
	struct spread *x = &w->mine.spread;
	uint64_t done = messages_of(w) - x->my_messages + messages_of(o) - x->partner_messages;

	return done * 1000000u / (w->mine.now_ns - x->since_ns + 1);
}

/* All my runnable actors go back to the partner, in their order. */
static void give_back(struct worker *w, struct worker *o)
{
	struct effect *e;
	uint32_t n;
	bool     first = false;

	while ((e = hands_take(&w->hands)) != NULL)      /* nobody else can have these in their order */
		sched_serve_hand(w, e);
	while ((n = runq_take(&w->runq)) != 0)
		first |= inbox_push(&o->shared.inbox, n,
				    &cell_at(w->fixed.sched, n)->mailbox);
	if (first)
		park_wake(&o->shared.park);
}

static void tell_verdict(struct worker *o, bool helped)
{
	uint64_t v = load_relaxed(&o->shared.spread.verdicts);

	while (!cas_acq_rel(&o->shared.spread.verdicts, &v, ((v | 1) + 1) | (helped ? 1 : 0)))
		;
}

bool spread_verdict(struct worker *w)
{
	struct spread *x = &w->mine.spread;
	struct worker *o = &w->fixed.sched->workers[x->partner];

	if (load_relaxed(&o->shared.stuck))
		return false;
	if (x->phase == SPREAD_TRIAL) {
		if (w->mine.now_ns - x->since_ns < TRIAL_NS)
			return false;
		uint64_t together = pair_speed(w, o);
		bool     helped = helps(together, x->speed_before);

		/* It may have taken what brings nothing new: it tries with something else. */
		if (!helped && !harms(together, x->speed_before) && x->trial_windows++ < TRIAL_WINDOWS) {
			watch_pair(w, o);
			(void)take_half(w, o);
			return false;
		}
		if (!helped)
			tell_verdict(o, false);          /* that it helps is for the recheck to tell */
		set_phase(w, helped ? SPREAD_JOINED : SPREAD_ALONE);
		x->recheck_every_ns = RECHECK_NS;
		x->recheck_ns = w->mine.now_ns + RECHECK_NS;
		watch_pair(w, o);
		if (!helped)
			give_back(w, o);
		return !helped;
	}
	if (x->phase == SPREAD_JOINED && w->mine.now_ns >= x->recheck_ns) {
		x->speed_before = pair_speed(w, o);      /* together, since the last look */
		x->naps = 0;
		set_phase(w, SPREAD_RECHECK);
		give_back(w, o);
		watch_pair(w, o);
		return true;
	}
	return false;
}

uint64_t spread_nap_ns(struct worker *w)
{
	return w->mine.spread.phase == SPREAD_RECHECK ? TRIAL_NS : UINT64_MAX;
}

enum alone { NOT_KNOWN, SLOWER, AS_FAST };

/* How did the partner do alone? Where more threads run than there are cores it may not have run for a part of the nap. Beside a
 * helper it is no faster than alone, so if it was slower now, somebody else had its core: another nap will tell. Who has no
 * speed has slept: there is too little to do for two. */
static enum alone compare(struct worker *w, struct worker *o)
{
	struct spread *x = &w->mine.spread;
	uint64_t alone = pair_speed(w, o), best = load_relaxed(&o->shared.spread.speed);

	if (best == 0)
		return AS_FAST;
	if (w->mine.now_ns - x->since_ns < TRIAL_NS / 2)         /* it was woken for something else */
		return NOT_KNOWN;
	if (harms(alone, best) && x->naps++ < NAPS) {
		watch_pair(w, o);
		return NOT_KNOWN;
	}
	return helps(x->speed_before, alone > best ? alone : best) ? SLOWER : AS_FAST;
}

/* After the nap of a recheck. True: go on helping. */
static bool rejoin(struct worker *w)
{
	struct spread *x = &w->mine.spread;
	struct worker *o = &w->fixed.sched->workers[x->partner];
	enum alone was = x->phase == SPREAD_RECHECK ? compare(w, o) : NOT_KNOWN;
	bool helped = was == SLOWER;

	if (was == NOT_KNOWN)
		return false;
	set_phase(w, helped ? SPREAD_JOINED : SPREAD_ALONE);
	tell_verdict(o, helped);
	if (!helped)
		return false;
	if (x->recheck_every_ns < RECHECK_MAX_NS)
		x->recheck_every_ns *= 2;
	x->recheck_ns = w->mine.now_ns + x->recheck_every_ns;
	watch_pair(w, o);
	return take_half(w, o) > 0;
}

void spread_lead(struct worker *w)
{
	struct sched *s = w->fixed.sched;
	uint32_t lead = load_relaxed(&s->lead);

	if (lead != w->fixed.index + 1 && (!lead || !worker_is_up(&s->workers[lead - 1])))
		store_relaxed(&s->lead, w->fixed.index + 1);
}

/* Who comes to help does not lead: if it does not help it will sleep again. */
void spread_woke(struct worker *w)
{
	if (!rejoin(w) && !accept_offer(w))
		spread_lead(w);
}

/* On its own initiative a worker takes from others only while it is known to help. */
bool spread_may_steal(struct worker *w)
{
	return w->mine.spread.phase == SPREAD_TRIAL || w->mine.spread.phase == SPREAD_JOINED;
}

void spread_slept(struct worker *w)
{
	if (w->mine.spread.phase != SPREAD_RECHECK)
		set_phase(w, SPREAD_ALONE);
}
