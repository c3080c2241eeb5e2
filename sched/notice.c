/* sched/notice.c - ordering.  A push and the look at `held`, a release of `held` and the look at what was pushed:
 *
 *     pusher   push (A), try to hold (B)          holder   let go (C), look for more (D)
 *
 * A, B against C, D is store buffering: all four are seq_cst, so either the pusher gets hold of them, or the holder
 * sees what he pushed and comes back for it. Nothing stays behind, and nobody waits for anybody.
 */
#include "sched/notice.h"

#include "core/event.h"
#include "sched/turn.h"

#include <string.h>

#define WAITING_MOST ((uint64_t)4 << 20)         /* bytes, then the box's own are left out */
#define EVENTS_OF_A_TURN 256

const char *notice_name(enum notice_kind kind)
{
	static const char *const names[NOTICE_KINDS] = { "activated", "deactivated", "failed", "restarted", "escalated",
							 "degraded", "quarantined", "resumed", "stopped", "dropped",
							 "dead_letter", "drain", "config" };

	return names[kind];
}

static size_t node_bytes(size_t len)
{
	return sizeof(struct event_node) + len;
}

static struct event_node *node_make(const noh_event *e)
{
	size_t len = event_size(e);
	struct event_node *n = mem_alloc(node_bytes(len));

	if (n) {
		*n = (struct event_node){ .len = (uint32_t)len };
		event_write(e, n->event);
	}
	return n;
}

static void node_drop(struct event_node *n)
{
	mem_free(n, node_bytes(n->len));
}

/* ── passing on ── */

/* newest to oldest: all at once. */
static void push(struct sched *s, struct event_node *newest, struct event_node *oldest)
{
	void *before = load_relaxed(&s->events.pushed);
	uint64_t bytes = node_bytes(oldest->len);

	for (struct event_node *n = newest; n != oldest; n = n->next)
		bytes += node_bytes(n->len);
	add_relaxed(&s->events.bytes, bytes);
	do
		oldest->next = before;
	while (!cas_seq_cst(&s->events.pushed, &before, newest));        /* A */
}

static struct event_node *turn_round(struct event_node *n)
{
	struct event_node *turned = NULL;

	while (n) {
		struct event_node *next = n->next;

		n->next = turned;
		turned = n;
		n = next;
	}
	return turned;
}

static void pass_all(struct sched *s)
{
	struct event_node *n = turn_round(swap_seq_cst(&s->events.pushed, NULL));

	while (n) {
		struct event_node *next = n->next;

		s->events.keep(s->events.arg, n->event, n->len);
		sub_relaxed(&s->events.bytes, node_bytes(n->len));
		node_drop(n);
		n = next;
	}
	s->events.shown(s->events.arg);
}

void notice_pass(struct sched *s)
{
	do {
		if (swap_seq_cst(&s->events.held, 1) != 0)               /* B */
			return;
		pass_all(s);
		store_seq_cst(&s->events.held, 0);                       /* C */
	} while (load_seq_cst(&s->events.pushed));                       /* D */
}

void notice_close(struct sched *s)
{
	struct event_node *n = swap_seq_cst(&s->events.pushed, NULL);

	while (n) {
		struct event_node *next = n->next;

		node_drop(n);
		n = next;
	}
}

/* ── what the box tells ── */

static bool told(struct sched *s, enum notice_kind kind)
{
	switch (load_relaxed(&s->events.detail)) {
	case NOH_EVENTS_NONE:
		return false;
	case NOH_EVENTS_ALL:
		return true;
	default:
		return kind != NOTICE_ACTIVATED && kind != NOTICE_DEACTIVATED;
	}
}

/* As turns know it, once there are turns. */
static uint64_t wall_ms(struct sched *s)
{
	return s->wall_offset_ms ? clock_now_ns(&s->clock) / 1000000u + s->wall_offset_ms : clock_wall_ms(&s->clock);
}

/* At most 63 bytes of it, whole characters. */
static const char *state_of(const char *text, char room[NOH_EVENT_KIND + 1])
{
	size_t n = text ? strlen(text) : 0;

	if (n <= NOH_EVENT_KIND)
		return text;
	for (n = NOH_EVENT_KIND; n > NOH_EVENT_KIND - 4 && ((uint8_t)text[n] & 0xc0) == 0x80; )
		n--;
	memcpy(room, text, n);
	room[n] = 0;
	return room;
}

void notice_of(struct sched *s, const char *actor, enum notice_kind kind, const noh_emit_options *what)
{
	char from[NOH_EVENT_KIND + 1], to[NOH_EVENT_KIND + 1];
	noh_event e = { .at_ms = wall_ms(s), .actor = actor, .kind = notice_name(kind), .from = state_of(what->from, from),
			.to = state_of(what->to, to), .reason = what->reason, .revision = what->revision,
			.data = what->data, .len = what->len, .by_box = true };
	struct event_node *n;

	if (!s->events.keep || !told(s, kind))
		return;
	n = load_relaxed(&s->events.bytes) < WAITING_MOST && !event_problem(&e) ? node_make(&e) : NULL;
	if (!n) {
		add_relaxed(&s->events.lost, 1);
		return;
	}
	add_relaxed(&s->events.told, 1);
	push(s, n, n);
	notice_pass(s);
}

void notice(struct port *p, struct cell *c, enum notice_kind kind, const char *from, const char *to, const char *reason,
	    uint64_t revision)
{
	char address[ADDRESS_MAX + 1] = "";

	if (c)
		cell_address(p->sched, c, address);
	notice_of(p->sched, address, kind, &(noh_emit_options){ .from = from, .to = to, .reason = reason,
								.revision = revision });
}

/* ── what actors tell ── */

int noh_emit(noh_turn *t, const noh_emit_options *o)
{
	struct sched *s = t->sched;
	noh_event e = { .actor = noh_address(t), .kind = o->kind, .from = o->from, .to = o->to, .reason = o->reason,
			.revision = o->revision, .data = o->data, .len = o->len };
	const char *problem = event_problem(&e);
	struct event_node *n;

	if (t->so_far.flags & TURN_READONLY)
		return turn_read_only(t);
	if (problem)
		return error_set(o->len > NOH_EVENT_DATA ? NOH_ETOOBIG : NOH_EINVAL, "%s: not an event: %s",
				 noh_address(t), problem);
	if (!(t->so_far.flags & TURN_EVENTS)) {
		t->events = NULL;
		t->events_end = &t->events;
		t->event_count = 0;
	}
	if (t->event_count == EVENTS_OF_A_TURN)
		return error_set(NOH_ETOOBIG, "%s: a turn tells at most %d events", noh_address(t), EVENTS_OF_A_TURN);
	if (!t->type->durable && load_relaxed(&s->events.bytes) >= WAITING_MOST)
		return error_set(NOH_ENOSPC, "%s: too many events wait for the disk already", noh_address(t));
	e.at_ms = noh_wall_ms(t);
	n = node_make(&e);
	if (!n)
		return error_set(NOH_ENOMEM, "%s: no memory for an event", noh_address(t));
	*t->events_end = n;
	t->events_end = &n->next;
	t->event_count++;
	t->so_far.flags |= TURN_EVENTS;
	return NOH_OK;
}

void notice_undo(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;

	while (t->events) {
		struct event_node *n = t->events;

		t->events = n->next;
		node_drop(n);
	}
	t->so_far.flags &= ~(uint32_t)(TURN_EVENTS | TURN_EVENTS_KEPT);
}

/* What is in the turn's record is on its way; the rest goes by itself. */
void notice_commit(struct worker *w)
{
	struct noh_turn *t = &w->mine.turn;
	struct event_node *oldest = t->events;

	add_relaxed(&t->sched->events.told, t->event_count);
	if (t->so_far.flags & TURN_EVENTS_KEPT) {
		notice_undo(w);
		return;
	}
	push(t->sched, turn_round(oldest), oldest);
	t->events = NULL;
	t->so_far.flags &= ~(uint32_t)TURN_EVENTS;
	notice_pass(t->sched);
}
