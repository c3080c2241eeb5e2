/* sched/limit.c - see limit.h.
 *
 * A, B    who changes the limits counts the version up and then looks for actors that rest; who rests parks and then looks at
 *         the version, both seq_cst: one of the two sees the other, so nobody rests by a limit that is gone.
 * C -> D  who sees that actors have a rate sees where their buckets are.
 */
#include "sched/limit.h"

#include "core/plant.h"
#include "core/spin.h"
#include "sched/serve.h"
#include "sched/step.h"

#define GRANT_MOST 64                  /* tokens an actor takes at once              */
#define SHARE_NS 1000000u              /* a share is what comes in that time         */
#define LEAST_SPAN_NS 2000000u         /* timers go by milliseconds: less is not met */
#define CHANGED 1                      /* SYS_LIMIT, kind: the limits are others     */

static struct rate type_rate(struct type *t)
{
	return (struct rate){ load_relaxed(&t->limit.set.step_ns), load_relaxed(&t->limit.set.span_ns) };
}

static struct rate actor_rate(struct type *t)
{
	return (struct rate){ load_acquire(&t->limit.set.actor_step_ns), load_relaxed(&t->limit.set.actor_span_ns) };  /* D */
}

static atomic_u64 *actor_bucket(struct sched *s, struct cell *c)
{
	return load_relaxed(&s->buckets) + cell_number(s, c);
}

/* ── the type's bucket, in shares ── */

/* A share is {version, tokens}: of other limits it is worth nothing. */
static uint32_t share_of(struct port *p, struct type *t)
{
	uint64_t share = p->types[t->index].share;

	return share >> 32 == load_relaxed(&t->limit.set.version) ? (uint32_t)share : 0;
}

static void set_share(struct port *p, struct type *t, uint32_t tokens)
{
	p->types[t->index].share = (uint64_t)load_relaxed(&t->limit.set.version) << 32 | tokens;
}

static uint32_t take_of_type(struct port *p, struct type *t, struct rate rate, uint64_t now_ns, uint32_t want)
{
	uint32_t have = share_of(p, t);

	if (have < want) {
		uint32_t at_once = load_relaxed(&t->limit.set.share), more = want - have;

		have += bucket_take(&t->limit.bucket.full_ns, now_ns, rate, more > at_once ? more : at_once);
	}
	want = have < want ? have : want;
	set_share(p, t, have - want);
	return want;
}

/* ── both ── */

static uint32_t take(struct port *p, struct cell *c, struct type *t, uint64_t now_ns, uint32_t want)
{
	struct rate mine = actor_rate(t), all = type_rate(t);
	atomic_u64 *bucket = mine.step_ns ? actor_bucket(p->sched, c) : NULL;
	uint32_t n = want, got;

	if (bucket)
		n = bucket_take(bucket, now_ns, mine, want);
	if (n == 0 || !all.step_ns)
		return n;
	got = take_of_type(p, t, all, now_ns, n);
	if (bucket && got < n)
		bucket_give(bucket, now_ns, mine, n - got);
	return got;
}

static void give(struct port *p, struct cell *c, struct type *t, uint64_t now_ns, uint32_t n)
{
	struct rate mine = actor_rate(t), all = type_rate(t);

	if (mine.step_ns)
		bucket_give(actor_bucket(p->sched, c), now_ns, mine, n);
	if (all.step_ns)
		bucket_give(&t->limit.bucket.full_ns, now_ns, all, n);
}

/* ── refuse ── */

static int refused(struct type *t, bool each, struct rate rate, uint64_t wait_ns)
{
	return error_set(NOH_ERATE, "%s %s %s %.6g messages a second, %llu at once: nothing was sent, try again in %llu ms",
			 each ? "actors of type" : "all actors of type", t->name, each ? "take, each," : "together take",
			 1e9 / (double)rate.step_ns, (unsigned long long)(rate.span_ns / rate.step_ns),
			 (unsigned long long)(wait_ns / 1000000u + 1));
}

int limit_admit(struct port *p, struct cell *c, struct type *t)
{
	struct rate mine = actor_rate(t), all = type_rate(t);
	uint64_t now_ns = clock_now_ns(&p->sched->clock);

	if (__builtin_expect(take(p, c, t, now_ns, 1) == 1, 1))
		return NOH_OK;
	count_one(&p->types[t->index].refused_rate, 1);
	if (mine.step_ns) {
		uint64_t wait_ns = bucket_wait_ns(actor_bucket(p->sched, c), now_ns, mine);

		if (wait_ns || !all.step_ns)
			return refused(t, true, mine, wait_ns);
	}
	if (!all.step_ns)
		return NOH_OK;                   /* there was a limit a moment ago */
	return refused(t, false, all, bucket_wait_ns(&t->limit.bucket.full_ns, now_ns, all));
}

void limit_unadmit(struct port *p, struct cell *c, struct type *t)
{
	if (!PLANT(PLANT_TOKEN_LOST))
		give(p, c, t, clock_now_ns(&p->sched->clock), 1);
}

/* ── wait ── */

/* Messages of others that wait for c. What was kept of its own (an answer, a timer) comes first, and needs no token. */
static uint32_t waiting(struct cell *c, bool in_hand)
{
	struct redo *r = (c->flags & CELL_EXTRA) && c->ext ? c->ext->redo : NULL;

	if (r && (r->flags & (NOH_MSG_ANSWER | NOH_MSG_TIMER)))
		return 0;
	return mailbox_depth(&c->mailbox) + in_hand + (r != NULL);
}

static void rest_ends(struct worker *w, struct cell *c, uint32_t tokens)
{
	struct limit_rest *r = &c->ext->limit;

	if (r->until_ns)
		count_one(&w->mine.port.types[load_relaxed(&c->type)].rests_ended, 1);
	r->until_ns = 0;
	r->tokens = tokens;
	r->serial++;
}

static uint32_t in_a_share(struct rate rate)
{
	return rate.step_ns && rate.step_ns < SHARE_NS ? SHARE_NS / (uint32_t)rate.step_ns : 1;
}

/* Tokens that are still to come, a few if they come fast; when. */
static uint64_t reserve(struct worker *w, struct cell *c, struct type *t, uint32_t want)
{
	struct rate mine = actor_rate(t), all = type_rate(t);
	uint64_t now_ns = clock_now_ns(&w->fixed.sched->clock), until = now_ns, then;
	uint32_t n = want < GRANT_MOST ? want : GRANT_MOST;

	if (mine.step_ns && n > in_a_share(mine))
		n = in_a_share(mine);
	if (all.step_ns && n > in_a_share(all))
		n = in_a_share(all);
	c->ext->limit.reserved = n;
	if (mine.step_ns)
		until = bucket_reserve(actor_bucket(w->fixed.sched, c), now_ns, mine, n);
	if (all.step_ns) {
		then = bucket_reserve(&t->limit.bucket.full_ns, now_ns, all, n);
		until = then > until ? then : until;
	}
	return until;
}

/* False: there is no memory for the timer, or the token is here by now: it goes on. */
static bool begin_rest(struct worker *w, struct cell *c, struct type *t, uint32_t want)
{
	struct limit_rest *r = &c->ext->limit;
	uint64_t self = ref_make(cell_number(w->fixed.sched, c), load_relaxed(&c->mailbox.gen)).bits;
	uint64_t until;

	r->version = load_relaxed(&t->limit.set.version);
	until = reserve(w, c, t, want);
	r->serial++;
	if (until <= clock_now_ns(&w->fixed.sched->clock) ||
	    !clock_add(w, (until + 999999u) / 1000000u, self, WHEEL_LIMIT | r->serial)) {
		r->tokens = r->reserved;
		return false;
	}
	r->until_ns = until;
	count_one(&w->mine.port.types[t->index].rests, 1);
	return true;
}

bool limit_holds(struct worker *w, struct cell *c, bool in_hand)
{
	struct type *t = cell_type(w->fixed.sched, c);
	struct ext *x = c->ext;
	uint32_t n;

	if (!(load_relaxed(&t->limits) & LIMIT_WAIT)) {
		if (x && (x->limit.until_ns || x->limit.tokens))
			rest_ends(w, c, 0);
		return false;
	}
	n = waiting(c, in_hand);
	if (x && x->limit.tokens) {
		if (n == 0) {
			give(&w->mine.port, c, t, w->mine.now_ns, x->limit.tokens);
			x->limit.tokens = 0;
		}
		return false;
	}
	if (n == 0 || cell_refuses(c)) {
		if (x && x->limit.until_ns)
			rest_ends(w, c, 0);
		return false;
	}
	x = cell_ext(c);
	if (!x)
		return false;
	if (x->limit.until_ns && x->limit.version == load_relaxed(&t->limit.set.version))
		return true;                     /* something else woke it */
	if (x->limit.until_ns)
		rest_ends(w, c, 0);
	x->limit.tokens = take(&w->mine.port, c, t, w->mine.now_ns, n < GRANT_MOST ? n : GRANT_MOST);
	return x->limit.tokens == 0 && begin_rest(w, c, t, n);
}

bool limit_park(struct worker *w, struct cell *c, struct effect **in_hand)
{
	struct type *t = cell_type(w->fixed.sched, c);
	uint32_t version = c->ext->limit.version;

	if (*in_hand)
		extra_put_down(w, c, in_hand);
	if (c->ext->joins)
		step_yield(w, c);
	store_relaxed(&c->mailbox.link, 0);              /* it rests on nobody */
	if (!mailbox_park(&c->mailbox))
		return false;
	if (load_seq_cst(&t->limit.set.version) == version)                        /* A */
		return true;
	return !mailbox_wake(&c->mailbox);
}

void limit_woken(struct worker *w, struct cell *c, const struct sysmsg *n)
{
	struct limit_rest *r = c->ext ? &c->ext->limit : NULL;

	if (!r || !r->until_ns)
		return;
	if (n->kind == CHANGED)
		rest_ends(w, c, 0);
	else if ((uint32_t)n->token == r->serial)
		rest_ends(w, c, r->reserved);
}

void limit_used(struct cell *c, uint32_t n)
{
	if (c->ext)
		c->ext->limit.tokens -= n < c->ext->limit.tokens ? n : c->ext->limit.tokens;
}

uint32_t limit_left(struct cell *c)
{
	return c->ext && c->ext->limit.tokens ? c->ext->limit.tokens : 1;
}

/* ── places ── */

static bool is_free(struct type *t)
{
	uint32_t most = load_relaxed(&t->limit.set.turns);

	return most == 0 || t->limit.places.taken < most;
}

bool limit_try_place(struct cell *c, struct type *t)
{
	bool ok = c->ext && c->ext->limit.has_place;

	if (ok) {
		c->ext->limit.has_place = false;
		return true;
	}
	spin_lock(&t->limit.places.lock);
	ok = !t->limit.places.first && is_free(t);
	t->limit.places.taken += ok;
	spin_unlock(&t->limit.places.lock);
	return ok;
}

bool limit_wait_place(struct worker *w, struct cell *c, struct type *t)
{
	uint32_t n = cell_number(w->fixed.sched, c), last;
	bool ok = cell_ext(c) == NULL;           /* without memory to wait it goes on */

	spin_lock(&t->limit.places.lock);
	last = t->limit.places.last;
	ok |= !t->limit.places.first && is_free(t);
	if (ok) {
		t->limit.places.taken++;
	} else {
		store_relaxed(&c->mailbox.link, 0);
		if (t->limit.places.first)
			store_relaxed(&cell_at(w->fixed.sched, last)->mailbox.link, n);
		else
			t->limit.places.first = n;
		t->limit.places.last = n;
		store_relaxed(&t->limit.places.waiting, load_relaxed(&t->limit.places.waiting) + 1);
	}
	spin_unlock(&t->limit.places.lock);
	return ok;
}

/* The first who waits has the place of the one who goes, or a new one. The lock is held. */
static struct cell *hand_on(struct sched *s, struct type *t)
{
	struct cell *c = t->limit.places.first && is_free(t) ? cell_at(s, t->limit.places.first) : NULL;

	if (!c)
		return NULL;
	t->limit.places.first = load_relaxed(&c->mailbox.link);
	t->limit.places.taken++;
	store_relaxed(&t->limit.places.waiting, load_relaxed(&t->limit.places.waiting) - 1);
	c->ext->limit.has_place = true;
	return c;
}

void limit_leave_place(struct port *p, struct type *t)
{
	struct cell *c;

	spin_lock(&t->limit.places.lock);
	t->limit.places.taken -= !PLANT(PLANT_PLACE_KEPT);
	c = hand_on(p->sched, t);
	spin_unlock(&t->limit.places.lock);
	if (c)
		sched_enqueue(p, c);
}

/* ── limits that change ── */

static int check_rate(const char *type, const char *what, double per_second, uint32_t burst)
{
	if (!(per_second >= 0) || per_second > NOH_RATE_MOST || (per_second > 0 && per_second < NOH_RATE_LEAST))
		return error_set(NOH_EINVAL, "type %.64s: %s %g: a rate is 0 (none), or from %g to %g messages a second", type,
				 what, per_second, NOH_RATE_LEAST, NOH_RATE_MOST);
	if (burst > NOH_BURST_MOST || (burst && !(per_second > 0)))
		return error_set(NOH_EINVAL, "type %.64s: %s: a burst of %u: at most %u, and only with a rate", type, what,
				 burst, NOH_BURST_MOST);
	return NOH_OK;
}

int limit_check(const char *type, const noh_limits *l)
{
	int rc = check_rate(type, "per_second", l->per_second, l->burst);

	if (rc == NOH_OK)
		rc = check_rate(type, "actor_per_second", l->actor_per_second, l->actor_burst);
	if (rc == NOH_OK && l->over != NOH_OVER_WAIT && l->over != NOH_OVER_REFUSE)
		rc = error_set(NOH_EINVAL, "type %.64s: limits.over %d is neither NOH_OVER_WAIT nor NOH_OVER_REFUSE", type,
			       l->over);
	return rc;
}

/* A burst of 0 is what comes in a second, and at least one. */
static struct rate to_rate(double per_second, uint32_t burst)
{
	struct rate r = { 0, 0 };
	double most = burst ? (double)burst : per_second < 1 ? 1 : per_second;

	if (!(per_second > 0))
		return r;
	r.step_ns = (uint64_t)(1e9 / per_second + 0.5);
	r.span_ns = (uint64_t)most * r.step_ns;
	if (r.span_ns < LEAST_SPAN_NS && r.step_ns < LEAST_SPAN_NS)
		r.span_ns = LEAST_SPAN_NS / r.step_ns * r.step_ns;
	return r;
}

static uint32_t share_size(const struct sched *s, struct rate rate)
{
	uint64_t n = in_a_share(rate), fair = rate.step_ns ? rate.span_ns / rate.step_ns / (4u * (s->worker_count + 1)) : 1;

	n = n < fair ? n : fair;
	return n ? (uint32_t)n : 1;
}

static bool need_buckets(struct sched *s)
{
	if (!load_relaxed(&s->buckets))
		store_relaxed(&s->buckets, (atomic_u64 *)mem_reserve(s->max_actors * sizeof(atomic_u64)));
	return load_relaxed(&s->buckets) != NULL;
}

/* What a message of this type looks at anyway. */
static void show(struct type *t, const noh_limits *l)
{
	/* Once there were places, somebody may hold one: they stay, as many as anybody wants. */
	unsigned is = (l->turns ? LIMIT_TURNS : 0) | (load_relaxed(&t->limits) & (LIMIT_TURNS | LIMIT_EVER));

	if (l->per_second > 0 || l->actor_per_second > 0)
		is |= l->over == NOH_OVER_REFUSE ? LIMIT_REFUSE : LIMIT_WAIT;
	is |= is ? LIMIT_EVER : 0;
	store_relaxed(&t->limits, (uint8_t)is);
	store_relaxed(&t->odd, t->odd_itself || is);
	store_relaxed(&t->guarded, t->noted || is);
	store_relaxed(&t->short_capacity, is & LIMIT_REFUSE ? 0 : t->short_itself);
}

/* Whoever rests by the old limits looks at the new ones, with a full bucket. */
static void wake_all(struct sched *s, struct type *t)
{
	uint32_t end = load_relaxed(&s->cells.shared.fresh);
	atomic_u64 *buckets = load_relaxed(&s->buckets);
	struct port *p = sched_port(s);
	struct cell *c;

	for (uint32_t n = 1; n < end; n++) {
		uint32_t gen;
		struct sysmsg *m;

		c = cell_at(s, n);
		gen = load_acquire(&c->mailbox.gen);
		if (load_relaxed(&c->type) != t->index)
			continue;
		if (buckets)
			store_relaxed(&buckets[n], 0);
		if (mb_state(load_seq_cst(&c->mailbox.word)) != MB_PARKED)         /* B */
			continue;
		m = node_take(p, SYS_LIMIT);
		if (!m)
			break;                   /* each of them has its timer */
		m->kind = CHANGED;
		sched_sys(p, c, gen, m);
	}
	do {
		spin_lock(&t->limit.places.lock);
		c = hand_on(s, t);
		spin_unlock(&t->limit.places.lock);
		if (c)
			sched_enqueue(p, c);
	} while (c);
	sched_port_done(p);
}

int limit_set(struct sched *s, struct type *t, const noh_limits *l)
{
	struct rate all = to_rate(l->per_second, l->burst), each = to_rate(l->actor_per_second, l->actor_burst);

	if (each.step_ns && !need_buckets(s))
		return error_set(NOH_ENOMEM, "no address space for the limits of %u actors", s->max_actors);
	store_relaxed(&t->limit.set.step_ns, all.step_ns);
	store_relaxed(&t->limit.set.span_ns, all.span_ns);
	store_relaxed(&t->limit.set.actor_span_ns, each.span_ns);
	store_release(&t->limit.set.actor_step_ns, each.step_ns);                          /* C */
	store_relaxed(&t->limit.set.share, share_size(s, all));
	store_relaxed(&t->limit.set.turns, l->turns);
	store_relaxed(&t->limit.bucket.full_ns, 0);
	store_seq_cst(&t->limit.set.version, load_relaxed(&t->limit.set.version) + 1);     /* B */
	show(t, l);
	if (s->workers)
		wake_all(s, t);
	return NOH_OK;
}
