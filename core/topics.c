/* core/topics.c - tables of topics: open addressing, grown by copying; audiences and seats likewise.
 *
 * Everything that readers follow is complete before it is shown (A -> B), and what they may still be looking
 * at is freed after their epoch sections. A seat is empty, free or taken by the value of its pointer alone, so
 * a reader that comes too early or too late misses one who is just coming or going, and nobody else.
 */
#include "core/topics.h"

#include "core/glob.h"
#include "core/mem.h"
#include "core/must.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_SLOTS 8
#define FIRST_SEATS 4
#define REMOVED ((void *)1)
#define UNSEEN 1u                  /* lowest bits of a seat: taken, not shown yet */
#define FREE 2u                    /* free; above: the free one before it, plus 1  */

struct topic_slots {
	ck_epoch_entry_t entry;
	uint32_t         mask;
	atomic_ptr       at[];
};

static void retire(ck_epoch_record_t *epoch, ck_epoch_entry_t *e, epoch_fn *fn)
{
	if (epoch)
		epoch_defer(epoch, e, fn);
	else
		fn(e);
}

/* ── freeing: entries are first in what they are of ── */

static void free_slots(ck_epoch_entry_t *e)
{
	struct topic_slots *s = (struct topic_slots *)e;

	mem_free(s, sizeof *s + (s->mask + (size_t)1) * sizeof s->at[0]);
}

static void free_audience(ck_epoch_entry_t *e)
{
	struct audience *a = (struct audience *)e;

	mem_free(a, sizeof *a + a->n * sizeof a->of[0]);
}

static void free_seats(ck_epoch_entry_t *e)
{
	struct seats *s = (struct seats *)e;

	mem_free(s, sizeof *s + s->room * sizeof s->seat[0]);
}

static void free_topic(ck_epoch_entry_t *e)
{
	struct topic *t = (struct topic *)e;
	struct audience *a = load_relaxed(&t->audience);
	struct seats *s = load_relaxed(&t->seats);

	if (a)
		free_audience(&a->entry);
	if (s)
		free_seats(&s->entry);
	mem_free(t, sizeof *t + t->len);
}

/* ── tables ── */

static void table_open(struct topic_table *table)
{
	pthread_mutex_init(&table->lock, NULL);
	store_relaxed(&table->slots, NULL);
	store_relaxed(&table->live, 0);
	table->used = 0;
}

void topics_open(struct topics *ts, uint64_t seed)
{
	ts->seed = seed;
	for (int i = 0; i < TOPIC_TABLES; i++)
		table_open(&ts->channels[i]);
	table_open(&ts->patterns);
}

static void table_close(struct topic_table *table)
{
	struct topic_slots *s = load_relaxed(&table->slots);

	for (uint32_t i = 0; s && i <= s->mask; i++) {
		void *t = load_relaxed(&s->at[i]);

		if (t && t != REMOVED)
			free_topic(t);
	}
	if (s)
		free_slots(&s->entry);
	pthread_mutex_destroy(&table->lock);
}

void topics_close(struct topics *ts)
{
	for (int i = 0; i < TOPIC_TABLES; i++)
		table_close(&ts->channels[i]);
	table_close(&ts->patterns);
}

static struct topic_table *table_of(struct topics *ts, bool pattern, uint64_t hash)
{
	return pattern ? &ts->patterns : &ts->channels[hash >> 58];
}
static_assert(TOPIC_TABLES == 64, "six bits of the hash");

static bool is_named(const struct topic *t, uint64_t hash, const char *name, size_t len)
{
	return t->hash == hash && t->len == len && memcmp(t->name, name, len) == 0;
}

static struct topic *find(struct topic_table *table, uint64_t hash, const char *name, size_t len)
{
	struct topic_slots *s = load_acquire(&table->slots);                       /* B */

	for (uint32_t i = (uint32_t)hash; s; i++) {
		struct topic *t = load_acquire(&s->at[i & s->mask]);               /* B */

		if (!t)
			break;
		if ((void *)t != REMOVED && is_named(t, hash, name, len))
			return t;
	}
	return NULL;
}

struct topic *topics_find(struct topics *ts, bool pattern, const char *name, size_t len)
{
	uint64_t hash = XXH3_64bits_withSeed(name, len, ts->seed);
	struct topic_table *table = table_of(ts, pattern, hash);

	return load_relaxed(&table->live) ? find(table, hash, name, len) : NULL;
}

static void put(struct topic_slots *s, struct topic *t)
{
	uint32_t i = (uint32_t)t->hash;

	while (load_relaxed(&s->at[i & s->mask]))
		i++;
	store_release(&s->at[i & s->mask], t);                                     /* A */
}

/* Room for one more: at most three of four places are ever used, so every walk ends. */
static bool make_room(struct topic_table *table, ck_epoch_record_t *epoch)
{
	struct topic_slots *old = load_relaxed(&table->slots), *s;
	uint32_t room = FIRST_SLOTS, live = load_relaxed(&table->live);

	if (old && (table->used + 1) * (uint64_t)4 <= (old->mask + (uint64_t)1) * 3)
		return true;
	while (room < (live + 1) * (uint64_t)2)
		room *= 2;
	s = mem_zalloc(sizeof *s + room * sizeof s->at[0]);
	if (!s)
		return false;
	s->mask = room - 1;
	for (uint32_t i = 0; old && i <= old->mask; i++) {
		void *t = load_relaxed(&old->at[i]);

		if (t && t != REMOVED)
			put(s, t);
	}
	table->used = live;
	store_release(&table->slots, s);                                           /* A */
	if (old)
		retire(epoch, &old->entry, free_slots);
	return true;
}

static struct topic *make(struct topic_table *table, ck_epoch_record_t *epoch, bool pattern, uint64_t hash,
			  const char *name, size_t len)
{
	struct topic *t = mem_zalloc(sizeof *t + len);

	if (!t || !make_room(table, epoch)) {
		mem_free(t, sizeof *t + len);
		return NULL;
	}
	t->hash = hash;
	t->len = (uint16_t)len;
	t->pattern = pattern;
	if (len)
		memcpy(t->name, name, len);
	t->plain = pattern ? (uint32_t)glob_plain(name, len) : 0;
	put(load_relaxed(&table->slots), t);
	table->used++;
	store_relaxed(&table->live, load_relaxed(&table->live) + 1);
	return t;
}

struct topic *topics_hold(struct topics *ts, ck_epoch_record_t *epoch, bool pattern, const char *name, size_t len)
{
	uint64_t hash = XXH3_64bits_withSeed(name, len, ts->seed);
	struct topic_table *table = table_of(ts, pattern, hash);
	struct topic *t;

	must(len <= CHANNEL_MAX);
	pthread_mutex_lock(&table->lock);
	t = find(table, hash, name, len);
	if (!t)
		t = make(table, epoch, pattern, hash, name, len);
	if (t)
		t->holders++;
	pthread_mutex_unlock(&table->lock);
	return t;
}

static void take_out(struct topic_table *table, ck_epoch_record_t *epoch, struct topic *t)
{
	struct topic_slots *s = load_relaxed(&table->slots);
	uint32_t i = (uint32_t)t->hash;

	while (load_relaxed(&s->at[i & s->mask]) != t)
		i++;
	store_relaxed(&s->at[i & s->mask], REMOVED);
	store_relaxed(&table->live, load_relaxed(&table->live) - 1);
	retire(epoch, &t->entry, free_topic);
}

void topics_let_go(struct topics *ts, ck_epoch_record_t *epoch, struct topic *t)
{
	struct topic_table *table = table_of(ts, t->pattern, t->hash);

	pthread_mutex_lock(&table->lock);
	must(t->holders > 0);
	if (--t->holders == 0)
		take_out(table, epoch, t);
	pthread_mutex_unlock(&table->lock);
}

/* ── looking ── */

bool topic_matches(const struct topic *t, const char *channel, size_t len)
{
	if (t->plain > len || (t->plain && memcmp(t->name, channel, t->plain) != 0))
		return false;
	return glob_match(t->name + t->plain, t->len - t->plain, channel + t->plain, len - t->plain);
}

uint64_t topic_listeners(struct topic *t)
{
	struct audience *a = load_acquire(&t->audience);
	uint64_t sum = load_relaxed(&t->actors);

	for (uint32_t i = 0; a && i < a->n; i++)
		sum += load_relaxed(&a->of[i].count);
	return sum;
}

void *topic_local(struct topic *t, uint32_t worker)
{
	struct audience *a = load_acquire(&t->audience);

	for (uint32_t i = 0; a && i < a->n; i++)
		if (a->of[i].worker == worker)
			return a->of[i].local;
	return NULL;
}

static bool table_each(struct topic_table *table, topic_fn *each, void *user)
{
	struct topic_slots *s = load_acquire(&table->slots);

	for (uint32_t i = 0; s && i <= s->mask; i++) {
		void *t = load_acquire(&s->at[i]);

		if (t && t != REMOVED && !each(user, t))
			return false;
	}
	return true;
}

void topics_each(struct topics *ts, bool pattern, topic_fn *each, void *user)
{
	bool more = true;

	if (pattern)
		(void)table_each(&ts->patterns, each, user);
	for (int i = 0; !pattern && more && i < TOPIC_TABLES; i++)
		more = table_each(&ts->channels[i], each, user);
}

uint64_t topics_count(struct topics *ts, bool pattern)
{
	uint64_t sum = pattern ? load_relaxed(&ts->patterns.live) : 0;

	for (int i = 0; !pattern && i < TOPIC_TABLES; i++)
		sum += load_relaxed(&ts->channels[i].live);
	return sum;
}

/* ── connections ── */

static struct hearing *hearing_of(struct audience *a, uint32_t worker)
{
	for (uint32_t i = 0; a && i < a->n; i++)
		if (a->of[i].worker == worker)
			return &a->of[i];
	return NULL;
}

/* A worker's entry stays, empty, until the topic goes: leaving needs no memory. */
static bool add_hearing(struct topic *t, ck_epoch_record_t *epoch, uint32_t worker, void *local, uint32_t count)
{
	struct audience *old = load_relaxed(&t->audience);
	uint32_t n = old ? old->n : 0;
	struct audience *a = mem_zalloc(sizeof *a + (n + 1) * sizeof a->of[0]);

	if (!a)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		a->of[i].worker = old->of[i].worker;
		store_relaxed(&a->of[i].count, load_relaxed(&old->of[i].count));
		a->of[i].local = old->of[i].local;
	}
	a->n = n + 1;
	a->of[n].worker = worker;
	a->of[n].local = local;
	store_relaxed(&a->of[n].count, count);
	store_release(&t->audience, a);                                            /* A */
	if (old)
		retire(epoch, &old->entry, free_audience);
	return true;
}

bool topic_hear(struct topics *ts, ck_epoch_record_t *epoch, struct topic *t, uint32_t worker, void *local,
		uint32_t count)
{
	struct topic_table *table = table_of(ts, t->pattern, t->hash);
	struct hearing *h;
	bool ok = true;

	pthread_mutex_lock(&table->lock);
	h = hearing_of(load_relaxed(&t->audience), worker);
	if (h) {
		h->local = local;
		store_release(&h->count, count);
	} else if (count) {
		ok = add_hearing(t, epoch, worker, local, count);
	}
	pthread_mutex_unlock(&table->lock);
	return ok;
}

/* ── actors ── */

static void *seat_value(uintptr_t above, uintptr_t bits)
{
	return (void *)(above << 2 | bits);
}

/* Those that are taken, closed up, and room for as many more. */
static bool new_seats(struct topic *t, ck_epoch_record_t *epoch)
{
	struct seats *old = load_relaxed(&t->seats), *s;
	uint32_t room = FIRST_SEATS, n = 0, used = old ? load_relaxed(&old->used) : 0;

	while (room < t->taken * 2)
		room *= 2;
	s = mem_zalloc(sizeof *s + room * sizeof s->seat[0]);
	if (!s)
		return false;
	s->room = room;
	for (uint32_t i = 0; i < used; i++) {
		uintptr_t value = (uintptr_t)load_relaxed(&old->seat[i]);

		if (value & FREE)
			continue;
		((struct topic_member *)(value & ~(uintptr_t)3))->seat = n;
		store_relaxed(&s->seat[n++], (void *)value);
	}
	store_relaxed(&s->used, n);
	t->free_seat = 0;
	store_release(&t->seats, s);                                               /* A */
	if (old)
		retire(epoch, &old->entry, free_seats);
	return true;
}

static bool take_seat(struct topic *t, ck_epoch_record_t *epoch, struct topic_member *m)
{
	struct seats *s = load_relaxed(&t->seats);
	uint32_t at;

	if (!t->free_seat && (!s || load_relaxed(&s->used) == s->room)) {
		if (!new_seats(t, epoch))
			return false;
		s = load_relaxed(&t->seats);
	}
	if (t->free_seat) {
		at = (uint32_t)(t->free_seat - 1);
		t->free_seat = (uintptr_t)load_relaxed(&s->seat[at]) >> 2;
	} else {
		at = load_relaxed(&s->used);
	}
	m->topic = t;
	m->seat = at;
	store_relaxed(&s->seat[at], (void *)((uintptr_t)m | UNSEEN));
	if (at == load_relaxed(&s->used))
		store_release(&s->used, at + 1);
	t->taken++;
	t->holders++;
	return true;
}

bool topic_sit(struct topics *ts, ck_epoch_record_t *epoch, struct topic *t, struct topic_member *m)
{
	struct topic_table *table = table_of(ts, t->pattern, t->hash);
	bool ok;

	pthread_mutex_lock(&table->lock);
	ok = take_seat(t, epoch, m);
	pthread_mutex_unlock(&table->lock);
	return ok;
}

void topic_appear(struct topics *ts, struct topic_member *m)
{
	struct topic *t = m->topic;
	struct topic_table *table = table_of(ts, t->pattern, t->hash);

	pthread_mutex_lock(&table->lock);
	store_release(&((struct seats *)load_relaxed(&t->seats))->seat[m->seat], m);   /* A */
	store_relaxed(&t->actors, load_relaxed(&t->actors) + 1);
	pthread_mutex_unlock(&table->lock);
}

void topic_leave(struct topics *ts, ck_epoch_record_t *epoch, struct topic_member *m)
{
	struct topic *t = m->topic;
	struct topic_table *table = table_of(ts, t->pattern, t->hash);
	struct seats *s;

	pthread_mutex_lock(&table->lock);
	s = load_relaxed(&t->seats);
	if (load_relaxed(&s->seat[m->seat]) == m)
		store_relaxed(&t->actors, load_relaxed(&t->actors) - 1);
	store_relaxed(&s->seat[m->seat], seat_value(t->free_seat, FREE));
	t->free_seat = m->seat + (uintptr_t)1;
	t->taken--;
	if (--t->holders == 0)
		take_out(table, epoch, t);
	else if (s->room > 64 && t->taken < s->room / 8)
		(void)new_seats(t, epoch);       /* who publishes should not walk over empty rows */
	pthread_mutex_unlock(&table->lock);
}
