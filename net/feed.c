/* net/feed.c - the thread that reads events for all who wait for them.
 *
 * It goes round: every reader with room gets the events behind its cursor that it wants, as far as its window goes.
 * Then it sleeps on the bell. Who rings has first made visible why: an event, a reader in `arrived`, bytes taken, a
 * reader that is gone; the bell's number is loaded before all of these are looked at, so none is slept through.
 *
 * Room: the worker stores `taken`, then looks at `starved`; the thread stores `starved`, then looks at `taken` again; all
 * four in one order (seq_cst), so one of them sees the other.
 */
#include "net/feed_in.h"

#include "core/error.h"
#include "core/futex.h"
#include "core/mem.h"
#include "net/event_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BATCH 256                          /* events for one reader, then it is the next one's turn */
#define BREATH_NS UINT64_C(15000000000)    /* a stream that says nothing for so long shows that it lives */
#define GAP_NS 1000000                     /* between two rounds that gave something: events come in crowds */
#define AGAIN_NS 10000000                  /* for want of memory */
#define LAST_LOOKS 65536                   /* of the events before the newest, for those it is to begin with */

/* ── ringing ── */

void feeds_ring(struct feeds *f)
{
	add_seq_cst(&f->bell, 1);
	if (load_seq_cst(&f->asleep))
		futex_wake_all(&f->bell);
}

void feeds_news(struct server *s)
{
	if (s->feeds && load_seq_cst(&s->feeds->count))
		feeds_ring(s->feeds);
}

uint32_t feeds_count(const struct server *s)
{
	return s->feeds ? load_relaxed(&s->feeds->count) : 0;
}

/* ── giving ── */

static noh_box *box_of(struct feeds *f)
{
	return f->server->door.box;
}

static uint64_t now_of(struct feeds *f)
{
	return f->server->door.now_ns(f->server->door.box);
}

/* To its connection; how: FEED_ENDS: these are the last words. False: no memory. */
static bool push(struct feeds *f, struct feed *x, const char *bytes, size_t len, uint32_t how)
{
	struct late *l = mem_alloc(sizeof *l + len);

	if (!l)
		return false;
	*l = (struct late){ .due = x->id, .len = (uint32_t)len, .count = x->conn,
			    .status = (int)(LATE_FEED | (uint32_t)x->conn_gen << FEED_GEN_SHIFT | how) };
	if (len)
		memcpy(l->body, bytes, len);
	x->mine.given += len;
	x->mine.spoken = true;
	x->mine.done |= (how & FEED_ENDS) != 0;
	if (net_push_late(load_acquire(&f->server->nets[x->worker]), l))
		f->server->door.wake(f->server->door.box, x->worker);
	return true;
}

/* What cannot be told for want of memory must not be missing: then there is nothing behind it either. */
static void hand_over(struct feeds *f, struct feed *x, const struct out *o, uint32_t how)
{
	if (o->failed || !push(f, x, o->bytes, o->len, how))
		x->mine.broken = true;
}

/* The last words of a stream: why, and where to go on. */
static void finish(struct feeds *f, struct feed *x, const char *event, const char *why)
{
	struct out *o = &f->text;

	event_put_end(o, event, why, x->mine.cursor);
	hand_over(f, x, o, FEED_ENDS | (strcmp(event, "cut") == 0 ? FEED_SLOW : 0));
}

/* To its slot. False: no memory. */
static bool answer(struct feeds *f, struct feed *x, int status, const void *body, size_t len)
{
	struct late *l = mem_alloc(sizeof *l + len);

	if (!l)
		return false;
	*l = (struct late){ .token = x->token, .status = status, .len = (uint32_t)len, .count = UINT32_MAX };
	if (len)
		memcpy(l->body, body, len);
	if (net_push_late(load_acquire(&f->server->nets[x->worker]), l))
		f->server->door.wake(f->server->door.box, x->worker);
	return true;
}

static bool answer_why(struct feeds *f, struct feed *x, int status)
{
	return answer(f, x, status, noh_why(), strlen(noh_why()));
}

/* ── a stream ── */

struct giving {
	struct feeds *f;
	size_t        room;
	uint32_t      count;
};

static int add_text(void *user, const noh_event *e)
{
	struct giving *g = user;
	struct feed_memo *m = &g->f->memo[e->seq % FEED_MEMO];

	if (m->seq != e->seq) {
		out_close(&m->text);
		m->text = (struct out){ 0 };
		event_put_sse(&m->text, e);
		m->seq = m->text.failed ? 0 : e->seq;
	}
	if (m->text.failed)
		g->f->text.failed = true;
	else
		out_bytes(&g->f->text, m->text.bytes, m->text.len);
	return g->f->text.len >= g->room || g->f->text.failed;
}

/* Is there room for more? Who has none for too long is ended. */
static bool has_room(struct feeds *f, struct feed *x, uint64_t now, size_t *room, uint64_t *next)
{
	uint64_t patience = (uint64_t)x->wish.patience_ms * 1000000u;
	uint64_t held = x->mine.given - load_acquire(&x->taken);

	if (held >= FEED_WINDOW && !x->mine.full_ns)
		x->mine.full_ns = now;
	if (x->mine.full_ns) {
		store_seq_cst(&x->starved, 1);
		held = x->mine.given - load_seq_cst(&x->taken);
		if (held > FEED_WINDOW / 2) {
			if (now - x->mine.full_ns < patience) {
				*next = x->mine.full_ns + patience;
				return false;
			}
			finish(f, x, "cut", "too slow: it did not take what it was sent; go on behind the cursor");
			return false;
		}
		x->mine.full_ns = 0;
		store_seq_cst(&x->starved, 0);
	}
	*room = FEED_WINDOW - held;
	return true;
}

static int remember(void *user, const noh_event *e)
{
	uint64_t *ring = user;                   /* [0]: how many so far; [1]: of so many at most */

	ring[2 + ring[0]++ % ring[1]] = e->seq;
	return 0;
}

/* Where the last `wish.last` events begin that it wants, of those not too long ago. */
static void begin_with_last(struct feeds *f, struct feed *x)
{
	uint64_t oldest = 0, newest = 0, ring[2 + FEED_LAST_MOST] = { 0, x->wish.last };
	uint64_t cursor;
	int rc = noh_events_bounds(box_of(f), &oldest, &newest);

	if (rc != NOH_OK || oldest > newest)
		oldest = newest + 1;
	x->mine.cursor = newest;
	if (x->wish.last == 0 || oldest > newest)
		return;
	cursor = newest > LAST_LOOKS && newest - LAST_LOOKS >= oldest ? newest - LAST_LOOKS : oldest - 1;
	do {
		rc = noh_events_read(box_of(f), &cursor, &x->filter, BATCH, remember, ring);
	} while (rc == NOH_OK && cursor < newest);
	if (ring[0])
		x->mine.cursor = ring[2 + (ring[0] > ring[1] ? ring[0] % ring[1] : 0)] - 1;
}

/* That it begins, or (rc) why it cannot. */
static bool begin(struct feeds *f, struct feed *x, int rc)
{
	x->mine.begun = rc < 0 ? answer_why(f, x, rc) : answer(f, x, NOH_OK, NULL, 0);
	x->mine.broken = rc < 0 || !x->mine.begun;
	return !x->mine.broken;
}

/* Returns when to look at it again, if nobody rings. */
static uint64_t stream(struct feeds *f, struct feed *x, uint64_t now, bool breath)
{
	struct giving g = { .f = f };
	uint64_t next = UINT64_MAX;
	int rc;

	if (x->mine.broken) {
		(void)push(f, x, "", 0, FEED_ENDS);   /* or at its next breath */
		return UINT64_MAX;
	}
	if (!x->mine.begun && x->wish.last != UINT32_MAX)
		begin_with_last(f, x);
	if (!has_room(f, x, now, &g.room, &next))
		return next;
	f->text.len = 0;
	rc = noh_events_read(box_of(f), &x->mine.cursor, &x->filter, BATCH, add_text, &g);
	if (!x->mine.begun && !begin(f, x, rc))
		return 0;
	if (breath && !f->text.len && !x->mine.spoken)
		out_bytes(&f->text, ":\n\n", 3);
	if (breath)
		x->mine.spoken = false;
	if (f->text.len || f->text.failed)
		hand_over(f, x, &f->text, 0);
	if (x->mine.broken || rc == NOH_OK)
		return 0;
	if (rc == NOH_ETOOOLD)
		finish(f, x, "gone", noh_why());
	else if (rc < 0)
		finish(f, x, "end", noh_why());
	else if (x->wish.once)
		finish(f, x, "end", "this is all there is");
	return UINT64_MAX;
}

/* ── a command ── */

static int add_resp(void *user, const noh_event *e)
{
	struct giving *g = user;

	event_put_resp(&g->f->text, e);
	g->count++;
	return g->f->text.len >= g->room || g->f->text.failed;
}

static uint64_t command(struct feeds *f, struct feed *x, uint64_t now)
{
	struct giving g = { .f = f, .room = FEED_WINDOW };
	struct feed_answer head = { 0 };
	uint64_t from = x->mine.cursor;
	int rc;

	if (!x->mine.begun)
		x->mine.until_ns = now + (uint64_t)x->wish.block_ms * 1000000u;
	x->mine.begun = true;
	f->text.len = 0;
	f->text.proto = x->wish.proto;
	out_bytes(&f->text, &head, sizeof head);
	rc = noh_events_read(box_of(f), &x->mine.cursor, &x->filter, x->wish.limit, add_resp, &g);
	if (rc < 0) {
		x->mine.done = answer_why(f, x, rc);
	} else if (f->text.failed) {
		x->mine.done = answer(f, x, NOH_ENOMEM, NULL, 0);
	} else if (g.count || (rc == NOH_END && (now >= x->mine.until_ns || load_acquire(&x->hurry)))) {
		head = (struct feed_answer){ x->mine.cursor, g.count };
		memcpy(f->text.bytes, &head, sizeof head);
		x->mine.done = answer(f, x, NOH_OK, f->text.bytes, f->text.len);
	} else {
		return rc == NOH_END ? x->mine.until_ns : 0;
	}
	if (x->mine.done)
		return UINT64_MAX;
	x->mine.cursor = from;                   /* no memory even for that: once more */
	return now + AGAIN_NS;
}

/* ── the thread ── */

static void take_arrived(struct feeds *f)
{
	struct feed *x = load_relaxed(&f->arrived) ? swap_seq_cst(&f->arrived, NULL) : NULL;

	while (x) {
		struct feed *next = x->next;

		x->next = f->list;
		f->list = x;
		x = next;
	}
}

/* The slot of a stream that had not begun is there until it is answered. */
static void forget(struct feeds *f, struct feed *x)
{
	if (x->wish.stream && !x->mine.begun)
		(void)answer(f, x, NOH_EGONE, NULL, 0);
	mem_free(x, sizeof *x);
	sub_relaxed(&f->count, 1);
}

/* Returns when the next one is due; 0: there is more to do. */
static uint64_t go_round(struct feeds *f, uint64_t now)
{
	uint64_t next = UINT64_MAX, when;
	bool breath = now >= f->breath_ns, streams = false;

	if (breath)
		f->breath_ns = now + BREATH_NS;
	for (struct feed **at = &f->list; *at; ) {
		struct feed *x = *at;

		if (load_acquire(&x->gone)) {
			*at = x->next;
			forget(f, x);
			continue;
		}
		at = &x->next;
		if (f->text.failed)
			out_close(&f->text);
		f->text.failed = false;
		if (x->mine.done)
			continue;
		streams |= x->wish.stream;
		when = x->wish.stream ? stream(f, x, now, breath) : command(f, x, now);
		next = when < next ? when : next;
	}
	if (streams && f->breath_ns < next)
		next = f->breath_ns;
	return next;
}

static void wait_for_bell(struct feeds *f, uint32_t bell, uint64_t until_ns)
{
	uint64_t now = now_of(f);

	if (until_ns <= now)
		return;
	store_seq_cst(&f->asleep, 1);
	if (load_seq_cst(&f->bell) == bell)
		futex_wait(&f->bell, bell, until_ns == UINT64_MAX ? UINT64_MAX : until_ns - now);
	store_seq_cst(&f->asleep, 0);
}

static void say_goodbye(struct feeds *f)
{
	take_arrived(f);
	for (struct feed *x = f->list; x; x = x->next) {
		f->text.failed = false;
		if (x->mine.done || load_acquire(&x->gone))
			continue;
		if (!x->mine.begun || !x->wish.stream)
			(void)answer(f, x, NOH_ESTOPPED, NULL, 0);
		if (x->wish.stream && !x->mine.begun)
			(void)push(f, x, "", 0, FEED_ENDS);
		else if (x->wish.stream)
			finish(f, x, "end", "the server is stopping; go on behind the cursor when it is back");
	}
}

static void *feeds_main(void *arg)
{
	static const struct timespec gap = { .tv_nsec = GAP_NS };
	struct feeds *f = arg;

	(void)pthread_setname_np(pthread_self(), "noh/feeds");
	while (!load_acquire(&f->over)) {
		uint32_t bell = load_seq_cst(&f->bell);

		take_arrived(f);
		wait_for_bell(f, bell, go_round(f, now_of(f)));
		if (f->list)
			(void)nanosleep(&gap, NULL);
	}
	say_goodbye(f);
	return NULL;
}

/* ── its life ── */

int feeds_open(struct server *s)
{
	struct feeds *f = mem_aligned(CACHE_LINE, sizeof *f);

	if (!f)
		return error_set(NOH_ENOMEM, "no memory for readers of events");
	f->server = s;
	store_relaxed(&f->over, 1);              /* until there is a thread */
	s->feeds = f;
	return NOH_OK;
}

void feeds_start(struct server *s)
{
	struct feeds *f = s->feeds;

	f->breath_ns = now_of(f) + BREATH_NS;
	store_seq_cst(&f->over, 0);
	f->started = pthread_create(&f->thread, NULL, feeds_main, f) == 0;
	if (f->started)
		return;
	store_seq_cst(&f->over, 1);
	s->door.log(s->door.box, NOH_ERROR, "no thread for readers of events: they will be refused");
}

void feeds_stop(struct server *s)
{
	struct feeds *f = s->feeds;

	if (!f || !f->started)
		return;
	store_seq_cst(&f->over, 1);
	feeds_ring(f);
	pthread_join(f->thread, NULL);
	f->started = false;
}

void feeds_close(struct server *s)
{
	struct feeds *f = s->feeds;

	if (!f)
		return;
	take_arrived(f);
	for (struct feed *x = f->list, *next; x; x = next) {
		next = x->next;
		mem_free(x, sizeof *x);
	}
	for (uint32_t i = 0; i < FEED_MEMO; i++)
		out_close(&f->memo[i].text);
	out_close(&f->text);
	mem_free(f, sizeof *f);
	s->feeds = NULL;
}
