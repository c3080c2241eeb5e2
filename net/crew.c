#include "net/crew.h"

#include "core/mem.h"
#include "net/net.h"

#define LOOK_MS 100
#define LEAST_RATE 20000                   /* below it nothing is gained                            */
#define BATCHES 8                          /* commands at once: then the work is the workers' own   */
#define PAUSE_MS 500                       /* after a trial, doubled by every one that changed nothing */
#define PAUSE_MOST_MS 30000

/* ── the decision ── */

static uint32_t width_of(const struct crew_trial *t)
{
	return t->width ? t->width : t->workers;
}

/* Which width to try; the present one: none. */
static uint32_t candidate(const struct crew_trial *t, const struct crew_seen *seen)
{
	uint32_t width = width_of(t);
	bool batches = seen->batch >= BATCHES;
	bool wider = width < t->workers && (batches || !seen->rested), narrower = width > 1 && !batches && seen->several;

	if (wider && !(narrower && t->tried_wider))
		return width * 2 < t->workers ? width * 2 : t->workers;
	return narrower ? (width + 1) / 2 : width;
}

/* Fewer only have to do as much, and so have more where clients say many at once; else more have to be worth it. */
static bool is_better(const struct crew_trial *t, const struct crew_seen *seen)
{
	bool wider = t->width > t->before;
	uint64_t percent = !wider || seen->batch >= BATCHES ? 98 : 110;

	return seen->rate * 100 >= t->rate * percent;
}

static void end_trial(struct crew_trial *t, const struct crew_seen *seen, uint64_t now_ms)
{
	bool kept = is_better(t, seen), wider = t->width > t->before;

	if (!kept)
		t->width = t->before;
	t->pause_ms = kept ? PAUSE_MS : t->pause_ms * 2 < PAUSE_MOST_MS ? t->pause_ms * 2 : PAUSE_MOST_MS;
	t->ended_ms = now_ms;
	t->next_ms = now_ms + t->pause_ms;
	t->tried_wider = wider;
	t->known_rate = kept ? seen->rate : t->rate;
	t->known_batches = seen->batch >= BATCHES;
	t->phase = CREW_RESTS;
}

/* It is another load: what was found out says nothing about it. */
static bool is_new(const struct crew_trial *t, const struct crew_seen *seen)
{
	return seen->rate > 2 * t->known_rate || seen->rate < t->known_rate / 2 ||
	       t->known_batches != (seen->batch >= BATCHES);
}

uint32_t crew_decide(struct crew_trial *t, const struct crew_seen *seen, uint64_t now_ms)
{
	uint32_t next;

	if (seen->rate < LEAST_RATE) {           /* a trial that nobody took part in */
		if (t->phase != CREW_RESTS)
			t->width = t->before;
		t->phase = CREW_RESTS;
		return t->width;
	}
	switch (t->phase) {
	case CREW_RESTS:
		if (is_new(t, seen)) {
			t->pause_ms = PAUSE_MS;
			t->next_ms = t->ended_ms + PAUSE_MS;
		}
		next = candidate(t, seen);
		if (now_ms < t->next_ms || next == width_of(t))
			break;
		t->before = width_of(t);
		t->width = next;
		t->rate = seen->rate;
		t->phase = CREW_SETTLES;
		break;
	case CREW_SETTLES:
		t->phase = CREW_TRIES;
		break;
	case CREW_TRIES:
		end_trial(t, seen, now_ms);
		break;
	}
	return t->width;
}

/* ── what it is made of ── */

bool crew_open(struct crew *k, uint32_t workers)
{
	k->was = mem_zalloc(workers * sizeof *k->was);
	k->trial.workers = workers;
	pthread_mutex_init(&k->lock, NULL);
	return k->was != NULL;
}

void crew_close(struct crew *k)
{
	mem_free(k->was, k->trial.workers * sizeof *k->was);
	pthread_mutex_destroy(&k->lock);
}

static struct crew_counts counts_of(struct net *n)
{
	return (struct crew_counts){ .commands = load_relaxed(&n->shown.counts.commands),
				       .received = load_relaxed(&n->shown.received),
				       .asleep_ns = load_relaxed(&n->shown.asleep_ns) };
}

static struct crew_seen what_happened(struct server *s, uint64_t ms)
{
	struct crew *k = &s->crew;
	uint32_t width = width_of(&k->trial), busy = 0;
	struct crew_counts sum = { 0 };

	for (uint32_t i = 0; i < s->workers; i++) {
		struct net *n = load_acquire(&s->nets[i]);
		struct crew_counts now = n ? counts_of(n) : k->was[i];

		if (now.commands < k->was[i].commands)           /* CONFIG RESETSTAT */
			k->was[i].commands = now.commands;
		busy += now.commands != k->was[i].commands;
		sum.commands += now.commands - k->was[i].commands;
		sum.received += now.received - k->was[i].received;
		if (i < width)
			sum.asleep_ns += now.asleep_ns - k->was[i].asleep_ns;
		k->was[i] = now;
	}
	return (struct crew_seen){
		.rate = ms ? sum.commands * 1000 / ms : 0,
		.batch = sum.received ? (uint32_t)(sum.commands / sum.received) : 0,
		.rested = sum.asleep_ns / 1000000 * 10 > ms * width,
		.several = busy > 1,
	};
}

static void look(struct server *s, uint64_t now_ms)
{
	struct crew *k = &s->crew;
	uint64_t ms = now_ms - k->at_ms;
	struct crew_seen seen = what_happened(s, ms);

	k->at_ms = now_ms;
	store_relaxed(&k->look_ms, now_ms + LOOK_MS);
	if (s->workers > 1 && ms < 2 * LOOK_MS)          /* else there was nobody to look */
		store_relaxed(&k->width, crew_decide(&k->trial, &seen, now_ms));
}

void crew_look(struct server *s, uint64_t now_ms)
{
	struct crew *k = &s->crew;

	if (pthread_mutex_trylock(&k->lock) != 0)
		return;
	if (now_ms >= load_relaxed(&k->look_ms))
		look(s, now_ms);
	pthread_mutex_unlock(&k->lock);
}
