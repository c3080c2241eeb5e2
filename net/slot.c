/* net/slot.c - commands that wait for their answers, and replies in the order of the commands.
 *
 * A connection's slots stand in the order its commands came. An answer for the first of them is written to the
 * connection at once; one for a later slot is kept there until those before it have theirs. A slot whose client is
 * gone stays until its answer comes, and then goes: a token never finds a slot that means somebody else.
 */
#include "net/move.h"

#include "core/mem.h"
#include "core/must.h"

#include <string.h>

#define SLOTS_MAX (1u << 21)
#define GEN_MASK 0x3fffffffu

uint64_t slot_token(struct net *n, uint32_t number)
{
	return TOKEN_NET | (n->slots[number].proto & HTTP_PROTO ? TOKEN_HTTP : 0) |
	       (uint64_t)(n->slots[number].gen & GEN_MASK) << 32 | (uint64_t)n->worker << 21 | number;
}

/* 0: there is none, or not any more. */
uint32_t slot_of(struct net *n, uint64_t token)
{
	uint32_t number = (uint32_t)token & (SLOTS_MAX - 1);

	if (number == 0 || number >= n->slot_room || n->slots[number].state != SLOT_WAITING ||
	    (n->slots[number].gen & GEN_MASK) != ((uint32_t)(token >> 32) & GEN_MASK))
		return 0;
	return number;
}

/* ── taking and giving back ── */

static bool grow(struct net *n)
{
	uint32_t room = n->slot_room ? n->slot_room * 2 : 1024;
	struct asked *list = room > SLOTS_MAX ? NULL : mem_zalloc(room * sizeof *list);

	if (!list)
		return false;
	for (uint32_t i = 1; i < n->slot_room; i++) {
		list[i] = n->slots[i];
		if (list[i].state != SLOT_FREE && list[i].format && list[i].parts == 1 &&
		    list[i].one.body == n->slots[i].u.inside)
			list[i].one.body = list[i].u.inside;
	}
	for (uint32_t i = room - 1; i >= (n->slot_room ? n->slot_room : 1); i--) {
		list[i].next = n->slot_free;
		n->slot_free = i;
	}
	mem_free(n->slots, n->slot_room * sizeof *list);
	n->slots = list;
	n->slot_room = room;
	return true;
}

bool slots_open(struct net *n)
{
	return grow(n);
}

uint32_t slot_take(struct net *n, struct conn *c)
{
	uint32_t number;
	struct asked *s;

	if (!n->slot_free && !grow(n))
		return 0;
	number = n->slot_free;
	s = &n->slots[number];
	n->slot_free = s->next;
	n->slots_waiting++;
	s->conn = c->socket.number;
	s->conn_gen = c->socket.gen;
	s->state = SLOT_WAITING;
	s->next = 0;
	s->due = 0;
	s->parent = 0;
	s->format = NULL;
	s->parts = 0;
	s->orphan = false;
	s->step = false;
	s->running = 0;
	s->note = NULL;
	s->feed = NULL;
	s->replayed = false;
	s->traced = false;
	s->silent = n->muting;
	s->proto = c->session.proto;
	return number;
}

static void free_body(struct asked *s, struct reply_part *p)
{
	if (p->body && p->body != s->u.inside)
		mem_free((void *)(uintptr_t)p->body, p->len);
	p->body = NULL;
}

/* What its connection says next cannot overtake it any more. */
static void step_over(struct net *n, struct asked *s)
{
	struct conn *c = s->step ? conn_at(n, s->conn, s->conn_gen) : NULL;

	if (c)
		c->steps--;
	s->step = false;
}

static void let_go(struct net *n, struct asked *s)
{
	mem_free(s->note, s->note_len);
	s->note = NULL;
	running_end(&n->server->running, s->running);
	s->running = 0;
	if (s->feed) {
		feed_leave(n, s->feed);
		s->feed = NULL;
		n->readers--;
	}
}

void slot_give(struct net *n, uint32_t number)
{
	struct asked *s = &n->slots[number];

	if (!s->format && s->parts == 0) {
		if (s->state == SLOT_READY)
			out_close(&s->u.text);
	} else if (s->parts == 1) {
		free_body(s, &s->one);
	} else if (s->u.many) {
		for (uint32_t i = 0; i < s->parts; i++)
			free_body(s, &s->u.many[i]);
		mem_free(s->u.many, s->parts * sizeof *s->u.many);
	}
	if (__builtin_expect(number == n->timed.slot, 0))
		took_lost(n);
	n->orphans -= s->orphan;
	s->orphan = false;
	step_over(n, s);
	if (__builtin_expect(s->note || s->running || s->feed, 0))
		let_go(n, s);
	s->state = SLOT_FREE;
	s->gen++;
	s->next = n->slot_free;
	n->slot_free = number;
	n->slots_waiting--;
}

void slots_close(struct net *n)
{
	for (uint32_t i = 1; i < n->slot_room; i++)
		if (n->slots[i].state != SLOT_FREE)
			slot_give(n, i);
	mem_free(n->slots, n->slot_room * sizeof *n->slots);
}

/* A command for many keys counts as many. */
static uint32_t weight(const struct asked *s)
{
	return s->parts > 1 ? s->parts : 1;
}

void slot_enqueue(struct net *n, struct conn *c, uint32_t number)
{
	if (c->last)
		n->slots[c->last].next = number;
	else
		c->first = number;
	c->last = number;
	c->waiting += weight(&n->slots[number]);
}

/* ── writing replies, in order ── */

/* What a slot holds back for its connection, beyond its own room. */
static size_t held_bytes(const struct asked *s)
{
	if (!s->format)
		return s->u.text.len;
	return s->parts == 1 && s->one.body && s->one.body != s->u.inside ? s->one.len : 0;
}

static void write_one(struct net *n, struct conn *c, uint32_t number, const struct reply_part *parts, uint64_t due)
{
	struct asked *s = &n->slots[number];
	size_t before = c->out.len;

	c->first = s->next;
	if (!c->first)
		c->last = 0;
	c->waiting -= weight(s);
	c->queued -= held_bytes(s);
	if (__builtin_expect(s->traced, 0))
		net_trace_replied(n, number, s->at_once ? 0 : due);
	if (!s->silent && !(c->flags & CONN_DEAD)) {
		c->out.proto = s->proto;
		c->out.replayed = s->replayed;
		if (s->format)
			s->format(&c->out, parts, s->parts, s->tag);
		else
			out_bytes(&c->out, s->u.text.bytes, s->u.text.len);
		if (out_is_error(&c->out, before))
			count_one(&n->shown.counts.errors, 1);
		conn_wrote(n, c, s->at_once ? 0 : due);
		if (__builtin_expect(number == n->timed.slot, 0))
			took_written(n, c);
	} else {
		conn_was_silent(n, c);
	}
	slot_give(n, number);
}

void slot_write(struct net *n, struct conn *c)
{
	while (c->first && n->slots[c->first].state == SLOT_READY) {
		struct asked *s = &n->slots[c->first];

		write_one(n, c, c->first, s->parts == 1 ? &s->one : s->u.many, s->due);
	}
}

/* ── answers ── */

static void keep(struct asked *s, struct reply_part *to, int status, const void *body, size_t len, bool inside)
{
	to->status = status;
	to->len = (uint32_t)len;
	to->body = NULL;
	if (len == 0)
		return;
	to->body = inside && len <= SLOT_INLINE ? s->u.inside : mem_alloc(len);
	if (!to->body) {
		to->status = NOH_ENOMEM;
		to->len = 0;
		return;
	}
	memcpy((void *)(uintptr_t)to->body, body, len);
}

void slot_ready(struct net *n, uint32_t number)
{
	struct asked *s = &n->slots[number];
	struct conn *c = conn_at(n, s->conn, s->conn_gen);

	s->state = SLOT_READY;
	step_over(n, s);
	if (!c)
		slot_give(n, number);
	else if (c->first == number)
		slot_write(n, c);
}

static void answer_part(struct net *n, uint32_t number, uint64_t due, int status, const void *body, size_t len)
{
	uint32_t parent = n->slots[number].parent, index = n->slots[number].index;
	uint32_t gen = n->slots[number].parent_gen;
	struct asked *p = &n->slots[parent];

	slot_give(n, number);
	if (p->gen != gen || p->state != SLOT_WAITING)   /* it was answered TIMEOUT meanwhile */
		return;
	keep(p, &p->u.many[index], status, body, len, false);
	if (due > p->due)
		p->due = due;
	if (--p->missing == 0)
		slot_ready(n, parent);
}

/* READONLY says which place is full, and how much is needed; only the server knows. */
static inline void name_the_place(const struct net *n, int status, const void **body, size_t *len)
{
	if (status == NOH_ENOSPC && *len == 0) {
		*body = n->server->no_space;
		*len = strlen(n->server->no_space);
	}
}

void net_answer(struct net *n, uint64_t token, uint64_t due, int status, const void *body, size_t len)
{
	uint32_t number = slot_of(n, token);
	struct asked *s = &n->slots[number];
	struct conn *c;

	if (!number)
		return;
	if (__builtin_expect(status >= NET_REPLAYED, 0)) {
		status -= NET_REPLAYED;
		s->replayed = true;
	}
	name_the_place(n, status, &body, &len);
	if (s->parent) {
		answer_part(n, number, due, status, body, len);
		return;
	}
	if (s->parts != 1) {                             /* a whole step: all of it fares the same */
		for (uint32_t i = 0; i < s->parts; i++)
			keep(s, &s->u.many[i], status, body, len, false);
		s->due = due;
		slot_ready(n, number);
		return;
	}
	c = conn_at(n, s->conn, s->conn_gen);
	if (c && c->first == number) {                   /* nothing before it: no copy */
		struct reply_part one = { status, (uint32_t)len, body };

		write_one(n, c, number, &one, due);
		slot_write(n, c);
		return;
	}
	keep(s, &s->one, status, body, len, true);
	if (c)
		c->queued += held_bytes(s);
	s->due = due;
	slot_ready(n, number);
}

void net_answer_parts(struct net *n, uint64_t token, uint64_t due, int status, const struct reply_part *parts,
		      uint32_t count)
{
	uint32_t number = slot_of(n, token);
	struct asked *s = &n->slots[number];

	if (!number)
		return;
	if (!parts || count != s->parts || s->parts == 1) {
		net_answer(n, token, due, count && parts ? parts[0].status : status, count && parts ? parts[0].body : NULL,
			   count && parts ? parts[0].len : 0);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const void *body = parts[i].body;
		size_t len = parts[i].len;

		name_the_place(n, parts[i].status, &body, &len);
		keep(s, &s->u.many[i], parts[i].status, body, len, false);
	}
	s->due = due;
	slot_ready(n, number);
}

/* ── answers from other threads: a stack, taken whole ── */

bool net_push_late_all(struct net *n, struct late *newest, struct late *oldest)
{
	void *top = load_relaxed(&n->late);

	do {
		oldest->next = top;
	} while (!cas_seq_cst(&n->late, &top, newest));
	return top == NULL;
}

bool net_push_late(struct net *n, struct late *l)
{
	return net_push_late_all(n, l, l);
}

bool net_answer_late(struct net *n, uint64_t token, uint64_t due, int status, const void *body, size_t len)
{
	struct late *l = mem_alloc(sizeof *l + len);

	if (!l)
		return false;
	*l = (struct late){ .token = token, .due = due, .status = status, .len = (uint32_t)len,
			    .count = UINT32_MAX };
	if (len)
		memcpy(l->body, body, len);
	return net_push_late(n, l);
}

bool net_answer_parts_late(struct net *n, uint64_t token, uint64_t due, int status, const struct reply_part *parts,
			   uint32_t count)
{
	size_t bytes = count * sizeof *parts;
	struct late *l;
	struct reply_part *copy;
	char *at;

	for (uint32_t i = 0; i < count; i++)
		bytes += (parts[i].len + 7u) & ~7u;
	l = mem_alloc(sizeof *l + bytes);
	if (!l)
		return false;
	*l = (struct late){ .token = token, .due = due, .status = status, .len = (uint32_t)bytes, .count = count };
	copy = (struct reply_part *)(void *)l->body;
	at = (char *)(copy + count);
	for (uint32_t i = 0; i < count; i++) {
		copy[i] = (struct reply_part){ parts[i].status, parts[i].len, at };
		if (parts[i].len)
			memcpy(at, parts[i].body, parts[i].len);
		at += (parts[i].len + 7u) & ~7u;
	}
	return net_push_late(n, l);
}

uint32_t slot_take_late(struct net *n)
{
	struct late *newest = load_relaxed(&n->late) ? swap_seq_cst(&n->late, NULL) : NULL, *oldest = NULL;
	uint32_t count = 0;

	while (newest) {
		struct late *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest) {
		struct late *l = oldest;

		oldest = l->next;
		count++;
		if (l->token == 0 && l->status == LATE_MOVE) {
			move_arrives(n, l);      /* who comes is not freed */
			continue;
		}
		if (l->token == 0)
			option_late(n, l);
		else if (l->count == UINT32_MAX)
			net_answer(n, l->token, l->due, l->status, l->body, l->len);
		else
			net_answer_parts(n, l->token, l->due, l->status, (const struct reply_part *)(const void *)l->body,
					 l->count);
		mem_free(l, sizeof *l + l->len);
	}
	return count;
}

bool slot_text(struct net *n, struct conn *c)
{
	uint32_t number = slot_take(n, c);
	struct asked *s = &n->slots[number];

	if (!number)
		return false;
	s->silent = false;               /* muted replies do not come here; this may be somebody else's push */
	s->u.text = n->scratch;
	c->queued += s->u.text.len;
	n->scratch = (struct out){ 0 };
	s->state = SLOT_READY;
	s->at_once = false;
	s->due = n->reply_due;
	s->until_ms = UINT64_MAX;
	slot_enqueue(n, c, number);
	return true;
}

/* ── who waits too long, who is gone ── */

static void expire(struct net *n, uint32_t number)
{
	struct asked *s = &n->slots[number];

	if (s->parts == 1) {
		net_answer(n, slot_token(n, number), 0, NOH_ETIMEOUT, NULL, 0);
		return;
	}
	for (uint32_t i = 0; i < s->parts; i++) {        /* some of its parts may be there already */
		free_body(s, &s->u.many[i]);
		s->u.many[i] = (struct reply_part){ .status = NOH_ETIMEOUT };
	}
	slot_ready(n, number);
}

void slot_expire(struct net *n, struct conn *c)
{
	uint32_t number = c->first;

	while (number) {
		struct asked *s = &n->slots[number];

		if (s->state == SLOT_WAITING && s->until_ms <= n->now_ms) {
			uint32_t next = s->next;
			bool head = number == c->first;

			expire(n, number);               /* of the first, those behind it may be gone as well */
			number = head ? c->first : next;
			continue;
		}
		if (s->state == SLOT_WAITING && s->until_ms < n->sweep_ms)
			n->sweep_ms = s->until_ms;
		number = s->next;
	}
}

void slot_abandon(struct net *n, struct conn *c)
{
	uint32_t number = c->first;

	while (number) {
		struct asked *s = &n->slots[number];
		uint32_t next = s->next;

		s->next = 0;
		s->orphan = true;
		n->orphans++;
		if (s->state == SLOT_READY || s->feed)
			slot_give(n, number);
		number = next;           /* those that wait go with their answers: `ready` finds no connection */
	}
	c->first = c->last = c->waiting = 0;
	if (c->flags & CONN_STALLED)
		request_abandon(n, c);
}

/* Their answers may never come. Now and then is enough: nobody waits for them. */
void slot_expire_orphans(struct net *n)
{
	if (!n->orphans || n->now_ms < n->orphan_ms)
		return;
	n->orphan_ms = n->now_ms + 1000;
	for (uint32_t i = 1; i < n->slot_room && n->orphans; i++)
		if (n->slots[i].state == SLOT_WAITING && n->slots[i].orphan && n->slots[i].until_ms <= n->now_ms)
			slot_give(n, i);
}
