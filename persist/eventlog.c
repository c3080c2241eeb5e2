/* persist/eventlog.c - ordering.  The appender writes events behind the end of the newest chunk, which nobody reads;
 * eventlog_show publishes them: newest is stored with release (A) and loaded with acquire (B) before anything up to
 * it is read. Chunks come and go under the lock. Waiting is store-then-look on both sides, seq_cst, as in journal.c.
 */
#include "persist/eventlog.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/futex.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)64 << 10)

struct eventlog_chunk {
	struct eventlog_chunk *next;
	uint64_t first;
	uint64_t first_ms, last_ms;      /* when its events were told; last_ms: the appender's          */
	uint32_t readers;                /* this and the next: guarded by the lock                      */
	bool     dropped;
	size_t   used, room;             /* used: the appender's                                        */
	_Alignas(8) uint8_t bytes[];     /* length 8, event padded to 8                                 */
};

struct eventlog_staged { uint64_t order; size_t at; uint32_t len, nth; };

static size_t chunk_bytes(const struct eventlog_chunk *c)
{
	return sizeof *c + c->room;
}

static void chunk_free(struct eventlog *l, struct eventlog_chunk *c)
{
	sub_relaxed(&l->shown.bytes, chunk_bytes(c));
	mem_free(c, chunk_bytes(c));
}

void eventlog_open(struct eventlog *l, uint64_t newest)
{
	pthread_mutex_init(&l->lock, NULL);
	eventlog_begin(l, newest);
}

void eventlog_begin(struct eventlog *l, uint64_t newest)
{
	store_relaxed(&l->shown.appended, newest);
	store_relaxed(&l->shown.newest, newest);
}

void eventlog_close(struct eventlog *l)
{
	while (l->oldest_chunk) {
		struct eventlog_chunk *c = l->oldest_chunk;

		l->oldest_chunk = c->next;
		chunk_free(l, c);
	}
	l->newest_chunk = NULL;
	mem_free(l->stage.list, l->stage.room * sizeof *l->stage.list);
	mem_free(l->stage.bytes, l->stage.size);
	pthread_mutex_destroy(&l->lock);
}

/* ── appending ── */

/* Holding the lock. */
static void drop_oldest(struct eventlog *l)
{
	struct eventlog_chunk *c = l->oldest_chunk;

	l->oldest_chunk = c->next;
	if (!l->oldest_chunk)
		l->newest_chunk = NULL;
	c->dropped = true;
	if (c->readers == 0)
		chunk_free(l, c);
}

static void drop_all(struct eventlog *l)
{
	pthread_mutex_lock(&l->lock);
	while (l->oldest_chunk)
		drop_oldest(l);
	pthread_mutex_unlock(&l->lock);
}

static struct eventlog_chunk *new_chunk(struct eventlog *l, size_t need, uint64_t at_ms)
{
	size_t room = need > CHUNK ? need : CHUNK;
	struct eventlog_chunk *c = mem_alloc(sizeof *c + room);

	if (!c)
		return NULL;
	*c = (struct eventlog_chunk){ .first = load_relaxed(&l->shown.appended) + 1, .first_ms = at_ms, .room = room };
	add_relaxed(&l->shown.bytes, chunk_bytes(c));
	pthread_mutex_lock(&l->lock);
	if (l->newest_chunk)
		l->newest_chunk->next = c;
	else
		l->oldest_chunk = c;
	l->newest_chunk = c;
	pthread_mutex_unlock(&l->lock);
	return c;
}

bool eventlog_append(struct eventlog *l, const void *event, size_t len)
{
	size_t need = 8 + record_pad(len);
	struct eventlog_chunk *c = l->newest_chunk;
	struct part_event head;
	uint64_t size = len;

	memcpy(&head, event, sizeof head);
	if (!c || c->room - c->used < need)
		c = new_chunk(l, need, head.at_ms);
	if (c) {
		memcpy(c->bytes + c->used, &size, sizeof size);
		memcpy(c->bytes + c->used + 8, event, len);
		c->used += need;
		c->last_ms = head.at_ms;
	} else {
		drop_all(l);
	}
	store_relaxed(&l->shown.appended, load_relaxed(&l->shown.appended) + 1);
	return c != NULL;
}

uint64_t eventlog_appended(struct eventlog *l)
{
	return load_relaxed(&l->shown.appended);
}

/* ── groups ── */

static bool stage_room(struct eventlog *l, size_t more)
{
	if (l->stage.count == l->stage.room) {
		uint32_t room = l->stage.room ? 2 * l->stage.room : 64;
		struct eventlog_staged *list = mem_alloc(room * sizeof *list);

		if (!list)
			return false;
		if (l->stage.count)
			memcpy(list, l->stage.list, l->stage.count * sizeof *list);
		mem_free(l->stage.list, l->stage.room * sizeof *list);
		l->stage.list = list;
		l->stage.room = room;
	}
	if (l->stage.size - l->stage.used < more) {
		size_t size = 2 * (l->stage.used + more) > CHUNK ? 2 * (l->stage.used + more) : CHUNK;
		uint8_t *bytes = mem_alloc(size);

		if (!bytes)
			return false;
		if (l->stage.used)
			memcpy(bytes, l->stage.bytes, l->stage.used);
		mem_free(l->stage.bytes, l->stage.size);
		l->stage.bytes = bytes;
		l->stage.size = size;
	}
	return true;
}

void eventlog_stage(struct eventlog *l, const struct record_head *head, const uint8_t *parts, const uint8_t *end)
{
	struct part p;

	while (part_next(&parts, end, &p)) {
		if (p.kind != PART_EVENT)
			continue;
		if (!stage_room(l, p.len)) {
			l->stage.lost++;
			continue;
		}
		memcpy(l->stage.bytes + l->stage.used, p.data, p.len);
		l->stage.list[l->stage.count] = (struct eventlog_staged){ head->order, l->stage.used, p.len, l->stage.count };
		l->stage.used += p.len;
		l->stage.count++;
	}
}

static int by_order(const void *a, const void *b)
{
	const struct eventlog_staged *x = a, *y = b;

	if (x->order != y->order)
		return x->order > y->order ? 1 : -1;
	return (x->nth > y->nth) - (x->nth < y->nth);
}

void eventlog_settle(struct eventlog *l)
{
	struct eventlog_staged *list = l->stage.list;

	if (l->stage.lost) {             /* which of them, nobody knows: so none of this group is here */
		store_relaxed(&l->shown.appended, load_relaxed(&l->shown.appended) + l->stage.count + l->stage.lost);
		drop_all(l);
		l->stage.count = 0;
	}
	if (l->stage.count > 1)
		qsort(list, l->stage.count, sizeof *list, by_order);
	for (uint32_t i = 0; i < l->stage.count; i++)
		(void)eventlog_append(l, l->stage.bytes + list[i].at, list[i].len);
	if (l->stage.size > 64 * CHUNK) {        /* a crash's tail, or a burst */
		mem_free(l->stage.bytes, l->stage.size);
		l->stage.bytes = NULL;
		l->stage.size = 0;
	}
	l->stage.count = 0;
	l->stage.used = l->stage.lost = 0;
}

void eventlog_show(struct eventlog *l, uint64_t newest)
{
	if (newest == load_relaxed(&l->shown.newest))
		return;
	store_seq_cst(&l->shown.newest, newest);                                 /* A */
	add_seq_cst(&l->shown.event, 1);
	if (load_seq_cst(&l->waiters))
		futex_wake_all(&l->shown.event);
	if (l->fixed.on_more && load_seq_cst(&l->listeners))
		l->fixed.on_more(l->fixed.arg);
}

/* ── reading ── */

uint64_t eventlog_newest(struct eventlog *l)
{
	return load_acquire(&l->shown.newest);                                   /* B */
}

uint64_t eventlog_bytes(struct eventlog *l)
{
	return load_relaxed(&l->shown.bytes);
}

uint64_t eventlog_oldest(struct eventlog *l)
{
	uint64_t newest = eventlog_newest(l), gone = load_relaxed(&l->shown.gone), first;

	pthread_mutex_lock(&l->lock);
	first = l->oldest_chunk ? l->oldest_chunk->first : UINT64_MAX;
	pthread_mutex_unlock(&l->lock);
	if (first <= gone)
		first = gone + 1;
	return first <= newest ? first : newest + 1;
}

uint64_t eventlog_oldest_ms(struct eventlog *l)
{
	uint64_t newest = eventlog_newest(l), ms;

	pthread_mutex_lock(&l->lock);
	ms = l->oldest_chunk && l->oldest_chunk->first <= newest ? l->oldest_chunk->first_ms : 0;
	pthread_mutex_unlock(&l->lock);
	return ms;
}

/* The chunk with this number, held; *last: the last one that may be read in it. */
static struct eventlog_chunk *hold(struct eventlog *l, uint64_t seq, uint64_t *last)
{
	uint64_t newest = eventlog_newest(l);
	struct eventlog_chunk *c;

	pthread_mutex_lock(&l->lock);
	c = l->oldest_chunk;
	if (c && (seq < c->first || seq <= load_relaxed(&l->shown.gone)))
		c = NULL;
	while (c && c->next && c->next->first <= seq)
		c = c->next;
	if (c) {
		c->readers++;
		*last = c->next && c->next->first - 1 < newest ? c->next->first - 1 : newest;
	}
	pthread_mutex_unlock(&l->lock);
	return c;
}

static void let_go(struct eventlog *l, struct eventlog_chunk *c)
{
	pthread_mutex_lock(&l->lock);
	if (--c->readers == 0 && c->dropped)
		chunk_free(l, c);
	pthread_mutex_unlock(&l->lock);
}

static int read_chunk(const struct eventlog_chunk *c, uint64_t first, uint64_t last, eventlog_fn *each, void *arg)
{
	const uint8_t *at = c->bytes;
	int rc = 0;

	for (uint64_t seq = c->first; rc == 0 && seq <= last; seq++) {
		uint64_t len;

		memcpy(&len, at, sizeof len);
		if (seq >= first)
			rc = each(arg, seq, at + 8, (size_t)len);
		at += 8 + record_pad((size_t)len);
	}
	return rc;
}

int eventlog_read(struct eventlog *l, uint64_t first, eventlog_fn *each, void *arg)
{
	int rc = 0;

	while (rc == 0 && first <= eventlog_newest(l)) {
		uint64_t last;
		struct eventlog_chunk *c = hold(l, first, &last);

		if (!c)
			return NOH_ETOOOLD;
		rc = read_chunk(c, first, last, each, arg);
		let_go(l, c);
		first = last + 1;
	}
	return rc;
}

int eventlog_wait(struct eventlog *l, uint64_t cursor, uint64_t timeout_ns)
{
	struct clock clock;
	int rc = NOH_OK;

	clock_real(&clock);
	uint64_t now = clock_now_ns(&clock);
	uint64_t until = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;

	add_seq_cst(&l->waiters, 1);
	for (;;) {
		uint32_t event = load_seq_cst(&l->shown.event);

		if (load_seq_cst(&l->shown.newest) > cursor)
			break;
		if (load_seq_cst(&l->stopped))
			rc = error_set(NOH_ESTOPPED, "the box is not running");
		else if (now >= until)
			rc = error_set(NOH_ETIMEOUT, "no event in time");
		if (rc != NOH_OK)
			break;
		futex_wait(&l->shown.event, event, until - now);
		now = clock_now_ns(&clock);
	}
	sub_relaxed(&l->waiters, 1);
	return rc;
}

void eventlog_stop(struct eventlog *l)
{
	store_seq_cst(&l->stopped, 1);
	add_seq_cst(&l->shown.event, 1);
	futex_wake_all(&l->shown.event);
}

/* ── the old end ── */

/* Holding the lock. The newest chunk is being written to. */
static uint64_t last_of(const struct eventlog_chunk *c)
{
	return c->next ? c->next->first - 1 : UINT64_MAX;
}

void eventlog_drop(struct eventlog *l, uint64_t upto)
{
	pthread_mutex_lock(&l->lock);
	while (l->oldest_chunk && last_of(l->oldest_chunk) <= upto)
		drop_oldest(l);
	pthread_mutex_unlock(&l->lock);
}

void eventlog_cut(struct eventlog *l, uint64_t upto)
{
	store_relaxed(&l->shown.gone, upto);
}

uint64_t eventlog_trim(struct eventlog *l, uint64_t bytes, uint64_t before_ms)
{
	uint64_t gone = 0;

	pthread_mutex_lock(&l->lock);
	while (l->oldest_chunk && l->oldest_chunk->next &&
	       (load_relaxed(&l->shown.bytes) > bytes || l->oldest_chunk->last_ms < before_ms)) {
		gone += last_of(l->oldest_chunk) - l->oldest_chunk->first + 1;
		drop_oldest(l);
	}
	pthread_mutex_unlock(&l->lock);
	return gone;
}

struct aging { uint64_t before_ms, gone; };

static int is_old(void *arg, uint64_t seq, const void *event, size_t len)
{
	struct aging *a = arg;
	struct part_event head;

	(void)len;
	memcpy(&head, event, sizeof head);
	if (head.at_ms >= a->before_ms)
		return 1;
	a->gone = seq;
	return 0;
}

void eventlog_age(struct eventlog *l, uint64_t before_ms)
{
	struct aging a = { .before_ms = before_ms };

	(void)eventlog_trim(l, UINT64_MAX, before_ms);
	/* Of the chunk that is written to only what is shown. Gone meanwhile: then it is older than what we would say. */
	(void)eventlog_read(l, eventlog_oldest(l), is_old, &a);
	pthread_mutex_lock(&l->lock);
	if (a.gone > load_relaxed(&l->shown.gone))
		store_relaxed(&l->shown.gone, a.gone);
	pthread_mutex_unlock(&l->lock);
}
