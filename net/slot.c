/* net/slot.c - commands that wait for their answers, and replies in the order of the commands.
 *
 * A connection's slots stand in the order its commands came. An answer for the first of them is written to the
 * connection at once; one for a later slot is kept there until those before it have theirs. A slot whose client is
 * gone stays until its answer comes, and then goes: a token never finds a slot that means somebody else.
 */
#include "net/net.h"

#include "core/mem.h"
#include "core/must.h"

#include <string.h>

#define SLOTS_MAX (1u << 21)
#define GEN_MASK 0x7fffffffu

struct held {
	struct held   *next;
	size_t         bytes;
	uint64_t       until_ms;
	struct arrival a;
	char           copy[];
};

static uint64_t token_of(struct net *n, uint32_t number)
{
	return TOKEN_NET | (uint64_t)(n->slots[number].gen & GEN_MASK) << 32 | (uint64_t)n->worker << 21 | number;
}

/* 0: there is none, or not any more. */
static uint32_t slot_of(struct net *n, uint64_t token)
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

static uint32_t slot_take(struct net *n, struct conn *c)
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
	s->silent = n->muting;
	s->proto = c->session.proto;
	return number;
}

static void free_body(struct asked *s, struct part *p)
{
	if (p->body && p->body != s->u.inside)
		mem_free((void *)(uintptr_t)p->body, p->len);
	p->body = NULL;
}

static void slot_give(struct net *n, uint32_t number)
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
	n->orphans -= s->orphan;
	s->orphan = false;
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

static void enqueue(struct net *n, struct conn *c, uint32_t number)
{
	if (c->last)
		n->slots[c->last].next = number;
	else
		c->first = number;
	c->last = number;
	c->waiting++;
}

/* ── writing replies, in order ── */

static void write_one(struct net *n, struct conn *c, uint32_t number, const struct part *parts, uint64_t due)
{
	struct asked *s = &n->slots[number];
	size_t before = c->out.len;

	c->first = s->next;
	if (!c->first)
		c->last = 0;
	c->waiting--;
	if (!s->silent && !(c->flags & CONN_DEAD)) {
		c->out.proto = s->proto;
		if (s->format)
			s->format(&c->out, parts, s->parts, s->tag);
		else
			out_bytes(&c->out, s->u.text.bytes, s->u.text.len);
		if (c->out.len > before && c->out.bytes[before] == '-')
			count_one(&n->shown.counts.errors, 1);
		conn_wrote(n, c, s->at_once ? 0 : due);
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

static void keep(struct asked *s, struct part *to, int status, const void *body, size_t len, bool inside)
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

static void ready(struct net *n, uint32_t number)
{
	struct asked *s = &n->slots[number];
	struct conn *c = conn_at(n, s->conn, s->conn_gen);

	s->state = SLOT_READY;
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
		ready(n, parent);
}

void net_answer(struct net *n, uint64_t token, uint64_t due, int status, const void *body, size_t len)
{
	uint32_t number = slot_of(n, token);
	struct asked *s = &n->slots[number];
	struct conn *c;

	if (!number)
		return;
	if (status == NOH_ENOSPC && len == 0) {
		body = n->server->no_space;
		len = strlen(n->server->no_space);
	}
	if (s->parent) {
		answer_part(n, number, due, status, body, len);
		return;
	}
	if (s->parts != 1) {                             /* a whole step: all of it fares the same */
		for (uint32_t i = 0; i < s->parts; i++)
			keep(s, &s->u.many[i], status, body, len, false);
		s->due = due;
		ready(n, number);
		return;
	}
	c = conn_at(n, s->conn, s->conn_gen);
	if (c && c->first == number) {                   /* nothing before it: no copy */
		struct part one = { status, (uint32_t)len, body };

		write_one(n, c, number, &one, due);
		slot_write(n, c);
		return;
	}
	keep(s, &s->one, status, body, len, true);
	s->due = due;
	ready(n, number);
}

void net_answer_parts(struct net *n, uint64_t token, uint64_t due, int status, const struct part *parts,
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
	for (uint32_t i = 0; i < count; i++)
		keep(s, &s->u.many[i], parts[i].status, parts[i].body, parts[i].len, false);
	s->due = due;
	ready(n, number);
}

/* ── answers from other threads: a stack, taken whole ── */

static bool push_late(struct net *n, struct late *l)
{
	void *top = load_relaxed(&n->late);

	do {
		l->next = top;
	} while (!cas_seq_cst(&n->late, &top, l));
	return top == NULL;
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
	return push_late(n, l);
}

bool net_answer_parts_late(struct net *n, uint64_t token, uint64_t due, int status, const struct part *parts,
			   uint32_t count)
{
	size_t bytes = count * sizeof *parts;
	struct late *l;
	struct part *copy;
	char *at;

	for (uint32_t i = 0; i < count; i++)
		bytes += (parts[i].len + 7u) & ~7u;
	l = mem_alloc(sizeof *l + bytes);
	if (!l)
		return false;
	*l = (struct late){ .token = token, .due = due, .status = status, .len = (uint32_t)bytes, .count = count };
	copy = (struct part *)(void *)l->body;
	at = (char *)(copy + count);
	for (uint32_t i = 0; i < count; i++) {
		copy[i] = (struct part){ parts[i].status, parts[i].len, at };
		if (parts[i].len)
			memcpy(at, parts[i].body, parts[i].len);
		at += (parts[i].len + 7u) & ~7u;
	}
	return push_late(n, l);
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
		if (l->token == 0)
			option_late(n, l);
		else if (l->count == UINT32_MAX)
			net_answer(n, l->token, l->due, l->status, l->body, l->len);
		else
			net_answer_parts(n, l->token, l->due, l->status, (const struct part *)(const void *)l->body,
					 l->count);
		mem_free(l, sizeof *l + l->len);
		count++;
	}
	return count;
}

/* ── requests ── */

static void *held_copy(char **at, const void *bytes, size_t len)
{
	void *to = *at;

	if (len)
		memcpy(to, bytes, len);
	*at += (len + 7) & ~(size_t)7;
	return to;
}

/* Not now: its connection is not read further until this and what came after it have gone in. */
static void hold(struct net *n, struct conn *c, const struct arrival *a)
{
	size_t bytes = sizeof(struct held) + a->address_len + a->len + a->key_len + 24;
	struct held *h = mem_alloc(bytes);
	char *at;

	if (!h) {
		net_answer(n, a->token, 0, NOH_ENOMEM, NULL, 0);
		return;
	}
	at = h->copy;
	h->next = NULL;
	h->bytes = bytes;
	h->a = *a;
	h->a.body = held_copy(&at, a->body, a->len);
	h->a.address = held_copy(&at, a->address, a->address_len);
	h->a.key = a->key ? held_copy(&at, a->key, a->key_len) : NULL;
	h->until_ms = n->slots[a->slot].until_ms;
	if (!(c->flags & CONN_STALLED)) {
		c->flags |= CONN_STALLED;
		c->held_end = &c->held;
		n->stalled++;
	}
	*c->held_end = h;
	c->held_end = &h->next;
}

static bool not_now(const struct arrival *a, int rc)
{
	return (rc == NOH_FULL && !a->final) || rc == NOH_ENOMEM;
}

/* ACK memory and none: nobody waits for the turn. */
static bool sent_only(const struct asked *s, const struct arrival *a)
{
	return a->op == REQUEST_SEND && s->at_once;
}

static int deliver(struct net *n, struct arrival *a)
{
	uint64_t token = a->token;
	int rc;

	if (sent_only(&n->slots[a->slot], a))
		a->token = 0;
	rc = n->server->door.deliver(n->server->door.box, n->worker, a);
	if (a->token != token) {
		a->token = token;
		if (rc == NOH_OK)
			net_answer(n, token, 0, NOH_OK, NULL, 0);
	}
	return rc;
}

/* It was not even sent: the sentence says why. */
static void refuse(struct net *n, uint64_t token, int rc)
{
	const char *why = rc < 0 ? noh_why() : "";

	net_answer(n, token, 0, rc, why, strlen(why));
}

static void deliver_or_hold(struct net *n, struct arrival *a)
{
	struct asked *s = &n->slots[a->slot];
	struct conn *c = NULL;
	int rc;

	if (__builtin_expect(n->stalled != 0, 0)) {
		c = conn_at(n, s->conn, s->conn_gen);
		if (c && (c->flags & CONN_STALLED)) {
			hold(n, c, a);
			return;
		}
	}
	rc = deliver(n, a);
	if (__builtin_expect(rc == NOH_OK, 1))
		return;
	c = not_now(a, rc) ? conn_at(n, s->conn, s->conn_gen) : NULL;
	if (c)
		hold(n, c, a);
	else
		refuse(n, a->token, rc);
}

void slot_deliver(struct net *n)
{
	uint32_t count = n->arrival_count;

	if (!count)
		return;
	n->server->door.prepare(n->server->door.box, n->worker, n->arrivals, count);
	for (uint32_t i = 0; i < count; i++)
		deliver_or_hold(n, &n->arrivals[i]);
	n->arrival_count = 0;
	n->bytes_used = 0;
}

static void drop_held(struct conn *c)
{
	struct held *h = c->held;

	c->held = h->next;
	mem_free(h, h->bytes);
}

static void unstall(struct net *n, struct conn *c)
{
	c->flags &= ~(uint32_t)CONN_STALLED;
	c->held = NULL;
	n->stalled--;
}

uint32_t slot_retry(struct net *n, struct conn *c)
{
	uint32_t done = 0;

	while (c->held) {
		struct arrival *a = &c->held->a;
		int rc = slot_of(n, a->token) ? deliver(n, a) : NOH_ETIMEOUT;

		if (not_now(a, rc) && n->now_ms < c->held->until_ms)
			return done;
		if (rc != NOH_OK)
			refuse(n, a->token, rc);
		drop_held(c);
		done++;
	}
	unstall(n, c);
	return done + 1;
}

static void expire(struct net *n, uint32_t number)
{
	struct asked *s = &n->slots[number];

	if (s->parts == 1) {
		net_answer(n, token_of(n, number), 0, NOH_ETIMEOUT, NULL, 0);
		return;
	}
	for (uint32_t i = 0; i < s->parts; i++) {        /* some of its parts may be there already */
		free_body(s, &s->u.many[i]);
		s->u.many[i] = (struct part){ .status = NOH_ETIMEOUT };
	}
	ready(n, number);
}

void slot_expire(struct net *n, struct conn *c)
{
	uint32_t number = c->first;

	while (number) {
		struct asked *s = &n->slots[number];

		if (s->state == SLOT_WAITING && s->until_ms <= n->now_ms) {
			expire(n, number);
			number = c->first;               /* it and those behind it may be gone */
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
		if (s->state == SLOT_READY)
			slot_give(n, number);
		number = next;           /* those that wait go with their answers: `ready` finds no connection */
	}
	c->first = c->last = c->waiting = 0;
	if (c->flags & CONN_STALLED) {
		while (c->held) {
			uint64_t token = c->held->a.token;

			drop_held(c);
			net_answer(n, token, 0, NOH_EGONE, NULL, 0);
		}
		unstall(n, c);
	}
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

/* ── what a command may do: call.h ── */

struct out *call_out(struct call *c)
{
	struct out *o = c->conn->first ? &c->net->scratch : &c->conn->out;

	if (o == &c->net->scratch)
		o->len = 0;
	o->proto = c->conn->session.proto;
	return o;
}

bool slot_text(struct net *n, struct conn *c)
{
	uint32_t number = slot_take(n, c);
	struct asked *s = &n->slots[number];

	if (!number)
		return false;
	s->u.text = n->scratch;
	n->scratch = (struct out){ 0 };
	s->state = SLOT_READY;
	s->at_once = false;
	s->due = n->reply_due;
	s->until_ms = UINT64_MAX;
	enqueue(n, c, number);
	return true;
}

noh_box *call_box(struct call *c)
{
	return c->net->server->door.box;
}

static int told(struct call *c, int rc, uint64_t due)
{
	if (due > c->net->reply_due)
		c->net->reply_due = due;
	return rc;
}

int call_status(struct call *c, const char *address, noh_status *status)
{
	uint64_t due = 0;
	int rc = c->net->server->door.status(call_box(c), address, status, &due);

	return told(c, rc, due);
}

int call_list(struct call *c, const char *type, uint64_t *cursor, noh_entry *entries, size_t *count)
{
	uint64_t due = 0;
	int rc = c->net->server->door.list(call_box(c), type, cursor, entries, count, &due);

	return told(c, rc, due);
}

int call_scan(struct call *c, const char *type, uint64_t *cursor, uint32_t limit, noh_scan_fn *each, void *user)
{
	uint64_t due = 0;
	int rc = c->net->server->door.scan(call_box(c), type, cursor, limit, each, user, &due);

	return told(c, rc, due);
}

static uint64_t until(struct net *n, uint32_t timeout_ms)
{
	uint64_t ms = n->now_ms + (timeout_ms ? timeout_ms : n->o.call_ms);

	if (timeout_ms && ms < n->sweep_ms)
		n->sweep_ms = ms;
	return ms;
}

static uint32_t new_slot(struct call *c, const struct request *r, uint32_t parts, format_fn *format,
			 struct tag tag)
{
	struct net *n = c->net;
	uint32_t number = slot_take(n, c->conn);
	struct asked *s = &n->slots[number];

	if (!number)
		return 0;
	s->format = format;
	s->tag = tag;
	s->parts = parts;
	s->missing = parts;
	s->one = (struct part){ 0 };
	s->u.many = NULL;
	s->until_ms = until(n, r ? r->timeout_ms : 0);
	s->at_once = r && (r->durability == NOH_MEMORY || n->o.durability == NOH_MEMORY);
	if (parts != 1) {
		s->u.many = mem_zalloc(parts * sizeof *s->u.many);
		if (!s->u.many && parts) {
			s->parts = 0;
			s->format = NULL;
			slot_give(n, number);
			return 0;
		}
	}
	return number;
}

static const char *const type_names[] = { "", "counter:", "inventory:" };
static const uint8_t type_name_len[] = { 0, 8, 10 };

static bool is_id(const struct request *r)
{
	return r->id_len > 0 && type_name_len[r->type] + r->id_len <= 255 && r->id_len <= 255 &&
	       !memchr(r->id, 0, r->id_len);
}

static char *put(struct net *n, const void *bytes, uint32_t len)
{
	char *at = (char *)n->bytes + n->bytes_used;

	n->bytes_used += (len + 7u) & ~7u;
	if (len)
		memcpy(at, bytes, len);
	return at;
}

/* What the command has on its stack or in its arguments is copied, but for large bodies: those are delivered
 * before it returns. */
static void arrive(struct net *n, const struct request *r, uint32_t number)
{
	uint32_t small = r->len <= ARRIVAL_SMALL ? r->len : 0, name = type_name_len[r->type];
	struct arrival *a;

	if (!is_id(r)) {
		net_answer(n, token_of(n, number), 0, NOH_EADDRESS, NULL, 0);
		return;
	}
	if (n->arrival_count == ARRIVALS || n->bytes_used + 255 + r->key_len + small + 24 > ARRIVAL_BYTES)
		slot_deliver(n);
	a = &n->arrivals[n->arrival_count++];
	a->body = small ? put(n, r->body, small) : r->body;
	a->key = r->key ? put(n, r->key, r->key_len) : NULL;
	a->address = (char *)n->bytes + n->bytes_used;
	memcpy((char *)n->bytes + n->bytes_used, type_names[r->type], name);
	memcpy((char *)n->bytes + n->bytes_used + name, r->id, r->id_len);
	n->bytes_used += (name + r->id_len + 7u) & ~7u;
	a->address_len = name + r->id_len;
	a->token = token_of(n, number);
	a->slot = number;
	a->type = NULL;
	a->len = r->len;
	a->key_len = r->key_len;
	a->kind = r->kind;
	a->op = (uint8_t)r->op;
	a->named = (uint8_t)r->type;
	a->final = false;
	if (small < r->len)
		slot_deliver(n);
}

static void no_memory(struct call *c)
{
	out_error(call_out(c), "-OOM no memory for another command");
}

void call_actors(struct call *c, const struct request *requests, uint32_t count, format_fn *format, struct tag tag)
{
	struct net *n = c->net;
	uint32_t whole = new_slot(c, count ? requests : NULL, count, format, tag);

	if (!whole) {
		no_memory(c);
		return;
	}
	enqueue(n, c->conn, whole);
	if (count == 0) {
		ready(n, whole);
		return;
	}
	if (count == 1) {
		arrive(n, requests, whole);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = slot_take(n, c->conn);
		struct asked *s = &n->slots[part];

		if (!part) {
			n->slots[whole].u.many[i].status = NOH_ENOMEM;
			if (--n->slots[whole].missing == 0)
				ready(n, whole);
			continue;
		}
		s->parent = whole;
		s->parent_gen = n->slots[whole].gen;
		s->index = i;
		s->parts = 1;
		s->one = (struct part){ 0 };
		s->format = format;
		s->at_once = n->slots[whole].at_once;
		s->until_ms = n->slots[whole].until_ms;  /* if it has to be held */
		arrive(n, &requests[i], part);
	}
}

/* What was asked before goes first, also to the same actors. */
void call_step(struct call *c, const struct request *requests, uint32_t count, format_fn *format, struct tag tag)
{
	struct net *n = c->net;
	uint32_t whole;
	uint64_t token;
	int rc;

	slot_deliver(n);
	whole = new_slot(c, requests, count, format, tag);
	if (!whole) {
		no_memory(c);
		return;
	}
	enqueue(n, c->conn, whole);
	token = token_of(n, whole);
	rc = n->server->door.step(n->server->door.box, n->worker, requests, count,
				  requests->timeout_ms ? requests->timeout_ms : n->o.call_ms, token);
	if (rc != NOH_OK)
		refuse(n, token, rc);
}
