/* sched/gate.c - where answers wait until what they tell is on disk (P5).
 *
 * First in, first out per worker: an answer that is due earlier than the one before it waits at most for
 * the frame that is on its way. Room is made before user code runs, so a finished turn's answer always
 * finds its place. If its worker is stuck in a long turn, another one lets its answers out.
 */
#include "sched/durable.h"

#include "core/plant.h"
#include "sched/notice.h"
#include "sched/trace.h"

#include <string.h>

#define GATE_RESERVE (BATCH_MAX * 2)

struct gated {
	uint64_t due, token;
	int32_t  status;
	uint32_t len;
	union {
		uint8_t bytes[MSG_INLINE];
		void   *big;
	} body;
};
static_assert(sizeof(struct gated) == CACHE_LINE, "an answer that waits is one line");

/* A -> B  hands the entries on. With B relaxed the next holder could see half of what the last did. */
static void hold(struct gate *g)
{
	while (swap_acquire(&g->held, 1) != 0)                                 /* B */
		cpu_relax();
}

static void let_go(struct gate *g)
{
	store_release(&g->held, 0);                                            /* A */
}

static bool grow(struct gate *g)
{
	uint32_t room = g->room ? g->room * 2 : 4 * GATE_RESERVE;
	struct gated *list = mem_aligned(CACHE_LINE, room * sizeof *list);

	if (!list)
		return false;
	for (uint32_t i = 0; i < load_relaxed(&g->count); i++)
		list[i] = g->list[(g->head + i) & (g->room - 1)];
	mem_free(g->list, g->room * sizeof *list);
	g->list = list;
	g->head = 0;
	g->room = room;
	return true;
}

bool gate_room(struct gate *g)
{
	bool ok;

	/* Only the owner puts something in, so what he sees here is at most too much. */
	if (g->room - load_relaxed(&g->count) >= GATE_RESERVE)
		return true;
	hold(g);
	ok = grow(g);
	let_go(g);
	return ok;
}

void gate_complete(struct port *p, uint64_t token, int status, const void *body, size_t len)
{
	if (!pending_complete(p, token, status, body, len))
		count_one(&p->late_answers, 1);
}

/* False: no memory even for that. Then the answer is an error, which tells nothing: the effect stands, and a
 * retry will tell. */
static bool gate_put(struct worker *w, uint64_t due, uint64_t token, int status, const void *body,
		     size_t len)
{
	struct gated e = { .due = due, .token = token, .status = status, .len = (uint32_t)len };
	struct gate *g = &w->gate;
	bool ok;

	if (len > MSG_INLINE) {
		e.body.big = mem_alloc(len);
		if (!e.body.big) {
			e.len = 0;
			e.status = NOH_ENOMEM;
		}
	}
	if (e.len)
		memcpy(len > MSG_INLINE ? e.body.big : (void *)e.body.bytes, body, len);
	w->mine.has_room = false;
	hold(g);
	uint32_t count = load_relaxed(&g->count);

	ok = count < g->room || grow(g);
	if (ok) {
		g->list[(g->head + count) & (g->room - 1)] = e;
		store_relaxed(&g->count, count + 1);
		if (count == 0)
			store_relaxed(&w->shown.awaits, due);
	}
	let_go(g);
	if (!ok && e.len > MSG_INLINE)
		mem_free(e.body.big, e.len);
	return ok;
}

void gate_answer(struct worker *w, uint64_t due, uint64_t token, int status, const void *body,
		 size_t len)
{
	struct sched *s = w->fixed.sched;

	if (PLANT(PLANT_ACK_BEFORE_SYNC) || (PLANT(PLANT_ERROR_UNGATED) && status < 0))
		due = 0;
	if (token & TOKEN_OF_NET) {              /* connections have gates of their own */
		s->net.answer(s->net.arg, &w->mine.port, token, due, status, body, len);
		return;
	}
	if (due <= load_relaxed(&s->durable) || pending_is_ask(s, token))
		gate_complete(&w->mine.port, token, status, body, len);
	else if (!gate_put(w, due, token, status, body, len))
		gate_complete(&w->mine.port, token, NOH_ENOMEM, NULL, 0);
}

/* A span of a trace waits like an answer, and nobody minds if it is forgotten. */
void gate_trace(struct worker *w, uint64_t due, const void *body, size_t len)
{
	(void)gate_put(w, due, REPLY_TRACE, NOH_OK, body, len);
}

#define PASS_TOGETHER 32

/* Some that are due by then, out of the gate. */
static uint32_t take(struct worker *w, uint64_t durable, struct gated *out)
{
	struct gate *g = &w->gate;
	uint32_t n = 0, count;

	hold(g);
	count = load_relaxed(&g->count);
	for (; n < PASS_TOGETHER && n < count && g->list[g->head].due <= durable; n++) {
		out[n] = g->list[g->head];
		g->head = (g->head + 1) & (g->room - 1);
	}
	store_relaxed(&g->count, count - n);
	if (n)
		store_relaxed(&w->shown.awaits, n < count ? g->list[g->head].due : UINT64_MAX);
	let_go(g);
	return n;
}

/* Nothing is held while they are told: a callback may do anything. */
static uint32_t pass(struct worker *w, struct port *p, uint64_t durable, int status)
{
	struct gated some[PASS_TOGETHER];
	uint32_t n, all = 0;

	while ((n = take(w, durable, some)) != 0) {
		for (uint32_t i = 0; i < n; i++)
			pending_fetch(p->sched, some[i].token);
		for (uint32_t i = 0; i < n; i++) {
			struct gated *e = &some[i];
			const void *body = e->len > MSG_INLINE ? e->body.big : e->body.bytes;

			if (__builtin_expect(e->token == REPLY_TRACE, 0)) {
				if (status == NOH_OK)
					trace_on_disk(p, body);
				continue;
			}
			gate_complete(p, e->token, status == NOH_OK ? e->status : status,
				      status == NOH_OK ? body : NULL, status == NOH_OK ? e->len : 0);
			if (e->len > MSG_INLINE)
				mem_free(e->body.big, e->len);
		}
		all += n;
	}
	return all;
}

uint32_t gate_open(struct worker *w, struct port *p)
{
	uint64_t durable = load_acquire(&w->fixed.sched->durable);

	return load_relaxed(&w->shown.awaits) <= durable ? pass(w, p, durable, NOH_OK) : 0;
}

void gate_end(struct worker *w, int status)
{
	(void)pass(w, &w->mine.port, UINT64_MAX, status);
}

void gate_free(struct worker *w)
{
	mem_free(w->gate.list, w->gate.room * sizeof(struct gated));
	w->gate.list = NULL;
	w->gate.room = 0;
	store_relaxed(&w->gate.count, 0);
}

/* The store of durable and the look at who sleeps are in the one total order with a worker's announcing
 * and its look at durable: either it sees the epoch, or we see it asleep. */
void sched_durable(struct sched *s, uint64_t epoch)
{
	store_seq_cst(&s->durable, epoch);
	add_seq_cst(&s->durable_event, 1);
	notice_again(s);
	if (load_seq_cst(&s->durable_waiters))
		futex_wake_all(&s->durable_event);
	for (uint32_t i = 0; i < s->worker_count; i++)
		if (!PLANT(PLANT_LOSE_WAKE_DURABLE) && park_asleep(&s->workers[i].shared.park) &&
		    (load_seq_cst(&s->workers[i].shown.awaits) <= epoch ||
		     load_seq_cst(&s->workers[i].shown.net_awaits) <= epoch))
			park_wake(&s->workers[i].shared.park);
}

uint64_t sched_work_ahead(struct sched *s)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < s->worker_count; i++) {
		struct worker *w = &s->workers[i];
		uint64_t n = load_relaxed(&w->shared.park.asleep) ? UINT64_MAX : runq_length(&w->runq);

		least = n < least ? n : least;
	}
	return least == UINT64_MAX ? 0 : least;
}

void sched_disk_failed(struct sched *s)
{
	store_seq_cst(&s->disk_failed, 1);
	add_seq_cst(&s->durable_event, 1);
	futex_wake_all(&s->durable_event);
	sched_wake_all(s);
}
