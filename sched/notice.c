/* sched/notice.c - events pushed by all, passed on by one at a time (relay.h). With a journal they wait for room in its ring: the
 * journaller makes room before it publishes the durable epoch, which is the progress that the relay goes by.
 */
#include "sched/notice.h"

#include "core/address.h"
#include "core/event.h"
#include "core/utf8.h"
#include "sched/turn.h"
#include "sched/vitals.h"

#include <stdio.h>
#include <string.h>

#define WAITING_MOST ((uint64_t)4 << 20)         /* bytes, then the box's own are left out */
#define EVENTS_OF_A_TURN 256

/* Records need an address. Nobody is there: RECORD_NOTICE says so. */
static const char nobody[] = "box:events";

static const char active[] = "active", not_active[] = "not active";

const char *notice_name(enum notice_kind kind)
{
	static const char *const names[NOTICE_KINDS] = { "activated", "deactivated", "failed", "restarted", "escalated",
							 "degraded", "quarantined", "resumed", "stopped", "dropped",
							 "dead_letter", "drain", "config", "admin" };

	return names[kind];
}

static size_t node_bytes(size_t len)
{
	return sizeof(struct event_node) + len;
}

static struct event_node *node_make(const noh_event *e)
{
	struct part_event head = event_head(e);
	size_t len = event_size(&head);
	struct event_node *n = mem_alloc(node_bytes(len));

	if (n) {
		*n = (struct event_node){ .len = (uint32_t)len };
		event_write(e, &head, n->event);
	}
	return n;
}

static void node_drop(struct event_node *n)
{
	mem_free(n, node_bytes(n->len));
}

/* ── passing on ── */

uint64_t notice_order(struct sched *s)
{
	return add_relaxed(&s->events.order, 1) + 1;
}

/* newest to oldest: all at once. */
static void push(struct sched *s, struct event_node *newest, struct event_node *oldest)
{
	void *before = relay_top(&s->events.relay);
	uint64_t bytes = node_bytes(oldest->len), order = notice_order(s);

	oldest->order = order;
	for (struct event_node *n = newest; n != oldest; n = n->next) {
		n->order = order;
		bytes += node_bytes(n->len);
	}
	add_relaxed(&s->events.bytes, bytes);
	do
		oldest->next = before;
	while (!relay_push(&s->events.relay, &before, newest));
}

/* Oldest first. */
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

/* A record of its own, in the ring that only who holds them writes to. */
static bool to_journal(struct sched *s, const struct event_node *n)
{
	struct sched_journal *j = &s->journal;
	size_t size = record_parts_at(sizeof nobody - 1) + part_size(0, n->len);
	uint64_t tag = j->epoch(j->arg);
	uint8_t *record, *at;

	if (!j->room(j->arg, s->worker_count))
		return false;
	record = j->reserve(j->arg, s->worker_count, size);
	if (!record)
		return false;
	at = record_begin(record, nobody, sizeof nobody - 1, s->events.hash, tag, tag << 20, RECORD_EVENTS | RECORD_NOTICE);
	record_set_order(record, n->order);
	memcpy(part_put(&at, PART_EVENT, NULL, 0, n->len), n->event, n->len);
	record_finish(record, at);
	return true;
}

/* All that were pushed, behind those that are late: there may be many of both. */
static void take_pushed(struct sched *s)
{
	struct event_node *newest = relay_take(&s->events.relay), *oldest = turn_round(newest);

	if (!newest)
		return;
	if (s->events.backlog)
		s->events.backlog_last->next = oldest;
	else
		s->events.backlog = oldest;
	s->events.backlog_last = newest;
}

/* Of those that wait, as many as there is room for. Was it any? */
static bool pass_some(struct sched *s)
{
	bool any = false;

	for (struct event_node *n; (n = s->events.backlog) != NULL; any = true) {
		if (!s->journal.arg)
			s->events.keep(s->events.arg, n->event, n->len);
		else if (!to_journal(s, n))
			break;
		s->events.backlog = n->next;
		sub_relaxed(&s->events.bytes, node_bytes(n->len));
		node_drop(n);
	}
	return any;
}

/* True: some stay, and will find no room before the durable epoch is another than `seen`. */
static bool pass_all(struct sched *s, uint64_t *seen)
{
	bool any;

	take_pushed(s);
	any = pass_some(s);
	if (s->events.backlog) {
		*seen = relay_some_late(&s->events.relay, &s->durable);
		any |= pass_some(s);
	}
	if (!s->events.backlog)
		relay_none_late(&s->events.relay);
	if (any && s->journal.arg) {
		s->journal.push(s->journal.arg, s->worker_count);
		(void)s->journal.epoch(s->journal.arg);
		s->journal.wake(s->journal.arg);
	} else if (any) {
		s->events.shown(s->events.arg);
	}
	return s->events.backlog != NULL;
}

void notice_pass(struct sched *s)
{
	uint64_t seen = 0;
	bool late;

	do {
		if (!relay_hold(&s->events.relay))
			return;
		late = pass_all(s, &seen);
	} while (relay_let_go(&s->events.relay, late, &s->durable, seen));
}

void notice_open(struct sched *s)
{
	s->events.hash = address_hash_text(nobody, sizeof nobody - 1, s->seed);
}

void notice_close(struct sched *s)
{
	take_pushed(s);
	while (s->events.backlog) {
		struct event_node *n = s->events.backlog;

		s->events.backlog = n->next;
		node_drop(n);
	}
}

/* ── what the box tells ── */

/* As turns know it, once there are turns. */
static uint64_t wall_ms(struct sched *s)
{
	return s->wall_offset_ms ? sched_clock_wall_ms(s) : clock_wall_ms(&s->clock);
}

/* At most 63 bytes of it, whole characters. */
static const char *state_of(const char *text, char room[NOH_EVENT_KIND + 1])
{
	size_t n = text ? strlen(text) : 0;

	if (n <= NOH_EVENT_KIND)
		return text;
	n = utf8_cut(text, NOH_EVENT_KIND);
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

	if (load_relaxed(&s->events.detail) == NOH_EVENTS_NONE)
		return;
	must(e.len <= NOH_EVENT_DATA);           /* kinds are our own words, and states were cut */
	n = load_relaxed(&s->events.bytes) < WAITING_MOST ? node_make(&e) : NULL;
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

/* Whoever has failed has vitals: they keep what an actor's life does not tell. */
const char *notice_moves(struct cell *c, const char *to)
{
	struct vitals *v = vitals_if(c);
	noh_life life = cell_life(c);
	const char *from = life == NOH_ACTIVE || life == NOH_DEACTIVATING ? active : not_active;

	if (!v)
		return from;
	if (v->told)
		from = v->told;
	v->told = to == active || to == not_active ? NULL : to;
	return from;
}

void notice_came(struct port *p, struct cell *c)
{
	notice(p, c, NOTICE_ACTIVATED, notice_moves(c, active), active, NULL, 0);
}

void notice_went(struct port *p, struct cell *c, enum gone why)
{
	static const char *const reasons[GONE_REASONS] = {
		[GONE_IDLE] = "it was idle", [GONE_MEMORY] = "memory was short", [GONE_ASKED] = "somebody asked for it",
		[GONE_FORCED] = "it was forced to", [GONE_SELF] = "it stopped itself", [GONE_ERASED] = "it erased itself",
		[GONE_STOP] = "the box stops", [GONE_FAILED] = "it was given up" };

	must_debug(mb_state(load_relaxed(&c->mailbox.word)) != MB_DEAD);   /* the next one may be there, and be told of first */
	notice(p, c, NOTICE_DEACTIVATED, notice_moves(c, not_active), not_active, reasons[why], 0);
}

/* Several workers may count at once, and lose one: then one more is told. */
static bool tell_this_one(struct type *t, uint64_t second)
{
	uint64_t word = load_relaxed(&t->failures);

	if (word >> 8 != second)
		word = second << 8;
	if ((word & 0xff) >= NOTICE_FAILURES)
		return false;
	store_relaxed(&t->failures, word + 1);
	add_relaxed(&t->failures_told, 1);
	return true;
}

void notice_failed(struct worker *w, struct cell *c, uint32_t kind, int status, const char *reason)
{
	struct sched *s = w->fixed.sched;
	struct type *t = cell_type(s, c);
	char address[ADDRESS_MAX + 1], data[96];
	int n;

	if (load_relaxed(&s->events.detail) == NOH_EVENTS_NONE || !tell_this_one(t, clock_now_ns(&s->clock) / 1000000000u))
		return;
	cell_address(s, c, address);
	if (kind == UINT32_MAX)
		n = snprintf(data, sizeof data, "{\"code\":%d}", status);
	else
		n = snprintf(data, sizeof data, "{\"code\":%d,\"message_kind\":%u}", status, kind);
	notice_of(s, address, NOTICE_FAILED, &(noh_emit_options){ .from = kind == UINT32_MAX ? "activating" : NULL,
								  .reason = reason, .data = data, .len = (size_t)n });
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
	if (o->reason && strlen(o->reason) > NOH_EVENT_REASON)
		return error_set(NOH_ETOOBIG, "%s: not an event: a reason has at most %d bytes, not %zu", noh_address(t),
				 NOH_EVENT_REASON, strlen(o->reason));
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
